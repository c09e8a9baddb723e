//! The cell and its baseline did the same work.

use std::collections::BTreeMap;

use model::number;
use model::options::Visit;
use model::script::{Script, ScriptEntry};
use model::workload::{Workload, WorkloadKind};

use super::{Check, CheckOutcome, Context, DISTURBED_SHARE, Finding, Side, check};
use crate::distribution::Distribution;
use crate::run::{GroupFacts, RunSummary, page_of, player_of};

pub(super) const CHECK: Check = Check {
    measures: "requests and body bytes of the median run, and of each run and that of its block, compared with \
               the baseline. For loops: body bytes \
               per request, and requests and URLs if a number of requests ends the loop. For players that \
               choose representations: segments only",
    passes: "equal (bytes of loops: within 1 %; of random paths also within three standard errors), in at least \
             nine of ten blocks",
    caveat: "different where the cache of an earlier visit answers; different in more than a tenth of the blocks, or in the median run of a server with a `url`, whose \
             content may change at any time; scripts with different requests",
    invalidates: "different in the median run",
    why: "If one side requests or receives more than the other, the comparison measures the work and not \
          the version.",
    remedy: "Compare the URLs and lengths in both cells' samples; serve both from the same content.",
    ..check("workloads_match", judge)
};

/// The position in its list of paths at which a loop ends changes the mean length by less.
const LOOP_TOLERANCE_SHARE: f64 = 0.01;

/// Means of random paths differ by chance: by more than this many standard errors in one of 400 comparisons.
const RANDOM_ERRORS: f64 = 3.0;

/// Judged by the median runs; a caveat if more than a tenth of the blocks differ, because a minority of the
/// runs does not change the median run.
fn judge(context: &Context<'_>) -> Option<Finding> {
    if let Some(finding) = different_scripts(context) {
        return Some(finding);
    }
    let (own, baseline) = (runs_of(context, &context.own), runs_of(context, context.baseline.as_ref()?));
    let (typical, expected) = (Work::median(own.values())?, Work::median(baseline.values())?);
    let pairs: Vec<(&Work, &Work)> =
        own.iter().filter_map(|(block, work)| Some((work, baseline.get(block)?))).collect();
    let differing = pairs.iter().filter(|(own, baseline)| !own.matches(baseline));
    let (differing, blocks) = (differing.count(), pairs.len());
    let is_frequent = number::count(differing) > DISTURBED_SHARE * number::count(blocks);
    let (result, note) = match (typical.matches(&expected), is_frequent) {
        (false, _) if differ_in_cache(context) => (
            CheckOutcome::Caveat,
            "; the cache of an earlier visit answers the other requests of one side".to_owned(),
        ),
        (false, _) => (context.unless_outside(CheckOutcome::Invalid), String::new()),
        (true, true) => {
            let note = format!(" in the median run, but different work in {differing} of {blocks} blocks");
            (CheckOutcome::Caveat, note)
        }
        (true, false) => (CheckOutcome::Pass, String::new()),
    };
    let threshold = format!("{}, as in the baseline", expected.describe());
    Some(Finding { result, measured: format!("{}{note}", typical.describe()), threshold })
}

/// Whether one side only has the cache of an earlier visit: the study chose so.
fn differ_in_cache(context: &Context<'_>) -> bool {
    let has_cache = |side: &Side<'_>| {
        context.plan.workload_of(&side.cell.group).options.connections.visit == Visit::Cached
    };
    context.baseline.as_ref().is_some_and(|baseline| has_cache(&context.own) != has_cache(baseline))
}

/// A caveat if the sides replay scripts with different requests: the study chose so. The same requests in
/// another order are the same work: tracks of a player are requested at the same time.
fn different_scripts(context: &Context<'_>) -> Option<Finding> {
    let script = |side: &Side<'_>| context.plan.workload_of(&side.cell.group).workload.script();
    let (own, other) = (script(&context.own)?, script(context.baseline.as_ref()?)?);
    if requests(own) == requests(other) {
        return None;
    }
    let describe = |script: &Script| {
        let bytes = model::units::format_bytes(number::float(script.body_bytes));
        format!("a different script: {}, {bytes}", script.describe())
    };
    let threshold = format!("{}, as in the baseline", other.describe());
    Some(Finding { result: CheckOutcome::Caveat, measured: describe(own), threshold })
}

/// The paths of all requests, sorted.
fn requests(script: &Script) -> Vec<&str> {
    let path = |entry: &ScriptEntry| script.load.paths.get(entry.url as usize).map(String::as_str);
    let mut paths: Vec<&str> = script.entries.iter().filter_map(path).collect();
    paths.sort_unstable();
    paths
}

/// The work of each run that succeeded, by its block.
fn runs_of(context: &Context<'_>, side: &Side<'_>) -> BTreeMap<u32, Work> {
    side.ok().filter_map(|run| Some((run.block, Work::of(context, side, run)?))).collect()
}

/// The work of a run.
struct Work {
    /// Requests of a page, or of a loop that a number of requests ends; successful requests of a player.
    requests: Option<f64>,
    /// Body bytes of a client's page, or per request of a loop; `None` if a player chooses representations,
    /// which is its answer.
    body_bytes: Option<f64>,
    /// Different URLs of a loop, if its client reports them.
    urls: Option<f64>,
    /// The standard error of `body_bytes`; `None` unless paths are drawn.
    error_bytes: Option<f64>,
    is_page: bool,
}

impl Work {
    /// `None` if no request of a loop succeeded.
    fn of(context: &Context<'_>, side: &Side<'_>, run: &RunSummary) -> Option<Work> {
        let group = &side.cell.group;
        let sum = |field: fn(&GroupFacts) -> u64| number::float(run.groups.iter().map(field).sum());
        let body_bytes = sum(|facts| facts.body_bytes);
        let clients = f64::from(group.clients.max(1));
        if page_of(context.plan, group).is_some() {
            let requests = Some(sum(|facts| facts.requests) / clients);
            return Some(Work {
                requests,
                body_bytes: Some(body_bytes / clients),
                urls: None,
                error_bytes: None,
                is_page: true,
            });
        }
        let ok = sum(|facts| facts.requests_ok);
        if let Some(player) = player_of(context.plan, group) {
            let body_bytes = player.is_fixed().then_some(body_bytes / clients);
            // A change of the representation may require its initialization, and a live stream goes on.
            let is_known = player.is_fixed() || (player.live.is_none() && !player.has_initializations());
            let requests = is_known.then_some(ok / clients);
            return Some(Work { requests, body_bytes, urls: None, error_bytes: None, is_page: true });
        }
        let named = context.plan.workload_of(group);
        let is_counted = ends_by_number(&named.workload);
        let requests = &named.options.requests;
        let is_random = requests.random_order || requests.random_parts;
        let squares: f64 = run.groups.iter().map(|facts| facts.body_bytes_squared).sum();
        let variance = || match squares > 0.0 {
            true => (squares / ok - (body_bytes / ok).powi(2)).max(0.0),
            // The client reports sums only.
            false => variance_of_drawn(context, side),
        };
        let urls = sum(|facts| facts.distinct_urls);
        (ok > 0.0).then(|| Work {
            requests: is_counted.then(|| sum(|facts| facts.requests)),
            body_bytes: Some(body_bytes / ok),
            urls: (urls > 0.0).then_some(urls),
            error_bytes: is_random.then(|| (variance() / ok).sqrt()),
            is_page: false,
        })
    }

    /// The median run.
    fn median<'w>(runs: impl Iterator<Item = &'w Work> + Clone) -> Option<Work> {
        let median = |value: fn(&Work) -> Option<f64>| {
            runs.clone().filter_map(value).collect::<Distribution>().median()
        };
        let is_page = runs.clone().next()?.is_page;
        Some(Work {
            requests: median(|work| work.requests),
            body_bytes: median(|work| work.body_bytes),
            urls: median(|work| work.urls),
            error_bytes: median(|work| work.error_bytes),
            is_page,
        })
    }

    fn matches(&self, other: &Work) -> bool {
        let share = if self.is_page { 0.0 } else { LOOP_TOLERANCE_SHARE };
        let bytes = self.body_bytes.zip(other.body_bytes);
        let by_chance =
            RANDOM_ERRORS * self.error_bytes.unwrap_or(0.0).hypot(other.error_bytes.unwrap_or(0.0));
        let are_bytes_equal =
            bytes.is_none_or(|(own, other)| (own - other).abs() <= (share * other).max(by_chance));
        // An unknown value is not compared.
        let equal =
            |own: Option<f64>, other: Option<f64>| own.zip(other).is_none_or(|(own, other)| own == other);
        let has_as_many_urls = match (self.requests, other.requests) {
            (Some(_), Some(_)) => equal(self.urls, other.urls) || self.error_bytes.is_some(),
            // A loop that a time ends may have requested only some of its URLs.
            _ => true,
        };
        are_bytes_equal && equal(self.requests, other.requests) && has_as_many_urls
    }

    fn describe(&self) -> String {
        let digits = model::units::three_digits;
        let counted =
            |number: f64, noun: &str| format!("{number:.0} {noun}{}", if number == 1.0 { "" } else { "s" });
        let requests = self.requests.map(|requests| counted(requests, "request"));
        let urls = self.urls.map(|urls| counted(urls, "URL"));
        let bytes = self.body_bytes.map(|bytes| match self.is_page {
            true => format!("{bytes:.0} body bytes"),
            false => format!("{} body bytes per request", digits(bytes)),
        });
        requests.into_iter().chain(urls).chain(bytes).collect::<Vec<_>>().join(", ")
    }
}

/// The variance of the lengths that a loop draws from with equal probabilities, as far as they are known.
fn variance_of_drawn(context: &Context<'_>, side: &Side<'_>) -> f64 {
    let load = context.plan.workload_of(&side.cell.group).workload.as_loop();
    let lengths = load.map(|load| context.plan.known_lengths(&load.paths)).unwrap_or_default();
    let lengths: Distribution = lengths.into_iter().map(number::float).collect();
    lengths.sd().map_or(0.0, |sd| sd * sd)
}

fn ends_by_number(workload: &Workload) -> bool {
    // An open loop's unsent requests are missing, which `missed_schedule` judges.
    workload.kind() == WorkloadKind::Closed && workload.requests().is_some() && workload.lasts_ns().is_none()
}

#[cfg(test)]
mod tests {
    use model::external::ExternalReport;
    use model::options::Visit;
    use model::variant::Variant;
    use model::workload::Workload;

    use crate::fixtures::{Bench, fails, passes, silent};
    use crate::summary::CheckOutcome;

    #[test]
    fn equal_work_passes() {
        passes("workloads_match", &Bench::page(&[Variant::H1s, Variant::H2]));
        passes("workloads_match", &Bench::closed(&[Variant::H1s, Variant::H2]));
        silent("workloads_match", &Bench::page(&[Variant::H1s]));
    }

    #[test]
    fn what_a_cache_answers_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
            record.samples.truncate(1);
        }
        fails("workloads_match", &bench);
        let mut again = bench.plan.workloads[0].clone();
        again.options.connections.visit = Visit::Cached;
        bench.plan.workloads.push(again);
        bench.plan.cells[1].group.workload = 1;
        let summary = bench.summary();
        let of = |name: &str| summary.cells[1].validity.iter().find(|check| check.check == name);
        let found = of("workloads_match").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        assert!(found.measured.ends_with("answers the other requests of one side"), "{found:?}");
        assert!(of("all_requested").is_none(), "what the cache has need not be requested");
    }

    #[test]
    fn where_a_loop_ends_in_its_list_of_paths_does_not_matter() {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        let first = |cell: u32| move |record: &&mut model::RunRecord| record.cell == cell;
        for record in bench.records.iter_mut().filter(first(1)) {
            // 129.28 in place of 128 bytes per request: 1 % more.
            record.samples[0].response_body_bytes = 128 + 63;
        }
        passes("workloads_match", &bench);
        for record in bench.records.iter_mut().filter(first(1)) {
            record.samples[1].response_body_bytes = 128 + 63;
        }
        fails("workloads_match", &bench);
    }

    #[test]
    fn the_mean_of_random_paths_may_differ_by_chance() {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        // In one cell, 10 % more requests ask for 228 in place of 128 bytes.
        for record in &mut bench.records {
            let large = if record.cell == 1 { 6 } else { 5 };
            record.samples.iter_mut().take(large).for_each(|sample| sample.response_body_bytes = 228);
        }
        fails("workloads_match", &bench);
        bench.plan.workloads[0].options.requests.random_parts = true;
        passes("workloads_match", &bench);
    }

    #[test]
    fn the_mean_of_a_client_without_rows_may_differ_as_the_lengths_do() {
        // Lengths of 100 to 156 bytes: a mean of 50 has a standard error of 2.3 bytes.
        let with = |more: u64| {
            let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
            let named = &mut bench.plan.workloads[0];
            named.workload.as_loop_mut().unwrap().paths = vec!["/bytes/{random:100-156}".to_owned()];
            named.options.requests.random_parts = true;
            for record in &mut bench.records {
                let requests_ok = record.samples.len() as u64;
                let each = if record.cell == 1 { 128 + more } else { 128 };
                let body_bytes = Some(requests_ok * each);
                let report = ExternalReport { requests_ok, body_bytes, ..ExternalReport::default() };
                record.clients[0].external = Some(Box::new(report));
                record.samples.clear();
            }
            bench
        };
        passes("workloads_match", &with(8));
        fails("workloads_match", &with(15));
    }

    #[test]
    fn fewer_urls_or_requests_in_one_arm_invalidate() {
        let second = |record: &&mut model::RunRecord| record.cell == 1;
        let mut fewer = Bench::closed(&[Variant::H1s, Variant::H2]);
        for record in fewer.records.iter_mut().filter(second) {
            record.samples.truncate(40);
        }
        assert!(fails("workloads_match", &fewer).measured.starts_with("40 requests, 1 URL, "));
        let mut other = Bench::closed(&[Variant::H1s, Variant::H2]);
        for sample in other.records.iter_mut().filter(second).flat_map(|record| &mut record.samples) {
            sample.url = u32::try_from(sample.request % 7).unwrap();
        }
        assert!(fails("workloads_match", &other).measured.contains("7 URLs"));
    }

    /// A loop of ten blocks, of which these have fewer requests over h2.
    fn short_in(blocks: &[u32]) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        let again: Vec<model::RunRecord> = bench.records.clone();
        let later = again.into_iter().map(|record| model::RunRecord {
            run: record.run + 10,
            block: record.block + 5,
            ..record
        });
        bench.records.extend(later);
        let runs: Vec<model::PlannedRun> = bench.plan.runs.clone();
        let later =
            runs.into_iter().map(|run| model::PlannedRun { run: run.run + 10, block: run.block + 5, ..run });
        bench.plan.runs.extend(later);
        let is_short = |record: &&mut model::RunRecord| record.cell == 1 && blocks.contains(&record.block);
        bench.records.iter_mut().filter(is_short).for_each(|record| record.samples.truncate(40));
        bench
    }

    #[test]
    fn a_minority_of_different_runs_is_a_caveat() {
        passes("workloads_match", &short_in(&[3]));
        let summary = short_in(&[3, 7]).summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "workloads_match").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        let note = " in the median run, but different work in 2 of 10 blocks";
        assert!(found.measured.starts_with("50 requests, ") && found.measured.ends_with(note), "{found:?}");
        fails("workloads_match", &short_in(&[0, 2, 3, 5, 7, 9]));
    }

    #[test]
    fn different_scripts_are_a_caveat_that_says_so() {
        passes("workloads_match", &Bench::script(&[Variant::H1s, Variant::H2]));
        let mut bench = Bench::script(&[Variant::H1s, Variant::H2]);
        for place in [0, 3] {
            let mut other = bench.plan.workloads[0].clone();
            let Workload::Script(script) = &mut other.workload else { unreachable!() };
            script.load.paths.push("/b".to_owned());
            script.entries[place].url = 1;
            bench.plan.workloads.push(other);
        }
        bench.plan.cells[0].group.workload = 1;
        bench.plan.cells[1].group.workload = 2;
        passes("workloads_match", &bench);
        bench.plan.cells[0].group.workload = 0;
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "workloads_match").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        assert!(found.measured.starts_with("a different script: 50 requests in 49 ms, at"), "{found:?}");
    }

    #[test]
    fn empty_bodies_in_one_arm_invalidate() {
        for mut bench in
            [Bench::page(&[Variant::H1s, Variant::H2]), Bench::closed(&[Variant::H1s, Variant::H2])]
        {
            for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
                for sample in &mut record.samples {
                    sample.response_body_bytes = 0;
                    sample.expected_body_bytes = None;
                }
            }
            let found = fails("workloads_match", &bench);
            assert!(found.measured.contains("0 body bytes"), "{found:?}");
        }
    }
}
