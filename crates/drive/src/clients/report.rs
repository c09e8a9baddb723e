//! From what an external client said to the rows and sums of a run.

use model::assignment::ClientReport;
use model::external::{ExternalReport, FailureCount};
use model::sample::{FailureKind, Outcome, Phase, Sample};
use workload::formats::clients::{Row, Said};

use super::command::Loop;

/// What the tool measured of the client's process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// When it was started, on the run's clock.
    pub(crate) started_ns: u64,
    /// When it had ended.
    pub(crate) finished_ns: u64,
    pub(crate) cpu_user_ns: u64,
    pub(crate) cpu_system_ns: u64,
    pub(crate) run_queue_ns: u64,
    pub(crate) max_resident_bytes: u64,
}

/// Who said it.
pub(crate) struct Speaker<'a> {
    pub(crate) client: &'a str,
    pub(crate) version: &'a str,
    /// The event at which its times begin.
    pub(crate) begins: Option<&'a str>,
    pub(crate) group: u16,
    pub(crate) is_quic: bool,
    /// Whether the server's rows are to be joined with its own.
    pub(crate) is_asked_for_ids: bool,
}

/// The rows of a run and the client's report.
///
/// The tools' clocks are not the run's: the first request is taken to begin when the process did.
pub(crate) fn report(
    said: Said,
    measured: Measured,
    asked: &Loop<'_>,
    speaker: &Speaker<'_>,
) -> (Vec<Sample>, ClientReport) {
    let client = speaker.client;
    let mut not_reported: Vec<String> = said
        .not_reported
        .iter()
        .map(|not_reported| format!("{}: {client} does not say {}", not_reported.about, not_reported.what))
        .collect();
    if asked.warmup_ns > 0 {
        not_reported.push(format!(
            "client_cpu_per_request: {client} does not say how much processor time its warm-up took"
        ));
    }
    if speaker.is_asked_for_ids {
        for about in ["server_time", "outside_server_time", "server_time_joined"] {
            not_reported.push(format!("{about}: {client} does not say in its requests which one each is"));
        }
    }
    if said.rows.is_empty() {
        not_reported
            .push(format!("steady_state: {client} does not say which of its requests came first and last"));
    }
    let sees_heads = said.rows.iter().any(|row| row.wait_ns.is_some());
    if asked.streams == 1 && !speaker.is_quic && !sees_heads {
        not_reported.push(format!("delayed_ack: {client} does not say when the head of each response came"));
    }
    let mut external = ExternalReport {
        client: client.to_owned(),
        version: speaker.version.to_owned(),
        requests_ok: said.ok,
        failures: said.failures.iter().map(|(kind, requests)| failure(*kind, *requests)).collect(),
        took_ns: said.took_ns,
        body_bytes: said.body_bytes,
        has_row_bytes: !said.rows.is_empty() && said.rows.iter().all(|row| row.body_bytes.is_some()),
        connections: said.connections,
        http: said.version,
        begins: speaker.begins.map(str::to_owned),
        not_reported,
        ..ExternalReport::default()
    };
    external.set_times(&said.times);
    let samples = (0..).zip(said.rows).map(|(number, row)| sample(number, row, measured, speaker.group));
    let samples: Vec<Sample> = samples.collect();
    let report = ClientReport {
        urls: vec![asked.path.to_owned()],
        started_ns: measured.started_ns,
        finished_ns: measured.finished_ns,
        cpu_user_ns: measured.cpu_user_ns.saturating_sub(said.report_cpu_ns),
        cpu_system_ns: measured.cpu_system_ns,
        run_queue_ns: measured.run_queue_ns,
        max_resident_bytes: measured.max_resident_bytes,
        external: Some(Box::new(external)),
        ..ClientReport::default()
    };
    (samples, report)
}

const fn failure(kind: FailureKind, requests: u64) -> FailureCount {
    FailureCount { kind, requests }
}

fn sample(request: u64, row: Row, measured: Measured, group: u16) -> Sample {
    let sent_ns = measured.started_ns.saturating_add(row.start_ns);
    Sample {
        group,
        request,
        url: 0,
        connection: None,
        phase: Phase::Measure,
        intended_ns: sent_ns,
        sent_ns: Some(sent_ns),
        first_byte_ns: row.wait_ns.map(|wait_ns| sent_ns.saturating_add(wait_ns)),
        done_ns: Some(sent_ns.saturating_add(row.took_ns)),
        status: row.status,
        version: row.version,
        request_header_raw_bytes: 0,
        request_header_wire_bytes: 0,
        response_header_raw_bytes: 0,
        response_header_wire_bytes: 0,
        request_body_bytes: 0,
        response_body_bytes: row.body_bytes.unwrap_or(0),
        expected_body_bytes: None,
        outcome: match row.failure {
            None => Outcome::Ok,
            Some((kind, reason)) => Outcome::failed(kind, reason),
        },
    }
}
