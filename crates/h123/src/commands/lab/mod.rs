//! `h123 lab`: any command inside an emulated network.

mod checks;
mod command;
mod control;
mod cross;
mod link_text;
mod network_keys;
mod pcap;
mod running;
pub(crate) mod servers;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use drive::Adapter;
use lab::registry::Registration;
use lab::{Input, Lab, LabSpec, LinkSettings, Node, Process, Program};
use model::pins::{CongestionControl, bounds};
use model::plan::DIRECT;
use model::topology::CrossTraffic;
use model::{Backend, Pins, Topology, units};

use crate::exit::{Exit, UsageError};

use self::control::Control;
use self::link_text::describe_links;
use self::network_keys::{CUSTOM, NetworkKeys};
use self::pcap::Pcap;
use self::servers::{ServerSetup, addresses_of};
use crate::library::{network_of, topology_of};
use crate::name_service::lab as name_server;
use crate::server_choice::ServerChoice;
use crate::terminal::{note, print};

/// Run any command inside an emulated network: two nodes with a network between them, or a topology
#[derive(Args, Debug)]
#[command(
    after_help = "In the lab, /etc/hosts names every node: `client`, `server` (IPv4) and `client-v6`, `server-v6` (IPv6).
The command's environment has H123_LAB (the lab), H123_NODE (its node) and H123 (this program, for `$H123 load`); with --serve \
also H123_CA (the CA certificate that signed the servers' certificates), with --pcap also SSLKEYLOGFILE and QLOGDIR.
Ctrl-C goes to the command.

Examples:
  h123 lab north-carolina -- ping -c 3 server
  h123 lab north-carolina --serve -- sh -c 'curl --cacert $H123_CA https://server:8442/small/'
  h123 lab dsl --serve nginx -- bash
  h123 lab dsl --serve --dns 20ms -- sh -c '$H123 trace https://server:8443/ --cacert $H123_CA'
  h123 lab campus --node client -- ping -c 3 web-server
  h123 lab proxied --network proxy-server=tokyo --serve -- bash
  h123 lab shared --cross --serve -- curl --output /dev/null http://server:8080/bytes/1000000
  h123 lab campus --also 'video-server=tcpdump -w video.pcap' -- ping -c 3 video-server
  h123 lab tokyo --node server -- ip address
  h123 lab dsl --serve --pcap dsl.pcapng -- sh -c 'curl --cacert $H123_CA https://server:8442/'
  h123 lab sites --describe
  h123 lab --rtt 50ms --rate 10Mbit/s --loss 1% --queue 100ms -- ping -c 3 server
  h123 lab dsl --udp blocked --serve -- bash
  h123 lab --enter dsl server -- ss -tn
  h123 lab --change dsl client-server --rtt 80ms

Exit status: the command's; 128 plus the signal's number if a signal ended it; 127 if the command does not exist, 126 if \
it cannot be executed; 1 if the lab failed, 2 for wrong usage"
)]
pub(crate) struct LabArgs {
    /// A network from networks/, between the nodes `client` and `server`; a topology from topologies/, or the
    /// path of its .toml file; or `direct`: this machine and its loopback
    ///
    /// Example: north-carolina
    #[arg(required_unless_present_any = ["list", "clean", "enter", "change", "rtt", "rate", "queue", "loss", "jitter",
                                         "udp", "up", "down"])]
    name: Option<String>,
    /// The command and its arguments
    ///
    /// Example: ping -c 3 server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Run the command in this node [default: `client`, or the first]
    ///
    /// Example: --node server
    #[arg(long)]
    node: Option<String>,
    /// Replace a link's network; the link's name is optional if only one link has a network
    ///
    /// Example: --network proxy-server=tokyo
    #[arg(long, value_name = "[LINK=]NETWORK")]
    network: Vec<String>,
    /// Also run this command with `sh` until COMMAND ends: cross-traffic, a capture (repeatable)
    ///
    /// Example: --also 'video-server=tcpdump -w video.pcap'
    #[arg(long, value_name = "NODE=SHELL_COMMAND")]
    also: Vec<String>,
    /// Also run the topology's cross-traffic, as studies do
    ///
    /// Example: --cross
    #[arg(long)]
    cross: bool,
    /// Start a server from servers/ in the node `server`, or in NODE; without a value the origin (repeatable)
    ///
    /// Example: --serve nginx
    #[arg(long, value_name = "[NODE=]SERVER", num_args = 0..=1, default_missing_value = "origin")]
    serve: Vec<String>,
    /// Resolve names over DNS instead of /etc/hosts, with a name server at this distance, such as 20ms
    ///
    /// Example: --dns 20ms
    #[arg(long, value_name = "RTT")]
    dns: Option<String>,
    /// Random seed: decides which packets are lost [default: random, and printed if the network uses it]
    ///
    /// Example: --seed 7
    #[arg(long)]
    seed: Option<u64>,
    /// Fix TCP's congestion control of all nodes, and that of QUIC in the servers; programs cannot choose
    /// another
    ///
    /// Example: --congestion-control bbr
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<CongestionControl>,
    /// Largest IP packet on every link, 1280B to 9000B [default: 1500B]
    ///
    /// Example: --mtu 1400B
    #[arg(long, value_name = "SIZE")]
    mtu: Option<String>,
    /// The emulator: `user-space` is the lab's own, `netem` the kernel's
    ///
    /// Example: --backend netem
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: Backend,
    /// Capture the packets on the emulated links to this file, for Wireshark; lost packets have the reason as
    /// a comment. The secrets of TLS and QUIC go to FILE.keys if the command supports SSLKEYLOGFILE, and qlog
    /// to the folder FILE.qlog if it supports QLOGDIR
    ///
    /// Example: --pcap dsl.pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Run the command as an ordinary user instead of the lab's root, for browsers and servers that refuse
    /// root
    ///
    /// Example: --as-user
    #[arg(long)]
    as_user: bool,
    /// Describe the nodes and links, and run nothing
    ///
    /// Example: --describe
    #[arg(long, conflicts_with_all = ["command", "serve", "also", "cross", "pcap"])]
    describe: bool,
    /// Print only the output of the command
    ///
    /// Example: -q
    #[arg(long, short)]
    quiet: bool,
    /// Run COMMAND, or a shell, in a node of a running lab (see --list)
    ///
    /// Example: --enter dsl server
    #[arg(long, num_args = 1..=2, value_names = ["LAB", "NODE"])]
    #[arg(conflicts_with_all = ["name", "serve", "also", "cross", "pcap", "describe", "node", "network", "change"])]
    enter: Vec<String>,
    /// Change a link of a running lab with the options under Network, and print its network
    ///
    /// Example: --change dsl client-server --rtt 80ms
    #[arg(long, num_args = 1..=2, value_names = ["LAB", "LINK"])]
    #[arg(conflicts_with_all = ["name", "command", "serve", "also", "cross", "pcap", "describe", "node", "network"])]
    change: Vec<String>,
    /// With --change: the NAT at the link's first end forgets its mappings, so that all connections get new
    /// ports
    ///
    /// Example: --rebind
    #[arg(long, requires = "change")]
    rebind: bool,
    /// List running labs and the remains of killed labs
    ///
    /// Example: --list
    #[arg(long, conflicts_with_all = ["name", "command", "serve", "pcap", "describe", "clean"])]
    list: bool,
    /// Remove the remains of killed labs
    ///
    /// Example: --clean
    #[arg(long, conflicts_with_all = ["name", "command", "serve", "pcap", "describe"])]
    clean: bool,
    #[command(flatten)]
    keys: NetworkKeys,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, missing rights, or a kernel that refuses a step of building the lab.
pub(crate) fn run(args: &LabArgs) -> Result<Exit> {
    if let Some(name) = args.enter.first() {
        return running::enter(args, &running::find("--enter", name)?, args.enter.get(1));
    }
    if let Some(name) = args.change.first() {
        return control::request(args, &running::find("--change", name)?, args.change.get(1));
    }
    if args.clean || args.list {
        return if args.clean { running::clean() } else { running::list() };
    }
    let name = args.name.as_deref().unwrap_or(CUSTOM);
    let pins = pins(args)?;
    let mut topology = built(args)?;
    let known: Vec<String> = match &topology {
        Some(topology) => topology.nodes.iter().map(|node| node.name.clone()).collect(),
        None => ["client", "server"].map(str::to_owned).into(),
    };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let node = args.node.clone().unwrap_or_else(|| default_node(&known).to_owned());
    let mut servers = args.serve.iter().map(|text| ServerChoice::read(text)).collect::<Result<Vec<_>>>()?;
    let also = args.also.iter().map(|text| node_command(text)).collect::<Result<Vec<_>>>()?;
    for node in [node.as_str()]
        .into_iter()
        .chain(servers.iter().map(|(choice, _)| choice.node.as_str()))
        .chain(also.iter().map(|(node, _)| node.as_str()))
    {
        check_node(node, &known)?;
    }
    if let Some(rtt) = &args.dns {
        let users: Vec<&str> =
            [node.as_str()].into_iter().chain(also.iter().map(|(node, _)| node.as_str())).collect();
        name_server::add(topology.as_mut(), rtt, &users)?;
    }
    let cross = if args.cross { cross::flows(name, topology.as_ref())? } else { &[] };
    if let Some(topology) = &topology {
        cross::add_servers(topology, cross, &mut servers)?;
    }
    let options = checks::LinkOptions {
        backend: args.backend,
        mtu_bytes: pins.mtu_bytes,
        needs_links: needs_links(args),
        has_capture: args.pcap.is_some(),
    };
    checks::backend(&options, topology.as_ref())?;
    checks::places(topology.as_ref(), &servers)?;
    if args.describe {
        print(&topology.as_ref().map_or(DIRECT_TEXT.to_owned(), model::topology::describe))?;
        return Ok(Exit::Done);
    }
    if args.command.is_empty() {
        return Err(UsageError(
            "the command is missing; write one after `--`, as in `h123 lab lan -- bash`".to_owned(),
        )
        .into());
    }
    let mut command = command::program(&args.command, args.as_user).stdin(Input::Inherit);
    command.is_foreground = true;
    run_inside(
        args,
        name,
        topology.as_ref(),
        LabContents { node: &node, servers: &servers, also, cross, command, pins },
    )
}

/// The topology with the networks and keys of the command line; `None` where nothing is emulated.
fn built(args: &LabArgs) -> Result<Option<Topology>> {
    let Some(name) = &args.name else { return Ok(Some(args.keys.pair()?)) };
    if name == DIRECT {
        return Ok(None);
    }
    let mut topology = with_networks(topology_of(name)?, &args.network)?;
    args.keys.apply(&mut topology)?;
    Ok(Some(topology))
}

/// An option that has no meaning without an emulated link.
fn needs_links(args: &LabArgs) -> Option<String> {
    let key = args.keys.given().into_iter().next().map(|(key, _)| format!("--{key}"));
    let others = [
        ("--network", !args.network.is_empty()),
        ("--mtu", args.mtu.is_some()),
        ("--congestion-control", args.congestion_control.is_some()),
        ("--backend", args.backend != Backend::default()),
    ];
    key.or_else(|| others.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option.to_owned()))
}

/// The settings of servers and links; QUIC's datagrams fit the links.
fn pins(args: &LabArgs) -> Result<Pins> {
    let mut pins = Pins::default();
    if let Some(text) = &args.mtu {
        let range = bounds::LEAST_MTU_BYTES..=bounds::MOST_MTU_BYTES;
        let mtu = units::parse_size_within(text, &range);
        pins.mtu_bytes = mtu.map_err(|problem| UsageError(format!("--mtu: {problem}")))?;
        let room = pins.mtu_bytes.saturating_sub(bounds::DATAGRAM_HEADER_BYTES);
        pins.quic_datagram_bytes = pins.quic_datagram_bytes.min(u16::try_from(room).unwrap_or(u16::MAX));
    }
    if let Some(name) = args.congestion_control {
        pins.congestion_control = name;
    }
    Ok(pins)
}

/// A hint for the error of a command line whose command has no `--` before it.
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

/// What runs in a lab.
struct LabContents<'a> {
    /// The command's node.
    node: &'a str,
    servers: &'a [(ServerChoice, Adapter)],
    /// Nodes and shell commands.
    also: Vec<(String, String)>,
    cross: &'a [CrossTraffic],
    command: Program,
    pins: Pins,
}

fn run_inside(
    args: &LabArgs,
    name: &str,
    topology: Option<&Topology>,
    contents: LabContents<'_>,
) -> Result<Exit> {
    let LabContents { node, servers, mut also, cross, mut command, pins } = contents;
    let pcap = args.pcap.as_deref().map(|file| Pcap::new(file, topology)).transpose()?;
    let registration = Registration::new(name)?;
    let seed = args.seed.unwrap_or_else(random_seed);
    let lab = build(args, topology, &pins, seed)?;
    let setup = match servers.is_empty() {
        true => None,
        false => Some(ServerSetup::new(registration.folder(), &pins, seed)?),
    };
    let running = start_servers(&lab, setup.as_ref(), servers, args.quiet)?;
    if let Some(topology) = topology {
        also.extend(cross::commands(topology, cross, servers, &running)?);
    }
    let _names = match topology.filter(|_| args.dns.is_some()) {
        Some(topology) => Some(name_server::start(&lab, topology, registration.folder(), servers, &running)?),
        None => None,
    };
    if let Some(pcap) = &pcap {
        lab.begin_capture(&pcap.file)?;
    }
    lab.begin_measuring()?;
    let tool = std::env::current_exe().context("cannot find the path of this program")?;
    let environment = |node: &str| {
        let mut environment = vec![
            ("H123_LAB".into(), name.into()),
            ("H123_NODE".into(), node.into()),
            ("H123".into(), tool.clone().into_os_string()),
        ];
        let authority = setup.as_ref().map(|setup| ("H123_CA".into(), (&setup.authority_file).into()));
        environment.extend(authority);
        environment.extend(pcap.iter().flat_map(Pcap::environment));
        environment
    };
    let mut others = Vec::new();
    for (node, shell_command) in &also {
        let mut program = Program::new("sh").args(["-c", shell_command]).stdout(lab::Output::Null);
        program.env = environment(node);
        others.push(node_of(&lab, node)?.spawn(program)?);
    }
    command.env = environment(node);
    running::describe(&lab, registration.folder(), &command.env)?;
    let control = Control::new(&lab, registration.folder())?;
    let exit = std::thread::scope(|scope| {
        scope.spawn(|| control.serve());
        let _ending = control.end_when_dropped();
        node_of(&lab, node).and_then(|node| command::run(node, command))
    })?;
    note_ended(&also, &others, args.quiet)?;
    drop(others);
    let captured = lab.end_capture();
    describe_links(&lab.reports()?).iter().for_each(|line| note(args.quiet, line));
    if args.seed.is_none() && topology.is_some_and(Topology::depends_on_seed) {
        note(args.quiet, &format!("seed {seed}; --seed {seed} repeats the network's random decisions"));
    }
    if let Some(pcap) = &pcap {
        // The command has run; a full disk is no reason to lose its status.
        if let Err(error) = captured {
            note(false, &format!("h123: the capture is incomplete: {:#}", anyhow::Error::from(error)));
        }
        note(args.quiet, &pcap.describe());
    }
    for server in running {
        if let Some(died) = server.stop()?.died {
            note(args.quiet, &format!("h123: {died}"));
        }
    }
    Ok(exit)
}

/// Builds the lab, whose nodes know each other by name.
fn build(args: &LabArgs, topology: Option<&Topology>, pins: &Pins, seed: u64) -> Result<Lab> {
    let Some(topology) = topology else { return Ok(Lab::loopback()?) };
    // From here on a user without privileges is root in a new namespace; the process must have no other
    // thread yet.
    lab::probe().emulation().and_then(|_| lab::enter())?;
    // Programs choose their congestion control and initial window themselves, unless asked otherwise.
    let settings = LinkSettings {
        mtu_bytes: pins.mtu_bytes,
        congestion_control: args.congestion_control,
        initial_window_packets: None,
    };
    let spec = LabSpec { topology, settings, seed, emulator_cpu: None, backend: args.backend };
    let lab = Lab::build(spec)?;
    name_server::cover_files(&lab, topology)?;
    Ok(lab)
}

/// A seed that is short enough to type.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
}

/// Reports the commands of --also that failed before the command ended.
fn note_ended(also: &[(String, String)], processes: &[Process], quiet: bool) -> Result<()> {
    for ((node, shell_command), process) in also.iter().zip(processes) {
        if let Some(failed) = process.wait_timeout(Duration::ZERO)?.filter(|exit| !exit.status.success()) {
            note(
                quiet,
                &format!("h123: --also {node}={shell_command}: ended before the command ({})", failed.status),
            );
        }
    }
    Ok(())
}

/// The description of `direct`.
const DIRECT_TEXT: &str =
    "direct: this machine and its loopback; nothing is emulated, and nodes have no names";

/// Replaces the networks that the command line names.
fn with_networks(mut topology: Topology, networks: &[String]) -> Result<Topology> {
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

/// Reads `NODE=SHELL_COMMAND`.
fn node_command(text: &str) -> Result<(String, String)> {
    let parts = text.split_once('=').filter(|(_, command)| !command.trim().is_empty());
    let (node, command) = parts.ok_or_else(|| {
        UsageError(format!(
            "--also: `{text}` is not a command in a node; write NODE=SHELL_COMMAND, such as `client=ping server`"
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
    setup: Option<&ServerSetup>,
    servers: &[(ServerChoice, Adapter)],
    quiet: bool,
) -> Result<Vec<drive::RunningServer<'l>>> {
    let Some(setup) = setup else { return Ok(Vec::new()) };
    let mut running = Vec::new();
    for (choice, adapter) in servers {
        let server = setup.start(node_of(lab, &choice.node)?, adapter)?;
        note(quiet, &format!("{} in the node {}:", choice.server, choice.node));
        addresses_of(&server).iter().for_each(|line| note(quiet, line));
        running.push(server);
    }
    note(
        quiet,
        &format!("CA certificate: {} (pass it with --cacert $H123_CA)", setup.authority_file.display()),
    );
    Ok(running)
}
