//! A study: a question written down as a TOML file, and its resolution into a [`Plan`].
//!
//! Two stages. [`Study::read`] takes the file *as written*: every key known, every type right, every unit readable,
//! every value with its place. [`Study::resolve`] looks up what the names mean, refuses contradictions and
//! multiplies the matrix out. Both stop at the first fault and say where it is, what was found and what is expected.

use crate::assignment::Workload;
use crate::error::{InputError, Place, Source};
use crate::monitor::MonitorRate;
use crate::plan::Plan;
use crate::reader::Placed;
use crate::tunable::ServerFacts;
use crate::variant::Variant;

mod claims;
mod clients;
mod dns;
mod hold;
mod loops;
mod player;
mod published;
mod repetition;
mod resolve;
mod servers;
#[cfg(test)]
mod tests;
mod topology;
mod written;

use written::{Baseline, NamedEntry};

pub use written::FactorKind;

/// A study as written. It has been read, but its names may mean nothing yet.
#[derive(Clone, Debug)]
pub struct Study {
    name: String,
    text: String,
    question: String,
    metric: Placed<String>,
    baseline: Baseline,
    margin_share: f64,
    runs: Placed<u32>,
    repetition: Option<repetition::Written>,
    seed: u64,
    monitor: MonitorRate,
    topology: Option<topology::Chosen>,
    matrix: Placed<Vec<Factor>>,
    backends: Option<Placed<Vec<Placed<String>>>>,
    workloads: Vec<NamedEntry>,
    servers: Vec<servers::ServerEntry>,
    hold: hold::Hold,
    server_time: bool,
    dns: Option<Placed<u64>>,
    claims: Vec<claims::Written>,
    accept: Placed<Vec<Placed<String>>>,
    figures: Option<Placed<Vec<Placed<String>>>>,
    published: Vec<published::Written>,
}

/// One factor of the matrix and its levels, both in the order of the file.
#[derive(Clone, Debug)]
struct Factor {
    kind: FactorKind,
    levels: Placed<Vec<Placed<String>>>,
}

/// What a study may name: the data files and the lists that the tool knows.
pub trait Library {
    /// The names of the networks (`networks/NAME.toml`).
    fn networks(&self) -> Vec<String>;
    /// The names of the topologies (`topologies/NAME.toml`).
    fn topologies(&self) -> Vec<String>;
    /// The names of the pages (`pages/NAME.toml`).
    fn pages(&self) -> Vec<String>;
    /// The names of the servers (`servers/NAME/`).
    fn servers(&self) -> Vec<String>;
    /// What a study has to know of a server in [`Library::servers`].
    ///
    /// # Errors
    /// Its description is wrong, in one sentence.
    fn server(&self, name: &str) -> Result<ServerFacts, String>;
    /// The names of the external clients (`clients/NAME/`).
    fn clients(&self) -> Vec<String>;
    /// Why a client in [`Library::clients`] cannot do this, where it cannot: `Ok(Some(…))`.
    ///
    /// # Errors
    /// What is wrong with its description, with its place.
    fn check_client(
        &self,
        client: &str,
        variant: Variant,
        workload: &Workload,
    ) -> Result<Option<String>, String>;
    /// The names of the checks that the analysis makes.
    fn checks(&self) -> Vec<String>;
    /// The names of the figures that the report draws.
    fn figures(&self) -> Vec<String>;
    /// The names of the metrics that the analysis computes.
    fn metrics(&self) -> Vec<String>;
    /// Whether a metric in [`Library::metrics`] can answer for a workload.
    ///
    /// # Errors
    /// Why not, as `found …, expected …`.
    fn check_metric(&self, metric: &str, workload: &Workload) -> Result<(), String>;
    /// Whether a metric in [`Library::metrics`] is computed from the servers' own times.
    fn needs_server_time(&self, metric: &str) -> bool;
    /// Whether a metric in [`Library::metrics`] is of the DNS lookup.
    fn needs_dns_lookup(&self, metric: &str) -> bool;
    /// The file of a network in [`Library::networks`].
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn network(&self, name: &str) -> Result<DataFile, String>;
    /// The file of a topology in [`Library::topologies`].
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn topology(&self, name: &str) -> Result<DataFile, String>;
    /// A trace that a network names (`networks/FILE`).
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn trace(&self, file: &str) -> Result<DataFile, String>;
    /// The file of a page in [`Library::pages`].
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn page(&self, name: &str) -> Result<DataFile, String>;
}

/// A data file's text and the name by which errors call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Such as `networks/lan.toml`.
    pub file: String,
    /// The whole text.
    pub text: String,
}

/// What the command line says instead of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Levels of the factor `variant`.
    pub variants: Option<Vec<String>>,
    /// Levels of the factor `server`.
    pub servers: Option<Vec<String>>,
    /// Levels of the factor `client`.
    pub clients: Option<Vec<String>>,
    /// Levels of the factor `network`.
    pub networks: Option<Vec<String>>,
    /// Levels of the factor `workload`; the study has to define them.
    pub workloads: Option<Vec<String>>,
    /// The topology, with the nodes that it has by itself.
    pub topology: Option<String>,
    /// What emulates the networks.
    pub backends: Option<Vec<String>>,
    /// Checks that shall not invalidate.
    pub accept: Option<Vec<String>>,
    /// Runs of each cell.
    pub runs: Option<u32>,
    /// The seed of the order and of every run.
    pub seed: Option<u64>,
    /// How often the monitor reads, such as `2Hz`, or `off`.
    pub monitor: Option<String>,
}

impl Study {
    /// Reads a study, applies the command line's overrides and resolves it.
    ///
    /// # Errors
    /// As [`Study::read`], [`Study::apply`] and [`Study::resolve`].
    pub fn parse(
        name: &str,
        source: Source<'_>,
        overrides: &Overrides,
        library: &impl Library,
    ) -> Result<Plan, InputError> {
        let mut study = Study::read(name, source)?;
        study.apply(overrides)?;
        study.resolve(library)
    }

    /// Reads a study file as written.
    ///
    /// # Errors
    /// File, line and column of faulty TOML, an unknown or missing key, a wrong type or a bad unit.
    pub fn read(name: &str, source: Source<'_>) -> Result<Study, InputError> {
        written::read(name, source)
    }

    /// Puts the command line's values in the place of the file's.
    ///
    /// # Errors
    /// Only a number of runs out of bounds, or a rate of the monitor that cannot be had; names are looked up by [`Study::resolve`].
    pub fn apply(&mut self, overrides: &Overrides) -> Result<(), InputError> {
        let by_factor = [
            (FactorKind::Variant, &overrides.variants),
            (FactorKind::Server, &overrides.servers),
            (FactorKind::Network, &overrides.networks),
            (FactorKind::Workload, &overrides.workloads),
        ];
        for (kind, names) in by_factor {
            let Some(names) = names else { continue };
            let factor = self.matrix.value.iter_mut().find(|factor| factor.kind == kind);
            if let Some(factor) = factor {
                let levels = names.iter().map(|name| on_command_line(name.clone())).collect();
                factor.levels = on_command_line(levels);
            }
        }
        if let Some(names) = &overrides.clients {
            let levels = names.iter().map(|name| on_command_line(name.clone())).collect();
            self.set_clients(on_command_line(levels));
        }
        if let Some(name) = &overrides.topology {
            self.topology = Some(topology::Chosen::named(on_command_line(name.clone())));
        }
        if let Some(names) = &overrides.backends {
            let levels = names.iter().map(|name| on_command_line(name.clone())).collect();
            self.set_backends(Some(on_command_line(levels)));
        }
        if let Some(names) = &overrides.accept {
            self.accept.value.extend(names.iter().map(|name| on_command_line(name.clone())));
        }
        if let Some(runs) = overrides.runs {
            if !written::RUNS.contains(&u64::from(runs)) {
                let (least, most) = (written::RUNS.start(), written::RUNS.end());
                let problem = format!("found {runs} runs, expected a whole number from {least} to {most}");
                return Err(on_command_line(runs).error(problem));
            }
            self.runs = on_command_line(runs);
            if let Some(repetition) = &mut self.repetition {
                repetition.allow(runs);
            }
        }
        self.seed = overrides.seed.unwrap_or(self.seed);
        if let Some(rate) = &overrides.monitor {
            self.monitor = rate
                .parse()
                .map_err(|problem| on_command_line(rate).error(format!("the monitor's rate: {problem}")))?;
        }
        Ok(())
    }

    /// Clients are a factor wherever they are named, and change fastest where the study did not name them itself.
    fn set_clients(&mut self, levels: Placed<Vec<Placed<String>>>) {
        match self.matrix.value.iter_mut().find(|factor| factor.kind == FactorKind::Client) {
            Some(factor) => factor.levels = levels,
            None => self.matrix.value.push(Factor { kind: FactorKind::Client, levels }),
        }
    }

    /// Several backends are a factor, and the one that changes fastest.
    fn set_backends(&mut self, backends: Option<Placed<Vec<Placed<String>>>>) {
        self.matrix.value.retain(|factor| factor.kind != FactorKind::Backend);
        if let Some(levels) = backends.clone().filter(|levels| levels.value.len() > 1) {
            self.matrix.value.push(Factor { kind: FactorKind::Backend, levels });
        }
        self.backends = backends;
    }

    /// Looks up every name, refuses contradictions and multiplies the matrix out.
    ///
    /// # Errors
    /// The place and nature of the first name that means nothing, of a contradiction, or of a fault in a network's
    /// or page's own file.
    pub fn resolve(&self, library: &impl Library) -> Result<Plan, InputError> {
        resolve::resolve(self, library)
    }
}

fn on_command_line<T>(value: T) -> Placed<T> {
    Placed { value, place: Place::command_line() }
}
