//! Servers that already run, behind an emulated network: `[server.NAME] url`, `--url` and `page-model`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::generator::Serving;
use crate::permissions::as_user;
use crate::real_server::RealServer;
use crate::tool::{Ended, H123, cell, check, folder, machine, median, summary};

const HTML: &str =
    "<!doctype html><link rel=stylesheet href=/a.css><img src='/b.png?x=1'><img src=/missing.png>";
const IMAGE_BYTES: usize = 500_000;
/// The time of the image's bytes at 10 Mbit/s.
const IMAGE_S: f64 = 0.4;
const RTT_S: f64 = 0.05;

/// nginx with a small site, over HTTP/1.1 and HTTP/2.
pub(crate) fn site() -> RealServer {
    let nginx = RealServer::nginx(&[
        "ssl_protocols TLSv1.3; default_type text/html; types { text/css css; image/png png; }",
    ]);
    let www = nginx.folder.path().join("www");
    fs::write(www.join("index.html"), HTML).unwrap();
    fs::write(www.join("a.css"), "body { background: url(c.png) }").unwrap();
    fs::write(www.join("b.png"), vec![1; IMAGE_BYTES]).unwrap();
    fs::write(www.join("c.png"), "c").unwrap();
    nginx
}

fn in_folder(args: &[&str], folder: &Path) -> Ended {
    Ended::of(Command::new(H123).args(args).current_dir(folder).output().unwrap())
}

/// A study of `quick` for the site, over 50 ms and 10 Mbit/s, with this call of the tool.
fn measured(site: &RealServer, call: impl Fn(&[&str], &Path) -> Ended) -> Value {
    let folder = folder();
    let (out, ca) = (folder.path().join("out"), site.folder.path().join("ca.pem"));
    fs::create_dir(folder.path().join("networks")).unwrap();
    let network = "title = 'x'\nsource = 'x'\nrtt = '50ms'\nrate = '10Mbit/s'\n";
    fs::write(folder.path().join("networks/slow.toml"), network).unwrap();
    let url = format!("https://127.0.0.1:{}/", site.ports[0]);
    let args =
        ["run", "quick", "--url", &url, "--cacert", ca.to_str().unwrap(), "--network", "slow", "--runs", "2"];
    let ended = call(&[&args[..], &["--out", out.to_str().unwrap()]].concat(), folder.path());
    ended.expect_measured();
    assert!(ended.stderr.contains("1 resource left out, which could not be fetched"), "{}", ended.stderr);
    let plan: Value = serde_json::from_slice(&fs::read(out.join("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["topology"]["name"], "outside");
    let environment = fs::read_to_string(out.join("environment.json")).unwrap();
    assert!(environment.contains("h1s, h2, no h3"), "{environment}");
    summary(&out)
}

fn check_measured(summary: &Value) {
    for variant in ["h1s", "h2"] {
        let cell = cell(summary, &[variant]);
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        // TCP and TLS take a round trip each, the document one, and the image one and its bytes' time.
        let load_s = median(cell, "page_load_time") / 1e9;
        assert!((4.0 * RTT_S + IMAGE_S..4.0).contains(&load_s), "{variant}: {load_s} s");
        let handshake_s = median(cell, "handshake_time") / 1e9;
        assert!((2.0 * RTT_S..1.0).contains(&handshake_s), "{variant}: {handshake_s} s");
        // In ms and Mbit/s; the link as it was measured on a machine that may have other work.
        for (name, range) in [("calibration", 49.0..55.0), ("network_rate", 9.0..10.3)] {
            let measured = check(cell, name)["measured"].as_str().unwrap();
            let number: f64 = measured.split(' ').next().unwrap().parse().unwrap();
            assert!(range.contains(&number), "{name}: {measured}");
        }
        let caveats = cell["validity"].as_array().unwrap();
        let found = |check: &str| caveats.iter().find(|found| found["check"] == check);
        assert!(
            found("outside").unwrap()["measured"].as_str().unwrap().contains("TCP is relayed"),
            "{cell:#}"
        );
        for unknown in ["body_length", "body_content"] {
            assert!(found(unknown).is_none(), "nobody knows the bodies: {cell:#}");
        }
    }
    let cell = cell(summary, &["h3"]);
    assert!(cell.to_string().contains("it announces no HTTP/3"), "{cell:#}");
}

#[test]
fn a_site_is_measured_through_the_emulated_network() {
    let _machine = machine();
    let site = site();
    check_measured(&measured(&site, in_folder));
}

#[test]
fn an_ordinary_user_measures_a_site_too() {
    let _machine = machine();
    let site = site();
    check_measured(&measured(&site, as_user));
}

/// For root and for an ordinary user alike, the handshake takes one round trip of the emulated link.
#[test]
fn http3_reaches_a_site_end_to_end() {
    let _machine = machine();
    let (site, folder) = (Serving::start(), folder());
    fs::create_dir(folder.path().join("networks")).unwrap();
    let network = "title = 'x'\nsource = 'x'\nrtt = '50ms'\nrate = '10Mbit/s'\n";
    fs::write(folder.path().join("networks/slow.toml"), network).unwrap();
    let (url, ca) = (site.url(4, "/small/"), site.ca());
    let args = ["run", "quick", "--url", &url, "--page", "small", "--cacert", &ca, "--network", "slow"];
    let calls: [fn(&[&str], &Path) -> Ended; 2] = [in_folder, as_user];
    for (out, call) in ["root", "user"].into_iter().zip(calls) {
        call(&[&args[..], &["--runs", "3", "--out", out]].concat(), folder.path()).expect_measured();
        let found = summary(&folder.path().join(out));
        let cell = cell(&found, &["h3"]);
        assert_eq!((cell["runs_ok"].as_u64(), median(cell, "requests")), (Some(3), 3.0), "{cell:#}");
        let runs = cell["metrics"]["handshake_time"]["per_run"].as_array().unwrap();
        let fastest = runs.iter().map(|run| run["value"].as_f64().unwrap() / 1e9).reduce(f64::min).unwrap();
        assert!((RTT_S..2.0 * RTT_S).contains(&fastest), "{out}: {fastest} s");
        let outside = check(cell, "outside")["measured"].as_str().unwrap();
        assert!(outside.contains("QUIC reaches it end to end"), "{outside}");
    }
}

/// Each resource of a page on two hosts is requested where it is.
#[test]
fn a_page_on_several_hosts_is_loaded_from_all() {
    let _machine = machine();
    let block = "ssl_protocols TLSv1.3; default_type image/png;";
    let site = RealServer::nginx(&[block, block]);
    let folder = folder();
    fs::create_dir(folder.path().join("pages")).unwrap();
    let [main, other] = [0, 1].map(|host| format!("https://127.0.0.1:{}", site.ports[host]));
    let page = format!(
        "title = 'x'\norigin = '{main}'\n[[resource]]\npath = '/index.html'\nkind = 'html'\nsizes = ['100B']\n\
         [[resource]]\npath = '/pushed.css'\nkind = 'css'\nsizes = ['5kB']\nnamed_by = '/index.html'\norigin = '{other}'\n"
    );
    fs::write(folder.path().join("pages/two.toml"), page).unwrap();
    let url = format!("{main}/");
    let args = [
        "run",
        "quick",
        "--url",
        &url,
        "--insecure",
        "--page",
        "two",
        "--network",
        "lan",
        "--variant",
        "h1s",
    ];
    let args = [&args[..], &["--variant", "h2", "--runs", "1", "--out", "out"]].concat();
    in_folder(&args, folder.path()).expect_measured();
    let out = folder.path().join("out");
    for variant in ["h1s", "h2"] {
        let found = summary(&out);
        let cell = cell(&found, &[variant]);
        assert_eq!((median(cell, "requests"), median(cell, "connections")), (2.0, 2.0), "{cell:#}");
        assert_eq!(median(cell, "body_bytes_received"), 5_100.0, "{cell:#}");
    }
}

/// One clear error each, and nothing is started or written.
#[test]
fn a_site_that_cannot_be_measured_is_one_error() {
    let site = site();
    let folder = folder();
    let port = site.ports[0];
    let study = |url: &str, more: &str| {
        format!(
            "question = 'q'\nmetric = 'page_load_time'\nbaseline = {{ variant = 'h2' }}\nmargin = '3%'\nruns = 2\n\
             [matrix]\nvariant = ['h2', 'h3']\nserver = ['mine']\nnetwork = ['lan']\nworkload = ['w']\n\
             [workload.w]\nkind = 'page'\npage = 'small'\n[server.mine]\nurl = '{url}'\n{more}"
        )
    };
    let good = format!("https://127.0.0.1:{port}/");
    // The certificate is for 127.0.0.1 only.
    let wrong_host = format!("https://localhost:{port}/");
    let ca = &format!("cacert = '{}'\n", site.file("ca.pem"));
    for (text, part) in [
        (study("https://127.0.0.1:1/", ""), "Connection refused"),
        (study("https://nothing.invalid/", ""), "looking up `nothing.invalid`"),
        (study(&good, ""), "trust the CA that signed the certificate with `cacert` in `[server.mine]`"),
        (
            study(&wrong_host, ca),
            "use a host name of the certificate, or accept any certificate with `insecure`",
        ),
        (study(&good, "cacert = 'missing.pem'\n"), "`cacert` missing.pem"),
        (study(&good, "insecure = true\nmost_requests = 2\n"), "raise `most_requests`"),
    ] {
        fs::write(folder.path().join("s.toml"), text).unwrap();
        let ended = in_folder(&["run", "s.toml", "--out", "out"], folder.path()).expect(2);
        assert!(ended.stderr.contains(part), "{}\nshould contain {part}", ended.stderr);
        assert!(!folder.path().join("out").exists(), "nothing is started");
    }
    let plain = cleartext();
    let origin = Serving::start();
    for (url, options, part) in [
        (format!("{good}a.css"), &["--insecure"][..], "cannot be modelled"),
        (format!("{good}missing/x"), &["--insecure"], "status 404, expected 200"),
        (good, &[], "with --cacert FILE, or accept any certificate with --insecure"),
        (wrong_host, &["--cacert", &site.file("ca.pem")], "use a host name of the certificate, or accept"),
        (format!("https://{plain}/"), &[], "use an http:// URL"),
        (origin.url(3, "/small/"), &["--insecure"], "it lacks HTTP/1.1, which h123 uses to follow pages"),
        ("http://127.0.0.1:1/".to_owned(), &[], "Connection refused"),
        ("ftp://127.0.0.1/".to_owned(), &[], "the scheme is neither http nor https"),
    ] {
        let call = [&["run", "quick", "--url", &url, "--out", "out"], options].concat();
        let ended = in_folder(&call, folder.path()).expect(2);
        assert!(ended.stderr.contains(part), "{}\nshould contain {part}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(!folder.path().join("out").exists(), "nothing is started");
    }
}

/// The address of a server that answers everything in cleartext, until the tests end.
fn cleartext() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    address
}

#[test]
fn a_page_is_modelled_from_a_url_and_from_a_har_file() {
    let site = site();
    let folder = folder();
    let url = format!("https://127.0.0.1:{}/", site.ports[0]);
    let ended = in_folder(&["page-model", &url, "--insecure", "-o", "page.toml"], folder.path()).expect(0);
    assert!(ended.stderr.contains("4 resources"), "{}", ended.stderr);
    let page = fs::read_to_string(folder.path().join("page.toml")).unwrap();
    for part in ["path = \"/b.png?x=1\"", "sizes = [\"500000B\"]", "named_by = \"/a.css\"", "/missing.png"] {
        assert!(page.contains(part), "{page}\nshould contain {part}");
    }
    let again = in_folder(&["page-model", &url, "-o", "page.toml"], folder.path()).expect(2);
    assert!(again.stderr.contains("exists; choose another name"), "{}", again.stderr);
    let entry = |url: &str, kind: &str| {
        format!(
            r#"{{"request":{{"method":"GET","url":"{url}"}},"response":{{"status":200,"bodySize":7,"content":{{"mimeType":"{kind}"}}}}}}"#
        )
    };
    let har = |entries: &[String]| format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","));
    let good = har(&[entry("https://a.test/", "text/html"), entry("https://b.test/x", "image/png")]);
    fs::write(folder.path().join("good.har"), &good).unwrap();
    let ended = in_folder(&["page-model", "good.har"], folder.path()).expect(0);
    assert!(ended.stdout.contains("origin = \"https://b.test\""), "{}", ended.stdout);
    let many: Vec<String> =
        (0..10_000).map(|number| entry(&format!("https://a.test/{number}"), "text/html")).collect();
    for (text, part) in [(&good[..40], "it is not a HAR file"), (&har(&many), "it has 10000 entries")] {
        fs::write(folder.path().join("bad.har"), text).unwrap();
        let ended = in_folder(&["page-model", "bad.har"], folder.path()).expect(2);
        assert!(ended.stderr.contains(part) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
    in_folder(&["page-model", "none.har"], folder.path()).expect(2);
}
