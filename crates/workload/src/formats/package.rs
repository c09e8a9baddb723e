//! Packaged media: what manifests of all formats are written from, and the facts about live streams.

use model::media::TrackKind;
use model::number::{float, nearest};
use model::units::NANOS_PER_S;

use super::template::{Template, TemplateValues};
use super::ticks_to_ns;

/// Packaged media on demand, or the window of a live stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Its tracks.
    pub tracks: Vec<PackagedTrack>,
    /// The facts of a live stream; `None` on demand.
    pub live: Option<Live>,
}

/// A track whose segments follow a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagedTrack {
    /// What it contains.
    pub kind: TrackKind,
    /// Ticks in a second; not 0.
    pub timescale: u32,
    /// The number of the first segment.
    pub first_number: u64,
    /// The time of the first segment, in ticks.
    pub first_time: u64,
    /// The duration of each segment, in ticks.
    pub durations: Vec<u64>,
    /// The URLs of its segments, relative to the DASH manifest's folder.
    pub media: Template,
    /// The URL of what a decoder needs first.
    pub initialization: Option<Template>,
    /// The URL of each representation's media playlist (HLS).
    pub playlist: Template,
    /// Its representations, ascending by bit rate.
    pub representations: Vec<PackagedRepresentation>,
}

/// A representation of a packaged track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackagedRepresentation {
    /// Its name, which also fills templates.
    pub id: String,
    /// Its bit rate, in bit/s.
    pub bits_per_s: u64,
    /// Its media type, such as `video/mp4`.
    pub media_type: String,
    /// Its codecs (RFC 6381), such as `avc1.640028`; empty if unknown.
    pub codecs: String,
    /// Width and height of its pictures.
    pub picture: Option<(u32, u32)>,
    /// The sampling rate of its sound, in Hz.
    pub sampling_rate_hz: Option<u32>,
    /// The bit rates of its segments; `None` if their lengths are unknown.
    pub segment_rates: Option<SegmentRates>,
}

impl PackagedRepresentation {
    /// The bit rate that its segments reach, in bit/s; the nominal one if their lengths are unknown.
    pub(super) fn peak_bits_per_s(&self) -> u64 {
        self.segment_rates.map_or(self.bits_per_s, |rates| rates.peak_bits_per_s)
    }
}

/// The bit rates that the lengths and durations of segments give (RFC 8216, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentRates {
    /// The highest of contiguous segments, in bit/s.
    pub peak_bits_per_s: u64,
    /// That of all segments, in bit/s.
    pub average_bits_per_s: u64,
}

impl SegmentRates {
    /// The rates of segments with these durations, in nanoseconds, and lengths, in bytes.
    ///
    /// The peak is that of contiguous segments of 0.5 to 1.5 target durations together; `None` if the
    /// segments have no duration.
    pub fn of(durations_ns: &[u64], lengths: &[u64]) -> Option<SegmentRates> {
        let target_ns = target_s(durations_ns.iter().copied().max()?).saturating_mul(NANOS_PER_S);
        let rate = |bytes: u64, ns: u64| nearest(float(bytes) * 8.0 / (float(ns) / float(NANOS_PER_S)));
        let sum = |all: &[u64]| all.iter().fold(0, |sum: u64, own| sum.saturating_add(*own));
        let total_ns = sum(durations_ns);
        let average_bits_per_s = (total_ns > 0).then(|| rate(sum(lengths), total_ns))?;
        let mut peak_bits_per_s = average_bits_per_s;
        for first in 0..durations_ns.len() {
            let (mut ns, mut bytes) = (0_u64, 0_u64);
            for (duration_ns, length) in durations_ns.iter().zip(lengths).skip(first) {
                (ns, bytes) = (ns.saturating_add(*duration_ns), bytes.saturating_add(*length));
                if ns > target_ns / 2 * 3 {
                    break;
                }
                if ns >= target_ns / 2 {
                    peak_bits_per_s = peak_bits_per_s.max(rate(bytes, ns));
                }
            }
        }
        Some(SegmentRates { peak_bits_per_s, average_bits_per_s })
    }
}

/// The target duration of segments of at most this duration, in whole seconds (RFC 8216, section 4.3.3.1).
pub(super) fn target_s(longest_ns: u64) -> u64 {
    longest_ns.div_ceil(NANOS_PER_S).max(1)
}

/// What a manifest says about a live stream. All times are media times unless their names say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The Unix time of media time 0 (DASH `availabilityStartTime` plus the period's start; HLS
    /// `EXT-X-PROGRAM-DATE-TIME`).
    pub epoch_unix_ns: Option<u64>,
    /// How long segments stay available.
    pub window_ns: Option<u64>,
    /// When to read the manifest again, counted from its arrival; `None` if its URLs follow from the time.
    pub reload_ns: Option<u64>,
    /// How far behind the live edge to play.
    pub delay_ns: Option<u64>,
}

impl PackagedTrack {
    /// The URL of a segment by its place in [`PackagedTrack::durations`].
    pub fn segment_url(&self, representation: &PackagedRepresentation, place: usize) -> String {
        let before = self.durations.iter().take(place);
        let time = before.fold(self.first_time, |sum, ticks| sum.saturating_add(*ticks));
        self.fill(&self.media, representation, place, time)
    }

    /// The URLs of all segments.
    pub fn segment_urls(&self, representation: &PackagedRepresentation) -> Vec<String> {
        let mut time = self.first_time;
        let mut urls = Vec::with_capacity(self.durations.len());
        for (place, ticks) in self.durations.iter().enumerate() {
            urls.push(self.fill(&self.media, representation, place, time));
            time = time.saturating_add(*ticks);
        }
        urls
    }

    /// The URL of what a decoder of a representation needs first.
    pub fn initialization_url(&self, representation: &PackagedRepresentation) -> Option<String> {
        self.initialization.as_ref().map(|template| self.fill(template, representation, 0, 0))
    }

    /// The URL of the media playlist of a representation.
    pub fn playlist_url(&self, representation: &PackagedRepresentation) -> String {
        self.fill(&self.playlist, representation, 0, 0)
    }

    fn fill(
        &self,
        template: &Template,
        representation: &PackagedRepresentation,
        place: usize,
        time: u64,
    ) -> String {
        template.fill(&TemplateValues {
            id: &representation.id,
            bits_per_s: representation.bits_per_s,
            number: self.first_number.saturating_add(place as u64),
            time,
        })
    }

    /// The duration of what is listed, in ticks.
    pub(super) fn total_ticks(&self) -> u64 {
        self.durations.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks))
    }

    /// The duration of what is listed, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        ticks_to_ns(self.total_ticks(), self.timescale.into())
    }

    /// The duration of the longest segment, in nanoseconds.
    pub(super) fn longest_ns(&self) -> u64 {
        ticks_to_ns(self.durations.iter().copied().max().unwrap_or(0), self.timescale.into())
    }
}

impl Package {
    /// The duration of its longest track, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.tracks.iter().map(PackagedTrack::duration_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_about_a_target_duration() {
        const S: u64 = NANOS_PER_S;
        let rates = |durations_ns: &[u64], lengths: &[u64]| {
            let SegmentRates { peak_bits_per_s, average_bits_per_s } =
                SegmentRates::of(durations_ns, lengths).unwrap();
            (peak_bits_per_s, average_bits_per_s)
        };
        assert_eq!(rates(&[2 * S; 3], &[250_000, 500_000, 300_000]), (2_000_000, 1_400_000));
        // The last segment is too short to count alone.
        assert_eq!(rates(&[4 * S, S], &[500_000, 250_000]), (1_200_000, 1_200_000));
        assert_eq!(rates(&[S / 5], &[1_000]), (40_000, 40_000));
        assert_eq!(SegmentRates::of(&[0], &[1]), None);
        assert_eq!(SegmentRates::of(&[], &[]), None);
    }
}
