//! Values that belong together come from the same player.

use std::collections::BTreeSet;

use model::arm::{ARM, Difference};
use model::plan::{Plan, Published};
use model::player::Player;

use super::{Check, Context, Finding, Side, check};
use crate::run::player_of;

/// The factor whose levels name workloads.
const WORKLOAD: &str = "workload";

pub(super) const CHECK: Check = Check {
    measures: "where arms are compared: the player of both (program, library, rule, buffers and latency); and where a \
               publication has different metrics of different workloads: the players of these workloads",
    passes: "the same player",
    caveat: "different players",
    why: "Players differ in what they wait for before they start and in how they choose representations. Values of two \
          players differ by that, and those of one system do not describe what a viewer of either sees.",
    remedy: "Use one player, with the same settings, in all arms and for all metrics; or make the player the question.",
    ..check("players_match", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (plan, own) = (context.plan, player(context, &context.own)?);
    let threshold = "the same player";
    let baseline = context.baseline.as_ref().filter(|_| compares_arms_alike(context));
    if let Some(other) = baseline.and_then(|side| player(context, side)).filter(|other| *other != own) {
        let measured = format!("{own}; the baseline: {other}");
        return Some(Finding::pass_or_caveat(false, measured, threshold));
    }
    let workload = context.own.cell.level(WORKLOAD).unwrap_or_default();
    if let Some(measured) = divided(plan, workload) {
        return Some(Finding::pass_or_caveat(false, measured, threshold));
    }
    context.baseline.as_ref()?;
    Some(Finding::pass_or_caveat(true, own, threshold))
}

/// Whether arms are compared, and neither declares another client or workload as part of the question.
fn compares_arms_alike(context: &Context<'_>) -> bool {
    let Some(baseline) = context.baseline.as_ref() else { return false };
    let arms = [context.own.cell, baseline.cell].map(|cell| cell.level(ARM));
    let named = context.plan.arms.iter().filter(|arm| arms.contains(&Some(arm.name.as_str())));
    let is_declared = |differs: &BTreeSet<Difference>| {
        differs.contains(&Difference::Client) || differs.contains(&Difference::Workload)
    };
    let declared: BTreeSet<Difference> = named.flat_map(|arm| arm.differs.iter().copied()).collect();
    context.plan.baseline.factor == ARM && !is_declared(&declared)
}

/// The player of a side, in words; `None` without one.
fn player(context: &Context<'_>, side: &Side<'_>) -> Option<String> {
    let group = &side.cell.group;
    Some(format!("{} in {}", describe(player_of(context.plan, group)?), group.client))
}

fn describe(player: &Player) -> String {
    let program = player.browser.as_ref().map_or("h123's player", |browser| browser.library.title());
    let live = player.live.as_ref().map_or(String::new(), |live| {
        let catches_up = if live.catch_up { ", catching up" } else { "" };
        format!(", {} behind the live edge{catches_up}", super::time(model::number::float(live.latency_ns)))
    });
    let time = |ns: u64| super::time(model::number::float(ns));
    format!(
        "{program} with the rule {}, a buffer of {} and a start at {}{live}",
        player.rule.name(),
        time(player.goal_ns),
        time(player.startup_ns)
    )
}

/// What is divided between two players: the publication has metrics of this workload that it lacks of
/// another, which another player plays, and the other way round.
fn divided(plan: &Plan, workload: &str) -> Option<String> {
    let named = |name: &str| plan.workloads.iter().find(|named| named.name == name)?.workload.player();
    let own = named(workload)?;
    let of = |source: &str, workload: &str| -> BTreeSet<&str> {
        let entries = plan.published.iter().filter(|entry| entry.source == source);
        let entries = entries.filter(|entry| workload_of(entry) == Some(workload));
        entries.map(|entry| entry.metric.as_str()).collect()
    };
    plan.published.iter().find_map(|entry| {
        let other = workload_of(entry).filter(|other| *other != workload)?;
        let is_other = named(other).is_some_and(|other| describe(other) != describe(own));
        let (own_metrics, metrics) = (of(&entry.source, workload), of(&entry.source, other));
        let list = |metrics: &BTreeSet<&str>| metrics.iter().copied().collect::<Vec<_>>().join(", ");
        (is_other && !own_metrics.is_empty() && own_metrics.is_disjoint(&metrics)).then(|| {
            let (own_metrics, metrics) = (list(&own_metrics), list(&metrics));
            format!(
                "published: {own_metrics} of `{workload}`, {metrics} of `{other}`, which another player plays"
            )
        })
    })
}

/// The workload that a published value is about.
fn workload_of(entry: &Published) -> Option<&str> {
    entry.levels.iter().find(|level| level.factor == WORKLOAD).map(|level| level.value.as_str())
}

#[cfg(test)]
mod tests {
    use model::arm::Arm;
    use model::plan::Level;
    use model::player::Rule;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::{CheckOutcome, CheckResult};

    /// Two arms that play the same video, the second with this change.
    fn arms(change: impl Fn(&mut Player), differs: &[Difference]) -> Bench {
        let mut bench = Bench::player(&[Variant::H1s, Variant::H2]);
        let mut other = bench.plan.workloads[0].clone();
        other.name = "other".to_owned();
        let model::Workload::Player(player) = &mut other.workload else { panic!("no player") };
        change(player);
        bench.plan.workloads.push(other);
        bench.plan.cells[1].group.workload = 1;
        let level = |name: &str| Level { factor: ARM.to_owned(), value: name.to_owned() };
        for (cell, name) in bench.plan.cells.iter_mut().zip(["a", "b"]) {
            cell.levels[0] = level(name);
        }
        let differs = [Vec::new(), differs.to_vec()];
        bench.plan.arms = ["a", "b"]
            .into_iter()
            .zip(differs)
            .map(|(name, differs)| Arm { name: name.into(), differs })
            .collect();
        bench.plan.baseline = level("a");
        bench
    }

    fn found(bench: &Bench) -> CheckResult {
        let summary = bench.summary();
        let results = summary.cells.iter().flat_map(|cell| &cell.validity);
        results
            .filter(|check| check.check == "players_match")
            .max_by_key(|check| check.result)
            .unwrap()
            .clone()
    }

    #[test]
    fn the_same_player_passes_and_loops_have_none() {
        passes("players_match", &arms(|_| {}, &[]));
        passes("players_match", &Bench::player(&[Variant::H1s, Variant::H2]));
        silent("players_match", &Bench::closed(&[Variant::H1s, Variant::H2]));
    }

    #[test]
    fn another_rule_buffer_or_program_is_a_caveat_unless_it_is_declared() {
        let rule = found(&arms(|player| player.rule = Rule::Buffer, &[]));
        assert_eq!(rule.result, CheckOutcome::Caveat);
        assert!(rule.measured.contains("the rule buffer"), "{rule:?}");
        assert_eq!(found(&arms(|player| player.goal_ns *= 2, &[])).result, CheckOutcome::Caveat);
        let mut browser = arms(|_| {}, &[]);
        browser.plan.cells[1].group.client = "chromium".to_owned();
        assert_eq!(found(&browser).result, CheckOutcome::Caveat);
        let declared = arms(|player| player.rule = Rule::Buffer, &[Difference::Workload]);
        assert_eq!(found(&declared).result, CheckOutcome::Pass);
    }

    /// The start-up time of one player, everything else of another.
    #[test]
    fn metrics_of_one_publication_come_from_one_player() {
        let publishing = |change: &dyn Fn(&mut Player), metrics: [&str; 2]| {
            let mut bench = arms(change, &[Difference::Workload]);
            for (cell, name) in bench.plan.cells.iter_mut().zip(["w", "other"]) {
                cell.levels.push(Level { factor: WORKLOAD.to_owned(), value: name.to_owned() });
            }
            bench.plan.published = ["w", "other"]
                .into_iter()
                .zip(metrics)
                .map(|(workload, metric)| {
                    let level = Level { factor: WORKLOAD.to_owned(), value: workload.to_owned() };
                    Published::ratio("Doe, 2021", vec![level], metric, 1.1)
                })
                .collect();
            bench
        };
        let result = |bench: &Bench| {
            let summary = bench.summary();
            let results = summary.cells.iter().flat_map(|cell| &cell.validity);
            results.filter(|check| check.check == "players_match").map(|check| check.result).max()
        };
        let other = |player: &mut Player| player.rule = Rule::Buffer;
        assert_eq!(result(&publishing(&other, ["startup_time", "stalls"])), Some(CheckOutcome::Caveat));
        assert_ne!(result(&publishing(&other, ["startup_time", "startup_time"])), Some(CheckOutcome::Caveat));
        assert_ne!(result(&publishing(&|_| {}, ["startup_time", "stalls"])), Some(CheckOutcome::Caveat));
    }
}
