//! FLV files: where the fragments of HDS begin in them (Adobe Flash Video File Format Specification 10.1,
//! annex E).

use model::media::ByteRange;

use super::error::FormatError;

/// The length of a file's header with the field after it.
pub const FILE_HEADER_BYTES: u64 = 9 + 4;
/// The length of a tag's header with the first bytes of its body, which tell key frames and decoder settings.
pub const TAG_HEAD_BYTES: usize = 11 + 2;
/// The length of a tag's header, and of the field after its body.
const AROUND_BODY_BYTES: u64 = 11 + 4;

const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;
const AAC: u8 = 10;
const AVC: u8 = 7;
const KEY_FRAME: u8 = 1;
const END_OF_SEQUENCE: u8 = 2;

/// A fragment: the tags from a key frame to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlvFragment {
    /// The time of its key frame, in milliseconds.
    pub start_ms: u64,
    /// Its tags in the file.
    pub range: ByteRange,
}

/// Finds the fragments of a file, which the caller reads tag by tag.
#[derive(Clone, Debug)]
pub struct FlvScan {
    offset: u64,
    /// The places of the decoders' settings, which every fragment needs.
    settings: Vec<ByteRange>,
    fragments: Vec<FlvFragment>,
}

impl Default for FlvScan {
    fn default() -> FlvScan {
        FlvScan { offset: FILE_HEADER_BYTES, settings: Vec::new(), fragments: Vec::new() }
    }
}

impl FlvScan {
    /// Where the next tag begins.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the first bytes of the next tag. A short tag may end before the last of them.
    ///
    /// # Errors
    /// The kind of the tag is unknown, which is damage or encryption.
    pub fn handle_tag(&mut self, head: &[u8; TAG_HEAD_BYTES]) -> Result<(), FormatError> {
        let [kind, size @ ..] = head;
        let offset = self.offset;
        let fault = || FormatError::new(format!("byte {offset}: `{kind}` is not the kind of an FLV tag"));
        let body_bytes = u64::from(u32::from_be_bytes([0, size[0], size[1], size[2]]));
        let time_ms = u32::from_be_bytes([size[6], size[3], size[4], size[5]]);
        let range = ByteRange::of_length(offset, AROUND_BODY_BYTES + body_bytes).ok_or_else(fault)?;
        let (format, packet) = (head[11], head[12]);
        match *kind {
            AUDIO | VIDEO if body_bytes < 2 => self.extend(range),
            AUDIO if format >> 4 == AAC && packet == 0 => self.settings.push(range),
            VIDEO if format & 0xf == AVC && packet == 0 => self.settings.push(range),
            // The end of the sequence is marked as a key frame, but has no picture.
            VIDEO if format & 0xf == AVC && packet == END_OF_SEQUENCE => self.extend(range),
            VIDEO if format >> 4 == KEY_FRAME => {
                self.fragments.push(FlvFragment { start_ms: time_ms.into(), range });
            }
            AUDIO | VIDEO => self.extend(range),
            SCRIPT => self.extend(range),
            _ => return Err(fault()),
        }
        self.offset = range.last + 1;
        Ok(())
    }

    /// What precedes the first key frame belongs to no fragment.
    fn extend(&mut self, range: ByteRange) {
        if let Some(last) = self.fragments.last_mut() {
            last.range.last = range.last;
        }
    }

    /// The decoders' settings and the fragments.
    ///
    /// # Errors
    /// There is no key frame.
    pub fn finish(self) -> Result<(Vec<ByteRange>, Vec<FlvFragment>), FormatError> {
        if self.fragments.is_empty() {
            return Err(FormatError::new("the FLV file has no key frame"));
        }
        Ok((self.settings, self.fragments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, body_bytes: u32, time_ms: u32, format: u8, packet: u8) -> [u8; TAG_HEAD_BYTES] {
        let ([_, a, b, c], [high, x, y, z]) = (body_bytes.to_be_bytes(), time_ms.to_be_bytes());
        [kind, a, b, c, x, y, z, high, 0, 0, 0, format, packet]
    }

    #[test]
    fn fragments_begin_at_key_frames() {
        let mut scan = FlvScan::default();
        for (kind, bytes, time, format, packet) in [
            (18, 300, 0, 2, 0),
            (VIDEO, 40, 0, 0x17, 0),
            (AUDIO, 4, 0, 0xaf, 0),
            (AUDIO, 100, 0, 0xaf, 1),
            (VIDEO, 5_000, 40, 0x17, 1),
            (VIDEO, 1_000, 80, 0x27, 1),
            (AUDIO, 100, 80, 0xaf, 1),
            (VIDEO, 6_000, 20_000_040, 0x17, 1),
            (VIDEO, 5, 20_000_080, 0x17, END_OF_SEQUENCE),
        ] {
            scan.handle_tag(&head(kind, bytes, time, format, packet)).unwrap();
        }
        let end = scan.offset();
        let (settings, fragments) = scan.finish().unwrap();
        let range = |first, length| ByteRange::of_length(first, length).unwrap();
        assert_eq!(settings, [range(328, 55), range(383, 19)]);
        let first = FlvFragment { start_ms: 40, range: range(517, 5_015 + 1_015 + 115) };
        let second = FlvFragment { start_ms: 20_000_040, range: range(6_662, 6_015 + 20) };
        assert_eq!(fragments, [first, second]);
        assert_eq!(end, 6_662 + 6_015 + 20);
    }

    #[test]
    fn damage_is_an_error() {
        let mut scan = FlvScan::default();
        let problem = scan.handle_tag(&head(77, 1, 0, 0, 0)).unwrap_err().to_string();
        assert!(problem.contains("byte 13: `77` is not the kind of an FLV tag"), "{problem}");
        assert!(FlvScan::default().finish().is_err());
    }
}
