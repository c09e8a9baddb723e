//! The tables, each in Markdown from the declarations in the code.

use std::fs;

use analysis::checks::CHECKS;
use analysis::metrics::{Better, METRICS, Metric};
use analysis::table::Table;
use clap::{Arg, Command, CommandFactory};
use model::monitor::{Nature, Origin, QUANTITIES};
use model::network::describe;
use model::reader::{Key, TableKeys};
use model::study::{Library, Requirement};
use model::workload::WorkloadKind;

use super::root;
use crate::Cli;
use crate::library::{DataFiles, network_of};

/// Every table with its name.
pub(super) fn all() -> Vec<(String, String)> {
    let mut tables = vec![
        ("metrics".to_owned(), metrics()),
        ("checks".to_owned(), checks()),
        ("reasons of checks".to_owned(), reasons_of_checks()),
        ("figures".to_owned(), figures()),
        ("monitor quantities".to_owned(), monitor_quantities()),
        ("monitor metrics".to_owned(), monitor_metrics()),
        ("built-in names".to_owned(), built_in_names()),
        ("built-in networks".to_owned(), built_in_networks()),
        ("network keys".to_owned(), joined_keys("the network", &model::network::KEYS[..NETWORK_TABLES])),
        ("server keys".to_owned(), joined_keys("the server", drive::SERVER_KEYS)),
        ("client keys".to_owned(), joined_keys("the client", drive::CLIENT_KEYS)),
        ("browser keys".to_owned(), joined_keys("the browser", drive::BROWSER_KEYS)),
    ];
    tables.extend(columns());
    tables.extend(keys("study", model::study::KEYS));
    tables.extend(keys("page", model::page::KEYS));
    tables.extend(keys("topology", model::topology::KEYS));
    tables.extend(keys("network", &model::network::KEYS[NETWORK_TABLES..]));
    tables.extend(options());
    tables
}

/// The first tables of [`model::network::KEYS`], which are parts of the network's own keys and form one
/// table.
const NETWORK_TABLES: usize = 5;

/// A table in Markdown.
pub(super) fn table<const N: usize>(
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line =
        |cells: [String; N]| format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    let rule = format!("|{}\n", "---|".repeat(N));
    let rows: String = rows.into_iter().map(line).collect();
    format!("{}{rule}{rows}", line(heading.map(ToOwned::to_owned)))
}

pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

fn metrics() -> String {
    let row = |metric: &Metric| {
        let better = match metric.better {
            Better::Lower => "less",
            Better::Higher => "more",
            Better::Neither => "neither",
        };
        let requirement = match metric.requires {
            Some(Requirement::ServerTime) => "; requires [`server_time`](studies.md#server_time)",
            Some(Requirement::DnsLookup) => "; requires [`dns`](studies.md#dns)",
            None => "",
        };
        let workloads: Vec<&str> = metric.workloads.iter().map(|kind| kind.name()).collect();
        [
            code(metric.name),
            metric.title.into(),
            metric.unit.into(),
            better.into(),
            metric.start.into(),
            format!("{}{requirement}", metric.end),
            workloads.join(", "),
        ]
    };
    table(["name", "title", "unit", "better", "from", "to", "workloads"], METRICS.iter().map(row))
}

fn checks() -> String {
    let texts = |check: &analysis::checks::Check| {
        [check.measures, check.passes, check.caveat, check.invalidates].map(ToOwned::to_owned)
    };
    let rows = CHECKS.iter().map(|check| {
        let [measures, passes, caveat, invalidates] = texts(check);
        [code(check.name), measures, passes, caveat, invalidates]
    });
    table(["check", "measures", "passes", "caveat", "invalid"], rows)
}

fn reasons_of_checks() -> String {
    let rows = CHECKS.iter().map(|check| [code(check.name), check.why.into(), check.remedy.into()]);
    table(["check", "why", "what to do"], rows)
}

fn figures() -> String {
    let rows = report::figure_kinds()
        .map(|kind| [format!("[`{0}`](#{0})", kind.name), kind.shows.into(), kind.by_default.into()]);
    table(["name", "shows", "by default"], rows)
}

fn columns() -> impl Iterator<Item = (String, String)> {
    store::tables().into_iter().map(|info| {
        let rows = info
            .columns
            .iter()
            .map(|column| [code(column.name), column.kind.into(), column.unit.into(), column.meaning.into()]);
        (format!("columns {}", info.name), table(["column", "type", "unit", "meaning"], rows))
    })
}

/// The tables of a kind of file, named `FILE keys: TABLE`.
fn keys(file: &str, all: &'static [TableKeys]) -> impl Iterator<Item = (String, String)> {
    let heading = ["key", "takes", "default", "example", "meaning"];
    all.iter()
        .map(move |one| (format!("{file} keys: {}", one.table), table(heading, one.keys.iter().map(key))))
}

fn key(key: &Key) -> [String; 5] {
    let example = if key.example.is_empty() { String::new() } else { code(key.example) };
    [code(key.name), key.takes.into(), key.default.into(), example, key.meaning.into()]
}

/// Several tables of a file as one; `root` is the name of the file's root table.
fn joined_keys(root: &str, all: &[TableKeys]) -> String {
    let rows = all.iter().flat_map(|one| {
        one.keys.iter().map(|entry| {
            let [name, takes, default, example, meaning] = key(entry);
            [name, one.table.replace(root, "top"), takes, default, example, meaning]
        })
    });
    table(["key", "where", "takes", "default", "example", "meaning"], rows)
}

fn monitor_quantities() -> String {
    let rows = QUANTITIES.iter().map(|info| {
        let subjects: Vec<&str> = info.of.iter().map(|kind| kind.name()).collect();
        let nature = match info.nature {
            Nature::Counter => "counter",
            Nature::Gauge => "gauge",
        };
        let source = match info.origin {
            Origin::Own(source) => source.to_owned(),
            Origin::Counters(counters) => {
                let names = counters.iter().map(|(line, name)| format!("{line} {name}").trim().to_owned());
                names.collect::<Vec<_>>().join(" + ")
            }
        };
        [code(info.name), info.unit.into(), nature.into(), subjects.join(", "), info.meaning.into(), source]
    });
    table(["quantity", "unit", "kind", "subject", "meaning", "source"], rows)
}

/// The metrics that read the monitor's rows.
fn monitor_metrics() -> String {
    let rows = METRICS.iter().filter(|metric| metric.reads.contains(&Table::Monitor));
    table(
        ["metric", "unit", "meaning"],
        rows.map(|metric| [code(metric.name), metric.unit.into(), metric.title.into()]),
    )
}

/// The networks that the binary contains, each with its direction to the client and back.
fn built_in_networks() -> String {
    let rows = DataFiles::default().networks().into_iter().map(|name| {
        let network = network_of(&name).unwrap();
        [code(&name), network.title.clone(), describe(&network)]
    });
    table(["name", "network", "description"], rows)
}

/// The names that the binary carries; the repository's folders are what it includes.
fn built_in_names() -> String {
    let names = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| code(&path.file_stem().unwrap().to_string_lossy()))
            .collect();
        names.sort();
        names.join(", ")
    };
    let kinds = ["studies", "networks", "topologies", "pages", "media", "servers", "clients"];
    table(["folder", "built-in names"], kinds.map(|kind| [code(kind), names(kind)]))
}

/// The options of every command: one table for each heading of its help, named `options COMMAND` or
/// `options COMMAND / HEADING`.
fn options() -> Vec<(String, String)> {
    let mut cli = Cli::command();
    cli.build();
    let mut tables = Vec::new();
    for command in
        cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
    {
        collect_options(command, command.get_name(), &mut tables);
    }
    tables
}

fn collect_options(command: &Command, name: &str, tables: &mut Vec<(String, String)>) {
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in shown(command) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        let args = shown(command).filter(|arg| arg.get_help_heading() == heading);
        let title = heading
            .map_or_else(|| format!("options {name}"), |heading| format!("options {name} / {heading}"));
        tables.push((title, table(["option", "example", "meaning"], args.map(option))));
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        collect_options(inner, &format!("{name} {}", inner.get_name()), tables);
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    command.get_arguments().filter(is_shown)
}

/// A row: the option's spellings and value, the example of its long help, its help.
fn option(arg: &Arg) -> [String; 3] {
    const EXAMPLE: &str = "Example: ";
    let long_help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let (help, example) = match long_help.split_once(EXAMPLE) {
        Some((help, example)) => (help, code(example.trim().trim_end_matches('.').trim_matches('`'))),
        None => (long_help.as_str(), String::new()),
    };
    let spelling = match (arg.get_short(), arg.get_long()) {
        (short, Some(long)) => {
            let aliases = arg.get_visible_aliases().unwrap_or_default();
            let short = short.map(|short| code(&format!("-{short}")));
            let longs = std::iter::once(long).chain(aliases).map(|long| code(&format!("--{long}")));
            short.into_iter().chain(longs).collect::<Vec<_>>().join(", ")
        }
        (Some(short), None) => code(&format!("-{short}")),
        (None, None) => code(&format!("{}", arg.get_id()).to_uppercase()),
    };
    let meaning = help.split_whitespace().collect::<Vec<_>>().join(" ");
    [spelling, example, meaning]
}

/// docs/clients.md says of every metric that a loop's client measures which tools report it.
#[test]
fn the_metrics_of_clients_are_documented() {
    const NOT_OF_CLIENTS: [Table; 4] = [Table::Monitor, Table::Links, Table::Servers, Table::ServerRequests];
    let of_clients = METRICS.iter().filter(|metric| {
        let is_of_client = !metric.reads.iter().any(|table| NOT_OF_CLIENTS.contains(table));
        is_of_client && metric.requires.is_none() && metric.workloads.contains(&WorkloadKind::Closed)
    });
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap();
    let (_, section) = page.split_once("## What each tool reports\n").unwrap();
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let metrics = rows.filter(|row| row.starts_with("| `")).filter_map(|row| row.split(" | ").next());
    let mut documented: Vec<&str> = metrics.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let mut expected: Vec<&str> = of_clients.map(|metric| metric.name).collect();
    documented.sort_unstable();
    expected.sort_unstable();
    assert_eq!(documented, expected);
}

/// docs/networks.md says of every key of a direction whether netem supports it.
#[test]
fn the_keys_of_backends_are_documented() {
    let page = fs::read_to_string(root().join("docs/networks.md")).unwrap();
    let (_, section) = page.split_once("| key | `user-space` | `netem` |\n").unwrap();
    let rows: String = section.lines().take_while(|line| line.starts_with('|')).collect();
    let words: Vec<&str> = rows.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let keys = model::network::KEYS[..NETWORK_TABLES].iter().flat_map(|table| table.keys).map(|key| key.name);
    let not_of_packets = ["title", "source", "name", "up", "down"];
    let missing: Vec<&str> =
        keys.filter(|key| !not_of_packets.contains(key) && !words.contains(key)).collect();
    assert!(missing.is_empty(), "the table of backends lacks {missing:?}");
}
