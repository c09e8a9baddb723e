//! The data path of a study, on one screen:
//!
//! ```text
//! for each run, in the plan's interleaved order:
//!     [the network's first run: rate and loss against a reference measurement, in a lab of their own]
//!     lab up → calibrate the empty path (while the servers come up) → monitor, cross-traffic and clients → store → lab down
//! ```
//!
//! A run that fails becomes a stored outcome and the study goes on; only a fault of the tool itself stops it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use drive::client::{ClientOutcome, Limits};
use drive::{Adapter, Authority, Client};
use lab::{Lab, LabError, LabSpec};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClockReference};
use model::external::OWN_CLIENT;
use model::options::Options;
use model::plan::{ClientGroup, PlannedTopology, ServerChain};
use model::sample::{FailureKind, Outcome};
use model::{Cell, Page, Plan, PlannedRun, RunRecord, Setting};
use store::ResultFolder;

use crate::study::chain::RunningChain;
use crate::study::cores::Cores;
use crate::study::monitor::Watch;
use crate::study::progress::Progress;
use crate::study::reference::ReferenceMeasurements;
use crate::study::repetition::Repeating;
use crate::study::server_time;

/// reference round trips before each run: few, because a run at 150 ms RTT has no more than 0.3 s to spare.
const CALIBRATION_PROBES: u32 = 7;
/// The name that every server's certificate is for.
pub(crate) const SERVER_NAME: &str = "server.h123.test";
/// Worker threads or processes of a server: the client and the emulator need the other core.
pub(crate) const SERVER_THREADS: usize = 1;
/// What was on the links, in the run's folder of logs; beside it the keys that TLS and QUIC agreed on, and what the clients'
/// QUIC connections did.
const CAPTURE: &str = "links.pcapng";
const KEYS: &str = "keys.log";
const QLOG: &str = "qlog";
/// A client ends itself at the run's limit; it is killed so much later.
const CLIENT_GRACE: Duration = Duration::from_secs(2);
/// A server whose clients met failures gets so long to turn out dead.
const DYING: Duration = Duration::from_millis(300);
/// A client that says more than this is out of its mind.
pub(crate) const CLIENT_BYTES: u64 = 8 << 30;

/// All that the runs of a study share.
pub(crate) struct Study<'a> {
    /// What is to be done.
    pub(crate) plan: &'a Plan,
    /// The servers of the plan, by name.
    pub(crate) servers: BTreeMap<String, Adapter>,
    /// The external clients of the plan, by name.
    pub(crate) clients: BTreeMap<String, Client>,
    /// Signs the servers' certificates; its own is trusted by the clients alone.
    pub(crate) authority: Authority,
    /// Whether networks can be emulated here; otherwise everything runs over the loopback.
    pub(crate) emulated: bool,
    /// Where client and server run.
    pub(crate) cores: Cores,
    /// This program, which is also the client and the origin.
    pub(crate) program: PathBuf,
    /// The pages of the plan's workloads.
    pub(crate) pages: Vec<Page>,
    /// The same pages as files, for servers that serve a folder.
    pub(crate) content: PathBuf,
    /// Whether what was on each run's link is kept, with the keys to read it.
    pub(crate) pcap: bool,
    /// Set when the user wants to stop.
    pub(crate) stop: &'a AtomicBool,
}

impl Study<'_> {
    /// Does every run that is not stored yet, in the plan's order, as long as the plan's rule asks for more. Whether all were
    /// done.
    ///
    /// # Errors
    /// A fault of the tool or of the disk; what was measured is stored.
    pub(crate) fn run(&self, folder: &mut ResultFolder, progress: &mut Progress) -> Result<bool> {
        let stored = folder.stored_runs()?.whole;
        let mut known = ReferenceMeasurements::of(folder);
        let mut repeating = Repeating::of(self.plan, folder)?;
        for planned in self.plan.runs.iter().filter(|planned| !stored.contains(&planned.run)) {
            if repeating.is_enough_before(planned) {
                break;
            }
            if let Some((runs, expected_ns)) = repeating.adds_before(planned) {
                progress.expect(self.plan, runs, expected_ns);
            }
            let cell = &self.plan.cells[planned.cell as usize];
            progress.begin(self.plan, planned.cell);
            if self.emulated {
                known.measure(self.plan, cell, self.cores.emulator, folder)?;
            }
            let record = self.run_once(planned, cell, &folder.logs());
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            folder.append(&record).context("the run could not be stored")?;
            repeating.add(&record);
            progress.end(self.plan, &record, known.found());
        }
        Ok(true)
    }

    fn run_once(&self, planned: &PlannedRun, cell: &Cell, logs: &Path) -> RunRecord {
        let began = Instant::now();
        let mut record = empty_record(planned);
        let logs = logs.join(format!("run-{:06}", planned.run));
        record.outcome = match self.measure(planned, cell, &logs, &mut record) {
            Ok(()) => Outcome::Ok,
            Err(outcome) => outcome,
        };
        record.took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        record
    }

    fn measure(
        &self,
        planned: &PlannedRun,
        cell: &Cell,
        logs: &Path,
        record: &mut RunRecord,
    ) -> Result<(), Outcome> {
        if let Some(reason) = self.unsupported_by_clients(cell).or_else(|| self.unsupported(cell)) {
            return Err(Outcome::Unsupported(reason));
        }
        let lab = self.build_lab(planned, cell).map_err(|error| lab_failed(&error))?;
        let (server, calibration) = std::thread::scope(|scope| {
            let starting = scope.spawn(|| self.start_chain(&lab, cell, logs, planned.seed));
            let calibration = lab.calibrate(CALIBRATION_PROBES);
            let crashed =
                || Err(Outcome::failed(FailureKind::Server, "starting it panicked: a fault of h123"));
            (starting.join().unwrap_or_else(|_| crashed()), calibration)
        });
        let mut server = server?;
        record.calibration = calibration.map_err(|error| lab_failed(&error))?;
        let _names = self.start_name_server(&lab, cell, logs)?;
        let cross = self.cross_traffic(&lab, cell, planned.seed, logs)?;
        if self.pcap {
            lab.begin_capture(&logs.join(CAPTURE)).map_err(|error| lab_failed(&error))?;
        }
        let watch = Watch::prepare(self, &lab, cell)?;
        lab.begin_measuring().map_err(|error| lab_failed(&error))?;
        let asked = if self.plan.server_time { server.asked(&cell.chains[0]) } else { Vec::new() };
        server_time::begin(&lab, &asked);
        let clock = load::Clock::begin();
        let outcome = cross.beside(|| {
            server.begin_measuring();
            watch.begin(&clock)?;
            let clients = Clients { server: &server, clock: &clock, seed: planned.seed, logs };
            let outcome = self.drive_groups(&lab, cell, &clients, record);
            record.readings = watch.finish()?;
            outcome
        });
        record.links = lab.reports().map_err(|error| lab_failed(&error))?;
        let seen = server_time::end(&lab, &asked).map_err(|error| lab_failed(&error))?;
        lab.end_capture().map_err(|error| lab_failed(&error))?;
        if record.samples.iter().any(|sample| !sample.outcome.is_ok()) {
            server.wait_for_end(DYING)?;
        }
        let stopped = server.stop(&mut record.servers);
        server_time::collect(&asked, seen, cell, clock.run_start_ns, record);
        stopped.and(outcome)
    }

    /// The cell's clients one group after the other, and their rows into the record; the first failure is the outcome.
    fn drive_groups(
        &self,
        lab: &Lab,
        cell: &Cell,
        clients: &Clients<'_>,
        record: &mut RunRecord,
    ) -> Result<(), Outcome> {
        let mut outcome = Ok(());
        for group in &cell.clients {
            let client = self.drive_clients(lab, cell, group, clients)?;
            record.samples.extend(client.samples);
            record.connections.extend(client.connections);
            record.player.extend(client.player);
            record.clients.push(client.report);
            if !client.outcome.is_ok() {
                outcome = outcome.and(Err(client.outcome));
            }
        }
        outcome
    }

    fn build_lab(&self, planned: &PlannedRun, cell: &Cell) -> Result<Lab, LabError> {
        let planned_topology = &self.plan.topology;
        let topology = self.plan.topology_of(cell).filter(|_| self.emulated);
        let Some(topology) = topology else {
            let PlannedTopology { client, server, back, .. } = planned_topology;
            return Lab::loopback_of([client, server].into_iter().chain(back));
        };
        Lab::build(LabSpec {
            topology: &topology,
            pins: self.plan.pins_of(cell),
            seed: planned.seed,
            emulator_cpu: self.cores.emulator,
            backend: cell.backend,
        })
    }

    /// What the network asks of the clients, to follow its handovers, and whoever wants to read what was on the link.
    fn options_on(&self, cell: &Cell, logs: &Path) -> Options {
        let mut options = Options::default();
        options.requests.request_ids = self.plan.server_time;
        options.connections.dns_lookup = self.looks_up();
        let takes_early = |chain: &ServerChain| chain.set.get("early_data") == Some(&Setting::Flag(true));
        options.protocols.tls.early_data =
            self.plan.pins_of(cell).resumption && cell.chains.iter().any(takes_early);
        options.protocols.accept_push = self.plan.pins_of(cell).http2.accept_push;
        let timeline = &self.plan.network_of(cell).timeline;
        options.protocols.follows_addresses = self.emulated && timeline.iter().any(|change| change.handover);
        let beside = |name: &str| {
            let path = logs.join(name);
            std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
        };
        options.protocols.tls.key_log = self.pcap.then(|| beside(KEYS));
        options.protocols.qlog = self.pcap.then(|| beside(QLOG));
        options
    }

    fn drive_clients(
        &self,
        lab: &Lab,
        cell: &Cell,
        group: &ClientGroup,
        clients: &Clients<'_>,
    ) -> Result<ClientOutcome, Outcome> {
        let Clients { server, clock, seed, logs } = *clients;
        let Some(target) = server.target(group.variant) else {
            let reason = format!("the server was not asked for {}", group.variant);
            return Err(Outcome::failed(FailureKind::Server, reason));
        };
        let assignment = Assignment {
            options: self.options_on(cell, logs),
            version: ASSIGNMENT_VERSION,
            group: group.group,
            node: group.node.clone(),
            clock: clock.clone(),
            target,
            workload: self.plan.workload_of(group).workload.clone(),
            pins: self.plan.pins_of(cell).clone(),
            seed: seed ^ u64::from(group.group),
            // The limit is for each group.
            deadline_ns: load::Clock::new(clock).now_ns().saturating_add(cell.run_limit_ns),
        };
        let limits = Limits {
            time: Duration::from_nanos(cell.run_limit_ns) + CLIENT_GRACE,
            bytes: CLIENT_BYTES,
            cpus: self.cores.client.clone(),
        };
        if group.client != OWN_CLIENT {
            return self.drive_external(lab, group, &assignment, &limits, logs);
        }
        drive::client::run_until(
            lab.client(),
            &self.program,
            &assignment,
            limits,
            &logs.join("client.log"),
            self.stop,
        )
        .map_err(|error| tool_failed(FailureKind::Client, &error))
    }
}

/// What the client groups of a run share.
#[derive(Clone, Copy)]
struct Clients<'a> {
    server: &'a RunningChain<'a>,
    clock: &'a ClockReference,
    seed: u64,
    logs: &'a Path,
}

fn empty_record(planned: &PlannedRun) -> RunRecord {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RunRecord {
        began_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
        ..RunRecord::empty(planned)
    }
}

pub(crate) fn tool_failed(kind: FailureKind, error: &anyhow::Error) -> Outcome {
    Outcome::failed(kind, format!("{error:#}"))
}

pub(crate) fn lab_failed(error: &LabError) -> Outcome {
    let mut reason = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        reason.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    match error {
        LabError::Unsupported { .. } => Outcome::Unsupported(reason),
        _ => Outcome::failed(FailureKind::Lab, reason),
    }
}
