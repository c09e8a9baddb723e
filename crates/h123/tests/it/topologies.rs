//! Studies over topologies with more nodes than a pair: from the file to the report.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::permissions::user_command;
use crate::tool::{Ended, cell, check, folder, h123, machine, median, summary};

/// A study of a small page over a topology; without it of a pair.
fn study(folder: &Path, topology: &str, network: &str) -> PathBuf {
    let text = format!(
        "question = \"Which?\"\nmetric = \"page_load_time\"\nbaseline = {{ variant = \"h1s\" }}\nmargin = \"3%\"\nruns = 2\n\
         topology = {topology}\n[matrix]\nvariant = [\"h1s\", \"h3\"]\nserver = [\"origin\"]\nnetwork = [\"{network}\"]\n\
         workload = [\"small\"]\n[workload.small]\nkind = \"page\"\npage = \"small\"\n"
    );
    let file = folder.join("study.toml");
    std::fs::write(&file, text).unwrap();
    file
}

/// Runs a study; its summary, its report and the links of its runs. A busy machine delays packets, as the
/// check `emulation` says: one undisturbed attempt of three shows what is meant.
fn run(topology: &str, network: &str) -> (Value, String, Value) {
    let is_disturbed = |(summary, ..): &(Value, String, Value)| {
        let cells = ["h1s", "h3"].map(|variant| cell(summary, &[variant]));
        cells.iter().any(|cell| check(cell, "emulation")["result"] != "pass")
    };
    let mut result = measured(topology, network);
    for _ in 0..2 {
        if is_disturbed(&result) {
            result = measured(topology, network);
        }
    }
    result
}

fn measured(topology: &str, network: &str) -> (Value, String, Value) {
    let folder = folder();
    let (file, out) = (study(folder.path(), topology, network), folder.path().join("out"));
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    let plan = serde_json::from_slice(&std::fs::read(out.join("plan.json")).unwrap()).unwrap();
    (summary(&out), std::fs::read_to_string(out.join("report.html")).unwrap(), plan)
}

fn assert_sound(summary: &Value) {
    for variant in ["h1s", "h3"] {
        let cell = cell(summary, &[variant]);
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        for name in ["version", "status", "failed_requests", "emulation", "calibration", "emulator_drops"] {
            assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
        }
    }
}

/// Milliseconds of the cell's median page load.
fn load_ms(summary: &Value, variant: &str) -> f64 {
    median(cell(summary, &[variant]), "page_load_time") / 1e6
}

#[test]
fn a_site_is_chosen_and_has_its_distance() {
    let _machine = machine();
    let (summary, report, plan) = run("{ name = \"sites\", client = \"frankfurt\" }", "own");
    assert_sound(&summary);
    // HTTP/3: a handshake, the document and what it names, 7 ms each.
    assert!(load_ms(&summary, "h3") >= 21.0, "{summary:#}");
    assert_eq!(
        (&plan["topology"]["client"], &plan["topology"]["server"]),
        (&"frankfurt".into(), &"server".into())
    );
    assert!(report.contains("sites: frankfurt to server by frankfurt-exchange, server-exchange"), "named");
    assert!(report.contains("tokyo-exchange"), "with the unused links");
}

#[test]
fn a_campus_has_the_matrixs_network_before_its_router() {
    let _machine = machine();
    let (summary, report, _) = run("{ name = \"campus\", server = \"web-server\" }", "frankfurt");
    assert_sound(&summary);
    assert!(load_ms(&summary, "h3") >= 21.0, "{summary:#}");
    assert!(report.contains("client-router has the matrix"), "named");
}

#[test]
fn cross_traffic_slows_a_shared_link() {
    let _machine = machine();
    let (alone, ..) = run("{ name = \"shared\", cross = false }", "dsl");
    assert_sound(&alone);
    let (crossed, report, _) = run("\"shared\"", "dsl");
    for variant in ["h1s", "h3"] {
        assert_eq!(cell(&crossed, &[variant])["runs_ok"], 2, "{crossed:#}");
        assert_eq!(check(cell(&crossed, &[variant]), "calibration")["result"], "pass", "before it begins");
        let (alone_ms, crossed_ms) = (load_ms(&alone, variant), load_ms(&crossed, variant));
        // Three round trips at least, each behind a queue of up to 100 ms that a bulk flow keeps filled.
        assert!(crossed_ms > 1.3 * alone_ms, "{variant}: {crossed_ms} ms with, {alone_ms} ms without");
        let sent = |summary: &Value| median(cell(summary, &[variant]), "packets_down");
        assert!(sent(&crossed) > 5.0 * sent(&alone), "{variant}: the flow of others is on the link");
    }
    assert!(report.contains("cross-traffic of 1 × h1 from cross-server to cross-client"), "named");
}

#[test]
fn direct_is_the_loopback_and_asks_for_no_rights() {
    let _machine = machine();
    let folder = folder();
    let (file, out) = (study(folder.path(), "\"direct\"", "own"), folder.path().join("out"));
    let mut command = user_command();
    command.args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap());
    ended.expect_measured();
    assert!(!ended.stderr.contains("invalid"), "{}", ended.stderr);
    let summary = summary(&out);
    for variant in ["h1s", "h3"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        assert_ne!(cell["status"], "failed", "{cell:#}");
        assert!(
            cell["validity"].as_array().unwrap().iter().all(|check| check["check"] != "emulation"),
            "{cell:#}"
        );
    }
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("use its loopback interface; no network is emulated"));
    let environment = std::fs::read_to_string(out.join("environment.json")).unwrap();
    assert!(environment.contains("none: this machine's loopback"), "{environment}");
}

#[test]
fn a_plan_names_its_topology_and_refuses_contradictions() {
    let folder = folder();
    let file = study(folder.path(), "\"shared\"", "dsl");
    let words = |args: &[&str]| {
        let plan = h123(args).expect(0).stdout;
        plan.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plan = words(&["plan", file.to_str().unwrap()]);
    assert!(
        plan.contains("topology shared: client to server by client-near, near-far, far-server"),
        "{plan}"
    );
    let direct = words(&["plan", "quick", "--topology", "direct", "--network", "own"]);
    assert!(direct.contains("topology direct: this machine and its loopback"), "{direct}");
    for (topology, network, expected) in [
        (
            "\"proxied\"",
            "own",
            "study.toml:6:12: `topology`: packets find no route from the node `client` to `server`",
        ),
        ("\"shred\"", "own", "did you mean `shared`?"),
        ("\"direct\"", "lan", "write `own`"),
    ] {
        let ended = h123(["plan", study(folder.path(), topology, network).to_str().unwrap()]).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        // One line and the excerpt of the file.
        assert_eq!(ended.stderr.trim_end().lines().count(), 4, "{}", ended.stderr);
    }
}

#[test]
fn a_proxy_stands_behind_a_proxy() {
    let _machine = machine();
    let folder = folder();
    let text = "question = \"What do two proxies cost?\"\nmetric = \"page_load_time\"\nmargin = \"3%\"\nruns = 2\n\
                baseline = { server = \"origin\" }\n[matrix]\nvariant = [\"h2\"]\nserver = [\"origin\", \"chain\"]\n\
                network = [\"lan\"]\nworkload = [\"small\"]\n[workload.small]\nkind = \"page\"\npage = \"small\"\n\
                [server.chain]\nuse = \"nghttpx\"\n\
                back = { use = \"haproxy\", variant = \"h1\", back = { use = \"origin\", variant = \"h2c\" } }\n\
                [hold]\nkey_exchange = \"secp256r1\"\n";
    let (file, out) = (folder.path().join("study.toml"), folder.path().join("out"));
    std::fs::write(&file, text).unwrap();
    h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]).expect_measured();
    let summary = summary(&out);
    let chain = cell(&summary, &["chain"]);
    for name in ["version", "status", "body_content", "all_requested", "workloads_match"] {
        assert_eq!(check(chain, name)["result"], "pass", "{chain:#}");
    }
    let records: Vec<_> =
        store::ResultFolder::open(&out).unwrap().records().unwrap().map(Result::unwrap).collect();
    let mut servers: Vec<usize> = records.iter().map(|record| record.servers.len()).collect();
    servers.sort_unstable();
    assert_eq!(servers, [1, 1, 3, 3], "each server of the chain has its costs");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("back-2") && report.contains("haproxy"), "the topology has all nodes");
}
