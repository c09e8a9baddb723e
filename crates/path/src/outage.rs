//! Outages: times at which no packet passes.

use model::network::{OutagePackets, OutageTimes, Outages};

use crate::stream::{Impairment, Seeds, Stream};

/// The outages of a link, as a function of time.
#[derive(Debug)]
pub(crate) struct Outage {
    packets: Option<OutagePackets>,
    times: OutageTimes,
    stream: Stream,
    phase_ns: u64,
}

/// Whether the link is out, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) is_out: bool,
    pub(crate) until_ns: u64,
}

impl Outage {
    pub(crate) fn new(outages: Option<Outages>, seeds: Seeds) -> Self {
        let times = outages.map_or(OutageTimes::Always, |outages| outages.times);
        let phase_ns = match times {
            OutageTimes::Always => 0,
            OutageTimes::Every { every_ns, .. } => seeds.phase_ns(every_ns),
        };
        let packets = outages.map(|outages| outages.packets);
        Outage { packets, times, stream: seeds.stream(Impairment::Outages), phase_ns }
    }

    /// Whether a packet that arrives at this time is lost.
    pub(crate) fn loses(&self, now_ns: u64) -> bool {
        self.packets == Some(OutagePackets::Lost) && self.state(now_ns).is_out
    }

    /// Whether the link is stopped, and until when.
    pub(crate) fn standstill(&self, now_ns: u64) -> State {
        match self.packets {
            Some(OutagePackets::Wait) => self.state(now_ns),
            Some(OutagePackets::Lost) | None => State { is_out: false, until_ns: u64::MAX },
        }
    }

    fn state(&self, now_ns: u64) -> State {
        let OutageTimes::Every { every_ns, lasts_ns, at_random } = self.times else {
            return State { is_out: true, until_ns: u64::MAX };
        };
        let every_ns = every_ns.max(1);
        let shifted_ns = now_ns.saturating_add(self.phase_ns);
        let period = shifted_ns / every_ns;
        let start_ns = |period: u64| {
            let room_ns = every_ns.saturating_sub(lasts_ns).max(1);
            let offset_ns = if at_random { self.stream.number(period) % room_ns } else { 0 };
            period.saturating_mul(every_ns).saturating_add(offset_ns)
        };
        let (begins_ns, next_ns) = (start_ns(period), start_ns(period.saturating_add(1)));
        let ends_ns = begins_ns.saturating_add(lasts_ns);
        let (is_out, until_ns) = match shifted_ns {
            before if before < begins_ns => (false, begins_ns),
            within if within < ends_ns => (true, ends_ns),
            _ => (false, next_ns),
        };
        State { is_out, until_ns: until_ns.saturating_sub(self.phase_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::LinkDirection;

    const MS: u64 = 1_000_000;

    fn every(at_random: bool, packets: OutagePackets, direction: LinkDirection) -> Outage {
        let times = OutageTimes::Every { every_ns: 100 * MS, lasts_ns: 7 * MS, at_random };
        Outage::new(Some(Outages { packets, times }), Seeds::run(5, direction))
    }

    #[test]
    fn outages_have_their_duration_and_period() {
        for at_random in [false, true] {
            let outage = every(at_random, OutagePackets::Wait, LinkDirection::Up);
            let (mut now_ns, mut out_ns, mut outages) = (0, 0, 0);
            while now_ns < 1_000_000 * MS {
                let state = outage.standstill(now_ns);
                assert!(
                    state.until_ns > now_ns && outage.standstill(state.until_ns - 1) == state,
                    "at {now_ns}"
                );
                if state.is_out && now_ns > 0 {
                    out_ns += state.until_ns - now_ns;
                    outages += 1;
                }
                now_ns = state.until_ns;
            }
            // One whole period in each of 10 000, less those cut at the ends.
            assert!((9_999..=10_001).contains(&outages), "{outages}");
            assert_eq!(out_ns, outages * 7 * MS);
        }
    }

    #[test]
    fn both_directions_are_out_at_once() {
        let (up, down) = (
            every(false, OutagePackets::Lost, LinkDirection::Up),
            every(false, OutagePackets::Lost, LinkDirection::Down),
        );
        assert!((0..1000).all(|ms| up.loses(ms * MS) == down.loses(ms * MS)));
        assert_eq!((0..10_000).filter(|ms| up.loses(ms * MS)).count(), 700);
    }

    #[test]
    fn packets_are_lost_or_wait() {
        let outage = |packets| {
            Outage::new(
                Some(Outages { packets, times: OutageTimes::Always }),
                Seeds::run(1, LinkDirection::Up),
            )
        };
        assert!(outage(OutagePackets::Lost).loses(5) && !outage(OutagePackets::Lost).standstill(5).is_out);
        assert!(!outage(OutagePackets::Wait).loses(5) && outage(OutagePackets::Wait).standstill(5).is_out);
        let none = Outage::new(None, Seeds::run(1, LinkDirection::Up));
        assert!(!none.loses(5) && !none.standstill(5).is_out);
    }
}
