//! Frames of the client protocol: a little-endian `u32` length, then that many bytes of postcard. Encoding
//! and decoding only.

use crate::assignment::ClientMessage;

/// The longest frame, its length field aside.
pub const MAX_FRAME_BYTES: usize = 16 << 20;
/// The length field.
const LENGTH_BYTES: usize = 4;

/// Why bytes are not a frame, or a message not bytes.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than the limit: a message too long to send, or bytes that are no frame at all.
    #[error("the frame has {found_bytes} bytes, above {MAX_FRAME_BYTES}; send rows in smaller portions")]
    TooLong {
        /// Its length.
        found_bytes: usize,
    },
    /// The bytes of a frame are not exactly one message.
    #[error(
        "the frame of {found_bytes} bytes is not a message of this version; use the same version of h123 on both sides"
    )]
    NotAMessage {
        /// Its length.
        found_bytes: usize,
        /// The error of postcard.
        source: Option<postcard::Error>,
    },
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame, after {found_bytes} bytes of it")]
    Truncated {
        /// What there was of it.
        found_bytes: usize,
    },
    /// The message cannot be written.
    #[error("the message cannot be encoded")]
    Encode(#[from] postcard::Error),
}

/// One message as a frame.
///
/// # Errors
/// The message is longer than [`MAX_FRAME_BYTES`].
pub fn encode(message: &ClientMessage) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; LENGTH_BYTES])?;
    let found_bytes = frame.len() - LENGTH_BYTES;
    match u32::try_from(found_bytes) {
        Ok(length) if found_bytes <= MAX_FRAME_BYTES => {
            frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
            Ok(frame)
        }
        _ => Err(FrameError::TooLong { found_bytes }),
    }
}

/// Turns bytes, in portions of any size, into messages. Holds at most one frame and the portion that
/// completed it.
///
/// Feed it once, then drain it: [`Decoder::handle_bytes`], then [`Decoder::poll_message`] until `None`.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
}

impl Decoder {
    /// Takes bytes as they come.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` until more bytes have come.
    ///
    /// # Errors
    /// The bytes are no frames of this version; nothing after them can be read.
    pub fn poll_message(&mut self) -> Result<Option<ClientMessage>, FrameError> {
        let waiting = &self.bytes[self.start..];
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let found_bytes = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if found_bytes > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong { found_bytes });
        }
        let Some(payload) = rest.get(..found_bytes) else { return Ok(None) };
        let not_a_message = |source| FrameError::NotAMessage { found_bytes, source };
        let (message, after) =
            postcard::take_from_bytes(payload).map_err(|error| not_a_message(Some(error)))?;
        if !after.is_empty() {
            return Err(not_a_message(None));
        }
        self.start += LENGTH_BYTES + found_bytes;
        Ok(Some(message))
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// A frame has begun and is not whole.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.bytes.len() - self.start {
            0 => Ok(()),
            found_bytes => Err(FrameError::Truncated { found_bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::ClientReport;
    use crate::sample::{Failure, FailureKind};

    fn messages() -> Vec<ClientMessage> {
        vec![
            ClientMessage::Hello { version: 1 },
            ClientMessage::Samples(Vec::new()),
            ClientMessage::Fault(Failure { kind: FailureKind::Tls, reason: "expired".into() }),
            ClientMessage::Done(Box::new(ClientReport {
                urls: vec!["/a".into()],
                ..ClientReport::default()
            })),
        ]
    }

    fn decode(bytes: &[u8], portion: usize) -> Result<Vec<ClientMessage>, FrameError> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for bytes in bytes.chunks(portion) {
            decoder.handle_bytes(bytes);
            while let Some(message) = decoder.poll_message()? {
                found.push(message);
            }
        }
        decoder.finish()?;
        Ok(found)
    }

    #[test]
    fn messages_round_trip_in_portions_of_any_size() {
        let bytes: Vec<u8> = messages().iter().flat_map(|message| encode(message).unwrap()).collect();
        for portion in [1, 3, 7, bytes.len()] {
            assert_eq!(decode(&bytes, portion).unwrap(), messages());
        }
    }

    #[test]
    fn each_fault_has_its_error() {
        let whole = encode(&messages()[2]).unwrap();
        let error = |bytes: &[u8]| decode(bytes, 5).unwrap_err().to_string();
        assert!(error(&whole[..whole.len() - 1]).contains("ended inside a frame"));
        assert!(error(b"usage: client [OPTIONS]").contains("send rows in smaller portions"));
        assert!(error(&[1, 0, 0, 0, 99]).contains("not a message of this version"));
        assert!(error(&[3, 0, 0, 0, 0, 1, 7]).contains("not a message of this version"));
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused() {
        let reason = "x".repeat(MAX_FRAME_BYTES);
        let message = ClientMessage::Fault(Failure { kind: FailureKind::System, reason });
        assert!(matches!(encode(&message), Err(FrameError::TooLong { .. })));
    }
}
