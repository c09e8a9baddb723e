//! The key `topology` of a study: where every run takes place.

use super::factors::check_name;
use super::servers::{self, ServerLevel};
use super::{Library, Study};
use crate::error::{COMMAND_LINE, InputError, Place};
use crate::keys;
use crate::named::unknown;
use crate::network::Network;
use crate::plan::{DIRECT, OUTSIDE, PAIR, PlannedTopology};
use crate::reader::{Form, Key, Placed, Table, document, parse};
use crate::topology::Topology;

pub(super) const KEYS: &[Key] = keys! {
    "name", "text", "required", r#""shared""#,
        "The topology: `pair`, `shared`, `campus`, `sites`, `proxied`, `outside`, `direct`, or your own.";
    "client", "text", "`client`", r#""tokyo""#, "The node of the clients, a host.";
    "proxy", "text", "`proxy`, if there is one", r#""edge""#,
        "The node of the proxies, a host that packets from the client reach.";
    "server", "text", "`server`", r#""web-server""#, "The node of the server, a host that packets from the client reach.";
    "link", "text", "the only link with a network", r#""near-far""#, "The link that has the matrix's network.";
    "cross", "boolean", "`true`", "false", "Whether the topology's cross-traffic runs.";
};
/// The node of the servers behind proxies, where the topology has none for them: it has a wire to the
/// proxies' node.
const BACK: &str = "back";
/// The node that stands for servers outside, unless the study chooses another.
const GATEWAY: &str = "gateway";
/// The level of `network` with which every link keeps the network of the topology's file.
const OWN: &str = "own";

/// A key of every network of the matrix, with the value that it has instead of its own.
#[derive(Clone, Debug)]
pub(super) struct NetworkKey {
    /// The sweep, for errors.
    pub(super) sweep: String,
    pub(super) place: Place,
    pub(super) path: Vec<String>,
    pub(super) toml: String,
}

/// A topology as a study names it.
#[derive(Clone, Debug)]
pub(super) struct TopologyEntry {
    name: Placed<String>,
    client: Option<Placed<String>>,
    proxy: Option<Placed<String>>,
    server: Option<Placed<String>>,
    link: Option<Placed<String>>,
    cross: Option<Placed<bool>>,
}

impl TopologyEntry {
    /// With the nodes and links of the topology's own file.
    pub(super) const fn named(name: Placed<String>) -> TopologyEntry {
        TopologyEntry { name, client: None, proxy: None, server: None, link: None, cross: None }
    }

    /// The first key besides the name.
    fn first_choice(&self) -> Option<InputError> {
        let problem = "this topology has no choice of nodes and links; remove the key";
        let texts = [&self.client, &self.proxy, &self.server, &self.link].into_iter().flatten().next();
        texts.map(|key| key.error(problem)).or_else(|| self.cross.as_ref().map(|key| key.error(problem)))
    }
}

pub(super) fn read(root: &Table<'_>) -> Result<Option<TopologyEntry>, InputError> {
    let table = match root.form("topology")? {
        None => return Ok(None),
        Some(Form::Text(name)) => return Ok(Some(TopologyEntry::named(name))),
        Some(Form::Table(table)) => table.with_keys(KEYS)?,
    };
    Ok(Some(TopologyEntry {
        name: table.required("name", Table::string)?,
        client: table.string("client")?,
        proxy: table.string("proxy")?,
        server: table.string("server")?,
        link: table.string("link")?,
        cross: table.boolean("cross")?,
    }))
}

/// The topology, and for each level of `network` what the route from the client to the server does: to the
/// proxy, where there is one.
pub(super) fn resolve(
    study: &Study,
    levels: &[Placed<String>],
    servers: &[ServerLevel],
    library: &impl Library,
) -> Result<(PlannedTopology, Vec<Network>), InputError> {
    let is_plain_pair =
        |chosen: &&TopologyEntry| chosen.name.value == PAIR && chosen.first_choice().is_none();
    let backs = servers::most_backs(servers);
    let outside = levels
        .first()
        .filter(|_| servers::have_remote(servers))
        .map(|level| TopologyEntry::named(Placed { value: OUTSIDE.to_owned(), place: level.place.clone() }));
    let chosen = study.topology.as_ref().filter(|chosen| !is_plain_pair(chosen)).or(outside.as_ref());
    let chosen = match chosen {
        Some(chosen) => chosen,
        None => {
            let networks: Vec<Network> =
                levels.iter().map(|level| matrix_network(study, level, library)).collect::<Result<_, _>>()?;
            let pair = PlannedTopology::default();
            return Ok((if backs > 0 { pair_with_backs(pair, &networks, backs) } else { pair }, networks));
        }
    };
    if chosen.name.value == DIRECT {
        let (direct, networks) = direct(study, chosen, levels)?;
        return Ok((PlannedTopology { backs: (0..backs).map(back_name).collect(), ..direct }, networks));
    }
    let (topology, backs) = base(chosen, study, servers, library)?;
    let link = match &chosen.link {
        Some(link) => Some(known_link(&topology, link)?),
        None => only_link(&topology),
    };
    let built = levels.iter().map(|level| with_network(study, &topology, link.as_deref(), level, library));
    let built: Vec<Topology> = built.collect::<Result<_, _>>()?;
    let networks = built.iter().zip(levels).map(|(topology, level)| topology.route_network(&level.value));
    let networks = networks.collect();
    let name = |node: usize| topology.nodes[node].name.clone();
    let planned = PlannedTopology {
        name: topology.name.clone(),
        client: name(topology.client),
        server: name(topology.server),
        backs: backs.into_iter().map(name).collect(),
        link: link.filter(|_| levels.iter().any(|level| level.value != OWN)),
        built,
    };
    Ok((planned, networks))
}

/// The network of a level, with the keys that sweeps change.
fn matrix_network(
    study: &Study,
    level: &Placed<String>,
    library: &impl Library,
) -> Result<Network, InputError> {
    let is_inline = study.networks.iter().any(|network| network.name.value == level.value);
    if is_inline || study.network_keys.is_empty() {
        return resolve_network(study, level, library);
    }
    check_name(level, "", "a network", &library.networks())?;
    let file = library.network(&level.value).map_err(|problem| level.error(problem))?;
    let mut document = parse(file.source())?;
    for NetworkKey { path, toml, .. } in &study.network_keys {
        document::set_network(&mut document, path, &COMMAND_LINE, toml, &COMMAND_LINE);
    }
    let trace = |trace: &str| library.trace(trace);
    let network = Network::of_document(&level.value, file.source(), &document, &trace);
    network.map_err(|error| match error.place.is_command_line() {
        true => swept_error(study, error),
        false => error,
    })
}

/// The error of a swept key, at the sweep's level in place of the network's file.
fn swept_error(study: &Study, error: InputError) -> InputError {
    let is_named =
        |key: &&NetworkKey| key.path.last().is_some_and(|name| error.problem.contains(&format!("`{name}`")));
    let keys = &study.network_keys;
    match keys.iter().find(is_named).or(keys.first()) {
        Some(key) => {
            InputError { place: key.place.clone(), problem: format!("`{}`: {}", key.sweep, error.problem) }
        }
        None => error,
    }
}

/// The network of a level, from the study or from its file.
fn resolve_network(
    study: &Study,
    level: &Placed<String>,
    library: &impl Library,
) -> Result<Network, InputError> {
    if let Some(inline) = study.networks.iter().find(|network| network.name.value == level.value) {
        if library.networks().contains(&level.value) {
            return Err(inline
                .name
                .error(format!("there is a network file `{}`; choose another name", level.value)));
        }
        return Network::of_table(inline, &|trace| library.trace(trace));
    }
    check_name(level, "", "a network", &library.networks())?;
    let file = library.network(&level.value).map_err(|problem| level.error(problem))?;
    Network::parse_with(&level.value, file.source(), &|trace| library.trace(trace))
}

/// A pair whose server has others behind it, joined by wires, for each network.
fn pair_with_backs(pair: PlannedTopology, networks: &[Network], count: usize) -> PlannedTopology {
    let built = networks.iter().map(|network| {
        let mut topology = Topology::pair(network);
        // A pair has room for nodes of these names.
        let _ = add_backs(&mut topology, &mut Vec::new(), count);
        topology
    });
    PlannedTopology { backs: (0..count).map(back_name).collect(), built: built.collect(), ..pair }
}

/// The name of an additional node for servers behind others: `back`, `back-2`, …
fn back_name(number: usize) -> String {
    if number == 0 { BACK.to_owned() } else { format!("{BACK}-{}", number + 1) }
}

/// Adds nodes until there are `count` behind the server, each joined to the one before by a wire.
fn add_backs(topology: &mut Topology, backs: &mut Vec<usize>, count: usize) -> Result<(), String> {
    for number in backs.len()..count {
        let name = back_name(number);
        topology.add_host(&name, &[backs.last().copied().unwrap_or(topology.server)], None)?;
        backs.extend(topology.position(&name));
    }
    Ok(())
}

/// Sweeps change networks of the matrix, and `own` stands for those of the topology.
fn refuse_swept(study: &Study, level: &Placed<String>) -> Result<(), InputError> {
    study.network_keys.first().map_or(Ok(()), |key| {
        let problem = format!(
            "`{}` excludes the level `{OWN}`, with which links keep the networks of the topology; write the name of a network",
            key.sweep
        );
        Err(level.error(problem))
    })
}

fn direct(
    study: &Study,
    chosen: &TopologyEntry,
    levels: &[Placed<String>],
) -> Result<(PlannedTopology, Vec<Network>), InputError> {
    if let Some(error) = chosen.first_choice() {
        return Err(error);
    }
    if let Some(level) = levels.iter().find(|level| level.value != OWN) {
        return Err(level.error(format!(
            "the topology `{DIRECT}` is this machine's loopback and emulates no network `{}`; write `{OWN}`",
            level.value
        )));
    }
    levels.first().map_or(Ok(()), |level| refuse_swept(study, level))?;
    let network = Network {
        name: OWN.to_owned(),
        title: "This machine's loopback".to_owned(),
        source: "nothing is emulated".to_owned(),
        ..Network::default()
    };
    let planned = PlannedTopology { name: DIRECT.to_owned(), link: None, ..PlannedTopology::default() };
    Ok((planned, vec![network]))
}

/// The topology of the file with the nodes that the study chooses: client, and server or proxy; and the nodes
/// behind a proxy.
fn base(
    chosen: &TopologyEntry,
    study: &Study,
    servers: &[ServerLevel],
    library: &impl Library,
) -> Result<(Topology, Vec<usize>), InputError> {
    let name = &chosen.name;
    let known = library.topologies();
    if !known.contains(&name.value) {
        let all: Vec<String> = known.into_iter().chain([DIRECT.to_owned()]).collect();
        return Err(name.error(format!("`topology`: {}", unknown(&name.value, "a topology", &all))));
    }
    let file = library.topology(&name.value).map_err(|problem| name.error(problem))?;
    let network = |network: &str| {
        resolve_network(study, &Placed { value: network.to_owned(), place: name.place.clone() }, library)
    };
    let mut topology = Topology::parse(&name.value, file.source(), &library.networks(), &network)?;
    let client = chosen.client.as_ref().or_else(|| study.first_group_node());
    let client = node(&topology, name, "client", client, topology.client)?;
    let server = match topology.host(GATEWAY) {
        Ok(gateway) if chosen.server.is_none() && servers::have_remote(servers) => gateway,
        _ => node(&topology, name, "server", chosen.server.as_ref(), topology.server)?,
    };
    let fault = |problem| name.error(format!("`topology`: {problem}"));
    let proxy = proxy(&topology, chosen, study, servers)?;
    topology.choose(client, proxy.unwrap_or(server)).map_err(fault)?;
    let mut backs = match proxy {
        Some(proxy) if topology.route_between(proxy, server).is_none() || proxy == server => {
            let [from, to] = [proxy, server].map(|node| topology.nodes[node].name.as_str());
            return Err(fault(format!(
                "packets find no route from the proxy `{from}` to the server `{to}`; choose other nodes"
            )));
        }
        Some(_) => vec![server],
        None => Vec::new(),
    };
    add_backs(&mut topology, &mut backs, servers::most_backs(servers)).map_err(fault)?;
    if chosen.cross.as_ref().is_some_and(|cross| !cross.value) {
        topology.cross.clear();
    }
    Ok((topology, backs))
}

/// The node of the proxies: the one that the study chooses or that is called so, where its servers have
/// others behind them.
fn proxy(
    topology: &Topology,
    chosen: &TopologyEntry,
    study: &Study,
    servers: &[ServerLevel],
) -> Result<Option<usize>, InputError> {
    if servers::most_backs(servers) == 0 {
        return match &chosen.proxy {
            Some(proxy) => Err(proxy.error(
                "`proxy` requires servers with another behind them; remove it, or add `[server.NAME.back]`",
            )),
            None => Ok(None),
        };
    }
    let node = match &chosen.proxy {
        Some(proxy) => topology
            .host(&proxy.value)
            .map_err(|problem| proxy.error(format!("`proxy`: {problem}")))
            .map(Some)?,
        None => topology.host("proxy").ok(),
    };
    let plain = servers.iter().find(|server| server.chain.backs.is_empty()).filter(|_| node.is_some());
    match plain.and_then(|plain| study.server_level(&plain.name)) {
        Some(level) => Err(level.error(format!(
            "`{}` is on the proxy's node of the topology `{}` and has no server behind it; add `[server.NAME.back]`",
            level.value, topology.name
        ))),
        None => Ok(node),
    }
}

/// The node that the study chooses, or that is called as the key is. By hand the first and the last host may
/// do; what is measured is not left to that.
fn node(
    topology: &Topology,
    name: &Placed<String>,
    key: &str,
    choice: Option<&Placed<String>>,
    default: usize,
) -> Result<usize, InputError> {
    if let Some(choice) = choice {
        return topology.host(&choice.value).map_err(|problem| choice.error(format!("`{key}`: {problem}")));
    }
    topology.host(key).map_err(|_| {
        name.error(format!(
            "`topology`: `{0}` has no node `{key}`; choose one, such as `topology = {{ name = \"{0}\", {key} = \"{1}\" }}`",
            topology.name, topology.nodes[default].name
        ))
    })
}

/// The topology with a level's network in its place.
fn with_network(
    study: &Study,
    topology: &Topology,
    link: Option<&str>,
    level: &Placed<String>,
    library: &impl Library,
) -> Result<Topology, InputError> {
    let mut topology = topology.clone();
    if level.value == OWN {
        refuse_swept(study, level)?;
        return Ok(topology);
    }
    let Some(link) = link else {
        let names: Vec<&str> = emulated(&topology).collect();
        return Err(level.error(format!(
            "several links have a network ({1}), so that the link of `{0}` is unclear; write `{OWN}`, or choose the link \
             with the topology's key `link`",
            level.value,
            names.join(", ")
        )));
    };
    let network = matrix_network(study, level, library)?;
    topology.replace_network(Some(link), &network).map_err(|problem| level.error(problem))?;
    topology.address_changes().map_err(|error| level.error(error.problem))?;
    Ok(topology)
}

fn emulated(topology: &Topology) -> impl Iterator<Item = &str> {
    topology.links.iter().filter(|link| link.network.is_some()).map(|link| link.name.as_str())
}

/// The link that has a network, where it is the only one.
fn only_link(topology: &Topology) -> Option<String> {
    let mut links = emulated(topology);
    links.next().filter(|_| links.next().is_none()).map(str::to_owned)
}

fn known_link(topology: &Topology, link: &Placed<String>) -> Result<String, InputError> {
    let names: Vec<&str> = topology.links.iter().map(|link| link.name.as_str()).collect();
    if names.contains(&link.value.as_str()) {
        return Ok(link.value.clone());
    }
    let noun = format!("a link of the topology `{}`", topology.name);
    Err(link.error(format!("`link`: {}", unknown(&link.value, &noun, &names))))
}
