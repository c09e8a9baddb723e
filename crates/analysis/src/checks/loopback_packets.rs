//! TCP and QUIC have packets of the same size.

use model::plan::DIRECT;

use super::{Check, Context, Finding, Side, check};

pub(super) const CHECK: Check = Check {
    measures: "whether QUIC is compared with TCP over the loopback interface",
    passes: "no",
    caveat: "yes",
    why: "The loopback interface carries TCP in packets of up to 64 kB and QUIC in datagrams of 1.4 kB, \
          unlike any network between two machines: TCP needs about forty times fewer packets.",
    remedy: "Compare them over an emulated network, where both have packets of the same size.",
    ..check("loopback_packets", judge)
};

/// Judged if nothing is emulated.
fn judge(context: &Context<'_>) -> Option<Finding> {
    if context.plan.topology.name != DIRECT {
        return None;
    }
    let baseline = context.baseline.as_ref()?;
    let is_quic = |side: &Side<'_>| side.cell.group.variant.is_quic();
    let differs = is_quic(&context.own) != is_quic(baseline);
    let measured =
        if differs { "QUIC against TCP over the loopback" } else { "the same transport in both cells" };
    Some(Finding::pass_or_caveat(!differs, measured, "the same transport, or an emulated network"))
}

#[cfg(test)]
mod tests {
    use model::plan::DIRECT;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    fn direct(variants: &[Variant]) -> Bench {
        let mut bench = Bench::page(variants);
        bench.plan.topology.name = DIRECT.to_owned();
        bench
    }

    #[test]
    fn one_transport_passes_and_an_emulated_network_is_not_judged() {
        passes("loopback_packets", &direct(&[Variant::H1s, Variant::H2]));
        silent("loopback_packets", &Bench::page(&[Variant::H2, Variant::H3]));
    }

    #[test]
    fn quic_against_tcp_is_a_caveat() {
        let summary = direct(&[Variant::H2, Variant::H3]).summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "loopback_packets").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
    }
}
