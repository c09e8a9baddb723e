//! A rough prediction of how long one run takes, for the progress bar and the time limit; never compared with
//! what was measured.
//!
//! A page load is predicted level by level of its dependencies (the document, what it names, what that
//! names):
//!
//! 1. A connection costs its handshake: one round trip for TCP, one more for TLS 1.3 or two for TLS 1.2;
//!    QUIC's single round trip holds TLS (RFC 9000, section 7). HTTP/1.1 pays it again where the second level
//!    opens its further connections.
//! 2. Each level's bytes are sent in slow start: the first round carries the initial window of every
//!    connection, each further round twice as much (RFC 5681, section 3.1), and the window is kept for the
//!    next level.
//! 3. A round lasts one round trip, or the time that the slower of the two rates needs for its bytes where
//!    that is longer. An HTTP/1.1 connection answers one request a round, so a level has at least as many
//!    rounds as it has requests per connection.
//!
//! 4. Loss ends slow start after 1/p packets of a connection. The window is then 1.22/√p packets (Mathis and
//!    others, *The macroscopic behavior of the TCP congestion avoidance algorithm*, CCR 1997). A loss among
//!    the first packets of a connection costs 1 s, and one in the last round of a level two round trips.
//!
//! Queues are left out, and so is that levels overlap: what a style sheet names is asked for while the
//! document's other resources still arrive.

use crate::network::{Direction, Network};
use crate::number::{float, nearest};
use crate::page::Page;
use crate::pins::{Pins, TlsVersion};
use crate::player::Player;
use crate::script::Replay;
use crate::units::{NANOS_PER_MS, NANOS_PER_S};
use crate::variant::{HttpVersion, Variant};
use crate::workload::{ClosedLoop, Workload};

/// Building the lab, calibrating it, starting a server and taking all down again.
pub const LAB_NS: u64 = 350 * NANOS_PER_MS;
/// The least time that a run is given before it counts as stuck.
pub const LEAST_LIMIT_NS: u64 = 10 * NANOS_PER_S;

/// A run is stuck when its network-bound part takes this many times its prediction.
pub(crate) const LIMIT_FACTOR: u64 = 20;
/// Payload of a full-sized TCP segment less than the MTU: IPv4 and TCP headers.
const TCP_HEADER_BYTES: u64 = 40;
/// The constant of a window under loss: √(3/2).
const WINDOW_OF_LOSS: f64 = 1.22;
/// After this time a handshake's packet is sent again, without a measured round trip (RFC 6298, section 2.1;
/// RFC 9002, section 6.2.2).
const HANDSHAKE_TIMEOUT_NS: f64 = 1e9;
/// The least time after which Linux sends a lost packet again that no other packet reveals.
const LEAST_TIMEOUT_NS: u64 = 200 * NANOS_PER_MS;
/// A reference measurement: the train of a direction with a constant rate, …
const RATE_TRAIN_NS: u64 = 300 * NANOS_PER_MS;
/// … those that count losses, without and with loss, …
const LOSS_TRAIN_NS: [u64; 2] = [40 * NANOS_PER_MS, 400 * NANOS_PER_MS];
/// … and the wait for late packets after each.
const TRAIN_END_NS: u64 = 100 * NANOS_PER_MS;
/// Time that a server and a client take for one request, a guess.
const REQUEST_NS: u64 = NANOS_PER_MS / 10;

/// How long one run is expected to take, and how long it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Including setup.
    pub expected_run_ns: u64,
    /// A run longer than this is stuck: 20 times the prediction and at least 10 s, beyond any duration that
    /// the study itself sets.
    pub run_limit_ns: u64,
}

/// Predicts one run of `workload` by one client.
pub fn predict(workload: &Workload, variant: Variant, network: &Network, pins: &Pins) -> Prediction {
    let handshake_ns = handshake_ns(variant, network, pins);
    let (set_ns, governed_ns) = match workload {
        Workload::Page(page) => {
            let thinking_ns = page.delivery.document_delay_ns.saturating_add(waits_ns(page, variant, pins));
            (thinking_ns, page_ns(page, variant, network, pins))
        }
        Workload::Closed(ClosedLoop { load, duration_ns: None, think }) => {
            let streams = if variant.http() == HttpVersion::Http11 { 1 } else { load.streams };
            let at_once = u64::from(load.connections.saturating_mul(streams)).max(1);
            let rounds = load.requests.unwrap_or(1).div_ceil(at_once);
            let round_ns = network.rtt_ns().max(REQUEST_NS.saturating_mul(at_once));
            let thinking_ns = rounds.saturating_mul(think.most_ns);
            // A request or a response of one packet reveals its loss only by a timeout.
            let timeout_ns = LEAST_TIMEOUT_NS.saturating_add(network.rtt_ns().saturating_mul(2));
            let lost_ns = nearest(float(rounds) * lossy(1, network) * float(timeout_ns));
            (
                thinking_ns,
                handshake_ns.saturating_add(rounds.saturating_mul(round_ns)).saturating_add(lost_ns),
            )
        }
        Workload::Closed(_) => (workload.lasts_ns().unwrap_or(0), handshake_ns),
        Workload::Open(_) => {
            (workload.lasts_ns().unwrap_or(0), handshake_ns.saturating_add(network.rtt_ns()))
        }
        Workload::Script(script) => {
            let bytes_ns = serialisation_ns(script.body_bytes, network);
            let round_trips_ns = network.rtt_ns().saturating_mul(script.entries.len() as u64);
            // A slower server makes a session longer whose requests wait for its responses: twice as long at
            // most.
            let slower_ns = match script.replay {
                Replay::Schedule => 0,
                Replay::Dependency => script.lasts_ns() / LIMIT_FACTOR,
            };
            let governed_ns = handshake_ns.saturating_add(round_trips_ns).saturating_add(slower_ns);
            (script.lasts_ns().max(bytes_ns), governed_ns)
        }
        Workload::Player(player) => {
            let longest = player.presentation.tracks.iter().map(|track| track.durations_ns.len() as u64);
            let round_trips_ns = network.rtt_ns().saturating_mul(longest.max().unwrap_or(0));
            (playing_ns(player, network, pins), handshake_ns.saturating_add(round_trips_ns))
        }
    };
    let governed_ns = LAB_NS.saturating_add(governed_ns);
    Prediction {
        expected_run_ns: governed_ns.saturating_add(set_ns),
        run_limit_ns: governed_ns.saturating_mul(LIMIT_FACTOR).max(LEAST_LIMIT_NS).saturating_add(set_ns),
    }
}

/// How long the reference measurement of a network takes, including its lab.
pub(crate) fn reference_ns(network: &Network) -> u64 {
    let of_direction = |direction: &Direction| {
        let rate_ns = direction.rate.constant_bits_per_s().map_or(0, |_| RATE_TRAIN_NS + TRAIN_END_NS);
        let loss_ns = LOSS_TRAIN_NS[usize::from(direction.loss.mean_share() > 0.0)];
        rate_ns.saturating_add(loss_ns).saturating_add(TRAIN_END_NS).saturating_add(network.rtt_ns())
    };
    LAB_NS.saturating_add(of_direction(&network.up)).saturating_add(of_direction(&network.down))
}

/// The probability that at least one of this many packets is lost in one of the directions.
fn lossy(packets: u64, network: &Network) -> f64 {
    let kept = (1.0 - network.up.loss.mean_share()) * (1.0 - network.down.loss.mean_share());
    1.0 - kept.powf(float(packets))
}

/// The window of a connection under the network's loss, in bytes; `None` without loss.
fn window_of_loss(network: &Network, pins: &Pins) -> Option<u64> {
    let share = network.down.loss.mean_share();
    (share > 0.0).then(|| nearest((WINDOW_OF_LOSS / share.sqrt()).max(1.0) * float(segment_bytes(pins))))
}

/// How long a cold load of `page` takes, from the first packet to the last.
pub fn page_ns(page: &Page, variant: Variant, network: &Network, pins: &Pins) -> u64 {
    let is_http1 = variant.http() == HttpVersion::Http11;
    let mut window_bytes = initial_window_bytes(pins);
    let mut total_ns = handshake_ns(variant, network, pins);
    let under_loss = window_of_loss(network, pins);
    // Bytes of each connection until a loss is expected.
    let until_loss = float(segment_bytes(pins)) / network.down.loss.mean_share();
    let mut sent_bytes = 0;
    let mut opened = 1;
    for (depth, level) in levels(page).into_iter().enumerate() {
        let connections =
            if is_http1 { level.requests.min(u64::from(pins.http1_connections)).max(1) } else { 1 };
        if connections > 1 && depth == 1 {
            total_ns = total_ns.saturating_add(handshake_ns(variant, network, pins));
            window_bytes = initial_window_bytes(pins);
            (opened, sent_bytes) = (connections, 0);
        }
        let least_rounds = if is_http1 { level.requests.div_ceil(connections) } else { 1 };
        let mut left = level.bytes;
        let mut rounds = 0;
        while left > 0 || rounds < least_rounds {
            if let Some(limit) = under_loss.filter(|_| float(sent_bytes) >= until_loss) {
                window_bytes = limit;
            }
            let sent = left.min(window_bytes.saturating_mul(connections));
            left -= sent;
            sent_bytes += sent / connections;
            rounds += 1;
            let (rtt_ns, bytes_ns) = (network.rtt_ns(), serialisation_ns(sent, network));
            let is_last = left == 0 && rounds >= least_rounds;
            let round_ns = if is_last {
                let lost = lossy(sent.div_ceil(segment_bytes(pins)), network);
                rtt_ns.saturating_add(bytes_ns).saturating_add(nearest(2.0 * float(rtt_ns) * lost))
            } else {
                rtt_ns.max(bytes_ns)
            };
            total_ns = total_ns.saturating_add(round_ns);
            if left > 0 {
                window_bytes = window_bytes.saturating_mul(2);
            }
        }
        total_ns = total_ns.saturating_add(level.requests.saturating_mul(REQUEST_NS));
    }
    // The first packet of each direction; those after it are revealed sooner.
    total_ns.saturating_add(nearest(HANDSHAKE_TIMEOUT_NS * lossy(opened, network)))
}

/// How long the server of a page thinks: along the longest chain of references, and in the queues of
/// HTTP/1.1 connections, where a request waits for the think times of those before it.
fn waits_ns(page: &Page, variant: Variant, pins: &Pins) -> u64 {
    let mut chains: Vec<u64> = Vec::with_capacity(page.resources.len());
    for resource in &page.resources {
        let before_ns = resource.named_by.and_then(|parent| chains.get(parent)).copied().unwrap_or(0);
        chains.push(before_ns.saturating_add(resource.wait_ns));
    }
    let longest_ns = chains.into_iter().max().unwrap_or(0);
    if variant.http() != HttpVersion::Http11 {
        return longest_ns;
    }
    let all_ns = page.resources.iter().map(|resource| resource.wait_ns).fold(0, u64::saturating_add);
    longest_ns.saturating_add(all_ns / u64::from(pins.http1_connections.max(1)))
}

/// How long a video plays at least: its own time, or that of its bytes where the link is slower. A player
/// that may choose is taken to choose the lowest representation.
fn playing_ns(player: &Player, network: &Network, pins: &Pins) -> u64 {
    let bytes = player.least_bytes();
    // Under loss, each round trip carries a window.
    let round_trips = window_of_loss(network, pins).map_or(0, |window| bytes.div_ceil(window.max(1)));
    let lossy_ns = network.rtt_ns().saturating_mul(round_trips);
    let sought_ns = player
        .seeks
        .iter()
        .fold(0, |sum: u64, seek| sum.saturating_add(seek.at_ns.saturating_sub(seek.to_ns)));
    player.media_ns().saturating_add(sought_ns).max(serialisation_ns(bytes, network)).max(lossy_ns)
}

/// The resources that are as far from the document as each other.
struct Level {
    requests: u64,
    bytes: u64,
}

fn levels(page: &Page) -> Vec<Level> {
    let mut depths: Vec<usize> = Vec::with_capacity(page.resources.len());
    let mut levels: Vec<Level> = Vec::new();
    for resource in &page.resources {
        let parent = resource.named_by.and_then(|parent| depths.get(parent));
        let depth = parent.map_or(0, |parent| parent + 1);
        depths.push(depth);
        if levels.len() <= depth {
            levels.push(Level { requests: 0, bytes: 0 });
        }
        levels[depth].requests += 1;
        levels[depth].bytes += resource.bytes;
    }
    levels
}

fn handshake_ns(variant: Variant, network: &Network, pins: &Pins) -> u64 {
    let round_trips = match (variant.is_quic(), variant.is_encrypted(), pins.tls_version) {
        (true, ..) | (false, false, _) => 1,
        (false, true, TlsVersion::V13) => 2,
        (false, true, TlsVersion::V12) => 3,
    };
    network.rtt_ns().saturating_mul(round_trips)
}

fn initial_window_bytes(pins: &Pins) -> u64 {
    u64::from(pins.initial_window_packets.max(1)) * segment_bytes(pins)
}

fn segment_bytes(pins: &Pins) -> u64 {
    u64::from(pins.mtu_bytes).saturating_sub(TCP_HEADER_BYTES).max(1)
}

fn serialisation_ns(bytes: u64, network: &Network) -> u64 {
    transmission_ns(bytes, &network.down)
}

/// How long bytes take at the mean rate of a direction; 0 without a limit.
pub(crate) fn transmission_ns(bytes: u64, direction: &Direction) -> u64 {
    let Some(rate_bits_per_s) = direction.rate.mean_bits_per_s() else { return 0 };
    let ns = u128::from(bytes) * 8 * u128::from(NANOS_PER_S) / u128::from(rate_bits_per_s.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Source;
    use crate::workload::LoopLoad;

    fn network(rtt: &str) -> Network {
        let text = format!("title = 'x'\nsource = 'y'\nrtt = '{rtt}'\nrate = '100Mbit/s'\n");
        Network::parse("n", Source { file: "n.toml", text: &text }).unwrap()
    }

    fn page(images: usize) -> Page {
        let sizes = vec!["'10kB'"; images].join(", ");
        let text = format!(
            "title = 'x'\n[[resource]]\npath = '/'\nkind = 'html'\nsizes = ['10kB']\n\
             [[resource]]\npath = '/{{n}}.png'\nkind = 'image'\nnamed_by = '/'\nsizes = [{sizes}]\n"
        );
        Page::parse("p", Source { file: "p.toml", text: &text }).unwrap()
    }

    /// In round trips, rounded: at 1 s each, the bytes' own time vanishes.
    fn round_trips(variant: Variant, images: usize) -> u64 {
        let ns = page_ns(&page(images), variant, &network("1s"), &Pins::default());
        (ns + NANOS_PER_S / 2) / NANOS_PER_S
    }

    #[test]
    fn round_trips_follow_the_protocols() {
        // Handshake, document, and 10 kB in one initial window of 14.6 kB.
        assert_eq!(round_trips(Variant::H3, 1), 1 + 1 + 1);
        assert_eq!(round_trips(Variant::H2c, 1), 1 + 1 + 1);
        assert_eq!(round_trips(Variant::H2, 1), 2 + 1 + 1);
        // 120 kB on one connection: windows of 14.6, 29.2, 58.4 and 17.8 kB.
        assert_eq!(round_trips(Variant::H2, 12), 2 + 1 + 4);
        // The same on six connections, opened again: two requests each.
        assert_eq!(round_trips(Variant::H1s, 12), 2 + 1 + 2 + 2);
        assert_eq!(round_trips(Variant::H1s, 30), 2 + 1 + 2 + 5);
    }

    /// Runs on two cores that were busy with other work: `origin` over a link of 50 ms and 20 Mbit/s that
    /// loses 2 % of the packets in each direction. The page `large` took 3.1 s over h1s and 6.9 s over h2;
    /// 3000 requests over 16 connections took 13.7 s over h1s, 100 in turn 7.1 s.
    #[test]
    fn loss_is_predicted_as_it_was_measured() {
        let text = "title = 'x'\nsource = 'y'\nrtt = '50ms'\nrate = '20Mbit/s'\nloss = '2%'\n";
        let network = Network::parse("n", Source { file: "n.toml", text }).unwrap();
        let large = include_str!("../../../pages/large.toml");
        let large = Workload::Page(Page::parse("large", Source { file: "large.toml", text: large }).unwrap());
        let counted = |requests, connections| {
            let load = LoopLoad { requests: Some(requests), connections, ..LoopLoad::new("/") };
            Workload::Closed(ClosedLoop::new(load, None))
        };
        for (workload, variant, took_s) in [
            (large.clone(), Variant::H1s, 3.1),
            (large, Variant::H2, 6.9),
            (counted(3000, 16), Variant::H1s, 13.7),
            (counted(100, 1), Variant::H2, 7.1),
        ] {
            let expected_ns = predict(&workload, variant, &network, &Pins::default()).expected_run_ns;
            let ratio = took_s * 1e9 / float(expected_ns);
            assert!((0.6..1.6).contains(&ratio), "{variant}: took {took_s} s, {expected_ns} ns expected");
        }
    }

    #[test]
    fn more_loss_takes_longer_and_none_changes_nothing() {
        let at = |loss: &str| {
            let text = format!("title = 'x'\nsource = 'y'\nrtt = '100ms'\nrate = '100Mbit/s'\n{loss}");
            let network = Network::parse("n", Source { file: "n.toml", text: &text }).unwrap();
            page_ns(&page(30), Variant::H2, &network, &Pins::default())
        };
        let times = ["", "loss = '0.1%'", "loss = '1%'", "loss = '5%'", "loss = '30%'"].map(at);
        assert!(times.is_sorted_by(|less, more| less < more), "{times:?}");
        assert_eq!(times[0], page_ns(&page(30), Variant::H2, &network("100ms"), &Pins::default()));
    }

    #[test]
    fn limits_leave_room() {
        let near = predict(&Workload::Page(page(1)), Variant::H1, &network("1ms"), &Pins::default());
        assert!(near.expected_run_ns > LAB_NS && near.expected_run_ns < 2 * LAB_NS);
        assert_eq!(near.run_limit_ns, LEAST_LIMIT_NS);
        let duration_ns = Some(60 * NANOS_PER_S);
        let closed = Workload::Closed(ClosedLoop::new(LoopLoad::new("/"), duration_ns));
        let long = predict(&closed, Variant::H2, &network("1ms"), &Pins::default());
        assert_eq!(long.expected_run_ns / NANOS_PER_S, 60);
        assert_eq!(long.run_limit_ns / NANOS_PER_S, 70);
    }
}
