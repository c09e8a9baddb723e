//! Real browsers against nginx over the loopback, and fake browsers that misbehave.

use drive::{Browsers, ExternalClient};
use model::variant::HttpVersion;

use super::*;

const BOTH: [&str; 2] = ["chromium", "firefox"];
/// The programs in their descriptions.
const CHROMIUM_PROGRAMS: &str = "\"/usr/lib/chromium/chromium\", \"/opt/google/chrome/chrome\", \"chromium\", \"chromium-browser\", \"google-chrome\",";
const FIREFOX_PROGRAMS: &str =
    "\"/usr/lib/firefox-esr/firefox-esr\", \"/usr/lib/firefox/firefox\", \"firefox-esr\", \"firefox\"";

/// The description of a browser with a change in its files, as a browser of the name `mine`.
fn browser_with(place: &Place, name: &str, wrong: &str, right: &str) -> ExternalClient {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../browsers").join(name);
    let folder = place.path("mine");
    fs::create_dir_all(&folder).unwrap();
    let mut changes = 0;
    for file in fs::read_dir(built_in).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        changes += usize::from(text.contains(wrong));
        fs::write(folder.join(file.file_name()), text.replacen(wrong, right, 1)).unwrap();
    }
    assert_eq!(changes, 1, "{wrong}");
    ExternalClient::Browser(Box::new(Browsers::read(&folder).unwrap()))
}

fn browser(name: &str) -> ExternalClient {
    ExternalClient::find(name).unwrap()
}

/// A load of the place's page over a variant from a target.
fn load(
    place: &Place,
    browser: &ExternalClient,
    variant: Variant,
    target: Target,
    limits: &Limits,
) -> ClientOutcome {
    load_with_key(place, browser, variant, target, limits, &place.authority.key_hash())
}

/// The same, with the key of another server.
fn load_with_key(
    place: &Place,
    browser: &ExternalClient,
    variant: Variant,
    target: Target,
    limits: &Limits,
    key_hash: &str,
) -> ClientOutcome {
    let lab = Lab::loopback().unwrap();
    let stop = AtomicBool::new(false);
    let (folder, log) = (place.path("browser"), place.path("browser.log"));
    let spec = ExternalSpec {
        folder: &folder,
        log: &log,
        tool: Path::new("/nonexistent/h123"),
        key_hash,
        is_outside: false,
        has_names: false,
        stop: &stop,
        begins: Begins::UNHEARD,
    };
    let assignment = Assignment {
        target: Target { variant, ..target },
        workload: Workload::Page(place.pages[0].clone()),
        ..assignment()
    };
    let outcome = browser.run(lab.client(), &assignment, limits, &spec).unwrap();
    assert_eq!(processes_of(&log), Vec::<String>::new(), "no process of the browser is left");
    outcome
}

/// The processes whose standard error is a file, which those of a browser inherit.
fn processes_of(log: &Path) -> Vec<String> {
    // A browser that was not started has none.
    let Ok(log) = log.canonicalize() else { return Vec::new() };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let of_log =
        processes.filter(|process| fs::read_link(process.join("fd/2")).is_ok_and(|file| file == log));
    of_log.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}

/// Runs a job with nginx, which serves the place's page over a variant.
fn with_nginx(place: &Place, variant: Variant, job: impl FnOnce(Target)) {
    let (run, content) = (place.path("run"), place.path("content"));
    drive::write_content(&content, &place.pages).unwrap();
    let lab = Lab::loopback().unwrap();
    let variants = [variant];
    let server =
        Servers::find("nginx").unwrap().start(lab.server(), &place.spec(&run, &content, &variants)).unwrap();
    job(server.target(variant).unwrap());
    server.stop().unwrap();
}

#[test]
fn browsers_load_exactly_the_page() {
    for (name, variant) in BOTH.into_iter().flat_map(|name| VARIANTS.map(|variant| (name, variant))) {
        let place = Place::new();
        with_nginx(&place, variant, |target| {
            let outcome = load(&place, &browser(name), variant, target, &LIMITS);
            check_load(&outcome, name, variant);
            let folder = place.path("browser");
            assert!(fs::read(folder.join("page.jpeg")).unwrap().starts_with(&[0xff, 0xd8]), "a JPEG");
            let har = fs::read_to_string(folder.join("page.har")).unwrap();
            assert_eq!(workload::page_model::parse_har(&har).unwrap().resources.len(), 2);
        });
    }
}

const VARIANTS: [Variant; 3] = [Variant::H1, Variant::H1s, Variant::H2];

fn check_load(outcome: &ClientOutcome, name: &str, variant: Variant) {
    assert_eq!(outcome.outcome, Outcome::Ok, "{name}, {variant}");
    assert_eq!(outcome.report.urls, ["/p/", "/p/a.js"]);
    let rows: Vec<_> = outcome
        .samples
        .iter()
        .map(|row| (row.url, row.status, row.version, row.response_body_bytes, row.outcome.is_ok()))
        .collect();
    let version = Some(variant.http());
    assert_eq!(rows, [(0, Some(200), version, 1000, true), (1, Some(200), version, 3000, true)]);
    let [events] = outcome.page_events.as_slice() else { panic!("{outcome:?}") };
    assert_eq!((events.console_errors, &events.console), (0, &Vec::new()), "{name}, {variant}");
    assert!(events.loaded_ns > outcome.samples[1].done_ns, "{events:?}");
    assert!(events.first_contentful_paint_ns > events.first_byte_ns, "{events:?}");
    assert_eq!(events.layout_shift_millionths.is_some(), name == "chromium");
    let external = outcome.report.external.as_ref().unwrap();
    assert_eq!(external.client, name);
    assert!(external.version.split('.').count() >= 2 && outcome.report.cpu_user_ns > 0, "{external:?}");
    let of_samples: Vec<Option<u32>> = outcome.samples.iter().map(|row| row.connection).collect();
    assert_eq!((of_samples.as_slice(), outcome.connections.len()), ([Some(0), Some(0)].as_slice(), 1));
    let [row] = outcome.connections.as_slice() else { panic!("{outcome:?}") };
    assert!(row.ready_ns.is_some() && row.lacks_bytes, "{row:?}");
    assert_eq!(row.tls_version.as_deref(), variant.is_encrypted().then_some("TLSv1_3"), "{row:?}");
}

#[test]
fn another_version_than_the_cells_is_asserted_for_every_response() {
    for (name, wrong, right) in [
        (
            "chromium",
            "name = \"h2\"\narguments = [\"--disable-quic\"]",
            "name = \"h2\"\narguments = [\"--disable-http2\"]",
        ),
        ("firefox", "in [\"h1\", \"h1s\"]", "in [\"h1\", \"h1s\", \"h2\"]"),
    ] {
        let place = Place::new();
        let forgetful = browser_with(&place, name, wrong, right);
        with_nginx(&place, Variant::H2, |target| {
            let outcome = load(&place, &forgetful, Variant::H2, target, &LIMITS);
            assert_eq!(outcome.samples.len(), 2, "{outcome:?}");
            for row in &outcome.samples {
                assert_eq!(row.version, Some(HttpVersion::Http11));
                let words = reason(&row.outcome, FailureKind::WrongVersion);
                assert_eq!(words, "the response used the protocol `http/1.1`, not HTTP/2");
            }
        });
    }
}

#[test]
fn chromium_fails_the_load_of_a_server_without_http3() {
    let place = Place::new();
    with_nginx(&place, Variant::H2, |target| {
        let outcome = load(&place, &browser("chromium"), Variant::H3, target, &LIMITS);
        let words = reason(&outcome.outcome, FailureKind::Protocol);
        assert!(words.starts_with("the browser could not load https://server.h123.test:"), "{words}");
        assert!(words.contains("net::ERR_"), "{words}");
        assert!(outcome.samples.is_empty());
    });
}

#[test]
fn firefox_falls_back_from_http3_and_every_response_fails() {
    let place = Place::new();
    with_nginx(&place, Variant::H2, |target| {
        let outcome = load(&place, &browser("firefox"), Variant::H3, target, &LIMITS);
        assert_eq!(outcome.samples.len(), 2, "{outcome:?}");
        for row in &outcome.samples {
            let words = reason(&row.outcome, FailureKind::WrongVersion);
            // Versions of Firefox fall back to HTTP/2 or HTTP/1.1.
            let protocol = words.strip_prefix("the response used the protocol `").unwrap();
            assert!(["h2`, not HTTP/3", "http/1.1`, not HTTP/3"].contains(&protocol), "{words}");
        }
    });
}

#[test]
fn a_server_that_nobody_trusts_fails_the_load() {
    for (name, expected) in [("chromium", "net::ERR_CERT"), ("firefox", ": SEC_ERROR_")] {
        let place = Place::new();
        with_nginx(&place, Variant::H2, |target| {
            let other = Place::new();
            let stranger = Target { trust: Trust::Authority(other.authority.pem()), ..target };
            let spec_key = other.authority.key_hash();
            let outcome = load_with_key(&place, &browser(name), Variant::H2, stranger, &LIMITS, &spec_key);
            let words = reason(&outcome.outcome, FailureKind::Tls);
            assert!(words.contains(expected), "{words}");
        });
    }
}

#[test]
fn a_browser_that_is_not_installed_is_unsupported() {
    for (name, wrong, package) in
        [("chromium", CHROMIUM_PROGRAMS, "chromium"), ("firefox", FIREFOX_PROGRAMS, "firefox-esr")]
    {
        let place = Place::new();
        let missing = browser_with(&place, name, wrong, "\"/nonexistent/browser\"");
        let expected =
            format!("/nonexistent/browser is not installed; install it with `apt-get install {package}`");
        let page = Workload::Page(place.pages[0].clone());
        let reason = missing.unsupported(Variant::H2, &page, &place.pins, Path::new("/nonexistent/h123"));
        assert_eq!(reason.as_ref(), Some(&expected));
        let outcome = load(&place, &missing, Variant::H2, assignment().target, &LIMITS);
        assert_eq!(outcome.outcome, Outcome::Unsupported(expected));
    }
}

#[test]
fn http1_connections_are_those_of_the_browser() {
    let four = Pins { http1_connections: 4, ..Pins::default() };
    let page = assignment().workload;
    let reason = browser("chromium").unsupported(Variant::H1s, &page, &four, Path::new("/nonexistent/h123"));
    let expected = "chromium opens 6 connections to a host, not 4; change `http1_connections`";
    assert_eq!(reason.as_deref(), Some(expected));
}

#[test]
fn whatever_a_browser_does_wrong_is_an_outcome_with_its_last_words() {
    let place = Place::new();
    let version = "[ \"$1\" = --version ] && { echo fake 1.2.3; exit 0; }\necho one word >&2";
    let port = "echo '{\"ws_port\": 1}' > \"$4/WebDriverBiDiServer.json\"";
    let cases = [
        ("chromium", "exit 7", FailureKind::Client, "the browser ended; its last lines: one word"),
        (
            "chromium",
            "printf 'hello\\0' >&4; sleep 60",
            FailureKind::Client,
            "the browser sent a malformed message",
        ),
        (
            "chromium",
            "sleep 60",
            FailureKind::Timeout,
            "the browser did not answer in time; its last lines: one word",
        ),
        ("firefox", "exit 7", FailureKind::Client, "the browser ended; its last lines: one word"),
        ("firefox", port, FailureKind::Client, "the browser ended; its last lines: one word"),
        (
            "firefox",
            "sleep 60",
            FailureKind::Timeout,
            "the browser did not answer in time; its last lines: one word",
        ),
    ];
    for (name, script, kind, expected) in cases {
        let list = if name == "chromium" { CHROMIUM_PROGRAMS } else { FIREFOX_PROGRAMS };
        let program = place.script("fake.sh", &format!("{version}\n{script}"));
        let fake = browser_with(&place, name, list, &format!("\"{}\"", program.display()));
        let limits = Limits { time: Duration::from_millis(500), ..LIMITS };
        let _ = fs::remove_file(place.path("browser.log"));
        let outcome = load(&place, &fake, Variant::H2, assignment().target, &limits);
        let words = reason(&outcome.outcome, kind);
        assert!(words.contains(expected), "{name}, {script}: {words}");
    }
}
