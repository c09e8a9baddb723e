//! Two results against each other: the page, from fabricated comparisons.

use analysis::across::{Across, CellAcross, Doubt};
use analysis::summary::{Comparison, Estimate, Verdict};
use model::plan::Level;
use report::{AcrossInput, across_html, across_markdown, across_terminal};

use crate::structure::assert_self_contained;

fn level(factor: &str, value: &str) -> Level {
    Level { factor: factor.to_owned(), value: value.to_owned() }
}

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate { value, low: Some(value - half), high: Some(value + half) }
}

fn cell(number: u32, levels: [&str; 4], metric: &str, medians: (f64, f64), verdict: Verdict) -> CellAcross {
    let factors = ["variant", "server", "network", "workload"];
    let ratio = medians.1 / medians.0;
    CellAcross {
        a: Some(estimate(medians.0 * 1e6, medians.0 * 4e4)),
        b: Some(estimate(medians.1 * 1e6, medians.1 * 3e4)),
        unit: "ns".to_owned(),
        comparison: Comparison {
            metric: metric.to_owned(),
            primary: metric == "page_load_time",
            level: level("result", "B"),
            context: factors.iter().zip(levels).map(|(factor, value)| level(factor, value)).collect(),
            cell: number,
            baseline_cell: number,
            pairs: 0,
            ratio: Some(estimate(ratio, 0.05 * ratio)),
            difference: None,
            p_adjusted: Some(0.01),
            p_equivalent_adjusted: None,
            smallest_showable_ratio: None,
            verdict,
        },
    }
}

/// Every verdict, doubts and cells that stand alone.
pub(crate) fn fabricated() -> Across {
    let invalid =
        Verdict::Invalid { because: vec!["the cell in A is invalid: client_waited (53.4%)".to_owned()] };
    let metric = "page_load_time";
    let names = ["origin", "north-carolina", "large"];
    let of = |variant: &'static str| [variant, names[0], names[1], names[2]];
    let mut lost = cell(4, of("h3"), metric, (310.0, 300.0), invalid);
    (lost.a, lost.comparison.ratio) = (None, None);
    Across {
        version: 1,
        metric: metric.to_owned(),
        margin_share: 0.03,
        cells: vec![
            cell(0, of("h1"), metric, (412.0, 501.0), Verdict::Worse),
            cell(1, of("h1s"), metric, (512.0, 401.0), Verdict::Better),
            cell(2, of("h2c"), metric, (312.0, 313.0), Verdict::Equivalent),
            cell(3, of("h2"), metric, (330.0, 340.0), Verdict::NoDifferenceShown),
            lost,
            cell(0, of("h1"), "time_to_first_byte", (40.0, 50.0), Verdict::Worse),
        ],
        only_in_a: vec![vec![level("variant", "h3"), level("workload", "small")]],
        only_in_b: Vec::new(),
        doubts: vec![Doubt { about: "kernel".into(), a: "6.12.0".into(), b: "6.16.1".into() }],
    }
}

pub(crate) fn page(across: &Across, name: &str) -> String {
    let question = format!("Which HTTP version loads a page soonest? {name}");
    let (a, b) = (format!("results/main{name}"), format!("results/branch{name}"));
    let command = format!("h123 compare {a} {b} --html compare.html");
    across_html(&AcrossInput { across, question: &question, a: &a, b: &b, command: &command }).unwrap()
}

/// A string in every place that takes one.
pub(crate) fn spoilt(text: &str) -> String {
    let mut across = fabricated();
    for doubt in &mut across.doubts {
        *doubt = Doubt { about: text.to_owned(), a: text.to_owned(), b: text.to_owned() };
    }
    for cell in &mut across.cells {
        cell.comparison.context.iter_mut().for_each(|level| level.value = text.to_owned());
        cell.comparison.verdict = Verdict::Invalid { because: vec![text.to_owned()] };
    }
    across.only_in_a[0][0].value = text.to_owned();
    page(&across, text)
}

#[test]
fn the_page_says_all_that_the_terminal_says() {
    let across = fabricated();
    let html = page(&across, "");
    assert_self_contained(&html);
    let style = report::Terminal { width: 200, colour: false, plain: false };
    let others = [across_terminal(&across, style), across_markdown(&across)];
    for words in ["1.22×", "0.78×", "no difference shown", "equivalent", "client_waited", "6.16.1", "501 ms"]
    {
        assert!(html.contains(words), "the page lacks {words}");
        let escaped = words.replace('_', "\\_");
        assert!(others.iter().all(|text| text.contains(words) || text.contains(&escaped)), "{words}");
    }
    let order = ["id=\"answer\"", "id=\"doubts\"", "id=\"figures\"", "id=\"tables\"", "id=\"again\""];
    let places: Vec<usize> = order.iter().map(|part| html.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("figure-ratios") && html.contains("h3 · small is only in A"));
}

#[test]
fn a_comparison_without_numbers_is_a_page_too() {
    let mut across = fabricated();
    across.cells.retain(|cell| cell.comparison.ratio.is_none());
    across.doubts.clear();
    across.only_in_a.clear();
    let html = page(&across, "");
    assert!(html.contains("There are no numbers to draw.") && html.contains("alike in both"));
}
