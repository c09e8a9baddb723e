//! Listening sockets and their accept loops.

use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use model::buffers::{Buffer, UDP_BUFFER_BYTES};
use model::{Shortfall, Variant};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::activity::{Activity, ActivityStream};
use crate::shared::{Link, Slots};
use crate::{Config, http1, http2, http3, tls};

const BACKLOG: i32 = 4_096;
/// Pause after an accept(2) that failed because descriptors or memory ran out.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Connections accepted in a row before others are served.
const ACCEPTS_AT_ONCE: u32 = 1_024;

/// One listening socket.
pub(crate) enum Listener {
    Tcp { variant: Variant, listener: TcpListener, tls: Option<TlsAcceptor> },
    Quic { endpoint: quinn::Endpoint, shortfalls: Vec<Shortfall> },
}

impl Listener {
    /// Binds a socket; call it inside the runtime.
    pub(crate) fn bind(config: &Config, variant: Variant, address: SocketAddr) -> anyhow::Result<Self> {
        let identity = || config.identity.as_ref().context("an encrypted variant requires a certificate");
        let cannot = || format!("cannot listen at {address} for {variant}: choose another address or port 0");
        if variant.is_quic() {
            let crypto = tls::quic_config(identity()?, &config.pins, config.early_data)?;
            let mut server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
            server.transport_config(Arc::new(http3::transport(config)?));
            let mut endpoint = quinn::EndpointConfig::default();
            endpoint.max_udp_payload_size(config.pins.quic_datagram_bytes.max(1_472))?;
            let (socket, shortfalls) = udp_socket(address).with_context(cannot)?;
            let runtime = Arc::new(quinn::TokioRuntime);
            let endpoint =
                quinn::Endpoint::new(endpoint, Some(server), socket, runtime).with_context(cannot)?;
            return Ok(Listener::Quic { endpoint, shortfalls });
        }
        let tls = if variant.is_encrypted() {
            Some(TlsAcceptor::from(Arc::new(tls::server_config(variant, identity()?, &config.pins)?)))
        } else {
            None
        };
        let socket = tcp_socket(address).with_context(cannot)?;
        if config.pin_tcp_congestion_control {
            let name = config.pins.congestion_control.name();
            // Accepted connections inherit it.
            socket.set_tcp_congestion(name.as_bytes()).with_context(|| {
                format!("cannot set TCP's congestion control to `{name}`: load the kernel module tcp_{name}")
            })?;
        }
        let listener = TcpListener::from_std(socket.into()).with_context(cannot)?;
        Ok(Listener::Tcp { variant, listener, tls })
    }

    pub(crate) fn address(&self) -> anyhow::Result<(Variant, SocketAddr)> {
        Ok(match self {
            Listener::Tcp { variant, listener, .. } => (*variant, listener.local_addr()?),
            Listener::Quic { endpoint, .. } => (Variant::H3, endpoint.local_addr()?),
        })
    }

    /// Socket buffers that are smaller than requested.
    pub(crate) fn shortfalls(&self) -> &[Shortfall] {
        match self {
            Listener::Tcp { .. } => &[],
            Listener::Quic { shortfalls, .. } => shortfalls,
        }
    }

    /// Accepts connections until the origin closes.
    pub(crate) async fn accept(self, link: Link) {
        match self {
            // The usual budget of a task is 128 accepts, and all accepted connections are served before the
            // next 128: a thousand that arrive together would be accepted over seconds, while the first are
            // served again and again.
            Listener::Tcp { listener, tls, .. } => {
                tokio::task::unconstrained(accept_tcp(&listener, tls.as_ref(), &link)).await;
            }
            Listener::Quic { endpoint, .. } => accept_quic(&endpoint, &link).await,
        }
    }
}

async fn accept_tcp(listener: &TcpListener, tls: Option<&TlsAcceptor>, link: &Link) {
    let mut closing = pin!(link.closing());
    for accepted_in_row in (0..ACCEPTS_AT_ONCE).cycle().skip(1) {
        if accepted_in_row == 0 {
            tokio::task::yield_now().await;
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut closing => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(link) = link.connect(peer.port()) {
                    tokio::spawn(serve_tcp(stream, tls.cloned(), link));
                }
            }
            Err(error) => {
                link.server.count_accept_failure();
                // An aborted connection is gone. Any other error is a temporary shortage (accept(2)).
                if error.kind() != std::io::ErrorKind::ConnectionAborted {
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }
}

async fn accept_quic(endpoint: &quinn::Endpoint, link: &Link) {
    let handshakes = Slots::default();
    let mut closing = pin!(link.closing());
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            () = &mut closing => break,
        };
        let Some(incoming) = incoming else { return };
        if handshakes.taken() >= link.server.config.quic_handshakes && !incoming.remote_address_validated() {
            link.server.count_retry();
            // A client whose address is not validated may always be asked to retry.
            let _ = incoming.retry();
            continue;
        }
        match link.connect(incoming.remote_address().port()) {
            Some(link) => {
                let handshake = handshakes.take();
                tokio::spawn(async move {
                    let ended = http3::connection(incoming, link.clone(), handshake).await;
                    link.end(&ended);
                });
            }
            None => incoming.refuse(),
        }
    }
    // Open connections continue; the endpoint lives as long as they do.
    endpoint.set_server_config(None);
}

async fn serve_tcp(stream: TcpStream, tls: Option<TlsAcceptor>, link: Link) {
    let ended = serve_stream(stream, tls, link.clone()).await;
    link.end(&ended);
}

async fn serve_stream(stream: TcpStream, tls: Option<TlsAcceptor>, link: Link) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let activity = Activity::new();
    let stream = ActivityStream::new(stream, Arc::clone(&activity));
    let variant = link.variant;
    let Some(tls) = tls else {
        return if variant == Variant::H2c {
            http2::connection(stream, link, activity).await
        } else {
            http1::connection(stream, link, activity).await
        };
    };
    let stream = tokio::time::timeout(link.server.config.head_timeout, tls.accept(stream))
        .await
        .context("the TLS handshake was not complete in time")??;
    // The bytes read so far belong to the TLS handshake: the first request has not begun.
    activity.end_request();
    if variant == Variant::H1s {
        return http1::connection(stream, link, activity).await;
    }
    // RFC 9113, section 3.2: HTTP/2 over TLS requires ALPN.
    anyhow::ensure!(
        stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        "the client did not negotiate h2 by ALPN"
    );
    http2::connection(stream, link, activity).await
}

fn tcp_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// A socket, and its buffers that are smaller than requested.
fn udp_socket(address: SocketAddr) -> std::io::Result<(UdpSocket, Vec<Shortfall>)> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // The system caps the size without an error.
    socket.set_recv_buffer_size(UDP_BUFFER_BYTES as usize)?;
    socket.set_send_buffer_size(UDP_BUFFER_BYTES as usize)?;
    let read = [(Buffer::Receive, socket.recv_buffer_size()?), (Buffer::Send, socket.send_buffer_size()?)];
    let shortfalls = read
        .into_iter()
        .filter_map(|(buffer, bytes)| Shortfall::of(buffer, UDP_BUFFER_BYTES.into(), bytes as u64))
        .collect();
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok((socket.into(), shortfalls))
}
