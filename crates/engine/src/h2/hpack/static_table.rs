//! The static table (RFC 7541, appendix A).

use crate::field::{Malformation, Meaning, Name};

/// An entry with its meaning in a response.
#[derive(Clone, Copy, Debug)]
pub struct StaticEntry {
    /// The field's name.
    pub name: &'static str,
    /// The field's value, often empty.
    pub value: &'static str,
    /// The meaning of the name.
    pub kind: Name,
    /// The meaning of the field.
    pub meaning: Meaning,
}

/// The entries; index 1 of the RFC is the first.
pub static STATIC_TABLE: [StaticEntry; 61] = table();

/// The index (from 1) of the entry with `name`, and whether it also has `value`.
pub fn find(name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let mut by_name = None;
    for (position, entry) in STATIC_TABLE.iter().enumerate() {
        if entry.name.as_bytes() == name {
            if entry.value.as_bytes() == value {
                return Some((position + 1, true));
            }
            by_name = by_name.or(Some((position + 1, false)));
        } else if by_name.is_some() {
            break;
        }
    }
    by_name
}

const fn table() -> [StaticEntry; 61] {
    let ordinary = StaticEntry { name: "", value: "", kind: Name::Ordinary, meaning: Meaning::Ordinary };
    let mut table = [ordinary; 61];
    let mut position = 0;
    while position < 61 {
        let (name, value) = FIELDS[position];
        let (kind, meaning) = match position + 1 {
            1..=7 => (Name::Malformed(Malformation::Pseudo), Meaning::Malformed(Malformation::Pseudo)),
            8 => (Name::Status, Meaning::Status(200)),
            9 => (Name::Status, Meaning::Status(204)),
            10 => (Name::Status, Meaning::Status(206)),
            11 => (Name::Status, Meaning::Status(304)),
            12 => (Name::Status, Meaning::Status(400)),
            13 => (Name::Status, Meaning::Status(404)),
            14 => (Name::Status, Meaning::Status(500)),
            28 => (Name::ContentLength, Meaning::Malformed(Malformation::ContentLength)),
            57 => (
                Name::Malformed(Malformation::ConnectionSpecific),
                Meaning::Malformed(Malformation::ConnectionSpecific),
            ),
            _ => (Name::Ordinary, Meaning::Ordinary),
        };
        table[position] = StaticEntry { name, value, kind, meaning };
        position += 1;
    }
    table
}

const FIELDS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{classify_name, classify_value};

    #[test]
    fn meanings_written_down_are_those_worked_out() {
        for entry in &STATIC_TABLE {
            let kind = classify_name(entry.name.as_bytes());
            assert_eq!(entry.kind, kind, "{}", entry.name);
            assert_eq!(entry.meaning, classify_value(kind, entry.value.as_bytes()), "{}", entry.name);
        }
    }

    #[test]
    fn every_entry_is_found() {
        for (position, entry) in STATIC_TABLE.iter().enumerate() {
            let found = find(entry.name.as_bytes(), entry.value.as_bytes());
            assert_eq!(found, Some((position + 1, true)));
        }
        assert_eq!(find(b":status", b"302"), Some((8, false)));
        assert_eq!(find(b"x-other", b""), None);
    }
}
