//! The answer: a sentence per comparison of the primary metric, and one per level over all contexts.

use std::collections::BTreeSet;

use analysis::summary::{CellStatus, Comparison, Estimate, Verdict};
use model::Variant;
use serde::Serialize;

use crate::caveats::describe_reason;
use crate::palette::Style;
use crate::svg::{Canvas, at};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View};

/// A sentence in parts, so that a page can set the words that matter in bold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sentence {
    /// The level's marker: an SVG element of our own.
    pub(crate) marker: String,
    /// Such as `h3`.
    pub(crate) level: String,
    /// Between level and verdict, such as ` is `.
    pub(crate) link: String,
    /// Such as `better`.
    pub(crate) verdict: String,
    /// The verdict's class.
    pub(crate) class: &'static str,
    /// After the verdict, such as ` than h1s`.
    pub(crate) against: String,
    /// Such as `0.72×`.
    pub(crate) ratio: Option<String>,
    /// Such as `0.70–0.75`.
    pub(crate) interval: Option<String>,
    /// What else a reader needs: the difference, or why there is no verdict.
    pub(crate) rest: String,
    /// Whether a check neither passed nor invalidated.
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
pub(crate) struct InShort {
    pub(crate) marker: String,
    pub(crate) level: String,
    pub(crate) text: String,
}

/// A level's marker in text.
pub(crate) fn marker(view: &View<'_>, series: usize) -> String {
    style_marker(view.series[series].style)
}

/// A style's marker in text.
pub(crate) fn style_marker(style: Style) -> String {
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
    let is_baseline = |other: &&Row<'_>| other.cell.cell == comparison.baseline_cell;
    let baseline_row = context.rows.iter().find(is_baseline);
    let caveated = |row: &Row<'_>| row.cell.status == CellStatus::Caveat;
    Some(Sentence {
        marker: marker(view, row.series),
        level: clean_line(&view.series_of(row).name),
        link,
        verdict: verdict.to_owned(),
        class,
        against,
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        rest: rest(view, comparison),
        caveat: caveated(row) || baseline_row.is_some_and(caveated),
    })
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
            let correction =
                if is_uncorrected(comparison) { "Not beyond chance once corrected. " } else { "" };
            match share {
                share if share <= 1.0 => {
                    format!("{correction}Only a difference beyond {} would have shown.", text::percent(share))
                }
                _ => format!("{correction}These runs are too few, or too scattered, to show any."),
            }
        }),
        Verdict::Equivalent => format!("Within {} for certain.", text::percent(view.summary().margin_share)),
        Verdict::Better | Verdict::Worse => difference(view, comparison.difference),
    }
}

/// Whether the interval by itself excludes that there is no difference: intervals are each for itself, and verdicts are
/// corrected for how many there are.
fn is_uncorrected(comparison: &Comparison) -> bool {
    comparison.ratio.is_some_and(|ratio| {
        ratio.low.is_some_and(|low| low > 1.0) || ratio.high.is_some_and(|high| high < 1.0)
    })
}

/// What the variants of the plan are, such as `h2: HTTP/2 over TLS`.
pub(crate) fn variants(view: &View<'_>) -> Vec<String> {
    let cells = view.input.plan.cells.iter().flat_map(|cell| &cell.clients);
    let planned: BTreeSet<Variant> = cells.map(|group| group.variant).collect();
    planned.iter().map(|variant| format!("{variant}: {}", variant.describe())).collect()
}

/// Such as `159 ms less (148–171).`
fn difference(view: &View<'_>, difference: Option<Estimate>) -> String {
    let Some(difference) = difference else { return String::new() };
    let word = if difference.value < 0.0 { "less" } else { "more" };
    let scale = text::Scale::fitting(view.metric_unit(), difference.value);
    let sign = if difference.value < 0.0 { -1.0 } else { 1.0 };
    let (low, high) = if sign < 0.0 {
        (difference.high.map(|v| -v), difference.low.map(|v| -v))
    } else {
        (difference.low, difference.high)
    };
    let size = Estimate { value: difference.value.abs(), low, high };
    let interval = text::interval(&scale, &size).map(|i| format!(" ({i})")).unwrap_or_default();
    format!("{} {word}{interval}.", scale.value(size.value))
}

/// What comes before all sentences: what is compared, and how to read a ratio.
pub(crate) fn lead(view: &View<'_>) -> String {
    let summary = view.summary();
    if summary.comparisons.iter().all(|comparison| !comparison.primary) {
        return format!(
            "This study compares nothing: it has no second level of {}. Its numbers stand in the tables.",
            clean_line(&summary.baseline.factor)
        );
    }
    let direction = match (view.metric_unit(), view.more_is_better()) {
        ("ns", false) => "below 1× is faster",
        (_, false) => "below 1× is better",
        (_, true) => "above 1× is better",
    };
    let primary = summary.comparisons.iter().filter(|comparison| comparison.primary).count();
    let corrected = match primary {
        0 | 1 => String::new(),
        count => format!(" Verdicts are corrected for there being {count} comparisons, intervals are not."),
    };
    if summary.runs_stored == 0 {
        return format!(
            "By {}, each against {}; no run is stored that could say it.",
            view.metric_title(),
            view.baseline()
        );
    }
    format!(
        "By {}, each against {}: the ratio of medians over {} and, in brackets, its 95 % interval; {direction}.{corrected}",
        view.metric_title(),
        view.baseline(),
        text::count(view.runs_per_cell(), "run", "runs"),
    )
}

/// One line per compared level: how often which verdict, and between which ratios.
pub(crate) fn in_short(view: &View<'_>) -> Vec<InShort> {
    (0..view.series.len())
        .filter_map(|series| {
            let comparisons: Vec<(&'static str, &Comparison)> = view
                .rows_with_context()
                .filter(|(_, row)| row.series == series)
                .filter_map(|(_, row)| {
                    row.comparison.map(|comparison| (row.verdict(comparison).0, comparison))
                })
                .collect();
            (!comparisons.is_empty()).then(|| InShort {
                marker: marker(view, series),
                level: clean_line(&view.series[series].name),
                text: tally(&comparisons),
            })
        })
        .collect()
}

/// What is no verdict has no ratio to be proud of.
const NO_VERDICT: [&str; 3] = ["invalid", "failed", "unsupported"];

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
