//! Jitter does not reorder packets unlike real paths.

use model::network::{Direction, Network, Order};
use model::number;

use super::{Check, Context, Finding, Table, check, percent_beside};

pub(super) const CHECK: Check = Check {
    measures: "on networks whose jitter may reorder packets (`order = \"free\"`): the share of packets that overtook \
               others, over all runs",
    passes: "up to 0.1 %",
    caveat: "more, or not counted (netem)",
    why: "If each packet draws its own delay, packets that closely follow each other change places. TCP and QUIC take \
          this for loss and send packets again. Delay on real paths varies slowly and keeps the order.",
    remedy: "Let the jitter keep the order (`order = \"kept\"`, the default), unless the network in question reorders.",
    reads: &[Table::Links],
    ..check("jitter_order", judge)
};

/// Real paths seldom reorder more.
const MOST: f64 = 0.001;

fn judge(context: &Context<'_>) -> Option<Finding> {
    may_overtake(context.plan.network_of(context.own.cell)).then_some(())?;
    let links = || context.own.ok().flat_map(|run| &run.links).flat_map(|link| [&link.up, &link.down]);
    let all: u64 = links().map(|direction| direction.packets_in).sum();
    if all == 0 {
        return None;
    }
    let threshold = "at most 0.1% of the packets";
    // The kernel does not count them.
    let Some(overtook) = links().map(|direction| direction.reordered).sum::<Option<u64>>() else {
        return Some(Finding::pass_or_caveat(
            false,
            "packets may overtake each other; not counted",
            threshold,
        ));
    };
    let share = number::float(overtook) / number::float(all);
    let measured = format!("{} of the packets overtook others", percent_beside(share, &[MOST]));
    Some(Finding::pass_or_caveat(share <= MOST, measured, threshold))
}

/// Whether jitter lets packets overtake each other, at the beginning or after a change.
fn may_overtake(network: &Network) -> bool {
    let is_free = |direction: &Direction| {
        direction
            .jitter
            .as_ref()
            .is_some_and(|jitter| jitter.spread_ns > 0 && matches!(jitter.order, Order::Free { .. }))
    };
    let changes = network.timeline.iter().flat_map(|change| [&change.up, &change.down]);
    is_free(&network.up) || is_free(&network.down) || changes.into_iter().any(is_free)
}

#[cfg(test)]
mod tests {
    use model::network::{Distribution, Jitter};
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, caveats, passes, silent};

    fn with(order: Order, reordered: Option<u64>) -> Bench {
        let mut bench = Bench::page(&[Variant::H2c]);
        bench.plan.networks[0].up.jitter =
            Some(Jitter { spread_ns: 15_000_000, distribution: Distribution::Normal, order });
        for direction in bench.records.iter_mut().flat_map(|record| &mut record.links) {
            direction.up.reordered = reordered;
            direction.down.reordered = Some(0);
        }
        bench
    }

    #[test]
    fn packets_that_overtake_others_are_a_caveat() {
        let free = Order::Free { correlation: 0.0 };
        caveats(&with(free, Some(3)), &["jitter_order"]);
        caveats(&with(free, None), &["jitter_order"]);
        passes("jitter_order", &with(free, Some(0)));
        silent("jitter_order", &with(Order::Kept { correlation_ns: 1 }, Some(3)));
        silent("jitter_order", &Bench::page(&[Variant::H1]));
    }
}
