//! Numbers and names for people, and the cleaning of strings from any source.

use analysis::summary::{Estimate, RunPeriod};
use jiff::Timestamp;
use model::Statistic;
use model::class::split_metric;
pub(crate) use model::clean::clean;
use model::units::{self, three_digits};

/// In place of a missing number.
pub(crate) const NONE: &str = "–";

/// Like [`clean`], and on one line.
pub(crate) fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Cuts a text longer than `limit` characters, with an ellipsis.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Cuts the middle out of a text longer than `limit` characters: a reason ends with a program's last words.
pub(crate) fn shorten_middle(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let start: String = text.chars().take(limit / 2).collect();
    let end: String = text.chars().skip(count - (limit - 1 - limit / 2)).collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// A metric's heading; that of an unknown metric is derived from its name.
pub(crate) fn metric_title(name: &str) -> String {
    let (_, class) = split_metric(name);
    let of_class = |title: &str| match class {
        Some(class) => format!("{title} ({})", clean_line(class)),
        None => title.to_owned(),
    };
    let known = analysis::metrics::find(name).map(|metric| of_class(metric.title));
    known.unwrap_or_else(|| capital(&clean_line(&name.replace('_', " "))))
}

/// The heading of a statistic of a metric; the median is that of the metric.
pub(crate) fn statistic_title(metric: &str, statistic: Statistic) -> String {
    let title = metric_title(metric);
    match statistic {
        Statistic::Median => title,
        other => capital(&format!("{} of {}", statistic_noun(other), uncapital(&title))),
    }
}

/// A statistic within a sentence, such as `99th percentile`. An `s` makes its plural.
pub(crate) const fn statistic_noun(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Median => "median",
        Statistic::Mean => "mean",
        Statistic::Iqr => "interquartile range",
        Statistic::P90 => "90th percentile",
        Statistic::P95 => "95th percentile",
        Statistic::P99 => "99th percentile",
        Statistic::P999 => "99.9th percentile",
    }
}

/// Each item once, in the order of the first of each.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// Items by their key, in the order of the first of each.
pub(crate) fn by_key<K: PartialEq, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, items)) => items.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// The first letter in lower case, for the middle of a sentence; an abbreviation is unchanged.
pub(crate) fn uncapital(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => first.to_lowercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

/// The first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// A unit for numbers of one order of magnitude.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Divides a value in the metric's own unit.
    pub(crate) divisor: f64,
    /// Follows the number; empty for a count.
    pub(crate) label: String,
}

const TIME: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const BYTES: &[(f64, &str)] = &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
const BITS: &[(f64, &str)] = &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];

impl Scale {
    /// The unit that suits values of at most `largest`.
    pub(crate) fn fitting(unit: &str, largest: f64) -> Scale {
        let steps = match unit {
            "ns" => TIME,
            "B" => BYTES,
            "bit/s" => BITS,
            "1" | "" => &[(1.0, "")],
            other => return Scale { divisor: 1.0, label: clean_line(other) },
        };
        Scale::among(steps, largest)
    }

    /// The one of some units, with the smallest last, that suits a value.
    fn among(steps: &[(f64, &str)], value: f64) -> Scale {
        let last = (1.0, steps[steps.len() - 1].1);
        let (divisor, label) = steps.iter().copied().find(|(step, _)| value.abs() >= *step).unwrap_or(last);
        Scale { divisor, label: label.to_owned() }
    }

    /// The number without a unit and trailing zeros: for axes.
    pub(crate) fn short(&self, value: f64) -> String {
        minus(&three_digits(value / self.divisor))
    }

    /// The number without its unit. A number that has a unit has three digits, with trailing zeros, so that
    /// columns show the precision; counts stay whole.
    pub(crate) fn number(&self, value: f64) -> String {
        let scaled = value / self.divisor;
        if self.divisor <= 1.0 || scaled == 0.0 || !scaled.is_finite() {
            return self.short(value);
        }
        minus(&match scaled.abs() {
            v if v < 0.9995 => three_digits(scaled),
            v if v < 9.995 => format!("{scaled:.2}"),
            v if v < 99.95 => format!("{scaled:.1}"),
            _ => three_digits(scaled),
        })
    }

    /// The number and its unit.
    pub(crate) fn value(&self, value: f64) -> String {
        self.with_unit(&self.number(value))
    }

    /// The number without trailing zeros, and its unit: for configured values.
    pub(crate) fn short_value(&self, value: f64) -> String {
        self.with_unit(&self.short(value))
    }

    /// A title with the unit, such as `page load time (ms)`.
    pub(crate) fn title(&self, title: &str) -> String {
        if self.label.is_empty() { title.to_owned() } else { format!("{title} ({})", self.label) }
    }

    /// The unit of the same quantity that suits another value.
    fn suiting(&self, value: f64) -> Scale {
        let is_own = |steps: &&&[(f64, &str)]| steps.iter().any(|step| *step == (self.divisor, &self.label));
        match [TIME, BYTES, BITS].iter().find(is_own) {
            Some(steps) => Scale::among(steps, value),
            None => self.clone(),
        }
    }

    /// Whether a value has too many digits in this unit.
    fn is_far_from(&self, value: f64) -> bool {
        let scaled = value.abs() / self.divisor;
        value != 0.0 && !(0.1..1e4).contains(&scaled) && self.suiting(value) != *self
    }

    /// The number in the unit that suits it, joined by a no-break space.
    fn own_value(&self, value: f64) -> String {
        if value == 0.0 {
            self.number(value)
        } else {
            self.suiting(value).value(value).replace(' ', "\u{a0}")
        }
    }

    fn with_unit(&self, number: &str) -> String {
        if self.label.is_empty() { number.to_owned() } else { format!("{number} {}", self.label) }
    }
}

/// A typographic minus sign in place of a hyphen.
fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// A value with the unit that suits it.
pub(crate) fn value(unit: &str, value: f64) -> String {
    Scale::fitting(unit, value).value(value)
}

/// In place of an interval that is too wide to be useful.
const UNKNOWN: &str = "unknown";
/// An interval that ends above this multiple of its value, such as that of two runs that differ, is useless.
const USELESS_FROM: f64 = 1e3;

/// Whether an interval is too wide to be useful.
fn is_useless(estimate: &Estimate) -> bool {
    estimate.value > 0.0 && estimate.high.is_some_and(|high| high > USELESS_FROM * estimate.value)
}

/// An interval such as `409–416`, in the unit of `scale`, or `832 µs–176 s` where that unit does not suit an
/// end.
pub(crate) fn interval(scale: &Scale, estimate: &Estimate) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    if is_useless(estimate) {
        return Some(UNKNOWN.to_owned());
    }
    let joint = if low < 0.0 || high < 0.0 { " to " } else { "–" };
    if [low, high].into_iter().any(|end| scale.is_far_from(end)) {
        return Some(format!("{}{joint}{}", scale.own_value(low), scale.own_value(high)));
    }
    Some(format!("{}{joint}{}", scale.number(low), scale.number(high)))
}

/// An estimate such as `412 ms [409–416]`.
pub(crate) fn estimate(unit: &str, estimate: &Estimate) -> String {
    let scale = Scale::fitting(unit, estimate.value);
    let value = scale.value(estimate.value);
    interval(&scale, estimate).map_or_else(|| value.clone(), |interval| format!("{value} [{interval}]"))
}

/// The same estimate with the opposite sign.
pub(crate) fn negated(estimate: Estimate) -> Estimate {
    let Estimate { value, low, high } = estimate;
    Estimate { value: -value, low: high.map(|high| -high), high: low.map(|low| -low) }
}

/// A ratio with its interval, such as `0.72× [0.70–0.75]`.
pub(crate) fn ratio_with_interval(estimate: Option<Estimate>, none: &str) -> String {
    let Some(estimate) = estimate else { return none.to_owned() };
    let interval = ratio_interval(&estimate).map(|interval| format!(" [{interval}]")).unwrap_or_default();
    format!("{}{interval}", ratio(estimate.value))
}

/// A ratio such as `0.72`, without the multiplication sign.
pub(crate) fn ratio_number(ratio: f64) -> String {
    match ratio.abs() {
        r if r < 0.0995 => three_digits(ratio),
        r if r < 9.995 => format!("{ratio:.2}"),
        r if r < 99.5 => format!("{ratio:.1}"),
        _ => three_digits(ratio),
    }
}

/// A ratio such as `0.72×`.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("{}×", ratio_number(ratio))
}

/// The interval of a ratio such as `0.70–0.75`.
pub(crate) fn ratio_interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    if is_useless(estimate) {
        return Some(UNKNOWN.to_owned());
    }
    Some(format!("{}–{}", ratio_number(low), ratio_number(high)))
}

/// A share such as `5 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{}\u{a0}%", three_digits(share * 100.0))
}

/// A whole number with thin spaces between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `1 run`, `2 runs`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A duration from whole nanoseconds.
pub(crate) fn duration(ns: u64) -> String {
    units::format_duration_ns(model::number::float(ns))
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// A period in UTC, to the minute, such as `2026-11-22 13:05–13:07 UTC`.
pub(crate) fn dates(measured: &RunPeriod) -> String {
    let [began, ended] = [measured.began_unix_ns, measured.ended_unix_ns]
        .map(|ns| Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default());
    let [day, last_day] = [began, ended].map(|time| time.strftime("%Y-%m-%d").to_string());
    let [from, to] = [began, ended].map(|time| time.strftime("%H:%M").to_string());
    match (day == last_day, from == to) {
        (true, true) => format!("{day} {from} UTC"),
        (true, false) => format!("{day} {from}–{to} UTC"),
        (false, _) => format!("{day} {from} – {last_day} {to} UTC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_as_short_as_they_can_be() {
        const MINUTE: u64 = 60_000_000_000;
        // 2026-09-21 14:13:20 UTC.
        let began_unix_ns = 1_790_000_000_000_000_000;
        let found = |minutes: u64| {
            dates(&RunPeriod { began_unix_ns, ended_unix_ns: began_unix_ns + minutes * MINUTE })
        };
        assert_eq!(found(0), "2026-09-21 14:13 UTC");
        assert_eq!(found(90), "2026-09-21 14:13–15:43 UTC");
        assert_eq!(found(24 * 60), "2026-09-21 14:13 – 2026-09-22 14:13 UTC");
    }

    #[test]
    fn numbers_read_well() {
        let absurd = Estimate { value: 2.0, low: Some(1e-9), high: Some(5e10) };
        assert_eq!(ratio_interval(&absurd).unwrap(), "unknown");
        assert_eq!(estimate("ns", &absurd), "2 ns [unknown]");
        let e = Estimate { value: 1_234_567.0, low: Some(999_000.0), high: Some(1_400_000.0) };
        assert_eq!(estimate("ns", &e), "1.23 ms [0.999–1.40]");
        let wide = Estimate { value: 386e6, low: Some(832e3), high: Some(176.44e9) };
        assert_eq!(estimate("ns", &wide), "386 ms [832\u{a0}µs–176\u{a0}s]");
        assert_eq!(estimate("ns", &Estimate { low: Some(0.0), ..wide }), "386 ms [0–176\u{a0}s]");
        assert_eq!(
            estimate("ns", &Estimate { low: Some(-1e6), high: Some(9e9), ..wide }),
            "386 ms [−1.00 to 9000]"
        );
        assert_eq!(value("B", 1_600_000.0), "1.60 MB");
        assert_eq!(value("1", 55.0), "55");
        assert_eq!(value("ns", -2_000_000.0), "−2.00 ms");
        assert_eq!(ratio(0.7234), "0.72×");
        assert_eq!(ratio(0.01234), "0.0123×");
        assert_eq!(grouped(6_291_456), "6\u{202f}291\u{202f}456");
        assert_eq!(metric_title("page_load_time"), "Page load time");
        assert_eq!(metric_title("frames_dropped"), "Frames dropped");
        assert_eq!(uncapital("Page load"), "page load");
        assert_eq!(uncapital("CPU time"), "CPU time");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn deceiving_characters_are_replaced() {
        assert_eq!(clean_line("a\u{1b}[31mb\u{202e}c\nd"), "a\u{fffd}[31mb\u{fffd}c d");
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(
            (shorten_middle("abcdef", 5), shorten_middle("abcdef", 6)),
            ("ab…ef".into(), "abcdef".into())
        );
    }
}
