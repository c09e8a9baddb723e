//! `serve`, `load` and `trace` by hand, on loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{H123, folder, h123, machine, repository};

/// The origin on free ports; ends when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
}

impl Serving {
    pub(crate) fn start() -> Serving {
        Serving::start_with(&[])
    }

    /// The same with further options.
    pub(crate) fn start_with(options: &[&str]) -> Serving {
        let folder = folder();
        let port = five_free_ports();
        let mut child = Command::new(H123)
            .args(["serve", "--port", &port.to_string(), "--ca"])
            .arg(folder.path().join("ca.pem"))
            .args(options)
            .current_dir(repository())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let shown: Vec<String> = lines.take(5).map(Result::unwrap).collect();
        assert!(shown[0].starts_with("h1 ") && shown[4].starts_with("h3 "), "{shown:?}");
        Serving { child, folder, port }
    }

    pub(crate) fn url(&self, offset: u16, path: &str) -> String {
        let scheme = if matches!(offset, 0 | 2) { "http" } else { "https" };
        format!("{scheme}://127.0.0.1:{}{path}", self.port + offset)
    }

    pub(crate) fn ca(&self) -> String {
        self.folder.path().join("ca.pem").to_str().unwrap().to_owned()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let _ = self.child.wait();
    }
}

/// The first of five ports in a row that are free for TCP and UDP; processes begin to look at different
/// places.
fn five_free_ports() -> u16 {
    let free = |port: u16| {
        std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
            && std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok()
    };
    let places = (21_000..30_000).step_by(5);
    let own = std::process::id() as usize % places.len();
    places.clone().cycle().skip(own).take(places.len()).find(|first| (*first..first + 5).all(free)).unwrap()
}

#[test]
fn load_measures_all_five_variants() {
    let _machine = machine();
    let serving = Serving::start();
    for (offset, variant) in ["h1", "h1s", "h2c", "h2", "h3"].into_iter().enumerate() {
        let url = serving.url(u16::try_from(offset).unwrap(), "/bytes/128");
        let ca = serving.ca();
        let args =
            ["load", &url, "--variant", variant, "-c", "4", "-m", "3", "-t", "2", "-n", "501", "--json"];
        let ended = h123(args.into_iter().chain(["--cacert", ca.as_str()])).expect(0);
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(json["requests"]["completed"], 501, "{variant}");
        assert_eq!(json["requests"]["failed"], 0);
        assert_eq!(json["bytes"]["body"], 501 * 128);
        assert_eq!(json["connections"], 4);
        assert!(json["latency_ns"]["p99"].as_u64() >= json["latency_ns"]["p50"].as_u64());
        // The kernel splits short times by ticks: either part alone may be 0.
        let cpu_ns = |part: &str| json["cpu"][part].as_u64().unwrap();
        assert!(cpu_ns("user_ns") + cpu_ns("system_ns") > 0);
        let text = h123(["load", &url, "--variant", variant, "-n", "10", "--cacert", &ca]).expect(0).stdout;
        assert!(text.contains("10 completed, 0 failed") && text.contains("p99"), "{text}");
    }
}

#[test]
fn load_for_a_duration_and_with_failures() {
    let _machine = machine();
    let serving = Serving::start();
    let timed =
        h123(["load", &serving.url(0, "/bytes/1"), "-d", "300ms", "--warmup", "100ms", "--json"]).expect(0);
    let json: Value = serde_json::from_str(&timed.stdout).unwrap();
    assert!(json["requests"]["completed"].as_u64().unwrap() > 0);
    let failing = h123(["load", &serving.url(0, "/no-such"), "-n", "5", "--json"]).expect(3);
    let json: Value = serde_json::from_str(&failing.stdout).unwrap();
    assert_eq!(json["requests"]["failed"], 5);
    assert_eq!(json["requests"]["failures"]["wrong_status"], 5);
    assert_eq!(json["latency_ns"]["count"], 0, "a failed answer is never a fast answer");
    let refused = h123(["load", "http://127.0.0.1:1/", "-n", "2", "--json"]).expect(3);
    let json: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(json["requests"]["failures"]["refused"], 2);
}

#[test]
fn trace_shows_the_phases_and_the_version_really_negotiated() {
    let _machine = machine();
    let serving = Serving::start();
    let ca = serving.ca();
    let ended =
        h123(["trace", &serving.url(3, "/small/"), "--variant", "h2", "--cacert", &ca, "--json"]).expect(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let trace = &json["traces"][0];
    assert_eq!(trace["negotiated"], "HTTP/2");
    assert_eq!(trace["status"], 200);
    let phases = ["dns_ns", "connect_ns", "handshake_ns", "wait_ns", "transfer_ns"];
    let sum: u64 = phases.iter().map(|phase| trace[phase].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), trace["total_ns"].as_u64(), "{trace}");
    // The h2 port supports only HTTP/2: h1s gets an error, and h3 no answer.
    let all = h123(["trace", &serving.url(3, "/small/"), "--timeout", "1s", "--cacert", &ca]).expect(0);
    assert!(all.stdout.contains("HTTP/2") && all.stdout.contains("TLS or QUIC"), "{}", all.stdout);
    assert!(all.stdout.lines().any(|line| line.starts_with("h3: ")), "{}", all.stdout);
    let cleartext = h123(["trace", &serving.url(0, "/small/"), "--variant", "h1"]).expect(0);
    assert!(cleartext.stdout.contains("HTTP/1.1"), "{}", cleartext.stdout);
    let distrusted = h123(["trace", &serving.url(1, "/small/"), "--variant", "h1s"]).expect(3);
    assert!(distrusted.stdout.to_lowercase().contains("certificate"), "{}", distrusted.stdout);
}
