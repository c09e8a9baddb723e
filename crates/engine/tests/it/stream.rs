//! HTTP/1.1 and HTTP/2 over an ordered stream of bytes, against scripted peers and a real one.

use bytes::Bytes;
use engine::{Event, Fate, Head, Promise, Protocol, Pushed, Request, RequestId, VaryingField};
use model::Outcome;
use model::sample::{Failure, FailureKind};

mod h1;
mod h2;
mod pins;
mod push;
mod real_h2;

/// An event with its own memory; pieces of one body are joined, since their cuts are those of the input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoggedEvent {
    Informational(RequestId, u16, String),
    Head(RequestId, Head),
    Data(RequestId, Vec<u8>),
    Skipped(RequestId, u64),
    End(RequestId),
    Failed(RequestId, FailureKind, String),
    Pushed(Pushed),
    PushedInVain(u64),
    Promised(RequestId, String),
    Closed(Outcome),
}

/// Everything that an engine said.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(crate) Vec<LoggedEvent>);

impl Log {
    pub(crate) fn take(&mut self, event: Event<'_>) {
        let seen = match event {
            Event::Ready(_) => panic!("a protocol does not say Ready"),
            Event::Informational { request, status, links } => {
                LoggedEvent::Informational(request, status, String::from_utf8_lossy(links).into_owned())
            }
            Event::Head { request, head } => LoggedEvent::Head(request, head),
            Event::Data { request, bytes } => {
                assert!(!bytes.is_empty(), "an empty piece");
                if let Some(LoggedEvent::Data(last, body)) = self.0.last_mut()
                    && *last == request
                {
                    return body.extend_from_slice(bytes);
                }
                LoggedEvent::Data(request, bytes.to_vec())
            }
            Event::Skipped { request, length } => LoggedEvent::Skipped(request, length),
            Event::End { request } => LoggedEvent::End(request),
            Event::Failed { request, failure } => LoggedEvent::Failed(request, failure.kind, failure.reason),
            Event::Pushed(pushed) => LoggedEvent::Pushed(pushed),
            Event::PushedInVain(bytes) => LoggedEvent::PushedInVain(bytes),
            Event::Promised { promise, fate } => {
                // The path names what becomes of it.
                *fate = match promise.path {
                    b"/take" => Fate::Take(100),
                    b"/cancel" => Fate::Cancel,
                    b"/refuse" => Fate::Refuse,
                    _ => return,
                };
                let Promise { request, scheme, authority, path } = promise;
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                LoggedEvent::Promised(request, text(scheme) + "://" + &text(authority) + &text(path))
            }
            Event::Closed(outcome) => LoggedEvent::Closed(outcome),
        };
        self.0.push(seen);
    }

    /// The kind and the reason with which `request` failed.
    #[track_caller]
    pub(crate) fn failure_of(&self, request: RequestId) -> (FailureKind, &str) {
        let failed = self.0.iter().find_map(|seen| match seen {
            LoggedEvent::Failed(id, kind, reason) if *id == request => Some((*kind, reason.as_str())),
            _ => None,
        });
        failed.unwrap_or_else(|| panic!("request {request} did not fail: {:?}", self.0))
    }

    #[track_caller]
    pub(crate) fn closed_with(&self) -> &Outcome {
        match self.0.last() {
            Some(LoggedEvent::Closed(outcome)) => outcome,
            last => panic!("the last event is {last:?} and not Closed"),
        }
    }

    /// The kind and the reason with which the connection failed.
    #[track_caller]
    pub(crate) fn closed_failure(&self) -> (FailureKind, &str) {
        match self.closed_with() {
            Outcome::Failed(Failure { kind, reason }) => (*kind, reason),
            other => panic!("the connection ended with {other:?}"),
        }
    }

    pub(crate) fn has_ended(&self, request: RequestId) -> bool {
        self.0.contains(&LoggedEvent::End(request))
    }

    pub(crate) fn body_of(&self, request: RequestId) -> Vec<u8> {
        let pieces = self.0.iter().filter_map(|seen| match seen {
            LoggedEvent::Data(id, bytes) if *id == request => Some(bytes.as_slice()),
            _ => None,
        });
        pieces.collect::<Vec<_>>().concat()
    }

    #[track_caller]
    pub(crate) fn head_of(&self, request: RequestId) -> Head {
        let head = self.0.iter().find_map(|seen| match seen {
            LoggedEvent::Head(id, head) if *id == request => Some(*head),
            _ => None,
        });
        head.unwrap_or_else(|| panic!("request {request} has no head: {:?}", self.0))
    }
}

/// Hands `bytes` over in pieces whose lengths `lengths` gives, again and again.
pub(crate) fn deliver(protocol: &mut impl Protocol, bytes: &[u8], lengths: &[usize], log: &mut Log) {
    let mut rest = bytes;
    for &length in lengths.iter().cycle() {
        if rest.is_empty() {
            return;
        }
        let (piece, more) = rest.split_at(length.clamp(1, rest.len()));
        protocol.handle_bytes(piece, &mut |event| log.take(event));
        rest = more;
    }
}

/// All that the engine wants to send.
pub(crate) fn output(protocol: &mut impl Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    while protocol.poll_output(&mut out) {}
    out
}

pub(crate) fn get(path: &str) -> Request {
    request("GET", path, b"")
}

/// The same with a field that no other request has.
pub(crate) fn varied(request: Request, value: &str) -> Request {
    let varying = Some(VaryingField { name: "x-request-id", value: value.to_owned() });
    Request { varying, ..request }
}

pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Request {
    // Equal numbers promise equal contents: the number is made of the contents.
    let text = format!("{method}{path}{}", body.len());
    let template = text.bytes().fold(7u32, |sum, byte| (sum * 31 + u32::from(byte)) % 4001);
    Request {
        template,
        method: method.to_owned(),
        scheme: "http".to_owned(),
        authority: "example.test".to_owned(),
        path: path.to_owned(),
        fields: vec![("accept".to_owned(), "*/*".to_owned()), ("user-agent".to_owned(), "h123".to_owned())],
        varying: None,
        body: Bytes::copy_from_slice(body),
    }
}

pub(crate) fn broken() -> Failure {
    Failure { kind: FailureKind::Reset, reason: "connection reset by peer".to_owned() }
}
