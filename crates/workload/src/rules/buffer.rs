//! The rule `buffer`: BBA-0, a map from the buffer to a bit rate.

use model::number;

use super::{Situation, highest};

/// Where the rate map begins and how long it rises, as shares of the buffer: 90 s and 126 s of 240 s in Huang
/// et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, section 4.
const RESERVOIR_SHARE: f64 = 90.0 / 240.0;
const CUSHION_SHARE: f64 = 126.0 / 240.0;

/// BBA-0 (Huang et al., algorithm 1) with reservoir and cushion scaled to this buffer.
pub(super) fn choose(situation: &Situation<'_>) -> usize {
    let Situation { ladder, goal_ns, buffered_ns, .. } = *situation;
    let before = situation.before.unwrap_or(0);
    let last = ladder.len().saturating_sub(1);
    let goal = number::float(goal_ns);
    let (reservoir, cushion) = (goal * RESERVOIR_SHARE, goal * CUSHION_SHARE);
    let buffered = number::float(buffered_ns);
    if buffered <= reservoir {
        return 0;
    }
    if buffered >= reservoir + cushion {
        return last;
    }
    let rate = |place: usize| ladder.get(place).map_or(0.0, |rate| number::float(*rate));
    let mapped = rate(0) + (buffered - reservoir) / cushion * (rate(last) - rate(0));
    let (above, below) = (rate((before + 1).min(last)), rate(before.saturating_sub(1)));
    if mapped >= above {
        highest(ladder, |rate| number::float(rate) < mapped)
    } else if mapped <= below {
        ladder.partition_point(|rate| number::float(*rate) <= mapped).min(last)
    } else {
        before.min(last)
    }
}

#[cfg(test)]
mod tests {
    use model::player::Rule;

    use super::super::tests::chosen;

    #[test]
    fn the_buffer_maps_to_a_rate_as_in_the_paper() {
        // Netflix's ladder and buffer at the time.
        let ladder = [235, 375, 560, 750, 1050, 1750, 2350, 3000];
        let chosen = |buffered, before| chosen(Rule::Buffer, &ladder, 240, buffered, before);
        assert_eq!([0, 45_000, 90_000].map(|buffered| chosen(buffered, 7)), [0, 0, 0]);
        assert_eq!([216_000, 240_000].map(|buffered| chosen(buffered, 0)), [7, 7]);
        // In the middle of the cushion the map gives 1617.5 kbit/s.
        assert_eq!(chosen(153_000, 0), 4, "up to the one below the map");
        assert_eq!(chosen(153_000, 4), 4, "between its neighbours it stays");
        assert_eq!(chosen(153_000, 5), 5, "the one above the map's too");
        assert_eq!(chosen(153_000, 7), 5, "down to the one above the map");
    }
}
