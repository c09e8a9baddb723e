//! The rules for the fields of a request (RFC 9114, sections 4.2 and 4.3).

use engine::field::{Malformation, Meaning, classify_name, classify_value};

/// What counts for each field besides its name and value (RFC 9114, section 4.2.2).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// A field section of a request during decoding.
#[derive(Default)]
pub(super) struct Fields {
    is_trailers: bool,
    has_regular: bool,
    has_scheme: bool,
    is_connect: Option<bool>,
    path: Option<Vec<u8>>,
    authority: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
    content_length: Option<u64>,
    list_bytes: usize,
    malformed: Option<String>,
}

impl Fields {
    pub(super) fn head() -> Self {
        Fields::default()
    }

    pub(super) fn trailers() -> Self {
        Fields { is_trailers: true, ..Fields::default() }
    }

    /// Adds the next field.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.list_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        let added =
            if name.starts_with(b":") { self.add_pseudo(name, value) } else { self.add_regular(name, value) };
        if let Err(reason) = added
            && self.malformed.is_none()
        {
            let name = name[..name.len().min(40)].escape_ascii();
            self.malformed = Some(format!("{reason}: `{name}`"));
        }
    }

    /// Length of the section as SETTINGS_MAX_FIELD_SECTION_SIZE counts it.
    pub(super) fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    /// The length of the body, where the section announces it; or why the section is malformed.
    pub(super) fn finish(self) -> Result<Option<u64>, String> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        if self.is_trailers {
            return Ok(None);
        }
        let missing = |name: &str| Err(format!("request without {name}"));
        match (self.is_connect, self.has_scheme, self.path.as_deref()) {
            (None, ..) => return missing(":method"),
            (Some(true), false, None) | (Some(false), true, Some([b'/', ..] | b"*")) => {}
            (Some(true), ..) => return Err("CONNECT with :scheme or :path".to_owned()),
            (Some(false), false, _) => return missing(":scheme"),
            (Some(false), true, None) => return missing(":path"),
            (Some(false), true, Some(_)) => return Err(":path that does not start with a slash".to_owned()),
        }
        match (&self.authority, &self.host) {
            (None, None) => missing(":authority and host"),
            (Some(authority), Some(host)) if authority != host => {
                Err("host that differs from :authority".to_owned())
            }
            (Some(named), _) | (None, Some(named)) if named.is_empty() || named.contains(&b'@') => {
                Err("authority that is empty or contains user information".to_owned())
            }
            _ => Ok(self.content_length),
        }
    }

    fn add_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        if self.is_trailers {
            return Err("pseudo-header field in trailers".to_owned());
        }
        if self.has_regular {
            return Err("pseudo-header field after a regular field".to_owned());
        }
        let is_duplicate = match name {
            b":method" => self.is_connect.replace(value == b"CONNECT").is_some(),
            b":scheme" => std::mem::replace(&mut self.has_scheme, true),
            b":authority" => self.authority.replace(value.to_vec()).is_some(),
            b":path" => self.path.replace(value.to_vec()).is_some(),
            _ => return Err("pseudo-header field that requests do not have".to_owned()),
        };
        if is_duplicate { Err("duplicate pseudo-header field".to_owned()) } else { Ok(()) }
    }

    fn add_regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        self.has_regular = true;
        match classify_value(classify_name(name), value) {
            Meaning::Malformed(malformation) => Err(malformation.to_string()),
            Meaning::ContentLength(length) => match self.content_length.replace(length) {
                Some(other) if other != length => Err(Malformation::ContentLengths.to_string()),
                _ => Ok(()),
            },
            _ if name == b"host" && self.host.replace(value.to_vec()).is_some() => {
                Err("duplicate field".to_owned())
            }
            _ if name == b"te" && value != b"trailers" => Err("te other than `trailers`".to_owned()),
            _ => Ok(()),
        }
    }
}
