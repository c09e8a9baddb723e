//! The progress bar of a study: runs done, time left. Plain lines where standard error is no terminal.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::units::format_duration_ns;

use crate::terminal::note;

/// In a pipe, a line is written at most this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a study is.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    total_expected_ns: u64,
    done_expected_ns: u64,
    done: usize,
    runs: usize,
    began: Instant,
    last_line: Instant,
    failed: usize,
}

impl Progress {
    /// A bar over `runs` runs that are expected to take `expected_ns` together.
    pub(crate) fn new(runs: usize, expected_ns: u64, quiet: bool) -> Self {
        let is_terminal = stderr().is_terminal();
        let target =
            if quiet || !is_terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
        // The template is a constant; were it wrong, the default style would do.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} runs · {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        let now = Instant::now();
        Progress {
            bar,
            lines: !is_terminal,
            quiet,
            total_expected_ns: expected_ns,
            done_expected_ns: 0,
            done: 0,
            runs,
            began: now,
            last_line: now,
            failed: 0,
        }
    }

    /// So many runs more are to be done than it was told first.
    pub(crate) fn expect(&mut self, runs: usize, expected_ns: u64) {
        self.runs += runs;
        self.total_expected_ns = self.total_expected_ns.saturating_add(expected_ns);
        self.bar.inc_length(runs as u64);
    }

    /// A run of the cell `label` begins.
    pub(crate) fn begin(&self, label: &str) {
        self.bar.set_message(format!("{} left · {label}{}", self.left(), self.troubles()));
    }

    /// A run that was expected to take `expected_ns` has ended.
    pub(crate) fn end(&mut self, expected_ns: u64, ok: bool) {
        self.done_expected_ns += expected_ns;
        self.done += 1;
        self.failed += usize::from(!ok);
        self.bar.inc(1);
        if self.lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            note(
                self.quiet,
                &format!("{}/{} runs, {} left{}", self.done, self.runs, self.left(), self.troubles()),
            );
        }
    }

    /// The bar goes away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Time left, by the plan's expectation scaled with what was seen so far.
    fn left(&self) -> String {
        let left_ns = as_f64(self.total_expected_ns.saturating_sub(self.done_expected_ns));
        let scale = if self.done_expected_ns == 0 {
            1.0
        } else {
            self.began.elapsed().as_secs_f64() * 1e9 / as_f64(self.done_expected_ns)
        };
        let seconds = (left_ns * scale / 1e9).ceil();
        if seconds < 120.0 {
            format!("{seconds:.0} s")
        } else {
            format!("{:.0} min", (seconds / 60.0).ceil())
        }
    }

    fn troubles(&self) -> String {
        if self.failed == 0 { String::new() } else { format!(" · {} not ok", self.failed) }
    }
}

/// A duration for a sentence: `1 min 52 s`.
pub(crate) fn in_words(duration_ns: u64) -> String {
    let seconds = duration_ns / 1_000_000_000;
    match seconds {
        0..60 => format_duration_ns(as_f64(duration_ns)),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
fn as_f64(value: u64) -> f64 {
    value as f64
}
