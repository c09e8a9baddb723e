//! What a client sends on its control stream (RFC 9114, sections 6.2.1 and 7.2).

use std::collections::VecDeque;

use bytes::Bytes;
use engine::h3::error::{Code, Violation};
use engine::h3::frame::{self, FrameReader, decode_integer};
use engine::h3::settings::Settings;

use super::request::push_frame;

/// Largest payload of a frame that has a meaning.
const LONGEST_FRAME_BYTES: u64 = 4096;

/// A control stream that is being received.
#[derive(Default)]
pub(super) struct Control {
    frames: FrameReader,
    payload: Vec<u8>,
    has_settings: bool,
    /// The largest push ID that the client allows.
    max_push_id: Option<u64>,
}

impl Control {
    /// Checks input, and appends complete frames that have a meaning to `output`.
    pub(super) fn take(&mut self, mut input: &[u8], output: &mut VecDeque<Bytes>) -> Result<(), Violation> {
        while let Some(piece) = self.frames.next(&mut input) {
            if piece.begins {
                self.check_begin(piece.kind, piece.payload_bytes)?;
            }
            if !is_known(piece.kind) {
                continue;
            }
            self.payload.extend_from_slice(piece.bytes);
            if piece.ends {
                let payload = std::mem::take(&mut self.payload);
                self.handle(piece.kind, &payload)?;
                push_frame(&piece, payload.into(), output);
            }
        }
        Ok(())
    }

    fn check_begin(&self, kind: u64, payload_bytes: u64) -> Result<(), Violation> {
        if !self.has_settings && kind != frame::SETTINGS {
            let reason = format!("the control stream starts with a frame of type {kind:#x}");
            return Err(Violation::new(Code::H3_MISSING_SETTINGS, reason));
        }
        let is_allowed = match kind {
            frame::SETTINGS => !self.has_settings,
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => false,
            other => !frame::is_forbidden(other),
        };
        if !is_allowed {
            let reason = format!("frame of type {kind:#x} on the control stream");
            return Err(Violation::new(Code::H3_FRAME_UNEXPECTED, reason));
        }
        if is_known(kind) && payload_bytes > LONGEST_FRAME_BYTES {
            let reason = format!("control frame of {payload_bytes} bytes, limit {LONGEST_FRAME_BYTES}");
            return Err(Violation::limit(reason));
        }
        Ok(())
    }

    fn handle(&mut self, kind: u64, payload: &[u8]) -> Result<(), Violation> {
        match kind {
            frame::SETTINGS => {
                Settings::decode(payload)?;
                self.has_settings = true;
            }
            // h3 checks the order of the IDs.
            frame::GOAWAY => drop(single_integer(payload)?),
            frame::MAX_PUSH_ID => {
                let id = single_integer(payload)?;
                if self.max_push_id.is_some_and(|before| id < before) {
                    return Err(Violation::new(Code::H3_ID_ERROR, "MAX_PUSH_ID below an earlier one"));
                }
                self.max_push_id = Some(id);
            }
            _ => {
                let push = single_integer(payload)?;
                let reason = format!("CANCEL_PUSH of push {push}, which was not promised");
                return Err(Violation::new(Code::H3_ID_ERROR, reason));
            }
        }
        Ok(())
    }
}

fn is_known(kind: u64) -> bool {
    matches!(kind, frame::SETTINGS | frame::GOAWAY | frame::CANCEL_PUSH | frame::MAX_PUSH_ID)
}

fn single_integer(payload: &[u8]) -> Result<u64, Violation> {
    match decode_integer(payload) {
        Some((value, length)) if length == payload.len() => Ok(value),
        _ => Err(Violation::new(Code::H3_FRAME_ERROR, "a frame whose payload is not one integer")),
    }
}
