//! Records when TCP payload passes a node's end of a link: what reached the node and what left it.
//!
//! It runs in the emulator's thread, so it records a few numbers per segment into preallocated memory.

use path::tcp::{Segment, segment};

/// Further segments are only counted: this many take 128 MB.
const MOST_SEGMENTS: usize = 1 << 22;
/// The uncertainty of the kernel's stamp of a frame that left; other times are at least as uncertain.
const STAMP_NS: u32 = 1_000;
/// How much later than its successors a frame may be processed.
const DISORDER_NS: u64 = 100_000_000;

/// One TCP segment with payload or SYN at a node's end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedSegment {
    /// When it passed, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// By how much that time may be too late, in nanoseconds.
    pub uncertain_ns: u32,
    /// A number that identifies the address of the node's peer.
    pub peer: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// The peer's port.
    pub peer_port: u16,
    /// Bytes of payload.
    pub payload_bytes: u16,
    /// Whether it is a SYN.
    pub is_syn: bool,
    /// Whether it reached the node; otherwise it left the node.
    pub has_arrived: bool,
}

/// What was recorded at one node's end of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The node's name.
    pub node: String,
    /// The segments, unordered.
    pub segments: Vec<ObservedSegment>,
    /// Segments that did not fit.
    pub missed: u64,
    /// Every segment before this time was recorded, in nanoseconds of the monotonic clock; `u64::MAX` where
    /// all were.
    pub whole_until_ns: u64,
}

/// Records what passes one end of a link over some of the node's ports.
#[derive(Debug)]
pub(crate) struct Observer {
    /// The link's end: 0 or 1.
    side: usize,
    ports: Vec<u16>,
    observation: Observation,
}

impl Observer {
    /// An observer for the node at this end.
    pub(crate) fn new(side: usize, node: &str, ports: &[u16]) -> Observer {
        let segments = Vec::with_capacity(MOST_SEGMENTS);
        Observer {
            side,
            ports: ports.to_vec(),
            observation: Observation { node: node.to_owned(), segments, missed: 0, whole_until_ns: u64::MAX },
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

    /// What was recorded.
    pub(super) fn into_observation(self) -> Observation {
        self.observation
    }

    fn note(&mut self, segment: &Segment, at_ns: u64, uncertain_ns: u32, has_arrived: bool) {
        let [from, to] = segment.ports;
        let (peer, peer_port, own_port) =
            if has_arrived { (segment.source, from, to) } else { (segment.destination, to, from) };
        if !self.ports.contains(&own_port) || (segment.payload_bytes == 0 && !segment.is_syn) {
            return;
        }
        if self.observation.segments.len() == self.observation.segments.capacity() {
            // Frames are not processed exactly in the order of their times.
            let last_ns = self.observation.segments.last().map_or(0, |segment| segment.at_ns);
            self.observation.whole_until_ns = last_ns.saturating_sub(DISORDER_NS);
            self.observation.missed += 1;
            return;
        }
        let Segment { sequence, payload_bytes, is_syn, .. } = *segment;
        self.observation.segments.push(ObservedSegment {
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
        let seen = observer.into_observation();
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
        observer.observation.segments = Vec::with_capacity(4);
        let room = observer.observation.segments.capacity();
        (0..room as u64 + 3).for_each(|at| observer.sent(0, at * DISORDER_NS, &frame(1, 2, 1)));
        let seen = observer.into_observation();
        assert_eq!((seen.segments.len(), seen.missed), (room, 3));
        assert_eq!(seen.whole_until_ns, (room as u64 - 2) * DISORDER_NS);
    }
}
