//! HTTP/2 (RFC 9113), the client's side of one connection.
//!
//! `mod.rs` has the connection's states, `receive` splits the input into frames, `control` handles the frames
//! of the connection, `response` those of a response, `send` creates the output. DATA is passed on as slices
//! of the input; only an incomplete frame header, control frame or header block is buffered.

pub mod error;

pub mod flow;
pub mod frame;
pub mod hpack;
pub mod request;
pub mod settings;
pub mod stream;

mod control;
mod output;
mod push;
mod receive;
mod response;
mod send;

use std::collections::VecDeque;

use model::Outcome;
use model::pins::Http2Pins;
use model::sample::{Failure, FailureKind};

use crate::contract::{Event, HeaderBytes, NotNow, Request, RequestId, Sink};
use crate::protocol::Protocol;
use error::{ConnectionError, Result, StreamError};
use flow::{LARGEST_WINDOW, ReceiveWindow, SendWindow};
use frame::ErrorCode;
use hpack::Decoder;
use output::Output;
use push::Pushes;
use receive::Reader;
use request::RequestEncoder;
use response::{Block, KnownBlock};
use settings::{DEFAULT_WINDOW, LocalSettings, PeerSettings};
use stream::{Phase, Streams};

/// The limits of the peer's input, and of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest field section, as defined in RFC 9113, section 6.5.2; announced to the peer.
    pub header_list_bytes: u32,
    /// The largest compressed header block over HEADERS and CONTINUATION frames, in bytes.
    pub header_block_bytes: usize,
    /// The most frames of one header block.
    pub header_block_frames: u32,
    /// The most 1xx responses before a final one.
    pub informational: u32,
    /// The most consecutive frames without progress of a response (PING, SETTINGS, PRIORITY, empty DATA …).
    pub idle_frames: u32,
    /// The most bytes of replies (acknowledgements, resets) that wait to be sent.
    pub reply_bytes: usize,
    /// The most requests in flight, whatever the peer's limit.
    pub concurrent_streams: u32,
    /// The most concurrent pushed responses; 0 disables push.
    pub pushes: u32,
}

/// The limit of concurrent pushed responses, if push is enabled.
pub const PUSHES: u32 = 100;

impl Default for Limits {
    /// 256 kB of header list and block (as Chromium), 1024 frames a block, 32 informational responses, 10 000
    /// idle frames, 64 kB of replies, 4096 streams, no push.
    fn default() -> Self {
        Limits {
            header_list_bytes: 256 << 10,
            header_block_bytes: 256 << 10,
            header_block_frames: 1024,
            informational: 32,
            idle_frames: 10_000,
            reply_bytes: 64 << 10,
            concurrent_streams: 4096,
            pushes: 0,
        }
    }
}

/// The client's side of an HTTP/2 connection.
#[derive(Debug)]
pub struct Http2 {
    limits: Limits,
    local: LocalSettings,
    /// The connection's receive window, in bytes.
    connection_window: u32,
    peer: PeerSettings,
    life: Life,
    /// The peer's SETTINGS were received.
    settings_seen: bool,
    /// The peer has acknowledged ours.
    settings_acknowledged: bool,
    goaway: Option<Goaway>,
    said_closed: bool,
    streams: Streams,
    pushes: Pushes,
    /// Up to this stream, the peer may send frames on streams that we reset.
    highest_reset: u32,
    reader: Reader,
    block: Option<Block>,
    known: KnownBlock,
    decoder: Decoder,
    encoder: RequestEncoder,
    received: ReceiveWindow,
    send_window: SendWindow,
    /// Streams with a request body to send, in the order of their turns.
    sending: VecDeque<u32>,
    output: Output,
    idle_frames: u32,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    New,
    Open,
    /// `close` was called: no new requests.
    Closing,
    Closed,
}

/// The peer's GOAWAY.
#[derive(Clone, Debug)]
struct Goaway {
    last_stream: u32,
    code: ErrorCode,
    debug: String,
}

impl Http2 {
    /// A connection that announces the settings of `pins`, with these limits.
    pub fn new(pins: &Http2Pins, limits: Limits) -> Self {
        let local = LocalSettings {
            header_table_bytes: pins.header_table_bytes,
            stream_window_bytes: pins.stream_window_bytes,
            max_frame_bytes: pins.max_frame_bytes,
            header_list_bytes: limits.header_list_bytes,
            pushes: limits.pushes,
        };
        // Until our SETTINGS are acknowledged the peer may use the defaults.
        let table = pins.header_table_bytes.max(4096) as usize;
        Http2 {
            limits,
            local: local.permitted(),
            connection_window: pins.connection_window_bytes.clamp(DEFAULT_WINDOW, LARGEST_WINDOW),
            peer: PeerSettings::default(),
            life: Life::New,
            settings_seen: false,
            settings_acknowledged: false,
            goaway: None,
            said_closed: false,
            streams: Streams::default(),
            pushes: Pushes::default(),
            highest_reset: 0,
            reader: Reader::default(),
            block: None,
            known: KnownBlock::default(),
            decoder: Decoder::new(table),
            encoder: RequestEncoder::default(),
            received: ReceiveWindow::default(),
            send_window: SendWindow::new(DEFAULT_WINDOW),
            sending: VecDeque::new(),
            output: Output::default(),
            idle_frames: 0,
        }
    }

    /// Marks all stream identifiers below `id` as used; for tests of identifier exhaustion.
    pub fn skip_streams_to(&mut self, id: u32) {
        self.streams.skip_to(id);
    }

    /// Closes the connection because of `error`: sends GOAWAY and fails unanswered requests.
    fn fail(&mut self, error: &ConnectionError, sink: &mut Sink<'_>) {
        frame::write_goaway(error.code, self.output.frames());
        self.end(Outcome::Failed(error.failure()), sink);
    }

    /// Closes the connection: unanswered requests fail if the outcome is a failure.
    fn end(&mut self, outcome: Outcome, sink: &mut Sink<'_>) {
        self.life = Life::Closed;
        self.sending.clear();
        self.block = None;
        self.pushes.finish_all(&outcome, sink);
        let streams = self.streams.take_where(|_| true);
        if let Outcome::Failed(failure) = &outcome {
            for stream in streams.iter().filter(|stream| stream.phase != Phase::Answered) {
                sink(Event::Failed { request: stream.request, failure: failure.clone() });
            }
        }
        if !std::mem::replace(&mut self.said_closed, true) {
            sink(Event::Closed(outcome));
        }
    }

    /// Closes the connection in order when no request is in flight.
    fn end_when_done(&mut self, sink: &mut Sink<'_>) {
        if self.life == Life::Closed || self.awaits_responses() {
            return;
        }
        match &self.goaway {
            Some(goaway) if goaway.code != ErrorCode::NO_ERROR => {
                let failure = Failure::new(FailureKind::Closed, goaway.reason());
                self.end(Outcome::Failed(failure), sink);
            }
            Some(_) => self.end(Outcome::Ok, sink),
            None if self.life == Life::Closing => self.end(Outcome::Ok, sink),
            None => {}
        }
    }

    /// Whether responses are due: to requests, or pushed ones that the driver has taken.
    fn awaits_responses(&self) -> bool {
        self.streams.open() > 0 || self.pushes.has_taken()
    }

    /// Closes a stream because of `error`: resets it and fails its request.
    fn fail_stream(&mut self, id: u32, error: &StreamError, sink: &mut Sink<'_>) -> Result {
        if id.is_multiple_of(2) {
            return self.fail_push(id, error, sink);
        }
        let Some(stream) = self.streams.remove(id) else { return Ok(()) };
        self.reset(id, error.code);
        if stream.phase != Phase::Answered {
            sink(Event::Failed { request: stream.request, failure: error.failure() });
        }
        self.count_reply(13)
    }

    /// A stream, ours or a pushed one.
    #[inline]
    fn stream_mut(&mut self, id: u32) -> Option<&mut stream::Stream> {
        if id.is_multiple_of(2) { self.pushes.get_mut(id) } else { self.streams.get_mut(id) }
    }

    /// Queues RST_STREAM and notes that the peer may still send frames.
    fn reset(&mut self, id: u32, code: ErrorCode) {
        frame::write_reset(id, code, self.output.frames());
        self.highest_reset = self.highest_reset.max(id);
    }

    /// Limits the replies that the peer makes us queue.
    fn count_reply(&mut self, bytes: usize) -> Result {
        if self.output.count_reply(bytes) > self.limits.reply_bytes {
            let limit = self.limits.reply_bytes;
            let reason = format!("the server requests more than {limit} bytes of replies at once");
            return Err(ConnectionError::limit(reason));
        }
        Ok(())
    }

    /// Closes without output after `close` or GOAWAY if the last request was cancelled.
    fn close_when_idle(&mut self) {
        let leaving = self.life == Life::Closing || self.goaway.is_some();
        if leaving && !self.awaits_responses() {
            self.life = Life::Closed;
        }
    }
}

impl Goaway {
    fn reason(&self) -> String {
        let debug = if self.debug.is_empty() { String::new() } else { format!(" (\"{}\")", self.debug) };
        format!("the server sent GOAWAY {}{debug}", self.code)
    }
}

impl Protocol for Http2 {
    fn start(&mut self) {
        if self.life == Life::New {
            self.life = Life::Open;
            self.write_preface();
        }
    }

    fn available_requests(&self) -> usize {
        if self.life != Life::Open || self.goaway.is_some() {
            return 0;
        }
        let allowed = self.peer.concurrent_streams.min(self.limits.concurrent_streams) as usize;
        allowed.saturating_sub(self.streams.open()).min(self.streams.identifiers_left())
    }

    fn send_request(&mut self, id: RequestId, request: &Request) -> std::result::Result<HeaderBytes, NotNow> {
        if self.available_requests() == 0 {
            return Err(NotNow);
        }
        self.begin_request(id, request).ok_or(NotNow)
    }

    fn handle_bytes(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let mut rest = bytes;
        while !rest.is_empty() && self.life != Life::Closed {
            match self.step(rest, sink) {
                Ok(left) => rest = left,
                Err(error) => return self.fail(&error, sink),
            }
        }
        self.end_when_done(sink);
    }

    fn handle_end(&mut self, sink: &mut Sink<'_>) {
        if self.life == Life::Closed && self.said_closed {
            return;
        }
        if !self.awaits_responses() {
            return match &self.goaway {
                Some(_) => self.end_when_done(sink),
                None => self.end(Outcome::Ok, sink),
            };
        }
        let reason = match &self.goaway {
            Some(goaway) => {
                format!("{} and closed the connection before the response was complete", goaway.reason())
            }
            None if !self.settings_seen => {
                "the server closed the connection before its SETTINGS: it may not speak HTTP/2 here".into()
            }
            None => {
                "the server closed the connection before the response was complete, without GOAWAY".into()
            }
        };
        self.end(Outcome::Failed(Failure::new(FailureKind::Closed, reason)), sink);
    }

    fn handle_broken(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        if self.life == Life::Closed && self.said_closed {
            return;
        }
        self.end(Outcome::Failed(failure), sink);
    }

    fn cancel(&mut self, id: RequestId) {
        let own = self.streams.iter_mut().find(|stream| stream.request == id).map(|stream| stream.id);
        if let Some(stream) = own {
            self.streams.remove(stream);
            self.reset(stream, ErrorCode::CANCEL);
        } else if let Some(stream) = self.pushes.cancel(id) {
            frame::write_reset(stream, ErrorCode::CANCEL, self.output.frames());
        }
        self.close_when_idle();
    }

    fn close(&mut self) {
        if matches!(self.life, Life::New | Life::Open) {
            if self.life == Life::Open {
                frame::write_goaway(ErrorCode::NO_ERROR, self.output.frames());
            }
            self.life = Life::Closing;
        }
        self.close_when_idle();
    }

    fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        self.fill(out)
    }

    fn is_closed(&self) -> bool {
        self.life == Life::Closed
    }
}
