//! What a response field means to a client, and the rules that make a field malformed (RFC 9113, section 8.2).

/// What a name is, before its value is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Any field that the engine does not act on.
    Ordinary,
    /// `:status`.
    Status,
    /// `content-length`.
    ContentLength,
    /// Not allowed in a response.
    Malformed(Malformation),
}

/// What a whole field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing that the engine acts on.
    Ordinary,
    /// The status code.
    Status(u16),
    /// The announced length of the body.
    ContentLength(u64),
    /// Not allowed in a response.
    Malformed(Malformation),
}

/// A rule that a field broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformation {
    /// RFC 9113, section 8.2.1.
    #[error("a field name is empty, has upper case letters or characters that no name may have")]
    Name,
    /// RFC 9113, section 8.2.1.
    #[error("a field value has NUL, CR or LF, or white space at an end")]
    Value,
    /// RFC 9113, section 8.3.
    #[error("a pseudo-header field other than :status")]
    Pseudo,
    /// RFC 9113, section 8.2.2.
    #[error("a connection-specific field")]
    ConnectionSpecific,
    /// RFC 9110, section 15.
    #[error(":status is not a number from 100 to 599")]
    Status,
    /// RFC 9110, section 8.6.
    #[error("content-length is not a number below 2^64")]
    ContentLength,
}

/// What `name` is.
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
    // No early exit, so that the loop can be vectorised.
    let bad = name.iter().fold(0, |bad, &byte| bad | NOT_IN_A_NAME[usize::from(byte)]);
    if bad == 0 { Name::Ordinary } else { Name::Malformed(Malformation::Name) }
}

/// What a field of `name` with `value` means.
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

/// A number of digits only, below 2^64 (RFC 9110, section 8.6).
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

static NOT_IN_A_NAME: [u8; 256] = not_in_a_name();

const fn not_in_a_name() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let bad = byte <= 0x20 || byte >= 0x7f || byte == b':' as usize;
        let upper = byte >= b'A' as usize && byte <= b'Z' as usize;
        table[byte] = (bad || upper) as u8;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str, value: &str) -> Meaning {
        classify_value(classify_name(name.as_bytes()), value.as_bytes())
    }

    #[test]
    fn fields_mean_what_rfc_9113_says() {
        assert_eq!(meaning(":status", "204"), Meaning::Status(204));
        assert_eq!(meaning("content-length", "18446744073709551615"), Meaning::ContentLength(u64::MAX));
        assert_eq!(meaning("x-a", "a b\tc\u{e9}"), Meaning::Ordinary);
        assert_eq!(meaning("x-a", ""), Meaning::Ordinary);
    }

    #[test]
    fn malformed_fields_are_named() {
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
