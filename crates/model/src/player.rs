//! A video as an adaptive player plays it over HTTP: its representations, the player's buffer, the rule that
//! chooses, and the rows that playing it leaves behind.

use serde::{Deserialize, Serialize};

use crate::number::float;
use crate::units::{self, NANOS_PER_S, format_ns};

/// A video and how it is played.
///
/// Every representation has a constant bit rate, so that a segment of it is the path `/bytes/N` with N bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// The representations, in bit/s of media, ascending and each once.
    pub ladder_bits_per_s: Vec<u64>,
    /// How much media a segment holds.
    pub segment_ns: u64,
    /// How many segments the video has.
    pub segments: u32,
    /// Nothing is requested while more media than this is buffered.
    pub goal_ns: u64,
    /// Playback begins, and resumes after a stall, when this much media is buffered or all has arrived.
    pub startup_ns: u64,
    /// What chooses the representation of each segment.
    pub rule: Rule,
}

/// What chooses the representation of the next segment (an ABR rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Rule {
    /// Always the same.
    Fixed {
        /// The representation, one of the ladder, in bit/s.
        bits_per_s: u64,
    },
    /// The highest that 85 % of the throughput carry: the harmonic mean of the last five segments.
    ///
    /// The mean is that of the rate-based rule in Yin et al. (SIGCOMM 2015), the margin FESTIVE's (Jiang et
    /// al., CoNEXT 2012).
    Throughput,
    /// BBA-0: a map from the media buffered to a bit rate (Huang et al., SIGCOMM 2014, algorithm 1).
    Buffer,
    /// BOLA-BASIC: the utility of a representation against the room that it takes (Spiteri et al., INFOCOM
    /// 2016).
    Bola,
}

impl Rule {
    /// The names of all rules, as studies write them.
    pub const NAMES: [&str; 4] = ["fixed", "throughput", "buffer", "bola"];

    /// The name used in studies and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Fixed { .. } => "fixed",
            Rule::Throughput => "throughput",
            Rule::Buffer => "buffer",
            Rule::Bola => "bola",
        }
    }

    /// In words, such as `throughput rule` or `fixed at 8 Mbit/s`.
    pub fn describe(self) -> String {
        match self {
            Rule::Fixed { bits_per_s } => format!("fixed at {}", rate(bits_per_s)),
            other => format!("{} rule", other.name()),
        }
    }
}

impl Player {
    /// The bit rate of the lowest representation that it plays.
    pub fn least_bits_per_s(&self) -> u64 {
        match self.rule {
            Rule::Fixed { bits_per_s } => bits_per_s,
            Rule::Throughput | Rule::Buffer | Rule::Bola => {
                self.ladder_bits_per_s.first().copied().unwrap_or(0)
            }
        }
    }

    /// How long the whole video plays, without any stall.
    pub fn media_ns(&self) -> u64 {
        self.segment_ns.saturating_mul(u64::from(self.segments))
    }

    /// The length of a segment of a representation: bit rate × duration, in whole bytes.
    pub fn segment_bytes(&self, bits_per_s: u64) -> u64 {
        let bits = u128::from(bits_per_s) * u128::from(self.segment_ns) / u128::from(NANOS_PER_S);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// The path of every representation's segments, in the order of the ladder.
    pub fn paths(&self) -> Vec<String> {
        self.ladder_bits_per_s.iter().map(|rate| format!("/bytes/{}", self.segment_bytes(*rate))).collect()
    }

    /// In words, such as `30 segments of 2 s at 1, 2.5 or 8 Mbit/s, throughput rule, buffer 12 s`.
    pub fn describe(&self) -> String {
        format!(
            "{} segments of {} at {}, {}, buffer {}",
            self.segments,
            format_ns(self.segment_ns),
            self.ladder(),
            self.rule.describe(),
            format_ns(self.goal_ns)
        )
    }

    /// The representations in words, such as `1, 2.5 or 8 Mbit/s`.
    pub fn ladder(&self) -> String {
        let rates: Vec<String> = self.ladder_bits_per_s.iter().map(|bits| rate(*bits)).collect();
        let Some(last) = rates.last() else { return String::new() };
        // A unit is next to the last number that has it.
        let short = |pair: &[String]| match (pair[0].split_once(' '), pair[1].split_once(' ')) {
            (Some((number, unit)), Some((_, next))) if unit == next => number.to_owned(),
            _ => pair[0].clone(),
        };
        let rest: Vec<String> = rates.windows(2).map(short).collect();
        if rest.is_empty() { last.clone() } else { format!("{} or {last}", rest.join(", ")) }
    }
}

fn rate(bits_per_s: u64) -> String {
    units::format_rate(float(bits_per_s))
}

/// Something that happened to a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerEvent {
    /// The client group.
    pub group: u16,
    /// The client's number within the group.
    pub client: u32,
    /// When, in nanoseconds since the run's start, on the clock of the rows of requests.
    pub at_ns: u64,
    /// What.
    pub what: PlayerEventKind,
    /// The segment that it is about, counted from 0: of playback, the one whose media is shown or due to be
    /// shown.
    pub segment: u32,
    /// The representation of that segment, in bit/s of media.
    pub bits_per_s: u64,
    /// Media buffered from then on: arrived and not yet shown.
    pub buffered_ns: u64,
}

/// What happened to a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerEventKind {
    /// It wanted a segment.
    #[default]
    Requested,
    /// A segment was there, whole.
    Arrived,
    /// Playback began, or went on after a stall.
    Playing,
    /// Playback stood still: the buffer was empty before the video's end.
    Stalled,
    /// All media was shown.
    Ended,
    /// The request for a segment failed.
    Failed,
}

impl PlayerEventKind {
    /// The name used in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            PlayerEventKind::Requested => "requested",
            PlayerEventKind::Arrived => "arrived",
            PlayerEventKind::Playing => "playing",
            PlayerEventKind::Stalled => "stalled",
            PlayerEventKind::Ended => "ended",
            PlayerEventKind::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_as_long_as_their_bit_rate_says() {
        let player = Player {
            ladder_bits_per_s: vec![1_000_000, 2_500_000, 8_000_000],
            segment_ns: 500_000_000,
            segments: 16,
            goal_ns: 2_000_000_000,
            startup_ns: 500_000_000,
            rule: Rule::Fixed { bits_per_s: 8_000_000 },
        };
        assert_eq!(player.paths(), ["/bytes/62500", "/bytes/156250", "/bytes/500000"]);
        assert_eq!(player.media_ns(), 8_000_000_000);
        let words = "16 segments of 500 ms at 1, 2.5 or 8 Mbit/s, fixed at 8 Mbit/s, buffer 2 s";
        assert_eq!(player.describe(), words);
        let mixed = Player { ladder_bits_per_s: vec![500_000, 1_000_000], rule: Rule::Bola, ..player };
        assert_eq!(mixed.ladder(), "500 kbit/s or 1 Mbit/s");
        let many = Player { ladder_bits_per_s: vec![300_000, 700_000, 1_500_000, 3_000_000], ..mixed };
        assert_eq!(many.ladder(), "300, 700 kbit/s, 1.5 or 3 Mbit/s");
    }
}
