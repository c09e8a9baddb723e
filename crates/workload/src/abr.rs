//! The rules that choose the next segment's representation (adaptive bit rate), each as in its paper.

use model::number;
use model::player::{Player, Rule};
use model::units::NANOS_PER_S;

/// The number of segments whose throughput counts: Yin et al., "A Control-Theoretic Approach for Dynamic
/// Adaptive Video Streaming over HTTP", SIGCOMM 2015, use the last five.
const REMEMBERED: usize = 5;
/// The share of the throughput that is used: Jiang, Sekar and Zhang, "Improving Fairness, Efficiency, and
/// Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012.
const USED_SHARE: f64 = 0.85;
/// Where the rate map begins and how long it rises, as shares of the buffer: 90 s and 126 s of 240 s in Huang
/// et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, section 4.
const RESERVOIR_SHARE: f64 = 90.0 / 240.0;
const CUSHION_SHARE: f64 = 126.0 / 240.0;
/// The weight of playing without stalls against the utility of the bit rate: γp in Spiteri, Urgaonkar and
/// Sitaraman, "BOLA: Near-Optimal Bitrate Adaptation for Online Videos", INFOCOM 2016.
const GAMMA_P: f64 = 5.0;

/// The throughput of the last few segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Throughput {
    /// In bit/s; a ring.
    bits_per_s: [f64; REMEMBERED],
    segments: usize,
}

impl Throughput {
    /// Adds a segment.
    pub(crate) fn add(&mut self, bytes: u64, took_ns: u64) {
        let rate = number::float(bytes) * 8.0 * number::float(NANOS_PER_S) / number::float(took_ns.max(1));
        self.bits_per_s[self.segments % REMEMBERED] = rate;
        self.segments += 1;
    }

    /// The harmonic mean, in bit/s; a single fast segment hardly moves it.
    fn mean(&self) -> Option<f64> {
        let known = &self.bits_per_s[..self.segments.min(REMEMBERED)];
        (!known.is_empty())
            .then(|| number::count(known.len()) / known.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }
}

/// The representation of the next segment, as its place in the ladder; `before` is the place of the last one.
pub(crate) fn choose(
    player: &Player,
    throughput: &Throughput,
    buffered_ns: u64,
    before: Option<usize>,
) -> usize {
    let ladder = &player.ladder_bits_per_s;
    match player.rule {
        Rule::Fixed { bits_per_s } => ladder.iter().position(|rate| *rate == bits_per_s).unwrap_or(0),
        Rule::Throughput => throughput
            .mean()
            .map_or(0, |mean| highest(ladder, |rate| number::float(rate) <= mean * USED_SHARE)),
        Rule::Buffer => buffer_based(player, buffered_ns, before.unwrap_or(0)),
        Rule::Bola => bola(player, buffered_ns),
    }
}

/// The highest representation that `suits`, or the lowest. Where one suits, all below it suit too.
fn highest(ladder: &[u64], suits: impl Fn(u64) -> bool) -> usize {
    ladder.partition_point(|rate| suits(*rate)).saturating_sub(1)
}

/// BBA-0 (Huang et al., algorithm 1) with reservoir and cushion scaled to this buffer.
fn buffer_based(player: &Player, buffered_ns: u64, before: usize) -> usize {
    let ladder = &player.ladder_bits_per_s;
    let last = ladder.len().saturating_sub(1);
    let goal = number::float(player.goal_ns);
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

/// BOLA-BASIC (Spiteri et al., section III): the largest (V (υ + γp) − Q) / S, where Q is the buffer in
/// segments, S the size and υ the logarithm of the size over the smallest.
///
/// V is chosen so that at the buffer's goal only the highest representation is wanted. Above the goal, this
/// player waits under every rule.
fn bola(player: &Player, buffered_ns: u64) -> usize {
    let ladder = &player.ladder_bits_per_s;
    let lowest = number::float(ladder.first().copied().unwrap_or(1).max(1));
    let utility = |rate: u64| (number::float(rate) / lowest).ln();
    let segments = |ns: u64| number::float(ns) / number::float(player.segment_ns.max(1));
    let highest = utility(ladder.last().copied().unwrap_or(1));
    let v = segments(player.goal_ns) / (highest + GAMMA_P);
    let score =
        |rate: u64| (v * (utility(rate) + GAMMA_P) - segments(buffered_ns)) / number::float(rate.max(1));
    let best = (0..ladder.len()).max_by(|a, b| score(ladder[*a]).total_cmp(&score(ladder[*b])));
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS_PER_S;

    fn player(rule: Rule, ladder_kbits_per_s: &[u64], goal_s: u64) -> Player {
        Player {
            ladder_bits_per_s: ladder_kbits_per_s.iter().map(|rate| rate * 1000).collect(),
            segment_ns: SECOND,
            segments: 100,
            goal_ns: goal_s * SECOND,
            startup_ns: SECOND,
            rule,
        }
    }

    fn chosen(player: &Player, buffered_ms: u64, before: usize) -> usize {
        choose(player, &Throughput::default(), buffered_ms * 1_000_000, Some(before))
    }

    #[test]
    fn throughput_is_the_harmonic_mean_of_the_last_five_with_a_margin() {
        let player = player(Rule::Throughput, &[1000, 2500, 8000], 12);
        let choice = |throughput: &Throughput| choose(&player, throughput, 0, None);
        let mut throughput = Throughput::default();
        assert_eq!(choice(&throughput), 0, "nothing is known");
        // 2.95 Mbit/s, of which 85 % are 2.51; then 2.9, of which they are 2.47.
        throughput.add(2_950_000 / 8, SECOND);
        assert_eq!(choice(&throughput), 1);
        throughput.add(2_850_000 / 8, SECOND);
        assert_eq!(choice(&throughput), 0);
        // One segment at 100 Mbit/s hardly moves it: 5 / (4 / 2.9 + 1 / 100) is 3.6.
        for rate in [2_900_000, 2_900_000, 2_900_000, 2_900_000, 100_000_000] {
            throughput.add(rate / 8, SECOND);
        }
        assert!((throughput.mean().unwrap() - 3_598_000.0).abs() < 1_000.0, "{:?}", throughput.mean());
        assert_eq!(choice(&throughput), 1);
        (0..5).for_each(|_| throughput.add(10_000_000 / 8, SECOND));
        assert_eq!(choice(&throughput), 2);
    }

    #[test]
    fn the_buffer_maps_to_a_rate_as_in_the_paper() {
        // Netflix's ladder and buffer at the time.
        let player = player(Rule::Buffer, &[235, 375, 560, 750, 1050, 1750, 2350, 3000], 240);
        assert_eq!([0, 45_000, 90_000].map(|buffered| chosen(&player, buffered, 7)), [0, 0, 0]);
        assert_eq!([216_000, 240_000].map(|buffered| chosen(&player, buffered, 0)), [7, 7]);
        // In the middle of the cushion the map gives 1617.5 kbit/s.
        assert_eq!(chosen(&player, 153_000, 0), 4, "up to the one below the map");
        assert_eq!(chosen(&player, 153_000, 4), 4, "between its neighbours it stays");
        assert_eq!(chosen(&player, 153_000, 5), 5, "the one above the map's too");
        assert_eq!(chosen(&player, 153_000, 7), 5, "down to the one above the map");
    }

    #[test]
    fn bola_changes_where_two_scores_cross() {
        // With 1 and 2 Mbit/s and ten segments V is 10 / (ln 2 + 5), and the scores are equal at 7.565
        // segments.
        let two = player(Rule::Bola, &[1000, 2000], 10);
        assert_eq!([0, 7_560, 7_570, 10_000].map(|buffered| chosen(&two, buffered, 0)), [0, 0, 1, 1]);
        let many = player(Rule::Bola, &[235, 375, 560, 750, 1050, 1750, 2350, 3000], 25);
        let places: Vec<usize> = (0..=25).map(|second| chosen(&many, second * 1000, 0)).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!((places[0], places[25]), (0, 7));
    }

    #[test]
    fn a_ladder_of_one_leaves_no_choice() {
        for rule in [Rule::Fixed { bits_per_s: 1_000_000 }, Rule::Throughput, Rule::Buffer, Rule::Bola] {
            let player = player(rule, &[1000], 10);
            for buffered in [0, 5_000, 10_000, 11_000] {
                assert_eq!(chosen(&player, buffered, 0), 0, "{rule:?}");
            }
        }
    }
}
