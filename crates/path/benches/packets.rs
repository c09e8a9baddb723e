//! What a packet costs in the path: nanoseconds from being handed in to being released, without any system
//! call.
//!
//! `cargo bench -p path` prints one line for each kind of network. A link of 1 Gbit/s is offered full frames
//! at its rate, and the frames' buffers are used again, as the lab does.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on must fail")]

use std::time::Instant;

use model::Network;
use model::error::Source;
use model::network::Direction;
use path::{Frame, LinkDirection, Path, Seeds};

const ROUNDS: usize = 11;
const PACKETS: u64 = 500_000;
const FRAME_BYTES: usize = 1514;
/// A full frame at 1 Gbit/s.
const GAP_NS: u64 = 12_112;

/// A name, and the lines of a description.
const NETWORKS: &[(&str, &str)] = &[
    ("delay alone", "delay = '15ms'"),
    ("delay, rate, drop-tail", "delay = '15ms'\nrate = '1Gbit/s'\nqueue = '1bdp'"),
    ("the same, half as fast as offered", "delay = '15ms'\nrate = '500Mbit/s'\nqueue = '1bdp'"),
    (
        "the same under CoDel",
        "delay = '15ms'\nrate = '1Gbit/s'\nqueue = { limit = '1bdp', discipline = 'codel' }",
    ),
    ("the same under FQ-CoDel", "delay = '15ms'\nrate = '1Gbit/s'\nqueue = { discipline = 'fq-codel' }"),
    (
        "with bursts of loss and jitter",
        "delay = '15ms'\nrate = '1Gbit/s'\nloss = { share = '1%', burst = '4 packets' }\njitter = '1ms'",
    ),
    (
        "with jitter for each packet",
        "delay = '15ms'\nrate = '1Gbit/s'\njitter = { spread = '1ms', order = 'free' }\nreorder = '1%'",
    ),
    (
        "with a varying rate",
        "delay = '15ms'\nrate = { mean = '1Gbit/s', drift = { over = '500ms', spread = '30%' } }",
    ),
];

fn main() {
    println!(
        "nanoseconds per full frame, median of {ROUNDS} rounds of {PACKETS} (least), and packets per second"
    );
    for (name, lines) in NETWORKS {
        let text = format!("title = 'x'\nsource = 'y'\n{lines}\n");
        let network = Network::parse("bench", Source { file: "bench.toml", text: &text }).unwrap();
        let mut times: Vec<f64> = (0..ROUNDS).map(|_| round(&network.down)).collect();
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        println!("{name:<36} {median:>6.0} ({:.0}) {:>6.1} M/s", times[0], 1e3 / median);
    }
}

/// Nanoseconds per packet.
fn round(direction: &Direction) -> f64 {
    let mut path = Path::new(direction, Seeds::run(1, LinkDirection::Down));
    let mut spare: Vec<Frame> = Vec::new();
    let mut out = 0_u64;
    let began = Instant::now();
    for packet in 0..PACKETS {
        let now_ns = packet * GAP_NS;
        let mut frame = spare.pop().unwrap_or_else(|| Frame(vec![0x45; FRAME_BYTES]));
        frame.0[34..42].copy_from_slice(&(packet % 32).to_be_bytes());
        path.handle_packet(now_ns, FRAME_BYTES as u64, frame);
        while let Some(lost) = path.poll_lost() {
            spare.push(lost.packet);
        }
        while let Some(release) = path.poll_release(now_ns) {
            out += 1;
            spare.push(release.packet);
        }
    }
    let took = began.elapsed();
    assert!(out > PACKETS / 3, "only {out} packets came out");
    took.as_nanos() as f64 / PACKETS as f64
}
