//! Media as HTTP Dynamic Streaming packages it: fragments with numbers that have gaps, in archives.

use serde::{Deserialize, Serialize};

/// How the fragments of modelled media are numbered and archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HdsModel {
    /// How many fragment numbers an archive (a segment of HDS) covers; not 0.
    pub fragments_per_segment: u32,
    /// The fragment numbers that do not exist, ascending.
    pub gaps: Vec<u32>,
}

impl HdsModel {
    /// The numbers of the fragments that exist, from 1.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (1..=u32::MAX).filter(|number| self.gaps.binary_search(number).is_err())
    }

    /// The segment that covers a fragment number, counted from 1.
    pub fn segment_of(&self, fragment: u32) -> u32 {
        fragment.saturating_sub(1) / self.fragments_per_segment.max(1) + 1
    }

    /// The path of a fragment in its folder.
    pub fn file(&self, fragment: u32) -> String {
        format!("Seg{}-Frag{fragment}", self.segment_of(fragment))
    }

    /// Whether a path in its folder has the form of a fragment's, which may not exist.
    pub fn is_fragment(file: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let numbers = file.strip_prefix("Seg").and_then(|numbers| numbers.split_once("-Frag"));
        numbers.is_some_and(|(segment, fragment)| is_number(segment) && is_number(fragment))
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        let gaps: Vec<String> = self.gaps.iter().map(u32::to_string).collect();
        let without = if gaps.is_empty() { String::new() } else { format!(" without {}", gaps.join(", ")) };
        format!("HDS with {} fragment numbers in a segment{without}", self.fragments_per_segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_left_out_of_the_numbers() {
        let model = HdsModel { fragments_per_segment: 5, gaps: vec![1, 4, 7] };
        let files: Vec<String> = model.numbers().take(5).map(|number| model.file(number)).collect();
        assert_eq!(files, ["Seg1-Frag2", "Seg1-Frag3", "Seg1-Frag5", "Seg2-Frag6", "Seg2-Frag8"]);
        assert_eq!(model.describe(), "HDS with 5 fragment numbers in a segment without 1, 4, 7");
    }

    #[test]
    fn names_of_fragments_have_two_numbers() {
        assert!(HdsModel::is_fragment("Seg1-Frag4"));
        for other in ["Seg1-Frag", "Seg-Frag1", "Seg1-Frag+1", "a/Seg1-Frag1", "Seg1.f4f"] {
            assert!(!HdsModel::is_fragment(other), "{other}");
        }
    }
}
