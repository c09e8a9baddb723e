//! The studies `crossover` and `handover` in a small form: the round trips that theory fixes.

use serde_json::Value;

use crate::published::{replaced, run_changed, without_exceptions};
use crate::tool::{cell, check, folder, machine, median};

/// The value of the fastest run: other programs lengthen runs and never shorten one.
fn fastest(cell: &Value, metric: &str) -> f64 {
    let runs = cell["metrics"][metric]["per_run"].as_array().unwrap();
    runs.iter().filter_map(|run| run["value"].as_f64()).reduce(f64::min).unwrap()
}

/// Far away and without loss: TCP and TLS take two round trips, QUIC one, and then a page of a document with
/// two resources takes two more. Over HTTP/1.1, the second resource needs another connection.
#[test]
fn far_away_http3_saves_a_round_trip() {
    const RTT_NS: f64 = 100e6;
    let _machine = machine();
    let folder = folder();
    let small = |text: String| {
        let text = replaced(&text, r#""network.rtt" = ["20ms", "70ms"]"#, r#""network.rtt" = ["100ms"]"#);
        let text = replaced(&text, r#""network.loss" = ["0%", "1%"]"#, r#""network.loss" = ["0%"]"#);
        let text = replaced(&text, r#"["8Mbit/s", "24Mbit/s"]"#, r#"["24Mbit/s"]"#);
        without_exceptions(&text)
    };
    let options = ["--server", "origin", "--workload", "small", "--runs", "2"];
    let summary = run_changed("crossover", small, &options, &folder.path().join("out"));
    let load_ns = |variant| fastest(cell(&summary, &[variant]), "page_load_time");
    let (h1s, h2, h3) = (load_ns("h1s"), load_ns("h2"), load_ns("h3"));
    assert!(h3 > 3.0 * RTT_NS && h2 > 4.0 * RTT_NS, "faster than the round trips: {h3} {h2}");
    // A tenth of a round trip is for the 20 kB and the machine.
    assert!(((h2 - h3) / RTT_NS - 1.0).abs() < 0.15, "h3 saves one round trip of h2: {h2} {h3}");
    assert!(h1s > h2 + 0.85 * RTT_NS, "another connection for the second resource: {h1s} {h2}");
    for variant in ["h2", "h3"] {
        let found = &cell(&summary, &[variant])["metrics"]["goodput"];
        assert!(found.is_object(), "pages have the study's metric: {found:#}");
    }
}

/// h3 continues where it was, after a round trip in which the server validates the new address. h2 connects,
/// negotiates TLS and requests again, which takes three. The queue adds up to 0.4.
#[test]
fn after_a_handover_http3_needs_fewer_round_trips() {
    const RTT_NS: f64 = 50e6;
    let _machine = machine();
    let folder = folder();
    let small = |text: String| {
        let text = replaced(&text, r#"["at-once", "2s"]"#, r#"["at-once"]"#);
        // 1.9 s at 5 Mbit/s: the handover after 1.5 s is in the middle.
        let text = replaced(&text, "/bytes/2000000", "/bytes/1200000");
        text.split_once("[full]").unwrap().0.to_owned()
    };
    let options = ["--workload", "download", "--runs", "1", "--variant", "h2", "--variant", "h3"];
    let summary = run_changed("handover", small, &options, &folder.path().join("out"));
    let (h2, h3) = (cell(&summary, &["h2"]), cell(&summary, &["h3"]));
    for one in [h2, h3] {
        assert_eq!(check(one, "failed_requests")["result"], "pass", "{one:#}");
    }
    assert_eq!((median(h2, "reconnects"), median(h2, "requests_resent")), (1.0, 1.0), "{h2:#}");
    assert!(h3["metrics"].get("reconnects").is_none(), "it migrates: {h3:#}");
    let round_trips = |cell| median(cell, "recovery_time") / RTT_NS;
    let (h2, h3) = (round_trips(h2), round_trips(h3));
    assert!((1.9..2.8).contains(&h3), "h3: {h3} round trips, expected 2");
    assert!((3.0..4.5).contains(&h2), "h2: {h2} round trips, expected 3");
}
