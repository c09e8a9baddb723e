//! The progress of a load test on standard error: one block on a terminal, plain lines in a pipe.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use load::{Live, Snapshot};
use model::assignment::Assignment;
use model::number::float;
use model::schedule::Share;
use model::units::{counted, format_bytes, format_ns, three_digits};

use crate::terminal;

/// How often the block on a terminal changes.
const BLOCK_EVERY: Duration = Duration::from_millis(200);
/// How often a line is written to a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The current rate is the mean of this period.
const RATE_OVER: Duration = Duration::from_secs(1);
const BAR: usize = 30;

/// What ends a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Goal {
    /// Its length, warm-up included.
    lasts_ns: Option<u64>,
    /// Its number of requests.
    requests: Option<u64>,
}

impl Goal {
    /// The goal of the assignments of all threads.
    pub(crate) fn of(assignments: &[Assignment]) -> Self {
        let mut goal = Goal::default();
        for assignment in assignments {
            let workload = &assignment.workload;
            goal.lasts_ns = workload.lasts_ns();
            // The number of requests of a schedule, or of a script that threads share, is that of all
            // threads.
            let is_shared = match workload.script() {
                Some(script) => script.share != Share::WHOLE,
                None => workload.schedule().is_some(),
            };
            let earlier = goal.requests.filter(|_| !is_shared).unwrap_or(0);
            let clients = u64::from(assignment.clients.count);
            let own = workload.requests().map(|each| each.saturating_mul(clients));
            goal.requests = own.map(|own| earlier.saturating_add(own));
        }
        goal
    }

    /// The share that is done and the time that is left, if they are known.
    fn progress(self, elapsed: Duration, ended: u64) -> Option<(f64, Duration)> {
        let elapsed_s = elapsed.as_secs_f64();
        let by_time = self.lasts_ns.filter(|ns| *ns > 0).map(|ns| elapsed_s * 1e9 / float(ns));
        let by_number = self.requests.filter(|all| *all > 0).map(|all| float(ended) / float(all));
        let share = [by_time, by_number]
            .into_iter()
            .flatten()
            .fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))))?;
        let share = share.clamp(0.0, 1.0);
        let left_s = if share > 0.0 { elapsed_s * (1.0 - share) / share } else { 0.0 };
        Some((share, Duration::try_from_secs_f64(left_s).unwrap_or(Duration::MAX)))
    }
}

/// What is shown at one moment.
#[derive(Clone, Debug)]
struct View {
    goal: Goal,
    elapsed: Duration,
    now: Snapshot,
    /// Requests that ended per second, in the last period.
    rate: f64,
}

/// Shows the workers' progress until the sender of `done` is dropped.
pub(crate) fn show(lives: &[Arc<Live>], goal: Goal, done: &Receiver<()>) {
    let is_terminal = stderr().is_terminal();
    let every = if is_terminal { BLOCK_EVERY } else { LINE_EVERY };
    let began = Instant::now();
    let mut earlier = vec![(Duration::ZERO, 0)];
    while done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let now = lives.iter().fold(Snapshot::default(), |sum, live| sum.and(&live.snapshot()));
        let elapsed = began.elapsed();
        let ended = ended(&now);
        let rate = rate(&mut earlier, elapsed, ended);
        let view = View { goal, elapsed, now, rate };
        if is_terminal {
            terminal::block(&block(&view, terminal::size_of_stderr().0.max(20)));
        } else {
            terminal::note(false, &line(&view));
        }
    }
    // The summary replaces the block.
    terminal::block(&[]);
}

fn ended(now: &Snapshot) -> u64 {
    now.completed + failed(now)
}

fn failed(now: &Snapshot) -> u64 {
    now.failed.iter().map(|(_, count)| count).sum()
}

/// Requests per second since the oldest kept reading.
fn rate(earlier: &mut Vec<(Duration, u64)>, elapsed: Duration, ended: u64) -> f64 {
    let since = earlier.first().copied().unwrap_or_default();
    let seconds = elapsed.saturating_sub(since.0).as_secs_f64();
    earlier.push((elapsed, ended));
    let old = earlier.iter().filter(|(at, _)| elapsed.saturating_sub(*at) >= RATE_OVER).count();
    earlier.drain(..old.saturating_sub(1));
    if seconds > 0.0 { float(ended.saturating_sub(since.1)) / seconds } else { 0.0 }
}

/// The block. No line may be wider than the terminal, or the next block would not replace it.
fn block(view: &View, width: usize) -> Vec<String> {
    let now = &view.now;
    let progress = match view.goal.progress(view.elapsed, ended(now)) {
        None => clock(view.elapsed),
        Some((share, left)) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the bar")]
            let full = (share * float(BAR as u64)).round() as usize;
            let bar = "█".repeat(full) + &"░".repeat(BAR - full.min(BAR));
            format!("{bar} {:3.0} % · {} · {} left", share * 100.0, clock(view.elapsed), clock(left))
        }
    };
    let mut lines = vec![
        progress,
        format!(
            "requests  {}/s · {} completed · {} of bodies",
            three_digits(view.rate.round()),
            now.completed,
            format_bytes(float(now.body_bytes))
        ),
    ];
    let quantiles: Vec<String> = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)]
        .into_iter()
        .filter_map(|(name, share)| Some(format!("{name} {}", format_ns(now.latency_ns(share)?))))
        .collect();
    let latency = if quantiles.is_empty() {
        if now.measured == 0 { "warming up".to_owned() } else { "–".to_owned() }
    } else {
        quantiles.join(" · ")
    };
    lines.push(format!("latency   {latency}"));
    lines.push(format!(
        "errors    {} · {}, {} in flight",
        errors(now),
        counted(now.connections, "connection"),
        counted(now.in_flight, "request")
    ));
    lines.iter().map(|line| line.chars().take(width - 1).collect()).collect()
}

/// The same in one line.
fn line(view: &View) -> String {
    let now = &view.now;
    let progress = match view.goal.progress(view.elapsed, ended(now)) {
        None => String::new(),
        Some((share, left)) => format!(" · {:.0} %, {} left", share * 100.0, clock(left)),
    };
    let p99 = now.latency_ns(0.99).map_or("–".to_owned(), format_ns);
    format!(
        "{}{progress} · {} requests/s · p99 {p99} · errors: {}",
        clock(view.elapsed),
        three_digits(view.rate.round()),
        errors(now)
    )
}

fn errors(now: &Snapshot) -> String {
    match failed(now) {
        0 => "none".to_owned(),
        failed => {
            let kinds: Vec<String> =
                now.failed.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
            format!("{failed} ({})", kinds.join(", "))
        }
    }
}

/// A time in full seconds, such as `3 min 05 s`.
fn clock(time: Duration) -> String {
    terminal::clock(time.as_secs())
}

#[cfg(test)]
mod tests {
    use model::sample::FailureKind;

    use super::*;

    fn view() -> View {
        let mut now = Snapshot::default();
        now.completed = 24_000;
        now.connections = 10;
        now.in_flight = 9;
        now.body_bytes = 3_072_000;
        now.failed = vec![(FailureKind::Timeout, 3), (FailureKind::WrongStatus, 1)];
        let goal = Goal { lasts_ns: Some(10_000_000_000), requests: None };
        View { goal, elapsed: Duration::from_secs(2), now, rate: 12_002.0 }
    }

    #[test]
    fn the_block_is_complete_and_never_wraps() {
        let lines = block(&view(), 120);
        assert_eq!(lines[0], format!("{}{}  20 % · 2 s · 8 s left", "█".repeat(6), "░".repeat(24)));
        assert_eq!(lines[1], "requests  12002/s · 24000 completed · 3.07 MB of bodies");
        assert_eq!(lines[2], "latency   warming up");
        assert_eq!(
            lines[3],
            "errors    4 (3 timeout, 1 wrong_status) · 10 connections, 9 requests in flight"
        );
        assert!(block(&view(), 20).iter().all(|line| line.chars().count() < 20));
        assert_eq!(
            line(&view()),
            "2 s · 20 %, 8 s left · 12002 requests/s · p99 – · errors: 4 (3 timeout, 1 wrong_status)"
        );
    }

    #[test]
    fn progress_is_by_what_ends_the_test_first() {
        let at = |goal: Goal, seconds, ended| goal.progress(Duration::from_secs(seconds), ended);
        assert_eq!(at(Goal::default(), 5, 5), None);
        let both = Goal { lasts_ns: Some(100_000_000_000), requests: Some(1000) };
        assert_eq!(at(both, 10, 500), Some((0.5, Duration::from_secs(10))));
        assert_eq!(at(both, 50, 100), Some((0.5, Duration::from_secs(50))));
        assert_eq!(at(both, 200, 100).unwrap().0, 1.0);
        assert_eq!(at(both, 0, 0).unwrap().0, 0.0);
    }

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut earlier = vec![(Duration::ZERO, 0)];
        for step in 1..=10 {
            rate(&mut earlier, Duration::from_millis(200 * step), 100 * step);
        }
        assert!(earlier.len() <= 7, "{earlier:?}");
        let now = rate(&mut earlier, Duration::from_millis(2200), 3000);
        assert!(now > 1000.0, "2000 requests in the last second: {now}");
    }

    #[test]
    fn times_are_those_of_a_wall_clock() {
        let of = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!([of(9), of(185), of(7400)], ["9 s", "3 min 05 s", "2 h 03 min"]);
    }
}
