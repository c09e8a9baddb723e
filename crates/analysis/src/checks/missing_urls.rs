//! Every requested URL exists.

use model::number;
use model::sample::FailureKind;

use super::{Check, CheckOutcome, Context, Finding, check, counted, percent};
use crate::rows::{Tries, Urls};
use crate::statistics;

pub(super) const CHECK: Check = Check {
    measures: "URLs that returned an error status to every request in all runs while others succeeded, \
               compared with the number expected if every request failed with the same probability",
    passes: "no more than chance explains (Poisson, p of 0.001 or more)",
    caveat: "not judged: more than 20 000 URLs, or a client that does not report URLs, and some requests \
             returned an error status",
    invalidates: "more",
    why: "A URL that never succeeds does not exist: its failures come from the list of URLs, not from the \
          load.",
    remedy: "Take the list of URLs from the content itself (its manifest or archive), and leave out what \
             does not exist.",
    ..check("missing_urls", judge)
};

/// URLs are missing if chance explains their number with a probability below this.
const CHANCE: f64 = 1e-3;

/// Counts URLs that had an unexpected status in every response while others succeeded. If every request were
/// refused with the same probability p, a URL with n requests would never succeed with probability pⁿ. The
/// sum of these is the expected number of such URLs, and their number has Poisson's distribution.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let facts = || context.own.ok().flat_map(|run| &run.groups).filter(|facts| facts.requests > 0);
    facts().next()?;
    if facts().any(|facts| facts.urls.is_empty()) {
        let is_refused =
            |facts: &crate::run::GroupFacts| facts.failures.contains_key(&FailureKind::WrongStatus);
        let reason = "URLs are unknown: there are too many, or the client does not report them";
        return facts().any(is_refused).then(|| Finding::not_reported(reason));
    }
    let mut urls = Urls::new();
    for facts in context.own.ok().flat_map(|run| &run.groups) {
        facts.urls.iter().for_each(|(url, tries)| urls.entry(*url).or_default().add(*tries));
    }
    let sum = |of: fn(&Tries) -> u64| -> u64 { urls.values().map(of).sum() };
    let (requests, refused) = (sum(|tries| tries.all), sum(|tries| tries.refused));
    let never: Vec<&Tries> = urls.values().filter(|tries| tries.refused == tries.all).collect();
    let share = number::float(refused) / number::float(requests.max(1));
    let expected: f64 =
        urls.values().map(|tries| share.powi(i32::try_from(tries.all).unwrap_or(i32::MAX))).sum();
    let is_chance = statistics::poisson_at_least(never.len(), expected) >= CHANCE;
    let lost: u64 = never.iter().map(|tries| tries.all).sum();
    let result = if is_chance { CheckOutcome::Pass } else { CheckOutcome::Invalid };
    let measured = match never.len() {
        0 => "every URL succeeded at least once".to_owned(),
        some => format!(
            "{} never succeeded in {}, {} of all error statuses; {expected:.1} such URLs expected by chance",
            counted(some as u64, "URL"),
            counted(lost, "request"),
            percent(number::float(lost) / number::float(refused.max(1)))
        ),
    };
    Some(Finding { result, measured, threshold: "no more than by chance".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::external::{ExternalReport, FailureCount};
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    /// A loop over ten URLs, of which request `r` asks for number `r % 10`.
    fn of_ten_urls(fails: impl Fn(u64) -> bool) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.url = model::number::small(usize::try_from(sample.request % 10).unwrap());
            if fails(sample.request) {
                sample.status = Some(503);
                sample.outcome = Outcome::failed(FailureKind::WrongStatus, "503");
            }
        }
        bench
    }

    #[test]
    fn where_all_answer_or_fail_by_chance_it_passes() {
        passes("missing_urls", &of_ten_urls(|_| false));
        // Every third request, so each URL in its turn.
        passes("missing_urls", &of_ten_urls(|request| request % 3 == 0));
        // The server is down: nothing is said about URLs.
        passes("missing_urls", &of_ten_urls(|_| true));
    }

    #[test]
    fn a_url_that_never_answers_invalidates() {
        let found = fails("missing_urls", &of_ten_urls(|request| request % 10 == 7));
        assert!(
            found.measured.starts_with("1 URL never succeeded in 25 requests, 100% of all error statuses"),
            "{found:?}"
        );
    }

    #[test]
    fn a_url_that_answered_in_another_run_is_there() {
        let mut bench = of_ten_urls(|_| false);
        for sample in bench.records[0].samples.iter_mut().filter(|sample| sample.url == 3) {
            sample.outcome = Outcome::failed(FailureKind::WrongStatus, "503");
        }
        passes("missing_urls", &bench);
    }

    #[test]
    fn without_rows_urls_are_unknown() {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.records.iter_mut().for_each(|record| record.samples.clear());
        silent("missing_urls", &bench);
        for record in &mut bench.records {
            let failures = vec![FailureCount { kind: FailureKind::WrongStatus, requests: 5 }];
            let report = ExternalReport { requests_ok: 45, failures, ..ExternalReport::default() };
            record.clients[0].external = Some(Box::new(report));
        }
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "missing_urls").unwrap();
        assert!(found.measured.starts_with("not judged: URLs are unknown"), "{found:?}");
    }
}
