//! The answer: which level is best where, in sentences with absolute values, the largest differences first.

use std::cmp::Ordering;

use analysis::further::{self, MOST_FURTHER};
use analysis::summary::{Comparison, Estimate, Verdict};
use model::Variant;
use model::units::format_expected;

use crate::context::{Context, Row};
use crate::text;
use crate::view::View;

/// Contexts with a sentence; the others are counted.
const MAX_CONTEXTS: usize = 4;

/// What a context shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// A level differs from the baseline.
    Decided,
    /// All levels are within the margin.
    Equivalent,
    /// Neither.
    Open,
    /// There is no comparison.
    Alone,
    /// There is no valid value.
    Nothing,
}

/// A context as its sentence reads it.
struct Place<'v, 'a> {
    context: &'v Context<'a>,
    /// The rows with valid values, the best first.
    ranked: Vec<&'v Row<'a>>,
    outcome: Outcome,
}

/// The answer of the study.
pub(crate) fn sentences(view: &View<'_>) -> Vec<String> {
    if view.summary().runs_stored == 0 {
        return Vec::new();
    }
    let mut places: Vec<Place<'_, '_>> =
        view.contexts.iter().map(|context| Place::new(view, context)).collect();
    places.sort_by(|one, other| {
        one.outcome
            .cmp(&other.outcome)
            .then(other.spread().partial_cmp(&one.spread()).unwrap_or(Ordering::Equal))
    });
    let mut sentences = Vec::new();
    if places.len() > MAX_CONTEXTS {
        sentences.push(tally(view, &places));
    }
    let shown = places.iter().take(MAX_CONTEXTS).filter(|place| place.outcome != Outcome::Nothing);
    let mut shown: Vec<&Place<'_, '_>> = shown.collect();
    // Places where nothing is decided are one sentence if they have the same outcome.
    let undecided = shown.iter().position(|place| place.outcome != Outcome::Decided).unwrap_or(shown.len());
    let undecided = shown.split_off(undecided);
    sentences.extend(shown.into_iter().map(|place| place.decided(view)));
    for (outcome, same) in text::by_key(undecided.into_iter().map(|place| (place.outcome, place))) {
        sentences.push(undecided_sentence(view, outcome, &same));
    }
    if sentences.is_empty() {
        sentences.push("No cell has a valid value; the caveats say why.".to_owned());
    }
    sentences
}

/// Such as ` About 12 more runs of each cell (about 40 s) would decide this with a probability of 80 %.`
pub(crate) fn further_runs(view: &View<'_>, comparisons: &[&Comparison]) -> Option<String> {
    let wanted = comparisons.iter().filter_map(|c| further::further_runs(view.plan(), view.summary(), c));
    let wanted = wanted.max_by_key(|further| further.runs)?;
    let power = text::percent(analysis::comparison::POWER);
    Some(if wanted.runs > MOST_FURTHER {
        format!(" More than {MOST_FURTHER} further runs of each cell would be needed to decide this.")
    } else {
        let runs = text::count(wanted.runs as usize, "further run", "further runs");
        let time = format_expected(wanted.expected_ns);
        format!(
            " About {runs} of each cell (about {time} in total) would decide this with a probability of {power}."
        )
    })
}

impl<'v, 'a> Place<'v, 'a> {
    fn new(view: &View<'_>, context: &'v Context<'a>) -> Place<'v, 'a> {
        let mut ranked: Vec<&Row<'a>> =
            context.rows.iter().filter(|row| row.is_believable() && row.primary().is_some()).collect();
        ranked.sort_by(|one, other| value(one).total_cmp(&value(other)));
        if view.more_is_better() {
            ranked.reverse();
        }
        let verdicts: Vec<&Verdict> =
            ranked.iter().filter_map(|row| Some(&row.comparison?.verdict)).collect();
        let is_valid = |verdict: &&&Verdict| !matches!(verdict, Verdict::Invalid { .. });
        let outcome = match verdicts.iter().filter(is_valid).count() {
            _ if ranked.is_empty() => Outcome::Nothing,
            0 => Outcome::Alone,
            _ if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse)) => {
                Outcome::Decided
            }
            _ if verdicts.iter().all(|verdict| **verdict == Verdict::Equivalent) => Outcome::Equivalent,
            _ => Outcome::Open,
        };
        Place { context, ranked, outcome }
    }

    /// The difference between the best and the worst value.
    fn spread(&self) -> f64 {
        let ends = self.ranked.first().zip(self.ranked.last());
        ends.map_or(0.0, |(best, worst)| (value(worst) - value(best)).abs())
    }

    /// The levels that share the best value: from the best on, as long as intervals overlap with its own.
    fn leaders(&self) -> Vec<&'v Row<'a>> {
        let Some(best) = self.ranked.first() else { return Vec::new() };
        let overlaps = |row: &&&Row<'a>| {
            let both = best.primary().zip(row.primary());
            both.is_some_and(|(best, own)| overlap(&best.compared(), &own.compared()))
        };
        // Not beyond the first that is worse: a slower level with a wide interval is no leader.
        let leaders: Vec<&Row<'a>> = self.ranked.iter().take_while(overlaps).copied().collect();
        // If wide intervals make all of them overlap, the paired comparisons decide.
        if leaders.len() < self.ranked.len() { leaders } else { self.ranked[..1].to_vec() }
    }

    /// Such as `For north-carolina · large, `; empty in a study with one context.
    fn prefix(&self, view: &View<'_>) -> String {
        if view.contexts.len() > 1 { format!("For {}, ", self.context.name) } else { String::new() }
    }

    fn decided(&self, view: &View<'_>) -> String {
        let leaders = self.leaders();
        let names: Vec<String> = leaders.iter().map(|row| row.series.name.clone()).collect();
        let is_leading =
            |row: &&Row<'_>| leaders.iter().any(|leader| leader.series.index == row.series.index);
        let takes = if is_typical_time(view) { "takes" } else { "has" };
        // The value to compare with: that of the baseline or, where this is the best, the worst.
        let other = self.ranked.iter().find(|row| row.series.is_baseline && !is_leading(row));
        let other = other.or_else(|| self.ranked.last().filter(|row| !is_leading(row)));
        let against =
            other.map_or(String::new(), |row| format!("; {} {takes} {}", row.series.name, shown(view, row)));
        let values = range(view, leaders.iter().copied());
        format!(
            "{}{} {} with {values}{against}.{}",
            self.prefix(view),
            text::list(&names),
            is_best(view, names.len()),
            self.best_encrypted(view, &leaders, other.copied())
        )
    }

    /// The best encrypted variant, if the best variants are not encrypted.
    fn best_encrypted(&self, view: &View<'_>, leaders: &[&Row<'_>], named: Option<&Row<'_>>) -> String {
        let is_encrypted = |row: &Row<'_>| row.series.name.parse().is_ok_and(Variant::is_encrypted);
        if view.factor() != "variant" || leaders.iter().any(|row| is_encrypted(row)) {
            return String::new();
        }
        let encrypted: Vec<&Row<'_>> = self.ranked.iter().copied().filter(|row| is_encrypted(row)).collect();
        let Some(best) = encrypted.first().filter(|_| encrypted.len() > 1) else { return String::new() };
        let is_named = named.is_some_and(|row| row.series.index == best.series.index);
        let value = if is_named { String::new() } else { format!(" with {}", shown(view, best)) };
        let first = if is_typical_time(view) { superlative(view) } else { "best" };
        format!(" The {first} encrypted variant is {}{value}.", best.series.name)
    }
}

fn undecided_sentence(view: &View<'_>, outcome: Outcome, places: &[&Place<'_, '_>]) -> String {
    let names: Vec<String> = places.iter().map(|place| place.context.name.clone()).collect();
    let prefix =
        if view.contexts.len() > 1 { format!("For {}, ", text::list(&names)) } else { String::new() };
    let ranges: Vec<String> = places.iter().map(|place| range(view, place.ranked.iter().copied())).collect();
    let (metric, factor) = (view.compared_title(), view.factor());
    let values = format!("{metric} {}", text::list(&ranges));
    let sentence = match outcome {
        Outcome::Equivalent => {
            let margin = text::percent(view.summary().margin_share);
            format!(
                "{prefix}every {factor} is equivalent to {} (within {margin}): {values}.",
                view.baseline()
            )
        }
        Outcome::Open => {
            let open = places.iter().flat_map(|place| &place.ranked).filter_map(|row| row.comparison);
            let further = further_runs(view, &open.collect::<Vec<_>>()).unwrap_or_default();
            format!("{prefix}no difference is shown: {values}.{further}")
        }
        Outcome::Decided | Outcome::Alone | Outcome::Nothing => {
            let each = |place: &&Place<'_, '_>| {
                let rows = place.ranked.iter().map(|row| format!("{} {}", row.series.name, shown(view, row)));
                rows.collect::<Vec<_>>().join(", ")
            };
            let values: Vec<String> = places.iter().map(each).collect();
            format!("{prefix}{metric} is: {}.", values.join("; "))
        }
    };
    sentence_case(&sentence)
}

/// How many contexts each level wins, such as `h3 is fastest in 6 of 9 cases; …`.
fn tally(view: &View<'_>, places: &[Place<'_, '_>]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for place in places {
        let what = match place.outcome {
            Outcome::Decided => {
                let leaders = place.leaders();
                let names: Vec<String> = leaders.iter().map(|row| row.series.name.clone()).collect();
                format!("{} {}", text::list(&names), is_best(view, names.len()))
            }
            Outcome::Equivalent => format!("every {} is equivalent", view.factor()),
            Outcome::Open => "no difference is shown".to_owned(),
            Outcome::Alone => "nothing is compared".to_owned(),
            Outcome::Nothing => "there is no valid value".to_owned(),
        };
        match counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all = places.len();
    let parts: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(index, (what, count))| match index {
            0 => format!("{what} in {count} of {all} cases"),
            _ => format!("{what} in {count}"),
        })
        .collect();
    format!("{}. The largest differences:", parts.join("; "))
}

/// Such as `is fastest` or `have the highest goodput`.
fn is_best(view: &View<'_>, levels: usize) -> String {
    let is_one = levels == 1;
    match is_typical_time(view) {
        true => format!("{} fastest", if is_one { "is" } else { "are" }),
        false => format!(
            "{} the {} {}",
            if is_one { "has" } else { "have" },
            superlative(view),
            view.compared_title()
        ),
    }
}

/// Whether verdicts are about the time that something usually takes.
fn is_typical_time(view: &View<'_>) -> bool {
    view.metric_unit() == "ns" && !view.more_is_better() && view.statistic().tail_quantile().is_none()
}

fn superlative(view: &View<'_>) -> &'static str {
    match (is_typical_time(view), view.more_is_better()) {
        (true, _) => "fastest",
        (false, false) => "lowest",
        (false, true) => "highest",
    }
}

/// The first letter in upper case, unless the sentence begins with the name of a level.
fn sentence_case(text: &str) -> String {
    let is_name = text.split(' ').next().is_some_and(|word| word.contains(|c: char| c.is_ascii_digit()));
    if is_name { text.to_owned() } else { text::capital(text) }
}

fn value(row: &Row<'_>) -> f64 {
    row.primary().map_or(f64::NAN, |metric| metric.compared().value)
}

fn shown(view: &View<'_>, row: &Row<'_>) -> String {
    text::value(view.metric_unit(), value(row))
}

/// One value, or the smallest and the largest: `7.9 ms to 8.1 ms`.
fn range<'r, 'a: 'r>(view: &View<'_>, rows: impl Iterator<Item = &'r Row<'a>> + Clone) -> String {
    let smallest = rows.clone().map(value).fold(f64::MAX, f64::min);
    let largest = rows.map(value).fold(f64::MIN, f64::max);
    let [smallest, largest] = [smallest, largest].map(|value| text::value(view.metric_unit(), value));
    if smallest == largest { smallest } else { format!("{smallest} to {largest}") }
}

/// Whether the intervals overlap; those of single runs do not.
fn overlap(one: &Estimate, other: &Estimate) -> bool {
    let ends =
        |estimate: &Estimate| estimate.low.zip(estimate.high).unwrap_or((estimate.value, estimate.value));
    let ((low, high), (other_low, other_high)) = (ends(one), ends(other));
    low <= other_high && other_low <= high
}
