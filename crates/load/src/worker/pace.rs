//! Whether the client is on time: due requests between sockets, gaps in its loop, and since when requests
//! could have been sent.

use workload::RequestSource;

use super::Worker;

impl Worker<'_> {
    /// The loop acts now. Between two of these calls it handles one socket or opens one connection.
    #[inline]
    pub(crate) fn acts(&mut self, now: u64) {
        self.suspended.note(now.saturating_sub(self.acts_by_ns));
        self.acts_by_ns = now;
    }

    /// Sends requests that became due while sockets were handled, so that no request waits for all sockets.
    pub(super) fn keep_pace(&mut self) {
        if !self.session.is_paced {
            return;
        }
        let now = self.clock.now_ns();
        while let Some(key) = self.roster.timers.pop(now) {
            let place = u32::try_from(key).unwrap_or(u32::MAX);
            let Some(client) = self.session.client(place) else { continue };
            client.work.handle_time(now);
            let next_ns = client.work.next_ns().filter(|next_ns| *next_ns > now);
            self.roster.timers.set(key, next_ns);
            (0..self.hosts.len()).for_each(|host| self.hand_out(place, host));
            self.mark(place);
        }
    }

    /// Since when a connection of this one's host could have taken a request: an earlier time at which it
    /// could is the client's, not the server's.
    pub(super) fn free_since(&self, key: usize, now: u64) -> u64 {
        if !self.session.is_paced {
            return now;
        }
        let free = |key: usize| {
            let conn = self.conns.get(key).and_then(Option::as_ref)?;
            let has_room = conn.has_room(self.policy.streams, self.requests_each);
            conn.free_ns.filter(|_| has_room)
        };
        // The first of the idle connections is the one that is idle for longest.
        let first = self.conns.get(key).and_then(Option::as_ref).and_then(|conn| {
            let client = self.session.clients.get(conn.client as usize)?.as_ref()?;
            client.hosts.get(conn.host)?.idle.front().copied()
        });
        [Some(key), first].into_iter().flatten().filter_map(free).fold(now, u64::min)
    }
}
