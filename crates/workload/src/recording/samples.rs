//! Timing scripts of our own runs: one client's session.

use model::assignment::ClientReport;
use model::formats::shown;
use model::options::{ExpectedResponse, RequestOptions};
use model::plan::{Cell, Plan};
use model::record::RunRecord;
use model::sample::{Phase, Sample};
use model::workload::Workload;

use super::{Choice, Exchange, Head, Recording, RecordingError, Waits, class_of, script_of};

const FAILED: &str = "that failed";
const UNSENT: &str = "not sent: pushed by the server";
const WARM_UP: &str = "of the warm-up";

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
    let report = record.clients.iter().find(|report| report.group == cell.group.group);
    let mut choice = choice.clone();
    if choice.classes.is_empty() {
        choice.classes.clone_from(&plan.classes);
    }
    let mut samples: Vec<&Sample> = record
        .samples
        .iter()
        .filter(|sample| sample.group == cell.group.group && sample.client == client)
        .collect();
    samples.sort_by_key(|sample| (sample.sent_ns, sample.request));
    let mut recording = Recording::default();
    let mut left_out = |reason| *recording.left_out.entry(reason).or_default() += 1;
    let (mut exchanges, mut urls) = (Vec::new(), Vec::new());
    for sample in samples {
        let reason = match sample {
            Sample { phase: Phase::Warmup, .. } => WARM_UP,
            Sample { sent_ns: None, .. } => UNSENT,
            sample if !sample.outcome.is_ok() => FAILED,
            _ => {
                let url = report.and_then(|report| path_of(report, sample)).unwrap_or("/");
                exchanges.push(exchange(sample, url, &named.options.requests, &choice));
                urls.push(sample.url);
                continue;
            }
        };
        left_out(reason);
    }
    if let Workload::Page(page) = &named.workload {
        for (exchange, url) in exchanges.iter_mut().zip(&urls) {
            let parent = page.resources.get(*url as usize).and_then(|resource| resource.named_by);
            exchange.cause =
                parent.and_then(|parent| urls.iter().position(|other| *other as usize == parent));
        }
    }
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

/// The path of a sample's URL; rows name other hosts in full.
fn path_of<'r>(report: &'r ClientReport, sample: &Sample) -> Option<&'r str> {
    report.urls.get(sample.url as usize).map(String::as_str)
}

fn exchange(sample: &Sample, url: &str, options: &RequestOptions, choice: &Choice) -> Exchange {
    let own = options.paths.get(sample.url as usize).cloned().unwrap_or_default();
    Exchange {
        // A request that waited for a connection was wanted before it was sent.
        sent_ns: sample.intended_ns,
        ended_ns: sample.done_ns,
        url: url.to_owned(),
        method: own.method.or_else(|| options.method.clone()),
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
