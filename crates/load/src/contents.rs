//! The expected content of responses, where the workload knows it: a page's resources, byte by byte.

use engine::contract::ContentFields;
use model::shuffle::SplitMix64;
use model::{Page, Workload};

/// Larger pages are not compared: their bodies would take most of the client's memory.
const MOST_BYTES: u64 = 256 << 20;

/// Bodies of unknown content below this size all get a checksum.
pub(crate) const LARGE_BYTES: u64 = 32 * 1024;
/// Larger ones get one if the request is among the first …
const FIRST_REQUESTS: u64 = 300;
/// … or one of this many on average. If one body in a hundred differs, 300 of them miss it in 5 % of all
/// cases.
const SAMPLED_OF: u64 = 16;

/// Whether a large body of this request gets a checksum: the same requests in every variant.
#[inline]
pub(crate) fn is_sampled(request: u64) -> bool {
    request < FIRST_REQUESTS || SplitMix64::new(request).next_u64().is_multiple_of(SAMPLED_OF)
}

/// The checksum of a body after its next piece.
#[inline]
pub(crate) fn checksum(before: u32, piece: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(piece);
    hasher.finalize()
}

/// The media types and content codings of responses, each once.
#[derive(Default)]
pub(crate) struct ContentKinds(Vec<ContentFields>);

/// Further kinds have no number.
const MOST_KINDS: usize = 256;

impl ContentKinds {
    /// The number of a kind.
    #[inline]
    pub(crate) fn number(&mut self, kind: ContentFields) -> Option<u16> {
        let known = self.0.iter().position(|known| *known == kind);
        let number = known.or_else(|| {
            let is_kept = self.0.len() < MOST_KINDS;
            is_kept.then(|| {
                self.0.push(kind);
                self.0.len() - 1
            })
        });
        number.and_then(|number| u16::try_from(number).ok())
    }

    /// The kinds as texts.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |kind: &ContentFields| match (kind.media_type.is_empty(), kind.coding.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("no type, {}", kind.coding),
            (false, true) => kind.media_type.to_string(),
            (false, false) => format!("{}, {}", kind.media_type, kind.coding),
        };
        self.0.iter().map(text).collect()
    }
}

/// The bodies of the workload's URLs; empty if it does not know them.
#[derive(Default)]
pub(crate) struct Contents(Vec<Vec<u8>>);

impl Contents {
    /// The bodies of a page that h123 makes. Those of loops are unknown, and of videos only the length is
    /// known.
    pub(crate) fn of(workload: &Workload) -> Contents {
        let page = workload.page().filter(|page| !page.is_outside() && total_bytes(page) <= MOST_BYTES);
        page.map_or_else(Contents::default, |page| {
            let bodies = (0..page.resources.len()).map(|url| workload::content::page_body(page, url));
            Contents(bodies.collect())
        })
    }

    /// Whether bodies are known, and therefore have to be read.
    pub(crate) fn are_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The place of the first wrong byte of this piece, which begins at `offset` of the URL's body; `None` if
    /// all are right. Bytes beyond the known length are not compared: the length is checked separately.
    pub(crate) fn first_wrong(&self, url: u32, offset: u64, piece: &[u8]) -> Option<u64> {
        let body = self.0.get(url as usize)?;
        let expected = body.get(usize::try_from(offset).ok()?..)?;
        let length = expected.len().min(piece.len());
        if expected[..length] == piece[..length] {
            return None;
        }
        let place = expected.iter().zip(piece).position(|(expected, found)| expected != found)?;
        Some(offset + place as u64)
    }
}

fn total_bytes(page: &Page) -> u64 {
    page.resources.iter().map(|resource| resource.bytes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_does_not_depend_on_how_a_body_is_cut() {
        let body: Vec<u8> = (0..1000_u32).map(|place| (place * 7 % 251) as u8).collect();
        let whole = checksum(0, &body);
        for cut in [0, 1, 13, 500, 999, 1000] {
            let (head, tail) = body.split_at(cut);
            assert_eq!(checksum(checksum(0, head), tail), whole);
        }
        assert_eq!(checksum(0, b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
    }

    #[test]
    fn a_wrong_byte_is_found_wherever_pieces_are_cut() {
        let contents = Contents(vec![b"0123456789".to_vec()]);
        for cut in 0..=10 {
            let (head, tail) = b"0123456789".split_at(cut);
            assert_eq!(contents.first_wrong(0, 0, head), None);
            assert_eq!(contents.first_wrong(0, cut as u64, tail), None);
        }
        assert_eq!(contents.first_wrong(0, 4, b"45x7"), Some(6));
        assert_eq!(contents.first_wrong(0, 8, b"89more"), None, "the length is checked separately");
        assert_eq!(contents.first_wrong(0, 12, b"more"), None);
        assert_eq!(contents.first_wrong(1, 0, b"anything"), None, "an unknown URL");
    }
}
