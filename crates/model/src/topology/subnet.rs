//! Subnets: the interfaces that reach each other without a router, and their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::written::End;
use crate::reader::Placed;

/// The automatic addresses: `10.123.SUBNET.HOST/24` and `fd12:3123:123:SUBNET::HOST/64`. The 256th subnet is
/// 10.124.0.0.
const AUTOMATIC_V4: Ipv4Addr = Ipv4Addr::new(10, 123, 0, 0);
const AUTOMATIC_V6: Ipv6Addr = Ipv6Addr::new(0xfd12, 0x3123, 0x123, 0, 0, 0, 0, 0);
const PREFIX_V4: u8 = 24;
const PREFIX_V6: u8 = 64;

/// The number of automatic subnets, up to 10.138.255.0: a thousand links, and one from each of a thousand
/// nodes to a further host.
pub(super) const SUBNETS: u16 = 4096;
/// The most hosts of an automatic subnet; the last IPv4 address is the broadcast's.
pub(super) const MOST_HOSTS: u8 = 254;

/// Where an interface is: its node, and its index there.
pub(super) type Port = (usize, usize);

/// Interfaces that reach each other without a router: a link, or all links of joined switches.
pub(super) struct Subnet {
    /// The interfaces that have addresses.
    pub(super) ports: Vec<Port>,
    /// What was written for each of these.
    pub(super) ends: Vec<Placed<End>>,
}

/// Whether two subnets have a common address.
pub(super) fn overlap(one: (IpAddr, u8), other: (IpAddr, u8)) -> bool {
    let shorter = one.1.min(other.1);
    one.0.is_ipv4() == other.0.is_ipv4() && first_of(one.0, shorter) == first_of(other.0, shorter)
}

/// The first address of a subnet.
pub(super) fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

pub(super) fn automatic(is_v4: bool, subnet: u16, host: u8) -> (IpAddr, u8) {
    if is_v4 {
        let (address, prefix) = automatic_v4(subnet, host);
        (address.into(), prefix)
    } else {
        let (address, prefix) = automatic_v6(subnet, host);
        (address.into(), prefix)
    }
}

pub(super) const fn automatic_v4(subnet: u16, host: u8) -> (Ipv4Addr, u8) {
    let bits = ((subnet as u32) << 8) | host as u32;
    (Ipv4Addr::from_bits(AUTOMATIC_V4.to_bits() + bits), PREFIX_V4)
}

pub(super) const fn automatic_v6(subnet: u16, host: u8) -> (Ipv6Addr, u8) {
    let bits = ((subnet as u128) << 64) | host as u128;
    (Ipv6Addr::from_bits(AUTOMATIC_V6.to_bits() | bits), PREFIX_V6)
}
