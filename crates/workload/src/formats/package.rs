//! Packaged media: what manifests of all formats are written from, and the facts about live streams.

use model::media::TrackKind;

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
