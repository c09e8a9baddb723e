//! The study file as written: its keys, their types and their units.

use super::factors::{FactorKind, LEVEL_KEYS};
use super::repetition::RUNS;
use super::workloads::NamedEntry;
use super::{
    Factor, Study, arms, claims, classes, cores, csv, delivery, dns, groups, hold, loops, media, metric,
    player, published, repetition, requests, script, servers, start, topology, workloads,
};
use std::rc::Rc;

use toml::de::DeTable;

use crate::error::{InputError, Source};
use crate::monitor::MonitorRate;
use crate::named::Named;
use crate::network::InlineNetwork;
use crate::reader::{Form, Key, Placed, PlacedStrings, Table, TableKeys};
use crate::{keys, units};

const STUDY_KEYS: &[Key] = keys! {
    "question", "text", "required", r#""Which version loads our page soonest?""#,
        "The question that the study answers; not empty.";
    "metric", "text", "required", r#""page_load_time""#,
        "The primary [metric](#metrics): verdicts are about it, with a correction for many comparisons.";
    "statistic", "text", "`\"median\"`", r#""p99""#,
        "The statistic of the metric that verdicts are about: `median`, `mean`, `p90`, `p95`, `p99` or `p999`; [below](#statistic).";
    "baseline", "table", "required", r#"{ variant = "h1s" }"#,
        "One level of one factor; every cell is compared with the cell that differs in this factor alone.";
    "margin", "share", "required", r#""3%""#,
        "The margin of interest, above 0 %: smaller differences do not matter.";
    "runs", "whole number", "required", "5",
        "Runs of each cell, 1 to 10 000. Fewer than 5 raise a caveat; with 20 or more, intervals need no assumption about the distribution.";
    "precision", "share", "none", r#""2%""#,
        "Adds runs until every ratio is this precise; above 0 %. Requires `runs` of at least 5.";
    "budget", "duration", "none: no limit", r#""30min""#, "The time after which no runs are added. Requires `precision`.";
    "most_runs", "whole number", "`100`", "50", "The most runs of each cell, `runs` to 10 000. Requires `precision`.";
    "seed", "whole number", "`1`", "42", "The seed of the order and of every block, 0 to 9 223 372 036 854 775 807.";
    "except", "list of tables", "none", r#"[{ variant = "h3", server = "apache" }]"#,
        "Combinations of levels to leave out; [below](#leaving-combinations-out).";
    "full", "table `[full]`", "none", "",
        "The keys of the study that `--full` replaces, in tables as in the study; [below](#full).";
    "topology", "text or table", "`\"pair\"`", r#""shared""#, "The topology of every run; [below](#topology).";
    "backends", "list of texts", r#"`["user-space"]`"#, r#"["user-space", "netem"]"#,
        "What emulates the networks: `user-space`, `netem`; [below](#backends).";
    "matrix", "table `[matrix]`", "required", "", "The factors and their levels; [below](#matrix).";
    "workload", "tables `[workload.NAME]`", "required", "", "The workloads; [below](#workloadname).";
    "media", "tables `[media.NAME]`", "none", "", "Media to play or to request; [below](#medianame).";
    "class", "tables `[class.NAME]`", "none", "", "Classes of requests by their paths, at most 16; [below](#classname).";
    "arm", "tables `[arm.NAME]`", "none", "", "Levels that vary together; [below](#arms).";
    "server", "tables `[server.NAME]`", "none", "", "Servers with settings; [below](#servername).";
    "group", "tables `[[group]]`", "none", "", "Client groups that run at the same time; [below](#group).";
    "hold", "table `[hold]`", "see there", r#"{ mtu = "1400B" }"#, "The settings fixed in every cell; [below](#hold).";
    "cores", "table `[cores]`", "see there", r#"{ proxy = "1" }"#, "The CPUs of servers, clients and the emulator; [below](#cores).";
    "server_time", "boolean", "`false`", "true", "Measures the time at the servers; [below](#server_time).";
    "warm", "requests or duration", "none", r#""500 requests""#,
        "The warm-up of the servers by a separate client before each run: a number of requests or a time; [below](#warm).";
    "page_cache", "text", "none: unchanged", r#""cold""#,
        "Whether the files of the study are in the kernel's page cache when a run begins: `cold` or `warm`; [below](#page_cache).";
    "dns", "duration", "none: clients know the address", r#""20ms""#,
        "The round trip to a name server that clients ask for the server's address, up to 10 s; [below](#dns).";
    "accept", "list of texts", "none", r#"["client_waited"]"#,
        "Checks that give a caveat where they would invalidate. `--accept CHECK` adds one.";
    "claim", "tables `[[claim]]`", "none", "", "Claims to test; [below](#claim).";
    "monitor", "text", "`\"2Hz\"`", r#""10Hz""#,
        "How often CPU, memory, sockets and interfaces are read: `1Hz` to `10Hz` in whole numbers, or `off`; [monitor.md](monitor.md).";
    "figures", "list of texts", "those that suit the matrix", r#"["lines", "ecdf"]"#,
        "The [figures](figures.md) of the report, in its order; `[]` for none.";
    "published", "tables `[[published]]`", "none", "", "Published results to show next to the measured ones; [below](#published).";
    "csv", "tables `[csv.NAME]`", "none", "", "Tables with the study's own columns; [below](#csvname).";
};

/// The default of a factor that groups can have in its place.
const REQUIRED_WITHOUT_GROUPS: &str = "required, if not every `[[group]]` has one";

/// The factors of `[matrix]`; groups can have a level of their own in place of most.
const MATRIX_KEYS: &[Key] = keys! {
    "variant", "list of texts", REQUIRED_WITHOUT_GROUPS, r#"["h1s", "h2", "h3"]"#, "`h1`, `h1s`, `h2c`, `h2`, `h3`.";
    "server", "list of texts", REQUIRED_WITHOUT_GROUPS, r#"["origin"]"#, "Names of servers, or of `[server.NAME]` tables.";
    "network", "list of texts or tables", "required", r#"["lan", "tram"]"#,
        "Names of networks, tables with their keys such as `{ rtt = \"20ms\", loss = \"1%\" }`, or [`own`](#topology).";
    "workload", "list of texts", REQUIRED_WITHOUT_GROUPS, r#"["front"]"#, "Names of `[workload.NAME]` tables.";
    "client", "list of texts", "`h123`, and not a factor", r#"["h123", "h2load"]"#,
        "`h123`, and names of [external clients](clients.md).";
    "arm", "list of texts", "not a factor", r#"["one connection", "ten connections"]"#, "Names of [`[arm.NAME]`](#arms) tables.";
};

/// Every table of a study file, for errors and the documentation.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the study", keys: STUDY_KEYS },
    TableKeys { table: "topology", keys: topology::KEYS },
    TableKeys { table: "[matrix]", keys: MATRIX_KEYS },
    TableKeys { table: "[workload.NAME]", keys: workloads::KEYS },
    TableKeys { table: "[workload.NAME] with kind = \"page\"", keys: delivery::KEYS },
    TableKeys { table: "[workload.NAME] with kind = \"closed\" or \"open\"", keys: loops::LOOP_KEYS },
    TableKeys { table: "[workload.NAME] with kind = \"closed\"", keys: loops::CLOSED_KEYS },
    TableKeys { table: "[workload.NAME] with kind = \"open\"", keys: loops::OPEN_KEYS },
    TableKeys {
        table: "[workload.NAME] with kind = \"closed\", \"open\" or \"script\": requests",
        keys: requests::KEYS,
    },
    TableKeys { table: "[workload.NAME] with kind = \"script\"", keys: script::KEYS },
    TableKeys { table: "[workload.NAME] with kind = \"player\"", keys: player::KEYS },
    TableKeys { table: "[media.NAME]", keys: media::KEYS },
    TableKeys { table: "[media.NAME.hds]", keys: media::HDS_KEYS },
    TableKeys { table: "[media.NAME.video] and [media.NAME.audio]", keys: media::TRACK_KEYS },
    TableKeys { table: "[class.NAME]", keys: classes::KEYS },
    TableKeys { table: "[arm.NAME]", keys: arms::KEYS },
    TableKeys { table: "[server.NAME]", keys: servers::SERVER_KEYS },
    TableKeys { table: "[server.NAME.back]", keys: servers::BACK_KEYS },
    TableKeys { table: "[[group]]", keys: groups::GROUP_KEYS },
    TableKeys { table: "end", keys: groups::END_KEYS },
    TableKeys { table: "start", keys: start::KEYS },
    TableKeys { table: "[cores]", keys: cores::KEYS },
    TableKeys { table: "[hold]", keys: hold::HOLD_KEYS },
    TableKeys { table: "[hold.http2]", keys: hold::HTTP2_KEYS },
    TableKeys { table: "[hold.http3]", keys: hold::HTTP3_KEYS },
    TableKeys { table: "[[published]]", keys: published::KEYS },
    TableKeys { table: "[[claim]]", keys: claims::KEYS },
    TableKeys { table: "[[claim]] with kind = \"best\"", keys: claims::BEST_KEYS },
    TableKeys { table: "[[claim]] with kind = \"script\"", keys: claims::SCRIPT_KEYS },
    TableKeys { table: "[[claim]] with kind = \"scale\"", keys: claims::SCALE_KEYS },
    TableKeys { table: "[[claim]] with kind = \"value\"", keys: claims::VALUE_KEYS },
];

const DEFAULT_SEED: u64 = 1;
const MOST_SEED: u64 = i64::MAX as u64; // TOML's own limit of a whole number

/// The level that every comparison is against, as written.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    pub(super) factor: Placed<String>,
    pub(super) level: Placed<String>,
}

/// Reads the document of a simple study, without arms, sweeps and exceptions.
pub(super) fn read_document(
    name: &str,
    source: Source<'_>,
    document: &DeTable<'_>,
) -> Result<Study, InputError> {
    read_root(name, source, &Table::root(source, document, "the study", STUDY_KEYS)?)
}

/// The names of the networks of `[matrix]`; none if the reader has to report a fault.
pub(super) fn network_names(matrix: &Table<'_>) -> Result<Vec<String>, InputError> {
    if matrix.forms(FactorKind::Network.name())?.is_none() {
        return Ok(Vec::new());
    }
    let names = read_networks(matrix, &mut Vec::new())?.value;
    Ok(names.into_iter().map(|name| name.value).collect())
}

fn read_root(name: &str, source: Source<'_>, root: &Table<'_>) -> Result<Study, InputError> {
    let question = root.required("question", Table::text)?;
    let metric = root.required("metric", Table::string)?;
    let margin = root.required("margin", |root, key| root.parsed(key, units::parse_share))?;
    if margin.value <= 0.0 {
        let problem = "`margin`: 0% is too low; write more, because no measurement shows that two things are exactly equal";
        return Err(margin.error(problem));
    }
    let runs = root.required("runs", |root, key| root.integer(key, RUNS))?;
    let (matrix, networks) = read_matrix(root)?;
    let workloads = workloads::read(root)?;
    let hold = hold::read(root)?;
    let servers = servers::read(root, &hold)?;
    let monitor = root.parsed("monitor", |text| text.parse::<MonitorRate>())?;
    let mut study = Study {
        name: name.to_owned(),
        text: source.text.to_owned(),
        question: question.value,
        metric,
        statistic: metric::read_statistic(root)?,
        baseline: read_baseline(root)?,
        margin_share: margin.value,
        repetition: repetition::read(root)?,
        runs,
        seed: root.integer("seed", 0..=MOST_SEED)?.map_or(DEFAULT_SEED, |seed| seed.value),
        monitor: monitor.map_or_else(MonitorRate::default, |monitor| monitor.value),
        topology: topology::read(root)?,
        matrix,
        factors: Rc::from([]),
        networks,
        network_keys: Vec::new(),
        backends: None,
        workloads,
        media: media::read(root)?,
        servers,
        groups: Vec::new(),
        hold,
        claims: claims::read(root)?,
        classes: classes::read(root)?,
        accept: root.strings("accept")?.unwrap_or_else(|| root.here(Vec::new())),
        figures: root.strings("figures")?,
        published: published::read(root)?,
        csv: csv::read(root)?,
        cores: cores::read(root)?,
        server_time: root.flag("server_time")?,
        warm: root.parsed("warm", str::parse)?.map(|warm| warm.value),
        page_cache: root.parsed("page_cache", str::parse)?,
        dns: dns::read(root)?,
    };
    study.set_backends(root.some_strings("backends")?);
    study.set_groups(groups::read(root, workloads::MOST_CLIENTS)?);
    study.check_factors()?;
    let of_command_line = |kind: FactorKind| {
        let factor = study.matrix.value.iter().find(|factor| factor.kind == kind);
        factor.is_some_and(|factor| factor.levels.place.is_command_line())
    };
    if !of_command_line(FactorKind::Workload) {
        check_used(&study.named_levels(FactorKind::Workload), &study.workloads)?;
    }
    if !of_command_line(FactorKind::Server) {
        servers::check_used(&study.named_levels(FactorKind::Server), &study.servers)?;
    }
    Ok(study)
}

fn read_baseline(root: &Table<'_>) -> Result<Baseline, InputError> {
    let table = root.required("baseline", Table::table)?.knowing(LEVEL_KEYS);
    let mut levels = table.level_entries()?;
    match (levels.pop(), levels.is_empty()) {
        (Some((factor, level)), true) => Ok(Baseline { factor, level }),
        (last, _) => {
            let count = levels.len() + usize::from(last.is_some());
            let problem =
                format!("`baseline` has {count} factors; write one, such as `{{ variant = \"h1s\" }}`");
            Err(table.error(problem))
        }
    }
}

/// The factors, and the networks that it describes itself.
fn read_matrix(root: &Table<'_>) -> Result<(Placed<Vec<Factor>>, Vec<InlineNetwork>), InputError> {
    let table = root.required("matrix", Table::table)?;
    if let Some(key) = table.keys().find(|key| key.value == FactorKind::Backend.name()) {
        let problem = "`[matrix]` has no factor `backend`; write `backends = [\"user-space\", \"netem\"]` \
                       at the top of the study";
        return Err(key.error(problem));
    }
    let table = table.with_keys(MATRIX_KEYS)?;
    let has_groups = !root.tables("group")?.is_empty();
    let is_required =
        |key: &&Key| key.default == "required" || key.default == REQUIRED_WITHOUT_GROUPS && !has_groups;
    for key in MATRIX_KEYS.iter().filter(is_required) {
        table.required(key.name, Table::forms)?;
    }
    let (mut factors, mut networks) = (Vec::new(), Vec::new());
    for key in table.keys() {
        let levels = match key.value == FactorKind::Network.name() {
            true => read_networks(&table, &mut networks)?,
            false => table.required(&key.value, Table::some_strings)?,
        };
        factors.push(Factor { kind: key.map(|name| FactorKind::from_name(&name))?.value, levels });
    }
    Ok((table.here(factors), networks))
}

/// The names of the networks in the matrix; those with a table of their own are added to `networks`.
fn read_networks(table: &Table<'_>, networks: &mut Vec<InlineNetwork>) -> Result<PlacedStrings, InputError> {
    let forms = table.required(FactorKind::Network.name(), Table::forms)?;
    let mut names = Vec::new();
    for form in forms.value {
        names.push(match form {
            Form::Text(name) => name,
            Form::Table(table) => {
                let network = InlineNetwork::read(table)?;
                let name = network.name.clone();
                networks.push(network);
                name
            }
        });
    }
    Ok(Placed { value: names, place: forms.place })
}

/// An unused workload is usually a name that was changed in one place only; the command line may leave some
/// out.
fn check_used(levels: &[Placed<String>], workloads: &[NamedEntry]) -> Result<(), InputError> {
    let named: Vec<&str> = levels.iter().map(|level| level.value.as_str()).collect();
    // The error of a level without its table is clearer: it suggests the right name.
    if named.iter().any(|name| workloads.iter().all(|entry| entry.name.value != *name)) {
        return Ok(());
    }
    match workloads.iter().find(|entry| !named.contains(&entry.name.value.as_str())) {
        None => Ok(()),
        Some(unused) => Err(unused.name.error(format!(
            "`[workload.{}]` is not used: `workload` in `[matrix]` names {}; add it there, or remove the table",
            unused.name.value,
            named.join(", ")
        ))),
    }
}
