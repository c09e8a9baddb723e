//! The times of real servers, from their logs or from packets, joined with the client's rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use model::record::{RunRecord, ServerRequest, TimeSource};
use model::sample::Sample;
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, machine, median, repository, summary};

/// The route to the server takes longer than most servers, which separates the time at the server from the
/// rest.
const NETWORK: &str = "title = 'Near'\nsource = 'a test'\nrtt = '4ms'\nrate = '100Mbit/s'\n";
const ONE_WAY_NS: u64 = 2_000_000;
/// Stamps of the emulator and of the client may differ from the events by this much.
const SLACK_NS: u64 = 200_000;
const PAGE: &str = "title = 'Two little files'\n[[resource]]\npath = '/tiny/'\nkind = 'html'\nsizes = ['500B']\n\
    [[resource]]\npath = '/tiny/a.js'\nkind = 'js'\nnamed_by = '/tiny/'\nsizes = ['300B']\n";
const BODY_BYTES: u64 = 300;
const REQUESTS: usize = 40;
const CONNECTIONS: usize = 2;

/// A closed loop of 40 requests over two connections against these servers.
fn study(metric: &str, servers: &str, variants: &str, path: &str) -> String {
    format!(
        "question = 'Where does the time go?'\nmetric = '{metric}'\nmargin = '10%'\nruns = 1\nseed = 1\nserver_time = true\n\
         baseline = {{ server = 'origin' }}\n[matrix]\nvariant = {variants}\nserver = {servers}\nnetwork = ['near']\n\
         workload = ['loop', 'tiny']\n[workload.tiny]\nkind = 'page'\npage = 'tiny'\n[workload.loop]\nkind = 'closed'\n\
         paths = ['{path}']\nconnections = {CONNECTIONS}\nstreams = 1\nrequests = {REQUESTS}\n"
    )
}

/// Runs a study in a new folder; returns its summary, and the records of its loops by server and variant.
fn measure(place: &Path, study: &str) -> (Value, BTreeMap<(String, String), RunRecord>) {
    for folder in ["networks", "pages"] {
        std::fs::create_dir_all(place.join(folder)).unwrap();
    }
    for (file, text) in [("networks/near.toml", NETWORK), ("pages/tiny.toml", PAGE), ("study.toml", study)] {
        std::fs::write(place.join(file), text).unwrap();
    }
    let args = ["run", "study.toml", "-q", "--out", "out"];
    let ended = Ended::of(Command::new(H123).args(args).current_dir(place).output().unwrap());
    ended.expect_measured();
    let out = place.join("out");
    let result = ResultFolder::open(&out).unwrap();
    let plan = result.read_json::<model::Plan>("plan.json").unwrap();
    let mut loops = BTreeMap::new();
    for record in result.records().unwrap() {
        let record = record.unwrap();
        let cell = &plan.cells[record.cell as usize];
        let level = |factor: &str| cell.level(factor).unwrap().to_owned();
        if level("workload") == "loop" && record.outcome.is_ok() {
            loops.insert((level("server"), level("variant")), record);
        }
    }
    (summary(&out), loops)
}

/// Every request with the server's row, of which there is exactly one.
fn joined(record: &RunRecord) -> Vec<(&Sample, &ServerRequest)> {
    let rows = |sample: &Sample| {
        let has_name = |row: &&ServerRequest| (row.group, row.request) == (sample.group, sample.request);
        record.server_requests.iter().filter(has_name).collect::<Vec<_>>()
    };
    let pairs = record.samples.iter().map(|sample| {
        let found = rows(sample);
        assert_eq!(found.len(), 1, "request {}: {found:?}", sample.request);
        (sample, found[0])
    });
    let pairs: Vec<_> = pairs.collect();
    assert_eq!((pairs.len(), record.server_requests.len()), (REQUESTS, REQUESTS));
    pairs
}

/// Checks the packets' times of a request against the client's stamps and the delay of the route.
fn expect_possible(sample: &Sample, row: &ServerRequest) {
    let (sent_ns, done_ns) = (sample.sent_ns.unwrap(), sample.done_ns.unwrap());
    let (arrived_ns, left_ns) = (row.arrived_ns.unwrap(), row.sent_ns.unwrap());
    assert!(arrived_ns + SLACK_NS >= sent_ns + ONE_WAY_NS, "{sample:?} {row:?}");
    assert!(left_ns + ONE_WAY_NS <= done_ns + SLACK_NS, "{sample:?} {row:?}");
    assert_eq!(row.request_time_ns, left_ns - arrived_ns);
    assert!(row.first_sent_ns.is_none_or(|first_ns| (arrived_ns..=left_ns).contains(&first_ns)), "{row:?}");
    assert!(row.log_time_ns.is_some() && row.precision_ns > 0, "{row:?}");
}

#[test]
fn every_request_is_found_in_the_logs_of_real_servers() {
    let _machine = machine();
    let place = folder();
    let servers = "['origin', 'nginx', 'apache', 'lighttpd', 'caddy']";
    let study = study("server_time", servers, "['h1', 'h1s', 'h2', 'h3']", "/tiny/a.js");
    let (summary, loops) = measure(place.path(), &study);
    let has = |server: &str, variant: &str| loops.contains_key(&(server.to_owned(), variant.to_owned()));
    for server in ["origin", "nginx", "apache", "lighttpd", "caddy"] {
        assert!(["h1", "h1s", "h2"].iter().all(|variant| has(server, variant)), "{server}");
    }
    assert!(has("origin", "h3") && has("caddy", "h3"));
    for ((server, variant), record) in &loops {
        let what = format!("{server} {variant}");
        assert_eq!(record.servers[0].log_fault, None, "{what}");
        let mut longer = 0;
        let mut from_packets = 0;
        for (sample, row) in joined(record) {
            assert_eq!((row.server, row.status), (0, Some(200)), "{what}");
            assert_eq!(row.body_bytes, Some(BODY_BYTES), "{what}");
            assert!(row.remote_port.is_some_and(|port| port > 0), "{what}");
            let at_client_ns = sample.done_ns.unwrap() - sample.sent_ns.unwrap();
            longer += usize::from(row.request_time_ns > at_client_ns + row.precision_ns);
            if row.source == TimeSource::Packets {
                from_packets += 1;
                expect_possible(sample, row);
            }
        }
        // mod_http2 logs when it has cleaned up, which may be later; some count a connection's first request
        // from its beginning.
        assert!(longer <= CONNECTIONS || what == "apache h2", "{what}: {longer}");
        match (server.as_str(), variant.as_str()) {
            ("nginx", "h1" | "h1s") => assert_eq!(from_packets, REQUESTS, "{what}"),
            // Around a connection's first request HTTP/2 agrees on settings.
            ("nginx", "h2") => assert_eq!(from_packets, REQUESTS - CONNECTIONS, "{what}"),
            _ => assert_eq!(from_packets, 0, "{what}"),
        }
        let cell = cell(&summary, &[server, variant, "loop"]);
        let found = format!("{REQUESTS} of {REQUESTS} requests in the server's log");
        assert!(
            check(cell, "server_time_joined")["measured"].as_str().unwrap().starts_with(&found),
            "{cell:#}"
        );
        assert!(median(cell, "outside_server_time") > 3e6, "the route alone takes longer: {cell:#}");
        assert!(
            median(cell, "server_time") < median(cell, "request_time") || what == "apache h2",
            "{cell:#}"
        );
    }
    let report = std::fs::read_to_string(place.path().join("out/report.html")).unwrap();
    assert!(report.contains("Server time"), "the table");
}

/// The origin's own log has microseconds; if it is described as one of milliseconds, packets replace it, and
/// can be compared with it.
#[test]
fn packets_agree_with_an_exact_log() {
    const DELAY_NS: u64 = 5_000_000;
    let _machine = machine();
    let place = folder();
    let coarse = place.path().join("servers/coarse");
    std::fs::create_dir_all(&coarse).unwrap();
    for file in ["server.toml", "config.json.jinja"] {
        let text = std::fs::read_to_string(repository().join("servers/origin").join(file)).unwrap();
        assert!(file != "server.toml" || text.contains("precision = \"1us\""));
        let text = text.replace("precision = \"1us\"", "precision = \"1ms\"");
        std::fs::write(coarse.join(file), text).unwrap();
    }
    let study = study("request_time", "['origin', 'coarse']", "['h1', 'h1s', 'h2c']", "/delay/5");
    let (_, loops) = measure(place.path(), &study);
    for variant in ["h1", "h1s", "h2c"] {
        let exact = &loops[&("origin".to_owned(), variant.to_owned())];
        assert!(exact.server_requests.iter().all(|row| row.source == TimeSource::Log), "{variant}");
        let record = &loops[&("coarse".to_owned(), variant.to_owned())];
        let mut apart_ns = Vec::new();
        for (sample, row) in joined(record) {
            if row.source == TimeSource::Log {
                continue;
            }
            expect_possible(sample, row);
            let log_ns = row.log_time_ns.unwrap();
            assert!(log_ns >= DELAY_NS && row.request_time_ns + row.precision_ns >= DELAY_NS, "{row:?}");
            apart_ns.push(row.request_time_ns.abs_diff(log_ns));
        }
        assert!(apart_ns.len() >= REQUESTS - CONNECTIONS, "{variant}: {}", apart_ns.len());
        // A busy machine sometimes delays the log's stamps or the sending, but not mostly.
        apart_ns.sort_unstable();
        let quarter_ns = apart_ns[apart_ns.len() / 4];
        assert!(quarter_ns < 500_000, "{variant}: {quarter_ns} ns apart in the best quarter");
    }
}
