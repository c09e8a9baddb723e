//! Media of sites: manifests of DASH, HLS and HDS that are read when a study is planned, and players of their
//! segments through an emulated network.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::real_server::RealServer;
use crate::tool::{Ended, H123, cell, folder, machine, median, summary};

const FILM: &str = "title = 'x'\nsegment = '1s'\nlength = '4s'\n[video]\nladder = ['400kbit/s', '1Mbit/s']\n\
                    [audio]\nladder = ['64kbit/s']\n";
const FRAGMENTS: &str = "title = 'x'\nsegment = '1s'\nlength = '4s'\nhds = { fragments = 5, gaps = [2] }\n\
                         [video]\nladder = ['400kbit/s']\n";

fn in_folder(args: &[&str], folder: &Path) -> Ended {
    Ended::of(Command::new(H123).args(args).current_dir(folder).output().unwrap())
}

/// nginx with a film as DASH and HLS, and another one as HDS, on two origins.
fn site() -> RealServer {
    let types = "ssl_protocols TLSv1.3; default_type application/octet-stream;";
    let nginx = RealServer::nginx(&[types, types]);
    let folder = folder();
    fs::create_dir(folder.path().join("media")).unwrap();
    let www = nginx.folder.path().join("www");
    for (name, text) in [("film", FILM), ("fragments", FRAGMENTS)] {
        fs::write(folder.path().join(format!("media/{name}.toml")), text).unwrap();
        let to = www.join(name);
        in_folder(&["content", "make", to.to_str().unwrap(), "--modelled", name], folder.path()).expect(0);
    }
    nginx
}

/// The cells of the study `quick` for a URL, in one run of each variant.
fn played(site: &RealServer, url: &str, more: &[&str]) -> (Value, Value) {
    let (folder, ca) = (folder(), site.file("ca.pem"));
    let args = ["run", "quick", "--url", url, "--cacert", &ca, "--network", "lan", "--runs", "1"];
    let args = [&args[..], &["--variant", "h1s", "--variant", "h2", "--out", "out"], more].concat();
    in_folder(&args, folder.path()).expect_measured();
    let out = folder.path().join("out");
    let plan = serde_json::from_slice(&fs::read(out.join("plan.json")).unwrap()).unwrap();
    (plan, summary(&out))
}

#[test]
fn a_manifest_of_a_site_is_played_through_the_network() {
    let _machine = machine();
    let site = site();
    let origin = format!("https://127.0.0.1:{}", site.ports[0]);
    // Segments of a track; initializations come to requests of DASH and HLS.
    for (manifest, rule, requests) in [
        ("film/manifest.mpd?v=1", "dashjs", 10.0..=12.0),
        ("film/main.m3u8", "hlsjs", 10.0..=12.0),
        ("fragments/manifest.f4m", "throughput", 4.0..=4.0),
    ] {
        let (plan, summary) = played(&site, &format!("{origin}/{manifest}"), &[]);
        assert_eq!(plan["topology"]["name"], "outside");
        let player = &plan["workloads"][0]["workload"];
        assert_eq!(
            (&player["rule"]["name"], &player["origin"]),
            (&Value::from(rule), &Value::from(origin.clone()))
        );
        for variant in ["h1s", "h2"] {
            let cell = cell(&summary, &[variant]);
            assert_eq!(cell["runs_ok"], 1, "{manifest}: {cell:#}");
            assert!(requests.contains(&median(cell, "requests")), "{manifest}: {cell:#}");
            assert_eq!(median(cell, "requests_failed"), 0.0, "{manifest}: {cell:#}");
            assert!(median(cell, "startup_time") < 3e9, "{manifest}: {cell:#}");
        }
    }
}

/// The segments decide which server it is: a manifest may be elsewhere.
#[test]
fn a_study_plays_the_segments_where_they_are() {
    let _machine = machine();
    let (site, folder) = (site(), folder());
    let [here, there] = [0, 1].map(|host| format!("https://127.0.0.1:{}", site.ports[host]));
    let mpd = fs::read_to_string(site.folder.path().join("www/film/manifest.mpd")).unwrap();
    let elsewhere = mpd.replacen("<Period", &format!("<BaseURL>{there}/film/</BaseURL><Period"), 1);
    assert_ne!(mpd, elsewhere);
    fs::write(site.folder.path().join("www/elsewhere.mpd"), elsewhere).unwrap();
    let study = |server: &str| {
        format!(
            "question = 'q'\nmetric = 'startup_time'\nbaseline = {{ variant = 'h2' }}\nmargin = '3%'\nruns = 1\n\
             [matrix]\nvariant = ['h2']\nserver = ['mine']\nnetwork = ['lan']\nworkload = ['w']\n\
             [workload.w]\nkind = 'player'\nmedia = 'film'\nbuffer = '9s'\nrule = 'fixed'\nrepresentation = '1Mbit/s'\n\
             [media.film]\nmanifest = '{here}/elsewhere.mpd'\nlength = '2s'\n\
             [server.mine]\nurl = '{server}/'\ncacert = '{}'\n",
            site.file("ca.pem")
        )
    };
    fs::write(folder.path().join("s.toml"), study(&here)).unwrap();
    let ended = in_folder(&["plan", "s.toml"], folder.path()).expect(2);
    let expected =
        format!("the segments of its media are at {there}, and not at the server `mine`; use a server");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    fs::write(folder.path().join("s.toml"), study(&there)).unwrap();
    in_folder(&["run", "s.toml", "--out", "out"], folder.path()).expect_measured();
    let found = summary(&folder.path().join("out"));
    // Two segments and an initialization of each track.
    let cell = cell(&found, &["h2"]);
    assert_eq!((cell["runs_ok"].as_u64(), median(cell, "requests")), (Some(1), 6.0), "{cell:#}");
}

/// A server on the loopback interface that answers all requests like this, until the tests end.
fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let head = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
            let _ = stream.write_all(&answer(&path));
        }
    });
    format!("http://{address}")
}

fn response(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{fields}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Manifests that cannot be played, each in its own way.
fn unplayable(path: &str) -> Vec<u8> {
    match path {
        "/loop.mpd" => response("302 Found", "location: /loop.mpd\r\n", ""),
        "/nowhere.mpd" => response("302 Found", "location: ftp://a.test/\r\n", ""),
        "/broken.mpd" => response("200 OK", "", "<MPD><Period></MPD>"),
        "/page.m3u8" => response("200 OK", "", "<!doctype html><p>Not found"),
        "/broken.f4m" => response("200 OK", "", "<manifest><media url='a'/></manifest>"),
        "/live.m3u8" => response("200 OK", "", "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n"),
        "/two.m3u8" => response(
            "200 OK",
            "",
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXTINF:2,\nhttp://b.test/2.ts\n#EXT-X-ENDLIST\n",
        ),
        "/lost.m3u8" => response("200 OK", "", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000000\ngone.m3u8\n"),
        // A list that names itself.
        "/circle.m3u8" => response("200 OK", "", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ncircle.m3u8\n"),
        "/many.m3u8" => {
            let variant = |number: u32| format!("#EXT-X-STREAM-INF:BANDWIDTH=1\n{number}.m3u8\n");
            let variants: String = (0..20_000).map(variant).collect();
            response("200 OK", "", &format!("#EXTM3U\n{variants}"))
        }
        "/endless.mpd" => {
            let body = "<MPD type='static' mediaPresentationDuration='PT9000S'><Period><AdaptationSet contentType='video'>\
                        <SegmentTemplate timescale='1000' duration='1' media='$Number$'/>\
                        <Representation id='v' bandwidth='1'/></AdaptationSet></Period></MPD>";
            response("200 OK", "", body)
        }
        "/stub.mpd" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<MPD>".to_vec(),
        _ => response("404 Not Found", "", ""),
    }
}

/// One clear error each, and nothing is started or written.
#[test]
fn a_manifest_that_cannot_be_played_is_one_error() {
    let folder = folder();
    let server = answering(unplayable);
    let study = |manifest: &str| {
        format!(
            "question = 'q'\nmetric = 'startup_time'\nbaseline = {{ variant = 'h1' }}\nmargin = '3%'\nruns = 2\n\
             [matrix]\nvariant = ['h1', 'h2c']\nserver = ['mine']\nnetwork = ['lan']\nworkload = ['w']\n\
             [workload.w]\nkind = 'player'\nmedia = 'film'\nbuffer = '9s'\nrule = 'dashjs'\n\
             [media.film]\nmanifest = '{manifest}'\n[server.mine]\nurl = '{server}/'\n"
        )
    };
    for (manifest, part) in [
        ("/loop.mpd", "leads on after 5 redirects"),
        ("/nowhere.mpd", "leads to `ftp://a.test/`, which is no URL"),
        ("/broken.mpd", "/broken.mpd: "),
        ("/page.m3u8", "it is neither an MPD, an HLS playlist"),
        ("/broken.f4m", "/broken.f4m: "),
        ("/live.m3u8", "is the manifest of a live stream"),
        ("/two.m3u8", "and at http://b.test, and a player has one server"),
        ("/lost.m3u8", "gone.m3u8 answers with status 404, expected 200"),
        ("/circle.m3u8", "the playlist lists variants where segments are expected"),
        ("/many.m3u8", "refers to more than 10000 resources"),
        ("/endless.mpd", "segments"),
        ("/stub.mpd", "/stub.mpd: "),
        ("/none.mpd", "answers with status 404, expected 200"),
    ] {
        let url = format!("{server}{manifest}");
        fs::write(folder.path().join("s.toml"), study(&url)).unwrap();
        for args in [&["run", "s.toml"][..], &["run", "quick", "--url", &url]] {
            let call = [args, &["--out", "out"]].concat();
            let ended = in_folder(&call, folder.path()).expect(2);
            let words = &ended.stderr;
            assert!(words.contains(part), "{words}\nshould contain {part}");
            assert!(words.contains("; "), "{words}\nshould say what to do");
            // The rest is the line of the study and a caret.
            let others =
                words.lines().filter(|line| !line.contains(" | ") && !line.trim_end().ends_with('|'));
            assert!(words.starts_with("h123: ") && others.count() == 1, "{words}");
            assert!(!folder.path().join("out").exists(), "nothing is started");
        }
    }
    fs::write(folder.path().join("s.toml"), study("http://127.0.0.1:1/x.mpd")).unwrap();
    let ended = in_folder(&["plan", "s.toml"], folder.path()).expect(2);
    let expected = "check it from this machine with `h123 urls http://127.0.0.1:1/x.mpd`";
    assert!(
        ended.stderr.contains("Connection refused") && ended.stderr.contains(expected),
        "{}",
        ended.stderr
    );
}
