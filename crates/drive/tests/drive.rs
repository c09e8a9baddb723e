//! Servers and clients over this machine's loopback: real programs, and fakes that misbehave.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test may panic")]

#[path = "drive/browsers.rs"]
mod browsers;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use drive::{
    Adapter, Authority, Begins, ClientOutcome, Clients, ExternalSpec, Identity, Limits, Servers, StartSpec,
    Support, client,
};
use lab::{Access, Lab, PairSpec};
use model::assignment::{
    ASSIGNMENT_VERSION, Assignment, ClientMessage, ClientReport, ClockReference, Target, Trust,
};
use model::error::Source;
use model::pins::KeyExchange;
use model::sample::{Failure, FailureKind};
use model::tunable::NO_SETTINGS;
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Backend, Network, Outcome, Page, Pins, Variant, frame};

const PAGE: &str = "title = 'x'\n[[resource]]\npath = '/p/'\nkind = 'html'\nsizes = ['1kB']\n\
    [[resource]]\npath = '/p/a.js'\nkind = 'js'\nnamed_by = '/p/'\nsizes = ['3kB']\n";

struct Place {
    folder: tempfile::TempDir,
    authority: Authority,
    identity: Identity,
    pages: Vec<Page>,
    pins: Pins,
}

impl Place {
    fn new() -> Self {
        let authority = Authority::new().unwrap();
        let identity = authority.issue(&["server.h123.test"], &[]).unwrap();
        let pages = vec![Page::parse("p", Source { file: "p.toml", text: PAGE }).unwrap()];
        Place { folder: tempfile::tempdir().unwrap(), authority, identity, pages, pins: Pins::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// An adapter whose program is a script; asked for its version it says `fake/1.2.3`.
    fn fake_server(&self, name: &str, script: &str) -> Adapter {
        let version = "[ \"$1\" = -V ] && { echo fake/1.2.3 with h1s; exit 0; }";
        let program = self.script(&format!("{name}.sh"), &format!("{version}\n{script}"));
        let folder = self.path(name);
        fs::create_dir(&folder).unwrap();
        let text = format!(
            "title = 'fake'\nprogram = ['{}']\nversion = {{ command = ['{{{{program}}}}', '-V'], after = 'fake/' }}\n\
             variant = [{{ name = 'h1', port = 18080 }}, {{ name = 'h1s', port = 18441, requires = 'h1s' }}, \
             {{ name = 'h3', port = 18443, requires = 'quic' }}]\n\
             [start]\ncommand = ['{{{{program}}}}', 'start']\nready_within = '300ms'\nstop_signal = 'TERM'\n\
             stop_within = '1s'\n",
            program.display()
        );
        fs::write(folder.join("server.toml"), text).unwrap();
        Servers::read(&folder).unwrap()
    }

    fn spec<'a>(&'a self, run: &'a Path, content: &'a Path, variants: &'a [Variant]) -> StartSpec<'a> {
        StartSpec {
            folder: run,
            tool: Path::new("/nonexistent/h123"),
            variants,
            pins: &self.pins,
            set: &NO_SETTINGS,
            back: None,
            pages: &self.pages,
            media: &[],
            content,
            identity: &self.identity,
            server_name: "server.h123.test",
            has_browsers: false,
            threads: 1,
            cpus: &[],
            seed: 1,
        }
    }

    fn start_error(&self, adapter: &Adapter, variants: &[Variant]) -> Outcome {
        let lab = Lab::loopback().unwrap();
        let run = self.path("run");
        let error = adapter.start(lab.server(), &self.spec(&run, &run, variants)).map(drop).unwrap_err();
        assert!(!run.join("server.key").exists(), "no key stays after a failed start");
        error
    }

    fn run_client(&self, script: &str, limits: Limits) -> ClientOutcome {
        let program = self.script("client.sh", script);
        let lab = Lab::loopback().unwrap();
        client::run(lab.client(), &program, &assignment(), limits, &self.path("client.log")).unwrap()
    }
}

const LIMITS: Limits = Limits { time: Duration::from_secs(30), bytes: 1 << 20, cpus: Vec::new() };

fn assignment() -> Assignment {
    Assignment {
        options: model::options::Options::default(),
        version: ASSIGNMENT_VERSION,
        group: 0,
        node: "client".into(),
        clock: ClockReference { id: "test".into(), run_start_ns: 0 },
        target: Target {
            variant: Variant::H1,
            address: "127.0.0.1:1".parse().unwrap(),
            authority: "x:1".into(),
            server_name: "x".into(),
            trust: Trust::System,
        },
        workload: Workload::Closed(ClosedLoop::new(
            LoopLoad { requests: Some(1), ..LoopLoad::new("/") },
            None,
        )),
        pins: Pins::default(),
        seed: 1,
        clients: model::Clients::ONE,
        deadline_ns: 1,
        ends_ns: None,
    }
}

fn reason(outcome: &Outcome, kind: FailureKind) -> &str {
    match outcome {
        Outcome::Failed(failure) if failure.kind == kind => &failure.reason,
        other => panic!("found {other:?}, expected a failure of kind {kind:?}"),
    }
}

fn fetch(target: &Target, path: &str) -> String {
    let mut stream = TcpStream::connect(target.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let host = &target.authority;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn nginx_serves_a_page() {
    let nginx = Servers::find("nginx").unwrap();
    let place = Place::new();
    let tool = Path::new("/nonexistent/h123");
    let found = match nginx.probe(tool) {
        Ok(found) => found,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "in CI a skip is a failure: {error:#}");
            eprintln!("SKIPPED: {error:#}");
            return;
        }
    };
    let variants: Vec<Variant> =
        Variant::ALL.into_iter().filter(|variant| found.support(*variant) == Support::Supported).collect();
    assert!(variants.len() >= 4, "{found:?}");
    let (content, run) = (place.path("content"), place.path("run"));
    drive::write_content(&content, &place.pages).unwrap();
    let lab = Lab::loopback().unwrap();
    let server = nginx.start(lab.server(), &place.spec(&run, &content, &variants)).unwrap();
    assert!(server.is_alive());
    let target = server.target(Variant::H1).unwrap();
    let answer = fetch(&target, "/p/");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("content-length: 1000\r\n"), "{answer}");
    assert!(fetch(&target, "/p/a.js").contains("text/javascript"));
    assert!(fetch(&target, "/../../etc/passwd").starts_with("HTTP/1.1 400"));
    let log = server.access_log().unwrap();
    assert_eq!(fs::metadata(run.join("server.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let stopped = server.stop().unwrap();
    assert_eq!(stopped.died, None);
    assert_eq!(stopped.report.version, found.version);
    assert!(stopped.report.ready_after_ns > 0);
    let lines = fs::read_to_string(&log.path).unwrap();
    assert_eq!(log.log.precision_ns(), Some(1_000_000));
    assert!(lines.lines().any(|line| line.contains("\"path\":\"/p/\",\"status\":200")), "{lines}");
    assert!(!run.join("server.key").exists(), "no key stays in a result");

    if found.support(Variant::H3) != Support::Supported {
        let lab = Lab::loopback().unwrap();
        let refused =
            nginx.start(lab.server(), &place.spec(&run, &content, &[Variant::H3])).map(drop).unwrap_err();
        assert!(
            matches!(&refused, Outcome::Unsupported(why) if why.contains("does not support h3; install 1.25.0 or newer")),
            "{refused:?}"
        );
    }
}

/// Folder names, and the servers whose language cannot express them.
const HOSTILE_NAMES: &[(&str, &[&str])] = &[
    (" a 'b\" `touch x` ;#} \\ %20 *[c]<d>& \\\" \\n |", &[]),
    ("$(touch x)", &["nginx"]),
    ("${HOME}", &["apache", "caddy", "nginx"]),
    ("{env.HOME}", &["caddy"]),
    ("a\ntouch x\n", &["apache", "haproxy", "nghttpx"]),
];

/// The body of /p/ over a variant, by curl.
fn curl(target: &Target) -> Vec<u8> {
    let (variant, authority) = (target.variant, &target.authority);
    let url = format!("{}://{authority}/p/", variant.scheme());
    let resolve = format!("{authority}:{}", target.address.ip());
    let version = if variant == Variant::H2c { "--http2-prior-knowledge" } else { "--http2" };
    let options = ["-sk", "--max-time", "10", version, "--resolve", &resolve, &url];
    let curl = std::process::Command::new("curl").args(options).output();
    curl.unwrap().stdout
}

/// The fields of a path over a variant, in lower case, by curl.
fn head(target: &Target, path: &str) -> Vec<String> {
    let (variant, authority) = (target.variant, &target.authority);
    let url = format!("{}://{authority}{path}", variant.scheme());
    let resolve = format!("{authority}:{}", target.address.ip());
    let version = if variant == Variant::H2c { "--http2-prior-knowledge" } else { "--http1.1" };
    let options =
        ["-sk", "--max-time", "10", "-D", "-", "-o", "/dev/null", version, "--resolve", &resolve, &url];
    let curl = std::process::Command::new("curl").args(options).output().unwrap();
    String::from_utf8(curl.stdout).unwrap().lines().map(str::to_lowercase).collect()
}

/// Files of media and their types; those that do not change, then manifests.
const MEDIA_FILES: [(&str, &str, bool); 9] = [
    ("film/video-8000k/1.m4s", "video/iso.segment", true),
    ("film/video-8000k/init.mp4", "video/mp4", true),
    ("film/ts/1.ts", "video/mp2t", true),
    ("film/hds/Seg1-Frag7", "video/f4f", true),
    ("film/hds/Seg1.f4f", "video/f4f", true),
    ("film/manifest.mpd", "application/dash+xml", false),
    ("film/main.m3u8", "application/vnd.apple.mpegurl", false),
    ("film/hds/manifest.f4m", "application/f4m+xml", false),
    ("film/hds/index.bootstrap", "video/abst", false),
];

/// Asks a server over its first variant for all files of media.
fn expect_media_fields(server: &str, target: &Target, adds_fields: bool) {
    for (file, media_type, is_segment) in MEDIA_FILES {
        let fields = head(target, &format!("/media/{file}"));
        let value = |name: &str| {
            fields.iter().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::trim)
        };
        assert!(fields.first().is_some_and(|status| status.contains("200")), "{server}: {file}: {fields:?}");
        if !adds_fields {
            // nghttpd has a list of types, but no option for fields or for names without an extension.
            if file.contains('.') && !file.contains("Frag") {
                assert_eq!(value("content-type"), Some(media_type), "{server}: {file}");
            }
            continue;
        }
        assert_eq!(value("content-type"), Some(media_type), "{server}: {file}");
        assert_eq!(value("access-control-allow-origin"), Some("*"), "{server}: {file}");
        let caching = if is_segment { "public, max-age=31536000, immutable" } else { "public, max-age=60" };
        assert_eq!(value("cache-control"), Some(caching), "{server}: {file}");
        let once = fields.iter().filter(|line| line.starts_with("cache-control:")).count();
        assert_eq!(once, 1, "{server}: {file}: {fields:?}");
    }
    if !adds_fields {
        return;
    }
    let page = head(target, "/p/");
    let is_media = |line: &String| line.starts_with("access-control") || line.starts_with("cache-control");
    assert!(!page.iter().any(is_media), "{server}: a page is no media: {page:?}");
}

#[test]
fn every_server_sends_media_with_its_type_and_fields() {
    let place = Place::new();
    let content = place.path("content");
    drive::write_content(&content, &place.pages).unwrap();
    for (file, ..) in MEDIA_FILES {
        let path = content.join("media").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "media").unwrap();
    }
    let lab = Lab::loopback().unwrap();
    let start = |server: &str, back: Option<&Target>| {
        let adapter = Servers::find(server).unwrap();
        let variants = [Variant::H1, Variant::H2c];
        let first = variants.into_iter().find(|variant| adapter.variant(*variant).is_some()).unwrap();
        let run = place.path(&format!("run of {server}"));
        let variants = [first];
        let spec = StartSpec { back, ..place.spec(&run, &content, &variants) };
        let running =
            adapter.start(lab.server(), &spec).unwrap_or_else(|error| panic!("{server}: {error:?}"));
        let target = running.target(first).unwrap();
        (running, target)
    };
    for server in ["apache", "caddy", "lighttpd", "nghttpd", "nginx"] {
        let (running, target) = start(server, None);
        expect_media_fields(server, &target, server != "nghttpd");
        for proxy in ["haproxy", "nghttpx"].into_iter().filter(|_| server == "apache") {
            let (front, front_target) = start(proxy, Some(&target));
            expect_media_fields(proxy, &front_target, true);
            front.stop().unwrap();
        }
        running.stop().unwrap();
    }
}

/// Starts a server with all its folders below one with this name; returns why it does not start.
fn serve_below(place: &Place, server: &Adapter, name: &str, back: Option<&Target>) -> Result<(), Outcome> {
    let folder = place.path(name);
    let (run, content) = (folder.join(format!("run of {}", server.name)), folder.join("content"));
    drive::write_content(&content, &place.pages).unwrap();
    // nghttpd has no other key exchange.
    let pins = Pins { key_exchange: KeyExchange::Secp256r1, ..Pins::default() };
    let wanted = [Variant::H1, Variant::H1s, Variant::H2c, Variant::H2];
    let variants: Vec<_> = wanted.into_iter().filter(|variant| server.variant(*variant).is_some()).collect();
    let lab = Lab::loopback().unwrap();
    let spec = StartSpec { pins: &pins, back, ..place.spec(&run, &content, &variants) };
    let running = server.start(lab.server(), &spec)?;
    for variant in variants {
        let body = curl(&running.target(variant).unwrap());
        assert_eq!(body.len(), 1_000, "{} over {variant} below {name:?}", server.name);
    }
    let log = running.access_log().map(|log| log.path);
    assert_eq!(running.stop().unwrap().died, None);
    assert!(log.is_none_or(|log| log.exists()), "{} below {name:?}", server.name);
    Ok(())
}

#[test]
fn every_server_runs_in_a_folder_with_a_hostile_name() {
    let place = Place::new();
    let content = place.path("content");
    drive::write_content(&content, &place.pages).unwrap();
    let lab = Lab::loopback().unwrap();
    let run = place.path("back");
    let nginx = Servers::find("nginx").unwrap();
    let behind = nginx.start(lab.server(), &place.spec(&run, &content, &[Variant::H1])).unwrap();
    let target = behind.target(Variant::H1).unwrap();
    for (name, refusing) in HOSTILE_NAMES {
        for server in ["apache", "caddy", "haproxy", "lighttpd", "nghttpd", "nghttpx", "nginx"] {
            let adapter = Servers::find(server).unwrap();
            let is_proxy = ["haproxy", "nghttpx"].contains(&server);
            match serve_below(&place, &adapter, name, is_proxy.then_some(&target)) {
                Ok(()) => assert!(!refusing.contains(&server), "{server} below {name:?}"),
                Err(outcome) => {
                    let reason = reason(&outcome, FailureKind::Server);
                    assert!(refusing.contains(&server), "{server} below {name:?}: {reason}");
                    assert!(reason.contains("choose another name"), "{server}: {reason}");
                }
            }
        }
    }
    for folder in [Path::new("."), place.folder.path()] {
        assert!(!folder.join("x").exists(), "a shell ran a part of a name in {}", folder.display());
    }
    behind.stop().unwrap();
}

#[test]
fn two_servers_at_once_get_ports_of_their_own() {
    let nginx = Servers::find("nginx").unwrap();
    let place = Place::new();
    if let Err(error) = nginx.probe(Path::new("/nonexistent/h123")) {
        assert!(std::env::var_os("CI").is_none(), "in CI a skip is a failure: {error:#}");
        return;
    }
    let content = place.path("content");
    drive::write_content(&content, &place.pages).unwrap();
    let lab = Lab::loopback().unwrap();
    let (one, two) = (place.path("one"), place.path("two"));
    let first = nginx.start(lab.server(), &place.spec(&one, &content, &[Variant::H1])).unwrap();
    let second = nginx.start(lab.server(), &place.spec(&two, &content, &[Variant::H1])).unwrap();
    let (first, second) = (first.target(Variant::H1).unwrap(), second.target(Variant::H1).unwrap());
    assert_ne!(first.address, second.address);
    assert!(fetch(&second, "/p/").starts_with("HTTP/1.1 200"));
}

#[test]
fn nginx_serves_the_client_node_of_a_lab() {
    let nginx = Servers::find("nginx").unwrap();
    let probed = nginx.probe(Path::new("/nonexistent/h123")).map_err(|error| error.to_string());
    let access = lab::probe().emulation().map_err(|missing| missing.to_string());
    if probed.is_err() || access != Ok(Access::Direct) {
        // A user namespace cannot be entered from a test's thread; the end-to-end test does that.
        let is_user = access == Ok(Access::UserNamespace);
        assert!(
            is_user || std::env::var_os("CI").is_none(),
            "in CI a skip is a failure: {probed:?}, {access:?}"
        );
        eprintln!("SKIPPED: {probed:?}, {access:?}");
        return;
    }
    let place = Place::new();
    let (content, run) = (place.path("content"), place.path("run"));
    drive::write_content(&content, &place.pages).unwrap();
    let text = "title = 'x'\nsource = 'y'\nrtt = '1ms'\n";
    let network = Network::parse("n", Source { file: "n.toml", text }).unwrap();
    let lab = Lab::pair(PairSpec {
        network: &network,
        pins: &place.pins,
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    let variants = [Variant::H1, Variant::H1s, Variant::H2c, Variant::H2];
    let server = nginx.start(lab.server(), &place.spec(&run, &content, &variants)).unwrap();
    let target = server.target(Variant::H1).unwrap();
    assert_eq!(target.address.port(), nginx.variant(Variant::H1).unwrap().port);
    let answers = lab.client().enter(|| (0..50).map(|_| fetch(&target, "/p/")).collect::<Vec<_>>()).unwrap();
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 200 OK\r\n")), "{answers:?}");
    let stopped = server.stop().unwrap();
    assert_eq!(stopped.died, None);
    assert!(stopped.report.cpu_user_ns + stopped.report.cpu_system_ns > 0, "{stopped:?}");
}

#[test]
fn a_server_that_dies_is_noticed() {
    let place = Place::new();
    let adapter = Servers::find("nginx").unwrap();
    if adapter.probe(Path::new("/nonexistent/h123")).is_err() {
        assert!(std::env::var_os("CI").is_none(), "in CI a skip is a failure");
        return;
    }
    let lab = Lab::loopback().unwrap();
    let run = place.path("run");
    let server = adapter.start(lab.server(), &place.spec(&run, &run, &[Variant::H1])).unwrap();
    let pid = fs::read_to_string(run.join("nginx.pid")).unwrap();
    let killed =
        std::process::Command::new("sh").args(["-c", &format!("kill -KILL {}", pid.trim())]).status();
    assert!(killed.unwrap().success());
    while server.is_alive() {
        std::thread::yield_now();
    }
    let stopped = server.stop().unwrap();
    let died = stopped.died.unwrap();
    assert!(died.contains("nginx ended early (signal: 9"), "{died}");
    while has_living_process_in_group(pid.trim()) {
        std::thread::yield_now();
    }
}

/// Field 3 of `/proc/PID/stat` is the state, field 5 the group.
fn has_living_process_in_group(group: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        fields.first().is_some_and(|state| *state != "Z") && fields.get(2) == Some(&group)
    })
}

#[test]
fn a_server_is_probed() {
    let place = Place::new();
    let adapter = place.fake_server("fake", "exit 1");
    let found = adapter.probe(Path::new("/x")).unwrap();
    assert_eq!(found.version, "1.2.3");
    assert_eq!(found.support(Variant::H1s), Support::Supported);
    assert!(matches!(found.support(Variant::H3), Support::Unsupported(why) if why.contains("`quic`")));
    assert!(
        matches!(found.support(Variant::H2), Support::Unsupported(why) if why.contains("no variant `h2`"))
    );
    let refused = place.start_error(&adapter, &[Variant::H1, Variant::H3]);
    assert!(matches!(refused, Outcome::Unsupported(_)), "{refused:?}");
}

#[test]
fn a_server_that_is_missing_is_named() {
    let place = Place::new();
    let adapter = place.fake_server("gone", "exit 1");
    fs::remove_file(place.path("gone.sh")).unwrap();
    let outcome = place.start_error(&adapter, &[Variant::H1]);
    let reason = reason(&outcome, FailureKind::Server);
    assert!(reason.contains("is not installed") && reason.contains("gone.sh"), "{reason}");
}

/// A server whose ports are open at once and which answers later: the kernel accepts its connections and
/// keeps its datagrams meanwhile.
const SLOW_STARTER: &str = r#"
import socket, sys, time
port = int(sys.argv[2])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", port))
tcp = socket.socket()
tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(("127.0.0.1", port))
tcp.listen()
time.sleep(0.4)
if sys.argv[1] == "h3":
    while True:
        packet, client = udp.recvfrom(2048)
        ids = packet[5:23]
        udp.sendto(b"\xc0\0\0\0\0" + ids + b"\0\0\0\x01", client)
while True:
    client, _ = tcp.accept()
    client.recv(4096)
    client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    client.close()
"#;

#[test]
fn an_open_port_is_not_a_ready_server() {
    for variant in ["h1", "h3"] {
        let place = Place::new();
        fs::write(place.path("slow.py"), SLOW_STARTER).unwrap();
        let folder = place.path("slow");
        fs::create_dir(&folder).unwrap();
        let text = format!(
            "title = 'slow'\nprogram = ['python3']\n\
             version = {{ command = ['{{{{program}}}}', '--version'], after = 'Python ' }}\n\
             variant = [{{ name = '{variant}', port = 18080 }}]\n[start]\n\
             command = ['{{{{program}}}}', '{}', '{variant}', '{{{{ports.{variant}}}}}']\n\
             ready_within = '10s'\nstop_signal = 'TERM'\nstop_within = '1s'\n",
            place.path("slow.py").display()
        );
        fs::write(folder.join("server.toml"), text).unwrap();
        let adapter = Servers::read(&folder).unwrap();
        let lab = Lab::loopback().unwrap();
        let run = place.path("run");
        let variants = [variant.parse().unwrap()];
        let server = adapter.start(lab.server(), &place.spec(&run, &run, &variants)).unwrap();
        let report = server.stop().unwrap().report;
        assert!(report.ready_after_ns >= 400_000_000, "{variant}: {report:?}");
    }
}

#[test]
fn a_server_that_ends_at_once_has_last_words() {
    let place = Place::new();
    let adapter = place.fake_server("ends", "echo 'no such option: start' >&2; exit 3");
    let outcome = place.start_error(&adapter, &[Variant::H1]);
    let reason = reason(&outcome, FailureKind::Server);
    assert!(reason.contains("ended before it was ready (exit status: 3)"), "{reason}");
    assert!(reason.contains("its last lines: no such option: start"), "{reason}");
}

#[test]
fn a_servers_logs_are_limited() {
    let place = Place::new();
    let adapter = place.fake_server("fake", "grep 'Max file size' /proc/self/limits >&2; exit 3");
    let outcome = place.start_error(&adapter, &[Variant::H1]);
    let reason = reason(&outcome, FailureKind::Server);
    assert!(reason.contains(&format!(" {} ", 1 << 30)), "{reason}");
}

#[test]
fn a_server_that_never_listens_is_given_up() {
    let place = Place::new();
    let adapter = place.fake_server("deaf", "echo 'waiting for a licence'; exec sleep 60");
    let outcome = place.start_error(&adapter, &[Variant::H1, Variant::H1s]);
    let reason = reason(&outcome, FailureKind::Server);
    assert!(reason.contains("was not ready within 300 ms"), "{reason}");
    assert!(reason.contains("h1 on port") && reason.contains("h1s on port"), "{reason}");
    assert!(reason.contains("waiting for a licence"), "{reason}");
}

/// Writes frames to a file that a script can `cat`.
fn speech(place: &Place, messages: &[ClientMessage]) -> String {
    let path = place.path("speech");
    let bytes: Vec<u8> = messages.iter().flat_map(|message| frame::encode(message).unwrap()).collect();
    fs::write(&path, bytes).unwrap();
    format!("cat {}", path.display())
}

fn hello() -> ClientMessage {
    ClientMessage::Hello { version: ASSIGNMENT_VERSION }
}

#[test]
fn a_client_gets_its_assignment_and_is_heard() {
    let place = Place::new();
    let report = ClientReport { urls: vec!["/".into()], finished_ns: 7, ..ClientReport::default() };
    let messages =
        [hello(), ClientMessage::Samples(Vec::new()), ClientMessage::Done(Box::new(report.clone()))];
    let said = speech(&place, &messages);
    let copy = place.path("assignment.json");
    let script = format!("[ \"$*\" = 'load --assignment -' ] || exit 9\ncat > {}\n{said}", copy.display());
    let heard = place.run_client(&script, LIMITS);
    assert_eq!((heard.outcome, heard.report), (Outcome::Ok, report));
    let given: Assignment = serde_json::from_slice(&fs::read(copy).unwrap()).unwrap();
    assert_eq!(given, assignment());
}

#[test]
fn a_client_that_dies_has_last_words() {
    let place = Place::new();
    let said = speech(&place, &[hello()]);
    let script = format!("{said}; printf '\\001'; echo 'out of descriptors' >&2; kill -SEGV $$");
    let heard = place.run_client(&script, LIMITS);
    let reason = reason(&heard.outcome, FailureKind::Client);
    assert!(reason.contains("ended before it had finished (signal: 11"), "{reason}");
    assert!(reason.contains("ended inside a frame") && reason.contains("out of descriptors"), "{reason}");
}

#[test]
fn a_client_that_ends_badly_after_its_work_has_failed() {
    let place = Place::new();
    let said = speech(&place, &[hello(), ClientMessage::Done(Box::default())]);
    let heard = place.run_client(&format!("{said}; exit 4"), LIMITS);
    let reason = reason(&heard.outcome, FailureKind::Client);
    assert!(reason.contains("ended after it had finished (exit status: 4)"), "{reason}");
}

#[test]
fn a_client_that_sends_garbage_violates_the_protocol() {
    let place = Place::new();
    let heard = place.run_client("echo 'usage: client [OPTIONS]'; exec sleep 60", LIMITS);
    let reason_of = |heard: &ClientOutcome| reason(&heard.outcome, FailureKind::Client).to_owned();
    assert!(reason_of(&heard).contains("client protocol error: the frame has"), "{heard:?}");

    let said = speech(&place, &[ClientMessage::Hello { version: 99 }]);
    let heard = place.run_client(&said, LIMITS);
    assert!(reason_of(&heard).contains("uses protocol version 99"), "{heard:?}");

    let said = speech(&place, &[ClientMessage::Samples(Vec::new())]);
    let heard = place.run_client(&said, LIMITS);
    assert!(reason_of(&heard).contains("before the greeting"), "{heard:?}");
}

#[test]
fn a_client_says_itself_what_failed() {
    let place = Place::new();
    let failure = Failure { kind: FailureKind::System, reason: "no ports left".into() };
    let said = speech(&place, &[hello(), ClientMessage::Fault(failure.clone())]);
    assert_eq!(place.run_client(&said, LIMITS).outcome, Outcome::Failed(failure));
}

#[test]
fn a_client_that_hangs_is_killed() {
    let place = Place::new();
    let said = speech(&place, &[hello()]);
    let limits = Limits { time: Duration::from_millis(200), ..LIMITS };
    let heard = place.run_client(&format!("{said}; exec sleep 60"), limits);
    assert!(reason(&heard.outcome, FailureKind::Timeout).contains("200 ms"), "{heard:?}");
}

#[test]
fn a_client_is_killed_when_the_user_wants_to_stop() {
    let place = Place::new();
    let program = place.script("client.sh", "exec sleep 60");
    let lab = Lab::loopback().unwrap();
    let (stop, log) = (AtomicBool::new(true), place.path("client.log"));
    let heard = client::run_until(lab.client(), &program, &assignment(), LIMITS, &log, &stop).unwrap();
    assert!(reason(&heard.outcome, FailureKind::Client).starts_with("interrupted"), "{heard:?}");
}

#[test]
fn a_client_that_says_too_much_is_killed() {
    let place = Place::new();
    let said = speech(&place, &vec![ClientMessage::Samples(Vec::new()); 2000]);
    let hello = speech_of_hello(&place);
    let limits = Limits { bytes: 5000, ..LIMITS };
    let heard = place.run_client(&format!("{hello}; {said}; {said}; exec sleep 60"), limits);
    assert!(reason(&heard.outcome, FailureKind::Limit).contains("exceeded 5000 bytes"), "{heard:?}");
}

fn speech_of_hello(place: &Place) -> String {
    let path = place.path("hello");
    fs::write(&path, frame::encode(&hello()).unwrap()).unwrap();
    format!("cat {}", path.display())
}

#[test]
fn a_client_that_is_not_there_is_named() {
    let place = Place::new();
    let lab = Lab::loopback().unwrap();
    let heard = client::run(
        lab.client(),
        Path::new("/nonexistent/h123"),
        &assignment(),
        LIMITS,
        &place.path("client.log"),
    );
    let outcome = heard.unwrap().outcome;
    assert!(reason(&outcome, FailureKind::Client).contains("/nonexistent/h123"), "{outcome:?}");
}

/// An external client whose program is a script that is asked for one request of the wrk form.
fn run_external(place: &Place, name: &str, script: &str, limits: &Limits) -> ClientOutcome {
    let program = place
        .script(&format!("{name}.sh"), &format!("[ \"$1\" = -V ] && {{ echo tool/1.2; exit; }}\n{script}"));
    let folder = place.path(name);
    fs::create_dir(&folder).unwrap();
    let text = format!(
        "title = 'fake'\nprogram = ['{}']\noutput = 'wrk'\n\
         version = {{ command = ['{{{{program}}}}', '-V'], after = 'tool/' }}\ncan = {{ requests = 9 }}\n\
         variant = [{{ name = 'h1' }}]\n[start]\ncommand = ['{{{{program}}}}', '{{{{url}}}}', '{{{{connections}}}}']\n",
        program.display()
    );
    fs::write(folder.join("client.toml"), text).unwrap();
    let load = LoopLoad { connections: 3, requests: Some(9), ..LoopLoad::new("/a") };
    let workload = Workload::Closed(ClosedLoop::new(load, None));
    let (lab, stop) = (Lab::loopback().unwrap(), AtomicBool::new(false));
    let spec = ExternalSpec {
        folder: &place.path(&format!("{name}-run")),
        log: &place.path(&format!("{name}.log")),
        tool: Path::new("/nonexistent/h123"),
        key_hash: "",
        is_outside: false,
        has_names: false,
        stop: &stop,
        begins: Begins::UNHEARD,
    };
    let assignment = Assignment { workload, ..assignment() };
    Clients::read(&folder).unwrap().run(lab.client(), &assignment, limits, &spec).unwrap()
}

#[test]
fn a_external_clients_words_become_the_runs() {
    let place = Place::new();
    let script = "echo to somebody >&2\necho \"asked for $1 over $2\"\n\
                  echo 'h123 sums 2000 9 99 0 0 0 0 0'\necho 'h123 latency 500 9'\necho 'h123 report_cpu 0'";
    let outcome = run_external(&place, "good", script, &LIMITS);
    assert_eq!(outcome.outcome, Outcome::Ok);
    let external = outcome.report.external.unwrap();
    assert_eq!(
        (external.client.as_str(), external.version.as_str(), external.requests_ok),
        ("good", "1.2", 9)
    );
    assert_eq!(external.times().collect::<Vec<_>>(), [(500_000, 9)]);
    assert!(outcome.report.finished_ns > outcome.report.started_ns && outcome.report.urls == ["/a"]);
    let log = fs::read_to_string(place.path("good.log")).unwrap();
    let target = assignment().target;
    let url = format!("http://{}/a", target.address);
    assert!(log.contains("to somebody") && log.contains(&format!("asked for {url} over 3")), "{log}");
}

#[test]
fn whatever_a_external_client_does_wrong_is_an_outcome_with_its_last_words() {
    let place = Place::new();
    let short = Limits { time: Duration::from_millis(300), ..LIMITS };
    let small = Limits { bytes: 1000, ..LIMITS };
    for (name, script, limits, kind, expected) in [
        (
            "nonsense",
            "echo all is well",
            &LIMITS,
            FailureKind::Client,
            "not in the format wrk (exit status: 0): the output has no line `h123 sums",
        ),
        (
            "failing",
            "echo out of memory >&2; exit 3",
            &LIMITS,
            FailureKind::Client,
            "its last lines: out of memory",
        ),
        (
            "crashing",
            "echo bye >&2; kill -SEGV $$",
            &LIMITS,
            FailureKind::Client,
            "crashing crashed (signal: 11",
        ),
        (
            "hanging",
            "sleep 60",
            &short,
            FailureKind::Timeout,
            "hanging did not finish within 300 ms and was killed",
        ),
        ("endless", "yes", &small, FailureKind::Limit, "the output of endless exceeded"),
        (
            "half",
            "echo 'h123 sums 2000 9 99 0 0 0 0 0'; exit 1",
            &LIMITS,
            FailureKind::Client,
            "half failed (exit status: 1)",
        ),
    ] {
        let outcome = run_external(&place, name, script, limits);
        let Outcome::Failed(Failure { kind: found, reason }) = outcome.outcome else {
            panic!("{name}: {outcome:?}")
        };
        assert!(found == kind && reason.contains(expected), "{name}: {reason}");
        assert!(outcome.samples.is_empty());
    }
}
