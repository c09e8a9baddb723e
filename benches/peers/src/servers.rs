//! The servers: each starts on loopback for one work and ends after it.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use drive::Authority;
use lab::{Exit, Lab};
use model::Variant;

use crate::child::Running;
use crate::machine;
use crate::works::{LARGE_BYTES, SMALL_BYTES, ServerKind, Work};

/// A server must listen within this time.
const START_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// Ports are sought from here up to where clients' own ports begin.
const PORTS: std::ops::Range<u16> = 21_000..32_000;
/// One port per variant, for the origin: h1, h1s, h2c, h2, h3 in this order. Others use some of them.
const PORTS_EACH: u16 = 5;

/// Everything that servers and clients read, in memory.
#[derive(Debug)]
pub(crate) struct Bench {
    /// The folder for files, configurations and outputs; removed when this is dropped.
    pub(crate) folder: tempfile::TempDir,
    /// This machine as a lab, in which all children run.
    lab: Lab,
    /// The binary under test, which is also the origin.
    pub(crate) h123: PathBuf,
    /// The servers' CPU.
    pub(crate) server_cpu: usize,
    /// The generators' CPU.
    pub(crate) client_cpu: usize,
    /// Set when the user interrupts.
    stop: Arc<AtomicBool>,
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Server {
    running: Running,
    /// What every generator requests.
    pub(crate) url: String,
    /// The authority that signed its certificate.
    pub(crate) authority: PathBuf,
}

impl Bench {
    /// Puts files and certificates into memory.
    ///
    /// # Errors
    /// No two CPUs, or no place to write.
    pub(crate) fn prepare(h123: PathBuf, stop: &Arc<AtomicBool>) -> Result<Self> {
        let cpus = machine::cpus()?;
        let [server_cpu, client_cpu, ..] = *cpus.as_slice() else {
            bail!("{} CPU is usable; the server and the generator need one each", cpus.len());
        };
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        remove_leftovers(&place);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(&place)
            .with_context(|| format!("cannot make a folder in {}", place.display()))?;
        let lab = Lab::loopback()?;
        let bench = Bench { folder, lab, h123, server_cpu, client_cpu, stop: Arc::clone(stop) };
        // A server that gives up root must still find the files.
        fs::set_permissions(bench.folder.path(), Permissions::from_mode(0o755))?;
        for bytes in [SMALL_BYTES, LARGE_BYTES] {
            bench.write(&format!("bytes/{bytes}"), &vec![b'x'; usize::try_from(bytes)?])?;
        }
        let authority = Authority::new()?;
        let identity = authority.issue(&["localhost"], &[Ipv4Addr::LOCALHOST.into()])?;
        bench.write("ca.pem", identity.authority_pem.as_bytes())?;
        bench.write("server.pem", identity.certificate_pem.as_bytes())?;
        bench.write("server.key", identity.key_pem.as_bytes())?;
        bench.write("openssl.cnf", OPENSSL.as_bytes())?;
        Ok(bench)
    }

    /// Starts a command on these CPUs; `name` is the name of its files.
    pub(crate) fn start(&self, name: &str, command: &Command, cpus: &[usize]) -> Result<Running> {
        Running::start(self.lab.client(), name, command, cpus, self.folder.path())
    }

    /// Waits for a child's end; see [`Running::wait`].
    pub(crate) fn wait(&self, running: &Running, limit: Duration) -> Result<Exit> {
        running.wait(limit, &self.stop)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Server {
    /// Starts the work's server and waits until it listens.
    ///
    /// # Errors
    /// It is not installed, ends at once, or does not listen in time.
    pub(crate) fn start(bench: &Bench, work: &Work) -> Result<Self> {
        let first = free_ports()?;
        let port = Variant::ALL.into_iter().zip(first..).find(|(variant, _)| *variant == work.variant);
        let (_, port) = port.context("a variant without a port")?;
        let command = match work.server {
            ServerKind::Nginx => nginx(bench, first, work.connections)?,
            ServerKind::Nghttpd => nghttpd(bench, work.variant, port),
            ServerKind::Origin => origin(bench, first),
        };
        let running = bench.start("server", &command, &[bench.server_cpu])?;
        let authority =
            bench.path(if work.server == ServerKind::Origin { "origin-ca.pem" } else { "ca.pem" });
        let url = format!("{}://127.0.0.1:{port}/bytes/{}", work.variant.scheme(), work.body_bytes);
        let server = Server { running, url, authority };
        server.wait_until_ready(bench, work, port)?;
        Ok(server)
    }

    /// Its CPU time so far, user and system.
    pub(crate) fn cpu_ns(&self) -> Result<u64> {
        machine::process_ns(self.running.pid())
    }

    fn wait_until_ready(&self, bench: &Bench, work: &Work, port: u16) -> Result<()> {
        let began = Instant::now();
        let name = work.server.name();
        loop {
            // The origin prints when it listens; a connection cannot show it for UDP.
            let ready = match work.variant {
                Variant::H3 => self.running.stdout()?.lines().any(|line| line.starts_with("h3 ")),
                _ => TcpStream::connect_timeout(&address(port), POLL).is_ok(),
            };
            if let Some(ended) = self.running.poll()? {
                bail!("{name} ended with {} before it listened: {}", ended.status, self.running.last_words());
            }
            if ready {
                return Ok(());
            }
            if bench.is_interrupted() {
                bail!("interrupted");
            }
            if began.elapsed() > START_LIMIT {
                bail!("{name} does not listen at {} after {} s", address(port), START_LIMIT.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

/// nginx gets room for at least this many connections.
const LEAST_CONNECTIONS: u32 = 4096;
const SPARE_CONNECTIONS: u32 = 64;
/// This many connections may wait to be accepted.
const BACKLOG: u32 = 4096;

/// The names of this harness's folders begin with this, followed by its process id.
const PREFIX: &str = "h123-bench-";

/// One cipher and one key exchange for servers that read OpenSSL's configuration: those of `h123 load`'s
/// pins.
const OPENSSL: &str = "\
openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519
MinProtocol = TLSv1.3
";

/// Removes the folders of harnesses that were killed.
fn remove_leftovers(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // A folder of another user remains.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The first of five neighbouring ports that are free for TCP and UDP.
fn free_ports() -> Result<u16> {
    let free =
        |port: &u16| TcpListener::bind(address(*port)).is_ok() && UdpSocket::bind(address(*port)).is_ok();
    PORTS
        .step_by(usize::from(PORTS_EACH))
        .find(|first| (*first..*first + PORTS_EACH).all(|port| free(&port)))
        .with_context(|| format!("no {PORTS_EACH} neighbouring ports are free in {PORTS:?}"))
}

fn nginx(bench: &Bench, first: u16, connections: u32) -> Result<Command> {
    let text = nginx_configuration(bench.folder.path(), first, connections);
    bench.write("nginx.conf", text.as_bytes())?;
    let program =
        ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].into_iter().find(|path| Path::new(path).exists());
    let mut command = Command::new(program.unwrap_or("nginx"));
    command.arg("-p").arg(bench.folder.path()).arg("-c").arg(bench.path("nginx.conf")).args(["-e", "stderr"]);
    Ok(command)
}

/// One process without a master, so that one process has all its cost and nothing is left when it is killed.
///
/// Small files are read and written with their header in one piece; `sendfile` is for large ones in
/// cleartext.
fn nginx_configuration(folder: &Path, first: u16, connections: u32) -> String {
    let (h1, h1s, h2c, h2) = (first, first + 1, first + 2, first + 3);
    // Its own files and listeners count too.
    let most = connections.saturating_add(SPARE_CONNECTIONS).max(LEAST_CONNECTIONS);
    let folder = folder.display();
    format!(
        "daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections {most}; }}
http {{
  access_log off; server_tokens off; default_type application/octet-stream;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000000; keepalive_timeout 300s; tcp_nodelay on;
  open_file_cache max=16 inactive=1h; open_file_cache_valid 1h;
  ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key; ssl_protocols TLSv1.3;
  ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; ssl_ecdh_curve X25519;
  server {{
    listen 127.0.0.1:{h1} backlog={BACKLOG}; listen 127.0.0.1:{h1s} ssl backlog={BACKLOG};
    listen 127.0.0.1:{h2c} http2; listen 127.0.0.1:{h2} ssl http2;
    root {folder};
    location = /bytes/{SMALL_BYTES} {{ sendfile off; }}
    location = /bytes/{LARGE_BYTES} {{ sendfile on; tcp_nopush on; }}
  }}
}}
"
    )
}

fn nghttpd(bench: &Bench, variant: Variant, port: u16) -> Command {
    let mut command = Command::new("nghttpd");
    command.env("OPENSSL_CONF", bench.path("openssl.cnf"));
    command.args(["-n1", "-a", "127.0.0.1", "-d"]).arg(bench.folder.path());
    if variant == Variant::H2c {
        command.arg("--no-tls").arg(port.to_string());
    } else {
        command.arg(port.to_string()).arg(bench.path("server.key")).arg(bench.path("server.pem"));
    }
    command
}

fn origin(bench: &Bench, first: u16) -> Command {
    let mut command = Command::new(&bench.h123);
    command.current_dir(bench.folder.path());
    command.args(["serve", "--bind", "127.0.0.1", "--threads", "1", "--port"]).arg(first.to_string());
    command.arg("--ca").arg(bench.path("origin-ca.pem"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_its_port_in_nginx() {
        let text = nginx_configuration(Path::new("/x"), 100, 15_000);
        for line in [
            "127.0.0.1:100 ",
            "127.0.0.1:101 ssl ",
            "worker_connections 15064;",
            "127.0.0.1:102 http2;",
            "127.0.0.1:103 ssl http2;",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn folders_of_dead_harnesses_are_removed_and_others_kept() {
        let place = tempfile::tempdir().unwrap();
        let alive = format!("{PREFIX}{}-a", std::process::id());
        // Process ids end at 2^22 on Linux.
        let dead = format!("{PREFIX}{}-b", 1 << 23);
        for name in [alive.as_str(), dead.as_str(), "h123-bench-x", "other"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        remove_leftovers(place.path());
        assert!(!place.path().join(&dead).exists());
        for name in [alive.as_str(), "h123-bench-x", "other"] {
            assert!(place.path().join(name).exists(), "{name}");
        }
    }
}
