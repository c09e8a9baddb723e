//! What servers say of requests, beside what clients say of them.

use model::record::{RunRecord, ServerRequest, TimeSource};
use model::sample::{Phase, Sample};

/// What the server that clients ask says of a run's requests, by the request's name.
pub(crate) struct ServerTimes<'a> {
    /// In the order of the names; of equal names the log's order.
    rows: Vec<&'a ServerRequest>,
}

/// What checks need to know of the server's times in one client group of one run: those of measured requests that ended
/// well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Those requests.
    pub requests: u64,
    /// Of these, those that the server's log names.
    pub joined: u64,
    /// Of these, those whose time at the server comes from packets.
    pub from_packets: u64,
    /// Of the joined ones, those that took longer at the server than at the client, beyond the precision.
    pub longer: u64,
    /// The median of the precisions.
    pub precision_ns: u64,
}

impl<'a> ServerTimes<'a> {
    pub(crate) fn of(record: &'a RunRecord) -> Self {
        let mut rows: Vec<&ServerRequest> =
            record.server_requests.iter().filter(|row| row.server == 0).collect();
        rows.sort_by_key(|row| (row.group, row.request));
        ServerTimes { rows }
    }

    /// What the server says of a request; the last word, where its log names it more than once (it was sent again).
    pub(crate) fn of_sample(&self, sample: &Sample) -> Option<&'a ServerRequest> {
        let name = (sample.group, sample.request);
        let behind = self.rows.partition_point(|row| (row.group, row.request) <= name);
        let last = self.rows.get(behind.checked_sub(1)?)?;
        ((last.group, last.request) == name).then_some(last)
    }
}

impl ServerFacts {
    pub(crate) fn of(record: &RunRecord, group: u16) -> ServerFacts {
        let at_server = ServerTimes::of(record);
        let mut facts = ServerFacts::default();
        let mut precisions_ns = Vec::new();
        let counts = |sample: &&Sample| {
            sample.group == group && sample.phase == Phase::Measure && sample.outcome.is_ok()
        };
        for sample in record.samples.iter().filter(counts) {
            facts.requests += 1;
            let Some(row) = at_server.of_sample(sample) else { continue };
            facts.joined += 1;
            facts.from_packets += u64::from(row.source == TimeSource::Packets);
            let begun_ns = sample.sent_ns.unwrap_or(sample.intended_ns);
            let at_client_ns = sample.done_ns.unwrap_or(begun_ns).saturating_sub(begun_ns);
            facts.longer += u64::from(row.request_time_ns > at_client_ns.saturating_add(row.precision_ns));
            precisions_ns.push(row.precision_ns);
        }
        precisions_ns.sort_unstable();
        facts.precision_ns = precisions_ns.get(precisions_ns.len() / 2).copied().unwrap_or(0);
        facts
    }
}
