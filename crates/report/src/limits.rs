//! What of a large study stands in the page: it is to be mailed, so it has a weight, and what does not fit stands in the files
//! beside it. Nothing is dropped in silence, and what may not be believed comes first.

use crate::view::{Context, View};

/// A page with all its parts is to stay below 3 MB; this leaves room for what is not counted.
const MOST_BYTES: usize = 2_750_000;
/// Files inside a page weigh at most so much, for they stand beside it.
const MOST_FILE_BYTES: usize = 1_200_000;
/// What a row of the primary metric weighs on average: in the answer, in its table, and in that of the load.
const ROW_BYTES: usize = 2_400;
/// What a row of another metric weighs.
const EXPLORED_BYTES: usize = 700;
/// What the result of one check of one cell weighs.
const CHECK_BYTES: usize = 80;
/// Networks that are described and drawn.
pub(crate) const MOST_NETWORKS: usize = 24;

/// How much of each part the page may hold.
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
    /// What there is room for beside figures of so many bytes, which come first.
    pub(crate) fn beside(figure_bytes: usize) -> Limits {
        let bytes = MOST_BYTES.saturating_sub(figure_bytes);
        let share =
            |hundredths: usize, each: usize, least: usize| (bytes / 100 * hundredths / each).max(least);
        Limits {
            rows: share(30, ROW_BYTES, 60),
            explored: share(30, EXPLORED_BYTES, 60),
            checks: share(12, CHECK_BYTES, 400),
        }
    }

    /// Bytes of files that there is room for beside figures of so many bytes and so much of each part.
    pub(crate) fn file_bytes(figure_bytes: usize, used: Limits) -> usize {
        let parts = used.rows * ROW_BYTES + used.explored * EXPLORED_BYTES + used.checks * CHECK_BYTES;
        MOST_BYTES.saturating_sub(figure_bytes + parts).min(MOST_FILE_BYTES)
    }
}

/// The contexts that the page shows, all in the order of the plan, or those first that a reader has to see: with cells that may not
/// be believed, then with the largest differences.
pub(crate) fn contexts<'v, 'a>(view: &'v View<'a>, rows: usize) -> Vec<&'v Context<'a>> {
    let mut contexts: Vec<&Context<'a>> = view.contexts.iter().collect();
    if view.summary().cells.len() <= rows {
        return contexts;
    }
    let is_sound = |context: &Context<'_>| context.rows.iter().all(|row| row.is_believable());
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

/// What is not there, and where it is; nothing where all is there.
pub(crate) fn rest(shown: usize, all: usize, things: &str, order: &str, file: &str) -> Option<String> {
    (shown < all).then(|| format!("{shown} of {all} {things} stand here, {order}; {file} has all."))
}
