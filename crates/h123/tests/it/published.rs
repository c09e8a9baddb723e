//! The studies that repeat published ones: corrected, the round trips that the protocols need; as published,
//! what the checks say of their mistakes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::flaws::expect_flaws;
use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, repository, summary};

const RTT_NS: f64 = 60e6;
/// Attempts on a machine that other programs use: they lengthen runs and never shorten one.
const ATTEMPTS: usize = 3;

/// Runs a built-in study a few times over its network without jitter only.
fn measure(study: &str, out: &Path) -> Value {
    let is_jittery = |line: &&str| line.contains("name = \"jittery\"");
    let change = |text: String| {
        text.lines().filter(|line| !is_jittery(line)).map(|line| format!("{line}\n")).collect()
    };
    run_changed(study, change, &["--runs", "3"], out)
}

/// Runs a built-in study with another text.
pub(crate) fn run_changed(
    study: &str,
    change: impl Fn(String) -> String,
    options: &[&str],
    out: &Path,
) -> Value {
    let place = out.parent().unwrap();
    let text = std::fs::read_to_string(repository().join(format!("studies/{study}.toml"))).unwrap();
    let file = place.join(format!("{study}.toml"));
    std::fs::write(&file, change(text)).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", file.to_str().unwrap(), "--out"]).arg(out).args(options).current_dir(repository());
    Ended::of(command.output().unwrap()).expect_measured();
    summary(out)
}

/// Replaces a part of a study that it must have.
pub(crate) fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "the study has no {old}");
    text.replace(old, new)
}

/// Why the fastest run of a cell does not take this many round trips within 5 %.
fn complaint(summary: &Value, level: &str, metric: &str, round_trips: f64) -> Option<String> {
    let runs = cell(summary, &[level])["metrics"][metric]["per_run"].as_array().unwrap();
    let fastest = runs.iter().filter_map(|run| run["value"].as_f64()).reduce(f64::min).unwrap();
    let found = fastest / RTT_NS;
    // The margin is for the machine: nothing may be faster than the round trips that it needs.
    assert!(found > round_trips, "{level}: {found} round trips, fewer than {round_trips}");
    (found > 1.05 * round_trips).then(|| format!("{level}: {found} round trips, expected {round_trips}"))
}

fn expect_round_trips(study: &str, metric: &str, expected: &[(&str, f64)]) {
    let _machine = machine();
    let folder = folder();
    let mut complaints = Vec::new();
    for attempt in 0..ATTEMPTS {
        let summary = measure(study, &folder.path().join(attempt.to_string()));
        complaints = expected
            .iter()
            .filter_map(|(level, round_trips)| complaint(&summary, level, metric, *round_trips))
            .collect();
        if complaints.is_empty() {
            return;
        }
    }
    panic!("{complaints:?}");
}

#[test]
fn twenty_requests_take_two_to_five_round_trips() {
    let expected = [
        ("HTTP/2, 20 streams", 2.0),
        ("HTTP/1.1, 10 connections", 3.0),
        ("HTTP/1.1, 6 connections", 5.0),
        ("HTTP/2, two sessions", 4.0),
    ];
    expect_round_trips("aalto", "batch_time", &expected);
}

/// In addition to the 100 ms that the document takes.
#[test]
fn a_style_sheet_takes_a_round_trip_unless_it_is_pushed_or_hinted_at() {
    let taken = |round_trips: f64| round_trips + 100e6 / RTT_NS;
    let expected = [("asked", taken(3.0)), ("pushed", taken(2.0)), ("hinted", taken(2.0))];
    expect_round_trips("aalto-push", "page_load_time", &expected);
}

fn expect(cell: &Value, checks: &[(&str, &str, &str)]) {
    for (name, outcome, begin) in checks {
        let found = check(cell, name);
        let measured = found["measured"].as_str().unwrap();
        assert!(found["result"] == *outcome && measured.starts_with(begin), "{found:#}");
    }
}

/// A study without its exceptions, which name levels that a test leaves out.
pub(crate) fn without_exceptions(text: &str) -> String {
    let (before, after) = text.split_once("except = [").unwrap();
    format!("{before}{}", after.split_once("]\n").unwrap().1)
}

/// Fragment 3 of 5 does not exist, and 300 users are more than the 256 threads of Apache.
#[test]
fn the_flaws_of_the_hds_benchmark_are_found() {
    let _machine = machine();
    let folder = folder();
    let of_300_users = |text: String| {
        let text = replaced(&text, "clients = [20, 100, 500, 1000]", "clients = [300]");
        let text = replaced(&text, "\"workload.requests\" = [1, 10]", "\"workload.requests\" = [1]");
        // Published values are about other numbers of users.
        without_exceptions(text.split_once("[[published]]").unwrap().0)
    };
    let out = folder.path().join("out");
    let summary = run_changed("hds-as-published", of_300_users, &["--runs", "2"], &out);
    for client in ["h123", "siege"] {
        let counted = cell(&summary, &["module", client]);
        let share = median(counted, "availability");
        assert!((0.7..0.9).contains(&share), "{client}: four of five fragments exist, {share} succeeded");
        expect(
            counted,
            &[
                ("failed_requests", "invalid", ""),
                ("workloads_match", "invalid", "300 requests"),
                ("arms_match", "caveat", "different: server, workload; both speak HTTP/1.1"),
                ("single_requests", "caveat", "at most 1 request per connection"),
            ],
        );
        // How many of the 300 requests h123 sends after the first answer depends on the machine's speed.
        if client == "siege" {
            expect(
                counted,
                &[("cold_server", "caveat", "not judged: fewer than a quarter of the requests are known")],
            );
        }
        let extracted = cell(&summary, &["Apache", client]);
        assert_eq!(median(extracted, "availability"), 1.0, "{client}");
        expect(
            extracted,
            &[("failed_requests", "pass", "0 of 600"), ("server_limit", "caveat", "up to 300 connections")],
        );
    }
    // Only the rows of h123's client name URLs.
    let counted = cell(&summary, &["module", "h123"]);
    expect(counted, &[("missing_urls", "invalid", "1 URL never succeeded"), ("status", "invalid", "")]);
    expect_flaws("hds-as-published", &summary);
}

/// The fragments that the bootstrap lists, at random: no server fails, and all do the same work.
#[test]
fn every_server_has_the_fragments_that_exist() {
    let _machine = machine();
    let folder = folder();
    let short = |text: String| {
        let text =
            replaced(&text, "\"workload.connections\" = [20, 100, 1000]", "\"workload.connections\" = [20]");
        let text = replaced(&text, "warmup = \"2s\"", "warmup = \"200ms\"");
        let text = replaced(&text, "duration = \"2s\"", "duration = \"1s\"");
        // Published values are about other numbers of users.
        without_exceptions(text.split_once("[[published]]").unwrap().0)
    };
    let summary = run_changed("hds", short, &["--runs", "1"], &folder.path().join("out"));
    for workload in ["video", "sound"] {
        for server in ["static", "just-in-time", "index-read-again", "apache", "nginx"] {
            let cell = cell(&summary, &[server, workload]);
            assert_eq!(median(cell, "availability"), 1.0, "{server}");
            let passing = ["failed_requests", "missing_urls", "urls", "page_cache"];
            expect(cell, &passing.map(|name| (name, "pass", "")));
            if server != "static" {
                expect(cell, &[("contents_match", "pass", "equal"), ("workloads_match", "pass", "4 URLs")]);
            }
        }
    }
    let apache = cell(&summary, &["apache", "video"]);
    expect(apache, &[("server_limit", "pass", "up to 20 connections at once")]);
}

/// One visitor far away, on one Apache: both versions load the same page whole. HTTP/2 opens one connection
/// instead of six, compresses header fields (RFC 7541), and waits for fewer round trips than nine requests,
/// one after the other, on each of six connections.
#[test]
fn a_visitor_far_away_saves_connections_header_bytes_and_round_trips() {
    let _machine = machine();
    let folder = folder();
    let short =
        |text: String| without_exceptions(&replaced(&text, "clients = [1, 25, 750]", "clients = [1]"));
    let options = ["--network", "tokyo", "--workload", "large", "--runs", "1"];
    let summary = run_changed("uva", short, &options, &folder.path().join("out"));
    let (h1s, h2) = (cell(&summary, &["h1s"]), cell(&summary, &["h2"]));
    for one in [h1s, h2] {
        expect(one, &[("failed_requests", "pass", ""), ("version", "pass", "")]);
        assert_eq!(median(one, "requests_succeeded"), 55.0, "{one:#}");
    }
    expect(h2, &[("workloads_match", "pass", "")]);
    assert_eq!((median(h1s, "connections"), median(h2, "connections")), (6.0, 1.0));
    for header in ["request_header", "response_header"] {
        let bytes = |one, form| median(one, &format!("{header}_{form}_bytes"));
        let (raw, compressed) = (bytes(h2, "raw"), bytes(h2, "wire"));
        assert!(compressed < 0.5 * raw, "{header}: {compressed} B of {raw} B");
        assert!(compressed < 0.5 * bytes(h1s, "wire"), "{header}: {compressed} B of HTTP/2");
    }
    let (slower, faster) = (median(h1s, "page_load_time"), median(h2, "page_load_time"));
    assert!(faster < slower, "HTTP/2 takes {faster} ns, HTTP/1.1 {slower} ns");
}

/// Runs a short form of a built-in study: with these texts in place of others, for two runs of these arms.
pub(crate) fn measure_short(study: &str, changes: &[(&str, &str)], arms: &[&str], out: &Path) -> Value {
    let change =
        |text: String| changes.iter().fold(text, |text, (written, short)| replaced(&text, written, short));
    let arms = arms.iter().flat_map(|arm| ["--arm", arm]);
    let options: Vec<&str> = ["--runs", "2"].into_iter().chain(arms).collect();
    run_changed(study, change, &options, out)
}

/// Each mistake of the study of MPEG-DASH that does not depend on the machine's speed, by the check that
/// finds it.
#[test]
fn the_published_study_of_dash_says_what_is_wrong_with_it() {
    let _machine = machine();
    let folder = folder();
    let changes = [
        ("until = \"27s\"", "until = \"20s\""),
        ("speed = 2\n", "speed = 10\n"),
        ("evenly = \"5.76s\"", "evenly = \"0.3s\""),
        ("clients = 91", "clients = 5"),
    ];
    let arms = ["HTTPS/1.1", "h2", "h2-RF"];
    let summary = measure_short("bbc-dash-as-published", &changes, &arms, &folder.path().join("out"));
    let outcome =
        |arm: &str, name: &str| check(cell(&summary, &[arm]), name)["result"].as_str().unwrap().to_owned();
    for arm in arms {
        assert_eq!(outcome(arm, "shared_host"), "caveat", "{arm}");
        assert_eq!(outcome(arm, "runs"), "caveat", "{arm}");
        for name in ["status", "body_length", "failed_requests", "missed_schedule", "server_time_joined"] {
            assert_ne!(outcome(arm, name), "invalid", "{arm}: {name}");
        }
        assert!(!check(cell(&summary, &[arm]), "server_draining")["measured"].as_str().unwrap().is_empty());
    }
    assert_eq!(outcome("HTTPS/1.1", "script_variant"), "caveat");
    assert_eq!(outcome("h2", "script_variant"), "pass");
    assert_eq!(
        (outcome("h2", "records_match"), outcome("h2-RF", "records_match")),
        ("caveat".into(), "pass".into())
    );
    let differs =
        |arm: &str| check(cell(&summary, &[arm]), "arms_match")["measured"].as_str().unwrap().to_owned();
    assert_eq!((differs("h2"), differs("h2-RF")), ("different: server".into(), "different: hold".into()));
    let kinds: Vec<&str> =
        summary["claims"].as_array().unwrap().iter().map(|claim| claim["kind"].as_str().unwrap()).collect();
    assert!(["pooled", "script", "best", "value"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    expect_flaws("bbc-dash-as-published", &summary);
}

/// The corrected study has none of these mistakes, whatever the machine's speed.
#[test]
fn the_corrected_study_of_dash_has_none_of_the_mistakes() {
    let _machine = machine();
    let folder = folder();
    let changes = [
        ("speed = 2.5", "speed = 10"),
        ("evenly = \"3.072s\"", "evenly = \"0.3s\""),
        ("clients = 10", "clients = 2"),
    ];
    let arms = ["h1", "h1s", "h2c", "h2", "h3"];
    let summary = measure_short("bbc-dash", &changes, &arms, &folder.path().join("out"));
    for arm in arms {
        let cell = cell(&summary, &[arm]);
        let raised = |name: &str| {
            cell["validity"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["check"] == name && one["result"] != "pass")
        };
        for name in [
            "shared_host",
            "script_variant",
            "records_match",
            "arms_match",
            "workloads_match",
            "server_draining",
            "status",
            "body_length",
            "body_content",
            "contents_match",
            "failed_requests",
            "version",
            "server_time_joined",
        ] {
            assert!(!raised(name), "{arm}: {name}: {}", check(cell, name));
        }
        for metric in ["request_time@audio", "request_time@video", "server_time@video"] {
            assert!(median(cell, metric) > 0.0, "{arm}: {metric}");
        }
        // A log in milliseconds leaves nothing before a response that is sent at once.
        let (before, whole) =
            (median(cell, "server_time_before_response@video"), median(cell, "server_time@video"));
        assert!((0.0..=whole).contains(&before), "{arm}: {before} of {whole}");
    }
}

#[test]
fn the_studies_of_dash_have_their_published_size() {
    for study in ["bbc-dash", "bbc-dash-as-published"] {
        let text = h123(["plan", study, "--full"]).expect(0).stdout;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("91 clients"), "{words}");
        assert!(words.contains("requests of 34 minutes of the stream in 20"), "{words}");
    }
}

#[test]
fn the_mistakes_of_the_study_of_trento_are_found() {
    let _machine = machine();
    let folder = folder();
    let same = |text: String| text;
    let summary = run_changed("dncs-httpstat-as-published", same, &[], &folder.path().join("httpstat"));
    expect_flaws("dncs-httpstat-as-published", &summary);
    let asked = cell(&summary, &["HTTP/3"]);
    let arms = check(asked, "arms_match");
    let found = (arms["result"].as_str(), arms["measured"].as_str());
    assert_eq!(found, (Some("caveat"), Some("no other difference; the arm called HTTP/3 speaks HTTP/2")));
    assert_eq!(check(asked, "runs")["result"], "caveat", "{asked:#}");
    let verdicts = summary["comparisons"].as_array().unwrap().iter().map(|comparison| &comparison["verdict"]);
    assert!(verdicts.clone().count() > 0 && verdicts.into_iter().all(|verdict| verdict == "invalid"));
    let table = std::fs::read_to_string(folder.path().join("httpstat/tables/httpstat.csv")).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
    // Debian's nginx has no HTTP/3.
    let arms = ["--arm", "HTTP/2", "--arm", "HTTP/1.1"];
    let summary = run_changed("dncs-heavy-as-published", same, &arms, &folder.path().join("heavy"));
    expect_flaws("dncs-heavy-as-published", &summary);
    let workloads = check(cell(&summary, &["HTTP/2"]), "workloads_match");
    assert_eq!(workloads["result"], "invalid", "{workloads:#}");
    assert!(workloads["measured"].as_str().unwrap().starts_with("123 requests"), "{workloads:#}");
}

/// Ten packets do not hold the first TLS record of a long document: over TCP its headers arrive a round trip
/// later than over QUIC, which has no records.
#[test]
fn a_document_waits_for_its_first_tls_record() {
    let _machine = machine();
    let folder = folder();
    let others = ["name = \"near\"", "name = \"lossy\""];
    let is_other = |line: &&str| others.iter().any(|other| line.contains(other));
    let slow =
        |text: String| text.lines().filter(|line| !is_other(line)).map(|line| format!("{line}\n")).collect();
    let options = ["--workload", "document", "--runs", "1"];
    let mut complaints = Vec::new();
    for attempt in 0..ATTEMPTS {
        let out = folder.path().join(attempt.to_string());
        let summary = run_changed("dncs", slow, &options, &out);
        complaints.clear();
        for (variant, expected) in [("h1s", 2.0), ("h2", 2.0), ("h3", 1.0)] {
            let cell = cell(&summary, &[variant]);
            assert_eq!(check(cell, "version")["result"], "pass", "{cell:#}");
            let trips = median(cell, "document_wait_time") / 50e6;
            assert!(trips >= expected, "{variant}: {trips} round trips");
            if trips > expected + 0.5 {
                complaints.push(format!("{variant}: {trips} round trips, expected {expected}"));
            }
        }
        if complaints.is_empty() {
            return;
        }
    }
    panic!("{complaints:?}");
}
