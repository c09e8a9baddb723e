//! The summary: a sentence for each comparison of the primary metric, and one for each level over all
//! contexts.

use std::collections::BTreeSet;

use analysis::summary::{CellStatus, Comparison, Estimate, Verdict};
use model::Variant;
use serde::Serialize;

use crate::caveats::describe_reason;
use crate::context::{Context, Row};
use crate::headline;
use crate::palette::Style;
use crate::svg::{Canvas, at};
use crate::text;
use crate::view::View;

/// A sentence in parts, so that a page can highlight some.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sentence {
    /// The level's marker, an SVG element.
    pub(crate) marker: String,
    /// Such as `h3`.
    pub(crate) level: String,
    /// Between level and verdict, such as ` is `.
    pub(crate) link: String,
    /// Such as `better`.
    pub(crate) verdict: &'static str,
    /// The verdict's class.
    pub(crate) class: &'static str,
    /// After the verdict, such as ` than h1s`.
    pub(crate) against: String,
    /// The values of the level and of the baseline, such as `1.32 s instead of 2.77 s`.
    pub(crate) values: Option<String>,
    /// Such as `0.72×`.
    pub(crate) ratio: Option<String>,
    /// Such as `0.70–0.75`.
    pub(crate) interval: Option<String>,
    /// The difference, or why there is no verdict.
    pub(crate) rest: String,
    /// Whether one of the two cells has caveats.
    pub(crate) caveat: bool,
}

/// The sentences of one context.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) note: String,
    pub(crate) sentences: Vec<Sentence>,
}

/// One level over all contexts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LevelSummary {
    pub(crate) marker: String,
    pub(crate) level: String,
    pub(crate) text: String,
}

/// A marker within text.
pub(crate) fn marker(style: Style) -> String {
    let mut canvas = Canvas::default();
    canvas.marker(at(8.0, 8.0), style, 5.2);
    format!(
        "<svg class=\"figure marker s-{}\" viewBox=\"0 0 16 16\" width=\"16\" height=\"16\" aria-hidden=\"true\">{}</svg>",
        style.class,
        canvas.finish()
    )
}

/// The sentences of these contexts.
pub(crate) fn cards(view: &View<'_>, contexts: &[&Context<'_>]) -> Vec<Card> {
    contexts
        .iter()
        .map(|context| Card {
            name: context.name.clone(),
            note: context.note.clone(),
            sentences: context.rows.iter().filter_map(|row| sentence(view, context, row)).collect(),
        })
        .filter(|card| !card.sentences.is_empty())
        .collect()
}

fn sentence(view: &View<'_>, context: &Context<'_>, row: &Row<'_>) -> Option<Sentence> {
    let comparison = row.comparison?;
    let baseline = view.baseline();
    let (verdict, class) = row.verdict(comparison);
    let (link, against) = match comparison.verdict {
        Verdict::Better | Verdict::Worse => (" is ".to_owned(), format!(" than {baseline}")),
        Verdict::Equivalent => (" is ".to_owned(), format!(" to {baseline}")),
        Verdict::NoDifferenceShown | Verdict::Invalid { .. } => {
            (format!(" against {baseline}: "), String::new())
        }
    };
    let is_invalid = matches!(comparison.verdict, Verdict::Invalid { .. });
    let ratio = comparison.ratio.filter(|_| !is_invalid);
    let compared = [row.cell.cell, comparison.baseline_cell];
    let has_caveats = |row: &Row<'_>| row.cell.status == CellStatus::Caveat;
    Some(Sentence {
        marker: marker(row.series.style),
        level: row.series.name.clone(),
        link,
        verdict,
        class,
        against,
        values: ratio.and_then(|_| values(view, context, row)),
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        rest: rest(view, comparison),
        caveat: context.rows.iter().any(|row| compared.contains(&row.cell.cell) && has_caveats(row)),
    })
}

/// The compared values of a row and of the baseline.
fn values(view: &View<'_>, context: &Context<'_>, row: &Row<'_>) -> Option<String> {
    let baseline = context.rows.iter().find(|row| row.series.is_baseline)?;
    let [own, other] = [row.primary()?, baseline.primary()?]
        .map(|metric| text::value(view.metric_unit(), metric.compared().value));
    Some(format!("{own} instead of {other}"))
}

fn rest(view: &View<'_>, comparison: &Comparison) -> String {
    match &comparison.verdict {
        Verdict::Invalid { because } if because.is_empty() => "no reason is stored.".to_owned(),
        Verdict::Invalid { because } => {
            let reasons: Vec<String> = because.iter().map(|reason| describe_reason(reason)).collect();
            format!("because {}.", text::shorten(reasons.join("; ").trim_end_matches('.'), 400))
        }
        Verdict::NoDifferenceShown => comparison.smallest_showable_ratio.map_or(String::new(), |showable| {
            let share = showable.max(1.0 / showable) - 1.0;
            let correction = if excludes_one(comparison) { "Not significant after correction. " } else { "" };
            let further = headline::further_runs(view, &[comparison]).unwrap_or_default();
            if share > 1.0 {
                return format!(
                    "{correction}These runs are too few or too noisy to detect a difference.{further}"
                );
            }
            let share = text::percent(share);
            format!("{correction}This study could only have detected differences above {share}.{further}")
        }),
        Verdict::Equivalent => {
            format!("Within {} (equivalence test, 95 %).", text::percent(view.summary().margin_share))
        }
        Verdict::Better | Verdict::Worse => difference(view, comparison.difference),
    }
}

/// Whether the interval excludes 1. Intervals, unlike verdicts, are not corrected for the number of
/// comparisons.
fn excludes_one(comparison: &Comparison) -> bool {
    comparison.ratio.is_some_and(|ratio| {
        ratio.low.is_some_and(|low| low > 1.0) || ratio.high.is_some_and(|high| high < 1.0)
    })
}

/// The variants of the plan, such as `h2: HTTP/2 over TLS`.
pub(crate) fn variants(view: &View<'_>) -> Vec<String> {
    let planned: BTreeSet<Variant> = view.input.plan.cells.iter().map(|cell| cell.group.variant).collect();
    planned.iter().map(|variant| format!("{variant}: {}", variant.describe())).collect()
}

/// Such as `159 ms less [148–171].`
fn difference(view: &View<'_>, difference: Option<Estimate>) -> String {
    let Some(difference) = difference else { return String::new() };
    let is_less = difference.value < 0.0;
    let (size, word) = if is_less { (text::negated(difference), "less") } else { (difference, "more") };
    let scale = text::Scale::fitting(view.metric_unit(), size.value);
    let interval = text::interval(&scale, &size).map(|i| format!(" [{i}]")).unwrap_or_default();
    format!("{} {word}{interval}.", scale.value(size.value))
}

/// Introduces the sentences: what is compared, and how to read a ratio.
pub(crate) fn lead(view: &View<'_>) -> String {
    let (summary, factor) = (view.summary(), view.factor());
    let primary = summary.comparisons.iter().filter(|comparison| comparison.primary).count();
    if primary == 0 {
        return format!(
            "This study compares nothing: it has no second level of {factor}. Its numbers are in the tables."
        );
    }
    let what = format!(
        "{} of each {factor} compared with {}",
        text::capital(&view.compared_title()),
        view.baseline()
    );
    if summary.runs_stored == 0 {
        return format!("{what}. No run is stored, so there are no results.");
    }
    let direction = match (view.metric_unit(), view.more_is_better()) {
        ("ns", false) => "below 1× is faster",
        (_, false) => "below 1× is better",
        (_, true) => "above 1× is better",
    };
    let corrected = match primary {
        1 => String::new(),
        count => format!(" Verdicts are corrected for {count} comparisons; intervals are not."),
    };
    let runs = text::count(view.runs_per_cell(), "run", "runs");
    format!(
        "{what}: the ratio of the {}s over {runs}, with its 95 % interval in brackets; {direction}.{corrected}",
        view.statistic_noun()
    )
}

/// A line for each compared level: the number of each verdict, and the range of ratios.
pub(crate) fn summaries(view: &View<'_>) -> Vec<LevelSummary> {
    let of_series = |series: usize| {
        let rows: Vec<&Row<'_>> =
            view.rows().filter(|row| row.series.index == series && row.comparison.is_some()).collect();
        let series = &rows.first()?.series;
        let compared = rows.iter().filter_map(|row| Some((row.verdict(row.comparison?).0, row.comparison?)));
        let compared: Vec<(&'static str, &Comparison)> = compared.collect();
        Some(LevelSummary {
            marker: marker(series.style),
            level: series.name.clone(),
            text: tally(&compared),
        })
    };
    (0..view.series.len()).filter_map(of_series).collect()
}

/// These have no ratios.
const NO_VERDICT: [&str; 4] = ["invalid", "not measured", "failed", "unsupported"];

fn tally(comparisons: &[(&'static str, &Comparison)]) -> String {
    let mut parts = Vec::new();
    let verdicts = ["better", "worse", "equivalent", "no difference shown"];
    for word in verdicts.into_iter().chain(NO_VERDICT) {
        let same: Vec<&Comparison> =
            comparisons.iter().filter(|(own, _)| *own == word).map(|(_, comparison)| *comparison).collect();
        if same.is_empty() {
            continue;
        }
        let share = if same.len() == comparisons.len() && same.len() > 1 {
            format!("{word} in all {}", same.len())
        } else {
            let of = if parts.is_empty() { format!(" of {}", comparisons.len()) } else { String::new() };
            format!("{word} in {}{of}", same.len())
        };
        let ratios: Vec<f64> = same.iter().filter_map(|c| c.ratio).map(|ratio| ratio.value).collect();
        let low = ratios.iter().copied().fold(f64::MAX, f64::min);
        let high = ratios.iter().copied().fold(f64::MIN, f64::max);
        let range = match ratios.len() {
            0 => String::new(),
            _ if NO_VERDICT.contains(&word) => String::new(),
            1 => format!(" ({})", text::ratio(low)),
            _ => format!(" ({}–{})", text::ratio_number(low), text::ratio(high)),
        };
        parts.push(format!("{share}{range}"));
    }
    parts.join(", ")
}
