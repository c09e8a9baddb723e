//! One connection: a socket, an engine and the row that they fill.

use std::collections::VecDeque;
use std::net::SocketAddr;

use engine::client::Client;
use engine::{Connection as _, Input, Transmit};
use model::sample::{ConnectionRow, Failure, FailureKind, Sample};
use model::tally::ConnectionRequests;
use model::units::format_ns;

use crate::contents::LARGE_BYTES;
use crate::request::OpenRequest;
use crate::session::{Effect, Session};
use crate::transport::{DISCARD_BYTES, ReadResult, Socket, failure_of};

/// The rest of a body from this size on is discarded in the kernel.
const WORTH_SKIPPING_BYTES: u64 = LARGE_BYTES;
/// The size of a read where bodies are discarded: headers and little more.
const HEAD_BYTES: usize = 4096;

/// One connection of a worker.
pub(crate) struct Conn {
    pub(crate) engine: Client,
    pub(crate) socket: Socket,
    /// The server.
    pub(crate) remote: SocketAddr,
    pub(crate) row: ConnectionRow,
    pub(crate) in_flight: u32,
    /// The place of its client.
    pub(crate) client: u32,
    /// Its place among the connections of its client.
    pub(crate) place: usize,
    /// Which host it belongs to.
    pub(crate) host: usize,
    /// Requests begun on it.
    pub(crate) begun: u64,
    /// Its measured requests.
    pub(crate) carried: ConnectionRequests,
    /// Requests that have ended since the worker last checked.
    pub(crate) ended: u32,
    /// Whether its host lists it among the connections that can take a request.
    pub(crate) is_listed: bool,
    /// Since when it can take a request; `None` while it cannot.
    pub(crate) free_ns: Option<u64>,
    /// When its thinking streams are done.
    pub(crate) thinking: Vec<u64>,
    /// When the time of its requests is over, in the order of sending; empty without a limit.
    pub(crate) deadlines: VecDeque<(u64, OpenRequest)>,
    /// When it must be ready; once it is, when the server must allow a request again.
    pub(crate) use_deadline_ns: Option<u64>,
    /// When the last bytes arrived, or the oldest response became due.
    pub(crate) heard_ns: u64,
    /// How long nothing may arrive while something is due; `None` without such a limit.
    pub(crate) silence_ns: Option<u64>,
    /// Bytes of the engine that the kernel has not accepted yet.
    out: Vec<u8>,
    taken: usize,
    transmit: Option<Transmit>,
    /// The kernel accepts nothing now.
    pub(crate) blocked: bool,
    /// Whether epoll watches for it to become writable (UDP only).
    pub(crate) watched_for_writing: bool,
    /// Whether the body of the last request is read for its checksum.
    pub(crate) checks_body: bool,
    /// Whether it had a body that was not worth reading.
    skips: bool,
    /// Whether the transport is connected.
    pub(crate) is_connected: bool,
    /// Whether the worker has seen it ready.
    pub(crate) was_ready: bool,
}

impl Conn {
    pub(crate) fn new(
        engine: Client,
        (socket, remote): (Socket, SocketAddr),
        (client, host): (u32, usize),
        row: ConnectionRow,
    ) -> Self {
        Conn {
            heard_ns: row.opened_ns,
            silence_ns: None,
            engine,
            socket,
            remote,
            row,
            in_flight: 0,
            client,
            place: 0,
            host,
            begun: 0,
            carried: ConnectionRequests::default(),
            ended: 0,
            is_listed: false,
            free_ns: None,
            thinking: Vec::new(),
            deadlines: VecDeque::new(),
            use_deadline_ns: None,
            out: Vec::new(),
            taken: 0,
            transmit: None,
            blocked: false,
            watched_for_writing: false,
            checks_body: false,
            skips: false,
            is_connected: false,
            was_ready: false,
        }
    }

    /// The transport is connected: the engine begins its handshakes. The time after that.
    ///
    /// QUIC is opened by its first datagram, which leaves after this: the engine builds the TLS client first,
    /// and that takes as long as a handshake on a fast network.
    pub(crate) fn connected(&mut self, session: &mut Session, clock: impl Fn() -> u64) -> u64 {
        let now = clock();
        let is_quic = self.socket.is_udp();
        if !is_quic {
            self.row.connected_ns = Some(now);
        }
        let Conn { engine, row, in_flight, ended, carried, .. } = self;
        engine.handle_connected(now, &mut |event| {
            apply(session, event, row, (&mut *in_flight, &mut *ended, &mut *carried), now)
        });
        if !is_quic || self.row.closed_ns.is_some() {
            return now;
        }
        let opened_ns = clock();
        let later_ns = opened_ns.saturating_sub(self.row.opened_ns);
        self.use_deadline_ns = self.use_deadline_ns.map(|deadline| deadline.saturating_add(later_ns));
        (self.row.opened_ns, self.heard_ns) = (opened_ns, opened_ns);
        opened_ns
    }

    /// Gives one input to the engine.
    pub(crate) fn input(&mut self, session: &mut Session, input: Input<'_>, now: u64) {
        let Conn { engine, row, in_flight, ended, carried, .. } = self;
        engine.handle_input(now, input, &mut |event| {
            apply(session, event, row, (&mut *in_flight, &mut *ended, &mut *carried), now)
        });
    }

    /// Reads once. Whether there may be more to read.
    ///
    /// A body that is only counted is not copied out of the kernel if that saves more than a call costs; the
    /// copy is most of the cost of a large response. Once a connection had such a body, only the headers are
    /// read.
    pub(crate) fn read(
        &mut self,
        session: &mut Session,
        buffer: &mut [u8],
        mut now: impl FnMut() -> u64,
    ) -> bool {
        let reads_all = session.contents.are_known() || self.checks_body;
        let skippable = if reads_all { 0 } else { self.engine.skippable_bytes() };
        if skippable >= WORTH_SKIPPING_BYTES {
            self.skips = true;
            return self.skip(session, skippable, now);
        }
        let room = if self.skips && !reads_all { buffer.len().min(HEAD_BYTES) } else { buffer.len() };
        let buffer = &mut buffer[..room];
        match self.socket.receive(buffer) {
            Ok(ReadResult::Stream(length)) => {
                self.row.received_bytes += length as u64;
                self.heard_ns = now();
                self.input(session, Input::Stream(&mut buffer[..length]), self.heard_ns);
                length == buffer.len()
            }
            Ok(ReadResult::Datagrams { length, segment_bytes, ecn }) => {
                self.row.received_bytes += length as u64;
                let bytes = &mut buffer[..length];
                let now = now();
                if let Some(migration) = &mut self.row.migrated {
                    migration.answered_ns.get_or_insert(now);
                }
                self.input(session, Input::Datagrams { bytes, segment_bytes, ecn }, now);
                true
            }
            other => self.read_nothing(session, other, now),
        }
    }

    /// Discards a part of a body. Whether there may be more to read.
    fn skip(&mut self, session: &mut Session, skippable: u64, mut now: impl FnMut() -> u64) -> bool {
        match self.socket.discard(skippable) {
            Ok(ReadResult::Discarded(length)) => {
                let length = length as u64;
                self.row.received_bytes += length;
                self.heard_ns = now();
                self.input(session, Input::Skipped(length), self.heard_ns);
                // Nothing that was requested follows the last byte of the body.
                length == skippable.min(DISCARD_BYTES) && self.in_flight > 0
            }
            other => self.read_nothing(session, other, now),
        }
    }

    /// Handles a read of the stream's end, an error or nothing.
    fn read_nothing(
        &mut self,
        session: &mut Session,
        result: std::io::Result<ReadResult>,
        mut now: impl FnMut() -> u64,
    ) -> bool {
        match result {
            Ok(ReadResult::End) => self.input(session, Input::End, now()),
            Ok(_) => {}
            Err(error) => {
                let doing = format!("reading from {}", self.remote);
                self.broken(session, failure_of(&error, &doing), now());
            }
        }
        false
    }

    /// Whether it can take another request. Thinking streams are busy, and the number of its requests is
    /// limited.
    pub(crate) fn has_room(&self, streams: u32, requests_each: u64) -> bool {
        let taken = self.in_flight.saturating_add(u32::try_from(self.thinking.len()).unwrap_or(u32::MAX));
        taken < streams && self.begun < requests_each && self.engine.available_requests() > 0
    }

    /// Watches the time of a request. Requests that have ended are removed before they become many.
    pub(crate) fn watch(&mut self, opened: OpenRequest, deadline_ns: u64, session: &Session) {
        while self.deadlines.pop_front_if(|(_, first)| !session.is_open(*first)).is_some() {}
        if self.deadlines.len() > 16 + 4 * self.in_flight as usize {
            self.deadlines.retain(|(_, other)| session.is_open(*other));
        }
        self.deadlines.push_back((deadline_ns, opened));
    }

    /// Whether it has served its limit of requests and nothing is in flight.
    pub(crate) fn is_spent(&self, requests_each: u64) -> bool {
        self.begun >= requests_each && self.in_flight == 0 && self.thinking.is_empty()
    }

    /// Sets a deadline while the server allows no request although none is in flight:
    /// SETTINGS_MAX_CONCURRENT_STREAMS or MAX_STREAMS of 0.
    pub(crate) fn note_refusal(&mut self, requests_each: u64, limit_ns: Option<u64>, now: u64) {
        if !self.was_ready {
            return;
        }
        let wants_more = self.in_flight == 0 && self.begun < requests_each;
        if wants_more && self.engine.available_requests() == 0 {
            let deadline_ns = limit_ns.map(|limit| now.saturating_add(limit));
            self.use_deadline_ns = self.use_deadline_ns.or(deadline_ns);
        } else {
            self.use_deadline_ns = None;
        }
    }

    /// When it counts as lost unless something arrives: a response is due, or it is being opened.
    pub(crate) fn silent_at_ns(&self) -> Option<u64> {
        let is_due = self.in_flight > 0 || !self.was_ready;
        self.silence_ns.filter(|_| is_due).map(|silence_ns| self.heard_ns.saturating_add(silence_ns))
    }

    /// When it needs attention without an event.
    ///
    /// Called after every request: the usual result, never, costs five comparisons.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        let mut earliest = self.engine.poll_timeout().unwrap_or(u64::MAX);
        if let Some(deadline_ns) = self.use_deadline_ns {
            earliest = earliest.min(deadline_ns);
        }
        if let Some(silent_ns) = self.silent_at_ns() {
            earliest = earliest.min(silent_ns);
        }
        if let Some((deadline_ns, _)) = self.deadlines.front() {
            earliest = earliest.min(*deadline_ns);
        }
        for thought_ns in &self.thinking {
            earliest = earliest.min(*thought_ns);
        }
        (earliest != u64::MAX).then_some(earliest)
    }

    /// Handles everything that is due: the engine's timer, time limits, the end of thinking.
    pub(crate) fn handle_time(&mut self, session: &mut Session, limit_ns: u64, now: u64) {
        if self.engine.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.timeout(session, now);
        }
        if let Some(deadline) = self.use_deadline_ns.filter(|deadline| *deadline <= now) {
            self.use_deadline_ns = None;
            let reason = if self.was_ready {
                format!("{} allowed no request within {}", self.remote, format_ns(limit_ns))
            } else {
                let limit_ns = deadline.saturating_sub(self.row.opened_ns);
                let (limit, phase) = (format_ns(limit_ns), self.phase());
                format!("connecting to {}: the time limit of {limit} passed {phase}", self.remote)
            };
            self.broken(session, Failure { kind: FailureKind::Timeout, reason }, now);
        }
        while let Some((_, opened)) = self.deadlines.pop_front_if(|(deadline, _)| *deadline <= now) {
            let remote = self.remote;
            self.cancel(session, opened, |sample| overdue(sample, remote, limit_ns), now);
        }
        self.thinking.retain(|until| *until > now);
    }

    /// Ends a request whose response is not complete, if it is still in flight.
    pub(crate) fn cancel(
        &mut self,
        session: &mut Session,
        opened: OpenRequest,
        why: impl Fn(&Sample) -> Failure,
        now: u64,
    ) {
        if let Effect::RequestEnded(request) = session.expire(opened, why, now) {
            self.carried.add(request);
            self.engine.cancel(now, opened.id);
            self.in_flight = self.in_flight.saturating_sub(1);
            self.ended += 1;
        }
    }

    /// The phase of its beginning.
    pub(crate) fn phase(&self) -> &'static str {
        match (self.socket.is_udp(), self.is_connected) {
            (true, _) => "in the QUIC handshake",
            (false, false) => "before TCP was connected",
            (false, true) => "in the TLS handshake",
        }
    }

    /// The engine's timer is due.
    fn timeout(&mut self, session: &mut Session, now: u64) {
        let Conn { engine, row, in_flight, ended, carried, .. } = self;
        engine.handle_timeout(now, &mut |event| {
            apply(session, event, row, (&mut *in_flight, &mut *ended, &mut *carried), now)
        });
    }

    /// The transport failed.
    pub(crate) fn broken(&mut self, session: &mut Session, failure: Failure, now: u64) {
        self.input(session, Input::Broken(failure), now);
    }

    /// Sends the engine's bytes until it has no more or the kernel accepts no more.
    pub(crate) fn flush(&mut self, session: &mut Session, now: u64) {
        loop {
            if self.taken < self.out.len() {
                match self.send() {
                    Ok(true) => {}
                    Ok(false) => {
                        self.blocked = true;
                        return;
                    }
                    Err(error) => {
                        self.out.clear();
                        self.taken = 0;
                        let doing = format!("sending to {}", self.remote);
                        self.broken(session, failure_of(&error, &doing), now);
                        return;
                    }
                }
            }
            self.blocked = false;
            self.out.clear();
            self.taken = 0;
            self.transmit = self.engine.poll_transmit(now, &mut self.out);
            if self.transmit.is_none() {
                return;
            }
        }
    }

    /// Whether the kernel accepted all of `out`.
    fn send(&mut self) -> std::io::Result<bool> {
        let bytes = &self.out[self.taken..];
        match self.transmit {
            Some(Transmit::Datagrams { segment_bytes, ecn }) => {
                let length = bytes.len();
                if !self.socket.send_datagrams(bytes, segment_bytes, ecn)? {
                    return Ok(false);
                }
                self.taken += length;
                self.row.sent_bytes += length as u64;
            }
            Some(Transmit::Stream) | None => {
                let length = self.socket.send_stream(bytes)?;
                self.taken += length;
                self.row.sent_bytes += length as u64;
            }
        }
        Ok(self.taken == self.out.len())
    }
}

/// The failure of a request without a complete response in time.
pub(crate) fn overdue(sample: &Sample, remote: SocketAddr, limit_ns: u64) -> Failure {
    let part = match sample.first_byte_ns {
        None => "no response".to_owned(),
        Some(_) => format!("only {} bytes of the body", sample.response_body_bytes),
    };
    let reason = format!("waiting for {remote}: {part} within {}", format_ns(limit_ns));
    Failure { kind: FailureKind::Timeout, reason }
}

fn apply(
    session: &mut Session,
    event: engine::Event<'_>,
    row: &mut ConnectionRow,
    (in_flight, ended, carried): (&mut u32, &mut u32, &mut ConnectionRequests),
    now: u64,
) {
    match session.handle(event, row, now) {
        Effect::RequestBegun => *in_flight += 1,
        Effect::RequestEnded(request) => {
            *in_flight = in_flight.saturating_sub(1);
            *ended += 1;
            carried.add(request);
        }
        Effect::None | Effect::Closed => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use engine::client::ClientConfig;
    use engine::options::{Options, Qlog};
    use model::assignment::Trust;
    use model::options::ConnectionOptions;
    use model::workload::{ClosedLoop, LoopLoad};
    use model::{Pins, Variant, Workload};
    use workload::SharedWorkload;

    use super::*;
    use crate::Clock;
    use crate::fixtures::assignment;

    /// A clock that shows another time once the engine has begun to build the TLS client of a QUIC
    /// connection.
    #[derive(Debug, Default)]
    struct BuildingTime(AtomicU64);

    const BEFORE_NS: u64 = 1_000;
    const BUILT_NS: u64 = 801_000;

    impl Qlog for BuildingTime {
        fn begin(&self, _: &str) -> Option<Box<dyn Write + Send + Sync>> {
            self.0.store(BUILT_NS, Ordering::Relaxed);
            None
        }
    }

    /// The row of a connection that has just begun its handshakes.
    fn begun(variant: Variant, remote: SocketAddr) -> Conn {
        let time = Arc::new(BuildingTime(BEFORE_NS.into()));
        let options = Options { qlog: Some(Arc::clone(&time) as _), ..Options::default() };
        let config = ClientConfig::new(variant, "localhost", &Pins::default(), &Trust::Anyone, &[]).unwrap();
        let config = config.with_options(&options).unwrap();
        let engine = Client::new(&config, remote, Clock::new(&Clock::begin()).base(), 1).unwrap();
        let quic = variant.is_quic();
        let socket = Socket::connect(remote, quic, &ConnectionOptions::default(), &[], 0).unwrap();
        let work = Workload::Closed(ClosedLoop::new(LoopLoad::new("/"), None));
        let assignment = assignment(remote, variant, work);
        let work = SharedWorkload::new(&assignment.workload, &assignment.options, 1)
            .begin(workload::Seeds::new(1, 0, 0), workload::Beginning::at(0));
        let mut session = Session::new(&assignment, &work);
        let row = ConnectionRow { opened_ns: BEFORE_NS, ..ConnectionRow::default() };
        let mut conn = Conn::new(engine, (socket, remote), (0, 0), row);
        conn.use_deadline_ns = Some(BEFORE_NS + 5_000);
        let now = conn.connected(&mut session, || time.0.load(Ordering::Relaxed));
        assert_eq!(
            now,
            time.0.load(Ordering::Relaxed),
            "further work is stamped after the TLS client is built"
        );
        conn
    }

    #[test]
    fn quic_is_opened_after_its_tls_client_is_built() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut conn = begun(Variant::H3, server.local_addr().unwrap());
        assert_eq!((conn.row.opened_ns, conn.row.connected_ns), (BUILT_NS, None));
        assert_eq!(conn.use_deadline_ns, Some(BUILT_NS + 5_000), "the time limit begins with the connection");
        let mut out = Vec::new();
        assert!(conn.engine.poll_transmit(BUILT_NS, &mut out).is_some());
        assert!(out.len() >= 1_200, "the first datagram, which nothing has sent before");
    }

    #[test]
    fn tcp_is_opened_when_connect_is_called() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let conn = begun(Variant::H1s, server.local_addr().unwrap());
        assert_eq!((conn.row.opened_ns, conn.row.connected_ns), (BEFORE_NS, Some(BEFORE_NS)));
        assert_eq!(conn.use_deadline_ns, Some(BEFORE_NS + 5_000));
    }
}
