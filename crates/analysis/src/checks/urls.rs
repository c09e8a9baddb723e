//! The requested content is the study's content.

use super::{Check, Context, Finding, GroupFacts, check};

pub(super) const CHECK: Check = Check {
    measures: "loops: which of the workload's paths were requested; and, where servers are compared, \
               whether there is more than one path",
    passes: "all paths (if there are enough requests), and several where servers are compared",
    caveat: "fewer",
    why: "If one URL represents a whole library, caches answer for the servers. If listed URLs are never \
          requested, other content than the study's was measured.",
    remedy: "Give the workload as many `paths` as the library has, and enough requests for all of them.",
    ..check("urls", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let loops = context.own.facts().filter_map(|(group, facts)| {
        let paths = context.plan.workload_of(group).workload.as_loop()?.paths.len() as u64;
        // A list of one path needs no report of which path was requested.
        let is_seen = facts.rows > 0 && facts.distinct_urls > 0 || paths == 1 && facts.requests > 0;
        is_seen.then_some((paths, facts))
    });
    let missed = |(paths, facts): &(u64, &GroupFacts)| {
        // With twice as many requests as paths, a loop in order requests all paths, and a random one requests
        // most.
        let expected = if facts.requests >= 2 * paths { paths / 2 + 1 } else { facts.requests.min(2) };
        (*paths > 1 && facts.distinct_urls < expected).then_some((facts.distinct_urls, *paths))
    };
    let all: Vec<(u64, &GroupFacts)> = loops.collect();
    let (most_paths, _) = all.iter().max_by_key(|(paths, _)| *paths)?;
    let (is_fine, measured) = match all.iter().find_map(missed) {
        Some((requested, paths)) => (false, format!("{requested} of {paths} paths requested")),
        None if *most_paths == 1 && context.compares_servers() => {
            (false, "one path, in a comparison of servers with caches".to_owned())
        }
        None => (true, format!("paths requested as planned: {most_paths}")),
    };
    Some(Finding::pass_or_caveat(is_fine, measured, "every path; several where servers are compared"))
}

#[cfg(test)]
mod tests {
    use model::external::ExternalReport;
    use model::plan::Level;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};
    use crate::summary::CheckOutcome;

    fn with_paths(count: u32, asked: u32) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        let load = bench.plan.workloads[0].workload.as_loop_mut().unwrap();
        load.paths = (0..count).map(|path| format!("/{path}")).collect();
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.url = u32::try_from(sample.request).unwrap() % asked;
        }
        bench
    }

    #[test]
    fn all_paths_asked_pass() {
        passes("urls", &with_paths(1, 1));
        passes("urls", &with_paths(10, 10));
        passes("urls", &with_paths(1000, 50));
        silent("urls", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn the_first_path_alone_is_a_caveat() {
        caveats(&with_paths(10, 1), &["urls"]);
        caveats(&with_paths(1000, 1), &["urls"]);
    }

    #[test]
    fn one_url_for_servers_is_a_caveat() {
        let mut bench = with_paths(1, 1);
        bench.plan.baseline = Level { factor: "server".to_owned(), value: "origin".to_owned() };
        caveats(&bench, &["urls"]);
        // A client such as ab reports no paths.
        for record in &mut bench.records {
            record.samples.clear();
            let report = ExternalReport { requests_ok: 40, ..ExternalReport::default() };
            record.clients[0].external = Some(Box::new(report));
        }
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "urls").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
    }
}
