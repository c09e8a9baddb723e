//! A TLS session that observes its handshake: quinn-proto does not report the cipher suite and group, nor
//! whether a session was resumed.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::rustls::{HandshakeData, QuicClientConfig};
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use rustls::{CipherSuite, NamedGroup};

use crate::tls::{registered_group, registered_suite};

/// quinn-proto's TLS configuration with observed sessions.
pub(super) struct WatchedConfig(pub(super) Arc<QuicClientConfig>);

impl ClientConfig for WatchedConfig {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.0).start_session(version, server_name, params)?;
        Ok(Box::new(WatchedSession { inner, server: Messages::default() }))
    }
}

/// The result of the handshake, as [`Session::handshake_data`] returns it.
#[derive(Clone, Debug)]
pub(super) struct Negotiated {
    pub(super) alpn: Option<Vec<u8>>,
    /// As registered.
    pub(super) cipher_suite: Option<String>,
    /// As registered.
    pub(super) key_exchange: Option<String>,
    pub(super) resumed: bool,
}

struct WatchedSession {
    inner: Box<dyn Session>,
    server: Messages,
}

/// The server's handshake messages, by their headers (RFC 8446, section 4).
#[derive(Debug, Default)]
struct Messages {
    header: [u8; HEADER_BYTES],
    header_length: usize,
    body_left: usize,
    /// The body of the last ServerHello; any HelloRetryRequest comes before it.
    server_hello: Vec<u8>,
    certificate_seen: bool,
    finished_seen: bool,
}

const HEADER_BYTES: usize = 4;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;
/// A ServerHello has three extensions here, the longest a key share of about 100 bytes; beyond this it is cut
/// off.
const SERVER_HELLO_LIMIT_BYTES: usize = 512;
const KEY_SHARE: u16 = 51;

impl Messages {
    fn take(&mut self, mut bytes: &[u8]) {
        while !self.finished_seen {
            let body = self.body_left.min(bytes.len());
            self.body_left -= body;
            if self.header[0] == SERVER_HELLO {
                let room = SERVER_HELLO_LIMIT_BYTES.saturating_sub(self.server_hello.len());
                self.server_hello.extend_from_slice(&bytes[..body.min(room)]);
            }
            bytes = &bytes[body..];
            let Some((byte, rest)) = bytes.split_first() else { return };
            self.header[self.header_length] = *byte;
            self.header_length += 1;
            bytes = rest;
            if self.header_length == HEADER_BYTES {
                let [kind, high, middle, low] = self.header;
                self.header_length = 0;
                self.body_left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.certificate_seen |= kind == CERTIFICATE;
                if kind == SERVER_HELLO {
                    self.server_hello.clear();
                }
                self.finished_seen = kind == FINISHED;
            }
        }
    }

    /// A server proves itself by a certificate or by knowing the ticket's key, never by both (RFC 8446,
    /// section 4.4.2; a client asks for nothing else here).
    fn resumed(&self) -> bool {
        self.finished_seen && !self.certificate_seen
    }

    /// Cipher suite and group of the ServerHello (RFC 8446, section 4.1.3), as far as it was received.
    fn agreed(&self) -> (Option<u16>, Option<u16>) {
        let mut rest = Reader(&self.server_hello);
        let suite = rest.skip(2 + 32).and_then(|()| rest.vector8()).and_then(|_| rest.number());
        let _ = suite.and_then(|_| rest.skip(1 + 2));
        let mut group = None;
        while let (Some(kind), Some(length)) = (rest.number(), rest.number()) {
            let Some(body) = rest.bytes(usize::from(length)) else { break };
            if kind == KEY_SHARE {
                group = Reader(body).number();
            }
        }
        (suite, group)
    }
}

/// Reads big-endian numbers from a slice that may end too early.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.bytes(length).map(|_| ())
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = *self.bytes(1)?.first()?;
        self.bytes(usize::from(length))
    }

    fn number(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*bytes))
    }
}

/// A method that calls the same method of the watched session.
macro_rules! forward {
    (fn $name:ident($self:ident: $receiver:ty $(, $argument:ident: $type:ty)*) -> $result:ty) => {
        fn $name($self: $receiver $(, $argument: $type)*) -> $result {
            $self.inner.$name($($argument),*)
        }
    };
}

impl Session for WatchedSession {
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let data = self.inner.handshake_data()?.downcast::<HandshakeData>().ok()?;
        let (suite, group) = self.server.agreed();
        Some(Box::new(Negotiated {
            alpn: data.protocol,
            cipher_suite: suite.map(|suite| registered_suite(CipherSuite::from(suite))),
            key_exchange: group.map(|group| registered_group(NamedGroup::from(group))),
            resumed: self.server.resumed(),
        }))
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.server.take(buf);
        self.inner.read_handshake(buf)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }

    forward!(fn initial_keys(self: &Self, dst_cid: &ConnectionId, side: Side) -> Keys);
    forward!(fn peer_identity(self: &Self) -> Option<Box<dyn Any>>);
    forward!(fn early_crypto(self: &Self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)>);
    forward!(fn early_data_accepted(self: &Self) -> Option<bool>);
    forward!(fn is_handshaking(self: &Self) -> bool);
    forward!(fn transport_parameters(self: &Self) -> Result<Option<TransportParameters>, TransportError>);
    forward!(fn write_handshake(self: &mut Self, buf: &mut Vec<u8>) -> Option<Keys>);
    forward!(fn next_1rtt_keys(self: &mut Self) -> Option<KeyPair<Box<dyn PacketKey>>>);
    forward!(fn is_valid_retry(self: &Self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(messages: &[u8], piece: usize) -> Messages {
        let mut seen = Messages::default();
        messages.chunks(piece).for_each(|piece| seen.take(piece));
        seen
    }

    #[test]
    fn a_handshake_without_certificate_is_resumed_however_it_is_cut() {
        let server_hello = [2, 0, 0, 3, CERTIFICATE, CERTIFICATE, CERTIFICATE];
        let certificate = [CERTIFICATE, 0, 0, 1, 0];
        let finished = [FINISHED, 0, 0, 2, 0, 0];
        for piece in 1..20 {
            assert!(seen(&[&server_hello[..], &finished].concat(), piece).resumed());
            assert!(!seen(&[&server_hello[..], &certificate, &finished].concat(), piece).resumed());
            assert!(!seen(&server_hello, piece).resumed(), "not before it is done");
        }
    }

    /// A ServerHello with a session id of three bytes, `suite`, and a key share for `group` behind another
    /// extension.
    fn server_hello(suite: u16, group: u16, share: &[u8]) -> Vec<u8> {
        let mut body = [&[3, 3][..], &[7; 32], &[3, 1, 2, 3], &suite.to_be_bytes(), &[0]].concat();
        let share = [&group.to_be_bytes()[..], share].concat();
        let extensions =
            [&[0, 43, 0, 2, 3, 4, 0, 51, 0, u8::try_from(share.len()).unwrap()][..], &share].concat();
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        [&[SERVER_HELLO, 0, 0, u8::try_from(body.len()).unwrap()][..], &body].concat()
    }

    #[test]
    fn the_server_hello_tells_suite_and_group() {
        let retry = server_hello(0x1301, 23, &[]);
        let hello = server_hello(0x1302, 24, &[0, 4, 1, 2, 3, 4]);
        for piece in 1..100 {
            let both = seen(&[&retry[..], &hello].concat(), piece);
            assert_eq!(both.agreed(), (Some(0x1302), Some(24)), "the last one counts");
            assert_eq!(seen(&retry, piece).agreed(), (Some(0x1301), Some(23)));
        }
        for length in 0..hello.len() {
            let (suite, group) = seen(&hello[..length], usize::MAX).agreed();
            assert!(suite.is_none_or(|suite| suite == 0x1302) && group.is_none(), "cut at {length}");
        }
        assert_eq!(registered_suite(CipherSuite::from(0x1302)), "TLS_AES_256_GCM_SHA384");
        assert_eq!(registered_group(NamedGroup::from(24)), "secp384r1");
        let endless = [&[SERVER_HELLO, 1, 0, 0][..], &vec![0; 1 << 16]].concat();
        assert_eq!(seen(&endless, 1000).server_hello.len(), SERVER_HELLO_LIMIT_BYTES);
    }
}
