//! A study: a question written down as a TOML file, and its resolution into a [`Plan`].
//!
//! Two stages. `written` takes the file *as written*: every key known, every type right, every unit
//! readable, every value with its place. `resolve` looks up names, refuses contradictions and multiplies
//! the matrix out. Both stop at the first error, which names its place, what is wrong and what to write
//! instead. `points` does both for every arm and every level of a sweep.

use std::rc::Rc;

use crate::cores::CoreChoice;
use crate::error::{DataFile, InputError, Source};
use crate::media::Media;
use crate::monitor::MonitorRate;
use crate::page_cache::PageCache;
use crate::plan::{NamedWorkload, Plan, RemoteTrust};
use crate::reader::Placed;
use crate::statistic::Statistic;
use crate::tunable::ServerFacts;
use crate::url::Url;
use crate::variant::Variant;
use crate::warm::ServerWarmUp;

mod arms;
mod browser;
mod claims;
mod classes;
mod clients;
mod cores;
mod csv;
mod delivery;
mod dns;
mod except;
mod factors;
mod full;
mod groups;
mod hold;
mod join;
mod ladder;
mod links;
mod loops;
mod media;
mod metric;
mod overrides;
mod player;
mod points;
mod published;
mod ranges;
mod repetition;
mod request_files;
mod requests;
mod resolve;
mod script;
mod servers;
mod start;
mod sweeps;
#[cfg(test)]
pub(crate) mod tests;
mod topology;
mod workloads;
mod written;

use factors::DeclaredFactor;
use workloads::NamedEntry;
use written::Baseline;

pub use factors::FactorKind;
pub use metric::{MetricFacts, Requirement, ValuesPerRun};
pub use overrides::{Override, OverrideValue};
pub use written::KEYS;

/// A study as written. Its names are not looked up yet.
#[derive(Clone, Debug)]
pub struct Study {
    name: String,
    text: String,
    question: String,
    metric: Placed<String>,
    statistic: Placed<Statistic>,
    baseline: Baseline,
    margin_share: f64,
    runs: Placed<u32>,
    repetition: Option<repetition::RepetitionKeys>,
    seed: u64,
    monitor: MonitorRate,
    topology: Option<topology::TopologyEntry>,
    matrix: Placed<Vec<Factor>>,
    /// All factors of the matrix: those of `matrix`, arms and sweeps.
    factors: Rc<[DeclaredFactor]>,
    backends: Option<Placed<Vec<Placed<String>>>>,
    workloads: Vec<NamedEntry>,
    media: Vec<media::MediaEntry>,
    servers: Vec<servers::ServerEntry>,
    /// The client groups; one without a name where the study names none.
    groups: Vec<groups::GroupEntry>,
    /// The networks that the matrix describes itself.
    networks: Vec<crate::network::InlineNetwork>,
    /// What sweeps change in the networks of the matrix.
    network_keys: Vec<topology::NetworkKey>,
    hold: hold::Hold,
    server_time: bool,
    warm: Option<ServerWarmUp>,
    page_cache: Option<Placed<PageCache>>,
    dns: Option<Placed<u64>>,
    claims: Vec<claims::ClaimEntry>,
    /// Classes of requests.
    classes: Vec<classes::ClassEntry>,
    accept: Placed<Vec<Placed<String>>>,
    figures: Option<Placed<Vec<Placed<String>>>>,
    published: Vec<published::PublishedEntry>,
    csv: Vec<csv::CsvEntry>,
    cores: CoreChoice,
}

/// One factor of the matrix and its levels, both in the order of the file.
#[derive(Clone, Debug)]
struct Factor {
    kind: FactorKind,
    levels: Placed<Vec<Placed<String>>>,
}

/// The names that a study can use: those of data files and of the tool's lists.
pub trait Library {
    /// The names of the networks (`networks/NAME.toml`).
    fn networks(&self) -> Vec<String>;
    /// The names of the topologies (`topologies/NAME.toml`).
    fn topologies(&self) -> Vec<String>;
    /// The names of the pages (`pages/NAME.toml`).
    fn pages(&self) -> Vec<String>;
    /// The names of the media (`media/NAME.toml`).
    fn media(&self) -> Vec<String>;
    /// The names of the servers (`servers/NAME/`).
    fn servers(&self) -> Vec<String>;
    /// The facts about a server in [`Library::servers`].
    ///
    /// # Errors
    /// Its description is wrong, in one sentence.
    fn server(&self, name: &str) -> Result<ServerFacts, String>;
    /// The names of the external clients (`clients/NAME/`).
    fn clients(&self) -> Vec<String>;
    /// Why a client in [`Library::clients`] does not support a workload; `Ok(None)` if it does.
    ///
    /// # Errors
    /// What is wrong with its description, with its place.
    fn check_client(
        &self,
        client: &str,
        variant: Variant,
        named: &NamedWorkload,
    ) -> Result<Option<String>, String>;
    /// The names of the checks that the analysis makes.
    fn checks(&self) -> Vec<String>;
    /// The names of the figures that the report draws.
    fn figures(&self) -> Vec<String>;
    /// The metrics that the analysis computes.
    fn metrics(&self) -> Vec<MetricFacts>;
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
    /// The file of the media of a name in [`Library::media`].
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn media_file(&self, name: &str) -> Result<DataFile, String>;
    /// Media whose files are in a folder, with the presentation of a manifest in it: by default that of
    /// DASH, else of HLS, else of HDS.
    ///
    /// # Errors
    /// Why the folder or the manifest cannot be read, in one sentence.
    fn media_folder(&self, name: &str, folder: &str, manifest: Option<&str>) -> Result<Media, String>;
    /// Media of a site: what the manifest of a URL lists now. These servers are trusted.
    ///
    /// # Errors
    /// Why the manifest or something that it refers to cannot be fetched or read, in one sentence.
    fn media_site(&self, name: &str, manifest: &Url, trust: &RemoteTrust) -> Result<Media, String>;
    /// A file of requests that a workload names: a list of URLs or a body.
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn request_file(&self, file: &str) -> Result<DataFile, String>;
    /// A timing script: a file, or the name of one in `replays/`.
    ///
    /// # Errors
    /// Why the file cannot be read, in one sentence.
    fn replay(&self, name: &str) -> Result<DataFile, String>;
}

impl Study {
    /// Reads a study with the command line's overrides in place of the file's values, looks up every name,
    /// refuses contradictions and multiplies the matrix out.
    ///
    /// # Errors
    /// The first fault: its file, line and column, or the command line.
    pub fn parse(
        name: &str,
        source: Source<'_>,
        overrides: &[Override],
        library: &impl Library,
    ) -> Result<Plan, InputError> {
        points::parse_study(name, source, overrides, library)
    }

    /// What is held for single servers, and for all.
    fn holds(&self) -> impl Iterator<Item = &hold::Hold> {
        self.servers.iter().filter_map(|entry| entry.hold.as_ref()).chain([&self.hold])
    }

    /// Several backends are a factor.
    fn set_backends(&mut self, backends: Option<Placed<Vec<Placed<String>>>>) {
        self.matrix.value.retain(|factor| factor.kind != FactorKind::Backend);
        if let Some(levels) = backends.clone().filter(|levels| levels.value.len() > 1) {
            self.matrix.value.push(Factor { kind: FactorKind::Backend, levels });
        }
        self.backends = backends;
    }
}
