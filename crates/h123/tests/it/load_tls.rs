//! The TLS options of `h123 load` and `h123 trace` against servers with strict settings.

use std::process::Command;

use serde_json::Value;

use crate::real_server::RealServer;
use crate::tool::{Ended, H123, h123, machine};

/// `h123 load URL --cacert … --json` with further options, its exit status and its output.
fn load(server: &RealServer, port: usize, args: &[&str], code: i32) -> Value {
    let (url, ca) = (server.url(port, "/"), server.file("ca.pem"));
    let ended = h123([&["load", &url, "--cacert", &ca, "--json", "-q"], args].concat()).expect(code);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Version, suite and group of the only kind of handshake.
fn agreed(json: &Value) -> [&str; 3] {
    let kinds = json["security"].as_array().unwrap();
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    ["tls_version", "cipher_suite", "key_exchange"].map(|key| kinds[0][key].as_str().unwrap())
}

fn refused(args: &[&str]) -> String {
    let ended = h123([&["load"], args].concat()).expect(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    ended.stderr
}

#[test]
fn versions_suites_and_groups_are_offered_as_asked() {
    let _machine = machine();
    let old =
        "ssl_protocols TLSv1.2; ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305;";
    let new = "ssl_protocols TLSv1.3; ssl_ecdh_curve secp384r1;";
    let both = "ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:prime256v1;";
    let server = RealServer::nginx(&[old, new, both]);
    // Without any option, every setting of a server works. HTTP/1.1 over TLS 1.2: the server sends second.
    let default = load(&server, 0, &["-n", "3"], 0);
    assert_eq!(agreed(&default), ["TLSv1_2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "x25519"]);
    let default = load(&server, 1, &["-n", "3", "--variant", "h2"], 0);
    assert_eq!(agreed(&default), ["TLSv1_3", "TLS_AES_128_GCM_SHA256", "secp384r1"]);
    for (args, expected) in [
        (&["--tls", "1.2"][..], ["TLSv1_2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "x25519"]),
        (&["--tls", "1.3", "--groups", "p-256"], ["TLSv1_3", "TLS_AES_128_GCM_SHA256", "secp256r1"]),
        (
            &["--ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"],
            ["TLSv1_2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "x25519"],
        ),
        (
            &["--ciphers", "TLS_CHACHA20_POLY1305_SHA256,TLS_AES_256_GCM_SHA384"],
            ["TLSv1_3", "TLS_CHACHA20_POLY1305_SHA256", "x25519"],
        ),
    ] {
        // nginx's default for suites of TLS 1.3 is OpenSSL's; it takes the client's order.
        let json = load(&server, 2, &[&["-n", "2", "--variant", "h2"], args].concat(), 0);
        assert_eq!(agreed(&json), expected, "{args:?}");
    }
    for (port, args) in [(0, ["--tls", "1.3"]), (1, ["--groups", "x25519"]), (1, ["--tls", "1.2"])] {
        let json = load(&server, port, &[&["-n", "1"], &args[..]].concat(), 3);
        assert_eq!(json["requests"]["failures"]["tls"], 1, "{args:?}: {json:#}");
    }
}

#[test]
fn a_server_with_p_256_alone_is_reached() {
    let _machine = machine();
    // Debian's nghttpd has no other group.
    let server = RealServer::nghttpd(&[]);
    let json = load(&server, 0, &["-n", "5", "--variant", "h2"], 0);
    assert_eq!(agreed(&json)[2], "secp256r1");
    let (url, ca) = (server.url(0, "/"), server.file("ca.pem"));
    let trace = h123(["trace", &url, "--cacert", &ca, "--variant", "h2", "--json"]).expect(0);
    assert!(trace.stdout.contains("secp256r1"), "{}", trace.stdout);
    let other = h123(["trace", &url, "--cacert", &ca, "--variant", "h2", "--groups", "x25519"]).expect(3);
    assert!(other.stdout.contains("TLS: "), "{}", other.stdout);
}

#[test]
fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let _machine = machine();
    let verify = |versions: &str| {
        format!("ssl_protocols {versions}; ssl_client_certificate ca.pem; ssl_verify_client on;")
    };
    let server = RealServer::nginx(&[&verify("TLSv1.2"), &verify("TLSv1.3")]);
    let (cert, key) = (server.file("client.pem"), server.file("client.key"));
    for port in [0, 1] {
        let json = load(&server, port, &["-n", "4", "-c", "2", "--cert", &cert, "--key", &key], 0);
        assert_eq!(json["requests"]["completed"], 4, "{json:#}");
        let json = load(&server, port, &["-n", "4"], 3);
        assert_eq!(json["statuses"]["400"], 4, "nginx says that a certificate is missing: {json:#}");
    }
    let both = server.file("both.pem");
    let read = |name: &str| std::fs::read_to_string(name).unwrap();
    std::fs::write(&both, read(&cert) + &read(&key)).unwrap();
    assert_eq!(load(&server, 1, &["-n", "1", "--cert", &both], 0)["requests"]["completed"], 1);
    let url = server.url(0, "/");
    let with = |cert: &str, key: &str| refused(&[&url, "-n", "1", "--cert", cert, "--key", key]);
    assert!(with("/no/such", &key).starts_with("h123: --cert /no/such: "));
    assert!(with(&cert, "/no/such").starts_with("h123: --key /no/such: "));
    assert!(with(&key, &key).contains("cannot read the client certificate"), "{}", with(&key, &key));
    assert!(with(&cert, &cert).contains("cannot read the private key"), "{}", with(&cert, &cert));
    let other = server.file("server.key");
    assert!(with(&cert, &other).contains("are not a pair"), "{}", with(&cert, &other));
    assert!(refused(&[&url, "--cert", &cert]).contains("cannot read the private key"));
}

#[test]
fn sessions_are_resumed_and_early_data_is_counted_apart() {
    let _machine = machine();
    let block = |early: &str| format!("ssl_protocols TLSv1.2 TLSv1.3; ssl_early_data {early};");
    let server = RealServer::nginx(&[&block("on"), &block("off")]);
    let each = ["-n", "30", "--requests-per-connection", "1"];
    let count = |json: &Value, kind: &str| json["handshakes"][kind].as_u64().unwrap();
    for variant in ["h1s", "h2"] {
        let run = |port: usize, more: &[&str]| {
            let json = load(&server, port, &[&each[..], &["--variant", variant], more].concat(), 0);
            assert_eq!(json["requests"]["completed"], 30, "{variant} {more:?}");
            let kinds = ["cold", "resumed", "early"].map(|kind| count(&json, kind));
            assert_eq!(kinds.iter().sum::<u64>(), json["connections"].as_u64().unwrap(), "{json:#}");
            let phases = ["handshake_ns", "resumed_handshake_ns", "early_handshake_ns"];
            assert_eq!(phases.map(|phase| json["phases"][phase]["count"].as_u64().unwrap()), kinds);
            (kinds, json)
        };
        let (cold, _) = run(0, &[]);
        assert_eq!(cold, [30, 0, 0], "{variant}: resumption is off by default");
        let (old, _) = run(0, &["--resume", "--tls", "1.2"]);
        assert_eq!(old, [1, 29, 0], "{variant}: a session of TLS 1.2 is used again and again");
        let (resumed, _) = run(1, &["--resume"]);
        assert!(resumed[1] >= 15 && resumed[2] == 0, "{variant}: {resumed:?}");
        let (early, json) = run(0, &["--resume", "--early-data"]);
        assert!(early[2] >= 15, "{variant}: {early:?}");
        assert_eq!(json["early_data"]["accepted"], early[2], "{json:#}");
        assert_eq!(json["early_data"]["requests"], early[2], "one on each connection: {json:#}");
        // A port that takes none, with the tickets of one that does: both have the same key and name.
        // Requests go to them in turn, each on a connection that uses the newest ticket.
        let urls = server.file("urls");
        std::fs::write(&urls, format!("{}\n{}\n", server.url(0, "/"), server.url(1, "/"))).unwrap();
        let ca = server.file("ca.pem");
        let args = ["load", "--urls", &urls, "--cacert", &ca, "--json", "-q", "--resume", "--0rtt"];
        let ended = h123([&args, &each[..], &["--variant", variant, "--rate", "100"]].concat()).expect(0);
        let json: Value = serde_json::from_str(&ended.stdout).unwrap();
        let fate = |fate: &str| json["early_data"][fate].as_u64().unwrap();
        assert!(fate("rejected") > 0, "{variant}: {json:#}");
        assert_eq!(fate("requests"), fate("accepted") + fate("rejected"), "{variant}: {json:#}");
        assert_eq!(json["requests"]["completed"], 30, "{variant}: what was rejected was sent again");
    }
    // Unsafe requests wait for the handshake.
    let post = ["-X", "POST", "-n", "10", "--requests-per-connection", "1", "--resume", "--early-data"];
    let json = load(&server, 0, &post, 3);
    assert_eq!(json["early_data"]["requests"], 0, "{json:#}");
}

#[test]
fn secrets_are_logged_to_the_file_of_the_environment() {
    let _machine = machine();
    let server = RealServer::nginx(&["ssl_protocols TLSv1.3;"]);
    let (url, ca, log) = (server.url(0, "/"), server.file("ca.pem"), server.file("secrets"));
    let run = |log: &str, command: &str| {
        let count = if command == "load" { &["-n", "4", "-c", "2", "-t", "2", "-q"][..] } else { &[] };
        let output = Command::new(H123)
            .args([command, &url, "--cacert", &ca])
            .args(count)
            .env("SSLKEYLOGFILE", log)
            .output()
            .unwrap();
        Ended::of(output)
    };
    let shown = run(&log, "load").expect(0).stdout;
    assert!(shown.contains(&format!("key log      TLS and QUIC secrets in {log}")), "{shown}");
    let lines = |label: &str| {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines()
            .filter(|line| {
                let parts: Vec<&str> = line.split(' ').collect();
                parts.len() == 3
                    && parts[0] == label
                    && parts[1].len() == 64
                    && parts[2].bytes().all(|byte| byte.is_ascii_hexdigit())
            })
            .count()
    };
    assert_eq!((lines("CLIENT_TRAFFIC_SECRET_0"), lines("SERVER_TRAFFIC_SECRET_0")), (2, 2));
    run(&log, "trace");
    assert!(lines("CLIENT_TRAFFIC_SECRET_0") > 2, "trace appends");
    let nowhere = run("/no/such/folder/secrets", "load").expect(2);
    assert!(nowhere.stderr.contains("opening the key log /no/such/folder/secrets"), "{}", nowhere.stderr);
    assert!(!h123(["load", &url, "--cacert", &ca, "-n", "1", "-q"]).expect(0).stdout.contains("key log"));
}

#[test]
fn contradictions_are_one_line() {
    for (args, expected) in [
        (&["http://a/", "--cert", "x.pem"][..], "--cert requires --variant h1s, h2 or h3; this is h1"),
        (&["http://a/", "--resume"], "--resume requires --variant h1s"),
        (
            &["http://a/", "--variant", "h2c", "--tls", "1.3"],
            "--tls requires --variant h1s, h2 or h3; this is h2c",
        ),
        (&["https://a/", "--early-data"], "--early-data requires --resume"),
        (&["https://a/", "--resume", "--early-data", "--tls", "1.2"], "--early-data requires --tls 1.3"),
        (&["https://a/", "--variant", "h3", "--tls", "1.2"], "h3 requires TLS 1.3"),
        (&["https://a/", "--tls", "1.1"], "unknown TLS version `1.1`; use 1.2 or 1.3"),
        (&["https://a/", "--ciphers", "RC4-MD5"], "`RC4-MD5` is not a cipher suite; the choices are"),
        (&["https://a/", "--groups", "x448"], "unknown group `x448`; use x25519"),
        (
            &["https://a/", "--tls", "1.3", "--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"],
            "--ciphers TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 requires --tls 1.2",
        ),
        (&["https://a/", "--key", "x.key"], "--key requires --cert"),
    ] {
        let located = [args, &["--resolve", "a:80:127.0.0.1", "--resolve", "a:443:127.0.0.1"]].concat();
        let said = refused(&located);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
