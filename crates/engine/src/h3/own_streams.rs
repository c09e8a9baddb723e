//! Our own unidirectional streams: control and QPACK (RFC 9114, section 6.2; RFC 9204, section 4.2).

use quinn_proto::{Dir, StreamId};

use super::qpack::{Decoder, Encoder};
use super::response::FIELD_SECTION_LIMIT_BYTES;
use super::settings::Settings;
use super::stream_kind::{CONTROL, QPACK_DECODER, QPACK_ENCODER};
use crate::quic::Quic;

/// The streams of QPACK; the control stream sends only SETTINGS.
#[derive(Debug, Default)]
pub(super) struct OwnStreams {
    encoder: Outbox,
    decoder: Outbox,
}

/// A stream and its output that waits for flow control.
#[derive(Debug, Default)]
struct Outbox {
    stream: Option<StreamId>,
    unsent: Vec<u8>,
}

impl OwnStreams {
    /// Opens all; returns whether the server's limit allows the control stream.
    pub(super) fn open(&mut self, quic: &mut Quic, (table_bytes, blocked_streams): (u32, u16)) -> bool {
        let mut control = vec![CONTROL];
        let settings = Settings {
            qpack_table_bytes: u64::from(table_bytes),
            qpack_blocked_streams: if table_bytes > 0 { u64::from(blocked_streams) } else { 0 },
            max_field_section_bytes: Some(FIELD_SECTION_LIMIT_BYTES as u64),
        };
        settings.encode(&mut control);
        if open(quic, &control).is_none() {
            return false;
        }
        // RFC 9204, section 4.2 makes these optional: without a dynamic table they are idle.
        self.encoder = Outbox { stream: open(quic, &[QPACK_ENCODER]), unsent: Vec::new() };
        self.decoder = Outbox { stream: open(quic, &[QPACK_DECODER]), unsent: Vec::new() };
        true
    }

    /// Sends QPACK instructions as far as flow control allows; the rest waits, within its limit.
    pub(super) fn flush(&mut self, quic: &mut Quic, decoder: &mut Decoder, encoder: &mut Encoder) {
        self.decoder.write(quic, |unsent| decoder.poll_feedback(unsent));
        self.encoder.write(quic, |unsent| encoder.poll_instructions(unsent));
    }
}

impl Outbox {
    fn write(&mut self, quic: &mut Quic, more: impl FnOnce(&mut Vec<u8>)) {
        let Some(stream) = self.stream else { return };
        if self.unsent.is_empty() {
            more(&mut self.unsent);
        }
        let mut sent = 0;
        while sent < self.unsent.len() {
            match quic.connection.send_stream(stream).write(&self.unsent[sent..]) {
                Ok(bytes) => sent += bytes,
                // QUIC reports `Writable` or `Stopped` when that changes.
                Err(_) => break,
            }
        }
        self.unsent.drain(..sent);
    }
}

/// Opens a stream and sends `bytes` on it.
fn open(quic: &mut Quic, bytes: &[u8]) -> Option<StreamId> {
    let id = quic.connection.streams().open(Dir::Uni)?;
    // A window that is too small for these bytes is too small for HTTP/3.
    let written = quic.connection.send_stream(id).write(bytes).ok();
    (written == Some(bytes.len())).then_some(id)
}
