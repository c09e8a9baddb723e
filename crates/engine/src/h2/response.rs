//! Frames of a response: HEADERS, CONTINUATION, DATA (RFC 9113, sections 6.1, 6.2, 6.10 and 8.1).

use super::Http2;
use super::control::wrong_size;
use super::error::{ConnectionError, Result, StreamError};
use super::frame::{ErrorCode, Frame, FrameHeader, flag};
use super::receive::{DataFrame, Reading};
use super::settings::DEFAULT_WINDOW;
use super::stream::{Phase, Section};
use crate::contract::{Event, Sink};
use crate::field::FieldSection;

/// An incomplete header block.
#[derive(Debug)]
pub(super) struct Block {
    stream: u32,
    /// The stream that PUSH_PROMISE announces.
    promised: Option<u32>,
    end_stream: bool,
    wire: u32,
    frames: u32,
    bytes: Vec<u8>,
}

/// The last header block, if an equal one decodes to equal fields.
#[derive(Debug, Default)]
pub(super) struct KnownBlock {
    validity: Validity,
    block: Vec<u8>,
    fields: FieldSection,
}

/// How long an equal block decodes to equal fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Validity {
    /// Never: it must be decoded each time.
    #[default]
    Never,
    /// While the dynamic table is unchanged: the decoder's generation.
    While(u64),
    /// While the decoder can repeat the block's insertions: the block's number.
    Repeatable(u64),
}

/// The longest block that is remembered.
const KNOWN_BYTES: usize = 1024;

impl Block {
    pub(super) fn stream(&self) -> u32 {
        self.stream
    }
}

impl Http2 {
    pub(super) fn handle_headers(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        self.check_begun(header.stream, "HEADERS")?;
        let fragment = fragment(header, payload)?;
        self.begin_block(header, None, fragment, header.wire_bytes(), sink)
    }

    /// Starts a header block, and handles it if it is complete.
    pub(super) fn begin_block(
        &mut self,
        header: FrameHeader,
        promised: Option<u32>,
        fragment: &[u8],
        wire: u32,
        sink: &mut Sink<'_>,
    ) -> Result {
        let stream = header.stream;
        let end_stream = header.has(flag::END_STREAM);
        match (header.has(flag::END_HEADERS), promised) {
            (true, None) => self.handle_block(stream, end_stream, fragment, wire, sink),
            (true, Some(promised)) => self.handle_promise(stream, promised, fragment, sink),
            (false, _) => {
                let bytes = fragment.to_vec();
                self.block = Some(Block { stream, promised, end_stream, wire, frames: 1, bytes });
                Ok(())
            }
        }
    }

    pub(super) fn handle_continuation(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        let Some(block) = &mut self.block else {
            return Err(ConnectionError::protocol("CONTINUATION outside a header block"));
        };
        block.frames += 1;
        let limits = &self.limits;
        if block.frames > limits.header_block_frames
            || block.bytes.len() + payload.len() > limits.header_block_bytes
        {
            return Err(ConnectionError::limit(format!(
                "a header block of more than {} frames or {} bytes",
                limits.header_block_frames, limits.header_block_bytes
            )));
        }
        block.wire = block.wire.saturating_add(header.wire_bytes());
        block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        match self.block.take() {
            Some(Block { stream, promised: Some(promised), bytes, .. }) => {
                self.handle_promise(stream, promised, &bytes, sink)
            }
            Some(block) => self.handle_block(block.stream, block.end_stream, &block.bytes, block.wire, sink),
            None => Ok(()),
        }
    }

    /// Handles a complete header block. It is always decoded, because it may change the dynamic table.
    fn handle_block(
        &mut self,
        id: u32,
        end_stream: bool,
        block: &[u8],
        wire: u32,
        sink: &mut Sink<'_>,
    ) -> Result {
        let fields = self.decode_block(block)?;
        if id.is_multiple_of(2) {
            return self.handle_pushed_fields(id, end_stream, &fields, wire, sink);
        }
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_forgotten(id, "HEADERS")?;
            return self.count_idle();
        };
        if stream.phase == Phase::Answered {
            return Err(after_end(id, "HEADERS"));
        }
        self.idle_frames = 0;
        let request = stream.request;
        let limit = self.limits.header_list_bytes as usize;
        match stream.take_fields(&fields, end_stream, wire, limit) {
            Err(error) => return self.fail_stream(id, &error, sink),
            Ok(Section::Informational(status)) => {
                if stream.informational > self.limits.informational {
                    let noun = "informational (1xx) responses";
                    let error = StreamError::informational(self.limits.informational, noun);
                    return self.fail_stream(id, &error, sink);
                }
                sink(Event::Informational { request, status, links: &fields.links });
            }
            Ok(Section::Head(head)) => sink(Event::Head { request, head }),
            Ok(Section::Trailers) => {}
        }
        if end_stream { self.finish(id, sink) } else { Ok(()) }
    }

    /// Decodes a block. The last one is remembered, because a server under load repeats its header blocks.
    #[inline]
    fn decode_block(&mut self, block: &[u8]) -> Result<FieldSection> {
        let generation = self.decoder.generation();
        if self.known.block == block {
            let is_valid = match self.known.validity {
                Validity::Never => false,
                Validity::While(then) => then == generation,
                Validity::Repeatable(number) => self.decoder.repeat(number),
            };
            if is_valid {
                return Ok(self.known.fields.clone());
            }
        }
        let mut fields = FieldSection::default();
        self.known.validity = Validity::Never;
        self.decoder
            .decode(block, |field| fields.add(field.name, field.value, field.meaning))
            .map_err(|error| ConnectionError::new(ErrorCode::COMPRESSION_ERROR, error.to_string()))?;
        if block.len() <= KNOWN_BYTES {
            self.known.block.clear();
            self.known.block.extend_from_slice(block);
            self.known.fields.clone_from(&fields);
            self.known.validity = match self.decoder.repeatable() {
                Some(number) => Validity::Repeatable(number),
                None if self.decoder.generation() == generation => Validity::While(generation),
                None => Validity::Never,
            };
        }
        Ok(fields)
    }

    /// The response ends.
    fn finish(&mut self, id: u32, sink: &mut Sink<'_>) -> Result {
        if id.is_multiple_of(2) {
            return self.finish_push(id, sink);
        }
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        if let Err(error) = stream.take_end() {
            return self.fail_stream(id, &error, sink);
        }
        let request = stream.request;
        if stream.body.is_empty() {
            self.streams.remove(id);
        } else {
            // An early response: the rest of the request must still be sent (RFC 9113, section 8.1).
            stream.phase = Phase::Answered;
        }
        sink(Event::End { request });
        Ok(())
    }

    /// Handles the header of a DATA frame: flow control.
    pub(super) fn begin_data(&mut self, header: FrameHeader, sink: &mut Sink<'_>) -> Result {
        self.check_begun(header.stream, "DATA")?;
        if !self.received.take(header.length, self.connection_window) {
            return Err(ConnectionError::flow_control(format!(
                "DATA beyond the connection's window of {} bytes",
                self.connection_window
            )));
        }
        if let Some(increment) = self.received.replenish(self.connection_window) {
            super::frame::write_window_update(0, increment, self.output.frames());
        }
        let padded = header.has(flag::PADDED);
        if padded && header.length == 0 {
            return Err(wrong_size("padded DATA", 0, "at least 1"));
        }
        let window = self.stream_window();
        let Some(stream) = self.stream_mut(header.stream) else {
            self.check_forgotten(header.stream, "DATA")?;
            if header.stream.is_multiple_of(2) {
                sink(Event::PushedInVain(header.length.into()));
            }
            self.skip(header.length);
            return self.count_idle();
        };
        if stream.phase == Phase::Answered {
            return Err(after_end(header.stream, "DATA"));
        }
        if !stream.received.take(header.length, window) {
            let error =
                StreamError::flow_control(format!("DATA beyond the stream's window of {window} bytes"));
            self.skip(header.length);
            return self.fail_stream(header.stream, &error, sink);
        }
        let frame = DataFrame {
            stream: header.stream,
            end_stream: header.has(flag::END_STREAM),
            padding_due: padded,
            left: header.length,
            padding: 0,
        };
        if header.length == 0 {
            self.count_idle()?;
            if let Err(error) = stream_data(self, header.stream, 0) {
                return self.fail_stream(header.stream, &error, sink);
            }
            return self.end_data(frame, sink);
        }
        if !padded {
            return self.announce_data(frame, sink);
        }
        self.reader.reading = Reading::Data(frame);
        Ok(())
    }

    /// Checks the length of a frame's data.
    fn announce_data(&mut self, frame: DataFrame, sink: &mut Sink<'_>) -> Result {
        if frame.left > 0 {
            self.idle_frames = 0;
        } else {
            self.count_idle()?;
        }
        if let Err(error) = stream_data(self, frame.stream, u64::from(frame.left)) {
            self.skip(frame.left + frame.padding);
            return self.fail_stream(frame.stream, &error, sink);
        }
        if frame.left + frame.padding == 0 {
            return self.end_data(frame, sink);
        }
        self.reader.reading = Reading::Data(frame);
        Ok(())
    }

    /// Passes on the part of a DATA frame in `bytes`.
    pub(super) fn data_step<'a>(
        &mut self,
        mut frame: DataFrame,
        bytes: &'a [u8],
        sink: &mut Sink<'_>,
    ) -> Result<&'a [u8]> {
        if frame.padding_due {
            let Some((&padding, rest)) = bytes.split_first() else { return Ok(bytes) };
            frame.padding_due = false;
            frame.padding = u32::from(padding);
            frame.left = frame.left.checked_sub(1 + frame.padding).ok_or_else(|| padding_too_long("DATA"))?;
            self.announce_data(frame, sink)?;
            return Ok(rest);
        }
        let taken = bytes.len().min(frame.left as usize);
        let (piece, rest) = bytes.split_at(taken);
        frame.left -= u32::try_from(taken).unwrap_or(frame.left);
        if frame.stream.is_multiple_of(2) {
            self.pushes.take_body(frame.stream, piece, sink);
        } else if !piece.is_empty()
            && let Some(stream) = self.streams.get_mut(frame.stream)
        {
            sink(Event::Data { request: stream.request, bytes: piece });
        }
        let taken = rest.len().min(frame.padding as usize);
        frame.padding -= u32::try_from(taken).unwrap_or(frame.padding);
        if frame.left + frame.padding == 0 {
            self.end_data(frame, sink)?;
        } else {
            self.reader.reading = Reading::Data(frame);
        }
        Ok(&rest[taken..])
    }

    /// Ends a DATA frame: ends the stream, or updates its window.
    fn end_data(&mut self, frame: DataFrame, sink: &mut Sink<'_>) -> Result {
        self.reader.reading = Reading::Header;
        if frame.end_stream {
            return self.finish(frame.stream, sink);
        }
        let window = self.local.stream_window_bytes;
        if let Some(stream) = self.stream_mut(frame.stream)
            && let Some(increment) = stream.received.replenish(window)
        {
            super::frame::write_window_update(frame.stream, increment, self.output.frames());
        }
        Ok(())
    }

    /// The window of each stream: ours once the peer acknowledged our SETTINGS.
    fn stream_window(&self) -> u32 {
        match self.settings_acknowledged {
            true => self.local.stream_window_bytes,
            false => self.local.stream_window_bytes.max(DEFAULT_WINDOW),
        }
    }

    /// Allows frames on streams that we reset, and rejects those on streams that the peer ended.
    pub(super) fn check_forgotten(&self, id: u32, frame: &str) -> Result {
        let may_linger = match id.is_multiple_of(2) {
            true => self.pushes.may_linger(id),
            false => id <= self.highest_reset,
        };
        if may_linger { Ok(()) } else { Err(after_end(id, frame)) }
    }
}

/// Counts `length` bytes of body; a cancelled stream accepts any.
fn stream_data(connection: &mut Http2, id: u32, length: u64) -> std::result::Result<(), StreamError> {
    connection.stream_mut(id).map_or(Ok(()), |stream| stream.take_data(length))
}

fn after_end(id: u32, frame: &str) -> ConnectionError {
    ConnectionError::new(ErrorCode::STREAM_CLOSED, format!("{frame} on stream {id}, which has ended"))
}

fn padding_too_long(frame: &str) -> ConnectionError {
    ConnectionError::protocol(format!("{frame} with padding as long as its payload or longer"))
}

/// The header block in a HEADERS payload (RFC 9113, section 6.2).
fn fragment(header: FrameHeader, payload: &[u8]) -> Result<&[u8]> {
    let priority = if header.has(flag::PRIORITY) { 5 } else { 0 };
    Ok(split_padded("HEADERS", header, payload, priority)?.1)
}

/// The first `fixed` bytes of the payload of a frame that may be padded, and the part between them and the
/// padding.
pub(super) fn split_padded<'a>(
    frame: &str,
    header: FrameHeader,
    payload: &'a [u8],
    fixed: usize,
) -> Result<(&'a [u8], &'a [u8])> {
    let too_short = || wrong_size(frame, payload.len(), "more");
    let (padding, rest) = match header.has(flag::PADDED) {
        true => payload.split_first().ok_or_else(too_short)?,
        false => (&0, payload),
    };
    let (fixed, rest) = rest.split_at_checked(fixed).ok_or_else(too_short)?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or_else(|| padding_too_long(frame))?;
    Ok((fixed, &rest[..length]))
}
