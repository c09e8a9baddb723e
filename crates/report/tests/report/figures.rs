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
