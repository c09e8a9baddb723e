//! The servers ended when they were asked to.

use super::{Check, CheckOutcome, Context, Finding};

pub(super) const CHECK: Check = Check {
    name: "server_stop",
    why: "A server that has to be killed was not at rest: it may have held requests back, and its log may lack their lines.",
    remedy: "Look at its log for what it was doing, or give its description a longer `stop_within`.",
    judge,
};

/// Runs after which a server had to be killed; any is a caveat.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let runs = context.own.stored.len();
    let killed = context.own.stored.iter().filter(|run| run.server_was_killed).count();
    let result = if killed == 0 { CheckOutcome::Pass } else { CheckOutcome::Caveat };
    let measured = format!("killed after {killed} of {runs} runs");
    (runs > 0).then(|| Finding { result, measured, threshold: "0".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes};

    #[test]
    fn a_server_that_ends_passes() {
        passes("server_stop", &Bench::page(&[Variant::H2]));
    }

    #[test]
    fn one_that_had_to_be_killed_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.records[1].servers[0].was_killed = true;
        caveats(&bench, &["server_stop"]);
    }
}
