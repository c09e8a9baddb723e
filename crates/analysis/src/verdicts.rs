//! Verdicts on studies whose answer is plain, and what must not change them.

use model::Statistic;
use model::plan::Level;
use model::sample::{Outcome, Sample};
use model::variant::Variant;

use crate::comparison::AdjustedP;
use crate::fixtures::Bench;
use crate::ground_truth::study::{Noise, five_cells, study};
use crate::metrics::Better;
use crate::summary::{Comparison, Estimate, Summary, Verdict};

const SEED: u64 = 20_261_121;

#[test]
fn equal_within_the_margin_is_equivalent() {
    let summary = study(&five_cells(0.1), SEED, Noise::Normal, 1.001, 20);
    assert!(summary.comparisons.iter().all(|c| c.verdict == Verdict::Equivalent), "{summary:#?}");
    assert!(summary.comparisons.iter().all(|c| c.p_equivalent_adjusted.is_some_and(|p| p < 0.001)));
}

#[test]
fn the_margin_wins_over_significance() {
    // A true 1 % over 20 runs of 0.1 % noise is beyond all chance, and does not matter.
    let ratio = Estimate { value: 1.01, low: Some(1.009), high: Some(1.011) };
    let judge = |better, margin, p_different, p_equivalent| {
        crate::comparison::judge(
            &ratio,
            better,
            margin,
            Some(AdjustedP { different: p_different, equivalent: p_equivalent }),
        )
    };
    assert_eq!(judge(Better::Lower, 0.03, 1e-9, 1e-9), Verdict::Equivalent);
    assert_eq!(judge(Better::Lower, 0.005, 1e-9, 1.0), Verdict::Worse);
    assert_eq!(judge(Better::Higher, 0.005, 1e-9, 1.0), Verdict::Better);
    assert_eq!(judge(Better::Lower, 0.005, 0.06, 1.0), Verdict::NoDifferenceShown);
    // Corrected within the family, neither claim may hold.
    assert_eq!(judge(Better::Lower, 0.03, 0.06, 0.06), Verdict::NoDifferenceShown);
    assert_eq!(judge(Better::Lower, 0.03, 1e-9, 0.06), Verdict::Worse);
}

/// A loop over h1s and h2 with this statistic. Every request over h2 takes as long as over h1s, but its
/// slowest twentieth `longer_ns` more.
fn with_a_tail(statistic: Statistic, longer_ns: u64) -> Summary {
    let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
    bench.plan.statistic = statistic;
    for record in &mut bench.records {
        let samples: Vec<Sample> = record.samples.iter().cycle().take(1000).cloned().collect();
        record.samples = samples;
        for (request, sample) in (0..).zip(&mut record.samples) {
            sample.request = request;
            let noise_ns = request * 37 % 1000 * 10_000 + u64::from(record.run * 7 % 11) * 100_000;
            let tail_ns = if record.cell == 1 && request * 37 % 1000 >= 950 { longer_ns } else { 0 };
            sample.done_ns = Some(sample.intended_ns + 200_000_000 + noise_ns + tail_ns);
            sample.first_byte_ns = sample.done_ns;
        }
    }
    bench.summary()
}

#[test]
fn the_verdict_is_about_the_statistic_of_the_study() {
    let primary = |summary: &Summary| summary.comparisons.iter().find(|c| c.primary).unwrap().clone();
    let median = with_a_tail(Statistic::Median, 50_000_000);
    assert_eq!(primary(&median).verdict, Verdict::Equivalent);
    let tail = with_a_tail(Statistic::P99, 50_000_000);
    let compared = primary(&tail);
    assert_eq!(compared.verdict, Verdict::Worse, "{compared:#?}");
    let metrics: Vec<_> = tail.cells.iter().map(|cell| &cell.metrics["request_time"]).collect();
    let ratio = metrics[1].p99.value / metrics[0].p99.value;
    assert!((compared.ratio.unwrap().value - ratio).abs() < 1e-9, "{compared:#?}");
    assert!(metrics.iter().all(|metric| metric.statistic == Statistic::P99));
    assert_eq!(metrics[1].compared(), metrics[1].p99);
    let of_runs = metrics[1].per_run.iter().map(|run| run.value);
    assert!(
        of_runs.clone().all(|value| (250e6..270e6).contains(&value)),
        "{:?}",
        of_runs.collect::<Vec<_>>()
    );
    // The rate has one value per run, so its median over runs is compared, and the mean is of all metrics.
    let rate = |summary: &Summary| summary.cells[1].metrics["requests_per_second"].statistic;
    assert_eq!(rate(&tail), Statistic::Median);
    assert_eq!(rate(&with_a_tail(Statistic::Mean, 0)), Statistic::Mean);
    assert_eq!(
        primary(&with_a_tail(Statistic::Mean, 50_000_000)).verdict,
        Verdict::Equivalent,
        "1.2 % longer"
    );
}

#[test]
fn invalid_cells_have_no_verdict() {
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

/// The adjusted p-values of two comparisons in a family of four whose other cells `change` alters.
fn p_of_the_first_two(change: impl Fn(&mut Bench)) -> Vec<(Option<f64>, Option<f64>)> {
    let mut bench = Bench::page(&[Variant::H1s, Variant::H2, Variant::H3, Variant::H2c, Variant::H1]);
    for record in bench.records.iter_mut().filter(|record| record.cell > 0) {
        // A difference that is significant with one correction and not with another.
        for sample in &mut record.samples {
            let noise_ns = u64::from(record.run * 13 % 7) * 25_000_000;
            sample.done_ns = sample.done_ns.map(|ns| ns + noise_ns);
        }
    }
    change(&mut bench);
    let summary = bench.summary();
    let primary: Vec<_> = summary.comparisons.iter().filter(|c| c.primary).collect();
    assert_eq!(primary.len(), 4);
    primary[..2].iter().map(|c| (c.p_adjusted, c.p_equivalent_adjusted)).collect()
}

#[test]
fn a_verdict_does_not_depend_on_whether_a_neighbour_is_invalid() {
    let all = p_of_the_first_two(|_| {});
    let invalid = p_of_the_first_two(|bench| {
        for record in bench.records.iter_mut().filter(|record| record.cell > 2) {
            record.samples[0].status = Some(500);
        }
    });
    assert_eq!(all, invalid);
    assert!(all.iter().all(|(p, _)| p.is_some_and(|p| p > 0.0)), "{all:?}");
    // What failed counts as p = 1: the correction never becomes weaker.
    let failed = p_of_the_first_two(|bench| {
        for record in bench.records.iter_mut().filter(|record| record.cell > 2) {
            record.outcome = Outcome::failed(model::sample::FailureKind::Server, "died");
        }
    });
    for ((p, _), (kept, _)) in failed.iter().zip(&all) {
        assert!(p.unwrap() >= kept.unwrap(), "{failed:?} {all:?}");
    }
    // What is unsupported is not tested.
    let unsupported = p_of_the_first_two(|bench| {
        for record in bench.records.iter_mut().filter(|record| record.cell > 2) {
            record.outcome = Outcome::Unsupported("this server has no HTTP/3".to_owned());
        }
    });
    assert!(unsupported[0].0.unwrap() < failed[0].0.unwrap());
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

/// The primary comparisons of a study whose times are scaled, shifted, and whose runs are given in another
/// order.
fn transformed(scale: u64, shift_ns: u64, backward: bool) -> Vec<Comparison> {
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
