//! Fields of HTTP/2 and HTTP/3 responses: their meaning to a client, and the rules that make them malformed
//! (RFC 9113, sections 8.2 and 8.3; RFC 9114, sections 4.2 and 4.3).

use crate::contract::ContentFields;

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A field that the engine does not act on.
    Ordinary,
    /// `:status`.
    Status,
    /// `content-length`.
    ContentLength,
    /// Not allowed in a response.
    Malformed(Malformation),
}

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A field that the engine does not act on.
    Ordinary,
    /// The status code.
    Status(u16),
    /// The length of the body.
    ContentLength(u64),
    /// Not allowed in a response.
    Malformed(Malformation),
}

/// A rule that a field breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformation {
    /// RFC 9113, section 8.2.1.
    #[error("field name that is not a lowercase token")]
    Name,
    /// RFC 9113, section 8.2.1.
    #[error("field value with NUL, CR or LF, or with white space at an end")]
    Value,
    /// RFC 9113, section 8.3.
    #[error("pseudo-header field other than :status")]
    Pseudo,
    /// RFC 9113, section 8.2.2.
    #[error("connection-specific field")]
    ConnectionSpecific,
    /// RFC 9110, section 15.
    #[error(":status that is not a number from 100 to 599")]
    Status,
    /// RFC 9110, section 8.6.
    #[error("content-length that is not a number below 2^64")]
    ContentLength,
    /// RFC 9110, section 8.6.
    #[error("second content-length with another value")]
    ContentLengths,
    /// RFC 9113, section 8.3.
    #[error(":status after a regular field")]
    LateStatus,
    /// RFC 9113, section 8.3.
    #[error("duplicate :status")]
    DuplicateStatus,
}

/// The meaning of a name.
pub fn classify_name(name: &[u8]) -> Name {
    match name {
        b":status" => return Name::Status,
        b"content-length" => return Name::ContentLength,
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            return Name::Malformed(Malformation::ConnectionSpecific);
        }
        [b':', ..] => return Name::Malformed(Malformation::Pseudo),
        [] => return Name::Malformed(Malformation::Name),
        _ => {}
    }
    if name_faults(name) == 0 { Name::Ordinary } else { Name::Malformed(Malformation::Name) }
}

/// The meaning of a field with this name and value.
pub fn classify_value(name: Name, value: &[u8]) -> Meaning {
    match name {
        Name::Ordinary => {
            if is_valid_value(value) {
                Meaning::Ordinary
            } else {
                Meaning::Malformed(Malformation::Value)
            }
        }
        Name::Status => match value {
            [hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
                let digit = |byte: &u8| u16::from(byte - b'0');
                Meaning::Status(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
            }
            _ => Meaning::Malformed(Malformation::Status),
        },
        Name::ContentLength => match parse_length(value) {
            Some(length) => Meaning::ContentLength(length),
            None => Meaning::Malformed(Malformation::ContentLength),
        },
        Name::Malformed(malformation) => Meaning::Malformed(malformation),
    }
}

/// A number below 2^64 that consists of digits (RFC 9110, section 8.6).
pub fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        length.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn is_valid_value(value: &[u8]) -> bool {
    let bad = value.iter().fold(false, |bad, &byte| bad | (byte == 0) | (byte == b'\n') | (byte == b'\r'));
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !bad && !is_space(value.first()) && !is_space(value.last())
}

/// The status of Early Hints (RFC 8297).
pub const EARLY_HINTS: u16 = 103;

/// Appends a value of `link` to others (RFC 9110, section 5.3).
pub fn join_links(links: &mut Vec<u8>, value: &[u8]) {
    if !links.is_empty() {
        links.extend_from_slice(b", ");
    }
    links.extend_from_slice(value);
}

/// A field section of a response during decoding.
#[derive(Clone, Debug, Default)]
pub struct FieldSection {
    /// The status code.
    pub status: Option<u16>,
    /// The length of the body.
    pub content_length: Option<u64>,
    /// The first malformed field.
    pub malformed: Option<Box<str>>,
    /// What the body is.
    pub content: ContentFields,
    /// The values of `link` in 103 (RFC 8297), joined by `, `.
    pub links: Vec<u8>,
    /// The lengths of names and values, summed.
    pub raw_bytes: usize,
    fields: usize,
    has_regular: bool,
}

impl FieldSection {
    /// Adds the next field.
    #[inline]
    pub fn add(&mut self, name: &[u8], value: &[u8], meaning: Meaning) {
        self.raw_bytes += name.len() + value.len();
        self.fields += 1;
        let malformation = match meaning {
            Meaning::Ordinary => {
                self.has_regular = true;
                self.content.add(name, value);
                if self.status == Some(EARLY_HINTS) && name == b"link" {
                    join_links(&mut self.links, value);
                }
                return;
            }
            Meaning::Status(_) if self.has_regular => Malformation::LateStatus,
            Meaning::Status(status) => match self.status.replace(status) {
                None => return,
                Some(_) => Malformation::DuplicateStatus,
            },
            Meaning::ContentLength(length) => {
                self.has_regular = true;
                match self.content_length.replace(length) {
                    Some(other) if other != length => Malformation::ContentLengths,
                    _ => return,
                }
            }
            Meaning::Malformed(malformation) => malformation,
        };
        self.add_malformed(name, value, malformation);
    }

    #[cold]
    fn add_malformed(&mut self, name: &[u8], value: &[u8], malformation: Malformation) {
        let shown = |bytes: &[u8]| bytes[..bytes.len().min(40)].escape_ascii().to_string();
        self.malformed
            .get_or_insert_with(|| format!("{malformation}: `{}: {}`", shown(name), shown(value)).into());
    }

    /// The size that is limited by SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, section 6.5.2) and
    /// SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114, section 4.2.2).
    pub fn list_bytes(&self) -> usize {
        self.raw_bytes + 32 * self.fields
    }
}

/// [`NOT_TOKEN`] and [`UPPERCASE`] of all bytes of a field name.
pub fn name_faults(name: &[u8]) -> u8 {
    // Without an early exit the loop has no branches.
    name.iter().fold(0, |faults, &byte| faults | NAME_FAULTS[usize::from(byte)])
}

/// The byte is not allowed in a token (RFC 9110, section 5.6.2).
pub const NOT_TOKEN: u8 = 1;
/// The byte is an uppercase letter, which only HTTP/1 allows in field names.
pub const UPPERCASE: u8 = 2;

static NAME_FAULTS: [u8; 256] = {
    let mut table = [NOT_TOKEN; 256];
    let marks = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < marks.len() {
        table[marks[index] as usize] = 0;
        index += 1;
    }
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = if byte.is_ascii_uppercase() { UPPERCASE } else { 0 };
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str, value: &str) -> Meaning {
        classify_value(classify_name(name.as_bytes()), value.as_bytes())
    }

    #[test]
    fn fields_have_the_meaning_of_rfc_9113() {
        assert_eq!(meaning(":status", "204"), Meaning::Status(204));
        assert_eq!(meaning("content-length", "18446744073709551615"), Meaning::ContentLength(u64::MAX));
        assert_eq!(meaning("x-a", "a b\tc\u{e9}"), Meaning::Ordinary);
        assert_eq!(meaning("x-a", ""), Meaning::Ordinary);
    }

    #[test]
    fn malformed_fields_are_found() {
        let malformed = [
            (":status", "20", Malformation::Status),
            (":status", "2x0", Malformation::Status),
            (":status", "600", Malformation::Status),
            (":path", "/", Malformation::Pseudo),
            ("content-length", "+1", Malformation::ContentLength),
            ("content-length", "", Malformation::ContentLength),
            ("content-length", "18446744073709551616", Malformation::ContentLength),
            ("X-a", "1", Malformation::Name),
            ("x a", "1", Malformation::Name),
            ("x\"a", "1", Malformation::Name),
            ("x:a", "1", Malformation::Name),
            ("", "1", Malformation::Name),
            ("x-a", " 1", Malformation::Value),
            ("x-a", "1\t", Malformation::Value),
            ("x-a", "1\r\n2", Malformation::Value),
            ("x-a", "\0", Malformation::Value),
            ("transfer-encoding", "chunked", Malformation::ConnectionSpecific),
            ("connection", "close", Malformation::ConnectionSpecific),
        ];
        for (name, value, malformation) in malformed {
            assert_eq!(meaning(name, value), Meaning::Malformed(malformation), "{name}: {value}");
        }
    }
}
