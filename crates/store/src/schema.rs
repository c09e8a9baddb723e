//! The tables of a result: every column's name, type, unit and meaning, described once for writer and reader.

mod connections;
mod external;
mod monitor;
mod player;
mod reports;
mod requests;
mod server_requests;

use std::sync::Arc;

use model::record::Calibration;
use model::sample::{Failure, FailureKind, Outcome, Sample};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NameError, StrDeserializer};

use crate::table::value::{Column, Value, integer, integers, maybe_integer, maybe_text, text};

/// The version of the tables, in each file's footer as `h123.schema_version`; a reader refuses any other.
pub const SCHEMA_VERSION: u32 = 5;

/// A row of one of the tables.
pub(crate) trait Row: Sized {
    /// The table's name and the stem of its file.
    const TABLE: &'static str;
    /// What one row is.
    const MEANING: &'static str;

    /// Every column, in the order of the file.
    fn columns() -> Vec<Column<Self>>;
    /// A row that the columns fill in.
    fn blank() -> Self;
    /// The run that the row belongs to.
    fn run(&self) -> u32;
}

/// One run; the counts say how many rows of the other tables are its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunRow {
    pub(crate) run: u32,
    pub(crate) cell: u32,
    pub(crate) block: u32,
    pub(crate) began_unix_ns: u64,
    pub(crate) took_ns: u64,
    pub(crate) outcome: Outcome,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) counts: Counts,
}

/// How many rows of each other table belong to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) clients: u64,
    pub(crate) servers: u64,
    pub(crate) server_requests: u64,
    pub(crate) player: u64,
    pub(crate) links: u64,
    pub(crate) monitor: u64,
}

/// One request of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestRow {
    pub(crate) run: u32,
    pub(crate) cell: u32,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) not_reported: NotReported,
    pub(crate) sample: Sample,
}

/// The bytes that a request's client does not say: somebody else's program, as a rule, says none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotReported {
    pub(crate) headers: bool,
    pub(crate) body: bool,
}

/// One row of a table whose rows are a noun of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Of<T> {
    pub(crate) run: u32,
    pub(crate) cell: u32,
    pub(crate) is: T,
}

impl Row for RunRow {
    const TABLE: &'static str = "runs";
    const MEANING: &'static str = "one row per run";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = vec![
            integer(
                "run",
                "1",
                "the run's number in the plan",
                |r: &RunRow| r.run.into(),
                |r, v| v.to(&mut r.run),
            ),
            integer(
                "cell",
                "1",
                "the cell that it repeats",
                |r: &RunRow| r.cell.into(),
                |r, v| v.to(&mut r.cell),
            ),
            integer(
                "block",
                "1",
                "the block it belongs to",
                |r: &RunRow| r.block.into(),
                |r, v| v.to(&mut r.block),
            ),
            integer(
                "began_unix_ns",
                "ns",
                "when it began, Unix time; for people, never subtracted",
                |r: &RunRow| r.began_unix_ns.into(),
                |r, v| v.to(&mut r.began_unix_ns),
            ),
            integer(
                "took_ns",
                "ns",
                "how long it took, lab included",
                |r: &RunRow| r.took_ns.into(),
                |r, v| v.to(&mut r.took_ns),
            ),
        ];
        columns.extend(outcome_columns(|r: &Self| &r.outcome, |r| &mut r.outcome));
        columns.extend(calibration_columns());
        columns.extend(count_columns());
        columns
    }

    fn blank() -> Self {
        RunRow {
            run: 0,
            cell: 0,
            block: 0,
            began_unix_ns: 0,
            took_ns: 0,
            outcome: Outcome::Ok,
            calibration: None,
            counts: Counts::default(),
        }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

fn calibration_columns() -> Vec<Column<RunRow>> {
    vec![
        maybe_integer(
            "calibration_expected_rtt_ns",
            "ns",
            "the round trip that the network promises; null where nothing was emulated",
            |r: &RunRow| r.calibration.as_ref().map(|c| c.expected_rtt_ns).into(),
            |r, v| {
                if let Some(expected_rtt_ns) = v.maybe_u64()? {
                    r.calibration = Some(Calibration { expected_rtt_ns, rtt_ns: Vec::new(), sent: 0 });
                }
                Ok(())
            },
        ),
        maybe_integer(
            "calibration_sent_count",
            "1",
            "known-answer probes that were sent on the empty path",
            |r: &RunRow| r.calibration.as_ref().map(|c| c.sent).into(),
            |r, v| r.calibration.as_mut().map_or(Ok(()), |c| v.to(&mut c.sent)),
        ),
        integers(
            "calibration_rtt_ns",
            "ns",
            "the round trip of each probe that came back",
            |r: &RunRow| Value::Integers(r.calibration.as_ref().map_or(&[], |c| &c.rtt_ns)),
            |r, v| {
                if let Some(calibration) = &mut r.calibration {
                    calibration.rtt_ns = v.into_integers()?;
                }
                Ok(())
            },
        ),
    ]
}

fn count_columns() -> Vec<Column<RunRow>> {
    vec![
        integer(
            "requests_count",
            "1",
            "its rows in the table `requests`",
            |r: &RunRow| r.counts.requests.into(),
            |r, v| v.to(&mut r.counts.requests),
        ),
        integer(
            "connections_count",
            "1",
            "its rows in the table `connections`",
            |r: &RunRow| r.counts.connections.into(),
            |r, v| v.to(&mut r.counts.connections),
        ),
        integer(
            "clients_count",
            "1",
            "its rows in the table `clients`",
            |r: &RunRow| r.counts.clients.into(),
            |r, v| v.to(&mut r.counts.clients),
        ),
        integer(
            "servers_count",
            "1",
            "its rows in the table `servers`",
            |r: &RunRow| r.counts.servers.into(),
            |r, v| v.to(&mut r.counts.servers),
        ),
        integer(
            "server_requests_count",
            "1",
            "its rows in the table `server_requests`",
            |r: &RunRow| r.counts.server_requests.into(),
            |r, v| v.to(&mut r.counts.server_requests),
        ),
        integer(
            "player_count",
            "1",
            "its rows in the table `player`",
            |r: &RunRow| r.counts.player.into(),
            |r, v| v.to(&mut r.counts.player),
        ),
        integer(
            "links_count",
            "1",
            "its rows in the table `links`",
            |r: &RunRow| r.counts.links.into(),
            |r, v| v.to(&mut r.counts.links),
        ),
        integer(
            "monitor_count",
            "1",
            "its rows in the table `monitor`",
            |r: &RunRow| r.counts.monitor.into(),
            |r, v| v.to(&mut r.counts.monitor),
        ),
    ]
}

fn of_columns<T: 'static>() -> Vec<Column<Of<T>>> {
    vec![
        integer(
            "run",
            "1",
            "the run's number in the plan",
            |r: &Of<T>| r.run.into(),
            |r, v| v.to(&mut r.run),
        ),
        integer(
            "cell",
            "1",
            "the cell that the run repeats",
            |r: &Of<T>| r.cell.into(),
            |r, v| v.to(&mut r.cell),
        ),
    ]
}

/// The three columns of an outcome; they are read in this order.
fn outcome_columns<R: 'static>(
    read: fn(&R) -> &Outcome,
    write: fn(&mut R) -> &mut Outcome,
) -> [Column<R>; 3] {
    [
        text(
            "outcome",
            "`ok`, `failed` or `unsupported`",
            move |r: &R| {
                Value::Text(match read(r) {
                    Outcome::Ok => "ok",
                    Outcome::Failed(_) => "failed",
                    Outcome::Unsupported(_) => "unsupported",
                })
            },
            move |r, v| {
                *write(r) = match v.as_text()? {
                    "ok" => Outcome::Ok,
                    "failed" => Outcome::Failed(Failure { kind: FailureKind::System, reason: String::new() }),
                    "unsupported" => Outcome::Unsupported(String::new()),
                    other => return Err(format!("found `{other}`, expected ok, failed or unsupported")),
                };
                Ok(())
            },
        ),
        maybe_text(
            "failure_kind",
            "the kind of failure; null where there was none",
            move |r: &R| match read(r) {
                Outcome::Failed(failure) => Value::Text(failure.kind.name()),
                _ => Value::Null,
            },
            move |r, v| match write(r) {
                Outcome::Failed(failure) => v.to_named(&mut failure.kind),
                _ => Ok(()),
            },
        ),
        maybe_text(
            "outcome_reason",
            "why it failed, or what is unsupported; null where it is ok",
            move |r: &R| match read(r) {
                Outcome::Ok => Value::Null,
                Outcome::Failed(failure) => Value::Text(&failure.reason),
                Outcome::Unsupported(reason) => Value::Text(reason),
            },
            move |r, v| match write(r) {
                Outcome::Ok => Ok(()),
                Outcome::Failed(failure) => v.to_text(&mut failure.reason),
                Outcome::Unsupported(reason) => v.to_text(reason),
            },
        ),
    ]
}

/// A value of one of the model's enums by the name that it has in files.
pub(crate) fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, String> {
    let names: StrDeserializer<'de, NameError> = name.into_deserializer();
    T::deserialize(names).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use model::assignment::ClientReport;
    use model::player::PlayerEvent;
    use model::record::{LinkReport, ServerReport, ServerRequest};
    use model::{ConnectionRow, Reading};

    use super::*;
    use crate::table::value::Kind;

    /// Every column of a table says what it means, and its unit agrees with its name.
    fn assert_described<R: Row>() {
        assert!(!R::MEANING.is_empty());
        for Column { name, kind, unit, meaning, .. } in R::columns() {
            let place = format!("{}.{name}", R::TABLE);
            assert!(!meaning.is_empty(), "{place} has no meaning");
            let expected = match name.rsplit('_').next() {
                _ if matches!(kind, Kind::Text | Kind::MaybeText | Kind::Texts | Kind::Flag) => "",
                Some("ns") => "ns",
                Some("bytes") => "B",
                _ if name.ends_with("_bits_per_s") => "bit/s",
                _ => "1",
            };
            // What the monitor reads has the unit of its quantity, which stands in its name.
            assert!(
                unit == expected || place == "monitor.value",
                "{place} is in `{unit}`, expected `{expected}`"
            );
        }
    }

    #[test]
    fn every_column_has_a_unit_and_a_meaning() {
        assert_described::<RunRow>();
        assert_described::<RequestRow>();
        assert_described::<Of<ConnectionRow>>();
        assert_described::<Of<ClientReport>>();
        assert_described::<Of<ServerReport>>();
        assert_described::<Of<ServerRequest>>();
        assert_described::<Of<PlayerEvent>>();
        assert_described::<Of<LinkReport>>();
        assert_described::<Of<Reading>>();
    }
}
