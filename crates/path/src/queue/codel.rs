//! CoDel, controlled delay: RFC 8289.
//!
//! It measures how long a packet was in the queue. If that exceeds the target for a whole interval, the queue
//! is a standing queue: packets are dropped, or marked, at an increasing rate until it is not.

use std::collections::VecDeque;

use model::network::Codel;
use model::number::float;

use super::{Room, Waiting};
use crate::ledger::{Cause, Ledger};
use crate::packet::Packet;

/// The state of the control, as in RFC 8289, section 5.
#[derive(Debug)]
pub(super) struct Control {
    settings: Codel,
    /// When the queue will have been above the target for an interval.
    first_above_ns: Option<u64>,
    drop_next_ns: u64,
    /// Drops since the start of the dropping state.
    count: u32,
    last_count: u32,
    is_dropping: bool,
    /// The longest packet so far: at most this many bytes are not a standing queue.
    longest_bytes: u64,
}

impl Control {
    pub(super) const fn new(settings: Codel) -> Self {
        Control {
            settings,
            first_above_ns: None,
            drop_next_ns: 0,
            count: 0,
            last_count: 0,
            is_dropping: false,
            longest_bytes: 0,
        }
    }

    /// Notes a packet that enters the queue.
    pub(super) fn note(&mut self, length_bytes: u64) {
        self.longest_bytes = self.longest_bytes.max(length_bytes);
    }

    /// The packet to send now (`deque` in RFC 8289, section 5.5). `pop` returns the head of the queue and the
    /// bytes that remain in it.
    pub(super) fn take<P: Packet>(
        &mut self,
        now_ns: u64,
        room: &mut Room,
        ledger: &mut Ledger<P>,
        mut pop: impl FnMut() -> Option<(Waiting<P>, u64)>,
    ) -> Option<Waiting<P>> {
        let mut next = || pop();
        let (mut waiting, mut may_drop) = self.judge(now_ns, next());
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now_ns >= self.drop_next_ns {
                let marked = self.is_marked(&mut waiting, ledger);
                if !marked {
                    drop_one(now_ns, waiting, room, ledger);
                    (waiting, may_drop) = self.judge(now_ns, next());
                    self.is_dropping = may_drop;
                }
                if self.is_dropping {
                    self.count = self.count.saturating_add(1);
                    self.drop_next_ns = self.control_law(self.drop_next_ns);
                }
                if marked {
                    break;
                }
            }
        } else if may_drop {
            if !self.is_marked(&mut waiting, ledger) {
                drop_one(now_ns, waiting, room, ledger);
                (waiting, _) = self.judge(now_ns, next());
            }
            self.begin_dropping(now_ns);
        }
        waiting
    }

    /// Enters the dropping state; soon after the last one, with its final rate.
    fn begin_dropping(&mut self, now_ns: u64) {
        self.is_dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let is_recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * self.settings.interval_ns;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.drop_next_ns = self.control_law(now_ns);
        self.last_count = self.count;
    }

    /// Whether the head of the queue may be dropped (`dodeque`).
    fn judge<P>(&mut self, now_ns: u64, head: Option<(Waiting<P>, u64)>) -> (Option<Waiting<P>>, bool) {
        let Some((waiting, left_bytes)) = head else {
            self.first_above_ns = None;
            return (None, false);
        };
        let sojourn_ns = now_ns.saturating_sub(waiting.arrival_ns);
        if sojourn_ns < self.settings.target_ns || left_bytes <= self.longest_bytes {
            self.first_above_ns = None;
            return (Some(waiting), false);
        }
        let since_ns = *self.first_above_ns.get_or_insert(now_ns + self.settings.interval_ns);
        (Some(waiting), now_ns >= since_ns)
    }

    /// When the next drop is due: interval / √count after the last one (RFC 8289, section 3.3).
    fn control_law(&self, last_ns: u64) -> u64 {
        let interval_ns = float(self.settings.interval_ns);
        #[expect(clippy::cast_possible_truncation, reason = "at most the interval")]
        #[expect(clippy::cast_sign_loss, reason = "a quotient of positive numbers")]
        let step_ns = (interval_ns / f64::from(self.count.max(1)).sqrt()) as u64;
        last_ns.saturating_add(step_ns)
    }

    /// With ECN, marks the packet instead of dropping it, if it can carry the mark (RFC 8290, section 4.2).
    fn is_marked<P: Packet>(&self, waiting: &mut Option<Waiting<P>>, ledger: &mut Ledger<P>) -> bool {
        let is_marked =
            self.settings.ecn && waiting.as_mut().is_some_and(|waiting| waiting.packet.mark_congestion());
        ledger.counters.marked += u64::from(is_marked);
        is_marked
    }
}

fn drop_one<P>(now_ns: u64, waiting: Option<Waiting<P>>, room: &mut Room, ledger: &mut Ledger<P>) {
    if let Some(waiting) = waiting {
        room.give_back(waiting.length_bytes);
        ledger.lose(now_ns, Cause::Codel, waiting.number, waiting.packet);
    }
}

/// A queue controlled by CoDel.
#[derive(Debug)]
pub(super) struct CodelQueue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    control: Control,
}

impl<P: Packet> CodelQueue<P> {
    pub(super) const fn new(settings: Codel) -> Self {
        CodelQueue { waiting: VecDeque::new(), bytes: 0, control: Control::new(settings) }
    }

    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        self.control.note(waiting.length_bytes);
        self.bytes += waiting.length_bytes;
        self.waiting.push_back(waiting);
    }

    pub(super) fn take(
        &mut self,
        now_ns: u64,
        room: &mut Room,
        ledger: &mut Ledger<P>,
    ) -> Option<Waiting<P>> {
        let CodelQueue { waiting, bytes, control } = self;
        control.take(now_ns, room, ledger, || {
            let head = waiting.pop_front()?;
            *bytes -= head.length_bytes;
            Some((head, *bytes))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
