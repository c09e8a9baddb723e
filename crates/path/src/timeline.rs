//! What changes during a run: the descriptions that are to come, and the handovers for whoever owns the addresses.

use std::collections::VecDeque;

use model::Network;
use model::network::Direction;

use crate::stream::LinkDirection;

/// The descriptions of one direction that are still to come.
#[derive(Debug)]
pub(crate) struct Schedule {
    changes: VecDeque<(u64, Direction)>,
}

impl Schedule {
    pub(crate) const fn empty() -> Self {
        Schedule { changes: VecDeque::new() }
    }

    pub(crate) fn of(network: &Network, way: LinkDirection) -> Self {
        let direction = |change: &model::network::Change| match way {
            LinkDirection::Up => change.up.clone(),
            LinkDirection::Down => change.down.clone(),
        };
        Schedule {
            changes: network.timeline.iter().map(|change| (change.at_ns, direction(change))).collect(),
        }
    }

    pub(crate) fn directions(&self) -> impl Iterator<Item = &Direction> {
        self.changes.iter().map(|(_, direction)| direction)
    }

    /// When the next change is; the end of time where there is none.
    pub(crate) fn next_ns(&self) -> u64 {
        self.changes.front().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    /// The next change that is due, and when it was.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, Direction)> {
        self.changes.pop_front_if(|(at_ns, _)| *at_ns <= now_ns)
    }
}

/// What happens to a link beside what its paths do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client's address changes. The paths have their new descriptions of themselves; packets that are under way stay
    /// so, to the address that they were sent to.
    Handover {
        /// When, on the clock of the packets.
        at_ns: u64,
    },
}

/// The events of a network's timeline.
#[derive(Debug)]
pub struct Timeline {
    handovers_ns: VecDeque<u64>,
}

impl Timeline {
    /// Those of a run that begins at `start_ns`.
    pub fn new(network: &Network, start_ns: u64) -> Timeline {
        let handovers = network.timeline.iter().filter(|change| change.handover);
        Timeline { handovers_ns: handovers.map(|change| start_ns.saturating_add(change.at_ns)).collect() }
    }

    /// When the next event is, if any.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.handovers_ns.front().copied()
    }

    /// The next event that is due.
    pub fn poll_event(&mut self, now_ns: u64) -> Option<Event> {
        self.next_event_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.handovers_ns.pop_front().map(|at_ns| Event::Handover { at_ns })
    }
}

#[cfg(test)]
mod tests {
    use model::network::Change;

    use super::*;

    #[test]
    fn handovers_come_when_they_are_due() {
        let change = |at_ns, handover| Change {
            at_ns,
            up: Direction::default(),
            down: Direction::default(),
            handover,
        };
        let timeline = vec![change(10, true), change(20, false), change(30, true)];
        let mut timeline = Timeline::new(&Network { timeline, ..Network::default() }, 1000);
        assert_eq!((timeline.next_event_ns(), timeline.poll_event(1009)), (Some(1010), None));
        assert_eq!(timeline.poll_event(1035), Some(Event::Handover { at_ns: 1010 }));
        assert_eq!(timeline.poll_event(1035), Some(Event::Handover { at_ns: 1030 }));
        assert_eq!((timeline.next_event_ns(), timeline.poll_event(u64::MAX)), (None, None));
    }
}
