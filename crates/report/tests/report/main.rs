//! The report from fabricated summaries: snapshots, structure, hostile strings.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::too_many_lines,
    reason = "a failure in a helper of tests ends the test"
)]

mod across;
#[expect(clippy::disallowed_methods, reason = "these tests write pages for a browser")]
mod browser;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "starts a browser and reads its output"
)]
mod chromium;
mod fabricated;
mod figures;
mod hostile;
mod looks;
mod structure;
mod topologies;

use report::{Report, render};

fn file<'a>(report: &'a Report, table: &str) -> &'a str {
    &report.tables.iter().find(|t| t.name == table).unwrap().csv
}

/// Renders every fabricated report; writes them to the folder `$H123_REPORT_DUMP` if that is set.
#[test]
#[expect(clippy::disallowed_methods, reason = "this test writes files where it is asked to")]
fn every_fabricated_report_renders() {
    let cases = [
        ("well", fabricated::all_well()),
        ("shared", topologies::measured_on("shared", "client", "server")),
        ("sites", topologies::measured_on("sites", "tokyo", "server")),
        ("troubled", fabricated::troubled()),
        ("hostile", hostile::fabricated()),
        ("small", fabricated::small()),
        ("spread", figures::watched(figures::publishing(figures::spread(1_000)))),
        ("networks", fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"])),
        ("videos", figures::videos()),
        ("servers", figures::servers()),
        ("long", figures::long_names()),
        ("levels", fabricated::of_networks(8)),
        ("played", figures::videos_of_servers()),
        ("connections", fabricated::over_connections(&[1, 2, 4, 8, 16])),
    ];
    for (name, fabricated) in cases {
        let report = render(&fabricated.input()).unwrap();
        assert!(report.html.trim_end().ends_with("</html>"), "{name}");
        assert!(!report.figures.is_empty() && !report.terminal.is_empty(), "{name}");
        let Some(folder) = std::env::var_os("H123_REPORT_DUMP") else { continue };
        let folder = std::path::PathBuf::from(folder).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("report.html"), &report.html).unwrap();
        std::fs::write(folder.join("terminal.txt"), &report.terminal).unwrap();
        for figure in &report.figures {
            std::fs::write(folder.join(format!("{}.svg", figure.name)), &figure.svg).unwrap();
        }
        std::fs::write(folder.join("across.html"), across::page(&across::fabricated(), "")).unwrap();
        std::fs::write(folder.join("wide.html"), across::page(&across::wide(), "")).unwrap();
    }
}

#[test]
fn the_terminal_shows_tables_and_caveats() {
    let report = render(&fabricated::troubled().input()).unwrap();
    insta::assert_snapshot!("terminal_wide", report.terminal);
    let nothing = render(&fabricated::all_well().input()).unwrap();
    assert!(
        nothing.terminal.contains("None: every run succeeded, and each of the 20 cells passed all 3 checks.")
    );
}

#[test]
fn the_answer_comes_first_with_times() {
    let fabricated = fabricated::all_well();
    let report = render(&fabricated.input()).unwrap();
    let answer = report.html.find("class=\"headline\"").unwrap();
    let [figure, lead, caveats] = ["id=\"figure-comparison\"", "class=\"lead\"", "id=\"caveats\""]
        .map(|text| report.html.find(text).unwrap());
    assert!(answer < figure && figure < lead && lead < caveats, "the answer, its figure, then all else");
    let first = report.html[answer..].split("<li>").nth(1).unwrap().split("</li>").next().unwrap();
    assert!(first.contains(" fastest with ") && first.contains("s; h1s takes "), "{first}");
    // The same ends the output of the terminal, and begins the Markdown.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, last) = report.terminal.split_once("\nSummary\n").unwrap();
    assert!(words(last).contains(&words(first)), "{last}");
    assert!(report.markdown.contains(" fastest with "), "{}", report.markdown);
    // A sweep answers with the map.
    let sweep = fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"]);
    let report = render(&sweep.input()).unwrap();
    let headline = report.html.split("class=\"headline\"").nth(1).unwrap();
    assert!(headline.split("<h3").nth(1).unwrap().contains("figure-map"), "the map is the first figure");
    assert!(headline.contains(" of 9 cases"), "{}", &headline[..500]);
}

#[test]
fn a_slower_level_with_a_wide_interval_is_not_among_the_fastest() {
    let mut fabricated = fabricated::all_well();
    let context = |cell: &model::plan::Cell| (cell.network, cell.group.workload);
    let first = context(&fabricated.plan.cells[0]);
    // The first level is the fastest, the second is slower, and the last one's interval has room for both.
    let values = [(1.0, 0.01), (1.1, 0.01), (1.2, 0.01), (1.3, 0.01), (1.4, 0.5)];
    let cells = fabricated.plan.cells.iter().filter(|cell| context(cell) == first);
    for (cell, (value, half)) in cells.zip(values) {
        let cell = &mut fabricated.summary.cells[cell.cell as usize];
        let median = &mut cell.metrics.get_mut("page_load_time").unwrap().median;
        (median.value, median.low) = (value * 1e9, Some((value - half) * 1e9));
        median.high = Some((value + half) * 1e9);
    }
    let answer = render(&fabricated.input()).unwrap().terminal;
    let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("For lan · small, h1 is fastest with 1.00 s; h1s takes 1.10 s."), "{words}");
}

#[test]
fn the_markdown_of_any_study_fits_a_comment() {
    let round_trips: Vec<String> = (1..=100).map(|place| (place * 10).to_string()).collect();
    let round_trips: Vec<&str> = round_trips.iter().map(String::as_str).collect();
    let large = || fabricated::over_networks(&round_trips, &["0", "0.5", "1", "2"]);
    for fabricated in [fabricated::troubled(), large(), hostile::fabricated()] {
        let report = render(&fabricated.input()).unwrap();
        let length = report.markdown.chars().count();
        assert!(length <= 60_000, "{length} characters");
        assert!(report.markdown.contains("#### Caveats"), "{}", report.markdown);
    }
    let large = render(&large().input()).unwrap().markdown;
    assert!(large.contains("tables are shown; tables/comparisons.csv has all"), "what is omitted is named");
}

#[test]
fn a_percentile_beyond_the_runs_is_not_printed() {
    let html = |samples: u64| {
        let mut fabricated = fabricated::all_well();
        for cell in &mut fabricated.summary.cells {
            for metric in cell.metrics.values_mut() {
                (metric.samples, metric.p95.value, metric.p99.value) = (samples, 333e9, 444e9);
            }
        }
        render(&fabricated.input()).unwrap().html
    };
    let has = |samples: u64| (html(samples).contains("333 s"), html(samples).contains("444 s"));
    assert_eq!([5, 20, 99, 100].map(has), [(false, false), (true, false), (true, false), (true, true)]);
}

#[test]
fn a_cell_without_runs_is_not_measured() {
    let mut fabricated = fabricated::all_well();
    let cell = &mut fabricated.summary.cells[1];
    (cell.status, cell.runs_ok) = (analysis::summary::CellStatus::NotMeasured, 0);
    cell.metrics.clear();
    fabricated.summary.runs_stored -= 5;
    let report = render(&fabricated.input()).unwrap();
    assert!(
        report.terminal.contains("not measured") && !report.terminal.contains("failed"),
        "{}",
        report.terminal
    );
    assert!(report.html.contains("1 cell is not measured."));
}

#[test]
fn the_terminal_is_plain_and_narrow_when_asked() {
    let mut fabricated = fabricated::troubled();
    fabricated.terminal = report::Terminal { width: 72, colour: false, plain: true };
    let report = render(&fabricated.input()).unwrap();
    assert!(report.terminal.is_ascii());
    let widest = report.terminal.lines().map(str::len).max().unwrap();
    assert!(widest <= 72, "{widest} columns:\n{}", report.terminal);
    insta::assert_snapshot!("terminal_plain", report.terminal);
}

#[test]
fn the_terminal_draws_ratios_next_to_the_tables_if_there_is_room() {
    let mut fabricated = fabricated::troubled();
    for (width, has_bars) in [(130, true), (120, true), (80, false), (60, false)] {
        for colour in [false, true] {
            fabricated.terminal = report::Terminal { width, colour, plain: false };
            let terminal = render(&fabricated.input()).unwrap().terminal;
            let bars: Vec<&str> = terminal.lines().filter(|line| line.contains('●')).collect();
            // Four compared levels in four contexts, without two that have no ratio and one that is invalid.
            assert_eq!(bars.len(), 13, "{width} columns:\n{terminal}");
            assert!(bars.iter().all(|line| line.contains("│") == has_bars), "{width} columns:\n{terminal}");
            assert!(terminal.contains('○'), "the invalid ratio has another point");
            let widest =
                terminal.lines().filter(|line| !line.contains('\u{1b}')).map(|line| line.chars().count());
            assert!(widest.max() <= Some(usize::from(width)), "{terminal}");
        }
    }
}

#[test]
fn damage_is_reported_everywhere() {
    let mut fabricated = fabricated::all_well();
    fabricated.damaged = vec!["samples/links.parquet is damaged: it is <missing>".to_owned()];
    let report = render(&fabricated.input()).unwrap();
    assert!(report.html.contains("Damaged or missing"));
    assert!(
        report.html.contains("it is &lt;missing&gt;") && !report.html.contains("None: every run succeeded")
    );
    assert!(
        report.terminal.contains("damaged or missing: samples/links.parquet is damaged: it is <missing>")
    );
}

#[test]
fn colour_only_when_asked() {
    let mut fabricated = fabricated::troubled();
    assert!(!render(&fabricated.input()).unwrap().terminal.contains('\u{1b}'));
    fabricated.terminal.colour = true;
    assert!(render(&fabricated.input()).unwrap().terminal.contains('\u{1b}'));
}

#[test]
fn tables_as_files() {
    let report = render(&fabricated::small().input()).unwrap();
    insta::assert_snapshot!("cells_csv", file(&report, "cells"));
    insta::assert_snapshot!("comparisons_csv", file(&report, "comparisons"));
    insta::assert_snapshot!("validity_csv", file(&report, "validity"));
}

#[test]
fn the_figures_of_a_small_study_as_drawn() {
    let report = render(&fabricated::small().input()).unwrap();
    let names: Vec<&str> = report.figures.iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["comparison", "runs", "waterfall", "phases"]);
    for figure in &report.figures {
        let body = figure.svg.split_once("</style>").unwrap().1;
        insta::assert_snapshot!(format!("{}_svg", figure.name), body.replace("><", ">\n<"));
        insta::assert_snapshot!(format!("{}_csv", figure.name), figure.csv);
    }
}

#[test]
fn the_same_input_gives_the_same_report() {
    let render = || render(&fabricated::troubled().input()).unwrap();
    assert_eq!(render(), render());
}

#[test]
fn the_representative_run_is_nearest_to_the_median() {
    let fabricated = fabricated::all_well();
    let cell = &fabricated.summary.cells[0];
    let metric = &cell.metrics["page_load_time"];
    let run = report::representative_run(cell, "page_load_time").unwrap();
    let value = metric.per_run.iter().find(|value| value.run == run).unwrap().value;
    assert_eq!(value, metric.median.value);
    assert_eq!(report::representative_run(cell, "no_such_metric"), None);
}
