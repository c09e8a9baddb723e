//! Every page load requested every resource once, and every video was played to its end.

use model::plan::ClientGroup;

use super::{Check, Context, Finding, check_none_wrong};
use crate::run::{GroupFacts, page_of, player_of};
use crate::table::Table;

pub(super) const CHECK: Check = Check {
    measures: "page loads that did not request every resource exactly once, and videos that were not played \
               to their end",
    why: "A page load without some resources is faster than the whole page, and a video that was given up \
          stalls no longer.",
    remedy: "Check that the server's documents and style sheets reference all resources of the page, and \
             why segments of a video failed.",
    reads: &[Table::Player],
    ..check_none_wrong("all_requested", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut wrong, mut all, mut example) = (0, 0, String::new());
    for run in context.own.ok() {
        for facts in &run.groups {
            let Some(missing) = missing(context, &context.own.cell.group, facts) else { continue };
            all += 1;
            if let Some(problem) = missing {
                wrong += 1;
                example = format!(", such as {problem}");
            }
        }
    }
    let plays = player_of(context.plan, &context.own.cell.group).is_some();
    Finding::none_of(wrong, all, if plays { "videos" } else { "page loads" }, &example)
}

/// What is wrong with one group, if anything; `None` if it neither loads a page nor plays a video.
fn missing(context: &Context<'_>, group: &ClientGroup, facts: &GroupFacts) -> Option<Option<String>> {
    if player_of(context.plan, group).is_some() {
        let expected = u64::from(group.clients);
        let problem = format!("{} of {expected} played to the end", facts.videos_ended);
        return Some((facts.videos_ended != expected).then_some(problem));
    }
    let urls = page_of(context.plan, group)?.resources.len() as u64;
    let expected = urls * u64::from(group.clients);
    let problem = format!("{} of {expected} requests, for {} URLs", facts.requests, facts.distinct_urls);
    Some((facts.requests != expected || facts.distinct_urls != urls).then_some(problem))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    #[test]
    fn a_complete_page_passes() {
        passes("all_requested", &Bench::page(&[Variant::H1s]));
        silent("all_requested", &Bench::closed(&[Variant::H1s]));
    }

    #[test]
    fn a_video_that_was_given_up_invalidates() {
        passes("all_requested", &Bench::player(&[Variant::H1s]));
        let mut bench = Bench::player(&[Variant::H1s]);
        bench.records[4].player.pop();
        let measured = fails("all_requested", &bench).measured;
        assert_eq!(measured, "1 of 5 videos, such as 0 of 1 played to the end");
    }

    #[test]
    fn a_missing_resource_invalidates() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.records[4].samples.pop();
        let measured = fails("all_requested", &bench).measured;
        assert_eq!(measured, "1 of 5 page loads, such as 2 of 3 requests, for 2 URLs");
    }
}
