//! Uses the front server before a run is measured, so that compilation on demand, caches and pools of workers
//! are in the state of a server that has run for a while.
//!
//! The client runs in the server's node. Its packets cross no emulated link of the measured route, and its
//! rows are not part of the run.

use std::path::Path;
use std::time::Duration;

use drive::client::Limits;
use lab::Lab;
use model::Cell;
use model::assignment::{ASSIGNMENT_VERSION, Assignment};
use model::options::Options;
use model::sample::{FailureKind, Outcome};
use model::units::NANOS_PER_S;

use crate::study::chain::RunningServers;
use crate::study::{CLIENT_BYTES, Study, failed, node_of};

/// A warm-up may take twice its expected time and this.
const GRACE_NS: u64 = 60 * NANOS_PER_S;
/// What the warm-up's client reports, in the run's folder of logs.
const LOG: &str = "warm.log";

impl Study<'_> {
    /// Uses the front servers of a run for as long as the study says. Returns the number of requests.
    ///
    /// # Errors
    /// The run's outcome: the client failed, or no request succeeded.
    pub(crate) fn warm(
        &self,
        lab: &Lab,
        cells: &[Cell],
        servers: &RunningServers<'_>,
        seed: u64,
        logs: &Path,
    ) -> Result<usize, Outcome> {
        let Some(amount) = self.plan.warm else { return Ok(0) };
        let limit_ns = amount.expected_ns().saturating_mul(2).saturating_add(GRACE_NS);
        let mut requests = 0;
        for cell in cells {
            let group = &cell.group;
            let missing = || Outcome::failed(FailureKind::Server, "it has no address: a fault of h123");
            let assignment = Assignment {
                options: Options {
                    requests: self.plan.workload_of(group).options.requests.clone(),
                    ..Options::default()
                },
                version: ASSIGNMENT_VERSION,
                group: group.group,
                node: cell.chain.node.clone(),
                clock: load::Clock::begin(),
                target: servers.targets(self, cell)?.into_iter().next().ok_or_else(missing)?,
                workload: amount.workload(&self.plan.workload_of(group).workload),
                pins: self.plan.pins_of(cell).clone(),
                seed,
                clients: model::Clients::ONE,
                deadline_ns: limit_ns,
                ends_ns: None,
            };
            let node = node_of(lab, &assignment.node)?;
            let time = Duration::from_nanos(limit_ns);
            let limits = Limits { time, bytes: CLIENT_BYTES, cpus: self.cores.client.clone() };
            let log = logs.join(LOG);
            let client = drive::client::run_until(node, &self.program, &assignment, limits, &log, self.stop)
                .map_err(failed(FailureKind::Client))?;
            if let Outcome::Failed(failure) = client.outcome {
                return Err(Outcome::failed(
                    failure.kind,
                    format!("warm-up of the server: {}", failure.reason),
                ));
            }
            if client.samples.iter().all(|sample| !sample.outcome.is_ok()) {
                let first = client.samples.iter().find_map(|sample| sample.outcome.failure());
                let reason = first.map_or("it made none", |failure| failure.reason.as_str());
                let reason = format!("warm-up of the server: no request succeeded; the first one: {reason}");
                return Err(Outcome::failed(FailureKind::Server, reason));
            }
            requests += client.samples.len();
        }
        Ok(requests)
    }
}
