//! The report of a worker: its rows, costs and sums.

use model::Histogram;
use model::assignment::{ClientReport, Lag, WarmupCost};
use model::player::PlayerEvent;
use model::sample::{ConnectionRow, Sample};
use model::tally::{ConnectionRequests, ConnectionTally};

use super::Worker;
use crate::rows::RowSender;
use crate::system::{self, Usage};

/// The result of a worker.
#[derive(Clone, Debug)]
pub struct Report {
    /// One row for each request that ended, up to the assignment's limit of rows.
    pub samples: Vec<Sample>,
    /// One row for each connection, up to the same limit.
    pub connections: Vec<ConnectionRow>,
    /// The events of the player, where the workload plays a video.
    pub player: Vec<PlayerEvent>,
    /// The worker's costs and sums.
    pub client: ClientReport,
    /// How long it waited, doing nothing else, for the reader of its rows ([`super::Observers::rows`]).
    pub rows_waited_ns: u64,
}

impl Worker<'_> {
    /// Notes the cost of the warm-up; measuring begins now.
    pub(super) fn end_warmup(&mut self, now: u64) {
        self.warmup_ends_ns = u64::MAX;
        let usage = system::thread_usage().since(self.usage_before);
        let ConnectionTally { mut sent_bytes, mut received_bytes, .. } = *self.further_connections;
        for row in self.rows.iter().chain(self.conns.iter().flatten().map(|conn| &conn.row)) {
            sent_bytes += row.sent_bytes;
            received_bytes += row.received_bytes;
        }
        self.warmup = Some(WarmupCost {
            ended_ns: now,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            suspended_ns: self.suspended.total_ns,
            sent_bytes,
            received_bytes,
        });
    }

    /// Keeps a connection's row, or adds it to the tally beyond the limit of rows.
    pub(crate) fn keep_row(&mut self, row: ConnectionRow, carried: ConnectionRequests) {
        if self.assignment.options.most_rows.is_some_and(|most| self.rows.len() as u64 >= most) {
            self.further_connections.record(row, carried);
        } else {
            self.rows.push(row);
        }
    }

    pub(super) fn into_report(self, started_ns: u64, usage: Usage) -> Report {
        let mut connections = self.rows;
        connections.sort_by_key(|row| row.connection);
        let mut player = self.player;
        player.sort_by_key(|event| event.at_ns);
        let mut samples = self.session.samples;
        samples.sort_by_key(|sample| sample.request);
        let rows_waited_ns = self.session.rows.map_or(0, RowSender::finish);
        let (tallies, times) = self.session.tallies.finish();
        let lag = |lag: &Histogram| {
            let of = |share| lag.quantile(share).unwrap_or(0);
            Lag { p50_ns: of(0.5), p99_ns: of(0.99), max_ns: of(1.0) }
        };
        let client = ClientReport {
            group: self.assignment.group,
            contents: self.session.kinds.texts(),
            urls: self.requests.into_labels(),
            clients_begun: self.roster.begun,
            clients_finished: self.roster.finished,
            started_ns,
            finished_ns: self.finished_ns,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            suspended: self.suspended,
            max_resident_bytes: system::max_resident_bytes(),
            dns_lookup: self.dns_lookup,
            address_change: self.session.address_change,
            lag: lag(&self.session.lag),
            own_lag: lag(&self.session.own_lag),
            never_sent: self.never_sent.all,
            never_sent_held: self.never_sent.held,
            unfinished: self.unfinished,
            stopped: self.session.stopped,
            tallies,
            times,
            further_connections: *self.further_connections,
            failed_migrations: self.migrations.failed,
            warmup: self.warmup,
            external: None,
        };
        Report { samples, connections, player, client, rows_waited_ns }
    }
}
