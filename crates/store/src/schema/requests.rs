//! The columns of the table `requests`.

use model::sample::{Outcome, Phase, Sample};

use super::{NotReported, RequestRow, Row, named, outcome_columns};
use crate::table::value::{Column, Value, integer, maybe_integer, maybe_text, text};

impl Row for RequestRow {
    const TABLE: &'static str = "requests";
    const MEANING: &'static str =
        "one row per request; stamps are ns since the run's start on the node's monotonic clock";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = request_name_columns();
        columns.extend(request_stamp_columns());
        columns.extend(request_answer_columns());
        columns.extend(request_header_columns());
        columns.extend(request_body_columns());
        columns.extend(outcome_columns(|r: &Self| &r.sample.outcome, |r| &mut r.sample.outcome));
        columns
    }

    fn blank() -> Self {
        let sample = Sample {
            group: 0,
            request: 0,
            url: 0,
            connection: None,
            phase: Phase::Measure,
            intended_ns: 0,
            sent_ns: None,
            first_byte_ns: None,
            done_ns: None,
            status: None,
            version: None,
            request_header_raw_bytes: 0,
            request_header_wire_bytes: 0,
            response_header_raw_bytes: 0,
            response_header_wire_bytes: 0,
            request_body_bytes: 0,
            response_body_bytes: 0,
            expected_body_bytes: None,
            outcome: Outcome::Ok,
        };
        RequestRow { run: 0, cell: 0, path: None, not_reported: NotReported::default(), sample }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

fn request_name_columns() -> Vec<Column<RequestRow>> {
    vec![
        integer(
            "run",
            "1",
            "the run's number in the plan",
            |r: &RequestRow| r.run.into(),
            |r, v| v.to(&mut r.run),
        ),
        integer(
            "cell",
            "1",
            "the cell that the run repeats",
            |r: &RequestRow| r.cell.into(),
            |r, v| v.to(&mut r.cell),
        ),
        integer(
            "group",
            "1",
            "the client group's number within the cell",
            |r: &RequestRow| r.sample.group.into(),
            |r, v| v.to(&mut r.sample.group),
        ),
        integer(
            "request",
            "1",
            "the request's number within the group, in the order of intention",
            |r: &RequestRow| r.sample.request.into(),
            |r, v| v.to(&mut r.sample.request),
        ),
        integer(
            "url",
            "1",
            "which URL: an index, from 0, into `urls` of the table `clients`",
            |r: &RequestRow| r.sample.url.into(),
            |r, v| v.to(&mut r.sample.url),
        ),
        maybe_text(
            "path",
            "the URL as the client reported it; null where it reported none",
            |r: &RequestRow| r.path.as_deref().into(),
            |_, _| Ok(()),
        ),
        maybe_integer(
            "connection",
            "1",
            "the connection that carried it; null where none was ever had",
            |r: &RequestRow| r.sample.connection.into(),
            |r, v| v.to_maybe(&mut r.sample.connection),
        ),
        text(
            "phase",
            "`warmup` (stored, not analysed) or `measure`",
            |r: &RequestRow| {
                Value::Text(match r.sample.phase {
                    Phase::Warmup => "warmup",
                    Phase::Measure => "measure",
                })
            },
            |r, v| v.to_named(&mut r.sample.phase),
        ),
    ]
}

fn request_stamp_columns() -> Vec<Column<RequestRow>> {
    vec![
        integer(
            "intended_ns",
            "ns",
            "when the workload wanted it sent",
            |r: &RequestRow| r.sample.intended_ns.into(),
            |r, v| v.to(&mut r.sample.intended_ns),
        ),
        maybe_integer(
            "sent_ns",
            "ns",
            "when its first byte was handed to the transport",
            |r: &RequestRow| r.sample.sent_ns.into(),
            |r, v| v.to_maybe(&mut r.sample.sent_ns),
        ),
        maybe_integer(
            "first_byte_ns",
            "ns",
            "when the first byte of the final response head was read",
            |r: &RequestRow| r.sample.first_byte_ns.into(),
            |r, v| v.to_maybe(&mut r.sample.first_byte_ns),
        ),
        maybe_integer(
            "done_ns",
            "ns",
            "when the last byte of the response was read, or when it failed",
            |r: &RequestRow| r.sample.done_ns.into(),
            |r, v| v.to_maybe(&mut r.sample.done_ns),
        ),
    ]
}

fn request_answer_columns() -> Vec<Column<RequestRow>> {
    vec![
        maybe_integer(
            "status",
            "1",
            "the final status code",
            |r: &RequestRow| r.sample.status.into(),
            |r, v| v.to_maybe(&mut r.sample.status),
        ),
        maybe_text(
            "version",
            "the version of HTTP that the response really used",
            |r: &RequestRow| r.sample.version.map(model::HttpVersion::name).into(),
            |r, v| {
                r.sample.version = v.maybe_text()?.map(named).transpose()?;
                Ok(())
            },
        ),
    ]
}

fn request_header_columns() -> Vec<Column<RequestRow>> {
    type Header = (&'static str, &'static str, fn(&Sample) -> u32, fn(&mut Sample) -> &mut u32);
    const HEADERS: &[Header] = &[
        (
            "request_header_raw_bytes",
            "request header, names and values before compression; null where the client does not say",
            |s| s.request_header_raw_bytes,
            |s| &mut s.request_header_raw_bytes,
        ),
        (
            "request_header_wire_bytes",
            "request header on the wire, frame headers included; null where the client does not say",
            |s| s.request_header_wire_bytes,
            |s| &mut s.request_header_wire_bytes,
        ),
        (
            "response_header_raw_bytes",
            "response header, names and values before compression; null where the client does not say",
            |s| s.response_header_raw_bytes,
            |s| &mut s.response_header_raw_bytes,
        ),
        (
            "response_header_wire_bytes",
            "response header on the wire, frame headers included; null where the client does not say",
            |s| s.response_header_wire_bytes,
            |s| &mut s.response_header_wire_bytes,
        ),
    ];
    let header = |&(name, meaning, get, field): &Header| {
        maybe_integer(
            name,
            "B",
            meaning,
            move |r: &RequestRow| (!r.not_reported.headers).then(|| get(&r.sample)).into(),
            move |r, v| {
                let mut found = None;
                v.to_maybe(&mut found)?;
                r.not_reported.headers = found.is_none();
                *field(&mut r.sample) = found.unwrap_or(0);
                Ok(())
            },
        )
    };
    HEADERS.iter().map(header).collect()
}

fn request_body_columns() -> Vec<Column<RequestRow>> {
    vec![
        integer(
            "request_body_bytes",
            "B",
            "request body sent",
            |r: &RequestRow| r.sample.request_body_bytes.into(),
            |r, v| v.to(&mut r.sample.request_body_bytes),
        ),
        maybe_integer(
            "response_body_bytes",
            "B",
            "response body received, after transfer coding and before content coding; null where the client does not say",
            |r: &RequestRow| (!r.not_reported.body).then_some(r.sample.response_body_bytes).into(),
            |r, v| {
                let mut found = None;
                v.to_maybe(&mut found)?;
                r.not_reported.body = found.is_none();
                r.sample.response_body_bytes = found.unwrap_or(0);
                Ok(())
            },
        ),
        maybe_integer(
            "expected_body_bytes",
            "B",
            "the body length that the workload knows to be right",
            |r: &RequestRow| r.sample.expected_body_bytes.into(),
            |r, v| v.to_maybe(&mut r.sample.expected_body_bytes),
        ),
    ]
}
