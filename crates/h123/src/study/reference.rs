//! Every network of a study held against its reference measurements, once, before its first run.

use analysis::RunSummary;
use analysis::tables::has_reference_measurement;
use anyhow::{Context, Result};
use lab::{Lab, PairSpec};
use model::record::NetworkCalibration;
use model::{Backend, Cell, Plan};
use store::ResultFolder;

use crate::terminal::note;

/// The file of a result that holds them.
const FILE: &str = "calibrations.json";

/// The networks of a study that were measured so far.
pub(crate) struct ReferenceMeasurements {
    found: Vec<NetworkCalibration>,
    /// Networks that could not be measured; their runs fail and say why, so it is not tried again before each.
    failed: Vec<(usize, Backend)>,
}

impl ReferenceMeasurements {
    /// Those that a result holds already.
    pub(crate) fn of(folder: &ResultFolder) -> Self {
        ReferenceMeasurements { found: stored(folder), failed: Vec::new() }
    }

    /// What was measured so far.
    pub(crate) fn found(&self) -> &[NetworkCalibration] {
        &self.found
    }

    /// Measures rate and loss of a cell's network in a lab of its own, unless that was done before, and stores them; nothing
    /// where the network is none of a link.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        emulator_cpu: Option<usize>,
        folder: &ResultFolder,
    ) -> Result<()> {
        let (index, network, backend) = (cell.network, plan.network_of(cell), cell.backend);
        if !has_reference_measurement(plan, index) {
            return Ok(());
        }
        let is_found = |found: &NetworkCalibration| found.network == network.name && found.backend == backend;
        if self.found.iter().any(is_found) || self.failed.contains(&(index, backend)) {
            return Ok(());
        }
        let seed = plan.seed.wrapping_add(index as u64);
        let lab = Lab::pair(PairSpec { network, pins: &plan.pins, seed, emulator_cpu, backend });
        match lab.and_then(|lab| lab.calibrate_network()) {
            Ok(calibration) => self.found.extend(calibration),
            Err(error) => {
                self.failed.push((index, backend));
                let (name, error) = (&network.name, anyhow::Error::from(error));
                note(false, &format!("the network `{name}` was not calibrated by {backend}: {error:#}"));
            }
        }
        folder.write_json(FILE, &self.found).context("the calibration could not be stored")
    }
}

/// What is missing of them, in a sentence: networks that were emulated, and nobody knows how well.
pub(crate) fn fault(found: &[NetworkCalibration], plan: &Plan, runs: &[RunSummary]) -> Option<String> {
    let emulated = runs.iter().filter(|run| run.calibration.is_some());
    let cells = emulated.filter_map(|run| plan.cells.get(run.cell as usize));
    let mut missing: Vec<&str> = cells
        .filter(|cell| has_reference_measurement(plan, cell.network))
        .map(|cell| plan.network_of(cell).name.as_str())
        .filter(|name| found.iter().all(|calibration| calibration.network != *name))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    (!missing.is_empty()).then(|| {
        format!("{FILE} does not say how well the networks kept what they promise: {}", missing.join(", "))
    })
}

/// What a result holds of them; nothing where its networks were not emulated.
pub(crate) fn stored(folder: &ResultFolder) -> Vec<NetworkCalibration> {
    folder.read_json(FILE).unwrap_or_default()
}
