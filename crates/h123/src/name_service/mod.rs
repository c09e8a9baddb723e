//! The name server of labs: `h123 names`, its process, and the files that make a node use it. Studies and
//! labs by hand start it in their own files.

pub(crate) mod lab;
pub(crate) mod study;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use ::lab::{Input, Lab, Output, OwnFile, Process, Program};
use anyhow::{Context, Result, bail};
use clap::Args;
use model::Topology;
use model::topology::NAME_SERVER;
use names::{Config, View};

use crate::exit::Exit;
use crate::terminal::print;

/// The line that the process prints when it listens.
const READY: &str = "ready";
const SWITCH_FILE: &str = "/etc/nsswitch.conf";
/// How long clients may cache an answer, in seconds, where addresses stay.
const TTL_S: u32 = 300;

/// Serve the names of a lab, as the lab starts it
#[derive(Args, Debug)]
pub(crate) struct NamesArgs {
    /// The file with the addresses to listen on and the hosts to know
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command until it is killed.
///
/// # Errors
/// The file is wrong, or the process cannot listen on an address.
pub(crate) fn run(args: &NamesArgs) -> Result<Exit> {
    let shown = args.config.display();
    let text = fs::read(&args.config).with_context(|| format!("cannot read {shown}"))?;
    let config = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not a name server's configuration"))?;
    names::serve(config, std::io::stdin(), || {
        // The lab that waits for this line may have ended.
        let _ = print(READY);
    })?;
    Ok(Exit::Done)
}

/// The files that make a node use only this name server; `None` where it has no link to one.
pub(crate) fn files(topology: &Topology, node: &str) -> Option<Vec<OwnFile>> {
    let address = topology.name_server_of(node)?;
    let mut files = vec![
        OwnFile {
            path: "/etc/hosts".into(),
            text: "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned(),
        },
        // Names without a dot are looked up unchanged.
        OwnFile {
            path: "/etc/resolv.conf".into(),
            text: format!("nameserver {address}\nsearch .\noptions ndots:0\n"),
        },
    ];
    // Otherwise another service of this machine may answer instead of DNS, or before it.
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

/// The configuration of a lab's name server. No answer may be cached where an address changes.
pub(crate) fn config(topology: &Topology, views: Vec<View>) -> Config {
    let mut changes =
        topology.links.iter().filter_map(|link| link.network.as_ref()).flat_map(|n| &n.timeline);
    Config { ttl_s: if changes.any(|change| change.handover) { 0 } else { TTL_S }, views }
}

/// Starts the name server in its node and waits until it listens. Its files are in `folder`. It learns of
/// every changed address.
///
/// # Errors
/// A file cannot be written, or it does not come up: the end of its log.
pub(crate) fn start(lab: &Lab, config: &Config, folder: &Path) -> Result<Process> {
    let node = lab.node(NAME_SERVER).context("the lab was built without its name server")?;
    let (file, log) = (folder.join("names.json"), folder.join("names.log"));
    let context = || format!("cannot write {}", file.display());
    fs::write(&file, serde_json::to_vec(config)?).with_context(context)?;
    let messages = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let program = Program::new(std::env::current_exe().context("cannot find the path of this program")?)
        .args(["names".as_ref(), "--config".as_ref(), file.as_os_str()])
        .stdin(Input::Pipe)
        .stdout(Output::Pipe)
        .stderr(Output::File(messages));
    let mut process = node.spawn(program)?;
    let stdout = process.take_stdout().context("the name server has no standard output")?;
    // It prints a line when it listens; otherwise it ends, with the reason in its log.
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).context("cannot read the output of the name server")?;
    if line.trim() != READY {
        let words = fs::read_to_string(&log).unwrap_or_default();
        bail!("the name server did not come up; its last words: {}", words.trim());
    }
    let mut changes = process.take_stdin().context("the name server has no standard input")?;
    lab.on_address_change(move |old, new| {
        // A name server that has ended answers nothing in any case.
        let _ = writeln!(changes, "{old} {new}");
    });
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
