//! External load tools as the client of a cell, compared with h123's own.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, summary};

/// A delay that dominates every request, and bodies too small to be slow.
const NEAR: &str = "title = \"Next door\"\nsource = \"a test\"\nrtt = \"2ms\"\n";
const HEAD: &str = "question = \"Which?\"\nmetric = \"requests_per_second\"\nbaseline = { client = \"h123\" }\n\
    margin = \"5%\"\nruns = 1\n[matrix]\nserver = [\"origin\"]\nnetwork = [\"near\"]\nworkload = [\"asked\"]\n";
/// Twenty requests wait at the server at any time, each for 40 ms + 2 ms. The test is long enough that the
/// time in which ab connects, which its duration includes, is a small share.
const DELAYED: &str = "variant = [\"h1s\", \"h2\"]\nclient = [\"h123\", \"h2load\", \"wrk\", \"curl\", \"siege\", \"ab\"]\n\
    [workload.asked]\nkind = \"closed\"\npaths = [\"/delay/40\"]\nconnections = 20\nduration = \"4s\"\n";
/// In requests/s: 95 answers fit into 4 s on each connection, and a count that begins between two may have
/// one more.
const CEILING: f64 = 20.0 * 96.0 / 4.0;
const COUNTED: &str = "variant = [\"h1\", \"h2c\", \"h2\"]\nclient = [\"h123\", \"h2load\", \"wrk\", \"curl\", \"siege\", \"ab\"]\n\
    [workload.asked]\nkind = \"closed\"\npaths = [\"/bytes/100000\"]\nconnections = 1\nrequests = 24\n";

fn write(folder: &Path, study: &str) {
    std::fs::create_dir_all(folder.join("networks")).unwrap();
    std::fs::write(folder.join("networks/near.toml"), NEAR).unwrap();
    std::fs::write(folder.join("study.toml"), format!("{HEAD}{study}")).unwrap();
}

/// Runs a study of this matrix and workload once.
fn run(folder: &Path, study: &str, out: &str) -> Value {
    write(folder, study);
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", out]).current_dir(folder);
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    summary(&folder.join(out))
}

/// Tools that replace those of the system also request over HTTP/3.
pub(crate) fn expect_http3(command: &mut Command, folder: &Path) {
    let _machine = machine();
    write(folder, &COUNTED.replace("\"h1\", \"h2c\", \"h2\"", "\"h3\""));
    command.args(["run", "study.toml", "--out", "h3"]).current_dir(folder);
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    let summary = summary(&folder.join("h3"));
    for client in ["h2load", "curl"] {
        let cell = cell(&summary, &["h3", client]);
        if client == "h2load" && cell["status"] == "unsupported" {
            // Debian builds it without, for now.
            assert!(cell["reasons"].to_string().contains("was built without h3"), "{cell:#}");
            continue;
        }
        assert_eq!((median(cell, "requests"), median(cell, "availability")), (24.0, 1.0), "{cell:#}");
        for sound in ["version", "status", "workloads_match"] {
            assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
        }
    }
}

fn expect_unsupported(summary: &Value, levels: &[&str], reason: &str) {
    let cell = cell(summary, levels);
    assert_eq!(cell["status"], "unsupported", "{cell:#}");
    assert!(cell["reasons"].to_string().contains(reason), "{cell:#}");
}

fn expect_not_reported(cell: &Value, metrics: &[&str], client: &str) {
    for metric in metrics {
        let reason =
            cell["not_reported"][metric].as_str().unwrap_or_else(|| panic!("no {metric} in {cell:#}"));
        assert!(reason.starts_with(&format!("{client} does not report ")), "{reason}");
        assert!(cell["metrics"].get(metric).is_none(), "{metric} of {cell:#}");
    }
}

/// Whether the server is the limit: each tool measures the same as ours, within 5 %.
fn agrees(summary: &Value) -> Result<(), String> {
    for (variant, client) in
        [("h1s", "h2load"), ("h1s", "wrk"), ("h1s", "siege"), ("h1s", "ab"), ("h2", "h2load")]
    {
        let rate = |client| median(cell(summary, &[variant, client]), "requests_per_second");
        let (own, theirs) = (rate("h123"), rate(client));
        assert!(
            own <= CEILING && theirs <= CEILING,
            "{client} beyond what can be: {theirs}, ours {own}, of {CEILING}"
        );
        if (theirs / own - 1.0).abs() > 0.05 {
            return Err(format!("{client} over {variant}: {theirs} requests/s, ours {own}"));
        }
    }
    Ok(())
}

#[test]
fn every_tool_measures_the_same_rate_of_a_saturated_server() {
    let _machine = machine();
    let folder = folder();
    // The rates depend on the machine; the counts must always be right.
    let mut found = Err(String::new());
    for attempt in 0..3 {
        let summary = run(folder.path(), DELAYED, &format!("out{attempt}"));
        for (variant, client) in
            [("h1s", "wrk"), ("h1s", "siege"), ("h1s", "ab"), ("h1s", "h2load"), ("h2", "h2load")]
        {
            let cell = cell(&summary, &[variant, client]);
            assert_eq!((&cell["runs_ok"], median(cell, "availability")), (&1.into(), 1.0), "{cell:#}");
            assert_eq!(check(cell, "failed_requests")["result"], "pass", "{cell:#}");
            assert!(
                median(cell, "requests") >= 20.0 && median(cell, "client_cpu_per_request") > 0.0,
                "{cell:#}"
            );
            expect_not_reported(cell, &["wait_time", "transfer_time", "unfinished", "connections"], client);
            if client == "siege" {
                expect_not_reported(cell, &["request_time", "service_time"], client);
            } else {
                assert!(median(cell, "service_time") >= 42e6, "sooner than server and network: {cell:#}");
            }
            let version = check(cell, "version");
            if client == "h2load" {
                assert_eq!(version["result"], "pass", "{cell:#}");
            } else {
                assert_eq!(version["result"], "caveat", "{cell:#}");
                assert!(version["measured"].as_str().unwrap().starts_with("not judged: "), "{version}");
            }
        }
        expect_unsupported(&summary, &["h2", "wrk"], "wrk does not support h2");
        expect_unsupported(
            &summary,
            &["h1s", "curl"],
            "curl supports one connection at most; the workload has 20",
        );
        found = agrees(&summary);
        if found.is_ok() {
            break;
        }
    }
    assert_eq!(found, Ok(()));
    let report = std::fs::read_to_string(folder.path().join("out0/report.html")).unwrap();
    assert!(
        report.contains("Not reported by the client")
            && report.contains("wrk does not report when the headers of each response arrived"),
        "the report lists what clients do not report"
    );
}

#[test]
fn every_tool_requests_as_often_and_receives_as_much_as_ours() {
    let _machine = machine();
    let folder = folder();
    let summary = run(folder.path(), COUNTED, "out");
    let able: [(&str, &[&str]); 3] = [
        ("h1", &["h123", "h2load", "curl", "siege", "ab"]),
        ("h2c", &["h123", "h2load", "curl"]),
        ("h2", &["h123", "h2load", "curl"]),
    ];
    for (variant, clients) in able {
        for client in clients {
            let cell = cell(&summary, &[variant, client]);
            if (variant, *client) == ("h2c", "curl") && cell["status"] == "unsupported" {
                assert!(cell["reasons"].to_string().contains("install 8.0.0 or newer"), "{cell:#}");
                continue;
            }
            assert_eq!((median(cell, "requests"), median(cell, "availability")), (24.0, 1.0), "{cell:#}");
            if *client != "h123" {
                // As many requests, of the same URL, and the same body bytes for each, within 1 %.
                assert_eq!(check(cell, "workloads_match")["result"], "pass", "{cell:#}");
                assert_eq!(
                    check(cell, "workloads_match")["threshold"],
                    "24 requests, 1 URL, 100000 body bytes per request, as in the baseline"
                );
            }
            if ["h123", "h2load", "curl"].contains(client) {
                assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
                assert_eq!(check(cell, "status")["result"], "pass", "{cell:#}");
            }
        }
    }
    let curl = cell(&summary, &["h2", "curl"]);
    assert_eq!(median(curl, "connections"), 1.0);
    assert!(median(curl, "wait_time") >= 2e6 && median(curl, "transfer_time") > 0.0, "{curl:#}");
    expect_not_reported(curl, &["requests_per_second"], "curl");
    expect_unsupported(&summary, &["h1", "wrk"], "wrk cannot end after a number of requests");
    let log = std::fs::read_dir(folder.path().join("out/logs")).unwrap().flatten().find_map(|run| {
        std::fs::read_to_string(run.path().join("client.log")).ok().filter(|log| log.contains("finished in"))
    });
    assert!(log.is_some_and(|log| log.contains("24 done")), "h2load's own words are kept");
}

#[test]
fn a_client_that_somebody_describes_needs_no_code() {
    let _machine = machine();
    let folder = folder();
    let own = folder.path().join("clients/mine");
    std::fs::create_dir_all(&own).unwrap();
    let description = "title = \"mine\"\nprogram = [\"h2load\"]\noutput = \"h2load\"\n\
        version = { command = [\"{{program}}\", \"--version\"], after = \"nghttp2/\" }\ncan = { requests = 100 }\n\
        variant = [{ name = \"h1\" }]\n[start]\nwrites = \"rows.tsv\"\n\
        command = [\"{{program}}\", \"--h1\", \"-n\", \"{{requests}}\", \"--log-file\", \"{{writes}}\", \"{{url}}\"]\n";
    std::fs::write(own.join("client.toml"), description).unwrap();
    let study = COUNTED
        .replace("[\"h123\", \"h2load\", \"wrk\", \"curl\", \"siege\", \"ab\"]", "[\"h123\", \"mine\"]");
    let summary = run(folder.path(), &study, "out");
    assert_eq!(median(cell(&summary, &["h1", "mine"]), "requests"), 24.0);
    expect_unsupported(&summary, &["h2", "mine"], "mine does not support h2");
    std::fs::write(own.join("client.toml"), description.replace("h2load\"\nversion", "h2laod\"\nversion"))
        .unwrap();
    let mut command = Command::new(H123);
    let ended = Ended::of(command.args(["plan", "study.toml"]).current_dir(folder.path()).output().unwrap())
        .expect(2);
    assert!(
        ended.stderr.contains("clients/mine/client.toml:3:10: `output`: `h2laod` is not an output format; did you mean `h2load`?"),
        "{}",
        ended.stderr
    );
}

#[test]
fn clients_are_listed_and_wrong_names_are_reported() {
    let listed = h123(["servers"]).expect(0).stdout;
    for client in ["h2load", "wrk", "curl", "siege", "ab"] {
        let line = listed.lines().find(|line| line.trim_start().starts_with(client));
        assert!(line.is_some_and(|line| line.contains(" h1 h1s")), "{client} in\n{listed}");
    }
    let ended = h123(["plan", "loops", "--client", "wkr"]).expect(2);
    assert!(
        ended.stderr.contains("`wkr` is not a client") && ended.stderr.contains("`wrk`"),
        "{}",
        ended.stderr
    );
    let plan = h123(["plan", "generators"]).expect(0).stdout;
    assert!(
        plan.contains("unsupported: wrk does not support h2") && plan.contains("client    h123, h2load, wrk"),
        "{plan}"
    );
}
