//! Joins what manifests list to one presentation.

use model::media::{Presentation, Representation, Segment, Track, TrackKind};
use model::url::Url;

use super::super::error::FormatError;
use super::super::listing::{ListedRepresentation, ListedTrack, Period, Resource};
use super::{Manifest, Resolver, TrackStart};

/// A track with its beginning.
struct Assembled {
    track: Track,
    start: TrackStart,
}

/// The manifest that a resolver has read.
pub(super) fn assemble(resolver: Resolver) -> Result<Manifest, FormatError> {
    let Resolver { format, base, periods, live, read, .. } = resolver;
    let mut manifest = Manifest {
        format,
        presentation: Presentation::default(),
        starts: Vec::new(),
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
        manifest.starts.push(own.start);
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
            let (track, later) = track_of(kind, &[vec![own]], base)?;
            manifest.alternatives.push(track);
            manifest.others.extend(later);
        }
    }
    let first = ladders.first()?.first()?;
    let start = TrackStart { start_ns: first.start_ns, first_number: first.first_number };
    let (track, later) = track_of(kind, &ladders, base)?;
    manifest.others.extend(later);
    Some(Assembled { track, start })
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
    let first = all.iter().map(|own| own.first_number).max().unwrap_or(0);
    let end_of = |own: &ListedRepresentation| own.first_number.saturating_add(own.segments.len() as u64);
    let end = all.iter().map(end_of).min().unwrap_or(0);
    let starts_differ = all.iter().any(|own| own.first_number != first);
    if is_live && (starts_differ || all.iter().any(|own| end_of(own) != end)) && first < end {
        for own in &mut all {
            cut(own, first, end);
        }
        return (all, Vec::new());
    }
    let count_like = |length: usize| all.iter().filter(|own| own.segments.len() == length).count();
    let length = all.iter().map(|own| own.segments.len()).max_by_key(|length| count_like(*length));
    all.into_iter().partition(|own| Some(own.segments.len()) == length)
}

/// Keeps the segments with the numbers from `first` to `end`.
fn cut(own: &mut ListedRepresentation, first: u64, end: u64) {
    let before = usize::try_from(first.saturating_sub(own.first_number)).unwrap_or(usize::MAX);
    let removed = own.segments.drain(..before.min(own.segments.len()));
    let duration = removed.fold(0_u64, |sum, segment| sum.saturating_add(segment.duration_ns));
    own.start_ns = own.start_ns.saturating_add(duration);
    own.first_number = first;
    own.segments.truncate(usize::try_from(end - first).unwrap_or(usize::MAX));
}

/// A track of the ladders of consecutive periods, and the initializations after the first of each
/// representation.
fn track_of(
    kind: TrackKind,
    ladders: &[Vec<ListedRepresentation>],
    base: &Url,
) -> Option<(Track, Vec<Segment>)> {
    let longest = ladders.iter().max_by_key(|ladder| ladder.len())?;
    let durations = ladders.iter().filter_map(|ladder| ladder.first());
    let durations_ns = durations.flat_map(|own| own.segments.iter().map(|segment| segment.duration_ns));
    let mut later: Vec<Segment> = Vec::new();
    let representations = longest.iter().enumerate().map(|(place, own)| {
        let parts = ladders.iter().filter_map(|ladder| ladder.get(place * ladder.len() / longest.len()));
        let parts: Vec<&ListedRepresentation> = parts.collect();
        let mut initializations =
            parts.iter().flat_map(|part| &part.initializations).map(|resource| segment(resource, base));
        let initialization = initializations.next();
        for own in initializations {
            if Some(&own) != initialization.as_ref() && !later.contains(&own) {
                later.push(own);
            }
        }
        let segments = parts.iter().flat_map(|part| &part.segments);
        Representation {
            name: own.name.clone(),
            bits_per_s: own.bits_per_s,
            initialization,
            segments: segments.map(|own| segment(&own.resource, base)).collect(),
        }
    });
    let representations = representations.collect();
    Some((Track { kind, durations_ns: durations_ns.collect(), representations }, later))
}

/// A resource as a player requests it: by its path if it is on the manifest's origin.
fn segment(own: &Resource, base: &Url) -> Segment {
    let url = match own.url.has_origin_of(base) {
        true => own.url.path.clone(),
        false => own.url.to_string(),
    };
    Segment { url, range: own.range, bytes: own.range.map(model::media::ByteRange::length) }
}
