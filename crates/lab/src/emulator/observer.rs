//! Who notes when TCP payload passes a node's end of a link: what reached the node, and what left it.
//!
//! It lives in the emulator's thread, so it takes a few numbers of each segment, into memory that is there before.

use path::tcp::{Segment, segment};

/// Segments beyond so many are counted only: 128 MB of notes.
const MOST_SEGMENTS: usize = 1 << 22;
/// What the kernel's stamp of a frame that left is uncertain by, and any other at least.
const STAMP_NS: u32 = 1_000;
/// Frames may be looked at so much later than others that came after them.
const DISORDER_NS: u64 = 100_000_000;

/// One TCP segment at a node's end of a link: one with payload, or one that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSegment {
    /// When it passed, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// That time may be too late by so much.
    pub uncertain_ns: u32,
    /// A number that stands for the address of the node's peer.
    pub peer: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// The peer's port.
    pub peer_port: u16,
    /// Bytes of payload.
    pub payload_bytes: u16,
    /// Whether it opens a connection.
    pub is_syn: bool,
    /// Whether it reached the node; otherwise it left it.
    pub has_arrived: bool,
}

/// What was noted at one node's end of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The node's name.
    pub node: String,
    /// The segments, in no order.
    pub segments: Vec<SeenSegment>,
    /// Segments for which there was no room.
    pub missed: u64,
    /// Until then every segment was noted, in nanoseconds of the monotonic clock; the largest number where all were.
    pub whole_until_ns: u64,
}

/// Notes what passes one end of a link over some of the node's ports.
#[derive(Debug)]
pub(crate) struct Observer {
    /// The link's end: 0 or 1.
    side: usize,
    ports: Vec<u16>,
    seen: Seen,
}

impl Observer {
    /// For the node at this end.
    pub(crate) fn new(side: usize, node: &str, ports: &[u16]) -> Observer {
        let segments = Vec::with_capacity(MOST_SEGMENTS);
        Observer {
            side,
            ports: ports.to_vec(),
            seen: Seen { node: node.to_owned(), segments, missed: 0, whole_until_ns: u64::MAX },
        }
    }

    /// The node at one end sent a frame at this time.
    pub(super) fn sent(&mut self, side: usize, at_ns: u64, frame: &[u8]) {
        if side == self.side
            && let Some(segment) = segment(frame)
        {
            self.note(&segment, at_ns, STAMP_NS, false);
        }
    }

    /// A frame reached the node at one end between these times.
    pub(super) fn received(&mut self, side: usize, from_ns: u64, to_ns: u64, frame: &[u8]) {
        if side == self.side
            && let Some(segment) = segment(frame)
        {
            let uncertain_ns = u32::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(u32::MAX);
            self.note(&segment, to_ns, uncertain_ns.max(STAMP_NS), true);
        }
    }

    /// What was noted.
    pub(super) fn into_seen(self) -> Seen {
        self.seen
    }

    fn note(&mut self, segment: &Segment, at_ns: u64, uncertain_ns: u32, has_arrived: bool) {
        let [from, to] = segment.ports;
        let (peer, peer_port, own_port) =
            if has_arrived { (segment.source, from, to) } else { (segment.destination, to, from) };
        if !self.ports.contains(&own_port) || (segment.payload_bytes == 0 && !segment.is_syn) {
            return;
        }
        if self.seen.segments.len() == self.seen.segments.capacity() {
            // Frames are not looked at quite in the order of their times.
            let last_ns = self.seen.segments.last().map_or(0, |segment| segment.at_ns);
            self.seen.whole_until_ns = last_ns.saturating_sub(DISORDER_NS);
            self.seen.missed += 1;
            return;
        }
        let Segment { sequence, payload_bytes, is_syn, .. } = *segment;
        self.seen.segments.push(SeenSegment {
            at_ns,
            uncertain_ns,
            peer,
            sequence,
            peer_port,
            payload_bytes,
            is_syn,
            has_arrived,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(from: u16, to: u16, payload: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 40 + payload, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(from.to_be_bytes());
        frame.extend(to.to_be_bytes());
        frame.extend([0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        frame.extend(vec![0; usize::from(payload)]);
        frame
    }

    #[test]
    fn payload_over_the_nodes_ports_is_noted_at_its_end_alone() {
        let mut observer = Observer::new(1, "server", &[8080]);
        observer.received(1, 50, 70, &frame(40_000, 8080, 5));
        observer.received(1, 5_000, 9_000, &frame(40_000, 8080, 6));
        observer.sent(1, 90, &frame(8080, 40_000, 7));
        // The other end, another port, no payload, no TCP.
        observer.received(0, 0, 1, &frame(40_000, 8080, 5));
        observer.sent(0, 1, &frame(40_000, 8080, 5));
        observer.received(1, 0, 1, &frame(40_000, 8081, 5));
        observer.received(1, 0, 1, &frame(40_000, 8080, 0));
        observer.sent(1, 1, &[0; 60]);
        let seen = observer.into_seen();
        let found: Vec<_> = seen
            .segments
            .iter()
            .map(|s| (s.at_ns, s.uncertain_ns, s.peer_port, s.payload_bytes, s.has_arrived))
            .collect();
        let expected = [
            (70, STAMP_NS, 40_000, 5, true),
            (9_000, 4_000, 40_000, 6, true),
            (90, STAMP_NS, 40_000, 7, false),
        ];
        assert_eq!((found.as_slice(), seen.missed, seen.node.as_str()), (&expected[..], 0, "server"));
        assert_eq!(seen.segments[0].peer, 0x0a00_0001);
        assert_eq!(seen.segments[2].peer, 0x0a00_0002, "whom it is for");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut observer = Observer::new(0, "server", &[1]);
        observer.seen.segments = Vec::with_capacity(4);
        let room = observer.seen.segments.capacity();
        (0..room as u64 + 3).for_each(|at| observer.sent(0, at * DISORDER_NS, &frame(1, 2, 1)));
        let seen = observer.into_seen();
        assert_eq!((seen.segments.len(), seen.missed), (room, 3));
        assert_eq!(seen.whole_until_ns, (room as u64 - 2) * DISORDER_NS);
    }
}
