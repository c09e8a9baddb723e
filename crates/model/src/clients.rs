//! The clients of a group, and how they are spread over processes and addresses.

use serde::{Deserialize, Serialize};

use crate::start::Start;

/// The most descriptors of a client process.
pub const DESCRIPTORS_A_PROCESS: u32 = 20_000;
/// The ports that connections from one local address to one server can have: Linux chooses them from 32768 to
/// 60999 (`net.ipv4.ip_local_port_range`).
pub const PORTS_AN_ADDRESS: u64 = 28_000;
/// Descriptors of a process besides its connections: standard streams, epoll, logs.
pub const OWN_DESCRIPTORS: u32 = 64;
/// A group uses a further core only if each process has at least this many clients: a smaller group runs in
/// the same number of processes on every machine.
const CLIENTS_A_CORE: u32 = 100;

/// The clients of a group that one process runs: numbers `first`, `first + step`, …, `count` of them.
///
/// Where a group has several processes, each of them has every `step`-th client, and `first` is its number
/// among them. Clients that begin one after the other are then spread evenly over the processes. So are the
/// numbers of requests and connections, which stay unique within the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// The number of the first one.
    pub first: u32,
    /// The distance of their numbers; at least 1.
    pub step: u32,
    /// How many this process runs.
    pub count: u32,
    /// How many the group has.
    pub of: u32,
    /// How the clients of the group begin.
    pub start: Start,
    /// When the group begins, in nanoseconds since the run's start; a process that is ready later begins
    /// then.
    #[serde(default)]
    pub begins_ns: u64,
}

impl Clients {
    /// One client, which begins at once.
    pub const ONE: Clients =
        Clients { first: 0, step: 1, count: 1, of: 1, start: Start::Together, begins_ns: 0 };

    /// A group of `count` clients in one process.
    pub const fn all(count: u32, start: Start) -> Clients {
        Clients { count, of: count, start, ..Clients::ONE }
    }

    /// Whether it is the default, [`Clients::ONE`].
    pub fn is_one(&self) -> bool {
        *self == Clients::ONE
    }

    /// The number of client `place` of this process within the group.
    #[inline]
    pub const fn number(&self, place: u32) -> u32 {
        self.first.wrapping_add(place.wrapping_mul(self.step))
    }

    /// The number within the group of this process's first row; the others follow at distance `step`.
    pub fn first_row(&self) -> u32 {
        self.first.checked_rem(self.step).unwrap_or(0)
    }
}

impl Default for Clients {
    fn default() -> Self {
        Clients::ONE
    }
}

/// Spreads a group over as few processes as the limit of `descriptors` for each allows
/// ([`DESCRIPTORS_A_PROCESS`]), and over up to `cores` if it has hundreds of clients.
///
/// A client is never split: where one alone needs more descriptors, it has its own process.
pub fn spread(clients: Clients, connections_each: u32, descriptors: u32, cores: u32) -> Vec<Clients> {
    let most_each = descriptors.saturating_sub(OWN_DESCRIPTORS) / connections_each.max(1);
    let by_descriptors = clients.of.div_ceil(most_each.max(1));
    let by_cores = cores.min(clients.of / CLIENTS_A_CORE);
    let step = by_descriptors.max(by_cores).max(1);
    let process = |first| Clients { first, step, count: (clients.of - first).div_ceil(step), ..clients };
    (0..step.min(clients.of)).map(process).collect()
}

/// The local addresses that this many connections to one server need, all open at once.
pub const fn addresses_needed(connections: u64) -> u64 {
    let needed = connections.div_ceil(PORTS_AN_ADDRESS);
    if needed == 0 { 1 } else { needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_of(clients: u32, connections_each: u32, cores: u32) -> Vec<Clients> {
        let group = Clients::all(clients, Start::Evenly { over_ns: 5 });
        spread(group, connections_each, DESCRIPTORS_A_PROCESS, cores)
    }

    #[test]
    fn small_groups_stay_in_one_process() {
        for (clients, connections, cores) in [(1, 1, 64), (91, 6, 64), (199, 1, 64), (3000, 6, 1)] {
            let whole = Clients::all(clients, Start::Evenly { over_ns: 5 });
            assert_eq!(spread_of(clients, connections, cores), [whole]);
        }
        assert_eq!(spread_of(0, 1, 4), []);
    }

    #[test]
    fn every_client_is_in_one_process_and_none_exceeds_the_limit() {
        for (clients, connections, cores, processes) in [
            (750, 6, 2, 2),
            (750, 6, 64, 7),
            (10_000, 6, 2, 4),
            (10_000, 1, 1, 1),
            (3, 15_000, 1, 3),
            (2, 50_000, 1, 2),
        ] {
            let spread = spread_of(clients, connections, cores);
            assert_eq!(spread.len(), processes, "{clients} × {connections} on {cores}");
            let mut numbers: Vec<u32> = Vec::new();
            for part in &spread {
                assert!(
                    part.count == 1 || part.count * connections + OWN_DESCRIPTORS <= DESCRIPTORS_A_PROCESS,
                    "{part:?}"
                );
                assert_eq!((part.of, part.start), (clients, Start::Evenly { over_ns: 5 }));
                numbers.extend((0..part.count).map(|place| part.number(place)));
            }
            let (most, least) =
                (spread.iter().map(|part| part.count).max(), spread.last().map(|part| part.count));
            assert!(most.unwrap() - least.unwrap() <= 1, "as evenly as can be");
            numbers.sort_unstable();
            assert_eq!(numbers, (0..clients).collect::<Vec<_>>());
        }
    }

    #[test]
    fn staggered_clients_are_dealt_to_all_processes() {
        let spread = spread_of(400, 1, 4);
        let numbers = |part: &Clients| [0, 1, 2].map(|place| part.number(place));
        assert_eq!(
            spread.iter().map(numbers).collect::<Vec<_>>(),
            [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
        );
    }

    #[test]
    fn rows_of_several_processes_have_different_numbers() {
        let rows = |part: &Clients| (part.first_row(), part.step);
        let numbers: Vec<_> = spread_of(300, 1, 2).iter().map(rows).collect();
        assert_eq!(numbers, [(0, 2), (1, 2)]);
        let later = Clients { first: 5, step: 2, ..Clients::ONE };
        assert_eq!((rows(&later), rows(&Clients::ONE)), ((1, 2), (0, 1)));
    }

    #[test]
    fn an_address_has_28_000_ports() {
        let needed = [0, 1, 28_000, 28_001, 100_000].map(addresses_needed);
        assert_eq!(needed, [1, 1, 1, 2, 4]);
    }
}
