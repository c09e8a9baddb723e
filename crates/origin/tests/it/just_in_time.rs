//! Segments that the origin cuts out of archives, over all five variants.

use std::fs;
use std::path::Path;

use http::StatusCode;
use model::Variant;
use origin::JustInTime;
use workload::formats::hds::bootstrap::{
    Bootstrap, FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
};
use workload::formats::hds::f4f::{ArchiveIndex, ArchiveLayout, NewFragment};
use workload::formats::isobmff::{SegmentIndex, SegmentReference, write_box, write_full_box, write_sidx};

use crate::{Running, block_on};

/// Bytes of each fragment's media: more than the origin reads at once.
const MEDIA_BYTES: u64 = 400_000;
/// Fragments 1 to 10 in segments of five numbers, except 3 and 7.
const NUMBERS: [u32; 8] = [1, 2, 4, 5, 6, 8, 9, 10];
const PER_SEGMENT: u32 = 5;

fn byte(number: u32) -> u8 {
    u8::try_from(number).unwrap()
}

/// Writes a film of HDS into `folder`, whose files begin with `prefix`; returns the files of its segments.
fn write_hds(folder: &Path, prefix: &str, bootstrap_name: &str, with_index: bool) -> Vec<Vec<u8>> {
    fs::create_dir_all(folder).unwrap();
    let spans: Vec<FragmentSpan> = NUMBERS
        .iter()
        .map(|number| FragmentSpan { number: *number, start: u64::from(number - 1) * 4_000, duration: 4_000 })
        .collect();
    let bootstrap = Bootstrap {
        timescale: 1_000,
        current_time: 40_000,
        segment_tables: vec![SegmentTable {
            runs: vec![SegmentRun { first_segment: 1, fragments_per_segment: PER_SEGMENT }],
            ..SegmentTable::default()
        }],
        fragment_tables: vec![FragmentTable {
            timescale: 1_000,
            runs: runs_of(&spans, true),
            ..FragmentTable::default()
        }],
        ..Bootstrap::default()
    };
    let mut bytes = Vec::new();
    bootstrap.write(&mut bytes);
    fs::write(folder.join(bootstrap_name), bytes).unwrap();
    let mut files = Vec::new();
    for segment in [1, 2] {
        let numbers = NUMBERS.iter().filter(|number| (**number - 1) / PER_SEGMENT + 1 == segment);
        let fragments: Vec<NewFragment> = numbers
            .map(|number| NewFragment {
                number: *number,
                start: u64::from(number - 1) * 4_000,
                duration: 4_000,
                media_bytes: MEDIA_BYTES,
            })
            .collect();
        let layout = ArchiveLayout::new(&bootstrap, &fragments);
        let mut file = Vec::new();
        for (head, fragment) in layout.heads.iter().zip(&fragments) {
            file.extend(head);
            file.extend(vec![byte(fragment.number); MEDIA_BYTES.try_into().unwrap()]);
        }
        fs::write(folder.join(format!("{prefix}Seg{segment}.f4f")), &file).unwrap();
        if with_index {
            let entries = layout.entries(segment, &fragments).collect();
            let mut bytes = Vec::new();
            ArchiveIndex { timescale: 1_000, entries }.write(&mut bytes);
            fs::write(folder.join(format!("{prefix}Seg{segment}.f4x")), bytes).unwrap();
        }
        files.push(file);
    }
    files
}

/// An MP4 file of three segments, and its parts: the initialization segment, then the segments.
fn write_mp4(file: &Path, with_sidx: bool) -> Vec<Vec<u8>> {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut init = Vec::new();
    write_box(&mut init, b"ftyp", |body| body.extend(b"cmf2\0\0\0\0"));
    write_box(&mut init, b"moov", |movie| {
        write_box(movie, b"trak", |track| {
            write_full_box(track, b"tkhd", 0, 3, |body| body.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
            write_box(track, b"mdia", |media| {
                write_full_box(media, b"mdhd", 0, 0, |body| {
                    body.extend([0; 8]);
                    body.extend(1_000_u32.to_be_bytes());
                });
                write_full_box(media, b"hdlr", 0, 0, |body| body.extend(b"\0\0\0\0vide"));
            });
        });
    });
    let segments: Vec<Vec<u8>> = [5_u8, 6, 7]
        .into_iter()
        .map(|value| {
            let mut segment = Vec::new();
            write_box(&mut segment, b"styp", |body| body.extend(b"msdh"));
            write_box(&mut segment, b"moof", |moof| {
                write_box(moof, b"traf", |traf| {
                    write_full_box(traf, b"tfhd", 0, 0x8, |body| {
                        body.extend([0, 0, 0, 1]);
                        body.extend(4_000_u32.to_be_bytes());
                    });
                    write_full_box(traf, b"trun", 0, 0, |body| body.extend([0, 0, 0, 1]));
                });
            });
            write_box(&mut segment, b"mdat", |body| body.extend(vec![value; 300_000 + usize::from(value)]));
            segment
        })
        .collect();
    let mut bytes = init.clone();
    if with_sidx {
        let references = segments
            .iter()
            .map(|segment| SegmentReference { bytes: segment.len() as u64, duration: 4_000, is_index: false })
            .collect();
        let index =
            SegmentIndex { reference_id: 1, timescale: 1_000, earliest_time: 0, first_offset: 0, references };
        write_sidx(&mut bytes, &index);
    }
    bytes.extend(segments.concat());
    fs::write(file, bytes).unwrap();
    [vec![init], segments].concat()
}

fn start(root: &Path, keeps_indexes: bool, missing_status: u16) -> Running {
    Running::start(|config| {
        config.root = Some(root.to_owned());
        config.just_in_time = Some(JustInTime { keeps_indexes, missing_status });
    })
}

/// The fragment's bytes in its archive.
fn fragment_of(files: &[Vec<u8>], number: u32) -> &[u8] {
    let file = &files[usize::try_from((number - 1) / PER_SEGMENT).unwrap()];
    let place = NUMBERS.iter().filter(|own| (**own - 1) / PER_SEGMENT == (number - 1) / PER_SEGMENT);
    let place = place.clone().position(|own| *own == number).unwrap();
    let mut starts: Vec<usize> =
        file.windows(8).enumerate().filter(|(_, bytes)| &bytes[4..] == b"afra").map(|(at, _)| at).collect();
    starts.push(file.len());
    &file[starts[place]..starts[place + 1]]
}

#[test]
fn fragments_are_cut_by_the_bootstrap() {
    let folder = tempfile::tempdir().unwrap();
    for (name, with_index) in [("film", false), ("indexed", true)] {
        write_hds(&folder.path().join(name), "", "index.bootstrap", with_index);
    }
    let files = write_hds(&folder.path().join("vod"), "film_1", "film_1.bootstrap", false);
    for keeps_indexes in [true, false] {
        let running = start(folder.path(), keeps_indexes, 503);
        for variant in Variant::ALL {
            let target = running.target(variant);
            for (media, number) in [
                ("film/", 1),
                ("film/", 4),
                ("film/", 10),
                ("indexed/", 2),
                ("indexed/", 6),
                ("vod/film_1", 9),
            ] {
                let segment = (number - 1) / PER_SEGMENT + 1;
                let path = format!("/{media}Seg{segment}-Frag{number}");
                let reply = block_on(target.get(&path));
                assert_eq!(reply.status, StatusCode::OK, "{variant} {path}");
                assert!(reply.body == fragment_of(&files, number), "{variant} {path}: {}", reply.body.len());
                assert!(reply.body.ends_with(&[byte(number); 1000]));
                assert_eq!(reply.field("content-type"), Some("video/f4f"));
                assert_eq!(reply.field("access-control-allow-origin"), Some("*"));
                assert_eq!(reply.field("cache-control"), Some("public, max-age=31536000, immutable"));
            }
            let path = "/film/Seg2-Frag8";
            let head = block_on(target.fetch(target.request("HEAD", path)));
            let length = fragment_of(&files, 8).len();
            assert_eq!(head.field("content-length"), Some(length.to_string().as_str()));
            let mut request = target.request("GET", path);
            request.headers_mut().insert("range", "bytes=100-299".parse().unwrap());
            let part = block_on(target.fetch(request));
            assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
            assert_eq!(part.field("content-range"), Some(format!("bytes 100-299/{length}").as_str()));
            assert_eq!(part.body, fragment_of(&files, 8)[100..300]);
        }
        assert_eq!(running.stop().content_faults, Vec::<String>::new());
    }
}

#[test]
fn what_the_index_lacks_has_the_chosen_status() {
    let folder = tempfile::tempdir().unwrap();
    write_hds(&folder.path().join("film"), "", "index.bootstrap", false);
    write_mp4(&folder.path().join("film/video.mp4"), true);
    for missing in [404, 503] {
        let running = start(folder.path(), true, missing);
        for variant in Variant::ALL {
            let target = running.target(variant);
            for path in [
                // A gap, the end, the wrong segment, another title.
                "/film/Seg1-Frag3",
                "/film/Seg3-Frag11",
                "/film/Seg1-Frag6",
                "/film/Seg1-Frag0",
                "/film/Seg1-Frag4294967295",
                "/other/Seg1-Frag1",
                "/film/otherSeg1-Frag1",
                "/film/video/4.m4s",
                "/film/video/0.m4s",
            ] {
                let reply = block_on(target.get(path));
                assert_eq!(reply.status.as_u16(), missing, "{variant} {path}");
                assert_eq!(reply.field("access-control-allow-origin"), Some("*"), "{variant} {path}");
            }
            // These are not paths of parts, so there is no such file.
            for path in [
                "/film/Seg1-Frag99999999999",
                "/film/Seg1-Frag",
                "/film/Seg1-Frag1/",
                "/../film/Seg1-Frag1",
                "/film/%2e%2e/%2e%2e/Seg1-Frag1",
                "/nothing/1.m4s",
                "/film/video/99999999999.m4s",
            ] {
                assert_eq!(block_on(target.get(path)).status, StatusCode::NOT_FOUND, "{variant} {path}");
            }
        }
        assert_eq!(running.stop().content_faults, Vec::<String>::new());
    }
}

#[test]
fn segments_are_cut_out_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let parts = write_mp4(&folder.path().join("film/indexed.mp4"), true);
    write_mp4(&folder.path().join("film/plain.mp4"), false);
    // A file at the path of a segment counts only without an archive.
    fs::create_dir(folder.path().join("film/files")).unwrap();
    fs::write(folder.path().join("film/files/1.m4s"), "file").unwrap();
    for keeps_indexes in [true, false] {
        let running = start(folder.path(), keeps_indexes, 404);
        for variant in Variant::ALL {
            let target = running.target(variant);
            for name in ["indexed", "plain"] {
                for (place, expected) in parts.iter().enumerate() {
                    let file = if place == 0 { "init.mp4".to_owned() } else { format!("{place}.m4s") };
                    let reply = block_on(target.get(&format!("/film/{name}/{file}")));
                    assert_eq!(reply.status, StatusCode::OK, "{variant} {name} {file}");
                    assert!(reply.body == *expected, "{variant} {name} {file}: {}", reply.body.len());
                    let media_type = if place == 0 { "video/mp4" } else { "video/iso.segment" };
                    assert_eq!(reply.field("content-type"), Some(media_type));
                }
            }
            assert_eq!(block_on(target.get("/film/files/1.m4s")).body, b"file");
            let whole = block_on(target.get("/film/plain.mp4"));
            assert!(whole.body == parts.concat(), "the archive is a file as well");
        }
        running.stop();
    }
}

#[test]
fn broken_archives_are_faults_and_not_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        write_hds(&folder.path().join(name), "", "index.bootstrap", true);
        folder.path().join(name)
    };
    fs::write(write("broken").join("index.bootstrap"), "no bootstrap").unwrap();
    fs::write(write("empty").join("index.bootstrap"), "").unwrap();
    let cut = write("cut").join("index.bootstrap");
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 7]).unwrap();
    fs::write(write("index").join("Seg1.f4x"), [0, 0, 0, 9, b'a', b'f', b'r', b'a', 255]).unwrap();
    fs::remove_file(write("missing").join("Seg1.f4f")).unwrap();
    // With an index that still lists what was cut off.
    fs::write(write("short").join("Seg1.f4f"), [7; 1000]).unwrap();
    let scanned = write("scanned");
    fs::remove_file(scanned.join("Seg1.f4x")).unwrap();
    let archive = fs::read(scanned.join("Seg1.f4f")).unwrap();
    fs::write(scanned.join("Seg1.f4f"), &archive[..archive.len() - 5]).unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join("a/b.mp4"), "no boxes at all").unwrap();
    fs::write(folder.path().join("a/c.mp4"), "").unwrap();
    let faulty = [
        ("/broken/Seg1-Frag1", "broken/index.bootstrap"),
        ("/empty/Seg1-Frag1", "empty/index.bootstrap"),
        ("/cut/Seg1-Frag1", "cut/index.bootstrap"),
        ("/index/Seg1-Frag1", "index/Seg1.f4x"),
        ("/missing/Seg1-Frag1", "there is no missing/Seg1.f4f"),
        ("/short/Seg1-Frag5", "after the end of its archive"),
        ("/scanned/Seg1-Frag5", "exceeds the file"),
        ("/a/b/1.m4s", "a/b.mp4"),
        ("/a/c/init.mp4", "a/c.mp4"),
    ];
    for keeps_indexes in [true, false] {
        let running = start(folder.path(), keeps_indexes, 404);
        for variant in Variant::ALL {
            let target = running.target(variant);
            for (path, _) in faulty {
                let reply = block_on(target.get(path));
                assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR, "{variant} {path}");
            }
            assert_eq!(block_on(target.get("/missing/Seg2-Frag6")).status, StatusCode::OK);
        }
        let faults = running.stop().content_faults;
        assert_eq!(faults.len(), faulty.len(), "each once: {faults:#?}");
        for (path, expected) in faulty {
            let has = |fault: &&String| fault.starts_with(path) && fault.contains(expected);
            assert!(faults.iter().any(|fault| has(&fault)), "{path}: {faults:#?}");
        }
    }
}

#[test]
fn a_kept_index_is_not_read_again_and_another_is() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film");
    write_hds(&film, "", "index.bootstrap", false);
    for (keeps_indexes, expected) in [(true, StatusCode::OK), (false, StatusCode::NOT_FOUND)] {
        let running = start(folder.path(), keeps_indexes, 404);
        let target = running.target(Variant::H2);
        assert_eq!(block_on(target.get("/film/Seg1-Frag1")).status, StatusCode::OK);
        fs::rename(film.join("index.bootstrap"), film.join("hidden")).unwrap();
        assert_eq!(block_on(target.get("/film/Seg1-Frag2")).status, expected);
        fs::rename(film.join("hidden"), film.join("index.bootstrap")).unwrap();
        running.stop();
    }
}
