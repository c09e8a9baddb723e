//! A server answers its first request as fast as later ones.
//!
//! Every run starts the server. A program that compiles on demand, loads modules with its first request or
//! fills caches then answers the first requests later than it would after a while. The first request of a run
//! waits for such a server alone; later requests also compete with each other for the network, so that their
//! lower quartile is a cautious reference. If all requests are sent at once, or the client does not report
//! their times, only a warm-up can tell that compared servers were warm.

use model::number;

use super::{Check, CheckOutcome, Context, Finding, GroupFacts, check, percent, time};
use crate::table::Table;

pub(super) const CHECK: Check = Check {
    measures: "the median over runs of the time by which the first request waited longer for its first byte than \
               the lower quartile of the requests (of the same URL in loops), less the think time of a page's document, as a \
               share of the run; 3 or more requests",
    passes: "within the margin, or at most 5 ms",
    caveat: "up to 50 %; in comparisons of servers also not judged: a loop without `warm` in which fewer than a quarter of the \
             requests were sent after the first was answered, or whose client does not report when",
    invalidates: "more",
    why: "Every run starts the server; users meet a server that has run for a while.",
    remedy: "Let a separate client use the server before each run: `warm = \"1000 requests\"` or `warm = \"5s\"`. If \
             the study asks about a cold server, say so and accept the check.",
    reads: &[Table::Clients],
    ..check("cold_server", judge)
};

/// Scheduling, caches of the processor and the first packets of a connection cost this much at most.
const ALLOWED_NS: f64 = 5e6;
/// Fewer requests have no meaningful quartile.
const LEAST_REQUESTS: u64 = 3;
/// A larger share invalidates.
const INVALID_SHARE: f64 = 0.5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut first_waits = context.own.ok().flat_map(|run| &run.groups).filter_map(|facts| facts.first_wait);
    let is_loop = context.plan.workload_of(&context.own.cell.group).workload.as_loop().is_some();
    if is_loop && context.compares_servers() && !first_waits.any(|first| first.has_later) {
        return unknown(context);
    }
    let thinking_ns = number::float(thinking_ns(context));
    let excess_ns = |facts: &GroupFacts| Some(excess_ns(facts)? - thinking_ns);
    let share = |facts: &GroupFacts| Some(excess_ns(facts)? / number::float(facts.busy_ns.max(1)));
    let share = context.own.median(|run| largest(&run.groups, share))?;
    let excess_ns = context.own.median(|run| largest(&run.groups, excess_ns))?;
    let margin = context.plan.margin_share;
    let result = match share {
        share if excess_ns <= ALLOWED_NS || share <= margin => CheckOutcome::Pass,
        share if share <= INVALID_SHARE => CheckOutcome::Caveat,
        _ => CheckOutcome::Invalid,
    };
    let (longer, of_run) = (time(excess_ns.max(0.0)), percent(share.max(0.0)));
    Some(Finding {
        result,
        measured: format!("first request {longer} later than usual, {of_run} of the run"),
        threshold: format!(
            "{} of the run, or {}; invalid beyond {}",
            percent(margin),
            time(ALLOWED_NS),
            percent(INVALID_SHARE)
        ),
    })
}

/// The finding without enough requests that met a warmer server than the first one.
fn unknown(context: &Context<'_>) -> Option<Finding> {
    context.own.ok().next()?;
    let Some(warm) = context.plan.warm else {
        let reason = "fewer than a quarter of the requests are known to have been sent after the first was answered, and the \
             study has no `warm`";
        return Some(Finding::not_reported(reason));
    };
    let measured = format!("warmed up by {warm} before each run");
    Some(Finding::pass_or_caveat(true, measured, "a first request like the others, or a warm-up"))
}

/// How much longer the first request waited than most.
fn excess_ns(facts: &GroupFacts) -> Option<f64> {
    let first = facts.first_wait.filter(|first| first.requests >= LEAST_REQUESTS)?;
    Some(first.first_ns - first.quartile_ns)
}

/// How long the server is told to take for the document of the page, whose request is the first.
fn thinking_ns(context: &Context<'_>) -> u64 {
    let page = context.plan.workload_of(&context.own.cell.group).workload.page();
    page.map_or(0, |page| {
        let wait_ns = page.resources.first().map_or(0, |document| document.wait_ns);
        wait_ns.saturating_add(page.delivery.document_delay_ns)
    })
}

fn largest(groups: &[GroupFacts], of: impl Fn(&GroupFacts) -> Option<f64>) -> Option<f64> {
    groups.iter().filter_map(of).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use model::plan::Level;
    use model::units::NANOS_PER_MS;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    /// The first request of every run waits this much longer, and everything ends that much later.
    fn cold(bench: Bench, longer_ns: u64) -> Bench {
        let mut bench = bench;
        for record in &mut bench.records {
            let first = record.samples.iter().filter_map(|sample| sample.sent_ns).min();
            for sample in &mut record.samples {
                let is_first = sample.sent_ns == first;
                if is_first && let Some(ns) = &mut sample.first_byte_ns {
                    *ns += longer_ns;
                }
                if is_first && let Some(ns) = &mut sample.done_ns {
                    *ns += longer_ns;
                }
            }
            for client in &mut record.clients {
                client.finished_ns += longer_ns;
            }
        }
        bench
    }

    #[test]
    fn a_first_request_like_the_others_passes() {
        passes("cold_server", &Bench::closed(&[Variant::H1s]));
        passes("cold_server", &cold(Bench::closed(&[Variant::H1s]), 4 * NANOS_PER_MS));
    }

    #[test]
    fn the_think_time_of_a_document_is_not_that_of_a_cold_server() {
        let longer_ns = 400 * NANOS_PER_MS;
        let mut bench = Bench::page(&[Variant::H1s]);
        for record in &mut bench.records {
            for sample in record.samples.iter_mut().filter(|sample| sample.url == 0) {
                sample.first_byte_ns = sample.first_byte_ns.map(|ns| ns + longer_ns);
                sample.done_ns = sample.done_ns.map(|ns| ns + longer_ns);
            }
            record.clients.iter_mut().for_each(|client| client.finished_ns += longer_ns);
        }
        assert_ne!(result(&bench), CheckOutcome::Pass);
        for named in &mut bench.plan.workloads {
            if let model::Workload::Page(page) = &mut named.workload {
                page.resources[0].wait_ns = longer_ns;
            }
        }
        passes("cold_server", &bench);
    }

    fn result(bench: &Bench) -> CheckOutcome {
        let summary = bench.summary();
        summary.cells[0].validity.iter().find(|check| check.check == "cold_server").unwrap().result
    }

    #[test]
    fn a_late_first_request_is_a_caveat_and_a_run_that_waits_for_it_invalid() {
        let bench = Bench::closed(&[Variant::H1s]);
        let busy_ns = bench.records[0].clients[0].finished_ns - bench.records[0].clients[0].started_ns;
        assert_eq!(result(&cold(Bench::closed(&[Variant::H1s]), busy_ns / 2)), CheckOutcome::Caveat);
        assert_eq!(result(&cold(bench, busy_ns * 3)), CheckOutcome::Invalid);
    }

    /// All requests are sent at once, to several servers.
    fn burst() -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.plan.baseline = Level { factor: "server".to_owned(), value: "origin".to_owned() };
        for record in &mut bench.records {
            let first = record.samples.iter().filter_map(|sample| sample.sent_ns).min();
            record.samples.iter_mut().for_each(|sample| sample.sent_ns = first);
        }
        bench
    }

    #[test]
    fn servers_that_a_burst_compares_need_a_warm_up() {
        let summary = burst().summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "cold_server").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        assert!(found.measured.starts_with("not judged: fewer than a quarter"), "{}", found.measured);
        let mut warm = burst();
        warm.plan.warm = Some("100 requests".parse().unwrap());
        passes("cold_server", &warm);
        // Without a comparison of servers, a burst is judged like other loads.
        let mut alone = burst();
        alone.plan.baseline.factor = "variant".to_owned();
        passes("cold_server", &alone);
    }

    /// A slow client sends the last requests of a burst after the first answer.
    #[test]
    fn stragglers_of_a_burst_are_no_reference() {
        let with_later = |share: usize| {
            let mut bench = burst();
            for record in &mut bench.records {
                let later = record.samples.len() / share;
                for sample in record.samples.iter_mut().rev().take(later) {
                    sample.sent_ns = sample.first_byte_ns;
                }
            }
            result(&bench)
        };
        assert_eq!(with_later(10), CheckOutcome::Caveat);
        assert_eq!(with_later(2), CheckOutcome::Pass);
    }

    #[test]
    fn a_few_requests_have_no_usual_wait() {
        let mut bench = Bench::closed(&[Variant::H1s]);
        bench.records.iter_mut().for_each(|record| record.samples.truncate(2));
        silent("cold_server", &bench);
    }
}
