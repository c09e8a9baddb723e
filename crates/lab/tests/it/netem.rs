//! The kernel as emulator. What a kernel lacks is not skipped: the error is asserted, and all that is there
//! is used for real. A rate and its queue need no netem.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lab::{Lab, LabError, PairSpec, probe_netem};
use model::network::{
    Codel, Direction, Discipline, Distribution, Jitter, LinkRate, Loss, Order, OutagePackets, OutageTimes,
    Outages, Queue, QueueLimit,
};
use model::record::DirectionReport;
use model::{Backend, Network, Pins};

use crate::help::{MS, wait_until};
use crate::network::{socket, socket_at};

/// A datagram of this length makes a frame of 1000 bytes.
const PAYLOAD: usize = 1000 - 14 - 20 - 8;
/// A byte per second: once the bucket is empty, a packet waits for ever.
const STANDSTILL: LinkRate = LinkRate::Constant { bits_per_s: 8 };
const TRIES: u32 = 5;

fn kernel(up: Direction) -> Result<Lab, LabError> {
    let network = Network { name: "kernel".to_owned(), up, ..Network::default() };
    let pins = Pins::default();
    Lab::pair(PairSpec {
        network: &network,
        pins: &pins,
        seed: 7,
        emulator_cpu: None,
        backend: Backend::Netem,
    })
}

fn up(lab: &Lab) -> DirectionReport {
    let report = lab.reports().unwrap().remove(0);
    assert_eq!((report.backend, report.realtime, report.cpu_ns), (Backend::Netem, false, None));
    report.up
}

/// Sends numbers, each in a frame of 1000 bytes.
fn send(lab: &Lab, target: SocketAddr, numbers: std::ops::Range<u32>) {
    let client = socket(lab.client());
    for number in numbers {
        let mut payload = [0; PAYLOAD];
        payload[..4].copy_from_slice(&number.to_ne_bytes());
        client.send_to(&payload, target).unwrap();
    }
}

/// What a network is like that this kernel's lack of `kind` keeps away.
#[track_caller]
fn assert_lacks(kind: &str, found: Result<Lab, LabError>) {
    match found {
        Err(LabError::Unsupported { what, remedy }) => {
            assert!(what.contains(&format!("`{kind}`")), "{what}");
            assert!(remedy.contains(&format!("modprobe sch_{kind}")), "{remedy}");
        }
        other => panic!("found {other:?}, expected that this kernel has no {kind}"),
    }
}

pub(crate) fn what_this_kernel_lacks_is_named() {
    let delayed = || kernel(Direction { delay_ns: 5 * MS, ..Direction::default() });
    match probe_netem() {
        Ok(()) => assert!(delayed().is_ok()),
        Err(LabError::Unsupported { what, remedy }) => {
            assert!(what.contains("`netem`") && remedy.contains("modprobe sch_netem"), "{what}: {remedy}");
            assert_lacks("netem", delayed());
        }
        Err(other) => panic!("{other:?}"),
    }
}

pub(crate) fn what_netem_cannot_honour_is_named() {
    let outages = Some(Outages { packets: OutagePackets::Lost, times: OutageTimes::Always });
    let found = kernel(Direction { outages, ..Direction::default() }).map(|_| ()).unwrap_err();
    assert!(
        matches!(&found, LabError::UnsupportedNetwork(unsupported) if unsupported.key == "up.outages"),
        "{found}"
    );
    let lab = kernel(Direction::default()).unwrap();
    let file = std::env::temp_dir().join(format!("h123-netem-{}.pcapng", std::process::id()));
    let found = lab.begin_capture(&file).unwrap_err();
    let _: Result<_, _> = std::fs::remove_file(file);
    assert!(matches!(&found, LabError::Unsupported { what, .. } if what.contains("capture")), "{found}");
}

/// A stream of reference measurements: never faster than promised, and in the best of several tries as fast.
pub(crate) fn the_bucket_holds_the_rate() {
    for bits_per_s in [8_000_000, 100_000_000] {
        let lab =
            kernel(Direction { rate: LinkRate::Constant { bits_per_s }, ..Direction::default() }).unwrap();
        let mut best = 0;
        for _ in 0..TRIES {
            let found = lab.calibrate_network().unwrap().unwrap();
            assert_eq!(found.backend, Backend::Netem);
            assert_eq!((found.up.loss.sent, found.up.loss.lost, found.down.loss.lost), (1_000, 0, 0));
            assert!(found.down.rate.is_none());
            let rate = found.up.rate.unwrap();
            assert!(
                rate.measured_bits_per_s <= bits_per_s + bits_per_s / 50,
                "{rate:?}: faster than the link"
            );
            best = best.max(rate.measured_bits_per_s);
            if best >= bits_per_s / 100 * 97 {
                break;
            }
        }
        // A busy machine falls short; a bucket that lets through half is not this rate's.
        assert!(best > bits_per_s / 2, "{best} of {bits_per_s}");
    }
}

pub(crate) fn queues_hold_what_they_say() {
    // 1514 bytes leave the bucket at once: one frame of 1000. The queue's limit includes it, as if it were in
    // transmission; in bytes a full frame is set aside for that.
    for (queue, waiting) in [(Queue::packets(10), 9), (Queue::bytes(10_000), 8)] {
        let lab = kernel(Direction { rate: STANDSTILL, queue, ..Direction::default() }).unwrap();
        let server = socket(lab.server());
        for _ in 0..2 {
            send(&lab, server.local_addr().unwrap(), 0..30);
            wait_until("every frame out, waiting or lost", || up(&lab).packets_in == 30);
            let up = up(&lab);
            assert_eq!((up.packets_out, up.lost_queue), (1, 29 - waiting), "{queue:?}: {up:?}");
            assert_eq!((up.lost_configured, up.lost_codel, up.lost_overload), (0, 0, 0), "{up:?}");
            assert_eq!((up.bytes_out, &up.lateness), (1000, &None));
            assert!(up.bytes_in >= 30_000, "{up:?}");
            // What waits is gone with the run that it belongs to.
            lab.begin_measuring().unwrap();
        }
        let down = lab.reports().unwrap().remove(0).down;
        assert_eq!((down.packets_in, down.packets_out), (0, 0));
    }
}

pub(crate) fn the_order_is_kept_and_counted() {
    let rate = LinkRate::Constant { bits_per_s: 400_000_000 };
    let lab = kernel(Direction { rate, queue: Queue::packets(2_000), ..Direction::default() }).unwrap();
    let server = socket(lab.server());
    let mut arrived = Vec::new();
    for batch in 0..40 {
        send(&lab, server.local_addr().unwrap(), batch * 30..batch * 30 + 30);
        for _ in 0..30 {
            let mut payload = [0; PAYLOAD];
            assert_eq!(server.recv(&mut payload).unwrap(), PAYLOAD);
            arrived.push(u32::from_ne_bytes(payload[..4].try_into().unwrap()));
        }
    }
    assert_eq!(arrived, (0..1200).collect::<Vec<_>>());
    let up = up(&lab);
    assert_eq!((up.packets_in, up.packets_out), (1200, 1200));
    assert_eq!((up.bytes_in, up.bytes_out), (1_200_000, 1_200_000));
}

pub(crate) fn both_families_and_no_housekeeping_pass() {
    let lab = kernel(Direction::default()).unwrap();
    let addresses = lab.server().addresses();
    let own = lab.client().addresses();
    let v6 = addresses.v6.zip(own.v6).map(|(to, from)| (IpAddr::from(to), IpAddr::from(from)));
    for (to, from) in v6.into_iter().chain([(addresses.v4.into(), own.v4.into())]) {
        let server = socket_at(lab.server(), SocketAddr::new(to, 443));
        let client = socket_at(lab.client(), SocketAddr::new(from, 0));
        client.send_to(b"there", server.local_addr().unwrap()).unwrap();
        let (_, from) = server.recv_from(&mut [0; 9]).unwrap();
        server.send_to(b"back", from).unwrap();
        assert_eq!(client.recv(&mut [0; 9]).unwrap(), 4);
    }
    let before = up(&lab).packets_in;
    let client = socket(lab.client());
    client.set_broadcast(true).unwrap();
    socket2::SockRef::from(&client).bind_device(Some(b"eth0")).unwrap();
    client.send_to(b"all", "255.255.255.255:9").unwrap();
    send(&lab, (addresses.v4, 9).into(), 0..1);
    wait_until("the last one", || up(&lab).packets_out > before);
    assert_eq!(up(&lab).packets_in, before + 1, "what is for all nodes is the nodes' own");
}

/// CoDel and FQ-CoDel of the kernel where it has them; otherwise it says which it lacks.
pub(crate) fn codel_is_the_kernels_own() {
    let rate = LinkRate::Constant { bits_per_s: 8_000_000 };
    let codel = Codel { ecn: true, ..Codel::default() };
    let fair = Discipline::FqCodel { codel, flows: 1024, quantum_bytes: 1514 };
    for (kind, discipline) in [("codel", Discipline::Codel(codel)), ("fq_codel", fair)] {
        let queue = Queue { limit: QueueLimit::Packets(100), discipline };
        match kernel(Direction { rate: rate.clone(), queue, ..Direction::default() }) {
            Ok(lab) => {
                let server = socket(lab.server());
                send(&lab, server.local_addr().unwrap(), 0..300);
                wait_until("every frame out or lost", || {
                    let up = up(&lab);
                    up.packets_in == 300 && up.packets_out + up.lost_queue + up.lost_codel == 300
                });
                assert!(up(&lab).lost_queue >= 190, "{kind}: {:?}", up(&lab));
            }
            lacking => assert_lacks(kind, lacking),
        }
    }
}

/// What takes netem: measured where the kernel has it, named where it has not.
pub(crate) fn delay_loss_and_order_are_as_configured() {
    let bits_per_s = 20_000_000;
    let loss = Loss::GilbertElliott { p: 0.02, r: 0.25, h: 0.1, k: 0.999 };
    let rate = LinkRate::Constant { bits_per_s };
    let direction = Direction { delay_ns: 20 * MS, rate, loss, ..Direction::default() };
    let order = Order::Free { correlation: 0.0 };
    let jitter = Some(Jitter { spread_ns: 5 * MS, distribution: Distribution::Pareto, order });
    let jittery = Direction { jitter, ..direction.clone() };
    if probe_netem().is_err() {
        assert_lacks("netem", kernel(direction));
        assert_lacks("netem", kernel(jittery));
        return;
    }
    let lab = kernel(direction).unwrap();
    let calibration = lab.calibrate(7).unwrap().unwrap();
    assert_eq!(calibration.rtt_ns.len(), 7, "calibration loses nothing");
    let least = calibration.expected_rtt_ns - calibration.expected_rtt_ns / 50;
    assert!(calibration.rtt_ns.iter().all(|rtt_ns| *rtt_ns >= least), "{calibration:?}");
    let found = lab.calibrate_network().unwrap().unwrap().up;
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let off = (found.loss.lost as f64 - found.loss.expected).abs();
    assert!(off <= 6.0 * found.loss.deviation, "{found:?}");
    let measured = found.rate.unwrap().measured_bits_per_s;
    assert!(measured <= bits_per_s + bits_per_s / 50 && measured >= bits_per_s / 2, "{measured}");
    let lab = kernel(jittery).unwrap();
    let server = socket(lab.server());
    send(&lab, server.local_addr().unwrap(), 0..500);
    wait_until("every frame out or lost", || {
        let up = up(&lab);
        up.packets_in == 500 && up.packets_out + up.lost_configured == 500
    });
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut numbers = Vec::new();
    let mut payload = [0; PAYLOAD];
    while server.recv(&mut payload).is_ok() {
        numbers.push(u32::from_ne_bytes(payload[..4].try_into().unwrap()));
    }
    assert!(!numbers.is_sorted(), "jitter for each packet reorders: {numbers:?}");
}
