//! Runs a browser in a node, from its new profile to its end.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lab::{CpuUsage, Exit, Input, Lab, Node, Output, Process, Program};
use model::assignment::{Assignment, Trust};
use model::number::float;
use model::options::{BrowserOptions, Visit};
use model::player::Player;
use model::sample::FailureKind;
use model::url::Url;
use model::{Outcome, Variant};
use workload::formats::devtools::Recorder;
use workload::formats::har_export::{self, HarBrowser};
use workload::formats::page_load::{PageLoad, WantedPage};

use super::bidi::BiDi;
use super::command::Launch;
use super::description::{Browser, Protocol};
use super::devtools::{DevTools, piped};
use super::filmstrip::Filmstrip;
use super::playback::{self, Observed};
use super::profile::Profile;
use super::progress::{BrowserError, failed, interrupted};
use super::report::{LoadCost, cost_since, document_url};
use super::settle::settle;
use super::{chromium, firefox, players};
use crate::client::{ClientOutcome, Limits};
use crate::clients::run::{Begins, ExternalSpec};
use crate::log;
use crate::privileges::Privileges;
use crate::program::{ProgramInfo, Support};
use crate::servers::leftover::{kill_group, kill_writers, programs_of_group};

/// How long a browser may take until it can load a page, and the same as a multiple of the time for the load.
const START_LIMIT: Duration = Duration::from_secs(60);
const START_FACTOR: u32 = 10;
/// How long a page may load at least: the limit of a run is for its network, and a browser computes.
const LEAST_LIMIT: Duration = Duration::from_secs(60);
/// How long the load of a page may take that is recorded.
const RECORD_LIMIT: Duration = Duration::from_secs(60);
const NANOS_PER_S: f64 = 1e9;
/// How often a starting browser is looked for.
const POLL: Duration = Duration::from_millis(20);
/// The file of the profile in which Firefox names the port of BiDi.
const PORT_FILE: &str = "WebDriverBiDiServer.json";
/// How long a browser may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The load as HTTP Archive in the browser's folder.
const HAR: &str = "page.har";
/// The picture of the page there.
const PICTURE: &str = "page.jpeg";

/// What is observed of a URL outside a study.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    /// The variant to force; `None` for what browser and server choose.
    pub variant: Option<Variant>,
    /// How long the page's videos are watched once the page is loaded; `None` for the page alone.
    pub watched: Option<Duration>,
}

impl Browser {
    /// Loads the page of an assignment in a node. All processes of the browser have ended when this returns.
    ///
    /// # Errors
    /// Faults of the tool only: a file cannot be written. A browser's failure is an outcome.
    pub fn run(
        &self,
        node: &Node,
        assignment: &Assignment,
        limits: &Limits,
        spec: &ExternalSpec<'_>,
    ) -> Result<ClientOutcome> {
        let ended = |outcome: Outcome| Ok(ClientOutcome { outcome, ..ClientOutcome::empty() });
        let info = match self.usable(assignment, spec.tool) {
            Ok(info) => info,
            Err(outcome) => return ended(outcome),
        };
        let made = fs::create_dir_all(spec.folder).and_then(|()| spec.folder.canonicalize());
        let folder = made.with_context(|| format!("cannot create {}", spec.folder.display()))?;
        let profile = Profile::create()?;
        let launch = Launch::of(assignment, spec, &profile.path);
        let command = match self.start_command(&info, &launch) {
            Ok(command) => command,
            Err(error) => return ended(Outcome::failed(FailureKind::Client, format!("{error:#}"))),
        };
        let options = assignment.options.browser;
        let running =
            Running { node, limits, spec, browser: self, profile: &profile, launch: &launch, options };
        if let Some(player) = assignment.workload.player() {
            return self.run_player(player, &running, command, &info, assignment, &folder);
        }
        let page = Browser::page(&assignment.workload)?;
        let path = page.resources.first().map_or("/", |document| document.path.as_str());
        let document = match document_url(assignment, path) {
            Ok(document) => document,
            Err(problem) => return ended(Outcome::failed(FailureKind::Client, problem)),
        };
        let loaded = match running.load(command, &document.to_string(), assignment.clock.run_start_ns)? {
            Ok(loaded) => loaded,
            Err(outcome) => return ended(outcome),
        };
        let Loaded { mut load, cost, picture, filmstrip } = loaded;
        load.events.is_sandboxed = self.has_sandbox(launch.privileges);
        self.write_load(&folder, &load, &info, picture.as_deref())?;
        filmstrip
            .write(&folder, load.began_unix_ns.map_or(0.0, |ns| float(ns) / NANOS_PER_S))
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        let wanted = WantedPage {
            group: assignment.group,
            resources: &WantedPage::resources_of(page, &document),
            document: &document,
            http: assignment.target.variant.http(),
        };
        Ok(self.outcome_of(&info.version, load, &wanted, assignment, cost))
    }

    /// Plays the video of an assignment in the page of its player.
    fn run_player(
        &self,
        player: &Player,
        running: &Running<'_>,
        command: Vec<String>,
        info: &ProgramInfo,
        assignment: &Assignment,
        folder: &Path,
    ) -> Result<ClientOutcome> {
        let ended = |outcome: Outcome| Ok(ClientOutcome { outcome, ..ClientOutcome::empty() });
        let Some(play) = &player.browser else {
            let reason = players::refuses(&self.name, player).unwrap_or_default();
            return ended(Outcome::Unsupported(reason));
        };
        let document = match document_url(assignment, &players::page_path(play.library)) {
            Ok(document) => document,
            Err(problem) => return ended(Outcome::failed(FailureKind::Client, problem)),
        };
        let options = playback::options(player, play);
        let limit = running.limits.time.max(LEAST_LIMIT + playback::least_time(player));
        let run_start_ns = assignment.clock.run_start_ns;
        let observed = running.to_the_end(command, |process| {
            running.in_tab(process, |tab| {
                let before = running.settle()?;
                let recorder = Recorder::new(run_start_ns);
                let (told, outcome) = tab.play(&document.to_string(), &options, recorder, limit)?;
                let cost = cost_since(before, running.usage());
                let picture = tab.picture();
                let origin_ns = told.origin_ns.saturating_sub(run_start_ns);
                Ok((told.log, origin_ns, cost, outcome, picture))
            })
        })?;
        let (mut observed, picture, exit) = match observed {
            Ok((((log, origin_ns, cost, outcome, picture), load), exit)) => {
                (Observed { load, log, origin_ns, cost, outcome }, picture, exit)
            }
            Err(outcome) => return ended(outcome),
        };
        observed.cost.max_resident_bytes = exit.max_resident_bytes;
        observed.load.events.is_sandboxed = self.has_sandbox(running.launch.privileges);
        self.write_load(folder, &observed.load, info, picture.as_deref())?;
        Ok(self.outcome_of_playback(&info.version, observed, (player, play), &document, assignment))
    }

    /// Writes a load as HTTP Archive, and the picture of its page.
    fn write_load(
        &self,
        folder: &Path,
        load: &PageLoad,
        info: &ProgramInfo,
        picture: Option<&[u8]>,
    ) -> Result<()> {
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes);
        write(HAR, self.har_of(load, info).as_bytes())
            .and_then(|()| picture.map_or(Ok(()), |picture| write(PICTURE, picture)))
            .with_context(|| format!("cannot write to {}", folder.display()))
    }

    /// Loads a URL once on this machine's own network and returns the load as HTTP Archive.
    ///
    /// # Errors
    /// The browser is not installed, lacks the variant, cannot load the URL, or used another version than the
    /// variant's; with the reason.
    pub fn record(
        &self,
        url: &Url,
        observation: &Observation,
        trust: &Trust,
        tool: &Path,
        stop: &AtomicBool,
    ) -> Result<String> {
        let info = self.probe(tool)?;
        if let Some(variant) = observation.variant
            && let Support::Unsupported(reason) = info.support(variant)
        {
            return Err(anyhow!(reason));
        }
        let profile = Profile::create()?;
        let log = profile.folder().join("browser.log");
        let lab = Lab::loopback()?;
        let spec = ExternalSpec {
            folder: profile.folder(),
            log: &log,
            tool,
            key_hash: "",
            is_outside: true,
            has_names: false,
            stop,
            begins: Begins::UNHEARD,
        };
        let launch = Launch {
            profile: &profile.path,
            tool,
            privileges: Privileges::of_this_process(),
            variant: observation.variant,
            visit: Visit::First,
            authority: format!("{}:{}", url.host, url.port),
            targets: Vec::new(),
            key_hash: "",
            is_outside: true,
            trust,
        };
        let command = self.start_command(&info, &launch)?;
        let limits = Limits { time: RECORD_LIMIT, bytes: u64::MAX, cpus: Vec::new() };
        let options = BrowserOptions::default();
        let (node, browser) = (lab.client(), self);
        let (limits, spec, launch) = (&limits, &spec, &launch);
        let running = Running { node, limits, spec, browser, profile: &profile, launch, options };
        let text = url.to_string();
        let loaded = match (observation.watched, self.protocol) {
            (None, _) => running.load(command, &text, 0)?.map(|loaded| loaded.load),
            (Some(_), Protocol::BiDi) => {
                return Err(anyhow!("{} cannot watch videos; use chromium", self.name));
            }
            (Some(watched), Protocol::DevTools) => {
                let watch = |tab: &mut chromium::Tab<'_>| {
                    tab.load(&text, Recorder::new(0), RECORD_LIMIT)?;
                    tab.watch(watched)
                };
                running
                    .to_the_end(command, |process| running.in_tab(process, watch))?
                    .map(|(((), load), _)| load)
            }
        };
        match loaded {
            Ok(load) => {
                let http = observation.variant.map(Variant::http);
                match http.and_then(|http| load.request_in_other_version(url, http)) {
                    Some((request, protocol)) => Err(anyhow!("the response for {request} used {protocol}")),
                    None => Ok(self.har_of(&load, &info)),
                }
            }
            Err(Outcome::Failed(failure)) => Err(anyhow!(failure.reason)),
            Err(_) => Err(anyhow!("{} cannot load {url}", self.name)),
        }
    }

    fn har_of(&self, load: &PageLoad, info: &ProgramInfo) -> String {
        let h123_version = env!("CARGO_PKG_VERSION");
        har_export::write(load, &HarBrowser { name: &self.name, version: &info.version, h123_version })
    }

    /// The installed browser, if it can do what the assignment wants.
    fn usable(&self, assignment: &Assignment, tool: &Path) -> Result<ProgramInfo, Outcome> {
        // A browser that is not installed is part of the environment, like a variant that a server lacks.
        let info = self.probe(tool).map_err(|error| Outcome::Unsupported(format!("{error:#}")))?;
        match info.support(assignment.target.variant) {
            Support::Supported => Ok(info),
            Support::Unsupported(reason) => Err(Outcome::Unsupported(reason)),
        }
    }
}

/// The surroundings of a browser during its run.
struct Running<'a> {
    node: &'a Node,
    limits: &'a Limits,
    spec: &'a ExternalSpec<'a>,
    browser: &'a Browser,
    profile: &'a Profile,
    launch: &'a Launch<'a>,
    options: BrowserOptions,
}

impl Running<'_> {
    /// Starts the browser, loads the URL and ends the browser.
    fn load(&self, command: Vec<String>, url: &str, run_start_ns: u64) -> Result<Result<Loaded, Outcome>> {
        let reach = match self.browser.protocol {
            Protocol::DevTools => None,
            Protocol::BiDi => match self.launch.reach(&self.browser.name) {
                Ok(reach) => Some(reach),
                Err(problem) => return Ok(Err(Outcome::Unsupported(problem))),
            },
        };
        let loaded = self.to_the_end(command, |process| match &reach {
            None => self.load_by_devtools(process, url, run_start_ns),
            Some(reach) => self.load_by_bidi(process, reach, url, run_start_ns),
        })?;
        Ok(loaded.map(|(mut loaded, exit)| {
            loaded.cost.max_resident_bytes = exit.max_resident_bytes;
            loaded
        }))
    }

    /// Starts the browser, has it do a job and ends it.
    fn to_the_end<T>(
        &self,
        command: Vec<String>,
        job: impl FnOnce(&mut Process) -> Result<Result<T, Outcome>>,
    ) -> Result<Result<(T, Exit), Outcome>> {
        let mut process = match self.start(command)? {
            Ok(process) => process,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let done = job(&mut process)?;
        // Its helpers end with it, but later; on this machine's network no namespace ends them.
        let programs = programs_of_group(process.pid());
        let exit = match process.wait_timeout(if done.is_ok() { END_LIMIT } else { Duration::ZERO })? {
            Some(exit) => exit,
            None => process.kill()?,
        };
        kill_group(process.pid(), &programs);
        kill_writers(self.spec.log);
        Ok(match done {
            Ok(done) => Ok((done, exit)),
            Err(Outcome::Failed(failure)) => {
                let words = log::last_lines(&[self.spec.log]);
                Err(Outcome::failed(failure.kind, format!("{}{words}", failure.reason)))
            }
            Err(outcome) => Err(outcome),
        })
    }

    /// Has a tab of Chromium do a job, and closes it; what was done, and what was recorded.
    fn in_tab<T>(
        &self,
        process: &mut Process,
        job: impl FnOnce(&mut chromium::Tab<'_>) -> Result<T, Outcome>,
    ) -> Result<Result<(T, PageLoad), Outcome>> {
        let mut devtools = devtools_of(process)?;
        let tab = chromium::Tab::open(&mut devtools, self.options, self.ready_by(), self.spec.stop);
        let mut tab = match tab {
            Ok(tab) => tab,
            Err(error) => return Ok(Err(failed(error))),
        };
        Ok(job(&mut tab).map(|done| (done, tab.close().0)))
    }

    fn start(&self, command: Vec<String>) -> Result<Result<Process, Outcome>> {
        let log = self.spec.log;
        let stderr = log::open(log).with_context(|| format!("cannot open {}", log.display()))?;
        let (words, stdin, stdout) = match self.browser.protocol {
            Protocol::DevTools => (piped(command), Input::Pipe, Output::Pipe),
            Protocol::BiDi => (command, Input::Null, Output::Null),
        };
        let (program, args) = words.split_first().context("the command is empty; write a program")?;
        let mut program =
            Program::new(program).args(args).stdin(stdin).stdout(stdout).stderr(Output::File(stderr));
        program.cpus.clone_from(&self.limits.cpus);
        program.env = self.profile.environment();
        Ok(self.node.spawn(program).map_err(|error| {
            let reason = format!("the browser cannot be started: {:#}", anyhow!(error));
            Outcome::failed(FailureKind::Client, reason)
        }))
    }

    fn load_by_devtools(
        &self,
        process: &mut Process,
        url: &str,
        run_start_ns: u64,
    ) -> Result<Result<Loaded, Outcome>> {
        let mut devtools = devtools_of(process)?;
        let (ready_by, visit) = (self.ready_by(), self.launch.visit);
        if !visit.is_first()
            && let Err(outcome) = self.visit_first(&mut devtools, ready_by, url)
        {
            return Ok(Err(outcome));
        }
        let mut tab = match chromium::Tab::open(&mut devtools, self.options, ready_by, self.spec.stop) {
            Ok(tab) => tab,
            Err(error) => return Ok(Err(failed(error))),
        };
        if matches!(visit, Visit::Repeat | Visit::Upgrade)
            && let Err(error) = tab.ignore_cache()
        {
            return Ok(Err(failed(error)));
        }
        let load = |limit| tab.load(url, Recorder::new(run_start_ns), limit);
        let cost = match self.cost_of(load) {
            Ok(cost) => cost,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let picture = tab.picture();
        let (load, filmstrip) = tab.close();
        Ok(Ok(Loaded { load, cost, picture, filmstrip }))
    }

    /// Makes the visit before the measured one, and leaves the page.
    fn visit_first(&self, devtools: &mut DevTools, ready_by: Instant, url: &str) -> Result<(), Outcome> {
        let first = |outcome: Outcome| match outcome {
            Outcome::Failed(failure) => {
                Outcome::failed(failure.kind, format!("first visit: {}", failure.reason))
            }
            other => other,
        };
        let options = BrowserOptions { filmstrip: false, ..self.options };
        let mut tab = chromium::Tab::open(devtools, options, ready_by, self.spec.stop).map_err(failed)?;
        tab.load(url, Recorder::new(0), self.limits.time.max(LEAST_LIMIT)).map_err(first)?;
        let load = tab.leave().map_err(failed)?;
        if self.launch.visit == Visit::Upgrade && !load.announces_http3 {
            let reason = "first visit: no response announced HTTP/3 (Alt-Svc); the server has to offer it";
            return Err(Outcome::failed(FailureKind::WrongVersion, reason));
        }
        Ok(())
    }

    fn load_by_bidi(
        &self,
        process: &Process,
        reach: &firefox::Reach<'_>,
        url: &str,
        run_start_ns: u64,
    ) -> Result<Result<Loaded, Outcome>> {
        let ready_by = self.ready_by();
        let port = match self.port_of(process, ready_by)? {
            Ok(port) => port,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let stream = self.node.enter(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)))?;
        let opened = stream
            .map_err(|_| BrowserError::Closed)
            .and_then(BiDi::open)
            .and_then(|bidi| firefox::Tab::open(bidi, reach, ready_by, self.spec.stop));
        let mut tab = match opened {
            Ok(tab) => tab,
            Err(error) => return Ok(Err(failed(error))),
        };
        let cost = match self.cost_of(|limit| tab.load(url, run_start_ns, limit)) {
            Ok(cost) => cost,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let picture = tab.picture();
        let filmstrip = Filmstrip::default();
        Ok(Ok(Loaded { load: tab.close().finish(), cost, picture, filmstrip }))
    }

    /// The port on which a browser takes commands, once it has written it into its profile.
    fn port_of(&self, process: &Process, ready_by: Instant) -> Result<Result<u16, Outcome>> {
        let file = self.launch.profile.join(PORT_FILE);
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            // Until the file is complete, it is no JSON.
            let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let port = value["ws_port"].as_u64().and_then(|port| u16::try_from(port).ok());
            if let Some(port) = port {
                return Ok(Ok(port));
            }
            if process.wait_timeout(POLL)?.is_some() {
                return Ok(Err(failed(BrowserError::Closed)));
            }
            if Instant::now() >= ready_by {
                return Ok(Err(failed(BrowserError::Late)));
            }
            if self.spec.stop.load(Ordering::Relaxed) {
                return Ok(Err(interrupted()));
            }
        }
    }

    /// When a browser must be able to load a page. On a busy machine the start alone takes seconds.
    fn ready_by(&self) -> Instant {
        Instant::now() + START_LIMIT.min(self.limits.time.saturating_mul(START_FACTOR))
    }

    /// Loads the page; what that cost the browser.
    fn cost_of(&self, load: impl FnOnce(Duration) -> Result<(), Outcome>) -> Result<LoadCost, Outcome> {
        let before = self.settle()?;
        load(self.limits.time.max(LEAST_LIMIT))?;
        Ok(cost_since(before, self.usage()))
    }

    /// Waits until the browser is idle, says that it begins, and returns its usage then.
    fn settle(&self) -> Result<(CpuUsage, u64), Outcome> {
        settle(|| self.node.cpu_usage(), self.spec.stop);
        (self.spec.begins.0)()?;
        Ok(self.usage())
    }

    /// CPU time of the node, and how long its threads waited for a CPU.
    fn usage(&self) -> (CpuUsage, u64) {
        (self.node.cpu_usage(), self.node.run_queue_ns())
    }
}

/// The pipe of a browser.
fn devtools_of(process: &mut Process) -> Result<DevTools> {
    let commands = process.take_stdin().context("the browser has no standard input")?;
    let messages = process.take_stdout().context("the browser has no standard output")?;
    DevTools::new(commands, messages).context("cannot start a thread")
}

/// A page that was loaded.
struct Loaded {
    load: PageLoad,
    cost: LoadCost,
    /// What it looks like, as JPEG.
    picture: Option<Vec<u8>>,
    filmstrip: Filmstrip,
}
