//! Every page load requested every resource once, and every video was played to its end.

use std::collections::BTreeMap;

use model::external::OWN_CLIENT;
use model::options::Visit;
use model::plan::ClientGroup;
use model::player::PlayerFault;

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
    if player_of(context.plan, &context.own.cell.group).is_some() {
        return judge_videos(context);
    }
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
    Finding::none_of(wrong, all, "page loads", &example)
}

/// Counts the videos that were not played to their end, by the reasons of their players.
fn judge_videos(context: &Context<'_>) -> Option<Finding> {
    let (mut ended, mut all, mut given_up) = (0, 0, BTreeMap::<PlayerFault, u64>::new());
    for facts in context.own.ok().flat_map(|run| &run.groups) {
        all += u64::from(context.own.cell.group.clients);
        ended += facts.videos_ended;
        for (fault, players) in &facts.given_up {
            *given_up.entry(*fault).or_default() += players;
        }
    }
    let reasons =
        given_up.iter().map(|(fault, players)| format!("{players} {}", fault.name().replace('_', " ")));
    let reasons: Vec<String> = reasons.collect();
    let note = if reasons.is_empty() { String::new() } else { format!(" gave up: {}", reasons.join(", ")) };
    Finding::none_of(all.saturating_sub(ended), all, "videos", &note)
}

/// What is wrong with one group, if anything; `None` if it does not load a page.
fn missing(context: &Context<'_>, group: &ClientGroup, facts: &GroupFacts) -> Option<Option<String>> {
    let page = page_of(context.plan, group)?;
    if page.is_outside() && group.client != OWN_CLIENT {
        // A browser requests what the page names, and not what was found before.
        return None;
    }
    if context.plan.workload_of(group).options.connections.visit == Visit::Cached {
        // What the cache answers is not requested.
        return None;
    }
    let urls = page.resources.len() as u64;
    let expected = urls * u64::from(group.clients);
    let problem = format!("{} of {expected} requests, for {} URLs", facts.requests, facts.distinct_urls);
    Some((facts.requests != expected || facts.distinct_urls != urls).then_some(problem))
}

#[cfg(test)]
mod tests {
    use model::player::{PlayerEvent, PlayerEventKind, PlayerFault};
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
        assert_eq!(fails("all_requested", &bench).measured, "1 of 5 videos");
        for (record, fault) in [(3, PlayerFault::SegmentFailed), (4, PlayerFault::NeverPlayed)] {
            let events = &mut bench.records[record].player;
            events.retain(|event| event.what != PlayerEventKind::Ended);
            events.push(PlayerEvent {
                what: PlayerEventKind::GaveUp,
                fault: Some(fault),
                ..PlayerEvent::default()
            });
        }
        let measured = fails("all_requested", &bench).measured;
        assert_eq!(measured, "2 of 5 videos gave up: 1 segment failed, 1 never played");
    }

    #[test]
    fn a_missing_resource_invalidates() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.records[4].samples.pop();
        let measured = fails("all_requested", &bench).measured;
        assert_eq!(measured, "1 of 5 page loads, such as 2 of 3 requests, for 2 URLs");
    }
}
