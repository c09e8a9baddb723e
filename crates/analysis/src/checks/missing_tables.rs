//! Every table of the samples is there.

use super::{CHECKS, Check, CheckOutcome, Context, Finding, Table, check};
use crate::metrics::METRICS;

pub(super) const CHECK: Check = Check {
    measures: "tables of runs that succeeded, and reference measurements of emulated networks, that are \
               [damaged or missing](#the-folder); runs that have a table are judged without those that lost \
               it",
    passes: "none",
    caveat: "any; the caveat names the tables, the checks that read them and the metrics that are unknown",
    why: "What a lost or damaged table would have shown was not judged; it is unverified.",
    remedy: "Copy the file from where the result is still intact, or measure again.",
    ..check("missing_tables", judge)
};

/// Each table that runs which succeeded lost: in how many runs, which checks read it, and which metrics are
/// unknown without it.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let lost: Vec<String> =
        Table::ALL.into_iter().filter_map(|table| describe_loss(context, table)).collect();
    let threshold = "no table lost".to_owned();
    (!lost.is_empty()).then(|| Finding { result: CheckOutcome::Caveat, measured: lost.join(". "), threshold })
}

fn describe_loss(context: &Context<'_>, table: Table) -> Option<String> {
    let readers = || CHECKS.iter().filter(|check| check.reads.contains(&table)).map(|check| check.name);
    let checks = readers().collect::<Vec<_>>().join(", ");
    if table == Table::Calibrations {
        let name = &context.plan.network_of(context.own.cell).name;
        return lacks_reference(context).then(|| {
            format!("calibrations.json has no entry for the network `{name}`, not judged: {checks}")
        });
    }
    let without = context.own.ok().filter(|run| run.lost.contains(&table)).count();
    let all = context.own.ok().count();
    if without == 0 {
        return None;
    }
    let mut text = format!("samples/{}.parquet of {without} of {all} runs", table.name());
    if !checks.is_empty() {
        text.push_str(if without == all { ", not judged: " } else { ", judged by the others: " });
        text.push_str(&checks);
    }
    let workload = &context.plan.workload_of(&context.own.cell.group).workload;
    let unknown: Vec<&str> = METRICS
        .iter()
        .filter(|metric| metric.needs(table, context.plan) && metric.is_about(workload))
        .map(|metric| metric.name)
        .filter(|name| !context.own.summary.metrics.contains_key(*name))
        .collect();
    if !unknown.is_empty() {
        text.push_str(&format!("; unknown: {}", unknown.join(", ")));
    }
    Some(text)
}

/// Whether the network was emulated, as a calibrated round trip shows, but its reference measurements are
/// missing.
fn lacks_reference(context: &Context<'_>) -> bool {
    let was_emulated = context.own.ok().any(|run| run.calibration.is_some());
    was_emulated && context.network.is_none() && context.plan.has_reference(context.own.cell.network)
}

#[cfg(test)]
mod tests;
