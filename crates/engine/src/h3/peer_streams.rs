//! The peer's unidirectional streams: control and QPACK (RFC 9114, section 6.2; RFC 9204, section 4.2).

use super::error::{Code, Violation};
use super::frame::{self, FrameReader, Piece, decode_integer};
use super::qpack::{Decoder, Encoder};
use super::settings::Settings;
use super::stream_kind::StreamKind;

/// Largest payload of a frame on the control stream that has a meaning.
const CONTROL_FRAME_LIMIT_BYTES: u64 = 4096;

/// The peer's unidirectional streams.
#[derive(Debug, Default)]
pub(super) struct PeerStreams {
    /// Streams that are read, by their id. Three at most are of a known kind, the others are stopped.
    open: Vec<(u64, StreamKind)>,
    control: Control,
}

/// What to do with a stream after its input was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Go on reading.
    Read,
    /// Ask the peer to stop: the type is unknown.
    Stop,
}

impl PeerStreams {
    /// A new stream.
    pub(super) fn opened(&mut self, id: u64) {
        self.open.push((id, StreamKind::NEW));
    }

    /// Whether `id` is one of them.
    pub(super) fn contains(&self, id: u64) -> bool {
        self.open.iter().any(|(open, _)| *open == id)
    }

    /// The smallest stream that will not be processed, by GOAWAY.
    pub(super) fn goaway(&self) -> Option<u64> {
        self.control.goaway
    }

    /// Handles input of a stream; every error is a connection error.
    pub(super) fn take(
        &mut self,
        id: u64,
        mut input: &[u8],
        decoder: &mut Decoder,
        encoder: &mut Encoder,
    ) -> Result<Verdict, Violation> {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            return Ok(Verdict::Read);
        };
        if self.open[at].1.read(&mut input) {
            self.check_new(self.open[at].1)?;
        }
        match self.open[at].1 {
            StreamKind::Incomplete { .. } => {}
            StreamKind::Control => {
                self.control.take(input)?;
                if let Some(settings) = &self.control.settings {
                    encoder.set_peer_limits(settings.qpack_table_bytes, settings.qpack_blocked_streams);
                }
            }
            StreamKind::QpackEncoder => decoder
                .handle_instructions(input)
                .map_err(|error| Violation::new(Code::QPACK_ENCODER_STREAM_ERROR, error.to_string()))?,
            StreamKind::QpackDecoder => encoder
                .handle_feedback(input)
                .map_err(|error| Violation::new(Code::QPACK_DECODER_STREAM_ERROR, error.to_string()))?,
            StreamKind::Push | StreamKind::Unknown => {
                self.open.swap_remove(at);
                return Ok(Verdict::Stop);
            }
        }
        Ok(Verdict::Read)
    }

    /// A stream ended or was reset; a critical one must not.
    pub(super) fn ended(&mut self, id: u64) -> Result<(), Violation> {
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else { return Ok(()) };
        let (_, kind) = self.open.swap_remove(at);
        if !kind.is_critical() {
            return Ok(());
        }
        let reason = format!("the end of the {kind} stream");
        Err(Violation::new(Code::H3_CLOSED_CRITICAL_STREAM, reason))
    }

    /// Checks the type of a stream that has just become known.
    fn check_new(&self, kind: StreamKind) -> Result<(), Violation> {
        if kind == StreamKind::Push {
            let reason = "a push stream although push is disabled";
            return Err(Violation::new(Code::H3_ID_ERROR, reason));
        }
        if kind.is_critical() && self.open.iter().filter(|(_, other)| *other == kind).count() > 1 {
            let reason = format!("a second {kind} stream");
            return Err(Violation::new(Code::H3_STREAM_CREATION_ERROR, reason));
        }
        Ok(())
    }
}

/// The control stream.
#[derive(Debug, Default)]
struct Control {
    frames: FrameReader,
    payload: Vec<u8>,
    settings: Option<Settings>,
    goaway: Option<u64>,
}

impl Control {
    fn take(&mut self, mut input: &[u8]) -> Result<(), Violation> {
        while let Some(piece) = self.frames.next(&mut input) {
            if piece.begins {
                self.check_sequence(piece.kind)?;
            }
            if !matches!(piece.kind, frame::SETTINGS | frame::GOAWAY | frame::CANCEL_PUSH) {
                continue;
            }
            if piece.payload_bytes > CONTROL_FRAME_LIMIT_BYTES {
                let found = piece.payload_bytes;
                return Err(Violation::limit(format!(
                    "a control frame of {found} bytes, limit {CONTROL_FRAME_LIMIT_BYTES}"
                )));
            }
            self.payload.extend_from_slice(piece.bytes);
            if piece.ends {
                let payload = std::mem::take(&mut self.payload);
                self.handle(&piece, &payload)?;
                self.payload = payload;
                self.payload.clear();
            }
        }
        Ok(())
    }

    fn check_sequence(&self, kind: u64) -> Result<(), Violation> {
        if self.settings.is_none() && kind != frame::SETTINGS {
            let reason =
                format!("the first frame on the control stream has type {kind:#x}, expected SETTINGS");
            return Err(Violation::new(Code::H3_MISSING_SETTINGS, reason));
        }
        let allowed = match kind {
            frame::SETTINGS => self.settings.is_none(),
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE | frame::MAX_PUSH_ID => false,
            other => !frame::is_forbidden(other),
        };
        if allowed {
            return Ok(());
        }
        let reason = format!("a frame of type {kind:#x} on the control stream");
        Err(Violation::new(Code::H3_FRAME_UNEXPECTED, reason))
    }

    fn handle(&mut self, piece: &Piece<'_>, payload: &[u8]) -> Result<(), Violation> {
        match piece.kind {
            frame::SETTINGS => self.settings = Some(Settings::decode(payload)?),
            frame::GOAWAY => self.handle_goaway(single_integer(payload)?)?,
            _ => {
                let push = single_integer(payload)?;
                let reason = format!("CANCEL_PUSH of push {push} although push is disabled");
                return Err(Violation::new(Code::H3_ID_ERROR, reason));
            }
        }
        Ok(())
    }

    fn handle_goaway(&mut self, id: u64) -> Result<(), Violation> {
        if !id.is_multiple_of(4) {
            let reason = format!("GOAWAY with stream {id}, which is not a request stream");
            return Err(Violation::new(Code::H3_ID_ERROR, reason));
        }
        if let Some(before) = self.goaway
            && id > before
        {
            let reason = format!("GOAWAY with stream {id}, above the earlier {before}");
            return Err(Violation::new(Code::H3_ID_ERROR, reason));
        }
        self.goaway = Some(id);
        Ok(())
    }
}

fn single_integer(payload: &[u8]) -> Result<u64, Violation> {
    match decode_integer(payload) {
        Some((value, length)) if length == payload.len() => Ok(value),
        _ => Err(Violation::new(Code::H3_FRAME_ERROR, "a frame whose payload is not one integer")),
    }
}
