//! The TCP segment in a frame, for observers of a link.

use crate::ip::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ethertype, ipv4_header_bytes};

const TCP: u8 = 6;
const SYN: u8 = 0x02;
/// The fixed fields of a TCP header (RFC 9293, section 3.1).
const FIXED_HEADER_BYTES: usize = 20;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// A hash of the source address.
    pub source: u32,
    /// A hash of the destination address.
    pub destination: u32,
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Bytes of payload.
    pub payload_bytes: u16,
    /// Whether it opens a connection.
    pub is_syn: bool,
}

/// The segment in a frame; `None` for other and incomplete frames, and for IPv6 extension headers.
pub fn segment(frame: &[u8]) -> Option<Segment> {
    let packet = frame.get(ETHERNET_HEADER_BYTES..)?;
    let (addresses, rest) = match ethertype(frame)? {
        ETHERTYPE_IPV4 => {
            let header_bytes = ipv4_header_bytes(packet)?;
            let all_bytes = usize::from(word(packet, 2)?);
            let is_fragment = word(packet, 6)? & 0x3fff != 0;
            if is_fragment || *packet.get(9)? != TCP {
                return None;
            }
            // Ethernet pads short frames: the length in the IP header counts.
            (packet.get(12..20)?, packet.get(header_bytes..all_bytes)?)
        }
        ETHERTYPE_IPV6 if packet.first()? >> 4 == 6 && *packet.get(6)? == TCP => {
            (packet.get(8..40)?, packet.get(40..40 + usize::from(word(packet, 4)?))?)
        }
        _ => return None,
    };
    let header_bytes = usize::from(rest.get(12)? >> 4) * 4;
    if header_bytes < FIXED_HEADER_BYTES {
        return None;
    }
    let payload_bytes = rest.len().checked_sub(header_bytes)?;
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    Some(Segment {
        source: hash(source),
        destination: hash(destination),
        ports: [word(rest, 0)?, word(rest, 2)?],
        sequence: u32::from(word(rest, 4)?) << 16 | u32::from(word(rest, 6)?),
        payload_bytes: u16::try_from(payload_bytes).ok()?,
        is_syn: rest.get(13)? & SYN != 0,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// FNV-1a; an IPv4 address is its own hash.
fn hash(address: &[u8]) -> u32 {
    if let Ok(v4) = <[u8; 4]>::try_from(address) {
        return u32::from_be_bytes(v4);
    }
    address.iter().fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(payload: usize, flags: u8) -> Vec<u8> {
        let mut segment = vec![0x9c, 0x41, 0x1f, 0x90, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0x80, flags];
        segment.resize(32 + payload, 7);
        segment
    }

    fn ipv4(segment: &[u8]) -> Vec<u8> {
        let length = u16::try_from(20 + segment.len()).unwrap().to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(segment);
        frame
    }

    fn ipv6(segment: &[u8]) -> Vec<u8> {
        let length = u16::try_from(segment.len()).unwrap().to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, length[0], length[1], 6, 64]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        frame.extend(segment);
        frame
    }

    #[test]
    fn a_segment_is_read_from_a_padded_frame() {
        for payload in [0, 1, 1_400] {
            let mut frame = ipv4(&tcp(payload, 0x10));
            frame.resize(frame.len().max(60), 0);
            let found = segment(&frame).unwrap();
            let expected = Segment {
                source: 0x0a00_0001,
                destination: 0x0a00_0002,
                ports: [40_001, 8_080],
                sequence: 0xffff_fffe,
                payload_bytes: u16::try_from(payload).unwrap(),
                is_syn: false,
            };
            assert_eq!(found, expected);
            let found = segment(&ipv6(&tcp(payload, 0x12))).unwrap();
            assert_eq!((found.ports, found.payload_bytes), (expected.ports, expected.payload_bytes));
            assert!(found.is_syn && found.source != found.destination);
        }
    }

    #[test]
    fn an_incomplete_segment_is_none() {
        let good = ipv4(&tcp(10, 0x10));
        assert!(segment(&good).is_some());
        for (at, value) in [
            (12, 9),
            (14, 0x65),
            (14, 0x4f),
            (14, 0x40),
            (14, 0x44),
            (16, 0xff),
            (20, 0x20),
            (23, 17),
            (46, 0xf0),
            (46, 0),
            (46, 0x40),
        ] {
            let mut frame = good.clone();
            frame[at] = value;
            assert_eq!(segment(&frame), None, "byte {at}");
        }
        (0..good.len()).for_each(|length| assert_eq!(segment(&good[..length]), None, "{length} bytes"));
    }
}
