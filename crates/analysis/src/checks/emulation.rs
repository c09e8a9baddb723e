//! The study's network was emulated.

use super::{Check, Context, Finding, check_none_wrong};
use crate::table::Table;

pub(super) const CHECK: Check = Check {
    measures: "runs on an impaired network that were not calibrated: the network was not emulated",
    why: "Without the study's network, the numbers are those of the bare machine.",
    remedy: "Run `h123 doctor`: it reports what the machine lacks for namespaces, and how to get it.",
    reads: &[Table::RoundTrips],
    ..check_none_wrong("emulation", judge)
};

/// Only an emulated path can be calibrated.
fn judge(context: &Context<'_>) -> Option<Finding> {
    if !context.plan.network_of(context.own.cell).is_impaired() {
        return None;
    }
    let all = context.own.ok().count() as u64;
    let without = context.own.ok().filter(|run| run.calibration.is_none()).count() as u64;
    let detail = if without > 0 { ": network not emulated" } else { "" };
    Finding::none_of(without, all, "runs without it", detail)
}

#[cfg(test)]
mod tests {
    use model::network::LinkRate;
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    #[test]
    fn an_emulated_network_passes() {
        let mut bench = Bench::page(&[Variant::H1]);
        passes("emulation", &bench);
        bench.plan.networks[0].up.delay_ns = 0;
        bench.plan.networks[0].down.delay_ns = 0;
        bench.plan.networks[0].down.rate = LinkRate::Unlimited;
        bench.plan.networks[0].up.rate = LinkRate::Unlimited;
        silent("emulation", &bench);
    }

    #[test]
    fn a_missing_network_invalidates() {
        let mut bench = Bench::page(&[Variant::H1]);
        for record in &mut bench.records {
            record.round_trips.clear();
            record.links.clear();
        }
        let found = fails("emulation", &bench);
        assert_eq!(found.measured, "5 of 5 runs without it: network not emulated");
    }
}
