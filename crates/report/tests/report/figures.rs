//! Each kind of figure from fabricated data: what it draws, what its CSV says, and when it is left out.

use report::{Figure, Report, render};

use crate::fabricated::{self, Fabricated};
use crate::structure::{assert_self_contained, assert_well_formed};

/// `quick` with troubles, and so many requests in each cell.
pub(crate) fn spread(count: u32) -> Fabricated {
    fabricated::of_requests(fabricated::troubled(), count)
}

fn choosing(mut fabricated: Fabricated, figures: &[&str]) -> Report {
    fabricated.plan.figures = Some(figures.iter().map(|name| (*name).to_owned()).collect());
    let report = render(&fabricated.input()).unwrap();
    assert_self_contained(&report.html);
    assert_well_formed(&report);
    report
}

fn names(report: &Report) -> Vec<&str> {
    report.figures.iter().map(|figure| figure.name).collect()
}

fn figure<'a>(report: &'a Report, name: &str) -> &'a Figure {
    report.figures.iter().find(|figure| figure.name == name).unwrap()
}

/// The drawing without its style sheet, an element in each line.
fn body(figure: &Figure) -> String {
    figure.svg.split_once("</style>").unwrap().1.replace("><", ">\n<")
}

#[test]
fn a_study_chooses_its_figures_and_their_order() {
    let report = choosing(fabricated::all_well(), &["phases", "ecdf", "comparison"]);
    assert_eq!(names(&report), ["phases", "ecdf", "comparison"]);
    assert!(names(&choosing(fabricated::all_well(), &[])).is_empty());
}

#[test]
fn what_was_chosen_in_vain_is_named_with_what_it_needs() {
    let mut fabricated = fabricated::all_well();
    fabricated.traces.clear();
    let report = choosing(fabricated, &["waterfall", "runs"]);
    assert_eq!(names(&report), ["runs"]);
    assert!(report.html.contains("Not drawn: <code>waterfall</code>, which needs a page load"));
}

#[test]
fn the_spread_is_shown_where_there_are_values_enough() {
    for (count, expected) in [(5, &[][..]), (30, &["ecdf", "boxes"]), (500, &["ecdf", "boxes", "histograms"])]
    {
        let report = render(&spread(count).input()).unwrap();
        let found: Vec<&str> = names(&report)
            .into_iter()
            .filter(|name| ["ecdf", "boxes", "histograms"].contains(name))
            .collect();
        assert_eq!(found, expected, "{count} values");
    }
    let mut nothing = spread(500);
    nothing.pooled.clear();
    assert!(names(&choosing(nothing, &["ecdf", "boxes", "histograms"])).is_empty());
}

#[test]
fn spread_values_as_drawn() {
    let fabricated = fabricated::of_requests(fabricated::small(), 40);
    let report = choosing(fabricated, &["ecdf", "boxes", "histograms"]);
    for name in ["ecdf", "boxes", "histograms"] {
        insta::assert_snapshot!(format!("{name}_svg"), body(figure(&report, name)));
        insta::assert_snapshot!(format!("{name}_csv"), figure(&report, name).csv);
    }
}

#[test]
fn many_values_make_a_small_page() {
    let report = choosing(spread(50_000), &["ecdf", "boxes", "histograms"]);
    assert!(report.html.len() < 1_500_000, "{} bytes", report.html.len());
    for figure in &report.figures {
        assert!(figure.csv.len() < 400_000, "{}: {} bytes", figure.name, figure.csv.len());
    }
}

#[test]
fn sweeps_are_what_levels_differ_in_by_a_number_alone() {
    let swept = ["map", "lines", "difference"];
    let shown = |fabricated: Fabricated| {
        let report = render(&fabricated.input()).unwrap();
        swept.into_iter().filter(|name| names(&report).contains(name)).collect::<Vec<_>>()
    };
    assert!(shown(fabricated::all_well()).is_empty(), "two networks that differ in more than their distance");
    assert_eq!(shown(fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"])), swept);
    assert_eq!(shown(fabricated::over_networks(&["5", "20", "80"], &["0"])), ["lines", "difference"]);
    assert_eq!(shown(fabricated::over_networks(&["5", "80"], &["0", "2"])), ["map"], "no sweep of three");
    assert!(shown(fabricated::over_networks(&["5", "80"], &["0"])).is_empty());
    assert_eq!(shown(fabricated::over_connections(&[1, 4, 16])), ["lines", "difference"]);

    let mut other = fabricated::over_connections(&[1, 4, 16]);
    other.plan.baseline.factor = "workload".to_owned();
    other.summary.baseline.factor = "workload".to_owned();
    assert!(shown(other).is_empty(), "the compared factor is no sweep");
}

#[test]
fn a_short_sweep_is_drawn_where_it_was_asked_for() {
    let report = choosing(fabricated::over_networks(&["5", "80"], &["0"]), &["lines", "difference", "map"]);
    assert_eq!(names(&report), ["lines", "difference"]);
    assert!(report.html.contains("Not drawn: <code>map</code>, which needs two numbers"));
}

#[test]
fn networks_that_differ_in_more_are_a_sweep_of_distance_and_say_so() {
    let mut fabricated = fabricated::over_networks(&["5", "20", "80"], &["0"]);
    let extra = "title = \"x\"\nsource = \"y\"\nrtt = \"20ms\"\nrate = \"3Mbit/s\"\n";
    fabricated.plan.networks[1] = fabricated::network("r20-l0", extra);
    let report = choosing(fabricated, &["lines"]);
    let lines = figure(&report, "lines");
    assert!(lines.caption.contains("These networks differ in more"), "{}", lines.caption);
    assert_eq!(lines.csv.lines().filter(|line| line.contains(",page_load_time,")).count(), 9);
}

#[test]
fn lines_and_differences_as_drawn() {
    let mut fabricated = fabricated::over_connections(&[1, 4, 16]);
    fabricated.summary.cells[8].status = analysis::summary::CellStatus::Invalid;
    let report = choosing(fabricated, &["lines", "difference"]);
    for name in ["lines", "difference"] {
        insta::assert_snapshot!(format!("{name}_svg"), body(figure(&report, name)));
        insta::assert_snapshot!(format!("{name}_csv"), figure(&report, name).csv);
        assert!(figure(&report, name).svg.contains("\"cross\""), "the invalid cell is crossed");
    }
}

#[test]
fn a_difference_is_a_gain_whatever_is_better() {
    let mut fabricated = fabricated::over_connections(&[1, 4, 16]);
    let gains = |fabricated: Fabricated| -> Vec<f64> {
        let report = choosing(fabricated, &["difference"]);
        let csv = &figure(&report, "difference").csv;
        csv.lines().skip(1).map(|line| line.split(',').nth(8).unwrap().parse().unwrap()).collect()
    };
    let times = gains(fabricated::over_connections(&[1, 4, 16]));
    assert!(times.iter().all(|gain| *gain > 0.0), "h2 and h3 take less time: {times:?}");
    for cell in &mut fabricated.summary.cells {
        let metric = cell.metrics["page_load_time"].clone();
        cell.metrics.insert("requests_per_second".to_owned(), metric);
    }
    fabricated.summary.metric = "requests_per_second".to_owned();
    for comparison in fabricated.summary.comparisons.iter_mut().filter(|comparison| comparison.primary) {
        comparison.metric = "requests_per_second".to_owned();
    }
    let rates = gains(fabricated);
    assert!(rates[..12].iter().all(|gain| *gain < 0.0), "less of what should be more: {rates:?}");
}

#[test]
fn a_map_as_drawn() {
    let mut fabricated = fabricated::over_networks(&["5", "20", "80"], &["0", "2"]);
    let of = |comparisons: &mut [analysis::summary::Comparison],
              cell: u32,
              verdict: analysis::summary::Verdict| {
        for comparison in comparisons.iter_mut().filter(|comparison| comparison.cell == cell) {
            comparison.verdict = verdict.clone();
        }
    };
    // The cells of h3 are the last six, in the order of the networks.
    let comparisons = &mut fabricated.summary.comparisons;
    of(comparisons, 12, analysis::summary::Verdict::NoDifferenceShown);
    of(comparisons, 14, analysis::summary::Verdict::Equivalent);
    of(comparisons, 16, analysis::summary::Verdict::Invalid { because: vec!["late".to_owned()] });
    // Nothing of the last place may be believed.
    for cell in [5, 11, 17] {
        fabricated.summary.cells[cell].status = analysis::summary::CellStatus::Invalid;
    }
    let report = choosing(fabricated, &["map"]);
    let map = figure(&report, "map");
    assert_eq!(map.svg.matches("class=\"even\"").count(), 2, "a key and a tile");
    assert_eq!(map.svg.matches("class=\"hatch\"").count(), 4, "a key and three tiles");
    insta::assert_snapshot!("map_svg", body(map));
    insta::assert_snapshot!("map_csv", map.csv);
}
