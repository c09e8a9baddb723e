//! The columns of the table `clients` that say what somebody else's program said of its run.

use model::HttpVersion;
use model::assignment::ClientReport;
use model::foreign::{FailureCount, ForeignReport, OWN_CLIENT};
use model::sample::FailureKind;

use super::{Of, named};
use crate::table::value::{Column, Value, flag, integers, maybe_integer, maybe_text, text, texts};

type Client = Of<ClientReport>;

/// The kinds of failure that foreign clients tell apart where they have no rows.
const FAILURES: &[(FailureKind, &str)] = &[
    (FailureKind::Refused, "foreign_refused_count"),
    (FailureKind::Closed, "foreign_closed_count"),
    (FailureKind::Timeout, "foreign_timeout_count"),
    (FailureKind::WrongStatus, "foreign_wrong_status_count"),
    (FailureKind::WrongLength, "foreign_wrong_length_count"),
];

/// All null, false or empty for our own client. The first column makes the report.
pub(super) fn columns() -> Vec<Column<Client>> {
    let mut columns = vec![text(
        "client",
        "the program: `h123`, or the name of a description in clients/",
        |r: &Client| Value::Text(foreign(r).map_or(OWN_CLIENT, |foreign| &foreign.client)),
        |r, v| {
            let mut client = String::new();
            v.to_text(&mut client)?;
            let report = || Box::new(ForeignReport { client: client.clone(), ..ForeignReport::default() });
            r.is.foreign = (client != OWN_CLIENT).then(report);
            Ok(())
        },
    )];
    columns.extend(word_columns());
    columns.extend(number_columns());
    columns.extend(FAILURES.iter().map(failure_column));
    columns.extend(list_columns());
    columns
}

fn foreign(row: &Client) -> Option<&ForeignReport> {
    row.is.foreign.as_deref()
}

/// What the report, where there is one, gets from a cell.
fn fill(row: &mut Client, set: impl FnOnce(&mut ForeignReport) -> Result<(), String>) -> Result<(), String> {
    row.is.foreign.as_deref_mut().map_or(Ok(()), set)
}

fn word_columns() -> Vec<Column<Client>> {
    vec![
        maybe_text(
            "foreign_version",
            "the version that it says it is; like all that follows null, false or empty for h123",
            |r: &Client| foreign(r).map(|foreign| foreign.version.as_str()).into(),
            |r, v| fill(r, |foreign| v.to_text(&mut foreign.version)),
        ),
        maybe_text(
            "foreign_http",
            "the version of HTTP that all its responses used, where it says it once for all",
            |r: &Client| foreign(r).and_then(|foreign| foreign.http).map(HttpVersion::name).into(),
            |r, v| {
                let http = v.maybe_text()?.map(named).transpose()?;
                fill(r, |foreign| {
                    foreign.http = http;
                    Ok(())
                })
            },
        ),
        maybe_text(
            "foreign_begins",
            "the event at which its times begin; null where that is not known",
            |r: &Client| foreign(r).and_then(|foreign| foreign.begins.as_deref()).into(),
            |r, v| fill(r, |foreign| v.to_maybe_text(&mut foreign.begins)),
        ),
        flag(
            "foreign_has_row_bytes",
            "whether its rows say how many body bytes came",
            |r: &Client| Value::Flag(foreign(r).is_some_and(|foreign| foreign.has_row_bytes)),
            |r, v| fill(r, |foreign| v.to_flag(&mut foreign.has_row_bytes)),
        ),
        texts(
            "foreign_silences",
            "what it does not say: metric or check, and why",
            |r: &Client| Value::Texts(foreign(r).map_or(&[], |foreign| &foreign.silences)),
            |r, v| fill(r, |foreign| v.to_texts(&mut foreign.silences)),
        ),
    ]
}

fn number_columns() -> Vec<Column<Client>> {
    vec![
        maybe_integer(
            "foreign_ok_count",
            "1",
            "requests without a row that ended well",
            |r: &Client| foreign(r).map(|foreign| foreign.requests_ok).into(),
            |r, v| fill(r, |foreign| v.to(&mut foreign.requests_ok)),
        ),
        maybe_integer(
            "foreign_took_ns",
            "ns",
            "how long requests without rows took together, by its own clock; null where it does not say",
            |r: &Client| foreign(r).and_then(|foreign| foreign.took_ns).into(),
            |r, v| fill(r, |foreign| v.to_maybe(&mut foreign.took_ns)),
        ),
        maybe_integer(
            "foreign_body_bytes",
            "B",
            "response body bytes of all requests; null where it does not say",
            |r: &Client| foreign(r).and_then(|foreign| foreign.body_bytes).into(),
            |r, v| fill(r, |foreign| v.to_maybe(&mut foreign.body_bytes)),
        ),
        maybe_integer(
            "foreign_connections_count",
            "1",
            "connections that it opened; null where it does not say",
            |r: &Client| foreign(r).and_then(|foreign| foreign.connections).into(),
            |r, v| fill(r, |foreign| v.to_maybe(&mut foreign.connections)),
        ),
    ]
}

fn failure_column(&(kind, name): &(FailureKind, &'static str)) -> Column<Client> {
    let count = move |foreign: &ForeignReport| {
        foreign.failures.iter().filter(|failure| failure.kind == kind).map(|failure| failure.requests).sum()
    };
    maybe_integer(
        name,
        "1",
        "requests without a row that failed in this way",
        move |r: &Client| foreign(r).map(|foreign| -> u64 { count(foreign) }).into(),
        move |r, v| {
            let requests = v.maybe_u64()?.unwrap_or(0);
            fill(r, |foreign| {
                foreign.failures.extend((requests > 0).then_some(FailureCount { kind, requests }));
                Ok(())
            })
        },
    )
}

fn list_columns() -> Vec<Column<Client>> {
    vec![
        integers(
            "foreign_times_ns",
            "ns",
            "times of requests without a row that ended well, from sent to done, each once",
            |r: &Client| Value::Integers(foreign(r).map_or(&[], |foreign| &foreign.times_ns)),
            |r, v| {
                let times = v.into_integers()?;
                fill(r, |foreign| {
                    foreign.times_ns = times;
                    Ok(())
                })
            },
        ),
        integers(
            "foreign_times_count",
            "1",
            "how many requests took each of these times",
            |r: &Client| Value::Integers(foreign(r).map_or(&[], |foreign| &foreign.times_requests)),
            |r, v| {
                let counts = v.into_integers()?;
                fill(r, |foreign| {
                    foreign.times_requests = counts;
                    Ok(())
                })
            },
        ),
    ]
}
