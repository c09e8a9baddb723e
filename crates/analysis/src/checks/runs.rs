//! Enough runs for an interval that means something.

use super::{Check, Context, Finding};
use crate::summary::CheckOutcome;

pub(super) const CHECK: Check = Check {
    name: "runs",
    why: "With few runs an interval is wide and rests on the assumption that times are log-normal.",
    remedy: "Give the study more runs per cell.",
    judge,
};

/// Fewer raise a caveat; with four, Student's t is already half as wide again as with many.
const ENOUGH: usize = 5;

/// How many runs succeeded.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let ok = context.own.ok().count();
    let result = if ok < ENOUGH { CheckOutcome::Caveat } else { CheckOutcome::Pass };
    let measured = match ok {
        1 => "1 run, which has no interval".to_owned(),
        _ => format!("{ok} runs"),
    };
    Some(Finding { result, measured, threshold: format!("at least {ENOUGH}") })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes};

    #[test]
    fn five_pass_and_four_are_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1]);
        passes("runs", &bench);
        bench.records.pop();
        caveats(&bench, &["runs"]);
        bench.records.truncate(1);
        caveats(&bench, &["runs"]);
    }
}
