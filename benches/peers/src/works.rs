//! What is measured: the works, their peers and their targets.

use model::Variant;

/// A server that the harness starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// nginx, one process, files from memory: h1, h1s, h2c, h2.
    Nginx,
    /// nghttpd, one thread: h2c, h2. It is cheaper than nginx, so it shows a generator's ceiling.
    Nghttpd,
    /// Our own origin, one thread: h3.
    Origin,
}

impl ServerKind {
    /// The program's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ServerKind::Nginx => "nginx",
            ServerKind::Nghttpd => "nghttpd",
            ServerKind::Origin => "h123 serve",
        }
    }
}

/// Another load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    Wrk,
    H2load,
    Siege,
    Ab,
    /// The quinn + h3 client in this crate.
    Quinn,
    Oha,
}

impl Peer {
    /// All of them, in the order of tables.
    pub(crate) const ALL: [Peer; 6] =
        [Peer::Wrk, Peer::H2load, Peer::Siege, Peer::Ab, Peer::Quinn, Peer::Oha];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Peer::Wrk => "wrk",
            Peer::H2load => "h2load",
            Peer::Siege => "siege",
            Peer::Ab => "ab",
            Peer::Quinn => "h3-peer",
            Peer::Oha => "oha",
        }
    }

    /// Whether this peer can do the work.
    pub(crate) const fn can(self, variant: Variant) -> bool {
        match self {
            Peer::Wrk | Peer::Siege | Peer::Ab => matches!(variant, Variant::H1 | Variant::H1s),
            Peer::H2load => !matches!(variant, Variant::H3),
            Peer::Quinn => matches!(variant, Variant::H3),
            Peer::Oha => true,
        }
    }

    /// More pairs than this add no information: siege costs twenty times what the others do, and the target
    /// of ab's rows needs no more than an interval.
    pub(crate) const fn most_pairs(self) -> u32 {
        match self {
            Peer::Siege => 3,
            Peer::Ab => 6,
            Peer::Wrk | Peer::H2load | Peer::Quinn | Peer::Oha => u32::MAX,
        }
    }

    /// Whether it is fast enough for a comparison of requests/s.
    const fn is_near(self) -> bool {
        !matches!(self, Peer::Siege | Peer::Ab)
    }
}

/// One kind of load on one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Its name on the command line and in tables.
    pub(crate) name: &'static str,
    pub(crate) variant: Variant,
    pub(crate) server: ServerKind,
    /// The response's body.
    pub(crate) body_bytes: u32,
    pub(crate) connections: u32,
    /// Requests in flight on each connection.
    pub(crate) streams: u32,
    pub(crate) goal: Goal,
}

/// What a work is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// CPU per request, as users run it.
    Cpu {
        /// Ours over the best peer's: at most this.
        ratio: f64,
        /// Ours in user space, in microseconds: at most this.
        user_us: Option<f64>,
    },
    /// Requests/s against a saturated server with `--coalesce`, an explicit throughput mode: over the best
    /// peer's at least this.
    Throughput { ratio: f64 },
}

impl Work {
    /// The peers that can do it.
    pub(crate) fn peers(&self) -> impl Iterator<Item = Peer> {
        let coalesce = self.coalesces();
        let variant = self.variant;
        Peer::ALL.into_iter().filter(move |peer| peer.can(variant) && (!coalesce || peer.is_near()))
    }

    /// Whether ours runs with `--coalesce`.
    pub(crate) const fn coalesces(&self) -> bool {
        matches!(self.goal, Goal::Throughput { .. })
    }
}

/// The length of a small body.
pub(crate) const SMALL_BYTES: u32 = 128;
/// The length of a large body.
pub(crate) const LARGE_BYTES: u32 = 1 << 20;

/// Everything that is measured, in the order of the table.
pub(crate) const WORKS: &[Work] = &[
    small("h1-c10", Variant::H1, ServerKind::Nginx, 10, 1, 0.90, Some(0.6)),
    small("h1-c100", Variant::H1, ServerKind::Nginx, 100, 1, 0.90, Some(0.6)),
    small("h1s", Variant::H1s, ServerKind::Nginx, 10, 1, 0.75, None),
    small("h2c", Variant::H2c, ServerKind::Nginx, 10, 10, 0.70, Some(1.5)),
    small("h2c-nghttpd", Variant::H2c, ServerKind::Nghttpd, 10, 10, 0.70, Some(1.5)),
    small("h2", Variant::H2, ServerKind::Nginx, 10, 10, 0.70, Some(1.5)),
    small("h2-nghttpd", Variant::H2, ServerKind::Nghttpd, 10, 10, 0.70, Some(1.5)),
    small("h3", Variant::H3, ServerKind::Origin, 10, 10, 0.65, Some(3.0)),
    large("h1-1m", Variant::H1, ServerKind::Nginx, 0.70),
    large("h1s-1m", Variant::H1s, ServerKind::Nginx, 0.80),
    large("h3-1m", Variant::H3, ServerKind::Origin, 0.90),
    saturating("h1-coalesce", Variant::H1, ServerKind::Nginx, 100, 1),
    saturating("h1s-coalesce", Variant::H1s, ServerKind::Nginx, 100, 1),
    saturating("h2c-coalesce", Variant::H2c, ServerKind::Nginx, 10, 10),
    saturating("h2-coalesce", Variant::H2, ServerKind::Nginx, 10, 10),
    saturating("h3-coalesce", Variant::H3, ServerKind::Origin, 10, 10),
];

/// The work of that name.
pub(crate) fn find(name: &str) -> Option<&'static Work> {
    WORKS.iter().find(|work| work.name == name)
}

/// The names of all works, for messages.
pub(crate) fn names() -> String {
    WORKS.iter().map(|work| work.name).collect::<Vec<_>>().join(", ")
}

const fn small(
    name: &'static str,
    variant: Variant,
    server: ServerKind,
    connections: u32,
    streams: u32,
    ratio: f64,
    user_us: Option<f64>,
) -> Work {
    let goal = Goal::Cpu { ratio, user_us };
    Work { name, variant, server, body_bytes: SMALL_BYTES, connections, streams, goal }
}

const fn large(name: &'static str, variant: Variant, server: ServerKind, ratio: f64) -> Work {
    let goal = Goal::Cpu { ratio, user_us: None };
    Work { name, variant, server, body_bytes: LARGE_BYTES, connections: 10, streams: 1, goal }
}

/// A hundred requests in flight: with fewer, the server has nothing to do while ours waits for more answers.
const fn saturating(
    name: &'static str,
    variant: Variant,
    server: ServerKind,
    connections: u32,
    streams: u32,
) -> Work {
    let goal = Goal::Throughput { ratio: 1.0 };
    Work { name, variant, server, body_bytes: SMALL_BYTES, connections, streams, goal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for work in WORKS {
            assert_eq!(WORKS.iter().filter(|other| other.name == work.name).count(), 1, "{}", work.name);
            assert!(find(work.name).is_some_and(|found| found.variant == work.variant));
        }
        assert!(find("h4").is_none());
    }

    #[test]
    fn every_work_has_a_peer_besides_oha_and_a_server_with_its_variant() {
        for work in WORKS {
            assert!(work.peers().any(|peer| peer != Peer::Oha), "{} has no peer", work.name);
            assert!(
                !work.coalesces() || work.connections * work.streams >= 100,
                "{} cannot saturate",
                work.name
            );
            let speaks = match work.server {
                ServerKind::Nginx => work.variant != Variant::H3,
                ServerKind::Nghttpd => matches!(work.variant, Variant::H2c | Variant::H2),
                ServerKind::Origin => true,
            };
            assert!(speaks, "{}: {} does not speak it", work.name, work.server.name());
        }
    }
}
