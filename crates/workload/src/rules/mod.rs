//! The rules that choose the next segment's representation (adaptive bit rate), each as in its source.
//!
//! A rule belongs to one track of one player. It sees what the player of its source would see: what was
//! downloaded when, and the buffer of the track.

mod bola;
mod buffer;
mod dashjs;
mod ewma;
mod hlsjs;
mod throughput;

#[cfg(test)]
mod decisions;

use model::media::TrackKind;
use model::player::{Player, Rule};

use dashjs::{Dashjs, Mode};
use hlsjs::Hlsjs;
use throughput::Throughput;

/// What a rule sees when the next segment of its track is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// The bit rates of the track's representations, ascending.
    pub(crate) ladder: &'a [u64],
    pub(crate) kind: TrackKind,
    /// The duration of that segment.
    pub(crate) segment_ns: u64,
    /// Nothing is requested above this level of the buffer.
    pub(crate) goal_ns: u64,
    /// The track's buffer.
    pub(crate) buffered_ns: u64,
    /// The representation of the last requested segment, as its place in the ladder.
    pub(crate) before: Option<usize>,
    pub(crate) is_live: bool,
    pub(crate) now_ns: u64,
}

/// A segment that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Download {
    /// Its representation, as its place in the ladder.
    pub(crate) place: usize,
    pub(crate) bytes: u64,
    /// Its duration.
    pub(crate) segment_ns: u64,
    /// The track's buffer without it.
    pub(crate) buffered_ns: u64,
    pub(crate) requested_ns: u64,
    pub(crate) first_byte_ns: u64,
    pub(crate) done_ns: u64,
}

/// A segment that is arriving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress<'a> {
    pub(crate) ladder: &'a [u64],
    /// Its number in the track.
    pub(crate) segment: usize,
    /// Its representation, as its place in the ladder.
    pub(crate) place: usize,
    /// Its length, if known.
    pub(crate) bytes: Option<u64>,
    pub(crate) received_bytes: u64,
    /// Its duration.
    pub(crate) segment_ns: u64,
    pub(crate) goal_ns: u64,
    /// The track's buffer without it.
    pub(crate) buffered_ns: u64,
    pub(crate) requested_ns: u64,
    /// Its first piece: when it arrived, and its bytes.
    pub(crate) first: Option<(u64, u64)>,
    /// The pieces that have arrived.
    pub(crate) pieces: u32,
    /// Whether any segment has arrived before.
    pub(crate) has_media: bool,
    pub(crate) is_live: bool,
    pub(crate) now_ns: u64,
}

/// The rule of one track.
#[derive(Clone, Debug)]
pub(crate) enum ActiveRule {
    Fixed(u64),
    Throughput(Throughput),
    Buffer,
    Bola,
    Dashjs(Box<Dashjs>),
    Hlsjs(Box<Hlsjs>),
}

impl ActiveRule {
    pub(crate) fn new(rule: Rule) -> ActiveRule {
        let dashjs = |mode| ActiveRule::Dashjs(Box::new(Dashjs::new(mode)));
        match rule {
            Rule::Fixed { bits_per_s } => ActiveRule::Fixed(bits_per_s),
            Rule::Throughput => ActiveRule::Throughput(Throughput::default()),
            Rule::Buffer => ActiveRule::Buffer,
            Rule::Bola => ActiveRule::Bola,
            Rule::Dashjs => dashjs(Mode::Dynamic),
            Rule::DashjsThroughput => dashjs(Mode::Throughput),
            Rule::DashjsBola => dashjs(Mode::Bola),
            Rule::Hlsjs => ActiveRule::Hlsjs(Box::default()),
        }
    }

    /// The representation of the next segment, as its place in the ladder.
    pub(crate) fn choose(&mut self, situation: &Situation<'_>) -> usize {
        match self {
            ActiveRule::Fixed(bits_per_s) => Player::fixed_place(*bits_per_s, situation.ladder),
            ActiveRule::Throughput(throughput) => throughput.choose(situation.ladder),
            ActiveRule::Buffer => buffer::choose(situation),
            ActiveRule::Bola => bola::choose(situation),
            ActiveRule::Dashjs(dashjs) => dashjs.choose(situation),
            ActiveRule::Hlsjs(hlsjs) => hlsjs.choose(situation),
        }
    }

    /// A segment has arrived.
    pub(crate) fn handle_download(&mut self, download: &Download) {
        match self {
            ActiveRule::Fixed(_) | ActiveRule::Buffer | ActiveRule::Bola => {}
            ActiveRule::Throughput(throughput) => {
                throughput.add(download.bytes, download.done_ns.saturating_sub(download.requested_ns));
            }
            ActiveRule::Dashjs(dashjs) => dashjs.handle_download(download),
            ActiveRule::Hlsjs(hlsjs) => hlsjs.handle_download(download),
        }
    }

    /// Whether it may give up a segment that is arriving.
    pub(crate) fn abandons(&self) -> bool {
        matches!(self, ActiveRule::Dashjs(_) | ActiveRule::Hlsjs(_))
    }

    /// The lower representation in which an arriving segment should be requested instead, if any.
    pub(crate) fn judge(&mut self, progress: &Progress<'_>) -> Option<usize> {
        match self {
            ActiveRule::Dashjs(dashjs) => dashjs.judge(progress),
            ActiveRule::Hlsjs(hlsjs) => hlsjs.judge(progress),
            _ => None,
        }
    }

    /// When it wants to judge an arriving segment again although nothing arrives.
    pub(crate) fn next_judgement_ns(&self) -> Option<u64> {
        if let ActiveRule::Hlsjs(hlsjs) = self { hlsjs.next_judgement_ns() } else { None }
    }

    /// Playback has jumped, and the buffer is empty.
    pub(crate) fn handle_seek(&mut self) {
        if let ActiveRule::Dashjs(dashjs) = self {
            dashjs.handle_seek();
        }
    }
}

/// The highest representation that `suits`, or the lowest. Where one suits, all below it suit too.
fn highest(ladder: &[u64], suits: impl Fn(u64) -> bool) -> usize {
    ladder.partition_point(|rate| suits(*rate)).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use model::units::NANOS_PER_S;

    use super::*;

    /// What a new rule chooses for the next of a video's segments of 1 s.
    pub(super) fn chosen(
        rule: Rule,
        ladder_kbits_per_s: &[u64],
        goal_s: u64,
        buffered_ms: u64,
        before: usize,
    ) -> usize {
        let ladder: Vec<u64> = ladder_kbits_per_s.iter().map(|rate| rate * 1000).collect();
        ActiveRule::new(rule).choose(&Situation {
            ladder: &ladder,
            kind: TrackKind::Video,
            segment_ns: NANOS_PER_S,
            goal_ns: goal_s * NANOS_PER_S,
            buffered_ns: buffered_ms * 1_000_000,
            before: Some(before),
            is_live: false,
            now_ns: 0,
        })
    }

    #[test]
    fn a_ladder_of_one_leaves_no_choice() {
        let rules = ["throughput", "buffer", "bola", "dashjs", "dashjs_throughput", "dashjs_bola", "hlsjs"];
        let adaptive = rules.iter().map(|name| Rule::adaptive(name).unwrap());
        for rule in adaptive.chain([Rule::Fixed { bits_per_s: 1_000_000 }]) {
            let mut active = ActiveRule::new(rule);
            for (number, buffered) in [0, 5, 10, 11].into_iter().enumerate() {
                let situation = Situation {
                    ladder: &[1_000_000],
                    kind: TrackKind::Video,
                    segment_ns: 1_000_000_000,
                    goal_ns: 10_000_000_000,
                    buffered_ns: buffered * 1_000_000_000,
                    before: (number > 0).then_some(0),
                    is_live: false,
                    now_ns: 1 + number as u64,
                };
                assert_eq!(active.choose(&situation), 0, "{rule:?}");
            }
        }
    }
}
