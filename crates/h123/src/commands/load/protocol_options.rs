//! Options of sessions, HTTP/2, HTTP/3 and QUIC, and the pins and options of an assignment that they become.

use std::net::IpAddr;

use clap::Args;
use model::options::{Migration, ProtocolOptions};
use model::pins::bounds::{
    LEAST_CONNECTION_WINDOW_BYTES, LEAST_DATAGRAM_BYTES, LEAST_FRAME_BYTES, MOST_FRAME_BYTES, MOST_MTU_BYTES,
    MOST_TABLE_BYTES, MOST_WINDOW_BYTES,
};
use model::tls::TlsOptions;
use model::units::{self, format_ns};
use model::{HttpVersion, Pins, Variant};

use crate::connect::tls_options::{qlog_folder, requires_variant};
use crate::exit::UsageError;

const HTTP2_AND_3: &str = "HTTP/2 and HTTP/3";
const HTTP3: &str = "HTTP/3 and QUIC";

/// Sessions, settings of HTTP/2, HTTP/3 and QUIC, and migration.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ProtocolArgs {
    /// Resume TLS and QUIC sessions with tickets of earlier connections (see --requests-per-connection)
    ///
    /// Example: --resume --requests-per-connection 10
    #[arg(long)]
    pub(crate) resume: bool,
    /// Send safe requests as early data (0-RTT) if a ticket allows it, and again if the server rejects them.
    /// TLS 1.3 and QUIC
    ///
    /// Example: --resume --early-data
    #[arg(long, visible_alias = "0rtt", requires = "resume")]
    pub(crate) early_data: bool,
    /// Flow-control window of each stream (default 6MiB)
    ///
    /// Example: --stream-window 64KiB
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 1, MOST_WINDOW_BYTES))]
    pub(crate) stream_window: Option<u32>,
    /// Flow-control window of each connection (default 15MiB)
    ///
    /// Example: --connection-window 1MiB
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 1, MOST_WINDOW_BYTES))]
    pub(crate) connection_window: Option<u32>,
    /// HTTP/2: largest frame that the server may send (default 16KiB)
    ///
    /// Example: --max-frame 64KiB
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, LEAST_FRAME_BYTES, MOST_FRAME_BYTES))]
    pub(crate) max_frame: Option<u32>,
    /// HTTP/2: largest HPACK table of the server's encoder (default 64KiB)
    ///
    /// Example: --header-table 0B
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 0, MOST_TABLE_BYTES))]
    pub(crate) header_table: Option<u32>,
    /// HTTP/2: accept server push; pushed responses are counted and discarded
    ///
    /// Example: --push
    #[arg(long, help_heading = HTTP2_AND_3)]
    pub(crate) push: bool,
    /// Largest QPACK table of the server's encoder (default 0B: none)
    ///
    /// Example: --qpack-table 4KiB
    #[arg(long, value_name = "SIZE", help_heading = HTTP3, value_parser = |text: &str| size(text, 0, MOST_TABLE_BYTES))]
    pub(crate) qpack_table: Option<u32>,
    /// At most this many responses may wait for entries of the QPACK table (default 100)
    ///
    /// Example: --qpack-table 4KiB --qpack-blocked 10
    #[arg(long, value_name = "N", help_heading = HTTP3, requires = "qpack_table")]
    pub(crate) qpack_blocked: Option<u16>,
    /// Largest UDP payload in both directions: 1200B to 9000B (default 1452B)
    ///
    /// Example: --quic-datagram 1200B
    #[arg(long, value_name = "SIZE", help_heading = HTTP3, value_parser = |text: &str| size(text, LEAST_DATAGRAM_BYTES, MOST_MTU_BYTES))]
    pub(crate) quic_datagram: Option<u32>,
    /// Send each datagram with its own system call (no segmentation offload)
    ///
    /// Example: --no-gso
    #[arg(long, help_heading = HTTP3)]
    pub(crate) no_gso: bool,
    /// Migrate every connection to a new local port this long after the start, warm-up included; the old
    /// sockets are closed, as when a phone changes networks
    ///
    /// Example: --migrate-at 1s
    #[arg(long, value_name = "TIME", help_heading = HTTP3, value_parser = units::parse_duration_ns)]
    pub(crate) migrate_at: Option<u64>,
    /// Migrate to this local address
    ///
    /// Example: --migrate-at 1s --migrate-to 127.0.0.2
    #[arg(long, value_name = "IP", help_heading = HTTP3, requires = "migrate_at")]
    pub(crate) migrate_to: Option<IpAddr>,
    /// Migrate every connection to a new socket when a local address disappears: for `h123 lab` on a network
    /// with handovers, and for machines that change networks
    ///
    /// Example: --follow-addresses
    #[arg(long, help_heading = HTTP3)]
    pub(crate) follow_addresses: bool,
}

impl ProtocolArgs {
    /// Checks the options against the variant and the length of the test, where it is known.
    ///
    /// # Errors
    /// The first contradiction.
    pub(crate) fn check(&self, variant: Variant, lasts_ns: Option<u64>) -> Result<(), UsageError> {
        let is_http2 = variant.http() == HttpVersion::Http2;
        let has_windows = variant.http() != HttpVersion::Http11;
        let (tls, windows, http2, quic) = (
            (variant.is_encrypted(), "h1s, h2 or h3"),
            (has_windows, "h2c, h2 or h3"),
            (is_http2, "h2c or h2"),
            (variant.is_quic(), "h3"),
        );
        for (name, is_given, (fits, expected)) in [
            ("--resume", self.resume, tls),
            ("--stream-window", self.stream_window.is_some(), windows),
            ("--connection-window", self.connection_window.is_some(), windows),
            ("--max-frame", self.max_frame.is_some(), http2),
            ("--header-table", self.header_table.is_some(), http2),
            ("--push", self.push, http2),
            ("--qpack-table", self.qpack_table.is_some(), quic),
            ("--quic-datagram", self.quic_datagram.is_some(), quic),
            ("--no-gso", self.no_gso, quic),
            ("--migrate-at", self.migrate_at.is_some(), quic),
            ("--follow-addresses", self.follow_addresses, quic),
        ] {
            if is_given && !fits {
                return Err(requires_variant(name, expected, variant.name()));
            }
        }
        let small = self.connection_window.filter(|window| *window < LEAST_CONNECTION_WINDOW_BYTES);
        if let Some(window) = small.filter(|_| is_http2) {
            return Err(UsageError(format!(
                "--connection-window {window}B is too small for HTTP/2; use at least {LEAST_CONNECTION_WINDOW_BYTES}B, \
                 where it begins and below which it cannot shrink (RFC 9113, section 6.9.2)"
            )));
        }
        if self.qpack_blocked.is_some() && self.qpack_table == Some(0) {
            return Err(UsageError("--qpack-blocked requires a --qpack-table above 0B".into()));
        }
        match self.migrate_at.zip(lasts_ns) {
            Some((at_ns, lasts_ns)) if at_ns >= lasts_ns => Err(UsageError(format!(
                "--migrate-at {} is not within the test, which ends after {}",
                format_ns(at_ns),
                format_ns(lasts_ns)
            ))),
            _ => Ok(()),
        }
    }

    /// Sets the pins that the options give.
    pub(crate) fn pin(&self, pins: &mut Pins) {
        let set = |pin: &mut u32, found: Option<u32>| *pin = found.unwrap_or(*pin);
        pins.resumption = self.resume;
        set(&mut pins.http2.stream_window_bytes, self.stream_window);
        set(&mut pins.http3.stream_window_bytes, self.stream_window);
        set(&mut pins.http2.connection_window_bytes, self.connection_window);
        set(&mut pins.http3.connection_window_bytes, self.connection_window);
        set(&mut pins.http2.max_frame_bytes, self.max_frame);
        set(&mut pins.http2.header_table_bytes, self.header_table);
        set(&mut pins.http3.qpack_table_bytes, self.qpack_table);
        if let Some(bytes) = self.quic_datagram.and_then(|bytes| u16::try_from(bytes).ok()) {
            pins.quic_datagram_bytes = bytes;
        }
    }

    /// The options beyond the pins.
    pub(crate) fn options(&self, tls: TlsOptions, variant: Variant) -> ProtocolOptions {
        ProtocolOptions {
            tls,
            accept_push: self.push,
            qpack_blocked_streams: self.qpack_blocked,
            single_datagrams: self.no_gso,
            migration: self.migrate_at.map(|after_ns| Migration { after_ns, to: self.migrate_to }),
            qlog: qlog_folder(variant),
            follows_addresses: self.follow_addresses,
        }
    }
}

fn size(text: &str, least: u32, most: u32) -> Result<u32, String> {
    units::parse_size_within(text, &(least..=most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(args: &ProtocolArgs, variant: Variant) -> String {
        args.check(variant, Some(5_000_000_000)).unwrap_err().to_string()
    }

    #[test]
    fn options_become_pins() {
        let args = ProtocolArgs {
            resume: true,
            stream_window: Some(1 << 20),
            max_frame: Some(1 << 16),
            header_table: Some(0),
            qpack_table: Some(4096),
            quic_datagram: Some(1200),
            ..ProtocolArgs::default()
        };
        let mut pins = Pins::default();
        ProtocolArgs::default().pin(&mut pins);
        assert_eq!(pins, Pins::default());
        args.pin(&mut pins);
        assert!(pins.resumption);
        assert_eq!((pins.http2.stream_window_bytes, pins.http3.stream_window_bytes), (1 << 20, 1 << 20));
        assert_eq!((pins.http2.max_frame_bytes, pins.http2.header_table_bytes), (1 << 16, 0));
        assert_eq!((pins.http3.qpack_table_bytes, pins.quic_datagram_bytes), (4096, 1200));
        assert_eq!(pins.http2.connection_window_bytes, Pins::default().http2.connection_window_bytes);
    }

    #[test]
    fn contradictions_are_found() {
        let none = ProtocolArgs::default();
        for variant in Variant::ALL {
            assert!(none.check(variant, None).is_ok());
        }
        let push = ProtocolArgs { push: true, ..none };
        assert_eq!(fault(&push, Variant::H1), "--push requires --variant h2c or h2; this is h1");
        assert!(push.check(Variant::H2c, None).is_ok());
        let early = ProtocolArgs { resume: true, early_data: true, ..none };
        assert_eq!(fault(&early, Variant::H2c), "--resume requires --variant h1s, h2 or h3; this is h2c");
        let window = ProtocolArgs { connection_window: Some(1000), ..none };
        assert!(fault(&window, Variant::H1).contains("requires --variant h2c, h2 or h3"));
        assert!(fault(&window, Variant::H2).contains("use at least 65535B"));
        assert!(window.check(Variant::H3, None).is_ok());
        let late = ProtocolArgs { migrate_at: Some(5_000_000_000), ..none };
        assert_eq!(
            fault(&late, Variant::H3),
            "--migrate-at 5 s is not within the test, which ends after 5 s"
        );
        assert_eq!(fault(&late, Variant::H2), "--migrate-at requires --variant h3; this is h2");
        let follow = ProtocolArgs { follow_addresses: true, ..none };
        assert!(fault(&follow, Variant::H1s).starts_with("--follow-addresses requires --variant h3"));
        let blocked = ProtocolArgs { qpack_blocked: Some(5), qpack_table: Some(0), ..none };
        assert!(fault(&blocked, Variant::H3).contains("a --qpack-table above 0B"));
    }
}
