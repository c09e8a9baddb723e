//! `[hold]`: what is held alike in every cell, and `[server.NAME.hold]`, what is held for one server alone. Each key is
//! optional; its default is that of [`Pins`], or what the study holds.

use crate::error::InputError;
use crate::nearest::unknown;
use crate::pins::bounds::{
    LEAST_CONNECTION_WINDOW_BYTES, LEAST_DATAGRAM_BYTES, LEAST_FRAME_BYTES, MOST_FRAME_BYTES, MOST_MTU_BYTES,
    MOST_TABLE_BYTES, MOST_WINDOW_BYTES,
};
use crate::pins::{CipherSuite, CongestionControl, Http2Pins, Http3Pins, KeyExchange, Pins, TlsVersion};
use crate::plan::NamedWorkload;
use crate::reader::{Placed, Table};
use crate::units;
use crate::variant::Variant;

const HOLD_KEYS: &[&str] = &[
    "congestion_control",
    "initial_window_packets",
    "mtu",
    "quic_datagram",
    "tls_version",
    "cipher_suite",
    "key_exchange",
    "resumption",
    "http1_connections",
    "http2",
    "http3",
];
const HTTP2_KEYS: &[&str] = &["stream_window", "connection_window", "header_table", "max_frame", "push"];
const HTTP3_KEYS: &[&str] = &["stream_window", "connection_window", "qpack_table"];

const CONGESTION_CONTROLS: &[(&str, CongestionControl)] = &[
    ("cubic", CongestionControl::Cubic),
    ("reno", CongestionControl::Reno),
    ("bbr", CongestionControl::Bbr),
];
const TLS_VERSIONS: &[(&str, TlsVersion)] = &[("1.2", TlsVersion::V12), ("1.3", TlsVersion::V13)];
const CIPHER_SUITES: &[(&str, CipherSuite)] = &[
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_CHACHA20_POLY1305_SHA256),
];
const KEY_EXCHANGES: &[(&str, KeyExchange)] = &[
    ("x25519", KeyExchange::X25519),
    ("secp256r1", KeyExchange::Secp256r1),
    ("secp384r1", KeyExchange::Secp384r1),
];

/// IPv6 asks this much of every link (RFC 8200, section 5).
const LEAST_MTU_BYTES: u64 = 1280;
/// Headers of IPv6 and UDP, the larger of the two families.
const DATAGRAM_HEADER_BYTES: u64 = 48;
const MOST_INITIAL_WINDOW_PACKETS: u64 = 1000;
const MOST_HTTP1_CONNECTIONS: u64 = 1000;

/// The pins, and the places of those that may contradict the rest of the study.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) pins: Pins,
    tls_version: Option<Placed<TlsVersion>>,
    resumption: Option<Placed<bool>>,
}

impl Hold {
    /// Refuses pins that the matrix contradicts. `cold_workload` is one that begins without any session.
    pub(super) fn check(
        &self,
        variants: &[Variant],
        cold_workload: Option<&NamedWorkload>,
    ) -> Result<(), InputError> {
        if let Some(version) = &self.tls_version
            && version.value == TlsVersion::V12
            && variants.contains(&Variant::H3)
        {
            let problem = "`tls_version`: found 1.2 with the variant `h3`, expected 1.3: \
                           QUIC has no other (RFC 9001, section 4.2)";
            return Err(version.error(problem));
        }
        if let Some(resumption) = &self.resumption
            && resumption.value
            && let Some(NamedWorkload { name, workload }) = cold_workload
        {
            let problem = format!(
                "`resumption`: found true, but the workload `{name}` ({}) has a fresh client, \
                 which has no session to resume, expected false",
                workload.kind().describe()
            );
            return Err(resumption.error(problem));
        }
        Ok(())
    }
}

pub(super) fn read(root: &Table<'_>) -> Result<Hold, InputError> {
    let hold = Hold { pins: Pins::default(), tls_version: None, resumption: None };
    match root.table("hold")? {
        Some(table) => read_onto(table, &hold),
        None => Ok(hold),
    }
}

/// Reads a table of the same keys over what is held already.
pub(super) fn read_onto(table: Table<'_>, base: &Hold) -> Result<Hold, InputError> {
    let mut hold = base.clone();
    let table = table.with_keys(HOLD_KEYS)?;
    let pins = &mut hold.pins;
    set(&mut pins.congestion_control, one_of(&table, "congestion_control", CONGESTION_CONTROLS)?);
    let packets = table.integer("initial_window_packets", 1..=MOST_INITIAL_WINDOW_PACKETS)?;
    set_number(&mut pins.initial_window_packets, packets);
    set_number(&mut pins.mtu_bytes, size(&table, "mtu", "1500B", LEAST_MTU_BYTES, MOST_MTU_BYTES)?);
    pins.quic_datagram_bytes = read_datagram(&table, pins)?;
    hold.tls_version = one_of(&table, "tls_version", TLS_VERSIONS)?.or(hold.tls_version);
    set(&mut pins.tls_version, hold.tls_version.clone());
    let cipher_suite = one_of(&table, "cipher_suite", CIPHER_SUITES)?;
    if let (TlsVersion::V12, Some(suite)) = (pins.tls_version, &cipher_suite) {
        let problem = "`cipher_suite`: found a suite of TLS 1.3 beside `tls_version = \"1.2\"`, expected no \
                       `cipher_suite`: TLS 1.2 uses the one with the same cipher as the default";
        return Err(suite.error(problem));
    }
    set(&mut pins.cipher_suite, cipher_suite);
    set(&mut pins.key_exchange, one_of(&table, "key_exchange", KEY_EXCHANGES)?);
    hold.resumption = table.boolean("resumption")?.or(hold.resumption);
    set(&mut pins.resumption, hold.resumption.clone());
    let connections = table.integer("http1_connections", 1..=MOST_HTTP1_CONNECTIONS)?;
    set_number(&mut pins.http1_connections, connections);
    if let Some(table) = table.table("http2")? {
        read_http2(&table.with_keys(HTTP2_KEYS)?, &mut pins.http2)?;
    }
    if let Some(table) = table.table("http3")? {
        read_http3(&table.with_keys(HTTP3_KEYS)?, &mut pins.http3)?;
    }
    Ok(hold)
}

fn read_http2(table: &Table<'_>, pins: &mut Http2Pins) -> Result<(), InputError> {
    let stream = size(table, "stream_window", "6MiB", 1, MOST_WINDOW_BYTES)?;
    set_number(&mut pins.stream_window_bytes, stream);
    let least = LEAST_CONNECTION_WINDOW_BYTES;
    let connection = size(table, "connection_window", "15MiB", least, MOST_WINDOW_BYTES)?;
    set_number(&mut pins.connection_window_bytes, connection);
    set_number(&mut pins.header_table_bytes, size(table, "header_table", "64KiB", 0, MOST_TABLE_BYTES)?);
    let frame = size(table, "max_frame", "16KiB", LEAST_FRAME_BYTES, MOST_FRAME_BYTES)?;
    set_number(&mut pins.max_frame_bytes, frame);
    set(&mut pins.accept_push, table.boolean("push")?);
    Ok(())
}

fn read_http3(table: &Table<'_>, pins: &mut Http3Pins) -> Result<(), InputError> {
    let stream = size(table, "stream_window", "6MiB", 1, MOST_WINDOW_BYTES)?;
    set_number(&mut pins.stream_window_bytes, stream);
    let connection = size(table, "connection_window", "15MiB", 1, MOST_WINDOW_BYTES)?;
    set_number(&mut pins.connection_window_bytes, connection);
    let qpack = size(table, "qpack_table", "0B", 0, MOST_TABLE_BYTES)?;
    set_number(&mut pins.qpack_table_bytes, qpack);
    Ok(())
}

/// The largest QUIC datagram; without the key, the default or what the MTU leaves room for.
fn read_datagram(table: &Table<'_>, pins: &Pins) -> Result<u16, InputError> {
    let room = u64::from(pins.mtu_bytes) - DATAGRAM_HEADER_BYTES.min(u64::from(pins.mtu_bytes));
    let datagram = size(table, "quic_datagram", "1452B", LEAST_DATAGRAM_BYTES, MOST_MTU_BYTES)?;
    let bytes = match datagram {
        Some(datagram) if datagram.value > room => {
            let problem = format!(
                "`quic_datagram`: found {} bytes with an `mtu` of {}, expected at most {room}: \
                 headers of IPv6 and UDP take {DATAGRAM_HEADER_BYTES}",
                datagram.value, pins.mtu_bytes
            );
            return Err(datagram.error(problem));
        }
        Some(datagram) => datagram.value,
        None => u64::from(pins.quic_datagram_bytes).min(room),
    };
    Ok(u16::try_from(bytes).unwrap_or(u16::MAX))
}

fn one_of<T: Copy>(
    table: &Table<'_>,
    key: &str,
    known: &[(&str, T)],
) -> Result<Option<Placed<T>>, InputError> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    table.parsed(key, names.first().copied().unwrap_or_default(), |text| {
        let found = known.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| unknown(text, "a value", &names))
    })
}

fn size(
    table: &Table<'_>,
    key: &str,
    example: &str,
    least: u64,
    most: u64,
) -> Result<Option<Placed<u64>>, InputError> {
    table.parsed(key, example, |text| match units::parse_size_bytes(text)? {
        bytes if (least..=most).contains(&bytes) => Ok(bytes),
        _ => Err(format!("found `{text}`, expected a size from {least}B to {most}B, such as `{example}`")),
    })
}

fn set<T>(pin: &mut T, found: Option<Placed<T>>) {
    if let Some(found) = found {
        *pin = found.value;
    }
}

/// Every number here was read within bounds below those of `u32`.
fn set_number(pin: &mut u32, found: Option<Placed<u64>>) {
    if let Some(number) = found.and_then(|found| u32::try_from(found.value).ok()) {
        *pin = number;
    }
}
