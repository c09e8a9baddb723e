//! QUIC and TCP have the same sending behaviour.

use model::pins::CongestionControl;
use model::record::Sending;

use super::{Check, Context, Finding, Side, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "QUIC against TCP: congestion control, initial window, pacing and segmentation offload (GSO) \
               of the server's QUIC, according to its description, compared with the pins for TCP",
    passes: "equal; or QUIC paces and TCP does not, which belongs to the compared stacks (a note of the method)",
    caveat: "different, or unknown",
    why: "A difference in congestion control, initial window, pacing or segmentation offload is a \
          difference of transports, not of HTTP versions.",
    remedy: "Set `congestion_control` and `initial_window` in `[hold]` to what the server's QUIC does, and \
             configure the rest where it can be (`quic_gso`); otherwise state that you compare stacks.",
    reads: &[Table::Servers],
    ..check("transports_match", judge)
};

/// The properties that are compared, in the order of [`Sending::values`].
const RULES: [&str; 4] = ["congestion control", "initial window", PACING, "segmentation offload (GSO)"];
/// QUIC paces by RFC 9002, section 7.7. Nobody can switch this off in most servers, and Linux's TCP on by a
/// pin: it is a property of the compared stacks.
const PACING: &str = "pacing";

/// Compares the description of the server's QUIC with the pins for TCP. Linux paces TCP only with BBR (a lab
/// has no `fq`), and always offloads its segmentation.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    let (quic, tcp) = match (is_quic(&context.own), is_quic(baseline)) {
        (true, false) => (&context.own, baseline),
        (false, true) => (baseline, &context.own),
        _ => return None,
    };
    let pins = context.plan.pins_of(tcp.cell);
    let paced = if pins.congestion_control == CongestionControl::Bbr { "yes" } else { "no" };
    let window = pins.initial_window_packets.to_string();
    let of_tcp = [pins.congestion_control.name(), &window, paced, "yes"];
    let sends: Sending = quic.ok().map(|run| run.sends.clone()).next()?;
    let [congestion_control, initial_window, pacing, gso, _] = sends.values();
    let of_quic = [congestion_control, initial_window, pacing, gso];
    let of = |is_wanted: fn(Option<&str>, &str) -> bool| -> Vec<String> {
        let both = RULES.iter().zip(of_quic.iter().zip(of_tcp));
        both.filter(|(rule, (quic, tcp))| {
            is_wanted(**quic, tcp) && !(**rule == PACING && **quic == Some("yes"))
        })
        .map(|(rule, (quic, tcp))| format!("{rule}: QUIC {}, TCP {tcp}", quic.unwrap_or("unknown")))
        .collect()
    };
    let (other, unknown) =
        (of(|quic, tcp| quic.is_some_and(|quic| quic != tcp)), of(|quic, _| quic.is_none()));
    let is_equal = other.is_empty() && unknown.is_empty();
    let measured = match is_equal {
        true => "equal".to_owned(),
        false => [other, unknown].concat().join("; "),
    };
    Some(Finding::pass_or_caveat(is_equal, measured, format!("equal: {}", RULES.join(", "))))
}

fn is_quic(side: &Side<'_>) -> bool {
    side.cell.group.variant.is_quic()
}

#[cfg(test)]
mod tests {
    use model::record::Sending;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::{CheckOutcome, CheckResult};

    fn sending(values: [Option<&str>; 4]) -> Bench {
        let mut bench = Bench::page(&[Variant::H2, Variant::H3]);
        let [congestion_control, initial_window, pacing, gso] = values.map(|value| value.map(str::to_owned));
        for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
            record.servers[0].sends = Sending::of([
                congestion_control.clone(),
                initial_window.clone(),
                pacing.clone(),
                gso.clone(),
                None,
            ]);
        }
        bench
    }

    fn found(bench: &Bench) -> CheckResult {
        let summary = bench.summary();
        summary.cells[1].validity.iter().find(|check| check.check == "transports_match").unwrap().clone()
    }

    #[test]
    fn the_same_rules_pass_and_two_of_tcp_are_not_judged() {
        passes("transports_match", &sending([Some("cubic"), Some("10"), Some("no"), Some("yes")]));
        // The origin's own QUIC: nobody who reads this could act on it.
        passes("transports_match", &sending([Some("cubic"), Some("10"), Some("yes"), Some("yes")]));
        silent("transports_match", &Bench::page(&[Variant::H1s, Variant::H2]));
    }

    #[test]
    fn other_rules_and_unknown_ones_are_a_caveat() {
        let other = found(&sending([Some("reno"), Some("32"), Some("yes"), None]));
        assert_eq!(other.result, CheckOutcome::Caveat);
        assert_eq!(
            other.measured,
            "congestion control: QUIC reno, TCP cubic; initial window: QUIC 32, TCP 10; \
             segmentation offload (GSO): QUIC unknown, TCP yes"
        );
        let batches = found(&sending([Some("cubic"), Some("10"), Some("no"), Some("no")]));
        assert_eq!(batches.measured, "segmentation offload (GSO): QUIC no, TCP yes");
    }
}
