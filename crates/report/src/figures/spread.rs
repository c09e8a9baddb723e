//! What the figures of distributions share: an axis for all cells of a context, and descriptions.

use analysis::distribution::Distribution;
use analysis::pooled;

use super::panel::TOP;
use super::{Context, Row, View, text};
use crate::svg::{Axis, Canvas, Scale};

/// Values of a cell that are enough to show their distribution.
const ENOUGH: u64 = 20;
/// Values of a cell that are enough for bins.
const ENOUGH_FOR_BINS: u64 = 100;
/// Values that span more than this ratio have a logarithmic axis.
pub(super) const DECADES: f64 = 10.0;

/// The common axis of one context's values.
pub(super) struct Spread {
    pub(super) scale: Scale,
    pub(super) units: text::Scale,
    pub(super) unit: String,
    /// Smallest and largest value.
    pub(super) range: (f64, f64),
    logarithmic: bool,
}

impl Spread {
    /// The axis for the values of all cells of a context, between two places; `None` where there are none.
    pub(super) fn of(context: &Context<'_>, places: (f64, f64)) -> Option<Spread> {
        let values = || context.rows.iter().filter_map(|row| values_of(row)).flat_map(ends);
        values().next()?;
        let (low, high) = values().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let unit = context.rows.iter().find_map(|row| Some(row.primary()?.unit.clone()))?;
        let logarithmic = low > 0.0 && high / low > DECADES;
        let pad = (high - low) * 0.02;
        let scale = match logarithmic {
            true => Scale::logarithmic((low * 0.95, high * 1.05), places),
            false => Scale::linear((low - pad, high + pad), places),
        };
        Some(Spread {
            scale,
            units: text::Scale::fitting(&unit, high),
            unit,
            range: (low, high),
            logarithmic,
        })
    }

    /// Draws the axis below the plot; `note` follows its title.
    pub(super) fn draw_axis(&self, view: &View<'_>, canvas: &mut Canvas, bottom: f64, note: &str) {
        let logarithmic = if self.logarithmic { ", logarithmic" } else { "" };
        let title = format!("{}{logarithmic}{note}", self.units.title(&view.metric_title()));
        let label = |value: f64| self.units.short(value);
        Axis { scale: self.scale, top: TOP, bottom, title: &title, label: &label }.draw(canvas);
    }

    /// A value with its unit.
    pub(super) fn value(&self, value: f64) -> String {
        text::value(&self.unit, value)
    }
}

/// The values of a cell, if it has any.
pub(super) fn values_of<'a>(row: &Row<'a>) -> Option<&'a Distribution> {
    row.pooled.map(|pooled| &pooled.values).filter(|values| !values.is_empty())
}

fn ends(values: &Distribution) -> impl Iterator<Item = f64> + use<> {
    [values.quantile(0.0), values.quantile(1.0)].into_iter().flatten()
}

/// Whether most cells have enough values to show their distribution.
pub(super) fn is_worth_showing(view: &View<'_>) -> bool {
    most_have(view, ENOUGH)
}

/// Whether most cells have enough values for bins.
pub(super) fn is_worth_binning(view: &View<'_>) -> bool {
    most_have(view, ENOUGH_FOR_BINS)
}

fn most_have(view: &View<'_>, enough: u64) -> bool {
    let counts = || view.rows().filter_map(values_of).map(Distribution::count);
    let having = counts().filter(|count| *count >= enough).count();
    having > 0 && having * 2 >= counts().count()
}

/// The number of cells with values.
pub(super) fn cells_with_values(view: &View<'_>) -> usize {
    view.rows().filter_map(values_of).count().max(1)
}

/// A sentence that says which values are shown.
pub(super) fn describe_values(view: &View<'_>) -> &'static str {
    if pooled::is_of_requests(&view.summary().metric) {
        "All requests of a cell are pooled over its runs. This is for the picture only: intervals are over runs."
    } else {
        "There is one value for each run."
    }
}

/// The number of values and runs.
pub(super) fn describe_count(view: &View<'_>, row: &Row<'_>) -> String {
    let Some(pooled) = row.pooled else { return String::new() };
    let runs = text::count(pooled.runs as usize, "run", "runs");
    if pooled::is_of_requests(&view.summary().metric) {
        format!("{} requests in {runs}", text::grouped(pooled.values.count()))
    } else {
        runs
    }
}
