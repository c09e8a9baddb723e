//! What the order of events has to keep to, whatever the description.

use model::network::{
    Change, Codel, DelaySteps, Discipline, Distribution, Jitter, LinkRate, Loss, Opportunities, Order,
    OutagePackets, OutageTimes, Outages, Queue, QueueLimit, RateSteps, Reorder, UdpRule, Variation,
};
use proptest::prelude::*;

use super::*;
use crate::packet::Frame;

const MS: u64 = 1_000_000;

fn path<P: Packet>(direction: &Direction) -> Path<P> {
    Path::new(direction, Seeds::run(1, LinkDirection::Down))
}

fn limited(delay_ns: u64, bits_per_s: u64, queue: Queue) -> Direction {
    Direction { delay_ns, rate: LinkRate::Constant { bits_per_s }, queue, ..Direction::default() }
}

fn drain<P: Packet>(path: &mut Path<P>) -> Vec<Release<P>> {
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
    let mut path = path(&Direction { delay_ns: 75 * MS, ..Direction::default() });
    for packet in 0..10_u64 {
        assert_eq!(path.handle_packet(packet * 7, 1514, packet), Fate::Queued);
    }
    assert_eq!((path.next_release_ns(), path.least_delay_ns()), (Some(75 * MS), 75 * MS));
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
    let mut path = path(&limited(20 * MS, 10_000_000, Queue::packets(100)));
    for packet in 0..3_u64 {
        path.handle_packet(0, 1250, packet);
    }
    path.handle_packet(10 * MS, 1250, 3);
    let due: Vec<u64> = drain(&mut path).iter().map(|release| release.due_ns).collect();
    assert_eq!(due, [21 * MS, 22 * MS, 23 * MS, 31 * MS]);
}

/// The next release is announced when a standstill ends, although nothing else arrives.
#[test]
fn a_change_releases_packets_that_wait_for_a_stalled_link() {
    let outages = Some(Outages { packets: OutagePackets::Wait, times: OutageTimes::Always });
    let still = Direction { outages, ..Direction::default() };
    let over = Change {
        at_ns: 400 * MS,
        up: still.clone(),
        down: Direction::default(),
        handover: false,
        rebinding: false,
    };
    let network = Network { down: still, timeline: vec![over], ..Network::default() };
    let mut path: Path<u64> =
        Path::of_network(&network, LinkDirection::Down, Seeds::run(1, LinkDirection::Down), 0);
    path.handle_packet(MS, 1514, 1);
    assert_eq!(path.next_release_ns(), Some(400 * MS));
    assert_eq!(drain(&mut path), [Release { due_ns: 400 * MS, packet: 1 }]);
}

#[test]
fn a_late_poll_changes_no_due_time() {
    let mut path = path(&limited(5 * MS, 10_000_000, Queue::packets(100)));
    path.handle_packet(0, 1250, 0_u64);
    path.handle_packet(0, 1250, 1);
    assert_eq!(path.poll_release(500 * MS).map(|r| r.due_ns), Some(6 * MS));
    assert_eq!(path.poll_release(500 * MS).map(|r| r.due_ns), Some(7 * MS));
    assert_eq!(path.poll_release(500 * MS), None);
}

#[test]
fn a_run_may_begin_at_any_time() {
    let start_ns = 7_000_000 * MS;
    let network = Network { down: limited(20 * MS, 10_000_000, Queue::packets(100)), ..Network::default() };
    let mut path =
        Path::of_network(&network, LinkDirection::Down, Seeds::run(1, LinkDirection::Down), start_ns);
    path.handle_packet(start_ns + 3 * MS, 1250, 9_u64);
    assert_eq!(path.next_release_ns(), Some(start_ns + 24 * MS));
    assert_eq!(path.poll_release(start_ns - 1), None);
    assert_eq!(
        path.poll_release(start_ns + 24 * MS),
        Some(Release { due_ns: start_ns + 24 * MS, packet: 9 })
    );
}

#[test]
fn drop_tail_counts_the_packet_in_transmission() {
    for (queue, room) in [(Queue::packets(5), 5), (Queue::bytes(5 * 1250 + 1249), 5), (Queue::packets(1), 1)]
    {
        let mut path = path(&limited(MS, 10_000_000, queue));
        let fates: Vec<Fate> = (0..10).map(|packet| path.handle_packet(0, 1250, packet)).collect();
        let (queued, dropped) = fates.split_at(room);
        assert!(queued.iter().all(|fate| *fate == Fate::Queued), "{queue:?}: {fates:?}");
        assert!(dropped.iter().all(|fate| *fate == Fate::Lost(Cause::Queue)), "{queue:?}: {fates:?}");
        assert_eq!(path.counters().lost_queue, 10 - room as u64);
        let lost = path.poll_lost().unwrap();
        assert_eq!((lost.number, lost.packet, lost.cause), (room as u64 + 1, room as u64, Cause::Queue));
        // One nanosecond before the first departure there is no room, at the departure there is.
        assert_eq!(path.handle_packet(MS - 1, 1250, 10), Fate::Lost(Cause::Queue));
        assert_eq!(path.handle_packet(MS, 1250, 11), Fate::Queued);
        assert_eq!(path.handle_packet(MS, 1250, 12), Fate::Lost(Cause::Queue));
        assert_eq!(drain(&mut path).len(), room + 1);
    }
}

#[test]
fn capacity_is_bounded_and_counted() {
    let mut path = path(&Direction { delay_ns: 3_600_000 * MS, ..Direction::default() });
    for _ in 0..CAPACITY_PACKETS {
        assert_eq!(path.handle_packet(0, 60, ()), Fate::Queued);
    }
    assert_eq!(path.handle_packet(0, 60, ()), Fate::Lost(Cause::Capacity));
    assert_eq!(path.counters().lost_capacity, 1);
}

#[test]
fn the_seed_decides() {
    let direction =
        Direction { loss: Loss::Independent { share: 0.1 }, ..limited(MS, 10_000_000, Queue::packets(20)) };
    let fates = |seeds: Seeds| -> Vec<Fate> {
        let mut path = Path::new(&direction, seeds);
        (0..2000).map(|packet| path.handle_packet(packet * MS / 2, 1250, ())).collect()
    };
    assert_eq!(fates(Seeds::run(7, LinkDirection::Up)), fates(Seeds::run(7, LinkDirection::Up)));
    for other in [
        Seeds::run(8, LinkDirection::Up),
        Seeds::run(7, LinkDirection::Down),
        Seeds::calibration(7, LinkDirection::Up),
    ] {
        assert_ne!(fates(Seeds::run(7, LinkDirection::Up)), fates(other));
    }
}

#[test]
fn chosen_packets_are_lost() {
    let direction = Direction { lost_packets: vec![(2, 3), (5, 5)], delay_ns: MS, ..Direction::default() };
    let mut path = path(&direction);
    let fates: Vec<bool> =
        (1..=6_u64).map(|packet| path.handle_packet(0, 100, packet) == Fate::Queued).collect();
    assert_eq!(fates, [true, false, false, true, false, true]);
    let lost: Vec<u64> = std::iter::from_fn(|| path.poll_lost()).map(|lost| lost.number).collect();
    assert_eq!(lost, [2, 3, 5]);
    assert_eq!(path.counters().lost_configured, 3);
}

#[test]
fn a_copy_comes_right_behind() {
    let mut path = path(&Direction { duplicate_share: 1.0, ..limited(MS, 10_000_000, Queue::packets(9)) });
    path.handle_packet(0, 1250, 1_u64);
    path.handle_packet(0, 1250, 2);
    let released: Vec<(u64, u64)> = drain(&mut path).iter().map(|r| (r.packet, r.due_ns / MS)).collect();
    assert_eq!(released, [(1, 2), (1, 3), (2, 4), (2, 5)]);
    let counters = path.counters();
    assert_eq!((counters.packets_in, counters.duplicated, counters.packets_out), (2, 2, 4));
}

#[test]
fn a_reordered_packet_skips_the_delay() {
    let reorder = Some(Reorder { share: 1.0, gap: 3 });
    let mut path = path(&Direction { delay_ns: 10 * MS, reorder, ..Direction::default() });
    for packet in 1..=6_u64 {
        path.handle_packet(packet * MS, 100, packet);
    }
    let released: Vec<(u64, u64)> = drain(&mut path).iter().map(|r| (r.packet, r.due_ns / MS)).collect();
    assert_eq!(released, [(3, 3), (6, 6), (1, 11), (2, 12), (4, 14), (5, 15)]);
    // 1, 2, 4 and 5 come after 6.
    assert_eq!(path.counters().reordered, 4);
}

#[test]
fn an_outage_loses_or_holds() {
    let outages = |packets| Some(Outages { packets, times: OutageTimes::Always });
    let change =
        |at_ns, down| Change { at_ns, up: Direction::default(), down, handover: false, rebinding: false };
    let base = Direction { delay_ns: 5 * MS, ..Direction::default() };
    let run = |packets| {
        let out = Direction { outages: outages(packets), ..base.clone() };
        let timeline = vec![change(10 * MS, out), change(20 * MS, base.clone())];
        let network = Network { down: base.clone(), timeline, ..Network::default() };
        let mut path = Path::of_network(&network, LinkDirection::Down, Seeds::run(1, LinkDirection::Down), 0);
        for at in [1, 9, 10, 12, 19, 20, 30] {
            path.handle_packet(at * MS, 100, at);
        }
        let released: Vec<(u64, u64)> = drain(&mut path).iter().map(|r| (r.packet, r.due_ns / MS)).collect();
        (released, path.counters().lost_outage)
    };
    assert_eq!(run(OutagePackets::Lost), (vec![(1, 6), (9, 14), (20, 25), (30, 35)], 3));
    let held = vec![(1, 6), (9, 14), (10, 25), (12, 25), (19, 25), (20, 25), (30, 35)];
    assert_eq!(run(OutagePackets::Wait), (held, 0));
}

#[test]
fn the_timeline_changes_the_path() {
    let change =
        |at_ns, down| Change { at_ns, up: Direction::default(), down, handover: false, rebinding: false };
    let fast = limited(10 * MS, 10_000_000, Queue::packets(100));
    let slow = limited(2 * MS, 1_000_000, Queue::packets(2));
    let timeline = vec![change(100 * MS, slow), change(200 * MS, fast.clone())];
    let network = Network { down: fast, timeline, ..Network::default() };
    let mut path = Path::of_network(&network, LinkDirection::Down, Seeds::run(1, LinkDirection::Down), 0);
    assert_eq!(path.least_delay_ns(), 2 * MS);
    // At 10 Mbit/s a packet takes 1 ms, at 1 Mbit/s 10 ms.
    let mut send = |at_ns, packet| path.handle_packet(at_ns, 1250, packet);
    assert_eq!(send(98 * MS, 1), Fate::Queued);
    assert_eq!(send(99 * MS + MS / 2, 2_u64), Fate::Queued);
    assert_eq!(send(100 * MS, 3), Fate::Queued);
    assert_eq!(send(101 * MS, 4), Fate::Queued);
    assert_eq!(send(102 * MS, 5), Fate::Lost(Cause::Queue), "room for two now");
    assert_eq!(send(200 * MS, 6), Fate::Queued);
    let due: Vec<(u64, u64)> = drain(&mut path).iter().map(|r| (r.packet, r.due_ns / MS)).collect();
    // The second began at 10 Mbit/s and ends so, at 100.5 ms; from then on the delay is short, but nobody
    // overtakes.
    assert_eq!(due, [(1, 109), (2, 109), (3, 112), (4, 122), (6, 211)]);
}

/// Directions of every kind, each of their parts there or not.
fn any_direction() -> impl Strategy<Value = Direction> {
    let rate = prop_oneof![
        Just(LinkRate::Unlimited),
        (1_000_u64..10_000_000_000).prop_map(|bits_per_s| LinkRate::Constant { bits_per_s }),
        (1_000_000_u64..100_000_000, any::<bool>()).prop_map(|(mean_bits_per_s, drifts)| {
            let variation = Some(Variation { spread_share: 0.5, every_ns: 30 * MS });
            let (steps, drift) = if drifts { (None, variation) } else { (variation, None) };
            LinkRate::Varying { mean_bits_per_s, steps, drift }
        }),
        prop::collection::vec(1..4_u32, 1..20).prop_map(|frames| LinkRate::Opportunities(Opportunities {
            at_ms: (1..).map(|k| 3 * k).zip(frames).collect()
        })),
        (1_000_u64..10_000_000, 0..10_000_000_u64).prop_map(|(first, second)| {
            LinkRate::Steps(RateSteps { steps: vec![(0, first), (7 * MS, second)], repeat_ns: Some(20 * MS) })
        }),
    ];
    let limit = prop_oneof![
        (1..50_u64).prop_map(QueueLimit::Packets),
        (2000..100_000_u64).prop_map(QueueLimit::Bytes)
    ];
    let discipline = (0..3, any::<bool>()).prop_map(|(kind, ecn)| {
        let codel = Codel { ecn, ..Codel::default() };
        match kind {
            0 => Discipline::DropTail,
            1 => Discipline::Codel(codel),
            _ => Discipline::FqCodel { codel, flows: 4, quantum_bytes: 500 },
        }
    });
    let queue = (limit, discipline).prop_map(|(limit, discipline)| Queue { limit, discipline });
    let loss = prop_oneof![
        Just(Loss::None),
        (0.0..=1.0_f64).prop_map(|share| Loss::Independent { share }),
        (0.01..0.5_f64, 0.01..1.0_f64).prop_map(|(p, r)| Loss::GilbertElliott { p, r, h: 0.1, k: 0.99 }),
    ];
    let outages = prop::option::of(any::<(bool, bool)>().prop_map(|(waits, at_random)| Outages {
        packets: if waits { OutagePackets::Wait } else { OutagePackets::Lost },
        times: OutageTimes::Every { every_ns: 40 * MS, lasts_ns: 5 * MS, at_random },
    }));
    let jitter = prop::option::of((0..3_usize, any::<bool>()).prop_map(|(distribution, is_free)| Jitter {
        spread_ns: 2 * MS,
        distribution: [Distribution::Normal, Distribution::Uniform, Distribution::Pareto][distribution],
        order: if is_free {
            Order::Free { correlation: 0.3 }
        } else {
            Order::Kept { correlation_ns: 30 * MS }
        },
    }));
    let reorder = prop::option::of((0.0..0.5_f64, 1..4_u64).prop_map(|(share, gap)| Reorder { share, gap }));
    let more = (0.0..0.2_f64, 2 * MS..200 * MS, any::<bool>());
    (rate, queue, loss, outages, jitter, reorder, more).prop_map(
        |(rate, queue, loss, outages, jitter, reorder, (duplicate_share, delay_ns, has_steps))| Direction {
            outages,
            loss,
            lost_packets: vec![(3, 4)],
            udp: None,
            duplicate_share,
            queue,
            rate,
            delay_ns,
            delay_steps: has_steps.then_some(DelaySteps { every_ns: 25 * MS, spread_ns: 2 * MS }),
            jitter,
            reorder,
        },
    )
}

/// A network that changes twice, the queue's discipline apart.
fn any_network() -> impl Strategy<Value = Network> {
    prop::collection::vec(any_direction(), 1..=3).prop_map(|directions| {
        let discipline = directions[0].queue.discipline;
        let with_discipline = |direction: &Direction| Direction {
            queue: Queue { discipline, ..direction.queue },
            ..direction.clone()
        };
        let timeline = directions.iter().skip(1).zip(1..).map(|(direction, number)| Change {
            at_ns: number * 60 * MS,
            up: Direction::default(),
            down: with_discipline(direction),
            handover: false,
            rebinding: false,
        });
        Network { down: directions[0].clone(), timeline: timeline.collect(), ..Network::default() }
    })
}

fn any_packets() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..3 * MS, 1..2000_u64), 0..200)
}

/// A packet with a random flow; one in four can carry the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered(usize);

impl Packet for Numbered {
    fn flow(&self, _: u64) -> u64 {
        self.0 as u64 % 3
    }
    fn mark_congestion(&mut self) -> bool {
        self.0.is_multiple_of(4)
    }
}

proptest! {
    #[test]
    fn packets_are_conserved(
        network in any_network(),
        seed in any::<u64>(),
        packets in any_packets(),
        early_polls in any::<bool>(),
    ) {
        let mut path = Path::of_network(&network, LinkDirection::Down, Seeds::run(seed, LinkDirection::Down), 0);
        let (mut now_ns, mut arrivals, mut released) = (0, Vec::new(), Vec::new());
        let mut refused = 0;
        for (number, (gap_ns, length_bytes)) in packets.iter().enumerate() {
            now_ns += gap_ns;
            arrivals.push(now_ns);
            refused += usize::from(path.handle_packet(now_ns, *length_bytes, Numbered(number)) != Fate::Queued);
            while early_polls && let Some(release) = path.poll_release(now_ns) {
                prop_assert!(release.due_ns <= now_ns);
                released.push(release);
            }
        }
        released.extend(drain(&mut path));
        let counters = path.counters();
        prop_assert_eq!(path.held_packets(), 0);
        prop_assert_eq!(counters.packets_in, packets.len() as u64);
        prop_assert_eq!(counters.packets_in + counters.duplicated, counters.packets_out + counters.lost());
        prop_assert!(refused as u64 <= counters.lost());
        prop_assert_eq!(counters.packets_out, released.len() as u64);
        let lost = std::iter::from_fn(|| path.poll_lost()).count() as u64;
        prop_assert_eq!(lost, counters.lost());
        prop_assert!(released.is_sorted_by_key(|release| release.due_ns));
        for release in &released {
            prop_assert!(release.due_ns >= arrivals[release.packet.0] + path.least_delay_ns());
        }
        let may_reorder = network.down.may_reorder() || network.timeline.iter().any(|change| change.down.may_reorder());
        if !may_reorder {
            prop_assert_eq!(counters.reordered, 0);
            // FQ-CoDel lets flows overtake each other, but packets of one flow stay in order.
            let flows = if matches!(network.down.queue.discipline, Discipline::FqCodel { .. }) { 3 } else { 1 };
            for flow in 0..flows {
                let of_flow = released.iter().map(|release| release.packet.0).filter(|number| number % flows == flow);
                prop_assert!(of_flow.is_sorted());
            }
        }
    }

    #[test]
    fn polling_never_changes_a_fate(network in any_network(), seed in any::<u64>(), packets in any_packets()) {
        let run = |polls: bool| {
            let mut path = Path::of_network(&network, LinkDirection::Down, Seeds::run(seed, LinkDirection::Down), 0);
            let (mut now_ns, mut fates, mut due) = (0, Vec::new(), Vec::new());
            for (number, (gap_ns, length_bytes)) in packets.iter().enumerate() {
                now_ns += gap_ns;
                fates.push(path.handle_packet(now_ns, *length_bytes, Numbered(number)));
                while polls && let Some(release) = path.poll_release(now_ns) {
                    due.push((release.due_ns, release.packet));
                }
            }
            due.extend(drain(&mut path).into_iter().map(|release| (release.due_ns, release.packet)));
            (fates, due)
        };
        prop_assert_eq!(run(true), run(false));
    }

    /// A further impairment leaves the others unchanged.
    #[test]
    fn impairments_do_not_disturb_each_other(
        direction in any_direction(),
        seed in any::<u64>(),
        packets in any_packets(),
    ) {
        let unlimited = Direction { rate: LinkRate::Unlimited, outages: None, duplicate_share: 0.0, ..direction };
        let run = |direction: &Direction| {
            let mut path = Path::new(direction, Seeds::run(seed, LinkDirection::Down));
            let mut now_ns = 0;
            for (number, (gap_ns, length_bytes)) in packets.iter().enumerate() {
                now_ns += gap_ns;
                path.handle_packet(now_ns, *length_bytes, Numbered(number));
            }
            let mut due = std::collections::BTreeMap::new();
            for release in drain(&mut path) {
                due.entry(release.packet.0).or_insert(release.due_ns);
            }
            due
        };
        let all = run(&unlimited);
        // Without loss the same packets come at the same times, among others; order that is kept may push
        // them later.
        let lossless = run(&Direction { loss: Loss::None, lost_packets: Vec::new(), ..unlimited.clone() });
        prop_assert!(all.keys().all(|number| lossless.contains_key(number)));
        if unlimited.may_reorder() {
            prop_assert!(all.iter().all(|(number, due_ns)| lossless[number] == *due_ns));
        }
        // Without jitter and reordering the same packets are lost.
        let plain = run(&Direction { jitter: None, reorder: None, delay_steps: None, ..unlimited.clone() });
        prop_assert!(plain.keys().eq(all.keys()));
        // With copies too.
        let twice = run(&Direction { duplicate_share: 0.5, ..unlimited });
        prop_assert!(twice.keys().eq(all.keys()));
    }
}

/// A frame over IPv4 of this protocol and length.
fn frame(protocol: u8, length_bytes: usize) -> Frame {
    let mut bytes = vec![0; length_bytes];
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[23] = protocol;
    Frame(bytes)
}

#[test]
fn a_middlebox_stops_udp_alone() {
    let blocked = Direction { udp: Some(UdpRule::Blocked), ..Direction::default() };
    let mut path = Path::new(&blocked, Seeds::run(1, LinkDirection::Up));
    assert_eq!(path.handle_packet(0, 100, frame(17, 100)), Fate::Lost(Cause::Middlebox));
    assert_eq!(path.handle_packet(0, 100, frame(6, 100)), Fate::Queued);
    assert_eq!(path.counters().lost_middlebox, 1);
    let rule = UdpRule::Policed { bits_per_s: 8_000_000, burst_bytes: 2000 };
    let mut path = Path::new(&Direction { udp: Some(rule), ..blocked }, Seeds::run(1, LinkDirection::Up));
    for number in 0..100 {
        path.handle_packet(number * MS / 4, 1000, frame(17, 1000));
        path.handle_packet(number * MS / 4, 1000, frame(6, 1000));
    }
    // The burst of 2 frames, and 1 frame a millisecond over 24.75 ms.
    assert_eq!(path.counters().lost_middlebox, 100 - 26);
}

#[test]
fn another_network_takes_over_while_packets_are_under_way() {
    let at = |delay_ms: u64| Direction { delay_ns: delay_ms * MS, ..Direction::default() };
    let network = |delay_ms: u64| Network { up: at(delay_ms), down: at(delay_ms), ..Network::default() };
    let start_ns = 1000 * MS;
    let mut path: Path<u64> =
        Path::of_network(&network(50), LinkDirection::Up, Seeds::run(1, LinkDirection::Up), start_ns);
    path.handle_packet(start_ns, 100, 1);
    let mut next = network(80);
    let change = |at_ms: u64, delay_ms: u64| Change {
        at_ns: at_ms * MS,
        up: at(delay_ms),
        down: at(delay_ms),
        handover: false,
        rebinding: false,
    };
    next.timeline = vec![change(5, 90), change(500, 10)];
    path.replace_network(start_ns + 10 * MS, &next, LinkDirection::Up);
    path.handle_packet(start_ns + 9 * MS, 100, 2);
    path.handle_packet(start_ns + 600 * MS, 100, 3);
    let released = std::iter::from_fn(|| path.poll_release(u64::MAX));
    let due: Vec<_> = released.map(|release| (release.packet, (release.due_ns - start_ns) / MS)).collect();
    // The first keeps its delay, the second has that of its time after the start, the third that of the
    // timeline.
    assert_eq!(due, [(1, 50), (2, 100), (3, 610)]);
}
