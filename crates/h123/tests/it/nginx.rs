//! The same study against a real nginx; what it does not have is recorded as unsupported.

use std::process::Command;

use serde_json::Value;

use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, summary};

#[test]
fn quick_runs_against_a_real_nginx() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let args = ["run", "quick", "--server", "nginx", "--runs", "2", "--network", "lan", "--out"];
    let ended = h123(args.into_iter().chain([out.to_str().unwrap()]));
    ended.expect_measured();
    let summary = summary(&out);
    for page in ["small", "large"] {
        for variant in ["h1", "h1s", "h2c", "h2"] {
            let cell = cell(&summary, &[variant, page]);
            assert_eq!(cell["runs_ok"], 2, "{cell:#}");
            let bytes = if page == "small" { 20_000.0 } else { 1_600_000.0 };
            assert_eq!(
                median(cell, "body_bytes_received"),
                bytes,
                "the pages are the origin's, byte for byte"
            );
            assert_eq!(crate::tool::check(cell, "version")["result"], "pass");
        }
        // Debian's stable nginx has no HTTP/3; a newer one has.
        let h3 = cell(&summary, &["h3", page]);
        if h3["status"] == "unsupported" {
            let reasons = h3["reasons"].to_string();
            assert!(reasons.contains("1.25.0") || reasons.contains("http_v3"), "{h3:#}");
        } else {
            assert_eq!(h3["runs_ok"], 2, "{h3:#}");
        }
    }
    let listed = h123(["servers"]).expect(0);
    assert!(listed.stdout.contains("nginx") && listed.stdout.contains("origin"), "{}", listed.stdout);
}

const TINY: &str = "title = 'Two little files'\n[[resource]]\npath = '/tiny/'\nkind = 'html'\nsizes = ['500B']\n\
    [[resource]]\npath = '/tiny/a.js'\nkind = 'js'\nnamed_by = '/tiny/'\nsizes = ['300B']\n";

const STALL: &str = "question = 'Is HTTP/2 a hundred times slower?'\nmetric = 'request_time'\nmargin = '3%'\nruns = 2\n\
    seed = 1\nbaseline = { variant = 'h1' }\n[matrix]\nvariant = ['h1', 'h2c']\nserver = ['nagle']\nnetwork = ['lan']\n\
    workload = ['single', 'tiny']\n[workload.tiny]\nkind = 'page'\npage = 'tiny'\n[workload.single]\nkind = 'closed'\n\
    paths = ['/tiny/a.js']\nconnections = 1\nstreams = 1\nrequests = 60\n[server.nagle]\nuse = 'nginx'\n\
    set = { sendfile = true }\n";

/// nginx sends the head and the body of a cleartext HTTP/2 response apart where sendfile is on, and Nagle's
/// algorithm holds the second until the first is acknowledged, which the client's kernel puts off for 40 ms.
#[test]
fn a_response_that_waits_for_a_delayed_acknowledgement_is_not_blamed_on_http2() {
    let _machine = machine();
    let place = folder();
    std::fs::create_dir_all(place.path().join("pages")).unwrap();
    std::fs::write(place.path().join("pages/tiny.toml"), TINY).unwrap();
    std::fs::write(place.path().join("stall.toml"), STALL).unwrap();
    let args = ["run", "stall.toml", "--out", "out"];
    let ended = Command::new(H123).args(args).current_dir(place.path()).output().unwrap();
    let ended = Ended::of(ended).expect(3);
    assert!(ended.stdout.contains("sendfile"), "{}", ended.stdout);
    let summary = summary(&place.path().join("out"));
    let stalled = cell(&summary, &["h2c", "single"]);
    assert!(median(stalled, "request_time") > 38e6, "{stalled:#}");
    assert_eq!(
        (&stalled["status"], &check(stalled, "delayed_ack")["result"]),
        (&"invalid".into(), &"invalid".into())
    );
    assert_eq!(check(cell(&summary, &["h1", "single"]), "delayed_ack")["result"], "pass");
    let is_single = |comparison: &&Value| comparison["context"].to_string().contains("single");
    let found: Vec<_> = summary["comparisons"].as_array().unwrap().iter().filter(is_single).collect();
    assert!(!found.is_empty());
    for comparison in found {
        assert_eq!(comparison["verdict"], "invalid", "{comparison:#}");
    }
}
