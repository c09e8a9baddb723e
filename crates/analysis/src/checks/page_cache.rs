//! The files of the servers were in the page cache, or not, as the study states.

use model::page_cache::{CachedContent, PageCache};
use model::units::format_bytes;

use super::{Check, CheckOutcome, Context, Finding, check, number};

pub(super) const CHECK: Check = Check {
    measures: "how much of the servers' files was in the page cache when a run began, in the run that differs most \
               from the study's `page_cache`",
    passes: "cold: at most 1 %; warm: at least 99 %",
    caveat: "never",
    invalidates: "otherwise",
    why: "A file in memory is served without a disk. Servers that find different shares of their files in memory \
          are not compared fairly.",
    remedy: "Cold: keep the result on a file system that uses the page cache, not tmpfs, and let no other program \
             read the files. Warm: use content that fits into memory.",
    reads: &[],
    ..check("page_cache", judge)
};

/// Pages that another program touches, such as an indexer.
const TOLERANCE: f64 = 0.01;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let state = context.plan.page_cache?;
    let deviation = |content: &CachedContent| match state {
        PageCache::Cold => content.share(),
        // Not 1 − share, whose rounding would exceed the tolerance at exactly 99 %.
        PageCache::Warm => {
            let missing = content.bytes.saturating_sub(content.cached_bytes);
            CachedContent { cached_bytes: missing, ..*content }.share()
        }
    };
    let runs = context.own.ok().filter_map(|run| run.content).filter(|content| content.bytes > 0);
    let worst = runs.max_by(|a, b| deviation(a).total_cmp(&deviation(b)))?;
    let size = |bytes| format_bytes(number::float(bytes));
    let (threshold, result) = match state {
        PageCache::Cold => ("at most 1 %", deviation(&worst) <= TOLERANCE),
        PageCache::Warm => ("at least 99 %", deviation(&worst) <= TOLERANCE),
    };
    Some(Finding {
        result: if result { CheckOutcome::Pass } else { CheckOutcome::Invalid },
        measured: format!("{} of {} in the page cache", size(worst.cached_bytes), size(worst.bytes)),
        threshold: format!("{state}: {threshold}"),
    })
}

#[cfg(test)]
mod tests {
    use model::page_cache::{CachedContent, PageCache};
    use model::variant::Variant;

    use crate::summary::CheckOutcome;

    use crate::fixtures::{Bench, fails, passes, silent};

    fn bench(state: PageCache, cached_bytes: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.plan.page_cache = Some(state);
        for record in &mut bench.records {
            record.content = Some(CachedContent { bytes: 1000, cached_bytes });
        }
        bench
    }

    #[test]
    fn the_stated_state_passes() {
        passes("page_cache", &bench(PageCache::Cold, 10));
        passes("page_cache", &bench(PageCache::Warm, 990));
        silent("page_cache", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn one_run_in_the_other_state_invalidates() {
        for (state, expected, other) in [(PageCache::Cold, 0, 11), (PageCache::Warm, 1000, 989)] {
            let mut bench = bench(state, expected);
            bench.records[2].content = Some(CachedContent { bytes: 1000, cached_bytes: other });
            assert_eq!(fails("page_cache", &bench).result, CheckOutcome::Invalid);
        }
    }
}
