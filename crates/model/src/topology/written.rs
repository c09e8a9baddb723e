//! Topology files as written: keys, types and the form of addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Role;
use crate::error::{InputError, Source};
use crate::keys;
use crate::reader::{Key, Placed, Table, TableKeys, read_file};
use crate::variant::Variant;

/// The most nodes and links. Each emulated link has a thread and 2 MB, each node a process, a thread and
/// namespaces.
const MOST: usize = 1000;
const MOST_CROSS: usize = 64;
const MOST_FLOWS: u32 = 64;

const ROOT_KEYS: &[Key] = keys! {
    "title", "text", "required", r#""A client and a server""#, "One line that describes the topology.";
    "node", "tables `[[node]]`", "required", "", "The nodes, 1 to 1000; see below.";
    "link", "tables `[[link]]`", "required", "", "The links, 1 to 1000; see below.";
    "cross", "tables `[[cross]]`", "none", "", "Cross-traffic, at most 64 tables; see below.";
};
const NODE_KEYS: &[Key] = keys! {
    "name", "text", "required", r#""client""#, "The name: small letters, digits and hyphens, each name once.";
    "count", "whole number", "none: one node", "100",
        "This many nodes, `NAME-1`, `NAME-2` and so on. A link with the end NAME becomes a link from each of them.";
    "role", "text", r#"`"host"`"#, r#""router""#, "`host`, `router` or `switch`.";
};
const LINK_KEYS: &[Key] = keys! {
    "ends", "list of 2 texts", "required", r#"["client", "server"]"#,
        "The nodes, each with its addresses if any: `NODE [ADDRESS/PREFIX]…`. *Up* leads from the first to the second.";
    "network", "text", "none: a wire", r#""north-carolina""#, "The network that the link emulates.";
};
const CROSS_KEYS: &[Key] = keys! {
    "from", "text", "required", r#""cross-client""#, "The host that requests and receives.";
    "to", "text", "required", r#""cross-server""#, "The host that answers.";
    "variant", "text", "required", r#""h1""#, "A variant: TCP, or QUIC with `h3`.";
    "flows", "whole number", "`1`", "4", "Connections, each with an endless download; 1 to 64.";
};

/// Every table of a topology file.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the topology", keys: ROOT_KEYS },
    TableKeys { table: "[[node]]", keys: NODE_KEYS },
    TableKeys { table: "[[link]]", keys: LINK_KEYS },
    TableKeys { table: "[[cross]]", keys: CROSS_KEYS },
];

pub(super) struct TopologyFile {
    pub(super) title: String,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) cross: Vec<Cross>,
}

pub(super) struct Cross {
    pub(super) from: Placed<String>,
    pub(super) to: Placed<String>,
    pub(super) variant: Variant,
    pub(super) flows: u32,
}

pub(super) struct Node {
    pub(super) name: Placed<String>,
    pub(super) role: Role,
}

#[derive(Clone)]
pub(super) struct Link {
    pub(super) ends: [Placed<End>; 2],
    pub(super) network: Option<Placed<String>>,
}

/// How many nodes each declared name stands for; `None` for a node of exactly this name.
type Counts = BTreeMap<String, Option<u32>>;

/// `NODE [ADDRESS/PREFIX]…`
#[derive(Clone)]
pub(super) struct End {
    pub(super) node: String,
    pub(super) addresses: Vec<(IpAddr, u8)>,
}

pub(super) fn read(source: Source<'_>) -> Result<TopologyFile, InputError> {
    read_file(source, "the topology", ROOT_KEYS, |root| {
        let (nodes, links, cross) = (root.tables("node")?, root.tables("link")?, root.tables("cross")?);
        let bounds = [(&nodes, 1, MOST, "node"), (&links, 1, MOST, "link"), (&cross, 0, MOST_CROSS, "cross")];
        for (tables, least, most, name) in bounds {
            let count = tables.len();
            if !(least..=most).contains(&count) {
                let problem =
                    format!("the topology has {count} tables `[[{name}]]`; write {least} to {most}");
                return Err(root.error(problem));
            }
        }
        let mut file = TopologyFile {
            title: root.required("title", Table::string)?.value,
            nodes: Vec::new(),
            links: Vec::new(),
            cross: cross.into_iter().map(self::cross).collect::<Result<_, _>>()?,
        };
        let mut counts = Counts::new();
        for table in nodes {
            add_nodes(&mut file.nodes, &mut counts, table)?;
        }
        for table in links {
            add_links(&mut file.links, &counts, table)?;
        }
        for (count, what) in [(file.nodes.len(), "nodes"), (file.links.len(), "links")] {
            if count > MOST {
                return Err(
                    root.error(format!("the topology has {count} {what}; write at most {MOST} of them"))
                );
            }
        }
        Ok(file)
    })
}

/// The error of a node whose name another one has.
pub(super) fn second_node(name: &Placed<String>) -> InputError {
    name.error(format!("the node `{}` appears twice; rename one", name.value))
}

fn add_nodes(nodes: &mut Vec<Node>, counts: &mut Counts, table: Table<'_>) -> Result<(), InputError> {
    let table = table.with_keys(NODE_KEYS)?;
    let name = table.required("name", Table::string)?;
    let role = table.named("role")?.map_or(Role::Host, |role| role.value);
    let most = u32::try_from(MOST).unwrap_or(u32::MAX);
    let count = table.integer("count", 1..=most)?.map(|count| count.value);
    if counts.insert(name.value.clone(), count).is_some() {
        return Err(second_node(&name));
    }
    let Some(count) = count else {
        nodes.push(Node { name, role });
        return Ok(());
    };
    nodes.extend((1..=count).map(|number| {
        let value = format!("{}-{number}", name.value);
        Node { name: Placed { value, place: name.place.clone() }, role }
    }));
    Ok(())
}

/// Adds a link, or one from each of the nodes that an end stands for.
fn add_links(links: &mut Vec<Link>, counts: &Counts, table: Table<'_>) -> Result<(), InputError> {
    let link = link(table)?;
    let count_of = |end: &Placed<End>| counts.get(&end.value.node).copied().flatten();
    let (repeated, count) = match link.ends.each_ref().map(count_of) {
        [None, None] => {
            links.push(link);
            return Ok(());
        }
        [Some(count), None] => (0, count),
        [None, Some(count)] => (1, count),
        [Some(_), Some(_)] => {
            let problem = "both ends are nodes with a `count`; write one node at one end, such as a router";
            return Err(link.ends[1].error(problem));
        }
    };
    if let Some(end) = link.ends.iter().find(|end| !end.value.addresses.is_empty()) {
        let problem = format!("these are {count} links; write no addresses, because each link has its own");
        return Err(end.error(problem));
    }
    links.extend((1..=count).map(|number| {
        let mut link = link.clone();
        let node = &mut link.ends[repeated].value.node;
        *node = format!("{node}-{number}");
        link
    }));
    Ok(())
}

fn cross(table: Table<'_>) -> Result<Cross, InputError> {
    let table = table.with_keys(CROSS_KEYS)?;
    Ok(Cross {
        from: table.required("from", Table::string)?,
        to: table.required("to", Table::string)?,
        variant: table.required("variant", Table::named)?.value,
        flows: table.integer("flows", 1..=MOST_FLOWS)?.map_or(1, |flows| flows.value),
    })
}

fn link(table: Table<'_>) -> Result<Link, InputError> {
    let table = table.with_keys(LINK_KEYS)?;
    let ends = table.required("ends", Table::strings)?;
    let (place, count) = (ends.place, ends.value.len());
    let ends = ends.value.into_iter().map(|end| end.map(|text| parse_end(&text)));
    let ends: [Placed<End>; 2] = ends.collect::<Result<Vec<_>, _>>()?.try_into().map_err(|_| InputError {
        place,
        problem: format!("`ends` has {count} entries; write two, such as `ends = [\"client\", \"server\"]`"),
    })?;
    Ok(Link { ends, network: table.string("network")? })
}

fn parse_end(text: &str) -> Result<End, String> {
    let mut words = text.split_whitespace();
    let node = words.next().ok_or("the end is empty; write a node's name")?.to_owned();
    let addresses = words.map(|word| {
        let fault =
            || format!("`{word}` is not an address with its prefix; write one such as `192.168.1.2/30`");
        let (address, prefix) = word.split_once('/').ok_or_else(fault)?;
        let address: IpAddr = address.parse().map_err(|_| fault())?;
        let prefix: u8 = prefix.parse().map_err(|_| fault())?;
        let most = if address.is_ipv4() { 30 } else { 126 };
        if prefix == 0 || prefix > most {
            return Err(format!("the prefix `/{prefix}` is out of bounds; write one from /1 to /{most}"));
        }
        Ok((address, prefix))
    });
    Ok(End { node, addresses: addresses.collect::<Result<_, String>>()? })
}
