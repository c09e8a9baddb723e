//! The ground truth: hundreds of simulated studies whose true values are known.
//!
//! They show the coverage of the 95 % intervals, how often a study of equal cells names a winner, how often a
//! true difference of 10 % is found, and how adding runs until an interval is narrow changes these shares.
//! The tests run a short form; `make bench-statistics` simulates 2000 studies of each kind and prints the
//! tables of
//! `docs/statistics.md`. Every study has a different seed.

pub(crate) mod study;
mod worlds;

use model::number;
use model::plan::Repetition;
use model::variant::Variant;
use study::{Noise, five_cells, is_decided};
use worlds::{Dice, WORLDS, World};

use crate::comparison::{CellRuns, compare_all};
use crate::estimate::{Sampling, Statistic, estimates, share};
use crate::fixtures::{Bench, summary_of};
use crate::repetition::progress;
use crate::summary::{CellSummary, Comparison, Estimate, Verdict};
use crate::{Distribution, RunSummary};

const SEED: u64 = 20_261_121;
const RUNS: [usize; 3] = [5, 10, 30];
const FIXED: Sampling = Sampling { seed: 1, is_until_precise: false };

/// How many studies of each kind are simulated.
fn studies() -> u32 {
    std::env::var("H123_STUDIES").ok().and_then(|text| text.parse().ok()).unwrap_or(120)
}

/// The promised share, or less by 3 standard errors if the studies are few.
fn at_least(promised: f64, studies: u32) -> f64 {
    if studies >= 2000 { promised } else { promised - 3.0 * (0.05 * 0.95 / f64::from(studies)).sqrt() }
}

fn holds(estimate: &Estimate, truth: f64) -> bool {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else { return false };
    assert!(low <= estimate.value && estimate.value <= high, "{estimate:?}");
    low <= truth && truth <= high
}

/// The share of `studies` for which something holds.
fn share_of(studies: u32, mut holds: impl FnMut(u64) -> bool) -> f64 {
    let held = (0..studies).filter(|seed| holds(SEED + u64::from(*seed))).count();
    number::count(held) / f64::from(studies)
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// The coverage of a statistic in every world at 5, 10 and 30 runs.
fn coverage(statistic: Statistic, worlds: impl Fn(&World) -> bool, promised: f64) {
    println!("\n| times | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    let mut failures = Vec::new();
    for world in WORLDS.iter().filter(|world| worlds(world)) {
        let truth = statistic.of(&world.truth()).unwrap() / 1e6;
        let shares = RUNS.map(|runs| {
            share_of(studies(), |seed| {
                let study = world.study(&mut Dice::new(seed), runs);
                holds(&estimates(&study.iter().collect::<Vec<_>>(), &[statistic], FIXED)[0], truth)
            })
        });
        println!("| {} | {} |", world.name, shares.map(percent).join(" | "));
        if shares.iter().any(|share| *share < at_least(promised, studies())) {
            failures.push((world.name, shares));
        }
    }
    assert!(failures.is_empty(), "{statistic:?}: {failures:?}, promised {promised}; seeds from {SEED}");
}

#[test]
fn intervals_of_the_median_cover_what_they_promise() {
    coverage(Statistic::MEDIAN, |_| true, 0.93);
}

// If rare runs decide a statistic, a study without such runs cannot show it: five runs in the mode of seven
// runs in ten do not show the other mode. The bounds below are the values of docs/statistics.md for the worst
// world, so that a test fails if one gets worse.

#[test]
fn intervals_of_the_mean_cover_the_documented_share_of_the_worst_world() {
    coverage(Statistic::Mean, World::has_mean, 0.83);
}

#[test]
fn intervals_of_far_quantiles_cover_the_documented_share_of_the_worst_world() {
    coverage(Statistic::Quantile(0.9), |world| world.requests > 1, 0.85);
}

#[test]
fn intervals_of_the_interquartile_range_cover_the_documented_share_of_the_worst_world() {
    coverage(Statistic::Iqr, |world| world.requests > 1, 0.90);
}

#[test]
fn intervals_of_shares_cover_what_they_promise() {
    println!("\n| failures | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    // Each run fails a different share of its 400 requests: about 30 % of Beta(3, 7), and a tenth of that.
    for (name, scale) in [("30 %, shares differ", 1.0), ("3 %, shares differ", 0.1)] {
        let shares = RUNS.map(|runs| {
            share_of(studies(), |seed| {
                let mut dice = Dice::new(seed);
                let run = |dice: &mut Dice| {
                    let share = scale * dice.beta_3_7();
                    ((0..400).filter(|_| dice.uniform() < share).count() as u64, 400)
                };
                let study: Vec<(u64, u64)> = (0..runs).map(|_| run(&mut dice)).collect();
                holds(&share(&study, FIXED).unwrap(), 0.3 * scale)
            })
        });
        println!("| {name} | {} |", shares.map(percent).join(" | "));
        assert!(shares.iter().all(|share| *share >= at_least(0.93, studies())), "{name}: {shares:?}");
    }
}

/// The last comparison of a family of four, whose true ratio is 1.1.
fn last(bench: &Bench, seed: u64, noise: Noise, runs: u32) -> Comparison {
    let summary = study::study(bench, seed, noise, 1.1, runs);
    let last = summary.comparisons.into_iter().rfind(|comparison| comparison.primary).unwrap();
    assert_eq!(last.level.value, "h3");
    last
}

#[test]
fn intervals_of_ratios_cover_what_they_promise() {
    let bench = five_cells(0.03);
    println!("\n| noise | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    for noise in Noise::ALL {
        let shares = [5, 10, 30].map(|runs| {
            share_of(studies(), |seed| holds(&last(&bench, seed, noise, runs).ratio.unwrap(), 1.1))
        });
        println!("| {} | {} |", noise.name(), shares.map(percent).join(" | "));
        assert!(shares.iter().all(|share| *share >= at_least(0.93, studies())), "{noise:?}: {shares:?}");
    }
}

#[test]
fn a_study_of_equals_seldom_names_a_winner() {
    let bench = five_cells(1e-9);
    println!("\n| noise | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    for noise in Noise::ALL {
        let shares = [5, 10, 30].map(|runs| {
            share_of(studies(), |seed| is_decided(&study::study(&bench, seed, noise, 1.0, runs)))
        });
        println!("| {} | {} |", noise.name(), shares.map(percent).join(" | "));
        // 5 % and three standard errors of a share of 5 %.
        let bound = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(studies())).sqrt();
        assert!(shares.iter().all(|share| *share <= bound), "{noise:?}: {shares:?}");
        assert!(
            shares.iter().any(|share| *share > 0.0),
            "{noise:?}: a test that never errs at 5 % tests nothing"
        );
    }
}

#[test]
fn a_difference_at_the_margin_is_seldom_called_equivalent() {
    let bench = five_cells(0.03);
    println!("\n| noise | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    for noise in Noise::ALL {
        let shares = [5, 10, 30].map(|runs| {
            // All four differ by more than the margin of 3 %, because the baseline differs.
            share_of(studies(), |seed| {
                let mut runs = study::blocks(&bench, seed, noise, 1.0, runs);
                for run in runs.iter_mut().filter(|run| run.cell == 0) {
                    let value = run.value("page_load_time").unwrap() / 1.03001;
                    run.metrics.insert("page_load_time".to_owned(), std::iter::once(value).collect());
                }
                let summary = crate::analyse(&bench.plan, &runs, &bench.networks);
                summary.comparisons.iter().any(|c| c.primary && c.verdict == Verdict::Equivalent)
            })
        });
        println!("| {} | {} |", noise.name(), shares.map(percent).join(" | "));
        let bound = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(studies())).sqrt();
        assert!(shares.iter().all(|share| *share <= bound), "{noise:?}: {shares:?}");
    }
}

#[test]
fn ten_percent_is_found_at_the_power_stated() {
    let bench = five_cells(0.03);
    println!("\n| noise | 5 runs | 10 runs | 30 runs |\n|---|---|---|---|");
    for noise in Noise::ALL {
        let mut promised = 0.0;
        let shares = [5, 10, 30].map(|runs| {
            share_of(studies(), |seed| {
                let last = last(&bench, seed, noise, runs);
                assert_ne!(last.verdict, Verdict::Better);
                promised += f64::from(u8::from(runs == 5 && last.smallest_showable_ratio.unwrap() <= 1.1));
                last.verdict == Verdict::Worse
            })
        });
        println!("| {} | {} |", noise.name(), shares.map(percent).join(" | "));
        assert!(shares[1] >= 0.95 && shares[2] >= 0.99, "{noise:?}: {shares:?}");
        // If five runs are predicted to show 10 %, they do so about as often as predicted.
        let promised = promised / f64::from(studies());
        assert!(shares[0] >= 0.75 * promised, "{noise:?}: found {}, promised {promised}", shares[0]);
    }
}

/// The comparison of two loops by a percentile; the times of the second are longer by `factor`. Their cells
/// have no caveats.
fn tails(
    bench: &Bench,
    cells: &[CellSummary],
    dice: &mut Dice,
    world: &World,
    blocks: u32,
) -> [Comparison; 2] {
    let template = summary_of(&bench.plan, &bench.records[0]);
    let times: Vec<Distribution> = (0..2 * blocks).map(|_| world.run(dice, world.requests)).collect();
    // The same times, of equal loops and of loops whose second is slower.
    [1.0, 1.1].map(|factor| {
        let run = |(run, times): (usize, &Distribution)| {
            let run = number::small(run);
            let scale = 1e9 * if run % 2 == 1 { factor } else { 1.0 };
            let times = times.counted().into_iter().map(|(time, _)| time * scale).collect();
            let metrics = [("request_time".to_owned(), times)].into();
            RunSummary { run, block: run / 2, cell: run % 2, metrics, ..template.clone() }
        };
        let runs: Vec<RunSummary> = times.iter().enumerate().map(run).collect();
        let of_cell = |cell: u32| runs.iter().filter(|run| run.cell == cell).collect::<Vec<_>>();
        let both = [of_cell(0), of_cell(1)];
        let sides: Vec<CellRuns<'_>> = (bench.plan.cells.iter().zip(cells))
            .zip(&both)
            .map(|((cell, summary), runs)| CellRuns { cell, summary, runs })
            .collect();
        compare_all(&bench.plan, &sides).into_iter().find(|comparison| comparison.primary).unwrap()
    })
}

#[test]
fn ratios_of_percentiles_cover_what_they_promise_and_equals_seldom_differ() {
    let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
    bench.plan.statistic = model::Statistic::P95;
    bench.plan.margin_share = 1e-9;
    println!("\n| times | 5 runs | 10 runs | 30 runs | winners: 5 runs | 10 runs | 30 runs |");
    println!("|---|---|---|---|---|---|---|");
    let bound = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(studies())).sqrt();
    let cells = bench.summary().cells;
    // 200 requests have 10 beyond p95: enough for the check `percentile`.
    for world in WORLDS.iter().filter(|world| world.requests > 1).map(|world| world.with_requests(200)) {
        let (mut covered, mut winners) = (Vec::new(), Vec::new());
        for runs in RUNS.map(number::small) {
            let mut wrong = 0;
            covered.push(share_of(studies(), |seed| {
                let [equal, slower] = tails(&bench, &cells, &mut Dice::new(seed), &world, runs);
                assert!(!matches!(equal.verdict, Verdict::Invalid { .. }), "{equal:#?}");
                wrong += u32::from(matches!(equal.verdict, Verdict::Better | Verdict::Worse));
                holds(&slower.ratio.unwrap(), 1.1)
            }));
            winners.push(f64::from(wrong) / f64::from(studies()));
        }
        let all: Vec<String> = covered.iter().chain(&winners).copied().map(percent).collect();
        println!("| {} | {} |", world.name, all.join(" | "));
        let name = world.name;
        assert!(covered.iter().all(|share| *share >= at_least(0.93, studies())), "{name}: {covered:?}");
        assert!(winners.iter().all(|share| *share <= bound), "{name}: {winners:?}; seeds from {SEED}");
    }
}

/// A study of two cells on a network whose losses move every load time by `network` (the standard deviation
/// of the logarithm), the same for both cells of a block if they share its seed. Runs differ by another 3 %.
fn on_a_lossy_network(bench: &Bench, seed: u64, network: f64, is_shared: bool, blocks: u32) -> Comparison {
    let mut losses = Dice::new(seed + 1_000_000);
    let mut runs = study::blocks(bench, seed, Noise::Normal, 1.0, blocks);
    for block in runs.chunks_mut(2) {
        let of_block = network * losses.normal();
        for run in block {
            let lost = if is_shared { of_block } else { network * losses.normal() };
            let value = run.value("page_load_time").unwrap() * lost.exp();
            run.metrics.insert("page_load_time".to_owned(), std::iter::once(value).collect());
        }
    }
    let summary = crate::analyse(&bench.plan, &runs, &bench.networks);
    summary.comparisons.into_iter().find(|comparison| comparison.primary).unwrap()
}

#[test]
fn the_shared_seed_of_a_block_narrows_intervals_and_names_no_more_winners() {
    let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
    bench.plan.margin_share = 1e-9;
    println!(
        "\n| network / runs | width, 5 runs | 10 runs | 30 runs | winners: 5 runs | 10 runs | 30 runs |"
    );
    println!("|---|---|---|---|---|---|---|");
    let bound = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(studies())).sqrt();
    for times in [0.5, 1.0, 2.0, 4.0] {
        let (mut widths, mut winners) = (Vec::new(), Vec::new());
        for runs in RUNS.map(number::small) {
            let mut ratios = Vec::new();
            for is_shared in [true, false] {
                let mut logs = 0.0;
                let wrong = share_of(studies(), |seed| {
                    let found = on_a_lossy_network(&bench, seed, 0.03 * times, is_shared, runs);
                    let ratio = found.ratio.unwrap();
                    logs += (ratio.high.unwrap() / ratio.low.unwrap()).ln().ln();
                    matches!(found.verdict, Verdict::Better | Verdict::Worse)
                });
                assert!(
                    wrong <= bound,
                    "{times}, {runs} runs, shared: {is_shared}: {wrong}; seeds from {SEED}"
                );
                ratios.push((logs / f64::from(studies())).exp());
                if is_shared {
                    winners.push(percent(wrong));
                }
            }
            widths.push(ratios[0] / ratios[1]);
        }
        let shown: Vec<String> = widths.iter().map(|width| format!("{width:.2}×")).collect();
        println!("| {times} | {} | {} |", shown.join(" | "), winners.join(" | "));
        // What the runs do not share remains: the errors of two independent sources add as squares.
        let expected = 1.0 / (1.0_f64 + times * times).sqrt();
        assert!(
            widths.iter().all(|width| (width / expected - 1.0).abs() < 0.15),
            "{times}: {widths:?}, expected {expected}; seeds from {SEED}"
        );
    }
}

/// The runs of a study that adds blocks until it is precise, and how many blocks that took.
fn until_precise(bench: &Bench, seed: u64, noise: Noise, factor: f64, most: u32) -> (Vec<RunSummary>, u32) {
    let mut runs = study::blocks(bench, seed, noise, factor, most);
    let cells = bench.plan.cells.len();
    let is_enough = |blocks: &u32| {
        let begun = &runs[..*blocks as usize * cells];
        progress(&bench.plan, begun).is_some_and(|progress| progress.ended_by.is_some())
    };
    let blocks = (bench.plan.runs_per_cell..=most).find(is_enough).unwrap();
    runs.truncate(blocks as usize * cells);
    (runs, blocks)
}

/// Cells with a rule that adds runs until this precision, at most 60.
fn adding(variants: &[Variant], margin: f64, precision_share: f64) -> Bench {
    let mut bench = Bench::page(variants);
    bench.plan.margin_share = margin;
    bench.plan.repetition = Some(Repetition { precision_share, budget_ns: None, most_runs: 60 });
    bench
}

#[test]
fn stopping_when_precise_does_not_bias_intervals() {
    println!("\n| noise | until ±4 % | until ±2.5 % | until ±1.5 % |\n|---|---|---|---|");
    for noise in Noise::ALL {
        let cells = [0.04, 0.025, 0.015].map(|precision| {
            let bench = adding(&[Variant::H1s, Variant::H2], 0.03, precision);
            let mut all_blocks = 0.0;
            let covered = share_of(studies(), |seed| {
                let (runs, blocks) = until_precise(&bench, seed, noise, 1.1, 60);
                all_blocks += f64::from(blocks);
                let summary = crate::analyse(&bench.plan, &runs, &bench.networks);
                holds(&summary.comparisons[0].ratio.unwrap(), 1.1)
            });
            assert!(covered >= at_least(0.93, studies()), "{noise:?}, {precision}: {covered}");
            format!("{} ({:.0} runs)", percent(covered), all_blocks / f64::from(studies()))
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
}

#[test]
fn stopping_when_precise_names_no_more_winners_among_equals() {
    println!("\n| noise | until ±4 % | until ±2.5 % |\n|---|---|---|");
    for noise in Noise::ALL {
        let shares = [0.04, 0.025].map(|precision| {
            let bench = adding(&Variant::ALL, 1e-9, precision);
            share_of(studies(), |seed| {
                let (runs, _) = until_precise(&bench, seed, noise, 1.0, 60);
                is_decided(&crate::analyse(&bench.plan, &runs, &bench.networks))
            })
        });
        println!("| {} | {} |", noise.name(), shares.map(percent).join(" | "));
        let bound = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(studies())).sqrt();
        assert!(shares.iter().all(|share| *share <= bound), "{noise:?}: {shares:?}");
    }
}
