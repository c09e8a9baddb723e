//! The metrics. Each is one entry in the file of its subject and declares its unit, its direction, the events
//! at which it starts and ends, the workloads that have it, and the tables that it reads.

use std::sync::LazyLock;

use model::class::{self, RequestClass, split_metric};
use model::external::ExternalReport;
use model::plan::Plan;
use model::record::ServerRequest;
use model::sample::Sample;
use model::statistic::Statistic;
use model::study::{MetricFacts, Requirement, ValuesPerRun};
use model::workload::{Workload, WorkloadKind};

use crate::table::Table;
use crate::view::View;

mod handover;
mod monitor;
mod page;
mod player;
mod requests;
#[cfg(test)]
mod tests;
mod volume;

pub use page::DNS_LOOKUP_TIME;
pub use requests::{availability, requests_per_second};

/// Every metric, in the order in which tables show them.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    [page::METRICS, player::METRICS, handover::METRICS, requests::METRICS, monitor::METRICS, volume::METRICS]
        .concat()
});

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// The metric is descriptive: neither direction is better, so it is never compared.
    Neither,
}

/// One metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// The name in studies and in `summary.json`.
    pub name: &'static str,
    /// The name in headings.
    pub title: &'static str,
    /// `ns`, `B`, `1/s`, `bit/s`, or `1` for counts and shares.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The largest possible value, if there is one.
    pub ceiling: Option<f64>,
    /// The event at which it starts.
    pub start: &'static str,
    /// The event at which it ends.
    pub end: &'static str,
    /// The kinds of workload that have it.
    pub workloads: &'static [WorkloadKind],
    /// The setting of the study that it requires.
    pub requires: Option<Requirement>,
    /// The tables that it reads besides `runs` and `requests`.
    pub reads: &'static [Table],
    /// Whether it starts with the DNS lookup in studies with `dns`. It then reads the table `clients` too.
    pub starts_with_dns_lookup: bool,
    /// Whether it is the time that a client waits for a response: the time that a queue lengthens and a stall
    /// hides.
    pub is_response_time: bool,
    /// Whether packets cross the network between its start and its end, so that a late emulator lengthens it.
    pub crosses_network: bool,
    /// The values that external clients report without rows, in nanoseconds, each with its number of
    /// requests.
    pub external: Option<ExternalTimes>,
    /// How its values come from one run.
    pub values: Values,
}

/// How the values of a metric, in its unit, come from one run. Rows are read one by one and not kept.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// At most one for each request that counts.
    Request(fn(&Sample) -> Option<u64>),
    /// At most one for each request that counts, succeeded, and is in the server's log.
    AtServer(fn(&Sample, &ServerRequest) -> Option<u64>),
    /// At most one for each client.
    Client(fn(&View<'_>) -> Option<f64>),
    /// At most one for the whole run.
    Run(fn(&View<'_>) -> Option<f64>),
    /// The share that the first number is of the second, over the whole run.
    Share(fn(&View<'_>) -> (u64, u64)),
}

type ExternalTimes = fn(&ExternalReport) -> Vec<(u64, u64)>;
type RunValue = fn(&View<'_>) -> Option<f64>;

const PAGE: &[WorkloadKind] = &[WorkloadKind::Page];
/// Workloads whose requests are due at times.
const OPEN: &[WorkloadKind] = &[WorkloadKind::Open, WorkloadKind::Script];
const LOOPS: &[WorkloadKind] = &[WorkloadKind::Closed, WorkloadKind::Open, WorkloadKind::Script];
const LOOPS_AND_PLAYER: &[WorkloadKind] =
    &[WorkloadKind::Closed, WorkloadKind::Open, WorkloadKind::Script, WorkloadKind::Player];
const OPEN_AND_PLAYER: &[WorkloadKind] = &[WorkloadKind::Open, WorkloadKind::Script, WorkloadKind::Player];
const PLAYER: &[WorkloadKind] = &[WorkloadKind::Player];
const ANY: &[WorkloadKind] = &WorkloadKind::ALL;

/// The statistic of a metric that a study about `statistic` compares.
pub fn compared(metric: &str, statistic: Statistic) -> Statistic {
    find(metric).map_or(Statistic::Median, |metric| metric.compared(statistic))
}

/// The metric of this name, or of a name with a class such as `request_time@video`.
pub fn find(name: &str) -> Option<&'static Metric> {
    let (base, _) = split_metric(name);
    METRICS.iter().find(|metric| metric.name == base)
}

/// Every metric by its name, each followed by its classes.
pub(crate) fn with_classes(classes: &[RequestClass]) -> Vec<(String, &'static Metric)> {
    let names = class::names(classes);
    let of_metric = |metric: &'static Metric| {
        let of_classes = names.iter().filter(|_| metric.has_classes());
        let of_classes = of_classes.map(|name| class::metric_of(metric.name, name));
        std::iter::once(metric.name.to_owned()).chain(of_classes).map(move |name| (name, metric))
    };
    METRICS.iter().flat_map(|metric| of_metric(metric).collect::<Vec<_>>()).collect()
}

impl Values {
    /// How many values a run has.
    pub(crate) const fn per_run(self) -> ValuesPerRun {
        match self {
            Values::Request(_) | Values::AtServer(_) => ValuesPerRun::Requests,
            Values::Client(_) => ValuesPerRun::Clients,
            Values::Run(_) => ValuesPerRun::One,
            Values::Share(_) => ValuesPerRun::Share,
        }
    }

    /// Whether a run has one value for each request.
    pub(crate) fn is_per_request(self) -> bool {
        self.per_run() == ValuesPerRun::Requests
    }
}

impl Metric {
    /// What studies need to know of it.
    pub fn facts(&self) -> MetricFacts {
        MetricFacts {
            name: self.name.to_owned(),
            unit: self.unit,
            workloads: self.workloads,
            is_comparable: self.better != Better::Neither,
            requires: self.requires,
            counts_first_visits: self.counts_first_visits(),
            values: self.values.per_run(),
        }
    }

    /// The statistic of it that is compared in a study about `statistic`. One value per run has no tail: the
    /// median over runs is compared.
    pub fn compared(&self, statistic: Statistic) -> Statistic {
        match (self.values.per_run(), statistic) {
            (ValuesPerRun::One | ValuesPerRun::Share, tail) if tail.tail_quantile().is_some() => {
                Statistic::Median
            }
            _ => statistic,
        }
    }

    /// Whether it has values for each class of requests.
    pub(crate) fn has_classes(&self) -> bool {
        matches!(self.values.per_run(), ValuesPerRun::Requests | ValuesPerRun::Share)
    }

    /// Whether it counts over the whole run, so that a visit before the measured one would be part of it.
    pub(crate) fn counts_first_visits(&self) -> bool {
        self.reads.iter().any(|table| matches!(table, Table::Links | Table::Servers | Table::Monitor))
    }

    /// Whether this workload has the metric.
    pub fn is_about(&self, workload: &Workload) -> bool {
        self.workloads.contains(&workload.kind())
    }

    /// Whether the study has the settings that the metric requires.
    pub(crate) fn is_possible(&self, plan: &Plan) -> bool {
        match self.requires {
            Some(Requirement::ServerTime) => plan.server_time,
            Some(Requirement::DnsLookup) => plan.dns_rtt_ns.is_some(),
            None => true,
        }
    }

    /// Whether the metric has no values without the table.
    pub(crate) fn needs(&self, table: Table, plan: &Plan) -> bool {
        let reads_lookups = self.starts_with_dns_lookup && plan.dns_rtt_ns.is_some();
        self.is_possible(plan) && (self.reads.contains(&table) || reads_lookups && table == Table::Clients)
    }
}

/// A metric of each client instead of the whole run.
const fn of_client(metric: Metric) -> Metric {
    match metric.values {
        Values::Run(value) => Metric { values: Values::Client(value), ..metric },
        _ => metric,
    }
}

/// A time over the whole run, of which less is better.
const fn duration(
    name: &'static str,
    title: &'static str,
    workloads: &'static [WorkloadKind],
    value: RunValue,
) -> Metric {
    Metric { unit: "ns", crosses_network: true, ..bytes(name, title, workloads, value) }
}

/// A time of each request, of which less is better.
const fn request_duration(
    name: &'static str,
    title: &'static str,
    workloads: &'static [WorkloadKind],
    value: fn(&Sample) -> Option<u64>,
) -> Metric {
    Metric { values: Values::Request(value), ..duration(name, title, workloads, |_| None) }
}

/// A descriptive number over the whole run.
const fn count(
    name: &'static str,
    title: &'static str,
    workloads: &'static [WorkloadKind],
    value: RunValue,
) -> Metric {
    Metric { unit: "1", better: Better::Neither, ..bytes(name, title, workloads, value) }
}

/// A number of bytes over the whole run, of which less is better.
const fn bytes(
    name: &'static str,
    title: &'static str,
    workloads: &'static [WorkloadKind],
    value: RunValue,
) -> Metric {
    Metric {
        name,
        title,
        unit: "B",
        better: Better::Lower,
        ceiling: None,
        start: "start of the run",
        end: "end of the run",
        workloads,
        requires: None,
        reads: &[],
        starts_with_dns_lookup: false,
        is_response_time: false,
        crosses_network: false,
        external: None,
        values: Values::Run(value),
    }
}
