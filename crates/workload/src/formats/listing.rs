//! What manifests list, before everything that they refer to is known.

use model::media::{ByteRange, TrackKind};
use model::url::Url;

use super::error::{FormatError, Place};
use super::shown;

/// The most segments that the manifests of a presentation may list, all representations together.
pub(super) const MOST_SEGMENTS: usize = 200_000;

/// Tracks that play at the same time; periods play one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Period {
    pub(super) tracks: Vec<ListedTrack>,
}

/// A track as a manifest lists it.
#[derive(Clone, Debug)]
pub(super) struct ListedTrack {
    /// `None` for what is neither sound nor pictures of the presentation: subtitles, thumbnails, trick modes.
    pub(super) kind: Option<TrackKind>,
    /// Whether the manifest prefers it to others of its kind.
    pub(super) is_main: bool,
    pub(super) representations: Vec<ListedRepresentation>,
}

/// A representation as a manifest lists it.
#[derive(Clone, Debug, Default)]
pub(super) struct ListedRepresentation {
    pub(super) name: String,
    pub(super) bits_per_s: u64,
    /// What its segments refer to.
    pub(super) initializations: Vec<Resource>,
    pub(super) segments: Vec<ListedSegment>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedSegment {
    pub(super) resource: Resource,
    pub(super) place: SegmentPlace,
    pub(super) duration_ns: u64,
    /// Which of its representation's initializations a decoder needs first, if that is listed.
    pub(super) initialization: Option<usize>,
}

/// Where a segment is in its stream. By it, a live client aligns a manifest that it reads again with what it
/// knows.
///
/// Numbers and URLs of an MPD do not suffice: a `SegmentTimeline` need not count, and numbers may begin again
/// with each period. Playlists state no times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPlace {
    /// In MPDs the media time at which it begins, in nanoseconds; otherwise its number: by
    /// `EXT-X-MEDIA-SEQUENCE`, or the fragment's.
    pub start: u64,
    /// Its duration in nanoseconds, or 1 number.
    pub length: u64,
    /// Of a numbered segment whose media time is known: when it begins, and its duration, in nanoseconds.
    pub time_ns: Option<(u64, u64)>,
}

impl SegmentPlace {
    /// That of a segment with a number.
    pub(super) const fn of_number(number: u64) -> SegmentPlace {
        SegmentPlace { start: number, length: 1, time_ns: None }
    }

    /// That of a segment by its media time alone, in nanoseconds.
    pub(super) const fn of_time(start_ns: u64, duration_ns: u64) -> SegmentPlace {
        SegmentPlace { start: start_ns, length: duration_ns, time_ns: None }
    }

    /// Rounding and new period starts may shift times: less than a quarter of a segment is no difference.
    const fn tolerance(self) -> u64 {
        self.length / 4
    }

    /// Whether it begins after another segment.
    pub const fn is_after(self, other: SegmentPlace) -> bool {
        self.start > other.start.saturating_add(other.tolerance())
    }

    /// Whether it begins after the end of another segment, or before it in media time: something between them
    /// is missing.
    ///
    /// Numbers may be left out without a gap in the media, and media without one in the numbers.
    pub const fn leaves_gap(self, other: SegmentPlace) -> bool {
        if let (Some((start_ns, _)), Some((before_ns, duration_ns))) = (self.time_ns, other.time_ns) {
            let end_ns = before_ns.saturating_add(duration_ns);
            return start_ns < before_ns || start_ns > end_ns.saturating_add(duration_ns / 4);
        }
        let end = other.start.saturating_add(other.length);
        self.start > end.saturating_add(other.tolerance())
    }
}

/// A resource, or a range of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) url: Url,
    pub(super) range: Option<ByteRange>,
}

/// What has to be read before a representation is known.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) resource: Resource,
    pub(super) purpose: Purpose,
}

/// Why something has to be read.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// The segment index of a representation, the resource that it indexes, and the time of its period.
    Index { slot: Slot, media: Url, start_ns: u64, duration_ns: u64 },
    /// The media playlist of a representation.
    Playlist { slot: Slot },
    /// The bootstrap of a representation whose fragments' URLs begin so.
    Bootstrap { slot: Slot, media: Url },
    /// A manifest of this bit rate in a set.
    Manifest { bits_per_s: u64 },
}

/// The place of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) period: usize,
    pub(super) track: usize,
    pub(super) representation: usize,
}

/// The URL of a reference in a manifest.
pub(super) fn join(base: &Url, reference: &str, place: Place) -> Result<Url, FormatError> {
    base.join(reference).ok_or_else(|| {
        let (reference, base) = (shown(reference), shown(&base.to_string()));
        let problem = format!("`{reference}` is not a reference to an http or https URL from `{base}`");
        FormatError::at(place, problem)
    })
}

/// Counts segments against [`MOST_SEGMENTS`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentCount(usize);

impl SegmentCount {
    /// Counts `more`.
    pub(super) fn add(&mut self, more: usize, place: Place) -> Result<(), FormatError> {
        self.0 = self.0.saturating_add(more);
        if self.0 > MOST_SEGMENTS {
            let problem = format!("more than {MOST_SEGMENTS} segments, the most that h123 reads");
            return Err(FormatError::at(place, problem));
        }
        Ok(())
    }
}
