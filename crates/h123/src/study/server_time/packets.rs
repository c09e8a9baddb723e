//! A server's time from the TCP segments at its end of the link: from the arrival of the request's last
//! segment to the departure of the response's last segment, where a connection carries one request at a time.
//!
//! A request is alone on its connection if no other request of that connection overlaps with it, by the
//! client's stamps. All new bytes that pass the server between these stamps then belong to it: those of the
//! handshake passed earlier, and retransmissions carry no new bytes.

use std::collections::BTreeMap;

use lab::{Observation, ObservedSegment};

/// The most gaps in a connection's bytes at a time, while segments arrive out of order.
const MOST_HOLES: usize = 64;

/// A request over TCP, between the client's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// The client's port.
    pub(super) port: u16,
    /// When the client handed its first byte to the transport, in nanoseconds of the monotonic clock.
    pub(super) from_ns: u64,
    /// When the client had read the last byte of the response.
    pub(super) until_ns: u64,
    /// How to recognise the request's end.
    pub(super) end: RequestEnd,
    /// Whether the connection begins with TLS, whose sessions the server may send with the first response.
    pub(super) is_tls: bool,
}

/// How to recognise that a request has reached the server completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    /// The last segment that arrives: HTTP/1.1 sends nothing else.
    LastArrival,
    /// The last segment that arrives before the response begins: HTTP/2 also sends frames of the connection.
    /// It cannot be recognised for a connection's first request, around which both sides exchange SETTINGS.
    BeforeResponse,
}

/// When a request arrived and its response left, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerTimes {
    /// The request's last segment.
    pub(super) arrived_ns: u64,
    /// That time may be too late by this much.
    pub(super) uncertain_ns: u32,
    /// The response's first segment; `None` where it may have been the TLS session's.
    pub(super) first_sent_ns: Option<u64>,
    /// The response's last segment with new bytes.
    pub(super) sent_ns: u64,
}

/// The server's times of each exchange; `None` where its segments do not show them.
pub(super) fn server_times(seen: Observation, exchanges: &[Exchange]) -> Vec<Option<ServerTimes>> {
    let mut segments = seen.segments;
    segments.sort_by_key(|segment| (segment.peer_port, segment.at_ns));
    let mut by_port: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, exchange) in exchanges.iter().enumerate() {
        by_port.entry(exchange.port).or_default().push(index);
    }
    let mut times = vec![None; exchanges.len()];
    for (port, mut indices) in by_port {
        indices.sort_by_key(|index| exchanges[*index].from_ns);
        let begins = segments.partition_point(|segment| segment.peer_port < port);
        let ends = segments.partition_point(|segment| segment.peer_port <= port);
        let mut connection = Connection::new(alone(exchanges, &indices));
        let ordered: Vec<&Exchange> = indices.iter().map(|index| &exchanges[*index]).collect();
        for segment in &segments[begins..ends] {
            connection.handle(segment, &ordered);
        }
        for (place, index) in indices.into_iter().enumerate() {
            let is_known = exchanges[index].until_ns <= seen.whole_until_ns;
            times[index] = connection.time_of(place, &exchanges[index]).filter(|_| is_known);
        }
    }
    times
}

/// Whether each exchange over one port, in their order, overlaps with no other.
fn alone(exchanges: &[Exchange], indices: &[usize]) -> Vec<bool> {
    let mut alone = vec![true; indices.len()];
    let mut latest: Option<(u64, usize)> = None;
    for (place, index) in indices.iter().enumerate() {
        let exchange = &exchanges[*index];
        if let Some((until_ns, before)) = latest
            && exchange.from_ns < until_ns
        {
            (alone[before], alone[place]) = (false, false);
        }
        if latest.is_none_or(|(until_ns, _)| exchange.until_ns >= until_ns) {
            latest = Some((exchange.until_ns, place));
        }
    }
    alone
}

/// The connections of one port, one after the other, while their segments are read in the order of time.
struct Connection {
    arrived: Bytes,
    left: Bytes,
    peer: Option<u32>,
    /// The exchanges before this one have ended.
    current: usize,
    /// No exchange has been seen on this connection yet.
    is_fresh: bool,
    found: Vec<ExchangeTimes>,
    is_alone: Vec<bool>,
}

/// What the segments show of one exchange.
#[derive(Clone, Copy, Debug, Default)]
struct ExchangeTimes {
    arrived: Option<(u64, u32)>,
    first_sent_ns: Option<u64>,
    sent_ns: Option<u64>,
    /// Whether it is the connection's first.
    is_first: bool,
    is_begun: bool,
    /// Whether segments of several peers came over the same port.
    is_mixed: bool,
}

impl Connection {
    fn new(is_alone: Vec<bool>) -> Self {
        Connection {
            arrived: Bytes::default(),
            left: Bytes::default(),
            peer: None,
            current: 0,
            is_fresh: true,
            found: vec![ExchangeTimes::default(); is_alone.len()],
            is_alone,
        }
    }

    fn handle(&mut self, segment: &ObservedSegment, ordered: &[&Exchange]) {
        if segment.is_syn {
            if segment.has_arrived {
                (self.arrived, self.left) = (Bytes::default(), Bytes::default());
                self.is_fresh = true;
            }
            return;
        }
        let is_other_peer = self.peer.replace(segment.peer).is_some_and(|peer| peer != segment.peer);
        let bytes = if segment.has_arrived { &mut self.arrived } else { &mut self.left };
        let is_new = bytes.take(segment.sequence, segment.payload_bytes.into());
        while ordered.get(self.current).is_some_and(|exchange| exchange.until_ns < segment.at_ns) {
            self.current += 1;
        }
        let Some(exchange) = ordered.get(self.current).filter(|exchange| exchange.from_ns <= segment.at_ns)
        else {
            return;
        };
        let found = &mut self.found[self.current];
        if !std::mem::replace(&mut found.is_begun, true) {
            found.is_first = std::mem::take(&mut self.is_fresh);
        }
        found.is_mixed |= is_other_peer;
        if !is_new {
            return;
        }
        let is_answered = found.sent_ns.is_some();
        if segment.has_arrived {
            if exchange.end == RequestEnd::LastArrival || !is_answered {
                found.arrived = Some((segment.at_ns, segment.uncertain_ns));
            }
        } else if found.arrived.is_some() {
            found.first_sent_ns.get_or_insert(segment.at_ns);
            found.sent_ns = Some(segment.at_ns);
        }
    }

    fn time_of(&self, place: usize, exchange: &Exchange) -> Option<ServerTimes> {
        let found = self.found.get(place)?;
        let is_recognisable = exchange.end == RequestEnd::LastArrival || !found.is_first;
        if !self.is_alone[place] || found.is_mixed || !is_recognisable {
            return None;
        }
        let ((arrived_ns, uncertain_ns), sent_ns) = (found.arrived?, found.sent_ns?);
        // What arrives after the response does not belong to the request.
        (sent_ns.saturating_add(uncertain_ns.into()) >= arrived_ns).then_some(ServerTimes {
            arrived_ns,
            uncertain_ns,
            first_sent_ns: found
                .first_sent_ns
                .filter(|first_ns| *first_ns >= arrived_ns && !(exchange.is_tls && found.is_first)),
            sent_ns,
        })
    }
}

/// Which bytes of one direction of a connection have passed; numbers wrap around (RFC 9293, section 3.4).
#[derive(Default)]
struct Bytes {
    /// The sequence number after the highest byte.
    end: Option<u32>,
    /// The gaps below it.
    holes: Vec<(u32, u32)>,
}

impl Bytes {
    /// Records a segment. Returns whether it carries new bytes.
    fn take(&mut self, from: u32, length: u32) -> bool {
        let to = from.wrapping_add(length);
        let Some(end) = self.end else {
            self.end = Some(to);
            return length > 0;
        };
        let mut is_new = false;
        let mut left = Vec::new();
        for (hole_from, hole_to) in self.holes.drain(..) {
            let (first, last) = (later(from, hole_from), earlier(to, hole_to));
            if !is_before(first, last) {
                left.push((hole_from, hole_to));
                continue;
            }
            is_new = true;
            left.extend([(hole_from, first), (last, hole_to)].into_iter().filter(|(a, b)| is_before(*a, *b)));
        }
        self.holes = left;
        if is_before(end, to) {
            is_new = true;
            if is_before(end, from) && self.holes.len() < MOST_HOLES {
                self.holes.push((end, from));
            }
            self.end = Some(to);
        }
        is_new
    }
}

fn is_before(a: u32, b: u32) -> bool {
    b.wrapping_sub(a).cast_signed() > 0
}

fn later(a: u32, b: u32) -> u32 {
    if is_before(a, b) { b } else { a }
}

fn earlier(a: u32, b: u32) -> u32 {
    if is_before(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 40_000;

    /// Segments of one connection, written as `(time, sequence, payload)`; a negative payload left the
    /// server.
    fn seen(segments: &[(u64, u32, i32)]) -> Observation {
        let segments = segments
            .iter()
            .map(|&(at_ns, sequence, payload)| ObservedSegment {
                at_ns,
                uncertain_ns: 7,
                peer: 1,
                sequence,
                peer_port: PORT,
                payload_bytes: u16::try_from(payload.abs()).unwrap(),
                is_syn: payload == 0,
                has_arrived: payload >= 0,
            })
            .collect();
        Observation { node: "server".to_owned(), segments, missed: 0, whole_until_ns: u64::MAX }
    }

    fn exchange(from_ns: u64, until_ns: u64) -> Exchange {
        Exchange { port: PORT, from_ns, until_ns, end: RequestEnd::LastArrival, is_tls: false }
    }

    /// Arrived, first sent, sent.
    fn times(segments: &[(u64, u32, i32)], exchanges: &[Exchange]) -> Vec<Option<(u64, Option<u64>, u64)>> {
        let found = server_times(seen(segments), exchanges);
        found.iter().map(|at| at.map(|at| (at.arrived_ns, at.first_sent_ns, at.sent_ns))).collect()
    }

    /// A keep-alive connection with two requests; the second has a body and a response of three segments.
    const KEPT: [(u64, u32, i32); 8] = [
        (5, 99, 0),
        (110, 100, 50),
        (130, 900, -300),
        (310, 150, 1400),
        (320, 1550, 600),
        (350, 1200, -1400),
        (360, 2600, -1400),
        (370, 4000, -100),
    ];

    #[test]
    fn each_request_of_a_kept_connection_has_its_time() {
        let exchanges = [exchange(100, 200), exchange(200, 500)];
        let expected = [Some((110, Some(130), 130)), Some((320, Some(350), 370))];
        assert_eq!(times(&KEPT, &exchanges), expected);
        let mut shuffled = KEPT;
        shuffled[1..].reverse();
        assert_eq!(times(&shuffled, &exchanges), expected, "the segments' order is not needed");
        let backwards = [exchanges[1], exchanges[0]];
        assert_eq!(times(&KEPT, &backwards), [expected[1], expected[0]]);
        assert_eq!(server_times(seen(&KEPT), &exchanges)[0].unwrap().uncertain_ns, 7);
    }

    #[test]
    fn a_handshake_before_the_request_is_none_of_it() {
        // ClientHello and Finished, ServerHello; the session's ticket leaves between the request's two
        // segments.
        let tls = [(5, 0, 0), (10, 1, 300), (20, 1, -2000), (60, 301, 70)];
        let rest = [(110, 371, 40), (115, 2001, -80), (118, 411, 40), (130, 2081, -300), (150, 2381, -30)];
        let secret = Exchange { is_tls: true, ..exchange(100, 140) };
        let all: Vec<_> = tls.into_iter().chain(rest).collect();
        // The alert that follows the response left after the client had it.
        assert_eq!(times(&all, &[secret]), [Some((118, None, 130))]);
        let next = [(210, 451, 40), (240, 2411, -300)];
        let all: Vec<_> = all.into_iter().chain(next).collect();
        let found = times(&all, &[secret, Exchange { from_ns: 200, until_ns: 300, ..secret }]);
        assert_eq!(found[1], Some((210, Some(240), 240)), "tickets come with the first alone");
    }

    #[test]
    fn what_is_sent_again_brings_nothing_new() {
        let again = [
            (110, 100, 50),
            (130, 900, -1400),
            (131, 2300, -600),
            // The request's acknowledgement was lost, then a part of the response.
            (150, 100, 50),
            (160, 900, -1400),
            (170, 2300, -600),
            // It belongs to the previous request, while the next is in flight.
            (210, 100, 50),
            (220, 150, 50),
            (230, 2900, -10),
            (240, 2300, -600),
        ];
        let found = times(&again, &[exchange(100, 200), exchange(200, 300)]);
        assert_eq!(found, [Some((110, Some(130), 131)), Some((220, Some(230), 230))]);
    }

    #[test]
    fn a_lost_part_that_arrives_later_is_new() {
        let lost = [
            (100, 900, 0),
            (110, 1000, 100),
            (120, 1200, 100),
            (140, 1100, 100),
            (150, 9, -10),
            (155, 19, -10),
        ];
        assert_eq!(times(&lost, &[exchange(100, 200)]), [Some((140, Some(150), 155))]);
        // It overtook: the hole is filled in two pieces, once overlapping.
        let filled = [
            (110, 1000, 100),
            (120, 1300, 100),
            (130, 1090, 60),
            (140, 1150, 200),
            (145, 1100, 200),
            (150, 9, -10),
        ];
        assert_eq!(times(&filled, &[exchange(100, 200)]), [Some((140, Some(150), 150))]);
    }

    #[test]
    fn numbers_wrap_around() {
        let start = u32::MAX - 20;
        let wrapped = [
            (110, start, 40),
            (115, start, 40),
            (120, 19, 40),
            (125, start, 40),
            (130, start, -40),
            (140, 19, -5),
        ];
        assert_eq!(times(&wrapped, &[exchange(100, 200)]), [Some((120, Some(130), 140))]);
    }

    #[test]
    fn several_requests_at_a_time_are_refused() {
        let exchanges = [
            exchange(100, 300),
            exchange(200, 500),
            exchange(500, 600),
            exchange(510, 520),
            exchange(700, 800),
        ];
        let segments = [
            (210, 100, 50),
            (220, 900, -10),
            (515, 150, 50),
            (518, 910, -10),
            (710, 200, 50),
            (720, 920, -10),
        ];
        let found = times(&segments, &exchanges);
        assert_eq!(found[..4], [None; 4]);
        assert_eq!(found[4], Some((710, Some(720), 720)));
        // One that is around two others.
        let around = [exchange(100, 600), exchange(200, 300), exchange(400, 450), exchange(600, 700)];
        assert_eq!(alone(&around, &[0, 1, 2, 3]), [false, false, false, true]);
    }

    #[test]
    fn without_the_segments_there_is_no_time() {
        let only_request = [(110, 100, 50)];
        let only_response = [(120, 900, -10)];
        for segments in [&only_request[..], &only_response, &[]] {
            assert_eq!(times(segments, &[exchange(100, 200)]), [None]);
        }
        let elsewhere = Exchange { port: PORT + 1, ..exchange(100, 200) };
        assert_eq!(times(&KEPT, &[elsewhere]), [None]);
        // An answer, and then more of the request: a server that did not wait.
        let early = [(110, 100, 50), (120, 900, -10), (150, 150, 50)];
        assert_eq!(times(&early, &[exchange(100, 200)]), [None]);
    }

    #[test]
    fn beyond_the_room_for_notes_nothing_is_recognisable() {
        let exchanges = [exchange(100, 200), exchange(200, 500)];
        let mut cut = seen(&KEPT[..6]);
        cut.missed = 2;
        cut.whole_until_ns = 360;
        let found = server_times(cut, &exchanges);
        assert!(found[0].is_some() && found[1].is_none(), "{found:?}");
    }

    #[test]
    fn http2_without_bodies_is_recognisable_from_the_second_request_on() {
        let http2 =
            |from_ns, until_ns| Exchange { end: RequestEnd::BeforeResponse, ..exchange(from_ns, until_ns) };
        let segments = [
            (5, 99, 0),
            (110, 100, 90),
            (120, 900, -60),
            (125, 190, 9),
            (130, 960, -300),
            (210, 199, 30),
            (230, 1260, -300),
            // An update of the window in the middle of the response.
            (235, 229, 13),
            (240, 1560, -300),
        ];
        assert_eq!(
            times(&segments, &[http2(100, 200), http2(200, 300)]),
            [None, Some((210, Some(230), 240))]
        );
    }

    #[test]
    fn a_port_may_be_used_again_and_by_another_peer() {
        let again =
            [(5, 99, 0), (110, 1000, 50), (120, 900, -10), (205, 499, 0), (210, 500, 50), (220, 100, -10)];
        let exchanges = [exchange(100, 200), exchange(206, 300)];
        assert_eq!(times(&again, &exchanges), [Some((110, Some(120), 120)), Some((210, Some(220), 220))]);
        let mut mixed = seen(&again);
        mixed.segments[5].peer = 2;
        assert_eq!(server_times(mixed, &exchanges)[1], None);
    }
}
