//! The options of HTTP/2, HTTP/3 and QUIC of `h123 load`: what arrives at a server, and what is counted.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::generator::Serving;
use crate::real_server::RealServer;
use crate::tool::{h123, machine};

fn load(args: &[&str], code: i32) -> Value {
    let ended = h123([&["load", "--json", "-q"], args].concat()).expect(code);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn an_http2_server_is_told_windows_and_limits() {
    let _machine = machine();
    let server = RealServer::nghttpd(&[]);
    let (url, ca) = (server.url(0, "/"), server.file("ca.pem"));
    let common = [url.as_str(), "--cacert", &ca, "--variant", "h2", "-n", "1"];
    load(&common, 0);
    let said = server.log();
    for part in ["INITIAL_WINDOW_SIZE(0x04):6291456", "ENABLE_PUSH(0x02):0", "window_size_increment=15663105"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    let options = ["--stream-window", "128KiB", "--connection-window", "1MiB", "--max-frame", "32KiB"];
    load(&[&common[..], &options, &["--header-table", "1KiB", "--push"]].concat(), 0);
    let said = server.log().split_off(said.len());
    for part in [
        "INITIAL_WINDOW_SIZE(0x04):131072",
        "window_size_increment=983041",
        "MAX_FRAME_SIZE(0x05):32768",
        "HEADER_TABLE_SIZE(0x01):1024",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("ENABLE_PUSH(0x02):0"), "{said}");
}

#[test]
fn pushes_are_accepted_where_asked_and_counted() {
    let _machine = machine();
    let server = RealServer::nghttpd(&["--push=/=/pushed.css"]);
    let (url, ca) = (server.url(0, "/"), server.file("ca.pem"));
    let common = [url.as_str(), "--cacert", &ca, "--variant", "h2", "-n", "20", "-c", "2"];
    let none = load(&common, 0);
    assert_eq!(none["push"]["responses"], 0);
    let json = load(&[&common[..], &["--push"]].concat(), 0);
    let pushed = |key: &str| json["push"][key].as_u64().unwrap();
    // The last request's push may still be on its way when the test ends.
    assert!((16..=20).contains(&pushed("responses")), "{json:#}");
    assert!(pushed("body_bytes") >= 5000 * pushed("responses"), "{json:#}");
    assert_eq!(json["bytes"]["body"], 20 * 100, "what is pushed is none of the answers");
    let text = h123([&["load", "-q"], &common[..], &["--push"]].concat()).expect(0).stdout;
    assert!(text.contains("pushed       ") && text.contains(" of bodies"), "{text}");
}

/// Datagrams in between: sees their sizes and where they come from. Ends with the test.
struct Relay {
    address: SocketAddr,
    seen: Arc<Mutex<RelayLog>>,
}

#[derive(Default)]
struct RelayLog {
    clients: BTreeSet<SocketAddr>,
    largest_up: usize,
    largest_down: usize,
}

impl Relay {
    /// Sends on between the last sender and `server`; or drops what comes from any address but the first.
    fn start(server: SocketAddr, lets_move: bool) -> Relay {
        let (down, up) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        up.connect(server).unwrap();
        let (address, seen) = (down.local_addr().unwrap(), Arc::new(Mutex::new(RelayLog::default())));
        let last = Arc::new(Mutex::new(None));
        for socket in [&down, &up] {
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        let (to_up, to_down) = (up.try_clone().unwrap(), down.try_clone().unwrap());
        let (seen_up, seen_down, last_up) = (Arc::clone(&seen), Arc::clone(&seen), Arc::clone(&last));
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok((length, client)) = down.recv_from(&mut buffer) {
                let mut seen = seen_up.lock().unwrap();
                seen.clients.insert(client);
                if !lets_move && seen.clients.len() > 1 {
                    continue;
                }
                seen.largest_up = seen.largest_up.max(length);
                *last_up.lock().unwrap() = Some(client);
                let _ = to_up.send(&buffer[..length]);
            }
        });
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(length) = up.recv(&mut buffer) {
                let mut seen = seen_down.lock().unwrap();
                seen.largest_down = seen.largest_down.max(length);
                if let Some(client) = *last.lock().unwrap() {
                    let _ = to_down.send_to(&buffer[..length], client);
                }
            }
        });
        Relay { address, seen }
    }
}

/// Requests to the origin's HTTP/3 through a relay.
fn relayed(serving: &Serving, path: &str, args: &[&str]) -> (Value, Relay) {
    let relay = Relay::start(SocketAddr::from(([127, 0, 0, 1], serving.port + 4)), true);
    let (url, ca) = (format!("https://{}{path}", relay.address), serving.ca());
    let json = load(&[&[url.as_str(), "--variant", "h3", "--cacert", &ca], args].concat(), 0);
    (json, relay)
}

#[test]
fn quic_datagrams_are_as_large_as_asked() {
    let _machine = machine();
    let serving = Serving::start();
    let upload = "x".repeat(20_000);
    for (args, expected) in [
        (&[][..], 1452),
        (&["--quic-datagram", "1200B"], 1200),
        (&["--quic-datagram", "1350B", "--no-gso"], 1350),
    ] {
        let common = ["-n", "3", "--data", &upload];
        let (json, relay) = relayed(&serving, "/echo", &[&common[..], args].concat());
        assert_eq!(json["requests"]["completed"], 3);
        let seen = relay.seen.lock().unwrap();
        assert_eq!(seen.largest_up, expected, "{args:?}");
        assert!(seen.largest_down <= expected, "{args:?}: the server keeps to it: {}", seen.largest_down);
    }
}

#[test]
fn http3_takes_windows_tables_and_congestion_control() {
    let _machine = machine();
    let serving = Serving::start();
    let (url, ca) = (serving.url(4, "/bytes/300000"), serving.ca());
    for control in ["cubic", "reno", "bbr"] {
        let options = ["--congestion-control", control, "--stream-window", "64KiB", "--connection-window"];
        let tables = ["200KiB", "--qpack-table", "4KiB", "--qpack-blocked", "10", "--no-gso"];
        let common = [url.as_str(), "--variant", "h3", "--cacert", &ca, "-n", "8", "-m", "4"];
        let json = load(&[&common[..], &options, &tables].concat(), 0);
        assert_eq!(json["bytes"]["body"], 8 * 300_000, "{control}: more than any window");
    }
}

#[test]
fn quic_connections_move_in_the_middle_of_a_test() {
    let _machine = machine();
    let serving = Serving::start();
    let (url, ca) = (serving.url(4, "/bytes/1000"), serving.ca());
    let common = [url.as_str(), "--variant", "h3", "--cacert", &ca, "-c", "4", "-t", "2", "-m", "3"];
    let args = [&common[..], &["-d", "700ms", "--migrate-at", "300ms"]].concat();
    let json = load(&args, 0);
    let migrated =
        |json: &Value| ["migrated", "answered"].map(|key| json["migration"][key].as_u64().unwrap());
    assert_eq!(migrated(&json), [4, 4], "{json:#}");
    assert_eq!((&json["connections"], &json["requests"]["failed"]), (&4.into(), &0.into()), "none was lost");
    let text = h123([&["load", "-q"], &args[..]].concat()).expect(0).stdout;
    assert!(text.contains("migrated     4 connections to a new local address · 4 received"), "{text}");
    // One connection through a relay: it comes from one address, then from the other.
    let options = ["-d", "700ms", "--migrate-at", "300ms", "--migrate-to", "127.0.0.9"];
    let (json, relay) = relayed(&serving, "/bytes/10", &options);
    assert_eq!(migrated(&json), [1, 1], "{json:#}");
    let clients: Vec<IpAddr> = relay.seen.lock().unwrap().clients.iter().map(|client| client.ip()).collect();
    assert_eq!(clients, [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 9])]);
}

#[test]
fn failed_migrations_are_named() {
    let _machine = machine();
    let serving = Serving::start();
    let ca = serving.ca();
    // The handshake never completes: no server answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let args =
        [&url, "--variant", "h3", "-k", "-d", "400ms", "--migrate-at", "200ms", "--connect-timeout", "5s"];
    let ended = h123([&["load", "--json", "-q"], &args[..]].concat());
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["migration"]["migrated"], 0, "{json:#}");
    let failed_migrations = &json["migration"]["failed"][0];
    assert_eq!(
        (&failed_migrations["connections"], failed_migrations["reason"].as_str()),
        (&1.into(), Some("its handshake was not done, or it was over already"))
    );
    assert!(ended.stderr.contains("warning: no connection migrated"), "{}", ended.stderr);
    // A network that knows the old address alone.
    let relay = Relay::start(SocketAddr::from(([127, 0, 0, 1], serving.port + 4)), false);
    let url = format!("https://{}/bytes/10", relay.address);
    let args = [url.as_str(), "--variant", "h3", "--cacert", &ca, "-d", "600ms", "--migrate-at", "300ms"];
    let ended = h123([&["load", "--json", "-q"], &args[..]].concat());
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["migration"]["migrated"], &json["migration"]["answered"]), (&1.into(), &0.into()));
    assert!(ended.stderr.contains("1 of 1 migrated connection received nothing"), "{}", ended.stderr);
    let url = serving.url(4, "/bytes/10");
    for (to, expected) in [
        ("192.0.2.1", "cannot migrate to 192.0.2.1: it is not an address of this machine"),
        ("::1", "cannot migrate to ::1: it is not of the same family as 127.0.0.1"),
    ] {
        let args = ["load", &url, "--variant", "h3", "--cacert", &ca, "-d", "1s", "--migrate-at", "1ms"];
        let ended = h123(args.into_iter().chain(["--migrate-to", to])).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn early_data_over_quic_is_counted_and_sent_again_where_rejected() {
    let _machine = machine();
    let serving = Serving::start_with(&["--resume", "--early-data"]);
    let (url, ca) = (serving.url(4, "/bytes/100"), serving.ca());
    let each = ["--variant", "h3", "-n", "40", "--requests-per-connection", "2", "--resume", "--early-data"];
    let json = load(&[&[url.as_str(), "--cacert", &ca], &each[..]].concat(), 0);
    let count = |json: &Value, key: &str, kind: &str| json[key][kind].as_u64().unwrap();
    assert!(count(&json, "handshakes", "early") >= 15, "{json:#}");
    assert_eq!(count(&json, "early_data", "accepted"), count(&json, "handshakes", "early"));
    assert_eq!(json["phases"]["early_handshake_ns"]["count"], json["handshakes"]["early"]);
    let none = load(&[&[url.as_str(), "--cacert", &ca], &each[..6]].concat(), 0);
    assert_eq!(count(&none, "handshakes", "cold"), none["connections"].as_u64().unwrap());
    // Another origin does not know the tickets of the first; without verification both count as one server.
    let other = Serving::start_with(&["--resume"]);
    let urls = serving.folder.path().join("urls");
    std::fs::write(&urls, format!("{url}\n{}\n", other.url(4, "/bytes/100"))).unwrap();
    let turns = ["--urls", urls.to_str().unwrap(), "-k", "--rate", "100"];
    let json = load(&[&turns[..], &each[..]].concat(), 0);
    assert!(count(&json, "early_data", "rejected") > 0, "{json:#}");
    assert_eq!(json["requests"]["completed"], 40, "what was rejected was sent again");
}

#[test]
fn contradictions_are_one_line() {
    let (clear, sealed) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
    for (args, expected) in [
        (&[clear, "--push"][..], "--push requires --variant h2c or h2; this is h1"),
        (&[clear, "--stream-window", "1MiB"], "--stream-window requires --variant h2c, h2 or h3"),
        (&[clear, "--variant", "h2c", "--no-gso"], "--no-gso requires --variant h3; this is h2c"),
        (&[clear, "--variant", "h2c", "--connection-window", "1kB"], "use at least 65535B"),
        (&[sealed, "--variant", "h3", "--max-frame", "16KiB"], "--max-frame requires --variant h2c or h2"),
        (&[sealed, "--variant", "h2", "--max-frame", "1KiB"], "write a size from 16384B to 16777215B"),
        (&[sealed, "--variant", "h2", "--migrate-at", "1s"], "--migrate-at requires --variant h3"),
        (&[sealed, "--variant", "h2", "--follow-addresses"], "--follow-addresses requires --variant h3"),
        (&[sealed, "--variant", "h3", "--migrate-at", "9s", "-d", "5s"], "the test, which ends after 5 s"),
        (&[sealed, "--variant", "h3", "--migrate-to", "127.0.0.2"], "--migrate-to requires --migrate-at"),
        (&[sealed, "--variant", "h3", "--qpack-blocked", "3"], "--qpack-blocked requires --qpack-table"),
        (&[sealed, "--variant", "h3", "--quic-datagram", "900B"], "write a size from 1200B to 9000B"),
    ] {
        let ended = h123([&["load"], args].concat()).expect(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    }
}
