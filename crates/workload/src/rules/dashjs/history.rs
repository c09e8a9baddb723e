//! The switch history rule of dash.js: representations that were left downward too often are avoided.

use std::collections::VecDeque;

/// `sampleSize`: the decisions that count.
const DECISIONS: usize = 8;
/// `switchPercentageThreshold`: downward decisions for each other one.
const MOST_DROPS: f64 = 0.075;

/// The last decisions: the representation that was left, and whether for a lower one.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchHistory(VecDeque<(usize, bool)>);

impl SwitchHistory {
    /// Adds a decision to continue `from` a representation with `to`.
    pub(super) fn add(&mut self, from: usize, to: usize) {
        self.0.push_back((from, to < from));
        if self.0.len() > DECISIONS {
            self.0.pop_front();
        }
    }

    /// The representation below the first one, from the lowest up, that was left downward too often.
    pub(super) fn propose(&self, representations: usize) -> Option<usize> {
        let (mut drops, mut others) = (0_u32, 0_u32);
        for place in 0..representations {
            let own = || self.0.iter().filter(|(from, _)| *from == place);
            let own_drops = u32::try_from(own().filter(|(_, is_drop)| *is_drop).count()).unwrap_or(u32::MAX);
            let all = u32::try_from(own().count()).unwrap_or(u32::MAX);
            if all == 0 {
                continue;
            }
            drops += own_drops;
            others += all - own_drops;
            let is_enough = (drops + others) as usize >= DECISIONS;
            // Without others the share is infinite.
            if is_enough && f64::from(drops) > MOST_DROPS * f64::from(others) {
                return Some(if own_drops > 0 { place.saturating_sub(1) } else { place });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_representation_that_was_left_downward_is_avoided() {
        let mut history = SwitchHistory::default();
        for _ in 0..7 {
            history.add(2, 2);
            assert_eq!(history.propose(4), None, "too few decisions");
        }
        history.add(2, 1);
        assert_eq!(history.propose(4), Some(1), "one of eight");
        for _ in 0..7 {
            history.add(1, 1);
        }
        assert_eq!(history.propose(4), Some(1), "the drop still counts");
        history.add(1, 1);
        assert_eq!(history.propose(4), None, "it is forgotten");
    }
}
