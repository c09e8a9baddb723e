//! Chromium as the client of a cell, and what the tests of all browsers share.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::outside::site;
use crate::permissions::as_user;
use crate::real_server::RealServer;
use crate::tool::{Ended, H123, cell, check, folder, machine, median, processes_with, repository, summary};

/// The round trip of the network, in ns.
const RTT_NS: f64 = 150e6;
const FAR: &str = "title = \"Far away\"\nsource = \"a test\"\nrtt = \"150ms\"\n";
const HEAD: &str = "question = \"Which?\"\nmetric = \"page_load_time\"\nmargin = \"5%\"\nruns = 1\n\
    [matrix]\nserver = [\"origin\"]\nnetwork = [\"far\"]\nworkload = [\"page\"]\n";
const PAGE: &str = "[workload.page]\nkind = \"page\"\npage = \"small\"\n";

pub(crate) fn write(folder: &Path, study: &str) {
    std::fs::create_dir_all(folder.join("networks")).unwrap();
    std::fs::write(folder.join("networks/far.toml"), FAR).unwrap();
    std::fs::write(folder.join("study.toml"), study).unwrap();
}

fn study(baseline: &str, matrix: &str) -> String {
    format!("baseline = {{ {baseline} }}\n{HEAD}{matrix}\n{PAGE}")
}

fn run(folder: &Path, study: &str, out: &str) -> Value {
    write(folder, study);
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", out]).current_dir(folder).env("TMPDIR", folder);
    Ended::of(command.output().unwrap()).expect_measured();
    summary(&folder.join(out))
}

/// Other work on the machine lengthens times: one undisturbed attempt of three shows what is meant.
pub(crate) fn attempt(mut check: impl FnMut(&str) -> Result<(), String>) {
    let found: Vec<String> = (0..3).map_while(|number| check(&format!("out{number}")).err()).collect();
    assert!(found.len() < 3, "{}", found.join("\n"));
}

/// A time in round trips. The browser's own work is less than half of one.
fn expect_round_trips(cell: &Value, metric: &str, expected: f64) -> Result<(), String> {
    let trips = median(cell, metric) / RTT_NS;
    assert!(trips >= expected, "{metric} is {trips} round trips: {cell:#}");
    let levels = &cell["levels"];
    (trips < expected + 0.5).then_some(()).ok_or(format!("{metric} is {trips} round trips of {levels}"))
}

/// The variants, with the round trips of their connect and of their handshake.
const HANDSHAKES: [(&str, Option<f64>, Option<f64>); 4] = [
    ("h1", Some(1.0), None),
    ("h1s", Some(1.0), Some(1.0)),
    ("h2", Some(1.0), Some(1.0)),
    ("h3", None, Some(1.0)),
];

#[test]
fn a_page_takes_the_round_trips_of_its_handshakes() {
    takes_the_round_trips("chromium");
}

/// A browser loads a page over each variant, and so does h123's loader.
pub(crate) fn takes_the_round_trips(browser: &str) {
    let _machine = machine();
    let folder = folder();
    let matrix =
        format!("variant = [\"h1\", \"h1s\", \"h2c\", \"h2\", \"h3\"]\nclient = [\"h123\", \"{browser}\"]");
    attempt(|out| {
        let summary = run(folder.path(), &study("client = \"h123\"", &matrix), out);
        let missing = cell(&summary, &["h2c", browser]);
        assert_eq!(missing["status"], "unsupported", "{missing:#}");
        let reason = format!("{browser} does not support h2c");
        assert!(missing["reasons"].to_string().contains(&reason), "{missing:#}");
        HANDSHAKES.iter().try_for_each(|(variant, connect, handshake)| {
            let cell = cell(&summary, &[variant, browser]);
            let has_shift = cell["metrics"].get("cumulative_layout_shift").is_some();
            assert_eq!(has_shift, browser == "chromium", "{cell:#}");
            check_page(cell, *connect, *handshake)
        })
    });
    assert_eq!(profiles(folder.path()), Vec::<String>::new(), "no profile is left");
}

/// The folders of browsers in a folder for temporary files.
fn profiles(place: &Path) -> Vec<String> {
    let names = std::fs::read_dir(place).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("h123-browser-") || name.contains("org.chromium")).collect()
}

fn check_page(cell: &Value, connect: Option<f64>, handshake: Option<f64>) -> Result<(), String> {
    assert_eq!(cell["runs_ok"], 1, "{cell:#}");
    for sound in ["version", "status", "body_length", "all_requested", "workloads_match", "console_errors"] {
        assert_eq!(check(cell, sound)["result"], "pass", "{sound} of {cell:#}");
    }
    assert_eq!(median(cell, "requests"), 3.0, "{cell:#}");
    // The document, then what it names.
    let before = connect.unwrap_or(0.0) + handshake.unwrap_or(0.0);
    assert!(median(cell, "page_load_time") >= (before + 2.0) * RTT_NS, "{cell:#}");
    for metric in ["first_contentful_paint", "largest_contentful_paint", "dom_content_loaded"] {
        assert!(median(cell, metric) >= (before + 1.0) * RTT_NS, "{metric} of {cell:#}");
    }
    for (metric, expected) in [("connect_time", connect), ("secure_handshake_time", handshake)] {
        match expected {
            Some(expected) => expect_round_trips(cell, metric, expected)?,
            None => assert!(cell["metrics"].get(metric).is_none(), "{metric} of {cell:#}"),
        }
    }
    expect_round_trips(cell, "document_wait_time", 1.0)
}

/// `h123 trace` and Chromium measure the same phases of the document: from the connect to the first byte they
/// differ by at most 5 ms.
#[test]
fn trace_and_chromium_agree_on_the_first_byte() {
    let _machine = machine();
    let folder = folder();
    let matrix = "variant = [\"h1s\", \"h2\", \"h3\"]\nclient = [\"chromium\"]";
    attempt(|out| {
        let summary = run(folder.path(), &study("variant = \"h2\"", matrix), out);
        let mut lab = Command::new(H123);
        lab.args(["lab", "far", "-q", "--serve", "--", "sh", "-c"]).current_dir(folder.path());
        lab.arg(format!(
            "for at in h1s:8441 h2:8442 h3:8443; do {H123} trace https://server:${{at#*:}}/small/ \
             --variant ${{at%:*}} --cacert $H123_CA --json; done"
        ));
        let traced = Ended::of(lab.output().unwrap()).expect(0).stdout;
        let traces: Vec<Value> =
            serde_json::Deserializer::from_str(&traced).into_iter().map(Result::unwrap).collect();
        assert_eq!(traces.len(), 3, "{traced}");
        ["h1s", "h2", "h3"].iter().zip(&traces).try_for_each(|(variant, trace)| {
            let trace = &trace["traces"][0];
            assert_eq!((&trace["variant"], &trace["status"]), (&json!(variant), &json!(200)), "{trace:#}");
            let phases = ["connect_ns", "handshake_ns", "wait_ns"].map(|phase| trace[phase].as_f64());
            let traced_ns: f64 = phases.into_iter().flatten().sum();
            let cell = cell(&summary, &[variant]);
            let phases = ["connect_time", "secure_handshake_time", "document_wait_time"];
            let present = phases.iter().filter(|phase| cell["metrics"].get(**phase).is_some());
            let browser_ns: f64 = present.map(|phase| median(cell, phase)).sum();
            assert!(traced_ns.min(browser_ns) >= 2.0 * RTT_NS, "{variant}: {traced_ns} and {browser_ns} ns");
            let apart_ns = (traced_ns - browser_ns).abs();
            (apart_ns <= 5e6).then_some(()).ok_or(format!("{variant}: {traced_ns} and {browser_ns} ns"))
        })
    });
}

#[test]
fn an_ordinary_user_has_chromiums_sandbox() {
    runs_as_a_user("chromium");
}

/// An ordinary user loads a page over two versions in a browser that has its sandbox.
pub(crate) fn runs_as_a_user(browser: &str) {
    let _machine = machine();
    let folder = folder();
    let matrix = format!("variant = [\"h3\", \"h2\"]\nclient = [\"{browser}\"]");
    write(folder.path(), &study("variant = \"h3\"", &matrix));
    as_user(&["run", "study.toml", "--out", "out"], folder.path()).expect_measured();
    let summary = summary(&folder.path().join("out"));
    for variant in ["h2", "h3"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!((&cell["runs_ok"], median(cell, "requests")), (&1.into(), 3.0), "{cell:#}");
        assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
    }
    let notes = std::fs::read_to_string(folder.path().join("out/environment.json")).unwrap();
    assert!(notes.contains(&format!("\"sandbox of {browser}\": \"yes\"")), "{notes}");
}

#[test]
fn chromium_dies_with_h123() {
    dies_with_h123("chromium", 3, |profile| {
        processes_with(&format!("--user-data-dir={}", profile.display()))
    });
}

/// Kills h123 while a browser of at least this many processes loads a page: its processes end, and the next
/// call of h123 removes its files. `processes` has those of profiles whose path begins in this way.
pub(crate) fn dies_with_h123(browser: &str, least: usize, processes: impl Fn(&Path) -> Vec<String>) {
    let _machine = machine();
    let folder = folder();
    let far = FAR.replace("150ms", "2s");
    let matrix = format!("variant = [\"h2\"]\nclient = [\"{browser}\"]");
    write(folder.path(), &study("variant = \"h2\"", &matrix));
    std::fs::write(folder.path().join("networks/far.toml"), far).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", "out", "--quiet"]).current_dir(folder.path());
    let mut tool = command.env("TMPDIR", folder.path()).spawn().unwrap();
    let out = folder.path().join("h123-browser-");
    let soon = |wanted: &dyn Fn(usize) -> bool| {
        (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            wanted(processes(&out).len())
        })
    };
    assert!(soon(&|running| running >= least), "{browser} runs: {:?}", processes(&out));
    tool.kill().unwrap();
    tool.wait().unwrap();
    assert!(soon(&|running| running == 0), "left behind: {:?}", processes(&out));
    assert_eq!(profiles(folder.path()).len(), 1, "nobody removed them yet");
    let mut command = Command::new(H123);
    command.args(["lab", "--clean"]).env("TMPDIR", folder.path()).env("H123_RUNTIME_DIR", folder.path());
    Ended::of(command.output().unwrap()).expect(0);
    assert_eq!(profiles(folder.path()), Vec::<String>::new());
}

#[test]
fn a_page_of_a_site_is_compared_in_chromium() {
    let _machine = machine();
    let (site, folder) = (site(), folder());
    write(folder.path(), "");
    let (url, ca) = (format!("https://127.0.0.1:{}/", site.ports[0]), site.folder.path().join("ca.pem"));
    attempt(|out| {
        let mut command = Command::new(H123);
        command.args(["page", &url, "--network", "far", "--runs", "1", "--out", out, "--cacert"]).arg(&ca);
        let ended = Ended::of(command.current_dir(folder.path()).output().unwrap());
        ended.expect_measured();
        let summary = summary(&folder.path().join(out));
        let missing = cell(&summary, &["h3"]);
        assert_eq!(missing["status"], "unsupported", "{missing:#}");
        ["h1s", "h2"].iter().try_for_each(|variant| {
            let cell = cell(&summary, &[variant]);
            assert_eq!(check(cell, "console_errors")["result"], "caveat", "the missing image: {cell:#}");
            check_site(cell)
        })
    });
    let report = std::fs::read_to_string(folder.path().join("out0/report.html")).unwrap();
    assert!(report.contains("First contentful paint"), "the report has the paints");
}

pub(crate) fn check_site(cell: &Value) -> Result<(), String> {
    // The document, what it and its style sheet name, and an image that is missing.
    assert_eq!((&cell["runs_ok"], median(cell, "requests")), (&1.into(), 5.0), "{cell:#}");
    assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
    assert!(median(cell, "page_load_time") > 4.0 * RTT_NS, "{cell:#}");
    expect_round_trips(cell, "connect_time", 1.0)?;
    expect_round_trips(cell, "secure_handshake_time", 1.0)
}

/// A study of visits whose arms have workloads and servers of their kinds.
const VISITS: &str = "baseline = { arm = \"first\" }\nquestion = \"Which?\"\nmetric = \"page_load_time\"\nmargin = \"5%\"\nruns = 1\n\
    [matrix]\narm = [\"first\", \"repeat\", \"cached\", \"upgrade\"]\nnetwork = [\"far\"]\nclient = [\"chromium\", \"h123\"]\n\
    [arm.first]\nvariant = \"h2\"\nserver = \"origin\"\nworkload = \"first\"\n\
    [arm.repeat]\nvariant = \"h2\"\nserver = \"resuming\"\nworkload = \"repeat\"\ndiffers = [\"hold\", \"workload\"]\n\
    [arm.cached]\nvariant = \"h2\"\nserver = \"keeping\"\nworkload = \"cached\"\ndiffers = [\"hold\", \"server\", \"workload\"]\n\
    [arm.upgrade]\nvariant = \"h3\"\nserver = \"resuming\"\nworkload = \"upgrade\"\n\
    differs = [\"hold\", \"server\", \"workload\"]\n\
    [server.resuming]\nuse = \"SERVER\"\nhold = { resumption = true }\n\
    [server.keeping]\nuse = \"SERVER\"\nset = { cacheable = true }\nhold = { resumption = true }\n\
    [workload.first]\nkind = \"page\"\npage = \"small\"\nfilmstrip = true\n\
    [workload.repeat]\nkind = \"page\"\npage = \"small\"\nvisit = \"repeat\"\n\
    [workload.cached]\nkind = \"page\"\npage = \"small\"\nvisit = \"cached\"\n\
    [workload.upgrade]\nkind = \"page\"\npage = \"small\"\nvisit = \"upgrade\"\n";

/// What a study of visits found, over one server.
fn check_visits(summary: &Value) -> Result<(), String> {
    let of = |arm: &str| cell(summary, &[arm, "chromium"]);
    for (arm, requests) in [("first", 3.0), ("repeat", 3.0), ("cached", 1.0), ("upgrade", 3.0)] {
        let cell = of(arm);
        if cell["status"] == "unsupported" {
            assert!(
                arm == "upgrade" && cell["reasons"].to_string().contains("does not support h3"),
                "{cell:#}"
            );
            continue;
        }
        assert_eq!(cell["runs_ok"], 1, "{cell:#}");
        assert_eq!(median(cell, "requests"), requests, "{cell:#}");
        assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
    }
    // Every visit opens its connections.
    for (arm, connect) in [("repeat", Some(1.0)), ("cached", Some(1.0)), ("upgrade", None)] {
        if of(arm)["status"] == "unsupported" {
            continue;
        }
        if let Some(trips) = connect {
            expect_round_trips(of(arm), "connect_time", trips)?;
        }
        expect_round_trips(of(arm), "secure_handshake_time", 1.0)?;
    }
    let (first, cached) = (median(of("first"), "page_load_time"), median(of("cached"), "page_load_time"));
    (cached < first - 0.5 * RTT_NS).then_some(()).ok_or(format!("cached {cached}, first {first}"))
}

#[test]
fn a_visitor_returns_with_sessions_and_cache_and_is_upgraded_to_http3() {
    let _machine = machine();
    for server in ["origin", "nginx"] {
        let folder = folder();
        attempt(|out| {
            let summary = run(folder.path(), &VISITS.replace("SERVER", server), out);
            for arm in ["cached", "upgrade"] {
                let own = cell(&summary, &[arm, "h123"]);
                assert_eq!(own["status"], "unsupported", "{own:#}");
                assert!(own["reasons"].to_string().contains("only browsers make visits"), "{own:#}");
            }
            check_visits(&summary)
        });
        let is_filmstrip = |run: &Path| run.join("client/filmstrip.html").exists();
        let runs = std::fs::read_dir(folder.path().join("out0/logs")).unwrap().flatten();
        let with_filmstrip: Vec<_> = runs.filter(|run| is_filmstrip(&run.path())).collect();
        assert_eq!(with_filmstrip.len(), 1, "of the first visit in Chromium alone");
        let pictures = std::fs::read_dir(with_filmstrip[0].path().join("client/filmstrip")).unwrap().count();
        assert!(pictures >= 1, "the page painted");
    }
}

#[test]
fn a_server_that_announces_nothing_fails_the_upgrade() {
    let _machine = machine();
    let folder = folder();
    let silent = study("variant = \"h3\"", "variant = [\"h3\"]\nclient = [\"chromium\"]");
    let silent = silent.replace("\"origin\"", "\"resuming\"");
    let server = "[server.resuming]\nuse = \"silent\"\nhold = { resumption = true }\n";
    let (stock, own) = (repository().join("servers/origin"), folder.path().join("servers/silent"));
    std::fs::create_dir_all(&own).unwrap();
    std::fs::copy(stock.join("server.toml"), own.join("server.toml")).unwrap();
    let config = std::fs::read_to_string(stock.join("config.json.jinja")).unwrap();
    let silenced = config.replace("has_browsers and", "false and");
    assert_ne!(silenced, config);
    std::fs::write(own.join("config.json.jinja"), silenced).unwrap();
    write(folder.path(), &format!("{silent}visit = \"upgrade\"\n{server}"));
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "--out", "out"]).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap());
    // The terminal wraps it.
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("no response announced HTTP/3"), "{}\n{}", ended.stdout, ended.stderr);
}

/// The site announces HTTP/3 on its own.
#[test]
fn a_site_upgrades_its_visitor_to_http3() {
    let _machine = machine();
    let folder = folder();
    write(folder.path(), "");
    let files: [(&str, &[u8]); 3] = [
        ("page.html", b"<!doctype html><p>Text</p><link rel=stylesheet href=/a.css><img src=/b.png>"),
        ("a.css", b"p { color: red }"),
        ("b.png", &[1; 20_000]),
    ];
    let put =
        |root: &Path| files.iter().for_each(|(name, bytes)| std::fs::write(root.join(name), bytes).unwrap());
    let site = RealServer::caddy();
    let block = "ssl_protocols TLSv1.3; default_type text/html; types { text/css css; image/png png; }";
    let silent = RealServer::nginx(&[block]);
    [&site, &silent].into_iter().for_each(|server| put(&server.folder.path().join("www")));
    let page = |server: &RealServer, out: &str| {
        let mut command = Command::new(H123);
        command.args(["page", &server.url(0, "/page.html"), "--insecure", "--visit", "upgrade"]);
        command.args(["--network", "far", "--runs", "1", "--out", out]).current_dir(folder.path());
        Ended::of(command.output().unwrap())
    };
    attempt(|out| {
        page(&site, out).expect_measured();
        let summary = summary(&folder.path().join(out));
        let cell = cell(&summary, &["h3"]);
        assert_eq!((&cell["runs_ok"], median(cell, "requests")), (&1.into(), 3.0), "{cell:#}");
        assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
        assert!(cell["metrics"].get("connect_time").is_none(), "QUIC has one handshake: {cell:#}");
        expect_round_trips(cell, "secure_handshake_time", 1.0)
    });
    let silent = page(&silent, "silent");
    let words = format!("{}{}", silent.stdout, silent.stderr);
    assert!(
        words.contains("announces no HTTP/3") || words.contains("no response announced HTTP/3"),
        "{words}"
    );
}

#[test]
fn a_slower_cpu_is_for_browsers_alone() {
    let _machine = machine();
    let folder = folder();
    let slow = study("client = \"chromium\"", "variant = [\"h2\"]\nclient = [\"chromium\", \"h123\"]");
    let summary = run(folder.path(), &format!("{slow}cpu_slowdown = 6\n"), "out");
    let own = cell(&summary, &["h123"]);
    assert!(own["reasons"].to_string().contains("its CPU cannot be slowed down"), "{own:#}");
    assert_eq!(cell(&summary, &["chromium"])["runs_ok"], 1);
}
