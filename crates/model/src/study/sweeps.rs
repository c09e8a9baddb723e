//! Sweeps: keys of `[matrix]` that are paths into the study, such as `"network.loss"`, and their levels.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::factors::DeclaredFactor;
use super::ranges::{self, MOST_LEVELS};
use super::servers::SERVER_KEYS;
use super::topology::NetworkKey;
use super::workloads;
use crate::error::{InputError, Place, Source};
use crate::level::{CLIENTS, is_sweep};
use crate::named::{Named, unknown};
use crate::quantity::{Quantity, QuantityKind};
use crate::reader::document::{self, DIRECTIONS};
use crate::reader::{Key, Placed};
use crate::workload::WorkloadKind;

/// What a path begins with.
const ROOTS: [&str; 7] = [CLIENTS, "workload", "server", "hold", "topology", "network", "group"];

/// A swept factor.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// The key, and its place in the file.
    name: String,
    span: Range<usize>,
    place: Place,
    levels: Vec<SweepLevel>,
    levels_place: Place,
    targets: Vec<Target>,
}

/// A level of a sweep.
#[derive(Clone, Debug)]
struct SweepLevel {
    name: String,
    /// The value as TOML.
    toml: String,
    span: Range<usize>,
    place: Place,
}

/// What a sweep changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A key of the study.
    Study(Vec<String>),
    /// A key of every network of the matrix.
    Networks(Vec<String>),
}

impl Target {
    /// The targets that set the same key, this one first: a key of a network sets that of both directions.
    fn same_key(&self) -> Vec<Target> {
        let mut all = vec![self.clone()];
        if let Target::Networks(path) = self {
            match path.split_first() {
                Some((direction, key)) if DIRECTIONS.contains(&direction.as_str()) => {
                    all.push(Target::Networks(key.to_vec()));
                }
                _ => {
                    all.extend(DIRECTIONS.map(|direction| {
                        Target::Networks([vec![direction.to_owned()], path.clone()].concat())
                    }))
                }
            }
        }
        all
    }
}

/// The names that paths may contain.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Workloads and their kinds.
    workloads: Vec<(String, Option<WorkloadKind>)>,
    servers: Vec<String>,
    groups: Vec<String>,
}

impl Names {
    /// The names of a study; `servers` are those of the matrix and of the arms.
    pub(super) fn of(document: &DeTable<'_>, servers: Vec<String>) -> Names {
        let mut names = Names { servers, ..Names::default() };
        for (name, entry) in document::table(document, "workload").into_iter().flat_map(DeTable::iter) {
            let kind = entry.get_ref().get("kind").and_then(|kind| kind.get_ref().as_str());
            let kind = kind.and_then(|kind| WorkloadKind::from_name(kind).ok());
            names.workloads.push((name.get_ref().to_string(), kind));
        }
        let servers = document::table(document, "server").into_iter().flat_map(DeTable::keys);
        names.servers.extend(servers.map(|name| name.get_ref().to_string()));
        if let Some(DeValue::Array(groups)) = document.get("group").map(Spanned::get_ref) {
            let name = |group: &Spanned<DeValue<'_>>| {
                Some(group.get_ref().get("name")?.get_ref().as_str()?.to_owned())
            };
            names.groups.extend(groups.iter().filter_map(name));
        }
        names
    }
}

/// Reads every sweep of `[matrix]`, in the order of the file.
///
/// # Errors
/// An unknown path, a bad range or list, or a key that two sweeps change.
pub(super) fn read(
    matrix: &DeTable<'_>,
    names: &Names,
    source: Source<'_>,
) -> Result<Vec<Sweep>, InputError> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    let mut known: BTreeMap<Target, String> = BTreeMap::new();
    for (key, value) in matrix.iter().filter(|(key, _)| is_sweep(key.get_ref())) {
        let name = key.get_ref().to_string();
        let targets = targets(&name, names).map_err(|problem| source.error(key.span(), problem))?;
        for target in &targets {
            let other = target.same_key().into_iter().find_map(|same| known.get(&same));
            if let Some(other) = other.filter(|other| **other != name) {
                let key = match target {
                    Target::Study(path) => path.join("."),
                    Target::Networks(path) => format!("network.{}", path.join(".")),
                };
                let problem =
                    format!("`{key}` is swept twice, by `{other}` and by `{name}`; remove one of them");
                return Err(source.error(key_span(matrix, &name), problem));
            }
            known.insert(target.clone(), name.clone());
        }
        let (span, place) = (key.span(), source.place(key.span().start));
        let levels_place = source.place(value.span().start);
        sweeps.push(Sweep {
            levels: levels(&name, value, source)?,
            name,
            span,
            place,
            levels_place,
            targets,
        });
    }
    Ok(sweeps)
}

fn key_span(matrix: &DeTable<'_>, name: &str) -> Range<usize> {
    matrix.keys().find(|key| key.get_ref() == name).map_or(0..0, Spanned::span)
}

fn levels(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    source: Source<'_>,
) -> Result<Vec<SweepLevel>, InputError> {
    let expected = "write a list such as `[1, 10, 100]`, or a range such as `\"1..750 step 50\"`";
    let level = |name: String, toml: String, span: Range<usize>| SweepLevel {
        place: source.place(span.start),
        name,
        toml,
        span,
    };
    let levels: Vec<SweepLevel> = match value.get_ref() {
        DeValue::String(range) => {
            let values = ranges::values(range)
                .map_err(|problem| source.error(value.span(), format!("`{name}`: {problem}")))?;
            values
                .into_iter()
                .map(|value_of| level(value_of.to_text(), toml_of(value_of), value.span()))
                .collect()
        }
        DeValue::Array(items) => {
            let read = |item: &Spanned<DeValue<'_>>| {
                let (text, toml) = document::scalar(item.get_ref()).ok_or_else(|| {
                    source
                        .error(item.span(), format!("`{name}` has a list or a table as a level; {expected}"))
                })?;
                Ok(level(text, toml, item.span()))
            };
            items.iter().map(read).collect::<Result<_, _>>()?
        }
        _ => return Err(source.error(value.span(), format!("`{name}` is a single value; {expected}"))),
    };
    if levels.is_empty() || levels.len() > MOST_LEVELS {
        let count = levels.len();
        let problem = format!("`{name}` has {count} levels; write 1 to {MOST_LEVELS}");
        return Err(source.error(value.span(), problem));
    }
    Ok(levels)
}

fn toml_of(value: Quantity) -> String {
    let text = value.to_text();
    if value.kind == QuantityKind::Number { text } else { toml::Value::from(text).to_string() }
}

/// What the path of a sweep leads to.
fn targets(path: &str, names: &Names) -> Result<Vec<Target>, String> {
    let steps = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<String>>();
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    if path.split('.').any(str::is_empty) {
        return Err(format!(
            "`{path}` is not the path of a key; write one such as `workload.NAME.connections`"
        ));
    }
    match root {
        CLIENTS if rest.is_empty() => {
            let of = |table: &str, name: &String| {
                Target::Study(vec![table.to_owned(), name.clone(), root.to_owned()])
            };
            let workloads = names.workloads.iter().map(|(name, _)| of("workload", name));
            Ok(workloads.chain(names.groups.iter().map(|name| of("group", name))).collect())
        }
        "hold" | "topology" => Ok(vec![Target::Study(steps(path))]),
        "network" => Ok(vec![Target::Networks(steps(rest))]),
        "workload" => {
            let known: Vec<&str> = names.workloads.iter().map(|(name, _)| name.as_str()).collect();
            match named(rest, &known) {
                Some((name, key)) => {
                    Ok(vec![Target::Study([steps(root), vec![name.to_owned()], steps(key)].concat())])
                }
                None if !rest.contains('.') && !known.contains(&rest) => every_workload(rest, names),
                None => Err(unknown_name(path, rest, "a `[workload.NAME]` that this study defines", &known)),
            }
        }
        "server" => {
            let known: Vec<&str> = names.servers.iter().map(String::as_str).collect();
            let (name, key) = named(rest, &known)
                .ok_or_else(|| unknown_name(path, rest, "a server of the matrix", &known))?;
            let key = steps(key);
            let is_of_table = SERVER_KEYS.iter().any(|known| known.name == key[0]);
            let setting = if is_of_table { Vec::new() } else { steps("set") };
            Ok(vec![Target::Study([steps(root), vec![name.to_owned()], setting, key].concat())])
        }
        "group" => {
            let known: Vec<&str> = names.groups.iter().map(String::as_str).collect();
            let (name, key) = named(rest, &known)
                .ok_or_else(|| unknown_name(path, rest, "the name of a `[[group]]`", &known))?;
            Ok(vec![Target::Study([steps(root), vec![name.to_owned()], steps(key)].concat())])
        }
        _ => Err(format!("`{path}`: {}", unknown(root, "a part of the study with keys to sweep", &ROOTS))),
    }
}

/// The key in every workload that may have it.
fn every_workload(key: &str, names: &Names) -> Result<Vec<Target>, String> {
    let has = |kind: &WorkloadKind| workloads::keys_of(*kind).any(|known| known.name == key);
    let of = |(name, kind): &(String, Option<WorkloadKind>)| {
        kind.as_ref()
            .is_some_and(has)
            .then(|| Target::Study(vec!["workload".to_owned(), name.clone(), key.to_owned()]))
    };
    let targets: Vec<Target> = names.workloads.iter().filter_map(of).collect();
    if !targets.is_empty() {
        return Ok(targets);
    }
    let kinds = names.workloads.iter().filter_map(|(_, kind)| *kind);
    let mut known: Vec<&str> = kinds.flat_map(workloads::keys_of).map(|key: &Key| key.name).collect();
    known.sort_unstable();
    known.dedup();
    Err(format!("`workload.{key}`: {}", unknown(key, "a key of this study's workloads", &known)))
}

/// The name and the key of a path; names may contain points.
fn named<'p>(path: &'p str, names: &[&str]) -> Option<(&'p str, &'p str)> {
    let split = |name: &&str| {
        let key = path.strip_prefix(*name)?.strip_prefix('.')?;
        Some((&path[..name.len()], key))
    };
    names.iter().filter_map(split).max_by_key(|(name, _)| name.len())
}

fn unknown_name(path: &str, rest: &str, noun: &str, known: &[&str]) -> String {
    match known.contains(&rest) {
        true => format!("`{path}` has no key; write one, such as `{path}.KEY`"),
        false => {
            let name = rest.split_once('.').map_or(rest, |(name, _)| name);
            format!("`{path}`: {}", unknown(name, noun, known))
        }
    }
}

impl Sweep {
    /// As a factor of the matrix.
    pub(super) fn factor(&self) -> DeclaredFactor {
        let level = |level: &SweepLevel| Placed { value: level.name.clone(), place: level.place.clone() };
        let levels = self.levels.iter().map(level).collect();
        DeclaredFactor {
            name: self.name.clone(),
            levels: Placed { value: levels, place: self.levels_place.clone() },
        }
    }

    /// The key of the study that both this and an arm's `[hold]` set.
    pub(super) fn error_if_set_by(&self, arm: &str, path: &[String]) -> Result<(), InputError> {
        let is_same = |target: &Target| matches!(target, Target::Study(own) if own.starts_with(path) || path.starts_with(own));
        if !self.targets.iter().any(is_same) {
            return Ok(());
        }
        let problem = format!(
            "`{}` is swept and `[arm.{arm}]` sets `{}`; remove one of them",
            self.name,
            path.join(".")
        );
        Err(InputError { place: self.place.clone(), problem })
    }

    /// Writes a level into a study's document, whose reader then treats it like a value of the file.
    pub(super) fn write<'f>(&'f self, level: usize, document: &mut DeTable<'f>) {
        let level = &self.levels[level];
        for target in &self.targets {
            match target {
                Target::Study(path) => {
                    document::set(document, path, &self.span, &level.toml, &level.span);
                }
                Target::Networks(path) => {
                    let networks =
                        document::table_mut(document, "matrix").and_then(|matrix| matrix.get_mut("network"));
                    let Some(DeValue::Array(networks)) = networks.map(Spanned::get_mut) else { continue };
                    for network in networks.iter_mut() {
                        if let DeValue::Table(network) = network.get_mut() {
                            document::set_network(network, path, &self.span, &level.toml, &level.span);
                        }
                    }
                }
            }
        }
    }

    /// The keys of networks that a level changes.
    pub(super) fn network_keys(&self, level: usize) -> impl Iterator<Item = NetworkKey> {
        let SweepLevel { toml, place, .. } = &self.levels[level];
        self.targets.iter().filter_map(move |target| match target {
            Target::Study(_) => None,
            Target::Networks(path) => Some(NetworkKey {
                sweep: self.name.clone(),
                place: place.clone(),
                path: path.clone(),
                toml: toml.clone(),
            }),
        })
    }
}
