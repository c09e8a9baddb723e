//! The bytes of every response are those of the page's resource.

use model::plan::ClientGroup;
use model::sample::FailureKind;

use super::{Check, Context, Finding, check_none_wrong};
use crate::run::page_of;

pub(super) const CHECK: Check = Check {
    measures: "responses of a page whose bytes differ from the page's resource; the client compares every \
               byte. Of scripts with known CRC-32s: responses with others",
    why: "A body of the right length with other bytes is different content: stale, from another page, or \
          corrupted.",
    remedy: "Look at what the server sends (`h123 trace`), and make it serve the folder that the study \
             gives it.",
    ..check_none_wrong("body_content", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    if context.page_outside().is_some() {
        return None;
    }
    let (mut wrong, mut all) = (0, 0);
    let knows_content = |group: &ClientGroup| {
        let own = &context.plan.workload_of(group).options.requests.paths;
        page_of(context.plan, group).is_some() || own.iter().any(|path| path.expects.body_crc32.is_some())
    };
    for (_, facts) in context.own.facts().filter(|(group, _)| knows_content(group)) {
        wrong += facts.failures.get(&FailureKind::WrongContent).copied().unwrap_or(0);
        all += facts.requests;
    }
    Finding::none_of(wrong, all, "responses", "")
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    #[test]
    fn the_pages_bytes_pass_and_loops_are_not_judged() {
        passes("body_content", &Bench::page(&[Variant::H2]));
        silent("body_content", &Bench::closed(&[Variant::H2]));
    }

    #[test]
    fn other_bytes_invalidate() {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.records[0].samples[1].outcome = Outcome::failed(FailureKind::WrongContent, "byte 7");
        assert_eq!(fails("body_content", &bench).measured, "1 of 15 responses");
    }
}
