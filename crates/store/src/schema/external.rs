//! The columns of the table `clients` that say what somebody else's program said of its run.

use model::HttpVersion;
use model::assignment::ClientReport;
use model::external::{ExternalReport, FailureCount, OWN_CLIENT};
use model::sample::FailureKind;

use super::{Of, named};
use crate::table::value::{Column, Value, flag, integers, maybe_integer, maybe_text, text, texts};

type Client = Of<ClientReport>;

/// The kinds of failure that external clients tell apart where they have no rows.
const FAILURES: &[(FailureKind, &str)] = &[
    (FailureKind::Refused, "external_refused_count"),
    (FailureKind::Closed, "external_closed_count"),
    (FailureKind::Timeout, "external_timeout_count"),
    (FailureKind::WrongStatus, "external_wrong_status_count"),
    (FailureKind::WrongLength, "external_wrong_length_count"),
];

/// All null, false or empty for our own client. The first column makes the report.
pub(super) fn columns() -> Vec<Column<Client>> {
    let mut columns = vec![text(
        "client",
        "the program: `h123`, or the name of a description in clients/",
        |r: &Client| Value::Text(external(r).map_or(OWN_CLIENT, |external| &external.client)),
        |r, v| {
            let mut client = String::new();
            v.to_text(&mut client)?;
            let report = || Box::new(ExternalReport { client: client.clone(), ..ExternalReport::default() });
            r.is.external = (client != OWN_CLIENT).then(report);
            Ok(())
        },
    )];
    columns.extend(word_columns());
    columns.extend(number_columns());
    columns.extend(FAILURES.iter().map(failure_column));
    columns.extend(list_columns());
    columns
}

fn external(row: &Client) -> Option<&ExternalReport> {
    row.is.external.as_deref()
}

/// What the report, where there is one, gets from a cell.
fn fill(row: &mut Client, set: impl FnOnce(&mut ExternalReport) -> Result<(), String>) -> Result<(), String> {
    row.is.external.as_deref_mut().map_or(Ok(()), set)
}

fn word_columns() -> Vec<Column<Client>> {
    vec![
        maybe_text(
            "external_version",
            "the version that it says it is; like all that follows null, false or empty for h123",
            |r: &Client| external(r).map(|external| external.version.as_str()).into(),
            |r, v| fill(r, |external| v.to_text(&mut external.version)),
        ),
        maybe_text(
            "external_http",
            "the version of HTTP that all its responses used, where it says it once for all",
            |r: &Client| external(r).and_then(|external| external.http).map(HttpVersion::name).into(),
            |r, v| {
                let http = v.maybe_text()?.map(named).transpose()?;
                fill(r, |external| {
                    external.http = http;
                    Ok(())
                })
            },
        ),
        maybe_text(
            "external_begins",
            "the event at which its times begin; null where that is not known",
            |r: &Client| external(r).and_then(|external| external.begins.as_deref()).into(),
            |r, v| fill(r, |external| v.to_maybe_text(&mut external.begins)),
        ),
        flag(
            "external_has_row_bytes",
            "whether its rows say how many body bytes came",
            |r: &Client| Value::Flag(external(r).is_some_and(|external| external.has_row_bytes)),
            |r, v| fill(r, |external| v.to_flag(&mut external.has_row_bytes)),
        ),
        texts(
            "external_not_reported",
            "what it does not say: metric or check, and why",
            |r: &Client| Value::Texts(external(r).map_or(&[], |external| &external.not_reported)),
            |r, v| fill(r, |external| v.to_texts(&mut external.not_reported)),
        ),
    ]
}

fn number_columns() -> Vec<Column<Client>> {
    vec![
        maybe_integer(
            "external_ok_count",
            "1",
            "requests without a row that succeeded",
            |r: &Client| external(r).map(|external| external.requests_ok).into(),
            |r, v| fill(r, |external| v.to(&mut external.requests_ok)),
        ),
        maybe_integer(
            "external_took_ns",
            "ns",
            "how long requests without rows took together, by its own clock; null where it does not say",
            |r: &Client| external(r).and_then(|external| external.took_ns).into(),
            |r, v| fill(r, |external| v.to_maybe(&mut external.took_ns)),
        ),
        maybe_integer(
            "external_body_bytes",
            "B",
            "response body bytes of all requests; null where it does not say",
            |r: &Client| external(r).and_then(|external| external.body_bytes).into(),
            |r, v| fill(r, |external| v.to_maybe(&mut external.body_bytes)),
        ),
        maybe_integer(
            "external_connections_count",
            "1",
            "connections that it opened; null where it does not say",
            |r: &Client| external(r).and_then(|external| external.connections).into(),
            |r, v| fill(r, |external| v.to_maybe(&mut external.connections)),
        ),
    ]
}

fn failure_column(&(kind, name): &(FailureKind, &'static str)) -> Column<Client> {
    let count = move |external: &ExternalReport| {
        external.failures.iter().filter(|failure| failure.kind == kind).map(|failure| failure.requests).sum()
    };
    maybe_integer(
        name,
        "1",
        "requests without a row that failed in this way",
        move |r: &Client| external(r).map(|external| -> u64 { count(external) }).into(),
        move |r, v| {
            let requests = v.maybe_u64()?.unwrap_or(0);
            fill(r, |external| {
                external.failures.extend((requests > 0).then_some(FailureCount { kind, requests }));
                Ok(())
            })
        },
    )
}

fn list_columns() -> Vec<Column<Client>> {
    vec![
        integers(
            "external_times_ns",
            "ns",
            "times of requests without a row that succeeded, from sent to done, each once",
            |r: &Client| Value::Integers(external(r).map_or(&[], |external| &external.times_ns)),
            |r, v| {
                let times = v.into_integers()?;
                fill(r, |external| {
                    external.times_ns = times;
                    Ok(())
                })
            },
        ),
        integers(
            "external_times_count",
            "1",
            "how many requests took each of these times",
            |r: &Client| Value::Integers(external(r).map_or(&[], |external| &external.times_requests)),
            |r, v| {
                let counts = v.into_integers()?;
                fill(r, |external| {
                    external.times_requests = counts;
                    Ok(())
                })
            },
        ),
    ]
}
