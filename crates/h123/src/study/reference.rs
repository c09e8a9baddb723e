//! The networks of a study against their reference measurements, once before the first run on each.

use analysis::RunSummary;
use anyhow::{Context, Result};
use lab::{Lab, PairSpec};
use model::record::NetworkCalibration;
use model::{Backend, Cell, Plan};
use store::ResultFolder;

use crate::terminal::note;

/// The file of a result that contains them.
const FILE: &str = "calibrations.json";

/// The networks that a study has measured.
pub(crate) struct ReferenceMeasurements {
    networks: Vec<NetworkCalibration>,
    /// Networks that could not be measured. Their runs fail and report why, so there is no second attempt.
    failed: Vec<(usize, Backend)>,
}

impl ReferenceMeasurements {
    /// Reads those that a result contains already.
    pub(crate) fn of(folder: &ResultFolder) -> Self {
        ReferenceMeasurements { networks: stored(folder), failed: Vec::new() }
    }

    /// The measured networks.
    pub(crate) fn networks(&self) -> &[NetworkCalibration] {
        &self.networks
    }

    /// Measures rate and loss of a cell's network in a separate lab and stores them, unless that is done
    /// already or the network is not that of a link.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        emulator_cpu: Option<usize>,
        folder: &ResultFolder,
    ) -> Result<()> {
        let (index, network, backend) = (cell.network, plan.network_of(cell), cell.backend);
        if !plan.has_reference(index) {
            return Ok(());
        }
        let is_found = |found: &NetworkCalibration| found.network == network.name && found.backend == backend;
        if self.networks.iter().any(is_found) || self.failed.contains(&(index, backend)) {
            return Ok(());
        }
        let seed = plan.seed.wrapping_add(index as u64);
        let lab = Lab::pair(PairSpec { network, pins: &plan.pins, seed, emulator_cpu, backend });
        match lab.and_then(|lab| lab.calibrate_network()) {
            Ok(calibration) => self.networks.extend(calibration),
            Err(error) => {
                self.failed.push((index, backend));
                let (name, error) = (&network.name, anyhow::Error::from(error));
                note(false, &format!("the network `{name}` was not calibrated by {backend}: {error:#}"));
            }
        }
        folder.write_json(FILE, &self.networks).context("the calibration could not be stored")
    }
}

/// The emulated networks whose reference measurement is missing, in a sentence.
pub(crate) fn fault(found: &[NetworkCalibration], plan: &Plan, runs: &[RunSummary]) -> Option<String> {
    let emulated = runs.iter().filter(|run| run.calibration.is_some());
    let cells = emulated.filter_map(|run| plan.cells.get(run.cell as usize));
    let mut missing: Vec<&str> = cells
        .filter(|cell| plan.has_reference(cell.network))
        .map(|cell| plan.network_of(cell).name.as_str())
        .filter(|name| found.iter().all(|calibration| calibration.network != *name))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    (!missing.is_empty())
        .then(|| format!("{FILE} has no reference measurement of these networks: {}", missing.join(", ")))
}

/// The reference measurements in a result; none where its networks were not emulated.
pub(crate) fn stored(folder: &ResultFolder) -> Vec<NetworkCalibration> {
    folder.read_json(FILE).unwrap_or_default()
}
