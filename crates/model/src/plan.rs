//! The plan: a study fully resolved. Nothing in it can be inconsistent.

mod addresses;
mod chain;
mod check;
mod files;
mod group;
mod remote;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::backend::Backend;
use crate::claim::Claim;
use crate::class::RequestClass;
use crate::cores::CoreChoice;
use crate::csv::CsvTable;
use crate::delivery::Delivery;
use crate::external::OWN_CLIENT;
use crate::media::Media;
use crate::monitor::MonitorRate;
use crate::network::Network;
use crate::options::Options;
use crate::page::Page;
use crate::page_cache::PageCache;
use crate::pins::Pins;
use crate::statistic::Statistic;
use crate::topology::Topology;
use crate::warm::ServerWarmUp;
use crate::workload::Workload;

pub use crate::level::Level;
pub use addresses::connections_each;
pub use chain::{BackServer, ServerChain};
pub(crate) use group::circle_of_ends;
pub use group::{ClientGroup, GroupEnd};
pub use remote::{MOST_RATE, MOST_REQUESTS, OutsideRequests, Remote, RemoteTrust};

/// The version of `plan.json`.
pub const PLAN_VERSION: u32 = 10;

/// A study fully resolved: every cell, the order of the runs, their seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the format.
    pub version: u32,
    /// The study's name.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// The text of the study file, before overrides.
    pub study_text: String,
    /// The primary metric, by name.
    pub metric: String,
    /// The statistic of the metric that verdicts are about; `None` for the median.
    #[serde(default, skip_serializing_if = "Statistic::is_median")]
    pub statistic: Statistic,
    /// The level with which every other level is compared.
    pub baseline: Level,
    /// The margin of interest as a share: differences inside it do not matter.
    pub margin_share: f64,
    /// The seed that determines all others.
    pub seed: u64,
    /// Runs of each cell; the minimum if a rule adds runs.
    pub runs_per_cell: u32,
    /// The rule that adds runs; `None` for a fixed number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Repetition>,
    /// The settings fixed in every cell.
    pub pins: Pins,
    /// Whether server times are measured: requests carry ids, and the servers' logs are joined with the rows;
    /// `None` for false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_time: bool,
    /// How long a separate client uses the servers before each run is measured; `None` where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<ServerWarmUp>,
    /// The state of the page cache before each run; `None` where it is left unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
    /// The round-trip time to the name server; `None` if clients know the server's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_rtt_ns: Option<u64>,
    /// Checks that give a caveat where they would invalidate a cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
    /// The figures of the report, in order; `None` for those that suit the matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Vec<String>>,
    /// The study's claims, which are tested against its data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Published values for the same question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Tables with columns that the study describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub csv: Vec<CsvTable>,
    /// The CPUs that the study chooses.
    #[serde(default, skip_serializing_if = "CoreChoice::is_default")]
    pub cores: CoreChoice,
    /// The arms, if they are a factor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<Arm>,
    /// Classes of requests; the first that matches a path has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<RequestClass>,
    /// Sampling rate of the monitor.
    #[serde(default)]
    pub monitor: MonitorRate,
    /// Nodes and links of every run.
    #[serde(default)]
    pub topology: PlannedTopology,
    /// The networks of the matrix: the whole route from the client to the server, per direction.
    pub networks: Vec<Network>,
    /// The named workloads.
    pub workloads: Vec<NamedWorkload>,
    /// The media of the study, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// The servers of the matrix: names of servers, or of `[server.NAME]` tables of the study.
    pub servers: Vec<String>,
    /// Every cell, in the order of the matrix.
    pub cells: Vec<Cell>,
    /// Every run, in the order of execution; all possible runs if a rule adds runs.
    pub runs: Vec<PlannedRun>,
}

/// When a study that adds runs block by block has enough of them: what comes first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// The required precision: half of every interval of the primary metric, as a share of its value.
    pub precision_share: f64,
    /// The time that all runs may take together; `None` without a limit. The minimum of runs is
    /// always made.
    pub budget_ns: Option<u64>,
    /// The maximum of runs per cell.
    pub most_runs: u32,
}

/// A published value: of the cells with some levels, or their ratio to those with another level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where.
    pub source: String,
    /// The levels of its cells, in the order of the matrix; of a ratio, one of the factor that is compared.
    pub levels: Vec<Level>,
    /// The level that a ratio is to; `None` for the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Level>,
    /// The metric.
    pub metric: String,
    /// The statistic of it; `None` for the one that the study compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// The value.
    #[serde(flatten)]
    pub value: PublishedValue,
}

/// What was published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValue {
    /// The value divided by that of the level in `against`.
    Ratio(f64),
    /// The value in the metric's unit; times in nanoseconds.
    Value(f64),
    /// A time in round trips of the network.
    RoundTrips(f64),
}

impl Published {
    /// A ratio to the baseline, of the statistic that the study compares.
    pub fn ratio(source: &str, levels: Vec<Level>, metric: &str, ratio: f64) -> Published {
        Published {
            source: source.to_owned(),
            levels,
            against: None,
            metric: metric.to_owned(),
            statistic: None,
            value: PublishedValue::Ratio(ratio),
        }
    }

    /// The ratio to the baseline of the statistic that the study compares, if it is one.
    pub const fn ratio_to_baseline(&self) -> Option<f64> {
        match self {
            Published { against: None, statistic: None, value: PublishedValue::Ratio(ratio), .. } => {
                Some(*ratio)
            }
            _ => None,
        }
    }
}

/// The topology of a plan's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTopology {
    /// The topology's name; `direct` is this machine and its loopback interface.
    pub name: String,
    /// The node of the clients.
    pub client: String,
    /// The node of the servers.
    pub server: String,
    /// The nodes of the servers behind proxies: of the first ones, of those behind these, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backs: Vec<String>,
    /// The link that has the matrix's networks; `None` if every link keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// All nodes and links, for each network in the order of `networks`; `None` for `pair` and `direct`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built: Vec<Topology>,
}

/// The topology that is this machine and its loopback.
pub const DIRECT: &str = "direct";
/// The topology whose last node stands for servers that h123 does not start.
pub const OUTSIDE: &str = "outside";
/// The topology of a client and a server with one network between them.
pub const PAIR: &str = "pair";

impl Default for PlannedTopology {
    /// A pair.
    fn default() -> PlannedTopology {
        PlannedTopology {
            name: PAIR.to_owned(),
            client: "client".to_owned(),
            server: "server".to_owned(),
            backs: Vec::new(),
            link: Some("client-server".to_owned()),
            built: Vec::new(),
        }
    }
}

/// A workload under the name that the study gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedWorkload {
    /// The study's name for it.
    pub name: String,
    /// What it is.
    pub workload: Workload,
    /// How its requests and connections are made; `None` for the defaults.
    #[serde(default, skip_serializing_if = "Options::is_default")]
    pub options: Options,
}

impl NamedWorkload {
    /// Bytes of request bodies that one client sends at least; the mean body of its paths for each request of
    /// a loop.
    pub fn least_request_body_bytes(&self) -> u64 {
        let requests = &self.options.requests;
        let Some(load) = self.workload.as_loop().filter(|_| !requests.bodies.is_empty()) else { return 0 };
        let of_path = |path: usize| {
            let body = requests.body_of(path).and_then(|body| requests.bodies.get(body as usize));
            body.map_or(0, |body| body.0.len() as u64)
        };
        let sum = (0..load.paths.len()).map(of_path).fold(0, u64::saturating_add);
        load.requests.unwrap_or(0).saturating_mul(sum) / load.paths.len().max(1) as u64
    }

    /// The workload and what is special about its requests, in one line.
    pub fn describe(&self) -> String {
        match self.options.describe() {
            special if special.is_empty() => self.workload.describe(),
            special => format!("{}; {special}", self.workload.describe()),
        }
    }
}

/// One point of the matrix: what one client group does there.
///
/// The groups of a study run at the same time. Each has its own cell, and the cells of one run follow each
/// other in the order of the groups ([`Plan::cells_of_run`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell's number: its index in `cells`.
    pub cell: u32,
    /// Its place in the matrix: one level per factor, in the order of the factors.
    pub levels: Vec<Level>,
    /// Index into `networks`: the route from its client to its server.
    pub network: usize,
    /// What emulates the network; `None` for `user-space`.
    #[serde(default, skip_serializing_if = "Backend::is_default")]
    pub backend: Backend,
    /// The settings fixed in this cell; `None` if they are those of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<Pins>,
    /// Its client group.
    pub group: ClientGroup,
    /// The servers that the group uses.
    pub chain: ServerChain,
    /// Predicted duration of one run, including setup; 0 if there is nothing to run.
    pub expected_run_ns: u64,
    /// A longer run is ended and stored as a timeout.
    pub run_limit_ns: u64,
    /// Why its client cannot run it: its runs are *unsupported*; `None` if that is unknown before a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
}

/// One run in the order of execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// The run's number: its index in `runs`.
    pub run: u32,
    /// The block: one run of every cell or of its groups together, in random order.
    pub block: u32,
    /// The cell; the first one, if the run measures several groups.
    pub cell: u32,
    /// The seed of all randomness in this run. All runs of a block have the same one.
    pub seed: u64,
}

impl Repetition {
    /// The rule, after the number of runs that are made in any case:
    /// `then more until ±2 %, at most 100 each or 30 min`.
    pub fn describe(&self) -> String {
        let precision = crate::units::three_digits(self.precision_share * 100.0);
        let budget = self.budget_ns.map(|ns| format!(" or {}", crate::units::format_expected(ns)));
        let budget = budget.unwrap_or_default();
        format!("then more until ±{precision} %, at most {} each{budget}", self.most_runs)
    }
}

impl PlannedTopology {
    /// What it is and who is measured over which links, for people.
    pub fn describe(&self) -> String {
        if self.name == DIRECT {
            return format!("{DIRECT}: this machine and its loopback, nothing is emulated");
        }
        let (client, server) = (&self.client, &self.server);
        let Some(topology) = self.built.first() else {
            return format!("{}: {client} and {server}, joined by one link", self.name);
        };
        let steps = topology.route().unwrap_or_default();
        let links: Vec<&str> = steps.iter().map(|step| topology.links[step.link].name.as_str()).collect();
        let mut words = format!("{}: {client} to {server} by {}", self.name, links.join(", "));
        if let Some(link) = &self.link {
            let _ = write!(words, "; {link} has the matrix's network");
        }
        for cross in &topology.cross {
            let [from, to] = [cross.from, cross.to].map(|node| topology.nodes[node].name.as_str());
            let _ =
                write!(words, "; cross-traffic of {} × {} from {to} to {from}", cross.flows, cross.variant);
        }
        words
    }
}

impl Cell {
    /// The value of a factor in this cell.
    pub fn level(&self, factor: &str) -> Option<&str> {
        self.levels.iter().find(|level| level.factor == factor).map(|level| level.value.as_str())
    }

    /// A name such as `h2 · origin · lan · small`.
    pub fn label(&self) -> String {
        self.levels.iter().map(Level::label).collect::<Vec<_>>().join(" · ")
    }
}

/// Adds a study's name server, which these nodes ask.
///
/// # Errors
/// As [`Topology::add_name_server`].
pub(crate) fn add_name_server<'a>(
    topology: &mut Topology,
    rtt_ns: u64,
    nodes: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    let mut clients: Vec<usize> = nodes.filter_map(|node| topology.position(node)).collect();
    clients.sort_unstable();
    clients.dedup();
    topology.add_name_server(rtt_ns, &clients, "the study's `dns`")
}

impl Plan {
    /// The cells that a run measures at the same time, one for each client group; `first` is the run's cell.
    /// Empty if no run begins with this cell.
    pub fn cells_of_run(&self, first: u32) -> &[Cell] {
        let rest = self.cells.get(first as usize..).unwrap_or_default();
        let is_next = |(place, cell): (usize, &Cell)| usize::from(cell.group.group) == place;
        let count = rest.iter().enumerate().take_while(|(place, cell)| is_next((*place, cell))).count();
        &rest[..count]
    }

    /// The cells that begin a run: one for each point of the matrix.
    pub fn run_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.group.group == 0)
    }

    /// The servers of a run, each chain once, in the order of the groups that use them.
    pub fn chains_of_run(&self, first: u32) -> Vec<&ServerChain> {
        let mut chains: Vec<&ServerChain> = Vec::new();
        for cell in self.cells_of_run(first) {
            if !chains.contains(&&cell.chain) {
                chains.push(&cell.chain);
            }
        }
        chains
    }

    /// The places of a cell's servers among those of its run, which are counted chain by chain from the
    /// clients.
    pub fn servers_of(&self, cell: &Cell) -> Range<usize> {
        let chains = self.chains_of_run(cell.cell.saturating_sub(cell.group.group.into()));
        let length = |chain: &ServerChain| chain.adapters().count();
        let before = chains.iter().take_while(|chain| **chain != &cell.chain);
        let start = before.map(|chain| length(chain)).sum();
        start..start + length(&cell.chain)
    }

    /// The nodes of all client groups, each once.
    pub fn client_nodes(&self) -> BTreeSet<&str> {
        self.cells.iter().map(|cell| cell.group.node.as_str()).collect()
    }

    /// The prediction of a run's duration, with the first segments of feeds before it and the rest of servers
    /// outside after it.
    pub fn expected_run_ns(&self, first: u32) -> u64 {
        let longest_ns = self.cells_of_run(first).iter().map(|cell| cell.expected_run_ns).max().unwrap_or(0);
        let feeds = self.media.iter().filter_map(Media::feed);
        let listed_ns = feeds.map(|feed| feed.first_segments_ns()).max().unwrap_or(0);
        longest_ns.saturating_add(listed_ns).max(self.rest_ns(first))
    }

    /// The longest time that a group of a run may take.
    pub fn run_limit_ns(&self, first: u32) -> u64 {
        self.cells_of_run(first).iter().map(|cell| cell.run_limit_ns).max().unwrap_or(0)
    }

    /// How many runs a block has.
    pub fn runs_per_block(&self) -> usize {
        self.run_cells().count()
    }

    /// The settings fixed in a cell.
    pub fn pins_of<'a>(&'a self, cell: &'a Cell) -> &'a Pins {
        cell.pins.as_ref().unwrap_or(&self.pins)
    }

    /// The names of all adapters that the cells need, each once and in order.
    pub fn adapters(&self) -> BTreeSet<&str> {
        self.cells.iter().flat_map(|cell| cell.chain.adapters()).collect()
    }

    /// The network of a cell.
    pub fn network_of(&self, cell: &Cell) -> &Network {
        &self.networks[cell.network]
    }

    /// Whether the network of this index is a single emulated link, whose rate and loss can be measured. A
    /// route of several links has the sum of their delays but no link with the same name.
    pub fn has_reference(&self, network: usize) -> bool {
        self.topology.name != DIRECT
            && self.topology.built.get(network).is_none_or(|topology| topology.emulated_route().len() == 1)
    }

    /// The nodes and links of a cell; `None` where it runs on this machine's loopback.
    pub fn topology_of(&self, cell: &Cell) -> Option<Topology> {
        self.topology_on(cell.network)
    }

    /// The nodes and links of the cells that have this one of [`Plan::networks`]; `None` where they run on
    /// this machine's loopback.
    pub fn topology_on(&self, network: usize) -> Option<Topology> {
        if self.topology.name == DIRECT {
            return None;
        }
        let built = self.topology.built.get(network);
        let mut topology = built.cloned().or_else(|| self.networks.get(network).map(Topology::pair))?;
        if let Some(rtt_ns) = self.dns_rtt_ns {
            // That there is room for it was found when the study was resolved.
            let _ = add_name_server(&mut topology, rtt_ns, self.client_nodes().into_iter());
        }
        Some(topology)
    }

    /// The workload of a client group.
    pub fn workload_of(&self, group: &ClientGroup) -> &NamedWorkload {
        &self.workloads[group.workload]
    }

    /// The clients that cells name, our own left out, each once.
    pub fn external_clients(&self) -> Vec<&str> {
        let mut clients = Vec::new();
        for group in self.cells.iter().map(|cell| &cell.group) {
            if group.client != OWN_CLIENT && !clients.contains(&group.client.as_str()) {
                clients.push(group.client.as_str());
            }
        }
        clients
    }

    /// The pages of all workloads, each once and delivered plainly.
    pub fn pages(&self) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        for named in &self.workloads {
            if let Some(page) = named.workload.page().filter(|page| !page.is_outside())
                && pages.iter().all(|known| known.name != page.name)
            {
                pages.push(Page { delivery: Delivery::default(), ..page.clone() });
            }
        }
        pages
    }

    /// The prediction of the whole study's duration, with the reference measurements of its networks; of the
    /// least runs, where a rule adds more.
    pub fn expected_ns(&self) -> u64 {
        let runs_ns: u64 = self.least_runs().iter().map(|run| self.expected_run_ns(run.cell)).sum();
        let measured = self.cells.iter().filter(|cell| cell.expected_run_ns > 0);
        let measured: BTreeSet<(usize, Backend)> =
            measured.map(|cell| (cell.network, cell.backend)).collect();
        let references = measured.iter().filter(|(network, _)| self.has_reference(*network));
        let of_network = |(network, _): &(usize, Backend)| {
            self.networks.get(*network).map_or(0, crate::predict::reference_ns)
        };
        references.map(of_network).fold(runs_ns, u64::saturating_add)
    }

    /// The runs that are made in any case: all of them, unless a rule adds some.
    pub fn least_runs(&self) -> &[PlannedRun] {
        let least = (self.runs_per_cell as usize).saturating_mul(self.runs_per_block());
        &self.runs[..least.min(self.runs.len())]
    }
}
