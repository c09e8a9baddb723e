//! Two results against each other: the page, from fabricated comparisons.

use analysis::across::{Across, CellAcross, CellCaveats, Difference};
use analysis::summary::{Comparison, Estimate, RunPeriod, Verdict};
use model::plan::Level;
use report::{AcrossInput, Side, across_html, across_markdown, across_terminal};

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

/// 2026-09-21, 14:13 to 14:15 UTC.
const MONDAY: RunPeriod =
    RunPeriod { began_unix_ns: 1_790_000_000_000_000_000, ended_unix_ns: 1_790_000_101_000_000_000 };

/// Every verdict, with differences and cells that are only in one result.
pub(crate) fn fabricated() -> Across {
    let invalid =
        Verdict::Invalid { because: vec!["the cell in A is invalid: client_waited (53.4%)".to_owned()] };
    let metric = "page_load_time";
    let names = ["origin", "north-carolina", "large"];
    let of = |variant: &'static str| [variant, names[0], names[1], names[2]];
    let near = |variant: &'static str| [variant, names[0], "lan", names[2]];
    let mut lost = cell(4, of("h3"), metric, (310.0, 300.0), invalid);
    (lost.a, lost.comparison.ratio) = (None, None);
    Across {
        version: 1,
        metric: metric.to_owned(),
        statistic: model::Statistic::Median,
        margin_share: 0.03,
        cells: vec![
            cell(0, of("h1"), metric, (412.0, 501.0), Verdict::Worse),
            cell(1, of("h1s"), metric, (512.0, 401.0), Verdict::Better),
            cell(2, of("h2c"), metric, (312.0, 313.0), Verdict::Equivalent),
            cell(3, of("h2"), metric, (330.0, 340.0), Verdict::NoDifferenceShown),
            lost,
            cell(5, near("h1s"), metric, (61.2, 58.4), Verdict::NoDifferenceShown),
            cell(6, near("h3"), metric, (52.0, 44.0), Verdict::Better),
            cell(0, of("h1"), "time_to_first_byte", (40.0, 50.0), Verdict::Worse),
        ],
        only_in_a: vec![vec![level("variant", "h3"), level("workload", "small")]],
        only_in_b: Vec::new(),
        caveats: vec![
            CellCaveats { check: "runs".into(), cells_in_a: 6, cells_in_b: 0 },
            CellCaveats { check: "other_work".into(), cells_in_a: 2, cells_in_b: 7 },
        ],
        differences: vec![Difference { about: "kernel".into(), a: "6.12.0".into(), b: "6.16.1".into() }],
    }
}

/// The same with long names, and ratios and intervals that reach far.
pub(crate) fn wide() -> Across {
    let mut across = fabricated();
    let names = [
        ("h1", "nginx-with-sendfile-off"),
        ("h1s", "nginx-with-sendfile-on"),
        ("h2c", "envoy"),
        ("north-carolina", "between-north-carolina-and-tokyo"),
        ("lan", "the-local-network-of-a-campus-on-a-monday"),
    ];
    for cell in &mut across.cells {
        for level in &mut cell.comparison.context {
            let name = names.iter().find(|(short, _)| *short == level.value);
            level.value = name.map_or(level.value.clone(), |(_, long)| (*long).to_owned());
        }
        cell.comparison.context.push(level("client", &format!("of-{}-cores", 2 + cell.comparison.cell / 5)));
    }
    across.cells[0].comparison.ratio = Some(Estimate { value: 0.57, low: Some(0.0138), high: Some(24.7) });
    across.cells[1].comparison.ratio = Some(Estimate { value: 164.0, low: Some(41.0), high: Some(8_230.0) });
    across
}

/// Applies `make` to an input whose texts contain `name`.
fn with_input<T>(across: &Across, name: &str, make: impl Fn(&AcrossInput<'_>) -> T) -> T {
    let question = format!("Which HTTP version loads a page soonest? {name}");
    let names = [format!("monday{name}/quick"), format!("tuesday{name}/quick")];
    let paths = names.clone().map(|name| format!("results/{name}"));
    let command = format!("h123 compare {} {} --html compare.html", paths[0], paths[1]);
    make(&AcrossInput {
        across,
        factor: "variant",
        question: &question,
        a: Side { name: &names[0], path: &paths[0], measured: Some(MONDAY), runs: 100 },
        b: Side { name: &names[1], path: &paths[1], measured: None, runs: 97 },
        command: &command,
    })
}

pub(crate) fn page(across: &Across, name: &str) -> String {
    with_input(across, name, |input| across_html(input).unwrap())
}

/// A string in every place that takes one.
pub(crate) fn spoilt(text: &str) -> String {
    let mut across = fabricated();
    for difference in &mut across.differences {
        *difference = Difference { about: text.to_owned(), a: text.to_owned(), b: text.to_owned() };
    }
    for cell in &mut across.cells {
        cell.comparison.context.iter_mut().for_each(|level| level.value = text.to_owned());
        cell.comparison.verdict = Verdict::Invalid { because: vec![text.to_owned()] };
    }
    across.only_in_a[0][0].value = text.to_owned();
    page(&across, text)
}

#[test]
fn the_page_has_everything_that_the_terminal_has() {
    let across = fabricated();
    let html = page(&across, "");
    assert_self_contained(&html);
    let style = report::Terminal { width: 200, colour: false, plain: false };
    let others = with_input(&across, "", |input| [across_terminal(input, style), across_markdown(input)]);
    for words in ["1.22×", "0.78×", "no difference shown", "equivalent", "client waited", "6.16.1", "501 ms"]
    {
        assert!(html.contains(words), "the page lacks {words}");
        let escaped = words.replace('_', "\\_");
        assert!(others.iter().all(|text| text.contains(words) || text.contains(&escaped)), "{words}");
    }
    let order = ["id=\"summary\"", "id=\"differences\"", "id=\"figures\"", "id=\"tables\"", "id=\"again\""];
    let places: Vec<usize> = order.iter().map(|part| html.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("figure-ratios") && html.contains("h3 · small is only in A"));
}

#[test]
fn a_comparison_without_numbers_is_a_page_too() {
    let mut across = fabricated();
    across.cells.retain(|cell| cell.comparison.ratio.is_none());
    across.differences.clear();
    across.only_in_a.clear();
    let html = page(&across, "");
    assert!(html.contains("There are no numbers to draw.") && html.contains("the same in both"));
}

/// Both results as drawn, for a factor with fixed styles and one without.
#[test]
fn ratios_as_drawn() {
    let html = page(&fabricated(), "");
    let figure = html.split_once("id=\"figure-ratios\"").unwrap().1.split_once("</figure>").unwrap().0;
    let drawn =
        figure.split_once("<div class=\"panels\"").unwrap().1.split_once("<p class=\"files\">").unwrap().0;
    insta::assert_snapshot!("across_panels", drawn.replace("><", ">\n<"));
    // Names appear once, each variant has its own style, and the axis shows which side is better.
    for variant in ["h1", "h1s", "h2c", "h2", "h3"] {
        assert!(drawn.contains(&format!("<g class=\"series s-{variant}")), "{variant}");
        assert!(figure.contains(&format!("class=\"t-{variant}\"")), "{variant} has no entry in the legend");
    }
    assert!(!drawn.contains(">origin") && drawn.contains("← faster · ratio of B to A · slower →"));
}

#[test]
fn shared_levels_appear_once_and_the_better_side_always() {
    let across = fabricated();
    let texts = with_input(&across, "", |input| {
        let style = report::Terminal { width: 400, colour: false, plain: false };
        [across_terminal(input, style), across_markdown(input), across_html(input).unwrap()]
    });
    for text in texts.each_ref().map(|text| text.replace("&#x2f;", "/")) {
        assert!(text.contains("In all cells: server origin and workload large."), "{text}");
        assert!(text.contains("below 1× B is faster"), "{text}");
        assert!(text.contains("monday/quick") && text.contains("tuesday/quick"), "{text}");
        assert!(!text.contains("origin · "), "{text}");
    }
    assert!(texts[2].contains("Time to first byte (less is better)"));
    let mut rate = fabricated();
    rate.metric = "requests_per_second".to_owned();
    for cell in rate.cells.iter_mut().filter(|cell| cell.comparison.primary) {
        (cell.comparison.metric, cell.unit) = (rate.metric.clone(), "1/s".to_owned());
    }
    let html = page(&rate, "");
    assert!(
        html.contains("above 1× B is better")
            && html.contains("← less, worse · ratio of B to A · more, better →")
    );
}

#[test]
fn levels_without_a_fixed_style_have_those_of_the_report() {
    let mut across = fabricated();
    across.cells.truncate(2);
    for (cell, server) in across.cells.iter_mut().zip(["nginx", "caddy"]) {
        cell.comparison.context[0].value = "h2".to_owned();
        cell.comparison.context[1].value = server.to_owned();
    }
    let html =
        with_input(&across, "", |input| across_html(&AcrossInput { factor: "server", ..*input }).unwrap());
    assert!(html.contains("<g class=\"series s-o1") && html.contains("<g class=\"series s-o2"));
    assert!(html.contains("In all cells: variant h2, network north-carolina and workload large."));
}
