//! The ratios of all cells, B to A: a panel for what is alike in all but the compared factor, drawn as the report draws ratios.

use analysis::across::{Across, CellAcross};
use analysis::metrics::{self, Better};

use super::names::{Names, full};
use super::{direction, primary, unit};
use crate::encode::{Csv, Field};
use crate::figures::comparison::{Ground, Layout, RatioRow, beyond, range, ratio_words};
use crate::figures::{Drawing, DrawnFigure, Key, MOST_PANELS, Panel};
use crate::palette::Style;
use crate::text;
use crate::view::verdict_name;

/// Draws it; `None` where no cell has a ratio.
pub(super) fn draw(across: &Across, names: &Names) -> Option<DrawnFigure> {
    let cells: Vec<&CellAcross> = primary(across).collect();
    cells.iter().find_map(|cell| cell.comparison.ratio)?;
    let domain = range(cells.iter().map(|cell| cell.comparison.ratio), across.margin_share)?;
    let contexts = contexts(&cells, names, domain);
    let ground = Ground {
        layout: Layout::of(contexts.iter().flat_map(|(_, rows)| rows)),
        domain,
        margin_share: across.margin_share,
        against: "ratio of B to A".to_owned(),
        unit: unit(across),
        more_is_better: metrics::find(&across.metric).is_some_and(|metric| metric.better == Better::Higher),
    };
    let panel = |(context, rows): &(String, Vec<RatioRow>)| {
        ground.panel(context, format!("{context}: ratios of B to A"), rows)
    };
    let mut panels: Vec<Panel> = contexts.iter().map(panel).collect();
    let margin = text::percent(across.margin_share);
    let mut caption = format!(
        "Ratio of B's median to A's, and its 95 % interval over runs, on a logarithmic axis: at 1× there is no difference, {}. \
         Differences of up to {margin}, the shaded band, do not matter.",
        direction(&across.metric, unit(across))
    );
    if panels.len() > MOST_PANELS {
        caption.push_str(&format!(
            " The first {MOST_PANELS} of {} panels are drawn; the CSV has all.",
            panels.len()
        ));
        panels.truncate(MOST_PANELS);
    }
    let drawing = Drawing {
        title: format!("{}, B against A", text::capital(&text::metric_title(&across.metric))),
        caption,
        keys: vec![Key::new("band", &format!("within {margin} of A"))],
        panels,
        csv: csv(&cells),
    };
    let is_drawn = |(_, style): &(String, Style)| drawing.panels.iter().any(|panel| panel.shows(*style));
    let series = names.all_series().into_iter().filter(is_drawn).collect();
    Some(DrawnFigure { name: "ratios", drawing, series })
}

/// The cells of each context, in their order.
fn contexts(cells: &[&CellAcross], names: &Names, domain: (f64, f64)) -> Vec<(String, Vec<RatioRow>)> {
    let mut contexts: Vec<(String, Vec<RatioRow>)> = Vec::new();
    for cell in cells {
        let (context, row) = (names.context(&cell.comparison.context), row(cell, names, domain));
        match contexts.iter_mut().find(|(known, _)| *known == context) {
            Some((_, rows)) => rows.push(row),
            None => contexts.push((context, vec![row])),
        }
    }
    contexts
}

fn row(cell: &CellAcross, names: &Names, domain: (f64, f64)) -> RatioRow {
    let found = &cell.comparison;
    let (verdict, class) = verdict_name(&found.verdict);
    let (name, style) = names.series(&found.context);
    let is_invalid = class == "invalid";
    let words = ratio_words(found.ratio, "no ratio");
    RatioRow {
        sentence: format!(
            "{}: B against A {words}{}, {verdict}",
            names.cell(&found.context),
            beyond(found.ratio, domain)
        ),
        name,
        style,
        ratio: found.ratio,
        verdict,
        class,
        is_name_struck: is_invalid,
        is_believable: !is_invalid,
    }
}

fn csv(cells: &[&CellAcross]) -> String {
    let mut csv =
        Csv::new(&["cell", "unit", "a", "b", "ratio", "ratio_low", "ratio_high", "p_adjusted", "verdict"]);
    for cell in cells {
        let found = &cell.comparison;
        csv.row(&[
            Field::Text(&full(&found.context)),
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
