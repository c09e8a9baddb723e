//! A NAT at the client's end of a link that forgets its mappings during a run.
//!
//! Until the first rebinding every port is its own mapping, so that frames pass unchanged. Each rebinding
//! gives all ports of the client other numbers. A frame to a port that has sent nothing since then finds no
//! mapping and is dropped, as a NAT does (RFC 4787, section 4.3: endpoint-independent mapping and filtering;
//! RFC 5382 for TCP). ICMP and fragments without ports pass.

use std::collections::VecDeque;

use model::Network;

use crate::ip::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, TCP, UDP, ethertype};

/// Lower ports are those of services, which no NAT maps.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;
/// The distance between a port's successive mappings: prime, so that it takes many rebindings to return.
const STEP: u32 = 20_011;
const WORDS: usize = 65_536 / 64;

/// The mappings of a link.
#[derive(Debug)]
pub struct Nat {
    due_ns: VecDeque<u64>,
    rebindings: u32,
    /// For TCP and UDP, one bit for each port of the client that sent since the last rebinding.
    known: [Box<[u64; WORDS]>; 2],
}

/// Where the parts of a frame are.
struct Ports {
    /// The index into `Nat::known`.
    protocol: usize,
    source_at: usize,
    checksum_at: usize,
}

impl Nat {
    /// The NAT of a network in a run that starts at `start_ns`.
    pub fn new(network: &Network, start_ns: u64) -> Nat {
        let due = network.timeline.iter().filter(|change| change.rebinding);
        Nat {
            due_ns: due.map(|change| start_ns.saturating_add(change.at_ns)).collect(),
            rebindings: 0,
            known: [Box::new([0; WORDS]), Box::new([0; WORDS])],
        }
    }

    /// Forgets all mappings now.
    pub fn rebind(&mut self) {
        self.rebindings += 1;
        self.known.iter_mut().for_each(|known| known.fill(0));
    }

    /// Translates a frame that the client sends.
    pub fn send(&mut self, now_ns: u64, frame: &mut [u8]) {
        let Some(ports) = self.ports(now_ns, frame) else { return };
        let port = read(frame, ports.source_at);
        if u32::from(port) >= FIRST_PORT {
            self.known[ports.protocol][usize::from(port / 64)] |= 1 << (port % 64);
            rewrite(frame, ports.source_at, ports.checksum_at, self.shifted(port, true));
        }
    }

    /// Translates a frame to the client; false if the NAT has no mapping for it.
    pub fn receive(&mut self, now_ns: u64, frame: &mut [u8]) -> bool {
        let Some(ports) = self.ports(now_ns, frame) else { return true };
        let destination_at = ports.source_at + 2;
        let outside = read(frame, destination_at);
        if u32::from(outside) < FIRST_PORT {
            return true;
        }
        let port = self.shifted(outside, false);
        let is_known = self.known[ports.protocol][usize::from(port / 64)] >> (port % 64) & 1 == 1;
        if is_known {
            rewrite(frame, destination_at, ports.checksum_at, port);
        }
        is_known
    }

    /// The ports of a frame that the NAT may translate; none before the first rebinding.
    fn ports(&mut self, now_ns: u64, frame: &[u8]) -> Option<Ports> {
        while self.due_ns.pop_front_if(|due_ns| *due_ns <= now_ns).is_some() {
            self.rebind();
        }
        if self.rebindings == 0 {
            return None;
        }
        let header = frame.get(ETHERNET_HEADER_BYTES..)?;
        let (protocol, header_bytes) = match ethertype(frame)? {
            ETHERTYPE_IPV4 if header.len() >= 20 => {
                // A later fragment has no ports.
                let is_later = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
                (Some(header[9]).filter(|_| !is_later)?, usize::from(header[0] & 0xf) * 4)
            }
            ETHERTYPE_IPV6 if header.len() >= 40 => (header[6], 40),
            _ => return None,
        };
        let source_at = ETHERNET_HEADER_BYTES + header_bytes;
        let (protocol, checksum_at) = match protocol {
            TCP => (0, source_at + 16),
            UDP => (1, source_at + 6),
            _ => return None,
        };
        (header_bytes >= 20 && frame.len() >= checksum_at + 2).then_some(Ports {
            protocol,
            source_at,
            checksum_at,
        })
    }

    /// The port's number outside, or inside of a number outside.
    fn shifted(&self, port: u16, is_outward: bool) -> u16 {
        let by = u64::from(self.rebindings) * u64::from(STEP) % u64::from(PORTS);
        let by = if is_outward { by } else { u64::from(PORTS) - by };
        let shifted =
            (u64::from(u32::from(port) - FIRST_PORT) + by) % u64::from(PORTS) + u64::from(FIRST_PORT);
        u16::try_from(shifted).unwrap_or(port)
    }
}

fn read(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// Writes a port and updates the checksum (RFC 1624, equation 3).
fn rewrite(frame: &mut [u8], at: usize, checksum_at: usize, port: u16) {
    let (before, checksum) = (read(frame, at), read(frame, checksum_at));
    frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
    // UDP over IPv4 may have no checksum (RFC 768).
    if checksum == 0 {
        return;
    }
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(port);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    #[expect(clippy::cast_possible_truncation, reason = "folded to 16 bits")]
    let after = !(sum as u16);
    // A computed 0 is sent as all ones, because 0 means none (RFC 768).
    let after = if after == 0 { 0xffff } else { after };
    frame[checksum_at..checksum_at + 2].copy_from_slice(&after.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame over IPv4 with a correct checksum; the ports come first in its payload.
    fn frame(protocol: u8, source: u16, destination: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(source.to_be_bytes());
        frame.extend(destination.to_be_bytes());
        frame.extend((0..36).map(|byte| byte * 7));
        let at = 34 + if protocol == TCP { 16 } else { 6 };
        frame[at..at + 2].fill(0);
        let sum = !sum(&frame);
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The sum over addresses, protocol, length and payload (RFC 793, section 3.1): all ones if the checksum
    /// holds.
    fn sum(frame: &[u8]) -> u16 {
        let words = frame[26..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let mut sum: u32 =
            words.sum::<u32>() + u32::from(frame[23]) + u32::try_from(frame.len() - 34).unwrap();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::try_from(sum).unwrap()
    }

    #[test]
    fn nothing_changes_before_a_rebinding() {
        let mut nat = Nat::new(&Network::default(), 0);
        let mut sent = frame(UDP, 40_000, 443);
        nat.send(u64::MAX, &mut sent);
        assert_eq!(sent, frame(UDP, 40_000, 443));
        assert!(nat.receive(u64::MAX, &mut frame(UDP, 443, 40_000)));
    }

    #[test]
    fn a_rebinding_gives_new_ports_and_forgets_the_old_ones() {
        for protocol in [TCP, UDP] {
            let mut nat = Nat::new(&Network::default(), 0);
            let mut ports = vec![40_000];
            for _ in 0..100 {
                nat.rebind();
                assert!(!nat.receive(0, &mut frame(protocol, 443, ports[0])), "no mapping yet");
                let mut sent = frame(protocol, 40_000, 443);
                nat.send(0, &mut sent);
                assert_eq!(sum(&sent), 0xffff, "the checksum holds");
                let outside = read(&sent, 34);
                assert!(!ports.contains(&outside) && outside >= 1024, "{outside} in {ports:?}");
                let mut answer = frame(protocol, 443, outside);
                assert!(nat.receive(0, &mut answer));
                assert_eq!((read(&answer, 36), sum(&answer)), (40_000, 0xffff));
                assert!(!nat.receive(0, &mut frame(protocol, 443, *ports.last().unwrap())), "the old port");
                ports.push(outside);
            }
        }
    }

    #[test]
    fn other_frames_and_services_pass() {
        let mut nat = Nat::new(&Network::default(), 0);
        nat.rebind();
        for mut passing in [frame(1, 40_000, 50_000), frame(UDP, 500, 53), vec![0; 20], Vec::new()] {
            let before = passing.clone();
            nat.send(0, &mut passing);
            assert!(nat.receive(0, &mut passing));
            assert_eq!(passing, before);
        }
        let mut later = frame(UDP, 40_000, 50_000);
        later[21] = 9;
        assert!(nat.receive(0, &mut later), "a later fragment has no ports");
        let mut without = frame(UDP, 40_000, 443);
        without[40..42].fill(0);
        nat.send(0, &mut without);
        assert_eq!(read(&without, 40), 0, "no checksum stays none");
    }
}
