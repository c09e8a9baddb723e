//! Resumed sessions and early data over TCP and QUIC, and the facts that the handshake tells of them.

use std::collections::HashSet;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use engine::quic::QuicConfig;
use engine::tls::{TlsConfigError, tls_config, with_options};
use engine::{
    Client, ClientConfig, ClientConfigError, Connection, EarlyData, Event, Handshake, Input, NotNow, Options,
    Request,
};
use model::assignment::Trust;
use model::pins::TlsVersion;
use model::{Pins, Variant};
use path::sim::Endpoint;
use rustls::ServerConnection;

use crate::authority::{Authority, NAME};
use crate::quic_peer::{
    CLIENT, LoggedEvent, MS, Net, Reply, Run, Script, base, get, join_configured, response,
    run_until_finished,
};
use crate::tls::{Server, serve};

fn resuming() -> Pins {
    Pins { resumption: true, ..Pins::default() }
}

fn early() -> Options {
    Options { early_data: true, ..Options::default() }
}

fn config(variant: Variant, pins: &Pins, options: &Options, authority: &Authority) -> ClientConfig {
    let trust = Trust::Authority(authority.pem());
    ClientConfig::new(variant, NAME, pins, &trust, &[]).unwrap().with_options(options).unwrap()
}

fn server(config: &rustls::ServerConfig) -> Server {
    let tls = ServerConnection::new(Arc::new(config.clone())).unwrap();
    Server { tls, plaintext: Vec::new(), early: Vec::new() }
}

fn server_config(authority: &Authority, early_bytes: u32) -> rustls::ServerConfig {
    let mut config = authority.server_config(&[b"h2", b"http/1.1"]);
    config.max_early_data_size = early_bytes;
    config.send_half_rtt_data = true;
    config
}

/// What one connection brought.
#[derive(Debug)]
struct Story {
    handshake: Handshake,
    /// Requests that were taken before the first answer.
    early: usize,
    ended: Vec<u64>,
    server: Server,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "early {:?}, later {:?}", self.early.escape_ascii(), self.plaintext.escape_ascii())
    }
}

/// One connection with HTTP/1.1 requests, one after the other; the server answers each.
fn http1(config: &ClientConfig, server_config: &rustls::ServerConfig, requests: &[Request]) -> Story {
    let mut client = Client::new(config, SocketAddr::from(([127, 0, 0, 1], 443)), base(), 1).unwrap();
    let mut server = server(server_config);
    let (mut ready, mut ended, mut sent, mut answered, mut early) = (None, Vec::new(), 0, 0, 0);
    client.handle_connected(0, &mut |_| panic!("too early"));
    for round in 0..40 {
        while client.available_requests() > 0 && sent < requests.len() {
            client.send_request(0, sent as u64, &requests[sent]).unwrap();
            sent += 1;
            early += usize::from(round == 0);
        }
        let mut out = Vec::new();
        while client.poll_transmit(0, &mut out).is_some() {}
        let mut answer = serve(&mut server, &out);
        let heard = [&server.early[..], &server.plaintext].concat();
        let asked = heard.windows(4).filter(|window| window == b"\r\n\r\n").count();
        while answered < asked.min(requests.len()) {
            server.tls.writer().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            answered += 1;
        }
        answer.extend(serve(&mut server, &[]));
        client.handle_input(0, Input::Stream(&mut answer), &mut |event| match event {
            Event::Ready(handshake) => ready = Some(handshake),
            Event::End { request } => ended.push(request),
            Event::Failed { .. } | Event::Closed(_) => panic!("{event:?}"),
            _ => {}
        });
    }
    Story { handshake: ready.unwrap(), early, ended, server }
}

fn facts(story: &Story) -> (bool, EarlyData) {
    (story.handshake.resumed, story.handshake.early_data)
}

#[test]
fn sessions_are_resumed_where_the_pins_say_so_and_never_else() {
    for tls_version in [TlsVersion::V12, TlsVersion::V13] {
        let authority = Authority::new();
        let servers = server_config(&authority, 0);
        for resumption in [false, true] {
            let pins = Pins { tls_version, resumption, ..Pins::default() };
            let config = config(Variant::H1s, &pins, &Options::default(), &authority);
            let first = http1(&config, &servers, &[get("/1")]);
            let second = http1(&config.clone(), &servers, &[get("/2")]);
            assert_eq!(facts(&first), (false, EarlyData::NotTried), "{tls_version:?}");
            assert_eq!(facts(&second), (resumption, EarlyData::NotTried), "{tls_version:?}");
            assert_eq!((first.ended, second.ended), (vec![0], vec![0]));
        }
    }
}

#[test]
fn an_early_request_rides_with_the_client_hello() {
    let authority = Authority::new();
    let servers = server_config(&authority, 16_384);
    let config = config(Variant::H1s, &resuming(), &early(), &authority);
    let cold = http1(&config, &servers, &[get("/cold")]);
    assert_eq!((facts(&cold), cold.early), ((false, EarlyData::NotTried), 0));
    let warm = http1(&config, &servers, &[get("/warm"), get("/then")]);
    assert_eq!((facts(&warm), warm.early), ((true, EarlyData::Accepted), 1));
    assert!(warm.server.early.starts_with(b"GET /warm "), "{warm:?}");
    assert!(warm.server.plaintext.starts_with(b"GET /"), "the second came later: {warm:?}");
    assert_eq!(warm.ended, [0, 1]);
}

#[test]
fn a_rejected_early_request_is_sent_again_once() {
    let authority = Authority::new();
    let generous = server_config(&authority, 16_384);
    // The same sessions, and a server that has stopped to take early data.
    let mut stingy = generous.clone();
    stingy.max_early_data_size = 0;
    // A server that has forgotten its sessions.
    let forgetful = server_config(&authority, 16_384);
    for (second, resumed) in [(&stingy, true), (&forgetful, false)] {
        let config = config(Variant::H1s, &resuming(), &early(), &authority);
        http1(&config, &generous, &[get("/cold")]);
        let story = http1(&config, second, &[get("/warm"), get("/then")]);
        assert_eq!((facts(&story), story.early), ((resumed, EarlyData::Rejected), 1), "{story:?}");
        assert!(story.server.early.is_empty());
        let heard = String::from_utf8(story.server.plaintext).unwrap();
        assert_eq!((heard.matches("GET /").count(), heard.find("GET /warm")), (2, Some(0)), "{heard}");
        assert_eq!(story.ended, [0, 1]);
    }
}

#[test]
fn what_may_not_be_repeated_waits_for_the_handshake() {
    let authority = Authority::new();
    let servers = server_config(&authority, 16_384);
    let config = config(Variant::H1s, &resuming(), &early(), &authority);
    http1(&config, &servers, &[get("/cold")]);
    let post = Request { method: "POST".into(), body: bytes::Bytes::from_static(b"x"), ..get("/form") };
    let story = http1(&config, &servers, &[post]);
    assert_eq!((facts(&story), story.early), ((true, EarlyData::Accepted), 1));
    assert!(story.server.early.is_empty() && story.server.plaintext.starts_with(b"POST /form"), "{story:?}");
    assert_eq!(story.ended, [0]);
}

#[test]
fn what_the_ticket_does_not_allow_follows_the_handshake() {
    let authority = Authority::new();
    let servers = server_config(&authority, 50);
    let config = config(Variant::H1s, &resuming(), &early(), &authority);
    http1(&config, &servers, &[get("/cold")]);
    let path = format!("/{}", "long".repeat(50));
    let story = http1(&config, &servers, &[get(&path)]);
    assert_eq!(facts(&story), (true, EarlyData::Accepted));
    assert_eq!(story.server.early.len(), 50);
    let heard = [&story.server.early[..], &story.server.plaintext].concat();
    assert!(heard.starts_with(format!("GET {path} HTTP/1.1\r\n").as_bytes()), "{story:?}");
    assert_eq!(story.ended, [0]);
}

#[test]
fn early_data_over_http2_carries_preface_and_requests() {
    let authority = Authority::new();
    let servers = server_config(&authority, 16_384);
    let config = config(Variant::H2, &resuming(), &early(), &authority);
    for (is_warm, expected) in [(false, EarlyData::NotTried), (true, EarlyData::Accepted)] {
        let mut client = Client::new(&config, SocketAddr::from(([127, 0, 0, 1], 443)), base(), 1).unwrap();
        let mut server = server(&servers);
        client.handle_connected(0, &mut |_| panic!("too early"));
        assert_eq!(client.available_requests(), if is_warm { 100 } else { 0 });
        for id in 0..3 {
            assert_eq!(client.send_request(0, id, &get("/a")).is_ok(), is_warm);
        }
        let mut ready = None;
        for _ in 0..4 {
            let mut out = Vec::new();
            while client.poll_transmit(0, &mut out).is_some() {}
            let mut answer = serve(&mut server, &out);
            client.handle_input(0, Input::Stream(&mut answer), &mut |event| {
                if let Event::Ready(handshake) = event {
                    ready = Some(handshake.early_data);
                }
            });
        }
        assert_eq!(ready, Some(expected));
        assert_eq!(server.early.starts_with(b"PRI * HTTP/2.0\r\n"), is_warm);
        assert_eq!(server.plaintext.starts_with(b"PRI * HTTP/2.0\r\n"), !is_warm);
    }
}

#[test]
fn early_data_needs_resumption_and_tls_1_3() {
    let authority = Authority::new();
    let trust = Trust::Authority(authority.pem());
    let old = Pins { tls_version: TlsVersion::V12, ..resuming() };
    for pins in [Pins::default(), old] {
        let config = ClientConfig::new(Variant::H2, NAME, &pins, &trust, &[]).unwrap();
        let error = config.with_options(&early()).err();
        assert!(matches!(error, Some(ClientConfigError::Tls(TlsConfigError::EarlyData))), "{error:?}");
    }
}

#[test]
fn tickets_are_kept_up_to_the_limit() {
    use rustls::client::ClientSessionStore;
    let authority = Authority::new();
    let servers = server_config(&authority, 0);
    let options = Options { session_limit: 1, ..Options::default() };
    let config = config(Variant::H1s, &resuming(), &options, &authority);
    // The server sends two tickets, one is kept; it is used once and replaced.
    assert!(!http1(&config, &servers, &[get("/1")]).handshake.resumed);
    assert!(http1(&config, &servers, &[get("/2")]).handshake.resumed);
    let none = Options { session_limit: 0, ..Options::default() };
    let config = self::config(Variant::H1s, &resuming(), &none, &authority);
    assert!(!http1(&config, &servers, &[get("/1")]).handshake.resumed);
    assert!(!http1(&config, &servers, &[get("/2")]).handshake.resumed);
    let store = engine::tls::SessionStore::new(3);
    let name = rustls_pki_types::ServerName::try_from(NAME).unwrap();
    store.set_kx_hint(name.clone(), rustls::NamedGroup::X25519);
    assert_eq!(store.kx_hint(&name), Some(rustls::NamedGroup::X25519));
    assert_eq!((store.tickets(), store.dropped_tickets()), (0, 0));
}

/// Notes which secrets were logged.
#[derive(Debug, Default)]
struct Labels(Mutex<HashSet<String>>);

impl rustls::KeyLog for Labels {
    fn log(&self, label: &str, _client_random: &[u8], _secret: &[u8]) {
        self.0.lock().unwrap().insert(label.to_owned());
    }
}

#[test]
fn secrets_go_to_the_file_of_the_option() {
    let authority = Authority::new();
    let labels = Arc::new(Labels::default());
    let key_log: Arc<dyn rustls::KeyLog> = labels.clone();
    let options = Options { key_log: Some(key_log), ..Options::default() };
    http1(
        &config(Variant::H1s, &Pins::default(), &options, &authority),
        &server_config(&authority, 0),
        &[get("/")],
    );
    let logged = labels.0.lock().unwrap();
    assert!(logged.contains("CLIENT_TRAFFIC_SECRET_0") && logged.contains("SERVER_TRAFFIC_SECRET_0"));
}

/// Settings of an HTTP/3 client that may send early data, and of a server that takes it.
fn quic(authority: &Authority) -> (Arc<QuicConfig>, rustls::ServerConfig) {
    let pins = resuming();
    let tls = tls_config(&pins, b"h3", &Trust::Authority(authority.pem()), &[]).unwrap();
    let tls = with_options(&tls, &pins, &early()).unwrap();
    let mut server = authority.server_config(&[b"h3"]);
    server.max_early_data_size = u32::MAX;
    (Arc::new(QuicConfig::new(&pins, Arc::new(tls)).unwrap().with_options(&early())), server)
}

fn http3(config: &Arc<QuicConfig>, server: &rustls::ServerConfig, script: Script, count: u32) -> Run {
    let requests = (0..count).map(|i| Request { template: i, ..get(&format!("/{i}")) }).collect();
    let mut run = join_configured(&Net::CLEAN, Arc::clone(config), server.clone(), script, requests);
    run_until_finished(&mut run, count as usize);
    // The tickets come with the handshake's confirmation; an event more and both are silent until they time
    // out.
    let end = run.now_ns + 300 * MS;
    let _ = run.run_until(1000, |browser, _| browser.next_timeout_ns().is_none_or(|at| at > end));
    run
}

fn ready(run: &Run) -> (u64, bool, EarlyData) {
    let ready = run.client.seen.iter().find_map(|(at, seen)| match seen {
        LoggedEvent::Ready(handshake) => Some((*at, handshake.resumed, handshake.early_data)),
        _ => None,
    });
    ready.unwrap()
}

fn answering() -> Script {
    Script::replying(vec![Reply::Whole(response(b"ok"))])
}

fn ended(run: &Run) -> Vec<u64> {
    let ends = run.client.seen.iter().filter_map(|(_, seen)| match seen {
        LoggedEvent::End(request) => Some(*request),
        _ => None,
    });
    let mut ends: Vec<u64> = ends.collect();
    ends.sort_unstable();
    ends
}

#[test]
fn an_early_request_over_quic_is_answered_in_one_round_trip() {
    let authority = Authority::new();
    let (config, server) = quic(&authority);
    let cold = http3(&config, &server, answering(), 1);
    assert_eq!((ready(&cold), cold.client.early), ((100 * MS, false, EarlyData::NotTried), 0));
    let warm = http3(&config, &server, answering(), 3);
    assert_eq!((ready(&warm), warm.client.early), ((100 * MS, true, EarlyData::Accepted), 3));
    assert_eq!(ended(&warm), [0, 1, 2]);
    let last = warm.client.seen.iter().find(|(_, seen)| *seen == LoggedEvent::End(2)).unwrap();
    assert_eq!(last.0, 100 * MS, "with the handshake");
    assert_eq!(warm.server.uploads.len(), 3);
}

#[test]
fn early_requests_that_quic_rejects_are_sent_again_once() {
    let authority = Authority::new();
    let (config, server) = quic(&authority);
    http3(&config, &server, answering(), 1);
    let (_, forgetful) = quic(&authority);
    // More than the new server allows at a time: some wait for a stream.
    let script = Script { request_streams: 4, ..answering() };
    let run = http3(&config, &forgetful, script, 10);
    assert_eq!((ready(&run), run.client.early), ((100 * MS, false, EarlyData::Rejected), 10));
    assert_eq!(ended(&run), (0..10).collect::<Vec<u64>>());
    assert_eq!(run.server.uploads.len(), 10, "each once");
    assert!(run.client.bodies.values().all(|body| body == b"ok"));
    assert_eq!(run.client.outcome(), None);
}

#[test]
fn what_may_not_be_repeated_waits_for_the_handshake_of_quic() {
    let authority = Authority::new();
    let (config, server) = quic(&authority);
    http3(&config, &server, answering(), 1);
    let post =
        Request { template: 7, method: "POST".into(), body: bytes::Bytes::from_static(b"x"), ..get("/form") };
    let mut run = join_configured(&Net::CLEAN, config, server, answering(), vec![post, get("/safe")]);
    run_until_finished(&mut run, 2);
    let end = |id| run.client.seen.iter().find(|(_, seen)| *seen == LoggedEvent::End(id)).unwrap().0;
    assert_eq!((end(0), end(1)), (200 * MS, 100 * MS));
    assert_eq!((ready(&run).2, run.client.early), (EarlyData::Accepted, 2));
}

#[test]
fn without_gso_each_datagram_leaves_alone() {
    let authority = Authority::new();
    for segmentation_offload in [true, false] {
        let (config, server) = quic(&authority);
        let options = Options { segmentation_offload, ..Options::default() };
        let config = Arc::new(QuicConfig::clone(&config).with_options(&options));
        let upload = Request { method: "POST".into(), body: vec![0; 200_000].into(), ..get("/") };
        let mut run = join_configured(&Net::CLEAN, config, server, answering(), vec![upload]);
        run_until_finished(&mut run, 1);
        assert_eq!(run.client.largest_batch > 1, segmentation_offload, "{}", run.client.largest_batch);
    }
}

#[test]
fn a_connection_moves_to_a_new_local_address() {
    let authority = Authority::new();
    let (config, server) = quic(&authority);
    let body = vec![3; 300_000];
    let script = Script::replying(vec![Reply::Whole(response(&body))]);
    let mut run = join_configured(&Net::CLEAN, config, server, script, vec![get("/")]);
    assert!(!run.client.engine.local_address_changed(), "there is nothing to move yet");
    let arrived = |body: &Vec<u8>| body.len() > 50_000;
    run.run_until(100_000, |browser, _| browser.bodies.get(&0).is_some_and(arrived)).unwrap();
    let moved = SocketAddr::from(([10, 0, 0, 77], 40_000));
    run.server.client = moved;
    assert!(run.client.engine.local_address_changed());
    run.client.wanted.push_back(get("/"));
    run_until_finished(&mut run, 1);
    assert_eq!((run.server.remote(), &run.server.destinations[..]), (moved, &[CLIENT, moved][..]));
    assert!(run.client.bodies[&0] == body && run.client.outcome().is_none());
}

#[test]
fn cleartext_and_tcp_do_not_move() {
    let authority = Authority::new();
    let config = config(Variant::H1, &Pins::default(), &Options::default(), &authority);
    let mut client = Client::new(&config, CLIENT, base(), 1).unwrap();
    client.handle_connected(0, &mut |_| {});
    assert!(!client.local_address_changed(0));
    assert_eq!(client.send_request(0, 0, &get("/")).err(), None::<NotNow>);
}
