//! An ordinary HTTP/3 load client on quinn and h3: the peer of `h123 load` where Debian's tools have no
//! HTTP/3.
//!
//! One thread, one endpoint, one task per stream in flight; each answer is read to its end and its time kept.
//! It prints the same JSON as `h123 load --json`, as far as it has the numbers.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, Bytes};
use clap::Parser;
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use http::{Request, Uri};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::crypto::ring;
use rustls::{CipherSuite, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;

/// Load one https URL over HTTP/3, closed loop, and print the result as JSON
#[derive(Parser, Debug)]
struct Cli {
    url: Uri,
    /// Connections
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Requests in flight on each connection
    #[arg(short = 'm', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: u32,
    /// Stop after this many seconds
    #[arg(short, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    duration: u32,
    /// Stop after this many requests, if that comes first
    #[arg(short = 'n', default_value_t = u64::MAX)]
    requests: u64,
    /// The certificate authority to trust (PEM)
    #[arg(long, value_name = "FILE")]
    cacert: PathBuf,
}

/// What all tasks share.
#[derive(Debug)]
struct Work {
    uri: Uri,
    until: Instant,
    left: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let address = address(&cli.url)?;
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    endpoint.set_default_client_config(client_config(&cli.cacert)?);
    let began = Instant::now();
    let work = Arc::new(Work {
        uri: cli.url.clone(),
        until: began + Duration::from_secs(u64::from(cli.duration)),
        left: AtomicU64::new(cli.requests),
    });
    let connections: Vec<_> = (0..cli.connections)
        .map(|_| tokio::spawn(connection(endpoint.clone(), address, cli.streams, Arc::clone(&work))))
        .collect();
    let mut latencies_ns = Vec::new();
    for connection in connections {
        latencies_ns.append(&mut connection.await??);
    }
    let elapsed = began.elapsed();
    latencies_ns.sort_unstable();
    let quantile = |per_cent: usize| latencies_ns.get(latencies_ns.len() * per_cent / 100);
    let per_second = latencies_ns.len() as f64 / elapsed.as_secs_f64();
    println!(
        "{}",
        json!({
            "requests": { "completed": latencies_ns.len(), "failed": 0, "per_second": per_second },
            "latency_ns": { "p50": quantile(50), "p99": quantile(99) },
        })
    );
    endpoint.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// One connection: its driver and its streams; the latencies of all its requests.
async fn connection(
    endpoint: Endpoint,
    address: SocketAddr,
    streams: u32,
    work: Arc<Work>,
) -> Result<Vec<u64>> {
    let host = work.uri.host().context("the URL has no host")?;
    let quic =
        endpoint.connect(address, host)?.await.with_context(|| format!("cannot connect to {address}"))?;
    let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(quic)).await?;
    let driver = tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
    let tasks: Vec<_> =
        (0..streams).map(|_| tokio::spawn(stream(sender.clone(), Arc::clone(&work)))).collect();
    drop(sender);
    let mut latencies_ns = Vec::new();
    for task in tasks {
        latencies_ns.append(&mut task.await??);
    }
    let ended = driver.await?;
    ensure!(ended.is_h3_no_error(), "the connection ended with {ended}");
    Ok(latencies_ns)
}

/// One request after another.
async fn stream(mut sender: SendRequest<OpenStreams, Bytes>, work: Arc<Work>) -> Result<Vec<u64>> {
    let mut latencies_ns = Vec::new();
    loop {
        let begun = Instant::now();
        let take = |left: u64| left.checked_sub(1);
        if begun >= work.until || work.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err()
        {
            return Ok(latencies_ns);
        }
        let request = Request::get(work.uri.clone()).body(())?;
        let mut exchange = sender.send_request(request).await?;
        exchange.finish().await?;
        let response = exchange.recv_response().await?;
        ensure!(response.status().is_success(), "the response has status {}, not 2xx", response.status());
        let mut bytes = 0;
        while let Some(chunk) = exchange.recv_data().await? {
            bytes += chunk.remaining();
        }
        ensure!(bytes > 0, "the body is empty");
        latencies_ns.push(u64::try_from(begun.elapsed().as_nanos())?);
    }
}

fn address(url: &Uri) -> Result<SocketAddr> {
    if url.scheme_str() != Some("https") {
        bail!("`{url}` is not an https URL");
    }
    let authority = url.authority().context("the URL has no host")?;
    let port = authority.port_u16().unwrap_or(443);
    let host = authority.host().parse().map_err(|_| anyhow!("the host of `{url}` is not an address"))?;
    Ok(SocketAddr::new(host, port))
}

/// TLS as in `h123 load`: AES-128-GCM, X25519 first, certificates verified; QUIC as quinn sets it.
fn client_config(authority: &Path) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)
        .with_context(|| format!("cannot read {}", authority.display()))?
    {
        roots.add(certificate?)?;
    }
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}
