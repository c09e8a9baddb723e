//! Topology files as written: keys, types and the form of addresses.

use std::net::IpAddr;

use super::Role;
use crate::error::{InputError, Source};
use crate::keys;
use crate::reader::{Key, Placed, Table, TableKeys, read_file};
use crate::variant::Variant;

/// Each emulated link has its own thread, each node a few processes and namespaces.
const MOST: usize = 64;
const MOST_FLOWS: u32 = 64;

const ROOT_KEYS: &[Key] = keys! {
    "title", "text", "required", r#""A client and a server""#, "One line that describes the topology.";
    "node", "tables `[[node]]`", "required", "", "The nodes, 1 to 64; see below.";
    "link", "tables `[[link]]`", "required", "", "The links, 1 to 64; see below.";
    "cross", "tables `[[cross]]`", "none", "", "Cross-traffic, at most 64 tables; see below.";
};
const NODE_KEYS: &[Key] = keys! {
    "name", "text", "required", r#""client""#, "The name: small letters, digits and hyphens, each name once.";
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

pub(super) struct Link {
    pub(super) ends: [Placed<End>; 2],
    pub(super) network: Option<Placed<String>>,
}

/// `NODE [ADDRESS/PREFIX]…`
#[derive(Clone)]
pub(super) struct End {
    pub(super) node: String,
    pub(super) addresses: Vec<(IpAddr, u8)>,
}

pub(super) fn read(source: Source<'_>) -> Result<TopologyFile, InputError> {
    read_file(source, "the topology", ROOT_KEYS, |root| {
        let (nodes, links, cross) = (root.tables("node")?, root.tables("link")?, root.tables("cross")?);
        for (tables, least, name) in [(&nodes, 1, "node"), (&links, 1, "link"), (&cross, 0, "cross")] {
            let count = tables.len();
            if !(least..=MOST).contains(&count) {
                let problem =
                    format!("the topology has {count} tables `[[{name}]]`; write {least} to {MOST}");
                return Err(root.error(problem));
            }
        }
        Ok(TopologyFile {
            title: root.required("title", Table::string)?.value,
            nodes: nodes.into_iter().map(node).collect::<Result<_, _>>()?,
            links: links.into_iter().map(link).collect::<Result<_, _>>()?,
            cross: cross.into_iter().map(self::cross).collect::<Result<_, _>>()?,
        })
    })
}

fn node(table: Table<'_>) -> Result<Node, InputError> {
    let table = table.with_keys(NODE_KEYS)?;
    let name = table.required("name", Table::string)?;
    Ok(Node { name, role: table.named("role")?.map_or(Role::Host, |role| role.value) })
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
