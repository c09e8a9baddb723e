//! What all connections of a worker share: the workload, the requests in flight and the finished rows.

use engine::{Event, Head, RequestId};
use model::sample::{ConnectionRow, Failure, FailureKind, Outcome, Sample};
use model::{HttpVersion, Variant};
use workload::{Due, Work};

/// The shared state of a worker's connections.
pub(crate) struct Session {
    pub(crate) work: Work,
    pub(crate) samples: Vec<Sample>,
    group: u16,
    expected_version: HttpVersion,
    open: Slots,
    begun: u64,
}

/// What handling one event changed for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that the worker has to act on.
    None,
    /// A request of this connection is over.
    RequestEnded,
    /// The connection is over.
    Closed,
}

impl Session {
    pub(crate) fn new(work: Work, group: u16, variant: Variant) -> Self {
        Session {
            work,
            samples: Vec::with_capacity(1024),
            group,
            expected_version: variant.http(),
            open: Slots::default(),
            begun: 0,
        }
    }

    /// Opens a row for a due request; its number is the engine's name for the request.
    pub(crate) fn open(&mut self, due: Due, connection: u32, now: u64) -> RequestId {
        let mut sample = self.row(due);
        sample.connection = Some(connection);
        sample.sent_ns = Some(now);
        self.open.insert(sample)
    }

    /// Completes a row with what sending the request showed.
    pub(crate) fn sent(&mut self, request: RequestId, bytes: engine::HeaderBytes) {
        if let Some(sample) = self.open.get_mut(request) {
            sample.request_header_raw_bytes = bytes.raw;
            sample.request_header_wire_bytes = bytes.wire;
        }
    }

    /// A due request that never found a connection.
    pub(crate) fn fail_unsent(&mut self, due: Due, failure: Failure, now: u64) {
        let mut sample = self.row(due);
        sample.done_ns = Some(now);
        sample.outcome = Outcome::Failed(failure);
        self.finish(sample);
    }

    /// Every open request fails, in the order of sending.
    pub(crate) fn fail_open(&mut self, failure: &Failure, now: u64) {
        let mut rows: Vec<Sample> = self.open.drain().collect();
        rows.sort_by_key(|sample| sample.request);
        for mut sample in rows {
            sample.done_ns = Some(now);
            sample.outcome = Outcome::Failed(failure.clone());
            self.finish(sample);
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
            }
            Event::Informational { .. } => {}
            Event::Head { request, head } => self.head(request, head, now),
            Event::Data { request, bytes } => self.data(request, bytes.len() as u64, now),
            Event::End { request } => return self.end(request, None, now),
            Event::Failed { request, failure } => return self.end(request, Some(failure), now),
            Event::Closed(outcome) => {
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
        sample.response_header_raw_bytes = head.bytes.raw;
        sample.response_header_wire_bytes = head.bytes.wire;
    }

    fn data(&mut self, request: RequestId, length: u64, now: u64) {
        let Some(sample) = self.open.get_mut(request) else { return };
        sample.response_body_bytes += length;
        self.work.handle_body(sample.url, sample.response_body_bytes, now);
    }

    fn end(&mut self, request: RequestId, failure: Option<Failure>, now: u64) -> Effect {
        let Some(mut sample) = self.open.remove(request) else { return Effect::None };
        sample.done_ns = Some(now);
        sample.outcome = match failure {
            Some(failure) => Outcome::Failed(failure),
            None => judge(&sample, self.expected_version),
        };
        self.finish(sample);
        Effect::RequestEnded
    }

    fn finish(&mut self, sample: Sample) {
        self.work.handle_done(sample.url);
        self.samples.push(sample);
    }

    fn row(&mut self, due: Due) -> Sample {
        let request = self.begun;
        self.begun += 1;
        Sample {
            group: self.group,
            request,
            url: due.url,
            connection: None,
            phase: self.work.phase(due.intended_ns),
            intended_ns: due.intended_ns,
            sent_ns: None,
            first_byte_ns: None,
            done_ns: None,
            status: None,
            version: None,
            request_header_raw_bytes: 0,
            request_header_wire_bytes: 0,
            response_header_raw_bytes: 0,
            response_header_wire_bytes: 0,
            request_body_bytes: 0,
            response_body_bytes: 0,
            expected_body_bytes: self.work.expected_body_bytes(due.url),
            outcome: Outcome::Ok,
        }
    }
}

/// Whether a whole response is the one that was asked for.
fn judge(sample: &Sample, expected: HttpVersion) -> Outcome {
    match (sample.version, sample.status) {
        (Some(version), _) if version != expected => Outcome::failed(
            FailureKind::WrongVersion,
            format!("the response came in {version}, expected {expected}"),
        ),
        (_, Some(status)) if !(200..300).contains(&status) => {
            Outcome::failed(FailureKind::WrongStatus, format!("status {status}, expected 2xx"))
        }
        _ => match sample.expected_body_bytes {
            Some(expected) if expected != sample.response_body_bytes => Outcome::failed(
                FailureKind::WrongLength,
                format!("{} body bytes, expected {expected}", sample.response_body_bytes),
            ),
            _ => Outcome::Ok,
        },
    }
}

/// Open rows by number; numbers are reused.
#[derive(Default)]
struct Slots {
    rows: Vec<Option<Sample>>,
    free: Vec<usize>,
}

impl Slots {
    fn insert(&mut self, sample: Sample) -> RequestId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() - 1
        });
        self.rows[index] = Some(sample);
        index as RequestId
    }

    fn get_mut(&mut self, request: RequestId) -> Option<&mut Sample> {
        self.rows.get_mut(usize::try_from(request).ok()?)?.as_mut()
    }

    fn remove(&mut self, request: RequestId) -> Option<Sample> {
        let index = usize::try_from(request).ok()?;
        let sample = self.rows.get_mut(index)?.take()?;
        self.free.push(index);
        Some(sample)
    }

    fn drain(&mut self) -> impl Iterator<Item = Sample> {
        self.free.clear();
        std::mem::take(&mut self.rows).into_iter().flatten()
    }
}
