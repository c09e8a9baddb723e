//! The link: one packet at a time, at a rate that may vary, exact to a fraction of a nanosecond.

use model::network::{Direction, LinkRate};

use crate::opportunities::Opportunities;
use crate::outage::Outage;
use crate::stream::Seeds;
use crate::varying::{Stretch, Varying};

/// Units of work per bit: one nanosecond at 1 bit/s does one unit.
const WORK_PER_BYTE: u64 = 8_000_000_000;
/// The longest packet; it keeps work within 64 bits.
const LONGEST_BYTES: u64 = 1 << 30;
/// A link that makes no progress over this many changes of its rate counts as stopped for ever.
const LONGEST_SEARCH: usize = 1_000_000;

/// The link. The remainder of each division is carried over, so a busy link does not drift.
#[derive(Debug)]
pub(crate) struct Link {
    capacity: Capacity,
    standstill: Outage,
    free_at_ns: u64,
    /// The remainder of the last division, in units of work.
    remainder: u64,
    /// The last stretch that was computed.
    known: Option<(u64, Stretch)>,
}

#[derive(Debug)]
enum Capacity {
    Unlimited,
    Constant(u64),
    Varying(Varying),
    Steps(Steps),
    Opportunities(Opportunities),
}

impl Link {
    pub(crate) fn new(direction: &Direction, seeds: Seeds) -> Self {
        Link {
            capacity: Capacity::new(&direction.rate, seeds),
            standstill: Outage::new(direction.outages, seeds),
            free_at_ns: 0,
            remainder: 0,
            known: None,
        }
    }

    /// Applies another description from the next packet on; the current transmission is not changed.
    pub(crate) fn change(&mut self, before: &Direction, direction: &Direction, seeds: Seeds) {
        if before.rate != direction.rate {
            self.capacity = Capacity::new(&direction.rate, seeds);
            self.remainder = 0;
        }
        self.standstill = Outage::new(direction.outages, seeds);
        self.known = None;
    }

    /// When the transmission of a packet that is ready at `ready_ns` can start; `u64::MAX` if it never can.
    pub(crate) fn start_ns(&mut self, ready_ns: u64) -> u64 {
        let mut now_ns = ready_ns.max(self.free_at_ns);
        for _ in 0..LONGEST_SEARCH {
            let stretch = self.stretch(now_ns);
            if stretch.bits_per_s != Some(0) {
                match &mut self.capacity {
                    Capacity::Opportunities(opportunities) => {
                        let next_ns = opportunities.next_ns(now_ns);
                        if next_ns < stretch.until_ns || stretch.until_ns == u64::MAX {
                            return next_ns;
                        }
                    }
                    _ => return now_ns,
                }
            }
            if stretch.until_ns == u64::MAX {
                break;
            }
            now_ns = stretch.until_ns;
        }
        u64::MAX
    }

    /// Transmits a packet from `start_ns` on, which [`Link::start_ns`] returned; returns the time of
    /// departure.
    pub(crate) fn transmit(&mut self, start_ns: u64, length_bytes: u64) -> u64 {
        if start_ns > self.free_at_ns {
            self.free_at_ns = start_ns;
            self.remainder = 0;
        }
        self.free_at_ns = match &self.capacity {
            Capacity::Opportunities(_) => self.use_opportunities(length_bytes),
            _ => self.spend(length_bytes.min(LONGEST_BYTES) * WORK_PER_BYTE + self.remainder),
        };
        self.free_at_ns
    }

    /// When this much work is done, from now on.
    fn spend(&mut self, mut work: u64) -> u64 {
        let mut now_ns = self.free_at_ns;
        for _ in 0..LONGEST_SEARCH {
            let Stretch { bits_per_s, until_ns } = self.stretch(now_ns);
            let Some(bits_per_s) = bits_per_s else {
                self.remainder = 0;
                return now_ns;
            };
            let left_ns = until_ns - now_ns;
            match work.checked_div(bits_per_s) {
                Some(took_ns) if took_ns <= left_ns => {
                    self.remainder = work % bits_per_s;
                    return now_ns.saturating_add(took_ns);
                }
                // Less than the total work, so it does not overflow.
                Some(_) => work -= bits_per_s * left_ns,
                None => {}
            }
            if until_ns == u64::MAX {
                break;
            }
            now_ns = until_ns;
        }
        u64::MAX
    }

    fn use_opportunities(&mut self, length_bytes: u64) -> u64 {
        let mut left_bytes = length_bytes;
        let mut now_ns = self.free_at_ns;
        for _ in 0..LONGEST_SEARCH {
            let start_ns = self.start_ns(now_ns);
            let Capacity::Opportunities(opportunities) = &mut self.capacity else { break };
            if start_ns == u64::MAX {
                break;
            }
            left_bytes -= opportunities.take_bytes(start_ns, left_bytes);
            if left_bytes == 0 {
                return start_ns;
            }
            now_ns = start_ns;
        }
        u64::MAX
    }

    /// The stretch that contains `now_ns`.
    fn stretch(&mut self, now_ns: u64) -> Stretch {
        if let Some((from_ns, stretch)) = self.known
            && (from_ns..stretch.until_ns).contains(&now_ns)
        {
            return stretch;
        }
        let outage = self.standstill.standstill(now_ns);
        let stretch = if outage.is_out {
            Stretch { bits_per_s: Some(0), until_ns: outage.until_ns }
        } else {
            let stretch = self.capacity.stretch(now_ns);
            Stretch { until_ns: stretch.until_ns.min(outage.until_ns), ..stretch }
        };
        self.known = Some((now_ns, stretch));
        stretch
    }
}

impl Capacity {
    fn new(rate: &LinkRate, seeds: Seeds) -> Capacity {
        match rate {
            LinkRate::Unlimited => Capacity::Unlimited,
            LinkRate::Constant { bits_per_s } => Capacity::Constant(*bits_per_s),
            LinkRate::Varying { mean_bits_per_s, steps, drift } => {
                Capacity::Varying(Varying::new(*mean_bits_per_s, *steps, *drift, seeds))
            }
            LinkRate::Steps(steps) => Capacity::Steps(Steps(steps.clone())),
            LinkRate::Opportunities(opportunities) => {
                Capacity::Opportunities(Opportunities::new(opportunities))
            }
        }
    }

    fn stretch(&mut self, now_ns: u64) -> Stretch {
        match self {
            // The opportunities determine when bytes can be sent.
            Capacity::Unlimited | Capacity::Opportunities(_) => {
                Stretch { bits_per_s: None, until_ns: u64::MAX }
            }
            Capacity::Constant(bits_per_s) => Stretch { bits_per_s: Some(*bits_per_s), until_ns: u64::MAX },
            Capacity::Varying(varying) => varying.stretch(now_ns),
            Capacity::Steps(steps) => steps.stretch(now_ns),
        }
    }
}

/// A table of times and rates.
#[derive(Debug)]
struct Steps(model::network::RateSteps);

impl Steps {
    fn stretch(&self, now_ns: u64) -> Stretch {
        let (steps, repeat_ns) = (&self.0.steps, self.0.repeat_ns);
        let begun_ns = repeat_ns.map_or(0, |repeat_ns| now_ns - now_ns % repeat_ns.max(1));
        let within_ns = now_ns - begun_ns;
        let next = steps.partition_point(|(at_ns, _)| *at_ns <= within_ns);
        let bits_per_s = next.checked_sub(1).and_then(|last| steps.get(last)).map_or(0, |(_, rate)| *rate);
        let until_ns = steps.get(next).map(|(at_ns, _)| *at_ns).or(repeat_ns);
        Stretch {
            bits_per_s: Some(bits_per_s),
            until_ns: until_ns.map_or(u64::MAX, |until_ns| begun_ns.saturating_add(until_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::network::{OutagePackets, OutageTimes, Outages, RateSteps};

    use super::*;
    use crate::stream::LinkDirection;

    const MS: u64 = 1_000_000;

    fn link(rate: LinkRate) -> Link {
        Link::new(&Direction { rate, ..Direction::default() }, Seeds::run(1, LinkDirection::Up))
    }

    fn send(link: &mut Link, ready_ns: u64, length_bytes: u64) -> u64 {
        let start_ns = link.start_ns(ready_ns);
        link.transmit(start_ns, length_bytes)
    }

    #[test]
    fn serialisation_time_is_exact() {
        let mut link = link(LinkRate::Constant { bits_per_s: 50_000_000 });
        assert_eq!(send(&mut link, 0, 1514), 242_240);
        assert_eq!(send(&mut link, 0, 1514), 484_480, "a busy link queues");
        assert_eq!(send(&mut link, MS, 1514), 1_242_240, "an idle link starts at the arrival");
    }

    #[test]
    fn a_busy_link_does_not_drift() {
        const PACKETS: u64 = 1_000_000;
        for bits_per_s in [3, 9_999_991, 49_999_999, 1_000_000_007] {
            let mut link = link(LinkRate::Constant { bits_per_s });
            let mut bits = 0_u128;
            let mut departure_ns = 0;
            for packet in 0..PACKETS {
                let length = if bits_per_s == 3 { 1 } else { 64 + packet % 1451 };
                bits += u128::from(length) * 8;
                departure_ns = send(&mut link, 0, length);
            }
            let exact_ns = bits * 1_000_000_000 / u128::from(bits_per_s);
            assert_eq!(u128::from(departure_ns), exact_ns, "at {bits_per_s} bit/s");
        }
    }

    #[test]
    fn a_table_is_followed_to_the_bit() {
        // 1 Mbit/s for 10 ms, nothing for 10 ms, 2 Mbit/s for 10 ms, repeated: 30 000 bits per 30 ms.
        let steps = vec![(0, 1_000_000), (10 * MS, 0), (20 * MS, 2_000_000)];
        let mut link = link(LinkRate::Steps(RateSteps { steps, repeat_ns: Some(30 * MS) }));
        // 10 000 bits until 10 ms, the rest of 12 000 from 20 ms on.
        assert_eq!(send(&mut link, 0, 1500), 21 * MS);
        assert_eq!(send(&mut link, 0, 1500), 27 * MS);
        // 6000 bits until 30 ms, 6000 at 1 Mbit/s.
        assert_eq!(send(&mut link, 0, 1500), 36 * MS);
        assert_eq!(send(&mut link, 42 * MS, 250), 51 * MS, "a transmission starts while the rate is 0");
        let mut departure_ns = 0;
        for _ in 0..10_000 {
            departure_ns = send(&mut link, 0, 375);
        }
        // 1000 repetitions of 30 000 bits are 30 s, from 51 ms on, in the middle of a repetition.
        assert_eq!(departure_ns, 30_051 * MS);
    }

    #[test]
    fn the_last_rate_holds_for_ever() {
        let steps = RateSteps { steps: vec![(0, 8_000), (1000 * MS, 8_000_000)], repeat_ns: None };
        let mut link = link(LinkRate::Steps(steps));
        assert_eq!(send(&mut link, 0, 500), 500 * MS);
        assert_eq!(send(&mut link, 0, 1000), 1000 * MS + MS / 2, "half at the old rate, half at the new");
        assert_eq!(send(&mut link, 10_000 * MS, 1000), 10_001 * MS);
    }

    #[test]
    fn a_standstill_holds_packets_back() {
        let outages = Outages {
            packets: OutagePackets::Wait,
            times: OutageTimes::Every { every_ns: 100 * MS, lasts_ns: 20 * MS, at_random: false },
        };
        for rate in [LinkRate::Unlimited, LinkRate::Constant { bits_per_s: 8_000_000 }] {
            let direction = Direction { rate, outages: Some(outages), ..Direction::default() };
            let seeds = Seeds::run(1, LinkDirection::Up);
            let mut link = Link::new(&direction, seeds);
            let begins_ns = 100 * MS - seeds.phase_ns(100 * MS);
            let took_ns = if direction.rate == LinkRate::Unlimited { 0 } else { MS };
            assert_eq!(send(&mut link, begins_ns + 5 * MS, 1000), begins_ns + 20 * MS + took_ns);
        }
    }

    #[test]
    fn a_link_that_never_sends_is_an_error() {
        assert_eq!(send(&mut link(LinkRate::Constant { bits_per_s: 0 }), 5, 100), u64::MAX);
        let outages = Outages { packets: OutagePackets::Wait, times: OutageTimes::Always };
        let direction = Direction { outages: Some(outages), ..Direction::default() };
        assert_eq!(Link::new(&direction, Seeds::run(1, LinkDirection::Up)).start_ns(7), u64::MAX);
    }
}
