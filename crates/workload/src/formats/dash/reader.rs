//! Reads MPDs: periods, adaptation sets and representations, and what these inherit.

use model::media::{ByteRange, TrackKind};
use model::url::Url;
use roxmltree::Node;

use super::super::error::{FormatError, Place};
use super::super::listing::{
    ListedRepresentation, ListedTrack, Period, Purpose, Reference, Resource, SegmentCount, Slot, join,
};
use super::super::package::Live;
use super::super::time::{parse_date, parse_duration};
use super::super::xml::{child, children, number, parse, place};
use super::resource::{range, resource};
use super::segments::{Listed, Span, list_segments};

/// The most elements of each kind: periods, sets of a period, representations of a set.
const MOST_ELEMENTS: usize = 10_000;
/// The bytes of a file in which its segment index is looked for.
const HEAD_BYTES: u64 = 64 << 10;

/// An MPD as it was read.
pub(in super::super) struct Mpd {
    pub(in super::super) periods: Vec<Period>,
    pub(in super::super) references: Vec<Reference>,
    pub(in super::super) live: Option<Live>,
}

/// What elements inherit.
#[derive(Clone)]
struct Inherited<'a, 'i> {
    base: Url,
    /// From the outermost to the innermost.
    elements: Vec<Node<'a, 'i>>,
    span: Span,
}

/// Reads an MPD of this URL at this Unix time.
pub(in super::super) fn read_mpd(
    text: &str,
    url: &Url,
    now_unix_ns: u64,
    count: &mut SegmentCount,
) -> Result<Mpd, FormatError> {
    let document = parse(text)?;
    let root = document.root_element();
    if root.tag_name().name() != "MPD" {
        let problem = format!("<{}> is not the element <MPD> of a DASH manifest", root.tag_name().name());
        return Err(FormatError::at(place(root), problem));
    }
    let live = live(root)?;
    let total_ns = duration(root, "mediaPresentationDuration")?;
    let mut mpd = Mpd { periods: Vec::new(), references: Vec::new(), live };
    let base = base_url(root, url)?;
    let elements: Vec<Node<'_, '_>> = children(root, "Period").collect();
    check_count(root, "periods", elements.len())?;
    let mut end_ns = Some(0);
    for (number, period) in elements.iter().enumerate() {
        // Without a start, a period begins where the one before ends.
        let start_ns = duration(*period, "start")?.or(end_ns).unwrap_or(0);
        let next_ns = elements.get(number + 1).map(|next| duration(*next, "start")).transpose()?.flatten();
        end_ns = match duration(*period, "duration")? {
            Some(own) => Some(start_ns.saturating_add(own)),
            None => next_ns.or(total_ns),
        };
        let now_ns = live.map(|live| now_unix_ns.saturating_sub(live.epoch_unix_ns.unwrap_or(0)));
        if number > 0 && now_ns.is_some_and(|now_ns| now_ns < start_ns) {
            // Announced, and without segments until it begins.
            break;
        }
        let elapsed_ns = now_ns.map(|now_ns| now_ns.saturating_sub(start_ns));
        let span = Span {
            start_ns,
            duration_ns: end_ns.map(|end| end.saturating_sub(start_ns)),
            elapsed_ns,
            window_ns: live.and_then(|live| live.window_ns),
        };
        let base = base_url(*period, &base)?;
        let inherited = Inherited { base, elements: vec![*period], span };
        read_period(&mut mpd, number, *period, &inherited, count)?;
    }
    if mpd.periods.iter().all(|period| period.tracks.is_empty()) {
        return Err(FormatError::at(place(root), "the MPD has no representation"));
    }
    Ok(mpd)
}

fn live(root: Node<'_, '_>) -> Result<Option<Live>, FormatError> {
    if root.attribute("type") != Some("dynamic") {
        return Ok(None);
    }
    let Some(text) = root.attribute("availabilityStartTime") else {
        return Err(FormatError::at(place(root), "a dynamic MPD needs `availabilityStartTime`"));
    };
    let expected = "a date and time such as `2026-01-01T00:00:00Z`";
    let fault = || FormatError::value(place(root), "availabilityStartTime", text, expected);
    Ok(Some(Live {
        epoch_unix_ns: Some(parse_date(text).ok_or_else(fault)?),
        window_ns: duration(root, "timeShiftBufferDepth")?,
        reload_ns: duration(root, "minimumUpdatePeriod")?,
        delay_ns: duration(root, "suggestedPresentationDelay")?,
    }))
}

fn read_period(
    mpd: &mut Mpd,
    period: usize,
    element: Node<'_, '_>,
    inherited: &Inherited<'_, '_>,
    count: &mut SegmentCount,
) -> Result<(), FormatError> {
    if element.attributes().any(|own| own.name() == "href") {
        let problem = "the period is in another document (`xlink:href`), which is not supported";
        return Err(FormatError::at(place(element), problem));
    }
    let mut tracks = Vec::new();
    let sets: Vec<Node<'_, '_>> = children(element, "AdaptationSet").collect();
    check_count(element, "adaptation sets", sets.len())?;
    for set in sets {
        let mut inherited = inherited.clone();
        inherited.base = base_url(set, &inherited.base)?;
        inherited.elements.push(set);
        let representations: Vec<Node<'_, '_>> = children(set, "Representation").collect();
        check_count(set, "representations", representations.len())?;
        let Some(first) = representations.first() else { continue };
        let slot = Slot { period, track: tracks.len(), representation: 0 };
        let mut track =
            ListedTrack { kind: kind(set, *first), is_main: is_main(set), representations: Vec::new() };
        for (number, representation) in representations.iter().enumerate() {
            let slot = Slot { representation: number, ..slot };
            let own = read_representation(mpd, slot, *representation, &inherited, count)?;
            track.representations.push(own);
        }
        tracks.push(track);
    }
    mpd.periods.push(Period { tracks });
    Ok(())
}

fn read_representation(
    mpd: &mut Mpd,
    slot: Slot,
    element: Node<'_, '_>,
    inherited: &Inherited<'_, '_>,
    count: &mut SegmentCount,
) -> Result<ListedRepresentation, FormatError> {
    let mut inherited = inherited.clone();
    inherited.base = base_url(element, &inherited.base)?;
    inherited.elements.push(element);
    let mut own = ListedRepresentation {
        name: element.attribute("id").unwrap_or_default().to_owned(),
        bits_per_s: number(element, "bandwidth")?.unwrap_or(0),
        ..ListedRepresentation::default()
    };
    let of = |name: &'static str| {
        let levels = inherited.elements.iter().rev();
        levels.filter_map(|level| child(*level, name)).collect::<Vec<_>>()
    };
    let all = [("SegmentTemplate", of("SegmentTemplate")), ("SegmentList", of("SegmentList"))];
    for (name, levels) in all {
        if !levels.is_empty() {
            let listed = Listed { name, levels, base: &inherited.base, span: inherited.span };
            list_segments(&listed, &mut own, count)?;
            return Ok(own);
        }
    }
    count.add(1, place(element))?;
    let reference = whole_file(slot, &of("SegmentBase"), &inherited, &mut own)?;
    mpd.references.push(reference);
    Ok(own)
}

/// A representation that is one file: its index lists its segments.
fn whole_file(
    slot: Slot,
    levels: &[Node<'_, '_>],
    inherited: &Inherited<'_, '_>,
    own: &mut ListedRepresentation,
) -> Result<Reference, FormatError> {
    let base = &inherited.base;
    let (start_ns, duration_ns) = (inherited.span.start_ns, inherited.span.duration_ns.unwrap_or(0));
    let initialization = levels.iter().find_map(|level| child(*level, "Initialization"));
    if let Some(element) = initialization {
        own.initializations.push(resource(element, "sourceURL", "range", base)?);
    }
    let index = levels.iter().find_map(|level| level.attribute("indexRange").map(|text| (*level, text)));
    let range = match index {
        Some((level, text)) => Some(range(level, "indexRange", text)?),
        None => ByteRange::of_length(0, HEAD_BYTES),
    };
    let resource = Resource { url: base.clone(), range };
    Ok(Reference { resource, purpose: Purpose::Index { slot, media: base.clone(), start_ns, duration_ns } })
}

/// The base of an element's references: its first `BaseURL`.
fn base_url(element: Node<'_, '_>, inherited: &Url) -> Result<Url, FormatError> {
    match child(element, "BaseURL") {
        Some(own) => join(inherited, own.text().unwrap_or_default(), place(own)),
        None => Ok(inherited.clone()),
    }
}

fn kind(set: Node<'_, '_>, representation: Node<'_, '_>) -> Option<TrackKind> {
    const TRICK_MODE: &str = "http://dashif.org/guidelines/trickmode";
    let is_trick_mode = |own: Node<'_, '_>| own.attribute("schemeIdUri") == Some(TRICK_MODE);
    if children(set, "EssentialProperty").any(is_trick_mode) {
        return None;
    }
    let types = [
        set.attribute("contentType"),
        set.attribute("mimeType"),
        representation.attribute("mimeType"),
        child(set, "ContentComponent").and_then(|own| own.attribute("contentType")),
    ];
    match types.into_iter().flatten().next()?.split('/').next()? {
        "video" => Some(TrackKind::Video),
        "audio" => Some(TrackKind::Audio),
        _ => None,
    }
}

fn is_main(set: Node<'_, '_>) -> bool {
    children(set, "Role").any(|role| role.attribute("value") == Some("main"))
}

fn duration(element: Node<'_, '_>, name: &str) -> Result<Option<u64>, FormatError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    let fault = || FormatError::value(place(element), name, text, "a duration such as `PT3.2S`");
    parse_duration(text).map(Some).ok_or_else(fault)
}

fn check_count(element: Node<'_, '_>, what: &str, count: usize) -> Result<(), FormatError> {
    if count > MOST_ELEMENTS {
        let place: Place = place(element);
        return Err(FormatError::at(place, format!("more than {MOST_ELEMENTS} {what}")));
    }
    Ok(())
}
