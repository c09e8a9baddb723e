//! `h123 serve`: the built-in origin, for users and as the server of a cell (`--config`).

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use drive::Authority;
use model::clean::clean;
use model::media::Media;
use model::study::Library;
use model::units::counted;
use model::{Page, Pins, Shortfall, Variant};
use origin::{Config, Identity, JustInTime, ServeReport};
use serde::Deserialize;

use crate::exit::{Exit, UsageError};
use crate::library::{DataFiles, source};
use crate::terminal::{note, print};

/// The default port of the first variant; the others follow.
const FIRST_PORT: u16 = 8080;

/// Serve pages, files and test paths with all five variants, each on its port, until Ctrl-C
#[derive(Args, Debug)]
#[command(
    after_help = "Paths: / (a list), pages (/small/, /large/), files under --root, /bytes/N, /delay/MS, /status/NNN, \
/echo

Examples:
  h123 serve &
  h123 load https://127.0.0.1:8083/bytes/128 --variant h2 --cacert h123-ca.pem
  mkdir -p public
  h123 serve --root ./public --port 9000 --ca public-ca.pem &
  h123 serve --root ./public --port 9010 --ca media-ca.pem --just-in-time --missing 503 &"
)]
pub(crate) struct ServeArgs {
    /// The address to listen on
    ///
    /// Example: --bind 127.0.0.1
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// The port of h1; h1s, h2c, h2 and h3 get the following ports
    ///
    /// Example: --port 9000
    #[arg(long, default_value_t = FIRST_PORT, value_parser = clap::value_parser!(u16).range(1..=65531))]
    port: u16,
    /// Serve the files under this folder
    ///
    /// Example: --root ./public
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Cut segments out of the archives under the root when they are requested: /FILM/SegS-FragF out of
    /// FILM/SegS.f4f by FILM/index.bootstrap (HDS), and /FILM/N.m4s and /FILM/init.mp4 out of FILM.mp4
    ///
    /// Example: --root ./public --just-in-time
    #[arg(long, requires = "root")]
    just_in_time: bool,
    /// Read and parse the index of an archive for every request instead of keeping it
    ///
    /// Example: --root ./public --just-in-time --no-index-cache
    #[arg(long, requires = "just_in_time")]
    no_index_cache: bool,
    /// The status for segments that the index does not have
    ///
    /// Example: --root ./public --just-in-time --missing 503
    #[arg(long, value_name = "STATUS", requires = "just_in_time", default_value = "404",
        value_parser = ["404", "503"])]
    missing: String,
    /// Write one JSON line per request to this file
    ///
    /// Example: --access-log access.jsonl
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Worker threads
    ///
    /// Example: --threads 2
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Let clients resume TLS and QUIC sessions
    ///
    /// Example: --resume
    #[arg(long)]
    resume: bool,
    /// Accept early data (0-RTT) over HTTP/3; attackers can replay it
    ///
    /// Example: --resume --early-data
    #[arg(long, requires = "resume")]
    early_data: bool,
    /// Write the CA certificate, for clients to trust, to this file
    ///
    /// Example: --ca my-ca.pem
    #[arg(long, value_name = "FILE", default_value = "h123-ca.pem")]
    ca: PathBuf,
    /// Read all settings from this JSON file, as the lab starts its origin
    #[arg(long, value_name = "FILE", hide = true)]
    config: Option<PathBuf>,
}

/// How the lab's origin cuts segments.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CuttingConfig {
    keeps_indexes: bool,
    missing_status: u16,
}

/// The file that the lab writes for its origin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServeConfig {
    /// Where to listen for each variant.
    listen: BTreeMap<Variant, SocketAddr>,
    /// The server's certificate chain (PEM).
    certificate: Option<PathBuf>,
    /// Its private key (PEM).
    key: Option<PathBuf>,
    /// The certificate chains for further host names, with the same key.
    #[serde(default)]
    hosts: BTreeMap<String, PathBuf>,
    /// The pages to serve.
    pages: Vec<Page>,
    /// The modelled media to serve.
    media: Vec<Media>,
    /// A folder to serve.
    root: Option<PathBuf>,
    /// How segments are cut out of the archives in it.
    just_in_time: Option<CuttingConfig>,
    access_log: Option<PathBuf>,
    threads: Option<usize>,
    /// Whether HTTP/3 takes early data.
    #[serde(default)]
    early_data: bool,
    /// The port at which responses over TLS announce HTTP/3.
    alternative_port: Option<u16>,
    /// Whether caches may keep the resources of pages.
    #[serde(default)]
    cacheable: bool,
    /// Requests in flight on one connection.
    concurrent_streams: Option<u32>,
    /// Flow-control window of one stream.
    stream_window_bytes: Option<u32>,
    /// A connection without traffic for this long is closed.
    idle_timeout_ms: Option<u64>,
    pins: Pins,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, a port in use, or a file that cannot be read.
pub(crate) fn run(args: &ServeArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    let config = match &args.config {
        Some(file) => lab_config(file)?,
        None => user_config(args)?,
    };
    let quiet = args.config.is_some();
    let ready = |addresses: &[(Variant, SocketAddr)], shortfalls: &[Shortfall]| {
        for shortfall in shortfalls {
            note(false, &format!("warning: h3: {shortfall}"));
        }
        for (variant, address) in addresses {
            // Standard output may be closed; the server continues.
            let _ = print(&format!("{variant:<4} {}://{address}/", variant.scheme()));
        }
    };
    let served = origin::serve(config, ready, origin::flag(Arc::clone(stop)))?;
    note(quiet, &describe(&served));
    Ok(Exit::Done)
}

/// What the origin did until it was stopped, for people.
fn describe(served: &ServeReport) -> String {
    let (requests, connections) =
        (counted(served.requests, "request"), counted(served.connections, "connection"));
    let mut text = format!("stopped after {requests} on {connections}");
    let troubles = [
        (served.failed_connections, "connection", "failed"),
        (served.refused_connections, "connection", "refused because too many were open"),
        (served.failed_accepts, "connection", "not accepted"),
    ];
    for (count, noun, what) in troubles.into_iter().filter(|(count, ..)| *count > 0) {
        text += &format!("; {} {what}", counted(count, noun));
    }
    if !served.failures.is_empty() {
        text += &format!(". First failures: {}", served.failures.join("; "));
    }
    text
}

fn user_config(args: &ServeArgs) -> Result<Config> {
    let listen: Vec<(Variant, SocketAddr)> = Variant::ALL
        .into_iter()
        .zip(args.port..)
        .map(|(variant, port)| (variant, SocketAddr::new(args.bind, port)))
        .collect();
    if let Some(root) = &args.root
        && !root.is_dir()
    {
        return Err(UsageError(format!("--root: the folder {} does not exist", root.display())).into());
    }
    let authority = Authority::new()?;
    let identity = authority.issue(&["localhost"], &[args.bind])?;
    fs::write(&args.ca, authority.pem())
        .with_context(|| format!("cannot write the CA certificate to {}", args.ca.display()))?;
    if let Some(warning) = exposure(args) {
        note(false, &warning);
    }
    note(false, &format!("CA certificate: {} (pass it with --cacert); ports:", args.ca.display()));
    let mut config = Config::new(listen);
    config.identity = Some(Identity {
        certificate_pem: identity.certificate_pem.into(),
        key_pem: identity.key_pem.into(),
        hosts: Vec::new(),
    });
    config.pages = all_pages();
    config.media = all_media();
    config.root = args.root.clone();
    let missing_status = args.missing.parse().context("--missing is not a status")?;
    let cutting = JustInTime { keeps_indexes: !args.no_index_cache, missing_status };
    config.just_in_time = args.just_in_time.then_some(cutting);
    config.access_log = args.access_log.clone();
    config.threads = usize::from(args.threads);
    config.pins.resumption = args.resume;
    config.early_data = args.early_data;
    Ok(config)
}

/// What others can reach, where the address is not of this machine only.
fn exposure(args: &ServeArgs) -> Option<String> {
    if args.bind.is_loopback() {
        return None;
    }
    let reachable = match &args.root {
        Some(root) => format!("all files under {}, the pages and the test paths", root.display()),
        None => "the pages and the test paths".to_owned(),
    };
    let bind = args.bind;
    let from = if bind.is_unspecified() { "every network of this machine" } else { "the network" };
    Some(format!(
        "warning: {bind} is reachable from {from}: anyone there can read {reachable} without a password, and can \
         request large responses (/bytes/N); use --bind 127.0.0.1 to serve this machine only"
    ))
}

/// Every page in the data files; pages whose files are wrong are left out with a warning.
pub(crate) fn all_pages() -> Vec<Page> {
    let parse = |name: &String| -> Result<Page> {
        let file = DataFiles::default().page(name).map_err(UsageError)?;
        Ok(Page::parse(name, source(&file))?)
    };
    let mut pages = served(DataFiles::default().pages().iter().map(parse), &|text| note(false, text));
    // The bodies of real pages are elsewhere.
    pages.retain(|page| !page.is_outside());
    pages
}

/// All media in the data files; media whose files are wrong are left out with a warning.
pub(crate) fn all_media() -> Vec<Media> {
    let files = DataFiles::default();
    let parse = |name: &String| -> Result<Media> {
        let file = files.media_file(name).map_err(UsageError)?;
        Ok(Media::parse(name, source(&file))?)
    };
    served(files.media().iter().map(parse), &|text| note(false, text))
}

/// What can be served; `warn` hears of the rest. One wrong file of the user's must not stop everything else.
fn served<T>(read: impl Iterator<Item = Result<T>>, warn: &dyn Fn(&str)) -> Vec<T> {
    let report = |error: anyhow::Error| warn(&clean(&format!("warning: {error:#}; it is not served")));
    read.filter_map(|own| own.map_err(report).ok()).collect()
}

fn lab_config(file: &Path) -> Result<Config> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let written: ServeConfig = serde_json::from_slice(&read(file)?)
        .with_context(|| format!("{} is not an origin's configuration", file.display()))?;
    let mut config = Config::new(written.listen.into_iter().collect());
    if let (Some(certificate), Some(key)) = (&written.certificate, &written.key) {
        let of_host = |(name, path): (&String, &PathBuf)| Ok((name.clone(), read(path)?));
        let hosts = written.hosts.iter().map(of_host).collect::<Result<_>>()?;
        config.identity = Some(Identity { certificate_pem: read(certificate)?, key_pem: read(key)?, hosts });
    }
    config.pages = written.pages;
    config.media = written.media;
    config.root = written.root;
    config.just_in_time = written
        .just_in_time
        .map(|CuttingConfig { keeps_indexes, missing_status }| JustInTime { keeps_indexes, missing_status });
    config.access_log = written.access_log;
    config.threads = written.threads.unwrap_or(1);
    config.pins = written.pins;
    config.early_data = written.early_data;
    config.alternative_port = written.alternative_port;
    config.is_cacheable = written.cacheable;
    config.concurrent_streams = written.concurrent_streams.unwrap_or(config.concurrent_streams);
    config.stream_window_bytes = written.stream_window_bytes.unwrap_or(config.stream_window_bytes);
    // The connection's window is at least as large as a stream's.
    config.connection_window_bytes = config.connection_window_bytes.max(config.stream_window_bytes);
    config.idle_timeout = written.idle_timeout_ms.map_or(config.idle_timeout, Duration::from_millis);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn other_addresses_say_what_is_exposed() {
        let exposed = |words: &[&str]| {
            let command = ServeArgs::augment_args(clap::Command::new("serve"));
            let matches = command.try_get_matches_from([&["serve"], words].concat()).unwrap();
            exposure(&ServeArgs::from_arg_matches(&matches).unwrap())
        };
        assert_eq!(exposed(&[]), None);
        assert_eq!(exposed(&["--bind", "::1", "--root", "/srv"]), None);
        let all = exposed(&["--bind", "0.0.0.0", "--root", "/srv"]).unwrap();
        assert!(all.contains("every network") && all.contains("all files under /srv"), "{all}");
        let one = exposed(&["--bind", "192.0.2.1"]).unwrap();
        assert!(one.contains("192.0.2.1 is reachable") && !one.contains("files"), "{one}");
    }

    #[test]
    fn what_is_wrong_is_left_out_with_a_warning() {
        let warnings = std::cell::RefCell::new(Vec::new());
        let read = [Ok(1), Err(anyhow::anyhow!("media/x.toml:1:1: no title")), Ok(2)];
        let served = served(read.into_iter(), &|text| warnings.borrow_mut().push(text.to_owned()));
        assert_eq!(served, [1, 2]);
        assert_eq!(warnings.into_inner(), ["warning: media/x.toml:1:1: no title; it is not served"]);
    }

    #[test]
    fn the_end_of_serving_is_a_sentence() {
        let mut served = ServeReport { requests: 1, connections: 2, ..ServeReport::default() };
        assert_eq!(describe(&served), "stopped after 1 request on 2 connections");
        served.failed_connections = 1;
        served.failures = vec!["h2: reset".into()];
        assert_eq!(
            describe(&served),
            "stopped after 1 request on 2 connections; 1 connection failed. First failures: h2: reset"
        );
    }
}
