//! What driving any browser has in common: what can go wrong, and waiting until a page is loaded.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::sample::{FailureKind, Outcome};

/// How often a load is checked for interruption.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// How long a page that is loaded may stay busy, or without a paint, until the observation ends.
pub(super) const AFTER_LOAD: Duration = Duration::from_secs(5);
/// How long a picture may take.
pub(super) const PICTURE_LIMIT: Duration = Duration::from_secs(5);

/// Why a browser cannot be driven any further.
#[derive(Debug)]
pub enum BrowserError {
    /// It closed its pipe or socket: it has ended.
    Closed,
    /// It did not answer in time.
    Late,
    /// The process of the page crashed.
    Crashed,
    /// It sent what is not a message of the protocol.
    Malformed(String),
    /// It refused a command, with the reason.
    Refused {
        /// The command.
        method: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for BrowserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrowserError::Closed => write!(f, "the browser ended"),
            BrowserError::Crashed => write!(f, "the process of the page crashed"),
            BrowserError::Late => write!(f, "the browser did not answer in time"),
            BrowserError::Malformed(problem) => write!(f, "the browser sent a malformed message: {problem}"),
            BrowserError::Refused { method, reason } => write!(f, "the browser refused {method}: {reason}"),
        }
    }
}

impl std::error::Error for BrowserError {}

/// The outcome of a run whose browser cannot be driven any further.
pub(super) fn failed(error: BrowserError) -> Outcome {
    let kind = if matches!(error, BrowserError::Late) { FailureKind::Timeout } else { FailureKind::Client };
    Outcome::failed(kind, error.to_string())
}

/// The outcome of a run that the user interrupted.
pub(super) fn interrupted() -> Outcome {
    Outcome::failed(FailureKind::Client, "interrupted: the browser was stopped")
}

/// Takes steps until one says that the page is done. A step handles at most one message, and waits for it at
/// most until the given time.
///
/// # Errors
/// The run's outcome: a step failed, the user interrupted, or the load was not done before the deadline.
pub(super) fn wait_until_done(
    url: &str,
    deadline: Instant,
    stop: &AtomicBool,
    mut step: impl FnMut(Instant) -> Result<bool, Outcome>,
) -> Result<(), Outcome> {
    while !step((Instant::now() + POLL).min(deadline))? {
        if stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        if Instant::now() >= deadline {
            let reason = format!("the page {url} was not loaded in time, and the browser was stopped");
            return Err(Outcome::failed(FailureKind::Timeout, reason));
        }
    }
    Ok(())
}
