//! Client groups that run at the same time: several clients each, in several nodes, on several servers.

use std::path::{Path, PathBuf};

use model::RunRecord;
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, summary};

/// A study of groups; `rest` has its topology, matrix, workloads and groups.
fn study(folder: &Path, head: &str, rest: &str) -> PathBuf {
    let text = format!(
        "question = \"Which?\"\nmetric = \"page_load_time\"\nmargin = \"3%\"\nruns = 2\n{head}\n\
         [workload.small]\nkind = \"page\"\npage = \"small\"\n{rest}"
    );
    let file = folder.join("study.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn run(folder: &Path, head: &str, rest: &str) -> (Value, PathBuf) {
    let (file, out) = (study(folder, head, rest), folder.join("out"));
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    (summary(&out), out)
}

/// The runs of a result with all their rows.
fn records(out: &Path) -> Vec<RunRecord> {
    ResultFolder::open(out).unwrap().records().unwrap().map(Result::unwrap).collect()
}

#[test]
fn groups_in_two_cities_run_at_the_same_time_over_their_own_networks() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { group = \"near-h1s\" }\ntopology = \"sites\"\n\
                [matrix]\nserver = [\"origin\"]\nnetwork = [\"own\"]\nworkload = [\"small\"]";
    let groups = "clients = 5\nstart = { evenly = \"400ms\" }\n\
                  [[group]]\nname = \"near-h1s\"\nnode = \"frankfurt\"\nvariant = \"h1s\"\n\
                  [[group]]\nname = \"near-h2\"\nnode = \"frankfurt\"\nvariant = \"h2\"\n\
                  [[group]]\nname = \"far-h3\"\nnode = \"tokyo\"\nvariant = \"h3\"\n";
    let (summary, out) = run(folder.path(), head, groups);
    assert_eq!(
        (&summary["runs_planned"], &summary["runs_stored"]),
        (&2.into(), &2.into()),
        "not one per group"
    );
    for (group, least_ms, most_ms) in
        [("near-h1s", 28.0, 300.0), ("near-h2", 28.0, 300.0), ("far-h3", 840.0, 1500.0)]
    {
        let cell = cell(&summary, &[group]);
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        // Round trips of 7 and 280 ms: handshake, document and what it names.
        let load_ms = median(cell, "page_load_time") / 1e6;
        assert!((least_ms..most_ms).contains(&load_ms), "{group}: {load_ms} ms");
        assert_eq!(cell["metrics"]["page_load_time"]["samples"], 10, "five clients in two runs");
        for name in ["version", "status", "all_requested", "emulation", "calibration"] {
            assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
        }
    }
    let compared: Vec<&Value> =
        summary["comparisons"].as_array().unwrap().iter().filter(|one| one["primary"] == true).collect();
    assert_eq!(compared.len(), 2, "both others against the first, paired by run");
    // All rows of a run are on one clock: the groups overlap, and starts are spread over 400 ms.
    let records = records(&out);
    assert_eq!(records.len(), 2);
    for record in &records {
        let of = |group: u16| record.samples.iter().filter(move |sample| sample.group == group);
        let span = |group: u16| {
            let begin = of(group).map(|sample| sample.intended_ns).min().unwrap();
            (begin, of(group).filter_map(|sample| sample.done_ns).max().unwrap())
        };
        let (near, far) = (span(1), span(2));
        assert!(near.0 < far.1 && far.0 < near.1, "{near:?} {far:?}");
        for group in 0..3 {
            let begin = |client: u32| {
                of(group)
                    .filter(|sample| sample.client == client)
                    .map(|sample| sample.intended_ns)
                    .min()
                    .unwrap()
            };
            let begins: Vec<u64> = (0..5).map(begin).collect();
            let gaps: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(gaps, [80_000_000; 4], "as planned, whatever the machine does");
        }
        let groups: Vec<u16> = record.clients.iter().map(|client| client.group).collect();
        assert_eq!((groups, record.round_trips.len()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn a_background_group_ends_with_the_measured_one() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nserver = [\"origin\"]\n\
                network = [{ rtt = \"20ms\", rate = \"20Mbit/s\" }]\nworkload = [\"small\"]";
    let groups = "[workload.bulk]\nkind = \"closed\"\npaths = [\"/bytes/2000\"]\nduration = \"60s\"\n\
                  [[group]]\nname = \"page\"\n\
                  [[group]]\nname = \"bulk\"\nbackground = true\nvariant = \"h2\"\nworkload = \"bulk\"\nend = { with = \"page\" }\n";
    let (summary, out) = run(folder.path(), head, groups);
    for variant in ["h1s", "h2"] {
        assert_eq!(cell(&summary, &[variant, "page"])["runs_ok"], 2, "{summary:#}");
        let bulk = cell(&summary, &[variant, "bulk"]);
        assert!(median(bulk, "requests_per_second") > 0.0, "{bulk:#}");
    }
    let primary =
        summary["comparisons"].as_array().unwrap().iter().filter(|one| one["primary"] == true).count();
    assert_eq!(primary, 1, "nothing is compared with the background");
    for record in records(&out) {
        let latest = record.clients.iter().map(|client| client.finished_ns).max().unwrap();
        assert!(latest < 20_000_000_000, "it did not run for its 60 s: {latest} ns");
        assert!(
            record.samples.iter().filter(|sample| sample.group == 1).all(|sample| sample.outcome.is_ok())
        );
    }
}

#[test]
fn each_group_can_have_its_own_server() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { group = \"one\" }\n[matrix]\nnetwork = [\"lan\"]\nworkload = [\"small\"]";
    let groups = "[[group]]\nname = \"one\"\nvariant = \"h2\"\nserver = \"origin\"\n\
                  [[group]]\nname = \"two\"\nvariant = \"h2\"\nserver = \"nginx\"\n";
    let (summary, out) = run(folder.path(), head, groups);
    for group in ["one", "two"] {
        assert_eq!(cell(&summary, &[group])["runs_ok"], 2, "{summary:#}");
    }
    for record in records(&out) {
        let names: Vec<&str> = record.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["origin", "nginx"]);
    }
}

/// Only the page is judged; the video, of which the metric says nothing, plays next to it.
#[test]
fn a_page_and_a_video_come_from_servers_in_different_nodes() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { variant = \"h2\" }\ntopology = { name = \"campus\", server = \"web-server\" }\n\
                [matrix]\nvariant = [\"h2\", \"h3\"]\nnetwork = [\"lan\"]";
    let groups = "[workload.video]\nkind = \"player\"\nladder = [\"1Mbit/s\"]\nsegment = \"200ms\"\nsegments = 5\n\
                  buffer = \"400ms\"\nrule = \"throughput\"\nclients = 4\n\
                  [server.videos]\nuse = \"origin\"\nnode = \"video-server\"\n\
                  [[group]]\nname = \"page\"\nserver = \"origin\"\nworkload = \"small\"\nclients = 3\n\
                  start = { evenly = \"500ms\" }\n\
                  [[group]]\nname = \"video\"\nserver = \"videos\"\nworkload = \"video\"\nBACKGROUND\n";
    let file = study(folder.path(), head, &groups.replace("BACKGROUND", ""));
    let error = h123(["plan", file.to_str().unwrap()]).expect(2).stderr;
    assert!(error.contains("or make the group `background`"), "{error}");
    let (summary, out) = run(folder.path(), head, &groups.replace("BACKGROUND", "background = true"));
    for variant in ["h2", "h3"] {
        let (page, video) = (cell(&summary, &[variant, "page"]), cell(&summary, &[variant, "video"]));
        assert_eq!((median(page, "requests"), median(video, "requests")), (9.0, 20.0), "{summary:#}");
        assert!(median(page, "page_load_time") > 0.0 && median(video, "startup_time") > 0.0, "{summary:#}");
        for (cell, name) in [(page, "body_content"), (page, "version"), (video, "all_requested")] {
            assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
        }
    }
    for record in records(&out) {
        assert_eq!(record.servers.len(), 2, "one for each group");
        let span = |group: u16| {
            let of_group = record.samples.iter().filter(move |sample| sample.group == group);
            let begin = of_group.clone().map(|sample| sample.intended_ns).min().unwrap();
            (begin, of_group.filter_map(|sample| sample.done_ns).max().unwrap())
        };
        let (page, video) = (span(0), span(1));
        assert!(page.0 < video.1 && video.0 < page.1, "{page:?} {video:?}");
    }
}

#[test]
fn a_group_is_spread_over_the_processes_of_its_cpus() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nserver = [\"origin\"]\n\
                network = [\"lan\"]\nworkload = [\"small\"]";
    let rest = "clients = 7\nstart = { ramp = \"300ms\" }\n[cores]\nclient = \"0-1\"\n";
    let (summary, out) = run(folder.path(), head, rest);
    let environment = std::fs::read_to_string(out.join("environment.json")).unwrap();
    assert!(environment.contains("client 0-1"), "{environment}");
    for variant in ["h1s", "h2"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!(
            (&cell["runs_ok"], &cell["metrics"]["page_load_time"]["samples"]),
            (&2.into(), &14.into())
        );
        for name in ["version", "status", "all_requested", "body_content"] {
            assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
        }
    }
    for record in records(&out) {
        assert_eq!(record.clients.len(), 1, "one report of all processes");
        assert_eq!((record.clients[0].clients_begun, record.clients[0].clients_finished), (7, 7));
        let clients: std::collections::BTreeSet<u32> =
            record.samples.iter().map(|sample| sample.client).collect();
        assert_eq!(clients, (0..7).collect());
        // A ramp from 0 leaves more time between the first two clients than between the last two.
        let begin = |client: u32| {
            record
                .samples
                .iter()
                .filter(|sample| sample.client == client)
                .map(|sample| sample.intended_ns)
                .min()
        };
        let begins: Vec<u64> = (0..7).map(|client| begin(client).unwrap()).collect();
        assert!(begins.is_sorted(), "{begins:?}");
        let connections: std::collections::BTreeSet<(u32, u32)> =
            record.connections.iter().map(|row| (row.client, row.connection)).collect();
        assert_eq!(connections.len(), record.connections.len(), "no number twice");
    }
    let absent = "[cores]\nserver = \"8191\"\n";
    let file = study(folder.path(), head, absent);
    let ended =
        h123(["run", file.to_str().unwrap(), "--out", folder.path().join("absent").to_str().unwrap()]);
    let error = ended.expect(2).stderr;
    assert!(error.contains("[cores]: `server` has CPU 8191, and h123 may use"), "{error}");
    assert!(!folder.path().join("absent").exists());
}

#[test]
fn a_group_ends_after_its_time_and_another_with_it() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { group = \"pages\" }\n[matrix]\nserver = [\"origin\"]\nnetwork = [\"lan\"]";
    let groups = "clients = 40\nstart = { poisson = \"500ms\" }\n\
                  [workload.endless]\nkind = \"closed\"\npaths = [\"/bytes/1000\"]\nduration = \"60s\"\n\
                  [[group]]\nname = \"pages\"\nvariant = \"h2\"\nworkload = \"small\"\nend = { after = \"250ms\" }\n\
                  [[group]]\nname = \"load\"\nvariant = \"h1\"\nworkload = \"endless\"\nbackground = true\n\
                  end = { with = \"pages\" }\n";
    let (summary, out) = run(folder.path(), head, groups);
    assert_eq!(cell(&summary, &["pages"])["runs_ok"], 2, "{summary:#}");
    for record in records(&out) {
        let [pages, load] = record.clients.as_slice() else { panic!("{:?}", record.clients) };
        assert!((1..40).contains(&pages.clients_begun), "half of them: {}", pages.clients_begun);
        assert_eq!((load.clients_begun, load.clients_finished), (1, 0));
        let last = |group: u16| {
            let of_group = record.samples.iter().filter(|sample| sample.group == group);
            of_group.filter_map(|sample| sample.done_ns).max().unwrap()
        };
        assert!(last(1) < 30_000_000_000, "it did not run for its 60 s");
        assert!(record.samples.iter().all(|sample| sample.outcome.is_ok()), "a cut is no failure");
    }
}

#[test]
fn one_external_client_is_all_clients() {
    let _machine = machine();
    let folder = folder();
    let text = "question = \"Which?\"\nmetric = \"request_time\"\nmargin = \"3%\"\nruns = 2\n\
                baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nclient = [\"h2load\"]\n\
                server = [\"nghttpd\", \"origin\"]\nexcept = []\nnetwork = [\"lan\"]\nworkload = [\"one\"]\nclients = [1, 30]\n\
                [workload.one]\nkind = \"closed\"\npaths = [\"/bytes/1000\"]\nrequests = 2\n\
                [csv.steps]\nclients = \"clients\"\nrequests = \"requests\"\nlongest_ms = \"max of request_time in ms\"\n";
    let text = text.replace("except = []\n", "").replace("[\"nghttpd\", \"origin\"]", "[\"origin\"]");
    let (file, out) = (folder.path().join("study.toml"), folder.path().join("out"));
    std::fs::write(&file, text).unwrap();
    h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]).expect_measured();
    let csv = std::fs::read_to_string(out.join("tables/steps.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["clients", "requests", "longest_ms"]);
    let steps: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(steps, [("1", "2"), ("30", "60"), ("1", "2"), ("30", "60")]);
    assert!(
        rows[1..].iter().all(|row| row[2].parse::<f64>().unwrap() > 0.3),
        "a round trip of 0.3 ms: {csv}"
    );
}

#[test]
fn a_connection_for_each_request_uses_several_addresses() {
    let _machine = machine();
    let folder = folder();
    let text = "question = \"Which?\"\nmetric = \"requests_per_second\"\nmargin = \"3%\"\nruns = 1\n\
                baseline = { variant = \"h1\" }\n[matrix]\nvariant = [\"h1\", \"h2c\"]\nserver = [\"origin\"]\n\
                network = [\"lan\"]\nworkload = [\"short\"]\n[workload.short]\nkind = \"closed\"\npaths = [\"/bytes/10\"]\n\
                duration = \"400ms\"\nrequests_per_connection = 1\nconnections = 3\n";
    let (file, out) = (folder.path().join("study.toml"), folder.path().join("out"));
    std::fs::write(&file, text).unwrap();
    h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--pcap"]).expect_measured();
    for record in records(&out) {
        assert!(record.connections.len() > 9, "{}", record.connections.len());
        assert!(record.samples.iter().all(|sample| sample.outcome.is_ok()), "an address that the node lacks");
        let capture =
            walk(&out.join("logs")).into_iter().find(|path| path.extension() == Some("pcapng".as_ref()));
        let tshark = std::process::Command::new("tshark")
            .args([
                "-r",
                capture.unwrap().to_str().unwrap(),
                "-T",
                "fields",
                "-e",
                "ip.src",
                "tcp.flags.syn == 1",
            ])
            .output()
            .unwrap();
        let text = String::from_utf8(tshark.stdout).unwrap();
        let sources: std::collections::BTreeSet<&str> = text.lines().collect();
        assert_eq!(sources.len(), 9, "eight of the client and one of the server: {sources:?}");
    }
}

/// Every file below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn many_connections_need_no_raised_soft_limit_and_are_refused_above_the_hard_one() {
    let _machine = machine();
    let folder = folder();
    let text = "question = \"Which?\"\nmetric = \"request_time\"\nmargin = \"3%\"\nruns = 1\n\
                baseline = { variant = \"h1\" }\n\
                [matrix]\nvariant = [\"h1\"]\nserver = [\"origin\"]\nnetwork = [\"lan\"]\nworkload = [\"many\"]\n\
                [workload.many]\nkind = \"closed\"\npaths = [\"/bytes/100\"]\nconnections = 4\nrequests = 4\nclients = 100\n";
    let file = folder.path().join("study.toml");
    std::fs::write(&file, text).unwrap();
    let limited = |limits: &str, out: &Path| {
        let script = format!("{limits}; exec \"$@\"");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, "sh", H123, "run"]).arg(&file).arg("--out").arg(out);
        Ended::of(shell.current_dir(folder.path()).output().unwrap())
    };
    // Soft limits of 1024 are common; the servers and clients of a run raise theirs.
    let out = folder.path().join("soft");
    limited("ulimit -Sn 300", &out).expect_measured();
    let requests = median(cell(&summary(&out), &["h1"]), "requests_succeeded");
    assert!((requests - 400.0).abs() < f64::EPSILON, "{requests}");

    let out = folder.path().join("hard");
    let refused = limited("ulimit -n 450", &out).expect(2);
    let expected =
        "the clients have 400 connections to `origin`, which holds 386 here (a process may have 386";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(!out.exists(), "nothing was started");

    // A server may hold fewer or more than a process has descriptors.
    for (server, clients, expected) in [
        ("lighttpd", 3000, "the clients have 12000 connections to `lighttpd`, which holds 8192 here"),
        ("nginx", 5000, "the clients have 20000 connections to `nginx`, which holds 16384 here"),
        ("apache", 5000, "the clients have 20000 connections to `apache`, which holds 19936 here"),
    ] {
        let text = text.replace("origin", server).replace("clients = 100", &format!("clients = {clients}"));
        std::fs::write(&file, text).unwrap();
        let refused = limited("ulimit -n 20000", &out).expect(2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        assert!(!out.exists(), "nothing was started");
    }
}
