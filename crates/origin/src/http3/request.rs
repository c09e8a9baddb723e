//! What a client sends on a request stream: the order of its frames, their lengths, and its message
//! (RFC 9114, sections 4.1 and 7.2).

use std::collections::VecDeque;

use bytes::Bytes;
use engine::h3::error::{Code, Fault, Result};
use engine::h3::frame::{self, FrameReader, Piece};
use engine::h3::qpack::Decoder;

use super::LONGEST_HEAD_BYTES;
use super::fields::Fields;

/// A request that is being received.
#[derive(Default)]
pub(super) struct Request {
    frames: FrameReader,
    stage: Stage,
    /// An incomplete field section.
    section: Vec<u8>,
    expected_bytes: Option<u64>,
    received_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    /// Content, then optional trailers.
    Body,
    /// After the trailers: only unknown frames may follow.
    Trailers,
}

impl Request {
    /// Checks input, and appends what has a meaning to `output`: complete HEADERS frames and DATA frames.
    pub(super) fn take(&mut self, chunk: &Bytes, output: &mut VecDeque<Bytes>) -> Result {
        let mut input = &chunk[..];
        loop {
            let from = chunk.len() - input.len();
            let is_header_in_chunk = self.frames.is_between_frames();
            let Some(piece) = self.frames.next(&mut input) else { return Ok(()) };
            let to = chunk.len() - input.len();
            if piece.begins {
                self.check_begin(piece.kind, piece.payload_bytes)?;
            }
            match piece.kind {
                frame::DATA => {
                    self.take_data(&piece)?;
                    if piece.begins && !is_header_in_chunk {
                        push_frame(&piece, chunk.slice(to - piece.bytes.len()..to), output);
                    } else {
                        output.push_back(chunk.slice(from..to));
                    }
                }
                frame::HEADERS if piece.begins && piece.ends => {
                    self.take_section(piece.bytes)?;
                    push_frame(&piece, chunk.slice(to - piece.bytes.len()..to), output);
                }
                frame::HEADERS => {
                    self.section.extend_from_slice(piece.bytes);
                    if piece.ends {
                        let section = std::mem::take(&mut self.section);
                        self.take_section(&section)?;
                        push_frame(&piece, section.into(), output);
                    }
                }
                _ => {}
            }
        }
    }

    /// The stream ended.
    pub(super) fn finish(&self) -> Result {
        if !self.frames.is_between_frames() {
            return Err(Fault::connection(Code::H3_FRAME_ERROR, "the stream ends within a frame"));
        }
        match self.expected_bytes {
            Some(expected) if expected != self.received_bytes => Err(self.wrong_length(expected)),
            _ => Ok(()),
        }
    }

    fn check_begin(&self, kind: u64, payload_bytes: u64) -> Result {
        let is_allowed = match kind {
            frame::DATA => self.stage == Stage::Body,
            frame::HEADERS => self.stage != Stage::Trailers,
            frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::PUSH_PROMISE
            | frame::GOAWAY
            | frame::MAX_PUSH_ID => false,
            other => !frame::is_forbidden(other),
        };
        if !is_allowed {
            let place = match self.stage {
                Stage::Head => "before the head of the request",
                Stage::Body => "within the request",
                Stage::Trailers => "after the trailers",
            };
            let reason = format!("frame of type {kind:#x} {place} on a request stream");
            return Err(Fault::connection(Code::H3_FRAME_UNEXPECTED, reason));
        }
        if kind == frame::HEADERS && payload_bytes > LONGEST_HEAD_BYTES {
            let reason = format!("HEADERS of {payload_bytes} bytes, limit {LONGEST_HEAD_BYTES}");
            return Err(Fault::stream(Code::H3_EXCESSIVE_LOAD, reason));
        }
        Ok(())
    }

    fn take_data(&mut self, piece: &Piece<'_>) -> Result {
        self.received_bytes = self.received_bytes.saturating_add(piece.bytes.len() as u64);
        match self.expected_bytes {
            Some(expected) if self.received_bytes > expected => Err(self.wrong_length(expected)),
            _ => Ok(()),
        }
    }

    fn take_section(&mut self, section: &[u8]) -> Result {
        let mut fields = if self.stage == Stage::Head { Fields::head() } else { Fields::trailers() };
        // The origin announces no dynamic table, so every section refers to the static table only.
        Decoder::new(0, 0)
            .section(0, section, |name, value| fields.add(name, value))
            .map_err(|error| Fault::connection(Code::QPACK_DECOMPRESSION_FAILED, error.to_string()))?;
        // h3 answers a list that is too long with 431.
        let is_too_long = fields.list_bytes() as u64 > LONGEST_HEAD_BYTES;
        let finished = if is_too_long { Ok(None) } else { fields.finish() };
        let expected = finished.map_err(|reason| Fault::stream(Code::H3_MESSAGE_ERROR, reason))?;
        self.stage = match self.stage {
            Stage::Head => {
                self.expected_bytes = expected;
                Stage::Body
            }
            Stage::Body | Stage::Trailers => Stage::Trailers,
        };
        Ok(())
    }

    fn wrong_length(&self, expected: u64) -> Fault {
        let found = self.received_bytes;
        let reason = format!("content-length {expected} of a body with {found} bytes");
        Fault::stream(Code::H3_MESSAGE_ERROR, reason)
    }
}

/// Appends a frame's type, its length and the first part of its payload.
pub(super) fn push_frame(piece: &Piece<'_>, payload: Bytes, output: &mut VecDeque<Bytes>) {
    let mut header = Vec::new();
    frame::encode_header(piece.kind, piece.payload_bytes, &mut header);
    output.push_back(header.into());
    if !payload.is_empty() {
        output.push_back(payload);
    }
}

#[cfg(test)]
mod tests {
    use model::shuffle::SplitMix64;

    use super::*;

    /// POST https://a/echo with `content-length: 4`, a reserved frame, a body of 4 bytes, and trailers.
    const REQUEST: &[u8] = b"\x21\x02ab\x01\x19\x00\x00\xd4\xd7\x50\x01a\x51\x05/echo\x54\x014\x23xyz\x03abc\
        \x00\x02ab\x00\x02cd\x01\x09\x00\x00\x23xyz\x02de";

    /// The frames that h3 reads, and the code of the first fault, for input in pieces of this length.
    fn read(input: &[u8], length: usize) -> (Vec<(u64, Vec<u8>)>, Option<u64>) {
        let (mut request, mut output) = (Request::default(), VecDeque::new());
        let mut pieces = input.chunks(length);
        let taken = pieces.try_for_each(|piece| {
            let taken = request.take(&Bytes::copy_from_slice(piece), &mut output);
            assert!(request.section.len() as u64 <= LONGEST_HEAD_BYTES);
            taken
        });
        let fault = match taken.and_then(|()| request.finish()) {
            Ok(()) => None,
            Err(Fault::Connection(violation) | Fault::Stream(violation)) => Some(violation.code.0),
        };
        let (mut frames, mut reader) = (Vec::<(u64, Vec<u8>)>::new(), FrameReader::default());
        for bytes in output {
            let mut bytes = &bytes[..];
            while let Some(piece) = reader.next(&mut bytes) {
                if piece.begins {
                    frames.push((piece.kind, Vec::new()));
                }
                frames.last_mut().unwrap().1.extend_from_slice(piece.bytes);
            }
        }
        (frames, fault)
    }

    #[test]
    fn reserved_frames_are_dropped_and_not_kept() {
        let (frames, fault) = read(REQUEST, REQUEST.len());
        assert_eq!(fault, None);
        let kinds: Vec<u64> = frames.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [frame::HEADERS, frame::DATA, frame::DATA, frame::HEADERS]);
        let mut output = VecDeque::new();
        let mut request = Request::default();
        // A reserved frame of 2^30 - 1 bytes.
        request.take(&Bytes::from_static(b"\x21\xbf\xff\xff\xff"), &mut output).unwrap();
        for _ in 0..1_000 {
            request.take(&Bytes::from_static(&[7; 4_096]), &mut output).unwrap();
        }
        assert!(output.is_empty() && request.section.is_empty());
    }

    #[test]
    fn any_bytes_mean_the_same_in_any_pieces() {
        for seed in 0..20_000 {
            let mut random = SplitMix64::new(seed);
            let mut below = |limit: usize| usize::try_from(random.next_below(limit as u64)).unwrap();
            let mut input = REQUEST.to_vec();
            for _ in 0..below(4) {
                let at = below(input.len());
                match below(3) {
                    0 => input[at] = u8::try_from(below(256)).unwrap(),
                    1 => drop(input.remove(at)),
                    _ => input.insert(at, u8::try_from(below(256)).unwrap()),
                }
            }
            let (frames, fault) = read(&input, input.len());
            let (cut_frames, cut_fault) = read(&input, 1 + below(9));
            assert_eq!(fault, cut_fault, "seed {seed}");
            // Where the request breaks a rule, how much was passed on before depends on the pieces.
            assert!(fault.is_some() || frames == cut_frames, "seed {seed}");
        }
    }
}
