//! The lab's name server, and the files that make a node ask it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result, bail};
use lab::{Lab, Node, OwnFile, Process, Program};
use model::plan::ServerChain;
use model::sample::{FailureKind, Outcome};
use model::topology::NAME_SERVER;
use model::{Cell, Topology};
use names::{Config, Host, PORT};

use crate::study::run::{SERVER_NAME, Study, tool_failed};

const SWITCH_FILE: &str = "/etc/nsswitch.conf";

impl Study<'_> {
    /// Starts the name server that the study asks for, which knows the address of the cell's server, and makes the client ask
    /// it; `None` where clients know the address.
    ///
    /// # Errors
    /// The run's outcome: it did not come up.
    pub(crate) fn start_name_server(
        &self,
        lab: &Lab,
        cell: &Cell,
        logs: &Path,
    ) -> Result<Option<Process>, Outcome> {
        let Some(topology) = self.plan.topology_of(cell).filter(|_| self.looks_up()) else { return Ok(None) };
        let start = || {
            let files = files(&topology, lab.client().name()).context("the client has no link to it")?;
            lab.client().cover_files(files)?;
            fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
            start(
                lab.node(NAME_SERVER).context("the lab was built without it")?,
                &knows(lab, &topology, &cell.chains[0])?,
                logs,
            )
        };
        start().map(Some).map_err(|error| tool_failed(FailureKind::Lab, &error.context("the name server")))
    }

    /// Whether clients look the server's name up: on the loopback nobody could be asked but the machine's own resolver.
    pub(crate) fn looks_up(&self) -> bool {
        self.emulated && self.plan.dns_rtt_ns.is_some()
    }
}

/// The server's name and address, and where it is asked for.
fn knows(lab: &Lab, topology: &Topology, chain: &ServerChain) -> Result<Config> {
    let own = topology.name_server().context("the topology was made without it")?;
    let listen = own.interfaces.iter().filter_map(|port| Some(IpAddr::from(port.v4?.0)));
    let server = lab.node(&chain.node).context("there is no node for the server")?;
    let address = server.addresses().v4;
    let host = Host { name: SERVER_NAME.to_owned(), addresses: vec![address.into()], services: Vec::new() };
    Ok(Config { listen: listen.map(|ip| SocketAddr::new(ip, PORT)).collect(), hosts: vec![host] })
}

/// The files that make a node ask the name server and nobody else; `None` where it has no link to one.
pub(crate) fn files(topology: &Topology, node: &str) -> Option<Vec<OwnFile>> {
    let address = topology.name_server_of(node)?;
    let mut files = vec![
        OwnFile {
            path: "/etc/hosts".into(),
            text: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned(),
        },
        // Names without a dot are asked as they are.
        OwnFile {
            path: "/etc/resolv.conf".into(),
            text: format!("nameserver {address}\nsearch .\noptions ndots:0\n"),
        },
    ];
    // Another service of the machine's would be asked in place of DNS, or before it.
    if let Ok(text) = fs::read_to_string(SWITCH_FILE) {
        files.push(OwnFile { path: SWITCH_FILE.into(), text: only_dns(&text) });
    }
    Some(files)
}

/// The name service switch (nsswitch.conf(5)) with `hosts: files dns`.
fn only_dns(text: &str) -> String {
    let others = text.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns"]).flat_map(|line| [line, "\n"]).collect()
}

/// Starts the name server in its node and waits until it listens; its files are in `folder`.
///
/// # Errors
/// The disk refuses, or it does not come up: its last words.
pub(crate) fn start(node: &Node, config: &Config, folder: &Path) -> Result<Process> {
    let (file, log) = (folder.join("names.json"), folder.join("names.log"));
    let context = || format!("cannot write {}", file.display());
    fs::write(&file, serde_json::to_vec(config)?).with_context(context)?;
    let messages = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = Program::new(std::env::current_exe().context("this program's own path is not known")?)
        .args(["names".as_ref(), "--config".as_ref(), file.as_os_str()])
        .stdout(lab::Output::Pipe)
        .stderr(lab::Output::File(messages));
    let mut process = node.spawn(program)?;
    let stdout = process.take_stdout().context("the name server has no standard output")?;
    // It says a line when it listens, or ends and says why in its log.
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).context("the name server cannot be heard")?;
    if line.trim() != crate::name_service::command::READY {
        let words = fs::read_to_string(&log).unwrap_or_default();
        bail!("the name server did not come up; its last words: {}", words.trim());
    }
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_asks_files_and_dns() {
        let found =
            only_dns("passwd: files systemd\nhosts: files resolve [!UNAVAIL=return] dns\nnetworks: files\n");
        assert_eq!(found, "passwd: files systemd\nnetworks: files\nhosts: files dns\n");
    }
}
