//! Servers that do not start, die, answer wrongly, reset or stall: the outcome is stored with its reason, and
//! the study continues. The servers are described in a `servers/` folder of the current directory, as a user
//! would.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{Ended, H123, cell, check, folder, machine, repository, summary};

const STUDY: &str = r#"
question = "Does the study go on?"
metric = "page_load_time"
baseline = { server = "origin" }
margin = "3%"
runs = 1
seed = 1

[matrix]
variant = ["h1"]
server = ["origin", "SERVER"]
network = ["lan"]
workload = ["small"]

[workload.small]
kind = "page"
page = "small"
"#;

const ADAPTER: &str = r#"
title = "a bad server"
program = ["python3"]

[version]
command = ["{{program}}", "--version"]
after = "Python "

[start]
command = ["{{program}}", "{{folder}}/server.py", "{{address}}", "{{ports.h1}}"]
ready_within = "2s"
stop_signal = "TERM"
stop_within = "2s"

[[file]]
name = "server.py"
template = "server.py"

[[variant]]
name = "h1"
port = 8080
"#;

/// Accepts connections, answers the request by which a server shows that it is ready, and leaves the others
/// to the lines that follow.
const SERVE: &str = "
import os, socket, struct, sys, time
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    peer.close()
while True:
    peer, _ = listener.accept()
    request = peer.recv(65536)
    if request.startswith(b'OPTIONS *'):
        peer.sendall(b'HTTP/1.1 204 No Content\\r\\n\\r\\n')
        peer.close()
    if not request or request.startswith(b'OPTIONS *'):
        continue
";

/// Runs a study with a good server and a bad one; returns the cell of the bad one and the output.
fn study_with(script: &str) -> (Value, Ended) {
    study_of("h1", script)
}

fn study_of(variant: &str, script: &str) -> (Value, Ended) {
    let (cell, ended) = study_of_adapter(variant, script, ADAPTER);
    (cell, ended.expect(3))
}

fn study_of_adapter(variant: &str, script: &str, adapter: &str) -> (Value, Ended) {
    let _machine = machine();
    let folder = folder();
    for name in ["networks", "pages"] {
        std::os::unix::fs::symlink(repository().join(name), folder.path().join(name)).unwrap();
    }
    let server = folder.path().join("servers/bad");
    std::fs::create_dir_all(&server).unwrap();
    let speaking = |text: &str| {
        text.replace("\"h1\"", &format!("\"{variant}\"")).replace("ports.h1", &format!("ports.{variant}"))
    };
    std::fs::write(server.join("server.toml"), speaking(adapter)).unwrap();
    std::fs::write(server.join("server.py"), script).unwrap();
    std::fs::write(folder.path().join("study.toml"), speaking(STUDY).replace("SERVER", "bad")).unwrap();
    let ended = run(folder.path());
    let summary = summary(&folder.path().join("out"));
    assert_eq!(cell(&summary, &["origin"])["runs_ok"], 1, "the good server's run: {summary:#}");
    let comparison = &summary["comparisons"][0];
    assert_eq!(comparison["verdict"], "invalid", "{comparison}");
    (cell(&summary, &["bad"]).clone(), ended)
}

fn run(folder: &Path) -> Ended {
    let output = Command::new(H123).args(["run", "study.toml", "--out", "out"]).current_dir(folder).output();
    Ended::of(output.unwrap())
}

fn reasons(cell: &Value) -> String {
    let reasons: Vec<&str> = cell["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    reasons.join("\n")
}

#[test]
fn a_server_that_ends_at_once_fails_with_its_last_words() {
    let (cell, _) = study_with("import sys; sys.exit('no more disk in the drive')");
    assert_eq!(cell["status"], "failed");
    assert!(reasons(&cell).contains("no more disk in the drive"), "{}", reasons(&cell));
}

#[test]
fn a_server_that_never_listens_fails() {
    let (cell, _) = study_with("import time; print('thinking', flush=True); time.sleep(60)");
    assert_eq!(cell["status"], "failed");
    assert!(reasons(&cell).contains("thinking"), "{}", reasons(&cell));
}

#[test]
fn a_server_that_dies_in_the_middle_fails() {
    let (cell, _) =
        study_with(&format!("{SERVE}\n    print('I die', file=sys.stderr, flush=True)\n    os._exit(7)\n"));
    assert_eq!(cell["status"], "failed");
    let reasons = reasons(&cell);
    assert!(reasons.contains("died") && reasons.contains("I die") && reasons.contains('7'), "{reasons}");
}

/// Killed by the kernel: the only reason is the signal's name.
#[test]
fn a_server_that_crashes_fails_with_its_signal() {
    let crash = "\n    import resource, signal\n    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n    \
                 os.kill(os.getpid(), signal.SIGSEGV)\n";
    let (cell, _) = study_with(&format!("{SERVE}{crash}"));
    assert_eq!(cell["status"], "failed");
    assert!(reasons(&cell).contains("ended early (signal: 11"), "{}", reasons(&cell));
}

const ANSWER: &str = "
    body = b'<html></html>'
    peer.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 13\\r\\n\\r\\n' + body)
";

/// It is killed after `stop_within` without remains, and the cell reports this.
#[test]
fn a_server_that_ignores_the_stop_signal_is_killed() {
    let deaf = format!("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SERVE}{ANSWER}");
    let (cell, _) = study_with(&deaf);
    let stop = check(&cell, "server_stop");
    assert_eq!(
        (stop["result"].as_str(), stop["measured"].as_str()),
        (Some("caveat"), Some("killed after 1 of 1 runs"))
    );
}

/// Whether the named check invalidated the cell with this text.
fn expect_invalidated(cell: &Value, name: &str, measured: &str) {
    assert_eq!(cell["status"], "invalid", "{cell:#}");
    let check = check(cell, name);
    assert_eq!(check["result"], "invalid", "{check:#}");
    assert!(check["measured"].as_str().unwrap().contains(measured), "{measured} in {check:#}");
}

#[test]
fn wrong_answers_are_counted_and_invalidate_the_cell() {
    let body = "\n    peer.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 3\\r\\n\\r\\nabc')\n";
    let (cell, _) = study_with(&format!("{SERVE}{body}"));
    expect_invalidated(&cell, "body_length", "1 of 1");
    expect_invalidated(&cell, "failed_requests", "wrong_length");
    // As long as the document, and something else.
    let other =
        "\n    peer.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 8000\\r\\n\\r\\n' + b'x' * 8000)\n";
    let (cell, _) = study_with(&format!("{SERVE}{other}"));
    expect_invalidated(&cell, "body_content", " of ");
    expect_invalidated(&cell, "failed_requests", "wrong_content");
    let status = "\n    peer.sendall(b'HTTP/1.1 503 No\\r\\ncontent-length: 0\\r\\n\\r\\n')\n";
    let (cell, _) = study_with(&format!("{SERVE}{status}"));
    expect_invalidated(&cell, "status", "503");
    let garbage = "\n    peer.sendall(b'\\x00\\x01\\x02 what is HTTP?\\r\\n\\r\\n')\n";
    let (cell, _) = study_with(&format!("{SERVE}{garbage}"));
    expect_invalidated(&cell, "failed_requests", "protocol");
}

#[test]
fn resets_are_counted() {
    let (cell, _) = study_with(&format!("{SERVE}\n    reset(peer)\n"));
    expect_invalidated(&cell, "failed_requests", "1 reset");
}

#[test]
fn a_server_that_stalls_before_its_answer_is_a_timeout() {
    let keep = "\n    peers = globals().setdefault('peers', []); peers.append(peer)\n";
    let (cell, _) = study_with(&format!("{SERVE}{keep}"));
    expect_invalidated(&cell, "failed_requests", "1 timeout");
}

/// Listens on one TCP and one UDP port and never answers.
const SILENCE: &str = "
import socket, sys, time
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind((sys.argv[1], int(sys.argv[2])))
time.sleep(60)
";

#[test]
fn a_server_that_never_answers_a_handshake_is_not_ready() {
    for variant in ["h1s", "h2", "h3"] {
        let (cell, _) = study_of(variant, SILENCE);
        assert_eq!(cell["status"], "failed");
        let expected = format!("was not ready within 2000 ms: it does not answer {variant} on port");
        assert!(reasons(&cell).contains(&expected), "{}", reasons(&cell));
    }
}

/// A port that is already in use is avoided, so only a port that is taken later fails the server.
#[test]
fn a_port_taken_at_the_last_moment_is_reported() {
    let (cell, _) = study_with(
        "import socket, sys\ntaken = socket.create_server((sys.argv[1], 0))\n\
         socket.create_server((sys.argv[1], taken.getsockname()[1]))\n",
    );
    assert_eq!(cell["status"], "failed");
    assert!(reasons(&cell).contains("Address already in use"), "{}", reasons(&cell));
}

#[test]
fn a_server_that_is_too_old_is_an_outcome() {
    let (cell, _) = study_of_adapter("h1", "", &ADAPTER.replace("[start]", "at_least = \"99.1\"\n[start]"));
    assert_eq!(cell["status"], "failed");
    let why = reasons(&cell);
    assert!(why.contains("bad 3.") && why.contains("install 99.1 or newer"), "{why}");
    let since = ADAPTER.replace("port = 8080", "port = 8080\nsince = \"99.1\"");
    let (cell, _) = study_of_adapter("h1", "", &since);
    assert_eq!(cell["status"], "unsupported");
    assert!(reasons(&cell).contains("does not support h1; install 99.1 or newer"), "{}", reasons(&cell));
}

#[test]
fn a_server_that_is_not_installed_is_an_outcome() {
    let _machine = machine();
    let folder = folder();
    for name in ["networks", "pages"] {
        std::os::unix::fs::symlink(repository().join(name), folder.path().join(name)).unwrap();
    }
    let server = folder.path().join("servers/bad");
    std::fs::create_dir_all(&server).unwrap();
    std::fs::write(server.join("server.toml"), ADAPTER.replace("\"python3\"", "\"no-such-program\""))
        .unwrap();
    std::fs::write(server.join("server.py"), "").unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY.replace("SERVER", "bad")).unwrap();
    let ended = run(folder.path()).expect(3);
    let summary = summary(&folder.path().join("out"));
    assert_eq!(cell(&summary, &["origin"])["runs_ok"], 1, "{}", ended.stderr);
    assert!(reasons(cell(&summary, &["bad"])).contains("no-such-program"), "{summary:#}");
}

/// Waits 300 ms before its first answer to GET, as a server does that compiles on demand.
const COLD: &str = "
import http.server, sys, time
cold = True
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        global cold
        if cold:
            cold = False
            time.sleep(0.3)
        self.wfile.write(b'HTTP/1.1 200 OK\\r\\ncontent-length: 100\\r\\n\\r\\n' + b'x' * 100)
    def do_OPTIONS(self):
        self.wfile.write(b'HTTP/1.1 204 No Content\\r\\n\\r\\n')
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
";

#[test]
fn a_cold_server_is_reported_unless_it_was_warmed() {
    let _machine = machine();
    let place = folder();
    std::os::unix::fs::symlink(repository().join("networks"), place.path().join("networks")).unwrap();
    let server = place.path().join("servers/cold");
    std::fs::create_dir_all(&server).unwrap();
    std::fs::write(server.join("server.toml"), ADAPTER).unwrap();
    std::fs::write(server.join("server.py"), COLD).unwrap();
    let (head, _) = STUDY.split_once("[workload.small]").unwrap();
    let study = format!("{head}[workload.small]\nkind = 'closed'\npaths = ['/bytes/100']\nrequests = 40\n");
    let study = study.replace("SERVER", "cold").replace("page_load_time", "request_time");
    std::fs::write(place.path().join("study.toml"), study).unwrap();
    for (out, warm, expected) in [("cold", &[][..], false), ("warm", &["--warm", "20 requests"], true)] {
        let args = ["run", "study.toml", "-q", "--out", out];
        let output = Command::new(H123).args(args).args(warm).current_dir(place.path()).output().unwrap();
        // The two servers have different contents, which another check reports.
        Ended::of(output).expect(3);
        let summary = summary(&place.path().join(out));
        let cell = cell(&summary, &["cold"]);
        let found = check(cell, "cold_server");
        assert_eq!(found["result"] == "pass", expected, "{out}: {found:#}");
        assert_eq!(cell["metrics"]["request_time"]["samples"], 40, "the warm-up is not stored: {cell:#}");
    }
}
