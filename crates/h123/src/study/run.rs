//! The main path of a study:
//!
//! ```text
//! for each run, in the plan's interleaved order:
//!     [before the first run on a network: measure its rate and loss against a reference, in a separate lab]
//!     lab up → calibrate the empty path while the servers start → warm the server → monitor, cross-traffic,
//!         clients → store → lab down
//! ```
//!
//! A run that fails becomes a stored outcome and the study continues. Only a fault of the tool itself ends
//! the study.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use lab::{Lab, LabError, LabSpec, Monitor};
use model::plan::PlannedTopology;
use model::record::Calibration;
use model::sample::{FailureKind, Outcome};
use model::{CachedContent, Cell, PlannedRun, RunRecord};
use store::ResultFolder;

use crate::study::clients::RunClients;
use crate::study::damages::Damages;
use crate::study::outside::Rests;
use crate::study::progress::Progress;
use crate::study::reference::ReferenceMeasurements;
use crate::study::repetition::Repetition;
use crate::study::result::summarise_runs;
use crate::study::{Study, failed, server_time};

/// Round trips measured before each run. More would take too long at an RTT of 150 ms.
const CALIBRATION_PROBES: u32 = 7;
/// The packets on the links, in the run's folder of logs.
const CAPTURE: &str = "links.pcapng";
/// A server whose clients met failures has this long to turn out dead.
const DYING: Duration = Duration::from_millis(300);

impl Study<'_> {
    /// Does every run that is not stored yet, in the plan's order, until the plan's rule is satisfied.
    /// Returns whether it finished; otherwise the user interrupted it.
    ///
    /// # Errors
    /// A fault of the tool or of the disk. Earlier runs are stored.
    pub(crate) fn run(&self, folder: &mut ResultFolder, progress: &mut Progress) -> Result<bool> {
        let stored = folder.stored_runs()?.whole;
        let mut reference = ReferenceMeasurements::of(folder);
        let mut repetition = Repetition::of(self.plan, folder)?;
        if !stored.is_empty() && progress.is_visible() {
            // The caller reports damaged runs and measures them again.
            let (mut runs, _) = summarise_runs(folder, self.plan, &mut Damages::default())?;
            runs.retain(|run| stored.contains(&run.run));
            progress.restore(self.plan, runs, reference.networks());
        }
        let mut rests = Rests::default();
        progress.show();
        for planned in self.plan.runs.iter().filter(|planned| !stored.contains(&planned.run)) {
            if repetition.is_enough_before(planned) {
                break;
            }
            if let Some((runs, expected_ns)) = repetition.adds_before(planned) {
                progress.expect(self.plan, runs, expected_ns);
            }
            let cells = self.plan.cells_of_run(planned.cell);
            progress.begin(self.plan, planned.cell);
            if self.emulated {
                for cell in cells {
                    reference.measure(self.plan, cell, self.cores.emulator, folder)?;
                }
            }
            if !rests.wait(self.plan, planned.cell, self.stop) {
                return Ok(false);
            }
            let record = self.run_once(planned, cells, &folder.logs());
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            folder.append(&record).context("the run could not be stored")?;
            repetition.add(&record);
            progress.end(self.plan, &record, reference.networks());
        }
        Ok(true)
    }

    /// One run, whole, with its outcome.
    fn run_once(&self, planned: &PlannedRun, cells: &[Cell], logs: &Path) -> RunRecord {
        let began = Instant::now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut record = RunRecord { began_unix_ns: nanoseconds(since_epoch), ..RunRecord::empty(planned) };
        let logs = logs.join(format!("run-{:06}", planned.run));
        record.outcome = self.measure(planned, cells, &logs, &mut record).err().unwrap_or(Outcome::Ok);
        record.took_ns = nanoseconds(began.elapsed());
        record
    }

    /// What a run is, from the empty lab to the last row. An error is the run's outcome.
    fn measure(
        &self,
        planned: &PlannedRun,
        cells: &[Cell],
        logs: &Path,
        record: &mut RunRecord,
    ) -> Result<(), Outcome> {
        let unsupported =
            |cell: &Cell| self.unsupported_by_clients(cell).or_else(|| self.unsupported_by_servers(cell));
        if let Some(reason) = cells.iter().find_map(unsupported) {
            return Err(Outcome::Unsupported(reason));
        }
        // All cells of a run share what is built; they differ in the choice of client and server.
        let [cell, ..] = cells else {
            return Err(Outcome::failed(FailureKind::Lab, "the run has no cell: a fault of h123"));
        };
        let lab = self.build_lab(planned, cell)?;
        let (servers, round_trips) = std::thread::scope(|scope| {
            let starting = scope.spawn(|| self.start_servers(&lab, cells, logs, planned.seed));
            let round_trips = self.calibrate(&lab, cells);
            let panicked =
                |_| Err(Outcome::failed(FailureKind::Server, "its start panicked: a fault of h123"));
            (starting.join().unwrap_or_else(panicked), round_trips)
        });
        let mut servers = servers?;
        record.round_trips = round_trips?;
        let warm_requests = self.warm(&lab, cells, &servers, planned.seed, logs)?;
        // After the warm-up, which reads files as well.
        record.content = self.set_page_cache()?;
        let _name_server = self.start_name_server(&lab, cells, logs)?;
        let cross = self.start_cross_traffic(&lab, cell, planned.seed, logs)?;
        if self.pcap {
            lab.begin_capture(&logs.join(CAPTURE))?;
        }
        let monitor = self.prepare_monitor(&lab, cells)?;
        match self.begins_with_browser(cells) {
            true => lab.begin_measuring_without_timelines()?,
            false => lab.begin_measuring()?,
        }
        let timed = if self.plan.server_time { servers.timed() } else { Vec::new() };
        server_time::begin(&lab, &timed);
        let clock = load::Clock::begin();
        let outcome = cross.run_during(|| {
            servers.begin_measuring();
            monitor.iter().try_for_each(|monitor| monitor.begin(clock.run_start_ns))?;
            let has_groups = cells.len() > 1;
            let clients =
                RunClients { servers: &servers, clock: &clock, seed: planned.seed, logs, has_groups };
            let outcome = self.run_clients(&lab, cells, &clients, record);
            record.readings = monitor.map_or(Ok(Vec::new()), Monitor::finish)?;
            outcome
        });
        record.links = lab.reports()?;
        let packets = server_time::end(&lab, &timed)?;
        lab.end_capture()?;
        if record.samples.iter().any(|sample| !sample.outcome.is_ok()) {
            servers.wait_for_end(DYING)?;
        }
        let stopped = servers.stop(&mut record.servers);
        server_time::collect(&timed, packets, warm_requests, cells, clock.run_start_ns, record);
        stopped.and(outcome)
    }

    /// Measures the round trips on the empty path of each cell, each path once.
    fn calibrate(&self, lab: &Lab, cells: &[Cell]) -> Result<Vec<Calibration>, LabError> {
        let mut measured: Vec<(usize, Option<Calibration>)> = Vec::new();
        let mut of_cells = Vec::with_capacity(cells.len());
        for cell in cells {
            let known = measured.iter().find(|(network, _)| *network == cell.network);
            let calibration = match (known, self.plan.topology_of(cell).filter(|_| self.emulated)) {
                (Some((_, known)), _) => known.clone(),
                (None, None) => None,
                (None, Some(topology)) => lab.calibrate_route(&topology, CALIBRATION_PROBES)?,
            };
            if known.is_none() {
                measured.push((cell.network, calibration.clone()));
            }
            of_cells.extend(calibration.map(|found| Calibration { group: cell.group.group, ..found }));
        }
        Ok(of_cells)
    }

    /// Brings the files of the study into the stated state.
    fn set_page_cache(&self) -> Result<Option<CachedContent>, Outcome> {
        let set = |state| drive::set_page_cache(&self.content, state);
        self.plan.page_cache.map(set).transpose().map_err(failed(FailureKind::Server))
    }

    fn build_lab(&self, planned: &PlannedRun, cell: &Cell) -> Result<Lab, LabError> {
        // The plan has checked that there is room for its addresses.
        let topology = self.plan.topology_of_run(self.plan.cells_of_run(cell.cell)).ok().flatten();
        let Some(topology) = topology.filter(|_| self.emulated) else {
            let PlannedTopology { client, server, backs, .. } = &self.plan.topology;
            return Lab::loopback_of([client, server].into_iter().chain(backs));
        };
        Lab::build(LabSpec {
            topology: &topology,
            settings: self.plan.pins_of(cell).into(),
            seed: planned.seed,
            emulator_cpu: self.cores.emulator,
            backend: cell.backend,
        })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
