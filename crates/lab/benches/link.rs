//! `make bench-lab`: how late the emulator is, how much goes through, and what a packet costs it. See
//! docs/benchmarks.md. An argument chooses tests by a part of their name.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be measured ends with its reason")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lab::{Lab, LabError, LabSpec, Node, PairSpec};
use model::error::Source;
use model::network::{Direction, LinkRate, Queue};
use model::pins::CongestionControl;
use model::record::LinkReport;
use model::{Network, Pins, Topology};
use rustix::time::{ClockId, clock_gettime};

const MS: u64 = 1_000_000;
/// How long each value is measured.
const MEASURED: Duration = Duration::from_secs(4);
/// How long a flow has to find its rate.
const WARM_UP: Duration = Duration::from_secs(4);
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
const DELAY_NS: u64 = 15 * MS;

fn main() -> ExitCode {
    if let Err(missing) = lab::enter() {
        eprintln!("{missing}");
        return ExitCode::FAILURE;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{cpus} CPUs, load {}", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
    println!("{:<40} {:>12} {:>10}  details", "test", "measured", "target");
    measure(Backend::Emulator);
    for packets_per_s in [50_000, 100_000, 150_000] {
        packets(packets_per_s);
    }
    match has_netem() {
        Ok(()) => measure(Backend::Netem),
        Err(reason) => println!("kernel netem: {reason}"),
    }
    ExitCode::SUCCESS
}

fn measure(backend: Backend) {
    for (packets_per_s, bytes) in [(1000, 200), (10_000, 200)] {
        let what = format!("one-way error, {packets_per_s} packets/s");
        one_way(backend, &what, packets_per_s, bytes, [60_000, 250_000]);
    }
    one_way(backend, "one-way error, 100 Mbit/s", 8256, 1514, [u64::MAX, MS]);
    use CongestionControl::{Bbr, Cubic};
    for (congestion_control, mbit_per_s) in
        [(Cubic, 1), (Cubic, 10), (Cubic, 100), (Cubic, 1000), (Bbr, 100), (Bbr, 1000)]
    {
        flow(backend, congestion_control, mbit_per_s * 1_000_000);
    }
}

/// Whether the arguments choose a test; without any, all run.
fn is_chosen(test: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    filters.peek().is_none() || filters.any(|part| test.contains(&part))
}

/// Who delays packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backend {
    /// The lab's own.
    Emulator,
    /// The kernel's, at the nodes' ends of a wire.
    Netem,
}

impl Backend {
    const fn prefix(self) -> &'static str {
        match self {
            Backend::Emulator => "",
            Backend::Netem => "netem: ",
        }
    }

    /// A client and a server with the same direction both ways.
    fn pair(self, direction: Direction, pins: &Pins) -> Result<Lab, LabError> {
        match self {
            Backend::Emulator => pair(direction, pins),
            Backend::Netem => {
                let lab = wire(pins);
                for node in lab.nodes() {
                    netem_at(node, "eth0", &direction).unwrap();
                }
                Ok(lab)
            }
        }
    }
}

fn pair(direction: Direction, pins: &Pins) -> Result<Lab, LabError> {
    let (up, down) = (direction.clone(), direction);
    let network = Network { name: "bench".to_owned(), up, down, ..Network::default() };
    Lab::pair(PairSpec {
        network: &network,
        pins,
        seed: 1,
        emulator_cpu: None,
        backend: model::Backend::UserSpace,
    })
}

/// A client and a server with nothing between.
fn wire(pins: &Pins) -> Lab {
    let text = "title = \"a wire\"\n[[node]]\nname = \"client\"\n[[node]]\nname = \"server\"\n[[link]]\n\
                ends = [\"client\", \"server\"]\n";
    let source = Source { file: "wire.toml", text };
    let none = |_: &str| Ok(Network::default());
    let topology = Topology::parse("wire", source, &[], &none).unwrap();
    Lab::build(LabSpec {
        topology: &topology,
        settings: pins.into(),
        seed: 1,
        emulator_cpu: None,
        backend: model::Backend::UserSpace,
    })
    .unwrap()
}

/// Sets netem up in a node for what leaves by an interface.
fn netem_at(node: &Node, interface: &str, direction: &Direction) -> Result<(), String> {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", interface, "root", "netem", "limit"]);
    // Its queue holds what is on the way too: two bandwidth-delay products of full frames, or plenty.
    let rate = match direction.rate {
        LinkRate::Constant { bits_per_s } => Some(bits_per_s),
        _ => None,
    };
    let packets = rate.map_or(100_000, |bits_per_s| bits_per_s * 60 / 8000 / 1514);
    command.args([packets.to_string(), "delay".to_owned(), format!("{}us", direction.delay_ns / 1000)]);
    if let Some(bits_per_s) = rate {
        command.args(["rate".to_owned(), format!("{bits_per_s}bit")]);
    }
    match node.enter(|| command.output()).unwrap() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("tc: {error}")),
    }
}

fn row(test: &str, found: &str, target: &str, details: &str) {
    println!("{test:<40} {found:>12} {target:>10}  {details}");
}

/// Sends at a steady pace; the receiver's kernel stamps each arrival. The error is the distance from the
/// delay.
fn one_way(backend: Backend, test: &str, packets_per_s: u32, bytes: usize, targets_ns: [u64; 2]) {
    if !is_chosen(test) {
        return;
    }
    let direction = Direction { delay_ns: DELAY_NS, ..Direction::default() };
    let lab = backend.pair(direction, &Pins::default()).unwrap();
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    stamp_arrivals(&server);
    let target = server.local_addr().unwrap();
    let count = packets_per_s * u32::try_from(MEASURED.as_secs()).unwrap();
    lab.begin_measuring().unwrap();
    let mut errors_ns: Vec<u64> = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| std::iter::from_fn(|| error_of_next(&server)).collect());
        let mut payload = vec![0; bytes - HEADERS];
        let began = Instant::now();
        for number in 0..count {
            let due = Duration::from_secs(1) * number / packets_per_s;
            if let Some(left) = due.checked_sub(began.elapsed()) {
                std::thread::sleep(left);
            }
            payload[..8].copy_from_slice(&wall_ns().to_ne_bytes());
            client.send_to(&payload, target).unwrap();
        }
        receiver.join().unwrap()
    });
    errors_ns.sort_unstable();
    let report = lab.reports().unwrap().pop();
    let at = |permille: usize| errors_ns.get(errors_ns.len() * permille / 1000).copied().unwrap_or(u64::MAX);
    let emulator = report.map_or(String::new(), |report| {
        format!(
            "; {} came out of the link; emulator: {} of CPU per packet, lateness p99 {:.1} µs, real-time: {}",
            report.up.packets_out,
            cost(report.cpu_ns.unwrap_or(0), u64::from(count)),
            report.up.lateness.unwrap_or_default().p99_ns as f64 / 1e3,
            report.realtime
        )
    });
    let details = format!("{} of {count} packets were read{emulator}", errors_ns.len());
    for (name, permille, target_ns) in [("p50", 500, targets_ns[0]), ("p99", 990, targets_ns[1])] {
        let target = if target_ns == u64::MAX { String::new() } else { format!("{} µs", target_ns / 1000) };
        let found = format!("{:.1} µs", at(permille) as f64 / 1e3);
        row(
            &format!("{}{test}, {name}", backend.prefix()),
            &found,
            &target,
            if name == "p50" { &details } else { "" },
        );
    }
}

/// One flow downwards; what counts is what the link carried after the warm-up.
fn flow(backend: Backend, congestion_control: CongestionControl, bits_per_s: u64) {
    let algorithm = congestion_control.name();
    let name = format!("{}one {algorithm} flow, {} Mbit/s, 30 ms", backend.prefix(), bits_per_s / 1_000_000);
    if !is_chosen(&name) {
        return;
    }
    let pins = Pins { congestion_control, ..Pins::default() };
    // One bandwidth-delay product, but no less than a few packets.
    let queue = Queue::bytes((bits_per_s * 30 / 8000).max(20_000));
    let rate = LinkRate::Constant { bits_per_s };
    let network = Direction { delay_ns: DELAY_NS, rate, queue, ..Direction::default() };
    let lab = match backend.pair(network, &pins) {
        Ok(lab) => lab,
        Err(error) => return row(&name, "unsupported", "93 %", &error.to_string()),
    };
    let server = lab.server().addresses().v4;
    let listener = lab.server().enter(|| TcpListener::bind((server, 80)).unwrap()).unwrap();
    let mut stream = lab.client().enter(|| TcpStream::connect((server, 80)).unwrap()).unwrap();
    let (mut from, _) = listener.accept().unwrap();
    lab.begin_measuring().unwrap();
    let ends = Instant::now() + WARM_UP + MEASURED;
    let received = AtomicU64::new(0);
    let (before, after) = std::thread::scope(|scope| {
        scope.spawn(move || {
            let bytes = vec![0; 1 << 18];
            while Instant::now() < ends && from.write_all(&bytes).is_ok() {}
        });
        scope.spawn(|| {
            let mut buffer = vec![0; 1 << 18];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        let state = || (Instant::now(), received.load(Ordering::Relaxed), lab.reports().unwrap().pop());
        std::thread::sleep(WARM_UP);
        let before = state();
        std::thread::sleep(MEASURED - Duration::from_millis(200));
        (before, state())
    });
    let took = (after.0 - before.0).as_secs_f64();
    // What the link carries of 1448 bytes: headers of TCP with its stamps, IP and Ethernet too.
    let carried = (after.1 - before.1) as f64 / 1448.0 * 1514.0 * 8.0;
    let found = format!("{:.1} %", carried / took / bits_per_s as f64 * 100.0);
    let details = before.2.zip(after.2).map_or(String::new(), |(before, after)| costs(&before, &after, took));
    row(&name, &found, "93 %", &details);
}

/// What the emulator did between two reports.
fn costs(before: &LinkReport, after: &LinkReport, took_s: f64) -> String {
    let packets = |report: &LinkReport| report.up.packets_in + report.down.packets_in;
    let cpu_ns = after.cpu_ns.unwrap_or(0) - before.cpu_ns.unwrap_or(0);
    let lateness = after.down.lateness.clone().unwrap_or_default();
    format!(
        "emulator: {} of CPU per packet, {:.0} % of a CPU, lateness p50 {} µs, p99 {} µs; lost: {} queue, {} overload",
        cost(cpu_ns, packets(after) - packets(before)),
        cpu_ns as f64 / took_s / 1e7,
        lateness.p50_ns / 1000,
        lateness.p99_ns / 1000,
        after.down.lost_queue,
        after.up.lost_overload + after.down.lost_overload
    )
}

/// The CPU time of one packet.
fn cost(cpu_ns: u64, packets: u64) -> String {
    format!("{:.1} µs", cpu_ns as f64 / 1e3 / packets.max(1) as f64)
}

/// Small packets, ten at a time.
fn packets(packets_per_s: u32) {
    const SEGMENT: usize = 64;
    let test = format!("{packets_per_s} packets/s");
    if !is_chosen(&test) {
        return;
    }
    let lab = pair(Direction { delay_ns: DELAY_NS, ..Direction::default() }, &Pins::default()).unwrap();
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    set_option(&client, libc::SOL_UDP, libc::UDP_SEGMENT, i32::try_from(SEGMENT).unwrap());
    let target = server.local_addr().unwrap();
    lab.begin_measuring().unwrap();
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < MEASURED {
        let due = u64::try_from(began.elapsed().as_micros()).unwrap() * u64::from(packets_per_s) / 1_000_000;
        while sent < due {
            client.send_to(&[1; 10 * SEGMENT], target).unwrap();
            sent += 10;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    let took = began.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_millis(200));
    let report = lab.reports().unwrap().remove(0);
    let lateness = report.up.lateness.clone().unwrap_or_default();
    let details = format!(
        "{} of {sent} packets came through in {took:.2} s; emulator: {} of CPU per packet, lateness p50 {} µs, \
         p99 {} µs",
        report.up.packets_out,
        cost(report.cpu_ns.unwrap_or(0), sent),
        lateness.p50_ns / 1000,
        lateness.p99_ns / 1000
    );
    let found = format!("{} lost", sent - report.up.packets_out);
    row(&test, &found, "0 lost", &details);
}

fn socket(node: &Node) -> UdpSocket {
    let address = node.addresses().v4;
    let socket = node.enter(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

fn wall_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

fn stamp_arrivals(socket: &UdpSocket) {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

fn set_option(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the value outlives the call and has the length given.
    let result = unsafe {
        let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap();
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// The distance of the next packet's way from the delay; `None` where none comes any more.
fn error_of_next(socket: &UdpSocket) -> Option<u64> {
    let (mut payload, mut control) = ([0_u8; 2048], [0_u64; 16]);
    let mut vector = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: all zeros is a valid `msghdr`; the buffers outlive the call and have the lengths given; the
    // control message is read where the kernel says that it is, and is the one that was asked for.
    let arrival = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        if libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) < 8 {
            return None;
        }
        let message = libc::CMSG_FIRSTHDR(&raw const header).as_ref()?;
        libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned()
    };
    let arrival_ns =
        u64::try_from(arrival.tv_sec).ok()? * 1_000_000_000 + u64::try_from(arrival.tv_nsec).ok()?;
    let sent_ns = u64::from_ne_bytes(payload[..8].try_into().ok()?);
    Some(arrival_ns.checked_sub(sent_ns)?.abs_diff(DELAY_NS))
}

/// Whether this kernel has netem, tried on the loopback of a node.
fn has_netem() -> Result<(), String> {
    let lab = wire(&Pins::default());
    let delay = Direction { delay_ns: MS, ..Direction::default() };
    netem_at(lab.client(), "lo", &delay).map_err(|reason| {
        if reason.contains("unknown") || reason.contains("No such file") && !reason.starts_with("tc:") {
            format!("unsupported: this kernel has no sch_netem ({reason})")
        } else {
            format!("not tried ({reason})")
        }
    })
}
