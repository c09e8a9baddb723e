//! The segments of a representation by `SegmentTemplate` or `SegmentList` (ISO/IEC 23009-1, section 5.3.9).

use model::units::NANOS_PER_S;
use model::url::Url;
use roxmltree::Node;

use super::super::error::{FormatError, Place};
use super::super::listing::{
    ListedRepresentation, ListedSegment, MOST_SEGMENTS, Resource, SegmentCount, SegmentPlace, join,
};
use super::super::template::{Template, TemplateValues};
use super::super::ticks_to_ns;
use super::super::xml::{child, children, number, place};
use super::resource::resource;

/// The time of a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// When it begins.
    pub(super) start_ns: u64,
    /// How long it lasts, if known.
    pub(super) duration_ns: Option<u64>,
    /// How long ago it began, if it is live.
    pub(super) elapsed_ns: Option<u64>,
    /// How long segments stay available.
    pub(super) window_ns: Option<u64>,
}

/// The elements that list the segments of a representation.
pub(super) struct Listed<'a, 'i> {
    /// Their name.
    pub(super) name: &'static str,
    /// From the innermost to the outermost; at least one.
    pub(super) levels: Vec<Node<'a, 'i>>,
    /// What references are relative to.
    pub(super) base: &'a Url,
    /// The time of the period.
    pub(super) span: Span,
}

/// The time and duration of a segment, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    time: u64,
    duration: u64,
}

impl Listed<'_, '_> {
    fn place(&self) -> Place {
        self.levels.first().map_or(Place::Whole, |level| place(*level))
    }

    fn fault(&self, problem: &str) -> FormatError {
        FormatError::at(self.place(), format!("<{}> {problem}", self.name))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, FormatError> {
        let found = self.levels.iter().find(|level| level.attribute(name).is_some());
        found.map_or(Ok(None), |level| number(*level, name))
    }

    fn template(&self, name: &str) -> Result<Option<Template>, FormatError> {
        let found = self.levels.iter().find_map(|level| level.attribute(name));
        let parse =
            |text| Template::parse(text).map_err(|problem| self.fault(&format!("`{name}`: {problem}")));
        found.map(parse).transpose()
    }

    /// The first child of this name, from the innermost level.
    fn child(&self, name: &'static str) -> Option<Node<'_, '_>> {
        self.levels.iter().find_map(|level| child(*level, name))
    }
}

/// Adds initialization and segments to a representation.
pub(super) fn list_segments(
    listed: &Listed<'_, '_>,
    own: &mut ListedRepresentation,
    count: &mut SegmentCount,
) -> Result<(), FormatError> {
    let timescale = listed.number("timescale")?.unwrap_or(1);
    if timescale == 0 {
        return Err(listed.fault("has a `timescale` of 0"));
    }
    let offset = listed.number("presentationTimeOffset")?.unwrap_or(0);
    let first_number = listed.number("startNumber")?.unwrap_or(1);
    let urls: Vec<Node<'_, '_>> = match listed.name {
        "SegmentList" => {
            let level = listed.levels.iter().find(|level| child(**level, "SegmentURL").is_some());
            level.into_iter().flat_map(|level| children(*level, "SegmentURL")).collect()
        }
        _ => Vec::new(),
    };
    let explicit = (listed.name == "SegmentList").then_some(urls.len());
    let (skipped, mut times) = times(listed, timescale, offset, explicit)?;
    if let Some(end) = listed.number("endNumber")? {
        let most = end.saturating_add(1).saturating_sub(first_number.saturating_add(skipped));
        times.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    }
    count.add(times.len(), listed.place())?;
    let segment = |resource, ticks: &Ticks| {
        let since_ns = ticks_to_ns(ticks.time.saturating_sub(offset), timescale);
        let duration_ns = ticks_to_ns(ticks.duration, timescale);
        let start = listed.span.start_ns.saturating_add(since_ns);
        let place = SegmentPlace::of_time(start, duration_ns);
        ListedSegment { resource, place, duration_ns, initialization: Some(0) }
    };
    if explicit.is_some() {
        if let Some(element) = listed.child("Initialization") {
            own.initializations.push(resource(element, "sourceURL", "range", listed.base)?);
        }
        for (element, ticks) in urls.iter().zip(&times) {
            let resource = resource(*element, "media", "mediaRange", listed.base)?;
            own.segments.push(segment(resource, ticks));
        }
        return Ok(());
    }
    let media = listed.template("media")?.ok_or_else(|| listed.fault("has no attribute `media`"))?;
    if times.len() > 1 && !media.names_segments() {
        return Err(listed.fault("needs `$Number$` or `$Time$` in `media`"));
    }
    let (name, bits_per_s) = (own.name.clone(), own.bits_per_s);
    let fill = |template: &Template, number, time| {
        let values = TemplateValues { id: &name, bits_per_s, number, time };
        let url = join(listed.base, &template.fill(&values), listed.place())?;
        Ok::<_, FormatError>(Resource { url, range: None })
    };
    if let Some(template) = listed.template("initialization")? {
        own.initializations.push(fill(&template, 0, 0)?);
    }
    for (number, ticks) in (first_number.saturating_add(skipped)..).zip(&times) {
        own.segments.push(segment(fill(&media, number, ticks.time)?, ticks));
    }
    Ok(())
}

/// The number of segments before the first that is listed, and the times of those that are listed. A
/// `SegmentList` has `explicit` segments.
fn times(
    listed: &Listed<'_, '_>,
    timescale: u64,
    offset: u64,
    explicit: Option<usize>,
) -> Result<(u64, Vec<Ticks>), FormatError> {
    if let Some(timeline) = listed.child("SegmentTimeline") {
        let times = timeline_times(timeline, timescale, offset, listed.span)?;
        return Ok((0, times));
    }
    let duration = listed.number("duration")?;
    let period_ticks = listed.span.duration_ns.map(|ns| to_ticks(ns, timescale));
    let of = |index: u64, duration: u64| Ticks {
        time: offset.saturating_add(index.saturating_mul(duration)),
        duration,
    };
    let Some(duration) = duration.filter(|ticks| *ticks > 0) else {
        // One segment is as long as the period.
        return match explicit {
            None | Some(1) => Ok((0, vec![Ticks { time: offset, duration: period_ticks.unwrap_or(0) }])),
            Some(_) => Err(listed.fault("has neither `duration` nor <SegmentTimeline>")),
        };
    };
    let (first, end) = match (listed.span.elapsed_ns, period_ticks) {
        _ if let Some(count) = explicit => (0, count as u64),
        (Some(elapsed_ns), period) => {
            let end = to_ticks(elapsed_ns, timescale) / duration;
            let end = period.map_or(end, |period| end.min(segments_within(period, duration, timescale)));
            let window_ns = listed.span.window_ns.unwrap_or(elapsed_ns);
            let first = to_ticks(elapsed_ns.saturating_sub(window_ns), timescale) / duration;
            (first, end)
        }
        (None, Some(period)) => (0, segments_within(period, duration, timescale)),
        (None, None) => return Err(listed.fault("has a `duration`, but the period has no end")),
    };
    if end.saturating_sub(first) > MOST_SEGMENTS as u64 {
        return Err(listed.fault(&format!("has more than {MOST_SEGMENTS} segments")));
    }
    let mut times: Vec<Ticks> = (first..end).map(|index| of(index, duration)).collect();
    // The last segment of a period ends with it.
    if let (Some(last), Some(period)) = (times.last_mut(), period_ticks) {
        last.duration = period.saturating_sub(last.time - offset).clamp(1, duration);
    }
    Ok((first, times))
}

/// The segments that begin in a period; a rest below a millisecond is a rounding error of its duration.
fn segments_within(period: u64, duration: u64, timescale: u64) -> u64 {
    period.saturating_sub(timescale / 1_000).div_ceil(duration)
}

fn to_ticks(ns: u64, timescale: u64) -> u64 {
    let ticks = u128::from(ns) * u128::from(timescale) / u128::from(NANOS_PER_S);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

fn timeline_times(
    timeline: Node<'_, '_>,
    timescale: u64,
    offset: u64,
    span: Span,
) -> Result<Vec<Ticks>, FormatError> {
    let elements: Vec<Node<'_, '_>> = children(timeline, "S").collect();
    let mut times = Vec::new();
    let mut time = 0;
    for (place_in, element) in elements.iter().enumerate() {
        time = number(*element, "t")?.unwrap_or(time);
        let duration = number(*element, "d")?.filter(|ticks| *ticks > 0);
        let duration =
            duration.ok_or_else(|| FormatError::at(place(*element), "<S> has no positive duration `d`"))?;
        let repeat = element.attribute("r").unwrap_or("0");
        let fault = || FormatError::value(place(*element), "r", repeat, "a whole number");
        let repeat: i64 = repeat.trim().parse().map_err(|_| fault())?;
        let count = match u64::try_from(repeat) {
            Ok(repeat) => repeat.saturating_add(1),
            // Until the next entry, the end of the period, or now.
            Err(_) => {
                let next = elements.get(place_in + 1).map(|next| number(*next, "t")).transpose()?.flatten();
                let period = span.duration_ns.map(|ns| to_ticks(ns, timescale));
                let now = span.elapsed_ns.map(|ns| to_ticks(ns, timescale));
                let whole = |end: u64| end.saturating_sub(time) / duration;
                let limit = |ticks: u64| ticks.saturating_add(offset).saturating_sub(time);
                match (next, period, now) {
                    (Some(next), _, _) => whole(next.saturating_add(duration / 2)),
                    (None, Some(period), None) => segments_within(limit(period), duration, timescale),
                    (None, _, Some(now)) => limit(now) / duration,
                    (None, None, None) => {
                        let problem = "<S> repeats until the end of the period, which has none";
                        return Err(FormatError::at(place(*element), problem));
                    }
                }
            }
        };
        if count > (MOST_SEGMENTS - times.len()) as u64 {
            let problem = format!("<S> makes more than {MOST_SEGMENTS} segments");
            return Err(FormatError::at(place(*element), problem));
        }
        for _ in 0..count {
            times.push(Ticks { time, duration });
            time = time.saturating_add(duration);
        }
    }
    Ok(times)
}
