//! BOLA as dash.js has it: BOLA-O with a placeholder buffer (Spiteri et al., INFOCOM 2016; Spiteri, Sitaraman
//! and Sparacio, "From Theory to Practice: Improving Bitrate Adaptation in the DASH Reference Player", MMSys
//! 2018).

use model::number::{count, float};

use super::Download;

/// Below this buffer BOLA never waits, in seconds; and how much each representation adds to the highest
/// one's.
const LEAST_S: f64 = 10.0;
const EACH_S: f64 = 2.0;
/// What a segment leaves of the placeholder buffer.
const KEPT: f64 = 0.99;

/// BOLA's parameters and its placeholder buffer, which stands for media that could have been buffered.
#[derive(Clone, Debug)]
pub(super) struct Bola {
    /// The logarithms of the bit rates over the lowest, plus 1.
    utilities: Vec<f64>,
    vp: f64,
    gp: f64,
    is_steady: bool,
    placeholder_s: f64,
    /// The representation of the last segment or decision.
    current: usize,
    /// The duration of the last segment that arrived since the beginning or the last seek.
    segment_s: Option<f64>,
    /// When the last segment arrived, until it was looked at.
    done_ns: Option<u64>,
    /// When it was last asked.
    asked_ns: Option<u64>,
}

impl Bola {
    /// For a player that buffers up to `goal_ns`.
    pub(super) fn new(ladder: &[u64], goal_ns: u64) -> Bola {
        let lowest = float(ladder.first().copied().unwrap_or(1).max(1));
        let utilities: Vec<f64> = ladder.iter().map(|rate| (float(*rate) / lowest).ln() + 1.0).collect();
        let highest = utilities.last().copied().unwrap_or(1.0);
        let buffer_s = seconds(goal_ns).max(LEAST_S + EACH_S * count(ladder.len()));
        let gp = (highest - 1.0) / (buffer_s / LEAST_S - 1.0);
        Bola {
            vp: LEAST_S / gp,
            gp,
            utilities,
            is_steady: false,
            placeholder_s: 0.0,
            current: 0,
            segment_s: None,
            done_ns: None,
            asked_ns: None,
        }
    }

    /// Another rule has chosen.
    pub(super) const fn change(&mut self, chosen: usize) {
        self.current = chosen;
    }

    /// Its proposal; `carried` is the representation that the throughput carries. A ladder of one leaves no
    /// choice.
    pub(super) fn choose(
        &mut self,
        ladder: &[u64],
        carried: Option<usize>,
        (buffered_ns, now_ns): (u64, u64),
    ) -> Option<usize> {
        if ladder.len() < 2 {
            return None;
        }
        let (carried, buffered_s) = (carried?, seconds(buffered_ns));
        if !self.is_steady {
            self.placeholder_s = (self.least_buffer_s(ladder, carried) - buffered_s).max(0.0);
            self.current = carried;
            self.is_steady = self.segment_s.is_some_and(|segment_s| buffered_s >= segment_s);
            return Some(carried);
        }
        // Time that passed without a download must not change the decision.
        let since_ns = self.done_ns.or(self.asked_ns);
        self.placeholder_s += since_ns.map_or(0.0, |since_ns| seconds(now_ns.saturating_sub(since_ns)));
        (self.asked_ns, self.done_ns) = (Some(now_ns), None);
        let mut chosen = self.best(ladder, buffered_s + self.placeholder_s);
        // No higher one than the throughput carries, which would be left again soon (BOLA-O).
        if chosen > self.current && chosen > carried {
            chosen = carried.max(self.current);
        }
        let excess_s = (buffered_s + self.placeholder_s - self.most_buffer_s(chosen)).max(0.0);
        self.placeholder_s = (self.placeholder_s - excess_s).max(0.0);
        self.current = chosen;
        Some(chosen)
    }

    /// The largest (Vp (utility − 1 + gp) − buffer) ÷ bit rate; of equal ones the higher representation.
    fn best(&self, ladder: &[u64], buffer_s: f64) -> usize {
        let score = |place: usize| {
            let utility = self.utilities.get(place).copied().unwrap_or(1.0);
            (self.vp * (utility - 1.0 + self.gp) - buffer_s) / float(ladder[place].max(1))
        };
        (0..ladder.len()).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap_or(0)
    }

    /// Above this buffer it rather waits than downloads a representation, in seconds.
    fn most_buffer_s(&self, place: usize) -> f64 {
        self.vp * (self.utilities.get(place).copied().unwrap_or(1.0) + self.gp)
    }

    /// From this buffer on it prefers a representation to all lower ones, in seconds.
    fn least_buffer_s(&self, ladder: &[u64], place: usize) -> f64 {
        let of = |place: usize| (float(ladder[place]), self.utilities.get(place).copied().unwrap_or(1.0));
        let (rate, utility) = of(place);
        let over = |lower: usize| {
            let (lower_rate, lower_utility) = of(lower);
            self.vp * (self.gp + (rate * lower_utility - lower_rate * utility) / (rate - lower_rate))
        };
        (0..place).map(over).fold(0.0, f64::max)
    }

    pub(super) fn handle_download(&mut self, download: &Download) {
        self.done_ns = Some(download.done_ns);
        self.segment_s = Some(seconds(download.segment_ns));
        self.current = download.place;
        // Not more than what would make it wait when this segment was requested.
        let took_s = seconds(download.done_ns.saturating_sub(download.requested_ns));
        let room_s = self.most_buffer_s(download.place) - (seconds(download.buffered_ns) + took_s);
        self.placeholder_s = (self.placeholder_s * KEPT).min(room_s.max(0.0));
    }

    /// A segment was abandoned for `current`: the placeholder is not larger than what makes BOLA choose it.
    pub(super) fn handle_abandoned(&mut self, ladder: &[u64], buffered_ns: u64) {
        let wanted_s = if self.current > 0 { self.least_buffer_s(ladder, self.current) } else { LEAST_S };
        self.placeholder_s = self.placeholder_s.min((wanted_s - seconds(buffered_ns)).max(0.0));
    }

    /// The buffer is empty.
    pub(super) const fn handle_empty(&mut self) {
        if self.is_steady {
            self.placeholder_s = 0.0;
        }
    }

    pub(super) const fn handle_seek(&mut self) {
        self.is_steady = false;
        self.placeholder_s = 0.0;
        (self.segment_s, self.done_ns) = (None, None);
    }
}

fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}
