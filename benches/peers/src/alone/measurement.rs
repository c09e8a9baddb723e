//! Measurements with their targets, as a table for people and as JSON.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::outcome::{self, Outcome};

/// The version of the JSON.
pub(crate) const FORMAT: u32 = 2;

/// A value with its upper target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Measurement {
    /// The test's name, which `run` sets.
    pub(crate) test: &'static str,
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// At most this; absent where the number is for information.
    pub(crate) target: Option<f64>,
    /// Whether the target is met.
    pub(crate) met: Option<bool>,
    /// An explanation.
    pub(crate) details: String,
}

/// A test that failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) test: &'static str,
    pub(crate) reason: String,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.test, self.reason)
    }
}

/// All measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measurements {
    pub(crate) measurements: Vec<Measurement>,
}

pub(crate) type LoadOutcome = Outcome<Measurements, Failure>;

impl Measurement {
    /// A number with a target: it should be at most this.
    pub(crate) fn at_most(
        what: impl Into<String>,
        value: f64,
        target: f64,
        unit: &'static str,
        details: String,
    ) -> Self {
        let met = Some(value <= target);
        Measurement { test: "", what: what.into(), value, unit, target: Some(target), met, details }
    }

    /// A number for information.
    pub(crate) fn plain(what: &str, value: f64, unit: &'static str) -> Self {
        let (what, details) = (what.to_owned(), String::new());
        Measurement { test: "", what, value, unit, target: None, met: None, details }
    }
}

/// The measurements as a table.
pub(crate) fn table(measurements: &[Measurement]) -> String {
    let cells = |measurement: &Measurement| {
        [
            measurement.test.to_owned(),
            measurement.what.clone(),
            with_unit(measurement.value, measurement.unit),
            measurement
                .target
                .map_or_else(String::new, |target| format!("≤ {}", with_unit(target, measurement.unit))),
            measurement.met.map_or("", |met| if met { "met" } else { "missed" }).to_owned(),
            measurement.details.clone(),
        ]
    };
    let header = ["test", "measurement", "measured", "target", "verdict", "details"];
    outcome::table(header, 2..=3, measurements.iter().map(cells))
}

/// Three significant digits, without trailing zeros.
fn with_unit(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    let number = format!("{value:.digits$}");
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, shown) in [
            (0.0, "0 µs"),
            (0.0314, "0.031 µs"),
            (4.5, "4.5 µs"),
            (5.0, "5 µs"),
            (33.33, "33.3 µs"),
            (1234.5, "1234 µs"),
        ] {
            assert_eq!(with_unit(value, "µs"), shown);
        }
        assert_eq!(with_unit(1.05, ""), "1.05");
    }

    #[test]
    fn the_table_shows_measurements_failures_and_notes() {
        let mut outcome = LoadOutcome::new(FORMAT, Measurements::default());
        outcome.measured.measurements = vec![
            Measurement { test: "memory", ..Measurement::at_most("h1", 9.4, 5.0, "kB", "two runs".into()) },
            Measurement { test: "memory", ..Measurement::at_most("h1s", 11.0, 25.0, "kB", String::new()) },
            Measurement { test: "threads", ..Measurement::plain("one thread", 120_000.0, "requests/s") },
        ];
        outcome.failures.push(Failure { test: "long", reason: "it ended with 3".into() });
        outcome.notes.push("busy machine: all of it".into());
        let shown = outcome.text(&table(&outcome.measured.measurements));
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .filter(|line| line.starts_with("| memory") || line.starts_with("| threads"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert_eq!(lines[0], ["memory", "h1", "9.4 kB", "≤ 5 kB", "missed", "two runs"]);
        assert_eq!(lines[1], ["memory", "h1s", "11 kB", "≤ 25 kB", "met", ""]);
        assert_eq!(lines[2], ["threads", "one thread", "120000 requests/s", "", "", ""]);
        assert!(shown.contains("not measured: long: it ended with 3"), "{shown}");
        assert!(shown.contains("busy machine"), "{shown}");
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(
            (json["measurements"][0]["met"].as_bool(), json["format"].as_u64()),
            (Some(false), Some(2))
        );
    }
}
