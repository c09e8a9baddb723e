use model::media::TrackKind;
use model::units::NANOS_PER_S;

use super::super::dash::{Addressing, write_mpd};
use super::super::hds::bootstrap::{FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of};
use super::super::hds::f4m::{BootstrapSource, F4m, F4mMedia, MediaSource};
use super::super::hls::{write_media, write_multivariant};
use super::super::isobmff::{SegmentIndex, SegmentReference, write_box, write_sidx};
use super::super::package::{Package, PackagedRepresentation, PackagedTrack};
use super::super::template::Template;
use super::*;

const S: u64 = NANOS_PER_S;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Reads a manifest at `http://a.test/m/NAME` from these files, by their paths; `now` is in seconds.
fn resolve(files: &[(&str, Vec<u8>)], now_s: u64) -> Result<Manifest, FormatError> {
    let base = url("http://a.test/m/").join(files[0].0).unwrap();
    let mut resolver = Resolver::new(&files[0].1, &base, now_s * S)?;
    for _ in 0..4 {
        for need in resolver.needs() {
            let found = files.iter().find(|(path, _)| base.join(path) == Some(need.url.clone()));
            let bytes = &found.unwrap_or_else(|| panic!("{} is needed", need.url)).1;
            let bytes = match need.range {
                Some(range) => {
                    let end = usize::try_from(range.last + 1).unwrap().min(bytes.len());
                    &bytes[usize::try_from(range.first).unwrap()..end]
                }
                None => bytes,
            };
            resolver.handle_resource(&need, &need.url, bytes)?;
        }
    }
    resolver.finish()
}

fn mpd(attributes: &str, content: &str) -> Vec<u8> {
    let head = "<MPD xmlns='urn:mpeg:dash:schema:mpd:2011' xmlns:xlink='http://www.w3.org/1999/xlink'";
    format!("{head} {attributes}>{content}</MPD>").into_bytes()
}

fn one(attributes: &str, content: &str, now_s: u64) -> Result<Manifest, FormatError> {
    resolve(&[("x.mpd", mpd(attributes, content))], now_s)
}

/// The URLs of the first representation of the first track.
fn first_urls(manifest: &Manifest) -> Vec<&str> {
    let segments = &manifest.presentation.tracks[0].representations[0].segments;
    segments.iter().map(|segment| segment.url.as_str()).collect()
}

const SET: &str = "<Period><AdaptationSet mimeType='video/mp4'>";
const END: &str = "</AdaptationSet></Period>";

#[test]
fn a_timeline_lists_times_and_gaps() {
    let content = format!(
        "<BaseURL>v/</BaseURL>{SET}<SupplementalProperty schemeIdUri='x' value='y'/>\
         <SegmentTemplate timescale='10' presentationTimeOffset='100' startNumber='5'
         initialization='$RepresentationID$-init.mp4' media='$RepresentationID$-$Number%03d$-$Time$.m4s'>
         <SegmentTimeline><S t='100' d='20' r='1'/><S d='15'/><S t='200' d='20' r='-1'/><S t='260' d='5'/>
         </SegmentTimeline></SegmentTemplate>
         <Representation id='hi' bandwidth='2000'/><Representation id='lo' bandwidth='1000'/>{END}"
    );
    let found = one("", &content, 0).unwrap();
    let track = &found.presentation.tracks[0];
    let ladder: Vec<_> =
        track.representations.iter().map(|own| (own.name.as_str(), own.bits_per_s)).collect();
    assert_eq!(ladder, [("lo", 1_000), ("hi", 2_000)]);
    let expected = [
        "/m/v/lo-005-100.m4s",
        "/m/v/lo-006-120.m4s",
        "/m/v/lo-007-140.m4s",
        "/m/v/lo-008-200.m4s",
        "/m/v/lo-009-220.m4s",
        "/m/v/lo-010-240.m4s",
        "/m/v/lo-011-260.m4s",
    ];
    assert_eq!(first_urls(&found), expected);
    assert_eq!(track.durations_ns[..3], [2 * S, 2 * S, S * 3 / 2]);
    assert_eq!(track.durations_ns[6], S / 2);
    assert_eq!(track.representations[1].initialization.as_ref().unwrap().url, "/m/v/hi-init.mp4");
    let starts: Vec<u64> = found.places[0].iter().map(|place| place.start).collect();
    assert_eq!(starts, [0, 2, 4, 10, 12, 14, 16].map(|start| start * S));
    assert!(found.live.is_none());
}

#[test]
fn numbers_count_until_the_end_of_the_period() {
    let of = |duration: &str| {
        let content = format!(
            "{SET}<Representation id='v'><SegmentTemplate duration='4' media='$Number$'/></Representation>{END}"
        );
        one(&format!("mediaPresentationDuration='{duration}'"), &content, 0).unwrap()
    };
    let found = of("PT10S");
    assert_eq!(first_urls(&found), ["/m/1", "/m/2", "/m/3"]);
    assert_eq!(found.presentation.tracks[0].durations_ns, [4 * S, 4 * S, 2 * S]);
    assert_eq!(first_urls(&of("PT8S")), ["/m/1", "/m/2"]);
}

#[test]
fn a_live_window_follows_the_time() {
    let content = format!(
        "<Period start='PT10S'><AdaptationSet contentType='audio'><SegmentTemplate timescale='1000' duration='4000'
         startNumber='7' media='$Number$.m4s'/><Representation id='a' bandwidth='1'/>{END}"
    );
    let attributes =
        "type='dynamic' availabilityStartTime='1970-01-01T00:01:40Z' timeShiftBufferDepth='PT12S'
         minimumUpdatePeriod='PT2S' suggestedPresentationDelay='PT8S'";
    // 60 s after the period's beginning at 110 s, 15 segments are complete.
    let found = one(attributes, &content, 170).unwrap();
    assert_eq!(first_urls(&found), ["/m/19.m4s", "/m/20.m4s", "/m/21.m4s"]);
    let places = [58, 62, 66].map(|start| SegmentPlace::of_time(start * S, 4 * S));
    assert_eq!(found.places, [places]);
    let live = Live {
        epoch_unix_ns: Some(100 * S),
        window_ns: Some(12 * S),
        reload_ns: Some(2 * S),
        delay_ns: Some(8 * S),
    };
    assert_eq!(found.live, Some(live));
    // Before it begins, nothing exists; that is no error.
    assert_eq!(one(attributes, &content, 100).unwrap().presentation.tracks, []);
    let error = one("type='dynamic'", &content, 170).unwrap_err().to_string();
    assert!(error.contains("a dynamic MPD needs `availabilityStartTime`"), "{error}");
}

#[test]
fn lists_have_ranges_and_inherit() {
    let content = format!(
        "<Period><SegmentList timescale='2' duration='3'><Initialization sourceURL='i.mp4' range='0-9'/></SegmentList>\
         <AdaptationSet mimeType='audio/mp4'><Representation id='a' bandwidth='1'>\
         <BaseURL>http://b.test/a.mp4</BaseURL><SegmentList><SegmentURL mediaRange='10-19'/>\
         <SegmentURL media='c.mp4'/></SegmentList></Representation>{END}"
    );
    let found = one("", &content, 0).unwrap();
    let own = &found.presentation.tracks[0].representations[0];
    let range = |first, last| Some(ByteRange { first, last });
    let segment = |url: &str, range: Option<ByteRange>| Segment {
        url: url.to_owned(),
        range,
        bytes: range.map(ByteRange::length),
    };
    assert_eq!(own.initialization, Some(segment("http://b.test/i.mp4", range(0, 9))));
    let expected = [segment("http://b.test/a.mp4", range(10, 19)), segment("http://b.test/c.mp4", None)];
    assert_eq!(own.segments, expected);
    assert_eq!(found.presentation.tracks[0].durations_ns, [S * 3 / 2; 2]);
    // The last segment ends with the period.
    let found = one("mediaPresentationDuration='PT2S'", &content, 0).unwrap();
    assert_eq!(found.presentation.tracks[0].durations_ns, [S * 3 / 2, S / 2]);
}

#[test]
fn an_index_lists_the_segments_of_one_file() {
    let mut file = Vec::new();
    write_box(&mut file, b"ftyp", |body| body.extend([0; 4]));
    let begins = file.len();
    let references = [100, 50].map(|bytes| SegmentReference { bytes, duration: 2, is_index: false });
    let index = SegmentIndex { timescale: 1, references: references.to_vec(), ..SegmentIndex::default() };
    write_sidx(&mut file, &index);
    let end = file.len() as u64;
    let content = |base: &str| {
        format!(
            "{SET}<Representation id='v' bandwidth='9'><BaseURL>v.mp4</BaseURL>{base}</Representation>{END}"
        )
    };
    let with = format!(
        "<SegmentBase indexRange='{begins}-{}'><Initialization range='0-{}'/></SegmentBase>",
        end - 1,
        begins - 1
    );
    for base in [with.as_str(), ""] {
        let files = [("x.mpd", mpd("", &content(base))), ("v.mp4", file.clone())];
        let found = resolve(&files, 0).unwrap();
        let own = &found.presentation.tracks[0].representations[0];
        let ranges: Vec<_> = own.segments.iter().filter_map(|segment| segment.range).collect();
        assert_eq!(ranges[1], ByteRange { first: end + 100, last: end + 149 });
        assert_eq!((ranges.len(), own.segments[1].bytes), (2, Some(50)));
        let first = own.initialization.as_ref().and_then(|own| own.range);
        assert_eq!(first, ByteRange::of_length(0, begins as u64));
        assert_eq!(found.references[0].url, "/m/v.mp4");
    }
    // Without an index, the file is one segment.
    let mut plain = Vec::new();
    write_box(&mut plain, b"ftyp", |body| body.extend([0; 4]));
    let files = [("x.mpd", mpd("mediaPresentationDuration='PT9S'", &content(""))), ("v.mp4", plain)];
    let found = resolve(&files, 0).unwrap();
    assert_eq!(first_urls(&found), ["/m/v.mp4"]);
    assert_eq!(found.presentation.tracks[0].durations_ns, [9 * S]);
}

#[test]
fn periods_are_joined() {
    let period = |base: &str, representations: &str| {
        format!(
            "<Period duration='PT4S'><BaseURL>{base}/</BaseURL><AdaptationSet mimeType='video/mp4'><SegmentTemplate
             duration='2' initialization='$RepresentationID$-i' media='$RepresentationID$-$Number$'/>{representations}{END}"
        )
    };
    let one_of = |id: &str, bandwidth: u32| format!("<Representation id='{id}' bandwidth='{bandwidth}'/>");
    let content =
        [period("1", &one_of("a", 1)), period("2", &format!("{}{}", one_of("b", 1), one_of("c", 2)))]
            .concat();
    let found = one("", &content, 0).unwrap();
    let track = &found.presentation.tracks[0];
    assert_eq!(track.durations_ns, [2 * S; 4]);
    let urls = |place: usize| {
        let segments = track.representations[place].segments.iter();
        segments.map(|own| own.url.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(urls(0), ["/m/1/a-1", "/m/1/a-2", "/m/2/b-1", "/m/2/b-2"]);
    assert_eq!(urls(1), ["/m/1/a-1", "/m/1/a-2", "/m/2/c-1", "/m/2/c-2"]);
    let initializations = |place: usize| {
        let all = track.representations[place].initializations();
        all.map(|(first, own)| (first, own.url.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(initializations(0), [(0, "/m/1/a-i"), (2, "/m/2/b-i")]);
    assert_eq!(initializations(1), [(0, "/m/1/a-i"), (2, "/m/2/c-i")]);
    assert!(found.others.is_empty());
}

#[test]
fn a_changed_map_belongs_to_its_segments() {
    let text = format!(
        "{LIST}#EXTINF:4,\n0.ts\n#EXT-X-MAP:URI=\"a\"\n#EXTINF:4,\n1\n#EXTINF:4,\n2\n#EXT-X-MAP:URI=\"b\"\n#EXTINF:4,\n3\n\
         #EXT-X-MAP:URI=\"b\"\n#EXTINF:4,\n4\n#EXT-X-MAP:URI=\"a\"\n#EXTINF:4,\n5\n#EXT-X-ENDLIST\n"
    );
    let found = resolve(&[("x.m3u8", text.into_bytes())], 0).unwrap();
    let all = found.presentation.tracks[0].representations[0].initializations();
    let all: Vec<_> = all.map(|(first, own)| (first, own.url.as_str())).collect();
    assert_eq!(all, [(1, "/m/a"), (3, "/m/b"), (5, "/m/a")]);
}

#[test]
fn other_tracks_are_kept_apart() {
    let set = |attributes: &str, content: &str, id: &str| {
        format!(
            "<AdaptationSet {attributes}>{content}<SegmentTemplate duration='2' media='{id}-$Number$'/>\
             <Representation id='{id}' bandwidth='1'/></AdaptationSet>"
        )
    };
    let content = [
        "<Period duration='PT2S'>".to_owned(),
        set("contentType='audio' lang='de'", "", "de"),
        set(
            "contentType='audio' lang='en'",
            "<Role schemeIdUri='urn:mpeg:dash:role:2011' value='main'/>",
            "en",
        ),
        set("mimeType='text/vtt'", "", "text"),
        set(
            "mimeType='video/mp4'",
            "<EssentialProperty schemeIdUri='http://dashif.org/guidelines/trickmode' value='1'/>",
            "trick",
        ),
        "</Period>".to_owned(),
    ]
    .concat();
    let found = one("", &content, 0).unwrap();
    assert_eq!(first_urls(&found), ["/m/en-1"]);
    assert_eq!(found.alternatives[0].representations[0].segments[0].url, "/m/de-1");
    let others: Vec<_> = found.others.iter().map(|own| own.url.as_str()).collect();
    assert_eq!(others, ["/m/text-1", "/m/trick-1"]);
}

#[test]
fn faults_of_an_mpd_have_a_place() {
    let template =
        |attributes: &str| format!("{SET}\n<SegmentTemplate {attributes}/><Representation id='a'/>{END}");
    let timeline = |entries: &str| {
        format!(
            "{SET}<SegmentTemplate media='$Time$'><SegmentTimeline>{entries}</SegmentTimeline></SegmentTemplate>\
             <Representation id='a'/>{END}"
        )
    };
    for (content, expected) in [
        (String::new(), "the MPD has no representation"),
        ("<Period xlink:href='a'/>".to_owned(), "the period is in another document"),
        (
            template("duration='2'"),
            "line 2, column 1: <SegmentTemplate> has a `duration`, but the period has no end",
        ),
        (template(""), "<SegmentTemplate> has no attribute `media`"),
        (template("media='$Nr$'"), "line 2, column 1: <SegmentTemplate> `media`: `$Nr$` is not known"),
        (template("timescale='0'"), "has a `timescale` of 0"),
        (template("timescale='fast'"), "`timescale` is `fast`, not a whole number"),
        (template("media='data:a'"), "`data:a` is not a reference to an http or https URL"),
        (timeline("<S t='1'/>"), "<S> has no positive duration `d`"),
        (timeline("<S d='1' r='x'/>"), "`r` is `x`, not a whole number"),
        (timeline("<S d='1' r='-1'/>"), "<S> repeats until the end of the period, which has none"),
        (timeline("<S d='1' r='9999999999'/>"), "<S> makes more than 200000 segments"),
        (format!("{SET}<Representation bandwidth='x'/>{END}"), "`bandwidth` is `x`"),
        (
            format!("{SET}<Representation><SegmentBase indexRange='9'/></Representation>{END}"),
            "`indexRange` is `9`, not a range of bytes",
        ),
        ("<Period duration='5'/>".to_owned(), "`duration` is `5`, not a duration such as"),
    ] {
        let error = one("", &content, 0).unwrap_err().to_string();
        assert!(error.contains(expected), "{content}: {error}");
    }
    // Entities could expand without a limit.
    let bomb = b"<!DOCTYPE MPD [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><MPD>&b;</MPD>".to_vec();
    let error = resolve(&[("x.mpd", bomb)], 0).unwrap_err().to_string();
    assert!(error.contains("is not well-formed XML"), "{error}");
    // Depth is no recursion.
    let deep = format!("<MPD>{}", "<a>".repeat(200_000));
    assert!(resolve(&[("x.mpd", deep.into_bytes())], 0).is_err());
    let error = resolve(&[("x", b"<html></html>".to_vec())], 0).unwrap_err().to_string();
    assert!(error.contains("neither an MPD"), "{error}");
}

const LIST: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";

#[test]
fn variants_and_renditions_become_tracks() {
    let list = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"lo\",NAME=\"en\",DEFAULT=YES,URI=\"a/en-lo.m3u8\"\n\
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"en\",DEFAULT=YES,URI=\"a/en-hi.m3u8\"\n\
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"de\",URI=\"a/de.m3u8\"\n\
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"in\",NAME=\"in the variant\"\n\
                #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"en\",URI=\"s.m3u8\"\n\
                #EXT-X-STREAM-INF:BANDWIDTH=2000000,AUDIO=\"hi\"\nv/hi.m3u8\n\
                #EXT-X-STREAM-INF:BANDWIDTH=1000000,AUDIO=\"lo\"\nv/lo.m3u8\n\
                #EXT-X-STREAM-INF:BANDWIDTH=1900000,AUDIO=\"lo\"\nv/hi.m3u8\n\
                #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\nv/sound.m3u8\n";
    let media = |name: &str, count: usize| {
        let segments: String = (1..=count).map(|own| format!("#EXTINF:4,\n{name}{own}.ts\n")).collect();
        format!("{LIST}{segments}#EXT-X-ENDLIST\n").into_bytes()
    };
    let files = [
        ("x.m3u8", list.as_bytes().to_vec()),
        ("a/en-lo.m3u8", media("l", 2)),
        ("a/en-hi.m3u8", media("h", 2)),
        ("a/de.m3u8", media("d", 2)),
        ("s.m3u8", media("s", 1)),
        ("v/hi.m3u8", media("h", 2)),
        ("v/lo.m3u8", media("l", 2)),
        ("v/sound.m3u8", media("s", 3)),
    ];
    let found = resolve(&files, 0).unwrap();
    let [audio, video] = found.presentation.tracks.as_slice() else { panic!("{found:?}") };
    assert_eq!((audio.kind, video.kind), (TrackKind::Audio, TrackKind::Video));
    let urls = |track: &Track| {
        let all = track.representations.iter().flat_map(|own| &own.segments);
        all.map(|own| own.url.clone()).collect::<Vec<_>>()
    };
    assert_eq!(urls(audio), ["/m/a/l1.ts", "/m/a/l2.ts", "/m/a/h1.ts", "/m/a/h2.ts"]);
    assert_eq!(urls(video), ["/m/v/l1.ts", "/m/v/l2.ts", "/m/v/h1.ts", "/m/v/h2.ts"]);
    assert_eq!(video.representations[1].bits_per_s, 2_000_000);
    let rest: Vec<String> = found.alternatives.iter().flat_map(urls).collect();
    assert_eq!(rest, ["/m/v/s1.ts", "/m/v/s2.ts", "/m/v/s3.ts", "/m/a/d1.ts", "/m/a/d2.ts"]);
    assert_eq!(found.others.len(), 1);
    assert_eq!(found.references.len(), 7);
}

#[test]
fn live_playlists_are_cut_to_what_all_have() {
    let list = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nb.m3u8\n";
    let media = |first: usize| {
        let segments: String = (first..first + 3).map(|own| format!("#EXTINF:4,\n{own}.ts\n")).collect();
        let date = "#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10Z\n";
        format!("{LIST}#EXT-X-MEDIA-SEQUENCE:{first}\n{date}{segments}").into_bytes()
    };
    let files = [("x.m3u8", list.into()), ("a.m3u8", media(7)), ("b.m3u8", media(8))];
    let found = resolve(&files, 0).unwrap();
    assert_eq!(first_urls(&found), ["/m/8.ts", "/m/9.ts"]);
    assert_eq!(found.presentation.tracks[0].representations[1].segments[1].url, "/m/9.ts");
    assert_eq!(found.places, [[8, 9].map(SegmentPlace::of_number)]);
    let live = Live {
        epoch_unix_ns: Some(10 * S),
        window_ns: Some(12 * S),
        reload_ns: Some(4 * S),
        delay_ns: Some(12 * S),
    };
    assert_eq!(found.live, Some(live));
}

#[test]
fn playlists_that_do_not_lead_to_segments_are_errors() {
    let list = |uri: &str| format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{uri}\n").into_bytes();
    // A playlist that refers to itself ends after one step.
    let error = resolve(&[("x.m3u8", list("x.m3u8"))], 0).unwrap_err().to_string();
    assert!(error.contains("lists variants where segments are expected"), "{error}");
    let error = resolve(&[("x.m3u8", list("ftp://a/b"))], 0).unwrap_err().to_string();
    assert!(error.contains("line 3: `ftp://a/b` is not a reference"), "{error}");
    let bad = format!("{LIST}a.ts").into_bytes();
    let error = resolve(&[("x.m3u8", list("a.m3u8")), ("a.m3u8", bad)], 0).unwrap_err().to_string();
    assert!(error.contains("line 3: `a.ts` has neither"), "{error}");
    let many: String = (0..10_001).map(|own| format!("#EXT-X-STREAM-INF:BANDWIDTH=1\n{own}\n")).collect();
    let error = resolve(&[("x.m3u8", format!("#EXTM3U\n{many}").into_bytes())], 0).unwrap_err().to_string();
    assert!(error.contains("refers to more than 10000 resources"), "{error}");
    let empty = format!("{LIST}#EXT-X-ENDLIST\n").into_bytes();
    let error = resolve(&[("x.m3u8", empty)], 0).unwrap_err().to_string();
    assert!(error.contains("lists no segment"), "{error}");
}

/// Segments 1 and 2 of two fragments each; number 3 does not exist.
fn bootstrap(is_live: bool) -> Vec<u8> {
    let spans = [(1, 0), (2, 4_000), (4, 8_000)].map(|(number, start)| FragmentSpan {
        number,
        start,
        duration: 4_000,
    });
    let own = Bootstrap {
        timescale: 1_000,
        is_live,
        current_time: 12_000,
        segment_tables: vec![SegmentTable {
            runs: vec![SegmentRun { first_segment: 1, fragments_per_segment: 2 }],
            ..SegmentTable::default()
        }],
        fragment_tables: vec![FragmentTable {
            timescale: 1_000,
            runs: runs_of(&spans, !is_live),
            ..FragmentTable::default()
        }],
        ..Bootstrap::default()
    };
    let mut bytes = Vec::new();
    own.write(&mut bytes);
    bytes
}

#[test]
fn fragments_that_do_not_exist_are_not_listed() {
    let media = |id: &str, bits_per_s, bootstrap| F4mMedia {
        kind: TrackKind::Video,
        is_alternative: false,
        id: id.to_owned(),
        bits_per_s,
        source: MediaSource::Fragments { url: format!("{id}?token=1"), bootstrap },
    };
    let manifest = F4m {
        version: 1,
        media: vec![
            media("hi", 2_000_000, BootstrapSource::Url("x.bootstrap".to_owned())),
            media("lo", 800_000, BootstrapSource::Inline(bootstrap(false))),
        ],
        ..F4m::default()
    };
    let files = [("x.f4m", manifest.write().into_bytes()), ("x.bootstrap", bootstrap(false))];
    let found = resolve(&files, 0).unwrap();
    let expected = ["/m/loSeg1-Frag1?token=1", "/m/loSeg1-Frag2?token=1", "/m/loSeg2-Frag4?token=1"];
    assert_eq!(first_urls(&found), expected);
    let track = &found.presentation.tracks[0];
    assert_eq!(track.durations_ns, [4 * S; 3]);
    assert_eq!(track.representations[1].segments[2].url, "/m/hiSeg2-Frag4?token=1");
    // A bootstrap alone has the name of its media.
    let found = resolve(&[("film.abst", bootstrap(true))], 0).unwrap();
    assert_eq!(first_urls(&found), ["/m/filmSeg1-Frag1", "/m/filmSeg1-Frag2", "/m/filmSeg2-Frag4"]);
    assert_eq!(found.live.and_then(|live| live.reload_ns), Some(4 * S));
}

#[test]
fn a_set_of_manifests_is_followed_once() {
    let set = |href: &str| F4m {
        version: 2,
        base_url: Some("http://a.test/m".to_owned()),
        media: vec![F4mMedia {
            kind: TrackKind::Video,
            is_alternative: false,
            id: String::new(),
            bits_per_s: 900_000,
            source: MediaSource::Manifest(href.to_owned()),
        }],
        ..F4m::default()
    };
    let source =
        MediaSource::Fragments { url: "v".to_owned(), bootstrap: BootstrapSource::Inline(bootstrap(false)) };
    let mut child = set("");
    (child.media[0].source, child.media[0].bits_per_s) = (source, 0);
    let files = [("x.f4m", set("y.f4m").write().into_bytes()), ("y.f4m", child.write().into_bytes())];
    let found = resolve(&files, 0).unwrap();
    assert_eq!(first_urls(&found)[2], "/m/vSeg2-Frag4");
    assert_eq!(found.presentation.tracks[0].representations[0].bits_per_s, 900_000);
    let error = resolve(&[("x.f4m", set("x.f4m").write().into_bytes())], 0).unwrap_err().to_string();
    assert!(error.contains("of a set refers to a further manifest, `x.f4m`"), "{error}");
}

fn package(live: Option<Live>) -> Package {
    let representation = |id: &str, bits_per_s| PackagedRepresentation {
        id: id.to_owned(),
        bits_per_s,
        codecs: "avc1.640028".to_owned(),
        picture: Some((640, 360)),
        ..PackagedRepresentation::default()
    };
    let track = |kind, timescale, durations: &[u64], representations| PackagedTrack {
        kind,
        timescale,
        first_number: 3,
        first_time: 2 * u64::from(timescale),
        durations: durations.to_vec(),
        media: Template::parse("$RepresentationID$/$Number%04d$.m4s").unwrap(),
        initialization: Some(Template::parse("$RepresentationID$/init.mp4").unwrap()),
        playlist: Template::parse("$RepresentationID$/index.m3u8").unwrap(),
        representations,
    };
    let sound =
        PackagedRepresentation { codecs: "mp4a.40.2".to_owned(), picture: None, ..representation("a", 128) };
    Package {
        tracks: vec![
            track(TrackKind::Audio, 48_000, &[96_000, 96_000, 48_000], vec![sound]),
            track(
                TrackKind::Video,
                25,
                &[50, 50, 25],
                vec![representation("lo", 800), representation("hi", 3_000)],
            ),
        ],
        live,
    }
}

/// The manifests of all formats that are written describe the same.
#[test]
fn written_manifests_are_read() {
    let package = package(None);
    let mut expected: Option<Presentation> = None;
    for addressing in [Addressing::Timeline, Addressing::Number] {
        let text = write_mpd(&package, addressing, 0);
        assert_eq!(text.contains("<SegmentTimeline>"), addressing == Addressing::Timeline, "{text}");
        // A number without a timeline has the time of its place in the period, which begins at 0.
        let start = if addressing == Addressing::Timeline { 2 * S } else { 0 };
        let found = resolve(&[("x.mpd", text.into_bytes())], 0).unwrap();
        assert_eq!(found.places[1][0], SegmentPlace::of_time(start, 2 * S));
        let known = expected.get_or_insert_with(|| found.presentation.clone());
        assert_eq!(*known, found.presentation);
    }
    let expected = expected.unwrap();
    assert_eq!(expected.tracks[1].representations[0].segments[2].url, "/m/lo/0005.m4s");
    let video = &package.tracks[1];
    let all =
        package.tracks.iter().flat_map(|track| track.representations.iter().map(move |own| (track, own)));
    let mut files = vec![("x.m3u8".to_owned(), write_multivariant(&package).into_bytes())];
    files.extend(
        all.map(|(track, own)| (track.playlist_url(own), write_media(track, own, None, "../").into_bytes())),
    );
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let found = resolve(&files, 0).unwrap();
    for (track, known) in found.presentation.tracks.iter().zip(&expected.tracks) {
        assert_eq!((track.kind, &track.durations_ns), (known.kind, &known.durations_ns));
        for (own, known) in track.representations.iter().zip(&known.representations) {
            assert_eq!((&own.initialization, &own.segments), (&known.initialization, &known.segments));
        }
    }
    // A variant's bit rate includes that of its first audio.
    let rates: Vec<_> =
        found.presentation.tracks[1].representations.iter().map(|own| own.bits_per_s).collect();
    assert_eq!(rates, [928, 3_128]);
    assert_eq!(video.segment_url(&video.representations[0], 2), "lo/0005.m4s");
}

/// A player of HLS has the audio ladder of the MPD.
#[test]
fn a_ladder_of_audio_is_one_track_in_all_formats() {
    let mut package = package(None);
    let best = PackagedRepresentation {
        id: "a2".to_owned(),
        bits_per_s: 256,
        ..package.tracks[0].representations[0].clone()
    };
    package.tracks[0].representations.push(best);
    let mpd = write_mpd(&package, Addressing::Number, 0);
    let mut files = vec![("x.m3u8".to_owned(), write_multivariant(&package).into_bytes())];
    for track in &package.tracks {
        for own in &track.representations {
            files.push((track.playlist_url(own), write_media(track, own, None, "../").into_bytes()));
        }
    }
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let segments = |found: &Manifest| {
        assert!(found.alternatives.is_empty(), "{found:?}");
        let all = found.presentation.tracks.iter().flat_map(|track| &track.representations);
        all.map(|own| own.segments[0].url.clone()).collect::<Vec<_>>()
    };
    let of_hls = segments(&resolve(&files, 0).unwrap());
    assert_eq!(of_hls, segments(&resolve(&[("x.mpd", mpd.into_bytes())], 0).unwrap()));
    assert_eq!(of_hls.len(), 4);
}

/// By numbers alone, clients would request a segment that a shorter track does not have.
#[test]
fn a_shorter_track_gets_a_timeline() {
    let mut package = package(None);
    package.tracks[1].durations.pop();
    let text = write_mpd(&package, Addressing::Number, 0);
    assert_eq!(text.matches("<SegmentTimeline>").count(), 1, "{text}");
    let found = resolve(&[("x.mpd", text.into_bytes())], 0).unwrap();
    assert_eq!(found.presentation.tracks[1].durations_ns, [2 * S; 2]);
}

#[test]
fn written_live_windows_are_read() {
    let live = Live {
        epoch_unix_ns: Some(100 * S),
        window_ns: Some(6 * S),
        reload_ns: Some(2 * S),
        delay_ns: Some(6 * S),
    };
    let package = package(Some(live));
    let text = write_mpd(&package, Addressing::Timeline, 107 * S);
    let found = resolve(&[("x.mpd", text.into_bytes())], 107).unwrap();
    assert_eq!(found.live, Some(live));
    assert_eq!(found.places[1][2], SegmentPlace::of_time(6 * S, S));
    let track = &package.tracks[1];
    let text = write_media(track, &track.representations[0], Some(&live), "");
    let found = resolve(&[("x.m3u8", text.into_bytes())], 107).unwrap();
    assert_eq!(found.places, [[3, 4, 5].map(SegmentPlace::of_number)]);
    let read = found.live.unwrap();
    assert_eq!((read.epoch_unix_ns, read.reload_ns), (Some(102 * S), Some(2 * S)));
    assert_eq!(read.window_ns, Some(5 * S));
}

/// A file that ffmpeg 5.1 or Shaka Packager 3.8 wrote of ten seconds, with a key frame every two.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("recorded/", $name)).to_vec()
    };
}

fn decoded(base64: &[u8]) -> Vec<u8> {
    use base64::Engine;
    let text: Vec<u8> = base64.iter().copied().filter(u8::is_ascii_graphic).collect();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// The number of segments and the duration of each track, in whole microseconds: each segment may lose less
/// than a nanosecond.
fn shape(manifest: &Manifest) -> Vec<(TrackKind, usize, u64)> {
    let rounded = |ns: u64| (ns + 500) / 1_000 * 1_000;
    let tracks = manifest.presentation.tracks.iter();
    tracks.map(|track| (track.kind, track.durations_ns.len(), rounded(track.duration_ns()))).collect()
}

#[test]
fn manifests_of_ffmpeg_are_read() {
    let found = resolve(&[("x.mpd", recorded!("ffmpeg.mpd"))], 0).unwrap();
    assert_eq!(shape(&found), [(TrackKind::Audio, 5, 10 * S), (TrackKind::Video, 5, 10 * S)]);
    let video = &found.presentation.tracks[1].representations[0];
    assert_eq!(video.segments[4].url, "/m/chunk-stream0-00005.m4s");
    let found = resolve(&[("x.m3u8", recorded!("ffmpeg.m3u8"))], 0).unwrap();
    assert_eq!(shape(&found), [(TrackKind::Video, 5, 10 * S)]);
    assert_eq!(
        found.presentation.tracks[0].representations[0].initialization.as_ref().unwrap().url,
        "/m/init.mp4"
    );
    let bootstrap = decoded(&recorded!("ffmpeg-abst.txt"));
    let files = [("index.f4m", recorded!("ffmpeg.f4m")), ("stream0.abst", bootstrap)];
    let found = resolve(&files, 0).unwrap();
    let expected: Vec<String> = (1..=5).map(|number| format!("/m/stream0Seg1-Frag{number}")).collect();
    assert_eq!(first_urls(&found), expected);
    assert_eq!(found.presentation.tracks[0].representations[0].bits_per_s, 369_000);
}

#[test]
fn manifests_of_shaka_packager_are_read() {
    // One file for each track, of which only the index is read.
    let file = |sidx: &[u8]| [vec![0; 833], decoded(sidx)].concat();
    let files = [
        ("x.mpd", recorded!("shaka-ranges.mpd")),
        ("a.mp4", file(&recorded!("shaka-sidx-a.txt"))),
        ("v.mp4", file(&recorded!("shaka-sidx-v.txt"))),
    ];
    let by_index = resolve(&files, 0).unwrap();
    assert_eq!(shape(&by_index), [(TrackKind::Audio, 5, 10 * S), (TrackKind::Video, 5, 10 * S)]);
    let files = [
        ("x.m3u8", recorded!("shaka.m3u8")),
        ("a.m3u8", recorded!("shaka-audio.m3u8")),
        ("v.m3u8", recorded!("shaka-video.m3u8")),
    ];
    let by_playlist = resolve(&files, 0).unwrap();
    for (own, other) in by_index.presentation.tracks.iter().zip(&by_playlist.presentation.tracks) {
        let (own, other) = (&own.representations[0], &other.representations[0]);
        assert_eq!((&own.initialization, &own.segments), (&other.initialization, &other.segments));
    }
    let last = by_index.presentation.tracks[1].representations[0].segments[4].range.unwrap();
    assert_eq!(last.last, 397_587, "the last byte of the file");
    let live = resolve(&[("x.mpd", recorded!("shaka-live.mpd"))], 1_795_566_300).unwrap();
    assert_eq!(shape(&live), [(TrackKind::Audio, 5, 10 * S), (TrackKind::Video, 5, 10 * S)]);
    assert_eq!(live.presentation.tracks[1].representations[0].segments[4].url, "/m/v/102400.m4s");
    assert_eq!(live.live.and_then(|live| live.reload_ns), Some(5 * S));
}
