//! The contract of an HTTP version that runs over one ordered stream of bytes: HTTP/1.1 and HTTP/2.
//!
//! It knows neither TCP nor TLS; `crate::tcp` puts it on both. The rules of [`crate::contract`] hold here too.

use model::sample::Failure;

use crate::contract::{HeaderBytes, NotNow, Request, RequestId, Sink};

/// One HTTP version over an ordered stream of cleartext bytes.
///
/// It says [`crate::Event::Closed`] at most once, when a call with a sink ends it, and never [`crate::Event::Ready`].
pub trait Protocol {
    /// The stream is there: queues what a client sends first (HTTP/2: preface, SETTINGS, WINDOW_UPDATE).
    fn start(&mut self);

    /// See [`crate::Connection::available_requests`].
    fn available_requests(&self) -> usize;

    /// See [`crate::Connection::send_request`].
    ///
    /// # Errors
    /// [`NotNow`] where `available_requests` is 0.
    fn send_request(&mut self, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow>;

    /// Takes bytes of the stream; all of them are consumed.
    fn handle_bytes(&mut self, bytes: &[u8], sink: &mut Sink<'_>);

    /// See [`crate::Connection::skippable_bytes`].
    fn skippable_bytes(&self) -> u64 {
        0
    }

    /// So many bytes were thrown away, at most `skippable_bytes`.
    fn handle_skipped(&mut self, _length: u64, _sink: &mut Sink<'_>) {}

    /// The stream ended in good order: completes a body that runs until the end, fails what is unanswered.
    fn handle_end(&mut self, sink: &mut Sink<'_>);

    /// The stream broke: every unanswered request fails with `failure`.
    fn handle_broken(&mut self, failure: Failure, sink: &mut Sink<'_>);

    /// See [`crate::Connection::cancel`].
    fn cancel(&mut self, id: RequestId);

    /// See [`crate::Connection::close`].
    fn close(&mut self);

    /// Appends what is to be sent to `out`, at most about 64 kB; whether there was anything.
    fn poll_output(&mut self, out: &mut Vec<u8>) -> bool;

    /// Whether it wants the stream closed after what `poll_output` gave; no more requests are taken then.
    fn is_closed(&self) -> bool;
}
