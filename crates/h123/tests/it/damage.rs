//! A damaged or partial result: the report names what is missing and contains the rest.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use store::ResultFolder;
use tempfile::TempDir;

use crate::quick;
use crate::tool::{Ended, folder, h123, summary};

/// A copy of `quick`'s result without the output of `h123 report`.
fn copy() -> (TempDir, PathBuf) {
    let place = folder();
    let copy = place.path().join("copy");
    for sub in ["samples", "figures", "tables", "logs"] {
        fs::create_dir_all(copy.join(sub)).unwrap();
    }
    let files = ["plan.json", "environment.json", "calibrations.json"].map(PathBuf::from);
    let samples = fs::read_dir(quick::result().join("samples")).unwrap().flatten();
    let samples = samples.map(|entry| Path::new("samples").join(entry.file_name()));
    for file in files.into_iter().chain(samples) {
        fs::copy(quick::result().join(&file), copy.join(&file)).unwrap();
    }
    (place, copy)
}

fn report(result: &Path) -> Ended {
    h123(["report", result.to_str().unwrap()])
}

/// Reports the result, and finds the words in the page, on standard output and on standard error.
fn reported(result: &Path, words: &str) -> Value {
    let ended = report(result);
    ended.expect_measured();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let html = fs::read_to_string(result.join("report.html")).unwrap().replace("&#x2f;", "/");
    assert!(html.contains("Damaged or missing") && html.contains(words), "the page lacks `{words}`");
    assert!(flat(&ended.stdout).contains(words), "{}", ended.stdout);
    assert!(flat(&ended.stderr).contains(words), "{}", ended.stderr);
    assert!(!html.contains("None: every run succeeded"));
    summary(result)
}

fn truncate(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

fn metrics(summary: &Value, name: &str) -> usize {
    let cells = summary["cells"].as_array().unwrap().iter();
    cells.filter(|cell| !cell["metrics"][name].is_null()).count()
}

/// Asserts that every cell has a caveat for missing tables and none of these checks; returns the first
/// caveat.
fn missing(summary: &Value, not_made: &[&str]) -> String {
    let mut said = Vec::new();
    for cell in summary["cells"].as_array().unwrap() {
        let validity = cell["validity"].as_array().unwrap();
        let found = validity.iter().find(|found| found["check"] == "missing_tables").unwrap();
        assert!(found["result"] == "caveat" && cell["status"] != "valid", "{cell:#}");
        assert!(
            validity.iter().all(|found| !not_made.iter().any(|name| found["check"] == *name)),
            "{cell:#}"
        );
        said.push(found["measured"].as_str().unwrap().to_owned());
    }
    assert!(not_made.iter().all(|name| said[0].contains(name)), "{}", said[0]);
    said.swap_remove(0)
}

#[test]
fn a_report_needs_only_samples_and_plan() {
    let (_place, copy) = copy();
    for name in ["figures", "tables", "logs"] {
        fs::remove_dir_all(copy.join(name)).unwrap();
    }
    let ended = report(&copy);
    ended.expect_measured();
    assert!(summary(&copy) == summary(quick::result()), "the same numbers as at the end of the study");
    for (table, endings) in [("cells", 3), ("comparisons", 3), ("validity", 3)] {
        let written = ["csv", "md", "json"].map(|ending| copy.join(format!("tables/{table}.{ending}")));
        assert_eq!(written.iter().filter(|path| path.exists()).count(), endings, "{table}");
        let rows: Value = serde_json::from_slice(&fs::read(&written[2]).unwrap()).unwrap();
        let lines = fs::read_to_string(&written[1]).unwrap().lines().count();
        assert_eq!(rows.as_array().unwrap().len(), lines - 2, "{table}: as many rows in Markdown as in JSON");
    }
}

/// Damages of a copy, each with the words that report it.
fn spoil(spoil: &dyn Fn(&Path), words: &str) -> Value {
    let (_place, copy) = copy();
    spoil(&copy);
    reported(&copy, words)
}

fn cells() -> usize {
    summary(quick::result())["cells"].as_array().unwrap().len()
}

#[test]
fn a_lost_table_is_named_and_its_checks_have_a_caveat() {
    let all = cells();
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("samples/servers.parquet")).unwrap(),
        "samples/servers.parquet is damaged: it is missing",
    );
    assert_eq!((lost["runs_stored"].as_u64(), metrics(&lost, "page_load_time")), (Some(60), all));
    let said = missing(&lost, &["server_waited", "server_stop", "transports_match"]);
    assert!(said.starts_with("samples/servers.parquet of 3 of 3 runs, not judged: "), "{said}");
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("samples/clients.parquet")).unwrap(),
        "samples/clients.parquet is damaged: it is missing",
    );
    missing(&lost, &["client_cpu", "client_waited", "server_waited"]);
    assert_eq!(metrics(&lost, "page_load_time"), all);
    // A page load begins with its first connection, so its time is unknown without this table.
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("samples/connections.parquet")).unwrap(),
        "samples/connections.parquet is damaged: it is missing",
    );
    let said = missing(&lost, &["tls_match"]);
    assert!(said.contains("unknown: page_load_time, time_to_first_byte"), "{said}");
    assert_eq!((metrics(&lost, "page_load_time"), metrics(&lost, "wire_bytes_down")), (0, all));
    let lost =
        spoil(&|copy| truncate(&copy.join("samples/monitor.parquet")), "samples/monitor.parquet is damaged");
    assert_eq!((metrics(&lost, "server_memory_peak"), metrics(&lost, "page_load_time")), (0, all));
    missing(&lost, &["listen_overflow", "udp_drops", "other_work"]);
    // Without the emulator's counts its checks are not made; the times remain.
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("samples/links.parquet")).unwrap(),
        "samples/links.parquet is damaged: it is missing",
    );
    missing(&lost, &["emulator_late", "emulator_drops"]);
    assert_eq!((metrics(&lost, "wire_bytes_down"), metrics(&lost, "page_load_time")), (0, all));
}

#[test]
fn lost_files_are_named_and_the_rest_is_reported() {
    let (_place, whole) = copy();
    let all = cells();
    let lost = spoil(
        &|copy| truncate(&copy.join("samples/requests.parquet")),
        "samples/requests.parquet is damaged",
    );
    assert_eq!(lost["runs_stored"], lost["runs_planned"], "the runs are stored, but cannot be read");
    for cell in lost["cells"].as_array().unwrap() {
        let reason = cell["reasons"][0].as_str().unwrap();
        assert!(
            cell["status"] == "failed" && reason.contains("rows of requests are stored but cannot be read"),
            "{cell:#}"
        );
    }
    let lost = spoil(
        &|copy| {
            for entry in fs::read_dir(copy.join("samples")).unwrap().flatten() {
                if entry.path().extension().is_some_and(|ending| ending == "parquet") {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        },
        "are missing although samples/checksums.json lists them",
    );
    assert_eq!(lost["runs_stored"], 0);
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("samples/runs.parquet")).unwrap(),
        "samples/runs.parquet is missing, so the rows of the other tables",
    );
    assert_eq!(lost["runs_stored"], 0);
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("environment.json")).unwrap(),
        "environment.json is missing, so the machine",
    );
    assert_eq!(metrics(&lost, "page_load_time"), all);
    let lost = spoil(
        &|copy| fs::remove_file(copy.join("calibrations.json")).unwrap(),
        "has no reference measurement of these networks: lan, north-carolina",
    );
    assert_eq!(metrics(&lost, "page_load_time"), all);
    assert_eq!(
        missing(&lost, &["network_rate", "network_loss"]),
        "calibrations.json has no entry for the network `lan`, not judged: network_rate, network_loss"
    );
    // The folder of one run, as in an interrupted study.
    let place = folder();
    let apart = place.path().join("apart");
    let mut result = ResultFolder::create(&apart, 0).unwrap();
    for name in ["plan.json", "environment.json", "calibrations.json"] {
        fs::copy(whole.join(name), apart.join(name)).unwrap();
    }
    for record in ResultFolder::open(&whole).unwrap().records().unwrap().take(20) {
        result.append(&record.unwrap()).unwrap();
    }
    drop(result);
    truncate(&apart.join("samples/run-000003/requests.parquet"));
    let lost = reported(&apart, "samples/run-000003/requests.parquet is damaged (run 3)");
    // It was the only run of its cell.
    let failed: Vec<&Value> =
        lost["cells"].as_array().unwrap().iter().filter(|cell| cell["status"] == "failed").collect();
    assert!(failed.len() == 1 && lost["runs_stored"] == 20, "{failed:#?}");
    assert!(failed[0]["reasons"][0].as_str().unwrap().contains("cannot be read"), "{failed:#?}");
}

#[test]
fn tables_without_checksums_are_read_and_reported() {
    let unsure = spoil(
        &|copy| fs::remove_file(copy.join("samples/checksums.json")).unwrap(),
        "samples/checksums.json is missing, so these tables are used unverified",
    );
    assert!(unsure == summary(quick::result()), "the same numbers");
    let unsure = spoil(
        &|copy| fs::write(copy.join("samples/checksums.json"), "no json").unwrap(),
        "samples/checksums.json is damaged or incomplete, so these tables are used unverified",
    );
    assert!(unsure == summary(quick::result()), "the same numbers");
}

#[test]
fn without_a_plan_there_is_one_line_and_nothing_is_changed() {
    let (_place, copy) = copy();
    fs::write(copy.join("plan.json"), "{").unwrap();
    let ended = report(&copy).expect(2);
    assert!(ended.stderr.contains("plan.json: EOF while parsing"), "{}", ended.stderr);
    fs::remove_file(copy.join("plan.json")).unwrap();
    let ended = report(&copy).expect(2);
    assert!(ended.stderr.contains("without the plan"), "{}", ended.stderr);
    assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    assert!(!copy.join("report.html").exists() && !copy.join("summary.json").exists());
    let ended = report(&copy.join("nowhere")).expect(2);
    assert!(ended.stderr.contains("is not a result"), "{}", ended.stderr);
}
