//! Simulated studies with known answers: what the intervals cover, how often A/A errs, what a true 10 % shows.

use model::plan::Level;
use model::sample::Outcome;
use model::variant::Variant;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::distribution::Distribution;
use crate::estimate::{Figure, estimates};
use crate::fixtures::Bench;
use crate::summary::{Summary, Verdict};
use crate::{RunSummary, analyse};

const SEED: u64 = 20_261_121;

/// A standard normal number (Box and Muller 1958).
fn normal(generator: &mut Pcg64Mcg) -> f64 {
    let (u, v): (f64, f64) = (generator.random(), generator.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The share of `studies` whose 95 % interval holds the truth.
fn coverage(studies: u32, truth: f64, mut study: impl FnMut(u64) -> Vec<Distribution>) -> f64 {
    let mut covered = 0;
    for seed in 0..studies {
        let runs = study(SEED + u64::from(seed));
        let found = estimates(&runs.iter().collect::<Vec<_>>(), &[Figure::MEDIAN], 1)[0];
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(low <= found.value && found.value <= high);
        covered += u32::from(low <= truth && truth <= high);
    }
    f64::from(covered) / f64::from(studies)
}

/// Runs with one log-normal value each, whose median is 1.
fn one_value_each(runs: usize, sigma: f64) -> impl FnMut(u64) -> Vec<Distribution> {
    move |seed| {
        let mut generator = Pcg64Mcg::seed_from_u64(seed);
        (0..runs).map(|_| std::iter::once((sigma * normal(&mut generator)).exp()).collect()).collect()
    }
}

/// Runs with 60 log-normal values each, alike within the run, whose median over all is 1.
fn alike_within(runs: usize) -> impl FnMut(u64) -> Vec<Distribution> {
    move |seed| {
        let mut generator = Pcg64Mcg::seed_from_u64(seed);
        let mut run = || {
            let level = 0.2 * normal(&mut generator);
            (0..60).map(|_| (level + 0.4 * normal(&mut generator)).exp()).collect()
        };
        (0..runs).map(|_| run()).collect()
    }
}

#[test]
fn intervals_cover_what_they_promise() {
    for runs in [5, 10, 30] {
        for sigma in [0.05, 0.5, 1.0] {
            let covered = coverage(2000, 1.0, one_value_each(runs, sigma));
            println!("coverage at {runs} runs, sigma {sigma}: {covered}");
            assert!((0.93..=0.985).contains(&covered), "{runs} runs, sigma {sigma}: {covered}");
        }
    }
}

#[test]
fn intervals_cover_what_they_promise_where_requests_of_a_run_are_alike() {
    for (runs, studies) in [(5, 2000), (10, 2000), (25, 300)] {
        let covered = coverage(studies, 1.0, alike_within(runs));
        println!("coverage at {runs} runs of 60 alike requests: {covered}");
        assert!((0.93..=0.985).contains(&covered), "{runs} runs: {covered}");
    }
}

/// Five arms under this margin of interest.
fn five_arms(margin_share: f64) -> Bench {
    let mut bench = Bench::page(&Variant::ALL);
    bench.plan.margin_share = margin_share;
    bench
}

/// A study of these arms whose page load times are log-normal with 3 % of noise, of which the last arm's are
/// `factor` times the others'.
fn study(bench: &Bench, seed: u64, factor: f64, runs: u32) -> Summary {
    let mut generator = Pcg64Mcg::seed_from_u64(seed);
    let mut template = RunSummary::of(&bench.plan, &bench.records[0]);
    // A margin of nothing condemns any lateness; here times alone are in question.
    template.links.clear();
    let arms = crate::number::small(bench.plan.cells.len());
    let summaries: Vec<RunSummary> = (0..runs * arms)
        .map(|run| {
            let mut summary = template.clone();
            (summary.run, summary.block, summary.cell) = (run, run / arms, run % arms);
            let variant = bench.plan.cells[summary.cell as usize].clients[0].variant;
            summary.groups[0].versions = [(variant.http(), 3)].into();
            let scale = if run % arms == arms - 1 { factor } else { 1.0 };
            let value = 1e9 * scale * (0.03 * normal(&mut generator)).exp();
            summary.metrics = [("page_load_time", std::iter::once(value).collect())].into();
            summary
        })
        .collect();
    analyse(&bench.plan, &summaries, &bench.networks)
}

fn is_decided(summary: &Summary) -> bool {
    assert!(
        !summary.comparisons.iter().any(|c| matches!(c.verdict, Verdict::Invalid { .. })),
        "{summary:#?}"
    );
    summary.comparisons.iter().any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse))
}

#[test]
fn a_study_of_equals_seldom_names_a_winner() {
    let bench = five_arms(1e-9);
    for runs in [5, 10, 20] {
        let studies = if runs == 20 { 300 } else { 2000 };
        let wrong = (0..studies).filter(|seed| is_decided(&study(&bench, SEED + seed, 1.0, runs))).count();
        println!("A/A at {runs} runs: {wrong} of {studies} name a winner");
        // 5 % and two standard errors of a share of 5 %.
        let bound = 0.05 + 2.0 * (0.05 * 0.95 / studies as f64).sqrt();
        assert!(wrong as f64 / studies as f64 <= bound, "{runs} runs: {wrong} of {studies}");
        assert!(wrong > 0, "{runs} runs: a test that never errs at 5 % tests nothing");
    }
}

#[test]
fn ten_percent_is_found_at_the_power_stated() {
    // 3 % of noise in each arm: at 5 runs the family of four shows 10 % in most studies, at 10 runs always.
    let bench = five_arms(0.03);
    for (runs, least) in [(5, 0.6), (10, 0.99)] {
        let (mut found, mut promised) = (0.0, 0.0);
        for seed in 0..500 {
            let summary = study(&bench, SEED + seed, 1.1, runs);
            let last = summary.comparisons.last().unwrap();
            assert_eq!(last.level.value, "h3");
            found += f64::from(u8::from(last.verdict == Verdict::Worse));
            promised += f64::from(u8::from(last.smallest_showable_ratio.unwrap() <= 1.1));
            assert_ne!(last.verdict, Verdict::Better);
        }
        println!("true 10 % at {runs} runs: found in {found} of 500, promised in {promised}");
        assert!(found / 500.0 >= least, "{runs} runs: found in {found} of 500");
        // Where the data promise to show 10 %, it is found about as often: the promise is no boast.
        assert!(found >= 0.75 * promised, "{runs} runs: found {found}, promised {promised}");
    }
}

#[test]
fn equal_within_the_margin_is_equivalent() {
    let summary = study(&five_arms(0.1), SEED, 1.001, 20);
    assert!(summary.comparisons.iter().all(|c| c.verdict == Verdict::Equivalent), "{summary:#?}");
}

#[test]
fn the_margin_wins_over_significance() {
    // A true 1 % over 20 runs of 0.1 % noise is beyond all chance, and does not matter.
    let ratio = crate::summary::Estimate { value: 1.01, low: Some(1.009), high: Some(1.011) };
    let judge = |margin| crate::comparison::judge(&ratio, crate::metrics::Better::Lower, margin, Some(1e-9));
    assert_eq!(judge(0.03), Verdict::Equivalent);
    assert_eq!(judge(0.005), Verdict::Worse);
    assert_eq!(
        crate::comparison::judge(&ratio, crate::metrics::Better::Higher, 0.005, Some(1e-9)),
        Verdict::Better
    );
    assert_eq!(
        crate::comparison::judge(&ratio, crate::metrics::Better::Lower, 0.005, Some(0.06)),
        Verdict::NoDifferenceShown
    );
}

#[test]
fn what_may_not_be_believed_gives_no_verdict() {
    let mut bench = Bench::page(&[Variant::H1s, Variant::H2, Variant::H3]);
    for record in bench.records.iter_mut().filter(|record| record.cell == 2) {
        record.outcome = Outcome::Unsupported("this server has no HTTP/3".to_owned());
    }
    for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
        record.samples[0].status = Some(500);
    }
    let summary = bench.summary();
    let primary: Vec<_> = summary.comparisons.iter().filter(|c| c.primary).collect();
    assert_eq!(primary.len(), 2);
    assert_eq!(primary[0].p_adjusted, None);
    let because = |place: usize| match &primary[place].verdict {
        Verdict::Invalid { because } => because.join("; "),
        other => panic!("{other:?}"),
    };
    assert_eq!(because(0), "h2 is invalid: status (5 of 15 responses with 500)");
    assert_eq!(because(1), "h3 is unsupported: this server has no HTTP/3");
    assert_eq!(primary[1].ratio, None);
}

#[test]
fn a_study_in_order_is_valid_and_fewer_round_trips_win() {
    let bench = Bench::page(&[Variant::H1s, Variant::H2, Variant::H3]);
    let summary = bench.summary();
    assert!(
        summary.cells.iter().all(|cell| cell.status == crate::summary::CellStatus::Valid),
        "{summary:#?}"
    );
    for comparison in summary.comparisons.iter().filter(|c| c.primary) {
        assert_eq!(comparison.verdict, Verdict::Better, "{comparison:#?}");
    }
    let ratio = summary.comparisons[0].ratio.unwrap().value;
    assert!((ratio - 0.8).abs() < 0.01, "four round trips against five: {ratio}");
    assert_eq!(summary.comparisons[0].context, [Level { factor: "network".into(), value: "n".into() }]);
}

/// The primary comparisons of a study whose times are scaled, shifted, and whose runs are given in another order.
fn transformed(scale: u64, shift_ns: u64, backward: bool) -> Vec<crate::summary::Comparison> {
    let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
    for record in &mut bench.records {
        for sample in &mut record.samples {
            sample.done_ns = sample.done_ns.map(|ns| ns * scale + shift_ns);
        }
        for connection in &mut record.connections {
            connection.opened_ns *= scale;
        }
    }
    if backward {
        bench.records.reverse();
    }
    bench.summary().comparisons.into_iter().filter(|c| c.primary).collect()
}

#[test]
fn order_of_runs_does_not_matter() {
    assert_eq!(transformed(1, 0, false), transformed(1, 0, true));
}

mod properties {
    use proptest::prelude::*;

    use super::transformed;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_ratio_keeps_under_scale_and_a_difference_scales(scale in 2_u64..50) {
            let (plain, scaled) = (&transformed(1, 0, false)[0], &transformed(scale, 0, false)[0]);
            let (a, b) = (plain.ratio.unwrap(), scaled.ratio.unwrap());
            for (a, b) in [(Some(a.value), Some(b.value)), (a.low, b.low), (a.high, b.high)] {
                prop_assert!((a.unwrap() - b.unwrap()).abs() < 1e-9);
            }
            let (a, b) = (plain.difference.unwrap(), scaled.difference.unwrap());
            prop_assert!((a.value * scale as f64 - b.value).abs() < 1e-3);
            prop_assert!((plain.p_adjusted.unwrap() - scaled.p_adjusted.unwrap()).abs() < 1e-9);
            prop_assert_eq!(&plain.verdict, &scaled.verdict);
        }

        #[test]
        fn a_difference_keeps_under_shift(shift_ns in 1_u64..1_000_000_000) {
            let (plain, shifted) = (&transformed(1, 0, false)[0], &transformed(1, shift_ns, false)[0]);
            let (a, b) = (plain.difference.unwrap(), shifted.difference.unwrap());
            for (a, b) in [(Some(a.value), Some(b.value)), (a.low, b.low), (a.high, b.high)] {
                prop_assert!((a.unwrap() - b.unwrap()).abs() < 1e-3);
            }
        }
    }
}
