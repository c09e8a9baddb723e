//! What a study finds on this machine, and what its result records of it.

use anyhow::Result;
use drive::AccessLog;
use lab::{Access, MissingCapability};
use model::plan::DIRECT;
use model::{Backend, Plan};
use store::{Environment, ResultFolder};

use crate::exit::UsageError;
use crate::study::Study;

/// The note in `environment.json` with the command that repeats the measurement.
pub(crate) const COMMAND_NOTE: &str = "measure again with";

/// The file of a result with the facts about the machine.
pub(crate) const FILE: &str = "environment.json";
/// The note with the machines and versions that made later runs.
const CONTINUED_NOTE: &str = "continued with";
/// What must be the same for runs of one result, with a name for people.
const SAME: &[(&str, &str)] = &[
    ("tool_version", "h123"),
    ("kernel", "kernel"),
    ("architecture", "architecture"),
    ("distribution", "distribution"),
    ("cpu_model", "CPU"),
    ("cpus_usable_count", "CPUs"),
];

/// Refuses to continue a result with another version of h123 or on another machine, unless told; the result
/// then records it. Where the result has lost its environment, nothing can be compared.
///
/// # Errors
/// A [`UsageError`] that names the differences; `environment.json` cannot be written.
pub(crate) fn continue_with(folder: &ResultFolder, now: &Environment, is_mixed: bool) -> Result<()> {
    let Ok(mut stored) = folder.read_json::<Environment>(FILE) else { return Ok(()) };
    let (before, after) = (serde_json::to_value(&stored)?, serde_json::to_value(now)?);
    let differences: Vec<String> = SAME
        .iter()
        .filter(|(key, _)| before[*key] != after[*key])
        .map(|(key, name)| format!("{name} {}, now {}", before[*key], after[*key]))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let differences = differences.join("; ");
    if !is_mixed {
        let path = folder.path().display();
        let problem = format!(
            "the first runs of {path} were made elsewhere ({differences}). Such runs do not mix well: continue there, \
             or add --mixed, and the report will say so"
        );
        return Err(UsageError(problem).into());
    }
    stored.notes.insert(CONTINUED_NOTE.to_owned(), differences);
    folder.write_json(FILE, &stored)
}

/// Whether this process can emulate a plan's networks.
pub(crate) struct Emulation {
    /// What is missing, if it cannot.
    pub(crate) missing: Option<MissingCapability>,
    /// Why the lab's own emulator runs without real-time priority, if it does.
    pub(crate) no_realtime: Option<MissingCapability>,
}

impl Emulation {
    /// Gains the right to build labs. From here on a user without privileges is root in a new namespace; the
    /// process must have no other thread yet.
    pub(crate) fn enter(plan: &Plan) -> Emulation {
        if plan.topology.name == DIRECT {
            return Emulation { missing: None, no_realtime: None };
        }
        let capability = lab::probe();
        let access: Result<Access, MissingCapability> = capability.emulation().and_then(|_| lab::enter());
        let has_emulator = plan.cells.iter().any(|cell| cell.backend == Backend::UserSpace);
        let no_realtime = capability.realtime.err().filter(|_| has_emulator && access.is_ok());
        Emulation { missing: access.err(), no_realtime }
    }

    /// How the plan's networks are emulated, for `environment.json`.
    fn describe(&self, plan: &Plan) -> String {
        if let Some(missing) = &self.missing {
            return missing.to_string();
        }
        if plan.topology.name == DIRECT {
            return "none: this machine's loopback".to_owned();
        }
        let mut parts: Vec<String> = plan.cells.iter().map(|cell| means(cell.backend).to_owned()).collect();
        parts.sort_unstable();
        parts.dedup();
        let lacks = |missing: &MissingCapability| format!("without real-time priority: {}", missing.why);
        parts.extend(self.no_realtime.as_ref().map(lacks));
        parts.join("; ")
    }
}

/// The means by which a backend emulates networks.
const fn means(backend: Backend) -> &'static str {
    match backend {
        Backend::UserSpace => "packets over veth, AF_PACKET, user space",
        Backend::Netem => "the kernel's queueing disciplines, netem",
    }
}

/// Facts about this machine and its programs, with the command that repeats the measurement.
pub(crate) fn environment(study: &Study<'_>, emulation: &Emulation, command: String) -> Environment {
    let mut environment = Environment::collect(env!("H123_VERSION"), std::env::args().collect());
    let version = |found: Result<String>| found.unwrap_or_else(|error| format!("not found: {error:#}"));
    let servers = study.servers.iter().map(|(name, adapter)| {
        (format!("server {name}"), version(adapter.probe(&study.program).map(|found| found.version)))
    });
    let clients = study.clients.iter().map(|(name, client)| {
        (format!("client {name}"), version(client.probe(&study.program).map(|found| found.version)))
    });
    let browsers = study.clients.iter().filter(|(_, client)| client.is_browser()).map(|(name, client)| {
        let sandbox = if client.lacks_sandbox() { "no: h123 runs as root" } else { "yes" };
        (format!("sandbox of {name}"), sandbox.to_owned())
    });
    let logs = study.servers.iter().filter(|_| study.plan.server_time).filter_map(|(name, adapter)| {
        let time = adapter.access_log.as_ref().and_then(AccessLog::describe)?;
        Some((format!("time in the log of {name}"), time))
    });
    let others = [
        (COMMAND_NOTE.to_owned(), command),
        ("CPUs".to_owned(), study.cores.describe()),
        ("emulation".to_owned(), emulation.describe(study.plan)),
    ];
    environment.notes.extend(study.describe_spread());
    environment.notes.extend(study.outside.describe());
    environment.notes.extend(servers.chain(clients).chain(browsers).chain(logs).chain(others));
    environment
}
