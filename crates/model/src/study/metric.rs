//! The metrics of a study: whether they exist, whether its workloads have them, and the settings that they
//! require.

use super::factors::check_name;
use super::{Library, Study};
use crate::error::InputError;
use crate::reader::Placed;
use crate::workload::{Workload, WorkloadKind};

/// What a study needs to know of a metric.
#[derive(Clone, Debug)]
pub struct MetricFacts {
    /// Its name.
    pub name: String,
    /// The kinds of workload that have it.
    pub workloads: &'static [WorkloadKind],
    /// Whether more or less of it is better, so that it can be compared.
    pub is_comparable: bool,
    /// The setting of the study that it requires.
    pub requires: Option<Requirement>,
}

/// A setting of the study without which a metric has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// `server_time = true`.
    ServerTime,
    /// `dns`.
    DnsLookup,
}

/// Checks that a metric with this name exists.
pub(super) fn check_exists(metric: &Placed<String>, library: &impl Library) -> Result<(), InputError> {
    let names: Vec<String> = library.metrics().into_iter().map(|known| known.name).collect();
    check_name(metric, "`metric`: ", "a metric", &names)
}

/// Why a workload cannot be compared by a metric that exists, if it cannot.
pub(super) fn check_workload(
    metric: &str,
    workload: &Workload,
    library: &impl Library,
) -> Result<(), String> {
    let mut known = library.metrics();
    known.retain(|known| known.is_comparable && known.workloads.contains(&workload.kind()));
    if known.iter().any(|known| known.name == metric) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    Err(format!("`{metric}` cannot compare it; choose one of {}", names.join(", ")))
}

/// Checks that the study has the setting that its metric requires.
pub(super) fn check_requirement(study: &Study, library: &impl Library) -> Result<(), InputError> {
    let metric = library.metrics().into_iter().find(|known| known.name == study.metric.value);
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
