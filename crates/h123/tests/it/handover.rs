//! A handover in a study: the page over HTTP/3 continues, the page over TCP does not.

use tempfile::TempDir;

use crate::permissions::user_command;
use crate::tool::{Ended, H123, cell, folder, machine, summary};

const NETWORK: &str = r#"
title = "From one network to the next"
source = "a test"
rtt = "20ms"
rate = "4Mbit/s"

[[timeline]]
at = "1500ms"
handover = true
"#;

const STUDY: &str = r#"
question = "Who survives a handover?"
metric = "page_load_time"
baseline = { variant = "h3" }
margin = "3%"
runs = 1
seed = 1

[matrix]
variant = ["h3", "h2"]
server = ["origin"]
network = ["leaving"]
workload = ["large"]

[workload.large]
kind = "page"
page = "large"
"#;

#[test]
fn a_handover_breaks_tcp_and_not_our_quic() {
    let _machine = machine();
    let folder = folder();
    for (name, text) in [("networks/leaving.toml", NETWORK), ("handover.toml", STUDY)] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut command = std::process::Command::new(H123);
    command.args(["run", "handover.toml", "--out", "out"]).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap());
    // The cells of TCP failed, which is an answer.
    assert_eq!(ended.code, 3, "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    let summary = summary(&folder.path().join("out"));
    let (quic, tcp) = (cell(&summary, &["h3"]), cell(&summary, &["h2"]));
    assert_eq!(crate::tool::check(quic, "failed_requests")["result"], "pass", "{quic:#}");
    // 1.6 MB at 4 Mbit/s: the handover is during the transfer on any machine, even if the client starts late.
    let load_ns = crate::tool::median(quic, "page_load_time");
    assert!(load_ns > 3.1e9, "{load_ns}: over before the handover, or not far behind it");
    assert_eq!(crate::tool::check(tcp, "failed_requests")["result"], "invalid", "{tcp:#}");
    assert!(tcp["metrics"].get("page_load_time").is_none(), "no page over TCP was loaded: {tcp:#}");
}

/// A folder whose `networks/` has one of this name with a handover after 1.5 s, at 10 Mbit/s.
fn folder_with_network() -> TempDir {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("networks")).unwrap();
    let text = NETWORK.replace("4Mbit/s", "10Mbit/s");
    std::fs::write(folder.path().join("networks/leaving.toml"), text).unwrap();
    folder
}

#[test]
fn by_hand_the_address_changes_for_root_and_for_a_user() {
    let _machine = machine();
    let folder = folder_with_network();
    for mut command in [std::process::Command::new(H123), user_command()] {
        command.args(["lab", "leaving", "-q", "--serve", "--", "sh", "-c"]);
        command.arg(format!(
            "{H123} load https://server:8443/bytes/100000 --variant h3 --cacert $H123_CA --follow-addresses -d 4s \
             --json -q"
        ));
        command.env("TMPDIR", folder.path()).current_dir(folder.path());
        let ended = Ended::of(command.output().unwrap()).expect(0);
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(json["requests"]["failed"], 0, "{json:#}");
        assert_eq!(json["migration"]["migrated"], 1, "{json:#}");
        assert_eq!(json["migration"]["answered"], 1, "{json:#}");
    }
}

#[test]
fn by_hand_a_transfer_over_tcp_hangs() {
    let _machine = machine();
    let folder = folder_with_network();
    let mut command = std::process::Command::new(H123);
    // 4 s at 10 Mbit/s without the handover.
    command.args(["lab", "leaving", "-q", "--serve", "--", "sh", "-c"]);
    command.arg(
        "curl --silent --output body --max-time 10 --cacert $H123_CA https://server:8442/bytes/5000000; echo $?; \
         ip -4 -o address show dev eth0; curl --silent --cacert $H123_CA https://server:8442/bytes/3 | wc -c",
    );
    command.env("TMPDIR", folder.path()).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap()).expect(0);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "28", "curl's own time ran out: {lines:?}");
    assert!(lines[1].contains("10.123.0.3/32"), "{lines:?}");
    assert_eq!(lines[2], "3", "a new connection works: {lines:?}");
}

/// The server finds the client by its name before and after the handover, from a file and over DNS.
#[test]
fn by_hand_names_follow_the_address() {
    let _machine = machine();
    let folder = folder_with_network();
    let script = "getent ahostsv4 client | head -n 1; \
                  for try in $(seq 200); do getent ahostsv4 client | grep -q 10.123.0.1 || break; sleep 0.1; done; \
                  getent ahostsv4 client | head -n 1; getent ahostsv6 client-v6 | head -n 1; \
                  ping -n -q -c 1 -W 5 client | grep -o '1 received'";
    for dns in [&[][..], &["--dns", "1ms"]] {
        let mut command = std::process::Command::new(H123);
        command.args(["lab", "leaving", "-q", "--node", "server"]).args(dns).args(["--", "sh", "-c", script]);
        command.env("TMPDIR", folder.path()).current_dir(folder.path());
        let ended = Ended::of(command.output().unwrap()).expect(0);
        let lines: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split("  ").next()).collect();
        let lines: Vec<&str> = lines.into_iter().map(str::trim).collect();
        assert!(lines[0].starts_with("10.123.0.1 ") || lines[0] == "10.123.0.1", "{dns:?}: {lines:?}");
        assert!(lines[1].starts_with("10.123.0.3"), "{dns:?}: {lines:?}");
        assert!(lines[2].starts_with("fd12:3123:123::3"), "{dns:?}: {lines:?}");
        assert_eq!(lines[3], "1 received", "{dns:?}: {lines:?}");
    }
}

const RECONNECTING: &str = r#"
question = "What does a handover cost a client that reconnects?"
metric = "page_load_time"
baseline = { arm = "at once" }
margin = "3%"
runs = 1
seed = 1

[matrix]
arm = ["at once", "after silence", "migration"]
server = ["origin"]
network = ["leaving"]
workload = ["large"]

[arm."at once"]
variant = "h2"
hold = { reconnect = "at-once" }
differs = ["hold"]

[arm."after silence"]
variant = "h2"
hold = { reconnect = "1s" }

[arm.migration]
variant = "h3"
hold = { reconnect = "at-once" }

[workload.large]
kind = "page"
page = "large"
"#;

#[test]
fn a_client_reconnects_over_tcp_as_the_study_says() {
    let _machine = machine();
    let folder = folder();
    for (name, text) in [("networks/leaving.toml", NETWORK), ("reconnecting.toml", RECONNECTING)] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut command = std::process::Command::new(H123);
    command.args(["run", "reconnecting.toml", "--out", "out"]).current_dir(folder.path());
    Ended::of(command.output().unwrap()).expect_measured();
    let summary = summary(&folder.path().join("out"));
    let (at_once, silence) = (cell(&summary, &["at once"]), cell(&summary, &["after silence"]));
    for tcp in [at_once, silence] {
        assert_eq!(crate::tool::check(tcp, "failed_requests")["result"], "pass", "{tcp:#}");
        assert_eq!(crate::tool::median(tcp, "reconnects"), 1.0, "{tcp:#}");
        assert!(crate::tool::median(tcp, "requests_resent") >= 1.0, "{tcp:#}");
        assert_eq!(crate::tool::median(tcp, "requests"), 55.0, "every resource has one row");
    }
    let load_ns = |cell| crate::tool::median(cell, "page_load_time");
    assert!(load_ns(silence) > load_ns(at_once) + 0.5e9, "{} {}", load_ns(silence), load_ns(at_once));
    let quic = cell(&summary, &["migration"]);
    assert_eq!(crate::tool::check(quic, "failed_requests")["result"], "pass", "{quic:#}");
    assert!(quic["metrics"].get("reconnects").is_none(), "QUIC migrates: {quic:#}");
}

const VIDEO: &str = r#"
question = "Does a video survive a handover?"
metric = "played_share"
baseline = { arm = "at once" }
margin = "3%"
runs = 1
seed = 1

[matrix]
arm = ["at once", "after silence"]
server = ["origin"]
network = ["leaving"]
workload = ["loading", "waiting"]

[arm."at once"]
variant = "h2"
hold = { reconnect = "at-once" }
differs = ["hold"]

[arm."after silence"]
variant = "h1s"
hold = { reconnect = "2s" }

# Always a request in flight: a segment of 1 s takes 0.6 s.
[workload.loading]
kind = "player"
ladder = ["2.5Mbit/s"]
segment = "1s"
segments = 6
buffer = "10s"
rule = "fixed"
representation = "2.5Mbit/s"

# A request in flight for a tenth of the time.
[workload.waiting]
kind = "player"
ladder = ["0.4Mbit/s"]
segment = "1s"
segments = 4
buffer = "1s"
rule = "fixed"
representation = "0.4Mbit/s"
"#;

#[test]
fn a_video_goes_on_over_another_connection() {
    let _machine = machine();
    let folder = folder_with_network();
    for (name, text) in [("networks/leaving.toml", NETWORK), ("video.toml", VIDEO)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = std::process::Command::new(H123);
    command.args(["run", "video.toml", "--out", "out"]).current_dir(folder.path());
    Ended::of(command.output().unwrap()).expect_measured();
    let summary = summary(&folder.path().join("out"));
    for (workload, segments) in [("loading", 6.0), ("waiting", 4.0)] {
        let [at_once, silence] = ["at once", "after silence"].map(|arm| cell(&summary, &[arm, workload]));
        for tcp in [at_once, silence] {
            for name in ["failed_requests", "all_requested", "body_length"] {
                assert_eq!(crate::tool::check(tcp, name)["result"], "pass", "{tcp:#}");
            }
            assert_eq!(crate::tool::median(tcp, "requests_succeeded"), segments, "{tcp:#}");
            assert_eq!(crate::tool::median(tcp, "reconnects"), 1.0, "{tcp:#}");
            assert_eq!(crate::tool::median(tcp, "connections"), 2.0, "{tcp:#}");
        }
        assert_eq!(crate::tool::median(silence, "requests_resent"), 1.0, "{silence:#}");
        // A client that waits for 2 s has nothing left to play.
        let played = |cell| crate::tool::median(cell, "played_share");
        assert!(played(silence) < played(at_once) - 0.05, "{} {}", played(silence), played(at_once));
    }
    let [loading, waiting] = ["loading", "waiting"].map(|workload| cell(&summary, &["at once", workload]));
    assert_eq!(crate::tool::median(loading, "requests_resent"), 1.0, "{loading:#}");
    assert_eq!(crate::tool::median(waiting, "requests_resent"), 0.0, "it had nothing in flight: {waiting:#}");
}
