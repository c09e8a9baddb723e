//! A recorded page load that h123's origin replays: hosts, what scripts request, and think times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use model::Plan;
use model::record::RunRecord;
use model::sample::Sample;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, machine, median, summary};

const SHOP: &str = "https://www.shop.example";
const CDN: &str = "https://cdn.example";
/// The round trip of the recording, and of the study.
const RECORDED_TRIP_MS: u64 = 40;
const RTT_NS: u64 = 20_000_000;
const THINK_NS: [(&str, u64); 2] =
    [("/shop.example/", 80_000_000), ("/shop.example/api/cart.js", 150_000_000)];

const STUDY: &str = "question = 'Which?'\nmetric = 'page_load_time'\nmargin = '5%'\nruns = 1\n\
    baseline = { client = 'h123' }\n\
    [matrix]\nserver = ['origin', 'nginx']\nvariant = ['h1', 'h1s', 'h2', 'h3']\nclient = ['h123', 'chromium']\n\
    network = [{ rtt = '20ms' }]\nworkload = ['shop']\n[workload.shop]\nkind = 'page'\npage = 'shop'\n";

/// URL, media type, body length, what caused it, and think time in milliseconds.
const RECORDED: [(&str, &str, &str, u64, &str, u64); 9] = [
    (SHOP, "/", "text/html", 9_000, "", 80),
    (CDN, "/app.js?v=3", "text/javascript", 4_000, "https://www.shop.example/", 0),
    (CDN, "/site.css", "text/css", 3_000, "https://www.shop.example/", 0),
    (CDN, "/f.woff2", "font/woff2", 2_000, "https://cdn.example/site.css", 0),
    (SHOP, "/logo.gif", "image/gif", 1_200, "https://cdn.example/site.css", 0),
    (SHOP, "/api/cart", "application/json", 500, "https://cdn.example/app.js?v=3", 150),
    (SHOP, "/photo.jpg", "image/jpeg", 20_000, "https://cdn.example/app.js?v=3", 0),
    (CDN, "/late.css", "text/css", 800, "https://cdn.example/app.js?v=3", 0),
    (SHOP, "/frame.html", "text/html", 700, "https://cdn.example/app.js?v=3", 0),
];

fn har() -> String {
    let entries = RECORDED.map(|(host, path, media_type, bytes, by, think_ms)| {
        let wait = RECORDED_TRIP_MS + think_ms;
        format!(
            r#"{{"request":{{"method":"GET","url":"{host}{path}"}},"_initiator":{{"url":"{by}"}},"timings":{{"wait":{wait}}},
            "response":{{"status":200,"bodySize":{bytes},"content":{{"mimeType":"{media_type}"}}}}}}"#
        )
    });
    format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))
}

/// The rows of a run by the names of their URLs.
fn by_url(record: &RunRecord) -> BTreeMap<&str, &Sample> {
    let urls = &record.clients[0].urls;
    record.samples.iter().map(|sample| (urls[sample.url as usize].as_str(), sample)).collect()
}

fn check_rows(what: &str, record: &RunRecord) {
    let rows = by_url(record);
    assert_eq!((rows.len(), record.samples.len()), (RECORDED.len(), RECORDED.len()), "{what}: {rows:#?}");
    for (url, sample) in &rows {
        assert!(sample.outcome.is_ok(), "{what} {url}: {sample:?}");
    }
    for (url, think_ns) in THINK_NS {
        let sample = rows[url];
        let waited_ns = sample.first_byte_ns.unwrap() - sample.sent_ns.unwrap();
        assert!(waited_ns >= think_ns + RTT_NS, "{what} {url}: {waited_ns}");
    }
    let (of_cdn, of_shop): (Vec<_>, Vec<_>) =
        rows.iter().partition(|(url, _)| url.contains("://cdn.example.test/"));
    let connections = |rows: &[(&&str, &&Sample)]| {
        rows.iter().map(|(_, sample)| sample.connection.unwrap()).collect::<BTreeSet<_>>()
    };
    assert_eq!((of_cdn.len(), of_shop.len()), (4, 5), "{what}");
    let (of_cdn, of_shop) = (connections(&of_cdn), connections(&of_shop));
    assert!(of_cdn.is_disjoint(&of_shop), "{what}: {of_cdn:?} {of_shop:?}");
    let scheme = if what.contains(" h1 ") { "http" } else { "https" };
    let script = rows[format!("{scheme}://cdn.example.test/shop.example/app-v-3.js").as_str()];
    for child in ["/shop.example/api/cart.js", "/shop.example/photo.png", "/shop.example/frame.html"] {
        assert!(rows[child].sent_ns.unwrap() >= script.first_byte_ns.unwrap(), "{what} {child}");
    }
}

fn make_page(folder: &Path) -> String {
    std::fs::create_dir(folder.join("pages")).unwrap();
    std::fs::write(folder.join("shop.har"), har()).unwrap();
    let mut command = Command::new(H123);
    command.args(["page-model", "shop.har", "--replay", "-o", "pages/shop.toml"]).current_dir(folder);
    Ended::of(command.output().unwrap()).expect(0).stderr
}

#[test]
fn a_recorded_page_is_replayed_to_h123_and_chromium() {
    let _machine = machine();
    let folder = folder();
    let described = make_page(folder.path());
    assert_eq!(described, "9 resources on 2 hosts, 41.2 kB, think times up to 150 ms\n");
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", "out", "-q"]).current_dir(folder.path());
    Ended::of(command.output().unwrap()).expect_measured();
    let out = folder.path().join("out");
    let summary = summary(&out);
    let nginx = cell(&summary, &["nginx", "h2", "h123"]);
    assert!(nginx["reasons"].to_string().contains("nginx never waits before it answers"), "{nginx:#}");
    let result = ResultFolder::open(&out).unwrap();
    let plan = result.read_json::<Plan>("plan.json").unwrap();
    let mut runs = 0;
    for record in result.records().unwrap().map(Result::unwrap).filter(|record| record.outcome.is_ok()) {
        let planned = &plan.cells[record.cell as usize];
        let level = |factor: &str| planned.level(factor).unwrap();
        let what = format!("{} {} {}", level("server"), level("variant"), level("client"));
        check_rows(&what, &record);
        let cell = cell(&summary, &["origin", level("variant"), level("client")]);
        assert_eq!((&cell["runs_ok"], median(cell, "requests")), (&1.into(), 9.0), "{cell:#}");
        let compared = (level("client") == "chromium").then_some("workloads_match");
        for sound in ["version", "status", "body_length", "all_requested"].into_iter().chain(compared) {
            assert_eq!(check(cell, sound)["result"], "pass", "{sound} of {cell:#}");
        }
        runs += 1;
    }
    assert_eq!(runs, 8, "h123 and Chromium over four variants: {summary:#}");
}
