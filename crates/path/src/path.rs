//! The order of the impairments: loss, queue, rate, delay.

use model::network::Direction;

use crate::delay::DelayLine;
use crate::loss::Loss;
use crate::queue::Waiting;
use crate::queue::drop_tail::DropTail;
use crate::rate::Rate;

/// How many packets one direction holds at most, whatever its queue and delay say: 200 MB of full frames, or
/// 1 Gbit/s over 1.5 s of delay.
pub const CAPACITY_PACKETS: usize = 1 << 17;

/// One direction of an emulated network.
///
/// The driver hands packets in with [`Path::handle_packet`] in the order of their arrival, and takes them out with
/// [`Path::poll_release`] once [`Path::next_release_ns`] is reached. As long as it hands in every arrival up to a
/// time before it polls for that time, the same seed and packets have the same fate, however late it polls.
#[derive(Debug)]
pub struct Path<P> {
    loss: Loss,
    queue: DropTail<P>,
    rate: Rate,
    in_transmission: Option<Transmission<P>>,
    delay: DelayLine<P>,
    latest_arrival_ns: u64,
    counters: Counters,
}

#[derive(Debug)]
struct Transmission<P> {
    departure_ns: u64,
    length_bytes: u64,
    packet: P,
}

/// What becomes of a packet that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It will be released.
    Queued,
    /// It is gone.
    Lost(Cause),
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The network was asked to lose a share of its packets.
    Configured,
    /// The waiting room before the link was full.
    Queue,
    /// The direction held [`CAPACITY_PACKETS`] already: a limit of this program, not of the network.
    Capacity,
}

/// A packet whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release<P> {
    /// When it was due.
    pub due_ns: u64,
    /// The packet.
    pub packet: P,
}

/// What happened so far; every packet in is in exactly one of the others or still inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets handed in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets released.
    pub packets_out: u64,
    /// Packets lost because the network was asked to.
    pub lost_configured: u64,
    /// Packets lost because the queue was full.
    pub lost_queue: u64,
    /// Packets lost because of [`CAPACITY_PACKETS`].
    pub lost_capacity: u64,
}

impl<P> Path<P> {
    /// A direction without packets; `seed` decides which packets are lost.
    pub fn new(direction: &Direction, seed: u64) -> Self {
        Path {
            loss: Loss::new(direction.loss_share, seed),
            queue: DropTail::new(direction.queue),
            rate: Rate::new(direction.rate_bits_per_s),
            in_transmission: None,
            delay: DelayLine::new(direction.delay_ns),
            latest_arrival_ns: 0,
            counters: Counters::default(),
        }
    }

    /// Takes a packet that arrived at `arrival_ns`; one that seems to have arrived before its forerunner is taken as
    /// arriving together with it, because nothing here overtakes.
    pub fn handle_packet(&mut self, arrival_ns: u64, length_bytes: u64, packet: P) -> Fate {
        let arrival_ns = arrival_ns.max(self.latest_arrival_ns);
        self.latest_arrival_ns = arrival_ns;
        self.counters.packets_in += 1;
        self.counters.bytes_in += length_bytes;
        self.transmit_until(arrival_ns);
        let fate = self.admit(Waiting { arrival_ns, length_bytes, packet });
        match fate {
            Fate::Queued => {}
            Fate::Lost(Cause::Configured) => self.counters.lost_configured += 1,
            Fate::Lost(Cause::Queue) => self.counters.lost_queue += 1,
            Fate::Lost(Cause::Capacity) => self.counters.lost_capacity += 1,
        }
        fate
    }

    /// When the next packet is due, as far as the packets so far tell.
    pub fn next_release_ns(&self) -> Option<u64> {
        let in_transmission = || self.in_transmission.as_ref().map(|t| self.delay.due_ns(t.departure_ns));
        self.delay.next_due_ns().or_else(in_transmission)
    }

    /// Hands over the next packet that is due by `now_ns`, if any.
    pub fn poll_release(&mut self, now_ns: u64) -> Option<Release<P>> {
        // No further than needed: a packet that arrived before `now_ns` may still be on its way to us.
        if let Some(departure_ns) = self.delay.latest_departure_ns(now_ns) {
            self.transmit_until(departure_ns);
        }
        let (due_ns, packet) = self.delay.pop_due(now_ns)?;
        self.counters.packets_out += 1;
        Some(Release { due_ns, packet })
    }

    /// What happened so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// How many packets are inside.
    pub fn held_packets(&self) -> usize {
        self.queue.len() + usize::from(self.in_transmission.is_some()) + self.delay.len()
    }

    fn admit(&mut self, waiting: Waiting<P>) -> Fate {
        if self.loss.draw() {
            return Fate::Lost(Cause::Configured);
        }
        if self.held_packets() >= CAPACITY_PACKETS {
            return Fate::Lost(Cause::Capacity);
        }
        if self.rate.is_unlimited() {
            // Nothing waits, so there is no waiting room to be full.
            let departure_ns = self.rate.transmit(waiting.arrival_ns, waiting.length_bytes);
            self.delay.push(departure_ns, waiting.packet);
            return Fate::Queued;
        }
        if !self.queue.offer(waiting) {
            return Fate::Lost(Cause::Queue);
        }
        if self.in_transmission.is_none() {
            self.begin_transmission();
        }
        Fate::Queued
    }

    /// Finishes every transmission that ends by `until_ns` and begins those that follow.
    fn transmit_until(&mut self, until_ns: u64) {
        while let Some(done) = self.in_transmission.take_if(|t| t.departure_ns <= until_ns) {
            self.queue.depart(done.length_bytes);
            self.delay.push(done.departure_ns, done.packet);
            self.begin_transmission();
        }
    }

    fn begin_transmission(&mut self) {
        if let Some(Waiting { arrival_ns, length_bytes, packet }) = self.queue.take() {
            let departure_ns = self.rate.transmit(arrival_ns, length_bytes);
            self.in_transmission = Some(Transmission { departure_ns, length_bytes, packet });
        }
    }
}

#[cfg(test)]
mod tests {
    use model::network::Queue;
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn direction(delay_ns: u64, rate_bits_per_s: Option<u64>, queue: Queue, loss_share: f64) -> Direction {
        Direction { delay_ns, rate_bits_per_s, queue, loss_share }
    }

    fn drain<P>(path: &mut Path<P>) -> Vec<Release<P>> {
        let mut released = Vec::new();
        while let Some(due_ns) = path.next_release_ns() {
            while let Some(release) = path.poll_release(due_ns) {
                released.push(release);
            }
        }
        released
    }

    #[test]
    fn delay_alone_shifts_every_packet() {
        let mut path = Path::new(&direction(75 * MS, None, Queue::Packets(1), 0.0), 1);
        for packet in 0..10_u64 {
            assert_eq!(path.handle_packet(packet * 7, 1514, packet), Fate::Queued);
        }
        assert_eq!(path.next_release_ns(), Some(75 * MS));
        assert_eq!(path.poll_release(75 * MS - 1), None);
        let released = drain(&mut path);
        assert_eq!(released.len(), 10);
        for (packet, release) in (0..).zip(released) {
            assert_eq!(release, Release { due_ns: packet * 7 + 75 * MS, packet });
        }
    }

    #[test]
    fn rate_serialises_and_delay_follows() {
        // 1250 bytes at 10 Mbit/s take 1 ms.
        let mut path = Path::new(&direction(20 * MS, Some(10_000_000), Queue::Packets(100), 0.0), 1);
        for packet in 0..3 {
            path.handle_packet(0, 1250, packet);
        }
        path.handle_packet(10 * MS, 1250, 3);
        let due: Vec<u64> = drain(&mut path).iter().map(|release| release.due_ns).collect();
        assert_eq!(due, [21 * MS, 22 * MS, 23 * MS, 31 * MS]);
    }

    #[test]
    fn a_late_poll_changes_no_due_time() {
        let mut path = Path::new(&direction(5 * MS, Some(10_000_000), Queue::Packets(100), 0.0), 1);
        path.handle_packet(0, 1250, 0);
        path.handle_packet(0, 1250, 1);
        assert_eq!(path.poll_release(500 * MS).map(|r| r.due_ns), Some(6 * MS));
        assert_eq!(path.poll_release(500 * MS).map(|r| r.due_ns), Some(7 * MS));
        assert_eq!(path.poll_release(500 * MS), None);
    }

    #[test]
    fn drop_tail_counts_the_packet_in_transmission() {
        for (queue, room) in
            [(Queue::Packets(5), 5), (Queue::Bytes(5 * 1250 + 1249), 5), (Queue::Packets(1), 1)]
        {
            let mut path = Path::new(&direction(MS, Some(10_000_000), queue, 0.0), 1);
            let fates: Vec<Fate> = (0..10).map(|packet| path.handle_packet(0, 1250, packet)).collect();
            let (queued, dropped) = fates.split_at(room);
            assert!(queued.iter().all(|fate| *fate == Fate::Queued), "{queue:?}: {fates:?}");
            assert!(dropped.iter().all(|fate| *fate == Fate::Lost(Cause::Queue)), "{queue:?}: {fates:?}");
            assert_eq!(path.counters().lost_queue, 10 - room as u64);
            // One nanosecond before the first departure there is no room, at the departure there is.
            assert_eq!(path.handle_packet(MS - 1, 1250, 10), Fate::Lost(Cause::Queue));
            assert_eq!(path.handle_packet(MS, 1250, 11), Fate::Queued);
            assert_eq!(path.handle_packet(MS, 1250, 12), Fate::Lost(Cause::Queue));
            assert_eq!(drain(&mut path).len(), room + 1);
        }
    }

    #[test]
    fn capacity_is_bounded_and_counted() {
        let mut path = Path::new(&direction(3_600_000 * MS, None, Queue::Packets(1), 0.0), 1);
        for packet in 0..CAPACITY_PACKETS {
            assert_eq!(path.handle_packet(0, 60, packet), Fate::Queued);
        }
        assert_eq!(path.handle_packet(0, 60, 0), Fate::Lost(Cause::Capacity));
        assert_eq!(path.counters().lost_capacity, 1);
    }

    #[test]
    fn rate_holds_within_a_millionth_over_a_million_packets() {
        const PACKETS: u32 = 1_000_000;
        const RATE_BITS_PER_S: u64 = 49_999_999;
        let mut path = Path::new(&direction(75 * MS, Some(RATE_BITS_PER_S), Queue::Packets(64), 0.0), 1);
        let (mut offered, mut bits, mut last_due_ns) = (0, 0.0, 0_u64);
        while offered < PACKETS || path.held_packets() > 0 {
            // As many as there is room for, so that the link is never idle.
            while offered < PACKETS && path.queue.len() < 32 {
                let length_bytes = 64 + u64::from(offered % 1451);
                assert_eq!(
                    path.handle_packet(last_due_ns.saturating_sub(75 * MS), length_bytes, ()),
                    Fate::Queued
                );
                bits += length_bytes as f64 * 8.0;
                offered += 1;
            }
            if let Some(due_ns) = path.next_release_ns() {
                path.poll_release(due_ns);
                last_due_ns = due_ns;
            }
        }
        let rate = bits / ((last_due_ns - 75 * MS) as f64 / 1e9);
        let error = (rate / RATE_BITS_PER_S as f64 - 1.0).abs();
        assert!(error < 1e-6, "rate {rate}, relative error {error}");
    }

    #[test]
    fn the_seed_decides() {
        let fates = |seed: u64| -> Vec<Fate> {
            let mut path = Path::new(&direction(MS, Some(10_000_000), Queue::Packets(20), 0.1), seed);
            (0..2000).map(|packet| path.handle_packet(packet * MS / 2, 1250, ())).collect()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
    }

    prop_compose! {
        fn any_direction()(
            delay_ns in 0..200 * MS,
            rate_bits_per_s in prop::option::of(1_000_u64..10_000_000_000),
            queue in prop_oneof![(1..50_u64).prop_map(Queue::Packets), (0..100_000_u64).prop_map(Queue::Bytes)],
            loss_share in 0.0..=1.0_f64,
        ) -> Direction {
            direction(delay_ns, rate_bits_per_s, queue, loss_share)
        }
    }

    proptest! {
        #[test]
        fn packets_are_conserved_and_keep_their_order(
            direction in any_direction(),
            seed in any::<u64>(),
            packets in prop::collection::vec((0..10 * MS, 1..2000_u64), 0..200),
            early_polls in any::<bool>(),
        ) {
            let mut path = Path::new(&direction, seed);
            let (mut now_ns, mut queued, mut released) = (0, Vec::new(), Vec::new());
            for (number, (gap_ns, length_bytes)) in packets.iter().enumerate() {
                now_ns += gap_ns;
                if path.handle_packet(now_ns, *length_bytes, number) == Fate::Queued {
                    queued.push((number, now_ns));
                }
                while early_polls && let Some(release) = path.poll_release(now_ns) {
                    prop_assert!(release.due_ns <= now_ns);
                    released.push(release);
                }
            }
            released.extend(drain(&mut path));
            let counters = path.counters();
            prop_assert_eq!(path.held_packets(), 0);
            prop_assert_eq!(counters.packets_in, packets.len() as u64);
            prop_assert_eq!(
                counters.packets_in,
                counters.packets_out + counters.lost_configured + counters.lost_queue + counters.lost_capacity
            );
            prop_assert_eq!(
                released.iter().map(|release| release.packet).collect::<Vec<_>>(),
                queued.iter().map(|(number, _)| *number).collect::<Vec<_>>()
            );
            prop_assert!(released.is_sorted_by_key(|release| release.due_ns));
            for (release, (_, arrival_ns)) in released.iter().zip(&queued) {
                prop_assert!(release.due_ns >= arrival_ns + direction.delay_ns);
            }
        }

        #[test]
        fn polling_never_changes_a_fate(
            direction in any_direction(),
            seed in any::<u64>(),
            packets in prop::collection::vec((0..MS, 1..2000_u64), 0..200),
        ) {
            let run = |polls: bool| {
                let mut path = Path::new(&direction, seed);
                let (mut now_ns, mut fates, mut due) = (0, Vec::new(), Vec::new());
                for (gap_ns, length_bytes) in &packets {
                    now_ns += gap_ns;
                    fates.push(path.handle_packet(now_ns, *length_bytes, ()));
                    while polls && let Some(release) = path.poll_release(now_ns) {
                        due.push(release.due_ns);
                    }
                }
                due.extend(drain(&mut path).iter().map(|release| release.due_ns));
                (fates, due)
            };
            prop_assert_eq!(run(true), run(false));
        }
    }
}
