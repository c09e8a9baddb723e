//! What a browser reports of a page load in addition to its requests.

use serde::{Deserialize, Serialize};

/// One page load of a browser. Stamps are nanoseconds since the run's start, on the clock of
/// [`crate::sample::Sample`]; what did not happen, or what the browser does not report, is `None`.
///
/// The phases are those of the document's last request, after any redirects. For HTTP/3 the Fetch standard
/// sets `secureConnectionStart` to `connectStart` (section 4.6), so connect and handshake cannot be told
/// apart: the columns of the connect are empty then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageEvents {
    /// The client group's number within the cell.
    pub group: u16,
    /// The client's number within the group.
    pub client: u32,
    /// When the navigation began.
    pub began_ns: u64,
    /// When the DNS lookup began.
    pub dns_began_ns: Option<u64>,
    /// When it ended.
    pub dns_ended_ns: Option<u64>,
    /// When the TCP connect began; `None` for QUIC, and where a connection was reused.
    pub connect_began_ns: Option<u64>,
    /// When TCP was established.
    pub connect_ended_ns: Option<u64>,
    /// When the handshake of TLS or QUIC began; `None` for cleartext, and where a connection was reused.
    pub handshake_began_ns: Option<u64>,
    /// When it ended.
    pub handshake_ended_ns: Option<u64>,
    /// When the request for the document was sent.
    pub sent_ns: Option<u64>,
    /// When the head of its response was read.
    pub first_byte_ns: Option<u64>,
    /// When its last byte was read.
    pub done_ns: Option<u64>,
    /// First paint of text or an image (Paint Timing, section 3.1.3).
    pub first_contentful_paint_ns: Option<u64>,
    /// Paint of the largest text or image up to the end of the observation (Largest Contentful Paint).
    /// Chromium rounds it to milliseconds.
    pub largest_contentful_paint_ns: Option<u64>,
    /// The event `DOMContentLoaded`.
    pub dom_content_loaded_ns: Option<u64>,
    /// The event `load`.
    pub loaded_ns: Option<u64>,
    /// The largest session of layout shifts, in millionths: at most 5 s long, with gaps below 1 s (Cumulative
    /// Layout Shift). `None` if the browser does not report layout shifts.
    pub layout_shift_millionths: Option<u64>,
    /// Errors on the console and exceptions.
    pub console_errors: u64,
    /// The first of them, cut to one line each.
    pub console: Vec<String>,
    /// Whether the browser ran in its sandbox, which Chromium does not have as root.
    pub is_sandboxed: bool,
}

impl PageEvents {
    /// From the start of the navigation to an event of it.
    pub fn since_start_ns(&self, event_ns: Option<u64>) -> Option<u64> {
        event_ns?.checked_sub(self.began_ns)
    }
}
