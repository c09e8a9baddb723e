//! `h123 lab`: any command inside an emulated network.

mod checks;
mod cross;
mod link_text;
mod pcap;
pub(crate) mod servers;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args;
use drive::Adapter;
use lab::registry::{self, LabEntry, Registration};
use lab::{Input, Lab, LabError, LabSpec, Node, Process, Program, Terminal};
use model::plan::DIRECT;
use model::topology::CrossTraffic;
use model::{Backend, Pins, Topology};
use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::exit::{Exit, UsageError};

use self::link_text::describe_link;
use self::pcap::Pcap;
use self::servers::{Kitchen, Wanted, addresses_of};
use crate::library::{network_of, topology_of};
use crate::name_service::lab as lab_names;
use crate::terminal::{note, print};

/// The exit statuses of shells for a command that is not there, and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// A command that was told to end gets so long.
const GRACE: Duration = Duration::from_secs(5);
/// What shells add to a signal's number.
const SIGNALLED: i32 = 128;

/// Run any command inside an emulated network: two nodes and a network between them, or a whole topology
#[derive(Args, Debug)]
#[command(
    after_help = "Inside, /etc/hosts names every node: `client`, `server` (IPv4) and `client-v6`, `server-v6` (IPv6).
The command's environment has H123_LAB (the lab), H123_NODE (its node), H123 (this program, for `$H123 load`), with --serve
H123_CA (the file of the authority that signed the servers' certificates), and with --pcap SSLKEYLOGFILE and QLOGDIR. Ctrl-C goes to
the command.

Examples:
  h123 lab north-carolina -- ping -c 3 server
  h123 lab north-carolina --serve -- sh -c 'curl --cacert $H123_CA https://server:8442/small/'
  h123 lab dsl --serve nginx -- bash
  h123 lab dsl --serve --dns 20ms -- sh -c '$H123 trace https://server:8443/small/ --cacert $H123_CA'
  h123 lab campus --node client -- ping -c 3 web-server
  h123 lab proxied --network proxy-server=tokyo --serve -- bash
  h123 lab shared --cross --serve -- curl --output /dev/null http://server:8080/bytes/1000000
  h123 lab campus --also 'video-server=tcpdump -w video.pcap' -- ping -c 3 video-server
  h123 lab tokyo --node server -- ip address
  h123 lab dsl --serve --pcap dsl.pcapng -- sh -c 'curl --cacert $H123_CA https://server:8442/small/'
  h123 lab sites --describe

Exit status: the command's own; 128 and the signal's number where a signal ended it; 127 where it is not there, 126
where it cannot be executed; 1 where the lab failed, 2 for wrong usage"
)]
pub(crate) struct LabArgs {
    /// A network from networks/, between the nodes `client` and `server`; a topology from topologies/, or the path of its
    /// .toml file; or `direct`, which is this machine and its loopback
    #[arg(required_unless_present_any = ["list", "clean"])]
    name: Option<String>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// The node that the command runs in (default: `client`, or the first)
    #[arg(long)]
    node: Option<String>,
    /// Put another network in the place of a link's; the link may be left out where only one has a network
    #[arg(long, value_name = "[LINK=]NETWORK")]
    network: Vec<String>,
    /// Run another command beside, by the shell `sh`, until COMMAND has ended: cross-traffic, a capture
    #[arg(long, value_name = "NODE=SHELL_COMMAND")]
    also: Vec<String>,
    /// Run the topology's cross-traffic beside, as studies do
    #[arg(long)]
    cross: bool,
    /// Start a server from servers/ in the node `server`, or in another as NODE=SERVER; without a value the origin
    #[arg(long, value_name = "[NODE=]SERVER", num_args = 0..=1, default_missing_value = "origin")]
    serve: Vec<String>,
    /// Resolve names over DNS, by a name server that is so far away, such as 20ms, in place of /etc/hosts
    #[arg(long, value_name = "RTT")]
    dns: Option<String>,
    /// Decides which packets are lost
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What emulates: `user-space`, the lab's own emulator, or `netem`, the kernel's
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: Backend,
    /// Write what is on the emulated links to this file, for Wireshark, lost packets with the reason as a comment; the
    /// secrets of TLS and QUIC go to FILE.keys, where the command heeds SSLKEYLOGFILE, and what QUIC did to the folder
    /// FILE.qlog, where it heeds QLOGDIR
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Run the command as an ordinary user and not as root of the lab: what browsers want, and servers that refuse root
    #[arg(long)]
    as_user: bool,
    /// Say what nodes and links there are and what they do, and run nothing
    #[arg(long, conflicts_with_all = ["command", "serve", "also", "cross", "pcap"])]
    describe: bool,
    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
    /// List the labs that run, and what killed ones left
    #[arg(long, conflicts_with_all = ["name", "command", "serve", "pcap", "describe", "clean"])]
    list: bool,
    /// Remove what killed labs left
    #[arg(long, conflicts_with_all = ["name", "command", "serve", "pcap", "describe"])]
    clean: bool,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, missing rights, or a kernel that refuses a step of building the lab.
pub(crate) fn run(args: &LabArgs) -> Result<Exit> {
    let Some(name) = &args.name else {
        return if args.clean { clean() } else { list() };
    };
    let mut topology = match name.as_str() {
        DIRECT => None,
        name => Some(changed(topology_of(name)?, &args.network)?),
    };
    let known: Vec<String> = match &topology {
        Some(topology) => topology.nodes.iter().map(|node| node.name.clone()).collect(),
        None => ["client", "server"].map(str::to_owned).into(),
    };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let node = args.node.clone().unwrap_or_else(|| default_node(&known).to_owned());
    let mut servers = args.serve.iter().map(|text| Wanted::read(text)).collect::<Result<Vec<_>>>()?;
    let beside = args.also.iter().map(|text| beside(text)).collect::<Result<Vec<_>>>()?;
    for node in [node.as_str()]
        .into_iter()
        .chain(servers.iter().map(|(wanted, _)| wanted.node.as_str()))
        .chain(beside.iter().map(|(node, _)| node.as_str()))
    {
        check_node(node, &known)?;
    }
    if let Some(rtt) = &args.dns {
        let asking: Vec<&str> =
            [node.as_str()].into_iter().chain(beside.iter().map(|(node, _)| node.as_str())).collect();
        lab_names::add(topology.as_mut(), rtt, &asking)?;
    }
    let cross = if args.cross { cross::flows(name, topology.as_ref())? } else { &[] };
    if let Some(topology) = &topology {
        cross::add_servers(topology, cross, &mut servers)?;
    }
    checks::backend(args.backend, !args.network.is_empty(), args.pcap.is_some(), topology.as_ref())?;
    checks::places(topology.as_ref(), &servers)?;
    if args.describe {
        print(&topology.as_ref().map_or(DIRECT_IN_WORDS.to_owned(), model::topology::describe))?;
        return Ok(Exit::Done);
    }
    let Some((program, command_args)) = args.command.split_first() else {
        return Err(
            UsageError(format!("found no command, expected one as in `h123 lab {name} -- bash`")).into()
        );
    };
    let mut command = match args.as_user {
        true => as_user().args(args.command.iter().cloned()),
        false => Program::new(program).args(command_args.iter().cloned()),
    };
    command = command.stdin(Input::Inherit);
    command.is_foreground = true;
    run_inside(
        args,
        name,
        topology.as_ref(),
        Inside { node: &node, servers: &servers, beside, cross, command },
    )
}

/// What to add to the error of a command line whose command has no `--` before it.
pub(crate) fn hint(error: &clap::Error, subcommand: Option<&str>) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(found)))
            if subcommand == Some("lab") && !found.starts_with('-') =>
        {
            format!("; the command comes after `--`, as in `h123 lab lan -- {found} …`")
        }
        _ => String::new(),
    }
}

/// Starts a program as an ordinary user: the caller, or `nobody` where that is root, by a user namespace of its own.
fn as_user() -> Program {
    let own = rustix::process::geteuid().as_raw();
    let (user, group) = if own == 0 { (NOBODY, NOBODY) } else { (own, rustix::process::getegid().as_raw()) };
    let map = [format!("--map-user={user}"), format!("--map-group={group}")];
    Program::new("unshare").args(["--user"]).args(map).args(["--"])
}

/// What runs in a lab.
struct Inside<'a> {
    /// The command's node.
    node: &'a str,
    servers: &'a [(Wanted, Adapter)],
    /// Nodes and shell commands.
    beside: Vec<(String, String)>,
    cross: &'a [CrossTraffic],
    command: Program,
}

fn run_inside(args: &LabArgs, name: &str, topology: Option<&Topology>, inside: Inside<'_>) -> Result<Exit> {
    let Inside { node, servers, mut beside, cross, mut command } = inside;
    let pcap = args.pcap.as_deref().map(|file| Pcap::new(file, topology)).transpose()?;
    let registration = Registration::new(name)?;
    let pins = Pins::default();
    let lab = build(args, topology, &pins)?;
    let kitchen = match servers.is_empty() {
        true => None,
        false => Some(Kitchen::new(registration.folder(), &pins, args.seed)?),
    };
    let running = start_servers(&lab, kitchen.as_ref(), servers, args.quiet)?;
    if let Some(topology) = topology {
        beside.extend(cross::commands(topology, cross, servers, &running)?);
    }
    let _names = match topology.filter(|_| args.dns.is_some()) {
        Some(topology) => Some(lab_names::start(&lab, topology, registration.folder(), servers, &running)?),
        None => None,
    };
    if let Some(pcap) = &pcap {
        lab.begin_capture(&pcap.file)?;
    }
    lab.begin_measuring()?;
    let tool = std::env::current_exe().context("this program's own path is not known")?;
    let environment = |node: &str| {
        let mut environment = vec![
            ("H123_LAB".into(), name.into()),
            ("H123_NODE".into(), node.into()),
            ("H123".into(), tool.clone().into_os_string()),
        ];
        let authority = kitchen.as_ref().map(|kitchen| ("H123_CA".into(), (&kitchen.authority_file).into()));
        environment.extend(authority);
        environment.extend(pcap.iter().flat_map(Pcap::environment));
        environment
    };
    let mut others = Vec::new();
    for (node, shell_command) in &beside {
        let mut program = Program::new("sh").args(["-c", shell_command]).stdout(lab::Output::Null);
        program.env = environment(node);
        others.push(node_of(&lab, node)?.spawn(program)?);
    }
    command.env = environment(node);
    let exit = run_command(node_of(&lab, node)?, command)?;
    note_ended(&beside, &others, args.quiet)?;
    drop(others);
    lab.end_capture()?;
    for report in lab.reports()? {
        note(args.quiet, &describe_link(&report));
    }
    if let Some(pcap) = &pcap {
        note(args.quiet, &pcap.describe());
    }
    for server in running {
        if let Some(died) = server.stop()?.died {
            note(args.quiet, &format!("h123: {died}"));
        }
    }
    Ok(exit)
}

/// The lab, whose nodes know each other by name.
fn build(args: &LabArgs, topology: Option<&Topology>, pins: &Pins) -> Result<Lab> {
    let Some(topology) = topology else { return Ok(Lab::loopback()?) };
    // From here on a user without privileges is root in a namespace of its own, where no other thread may exist yet.
    lab::probe().emulation().and_then(|_| lab::enter())?;
    let (seed, backend) = (args.seed, args.backend);
    let lab = Lab::build(LabSpec { topology, pins, seed, emulator_cpu: None, backend })?;
    lab_names::cover_files(&lab, topology)?;
    Ok(lab)
}

/// Says which of the commands beside failed before the command ended.
fn note_ended(beside: &[(String, String)], processes: &[Process], quiet: bool) -> Result<()> {
    for ((node, shell_command), process) in beside.iter().zip(processes) {
        if let Some(failed) = process.wait_timeout(Duration::ZERO)?.filter(|exit| !exit.status.success()) {
            note(
                quiet,
                &format!("h123: --also {node}={shell_command}: ended before the command ({})", failed.status),
            );
        }
    }
    Ok(())
}

/// The user `nobody` of every Linux.
const NOBODY: u32 = 65_534;

/// What `direct` is.
const DIRECT_IN_WORDS: &str =
    "direct: this machine and its loopback; nothing is emulated, and there are no nodes' names";

/// The topology with the networks of the command line.
fn changed(mut topology: Topology, networks: &[String]) -> Result<Topology> {
    for text in networks {
        let (link, network) = match text.split_once('=') {
            Some((link, network)) => (Some(link), network),
            None => (None, text.as_str()),
        };
        let replaced = topology.replace_network(link, &network_of(network)?);
        replaced.map_err(|problem| UsageError(format!("--network: {problem}")))?;
    }
    topology.address_changes().map_err(|error| UsageError(error.to_string()))?;
    Ok(topology)
}

fn default_node<'n>(known: &[&'n str]) -> &'n str {
    known.iter().copied().find(|node| *node == "client").or(known.first().copied()).unwrap_or("client")
}

/// `NODE=SHELL_COMMAND`.
fn beside(text: &str) -> Result<(String, String)> {
    let parts = text.split_once('=').filter(|(_, command)| !command.trim().is_empty());
    let (node, command) = parts.ok_or_else(|| {
        UsageError(format!(
            "--also: found `{text}`, expected NODE=SHELL_COMMAND such as `client=ping server`"
        ))
    })?;
    Ok((node.to_owned(), command.to_owned()))
}

fn check_node(found: &str, known: &[&str]) -> Result<()> {
    if known.contains(&found) {
        return Ok(());
    }
    Err(UsageError(model::named::unknown(found, "a node of this lab", known)).into())
}

fn node_of<'l>(lab: &'l Lab, name: &str) -> Result<&'l Node> {
    lab.node(name).with_context(|| format!("the lab was built without its node `{name}`"))
}

fn start_servers<'l>(
    lab: &'l Lab,
    kitchen: Option<&Kitchen>,
    servers: &[(Wanted, Adapter)],
    quiet: bool,
) -> Result<Vec<drive::RunningServer<'l>>> {
    let Some(kitchen) = kitchen else { return Ok(Vec::new()) };
    let mut running = Vec::new();
    for (wanted, adapter) in servers {
        let server = kitchen.start(node_of(lab, &wanted.node)?, adapter)?;
        note(quiet, &format!("{} in the node {}:", wanted.server, wanted.node));
        addresses_of(&server).iter().for_each(|line| note(quiet, line));
        running.push(server);
    }
    note(quiet, &format!("clients may trust {} (--cacert $H123_CA)", kitchen.authority_file.display()));
    Ok(running)
}

/// Runs the command to its end with the terminal's signals its own.
fn run_command(node: &Node, command: Program) -> Result<Exit> {
    let name = command.program.to_string_lossy().into_owned();
    let mut told = Told::watch()?;
    let _terminal = Terminal::remember();
    let process = match node.spawn(command) {
        Ok(process) => process,
        Err(LabError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            note(false, &format!("h123: found no command `{name}`, expected a program in PATH or a path"));
            return Ok(Exit::Command(NOT_FOUND));
        }
        Err(LabError::System { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            note(false, &format!("h123: `{name}` cannot be executed ({source})"));
            return Ok(Exit::Command(NOT_EXECUTABLE));
        }
        Err(error) => return Err(error.into()),
    };
    let status = told.wait_for(&process)?.status;
    let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0));
    Ok(Exit::Command(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// The signals that end this tool while a command runs.
///
/// What the terminal sends reaches the command by itself, and is the command's to take or leave; the others are handed on.
struct Told {
    streams: [UnixStream; 2],
}

impl Told {
    fn watch() -> Result<Told> {
        let context = "cannot watch for signals";
        for signal in [SIGINT, SIGQUIT] {
            // A handler, unlike a signal that is ignored, is not inherited by the command.
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).context(context)?;
        }
        let stream = |signal| -> Result<UnixStream> {
            let (stream, inside) = UnixStream::pair().context(context)?;
            signal_hook::low_level::pipe::register(signal, inside).context(context)?;
            Ok(stream)
        };
        Ok(Told { streams: [stream(SIGTERM)?, stream(SIGHUP)?] })
    }

    fn wait_for(&mut self, process: &Process) -> Result<lab::Exit> {
        let mut deadline: Option<Instant> = None;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
            let mut watched = [process.as_fd(), self.streams[0].as_fd(), self.streams[1].as_fd()]
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            match rustix::event::poll(&mut watched, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("waiting for the command"),
            }
            let is_told = [1, 2].map(|index| !watched[index].revents().is_empty());
            if let Some(exit) = process.wait_timeout(Duration::ZERO)? {
                return Ok(exit);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(process.kill()?);
            }
            for (index, signal) in
                [rustix::process::Signal::TERM, rustix::process::Signal::HUP].into_iter().enumerate()
            {
                if is_told[index] {
                    // One byte or more, one for each time.
                    let _ = std::io::Read::read(&mut self.streams[index], &mut [0; 64]);
                    process.signal(signal);
                    deadline.get_or_insert(Instant::now() + GRACE);
                }
            }
        }
    }
}

fn list() -> Result<Exit> {
    let labs = registry::list()?;
    if labs.is_empty() {
        print("no lab runs, and killed ones left nothing")?;
    }
    for lab in &labs {
        let state = if lab.is_running {
            format!("running for {}", ago(lab))
        } else {
            "killed; `h123 lab --clean` or the next lab removes its files".to_owned()
        };
        print(&format!("{:>7}  {}  {state}  {}", lab.pid, lab.what, lab.folder.display()))?;
    }
    Ok(Exit::Done)
}

fn clean() -> Result<Exit> {
    let left = registry::clean()?;
    if left.is_empty() {
        print("killed labs left nothing")?;
    }
    for lab in &left {
        print(&format!(
            "removed {}, which the lab {} of process {} left",
            lab.folder.display(),
            lab.what,
            lab.pid
        ))?;
    }
    Ok(Exit::Done)
}

fn ago(lab: &LabEntry) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs().saturating_sub(lab.began.as_secs());
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
