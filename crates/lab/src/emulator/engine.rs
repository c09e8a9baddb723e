//! The emulator's loop: frames in, virtual time, frames out.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;

use hdrhistogram::Histogram;
use model::record::{DirectionReport, Lateness, LinkReport};
use model::{Backend, Network};
use path::nat::Nat;
use path::{Fate, Frame, LinkDirection, Path, Seeds};
use rustix::event::{PollFd, PollFlags};

use super::port::{BATCH, Port};
use super::spin::{Outlook, Pacing, Pause};
use crate::capture::{Tap, comment_on};
use crate::clock::{WallClock, monotonic_ns, thread_cpu_ns, timespec};
use crate::error::LabError;
use crate::observer::{Observation, Observer};
use crate::priority;

/// How many frames are taken from a ring at most before due frames are released.
const RECEIVE_LIMIT: usize = 256;
/// How many used buffers are kept for reuse.
const SPARE_FRAMES: usize = 4096;
const ETHERNET_HEADER_BYTES: usize = 14;
/// Lateness is recorded up to this; the maximum is kept exactly.
const MOST_LATENESS_NS: u64 = 1 << 35;

/// Commands to the loop.
pub(super) enum Command {
    /// Restart with this network and seeds (up, down); all counters become zero. The answer is the time of
    /// the network's start.
    Restart { network: Box<Network>, seeds: [Seeds; 2], done: mpsc::SyncSender<u64> },
    /// Change the network while packets are on the link.
    Change { network: Box<Network>, done: mpsc::SyncSender<()> },
    /// Forget the NAT's mappings.
    Rebind { done: mpsc::SyncSender<()> },
    /// Report what happened since the last restart.
    Report { answer: mpsc::SyncSender<Result<LinkReport, LabError>> },
    /// Send every frame to this capture from now on, or to none.
    Capture { tap: Option<Tap> },
    /// Record what passes one end of the link from now on.
    Observe { observer: Observer },
    /// Stop recording and return what was recorded.
    EndObserving { answer: mpsc::SyncSender<Vec<Observation>> },
    /// End.
    Stop,
}

/// Both directions of a link.
pub(super) struct Engine {
    lines: [Line; 2],
    /// At the first port, between the first node and the link.
    nat: Nat,
    ports: [Port; 2],
    commands: mpsc::Receiver<Command>,
    /// Readable when a command waits.
    bell: OwnedFd,
    wall_clock: WallClock,
    pacing: Pacing,
    spare: Vec<Vec<u8>>,
    longest_frame_bytes: usize,
    /// The length of a frame that was too long. Nothing is forwarded after it.
    too_long: Option<usize>,
    is_realtime: bool,
    cpu_at_restart_ns: u64,
    tap: Option<Tap>,
    observers: Vec<Observer>,
}

/// One direction: in at one port, out at the other.
struct Line {
    path: Path<Frame>,
    batch: Vec<(u64, Frame)>,
    bytes_out: u64,
    packets_out: u64,
    lost_overload: u64,
    /// Frames for which the NAT had no mapping.
    lost_nat: u64,
    lateness: Option<Histogram<u32>>,
    max_lateness_ns: u64,
    /// When the ring was last found empty: its frames arrived later.
    emptied_ns: u64,
}

impl Engine {
    /// `ports` are the ports to the first and to the second node.
    pub(super) fn new(
        ports: [Port; 2],
        mtu_bytes: u32,
        commands: mpsc::Receiver<Command>,
        bell: OwnedFd,
        network: &Network,
        seeds: [Seeds; 2],
    ) -> Engine {
        Engine {
            lines: Line::pair(network, seeds, monotonic_ns()),
            nat: Nat::new(network, monotonic_ns()),
            ports,
            commands,
            bell,
            wall_clock: WallClock::new(),
            pacing: Pacing::default(),
            spare: Vec::with_capacity(SPARE_FRAMES),
            longest_frame_bytes: mtu_bytes as usize + ETHERNET_HEADER_BYTES,
            too_long: None,
            is_realtime: priority::raise(),
            cpu_at_restart_ns: 0,
            tap: None,
            observers: Vec::new(),
        }
    }

    /// Runs until the stop command.
    pub(super) fn run(mut self) {
        let mut is_rung = false;
        loop {
            if is_rung && !self.handle_commands() {
                return;
            }
            self.wall_clock.check();
            let received = self.receive(0) + self.receive(1);
            self.release(0);
            self.release(1);
            // Under a flood of frames the loop does not wait, but still handles commands.
            is_rung = received >= RECEIVE_LIMIT || self.wait(received > 0);
        }
    }

    /// False where the loop must end.
    fn handle_commands(&mut self) -> bool {
        let _: Result<_, _> = rustix::io::read(&self.bell, &mut [0; 8]);
        loop {
            match self.commands.try_recv() {
                Ok(Command::Restart { network, seeds, done }) => {
                    for port in &mut self.ports {
                        while port.receive(|_| ()) {}
                        port.take_ring_losses();
                    }
                    let start_ns = monotonic_ns();
                    self.lines = Line::pair(&network, seeds, start_ns);
                    self.nat = Nat::new(&network, start_ns);
                    self.cpu_at_restart_ns = thread_cpu_ns();
                    let _: Result<_, _> = done.send(start_ns);
                }
                Ok(Command::Change { network, done }) => {
                    let now_ns = monotonic_ns();
                    for (line, direction) in
                        self.lines.iter_mut().zip([LinkDirection::Up, LinkDirection::Down])
                    {
                        line.path.replace_network(now_ns, &network, direction);
                    }
                    let _: Result<_, _> = done.send(());
                }
                Ok(Command::Rebind { done }) => {
                    self.nat.rebind();
                    let _: Result<_, _> = done.send(());
                }
                Ok(Command::Report { answer }) => {
                    let _: Result<_, _> = answer.send(self.report());
                }
                Ok(Command::Capture { tap }) => self.tap = tap,
                Ok(Command::Observe { observer }) => self.observers.push(observer),
                Ok(Command::EndObserving { answer }) => {
                    let observations = self.observers.drain(..).map(Observer::into_observation).collect();
                    let _: Result<_, _> = answer.send(observations);
                }
                Ok(Command::Stop) | Err(mpsc::TryRecvError::Disconnected) => return false,
                Err(mpsc::TryRecvError::Empty) => return true,
            }
        }
    }

    fn report(&mut self) -> Result<LinkReport, LabError> {
        if let Some(found_bytes) = self.too_long {
            return Err(LabError::FrameTooLong { found_bytes, expected_bytes: self.longest_frame_bytes });
        }
        for (line, port) in self.lines.iter_mut().zip(&self.ports) {
            line.lost_overload += port.take_ring_losses();
        }
        Ok(LinkReport {
            link: String::new(),
            backend: Backend::UserSpace,
            up: self.lines[0].report(),
            down: self.lines[1].report(),
            realtime: self.is_realtime,
            cpu_ns: Some(thread_cpu_ns() - self.cpu_at_restart_ns),
        })
    }

    /// Takes the frames that one side has sent; returns how many.
    fn receive(&mut self, side: usize) -> usize {
        let Engine {
            lines,
            nat,
            ports,
            wall_clock,
            spare,
            longest_frame_bytes,
            too_long,
            tap,
            observers,
            ..
        } = self;
        let (line, port) = (&mut lines[side], &mut ports[side]);
        let mut received = 0;
        let now_ns = monotonic_ns();
        while received < RECEIVE_LIMIT {
            let was_readable = port.receive(|frame| {
                if frame.length_bytes > *longest_frame_bytes {
                    too_long.get_or_insert(frame.length_bytes);
                }
                // Frames to group addresses (ARP, router solicitations, multicast reports) are the kernels'
                // own: every neighbour is configured, so no node needs an answer.
                let is_group = frame.bytes.first().is_none_or(|byte| byte & 1 != 0);
                if too_long.is_some() || is_group {
                    return;
                }
                let mut bytes = spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(frame.bytes);
                // Even if the wall clock was set, the frame arrived after the ring was last empty and before
                // now.
                let mut arrival_ns = wall_clock.to_monotonic_ns(frame.seconds, frame.nanoseconds);
                if arrival_ns > now_ns {
                    // The frame arrived during this loop. Only such frames cost another clock reading.
                    arrival_ns = arrival_ns.min(monotonic_ns());
                }
                let arrival_ns = arrival_ns.max(line.emptied_ns.min(now_ns));
                if side == 0 {
                    nat.send(arrival_ns, &mut bytes);
                }
                line.handle_frame(arrival_ns, Frame(bytes));
                let mut comment = None;
                let number = line.path.counters().packets_in;
                while let Some(lost) = line.path.poll_lost() {
                    if let Some(tap) = tap {
                        if lost.number == number {
                            comment = Some(comment_on(&lost));
                        } else {
                            tap.lost(side, &lost);
                        }
                    }
                    keep(spare, lost.packet);
                }
                if let Some(tap) = tap {
                    tap.sent(side, arrival_ns, frame.bytes, comment);
                }
                observers.iter_mut().for_each(|observer| observer.sent(side, arrival_ns, frame.bytes));
            });
            if !was_readable {
                line.emptied_ns = now_ns;
                break;
            }
            received += 1;
        }
        received
    }

    /// Sends what is due to the other side.
    fn release(&mut self, side: usize) {
        let (line, port) = (&mut self.lines[side], &self.ports[1 - side]);
        loop {
            let now_ns = monotonic_ns();
            while line.batch.len() < BATCH
                && let Some(mut release) = line.path.poll_release(now_ns + self.pacing.lead.ns())
            {
                if side == 1 && !self.nat.receive(release.due_ns, &mut release.packet.0) {
                    line.lost_nat += 1;
                    keep(&mut self.spare, release.packet);
                    continue;
                }
                line.batch.push((release.due_ns, release.packet));
            }
            if line.batch.is_empty() {
                return;
            }
            let sent = port.send(line.batch.iter().map(|(_, frame)| frame.0.as_slice()));
            let sent_ns = monotonic_ns();
            line.record(sent, sent_ns);
            self.pacing.gathering.handle_released(line.batch.len(), sent_ns);
            self.pacing.lead.handle_sent(line.batch.len(), sent_ns - now_ns);
            if let Some(tap) = &mut self.tap {
                line.batch[..sent].iter().for_each(|(_, frame)| tap.received(1 - side, sent_ns, &frame.0));
                while let Some(lost) = line.path.poll_lost() {
                    tap.lost(side, &lost);
                    keep(&mut self.spare, lost.packet);
                }
            }
            for observer in &mut self.observers {
                let released = line.batch[..sent].iter();
                released.for_each(|(_, frame)| observer.received(1 - side, now_ns, sent_ns, &frame.0));
            }
            for (_, frame) in line.batch.drain(..) {
                keep(&mut self.spare, frame);
            }
        }
    }

    /// Waits until a frame is due, a frame arrives or a command waits; returns whether a command may wait.
    fn wait(&mut self, was_busy: bool) -> bool {
        let now_ns = monotonic_ns();
        let Some(due_ns) = self.lines.iter().filter_map(|line| line.path.next_release_ns()).min() else {
            return self.poll(None, true);
        };
        let due_ns = due_ns.saturating_sub(self.pacing.lead.ns());
        let least_delay_ns = self.least_delay_ns();
        match self.pacing.plan(Outlook { now_ns, due_ns, least_delay_ns, was_busy }) {
            Pause::Sleep { ns, wakes_on_frames, is_timed } => {
                let is_rung = self.poll(Some(ns), wakes_on_frames);
                if is_timed {
                    self.pacing.spin.handle_wake_up(now_ns + ns, monotonic_ns());
                }
                return is_rung;
            }
            Pause::Spin => {
                while monotonic_ns() < due_ns && !self.ports.iter().any(Port::is_readable) {
                    std::hint::spin_loop();
                }
                self.pacing.spin.handle_spin(now_ns, monotonic_ns());
            }
            Pause::Nothing => {}
        }
        false
    }

    /// The shortest delay of a frame that arrives now.
    fn least_delay_ns(&self) -> u64 {
        self.lines.iter().map(|line| line.path.least_delay_ns()).min().unwrap_or(0)
    }

    /// Sleeps for at most this long; returns whether a command waits.
    fn poll(&self, timeout_ns: Option<u64>, wakes_on_frames: bool) -> bool {
        let timeout = timeout_ns.map(timespec);
        let mut watched = [
            PollFd::new(&self.bell, PollFlags::IN),
            PollFd::from_borrowed_fd(self.ports[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.ports[1].as_fd(), PollFlags::IN),
        ];
        let count = if wakes_on_frames { 3 } else { 1 };
        match rustix::event::poll(&mut watched[..count], timeout.as_ref()) {
            Ok(_) => {
                let has_failed = |watched: &PollFd<'_>| watched.revents().contains(PollFlags::ERR);
                for (port, _) in
                    self.ports.iter().zip(&watched[1..]).filter(|(_, watched)| has_failed(watched))
                {
                    port.clear_error();
                }
                watched[0].revents().contains(PollFlags::IN)
            }
            Err(_) => false,
        }
    }
}

/// Keeps a used buffer for reuse.
fn keep(spare: &mut Vec<Vec<u8>>, frame: Frame) {
    if spare.len() < SPARE_FRAMES {
        spare.push(frame.0);
    }
}

impl Line {
    /// Up and down, from `start_ns` on.
    fn pair(network: &Network, seeds: [Seeds; 2], start_ns: u64) -> [Line; 2] {
        [
            Line::new(network, LinkDirection::Up, seeds[0], start_ns),
            Line::new(network, LinkDirection::Down, seeds[1], start_ns),
        ]
    }

    fn new(network: &Network, direction: LinkDirection, seeds: Seeds, start_ns: u64) -> Line {
        Line {
            path: Path::of_network(network, direction, seeds, start_ns),
            batch: Vec::with_capacity(BATCH),
            bytes_out: 0,
            packets_out: 0,
            lost_overload: 0,
            lost_nat: 0,
            lateness: Histogram::new_with_bounds(1, MOST_LATENESS_NS, 2).ok(),
            max_lateness_ns: 0,
            emptied_ns: start_ns,
        }
    }

    fn handle_frame(&mut self, arrival_ns: u64, frame: Frame) {
        let length_bytes = frame.0.len() as u64;
        // The path counts what happens to the packet.
        let _: Fate = self.path.handle_packet(arrival_ns, length_bytes, frame);
    }

    /// Accounts for a batch of which the kernel took the first `sent` frames.
    fn record(&mut self, sent: usize, now_ns: u64) {
        for (due_ns, frame) in &self.batch[..sent] {
            let lateness_ns = now_ns.saturating_sub(*due_ns);
            if let Some(lateness) = &mut self.lateness {
                lateness.saturating_record(lateness_ns);
            }
            self.max_lateness_ns = self.max_lateness_ns.max(lateness_ns);
            self.bytes_out += frame.0.len() as u64;
        }
        self.packets_out += sent as u64;
        self.lost_overload += (self.batch.len() - sent) as u64;
    }

    fn report(&self) -> DirectionReport {
        let counters = self.path.counters();
        DirectionReport {
            packets_in: counters.packets_in,
            bytes_in: counters.bytes_in,
            packets_out: self.packets_out,
            bytes_out: self.bytes_out,
            lost_configured: counters.lost_configured,
            lost_outage: counters.lost_outage,
            lost_queue: counters.lost_queue,
            lost_codel: counters.lost_codel,
            lost_overload: self.lost_overload + counters.lost_capacity,
            lost_middlebox: counters.lost_middlebox + self.lost_nat,
            marked: counters.marked,
            duplicated: Some(counters.duplicated),
            reordered: Some(counters.reordered),
            lateness: self.lateness.as_ref().map(|lateness| Lateness {
                p50_ns: lateness.value_at_quantile(0.50).min(self.max_lateness_ns),
                p99_ns: lateness.value_at_quantile(0.99).min(self.max_lateness_ns),
                max_ns: self.max_lateness_ns,
            }),
        }
    }
}
