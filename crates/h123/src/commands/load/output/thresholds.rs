//! `--fail-if 'p99>50ms'`: conditions that fail a test, for CI.

use std::cmp::Ordering;
use std::str::FromStr;

use model::number::float;
use model::units::{self, format_duration_ns, three_digits};
use serde_json::{Value, json};

use super::summary::Summary;

/// A metric, a comparison and a value; the test fails if the condition holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    metric: Metric,
    /// The side of the value that fails the test.
    failing: Ordering,
    /// Whether the value itself fails it too.
    or_equal: bool,
    /// Nanoseconds, requests, requests per second, or a share from 0 to 1.
    value: f64,
    unit: Unit,
}

/// The result of a threshold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ThresholdResult {
    /// The expression as written.
    pub(crate) text: String,
    /// The measured value in the metric's unit; `None` without one.
    measured: Option<f64>,
    unit: Unit,
    /// Whether it fails the test.
    pub(crate) is_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    /// Of the latencies of successes.
    Quantile(f64),
    Mean,
    Min,
    Max,
    Failed,
    Availability,
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Ns,
    Requests,
    Share,
    PerSecond,
}

/// The metrics, comparisons and examples, for messages.
pub(super) const EXPECTED: &str = "write a metric (p50 to p99.99, mean, min, max, failed, availability, rate), \
     one of > >= < <=, and a value with its unit, such as `p99>50ms`, `failed>1%`, `availability<99.9%`, `rate<1000/s`";

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = |why: &str| format!("`{text}`: {why}; {EXPECTED}");
        let at = text.find(['<', '>']).ok_or_else(|| fault("there is no comparison"))?;
        let (name, rest) = text.split_at(at);
        let failing = if rest.starts_with('>') { Ordering::Greater } else { Ordering::Less };
        let or_equal = rest[1..].starts_with('=');
        let value = &rest[1 + usize::from(or_equal)..];
        let metric =
            Metric::parse(name.trim()).ok_or_else(|| fault(&format!("unknown metric `{}`", name.trim())))?;
        let (value, unit) = metric.value(value.trim()).map_err(|why| fault(&why))?;
        Ok(Threshold { text: text.to_owned(), metric, failing, or_equal, value, unit })
    }
}

impl Metric {
    fn parse(name: &str) -> Option<Metric> {
        Some(match name {
            "mean" => Metric::Mean,
            "min" => Metric::Min,
            "max" => Metric::Max,
            "failed" => Metric::Failed,
            "availability" => Metric::Availability,
            "rate" => Metric::Rate,
            _ => {
                let digits = name.strip_prefix('p')?;
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                let percent: f64 = digits.parse().ok().filter(|_| is_number)?;
                return (percent > 0.0 && percent < 100.0)
                    .then_some(Metric::Quantile((percent * 1e4).round() / 1e6));
            }
        })
    }

    /// Reads a value in a unit of the metric.
    fn value(self, text: &str) -> Result<(f64, Unit), String> {
        let number = |text: &str| -> Result<f64, String> {
            let value: Option<f64> = text.trim().parse().ok();
            value
                .filter(|value| value.is_finite() && *value >= 0.0)
                .ok_or(format!("`{text}` is not a number"))
        };
        match self {
            Metric::Quantile(_) | Metric::Mean | Metric::Min | Metric::Max => {
                let ns = units::parse_duration_ns(text);
                Ok((float(ns.map_err(|_| format!("`{text}` is not a duration such as `50ms`"))?), Unit::Ns))
            }
            Metric::Failed if text.ends_with('%') => Ok((share(text)?, Unit::Share)),
            Metric::Failed => Ok((number(text)?, Unit::Requests)),
            Metric::Availability => Ok((share(text)?, Unit::Share)),
            Metric::Rate => Ok((number(text.strip_suffix("/s").unwrap_or(text))?, Unit::PerSecond)),
        }
    }
}

/// A share without rounding errors: 99.9 % is exactly 0.999, so that a test at the limit is judged correctly.
fn share(text: &str) -> Result<f64, String> {
    Ok((units::parse_share(text)? * 1e9).round() / 1e9)
}

impl Threshold {
    /// The expression, if it is about latency.
    pub(crate) fn about_latency(&self) -> Option<&str> {
        (self.unit == Unit::Ns).then_some(self.text.as_str())
    }

    /// Whether the test fails. It fails if nothing was measured: nothing shows that the threshold was kept.
    pub(crate) fn judge(&self, summary: &Summary) -> ThresholdResult {
        let latency = &summary.latency;
        let measured = match (self.metric, self.unit) {
            (Metric::Quantile(share), _) => latency.quantile(share).map(float),
            (Metric::Mean, _) => latency.mean(),
            (Metric::Min, _) => latency.min().map(float),
            (Metric::Max, _) => latency.max().map(float),
            (Metric::Failed, Unit::Share) => {
                let ended = summary.ended();
                (ended > 0).then(|| float(summary.failed) / float(ended))
            }
            (Metric::Failed, _) => Some(float(summary.failed)),
            (Metric::Availability, _) => summary.availability(),
            (Metric::Rate, _) => Some(summary.per_second()),
        };
        let is_failed = measured.is_none_or(|measured| {
            let side = measured.partial_cmp(&self.value);
            side == Some(self.failing) || (self.or_equal && side == Some(Ordering::Equal))
        });
        ThresholdResult { text: self.text.clone(), measured, unit: self.unit, is_failed }
    }
}

impl ThresholdResult {
    /// The measured value for people.
    pub(crate) fn measured(&self) -> String {
        match (self.measured, self.unit) {
            (None, _) => "nothing measured".to_owned(),
            (Some(ns), Unit::Ns) => format_duration_ns(ns),
            (Some(count), Unit::Requests) => format!("{count}"),
            (Some(share), Unit::Share) => format!("{} %", percent(share)),
            (Some(rate), Unit::PerSecond) => format!("{}/s", three_digits(rate)),
        }
    }

    /// As JSON.
    pub(crate) fn to_json(&self) -> Value {
        let unit = match self.unit {
            Unit::Ns => "ns",
            Unit::Requests => "requests",
            Unit::Share => "share",
            Unit::PerSecond => "requests/s",
        };
        json!({ "expression": self.text, "measured": self.measured, "unit": unit, "failed": self.is_failed })
    }
}

/// A share in per cent; near 100 % with all its nines, never rounded up to 100.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 99.0 && percent < 100.0 {
        format!("{}", (percent * 10_000.0).floor() / 10_000.0)
    } else {
        three_digits(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        let read = |text: &str| {
            let threshold: Threshold = text.parse().unwrap();
            let sign = match (threshold.failing, threshold.or_equal) {
                (Ordering::Greater, false) => ">",
                (Ordering::Greater, true) => ">=",
                (_, false) => "<",
                (_, true) => "<=",
            };
            (threshold.metric, sign, threshold.value, threshold.unit)
        };
        assert_eq!(read("p99>50ms"), (Metric::Quantile(0.99), ">", 50e6, Unit::Ns));
        assert_eq!(read(" p99.99 >= 1.5 s "), (Metric::Quantile(0.9999), ">=", 1.5e9, Unit::Ns));
        assert_eq!(read("failed>0"), (Metric::Failed, ">", 0.0, Unit::Requests));
        assert_eq!(read("failed>1%"), (Metric::Failed, ">", 0.01, Unit::Share));
        assert_eq!(read("availability<99.9%"), (Metric::Availability, "<", 0.999, Unit::Share));
        assert_eq!(read("rate<=1000/s"), (Metric::Rate, "<=", 1000.0, Unit::PerSecond));
        assert_eq!(read("rate<1000"), (Metric::Rate, "<", 1000.0, Unit::PerSecond));
        assert_eq!(read("max>1s").0, Metric::Max);
    }

    #[test]
    fn faults_say_what_is_expected() {
        for (text, why) in [
            ("", "no comparison"),
            ("p99=50ms", "no comparison"),
            ("p99>", "is not a duration"),
            ("p99>50", "is not a duration"),
            ("p100>1ms", "unknown metric `p100`"),
            ("p0>1ms", "unknown metric"),
            ("p-1>1ms", "unknown metric"),
            ("pinf>1ms", "unknown metric"),
            ("q99>1ms", "unknown metric `q99`"),
            ("failed>x", "is not a number"),
            ("failed>-1", "is not a number"),
            ("availability<99", "is not a share"),
            ("availability<101%", "is not a share"),
            ("rate<nan", "is not a number"),
            ("rate>1ms", "is not a number"),
        ] {
            let fault = text.parse::<Threshold>().unwrap_err();
            assert!(fault.starts_with(&format!("`{text}`: ")), "{fault}");
            assert!(fault.contains(why) && fault.ends_with(EXPECTED), "{text}: {fault}");
        }
    }

    #[test]
    fn shares_near_all_keep_their_nines() {
        assert_eq!(percent(1.0), "100");
        assert_eq!(percent(0.99999), "99.999");
        assert_eq!(percent(0.999_999_99), "99.9999");
        assert_eq!(percent(0.5), "50");
        assert_eq!(percent(0.0), "0");
    }
}
