//! Playback of a video: the player's buffer, the requested representations, the start-up and the stalls, one
//! level above the other on the same time axis.

use model::media::{Track, TrackKind};
use model::player::Player;

use super::panel::{self, Panel};
use super::{Context, Csv, Drawing, FigureKind, Key, Row, View};
use crate::playback::{RunPlayback, SegmentSpan, StallSpan};
use crate::svg::{
    Anchor, Axis, BOLD, Canvas, LABEL_SIZE, Point, Rect, Scale, SideAxis, TICK_SIZE, WIDTH, at, count, fit,
    float, text_width,
};
use crate::text::{self, duration};
use crate::trace::of_client;

pub(super) const KIND: FigureKind = FigureKind {
    name: "player",
    shows: "buffer, representation and stalls of a video",
    by_default: "if a workload plays a video",
    needs: "a run that plays a video",
    suits: |_| true,
    draw,
};

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 30.0;
/// Height of the line with a level's name, and of the next line for a summary that does not fit next to it.
const NAME: f64 = 20.0;
const NAME_LINE: f64 = 16.0;
/// Where a name begins.
const NAME_LEFT: f64 = 18.0;
/// Heights of a plot's title, of the buffer's plot, and of the space between levels.
const TITLE: f64 = 16.0;
const PLOT: f64 = 54.0;
const GAP: f64 = 18.0;
/// Height of each representation in the strip below the buffer, and the least and greatest height of the
/// strip.
const RUNG: f64 = 13.0;
const STRIP: (f64, f64) = (26.0, 80.0);
const BAR: f64 = 6.0;
/// Segments of all levels together, and of each level. Each has a hover text.
const MAX_SPANS: usize = 1_500;
const MIN_SPANS_OF_EACH: usize = 16;
const MAX_SPANS_OF_EACH: usize = 240;

/// Whether no run plays a video.
pub(super) fn has_none(view: &View<'_>) -> bool {
    view.rows().all(|row| row.playback.is_none())
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = view.rows().filter(|row| row.playback.is_some()).count();
    let max = (MAX_SPANS / rows.max(1)).clamp(MIN_SPANS_OF_EACH, MAX_SPANS_OF_EACH);
    Some(Drawing {
        title: "Playback of the video".to_owned(),
        caption: "The run nearest to the median of each cell, with the same axes for all levels of a panel. Top: the media in the \
                  buffer. It falls by one second per second of playback, and rises by a segment when that arrives. Bottom: the \
                  representation of each segment, as a bar from its request to its arrival. Representations are evenly spaced, \
                  regardless of their bit rates. Axes differ between panels."
            .to_owned(),
        keys: vec![
            Key::new("band", "start-up: before playback"),
            Key::new("hatch", "stall: playback interrupted"),
            Key::new("key-line dash-2", "above: no requests"),
            Key::new("key-line dash-1", "end of the video"),
        ],
        panels: view.contexts.iter().filter_map(|context| draw_panel(view, context, max)).collect(),
        csv: csv(view, max),
    })
}

/// The axes of a panel.
struct Frame {
    span: Scale,
    most_buffered: f64,
    goal_ns: u64,
    /// The representations of all levels, in bit/s, ascending.
    ladder: Vec<u64>,
    /// Height of a level's name and summary.
    name: f64,
}

impl Frame {
    fn of(view: &View<'_>, context: &Context<'_>) -> Option<Frame> {
        let playbacks = || context.rows.iter().filter_map(|row| row.playback);
        let end_ns = playbacks().map(|playback| playback.end_ns).max()?.max(1);
        let players: Vec<&Player> = context.rows.iter().filter_map(|row| row.player(view.plan())).collect();
        let mut ladder: Vec<u64> = players
            .iter()
            .flat_map(|player| player.presentation.tracks.iter())
            .flat_map(Track::ladder_bits_per_s)
            .collect();
        ladder.sort_unstable();
        ladder.dedup();
        let goal_ns = players.iter().map(|player| player.goal_ns).max()?;
        let buffered = playbacks().flat_map(|playback| &playback.buffer).map(|(_, buffered)| *buffered);
        let most_buffered = float(buffered.max()?.max(goal_ns).max(1));
        let fits = |row: &Row<'_>| {
            row.playback.is_none_or(|playback| {
                summary_x(&row.series.name) + text_width(&describe(playback), LABEL_SIZE) <= room(row)
            })
        };
        Some(Frame {
            span: Scale::linear((0.0, float(end_ns)), (LEFT, RIGHT)),
            most_buffered,
            goal_ns,
            ladder,
            name: if context.rows.iter().all(fits) { NAME } else { NAME + NAME_LINE },
        })
    }

    fn strip(&self) -> f64 {
        (count(self.ladder.len()) * RUNG).clamp(STRIP.0, STRIP.1)
    }

    fn row(&self) -> f64 {
        self.name + TITLE + PLOT + TITLE + self.strip()
    }

    /// The distance of a representation from the lower edge of the strip.
    fn rung(&self, bits_per_s: u64) -> f64 {
        let place = self.ladder.partition_point(|rate| *rate < bits_per_s);
        (count(place) + 0.5) / count(self.ladder.len().max(1)) * self.strip()
    }

    /// The scale of a buffer whose plot begins at `top`.
    fn buffer(&self, top: f64) -> Scale {
        Scale::linear((0.0, self.most_buffered * 1.06), (top + PLOT, top))
    }
}

/// Where the summary next to a level's name begins.
fn summary_x(name: &str) -> f64 {
    NAME_LEFT + text_width(name, LABEL_SIZE * BOLD) + 8.0
}

/// Where the line of a level's name ends: before its cross, if it has one.
fn room(row: &Row<'_>) -> f64 {
    if row.is_believable() { RIGHT } else { RIGHT - 18.0 }
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, max: usize) -> Option<Panel> {
    let frame = Frame::of(view, context)?;
    let mut canvas = panel::headed(&context.name);
    let drawn: Vec<(&Row<'_>, RunPlayback)> =
        context.rows.iter().filter_map(|row| Some((row, row.playback?.clone().condensed(max)))).collect();
    let bottom = TOP + count(drawn.len()) * (frame.row() + GAP) - GAP;
    let units = text::Scale::fitting("ns", float(drawn.iter().map(|(_, one)| one.end_ns).max()?));
    let title = units.title("time since the first segment was requested");
    let label = |value: f64| units.short(value);
    Axis { scale: frame.span, top: TOP + frame.name + TITLE, bottom, title: &title, label: &label }
        .draw(&mut canvas);
    let mut description = Vec::new();
    for (place, (row, playback)) in drawn.iter().enumerate() {
        let top = TOP + count(place) * (frame.row() + GAP);
        description.push(draw_row(&mut canvas, row, playback, &frame, top));
    }
    let without = context.rows.iter().filter(|row| row.playback.is_none());
    let notes: Vec<String> = without.map(Row::describe_missing_run).collect();
    let height = panel::draw_notes(&mut canvas, &notes, (LEFT, RIGHT), bottom + Axis::HEIGHT);
    description.extend(notes);
    let title = format!("{}: buffer, representations and stalls over time", context.name);
    Some(Panel::new(title, &description, height, canvas))
}

/// One level: its name and summary, its buffer, its representations; returns its description.
fn draw_row(canvas: &mut Canvas, row: &Row<'_>, playback: &RunPlayback, frame: &Frame, top: f64) -> String {
    let (level, style, believable) = (&row.series.name, row.series.style, row.is_believable());
    let summary = describe(playback);
    let run = of_client(playback.run, playback.clients);
    let description = format!("{level}: {summary}, {run}{}", row.mark());
    let plots = (top + frame.name + TITLE, top + frame.row());
    canvas.group(&row.class(), None, |c| draw_waiting(c, playback, frame, plots, level));
    draw_scales(canvas, frame, plots);
    canvas.group(&row.class(), None, |c| {
        c.marker(at(7.0, top + 8.0), style, 5.0);
        let class = if believable { "label" } else { "label struck" };
        let name = fit(level, LABEL_SIZE * BOLD, room(row) - NAME_LEFT);
        c.text(at(NAME_LEFT, top + 12.5), Anchor::Start, class, &name);
        let place = match frame.name > NAME {
            true => at(NAME_LEFT, top + 12.5 + NAME_LINE),
            false => at(summary_x(&name), top + 12.5),
        };
        c.text(place, Anchor::Start, "value", &summary);
        if !believable {
            c.cross(at(WIDTH - 14.0, top + 8.0), 5.0);
        }
        let scale = frame.buffer(plots.0);
        let place = |(stamp, buffered): &(u64, u64)| {
            at(frame.span.place(float(*stamp)), scale.place(float(*buffered)))
        };
        let points: Vec<Point> = playback.buffer.iter().map(place).collect();
        c.group("line", Some(&description), |c| c.path(&points, style.line_class()));
        draw_segments(c, playback, frame, plots.1, level);
        if playback.is_whole {
            let x = frame.span.place(float(playback.end_ns));
            c.line(at(x, plots.0), at(x, plots.1), "finish");
        }
    });
    description
}

/// Titles, grids and labels of both plots of a level; the legend does not hide them.
fn draw_scales(canvas: &mut Canvas, frame: &Frame, (top, bottom): (f64, f64)) {
    let units = text::Scale::fitting("ns", frame.most_buffered);
    canvas.text(at(LEFT, top - 4.0), Anchor::Start, "axis-title", &units.title("buffer"));
    let scale = frame.buffer(top);
    SideAxis { scale, left: LEFT, right: RIGHT, label: &|value| units.short(value) }.draw(canvas, 2);
    canvas.line(at(LEFT, top + PLOT), at(RIGHT, top + PLOT), "axis");
    let y = scale.place(float(frame.goal_ns));
    canvas.line(at(LEFT, y), at(RIGHT, y), "axis dash-2");
    let highest = frame.ladder.last().copied().unwrap_or(0);
    let units = text::Scale::fitting("bit/s", float(highest));
    let title = units.title("representation");
    canvas.text(at(LEFT, bottom - frame.strip() - 4.0), Anchor::Start, "axis-title", &title);
    let mut free_below = f64::INFINITY;
    for rate in &frame.ladder {
        let y = bottom - frame.rung(*rate);
        canvas.line(at(LEFT, y), at(RIGHT, y), "grid");
        // The lowest has a label, and so has each that is far enough above the last label.
        if free_below - y >= RUNG {
            let label = units.short(float(*rate));
            canvas.text(at(LEFT - 4.0, y + 4.0), Anchor::End, "tick", &fit(&label, TICK_SIZE, LEFT - 6.0));
            free_below = y;
        }
    }
    canvas.line(at(LEFT, bottom), at(RIGHT, bottom), "axis");
}

/// Start-up and stalls, across both plots.
fn draw_waiting(
    canvas: &mut Canvas,
    playback: &RunPlayback,
    frame: &Frame,
    (top, bottom): (f64, f64),
    level: &str,
) {
    let place = |from: u64, to: u64| {
        let (x, end) = (frame.span.place(float(from)), frame.span.place(float(to)));
        Rect { x, y: top, width: (end - x).max(1.0), height: bottom - top }
    };
    let startup_ns = playback.startup_ns.unwrap_or(playback.end_ns);
    let title = format!("{level}: start-up {}", duration(startup_ns));
    canvas.group("wait", Some(&title), |c| c.rect(place(0, startup_ns), "band"));
    for StallSpan { from_ns, to_ns, stalls, stalled_ns } in &playback.stall_spans {
        let (stalled, from, to) = (duration(*stalled_ns), duration(*from_ns), duration(*to_ns));
        let title = match stalls {
            1 => format!("{level}: stalled for {stalled} at {from}"),
            many => format!("{level}: {many} stalls, {stalled} in total, from {from} to {to}"),
        };
        let rect = place(*from_ns, *to_ns);
        canvas.group("wait", Some(&title), |c| {
            c.rect(rect, "even");
            c.hatch(rect, 5.0);
        });
    }
}

/// A bar for each segment at its representation, and the steps between them.
fn draw_segments(canvas: &mut Canvas, playback: &RunPlayback, frame: &Frame, bottom: f64, level: &str) {
    let place = |stamp: u64| frame.span.place(float(stamp));
    let middle = |span: &SegmentSpan| bottom - frame.rung(span.highest_bits_per_s);
    for kind in TrackKind::ALL {
        let own = || playback.segments.iter().filter(|span| span.kind == kind);
        let mut steps: Vec<Point> = own().map(|span| at(place(span.wanted_ns), middle(span))).collect();
        steps.extend(own().next_back().map(|last| at(place(last.done_ns), middle(last))));
        if !steps.is_empty() {
            canvas.steps(&steps, "thin");
        }
    }
    for span in &playback.segments {
        let (x, end) = (place(span.wanted_ns), place(span.done_ns));
        let y = middle(span) - BAR / 2.0;
        let height = bottom - frame.rung(span.lowest_bits_per_s) + BAR / 2.0 - y;
        canvas.group("dot", Some(&describe_segment(span, level)), |c| {
            // Consecutive segments remain distinguishable.
            c.rect(Rect { x, y, width: (end - x - 0.8).max(1.0), height }, "bar");
            if span.failed > 0 {
                c.cross(at(end, middle(span)), 3.5);
            }
        });
    }
}

fn describe_segment(span: &SegmentSpan, level: &str) -> String {
    let rate =
        |bits_per_s: u64| text::Scale::fitting("bit/s", float(bits_per_s)).short_value(float(bits_per_s));
    let (lowest, highest) = (rate(span.lowest_bits_per_s), rate(span.highest_bits_per_s));
    let rates = if lowest == highest { lowest } else { format!("{lowest} to {highest}") };
    let track = match span.kind {
        TrackKind::Video => "",
        TrackKind::Audio => "audio ",
    };
    let name = match (span.first, span.last) {
        (first, last) if first == last => format!("{track}segment {first}"),
        (first, last) => format!("{track}segments {first} to {last}"),
    };
    let took = duration(span.done_ns.saturating_sub(span.wanted_ns));
    let result = match span.failed {
        0 => format!("arrived after {took}, then {} buffered", duration(span.buffered_ns)),
        1 => format!("failed after {took}"),
        many => format!("{many} requests failed, finished after {took}"),
    };
    format!("{level}, {name}: {rates}, requested at {}, {result}", duration(span.wanted_ns))
}

/// The summary of a playback, on a line.
fn describe(playback: &RunPlayback) -> String {
    let Some(startup_ns) = playback.startup_ns else { return "playback never began".to_owned() };
    let startup = duration(startup_ns);
    let stalls = match playback.stalls {
        0 => "no stall".to_owned(),
        stalls => text::count(stalls as usize, "stall", "stalls"),
    };
    if !playback.is_whole {
        return format!("start-up {startup}, {stalls}, gave up at {}", duration(playback.end_ns));
    }
    let stalled =
        if playback.stalls == 0 { String::new() } else { format!(" ({})", duration(playback.stalled_ns)) };
    let mean = text::value("bit/s", playback.mean_bits_per_s);
    format!("start-up {startup}, {stalls}{stalled}, {mean}")
}

/// A row for each mark: the start-up, each segment, each stall, each point of the buffer, the end.
fn csv(view: &View<'_>, max: usize) -> String {
    let mut csv = Csv::default();
    for (context, row) in view.rows_with_context() {
        let Some(playback) = row.playback.map(|playback| playback.clone().condensed(max)) else { continue };
        let mut add = |mark: &str,
                       from: Option<u64>,
                       to: Option<u64>,
                       span: Option<&SegmentSpan>,
                       buffered: Option<u64>| {
            let fields = vec![
                ("run", playback.run.into()),
                ("mark", mark.into()),
                ("from_ns", from.into()),
                ("to_ns", to.into()),
                ("track", span.map(|span| span.kind.name()).into()),
                ("first_segment", span.map(|span| span.first).into()),
                ("last_segment", span.map(|span| span.last).into()),
                ("lowest_bits_per_s", span.map(|span| span.lowest_bits_per_s).into()),
                ("highest_bits_per_s", span.map(|span| span.highest_bits_per_s).into()),
                ("buffered_ns", buffered.into()),
                ("failed", span.map(|span| span.failed).into()),
            ];
            csv.cell(&context.name, row, fields);
        };
        add("start-up", Some(0), playback.startup_ns, None, None);
        for span in &playback.segments {
            add("segment", Some(span.wanted_ns), Some(span.done_ns), Some(span), Some(span.buffered_ns));
        }
        for span in &playback.stall_spans {
            add("stall", Some(span.from_ns), Some(span.to_ns), None, None);
        }
        for (stamp, buffered) in &playback.buffer {
            add("buffer", Some(*stamp), None, None, Some(*buffered));
        }
        let end = if playback.is_whole { "end" } else { "given up" };
        add(end, Some(playback.end_ns), None, None, None);
    }
    csv.finish()
}
