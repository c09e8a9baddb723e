//! Timing scripts of our own runs: one client's session.

use model::assignment::ClientReport;
use model::formats::shown;
use model::options::{ExpectedResponse, PathOptions};
use model::plan::{Cell, NamedWorkload, Plan};
use model::player::Player;
use model::record::RunRecord;
use model::sample::{Phase, Sample};
use model::workload::Workload;

use super::{Choice, Exchange, Head, PARTIAL_CONTENT, Recording, RecordingError, Waits, class_of, script_of};

const FAILED: &str = "that failed";
const UNSENT: &str = "not sent: pushed by the server";
const WARM_UP: &str = "of the warm-up";
const UNKNOWN_PART: &str = "of parts whose range the result does not contain, such as those of a live stream";

/// Whose session is recorded.
#[derive(Clone, Copy, Debug)]
pub struct SessionOf<'a> {
    /// The plan of the result.
    pub plan: &'a Plan,
    /// The cell.
    pub cell: &'a Cell,
    /// The number of the client within its group.
    pub client: u32,
    /// The name of the result, for people.
    pub result: &'a str,
}

/// The session of one client in a run.
///
/// # Errors
/// The run has no requests of this client.
pub fn record_samples(
    record: &RunRecord,
    session: SessionOf<'_>,
    choice: &Choice,
) -> Result<Recording, RecordingError> {
    let SessionOf { plan, cell, client, result } = session;
    let named = plan.workload_of(&cell.group);
    let mut choice = choice.clone();
    if choice.classes.is_empty() {
        choice.classes.clone_from(&plan.classes);
    }
    let mut recording = Recording::default();
    let exchanges = exchanges_of(record, (cell.group.group, client), named, &choice, &mut recording);
    let default = match &named.workload {
        Workload::Page(_) => Waits::Cause,
        Workload::Player(_) | Workload::Closed(_) | Workload::Script(_) => Waits::Class,
        Workload::Open(_) => Waits::Nothing,
    };
    let head = Head {
        title: shown(&format!("{} of study {}", named.workload.kind().describe(), plan.study)),
        recorded: format!(
            "client {client} of cell {}, run {} of {}",
            cell.label(),
            record.run,
            shown(result)
        ),
        origin: None,
        variant: Some(cell.group.variant),
    };
    let script = script_of(exchanges, head, choice.waits.unwrap_or(default))?;
    Ok(Recording { script, ..recording })
}

/// The requests of one client of a group, in the order of sending; `recording` counts what is left out.
fn exchanges_of(
    record: &RunRecord,
    (group, client): (u16, u32),
    NamedWorkload { workload, options, .. }: &NamedWorkload,
    choice: &Choice,
    recording: &mut Recording,
) -> Vec<Exchange> {
    let report = record.clients.iter().find(|report| report.group == group);
    let own = |sample: &&Sample| sample.group == group && sample.client == client;
    let mut samples: Vec<&Sample> = record.samples.iter().filter(own).collect();
    samples.sort_by_key(|sample| (sample.sent_ns, sample.request));
    let segments = workload.player().map(Player::resources).unwrap_or_default();
    let (mut exchanges, mut urls) = (Vec::new(), Vec::new());
    for sample in samples {
        let range = segments.get(sample.url as usize).and_then(|segment| segment.range);
        let own = options.requests.paths.get(sample.url as usize).cloned().unwrap_or_default();
        let own = PathOptions { range: own.range.or(range), ..own };
        let reason = match sample {
            Sample { phase: Phase::Warmup, .. } => WARM_UP,
            Sample { sent_ns: None, .. } => UNSENT,
            sample if !sample.outcome.is_ok() => FAILED,
            Sample { status: Some(PARTIAL_CONTENT), .. } if own.range.is_none() => UNKNOWN_PART,
            _ => {
                let url = report.and_then(|report| path_of(report, sample)).unwrap_or("/");
                exchanges.push(exchange(sample, url, own, options.requests.method.as_ref(), choice));
                urls.push(sample.url);
                continue;
            }
        };
        *recording.left_out.entry(reason).or_default() += 1;
    }
    if let Workload::Page(page) = workload {
        for (exchange, url) in exchanges.iter_mut().zip(&urls) {
            let parent = page.resources.get(*url as usize).and_then(|resource| resource.named_by);
            exchange.cause =
                parent.and_then(|parent| urls.iter().position(|other| *other as usize == parent));
        }
    }
    exchanges
}

/// The path of a sample's URL; rows name other hosts in full.
fn path_of<'r>(report: &'r ClientReport, sample: &Sample) -> Option<&'r str> {
    report.urls.get(sample.url as usize).map(String::as_str)
}

fn exchange(
    sample: &Sample,
    url: &str,
    own: PathOptions,
    method: Option<&String>,
    choice: &Choice,
) -> Exchange {
    Exchange {
        // A request that waited for a connection was wanted before it was sent.
        sent_ns: sample.intended_ns,
        ended_ns: sample.done_ns,
        url: url.to_owned(),
        method: own.method.or_else(|| method.cloned()),
        range: own.range,
        fields: own.fields,
        class: class_of(choice, url),
        cause: None,
        expects: ExpectedResponse {
            status: sample.status,
            body_bytes: Some(sample.response_body_bytes),
            body_crc32: sample.response_body_crc32,
        },
    }
}

#[cfg(test)]
mod tests {
    use model::media::{ByteRange, Presentation, Representation, Segment, Track, TrackKind};
    use model::player::Rule;
    use model::workload::{ClosedLoop, LoopLoad};

    use super::*;

    /// One file whose initialization and two segments are parts of it.
    fn single_file() -> Player {
        let part = |first, length| Segment {
            url: "/film/video.mp4".to_owned(),
            range: ByteRange::of_length(first, length),
            bytes: Some(length),
        };
        let representation = Representation {
            name: "video".to_owned(),
            bits_per_s: 8_000,
            initialization: Some(part(0, 100)),
            later_initializations: Vec::new(),
            segments: vec![part(100, 1_000), part(1_100, 1_000)],
        };
        let track = Track {
            kind: TrackKind::Video,
            durations_ns: vec![1_000_000_000; 2],
            representations: vec![representation],
        };
        Player {
            presentation: Presentation { tracks: vec![track] },
            goal_ns: 1,
            startup_ns: 1,
            rebuffer_ns: 1,
            rule: Rule::Throughput,
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: None,
            origin: None,
        }
    }

    /// The record of three responses with parts of one file.
    fn record() -> RunRecord {
        let sample = |url: u32| Sample {
            url,
            request: url.into(),
            intended_ns: u64::from(url) * 1_000,
            sent_ns: Some(u64::from(url) * 1_000),
            done_ns: Some(u64::from(url) * 1_000 + 500),
            status: Some(PARTIAL_CONTENT),
            ..Sample::default()
        };
        let report = ClientReport { urls: vec!["/film/video.mp4".to_owned(); 3], ..ClientReport::default() };
        RunRecord { samples: (0..3).map(sample).collect(), clients: vec![report], ..RunRecord::default() }
    }

    fn recorded(workload: Workload) -> (Vec<Option<ByteRange>>, Recording) {
        let named = NamedWorkload { name: "film".to_owned(), workload, options: Default::default() };
        let mut recording = Recording::default();
        let exchanges = exchanges_of(&record(), (0, 0), &named, &Choice::default(), &mut recording);
        (exchanges.into_iter().map(|exchange| exchange.range).collect(), recording)
    }

    #[test]
    fn the_parts_that_a_player_requested_are_recorded() {
        let (ranges, recording) = recorded(Workload::Player(single_file()));
        assert_eq!(
            ranges,
            [(0, 100), (100, 1_000), (1_100, 1_000)]
                .map(|(first, length)| ByteRange::of_length(first, length))
        );
        assert!(recording.left_out.is_empty());
    }

    #[test]
    fn parts_of_unknown_ranges_are_left_out() {
        let load = LoopLoad { requests: Some(3), ..LoopLoad::new("/film/video.mp4") };
        let (ranges, recording) = recorded(Workload::Closed(ClosedLoop::new(load, None)));
        assert_eq!(ranges, []);
        assert_eq!(recording.left_out[UNKNOWN_PART], 3);
    }
}
