//! Output: the preface, requests, and request bodies within the peer's windows.

use super::Http2;
use super::frame::{self, FrameHeader, flag, kind};
use super::output::OUTPUT_BYTES;
use super::request::write_headers;
use super::settings::DEFAULT_WINDOW;
use super::stream::{Phase, Stream};
use crate::contract::{HeaderBytes, Request, RequestId};

/// The largest DATA frame that is sent, in bytes.
const DATA_BYTES: usize = 16_384;

impl Http2 {
    /// Queues the preface, SETTINGS and the connection's window (RFC 9113, section 3.4).
    pub(super) fn write_preface(&mut self) {
        let frames = self.output.frames();
        frames.extend_from_slice(frame::PREFACE);
        self.local.write(frames);
        if self.connection_window > DEFAULT_WINDOW {
            frame::write_window_update(0, self.connection_window - DEFAULT_WINDOW, frames);
        }
    }

    /// Opens a stream and queues its HEADERS; `None` if no identifier is left.
    pub(super) fn begin_request(&mut self, id: RequestId, request: &Request) -> Option<HeaderBytes> {
        let (is_head, window) = (request.method == "HEAD", self.peer.stream_window_bytes);
        let open = |stream| Stream::new(stream, id, is_head, window, request.body.clone());
        let stream = self.streams.open_next(open)?;
        let (block, raw) = self.encoder.encode(request);
        let frames = self.output.frames();
        let wire = write_headers(block, stream, request.body.is_empty(), self.peer.max_frame_bytes, frames);
        if !request.body.is_empty() {
            self.sending.push_back(stream);
        }
        self.idle_frames = 0;
        Some(HeaderBytes { raw, wire })
    }

    /// Appends pending output, at most about 64 kB; returns whether there was any.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        self.output.take(out);
        // Bodies follow when all earlier frames have left, so that HEADERS precede DATA.
        let mut blocked = 0;
        while self.output.is_empty()
            && out.len() - before < OUTPUT_BYTES
            && blocked < self.sending.len()
            && self.send_window.available() > 0
        {
            let Some(id) = self.sending.pop_front() else { break };
            match self.send_piece(id, out) {
                Turn::Nothing => {
                    self.sending.push_back(id);
                    blocked += 1;
                }
                Turn::Piece => {
                    self.sending.push_back(id);
                    blocked = 0;
                }
                Turn::All => blocked = 0,
            }
        }
        out.len() > before
    }

    /// Appends one DATA frame of a stream.
    fn send_piece(&mut self, id: u32, out: &mut Vec<u8>) -> Turn {
        let Some(stream) = self.streams.get_mut(id) else { return Turn::All };
        let window = stream.send_window.available().min(self.send_window.available());
        let length = stream.body.len().min(window).min(DATA_BYTES);
        if length == 0 {
            return Turn::Nothing;
        }
        let piece = stream.body.split_to(length);
        stream.send_window.take(length);
        self.send_window.take(length);
        self.idle_frames = 0;
        let is_last = stream.body.is_empty();
        let (length, flags) =
            (u32::try_from(length).unwrap_or(0), if is_last { flag::END_STREAM } else { 0 });
        FrameHeader { length, kind: kind::DATA, flags, stream: id }.write(out);
        out.extend_from_slice(&piece);
        if !is_last {
            return Turn::Piece;
        }
        if stream.phase == Phase::Answered {
            self.streams.remove(id);
            self.close_when_idle();
        }
        Turn::All
    }
}

/// The result of a stream's turn.
enum Turn {
    /// The stream's window is closed.
    Nothing,
    /// A piece of the body.
    Piece,
    /// The body's last piece, or the stream is closed.
    All,
}
