//! The plan: a study fully resolved. Nothing in it can be inconsistent.

use serde::{Deserialize, Serialize};

use crate::assignment::Workload;
use crate::network::Network;
use crate::page::Page;
use crate::pins::Pins;
use crate::variant::Variant;

/// The version of `plan.json`.
pub const PLAN_VERSION: u32 = 2;

/// A study fully resolved: every cell, the order of the runs, their seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// The study's name.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// The study file as it was read, for the report.
    pub study_text: String,
    /// The primary metric, by name.
    pub metric: String,
    /// What every comparison is against.
    pub baseline: Level,
    /// The margin of interest as a share: differences inside it do not matter.
    pub margin_share: f64,
    /// The seed from which all others are drawn.
    pub seed: u64,
    /// Runs of each cell.
    pub runs_per_cell: u32,
    /// What is held alike.
    pub pins: Pins,
    /// The networks that cells name.
    pub networks: Vec<Network>,
    /// The named workloads.
    pub workloads: Vec<NamedWorkload>,
    /// The servers that cells name.
    pub servers: Vec<String>,
    /// Every cell, in the order of the matrix.
    pub cells: Vec<Cell>,
    /// Every run, in the order of execution.
    pub runs: Vec<PlannedRun>,
}

/// One value of one factor, such as `variant = h1s`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Level {
    /// The factor: `variant`, `server`, `network`, `workload`, …
    pub factor: String,
    /// Its value here.
    pub value: String,
}

/// A workload under the name that the study gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedWorkload {
    /// The study's name for it.
    pub name: String,
    /// What it is.
    pub workload: Workload,
}

/// One point of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number: its index in [`Plan::cells`].
    pub cell: u32,
    /// Its place in the matrix, one level per factor, in the order of the factors.
    pub levels: Vec<Level>,
    /// Index into [`Plan::networks`].
    pub network: usize,
    /// The client groups of a run.
    pub clients: Vec<ClientGroup>,
    /// The server chains of a run.
    pub chains: Vec<ServerChain>,
    /// A prediction of one run's duration, lab included, for the progress bar.
    pub expected_run_ns: u64,
    /// A run longer than this is ended and stored as a timeout.
    pub run_limit_ns: u64,
}

/// A role: some clients that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientGroup {
    /// Its number within the cell.
    pub group: u16,
    /// The node that it runs in.
    pub node: String,
    /// What it speaks.
    pub variant: Variant,
    /// Index into [`Plan::workloads`].
    pub workload: usize,
    /// Index into [`Cell::chains`].
    pub chain: usize,
    /// How many clients it has.
    pub clients: u32,
}

/// A role: a server and, later, what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChain {
    /// The node that it runs in.
    pub node: String,
    /// The adapter's name.
    pub server: String,
}

/// One run in the order of execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Its number: its index in [`Plan::runs`].
    pub run: u32,
    /// The block: one run of every cell, in random order.
    pub block: u32,
    /// The cell.
    pub cell: u32,
    /// The seed of all randomness in this run.
    pub seed: u64,
}

impl Cell {
    /// The value of a factor in this cell.
    pub fn level(&self, factor: &str) -> Option<&str> {
        self.levels.iter().find(|level| level.factor == factor).map(|level| level.value.as_str())
    }

    /// A name such as `h2 · origin · lan · small`.
    pub fn label(&self) -> String {
        self.levels.iter().map(|level| level.value.as_str()).collect::<Vec<_>>().join(" · ")
    }
}

impl Plan {
    /// The network of a cell.
    pub fn network_of(&self, cell: &Cell) -> &Network {
        &self.networks[cell.network]
    }

    /// The workload of a client group.
    pub fn workload_of(&self, group: &ClientGroup) -> &NamedWorkload {
        &self.workloads[group.workload]
    }

    /// The pages of all workloads, each once.
    pub fn pages(&self) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        for named in &self.workloads {
            if let Workload::Page { page } = &named.workload
                && pages.iter().all(|known| known.name != page.name)
            {
                pages.push(page.clone());
            }
        }
        pages
    }

    /// The prediction of the whole study's duration.
    pub fn expected_ns(&self) -> u64 {
        self.runs.iter().map(|run| self.cells[run.cell as usize].expected_run_ns).sum()
    }
}
