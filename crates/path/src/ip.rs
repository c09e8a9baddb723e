//! Fields of a frame that a router reads or writes: the flow, and the congestion mark.

pub(crate) const ETHERNET_HEADER_BYTES: usize = 14;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Protocols whose header starts with two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: &[u8] = &[6, 17, 33, 132, 136];

/// Marks congestion: ECT(0) or ECT(1) becomes CE (RFC 3168, section 5), and the checksum of an IPv4 header is
/// updated (RFC 1624). Returns whether the frame is marked; a frame that cannot carry the mark is unchanged.
pub fn mark_congestion(frame: &mut [u8]) -> bool {
    let ethertype = ethertype(frame);
    let Some(header) = frame.get_mut(ETHERNET_HEADER_BYTES..) else { return false };
    match (ethertype, header.first().map(|first| first >> 4)) {
        (Some(ETHERTYPE_IPV4), Some(4)) if ipv4_header_bytes(header).is_some() => mark_ipv4(header),
        // The two lowest bits of the traffic class, which spans the first two bytes.
        (Some(ETHERTYPE_IPV6), Some(6)) if header.len() >= 40 => match header[1] >> 4 & 0b11 {
            0b00 => false,
            _ => {
                header[1] |= 0b11 << 4;
                true
            }
        },
        _ => false,
    }
}

fn mark_ipv4(header: &mut [u8]) -> bool {
    let before = u16::from_be_bytes([header[0], header[1]]);
    if before & 0b11 == 0b00 {
        return false;
    }
    let after = before | 0b11;
    // HC' = ~(~HC + ~m + m'), RFC 1624, equation 3.
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    #[expect(clippy::cast_possible_truncation, reason = "folded to 16 bits")]
    let checksum = !(sum as u16);
    header[1] = after.to_be_bytes()[1];
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// A hash of addresses, protocol and ports; 0 for frames that are not IP. Only the first fragment of a packet
/// has ports, so the ports of fragments are ignored.
pub fn flow(frame: &[u8], salt: u64) -> u64 {
    let Some(header) = frame.get(ETHERNET_HEADER_BYTES..) else { return 0 };
    match ethertype(frame) {
        Some(ETHERTYPE_IPV4) => {
            let Some(header_bytes) = ipv4_header_bytes(header) else { return 0 };
            let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let protocol = header[9];
            let ports = if is_fragment { None } else { ports(header, header_bytes, protocol) };
            hash(salt, &header[12..20], protocol, ports)
        }
        Some(ETHERTYPE_IPV6) if header.len() >= 40 && header[0] >> 4 == 6 => {
            let protocol = header[6];
            hash(salt, &header[8..40], protocol, ports(header, 40, protocol))
        }
        _ => 0,
    }
}

/// The protocol above IP; `None` for other frames. Extension headers of IPv6 count as a protocol.
pub(crate) fn protocol(frame: &[u8]) -> Option<u8> {
    let header = frame.get(ETHERNET_HEADER_BYTES..)?;
    match ethertype(frame)? {
        ETHERTYPE_IPV4 => header.get(9).copied(),
        ETHERTYPE_IPV6 => header.get(6).copied(),
        _ => None,
    }
}

pub(crate) fn ethertype(frame: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(12)?, *frame.get(13)?]))
}

/// The length of an IPv4 header with its options; `None` for other packets, and where the header is
/// incomplete or shorter than its fixed fields (RFC 791, section 3.1).
pub(crate) fn ipv4_header_bytes(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0xf) * 4;
    (first >> 4 == 4 && (20..=packet.len()).contains(&header_bytes)).then_some(header_bytes)
}

fn ports(header: &[u8], at: usize, protocol: u8) -> Option<u32> {
    let ports: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
    WITH_PORTS.contains(&protocol).then_some(u32::from_be_bytes(ports))
}

fn hash(salt: u64, addresses: &[u8], protocol: u8, ports: Option<u32>) -> u64 {
    let mut state = salt ^ u64::from(protocol) << 32 ^ u64::from(ports.unwrap_or(0));
    let mut mix = |word: u64| {
        state = (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    };
    for word in addresses.chunks_exact(8) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        mix(u64::from_be_bytes(bytes));
    }
    mix(0x94d0_49bb_1331_11eb);
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a header from scratch (RFC 1071).
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    pub(crate) fn ipv4(tos: u8, source: u8, port: u16, identification: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let mut header = vec![0x45, tos, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, 9];
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(header);
        frame.extend(port.to_be_bytes());
        frame.extend([1, 187, 0, 20, 0, 0]);
        frame
    }

    fn ipv6(traffic_class: u8, source: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        frame.extend([0x60 | traffic_class >> 4, traffic_class << 4 | 0xa, 0xbc, 0xde, 0, 8, 17, 64]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, source]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        frame.extend(port.to_be_bytes());
        frame.extend([1, 187, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn ect_becomes_ce_and_the_checksum_holds() {
        for identification in 0..=u16::MAX {
            for ect in [0b01, 0b10, 0b11] {
                let mut frame = ipv4(0xb8 | ect, 1, 5000, identification);
                assert!(mark_congestion(&mut frame));
                assert_eq!(frame[15], 0xb8 | 0b11);
                let sum = checksum(&frame[14..34]);
                assert_eq!(sum, 0, "identification {identification}, from {ect:02b}");
            }
        }
    }

    #[test]
    fn ipv6_is_marked_and_nothing_else_of_it_changes() {
        for ect in [0b01, 0b10, 0b11] {
            let mut frame = ipv6(0xb8 | ect, 1, 5000);
            assert!(mark_congestion(&mut frame));
            assert_eq!(frame, ipv6(0xb8 | 0b11, 1, 5000));
        }
    }

    #[test]
    fn packets_that_cannot_carry_the_mark_are_unchanged() {
        let arp = [vec![0xff; 12], vec![8, 6], vec![1; 28]].concat();
        let short = ipv4(0b10, 1, 1, 1)[..33].to_vec();
        let mut frames = vec![ipv4(0xb8, 1, 5000, 7), ipv6(0xb8, 1, 5000), arp, short, vec![8; 5]];
        for length in [0x40, 0x44, 0x4f] {
            frames.push(ipv4(0b10, 1, 5000, 7));
            frames.last_mut().unwrap()[14] = length;
        }
        for frame in frames {
            let mut marked = frame.clone();
            assert!(!mark_congestion(&mut marked));
            assert_eq!(marked, frame);
        }
    }

    #[test]
    fn a_flow_is_its_addresses_protocol_and_ports() {
        for frame in [ipv4, |tos, source, port, _| ipv6(tos, source, port)] {
            assert_eq!(flow(&frame(0, 1, 5000, 7), 1), flow(&frame(3, 1, 5000, 8), 1), "one flow");
            assert_ne!(flow(&frame(0, 1, 5000, 7), 1), flow(&frame(0, 1, 5001, 7), 1), "another port");
            assert_ne!(flow(&frame(0, 1, 5000, 7), 1), flow(&frame(0, 2, 5000, 7), 1), "another address");
            assert_ne!(flow(&frame(0, 1, 5000, 7), 1), flow(&frame(0, 1, 5000, 7), 2), "another salt");
        }
        let mut fragment = ipv4(0, 1, 5000, 7);
        fragment[20] = 0x20;
        let mut later = ipv4(0, 1, 999, 7);
        later[21] = 100;
        assert_eq!(flow(&fragment, 1), flow(&later, 1), "fragments of one packet");
        assert_eq!(flow(&[0; 20], 1), 0);
        for (mut frame, first) in [(ipv4(2, 1, 5000, 7), 0x44), (ipv6(2, 1, 5000), 0x40)] {
            frame[14] = first;
            assert_eq!(flow(&frame, 1), 0, "a header length below its minimum, or another version");
        }
    }

    #[test]
    fn flows_spread_over_the_queues() {
        let mut used = std::collections::BTreeSet::new();
        for port in 0..1000 {
            used.insert(flow(&ipv4(0, 1, port, 0), 99) % 1024);
        }
        // 1000 balls into 1024 bins hit about 638 of them.
        assert!((590..690).contains(&used.len()), "{}", used.len());
    }
}
