//! nginx and nghttpd by hand, on loopback, with certificates made for the test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::tool::folder;

/// A server that is not part of h123; ends when dropped. Its folder has `ca.pem`, and `server` and
/// `client` as `.pem` and `.key`.
pub(crate) struct RealServer {
    child: Child,
    pub(crate) folder: TempDir,
    pub(crate) ports: Vec<u16>,
}

impl RealServer {
    /// nginx with one `server` block for each of `blocks`, each at a separate port over TLS; every path
    /// answers.
    pub(crate) fn nginx(blocks: &[&str]) -> RealServer {
        let (folder, ports) = (prepared(), free_ports(blocks.len()));
        let root = folder.path().display();
        let servers: String = blocks
            .iter()
            .zip(&ports)
            .map(|(block, port)| format!("server {{ listen 127.0.0.1:{port} ssl http2; {block} }}\n"))
            .collect();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {root}/{name};\n"))
            .collect();
        let user = if rustix::process::getuid().is_root() { "user root;" } else { "" };
        let text = format!(
            "daemon off; pid {root}/pid; error_log {root}/error.log; {user} worker_processes 1;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; root {root}/www; keepalive_requests 100000; {temporary}\n\
             ssl_certificate {root}/server.pem; ssl_certificate_key {root}/server.key;\n\
             ssl_session_ticket_key {root}/ticket.key;\n{servers} }}\n"
        );
        fs::write(folder.path().join("nginx.conf"), text).unwrap();
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e"])
            .arg(folder.path().join("error.log"));
        RealServer::started(command, folder, ports)
    }

    /// Caddy with HTTP/2, and HTTP/3 that it announces.
    pub(crate) fn caddy() -> RealServer {
        let (folder, ports) = (prepared(), free_ports(1));
        let root = folder.path().display();
        let text = format!(
            "{{\n admin off\n default_sni 127.0.0.1\n auto_https disable_redirects\n}}\n\
             https://127.0.0.1:{} {{\n tls {root}/server.pem {root}/server.key\n root * {root}/www\n file_server\n}}\n",
            ports[0]
        );
        fs::write(folder.path().join("Caddyfile"), text).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.path().join("Caddyfile"));
        command.env("HOME", folder.path()).env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        RealServer::started(command, folder, ports)
    }

    /// nghttpd over TLS, which logs every frame that it reads.
    pub(crate) fn nghttpd(options: &[&str]) -> RealServer {
        let (folder, ports) = (prepared(), free_ports(1));
        let at = |name: &str| folder.path().join(name);
        let mut command = Command::new("nghttpd");
        command.args(["-v", "--no-content-length", "-a", "127.0.0.1", "-d"]).arg(at("www")).args(options);
        command.arg(ports[0].to_string()).arg(at("server.key")).arg(at("server.pem"));
        RealServer::started(command, folder, ports)
    }

    fn started(mut command: Command, folder: TempDir, ports: Vec<u16>) -> RealServer {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let name = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let server = RealServer { child, folder, ports };
        let patience = Instant::now() + Duration::from_secs(20);
        for port in &server.ports {
            while TcpStream::connect(("127.0.0.1", *port)).is_err() {
                assert!(Instant::now() < patience, "{name} does not listen: {}", server.log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        server
    }

    /// The URL of a path at the server's port number `index`.
    pub(crate) fn url(&self, index: usize, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.ports[index])
    }

    /// A file of its folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Its output so far.
    pub(crate) fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("log") + &read("error.log")
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Ports that were free a moment ago, all different.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// A folder with certificates, a key for tickets and two files to serve.
fn prepared() -> TempDir {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    fs::create_dir(folder.path().join("www")).unwrap();
    write("www/index.html", &[b'x'; 100]);
    write("www/pushed.css", &[b'y'; 5000]);
    write("ticket.key", &(0..80).collect::<Vec<u8>>());
    write_certificates(folder.path());
    folder
}

fn write_certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "an authority for a test");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}
