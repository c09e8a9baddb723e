//! How a video was played: the player's buffer, the representations that it asked for, its start-up and its stalls, one level
//! above the other on the same time axis.

use model::player::Player;

use super::panel::{self, Panel, WIDTH};
use super::runs::axis_title;
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::playback::{RunPlayback, SegmentSpan, StallSpan};
use crate::svg::{Anchor, Axis, Canvas, Point, Rect, Scale, SideAxis, at, fit, text_width};
use crate::text::{self, clean_line, duration};
use crate::view::{Context, Row, View, status_name};

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 30.0;
/// A level's name, a plot's title, the buffer's plot, and what is between a level and the next.
const NAME: f64 = 20.0;
/// Where a name begins, and the line below it for what does not fit beside it.
const NAME_LEFT: f64 = 18.0;
const NAME_LINE: f64 = 16.0;
const TITLE: f64 = 16.0;
const PLOT: f64 = 54.0;
const GAP: f64 = 18.0;
/// What each representation has of the strip below the buffer, and all together.
const RUNG: f64 = 13.0;
const STRIP: (f64, f64) = (26.0, 80.0);
const BAR: f64 = 6.0;
const NAME_SIZE: f64 = 12.5;
/// How much wider bold letters are.
const BOLD: f64 = 1.12;
const NOTE: f64 = 17.0;
/// Segments of all levels together, each with its values under the pointer, and of each level.
const MOST_SPANS: usize = 1_500;
const FEWEST_SPANS_OF_EACH: usize = 16;
const MOST_SPANS_OF_EACH: usize = 240;

/// Whether no run plays a video.
pub(super) fn has_none(view: &View<'_>) -> bool {
    view.rows_with_context().all(|(_, row)| row.playback.is_none())
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = view.rows_with_context().filter(|(_, row)| row.playback.is_some()).count();
    let most = (MOST_SPANS / rows.max(1)).clamp(FEWEST_SPANS_OF_EACH, MOST_SPANS_OF_EACH);
    let panels: Vec<Panel> =
        view.contexts.iter().filter_map(|context| draw_panel(view, context, most)).collect();
    if panels.is_empty() {
        return None;
    }
    Some(Drawing {
        title: "How the video was played".to_owned(),
        caption: "The run nearest to the median of each cell, the same axes for all levels of a panel. Above, the media in the \
                  buffer: it falls as fast as time passes while it is shown, and rises by a segment when that arrives. Below, the \
                  representation of each segment, a bar from when it was wanted until it was there; representations are at equal \
                  distances, whatever their bit rates. Axes differ between panels."
            .to_owned(),
        keys: vec![
            Key::new("band", "start-up: nothing is shown yet"),
            Key::new("hatch", "stalled: playback stands still"),
            Key::new("key-line dash-2", "nothing is asked for above"),
            Key::new("key-line dash-1", "end of the video"),
        ],
        panels,
        csv: csv(view, most),
    })
}

/// The axes of a panel.
struct Frame {
    span: Scale,
    most_buffered: f64,
    goal_ns: u64,
    /// The representations of all its levels, in bit/s, ascending.
    ladder: Vec<u64>,
    /// Height of a level's name and of what came of it.
    name: f64,
}

impl Frame {
    fn of(view: &View<'_>, context: &Context<'_>) -> Option<Frame> {
        let playbacks = || context.rows.iter().filter_map(|row| row.playback);
        let end_ns = playbacks().map(|playback| playback.end_ns).max()?.max(1);
        let players: Vec<&Player> = context.rows.iter().filter_map(|row| player_of(view, row)).collect();
        let mut ladder: Vec<u64> =
            players.iter().flat_map(|player| player.ladder_bits_per_s.clone()).collect();
        ladder.sort_unstable();
        ladder.dedup();
        let goal_ns = players.iter().map(|player| player.goal_ns).max()?;
        let buffered = playbacks().flat_map(|playback| &playback.buffer).map(|(_, buffered)| *buffered);
        let most_buffered = float(buffered.max()?.max(goal_ns).max(1));
        let is_beside =
            context.rows.iter().filter_map(|row| Some((row, row.playback?))).all(|(row, playback)| {
                let name = clean_line(&view.series_of(row).name);
                beside(&name) + text_width(&describe(playback), NAME_SIZE) <= room(row)
            });
        Some(Frame {
            span: Scale::linear((0.0, float(end_ns)), (LEFT, RIGHT)),
            most_buffered,
            goal_ns,
            ladder,
            name: if is_beside { NAME } else { NAME + NAME_LINE },
        })
    }

    fn strip(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a handful of representations")]
        let wanted = self.ladder.len() as f64 * RUNG;
        wanted.clamp(STRIP.0, STRIP.1)
    }

    fn row(&self) -> f64 {
        self.name + TITLE + PLOT + TITLE + self.strip()
    }

    /// How far above the strip's bottom a representation is.
    fn rung(&self, bits_per_s: u64) -> f64 {
        let place = self.ladder.partition_point(|rate| *rate < bits_per_s);
        #[expect(clippy::cast_precision_loss, reason = "a handful of representations")]
        let (place, count) = (place as f64, self.ladder.len().max(1) as f64);
        (place + 0.5) / count * self.strip()
    }
}

/// Where what came of it stands beside a level's name.
fn beside(name: &str) -> f64 {
    NAME_LEFT + text_width(name, NAME_SIZE * BOLD) + 8.0
}

/// Where the line of a level's name ends: before its cross, if it has one.
fn room(row: &Row<'_>) -> f64 {
    if row.is_believable() { RIGHT } else { RIGHT - 18.0 }
}

/// The player that a cell's plan has.
fn player_of<'v>(view: &'v View<'_>, row: &Row<'_>) -> Option<&'v Player> {
    let group = row.planned?.clients.first()?;
    view.plan().workloads.get(group.workload)?.workload.player()
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, most: usize) -> Option<Panel> {
    let frame = Frame::of(view, context)?;
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let drawn: Vec<(&Row<'_>, RunPlayback)> =
        context.rows.iter().filter_map(|row| Some((row, row.playback?.clone().condensed(most)))).collect();
    #[expect(clippy::cast_precision_loss, reason = "a handful of levels")]
    let bottom = TOP + drawn.len() as f64 * (frame.row() + GAP) - GAP;
    let units = text::Scale::fitting("ns", float(drawn.iter().map(|(_, one)| one.end_ns).max()?));
    let label = |value: f64| units.short(value);
    let title = axis_title("time since the first segment was wanted", &units);
    Axis {
        scale: frame.span,
        top: TOP + frame.name + TITLE,
        bottom,
        width: WIDTH,
        title: &title,
        label: &label,
    }
    .draw(&mut canvas);
    let mut description = Vec::new();
    for (place, (row, playback)) in drawn.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of levels")]
        let top = TOP + place as f64 * (frame.row() + GAP);
        description.push(draw_row(view, &mut canvas, row, playback, &frame, top));
    }
    let mut height = bottom + Axis::HEIGHT + 4.0;
    for row in context.rows.iter().filter(|row| row.playback.is_none()) {
        let why = if row.is_believable() { "no run to show" } else { status_name(row.cell.status) };
        let note = format!("{}: {why}", clean_line(&view.series_of(row).name));
        canvas.text(at(LEFT, height + 10.0), Anchor::Start, "note", &fit(&note, NAME_SIZE, RIGHT - LEFT));
        height += NOTE;
        description.push(note);
    }
    Some(Panel {
        title: format!("{}: buffer, representations and stalls over time", context.name),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height,
        body: canvas.finish(),
    })
}

/// One level: its name and what came of it, its buffer, its representations; returns the same in words.
fn draw_row(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    playback: &RunPlayback,
    frame: &Frame,
    top: f64,
) -> String {
    let series = view.series_of(row);
    let (level, believable) = (clean_line(&series.name), row.is_believable());
    let came_of_it = describe(playback);
    let mark = if believable { "" } else { ", invalid" };
    let words = format!("{level}: {came_of_it}, run {}{mark}", playback.run);
    let buffer_top = top + frame.name + TITLE;
    let strip_bottom = top + frame.row();
    let class = panel::row_class(series.style, believable);
    canvas.group(&class, None, |c| draw_waiting(c, playback, frame, (buffer_top, strip_bottom), &level));
    draw_scales(canvas, frame, (buffer_top, strip_bottom));
    canvas.group(&class, None, |c| {
        c.marker(at(7.0, top + 8.0), series.style, 5.0);
        let class = if believable { "label" } else { "label struck" };
        let name = fit(&level, NAME_SIZE * BOLD, room(row) - NAME_LEFT);
        c.text(at(NAME_LEFT, top + 12.5), Anchor::Start, class, &name);
        let place = match frame.name > NAME {
            true => at(NAME_LEFT, top + 12.5 + NAME_LINE),
            false => at(beside(&name), top + 12.5),
        };
        c.text(place, Anchor::Start, "value", &came_of_it);
        if !believable {
            c.cross(at(WIDTH - 14.0, top + 8.0), 5.0);
        }
        draw_buffer(c, playback, frame, buffer_top, series.style.line_class(), &words);
        draw_segments(c, playback, frame, strip_bottom, &level);
        if playback.is_whole {
            let x = frame.span.place(float(playback.end_ns));
            c.line(at(x, buffer_top), at(x, strip_bottom), "finish");
        }
    });
    words
}

/// Titles, grids and labels of both plots of a level, which no key of the legend hides.
fn draw_scales(canvas: &mut Canvas, frame: &Frame, (top, bottom): (f64, f64)) {
    let units = text::Scale::fitting("ns", frame.most_buffered);
    let title = axis_title("buffer", &units);
    canvas.text(at(LEFT, top - 4.0), Anchor::Start, "axis-title", &title);
    let label = |value: f64| units.short(value);
    let scale = buffer_scale(frame, top);
    SideAxis { scale, left: LEFT, right: RIGHT, label: &label }.draw(canvas, 2);
    canvas.line(at(LEFT, top + PLOT), at(RIGHT, top + PLOT), "axis");
    let y = scale.place(float(frame.goal_ns));
    canvas.line(at(LEFT, y), at(RIGHT, y), "axis dash-2");
    let highest = frame.ladder.last().copied().unwrap_or(0);
    let units = text::Scale::fitting("bit/s", float(highest));
    let title = axis_title("representation", &units);
    canvas.text(at(LEFT, bottom - frame.strip() - 4.0), Anchor::Start, "axis-title", &title);
    let mut free_below = f64::INFINITY;
    for rate in &frame.ladder {
        let y = bottom - frame.rung(*rate);
        canvas.line(at(LEFT, y), at(RIGHT, y), "grid");
        // Labels never touch: the lowest has one, and each that is far enough above the last.
        if free_below - y >= RUNG {
            let label = units.short(float(*rate));
            canvas.text(at(LEFT - 4.0, y + 4.0), Anchor::End, "tick", &fit(&label, 11.5, LEFT - 6.0));
            free_below = y;
        }
    }
    canvas.line(at(LEFT, bottom), at(RIGHT, bottom), "axis");
}

fn buffer_scale(frame: &Frame, top: f64) -> Scale {
    Scale::linear((0.0, frame.most_buffered * 1.06), (top + PLOT, top))
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
        let title = match stalls {
            1 => format!("{level}: stalled for {} from {} on", duration(*stalled_ns), duration(*from_ns)),
            many => format!(
                "{level}: {many} stalls, {} in all, from {} to {}",
                duration(*stalled_ns),
                duration(*from_ns),
                duration(*to_ns)
            ),
        };
        let rect = place(*from_ns, *to_ns);
        canvas.group("wait", Some(&title), |c| {
            c.rect(rect, "even");
            c.hatch(rect, 5.0);
        });
    }
}

fn draw_buffer(
    canvas: &mut Canvas,
    playback: &RunPlayback,
    frame: &Frame,
    top: f64,
    line_class: &str,
    words: &str,
) {
    let scale = buffer_scale(frame, top);
    let place =
        |(stamp, buffered): &(u64, u64)| at(frame.span.place(float(*stamp)), scale.place(float(*buffered)));
    let points: Vec<Point> = playback.buffer.iter().map(place).collect();
    canvas.group("line", Some(words), |c| c.path(&points, line_class));
}

/// A bar for each segment at its representation, and the steps between them.
fn draw_segments(canvas: &mut Canvas, playback: &RunPlayback, frame: &Frame, bottom: f64, level: &str) {
    let place = |stamp: u64| frame.span.place(float(stamp));
    let middle = |span: &SegmentSpan| bottom - frame.rung(span.highest_bits_per_s);
    let mut steps: Vec<Point> =
        playback.segments.iter().map(|span| at(place(span.wanted_ns), middle(span))).collect();
    if let Some(last) = playback.segments.last() {
        steps.push(at(place(last.done_ns), middle(last)));
    }
    canvas.steps(&steps, "thin");
    for span in &playback.segments {
        let (x, end) = (place(span.wanted_ns), place(span.done_ns));
        let y = middle(span) - BAR / 2.0;
        let height = bottom - frame.rung(span.lowest_bits_per_s) + BAR / 2.0 - y;
        canvas.group("dot", Some(&segment_words(span, level)), |c| {
            // Segments that follow each other at once stay apart.
            c.rect(Rect { x, y, width: (end - x - 0.8).max(1.0), height }, "bar");
            if span.failed > 0 {
                c.cross(at(end, middle(span)), 3.5);
            }
        });
    }
}

fn segment_words(span: &SegmentSpan, level: &str) -> String {
    let rate =
        |bits_per_s: u64| text::Scale::fitting("bit/s", float(bits_per_s)).short_value(float(bits_per_s));
    let (lowest, highest) = (rate(span.lowest_bits_per_s), rate(span.highest_bits_per_s));
    let rates = if lowest == highest { lowest } else { format!("{lowest} to {highest}") };
    let name = match (span.first, span.last) {
        (first, last) if first == last => format!("segment {first}"),
        (first, last) => format!("segments {first} to {last}"),
    };
    let took = duration(span.done_ns.saturating_sub(span.wanted_ns));
    let came = match span.failed {
        0 => format!("there after {took}, {} buffered then", duration(span.buffered_ns)),
        1 => format!("failed after {took}"),
        many => format!("{many} requests failed, over after {took}"),
    };
    format!("{level}, {name}: {rates}, wanted at {}, {came}", duration(span.wanted_ns))
}

/// What came of a playback, in a line.
fn describe(playback: &RunPlayback) -> String {
    let Some(startup_ns) = playback.startup_ns else { return "nothing was ever shown".to_owned() };
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

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and bits on a drawing")]
fn float(number: u64) -> f64 {
    number as f64
}

/// A row for each mark: the start-up, each segment, each stall, each point of the buffer, the end.
fn csv(view: &View<'_>, most: usize) -> String {
    let mut csv = Csv::new(&[
        "context",
        "level",
        "run",
        "mark",
        "from_ns",
        "to_ns",
        "first_segment",
        "last_segment",
        "lowest_bits_per_s",
        "highest_bits_per_s",
        "buffered_ns",
        "failed",
        "status",
    ]);
    for (context, row) in view.rows_with_context() {
        let Some(playback) = row.playback.map(|playback| playback.clone().condensed(most)) else { continue };
        let mut add = |mark: &str, stamps: [Option<u64>; 2], values: [Option<u64>; 6]| {
            let whole = |value: Option<u64>| value.map_or(Field::Empty, Field::Whole);
            let mut fields = vec![
                Field::Text(&context.name),
                Field::Text(&view.series_of(row).name),
                Field::Whole(u64::from(playback.run)),
                Field::Text(mark),
            ];
            fields.extend(stamps.into_iter().chain(values).map(whole));
            fields.push(Field::Text(status_name(row.cell.status)));
            csv.row(&fields);
        };
        let nothing = [None; 6];
        add("start-up", [Some(0), playback.startup_ns], nothing);
        for span in &playback.segments {
            let values = [
                u64::from(span.first),
                u64::from(span.last),
                span.lowest_bits_per_s,
                span.highest_bits_per_s,
                span.buffered_ns,
                u64::from(span.failed),
            ];
            add("segment", [Some(span.wanted_ns), Some(span.done_ns)], values.map(Some));
        }
        for span in &playback.stall_spans {
            add("stall", [Some(span.from_ns), Some(span.to_ns)], nothing);
        }
        for (stamp, buffered) in &playback.buffer {
            add("buffer", [Some(*stamp), None], [None, None, None, None, Some(*buffered), None]);
        }
        add(if playback.is_whole { "end" } else { "given up" }, [Some(playback.end_ns), None], nothing);
    }
    csv.finish()
}
