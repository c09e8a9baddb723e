//! The pacer: when the requests of an open loop are due.
//!
//! Request number *k* is due when the integral of the schedule's rate over time reaches the request's
//! *place*. The place is *k* where requests are evenly spread. It is the sum of *k* + 1 unit exponentials for
//! a Poisson process (a process with a varying rate is one with unit rate on a stretched axis: Lewis and
//! Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", 1979, section 1). Places are exact
//! integers and each time is computed from its place, so nothing drifts: neither a late request nor rounding
//! moves a later one.

use model::number::{self, float};
use model::schedule::{Arrivals, Schedule, Share, Stage};
use model::shuffle::SplitMix64;

const NANOS_PER_S: f64 = 1e9;
/// A place counts in steps of 2⁻²⁴ requests, so that 64 bits hold 10¹² requests.
const PLACE_BITS: u32 = 24;

/// The due times of one client's requests, in rising order.
#[derive(Clone, Debug)]
pub struct Pacer {
    course: Course,
    arrivals: Arrivals,
    random: SplitMix64,
    /// The place of the last request of a Poisson process.
    place: u64,
    share: Share,
    /// The number of the next request of the whole schedule.
    number: u64,
    /// The most requests after the warm-up.
    limit: u64,
    warmup_ns: u64,
    /// Requests of the whole schedule that belong to the warm-up, among those before `number`.
    warmed: u64,
    next: Option<Planned>,
}

/// A request on the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its number within the whole schedule.
    pub number: u64,
    /// When it is due, in nanoseconds since the schedule's beginning.
    pub at_ns: u64,
}

impl Pacer {
    /// The pacer of a schedule. A warm-up at its first rate precedes it, and at most `requests` follow the
    /// warm-up.
    pub fn new(schedule: &Schedule, requests: Option<u64>, warmup_ns: u64, seed: u64) -> Self {
        let mut pacer = Pacer {
            course: Course::new(&schedule.stages, warmup_ns),
            arrivals: schedule.arrivals,
            random: SplitMix64::new(seed),
            place: 0,
            share: schedule.share,
            number: 0,
            limit: requests.unwrap_or(u64::MAX),
            warmup_ns,
            warmed: 0,
            next: None,
        };
        pacer.advance();
        pacer
    }

    /// The next request; the same one until [`Pacer::advance`].
    pub fn next(&self) -> Option<Planned> {
        self.next
    }

    /// Moves to the next request of this client's share.
    pub fn advance(&mut self) {
        self.next = loop {
            let number = self.number;
            self.number += 1;
            let Some(at_ns) = self.time_of(number) else { break None };
            self.warmed += u64::from(at_ns < self.warmup_ns);
            if number >= self.limit.saturating_add(self.warmed) {
                break None;
            }
            if number % u64::from(self.share.of.max(1)) == u64::from(self.share.index) {
                break Some(Planned { number, at_ns });
            }
        };
    }

    /// The time of request `number`; called once for each number, in ascending order.
    fn time_of(&mut self, number: u64) -> Option<u64> {
        let at = match self.arrivals {
            Arrivals::Even => number << PLACE_BITS,
            Arrivals::Poisson => {
                self.place = self.place.saturating_add(exponential(&mut self.random));
                self.place
            }
        };
        self.course.time_of(at)
    }
}

/// A unit exponential as a place, by inversion.
fn exponential(random: &mut SplitMix64) -> u64 {
    const BITS: u32 = 53;
    let uniform = (float(random.next_u64() >> (u64::BITS - BITS)) + 0.5) / float(1 << BITS);
    let place = -uniform.ln() * float(1 << PLACE_BITS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 37 requests")]
    let steps = place as u64;
    steps
}

/// The rate over time: stages, each with the place and time at which it begins.
#[derive(Clone, Debug)]
struct Course {
    stages: Vec<Segment>,
    /// The stage of the last place; places only rise.
    current: usize,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The number of requests before it.
    begins_at: f64,
    begins_s: f64,
    from_per_s: f64,
    to_per_s: f64,
    /// Infinite in a stage without end.
    duration_s: f64,
}

impl Course {
    fn new(stages: &[Stage], warmup_ns: u64) -> Self {
        let warmup = stages.first().filter(|_| warmup_ns > 0).map(|first| Stage {
            from: first.from,
            to: first.from,
            duration_ns: Some(warmup_ns),
        });
        let (mut begins_at, mut begins_s) = (0.0, 0.0);
        let stages = warmup
            .iter()
            .chain(stages)
            .map(|stage| {
                let duration_s = stage.duration_ns.map_or(f64::INFINITY, |ns| float(ns) / NANOS_PER_S);
                let (from_per_s, to_per_s) = (stage.from.per_second(), stage.to.per_second());
                let segment = Segment { begins_at, begins_s, from_per_s, to_per_s, duration_s };
                begins_at += segment.requests();
                begins_s += duration_s;
                segment
            })
            .collect();
        Course { stages, current: 0 }
    }

    /// When the integral of the rate reaches a place; `None` where it never does.
    fn time_of(&mut self, place: u64) -> Option<u64> {
        // Better than 2⁻²⁴ requests up to 5 · 10⁸ of them, and 10⁻¹⁶ of the number beyond.
        let place = float(place) / float(1 << PLACE_BITS);
        while let Some(segment) = self.stages.get(self.current) {
            let within = place - segment.begins_at;
            if within < segment.requests() {
                let at_ns = (segment.begins_s + segment.time_of(within)) * NANOS_PER_S;
                return Some(number::nearest(at_ns));
            }
            self.current += 1;
        }
        None
    }
}

impl Segment {
    /// The number of its requests.
    fn requests(&self) -> f64 {
        let mean_per_s = f64::midpoint(self.from_per_s, self.to_per_s);
        if mean_per_s == 0.0 { 0.0 } else { mean_per_s * self.duration_s }
    }

    /// Seconds after its beginning at which `within` requests have been due: the root of
    /// from·t + slope·t²/2 = within, in the form that stays exact for a slope near 0.
    fn time_of(&self, within: f64) -> f64 {
        let slope = (self.to_per_s - self.from_per_s) / self.duration_s;
        let root = (self.from_per_s * self.from_per_s + 2.0 * slope * within).max(0.0).sqrt();
        let sum = self.from_per_s + root;
        if sum == 0.0 { 0.0 } else { 2.0 * within / sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::schedule::Rate;

    const S: u64 = 1_000_000_000;

    fn stage(from: u64, to: u64, seconds: Option<u64>) -> Stage {
        Stage { from: Rate(from * 1000), to: Rate(to * 1000), duration_ns: seconds.map(|s| s * S) }
    }

    fn rates(stages: &[Stage], arrivals: Arrivals, share: Share) -> Schedule {
        Schedule { stages: stages.to_vec(), arrivals, share }
    }

    fn times(schedule: &Schedule, requests: Option<u64>, warmup_ns: u64, seed: u64) -> Vec<u64> {
        let mut pacer = Pacer::new(schedule, requests, warmup_ns, seed);
        std::iter::from_fn(|| {
            let planned = pacer.next()?;
            pacer.advance();
            Some(planned.at_ns)
        })
        .collect()
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        let schedule = rates(&[stage(3, 3, None)], Arrivals::Even, Share::WHOLE);
        let times = times(&schedule, Some(3_000_001), 0, 0);
        assert_eq!(&times[..4], [0, S / 3, 2 * S / 3 + 1, S]);
        assert_eq!(times[3_000_000], 1_000_000 * S, "after eleven days, to the nanosecond");
    }

    #[test]
    fn steps_and_ramps_have_as_many_requests_as_the_area_below_them() {
        let stages = [stage(10, 10, Some(2)), stage(100, 100, Some(1)), stage(0, 200, Some(2))];
        let times = times(&rates(&stages, Arrivals::Even, Share::WHOLE), None, 0, 0);
        let between =
            |from: u64, to: u64| times.iter().filter(|&&at| (from * S..to * S).contains(&at)).count();
        assert_eq!((between(0, 2), between(2, 3), between(3, 5)), (20, 100, 200));
        assert_eq!(between(3, 4), 50, "half of the time holds a quarter of a ramp from 0");
        assert!(times.is_sorted());
    }

    #[test]
    fn a_falling_ramp_ends_at_zero() {
        let schedule = rates(&[stage(200, 0, Some(2))], Arrivals::Even, Share::WHOLE);
        let times = times(&schedule, None, 0, 0);
        assert_eq!(times.len(), 200);
        assert_eq!(times.iter().filter(|&&at| at < S).count(), 150);
    }

    #[test]
    fn a_poisson_process_has_the_mean_and_variance_of_one() {
        let seed = 42;
        let times = times(
            &rates(&[stage(1000, 1000, None)], Arrivals::Poisson, Share::WHOLE),
            Some(100_000),
            0,
            seed,
        );
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard errors are 0.0032 and 0.0089 for 100 000 unit exponentials.
        assert!(
            (mean - 1.0).abs() < 0.016 && (variance - 1.0).abs() < 0.045,
            "seed {seed}: {mean} {variance}"
        );
        let without = gaps.iter().filter(|&&gap| gap > 1.0).count() as f64 / gaps.len() as f64;
        assert!((without - (-1.0_f64).exp()).abs() < 0.01, "seed {seed}: {without}");
    }

    #[test]
    fn equal_seeds_are_equal_and_others_are_not() {
        let schedule = rates(&[stage(5, 50, Some(10))], Arrivals::Poisson, Share::WHOLE);
        assert_eq!(times(&schedule, None, 0, 1), times(&schedule, None, 0, 1));
        assert_ne!(times(&schedule, None, 0, 1), times(&schedule, None, 0, 2));
    }

    #[test]
    fn shares_together_are_the_whole() {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let stages = [stage(10, 100, Some(3))];
            let whole = times(&rates(&stages, arrivals, Share::WHOLE), Some(100), 0, 9);
            let part = |index| times(&rates(&stages, arrivals, Share { index, of: 3 }), Some(100), 0, 9);
            let mut dealt: Vec<u64> = (0..3).flat_map(part).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, whole, "{arrivals:?}");
            assert_eq!(whole.len(), 100);
        }
    }

    #[test]
    fn a_warm_up_runs_at_the_first_rate() {
        let schedule = rates(&[stage(10, 100, Some(1))], Arrivals::Even, Share::WHOLE);
        let times = times(&schedule, None, 2 * S, 0);
        assert_eq!(times.iter().filter(|&&at| at < 2 * S).count(), 20);
        assert_eq!(times.len(), 75);
    }

    #[test]
    fn the_warm_up_does_not_count_towards_a_number() {
        for (arrivals, seed) in [(Arrivals::Even, 0), (Arrivals::Poisson, 3)] {
            let schedule = |share| rates(&[stage(10, 10, None)], arrivals, share);
            let whole = times(&schedule(Share::WHOLE), Some(15), 2 * S, seed);
            assert_eq!(whole.iter().filter(|&&at| at >= 2 * S).count(), 15, "{arrivals:?}");
            let part = |index| times(&schedule(Share { index, of: 2 }), Some(15), 2 * S, seed);
            let mut dealt: Vec<u64> = (0..2).flat_map(part).collect();
            dealt.sort_unstable();
            assert_eq!(dealt, whole, "{arrivals:?}: threads agree on how many the warm-up has");
        }
    }

    #[test]
    fn no_rate_and_no_stage_give_no_request() {
        assert_eq!(times(&rates(&[], Arrivals::Even, Share::WHOLE), None, 0, 0), Vec::<u64>::new());
        assert_eq!(
            times(&rates(&[stage(0, 0, None)], Arrivals::Even, Share::WHOLE), None, 0, 0),
            Vec::<u64>::new()
        );
    }
}
