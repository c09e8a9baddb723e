//! What a player plays, as it looks it up: the segments of each track by their numbers, and their URLs.

use model::media::{Segment, Track, TrackKind};
use model::player::{MediaResource, PlayerFault};

use crate::url_table::UrlTable;

/// One track.
#[derive(Clone, Debug)]
pub(super) struct TrackMedia {
    pub(super) kind: TrackKind,
    /// The bit rates of the representations, ascending.
    pub(super) ladder: Vec<u64>,
    /// When each segment begins in the media, and when the last one ends.
    pub(super) starts_ns: Vec<u64>,
    /// The segments of each representation.
    pub(super) segments: Vec<Vec<Resource>>,
    /// What a decoder needs of each representation, and from which segment on, ascending.
    pub(super) initializations: Vec<Vec<(usize, Resource)>>,
}

/// A resource to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// Its number among the URLs.
    pub(super) url: u32,
    /// Its length, if known.
    pub(super) bytes: Option<u64>,
}

/// The resource of a segment by its number in the table.
fn resource_of(segment: &Segment, urls: &UrlTable) -> Resource {
    let resource = MediaResource::of(segment);
    Resource { url: urls.find(&resource).unwrap_or(u32::MAX), bytes: resource.bytes }
}

impl TrackMedia {
    pub(super) fn new(track: &Track, urls: &UrlTable) -> TrackMedia {
        let mut end_ns = 0_u64;
        let ends = track.durations_ns.iter().map(|ns| {
            end_ns = end_ns.saturating_add(*ns);
            end_ns
        });
        let representations = &track.representations;
        TrackMedia {
            kind: track.kind,
            ladder: track.ladder_bits_per_s(),
            starts_ns: std::iter::once(0).chain(ends).collect(),
            segments: representations
                .iter()
                .map(|one| one.segments.iter().map(|segment| resource_of(segment, urls)).collect())
                .collect(),
            initializations: representations
                .iter()
                .map(|one| {
                    one.initializations().map(|(first, own)| (first, resource_of(own, urls))).collect()
                })
                .collect(),
        }
    }

    /// A track of a live stream before its segments are added.
    pub(super) fn without_segments(track: &Track) -> TrackMedia {
        TrackMedia {
            kind: track.kind,
            ladder: track.ladder_bits_per_s(),
            starts_ns: vec![0],
            segments: vec![Vec::new(); track.representations.len()],
            initializations: vec![Vec::new(); track.representations.len()],
        }
    }

    /// Adds the segments of a track from one of them on. The ladder stays that of the first manifest: if the
    /// track's has another length, each representation continues with the one at the same share of it.
    ///
    /// # Errors
    /// A segment cannot be requested.
    pub(super) fn extend(
        &mut self,
        track: &Track,
        from: usize,
        mut resource: impl FnMut(&Segment) -> Option<Resource>,
    ) -> Result<(), PlayerFault> {
        let count = self.segments.len();
        for place in 0..count {
            let Some(one) = track.representations.get(place * track.representations.len() / count) else {
                return Err(PlayerFault::ManifestInvalid);
            };
            let all: Vec<(usize, &Segment)> = one.initializations().collect();
            let first = all.partition_point(|(first, _)| *first <= from).saturating_sub(1);
            let needed = all[first..].iter().filter(|_| from < one.segments.len());
            for (first, initialization) in needed {
                let own = resource(initialization).ok_or(PlayerFault::ManifestInvalid)?;
                let known = &mut self.initializations[place];
                if known.last().is_none_or(|(_, known)| *known != own) {
                    known.push((self.segments[place].len() + first.saturating_sub(from), own));
                }
            }
            for segment in one.segments.iter().skip(from) {
                self.segments[place].push(resource(segment).ok_or(PlayerFault::ManifestInvalid)?);
            }
        }
        for ns in track.durations_ns.iter().skip(from) {
            self.starts_ns.push(self.start_ns(self.count()).saturating_add((*ns).max(1)));
        }
        Ok(())
    }

    /// The duration of the longest segment.
    pub(super) fn longest_ns(&self) -> u64 {
        self.starts_ns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The number of segments.
    pub(super) fn count(&self) -> usize {
        self.starts_ns.len().saturating_sub(1)
    }

    /// When a segment begins; that after the last one begins when the last one ends.
    pub(super) fn start_ns(&self, segment: usize) -> u64 {
        self.starts_ns.get(segment).or(self.starts_ns.last()).copied().unwrap_or(0)
    }

    /// The duration of a segment; 0 after the last.
    pub(super) fn duration_ns(&self, segment: usize) -> u64 {
        self.start_ns(segment + 1).saturating_sub(self.start_ns(segment))
    }

    /// The segment to which a time of the media belongs: the first before the beginning, the number of
    /// segments after the end.
    pub(super) fn segment_at(&self, position_ns: u64) -> usize {
        self.starts_ns.partition_point(|start_ns| *start_ns <= position_ns).saturating_sub(1)
    }

    /// The bit rate of a representation.
    pub(super) fn bits_per_s(&self, place: usize) -> u64 {
        self.ladder.get(place).copied().unwrap_or(0)
    }

    /// The resource of a segment in a representation.
    pub(super) fn resource(&self, place: usize, segment: usize) -> Option<Resource> {
        self.segments.get(place)?.get(segment).copied()
    }

    /// What a decoder needs before a segment of a representation.
    pub(super) fn initialization(&self, place: usize, segment: usize) -> Option<Resource> {
        let all = self.initializations.get(place)?;
        let after = all.partition_point(|(first, _)| *first <= segment);
        all.get(after.checked_sub(1)?).map(|(_, resource)| *resource)
    }
}
