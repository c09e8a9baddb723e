//! Pushed responses did not compete with requested ones.

use model::number;
use model::sample::Pushes;
use model::units::format_bytes;

use super::{Check, Context, Finding, Table, check, counted, percent_beside};
use crate::run::{GroupFacts, RunSummary};

pub(super) const CHECK: Check = Check {
    measures: "bodies that the server pushed and nobody used, as a share of the requested ones' bytes. \
               h123's client requests every resource, so it uses no pushed response; it refuses more than \
               100 at once",
    passes: "margin",
    caveat: "more",
    why: "Pushed bytes that nobody uses take the network's time from the requested ones: the cell looks slow \
          although all requests succeed.",
    remedy: "Switch push off (`push = false` in `[hold]`), or let the server push nothing that the page requests.",
    reads: &[Table::Connections],
    ..check("pushes", judge)
};

/// Judged if the server promised a response.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let pushed: Pushes =
        context.own.ok().flat_map(|run| &run.groups).fold(Pushes::default(), |sum, facts| {
            let own = facts.pushed;
            Pushes {
                whole: sum.whole + own.whole,
                broken: sum.broken + own.broken,
                refused: sum.refused + own.refused,
                body_bytes: sum.body_bytes + own.body_bytes,
            }
        });
    if pushed.whole + pushed.broken + pushed.refused == 0 {
        return None;
    }
    let share = |run: &RunSummary| {
        let sum = |of: fn(&GroupFacts) -> u64| number::float(run.groups.iter().map(of).sum());
        let (pushed, requested) = (sum(|facts| facts.pushed.body_bytes), sum(|facts| facts.body_bytes));
        (requested > 0.0).then(|| pushed / requested)
    };
    let margin = context.plan.margin_share;
    let share = context.own.median(share)?;
    let measured = format!(
        "0 used, {} unused ({}, {} of the requested bytes), {} incomplete, {} refused",
        counted(pushed.whole.into(), "response"),
        format_bytes(number::float(pushed.body_bytes)),
        percent_beside(share, &[margin]),
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

    /// A page of 17 kB and this many pushed bytes in each run.
    fn with(body_bytes: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for record in &mut bench.records {
            record.connections[0].pushed = Pushes { whole: 2, broken: 1, refused: 3, body_bytes };
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
        let expected =
            "0 used, 10 responses unused (65 kB, 76.5% of the requested bytes), 5 incomplete, 15 refused";
        assert_eq!(found.measured, expected);
    }
}
