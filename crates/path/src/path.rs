//! The order of the impairments: outage, loss, the rule for UDP, duplication, queue, rate, delay.

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
use crate::udp::Middlebox;

/// The limit of packets in one direction, whatever its queue and delay: 200 MB of full frames, or 1 Gbit/s
/// with 1.5 s of delay.
pub const CAPACITY_PACKETS: usize = 1 << 17;

/// One direction of an emulated network.
///
/// The driver passes packets to [`Path::handle_packet`] in the order of their arrival, and takes them from
/// [`Path::poll_release`] once [`Path::next_release_ns`] is reached; [`Path::poll_lost`] gives it the lost
/// ones. If it passes every arrival up to a time before it polls for that time, equal seeds and packets have
/// the same fate, however late the driver polls.
///
/// The decision of an impairment depends on its own random stream and the packet's number, or on time, and
/// not on the other impairments; but only packets that are not lost are queued.
#[derive(Debug)]
pub struct Path<P> {
    seeds: Seeds,
    /// Time 0 of the description on the driver's clock; all times inside count from it.
    start_ns: u64,
    /// The current description, and the later ones.
    direction: Direction,
    schedule: Schedule,
    least_delay_ns: u64,
    outage: Outage,
    loss: Loss,
    middlebox: Middlebox,
    duplicate: Duplicate,
    reorder: Reorder,
    queue: Queue<P>,
    link: Link,
    delay: Delay,
    /// When the head of the queue arrived, if the queue was empty then.
    ready_ns: u64,
    /// When the transmission of the queue's head can start; `None` during a transmission.
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
    /// When it will be due, if the description does not change before.
    due_ns: Option<u64>,
    waiting: Waiting<P>,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the path; CoDel, or FQ-CoDel when its queue is full, may still drop it.
    Queued,
    /// It is lost.
    Lost(Cause),
}

/// A packet that is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release<P> {
    /// When it was due.
    pub due_ns: u64,
    /// The packet.
    pub packet: P,
}

impl<P: Packet> Path<P> {
    /// A direction without packets whose description never changes.
    pub fn new(direction: &Direction, seeds: Seeds) -> Self {
        Path::with_schedule(direction, Schedule::empty(), seeds, 0)
    }

    /// One direction of a network with its timeline, in a run that starts at `start_ns`.
    pub fn of_network(network: &Network, direction: LinkDirection, seeds: Seeds, start_ns: u64) -> Self {
        let description = match direction {
            LinkDirection::Up => &network.up,
            LinkDirection::Down => &network.down,
        };
        Path::with_schedule(description, Schedule::new(network, direction), seeds, start_ns)
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
            middlebox: Middlebox::new(direction.udp),
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

    /// Takes a packet that arrived at `arrival_ns`, or at the arrival of the previous packet if that is
    /// later.
    pub fn handle_packet(&mut self, arrival_ns: u64, length_bytes: u64, packet: P) -> Fate {
        let arrival_ns = arrival_ns.saturating_sub(self.start_ns).max(self.latest_arrival_ns);
        self.latest_arrival_ns = arrival_ns;
        self.advance_to(arrival_ns);
        let counters = &mut self.ledger.counters;
        counters.packets_in += 1;
        counters.bytes_in += length_bytes;
        let number = counters.packets_in;
        // Each impairment draws for every packet, so that none affects the others' draws.
        let is_lost = self.loss.draw(number);
        let comes_twice = self.duplicate.draw(number);
        let skips_delay = self.reorder.draw(number);
        let drawn = self.delay.draw(number);
        let cause = if self.outage.loses(arrival_ns) {
            Some(Cause::Outage)
        } else {
            is_lost.then_some(Cause::Configured)
        };
        let refuses = |middlebox: &mut Middlebox| !middlebox.passes(arrival_ns, length_bytes);
        let is_refused = cause.is_none() && packet.is_udp() && refuses(&mut self.middlebox);
        let cause = cause.or(is_refused.then_some(Cause::Middlebox));
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

    /// Replaces the network while packets are in the path: from `now_ns` on it does what `network` prescribes
    /// for this time after the start, and later what its timeline does. The discipline of the queue stays.
    pub fn replace_network(&mut self, now_ns: u64, network: &Network, direction: LinkDirection) {
        let now_ns = now_ns.saturating_sub(self.start_ns).max(self.latest_arrival_ns);
        self.latest_arrival_ns = now_ns;
        self.advance_to(now_ns);
        let (description, schedule) = Schedule::from_now(network, direction, now_ns);
        let all = || schedule.directions().chain([&description]);
        let least_ns = all().map(delay::least_ns).min().unwrap_or(0);
        self.least_delay_ns = self.least_delay_ns.min(least_ns);
        if all().any(Direction::may_reorder) {
            self.line.allow_overtaking();
        }
        self.schedule = schedule;
        self.change(now_ns, description);
    }

    /// When to poll next, unless another packet arrives before.
    pub fn next_release_ns(&self) -> Option<u64> {
        let next_ns = match (self.line.next_due_ns(), self.next_step_ns()) {
            (Some(due_ns), Some(step_ns)) => due_ns.min(step_ns),
            (due_ns, step_ns) => due_ns.or(step_ns)?,
        };
        (next_ns < u64::MAX).then(|| next_ns.saturating_add(self.start_ns))
    }

    /// The next packet that is due by `now_ns`.
    pub fn poll_release(&mut self, now_ns: u64) -> Option<Release<P>> {
        let now_ns = now_ns.checked_sub(self.start_ns)?;
        // No further than needed: the driver may still pass a packet that arrived before `now_ns`.
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

    /// The next lost packet. Beyond a limit, lost packets are counted but not kept.
    pub fn poll_lost(&mut self) -> Option<Lost<P>> {
        self.ledger.poll_lost()
    }

    /// The counters of this direction.
    pub const fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// The number of packets in the path.
    pub fn held_packets(&self) -> usize {
        self.queue.len() + usize::from(self.in_transmission.is_some()) + self.line.len()
    }

    /// A lower bound of every packet's delay.
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

    /// Processes all events up to this time.
    fn advance_to(&mut self, until_ns: u64) {
        while self.next_action_ns().min(self.schedule.next_ns()) <= until_ns {
            if self.next_action_ns() == u64::MAX && self.schedule.next_ns() == u64::MAX {
                return;
            }
            self.step();
        }
    }

    /// When the next transmission ends or starts; `u64::MAX` if there is none.
    fn next_action_ns(&self) -> u64 {
        match &self.in_transmission {
            Some(transmission) => transmission.departure_ns,
            None => self.next_start_ns.unwrap_or(u64::MAX),
        }
    }

    /// The time of the next event that releases depend on. Where packets keep their order, the packet in
    /// transmission can stay there until it is due.
    fn next_step_ns(&self) -> Option<u64> {
        match &self.in_transmission {
            Some(Transmission { due_ns: Some(due_ns), .. }) if self.line.is_ordered() => Some(*due_ns),
            Some(transmission) => Some(transmission.departure_ns),
            // A change of the description can restart a link that is stopped.
            None => self.next_start_ns.map(|start_ns| start_ns.min(self.schedule.next_ns())),
        }
    }

    /// Processes the next event: a change of the description, or the end or start of a transmission.
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

    /// When a packet that departs at `departure_ns` is due.
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

    /// Applies another description from now on. Packets in the queue stay there; the due times of departed
    /// packets stay.
    fn change(&mut self, at_ns: u64, direction: Direction) {
        let before = std::mem::replace(&mut self.direction, direction);
        let direction = &self.direction;
        self.outage = Outage::new(direction.outages, self.seeds);
        self.loss.change(direction);
        self.middlebox.change(direction.udp);
        self.duplicate = Duplicate::new(direction.duplicate_share, self.seeds);
        self.reorder.change(direction.reorder);
        self.queue.change_limit(direction.queue.limit);
        self.link.change(&before, direction, self.seeds);
        self.delay.change(&before, direction);
        if self.in_transmission.is_none() {
            // A transmission that could not start before the change must not start in the past.
            self.ready_ns = self.ready_ns.max(at_ns);
            self.plan_start();
        }
    }
}

#[cfg(test)]
mod reference_values;
#[cfg(test)]
mod tests;
