//! Joins what manifests list to one presentation.

use model::media::{LaterInitialization, Presentation, Representation, Segment, Track, TrackKind};
use model::url::Url;

use super::super::error::FormatError;
use super::super::listing::{ListedRepresentation, ListedSegment, ListedTrack, Period, Resource};
use super::{Manifest, Resolver, SegmentPlace};

/// A track with the places of its segments.
struct Assembled {
    track: Track,
    places: Vec<SegmentPlace>,
}

/// The manifest that a resolver has read.
pub(super) fn assemble(resolver: Resolver) -> Result<Manifest, FormatError> {
    let Resolver { format, base, periods, live, read, .. } = resolver;
    let mut manifest = Manifest {
        format,
        presentation: Presentation::default(),
        places: Vec::new(),
        alternatives: Vec::new(),
        others: Vec::new(),
        references: read.iter().map(|own| segment(own, &base)).collect(),
        live,
    };
    // The tracks of each kind, by period.
    let mut chosen: Vec<(TrackKind, Vec<ListedTrack>)> =
        [TrackKind::Audio, TrackKind::Video].map(|kind| (kind, Vec::new())).into();
    for mut period in periods {
        for (kind, parts) in &mut chosen {
            parts.extend(choose(&mut period, *kind));
        }
        for own in period.tracks {
            add_rest(&mut manifest, own, &base);
        }
    }
    for (kind, parts) in chosen {
        let Some(own) = join_periods(&mut manifest, kind, parts, &base) else { continue };
        manifest.presentation.tracks.push(own.track);
        manifest.places.push(own.places);
    }
    let is_empty = manifest.presentation.tracks.is_empty() && manifest.alternatives.is_empty();
    if is_empty && manifest.others.is_empty() && manifest.live.is_none() {
        return Err(FormatError::new("the manifest lists no segment"));
    }
    Ok(manifest)
}

/// Removes the track of a kind that the manifest prefers, or else the first.
fn choose(period: &mut Period, kind: TrackKind) -> Option<ListedTrack> {
    let of_kind = |own: &ListedTrack| own.kind == Some(kind);
    let main = period.tracks.iter().position(|own| of_kind(own) && own.is_main);
    let place = main.or_else(|| period.tracks.iter().position(of_kind))?;
    Some(period.tracks.remove(place))
}

/// Tracks that a player does not choose.
fn add_rest(manifest: &mut Manifest, own: ListedTrack, base: &Url) {
    match own.kind {
        Some(kind) => {
            let Some(assembled) = join_periods(manifest, kind, vec![own], base) else { return };
            manifest.alternatives.push(assembled.track);
        }
        None => {
            let representations = own.representations.iter();
            let resources = representations.flat_map(|own| {
                own.initializations.iter().chain(own.segments.iter().map(|segment| &segment.resource))
            });
            manifest.others.extend(resources.map(|resource| segment(resource, base)));
        }
    }
}

/// One track of its parts in consecutive periods. Each period has its own ladder; a representation of the
/// longest ladder continues with the one at the same share of the others.
fn join_periods(
    manifest: &mut Manifest,
    kind: TrackKind,
    parts: Vec<ListedTrack>,
    base: &Url,
) -> Option<Assembled> {
    let mut ladders = Vec::new();
    for part in parts {
        let (ladder, rest) = align(part.representations, manifest.live.is_some());
        ladders.extend((!ladder.is_empty()).then_some(ladder));
        for own in rest {
            manifest.alternatives.push(track_of(kind, &[vec![own]], base)?);
        }
    }
    let segments = ladders.iter().filter_map(|ladder| ladder.first()).flat_map(|own| &own.segments);
    let places = segments.map(|own| own.place).collect();
    let track = track_of(kind, &ladders, base)?;
    Some(Assembled { track, places })
}

/// The representations with the same segments, ascending by bit rate, and those that cannot be joined to
/// them: a player could not change between them at segments. Live playlists that were read at different times
/// are cut to the segments that all of them have.
fn align(
    mut all: Vec<ListedRepresentation>,
    is_live: bool,
) -> (Vec<ListedRepresentation>, Vec<ListedRepresentation>) {
    all.retain(|own| !own.segments.is_empty());
    all.sort_by_key(|own| own.bits_per_s);
    if is_live {
        cut(&mut all);
    }
    let count_like = |length: usize| all.iter().filter(|own| own.segments.len() == length).count();
    let length = all.iter().map(|own| own.segments.len()).max_by_key(|length| count_like(*length));
    all.into_iter().partition(|own| Some(own.segments.len()) == length)
}

/// Keeps the segments between the latest first one and the earliest last one, if these overlap.
fn cut(all: &mut [ListedRepresentation]) {
    let places = |of: fn(&[ListedSegment]) -> Option<&ListedSegment>| {
        all.iter().filter_map(move |own| of(&own.segments)).map(|segment| segment.place)
    };
    let first = places(<[ListedSegment]>::first).max_by_key(|place| place.start);
    let last = places(<[ListedSegment]>::last).min_by_key(|place| place.start);
    let (Some(first), Some(last)) = (first, last) else { return };
    if first.is_after(last) {
        return;
    }
    for own in all {
        own.segments.retain(|segment| !first.is_after(segment.place) && !segment.place.is_after(last));
    }
}

/// A track of the ladders of consecutive periods.
fn track_of(kind: TrackKind, ladders: &[Vec<ListedRepresentation>], base: &Url) -> Option<Track> {
    let longest = ladders.iter().max_by_key(|ladder| ladder.len())?;
    let durations = ladders.iter().filter_map(|ladder| ladder.first());
    let durations_ns = durations.flat_map(|own| own.segments.iter().map(|segment| segment.duration_ns));
    let representations = longest.iter().enumerate().map(|(place, own)| {
        let parts = ladders.iter().filter_map(|ladder| ladder.get(place * ladder.len() / longest.len()));
        joined(own, parts, base)
    });
    let representations = representations.collect();
    Some(Track { kind, durations_ns: durations_ns.collect(), representations })
}

/// A representation with the segments of its parts, and what these need.
fn joined<'a>(
    own: &ListedRepresentation,
    parts: impl Iterator<Item = &'a ListedRepresentation>,
    base: &Url,
) -> Representation {
    let mut joined = Representation {
        name: own.name.clone(),
        bits_per_s: own.bits_per_s,
        initialization: None,
        later_initializations: Vec::new(),
        segments: Vec::new(),
    };
    let mut known = None;
    for (part, own) in parts.flat_map(|part| part.segments.iter().map(move |own| (part, own))) {
        let needed = own.initialization.and_then(|place| part.initializations.get(place));
        if let Some(needed) = needed.filter(|needed| known != Some(*needed)) {
            let (first_segment, resource) = (joined.segments.len(), segment(needed, base));
            match first_segment {
                0 => joined.initialization = Some(resource),
                _ => joined.later_initializations.push(LaterInitialization { first_segment, resource }),
            }
            known = Some(needed);
        }
        joined.segments.push(segment(&own.resource, base));
    }
    joined
}

/// A resource as a player requests it: by its path if it is on the manifest's origin.
fn segment(own: &Resource, base: &Url) -> Segment {
    let url = match own.url.has_origin_of(base) {
        true => own.url.path.clone(),
        false => own.url.to_string(),
    };
    Segment { url, range: own.range, bytes: own.range.map(model::media::ByteRange::length) }
}
