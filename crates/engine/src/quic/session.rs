//! A TLS session that watches its own handshake: quinn-proto does not tell whether a session was resumed.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::rustls::{HandshakeData, QuicClientConfig};
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// quinn-proto's TLS configuration, whose sessions are watched.
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

/// What the handshake agreed on, behind [`Session::handshake_data`].
#[derive(Clone, Debug)]
pub(super) struct Negotiated {
    pub(super) alpn: Option<Vec<u8>>,
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
    certificate_seen: bool,
    finished_seen: bool,
}

const HEADER_BYTES: usize = 4;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;

impl Messages {
    fn take(&mut self, mut bytes: &[u8]) {
        while !self.finished_seen {
            let body = self.body_left.min(bytes.len());
            self.body_left -= body;
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
                self.finished_seen = kind == FINISHED;
            }
        }
    }

    /// A server proves itself by a certificate or by knowing the ticket's key, never by both (RFC 8446,
    /// section 4.4.2; a client asks for nothing else here).
    fn resumed(&self) -> bool {
        self.finished_seen && !self.certificate_seen
    }
}

impl Session for WatchedSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let data = self.inner.handshake_data()?.downcast::<HandshakeData>().ok()?;
        Some(Box::new(Negotiated { alpn: data.protocol, resumed: self.server.resumed() }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.server.take(buf);
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.inner.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
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
}
