//! Reference measurements of round trips on the empty path.
//!
//! In both directions the sender stamps a probe just before sending it, and the receiver's kernel stamps its
//! arrival, all on this machine's wall clock. The round trip is the sum of both directions, without the
//! threads' wake-up latency.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use model::Network;
use model::network::Direction;
use model::record::Calibration;
use rustix::event::{PollFd, PollFlags};

use crate::clock::{monotonic_ns, timespec};
use crate::error::{LabError, Step};
use crate::node::Node;
use crate::stamp::{StampedSocket, wall_ns};
use crate::thread::thread_ended;

/// Sequence number, the server's time of arrival and time of sending.
const PROBE_BYTES: usize = 24;
/// Ethernet, IPv4 and UDP headers and the probe.
const FRAME_BYTES: u64 = 14 + 20 + 8 + PROBE_BYTES as u64;
/// The least distance of probes, which do not wait for answers: they do not queue behind each other.
const SPACING_NS: u64 = 2_000_000;
/// The first probe runs with cold caches and is not counted.
const WARM_UPS: u32 = 1;
/// How long to wait for the last answer, beyond twice the expected time.
const PATIENCE_NS: u64 = 200_000_000;

/// Sends probes from the client to the server and back, over a sequence of deterministic networks.
pub(crate) fn round_trips(
    client: &Node,
    server: &Node,
    networks: &[Network],
    probes: u32,
) -> Result<Calibration, LabError> {
    let what = || "measuring round trips on the empty path".to_owned();
    let directions = || networks.iter().flat_map(|network| [&network.up, &network.down]);
    let expected_rtt_ns = directions().map(expected_ns).sum();
    let spacing_ns = SPACING_NS.max(2 * directions().map(serialisation_ns).max().unwrap_or(0));
    let (client, server) = (client.probe_socket()?, server.probe_socket()?);
    let target = server.local_address().step(what)?;
    let (end, lifeline) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step(what)?;
    let rtt_ns = std::thread::scope(|scope| {
        let echo =
            std::thread::Builder::new().spawn_scoped(scope, || echo_until(&server, &end)).step(what)?;
        let rtt_ns = send_probes(&client, target, probes, spacing_ns, expected_rtt_ns).step(what);
        drop(lifeline);
        echo.join().map_err(|_| thread_ended("echo"))?.step(what)?;
        rtt_ns
    })?;
    Ok(Calibration { group: 0, expected_rtt_ns, rtt_ns, sent: probes })
}

/// The delay and the probe's transmission time at the link's rate.
fn expected_ns(direction: &Direction) -> u64 {
    direction.delay_ns + serialisation_ns(direction)
}

fn serialisation_ns(direction: &Direction) -> u64 {
    direction.rate.constant_bits_per_s().map_or(0, |rate| FRAME_BYTES * 8 * 1_000_000_000 / rate.max(1))
}

/// Sends probes back, with their times of arrival and departure, until the other end of the pipe is closed.
fn echo_until(socket: &StampedSocket, end: &OwnedFd) -> io::Result<()> {
    let mut probe = [0; PROBE_BYTES];
    loop {
        while let Some((arrival_ns, from)) = socket.receive(&mut probe)? {
            probe[8..16].copy_from_slice(&arrival_ns.to_ne_bytes());
            probe[16..].copy_from_slice(&wall_ns().to_ne_bytes());
            socket.send(&probe, from)?;
        }
        let mut watched =
            [PollFd::new(end, PollFlags::empty()), PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        rustix::event::poll(&mut watched, None)?;
        if watched[0].revents().contains(PollFlags::HUP) {
            return Ok(());
        }
    }
}

/// Sends the probes and collects the round trips of those that come back.
fn send_probes(
    socket: &StampedSocket,
    target: SocketAddr,
    probes: u32,
    spacing_ns: u64,
    expected_rtt_ns: u64,
) -> io::Result<Vec<u64>> {
    let probes = probes + WARM_UPS;
    let mut sent_at_ns: Vec<u64> = Vec::new();
    let mut returned = 0;
    let mut rtt_ns = Vec::new();
    let began_ns = monotonic_ns();
    let deadline_ns = began_ns + u64::from(probes) * spacing_ns + 2 * expected_rtt_ns + PATIENCE_NS;
    let mut probe = [0; PROBE_BYTES];
    loop {
        while let Some((arrival_ns, _)) = socket.receive(&mut probe)? {
            let [sequence, server_arrival_ns, server_departure_ns] = words(&probe);
            let sent_ns = usize::try_from(sequence).ok().and_then(|sequence| sent_at_ns.get(sequence));
            returned += 1;
            if let Some(sent_ns) = sent_ns
                && sequence >= u64::from(WARM_UPS)
            {
                // Each difference is between two stamps of this machine's wall clock.
                let there_ns = server_arrival_ns.saturating_sub(*sent_ns);
                rtt_ns.push(there_ns + arrival_ns.saturating_sub(server_departure_ns));
            }
        }
        let now_ns = monotonic_ns();
        let next_ns = began_ns + sent_at_ns.len() as u64 * spacing_ns;
        let is_due = sent_at_ns.len() < probes as usize && next_ns <= now_ns;
        if is_due {
            probe[..8].copy_from_slice(&(sent_at_ns.len() as u64).to_ne_bytes());
            sent_at_ns.push(wall_ns());
            socket.send(&probe, target)?;
        } else if returned >= probes || now_ns >= deadline_ns {
            return Ok(rtt_ns);
        } else {
            let wake_ns = if sent_at_ns.len() < probes as usize { next_ns } else { deadline_ns };
            let mut watched = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
            rustix::event::poll(&mut watched, Some(&timespec(wake_ns - now_ns)))?;
        }
    }
}

fn words(probe: &[u8; PROBE_BYTES]) -> [u64; 3] {
    let (words, _) = probe.as_chunks();
    std::array::from_fn(|index| u64::from_ne_bytes(words[index]))
}
