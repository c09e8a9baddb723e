//! Comparison of two results: of another day, another commit or another machine.
//!
//! Cells with equal levels are compared, B against A. Their runs have no common blocks, so they are two
//! independent groups: Welch's t on the logarithms of the runs' values (Welch 1947; Georges 2007, section
//! 3.3) replaces the pairs. Everything else is as within a study: the ratio of statistics with its interval,
//! Holm's correction over the cells' primary metric, equivalence within the margin, and the same verdicts.
//! Numbers cannot show whether the machine was the same: the caller lists the other differences.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use model::class::split_metric;
use model::number;
use model::plan::Level;
use model::statistic::Statistic;

use crate::checks::CHECKS;
use crate::comparison::{Contrast, ZERO_VALUE, cell_obstacles, correct, is_tested, metric_obstacles};
use crate::metrics::{self, Better, METRICS};
use crate::statistics::{self, Mean};
use crate::summary::{CellSummary, CheckOutcome, Comparison, Estimate, MetricSummary, Summary};

/// The version of what `h123 compare --json` prints.
pub const ACROSS_VERSION: u32 = 4;

/// Result B against result A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Across {
    /// [`ACROSS_VERSION`].
    pub version: u32,
    /// The primary metric of both.
    pub metric: String,
    /// The statistic that the verdicts of both are about.
    pub statistic: Statistic,
    /// The margin of interest, a share: that of A.
    pub margin_share: f64,
    /// Cell by cell in the order of B, the primary metric first.
    pub cells: Vec<CellAcross>,
    /// The levels of cells that only A has.
    pub only_in_a: Vec<Vec<Level>>,
    /// The levels of cells that only B has.
    pub only_in_b: Vec<Vec<Level>>,
    /// Other differences between the two.
    pub differences: Vec<Difference>,
    /// The checks that are a caveat of compared cells, in the order of the checks.
    pub caveats: Vec<CellCaveats>,
}

/// A check that is a caveat of compared cells in their own result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCaveats {
    /// The check.
    pub check: String,
    /// The compared cells in A that have the caveat.
    pub cells_in_a: u32,
    /// The compared cells in B that have the caveat.
    pub cells_in_b: u32,
}

/// A metric of one cell in both results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellAcross {
    /// Its statistic in A; absent if A has no value.
    pub a: Option<Estimate>,
    /// Its statistic in B.
    pub b: Option<Estimate>,
    /// Its unit.
    pub unit: String,
    /// B against A: `level` is the result, `context` are the cell's levels, `baseline_cell` is A's cell.
    pub comparison: Comparison,
}

/// A difference other than a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What differs.
    pub about: String,
    /// The value in A.
    pub a: String,
    /// The value in B.
    pub b: String,
}

/// Why two results cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// They have different primary metrics.
    #[error("A is about the metric `{a}` and B about `{b}`; compare results with the same metric")]
    Metrics {
        /// The metric of A.
        a: String,
        /// The metric of B.
        b: String,
    },
    /// Their verdicts are about different statistics.
    #[error(
        "A is about the {a} of `{metric}` and B about its {b}; compare results with the same `statistic`"
    )]
    Statistics {
        /// The metric of both.
        metric: String,
        /// The statistic of A.
        a: Statistic,
        /// The statistic of B.
        b: Statistic,
    },
    /// They have no cell in common.
    #[error("the results have no cell in common; compare results of the same matrix")]
    NoCells,
}

/// Compares B with A. `changed` has the levels with the same name but different contents, such as a workload
/// with other requests. Their cells are not comparable.
///
/// # Errors
/// The results are not comparable.
pub fn compare(
    a: &Summary,
    b: &Summary,
    changed: &[Level],
    differences: Vec<Difference>,
) -> Result<Across, NotComparable> {
    if a.metric != b.metric {
        return Err(NotComparable::Metrics { a: a.metric.clone(), b: b.metric.clone() });
    }
    if a.statistic != b.statistic {
        let metric = a.metric.clone();
        return Err(NotComparable::Statistics { metric, a: a.statistic, b: b.statistic });
    }
    let pairs: Vec<Pair<'_>> = b
        .cells
        .iter()
        .filter_map(|cell| Some(Pair { a: a.cells.iter().find(|other| is_same(other, cell))?, b: cell }))
        .collect();
    if pairs.is_empty() {
        return Err(NotComparable::NoCells);
    }
    let rules = Rules {
        changed,
        margin_share: a.margin_share,
        is_until_precise: a.repetition.is_some() || b.repetition.is_some(),
    };
    let family = pairs.iter().filter(|pair| rules.is_tested(pair, &a.metric)).count();
    let names = compared_names(&a.cells);
    let mut cells: Vec<CellAcross> = Vec::new();
    for pair in &pairs {
        cells.push(rules.primary(pair, &a.metric, family));
        for name in names.iter().filter(|name| **name != a.metric) {
            cells.extend(rules.exploratory(pair, name));
        }
    }
    let mut comparisons: Vec<Comparison> = cells.iter().map(|cell| cell.comparison.clone()).collect();
    correct(&a.metric, a.margin_share, family, &mut comparisons);
    for (cell, comparison) in cells.iter_mut().zip(comparisons) {
        cell.comparison = comparison;
    }
    let only = |cells: &[CellSummary], others: &[CellSummary]| -> Vec<Vec<Level>> {
        let alone = cells.iter().filter(|cell| !others.iter().any(|other| is_same(cell, other)));
        alone.map(|cell| cell.levels.clone()).collect()
    };
    Ok(Across {
        version: ACROSS_VERSION,
        metric: a.metric.clone(),
        statistic: a.statistic,
        margin_share: a.margin_share,
        only_in_a: only(&a.cells, &b.cells),
        only_in_b: only(&b.cells, &a.cells),
        cells,
        differences,
        caveats: caveats(&pairs),
    })
}

/// The metrics of these cells that can be compared, each followed by its classes.
fn compared_names(cells: &[CellSummary]) -> Vec<&str> {
    let names: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.metrics.keys()).map(String::as_str).collect();
    let of_metric = |name: &'static str| {
        let is_of = move |found: &&&str| split_metric(found).0 == name;
        names.iter().filter(is_of).copied().collect::<Vec<_>>()
    };
    let compared = METRICS.iter().filter(|metric| metric.better != Better::Neither);
    compared.flat_map(|metric| of_metric(metric.name)).collect()
}

/// A caveat of a cell in its own study is a caveat of the comparison.
fn caveats(pairs: &[Pair<'_>]) -> Vec<CellCaveats> {
    let has_caveat = |cell: &CellSummary, check: &str| {
        cell.validity.iter().any(|found| found.check == check && found.result == CheckOutcome::Caveat)
    };
    let of = |check: &&str| CellCaveats {
        check: (*check).to_owned(),
        cells_in_a: number::small(pairs.iter().filter(|pair| has_caveat(pair.a, check)).count()),
        cells_in_b: number::small(pairs.iter().filter(|pair| has_caveat(pair.b, check)).count()),
    };
    let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    names.iter().map(of).filter(|found| found.cells_in_a + found.cells_in_b > 0).collect()
}

fn is_same(one: &CellSummary, other: &CellSummary) -> bool {
    one.levels.len() == other.levels.len() && one.levels.iter().all(|level| other.levels.contains(level))
}

/// A cell in both results.
struct Pair<'a> {
    a: &'a CellSummary,
    b: &'a CellSummary,
}

impl<'a> Pair<'a> {
    fn metrics(&self, metric: &str) -> (Option<&'a MetricSummary>, Option<&'a MetricSummary>) {
        (self.a.metrics.get(metric), self.b.metrics.get(metric))
    }

    fn across(&self, comparison: Comparison) -> CellAcross {
        let (a, b) = self.metrics(&comparison.metric);
        CellAcross {
            a: a.map(MetricSummary::compared),
            b: b.map(MetricSummary::compared),
            unit: a.or(b).map(|metric| metric.unit.clone()).unwrap_or_default(),
            comparison,
        }
    }
}

/// The settings of all comparisons.
struct Rules<'a> {
    changed: &'a [Level],
    margin_share: f64,
    is_until_precise: bool,
}

impl Rules<'_> {
    fn primary(&self, pair: &Pair<'_>, metric: &str, family: usize) -> CellAcross {
        let because = self.obstacles(pair, metric);
        let contrast = self.contrast(pair, metric);
        let p_different = |mean: Mean| mean.p_value();
        let family = (self.is_tested(pair, metric), family);
        pair.across(contrast.primary(because, family, self.margin_share, p_different))
    }

    fn exploratory(&self, pair: &Pair<'_>, name: &str) -> Option<CellAcross> {
        let metric = metrics::find(name)?;
        let because = self.obstacles(pair, name);
        let comparison = self.contrast(pair, name).exploratory(because, metric, self.margin_share)?;
        Some(pair.across(comparison))
    }

    /// B minus A, over runs that share no blocks.
    fn contrast(&self, pair: &Pair<'_>, metric: &str) -> Contrast {
        let (a, b) = pair.metrics(metric);
        let values = |metric: Option<&MetricSummary>| -> Vec<f64> {
            metric.map_or_else(Vec::new, |metric| metric.per_run.iter().map(|run| run.value).collect())
        };
        let (a_values, b_values) = (values(a), values(b));
        let runs = a_values.len().min(b_values.len());
        let welch = |a: &[f64], b: &[f64]| {
            let widening = statistics::widening(runs, self.is_until_precise);
            Some(statistics::welch(b, a)?.widened(widening))
        };
        let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
            values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect()
        };
        let log_ratio = logarithms(&a_values).zip(logarithms(&b_values)).and_then(|(a, b)| welch(&a, &b));
        Contrast {
            metric: metric.to_owned(),
            level: Level { factor: "result".to_owned(), value: "B".to_owned() },
            context: pair.b.levels.clone(),
            cell: pair.b.cell,
            baseline_cell: pair.a.cell,
            pairs: 0,
            values: b.zip(a).map(|(b, a)| (b.compared().value, a.compared().value)),
            log_ratio,
            difference: welch(&a_values, &b_values),
            no_ratio: if runs < 2 { "one of the two has fewer than two runs" } else { ZERO_VALUE },
        }
    }

    /// Whether a pair is a member of the family.
    fn is_tested(&self, pair: &Pair<'_>, metric: &str) -> bool {
        let is_unchanged = !pair.b.levels.iter().any(|level| self.changed.contains(level));
        is_unchanged && is_tested(metric, pair.a) && is_tested(metric, pair.b)
    }

    fn obstacles(&self, pair: &Pair<'_>, metric: &str) -> Vec<String> {
        let mut because = metric_obstacles(metric);
        for level in pair.b.levels.iter().filter(|level| self.changed.contains(level)) {
            because.push(format!("the {} `{}` in B differs from the one in A", level.factor, level.value));
        }
        because.extend(cell_obstacles("the cell in A", metric, pair.a));
        because.extend(cell_obstacles("the cell in B", metric, pair.b));
        because
    }
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;
    use crate::ground_truth::study::{Noise, study};
    use crate::summary::Verdict;

    fn two_cells() -> Bench {
        Bench::page(&[Variant::H1s, Variant::H3])
    }

    fn verdicts(across: &Across) -> Vec<Verdict> {
        let primary = across.cells.iter().filter(|cell| cell.comparison.primary);
        primary.map(|cell| cell.comparison.verdict.clone()).collect()
    }

    #[test]
    fn caveats_are_counted_on_each_side() {
        let (mut few, many) =
            (Bench::page(&[Variant::H1, Variant::H2]), Bench::page(&[Variant::H1, Variant::H2]));
        few.records.retain(|record| record.block < 3);
        let found = compare(&few.summary(), &many.summary(), &[], Vec::new()).unwrap();
        let runs = found.caveats.iter().find(|found| found.check == "runs").unwrap();
        assert_eq!((runs.cells_in_a, runs.cells_in_b), (2, 0), "{:?}", found.caveats);
    }

    #[test]
    fn a_result_against_itself_is_equivalent() {
        let a = study(&two_cells(), 1, Noise::Normal, 1.0, 30);
        let across = compare(&a, &a, &[], Vec::new()).unwrap();
        assert_eq!(verdicts(&across), [Verdict::Equivalent, Verdict::Equivalent], "{across:#?}");
        let ratio = across.cells[0].comparison.ratio.unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12 && ratio.low.unwrap() < 1.0 && ratio.high.unwrap() > 1.0);
        assert_eq!((across.only_in_a.len(), across.only_in_b.len()), (0, 0));
    }

    #[test]
    fn a_slower_result_is_worse_and_a_faster_one_better() {
        let (a, b) =
            (study(&two_cells(), 1, Noise::Normal, 1.0, 10), study(&two_cells(), 2, Noise::Normal, 1.15, 10));
        let across = compare(&a, &b, &[], Vec::new()).unwrap();
        assert_ne!(verdicts(&across)[0], Verdict::Worse, "the baseline did not change");
        assert_eq!(verdicts(&across)[1], Verdict::Worse, "{across:#?}");
        assert_eq!(verdicts(&compare(&b, &a, &[], Vec::new()).unwrap())[1], Verdict::Better);
        let (there, back) = (across.cells, compare(&b, &a, &[], Vec::new()).unwrap().cells);
        for (there, back) in there.iter().zip(&back) {
            let (there, back) = (there.comparison.ratio.unwrap(), back.comparison.ratio.unwrap());
            assert!((there.value * back.value - 1.0).abs() < 1e-9);
            assert!((there.low.unwrap() * back.high.unwrap() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn noise_between_two_days_seldom_names_a_winner() {
        let bench = two_cells();
        let wrong = (0..200).filter(|seed| {
            let day = |seed| study(&bench, seed, Noise::Normal, 1.0, 5);
            let across = compare(&day(*seed), &day(seed + 1000), &[], Vec::new()).unwrap();
            verdicts(&across).iter().any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
        });
        let wrong = wrong.count();
        assert!((1..=20).contains(&wrong), "{wrong} of 200");
    }

    #[test]
    fn what_is_not_the_same_question_is_not_compared() {
        let a = study(&two_cells(), 1, Noise::Normal, 1.0, 5);
        let mut b = a.clone();
        b.metric = "request_time".to_owned();
        let error = compare(&a, &b, &[], Vec::new()).unwrap_err();
        assert!(error.to_string().contains("`page_load_time` and B about `request_time`"), "{error}");
        let mut b = a.clone();
        b.cells.retain(|cell| cell.cell == 1);
        b.cells[0].levels[1].value = "moon".to_owned();
        assert_eq!(compare(&a, &b, &[], Vec::new()).unwrap_err(), NotComparable::NoCells);
        b.cells = a.cells[..1].to_vec();
        let across = compare(&a, &b, &[], Vec::new()).unwrap();
        assert_eq!((across.only_in_a.len(), across.only_in_b.len()), (1, 0));
        let changed = a.cells[0].levels[1].clone();
        let across = compare(&a, &b, &[changed], Vec::new()).unwrap();
        let because = vec!["the network `n` in B differs from the one in A".to_owned()];
        assert_eq!(verdicts(&across), [Verdict::Invalid { because }]);
    }

    #[test]
    fn results_about_different_statistics_are_not_compared() {
        let a = study(&two_cells(), 1, Noise::Normal, 1.0, 5);
        let b = Summary { statistic: Statistic::Mean, ..a.clone() };
        let error = compare(&a, &b, &[], Vec::new()).unwrap_err().to_string();
        assert!(
            error.starts_with("A is about the median of `page_load_time` and B about its mean;"),
            "{error}"
        );
        assert_eq!(compare(&b, &b, &[], Vec::new()).unwrap().statistic, Statistic::Mean);
    }

    #[test]
    fn cells_without_numbers_say_why() {
        let a = study(&two_cells(), 1, Noise::Normal, 1.0, 5);
        let mut b = a.clone();
        b.cells[1].status = crate::summary::CellStatus::Failed;
        b.cells[1].reasons = vec!["server: died".to_owned()];
        b.cells[1].metrics.clear();
        let across = compare(&a, &b, &[], Vec::new()).unwrap();
        let because = vec!["the cell in B is failed: server: died".to_owned()];
        assert_eq!(verdicts(&across)[1], Verdict::Invalid { because });
        let one = study(&two_cells(), 1, Noise::Normal, 1.0, 1);
        let across = compare(&one, &a, &[], Vec::new()).unwrap();
        let because = vec!["one of the two has fewer than two runs".to_owned()];
        assert_eq!(verdicts(&across)[0], Verdict::Invalid { because });
    }
}
