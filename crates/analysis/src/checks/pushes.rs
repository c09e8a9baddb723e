//! Pushed responses did not compete with requested ones.

use model::number;
use model::sample::Pushes;
use model::units::format_bytes;

use super::{Check, Context, Finding, Table, check, counted, percent_beside};
use crate::run::{GroupFacts, RunSummary};

pub(super) const CHECK: Check = Check {
    measures: "bodies that the server pushed and nobody used, as a share of all others' bytes. A page load \
               uses what is pushed before it is requested, and cancels promises that come too late; loops use \
               nothing. The client refuses more than 100 at once",
    passes: "margin",
    caveat: "more",
    why: "Pushed bytes that nobody uses take the network's time from the requested ones: the cell looks slow \
          although all requests succeed.",
    remedy: "Let the server push nothing but resources of the page, or switch push off (`push = false` in `[hold]`).",
    reads: &[Table::Connections],
    ..check("pushes", judge)
};

/// Judged if the server promised a response.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let pushed: Pushes =
        context.own.ok().flat_map(|run| &run.groups).fold(Pushes::default(), |mut sum, facts| {
            sum += facts.pushed;
            sum
        });
    if pushed.whole + pushed.broken + pushed.refused + pushed.late == 0 {
        return None;
    }
    let share = |run: &RunSummary| {
        let sum = |of: fn(&GroupFacts) -> u64| number::float(run.groups.iter().map(of).sum());
        let (pushed, requested) = (sum(|facts| facts.pushed.wasted_bytes), sum(|facts| facts.body_bytes));
        (requested > 0.0).then(|| pushed / requested)
    };
    let margin = context.plan.margin_share;
    let share = context.own.median(share)?;
    let measured = format!(
        "{} used, {} unused ({}, {} of the requested bytes), {} too late, {} incomplete, {} refused",
        pushed.used,
        counted(pushed.whole.saturating_sub(pushed.used).into(), "response"),
        format_bytes(number::float(pushed.wasted_bytes)),
        percent_beside(share, &[margin]),
        pushed.late,
        pushed.broken,
        pushed.refused
    );
    let threshold = format!("unused: at most {}", super::percent(margin));
    Some(Finding::pass_or_caveat(share <= margin, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::sample::Pushes;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    /// A page of 17 kB and this many wasted bytes in each run.
    fn with(wasted_bytes: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for record in &mut bench.records {
            record.connections[0].pushed = Pushes {
                whole: 3,
                used: 1,
                broken: 1,
                refused: 3,
                late: 2,
                body_bytes: 2 * wasted_bytes,
                wasted_bytes,
            };
        }
        bench
    }

    #[test]
    fn few_pushed_bytes_pass() {
        passes("pushes", &with(500));
        silent("pushes", &Bench::page(&[Variant::H2]));
    }

    #[test]
    fn pushed_bytes_that_nobody_used_are_a_caveat() {
        let bench = with(13_000);
        caveats(&bench, &["pushes"]);
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "pushes").unwrap();
        let expected = "5 used, 10 responses unused (65 kB, 76.5% of the requested bytes), 10 too late, 5 incomplete, 15 refused";
        assert_eq!(found.measured, expected);
    }
}
