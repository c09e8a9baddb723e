//! A prediction of page load times from round trips, rate and slow start, for comparison with measurements.
//!
//! A small discrete simulation: every full-sized packet of every response is sent, crosses the shared link
//! and is acknowledged. Its assumptions:
//!
//! - **Handshakes.** TCP takes one round trip, TLS 1.3 one more (RFC 8446, section 2), TLS 1.2 two; QUIC
//!   takes one in all (RFC 9001, section 4). The handshake's own bytes take no time. A request leaves as soon
//!   as its connection is ready.
//! - **Connections.** HTTP/1.1 opens a connection for each waiting request, up to the pinned number, and
//!   sends the oldest waiting request on each free connection, one at a time. HTTP/2 and HTTP/3 use one
//!   connection for everything.
//! - **Server.** It answers immediately and serves the streams of a connection round-robin, one packet each.
//!   Headers of requests and responses are not counted.
//! - **Records.** Over TLS, the client reads a reference when its record is complete, and servers fill
//!   records to 16 384 bytes. This is more than the initial window, so the references of a large document
//!   arrive one round trip later than in cleartext. QUIC decrypts each packet separately.
//! - **Sending.** Slow start from the initial window (RFC 6928), one packet more for each that is
//!   acknowledged, as long as the window is used (RFC 7661). TCP sends what the window allows at once; QUIC
//!   paces at 1.25 windows per round trip, in bursts of ten packets or of 2 ms, whichever is more (RFC 9002,
//!   section 7.7; the values are quinn's). Every packet is acknowledged immediately.
//! - **Link.** One queue per direction; each packet takes its frame's length at the link's rate, then the
//!   propagation delay. Acknowledgements and requests take the delay alone.
//! - **Left out.** Loss and the queue's limit, delayed acknowledgements, HyStart, congestion avoidance, flow
//!   control windows (Chromium's are larger than these pages), and all computing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::Page;
use model::network::Network;
use model::pins::{Pins, TlsVersion};
use model::units::{NANOS_PER_MS, NANOS_PER_S};
use model::variant::{HttpVersion, Variant};

/// Ethernet, IPv4 and TCP headers with the timestamp option (RFC 7323), in front of a segment's payload.
pub const TCP_FRAME_OVERHEAD_BYTES: u64 = 14 + 20 + 20 + 12;
/// IPv4 and TCP headers with the timestamp option, which the MTU includes.
const TCP_PACKET_OVERHEAD_BYTES: u64 = 20 + 20 + 12;
/// Ethernet, IPv4 and UDP headers in front of a datagram.
pub const UDP_FRAME_OVERHEAD_BYTES: u64 = 14 + 20 + 8;
/// Short header with an 8-byte connection identifier and 2-byte packet number (RFC 9000, section 17.3),
/// STREAM frame header (section 19.8) and authentication tag (RFC 9001, section 5.3), within a datagram.
pub const QUIC_OVERHEAD_BYTES: u64 = 11 + 8 + 16;
/// The most that one TLS record carries, which is what servers fill them to (RFC 8446, section 5.1).
const TLS_RECORD_BYTES: u64 = 16_384;
/// A QUIC sender may send this many packets at once (RFC 9002, section 7.7) …
const BURST_PACKETS: f64 = 10.0;
/// … or the packets of this period, if that is more.
const BURST_NS: f64 = 2.0 * NANOS_PER_MS as f64;
/// A QUIC sender's rate, in windows per round trip (RFC 9002, section 7.7).
const PACING_GAIN: f64 = 1.25;

/// Why a load time cannot be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no load time can be predicted: {0}")]
pub struct Unpredictable(&'static str);

/// The load time of a page from cold, from the first connection opened to the last byte of the last resource,
/// in nanoseconds.
///
/// # Errors
/// The network is random or changes with time, so that round trips and a rate do not describe it; or the page
/// has hosts or think times.
pub fn predict_page_load_ns(
    page: &Page,
    network: &Network,
    variant: Variant,
    pins: &Pins,
) -> Result<u64, Unpredictable> {
    if !network.timeline.is_empty() {
        return Err(Unpredictable("the network changes during the run"));
    }
    if page.host_count() > 1 || page.longest_wait_ns() > 0 {
        return Err(Unpredictable("the page has several hosts or think times"));
    }
    if [&network.up, &network.down].into_iter().any(|direction| *direction != direction.certain()) {
        return Err(Unpredictable("the network has loss, jitter, outages or a varying rate"));
    }
    Ok(certain_page_load_ns(page, network, variant, pins))
}

/// The load time over the deterministic part of a network: delays and constant rates.
pub(crate) fn certain_page_load_ns(page: &Page, network: &Network, variant: Variant, pins: &Pins) -> u64 {
    Simulation::new(page, network, variant, pins).run()
}

/// The round trips before the first request can be sent.
pub fn handshake_round_trips(variant: Variant, pins: &Pins) -> u32 {
    match (variant.is_quic(), variant.is_encrypted(), pins.tls_version) {
        (true, _, _) | (false, false, _) => 1,
        (false, true, TlsVersion::V13) => 2,
        (false, true, TlsVersion::V12) => 3,
    }
}

/// An event. The order of the variants is the order of simultaneous events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client's connection may carry requests.
    Ready { connection: usize },
    /// A request reaches the server.
    Requested { connection: usize, resource: usize },
    /// A packet reaches the client.
    Arrived { connection: usize, parts: Vec<(usize, u64)> },
    /// An acknowledgement reaches the server.
    Acknowledged { connection: usize },
    /// The server's pacer releases another packet.
    Paced { connection: usize },
}

/// Both ends of a connection.
#[derive(Default)]
struct Connection {
    ready: bool,
    /// Requests in flight.
    busy: usize,
    /// Congestion window, in packets.
    window: f64,
    /// Packets sent and not acknowledged.
    in_flight: f64,
    /// The most packets in flight since the connection was last idle.
    peak: f64,
    /// Streams with bytes to send, in round-robin order: the resource and the bytes left.
    streams: VecDeque<(usize, u64)>,
    /// Packets that the pacer releases at once.
    tokens: f64,
    tokens_at_ns: u64,
    paced: bool,
}

struct Simulation<'a> {
    page: &'a Page,
    network: &'a Network,
    variant: Variant,
    pins: &'a Pins,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    connections: Vec<Connection>,
    /// Resources that are known and wait for a connection.
    waiting: VecDeque<usize>,
    named: Vec<bool>,
    received_bytes: Vec<u64>,
    children: Vec<Vec<usize>>,
    link_free_ns: u64,
    finished_ns: u64,
}

impl<'a> Simulation<'a> {
    fn new(page: &'a Page, network: &'a Network, variant: Variant, pins: &'a Pins) -> Self {
        let resources = page.resources.len();
        Simulation {
            page,
            network,
            variant,
            pins,
            events: BinaryHeap::new(),
            scheduled: 0,
            connections: Vec::new(),
            waiting: VecDeque::new(),
            named: vec![false; resources],
            received_bytes: vec![0; resources],
            children: (0..resources).map(|parent| page.children(parent).collect()).collect(),
            link_free_ns: 0,
            finished_ns: 0,
        }
    }

    fn run(mut self) -> u64 {
        if self.page.resources.is_empty() {
            return 0;
        }
        self.name(0);
        self.assign(0);
        while let Some(Reverse((now_ns, _, event))) = self.events.pop() {
            match event {
                Event::Ready { connection } => {
                    self.connections[connection].ready = true;
                    self.assign(now_ns);
                }
                Event::Requested { connection, resource } => {
                    let bytes = self.page.resources[resource].bytes;
                    self.connections[connection].streams.push_back((resource, bytes));
                    if !self.more_requested(connection, now_ns) {
                        self.send(connection, now_ns);
                    }
                }
                Event::Arrived { connection, parts } => self.arrive(connection, &parts, now_ns),
                Event::Acknowledged { connection } => {
                    self.connections[connection].acknowledge();
                    self.send(connection, now_ns);
                }
                Event::Paced { connection } => {
                    self.connections[connection].paced = false;
                    self.send(connection, now_ns);
                }
            }
        }
        self.finished_ns
    }

    /// Whether another request reaches the connection's server at the same time. The server answers them
    /// together.
    fn more_requested(&self, connection: usize, now_ns: u64) -> bool {
        matches!(
            self.events.peek(),
            Some(Reverse((at_ns, _, Event::Requested { connection: next, .. })))
                if *at_ns == now_ns && *next == connection
        )
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at_ns, self.scheduled, event)));
    }

    /// Names a resource, once.
    fn name(&mut self, resource: usize) {
        if !self.named[resource] {
            self.named[resource] = true;
            self.waiting.push_back(resource);
        }
    }

    /// Sends waiting requests on free connections, and opens connections for the rest.
    fn assign(&mut self, now_ns: u64) {
        let (limit, at_once) = match self.variant.http() {
            HttpVersion::Http10 | HttpVersion::Http11 => (self.pins.http1_connections.max(1) as usize, 1),
            HttpVersion::Http2 | HttpVersion::Http3 => (1, usize::MAX),
        };
        let free = |connection: &Connection| connection.ready && connection.busy < at_once;
        while let Some(connection) = self.connections.iter().position(free) {
            let Some(resource) = self.waiting.pop_front() else { break };
            self.connections[connection].busy += 1;
            let at_ns = now_ns + self.network.up.delay_ns;
            self.at(at_ns, Event::Requested { connection, resource });
        }
        let opening = self.connections.iter().filter(|connection| !connection.ready).count();
        let wanted = self.waiting.len().saturating_sub(opening);
        for _ in 0..wanted.min(limit.saturating_sub(self.connections.len())) {
            let connection = self.connections.len();
            let window = f64::from(self.pins.initial_window_packets.max(1));
            self.connections.push(Connection {
                window,
                tokens: BURST_PACKETS,
                tokens_at_ns: now_ns,
                ..Connection::default()
            });
            let round_trips = u64::from(handshake_round_trips(self.variant, self.pins));
            self.at(now_ns + round_trips * self.network.rtt_ns(), Event::Ready { connection });
        }
    }

    /// Sends the packets that window and pacer allow.
    fn send(&mut self, connection: usize, now_ns: u64) {
        while self.connections[connection].may_send() {
            if self.variant.is_quic()
                && let Some(at_ns) = self.connections[connection].paced_until(self.network.rtt_ns(), now_ns)
            {
                if !self.connections[connection].paced {
                    self.connections[connection].paced = true;
                    self.at(at_ns, Event::Paced { connection });
                }
                return;
            }
            let (payload, overhead) = self.packet_bytes();
            let parts = self.connections[connection].fill(payload);
            let bytes: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
            let departs_ns = self.link_free_ns.max(now_ns) + self.serialisation_ns(bytes + overhead);
            self.link_free_ns = departs_ns;
            let arrives_ns = departs_ns + self.network.down.delay_ns;
            self.at(arrives_ns, Event::Arrived { connection, parts });
            self.at(arrives_ns + self.network.up.delay_ns, Event::Acknowledged { connection });
        }
    }

    fn arrive(&mut self, connection: usize, parts: &[(usize, u64)], now_ns: u64) {
        self.finished_ns = now_ns;
        for (resource, bytes) in parts {
            self.received_bytes[*resource] += bytes;
            let received = self.received_bytes[*resource];
            let readable = self.readable_bytes(*resource);
            for child in self.children[*resource].clone() {
                if self.page.resources[child].named_at_bytes <= readable {
                    self.name(child);
                }
            }
            if received >= self.page.resources[*resource].bytes {
                self.connections[connection].busy -= 1;
            }
        }
        self.assign(now_ns);
    }

    /// The bytes of a resource that the client can read: over TLS, only complete records.
    fn readable_bytes(&self, resource: usize) -> u64 {
        let received = self.received_bytes[resource];
        let is_whole = received >= self.page.resources[resource].bytes;
        let in_records = self.variant.is_encrypted() && !self.variant.is_quic();
        if in_records && !is_whole { received - received % TLS_RECORD_BYTES } else { received }
    }

    /// The payload of a full packet, and the overhead of its frame.
    fn packet_bytes(&self) -> (u64, u64) {
        if self.variant.is_quic() {
            let payload = u64::from(self.pins.quic_datagram_bytes).saturating_sub(QUIC_OVERHEAD_BYTES);
            (payload.max(1), UDP_FRAME_OVERHEAD_BYTES + QUIC_OVERHEAD_BYTES)
        } else {
            let payload = u64::from(self.pins.mtu_bytes).saturating_sub(TCP_PACKET_OVERHEAD_BYTES);
            (payload.max(1), TCP_FRAME_OVERHEAD_BYTES)
        }
    }

    fn serialisation_ns(&self, bytes: u64) -> u64 {
        self.network.down.rate.constant_bits_per_s().map_or(0, |rate| bytes * 8 * NANOS_PER_S / rate.max(1))
    }
}

impl Connection {
    fn may_send(&self) -> bool {
        !self.streams.is_empty() && self.in_flight < self.window
    }

    /// When the next packet may be sent; `None` if now.
    fn paced_until(&mut self, rtt_ns: u64, now_ns: u64) -> Option<u64> {
        if rtt_ns == 0 {
            return None;
        }
        let per_ns = PACING_GAIN * self.window / model::number::float(rtt_ns);
        let gained = per_ns * model::number::float(now_ns - self.tokens_at_ns);
        let burst = BURST_PACKETS.max(self.window * BURST_NS / model::number::float(rtt_ns));
        self.tokens = (self.tokens + gained).min(burst);
        self.tokens_at_ns = now_ns;
        // Slightly less than one, so that rounding cannot cause another wait of zero length.
        if self.tokens >= 0.999 {
            return None;
        }
        Some(now_ns + model::number::nearest((1.0 - self.tokens) / per_ns).max(1))
    }

    /// Takes the next packet's content from the streams in round-robin order, and counts it as sent.
    fn fill(&mut self, payload: u64) -> Vec<(usize, u64)> {
        let mut parts = Vec::new();
        let mut room = payload;
        while let Some((resource, left)) = self.streams.pop_front() {
            let bytes = left.min(room);
            parts.push((resource, bytes));
            room -= bytes;
            if left > bytes {
                self.streams.push_back((resource, left - bytes));
            }
            if room == 0 {
                break;
            }
        }
        self.in_flight += 1.0;
        self.tokens -= 1.0;
        self.peak = self.peak.max(self.in_flight);
        parts
    }

    fn acknowledge(&mut self) {
        self.in_flight -= 1.0;
        if self.window < 2.0 * self.peak {
            self.window += 1.0;
        }
        if self.in_flight <= 0.0 {
            self.peak = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::page::{Resource, ResourceKind};

    use super::*;
    use crate::fixtures;

    const MS: u64 = NANOS_PER_MS;
    const SEGMENT_BYTES: u64 = 1448;

    /// A document of this size, and its children: size, parent, bytes of the parent before the reference.
    fn page(document_bytes: u64, children: &[(u64, usize, u64)]) -> Page {
        let resource = |bytes, named_by, named_at_bytes| Resource {
            path: "/".to_owned(),
            kind: ResourceKind::Html,
            bytes,
            named_by,
            named_at_bytes,
            origin: 0,
            wait_ns: 0,
        };
        let mut resources = vec![resource(document_bytes, None, 0)];
        resources.extend(children.iter().map(|(bytes, parent, at)| resource(*bytes, Some(*parent), *at)));
        Page {
            name: "p".to_owned(),
            title: "p".to_owned(),
            resources,
            delivery: Default::default(),
            origins: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// The load time in milliseconds on a round trip of 100 ms without a rate.
    fn load_ms(page: &Page, variant: Variant) -> u64 {
        certain_page_load_ns(page, &fixtures::network(100 * MS, None), variant, &Pins::default()) / MS
    }

    #[test]
    fn chance_and_change_cannot_be_predicted() {
        use model::network::{Change, Loss};
        let plain = fixtures::network(100 * MS, Some(10_000_000));
        let predict =
            |network: &Network| predict_page_load_ns(&page(100, &[]), network, Variant::H1, &Pins::default());
        assert!(predict(&plain).is_ok());
        let mut lossy = plain.clone();
        lossy.up.loss = Loss::Independent { share: 0.01 };
        assert!(predict(&lossy).unwrap_err().to_string().contains("the network has loss"));
        let (up, down) = (plain.up.clone(), plain.down.clone());
        let timeline = vec![Change { at_ns: 5, up, down, handover: false, rebinding: false }];
        let changing = Network { timeline, ..plain };
        assert!(predict(&changing).unwrap_err().to_string().contains("changes during the run"));
    }

    #[test]
    fn a_small_document_takes_the_handshake_and_one_round_trip() {
        let loads = Variant::ALL.map(|variant| load_ms(&page(100, &[]), variant));
        assert_eq!(loads, [200, 300, 200, 300, 200]);
        let pins = Pins { tls_version: TlsVersion::V12, ..Pins::default() };
        let network = fixtures::network(100 * MS, None);
        assert_eq!(predict_page_load_ns(&page(100, &[]), &network, Variant::H2, &pins), Ok(400 * MS));
        assert_eq!(load_ms(&page(0, &[]), Variant::H2), 300, "an empty body still has a response");
    }

    #[test]
    fn slow_start_sends_10_then_20_then_40_packets() {
        let load = |packets: u64| load_ms(&page(packets * SEGMENT_BYTES, &[]), Variant::H2c);
        assert_eq!([10, 11, 30, 31, 70, 71].map(load), [200, 300, 300, 400, 400, 500]);
    }

    #[test]
    fn a_packet_takes_its_frame_at_the_rate() {
        // 1434 B of content + 66 B of headers = 12 000 bits; at 12 Mbit/s 1 ms.
        let network = fixtures::network(100 * MS, Some(12_000_000));
        let load = certain_page_load_ns(&page(1434, &[]), &network, Variant::H1, &Pins::default());
        assert_eq!(load, 201 * MS);
    }

    #[test]
    fn a_large_window_keeps_the_link_busy() {
        // At 10 Mbit/s and 10 ms the initial window exceeds the bandwidth-delay product: nothing but
        // serialisation after two round trips. 691 packets.
        let network = fixtures::network(10 * MS, Some(10_000_000));
        let load = certain_page_load_ns(&page(1_000_000, &[]), &network, Variant::H2c, &Pins::default());
        let expected = 20 * MS + (1_000_000 + 691 * 66) * 8 * 100;
        assert!(load.abs_diff(expected) < 691, "{load} != {expected} (each packet rounded down)");
    }

    #[test]
    fn http1_opens_six_connections_and_serves_one_request_each() {
        // The document ends at 200 ms; its connection brings children at 300, 400, …; five more are ready at
        // 300 and bring theirs at 400, 500, …: seven children by 400 ms, and six more every round trip.
        let small = |count: usize| page(1000, &vec![(1000, 0, 384); count]);
        assert_eq!(
            [1, 2, 7, 8, 13, 14].map(|count| load_ms(&small(count), Variant::H1)),
            [300, 400, 400, 500, 500, 600]
        );
        // One connection of HTTP/2 brings all of them in the round trip after the document's.
        assert_eq!(load_ms(&small(14), Variant::H2c), 300);
    }

    #[test]
    fn two_levels_take_two_more_round_trips() {
        let page = page(1000, &[(1000, 0, 384), (1000, 1, 384)]);
        assert_eq!(Variant::ALL.map(|variant| load_ms(&page, variant)), [400, 500, 400, 500, 400]);
    }

    #[test]
    fn a_resource_is_requested_when_its_reference_has_arrived() {
        let document = 25 * SEGMENT_BYTES;
        // In the first window: requested at 200 ms, there with the rest of the document at 300 ms.
        assert_eq!(load_ms(&page(document, &[(100, 0, 384)]), Variant::H2c), 300);
        // In the second window: requested at 300 ms.
        assert_eq!(load_ms(&page(document, &[(100, 0, 20_000)]), Variant::H2c), 400);
    }

    #[test]
    fn quic_paces_after_a_burst_of_ten() {
        let datagram = 1452 - QUIC_OVERHEAD_BYTES;
        // 20 packets: ten at 150 ms, ten at 250 ms on their acknowledgements.
        assert_eq!(load_ms(&page(20 * datagram, &[]), Variant::H3), 300);
        // 30 packets: the last ten leave at 1.25 × 20 packets per 100 ms, 4 ms apart: the last at 290 ms.
        let load = load_ms(&page(30 * datagram, &[]), Variant::H3);
        assert!((339..=340).contains(&load), "{load}");
    }

    #[test]
    fn over_tls_a_reference_is_known_with_its_whole_record() {
        let document = 25 * SEGMENT_BYTES;
        // The initial window (10 segments) is shorter than a record: the reference at its start waits for the
        // second.
        let one_more = load_ms(&page(document, &[(100, 0, 384)]), Variant::H2);
        assert_eq!(one_more - load_ms(&page(document, &[]), Variant::H2), 100);
        assert_eq!(load_ms(&page(document, &[(100, 0, 384)]), Variant::H2c), 300);
        assert_eq!(one_more, 500);
        // A document within the initial window is one short record.
        assert_eq!(load_ms(&page(10_000, &[(100, 0, 384)]), Variant::H2), 400);
    }

    /// The predictions for the study `quick`, in milliseconds: h1, h1s, h2c, h2, h3.
    #[test]
    fn predictions_for_quick() {
        use model::error::Source;
        let predict = |page: &str, network: &str| {
            let page = Page::parse("page", Source { file: "page", text: page }).unwrap();
            let network = Network::parse("network", Source { file: "network", text: network }).unwrap();
            Variant::ALL.map(|variant| certain_page_load_ns(&page, &network, variant, &Pins::default()) / MS)
        };
        let (small, large) =
            (include_str!("../../../pages/small.toml"), include_str!("../../../pages/large.toml"));
        let far = include_str!("../../../networks/north-carolina.toml");
        assert_eq!(predict(small, far), [601, 753, 452, 603, 452]);
        assert_eq!(predict(large, far), [2200, 2624, 1316, 1474, 1340]);
        let near = include_str!("../../../networks/lan.toml");
        assert_eq!(predict(small, near), [2, 3, 2, 2, 2]);
        assert_eq!(predict(large, near), [134, 134, 134, 134, 135]);
    }

    #[test]
    fn more_delay_or_less_rate_is_never_quicker() {
        let page = page(30_000, &[(20_000, 0, 384), (100_000, 0, 512), (5_000, 1, 384)]);
        for variant in Variant::ALL {
            let load = |rtt_ns, rate| {
                certain_page_load_ns(&page, &fixtures::network(rtt_ns, rate), variant, &Pins::default())
            };
            let fast = load(20 * MS, Some(50_000_000));
            assert!(load(30 * MS, Some(50_000_000)) > fast, "{variant}");
            assert!(load(20 * MS, Some(5_000_000)) > fast, "{variant}");
            assert!(load(20 * MS, None) < fast, "{variant}");
        }
    }
}
