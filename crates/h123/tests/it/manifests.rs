//! `h123 urls`: manifests of media that ffmpeg wrote or that have gaps, on the disk and on servers, and
//! hostile ones.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use workload::formats::hds::bootstrap::{
    Bootstrap, FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
};
use workload::formats::hds::f4f::{ArchiveLayout, NewFragment};
use workload::formats::hds::f4m::{BootstrapSource, F4m, F4mMedia, MediaSource};

use crate::real_server::RealServer;
use crate::tool::{Ended, folder, h123};

/// Six seconds of a test picture and a tone, with a key frame every two, in this format.
fn ffmpeg(folder: &Path, output: &[&str]) {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"]);
    command.args(["-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25"]);
    command.args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "6"]);
    command.args(["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-b:v", "300k", "-c:a", "aac"]);
    let ended = command.args(output).current_dir(folder).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn urls(args: &[&str]) -> Ended {
    h123([&["urls"], args].concat())
}

/// The lines of an output, as files of a folder.
fn lines(ended: &Ended) -> BTreeSet<String> {
    ended.stdout.lines().map(|line| line.trim_start_matches('/').to_owned()).collect()
}

/// The files of a folder without these.
fn files(folder: &Path, without: &[&str]) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| !without.contains(&name.as_str())).collect()
}

#[test]
fn what_ffmpeg_wrote_is_listed_exactly() {
    for (output, manifest, references) in [
        (&["-f", "dash", "-seg_duration", "2", "x.mpd"][..], "x.mpd", &[][..]),
        (&["-f", "dash", "-seg_duration", "2", "-single_file", "1", "x.mpd"], "x.mpd", &[]),
        (&["-f", "hls", "-hls_time", "2", "-hls_list_size", "0", "x.m3u8"], "x.m3u8", &[]),
        (
            &["-f", "hls", "-hls_time", "2", "-hls_segment_type", "fmp4", "-hls_list_size", "0", "x.m3u8"],
            "x.m3u8",
            &[],
        ),
        (&["-f", "hds", "-min_frag_duration", "2000000", "."], "index.f4m", &["stream0.abst"]),
    ] {
        let folder = folder();
        ffmpeg(folder.path(), output);
        let path = folder.path().join(manifest);
        let ended = urls(&[path.to_str().unwrap()]).expect(0);
        let expected = files(folder.path(), &[&[manifest], references].concat());
        assert!(expected.len() >= 2, "{output:?}: {expected:?}");
        assert_eq!(lines(&ended), expected, "{output:?}: {}", ended.stderr);
    }
}

#[test]
fn missing_and_unlisted_files_are_named() {
    let folder = folder();
    ffmpeg(folder.path(), &["-f", "hls", "-hls_time", "2", "-hls_list_size", "0", "x.m3u8"]);
    fs::rename(folder.path().join("x1.ts"), folder.path().join("y1.ts")).unwrap();
    let path = folder.path().join("x.m3u8");
    let ended = urls(&[path.to_str().unwrap(), "--base", "https://a.test/m/"]).expect(3);
    assert_eq!(ended.stdout, "https://a.test/m/x0.ts\nhttps://a.test/m/x2.ts\n");
    for expected in [
        "HLS, on demand: 2 resources of 1 track",
        "listed only: 1 resource\n  https://a.test/m/x1.ts",
        "present only: 1 resource\n  https://a.test/m/y1.ts",
    ] {
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let ended = urls(&[path.to_str().unwrap(), "--json"]).expect(3);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let states: Vec<&str> =
        json["urls"].as_array().unwrap().iter().map(|own| own["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["listed and present", "listed only", "listed and present"]);
    assert_eq!(json["present_only"][0], "/y1.ts");
    assert_eq!(json["manifest"], path.to_str().unwrap(), "as it was named");
    assert_eq!((&json["format"], &json["live"]), (&Value::from("hls"), &Value::Null));
    assert_eq!(json["urls"][0]["duration_ns"], 2_000_000_000_u64);
}

/// Fragments 1, 2, 4 and 6 in an archive of two segments; the others do not exist.
fn write_archives(folder: &Path) {
    const NUMBERS: [(u32, u32); 4] = [(1, 1), (1, 2), (2, 4), (2, 6)];
    let spans = NUMBERS.map(|(_, number)| FragmentSpan {
        number,
        start: u64::from(number - 1) * 4_000,
        duration: 4_000,
    });
    let bootstrap = Bootstrap {
        timescale: 1_000,
        current_time: 24_000,
        segment_tables: vec![SegmentTable {
            runs: vec![SegmentRun { first_segment: 1, fragments_per_segment: 3 }],
            ..SegmentTable::default()
        }],
        fragment_tables: vec![FragmentTable {
            timescale: 1_000,
            runs: runs_of(&spans, true),
            ..FragmentTable::default()
        }],
        ..Bootstrap::default()
    };
    for segment in [1, 2] {
        let own = NUMBERS.iter().zip(&spans).filter(|((known, _), _)| *known == segment);
        let new: Vec<NewFragment> = own
            .map(|(_, span)| NewFragment {
                number: span.number,
                start: span.start,
                duration: span.duration,
                media_bytes: 5,
            })
            .collect();
        let layout = ArchiveLayout::new(&bootstrap, &new);
        let bytes: Vec<u8> = layout.heads.iter().flat_map(|head| [head, &b"media"[..]].concat()).collect();
        fs::write(folder.join(format!("filmSeg{segment}.f4f")), bytes).unwrap();
    }
    let mut bytes = Vec::new();
    bootstrap.write(&mut bytes);
    let source = MediaSource::Fragments { url: "film".to_owned(), bootstrap: BootstrapSource::Inline(bytes) };
    let media = F4mMedia {
        kind: model::media::TrackKind::Video,
        is_alternative: false,
        id: String::new(),
        bits_per_s: 800_000,
        source,
    };
    let manifest = F4m { version: 1, media: vec![media], ..F4m::default() };
    fs::write(folder.join("film.f4m"), manifest.write()).unwrap();
}

/// The lesson of the study hds: an integer that counts would request fragments 3 and 5.
#[test]
fn numbers_that_do_not_exist_are_not_listed() {
    let folder = folder();
    write_archives(folder.path());
    let path = folder.path().join("film.f4m");
    let ended = urls(&[path.to_str().unwrap()]).expect(0);
    assert_eq!(ended.stdout, "/filmSeg1-Frag1\n/filmSeg1-Frag2\n/filmSeg2-Frag4\n/filmSeg2-Frag6\n");
    assert!(!ended.stderr.contains("only"), "{}", ended.stderr);
    // Without the archive of a segment, its fragments are missing; static files replace it.
    fs::remove_file(folder.path().join("filmSeg2.f4f")).unwrap();
    fs::write(folder.path().join("filmSeg2-Frag4"), "static").unwrap();
    fs::write(folder.path().join("filmSeg2-Frag5"), "static").unwrap();
    let ended = urls(&[path.to_str().unwrap()]).expect(3);
    assert!(ended.stderr.contains("listed only: 1 resource\n  /filmSeg2-Frag6"), "{}", ended.stderr);
    assert!(ended.stderr.contains("present only: 1 resource\n  /filmSeg2-Frag5"), "{}", ended.stderr);
}

#[test]
fn manifests_on_a_server_are_read_with_what_they_refer_to() {
    let server = RealServer::nginx(&["rewrite ^/old/(.*)$ /$1 redirect;"]);
    let www = server.folder.path().join("www");
    ffmpeg(&www, &["-movflags", "+frag_keyframe+empty_moov+default_base_moof+dash+global_sidx", "film.mp4"]);
    let mpd = "<MPD mediaPresentationDuration='PT6S'><Period><AdaptationSet mimeType='video/mp4'><Representation id='a' \
               bandwidth='9'><BaseURL>film.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>";
    fs::write(www.join("x.mpd"), mpd).unwrap();
    let ca = server.file("ca.pem");
    let ended = urls(&[&server.url(0, "/old/x.mpd"), "--cacert", &ca, "--json"]).expect(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["manifest"], server.url(0, "/x.mpd"), "where the redirect leads");
    let all = json["urls"].as_array().unwrap();
    assert!(all.iter().all(|own| own["url"] == server.url(0, "/film.mp4")), "{json:#}");
    // The ranges are those of the file's segments: contiguous, to its end.
    let bounds: Vec<(u64, u64)> = all
        .iter()
        .filter_map(|own| own["range"].as_str()?.split_once('-'))
        .map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
        .collect();
    assert_eq!(bounds.len(), 4, "an initialization and three segments: {json:#}");
    assert!(bounds[1..].windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{bounds:?}");
    let ended = urls(&[&server.url(0, "/film.mp4"), "--cacert", &ca]).expect(0);
    assert_eq!(ended.stdout.trim_end(), server.url(0, "/film.mp4"));
    let ended = urls(&[&server.url(0, "/missing.mpd"), "--cacert", &ca]).expect(2);
    assert!(ended.stderr.contains("/missing.mpd answers with status 404, expected 200"), "{}", ended.stderr);
    let ended = urls(&[&server.url(0, "/x.mpd")]).expect(2);
    assert!(
        ended.stderr.contains("--cacert FILE, or accept any certificate with --insecure"),
        "{}",
        ended.stderr
    );
}

/// A server that answers every path in this way, as long as the tests run.
fn hostile(answer: fn(&str, &mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = peer.unwrap();
            let mut head = vec![0; 4096];
            let length = peer.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            answer(head.split(' ').nth(1).unwrap_or_default(), &mut peer);
        }
    });
    format!("http://{address}")
}

#[test]
fn hostile_manifests_end_with_an_error() {
    let looping = hostile(|path, peer| {
        let field = format!("Location: {path}x");
        let _ = write!(peer, "HTTP/1.1 302 Found\r\n{field}\r\nContent-Length: 0\r\n\r\n");
    });
    let ended = urls(&[&format!("{looping}/x.mpd")]).expect(2);
    assert!(ended.stderr.contains("leads on after 5 redirects"), "{}", ended.stderr);

    let endless = hostile(|_, peer| {
        let _ = write!(peer, "HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n");
        while peer.write_all(&[b'\n'; 65_536]).is_ok() {}
    });
    let ended = urls(&[&format!("{endless}/x.m3u8")]).expect(2);
    assert!(ended.stderr.contains("did not end within 10 s and 64 MiB"), "{}", ended.stderr);

    // A playlist that refers to itself.
    let circular = hostile(|path, peer| {
        let text = format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{path}\n");
        let _ = write!(peer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    });
    let ended = urls(&[&format!("{circular}/x.m3u8")]).expect(2);
    assert!(ended.stderr.contains("lists variants where segments are expected"), "{}", ended.stderr);
}

#[test]
fn wrong_usage_and_bad_files_are_named() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let page = write("page.html", "<html></html>");
    let broken = write("x.mpd", "<MPD>\n <Period duration='5'/></MPD>");
    let named = format!("h123: {broken}: line 2, column 2: `duration`");
    let list = write("list.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nown.m3u8\n");
    write("own.m3u8", "#EXTM3U\n#EXT-X-DEFINE:NAME=\"t\",VALUE=\"1\"\n#EXTINF:4,\n{$t}.ts\n");
    for (args, expected) in [
        (
            &["/no/such.mpd"][..],
            "/no/such.mpd: No such file or directory (os error 2); name a manifest or its URL",
        ),
        (&[&page], "it is neither an MPD, an HLS playlist"),
        (&[&broken], "x.mpd: line 2, column 2: `duration` is `5`, not a duration such as `PT3.2S`"),
        (&[&broken], named.as_str()),
        (&[&list], "/own.m3u8: line 2: `#EXT-X-DEFINE` defines variables, which h123 does not support"),
        (&[&page, "--base", "nourl"], "--base: `nourl` has no scheme"),
        (&["https://a.test/x.mpd", "--base", "https://b.test/"], "--base requires a file"),
        (&[&page, "--base", "ftp://b.test/"], "--base: `ftp://b.test/` is not a URL"),
        (&[&page, "--track", "text"], "invalid value 'text' for '--track <KIND>'"),
    ] {
        let ended = urls(args).expect(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}
