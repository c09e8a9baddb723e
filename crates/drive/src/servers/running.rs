//! Runs a server in a node, from its start to its end.

mod feeds;
mod variables;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Node, Output, Process, Program};
use model::assignment::{Target, Trust};
use model::clients::DESCRIPTORS_A_PROCESS;
use model::media::Media;
use model::record::{Sending, ServerReport};
use model::sample::FailureKind;
use model::{Outcome, Page, Pins, Settings, Variant};

use super::access_log::AccessLogFile;
use super::adapter::Adapter;
use super::handshake::Endpoint;
use super::leftover::{kill_group, programs_of_group};
use super::memory::OutOfMemory;
use super::ready::{free_ports, silent_ports};
use crate::certificate::{Identity, KeyFile};
use crate::description::write_files;
use crate::log;
use crate::privileges::{Privileges, as_nobody};
use crate::program::{ProgramInfo, Support};
use crate::template::Variables;
use feeds::Feeds;

/// How often a starting server is checked.
const POLL: Duration = Duration::from_millis(2);

/// The parameters of a server for one run.
#[derive(Clone, Copy, Debug)]
pub struct StartSpec<'a> {
    /// The run's folder for this server's configuration, logs and keys; it is created.
    pub folder: &'a Path,
    /// This tool's program: `{{self}}` in a description.
    pub tool: &'a Path,
    /// The variants to serve.
    pub variants: &'a [Variant],
    /// The pinned transport settings.
    pub pins: &'a Pins,
    /// The tunables that the study sets.
    pub set: &'a Settings,
    /// The server behind it, for a proxy.
    pub back: Option<&'a Target>,
    /// Pages and how they are delivered; servers that serve from memory have no other content.
    pub pages: &'a [Page],
    /// Modelled media, for servers that make its segments.
    pub media: &'a [Media],
    /// A folder with the pages' files ([`crate::write_content`]), for servers that serve files.
    pub content: &'a Path,
    /// Certificate and key.
    pub identity: &'a Identity,
    /// The name in the certificate.
    pub server_name: &'a str,
    /// Whether browsers are among its clients. It then announces HTTP/3 where it offers it, as deployed
    /// servers do: Chromium limits its requests over HTTP/3 to servers that do not (its `ResourceScheduler`).
    pub has_browsers: bool,
    /// Worker threads or processes.
    pub threads: usize,
    /// The CPUs that it may use; all where empty.
    pub cpus: &'a [usize],
    /// Random seed.
    pub seed: u64,
}

/// A ready server; dropping it kills it.
#[derive(Debug)]
pub struct RunningServer<'n> {
    node: &'n Node,
    process: Process,
    adapter: Adapter,
    version: String,
    /// The programs of its processes, once it is ready.
    programs: BTreeSet<PathBuf>,
    ports: Vec<(Variant, u16)>,
    address: IpAddr,
    server_name: String,
    authority_pem: String,
    folder: PathBuf,
    _key: KeyFile,
    ready_after: Duration,
    /// CPU time of the node at the start of the measurement: user space, kernel.
    cpu_before_ns: (u64, u64),
    /// How long its threads had waited for a CPU at the start of the measurement.
    run_queue_before_ns: u64,
    /// How it sends.
    sends: Sending,
    /// How many connections it serves at the same time.
    concurrency: Option<u64>,
    out_of_memory: OutOfMemory,
    /// What is fed to it.
    feeds: Feeds,
}

/// The outcome of a server's run.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOutcome {
    /// Its cost during the run.
    pub report: ServerReport,
    /// How it ended early; `None` where it ran until it was stopped.
    pub died: Option<String>,
    /// The last lines of its logs.
    pub log_tail: String,
}

impl Adapter {
    /// Starts the server in a node and waits until every requested variant is ready.
    ///
    /// # Errors
    /// The run's outcome: *unsupported* where a variant is not supported here; *failed* with the server's
    /// last log lines where the server is missing, does not start, ends, or is not ready in time.
    pub fn start<'n>(&self, node: &'n Node, spec: &StartSpec<'_>) -> Result<RunningServer<'n>, Outcome> {
        let failed = |error: anyhow::Error| Outcome::failed(FailureKind::Server, format!("{error:#}"));
        let info = self.probe(spec.tool).map_err(failed)?;
        for variant in spec.variants {
            if let Support::Unsupported(reason) = info.support(*variant) {
                return Err(Outcome::Unsupported(reason));
            }
            if let Some(reason) = self.refuses(*variant, spec.pins, spec.pages) {
                return Err(Outcome::Unsupported(reason));
            }
        }
        if spec.back.is_none() && self.back.as_ref().is_some_and(|back| back.is_needed) {
            let problem = format!("the proxy {} requires a server behind it; add one", self.name);
            return Err(Outcome::failed(FailureKind::Server, problem));
        }
        if spec.back.is_none()
            && spec.media.iter().any(|media| media.feed().is_some())
            && let Some(Err(reason)) = &info.feed
        {
            return Err(Outcome::Unsupported(reason.clone()));
        }
        self.launch(node, spec, &info).map_err(failed)
    }

    fn launch<'n>(
        &self,
        node: &'n Node,
        spec: &StartSpec<'_>,
        info: &ProgramInfo,
    ) -> Result<RunningServer<'n>> {
        let made = fs::create_dir_all(spec.folder).and_then(|()| spec.folder.canonicalize());
        let folder = made.with_context(|| format!("cannot create {}", spec.folder.display()))?;
        let key = KeyFile::of(&folder);
        let identity = spec.identity.write(&folder)?;
        let address = IpAddr::V4(node.addresses().v4);
        let wanted: Vec<_> = self
            .variants
            .iter()
            .filter(|entry| spec.variants.contains(&entry.variant))
            .map(|entry| (entry.variant, entry.port))
            .collect();
        let ports = free_ports(node, address, &wanted)?;
        let privileges = Privileges::of_this_process();
        let mut variables = self.variables(spec, info, &folder, &identity, address, &ports, privileges)?;
        // A proxy has no content.
        let fed = if spec.back.is_none() { spec.media } else { &[] };
        variables.extend(feeds::variables(self, info, node, fed)?);
        write_files(&self.files, &self.folder, &folder, &info.version, &info.build, &variables)?;

        let mut command = self.fill(&self.start.command, &info.version, &info.build, &variables)?;
        let ready_text =
            self.fill(self.start.ready_says.as_slice(), &info.version, &info.build, &variables)?;
        let sends = self.sends(spec, info, &variables)?;
        let concurrency = self.concurrency(spec, info, &variables)?;
        if self.becomes_nobody(privileges) {
            command.splice(0..0, as_nobody());
        }
        let started = Instant::now();
        let process = spawn(node, &command, &folder, spec.cpus)?;
        let mut server = RunningServer {
            node,
            process,
            adapter: self.clone(),
            version: info.version.clone(),
            programs: BTreeSet::new(),
            ports,
            address,
            server_name: spec.server_name.to_owned(),
            authority_pem: spec.identity.authority_pem.clone(),
            folder,
            _key: key,
            ready_after: Duration::ZERO,
            cpu_before_ns: (0, 0),
            run_queue_before_ns: 0,
            sends,
            concurrency,
            out_of_memory: OutOfMemory::now(),
            feeds: Feeds::default(),
        };
        server.wait_until_ready(started, ready_text.first().map(String::as_str))?;
        let folders = (spec.content, server.folder.as_path());
        server.feeds = Feeds::start(node, self, info, &variables, fed, folders)?;
        server.feeds.wait_until_listed()?;
        server.ready_after = started.elapsed();
        server.programs = programs_of_group(server.process.pid());
        server.begin_measuring();
        Ok(server)
    }

    /// How it sends over the requested variants; unknown where two of them differ.
    fn sends(&self, spec: &StartSpec<'_>, info: &ProgramInfo, variables: &Variables) -> Result<Sending> {
        let mut all: [Vec<String>; 5] = Default::default();
        for entry in spec.variants.iter().filter_map(|variant| self.variant(*variant)) {
            for (known, template) in all.iter_mut().zip(&entry.sends) {
                let words = self.fill(template.as_slice(), &info.version, &info.build, variables)?;
                known.extend(words.into_iter().next().filter(|value| !known.contains(value)));
            }
        }
        Ok(Sending::of(all.map(|mut known| known.pop().filter(|_| known.is_empty()))))
    }

    /// How many connections it serves at the same time over the requested variants; the least of them.
    fn concurrency(
        &self,
        spec: &StartSpec<'_>,
        info: &ProgramInfo,
        variables: &Variables,
    ) -> Result<Option<u64>> {
        let mut least = None;
        for entry in spec.variants.iter().filter_map(|variant| self.variant(*variant)) {
            let words = self.fill(entry.concurrency.as_slice(), &info.version, &info.build, variables)?;
            let Some(text) = words.into_iter().next() else { continue };
            let number = text.trim().parse::<u64>().with_context(|| {
                let (server, variant) = (&self.name, entry.variant);
                format!(
                    "{server}: `concurrency` of {variant} is `{text}`; write a template of a whole number"
                )
            })?;
            least = Some(least.map_or(number, |least: u64| least.min(number)));
        }
        Ok(least)
    }

    /// Whether it must be started as a user other than root. For file permissions that user is still root.
    fn becomes_nobody(&self, privileges: Privileges) -> bool {
        match privileges {
            Privileges::Root => self.refuses_root,
            Privileges::RootOfUserNamespace => self.refuses_root || self.drops_privileges,
            Privileges::User => false,
        }
    }
}

impl RunningServer<'_> {
    /// Waits for a dying server, whose connections break before its process has ended.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn wait_for_end(&self, limit: Duration) -> Result<()> {
        self.process.wait_timeout(limit)?;
        Ok(())
    }

    /// Starts the measurement of its cost. Called when it is ready, and again just before the clients start.
    pub fn begin_measuring(&mut self) {
        self.cpu_before_ns = self.cpu_ns();
        self.run_queue_before_ns = self.node.run_queue_ns();
    }

    /// The target of clients for a variant; `None` where it was not requested.
    pub fn target(&self, variant: Variant) -> Option<Target> {
        let (_, port) = self.ports.iter().find(|(known, _)| *known == variant)?;
        Some(Target {
            variant,
            address: SocketAddr::new(self.address, *port),
            authority: format!("{}:{port}", self.server_name),
            server_name: self.server_name.clone(),
            trust: Trust::Authority(self.authority_pem.clone()),
        })
    }

    /// Its ports.
    pub fn ports(&self) -> Vec<u16> {
        self.ports.iter().map(|(_, port)| *port).collect()
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        matches!(self.process.wait_timeout(Duration::ZERO), Ok(None))
    }

    /// The access log, where the server writes one.
    pub fn access_log(&self) -> Option<AccessLogFile> {
        let log = self.adapter.access_log.clone()?;
        Some(AccessLogFile { path: self.folder.join(&log.file), log })
    }

    /// Stops it with its signal, and kills it where it does not end in time.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub fn stop(self) -> Result<ServerOutcome> {
        let died = self.process.wait_timeout(Duration::ZERO)?;
        let feed_fault = self.feeds.fault()?;
        let cpu_running_ns = self.cpu_ns();
        let run_queue_ns = self.node.run_queue_ns();
        let mut was_killed = false;
        if died.is_none() {
            self.signal();
            if self.process.wait_timeout(self.adapter.start.stop_within)?.is_none() {
                self.process.kill()?;
                was_killed = true;
            }
        }
        if died.is_some() && self.address.is_loopback() {
            kill_group(self.process.pid(), &self.programs);
        }
        // On this machine's network the node counts the server's children only after their end. Inside a lab
        // the reading before the end is better, because it excludes the shutdown.
        let cpu_ns = if self.address.is_loopback() { self.cpu_ns() } else { cpu_running_ns };
        let log_tail = self.last_lines();
        let access_log = self.adapter.access_log.as_ref().map(|log| log.file.as_str());
        let logs: Vec<&str> = [STDERR_LOG, STDOUT_LOG].into_iter().chain(access_log).collect();
        let log_fault = log::end_full(&self.folder, &logs, log::LIMIT_BYTES);
        Ok(ServerOutcome {
            report: ServerReport {
                name: self.adapter.name.clone(),
                version: self.version.clone(),
                ready_after_ns: u64::try_from(self.ready_after.as_nanos()).unwrap_or(u64::MAX),
                cpu_user_ns: cpu_ns.0.saturating_sub(self.cpu_before_ns.0),
                cpu_system_ns: cpu_ns.1.saturating_sub(self.cpu_before_ns.1),
                run_queue_ns: run_queue_ns.saturating_sub(self.run_queue_before_ns),
                was_killed,
                log_fault,
                sends: self.sends,
                concurrency: self.concurrency,
            },
            died: died
                .map(|exit| {
                    let memory = self.out_of_memory.since();
                    format!(
                        "the server {} ended early ({}{memory}){log_tail}",
                        self.adapter.name, exit.status
                    )
                })
                .or(feed_fault),
            log_tail,
        })
    }

    /// Waits until it answers a handshake on every port and, where the description has `ready_says`, until
    /// the server has logged it.
    fn wait_until_ready(&self, started: Instant, ready_text: Option<&str>) -> Result<()> {
        let limit = self.adapter.start.ready_within;
        let endpoint = Endpoint::new(self.address, &self.server_name, &self.authority_pem)?;
        let mut silent = self.ports.clone();
        loop {
            if let Some(exit) = self.process.wait_timeout(POLL)? {
                bail!("{} ended before it was ready ({}){}", self.name(), exit.status, self.last_lines());
            }
            silent = silent_ports(self.node, &endpoint, &silent)?;
            let unlogged = ready_text.filter(|text| !self.has_logged(text));
            if silent.is_empty() && unlogged.is_none() {
                return Ok(());
            }
            if started.elapsed() >= limit {
                let shown: Vec<_> =
                    silent.iter().map(|(variant, port)| format!("{variant} on port {port}")).collect();
                let lacks = match unlogged.filter(|_| silent.is_empty()) {
                    Some(text) => format!("it answers but has not logged `{text}`"),
                    None => format!("it does not answer {}", shown.join(", ")),
                };
                let (name, words) = (self.name(), self.last_lines());
                bail!("{name} was not ready within {} ms: {lacks}{words}", limit.as_millis());
            }
        }
    }

    fn has_logged(&self, text: &str) -> bool {
        [STDERR_LOG, STDOUT_LOG]
            .iter()
            .any(|name| log::begin(&self.folder.join(name)).is_ok_and(|log| log.contains(text)))
    }

    fn name(&self) -> String {
        format!("the server {} {}", self.adapter.name, self.version)
    }

    fn last_lines(&self) -> String {
        log::last_lines(&[&self.folder.join(STDERR_LOG), &self.folder.join(STDOUT_LOG)])
    }

    fn cpu_ns(&self) -> (u64, u64) {
        let (usage, fed) = (self.node.cpu_usage(), self.feeds.cpu_ns());
        (usage.user_ns.saturating_sub(fed.0), usage.system_ns.saturating_sub(fed.1))
    }

    fn signal(&self) {
        let pid = i32::try_from(self.process.pid()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // It was not waited for, so the PID is still its own, even if it has ended.
            let _ = rustix::process::kill_process(pid, self.adapter.start.stop_signal);
        }
    }
}

const STDOUT_LOG: &str = "stdout.log";
const STDERR_LOG: &str = "stderr.log";

fn spawn(node: &Node, command: &[String], folder: &Path, cpus: &[usize]) -> Result<Process> {
    let (program, args) = command.split_first().context("the start command is empty; write a program")?;
    let open = |name: &str| {
        let path = folder.join(name);
        log::open(&path).with_context(|| format!("cannot open {}", path.display()))
    };
    let mut program = Program::new(program)
        .args(args.iter().map(OsString::from))
        .stdout(Output::File(open(STDOUT_LOG)?))
        .stderr(Output::File(open(STDERR_LOG)?));
    program.cpus = cpus.to_vec();
    program.file_limit_bytes = Some(log::LIMIT_BYTES);
    program.open_files = Some(DESCRIPTORS_A_PROCESS.into());
    Ok(node.spawn(program)?)
}
