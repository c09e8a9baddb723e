//! The structure of boxes (ISO/IEC 14496-12, section 4.2), and the fields in them.

use std::fmt;

use super::super::error::{FormatError, Place};

/// The longest header: a 64-bit size, without the extended type of `uuid`.
pub(super) const LONGEST_HEADER_BYTES: usize = 16;

/// The type of a box: four characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FourCc(pub [u8; 4]);

impl fmt::Display for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The header of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxHeader {
    /// The type.
    pub kind: FourCc,
    /// The length of the header.
    pub header_bytes: u8,
    /// The length of the whole box; `None` if it ends with the file.
    pub size: Option<u64>,
}

impl BoxHeader {
    /// Reads a header; `None` if `bytes` ends before it does. `at` is its place in the file, for errors.
    ///
    /// # Errors
    /// The box is shorter than its header.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Option<BoxHeader>, FormatError> {
        let mut fields = Fields::new(bytes, at);
        let (Ok(size), Ok(kind)) = (fields.u32(), fields.four_cc()) else { return Ok(None) };
        let (header_bytes, size) = match size {
            0 => (8, None),
            1 => match fields.u64() {
                Ok(size) => (16, Some(size)),
                Err(_) => return Ok(None),
            },
            size => (8, Some(u64::from(size))),
        };
        match size {
            Some(size) if size < u64::from(header_bytes) => {
                let problem =
                    format!("the box `{kind}` has a size of {size} bytes, less than its own header");
                Err(FormatError::at(Place::Byte(at), problem))
            }
            size => Ok(Some(BoxHeader { kind, header_bytes, size })),
        }
    }
}

/// A box in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsoBox<'a> {
    /// The type.
    pub kind: FourCc,
    /// Where it begins in the file.
    pub start: u64,
    /// The content, without the header.
    pub body: &'a [u8],
    /// Where the content begins in the file.
    pub body_start: u64,
}

impl<'a> IsoBox<'a> {
    /// The fields of its content.
    pub fn fields(&self) -> Fields<'a> {
        Fields::new(self.body, self.body_start)
    }

    /// Version, flags and the other fields of a full box.
    ///
    /// # Errors
    /// It is too short.
    pub fn full(&self) -> Result<(u8, u32, Fields<'a>), FormatError> {
        let mut fields = self.fields();
        let (version, flags) = (fields.u8()?, fields.u24()?);
        Ok((version, flags, fields))
    }

    /// A fault of this box.
    pub fn fault(&self, problem: &str) -> FormatError {
        FormatError::at(Place::Byte(self.start), format!("the box `{}` {problem}", self.kind))
    }
}

/// The boxes in `bytes`, which begin at `at` in the file.
pub fn boxes(bytes: &[u8], at: u64) -> Boxes<'_> {
    Boxes { rest: bytes, at }
}

/// Boxes one after the other; ends after the first fault.
#[derive(Clone, Debug)]
pub struct Boxes<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<IsoBox<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let next = self.read();
        if next.is_err() {
            self.rest = &[];
        }
        Some(next)
    }
}

impl<'a> Boxes<'a> {
    fn read(&mut self) -> Result<IsoBox<'a>, FormatError> {
        let start = self.at;
        let cut = |what: &str| FormatError::at(Place::Byte(start), format!("{what} is cut off"));
        let header = BoxHeader::parse(self.rest, start)?.ok_or_else(|| cut("the header of a box"))?;
        let available = self.rest.len();
        let size = header.size.map_or(Some(available), |size| usize::try_from(size).ok());
        let size = size.filter(|size| *size <= available);
        let size = size.ok_or_else(|| cut(&format!("the box `{}`", header.kind)))?;
        let (own, rest) = self.rest.split_at(size);
        let body = own.get(usize::from(header.header_bytes)..).unwrap_or_default();
        self.rest = rest;
        self.at = start.saturating_add(size as u64);
        let body_start = start.saturating_add(header.header_bytes.into());
        Ok(IsoBox { kind: header.kind, start, body, body_start })
    }
}

/// The boxes in the content of a box, until the first that is damaged.
pub fn children<'a>(parent: &IsoBox<'a>) -> impl Iterator<Item = IsoBox<'a>> + use<'a> {
    boxes(parent.body, parent.body_start).map_while(Result::ok)
}

/// The first child of this type.
pub fn child<'a>(parent: &IsoBox<'a>, kind: &[u8; 4]) -> Option<IsoBox<'a>> {
    children(parent).find(|child| child.kind.0 == *kind)
}

/// Big-endian fields one after the other.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Fields<'a> {
    /// The fields in `bytes`, which begin at `at` in the file.
    pub fn new(bytes: &'a [u8], at: u64) -> Fields<'a> {
        Fields { rest: bytes, at }
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Where the next field begins in the file.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            let problem =
                format!("{length} more bytes are expected, but {} follow in the box", self.rest.len());
            return Err(FormatError::at(Place::Byte(self.at), problem));
        };
        self.rest = rest;
        self.at = self.at.saturating_add(length as u64);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// An unsigned number of 8 bits.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// An unsigned number of 16 bits.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_be_bytes)
    }

    /// An unsigned number of 24 bits.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u24(&mut self) -> Result<u32, FormatError> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// An unsigned number of 32 bits.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_be_bytes)
    }

    /// An unsigned number of 64 bits.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of 64 bits if `is_long`, otherwise of 32.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn u32_or_u64(&mut self, is_long: bool) -> Result<u64, FormatError> {
        if is_long { self.u64() } else { self.u32().map(u64::from) }
    }

    /// The type of a box.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn four_cc(&mut self) -> Result<FourCc, FormatError> {
        self.array().map(FourCc)
    }

    /// Text that ends with a zero byte, which is consumed.
    ///
    /// # Errors
    /// No zero byte follows.
    pub fn text(&mut self) -> Result<String, FormatError> {
        let Some(length) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(FormatError::at(Place::Byte(self.at), "a text without a zero byte at its end"));
        };
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(text)
    }

    /// The next box.
    ///
    /// # Errors
    /// No complete box follows.
    pub fn next_box(&mut self) -> Result<IsoBox<'a>, FormatError> {
        let mut all = boxes(self.rest, self.at);
        match all.next() {
            Some(next) => {
                let next = next?;
                (self.rest, self.at) = (all.rest, all.at);
                Ok(next)
            }
            None => Err(FormatError::at(Place::Byte(self.at), "a box is expected, but nothing follows")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_32_and_64_bits_and_open_ones_are_read() {
        let mut bytes = vec![0, 0, 0, 10];
        bytes.extend(b"freeab\0\0\0\x01mdat\0\0\0\0\0\0\0\x13xyz\0\0\0\0mdatrest");
        let all: Result<Vec<_>, _> = boxes(&bytes, 100).collect();
        let all = all.unwrap();
        let bodies: Vec<_> = all.iter().map(|own| (own.start, own.body, own.body_start)).collect();
        assert_eq!(bodies, [(100, &b"ab"[..], 108), (110, b"xyz", 126), (129, b"rest", 137)]);
    }

    #[test]
    fn damaged_boxes_are_errors_that_name_the_byte() {
        for (bytes, expected) in [
            (
                &b"\0\0\0\x07moov"[..],
                "byte 5: the box `moov` has a size of 7 bytes, less than its own header",
            ),
            (b"\0\0\0\x09moov", "byte 5: the box `moov` is cut off"),
            (b"\0\0\0\x09mo", "byte 5: the header of a box is cut off"),
            (b"\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff", "byte 5: the box `moov` is cut off"),
            (b"\0\0\0\x01moov\0\0\0\0\0\0\0\x0f", "a size of 15 bytes"),
        ] {
            let error = boxes(bytes, 5).next().unwrap().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(boxes(bytes, 5).count(), 1);
        }
    }
}
