//! Topology files as written: keys, types and the form of addresses.

use std::net::IpAddr;

use toml::de::DeTable;

use super::Role;
use crate::error::{InputError, Source};
use crate::nearest::unknown;
use crate::reader::{Placed, Table};
use crate::variant::Variant;

/// Each emulated link has a thread of its own, each node a few processes and namespaces.
const MOST: usize = 64;

const MOST_FLOWS: u64 = 64;

const ROOT_KEYS: &[&str] = &["title", "node", "link", "cross"];
const CROSS_KEYS: &[&str] = &["from", "to", "variant", "flows"];
const NODE_KEYS: &[&str] = &["name", "role"];
const LINK_KEYS: &[&str] = &["ends", "network"];
const ENDS_EXAMPLE: &str = "[\"client\", \"server\"]";

pub(super) struct Written {
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
pub(super) struct End {
    pub(super) node: String,
    pub(super) addresses: Vec<(IpAddr, u8)>,
}

pub(super) fn read(source: Source<'_>) -> Result<Written, InputError> {
    let document = DeTable::parse(source.text).map_err(|error| source.toml_error(&error))?;
    let root = Table::root(source, document.get_ref(), "the topology", ROOT_KEYS)?;
    let title = root.string("title", "A client and a server")?;
    let title = title.ok_or_else(|| root.missing("title", "title = \"A client and a server\""))?;
    let (nodes, links) = (root.tables("node")?, root.tables("link")?);
    for (count, what) in [(nodes.len(), "nodes"), (links.len(), "links")] {
        if count == 0 || count > MOST {
            return Err(root.error(format!("found {count} {what}, expected from 1 to {MOST}")));
        }
    }
    let cross = root.tables("cross")?;
    if cross.len() > MOST {
        return Err(root.error(format!("found {} tables `[[cross]]`, expected at most {MOST}", cross.len())));
    }
    Ok(Written {
        title: title.value,
        nodes: nodes.into_iter().map(node).collect::<Result<_, _>>()?,
        links: links.into_iter().map(link).collect::<Result<_, _>>()?,
        cross: cross.into_iter().map(self::cross).collect::<Result<_, _>>()?,
    })
}

fn node(table: Table<'_>) -> Result<Node, InputError> {
    let table = table.with_keys(NODE_KEYS)?;
    let name = table.string("name", "client")?;
    let name = name.ok_or_else(|| table.missing("name", "name = \"client\""))?;
    let role = table.parsed("role", "router", |text| match text {
        "host" => Ok(Role::Host),
        "router" => Ok(Role::Router),
        "switch" => Ok(Role::Switch),
        other => Err(unknown(other, "a role", &["host", "router", "switch"])),
    })?;
    Ok(Node { name, role: role.map_or(Role::Host, |role| role.value) })
}

fn cross(table: Table<'_>) -> Result<Cross, InputError> {
    let table = table.with_keys(CROSS_KEYS)?;
    let node = |key: &str| {
        let name = table.string(key, "cross-client")?;
        name.ok_or_else(|| table.missing(key, &format!("{key} = \"cross-client\"")))
    };
    let variant = table.parsed("variant", "h1", str::parse)?;
    let flows = table.integer("flows", 1..=MOST_FLOWS)?.map_or(1, |flows| flows.value);
    Ok(Cross {
        from: node("from")?,
        to: node("to")?,
        variant: variant.ok_or_else(|| table.missing("variant", "variant = \"h1\""))?.value,
        flows: u32::try_from(flows).unwrap_or(u32::MAX),
    })
}

fn link(table: Table<'_>) -> Result<Link, InputError> {
    let table = table.with_keys(LINK_KEYS)?;
    let ends = table.strings("ends", ENDS_EXAMPLE)?;
    let ends = ends.ok_or_else(|| table.missing("ends", &format!("ends = {ENDS_EXAMPLE}")))?;
    let place = ends.place.clone();
    let count = ends.value.len();
    let ends = ends.value.into_iter().map(|end| end.map(|text| parse_end(&text)));
    let ends: Vec<_> = ends.collect::<Result<_, _>>()?;
    let ends: [Placed<End>; 2] = ends.try_into().map_err(|_| InputError {
        place,
        problem: format!("`ends`: found {count}, expected two such as `ends = {ENDS_EXAMPLE}`"),
    })?;
    Ok(Link { ends, network: table.string("network", "north-carolina")? })
}

fn parse_end(text: &str) -> Result<End, String> {
    let mut words = text.split_whitespace();
    let node = words.next().ok_or("found nothing, expected a node's name")?.to_owned();
    let addresses = words.map(|word| {
        let fault =
            || format!("found `{word}`, expected an address with its prefix such as `192.168.1.2/30`");
        let (address, prefix) = word.split_once('/').ok_or_else(fault)?;
        let address: IpAddr = address.parse().map_err(|_| fault())?;
        let prefix: u8 = prefix.parse().map_err(|_| fault())?;
        let most = if address.is_ipv4() { 30 } else { 126 };
        if prefix == 0 || prefix > most {
            return Err(format!("found the prefix `/{prefix}`, expected one from /1 to /{most}"));
        }
        Ok((address, prefix))
    });
    Ok(End { node, addresses: addresses.collect::<Result<_, String>>()? })
}
