//! Versions of JSON formats.

use serde::Deserialize;

/// The `version` of a document. It is read first, because another version has another form.
///
/// # Errors
/// It is not JSON, or has no version.
pub(crate) fn version_of(json: &[u8]) -> Result<u32, serde_json::Error> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice(json).map(|Versioned { version }| version)
}
