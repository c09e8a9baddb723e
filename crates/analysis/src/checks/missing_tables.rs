//! Every table of the samples is there.

use super::{Check, CheckOutcome, Context, Finding};
use crate::tables::{TABLES, Table, has_reference_measurement};

pub(super) const CHECK: Check = Check {
    name: "missing_tables",
    why: "What a lost or damaged table would have shown was not judged, so nobody vouches for it.",
    remedy: "Copy the file from where the result is still whole, or measure again.",
    judge,
};

/// The checks that read what is known of a network.
const OF_NETWORKS: [&str; 2] = ["network_rate", "network_loss"];

/// Of each table that runs which succeeded lost: of how many, which checks read it, and what is not known without it. Runs that
/// still have it are judged by themselves. Nothing to judge where nothing is lost.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let lost: Vec<String> = TABLES.iter().filter_map(|table| of_table(context, table)).collect();
    let lost = lost.into_iter().chain(of_network(context)).collect::<Vec<_>>();
    let threshold = "no table lost".to_owned();
    (!lost.is_empty()).then(|| Finding { result: CheckOutcome::Caveat, measured: lost.join(". "), threshold })
}

fn of_table(context: &Context<'_>, table: &Table) -> Option<String> {
    let without = context.own.ok().filter(|run| run.lost.contains(&table)).count();
    let all = context.own.ok().count();
    if without == 0 {
        return None;
    }
    let mut words = format!("samples/{}.parquet of {without} of {all} runs", table.name);
    if !table.checks.is_empty() {
        words.push_str(if without == all { ", not judged: " } else { ", judged by the others: " });
        words.push_str(&table.checks.join(", "));
    }
    let is_asked = |name: &&str| {
        let groups =
            || context.own.cell.clients.iter().map(|group| &context.plan.workload_of(group).workload);
        crate::metrics::find(name).is_some_and(|metric| groups().any(|workload| metric.is_about(workload)))
    };
    let is_lost = |name: &&str| !context.own.summary.metrics.contains_key(*name);
    let unknown: Vec<&str> = table.metrics_of(context.plan).filter(is_asked).filter(is_lost).collect();
    if !unknown.is_empty() {
        words.push_str(&format!("; not known: {}", unknown.join(", ")));
    }
    Some(words)
}

/// A network that was emulated, as the calibrated round trip shows, and whose reference measurements are not there.
fn of_network(context: &Context<'_>) -> Option<String> {
    let was_emulated = context.own.ok().any(|run| run.calibration.is_some());
    let is_lost = was_emulated
        && context.network.is_none()
        && has_reference_measurement(context.plan, context.own.cell.network);
    let name = &context.plan.network_of(context.own.cell).name;
    is_lost.then(|| {
        format!(
            "calibrations.json has nothing of the network `{name}`, not judged: {}",
            OF_NETWORKS.join(", ")
        )
    })
}
