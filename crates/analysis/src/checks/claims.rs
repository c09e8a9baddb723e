//! The study's claims hold.

use super::{Check, CheckOutcome, Context, Finding, check, counted};
use crate::summary::{ClaimOutcome, ClaimResult};

pub(super) const CHECK: Check = Check {
    measures: "the study's own [claims](studies.md#claim) about the cell",
    passes: "all hold",
    caveat: "one is not shown",
    invalidates: "one is refuted",
    why: "A conclusion that rests on a false claim is wrong, however well the rest was measured.",
    remedy: "Remove the claim and correct what depends on it, or read the study as an example of the \
             mistake.",
    ..check("claims", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let cell = context.own.cell.cell;
    let about: Vec<&ClaimResult> =
        context.claims.iter().filter(|claim| claim.cells.contains(&cell)).collect();
    let worst = about.iter().max_by_key(|claim| claim.result)?;
    let result = match worst.result {
        ClaimOutcome::Holds => CheckOutcome::Pass,
        ClaimOutcome::NotShown => CheckOutcome::Caveat,
        ClaimOutcome::Refuted => CheckOutcome::Invalid,
    };
    let measured = match worst.result {
        ClaimOutcome::Holds => {
            counted(about.len() as u64, "claim") + if about.len() == 1 { " holds" } else { " hold" }
        }
        ClaimOutcome::NotShown => format!("\u{201c}{}\u{201d} is not shown: {}", worst.text, worst.measured),
        ClaimOutcome::Refuted => format!("\u{201c}{}\u{201d} is refuted: {}", worst.text, worst.measured),
    };
    Some(Finding { result, measured, threshold: worst.expected.clone() })
}

#[cfg(test)]
mod tests {
    use model::claim::{Bound, Claim, ClaimTest};
    use model::statistic::Statistic;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// The page takes 480 ms over h1 here, within a percent.
    fn claiming(least_ms: f64, most_ms: f64) -> Bench {
        let mut bench = Bench::page(&[Variant::H1]);
        let holds_if = ClaimTest::Value {
            metric: "page_load_time".to_owned(),
            statistic: Statistic::Median,
            levels: Vec::new(),
            against: None,
            least: Some(Bound::Plain(least_ms * 1e6)),
            most: Some(Bound::Plain(most_ms * 1e6)),
        };
        bench.plan.claims = vec![Claim { text: "It is quick.".to_owned(), holds_if }];
        bench
    }

    fn median_ms() -> f64 {
        claiming(0.0, 1.0).summary().cells[0].metrics["page_load_time"].median.value / 1e6
    }

    #[test]
    fn a_claim_that_holds_passes() {
        passes("claims", &claiming(median_ms() * 0.9, median_ms() * 1.1));
        silent("claims", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn a_claim_that_is_not_shown_is_a_caveat_and_a_refuted_one_invalidates() {
        caveats(&claiming(median_ms(), median_ms() * 1.1), &["claims"]);
        let found = fails("claims", &claiming(0.0, median_ms() * 0.9));
        assert!(found.measured.starts_with("\u{201c}It is quick.\u{201d} is refuted: "), "{found:?}");
    }
}
