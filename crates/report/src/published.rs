//! Published values next to the measured ones: a row for each, with its outcome and the reason.

use analysis::published::display;
use analysis::summary::{PublishedOutcome, PublishedResult};
use serde::Serialize;

use crate::text::{self, clean_line};
use crate::view::View;

/// Rows that the page shows; the table has all.
const MAX_ROWS: usize = 200;

/// The section of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Section {
    /// How many agree, disagree and cannot be compared; empty without published values.
    pub(crate) counts: String,
    pub(crate) rows: Vec<PublishedRow>,
    /// The number of rows left out, in a sentence.
    pub(crate) rest: Option<String>,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PublishedRow {
    pub(crate) what: String,
    pub(crate) published: String,
    pub(crate) measured: String,
    pub(crate) result: &'static str,
    pub(crate) class: &'static str,
    pub(crate) reason: String,
    pub(crate) source: String,
}

/// The section: empty if the study has no published values.
pub(crate) fn section(view: &View<'_>) -> Section {
    let all = &view.summary().published;
    if all.is_empty() {
        return Section::default();
    }
    let count = |outcome| all.iter().filter(|found| found.result == outcome).count();
    let counts: Vec<String> = PublishedOutcome::ALL
        .into_iter()
        .filter(|outcome| count(*outcome) > 0)
        .map(|outcome| format!("{} {}", count(outcome), verb(outcome, count(outcome))))
        .collect();
    let shown = all.len().min(MAX_ROWS);
    let rest = (shown < all.len())
        .then(|| format!("{shown} of {} are shown; tables/published.csv has all.", all.len()));
    let counts =
        format!("{}: {}.", text::count(all.len(), "published value", "published values"), counts.join(", "));
    Section { counts, rows: all[..shown].iter().map(|found| row(view, found)).collect(), rest }
}

fn verb(outcome: PublishedOutcome, count: usize) -> &'static str {
    match (outcome, count) {
        (PublishedOutcome::Agrees, 1) => "agrees",
        (PublishedOutcome::Agrees, _) => "agree",
        (PublishedOutcome::Disagrees, 1) => "disagrees",
        (PublishedOutcome::Disagrees, _) => "disagree",
        (PublishedOutcome::NotComparable, _) => "cannot be compared",
    }
}

fn row(view: &View<'_>, found: &PublishedResult) -> PublishedRow {
    let metric = text::uncapital(&text::metric_title(&found.metric));
    let against = found.against.as_ref().map_or(String::new(), |level| format!(" against {}", level.value));
    let measured = found.measured.map_or(text::NONE.to_owned(), |measured| {
        let one = |value| display(value, &found.unit);
        match (measured.low, measured.high) {
            (Some(low), Some(high)) => format!("{} [{}\u{2013}{}]", one(measured.value), one(low), one(high)),
            _ => one(measured.value),
        }
    });
    PublishedRow {
        what: clean_line(&format!(
            "{}{against}: {} of {metric}",
            view.cell_name(found.cell),
            found.statistic.name()
        )),
        published: display(found.published, &found.unit),
        measured,
        result: found.result.name(),
        class: match found.result {
            PublishedOutcome::Agrees => "valid",
            PublishedOutcome::Disagrees => "invalid",
            PublishedOutcome::NotComparable => "caveat",
        },
        reason: clean_line(&found.reason),
        source: clean_line(&found.source),
    }
}
