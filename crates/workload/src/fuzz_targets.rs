//! Plain functions that give any bytes to a parser of user input. `cargo fuzz` runs them, and so does a smoke
//! test on stable Rust. They must not panic; every error is one short line.

use crate::formats::access_log::{LineForm, LogFormat, LogReader, TimeField, TimeUnit};
use crate::formats::clients::{Format, RequestedLoad};
use crate::formats::flv::{FlvScan, TAG_HEAD_BYTES};
use crate::formats::hds::bootstrap::Bootstrap;
use crate::formats::hds::f4f::{self, ArchiveIndex};
use crate::formats::isobmff::{FragmentedMp4, scan};
use crate::formats::line_pattern::LinePattern;
use crate::formats::manifest::Resolver;
use crate::formats::page_load::{PageLoad, WantedPage};
use crate::formats::playback::{PlaybackEnd, PlaybackReader};
use crate::formats::response::Head;
use crate::formats::{bidi, devtools};
use crate::links;
use crate::page_model::{self, Modelled};
use crate::recording::{Choice, record_har};
use model::Page;
use model::error::Source;
use model::formats::timing_script::{NumberedScript, ParsedScript, jsonl};
use model::formats::url_list;
use model::page::ResourceKind;
use model::player::{Player, Rule, constant_rate_video};
use model::url::Url;
use model::url_pattern::Pattern;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("url_list", url_list),
    ("timing_script", timing_script),
    ("url_pattern", url_pattern),
    ("client_output", client_output),
    ("access_log", access_log),
    ("links", links),
    ("har", har),
    ("devtools", devtools),
    ("bidi", bidi),
    ("playback", playback),
    ("markup", markup),
    ("response", response),
    ("flv", flv),
    ("bootstrap", bootstrap),
    ("archive", archive),
    ("isobmff", isobmff),
    ("manifest", manifest),
];

/// The events of a page load in Chromium, one message a line.
pub fn devtools(data: &[u8]) {
    let mut recorder = devtools::Recorder::new(1_000_000_000);
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        recorder.handle_event(event["method"].as_str().unwrap_or_default(), &event["params"]);
    }
    check_load(&recorder.finish());
}

/// The events of a page load over WebDriver BiDi, one message a line, and the two reports of the browser.
pub fn bidi(data: &[u8]) {
    let clock = bidi::RunClock { run_start_ns: 1_000_000_000, unix_offset_ns: 1_795_563_000_000_000_000 };
    let mut recorder = bidi::Recorder::new(clock, "tab");
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
        match &message["method"] {
            serde_json::Value::String(method) => recorder.handle_event(method, &message["params"]),
            _ if message.is_array() => recorder.handle_connections(&message),
            _ => recorder.handle_timeline(&message),
        }
    }
    if let Some((_, reason)) = recorder.failure() {
        assert_one_line(reason);
    }
    check_load(&recorder.finish());
}

/// What is true of the load of any page.
fn check_load(load: &PageLoad) {
    for request in &load.requests {
        let stamps = [request.sent_ns, request.first_byte_ns, request.done_ns];
        let known: Vec<u64> = stamps.into_iter().flatten().collect();
        assert!(known.is_sorted(), "{request:?}");
    }
    load.events.console.iter().for_each(|message| assert_one_line(message));
    let text = "title = 'p'\n[[resource]]\npath = '/'\nkind = 'html'\nsizes = ['1kB']\n";
    let Ok(page) = Page::parse("p", Source { file: "p", text }) else { return };
    let Ok(document) = Url::parse("https://a.test/") else { return };
    let http = model::variant::HttpVersion::Http2;
    let rows = load.rows(&WantedPage {
        group: 0,
        resources: &WantedPage::resources_of(&page, &document),
        document: &document,
        http,
    });
    assert_eq!(rows.samples.len(), load.requests.len());
    assert!(rows.samples.iter().all(|sample| (sample.url as usize) < rows.urls.len()));
    let known = rows.connections.len();
    assert!(rows.samples.iter().flat_map(|sample| sample.connection).all(|number| (number as usize) < known));
    assert!(rows.connections.is_sorted_by_key(|row| row.opened_ns));
}

/// The log of a player's page.
pub fn playback(data: &[u8]) {
    let Ok(log) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let Ok(document) = Url::parse("https://a.test/") else { return };
    let player = Player {
        presentation: constant_rate_video(&[8_000], 1_000_000_000, 3),
        goal_ns: 1,
        startup_ns: 1,
        rebuffer_ns: 1,
        rule: Rule::Hlsjs,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    };
    let reader = PlaybackReader { group: 0, player: &player, document: &document, origin_ns: 1_000_000_000 };
    let playback = reader.read(&log);
    assert!(playback.events.is_sorted_by_key(|event| event.at_ns));
    assert!(playback.events.iter().all(|event| event.at_ns >= reader.origin_ns));
    assert_one_line(&playback.version);
    if let PlaybackEnd::GaveUp(reason) = &playback.end {
        assert_one_line(reason);
    }
}

/// A list of URLs.
pub fn url_list(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match url_list::parse(text) {
        Ok(entries) => {
            assert!(entries.len() <= text.lines().count());
            assert!(entries.iter().all(|entry| !entry.url.is_empty()));
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// The tags of an FLV file.
pub fn flv(data: &[u8]) {
    let mut scan = FlvScan::default();
    for head in data.chunks_exact(TAG_HEAD_BYTES) {
        let before = scan.offset();
        let Ok(head) = head.try_into() else { return };
        match scan.handle_tag(head) {
            Ok(()) => assert!(scan.offset() > before),
            Err(error) => return assert_one_line(&error.to_string()),
        }
    }
    let end = scan.offset();
    match scan.finish() {
        Ok((_, fragments)) => {
            assert!(fragments.windows(2).all(|pair| pair[0].range.last < pair[1].range.first));
            assert!(fragments.iter().all(|of| of.range.last < end));
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// A timing script of h2load.
/// A timing script of either format. What was read can be written and read again.
pub fn timing_script(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ParsedScript::parse(text) {
        Ok(ParsedScript { script, lines }) => {
            assert_eq!(lines.len(), script.requests.len());
            assert!(script.requests.is_sorted_by_key(|request| request.at_ns));
            let NumberedScript { firsts, entries } = script.numbered();
            assert_eq!(entries.len(), lines.len());
            for ((place, entry), request) in entries.iter().enumerate().zip(&script.requests) {
                assert_eq!(script.requests[firsts[entry.url as usize]].url, request.url);
                assert!(entry.after.iter().all(|other| (*other as usize) < place));
            }
            let again = jsonl::parse(&jsonl::write(&script));
            // A URL of the other format may be longer than a line.
            if script.requests.iter().all(|request| request.url.len() < 1000) {
                let again = again.map(|again| again.script.numbered().firsts);
                assert_eq!(again, Ok(firsts));
            }
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// A path with numbers that are drawn.
pub fn url_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Pattern::parse(text) {
        Ok(Some(pattern)) => {
            let (mut first, mut again) = (String::new(), String::new());
            pattern.fill(1, 2, &mut first);
            pattern.fill(1, 2, &mut again);
            assert_eq!(first, again, "the seed decides");
            assert!(!first.contains("{random:"), "{first}");
            if let Some(paths) = pattern.paths(1000) {
                assert!(paths.contains(&first) && paths[0] == pattern.least(), "{first}");
            }
        }
        Ok(None) => assert!(!text.contains("{random:")),
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// The output of another load tool: its text, then a zero byte and the file that it wrote.
pub fn client_output(data: &[u8]) {
    let Ok(all) = std::str::from_utf8(data) else { return };
    let (text, file) = all.split_once('\0').unwrap_or((all, ""));
    for format in Format::ALL {
        match format.parse(text, file, RequestedLoad { connections: data.len() as u64 % 8, cut_off: 0 }) {
            Ok(output) => {
                assert!(output.rows.is_sorted_by_key(|row| row.start_ns), "{}", format.name());
                let timed: u128 = output.times.iter().map(|(_, count)| u128::from(*count)).sum();
                assert!(timed <= u128::from(output.ok), "{}: {timed} times", format.name());
            }
            Err(error) => assert_one_line(&error.to_string()),
        }
    }
}

/// An access log: its first line is the pattern of the others, which are read in that form and as JSON.
pub fn access_log(data: &[u8]) {
    let (pattern, log) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let field = |unit| TimeField { field: "time".to_owned(), unit };
    let mut format = LogFormat {
        form: LineForm::Json,
        request_id: Some("id".to_owned()),
        request_time: field(TimeUnit::Seconds),
        precision_ns: 1,
        time: Some(field(TimeUnit::Milliseconds)),
        status: Some("a.0.b".to_owned()),
        body_bytes: None,
        remote_port: Some("port".to_owned()),
        path: Some("id".to_owned()),
    };
    read_log(&format, log);
    match LinePattern::parse(&String::from_utf8_lossy(pattern)) {
        Ok(pattern) => {
            format.form = LineForm::Pattern(pattern);
            read_log(&format, log);
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// The values of `link` in a response.
pub fn links(data: &[u8]) {
    for target in links::preloads(data) {
        assert!(!target.contains('>'));
        assert!(links::path_at(target, "http", "a").is_none_or(|path| path.starts_with('/')), "{target}");
    }
}

/// A record of a page load.
pub fn har(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match page_model::parse_har(text) {
        Ok(page) => assert_readable(&page.title, &page.resources),
        Err(error) => assert_one_line(&error.to_string()),
    }
    match record_har(text, &Choice::default()) {
        Ok(recording) => {
            let again =
                jsonl::parse(&jsonl::write(&recording.script)).map(|again| again.script.requests.len());
            assert_eq!(again, Ok(recording.script.requests.len()));
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// HTML and CSS: what they name becomes a page that can be read.
pub fn markup(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(base) = Url::parse("https://a.test/") else { return };
    let resource = |url, kind, parent, named_at_bytes| Modelled {
        url,
        kind,
        bytes: 9,
        parent,
        named_at_bytes,
        wait_ns: 7_000_000,
    };
    let mut all = vec![resource(base.clone(), ResourceKind::Html, None, 0)];
    let (_, references) = page_model::html_references(text);
    for reference in references.into_iter().chain(page_model::css_references(text)) {
        assert!(reference.end <= text.len() + 9);
        if let Some(url) = base.join(&reference.text).filter(|url| all.iter().all(|known| known.url != *url))
        {
            all.push(resource(url, reference.kind, Some(0), 9));
        }
    }
    assert_readable(text, &all);
}

/// A response of a server outside over HTTP/1.1.
pub fn response(data: &[u8]) {
    match Head::parse(data) {
        Ok(Some(head)) => {
            let rest = &data[head.bytes..];
            if let (Ok(body), Ok(_)) = (head.body(rest), head.is_whole(rest)) {
                assert!(body.len() <= rest.len());
            }
        }
        Ok(None) => {}
        Err(error) => assert_one_line(&error),
    }
}

/// A bootstrap of HDS.
pub fn bootstrap(data: &[u8]) {
    match Bootstrap::parse(data) {
        Ok(own) => {
            let mut bytes = Vec::new();
            own.write(&mut bytes);
            assert_eq!(Bootstrap::parse(&bytes).as_ref(), Ok(&own), "what is written is read");
            match own.fragments() {
                Ok(fragments) => {
                    assert!(fragments.is_sorted_by(|one, next| one.number < next.number));
                    if let Some(last) = fragments.last() {
                        assert_eq!(own.find(last.number), Ok(Some(*last)));
                        assert_eq!(own.segment_of(last.number), Some(last.segment));
                    }
                }
                Err(error) => assert_one_line(&error.to_string()),
            }
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// An archive of HDS fragments, and its index.
pub fn archive(data: &[u8]) {
    match scan(data).and_then(|top| f4f::fragments(&top)) {
        Ok(fragments) => {
            assert!(fragments.is_sorted_by(|one, next| one.range.last < next.range.first));
            for own in fragments {
                assert!(own.range.last < data.len() as u64, "{own:?}");
            }
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
    match ArchiveIndex::parse(data) {
        Ok(index) => {
            let mut bytes = Vec::new();
            index.write(&mut bytes);
            assert_eq!(ArchiveIndex::parse(&bytes), Ok(index), "what is written is read");
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// A fragmented MP4.
pub fn isobmff(data: &[u8]) {
    match scan(data).and_then(|top| FragmentedMp4::of_boxes(&top)) {
        Ok(found) => {
            assert!(!found.fragments.is_empty());
            assert!(found.fragments.iter().all(|own| own.range.first <= own.range.last));
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

/// A manifest and, after zero bytes, what it refers to; the last part answers all further needs.
pub fn manifest(data: &[u8]) {
    const NOW_UNIX_NS: u64 = 1_800_000_000_000_000_000;
    let Ok(base) = Url::parse("https://a.test/b/c") else { return };
    // Boxes contain zero bytes, so a manifest in this format is alone.
    let is_text = data.first().is_some_and(|first| *first != 0);
    let mut parts = data.split(|byte| is_text && *byte == 0);
    let mut part = parts.next().unwrap_or_default();
    let mut resolver = match Resolver::new(part, &base, NOW_UNIX_NS) {
        Ok(resolver) => resolver,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    while let Some(need) = resolver.needs().first() {
        part = parts.next().unwrap_or(part);
        if let Err(error) = resolver.handle_resource(need, &need.url, part) {
            return assert_one_line(&error.to_string());
        }
    }
    match resolver.finish() {
        Ok(found) => {
            assert_eq!(found.places.len(), found.presentation.tracks.len());
            for track in found.presentation.tracks.iter().chain(&found.alternatives) {
                assert!(!track.representations.is_empty());
                for own in &track.representations {
                    assert_eq!(own.segments.len(), track.durations_ns.len());
                    let mut needs = own.initializations().map(|(first, _)| first);
                    assert!(needs.all(|first| first < own.segments.len()));
                }
            }
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

fn assert_readable(title: &str, resources: &[Modelled]) {
    let text = page_model::page_file(title, resources, &[title.to_owned()]);
    // The only fault that written pages may have is too many hosts.
    if let Err(error) = Page::parse("fuzz", Source { file: "fuzz", text: &text }) {
        assert!(error.problem.contains("hosts"), "{error}\n{text}");
    }
}

fn read_log(format: &LogFormat, log: &[u8]) {
    const MOST_LINES: usize = 8;
    let mut reader = LogReader::new(format, MOST_LINES);
    log.split(|byte| *byte == b'\n').for_each(|line| reader.handle_line(line));
    let read = reader.finish();
    assert!(read.lines.len() <= MOST_LINES);
    assert_eq!(read.first_fault.is_some(), read.unreadable > 0);
    for line in log.split(|byte| *byte == b'\n') {
        if let Ok(unit_ns) = format.read_any(line, |request| request.unit_ns) {
            assert!(unit_ns > 0);
        }
    }
    read.first_fault.iter().for_each(|fault| assert_one_line(fault));
}

fn assert_one_line(error: &str) {
    assert!(!error.contains('\n') && error.chars().count() < 300, "{error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::shuffle::SplitMix64;

    /// Valid input, so that mutations reach deep.
    const SEEDS: &[&[u8]] = &[
        b"# comment\nhttps://a.test/\n/b GET\n/c POST name=value\n/d PUT <file\n/e POST @file\n",
        b"0\thttps://a.test/\n# later\n\n12.5\t/b?c\r\n12.5\t/d\n",
        b"{\"h123_script\":1,\"title\":\"t\",\"origin\":\"https://a.test\",\"variant\":\"h2\"}\n{\"at_ms\":0,\"url\":\"/a\"}\n\
          {\"at_ms\":1.5,\"url\":\"/b\",\"range\":\"0-9\",\"fields\":[[\"a\",\"b\"]],\"class\":\"c\",\"after\":[0],\"gap_ms\":1,\
          \"status\":206,\"bytes\":10,\"crc32\":\"cbf43926\"}\n",
        b"/a/{random:1-7000}/{random:0-18446744073709551615}.ts",
        b"[{_}] {port} {id} {time}us {{}}\n[x] 1 0-7 12us {}\n{\"id\":\"0-7\",\"time\":0.5,\"a\":[{\"b\":200}]}\n",
        b"\xef\xbb\xbf/\xc3\xa4 \xe2\x80\xa8\n1e3\t/\n",
        concat!(
            include_str!("formats/clients/recorded/h2load-h2.txt"),
            "\0",
            "5\t200\t7\n4\t404\t1\n9\t-1\t3\n"
        )
        .as_bytes(),
        concat!(
            include_str!("formats/clients/recorded/ab.txt"),
            "\0",
            include_str!("formats/clients/recorded/ab.csv")
        )
        .as_bytes(),
        b"h123 sums 1000 6 99 0 0 0 0 0\nh123 latency 3 4\nh123 latency 500 2\nh123 report_cpu 7\n",
        include_str!("formats/clients/recorded/curl.txt").as_bytes(),
        include_str!("formats/clients/recorded/siege.txt").as_bytes(),
        b"</a.css>; rel=preload; as=style, <http://a/b?c#d>;x=\"\\\"\";rel=\"a preload\"",
        b"{\"log\":{\"entries\":[{\"startedDateTime\":\"2026-01-02T03:04:05.5Z\",\"time\":9.5,\"request\":{\"method\":\"GET\",\"url\":\"https://a.test/?b#c\"},\"response\":{\"status\":200,\
          \"bodySize\":9,\"content\":{\"mimeType\":\"text/html\"}},\"_initiator\":{\"url\":\"https://a.test/\"}}]}}",
        include_str!("formats/recorded/chromium-h1.jsonl").as_bytes(),
        include_str!("formats/recorded/chromium-h3.jsonl").as_bytes(),
        include_str!("formats/recorded/firefox-h1.jsonl").as_bytes(),
        include_str!("formats/recorded/firefox-h3.jsonl").as_bytes(),
        b"{\"version\":\"1.7.4\",\"events\":[{\"what\":\"opened\",\"at\":1.5,\"position\":0,\"buffered\":0},{\"what\":\"requested\",\"at\":2,\
          \"track\":\"video\",\"url\":\"https://a.test/bytes/1000\",\"number\":1,\"start\":0,\"duration\":1,\"bitsPerSecond\":8e3,\
          \"latency\":3,\"frames\":1,\"dropped\":0}],\"end\":{\"what\":\"gave_up\",\"fault\":\"media_invalid\",\"reason\":\"x\"}}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"<MPD type='dynamic' availabilityStartTime='2026-01-01T00:00:00Z' timeShiftBufferDepth='PT9S'><Period><AdaptationSet \
          mimeType='video/mp4'><SegmentTemplate duration='2' media='$Number%03d$'/><Representation id='a' bandwidth='9'/>\
          </AdaptationSet></Period></MPD>",
        b"<MPD mediaPresentationDuration='PT9S'><Period><BaseURL>a/</BaseURL><AdaptationSet contentType='audio'><SegmentTemplate \
          timescale='3' media='$Time$'><SegmentTimeline><S t='0' d='3' r='2'/><S d='5' r='-1'/></SegmentTimeline>\
          </SegmentTemplate><Representation/></AdaptationSet><AdaptationSet><SegmentList duration='2'><SegmentURL media='b'/>\
          </SegmentList><Representation mimeType='video/a'/></AdaptationSet></Period></MPD>",
        b"#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"b\",URI=\"c\"\n#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO=\"a\"\nd\n\0#EXTM3U\n\
          #EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-MAP:URI=\"i\",BYTERANGE=\"9@0\"\n#EXTINF:3.5,\n\
          #EXT-X-BYTERANGE:7@9\ne\n#EXTINF:4,\n#EXT-X-GAP\nf\n#EXT-X-ENDLIST\n",
        b"<manifest><bootstrapInfo id='a'>AAAA</bootstrapInfo><media url='b' bootstrapInfoId='a'/><media href='c'/></manifest>",
        b"<base href=//b.test><link rel=stylesheet href='../a.css'><style>@import url(b.css);</style><img src=?d style=url(e)>",
        b"\x09\0\0\x05\0\0\0\0\0\0\0\x17\0\x08\0\0\x04\0\0\0\0\0\0\0\xaf\0\x09\0\x01\0\0\0\x28\0\0\0\0\x17\x01",
    ];
    /// Boxes as seeds: an archive with an index, and a fragmented MP4.
    fn boxes() -> Vec<Vec<u8>> {
        use crate::formats::hds::bootstrap::{
            FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
        };
        use crate::formats::hds::f4f::{ArchiveLayout, NewFragment};
        use crate::formats::isobmff::{
            SegmentIndex, SegmentReference, write_box, write_full_box, write_sidx,
        };
        let spans = [(1, 0), (4, 8)].map(|(number, start)| FragmentSpan { number, start, duration: 4 });
        let runs = vec![SegmentRun { first_segment: 1, fragments_per_segment: 2 }];
        let own = Bootstrap {
            timescale: 1,
            current_time: 12,
            segment_tables: vec![SegmentTable { runs, ..SegmentTable::default() }],
            fragment_tables: vec![FragmentTable {
                timescale: 1,
                runs: runs_of(&spans, true),
                ..FragmentTable::default()
            }],
            ..Bootstrap::default()
        };
        let mut bootstrap = Vec::new();
        own.write(&mut bootstrap);
        let new = spans.map(|own| NewFragment {
            number: own.number,
            start: own.start,
            duration: own.duration,
            media_bytes: 3,
        });
        let layout = ArchiveLayout::new(&own, &new);
        let archive = layout.heads.iter().flat_map(|head| [head.as_slice(), b"abc"].concat()).collect();
        let (mut index, mut mp4) = (Vec::new(), Vec::new());
        ArchiveIndex { timescale: 1, entries: layout.entries(1, &new).collect() }.write(&mut index);
        write_box(&mut mp4, b"moov", |body| {
            write_box(body, b"trak", |body| {
                write_full_box(body, b"tkhd", 0, 0, |body| body.extend([0; 12]));
                write_box(body, b"mdia", |body| {
                    write_full_box(body, b"mdhd", 0, 0, |body| body.extend([1; 12]));
                });
            });
        });
        let by_moof = [mp4.clone(), layout.heads[1].clone(), b"abc".to_vec()].concat();
        let reference = SegmentReference { bytes: 9, duration: 1, is_index: false };
        write_sidx(
            &mut mp4,
            &SegmentIndex { timescale: 1, references: vec![reference], ..Default::default() },
        );
        vec![bootstrap, archive, index, mp4, by_moof]
    }

    const PIECES: &[&[u8]] = &[
        b"{random:",
        b"}",
        b"\t",
        b"\n",
        b" ",
        b"nan",
        b"-1",
        b"9e999",
        b"\xe2\x80\xa8",
        b"\r",
        b"\0",
        b"99999999999999999999",
    ];
    const MUTATIONS: u64 = 3000;

    #[test]
    fn no_parser_panics_on_a_small_corpus() {
        let mut random = SplitMix64::new(1);
        let boxes = boxes();
        let seeds: Vec<&[u8]> = SEEDS.iter().copied().chain(boxes.iter().map(Vec::as_slice)).collect();
        let mut below = |limit: usize| usize::try_from(random.next_below(limit.max(1) as u64)).unwrap();
        for round in 0..MUTATIONS {
            let mut bytes = seeds[below(seeds.len())].to_vec();
            for _ in 0..below(6) {
                let at = below(bytes.len());
                match below(4) {
                    0 if !bytes.is_empty() => bytes[at] = u8::try_from(below(256)).unwrap(),
                    1 => bytes.truncate(at),
                    2 => bytes.extend_from_slice(&seeds[below(seeds.len())].repeat(below(20))),
                    _ => drop(bytes.splice(at..at, PIECES[below(PIECES.len())].iter().copied())),
                }
            }
            for (name, target) in TARGETS {
                let result = std::panic::catch_unwind(|| target(&bytes));
                assert!(result.is_ok(), "target {name}, round {round}: {}", bytes.escape_ascii());
            }
        }
    }
}
