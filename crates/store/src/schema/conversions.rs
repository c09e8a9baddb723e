//! Cells that are not the value of one field: outcomes, and what external clients count.

use model::assignment::ClientReport;
use model::external::{ExternalReport, FailureCount, OWN_CLIENT};
use model::sample::{Failure, FailureKind, Outcome};

use super::Row;
use crate::cell::{Cell, Value};

pub(super) fn outcome_name(outcome: &Outcome) -> Value<'_> {
    Value::Text(match outcome {
        Outcome::Ok => "ok",
        Outcome::Failed(_) => "failed",
        Outcome::Unsupported(_) => "unsupported",
    })
}

pub(super) fn set_outcome(outcome: &mut Outcome, value: Value<'_>) -> Result<(), String> {
    *outcome = match value.as_text()? {
        "ok" => Outcome::Ok,
        "failed" => Outcome::Failed(Failure { kind: FailureKind::System, reason: String::new() }),
        "unsupported" => Outcome::Unsupported(String::new()),
        other => {
            return Err(format!(
                "`{other}` is not an outcome; the outcomes are `ok`, `failed`, `unsupported`"
            ));
        }
    };
    Ok(())
}

pub(super) fn failure_kind(outcome: &Outcome) -> Value<'_> {
    match outcome {
        Outcome::Failed(failure) => failure.kind.value(),
        Outcome::Ok | Outcome::Unsupported(_) => Value::Null,
    }
}

pub(super) fn set_failure_kind(outcome: &mut Outcome, value: Value<'_>) -> Result<(), String> {
    if let Outcome::Failed(failure) = outcome {
        failure.kind = Cell::read(value)?;
    }
    Ok(())
}

pub(super) fn reason(outcome: &Outcome) -> Value<'_> {
    match outcome {
        Outcome::Ok => Value::Null,
        Outcome::Failed(Failure { reason, .. }) | Outcome::Unsupported(reason) => reason.value(),
    }
}

pub(super) fn set_reason(outcome: &mut Outcome, value: Value<'_>) -> Result<(), String> {
    if let Outcome::Failed(Failure { reason, .. }) | Outcome::Unsupported(reason) = outcome {
        *reason = Cell::read(value)?;
    }
    Ok(())
}

pub(super) fn client_name(row: &Row<ClientReport>) -> Value<'_> {
    Value::Text(row.item.external.as_ref().map_or(OWN_CLIENT, |external| &external.client))
}

pub(super) fn set_client_name(row: &mut Row<ClientReport>, value: Value<'_>) -> Result<(), String> {
    let client = value.as_text()?;
    let report = || Box::new(ExternalReport { client: client.to_owned(), ..ExternalReport::default() });
    row.item.external = (client != OWN_CLIENT).then(report);
    Ok(())
}

// The kinds of failure that external clients count where they have no rows.
pub(super) const REFUSED: FailureKind = FailureKind::Refused;
pub(super) const CLOSED: FailureKind = FailureKind::Closed;
pub(super) const TIMEOUT: FailureKind = FailureKind::Timeout;
pub(super) const STATUS: FailureKind = FailureKind::WrongStatus;
pub(super) const LENGTH: FailureKind = FailureKind::WrongLength;

pub(super) fn failures(row: &Row<ClientReport>, kind: FailureKind) -> Value<'_> {
    let Some(external) = &row.item.external else { return Value::Null };
    Value::Integer(
        external.failures.iter().filter(|failure| failure.kind == kind).map(|failure| failure.requests).sum(),
    )
}

pub(super) fn add_failures(
    row: &mut Row<ClientReport>,
    kind: FailureKind,
    value: Value<'_>,
) -> Result<(), String> {
    if let (Some(external), Value::Integer(requests @ 1..)) = (&mut row.item.external, value) {
        external.failures.push(FailureCount { kind, requests });
    }
    Ok(())
}
