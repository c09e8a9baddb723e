//! The origin on loopback, all five variants, asked by clients that are not ours.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod client;
mod http3;
mod just_in_time;
mod media;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::Target;
use http::StatusCode;
use model::page::{PROLOGUE_BYTES, REFERENCE_BYTES, Resource, ResourceKind};
use model::{Page, Variant};
use origin::{Config, Identity, ServeReport};

/// An origin on a separate thread.
struct Running {
    addresses: Vec<(Variant, SocketAddr)>,
    roots: Arc<rustls::RootCertStore>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<anyhow::Result<ServeReport>>,
}

impl Running {
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::loopback(&Variant::ALL);
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        config.identity = Some(Identity {
            certificate_pem: certificate.cert.pem().into_bytes(),
            key_pem: certificate.signing_key.serialize_pem().into_bytes(),
            hosts: Vec::new(),
        });
        config.pages = vec![page()];
        change(&mut config);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.cert.der().clone()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            origin::serve(config, |addresses, _| tell.send(addresses.to_vec()).unwrap(), origin::flag(raised))
        });
        let addresses = told.recv().unwrap_or_default();
        assert!(!addresses.is_empty(), "{:?}", thread.join().unwrap());
        Running { addresses, roots: Arc::new(roots), stop, thread }
    }

    fn target(&self, variant: Variant) -> Target {
        let address = self.addresses.iter().find(|(listed, _)| *listed == variant).unwrap().1;
        Target { variant, address, roots: Arc::clone(&self.roots) }
    }

    fn stop(self) -> ServeReport {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }
}

fn page() -> Page {
    let resource = |path: &str, kind, bytes, slot: u64| Resource {
        path: path.into(),
        kind,
        bytes,
        named_by: (slot > 0).then_some(0),
        named_at_bytes: if slot > 0 { PROLOGUE_BYTES + REFERENCE_BYTES * slot } else { 0 },
        origin: 0,
        wait_ns: 0,
    };
    Page {
        delivery: Default::default(),
        name: "p".into(),
        title: "Page".into(),
        origins: Vec::new(),
        hosts: Vec::new(),
        resources: vec![
            resource("/p/", ResourceKind::Html, 4_000, 0),
            resource("/p/a b.css", ResourceKind::Css, 1_000, 1),
            resource("/p/i.png", ResourceKind::Image, 700_000, 2),
        ],
    }
}

fn block_on<T>(task: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(task)
}

#[test]
fn resources_are_complete_and_fields_equal_on_every_variant() {
    let running = Running::start(|_| ());
    let mut all_fields = BTreeMap::new();
    for variant in Variant::ALL {
        let target = running.target(variant);
        let paths = ["/p/", "/p/a%20b.css", "/p/i.png?query=1"];
        let requests = paths.map(|path| target.request("GET", path)).to_vec();
        let replies = block_on(target.fetch_all(requests));
        for (index, reply) in replies.iter().enumerate() {
            assert_eq!(reply.status, StatusCode::OK, "{variant}");
            assert!(reply.body == workload::content::page_body(&page(), index), "{variant} {index}");
            assert_eq!(reply.field("content-type"), Some(page().resources[index].kind.media_type()));
            assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string().as_str()));
            assert_eq!(reply.field("cache-control"), Some("no-store"));
            assert!(reply.field("server").unwrap().starts_with("h123-origin/"));
            assert!(reply.field("date").unwrap().ends_with(" GMT"));
        }
        let mut names: Vec<String> = replies[0].fields.keys().map(ToString::to_string).collect();
        names.sort();
        all_fields.insert(names, variant);
    }
    assert_eq!(all_fields.len(), 1, "{all_fields:?}");
    let served = running.stop();
    assert_eq!(served.requests, 15);
    assert_eq!(served.connections, 5);
    assert_eq!(served.failures, Vec::<String>::new());
}

#[test]
fn the_root_lists_the_pages() {
    let running = Running::start(|config| config.pages[0].title = "A <b> & \"c\"".into());
    for variant in Variant::ALL {
        let reply = block_on(running.target(variant).get("/"));
        assert_eq!(reply.status, StatusCode::OK, "{variant}");
        assert_eq!(reply.field("content-type"), Some("text/html; charset=utf-8"));
        let body = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(body.contains("<a href=\"/p/\">p</a>: A &lt;b> &amp; &quot;c&quot;"), "{body}");
        assert!(body.contains("/bytes/N") && body.contains("/echo"), "{body}");
    }
    assert_eq!(running.stop().failures, Vec::<String>::new());
    // A folder answers for itself.
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let running = Running::start(|config| config.root = Some(root));
    assert_eq!(block_on(running.target(Variant::H1).get("/")).status, StatusCode::NOT_FOUND);
    std::fs::write(folder.path().join("index.html"), "mine").unwrap();
    assert_eq!(block_on(running.target(Variant::H1).get("/")).body.to_vec(), b"mine");
    running.stop();
}

#[test]
fn bytes_have_the_length_and_content_asked_for() {
    let running = Running::start(|config| config.threads = 2);
    for variant in Variant::ALL {
        let target = running.target(variant);
        for length in [0_usize, 1, 128, 10_000_000] {
            let reply = block_on(target.get(&format!("/bytes/{length}")));
            assert_eq!(reply.status, StatusCode::OK);
            assert_eq!(reply.field("content-length"), Some(length.to_string().as_str()));
            let expected: Vec<u8> = workload::content::pattern_body(length as u64, 0).flatten().collect();
            assert!(reply.body == expected, "{variant} {length}: {}", reply.body.len());
        }
        let mut request = target.request("GET", "/bytes/5000000");
        request.headers_mut().insert("range", "bytes=1048570-3000000".parse().unwrap());
        let reply = block_on(target.fetch(request));
        assert_eq!(reply.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(reply.field("content-range"), Some("bytes 1048570-3000000/5000000"));
        let expected: Vec<u8> = workload::content::pattern_body(1_951_431, 1_048_570).flatten().collect();
        assert!(reply.body == expected, "{variant}");
        for wrong in ["/bytes/-1", "/bytes/", "/bytes/1099511627777", "/bytes/x", "/bytes/+5"] {
            assert_eq!(block_on(target.get(wrong)).status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let huge = block_on(target.fetch(target.request("HEAD", "/bytes/1099511627776")));
        assert_eq!(huge.field("content-length"), Some("1099511627776"));
    }
    running.stop();
}

#[test]
fn other_methods_and_paths() {
    let running = Running::start(|_| ());
    for variant in Variant::ALL {
        let target = running.target(variant);
        let head = block_on(target.fetch(target.request("HEAD", "/p/i.png")));
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
        assert_eq!(head.field("content-length"), Some("700000"));
        let post = block_on(target.fetch(target.request("POST", "/p/")));
        assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(post.field("allow"), Some("GET, HEAD"));
        assert_eq!(block_on(target.get("/echo")).field("allow"), Some("POST, PUT"));
        assert_eq!(block_on(target.get("/nothing")).status, StatusCode::NOT_FOUND);
        for status in [200, 204, 304, 404, 500, 599] {
            let reply = block_on(target.get(&format!("/status/{status}")));
            assert_eq!(reply.status.as_u16(), status, "{variant}");
            assert_eq!(reply.body.is_empty(), [204, 304].contains(&status));
        }
        for wrong in [
            "/status/100",
            "/status/600",
            "/status/20",
            "/status/+20",
            "/delay/-1",
            "/delay/60001",
            "/delay/x",
            "/delay/1e3",
        ] {
            assert_eq!(block_on(target.get(wrong)).status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        for length in [0, 5, 3_000_000] {
            let mut request = target.request("POST", "/echo");
            *request.body_mut() = Bytes::from(vec![7; length]);
            let reply = block_on(target.fetch(request));
            assert_eq!(reply.body, format!("{length}\n").into_bytes(), "{variant}");
        }
    }
    running.stop();
}

fn fill_root(folder: &Path) -> tempfile::TempDir {
    let outside = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    std::fs::write(outside.path().join("secret.txt"), "SECRET").unwrap();
    std::fs::create_dir(folder.join("d")).unwrap();
    std::fs::write(folder.join("d/index.html"), "index").unwrap();
    std::fs::write(folder.join("d/ü.txt"), "umlaut").unwrap();
    std::fs::write(folder.join("big.bin"), vec![b'x'; 3_000_000]).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("out")).unwrap();
    std::os::unix::fs::symlink("/etc", folder.join("etc")).unwrap();
    std::os::unix::fs::symlink("../..", folder.join("d/up")).unwrap();
    outside
}

#[test]
fn files_are_served_and_nothing_outside_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("root");
    std::fs::create_dir(&folder).unwrap();
    let outside = fill_root(&folder);
    let outside = outside.path().file_name().unwrap().to_str().unwrap();
    let running = Running::start(|config| config.root = Some(folder.clone()));
    for variant in Variant::ALL {
        let target = running.target(variant);
        assert_eq!(block_on(target.get("/d/")).body, b"index");
        assert_eq!(block_on(target.get("/d/%C3%BC.txt")).body, b"umlaut");
        let moved = block_on(target.get("/d"));
        assert_eq!((moved.status, moved.field("location")), (StatusCode::MOVED_PERMANENTLY, Some("/d/")));
        let moved = block_on(target.get("//d"));
        assert_eq!((moved.status, moved.field("location")), (StatusCode::MOVED_PERMANENTLY, Some("/d/")));
        let big = block_on(target.get("/big.bin"));
        assert!(big.body.len() == 3_000_000 && big.body.iter().all(|byte| *byte == b'x'), "{variant}");
        let mut request = target.request("GET", "/big.bin");
        request.headers_mut().insert("range", "bytes=-10".parse().unwrap());
        assert_eq!(block_on(target.fetch(request)).body, b"xxxxxxxxxx");
        let mut request = target.request("GET", "/big.bin");
        request.headers_mut().insert("range", "bytes=3000000-".parse().unwrap());
        assert_eq!(block_on(target.fetch(request)).status, StatusCode::RANGE_NOT_SATISFIABLE);
        for escape in [
            "/out/secret.txt".to_owned(),
            "/etc/passwd".to_owned(),
            format!("/d/up/{outside}/secret.txt"),
            format!("/../{outside}/secret.txt"),
            format!("/d/../../{outside}/secret.txt"),
            format!("/%2e%2e/{outside}/secret.txt"),
            format!("/..%2f{outside}%2fsecret.txt"),
            format!("/%2e%2e%2f{outside}/secret.txt"),
            format!("/.%2e/{outside}/secret.txt"),
            format!("/%252e%252e/{outside}/secret.txt"),
            format!("/..%5c{outside}%5csecret.txt"),
            format!("/%c0%ae%c0%ae/{outside}/secret.txt"),
            "//etc/passwd".to_owned(),
            "/%2fetc/passwd".to_owned(),
            "/d/%00/../../etc/passwd".to_owned(),
            "/d/index.html%00.png".to_owned(),
        ] {
            let reply = block_on(target.get(&escape));
            let refused = [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST].contains(&reply.status);
            assert!(refused, "{variant} {escape}: {}", reply.status);
            assert!(!reply.body.windows(6).any(|part| part == b"SECRET"), "{escape}");
        }
    }
    running.stop();
}

#[test]
fn the_access_log_joins_by_request_id_and_times_the_delay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.jsonl");
    let running = Running::start(|config| config.access_log = Some(path.clone()));
    for variant in Variant::ALL {
        let target = running.target(variant);
        for (id, path) in [
            ("delay", "/delay/30.5?x=\"1"),
            ("big", "/bytes/2000000"),
            ("page", "/p/"),
            ("none", "/status/204"),
        ] {
            let path = path.replace('"', "%22");
            let mut request = target.request("GET", &path);
            request.headers_mut().insert("x-request-id", format!("{variant}-{id}").parse().unwrap());
            block_on(target.fetch(request));
        }
        block_on(target.get("/nothing"));
    }
    let served = running.stop();
    assert_eq!((served.logged, served.dropped_from_log), (25, 0));
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 25);
    for variant in Variant::ALL {
        let row = |id: &str| {
            let wanted = format!("{variant}-{id}");
            rows.iter().find(|row| row["request_id"] == wanted.as_str()).unwrap()
        };
        let delay = row("delay");
        assert!(delay["request_us"].as_u64().unwrap() >= 30_500, "{delay}");
        assert_eq!(delay["path"], "/delay/30.5?x=%221");
        assert_eq!((&row("big")["bytes"], &row("big")["status"]), (&2_000_000.into(), &200.into()));
        assert_eq!(row("page")["bytes"], 4_000);
        assert_eq!((&row("none")["bytes"], &row("none")["status"]), (&0.into(), &204.into()));
        for id in ["delay", "big", "page", "none"] {
            assert_eq!(row(id)["complete"], true, "{variant} {id}: {}", row(id));
            assert_eq!(row(id)["variant"], variant.name());
            assert_eq!(row(id)["method"], "GET");
            assert!(row(id)["remote_port"].as_u64().is_some_and(|port| port > 0), "{}", row(id));
        }
    }
    let anonymous = rows.iter().filter(|row| row.get("request_id").is_none());
    assert!(anonymous.clone().all(|row| row["status"] == 404));
    assert_eq!(anonymous.count(), 5);
}

#[test]
fn a_client_that_leaves_early_is_logged_as_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.jsonl");
    let running = Running::start(|config| config.access_log = Some(path.clone()));
    let mut stream = std::net::TcpStream::connect(running.target(Variant::H1).address).unwrap();
    stream.write_all(b"GET /bytes/1000000000 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1_000]).unwrap();
    drop(stream);
    running.stop();
    let row: serde_json::Value =
        serde_json::from_str(std::fs::read_to_string(&path).unwrap().trim()).unwrap();
    assert_eq!(row["complete"], false);
    assert!(row["bytes"].as_u64().unwrap() < 1_000_000_000);
}

#[test]
fn http1_time_begins_with_the_first_byte_of_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.jsonl");
    let running = Running::start(|config| config.access_log = Some(path.clone()));
    let mut stream = std::net::TcpStream::connect(running.target(Variant::H1).address).unwrap();
    let mut answer = [0; 1_000];
    stream.write_all(b"GET /status/204 HTTP/1.1\r\nhost: x\r\nx-request-id: whole\r\n\r\n").unwrap();
    assert!(stream.read(&mut answer).unwrap() > 0);
    std::thread::sleep(Duration::from_millis(80));
    stream.write_all(b"GET /status/204 HTTP/1.1\r\nhost: x\r\nx-request-id: parts\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(40));
    // The end of one request and the whole of the next in one piece.
    stream
        .write_all(
            b"\r\nGET /status/204 HTTP/1.1\r\nhost: x\r\nx-request-id: piped\r\nconnection: close\r\n\r\n",
        )
        .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    running.stop();
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        rows.iter().map(|row| row["request_id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["whole", "parts", "piped"]
    );
    let began = |index: usize| rows[index]["time_unix_ns"].as_u64().unwrap();
    assert!(rows[1]["request_us"].as_u64().unwrap() >= 40_000, "{text}");
    // Not when the connection was last idle, and not with the request before it.
    assert!(began(1) >= began(0) + 80_000_000, "{text}");
    assert!(began(2) >= began(1) + 40_000_000, "{text}");
}

#[test]
fn small_windows_and_many_streams_hinder_nothing() {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H2c);
    block_on(async {
        let stream = tokio::net::TcpStream::connect(target.address).await.unwrap();
        let (mut send, connection) = h2::client::Builder::new()
            .initial_window_size(4_000)
            .handshake::<_, Bytes>(stream)
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for index in 0..100_usize {
            let (path, length) =
                [("/p/i.png", 700_000), ("/bytes/600000", 600_000), ("/p/", 4_000)][index % 3];
            // One third of the large ones is given up half way.
            let give_up = index % 9 == 1;
            let (response, _) = send.send_request(target.request("GET", path).map(|_| ()), true).unwrap();
            answers.push(tokio::spawn(async move {
                let mut body = response.await.unwrap().into_body();
                let mut received = 0;
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    received += data.len();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    if give_up && received > 50_000 {
                        return;
                    }
                }
                assert_eq!(received, length);
            }));
        }
        for answer in answers {
            answer.await.unwrap();
        }
    });
    assert_eq!(running.stop().requests, 100);
}

#[test]
fn raw_http1_faults_are_answered_and_the_server_lives_on() {
    let running = Running::start(|config| {
        config.head_timeout = Duration::from_millis(200);
    });
    let address = running.target(Variant::H1).address;
    let ask = |text: &[u8]| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(text).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let no_host = ask(b"GET /p/ HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert!(no_host.starts_with("HTTP/1.1 400 "), "{no_host}");
    for hosts in
        ["host: a\r\nhost: a\r\n", "host: a\r\nhost: b\r\n", "host: a b\r\n", "host: a@b\r\n", "host:\r\n"]
    {
        let answer = ask(format!("GET /p/ HTTP/1.1\r\n{hosts}connection: close\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{hosts}: {answer}");
    }
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    assert!(ask(long.as_bytes()).starts_with("HTTP/1.1 431 "));
    assert!(ask(b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // A head that never ends: the server closes, with or without an answer.
    ask(b"GET / HTTP/1.1\r\nhost:");
    // Noise at the encrypted and binary ports.
    for variant in [Variant::H1s, Variant::H2c, Variant::H2] {
        let mut stream = std::net::TcpStream::connect(running.target(variant).address).unwrap();
        stream.write_all(&[0x5a; 512]).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    for variant in Variant::ALL {
        assert_eq!(block_on(running.target(variant).get("/p/")).status, StatusCode::OK);
    }
    let served = running.stop();
    assert!(served.failed_connections >= 4, "{served:?}");
    assert!(served.failures.iter().any(|why| why.contains("head of a request")), "{served:?}");
}

#[test]
fn a_host_that_contradicts_the_authority_is_refused() {
    let running = Running::start(|_| ());
    for variant in [Variant::H2c, Variant::H2] {
        let target = running.target(variant);
        for (hosts, status) in [
            (&["localhost"][..], StatusCode::OK),
            (&["elsewhere"], StatusCode::BAD_REQUEST),
            (&["localhost", "localhost"], StatusCode::BAD_REQUEST),
        ] {
            let mut request = target.request("GET", "/p/");
            for host in hosts {
                request.headers_mut().append("host", host.parse().unwrap());
            }
            assert_eq!(block_on(target.fetch(request)).status, status, "{variant} {hosts:?}");
        }
    }
    running.stop();
}

#[test]
fn a_long_answer_outlives_the_time_for_heads() {
    let running = Running::start(|config| config.head_timeout = Duration::from_millis(100));
    for variant in Variant::ALL {
        let target = running.target(variant);
        let requests = vec![target.request("GET", "/delay/250"), target.request("GET", "/delay/250")];
        for reply in block_on(target.fetch_all(requests)) {
            assert_eq!(reply.body, b"250\n", "{variant}");
        }
    }
    assert_eq!(running.stop().failures, Vec::<String>::new());
}

#[test]
fn connections_beyond_the_limit_are_refused_and_counted() {
    let running = Running::start(|config| config.most_connections = 1);
    let target = running.target(Variant::H1);
    block_on(async {
        let mut first = std::net::TcpStream::connect(target.address).unwrap();
        first.write_all(b"GET /status/200 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        first.read_exact(&mut [0; 15]).unwrap();
        let mut second = std::net::TcpStream::connect(target.address).unwrap();
        assert_eq!(second.read(&mut [0; 1]).unwrap_or(0), 0);
    });
    assert_eq!(running.stop().refused_connections, 1);
}

#[test]
fn shutdown_lets_requests_in_flight_end() {
    let running = Running::start(|_| ());
    let stop = Arc::clone(&running.stop);
    for variant in Variant::ALL {
        let target = running.target(variant);
        let again = running.target(variant);
        let flag = Arc::clone(&stop);
        let last = variant == Variant::H3;
        block_on(async move {
            let asked = tokio::spawn(async move { target.get("/delay/300").await });
            // The request is on its way once another, sent later, has been answered.
            tokio::time::sleep(Duration::from_millis(100)).await;
            again.get("/status/204").await;
            if last {
                flag.store(true, Ordering::Relaxed);
            }
            assert_eq!(asked.await.unwrap().body, b"300\n", "{variant}");
        });
    }
    let served = running.stop();
    assert_eq!(served.requests, 10);
}

#[test]
fn what_cannot_work_is_refused_before_anything_listens() {
    let refuse = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::loopback(&[Variant::H1]);
        change(&mut config);
        let error = origin::serve(config, |_, _| panic!("listens"), std::future::ready(())).unwrap_err();
        format!("{error:#}")
    };
    let no_certificate = refuse(&|config| config.listen = Config::loopback(&[Variant::H3]).listen);
    assert!(no_certificate.contains("`h3` is encrypted"), "{no_certificate}");
    assert!(refuse(&|config| config.listen.clear()).contains("no address"));
    assert!(refuse(&|config| config.root = Some("/does/not/exist".into())).contains("/does/not/exist"));
    assert!(refuse(&|config| config.access_log = Some("/does/not/exist".into())).contains("/does/not/exist"));
    assert!(refuse(&|config| config.pages = vec![page(), page()]).contains("repeats the path"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    assert!(refuse(&|config| config.listen = vec![(Variant::H1, address)]).contains("cannot listen at"));
}

#[test]
fn tls_is_what_the_plan_pins() {
    use model::pins::{CipherSuite, KeyExchange, TlsVersion};
    for (version, suite, expected) in [
        (TlsVersion::V13, CipherSuite::TLS_AES_256_GCM_SHA384, rustls::CipherSuite::TLS13_AES_256_GCM_SHA384),
        (
            TlsVersion::V12,
            CipherSuite::TLS_CHACHA20_POLY1305_SHA256,
            rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ] {
        let running = Running::start(|config| {
            config.pins.tls_version = version;
            config.pins.cipher_suite = suite;
            config.pins.key_exchange = KeyExchange::Secp384r1;
        });
        let target = running.target(Variant::H1s);
        block_on(async {
            let connector = tokio_rustls::TlsConnector::from(Arc::new(target.tls(b"http/1.1")));
            let stream = tokio::net::TcpStream::connect(target.address).await.unwrap();
            let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
            let tls = stream.get_ref().1;
            assert_eq!(tls.negotiated_cipher_suite().unwrap().suite(), expected);
            assert_eq!(tls.negotiated_key_exchange_group().unwrap().name(), rustls::NamedGroup::secp384r1);
        });
        assert_eq!(block_on(running.target(Variant::H3).get("/p/")).status, StatusCode::OK);
        running.stop();
    }
}
