//! Drop-tail: first in, first out; a packet that exceeds the limit is dropped.

use std::collections::VecDeque;

use super::Waiting;

/// Packets in the order of their arrival.
#[derive(Debug)]
pub(super) struct DropTail<P> {
    waiting: VecDeque<Waiting<P>>,
}

impl<P> DropTail<P> {
    pub(super) const fn new() -> Self {
        DropTail { waiting: VecDeque::new() }
    }

    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        self.waiting.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<P>> {
        self.waiting.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
