//! The DNS lookup took one round trip to the name server.

use model::number;
use model::units::NANOS_PER_MS;

use super::{Check, CheckOutcome, Context, Distribution, Finding, Table, check, time};
use crate::metrics::DNS_LOOKUP_TIME;

pub(super) const CHECK: Check = Check {
    measures: "with `dns`: the median DNS lookup, minus the round trip to the name server",
    passes: "up to the margin × RTT, or 5 ms if that is more",
    caveat: "up to 20 times as much",
    invalidates: "more; a lookup shorter than the round trip; or a run without one",
    why: "If a name is resolved locally or several times, the load differs from the study's.",
    remedy: "See the run's `names.log`, and what else resolves names on this machine (nsswitch.conf(5)).",
    reads: &[Table::Clients],
    ..check("dns_lookup", judge)
};

/// The time that resolver and name server take themselves, if the margin of interest allows less.
const FLOOR_NS: f64 = 5.0 * NANOS_PER_MS as f64;
/// More than this many times the allowance invalidates: resolvers retry after seconds.
const INVALID_FACTOR: f64 = 20.0;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let expected_ns = number::float(context.plan.dns_rtt_ns?);
    let runs = context.own.ok().count();
    if runs == 0 {
        return None;
    }
    let times: Vec<f64> = context.own.ok().filter_map(|run| run.value(DNS_LOOKUP_TIME)).collect();
    let allowed_ns = (context.plan.margin_share * expected_ns).max(FLOOR_NS);
    let threshold = format!("{} + {}", time(expected_ns), time(allowed_ns));
    let invalid =
        |measured| Some(Finding { result: CheckOutcome::Invalid, measured, threshold: threshold.clone() });
    if times.len() < runs {
        return invalid(format!("{} of {runs} runs made no DNS lookup", runs - times.len()));
    }
    let shortest = times.iter().copied().fold(f64::INFINITY, f64::min);
    if shortest < expected_ns {
        return invalid(format!("a DNS lookup in {}", time(shortest)));
    }
    let median = times.into_iter().collect::<Distribution>().median()?;
    let measured = time(median);
    Some(Finding::graded(median - expected_ns, allowed_ns, INVALID_FACTOR * allowed_ns, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::assignment::DnsLookup;
    use model::units::NANOS_PER_MS;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// Loads that begin with a DNS lookup that takes this long, at a name server 20 ms away.
    fn bench(took_ms: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.plan.dns_rtt_ns = Some(20 * NANOS_PER_MS);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.dns_lookup = Some(DnsLookup { began_ns: 0, ended_ns: took_ms * NANOS_PER_MS });
        }
        bench
    }

    #[test]
    fn a_round_trip_and_little_more_pass() {
        passes("dns_lookup", &bench(20));
        passes("dns_lookup", &bench(24));
        silent("dns_lookup", &Bench::page(&[Variant::H2]));
    }

    #[test]
    fn a_slow_answer_is_caveated_and_one_after_a_second_try_invalidated() {
        caveats(&bench(30), &["dns_lookup"]);
        assert_eq!(fails("dns_lookup", &bench(5_020)).measured, "5.02 s");
    }

    #[test]
    fn a_local_answer_or_none_invalidates() {
        assert_eq!(fails("dns_lookup", &bench(1)).measured, "a DNS lookup in 1 ms");
        let mut bench = bench(20);
        bench.records[2].clients[0].dns_lookup = None;
        assert_eq!(fails("dns_lookup", &bench).measured, "1 of 5 runs made no DNS lookup");
    }

    #[test]
    fn looking_up_is_part_of_the_load() {
        let load_time = |bench: &Bench| bench.summary().cells[0].metrics["page_load_time"].median.value;
        let (known, mut looked_up) = (Bench::page(&[Variant::H2]), bench(20));
        for record in &mut looked_up.records {
            let opened_ns = record.connections[0].opened_ns;
            record.clients[0].dns_lookup =
                Some(DnsLookup { began_ns: opened_ns, ended_ns: opened_ns + 20 * NANOS_PER_MS });
            record.connections.iter_mut().for_each(|row| row.opened_ns += 20 * NANOS_PER_MS);
        }
        assert_eq!(load_time(&looked_up), load_time(&known));
        looked_up.records.iter_mut().for_each(|record| record.clients[0].dns_lookup = None);
        assert!(load_time(&looked_up) < load_time(&known), "without it the load begins with the connection");
    }
}
