//! Server time is the server's, not the time in which the client receives the response.

use model::class::split_metric;

use super::{Check, Context, Finding, Table, check, percent, time};

pub(super) const CHECK: Check = Check {
    measures: "where `server_time` is the metric: the share of its median that follows the beginning of the \
               response (`server_time` without `server_time_before_response`)",
    passes: "50 %",
    caveat: "more",
    why: "A server's time ends with the last byte that it hands on. While a client or the network receives a long \
          response slowly, that time runs: it then measures the receiver as well.",
    remedy: "Read `server_time_before_response` next to it, which lacks the draining. Give the clients cores and a \
             network that receive faster than the server sends.",
    reads: &[Table::ServerRequests],
    ..check("server_draining", judge)
};

/// Up to this share, most of the time is the server's.
const ALLOWED_SHARE: f64 = 0.5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    if split_metric(&context.plan.metric).0 != "server_time" {
        return None;
    }
    let whole_ns = context.own.median(|run| run.value("server_time"))?;
    let before_ns = context.own.median(|run| run.value("server_time_before_response"))?;
    let share = if whole_ns > 0.0 { (1.0 - before_ns / whole_ns).max(0.0) } else { 0.0 };
    Some(Finding::pass_or_caveat(
        share <= ALLOWED_SHARE,
        format!(
            "{} of {} while the client receives the response, {} before",
            percent(share),
            time(whole_ns),
            time(before_ns)
        ),
        format!("at most {} while the client receives", percent(ALLOWED_SHARE)),
    ))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    /// Server times of 2 ms, of which the client receives the response for the last `transfer_ns`.
    fn served(transfer_ns: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000);
        bench.plan.metric = "server_time".to_owned();
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.first_byte_ns = sample.done_ns.map(|done_ns| done_ns - transfer_ns);
        }
        bench
    }

    #[test]
    fn a_short_response_passes_and_a_drained_one_is_a_caveat() {
        passes("server_draining", &served(900_000));
        let long = served(1_500_000);
        caveats(&long, &["server_draining"]);
        let summary = long.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "server_draining").unwrap();
        assert_eq!(found.measured, "75% of 2 ms while the client receives the response, 500 µs before");
        silent("server_draining", &Bench::closed(&[Variant::H1]).served(1_000));
    }

    #[test]
    fn packets_tell_when_the_response_began() {
        let mut bench = served(1_500_000);
        for row in bench.records.iter_mut().flat_map(|record| &mut record.server_requests) {
            (row.arrived_ns, row.first_sent_ns) = (Some(1_000), Some(1_801_000));
        }
        passes("server_draining", &bench);
    }
}
