//! HTTP/1.1 responses that are read as a whole, for discovery and for pages to be modelled. The measured
//! clients use the engines.

use httparse::{EMPTY_HEADER, Status};

/// The most fields of a response.
const MOST_FIELDS: usize = 200;
/// The longest head.
const MOST_HEAD_BYTES: usize = 256 << 10;

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values.
    pub fields: Vec<(String, String)>,
    /// Its length in bytes.
    pub bytes: usize,
}

/// How the end of a body is known (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

impl Head {
    /// Reads a head; `None` while it is not complete. Interim responses are skipped.
    ///
    /// # Errors
    /// It is not HTTP/1.1.
    pub fn parse(bytes: &[u8]) -> Result<Option<Head>, String> {
        let mut skipped = 0;
        loop {
            let mut fields = [EMPTY_HEADER; MOST_FIELDS];
            let mut response = httparse::Response::new(&mut fields);
            let fault = |error| format!("the response is not HTTP/1.1 ({error})");
            let length = match response.parse(&bytes[skipped..]).map_err(fault)? {
                Status::Complete(length) => length,
                Status::Partial if bytes.len() > MOST_HEAD_BYTES => {
                    return Err(format!("the response's head has more than {MOST_HEAD_BYTES} bytes"));
                }
                Status::Partial => return Ok(None),
            };
            skipped += length;
            let status = response.code.unwrap_or(0);
            if (100..200).contains(&status) {
                continue;
            }
            let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
            let field = |field: &httparse::Header<'_>| (field.name.to_ascii_lowercase(), text(field.value));
            return Ok(Some(Head {
                status,
                fields: response.headers.iter().map(field).collect(),
                bytes: skipped,
            }));
        }
    }

    /// The values of a field, one after the other.
    pub fn values<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h str> {
        self.fields.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn framing(&self) -> Framing {
        if self.values("transfer-encoding").any(|value| value.to_ascii_lowercase().contains("chunked")) {
            return Framing::Chunked;
        }
        let length = self.values("content-length").find_map(|value| value.parse().ok());
        match (length, self.status) {
            (_, 204 | 304) => Framing::Length(0),
            (Some(length), _) => Framing::Length(length),
            (None, _) => Framing::UntilClosed,
        }
    }

    /// The body in the bytes after the head, as far as it is there.
    ///
    /// # Errors
    /// The chunks are malformed.
    pub fn body(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match self.framing() {
            Framing::Length(length) => Ok(bytes[..length.min(bytes.len())].to_vec()),
            Framing::UntilClosed => Ok(bytes.to_vec()),
            Framing::Chunked => {
                let mut body = Vec::new();
                each_chunk(bytes, |chunk| body.extend_from_slice(chunk))?;
                Ok(body)
            }
        }
    }

    /// Whether the whole body is in the bytes after the head. Without a length it ends with the connection.
    ///
    /// # Errors
    /// The chunks are malformed.
    pub fn is_whole(&self, bytes: &[u8]) -> Result<bool, String> {
        match self.framing() {
            Framing::Length(length) => Ok(bytes.len() >= length),
            Framing::UntilClosed => Ok(false),
            Framing::Chunked => each_chunk(bytes, |_| {}),
        }
    }
}

/// Passes on what the chunked coding holds (RFC 9112, section 7.1); whether the last chunk is there.
fn each_chunk<'b>(mut bytes: &'b [u8], mut each: impl FnMut(&'b [u8])) -> Result<bool, String> {
    loop {
        let (start, length) = match httparse::parse_chunk_size(bytes) {
            Ok(Status::Complete(size)) => size,
            Ok(Status::Partial) => return Ok(false),
            Err(_) => return Err("the length of a chunk is not a number".to_owned()),
        };
        if length == 0 {
            return Ok(true);
        }
        let rest = &bytes[start..];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(after) = length.checked_add(2).and_then(|end| rest.get(end..)) else {
            each(&rest[..length.min(rest.len())]);
            return Ok(false);
        };
        each(&rest[..length]);
        bytes = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (u16, Vec<u8>, bool) {
        let head = Head::parse(text.as_bytes()).unwrap().unwrap();
        let bytes = &text.as_bytes()[head.bytes..];
        (head.status, head.body(bytes).unwrap(), head.is_whole(bytes).unwrap())
    }

    #[test]
    fn bodies_end_by_length_by_chunks_or_with_the_connection() {
        let length =
            "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd";
        assert_eq!(read(length), (200, b"abc".to_vec(), true));
        let chunks =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(read(chunks), (200, b"abcde".to_vec(), true));
        for cut in 0..chunks.len() {
            if let Some(head) = Head::parse(&chunks.as_bytes()[..cut]).unwrap() {
                let body = head.body(&chunks.as_bytes()[head.bytes..cut]).unwrap();
                assert!(b"abcde".starts_with(&body), "{cut}");
            }
        }
        assert_eq!(read("HTTP/1.0 404 No\r\n\r\nabc"), (404, b"abc".to_vec(), false));
        assert_eq!(read("HTTP/1.1 304 No\r\n\r\n"), (304, Vec::new(), true));
    }

    #[test]
    fn hostile_responses_are_errors_and_end() {
        for text in ["HTTP/2 200\r\n\r\n", "nonsense\r\n\r\n", "\x16\x03\x01", "HTTP/1.1 abc\r\n\r\n"] {
            assert!(Head::parse(text.as_bytes()).is_err(), "{text}");
        }
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let head = Head::parse(chunks.as_bytes()).unwrap().unwrap();
        assert_eq!(head.body(b"ffffffffffffffff\r\nab").unwrap(), b"ab");
        assert!(!head.is_whole(b"ffffffffffffffff\r\nab").unwrap());
        assert!(head.body(b"g\r\n").is_err());
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MOST_FIELDS + 1));
        assert!(Head::parse(many.as_bytes()).is_err());
    }
}
