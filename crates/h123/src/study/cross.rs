//! Cross-traffic: bulk flows over links that the measured clients share.
//!
//! The flows are those of h123's own client and origin, in nodes of the topology. They begin once the
//! emulators count, have a lead so that they are beyond slow start, and are killed when the measured clients
//! are done. Of them a result stores only what the links report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::Result;
use drive::client::{ClientOutcome, Limits};
use drive::{RunningServer, Servers, StartSpec};
use lab::{Lab, Node};
use model::assignment::{ASSIGNMENT_VERSION, Assignment};
use model::sample::{FailureKind, Outcome};
use model::topology::CrossTraffic;
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Cell, Variant};

use crate::study::chain::target_of;
use crate::study::{CLIENT_BYTES, Study, failed, node_of};

/// The server of cross-traffic.
pub(crate) const ORIGIN: &str = "origin";
/// The download that a flow repeats. At 1 Gbit/s it takes 9 minutes, longer than any run.
pub(crate) const ENDLESS: &str = "/bytes/68719476736";
/// The first group number of flows. The groups of a cell's own clients have lower ones.
const FIRST_GROUP: u16 = 1000;

/// The flows of a run, with their servers.
pub(crate) struct Cross<'a, 'l> {
    study: &'a Study<'a>,
    flows: Vec<Flow<'l>>,
    lead: Duration,
    /// Flows are killed after this time; they end with the measured clients long before.
    limit: Duration,
    /// Kept until the run ends.
    servers: Vec<RunningServer<'l>>,
}

struct Flow<'l> {
    node: &'l Node,
    assignment: Assignment,
    log: PathBuf,
}

impl Study<'_> {
    /// Starts the servers of a cell's cross-traffic; none where nothing is emulated.
    ///
    /// # Errors
    /// A server does not come up.
    pub(crate) fn start_cross_traffic<'l>(
        &self,
        lab: &'l Lab,
        cell: &Cell,
        seed: u64,
        logs: &Path,
    ) -> Result<Cross<'_, 'l>, Outcome> {
        let topology = self.plan.topology_of(cell).filter(|_| lab.is_emulated());
        let lead = Duration::from_nanos(topology.as_ref().map_or(0, model::Topology::lead_ns));
        let limit =
            Duration::from_nanos(self.plan.run_limit_ns(cell.cell)) + 2 * lead + Duration::from_secs(10);
        let mut cross = Cross { study: self, flows: Vec::new(), lead, limit, servers: Vec::new() };
        let Some(topology) = topology else { return Ok(cross) };
        let name = |node: usize| topology.nodes[node].name.as_str();
        let mut variants: BTreeMap<usize, Vec<Variant>> = BTreeMap::new();
        for flow in &topology.cross {
            let wanted = variants.entry(flow.to).or_default();
            if !wanted.contains(&flow.variant) {
                wanted.push(flow.variant);
            }
        }
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for (to, variants) in &variants {
            let origin = Servers::find(ORIGIN).map_err(|error| failed(FailureKind::Server)(error.into()))?;
            let node = node_of(lab, name(*to))?;
            let identity = self.identity_of(node)?;
            let spec = StartSpec {
                variants,
                folder: &logs.join(format!("cross-{}", name(*to))),
                ..self.start_spec(&identity, seed)
            };
            places.insert(*to, cross.servers.len());
            cross.servers.push(origin.start(node, &spec)?);
        }
        for (index, flow) in topology.cross.iter().enumerate() {
            let group = FIRST_GROUP.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
            let assignment = Assignment {
                options: model::options::Options::default(),
                version: ASSIGNMENT_VERSION,
                group,
                node: name(flow.from).to_owned(),
                clock: load::Clock::begin(),
                target: target_of(&cross.servers[places[&flow.to]], flow.variant)?,
                workload: bulk(flow, cross.limit),
                pins: self.plan.pins_of(cell).clone(),
                seed: seed ^ u64::from(group),
                clients: model::Clients::ONE,
                deadline_ns: u64::try_from(cross.limit.as_nanos()).unwrap_or(u64::MAX),
                ends_ns: None,
            };
            let log = logs.join(format!("cross-{}-{index}.log", name(flow.from)));
            cross.flows.push(Flow { node: node_of(lab, name(flow.from))?, assignment, log });
        }
        Ok(cross)
    }
}

impl Cross<'_, '_> {
    /// Calls `job` while the flows run.
    ///
    /// # Errors
    /// The job's error, or that of a flow that ended too early.
    pub(crate) fn run_during(self, job: impl FnOnce() -> Result<(), Outcome>) -> Result<(), Outcome> {
        if self.flows.is_empty() {
            return job();
        }
        let enough = AtomicBool::new(false);
        let (outcome, ends) = std::thread::scope(|scope| {
            let running: Vec<_> =
                self.flows.iter().map(|flow| scope.spawn(|| self.run(flow, &enough))).collect();
            std::thread::sleep(self.lead);
            let outcome = job();
            let early: Vec<bool> = running.iter().map(ScopedJoinHandle::is_finished).collect();
            enough.store(true, Ordering::Relaxed);
            let panicked = || Err(anyhow::anyhow!("its thread panicked: a fault of h123"));
            let ends = running.into_iter().map(|flow| flow.join().unwrap_or_else(|_| panicked()));
            (outcome, early.into_iter().zip(ends).collect::<Vec<_>>())
        });
        for server in self.servers {
            let stopped = server.stop().map_err(failed(FailureKind::Server))?;
            if let Some(died) = stopped.died {
                return outcome.and(Err(ended_early(&format!("its server died: {died}"))));
            }
        }
        match ends.iter().find_map(|(is_early, end)| fault(*is_early, end)) {
            Some(fault) => outcome.and(Err(ended_early(&fault))),
            None => outcome,
        }
    }

    fn run(&self, flow: &Flow<'_>, enough: &AtomicBool) -> Result<ClientOutcome> {
        let limits = Limits { time: self.limit, bytes: CLIENT_BYTES, cpus: self.study.cores.client.clone() };
        let (program, assignment) = (&self.study.program, &flow.assignment);
        drive::client::run_until(flow.node, program, assignment, limits, &flow.log, enough)
    }
}

/// What went wrong with a flow, if anything. Being killed at the end is normal.
fn fault(is_early: bool, end: &Result<ClientOutcome>) -> Option<String> {
    let client = match end {
        Err(error) => return Some(format!("{error:#}")),
        Ok(client) => client,
    };
    let describe = |outcome: &Outcome| match outcome {
        Outcome::Failed(failure) => failure.reason.clone(),
        Outcome::Unsupported(reason) => reason.clone(),
        Outcome::Ok => "it finished".to_owned(),
    };
    let lost = client.samples.iter().find(|sample| !sample.outcome.is_ok());
    lost.map(|sample| describe(&sample.outcome)).or_else(|| is_early.then(|| describe(&client.outcome)))
}

fn bulk(flow: &CrossTraffic, limit: Duration) -> Workload {
    Workload::Closed(ClosedLoop::new(
        LoopLoad { connections: flow.flows, ..LoopLoad::new(ENDLESS) },
        Some(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
    ))
}

fn ended_early(why: &str) -> Outcome {
    Outcome::failed(
        FailureKind::Client,
        format!("the cross-traffic ended before the measured clients: {why}"),
    )
}
