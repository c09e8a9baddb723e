//! Whether a server answers a handshake on the variant that will be measured.
//!
//! A listening port proves little: the kernel accepts TCP connections and keeps datagrams for a program that
//! still loads. The first client would then pay for the rest of the server's start.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use model::Variant;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Far longer than a connection within one host takes.
const CONNECT_LIMIT: Duration = Duration::from_millis(250);
/// How long one attempt over TCP waits for an answer. The next attempt opens another connection, which the
/// server has to handle too, so attempts are rare.
const TCP_ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long one attempt over QUIC waits: a lost or unread datagram is repeated cheaply.
const QUIC_ANSWER_LIMIT: Duration = Duration::from_millis(50);

/// The client's preface and an empty SETTINGS frame (RFC 9113, section 3.4). The server sends its SETTINGS
/// first thing.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A version that is reserved to force version negotiation (RFC 9000, section 15).
const RESERVED_VERSION: u32 = 0x1a2a_3a4a;
/// The smallest datagram that a server has to take for a new connection (RFC 9000, section 14.1).
const INITIAL_BYTES: usize = 1200;
/// A connection ID of the least length that a server has to accept (RFC 9000, section 7.2), behind its
/// length.
const CONNECTION_ID: &[u8; 9] = b"\x08h123wait";

/// The endpoint of a starting server, and what a client needs for a handshake with it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    address: IpAddr,
    server_name: String,
    tls: Arc<ClientConfig>,
}

impl Endpoint {
    /// An endpoint whose certificate names `server_name` and is signed by an authority of `authority_pem`.
    ///
    /// # Errors
    /// The PEM text contains no valid certificate.
    pub(crate) fn new(address: IpAddr, server_name: &str, authority_pem: &str) -> anyhow::Result<Endpoint> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority_pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Endpoint { address, server_name: server_name.to_owned(), tls: Arc::new(config) })
    }

    /// Whether the server answers on a port, in the calling thread's network namespace: over QUIC with a
    /// Version Negotiation packet, over TLS with its handshake, over HTTP/2 in cleartext with its SETTINGS,
    /// and over HTTP/1.1 in cleartext, which has no handshake, with any response to `OPTIONS *`.
    ///
    /// An answer that refuses counts too: the server runs, and the client will report the reason.
    pub(crate) fn answers(&self, variant: Variant, port: u16) -> bool {
        let remote = SocketAddr::new(self.address, port);
        let attempt = match variant {
            Variant::H3 => negotiates_version(remote),
            Variant::H1s | Variant::H2 => self.answers_tls(remote),
            Variant::H2c => answers_bytes(remote, HTTP2_PREFACE),
            Variant::H1 => {
                let name = &self.server_name;
                let request =
                    format!("OPTIONS * HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n");
                answers_bytes(remote, request.as_bytes())
            }
        };
        attempt.unwrap_or(false)
    }

    fn answers_tls(&self, remote: SocketAddr) -> io::Result<bool> {
        let mut config = ClientConfig::clone(&self.tls);
        // HTTP/1.1 for both variants, because some servers log an HTTP/2 connection without a request as one.
        // A server that refuses it answers with an alert.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(self.server_name.clone()).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = connect(remote)?;
        while connection.is_handshaking() {
            match connection.complete_io(&mut stream) {
                Ok(_) => {}
                // An alert, or a certificate that does not verify: the server answered.
                Err(error) if error.kind() == ErrorKind::InvalidData => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        connection.send_close_notify();
        // The server may have closed the connection already.
        let _ = connection.complete_io(&mut stream);
        Ok(true)
    }
}

fn connect(remote: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&remote, CONNECT_LIMIT)?;
    stream.set_read_timeout(Some(TCP_ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(TCP_ANSWER_LIMIT))?;
    Ok(stream)
}

/// Whether the server sends anything after these bytes.
fn answers_bytes(remote: SocketAddr, bytes: &[u8]) -> io::Result<bool> {
    let mut stream = connect(remote)?;
    stream.write_all(bytes)?;
    Ok(stream.read(&mut [0; 256])? > 0)
}

/// Whether the server answers a packet of an unknown version with a Version Negotiation packet (RFC 9000,
/// section 6.1). It needs no state on the server, so no half-open connection remains.
fn negotiates_version(remote: SocketAddr) -> io::Result<bool> {
    let socket = UdpSocket::bind((if remote.is_ipv4() { "0.0.0.0" } else { "::" }, 0))?;
    // A connected socket reports a port that nobody has bound at once (ICMP).
    socket.connect(remote)?;
    socket.set_read_timeout(Some(QUIC_ANSWER_LIMIT))?;
    socket.send(&unknown_version())?;
    let mut answer = [0; INITIAL_BYTES];
    let length = socket.recv(&mut answer)?;
    Ok(is_version_negotiation(&answer[..length]))
}

/// A packet with a long header, as long as a client's first datagram (RFC 8999, section 5.1).
fn unknown_version() -> Vec<u8> {
    let mut packet = vec![0xc0];
    packet.extend(RESERVED_VERSION.to_be_bytes());
    // The destination's and the source's.
    packet.extend(CONNECTION_ID);
    packet.extend(CONNECTION_ID);
    packet.resize(INITIAL_BYTES, 0);
    packet
}

/// A long header with version 0 (RFC 8999, section 6).
fn is_version_negotiation(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first & 0x80 != 0) && packet.get(1..5) == Some(&[0; 4])
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn endpoint() -> Endpoint {
        let authority = crate::Authority::new().unwrap().issue(&["server.h123.test"], &[]).unwrap();
        Endpoint::new(LOCALHOST, "server.h123.test", &authority.authority_pem).unwrap()
    }

    #[test]
    fn a_port_alone_is_no_answer() {
        let tcp = TcpListener::bind((LOCALHOST, 0)).unwrap();
        let udp = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        let (tcp, udp) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        for variant in Variant::ALL {
            let port = if variant.is_quic() { udp } else { tcp };
            assert!(!endpoint().answers(variant, port), "{variant}");
        }
    }

    #[test]
    fn closed_ports_do_not_answer() {
        let port = TcpListener::bind((LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        for variant in Variant::ALL {
            assert!(!endpoint().answers(variant, port), "{variant}");
        }
    }

    #[test]
    fn version_negotiation_is_an_answer_and_other_datagrams_are_not() {
        let server = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let (send, answers) = mpsc::channel::<Vec<u8>>();
        let serving = thread::spawn(move || {
            for answer in answers {
                let mut packet = [0; 2048];
                let (length, from) = server.recv_from(&mut packet).unwrap();
                assert_eq!((length, &packet[1..5]), (INITIAL_BYTES, &[0x1a, 0x2a, 0x3a, 0x4a][..]));
                assert_eq!(&packet[5..23], b"\x08h123wait\x08h123wait");
                server.send_to(&answer, from).unwrap();
            }
        });
        send.send(b"\xc0\0\0\0\0\x08h123wait\x08h123wait\0\0\0\x01".to_vec()).unwrap();
        assert!(endpoint().answers(Variant::H3, port));
        send.send(b"hello".to_vec()).unwrap();
        assert!(!endpoint().answers(Variant::H3, port));
        drop(send);
        serving.join().unwrap();
    }

    #[test]
    fn an_alert_and_a_response_are_answers() {
        let server = TcpListener::bind((LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        // An alert "handshake failure" (RFC 8446, section 6), then a response, then SETTINGS.
        let answers: [&[u8]; 3] =
            [b"\x15\x03\x03\0\x02\x02\x28", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04\0\0\0\0\0"];
        let serving = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = server.accept().unwrap();
                assert!(stream.read(&mut [0; 2048]).unwrap() > 0);
                stream.write_all(answer).unwrap();
            }
        });
        for variant in [Variant::H2, Variant::H1, Variant::H2c] {
            assert!(endpoint().answers(variant, port), "{variant}");
        }
        serving.join().unwrap();
    }
}
