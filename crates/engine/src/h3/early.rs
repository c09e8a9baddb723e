//! Requests before the handshake is done (RFC 9001, section 4.6; RFC 9114, section 7.2.4.2).

use std::collections::VecDeque;

use super::Http3;
use super::request::Encoded;
use crate::contract::{Connection, HeaderBytes, NotNow, Request, RequestId, is_safe};

/// Requests before the handshake is done; both lists are usually empty.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// Sent before the handshake is done, in order: sent again if the server rejects early data.
    pub(super) sent: VecDeque<(RequestId, Encoded)>,
    /// Accepted, and sent when the handshake is done and a stream is available.
    pub(super) waiting: VecDeque<(RequestId, Encoded)>,
}

impl Http3 {
    /// The server has answered. Where it rejected early data, QUIC forgot the streams as if they had never
    /// been (RFC 9001, section 4.6.2), and what they carried waits for new ones, in the same order.
    pub(super) fn settle_early(&mut self, is_accepted: bool) {
        let mut sent = std::mem::take(&mut self.early.sent);
        if is_accepted {
            return;
        }
        self.stock.clear();
        while let Some((id, _)) = self.exchanges.last_from(0) {
            self.exchanges.remove(id);
        }
        sent.append(&mut self.early.waiting);
        self.early.waiting = sent;
    }

    /// Accepts a request before the handshake is done: a safe one leaves at once.
    pub(super) fn begin_early(&mut self, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow> {
        if self.available_requests() == 0 {
            return Err(NotNow);
        }
        // Before the server's SETTINGS no section refers to a stream's table.
        let encoded = self.templates.encoded(0, request);
        let size = encoded.header_bytes;
        match self.stock.pop_front().filter(|_| is_safe(request)) {
            Some(stream) => {
                self.early.sent.push_back((id, encoded.clone()));
                self.begin(stream, id, encoded);
            }
            None => self.early.waiting.push_back((id, encoded)),
        }
        Ok(size)
    }
}
