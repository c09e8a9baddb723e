//! Modelled media and live streams, over all five variants.

use http::StatusCode;
use model::Variant;
use model::error::Source;
use model::media::Media;
use workload::formats::hds::bootstrap::Bootstrap;
use workload::formats::hds::f4f;
use workload::formats::isobmff::scan;
use workload::hds_media::{HdsPackage, PackagedFragment};

use crate::{Running, block_on};

const TRACK: &str = "[video]\nladder = ['800kbit/s']\nspread = '30%'\n";

fn media(name: &str, keys: &str) -> Media {
    let text = format!("title = 'x'\nsegment = '4s'\nlength = '20s'\n{keys}\n{TRACK}");
    Media::parse(name, Source { file: "x.toml", text: &text }).unwrap()
}

#[test]
fn modelled_media_is_served_without_files() {
    let film = media("film", "titles = 7");
    let hds = media("hds", "hds = { fragments = 3, gaps = [2] }");
    let package = HdsPackage::new(&hds).unwrap();
    let all = vec![film.clone(), hds];
    let running = Running::start(|config| config.media = all);
    for variant in Variant::ALL {
        let target = running.target(variant);
        for (path, bytes) in film.presentation.files() {
            for path in [path.to_owned(), path.replace("/film/", "/film/7/")] {
                let reply = block_on(target.get(&path));
                assert_eq!(
                    (reply.status, reply.body.len() as u64),
                    (StatusCode::OK, bytes),
                    "{variant} {path}"
                );
                assert_eq!(reply.field("access-control-allow-origin"), Some("*"));
            }
        }
        for manifest in workload::media::manifests(&film) {
            let reply = block_on(target.get(&manifest.path));
            assert_eq!(reply.body, manifest.text.as_bytes(), "{variant} {}", manifest.path);
            assert_eq!(reply.field("content-type"), Some(manifest.media_type));
            assert_eq!(reply.field("cache-control"), Some("public, max-age=60"));
        }
        for fragment in package.segments.values().flatten() {
            let expected: Vec<u8> = PackagedFragment::parts(fragment).flatten().collect();
            let reply = block_on(target.get(&fragment.path));
            assert!(reply.body == expected, "{variant} {}", fragment.path);
            let mut request = target.request("GET", &fragment.path);
            request.headers_mut().insert("range", "bytes=10-9999".parse().unwrap());
            let part = block_on(target.fetch(request));
            assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
            assert!(part.body == expected[10..10_000], "{variant} {}", fragment.path);
        }
        for path in [
            "/media/film/8/video-800k/1.m4s",
            "/media/film/video-800k/6.m4s",
            "/media/hds/Seg1-Frag2",
            "/media/other/manifest.mpd",
        ] {
            let reply = block_on(target.get(path));
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{variant} {path}");
            assert_eq!(reply.field("access-control-allow-origin"), Some("*"), "{variant} {path}");
        }
        assert_eq!(block_on(target.get("/nothing")).field("access-control-allow-origin"), None);
    }
    running.stop();
}

#[test]
fn a_live_stream_begins_with_a_full_window() {
    let live = media("live", "live = '10min'");
    let running = Running::start(|config| config.media = vec![live]);
    for variant in Variant::ALL {
        let target = running.target(variant);
        let manifest = block_on(target.get("/media/live/manifest.mpd"));
        let text = String::from_utf8(manifest.body.clone()).unwrap();
        assert!(text.contains("type=\"dynamic\"") && text.contains("<SegmentTimeline>"), "{text}");
        assert_eq!(manifest.field("cache-control"), Some("no-cache"));
        let playlist = block_on(target.get("/media/live/video-800k/index.m3u8"));
        let text = String::from_utf8(playlist.body.clone()).unwrap();
        assert!(!text.contains("#EXT-X-ENDLIST"), "{text}");
        let listed: Vec<&str> = text.lines().filter(|line| line.ends_with(".m4s")).collect();
        assert!((149..=151).contains(&listed.len()), "{}", listed.len());
        // The oldest may leave the window meanwhile; the others stay for minutes.
        for path in &listed[10..20] {
            let path = path.replace("../", "/media/live/");
            assert_eq!(block_on(target.get(&path)).status, StatusCode::OK, "{variant} {path}");
        }
        for path in ["0", "99999", "18446744073709551615", "+5", "05"] {
            let path = format!("/media/live/video-800k/{path}.m4s");
            assert_eq!(block_on(target.get(&path)).status, StatusCode::NOT_FOUND, "{variant} {path}");
        }
        assert_eq!(block_on(target.get("/media/live/video-800k/init.mp4")).status, StatusCode::OK);
    }
    running.stop();
}

/// Fragment 3 of every five numbers does not exist.
#[test]
fn a_live_stream_of_hds_slides_and_has_the_fragments_that_it_lists() {
    let live = media("news", "live = '10min'\nhds = { fragments = 5, gaps = [3] }");
    let running = Running::start(|config| config.media = vec![live]);
    for variant in Variant::ALL {
        let target = running.target(variant);
        let manifest = block_on(target.get("/media/news/manifest.f4m"));
        let text = String::from_utf8(manifest.body.clone()).unwrap();
        assert!(text.contains("<streamType>live</streamType>") && text.contains("index.bootstrap"), "{text}");
        assert_eq!(manifest.field("cache-control"), Some("no-cache"));
        let reply = block_on(target.get("/media/news/index.bootstrap"));
        assert_eq!(reply.field("content-type"), Some("video/abst"));
        let bootstrap = Bootstrap::parse(&reply.body).unwrap();
        assert!(bootstrap.is_live);
        let listed = bootstrap.fragments().unwrap();
        assert!((149..=151).contains(&listed.len()), "{}", listed.len());
        // The oldest may leave the window meanwhile; the others stay for minutes.
        for fragment in &listed[10..20] {
            let path = format!("/media/news/Seg{}-Frag{}", fragment.segment, fragment.number);
            let reply = block_on(target.get(&path));
            assert_eq!(reply.status, StatusCode::OK, "{variant} {path}");
            let found = f4f::fragments(&scan(&reply.body).unwrap()).unwrap();
            assert_eq!(found[0].number, fragment.number);
        }
        let missing =
            listed.windows(2).find(|pair| pair[1].number > pair[0].number + 1).unwrap()[0].number + 1;
        for number in [missing, 0, 999_999, u32::MAX] {
            let path = format!("/media/news/Seg{}-Frag{number}", number.saturating_sub(1) / 5 + 1);
            assert_eq!(block_on(target.get(&path)).status, StatusCode::NOT_FOUND, "{variant} {path}");
        }
    }
    running.stop();
}
