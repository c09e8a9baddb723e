//! The counters of queueing disciplines, and a link's report from them.

use model::network::kernel::KernelDirection;
use model::record::DirectionReport;

use super::tree;
use crate::netlink_bytes::{attributes, u32_at, u64_at};
use crate::procfs;

/// linux/rtnetlink.h.
const RTM_NEWQDISC: u16 = 36;
/// struct tcmsg.
const TC_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
/// Inside TCA_STATS2 (linux/gen_stats.h).
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_APP: u16 = 4;
/// Packets, where 32 bits are too few.
const STATS_PACKETS64: u16 = 8;

/// What a qdisc counted since it was added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QdiscCounters {
    index: u32,
    handle: u32,
    parent: u32,
    kind: String,
    /// Sent.
    packets: u64,
    bytes: u64,
    /// Queued.
    waiting_packets: u64,
    waiting_bytes: u64,
    /// Dropped, its children included.
    dropped: u64,
    /// Dropped by CoDel because its queue was full.
    dropped_full: u64,
    /// Marked by CoDel.
    marked: u64,
}

impl QdiscCounters {
    /// Reads a message of the kernel's list; `None` where it is not about a qdisc.
    pub(super) fn read(kind: u16, message: &[u8]) -> Option<QdiscCounters> {
        if kind != RTM_NEWQDISC {
            return None;
        }
        let mut counters = QdiscCounters {
            index: u32_at(message, 4)?,
            handle: u32_at(message, 8)?,
            parent: u32_at(message, 12)?,
            ..QdiscCounters::default()
        };
        for (kind, value) in attributes(message.get(TC_BYTES..)?) {
            match kind {
                TCA_KIND => counters.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
                TCA_STATS2 => counters.read_statistics(value),
                _ => {}
            }
        }
        Some(counters)
    }

    fn read_statistics(&mut self, statistics: &[u8]) {
        let number = |value: &[u8], offset| u64::from(u32_at(value, offset).unwrap_or(0));
        for (kind, value) in attributes(statistics) {
            match kind {
                STATS_BASIC => {
                    self.bytes = u64_at(value, 0).unwrap_or(0);
                    self.packets = self.packets.max(number(value, 8));
                }
                STATS_PACKETS64 => self.packets = u64_at(value, 0).unwrap_or(self.packets),
                STATS_QUEUE => {
                    self.waiting_packets = number(value, 0);
                    self.waiting_bytes = number(value, 4);
                    self.dropped = number(value, 8);
                }
                // struct tc_codel_xstats, and tc_fq_codel_xstats after its type.
                STATS_APP if self.kind == "codel" => {
                    (self.dropped_full, self.marked) = (number(value, 20), number(value, 24));
                }
                STATS_APP if self.kind == "fq_codel" => {
                    (self.dropped_full, self.marked) = (number(value, 8), number(value, 12));
                }
                _ => {}
            }
        }
    }
}

/// Properties of a direction that its counters do not contain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectionSetup {
    duplicates: bool,
    has_fate: bool,
}

impl DirectionSetup {
    pub(super) fn of(direction: &KernelDirection) -> DirectionSetup {
        DirectionSetup {
            duplicates: direction.fate.is_some_and(|fate| fate.duplicate_share > 0.0),
            has_fate: direction.fate.is_some(),
        }
    }
}

/// What an interface received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceCounters {
    bytes: u64,
    packets: u64,
}

impl InterfaceCounters {
    /// Reads the text of /proc/net/dev; zero where the interface is not in it.
    pub(super) fn read(text: &[u8], interface: &str) -> InterfaceCounters {
        let mut interfaces = procfs::interfaces(text);
        let found = interfaces.find(|(name, _)| *name == interface.as_bytes());
        found.map_or_else(InterfaceCounters::default, |(_, [bytes, packets, ..])| InterfaceCounters {
            bytes,
            packets,
        })
    }

    pub(super) const fn since(self, before: InterfaceCounters) -> InterfaceCounters {
        InterfaceCounters {
            bytes: self.bytes.saturating_sub(before.bytes),
            packets: self.packets.saturating_sub(before.packets),
        }
    }
}

/// The report of one direction, whose frames leave at two interfaces; `came` is what the sender's interface
/// received.
///
/// Lost bytes and copies have no counters. Where there are any, the interface's counter replaces the incoming
/// packets; it includes the nodes' multicast frames.
pub(super) fn report(
    all: &[QdiscCounters],
    setup: DirectionSetup,
    first: u32,
    second: u32,
    came: InterfaceCounters,
) -> DirectionReport {
    let nothing = QdiscCounters::default();
    let root =
        |index: u32| all.iter().find(|c| c.index == index && c.parent == tree::ROOT).unwrap_or(&nothing);
    let of = |handle: u32| all.iter().find(|c| c.index == first && c.handle == handle).unwrap_or(&nothing);
    let (before, after, shaper, queue) = (root(first), root(second), of(tree::SHAPER), of(tree::QUEUE));
    let by_codel = queue.kind == "codel" || queue.kind == "fq_codel";
    let full = if by_codel { queue.dropped_full } else { queue.dropped };
    // Parents count the drops of their children.
    let by_fate = if setup.has_fate { before.dropped.saturating_sub(shaper.dropped) } else { 0 };
    let too_long = shaper.dropped.saturating_sub(queue.dropped);
    let uncounted = if before.handle == tree::COUNTER { before.dropped } else { 0 };
    // The first interface was read before the second: packets missing at the second are lost, not in flight.
    let reached = after.packets + after.dropped + after.waiting_packets;
    let between = before.packets.saturating_sub(reached);
    let entered = before.packets + before.dropped + before.waiting_packets;
    let entered_bytes = before.bytes + before.waiting_bytes;
    DirectionReport {
        packets_in: if setup.duplicates { came.packets } else { entered },
        bytes_in: if setup.duplicates || before.dropped > 0 { came.bytes } else { entered_bytes },
        packets_out: after.packets,
        bytes_out: after.bytes,
        lost_configured: by_fate,
        lost_outage: 0,
        lost_queue: full,
        lost_codel: queue.dropped.saturating_sub(full),
        lost_overload: too_long + uncounted + after.dropped + between,
        lost_middlebox: 0,
        marked: queue.marked,
        duplicated: None,
        reordered: None,
        lateness: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink_bytes::{Bytes, MESSAGE_HEADER_BYTES, NLMSG_DONE, NLMSG_ERROR, each_message};

    const FIRST: u32 = 3;
    const SECOND: u32 = 5;

    /// A message as the kernel sends it.
    fn message(index: u32, handle: u32, parent: u32, kind: &str, statistics: Bytes) -> Vec<u8> {
        let name = kind.bytes().chain([0]).fold(Bytes::default(), Bytes::u8);
        let body = Bytes::default()
            .u32(0)
            .u32(index)
            .u32(handle)
            .u32(parent)
            .u32(2)
            .attribute(TCA_KIND, name)
            .attribute(TCA_STATS2, statistics)
            .done();
        let length = u32::try_from(MESSAGE_HEADER_BYTES + body.len()).unwrap();
        let head = Bytes::default().u32(length).u16(RTM_NEWQDISC).u16(2).u32(1).u32(9).done();
        [head, body].concat()
    }

    fn statistics(packets: u32, bytes: u64, waiting: [u32; 2], dropped: u32) -> Bytes {
        let queue = Bytes::default().u32(waiting[0]).u32(waiting[1]).u32(dropped).u32(0).u32(0);
        Bytes::default()
            .attribute(STATS_BASIC, Bytes::default().u64(bytes).u32(packets).u32(0))
            .attribute(STATS_QUEUE, queue)
    }

    fn read_all(portion: &[u8], found: &mut Vec<QdiscCounters>) -> std::io::Result<bool> {
        each_message(portion, |kind, message| found.extend(QdiscCounters::read(kind, message)))
    }

    fn read(messages: &[Vec<u8>]) -> Vec<QdiscCounters> {
        let mut found = Vec::new();
        assert!(!read_all(&messages.concat(), &mut found).unwrap());
        found
    }

    #[test]
    fn a_list_ends_with_done_or_an_error() {
        let done = Bytes::default().u32(20).u16(NLMSG_DONE).u16(2).u32(1).u32(9).u32(0).done();
        let mut found = Vec::new();
        let one = message(1, 2, 3, "pfifo", statistics(4, 5, [6, 7], 8));
        assert!(read_all(&[one.clone(), done].concat(), &mut found).unwrap());
        let expected = QdiscCounters {
            index: 1,
            handle: 2,
            parent: 3,
            kind: "pfifo".to_owned(),
            packets: 4,
            bytes: 5,
            waiting_packets: 6,
            waiting_bytes: 7,
            dropped: 8,
            ..QdiscCounters::default()
        };
        assert_eq!(found, [expected]);
        let denied = (-libc::EPERM).cast_unsigned();
        let error = Bytes::default().u32(20).u16(NLMSG_ERROR).u16(0).u32(1).u32(9).u32(denied).done();
        let error = read_all(&error, &mut found).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        for cut in 1..one.len() {
            assert!(read_all(&one[..cut], &mut Vec::new()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn drops_are_counted_by_cause() {
        // 100 came; netem lost 7, the full queue 5; 3 wait at the rate, 85 went on, of which 2 are being
        // delayed.
        let counters = read(&[
            message(FIRST, tree::FATE, tree::ROOT, "netem", statistics(85, 85_000, [3, 3_000], 12)),
            message(FIRST, tree::SHAPER, tree::FATE | 1, "tbf", statistics(85, 85_000, [3, 3_000], 5)),
            message(FIRST, tree::QUEUE, tree::SHAPER | 1, "pfifo", statistics(85, 85_000, [3, 3_000], 5)),
            message(SECOND, tree::SERIALISER, tree::ROOT, "netem", statistics(83, 83_000, [2, 2_000], 0)),
        ]);
        let setup = DirectionSetup { duplicates: false, has_fate: true };
        let came = InterfaceCounters { bytes: 100_100, packets: 101 };
        let found = report(&counters, setup, FIRST, SECOND, came);
        assert_eq!((found.packets_in, found.packets_out), (100, 83));
        assert_eq!((found.bytes_in, found.bytes_out), (100_100, 83_000));
        assert_eq!((found.lost_configured, found.lost_queue), (7, 5));
        assert_eq!((found.lost_codel, found.lost_overload, found.marked), (0, 0, 0));
        assert_eq!((found.duplicated, found.reordered, found.lateness), (None, None, None));
    }

    #[test]
    fn codel_tells_what_it_marked_and_had_no_room_for() {
        let codel = (0..9).fold(Bytes::default(), Bytes::u32);
        let fq_codel = (0..9).fold(Bytes::default(), Bytes::u32);
        for (kind, app, full, marked) in [("codel", codel, 5, 6), ("fq_codel", fq_codel, 2, 3)] {
            let counted = statistics(10, 1_000, [0, 0], 9).attribute(STATS_APP, app);
            let counters = read(&[
                message(FIRST, tree::SHAPER, tree::ROOT, "tbf", statistics(10, 1_000, [0, 0], 9)),
                message(FIRST, tree::QUEUE, tree::SHAPER | 1, kind, counted),
                message(SECOND, tree::COUNTER, tree::ROOT, "pfifo", statistics(10, 1_000, [0, 0], 0)),
            ]);
            let found =
                report(&counters, DirectionSetup::default(), FIRST, SECOND, InterfaceCounters::default());
            assert_eq!(
                (found.lost_queue, found.lost_codel, found.marked),
                (full, 9 - full, marked),
                "{kind}"
            );
            assert_eq!((found.lost_configured, found.lost_overload), (0, 0), "{kind}");
        }
    }

    #[test]
    fn an_unconfigured_loss_is_a_fault() {
        let counters = read(&[
            message(FIRST, tree::SHAPER, tree::ROOT, "tbf", statistics(10, 1_000, [0, 0], 2)),
            message(FIRST, tree::QUEUE, tree::SHAPER | 1, "pfifo", statistics(10, 1_000, [0, 0], 1)),
            message(SECOND, tree::SERIALISER, tree::ROOT, "netem", statistics(4, 400, [1, 100], 3)),
        ]);
        let found = report(&counters, DirectionSetup::default(), FIRST, SECOND, InterfaceCounters::default());
        // One was too long for the bucket, 3 found no room in the delay, 2 never got there.
        assert_eq!((found.lost_queue, found.lost_overload), (1, 1 + 3 + 2));
    }

    #[test]
    fn interfaces_are_read_by_name() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n \
                    first:12345 67 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nsecond: x\n";
        assert_eq!(
            InterfaceCounters::read(text.as_bytes(), "first"),
            InterfaceCounters { bytes: 12_345, packets: 67 }
        );
        assert_eq!(InterfaceCounters::read(text.as_bytes(), "second"), InterfaceCounters::default());
        assert_eq!(InterfaceCounters::read(text.as_bytes(), "irst"), InterfaceCounters::default());
        let before = InterfaceCounters { bytes: 345, packets: 7 };
        assert_eq!(
            InterfaceCounters::read(text.as_bytes(), "first").since(before),
            InterfaceCounters { bytes: 12_000, packets: 60 }
        );
    }
}
