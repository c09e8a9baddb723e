//! Strings that servers and files could send to deceive a browser, a terminal or a spreadsheet.

use report::{RunTrace, render};
use serde_json::json;

use crate::fabricated::{self, Fabricated};
use crate::figures;
use crate::structure::{assert_self_contained, assert_well_formed};

pub(crate) const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "]]></style></svg><script>alert(1)</script>",
    "javascript:alert(1)",
    "=HYPERLINK(\"http://evil.test\",\"click\")",
    "{{ 7 * 7 }}{% include 'x' %}",
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}txt.exe\u{0}",
];

fn spoil(index: usize, text: &mut String) {
    *text = format!("{}{index}", HOSTILE[index % HOSTILE.len()]);
}

/// Every figure is drawn, as far as there is something for it.
fn plan_every_figure(fabricated: &mut Fabricated) {
    fabricated.plan.figures = Some(report::figure_kinds().map(|kind| kind.name.to_owned()).collect());
}

/// `quick` with a hostile string in every place that takes one.
pub(crate) fn fabricated() -> Fabricated {
    let mut fabricated = figures::watched(figures::publishing(fabricated::troubled()));
    let all = HOSTILE.join(" ");
    plan_every_figure(&mut fabricated);
    fabricated.damaged = HOSTILE.map(str::to_owned).to_vec();
    let Fabricated { plan, summary, environment, traces, command, .. } = &mut fabricated;
    for text in [&mut plan.study, &mut plan.question, &mut plan.study_text, command] {
        text.clone_from(&all);
    }
    summary.study.clone_from(&all);
    for published in &mut plan.published {
        published.source.clone_from(&all);
    }
    summary.question.clone_from(&all);
    for (index, network) in plan.networks.iter_mut().enumerate() {
        for text in [&mut network.name, &mut network.title, &mut network.source] {
            spoil(index, text);
        }
    }
    for (found, network) in summary.networks.iter_mut().zip(&plan.networks) {
        found.network.clone_from(&network.name);
    }
    for (index, workload) in plan.workloads.iter_mut().enumerate() {
        spoil(index, &mut workload.name);
    }
    plan.servers = HOSTILE.map(str::to_owned).to_vec();
    for cell in &mut summary.cells {
        for level in cell.levels.iter_mut().skip(1) {
            level.value = format!("{all}{}", level.value);
        }
        cell.reasons = HOSTILE.map(str::to_owned).to_vec();
        for check in &mut cell.validity {
            for text in [
                &mut check.check,
                &mut check.measured,
                &mut check.threshold,
                &mut check.why,
                &mut check.remedy,
            ] {
                text.push_str(&all);
            }
        }
        let metrics = std::mem::take(&mut cell.metrics);
        for (name, mut metric) in metrics {
            let name = if name == "requests" { all.clone() } else { name };
            metric.unit = if metric.unit == "1" { all.clone() } else { metric.unit };
            cell.metrics.insert(name, metric);
        }
    }
    for comparison in &mut summary.comparisons {
        comparison.verdict = analysis::summary::Verdict::Invalid { because: vec![all.clone()] };
    }
    let spoil_trace = |trace: &mut RunTrace| {
        for (index, request) in trace.requests.iter_mut().enumerate() {
            spoil(index, &mut request.url);
            request.failure = (index % 3 == 0).then(|| all.clone());
        }
    };
    traces.iter_mut().for_each(spoil_trace);
    *environment = json!({ all.clone(): { all.clone(): all.clone() }, "list": HOSTILE });
    fabricated
}

#[test]
fn nothing_runs_and_nothing_breaks_out() {
    let report = render(&fabricated().input()).unwrap();
    assert_well_formed(&report);
    assert_self_contained(&report.html);
    for text in std::iter::once(&report.html).chain(report.figures.iter().map(|figure| &figure.svg)) {
        for tag in ["<script", "<img", " onerror=alert(1)>", "' onmouseover='"] {
            assert!(!text.to_lowercase().contains(tag), "found {tag}");
        }
    }
    assert!(report.html.contains("{{ 7 * 7 }}"), "a template inside data is data");
    assert_eq!(report.html.matches("</style>").count(), 1);
}

#[test]
fn a_spreadsheet_finds_no_formula() {
    let report = render(&fabricated().input()).unwrap();
    let files =
        report.tables.iter().map(|table| &table.csv).chain(report.figures.iter().map(|figure| &figure.csv));
    for csv in files {
        for line in csv.lines() {
            let fields = line.split(',').map(|field| field.trim_start_matches('"'));
            for field in fields {
                let formula = field.starts_with(['=', '+', '@', '\t']);
                let minus = field.starts_with('-') && field.parse::<f64>().is_err();
                assert!(!formula && !minus, "{field} in {line}");
            }
        }
    }
}

#[test]
fn a_terminal_receives_no_commands() {
    let report = render(&fabricated().input()).unwrap();
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!report.terminal.contains(harmful));
    assert!(!report.html.contains('\u{202e}') && !report.html.contains('\u{1b}'));
}
