//! A playback in a page of Chromium.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use model::formats::nanoseconds;
use model::sample::{FailureKind, Outcome};
use serde_json::{Value, json};
use workload::formats::devtools::Recorder;

use super::Tab;
use crate::browsers::progress::{BrowserError, POLL, failed};

/// How long a page may take to tell what happened, when it is asked before the end.
const TELL_LIMIT: Duration = Duration::from_secs(5);
/// Sound needs a person's permission; videos without it play.
const START_VIDEOS: &str = "for (const video of document.querySelectorAll('video')) { video.muted = true; video.play().catch(() => {}); }";
const NANOS_PER_S: f64 = 1e9;

/// What a page tells of its playback.
pub(in crate::browsers) struct Told {
    /// The page's log; null if it tells nothing.
    pub(in crate::browsers) log: Value,
    /// When `performance.now()` was 0, as CLOCK_MONOTONIC in nanoseconds.
    pub(in crate::browsers) origin_ns: u64,
}

impl Tab<'_> {
    /// Loads the page of a player and plays until it tells its end, at most for `limit`. The outcome is a
    /// failure if the browser cannot go on; what is known until then is told, too.
    ///
    /// # Errors
    /// The run's outcome: the page was not loaded.
    pub(in crate::browsers) fn play(
        &mut self,
        url: &str,
        options: &Value,
        recorder: Recorder,
        limit: Duration,
    ) -> Result<(Told, Outcome), Outcome> {
        self.navigate(url, recorder, limit)?;
        self.wait(url, |tab| tab.loaded_at.is_some())?;
        let origin_ns = self.page_origin_ns().map_err(failed)?;
        let expression = format!("play({options})");
        let (log, outcome) = match self.play_to_the_end(&expression) {
            Ok(log) => (log, Outcome::Ok),
            Err(outcome) => {
                self.deadline = Instant::now() + TELL_LIMIT;
                let log = self.ask("Runtime.evaluate", evaluation("told()")).map(|answer| value_of(&answer));
                (log.ok().and_then(Result::ok).unwrap_or_default(), outcome)
            }
        };
        Ok((Told { log, origin_ns }, outcome))
    }

    /// Starts the videos of the page and follows what it requests for a time.
    ///
    /// # Errors
    /// The run's outcome: the browser cannot go on.
    pub(in crate::browsers) fn watch(&mut self, duration: Duration) -> Result<(), Outcome> {
        self.deadline = Instant::now() + duration + TELL_LIMIT;
        self.ask("Runtime.evaluate", evaluation(START_VIDEOS)).map_err(failed)?;
        let until = Instant::now() + duration;
        self.wait("", |_| Instant::now() >= until)
    }

    /// When the page's `performance.now()` was 0: both are counted from the start of the navigation.
    fn page_origin_ns(&mut self) -> Result<u64, BrowserError> {
        self.ask("Performance.enable", json!({ "timeDomain": "timeTicks" }))?;
        let answer = self.ask("Performance.getMetrics", json!({}))?;
        let metrics = answer["metrics"].as_array();
        let is_start = |metric: &&Value| metric["name"] == "NavigationStart";
        let start = metrics.and_then(|metrics| metrics.iter().find(is_start));
        let start_ns = start.and_then(|metric| nanoseconds(metric["value"].as_f64()?, NANOS_PER_S));
        start_ns
            .ok_or_else(|| BrowserError::Malformed("the metrics have no start of the navigation".to_owned()))
    }

    /// Begins the playback and follows the events of the network until the page answers.
    fn play_to_the_end(&mut self, expression: &str) -> Result<Value, Outcome> {
        let session = self.session.clone();
        let began = self.devtools.send(Some(&session), "Runtime.evaluate", evaluation(expression));
        let id = began.map_err(failed)?;
        loop {
            let until = (Instant::now() + POLL).min(self.deadline);
            if let Some(message) = self.devtools.next_message(until).map_err(failed)? {
                if message["id"] == id {
                    return value_of(&message["result"])
                        .map_err(|reason| Outcome::failed(FailureKind::Client, reason));
                }
                self.handle(&message).map_err(failed)?;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Outcome::failed(FailureKind::Client, "interrupted: the browser was stopped"));
            }
            if Instant::now() >= self.deadline {
                let reason = "the video was not played to its end in time, and the browser was stopped";
                return Err(Outcome::failed(FailureKind::Timeout, reason));
            }
        }
    }
}

/// An evaluation that waits for its promise, as if a person had started it.
fn evaluation(expression: &str) -> Value {
    json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true })
}

/// The JSON that an evaluation returned as text, or the exception that ended it.
fn value_of(result: &Value) -> Result<Value, String> {
    if let Some(problem) = result["exceptionDetails"]["exception"]["description"].as_str() {
        return Err(format!("the page of the player failed: {}", model::formats::shown(problem)));
    }
    let text = result["result"]["value"].as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|_| "the page of the player tells no JSON".to_owned())
}
