//! Statistics from the command line: studies of equal cells and of a known difference, runs until the result
//! is precise, and the comparison of two results.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::schema::assert_valid;
use crate::tool::{Ended, H123, check, folder, h123, machine, summary};

/// The verdicts on the primary metric.
fn verdicts(summary: &Value) -> Vec<String> {
    let comparisons = summary["comparisons"].as_array().unwrap().iter();
    let primary = comparisons.filter(|comparison| comparison["primary"] == true);
    primary.map(|comparison| comparison["verdict"].as_str().unwrap().to_owned()).collect()
}

/// Runs a short study at most three times with different seeds: it succeeds at least once, or the checks
/// report each time that this machine was too busy.
fn comes_out(study: &str, wrong: &[&str], right: &[&str]) {
    let folder = folder();
    let mut false_verdicts = 0;
    let mut found = Vec::new();
    for seed in ["1", "2", "3"] {
        let out = folder.path().join(seed);
        let args =
            ["run", study, "--runs", "5", "--variant", "h2", "--network", "lan", "--seed", seed, "--out"];
        let ended = h123(args.into_iter().chain([out.to_str().unwrap()]));
        ended.expect_measured();
        let summary = summary(&out);
        assert_valid(&summary);
        let verdicts = verdicts(&summary);
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert!(!wrong.contains(&verdicts[0].as_str()), "{}", ended.stdout);
        if right.contains(&verdicts[0].as_str()) {
            return;
        }
        // One study of twenty may find a difference by chance; one that matters it may not find, nor may two
        // find one.
        let ratio = &summary["comparisons"][0]["ratio"];
        if matches!(verdicts[0].as_str(), "better" | "worse") {
            let is_slight = |end: &str| ratio[end].as_f64().is_some_and(|ratio| (ratio - 1.0).abs() < 0.06);
            assert!(is_slight("low") && is_slight("high"), "{study}: {ratio}\n{}", ended.stdout);
            false_verdicts += 1;
        }
        assert!(false_verdicts < 2, "{study}: {}", ended.stdout);
        found.push((verdicts[0].clone(), blamed(&summary), ended.stdout));
    }
    let is_busy = |checks: &Vec<String>| {
        !checks.is_empty() && checks.iter().all(|check| MACHINE.contains(&check.as_str()))
    };
    assert!(
        found.iter().all(|(verdict, checks, _)| verdict == "invalid" && is_busy(checks)),
        "{study}: {found:#?}"
    );
}

/// The checks that invalidate because the machine was busy.
const MACHINE: &[&str] = &[
    "calibration",
    "client_cpu",
    "client_waited",
    "emulator_drops",
    "emulator_late",
    "network_loss",
    "network_rate",
];

/// The checks that invalidate a cell.
fn blamed(summary: &Value) -> Vec<String> {
    let cells = summary["cells"].as_array().unwrap().iter();
    let checks = cells.flat_map(|cell| cell["validity"].as_array().unwrap());
    let invalidating = checks.filter(|check| check["result"] == "invalid");
    invalidating.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn equal_servers_do_not_differ_and_two_milliseconds_are_detected() {
    let _machine = machine();
    comes_out("aa", &[], &["equivalent", "no_difference_shown"]);
    comes_out("known-delay", &["better", "equivalent"], &["worse"]);
}

const STUDY: &str = r#"
question = "How many runs?"
metric = "request_time"
baseline = { variant = "h1" }
margin = "3%"
runs = 5
topology = "direct"
RULE
[matrix]
variant = ["h1", "h2c"]
server = ["origin"]
network = ["own"]
workload = ["waiting"]
# Most of the time is the server's waiting, so that runs differ by percents and not by halves on a busy machine too.
[workload.waiting]
kind = "closed"
paths = ["/delay/20"]
requests = 5
"#;

fn run(place: &Path, name: &str, rule: &str) -> (Ended, Value) {
    let (file, out) = (place.join(format!("{name}.toml")), place.join(name));
    fs::write(&file, STUDY.replace("RULE", rule)).unwrap();
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    let summary = summary(&out);
    assert_valid(&summary);
    (ended, summary)
}

#[test]
fn verdicts_are_about_the_statistic_of_the_study() {
    let _machine = machine();
    let folder = folder();
    let (file, out) = (folder.path().join("tail.toml"), folder.path().join("tail"));
    let study = STUDY
        .replace("RULE", "statistic = \"p90\"")
        .replace("paths = [\"/delay/20\"]\nrequests = 5", &format!("paths = [{PATHS}]\nrequests = 120"));
    fs::write(&file, study).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let ended = h123(["run", file, "--out", out]);
    ended.expect_measured();
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("90th percentile of request time"), "{}", ended.stdout);
    let summary = summary(Path::new(out));
    assert_valid(&summary);
    assert_eq!(summary["statistic"], "p90");
    for cell in summary["cells"].as_array().unwrap() {
        let metric = &cell["metrics"]["request_time"];
        let value = |name: &str| metric[name]["value"].as_f64().unwrap();
        assert_eq!(metric["statistic"], "p90");
        assert!(value("p90") > 25e6 && value("median") < 20e6, "{metric:#}");
        let runs = metric["per_run"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["value"].as_f64().unwrap() > 25e6), "{runs:#?}");
        let check = check(cell, "percentile");
        assert_eq!((&check["result"], &check["threshold"]), (&"pass".into(), &"10 values beyond it".into()));
    }
    let ratio = summary["comparisons"][0]["ratio"]["value"].as_f64().unwrap();
    let p90 =
        |cell: usize| summary["cells"][cell]["metrics"]["request_time"]["p90"]["value"].as_f64().unwrap();
    assert!((ratio - p90(1) / p90(0)).abs() < 1e-9);
    let report = fs::read_to_string(Path::new(out).join("report.html")).unwrap();
    assert!(
        report.contains("the ratio of the 90th percentiles over 5 runs"),
        "the page says what is compared"
    );
    let across = h123(["compare", out, out]).expect(0).stdout;
    assert!(across.contains("the 90th percentile of each cell in A and in B"), "{across}");
    let refused = h123(["run", "quick", "--statistic", "p99"]).expect(2);
    assert!(
        refused.stderr.contains(
            "`statistic`: a run has one value of `page_load_time` for each client, so one client has no p99"
        ),
        "{}",
        refused.stderr
    );
}

/// Four of five requests take 2 ms, the others 30 ms.
const PATHS: &str = r#""/delay/2", "/delay/2", "/delay/2", "/delay/2", "/delay/30""#;

#[test]
fn runs_are_added_until_it_is_precise_and_results_compared() {
    let _machine = machine();
    let folder = folder();
    let (ended, loose) = run(folder.path(), "loose", "precision = \"90%\"");
    assert_eq!(
        (&loose["repetition"]["ended_by"], loose["runs_stored"].as_u64()),
        (&"precision".into(), Some(10))
    );
    assert!(
        ended.stdout.contains("The study added runs until every interval was within"),
        "{}",
        ended.stdout
    );
    let (ended, strict) = run(folder.path(), "strict", "precision = \"0.001%\"\nmost_runs = 7");
    assert_eq!(
        (&strict["repetition"]["ended_by"], strict["runs_stored"].as_u64()),
        (&"most_runs".into(), Some(14))
    );
    assert_eq!(strict["runs_planned"], 14);
    assert!(ended.stdout.contains("The study reached its maximum of 7 runs"), "{}", ended.stdout);
    let (_, poor) = run(folder.path(), "poor", "precision = \"0.001%\"\nbudget = \"1ms\"");
    assert_eq!((&poor["repetition"]["ended_by"], poor["runs_stored"].as_u64()), (&"budget".into(), Some(10)));
    // A resumed study detects that it had ended.
    let out = folder.path().join("poor");
    let ended = h123(["run", "--resume", out.to_str().unwrap()]);
    ended.expect_measured();
    assert_eq!(summary(&out)["runs_stored"], 10);
    compared(&folder.path().join("loose"), folder.path());
}

/// Every cell's request time made 1 ms times a factor, with runs that differ by a percent from each other.
fn scaled(summary: &mut Value, factor: f64) {
    for cell in summary["cells"].as_array_mut().unwrap() {
        let metric = &mut cell["metrics"]["request_time"];
        let shares = [0.99, 1.0, 1.01, 1.0, 0.995];
        for (run, share) in metric["per_run"].as_array_mut().unwrap().iter_mut().zip(shares.iter().cycle()) {
            run["value"] = (1e6 * factor * share).into();
        }
        metric["median"]["value"] = (1e6 * factor).into();
    }
}

/// A result against itself, and against a copy in which everything takes a fifth longer.
fn compared(a: &Path, place: &Path) {
    let b = place.join("slower");
    fs::create_dir(&b).unwrap();
    for name in ["plan.json", "environment.json"] {
        fs::copy(a.join(name), b.join(name)).unwrap();
    }
    let mut before = summary(a);
    let believable = |summary: &mut Value| {
        summary["cells"].as_array_mut().unwrap().iter_mut().for_each(|cell| cell["status"] = "valid".into());
    };
    believable(&mut before);
    scaled(&mut before, 1.0);
    fs::write(a.join("summary.json"), before.to_string()).unwrap();
    let mut after = before.clone();
    scaled(&mut after, 1.2);
    fs::write(b.join("summary.json"), after.to_string()).unwrap();
    let mut environment: Value =
        serde_json::from_slice(&fs::read(a.join("environment.json")).unwrap()).unwrap();
    environment["kernel"] = "another kernel".into();
    fs::write(b.join("environment.json"), environment.to_string()).unwrap();
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let worse = h123(["compare", a, b]).expect(0).stdout;
    assert!(worse.contains("1.2") && worse.contains("worse") && worse.contains("another kernel"), "{worse}");
    let sides = [format!("A: {a}, "), format!("\nB: {b}, ")];
    assert!(
        sides.iter().all(|side| worse.contains(side)) && worse.contains("below 1x B is faster. "),
        "{worse}"
    );
    h123(["compare", a, b, "--fail-on", "worse"]).expect(4);
    h123(["compare", b, a, "--fail-on", "worse"]).expect(0);
    h123(["compare", b, a, "--fail-on", "different"]).expect(4);
    let markdown = h123(["compare", a, b, "--markdown"]).expect(0).stdout;
    assert!(markdown.starts_with("### 2 worse\n") && markdown.contains("| **worse** |"), "{markdown}");
    assert!(markdown.contains("kernel: "), "{markdown}");
    let page = place.join("compare.html");
    let shown = page.to_str().unwrap();
    let with_page = h123(["compare", a, b, "--json", "--html", shown]).expect(0);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("2 worse") && html.contains("another kernel") && html.contains("figure-ratios"));
    assert!(with_page.stderr.contains(&format!("page: {shown}")), "{}", with_page.stderr);
    let json: Value = serde_json::from_str(&with_page.stdout).unwrap();
    let ratio = json["cells"][0]["comparison"]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 1.2).abs() < 1e-9 && json["differences"].as_array().unwrap().len() == 1, "{json:#}");
    another_server_is_a_caveat(a, b);
    another_name_of_the_same_workload_is_matched(a, b);
    // A page in the current folder.
    let mut command = Command::new(H123);
    command.args(["compare", a, b, "--html", "page.html"]).current_dir(place);
    Ended::of(command.output().unwrap()).expect(0);
    assert!(fs::read_to_string(place.join("page.html")).unwrap().contains("</html>"));
    let nowhere = h123(["compare", a, "nowhere"]).expect(2).stderr;
    assert!(nowhere.contains("nowhere is not a result"), "{nowhere}");
    // A summary of another version is recomputed from the samples.
    before["version"] = 1.into();
    fs::write(Path::new(a).join("summary.json"), before.to_string()).unwrap();
    let again = h123(["compare", a, a, "--json"]);
    assert!(again.stderr.contains("A and B are the same folder"), "{}", again.stderr);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_ne!(again["cells"][0]["a"]["value"], 1e6, "not the value of the old summary");
    after["metric"] = "service_time".into();
    fs::write(Path::new(b).join("summary.json"), after.to_string()).unwrap();
    let other = h123(["compare", a, b]).expect(2).stderr;
    assert!(
        other.contains("compare results with the same metric") && other.trim().lines().count() == 1,
        "{other}"
    );
}

/// B's workload has another name, and then another content under the old name.
fn another_name_of_the_same_workload_is_matched(a: &str, b: &str) {
    let files = ["plan.json", "summary.json"].map(|name| Path::new(b).join(name));
    let before = files.clone().map(|file| fs::read_to_string(file).unwrap());
    let quoted = |name: &str| format!("\"{name}\"");
    for (file, text) in files.iter().zip(&before) {
        fs::write(file, text.replace(&quoted("waiting"), &quoted("idle"))).unwrap();
    }
    let found: Value = serde_json::from_str(&h123(["compare", a, b, "--json"]).expect(0).stdout).unwrap();
    assert!(found["differences"].to_string().contains("name of the workload"), "{}", found["differences"]);
    assert_eq!(
        (&found["only_in_a"], &found["only_in_b"]),
        (&Value::Array(Vec::new()), &Value::Array(Vec::new()))
    );
    assert_eq!(found["cells"][0]["comparison"]["verdict"], "worse", "{found:#}");
    fs::write(&files[1], &before[1]).unwrap();
    let other = before[0].replace("/delay/20", "/delay/21");
    assert_ne!(other, before[0]);
    fs::write(&files[0], other).unwrap();
    let found: Value = serde_json::from_str(&h123(["compare", a, b, "--json"]).stdout).unwrap();
    let because = found["cells"][0]["comparison"]["because"].to_string();
    assert!(because.contains("the workload `waiting` in B differs from the one in A"), "{found:#}");
    fs::write(&files[0], &before[0]).unwrap();
}

/// Settings of a server and accepted checks are not part of a cell's name.
fn another_server_is_a_caveat(a: &str, b: &str) {
    let file = Path::new(b).join("plan.json");
    let before = fs::read_to_string(&file).unwrap();
    let mut plan: Value = serde_json::from_str(&before).unwrap();
    for cell in plan["cells"].as_array_mut().unwrap() {
        cell["chain"]["set"] = serde_json::json!({ "workers": 2 });
    }
    plan["accepted"] = serde_json::json!(["client_waited"]);
    fs::write(&file, plan.to_string()).unwrap();
    let found: Value = serde_json::from_str(&h123(["compare", a, b, "--json"]).expect(0).stdout).unwrap();
    let caveats = found["differences"].to_string();
    assert!(caveats.contains("servers: origin") && caveats.contains("workers"), "{caveats}");
    assert!(caveats.contains("accepted checks") && caveats.contains("client_waited"), "{caveats}");
    fs::write(&file, before).unwrap();
}
