//! The rule `bola`: BOLA-BASIC, the utility of a bit rate against the room that it takes.

use model::number;

use super::Situation;

/// The weight of playing without stalls against the utility of the bit rate: γp in Spiteri, Urgaonkar and
/// Sitaraman, "BOLA: Near-Optimal Bitrate Adaptation for Online Videos", INFOCOM 2016.
const GAMMA_P: f64 = 5.0;

/// BOLA-BASIC (Spiteri et al., section III): the largest (V (υ + γp) − Q) / S, where Q is the buffer in
/// segments, S the size and υ the logarithm of the size over the smallest.
///
/// V is chosen so that at the buffer's goal only the highest representation is wanted. Above the goal, this
/// player waits under every rule.
pub(super) fn choose(situation: &Situation<'_>) -> usize {
    let Situation { ladder, segment_ns, goal_ns, buffered_ns, .. } = *situation;
    let lowest = number::float(ladder.first().copied().unwrap_or(1).max(1));
    let utility = |rate: u64| (number::float(rate) / lowest).ln();
    let segments = |ns: u64| number::float(ns) / number::float(segment_ns.max(1));
    let highest = utility(ladder.last().copied().unwrap_or(1));
    let v = segments(goal_ns) / (highest + GAMMA_P);
    let score =
        |rate: u64| (v * (utility(rate) + GAMMA_P) - segments(buffered_ns)) / number::float(rate.max(1));
    let best = (0..ladder.len()).max_by(|a, b| score(ladder[*a]).total_cmp(&score(ladder[*b])));
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use model::player::Rule;

    use super::super::tests::chosen;

    #[test]
    fn bola_changes_where_two_scores_cross() {
        // With 1 and 2 Mbit/s and ten segments V is 10 / (ln 2 + 5), and the scores are equal at 7.565
        // segments.
        let two = |buffered| chosen(Rule::Bola, &[1000, 2000], 10, buffered, 0);
        assert_eq!([0, 7_560, 7_570, 10_000].map(two), [0, 0, 1, 1]);
        let many = [235, 375, 560, 750, 1050, 1750, 2350, 3000];
        let places: Vec<usize> =
            (0..=25).map(|second| chosen(Rule::Bola, &many, 25, second * 1000, 0)).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!((places[0], places[25]), (0, 7));
    }
}
