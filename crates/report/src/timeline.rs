//! The monitor's readings of one run, condensed to a few quantities over time.

use std::collections::{BTreeMap, BTreeSet};

use model::monitor::{Quantity, Reading, Subject, SubjectKind};
use model::plan::{DIRECT, Plan};
use model::{RunRecord, units};

use model::number::float;

/// Rounds of a run; if there are more, neighbours are merged.
const MAX_ROUNDS: usize = 240;

/// The quantities of one run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTimeline {
    /// Its cell.
    pub cell: u32,
    /// Its number in the plan.
    pub run: u32,
    /// The times of the rounds in nanoseconds since the client started; negative before it.
    pub at_ns: Vec<i64>,
    /// The end of the warm-up on the same clock; `None` without one.
    pub warmup_ended_ns: Option<i64>,
    /// The end of the client on the same clock.
    pub finished_ns: i64,
    /// The values at each round; `None` without one, such as a rate at the first round.
    pub tracks: BTreeMap<Track, Vec<Option<f64>>>,
}

/// A quantity over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// CPU time of the server's processes, in percent of a core.
    ServerCpu,
    /// CPU time of the client's processes, in percent of a core.
    ClientCpu,
    /// Memory that the server's processes hold, in bytes.
    ServerMemory,
    /// The server's send rate, in bit/s.
    Down,
    /// The server's receive rate, in bit/s.
    Up,
    /// TCP sockets of the server in a state.
    ServerSockets(Quantity),
    /// TCP sockets of the client in a state.
    ClientSockets(Quantity),
}

/// The socket states that are shown if they occur.
static STATES: [Quantity; 9] = [
    Quantity::Established,
    Quantity::TimeWait,
    Quantity::SynReceived,
    Quantity::FinWait1,
    Quantity::FinWait2,
    Quantity::CloseWait,
    Quantity::LastAck,
    Quantity::Closing,
    Quantity::AcceptQueue,
];

impl Track {
    /// The name of its column.
    pub(crate) fn name(self) -> String {
        match self {
            Track::ServerCpu => "server_cpu_percent".to_owned(),
            Track::ClientCpu => "client_cpu_percent".to_owned(),
            Track::ServerMemory => "server_memory_bytes".to_owned(),
            Track::Down => "down_bits_per_s".to_owned(),
            Track::Up => "up_bits_per_s".to_owned(),
            Track::ServerSockets(state) => format!("server_{}", state.name()),
            Track::ClientSockets(state) => format!("client_{}", state.name()),
        }
    }

    /// Its title, without a unit that is added later.
    pub(crate) fn title(self) -> String {
        let of = |state: Quantity, side: &str| match state {
            Quantity::AcceptQueue => format!("connections to accept, {side}"),
            state => format!("{}, {side}", state.name().to_uppercase().replace('_', "-")),
        };
        match self {
            Track::ServerCpu => "CPU, server (% of a core)".to_owned(),
            Track::ClientCpu => "CPU, client (% of a core)".to_owned(),
            Track::ServerMemory => "memory, server".to_owned(),
            Track::Down => "bandwidth, down".to_owned(),
            Track::Up => "bandwidth, up".to_owned(),
            Track::ServerSockets(state) => of(state, "server"),
            Track::ClientSockets(state) => of(state, "client"),
        }
    }

    /// As [`crate::text::Scale`] takes it.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Track::ServerCpu | Track::ClientCpu => "%",
            Track::ServerMemory => "B",
            Track::Down | Track::Up => "bit/s",
            Track::ServerSockets(_) | Track::ClientSockets(_) => "1",
        }
    }

    /// Whether its value is a mean since the previous round rather than the value at the round.
    pub(crate) const fn is_rate(self) -> bool {
        matches!(self, Track::ServerCpu | Track::ClientCpu | Track::Down | Track::Up)
    }
}

/// The readings of one track.
struct Source<'a> {
    track: Track,
    kind: SubjectKind,
    node: Option<&'a str>,
    quantities: &'a [Quantity],
}

impl Source<'_> {
    fn reads(&self, reading: &Reading) -> bool {
        let subject = &reading.subject;
        subject.kind == self.kind
            && subject.node.as_deref() == self.node
            && self.quantities.contains(&reading.quantity)
            // A node's loopback is not traffic of the network.
            && !(subject.kind == SubjectKind::Interface && &*subject.name == "lo")
    }
}

impl RunTimeline {
    /// The timeline of a client group of a stored run; `None` if the monitor was off or the group reported
    /// nothing.
    pub fn from_record(plan: &Plan, record: &RunRecord, group: u16) -> Option<RunTimeline> {
        let cell = plan.cells_of_run(record.cell).get(usize::from(group))?;
        let (client, chain) = (&cell.group, &cell.chain);
        let report = record.clients.iter().find(|report| report.group == group)?;
        let stamps = record.readings.iter().map(|reading| reading.at_ns).collect();
        let rounds = rounds(stamps, report.finished_ns);
        let since = |stamp: u64| signed(stamp) - signed(report.started_ns);
        let is_direct = plan.topology.name == DIRECT;
        let sources = sources(&client.node, &chain.node, is_direct);
        let mut tracks = BTreeMap::new();
        for source in &sources {
            let readings: Vec<&Reading> =
                record.readings.iter().filter(|reading| source.reads(reading)).collect();
            let values =
                if source.track.is_rate() { rates(&readings, &rounds) } else { levels(&readings, &rounds) };
            let scale = match source.track {
                Track::ServerCpu | Track::ClientCpu => 100.0,
                // Bytes per nanosecond.
                Track::Down | Track::Up => 8.0 * float(units::NANOS_PER_S),
                _ => 1.0,
            };
            if values.iter().flatten().any(|value| *value > 0.0) {
                let values = values.into_iter().map(|value| value.map(|value| value * scale)).collect();
                tracks.insert(source.track, values);
            }
        }
        (!tracks.is_empty()).then(|| RunTimeline {
            cell: cell.cell,
            run: record.run,
            at_ns: rounds.iter().map(|at| since(*at)).collect(),
            warmup_ended_ns: report.warmup.map(|warmup| since(warmup.ended_ns)),
            finished_ns: since(report.finished_ns),
            tracks,
        })
    }
}

fn sources<'a>(client: &'a str, server: &'a str, is_direct: bool) -> Vec<Source<'a>> {
    use Quantity::{CpuSystem, CpuUser, ReceivedBytes, Resident, SentBytes};
    let source = |track, kind, node, quantities| Source { track, kind, node, quantities };
    let process = SubjectKind::Process;
    let mut sources = vec![
        source(Track::ServerCpu, process, Some(server), &[CpuUser, CpuSystem][..]),
        source(Track::ClientCpu, process, Some(client), &[CpuUser, CpuSystem]),
        source(Track::ServerMemory, process, Some(server), &[Resident]),
    ];
    // Without emulation, both nodes are this machine, whose sockets and interfaces serve other programs too.
    if is_direct {
        return sources;
    }
    let interface = SubjectKind::Interface;
    sources.push(source(Track::Down, interface, Some(server), &[SentBytes]));
    sources.push(source(Track::Up, interface, Some(server), &[ReceivedBytes]));
    let states = || STATES.iter().map(std::slice::from_ref);
    let sockets = |track: fn(Quantity) -> Track, node: &'a str| {
        states().map(move |state: &'static [Quantity]| Source {
            track: track(state[0]),
            kind: SubjectKind::Sockets,
            node: Some(node),
            quantities: state,
        })
    };
    sources.extend(sockets(Track::ServerSockets, server));
    sources.extend(
        sockets(Track::ClientSockets, client).filter(|source| source.quantities != [Quantity::AcceptQueue]),
    );
    sources
}

/// The times of the rounds until the client ended, and of the first round after it unless it follows quickly.
/// Later rounds only show the end of processes.
fn rounds(stamps: BTreeSet<u64>, finished_ns: u64) -> Vec<u64> {
    let during = stamps.range(..finished_ns).count();
    let mut kept: Vec<u64> = stamps.into_iter().take(during + 1).collect();
    if let [first, second, .., before, last] = kept.as_slice()
        && *last > finished_ns
        && (last - before) * 2 < second - first
    {
        kept.pop();
    }
    let step = kept.len().div_ceil(MAX_ROUNDS).max(1);
    // A round stands for the time before it; the first is where all counters begin.
    let mut rounds: Vec<u64> = kept.iter().copied().step_by(step).collect();
    rounds.extend(kept.last().filter(|last| rounds.last() != Some(last)));
    rounds
}

/// The growth rates of counters from round to round, added up over all subjects; a counter begins at 0 when
/// its subject begins.
fn rates(readings: &[&Reading], rounds: &[u64]) -> Vec<Option<f64>> {
    let mut last: BTreeMap<(&Subject, Quantity), u64> = BTreeMap::new();
    let mut growth = vec![0_u64; rounds.len()];
    for reading in readings {
        let place = rounds.partition_point(|round| *round < reading.at_ns);
        let before = last.entry((&reading.subject, reading.quantity)).or_default();
        if let Some(growth) = growth.get_mut(place) {
            *growth = growth.saturating_add(reading.value.saturating_sub(*before));
        }
        *before = reading.value.max(*before);
    }
    let spans = rounds.windows(2).zip(growth.iter().skip(1));
    let rate = |(pair, growth): (&[u64], &u64)| Some(float(*growth) / float((pair[1] - pair[0]).max(1)));
    std::iter::once(None).take(rounds.len()).chain(spans.map(rate)).collect()
}

/// The values at each round, added up over all subjects; the maximum if a round stands for several.
fn levels(readings: &[&Reading], rounds: &[u64]) -> Vec<Option<f64>> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for reading in readings {
        let sum = sums.entry(reading.at_ns).or_default();
        *sum = sum.saturating_add(reading.value);
    }
    let mut most: Vec<Option<f64>> = vec![None; rounds.len()];
    for (at, sum) in sums {
        if let Some(own) = most.get_mut(rounds.partition_point(|round| *round < at)) {
            *own = Some(own.unwrap_or(0.0).max(float(sum)));
        }
    }
    most
}

fn signed(stamp: u64) -> i64 {
    i64::try_from(stamp).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ns: u64, id: u64, quantity: Quantity, value: u64) -> Reading {
        let subject =
            Subject { node: Some("server".into()), kind: SubjectKind::Process, name: "x".into(), id };
        Reading { at_ns, subject, quantity, value }
    }

    #[test]
    fn counters_become_rates_between_rounds() {
        let readings = [
            reading(0, 1, Quantity::CpuUser, 0),
            reading(100, 1, Quantity::CpuUser, 50),
            reading(100, 1, Quantity::CpuSystem, 10),
            // A process that begins after the first round counts from 0.
            reading(200, 2, Quantity::CpuUser, 20),
            reading(200, 1, Quantity::CpuUser, 90),
            reading(200, 1, Quantity::CpuSystem, 10),
        ];
        let readings: Vec<&Reading> = readings.iter().collect();
        assert_eq!(rates(&readings, &[0, 100, 200]), [None, Some(0.6), Some(0.6)]);
        assert_eq!(rates(&readings, &[0, 200]), [None, Some(0.6)], "merged rounds lose nothing");
        assert_eq!(rates(&[], &[]), []);
    }

    #[test]
    fn gauges_are_added_up_and_merged_rounds_keep_the_maximum() {
        let gauge = |at, id, value| reading(at, id, Quantity::Resident, value);
        let readings =
            [gauge(0, 1, 5), gauge(0, 2, 6), gauge(100, 1, 40), gauge(200, 1, 7), gauge(300, 1, 8)];
        let readings: Vec<&Reading> = readings.iter().collect();
        assert_eq!(levels(&readings, &[0, 100, 200]), [Some(11.0), Some(40.0), Some(7.0)]);
        assert_eq!(levels(&readings, &[0, 200]), [Some(11.0), Some(40.0)]);
    }

    #[test]
    fn rounds_end_with_the_load() {
        let of = |stamps: &[u64], finished| rounds(stamps.iter().copied().collect(), finished);
        assert_eq!(of(&[0, 100, 200, 300, 400], 250), [0, 100, 200, 300]);
        assert_eq!(of(&[0, 100, 200, 230, 400], 220), [0, 100, 200], "the next round follows too quickly");
        assert_eq!(of(&[0, 90], 80), [0, 90], "the only two");
        let many: Vec<u64> = (0..10_000).collect();
        let kept = of(&many, 20_000);
        assert!(kept.len() <= MAX_ROUNDS + 1 && kept.last() == Some(&9_999), "{}", kept.len());
    }
}
