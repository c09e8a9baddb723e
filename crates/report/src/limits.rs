//! The part of a large study that the page shows. A page can be mailed, so its size is limited; the rest is
//! in the files of the result. The page names every omission, and shows invalid cells first.

use crate::context::{Context, Row};
use crate::view::View;

/// A page stays below 3 MB; this leaves room for parts that are not counted.
const MAX_BYTES: usize = 2_750_000;
/// Files embedded in a page, all together.
const MAX_FILE_BYTES: usize = 1_200_000;
/// The mean size of a row of the primary metric: in the summary, in its table, and in that of the load.
const ROW_BYTES: usize = 2_400;
/// The mean size of a row of another metric.
const EXPLORED_BYTES: usize = 700;
/// The mean size of the result of one check of one cell.
const CHECK_BYTES: usize = 80;
/// Networks that are described and drawn.
pub(crate) const MAX_NETWORKS: usize = 24;

/// The maximum of each part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Rows of the primary metric.
    pub(crate) rows: usize,
    /// Rows of other metrics.
    pub(crate) explored: usize,
    /// Results of checks.
    pub(crate) checks: usize,
}

impl Limits {
    /// The limits of a page whose figures, which come first, have this many bytes.
    pub(crate) fn for_figures(figure_bytes: usize) -> Limits {
        let bytes = MAX_BYTES.saturating_sub(figure_bytes);
        let share =
            |hundredths: usize, each: usize, least: usize| (bytes / 100 * hundredths / each).max(least);
        Limits {
            rows: share(30, ROW_BYTES, 60),
            explored: share(30, EXPLORED_BYTES, 60),
            checks: share(12, CHECK_BYTES, 400),
        }
    }

    /// The room for files next to figures of this many bytes and these parts.
    pub(crate) fn file_bytes(figure_bytes: usize, used: Limits) -> usize {
        let parts = used.rows * ROW_BYTES + used.explored * EXPLORED_BYTES + used.checks * CHECK_BYTES;
        MAX_BYTES.saturating_sub(figure_bytes + parts).min(MAX_FILE_BYTES)
    }
}

/// The contexts that the page shows: all in the order of the plan or, if not all fit, those with invalid
/// cells first, then those with the largest differences.
pub(crate) fn contexts<'v, 'a>(view: &'v View<'a>, rows: usize) -> Vec<&'v Context<'a>> {
    let mut contexts: Vec<&Context<'a>> = view.contexts.iter().collect();
    if view.summary().cells.len() <= rows {
        return contexts;
    }
    let is_sound = |context: &Context<'_>| context.rows.iter().all(Row::is_believable);
    let difference = |context: &Context<'_>| {
        let ratios = context.rows.iter().filter_map(|row| row.comparison?.ratio);
        ratios.map(|ratio| ratio.value.ln().abs()).filter(|size| size.is_finite()).fold(0.0, f64::max)
    };
    contexts.sort_by(|one, other| {
        is_sound(one).cmp(&is_sound(other)).then(difference(other).total_cmp(&difference(one)))
    });
    let mut shown = 0;
    contexts.retain(|context| {
        let fits = shown == 0 || shown + context.rows.len() <= rows;
        shown += if fits { context.rows.len() } else { 0 };
        fits
    });
    contexts
}

/// A note about omitted things and the file that has them; `None` if all are shown.
pub(crate) fn rest(shown: usize, all: usize, things: &str, order: &str, file: &str) -> Option<String> {
    (shown < all).then(|| format!("{shown} of {all} {things} are shown, {order}; {file} has all."))
}
