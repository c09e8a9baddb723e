//! Whether a complete response is the expected one.

use model::HttpVersion;
use model::options::ExpectedResponse;
use model::sample::{FailureKind, Outcome, Sample};

/// The outcome of a complete response.
pub(crate) fn judge(sample: &Sample, version: HttpVersion, expected: ExpectedResponse) -> Outcome {
    match sample.version {
        Some(found) if found != version => {
            let reason = format!("the response came in {found}, expected {version}");
            return Outcome::failed(FailureKind::WrongVersion, reason);
        }
        _ => {}
    }
    match (sample.status, expected.status) {
        (Some(found), Some(status)) if found != status => {
            return Outcome::failed(FailureKind::WrongStatus, format!("status {found}, expected {status}"));
        }
        (Some(found), None) if !(200..300).contains(&found) => {
            return Outcome::failed(FailureKind::WrongStatus, format!("status {found}, expected 2xx"));
        }
        _ => {}
    }
    if let Some(length) = sample.expected_body_bytes.filter(|length| *length != sample.response_body_bytes) {
        let reason = format!("{} body bytes, expected {length}", sample.response_body_bytes);
        return Outcome::failed(FailureKind::WrongLength, reason);
    }
    match sample.response_body_crc32.zip(expected.body_crc32) {
        Some((found, crc32)) if found != crc32 => {
            let reason = format!("the body has CRC-32 {found:08x}, expected {crc32:08x}");
            Outcome::failed(FailureKind::WrongContent, reason)
        }
        // The result of comparing the content.
        _ => sample.outcome.clone(),
    }
}
