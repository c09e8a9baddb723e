//! Requests as servers saw them, joined with the clients' rows.

use model::record::{RunRecord, ServerRequest, TimeSource};
use model::sample::Sample;

/// The requests that the server next to the clients logged in a run, by their id.
pub(crate) struct ServerTimes<'a> {
    /// Ordered by id, and within an id in the log's order.
    rows: Vec<&'a ServerRequest>,
}

/// What checks need of the server times of one client group in one run, over measured requests that
/// succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Requests.
    pub requests: u64,
    /// Requests in the server's log.
    pub joined: u64,
    /// Joined requests whose server time comes from packets.
    pub from_packets: u64,
    /// Joined requests that took longer at the server than at the client, beyond the precision.
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

    /// The server's row of a request: the last one, if the request was sent several times.
    pub(crate) fn of_sample(&self, sample: &Sample) -> Option<&'a ServerRequest> {
        let name = (sample.group, sample.request);
        let behind = self.rows.partition_point(|row| (row.group, row.request) <= name);
        let last = self.rows.get(behind.checked_sub(1)?)?;
        ((last.group, last.request) == name).then_some(last)
    }
}

/// [`ServerFacts`] while rows are added.
#[derive(Default)]
pub(crate) struct ServerFold {
    facts: ServerFacts,
    precisions_ns: Vec<u64>,
}

impl ServerFold {
    /// Adds a request that counts and succeeded, with its row at the server.
    pub(crate) fn add(&mut self, sample: &Sample, row: Option<&ServerRequest>) {
        self.facts.requests += 1;
        let Some(row) = row else { return };
        self.facts.joined += 1;
        self.facts.from_packets += u64::from(row.source == TimeSource::Packets);
        let begun_ns = sample.sent_ns.unwrap_or(sample.intended_ns);
        let at_client_ns = sample.done_ns.unwrap_or(begun_ns).saturating_sub(begun_ns);
        self.facts.longer += u64::from(row.request_time_ns > at_client_ns.saturating_add(row.precision_ns));
        self.precisions_ns.push(row.precision_ns);
    }

    pub(crate) fn finish(mut self) -> ServerFacts {
        self.precisions_ns.sort_unstable();
        let precision_ns = self.precisions_ns.get(self.precisions_ns.len() / 2).copied().unwrap_or(0);
        ServerFacts { precision_ns, ..self.facts }
    }
}
