//! The contract between a workload and the worker that sends its requests.

use model::media::ByteRange;
use model::player::PlayerEvent;
use model::sample::{Cause, Phase};
use model::shuffle::SplitMix64;

use crate::cmcd::CmcdKeys;
use crate::url_table::UrlTable;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which URL: an index into [`RequestSource::paths`].
    pub url: u32,
    /// When the workload wanted it sent, in nanoseconds since the run's start.
    pub intended_ns: u64,
}

/// What a workload makes of a resource that the server offers by a promise or a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It needs it and has not requested it. A promised response is that of this request; a hinted one is due
    /// now ([`RequestSource::poll_request`]).
    Taken(Due),
    /// It has requested it, or was offered it before.
    Late,
    /// It does not need it.
    Unneeded,
}

/// Requests that were due and never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeverSent {
    /// All of them.
    pub all: u64,
    /// Of these, those that found requests waiting for a free connection: every connection was in use.
    pub held: u64,
}

/// A body that a workload reads.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The bytes; `None` if they were too many.
    pub body: Option<&'a [u8]>,
    /// Scheme and authority of its URL, such as `https://example.org`.
    pub origin: &'a str,
    /// The time in nanoseconds since the run's start.
    pub now_ns: u64,
    /// The Unix time in nanoseconds.
    pub now_unix_ns: u64,
}

/// How a workload wants its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections to each host that are opened at the start and kept open; further ones are opened when
    /// requests wait.
    pub at_once: u32,
    /// The most open connections to each host.
    pub limit: u32,
    /// The most requests in flight on each connection.
    pub streams: u32,
}

/// The seeds of a client's random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// For what all threads of one workload must draw identically: the arrivals that they share.
    pub shared: u64,
    /// For everything else.
    pub own: u64,
}

/// Random numbers that are drawn from one seed and must not depend on each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// The order of URLs.
    Order = 1,
    /// Think times.
    Thinking = 2,
    /// When the clients of a group begin.
    Starts = 3,
}

/// When a client begins, in nanoseconds since the run's start.
///
/// Clients of a group may begin one after the other. The warm-up and the measured period of a loop are the
/// group's: the same for all its clients, so that all are measured while all are there. A client that begins
/// late has the rest of them, and the number of requests that ends a loop counts for each client. Page loads,
/// videos and scripts follow their client's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// When the group begins.
    pub group_ns: u64,
    /// When this client begins; not before its group.
    pub client_ns: u64,
}

impl Beginning {
    /// A client that begins with its group.
    pub const fn at(now: u64) -> Self {
        Beginning { group_ns: now, client_ns: now }
    }

    /// How much later than its group the client begins.
    pub(crate) const fn late_ns(self) -> u64 {
        self.client_ns.saturating_sub(self.group_ns)
    }
}

impl Seeds {
    /// The seeds of client number `client` of client group number `group`; `seed` is the run's.
    pub fn new(seed: u64, group: u16, client: u32) -> Self {
        // Group and client have bits of their own; client 0 has the seeds of a group with one client.
        let shared = seed ^ (u64::from(client) << 16);
        Seeds { shared, own: SplitMix64::new(shared ^ (u64::from(group) << 48)).next_u64() }
    }

    /// The seed of the times at which the clients of a group begin; `self` is the group's first client.
    pub fn starts(self) -> u64 {
        self.of(Stream::Starts)
    }

    /// The seed of one of the client's own streams.
    pub(crate) fn of(self, stream: Stream) -> u64 {
        SplitMix64::new(self.own ^ (stream as u64).rotate_left(32)).next_u64()
    }
}

/// A workload as its worker sees it: one client's. Times are nanoseconds since the run's start; hosts are
/// numbered from 0.
///
/// The defaults are those of a workload with one host, without warm-up, without timers.
pub trait RequestSource {
    /// The paths that [`Due::url`] counts.
    fn paths(&self) -> Vec<&str>;

    /// The next request to a host, if one is due at `now`; the caller sends it at once.
    fn poll_request(&mut self, target: usize, now: u64) -> Option<Due>;

    /// A request for `url` from [`RequestSource::poll_request`] ended at `now`.
    fn handle_done(&mut self, url: u32, is_ok: bool, now: u64);

    /// Whether nothing is left to do.
    fn is_finished(&self, now: u64) -> bool;

    /// How connections are opened, where the assignment allows `limit` connections to one host.
    fn connections(&self, limit: u32) -> Connections;

    /// The number of hosts.
    fn targets(&self) -> usize {
        1
    }

    /// The body length of a URL, where the workload knows it.
    fn expected_body_bytes(&self, _url: u32) -> Option<u64> {
        None
    }

    /// The part of a URL's resource that is requested; `None` for the whole.
    fn range(&self, _url: u32) -> Option<ByteRange> {
        None
    }

    /// What a request that was just taken says about its player (CMCD), if requests do.
    fn cmcd(&self, _url: u32) -> Option<CmcdKeys> {
        None
    }

    /// A URL whose request must be given up, until there is none: the request is cancelled, and fails.
    fn take_cancelled(&mut self) -> Option<u32> {
        None
    }

    /// Whether the workload reads the body of a URL: it gets it by [`RequestSource::handle_content`].
    fn wants_body(&self, _url: u32) -> bool {
        false
    }

    /// The body of a URL that it reads, before the request is done. `urls` takes the URLs that it names.
    fn handle_content(&mut self, _url: u32, _content: &Content<'_>, _urls: &mut UrlTable) {}

    /// Whether it begins when the connections that are opened at the start can take requests
    /// ([`RequestSource::handle_connections`]).
    fn awaits_connections(&self) -> bool {
        false
    }

    /// The connections that are opened at the start can take requests, or one of them could not be opened.
    fn handle_connections(&mut self, _now: u64) {}

    /// Queues what is due by `now`.
    fn handle_time(&mut self, _now: u64) {}

    /// The server promises the resource at `path` ([`Cause::Push`]) or hints at it ([`Cause::Hint`]).
    fn handle_offer(&mut self, _path: &str, _cause: Cause, _now: u64) -> Offer {
        Offer::Unneeded
    }

    /// Why the request for `url` began.
    fn cause(&self, _url: u32) -> Cause {
        Cause::Due
    }

    /// `received_bytes` of the body of `url` have arrived so far.
    fn handle_body(&mut self, _url: u32, _received_bytes: u64, _now: u64) {}

    /// The whole body of `url` has arrived, whatever its length.
    fn handle_body_end(&mut self, _url: u32, _now: u64) {}

    /// Requests to a host that are due and can use *any* connection.
    fn waiting(&self, _target: usize) -> usize {
        0
    }

    /// Whether requests can wait for any connection; those of a closed loop belong to one.
    fn has_queue(&self) -> bool {
        true
    }

    /// Whether a schedule sets when requests are due. Then lateness counts, and requests spread evenly over
    /// all connections.
    fn is_paced(&self) -> bool {
        false
    }

    /// When the workload must be asked again without any other event: a request becomes due, or time ends it.
    fn next_ns(&self) -> Option<u64> {
        None
    }

    /// A player's events since the last call, ordered by time.
    fn take_player_events(&mut self) -> Vec<PlayerEvent> {
        Vec::new()
    }

    /// Ends the workload early; returns how many requests were due and never sent.
    fn give_up(&mut self) -> NeverSent {
        NeverSent::default()
    }

    /// The most requests that are still to be sent.
    fn left(&self) -> u64 {
        u64::MAX
    }

    /// When the warm-up ends.
    fn warmup_ends_ns(&self) -> u64 {
        0
    }

    /// The phase of a request that was intended at this time.
    fn phase(&self, intended_ns: u64) -> Phase {
        if intended_ns < self.warmup_ends_ns() { Phase::Warmup } else { Phase::Measure }
    }

    /// The phase of a request that has ended, from the one in which it began.
    fn phase_at_end(&self, begun: Phase, _done_ns: u64) -> Phase {
        begun
    }

    /// How long a stream waits between a response and its next request.
    fn think_ns(&mut self) -> u64 {
        0
    }

    /// How many of the connections that are opened at the start are open by `now`, and when the next one is
    /// opened.
    fn opened_by(&self, _now: u64) -> (u32, Option<u64>) {
        (self.connections(0).at_once, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_client_has_the_seeds_of_an_only_client() {
        // The second output of SplitMix64 with seed 1234567, as other implementations print it.
        let gamma = 0x9e37_79b9_7f4a_7c15_u64;
        let seeds = Seeds::new(1_234_567_u64.wrapping_add(gamma), 0, 0);
        assert_eq!(seeds.own, 3_203_168_211_198_807_973);
        assert_eq!(seeds.shared, 1_234_567_u64.wrapping_add(gamma));
    }

    #[test]
    fn clients_and_groups_have_different_seeds() {
        let mut own: Vec<u64> = (0..100)
            .flat_map(|group| (0..100).map(move |client| Seeds::new(9, group, client).own))
            .chain([u32::MAX, 1 << 16].map(|client| Seeds::new(9, 0, client).own))
            .collect();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), 10_002);
        assert_ne!(Seeds::new(9, 0, 0).starts(), Seeds::new(9, 1, 0).starts());
    }
}
