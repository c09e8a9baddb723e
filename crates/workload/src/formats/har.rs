//! HTTP Archive 1.2, what browsers record: one entry for each request.
//!
//! Source: the format's specification at w3c.github.io/web-performance; names that begin with `_` are
//! Chromium's.

use serde::Deserialize;

use model::formats::shown;

/// Why a text is no HAR file, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HarError(pub(crate) String);

#[derive(Deserialize)]
struct Har {
    log: HarLog,
}

/// A record of a browser.
#[derive(Deserialize)]
pub(crate) struct HarLog {
    #[serde(default)]
    pub(crate) pages: Vec<HarFilePage>,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Deserialize)]
pub(crate) struct HarFilePage {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) title: String,
}

/// One request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) pageref: Option<String>,
    #[serde(default)]
    pub(crate) started_date_time: String,
    /// From its start to the end of its response, in milliseconds.
    #[serde(default)]
    pub(crate) time: f64,
    pub(crate) request: EntryRequest,
    pub(crate) response: EntryResponse,
    #[serde(rename = "_initiator")]
    pub(crate) initiator: Option<Initiator>,
    #[serde(default)]
    pub(crate) timings: Timings,
    /// What answered in place of the server, such as `memory`.
    #[serde(rename = "_fromCache")]
    pub(crate) from_cache: Option<serde_json::Value>,
}

/// The phases of a request in milliseconds; `None` or negative where it did not need them.
#[derive(Default, Deserialize)]
pub(crate) struct Timings {
    /// TCP and TLS, or QUIC.
    pub(crate) connect: Option<f64>,
    /// TLS alone.
    pub(crate) ssl: Option<f64>,
    /// From the last byte of the request to the first byte of the response.
    pub(crate) wait: Option<f64>,
}

impl Timings {
    /// The handshake of TCP, which takes one round trip, where it can be told from that of TLS.
    pub(crate) fn tcp_ms(&self) -> Option<f64> {
        let tls_ms = self.ssl.filter(|ssl| *ssl > 0.0).unwrap_or(0.0);
        self.connect.map(|connect| connect - tls_ms).filter(|tcp| *tcp > 0.0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryRequest {
    pub(crate) method: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) http_version: String,
    #[serde(default)]
    pub(crate) headers: Vec<HarField>,
    #[serde(default)]
    pub(crate) body_size: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryResponse {
    pub(crate) status: i64,
    #[serde(default)]
    pub(crate) headers: Vec<HarField>,
    #[serde(default)]
    pub(crate) content: Content,
    #[serde(default)]
    pub(crate) body_size: f64,
}

#[derive(Deserialize)]
pub(crate) struct HarField {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Content {
    pub(crate) size: f64,
    pub(crate) mime_type: String,
}

#[derive(Deserialize)]
pub(crate) struct Initiator {
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
struct Stack {
    #[serde(rename = "callFrames", default)]
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
struct CallFrame {
    #[serde(default)]
    url: String,
}

/// Reads a HAR file.
///
/// # Errors
/// It is not HAR.
pub(crate) fn read(text: &str) -> Result<HarLog, HarError> {
    let text = text.trim_start_matches('\u{feff}');
    let har: Har = serde_json::from_str(text).map_err(|error| {
        HarError(format!(
            "it is not a HAR file ({}); save one with the network tools of a browser",
            shown(&error.to_string())
        ))
    })?;
    Ok(har.log)
}

impl Entry {
    /// The URLs that caused the request, the nearest first: what named it, or the scripts that made it.
    pub(crate) fn initiators(&self) -> impl Iterator<Item = &str> {
        let initiator = self.initiator.as_ref();
        let frames = initiator.and_then(|initiator| initiator.stack.as_ref()).map(|stack| &stack.call_frames);
        let frames = frames.into_iter().flatten().map(|frame| frame.url.as_str());
        initiator.and_then(|initiator| initiator.url.as_deref()).into_iter().chain(frames)
    }
}
