//! When to sleep and when to spin before a release.
//!
//! A timer wakes a thread some microseconds late, so the loop sets the timer earlier and spins until the
//! release. Spinning takes CPU time from the client or the server, so it is as long as timers usually are
//! late, and has a budget: sparse packets, whose latency matters most (handshakes, requests), are released to
//! the microsecond; in a long burst the loop sleeps. Links with a long delay have a smaller budget, because
//! the lateness of a timer is a small part of that delay.

/// No spin is longer.
const LONGEST_SPIN_NS: u64 = 60_000;
/// A fifth of the time may be spent spinning...
const BUDGET_DIVISOR: u64 = 5;
/// ...or a twentieth where no packet is delayed by less than this, a hundred times the lateness of a timer...
const FAR_NS: u64 = 5_000_000;
const FAR_BUDGET_DIVISOR: u64 = 20;
/// ...and at most this long without a break.
const BUDGET_LIMIT_NS: u64 = 1_000_000;

/// While frames arrive, the loop checks the rings at least this often instead of waking up for every frame.
/// It does not wake up for a frame if it wakes up this soon in any case.
const BUSY_SLEEP_NS: u64 = 500_000;

/// What the loop does until its next look at the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Sleeps for this long. A command ends the sleep; a frame does if `wakes_on_frames`. A sleep that
    /// `is_timed` ends when the loop should wake up for the release, so it shows how late timers are.
    Sleep { ns: u64, wakes_on_frames: bool, is_timed: bool },
    /// Spins until the release or a frame.
    Spin,
    /// A frame is due.
    Nothing,
}

/// What is known when the loop has nothing left to release.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    pub now_ns: u64,
    /// When the next frame is to be sent.
    pub due_ns: u64,
    /// A frame that arrives now is due after this time at the earliest.
    pub least_delay_ns: u64,
    /// Whether frames arrived during the last loop.
    pub was_busy: bool,
}

/// Decides how the loop waits.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    pub spin: Spin,
    pub lead: Lead,
    pub gathering: Gathering,
}

impl Pacing {
    /// What to do until the next release.
    pub(super) fn plan(&mut self, outlook: Outlook) -> Pause {
        let Outlook { now_ns, due_ns, least_delay_ns, was_busy } = outlook;
        // Frames that arrive meanwhile wait in the ring with their time of arrival. None is due before the
        // shortest delay has passed.
        let longest_ns = (least_delay_ns / 2).min(BUSY_SLEEP_NS);
        let gathering_ns = self.gathering.wait_ns();
        if gathering_ns > 0 {
            let left_ns = due_ns.saturating_add(gathering_ns).saturating_sub(now_ns);
            let wakes_on_frames = longest_ns == 0;
            let ns = if wakes_on_frames { left_ns } else { left_ns.min(longest_ns) };
            return Pause::Sleep { ns, wakes_on_frames, is_timed: false };
        }
        let (sleep_ns, spin_ns) = self.spin.plan(now_ns, due_ns, least_delay_ns);
        if sleep_ns > 0 {
            let is_busy = was_busy && self.gathering.is_frequent();
            let is_by_time = longest_ns > 0 && (is_busy || sleep_ns <= longest_ns);
            let ns = if is_by_time { sleep_ns.min(longest_ns) } else { sleep_ns };
            return Pause::Sleep { ns, wakes_on_frames: !is_by_time, is_timed: ns == sleep_ns };
        }
        if spin_ns > 0 { Pause::Spin } else { Pause::Nothing }
    }
}

#[derive(Debug)]
pub(super) struct Spin {
    /// The usual lateness of timers, with some reserve.
    margin_ns: u64,
    budget_ns: u64,
    refilled_ns: u64,
}

impl Default for Spin {
    fn default() -> Self {
        Spin { margin_ns: LONGEST_SPIN_NS / 2, budget_ns: BUDGET_LIMIT_NS, refilled_ns: 0 }
    }
}

impl Spin {
    /// How long to sleep or, where that is 0, to spin until `due_ns`, on a link that delays packets by at
    /// least `delay_ns`.
    fn plan(&mut self, now_ns: u64, due_ns: u64, delay_ns: u64) -> (u64, u64) {
        let divisor = if delay_ns >= FAR_NS { FAR_BUDGET_DIVISOR } else { BUDGET_DIVISOR };
        let earned_ns = now_ns.saturating_sub(self.refilled_ns) / divisor;
        self.budget_ns = self.budget_ns.saturating_add(earned_ns).min(BUDGET_LIMIT_NS);
        self.refilled_ns = now_ns;
        let left_ns = due_ns.saturating_sub(now_ns);
        let margin_ns = if self.budget_ns >= self.margin_ns { self.margin_ns } else { 0 };
        if left_ns > margin_ns { (left_ns - margin_ns, 0) } else { (0, left_ns) }
    }

    /// A sleep that was to end at `wanted_ns` ended at `now_ns`: the margin follows lateness up faster than
    /// down. It ignores most of a single late timer, because every later packet would spin for it.
    pub(super) fn handle_wake_up(&mut self, wanted_ns: u64, now_ns: u64) {
        if let Some(late_ns) = now_ns.checked_sub(wanted_ns) {
            self.margin_ns = if late_ns > self.margin_ns {
                self.margin_ns + (late_ns.min(LONGEST_SPIN_NS).saturating_sub(self.margin_ns)) / 8
            } else {
                self.margin_ns - (self.margin_ns - late_ns) / 32
            };
        }
    }

    /// The loop spun from `began_ns` to `now_ns`.
    pub(super) fn handle_spin(&mut self, began_ns: u64, now_ns: u64) {
        self.budget_ns = self.budget_ns.saturating_sub(now_ns.saturating_sub(began_ns));
    }
}

/// How long before its due time a frame is sent. The kernel takes some microseconds to carry it to the other
/// host's interface, where it is due; without this lead every packet would be late by that time.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// Moving average of the time that sending one frame takes, in 1/16 ns.
    sixteenths: u64,
}

impl Lead {
    /// A frame is sent at most this long before it is due.
    const LONGEST_NS: u64 = 6_000;

    pub(super) const fn ns(&self) -> u64 {
        self.sixteenths / 16
    }

    /// Records how long it took to send some frames; only single frames update the average.
    pub(super) fn handle_sent(&mut self, frames: usize, took_ns: u64) {
        if frames == 1 {
            self.sixteenths = self.sixteenths - self.sixteenths / 16 + took_ns.min(Self::LONGEST_NS);
        }
    }
}

/// How long releases may be batched. At tens of thousands of packets per second a wake-up per packet would
/// take a whole CPU from client and server and distort the measurement. There, frames leave in small batches,
/// as from a network card with interrupt moderation.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Moving average of the time between frames, in nanoseconds.
    gap_ns: u64,
    last_ns: u64,
}

impl Default for Gathering {
    fn default() -> Self {
        Gathering { gap_ns: Self::LONGEST_GAP_NS, last_ns: 0 }
    }
}

impl Gathering {
    /// Frames are batched above 25 000 per second, both directions together.
    const GAP_NS: u64 = 40_000;
    /// Frames are frequent above 5000 per second: then one wake-up by time serves several arrivals.
    const FREQUENT_GAP_NS: u64 = 200_000;
    /// No frame waits longer for others.
    const WAIT_NS: u64 = 50_000;
    /// Longer gaps count as this, so that a burst after an idle period is noticed soon.
    const LONGEST_GAP_NS: u64 = 400_000;

    /// Records that `frames` frames were released at `now_ns`.
    pub(super) fn handle_released(&mut self, frames: usize, now_ns: u64) {
        let frames = frames as u64;
        if let Some(gap_ns) = now_ns.saturating_sub(self.last_ns).checked_div(frames) {
            let weight = frames.min(16);
            self.gap_ns = (self.gap_ns * (64 - weight) + gap_ns.min(Self::LONGEST_GAP_NS) * weight) / 64;
            self.last_ns = now_ns;
        }
    }

    /// Whether frames are frequent; for sparse ones a wake-up by time would come in addition.
    const fn is_frequent(&self) -> bool {
        self.gap_ns < Self::FREQUENT_GAP_NS
    }

    /// How long after the next frame's due time the loop may release it.
    const fn wait_ns(&self) -> u64 {
        if self.gap_ns < Self::GAP_NS { Self::WAIT_NS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_lateness() {
        let mut spin = Spin::default();
        (0..100).for_each(|_| spin.handle_wake_up(0, 50_000));
        assert!((49_900..=50_000).contains(&spin.margin_ns), "{}", spin.margin_ns);
        (0..100).for_each(|_| spin.handle_wake_up(0, 4_000_000));
        assert!((59_900..=LONGEST_SPIN_NS).contains(&spin.margin_ns), "{}", spin.margin_ns);
        (0..500).for_each(|_| spin.handle_wake_up(0, 5_000));
        assert!((5_000..5_100).contains(&spin.margin_ns), "{}", spin.margin_ns);
        spin.handle_wake_up(10_000, 9_000);
        assert!((5_000..5_100).contains(&spin.margin_ns), "woken early by a frame, so nothing is learnt");
        // One timer of twenty is late: the others spin for little of it.
        for number in 0..1000 {
            spin.handle_wake_up(0, if number % 20 == 0 { 60_000 } else { 8_000 });
        }
        assert!((8_000..24_000).contains(&spin.margin_ns), "{}", spin.margin_ns);
    }

    #[test]
    fn spinning_is_limited_and_earned_back() {
        let mut spin = Spin::default();
        let (margin_ns, start_ns) = (spin.margin_ns, 1_000_000_000);
        assert_eq!(spin.plan(start_ns, start_ns + 100_000, 0), (100_000 - margin_ns, 0));
        assert_eq!(spin.plan(start_ns, start_ns + 1_000, 0), (0, 1_000));
        spin.handle_spin(start_ns, start_ns + BUDGET_LIMIT_NS);
        assert_eq!(spin.plan(start_ns, start_ns + 1_000, 0), (1_000, 0), "no budget: sleep");
        let later_ns = start_ns + BUDGET_DIVISOR * margin_ns;
        assert_eq!(spin.plan(later_ns, later_ns + 1_000, FAR_NS), (1_000, 0), "a far link earns less");
        let later_ns = later_ns + BUDGET_DIVISOR * margin_ns;
        assert_eq!(spin.plan(later_ns, later_ns + 1_000, 0), (0, 1_000));
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_far_release_is_slept_for() {
        let mut pacing = Pacing::default();
        let now_ns = 1_000 * MS;
        let mut plan = |left_ns, least_delay_ns, was_busy| {
            pacing.plan(Outlook { now_ns, due_ns: now_ns + left_ns, least_delay_ns, was_busy })
        };
        let timed = |left_ns: u64, wakes_on_frames| Pause::Sleep {
            ns: left_ns - LONGEST_SPIN_NS / 2,
            wakes_on_frames,
            is_timed: true,
        };
        assert_eq!(plan(40 * MS, 50 * MS, true), timed(40 * MS, true));
        assert_eq!(plan(MS, 0, false), timed(MS, true), "a frame without delay is due at once");
        // The sleep ends before a frame that arrives now is due, so the frame need not end it.
        assert_eq!(plan(MS / 2, 5 * MS, false), timed(MS / 2, false));
        assert_eq!(plan(MS / 2, MS / 2, false), timed(MS / 2, true), "a frame could be due earlier");
        for left_ns in (LONGEST_SPIN_NS + 1..100 * MS).step_by(9_973) {
            assert!(matches!(plan(left_ns, 0, true), Pause::Sleep { .. }), "{left_ns} ns");
        }
        assert_eq!(plan(1_000, 5 * MS, false), Pause::Spin);
        assert_eq!(plan(0, 5 * MS, false), Pause::Nothing);
    }

    #[test]
    fn frequent_frames_do_not_end_a_sleep() {
        let mut pacing = Pacing::default();
        (1..1000).for_each(|number| pacing.gathering.handle_released(1, number * 80_000));
        let now_ns = 1_000 * MS;
        let mut plan = |least_delay_ns| {
            pacing.plan(Outlook { now_ns, due_ns: now_ns + 10 * MS, least_delay_ns, was_busy: true })
        };
        let by_time = |ns| Pause::Sleep { ns, wakes_on_frames: false, is_timed: false };
        assert_eq!(plan(15 * MS), by_time(BUSY_SLEEP_NS));
        assert_eq!(plan(200_000), by_time(100_000), "the loop looks before a frame can be due");
    }

    #[test]
    fn many_frames_are_waited_for() {
        let mut pacing = Pacing::default();
        (1..1000).for_each(|number| pacing.gathering.handle_released(1, number * 8_000));
        let now_ns = 1_000 * MS;
        let mut plan = |least_delay_ns| {
            pacing.plan(Outlook { now_ns, due_ns: now_ns + 1_000, least_delay_ns, was_busy: true })
        };
        let ns = 1_000 + Gathering::WAIT_NS;
        assert_eq!(plan(15 * MS), Pause::Sleep { ns, wakes_on_frames: false, is_timed: false });
        assert_eq!(plan(0), Pause::Sleep { ns, wakes_on_frames: true, is_timed: false });
    }

    /// The CPU time that `seconds` of full frames at 100 Mbit/s cost by spinning, where some timers are late.
    fn spun_ns(seconds: u64, least_delay_ns: u64) -> u64 {
        let gap_ns = 121_120;
        let mut pacing = Pacing::default();
        let (mut now_ns, mut spun_ns, mut sleeps) = (0, 0, 0);
        for due_ns in (1..=seconds * 1_000 * MS / gap_ns).map(|number| number * gap_ns) {
            while now_ns < due_ns {
                match pacing.plan(Outlook { now_ns, due_ns, least_delay_ns, was_busy: false }) {
                    Pause::Sleep { ns, is_timed, .. } => {
                        sleeps += 1;
                        let late_ns = if sleeps % 4 == 0 { 55_000 } else { 5_000 };
                        if is_timed {
                            pacing.spin.handle_wake_up(now_ns + ns, now_ns + ns + late_ns);
                        }
                        now_ns += ns + late_ns;
                    }
                    Pause::Spin => {
                        spun_ns += due_ns - now_ns;
                        pacing.spin.handle_spin(now_ns, due_ns);
                        now_ns = due_ns;
                    }
                    Pause::Nothing => break,
                }
            }
            pacing.gathering.handle_released(1, now_ns);
        }
        spun_ns
    }

    #[test]
    fn a_steady_flow_spins_for_its_share_of_a_cpu() {
        let share = |spun_ns: u64| spun_ns * 1000 / (10_000 * MS + BUDGET_DIVISOR * BUDGET_LIMIT_NS);
        let (far, near) = (share(spun_ns(10, 15 * MS)), share(spun_ns(10, MS)));
        assert!((1..=50).contains(&far), "{far} per mille");
        assert!((1..=200).contains(&near), "{near} per mille");
        assert!(far < near, "{far} and {near} per mille");
    }

    #[test]
    fn only_many_frames_are_gathered() {
        let mut gathering = Gathering::default();
        let mut now_ns = 0;
        let mut pass = |gathering: &mut Gathering, count: u64, frames: usize, gap_ns: u64| {
            for _ in 0..count {
                now_ns += gap_ns * frames as u64;
                gathering.handle_released(frames, now_ns);
            }
            gathering.wait_ns()
        };
        assert_eq!(pass(&mut gathering, 0, 1, 0), 0, "nothing yet");
        // 10 000 per second, then 100 Mbit/s of full frames with their acknowledgements.
        assert_eq!(pass(&mut gathering, 1000, 1, 1_000_000), 0);
        assert!(!gathering.is_frequent(), "10 Mbit/s");
        assert_eq!(pass(&mut gathering, 1000, 1, 100_000), 0);
        assert!(gathering.is_frequent());
        assert_eq!(pass(&mut gathering, 1000, 1, 80_000), 0);
        assert_eq!(pass(&mut gathering, 300, 1, 8_000), Gathering::WAIT_NS, "1 Gbit/s");
        assert_eq!(pass(&mut gathering, 300, 12, 8_000), Gathering::WAIT_NS, "and goes on in batches");
        assert_eq!(pass(&mut gathering, 8, 1, 10_000_000), 0, "and then a few");
    }

    #[test]
    fn the_lead_is_what_sending_takes_within_its_limit() {
        let mut lead = Lead::default();
        assert_eq!(lead.ns(), 0);
        (0..200).for_each(|_| lead.handle_sent(1, 3_000));
        assert!((2_900..=3_000).contains(&lead.ns()), "{}", lead.ns());
        (0..200).for_each(|_| lead.handle_sent(64, 90_000));
        assert!((2_900..=3_000).contains(&lead.ns()), "a batch says nothing of one frame");
        (0..200).for_each(|_| lead.handle_sent(1, 900_000));
        assert!(lead.ns() <= Lead::LONGEST_NS, "{}", lead.ns());
    }
}
