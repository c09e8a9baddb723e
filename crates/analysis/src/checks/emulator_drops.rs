//! The emulator dropped no frames except as planned.

use super::{Check, Context, Finding, Table, check_none_wrong};

pub(super) const CHECK: Check = Check {
    measures: "frames lost because the emulator could not keep up",
    why: "A frame that the emulator lost because it could not keep up looks like loss on the network.",
    remedy: "Let nothing else run on the machine, lower the network's rate, or give the emulator real-time \
             priority.",
    reads: &[Table::Links],
    ..check_none_wrong("emulator_drops", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut lost, mut all) = (0, 0);
    for link in context.own.ok().flat_map(|run| &run.links) {
        for direction in [&link.up, &link.down] {
            lost += direction.lost_overload;
            all += direction.packets_in;
        }
    }
    let emulated = context.own.ok().any(|run| !run.links.is_empty());
    if emulated { Finding::none_of(lost, all, "frames", "") } else { None }
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes};

    #[test]
    fn no_drop_passes_and_configured_loss_too() {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.records[0].links[0].down.lost_configured = 5;
        bench.records[0].links[0].down.lost_queue = 5;
        passes("emulator_drops", &bench);
    }

    #[test]
    fn one_frame_lost_to_overload_invalidates() {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.records[2].links[0].down.lost_overload = 1;
        assert_eq!(fails("emulator_drops", &bench).measured, "1 of 200 frames");
    }
}
