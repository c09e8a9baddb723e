//! One request over any variant, with clients that are not ours: hyper, h2, h3.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use model::Variant;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub(crate) struct Reply {
    pub status: StatusCode,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Where an origin listens and whom to trust.
#[derive(Clone)]
pub(crate) struct Target {
    pub variant: Variant,
    pub address: SocketAddr,
    pub roots: Arc<rustls::RootCertStore>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Target {
    pub(crate) fn tls(&self, alpn: &[u8]) -> rustls::ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        config
    }

    async fn stream(&self) -> Box<dyn Stream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let Some(alpn) = self.variant.alpn() else { return Box::new(stream) };
        let connector = tokio_rustls::TlsConnector::from(Arc::new(self.tls(alpn)));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn));
        Box::new(stream)
    }

    /// All requests on one connection, one after another.
    pub(crate) async fn fetch_all(&self, requests: Vec<Request<Bytes>>) -> Vec<Reply> {
        match self.variant {
            Variant::H1 | Variant::H1s => self.over_http1(requests).await,
            Variant::H2c | Variant::H2 => self.over_http2(requests).await,
            Variant::H3 => self.over_http3(requests).await,
        }
    }

    pub(crate) async fn fetch(&self, request: Request<Bytes>) -> Reply {
        self.fetch_all(vec![request]).await.remove(0)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.fetch(self.request("GET", path)).await
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request<Bytes> {
        let scheme = self.variant.scheme();
        let uri = format!("{scheme}://localhost{path}");
        Request::builder().method(method).uri(uri).body(Bytes::new()).unwrap()
    }

    async fn over_http1(&self, requests: Vec<Request<Bytes>>) -> Vec<Reply> {
        let io = TokioIo::new(self.stream().await);
        let (mut send, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut replies = Vec::new();
        for request in requests {
            let (mut parts, body) = request.into_parts();
            parts.headers.insert("host", "localhost".parse().unwrap());
            parts.uri = parts.uri.path_and_query().unwrap().as_str().parse().unwrap();
            let response = send.send_request(Request::from_parts(parts, Full::new(body))).await.unwrap();
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes().to_vec();
            replies.push(Reply { status: head.status, fields: head.headers, body });
        }
        replies
    }

    async fn over_http2(&self, requests: Vec<Request<Bytes>>) -> Vec<Reply> {
        let (mut send, connection) = h2::client::handshake(self.stream().await).await.unwrap();
        tokio::spawn(connection);
        let mut replies = Vec::new();
        for request in requests {
            let (parts, body) = request.into_parts();
            let head = Request::from_parts(parts, ());
            let (response, mut stream) = send.send_request(head, body.is_empty()).unwrap();
            if !body.is_empty() {
                stream.send_data(body, true).unwrap();
            }
            let (head, mut incoming) = response.await.unwrap().into_parts();
            let mut body = Vec::new();
            while let Some(data) = incoming.data().await {
                let data = data.unwrap();
                incoming.flow_control().release_capacity(data.len()).unwrap();
                body.extend_from_slice(&data);
            }
            replies.push(Reply { status: head.status, fields: head.headers, body });
        }
        replies
    }

    async fn over_http3(&self, requests: Vec<Request<Bytes>>) -> Vec<Reply> {
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(self.tls(b"h3")).unwrap();
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
        let quic = endpoint.connect(self.address, "localhost").unwrap().await.unwrap();
        // Without grease, which would be one more stream for the server to stop.
        let (mut driver, mut send) = h3::client::builder()
            .send_grease(false)
            .build::<_, _, Bytes>(h3_quinn::Connection::new(quic.clone()))
            .await
            .unwrap();
        let driving = tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
        let mut replies = Vec::new();
        for request in requests {
            let (parts, body) = request.into_parts();
            let mut stream = send.send_request(Request::from_parts(parts, ())).await.unwrap();
            if !body.is_empty() {
                stream.send_data(body).await.unwrap();
            }
            stream.finish().await.unwrap();
            let head = stream.recv_response().await.unwrap();
            let mut body = Vec::new();
            while let Some(mut data) = stream.recv_data().await.unwrap() {
                body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
            replies.push(Reply { status: head.status(), fields: head.headers().clone(), body });
        }
        drop(send);
        driving.abort();
        // A request without a body has ended when it arrives: nothing is left to stop.
        assert_eq!(quic.stats().frame_rx.stop_sending, 0);
        quic.close(0x100_u32.into(), b"");
        endpoint.wait_idle().await;
        replies
    }
}
