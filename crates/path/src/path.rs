//! The order of the impairments: outage, loss, duplication, queue, rate, delay.

use model::Network;
use model::network::Direction;

use crate::delay::{self, Delay};
use crate::duplicate::Duplicate;
use crate::ledger::{Cause, Counters, Ledger, Lost};
use crate::line::{InFlight, Line};
use crate::loss::Loss;
use crate::outage::Outage;
use crate::packet::Packet;
use crate::queue::{Queue, Waiting};
use crate::rate::Link;
use crate::reorder::Reorder;
use crate::stream::{LinkDirection, Seeds};
use crate::timeline::Schedule;

/// How many packets one direction holds at most, whatever its queue and delay say: 200 MB of full frames, or
/// 1 Gbit/s over 1.5 s of delay.
pub const CAPACITY_PACKETS: usize = 1 << 17;

/// One direction of an emulated network.
///
/// The driver hands packets in with [`Path::handle_packet`] in the order of their arrival, and takes them out with
/// [`Path::poll_release`] once [`Path::next_release_ns`] is reached; what was lost it may fetch with
/// [`Path::poll_lost`]. As long as it hands in every arrival up to a time before it polls for that time, the same seed
/// and packets have the same fate, however late it polls.
///
/// Every impairment draws from a stream of its own by the packet's number, or is a function of time: what one does to a
/// packet does not depend on the others, except that only who is not lost can be queued.
#[derive(Debug)]
pub struct Path<P> {
    seeds: Seeds,
    /// Time 0 of the description on the driver's clock; all times inside count from it.
    start_ns: u64,
    /// The description that holds now, and those to come.
    direction: Direction,
    schedule: Schedule,
    least_delay_ns: u64,
    outage: Outage,
    loss: Loss,
    duplicate: Duplicate,
    reorder: Reorder,
    queue: Queue<P>,
    link: Link,
    delay: Delay,
    /// When the queue's head came, where it found the queue empty.
    ready_ns: u64,
    /// When the queue's head can begin to be sent, while nothing else is.
    next_start_ns: Option<u64>,
    in_transmission: Option<Transmission<P>>,
    line: Line<P>,
    departures: u64,
    last_due_ns: u64,
    last_released: u64,
    latest_arrival_ns: u64,
    ledger: Ledger<P>,
}

#[derive(Debug)]
struct Transmission<P> {
    departure_ns: u64,
    /// When it will be due, where no change of the description comes before.
    due_ns: Option<u64>,
    waiting: Waiting<P>,
}

/// What becomes of a packet that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on its way; only CoDel, or FQ-CoDel for want of room, may still drop it.
    Queued,
    /// It is gone.
    Lost(Cause),
}

/// A packet whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release<P> {
    /// When it was due.
    pub due_ns: u64,
    /// The packet.
    pub packet: P,
}

impl<P: Packet> Path<P> {
    /// A direction without packets that stays as it is, from time 0 on.
    pub fn new(direction: &Direction, seeds: Seeds) -> Self {
        Path::with_schedule(direction, Schedule::empty(), seeds, 0)
    }

    /// One direction of a network, with what its timeline changes in a run that begins at `start_ns`.
    pub fn of_network(network: &Network, way: LinkDirection, seeds: Seeds, start_ns: u64) -> Self {
        let direction = match way {
            LinkDirection::Up => &network.up,
            LinkDirection::Down => &network.down,
        };
        Path::with_schedule(direction, Schedule::of(network, way), seeds, start_ns)
    }

    fn with_schedule(direction: &Direction, schedule: Schedule, seeds: Seeds, start_ns: u64) -> Self {
        let all = || schedule.directions().chain([direction]);
        let least_delay_ns = all().map(delay::least_ns).min().unwrap_or(0);
        let line = if all().any(Direction::may_reorder) { Line::free() } else { Line::ordered() };
        Path {
            seeds,
            start_ns,
            least_delay_ns,
            outage: Outage::new(direction.outages, seeds),
            loss: Loss::new(direction, seeds),
            duplicate: Duplicate::new(direction.duplicate_share, seeds),
            reorder: Reorder::new(direction.reorder, seeds),
            queue: Queue::new(&direction.queue, seeds),
            link: Link::new(direction, seeds),
            delay: Delay::new(direction, seeds),
            direction: direction.clone(),
            schedule,
            ready_ns: 0,
            next_start_ns: None,
            in_transmission: None,
            line,
            departures: 0,
            last_due_ns: 0,
            last_released: 0,
            latest_arrival_ns: 0,
            ledger: Ledger::new(),
        }
    }

    /// Takes a packet that arrived at `arrival_ns`; one that seems to have arrived before its forerunner is taken as
    /// arriving together with it.
    pub fn handle_packet(&mut self, arrival_ns: u64, length_bytes: u64, packet: P) -> Fate {
        let arrival_ns = arrival_ns.saturating_sub(self.start_ns).max(self.latest_arrival_ns);
        self.latest_arrival_ns = arrival_ns;
        self.advance_to(arrival_ns);
        let counters = &mut self.ledger.counters;
        counters.packets_in += 1;
        counters.bytes_in += length_bytes;
        let number = counters.packets_in;
        // Everybody draws for every packet, whatever the others say.
        let is_lost = self.loss.draw(number);
        let comes_twice = self.duplicate.draw(number);
        let skips_delay = self.reorder.draw(number);
        let drawn = self.delay.draw(number);
        let cause = if self.outage.loses(arrival_ns) {
            Some(Cause::Outage)
        } else {
            is_lost.then_some(Cause::Configured)
        };
        if let Some(cause) = cause {
            self.ledger.lose(self.start_ns + arrival_ns, cause, number, packet);
            return Fate::Lost(cause);
        }
        let copy = comes_twice.then(|| packet.clone());
        let waiting = |packet| Waiting { arrival_ns, number, length_bytes, drawn, skips_delay, packet };
        let fate = self.admit(waiting(packet));
        if let Some(copy) = copy {
            self.ledger.counters.duplicated += 1;
            self.admit(waiting(copy));
        }
        fate
    }

    /// When to poll next: nothing is due before, as far as the packets so far tell.
    pub fn next_release_ns(&self) -> Option<u64> {
        let next_ns = match (self.line.next_due_ns(), self.next_step_ns()) {
            (Some(due_ns), Some(step_ns)) => due_ns.min(step_ns),
            (due_ns, step_ns) => due_ns.or(step_ns)?,
        };
        (next_ns < u64::MAX).then(|| next_ns.saturating_add(self.start_ns))
    }

    /// Hands over the next packet that is due by `now_ns`, if any.
    pub fn poll_release(&mut self, now_ns: u64) -> Option<Release<P>> {
        let now_ns = now_ns.checked_sub(self.start_ns)?;
        // No further than needed: a packet that arrived before `now_ns` may still be on its way to us.
        while self.next_step_ns().is_some_and(|step_ns| step_ns <= now_ns) {
            self.step();
        }
        let released = self.line.pop_due(now_ns)?;
        let counters = &mut self.ledger.counters;
        counters.packets_out += 1;
        counters.bytes_out += released.length_bytes;
        counters.reordered += u64::from(released.departure < self.last_released);
        self.last_released = self.last_released.max(released.departure);
        Some(Release { due_ns: released.due_ns.saturating_add(self.start_ns), packet: released.packet })
    }

    /// The next packet that was lost. Those that nobody fetches are dropped; they are counted in any case.
    pub fn poll_lost(&mut self) -> Option<Lost<P>> {
        self.ledger.poll_lost()
    }

    /// What happened so far.
    pub const fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// How many packets are inside.
    pub fn held_packets(&self) -> usize {
        self.queue.len() + usize::from(self.in_transmission.is_some()) + self.line.len()
    }

    /// No packet is ever delayed less.
    pub const fn least_delay_ns(&self) -> u64 {
        self.least_delay_ns
    }

    fn admit(&mut self, waiting: Waiting<P>) -> Fate {
        let (arrival_ns, number) = (waiting.arrival_ns, waiting.number);
        if self.held_packets() >= CAPACITY_PACKETS {
            self.ledger.lose(self.start_ns + arrival_ns, Cause::Capacity, number, waiting.packet);
            return Fate::Lost(Cause::Capacity);
        }
        if self.queue.len() == 0 {
            self.ready_ns = arrival_ns;
        }
        if !self.queue.offer(waiting, &mut self.ledger) {
            return Fate::Lost(Cause::Queue);
        }
        if self.in_transmission.is_none() && self.next_start_ns.is_none() {
            self.plan_start();
            self.advance_to(arrival_ns);
        }
        Fate::Queued
    }

    /// Does all that happens up to this time.
    fn advance_to(&mut self, until_ns: u64) {
        while self.next_action_ns().min(self.schedule.next_ns()) <= until_ns {
            if self.next_action_ns() == u64::MAX && self.schedule.next_ns() == u64::MAX {
                return;
            }
            self.step();
        }
    }

    /// When a transmission ends or begins; the end of time where none does.
    fn next_action_ns(&self) -> u64 {
        match &self.in_transmission {
            Some(transmission) => transmission.departure_ns,
            None => self.next_start_ns.unwrap_or(u64::MAX),
        }
    }

    /// When something has to happen inside for the sake of what is due. Where packets keep their order, the one in
    /// transmission has to move when it is due itself and not before.
    fn next_step_ns(&self) -> Option<u64> {
        match &self.in_transmission {
            Some(Transmission { due_ns: Some(due_ns), .. }) if self.line.is_ordered() => Some(*due_ns),
            Some(transmission) => Some(transmission.departure_ns),
            // Who waits for a link that stands still is freed by a change of the description.
            None => self.next_start_ns.map(|start_ns| start_ns.min(self.schedule.next_ns())),
        }
    }

    /// The next thing that happens: a change of the description, the end of a transmission, or its beginning.
    fn step(&mut self) {
        if let Some((at_ns, direction)) = self.schedule.pop_due(self.next_action_ns()) {
            self.change(at_ns, direction);
        } else if let Some(done) = self.in_transmission.take() {
            self.depart(done);
            self.plan_start();
        } else if let Some(start_ns) = self.next_start_ns.take() {
            self.begin_transmission(start_ns);
        }
    }

    fn plan_start(&mut self) {
        self.next_start_ns = (self.queue.len() > 0).then(|| self.link.start_ns(self.ready_ns));
    }

    fn begin_transmission(&mut self, start_ns: u64) {
        let Some(waiting) = self.queue.take(start_ns, &mut self.ledger) else { return };
        let departure_ns = self.link.transmit(start_ns, waiting.length_bytes);
        let is_certain = departure_ns < self.schedule.next_ns();
        let due_ns = is_certain.then(|| self.due_ns(departure_ns, &waiting));
        self.in_transmission = Some(Transmission { departure_ns, due_ns, waiting });
    }

    /// When a packet that departs now is due.
    fn due_ns(&mut self, departure_ns: u64, waiting: &Waiting<P>) -> u64 {
        if waiting.skips_delay {
            return departure_ns;
        }
        let due_ns = departure_ns.saturating_add(self.delay.of_packet_ns(departure_ns, waiting.drawn));
        if self.direction.may_reorder() || due_ns >= self.last_due_ns {
            return due_ns;
        }
        self.ledger.counters.held_back += 1;
        self.last_due_ns
    }

    fn depart(&mut self, done: Transmission<P>) {
        let Transmission { departure_ns, due_ns, waiting } = done;
        self.queue.depart(waiting.length_bytes);
        let due_ns = due_ns.unwrap_or_else(|| self.due_ns(departure_ns, &waiting));
        if !waiting.skips_delay {
            self.last_due_ns = self.last_due_ns.max(due_ns);
        }
        self.departures += 1;
        self.line.push(InFlight {
            due_ns,
            departure: self.departures,
            length_bytes: waiting.length_bytes,
            packet: waiting.packet,
        });
    }

    /// From now on as another description says. Who waits, waits on; who is under way, arrives as he would have.
    fn change(&mut self, at_ns: u64, direction: Direction) {
        let before = std::mem::replace(&mut self.direction, direction);
        let direction = &self.direction;
        self.outage = Outage::new(direction.outages, self.seeds);
        self.loss.change(direction);
        self.duplicate = Duplicate::new(direction.duplicate_share, self.seeds);
        self.reorder.change(direction.reorder);
        self.queue.change_limit(direction.queue.limit);
        self.link.change(&before, direction, self.seeds);
        self.delay.change(&before, direction);
        if self.in_transmission.is_none() {
            // What could not begin before the change does not begin in the past.
            self.ready_ns = self.ready_ns.max(at_ns);
            self.plan_start();
        }
    }
}

#[cfg(test)]
mod reference_values;
#[cfg(test)]
mod tests;
