//! The client's machine had enough ports and descriptors.

use model::number;
use model::sample::FailureKind;

use super::{Check, CheckOutcome, Context, Finding, Table, check, counted};

pub(super) const CHECK: Check = Check {
    measures: "requests that the client's system refused (ports, descriptors, memory); ports in use at once \
               in a client's node, and ports in TIME-WAIT before the run, as shares of Linux's 28 232",
    passes: "0; 80 %; 1 %",
    caveat: "more ports",
    invalidates: "1 or more refused",
    why: "A client without a free port or descriptor cannot send requests, and these failures are not the \
          server's.",
    remedy: "Raise `ulimit -n` and net.ipv4.ip_local_port_range, or reuse connections.",
    reads: &[Table::Monitor],
    ..check("client_limits", judge)
};

/// The ports that Linux uses for outgoing connections by default: 32768 to 60999.
const PORTS: f64 = 28_232.0;
/// Above this share, finding a free port takes time.
const SCARCE_SHARE: f64 = 0.8;
/// TIME-WAIT left from the previous run that cannot matter.
const FEW_BEFORE_SHARE: f64 = 0.01;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let failures = |kind| -> u64 {
        let groups = context.own.ok().flat_map(|run| &run.groups);
        groups.filter_map(|facts| facts.failures.get(&kind)).sum()
    };
    let refused = failures(FailureKind::System);
    let read = || context.own.ok().filter_map(|run| run.monitor);
    let ports = read().map(|facts| facts.client_ports).max();
    let before = read().map(|facts| facts.time_wait_before).max().unwrap_or(0);
    if refused == 0 && ports.is_none() {
        return None;
    }
    let share = number::float(ports.unwrap_or(0)) / PORTS;
    let is_scarce = share > SCARCE_SHARE || number::float(before) > FEW_BEFORE_SHARE * PORTS;
    let result = match (refused, is_scarce) {
        (1.., _) => CheckOutcome::Invalid,
        (0, true) => CheckOutcome::Caveat,
        (0, false) => CheckOutcome::Pass,
    };
    let measured = format!(
        "{} refused by the client's system; peak of {} ports in use, {before} in TIME-WAIT before",
        counted(refused, "request"),
        ports.map_or_else(|| "unknown".to_owned(), |ports| ports.to_string())
    );
    let threshold = format!(
        "0 refused; at most {:.0} of {PORTS:.0} ports, {:.0} in TIME-WAIT before",
        SCARCE_SHARE * PORTS,
        FEW_BEFORE_SHARE * PORTS
    );
    Some(Finding { result, measured, threshold })
}

#[cfg(test)]
mod tests {
    use model::monitor::{Quantity, SubjectKind};
    use model::sample::Outcome;
    use model::variant::Variant;

    use super::FailureKind;
    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// The client's node had this many sockets in TIME-WAIT at the begin and at the end.
    fn with_time_wait(begin: u64, end: u64) -> Bench {
        let bench = Bench::closed(&[Variant::H1]);
        let node = Some("client");
        let bench = bench.with_reading(node, SubjectKind::Sockets, Quantity::TimeWait, begin);
        bench.with_reading(node, SubjectKind::Sockets, Quantity::TimeWait, end)
    }

    #[test]
    fn ports_enough_pass() {
        passes("client_limits", &with_time_wait(0, 20_000));
        silent("client_limits", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn scarce_ports_are_a_caveat() {
        caveats(&with_time_wait(0, 25_000), &["client_limits"]);
        caveats(&with_time_wait(500, 600), &["client_limits"]);
    }

    #[test]
    fn a_client_without_ports_invalidates() {
        let mut bench = with_time_wait(0, 28_000);
        bench.records[0].samples[3].outcome = Outcome::failed(FailureKind::System, "no local port is free");
        let found = fails("client_limits", &bench);
        assert!(found.measured.starts_with("1 request refused"), "{found:?}");
    }
}
