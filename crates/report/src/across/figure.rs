//! The ratios of all cells, B to A, drawn as in the report: a panel for cells that differ in the compared
//! factor only.

use analysis::across::{Across, CellAcross};

use super::names::{Names, full};
use super::{direction, primary, unit};
use crate::context::verdict_name;
use crate::encode::Csv;
use crate::figures::comparison::{Ground, Layout, RatioRow, describe_ratio, range};
use crate::figures::{Drawing, DrawnFigure, Key};
use crate::text;
use crate::view::more_is_better;

/// Draws it; `None` if no cell has a ratio.
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
        more_is_better: more_is_better(&across.metric),
    };
    let panel = |(context, rows): &(String, Vec<RatioRow>)| ground.panel(context, "ratios of B to A", rows);
    let margin = text::percent(across.margin_share);
    let drawing = Drawing {
        title: format!("{}, B against A", text::metric_title(&across.metric)),
        caption: format!(
            "Ratio of B's {} to A's with its 95 % interval over runs, on a logarithmic axis: at 1× there is no difference, {}. \
             Differences of up to {margin}, the shaded band, do not matter.",
            text::statistic_noun(across.statistic),
            direction(&across.metric, unit(across))
        ),
        keys: vec![Key::new("band", &format!("within {margin} of A"))],
        panels: contexts.iter().map(panel).collect(),
        csv: csv(&cells),
    };
    DrawnFigure::new("ratios", drawing, &names.all_series())
}

/// The cells of each context, in their order.
fn contexts(cells: &[&CellAcross], names: &Names, domain: (f64, f64)) -> Vec<(String, Vec<RatioRow>)> {
    text::by_key(cells.iter().map(|cell| (names.context(&cell.comparison.context), row(cell, names, domain))))
}

fn row(cell: &CellAcross, names: &Names, domain: (f64, f64)) -> RatioRow {
    let found = &cell.comparison;
    let (verdict, class) = verdict_name(&found.verdict);
    let (name, style) = names.series(&found.context);
    let is_invalid = class == "invalid";
    let ratio = describe_ratio(found.ratio, domain);
    RatioRow {
        sentence: format!("{}: B against A {ratio}, {verdict}", names.cell(&found.context)),
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
    let mut csv = Csv::default();
    for cell in cells {
        let found = &cell.comparison;
        csv.row(&[
            ("cell", full(&found.context).into()),
            ("unit", cell.unit.as_str().into()),
            ("a", cell.a.map(|a| a.value).into()),
            ("b", cell.b.map(|b| b.value).into()),
            ("ratio", found.ratio.map(|ratio| ratio.value).into()),
            ("ratio_low", found.ratio.and_then(|ratio| ratio.low).into()),
            ("ratio_high", found.ratio.and_then(|ratio| ratio.high).into()),
            ("p_adjusted", found.p_adjusted.into()),
            ("verdict", verdict_name(&found.verdict).0.into()),
        ]);
    }
    csv.finish()
}
