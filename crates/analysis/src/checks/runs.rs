//! There are enough runs for a meaningful interval.

use super::{Check, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "runs that succeeded",
    passes: "5 or more",
    caveat: "fewer",
    why: "With few runs, intervals are wide and assume that times are log-normal.",
    remedy: "Give the study more runs per cell.",
    ..check("runs", judge)
};

/// Fewer are a caveat: with four, Student's interval is already half as wide again as with many.
const ENOUGH: usize = 5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let ok = context.own.ok().count();
    let measured = match ok {
        1 => "1 run, without an interval".to_owned(),
        _ => format!("{ok} runs"),
    };
    Some(Finding::pass_or_caveat(ok >= ENOUGH, measured, format!("at least {ENOUGH}")))
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
