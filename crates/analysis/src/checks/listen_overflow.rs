//! Listeners dropped no connections.

use super::{Check, Context, Finding, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "connections and SYNs that listeners dropped, in all monitored nodes",
    passes: "0",
    caveat: "more",
    why: "A client retries a dropped connection after a second, and this second counts as the server's or \
          the network's.",
    remedy: "Give the server a longer listen queue (its own backlog and net.core.somaxconn) or more \
             workers, or open fewer connections at once.",
    reads: &[Table::Monitor],
    ..check("listen_overflow", judge)
};

/// It never invalidates: a server that refuses connections may be the study's question.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let facts = || context.own.ok().filter_map(|run| run.monitor);
    let runs = facts().count();
    let dropped = |facts: crate::monitor::MonitorFacts| facts.listen_drops.max(facts.listen_overflows);
    let all: u64 = facts().map(dropped).sum();
    let overflows: u64 = facts().map(|facts| facts.listen_overflows).sum();
    let hit = facts().filter(|facts| dropped(*facts) > 0).count();
    let measured = match all {
        0 => format!("0 in {runs} runs"),
        _ => format!("{all} in {hit} of {runs} runs, {overflows} of them due to a full queue"),
    };
    (runs > 0).then(|| Finding::pass_or_caveat(all == 0, measured, "0"))
}

#[cfg(test)]
mod tests {
    use model::monitor::Quantity;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn accepted_connections_pass() {
        passes("listen_overflow", &Bench::closed(&[Variant::H1]).monitored(&[(Quantity::ListenDrops, 0)]));
    }

    #[test]
    fn dropped_connections_are_a_caveat() {
        let mut bench = Bench::closed(&[Variant::H1]).monitored(&[(Quantity::ListenDrops, 0)]);
        bench.records[1].readings.clear();
        bench = bench.read(2, Quantity::ListenDrops, 7).read(2, Quantity::ListenOverflows, 5);
        caveats(&bench, &["listen_overflow"]);
        let summary = bench.summary();
        let check = summary.cells[0].validity.iter().find(|check| check.check == "listen_overflow").unwrap();
        assert_eq!(check.measured, "7 in 1 of 4 runs, 5 of them due to a full queue");
    }

    #[test]
    fn without_a_monitor_there_is_nothing_to_judge() {
        silent("listen_overflow", &Bench::closed(&[Variant::H1]));
    }
}
