//! A short form of the study `quick`: everything that the documentation states about it.
//!
//! Times that a round trip or a rate determines are measured on a machine that other processes disturb.
//! Disturbance only adds time, so the fastest run is compared with the prediction, and a study that fails is
//! measured again completely before the test fails.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::OnceLock;

use analysis::predict_page_load_ns;
use model::plan::Plan;
use model::{Page, Variant};
use serde_json::Value;

use crate::tool::{cell, check, folder_until_exit, h123, machine, median, processes_with, summary};

/// Runs of each cell: enough for intervals, few enough for a test.
const RUNS: &str = "3";

/// How often the study is measured before a deviation counts as the tool's fault and not the machine's.
const ATTEMPTS: usize = 3;

/// A result of `quick` with three runs of each cell, measured once for all tests.
pub(crate) fn result() -> &'static Path {
    attempt(0)
}

/// The result of one attempt, each measured at most once for all tests.
fn attempt(number: usize) -> &'static Path {
    static RESULTS: [OnceLock<(Child, PathBuf)>; ATTEMPTS] = [const { OnceLock::new() }; ATTEMPTS];
    let (_, path) = RESULTS[number].get_or_init(|| {
        let (remover, folder) = folder_until_exit();
        let path = folder.join("quick");
        let _machine = machine();
        let ended = h123(["run", "quick", "--runs", RUNS, "--out", path.to_str().unwrap()]);
        ended.expect_measured();
        assert!(ended.stdout.contains("report: "), "{}", ended.stdout);
        assert!(ended.stdout.contains("north-carolina"), "{}", ended.stdout);
        (remover, path)
    });
    path
}

/// Measures until the results together leave no complaint; otherwise fails with all complaints.
fn expect_undisturbed(complaints: impl Fn(&[Value]) -> Vec<String>) {
    let mut summaries = Vec::new();
    for number in 0..ATTEMPTS {
        summaries.push(summary(attempt(number)));
        let found = complaints(&summaries);
        if found.is_empty() {
            return;
        }
        println!("after {} attempts:\n{}", number + 1, found.join("\n"));
    }
    panic!("after {ATTEMPTS} attempts still:\n{}", complaints(&summaries).join("\n"));
}

/// The smallest value that any run of a cell had, over several results.
fn fastest(summaries: &[Value], levels: &[&str], metric: &str) -> f64 {
    let runs = |summary| cell(summary, levels)["metrics"][metric]["per_run"].as_array().unwrap();
    let values = summaries.iter().flat_map(runs).map(|run| run["value"].as_f64().unwrap());
    values.reduce(f64::min).unwrap_or_else(|| panic!("no {metric} in {levels:?}"))
}

/// A complaint unless a value lies in a range.
fn outside(range: std::ops::Range<f64>, value: f64, what: impl std::fmt::Display) -> Option<String> {
    (!range.contains(&value)).then(|| format!("{what}: found {value:.3}, expected {range:?}"))
}

fn plan() -> Plan {
    serde_json::from_slice(&std::fs::read(result().join("plan.json")).unwrap()).unwrap()
}

#[test]
fn every_run_is_stored_and_every_cell_has_its_numbers() {
    let summary = summary(result());
    assert_eq!(summary["runs_planned"], 60);
    assert_eq!(summary["runs_stored"], 60);
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 20);
    for cell in cells {
        assert_eq!(cell["runs_ok"], 3, "{cell:#}");
        for metric in ["page_load_time", "time_to_first_byte", "handshake_time"] {
            assert!(median(cell, metric) > 0.0);
            let interval = &cell["metrics"][metric]["median"];
            assert!(interval["low"].as_f64() <= interval["value"].as_f64());
            assert!(interval["high"].as_f64() >= interval["value"].as_f64());
        }
        for sound in
            ["version", "status", "body_length", "failed_requests", "all_requested", "emulator_drops"]
        {
            assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
        }
    }
}

#[test]
fn requests_connections_and_bytes_match_the_pages() {
    let summary = summary(result());
    for variant in Variant::ALL {
        for (page, requests, bytes) in [("small", 3.0, 20_000.0), ("large", 55.0, 1_600_000.0)] {
            for network in ["lan", "north-carolina"] {
                let cell = cell(&summary, &[variant.name(), page, network]);
                assert_eq!(median(cell, "requests"), requests);
                assert_eq!(median(cell, "body_bytes_received"), bytes);
                // Headers, handshakes and acknowledgements come on top; nothing is compressed.
                let wire = median(cell, "wire_bytes_down");
                assert!(wire > bytes && wire < bytes * 1.15 + 20_000.0, "{variant} {page}: {wire}");
                assert!(median(cell, "packets_up") > 3.0);
            }
        }
        let large = cell(&summary, &[variant.name(), "large", "north-carolina"]);
        let connections = if matches!(variant, Variant::H1 | Variant::H1s) { 6.0 } else { 1.0 };
        assert_eq!(median(large, "connections"), connections, "{variant}");
        let compressed =
            median(large, "request_header_wire_bytes") / median(large, "request_header_raw_bytes");
        match variant {
            Variant::H1 | Variant::H1s => assert!(compressed > 1.0, "{variant}: {compressed}"),
            // HPACK refers back to what it has sent; QPACK here has its static table alone.
            Variant::H2c | Variant::H2 => assert!(compressed < 0.5, "{variant}: {compressed}"),
            Variant::H3 => assert!(compressed < 1.0, "{variant}: {compressed}"),
        }
    }
}

/// The prediction, per variant; on north-carolina (RTT 150 ms, 50 Mbit/s), in round trips:
///
/// | variant | small page | large page |
/// |---|---|---|
/// | h1  | TCP 1 + document 1 + second connection 1 + resource 1 = 4 | 6 connections in slow start each |
/// | h1s | TCP 1 + TLS 1 + document 1 + two resources in turn 2 = 5 | the same, one round trip more per connection |
/// | h2c | TCP 1 + document 1 + both resources 1 = 3 | slow start of one connection |
/// | h2  | h2c + TLS 1 = 4 | h2c + TLS 1 |
/// | h3  | QUIC 1 + document 1 + both resources 1 = 3 | slow start of one connection, paced |
///
/// On the LAN the large page takes its serialisation (134 ms at 100 Mbit/s) over every variant.
/// `analysis::predict` has both; the fastest run lies within 10 % of it.
#[test]
fn load_times_match_the_prediction_from_round_trips_and_rate() {
    let plan = plan();
    let pages: Vec<Page> = plan.pages();
    expect_undisturbed(|summaries| {
        let both = plan.networks.iter().flat_map(|network| pages.iter().map(move |page| (network, page)));
        // A small page from the local network takes 3 ms, a third of it computing, which no round trip
        // predicts.
        let both = both.filter(|(network, page)| network.name != "lan" || page.name != "small");
        let cells = both.flat_map(|both| Variant::ALL.map(|variant| (both, variant)));
        cells
            .filter_map(|((network, page), variant)| {
                #[expect(clippy::cast_precision_loss, reason = "compared within per cents")]
                let predicted = predict_page_load_ns(page, network, variant, &plan.pins).unwrap() as f64;
                let levels = [variant.name(), &page.name, &network.name];
                let measured = fastest(summaries, &levels, "page_load_time");
                outside(0.9..1.1, measured / predicted, format!("{levels:?} of {predicted:.0} ns predicted"))
            })
            .collect()
    });
}

#[test]
fn round_trips_tell_the_variants_apart() {
    const RTT_NS: f64 = 150e6;
    expect_undisturbed(|summaries| {
        let time = |variant: &str, page: &str, metric: &str| {
            fastest(summaries, &[variant, page, "north-carolina"], metric) / RTT_NS
        };
        let mut found = Vec::new();
        for (variant, handshake) in [("h1", 1.0), ("h1s", 2.0), ("h2c", 1.0), ("h2", 2.0), ("h3", 1.0)] {
            let measured = time(variant, "small", "handshake_time");
            found.extend(outside(
                handshake - 0.1..handshake + 0.1,
                measured,
                format!("{variant}'s handshake"),
            ));
            let answered = handshake + 1.0;
            let measured = time(variant, "small", "time_to_first_byte");
            found.extend(outside(
                answered - 0.15..answered + 0.15,
                measured,
                format!("{variant}'s first byte"),
            ));
        }
        // Cold h3 saves a round trip against h2; the large page needs fewer on h2 and h3 than on h1s.
        let saved = time("h2", "small", "page_load_time") - time("h3", "small", "page_load_time");
        found.extend(outside(0.8..1.2, saved, "round trips that h3 saves"));
        for variant in ["h2", "h3"] {
            let share = time(variant, "large", "page_load_time") / time("h1s", "large", "page_load_time");
            found.extend(outside(0.1..0.8, share, format!("{variant}'s large page to h1s's")));
        }
        found
    });
}

#[test]
fn north_carolina_is_valid_but_for_the_few_runs() {
    expect_undisturbed(|summaries| {
        let is_sound = |cell: &Value| {
            matches!(cell["status"].as_str(), Some("valid" | "caveat"))
                && ["emulation", "calibration", "network_rate", "network_loss"]
                    .iter()
                    .all(|name| check(cell, name)["result"] == "pass")
        };
        let cells =
            Variant::ALL.iter().flat_map(|variant| ["small", "large"].map(|page| (variant.name(), page)));
        cells
            .filter_map(|(variant, page)| {
                let found: Vec<_> = summaries
                    .iter()
                    .map(|summary| cell(summary, &[variant, page, "north-carolina"]))
                    .collect();
                (!found.iter().any(|cell| is_sound(cell))).then(|| format!("{:#}", found.last().unwrap()))
            })
            .collect()
    });
}

/// The primary comparisons of the large page on north-carolina.
fn large_comparisons(summary: &Value) -> Vec<&Value> {
    let comparisons = summary["comparisons"].as_array().unwrap().iter();
    let is_of = |comparison: &Value, wanted: &str| {
        comparison["context"].as_array().unwrap().iter().any(|level| level["value"] == wanted)
    };
    comparisons
        .filter(|comparison| comparison["primary"] == true)
        .filter(|comparison| ["north-carolina", "large"].iter().all(|wanted| is_of(comparison, wanted)))
        .collect()
}

/// Against h1s, whose ratio is near one on h1 (0.83) and far from it on the others (0.5): three runs show the
/// far ones.
#[test]
fn the_large_page_on_north_carolina_has_verdicts() {
    assert_eq!(large_comparisons(&summary(result())).len(), 4);
    expect_undisturbed(|summaries| {
        let all: Vec<Vec<&Value>> = summaries.iter().map(large_comparisons).collect();
        (0..4)
            .filter_map(|index| {
                let found: Vec<&Value> = all.iter().map(|comparisons| comparisons[index]).collect();
                let is_shown = |comparison: &&Value| {
                    let verdict = comparison["verdict"].as_str().unwrap();
                    let may_hide = comparison["level"]["value"] == "h1" && verdict == "no_difference_shown";
                    comparison["ratio"]["value"].as_f64().unwrap() < 0.95 && (verdict == "better" || may_hide)
                };
                (!found.iter().any(is_shown)).then(|| format!("{:#}", found.last().unwrap()))
            })
            .collect()
    });
}

#[test]
fn the_result_folder_is_complete_and_can_be_reported_again() {
    let result = result();
    for file in [
        "plan.json",
        "environment.json",
        "calibrations.json",
        "summary.json",
        "report.html",
        "samples/requests.parquet",
        "samples/connections.parquet",
        "samples/runs.parquet",
        "tables/cells.csv",
        "tables/comparisons.csv",
        "tables/validity.csv",
    ] {
        let length = std::fs::metadata(result.join(file)).unwrap_or_else(|e| panic!("{file}: {e}")).len();
        assert!(length > 100, "{file} has {length} bytes");
    }
    let figures = std::fs::read_dir(result.join("figures")).unwrap().count();
    assert!(figures >= 8, "{figures} figures");
    let before = std::fs::read(result.join("summary.json")).unwrap();
    std::fs::remove_file(result.join("report.html")).unwrap();
    let ended = h123(["report", result.to_str().unwrap()]);
    ended.expect_measured();
    assert!(result.join("report.html").exists());
    assert!(
        std::fs::read(result.join("summary.json")).unwrap() == before,
        "the same samples, the same analysis"
    );
}

#[test]
fn nothing_is_left_behind() {
    let result = result();
    let left = processes_with(result.to_str().unwrap());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_plan_is_shown_without_running_anything() {
    let ended = h123(["plan", "quick"]).expect(0);
    for text in ["20 cells", "north-carolina", "baseline", "expected", "Order"] {
        assert!(ended.stdout.contains(text), "{text} in:\n{}", ended.stdout);
    }
    let json: Plan = serde_json::from_str(&h123(["plan", "quick", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(json.runs.len(), 100);
    let narrowed =
        h123(["plan", "quick", "--json", "--network", "lan", "--variant", "h1s", "--variant", "h3"]);
    let json: Plan = serde_json::from_str(&narrowed.expect(0).stdout).unwrap();
    assert_eq!(json.runs.len(), 20);
}
