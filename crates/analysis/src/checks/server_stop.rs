//! The servers stopped when asked.

use super::{Check, Context, Finding, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "runs after which a server had to be killed because it did not stop when asked",
    passes: "0",
    caveat: "any",
    why: "A server that had to be killed was not idle: it may have delayed requests, and its log may lack \
          their lines.",
    remedy: "See in its log what it was doing, or give its description a longer `stop_within`.",
    reads: &[Table::Servers],
    ..check("server_stop", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let runs = context.own.stored.len();
    let killed = context.own.stored.iter().filter(|run| run.server_was_killed).count();
    let measured = format!("killed after {killed} of {runs} runs");
    (runs > 0).then(|| Finding::pass_or_caveat(killed == 0, measured, "0"))
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
