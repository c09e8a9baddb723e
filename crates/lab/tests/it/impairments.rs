//! Every impairment on a live link. What is asserted follows from packets' numbers, from the seed, or is a
//! bound that no busy machine can break: nothing is judged by how quick this one is.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use lab::{Lab, PairSpec};
use model::network::{
    Change, Codel, Direction, Discipline, Distribution, Jitter, LinkRate, Loss, Opportunities, Order,
    OutagePackets, OutageTimes, Outages, Queue, QueueLimit, RateSteps, Reorder,
};
use model::record::DirectionReport;
use model::{Backend, Network, Pins};
use path::{LinkDirection, Path, Seeds};

use crate::help::{MS, wait_until};
use crate::network::socket;

const SEED: u64 = 4711;
/// A datagram of this length makes a frame of 1000 bytes.
const PAYLOAD: usize = 1000 - 14 - 20 - 8;
const NEVER: Option<Outages> = Some(Outages { packets: OutagePackets::Lost, times: OutageTimes::Always });
const BATCH: u32 = 30;
/// So slow that the second frame would take hours: a packet that has to wait, waits for ever.
const STANDSTILL: LinkRate = LinkRate::Constant { bits_per_s: 1 };

/// A lab whose upward direction is this.
fn lab(up: Direction) -> (Network, Lab) {
    lab_of(Network { name: "live".to_owned(), up, ..Network::default() })
}

fn lab_of(network: Network) -> (Network, Lab) {
    let pins = Pins::default();
    let lab = Lab::pair(PairSpec {
        network: &network,
        pins: &pins,
        seed: SEED,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    (network, lab)
}

/// Numbers 1 to `count`, one to a datagram of 1000 bytes on the link, sent as fast as the kernel takes them.
fn send(lab: &Lab, to: &UdpSocket, count: u32) {
    let client = socket(lab.client());
    let target = to.local_addr().unwrap();
    for number in 1..=count {
        client.send_to(&datagram(number), target).unwrap();
    }
}

fn datagram(number: u32) -> [u8; PAYLOAD] {
    let mut payload = [0; PAYLOAD];
    payload[..4].copy_from_slice(&number.to_ne_bytes());
    payload
}

fn receive(from: &UdpSocket) -> u32 {
    let mut payload = [0; PAYLOAD];
    assert_eq!(from.recv(&mut payload).unwrap(), PAYLOAD);
    u32::from_ne_bytes(payload[..4].try_into().unwrap())
}

fn up(lab: &Lab) -> DirectionReport {
    lab.reports().unwrap().remove(0).up
}

/// What arrives of `count` packets, in the order of its arrival. They are sent in batches that fit into the
/// receiver's buffer.
fn arrivals(lab: &Lab, count: u32) -> Vec<u32> {
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    let mut arrived = Vec::new();
    for number in 1..=count {
        client.send_to(&datagram(number), server.local_addr().unwrap()).unwrap();
        if number % BATCH == 0 || number == count {
            wait_until("every packet out or lost", || {
                let up = up(lab);
                let lost = up.lost_configured + up.lost_outage + up.lost_queue + up.lost_codel;
                up.packets_in == u64::from(number)
                    && up.packets_out + lost == up.packets_in + up.duplicated.unwrap()
            });
            arrived.extend((arrived.len() as u64..up(lab).packets_out).map(|_| receive(&server)));
        }
    }
    assert_eq!(up(lab).lost_overload, 0);
    arrived
}

/// What the path does with as many packets on a virtual clock, all of them sent at once.
fn virtual_arrivals(network: &Network, count: u32) -> Vec<u32> {
    let mut path: Path<u64> =
        Path::of_network(network, LinkDirection::Up, Seeds::run(SEED, LinkDirection::Up), 0);
    for number in 1..=count {
        path.handle_packet(0, 1000, u64::from(number));
    }
    std::iter::from_fn(|| path.poll_release(u64::MAX - 1)).map(|release| release.packet as u32).collect()
}

pub(crate) fn chosen_packets_are_lost_by_number() {
    let (_, lab) = lab(Direction { lost_packets: vec![(1, 1), (10, 12), (40, 40)], ..Direction::default() });
    lab.calibrate(3).unwrap();
    let expected: Vec<u32> = (2..10).chain(13..40).collect();
    assert_eq!(arrivals(&lab, 40), expected);
    assert_eq!(up(&lab).lost_configured, 5);
}

pub(crate) fn fate_is_the_same_live_and_on_the_virtual_clock() {
    let loss = Loss::GilbertElliott { p: 0.1, r: 0.4, h: 0.1, k: 0.99 };
    let direction = Direction { loss, duplicate_share: 0.2, delay_ns: 5 * MS, ..Direction::default() };
    let (network, lab) = lab(direction);
    let expected = virtual_arrivals(&network, 400);
    assert!((250..500).contains(&expected.len()), "{} of 400", expected.len());
    assert_eq!(arrivals(&lab, 400), expected);
    assert!(up(&lab).duplicated > Some(40), "{:?}", up(&lab));
    lab.begin_measuring().unwrap();
    assert_eq!(arrivals(&lab, 400), expected, "the same lab begins again");
}

pub(crate) fn every_packet_can_come_twice() {
    let (_, lab) = lab(Direction { duplicate_share: 1.0, ..Direction::default() });
    let expected: Vec<u32> = (1..=20).flat_map(|number| [number, number]).collect();
    assert_eq!(arrivals(&lab, 20), expected);
    assert_eq!((up(&lab).duplicated, up(&lab).reordered), (Some(20), Some(0)));
}

pub(crate) fn chosen_packets_overtake() {
    // Every fifth skips the delay, which is longer than any machine takes to send these few.
    let reorder = Some(Reorder { share: 1.0, gap: 5 });
    let (network, lab) = lab(Direction { delay_ns: 2000 * MS, reorder, ..Direction::default() });
    let expected = virtual_arrivals(&network, 25);
    assert_eq!(expected[..5], [5, 10, 15, 20, 25]);
    assert_eq!(arrivals(&lab, 25), expected);
    assert_eq!(up(&lab).reordered, Some(20));
}

pub(crate) fn jitter_keeps_the_order_unless_asked() {
    let jitter = |order| Some(Jitter { spread_ns: 8 * MS, distribution: Distribution::Normal, order });
    let kept = jitter(Order::Kept { correlation_ns: 80 * MS });
    let (_, ordered) = lab(Direction { delay_ns: 20 * MS, jitter: kept, ..Direction::default() });
    let server = socket(ordered.server());
    for _ in 0..10 {
        send(&ordered, &server, 50);
        std::thread::sleep(Duration::from_millis(7));
        (1..=50).for_each(|number| assert_eq!(receive(&server), number));
    }
    assert_eq!((up(&ordered).reordered, up(&ordered).packets_out), (Some(0), 500));
    let free = jitter(Order::Free { correlation: 0.0 });
    let (_, lab) = lab(Direction { delay_ns: 20 * MS, jitter: free, ..Direction::default() });
    let mut arrived = arrivals(&lab, 120);
    assert!(up(&lab).reordered > Some(0) && !arrived.is_sorted(), "{:?}", up(&lab));
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(1..=120), "each once");
}

pub(crate) fn a_queue_holds_what_it_says() {
    let packets = Queue::packets(5);
    // Five frames of 1000 bytes and no byte of the sixth.
    let bytes = Queue { limit: QueueLimit::Bytes(5999), ..packets };
    for queue in [packets, bytes] {
        let (_, lab) = lab(Direction { rate: STANDSTILL, queue, ..Direction::default() });
        let server = socket(lab.server());
        send(&lab, &server, 20);
        wait_until("20 packets in", || up(&lab).packets_in == 20);
        assert_eq!((up(&lab).lost_queue, up(&lab).packets_out), (15, 0));
    }
}

pub(crate) fn an_outage_loses_or_keeps() {
    let (_, gone) = lab(Direction { outages: NEVER, ..Direction::default() });
    assert_eq!(arrivals(&gone, 30), [0; 0]);
    assert_eq!(up(&gone).lost_outage, 30);
    let outages = Some(Outages { packets: OutagePackets::Wait, times: OutageTimes::Always });
    let still = Direction { outages, queue: Queue::packets(4), ..Direction::default() };
    let over = Change {
        at_ns: 400 * MS,
        up: Direction::default(),
        down: Direction::default(),
        handover: false,
        rebinding: false,
    };
    let network = Network { name: "live".to_owned(), up: still, timeline: vec![over], ..Network::default() };
    let (_, lab) = lab_of(network);
    let server = socket(lab.server());
    let began = Instant::now();
    lab.begin_measuring().unwrap();
    send(&lab, &server, 10);
    let sent = began.elapsed();
    assert_eq!([receive(&server), receive(&server)], [1, 2]);
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(400), "{waited:?}: before the outage was over");
    if sent < Duration::from_millis(400) {
        assert_eq!(up(&lab).lost_queue, 6, "what the queue could not keep");
    }
}

/// From 300 ms of the run on nothing comes through; the lab itself is older than that when the run begins.
pub(crate) fn the_timeline_counts_from_the_runs_start() {
    const AT: Duration = Duration::from_millis(300);
    let dead = Direction { outages: NEVER, ..Direction::default() };
    let change =
        Change { at_ns: 300 * MS, up: dead, down: Direction::default(), handover: false, rebinding: false };
    let (_, lab) = lab_of(Network { name: "live".to_owned(), timeline: vec![change], ..Network::default() });
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    wait_until("the outage of the lab's own first run", || {
        client.send_to(&datagram(0), server.local_addr().unwrap()).unwrap();
        up(&lab).lost_outage > 0
    });
    for _ in 0..up(&lab).packets_out {
        receive(&server);
    }
    let before_start = Instant::now();
    lab.begin_measuring().unwrap();
    let after_start = Instant::now();
    let (mut surely_before, mut surely_after, mut sent) = (0, 0, 0);
    while surely_after < 20 {
        let before = Instant::now();
        client.send_to(&datagram(0), server.local_addr().unwrap()).unwrap();
        sent += 1;
        // A frame is in the ring with its stamp when the call returns.
        surely_before += u64::from(before_start.elapsed() < AT);
        surely_after += u64::from(before.duration_since(after_start) > AT);
        std::thread::sleep(Duration::from_millis(3));
    }
    wait_until("every packet through or lost", || up(&lab).packets_out + up(&lab).lost_outage == sent);
    let found = up(&lab);
    assert!(found.packets_out >= surely_before && found.lost_outage >= surely_after, "{found:?}");
}

/// 1000 bytes at 4 Mbit/s take 2 ms, so 200 packets at once stand for up to 400 ms before CoDel.
pub(crate) fn codel_marks_who_can_be_marked_and_drops_others() {
    let codel = Codel { target_ns: MS, interval_ns: 10 * MS, ecn: true };
    let queue = Queue { limit: QueueLimit::Packets(1000), discipline: Discipline::Codel(codel) };
    let rate = LinkRate::Constant { bits_per_s: 4_000_000 };
    let (_, lab) = lab(Direction { rate, queue, ..Direction::default() });
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    // ECT(0), RFC 3168.
    set_int(&client, libc::IP_TOS, 2);
    set_int(&server, libc::IP_RECVTOS, 1);
    for number in 1..=200 {
        client.send_to(&datagram(number), server.local_addr().unwrap()).unwrap();
    }
    let marks = (0..200).filter(|_| ecn_of_next(&server) == 3).count() as u64;
    let found = up(&lab);
    assert_eq!((found.packets_out, found.lost_codel, found.marked), (200, 0, marks), "{found:?}");
    assert!(marks > 5, "{marks} marks; the kernel verified each header's checksum");
    set_int(&client, libc::IP_TOS, 0);
    lab.begin_measuring().unwrap();
    for number in 1..=200 {
        client.send_to(&datagram(number), server.local_addr().unwrap()).unwrap();
    }
    wait_until("every packet out or dropped", || up(&lab).packets_out + up(&lab).lost_codel == 200);
    let found = up(&lab);
    assert!(found.lost_codel > 5 && found.marked == 0, "{found:?}");
}

/// A packet of another flow does not stand behind the flow that fills the queue.
pub(crate) fn fq_codel_serves_flows_in_turn() {
    let discipline = Discipline::FqCodel { codel: Codel::default(), flows: 1024, quantum_bytes: 1514 };
    let queue = Queue { limit: QueueLimit::Packets(1000), discipline };
    let rate = LinkRate::Constant { bits_per_s: 400_000 };
    let (_, lab) = lab(Direction { rate, queue, ..Direction::default() });
    let server = socket(lab.server());
    let fixed = |port: u16| {
        let address = SocketAddr::new(lab.client().addresses().v4.into(), port);
        lab.client().enter(|| UdpSocket::bind(address).unwrap()).unwrap()
    };
    let target = server.local_addr().unwrap();
    let (bulk, sparse) = (fixed(5001), fixed(5002));
    for number in 1..=100 {
        bulk.send_to(&datagram(number), target).unwrap();
    }
    sparse.send_to(&datagram(1000), target).unwrap();
    wait_until("all in", || up(&lab).packets_in == 101);
    // Of the bulk flow at most what had left before the packet came, one in transmission and its turn's two.
    let had_left = up(&lab).packets_out;
    let place = (0..).find(|_| receive(&server) == 1000).unwrap();
    assert!(place <= had_left + 4, "behind {place} packets, {had_left} of which had left");
}

pub(crate) fn traces_are_followed() {
    // Ten opportunities at 100 ms and ten at 1000 ms.
    let trace = Opportunities { at_ms: vec![(100, 10), (1000, 10)] };
    let table = RateSteps { steps: vec![(0, 0), (600 * MS, 80_000_000)], repeat_ns: None };
    let cases = [
        (LinkRate::Opportunities(trace), [Duration::from_millis(100), Duration::from_secs(1)]),
        (LinkRate::Steps(table), [Duration::from_millis(600); 2]),
    ];
    for (rate, [first_at, last_at]) in cases {
        let (_, lab) = lab(Direction { rate, ..Direction::default() });
        let server = socket(lab.server());
        let began = Instant::now();
        lab.begin_measuring().unwrap();
        // Full frames: one opportunity each.
        let client = socket(lab.client());
        for number in 0..20_u8 {
            client.send_to(&[number; 1472], server.local_addr().unwrap()).unwrap();
        }
        let mut buffer = [0; 1472];
        for number in 0..20 {
            server.recv(&mut buffer).unwrap();
            assert_eq!(buffer[0], number);
            let least = if number < 10 { first_at } else { last_at };
            assert!(began.elapsed() >= least, "packet {number} after {:?}", began.elapsed());
        }
    }
}

fn set_int(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the value outlives the call and has the length given.
    let result = unsafe {
        let length = size_of_val(&value) as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, option, (&raw const value).cast(), length)
    };
    assert_eq!(result, 0);
}

/// The ECN field of the next datagram.
fn ecn_of_next(socket: &UdpSocket) -> u8 {
    let (mut payload, mut control) = ([0_u8; PAYLOAD], [0_u64; 8]);
    let mut vector = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: PAYLOAD };
    // SAFETY: all zeros is a valid `msghdr`; the buffers outlive the call and have the lengths given; the
    // control message is read where the kernel says that it is.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        assert_eq!(libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0), PAYLOAD as isize);
        let message = libc::CMSG_FIRSTHDR(&raw const header).as_ref().unwrap();
        assert_eq!((message.cmsg_level, message.cmsg_type), (libc::IPPROTO_IP, libc::IP_TOS));
        libc::CMSG_DATA(message).read() & 3
    }
}
