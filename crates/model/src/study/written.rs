//! The study file as written: its keys, their types and their units.

use std::ops::RangeInclusive;

use toml::de::DeTable;

use super::loops;
use super::{
    Factor, Override, Study, claims, dns, hold, overrides, player, published, repetition, servers, topology,
};
use crate::error::{InputError, Source};
use crate::monitor::MonitorRate;
use crate::nearest::unknown;
use crate::reader::{MOST_ENTRIES, Placed, Table};
use crate::units;
use crate::workload::{Workload, WorkloadKind};

/// Runs of each cell.
pub(super) const RUNS: RangeInclusive<u64> = 1..=10_000;

pub(super) const STUDY_KEYS: &[&str] = &[
    "question",
    "metric",
    "baseline",
    "margin",
    "runs",
    "precision",
    "budget",
    "most_runs",
    "seed",
    "topology",
    "backends",
    "matrix",
    "workload",
    "server",
    "hold",
    "server_time",
    "dns",
    "accept",
    "claim",
    "monitor",
    "figures",
    "published",
];
const PAGE_KEYS: &[&str] = &["kind", "page", "clients"];

const MOST_TEXT_BYTES: usize = 256 << 10;
const DEFAULT_SEED: u64 = 1;
const MOST_SEED: u64 = i64::MAX as u64; // TOML's own limit of a whole number
const MOST_CLIENTS: u64 = 1; // one client process a group, until the runner starts more

/// A factor of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// The HTTP version and its transport.
    Variant,
    /// The server.
    Server,
    /// The network.
    Network,
    /// The workload.
    Workload,
    /// The client program; a factor only where the study names some.
    Client,
    /// What emulates the network; a factor only where the study's `backends` are several.
    Backend,
}

/// A factor, its name in a study, and a value for the error that misses it.
const FACTORS: &[(FactorKind, &str, &str)] = &[
    (FactorKind::Variant, "variant", r#"["h1s", "h2", "h3"]"#),
    (FactorKind::Server, "server", r#"["origin"]"#),
    (FactorKind::Network, "network", r#"["lan"]"#),
    (FactorKind::Workload, "workload", r#"["small"]"#),
];

/// The factor that the matrix may leave out.
const CLIENT: (FactorKind, &str, &str) = (FactorKind::Client, "client", r#"["h123", "h2load"]"#);

/// The factor that is no key of the matrix, but of the study.
const BACKEND: (FactorKind, &str, &str) =
    (FactorKind::Backend, "backend", r#"backends = ["user-space", "netem"]"#);

/// Every factor that a baseline may name.
const ALL: &[(FactorKind, &str, &str)] = &[FACTORS[0], FACTORS[1], FACTORS[2], FACTORS[3], CLIENT, BACKEND];

/// The names of [`ALL`].
pub(super) const NAMES: &[&str] = &[ALL[0].1, ALL[1].1, ALL[2].1, ALL[3].1, ALL[4].1, ALL[5].1];

impl FactorKind {
    /// The name in a study, a plan and a table.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }
}

/// What every comparison is against, as written.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    pub(super) factor: FactorKind,
    pub(super) level: Placed<String>,
}

/// `[workload.NAME]`.
#[derive(Clone, Debug)]
pub(super) struct NamedEntry {
    pub(super) name: Placed<String>,
    pub(super) clients: u32,
    pub(super) what: Entry,
}

/// What a workload is. Only the page is still a name.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Page(Placed<String>),
    Resolved(Workload),
}

pub(super) fn read(name: &str, source: Source<'_>, overrides: &[Override]) -> Result<Study, InputError> {
    if source.text.len() > MOST_TEXT_BYTES {
        let problem = format!("found {} bytes, expected at most {MOST_TEXT_BYTES}", source.text.len());
        return Err(source.error(0..0, problem));
    }
    let values: Vec<String> = overrides.iter().map(Override::to_toml).collect();
    let mut document = DeTable::parse(source.text).map_err(|error| source.toml_error(&error))?.into_inner();
    overrides::write_into(&mut document, overrides, &values)?;
    let root = Table::root(source, &document, "the study", STUDY_KEYS)?;
    let question = root.string("question", "Which version loads this page soonest?")?;
    let question = question.ok_or_else(|| root.missing("question", "question = \"Which version …?\""))?;
    if question.value.trim().is_empty() {
        return Err(question.error("`question`: found nothing, expected the question that the study answers"));
    }
    let metric = root.string("metric", "page_load_time")?;
    let metric = metric.ok_or_else(|| root.missing("metric", "metric = \"page_load_time\""))?;
    let margin = root.parsed("margin", "3%", units::parse_share)?;
    let margin = margin.ok_or_else(|| root.missing("margin", "margin = \"3%\""))?;
    if margin.value <= 0.0 {
        let problem =
            "`margin`: found 0%, expected more: no measurement shows that two things are exactly equal";
        return Err(margin.error(problem));
    }
    let runs = root.integer("runs", RUNS)?.ok_or_else(|| root.missing("runs", "runs = 5"))?;
    let matrix = read_matrix(&root)?;
    let workloads = read_workloads(&root)?;
    check_used(levels_of(&matrix.value, FactorKind::Workload), &workloads)?;
    let hold = hold::read(&root)?;
    let servers = servers::read(&root, &hold)?;
    servers::check_used(levels_of(&matrix.value, FactorKind::Server), &servers)?;
    let seed = root.integer("seed", 0..=MOST_SEED)?.map_or(DEFAULT_SEED, |seed| seed.value);
    let backends = root.strings("backends", r#"["user-space", "netem"]"#)?;
    let monitor = root.parsed("monitor", "2Hz", |text| text.parse::<MonitorRate>())?;
    let mut study = Study {
        name: name.to_owned(),
        text: source.text.to_owned(),
        question: question.value,
        metric,
        baseline: read_baseline(&root)?,
        margin_share: margin.value,
        repetition: repetition::read(&root)?,
        runs: Placed { value: to_u32(runs.value), place: runs.place },
        seed,
        monitor: monitor.map_or_else(MonitorRate::default, |monitor| monitor.value),
        topology: topology::read(&root)?,
        matrix,
        backends: None,
        workloads,
        servers,
        hold,
        claims: claims::read(&root)?,
        accept: root.strings("accept", r#"["client_waited"]"#)?.unwrap_or_else(|| root.here(Vec::new())),
        figures: root.strings("figures", r#"["lines", "ecdf"]"#)?,
        published: published::read(&root)?,
        server_time: root.boolean("server_time")?.is_some_and(|wanted| wanted.value),
        dns: dns::read(&root)?,
    };
    study.set_backends(backends);
    Ok(study)
}

fn read_baseline(root: &Table<'_>) -> Result<Baseline, InputError> {
    let example = "baseline = { variant = \"h1s\" }";
    let table = root.table("baseline")?.ok_or_else(|| root.missing("baseline", example))?;
    let table = table.with_keys(NAMES)?;
    let mut found = Vec::new();
    for (kind, name, _) in ALL {
        if let Some(level) = table.string(name, "h1s")? {
            found.push(Baseline { factor: *kind, level });
        }
    }
    match (found.pop(), found.len()) {
        (Some(baseline), 0) => Ok(baseline),
        (None, _) => Err(table.error(format!("found an empty `baseline`, expected one factor: `{example}`"))),
        (Some(_), more) => {
            let problem = format!("found {} factors in `baseline`, expected one: `{example}`", more + 1);
            Err(table.error(problem))
        }
    }
}

fn read_matrix(root: &Table<'_>) -> Result<Placed<Vec<Factor>>, InputError> {
    let names: Vec<&str> = FACTORS.iter().map(|(_, name, _)| *name).collect();
    let missing = || format!("found no `[matrix]`, expected one with the factors {}", names.join(", "));
    let table = root.table("matrix")?.ok_or_else(|| root.error(missing()))?;
    if let Some(key) = table.keys().find(|key| key.value == BACKEND.1) {
        let problem = format!("found `backend` in `[matrix]`, expected the study's own key `{}`", BACKEND.2);
        return Err(key.error(problem));
    }
    let known: Vec<&str> = names.iter().copied().chain([CLIENT.1]).collect();
    let table = table.with_keys(&known)?;
    if table.keys().next().is_none() {
        let problem = format!("found an empty `[matrix]`, expected the factors {}", names.join(", "));
        return Err(table.error(problem));
    }
    for (_, name, example) in FACTORS {
        if table.strings(name, example)?.is_none() {
            return Err(table.missing(name, &format!("{name} = {example}")));
        }
    }
    let mut factors = Vec::new();
    for key in table.keys() {
        let mut factors_of_matrix = FACTORS.iter().chain([&CLIENT]);
        let Some((kind, name, example)) = factors_of_matrix.find(|(_, name, _)| *name == key.value) else {
            return Err(key.error(unknown(&key.value, "a factor", &known)));
        };
        if let Some(levels) = table.strings(name, example)? {
            factors.push(Factor { kind: *kind, levels });
        }
    }
    let place = table.error("").place;
    Ok(Placed { value: factors, place })
}

fn read_workloads(root: &Table<'_>) -> Result<Vec<NamedEntry>, InputError> {
    let missing = "found no `[workload.NAME]`, expected one for each level of `workload` in the matrix";
    let table = root.table("workload")?.ok_or_else(|| root.error(missing))?;
    if table.keys().count() > MOST_ENTRIES {
        return Err(table.error(format!("found more than {MOST_ENTRIES} workloads, expected fewer")));
    }
    let mut workloads = Vec::new();
    for name in table.keys() {
        if let Some(entry) = table.table(&name.value)? {
            workloads.push(read_workload(name, entry)?);
        }
    }
    Ok(workloads)
}

/// The levels of a factor as written; empty where the matrix has none of the kind.
pub(super) fn levels_of(matrix: &[Factor], kind: FactorKind) -> &[Placed<String>] {
    let factor = matrix.iter().find(|factor| factor.kind == kind);
    factor.map_or(&[], |factor| factor.levels.value.as_slice())
}

/// A workload that the matrix does not name is mostly a name that was changed in one place alone.
fn check_used(levels: &[Placed<String>], workloads: &[NamedEntry]) -> Result<(), InputError> {
    if levels.iter().any(|level| level.place.is_command_line()) {
        return Ok(());
    }
    let named: Vec<&str> = levels.iter().map(|level| level.value.as_str()).collect();
    // A level without its table is the better message: it says which name was meant.
    if named.iter().any(|name| workloads.iter().all(|entry| entry.name.value != *name)) {
        return Ok(());
    }
    match workloads.iter().find(|entry| !named.contains(&entry.name.value.as_str())) {
        None => Ok(()),
        Some(unused) => Err(unused.name.error(format!(
            "found `[workload.{}]`, which `workload` in `[matrix]` does not name ({}), expected it there or no such \
             table",
            unused.name.value,
            named.join(", ")
        ))),
    }
}

fn read_workload(name: Placed<String>, table: Table<'_>) -> Result<NamedEntry, InputError> {
    let kind = table.string("kind", "page")?.ok_or_else(|| table.missing("kind", "kind = \"page\""))?;
    let (table, what) = match kind.value.as_str() {
        "page" => {
            let table = table.with_keys(PAGE_KEYS)?;
            let page = table.string("page", "small")?;
            let page = page.ok_or_else(|| table.missing("page", "page = \"small\""))?;
            (table, Entry::Page(page))
        }
        "closed" => {
            let table = table.with_keys(loops::CLOSED_KEYS)?;
            let closed = loops::read_closed(&table)?;
            (table, Entry::Resolved(Workload::Closed(closed)))
        }
        "open" => {
            let table = table.with_keys(loops::OPEN_KEYS)?;
            let open = loops::read_open(&table)?;
            (table, Entry::Resolved(Workload::Open(open)))
        }
        "player" => {
            let table = table.with_keys(player::PLAYER_KEYS)?;
            let player = player::read(&table)?;
            (table, Entry::Resolved(Workload::Player(player)))
        }
        _ => {
            let problem =
                unknown(&kind.value, "a kind of workload", &WorkloadKind::ALL.map(WorkloadKind::name));
            return Err(kind.error(format!("`kind`: {problem}")));
        }
    };
    let clients = table.integer("clients", 1..=MOST_CLIENTS)?.map_or(1, |clients| to_u32(clients.value));
    Ok(NamedEntry { name, clients, what })
}

/// A number that was read within a range far below this limit.
pub(super) fn to_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
