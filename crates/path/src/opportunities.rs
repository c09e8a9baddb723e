//! A link that follows a Mahimahi trace: it may send one full frame per opportunity.

use model::network::{self, FULL_FRAME_BYTES};
use model::units::NANOS_PER_MS;

/// The link's position in its trace.
#[derive(Debug)]
pub(crate) struct Opportunities {
    /// Time since the trace's start, and number of frames.
    at_ns: Vec<(u64, u64)>,
    period_ns: u64,
    /// The current instant: its time, and the bytes that can still be sent at it.
    instant_ns: u64,
    left_bytes: u64,
}

impl Opportunities {
    pub(crate) fn new(trace: &network::Opportunities) -> Self {
        let at_ns: Vec<(u64, u64)> = trace
            .at_ms
            .iter()
            .map(|(at_ms, frames)| (u64::from(*at_ms) * NANOS_PER_MS, u64::from(*frames)))
            .collect();
        let mut new = Opportunities { at_ns, period_ns: trace.period_ns(), instant_ns: 0, left_bytes: 0 };
        new.go_to(0);
        new
    }

    /// The first instant from `now_ns` on at which bytes can be sent; `u64::MAX` if the trace is empty.
    pub(crate) fn next_ns(&mut self, now_ns: u64) -> u64 {
        // Unused opportunities are lost.
        if self.instant_ns < now_ns {
            self.go_to(now_ns);
        } else if self.left_bytes == 0 {
            self.go_to(self.instant_ns.saturating_add(1));
        }
        self.instant_ns
    }

    /// Sends `bytes`, or as many as possible, at the instant that [`Opportunities::next_ns`] returned;
    /// returns their number.
    pub(crate) fn take_bytes(&mut self, instant_ns: u64, bytes: u64) -> u64 {
        debug_assert_eq!(instant_ns, self.instant_ns, "not the instant that next_ns returned");
        let taken = bytes.min(self.left_bytes);
        self.left_bytes -= taken;
        taken
    }

    /// The first instant from `now_ns` on, unused.
    ///
    /// The instants of a repetition are after its start, up to its end: except in the first repetition,
    /// opportunities at 0 coincide with the end of the previous repetition.
    fn go_to(&mut self, now_ns: u64) {
        let before_ns = now_ns.saturating_sub(1);
        let begun_ns = before_ns - before_ns % self.period_ns;
        let index = self.at_ns.partition_point(|(at_ns, _)| begun_ns.saturating_add(*at_ns) < now_ns);
        let Some((at_ns, frames)) = self.at_ns.get(index).copied() else {
            (self.instant_ns, self.left_bytes) = (u64::MAX, 0);
            return;
        };
        let at_start =
            self.at_ns.first().filter(|(first_ns, _)| *first_ns == 0).map_or(0, |(_, frames)| *frames);
        let frames = if at_ns == self.period_ns { frames + at_start } else { frames };
        self.instant_ns = begun_ns.saturating_add(at_ns);
        self.left_bytes = frames.saturating_mul(FULL_FRAME_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NANOS_PER_MS;

    fn send(link: &mut Opportunities, ready_ns: u64, mut bytes: u64) -> u64 {
        loop {
            let at_ns = link.next_ns(ready_ns);
            bytes -= link.take_bytes(at_ns, bytes);
            if bytes == 0 {
                return at_ns / MS;
            }
        }
    }

    fn link(at_ms: &[(u32, u32)]) -> Opportunities {
        Opportunities::new(&network::Opportunities { at_ms: at_ms.to_vec() })
    }

    #[test]
    fn one_full_frame_for_each_opportunity() {
        let mut link = link(&[(1, 1), (3, 2), (10, 1)]);
        let sent: Vec<u64> = (0..9).map(|_| send(&mut link, 0, FULL_FRAME_BYTES)).collect();
        assert_eq!(sent, [1, 3, 3, 10, 11, 13, 13, 20, 21]);
    }

    #[test]
    fn small_packets_share_and_large_ones_take_several() {
        let mut link = link(&[(1, 1), (2, 1), (3, 1), (4, 1)]);
        let sent: Vec<u64> = [1000, 1000, 28, 3000, 1029].map(|bytes| send(&mut link, 0, bytes)).to_vec();
        assert_eq!(sent, [1, 2, 2, 4, 5]);
    }

    #[test]
    fn unused_opportunities_are_wasted() {
        let mut link = link(&[(0, 1), (1, 1), (2, 1), (1000, 1)]);
        assert_eq!(send(&mut link, 2 * MS + 1, 100), 1000);
        assert_eq!(send(&mut link, 3_500_000 * MS, 100), 3_500_000, "an hour later, in one step");
        assert_eq!(send(&mut link, 3_500_000 * MS + 1, 100), 3_500_001);
    }

    #[test]
    fn the_edge_of_two_repetitions_has_the_opportunities_of_both() {
        let mut link = link(&[(0, 1), (5, 2)]);
        let sent: Vec<u64> = (0..8).map(|_| send(&mut link, 0, FULL_FRAME_BYTES)).collect();
        assert_eq!(sent, [0, 5, 5, 5, 10, 10, 10, 15]);
    }

    #[test]
    fn the_mean_is_the_traces() {
        let trace =
            network::Opportunities { at_ms: (1..=997).step_by(3).map(|ms| (ms, 1 + ms % 4)).collect() };
        let mut link = Opportunities::new(&trace);
        let mut last_ms = 0;
        for _ in 0..1_000_000 {
            last_ms = send(&mut link, 0, FULL_FRAME_BYTES);
        }
        let rate = 1e6 * FULL_FRAME_BYTES as f64 * 8.0 / (last_ms as f64 / 1e3);
        assert!((rate / trace.mean_bits_per_s() as f64 - 1.0).abs() < 0.01, "{rate}");
    }
}
