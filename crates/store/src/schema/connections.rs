//! The columns of the table `connections`.

use model::sample::{ConnectionRow, EarlyData, MigrationTimes, Outcome, Pushes};

use super::{Of, Row, of_columns, outcome_columns};
use crate::table::value::{Column, Value, flag, integer, maybe_integer, maybe_text, text};

type Connection = Of<ConnectionRow>;

impl Row for Connection {
    const TABLE: &'static str = "connections";
    const MEANING: &'static str = "one row per connection; stamps as in the table `requests`";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend(connection_time_columns());
        columns.extend(connection_protocol_columns());
        columns.extend(connection_count_columns());
        columns.extend(outcome_columns(|r: &Self| &r.is.outcome, |r| &mut r.is.outcome));
        columns
    }

    fn blank() -> Self {
        let is = ConnectionRow {
            group: 0,
            connection: 0,
            opened_ns: 0,
            connected_ns: None,
            ready_ns: None,
            closed_ns: None,
            alpn: None,
            tls_version: None,
            cipher_suite: None,
            key_exchange: None,
            resumed: false,
            early_data: EarlyData::NotTried,
            early_requests: 0,
            pushed: Pushes::default(),
            migrated: None,
            sent_bytes: 0,
            received_bytes: 0,
            outcome: Outcome::Ok,
        };
        Of { run: 0, cell: 0, is }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

fn connection_time_columns() -> Vec<Column<Connection>> {
    vec![
        integer(
            "group",
            "1",
            "the client group's number within the cell",
            |r: &Connection| r.is.group.into(),
            |r, v| v.to(&mut r.is.group),
        ),
        integer(
            "connection",
            "1",
            "the connection's number within the group, in the order of opening",
            |r: &Connection| r.is.connection.into(),
            |r, v| v.to(&mut r.is.connection),
        ),
        integer(
            "opened_ns",
            "ns",
            "when connect was called (TCP) or the first datagram was sent (QUIC)",
            |r: &Connection| r.is.opened_ns.into(),
            |r, v| v.to(&mut r.is.opened_ns),
        ),
        maybe_integer(
            "connected_ns",
            "ns",
            "when TCP was established; null for QUIC",
            |r: &Connection| r.is.connected_ns.into(),
            |r, v| v.to_maybe(&mut r.is.connected_ns),
        ),
        maybe_integer(
            "ready_ns",
            "ns",
            "when requests could first be sent",
            |r: &Connection| r.is.ready_ns.into(),
            |r, v| v.to_maybe(&mut r.is.ready_ns),
        ),
        maybe_integer(
            "closed_ns",
            "ns",
            "when either side closed it",
            |r: &Connection| r.is.closed_ns.into(),
            |r, v| v.to_maybe(&mut r.is.closed_ns),
        ),
    ]
}

fn connection_protocol_columns() -> Vec<Column<Connection>> {
    vec![
        maybe_text(
            "alpn",
            "the protocol that ALPN chose",
            |r: &Connection| r.is.alpn.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.alpn),
        ),
        maybe_text(
            "tls_version",
            "TLS version",
            |r: &Connection| r.is.tls_version.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.tls_version),
        ),
        maybe_text(
            "cipher_suite",
            "cipher suite as registered",
            |r: &Connection| r.is.cipher_suite.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.cipher_suite),
        ),
        maybe_text(
            "key_exchange",
            "key exchange group as registered",
            |r: &Connection| r.is.key_exchange.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.key_exchange),
        ),
        flag(
            "resumed",
            "whether a session was resumed",
            |r: &Connection| Value::Flag(r.is.resumed),
            |r, v| v.to_flag(&mut r.is.resumed),
        ),
        text(
            "early_data",
            "`not_tried`, `accepted` or `rejected`; what was rejected was sent again",
            |r: &Connection| Value::Text(r.is.early_data.name()),
            |r, v| v.to_named(&mut r.is.early_data),
        ),
        integer(
            "early_requests_count",
            "1",
            "requests that left as early data",
            |r: &Connection| r.is.early_requests.into(),
            |r, v| v.to(&mut r.is.early_requests),
        ),
        maybe_integer(
            "migrated_ns",
            "ns",
            "when it moved to a new local address (QUIC); null where it did not",
            |r: &Connection| r.is.migrated.map(|moved| moved.at_ns).into(),
            |r, v| {
                r.is.migrated = v.maybe_u64()?.map(|at_ns| MigrationTimes { at_ns, answered_ns: None });
                Ok(())
            },
        ),
        maybe_integer(
            "migrated_answered_ns",
            "ns",
            "when the server's first packet arrived there; null where none did",
            |r: &Connection| r.is.migrated.and_then(|moved| moved.answered_ns).into(),
            |r, v| r.is.migrated.as_mut().map_or(Ok(()), |moved| v.to_maybe(&mut moved.answered_ns)),
        ),
    ]
}

fn connection_count_columns() -> Vec<Column<Connection>> {
    vec![
        integer(
            "pushed_count",
            "1",
            "responses that the server pushed whole (HTTP/2)",
            |r: &Connection| r.is.pushed.whole.into(),
            |r, v| v.to(&mut r.is.pushed.whole),
        ),
        integer(
            "pushed_broken_count",
            "1",
            "responses that the server promised and that did not come whole",
            |r: &Connection| r.is.pushed.broken.into(),
            |r, v| v.to(&mut r.is.pushed.broken),
        ),
        integer(
            "pushed_bytes",
            "B",
            "body bytes of pushed responses",
            |r: &Connection| r.is.pushed.body_bytes.into(),
            |r, v| v.to(&mut r.is.pushed.body_bytes),
        ),
        integer(
            "sent_bytes",
            "B",
            "bytes handed to the transport: TCP or UDP payload",
            |r: &Connection| r.is.sent_bytes.into(),
            |r, v| v.to(&mut r.is.sent_bytes),
        ),
        integer(
            "received_bytes",
            "B",
            "bytes received from the transport",
            |r: &Connection| r.is.received_bytes.into(),
            |r, v| v.to(&mut r.is.received_bytes),
        ),
    ]
}
