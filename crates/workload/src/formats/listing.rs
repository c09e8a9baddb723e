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
    /// In the order in which decoders need them; the first comes before the first segment.
    pub(super) initializations: Vec<Resource>,
    /// The media time of the first segment.
    pub(super) start_ns: u64,
    /// The number of the first segment.
    pub(super) first_number: u64,
    pub(super) segments: Vec<ListedSegment>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedSegment {
    pub(super) resource: Resource,
    pub(super) duration_ns: u64,
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
    /// The segment index of a representation, and the resource that it indexes.
    Index { slot: Slot, media: Url, duration_ns: u64 },
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
