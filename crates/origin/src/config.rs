//! An origin's configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use model::media::Media;
use model::{Page, Pins, Variant};

/// The longest wait of `/delay`.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_millis(model::origin_path::LONGEST_DELAY_MS);

/// A certificate chain and its private key.
#[derive(Clone)]
pub struct Identity {
    /// The chain, the server's own certificate first, PEM.
    pub certificate_pem: Vec<u8>,
    /// The private key, PEM (PKCS #8, PKCS #1 or SEC 1).
    pub key_pem: Vec<u8>,
    /// The chains for other host names (SNI, RFC 6066, section 3) with the same key, PEM.
    pub hosts: Vec<(String, Vec<u8>)>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// How segments are cut out of archives when they are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JustInTime {
    /// Whether an index is kept after its first use. Otherwise it is read and parsed for every request.
    pub keeps_indexes: bool,
    /// The status of the answer for a segment that the index does not have, such as 404 or 503.
    pub missing_status: u16,
}

/// An origin's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen for each variant; port 0 lets the system choose.
    pub listen: Vec<(Variant, SocketAddr)>,
    /// Certificate and key; required for encrypted variants.
    pub identity: Option<Identity>,
    /// Pages whose resources are served at their own paths, prepared once.
    pub pages: Vec<Page>,
    /// Modelled media, served at its own paths without files. Live streams begin with a full window.
    pub media: Vec<Media>,
    /// A folder whose files are served at every other path.
    pub root: Option<PathBuf>,
    /// How segments are cut out of the archives below `root`; `None` if its files are served as they are.
    pub just_in_time: Option<JustInTime>,
    /// Where to write one JSON line per request.
    pub access_log: Option<PathBuf>,
    /// Worker threads; one means a single-threaded runtime.
    pub threads: usize,
    /// Congestion control, datagram size, TLS version, cipher and key exchange, as the plan pins them. A pin
    /// of TLS 1.2 does not apply to `h3`: QUIC has only TLS 1.3 (RFC 9001, section 4.2).
    pub pins: Pins,
    /// Whether HTTP/3 accepts early data (RFC 9001, section 4.6) and answers it before the handshake is
    /// complete; requires resumption among the pins.
    pub early_data: bool,
    /// The port at which responses over TLS or QUIC announce HTTP/3 (Alt-Svc, RFC 7838); none do where
    /// `None`.
    pub alternative_port: Option<u16>,
    /// Whether caches may keep the resources of pages; never their documents.
    pub is_cacheable: bool,
    /// Whether TCP listeners use the pinned congestion control instead of the system's.
    pub pin_tcp_congestion_control: bool,
    /// Flow-control window of a stream, in bytes (HTTP/2 and HTTP/3).
    pub stream_window_bytes: u32,
    /// Flow-control window of a connection, in bytes (HTTP/2 and HTTP/3).
    pub connection_window_bytes: u32,
    /// Concurrent streams per connection that HTTP/2 and HTTP/3 announce.
    pub concurrent_streams: u32,
    /// Unacknowledged data that one QUIC connection may hold, in bytes.
    pub quic_send_window_bytes: u64,
    /// Concurrent connections of each variant; further ones are refused and counted.
    pub most_connections: usize,
    /// Concurrent QUIC handshakes. Above it a client first has to prove its address (RFC 9000, section
    /// 8.1.2).
    pub quic_handshakes: usize,
    /// A TLS or QUIC handshake, an HTTP/2 preface or the head of a request must be complete within this time.
    pub head_timeout: Duration,
    /// A connection is closed if for this long nothing was read and written (HTTP/1.1), or no request began
    /// and no content was transferred (HTTP/2 and HTTP/3). It must exceed the longest `/delay`.
    pub idle_timeout: Duration,
    /// How long requests in flight may continue after the shutdown.
    pub grace: Duration,
}

impl Config {
    /// Listens at these addresses, with the default pins and limits.
    pub fn new(listen: Vec<(Variant, SocketAddr)>) -> Self {
        Config {
            listen,
            identity: None,
            pages: Vec::new(),
            media: Vec::new(),
            root: None,
            just_in_time: None,
            access_log: None,
            threads: 1,
            pins: Pins::default(),
            early_data: false,
            alternative_port: None,
            is_cacheable: false,
            pin_tcp_congestion_control: false,
            stream_window_bytes: 1 << 20,
            connection_window_bytes: 4 << 20,
            concurrent_streams: 128,
            quic_send_window_bytes: 8 << 20,
            most_connections: 16_384,
            quic_handshakes: 1_024,
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(2),
        }
    }

    /// Listens on the loopback address for these variants, on ports that the system chooses.
    pub fn loopback(variants: &[Variant]) -> Self {
        let any_port = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Config::new(variants.iter().map(|variant| (*variant, any_port)).collect())
    }

    /// Refuses what cannot work, before a socket is opened.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.listen.is_empty(), "no address to listen on; list at least one variant");
        if let Some((variant, _)) = self.listen.iter().find(|(variant, _)| variant.is_encrypted())
            && self.identity.is_none()
        {
            bail!(
                "`{variant}` is encrypted and requires a certificate; pass a certificate and a key, or list only h1 and h2c"
            );
        }
        ensure!(self.threads > 0, "0 threads cannot serve; set at least 1");
        ensure!(
            self.idle_timeout > LONGEST_DELAY,
            "the idle timeout {:?} is too short; set more than the longest /delay ({:?})",
            self.idle_timeout,
            LONGEST_DELAY
        );
        ensure!(
            (1200..=65_527).contains(&self.pins.quic_datagram_bytes),
            "{} bytes is not a size of QUIC datagrams; set 1200 to 65527",
            self.pins.quic_datagram_bytes
        );
        ensure!(
            !self.early_data || self.pins.resumption,
            "early data requires resumption: a session ticket holds its key (RFC 8446, section 2.3); pin both"
        );
        ensure!(
            self.just_in_time.is_none() || self.root.is_some(),
            "cutting segments just in time requires a folder of archives; name one as the root"
        );
        if let Some(JustInTime { missing_status, .. }) = self.just_in_time {
            let is_error = (400..600).contains(&missing_status);
            ensure!(is_error, "{missing_status} is not the status of an error; set 404 or 503");
        }
        for page in &self.pages {
            workload::content::check(page)?;
        }
        Ok(())
    }
}
