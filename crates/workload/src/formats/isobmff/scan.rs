//! Finds the boxes of a file without reading its media: the headers of all boxes at the top, and the content
//! of those that describe the others.

use model::media::ByteRange;

use super::super::error::{FormatError, Place};
use super::boxes::{BoxHeader, FourCc, IsoBox, LONGEST_HEADER_BYTES};

/// The content of all boxes that is read.
const MOST_CONTENT_BYTES: u64 = 64 << 20;
/// The most boxes at the top of a file: a fragment has up to five.
const MOST_BOXES: usize = 1_000_000;
/// Boxes that describe others.
const DESCRIBING: [&[u8; 4]; 7] = [b"moov", b"sidx", b"moof", b"abst", b"afra", b"mfra", b"ftyp"];

/// A box at the top of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopBox {
    /// The type.
    pub kind: FourCc,
    /// Where it begins.
    pub start: u64,
    /// Its length, with its header.
    pub size: u64,
    /// The length of its header.
    pub header_bytes: u8,
    /// Its content, if it describes others.
    pub body: Vec<u8>,
}

impl TopBox {
    /// The box as it is in memory; empty if its content was not read.
    pub fn as_box(&self) -> IsoBox<'_> {
        let body_start = self.start.saturating_add(self.header_bytes.into());
        IsoBox { kind: self.kind, start: self.start, body: &self.body, body_start }
    }

    /// Where it ends.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// A scan in progress. Its owner reads the bytes that [`Scan::poll_read`] asks for, such as with `pread`, and
/// gives them to [`Scan::handle_bytes`], until it asks for none.
#[derive(Clone, Debug)]
pub struct Scan {
    file_bytes: u64,
    at: u64,
    /// The box whose content is expected next.
    current: Option<TopBox>,
    content_bytes: u64,
    found: Vec<TopBox>,
}

impl Scan {
    /// The scan of a file of this length.
    pub fn new(file_bytes: u64) -> Scan {
        Scan { file_bytes, at: 0, current: None, content_bytes: 0, found: Vec::new() }
    }

    /// The bytes to read next; `None` at the end of the file.
    pub fn poll_read(&self) -> Option<ByteRange> {
        let (first, length) = match &self.current {
            Some(current) => {
                let first = current.start.saturating_add(current.header_bytes.into());
                (first, current.end().saturating_sub(first))
            }
            None => (self.at, self.file_bytes.saturating_sub(self.at).min(LONGEST_HEADER_BYTES as u64)),
        };
        ByteRange::of_length(first, length)
    }

    /// Takes the bytes of [`Scan::poll_read`].
    ///
    /// # Errors
    /// A box is damaged or cut off, or there are too many.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if let Some(mut current) = self.current.take() {
            current.body = bytes.to_vec();
            self.found.push(current);
            return Ok(());
        }
        let start = self.at;
        let fault = |problem: String| Err(FormatError::at(Place::Byte(start), problem));
        let left = self.file_bytes.saturating_sub(start);
        let Some(header) = BoxHeader::parse(bytes, start)? else {
            return fault("the header of a box is cut off".to_owned());
        };
        let BoxHeader { kind, header_bytes, size } = header;
        let size = size.unwrap_or(left);
        if size > left {
            return fault(format!("the box `{kind}` of {size} bytes exceeds the file by {}", size - left));
        }
        if self.found.len() >= MOST_BOXES {
            return fault(format!("more than {MOST_BOXES} boxes"));
        }
        let found = TopBox { kind, start, size, header_bytes, body: Vec::new() };
        self.at = found.end();
        if !DESCRIBING.iter().any(|known| **known == kind.0) || size == u64::from(header_bytes) {
            self.found.push(found);
        } else {
            self.content_bytes = self.content_bytes.saturating_add(size);
            if self.content_bytes > MOST_CONTENT_BYTES {
                return fault(format!("the boxes until this `{kind}` have more than 64 MiB of indexes"));
            }
            self.current = Some(found);
        }
        Ok(())
    }

    /// The boxes that were found.
    pub fn finish(self) -> Vec<TopBox> {
        self.found
    }
}

/// The boxes at the top of a file in memory.
///
/// # Errors
/// As [`Scan::handle_bytes`].
pub fn scan(bytes: &[u8]) -> Result<Vec<TopBox>, FormatError> {
    let mut scan = Scan::new(bytes.len() as u64);
    while let Some(range) = scan.poll_read() {
        let end = usize::try_from(range.last).unwrap_or(usize::MAX).saturating_add(1).min(bytes.len());
        let start = usize::try_from(range.first).unwrap_or(usize::MAX).min(end);
        scan.handle_bytes(bytes.get(start..end).unwrap_or_default())?;
    }
    Ok(scan.finish())
}
