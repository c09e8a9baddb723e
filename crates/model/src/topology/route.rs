//! The route of packets between a topology's client and server, and its total effect on them.

use std::net::IpAddr;

use super::subnet::first_of;
use super::{Role, Route, Topology};
use crate::network::{Direction, LinkRate, Loss, Network, UdpRule};

/// One link on the route from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index into [`Topology::links`].
    pub link: usize,
    /// Whether the link's *up* leads towards the server.
    pub is_forward: bool,
}

impl Topology {
    /// The index of a host of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn host(&self, name: &str) -> Result<usize, String> {
        let hosts =
            || self.nodes.iter().filter(|node| node.role == Role::Host).map(|node| node.name.as_str());
        let found = self.position(name).filter(|_| hosts().any(|host| host == name));
        found.ok_or_else(|| {
            let noun = format!("a host of the topology `{}`", self.name);
            crate::named::unknown(name, &noun, &hosts().collect::<Vec<_>>())
        })
    }

    /// Chooses the nodes of those who are measured, by their indices.
    ///
    /// # Errors
    /// They are the same, or packets find no route from one to the other.
    pub fn choose(&mut self, client: usize, server: usize) -> Result<(), String> {
        let [from, to] = [client, server].map(|node| self.nodes[node].name.as_str());
        if client == server {
            return Err(format!("the node `{from}` is both client and server; choose two nodes"));
        }
        if self.route_between(client, server).is_none() {
            return Err(format!(
                "packets find no route from the node `{from}` to `{to}`, because a host between them forwards nothing; \
                 choose two nodes that reach each other, or a reverse proxy on that host (`[server.NAME.back]` in the study)"
            ));
        }
        (self.client, self.server) = (client, server);
        Ok(())
    }

    /// The links from the client to the server, in order; `None` if packets find no route.
    pub fn route(&self) -> Option<Vec<Hop>> {
        self.route_between(self.client, self.server)
    }

    /// The links from one node to another, in order; `None` if packets find no route.
    pub(crate) fn route_between(&self, from: usize, to: usize) -> Option<Vec<Hop>> {
        let target = self.nodes[to].address_v4()?;
        let mut steps = Vec::new();
        let mut node = from;
        // No route visits a link twice.
        while steps.len() <= self.links.len() {
            if node == to {
                return Some(steps);
            }
            let leads_there = |route: &&Route| {
                route.network.is_ipv4() && first_of(target.into(), route.prefix) == route.network
            };
            let route = self.nodes[node].routes.iter().find(leads_there)?;
            let next: IpAddr = route.via.unwrap_or(target.into());
            let port = &self.nodes[node].interfaces[route.interface];
            let mac = port.neighbours.iter().find(|(address, _)| *address == next)?.1;
            node = self.follow((node, route.interface), mac, &mut steps)?;
        }
        None
    }

    /// Follows a frame over switches to the node that has this Ethernet address.
    fn follow(&self, mut port: (usize, usize), mac: [u8; 6], steps: &mut Vec<Hop>) -> Option<usize> {
        for _ in 0..=self.links.len() {
            let link = self.links.iter().position(|link| link.ends.contains(&port))?;
            let is_forward = self.links[link].ends[0] == port;
            let (node, interface) = self.links[link].ends[usize::from(is_forward)];
            steps.push(Hop { link, is_forward });
            if self.nodes[node].role != Role::Switch {
                return (self.nodes[node].interfaces[interface].mac == mac).then_some(node);
            }
            let ports = &self.nodes[node].interfaces;
            port = (node, ports.iter().position(|port| port.beyond.contains(&mac))?);
        }
        None
    }

    /// The networks on the route from the client to the server, in order and seen from the client.
    pub fn emulated_route(&self) -> Vec<Network> {
        self.networks_of(&self.route().unwrap_or_default())
    }

    fn networks_of(&self, steps: &[Hop]) -> Vec<Network> {
        let emulated = steps.iter().filter_map(|step| Some((self.links[step.link].network.as_ref()?, step)));
        emulated
            .map(|(network, step)| if step.is_forward { network.clone() } else { turned(network) })
            .collect()
    }

    /// What the whole route from the client to the server does to packets: of one emulated link all of it; of
    /// several the sum of their delays, the least of constant rates, and loss by chance. For predictions and
    /// descriptions; what is built are the links.
    pub fn route_network(&self, name: &str) -> Network {
        self.in_one(&self.emulated_route(), name)
    }

    /// The same as far as the last of these nodes, each behind the one before and the first behind the
    /// server; `None` if there is no such node or route.
    pub(crate) fn route_network_to(&self, backs: &[String], name: &str) -> Option<Network> {
        let mut networks = self.emulated_route();
        let mut from = self.server;
        for back in backs {
            let back = self.position(back)?;
            networks.extend(self.networks_of(&self.route_between(from, back)?));
            from = back;
        }
        Some(self.in_one(&networks, name))
    }

    fn in_one(&self, networks: &[Network], name: &str) -> Network {
        if let [only] = networks {
            return Network { name: name.to_owned(), ..only.clone() };
        }
        Network {
            name: name.to_owned(),
            title: self.title.clone(),
            source: match networks {
                [] => format!("the topology {}", self.name),
                all => all.iter().map(|network| network.source.as_str()).collect::<Vec<_>>().join("; "),
            },
            up: chained(networks.iter().map(|network| &network.up)),
            down: chained(networks.iter().map(|network| &network.down)),
            timeline: Vec::new(),
        }
    }
}

/// The same network seen from its other end.
fn turned(network: &Network) -> Network {
    let mut turned = network.clone();
    std::mem::swap(&mut turned.up, &mut turned.down);
    for change in &mut turned.timeline {
        std::mem::swap(&mut change.up, &mut change.down);
    }
    turned
}

/// Several directions in sequence.
fn chained<'a>(directions: impl Iterator<Item = &'a Direction>) -> Direction {
    let mut all = Direction::default();
    let mut passed_share = 1.0;
    let mut least_bits_per_s: Option<u64> = None;
    for direction in directions {
        all.delay_ns += direction.delay_ns;
        all.udp = stricter(all.udp, direction.udp);
        passed_share *= 1.0 - direction.loss.mean_share();
        if let Some(bits_per_s) = direction.rate.mean_bits_per_s()
            && least_bits_per_s.is_none_or(|least| bits_per_s < least)
        {
            least_bits_per_s = Some(bits_per_s);
            all.queue = direction.queue;
        }
    }
    all.rate = least_bits_per_s.map_or(LinkRate::Unlimited, |bits_per_s| LinkRate::Constant { bits_per_s });
    if passed_share < 1.0 {
        all.loss = Loss::Independent { share: 1.0 - passed_share };
    }
    all
}

/// The rule that lets less UDP pass.
fn stricter(one: Option<UdpRule>, other: Option<UdpRule>) -> Option<UdpRule> {
    match (one, other) {
        (None, rule) | (rule, None) => rule,
        (Some(UdpRule::Blocked), _) | (_, Some(UdpRule::Blocked)) => Some(UdpRule::Blocked),
        (
            Some(one @ UdpRule::Policed { bits_per_s, .. }),
            Some(other @ UdpRule::Policed { bits_per_s: rate, .. }),
        ) => Some(if bits_per_s <= rate { one } else { other }),
    }
}
