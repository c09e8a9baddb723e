//! The caveats: checks that did not pass, cells that failed or are unsupported, missing and damaged data.

mod merge;

use analysis::checks::CHECKS;
use analysis::summary::{CellStatus, CheckOutcome, CheckResult, ClaimOutcome, ClaimResult};
use serde::Serialize;

use crate::text::{self, clean_line};
use crate::view::View;

/// Reasons shown for a cell; further ones are counted.
const MAX_REASONS: usize = 8;

/// What a reader must know before using the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Caveats {
    /// A sentence about missing runs.
    pub(crate) missing: Option<String>,
    /// Files that are damaged or missing.
    pub(crate) damaged: Vec<String>,
    /// One for each check and outcome, the worst first.
    pub(crate) findings: Vec<Finding>,
    /// Cells without numbers.
    pub(crate) lost: Vec<Lost>,
    /// Cells with numbers, but with failed runs.
    pub(crate) partly: Vec<Lost>,
    /// Metrics that a cell's client does not report.
    pub(crate) not_reported: Vec<NotReported>,
    /// The claims of the study, and their results.
    pub(crate) claims: Vec<ClaimRow>,
    /// What was checked, if there are no caveats.
    pub(crate) nothing: Option<String>,
}

/// A check that did not pass, and where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: String,
    pub(crate) class: &'static str,
    pub(crate) why: String,
    pub(crate) remedy: String,
    pub(crate) cells: Vec<Place>,
}

/// A cell and what a check measured there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Place {
    pub(crate) cell: String,
    pub(crate) measured: String,
    pub(crate) threshold: String,
}

/// A claim of the study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ClaimRow {
    pub(crate) text: String,
    pub(crate) class: &'static str,
    pub(crate) result: &'static str,
    pub(crate) measured: String,
    pub(crate) expected: String,
}

/// Metrics that some cells lack, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NotReported {
    pub(crate) metrics: String,
    pub(crate) reason: String,
    pub(crate) cells: String,
}

/// A cell that lost some or all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Lost {
    pub(crate) cell: String,
    pub(crate) status: &'static str,
    pub(crate) reasons: String,
}

fn claim_row(claim: &ClaimResult) -> ClaimRow {
    let (class, result) = match claim.result {
        ClaimOutcome::Holds => ("pass", "holds"),
        ClaimOutcome::NotShown => ("caveat", "not shown"),
        ClaimOutcome::Refuted => ("invalid", "refuted"),
    };
    let [text, measured, expected] =
        [&claim.text, &claim.measured, &claim.expected].map(|text| clean_line(text));
    ClaimRow { text, class, result, measured, expected }
}

/// The title of a check.
pub(crate) fn check_title(check: &str) -> String {
    text::capital(&clean_line(&check.replace(['_', '-'], " ")))
}

/// A reason with the names of checks spelled for people.
pub(crate) fn describe_reason(reason: &str) -> String {
    let is_key = |word: &str| CHECKS.iter().any(|check| check.name == word && word.contains('_'));
    let spelled = |word: &str| if is_key(word) { word.replace('_', " ") } else { word.to_owned() };
    clean_line(reason).split(' ').map(spelled).collect::<Vec<_>>().join(" ")
}

/// Collects all caveats.
pub(crate) fn collect(view: &View<'_>) -> Caveats {
    let summary = view.summary();
    let mut caveats = Caveats {
        missing: (summary.runs_stored < summary.runs_planned).then(|| {
            let cells = summary.cells.iter().filter(|cell| cell.status == CellStatus::NotMeasured).count();
            let cells = match cells {
                0 => String::new(),
                1 => " 1 cell is not measured.".to_owned(),
                cells => format!(" {cells} cells are not measured."),
            };
            format!(
                "{} of {} planned runs are {}.{cells} The results below are based on fewer runs.",
                summary.runs_stored,
                summary.runs_planned,
                if view.input.damaged.is_empty() {
                    "stored because the study did not finish"
                } else {
                    "readable"
                }
            )
        }),
        damaged: view.input.damaged.iter().map(|what| clean_line(what)).collect(),
        ..Caveats::default()
    };
    caveats.findings =
        [CheckOutcome::Invalid, CheckOutcome::Caveat].map(|outcome| findings(view, outcome)).concat();
    for cell in &summary.cells {
        let lost = Lost {
            cell: view.cell_name(cell.cell),
            status: cell.status.name(),
            reasons: reasons(&cell.reasons, cell.runs_failed),
        };
        match cell.status {
            CellStatus::NotMeasured => {}
            CellStatus::Failed | CellStatus::Unsupported => caveats.lost.push(lost),
            _ if cell.runs_failed > 0 => caveats.partly.push(lost),
            _ => {}
        }
    }
    caveats.lost = merge::lost(&caveats.lost, summary.cells.len());
    caveats.partly = merge::lost(&caveats.partly, summary.cells.len());
    caveats.not_reported = not_reported(view);
    caveats.claims = summary.claims.iter().map(claim_row).collect();
    let is_empty = caveats.missing.is_none()
        && caveats.damaged.is_empty()
        && caveats.findings.is_empty()
        && caveats.lost.is_empty()
        && caveats.partly.is_empty();
    if is_empty {
        caveats.nothing = Some(nothing(view));
    }
    caveats
}

/// The metrics that were not reported and their cells, grouped by reason.
fn not_reported(view: &View<'_>) -> Vec<NotReported> {
    let all = &view.summary().cells;
    let found = all.iter().flat_map(|cell| {
        cell.not_reported.iter().map(move |(metric, reason)| (reason, (check_title(metric), cell.cell)))
    });
    let joined = |(reason, found): (&String, Vec<(String, u32)>)| {
        let (metrics, cells): (Vec<String>, Vec<u32>) = found.into_iter().unzip();
        let cells = text::distinct(cells.into_iter().map(|cell| view.cell_name(cell)));
        NotReported {
            metrics: text::distinct(metrics).join(", "),
            reason: clean_line(reason),
            cells: merge::named(&cells.iter().map(String::as_str).collect::<Vec<_>>(), all.len()),
        }
    };
    text::by_key(found).into_iter().map(joined).collect()
}

fn nothing(view: &View<'_>) -> String {
    let cells = view.summary().cells.len();
    let checks = view.summary().cells.iter().map(|cell| cell.validity.len()).max().unwrap_or(0);
    if checks == 0 {
        return "No checks were made; these numbers are unverified.".to_owned();
    }
    format!(
        "None: every run succeeded, and each of the {} passed all {}.",
        text::count(cells, "cell", "cells"),
        text::count(checks, "check", "checks")
    )
}

/// The checks with this outcome, each with its cells.
fn findings(view: &View<'_>, outcome: CheckOutcome) -> Vec<Finding> {
    let all = &view.summary().cells;
    let results = all.iter().flat_map(|cell| cell.validity.iter().map(move |result| (cell.cell, result)));
    let found = results.filter(|(_, result)| result.result == outcome);
    let place = |(cell, result): &(u32, &CheckResult)| Place {
        cell: view.cell_name(*cell),
        measured: clean_line(&result.measured),
        threshold: clean_line(&result.threshold),
    };
    let finding = |(check, found): (String, Vec<(u32, &CheckResult)>)| Finding {
        check,
        class: outcome.name(),
        why: clean_line(&found[0].1.why),
        remedy: clean_line(&found[0].1.remedy),
        cells: merge::places(&found.iter().map(place).collect::<Vec<_>>(), all.len()),
    };
    let found = text::by_key(found.map(|found| (check_title(&found.1.check), found)));
    found.into_iter().map(finding).collect()
}

fn reasons(reasons: &[String], runs_failed: u32) -> String {
    let shown: Vec<String> = reasons
        .iter()
        .take(MAX_REASONS)
        .map(|reason| text::shorten_middle(&clean_line(reason), 300))
        .collect();
    let more = reasons.len().saturating_sub(MAX_REASONS);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let failed = match runs_failed {
        0 => String::new(),
        n => format!("{} failed: ", text::count(n as usize, "run", "runs")),
    };
    let shown = if shown.is_empty() { "no reason is stored".to_owned() } else { shown.join("; ") };
    format!("{failed}{shown}{more}")
}
