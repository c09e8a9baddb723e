//! Changes during a run: the later descriptions of a direction, and handovers, which the owner of the
//! addresses handles.

use std::collections::VecDeque;

use model::Network;
use model::network::Direction;

use crate::stream::LinkDirection;

/// The later descriptions of one direction.
#[derive(Debug)]
pub(crate) struct Schedule {
    changes: VecDeque<(u64, Direction)>,
}

impl Schedule {
    pub(crate) const fn empty() -> Self {
        Schedule { changes: VecDeque::new() }
    }

    pub(crate) fn new(network: &Network, direction: LinkDirection) -> Self {
        let description = |change: &model::network::Change| match direction {
            LinkDirection::Up => change.up.clone(),
            LinkDirection::Down => change.down.clone(),
        };
        Schedule {
            changes: network.timeline.iter().map(|change| (change.at_ns, description(change))).collect(),
        }
    }

    /// What a network prescribes at `now_ns`, and its later descriptions.
    pub(crate) fn from_now(network: &Network, direction: LinkDirection, now_ns: u64) -> (Direction, Self) {
        let mut schedule = Schedule::new(network, direction);
        let mut description = match direction {
            LinkDirection::Up => network.up.clone(),
            LinkDirection::Down => network.down.clone(),
        };
        while let Some((_, next)) = schedule.pop_due(now_ns) {
            description = next;
        }
        (description, schedule)
    }

    pub(crate) fn directions(&self) -> impl Iterator<Item = &Direction> {
        self.changes.iter().map(|(_, direction)| direction)
    }

    /// The time of the next change; `u64::MAX` if there is none.
    pub(crate) fn next_ns(&self) -> u64 {
        self.changes.front().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    /// The next change that is due, with its time.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, Direction)> {
        self.changes.pop_front_if(|(at_ns, _)| *at_ns <= now_ns)
    }
}

/// An event of a link that its paths do not handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client's address changes. The paths change their descriptions themselves; packets in them keep
    /// their destination.
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
    /// The events of a run that starts at `start_ns`.
    pub fn new(network: &Network, start_ns: u64) -> Timeline {
        let handovers = network.timeline.iter().filter(|change| change.handover);
        Timeline { handovers_ns: handovers.map(|change| start_ns.saturating_add(change.at_ns)).collect() }
    }

    /// The time of the next event.
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
            rebinding: false,
        };
        let timeline = vec![change(10, true), change(20, false), change(30, true)];
        let mut timeline = Timeline::new(&Network { timeline, ..Network::default() }, 1000);
        assert_eq!((timeline.next_event_ns(), timeline.poll_event(1009)), (Some(1010), None));
        assert_eq!(timeline.poll_event(1035), Some(Event::Handover { at_ns: 1010 }));
        assert_eq!(timeline.poll_event(1035), Some(Event::Handover { at_ns: 1030 }));
        assert_eq!((timeline.next_event_ns(), timeline.poll_event(u64::MAX)), (None, None));
    }
}
