//! The rows as a table for people and as JSON.

use std::fmt::{self, Display, Formatter};

use model::units::counted;
use serde::Serialize;

use crate::measure::Cost;
use crate::measure::Extent;
use crate::outcome::{self, Outcome};
use crate::row::{Median, Row, Target};
use crate::works::Peer;

/// The version of the JSON.
const FORMAT: u32 = 2;

/// A row that could not be measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) work: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) reason: String,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {}: {}", self.work, self.peer, self.reason)
    }
}

/// The measured rows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rows {
    #[serde(flatten)]
    pub(crate) extent: Extent,
    pub(crate) rows: Vec<Row>,
}

pub(crate) type Comparison = Outcome<Rows, Failure>;

impl Comparison {
    pub(crate) fn begin(extent: Extent) -> Self {
        Outcome::new(FORMAT, Rows { extent, rows: Vec::new() })
    }

    /// Notes which rows were measured on a busy machine.
    pub(crate) fn note_disturbances(&mut self) {
        for row in self.measured.rows.iter().filter(|row| row.disturbed_share > 0.0) {
            self.notes.push(format!(
                "busy machine: {:.0} % of the runs of {} against {} were disturbed (median: other processes {:.2} CPU, \
                 stolen {:.2} CPU)",
                row.disturbed_share * 100.0,
                row.work,
                row.peer,
                row.others_cpus,
                row.stolen_cpus
            ));
        }
    }
}

/// The rows as a table, below what it shows.
pub(crate) fn table(Rows { extent, rows }: &Rows) -> String {
    let header = [
        "work",
        "peer",
        "ratio [95 %]",
        "target",
        "verdict",
        "our µs u + s",
        "peer µs u + s",
        "server µs ours / peer",
        "1000 req/s ours / peer",
        "user µs target",
    ];
    format!(
        "{} of {} s (siege {}, ab {} at most) · ours / peer's: client CPU per request, with --coalesce \
         requests/s; median of the pairwise ratios · * the best peer\n{}",
        counted(extent.pairs.into(), "pair"),
        extent.seconds,
        Peer::Siege.most_pairs(),
        Peer::Ab.most_pairs(),
        outcome::table(header, 5..=8, rows.iter().map(cells))
    )
}

fn cells(row: &Row) -> [String; 10] {
    let (judged, target, bound) = match row.throughput_target {
        Some(target) => (&row.throughput_ratio, Some(target), "req/s ≥"),
        None => (&row.cpu_ratio, row.cpu_target, "CPU ≤"),
    };
    let cost = |cost: &Cost| format!("{:.2} + {:.2}", cost.user_us, cost.system_us);
    [
        row.work.to_owned(),
        format!("{}{}", row.peer, if row.best_peer { " *" } else { "" }),
        ratio(judged, row.pairs),
        target.map_or_else(String::new, |target| format!("{bound} {:.2}", target.target)),
        target.map_or("", |target| target.verdict.word()).to_owned(),
        cost(&row.ours),
        cost(&row.peers),
        format!("{:.1} / {:.1}", row.ours.server_us, row.peers.server_us),
        format!("{:.1} / {:.1}", row.ours.requests_per_second / 1e3, row.peers.requests_per_second / 1e3),
        row.user_us_target.map_or_else(String::new, |Target { target, verdict }| {
            format!("≤ {target:.1} {}", verdict.word())
        }),
    ]
}

fn ratio(found: &Median, pairs: usize) -> String {
    match found.interval {
        Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", found.median),
        None => format!("{:.3} [{}]", found.median, counted(pairs as u64, "pair")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::mark_best;
    use crate::row::tests::{pairs, reading};
    use crate::works::find;

    fn outcome() -> Comparison {
        let mut outcome = Comparison::begin(Extent { pairs: 8, seconds: 2 });
        let work = find("h1-c10").unwrap();
        outcome.measured.rows.extend(Row::of(work, "wrk", &pairs(8)));
        outcome.measured.rows.extend(Row::of(find("h1-coalesce").unwrap(), "wrk", &pairs(3)));
        mark_best(&mut outcome.measured.rows);
        outcome
    }

    #[test]
    fn the_table_shows_every_value() {
        let shown = table(&outcome().measured);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .filter(|line| line.starts_with("| h1"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let plain = [
            "h1-c10",
            "wrk *",
            "0.859 [0.818, 0.900]",
            "CPU ≤ 0.90",
            "met",
            "1.00 + 8.00",
            "2.50 + 8.00",
            "14.0 / 14.0",
            "60.0 / 66.0",
            "≤ 0.6 missed",
        ];
        assert_eq!(lines[0], plain);
        assert_eq!(lines[1][0], "h1-coalesce");
        assert_eq!(lines[1][2..5], ["0.909 [3 pairs]", "req/s ≥ 1.00", "missed?"]);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn the_table_notes_missing_rows_and_a_busy_machine() {
        let mut outcome = outcome();
        outcome.failures.push(Failure { work: "h3", peer: "h3-peer", reason: "it ended with 1".into() });
        outcome.note_disturbances();
        assert!(outcome.notes.is_empty());
        let mut noisy = pairs(8);
        noisy[0].ours = reading(1, 8, 60_000.0);
        noisy[0].ours.disturbance.others = 0.7;
        outcome.measured.rows.extend(Row::of(find("h1s").unwrap(), "wrk", &noisy));
        outcome.note_disturbances();
        let shown = outcome.text(&table(&outcome.measured));
        assert!(shown.contains("not measured: h3 against h3-peer: it ended with 1"), "{shown}");
        assert!(shown.contains("busy machine: 6 % of the runs of h1s against wrk"), "{shown}");
    }

    #[test]
    fn the_json_keeps_units_in_names_and_intervals_as_pairs() {
        let json = serde_json::to_value(outcome()).unwrap();
        let row = &json["rows"][0];
        assert_eq!(json["format"], 2);
        assert_eq!(row["cpu_target"]["verdict"], "met");
        assert_eq!(row["cpu_ratio"]["interval"][1], 0.9);
        assert_eq!(row["ours"]["user_us"], 1.0);
        assert_eq!(row["peers"]["requests_per_second"], 66_000.0);
        assert_eq!(row["cpu_ratios"].as_array().unwrap().len(), 8);
    }
}
