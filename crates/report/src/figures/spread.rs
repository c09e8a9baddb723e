//! What the figures of spread values share: an axis for all cells of a context, and words.

use analysis::distribution::Distribution;
use analysis::pooled;

use super::panel::WIDTH;
use super::runs::axis_title;
use crate::svg::{Axis, Canvas, Scale, fit};
use crate::text;
use crate::view::{Context, Row, View};

/// So many values for each cell are enough to show how they are spread.
const ENOUGH: u64 = 20;
/// So many are enough for bins.
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
    /// Over the values of all cells of a context, between two places; `None` where there are none.
    pub(super) fn of(context: &Context<'_>, places: (f64, f64)) -> Option<Spread> {
        let values = || context.rows.iter().filter_map(|row| values_of(row)).flat_map(ends);
        values().next()?;
        let (low, high) = values().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let unit = context.rows.iter().find_map(|row| Some(row.values_metric()?.unit.clone()))?;
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

    /// The axis below the plot; `more` stands behind its title.
    pub(super) fn draw_axis(&self, view: &View<'_>, canvas: &mut Canvas, top: f64, bottom: f64, more: &str) {
        let (left, _) = self.scale.range();
        let note = if self.logarithmic { ", logarithmic" } else { "" };
        let title = format!("{}{note}{more}", axis_title(&view.metric_title(), &self.units));
        let title = fit(&title, 11.5, WIDTH - left);
        let label = |value: f64| self.units.short(value);
        Axis { scale: self.scale, top, bottom, width: WIDTH, title: &title, label: &label }.draw(canvas);
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

/// Whether most cells have enough values to show how they are spread.
pub(super) fn is_worth_showing(view: &View<'_>) -> bool {
    most_have(view, ENOUGH)
}

/// Whether most cells have enough values for bins.
pub(super) fn is_worth_binning(view: &View<'_>) -> bool {
    most_have(view, ENOUGH_FOR_BINS)
}

fn most_have(view: &View<'_>, enough: u64) -> bool {
    let counts = || view.rows_with_context().filter_map(|(_, row)| values_of(row)).map(Distribution::count);
    let having = counts().filter(|count| *count >= enough).count();
    having > 0 && having * 2 >= counts().count()
}

/// What the values are, in a sentence.
pub(super) fn what_is_shown(view: &View<'_>) -> &'static str {
    if pooled::is_of_requests(&view.summary().metric) {
        "All requests of a cell are shown, those of its runs together: good for a picture, and no ground for an interval, \
         which is over runs."
    } else {
        "The values are those of the runs, one of each."
    }
}

/// How many values, of how many runs.
pub(super) fn count_words(view: &View<'_>, row: &Row<'_>) -> String {
    let Some(pooled) = row.pooled else { return String::new() };
    let count = pooled.values.count();
    let runs = text::count(pooled.runs as usize, "run", "runs");
    if pooled::is_of_requests(&view.summary().metric) {
        format!("{} requests of {runs}", text::grouped(count))
    } else {
        runs
    }
}
