//! TLS for a client, without I/O: records in, plaintext out, and the reverse.
//!
//! It uses rustls' unbuffered interface: records are decrypted where the transport put them, and only
//! what is incomplete is kept. rustls itself draws key randomness and reads the time of day (certificate
//! validity).

mod config;
mod sessions;

use std::sync::Arc;

use model::sample::{Failure, FailureKind};
use rustls::client::{EarlyDataError, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{AlertDescription, CipherSuite, ClientConfig, HandshakeKind, NamedGroup};
use rustls_pki_types::ServerName;

pub use config::{TlsConfigError, check_authority, offered_config, tls_config, with_options};
pub use sessions::SessionStore;

use crate::contract::{EarlyData, Handshake};

/// The limit of undecrypted bytes: one handshake message (64 kB) and one record.
const INCOMPLETE_LIMIT_BYTES: usize = 128 * 1024;
/// Content of a full record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;
/// The largest overhead of a record in the offered versions and suites: header, explicit nonce, type, tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
const RECORD_HEADER_BYTES: usize = 5;
/// What follows the content of a TLS 1.3 record: type and tag.
const INNER_OVERHEAD_BYTES: usize = 1 + 16;
/// The one handshake message of TLS 1.3 without a body, the only one of this length that a client sends.
const END_OF_EARLY_DATA_BYTES: usize = 4;

/// The client's side of one TLS connection.
pub struct Tls {
    connection: UnbufferedClientConnection,
    /// Undecrypted bytes from the start of a record.
    incomplete: Vec<u8>,
    /// Records to be sent.
    output: Vec<u8>,
    established: bool,
    /// Once offered it counts as rejected until EndOfEarlyData is sent, which a client does only if the
    /// server accepted (RFC 8446, section 4.5); rustls' unbuffered interface has no other sign of it.
    early_data: EarlyData,
    /// Nothing more is encrypted: after close_notify, or an error.
    ended: bool,
}

/// An event of [`Tls::handle_input`].
#[derive(Debug)]
pub enum TlsEvent<'a> {
    /// The handshake is done; plaintext can be sent.
    Established(Handshake),
    /// A piece of the peer's plaintext.
    Plaintext(&'a [u8]),
    /// The peer sent close_notify: nothing follows.
    End,
}

/// The receiver of [`TlsEvent`]s; an error ends the connection.
pub type TlsSink<'s> = dyn FnMut(TlsEvent<'_>) -> Result<(), Failure> + 's;

impl Tls {
    /// A connection to `name`; [`Tls::start`] starts the handshake.
    ///
    /// # Errors
    /// rustls rejects the configuration.
    pub fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Tls, Failure> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(|error| failure(&error))?;
        Ok(Tls {
            connection,
            incomplete: Vec::new(),
            output: Vec::new(),
            established: false,
            early_data: EarlyData::NotTried,
            ended: false,
        })
    }

    /// Queues the ClientHello.
    ///
    /// # Errors
    /// rustls cannot create one.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.handle_input(&mut [], &mut |_| Ok(()))
    }

    /// Takes input of the transport, and decrypts it in place.
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

    /// Whether plaintext can be sent.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether early data can be sent: a ticket allows it, and the server has not answered yet.
    pub fn takes_early_data(&self) -> bool {
        self.early_data == EarlyData::Rejected && !self.established && !self.ended
    }

    /// Sends as much of `plaintext` as the ticket allows as early data; returns the number of bytes.
    ///
    /// Early data can be replayed by an attacker (RFC 8446, section 8): give it safe requests only.
    ///
    /// # Errors
    /// rustls cannot create a record.
    pub fn encrypt_early(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<usize, Failure> {
        if plaintext.is_empty() || !self.takes_early_data() {
            return Ok(0);
        }
        self.poll_output(out);
        // rustls may hold a position within the incomplete bytes, so these are what it must be shown.
        let UnbufferedStatus { discard, state } = self.connection.process_tls_records(&mut self.incomplete);
        let before = out.len();
        if let Ok(ConnectionState::TransmitTlsData(mut message)) = state
            && let Some(mut early) = message.may_encrypt_early_data()
        {
            append(out, sealed_bytes(plaintext.len()), |space| match early.encrypt(plaintext, space) {
                Ok(written) => Ok(written),
                Err(EarlyDataError::ExceededAllowedEarlyData) => Ok(0),
                Err(EarlyDataError::Encrypt(error)) => Err(encrypt_shortage(error)),
            })?;
        }
        self.incomplete.drain(..discard);
        // rustls does not report how much the ticket allowed, but the length of the records does.
        Ok(records(&out[before..]).map(|record| record.len().saturating_sub(INNER_OVERHEAD_BYTES)).sum())
    }

    /// Appends pending handshake records and alerts to `out`; returns whether there were any.
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
            return Err(write_failure("the connection accepts no plaintext now"));
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

    /// Runs rustls over `buffer`; returns the number of consumed bytes.
    fn process(&mut self, buffer: &mut [u8], sink: &mut TlsSink<'_>) -> Result<usize, Failure> {
        let mut done_bytes = 0;
        let mut put_off = false;
        loop {
            self.note_established(sink)?;
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut buffer[done_bytes..]);
            let mut waits = false;
            match state {
                // In TLS 1.2 plaintext may come right behind the message that ends the handshake: that is
                // said first.
                Ok(ConnectionState::ReadTraffic(_)) if !self.established && !put_off => put_off = true,
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(|error| failure(&error))?;
                        discard += record.discard;
                        sink(TlsEvent::Plaintext(record.payload))?;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    let before = self.output.len();
                    append(&mut self.output, 0, |space| message.encode(space).map_err(encode_shortage))?;
                    if self.early_data == EarlyData::Rejected
                        && records(&self.output[before..])
                            .any(|record| record.len() == END_OF_EARLY_DATA_BYTES + INNER_OVERHEAD_BYTES)
                    {
                        self.early_data = EarlyData::Accepted;
                    }
                }
                Ok(ConnectionState::TransmitTlsData(mut message)) => {
                    // While rustls takes early data it waits here; it continues when the server
                    // answers.
                    if message.may_encrypt_early_data().is_some() {
                        self.early_data = EarlyData::Rejected;
                        waits = true;
                    } else {
                        message.done();
                    }
                }
                Ok(ConnectionState::PeerClosed) => sink(TlsEvent::End)?,
                Ok(_) => waits = true,
                Err(error) => {
                    // rustls keeps positions within these bytes, so what is left of them is what it must be
                    // shown.
                    self.fetch_alert(&mut buffer[done_bytes + discard..]);
                    return Err(failure(&error));
                }
            }
            done_bytes += discard;
            if waits {
                // In TLS 1.2 the server's last message ends the handshake: there is nothing left to send.
                self.note_established(sink)?;
                return Ok(done_bytes);
            }
        }
    }

    /// Reports once that the handshake is done.
    fn note_established(&mut self, sink: &mut TlsSink<'_>) -> Result<(), Failure> {
        if self.established || self.connection.is_handshaking() {
            return Ok(());
        }
        self.established = true;
        sink(TlsEvent::Established(self.facts()))
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
                    return Err(write_failure("the connection accepts no plaintext now"));
                }
                Err(error) => return Err(failure(&error)),
            }
            self.incomplete.drain(..discard);
        }
    }

    /// Fetches the alert that rustls queued with an error. Nothing else is queued then, because what is
    /// queued comes before the next record; and asking again would read on where reading failed.
    fn fetch_alert(&mut self, rest: &mut [u8]) {
        self.ended = true;
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = self.connection.process_tls_records(rest).state
        {
            // Without an alert, the end of TCP follows.
            let _ = append(&mut self.output, 0, |space| alert.encode(space).map_err(encode_shortage));
        }
    }

    fn check_limit(&self) -> Result<(), Failure> {
        let found = self.incomplete.len();
        if found <= INCOMPLETE_LIMIT_BYTES {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Limit,
            format!("{found} bytes of incomplete TLS messages, limit {INCOMPLETE_LIMIT_BYTES}"),
        ))
    }

    fn facts(&self) -> Handshake {
        let connection = &self.connection;
        Handshake {
            alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            tls_version: connection.protocol_version().map(|version| format!("{version:?}")),
            cipher_suite: connection.negotiated_cipher_suite().map(|suite| registered_suite(suite.suite())),
            key_exchange: connection
                .negotiated_key_exchange_group()
                .map(|group| registered_group(group.name())),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            early_data: self.early_data,
        }
    }
}

/// The number of bytes up to the end of the first record; all bytes if it is already complete.
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

/// The encrypted records in `bytes`, without their headers.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const APPLICATION_DATA: u8 = 23;
    std::iter::from_fn(move || {
        while let Some((&[kind, _, _, high, low], rest)) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>() {
            let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
            let (record, rest) = rest.split_at(length);
            bytes = rest;
            if kind == APPLICATION_DATA {
                return Some(record);
            }
        }
        None
    })
}

/// An upper bound of what `plaintext_bytes` take when sealed, a key update included.
fn sealed_bytes(plaintext_bytes: usize) -> usize {
    plaintext_bytes + (plaintext_bytes / RECORD_BYTES + 2) * RECORD_OVERHEAD_BYTES
}

/// Why a write into limited space failed.
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

/// Lets `write` fill space at the end of `out`: first `guess_bytes`, then as many as it requests.
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
            Err(Shortage::Space(_)) => return Err(write_failure("rustls requests less space than it has")),
            Err(Shortage::Other(reason)) => return Err(write_failure(&reason)),
        }
    }
}

fn write_failure(reason: &str) -> Failure {
    Failure::new(FailureKind::Tls, format!("cannot create a TLS record: {reason}"))
}

/// The failure for an error of rustls.
fn failure(error: &rustls::Error) -> Failure {
    let kind = match error {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | rustls::Error::NoApplicationProtocol => FailureKind::WrongVersion,
        _ => FailureKind::Tls,
    };
    Failure { kind, reason: format!("TLS: {error}") }
}

/// The suite's name in the registry: rustls marks those of TLS 1.3 with `TLS13_`.
pub(crate) fn registered_suite(suite: CipherSuite) -> String {
    format!("{suite:?}").replacen("TLS13_", "TLS_", 1)
}

/// The group's name in the registry.
pub(crate) fn registered_group(group: NamedGroup) -> String {
    format!("{group:?}").to_ascii_lowercase()
}
