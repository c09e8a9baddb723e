//! The requests in flight, found by stream without hashing: QUIC numbers request streams one after the other.

use std::collections::VecDeque;

use bytes::Bytes;
use quinn_proto::{Dir, Side, StreamId};

use super::response::Response;
use crate::contract::RequestId;

/// Marks a stream without an exchange.
const NONE: u32 = u32::MAX;

/// A request and its response.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) request: RequestId,
    stream_index: u64,
    pub(super) response: Response,
    /// What flow control has not let through: head, body.
    pub(super) unsent: [Bytes; 2],
}

impl Exchange {
    /// Whether something of the request is unsent.
    pub(super) fn is_sending(&self) -> bool {
        self.unsent.iter().any(|bytes| !bytes.is_empty())
    }
}

/// Exchanges by stream.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// For each stream from `first_index` on, the place in `slots`, or [`NONE`].
    places: VecDeque<u32>,
    first_index: u64,
    /// Exchanges and, between them, unused ones that keep their memory.
    slots: Vec<Exchange>,
    unused: Vec<u32>,
}

impl Table {
    /// Begins an exchange on a stream that has none; streams come in rising order.
    pub(super) fn insert(&mut self, stream: StreamId, request: RequestId) -> &mut Exchange {
        let place = self.unused.pop().unwrap_or_else(|| {
            self.slots.push(Exchange::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
        });
        if self.places.is_empty() {
            self.first_index = stream.index();
        }
        while self.first_index + (self.places.len() as u64) < stream.index() {
            self.places.push_back(NONE);
        }
        self.places.push_back(place);
        let exchange = &mut self.slots[place as usize];
        exchange.request = request;
        exchange.stream_index = stream.index();
        exchange
    }

    /// The exchange on a stream.
    #[inline]
    pub(super) fn get(&mut self, stream: StreamId) -> Option<&mut Exchange> {
        let place = self.place(stream)?;
        self.slots.get_mut(place as usize)
    }

    /// Ends the exchange on a stream; its request.
    pub(super) fn remove(&mut self, stream: StreamId) -> Option<RequestId> {
        let place = self.place(stream)?;
        let at = usize::try_from(stream.index() - self.first_index).ok()?;
        self.places[at] = NONE;
        while self.places.front() == Some(&NONE) {
            self.places.pop_front();
            self.first_index += 1;
        }
        self.unused.push(place);
        let exchange = self.slots.get_mut(place as usize)?;
        exchange.unsent = [Bytes::new(), Bytes::new()];
        Some(exchange.request)
    }

    /// Whether nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The exchange on the highest stream, where that is `first_stream` or above.
    pub(super) fn last_from(&mut self, first_stream: u64) -> Option<(StreamId, RequestId)> {
        let last = self.places.iter().rposition(|place| *place != NONE)?;
        let exchange = self.slots.get(self.places[last] as usize)?;
        let stream = StreamId::new(Side::Client, Dir::Bi, exchange.stream_index);
        (u64::from(stream) >= first_stream).then_some((stream, exchange.request))
    }

    /// The stream of a request.
    pub(super) fn stream_of(&self, request: RequestId) -> Option<StreamId> {
        let mut places = self.places.iter().filter(|place| **place != NONE);
        let place = places.find(|place| self.slots[**place as usize].request == request)?;
        let index = self.slots[*place as usize].stream_index;
        Some(StreamId::new(Side::Client, Dir::Bi, index))
    }

    #[inline]
    fn place(&self, stream: StreamId) -> Option<u32> {
        let at = stream.index().checked_sub(self.first_index)?;
        let place = *self.places.get(usize::try_from(at).ok()?)?;
        (place != NONE).then_some(place)
    }
}
