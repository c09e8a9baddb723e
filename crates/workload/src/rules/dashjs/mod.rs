//! The rules `dashjs`, `dashjs_throughput` and `dashjs_bola`: those of dash.js 5 with its default settings.
//!
//! The throughput rule or BOLA proposes a representation; two safety rules may propose lower ones, and the
//! lowest proposal wins. `dashjs` uses BOLA once the buffer has reached 12 s, until it falls below 6 s. A
//! segment that takes 1.8 times its duration is requested in a lower representation.
//!
//! What is different: when segments are requested is up to the player, not to BOLA.

mod bola;
mod history;

use model::media::TrackKind;
use model::number::float;

use super::ewma::Ewma;
use super::{Download, Progress, Situation};
use bola::Bola;
use history::SwitchHistory;

/// The representation before the throughput is known, in kbit/s.
const FIRST_VIDEO_KBIT_PER_S: f64 = 1000.0;
const FIRST_AUDIO_KBIT_PER_S: f64 = 100.0;
/// Half-lives of the throughput's averages, and the weight of a millisecond of downloading.
const FAST: f64 = 3.0;
const SLOW: f64 = 8.0;
const WEIGHT_OF_MS: f64 = 0.0015;
/// `bandwidthSafetyFactor`: the share of the throughput that a representation may need.
const SAFE_SHARE: f64 = 0.9;
/// `hybridSwitchBufferTime`: BOLA is used from this buffer on, and down to half of it.
const BOLA_FROM_NS: u64 = 12_000_000_000;
/// `stallThreshold`: the buffer counts as empty up to this level.
const EMPTY_NS: u64 = 300_000_000;
/// `insufficientBufferRule`: its share of the throughput, and how many segments it lets pass first.
const INSUFFICIENT_SHARE: f64 = 0.7;
const INSUFFICIENT_AFTER: u32 = 2;
/// `abandonRequestsRule`: how much longer than its duration a segment must take, and what must have been
/// seen.
const ABANDON_DURATIONS: f64 = 1.8;
const ABANDON_AFTER_MS: f64 = 500.0;
const ABANDON_PIECES: u32 = 6;
/// `abandonLoadTimeout`: how long no higher representation is chosen after that.
const ABANDONED_FOR_NS: u64 = 10_000_000_000;

/// Which of the two main rules is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One or the other, by the buffer.
    Dynamic,
    Throughput,
    Bola,
}

/// The rules with what they have measured.
#[derive(Clone, Debug)]
pub(crate) struct Dashjs {
    mode: Mode,
    fast: Ewma,
    slow: Ewma,
    /// `None` before the first proposal of BOLA.
    bola: Option<Bola>,
    uses_bola: bool,
    /// Whether the buffer is empty; `None` before the first segment.
    is_empty: Option<bool>,
    history: SwitchHistory,
    /// Segments that pass before the buffer can be insufficient.
    passing: u32,
    /// The last segment whose request was given up.
    abandoned: Option<usize>,
    /// Until when no higher representation is chosen.
    held_until_ns: u64,
}

impl Dashjs {
    pub(super) fn new(mode: Mode) -> Dashjs {
        Dashjs {
            mode,
            fast: Ewma::new(FAST),
            slow: Ewma::new(SLOW),
            bola: None,
            uses_bola: mode == Mode::Bola,
            is_empty: None,
            history: SwitchHistory::default(),
            passing: INSUFFICIENT_AFTER,
            abandoned: None,
            held_until_ns: 0,
        }
    }

    pub(super) fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let Situation { ladder, buffered_ns, now_ns, .. } = *situation;
        self.follow_buffer(buffered_ns);
        let first = match situation.kind {
            TrackKind::Video => FIRST_VIDEO_KBIT_PER_S,
            TrackKind::Audio => FIRST_AUDIO_KBIT_PER_S,
        };
        let current = situation.before.unwrap_or_else(|| carried(ladder, first));
        let is_held = now_ns < self.held_until_ns;
        let main = if self.uses_bola {
            self.propose_bola(situation)
        } else {
            self.propose_throughput(situation, is_held)
        };
        let others = [self.propose_sufficient(situation), self.history.propose(ladder.len())];
        let Some(chosen) = others.into_iter().chain([main]).flatten().min() else { return current };
        self.history.add(current, chosen);
        if chosen == current || (is_held && chosen > current) {
            return current;
        }
        if let Some(bola) = &mut self.bola {
            bola.change(chosen);
        }
        chosen
    }

    /// The mean throughput in kbit/s: the lower of the two averages.
    fn kbit_per_s(&self) -> Option<f64> {
        Some(self.fast.value()?.min(self.slow.value()?).round())
    }

    fn safe_kbit_per_s(&self) -> Option<f64> {
        Some(self.kbit_per_s()? * SAFE_SHARE)
    }

    fn propose_throughput(&self, situation: &Situation<'_>, is_held: bool) -> Option<usize> {
        let is_loaded = !self.is_empty? || situation.is_live;
        let safe = self.safe_kbit_per_s()?;
        (is_loaded && !is_held).then(|| carried(situation.ladder, safe))
    }

    fn propose_bola(&mut self, situation: &Situation<'_>) -> Option<usize> {
        let safe = self.safe_kbit_per_s();
        let Situation { ladder, goal_ns, buffered_ns, now_ns, .. } = *situation;
        let bola = self.bola.get_or_insert_with(|| Bola::new(ladder, goal_ns));
        bola.choose(ladder, safe.map(|safe| carried(ladder, safe)), (buffered_ns, now_ns))
    }

    /// The highest that arrives before the buffer is empty, with a margin; the lowest if it is empty.
    fn propose_sufficient(&self, situation: &Situation<'_>) -> Option<usize> {
        if self.passing > 0 {
            return None;
        }
        if self.is_empty == Some(true) {
            return Some(0);
        }
        let safe = self.kbit_per_s()? * INSUFFICIENT_SHARE;
        let kbit_per_s = safe * float(situation.buffered_ns) / float(situation.segment_ns.max(1));
        (kbit_per_s > 0.0).then(|| carried(situation.ladder, kbit_per_s))
    }

    pub(super) fn handle_download(&mut self, download: &Download) {
        self.follow_buffer_if_known(download.buffered_ns);
        let took_ms = milliseconds(download.done_ns.saturating_sub(download.first_byte_ns));
        let kbit_per_s = (8.0 * float(download.bytes) / took_ms).round();
        if kbit_per_s.is_finite() {
            self.fast.add(kbit_per_s, WEIGHT_OF_MS * took_ms);
            self.slow.add(kbit_per_s, WEIGHT_OF_MS * took_ms);
        }
        if let Some(bola) = &mut self.bola {
            bola.handle_download(download);
        }
        self.passing = self.passing.saturating_sub(1);
        self.follow_buffer(download.buffered_ns.saturating_add(download.segment_ns));
    }

    /// Chooses the main rule by the buffer, and notes whether it is empty.
    fn follow_buffer(&mut self, buffered_ns: u64) {
        if self.mode == Mode::Dynamic {
            let from_ns = if self.uses_bola { BOLA_FROM_NS / 2 } else { BOLA_FROM_NS };
            self.uses_bola = buffered_ns >= from_ns;
        }
        let was_empty = self.is_empty;
        // Before the first segment it is not empty, but unknown.
        if buffered_ns > EMPTY_NS {
            self.is_empty = Some(false);
        } else if was_empty.is_some() {
            self.is_empty = Some(true);
        }
        if self.is_empty == Some(true)
            && was_empty == Some(false)
            && let Some(bola) = &mut self.bola
        {
            bola.handle_empty();
        }
    }

    fn follow_buffer_if_known(&mut self, buffered_ns: u64) {
        if self.is_empty.is_some() {
            self.follow_buffer(buffered_ns);
        }
    }

    /// Whether an arriving segment takes too long, and less is to come in a lower representation.
    pub(super) fn judge(&mut self, progress: &Progress<'_>) -> Option<usize> {
        let Progress { ladder, place, bytes, received_bytes, .. } = *progress;
        let ((first_ns, first_bytes), bytes) = (progress.first?, bytes?);
        let took_ms = milliseconds(progress.now_ns.saturating_sub(first_ns));
        let is_early = progress.pieces < ABANDON_PIECES || took_ms <= ABANDON_AFTER_MS;
        let is_safe = progress.buffered_ns > progress.goal_ns || received_bytes >= bytes || place == 0;
        if is_early || is_safe || self.abandoned == Some(progress.segment) {
            return None;
        }
        let kbit_per_s = (8.0 * float(received_bytes - first_bytes) / took_ms.max(1.0)).round();
        let takes_s = (float(bytes) * 8.0 / kbit_per_s / 10.0).round() / 100.0;
        if takes_s < float(progress.segment_ns) / 1e9 * ABANDON_DURATIONS {
            return None;
        }
        let lower = carried(ladder, kbit_per_s);
        let rate = |place: usize| float(ladder.get(place).copied().unwrap_or(0));
        let lower_bytes = float(bytes) * rate(lower) / rate(place);
        if float(bytes - received_bytes) <= lower_bytes {
            return None;
        }
        self.abandoned = Some(progress.segment);
        self.held_until_ns = progress.now_ns.saturating_add(ABANDONED_FOR_NS);
        self.history = SwitchHistory::default();
        if let Some(bola) = &mut self.bola {
            bola.change(lower);
            bola.handle_abandoned(ladder, progress.buffered_ns);
        }
        Some(lower)
    }

    pub(super) fn handle_seek(&mut self) {
        self.passing = INSUFFICIENT_AFTER;
        if let Some(bola) = &mut self.bola {
            bola.handle_seek();
        }
    }
}

/// The highest representation up to a bit rate, or the lowest.
fn carried(ladder: &[u64], kbit_per_s: f64) -> usize {
    super::highest(ladder, |rate| float(rate) / 1000.0 <= kbit_per_s)
}

fn milliseconds(ns: u64) -> f64 {
    float(ns) / 1e6
}
