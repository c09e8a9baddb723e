//! Handovers: the successive addresses of a host.

use std::net::{IpAddr, Ipv4Addr};

use super::subnet::first_of;
use super::{Interface, Role, Topology};

/// The most handovers of a link.
const MOST: usize = 200;

/// The addresses of a host at one link, whose network hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// The link's index.
    pub link: usize,
    /// Indices of the host and of its interface.
    pub end: (usize, usize),
    /// For each family that the interface has, its addresses with the lengths of their prefixes: first the
    /// one that it begins with, then one for each handover.
    pub families: Vec<Vec<(IpAddr, u8)>>,
}

/// Handovers that a topology has no addresses for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct AddressChangeError {
    /// The link's index.
    pub link: usize,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Topology {
    /// The address changes of every host at the first end of a link whose network has handovers. New
    /// addresses are in the host's own subnet, which others have routes to already.
    ///
    /// # Errors
    /// The first end is not a host, or its subnet has too few addresses left.
    pub fn address_changes(&self) -> Result<Vec<AddressChange>, AddressChangeError> {
        let mut taken: Vec<IpAddr> = self.addresses();
        let mut found = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let count = link.network.iter().flat_map(|network| &network.timeline);
            let count = count.filter(|change| change.handover).count();
            if count == 0 {
                continue;
            }
            let (node, interface) = link.ends[0];
            let name = &link.name;
            let refuse = |problem: String| Err(AddressChangeError { link: index, problem });
            if count > MOST {
                return refuse(format!("the link `{name}` has {count} handovers; write at most {MOST}"));
            }
            let host = &self.nodes[node];
            if host.role != Role::Host {
                return refuse(format!(
                    "the link `{name}` has a handover, but its first end `{}` is not a host; put a host there, because \
                     the address of the first end changes",
                    host.name
                ));
            }
            let interface = &host.interfaces[interface];
            let mut families = Vec::new();
            for (address, prefix) in interface.addresses() {
                let new: Vec<IpAddr> =
                    hosts_of(address, prefix).filter(|new| !taken.contains(new)).take(count).collect();
                if new.len() < count {
                    return refuse(format!(
                        "the link `{name}` needs {count} further address{}, one for each handover; its subnet \
                         {}/{prefix} has {}; give the link a larger subnet",
                        if count == 1 { "" } else { "es" },
                        first_of(address, prefix),
                        new.len()
                    ));
                }
                taken.extend(&new);
                // A later address has a full-length prefix; otherwise it is a secondary of the earlier one
                // and is removed with it.
                let alone = if address.is_ipv4() { 32 } else { 128 };
                let later = new.into_iter().map(|address| (address, alone));
                families.push(std::iter::once((address, prefix)).chain(later).collect());
            }
            found.push(AddressChange { link: index, end: link.ends[0], families });
        }
        Ok(found)
    }

    /// Makes every neighbour know the later addresses.
    pub fn expect(&mut self, changes: &[AddressChange]) {
        for changes in changes {
            let mac = self.nodes[changes.end.0].interfaces[changes.end.1].mac;
            for family in &changes.families {
                let Some(((first, _), later)) = family.split_first() else { continue };
                let interfaces = self.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
                for interface in interfaces.filter(|interface| interface.neighbours.contains(&(*first, mac)))
                {
                    interface.neighbours.extend(later.iter().map(|(address, _)| (*address, mac)));
                }
            }
        }
    }

    /// Gives a host further IPv4 addresses of its subnet, which every neighbour knows. Others have routes to
    /// the subnet already.
    ///
    /// # Errors
    /// There is no such host, or its subnet has too few addresses left.
    pub fn add_addresses(&mut self, node: &str, count: u64) -> Result<(), String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let taken = self.addresses();
        let node = self.host(node)?;
        let first = self.nodes[node].interfaces.iter_mut().find_map(|port| Some((port.v4?, port)));
        let Some(((own, prefix), port)) = first else {
            return Err(format!("`{}` has no IPv4 address", self.nodes[node].name));
        };
        let free = hosts_of(own.into(), prefix).filter(|address| !taken.contains(address));
        let new: Vec<Ipv4Addr> = free.filter_map(as_v4).take(count).collect();
        if new.len() < count {
            return Err(format!(
                "the connections of the clients in `{}` need {count} further addresses; its subnet {}/{prefix} has {}; \
                 make fewer connections, or give the link a larger subnet",
                self.nodes[node].name,
                first_of(own.into(), prefix),
                new.len()
            ));
        }
        let mac = port.mac;
        port.further.extend(&new);
        let interfaces = self.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
        for interface in interfaces.filter(|port| port.neighbours.contains(&(own.into(), mac))) {
            interface.neighbours.extend(new.iter().map(|address| (IpAddr::from(*address), mac)));
        }
        Ok(())
    }

    /// The IPv4 addresses of a host that has further ones; none of any other node.
    pub fn further_addresses(&self, node: &str) -> Vec<IpAddr> {
        let ports = self.nodes.iter().filter(|known| known.name == node).flat_map(|node| &node.interfaces);
        let mut having = ports.filter(|port| !port.further.is_empty());
        having.next().map_or_else(Vec::new, |port| {
            let own = port.v4.map(|(address, _)| address);
            own.into_iter().chain(port.further.iter().copied()).map(IpAddr::from).collect()
        })
    }

    fn addresses(&self) -> Vec<IpAddr> {
        let interfaces = self.nodes.iter().flat_map(|node| &node.interfaces);
        interfaces.flat_map(Interface::addresses).map(|(address, _)| address).collect()
    }
}

fn as_v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

/// Every host address of a subnet, in order.
fn hosts_of(address: IpAddr, prefix: u8) -> Box<dyn Iterator<Item = IpAddr>> {
    match first_of(address, prefix) {
        IpAddr::V4(first) => {
            let size = 1_u64 << (32 - u32::from(prefix));
            let first = u64::from(first.to_bits());
            // The last address is the broadcast's.
            let hosts = first + 1..(first + size).saturating_sub(1);
            Box::new(
                hosts
                    .filter_map(|bits| u32::try_from(bits).ok())
                    .map(|bits| Ipv4Addr::from_bits(bits).into()),
            )
        }
        IpAddr::V6(first) => {
            let first = first.to_bits();
            let room = 128 - u32::from(prefix.min(128));
            let last = 1_u128.checked_shl(room).map_or(u128::MAX, |size| first + (size - 1));
            let hosts = first.saturating_add(1)..=last;
            Box::new(hosts.map(|bits| std::net::Ipv6Addr::from_bits(bits).into()))
        }
    }
}
