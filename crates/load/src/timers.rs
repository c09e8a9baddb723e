//! The deadlines of connections: a heap that is corrected lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines of connections by key.
///
/// A connection's deadline moves with every packet, nearly always later. So the heap keeps at most one entry
/// per connection, at or before its true deadline, and asks again when that entry comes up.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// The entry in the heap, by key.
    entry: Vec<Option<u64>>,
}

impl Timers {
    /// Sets the deadline of connection `key`.
    pub(crate) fn set(&mut self, key: usize, deadline: Option<u64>) {
        if self.entry.len() <= key {
            self.entry.resize(key + 1, None);
        }
        if let Some(deadline) = deadline
            && self.entry[key].is_none_or(|entry| deadline < entry)
        {
            self.entry[key] = Some(deadline);
            self.heap.push(Reverse((deadline, key)));
        }
    }

    /// The earliest entry; it may be earlier than any true deadline.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// A key whose entry is due; the caller checks the true deadline and calls `set` again.
    pub(crate) fn pop(&mut self, now: u64) -> Option<usize> {
        while let Some(&Reverse((deadline, key))) = self.heap.peek() {
            if deadline > now {
                return None;
            }
            self.heap.pop();
            if self.entry[key] == Some(deadline) {
                self.entry[key] = None;
                return Some(key);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_deadlines_cost_nothing_and_earlier_ones_win() {
        let mut timers = Timers::default();
        timers.set(0, Some(100));
        timers.set(0, Some(200));
        assert_eq!(timers.next(), Some(100));
        assert_eq!(timers.pop(100), Some(0));
        timers.set(0, Some(200));
        timers.set(0, Some(150));
        timers.set(1, None);
        assert_eq!(timers.pop(149), None);
        assert_eq!(timers.pop(150), Some(0));
        assert_eq!(timers.pop(500), None, "the entry at 200 was replaced");
    }
}
