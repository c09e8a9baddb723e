//! Every URL that was asked for exists.

use super::{Check, CheckOutcome, Context, Finding, percent};
use crate::number;
use crate::rows::{Tries, Urls};
use crate::statistics;

pub(super) const CHECK: Check = Check {
    name: "missing_urls",
    why: "A URL that never answers well does not exist: its failures come from the list of URLs and not from the load.",
    remedy: "Take the list of URLs from the content itself (the manifest, the packaged file), and leave out what is not there.",
    judge,
};

/// The chance that so many URLs never answer well though each of their requests fails by chance.
const CHANCE: f64 = 1e-3;

/// URLs that were asked and answered in no run but with an unexpected status, while others answered well. If every request failed with the same chance p,
/// a URL asked n times would never answer well with the chance pⁿ; the sum of these over all URLs is expected, and that
/// so many or more are found has Poisson's probability.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut urls: Vec<Urls> = vec![Urls::new(); context.own.cell.clients.len()];
    for run in context.own.ok() {
        for (known, facts) in urls.iter_mut().zip(&run.groups) {
            facts.urls.iter().for_each(|(url, tries)| known.entry(*url).or_default().add(*tries));
        }
    }
    let requests: u64 = context.own.ok().flat_map(|run| &run.groups).map(|facts| facts.requests).sum();
    let failed: u64 = context
        .own
        .ok()
        .flat_map(|run| &run.groups)
        .map(|facts| facts.requests - facts.requests_ok.min(facts.requests))
        .sum();
    if requests == 0 || context.own.ok().flat_map(|run| &run.groups).all(|facts| facts.stamps.times == 0) {
        return None;
    }
    let all = || urls.iter().flat_map(|urls| urls.values());
    let never: Vec<&Tries> = all().filter(|tries| tries.refused == tries.all).collect();
    let share = number::float(failed) / number::float(requests);
    let expected: f64 = all().map(|tries| share.powi(i32::try_from(tries.all).unwrap_or(i32::MAX))).sum();
    let is_chance = statistics::poisson_at_least(never.len(), expected) >= CHANCE;
    let lost: u64 = never.iter().map(|tries| tries.all).sum();
    let result = if is_chance { CheckOutcome::Pass } else { CheckOutcome::Invalid };
    let measured = match never.len() {
        0 => "every URL answered well at least once".to_owned(),
        some => format!(
            "{some} URLs never answered well in {lost} requests, {} of all failures; {expected:.1} such URLs by chance",
            percent(number::float(lost) / number::float(failed.max(1)))
        ),
    };
    Some(Finding { result, measured, threshold: "no more than by chance".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    /// A loop over ten URLs, of which request `r` asks for number `r % 10`.
    fn of_ten_urls(fails: impl Fn(u64) -> bool) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.url = crate::number::small(usize::try_from(sample.request % 10).unwrap());
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
    fn a_url_that_never_answers_condemns() {
        let found = fails("missing_urls", &of_ten_urls(|request| request % 10 == 7));
        assert!(
            found.measured.starts_with("1 URLs never answered well in 25 requests, 100% of all"),
            "{found:?}"
        );
    }

    #[test]
    fn without_rows_there_is_nothing_to_judge() {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.records.iter_mut().for_each(|record| record.samples.clear());
        silent("missing_urls", &bench);
    }
}
