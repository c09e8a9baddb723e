//! The server's log contains the requests that clients measured.

use model::number;
use model::study::Requirement;

use super::{Check, CheckOutcome, Context, Finding, Table, check, metrics, percent};
use crate::server_time::ServerFacts;

pub(super) const CHECK: Check = Check {
    measures: "with `server_time = true`: the share of measured requests that succeeded and that are in the \
               server's log; and whether more than 1 % of these took longer at the server than at the \
               client, beyond the precision",
    passes: "99 %, and no",
    caveat: "less, or yes",
    invalidates: "none, in a study about server time",
    why: "Server times exist only for requests in its log, and the others may have been the slow ones.",
    remedy: "Describe the server's log under `[access_log]` in its server.toml, with the request id, and \
             make sure that it drops no lines.",
    reads: &[Table::Servers, Table::ServerRequests],
    ..check("server_time_joined", judge)
};

/// The share of requests that the log must contain.
const NEEDED_SHARE: f64 = 0.99;
/// The share that may take longer at the server than at the client.
const LONGER_SHARE: f64 = 0.01;

fn judge(context: &Context<'_>) -> Option<Finding> {
    if !context.plan.server_time {
        return None;
    }
    let sum = |count: fn(&ServerFacts) -> u64| context.own.sum(|facts| count(&facts.server));
    let (requests, in_log, longer) =
        (sum(|facts| facts.requests), sum(|facts| facts.joined), sum(|facts| facts.longer));
    if requests == 0 {
        return None;
    }
    let (all, joined) = (number::float(requests), number::float(in_log));
    let is_primary = metrics::find(&context.plan.metric)
        .is_some_and(|metric| metric.requires == Some(Requirement::ServerTime));
    let is_sound = joined >= NEEDED_SHARE * all && number::float(longer) <= LONGER_SHARE * joined;
    let result = match in_log {
        0 if is_primary => CheckOutcome::Invalid,
        _ if is_sound => CheckOutcome::Pass,
        _ => CheckOutcome::Caveat,
    };
    let mut measured = format!("{in_log} of {requests} requests in the server's log");
    if longer > 0 {
        measured.push_str(&format!(", {longer} of them longer at the server than at the client"));
    }
    if let Some(fault) = context.own.stored.iter().find_map(|run| run.log_fault.as_deref()) {
        measured.push_str(&format!(": {fault}"));
    }
    Some(Finding { result, measured, threshold: percent(NEEDED_SHARE) })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    #[test]
    fn logs_that_name_every_request_pass() {
        passes("server_time_joined", &Bench::closed(&[Variant::H1]).served(1_000));
        passes("server_time_joined", &Bench::page(&[Variant::H2]).served(1_000));
    }

    #[test]
    fn a_study_without_server_time_has_no_finding() {
        silent("server_time_joined", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn a_request_without_a_line_in_fifty_is_a_caveat() {
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000);
        for record in &mut bench.records {
            record.server_requests.remove(7);
            record.servers[0].log_fault = Some("line 9 is none".to_owned());
        }
        caveats(&bench, &["server_time_joined"]);
        let summary = bench.summary();
        let check = summary.cells[0].validity.iter().find(|check| check.check == "server_time_joined");
        let measured = &check.unwrap().measured;
        assert_eq!(measured, "245 of 250 requests in the server's log: line 9 is none");
        bench.plan.metric = "server_time".to_owned();
        caveats(&bench, &["server_time_joined"]);
    }

    #[test]
    fn requests_that_took_longer_inside_than_outside_are_a_caveat() {
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000);
        for row in bench.records.iter_mut().flat_map(|record| &mut record.server_requests) {
            row.request_time_ns = 10_000_000_000;
        }
        caveats(&bench, &["server_time_joined"]);
    }

    #[test]
    fn a_study_about_server_time_without_any_is_invalidated() {
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000);
        bench.records.iter_mut().for_each(|record| record.server_requests.clear());
        caveats(&bench, &["server_time_joined"]);
        bench.plan.metric = "server_time".to_owned();
        assert_eq!(fails("server_time_joined", &bench).measured, "0 of 250 requests in the server's log");
    }
}
