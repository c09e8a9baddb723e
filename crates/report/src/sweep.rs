//! Swept parameters: levels of a factor that differ in one number only, such as the round-trip time of
//! networks or the connections of workloads.
//!
//! Two levels belong to the same sweep if they are equal in everything but the parameter; their names do not
//! count. Queues may change with the rate and the round-trip time, because they are mostly written as
//! multiples of their product.

mod factors;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use model::Network;
use model::network::{Direction, LinkRate, Loss, Queue};
use model::plan::{Cell, Plan, ServerChain};
use model::schedule::Rate;
use model::tunable::Setting;
use model::workload::{LoopLoad, Workload};

use crate::context::Context;
use crate::text::{self, clean_line};
use model::number::float;

/// This many networks with different round-trip times are a sweep even if they differ in more.
const MIN_UNLIKE_NETWORKS: usize = 3;

/// A number that a study may sweep. [`parameters`] has an entry for each.
#[derive(Clone)]
pub(crate) struct Parameter {
    /// The factor whose levels have it.
    factor: String,
    /// For axes, such as `round-trip time`.
    pub(crate) title: String,
    /// As [`text::Scale`] takes it.
    pub(crate) unit: &'static str,
    /// Precedes a value in the name of a panel, such as `RTT `.
    prefix: String,
    /// The setting or the beginning of the path that `read` and `clear` look for; empty where they need none.
    key: String,
    /// The value of a level; `None` where it has none.
    read: fn(&FactorLevel, key: &str) -> Option<f64>,
    /// Removes the value, so that levels that differ in it only become equal.
    clear: fn(&mut FactorLevel, key: &str),
}

/// The only parameter in which networks may differ together with others.
const ROUND_TRIP_TIME: &str = "round-trip time";

/// Every parameter that this plan could sweep, in the order in which sweeps of equal length are shown.
fn parameters(plan: &Plan) -> Vec<Parameter> {
    let chains = || plan.cells.iter().map(|cell| &cell.chain);
    let fronts: BTreeSet<&String> = chains().flat_map(|chain| chain.set.keys()).collect();
    let backs = chains().flat_map(|chain| &chain.backs);
    let backs: BTreeSet<&String> = backs.flat_map(|back| back.set.keys()).collect();
    let mut all = fixed_parameters();
    all.extend(fronts.into_iter().map(|name| server_setting(name)));
    all.extend(backs.into_iter().map(|name| back_setting(name)));
    all.extend(factors::swept(plan));
    all
}

/// A parameter that no level has yet.
fn parameter(factor: &str, title: &str, unit: &'static str, prefix: &str) -> Parameter {
    Parameter {
        factor: factor.to_owned(),
        title: title.to_owned(),
        unit,
        prefix: prefix.to_owned(),
        key: String::new(),
        read: |_, _| None,
        clear: |_, _| {},
    }
}

/// The parameters of workloads and networks.
fn fixed_parameters() -> Vec<Parameter> {
    vec![
        Parameter {
            read: |level, _| Some(f64::from(level.workload()?.as_loop()?.connections)),
            clear: |level, _| level.change_loop(|load| load.connections = 0),
            ..parameter("workload", "connections", "1", "connections ")
        },
        Parameter {
            read: |level, _| Some(f64::from(level.workload()?.as_loop()?.streams)),
            clear: |level, _| level.change_loop(|load| load.streams = 0),
            ..parameter("workload", "streams per connection", "1", "streams per connection ")
        },
        Parameter {
            read: |level, _| level.workload()?.schedule()?.constant_rate().map(Rate::per_second),
            clear: |level, _| level.clear_rate(),
            ..parameter("workload", "requests due per second", "1/s", "")
        },
        number_in_path("/bytes/", "response size", "B"),
        number_in_path("/delay/", "server delay", "ms"),
        Parameter {
            read: |level, _| Some(float(level.workload()?.page()?.total_bytes())),
            clear: |level, _| level.clear_page(),
            ..parameter("workload", "page size", "B", "")
        },
        Parameter {
            read: |level, _| Some(float(level.network()?.rtt_ns())),
            clear: |level, _| {
                level.each_direction(|direction| {
                    direction.delay_ns = 0;
                    direction.queue = Queue::default();
                });
            },
            ..parameter("network", ROUND_TRIP_TIME, "ns", "RTT ")
        },
        Parameter {
            read: |level, _| Some(float(level.network()?.down.rate.constant_bits_per_s()?)),
            clear: |level, _| {
                level.each_direction(|direction| {
                    direction.rate = LinkRate::default();
                    direction.queue = Queue::default();
                });
            },
            ..parameter("network", "link rate", "bit/s", "")
        },
        Parameter {
            read: |level, _| Some(level.network()?.down.loss.mean_share() * 100.0),
            clear: |level, _| level.each_direction(|direction| direction.loss = Loss::None),
            ..parameter("network", "loss", "%", "loss ")
        },
    ]
}

/// The number in the only path of a loop, which the built-in server reads as a size or a delay.
fn number_in_path(prefix: &str, title: &str, unit: &'static str) -> Parameter {
    Parameter {
        key: prefix.to_owned(),
        read: |level, prefix| match level.workload()?.as_loop()?.paths.as_slice() {
            [path] => path.strip_prefix(prefix)?.parse().ok().map(float),
            _ => None,
        },
        clear: |level, _| level.change_loop(|load| load.paths.clear()),
        ..parameter("workload", title, unit, "")
    }
}

/// A numeric setting of the server.
fn server_setting(name: &str) -> Parameter {
    let title = clean_line(name).replace('_', " ");
    Parameter {
        key: name.to_owned(),
        read: |level, name| number(level.chain()?.set.get(name)),
        clear: |level, name| level.each_chain(|chain| drop(chain.set.remove(name))),
        ..parameter("server", &title, "1", &format!("{title} "))
    }
}

/// A numeric setting of the server behind a proxy.
fn back_setting(name: &str) -> Parameter {
    let title = format!("{} of the back server", clean_line(name).replace('_', " "));
    Parameter {
        key: name.to_owned(),
        read: |level, name| number(level.chain()?.backs.iter().find_map(|back| back.set.get(name))),
        clear: |level, name| {
            level.each_chain(|chain| {
                let with = chain.backs.iter_mut().find(|back| back.set.contains_key(name));
                drop(with.map(|back| back.set.remove(name)));
            });
        },
        ..parameter("server", &title, "1", &format!("{title} "))
    }
}

fn number(setting: Option<&Setting>) -> Option<f64> {
    if let Setting::Number(number) = setting? { Some(float(*number)) } else { None }
}

impl Parameter {
    fn is(&self, other: &Parameter) -> bool {
        (&self.factor, &self.title) == (&other.factor, &other.title)
    }

    fn value(&self, level: &FactorLevel) -> Option<f64> {
        (self.read)(level, &self.key)
    }

    /// A value for the name of a panel, such as `RTT 20 ms`.
    fn describe(&self, value: f64) -> String {
        let number = match self.unit {
            "%" => text::percent(value / 100.0),
            unit => text::Scale::fitting(unit, value).short_value(value),
        };
        format!("{}{number}", self.prefix)
    }
}

/// What a level of a factor stands for, where it can be swept.
#[derive(Clone, Debug, PartialEq)]
enum FactorLevel {
    Network(Box<Network>),
    Workload(Workload),
    Server(Option<model::Pins>, Box<ServerChain>),
    /// A factor that the study sweeps, and its level.
    Swept(String, String),
}

impl FactorLevel {
    /// The level that a cell has of a factor.
    fn of(plan: &Plan, cell: &Cell, factor: &str) -> Option<FactorLevel> {
        Some(match factor {
            "network" => FactorLevel::Network(Box::new(plan.networks.get(cell.network)?.clone())),
            "workload" => FactorLevel::Workload(plan.workloads.get(cell.group.workload)?.workload.clone()),
            "server" => FactorLevel::Server(cell.pins.clone(), Box::new(cell.chain.clone())),
            swept => FactorLevel::Swept(swept.to_owned(), cell.level(swept)?.to_owned()),
        })
    }

    /// The level without its name and these parameters.
    fn without(mut self, parameters: &[&Parameter]) -> FactorLevel {
        if let FactorLevel::Network(network) = &mut self {
            network.name.clear();
            network.title.clear();
            network.source.clear();
        }
        parameters.iter().for_each(|parameter| (parameter.clear)(&mut self, &parameter.key));
        self
    }

    fn network(&self) -> Option<&Network> {
        if let FactorLevel::Network(network) = self { Some(network) } else { None }
    }

    fn swept(&self, name: &str) -> Option<&str> {
        match self {
            FactorLevel::Swept(factor, level) if factor == name => Some(level),
            _ => None,
        }
    }

    fn each_direction(&mut self, change: fn(&mut Direction)) {
        if let FactorLevel::Network(network) = self {
            change(&mut network.up);
            change(&mut network.down);
        }
    }

    fn chain(&self) -> Option<&ServerChain> {
        if let FactorLevel::Server(_, chain) = self { Some(chain) } else { None }
    }

    fn each_chain(&mut self, mut change: impl FnMut(&mut ServerChain)) {
        if let FactorLevel::Server(_, chain) = self {
            change(chain);
        }
    }

    fn workload(&self) -> Option<&Workload> {
        if let FactorLevel::Workload(workload) = self { Some(workload) } else { None }
    }

    fn change_loop(&mut self, change: impl FnOnce(&mut LoopLoad)) {
        if let FactorLevel::Workload(workload) = self
            && let Some(load) = workload.as_loop_mut()
        {
            change(load);
        }
    }

    fn clear_rate(&mut self) {
        if let FactorLevel::Workload(Workload::Open(open)) = self {
            open.schedule.stages.iter_mut().for_each(|stage| (stage.from, stage.to) = (Rate(0), Rate(0)));
        }
    }

    fn clear_page(&mut self) {
        if let FactorLevel::Workload(Workload::Page(page)) = self {
            page.name.clear();
            page.title.clear();
            page.resources.iter_mut().for_each(|resource| {
                resource.path.clear();
                (resource.bytes, resource.named_at_bytes) = (0, 0);
            });
        }
    }
}

/// One parameter over the contexts of a study.
pub(crate) struct Sweep {
    pub(crate) parameter: Parameter,
    /// Whether its levels are equal in everything else.
    pub(crate) is_pure: bool,
    /// Contexts that are equal in everything else.
    pub(crate) groups: Vec<Group>,
}

/// Contexts that differ in swept parameters only.
pub(crate) struct Group {
    /// What they have in common, where it varies in the study; empty where nothing does.
    pub(crate) name: String,
    /// Values of the parameters, and the context's index; ascending.
    pub(crate) points: Vec<(Vec<f64>, usize)>,
}

/// Two swept parameters with every pair of values that the study has.
pub(crate) struct Grid {
    /// Columns, then rows.
    pub(crate) parameters: [Parameter; 2],
    pub(crate) groups: Vec<Group>,
}

/// Every swept parameter of a study, the one with the most values first. The compared factor is not swept.
pub(crate) fn sweeps(plan: &Plan, compared: &str, contexts: &[Context<'_>]) -> Vec<Sweep> {
    let matrix = Matrix { plan, compared, contexts };
    let mut sweeps: Vec<Sweep> =
        parameters(plan).into_iter().filter_map(|parameter| matrix.sweep(parameter)).collect();
    sweeps.sort_by_key(|sweep| Reverse(sweep.most_values()));
    sweeps
}

/// Every pair of swept parameters with at least two values each.
pub(crate) fn grids(plan: &Plan, compared: &str, contexts: &[Context<'_>], sweeps: &[Sweep]) -> Vec<Grid> {
    let matrix = Matrix { plan, compared, contexts };
    let pairs = sweeps.iter().enumerate();
    let pairs =
        pairs.flat_map(|(place, first)| sweeps[place + 1..].iter().map(move |second| [first, second]));
    let grid = |pair: [&Sweep; 2]| Grid {
        groups: matrix.groups(&pair).into_iter().filter(Group::is_grid).collect(),
        parameters: pair.map(|sweep| sweep.parameter.clone()),
    };
    pairs.map(grid).filter(|grid| !grid.groups.is_empty()).collect()
}

/// What sweeps are found in.
#[derive(Clone, Copy)]
struct Matrix<'v, 'a> {
    plan: &'v Plan,
    compared: &'v str,
    contexts: &'v [Context<'a>],
}

impl<'a> Matrix<'_, 'a> {
    fn sweep(self, parameter: Parameter) -> Option<Sweep> {
        if self.compared == parameter.factor {
            return None;
        }
        let mut sweep = Sweep { parameter, is_pure: true, groups: Vec::new() };
        sweep.groups = self.groups(&[&sweep]).into_iter().filter(|group| group.values(0).len() > 1).collect();
        if sweep.parameter.title == ROUND_TRIP_TIME && sweep.most_values() < MIN_UNLIKE_NETWORKS {
            sweep.is_pure = false;
            let unlike = self.groups(&[&sweep]);
            let is_enough = |group: &Group| {
                let values = group.values(0).len();
                values >= MIN_UNLIKE_NETWORKS && values == group.points.len()
            };
            if !unlike.is_empty() && unlike.iter().all(is_enough) {
                sweep.groups = unlike;
            } else {
                sweep.is_pure = true;
            }
        }
        (!sweep.groups.is_empty()).then_some(sweep)
    }

    /// The contexts that have a value of every parameter, grouped by what else they have in common.
    fn groups(self, sweeps: &[&Sweep]) -> Vec<Group> {
        let parameters: Vec<&Parameter> = sweeps.iter().map(|sweep| &sweep.parameter).collect();
        let factors: BTreeSet<&str> = parameters.iter().map(|parameter| parameter.factor.as_str()).collect();
        let mut places: BTreeMap<Vec<String>, Vec<(Vec<FactorLevel>, usize)>> = BTreeMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for (index, context) in self.contexts.iter().enumerate() {
            let Some(planned) = planned(context) else { continue };
            let levels: Vec<FactorLevel> =
                factors.iter().filter_map(|factor| FactorLevel::of(self.plan, planned, factor)).collect();
            let value = |parameter: &&Parameter| levels.iter().find_map(|level| parameter.value(level));
            let Some(values) = parameters.iter().map(value).collect::<Option<Vec<f64>>>() else { continue };
            let is_compared =
                |factor: &str| sweeps.iter().all(|sweep| sweep.parameter.factor != factor || sweep.is_pure);
            let rest: Vec<FactorLevel> = factors
                .iter()
                .zip(&levels)
                .filter(|(factor, _)| is_compared(factor))
                .map(|(_, level)| level.clone().without(&parameters))
                .collect();
            let known_places = places.entry(self.other_levels(context, &factors)).or_default();
            let known = known_places.iter().find(|(known, _)| *known == rest).map(|(_, place)| *place);
            let place = known.unwrap_or_else(|| {
                known_places.push((rest, groups.len()));
                groups.push(Group { name: String::new(), points: Vec::new() });
                groups.len() - 1
            });
            groups[place].points.push((values, index));
        }
        for group in &mut groups {
            group.points.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        }
        self.name_groups(&mut groups, &factors, &parameters);
        groups
    }

    /// The levels of a context except those of the swept factors.
    fn other_levels(self, context: &Context<'_>, factors: &BTreeSet<&str>) -> Vec<String> {
        let levels = context.rows.first().map_or(&[][..], |row| &row.cell.levels);
        levels
            .iter()
            .filter(|level| level.factor != self.compared && !factors.contains(level.factor.as_str()))
            .map(|level| clean_line(&level.label()))
            .collect()
    }

    /// Names groups by the levels that vary, and by the other parameters of the swept factors.
    fn name_groups(self, groups: &mut [Group], factors: &BTreeSet<&str>, parameters: &[&Parameter]) {
        let first = |group: &Group| -> Option<&Context<'a>> { self.contexts.get(group.points.first()?.1) };
        let mut others = self::parameters(self.plan);
        others.retain(|other| {
            factors.contains(other.factor.as_str()) && !parameters.iter().any(|own| own.is(other))
        });
        let parts: Vec<Vec<String>> = groups
            .iter()
            .map(|group| {
                let Some(context) = first(group) else { return Vec::new() };
                let describe = |other: &Parameter| {
                    let level = FactorLevel::of(self.plan, planned(context)?, &other.factor)?;
                    other.value(&level).map(|value| other.describe(value))
                };
                let described = others.iter().map(|other| describe(other).unwrap_or_default());
                self.other_levels(context, factors).into_iter().chain(described).collect()
            })
            .collect();
        let varies = |place: usize| parts.iter().any(|part| part.get(place) != parts[0].get(place));
        for (group, own) in groups.iter_mut().zip(&parts) {
            let varying = own.iter().enumerate().filter(|(place, part)| varies(*place) && !part.is_empty());
            group.name = varying.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" · ");
        }
        // Groups that differ in more than numbers are named after their first context.
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let is_ambiguous = |group: &&mut Group| names.iter().filter(|name| **name == group.name).count() > 1;
        for group in groups.iter_mut().filter(is_ambiguous) {
            group.name = first(group).map_or(String::new(), |context| format!("from {}", context.name));
        }
    }
}

fn planned<'a>(context: &Context<'a>) -> Option<&'a Cell> {
    context.rows.iter().find_map(|row| row.planned)
}

impl Sweep {
    /// The largest number of values that the parameter takes in a group.
    pub(crate) fn most_values(&self) -> usize {
        self.groups.iter().map(|group| group.values(0).len()).max().unwrap_or(0)
    }
}

impl Group {
    /// The distinct values of a parameter, ascending.
    pub(crate) fn values(&self, parameter: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.points.iter().map(|(values, _)| values[parameter]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    fn is_grid(&self) -> bool {
        let (columns, rows) = (self.values(0).len(), self.values(1).len());
        // More than half of the pairs: two parameters that change together are one sweep.
        columns > 1 && rows > 1 && self.points.len() * 2 > columns * rows
    }
}

#[cfg(test)]
mod tests {
    use model::error::Source;
    use model::schedule::{Arrivals, Schedule, Share, Stage};
    use model::workload::{ClosedLoop, OpenLoop};

    use super::*;

    fn closed(connections: u32, streams: u32, path: &str) -> FactorLevel {
        FactorLevel::Workload(Workload::Closed(ClosedLoop::new(
            LoopLoad { connections, streams, ..LoopLoad::new(path) },
            Some(1),
        )))
    }

    fn open(per_second: u64) -> FactorLevel {
        let rate = Rate(per_second * 1000);
        let stages = vec![Stage { from: rate, to: rate, duration_ns: Some(1) }];
        FactorLevel::Workload(Workload::Open(OpenLoop {
            load: LoopLoad::new("/"),
            schedule: Schedule { stages, arrivals: Arrivals::Even, share: Share::WHOLE },
            queue_limit: 1,
        }))
    }

    fn network(name: &str, lines: &str) -> FactorLevel {
        let text = format!("title = \"{name}\"\nsource = \"{name}\"\n{lines}");
        FactorLevel::Network(Box::new(Network::parse(name, Source { file: name, text: &text }).unwrap()))
    }

    fn server(workers: u64, on: bool) -> FactorLevel {
        let mut chain = ServerChain::alone("server", "nginx");
        chain.set.insert("workers".to_owned(), Setting::Number(workers));
        chain.set.insert("keepalive".to_owned(), Setting::Flag(on));
        FactorLevel::Server(None, Box::new(chain))
    }

    fn workers() -> Parameter {
        server_setting("workers")
    }

    fn named(title: &str) -> Parameter {
        fixed_parameters().into_iter().find(|parameter| parameter.title == title).unwrap()
    }

    #[test]
    fn a_swept_factor_has_its_own_numbers() {
        let connections = factors::swept_factor("workload.load.connections", "1");
        let rtt = factors::swept_factor("network.rtt", "ns");
        let level = |factor: &str, value: &str| FactorLevel::Swept(factor.to_owned(), value.to_owned());
        let [ten, near] = [level("workload.load.connections", "10"), level("network.rtt", "20ms")];
        assert_eq!((connections.value(&ten), connections.value(&near)), (Some(10.0), None));
        assert_eq!((rtt.value(&ten), rtt.value(&near)), (None, Some(20e6)));
        assert_eq!((connections.title.as_str(), rtt.title.as_str()), ("connections", ROUND_TRIP_TIME));
        assert_eq!(
            (connections.describe(10.0), rtt.describe(20e6)),
            ("connections 10".into(), "RTT 20 ms".into())
        );
        assert_eq!(near.clone().without(&[&connections]), near);
        assert_eq!(near.without(&[&rtt]), level("network.rtt", "80ms").without(&[&rtt]));
    }

    #[test]
    fn levels_that_differ_in_one_parameter_are_a_sweep() {
        let slow = "rtt = \"20ms\"\nrate = \"10Mbit/s\"\nqueue = \"2bdp\"\n";
        let far = "rtt = \"80ms\"\nrate = \"10Mbit/s\"\nqueue = \"2bdp\"\n";
        let fast = "rtt = \"20ms\"\nrate = \"40Mbit/s\"\nqueue = \"2bdp\"\n";
        let lossy = format!("{slow}loss = \"2%\"\n");
        for (parameter, one, other, values) in [
            (named("connections"), closed(1, 1, "/"), closed(8, 1, "/"), [1.0, 8.0]),
            (named("streams per connection"), closed(1, 1, "/"), closed(1, 10, "/"), [1.0, 10.0]),
            (named("response size"), closed(1, 1, "/bytes/5"), closed(1, 1, "/bytes/70"), [5.0, 70.0]),
            (named("server delay"), closed(1, 1, "/delay/5"), closed(1, 1, "/delay/7"), [5.0, 7.0]),
            (named("requests due per second"), open(5), open(80), [5.0, 80.0]),
            (named("round-trip time"), network("a", slow), network("b", far), [20e6, 80e6]),
            (named("link rate"), network("a", slow), network("b", fast), [10e6, 40e6]),
            (named("loss"), network("a", slow), network("b", &lossy), [0.0, 2.0]),
            (workers(), server(1, true), server(4, true), [1.0, 4.0]),
        ] {
            let found = [&one, &other].map(|level| parameter.value(level).unwrap());
            assert!((found[0] - values[0]).abs() + (found[1] - values[1]).abs() < 1e-6, "{found:?}");
            let rests =
                |parameter: &Parameter| [&one, &other].map(|level| level.clone().without(&[parameter]));
            let [rest, other_rest] = rests(&parameter);
            assert_eq!(rest, other_rest, "{}", parameter.title);
            let another = named(if parameter.title == "loss" { ROUND_TRIP_TIME } else { "loss" });
            let [rest, other_rest] = rests(&another);
            assert_ne!(rest, other_rest, "{}", parameter.title);
        }
    }

    #[test]
    fn levels_that_differ_in_more_are_no_sweep() {
        for (parameter, one, other) in [
            (named("connections"), closed(1, 1, "/a"), closed(8, 1, "/b")),
            (named("connections"), closed(1, 1, "/a"), closed(8, 2, "/a")),
            (workers(), server(1, true), server(4, false)),
            (
                named("round-trip time"),
                network("a", "rtt = \"20ms\"\n"),
                network("b", "rtt = \"80ms\"\nrate = \"1Mbit/s\"\n"),
            ),
        ] {
            assert_ne!(one.without(&[&parameter]), other.without(&[&parameter]), "{}", parameter.title);
        }
        assert_eq!(named("response size").value(&closed(1, 1, "/bytes/many")), None);
        assert_eq!(named("requests due per second").value(&closed(1, 1, "/")), None);
        let flag = server_setting("keepalive");
        assert_eq!(flag.value(&server(1, true)), None, "a flag is not a number");
    }

    #[test]
    fn values_are_described_with_their_units() {
        let described = [
            named("round-trip time").describe(20e6),
            named("loss").describe(0.5),
            named("link rate").describe(20e6),
            named("connections").describe(8.0),
            named("response size").describe(20e3),
            workers().describe(4.0),
        ];
        assert_eq!(
            described,
            ["RTT 20 ms", "loss 0.5\u{a0}%", "20 Mbit/s", "connections 8", "20 kB", "workers 4"]
        );
    }
}
