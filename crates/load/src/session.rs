//! The shared state of a worker's connections: the clients, the requests in flight and the finished rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{Event, Fate, Head, RequestId};
use model::assignment::AddressChange;
use model::options::{ExpectedResponse, LEAST_ENDED};
use model::player::Player;
use model::sample::{ConnectionRow, Failure, FailureKind, Outcome, Phase, Sample, ServerClose};
use model::tally::ConnectionRequests;
use model::{Assignment, Clients, Histogram, HttpVersion};
use workload::{Content, Due, RequestSource, UrlTable};

use crate::client::Client;
use crate::contents::{ContentKinds, Contents, LARGE_BYTES, checksum, is_sampled};
use crate::judge::judge;
use crate::live::Live;
use crate::request::{OpenRequest, Origin};
use crate::rows::RowSender;
use crate::slots::Slots;
use crate::tally::Tallies;

/// The shared state of a worker's connections.
pub(crate) struct Session {
    /// The clients by their places; `None` before they begin and once they are done.
    pub(crate) clients: Vec<Option<Box<Client>>>,
    /// The numbers of clients and rows within the group.
    numbers: Clients,
    /// Whether a schedule sets when requests are due.
    pub(crate) is_paced: bool,
    /// Whether requests can wait for any connection.
    pub(crate) has_queue: bool,
    /// The expected bodies.
    pub(crate) contents: Contents,
    /// What the bodies are, by their fields.
    pub(crate) kinds: ContentKinds,
    pub(crate) samples: Vec<Sample>,
    group: u16,
    /// The HTTP version of each host, the assignment's target first.
    expected_versions: Vec<HttpVersion>,
    /// The host of each URL; URLs beyond the end are of the first.
    hosts: Vec<u16>,
    /// What is known of the responses of each URL; empty if nothing is known of any.
    expected: Vec<ExpectedResponse>,
    /// The origin of each URL, as its requests name it; URLs beyond the end have the first host's.
    pub(crate) origins: Vec<Arc<Origin>>,
    pub(crate) first_origin: Arc<Origin>,
    pub(crate) open: Slots,
    /// The number of the next request.
    next_request: u64,
    /// Requests beyond this number are summed up; their rows are not kept.
    most_rows: usize,
    pub(crate) tallies: Tallies,
    /// From intended to sent, in an open loop.
    pub(crate) lag: Histogram,
    /// The same from the time at which a connection could take the request.
    pub(crate) own_lag: Histogram,
    ended: u64,
    failed: u64,
    stop_at_failed_ppm: Option<u32>,
    /// Why the work ends early.
    pub(crate) stopped: Option<String>,
    /// Counters of the progress.
    pub(crate) live: Option<Arc<Live>>,
    /// Receives the rows that are not kept.
    pub(crate) rows: Option<RowSender>,
    /// The URLs that workloads have learnt of, after those that they began with.
    pub(crate) urls: UrlTable,
    /// The bodies that workloads read, as far as they have arrived; `None` once they are too long.
    bodies: HashMap<RequestId, Option<Vec<u8>>>,
    /// The first change of the client's address.
    pub(crate) address_change: Option<AddressChange>,
}

/// The longest body that a workload reads, such as a manifest.
const MOST_READ_BYTES: usize = 4 << 20;

/// The effect of an event on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None that concerns the worker.
    None,
    /// The server promised the response to a request of this connection.
    RequestBegun,
    /// A request of this connection is over.
    RequestEnded(ConnectionRequests),
    /// The connection is over.
    Closed,
}

impl Session {
    /// The session of a worker; `work` is like the workload of each of its clients.
    pub(crate) fn new(assignment: &Assignment, work: &impl RequestSource) -> Self {
        let Assignment { group, clients, ref options, .. } = *assignment;
        Session {
            clients: std::iter::repeat_with(|| None).take(clients.count as usize).collect(),
            numbers: clients,
            is_paced: work.is_paced(),
            has_queue: work.has_queue(),
            contents: Contents::of(&assignment.workload),
            kinds: ContentKinds::default(),
            samples: Vec::with_capacity(1024),
            group,
            expected_versions: std::iter::once(&assignment.target)
                .chain(&options.requests.further_targets)
                .map(|target| target.variant.http())
                .collect(),
            hosts: options.requests.paths.iter().map(|path| path.target).collect(),
            expected: match options.requests.paths.iter().all(|path| path.expects.is_unknown()) {
                true => Vec::new(),
                false => options.requests.paths.iter().map(|path| path.expects).collect(),
            },
            origins: options.requests.paths.iter().map(|path| Origin::of(assignment, path.target)).collect(),
            first_origin: Origin::of(assignment, 0),
            open: Slots::default(),
            next_request: clients.first_row().into(),
            most_rows: options
                .most_rows
                .map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX)),
            tallies: Tallies::default(),
            lag: Histogram::default(),
            own_lag: Histogram::default(),
            ended: 0,
            failed: 0,
            stop_at_failed_ppm: options.stop_at_failed_ppm,
            stopped: None,
            live: None,
            rows: None,
            urls: UrlTable::new(assignment.workload.player().map(Player::resources).unwrap_or_default()),
            bodies: HashMap::new(),
            address_change: None,
        }
    }

    /// A client at its place.
    #[inline]
    pub(crate) fn client(&mut self, place: u32) -> Option<&mut Client> {
        self.clients.get_mut(place as usize)?.as_deref_mut()
    }

    /// Requests of a client to a host that wait for any connection.
    pub(crate) fn waiting(&self, place: u32, host: usize) -> usize {
        let client = self.clients.get(place as usize).and_then(Option::as_deref);
        client.map_or(0, |client| client.waiting_for(host))
    }

    /// The next request of a client to a host, for this connection, and its URL: one that has lost its
    /// connection, or one that is due.
    pub(crate) fn next_request(
        &mut self,
        (place, host): (u32, usize),
        connection: u32,
        intended_ns: Option<u64>,
        (free_ns, now): (u64, u64),
    ) -> Option<(OpenRequest, u32)> {
        while let Some(lost) = self.client(place)?.hosts.get_mut(host)?.lost.pop_front() {
            if self.is_open(lost)
                && let Some(sample) = self.open.get_mut(lost.id)
            {
                sample.connection = Some(connection);
                sample.sent_ns.get_or_insert(now);
                return Some((lost, sample.url));
            }
        }
        let mut due = self.client(place)?.work.poll_request(host, now)?;
        due.intended_ns = intended_ns.unwrap_or(due.intended_ns);
        Some((self.open(place, due, connection, (free_ns, now)), due.url))
    }

    /// Opens a row for a client's due request that a connection could take since `free_ns`; its slot is the
    /// engine's name for the request.
    fn open(&mut self, place: u32, due: Due, connection: u32, (free_ns, now): (u64, u64)) -> OpenRequest {
        let mut sample = self.row(place, due);
        sample.connection = Some(connection);
        sample.sent_ns = Some(now);
        if self.is_paced && sample.phase == Phase::Measure {
            self.lag.record(now.saturating_sub(due.intended_ns));
            self.own_lag.record(now.saturating_sub(due.intended_ns.max(free_ns)));
        }
        let (number, url) = (sample.request, sample.url);
        let id = self.open.insert(sample);
        if self.client(place).is_some_and(|client| client.work.wants_body(url)) {
            self.bodies.insert(id, Some(Vec::new()));
        }
        OpenRequest { id, number }
    }

    /// Whether the workload reads the body of a request.
    pub(crate) fn keeps_body(&self, request: RequestId) -> bool {
        self.bodies.contains_key(&request)
    }

    /// Keeps a piece of a body that the workload reads.
    fn keep(&mut self, request: RequestId, piece: &[u8]) {
        let Some(body) = self.bodies.get_mut(&request) else { return };
        let Some(kept) = body else { return };
        if kept.len() + piece.len() > MOST_READ_BYTES {
            *body = None;
        } else {
            kept.extend_from_slice(piece);
        }
    }

    /// The request of a client for a URL that is in flight, and its connection.
    pub(crate) fn find(&self, place: u32, url: u32) -> Option<(OpenRequest, Option<u32>)> {
        let mut open = self.open.iter();
        let (id, sample) = open.find(|(_, sample)| sample.client == place && sample.url == url)?;
        Some((OpenRequest { id, number: sample.request }, sample.connection))
    }

    /// A body begins again, on another connection.
    pub(crate) fn restart_body(&mut self, request: RequestId) {
        if let Some(body) = self.bodies.get_mut(&request) {
            *body = Some(Vec::new());
        }
    }

    /// Adds the bytes of a sent request to its row.
    pub(crate) fn sent(&mut self, request: RequestId, bytes: engine::HeaderBytes, body_bytes: u64) {
        if let Some(sample) = self.open.get_mut(request) {
            sample.request_body_bytes = body_bytes;
            sample.request_header_raw_bytes = bytes.raw;
            sample.request_header_wire_bytes = bytes.wire;
        }
    }

    /// Fails a client's due request that found no connection.
    pub(crate) fn fail_unsent(&mut self, place: u32, due: Due, failure: Failure, now: u64) {
        let mut sample = self.row(place, due);
        self.stamp_end(&mut sample, now);
        sample.outcome = Outcome::Failed(failure);
        self.finish(sample);
    }

    /// Whether a request is in flight.
    pub(crate) fn is_open(&self, opened: OpenRequest) -> bool {
        self.open.get(opened.id).is_some_and(|sample| sample.request == opened.number)
    }

    /// Ends a request whose time is over, if it is still in flight.
    pub(crate) fn expire(
        &mut self,
        opened: OpenRequest,
        why: impl Fn(&Sample) -> Failure,
        now: u64,
    ) -> Effect {
        let open = self.open.get(opened.id).filter(|sample| sample.request == opened.number);
        match open.map(why) {
            Some(failure) => self.end(opened.id, Some(failure), now),
            None => Effect::None,
        }
    }

    /// Fails every request in flight, in the order of sending; what each adds to its connection's sums.
    pub(crate) fn fail_open(
        &mut self,
        failure: impl Fn(&Sample) -> Failure,
        now: u64,
    ) -> Vec<(u32, ConnectionRequests)> {
        let mut rows: Vec<Sample> = self.open.drain().collect();
        rows.sort_by_key(|sample| sample.request);
        let mut ended = Vec::with_capacity(rows.len());
        for mut sample in rows {
            self.stamp_end(&mut sample, now);
            sample.outcome = Outcome::Failed(failure(&sample));
            ended.extend(sample.connection.map(|connection| (connection, ConnectionRequests::of(&sample))));
            self.finish(sample);
        }
        ended
    }

    /// The number of requests in flight.
    pub(crate) fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Bytes of a response arrived. After a change of the address only those count that came to the new one:
    /// a connection that hangs may still have bytes to read.
    #[inline]
    fn received(&mut self, row: &ConnectionRow, now: u64) {
        let Some(change) = &mut self.address_change else { return };
        if row.migrated.is_some() || row.opened_ns >= change.at_ns {
            change.received_ns.get_or_insert(now);
        }
    }

    pub(crate) fn handle(&mut self, event: Event<'_>, row: &mut ConnectionRow, now: u64) -> Effect {
        match event {
            Event::Ready(handshake) => {
                row.ready_ns = Some(now);
                row.alpn = handshake.alpn;
                row.tls_version = handshake.tls_version;
                row.cipher_suite = handshake.cipher_suite;
                row.key_exchange = handshake.key_exchange;
                row.resumed = handshake.resumed;
                row.early_data = handshake.early_data;
            }
            Event::Informational { request, links, .. } if !links.is_empty() => {
                self.hinted(request, links, row, now);
            }
            Event::Informational { .. } => {}
            Event::Promised { promise, fate } => {
                *fate = self.promised(promise, row, now);
                if matches!(fate, Fate::Take(_)) {
                    return Effect::RequestBegun;
                }
            }
            Event::PushedInVain(bytes) => {
                row.pushed.body_bytes += bytes;
                row.pushed.wasted_bytes += bytes;
            }
            Event::Pushed(pushed) => {
                row.pushed.whole += u32::from(pushed.is_whole);
                row.pushed.refused += u32::from(pushed.is_refused);
                row.pushed.broken += u32::from(!pushed.is_whole && !pushed.is_refused);
                row.pushed.body_bytes += pushed.body_bytes;
                row.pushed.wasted_bytes += pushed.body_bytes;
            }
            Event::Head { request, head } => {
                self.received(row, now);
                row.server_close = head.closes;
                self.head(request, head, now);
            }
            Event::Data { request, bytes } => {
                self.received(row, now);
                if !self.bodies.is_empty() {
                    self.keep(request, bytes);
                }
                self.compare(request, bytes);
                self.data(request, bytes.len() as u64, now);
            }
            Event::Skipped { request, length } => {
                self.received(row, now);
                if let Some(sample) = self.open.get_mut(request) {
                    sample.response_body_crc32 = None;
                }
                self.data(request, length, now);
            }
            Event::End { request } => {
                self.count_push(request, true, row);
                return self.end(request, None, now);
            }
            Event::Failed { request, failure } => {
                self.count_push(request, false, row);
                return self.end(request, Some(failure), now);
            }
            Event::Closed(outcome) => {
                // What the client closed has a stamp already.
                if outcome.is_ok() && row.closed_ns.is_none() {
                    row.server_close.get_or_insert(ServerClose::Unannounced);
                }
                row.closed_ns = Some(now);
                row.outcome = outcome;
                return Effect::Closed;
            }
        }
        Effect::None
    }

    fn head(&mut self, request: RequestId, head: Head, now: u64) {
        let Some(sample) = self.open.get_mut(request) else { return };
        sample.first_byte_ns = Some(now);
        sample.status = Some(head.status);
        sample.version = Some(head.version);
        sample.content = self.kinds.number(head.content);
        let is_small = head.content_length.is_some_and(|bytes| bytes < LARGE_BYTES);
        if !self.contents.are_known() && (is_small || is_sampled(sample.request)) {
            sample.response_body_crc32 = Some(checksum(0, &[]));
        }
        sample.response_header_raw_bytes = head.bytes.raw;
        sample.response_header_wire_bytes = head.bytes.wire;
    }

    /// Compares a piece of a body with the expected content, or adds it to the checksum; the first different
    /// byte fails the request.
    fn compare(&mut self, request: RequestId, piece: &[u8]) {
        let Some(sample) = self.open.get_mut(request).filter(|sample| sample.outcome.is_ok()) else { return };
        if let Some(crc32) = &mut sample.response_body_crc32 {
            *crc32 = checksum(*crc32, piece);
        }
        if let Some(byte) = self.contents.first_wrong(sample.url, sample.response_body_bytes, piece) {
            let reason = format!("byte {byte} of the body differs from the expected content");
            sample.outcome = Outcome::failed(FailureKind::WrongContent, reason);
        }
    }

    fn data(&mut self, request: RequestId, length: u64, now: u64) {
        let Some(sample) = self.open.get_mut(request) else { return };
        sample.response_body_bytes += length;
        if let Some(client) = self.clients.get_mut(sample.client as usize).and_then(Option::as_deref_mut) {
            client.work.handle_body(sample.url, sample.response_body_bytes, now);
        }
    }

    pub(crate) fn end(&mut self, request: RequestId, failure: Option<Failure>, now: u64) -> Effect {
        let Some(mut sample) = self.open.remove(request) else { return Effect::None };
        self.stamp_end(&mut sample, now);
        if let Some(client) = self.client(sample.client).filter(|_| failure.is_none()) {
            client.work.handle_body_end(sample.url, now);
        }
        sample.outcome = match failure {
            Some(failure) => Outcome::Failed(failure),
            None => judge(&sample, self.expected_version(sample.url), self.expected(sample.url)),
        };
        if let Some(body) = self.bodies.remove(&request)
            && sample.outcome.is_ok()
        {
            self.deliver(&sample, body.as_deref(), now);
        }
        let ended = ConnectionRequests::of(&sample);
        self.finish(sample);
        Effect::RequestEnded(ended)
    }

    /// Gives a body to the workload that reads it.
    fn deliver(&mut self, sample: &Sample, body: Option<&[u8]>, now_ns: u64) {
        let origin = self.origins.get(sample.url as usize).unwrap_or(&self.first_origin);
        let origin = format!("{}://{}", origin.scheme, origin.authority);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        let content = Content { body, origin: &origin, now_ns, now_unix_ns };
        if let Some(client) = self.clients.get_mut(sample.client as usize).and_then(Option::as_deref_mut) {
            client.work.handle_content(sample.url, &content, &mut self.urls);
        }
    }

    fn expected_version(&self, url: u32) -> HttpVersion {
        let host = self.hosts.get(url as usize).copied().unwrap_or(0);
        self.expected_versions.get(usize::from(host)).copied().unwrap_or(self.expected_versions[0])
    }

    /// What is known of the responses of a URL.
    fn expected(&self, url: u32) -> ExpectedResponse {
        self.expected.get(url as usize).copied().unwrap_or_default()
    }

    /// Enters the end of a request in its row, and the phase that follows from it.
    fn stamp_end(&mut self, sample: &mut Sample, now: u64) {
        sample.done_ns = Some(now);
        if let Some(client) = self.client(sample.client) {
            sample.phase = client.work.phase_at_end(sample.phase, now);
        }
    }

    fn finish(&mut self, mut sample: Sample) {
        if let Some(client) = self.client(sample.client) {
            let ended_ns = sample.done_ns.unwrap_or(sample.intended_ns);
            client.work.handle_done(sample.url, sample.outcome.is_ok(), ended_ns);
        }
        sample.client = self.numbers.number(sample.client);
        if let Some(live) = &self.live {
            live.ended(&sample);
        }
        self.ended += 1;
        if !sample.outcome.is_ok() && !sample.outcome.is_cancelled() {
            self.failed += 1;
            self.judge_failures();
        }
        if self.samples.len() < self.most_rows {
            self.samples.push(sample);
            return;
        }
        self.tallies.record(&sample);
        if let Some(rows) = &mut self.rows {
            rows.push(sample);
        }
    }

    /// Ends the work if too many requests have failed.
    fn judge_failures(&mut self) {
        let Some(limit_ppm) = self.stop_at_failed_ppm.filter(|_| self.ended >= LEAST_ENDED) else { return };
        if self.stopped.is_none() && self.failed * 1_000_000 > u64::from(limit_ppm) * self.ended {
            let (failed, ended) = (self.failed, self.ended);
            self.stopped = Some(format!(
                "{failed} of {ended} requests failed, more than the limit of {} %",
                f64::from(limit_ppm) / 10_000.0
            ));
        }
    }

    /// The row of a request that begins. Its `client` is the place until it ends, so that no event has to
    /// search for the client.
    pub(crate) fn row(&mut self, place: u32, due: Due) -> Sample {
        let request = self.next_request;
        self.next_request += u64::from(self.numbers.step);
        let mut sample = Sample {
            group: self.group,
            client: place,
            request,
            url: due.url,
            intended_ns: due.intended_ns,
            ..Sample::default()
        };
        if let Some(client) = self.client(place) {
            sample.phase = client.work.phase(due.intended_ns);
            sample.cause = client.work.cause(due.url);
            sample.expected_body_bytes = client.work.expected_body_bytes(due.url);
        }
        sample.expected_body_bytes = sample.expected_body_bytes.or(self.expected(due.url).body_bytes);
        sample
    }
}
