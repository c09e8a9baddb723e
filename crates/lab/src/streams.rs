//! Reference measurements of rate and loss: a train of datagrams over one direction, counted and stamped on
//! arrival.
//!
//! Each impairment is measured alone and with the calibration's random stream, so that a run's packets have
//! the same fate with and without calibration.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use model::network::{Direction, ExpectedLoss};
use model::record::{LossCalibration, RateCalibration};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::clock::{monotonic_ns, timespec};
use crate::error::{LabError, Step};
use crate::node::Node;
use crate::stamp::StampedSocket;
use crate::thread::thread_ended;

/// Ethernet, IPv4 and UDP.
const HEADER_BYTES: usize = 14 + 20 + 8;
const ETHERNET_BYTES: usize = 14;
/// Length of a datagram's number.
const NUMBER_BYTES: usize = 8;
/// How long a train for a rate takes.
const RATE_NS: u64 = 300_000_000;
/// The length of a train for a rate: fewer packets are imprecise, more packets cost time.
const RATE_PACKETS: (u64, u64) = (20, 30_000);
/// By how much a train is faster than the rate, so that the link is always busy.
const EXCESS_PER_CENT: u64 = 15;
/// A loss of 1 % is then known to within a fifth, at two standard deviations.
const LOSS_PACKETS: u64 = 10_000;
/// The length of a train where no loss is configured.
const LOSSLESS_PACKETS: u64 = 1_000;
/// 25 000 packets per second: slow enough for the emulator on any machine, so that only configured losses
/// occur.
const LOSS_SPACING_NS: u64 = 40_000;
/// After the sender has ended, packets in flight have their delay and this much more time.
const PATIENCE_NS: u64 = 100_000_000;
const ROOM_BYTES: usize = 8 << 20;

/// A train of packets to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Train {
    packets: u64,
    payload_bytes: usize,
    spacing_ns: u64,
    /// How long the last packet may be in flight.
    flight_ns: u64,
}

/// The outcome of a train.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrainOutcome {
    /// From sending the first packet to sending the last.
    sending_ns: u64,
    /// Distinct packets that arrived.
    arrived: u64,
    /// From the first arrival to the last.
    arriving_ns: u64,
}

impl Train {
    /// A train for the rate of a direction; `None` where the rate is not constant.
    pub(crate) fn of_rate(direction: &Direction, mtu_bytes: u32) -> Option<Train> {
        let bits_per_s = direction.rate.constant_bits_per_s().filter(|rate| *rate > 0)?;
        let frame_bytes = mtu_bytes as usize + ETHERNET_BYTES;
        let serialisation_ns = (frame_bytes as u64 * 8_000_000_000).div_ceil(bits_per_s).max(1);
        let packets = (RATE_NS / serialisation_ns).clamp(RATE_PACKETS.0, RATE_PACKETS.1);
        let flight_ns = direction.delay_ns + packets * serialisation_ns;
        let spacing_ns = serialisation_ns * 100 / (100 + EXCESS_PER_CENT);
        Some(Train { packets, payload_bytes: frame_bytes - HEADER_BYTES, spacing_ns, flight_ns })
    }

    /// A train for the loss of a direction.
    pub(crate) fn of_loss(direction: &Direction) -> Train {
        let ExpectedLoss { packets, .. } = direction.expected_loss(LOSS_PACKETS);
        let packets = if packets > 0.0 { LOSS_PACKETS } else { LOSSLESS_PACKETS };
        Train { packets, payload_bytes: NUMBER_BYTES, spacing_ns: LOSS_SPACING_NS, flight_ns: 0 }
    }

    /// The measured rate.
    pub(crate) fn rate(&self, direction: &Direction, outcome: &TrainOutcome) -> Option<RateCalibration> {
        let bits = (self.payload_bytes + HEADER_BYTES) as u64 * 8;
        let per_second = |packets: u64, ns: u64| {
            u128::from(packets.saturating_sub(1) * bits * 1_000_000_000).checked_div(u128::from(ns))
        };
        let narrow = |rate: u128| u64::try_from(rate).unwrap_or(u64::MAX);
        Some(RateCalibration {
            expected_bits_per_s: direction.rate.constant_bits_per_s()?,
            offered_bits_per_s: per_second(self.packets, outcome.sending_ns).map_or(u64::MAX, narrow),
            measured_bits_per_s: per_second(outcome.arrived, outcome.arriving_ns).map_or(0, narrow),
            packets: outcome.arrived,
        })
    }

    /// The measured loss.
    pub(crate) fn loss(&self, direction: &Direction, outcome: &TrainOutcome) -> LossCalibration {
        let expected = direction.expected_loss(self.packets);
        LossCalibration {
            sent: self.packets,
            lost: self.packets - outcome.arrived,
            expected: expected.packets,
            deviation: expected.deviation,
        }
    }

    /// Sends the train from one node to another.
    ///
    /// # Errors
    /// A socket or thread cannot be created, or a socket fails.
    pub(crate) fn send(&self, from: &Node, to: &Node) -> Result<TrainOutcome, LabError> {
        let what = || {
            format!("sending packets of a reference measurement from `{}` to `{}`", from.name(), to.name())
        };
        let (sender, receiver) = (from.probe_socket()?, to.probe_socket()?);
        receiver.make_room(ROOM_BYTES);
        let target = receiver.local_address().step(what)?;
        let (end, lifeline) = pipe_with(PipeFlags::CLOEXEC).step(what)?;
        std::thread::scope(|scope| {
            let sending = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _until_sent = lifeline;
                self.send_all(&sender, target)
            });
            let sending = sending.step(what)?;
            let mut outcome = self.receive_all(&receiver, &end).step(what)?;
            outcome.sending_ns = sending.join().map_err(|_| thread_ended("stream"))?.step(what)?;
            Ok(outcome)
        })
    }

    /// Sends on schedule, late packets at once; returns the time from the first packet to the last.
    fn send_all(&self, socket: &StampedSocket, target: SocketAddr) -> io::Result<u64> {
        let mut datagram = vec![0; self.payload_bytes];
        let (began_ns, mut last_ns) = (monotonic_ns(), 0);
        for number in 0..self.packets {
            let due_ns = began_ns + number * self.spacing_ns;
            let now_ns = monotonic_ns();
            if due_ns > now_ns {
                std::thread::sleep(Duration::from_nanos(due_ns - now_ns));
            }
            datagram[..NUMBER_BYTES].copy_from_slice(&number.to_ne_bytes());
            while let Err(error) = socket.send(&datagram, target) {
                if error.kind() != io::ErrorKind::WouldBlock {
                    return Err(error);
                }
                rustix::event::poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)], None)?;
            }
            last_ns = monotonic_ns();
        }
        Ok(last_ns.saturating_sub(began_ns))
    }

    /// Receives until all packets arrived, or none can be in flight after the sender has ended.
    fn receive_all(&self, socket: &StampedSocket, sender: &OwnedFd) -> io::Result<TrainOutcome> {
        let mut datagram = vec![0; self.payload_bytes];
        let mut has_arrived = vec![false; usize::try_from(self.packets).unwrap_or(0)];
        let (mut first_ns, mut last_ns, mut arrived) = (None, 0, 0);
        let mut deadline_ns: Option<u64> = None;
        loop {
            while let Some((stamp_ns, _)) = socket.receive(&mut datagram)? {
                let number = datagram.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
                let slot = number
                    .and_then(|number| usize::try_from(number).ok())
                    .and_then(|number| has_arrived.get_mut(number));
                if let Some(slot @ false) = slot {
                    *slot = true;
                    arrived += 1;
                    first_ns.get_or_insert(stamp_ns);
                    last_ns = last_ns.max(stamp_ns);
                }
            }
            let now_ns = monotonic_ns();
            if arrived == self.packets || deadline_ns.is_some_and(|deadline_ns| now_ns >= deadline_ns) {
                let arriving_ns = first_ns.map_or(0, |first_ns| last_ns.saturating_sub(first_ns));
                return Ok(TrainOutcome { sending_ns: 0, arrived, arriving_ns });
            }
            let mut watched = [
                PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN),
                PollFd::new(sender, PollFlags::empty()),
            ];
            let timeout = deadline_ns.map(|deadline_ns| timespec(deadline_ns - now_ns));
            // After the sender has ended, only the socket matters.
            let count = if deadline_ns.is_some() { 1 } else { 2 };
            rustix::event::poll(&mut watched[..count], timeout.as_ref())?;
            if deadline_ns.is_none() && watched[1].revents().contains(PollFlags::HUP) {
                deadline_ns = Some(monotonic_ns() + self.flight_ns + PATIENCE_NS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::network::{LinkRate, Loss};

    use super::*;

    fn at(bits_per_s: u64) -> Direction {
        Direction { rate: LinkRate::Constant { bits_per_s }, delay_ns: 5, ..Direction::default() }
    }

    #[test]
    fn a_train_fills_the_link_for_a_while() {
        // 1514 bytes at 12.112 Mbit/s take a millisecond.
        let train = Train::of_rate(&at(12_112_000), 1500).unwrap();
        let expected =
            Train { packets: 300, payload_bytes: 1472, spacing_ns: 869_565, flight_ns: 300_000_005 };
        assert_eq!(train, expected);
        assert_eq!(Train::of_rate(&at(1_000), 1500).unwrap().packets, 20);
        assert_eq!(Train::of_rate(&at(100_000_000_000), 1500).unwrap().packets, 30_000);
        assert_eq!(Train::of_rate(&Direction::default(), 1500), None);
    }

    #[test]
    fn a_rate_is_what_came_between_the_first_and_the_last() {
        let direction = at(12_112_000);
        let train = Train::of_rate(&direction, 1500).unwrap();
        let outcome = TrainOutcome { sending_ns: 149_500_000, arrived: 251, arriving_ns: 250_000_000 };
        let found = train.rate(&direction, &outcome).unwrap();
        assert_eq!(found.measured_bits_per_s, 12_112_000);
        assert_eq!(found.offered_bits_per_s, 24_224_000);
        let nothing = train.rate(&direction, &TrainOutcome::default()).unwrap();
        assert_eq!((nothing.measured_bits_per_s, nothing.packets), (0, 0));
    }

    #[test]
    fn loss_is_counted_against_what_is_expected() {
        let direction = Direction { loss: Loss::Independent { share: 0.5 }, ..Direction::default() };
        let train = Train::of_loss(&direction);
        let found = train.loss(&direction, &TrainOutcome { arrived: 4_900, ..TrainOutcome::default() });
        let expected = LossCalibration { sent: 10_000, lost: 5_100, expected: 5_000.0, deviation: 50.0 };
        assert_eq!(found, expected);
        assert_eq!(Train::of_loss(&Direction::default()).packets, 1_000);
    }
}
