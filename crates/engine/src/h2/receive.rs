//! Splits the input into frames (RFC 9113, section 4), wherever the input is cut.

use model::sample::FailureKind;

use super::Http2;
use super::error::{ConnectionError, Result};
use super::frame::{ErrorCode, Frame, FrameHeader, HEADER_BYTES, flag, kind};
use crate::contract::Sink;

/// The position in the input, and an incomplete part of it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) reading: Reading,
    /// An incomplete frame header or payload; at most SETTINGS_MAX_FRAME_SIZE bytes.
    partial: Vec<u8>,
}

/// The meaning of the next bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Reading {
    /// A frame header.
    #[default]
    Header,
    /// A payload that is handled when it is complete.
    Payload(FrameHeader),
    /// DATA, passed on in pieces.
    Data(DataFrame),
    /// This number of ignored bytes.
    Skip(u32),
}

/// A DATA frame that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFrame {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    /// The next byte is the length of the padding.
    pub(super) padding_due: bool,
    /// Bytes of data left; with `padding_due`, of the whole payload.
    pub(super) left: u32,
    /// Bytes of padding left.
    pub(super) padding: u32,
}

impl Http2 {
    /// Takes one step through `bytes`, which is not empty; returns the rest.
    pub(super) fn step<'a>(&mut self, bytes: &'a [u8], sink: &mut Sink<'_>) -> Result<&'a [u8]> {
        match self.reader.reading {
            Reading::Header => {
                let Some((header, rest)) = self.read_header(bytes) else { return Ok(&[]) };
                self.begin_frame(&header, sink)?;
                Ok(rest)
            }
            Reading::Payload(header) => self.payload_step(header, bytes, sink),
            Reading::Data(frame) => self.data_step(frame, bytes, sink),
            Reading::Skip(left) => {
                let taken = bytes.len().min(left as usize);
                let left = left - u32::try_from(taken).unwrap_or(left);
                self.reader.reading = if left == 0 { Reading::Header } else { Reading::Skip(left) };
                Ok(&bytes[taken..])
            }
        }
    }

    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> Option<([u8; HEADER_BYTES], &'a [u8])> {
        let partial = &mut self.reader.partial;
        if partial.is_empty()
            && let Some((header, rest)) = bytes.split_first_chunk()
        {
            return Some((*header, rest));
        }
        let taken = bytes.len().min(HEADER_BYTES - partial.len());
        partial.extend_from_slice(&bytes[..taken]);
        let header = *partial.first_chunk()?;
        partial.clear();
        Some((header, &bytes[taken..]))
    }

    fn payload_step<'a>(
        &mut self,
        header: FrameHeader,
        bytes: &'a [u8],
        sink: &mut Sink<'_>,
    ) -> Result<&'a [u8]> {
        let length = header.length as usize;
        if self.reader.partial.is_empty() && bytes.len() >= length {
            let (payload, rest) = bytes.split_at(length);
            self.reader.reading = Reading::Header;
            self.handle_frame(Frame { header, payload }, sink)?;
            return Ok(rest);
        }
        let taken = bytes.len().min(length - self.reader.partial.len());
        self.reader.partial.extend_from_slice(&bytes[..taken]);
        if self.reader.partial.len() == length {
            let mut payload = std::mem::take(&mut self.reader.partial);
            self.reader.reading = Reading::Header;
            self.handle_frame(Frame { header, payload: &payload }, sink)?;
            payload.clear();
            self.reader.partial = payload;
        }
        Ok(&bytes[taken..])
    }

    /// Checks a frame header and chooses how to read the payload.
    fn begin_frame(&mut self, bytes: &[u8; HEADER_BYTES], sink: &mut Sink<'_>) -> Result {
        let header = FrameHeader::parse(bytes);
        if !self.settings_seen {
            check_first(bytes, header)?;
        }
        if header.length > self.local.max_frame_bytes {
            return Err(ConnectionError::new(
                ErrorCode::FRAME_SIZE_ERROR,
                format!(
                    "a frame of {} bytes, but SETTINGS_MAX_FRAME_SIZE is {}",
                    header.length, self.local.max_frame_bytes
                ),
            ));
        }
        let expected = self.block.as_ref().map(|block| block.stream());
        if let Some(stream) = expected
            && (header.kind != kind::CONTINUATION || header.stream != stream)
        {
            return Err(ConnectionError::protocol(format!(
                "a frame of type {} on stream {} inside the header block of stream {stream}",
                header.kind, header.stream
            )));
        }
        match header.kind {
            kind::DATA => self.begin_data(header, sink),
            kind::HEADERS..=kind::CONTINUATION if header.length == 0 => {
                self.handle_frame(Frame { header, payload: &[] }, sink)
            }
            kind::HEADERS..=kind::CONTINUATION => {
                self.reader.reading = Reading::Payload(header);
                Ok(())
            }
            _ => {
                self.skip(header.length);
                self.count_idle()
            }
        }
    }

    /// Skips `length` bytes.
    pub(super) fn skip(&mut self, length: u32) {
        self.reader.reading = if length == 0 { Reading::Header } else { Reading::Skip(length) };
    }

    /// Handles a complete frame.
    fn handle_frame(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        match frame.header.kind {
            kind::HEADERS => self.handle_headers(frame, sink),
            kind::CONTINUATION => self.handle_continuation(frame, sink),
            kind::PRIORITY => self.handle_priority(frame.header),
            kind::RST_STREAM => self.handle_reset(frame, sink),
            kind::SETTINGS => self.handle_settings(frame),
            kind::PUSH_PROMISE => self.handle_push_promise(frame, sink),
            kind::PING => self.handle_ping(frame),
            kind::GOAWAY => self.handle_goaway(frame, sink),
            kind::WINDOW_UPDATE => self.handle_window_update(frame, sink),
            _ => Ok(()),
        }
    }

    /// Counts a frame without progress; too many consecutive ones are an error.
    pub(super) fn count_idle(&mut self) -> Result {
        self.idle_frames += 1;
        let limit = self.limits.idle_frames;
        if self.idle_frames <= limit {
            return Ok(());
        }
        Err(ConnectionError::limit(format!("more than {limit} consecutive frames without progress")))
    }
}

/// The first frame must be SETTINGS (RFC 9113, section 3.4); an HTTP/1 response is recognised.
fn check_first(bytes: &[u8; HEADER_BYTES], header: FrameHeader) -> Result {
    if bytes.starts_with(b"HTTP/1.") {
        return Err(ConnectionError {
            code: ErrorCode::PROTOCOL_ERROR,
            kind: FailureKind::WrongVersion,
            reason: "the server answers in HTTP/1 where HTTP/2 was asked for".to_owned(),
        });
    }
    if header.kind != kind::SETTINGS || header.has(flag::ACK) {
        let found = header.kind;
        let reason = format!("the server's first frame has type {found}; expected SETTINGS");
        return Err(ConnectionError::protocol(reason));
    }
    Ok(())
}
