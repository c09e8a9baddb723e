//! The columns of the table `server_requests`.

use model::record::{ServerRequest, TimeSource};

use super::{Of, Row, of_columns};
use crate::table::value::{Column, Value, integer, maybe_integer, text};

type Request = Of<ServerRequest>;

impl Row for Request {
    const TABLE: &'static str = "server_requests";
    const MEANING: &'static str =
        "one row per request that a server's log names, where the study asks for server time";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend(name_columns());
        columns.extend(time_columns());
        columns.extend(log_columns());
        columns
    }

    fn blank() -> Self {
        let is = ServerRequest {
            server: 0,
            group: 0,
            request: 0,
            request_time_ns: 0,
            precision_ns: 0,
            source: TimeSource::Log,
            log_time_ns: None,
            arrived_ns: None,
            first_sent_ns: None,
            sent_ns: None,
            logged_unix_ns: None,
            status: None,
            body_bytes: None,
            remote_port: None,
        };
        Of { run: 0, cell: 0, is }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

fn name_columns() -> Vec<Column<Request>> {
    vec![
        integer(
            "server",
            "1",
            "which server, counted from the clients: 0 is the one that they ask",
            |r: &Request| r.is.server.into(),
            |r, v| v.to(&mut r.is.server),
        ),
        integer(
            "group",
            "1",
            "`group` of its row in the table `requests`",
            |r: &Request| r.is.group.into(),
            |r, v| v.to(&mut r.is.group),
        ),
        integer(
            "request",
            "1",
            "`request` of its row in the table `requests`",
            |r: &Request| r.is.request.into(),
            |r, v| v.to(&mut r.is.request),
        ),
    ]
}

fn time_columns() -> Vec<Column<Request>> {
    vec![
        integer(
            "request_time_ns",
            "ns",
            "how long the request took at the server; its source tells from which event to which",
            |r: &Request| r.is.request_time_ns.into(),
            |r, v| v.to(&mut r.is.request_time_ns),
        ),
        integer(
            "precision_ns",
            "ns",
            "what `request_time_ns` is rounded to, or uncertain by",
            |r: &Request| r.is.precision_ns.into(),
            |r, v| v.to(&mut r.is.precision_ns),
        ),
        text(
            "source",
            "where `request_time_ns` comes from: `log`, or `packets` at the server's end of the link",
            |r: &Request| Value::Text(r.is.source.name()),
            |r, v| v.to_named(&mut r.is.source),
        ),
        maybe_integer(
            "log_time_ns",
            "ns",
            "the time in the server's log; null where the log is the source",
            |r: &Request| r.is.log_time_ns.into(),
            |r, v| v.to_maybe(&mut r.is.log_time_ns),
        ),
        maybe_integer(
            "arrived_ns",
            "ns",
            "when the request's last packet reached the server, on the clock of `requests`; null where packets do not tell",
            |r: &Request| r.is.arrived_ns.into(),
            |r, v| v.to_maybe(&mut r.is.arrived_ns),
        ),
        maybe_integer(
            "first_sent_ns",
            "ns",
            "when the response's first packet left the server; null also where it may have been the TLS session's",
            |r: &Request| r.is.first_sent_ns.into(),
            |r, v| v.to_maybe(&mut r.is.first_sent_ns),
        ),
        maybe_integer(
            "sent_ns",
            "ns",
            "when the response's last packet left the server for the first time; null where packets do not tell",
            |r: &Request| r.is.sent_ns.into(),
            |r, v| v.to_maybe(&mut r.is.sent_ns),
        ),
        maybe_integer(
            "logged_unix_ns",
            "ns",
            "the log's own stamp, Unix time; for people, never subtracted",
            |r: &Request| r.is.logged_unix_ns.into(),
            |r, v| v.to_maybe(&mut r.is.logged_unix_ns),
        ),
    ]
}

fn log_columns() -> Vec<Column<Request>> {
    vec![
        maybe_integer(
            "status",
            "1",
            "the status code in the log",
            |r: &Request| r.is.status.into(),
            |r, v| v.to_maybe(&mut r.is.status),
        ),
        maybe_integer(
            "body_bytes",
            "B",
            "body bytes sent, as the log has it",
            |r: &Request| r.is.body_bytes.into(),
            |r, v| v.to_maybe(&mut r.is.body_bytes),
        ),
        maybe_integer(
            "remote_port",
            "1",
            "the client's port as the server saw it",
            |r: &Request| r.is.remote_port.into(),
            |r, v| v.to_maybe(&mut r.is.remote_port),
        ),
    ]
}
