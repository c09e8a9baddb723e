//! The client did not wait for a core.

use super::{Check, Context, Finding, GroupFacts, RunSummary, Table, check, percent, waiting};

pub(super) const CHECK: Check = Check {
    measures: "the share of its time that the client was runnable but had no core, in the median run and in each run; \
               threads that wait for others of the same client are not counted. Not of browsers, whose threads share \
               the client's cores",
    passes: "margin, or 3 ms if that is more (at most 25 %), in at least nine of ten runs",
    caveat: "up to 50 %",
    invalidates: "more",
    why: "Time that the client waits for a core counts as the server's or the network's.",
    remedy: "Let nothing else run on the machine, or give it more cores.",
    reads: &[Table::Clients],
    ..check("client_waited", judge)
};

/// Beyond this share, the measurement is mostly waiting.
const INVALID_SHARE: f64 = 0.5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    // The threads of a browser wait for each other on the client's cores, which is how it loads a page there.
    if context.is_in_browser() {
        return None;
    }
    let share = |facts: &GroupFacts| waiting::client_share(context, facts);
    let worst = |run: &RunSummary| run.groups.iter().filter_map(share).reduce(f64::max);
    let shares = context.own.disturbance(worst)?;
    let allowed = waiting::allowed_share(context)?;
    let threshold = format!("{}; invalid beyond {}", percent(allowed), percent(INVALID_SHARE));
    let measured = shares.describe(allowed, INVALID_SHARE, "of the client's time");
    Some(Finding { result: shares.grade(allowed, INVALID_SHARE), measured, threshold })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes};

    fn with_waiting(busy_ns: u64, run_queue_ns: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.started_ns = 1_000;
            client.finished_ns = 1_000 + busy_ns;
            client.cpu_user_ns = 0;
            client.run_queue_ns = run_queue_ns;
        }
        bench
    }

    #[test]
    fn waiting_within_the_margin_or_a_slice_passes() {
        passes("client_waited", &with_waiting(1_000_000_000, 29_000_000));
        passes("client_waited", &with_waiting(4_000_000, 900_000));
    }

    #[test]
    fn threads_of_one_client_may_wait_for_each_other() {
        let mut bench = with_waiting(1_000_000_000, 90_000_000_000);
        fails("client_waited", &bench);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.cpu_user_ns = 980_000_000;
        }
        passes("client_waited", &bench);
    }

    #[test]
    fn waiting_in_a_minority_of_runs_is_a_caveat() {
        let mut bench = with_waiting(1_000_000_000, 29_000_000);
        bench.records[3].clients[0].run_queue_ns = 600_000_000;
        caveats(&bench, &["client_waited"]);
    }

    #[test]
    fn more_is_a_caveat_then_invalid() {
        caveats(&with_waiting(1_000_000_000, 40_000_000), &["client_waited"]);
        caveats(&with_waiting(4_000_000, 1_500_000), &["client_waited"]);
        fails("client_waited", &with_waiting(1_000_000_000, 600_000_000));
    }
}
