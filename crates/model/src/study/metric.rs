//! The metrics of a study: whether they exist, whether its workloads have them, and the settings that they
//! require.

use super::{Library, Study, factors};
use crate::class::{self, RequestClass, split_metric};
use crate::error::InputError;
use crate::named::unknown;
use crate::plan::NamedWorkload;
use crate::reader::{Placed, Table};
use crate::statistic::Statistic;
use crate::workload::{Workload, WorkloadKind};

/// What a study needs to know of a metric.
#[derive(Clone, Debug)]
pub struct MetricFacts {
    /// Its name.
    pub name: String,
    /// The unit of its values, such as `ns`.
    pub unit: &'static str,
    /// The kinds of workload that have it.
    pub workloads: &'static [WorkloadKind],
    /// Whether more or less of it is better, so that it can be compared.
    pub is_comparable: bool,
    /// The setting of the study that it requires.
    pub requires: Option<Requirement>,
    /// Whether it counts over the whole run, including what comes before a repeat visit.
    pub counts_first_visits: bool,
    /// How many values a run has.
    pub values: ValuesPerRun,
}

/// How many values of a metric a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuesPerRun {
    /// One for each request.
    Requests,
    /// One for each client.
    Clients,
    /// One.
    One,
    /// One, which is a share of all requests of the run.
    Share,
}

/// A setting of the study without which a metric has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// `server_time = true`.
    ServerTime,
    /// `dns`.
    DnsLookup,
}

/// The facts about a metric, or about that of a class such as `request_time@video`.
pub(super) fn facts(metric: &str, library: &impl Library) -> Option<MetricFacts> {
    let (base, _) = split_metric(metric);
    library.metrics().into_iter().find(|known| known.name == base)
}

/// Checks that a metric with this name exists, of a class or of all requests.
pub(super) fn check_exists(
    metric: &Placed<String>,
    classes: &[RequestClass],
    library: &impl Library,
) -> Result<(), InputError> {
    check_name(metric, library)?;
    check_class(metric, classes, library)
}

/// Checks the name without its class.
pub(super) fn check_name(metric: &Placed<String>, library: &impl Library) -> Result<(), InputError> {
    let names: Vec<String> = library.metrics().into_iter().map(|known| known.name).collect();
    let base = Placed { value: split_metric(&metric.value).0.to_owned(), place: metric.place.clone() };
    factors::check_name(&base, "`metric`: ", "a metric", &names)
}

/// Checks that the class of a metric such as `request_time@video` is one of these and that the metric has
/// classes.
pub(super) fn check_class(
    metric: &Placed<String>,
    classes: &[RequestClass],
    library: &impl Library,
) -> Result<(), InputError> {
    let (base, Some(class)) = split_metric(&metric.value) else { return Ok(()) };
    let values = facts(base, library).map(|facts| facts.values);
    if !matches!(values, Some(ValuesPerRun::Requests | ValuesPerRun::Share)) {
        return Err(metric.error(format!(
            "`metric`: `{base}` is not a metric of requests, so it has no classes; write one such as \
             `request_time@{class}`"
        )));
    }
    let known = class::names(classes);
    if known.contains(&class) {
        return Ok(());
    }
    let noun =
        "a class of this study: a table `[class.NAME]`, or without tables `audio` and `video` of a player";
    Err(metric.error(format!("`metric`: {}", unknown(class, noun, &known))))
}

/// Why a workload cannot be compared by a metric that exists, if it cannot.
pub(super) fn check_workload(
    metric: &str,
    workload: &Workload,
    library: &impl Library,
) -> Result<(), String> {
    let mut known = library.metrics();
    known.retain(|known| known.is_comparable && known.workloads.contains(&workload.kind()));
    if known.iter().any(|known| known.name == split_metric(metric).0) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    Err(format!("`{metric}` cannot compare it; choose one of {}", names.join(", ")))
}

/// Reads the statistic that verdicts are about.
pub(super) fn read_statistic(root: &Table<'_>) -> Result<Placed<Statistic>, InputError> {
    let statistic = root.named("statistic")?.unwrap_or_else(|| root.here(Statistic::default()));
    if statistic.value == Statistic::Iqr {
        let problem = "`statistic`: `iqr` says how much values differ and not which are better; write \
                       `median`, `mean`, `p90`, `p95`, `p99` or `p999`";
        return Err(statistic.error(problem));
    }
    Ok(statistic)
}

/// Checks that runs of a workload have enough values of the metric for the study's statistic.
pub(super) fn check_statistic(
    study: &Study,
    named: &NamedWorkload,
    clients: u32,
    library: &impl Library,
) -> Result<(), InputError> {
    let (metric, statistic) = (&study.metric.value, study.statistic.value);
    let known = facts(metric, library);
    let problem = match known.map(|known| known.values) {
        _ if statistic.is_median() => return Ok(()),
        Some(ValuesPerRun::Share) => {
            format!("`{metric}` is a share of all requests, which has no {statistic}; remove `statistic`")
        }
        Some(ValuesPerRun::One) if statistic.tail_quantile().is_some() => format!(
            "a run has one value of `{metric}`, so it has no {statistic}; write `median` or `mean`, or \
             compare a metric with a value for each request, such as `request_time`"
        ),
        Some(ValuesPerRun::Clients) if statistic.tail_quantile().is_some() && clients == 1 => format!(
            "a run has one value of `{metric}` for each client, so one client has no {statistic}; write `median` or \
             `mean`, more `clients`, or compare a metric with a value for each request, such as `request_time`"
        ),
        Some(ValuesPerRun::Clients) => match statistic.least_values() {
            least if u64::from(clients) < least => format!(
                "workload `{}` has {clients} clients, and a {statistic} needs at least {least}; add clients, or \
                 write a lower percentile",
                named.name
            ),
            _ => return Ok(()),
        },
        Some(ValuesPerRun::Requests) => {
            let (most, least) = (most_requests(&named.workload), statistic.least_values());
            match most.map(|most| most.saturating_mul(u64::from(clients))) {
                Some(most) if most < least => format!(
                    "workload `{}` makes at most {most} requests per run, and a {statistic} needs at least \
                     {least}; add requests, or write a lower percentile",
                    named.name
                ),
                _ => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    Err(study.statistic.error(format!("`statistic`: {problem}")))
}

/// The most requests of a run that count, if the workload limits them.
fn most_requests(workload: &Workload) -> Option<u64> {
    match workload.page() {
        Some(page) => Some(page.resources.len() as u64),
        None => workload.as_loop()?.requests,
    }
}

/// Checks that the study has the setting that its metric requires.
pub(super) fn check_requirement(study: &Study, library: &impl Library) -> Result<(), InputError> {
    let metric = facts(&study.metric.value, library);
    let problem = match metric.and_then(|metric| metric.requires) {
        Some(Requirement::ServerTime) if !study.server_time => {
            "is computed from the servers' own times; add `server_time = true`"
        }
        Some(Requirement::DnsLookup) if study.dns.is_none() => {
            "requires `dns`; add it, such as `dns = \"20ms\"`"
        }
        _ => return Ok(()),
    };
    Err(study.metric.error(format!("`metric`: `{}` {problem}", study.metric.value)))
}
