//! Swept parameters: factors whose levels differ in a number alone, such as networks in their round-trip time or workloads in
//! their connections.
//!
//! Two levels belong to the same sweep where they are alike in all but the parameter; their names do not count. Queues go with
//! rate and round-trip time, for they are mostly written in products of both.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::Network;
use model::network::{Direction, LinkRate, Loss, Queue};
use model::plan::{Cell, Plan, ServerChain};
use model::schedule::{Rate, Schedule};
use model::tunable::Setting;

use crate::text::{self, clean_line};
use crate::view::{Context, View};
use model::workload::Workload;

/// So many networks with different round-trip times are a sweep even where they differ in more.
const ENOUGH_UNLIKE: usize = 3;

/// What a sweep varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    RoundTrip,
    LinkRate,
    Loss,
    Connections,
    Streams,
    ArrivalRate,
    /// The number in the only path of a loop, which the built-in server takes for a size or a delay.
    InPath(&'static str),
    PageBytes,
    Tunable {
        of_back: bool,
        name: String,
    },
}

/// What a level of a factor is, so far as it can be swept.
#[derive(Clone, Debug, PartialEq)]
enum Is {
    Network(Box<Network>),
    Workload(Workload),
    Server(Option<model::Pins>, ServerChain),
}

/// One parameter over the contexts of a study.
pub(crate) struct Sweep {
    pub(crate) parameter: Parameter,
    factor: &'static str,
    /// Whether its levels are alike in all else.
    pub(crate) is_pure: bool,
    /// Contexts that are alike in all but this.
    pub(crate) groups: Vec<Group>,
}

/// Contexts that differ in swept parameters alone.
pub(crate) struct Group {
    /// What they have in common, as far as it varies in the study; empty where nothing does.
    pub(crate) name: String,
    /// Values of the parameters, and the context's place in [`View::contexts`]; ascending.
    pub(crate) points: Vec<(Vec<f64>, usize)>,
}

impl Parameter {
    /// For axes, such as `round-trip time`.
    pub(crate) fn title(&self) -> String {
        match self {
            Parameter::RoundTrip => "round-trip time".to_owned(),
            Parameter::LinkRate => "rate of the link".to_owned(),
            Parameter::Loss => "loss".to_owned(),
            Parameter::Connections => "connections".to_owned(),
            Parameter::Streams => "streams on each connection".to_owned(),
            Parameter::ArrivalRate => "requests per second that are due".to_owned(),
            Parameter::InPath("/bytes/") => "size of the response".to_owned(),
            Parameter::InPath(_) => "time that the server takes".to_owned(),
            Parameter::PageBytes => "size of the page".to_owned(),
            Parameter::Tunable { of_back: false, name } => clean_line(name).replace('_', " "),
            Parameter::Tunable { of_back: true, name } => {
                format!("{} of the back server", clean_line(name).replace('_', " "))
            }
        }
    }

    /// As [`text::Scale`] takes it.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Parameter::RoundTrip => "ns",
            Parameter::LinkRate => "bit/s",
            Parameter::Loss => "%",
            Parameter::InPath("/bytes/") | Parameter::PageBytes => "B",
            Parameter::InPath(_) => "ms",
            Parameter::ArrivalRate => "1/s",
            Parameter::Connections | Parameter::Streams | Parameter::Tunable { .. } => "1",
        }
    }

    /// A value in words, such as `RTT 20 ms`, for the names of panels.
    fn words(&self, value: f64) -> String {
        let number = match self.unit() {
            "%" => text::percent(value / 100.0),
            unit => text::Scale::fitting(unit, value).short_value(value),
        };
        match self {
            Parameter::RoundTrip => format!("RTT {number}"),
            Parameter::LinkRate | Parameter::ArrivalRate | Parameter::PageBytes => number,
            Parameter::InPath(_) => number,
            other => format!("{} {number}", other.title()),
        }
    }

    const fn factor(&self) -> &'static str {
        match self {
            Parameter::RoundTrip | Parameter::LinkRate | Parameter::Loss => "network",
            Parameter::Tunable { .. } => "server",
            _ => "workload",
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
    fn value(&self, level: &Is) -> Option<f64> {
        Some(match (self, level) {
            (Parameter::RoundTrip, Is::Network(network)) => network.rtt_ns() as f64,
            (Parameter::LinkRate, Is::Network(network)) => network.down.rate.constant_bits_per_s()? as f64,
            (Parameter::Loss, Is::Network(network)) => network.down.loss.mean_share() * 100.0,
            (Parameter::Connections, Is::Workload(workload)) => f64::from(workload.as_loop()?.connections),
            (Parameter::Streams, Is::Workload(workload)) => f64::from(workload.as_loop()?.streams),
            (Parameter::ArrivalRate, Is::Workload(workload)) => {
                workload.schedule()?.constant_rate()?.0 as f64 / 1e3
            }
            (Parameter::InPath(prefix), Is::Workload(workload)) => {
                let [path] = workload.as_loop()?.paths.as_slice() else { return None };
                path.strip_prefix(prefix)?.parse::<u64>().ok()? as f64
            }
            (Parameter::PageBytes, Is::Workload(workload)) => workload.page()?.total_bytes() as f64,
            (Parameter::Tunable { of_back, name }, Is::Server(_, chain)) => {
                let back = chain.back.as_ref().map(|back| &back.set);
                let set = if *of_back { back? } else { &chain.set };
                let Setting::Number(number) = set.get(name)? else { return None };
                *number as f64
            }
            _ => return None,
        })
    }

    /// Makes levels that differ in this alone the same.
    fn neutralise(&self, level: &mut Is) {
        let each = |network: &mut Network, change: fn(&mut Direction)| {
            change(&mut network.up);
            change(&mut network.down);
        };
        match (self, level) {
            (Parameter::RoundTrip, Is::Network(network)) => each(network, |direction| {
                direction.delay_ns = 0;
                direction.queue = Queue::default();
            }),
            (Parameter::LinkRate, Is::Network(network)) => each(network, |direction| {
                direction.rate = LinkRate::default();
                direction.queue = Queue::default();
            }),
            (Parameter::Loss, Is::Network(network)) => each(network, |direction| direction.loss = Loss::None),
            (Parameter::Tunable { of_back: false, name }, Is::Server(_, chain)) => {
                chain.set.remove(name);
            }
            (Parameter::Tunable { of_back: true, name }, Is::Server(_, chain)) => {
                chain.back.as_mut().map(|back| back.set.remove(name));
            }
            (parameter, Is::Workload(workload)) => parameter.neutralise_workload(workload),
            _ => {}
        }
    }

    fn neutralise_workload(&self, workload: &mut Workload) {
        if let Workload::Page(page) = workload {
            page.name.clear();
            page.title.clear();
            page.resources.iter_mut().for_each(|resource| {
                resource.path.clear();
                (resource.bytes, resource.named_at_bytes) = (0, 0);
            });
        }
        match (self, workload) {
            (Parameter::ArrivalRate, Workload::Open(open)) => {
                if let Schedule::Rates { stages, .. } = &mut open.schedule {
                    stages.iter_mut().for_each(|stage| (stage.from, stage.to) = (Rate(0), Rate(0)));
                }
            }
            (_, workload) => {
                let Some(load) = workload.as_loop_mut() else { return };
                match self {
                    Parameter::Connections => load.connections = 0,
                    Parameter::Streams => load.streams = 0,
                    Parameter::InPath(_) => load.paths.clear(),
                    _ => {}
                }
            }
        }
    }
}

/// All parameters that this plan could sweep.
fn candidates(plan: &Plan) -> Vec<Parameter> {
    let mut all = vec![
        Parameter::Connections,
        Parameter::Streams,
        Parameter::ArrivalRate,
        Parameter::InPath("/bytes/"),
        Parameter::InPath("/delay/"),
        Parameter::PageBytes,
        Parameter::RoundTrip,
        Parameter::LinkRate,
        Parameter::Loss,
    ];
    let chains = || plan.cells.iter().flat_map(|cell| &cell.chains);
    let front = chains().flat_map(|chain| &chain.set).map(|(name, _)| (false, name));
    let back = chains().filter_map(|chain| chain.back.as_ref()).flat_map(|back| &back.set);
    let tunables: BTreeSet<(bool, &String)> = front.chain(back.map(|(name, _)| (true, name))).collect();
    all.extend(
        tunables.into_iter().map(|(of_back, name)| Parameter::Tunable { of_back, name: name.clone() }),
    );
    all
}

/// What a cell's level of a factor is.
fn level_of(plan: &Plan, cell: &Cell, factor: &str) -> Option<Is> {
    Some(match factor {
        "network" => Is::Network(Box::new(plan.networks.get(cell.network)?.clone())),
        "workload" => Is::Workload(plan.workloads.get(cell.clients.first()?.workload)?.workload.clone()),
        _ => Is::Server(cell.pins.clone(), cell.chains.first()?.clone()),
    })
}

/// The level without its name and these parameters.
fn rest_of(mut level: Is, parameters: &[&Parameter]) -> Is {
    if let Is::Network(network) = &mut level {
        network.name.clear();
        network.title.clear();
        network.source.clear();
    }
    parameters.iter().for_each(|parameter| parameter.neutralise(&mut level));
    level
}

/// Every swept parameter of a study, those with the most values first.
pub(crate) fn sweeps(view: &View<'_>) -> Vec<Sweep> {
    let mut sweeps: Vec<Sweep> =
        candidates(view.plan()).into_iter().filter_map(|parameter| sweep(view, parameter)).collect();
    sweeps.sort_by_key(|sweep| std::cmp::Reverse(sweep.most_values()));
    sweeps
}

/// Two swept parameters with every pair of values that the study has.
pub(crate) struct Grid {
    /// Columns, then rows.
    pub(crate) parameters: [Parameter; 2],
    pub(crate) groups: Vec<Group>,
}

/// Every pair of swept parameters of which the study has at least two values each, together.
pub(crate) fn grids(view: &View<'_>) -> Vec<Grid> {
    let sweeps = &view.sweeps;
    let mut grids = Vec::new();
    for (place, first) in sweeps.iter().enumerate() {
        for second in &sweeps[place + 1..] {
            let groups = groups(view, &[first, second]);
            let groups: Vec<Group> = groups.into_iter().filter(Group::is_grid).collect();
            if !groups.is_empty() {
                grids.push(Grid { parameters: [first.parameter.clone(), second.parameter.clone()], groups });
            }
        }
    }
    grids
}

fn sweep(view: &View<'_>, parameter: Parameter) -> Option<Sweep> {
    let factor = parameter.factor();
    if view.summary().baseline.factor == factor {
        return None;
    }
    let mut sweep = Sweep { parameter, factor, is_pure: true, groups: Vec::new() };
    sweep.groups = groups(view, &[&sweep]).into_iter().filter(|group| group.values(0).len() > 1).collect();
    if sweep.parameter == Parameter::RoundTrip && sweep.most_values() < ENOUGH_UNLIKE {
        sweep.is_pure = false;
        let unlike = groups(view, &[&sweep]);
        let is_enough = |group: &Group| {
            group.values(0).len() >= ENOUGH_UNLIKE && group.values(0).len() == group.points.len()
        };
        if !unlike.is_empty() && unlike.iter().all(is_enough) {
            sweep.groups = unlike;
        } else {
            sweep.is_pure = true;
        }
    }
    (!sweep.groups.is_empty()).then_some(sweep)
}

/// The contexts that have a value of every parameter, by what they have in common besides.
fn groups(view: &View<'_>, sweeps: &[&Sweep]) -> Vec<Group> {
    let parameters: Vec<&Parameter> = sweeps.iter().map(|sweep| &sweep.parameter).collect();
    let factors: BTreeSet<&str> = sweeps.iter().map(|sweep| sweep.factor).collect();
    let mut places: BTreeMap<Vec<String>, Vec<(Vec<Is>, usize)>> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (context, shown) in view.contexts.iter().enumerate() {
        let Some(planned) = shown.rows.iter().find_map(|row| row.planned) else { continue };
        let levels: Vec<Is> =
            factors.iter().filter_map(|factor| level_of(view.plan(), planned, factor)).collect();
        let value = |parameter: &&Parameter| levels.iter().find_map(|level| parameter.value(level));
        let Some(values) = parameters.iter().map(value).collect::<Option<Vec<f64>>>() else { continue };
        let is_compared = |factor: &str| sweeps.iter().all(|sweep| sweep.factor != factor || sweep.is_pure);
        let rest: Vec<Is> = factors
            .iter()
            .zip(&levels)
            .filter(|(factor, _)| is_compared(factor))
            .map(|(_, level)| rest_of(level.clone(), &parameters))
            .collect();
        let alike = places.entry(other_levels(view, shown, &factors)).or_default();
        let known = alike.iter().find(|(known, _)| *known == rest).map(|(_, place)| *place);
        let place = known.unwrap_or_else(|| {
            alike.push((rest, groups.len()));
            groups.push(Group { name: String::new(), points: Vec::new() });
            groups.len() - 1
        });
        groups[place].points.push((values, context));
    }
    for group in &mut groups {
        group.points.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    }
    name_groups(view, &mut groups, &factors, &parameters);
    groups
}

/// The levels of a context but for the swept factors.
fn other_levels(view: &View<'_>, context: &Context<'_>, factors: &BTreeSet<&str>) -> Vec<String> {
    let baseline = &view.summary().baseline.factor;
    let levels = context.rows.first().map_or(&[][..], |row| &row.cell.levels);
    levels
        .iter()
        .filter(|level| level.factor != *baseline && !factors.contains(level.factor.as_str()))
        .map(|level| clean_line(&level.value))
        .collect()
}

/// A group is called by the levels that vary, and by the parameters that its swept factors have besides.
fn name_groups(view: &View<'_>, groups: &mut [Group], factors: &BTreeSet<&str>, parameters: &[&Parameter]) {
    let first = |group: &Group| group.points.first().map(|(_, context)| &view.contexts[*context]);
    let others: Vec<Parameter> = candidates(view.plan())
        .into_iter()
        .filter(|other| factors.contains(other.factor()) && !parameters.contains(&other))
        .collect();
    let parts: Vec<Vec<String>> = groups
        .iter()
        .map(|group| {
            let Some(context) = first(group) else { return Vec::new() };
            let mut parts = other_levels(view, context, factors);
            let planned = context.rows.iter().find_map(|row| row.planned);
            parts.extend(others.iter().map(|other| {
                let level = planned.and_then(|planned| level_of(view.plan(), planned, other.factor()));
                let value = level.and_then(|level| other.value(&level));
                value.map_or(String::new(), |value| other.words(value))
            }));
            parts
        })
        .collect();
    let varies = |place: usize| parts.iter().any(|part| part.get(place) != parts[0].get(place));
    for (group, own) in groups.iter_mut().zip(&parts) {
        let varying = own.iter().enumerate().filter(|(place, part)| varies(*place) && !part.is_empty());
        group.name = varying.map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" · ");
    }
    // What differs in more than numbers is called by its first context.
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    for group in
        groups.iter_mut().filter(|group| names.iter().filter(|name| **name == group.name).count() > 1)
    {
        let context = group.points.first().map(|(_, context)| view.contexts[*context].name.clone());
        group.name = context.map_or(String::new(), |name| format!("from {name}"));
    }
}

impl Sweep {
    /// How many values the parameter takes at most.
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
    use model::schedule::{Arrivals, Share, Stage};
    use model::workload::{ClosedLoop, LoopLoad, OpenLoop};

    use super::*;

    fn closed(connections: u32, streams: u32, path: &str) -> Is {
        let load = LoopLoad { connections, streams, ..LoopLoad::new(path) };
        Is::Workload(Workload::Closed(ClosedLoop { load, duration_ns: Some(1) }))
    }

    fn open(per_second: u64) -> Is {
        let rate = Rate(per_second * 1000);
        let stages = vec![Stage { from: rate, to: rate, duration_ns: Some(1) }];
        Is::Workload(Workload::Open(OpenLoop {
            load: LoopLoad::new("/"),
            schedule: Schedule::Rates { stages, arrivals: Arrivals::Even, share: Share::WHOLE },
            queue_limit: 1,
        }))
    }

    fn network(name: &str, lines: &str) -> Is {
        let text = format!("title = \"{name}\"\nsource = \"{name}\"\n{lines}");
        Is::Network(Box::new(Network::parse(name, Source { file: name, text: &text }).unwrap()))
    }

    fn server(workers: u64, on: bool) -> Is {
        let mut chain = ServerChain::alone("server", "nginx");
        chain.set.insert("workers".to_owned(), Setting::Number(workers));
        chain.set.insert("keepalive".to_owned(), Setting::Flag(on));
        Is::Server(None, chain)
    }

    fn workers() -> Parameter {
        Parameter::Tunable { of_back: false, name: "workers".to_owned() }
    }

    #[test]
    fn levels_that_differ_in_a_parameter_alone_are_one_sweep() {
        let slow = "rtt = \"20ms\"\nrate = \"10Mbit/s\"\nqueue = \"2bdp\"\n";
        let far = "rtt = \"80ms\"\nrate = \"10Mbit/s\"\nqueue = \"2bdp\"\n";
        let fast = "rtt = \"20ms\"\nrate = \"40Mbit/s\"\nqueue = \"2bdp\"\n";
        let lossy = format!("{slow}loss = \"2%\"\n");
        for (parameter, one, other, values) in [
            (Parameter::Connections, closed(1, 1, "/"), closed(8, 1, "/"), [1.0, 8.0]),
            (Parameter::Streams, closed(1, 1, "/"), closed(1, 10, "/"), [1.0, 10.0]),
            (Parameter::InPath("/bytes/"), closed(1, 1, "/bytes/5"), closed(1, 1, "/bytes/70"), [5.0, 70.0]),
            (Parameter::InPath("/delay/"), closed(1, 1, "/delay/5"), closed(1, 1, "/delay/7"), [5.0, 7.0]),
            (Parameter::ArrivalRate, open(5), open(80), [5.0, 80.0]),
            (Parameter::RoundTrip, network("a", slow), network("b", far), [20e6, 80e6]),
            (Parameter::LinkRate, network("a", slow), network("b", fast), [10e6, 40e6]),
            (Parameter::Loss, network("a", slow), network("b", &lossy), [0.0, 2.0]),
            (workers(), server(1, true), server(4, true), [1.0, 4.0]),
        ] {
            let found = [&one, &other].map(|level| parameter.value(level).unwrap());
            assert!((found[0] - values[0]).abs() + (found[1] - values[1]).abs() < 1e-6, "{found:?}");
            assert_eq!(
                rest_of(one.clone(), &[&parameter]),
                rest_of(other.clone(), &[&parameter]),
                "{parameter:?}"
            );
            let another = if parameter == Parameter::Loss { Parameter::RoundTrip } else { Parameter::Loss };
            assert_ne!(rest_of(one, &[&another]), rest_of(other, &[&another]), "{parameter:?}");
        }
    }

    #[test]
    fn levels_that_differ_in_more_are_not() {
        for (parameter, one, other) in [
            (Parameter::Connections, closed(1, 1, "/a"), closed(8, 1, "/b")),
            (Parameter::Connections, closed(1, 1, "/a"), closed(8, 2, "/a")),
            (workers(), server(1, true), server(4, false)),
            (
                Parameter::RoundTrip,
                network("a", "rtt = \"20ms\"\n"),
                network("b", "rtt = \"80ms\"\nrate = \"1Mbit/s\"\n"),
            ),
        ] {
            assert_ne!(rest_of(one, &[&parameter]), rest_of(other, &[&parameter]), "{parameter:?}");
        }
        assert_eq!(Parameter::InPath("/bytes/").value(&closed(1, 1, "/bytes/many")), None);
        assert_eq!(Parameter::ArrivalRate.value(&closed(1, 1, "/")), None);
        let flag = Parameter::Tunable { of_back: false, name: "keepalive".to_owned() };
        assert_eq!(flag.value(&server(1, true)), None, "a flag is no number");
    }

    #[test]
    fn parameters_are_told_with_their_units() {
        let words = [
            Parameter::RoundTrip.words(20e6),
            Parameter::Loss.words(0.5),
            Parameter::LinkRate.words(20e6),
            Parameter::Connections.words(8.0),
            Parameter::InPath("/bytes/").words(20e3),
            workers().words(4.0),
        ];
        assert_eq!(
            words,
            ["RTT 20 ms", "loss 0.5\u{a0}%", "20 Mbit/s", "connections 8", "20 kB", "workers 4"]
        );
    }
}
