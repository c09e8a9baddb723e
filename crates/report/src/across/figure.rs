//! The ratios of all cells, B to A, below each other: point, interval, the margin of interest, the verdict.

use analysis::across::{Across, CellAcross};

use super::{label, primary, ratio_words};
use crate::encode::{Csv, Field};
use crate::figures::comparison::{WIDEST, draw_interval, trim};
use crate::figures::panel::{LABEL_SIZE, WIDTH};
use crate::figures::{Drawing, DrawnFigure, Key, Panel};
use crate::palette::{self, Style};
use crate::svg::{Anchor, Axis, Canvas, Rect, Scale, at, fit};
use crate::text;
use crate::view::verdict_name;

/// A row holds the cell's name and, below it, what was found.
const ROW: f64 = 46.0;
const TOP: f64 = 10.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 236.0;
const NOTE_LEFT: f64 = 250.0;
/// Rows of one panel; beyond, another stands beside it.
const MOST_ROWS: usize = 14;

/// Draws it; `None` where no cell has a ratio.
pub(super) fn draw(across: &Across) -> Option<DrawnFigure> {
    let cells: Vec<&CellAcross> = primary(across).collect();
    let scale = Scale::logarithmic(domain(across, &cells)?, (LEFT, RIGHT));
    let style = palette::style_of("B", 0);
    let parts = cells.len().div_ceil(MOST_ROWS).max(1);
    let rows = cells.len().div_ceil(parts).max(1);
    let panels = cells.chunks(rows).map(|cells| draw_panel(across, cells, scale, style)).collect();
    let margin = text::percent(across.margin_share);
    let title = text::capital(&text::metric_title(&across.metric));
    let drawing = Drawing {
        title: format!("{title}, B against A"),
        caption: format!(
            "Ratio of B's median to A's, and its 95 % interval over runs, on a logarithmic axis: at 1 there is no \
             difference. Differences of up to {margin}, the shaded band, do not matter."
        ),
        keys: vec![Key::new("band", &format!("within {margin} of A"))],
        panels,
        csv: csv(&cells),
    };
    Some(DrawnFigure { name: "ratios", drawing, series: Vec::new() })
}

fn domain(across: &Across, cells: &[&CellAcross]) -> Option<(f64, f64)> {
    let ratios: Vec<_> = cells.iter().filter_map(|cell| cell.comparison.ratio).collect();
    ratios.first()?;
    let margin = across.margin_share;
    let values = ratios.iter().flat_map(|ratio| [Some(ratio.value), ratio.low, ratio.high]).flatten();
    let values = values.filter(|value| value.is_finite() && *value > 0.0);
    let values = values.chain([1.0 / (1.0 + margin) * 0.95, (1.0 + margin) * 1.05]);
    let (low, high) = values.fold((1.0, 1.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    Some(((low * 0.96).max(WIDEST.0), (high * 1.04).min(WIDEST.1)))
}

#[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
fn draw_panel(across: &Across, cells: &[&CellAcross], scale: Scale, style: Style) -> Panel {
    let bottom = TOP + cells.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    let margin = across.margin_share;
    let (from, to) = (scale.place(1.0 / (1.0 + margin)), scale.place(1.0 + margin));
    canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
    let axis = Axis {
        scale,
        top: TOP,
        bottom,
        width: WIDTH,
        title: "ratio of B to A",
        label: &|v| format!("{}×", model::units::three_digits(trim(v))),
    };
    axis.draw(&mut canvas);
    canvas.line(at(scale.place(1.0), TOP), at(scale.place(1.0), bottom), "zero");
    let mut description = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let y = TOP + index as f64 * ROW;
        let sentence = format!(
            "{}: {}, {}",
            label(&cell.comparison.context),
            ratio_words(cell.comparison.ratio),
            verdict_name(&cell.comparison.verdict).0
        );
        draw_row(&mut canvas, cell, scale, style, y, &sentence);
        description.push(sentence);
    }
    Panel {
        title: "Ratios of B to A".to_owned(),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
    }
}

fn draw_row(canvas: &mut Canvas, cell: &CellAcross, scale: Scale, style: Style, top: f64, sentence: &str) {
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let is_invalid = class == "invalid";
    let group = format!("s-{}{}", style.class, if is_invalid { " bad" } else { "" });
    let name_class = if is_invalid { "label halo struck" } else { "label halo" };
    canvas.group(&group, Some(sentence), |c| {
        c.rect(Rect { x: 0.0, y: top, width: WIDTH, height: ROW }, "hit");
        let name = fit(&label(&cell.comparison.context), LABEL_SIZE * 1.12, WIDTH);
        c.text(at(0.0, top + 13.0), Anchor::Start, name_class, &name);
        let y = top + 30.0;
        if let Some(ratio) = cell.comparison.ratio {
            draw_interval(c, ratio, scale, y);
            c.marker(at(scale.place(ratio.value), y), style, 5.5);
            if is_invalid {
                c.cross(at(scale.place(ratio.value), y), 7.0);
            }
        }
        let value_class =
            if is_invalid && cell.comparison.ratio.is_some() { "value struck" } else { "value" };
        let words = fit(&ratio_words(cell.comparison.ratio), LABEL_SIZE, WIDTH - NOTE_LEFT);
        c.text(at(NOTE_LEFT, y - 1.0), Anchor::Start, value_class, &words);
        c.text(at(NOTE_LEFT, y + 13.0), Anchor::Start, &format!("verdict v-{class}"), verdict);
    });
}

fn csv(cells: &[&CellAcross]) -> String {
    let mut csv =
        Csv::new(&["cell", "unit", "a", "b", "ratio", "ratio_low", "ratio_high", "p_adjusted", "verdict"]);
    for cell in cells {
        let found = &cell.comparison;
        csv.row(&[
            Field::Text(&label(&found.context)),
            Field::Text(&cell.unit),
            Field::Maybe(cell.a.map(|a| a.value)),
            Field::Maybe(cell.b.map(|b| b.value)),
            Field::Maybe(found.ratio.map(|ratio| ratio.value)),
            Field::Maybe(found.ratio.and_then(|ratio| ratio.low)),
            Field::Maybe(found.ratio.and_then(|ratio| ratio.high)),
            Field::Maybe(found.p_adjusted),
            Field::Text(verdict_name(&found.verdict).0),
        ]);
    }
    csv.finish()
}
