//! TLS for a client, without I/O: records in, plaintext out, and the other way round.
//!
//! It stands on rustls' unbuffered interface: records are decrypted where the transport put them, and only what is
//! incomplete is kept. rustls itself draws key randomness and reads the time of day (certificate validity).

use std::sync::Arc;

use model::assignment::Trust;
use model::pins::{CipherSuite, KeyExchange, Pins, TlsVersion};
use model::sample::{Failure, FailureKind};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, WebPkiSupportedAlgorithms, ring};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{AlertDescription, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls::{HandshakeKind, SupportedCipherSuite};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::contract::Handshake;

/// Largest amount of undecrypted bytes that is kept: one handshake message (64 kB) and one record.
const INCOMPLETE_LIMIT_BYTES: usize = 128 * 1024;
/// Content of a full record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;
/// What a record adds at most in the versions and suites offered here: header, explicit nonce, type, tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
const RECORD_HEADER_BYTES: usize = 5;

/// The client's side of one TLS connection.
pub struct Tls {
    connection: UnbufferedClientConnection,
    /// Undecrypted bytes from the start of a record.
    incomplete: Vec<u8>,
    /// Records to be sent.
    output: Vec<u8>,
    established: bool,
    /// Nothing more is encrypted: after close_notify, or an error.
    ended: bool,
}

/// What [`Tls::handle_input`] tells.
#[derive(Debug)]
pub enum TlsEvent<'a> {
    /// The handshake is done; plaintext may be sent.
    Established(Handshake),
    /// A piece of what the peer sent.
    Plaintext(&'a [u8]),
    /// The peer said close_notify: nothing follows.
    End,
}

/// Where [`TlsEvent`]s go; an error ends the connection.
pub type TlsSink<'s> = dyn FnMut(TlsEvent<'_>) -> Result<(), Failure> + 's;

impl Tls {
    /// A connection to `name`; [`Tls::start`] begins the handshake.
    ///
    /// # Errors
    /// Where rustls finds the configuration unusable.
    pub fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Tls, Failure> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(|error| failure(&error))?;
        Ok(Tls { connection, incomplete: Vec::new(), output: Vec::new(), established: false, ended: false })
    }

    /// Queues the ClientHello.
    ///
    /// # Errors
    /// Where rustls cannot make one.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.handle_input(&mut [], &mut |_| Ok(()))
    }

    /// Takes what the transport read, decrypting in place.
    ///
    /// # Errors
    /// The handshake or a record failed, or `sink` did; an alert to the peer is queued then.
    pub fn handle_input(&mut self, mut bytes: &mut [u8], sink: &mut TlsSink<'_>) -> Result<(), Failure> {
        while !self.incomplete.is_empty() && !bytes.is_empty() {
            let take = missing_bytes(&self.incomplete).min(bytes.len());
            let (first, rest) = bytes.split_at_mut(take);
            self.incomplete.extend_from_slice(first);
            bytes = rest;
            let mut buffer = std::mem::take(&mut self.incomplete);
            let consumed = self.process(&mut buffer, sink)?;
            buffer.drain(..consumed);
            self.incomplete = buffer;
            self.check_limit()?;
        }
        if self.incomplete.is_empty() {
            let consumed = self.process(bytes, sink)?;
            self.incomplete.extend_from_slice(&bytes[consumed..]);
            self.check_limit()?;
        }
        Ok(())
    }

    /// Whether plaintext may be sent.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Moves handshake records and alerts that are to be sent to the end of `out`; whether there were any.
    pub fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        let any = !self.output.is_empty();
        out.append(&mut self.output);
        any
    }

    /// Whether [`Tls::poll_output`] has something.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Appends `plaintext` as records to `out`: full ones and a last one.
    ///
    /// # Errors
    /// Before the handshake is done, after [`Tls::close`] or an error, or when the keys are used up.
    pub fn encrypt(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        if plaintext.is_empty() {
            return Ok(());
        }
        if self.ended || !self.established {
            return Err(write_failure("the connection takes no plaintext now"));
        }
        self.write(Some(plaintext), out)
    }

    /// Appends a close_notify alert to `out`; nothing before the handshake is done.
    ///
    /// # Errors
    /// After the keys are used up.
    pub fn close(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        if self.established && !self.ended { self.write(None, out) } else { Ok(()) }
    }

    /// Runs rustls over `buffer`; how many bytes of it are done with.
    fn process(&mut self, buffer: &mut [u8], sink: &mut TlsSink<'_>) -> Result<usize, Failure> {
        let mut done_bytes = 0;
        loop {
            if !self.established && !self.connection.is_handshaking() {
                self.established = true;
                sink(TlsEvent::Established(self.facts()))?;
            }
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut buffer[done_bytes..]);
            let mut waits = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(|error| failure(&error))?;
                        discard += record.discard;
                        sink(TlsEvent::Plaintext(record.payload))?;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    append(&mut self.output, 0, |space| message.encode(space).map_err(encode_shortage))?;
                }
                Ok(ConnectionState::TransmitTlsData(message)) => message.done(),
                Ok(ConnectionState::PeerClosed) => sink(TlsEvent::End)?,
                Ok(_) => waits = true,
                Err(error) => {
                    // rustls keeps positions within these bytes, so what is left of them is what it must be shown.
                    self.fetch_alert(&mut buffer[done_bytes + discard..]);
                    return Err(failure(&error));
                }
            }
            done_bytes += discard;
            if waits {
                return Ok(done_bytes);
            }
        }
    }

    fn write(&mut self, plaintext: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.poll_output(out);
        loop {
            // rustls may hold a position within the incomplete bytes, so these are what it must be shown.
            let UnbufferedStatus { discard, state } =
                self.connection.process_tls_records(&mut self.incomplete);
            match state {
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    append(out, 0, |space| message.encode(space).map_err(encode_shortage))?;
                }
                Ok(ConnectionState::TransmitTlsData(message)) => message.done(),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    return match plaintext {
                        Some(bytes) => append(out, sealed_bytes(bytes.len()), |space| {
                            traffic.encrypt(bytes, space).map_err(encrypt_shortage)
                        }),
                        None => {
                            self.ended = true;
                            append(out, sealed_bytes(2), |space| {
                                traffic.queue_close_notify(space).map_err(encrypt_shortage)
                            })
                        }
                    };
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::ReadTraffic(_)) => {}
                Ok(_) => {
                    return Err(write_failure("the connection takes no plaintext now"));
                }
                Err(error) => return Err(failure(&error)),
            }
            self.incomplete.drain(..discard);
        }
    }

    /// Fetches the alert that rustls queued with an error. Nothing else is queued then, because what is queued comes
    /// before the next record; and asking again would read on where reading failed.
    fn fetch_alert(&mut self, rest: &mut [u8]) {
        self.ended = true;
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = self.connection.process_tls_records(rest).state
        {
            // An alert that cannot be made is none: TCP's own end follows.
            let _ = append(&mut self.output, 0, |space| alert.encode(space).map_err(encode_shortage));
        }
    }

    fn check_limit(&self) -> Result<(), Failure> {
        let found = self.incomplete.len();
        if found <= INCOMPLETE_LIMIT_BYTES {
            return Ok(());
        }
        Err(Failure {
            kind: FailureKind::Limit,
            reason: format!(
                "found {found} bytes of unfinished TLS messages, expected at most {INCOMPLETE_LIMIT_BYTES}"
            ),
        })
    }

    fn facts(&self) -> Handshake {
        let connection = &self.connection;
        Handshake {
            alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            tls_version: connection.protocol_version().map(|version| format!("{version:?}")),
            cipher_suite: connection.negotiated_cipher_suite().map(registered_name),
            key_exchange: connection
                .negotiated_key_exchange_group()
                .map(|group| format!("{:?}", group.name()).to_ascii_lowercase()),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

/// How many bytes are missing to the end of the first record; all that there are, where it is whole already.
fn missing_bytes(incomplete: &[u8]) -> usize {
    let whole = match incomplete {
        [_, _, _, high, low, ..] => RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low])),
        _ => RECORD_HEADER_BYTES,
    };
    match whole.saturating_sub(incomplete.len()) {
        0 => usize::MAX,
        missing => missing,
    }
}

/// An upper bound of what `plaintext_bytes` take when sealed, a key update included.
fn sealed_bytes(plaintext_bytes: usize) -> usize {
    plaintext_bytes + (plaintext_bytes / RECORD_BYTES + 2) * RECORD_OVERHEAD_BYTES
}

/// What stopped a write into a given space.
enum Shortage {
    Space(usize),
    Other(String),
}

fn encode_shortage(error: EncodeError) -> Shortage {
    match error {
        EncodeError::InsufficientSize(size) => Shortage::Space(size.required_size),
        EncodeError::AlreadyEncoded => Shortage::Other(error.to_string()),
    }
}

fn encrypt_shortage(error: EncryptError) -> Shortage {
    match error {
        EncryptError::InsufficientSize(size) => Shortage::Space(size.required_size),
        EncryptError::EncryptExhausted => Shortage::Other(error.to_string()),
    }
}

/// Lets `write` fill space at the end of `out`, first `guess_bytes` of it, then as much as it asks for.
fn append(
    out: &mut Vec<u8>,
    guess_bytes: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Shortage>,
) -> Result<(), Failure> {
    let start = out.len();
    let mut space_bytes = guess_bytes;
    loop {
        out.resize(start + space_bytes, 0);
        match write(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(Shortage::Space(needed)) if needed > space_bytes => space_bytes = needed,
            Err(Shortage::Space(_)) => return Err(write_failure("rustls asks for less space than it has")),
            Err(Shortage::Other(reason)) => return Err(write_failure(&reason)),
        }
    }
}

fn write_failure(reason: &str) -> Failure {
    Failure { kind: FailureKind::Tls, reason: format!("a TLS record could not be made: {reason}") }
}

/// The failure that an error of rustls stands for.
fn failure(error: &rustls::Error) -> Failure {
    let kind = match error {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | rustls::Error::NoApplicationProtocol => FailureKind::WrongVersion,
        _ => FailureKind::Tls,
    };
    Failure { kind, reason: format!("TLS: {error}") }
}

/// The suite's name in the registry: rustls marks those of TLS 1.3 with `TLS13_`.
fn registered_name(suite: SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

/// Why no TLS configuration could be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// The authority's certificate is not what was expected.
    #[error("found an unreadable certificate authority ({0}), expected one or more PEM certificates")]
    Authority(String),
    /// No root certificate was given.
    #[error(
        "found no root certificates, expected those of the system; install ca-certificates or name an authority"
    )]
    NoRoots,
    /// Pins that contradict each other.
    #[error("{0}")]
    Pins(String),
    /// rustls refused the configuration.
    #[error("rustls refused the pinned TLS settings: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A client's TLS configuration: exactly the pinned version, cipher suite and group, and one protocol in ALPN.
///
/// `roots` are trusted where `trust` is [`Trust::System`]; this crate opens no files, so the caller brings them.
///
/// # Errors
/// The authority cannot be read, there are no roots, or rustls refuses the pins.
pub fn tls_config(
    pins: &Pins,
    alpn: &[u8],
    trust: &Trust,
    roots: &[CertificateDer<'static>],
) -> Result<ClientConfig, TlsConfigError> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: cipher_suites(pins),
        kx_groups: vec![key_exchange(pins.key_exchange)],
        ..ring::default_provider()
    });
    let version = match pins.tls_version {
        TlsVersion::V12 => &rustls::version::TLS12,
        TlsVersion::V13 => &rustls::version::TLS13,
    };
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version])?;
    let mut config = match trust {
        Trust::Authority(pem) => builder.with_root_certificates(authority(pem)?).with_no_client_auth(),
        Trust::System => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots.iter().cloned());
            if store.is_empty() {
                return Err(TlsConfigError::NoRoots);
            }
            builder.with_root_certificates(store).with_no_client_auth()
        }
        Trust::Anyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAnyone { algorithms }))
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    if !pins.resumption {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

fn authority(pem: &str) -> Result<RootCertStore, TlsConfigError> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| TlsConfigError::Authority(error.to_string()))?;
        store.add(certificate).map_err(|error| TlsConfigError::Authority(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(TlsConfigError::Authority("no certificate in it".into()));
    }
    Ok(store)
}

/// The pinned suite; for TLS 1.2 the ECDHE suites with the same cipher and hash.
fn cipher_suites(pins: &Pins) -> Vec<SupportedCipherSuite> {
    use ring::cipher_suite as suite;
    match (pins.tls_version, pins.cipher_suite) {
        (TlsVersion::V13, CipherSuite::TLS_AES_128_GCM_SHA256) => vec![suite::TLS13_AES_128_GCM_SHA256],
        (TlsVersion::V13, CipherSuite::TLS_AES_256_GCM_SHA384) => vec![suite::TLS13_AES_256_GCM_SHA384],
        (TlsVersion::V13, CipherSuite::TLS_CHACHA20_POLY1305_SHA256) => {
            vec![suite::TLS13_CHACHA20_POLY1305_SHA256]
        }
        (TlsVersion::V12, CipherSuite::TLS_AES_128_GCM_SHA256) => {
            vec![suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
        }
        (TlsVersion::V12, CipherSuite::TLS_AES_256_GCM_SHA384) => {
            vec![suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]
        }
        (TlsVersion::V12, CipherSuite::TLS_CHACHA20_POLY1305_SHA256) => vec![
            suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
    }
}

fn key_exchange(pinned: KeyExchange) -> &'static dyn SupportedKxGroup {
    match pinned {
        KeyExchange::X25519 => ring::kx_group::X25519,
        KeyExchange::Secp256r1 => ring::kx_group::SECP256R1,
        KeyExchange::Secp384r1 => ring::kx_group::SECP384R1,
    }
}

/// Accepts every certificate, and still checks that the peer holds its key.
#[derive(Debug)]
struct TrustAnyone {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
