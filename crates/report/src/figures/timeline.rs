//! The load over time: CPU, memory, bandwidth and sockets by state of one run of each cell, with its periods.

use std::collections::BTreeSet;

use model::monitor::Quantity;

use super::panel::{self, Panel};
use super::{Context, Csv, Drawing, FigureKind, Key, Row, View, text};
use crate::svg::{Anchor, Axis, Canvas, Point, Rect, Scale, SideAxis, TICK_SIZE, WIDTH, at, count, fit};
use crate::timeline::{RunTimeline, Track};
use model::number::signed;
use serde_json::Value;

pub(super) const KIND: FigureKind = FigureKind {
    name: "timeline",
    shows: "CPU, memory, bandwidth, sockets by state over time",
    by_default: "if the monitor had 8 or more rounds during a run",
    needs: "a run with monitor readings",
    suits: |view| view.rows().filter_map(|row| row.timeline).any(|timeline| timeline.at_ns.len() >= ENOUGH),
    draw,
};

const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 40.0;
/// Heights of a track's title and plot, and of the space below.
const TITLE: f64 = 16.0;
const PLOT: f64 = 52.0;
const GAP: f64 = 10.0;
/// A run with fewer rounds shows no more than a table.
const ENOUGH: usize = 8;
/// Points of all lines together, and of each.
const MAX_POINTS: usize = 4_000;
const MAX_POINTS_OF_EACH: usize = 160;
const MIN_POINTS_OF_EACH: usize = 12;
/// Stretches of time with hover texts of all tracks together, and of each track.
const MAX_STRETCHES: usize = 1_000;
const MAX_STRETCHES_OF_EACH: usize = 24;
const MIN_STRETCHES_OF_EACH: usize = 4;
/// A line that is this close to another at this share of its points would be hidden; it is drawn this much
/// above it.
const NEAR: f64 = 1.3;
const HIDDEN_SHARE: f64 = 0.5;
const ABOVE: f64 = 2.0;
/// The part of the plot for lines drawn above others.
const MAX_ABOVE: f64 = 12.0;
/// Rows of the CSV, of all cells together.
const MAX_ROWS: usize = 2_500;

/// The tracks that a run of a context has.
fn tracks(context: &Context<'_>) -> BTreeSet<Track> {
    let timelines = context.rows.iter().filter_map(|row| row.timeline);
    timelines.flat_map(|timeline| timeline.tracks.keys().copied()).collect()
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let timelines = || view.rows().filter_map(|row| row.timeline);
    let lines: usize = timelines().map(|timeline| timeline.tracks.len()).sum();
    let max = (MAX_POINTS / lines.max(1)).clamp(MIN_POINTS_OF_EACH, MAX_POINTS_OF_EACH);
    let all: usize = view.contexts.iter().map(|context| tracks(context).len()).sum();
    let stretches = (MAX_STRETCHES / all.max(1)).clamp(MIN_STRETCHES_OF_EACH, MAX_STRETCHES_OF_EACH);
    let has_warmup = timelines().any(|timeline| timeline.warmup_ended_ns.is_some());
    let warmup = has_warmup.then(|| Key::new("band", "warm-up: not analysed"));
    Some(Drawing {
        title: "The load over time".to_owned(),
        caption: "The run nearest to the median of each cell, as read by the monitor. CPU and bandwidth are means since the \
                  previous reading; memory and sockets are values at the reading, or the maximum where several readings share a \
                  point. The mark of a line is at its maximum. A line that would hide another is drawn a little above it. Hover \
                  over the plot for values. Axes differ between panels and all begin at 0."
            .to_owned(),
        keys: warmup.into_iter().chain([Key::new("key-line dash-1", "end of the load")]).collect(),
        panels: view.contexts.iter().filter_map(|context| draw_panel(context, max, stretches)).collect(),
        csv: csv(view),
    })
}

fn draw_panel(context: &Context<'_>, max: usize, stretches: usize) -> Option<Panel> {
    let found = || context.rows.iter().filter_map(|row| row.timeline);
    let begin = found().filter_map(|timeline| timeline.at_ns.first()).min()?;
    let end = found()
        .flat_map(|timeline| timeline.at_ns.last().copied().into_iter().chain([timeline.finished_ns]))
        .max()?;
    let (begin, end) = (signed(*begin), signed(end));
    // Room for a marker at either end.
    let span = Scale::linear((begin, end), (LEFT + 6.0, RIGHT - 6.0));
    let mut canvas = panel::headed(&context.name);
    let tracks = tracks(context);
    let bottom = TOP + count(tracks.len()) * (TITLE + PLOT + GAP) - GAP;
    draw_warmup(&mut canvas, context, span, bottom);
    let units = text::Scale::fitting("ns", end.max(-begin));
    let title = units.title("time since the client started");
    Axis { scale: span, top: TOP, bottom, title: &title, label: &|value| units.short(value) }
        .draw(&mut canvas);
    let mut described: Vec<Vec<String>> = vec![Vec::new(); context.rows.len()];
    for (place, track) in tracks.iter().enumerate() {
        let top = TOP + count(place) * (TITLE + PLOT + GAP) + TITLE;
        let mut plot = TrackPlot { track: *track, span, top, lines: lines(context, *track, max) };
        let drawn = plot.draw(&mut canvas, stretches);
        drawn.into_iter().for_each(|(place, sentence)| described[place].push(sentence));
    }
    let (mut description, mut notes) = (Vec::new(), Vec::new());
    for (row, parts) in context.rows.iter().zip(described) {
        match row.timeline {
            Some(_) => description.push(format!("{}: {}", row.series.name, parts.join(", "))),
            None => notes.push(row.describe_missing_run()),
        }
    }
    let height = panel::draw_notes(&mut canvas, &notes, (LEFT, RIGHT), bottom + Axis::HEIGHT);
    description.extend(notes);
    let title = format!("{}: CPU, memory, bandwidth and sockets over time", context.name);
    Some(Panel::new(title, &description, height, canvas))
}

/// The band of the warm-up. All levels have the same, except for the time in which a client notices its end.
fn draw_warmup(canvas: &mut Canvas, context: &Context<'_>, span: Scale, bottom: f64) {
    let ended = context.rows.iter().filter_map(|row| row.timeline?.warmup_ended_ns).max();
    let Some(ended) = ended else { return };
    let (from, to) = (span.place(0.0), span.place(signed(ended)));
    canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
}

/// One run's points of a track.
struct Line<'v> {
    /// The index of its row in the context.
    place: usize,
    row: &'v Row<'v>,
    timeline: &'v RunTimeline,
    points: Vec<(i64, f64)>,
}

/// The lines of a track.
fn lines<'v>(context: &'v Context<'v>, track: Track, max: usize) -> Vec<Line<'v>> {
    let line = |(place, row): (usize, &'v Row<'v>)| {
        let timeline = row.timeline?;
        Some(Line { place, row, timeline, points: points(timeline, track, max) })
    };
    context.rows.iter().enumerate().filter_map(line).collect()
}

/// The plot of one track.
struct TrackPlot<'v> {
    track: Track,
    span: Scale,
    top: f64,
    lines: Vec<Line<'v>>,
}

impl TrackPlot<'_> {
    /// Draws axes and lines; returns what each line shows, by the index of its row.
    fn draw(&mut self, canvas: &mut Canvas, stretches: usize) -> Vec<(usize, String)> {
        let (track, top) = (self.track, self.top);
        let values = self.lines.iter().filter_map(|line| line.timeline.tracks.get(&track));
        let highest = values.flatten().flatten().copied().fold(0.0, f64::max);
        let ticks = ticks(track, highest);
        let end = ticks.last().copied().unwrap_or(highest).max(highest);
        // Room at the top for a marker, and for lines that are drawn above others.
        let room = (count(self.lines.len().saturating_sub(1)) * ABOVE).min(MAX_ABOVE);
        let scale = Scale::linear((0.0, end * 1.06), (top + PLOT, top + room));
        let units = text::Scale::fitting(track.unit(), highest);
        let title = match (track, track.unit()) {
            (_, "%") | (Track::ServerSockets(ACCEPTED) | Track::ClientSockets(ACCEPTED), _) => track.title(),
            (_, "1") => format!("{} (sockets)", track.title()),
            _ => units.title(&track.title()),
        };
        canvas.text(at(LEFT, top - 4.0), Anchor::Start, "axis-title", &fit(&title, TICK_SIZE, RIGHT - LEFT));
        SideAxis { scale, left: LEFT, right: RIGHT, label: &|value| units.short(value) }
            .draw_at(canvas, &ticks);
        canvas.line(at(LEFT, top + PLOT), at(RIGHT, top + PLOT), "axis");
        self.draw_stretches(canvas, stretches);
        let mut drawn: Vec<Vec<Point>> = Vec::new();
        let mut described = Vec::new();
        for line in &self.lines {
            let place =
                |(stamp, value): &(i64, f64)| at(self.span.place(signed(*stamp)), scale.place(*value));
            let places: Vec<Point> = line.points.iter().map(place).collect();
            let hiding = drawn.iter().filter(|other| hides(other, &places)).count();
            let above = (count(hiding) * ABOVE).min(MAX_ABOVE);
            let raised: Vec<Point> = places.iter().map(|place| at(place.x, place.y - above)).collect();
            described.extend(self.draw_line(canvas, line, &raised).map(|sentence| (line.place, sentence)));
            drawn.push(places);
        }
        described
    }

    /// Invisible stretches of time, whose hover texts have the values of all lines.
    fn draw_stretches(&self, canvas: &mut Canvas, stretches: usize) {
        let width = (RIGHT - LEFT) / count(stretches);
        for stretch in 0..stretches {
            let x = LEFT + count(stretch) * width;
            let values: Vec<(i64, String)> =
                self.lines.iter().filter_map(|line| self.value_within(line, (x, x + width))).collect();
            let Some(last) = values.iter().map(|(stamp, _)| *stamp).max() else { continue };
            let values: Vec<String> = values.into_iter().map(|(_, value)| value).collect();
            let until = text::value("ns", signed(last));
            let title = format!("{}, until {until}: {}", name(self.track), values.join(", "));
            canvas.group("", Some(&title), |c| {
                c.rect(Rect { x, y: self.top, width, height: PLOT }, "hit");
            });
        }
    }

    /// The value of a line within a stretch, and the time of its last reading there.
    fn value_within(&self, line: &Line<'_>, (from, to): (f64, f64)) -> Option<(i64, String)> {
        let is_inside = |(stamp, _): &&(i64, f64)| (from..to).contains(&self.span.place(signed(*stamp)));
        let found: Vec<(i64, f64)> = line.points.iter().filter(is_inside).copied().collect();
        let (stamp, value) = merged(self.track, &found)?;
        Some((stamp, format!("{} {}", line.row.series.name, format_value(self.track, value))))
    }

    fn draw_line(&self, canvas: &mut Canvas, line: &Line<'_>, places: &[Point]) -> Option<String> {
        let Line { row, timeline, points, .. } = line;
        // The first of several maxima.
        let both = points.iter().zip(places).rev();
        let (highest, place) = both.max_by(|((_, one), _), ((_, other), _)| one.total_cmp(other))?;
        let (name, value) = (name(self.track), format_value(self.track, highest.1));
        let when = text::value("ns", signed(highest.0));
        let (level, mark) = (&row.series.name, row.mark());
        let title = format!("{level}, {name}: at most {value} at {when}, run {}{mark}", timeline.run);
        canvas.group(&row.class(), Some(&title), |c| {
            c.path(places, row.series.style.line_class());
            c.marker(*place, row.series.style, 3.6);
            if !row.is_believable() {
                c.cross(*place, 5.0);
            }
            let x = self.span.place(signed(timeline.finished_ns));
            c.line(at(x, self.top), at(x, self.top + PLOT), "finish");
        });
        Some(format!("{name} at most {value}"))
    }
}

/// Connections that wait to be accepted: their title already contains the unit.
const ACCEPTED: Quantity = Quantity::AcceptQueue;

/// The labels of a track's axis: 0, the top and, for counts, whole numbers only.
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

/// Whether a line covers another at most of its points.
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
    let share = count(line.iter().filter(is_near).count()) / count(line.len().max(1));
    share >= HIDDEN_SHARE
}

fn format_value(track: Track, value: f64) -> String {
    match track.unit() {
        "%" => text::percent(value / 100.0),
        unit => text::value(unit, value),
    }
}

fn name(track: Track) -> String {
    track.title().replace(" (% of a core)", "")
}

/// At most `max` points of a line; neighbours are merged.
fn points(timeline: &RunTimeline, track: Track, max: usize) -> Vec<(i64, f64)> {
    let values = timeline.tracks.get(&track).map_or(&[][..], Vec::as_slice);
    let known: Vec<(i64, f64)> =
        timeline.at_ns.iter().zip(values).filter_map(|(at, value)| Some((*at, (*value)?))).collect();
    let step = known.len().div_ceil(max.max(1)).max(1);
    known.chunks(step).filter_map(|near| merged(track, near)).collect()
}

/// Neighbours as one point at the time of the last: the mean of rates, the maximum of other quantities.
fn merged(track: Track, near: &[(i64, f64)]) -> Option<(i64, f64)> {
    let (at, _) = near.last()?;
    let values = near.iter().map(|(_, value)| *value);
    let value = match track.is_rate() {
        true => values.sum::<f64>() / count(near.len()),
        false => values.fold(0.0, f64::max),
    };
    Some((*at, value))
}

/// One row for each reading, or for several neighbours if there are many.
fn csv(view: &View<'_>) -> String {
    let tracks: BTreeSet<Track> = view.contexts.iter().flat_map(tracks).collect();
    let names: Vec<String> = tracks.iter().map(|track| track.name()).collect();
    let mut csv = Csv::default();
    let all: usize = view.rows().filter_map(|row| row.timeline).map(|timeline| timeline.at_ns.len()).sum();
    let step = all.div_ceil(MAX_ROWS).max(1);
    for (context, row) in view.rows_with_context() {
        let Some(timeline) = row.timeline else { continue };
        let max = timeline.at_ns.len().div_ceil(step);
        let lines: Vec<Vec<(i64, f64)>> = tracks.iter().map(|track| points(timeline, *track, max)).collect();
        let stamps: BTreeSet<i64> =
            lines.iter().flat_map(|points| points.iter().map(|(stamp, _)| *stamp)).collect();
        for stamp in stamps {
            let mut fields: Vec<(&str, Value)> = vec![
                ("run", timeline.run.into()),
                ("period", period(timeline, stamp).into()),
                ("at_ns", signed(stamp).into()),
            ];
            fields.extend(names.iter().zip(&lines).map(|(name, points)| {
                let found = points.iter().find(|(own, _)| *own == stamp);
                (name.as_str(), found.map(|(_, value)| (value * 1e3).round() / 1e3).into())
            }));
            csv.cell(&context.name, row, fields);
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
    fn axes_have_a_label_at_the_top_and_counts_are_whole() {
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
