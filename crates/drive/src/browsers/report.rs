//! A browser's page load as the rows and the report of a run.

use lab::CpuUsage;
use model::assignment::{Assignment, ClientReport};
use model::external::ExternalReport;
use model::sample::Outcome;
use model::url::Url;
use workload::formats::page_load::{PageLoad, PageRows, WantedPage};

use super::description::{Browser, Protocol};
use crate::client::ClientOutcome;

/// What the browser's processes cost during the load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadCost {
    pub(crate) cpu_user_ns: u64,
    pub(crate) cpu_system_ns: u64,
    pub(crate) run_queue_ns: u64,
    pub(crate) max_resident_bytes: u64,
}

/// The event at which a page load of a browser begins.
const BEGINS: &str = "the navigation begins";
/// What browsers do not report, by the names of metrics and checks.
const NOT_REPORTED: &[(&str, &str)] = &[
    ("request_header_raw_bytes", "the bytes of headers"),
    ("request_header_wire_bytes", "the bytes of headers"),
    ("response_header_raw_bytes", "the bytes of headers"),
    ("response_header_wire_bytes", "the bytes of headers"),
    ("server_time", "request ids"),
    ("server_time_before_response", "request ids"),
    ("outside_server_time", "request ids"),
    ("server_time_joined", "request ids"),
];
/// What BiDi lacks in addition: Firefox has no layout shifts.
const NOT_IN_BIDI: &[(&str, &str)] = &[("cumulative_layout_shift", "layout shifts")];

impl Browser {
    /// The rows and the report of a page load.
    pub(crate) fn outcome_of(
        &self,
        version: &str,
        load: PageLoad,
        wanted: &WantedPage<'_>,
        assignment: &Assignment,
        cost: LoadCost,
    ) -> ClientOutcome {
        let PageRows { samples, connections, urls, contents } = load.rows(wanted);
        let external = external_report(self, version, BEGINS, assignment);
        let started_ns = load.events.began_ns;
        let done_ns = samples.iter().filter_map(|sample| sample.done_ns).chain(load.events.loaded_ns).max();
        let mut events = load.events;
        events.group = assignment.group;
        ClientOutcome {
            outcome: Outcome::Ok,
            samples,
            connections,
            page_events: vec![events],
            report: ClientReport {
                urls,
                contents,
                unfinished: load.unfinished,
                external: Some(Box::new(external)),
                ..cost.report(started_ns, done_ns)
            },
            ..ClientOutcome::empty()
        }
    }
}

impl LoadCost {
    /// A report of one client with these costs, from its begin to its last event.
    pub(crate) fn report(self, started_ns: u64, done_ns: Option<u64>) -> ClientReport {
        ClientReport {
            clients_begun: 1,
            clients_finished: 1,
            started_ns,
            finished_ns: done_ns.unwrap_or(started_ns).max(started_ns),
            cpu_user_ns: self.cpu_user_ns,
            cpu_system_ns: self.cpu_system_ns,
            run_queue_ns: self.run_queue_ns,
            max_resident_bytes: self.max_resident_bytes,
            ..ClientReport::default()
        }
    }
}

/// The costs between two readings of CPU times and of the waits for a core, in nanoseconds.
pub(crate) fn cost_since(before: (CpuUsage, u64), after: (CpuUsage, u64)) -> LoadCost {
    LoadCost {
        cpu_user_ns: after.0.user_ns.saturating_sub(before.0.user_ns),
        cpu_system_ns: after.0.system_ns.saturating_sub(before.0.system_ns),
        run_queue_ns: after.1.saturating_sub(before.1),
        max_resident_bytes: 0,
    }
}

/// What a browser reports, and what it does not.
pub(crate) fn external_report(
    browser: &Browser,
    version: &str,
    begins: &str,
    assignment: &Assignment,
) -> ExternalReport {
    let asks_for_ids = assignment.options.requests.request_ids;
    let is_relevant = |about: &str| asks_for_ids || !about.contains("server_time");
    let lacking = if browser.protocol == Protocol::BiDi { NOT_IN_BIDI } else { &[] };
    let not_reported = NOT_REPORTED.iter().filter(|(about, _)| is_relevant(about)).chain(lacking);
    ExternalReport {
        client: browser.name.clone(),
        version: version.to_owned(),
        has_row_bytes: true,
        begins: Some(begins.to_owned()),
        not_reported: not_reported
            .map(|(about, what)| format!("{about}: {} does not report {what}", browser.name))
            .collect(),
        ..ExternalReport::default()
    }
}

/// The URL of an assignment's document.
///
/// # Errors
/// The target is not a host and a port.
pub(crate) fn document_url(assignment: &Assignment, path: &str) -> Result<Url, String> {
    let target = &assignment.target;
    Url::parse(&format!("{}://{}{path}", target.variant.scheme(), target.authority))
}
