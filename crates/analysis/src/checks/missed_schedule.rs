//! The requests of an open loop were sent when they were due.
//!
//! Latency counts from the intended time, so that a request that was sent late does not look fast (G. Tene's
//! "coordinated omission"). A request is sent late for two reasons. While the server holds every connection,
//! it waits for a free one: this time belongs to the latency, as it does for users who queue. The time that
//! it waits in the client although a connection is free, for CPU, does not. Two values show how much:
//!
//! - *the client's lag*, sent − the later of intended and a free connection: the 99th percentile of the
//!   median run, compared with the 99th percentile of the request time, which contains it. Within the study's
//!   margin it cannot change a verdict. Neither can 100 µs, the accuracy that the generator promises on its
//!   own core, if requests are so short that their margin is smaller. Up to a half, the tail is still mostly
//!   the server's and the network's. Above, it is mostly the client's.
//! - *never sent*: the queue was full, or the run ended first. A rate counts as kept within 0.1 %. Above 1 %,
//!   the load differed from the study's. If the server held every connection, the server caused this: the
//!   percentiles lack these requests, which is a caveat.

use model::number;
use model::units::NANOS_PER_US;

use super::{
    Check, CheckOutcome, Context, Finding, GroupFacts, RunSummary, Side, Table, check, grade, percent, time,
};

pub(super) const CHECK: Check = Check {
    measures: "open loops: (a) the 99th percentile of the client's lag, sent − the later of the intended \
               time and a free connection, in the median run, as a share of the request time's; (b) the \
               share of due requests that were never sent although a connection was free; (c) the share that \
               was never sent because the server held every connection",
    passes: "(a) margin, or 100 µs if that is more; (b) and (c) 0.1 %",
    caveat: "(a) up to 50 %; (b) up to 1 %; (c) more",
    invalidates: "(a) or (b) more",
    why: "If the client sends requests late or never, the load differs from the study's, and the delay is \
          part of their latency. A wait for a server that holds every connection is part of the server's \
          latency.",
    remedy: "Use a lower rate or a longer warm-up, allow more connections or streams, or give the client \
             its own core.",
    reads: &[Table::Clients],
    ..check("missed_schedule", judge)
};

/// The accuracy that the generator promises. It passes for any request time.
const PROMISED_NS: f64 = 100.0 * NANOS_PER_US as f64;
/// A share of the request time's 99th percentile. Above it, the tail is mostly the queue in the client.
const INVALID_LAG_SHARE: f64 = 0.5;
/// Shares of all requests that were due.
const PASS_UNSENT_SHARE: f64 = 0.001;
const INVALID_UNSENT_SHARE: f64 = 0.01;

/// Judged if a client group has an open loop.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let largest = |lag: fn(&GroupFacts) -> u64| {
        context.own.median(|run: &RunSummary| open(run).map(lag).max().map(number::float))
    };
    let (all_ns, lag_ns) = (largest(|facts| facts.lag_p99_ns)?, largest(|facts| facts.own_lag_p99_ns)?);
    let never_sent = |share: fn(&GroupFacts) -> u64| context.own.median(|run| unsent_share(run, share));
    let unsent = never_sent(|facts| facts.never_sent.saturating_sub(facts.never_sent_held))?;
    let held = never_sent(|facts| facts.never_sent_held)?;
    let allowed = context.plan.margin_share;
    let held_result = grade(held, PASS_UNSENT_SHARE, f64::INFINITY);
    let mut result = grade(unsent, PASS_UNSENT_SHARE, INVALID_UNSENT_SHARE).max(held_result);
    let mut of_latency = String::new();
    match request_p99_ns(&context.own).map(|p99_ns| lag_ns / p99_ns) {
        Some(share) => {
            of_latency = format!(", {} of the request time's", percent(share));
            if lag_ns > PROMISED_NS {
                result = result.max(grade(share, allowed, INVALID_LAG_SHARE));
            }
        }
        // Without any request that succeeded, other checks invalidate.
        None if lag_ns > PROMISED_NS => result = result.max(CheckOutcome::Caveat),
        None => {}
    }
    let mut measured =
        format!("sent {} late by the client (p99{of_latency}), {} never sent", time(lag_ns), percent(unsent));
    if held > 0.0 || all_ns > lag_ns.max(PROMISED_NS) {
        let (all, held) = (time(all_ns), percent(held));
        measured =
            format!("{measured}; while the server held every connection: {all} late, {held} never sent");
    }
    let [allowed, pass, lag, unsent] =
        [allowed, PASS_UNSENT_SHARE, INVALID_LAG_SHARE, INVALID_UNSENT_SHARE].map(percent);
    let promised = time(PROMISED_NS);
    let threshold =
        format!("{promised} or {allowed} late, {pass} never sent; invalid beyond {lag} and {unsent}");
    Some(Finding { result, measured, threshold })
}

fn open(run: &RunSummary) -> impl Iterator<Item = &GroupFacts> {
    run.groups.iter().filter(|facts| facts.is_open)
}

fn unsent_share(run: &RunSummary, count: fn(&GroupFacts) -> u64) -> Option<f64> {
    let (mut unsent, mut due) = (0, 0);
    for facts in open(run) {
        unsent += count(facts);
        due += facts.never_sent + facts.rows;
    }
    (due > 0).then(|| number::float(unsent) / number::float(due))
}

fn request_p99_ns(side: &Side<'_>) -> Option<f64> {
    Some(side.summary.metrics.get("request_time")?.p99.value).filter(|ns| *ns > 0.0)
}

#[cfg(test)]
mod tests {
    use model::assignment::Lag;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// Requests take 160 ms, a margin of that is 4.8 ms.
    fn with(p99_ns: u64, never_sent: u64) -> Bench {
        let mut bench = Bench::open(&[Variant::H2]);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.lag = Lag { p50_ns: p99_ns / 2, p99_ns, max_ns: 2 * p99_ns };
            client.own_lag = client.lag;
            client.never_sent = never_sent;
        }
        bench
    }

    #[test]
    fn a_schedule_that_was_kept_passes() {
        passes("missed_schedule", &with(50_000, 0));
        passes("missed_schedule", &with(4_000_000, 0));
    }

    #[test]
    fn lateness_beyond_the_margin_is_a_caveat_then_invalid() {
        caveats(&with(10_000_000, 0), &["missed_schedule"]);
        let found = fails("missed_schedule", &with(100_000_000, 0));
        assert!(found.measured.starts_with("sent 100 ms late by the client (p99, 6"), "{}", found.measured);
    }

    /// The same lateness, while the server holds every connection.
    fn held(p99_ns: u64, never_sent: u64) -> Bench {
        let mut bench = with(p99_ns, never_sent);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.own_lag = Lag::default();
            client.never_sent_held = never_sent;
        }
        bench
    }

    #[test]
    fn a_server_that_stalls_does_not_miss_the_clients_schedule() {
        passes("missed_schedule", &held(100_000_000, 0));
        let bench = held(100_000_000, 5);
        caveats(&bench, &["missed_schedule"]);
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "missed_schedule").unwrap();
        let expected = "; while the server held every connection: 100 ms late, 9.09% never sent";
        assert!(found.measured.ends_with(expected), "{}", found.measured);
    }

    #[test]
    fn short_requests_bear_the_generators_own_accuracy() {
        let mut bench = with(90_000, 0);
        bench.on_lan();
        passes("missed_schedule", &bench);
    }

    #[test]
    fn requests_that_were_never_sent_invalidate() {
        // Fifty were sent.
        let found = fails("missed_schedule", &with(0, 50));
        assert!(found.measured.ends_with("50% never sent"), "{}", found.measured);
        fails("missed_schedule", &with(0, 1));
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        silent("missed_schedule", &Bench::closed(&[Variant::H2]));
        silent("missed_schedule", &Bench::page(&[Variant::H2]));
    }
}
