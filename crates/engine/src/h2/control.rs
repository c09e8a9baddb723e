//! Frames of the connection: SETTINGS, PING, GOAWAY, WINDOW_UPDATE, RST_STREAM, PRIORITY (RFC 9113, section
//! 6).

use model::sample::{Failure, FailureKind};

use super::error::{ConnectionError, Result, StreamError};
use super::flow::LARGEST_WINDOW;
use super::frame::{ErrorCode, Frame, FrameHeader, HEADER_BYTES, flag, kind};
use super::stream::Phase;
use super::{Goaway, Http2};
use crate::contract::{Event, Sink};

/// How much of GOAWAY's debug data is kept, in bytes.
const DEBUG_BYTES: usize = 200;

impl Http2 {
    pub(super) fn handle_settings(&mut self, frame: Frame<'_>) -> Result {
        let Frame { header, payload } = frame;
        on_connection(header, "SETTINGS")?;
        self.count_idle()?;
        if header.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(wrong_size("an acknowledgement of SETTINGS", payload.len(), "0"));
            }
            self.settings_acknowledged = true;
            self.decoder.set_limit(self.local.header_table_bytes as usize);
            return Ok(());
        }
        self.settings_seen = true;
        let before = self.peer.stream_window_bytes;
        let encoder = &mut self.encoder;
        self.peer.apply(payload, |table| encoder.set_peer_limit(table))?;
        let change = i64::from(self.peer.stream_window_bytes) - i64::from(before);
        if change != 0 {
            self.change_windows(change)?;
        }
        FrameHeader { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }
            .write(self.output.frames());
        self.count_reply(HEADER_BYTES)
    }

    /// A new SETTINGS_INITIAL_WINDOW_SIZE moves the windows of open streams (RFC 9113, section 6.9.2).
    fn change_windows(&mut self, change: i64) -> Result {
        for stream in self.streams.iter_mut() {
            if !stream.send_window.change(change) {
                return Err(ConnectionError::flow_control(format!(
                    "SETTINGS_INITIAL_WINDOW_SIZE raises the window of stream {} above 2147483647",
                    stream.id
                )));
            }
        }
        Ok(())
    }

    pub(super) fn handle_ping(&mut self, frame: Frame<'_>) -> Result {
        let Frame { header, payload } = frame;
        on_connection(header, "PING")?;
        self.count_idle()?;
        if payload.len() != 8 {
            return Err(wrong_size("PING", payload.len(), "8"));
        }
        if header.has(flag::ACK) {
            return Ok(());
        }
        let frames = self.output.frames();
        FrameHeader { length: 8, kind: kind::PING, flags: flag::ACK, stream: 0 }.write(frames);
        frames.extend_from_slice(payload);
        self.count_reply(HEADER_BYTES + 8)
    }

    pub(super) fn handle_goaway(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        on_connection(header, "GOAWAY")?;
        self.count_idle()?;
        let Some((fixed, debug)) = payload.split_first_chunk::<8>() else {
            return Err(wrong_size("GOAWAY", payload.len(), "at least 8"));
        };
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *fixed;
        let announced = u32::from_be_bytes([l0 & 0x7f, l1, l2, l3]);
        // A later GOAWAY can only lower the last stream; failed requests stay failed.
        let last_stream =
            self.goaway.as_ref().map_or(announced, |earlier| earlier.last_stream.min(announced));
        let goaway = Goaway {
            last_stream,
            code: ErrorCode(u32::from_be_bytes([c0, c1, c2, c3])),
            debug: debug[..debug.len().min(DEBUG_BYTES)].escape_ascii().to_string(),
        };
        for stream in self.streams.take_where(|stream| stream.id > last_stream) {
            if stream.phase != Phase::Answered {
                let reason =
                    format!("{} and did not process the request, which may be sent again", goaway.reason());
                let failure = Failure::new(FailureKind::Closed, reason);
                sink(Event::Failed { request: stream.request, failure });
            }
        }
        // The peer may still send frames on the streams that failed.
        self.highest_reset = LARGEST_WINDOW;
        self.goaway = Some(goaway);
        Ok(())
    }

    pub(super) fn handle_window_update(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        self.count_idle()?;
        let Ok(bytes) = <[u8; 4]>::try_from(payload) else {
            return Err(wrong_size("WINDOW_UPDATE", payload.len(), "4"));
        };
        let increment = u32::from_be_bytes(bytes) & LARGEST_WINDOW;
        if header.stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol("WINDOW_UPDATE of the connection by 0"));
            }
            if !self.send_window.change(i64::from(increment)) {
                return Err(ConnectionError::flow_control(
                    "WINDOW_UPDATE raises the connection's window above 2147483647",
                ));
            }
            return Ok(());
        }
        self.check_begun(header.stream, "WINDOW_UPDATE")?;
        let Some(stream) = self.streams.get_mut(header.stream) else { return Ok(()) };
        if increment == 0 {
            let error = StreamError::malformed("WINDOW_UPDATE of a stream by 0");
            return self.fail_stream(header.stream, &error, sink);
        }
        if !stream.send_window.change(i64::from(increment)) {
            let error = StreamError::flow_control("WINDOW_UPDATE raises a stream's window above 2147483647");
            return self.fail_stream(header.stream, &error, sink);
        }
        Ok(())
    }

    pub(super) fn handle_reset(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        self.check_begun(header.stream, "RST_STREAM")?;
        self.count_idle()?;
        let Ok(bytes) = <[u8; 4]>::try_from(payload) else {
            return Err(wrong_size("RST_STREAM", payload.len(), "4"));
        };
        let code = ErrorCode(u32::from_be_bytes(bytes));
        let failure = || {
            let again = match code {
                ErrorCode::REFUSED_STREAM => " and did not process the request, which may be sent again",
                _ => "",
            };
            Failure::new(FailureKind::Reset, format!("the server reset the stream with {code}{again}"))
        };
        self.pushes.finish(header.stream, Some(failure()), sink);
        if let Some(stream) = self.streams.remove(header.stream).filter(|s| s.phase != Phase::Answered) {
            sink(Event::Failed { request: stream.request, failure: failure() });
        }
        Ok(())
    }

    /// Priorities concern servers; only their form is checked (RFC 9113, section 6.3).
    pub(super) fn handle_priority(&mut self, header: FrameHeader) -> Result {
        self.count_idle()?;
        if header.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY on stream 0"));
        }
        if header.length != 5 {
            return Err(wrong_size("PRIORITY", header.length as usize, "5"));
        }
        Ok(())
    }

    /// Rejects frames on idle streams (RFC 9113, section 5.1).
    pub(super) fn check_begun(&self, stream: u32, frame: &str) -> Result {
        if self.streams.was_begun(stream) || self.pushes.was_promised(stream) {
            return Ok(());
        }
        Err(ConnectionError::protocol(format!("{frame} on idle stream {stream}")))
    }
}

/// Rejects a frame of the connection on a stream.
fn on_connection(header: FrameHeader, frame: &str) -> Result {
    if header.stream == 0 {
        return Ok(());
    }
    Err(ConnectionError::protocol(format!("{frame} on stream {}, expected stream 0", header.stream)))
}

pub(super) fn wrong_size(frame: &str, found: usize, expected: &str) -> ConnectionError {
    ConnectionError::new(
        ErrorCode::FRAME_SIZE_ERROR,
        format!("{frame} with {found} bytes, expected {expected}"),
    )
}
