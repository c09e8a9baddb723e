//! The study's claims, tested on its data: one function for each kind.
//!
//! A check judges every study in the same way. A claim is a sentence that only the study's author can write
//! (*the runs were pooled*, *the script was recorded over HTTP/2*). Its consequences for the data are tested
//! like anything else.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::claim::{Bound, Claim, ClaimTest};
use model::number;
use model::plan::{Level, Plan};
use model::statistic::Statistic;

use crate::comparison::{self, CellRuns};
use crate::distribution::Distribution;
use crate::metrics::Better;
use crate::statistics;
use crate::summary::{ClaimOutcome, ClaimResult, Estimate};

/// A claim is refuted if the data have a smaller probability than this under the claim.
const CHANCE: f64 = 1e-3;

/// The result of a claim on some cells.
struct Finding {
    result: ClaimOutcome,
    measured: String,
    expected: String,
    cells: Vec<u32>,
}

/// The results of each claim, the worst first: one for each outcome among its cells. `sides` are in the order
/// of the plan.
pub(crate) fn test_all(plan: &Plan, sides: &[CellRuns<'_>]) -> Vec<ClaimResult> {
    plan.claims.iter().flat_map(|claim| test(plan, claim, sides)).collect()
}

fn test(plan: &Plan, claim: &Claim, sides: &[CellRuns<'_>]) -> Vec<ClaimResult> {
    let found: Vec<Finding> = match &claim.holds_if {
        ClaimTest::Pooled => sides.iter().filter_map(|side| pooled(plan, side)).collect(),
        ClaimTest::Best { level, among, by } => best(plan, level, among, by, sides),
        ClaimTest::Script { trained_on } => script(plan, trained_on, sides),
        ClaimTest::Scale { levels } => scale(plan, levels, sides),
        ClaimTest::Impaired => sides.iter().map(|side| impaired(plan, side)).collect(),
        ClaimTest::Value { metric, statistic, levels, against, least, most } => {
            let about = sides.iter().filter(|side| levels.iter().all(|level| has(side, level)));
            let of = (metric.as_str(), *statistic);
            let found = about.filter_map(|side| match against {
                None => value(plan, side, of, (*least, *most)),
                Some(level) => quotient(plan, side, (level, sides), of, (*least, *most)),
            });
            found.collect()
        }
    };
    let nothing = || Finding {
        result: ClaimOutcome::NotShown,
        measured: "no cell of this study can test it".to_owned(),
        expected: "cells that the claim is about".to_owned(),
        cells: sides.iter().map(|side| side.cell.cell).collect(),
    };
    let found = if found.is_empty() { vec![nothing()] } else { found };
    let result = |Finding { result, measured, expected, cells }: Finding| {
        let (text, kind) = (claim.text.clone(), claim.holds_if.kind().to_owned());
        ClaimResult { text, kind, result, measured, expected, cells }
    };
    by_outcome(found).into_iter().map(result).collect()
}

/// One finding for each outcome, the worst first, with all its cells and the texts of the first.
fn by_outcome(found: Vec<Finding>) -> Vec<Finding> {
    let mut outcomes: BTreeMap<Reverse<ClaimOutcome>, Finding> = BTreeMap::new();
    for Finding { result, measured, expected, cells } in found {
        let first = Finding { result, measured, expected, cells: Vec::new() };
        let known = outcomes.entry(Reverse(result)).or_insert(first);
        let new: Vec<u32> = cells.into_iter().filter(|cell| !known.cells.contains(cell)).collect();
        known.cells.extend(new);
    }
    outcomes.into_values().collect()
}

fn has(side: &CellRuns<'_>, level: &Level) -> bool {
    side.cell.level(&level.factor) == Some(level.value.as_str())
}

/// The cell's place in the matrix, for people.
fn place(side: &CellRuns<'_>) -> String {
    side.cell.levels.iter().map(|level| level.value.as_str()).collect::<Vec<_>>().join(" ")
}

/// Whether runs differ no more than parts of one run would: the number of each run's requests below the
/// overall median, by chi-squared (the median test of Mood, *Introduction to the Theory of Statistics*, 1950,
/// for more than two samples).
fn pooled(plan: &Plan, side: &CellRuns<'_>) -> Option<Finding> {
    let runs: Vec<&Distribution> =
        side.runs.iter().filter_map(|run| run.metrics.get(plan.metric.as_str())).collect();
    let requests: u64 = runs.iter().map(|run| run.count()).sum();
    // With one value per run, the variation within runs is unknown.
    if runs.len() < 2 || requests < 10 * runs.len() as u64 {
        return None;
    }
    let median = Distribution::merged(runs.iter().copied()).median()?;
    let below = |run: &Distribution| -> u64 {
        run.counted().iter().filter(|(value, _)| *value < median).map(|(_, count)| *count).sum()
    };
    let all_below: u64 = runs.iter().map(|run| below(run)).sum();
    let share = number::float(all_below) / number::float(requests);
    let variance = share * (1.0 - share);
    let squares = runs.iter().map(|run| {
        let n = number::float(run.count());
        if variance > 0.0 { (number::float(below(run)) - n * share).powi(2) / (n * variance) } else { 0.0 }
    });
    let p = statistics::chi_squared_tail(runs.len() - 1, squares.sum());
    let medians = || runs.iter().filter_map(|run| run.median());
    let (low, high) = (medians().reduce(f64::min)?, medians().reduce(f64::max)?);
    let spread = if low > 0.0 { (high / low - 1.0) * 100.0 } else { 0.0 };
    // Times that are rounded to more than their spread have equal medians, with different shares below them.
    let are_apart = p < CHANCE && high > low;
    let result = if are_apart { ClaimOutcome::Refuted } else { ClaimOutcome::Holds };
    let (place, spread) = (place(side), model::units::three_digits(spread));
    let p = statistics::format_p_value(p, "");
    let measured = format!(
        "{place}: medians of runs differ by {spread} %; in one population the probability of this is {p}"
    );
    let expected = format!("a probability of at least {CHANCE}");
    Some(Finding { result, measured, expected, cells: vec![side.cell.cell] })
}

/// Whether a level is the best of some levels of its factor, or of all, by every statistic and in every
/// context, with an interval apart from all others.
fn best(
    plan: &Plan,
    level: &Level,
    among: &[Level],
    by: &[Statistic],
    sides: &[CellRuns<'_>],
) -> Vec<Finding> {
    let better = crate::metrics::find(&plan.metric).map_or(Better::Neither, |metric| metric.better);
    let chosen = sides.iter().filter(|side| has(side, level));
    let pairs = chosen.flat_map(|side| {
        let is_rival =
            |other: &&CellRuns<'_>| among.is_empty() || among.iter().any(|level| has(other, level));
        let rivals = sides.iter().filter(|other| differs_only_in(side, other, &level.factor));
        rivals.filter(is_rival).map(move |other| (side, other))
    });
    pairs
        .flat_map(|(side, other)| {
            by.iter().filter_map(move |statistic| beats(plan, better, side, other, *statistic))
        })
        .collect()
}

/// Whether two cells differ only in the level of a factor.
fn differs_only_in(side: &CellRuns<'_>, other: &CellRuns<'_>, factor: &str) -> bool {
    side.cell.cell != other.cell.cell
        && side.cell.levels.iter().all(|level| level.factor == factor || has(other, level))
}

fn beats(
    plan: &Plan,
    better: Better,
    side: &CellRuns<'_>,
    other: &CellRuns<'_>,
    statistic: Statistic,
) -> Option<Finding> {
    let estimate = |side: &CellRuns<'_>| Some(side.summary.metrics.get(&plan.metric)?.estimate(statistic));
    let (own, rival) = (estimate(side)?, estimate(other)?);
    // Less spread is better for every metric.
    let is_less = statistic == Statistic::Iqr || better == Better::Lower;
    let (low, high) = if is_less { (own, rival) } else { (rival, own) };
    let result = match (low.high, high.low) {
        (Some(top), Some(bottom)) if top < bottom => ClaimOutcome::Holds,
        _ if low.value > high.value && low.low > high.high => ClaimOutcome::Refuted,
        _ => ClaimOutcome::NotShown,
    };
    let unit = side.summary.metrics.get(&plan.metric).map_or("", |metric| metric.unit.as_str());
    let (statistic, cells) = (statistic.name(), vec![side.cell.cell, other.cell.cell]);
    let (own, rival) = (shown(&own, unit), shown(&rival, unit));
    let measured = format!("the {statistic} of {} is {own}, and of {} {rival}", place(side), place(other));
    Some(Finding { result, measured, expected: format!("the significantly better {statistic}"), cells })
}

/// Such as `4.9 ms [4.7 ms\u{2013}5.2 ms]`.
fn shown(estimate: &Estimate, unit: &str) -> String {
    let one = |value: f64| match unit {
        "ns" => model::units::format_duration_ns(value),
        "B" => model::units::format_bytes(value),
        _ => model::units::three_digits(value),
    };
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{} [{}\u{2013}{}]", one(estimate.value), one(low), one(high)),
        _ => one(estimate.value),
    }
}

/// Whether responses took as long in the other cells as in the one with which the script was recorded: the
/// script's requests follow that cell's responses.
fn script(plan: &Plan, trained_on: &Level, sides: &[CellRuns<'_>]) -> Vec<Finding> {
    let trained = sides.iter().filter(|side| has(side, trained_on));
    let found = trained.flat_map(|side| {
        let others = sides.iter().filter(|other| differs_only_in(side, other, &trained_on.factor));
        others.filter_map(|other| equality(plan, "request_time", other, side))
    });
    found.collect()
}

/// Whether a metric is the same at every level of a factor.
fn scale(plan: &Plan, levels: &[Level], sides: &[CellRuns<'_>]) -> Vec<Finding> {
    let Some((first, rest)) = levels.split_first() else { return Vec::new() };
    let large = sides.iter().filter(|side| has(side, first));
    let found = large.flat_map(|side| {
        let small = sides.iter().filter(|other| {
            differs_only_in(side, other, &first.factor) && rest.iter().any(|level| has(other, level))
        });
        small.filter_map(|other| equality(plan, &plan.metric, other, side))
    });
    found.collect()
}

/// Whether a metric is equal in two cells, within the margin of interest.
fn equality(plan: &Plan, metric: &str, side: &CellRuns<'_>, other: &CellRuns<'_>) -> Option<Finding> {
    let ratio = comparison::ratio_of(plan, metric, side, other)?;
    let (low, high) = (ratio.low?, ratio.high?);
    let (least, most) = (1.0 / (1.0 + plan.margin_share), 1.0 + plan.margin_share);
    let result = lies_within((low, high), (least, most));
    let (own, ratio, other) = (place(side), shown(&ratio, ""), place(other));
    let measured = format!("{metric} of {own} is {ratio} times that of {other}");
    let expected = format!("from {least:.3} to {most:.3}, the margin of interest");
    Some(Finding { result, measured, expected, cells: vec![side.cell.cell] })
}

/// The outcome of a claim that a value lies within bounds.
fn lies_within((low, high): (f64, f64), (least, most): (f64, f64)) -> ClaimOutcome {
    if low >= least && high <= most {
        ClaimOutcome::Holds
    } else if high < least || low > most {
        ClaimOutcome::Refuted
    } else {
        ClaimOutcome::NotShown
    }
}

/// Whether the cell's network is impaired, according to the plan and the calibration. A delay alone impairs
/// nothing: no packet waits behind others or is lost.
fn impaired(plan: &Plan, side: &CellRuns<'_>) -> Finding {
    let network = plan.network_of(side.cell);
    let seen = side.runs.iter().filter(|run| run.calibration.is_some()).count();
    let result = match (network.limits_or_loses(), seen) {
        (false, _) => ClaimOutcome::Refuted,
        (true, 0) => ClaimOutcome::NotShown,
        (true, _) => ClaimOutcome::Holds,
    };
    let name = &network.name;
    let measured = match (network.is_impaired(), network.limits_or_loses()) {
        (false, _) => format!("the network {name} has no delay, no rate and no loss"),
        (true, false) => format!("the network {name} only delays packets: it has no rate and no loss"),
        (true, true) => format!("the network {name} is emulated and was calibrated in {seen} runs"),
    };
    let expected = "a rate, a loss or an outage, calibrated".to_owned();
    Finding { result, measured, expected, cells: vec![side.cell.cell] }
}

/// Whether a statistic of a metric lies within bounds, with its whole interval.
fn value(
    plan: &Plan,
    side: &CellRuns<'_>,
    (metric, statistic): (&str, Statistic),
    (least, most): (Option<Bound>, Option<Bound>),
) -> Option<Finding> {
    let summary = side.summary.metrics.get(metric)?;
    let estimate = summary.estimate(statistic);
    let rtt_ns = number::float(plan.network_of(side.cell).rtt_ns());
    let resolved = |bound: Bound| match bound {
        Bound::Plain(value) => value,
        Bound::RoundTrips(trips) => trips * rtt_ns,
    };
    let least = least.map_or(f64::NEG_INFINITY, resolved);
    let most = most.map_or(f64::INFINITY, resolved);
    let (low, high) = (estimate.low?, estimate.high?);
    let result = lies_within((low, high), (least, most));
    let expected = bounds((least, most), &summary.unit);
    let (shown, place) = (shown(&estimate, &summary.unit), place(side));
    let measured = format!("the {} of {metric} is {shown} ({place})", statistic.name());
    Some(Finding { result, measured, expected, cells: vec![side.cell.cell] })
}

/// Whether a statistic of a metric, divided by that of the cell with another level, lies within bounds, with
/// its whole interval.
fn quotient(
    plan: &Plan,
    side: &CellRuns<'_>,
    (against, sides): (&Level, &[CellRuns<'_>]),
    (metric, statistic): (&str, Statistic),
    (least, most): (Option<Bound>, Option<Bound>),
) -> Option<Finding> {
    let is_other =
        |other: &&CellRuns<'_>| has(other, against) && differs_only_in(side, other, &against.factor);
    let other = sides.iter().find(is_other)?;
    let ratio = comparison::ratio_by(plan, (metric, statistic), side, other)?;
    let plain = |bound: Option<Bound>, default: f64| match bound {
        Some(Bound::Plain(value)) => value,
        _ => default,
    };
    let (least, most) = (plain(least, f64::NEG_INFINITY), plain(most, f64::INFINITY));
    let result = lies_within((ratio.low?, ratio.high?), (least, most));
    let (statistic, ratio) = (statistic.name(), shown(&ratio, ""));
    let (own, base) = (place(side), place(other));
    let measured = format!("the {statistic} of {metric} of {own} is {ratio} times that of {base}");
    Some(Finding { result, measured, expected: bounds((least, most), ""), cells: vec![side.cell.cell] })
}

/// Such as `from 150 ms to 450 ms`.
fn bounds((least, most): (f64, f64), unit: &str) -> String {
    let bound = |value: f64| shown(&Estimate { value, low: None, high: None }, unit);
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("from {} to {}", bound(least), bound(most)),
        (true, false) => format!("at least {}", bound(least)),
        _ => format!("at most {}", bound(most)),
    }
}

#[cfg(test)]
mod tests {
    use model::sample::Sample;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;

    fn level(value: &str) -> Level {
        Level { factor: "variant".to_owned(), value: value.to_owned() }
    }

    fn result(mut bench: Bench, holds_if: ClaimTest) -> ClaimResult {
        bench.plan.claims = vec![Claim { text: "So it is.".to_owned(), holds_if }];
        bench.summary().claims.remove(0)
    }

    /// A loop whose requests take 10 to 12 ms; those of run `r` take this factor longer.
    fn spread(variants: &[Variant], longer: impl Fn(u32, u32) -> f64) -> Bench {
        let mut bench = Bench::closed(variants);
        for record in &mut bench.records {
            let factor = longer(record.cell, record.block);
            for sample in &mut record.samples {
                // A multiple of 37 modulo 50 visits every residue.
                let took_ns = (10e6 + 40e3 * number::float(sample.request * 37 % 50)) * factor;
                let begin_ns = sample.intended_ns;
                let end_ns = Some(begin_ns + number::nearest(took_ns));
                *sample = Sample { first_byte_ns: end_ns, done_ns: end_ns, ..sample.clone() };
            }
        }
        bench
    }

    #[test]
    fn equal_runs_may_be_pooled_and_different_ones_not() {
        let equal = result(spread(&[Variant::H1], |_, _| 1.0), ClaimTest::Pooled);
        assert_eq!(equal.result, ClaimOutcome::Holds, "{equal:?}");
        let apart = result(spread(&[Variant::H1], |_, run| 1.0 + 0.05 * f64::from(run)), ClaimTest::Pooled);
        assert_eq!(apart.result, ClaimOutcome::Refuted, "{apart:?}");
        assert!(apart.measured.contains("differ by 20 %"), "{apart:?}");
        let mut rounded = spread(&[Variant::H1], |_, run| 1.0 + 0.002 * f64::from(run));
        for sample in rounded.records.iter_mut().flat_map(|record| &mut record.samples) {
            let took_ns = sample.done_ns.map(|ns| (ns - sample.intended_ns) / 4_000_000 * 4_000_000);
            sample.done_ns = took_ns.map(|took_ns| sample.intended_ns + took_ns);
            sample.first_byte_ns = sample.done_ns;
        }
        assert_eq!(result(rounded, ClaimTest::Pooled).result, ClaimOutcome::Holds, "equal medians");
        // One value per run does not show the variation within runs.
        let pages = result(Bench::page(&[Variant::H1]), ClaimTest::Pooled);
        assert_eq!((pages.result, pages.cells), (ClaimOutcome::NotShown, vec![0]));
    }

    #[test]
    fn the_best_is_best_by_every_statistic() {
        let noise = |run: u32| 1.0 + 0.001 * f64::from(run);
        let bench = |factor: f64| {
            spread(&[Variant::H1, Variant::H2c], move |cell, run| {
                noise(run) * if cell == 1 { factor } else { 1.0 }
            })
        };
        let by = |statistics: &[Statistic]| {
            let (level, among) = (level("h2c"), vec![level("h1")]);
            ClaimTest::Best { level, among, by: statistics.to_vec() }
        };
        let quick = result(bench(0.8), by(&[Statistic::Median]));
        assert_eq!(quick.result, ClaimOutcome::Holds, "{quick:?}");
        let slow = result(bench(1.2), by(&[Statistic::Median]));
        assert_eq!(slow.result, ClaimOutcome::Refuted, "{slow:?}");
        let same = result(bench(1.0), by(&[Statistic::Median]));
        assert_eq!(same.result, ClaimOutcome::NotShown, "{same:?}");
        // A lower median, a wider spread: what study 1's choice of the best was.
        let mut wide = bench(0.5);
        for record in wide.records.iter_mut().filter(|record| record.cell == 1) {
            for sample in record.samples.iter_mut().filter(|sample| sample.request % 2 == 1) {
                sample.done_ns = sample.done_ns.map(|ns| ns + 2_000_000);
            }
        }
        let both = result(wide, by(&[Statistic::Median, Statistic::Iqr]));
        assert_eq!((both.result, both.cells.as_slice()), (ClaimOutcome::Refuted, &[1, 0][..]), "{both:?}");
        assert!(both.measured.starts_with("the iqr of h2c n is "), "{both:?}");
    }

    #[test]
    fn a_script_fits_cells_with_equal_request_times() {
        let trained = || ClaimTest::Script { trained_on: level("h1") };
        let bench = |factor: f64| {
            spread(&[Variant::H1, Variant::H2c], move |cell, run| {
                (1.0 + 0.001 * f64::from(run)) * if cell == 1 { factor } else { 1.0 }
            })
        };
        assert_eq!(result(bench(1.001), trained()).result, ClaimOutcome::Holds);
        let other = result(bench(2.0), trained());
        assert_eq!((other.result, other.cells.as_slice()), (ClaimOutcome::Refuted, &[1][..]), "{other:?}");
        let alone = result(spread(&[Variant::H2c], |_, _| 1.0), trained());
        assert_eq!(alone.result, ClaimOutcome::NotShown, "nothing was recorded");
    }

    #[test]
    fn one_size_represents_another_with_equal_values() {
        let sizes = || ClaimTest::Scale { levels: vec![level("h1"), level("h2c")] };
        let bench = |factor: f64, noise: f64| {
            spread(&[Variant::H1, Variant::H2c], move |cell, run| {
                (1.0 + noise * f64::from((run + cell) % 3)) * if cell == 1 { factor } else { 1.0 }
            })
        };
        assert_eq!(result(bench(1.0, 0.001), sizes()).result, ClaimOutcome::Holds);
        assert_eq!(result(bench(1.5, 0.001), sizes()).result, ClaimOutcome::Refuted);
        assert_eq!(result(bench(1.0, 0.2), sizes()).result, ClaimOutcome::NotShown);
    }

    #[test]
    fn the_best_of_some_levels_may_be_worse_than_others() {
        let variants = [Variant::H1, Variant::H2c, Variant::H1s];
        let bench = || spread(&variants, |cell, run| f64::from(cell + 1) + 0.001 * f64::from(run % 3));
        let by = || vec![Statistic::Median];
        let all = result(bench(), ClaimTest::Best { level: level("h2c"), among: Vec::new(), by: by() });
        assert_eq!((all.result, all.cells.as_slice()), (ClaimOutcome::Refuted, &[1, 0][..]), "{all:?}");
        let among = vec![level("h1s")];
        let some = result(bench(), ClaimTest::Best { level: level("h2c"), among, by: by() });
        assert_eq!((some.result, some.cells.as_slice()), (ClaimOutcome::Holds, &[1, 2][..]), "{some:?}");
    }

    #[test]
    fn a_ratio_to_another_level_has_bounds() {
        let claim = |statistic: Statistic, least: Option<f64>, most: Option<f64>| ClaimTest::Value {
            metric: "request_time".to_owned(),
            statistic,
            levels: vec![level("h2c")],
            against: Some(level("h1")),
            least: least.map(Bound::Plain),
            most: most.map(Bound::Plain),
        };
        let bench = || {
            spread(&[Variant::H1, Variant::H2c], |cell, run| {
                (1.0 + 0.001 * f64::from(run)) * if cell == 1 { 2.0 } else { 1.0 }
            })
        };
        let found = result(bench(), claim(Statistic::Median, Some(1.9), Some(2.1)));
        assert_eq!((found.result, found.cells.as_slice()), (ClaimOutcome::Holds, &[1][..]), "{found:?}");
        assert!(found.measured.contains("of h2c n is 2 ["), "{found:?}");
        assert_eq!(found.expected, "from 1.9 to 2.1");
        let found = result(bench(), claim(Statistic::Iqr, Some(2.5), None));
        assert_eq!((found.result, found.expected.as_str()), (ClaimOutcome::Refuted, "at least 2.5"));
        let noisy = spread(&[Variant::H1, Variant::H2c], |cell, run| 1.0 + 0.3 * f64::from((run + cell) % 3));
        let found = result(noisy, claim(Statistic::Median, None, Some(1.0)));
        assert_eq!(found.result, ClaimOutcome::NotShown, "{found:?}");
    }

    #[test]
    fn a_claim_has_one_result_for_each_outcome() {
        let mut bench = Bench::page(&[Variant::H1, Variant::H2c]);
        let least = Some(Bound::Plain(bench.summary().cells[1].metrics["page_load_time"].median.value));
        let (metric, statistic) = ("page_load_time".to_owned(), Statistic::Median);
        let levels = Vec::new();
        let holds_if =
            ClaimTest::Value { metric, statistic, levels, against: None, least: None, most: least };
        bench.plan.claims = vec![Claim { text: "Both are quick.".to_owned(), holds_if }];
        let found = bench.summary().claims;
        let outcomes: Vec<_> = found.iter().map(|found| (found.result, found.cells.as_slice())).collect();
        assert_eq!(outcomes, [(ClaimOutcome::Refuted, &[0][..]), (ClaimOutcome::NotShown, &[1][..])]);
    }

    #[test]
    fn a_network_without_anything_impairs_nothing() {
        let bench = Bench::page(&[Variant::H1]);
        assert_eq!(result(bench, ClaimTest::Impaired).result, ClaimOutcome::Holds);
        let mut wire = Bench::page(&[Variant::H1]);
        wire.plan.networks[0] = crate::fixtures::network(0, None);
        let found = result(wire, ClaimTest::Impaired);
        assert_eq!(found.result, ClaimOutcome::Refuted, "{found:?}");
        let mut delayed = Bench::page(&[Variant::H1]);
        delayed.plan.networks[0] = crate::fixtures::network(150_000_000, None);
        let found = result(delayed, ClaimTest::Impaired);
        assert_eq!(found.result, ClaimOutcome::Refuted, "{found:?}");
        assert!(found.measured.contains("only delays packets"), "{found:?}");
        let mut unseen = Bench::page(&[Variant::H1]);
        unseen.records.iter_mut().for_each(|record| record.round_trips.clear());
        assert_eq!(result(unseen, ClaimTest::Impaired).result, ClaimOutcome::NotShown);
    }

    #[test]
    fn values_are_bounded_in_round_trips_too() {
        let claim = |least: f64, most: f64| ClaimTest::Value {
            metric: "page_load_time".to_owned(),
            statistic: Statistic::Median,
            levels: vec![level("h2")],
            against: None,
            least: Some(Bound::RoundTrips(least)),
            most: Some(Bound::RoundTrips(most)),
        };
        // Two handshakes and two exchanges of 160 ms on a network of 150 ms.
        let found = result(Bench::page(&[Variant::H1s, Variant::H2]), claim(4.0, 4.6));
        assert_eq!((found.result, found.cells.as_slice()), (ClaimOutcome::Holds, &[1][..]), "{found:?}");
        let found = result(Bench::page(&[Variant::H1s, Variant::H2]), claim(1.0, 3.0));
        assert_eq!(found.result, ClaimOutcome::Refuted, "{found:?}");
        assert_eq!(found.expected, "from 150 ms to 450 ms");
    }
}
