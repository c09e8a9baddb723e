//! Captures of the link: tshark reads them, decrypts them with their keys, and shows why packets were lost;
//! and qlog.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::permissions::user_command;
use crate::tool::{Ended, H123, folder, h123, machine};

const NETWORK: &str = r#"
title = "One packet in twenty"
source = "a test"
rtt = "10ms"
rate = "20Mbit/s"
loss = "5%"
"#;

const STUDY: &str = r#"
question = "What was on the link?"
metric = "page_load_time"
baseline = { variant = "h2" }
margin = "3%"
runs = 1
seed = 3

[matrix]
variant = ["h2", "h3"]
server = ["origin"]
network = ["lossy"]
workload = ["large"]

[workload.large]
kind = "page"
page = "large"
"#;

/// The values of fields in the frames that pass a filter, one line per frame.
fn tshark(capture: &Path, keys: &Path, filter: &str, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", filter, "-T", "fields", "-E", "separator=|"]);
    command.arg("-o").arg(format!("tls.keylog_file:{}", keys.display()));
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let home = folder();
    let output = command.env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1e3
}

/// The records of the only file of qlog in a folder.
fn qlog(folder: &Path) -> Vec<Value> {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let name = files[0].file_name().unwrap().to_string_lossy();
    assert!(name.len() == 16 + "_client.sqlog".len() && name.ends_with("_client.sqlog"), "{name}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    // A JSON text sequence: RFC 7464.
    let records =
        text.lines().map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').unwrap()).unwrap());
    records.collect()
}

/// What qvis needs to find in a file of qlog; returns how often each event is there.
fn check_qlog(records: &[Value], since_unix_ms: f64) -> BTreeMap<String, usize> {
    let (header, events) = records.split_first().unwrap();
    assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&json!("0.3"), &json!("JSON-SEQ")));
    let trace = &header["trace"];
    assert_eq!(trace["vantage_point"]["type"], "client");
    assert_eq!(trace["common_fields"]["time_format"], "relative");
    let zero_ms = trace["common_fields"]["reference_time"].as_f64().unwrap();
    assert!(
        zero_ms > since_unix_ms - 1e3 && zero_ms < since_unix_ms + 3e5,
        "{zero_ms} after {since_unix_ms}"
    );
    let (mut last_ms, mut counts) = (0.0, BTreeMap::new());
    for event in events {
        let (time_ms, name) = (event["time"].as_f64().unwrap(), event["name"].as_str().unwrap());
        assert!(time_ms >= last_ms && event["data"].is_object(), "{event}");
        if name.starts_with("transport:packet_") {
            assert!(event["data"]["header"]["packet_type"].is_string(), "{event}");
            assert!(event["data"]["header"]["packet_number"].is_u64(), "{event}");
        }
        if let Some(rtt_ms) = event["data"]["min_rtt"].as_f64() {
            // Of 10 ms, or of the local network's 0.3 ms.
            assert!(rtt_ms > 0.3 && rtt_ms < 2e3, "{event}");
        }
        last_ms = time_ms;
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_study_stores_the_packets_of_each_run() {
    let _machine = machine();
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("networks")).unwrap();
    std::fs::write(folder.path().join("networks/lossy.toml"), NETWORK).unwrap();
    std::fs::write(folder.path().join("lossy.toml"), STUDY).unwrap();
    let began = unix_ms();
    let mut command = Command::new(H123);
    command.args(["run", "lossy.toml", "--out", "out", "--pcap", "-q"]).current_dir(folder.path());
    let ended = Ended::of(command.output().unwrap());
    assert!([0, 3].contains(&ended.code), "{}", ended.stderr);
    let mut protocols = Vec::new();
    for run in ["run-000000", "run-000001"] {
        let logs = folder.path().join("out/logs").join(run);
        let (capture, keys) = (logs.join("links.pcapng"), logs.join("keys.log"));
        let requests = tshark(&capture, &keys, "http2.headers.path", &["http2.headers.path"]);
        if requests.is_empty() {
            // This tshark reads HTTP/3's frames, and their fields only in later versions.
            assert!(
                !tshark(&capture, &keys, "http3", &["frame.number"]).is_empty(),
                "{run}: nothing decrypted"
            );
            protocols.push("h3");
            let events = check_qlog(&qlog(&logs.join("qlog")), began);
            // 1.6 MB is a thousand packets, of which one in twenty was lost; acknowledgements were too.
            assert!(
                events["transport:packet_received"] > 800 && events["transport:packet_sent"] > 50,
                "{events:?}"
            );
            assert!(events["recovery:metrics_updated"] > 10, "{events:?}");
        } else {
            assert!(requests.iter().any(|paths| paths.contains("/large/")), "{requests:?}");
            protocols.push("h2");
            assert!(!logs.join("qlog").exists(), "TCP has none");
        }
        let nothing = folder.path().join("nothing");
        std::fs::write(&nothing, "").unwrap();
        assert_eq!(tshark(&capture, &nothing, "http2 or http3", &["frame.number"]), [""; 0], "sealed");
        let lost = tshark(&capture, &keys, "frame.comment", &["frame.interface_name", "frame.comment"]);
        let told = "was lost: the network's configured loss";
        assert!(lost.iter().all(|line| line.contains(told)), "{lost:?}");
        // Whatever one node sent, less what was lost, reached the other.
        for (node, peer, way) in [("client", "server", "10.123.0.1"), ("server", "client", "10.123.0.2")] {
            let count = |interface: &str| {
                let filter = format!("frame.interface_name == {interface} and ip.src == {way}");
                tshark(&capture, &keys, &filter, &["frame.number"]).len()
            };
            let lost = lost.iter().filter(|line| line.starts_with(&format!("{node}|"))).count();
            // Packets in flight at the end of the run were neither lost nor received.
            let on_its_way = count(node) - count(peer) - lost;
            assert!(on_its_way < 20 && count(peer) > 50, "{node}: {} sent, {lost} lost", count(node));
        }
    }
    protocols.sort_unstable();
    assert_eq!(protocols, ["h2", "h3"]);
}

#[test]
fn a_capture_by_hand_has_the_secrets_in_the_same_folder() {
    let _machine = machine();
    for mut command in [Command::new(H123), user_command()] {
        let folder = folder();
        let capture = folder.path().join("page.pcapng");
        command.args(["lab", "lan", "--serve", "--pcap"]).arg(&capture).args(["--", "sh", "-c"]);
        command.arg(format!(
            "{H123} load https://server:8441/bytes/77 --variant h1s --cacert $H123_CA -n 1 -q; \
             {H123} load https://server:8443/bytes/78 --variant h3 --cacert $H123_CA -n 1 -q"
        ));
        let ended = Ended::of(command.env("TMPDIR", folder.path()).current_dir("/").output().unwrap());
        let ended = ended.expect(0);
        let keys = folder.path().join("page.pcapng.keys");
        let hint = format!("wireshark -o tls.keylog_file:{} -r {}", keys.display(), capture.display());
        assert!(ended.stderr.contains(&hint), "{}", ended.stderr);
        let paths =
            tshark(&capture, &keys, "http.request and frame.interface_name == client", &["http.request.uri"]);
        assert_eq!(paths, ["/bytes/77"]);
        let told = folder.path().join("page.pcapng.qlog");
        assert!(ended.stderr.contains(&format!("qlog, for qvis: {}", told.display())), "{}", ended.stderr);
        assert!(check_qlog(&qlog(&told), unix_ms() - 6e4)["transport:packet_sent"] > 2);
        assert!(!tshark(&capture, &keys, "http3", &["frame.number"]).is_empty());
    }
}

#[test]
fn a_topology_has_all_its_links_in_one_file() {
    let _machine = machine();
    let folder = folder();
    let capture = folder.path().join("proxied.pcapng");
    let file = capture.to_string_lossy();
    let ping = "ping -n -q -c 1 proxy";
    h123(
        [
            "lab",
            "proxied",
            "-q",
            "--pcap",
            &file,
            "--also",
            "proxy=ping -n -c 1 server; sleep 9",
            "--",
            "sh",
            "-c",
        ]
        .into_iter()
        .chain([format!("sleep 0.5; {ping}").as_str()]),
    )
    .expect(0);
    let none = folder.path().join("none");
    let mut seen = tshark(&capture, &none, "icmp.type == 8", &["frame.interface_name", "ip.dst"]);
    seen.sort_unstable();
    let proxy = seen[0].split_once('|').unwrap().1.to_owned();
    let server = seen[2].split_once('|').unwrap().1.to_owned();
    let expected = [
        format!("client-proxy:client|{proxy}"),
        format!("client-proxy:proxy|{proxy}"),
        format!("proxy-server:proxy|{server}"),
        format!("proxy-server:server|{server}"),
    ];
    assert_eq!(seen, expected);
    assert_ne!(proxy, server);
}

#[test]
fn a_capture_that_cannot_be_written_is_wrong_usage() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for (place, expected) in
        [(path(""), "is a folder; name a file"), (path("no/such.pcapng"), "does not exist; create it first")]
    {
        let ended = h123(["lab", "lan", "--pcap", &place, "--", "true"]).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let ended = h123(["lab", "direct", "--pcap", &path("a"), "--", "true"]).expect(2);
    assert!(ended.stderr.contains("--pcap requires an emulated link"), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
