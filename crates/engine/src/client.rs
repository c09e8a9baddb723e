//! One client type for all five variants, so that the driver's loop is independent of the protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use model::assignment::Trust;
use model::pins::TlsVersion;
use model::sample::{Failure, FailureKind};
use model::tls::{TlsOffer, TlsOptions};
use model::{Pins, Variant};
use rustls::client::Resumption;
use rustls_pki_types::{CertificateDer, ServerName};

use crate::contract::{Connection, HeaderBytes, Input, NotNow, Request, RequestId, Sink, Transmit};
use crate::h1::{self, Http1};
use crate::h2::{self, Http2};
use crate::h3::Http3;
use crate::options::{Options, SESSION_LIMIT};
use crate::quic::{QuicConfig, QuicConfigError};
use crate::tcp::TcpConnection;
use crate::tls::{self, Tls, TlsConfigError, offered_config};

/// Settings that all connections of a client group share; cheap to clone.
#[derive(Clone)]
pub struct ClientConfig {
    variant: Variant,
    server_name: ServerName<'static>,
    pins: Pins,
    /// The limit of concurrent pushed responses (HTTP/2).
    pushes: u32,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// The TLS versions that are offered.
    versions: Vec<TlsVersion>,
    quic: Option<Arc<QuicConfig>>,
}

/// Why a client cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum ClientConfigError {
    /// The server's name.
    #[error("`{0}` is not a server name; use a host name or an IP address")]
    ServerName(String),
    /// The TLS settings.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The QUIC settings.
    #[error(transparent)]
    Quic(#[from] QuicConfigError),
}

impl ClientConfig {
    /// Settings for clients that speak `variant` to `server_name`; cleartext variants use neither `trust` nor
    /// `roots`.
    ///
    /// `roots` are trusted where `trust` is [`Trust::System`].
    ///
    /// # Errors
    /// [`ClientConfigError`] where the pins contradict the variant or a certificate cannot be read.
    pub fn new(
        variant: Variant,
        server_name: &str,
        pins: &Pins,
        trust: &Trust,
        roots: &[CertificateDer<'static>],
    ) -> Result<ClientConfig, ClientConfigError> {
        Self::offering(variant, server_name, pins, &TlsOptions::default(), trust, roots)
    }

    /// The same, with the offer and the client certificate of `options`; QUIC uses the TLS 1.3 part of the
    /// offer.
    ///
    /// # Errors
    /// As [`ClientConfig::new`], and if the client certificate cannot be used.
    pub fn offering(
        variant: Variant,
        server_name: &str,
        pins: &Pins,
        options: &TlsOptions,
        trust: &Trust,
        roots: &[CertificateDer<'static>],
    ) -> Result<ClientConfig, ClientConfigError> {
        let mut offer = options.offer.clone().unwrap_or_else(|| TlsOffer::pinned(pins));
        if variant.is_quic() {
            offer = offer.only(&[TlsVersion::V13]);
            if offer.suites.is_empty() {
                return Err(QuicConfigError::TlsVersion.into());
            }
        }
        let parsed = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ClientConfigError::ServerName(server_name.to_owned()))?;
        let tls = match variant.alpn() {
            Some(alpn) => {
                let certificate = options.client_certificate.as_ref();
                let mut tls = offered_config(&offer, certificate, alpn, trust, roots)?;
                if pins.resumption {
                    tls.resumption = Resumption::store(Arc::new(tls::SessionStore::new(SESSION_LIMIT)));
                }
                Some(Arc::new(tls))
            }
            None => None,
        };
        let quic = match &tls {
            Some(tls) if variant.is_quic() => Some(Arc::new(QuicConfig::new(pins, Arc::clone(tls))?)),
            _ => None,
        };
        let versions = offer.versions;
        Ok(ClientConfig { variant, server_name: parsed, pins: pins.clone(), pushes: 0, tls, versions, quic })
    }

    /// The same with `options` and a separate session store.
    ///
    /// # Errors
    /// [`ClientConfigError`] where the options contradict the pins.
    pub fn with_options(mut self, options: &Options) -> Result<ClientConfig, ClientConfigError> {
        self.pushes = if options.accept_push { h2::PUSHES } else { 0 };
        if let Some(tls) = &self.tls {
            // A server that chooses another version treats early data as an error (RFC 8446, section 4.2.10).
            if options.early_data && self.versions != [TlsVersion::V13] {
                return Err(TlsConfigError::EarlyData.into());
            }
            let tls = Arc::new(tls::with_options(tls, &self.pins, options)?);
            self.tls = Some(Arc::clone(&tls));
            if self.quic.is_some() {
                let quic = QuicConfig::new(&self.pins, tls)?.with_options(options);
                self.quic = Some(Arc::new(quic));
            }
        }
        Ok(self)
    }

    /// The variant that its clients speak.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let tls = self.tls.as_ref().map(|tls| Tls::new(Arc::clone(tls), self.server_name.clone()));
        tls.transpose()
    }
}

/// One connection of any variant.
///
/// Large state of single variants is boxed, so that HTTP/1.1 connections do not need memory for QUIC's state.
#[expect(
    clippy::large_enum_variant,
    reason = "every request reads the TCP variants: a box would cost an indirection"
)]
pub enum Client {
    /// HTTP/1.1, in cleartext or over TLS.
    Http1(TcpConnection<Http1>),
    /// HTTP/2, in cleartext or over TLS.
    Http2(TcpConnection<Http2>),
    /// HTTP/3 over QUIC.
    Http3(Box<Http3>),
}

impl Client {
    /// A connection to `remote`; [`Connection::handle_connected`] starts it.
    ///
    /// `base` is the instant at which the driver's clock reads 0; `seed` belongs to this connection.
    ///
    /// # Errors
    /// The TLS library rejects its settings.
    pub fn new(
        config: &ClientConfig,
        remote: SocketAddr,
        base: Instant,
        seed: u64,
    ) -> Result<Client, Failure> {
        let variant = config.variant;
        match (variant, &config.quic) {
            (Variant::H1 | Variant::H1s, _) => {
                let http = Http1::new(h1::Limits::default());
                Ok(Client::Http1(TcpConnection::new(variant, http, config.tls()?)))
            }
            (Variant::H2c | Variant::H2, _) => {
                let http = Http2::new(
                    &config.pins.http2,
                    h2::Limits { pushes: config.pushes, ..h2::Limits::default() },
                );
                Ok(Client::Http2(TcpConnection::new(variant, http, config.tls()?)))
            }
            (Variant::H3, Some(quic)) => {
                let name = config.server_name.to_str().into_owned();
                Ok(Client::Http3(Box::new(Http3::new(Arc::clone(quic), name, remote, base, seed))))
            }
            (Variant::H3, None) => Err(Failure::new(
                FailureKind::Client,
                "the configuration has no QUIC settings; create it with ClientConfig::new for h3",
            )),
        }
    }

    /// The driver bound a new socket: a QUIC connection migrates to it (RFC 9000, section 9); TCP connections
    /// cannot.
    ///
    /// Drain `poll_transmit` afterwards: a packet leaves from the new address at once. `false` if nothing
    /// migrated.
    pub fn local_address_changed(&mut self, _now: u64) -> bool {
        match self {
            Client::Http3(connection) => connection.local_address_changed(),
            Client::Http1(_) | Client::Http2(_) => false,
        }
    }
}

/// A method that calls the same method of the variant's connection.
macro_rules! forward {
    (fn $name:ident($self:ident: $receiver:ty $(, $argument:ident: $type:ty)*) $(-> $result:ty)?) => {
        fn $name($self: $receiver $(, $argument: $type)*) $(-> $result)? {
            match $self {
                Client::Http1(connection) => connection.$name($($argument),*),
                Client::Http2(connection) => connection.$name($($argument),*),
                Client::Http3(connection) => connection.$name($($argument),*),
            }
        }
    };
}

impl Connection for Client {
    forward!(fn available_requests(self: &Self) -> usize);
    forward!(fn handle_connected(self: &mut Self, now: u64, sink: &mut Sink<'_>));
    forward!(fn send_request(self: &mut Self, now: u64, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow>);
    forward!(fn handle_input(self: &mut Self, now: u64, input: Input<'_>, sink: &mut Sink<'_>));
    forward!(fn skippable_bytes(self: &Self) -> u64);
    forward!(fn handle_timeout(self: &mut Self, now: u64, sink: &mut Sink<'_>));
    forward!(fn cancel(self: &mut Self, now: u64, id: RequestId));
    forward!(fn close(self: &mut Self, now: u64));
    forward!(fn poll_transmit(self: &mut Self, now: u64, out: &mut Vec<u8>) -> Option<Transmit>);
    forward!(fn poll_timeout(self: &Self) -> Option<u64>);
    forward!(fn is_closed(self: &Self) -> bool);
}
