//! What the load did over time: CPU, memory, bandwidth and sockets by state of one run of each cell, with its periods.

use std::collections::BTreeSet;

use model::monitor::Quantity;

use super::panel::{self, Panel, WIDTH};
use super::runs::axis_title;
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Point, Rect, Scale, SideAxis, at, fit};
use crate::text::{self, clean_line};
use crate::timeline::{RunTimeline, Track};
use crate::view::{Context, Row, View, status_name};

const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 40.0;
/// A track's title, its plot, and what is between it and the next.
const TITLE: f64 = 16.0;
const PLOT: f64 = 52.0;
const GAP: f64 = 10.0;
const NOTE: f64 = 17.0;
/// Runs with fewer rounds show nothing that a table does not.
const ENOUGH: usize = 8;
/// Points of all lines together, and of each.
const MOST_POINTS: usize = 4_000;
const MOST_POINTS_OF_EACH: usize = 160;
const FEWEST_POINTS_OF_EACH: usize = 12;
/// Stretches of all tracks together that tell their values under the pointer, and of each track.
const MOST_STRETCHES: usize = 1_000;
const MOST_STRETCHES_OF_EACH: usize = 24;
const FEWEST_STRETCHES_OF_EACH: usize = 4;
/// A line that lies so near to another at so many of its points would not be seen: it is drawn so much above it.
const NEAR: f64 = 1.3;
const HIDDEN_SHARE: f64 = 0.5;
const ABOVE: f64 = 2.0;
/// What lines drawn above others take from the plot at most.
const MOST_ABOVE: f64 = 12.0;
/// Rows of the CSV, of all cells together.
const MOST_ROWS: usize = 2_500;

/// Whether some run was watched for long enough.
pub(super) fn is_worth_showing(view: &View<'_>) -> bool {
    timelines(view).any(|(_, timeline)| timeline.at_ns.len() >= ENOUGH)
}

fn timelines<'v>(view: &'v View<'_>) -> impl Iterator<Item = (&'v Context<'v>, &'v RunTimeline)> {
    view.contexts
        .iter()
        .flat_map(|context| context.rows.iter().filter_map(move |row| Some((context, row.timeline?))))
}

/// The tracks that some run of a context has.
fn tracks(context: &Context<'_>) -> BTreeSet<Track> {
    context
        .rows
        .iter()
        .filter_map(|row| row.timeline)
        .flat_map(|timeline| timeline.tracks.keys().copied())
        .collect()
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let lines: usize = timelines(view).map(|(_, timeline)| timeline.tracks.len()).sum();
    let most = (MOST_POINTS / lines.max(1)).clamp(FEWEST_POINTS_OF_EACH, MOST_POINTS_OF_EACH);
    let all: usize = view.contexts.iter().map(|context| tracks(context).len()).sum();
    let stretches = (MOST_STRETCHES / all.max(1)).clamp(FEWEST_STRETCHES_OF_EACH, MOST_STRETCHES_OF_EACH);
    let panels: Vec<Panel> =
        view.contexts.iter().filter_map(|context| draw_panel(view, context, (most, stretches))).collect();
    if panels.is_empty() {
        return None;
    }
    let has_warmup = timelines(view).any(|(_, timeline)| timeline.warmup_ended_ns.is_some());
    let mut keys = Vec::new();
    if has_warmup {
        keys.push(Key::new("band", "warm-up: not analysed"));
    }
    keys.push(Key::new("key-line dash-1", "end of the load"));
    Some(Drawing {
        title: "What the load did, over time".to_owned(),
        caption: "The run nearest to the median of each cell, from the monitor's rounds. CPU and bandwidth are means since \
                  the round before; memory and sockets are what was there, of several rounds in one point the most. Marks \
                  are at the most of each line. A line that would lie on another is drawn a little above it. Under the \
                  pointer are the values of a stretch of time. Axes differ between panels and all begin at 0."
            .to_owned(),
        keys,
        panels,
        csv: csv(view),
    })
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, most: (usize, usize)) -> Option<Panel> {
    let found = || context.rows.iter().filter_map(|row| row.timeline);
    let begin = found().filter_map(|timeline| timeline.at_ns.first()).min()?;
    let end = found()
        .flat_map(|timeline| timeline.at_ns.last().copied().into_iter().chain([timeline.finished_ns]))
        .max()?;
    // Room for a marker at either end.
    let span = Scale::linear((float(*begin), float(end)), (LEFT + 6.0, RIGHT - 6.0));
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let tracks = tracks(context);
    #[expect(clippy::cast_precision_loss, reason = "a handful of tracks")]
    let bottom = TOP + tracks.len() as f64 * (TITLE + PLOT + GAP) - GAP;
    draw_warmup(&mut canvas, context, span, bottom);
    let units = text::Scale::fitting("ns", float(end).max(-float(*begin)));
    let label = |value: f64| units.short(value);
    let title = axis_title("time since the client began", &units);
    Axis { scale: span, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(&mut canvas);
    let mut words: Vec<Vec<String>> = vec![Vec::new(); context.rows.len()];
    for (place, track) in tracks.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of tracks")]
        let top = TOP + place as f64 * (TITLE + PLOT + GAP) + TITLE;
        draw_track(view, &mut canvas, context, *track, span, top, most, &mut words);
    }
    let mut height = bottom + Axis::HEIGHT + 4.0;
    let mut description = Vec::new();
    for (row, words) in context.rows.iter().zip(words) {
        let level = clean_line(&view.series_of(row).name);
        if row.timeline.is_some() {
            description.push(format!("{level}: {}", words.join(", ")));
            continue;
        }
        let why = if row.is_believable() { "no run to show" } else { status_name(row.cell.status) };
        let note = format!("{level}: {why}");
        canvas.text(at(LEFT, height + 10.0), Anchor::Start, "note", &fit(&note, 12.5, RIGHT - LEFT));
        height += NOTE;
        description.push(note);
    }
    Some(Panel {
        title: format!("{}: CPU, memory, bandwidth and sockets over time", context.name),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height,
        body: canvas.finish(),
    })
}

/// The band of the warm-up, which is the same for all levels but for the time that a client takes to notice its end.
fn draw_warmup(canvas: &mut Canvas, context: &Context<'_>, span: Scale, bottom: f64) {
    let ended = context.rows.iter().filter_map(|row| row.timeline?.warmup_ended_ns).max();
    let Some(ended) = ended else { return };
    let (from, to) = (span.place(0.0), span.place(float(ended)));
    canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
}

#[expect(clippy::too_many_arguments, reason = "a drawing's parts")]
fn draw_track(
    view: &View<'_>,
    canvas: &mut Canvas,
    context: &Context<'_>,
    track: Track,
    span: Scale,
    top: f64,
    (most, stretches): (usize, usize),
    words: &mut [Vec<String>],
) {
    let rows =
        || context.rows.iter().enumerate().filter_map(|(place, row)| Some((place, row, row.timeline?)));
    let values = |timeline: &RunTimeline| {
        timeline.tracks.get(&track).into_iter().flatten().flatten().copied().collect::<Vec<f64>>()
    };
    let highest = rows().flat_map(|(_, _, timeline)| values(timeline)).fold(0.0, f64::max);
    let ticks = ticks(track, highest);
    let end = ticks.last().copied().unwrap_or(highest).max(highest);
    // Room at the top for a marker, and for lines that are drawn above others.
    #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
    let room = (rows().count().saturating_sub(1) as f64 * ABOVE).min(MOST_ABOVE);
    let scale = Scale::linear((0.0, end * 1.06), (top + PLOT, top + room));
    let units = text::Scale::fitting(track.unit(), highest);
    let title = match (track, track.unit()) {
        (_, "%") | (Track::ServerSockets(ACCEPTED) | Track::ClientSockets(ACCEPTED), _) => track.title(),
        (_, "1") => format!("{} (sockets)", track.title()),
        _ => axis_title(&track.title(), &units),
    };
    canvas.text(at(LEFT, top - 4.0), Anchor::Start, "axis-title", &fit(&title, 11.5, RIGHT - LEFT));
    let label = |value: f64| units.short(value);
    SideAxis { scale, left: LEFT, right: RIGHT, label: &label }.draw_at(canvas, &ticks);
    canvas.line(at(LEFT, top + PLOT), at(RIGHT, top + PLOT), "axis");
    let lines: Vec<Line<'_>> = rows()
        .map(|(place, row, timeline)| Line { place, row, timeline, points: points(timeline, track, most) })
        .collect();
    tell_values(view, canvas, track, &lines, span, (top, stretches));
    let mut drawn: Vec<Vec<Point>> = Vec::new();
    for line in &lines {
        let place = |(stamp, value): &(i64, f64)| at(span.place(float(*stamp)), scale.place(*value));
        let places: Vec<Point> = line.points.iter().map(place).collect();
        let hiding = drawn.iter().filter(|other| hides(other, &places)).count();
        #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
        let above = (hiding as f64 * ABOVE).min(MOST_ABOVE);
        let raised: Vec<Point> = places.iter().map(|place| at(place.x, place.y - above)).collect();
        words[line.place].extend(draw_line(view, canvas, line, track, &raised, span, (top, top + PLOT)));
        drawn.push(places);
    }
}

/// Sockets that wait for the server: its title says what they are.
const ACCEPTED: Quantity = Quantity::AcceptQueue;

/// Where a track's axis has labels: at 0 and at the top, and of counts at whole numbers alone.
fn ticks(track: Track, highest: f64) -> Vec<f64> {
    if track.unit() == "1" {
        let middle = (highest / 2.0).fract() == 0.0;
        return if middle { vec![0.0, highest / 2.0, highest] } else { vec![0.0, highest] };
    }
    let mut ticks = Scale::linear((0.0, highest), (0.0, 1.0)).ticks(2);
    if let [.., before, last] = ticks[..]
        && last < highest
    {
        ticks.push(last + (last - before));
    }
    ticks
}

/// One run's points of a track.
struct Line<'v> {
    /// Its row's place in the context.
    place: usize,
    row: &'v Row<'v>,
    timeline: &'v RunTimeline,
    points: Vec<(i64, f64)>,
}

/// Whether a line lies on another at most of its points.
fn hides(other: &[Point], line: &[Point]) -> bool {
    let height = |x: f64| {
        let after = other.partition_point(|point| point.x < x);
        let (before, after) = (other.get(after.checked_sub(1)?)?, other.get(after)?);
        let share = (x - before.x) / (after.x - before.x).max(f64::MIN_POSITIVE);
        Some(before.y + share * (after.y - before.y))
    };
    let is_near = |point: &&Point| {
        other.iter().any(|own| *own == **point)
            || height(point.x).is_some_and(|y| (y - point.y).abs() <= NEAR)
    };
    #[expect(clippy::cast_precision_loss, reason = "a number of points")]
    let share = line.iter().filter(is_near).count() as f64 / line.len().max(1) as f64;
    share >= HIDDEN_SHARE
}

/// Invisible stretches of time, each with what all lines are there.
fn tell_values(
    view: &View<'_>,
    canvas: &mut Canvas,
    track: Track,
    lines: &[Line<'_>],
    span: Scale,
    (top, stretches): (f64, usize),
) {
    #[expect(clippy::cast_precision_loss, reason = "a handful of stretches")]
    let width = (RIGHT - LEFT) / stretches as f64;
    for stretch in 0..stretches {
        #[expect(clippy::cast_precision_loss, reason = "a stretch's number")]
        let x = LEFT + stretch as f64 * width;
        let told: Vec<(i64, String)> =
            lines.iter().filter_map(|line| tell(view, track, line, span, (x, x + width))).collect();
        let Some(last) = told.iter().map(|(stamp, _)| *stamp).max() else { continue };
        let words: Vec<String> = told.into_iter().map(|(_, words)| words).collect();
        let until = text::value("ns", float(last));
        let title = format!("{}, until {until}: {}", name(track), words.join(", "));
        canvas.group("", Some(&title), |c| c.rect(Rect { x, y: top, width, height: PLOT }, "hit"));
    }
}

/// What a line is in a stretch, and when its last round there was: the mean of rates, and the most of what was there.
fn tell(
    view: &View<'_>,
    track: Track,
    line: &Line<'_>,
    span: Scale,
    (from, to): (f64, f64),
) -> Option<(i64, String)> {
    let is_inside = |(stamp, _): &&(i64, f64)| (from..to).contains(&span.place(float(*stamp)));
    let found: Vec<(i64, f64)> = line.points.iter().filter(is_inside).copied().collect();
    let (stamp, value) = merged(track, &found)?;
    Some((stamp, format!("{} {}", clean_line(&view.series_of(line.row).name), value_words(track, value))))
}

fn value_words(track: Track, value: f64) -> String {
    match track.unit() {
        "%" => text::percent(value / 100.0),
        unit => text::value(unit, value),
    }
}

fn name(track: Track) -> String {
    track.title().replace(" (% of a core)", "")
}

fn draw_line(
    view: &View<'_>,
    canvas: &mut Canvas,
    line: &Line<'_>,
    track: Track,
    places: &[Point],
    span: Scale,
    (top, bottom): (f64, f64),
) -> Option<String> {
    let (row, timeline) = (line.row, line.timeline);
    let series = view.series_of(row);
    let level = clean_line(&series.name);
    let believable = row.is_believable();
    let class = panel::row_class(series.style, believable);
    // The first of several that are as high.
    let both = line.points.iter().zip(places).rev();
    let (highest, place) = both.max_by(|((_, one), _), ((_, other), _)| one.total_cmp(other))?;
    let value = value_words(track, highest.1);
    let name = name(track);
    let mark = if believable { "" } else { ", invalid" };
    let when = text::value("ns", float(highest.0));
    let title = format!("{level}, {name}: most {value} at {when}, run {}{mark}", timeline.run);
    canvas.group(&class, Some(&title), |c| {
        c.path(places, series.style.line_class());
        c.marker(*place, series.style, 3.6);
        if !believable {
            c.cross(*place, 5.0);
        }
        let x = span.place(float(timeline.finished_ns));
        c.line(at(x, top), at(x, bottom), "finish");
    });
    Some(format!("{name} at most {value}"))
}

/// The points of a line: of neighbours that become one the mean of rates, and the most of what was there.
fn points(timeline: &RunTimeline, track: Track, most: usize) -> Vec<(i64, f64)> {
    let values = timeline.tracks.get(&track).map_or(&[][..], Vec::as_slice);
    let known: Vec<(i64, f64)> =
        timeline.at_ns.iter().zip(values).filter_map(|(at, value)| Some((*at, (*value)?))).collect();
    let step = known.len().div_ceil(most.max(1)).max(1);
    known.chunks(step).filter_map(|near| merged(track, near)).collect()
}

/// Neighbours as one, at the time of the last: the mean of rates, and the most of what was there.
fn merged(track: Track, near: &[(i64, f64)]) -> Option<(i64, f64)> {
    let (at, _) = near.last()?;
    let values = near.iter().map(|(_, value)| *value);
    #[expect(clippy::cast_precision_loss, reason = "a number of rounds")]
    let value = match track.is_rate() {
        true => values.sum::<f64>() / near.len() as f64,
        false => values.fold(0.0, f64::max),
    };
    Some((*at, value))
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds on a drawing")]
fn float(ns: i64) -> f64 {
    ns as f64
}

/// One row for each round, as far as they are few; every so many of more.
fn csv(view: &View<'_>) -> String {
    let tracks: BTreeSet<Track> = view.contexts.iter().flat_map(tracks).collect();
    let names: Vec<String> = tracks.iter().map(|track| track.name()).collect();
    let mut columns = vec!["context", "level", "run", "period", "at_ns"];
    columns.extend(names.iter().map(String::as_str));
    columns.push("status");
    let mut csv = Csv::new(&columns);
    let all: usize = timelines(view).map(|(_, timeline)| timeline.at_ns.len()).sum();
    let step = all.div_ceil(MOST_ROWS).max(1);
    for (context, row) in view.rows_with_context() {
        let Some(timeline) = row.timeline else { continue };
        let most = timeline.at_ns.len().div_ceil(step);
        let lines: Vec<(Track, Vec<(i64, f64)>)> =
            tracks.iter().map(|track| (*track, points(timeline, *track, most))).collect();
        let stamps: BTreeSet<i64> =
            lines.iter().flat_map(|(_, points)| points.iter().map(|(stamp, _)| *stamp)).collect();
        for stamp in stamps {
            let mut fields = vec![
                Field::Text(&context.name),
                Field::Text(&view.series_of(row).name),
                Field::Whole(u64::from(timeline.run)),
                Field::Text(period(timeline, stamp)),
                Field::Number(float(stamp)),
            ];
            fields.extend(lines.iter().map(|(_, points)| {
                let found = points.iter().find(|(own, _)| *own == stamp);
                Field::Maybe(found.map(|(_, value)| (value * 1e3).round() / 1e3))
            }));
            fields.push(Field::Text(status_name(row.cell.status)));
            csv.row(&fields);
        }
    }
    csv.finish()
}

/// The period that a round is in.
fn period(timeline: &RunTimeline, at_ns: i64) -> &'static str {
    match at_ns {
        at if at < 0 => "before",
        at if timeline.warmup_ended_ns.is_some_and(|ended| at < ended) => "warm-up",
        at if at <= timeline.finished_ns => "measured",
        _ => "after",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_counts_have_whole_numbers_and_every_axis_a_label_at_its_top() {
        let sockets = Track::ServerSockets(Quantity::Established);
        assert_eq!(ticks(sockets, 5.0), [0.0, 5.0]);
        assert_eq!(ticks(sockets, 6.0), [0.0, 3.0, 6.0]);
        assert_eq!(ticks(Track::ServerCpu, 70.0), [0.0, 50.0, 100.0]);
        assert_eq!(ticks(Track::ServerCpu, 100.0), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn a_line_on_another_is_noticed() {
        let line = |up: f64| [0.0, 10.0, 20.0, 30.0].map(|x| at(x, x + up));
        assert!(hides(&line(0.0), &line(0.0)) && hides(&line(0.0), &line(1.0)));
        assert!(!hides(&line(0.0), &line(5.0)));
        // Other rounds of the same course.
        assert!(hides(&line(0.0), &[5.0, 15.0, 25.0].map(|x| at(x, x))));
    }
}
