//! Converts an external client's output to the rows and the report of a run.

use model::assignment::ClientReport;
use model::external::{ExternalReport, FailureCount, URLS};
use model::sample::{FailureKind, Outcome, Phase, Sample};
use workload::formats::clients::{ClientOutput, Row};

use super::command::ExternalLoop;

/// The resource usage of the client's process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessUsage {
    /// Start time on the run's clock.
    pub(crate) started_ns: u64,
    /// End time.
    pub(crate) finished_ns: u64,
    pub(crate) cpu_user_ns: u64,
    pub(crate) cpu_system_ns: u64,
    pub(crate) run_queue_ns: u64,
    pub(crate) max_resident_bytes: u64,
}

/// The client that wrote the output.
pub(crate) struct ClientInfo<'a> {
    pub(crate) client: &'a str,
    pub(crate) version: &'a str,
    /// The event at which its times begin.
    pub(crate) begins: Option<&'a str>,
    pub(crate) group: u16,
    pub(crate) is_quic: bool,
    /// Whether the server's rows are joined with the client's.
    pub(crate) is_asked_for_ids: bool,
}

/// The rows of a run and the client's report.
///
/// Clients do not use the run's clock: the first request is assumed to start with the process.
pub(crate) fn report(
    output: ClientOutput,
    usage: ProcessUsage,
    requested: &ExternalLoop<'_>,
    info: &ClientInfo<'_>,
) -> (Vec<Sample>, ClientReport) {
    let client = info.client;
    let mut not_reported: Vec<String> = output
        .not_reported
        .iter()
        .map(|value| format!("{}: {client} does not report {}", value.about, value.what))
        .collect();
    if requested.warmup_ns > 0 {
        not_reported
            .push(format!("client_cpu_per_request: {client} does not report the CPU time of its warm-up"));
    }
    if info.is_asked_for_ids {
        for about in ["server_time", "outside_server_time", "server_time_joined"] {
            not_reported.push(format!("{about}: {client} does not report request ids"));
        }
    }
    let paths = &requested.listed.paths;
    if paths.len() > 1 {
        not_reported.push(format!("{URLS}: {client} does not report the paths of its requests"));
    }
    if output.rows.is_empty() {
        not_reported.push(format!("steady_state: {client} does not report the order of its requests"));
    }
    let has_wait_times = output.rows.iter().any(|row| row.wait_ns.is_some());
    if requested.streams == 1 && !info.is_quic && !has_wait_times {
        not_reported.push(format!("delayed_ack: {client} does not report the time of response headers"));
    }
    let mut external = ExternalReport {
        client: client.to_owned(),
        version: info.version.to_owned(),
        requests_ok: output.ok,
        failures: output.failures.iter().map(|(kind, requests)| failure(*kind, *requests)).collect(),
        took_ns: output.took_ns,
        body_bytes: output.body_bytes,
        has_row_bytes: !output.rows.is_empty() && output.rows.iter().all(|row| row.body_bytes.is_some()),
        connections: output.connections,
        http: output.version,
        begins: info.begins.map(str::to_owned),
        not_reported,
        ..ExternalReport::default()
    };
    external.set_times(&output.times);
    let samples = (0..).zip(output.rows).map(|(number, row)| sample(number, row, usage, info.group));
    let samples: Vec<Sample> = samples.collect();
    let report = ClientReport {
        urls: vec![match paths.as_ref() {
            [path] => path.clone(),
            paths => format!("one of {} paths", paths.len()),
        }],
        clients_begun: 1,
        clients_finished: 1,
        started_ns: usage.started_ns,
        finished_ns: usage.finished_ns,
        cpu_user_ns: usage.cpu_user_ns.saturating_sub(output.report_cpu_ns),
        cpu_system_ns: usage.cpu_system_ns,
        run_queue_ns: usage.run_queue_ns,
        max_resident_bytes: usage.max_resident_bytes,
        external: Some(Box::new(external)),
        ..ClientReport::default()
    };
    (samples, report)
}

const fn failure(kind: FailureKind, requests: u64) -> FailureCount {
    FailureCount { kind, requests }
}

fn sample(request: u64, row: Row, usage: ProcessUsage, group: u16) -> Sample {
    let sent_ns = usage.started_ns.saturating_add(row.start_ns);
    Sample {
        cause: Default::default(),
        resent: 0,
        group,
        client: 0,
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
        response_body_crc32: None,
        content: None,
        outcome: match row.failure {
            None => Outcome::Ok,
            Some((kind, reason)) => Outcome::failed(kind, reason),
        },
    }
}
