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

/// A video that nobody starts requests nothing.
#[test]
fn what_is_watched_is_recorded_too() {
    let _machine = machine();
    let (site, place) = (site(), folder());
    let html = "<!doctype html><video preload=none src=/film.mp4></video>";
    std::fs::write(site.folder.path().join("www/index.html"), html).unwrap();
    std::fs::write(site.folder.path().join("www/film.mp4"), [7; 3_000]).unwrap();
    let url = format!("https://127.0.0.1:{}/", site.ports[0]);
    let record = |options: &[&str]| {
        let mut command = Command::new(H123);
        command.args(["record", &url, "--insecure", "--browser"]).args(options).current_dir(place.path());
        Ended::of(command.output().unwrap())
    };
    for (options, expected) in
        [(&["chromium"][..], &["/"][..]), (&["chromium", "--watch", "2s"], &["/", "/film.mp4"])]
    {
        let text = record(options).expect(0).stdout;
        let (_, requests) = read(&text);
        let urls: Vec<&str> = requests.iter().map(|request| request["url"].as_str().unwrap()).collect();
        assert_eq!(urls, expected, "{text}");
    }
    let refused = record(&["firefox", "--watch", "2s"]).expect(2);
    assert!(refused.stderr.contains("firefox cannot watch videos; use chromium"), "{}", refused.stderr);
}
