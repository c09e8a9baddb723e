//! Two swept parameters: who wins at every pair of their values, and by how much.

use analysis::summary::{Comparison, Verdict};

use super::panel::{self, Panel, WIDTH};
use super::swept::{self, LABEL, LEFT, TOP, units_of};
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Rect, at, text_width};
use crate::sweep::{Grid, Group, grids};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, verdict_name};

const ROW: f64 = 46.0;
const RIGHT: f64 = WIDTH - 4.0;
const GAP: f64 = 3.0;
const HATCHING: f64 = 8.0;

/// What a pair of values shows.
enum Tile<'v, 'a> {
    /// The level with the best median, and the comparison of which the ratio is shown.
    Winner { row: &'v Row<'a>, of: &'v Comparison },
    /// There is nothing to compare, or none of it may be believed.
    Nothing { because: String },
}

pub(super) fn has_grid(view: &View<'_>) -> bool {
    !grids(view).is_empty()
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let grids = grids(view);
    let panels: Vec<Panel> = grids
        .iter()
        .flat_map(|grid| grid.groups.iter().map(move |group| draw_panel(view, grid, group)))
        .collect();
    if panels.is_empty() {
        return None;
    }
    let (metric, baseline) = (view.metric_title(), view.baseline());
    let margin = text::percent(view.summary().margin_share);
    Some(Drawing {
        title: format!("Where which {} wins: {metric}", clean_line(&view.summary().baseline.factor)),
        caption: format!(
            "Colour and name say which level has the best median. The number is its ratio to {baseline}; where {baseline} \
             itself is best, it is that of the next best. Only the comparison with {baseline} has a verdict. A cross is where it may not be believed, and where it is all \
             that a tile has, nothing may."
        ),
        keys: vec![
            Key::new("hatch", "no difference shown; with a cross: invalid"),
            Key::new("even", &format!("equivalent: within {margin}")),
        ],
        panels,
        csv: csv(view, &grids),
    })
}

/// The believable cell with the best median, and the comparison that says by how much.
fn tile<'v, 'a>(view: &'v View<'a>, context: &'v Context<'a>) -> Tile<'v, 'a> {
    let metric = view.summary().metric.as_str();
    let median = |row: &Row<'_>| row.metric(metric).map_or(f64::NAN, |metric| metric.median.value);
    let mut ranked: Vec<&Row<'a>> =
        context.rows.iter().filter(|row| row.is_believable() && row.metric(metric).is_some()).collect();
    ranked.sort_by(|one, other| match view.more_is_better() {
        true => median(other).total_cmp(&median(one)),
        false => median(one).total_cmp(&median(other)),
    });
    let Some(first) = ranked.first() else {
        return Tile::Nothing { because: "no cell has a number that may be believed".to_owned() };
    };
    let compared = ranked.iter().find_map(|row| row.comparison.filter(|of| of.ratio.is_some()));
    match compared {
        Some(of) => Tile::Winner { row: first, of },
        None => Tile::Nothing { because: format!("nothing can be compared with {}", view.baseline()) },
    }
}

fn draw_panel(view: &View<'_>, grid: &Grid, group: &Group) -> Panel {
    let (columns, rows) = (group.values(0), group.values(1));
    let largest = |values: &[f64]| values.last().copied().unwrap_or(1.0);
    let units =
        [units_of(&grid.parameters[0], largest(&columns)), units_of(&grid.parameters[1], largest(&rows))];
    let titles = [0, 1].map(|place| super::runs::axis_title(&grid.parameters[place].title(), &units[place]));
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows and columns")]
    let (width, bottom) = ((RIGHT - LEFT) / columns.len() as f64, TOP + rows.len() as f64 * ROW);
    let mut canvas = Canvas::default();
    let heading =
        if group.name.is_empty() { text::capital(&view.metric_title()) } else { group.name.clone() };
    for (place, value) in columns.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a column's number")]
        let x = LEFT + (place as f64 + 0.5) * width;
        canvas.text(at(x, bottom + 15.0), Anchor::Middle, "tick", &units[0].short(*value));
    }
    canvas.text(at(f64::midpoint(LEFT, RIGHT), bottom + 32.0), Anchor::Middle, "axis-title", &titles[0]);
    let mut description = Vec::new();
    for (place, value) in rows.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a row's number")]
        let y = TOP + place as f64 * ROW;
        canvas.text(at(LEFT - 6.0, y + ROW / 2.0 + 4.0), Anchor::End, "tick", &units[1].short(*value));
    }
    for (values, context) in &group.points {
        let place = |values: &[f64], value: f64| values.iter().position(|own| *own == value).unwrap_or(0);
        let (column, row) = (place(&columns, values[0]), place(&rows, values[1]));
        #[expect(clippy::cast_precision_loss, reason = "a column's and a row's number")]
        let (x, y) = (LEFT + column as f64 * width, TOP + row as f64 * ROW);
        let rect = Rect { x, y, width: width - GAP, height: ROW - GAP };
        let at_values =
            format!("{}, {}", words(grid, &units, 0, values[0]), words(grid, &units, 1, values[1]));
        description.push(draw_tile(view, &mut canvas, &view.contexts[*context], &at_values, rect));
    }
    let (body, down) = swept::below_heading(&heading, &format!("↓ {}", titles[1]), canvas);
    Panel {
        title: format!("{heading}: winners over {} and {}", titles[0], titles[1]),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + down + Axis::HEIGHT + 4.0,
        body,
    }
}

fn words(grid: &Grid, units: &[text::Scale; 2], place: usize, value: f64) -> String {
    format!("{} {}", grid.parameters[place].title(), units[place].short_value(value))
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
    let series = view.series_of(row);
    let level = clean_line(&series.name);
    let sentence = describe(view, row, of, place);
    let is_even = of.verdict == Verdict::Equivalent;
    let is_shown = matches!(of.verdict, Verdict::Better | Verdict::Worse) || is_even;
    let is_invalid = matches!(of.verdict, Verdict::Invalid { .. });
    let class = panel::row_class(series.style, !is_invalid);
    canvas.group(&class, Some(&sentence), |c| {
        c.rect(rect, if is_even { "even" } else { "tile" });
        if !is_shown {
            c.hatch(rect, HATCHING);
        }
        let ratio = of.ratio.map_or(text::NONE.to_owned(), |ratio| text::ratio(ratio.value));
        let sign = if is_even { "≈ " } else { "" };
        let upper = rect.y + 18.0;
        let name_width = text_width(&level, LABEL) * 1.12;
        // A name that does not fit is left to the marker and the hover text.
        if name_width + 16.0 <= rect.width - 4.0 {
            let left = middle - (name_width + 14.0) / 2.0;
            c.marker(at(left + 4.0, upper - 4.5), series.style, 4.2);
            c.text(at(left + 14.0, upper), Anchor::Start, "label", &level);
        } else {
            c.marker(at(middle, upper - 4.5), series.style, 4.2);
        }
        let ratio = format!("{sign}{ratio}");
        let class = if is_invalid { "value struck" } else { "value" };
        if text_width(&ratio, LABEL) <= rect.width {
            c.text(at(middle, upper + 17.0), Anchor::Middle, class, &ratio);
        } else if text_width(&ratio, 11.5) <= rect.width + 8.0 {
            c.text(at(middle, upper + 17.0), Anchor::Middle, "tick", &ratio);
        }
        if is_invalid {
            c.cross(at(rect.x + rect.width - 9.0, rect.y + 9.0), 4.0);
        }
    });
    sentence
}

fn describe(view: &View<'_>, row: &Row<'_>, of: &Comparison, place: &str) -> String {
    let (verdict, _) = verdict_name(&of.verdict);
    let interval = of.ratio.as_ref().and_then(text::ratio_interval);
    let interval = interval.map(|interval| format!(" ({interval})")).unwrap_or_default();
    let ratio = of.ratio.map_or(text::NONE.to_owned(), |ratio| text::ratio(ratio.value));
    let (winner, baseline) = (clean_line(&view.series_of(row).name), view.baseline());
    let compared = clean_line(&of.level.value);
    if of.cell == row.cell.cell {
        format!("{place}: {winner} is best, {ratio} of {baseline}{interval}, {verdict}")
    } else {
        format!("{place}: {winner} is best; {compared} has {ratio} of {baseline}{interval}, {verdict}")
    }
}

fn csv(view: &View<'_>, grids: &[Grid]) -> String {
    let mut csv = Csv::new(&[
        "context",
        "column",
        "column_unit",
        "column_value",
        "row",
        "row_unit",
        "row_value",
        "winner",
        "compared",
        "baseline",
        "ratio",
        "low",
        "high",
        "verdict",
    ]);
    for (grid, group) in grids.iter().flat_map(|grid| grid.groups.iter().map(move |group| (grid, group))) {
        for (values, context) in &group.points {
            let [columns, rows] = &grid.parameters;
            let mut fields = vec![
                Field::Text(&group.name),
                Field::Text(columns.unit()),
                Field::Number(values[0]),
                Field::Text(rows.unit()),
                Field::Number(values[1]),
            ];
            let titles = [columns.title(), rows.title()];
            fields.insert(1, Field::Text(&titles[0]));
            fields.insert(4, Field::Text(&titles[1]));
            match tile(view, &view.contexts[*context]) {
                Tile::Winner { row, of } => fields.extend([
                    Field::Text(&view.series_of(row).name),
                    Field::Text(&of.level.value),
                    Field::Text(&view.summary().baseline.value),
                    Field::Maybe(of.ratio.map(|ratio| ratio.value)),
                    Field::Maybe(of.ratio.and_then(|ratio| ratio.low)),
                    Field::Maybe(of.ratio.and_then(|ratio| ratio.high)),
                    Field::Text(verdict_name(&of.verdict).0),
                ]),
                Tile::Nothing { .. } => {
                    fields.extend([Field::Empty; 6]);
                    fields.push(Field::Text("invalid"));
                }
            }
            csv.row(&fields);
        }
    }
    csv.finish()
}
