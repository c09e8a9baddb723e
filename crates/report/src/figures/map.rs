//! Two swept parameters: the best level at every pair of their values, and its ratio to the baseline.

use analysis::summary::{Comparison, Verdict};
use serde_json::Value;

use super::swept::{self, LEFT, TOP};
use super::{Csv, Drawing, FigureKind, Key, Panel, View, text};
use crate::context::{Context, Row, verdict_name};
use crate::svg::{Anchor, Axis, BOLD, Canvas, LABEL_SIZE, Rect, TICK_SIZE, WIDTH, at, count, text_width};
use crate::sweep::{Grid, Group};

pub(super) const KIND: FigureKind = FigureKind {
    name: "map",
    shows: "which level wins, over two swept parameters",
    by_default: "with two swept parameters",
    needs: "levels that differ in two numbers, with most pairs of their values",
    suits: |view| !view.grids().is_empty(),
    draw,
};

const ROW: f64 = 46.0;
const RIGHT: f64 = WIDTH - 4.0;
const GAP: f64 = 3.0;
const HATCHING: f64 = 8.0;

/// What a pair of values shows.
enum Tile<'v, 'a> {
    /// The level with the best value, and the comparison whose ratio is shown.
    Winner { row: &'v Row<'a>, of: &'v Comparison },
    /// There is nothing to compare, or everything is invalid.
    Nothing { because: String },
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let grids = view.grids();
    let (metric, baseline, factor) = (view.compared_title(), view.baseline(), view.factor());
    let (margin, noun) = (text::percent(view.summary().margin_share), view.statistic_noun());
    let panels = grids.iter().flat_map(|grid| grid.groups.iter().map(|group| draw_panel(view, grid, group)));
    Some(Drawing {
        title: format!("Which {factor} wins where: {metric}"),
        caption: format!(
            "Colour and name show the {factor} with the best {noun}. The number is the ratio of its {noun} to that of {baseline}; \
             where {baseline} is best, it is the ratio of the next best. The verdict is that of this comparison. A cross marks an \
             invalid comparison; a tile with only a cross has no valid number."
        ),
        keys: vec![
            Key::new("hatch", "no difference shown; with a cross: invalid"),
            Key::new("even", &format!("equivalent: within {margin}")),
        ],
        panels: panels.collect(),
        csv: csv(view, &grids),
    })
}

/// The valid cell with the best value, and the comparison that gives the ratio.
fn tile<'v, 'a>(view: &'v View<'a>, context: &'v Context<'a>) -> Tile<'v, 'a> {
    let value = |row: &Row<'_>| row.primary().map_or(f64::NAN, |metric| metric.compared().value);
    let mut ranked: Vec<&Row<'a>> =
        context.rows.iter().filter(|row| row.is_believable() && row.primary().is_some()).collect();
    ranked.sort_by(|one, other| value(one).total_cmp(&value(other)));
    if view.more_is_better() {
        ranked.reverse();
    }
    let Some(first) = ranked.first() else {
        return Tile::Nothing { because: "no cell has a valid number".to_owned() };
    };
    match ranked.iter().find_map(|row| row.comparison.filter(|of| of.ratio.is_some())) {
        Some(of) => Tile::Winner { row: first, of },
        None => Tile::Nothing { because: format!("nothing can be compared with {}", view.baseline()) },
    }
}

fn draw_panel(view: &View<'_>, grid: &Grid, group: &Group) -> Panel {
    let values = [group.values(0), group.values(1)];
    let units = [0, 1].map(|axis| {
        let largest = values[axis].last().copied().unwrap_or(1.0);
        text::Scale::fitting(grid.parameters[axis].unit, largest)
    });
    let titles = [0, 1].map(|axis| units[axis].title(&grid.parameters[axis].title));
    let [columns, rows] = &values;
    let (width, bottom) = ((RIGHT - LEFT) / count(columns.len()), TOP + count(rows.len()) * ROW);
    let mut canvas = Canvas::default();
    for (place, value) in columns.iter().enumerate() {
        let x = LEFT + (count(place) + 0.5) * width;
        canvas.text(at(x, bottom + 15.0), Anchor::Middle, "tick", &units[0].short(*value));
    }
    canvas.text(at(f64::midpoint(LEFT, RIGHT), bottom + 32.0), Anchor::Middle, "axis-title", &titles[0]);
    for (place, value) in rows.iter().enumerate() {
        let y = TOP + count(place) * ROW;
        canvas.text(at(LEFT - 6.0, y + ROW / 2.0 + 4.0), Anchor::End, "tick", &units[1].short(*value));
    }
    let mut description = Vec::new();
    for (own, context) in &group.points {
        let place = |axis: usize| values[axis].iter().position(|value| *value == own[axis]).unwrap_or(0);
        let (x, y) = (LEFT + count(place(0)) * width, TOP + count(place(1)) * ROW);
        let rect = Rect { x, y, width: width - GAP, height: ROW - GAP };
        let at_values = [0, 1]
            .map(|axis| format!("{} {}", grid.parameters[axis].title, units[axis].short_value(own[axis])));
        description.push(draw_tile(view, &mut canvas, &view.contexts[*context], &at_values.join(", "), rect));
    }
    let whole = text::capital(&view.compared_title());
    let heading = if group.name.is_empty() { &whole } else { &group.name };
    let title = format!("winners over {} and {}", titles[0], titles[1]);
    swept::panel(heading, &format!("↓ {}", titles[1]), &title, &description, bottom + Axis::HEIGHT, canvas)
}

fn draw_tile(view: &View<'_>, canvas: &mut Canvas, context: &Context<'_>, place: &str, rect: Rect) -> String {
    let middle = rect.x + rect.width / 2.0;
    let (row, of) = match tile(view, context) {
        Tile::Winner { row, of } => (row, of),
        Tile::Nothing { because } => {
            let sentence = format!("{place}: {because}");
            canvas.group("", Some(&sentence), |c| {
                c.rect(rect, "hit");
                c.hatch(rect, HATCHING);
                c.cross(at(middle, rect.y + rect.height / 2.0), 6.0);
            });
            return sentence;
        }
    };
    let (level, style) = (&row.series.name, row.series.style);
    let sentence = describe(view, row, of, place);
    let is_even = of.verdict == Verdict::Equivalent;
    let is_shown = matches!(of.verdict, Verdict::Better | Verdict::Worse) || is_even;
    let is_invalid = matches!(of.verdict, Verdict::Invalid { .. });
    canvas.group(&style.row_class(!is_invalid), Some(&sentence), |c| {
        c.rect(rect, if is_even { "even" } else { "tile" });
        if !is_shown {
            c.hatch(rect, HATCHING);
        }
        let upper = rect.y + 18.0;
        let name_width = text_width(level, LABEL_SIZE) * BOLD;
        // A name that does not fit is left to the marker and the hover text.
        if name_width + 16.0 <= rect.width - 4.0 {
            let left = middle - (name_width + 14.0) / 2.0;
            c.marker(at(left + 4.0, upper - 4.5), style, 4.2);
            c.text(at(left + 14.0, upper), Anchor::Start, "label", level);
        } else {
            c.marker(at(middle, upper - 4.5), style, 4.2);
        }
        let sign = if is_even { "≈ " } else { "" };
        let ratio = format!("{sign}{}", ratio(of));
        let class = if is_invalid { "value struck" } else { "value" };
        if text_width(&ratio, LABEL_SIZE) <= rect.width {
            c.text(at(middle, upper + 17.0), Anchor::Middle, class, &ratio);
        } else if text_width(&ratio, TICK_SIZE) <= rect.width + 8.0 {
            c.text(at(middle, upper + 17.0), Anchor::Middle, "tick", &ratio);
        }
        if is_invalid {
            c.cross(at(rect.x + rect.width - 9.0, rect.y + 9.0), 4.0);
        }
    });
    sentence
}

fn ratio(of: &Comparison) -> String {
    of.ratio.map_or(text::NONE.to_owned(), |ratio| text::ratio(ratio.value))
}

fn describe(view: &View<'_>, row: &Row<'_>, of: &Comparison, place: &str) -> String {
    let (verdict, _) = verdict_name(&of.verdict);
    let ratio = text::ratio_with_interval(of.ratio, text::NONE);
    let (winner, baseline) = (&row.series.name, view.baseline());
    if of.cell == row.cell.cell {
        format!("{place}: {winner} is best, {ratio} relative to {baseline}, {verdict}")
    } else {
        let compared = text::clean_line(&of.level.value);
        format!("{place}: {winner} is best; {compared}: {ratio} relative to {baseline}, {verdict}")
    }
}

fn csv(view: &View<'_>, grids: &[Grid]) -> String {
    let mut csv = Csv::default();
    for (grid, group) in grids.iter().flat_map(|grid| grid.groups.iter().map(move |group| (grid, group))) {
        for (values, context) in &group.points {
            let [columns, rows] = &grid.parameters;
            let tile = tile(view, &view.contexts[*context]);
            let winner = if let Tile::Winner { row, of } = &tile { Some((row, of)) } else { None };
            let ratio = winner.and_then(|(_, of)| of.ratio);
            let baseline = winner.map(|_| view.summary().baseline.value.as_str());
            let fields: [(&str, Value); 14] = [
                ("context", group.name.as_str().into()),
                ("column", columns.title.as_str().into()),
                ("column_unit", columns.unit.into()),
                ("column_value", values[0].into()),
                ("row", rows.title.as_str().into()),
                ("row_unit", rows.unit.into()),
                ("row_value", values[1].into()),
                ("winner", winner.map(|(row, _)| row.series.name.as_str()).into()),
                ("compared", winner.map(|(_, of)| of.level.value.as_str()).into()),
                ("baseline", baseline.into()),
                ("ratio", ratio.map(|ratio| ratio.value).into()),
                ("low", ratio.and_then(|ratio| ratio.low).into()),
                ("high", ratio.and_then(|ratio| ratio.high).into()),
                ("verdict", winner.map_or("invalid", |(_, of)| verdict_name(&of.verdict).0).into()),
            ];
            csv.row(&fields);
        }
    }
    csv.finish()
}
