//! What many connections need: local addresses in client nodes, because one address has too few ports for
//! tens of thousands, and descriptors.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Cell, ClientGroup, NamedWorkload, Plan, ServerChain};
use crate::clients::{OWN_DESCRIPTORS, addresses_needed};
use crate::external::OWN_CLIENT;
use crate::pins::Pins;
use crate::script::Script;
use crate::start::Start;
use crate::topology::Topology;
use crate::variant::{HttpVersion, Variant};
use crate::workload::Workload;

/// What a loop without a number of requests is taken to need, if each request has a new connection.
const MANY_CONNECTIONS: u64 = 200_000;
/// Addresses for relays to further hosts of a page; more hosts share them.
const MOST_RELAYS: usize = 64;

impl Plan {
    /// The nodes and links of a run, with as many addresses in its client nodes as its connections need, and
    /// in the nodes of servers outside one for each host of their pages, because hosts use the same port;
    /// `None` where it runs on this machine's loopback.
    ///
    /// # Errors
    /// A subnet has too few addresses.
    pub fn topology_of_run(&self, cells: &[Cell]) -> Result<Option<Topology>, String> {
        let Some(mut topology) = cells.first().and_then(|cell| self.topology_of(cell)) else {
            return Ok(None);
        };
        // Groups of one node share its addresses.
        let nodes: BTreeSet<&str> = cells.iter().map(|cell| cell.group.node.as_str()).collect();
        for node in nodes {
            let own = |cell: &&Cell| cell.group.node == node;
            let connections = cells.iter().filter(own).map(|cell| self.connections_of(cell));
            let needed = addresses_needed(connections.fold(0, u64::saturating_add)) - 1;
            if needed > 0 {
                topology.add_addresses(node, needed)?;
            }
        }
        let relays: BTreeSet<&str> = cells.iter().filter_map(relays_at).collect();
        for node in relays {
            let own = |cell: &&Cell| relays_at(cell) == Some(node);
            let hosts = |cell: &Cell| {
                self.workload_of(&cell.group).workload.page().map_or(1, |page| page.origins.len())
            };
            let most = cells.iter().filter(own).map(hosts).max().unwrap_or(1);
            // In a small subnet hosts share an address, and all but one of them have another port.
            let _ = topology.add_addresses(node, most.saturating_sub(1).min(MOST_RELAYS) as u64);
        }
        Ok(Some(topology))
    }

    /// The addresses at which a run has relays to the servers outside of a cell; empty if one is enough.
    pub fn relays_of(&self, cell: &Cell) -> Vec<IpAddr> {
        let first = cell.cell.saturating_sub(cell.group.group.into());
        let Ok(Some(topology)) = self.topology_of_run(self.cells_of_run(first)) else { return Vec::new() };
        topology.further_addresses(&cell.chain.node)
    }

    /// The local addresses that connections of a cell's clients use in turn; empty if one is enough.
    pub fn sources_of(&self, cell: &Cell) -> Vec<IpAddr> {
        let first = cell.cell.saturating_sub(cell.group.group.into());
        let Ok(Some(topology)) = self.topology_of_run(self.cells_of_run(first)) else { return Vec::new() };
        topology.further_addresses(&cell.group.node)
    }

    /// Checks that no process needs more descriptors than the machine allows, `most` (RLIMIT_NOFILE), and no
    /// server has more TCP connections than it holds, `holds(chain, descriptors)`.
    ///
    /// A client is never split over processes.
    ///
    /// # Errors
    /// The numbers of the first run that needs more.
    pub fn check_connections(
        &self,
        most: u64,
        holds: impl Fn(&ServerChain, u64) -> Result<u64, String>,
    ) -> Result<(), String> {
        let room = most.saturating_sub(OWN_DESCRIPTORS.into());
        for run in self.run_cells() {
            let mut of_chains: Vec<(&ServerChain, u64)> = Vec::new();
            for cell in self.cells_of_run(run.cell).iter().filter(|cell| cell.unsupported.is_none()) {
                let ClientGroup { clients, variant, client, start, .. } = &cell.group;
                let workload = &self.workload_of(&cell.group).workload;
                let each = u64::from(connections_each(workload, *variant, self.pins_of(cell)));
                if client == OWN_CLIENT && each > room {
                    return Err(format!(
                        "{}: a client has {each} connections, and a process of this machine may have {room} \
                         (`ulimit -Hn` is {most}); write fewer `connections` and more `clients`",
                        cell.label()
                    ));
                }
                // QUIC connections share a socket of the server. Of clients that come over a period, some may
                // be done before others begin, except in loops that last as long as the run.
                let lasts = matches!(workload, Workload::Closed(closed) if closed.duration_ns.is_some());
                let at_once = *start == Start::Together || lasts;
                if cell.chain.remote.is_some() || variant.is_quic() || !at_once {
                    continue;
                }
                let all = each * u64::from(*clients);
                match of_chains.iter_mut().find(|(chain, _)| **chain == cell.chain) {
                    Some((_, known)) => *known += all,
                    None => of_chains.push((&cell.chain, all)),
                }
            }
            for (chain, all) in of_chains {
                let held = holds(chain, room)?;
                if all > held {
                    let server = &chain.server;
                    return Err(format!(
                        "{}: the clients have {all} connections to `{server}`, which holds {held} here (a process may have \
                         {room}: `ulimit -Hn` is {most}); write fewer `connections` or `clients`, or raise the limit",
                        run.label()
                    ));
                }
            }
        }
        Ok(())
    }

    /// The most connections that all clients of a cell make, one after the other or at once: a port is busy
    /// for a minute after its connection (TIME-WAIT, RFC 9293, section 3.4.2).
    fn connections_of(&self, cell: &Cell) -> u64 {
        let ClientGroup { clients, variant, .. } = &cell.group;
        let NamedWorkload { workload, options, .. } = self.workload_of(&cell.group);
        let each = u64::from(connections_each(workload, *variant, self.pins_of(cell)));
        let in_turn = options
            .connections
            .requests_each
            .map_or(0, |requests| workload.requests().unwrap_or(MANY_CONNECTIONS).div_ceil(requests.max(1)));
        each.max(in_turn).saturating_mul(u64::from(*clients))
    }
}

/// The connections that one client has open at most.
pub fn connections_each(workload: &Workload, variant: Variant, pins: &Pins) -> u32 {
    let each = match workload {
        Workload::Page(_) | Workload::Script(Script { sets_connections: false, .. })
            if variant.http() == HttpVersion::Http11 =>
        {
            pins.http1_connections
        }
        _ => workload.connections(),
    };
    let hosts = workload.page().map_or(1, |page| page.hosts.len().max(1));
    each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX))
}

/// The node of the relays to a cell's servers outside, if it has any.
fn relays_at(cell: &Cell) -> Option<&str> {
    cell.chain.remote.as_ref().map(|_| cell.chain.node.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Remote, RemoteTrust};
    use crate::study::tests::{SHORT, parse};
    use crate::url::Url;

    fn with(keys: &str) -> Result<crate::plan::Plan, String> {
        parse(&SHORT.replace("page_load_time", "request_time").replace(
            "kind = \"page\"\npage = \"small\"",
            &format!("kind = \"closed\"\npaths = [\"/bytes/1\"]\n{keys}"),
        ))
    }

    #[test]
    fn many_connections_have_several_addresses() {
        for (keys, addresses) in [
            ("requests = 55\nclients = 750", 0),
            ("requests = 55\nclients = 750\nrequests_per_connection = 1", 2),
            ("requests = 100\nconnections = 100\nclients = 1000", 4),
            ("duration = '5s'\nrequests_per_connection = 2", 4),
        ] {
            let plan = with(keys).unwrap();
            let sources = plan.sources_of(&plan.cells[0]);
            assert_eq!(sources.len(), addresses, "{keys}: {sources:?}");
            let distinct: std::collections::BTreeSet<_> = sources.iter().collect();
            assert_eq!(distinct.len(), addresses, "{keys}");
        }
        let plan = with("requests = 100\nconnections = 100\nclients = 1000").unwrap();
        let topology = plan.topology_of_run(plan.cells_of_run(0)).unwrap().unwrap();
        let known = &topology.nodes[topology.server].interfaces[0].neighbours;
        let further = plan.sources_of(&plan.cells[0]);
        assert!(further.iter().all(|address| known.iter().any(|(other, _)| other == address)), "{known:?}");
    }

    #[test]
    fn hosts_outside_have_an_address_each() {
        let mut plan = parse(SHORT).unwrap();
        let url = |host: &str| Url::parse(&format!("https://{host}.test/")).unwrap();
        let Workload::Page(page) = &mut plan.workloads[0].workload else { panic!("{SHORT}") };
        page.origins = ["a", "b", "c"].map(url).to_vec();
        assert_eq!(plan.relays_of(&plan.cells[0]), Vec::<IpAddr>::new(), "h123 starts the server");
        let trust = RemoteTrust::System;
        let remote = Remote { url: url("a"), trust, most_requests: 1, most_rate: 1 };
        plan.cells.iter_mut().for_each(|cell| cell.chain.remote = Some(remote.clone()));
        let relays = plan.relays_of(&plan.cells[0]);
        assert_eq!(relays.iter().collect::<BTreeSet<_>>().len(), 3, "{relays:?}");
        assert_eq!(plan.sources_of(&plan.cells[0]), Vec::<IpAddr>::new());
    }

    #[test]
    fn groups_of_one_node_share_its_addresses() {
        let group = |name: &str| format!("[[group]]\nname = '{name}'\nclients = 300\n");
        let plan = with(&format!("requests = 100\nconnections = 100\n{}{}", group("a"), group("b"))).unwrap();
        let cells = plan.cells_of_run(0);
        assert_eq!(cells.len(), 2);
        let sources = cells.iter().map(|cell| plan.sources_of(cell)).collect::<Vec<_>>();
        assert_eq!((sources[0].len(), &sources[0]), (3, &sources[1]), "60 000 connections together");
    }

    #[test]
    fn more_connections_than_a_server_or_a_process_holds_are_refused() {
        let check = |keys: &str, most| with(keys).unwrap().check_connections(most, |_, room| Ok(room));
        assert_eq!(check("requests = 100\nconnections = 100\nclients = 199", 20_000), Ok(()));
        let fault = check("requests = 100\nconnections = 100\nclients = 200", 20_000).unwrap_err();
        assert!(
            fault.contains(": the clients have 20000 connections to `origin`, which holds 19936 here (a process may have 19936"),
            "{fault}"
        );
        let fault = check("requests = 30000\nconnections = 30000", 20_000).unwrap_err();
        assert!(fault.contains(": a client has 30000 connections, and a process"), "{fault}");
        assert!(check("requests = 30000\nconnections = 300\nclients = 99", 1024).is_err());
        assert_eq!(check("requests = 30000\nconnections = 30000", 1 << 20), Ok(()));
        let plan = with("requests = 100\nconnections = 100\nclients = 3").unwrap();
        assert_eq!(plan.check_connections(20_000, |_, _| Ok(300)), Ok(()));
        let fault = plan.check_connections(20_000, |_, room| Ok(room.min(299))).unwrap_err();
        assert!(fault.contains("300 connections to `origin`, which holds 299 here"), "{fault}");
        for (keys, is_refused) in [("requests = 100", false), ("duration = '9s'", true)] {
            let keys = format!("{keys}\nconnections = 100\nclients = 3\nstart = {{ evenly = '5s' }}");
            let checked = with(&keys).unwrap().check_connections(20_000, |_, _| Ok(299));
            assert_eq!(checked.is_err(), is_refused, "{keys}: {checked:?}");
        }
        let groups = "requests = 100\nconnections = 100\n[[group]]\nname = 'a'\n[[group]]\nname = 'b'\n";
        let plan = with(groups).unwrap();
        assert_eq!(plan.check_connections(20_000, |_, _| Ok(200)), Ok(()));
        let fault = plan.check_connections(20_000, |_, _| Ok(199)).unwrap_err();
        assert!(fault.contains("200 connections to `origin`"), "groups share a server: {fault}");
    }

    #[test]
    fn more_connections_than_a_subnet_has_ports_are_refused() {
        let fault = with("requests = 100000\nconnections = 100000\nclients = 100000").unwrap_err();
        assert!(fault.contains("further addresses; its subnet"), "{fault}");
    }
}
