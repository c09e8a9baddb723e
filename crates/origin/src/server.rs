//! An origin's life: bind, serve until told to stop, drain, report.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use model::{Shortfall, Variant};
use tokio::sync::{mpsc, watch};

use crate::Config;
use crate::access_log::AccessLog;
use crate::listen::Listener;
use crate::shared::{Link, ServeReport, Server};

/// How many threads may block on files.
const MOST_BLOCKING_THREADS: usize = 8;
/// How long QUIC's tasks have to send the last CONNECTION_CLOSE. Their draining period would take three probe
/// timeouts (RFC 9000, section 10.2).
const QUIC_FAREWELL: Duration = Duration::from_millis(10);
/// How often [`flag`] reads its flag.
const FLAG_EVERY: Duration = Duration::from_millis(20);

/// Serves until `shutdown` is ready. `on_ready` gets the addresses once all of them listen, and the socket
/// buffers that are smaller than requested.
///
/// Blocks the calling thread. Requests in flight get [`Config::grace`] to end. The access log is complete
/// when this function returns.
///
/// # Errors
/// A setting is invalid, an address cannot be bound, or the access log cannot be written. A client's
/// behaviour is never an error.
pub fn serve(
    config: Config,
    on_ready: impl FnOnce(&[(Variant, SocketAddr)], &[Shortfall]),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<ServeReport> {
    config.check()?;
    let mut builder = if config.threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(config.threads);
        builder
    };
    let runtime = builder
        .enable_all()
        .max_blocking_threads(MOST_BLOCKING_THREADS)
        .build()
        .context("cannot start the runtime of the origin")?;
    let writer = config.access_log.as_deref().map(AccessLog::create).transpose()?;
    let log = writer.as_ref().map(crate::access_log::Writer::log);
    let server = Arc::new(Server::new(config, log)?);
    let ran = runtime.block_on(run(&server, on_ready, shutdown));
    // Drops the requests that the grace period did not end, so that their rows reach the log.
    runtime.shutdown_timeout(Duration::from_millis(200));
    let (logged, dropped_from_log) = writer.map_or(Ok((0, 0)), crate::access_log::Writer::finish)?;
    ran?;
    Ok(ServeReport { logged, dropped_from_log, ..server.report() })
}

/// Ready when the flag is raised, for example by a signal handler; reads the flag every 20 ms.
pub async fn flag(raised: Arc<AtomicBool>) {
    while !raised.load(Ordering::Relaxed) {
        tokio::time::sleep(FLAG_EVERY).await;
    }
}

async fn run(
    server: &Arc<Server>,
    on_ready: impl FnOnce(&[(Variant, SocketAddr)], &[Shortfall]),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let config = &server.config;
    let bound = config.listen.iter().map(|(variant, address)| Listener::bind(config, *variant, *address));
    let listeners = bound.collect::<anyhow::Result<Vec<_>>>()?;
    let addresses = listeners.iter().map(Listener::address).collect::<anyhow::Result<Vec<_>>>()?;
    let shortfalls: Vec<Shortfall> =
        listeners.iter().flat_map(|listener| listener.shortfalls().iter().copied()).collect();
    let (close, closing) = watch::channel(false);
    let (alive, mut ended) = mpsc::channel(1);
    for (listener, (variant, _)) in listeners.into_iter().zip(&addresses) {
        tokio::spawn(listener.accept(Link::listener(server, *variant, &closing, &alive)));
    }
    drop(alive);
    on_ready(&addresses, &shortfalls);
    shutdown.await;
    close.send_replace(true);
    // Ready when the last connection and listener have dropped their handles. Exceeding the grace period is
    // no error.
    let _ = tokio::time::timeout(config.grace, ended.recv()).await;
    if addresses.iter().any(|(variant, _)| variant.is_quic()) {
        tokio::time::sleep(QUIC_FAREWELL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::Identity;

    /// A connection whose client keeps it alive with PINGs alone.
    #[test]
    fn pings_do_not_keep_a_quic_connection() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut config = Config::loopback(&[Variant::H3]);
        config.identity = Some(Identity {
            certificate_pem: certificate.cert.pem().into_bytes(),
            key_pem: certificate.signing_key.serialize_pem().into_bytes(),
            hosts: Vec::new(),
        });
        // `serve` refuses such a short limit.
        config.idle_timeout = Duration::from_millis(600);
        let server = Arc::new(Server::new(config, None).unwrap());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut transport = quinn::TransportConfig::default();
        transport.keep_alive_interval(Some(Duration::from_millis(50)));
        let mut client = quinn::ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (tell, told) = oneshot::channel();
            let ready =
                |addresses: &[(Variant, SocketAddr)], _: &[Shortfall]| tell.send(addresses[0].1).unwrap();
            let pings = async {
                let endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
                let connecting = endpoint.connect_with(client, told.await.unwrap(), "localhost").unwrap();
                let quic = connecting.await.unwrap();
                // The control stream with empty SETTINGS.
                let mut control = quic.open_uni().await.unwrap();
                control.write_all(&[0, 4, 0]).await.unwrap();
                let closed = tokio::time::timeout(Duration::from_secs(20), quic.closed()).await;
                assert!(closed.is_ok(), "the connection lives on");
                assert!(quic.stats().frame_tx.ping > 3, "PINGs kept QUIC itself alive");
            };
            tokio::select! {
                ran = run(&server, ready, std::future::pending()) => panic!("the origin ended: {ran:?}"),
                () = pings => (),
            }
        });
        let failures = server.report().failures;
        assert!(failures.iter().any(|why| why.contains("no content was transferred")), "{failures:?}");
    }
}
