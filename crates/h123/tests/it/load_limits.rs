//! `h123 load` against servers that do not answer, and on a machine with too few files or ports.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::generator::Serving;
use crate::tool::{Ended, H123, folder, h123, machine};

/// The kernel accepts the connections; no process ever answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    (listener, authority)
}

fn reason<'j>(json: &'j Value, kind: &str) -> &'j str {
    let errors = json["errors"].as_array().unwrap();
    let error = errors.iter().find(|error| error["kind"] == kind);
    error.and_then(|error| error["first_reason"].as_str()).unwrap_or_else(|| panic!("no {kind} in {json:#}"))
}

fn failing(args: &[&str]) -> (Value, Ended) {
    let ended = h123([&["load"], args, &["--json"]].concat()).expect(3);
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

#[test]
fn requests_and_connections_have_a_limit_unless_it_is_removed() {
    let help = h123(["load", "--help"]).expect(0).stdout;
    let limit_of = |option: &str| {
        let text = help.split_once(&format!("{option} <TIME|none>")).unwrap().1;
        let (_, rest) = text.split_once("[default: ").unwrap();
        rest.split_once(']').unwrap().0.to_owned()
    };
    assert_eq!((limit_of("--connect-timeout"), limit_of("--timeout")), ("10s".into(), "60s".into()));
    let (listener, authority) = silent();
    let (json, _) = failing(&[&format!("http://{authority}/"), "-n", "2", "--timeout", "40ms"]);
    assert_eq!(json["requests"]["failures"]["timeout"], 2);
    assert_eq!(reason(&json, "timeout"), format!("waiting for {authority}: no response within 40 ms"));
    let args = [&format!("https://{authority}/"), "-n", "2", "--connect-timeout", "40ms"];
    assert_eq!(
        reason(&failing(&args).0, "timeout"),
        format!("connecting to {authority}: the time limit of 40 ms passed in the TLS handshake")
    );
    // Without limits only the test's own time ends it; what was in flight is counted, and nothing was
    // measured.
    let url = format!("http://{authority}/");
    let (json, ended) =
        failing(&[&url, "-d", "60ms", "-c", "3", "--timeout", "none", "--connect-timeout", "none"]);
    assert_eq!(
        (json["requests"]["failed"].as_u64(), json["requests"]["unfinished"].as_u64()),
        (Some(0), Some(3))
    );
    assert!(ended.stderr.contains("warning: nothing was measured"), "{}", ended.stderr);
    // The same with an open loop: two are in flight when its time is up, and the rest found no connection.
    let (json, _) = failing(&[&url, "--rate", "20", "-d", "200ms", "-c", "2", "--timeout", "none"]);
    let count = |key: &str| json["requests"][key].as_u64();
    assert_eq!((count("failed"), count("unfinished"), count("never_sent")), (Some(0), Some(2), Some(2)));
    drop(listener);
}

#[test]
fn failures_say_where_and_what_to_do() {
    let _machine = machine();
    let (listener, authority) = silent();
    drop(listener);
    let (json, _) = failing(&[&format!("http://{authority}/"), "-n", "1"]);
    assert!(json["errors"][0]["time_ns"]["min"].as_u64() > Some(0), "{json:#}");
    assert!(reason(&json, "refused").starts_with(&format!("connecting to {authority}: ")), "{json:#}");
    let serving = Serving::start();
    for (offset, variant) in [(1, "h1s"), (3, "h2"), (4, "h3")] {
        let url = serving.url(offset, "/bytes/1");
        let (json, _) = failing(&[&url, "-n", "1", "--variant", variant]);
        assert!(reason(&json, "tls").contains("UnknownIssuer"), "{variant}: {json:#}");
        let advice = json["errors"][0]["advice"].as_str().unwrap();
        assert!(advice.contains("--cacert FILE") && advice.contains("-k"), "{variant}: {advice}");
        assert_eq!(json["connection_errors"][0]["kind"], "tls", "{variant}: {json:#}");
        for command in ["load", "trace"] {
            let count: &[&str] = if command == "load" { &["-n", "1"] } else { &[] };
            let ended = h123([&[command, &url, "--variant", variant], count].concat()).expect(3);
            let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("with --cacert FILE, or accept any certificate with -k"), "{text}");
        }
    }
    let url = serving.url(1, "/").replace("https", "http");
    let (json, _) = failing(&[&url, "-n", "1", "--timeout", "2s"]);
    assert_eq!(json["requests"]["failed"], 1, "{json:#}");
}

#[test]
fn what_is_wrong_is_one_line_and_nothing_is_left_behind() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, rows) = (path("new.csv"), path("new.parquet"));
    std::fs::write(path("there.parquet"), "").unwrap();
    let url = "http://127.0.0.1:1/";
    for (args, expected) in [
        (&[url, "-d", "0s"][..], "write a time above 0"),
        (&[url, "--timeout", "0s"], "write a time above 0, or `none`"),
        (&[url, "--stages", "0s@5"], "`0s` is too short"),
        (&[url, "-c", "0"], "invalid value '0' for '--connections <CONNECTIONS>'"),
        (&[url, "--conections", "3"], "a similar argument exists: '--connections'"),
        (&[], "required arguments were not provided: <URL> (see `h123 load --help`)"),
        (&["http://nowhere.invalid/"], "looking up `nowhere.invalid`: "),
        (&["ftp://127.0.0.1/"], "the scheme is neither http nor https"),
        (&[url, "-6"], "`127.0.0.1` has no IPv6 address"),
        (&[url, "--source", "192.0.2.77"], "--source 192.0.2.77 is not an address of this machine"),
        (&[url, "--source", "::1"], "--source has no IPv4 address, which 127.0.0.1:1 requires"),
        (&[url, "--csv", "/no/such/folder/a.csv"], "--csv /no/such/folder/a.csv: "),
        (&[url, "--hgrm", "/proc/a.hgrm"], "--hgrm /proc/a.hgrm: "),
        (&[url, "--samples", "/no/such/folder/a.parquet"], "--samples /no/such/folder/a.parquet: "),
        (
            &[url, "--samples", &path("there.parquet")],
            "there.parquet: the file exists; choose another name or remove it",
        ),
        (&[url, "--csv", &csv, "--hgrm", "/proc/a.hgrm"], "--hgrm /proc/a.hgrm: "),
        (&[url, "--csv", &csv, "--samples", &rows, "--data", "@/no/such"], "cannot read the body /no/such"),
    ] {
        let ended = h123([&["load"], args].concat());
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["there.parquet"], "bad input changes nothing");
}

/// Runs the tool under a limit of open files.
fn limited(limit: &str, args: &[&str]) -> Ended {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    Ended::of(command.args(["-c", &script, "sh", H123, "load"]).args(args).output().unwrap())
}

#[test]
fn open_files_and_ports_are_counted_before_anything_is_sent() {
    let _machine = machine();
    let serving = Serving::start();
    let url = serving.url(0, "/bytes/1");
    let args = [url.as_str(), "-n", "200", "-c", "100", "--json"];
    let json: Value = serde_json::from_str(&limited("-Sn 64", &args).expect(0).stdout).unwrap();
    assert_eq!(json["requests"]["completed"], 200, "the soft limit is raised");
    let refused = limited("-n 128", &args).expect(2);
    assert_eq!(
        refused.stderr,
        "h123: the test needs 164 open files, but the limit is 128; raise it (`ulimit -n 164` as root, \
         LimitNOFILE= of a systemd unit, /etc/security/limits.conf), or use fewer --connections\n"
    );
    // A UDP port serves one server at a time: no range of ports is enough for these two.
    let folder = folder();
    let list = folder.path().join("list");
    std::fs::write(&list, "https://127.0.0.1:1/\nhttps://127.0.0.1:2/\n").unwrap();
    let ended =
        h123(["load", "--urls", list.to_str().unwrap(), "--variant", "h3", "-c", "60000", "-k"]).expect(2);
    assert!(ended.stderr.starts_with("h123: 120000 connections exceed the "), "{}", ended.stderr);
    assert!(ended.stderr.contains("--source 127.0.0.2,127.0.0.3"), "{}", ended.stderr);
}

#[test]
fn a_client_that_was_stopped_says_so() {
    let server = Serving::start();
    let client = Command::new(H123)
        .args(["load", &server.url(0, "/bytes/128"), "-c", "1", "-d", "1500ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let send = |signal| kill_process(Pid::from_child(&client), signal).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    send(Signal::STOP);
    std::thread::sleep(Duration::from_millis(300));
    send(Signal::CONT);
    let ended = client.wait_with_output().unwrap();
    let json: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("the client stood still"), "{json:#}");
    let duration_ns = json["duration_ns"].as_u64().unwrap();
    assert!(duration_ns < 1_350_000_000, "throughput is not computed over the gap: {duration_ns}");
}
