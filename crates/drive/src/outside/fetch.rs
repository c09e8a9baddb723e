//! Fetches single resources over HTTP/1.1, with limits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use model::assignment::Trust;
use model::media::ByteRange;
use model::url::Url;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use workload::formats::response::Head;

use crate::certificate::key_hash;

/// Bytes that one call reads.
const PORTION_BYTES: usize = 64 << 10;
/// How long one address of several may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Fetches resources one after the other.
pub struct Fetcher {
    tls: Arc<ClientConfig>,
    /// The time for one resource.
    limit: Duration,
    /// The longest body, before and after decoding.
    most_bytes: usize,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// The media type in lower case, without parameters; empty without one.
    pub media_type: String,
    /// Where it redirects to, if it does.
    pub location: Option<String>,
    /// The values of `alt-svc` (RFC 7838).
    pub alternatives: Vec<String>,
    /// The body, decoded.
    pub body: Vec<u8>,
    /// The length of the body as it was sent.
    pub sent_bytes: u64,
    /// Whether the limit cut it off.
    pub is_cut: bool,
    /// The hash of the server's key, as of [`crate::Authority::key_hash`]; `None` without TLS.
    pub key_hash: Option<String>,
}

/// Why a resource could not be fetched: what was attempted, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

impl Fetcher {
    /// A fetcher that trusts these servers, with these limits.
    ///
    /// # Errors
    /// A certificate of an authority cannot be read.
    pub fn new(trust: &Trust, limit: Duration, most_bytes: usize) -> anyhow::Result<Fetcher> {
        Ok(Fetcher { tls: Arc::new(load::tls_config(trust, b"http/1.1")?), limit, most_bytes })
    }

    /// The addresses of a host, at least one.
    ///
    /// # Errors
    /// The name does not resolve.
    pub fn look_up(url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let name = &url.host;
        let fault = |reason: &dyn std::fmt::Display| FetchError(format!("looking up `{name}`: {reason}"));
        let found = (name.as_str(), url.port).to_socket_addrs().map_err(|error| fault(&error))?;
        let found: Vec<SocketAddr> = found.collect();
        if found.is_empty() { Err(fault(&"it has no address")) } else { Ok(found) }
    }

    /// Connects to the first address of a host that answers over TCP.
    ///
    /// # Errors
    /// The name does not resolve, or no address answers.
    pub fn find(&self, url: &Url) -> Result<SocketAddr, FetchError> {
        let mut last = FetchError(format!("looking up `{}`: it has no address", url.host));
        for address in Fetcher::look_up(url)? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT.min(self.limit)) {
                Ok(_) => return Ok(address),
                Err(error) => last = FetchError(format!("connecting to {address}: {error}")),
            }
        }
        Err(last)
    }

    /// Fetches a URL from an address. Bodies may be compressed with gzip.
    ///
    /// # Errors
    /// No connection, a certificate that is not trusted, no HTTP/1.1, or no complete head in time.
    pub fn fetch(&self, url: &Url, address: SocketAddr) -> Result<Fetched, FetchError> {
        self.fetch_range(url, address, None)
    }

    /// Fetches a range of a resource, or all of it. A server may answer with more than the range.
    ///
    /// # Errors
    /// As [`Fetcher::fetch`].
    pub fn fetch_range(
        &self,
        url: &Url,
        address: SocketAddr,
        range: Option<ByteRange>,
    ) -> Result<Fetched, FetchError> {
        let until = Instant::now() + self.limit;
        let connecting = |error: io::Error| FetchError(format!("connecting to {address}: {error}"));
        let socket = TcpStream::connect_timeout(&address, self.limit).map_err(connecting)?;
        let socket = Timed { socket, until };
        if !url.encrypted {
            return self.exchange(url, range, socket);
        }
        let name = ServerName::try_from(url.host.clone())
            .map_err(|_| FetchError(format!("`{}` is not the name of a server with TLS", url.host)))?;
        let connection = ClientConnection::new(Arc::clone(&self.tls), name)
            .map_err(|error| FetchError(format!("TLS: {error}")))?;
        let mut stream = StreamOwned::new(connection, socket);
        let fetched = self.exchange(url, range, &mut stream)?;
        Ok(Fetched { key_hash: key_hash_of(&stream.conn), ..fetched })
    }

    fn exchange(
        &self,
        url: &Url,
        range: Option<ByteRange>,
        mut stream: impl Read + Write,
    ) -> Result<Fetched, FetchError> {
        // A range of a compressed body would not be a range of the resource.
        let fields = match range {
            Some(range) => format!("range: {range}"),
            None => "accept-encoding: gzip".to_owned(),
        };
        let request = format!(
            "GET {} HTTP/1.1\r\nhost: {}\r\nuser-agent: h123/{}\r\naccept: */*\r\n{fields}\r\nconnection: close\r\n\r\n",
            url.path,
            url.authority,
            env!("CARGO_PKG_VERSION")
        );
        let fault = |error: io::Error| FetchError(reason(&error));
        stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(fault)?;
        let (mut bytes, mut head) = (Vec::new(), None);
        let mut portion = vec![0; PORTION_BYTES];
        let mut is_ended = false;
        loop {
            let found = match &head {
                Some(found) => found,
                None => match Head::parse(&bytes).map_err(FetchError)? {
                    Some(found) => &*head.insert(found),
                    None if is_ended => {
                        return Err(FetchError("the connection ended before a response".to_owned()));
                    }
                    None => {
                        is_ended = read(&mut stream, &mut portion, &mut bytes).map_err(fault)? == 0;
                        continue;
                    }
                },
            };
            let is_long = bytes.len() - found.bytes > self.most_bytes;
            let is_whole = found.is_whole(&bytes[found.bytes..]).map_err(FetchError)?;
            if is_whole || is_ended || is_long {
                return self.finish(found, &bytes[found.bytes..], is_whole || is_ended);
            }
            match read(&mut stream, &mut portion, &mut bytes) {
                Ok(length) => is_ended = length == 0,
                // What has come is still of use.
                Err(_) => return self.finish(found, &bytes[found.bytes..], false),
            }
        }
    }

    fn finish(&self, head: &Head, bytes: &[u8], is_whole: bool) -> Result<Fetched, FetchError> {
        let sent = head.body(bytes).map_err(FetchError)?;
        let sent_bytes = sent.len() as u64;
        let mut is_cut = !is_whole;
        let is_gzip = head.values("content-encoding").any(|coding| coding.eq_ignore_ascii_case("gzip"));
        let body = if is_gzip {
            let mut body = Vec::new();
            let most = self.most_bytes as u64;
            // A body that is cut off ends in an error, after what it holds.
            is_cut |= GzDecoder::new(sent.as_slice()).take(most).read_to_end(&mut body).is_err();
            is_cut |= body.len() as u64 == most;
            body
        } else {
            sent
        };
        let media_type = head.values("content-type").next().unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_redirect = (300..400).contains(&head.status);
        Ok(Fetched {
            status: head.status,
            media_type,
            location: head.values("location").next().filter(|_| is_redirect).map(str::to_owned),
            alternatives: head.values("alt-svc").map(str::to_owned).collect(),
            body,
            sent_bytes,
            is_cut,
            key_hash: None,
        })
    }
}

/// The hash of the key of the server's certificate.
fn key_hash_of(connection: &ClientConnection) -> Option<String> {
    let certificate = ParsedCertificate::try_from(connection.peer_certificates()?.first()?).ok()?;
    Some(key_hash(&certificate.subject_public_key_info()))
}

/// Adds a portion; 0 at the end. Servers may end TLS without close_notify (RFC 9112, section 9.8).
fn read(stream: &mut impl Read, portion: &mut [u8], bytes: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        match stream.read(portion) {
            Ok(length) => {
                bytes.extend_from_slice(&portion[..length]);
                return Ok(length);
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "the server did not answer in time".to_owned(),
        // rustls names the fault of the certificate.
        ErrorKind::InvalidData => format!("TLS: {error}"),
        _ => error.to_string(),
    }
}

/// A socket whose calls end at a time.
struct Timed {
    socket: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(bytes)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
