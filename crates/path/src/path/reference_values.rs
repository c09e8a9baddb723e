//! Paths whose answer is known: from theory, from an RFC, from arithmetic.

use model::network::{
    Codel, Discipline, Distribution, Jitter, LinkRate, Opportunities, Order, Queue, QueueLimit, Variation,
};

use super::*;
use crate::packet::Frame;
use crate::statistics::{KS_999, kolmogorov_smirnov, standard_normal};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const FRAME_BYTES: u64 = 1514;

fn path<P: Packet>(direction: &Direction) -> Path<P> {
    Path::new(direction, Seeds::run(1, LinkDirection::Down))
}

/// Sends packets at a constant rate for this long; returns when each came out, by its number, and the path.
fn flood(direction: &Direction, gap_ns: u64, lasts_ns: u64) -> (Vec<(u64, u64)>, Path<u64>) {
    let mut path = path(direction);
    let mut released = Vec::new();
    let mut poll = |path: &mut Path<u64>, until_ns| {
        while let Some(release) = path.poll_release(until_ns) {
            released.push((release.packet, release.due_ns));
        }
    };
    for packet in 0..lasts_ns / gap_ns {
        path.handle_packet(packet * gap_ns, FRAME_BYTES, packet);
        poll(&mut path, packet * gap_ns);
    }
    poll(&mut path, u64::MAX);
    (released, path)
}

#[test]
fn a_busy_link_has_its_rate_within_a_hundredth() {
    let mean_bits_per_s = 20_000_000;
    let drift = Some(Variation { spread_share: 0.5, every_ns: S });
    let steps = Some(Variation { spread_share: 0.3, every_ns: 15 * S });
    let trace = Opportunities { at_ms: (1..=1000).map(|ms| (ms, 1 + ms % 3)).collect() };
    for (rate, lasts_ns) in [
        (LinkRate::Constant { bits_per_s: mean_bits_per_s }, 10 * S),
        (LinkRate::Varying { mean_bits_per_s, steps: None, drift }, 20_000 * S),
        (LinkRate::Varying { mean_bits_per_s, steps, drift: None }, 50_000 * S),
        (LinkRate::Opportunities(trace), 100 * S),
    ] {
        let expected = rate.mean_bits_per_s().unwrap() as f64;
        // Long packets, so that hours pass quickly.
        let length_bytes = if lasts_ns > 1000 * S { 1_000_000 } else { FRAME_BYTES };
        let mut path = path::<()>(&Direction { rate, queue: Queue::packets(10), ..Direction::default() });
        let (mut bytes, mut last_ns) = (0, 0);
        while last_ns < lasts_ns {
            while path.held_packets() < 5 {
                path.handle_packet(last_ns, length_bytes, ());
            }
            let next_ns = path.next_release_ns().unwrap();
            while let Some(release) = path.poll_release(next_ns) {
                last_ns = release.due_ns;
                bytes += length_bytes;
            }
        }
        let found = bytes as f64 * 8.0 / (last_ns as f64 / 1e9);
        assert!((found / expected - 1.0).abs() < 0.01, "{found} bit/s, expected {expected}");
    }
}

#[test]
fn a_full_queue_delays_by_its_length() {
    // Twice the link's rate fills the queue of 100 packets; then each packet waits for those before it.
    let bits_per_s = 10_000_000;
    let took_ns = FRAME_BYTES * 8 * S / bits_per_s;
    let rate = LinkRate::Constant { bits_per_s };
    for queue in [Queue::packets(100), Queue::bytes(100 * FRAME_BYTES)] {
        let direction = Direction { rate: rate.clone(), queue, ..Direction::default() };
        let (released, path) = flood(&direction, took_ns / 2, 10 * S);
        let waits: Vec<u64> =
            released.iter().map(|(packet, due_ns)| due_ns - packet * (took_ns / 2)).collect();
        let bound_ns = 100 * took_ns;
        let most_ns = *waits.iter().max().unwrap();
        assert!(
            most_ns <= bound_ns + 1 && most_ns > bound_ns - took_ns,
            "{most_ns}, expected up to {bound_ns}"
        );
        let settled = &waits[waits.len() / 2..];
        assert!(settled.iter().all(|wait_ns| *wait_ns > bound_ns - took_ns), "the queue stays full");
        let counters = path.counters();
        assert!((counters.lost_queue as f64 / counters.packets_in as f64 - 0.5).abs() < 0.01);
    }
}

#[test]
fn chained_paths_give_the_sum_of_their_delays() {
    let jitter = Jitter {
        spread_ns: MS,
        distribution: Distribution::Uniform,
        order: Order::Kept { correlation_ns: 50 * MS },
    };
    let first = Direction { delay_ns: 30 * MS, jitter: Some(jitter), ..Direction::default() };
    let second = Direction {
        delay_ns: 12 * MS,
        rate: LinkRate::Constant { bits_per_s: 1_000_000_000 },
        ..Direction::default()
    };
    let (mut one, mut two) = (path(&first), path(&second));
    let mut delays = Vec::new();
    for packet in 0..100_000_u64 {
        one.handle_packet(packet * MS, 125, packet);
        while let Some(release) = one.poll_release(packet * MS) {
            two.handle_packet(release.due_ns, 125, release.packet);
        }
        while let Some(release) = two.poll_release(packet * MS) {
            assert_eq!(release.packet, delays.len() as u64, "in order");
            delays.push((release.due_ns - release.packet * MS) as f64 / MS as f64);
        }
    }
    // 125 bytes at 1 Gbit/s take 1 µs.
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 42.001).abs() < 0.05, "{mean}");
    assert!(delays.iter().all(|delay| (41.0..=43.01).contains(delay)), "within the jitter's bounds");
}

/// Dense packets, order kept: their delays still have the wanted distribution, and nobody had to wait for his
/// forerunner.
#[test]
fn jitter_that_keeps_the_order_keeps_its_distribution_too() {
    let (delay_ns, spread_ns) = (50 * MS, 5 * MS);
    for distribution in [Distribution::Normal, Distribution::Uniform] {
        let order = Order::Kept { correlation_ns: 50 * MS };
        let jitter = Some(Jitter { spread_ns, distribution, order });
        let direction = Direction { delay_ns, jitter, ..Direction::default() };
        // Ten packets a millisecond for 1000 s; every 1000th (two correlation times apart) is independent of
        // the others.
        let (released, path) = flood(&direction, MS / 10, 1000 * S);
        assert!(released.is_sorted_by_key(|(packet, _)| *packet));
        let counters = path.counters();
        assert_eq!((counters.reordered, counters.lost()), (0, 0));
        assert!(counters.held_back <= counters.packets_in / 100_000, "{} held back", counters.held_back);
        let offsets = released.iter().step_by(1000).map(|(packet, due_ns)| {
            let delay = (due_ns - packet * (MS / 10)) as f64;
            (delay - delay_ns as f64) / spread_ns as f64
        });
        let distance = kolmogorov_smirnov(offsets.collect(), |x| match distribution {
            Distribution::Normal => standard_normal(x),
            _ => ((x + 1.0) / 2.0).clamp(0.0, 1.0),
        });
        assert!(distance < KS_999, "{distribution:?}: {distance}");
    }
}

/// `netem delay 30ms 15ms distribution normal`: each packet its own delay, none below 0, and they overtake.
#[test]
fn free_jitter_is_netems() {
    let (delay_ns, spread_ns) = (30 * MS, 15 * MS);
    let jitter = Some(Jitter {
        spread_ns,
        distribution: Distribution::Normal,
        order: Order::Free { correlation: 0.0 },
    });
    let direction = Direction { delay_ns, jitter, ..Direction::default() };
    let (released, path) = flood(&direction, MS, 100 * S);
    let delays: Vec<f64> = released.iter().map(|(packet, due_ns)| (due_ns - packet * MS) as f64).collect();
    let none = delays.iter().filter(|delay| **delay == 0.0).count() as f64 / delays.len() as f64;
    // Two standard deviations below the mean: 2.275 % would be negative.
    assert!((none - 0.02275).abs() < 0.0015, "{none} without delay");
    let above: Vec<f64> = delays.into_iter().filter(|delay| *delay > 0.0).collect();
    let cut = standard_normal(-2.0);
    let distance = kolmogorov_smirnov(above, |ns| {
        (standard_normal((ns - delay_ns as f64) / spread_ns as f64) - cut) / (1.0 - cut)
    });
    assert!(distance < KS_999, "{distance}");
    assert!(path.counters().reordered > 50_000, "{:?}", path.counters());
}

fn codel(ecn: bool) -> Queue {
    let discipline = Discipline::Codel(Codel { ecn, ..Codel::default() });
    Queue { limit: QueueLimit::Packets(1_000_000), discipline }
}

/// A load of twice the rate that does not react: the n-th drop comes an interval over the root of n after the
/// one before (RFC 8289, section 3.3 and appendix A.2).
#[test]
fn codel_follows_its_control_law() {
    let rate = LinkRate::Constant { bits_per_s: 12_112_000 };
    let direction = Direction { rate, queue: codel(false), ..Direction::default() };
    // A packet takes 1 ms.
    let (released, mut path) = flood(&direction, MS / 2, 10 * S);
    let drops: Vec<u64> = std::iter::from_fn(|| path.poll_lost())
        .inspect(|lost| assert_eq!(lost.cause, Cause::Codel))
        .map(|lost| lost.at_ns)
        .collect();
    assert!(drops.len() > 500, "{}", drops.len());
    // The sojourn time passes 5 ms at the first packet that began after 10 ms; the first drop is an interval
    // later.
    assert!((105 * MS..=112 * MS).contains(&drops[0]), "{}", drops[0]);
    // The law sums up the due times; a drop happens when a packet is due next, up to 1 ms later.
    let mut due_ns = drops[0] as f64;
    for (count, at_ns) in (1..400_u32).zip(&drops[1..400]) {
        due_ns += 100.0 * MS as f64 / f64::from(count).sqrt();
        let late_ms = (*at_ns as f64 - due_ns) / MS as f64;
        assert!((-0.001..=1.001).contains(&late_ms), "drop {count}: {late_ms} ms after it was due");
    }
    assert_eq!(released.len() as u64 + path.counters().lost_codel, path.counters().packets_in);
}

/// A load that backs off as CoDel expects: the queue does not stand, and the link stays busy.
#[test]
fn codel_holds_the_queue_near_its_target() {
    let direction = Direction {
        rate: LinkRate::Constant { bits_per_s: 12_112_000 },
        queue: codel(false),
        ..Direction::default()
    };
    let mut path = path::<u64>(&direction);
    // A window with additive increase and halving at a loss, over a round trip of 50 ms plus the queue.
    let (mut window, mut in_flight, mut sent, mut lost_seen) = (10.0_f64, 0_u64, 0_u64, 0);
    let mut acknowledgements = std::collections::VecDeque::new();
    let (mut last_cut_ns, mut waits, mut busy) = (0, Vec::new(), 0_u64);
    let mut arrivals = std::collections::BTreeMap::new();
    for now_ns in (0..60 * S).step_by(100_000) {
        while acknowledgements.front().is_some_and(|at_ns| *at_ns <= now_ns) {
            acknowledgements.pop_front();
            in_flight -= 1;
            window += 1.0 / window;
        }
        while let Some(release) = path.poll_release(now_ns) {
            let arrival_ns = arrivals.remove(&release.packet).unwrap();
            if now_ns > 10 * S {
                waits.push(release.due_ns - arrival_ns);
                busy += 1;
            }
            acknowledgements.push_back(release.due_ns + 50 * MS);
        }
        while path.poll_lost().is_some() {
            lost_seen += 1;
            in_flight -= 1;
            if now_ns > last_cut_ns + 50 * MS {
                window = (window / 2.0).max(2.0);
                last_cut_ns = now_ns;
            }
        }
        while (in_flight as f64) < window.floor() {
            arrivals.insert(sent, now_ns);
            path.handle_packet(now_ns, FRAME_BYTES, sent);
            sent += 1;
            in_flight += 1;
        }
    }
    waits.sort_unstable();
    let median_ms = waits[waits.len() / 2] as f64 / MS as f64;
    assert!(lost_seen > 10 && median_ms < 12.0, "median wait {median_ms} ms, {lost_seen} lost");
    assert!(busy as f64 / 50_000.0 > 0.8, "{busy} of 50 000 packets");
}

fn frame(port: u16, ect: u8) -> Frame {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    bytes.extend([0x45, ect, 5, 220, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([1, 187, 0, 0, 0, 0]);
    Frame(bytes)
}

#[test]
fn ecn_marks_where_it_would_have_dropped() {
    let direction = Direction {
        rate: LinkRate::Constant { bits_per_s: 12_112_000 },
        queue: codel(true),
        ..Direction::default()
    };
    let run = |ect: u8| {
        let mut path = path(&direction);
        let mut marked = 0;
        for packet in 0..4000 {
            path.handle_packet(packet * MS / 2, FRAME_BYTES, frame(1, ect));
        }
        while let Some(due_ns) = path.next_release_ns() {
            while let Some(release) = path.poll_release(due_ns) {
                marked += u64::from(release.packet.0[15] & 0b11 == 0b11);
            }
        }
        (marked, path.counters())
    };
    let (marked, counters) = run(0b10);
    assert!(marked > 50 && counters.lost() == 0, "{counters:?}");
    assert_eq!((counters.marked, counters.packets_out), (marked, 4000));
    let (marked, counters) = run(0b00);
    assert!(marked == 0 && counters.marked == 0 && counters.lost_codel > 50, "{counters:?}");
}

/// One flow floods, another sends a little: the small flow neither waits nor loses, and floods share equally.
#[test]
fn fq_codel_keeps_flows_apart() {
    let discipline = Discipline::FqCodel { codel: Codel::default(), flows: 1024, quantum_bytes: 1514 };
    let queue = Queue { limit: QueueLimit::Packets(200), discipline };
    let direction =
        Direction { rate: LinkRate::Constant { bits_per_s: 12_112_000 }, queue, ..Direction::default() };
    let mut path = path(&direction);
    let (mut longest_ns, mut out, mut lost_sparse) = (0, [0_u64; 2], 0);
    let mut sent = std::collections::VecDeque::new();
    for tick in 0..40_000_u64 {
        let now_ns = tick * MS / 4;
        path.handle_packet(now_ns, FRAME_BYTES, frame(1, 0));
        path.handle_packet(now_ns, FRAME_BYTES, frame(2, 0));
        if tick % 40 == 7 {
            sent.push_back(now_ns);
            path.handle_packet(now_ns, 100, frame(3, 0));
        }
        while let Some(release) = path.poll_release(now_ns) {
            match release.packet.0[35] {
                3 => longest_ns = longest_ns.max(release.due_ns - sent.pop_front().unwrap()),
                port => out[usize::from(port) - 1] += 1,
            }
        }
        while let Some(lost) = path.poll_lost() {
            lost_sparse += u64::from(lost.packet.0[35] == 3);
        }
    }
    assert_eq!(lost_sparse, 0);
    // It waits for the packet in transmission and its own 66 µs, and for one that began at the same instant.
    assert!(longest_ns <= 2 * MS + 70_000, "{longest_ns}");
    let (first, second) = (out[0] as f64, out[1] as f64);
    assert!((first / second - 1.0).abs() < 0.01 && first + second > 9_800.0, "{out:?}");
    let counters = path.counters();
    assert!(counters.lost_queue > 20_000 && path.held_packets() <= 201, "{counters:?}");
}
