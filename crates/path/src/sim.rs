//! Two endpoints connected by two paths, on a virtual clock: tests run the engines over a bad network.

use crate::path::{Fate, Path};

/// An endpoint without I/O: one mutation (`handle_*`), then `poll_transmit` until it returns `None`.
pub trait Endpoint {
    /// Takes a datagram that arrived.
    fn handle_datagram(&mut self, now_ns: u64, datagram: Vec<u8>);

    /// Does what was due by `now_ns`; a no-op when called early.
    fn handle_timeout(&mut self, now_ns: u64);

    /// The next datagram to send now, if any.
    fn poll_transmit(&mut self, now_ns: u64) -> Option<Vec<u8>>;

    /// When `handle_timeout` must be called, if ever.
    fn next_timeout_ns(&self) -> Option<u64>;
}

/// Two endpoints, the paths between them, and the clock.
#[derive(Debug)]
pub struct Simulation<C, S> {
    /// The endpoint that `up` leads away from.
    pub client: C,
    /// The endpoint that `up` leads to.
    pub server: S,
    /// From client to server.
    pub up: Path<Vec<u8>>,
    /// From server to client.
    pub down: Path<Vec<u8>>,
    /// Bytes of headers that every datagram has on the wire.
    pub overhead_bytes: u64,
    /// The virtual clock.
    pub now_ns: u64,
    /// The number of events: deliveries, timeouts and transmissions.
    pub events: u64,
}

/// The length of Ethernet, IPv4 and UDP headers.
pub const UDP_OVERHEAD_BYTES: u64 = 14 + 20 + 8;

/// Why a simulation stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// No datagram and no timeout is pending, but the caller's condition does not hold.
    #[error(
        "no datagram or timeout is pending at {now_ns} ns after {events} events; one endpoint has no timeout armed"
    )]
    Silent {
        /// The virtual clock.
        now_ns: u64,
        /// The number of events.
        events: u64,
    },
    /// The limit on events was reached.
    #[error(
        "no end after {events} events, at {now_ns} ns; raise the limit, or look for endpoints that answer each other endlessly"
    )]
    TooManyEvents {
        /// The virtual clock.
        now_ns: u64,
        /// The limit.
        events: u64,
    },
}

impl<C: Endpoint, S: Endpoint> Simulation<C, S> {
    /// Connects two endpoints; the clock is 0 and the overhead is [`UDP_OVERHEAD_BYTES`].
    pub const fn new(client: C, server: S, up: Path<Vec<u8>>, down: Path<Vec<u8>>) -> Self {
        Simulation { client, server, up, down, overhead_bytes: UDP_OVERHEAD_BYTES, now_ns: 0, events: 0 }
    }

    /// Runs until `is_done`, which is called after every step, returns true.
    ///
    /// # Errors
    /// Nothing is pending before that, or this call reaches `limit` events.
    pub fn run_until(
        &mut self,
        limit: u64,
        mut is_done: impl FnMut(&mut C, &mut S) -> bool,
    ) -> Result<(), SimulationError> {
        let last_event = self.events.saturating_add(limit);
        loop {
            self.transmit(last_event);
            if self.events >= last_event {
                return Err(SimulationError::TooManyEvents { now_ns: self.now_ns, events: limit });
            }
            if is_done(&mut self.client, &mut self.server) {
                return Ok(());
            }
            let Some(next_ns) = self.next_event_ns() else {
                return Err(SimulationError::Silent { now_ns: self.now_ns, events: self.events });
            };
            self.now_ns = self.now_ns.max(next_ns);
            self.step();
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        [
            self.up.next_release_ns(),
            self.down.next_release_ns(),
            self.client.next_timeout_ns(),
            self.server.next_timeout_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Processes one event: the datagram that is due, or else the timeout that is due.
    fn step(&mut self) {
        self.events += 1;
        let now_ns = self.now_ns;
        if let Some(release) = self.up.poll_release(now_ns) {
            self.server.handle_datagram(now_ns, release.packet);
        } else if let Some(release) = self.down.poll_release(now_ns) {
            self.client.handle_datagram(now_ns, release.packet);
        } else if self.client.next_timeout_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.client.handle_timeout(now_ns);
        } else if self.server.next_timeout_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.server.handle_timeout(now_ns);
        }
    }

    fn transmit(&mut self, last_event: u64) {
        let (now_ns, overhead_bytes) = (self.now_ns, self.overhead_bytes);
        self.events +=
            transmit(&mut self.client, &mut self.up, now_ns, overhead_bytes, last_event - self.events);
        self.events +=
            transmit(&mut self.server, &mut self.down, now_ns, overhead_bytes, last_event - self.events);
    }
}

/// Passes the endpoint's datagrams to the path, at most `limit`; returns their number.
fn transmit<E: Endpoint>(
    endpoint: &mut E,
    path: &mut Path<Vec<u8>>,
    now_ns: u64,
    overhead_bytes: u64,
    limit: u64,
) -> u64 {
    let mut sent = 0;
    while sent < limit
        && let Some(datagram) = endpoint.poll_transmit(now_ns)
    {
        let length_bytes = datagram.len() as u64 + overhead_bytes;
        let _: Fate = path.handle_packet(now_ns, length_bytes, datagram);
        sent += 1;
    }
    sent
}

#[cfg(test)]
mod tests {
    use model::network::{Direction, Loss};

    use super::*;
    use crate::{LinkDirection, Seeds};

    const MS: u64 = 1_000_000;

    /// Stop-and-wait with a timer: sends a number until the peer echoes it.
    struct Sender {
        next: u8,
        last: u8,
        resend_at_ns: u64,
        done_ns: u64,
    }

    /// Echoes datagrams.
    #[derive(Default)]
    struct Echo(Vec<Vec<u8>>);

    impl Endpoint for Sender {
        fn handle_datagram(&mut self, now_ns: u64, datagram: Vec<u8>) {
            if datagram == [self.next] {
                self.next += 1;
                self.resend_at_ns = now_ns;
                self.done_ns = now_ns;
            }
        }
        fn handle_timeout(&mut self, _: u64) {}
        fn poll_transmit(&mut self, now_ns: u64) -> Option<Vec<u8>> {
            let is_due = self.next < self.last && now_ns >= self.resend_at_ns;
            is_due.then(|| {
                self.resend_at_ns = now_ns + 100 * MS;
                vec![self.next]
            })
        }
        fn next_timeout_ns(&self) -> Option<u64> {
            (self.next < self.last).then_some(self.resend_at_ns)
        }
    }

    impl Endpoint for Echo {
        fn handle_datagram(&mut self, _: u64, datagram: Vec<u8>) {
            self.0.push(datagram);
        }
        fn handle_timeout(&mut self, _: u64) {}
        fn poll_transmit(&mut self, _: u64) -> Option<Vec<u8>> {
            self.0.pop()
        }
        fn next_timeout_ns(&self) -> Option<u64> {
            None
        }
    }

    fn simulate(loss_share: f64, seed: u64, limit: u64) -> (Result<(), SimulationError>, u64) {
        let loss = Loss::Independent { share: loss_share };
        let direction = Direction { delay_ns: 10 * MS, loss, ..Direction::default() };
        let sender = Sender { next: 0, last: 20, resend_at_ns: 0, done_ns: 0 };
        let (up, down) = (
            Path::new(&direction, Seeds::run(seed, LinkDirection::Up)),
            Path::new(&direction, Seeds::run(seed, LinkDirection::Down)),
        );
        let mut simulation = Simulation::new(sender, Echo::default(), up, down);
        let result = simulation.run_until(limit, |client, _| client.next == client.last);
        (result, simulation.client.done_ns)
    }

    #[test]
    fn a_clean_path_takes_one_round_trip_each() {
        assert_eq!(simulate(0.0, 1, 1000), (Ok(()), 20 * 20 * MS));
    }

    #[test]
    fn loss_costs_timeouts_and_repeats_itself() {
        let (result, done_ns) = simulate(0.2, 3, 1000);
        assert_eq!(result, Ok(()));
        assert!(done_ns > 20 * 20 * MS && (done_ns - 400 * MS).is_multiple_of(100 * MS), "{done_ns}");
        assert_eq!(simulate(0.2, 3, 1000), (result, done_ns));
    }

    #[test]
    fn events_are_limited() {
        let (result, _) = simulate(1.0, 3, 50);
        assert!(matches!(result, Err(SimulationError::TooManyEvents { events: 50, .. })), "{result:?}");
    }

    #[test]
    fn endpoints_without_a_timeout_are_an_error() {
        let path = |direction| Path::new(&Direction::default(), Seeds::run(1, direction));
        let mut simulation = Simulation::new(
            Echo::default(),
            Echo::default(),
            path(LinkDirection::Up),
            path(LinkDirection::Down),
        );
        let result = simulation.run_until(10, |_, _| false);
        assert_eq!(result, Err(SimulationError::Silent { now_ns: 0, events: 0 }));
    }
}
