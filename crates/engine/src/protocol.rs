//! The contract of an HTTP version that runs over one ordered stream of bytes: HTTP/1.1 and HTTP/2.
//!
//! It is independent of TCP and TLS; `crate::tcp` runs it over both. The rules of [`crate::contract`] hold
//! here too.

use model::sample::Failure;

use crate::contract::{HeaderBytes, NotNow, Request, RequestId, Sink};

/// One HTTP version over an ordered stream of cleartext bytes.
///
/// It reports [`crate::Event::Closed`] at most once, when a call with a sink closes it, and never
/// [`crate::Event::Ready`].
pub trait Protocol {
    /// The stream is open: queues the first output (HTTP/2: preface, SETTINGS, WINDOW_UPDATE).
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

    /// `length` bytes were discarded, at most `skippable_bytes`.
    fn handle_skipped(&mut self, _length: u64, _sink: &mut Sink<'_>) {}

    /// The stream ended in order: completes a body that ends with the stream, fails unanswered requests.
    fn handle_end(&mut self, sink: &mut Sink<'_>);

    /// The stream failed: every unanswered request fails with `failure`.
    fn handle_broken(&mut self, failure: Failure, sink: &mut Sink<'_>);

    /// See [`crate::Connection::cancel`].
    fn cancel(&mut self, id: RequestId);

    /// See [`crate::Connection::close`].
    fn close(&mut self);

    /// Appends pending output to `out`, at most about 64 kB; returns whether there was any.
    fn poll_output(&mut self, out: &mut Vec<u8>) -> bool;

    /// Whether the stream is to be closed after the output; no more requests are accepted then.
    fn is_closed(&self) -> bool;
}
