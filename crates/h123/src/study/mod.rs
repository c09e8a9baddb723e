//! The runs of a study: what each does, when another follows, and what a result makes of them.

pub(crate) mod chain;
pub(crate) mod clients;
pub(crate) mod cores;
pub(crate) mod cross;
pub(crate) mod damages;
pub(crate) mod environment;
pub(crate) mod monitor;
pub(crate) mod outside;
pub(crate) mod overrides;
pub(crate) mod progress;
pub(crate) mod reference;
pub(crate) mod repetition;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod server_time;
pub(crate) mod site;
pub(crate) mod warm;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use drive::{Adapter, Authority, ExternalClient};
use lab::{Lab, Node};
use model::sample::{FailureKind, Outcome};
use model::{Page, Plan};

use self::cores::Cores;
use self::outside::Outside;

/// The name in every server's certificate.
pub(crate) const SERVER_NAME: &str = "server.h123.test";
/// Upper bound on a client's output.
pub(crate) const CLIENT_BYTES: u64 = 8 << 30;

/// What all runs of a study share.
pub(crate) struct Study<'a> {
    /// What to do.
    pub(crate) plan: &'a Plan,
    /// The servers of the plan, by name.
    pub(crate) servers: BTreeMap<String, Adapter>,
    /// What the servers offer that h123 does not start.
    pub(crate) outside: Outside,
    /// The external clients of the plan, by name.
    pub(crate) clients: BTreeMap<String, ExternalClient>,
    /// Signs the servers' certificates; only this study's clients trust it.
    pub(crate) authority: Authority,
    /// Whether this machine can emulate networks; otherwise everything runs over the loopback.
    pub(crate) emulated: bool,
    /// The CPUs of client, server, emulator and monitor.
    pub(crate) cores: Cores,
    /// This program, which is also the client and the origin.
    pub(crate) program: PathBuf,
    /// The pages of the plan's workloads.
    pub(crate) pages: Vec<Page>,
    /// The same pages as files, for servers that serve a folder.
    pub(crate) content: PathBuf,
    /// Whether each run's packets are captured, with the keys that decrypt them.
    pub(crate) pcap: bool,
    /// Set when the user interrupts the study.
    pub(crate) stop: &'a AtomicBool,
}

/// Turns an error into the outcome of the run in which it happened.
pub(crate) fn failed(kind: FailureKind) -> impl Fn(anyhow::Error) -> Outcome {
    move |error| Outcome::failed(kind, format!("{error:#}"))
}

/// A node of the lab.
///
/// # Errors
/// The run's outcome: the lab has no such node.
pub(crate) fn node_of<'n>(lab: &'n Lab, name: &str) -> Result<&'n Node, Outcome> {
    let missing = || Outcome::failed(FailureKind::Lab, format!("there is no node `{name}`"));
    lab.node(name).ok_or_else(missing)
}
