//! Timing scripts that a browser's session becomes.

use std::process::Command;

use serde_json::Value;

use crate::outside::site;
use crate::tool::{Ended, H123, folder, machine};

/// The header and the requests of a script.
fn read(text: &str) -> (Value, Vec<Value>) {
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn the_session_of_a_browser_becomes_a_script_of_its_version() {
    let _machine = machine();
    let (site, place) = (site(), folder());
    let (url, ca) = (format!("https://127.0.0.1:{}/", site.ports[0]), site.folder.path().join("ca.pem"));
    let record = |options: &[&str]| {
        let mut command = Command::new(H123);
        command.args(["record", &url, "--browser", "chromium"]).args(options).arg("--cacert").arg(&ca);
        Ended::of(command.current_dir(place.path()).output().unwrap())
    };
    // Scripts for HTTP/2 over cleartext are recorded over TLS.
    for (variant, over, words) in
        [("h1s", "h1s", " over h1s"), ("h2c", "h2", " over h2, because browsers have no h2c")]
    {
        let ended = record(&["--variant", variant]).expect(0);
        let (head, requests) = read(&ended.stdout);
        assert_eq!(head["variant"], over, "{head}");
        let recorded = head["recorded"].as_str().unwrap();
        assert!(recorded.starts_with("chromium 1") && recorded.ends_with(words), "{recorded}");
        assert_eq!((&requests[0]["url"], &requests[0]["status"]), (&"/".into(), &200.into()));
        // The document, what it and its style sheet name, and an image that is missing.
        assert_eq!(requests.len(), 5, "{}", ended.stdout);
        assert!(requests[1..].iter().all(|request| !request["after"].is_null()), "{}", ended.stdout);
    }
    let failed = record(&["--variant", "h3"]).expect(2);
    assert!(failed.stderr.contains("cannot be recorded"), "{}", failed.stderr);
    for (args, expected) in [
        (&["record", &url][..], "a URL requires --browser"),
        (&["record", "x.har", "--browser", "chromium"], "--browser requires a URL"),
        (&["record", &url, "--browser", "chromium", "--variant", "h1"], "--variant h1 requires http://"),
    ] {
        let ended = Ended::of(Command::new(H123).args(args).output().unwrap()).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
