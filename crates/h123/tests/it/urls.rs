//! Lists of URLs, paths with random parts, timing scripts: requests of studies from files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use model::RunRecord;
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{Ended, cell, check, folder, h123, machine, median, summary};

/// Writes a study with this matrix and these workloads; its servers answer on a fast network.
fn study(folder: &Path, metric: &str, rest: &str) -> PathBuf {
    let text = format!("question = \"Which?\"\nmetric = \"{metric}\"\nmargin = \"5%\"\nruns = 2\n{rest}");
    let file = folder.join("study.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn run(folder: &Path, metric: &str, rest: &str) -> (Value, PathBuf) {
    let (file, out) = (study(folder, metric, rest), folder.join("out"));
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    (summary(&out), out)
}

fn plan(folder: &Path, rest: &str) -> Ended {
    h123(["plan", study(folder, "request_time", rest).to_str().unwrap()])
}

/// The runs of a result with all their rows.
fn records(out: &Path) -> Vec<RunRecord> {
    ResultFolder::open(out).unwrap().records().unwrap().map(Result::unwrap).collect()
}

fn expect_pass(cell: &Value, checks: &[&str]) {
    for name in checks {
        assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
    }
}

#[test]
fn a_list_is_requested_at_random_from_a_server_of_files_and_by_other_tools() {
    let _machine = machine();
    let folder = folder();
    let list: String = (1..=700).fold(String::new(), |mut list, number| {
        let _ = writeln!(list, "/bytes/{}", number * 10);
        list
    });
    std::fs::write(folder.path().join("library.txt"), list).unwrap();
    let rest = "baseline = { server = \"origin\" }\n[matrix]\nvariant = [\"h1\"]\n\
        client = [\"h123\", \"h2load\", \"siege\", \"ab\"]\nserver = [\"origin\", \"nginx\"]\nnetwork = [\"lan\"]\nworkload = [\"library\"]\n\
        [workload.library]\nkind = \"closed\"\nurls = \"library.txt\"\nconnections = 4\nrequests = 1400\n";
    let (in_turn, out) = run(folder.path(), "request_time", rest);
    for server in ["origin", "nginx"] {
        let own = cell(&in_turn, &["h123", server]);
        assert_eq!((median(own, "requests"), median(own, "availability")), (1400.0, 1.0), "{own:#}");
        expect_pass(own, &["urls", "status"]);
        if server == "nginx" {
            expect_pass(own, &["workloads_match"]);
        }
        for client in ["h2load", "siege"] {
            let other = cell(&in_turn, &[client, server]);
            assert_eq!(
                (median(other, "requests"), median(other, "availability")),
                (1400.0, 1.0),
                "{other:#}"
            );
            assert!(check(other, "urls")["measured"].as_str().unwrap().contains("does not report the paths"));
        }
        let ab = cell(&in_turn, &["ab", server]);
        assert!(ab["reasons"].to_string().contains("ab requests one path only"), "{ab:#}");
    }
    for record in records(&out) {
        let lengths: BTreeSet<u64> = record.samples.iter().map(|sample| sample.response_body_bytes).collect();
        if record.clients.iter().any(|client| client.urls.len() == 700) {
            assert_eq!(lengths.len(), 700, "every path, in turn");
        }
    }
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("closed loop over 700 paths") && !report.contains("/bytes/6990"));
}

#[test]
fn random_order_and_random_parts_are_the_same_in_all_variants_of_a_block() {
    let _machine = machine();
    let folder = folder();
    std::fs::write(folder.path().join("list.txt"), "/bytes/10\n/bytes/{random:1000-2000}\n/bytes/20\n")
        .unwrap();
    let rest = "baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\n\
        server = [\"origin\", \"nginx\"]\nnetwork = [\"lan\"]\nworkload = [\"drawn\"]\n\
        [workload.drawn]\nkind = \"closed\"\nurls = \"list.txt\"\norder = \"random\"\nconnections = 2\nstreams = 3\nrequests = 300\n";
    let (summary, out) = run(folder.path(), "request_time", rest);
    for (variant, server) in [("h1s", "origin"), ("h2", "origin"), ("h1s", "nginx"), ("h2", "nginx")] {
        let cell = cell(&summary, &[variant, server]);
        assert_eq!((median(cell, "requests"), median(cell, "availability")), (300.0, 1.0), "{cell:#}");
        expect_pass(cell, &["urls"]);
        if variant == "h2" {
            expect_pass(cell, &["workloads_match"]);
        }
    }
    let lengths = |record: &RunRecord| {
        let mut rows: Vec<(u64, u64)> =
            record.samples.iter().map(|row| (row.request, row.response_body_bytes)).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>()
    };
    let records = records(&out);
    let of_block = |block| records.iter().filter(move |record| record.block == block).map(lengths);
    for block in [0, 1] {
        let first = of_block(block).next().unwrap();
        assert!(of_block(block).all(|lengths| lengths == first), "block {block}");
        let drawn: BTreeSet<u64> =
            first.iter().copied().filter(|bytes| (1000..=2000).contains(bytes)).collect();
        assert!(drawn.len() > 50, "{drawn:?}");
        assert!(first.iter().all(|bytes| drawn.contains(bytes) || [10, 20].contains(bytes)));
    }
    assert_ne!(of_block(0).next(), of_block(1).next(), "another seed");
}

#[test]
fn a_script_is_replayed_by_every_client_at_its_times() {
    let _machine = machine();
    let folder = folder();
    std::fs::write(folder.path().join("s.tsv"), "0\t/bytes/1000\n100\t/bytes/2000\n300\t/bytes/1000\n")
        .unwrap();
    let rest = "baseline = { workload = \"once\" }\n[matrix]\nvariant = [\"h2\"]\nserver = [\"nginx\"]\nnetwork = [\"lan\"]\n\
        workload = [\"once\", \"each\"]\n[workload.once]\nkind = \"script\"\nconnections = 3\nscript = \"s.tsv\"\n\
        [workload.each]\nkind = \"script\"\nclients = 3\nscript = \"s.tsv\"\n";
    let (summary, out) = run(folder.path(), "request_time", rest);
    assert!((median(cell(&summary, &["once"]), "requests") - 3.0).abs() < 1e-9);
    assert!((median(cell(&summary, &["each"]), "requests") - 9.0).abs() < 1e-9);
    for record in records(&out) {
        // A client begins when its connections are ready.
        let mut due: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for row in &record.samples {
            due.entry(row.client).or_default().push(row.intended_ns);
        }
        for mut times in due.into_values() {
            times.sort_unstable();
            let since: Vec<u64> = times.iter().map(|time| (time - times[0]) / 1_000_000).collect();
            assert_eq!(since, [0, 100, 300]);
        }
    }
}

#[test]
fn faults_of_request_files_name_file_and_line() {
    let folder = folder();
    let rest = "baseline = { variant = \"h1\" }\n[matrix]\nvariant = [\"h1\", \"h2c\"]\nserver = [\"nginx\"]\nnetwork = [\"lan\"]\n\
        workload = [\"list\"]\n[workload.list]\nkind = \"closed\"\nurls = \"list.txt\"\nrequests = 10\n";
    let ended = plan(folder.path(), rest).expect(2);
    assert!(ended.stderr.contains("list.txt does not exist; name a file relative to"), "{}", ended.stderr);
    let list = folder.path().join("list.txt");
    std::fs::write(&list, "/bytes/1\nhttp://a.test/b\n").unwrap();
    let ended = plan(folder.path(), rest).expect(2);
    assert!(
        ended.stderr.contains("list.txt:2:1: a URL with a host; write the path alone, `/b`"),
        "{}",
        ended.stderr
    );
    std::fs::write(&list, "/bytes/1\n/delay/5\n").unwrap();
    let ended = plan(folder.path(), rest).expect(2);
    assert!(
        ended.stderr.contains("the server `nginx` serves files only, and it has no `/delay/5`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_repeat_visit_resumes_the_sessions_of_a_visit_that_is_not_measured() {
    let _machine = machine();
    let folder = folder();
    let rest = "baseline = { variant = \"h3\" }\n[matrix]\nvariant = [\"h3\", \"h2\", \"h1s\"]\nserver = [\"early\", \"tcp\"]\n\
        network = [{ rtt = \"40ms\" }]\nworkload = [\"page\", \"loop\"]\n[hold]\nresumption = true\n\
        [server.early]\nuse = \"origin\"\nset = { early_data = true }\n\
        [server.tcp]\nuse = \"nginx\"\nset = { early_data = true }\n\
        [workload.page]\nkind = \"page\"\npage = \"small\"\nvisit = \"repeat\"\nclients = 2\n\
        [workload.loop]\nkind = \"closed\"\npaths = [\"/bytes/1000\"]\nconnections = 2\nrequests = 20\nvisit = \"repeat\"\n";
    let file = study(folder.path(), "request_time", rest);
    let out = folder.path().join("out");
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    let summary = summary(&out);
    let mut kinds: BTreeSet<(String, String, String)> = BTreeSet::new();
    for record in records(&out).iter().filter(|record| record.outcome.is_ok()) {
        let cell = &summary["cells"][record.cell as usize];
        let level = |name: &str| {
            let levels = cell["levels"].as_array().unwrap();
            let level = levels.iter().find(|level| level["factor"] == name).unwrap();
            level["value"].as_str().unwrap().to_owned()
        };
        let page = level("workload") == "page";
        assert_eq!(record.samples.len(), if page { 2 * 3 } else { 20 }, "only the measured visit");
        // Connections that a page opens at the same time may be more than the tickets.
        let first = record.connections.iter().min_by_key(|row| row.opened_ns).unwrap();
        assert!(first.resumed, "{cell:#}");
        assert!(
            cell["metrics"].get("wire_bytes_down").is_none()
                && cell["metrics"].get("server_cpu_per_request").is_none()
        );
        kinds.insert((level("server"), level("variant"), first.early_data.to_string()));
    }
    for (server, variant, early) in [
        ("early", "h3", "accepted"),
        ("early", "h2", "not_tried"),
        ("tcp", "h2", "accepted"),
        ("tcp", "h1s", "accepted"),
    ] {
        let found = (server.to_owned(), variant.to_owned(), early.to_owned());
        assert!(kinds.contains(&found), "{found:?} in {kinds:?}");
    }
    let plan = plan(folder.path(), &rest.replace("resumption = true", "")).expect(2);
    assert!(plan.stderr.contains("`visit` is repeat, which requires `resumption = true`"), "{}", plan.stderr);
}

#[test]
fn classes_of_requests_have_estimates_comparisons_and_a_table() {
    let _machine = machine();
    let folder = folder();
    let rest = "baseline = { server = \"origin\" }\nfigures = [\"ecdf\"]\n[matrix]\nvariant = [\"h1\"]\nserver = [\"origin\", \"nginx\"]\n\
        network = [\"lan\"]\nworkload = [\"mixed\"]\n[workload.mixed]\nkind = \"closed\"\nrequests = 90\n\
        paths = [\"/bytes/300000\", \"/bytes/100\", \"/bytes/200\"]\n[class.video]\npaths = [\"/bytes/3*\"]\n";
    let (summary, out) = run(folder.path(), "request_time@video", rest);
    for server in ["origin", "nginx"] {
        let cell = cell(&summary, &[server]);
        let samples = |name: &str| cell["metrics"][name]["samples"].as_u64().unwrap();
        assert_eq!(["request_time", "request_time@video", "request_time@other"].map(samples), [180, 60, 120]);
        // 300 kB take 24 ms at 100 Mbit/s.
        assert!(
            median(cell, "request_time@video") > 20e6 && median(cell, "request_time@other") < 20e6,
            "{cell:#}"
        );
        assert!((median(cell, "availability@video") - 1.0).abs() < 1e-12);
    }
    let comparisons = summary["comparisons"].as_array().unwrap();
    let of = |metric: &str| comparisons.iter().find(|one| one["metric"] == metric).unwrap();
    assert!(of("request_time@video")["primary"].as_bool().unwrap());
    assert!(
        !of("request_time@other")["primary"].as_bool().unwrap()
            && of("request_time@other")["ratio"].is_object()
    );
    let table = std::fs::read_to_string(out.join("tables/classes.csv")).unwrap();
    assert!(table.starts_with("cell,class,metric,") && table.contains(",video,request_time,"), "{table}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("Request time (video)") && report.contains("Request time (other)"));
    let rest = rest.replace("/bytes/3*", "*.m4s").replace("[class.video]", "[class.film]");
    let ended = h123(["plan", study(folder.path(), "request_time", &rest).to_str().unwrap()]).expect(2);
    assert!(ended.stderr.contains("the class `film` matches no path of the workloads"), "{}", ended.stderr);
}
