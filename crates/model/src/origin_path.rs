//! The paths that the built-in origin answers in addition to pages and files.

use crate::number::{float, nearest};
use crate::units::NANOS_PER_MS;

/// The longest body of `/bytes/N`, in bytes.
pub const MOST_BYTES: u64 = 1 << 40;
/// The longest delay of `/delay/MS`, in milliseconds.
pub const LONGEST_DELAY_MS: u64 = 60_000;

/// What such a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginPath {
    /// `/bytes/N`: a body of so many bytes.
    Bytes(u64),
    /// `/delay/MS`: a short message after so many nanoseconds.
    DelayNs(u64),
    /// `/echo`: the length of the body that POST and PUT send.
    Echo,
    /// `/status/NNN`: this status.
    Status(u16),
}

impl OriginPath {
    /// Reads a path; `None` for any other path.
    ///
    /// # Errors
    /// A number is missing or out of range, and what to write.
    pub fn parse(path: &str) -> Result<Option<OriginPath>, String> {
        if path == "/echo" {
            return Ok(Some(OriginPath::Echo));
        }
        if let Some(text) = path.strip_prefix("/bytes/") {
            let bytes = digits(text).filter(|bytes| *bytes <= MOST_BYTES);
            let wrong = || format!("`{text}` is not a length; write 0 to {MOST_BYTES} bytes");
            return bytes.map(|bytes| Some(OriginPath::Bytes(bytes))).ok_or_else(wrong);
        }
        if let Some(text) = path.strip_prefix("/status/") {
            let status =
                digits(text).filter(|_| text.len() == 3).and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (200..600).contains(status));
            let wrong = || format!("`{text}` is not a status; write 200 to 599");
            return status.map(|status| Some(OriginPath::Status(status))).ok_or_else(wrong);
        }
        if let Some(text) = path.strip_prefix("/delay/") {
            let wrong = || format!("`{text}` is not a delay; write 0 to {LONGEST_DELAY_MS} milliseconds");
            return delay_ns(text).map(|ns| Some(OriginPath::DelayNs(ns))).ok_or_else(wrong);
        }
        Ok(None)
    }
}

/// A number of decimal digits, without a sign.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A decimal number of milliseconds, in nanoseconds.
fn delay_ns(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ms: f64 = is_plain.then(|| text.parse().ok()).flatten()?;
    (ms <= float(LONGEST_DELAY_MS)).then(|| nearest(ms * float(NANOS_PER_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        for (path, expected) in [
            ("/bytes/0", Some(OriginPath::Bytes(0))),
            ("/bytes/1099511627776", Some(OriginPath::Bytes(1 << 40))),
            ("/status/404", Some(OriginPath::Status(404))),
            ("/delay/1.5", Some(OriginPath::DelayNs(1_500_000))),
            ("/delay/60000", Some(OriginPath::DelayNs(60_000_000_000))),
            ("/echo", Some(OriginPath::Echo)),
            ("/echo/", None),
            ("/", None),
            ("/nope", None),
        ] {
            assert_eq!(OriginPath::parse(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for path in ["/bytes/", "/bytes/abc", "/bytes/+5", "/bytes/1099511627777", "/bytes/5?x"] {
            assert!(OriginPath::parse(path).unwrap_err().contains("is not a length; write 0 to"), "{path}");
        }
        for path in ["/status/199", "/status/600", "/status/0404", "/status/+20"] {
            assert!(OriginPath::parse(path).unwrap_err().contains("write 200 to 599"), "{path}");
        }
        for path in ["/delay/", "/delay/.", "/delay/1e3", "/delay/-1", "/delay/60000.1", "/delay/1.2.3"] {
            assert!(OriginPath::parse(path).unwrap_err().contains("write 0 to 60000 milliseconds"), "{path}");
        }
    }
}
