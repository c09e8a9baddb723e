//! QUIC for a client, without I/O: quinn-proto's endpoint with one connection, on the driver's clock.
//!
//! Pinned settings: congestion control and initial window, receive windows, and the datagram size. By default
//! quinn-proto starts at 1200 bytes and searches upwards; here all datagrams have the pinned size (no search,
//! no fallback), so that QUIC knows its path as well as TCP does with its MSS. The same size is announced as
//! `max_udp_payload_size`, which limits the server's datagrams.
//!
//! Randomness: packet number skips and the first destination connection ID depend on the seed; our own
//! connection IDs are empty, as in browsers. Exempt: keys within TLS, and therefore the lengths of
//! signatures.

mod session;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use model::pins::{CongestionControl, Pins, TlsVersion};
use model::sample::{Failure, FailureKind};
use model::shuffle::SplitMix64;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    IdleTimeout, NoneTokenStore, QlogConfig, RandomConnectionIdGenerator, TransportConfig, VarInt,
};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;

use crate::contract::{EarlyData, Handshake, Transmit};
use crate::h3::error::Code;
use crate::options::{Options, Qlog};
use session::{Negotiated, WatchedConfig};

/// The limit of output per `poll_transmit`.
const TRANSMIT_BYTES: usize = 64_000;
/// The limit of datagrams that Linux sends in one call (UDP_MAX_SEGMENTS of older kernels).
const TRANSMIT_DATAGRAMS: usize = 64;
/// The idle timeout of both ends; Chromium's value.
const IDLE_TIMEOUT_MS: u32 = 30_000;
/// Unacknowledged request bytes that are kept at most.
const SEND_WINDOW_BYTES: u64 = 10_000_000;
/// Unidirectional streams that a server may open at a time; it needs three.
const PEER_STREAMS: u32 = 100;
/// Length of the first destination connection id (RFC 9000, section 7.2: at least 8).
const FIRST_CONNECTION_ID_BYTES: usize = 8;
/// TLS alerts within QUIC's error codes (RFC 9001, section 4.8).
const TLS_ALERTS: std::ops::Range<u64> = 0x100..0x200;
const ALERT_NO_APPLICATION_PROTOCOL: u64 = 120;
const CONNECTION_REFUSED: u64 = 0x02;

/// Settings that all connections of a client group share.
#[derive(Clone)]
pub struct QuicConfig {
    endpoint: Arc<EndpointConfig>,
    client: quinn_proto::ClientConfig,
    max_datagrams: usize,
    /// The receiver of events; each connection then has separate settings, made of the pins.
    qlog: Option<Arc<dyn Qlog>>,
    pins: Pins,
    /// QPACK's table, in bytes, and how many streams may wait for it; HTTP/3 announces both.
    pub(crate) qpack: (u32, u16),
}

/// Pins that QUIC cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuicConfigError {
    /// QUIC has no TLS before 1.3.
    #[error("TLS 1.2 is pinned for h3; pin 1.3, which QUIC requires (RFC 9001, section 4.2)")]
    TlsVersion,
    /// A datagram too small for QUIC.
    #[error("QUIC datagrams of {0} bytes are too small; use at least 1200 (RFC 9000, section 14)")]
    Datagram(u16),
    /// The cipher suite of the first packets is missing.
    #[error("the TLS library lacks TLS_AES_128_GCM_SHA256, which QUIC's Initial packets need")]
    InitialSuite,
}

impl QuicConfig {
    /// The pins and TLS settings, for quinn-proto.
    ///
    /// # Errors
    /// [`QuicConfigError`] where the pins contradict QUIC.
    pub fn new(pins: &Pins, tls: Arc<rustls::ClientConfig>) -> Result<QuicConfig, QuicConfigError> {
        if pins.tls_version != TlsVersion::V13 {
            return Err(QuicConfigError::TlsVersion);
        }
        let datagram_bytes = pins.quic_datagram_bytes;
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        endpoint
            .max_udp_payload_size(datagram_bytes)
            .map_err(|_| QuicConfigError::Datagram(datagram_bytes))?;
        let initial = TLS13_AES_128_GCM_SHA256.tls13().and_then(rustls::Tls13CipherSuite::quic_suite);
        let crypto = QuicClientConfig::with_initial(tls, initial.ok_or(QuicConfigError::InitialSuite)?)
            .map_err(|_| QuicConfigError::InitialSuite)?;
        let mut client = quinn_proto::ClientConfig::new(Arc::new(WatchedConfig(Arc::new(crypto))));
        client.transport_config(Arc::new(transport(pins)));
        if !pins.resumption {
            client.token_store(Arc::new(NoneTokenStore));
        }
        let max_datagrams = (TRANSMIT_BYTES / usize::from(datagram_bytes)).clamp(1, TRANSMIT_DATAGRAMS);
        let qpack = (pins.http3.qpack_table_bytes, Options::default().qpack_blocked_streams);
        Ok(QuicConfig {
            endpoint: Arc::new(endpoint),
            client,
            max_datagrams,
            qlog: None,
            pins: pins.clone(),
            qpack,
        })
    }

    /// The same, with the options for QUIC and HTTP/3.
    #[must_use]
    pub fn with_options(mut self, options: &Options) -> QuicConfig {
        if !options.segmentation_offload {
            self.max_datagrams = 1;
        }
        self.qpack.1 = options.qpack_blocked_streams;
        self.qlog.clone_from(&options.qlog);
        self
    }
}

fn transport(pins: &Pins) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(pins.quic_datagram_bytes)
        .min_mtu(pins.quic_datagram_bytes)
        .mtu_discovery_config(None)
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(PEER_STREAMS))
        .stream_receive_window(VarInt::from_u32(pins.http3.stream_window_bytes))
        .receive_window(VarInt::from_u32(pins.http3.connection_window_bytes))
        .send_window(SEND_WINDOW_BYTES)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .keep_alive_interval(None)
        .datagram_receive_buffer_size(None)
        .allow_spin(false)
        .enable_segmentation_offload(true)
        .congestion_controller_factory(congestion_control(pins));
    transport
}

/// The settings of one connection that reports its events; times count from `base`.
fn transport_with_qlog(
    pins: &Pins,
    writer: Option<Box<dyn Write + Send + Sync>>,
    base: Instant,
) -> Option<TransportConfig> {
    let mut config = QlogConfig::default();
    config.writer(writer?).start_time(base);
    let mut transport = transport(pins);
    transport.qlog_stream(config.into_stream());
    Some(transport)
}

fn congestion_control(pins: &Pins) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window_bytes = u64::from(pins.initial_window_packets) * u64::from(pins.quic_datagram_bytes);
    macro_rules! with_window {
        ($controller:ty) => {{
            let mut controller = <$controller>::default();
            controller.initial_window(window_bytes);
            Arc::new(controller)
        }};
    }
    match pins.congestion_control {
        CongestionControl::Cubic => with_window!(CubicConfig),
        CongestionControl::Reno => with_window!(NewRenoConfig),
        CongestionControl::Bbr => with_window!(BbrConfig),
    }
}

/// One QUIC connection over one UDP socket.
pub(crate) struct Quic {
    base: Instant,
    remote: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    /// The connection; streams are opened, written and read on it directly.
    pub(crate) connection: quinn_proto::Connection,
    /// Incoming datagrams; kept to reuse its memory.
    received: BytesMut,
    /// Outgoing datagrams, if the driver's buffer was not empty.
    scratch: Vec<u8>,
    timeout: Option<u64>,
    max_datagrams: usize,
}

impl Quic {
    /// Starts a connection at `now`, in nanoseconds after `base`.
    pub(crate) fn connect(
        config: &QuicConfig,
        server_name: &str,
        remote: SocketAddr,
        base: Instant,
        now: u64,
        seed: u64,
    ) -> Result<Quic, Failure> {
        let mut random = SplitMix64::new(seed);
        let mut endpoint_seed = [0; 32];
        for chunk in endpoint_seed.chunks_exact_mut(8) {
            chunk.copy_from_slice(&random.next_u64().to_le_bytes());
        }
        let first_id = random.next_u64().to_le_bytes();
        let mut client = config.client.clone();
        client.initial_dst_cid_provider(Arc::new(move || {
            ConnectionId::new(&first_id[..FIRST_CONNECTION_ID_BYTES])
        }));
        if let Some(qlog) = &config.qlog {
            let id = ConnectionId::new(&first_id[..FIRST_CONNECTION_ID_BYTES]);
            if let Some(reporting) = transport_with_qlog(&config.pins, qlog.begin(&id.to_string()), base) {
                client.transport_config(Arc::new(reporting));
            }
        }
        let mut endpoint = Endpoint::new(Arc::clone(&config.endpoint), None, false, Some(endpoint_seed));
        let (handle, connection) = endpoint
            .connect(base + Duration::from_nanos(now), client, remote, server_name)
            .map_err(|error| {
                Failure::new(
                    FailureKind::Client,
                    format!("QUIC cannot connect to {server_name} at {remote}: {error}"),
                )
            })?;
        Ok(Quic {
            base,
            remote,
            endpoint,
            handle,
            connection,
            received: BytesMut::new(),
            scratch: Vec::new(),
            timeout: None,
            max_datagrams: config.max_datagrams,
        })
    }

    /// Takes concatenated datagrams of `segment_bytes`.
    pub(crate) fn handle_datagrams(&mut self, now: u64, bytes: &[u8], segment_bytes: usize, ecn: u8) {
        let now = self.instant(now);
        let ecn = EcnCodepoint::from_bits(ecn);
        self.received.extend_from_slice(bytes);
        while !self.received.is_empty() {
            let datagram = self.received.split_to(segment_bytes.clamp(1, self.received.len()));
            // Answers outside the connection (version negotiation, stateless reset) are a server's.
            self.scratch.clear();
            let event = self.endpoint.handle(now, self.remote, None, ecn, datagram, &mut self.scratch);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
    }

    /// Handles timeouts that are due by `now`.
    pub(crate) fn handle_timeout(&mut self, now: u64) {
        let now = self.instant(now);
        self.connection.handle_timeout(now);
    }

    /// The next event.
    pub(crate) fn poll(&mut self) -> Option<quinn_proto::Event> {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        self.connection.poll()
    }

    /// Appends datagrams; after the last one, updates the timeout.
    pub(crate) fn poll_transmit(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Transmit> {
        let instant = self.instant(now);
        let transmit = if out.is_empty() {
            self.connection.poll_transmit(instant, self.max_datagrams, out)
        } else {
            self.scratch.clear();
            let transmit = self.connection.poll_transmit(instant, self.max_datagrams, &mut self.scratch);
            out.extend_from_slice(&self.scratch);
            transmit
        };
        let Some(transmit) = transmit else {
            let timeout = self.connection.poll_timeout();
            self.timeout = timeout.map(|at| nanos(at.saturating_duration_since(self.base)));
            return None;
        };
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
        Some(Transmit::Datagrams { segment_bytes, ecn: transmit.ecn.map_or(0, |ecn| ecn as u8) })
    }

    /// The timeout, as of the last time that nothing was left to send.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.timeout
    }

    /// Closes with an HTTP/3 error code.
    pub(crate) fn close(&mut self, now: u64, code: Code, reason: &str) {
        let now = self.instant(now);
        self.connection.close(now, varint(code), bytes::Bytes::copy_from_slice(reason.as_bytes()));
    }

    /// The result of the handshake, once it is done.
    pub(crate) fn handshake(&self) -> Handshake {
        let data = self.connection.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<Negotiated>().ok());
        let early_data = match (self.connection.has_0rtt(), self.connection.accepted_0rtt()) {
            (false, _) => EarlyData::NotTried,
            (true, true) => EarlyData::Accepted,
            (true, false) => EarlyData::Rejected,
        };
        Handshake {
            alpn: data
                .as_ref()
                .and_then(|data| data.alpn.as_deref())
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            tls_version: Some("TLSv1_3".into()),
            cipher_suite: data.as_ref().and_then(|data| data.cipher_suite.clone()),
            key_exchange: data.as_ref().and_then(|data| data.key_exchange.clone()),
            resumed: data.is_some_and(|data| data.resumed),
            early_data,
        }
    }

    /// The local address changed: new packets validate the path from there (RFC 9000, section 9.2).
    pub(crate) fn local_address_changed(&mut self) {
        self.connection.local_address_changed();
    }

    fn instant(&self, now: u64) -> Instant {
        self.base + Duration::from_nanos(now)
    }
}

/// A code as QUIC's integer.
pub(crate) fn varint(code: Code) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Why a connection was lost, and whether the peer closed it in order.
pub(crate) fn connection_failure(error: &ConnectionError) -> (Failure, bool) {
    let (kind, reason, orderly) = match error {
        ConnectionError::TransportError(error) => match u64::from(error.code) {
            code if TLS_ALERTS.contains(&code) => (alert_kind(code), format!("TLS: {}", error.reason), false),
            _ => (FailureKind::Protocol, format!("QUIC: {error}"), false),
        },
        ConnectionError::ConnectionClosed(close) => match u64::from(close.error_code) {
            code if TLS_ALERTS.contains(&code) => {
                (alert_kind(code), format!("TLS: the server sent alert {}: {close}", code & 0xff), false)
            }
            0 => (FailureKind::Closed, "the server closed the QUIC connection".into(), true),
            CONNECTION_REFUSED => (FailureKind::Refused, format!("QUIC: the server refused: {close}"), false),
            _ => (FailureKind::Reset, format!("QUIC: the server aborted: {close}"), false),
        },
        ConnectionError::ApplicationClosed(close) => {
            let code = Code(close.error_code.into());
            let said = String::from_utf8_lossy(&close.reason);
            let reason = format!("the server closed the connection with {code} {said}").trim_end().to_owned();
            let orderly = code == Code::H3_NO_ERROR;
            (if orderly { FailureKind::Closed } else { FailureKind::Reset }, reason, orderly)
        }
        ConnectionError::Reset => (FailureKind::Reset, "QUIC: stateless reset by the server".into(), false),
        ConnectionError::TimedOut => {
            (FailureKind::Timeout, format!("QUIC: nothing received for {IDLE_TIMEOUT_MS} ms"), true)
        }
        ConnectionError::VersionMismatch => {
            (FailureKind::WrongVersion, "the server does not speak QUIC version 1".into(), false)
        }
        ConnectionError::LocallyClosed => (FailureKind::Closed, "closed by the client".into(), true),
        ConnectionError::CidsExhausted => {
            (FailureKind::System, "QUIC: no connection IDs are left".into(), false)
        }
    };
    (Failure { kind, reason }, orderly)
}

fn alert_kind(code: u64) -> FailureKind {
    if code & 0xff == ALERT_NO_APPLICATION_PROTOCOL { FailureKind::WrongVersion } else { FailureKind::Tls }
}
