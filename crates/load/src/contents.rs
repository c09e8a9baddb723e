//! The expected content of responses, where the workload knows it: a page's resources, byte by byte.

use engine::contract::ContentFields;
use model::shuffle::SplitMix64;
use model::{Page, Workload};

/// Larger pages are not compared: their bodies would take most of the client's memory.
const MOST_BYTES: u64 = 256 << 20;

/// The bodies of the workload's URLs; empty if it does not know them.
#[derive(Default)]
pub(crate) struct Contents(Vec<Vec<u8>>);

impl Contents {
    /// The bodies of a page. Those of loops are unknown, and of videos only the length is known.
    pub(crate) fn of(workload: &Workload) -> Contents {
        let page = workload.page().filter(|page| total_bytes(page) <= MOST_BYTES);
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

