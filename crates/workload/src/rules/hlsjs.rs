//! The rule `hlsjs`: that of hls.js 1 (`abr-controller` and its bandwidth estimator) with its default
//! settings.
//!
//! The throughput is the lower of two averages with half-lives of 3 s and 9 s of downloading. The highest
//! representation is chosen whose segment arrives before the buffer is empty, at 95 % of the throughput, or
//! 70 % for a higher representation than the last. A segment that would arrive too late is requested in a
//! lower one.
//!
//! What is different: hls.js discards its first segment, a test at the lowest representation; here it is
//! played. Playlists of representations are known, so that a change costs no further request.

use model::number::float;

use super::ewma::Ewma;
use super::{Download, Progress, Situation};

/// `abrEwmaFastVoD` and `abrEwmaSlowVoD`, in seconds of downloading; those of live streams are equal.
const FAST_S: f64 = 3.0;
const SLOW_S: f64 = 9.0;
/// `abrEwmaDefaultEstimate`, in bit/s, and the time to the first byte before one is known, in seconds.
const DEFAULT_BITS_PER_S: f64 = 500_000.0;
const DEFAULT_FIRST_BYTE_S: f64 = 0.1;
/// An average counts once its weight reaches this.
const LEAST_WEIGHT: f64 = 0.001;
/// `abrBandWidthFactor` and `abrBandWidthUpFactor`: the share of the throughput that a representation may
/// need.
const SHARE: f64 = 0.95;
const SHARE_UP: f64 = 0.7;
/// `maxStarvationDelay`: how long playback may stall at most for a representation, in seconds.
const MOST_STALL_S: f64 = 4.0;
/// How often an arriving segment is judged.
const JUDGED_EVERY_NS: u64 = 100_000_000;
/// A segment that takes longer than this many of its durations in a lower representation is not abandoned.
const HOPELESS: f64 = 10.0;

/// The rule with what it has measured.
#[derive(Clone, Debug)]
pub(crate) struct Hlsjs {
    throughput: Estimate,
    first_byte: Ewma,
    /// The representation of the last segment that arrived.
    last: Option<usize>,
    /// The representation of the next segment, after one was abandoned.
    forced: Option<usize>,
    /// The duration of the last requested segment.
    segment_s: f64,
    next_judgement_ns: Option<u64>,
}

/// The throughput in bit/s.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    fast: Ewma,
    slow: Ewma,
    default_bits_per_s: f64,
}

impl Estimate {
    const fn new(default_bits_per_s: f64) -> Estimate {
        Estimate { fast: Ewma::new(FAST_S), slow: Ewma::new(SLOW_S), default_bits_per_s }
    }

    fn add(&mut self, took_s: f64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        // The shortest time that counts: 50 ms, or less for few bytes.
        let least_s = (float(bytes) / 100_000.0).min(50.0) / 1000.0;
        let took_s = took_s.max(least_s);
        let bits_per_s = 8.0 * float(bytes) / took_s;
        self.fast.add(bits_per_s, took_s);
        self.slow.add(bits_per_s, took_s);
    }

    fn bits_per_s(&self) -> f64 {
        match (self.fast.value(), self.slow.value()) {
            (Some(fast), Some(slow)) if self.fast.weight() >= LEAST_WEIGHT => fast.min(slow),
            _ => self.default_bits_per_s,
        }
    }
}

/// What is compared with a representation.
struct Budget {
    bits_per_s: f64,
    share: f64,
    share_up: f64,
    /// How long its segment may take.
    most_s: f64,
    /// The shortest of all segments' times.
    is_live: bool,
    segment_s: f64,
}

impl Default for Hlsjs {
    fn default() -> Self {
        Hlsjs {
            throughput: Estimate::new(DEFAULT_BITS_PER_S),
            first_byte: Ewma::new(SLOW_S),
            last: None,
            forced: None,
            segment_s: 0.0,
            next_judgement_ns: None,
        }
    }
}

impl Hlsjs {
    pub(super) fn choose(&mut self, situation: &Situation<'_>) -> usize {
        self.next_judgement_ns = Some(situation.now_ns.saturating_add(JUDGED_EVERY_NS));
        let chosen = match (self.forced, self.last) {
            (Some(forced), _) => forced.min(situation.ladder.len().saturating_sub(1)),
            (None, None) => 0,
            (None, Some(last)) => self.best(situation, last),
        };
        self.segment_s = seconds(situation.segment_ns);
        chosen
    }

    /// The highest representation that arrives in time; if there is none, with a stall of at most 4 s or a
    /// segment; or the lowest.
    fn best(&self, situation: &Situation<'_>, last: usize) -> usize {
        let Situation { ladder, is_live, .. } = *situation;
        let buffered_s = seconds(situation.buffered_ns);
        let mut budget = Budget {
            bits_per_s: self.throughput.bits_per_s(),
            share: SHARE,
            share_up: SHARE_UP,
            most_s: buffered_s,
            is_live,
            segment_s: seconds(situation.segment_ns),
        };
        let in_time = if buffered_s > 0.0 { self.highest(ladder, ladder.len(), last, &budget) } else { None };
        budget.most_s = match self.segment_s {
            unknown if unknown <= 0.0 => buffered_s + MOST_STALL_S,
            segment_s => buffered_s + segment_s.min(MOST_STALL_S),
        };
        in_time.or_else(|| self.highest(ladder, ladder.len(), last, &budget)).unwrap_or(0)
    }

    /// The highest of the first `count` representations within the budget.
    fn highest(&self, ladder: &[u64], count: usize, last: usize, budget: &Budget) -> Option<usize> {
        let first_byte_s = self.first_byte_s();
        (0..count).rev().find(|place| {
            let bits_per_s = float(ladder.get(*place).copied().unwrap_or(u64::MAX));
            let share = if *place > last { budget.share_up } else { budget.share };
            let usable = share * budget.bits_per_s;
            let takes_s = first_byte_s + bits_per_s * budget.segment_s / usable;
            usable >= bits_per_s
                && (takes_s <= first_byte_s
                    || budget.is_live
                    || !takes_s.is_finite()
                    || takes_s < budget.most_s)
        })
    }

    fn first_byte_s(&self) -> f64 {
        let known = self.first_byte.value().filter(|_| self.first_byte.weight() >= LEAST_WEIGHT);
        known.map_or(DEFAULT_FIRST_BYTE_S, |first_byte_ms| first_byte_ms / 1000.0)
    }

    /// A longer time to the first byte has less weight.
    fn add_first_byte(&mut self, took_s: f64) {
        let weight = 2.0_f64.sqrt() * (-took_s.powi(2) / 2.0).exp();
        self.first_byte.add((took_s * 1000.0).max(5.0), weight);
    }

    pub(super) fn handle_download(&mut self, download: &Download) {
        let first_byte_s = seconds(download.first_byte_ns.saturating_sub(download.requested_ns));
        self.add_first_byte(first_byte_s);
        let took_s = seconds(download.done_ns.saturating_sub(download.requested_ns));
        self.throughput.add(took_s - first_byte_s.min(self.first_byte_s()), download.bytes);
        self.last = Some(download.place);
        self.forced = self.forced.filter(|forced| *forced != download.place);
        self.next_judgement_ns = None;
    }

    pub(super) const fn next_judgement_ns(&self) -> Option<u64> {
        self.next_judgement_ns
    }

    /// Judges an arriving segment every 100 ms, from half of its duration on.
    pub(super) fn judge(&mut self, progress: &Progress<'_>) -> Option<usize> {
        if self.next_judgement_ns.is_none_or(|next_ns| progress.now_ns < next_ns) {
            return None;
        }
        self.next_judgement_ns = Some(progress.now_ns.saturating_add(JUDGED_EVERY_NS));
        if progress.place == 0 || progress.bytes == Some(progress.received_bytes) {
            self.next_judgement_ns = None;
            self.forced = None;
            return None;
        }
        let (first_byte_s, segment_s) = (self.first_byte_s(), seconds(progress.segment_ns));
        let loading_s = seconds(progress.now_ns.saturating_sub(progress.requested_ns));
        if !progress.has_media || loading_s <= first_byte_s.max(segment_s / 2.0) {
            return None;
        }
        let buffered_s = seconds(progress.buffered_ns);
        let estimate = self.throughput.bits_per_s();
        let rate = float(progress.ladder.get(progress.place).copied().unwrap_or(0));
        let received = float(progress.received_bytes);
        let expected = received.max((segment_s * rate / 8.0).round());
        let waited_s = progress.first.map(|(at_ns, _)| seconds(at_ns.saturating_sub(progress.requested_ns)));
        // Bytes per second since the first byte.
        let loads = waited_s.map(|waited_s| received / (loading_s - waited_s).max(0.001));
        let rest_s = match loads {
            Some(loads) if loads > 0.0 => (expected - received) / loads,
            _ => expected * 8.0 / estimate + first_byte_s,
        };
        if rest_s <= buffered_s {
            return None;
        }
        let usable = loads.filter(|loads| *loads > 0.0).map_or(estimate, |loads| loads * 8.0);
        let takes_s = |place: usize| {
            let rate = float(progress.ladder.get(place).copied().unwrap_or(0));
            let switch_s = if progress.is_live { first_byte_s } else { 0.0 };
            first_byte_s + segment_s * rate / usable + switch_s
        };
        let in_time = |place: &usize| takes_s(*place) < buffered_s.min(segment_s + first_byte_s);
        // The lowest is the last resort; its own time is never looked at.
        let found = (1..progress.place).rev().find(in_time);
        let (lower, lower_s) = match found {
            Some(place) => (place, takes_s(place)),
            None if progress.place > 1 => (0, takes_s(1)),
            None => (0, f64::INFINITY),
        };
        if lower_s >= rest_s || lower_s > segment_s * HOPELESS {
            return None;
        }
        match waited_s {
            Some(waited_s) => {
                self.throughput.add(loading_s - first_byte_s.min(waited_s), progress.received_bytes);
            }
            None => self.add_first_byte(loading_s),
        }
        let chosen = self.emergency(progress, lower, (rest_s, lower_s));
        self.forced = Some(chosen);
        Some(chosen)
    }

    /// The representation in which an abandoned segment is requested, from `lower` down.
    fn emergency(&mut self, progress: &Progress<'_>, lower: usize, (rest_s, lower_s): (f64, f64)) -> usize {
        let rate = |place: usize| float(progress.ladder.get(place).copied().unwrap_or(0));
        if self.throughput.bits_per_s() * SHARE_UP > rate(lower) {
            self.throughput = Estimate::new(rate(lower));
        }
        let last = self.last.unwrap_or(0);
        let budget = |bits_per_s: f64| Budget {
            bits_per_s,
            share: 1.0,
            share_up: 1.0,
            most_s: seconds(progress.buffered_ns),
            is_live: progress.is_live,
            segment_s: seconds(progress.segment_ns),
        };
        let chosen = self.highest(progress.ladder, lower + 1, last, &budget(rate(lower))).unwrap_or(lower);
        if rest_s <= lower_s * 2.0 || chosen == 0 {
            return chosen;
        }
        let lowest = self.highest(progress.ladder, chosen + 1, last, &budget(rate(0))).unwrap_or(0);
        self.throughput = Estimate::new(rate(lowest));
        lowest
    }
}

fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}
