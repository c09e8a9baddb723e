//! Response bodies (RFC 9112, sections 6 and 7).

use std::ops::Range;

use memchr::memchr;
use model::sample::{Failure, FailureKind};

use super::head::{self, Framing};
use super::{Limits, protocol};

/// A body that is being received.
#[derive(Debug)]
pub struct Body {
    part: Part,
    received: u64,
    /// An incomplete line of a chunk or trailer.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Length { left: u64 },
    UntilClose,
    ChunkSize,
    ChunkData { left: u64 },
    ChunkEnd,
    Trailers { bytes: usize, fields: usize },
}

/// The result of a step; ranges refer to its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Framing only.
    Nothing,
    /// A piece of the body.
    Data(Range<usize>),
    /// The last piece.
    LastData(Range<usize>),
    /// The end, after all pieces.
    End,
}

/// The limit of a chunk's line with its extensions, in bytes.
const CHUNK_LINE_BYTES: usize = 4096;

impl Body {
    /// A body with this framing; `None` if it is empty.
    pub fn new(framing: Framing) -> Option<Self> {
        let part = match framing {
            Framing::None | Framing::Length(0) => return None,
            Framing::Length(left) => Part::Length { left },
            Framing::Chunked => Part::ChunkSize,
            Framing::UntilClose => Part::UntilClose,
        };
        Some(Body { part, received: 0, line: Vec::new() })
    }

    /// The number of next bytes that are only body.
    pub fn skippable_bytes(&self) -> u64 {
        match self.part {
            Part::Length { left } | Part::ChunkData { left } => left,
            Part::UntilClose => u64::MAX,
            Part::ChunkSize | Part::ChunkEnd | Part::Trailers { .. } => 0,
        }
    }

    /// Counts `length` bytes as received, at most [`Body::skippable_bytes`]; returns whether these were the
    /// last.
    #[inline]
    pub fn skip(&mut self, length: u64) -> bool {
        self.received += length;
        match &mut self.part {
            Part::Length { left } => {
                *left = left.saturating_sub(length);
                *left == 0
            }
            Part::ChunkData { left } => {
                *left = left.saturating_sub(length);
                if *left == 0 {
                    self.part = Part::ChunkEnd;
                }
                false
            }
            Part::UntilClose | Part::ChunkSize | Part::ChunkEnd | Part::Trailers { .. } => false,
        }
    }

    /// Whether the stream's end is the body's end.
    pub fn ends_with_the_stream(&self) -> bool {
        self.part == Part::UntilClose
    }

    /// The position in the body, as text after "closed the connection".
    pub fn position(&self) -> String {
        match self.part {
            Part::Length { left } => {
                format!("after {} of {} body bytes", self.received, self.received.saturating_add(left))
            }
            _ => format!("after {} body bytes and before the last chunk's end", self.received),
        }
    }

    /// Takes one step through `bytes`, which is not empty; returns the number of used bytes, and the result.
    ///
    /// # Errors
    /// The framing is invalid, or a limit is exceeded.
    pub fn step(&mut self, bytes: &[u8], limits: &Limits) -> Result<(usize, Piece), Failure> {
        match self.part {
            Part::UntilClose => {
                self.received += bytes.len() as u64;
                Ok((bytes.len(), Piece::Data(0..bytes.len())))
            }
            Part::Length { left } | Part::ChunkData { left } => {
                let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let is_last = self.skip(taken as u64);
                Ok((taken, if is_last { Piece::LastData(0..taken) } else { Piece::Data(0..taken) }))
            }
            Part::ChunkSize => self.line_step(bytes, CHUNK_LINE_BYTES, |body, line| {
                body.part = match chunk_size(line)? {
                    0 => Part::Trailers { bytes: 0, fields: 0 },
                    left => Part::ChunkData { left },
                };
                Ok(Piece::Nothing)
            }),
            Part::ChunkEnd => self.line_step(bytes, 2, |body, line| {
                if line != b"\r\n" {
                    return Err(protocol("a chunk's data is not followed by CR LF"));
                }
                body.part = Part::ChunkSize;
                Ok(Piece::Nothing)
            }),
            Part::Trailers { bytes: before, fields } => {
                self.line_step(bytes, limits.head_bytes, |body, line| {
                    if line == b"\r\n" || line == b"\n" {
                        return Ok(Piece::End);
                    }
                    let (before, fields) = (before + line.len(), fields + 1);
                    if before > limits.head_bytes || fields > limits.fields {
                        return Err(head::too_large(limits));
                    }
                    head::check_trailer(line)?;
                    body.part = Part::Trailers { bytes: before, fields };
                    Ok(Piece::Nothing)
                })
            }
        }
    }

    /// Reads up to a line feed and passes the line with its end to `then`; buffers an incomplete line.
    fn line_step(
        &mut self,
        bytes: &[u8],
        limit: usize,
        then: impl FnOnce(&mut Self, &[u8]) -> Result<Piece, Failure>,
    ) -> Result<(usize, Piece), Failure> {
        let end = memchr(b'\n', bytes).map(|position| position + 1);
        if self.line.len() + end.unwrap_or(bytes.len()) > limit {
            return Err(match self.part {
                Part::ChunkEnd => protocol("a chunk's data is not followed by CR LF"),
                _ => Failure::new(
                    FailureKind::Limit,
                    format!("a chunk's line or a trailer is longer than {limit} bytes"),
                ),
            });
        }
        let Some(end) = end else {
            self.line.extend_from_slice(bytes);
            return Ok((bytes.len(), Piece::Nothing));
        };
        if self.line.is_empty() {
            return Ok((end, then(self, &bytes[..end])?));
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(&bytes[..end]);
        let piece = then(self, &line)?;
        line.clear();
        self.line = line;
        Ok((end, piece))
    }
}

/// The size in a chunk's line (RFC 9112, section 7.1); extensions are skipped. CR LF is required: with a lone
/// LF, attackers made two implementations see different chunks.
fn chunk_size(line: &[u8]) -> Result<u64, Failure> {
    let bad = || protocol(format!("a chunk's line \"{}\"; expected a size and CR LF", shown(line)));
    let text = line.strip_suffix(b"\r\n").ok_or_else(bad)?;
    if text.contains(&b'\r') {
        return Err(bad());
    }
    let digits = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let significant =
        number.iter().position(|&digit| digit != b'0').map_or(&number[..0], |first| &number[first..]);
    if number.is_empty() || significant.len() > 15 {
        return Err(bad());
    }
    if !matches!(rest.trim_ascii_start().first(), None | Some(b';')) {
        return Err(bad());
    }
    let digit = |byte: u8| u64::from(char::from(byte).to_digit(16).unwrap_or(0));
    Ok(significant.iter().fold(0, |size, &byte| size << 4 | digit(byte)))
}

fn shown(line: &[u8]) -> String {
    line[..line.len().min(32)].escape_ascii().to_string()
}
