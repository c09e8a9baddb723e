//! FQ-CoDel: flows are hashed to queues, which are served by deficit round robin and controlled by CoDel (RFC
//! 8290).
//!
//! One pool, which grows up to the limit, holds all packets; the queues are lists in it.

use std::collections::VecDeque;

use model::network::Codel;

use super::codel::Control;
use super::{Room, Waiting};
use crate::ledger::{Cause, Ledger};
use crate::packet::Packet;
use crate::stream::{Impairment, Seeds};

/// The end of a list.
const NONE: u32 = u32::MAX;
/// At the limit, up to this many packets of the longest queue, and at most half of it, are dropped at once
/// (RFC 8290, section 4.1.3).
const MOST_DROPPED: u32 = 64;

#[derive(Debug)]
pub(super) struct FqCodel<P> {
    flows: Vec<Flow>,
    pool: Pool<P>,
    /// New and old flows (RFC 8290, section 3), in the order of their turns.
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    quantum_bytes: i64,
    salt: u64,
}

#[derive(Debug)]
struct Flow {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
    /// Bytes that it may still send in this turn.
    deficit_bytes: i64,
    /// Whether it is in a list.
    is_active: bool,
    control: Control,
}

impl<P: Packet> FqCodel<P> {
    pub(super) fn new(codel: Codel, flows: u32, quantum_bytes: u32, seeds: Seeds) -> Self {
        let flow = || Flow {
            head: NONE,
            tail: NONE,
            packets: 0,
            bytes: 0,
            deficit_bytes: 0,
            is_active: false,
            control: Control::new(codel),
        };
        FqCodel {
            flows: (0..flows.max(1)).map(|_| flow()).collect(),
            pool: Pool { slots: Vec::new(), free: NONE, held: 0 },
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            quantum_bytes: i64::from(quantum_bytes.max(1)),
            salt: seeds.stream(Impairment::Flows).number(0),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.pool.held
    }

    /// Takes the packet and drops from the longest queue while the limit is exceeded; `false` if the packet
    /// itself was dropped.
    pub(super) fn offer(&mut self, waiting: Waiting<P>, room: &mut Room, ledger: &mut Ledger<P>) -> bool {
        let (now_ns, number, length_bytes) = (waiting.arrival_ns, waiting.number, waiting.length_bytes);
        let index = self.index_of(&waiting.packet);
        let flow = &mut self.flows[index as usize];
        flow.control.note(length_bytes);
        flow.append(self.pool.insert(waiting), length_bytes, &mut self.pool);
        if !flow.is_active {
            flow.is_active = true;
            flow.deficit_bytes = self.quantum_bytes;
            self.new_flows.push_back(index);
        }
        room.take(length_bytes);
        let mut is_in = true;
        while room.is_over() && self.pool.held > 0 {
            is_in &= self.drop_from_longest(now_ns, number, room, ledger);
        }
        is_in
    }

    /// `false` if the packet with this number was dropped.
    fn drop_from_longest(
        &mut self,
        now_ns: u64,
        number: u64,
        room: &mut Room,
        ledger: &mut Ledger<P>,
    ) -> bool {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.bytes) else { return true };
        let half_bytes = longest.bytes / 2;
        let (mut dropped_bytes, mut dropped, mut is_in) = (0, 0, true);
        while let Some(waiting) = longest.pop(&mut self.pool) {
            dropped_bytes += waiting.length_bytes;
            dropped += 1;
            is_in &= waiting.number != number;
            room.give_back(waiting.length_bytes);
            ledger.lose(now_ns, Cause::Queue, waiting.number, waiting.packet);
            if dropped >= MOST_DROPPED || dropped_bytes >= half_bytes {
                break;
            }
        }
        is_in
    }

    /// The next packet (RFC 8290, section 4.2).
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        room: &mut Room,
        ledger: &mut Ledger<P>,
    ) -> Option<Waiting<P>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let index = *if is_new { self.new_flows.front()? } else { self.old_flows.front()? };
            let FqCodel { flows, pool, .. } = self;
            let flow = &mut flows[index as usize];
            if flow.deficit_bytes <= 0 {
                flow.deficit_bytes += self.quantum_bytes;
                self.end_turn(is_new);
                self.old_flows.push_back(index);
                continue;
            }
            let Flow { head, tail, packets, bytes, control, .. } = flow;
            let taken = control.take(now_ns, room, ledger, || {
                let waiting = pool.pop(head, tail)?;
                *packets -= 1;
                *bytes -= waiting.length_bytes;
                Some((waiting, *bytes))
            });
            if let Some(waiting) = taken {
                flow.deficit_bytes -= i64::try_from(waiting.length_bytes).unwrap_or(i64::MAX);
                return Some(waiting);
            }
            // An empty new flow moves to the old flows, so that it does not return as a new one at once.
            flow.is_active = is_new;
            self.end_turn(is_new);
            if is_new {
                self.old_flows.push_back(index);
            }
        }
    }

    fn end_turn(&mut self, is_new: bool) {
        let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
        list.pop_front();
    }

    fn index_of(&self, packet: &P) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than the number of flows, which fits in 32 bits"
        )]
        let index = (packet.flow(self.salt) % self.flows.len() as u64) as u32;
        index
    }
}

impl Flow {
    fn append<P>(&mut self, slot: u32, length_bytes: u64, pool: &mut Pool<P>) {
        match pool.slots.get_mut(self.tail as usize) {
            Some(tail) => tail.next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
        self.packets += 1;
        self.bytes += length_bytes;
    }

    fn pop<P>(&mut self, pool: &mut Pool<P>) -> Option<Waiting<P>> {
        let waiting = pool.pop(&mut self.head, &mut self.tail)?;
        self.packets -= 1;
        self.bytes -= waiting.length_bytes;
        Some(waiting)
    }
}

/// All packets.
#[derive(Debug)]
struct Pool<P> {
    slots: Vec<Slot<P>>,
    /// The head of the list of free slots.
    free: u32,
    held: usize,
}

#[derive(Debug)]
struct Slot<P> {
    waiting: Option<Waiting<P>>,
    next: u32,
}

impl<P> Pool<P> {
    fn insert(&mut self, waiting: Waiting<P>) -> u32 {
        self.held += 1;
        let slot = Slot { waiting: Some(waiting), next: NONE };
        match self.slots.get_mut(self.free as usize) {
            Some(free) => {
                let index = self.free;
                self.free = free.next;
                *free = slot;
                index
            }
            None => {
                self.slots.push(slot);
                // A direction holds far fewer packets than 2^32.
                u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
            }
        }
    }

    /// The head of a list.
    fn pop(&mut self, head: &mut u32, tail: &mut u32) -> Option<Waiting<P>> {
        let slot = self.slots.get_mut(*head as usize)?;
        let waiting = slot.waiting.take()?;
        let index = std::mem::replace(head, std::mem::replace(&mut slot.next, self.free));
        self.free = index;
        if *head == NONE {
            *tail = NONE;
        }
        self.held -= 1;
        Some(waiting)
    }
}
