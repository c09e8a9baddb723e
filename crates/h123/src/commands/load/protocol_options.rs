//! Options of sessions, HTTP/2, HTTP/3 and QUIC, and what they mean as pins and options of an assignment.

use std::env;
use std::net::IpAddr;

use anyhow::Result;
use clap::Args;
use model::options::{Migration, ProtocolOptions};
use model::pins::bounds::{
    LEAST_CONNECTION_WINDOW_BYTES, LEAST_DATAGRAM_BYTES, LEAST_FRAME_BYTES, MOST_FRAME_BYTES, MOST_MTU_BYTES,
    MOST_TABLE_BYTES, MOST_WINDOW_BYTES,
};
use model::tls::TlsOptions;
use model::{HttpVersion, Pins, Variant, units};

use crate::exit::UsageError;

const HTTP2_AND_3: &str = "HTTP/2 and HTTP/3";
/// The folder that says what QUIC connections do, as other implementations of QUIC know it too.
pub(crate) const QLOG_VARIABLE: &str = "QLOGDIR";
const HTTP3: &str = "HTTP/3 and QUIC";

/// What is resumed, announced, accepted and moved.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ProtocolArgs {
    /// Resume TLS and QUIC sessions with the tickets of earlier connections (see --requests-per-connection)
    #[arg(long)]
    pub(crate) resume: bool,
    /// Send safe requests as early data (0-RTT) with a ticket that allows it; what the server rejects is sent again.
    /// TLS 1.3 and QUIC, needs --resume
    #[arg(long, visible_alias = "0rtt")]
    pub(crate) early_data: bool,
    /// Flow-control window of each stream (default 6MiB)
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 1, MOST_WINDOW_BYTES))]
    pub(crate) stream_window: Option<u32>,
    /// Flow-control window of each connection (default 15MiB)
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 1, MOST_WINDOW_BYTES))]
    pub(crate) connection_window: Option<u32>,
    /// HTTP/2: largest frame that the server may send (default 16KiB)
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, LEAST_FRAME_BYTES, MOST_FRAME_BYTES))]
    pub(crate) max_frame: Option<u32>,
    /// HTTP/2: table that the server may keep for HPACK (default 64KiB)
    #[arg(long, value_name = "SIZE", help_heading = HTTP2_AND_3, value_parser = |text: &str| size(text, 0, MOST_TABLE_BYTES))]
    pub(crate) header_table: Option<u32>,
    /// HTTP/2: let the server push; what it pushes is counted and thrown away
    #[arg(long, help_heading = HTTP2_AND_3)]
    pub(crate) push: bool,
    /// Table that the server may keep for QPACK (default 0B: none)
    #[arg(long, value_name = "SIZE", help_heading = HTTP3, value_parser = |text: &str| size(text, 0, MOST_TABLE_BYTES))]
    pub(crate) qpack_table: Option<u32>,
    /// So many responses may wait for entries of that table (default 100)
    #[arg(long, value_name = "N", help_heading = HTTP3)]
    pub(crate) qpack_blocked: Option<u16>,
    /// Largest UDP payload, both ways: 1200B to 9000B (default 1452B)
    #[arg(long, value_name = "SIZE", help_heading = HTTP3, value_parser = |text: &str| size(text, LEAST_DATAGRAM_BYTES, MOST_MTU_BYTES))]
    pub(crate) quic_datagram: Option<u32>,
    /// Send each datagram by a system call of its own (no segmentation offload)
    #[arg(long, help_heading = HTTP3)]
    pub(crate) no_gso: bool,
    /// So long after the start, warm-up included, every connection moves to a new local port, as when a phone changes
    /// networks: the old sockets are closed
    #[arg(long, value_name = "TIME", help_heading = HTTP3, value_parser = units::parse_duration_ns)]
    pub(crate) migrate_at: Option<u64>,
    /// Move to this local address
    #[arg(long, value_name = "IP", help_heading = HTTP3, requires = "migrate_at")]
    pub(crate) migrate_to: Option<IpAddr>,
    /// Whenever a local address goes away, every connection moves to a new socket: for `h123 lab` on a network with
    /// handovers, and for machines that change networks
    #[arg(long, help_heading = HTTP3)]
    pub(crate) follow_addresses: bool,
}

impl ProtocolArgs {
    /// Refuses what contradicts the variant, the rest, or the time that the test lasts, where that is known.
    ///
    /// # Errors
    /// The first contradiction.
    pub(crate) fn check(&self, variant: Variant, lasts_ns: Option<u64>) -> Result<()> {
        let is_http2 = variant.http() == HttpVersion::Http2;
        let is_multiplexed = variant.http() != HttpVersion::Http11;
        let of_tls = [("--resume", self.resume), ("--early-data", self.early_data)];
        let of_both = [
            ("--stream-window", self.stream_window.is_some()),
            ("--connection-window", self.connection_window.is_some()),
        ];
        let of_http2 = [
            ("--max-frame", self.max_frame.is_some()),
            ("--header-table", self.header_table.is_some()),
            ("--push", self.push),
        ];
        let of_http3 = [
            ("--qpack-table", self.qpack_table.is_some()),
            ("--qpack-blocked", self.qpack_blocked.is_some()),
            ("--quic-datagram", self.quic_datagram.is_some()),
            ("--no-gso", self.no_gso),
        ];
        let of_quic =
            [("--migrate-at", self.migrate_at.is_some()), ("--follow-addresses", self.follow_addresses)];
        for (options, fits, expected) in [
            (&of_tls[..], variant.is_encrypted(), "expected it with h1s, h2 or h3"),
            (&of_both, is_multiplexed, "expected it with h2c, h2 or h3: HTTP/1.1 has no windows of its own"),
            (&of_http2, is_http2, "expected it with h2c or h2"),
            (&of_http3, variant.is_quic(), "expected it with h3"),
            (&of_quic, variant.is_quic(), "expected it with h3: a TCP connection cannot move"),
        ] {
            if let Some((name, _)) = options.iter().find(|(_, given)| *given && !fits) {
                return Err(UsageError(format!("found {name} with {variant}, {expected}")).into());
            }
        }
        self.check_values(is_http2, lasts_ns)
    }

    fn check_values(&self, is_http2: bool, lasts_ns: Option<u64>) -> Result<()> {
        let small =
            self.connection_window.filter(|window| is_http2 && *window < LEAST_CONNECTION_WINDOW_BYTES);
        let late = self.migrate_at.zip(lasts_ns).filter(|(at_ns, lasts_ns)| at_ns >= lasts_ns);
        let has_table = self.qpack_table.is_some_and(|bytes| bytes > 0);
        let time = |ns: u64| format!("{}s", ns as f64 / 1e9);
        let fault = if self.early_data && !self.resume {
            "found --early-data, expected --resume with it: it is keyed by an earlier connection's ticket"
                .into()
        } else if self.qpack_blocked.is_some() && !has_table {
            "found --qpack-blocked without --qpack-table, expected both: without a table nothing waits".into()
        } else if let Some(window) = small {
            format!(
                "found --connection-window {window}B with HTTP/2, expected at least {LEAST_CONNECTION_WINDOW_BYTES}B: \
                 it begins there and cannot shrink (RFC 9113, section 6.9.2)"
            )
        } else if let Some((at_ns, lasts_ns)) = late {
            format!(
                "found --migrate-at {} in a test of {}, expected a time before its end",
                time(at_ns),
                time(lasts_ns)
            )
        } else {
            return Ok(());
        };
        Err(UsageError(fault).into())
    }

    /// Sets what the options say.
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

    /// What goes beyond the pins.
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

/// Where the environment wants to be told what QUIC connections do.
pub(crate) fn qlog_folder(variant: Variant) -> Option<String> {
    env::var(QLOG_VARIABLE).ok().filter(|folder| variant.is_quic() && !folder.is_empty())
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
        assert_eq!(fault(&push, Variant::H1), "found --push with h1, expected it with h2c or h2");
        assert!(push.check(Variant::H2c, None).is_ok());
        let early = ProtocolArgs { early_data: true, ..none };
        assert!(fault(&early, Variant::H2c).starts_with("found --early-data with h2c, expected it with h1s"));
        assert!(fault(&early, Variant::H2).contains("expected --resume with it"));
        let window = ProtocolArgs { connection_window: Some(1000), ..none };
        assert!(fault(&window, Variant::H1).contains("HTTP/1.1 has no windows"));
        assert!(fault(&window, Variant::H2).contains("expected at least 65535B"));
        assert!(window.check(Variant::H3, None).is_ok());
        let late = ProtocolArgs { migrate_at: Some(5_000_000_000), ..none };
        assert_eq!(
            fault(&late, Variant::H3),
            "found --migrate-at 5s in a test of 5s, expected a time before its end"
        );
        assert!(fault(&late, Variant::H2).ends_with("a TCP connection cannot move"));
        let follow = ProtocolArgs { follow_addresses: true, ..none };
        assert!(
            fault(&follow, Variant::H1s)
                .starts_with("found --follow-addresses with h1s, expected it with h3")
        );
        let blocked = ProtocolArgs { qpack_blocked: Some(5), qpack_table: Some(0), ..none };
        assert!(fault(&blocked, Variant::H3).contains("without --qpack-table"));
    }
}
