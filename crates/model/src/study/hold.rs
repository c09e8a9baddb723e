//! `[hold]`: the settings fixed in every cell, and `[server.NAME.hold]`: those of one server. Each key is
//! optional; its default is that of [`Pins`], or the study's.

use crate::error::InputError;
use crate::keys;
use crate::pins::bounds::{
    DATAGRAM_HEADER_BYTES, LEAST_CONNECTION_WINDOW_BYTES, LEAST_DATAGRAM_BYTES, LEAST_FRAME_BYTES,
    LEAST_MTU_BYTES, MOST_FRAME_BYTES, MOST_MTU_BYTES, MOST_TABLE_BYTES, MOST_WINDOW_BYTES,
};
use crate::pins::{Http2Pins, Http3Pins, Pins, TlsVersion};
use crate::plan::NamedWorkload;
use crate::reader::{Key, Placed, Table};
use crate::variant::Variant;

pub(super) const HOLD_KEYS: &[Key] = keys! {
    "congestion_control", "text", "`\"cubic\"`", r#""bbr""#,
        "Congestion control of TCP and of QUIC at both ends: `cubic`, `reno`, `bbr`; the kernel must have it.";
    "initial_window_packets", "whole number", "`10`", "32", "Initial window in full-sized packets (RFC 6928), 1 to 1000.";
    "mtu", "size", "`\"1500B\"`", r#""1400B""#, "The largest IP packet on every link, 1280 B to 9000 B.";
    "quic_datagram", "size", "`\"1452B\"`, at most `mtu` − 48 B", r#""1352B""#,
        "The largest UDP payload of QUIC, 1200 B to `mtu` − 48 B.";
    "tls_version", "text", "`\"1.3\"`", r#""1.2""#, "`1.2` or `1.3`; `h3` requires `1.3`.";
    "cipher_suite", "text", "`\"TLS_AES_128_GCM_SHA256\"`", r#""TLS_CHACHA20_POLY1305_SHA256""#,
        "That, `TLS_AES_256_GCM_SHA384` or `TLS_CHACHA20_POLY1305_SHA256`. Excludes `tls_version = \"1.2\"`.";
    "key_exchange", "text", "`\"x25519\"`", r#""secp256r1""#, "`x25519`, `secp256r1` or `secp384r1`.";
    "resumption", "boolean", "`false`", "true",
        "Whether clients may resume TLS sessions; pages and videos only in [repeat visits](#repeat-visits).";
    "http1_connections", "whole number", "`6`", "6", "Connections of an HTTP/1.1 client that loads a page, 1 to 1000.";
    "reconnect", "text or duration", "`\"never\"`", r#""at-once""#,
        "When a client gives up a TCP connection that a handover has broken and sends unanswered requests again: `never`, `at-once` (its address is gone) or after a time without data such as `5s`.";
    "http2", "table `[hold.http2]`", "see there", r#"{ max_frame = "64KiB" }"#, "What the HTTP/2 client announces.";
    "http3", "table `[hold.http3]`", "see there", r#"{ qpack_table = "4KiB" }"#, "What the HTTP/3 client announces.";
};
pub(super) const HTTP2_KEYS: &[Key] = keys! {
    "stream_window", "size", "`\"6MiB\"`", r#""64KiB""#, "The window of a stream, 1 B to 2 147 483 647 B.";
    "connection_window", "size", "`\"15MiB\"`", r#""15MiB""#, "The window of the connection, 65 535 B to 2 147 483 647 B.";
    "header_table", "size", "`\"64KiB\"`", r#""4KiB""#, "HPACK's dynamic table, 0 B to 16 MiB.";
    "max_frame", "size", "`\"16KiB\"`", r#""64KiB""#, "The largest frame, 16 384 B to 16 777 215 B.";
    "push", "boolean", "`false`", "true", "Whether a server may push. Page loads use pushed resources; other responses are counted and discarded. Clients of a workload with `push` always accept it.";
};
pub(super) const HTTP3_KEYS: &[Key] = keys! {
    "stream_window", "size", "`\"6MiB\"`", r#""256KiB""#, "The window of a stream, 1 B to 2 147 483 647 B.";
    "connection_window", "size", "`\"15MiB\"`", r#""15MiB""#, "The window of the connection, 1 B to 2 147 483 647 B.";
    "qpack_table", "size", "`\"0B\"`", r#""4KiB""#, "QPACK's dynamic table, 0 B (none) to 16 MiB.";
};

const MOST_INITIAL_WINDOW_PACKETS: u32 = 1000;
const MOST_HTTP1_CONNECTIONS: u32 = 1000;

/// The pins, and the places of those that may contradict the rest of the study.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) pins: Pins,
    tls_version: Option<Placed<TlsVersion>>,
    resumption: Option<Placed<bool>>,
    push: Option<Placed<bool>>,
}

impl Hold {
    /// Refuses pins that the matrix contradicts.
    pub(super) fn check(&self, variants: &[Variant]) -> Result<(), InputError> {
        if let Some(version) = &self.tls_version
            && version.value == TlsVersion::V12
            && variants.contains(&Variant::H3)
        {
            let problem = "`tls_version` is 1.2, which excludes the variant `h3`; write 1.3, the only version \
                           of QUIC (RFC 9001, section 4.2)";
            return Err(version.error(problem));
        }
        Ok(())
    }

    /// The error of resumption with a workload that begins without any session; `None` if this table does not
    /// switch resumption on.
    pub(super) fn resumption_error(&self, cold: &NamedWorkload) -> Option<InputError> {
        let resumption = self.resumption.as_ref().filter(|resumption| resumption.value)?;
        Some(resumption.error(format!(
            "`resumption` is true, but the workload `{}` ({}) has a fresh client without a session; write `false`, or \
             `visit = \"repeat\"` in the workload",
            cold.name,
            cold.workload.kind().describe()
        )))
    }

    /// Refuses a workload that pushes where the clients must not accept it.
    pub(super) fn check_push(&self, workload: &str) -> Result<(), InputError> {
        match self.push.as_ref().filter(|push| !push.value) {
            None => Ok(()),
            Some(push) => Err(push
                .error(format!("`push` is false, but the workload `{workload}` pushes; remove one of them"))),
        }
    }
}

pub(super) fn read(root: &Table<'_>) -> Result<Hold, InputError> {
    let hold = Hold { pins: Pins::default(), tls_version: None, resumption: None, push: None };
    match root.table("hold")? {
        Some(table) => read_onto(table, &hold),
        None => Ok(hold),
    }
}

/// Reads a table of the same keys on top of other pins.
pub(super) fn read_onto(table: Table<'_>, base: &Hold) -> Result<Hold, InputError> {
    let mut hold = base.clone();
    let table = table.with_keys(HOLD_KEYS)?;
    let pins = &mut hold.pins;
    set(&mut pins.congestion_control, table.named("congestion_control")?);
    set(
        &mut pins.initial_window_packets,
        table.integer("initial_window_packets", 1..=MOST_INITIAL_WINDOW_PACKETS)?,
    );
    set(&mut pins.mtu_bytes, table.size("mtu", LEAST_MTU_BYTES..=MOST_MTU_BYTES)?);
    pins.quic_datagram_bytes = read_datagram(&table, pins)?;
    hold.tls_version = table.named("tls_version")?.or(hold.tls_version);
    set(&mut pins.tls_version, hold.tls_version.clone());
    let cipher_suite = table.named("cipher_suite")?;
    if let (TlsVersion::V12, Some(suite)) = (pins.tls_version, &cipher_suite) {
        let problem = "`cipher_suite` is a suite of TLS 1.3 and excludes `tls_version = \"1.2\"`; remove it, \
                       because TLS 1.2 uses the suite with the default's cipher";
        return Err(suite.error(problem));
    }
    set(&mut pins.cipher_suite, cipher_suite);
    set(&mut pins.key_exchange, table.named("key_exchange")?);
    hold.resumption = table.boolean("resumption")?.or(hold.resumption);
    set(&mut pins.resumption, hold.resumption.clone());
    set(&mut pins.http1_connections, table.integer("http1_connections", 1..=MOST_HTTP1_CONNECTIONS)?);
    set(&mut pins.reconnect, table.parsed("reconnect", str::parse)?);
    if let Some(table) = table.table("http2")? {
        let table = table.with_keys(HTTP2_KEYS)?;
        read_http2(&table, &mut pins.http2)?;
        hold.push = table.boolean("push")?.or(hold.push);
    }
    if let Some(table) = table.table("http3")? {
        read_http3(&table.with_keys(HTTP3_KEYS)?, &mut pins.http3)?;
    }
    Ok(hold)
}

fn read_http2(table: &Table<'_>, pins: &mut Http2Pins) -> Result<(), InputError> {
    let windows = LEAST_CONNECTION_WINDOW_BYTES..=MOST_WINDOW_BYTES;
    set(&mut pins.stream_window_bytes, table.size("stream_window", 1..=MOST_WINDOW_BYTES)?);
    set(&mut pins.connection_window_bytes, table.size("connection_window", windows)?);
    set(&mut pins.header_table_bytes, table.size("header_table", 0..=MOST_TABLE_BYTES)?);
    set(&mut pins.max_frame_bytes, table.size("max_frame", LEAST_FRAME_BYTES..=MOST_FRAME_BYTES)?);
    set(&mut pins.accept_push, table.boolean("push")?);
    Ok(())
}

fn read_http3(table: &Table<'_>, pins: &mut Http3Pins) -> Result<(), InputError> {
    set(&mut pins.stream_window_bytes, table.size("stream_window", 1..=MOST_WINDOW_BYTES)?);
    set(&mut pins.connection_window_bytes, table.size("connection_window", 1..=MOST_WINDOW_BYTES)?);
    set(&mut pins.qpack_table_bytes, table.size("qpack_table", 0..=MOST_TABLE_BYTES)?);
    Ok(())
}

/// The largest QUIC datagram; without the key, the default or what the MTU leaves room for.
fn read_datagram(table: &Table<'_>, pins: &Pins) -> Result<u16, InputError> {
    let room = pins.mtu_bytes.saturating_sub(DATAGRAM_HEADER_BYTES);
    let bytes = match table.size("quic_datagram", LEAST_DATAGRAM_BYTES..=MOST_MTU_BYTES)? {
        Some(datagram) if datagram.value > room => {
            let problem = format!(
                "`quic_datagram` has {} bytes, too many for an `mtu` of {}; write at most {room}B, because the headers \
                 of IPv6 and UDP take {DATAGRAM_HEADER_BYTES}",
                datagram.value, pins.mtu_bytes
            );
            return Err(datagram.error(problem));
        }
        Some(datagram) => datagram.value,
        None => room.min(pins.quic_datagram_bytes.into()),
    };
    Ok(u16::try_from(bytes).unwrap_or(u16::MAX))
}

fn set<T>(pin: &mut T, written: Option<Placed<T>>) {
    if let Some(written) = written {
        *pin = written.value;
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    fn with(workload: &str, rest: &str) -> Result<Plan, String> {
        parse(
            &SHORT
                .replace("page = \"small\"", &format!("page = \"small\"\n{workload}"))
                .replace("mtu = \"1500B\"", rest),
        )
    }

    #[test]
    fn a_repeat_visit_has_sessions_and_twice_the_time() {
        let plan = with("visit = 'repeat'", "resumption = true").unwrap();
        let named = &plan.workloads[0];
        assert_eq!(named.options.connections.visit, crate::options::Visit::Repeat);
        assert!(named.describe().ends_with("; repeat visit with an empty cache"), "{}", named.describe());
        assert_eq!(named.workload.first_visit(), named.workload);
        let first = with("visit = 'first'", "mtu = \"1500B\"").unwrap();
        assert!(first.workloads[0].options.is_default());
        for (repeat, first) in plan.cells.iter().zip(&first.cells) {
            assert_eq!(repeat.expected_run_ns, 2 * first.expected_run_ns);
        }
    }

    #[test]
    fn a_first_visit_of_a_loop_is_one_request_on_each_connection() {
        let text =
            SHORT.replace("page_load_time", "request_time").replace("mtu = \"1500B\"", "resumption = true");
        let text = text.replace(
            "kind = \"page\"\npage = \"small\"",
            "kind = 'open'\nconnections = 4\nrate = '5'\nduration = '1s'\npaths = ['/bytes/1', '/bytes/2']\nvisit = 'repeat'",
        );
        let first = parse(&text).unwrap().workloads[0].workload.first_visit();
        assert_eq!(
            (first.requests(), first.connections(), first.paths()),
            (Some(4), 4, vec!["/bytes/1".to_owned()])
        );
    }

    #[test]
    fn a_repeat_visit_without_sessions_or_with_what_it_disturbs_is_refused() {
        for (workload, rest, expected) in [
            (
                "visit = 'repeat'",
                "mtu = \"1500B\"",
                "s.toml:14:9: `visit` is repeat, which requires `resumption = true`",
            ),
            ("visit = 'again'", "resumption = true", "`visit`: `again` is not a visit"),
            ("", "resumption = true", "or `visit = \"repeat\"` in the workload"),
        ] {
            let fault = with(workload, rest).unwrap_err();
            assert!(fault.contains(expected), "{workload}: {fault}");
        }
        let text = SHORT.replace("page = \"small\"", "page = \"small\"\nvisit = 'repeat'");
        let text = text.replace("mtu = \"1500B\"", "resumption = true");
        let with = |head: &str| parse(&format!("{head}\n{text}")).unwrap_err();
        assert!(with("server_time = true").contains("which excludes `server_time`"));
        let groups = "[[group]]\nname = 'a'\n[[group]]\nname = 'b'\n";
        assert!(parse(&format!("{text}{groups}")).unwrap_err().contains("which excludes `[[group]]`"));
        let metric = parse(&text.replace("page_load_time", "availability")).unwrap_err();
        assert!(metric.contains("which excludes the study's `metric`"), "{metric}");
    }
}
