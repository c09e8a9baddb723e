//! Pins: the settings fixed in every cell, so that nothing differs silently between variants.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named;
use crate::units::parse_duration_ns;

/// Settings of transport and protocol, the same in every cell unless the study varies them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// Congestion control of TCP and of QUIC.
    pub congestion_control: CongestionControl,
    /// Initial congestion window, in full-sized packets (RFC 6928: 10).
    pub initial_window_packets: u32,
    /// Largest IP packet on every link, in bytes.
    pub mtu_bytes: u32,
    /// Largest payload of a QUIC datagram (UDP payload), in bytes.
    pub quic_datagram_bytes: u16,
    /// TLS version.
    pub tls_version: TlsVersion,
    /// TLS 1.3 cipher suite.
    pub cipher_suite: CipherSuite,
    /// Key exchange group.
    pub key_exchange: KeyExchange,
    /// Whether a client may resume sessions or send early data.
    pub resumption: bool,
    /// The client's HTTP/2 flow-control windows and limits.
    pub http2: Http2Pins,
    /// The client's HTTP/3 and QUIC flow-control windows.
    pub http3: Http3Pins,
    /// How many connections an HTTP/1.1 client opens to one host.
    pub http1_connections: u32,
    /// When a client gives up a TCP connection that its network has lost.
    #[serde(default, skip_serializing_if = "Reconnect::is_never")]
    pub reconnect: Reconnect,
}

named! { "a congestion control";
    /// A congestion control algorithm, by its name in Linux.
    pub enum CongestionControl {
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// NewReno (RFC 5681).
        Reno = "reno",
        /// BBR.
        Bbr = "bbr",
    }
}

named! { "a version of TLS";
    /// A version of TLS.
    pub enum TlsVersion {
        /// TLS 1.2 (RFC 5246).
        V12 = "1.2",
        /// TLS 1.3 (RFC 8446).
        V13 = "1.3",
    }
}

named! { "a cipher suite of TLS 1.3";
    /// A cipher suite of TLS 1.3 (RFC 8446, appendix B.4).
    #[expect(non_camel_case_types, reason = "the registered names")]
    #[expect(missing_docs, reason = "the names are enough")]
    pub enum CipherSuite {
        TLS_AES_128_GCM_SHA256 = "TLS_AES_128_GCM_SHA256",
        TLS_AES_256_GCM_SHA384 = "TLS_AES_256_GCM_SHA384",
        TLS_CHACHA20_POLY1305_SHA256 = "TLS_CHACHA20_POLY1305_SHA256",
    }
}

named! { "a key exchange";
    /// A key exchange group of TLS (RFC 8446, section 4.2.7), by its name at IANA.
    #[expect(missing_docs, reason = "the names are enough")]
    pub enum KeyExchange {
        X25519 = "x25519",
        Secp256r1 = "secp256r1",
        Secp384r1 = "secp384r1",
    }
}

/// When a client gives up a TCP connection that its network has lost, opens another one and sends the
/// unanswered requests again whose methods are idempotent (RFC 9110, section 9.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reconnect {
    /// Never: requests fail when the connection or their time ends.
    #[default]
    Never,
    /// As soon as the kernel reports that a local address is gone.
    AtOnce,
    /// When nothing has arrived for this many nanoseconds although a response or a connection is due.
    SilentNs(u64),
}

impl Reconnect {
    const fn is_never(&self) -> bool {
        matches!(self, Reconnect::Never)
    }
}

impl FromStr for Reconnect {
    type Err = String;

    /// Reads `never`, `at-once` or a duration.
    fn from_str(text: &str) -> Result<Reconnect, String> {
        match text {
            "never" => Ok(Reconnect::Never),
            "at-once" => Ok(Reconnect::AtOnce),
            _ => match parse_duration_ns(text) {
                Ok(silent_ns @ 1..) => Ok(Reconnect::SilentNs(silent_ns)),
                _ => Err(format!(
                    "`{text}` is not a time to reconnect; write `never`, `at-once` or a duration above 0 such as `5s`"
                )),
            },
        }
    }
}

/// What an HTTP/2 client announces (RFC 9113, section 6.5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Pins {
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    pub stream_window_bytes: u32,
    /// The connection's window, opened by a WINDOW_UPDATE after the preface.
    pub connection_window_bytes: u32,
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub header_table_bytes: u32,
    /// SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_bytes: u32,
    /// SETTINGS_ENABLE_PUSH. Clients of a page that is pushed announce it, too.
    #[serde(default)]
    pub accept_push: bool,
}

/// What an HTTP/3 client announces (RFC 9000, section 18.2; RFC 9204, section 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http3Pins {
    /// Window of each stream.
    pub stream_window_bytes: u32,
    /// Window of the connection.
    pub connection_window_bytes: u32,
    /// QPACK_MAX_TABLE_CAPACITY.
    pub qpack_table_bytes: u32,
}

impl Pins {
    /// The names of what these hold otherwise than others do.
    pub fn differences(&self, other: &Pins) -> Vec<&'static str> {
        let equal = [
            ("congestion_control", self.congestion_control == other.congestion_control),
            ("initial_window", self.initial_window_packets == other.initial_window_packets),
            ("mtu", self.mtu_bytes == other.mtu_bytes),
            ("quic_datagram", self.quic_datagram_bytes == other.quic_datagram_bytes),
            ("tls", self.tls_version == other.tls_version),
            ("cipher_suite", self.cipher_suite == other.cipher_suite),
            ("key_exchange", self.key_exchange == other.key_exchange),
            ("resumption", self.resumption == other.resumption),
            ("http2", self.http2 == other.http2),
            ("http3", self.http3 == other.http3),
            ("http1_connections", self.http1_connections == other.http1_connections),
            ("reconnect", self.reconnect == other.reconnect),
        ];
        equal.into_iter().filter(|(_, is_equal)| !is_equal).map(|(name, _)| name).collect()
    }
}

impl Default for Pins {
    /// Chromium's windows, cubic, TLS 1.3 with AES-128-GCM and X25519, nothing resumed.
    fn default() -> Self {
        Pins {
            congestion_control: CongestionControl::Cubic,
            initial_window_packets: 10,
            mtu_bytes: 1500,
            quic_datagram_bytes: 1452,
            tls_version: TlsVersion::V13,
            cipher_suite: CipherSuite::TLS_AES_128_GCM_SHA256,
            key_exchange: KeyExchange::X25519,
            resumption: false,
            http2: Http2Pins::default(),
            http3: Http3Pins::default(),
            http1_connections: 6,
            reconnect: Reconnect::Never,
        }
    }
}

impl Default for Http2Pins {
    fn default() -> Self {
        Http2Pins {
            stream_window_bytes: 6 << 20,
            connection_window_bytes: 15 << 20,
            header_table_bytes: 65_536,
            max_frame_bytes: 16_384,
            accept_push: false,
        }
    }
}

impl Default for Http3Pins {
    fn default() -> Self {
        Http3Pins { stream_window_bytes: 6 << 20, connection_window_bytes: 15 << 20, qpack_table_bytes: 0 }
    }
}

/// Bounds of the pins, for studies and for the command line.
pub mod bounds {
    /// QUIC's smallest largest datagram (RFC 9000, section 14).
    pub const LEAST_DATAGRAM_BYTES: u32 = 1200;
    /// The smallest MTU of IPv6 (RFC 8200, section 5).
    pub const LEAST_MTU_BYTES: u32 = 1280;
    /// The headers of IPv6 and UDP before a datagram.
    pub const DATAGRAM_HEADER_BYTES: u32 = 48;
    /// What Ethernet devices call a jumbo frame.
    pub const MOST_MTU_BYTES: u32 = 9000;
    /// The largest window of a stream or a connection (RFC 9113, section 6.9.1).
    pub const MOST_WINDOW_BYTES: u32 = (1 << 31) - 1;
    /// An HTTP/2 connection's window begins here and can only grow (RFC 9113, section 6.9.2).
    pub const LEAST_CONNECTION_WINDOW_BYTES: u32 = 65_535;
    /// The least SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
    pub const LEAST_FRAME_BYTES: u32 = 1 << 14;
    /// The largest SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
    pub const MOST_FRAME_BYTES: u32 = (1 << 24) - 1;
    /// A header table larger than this serves no purpose and would only cost memory.
    pub const MOST_TABLE_BYTES: u32 = 16 << 20;
}
