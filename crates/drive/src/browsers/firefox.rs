//! A page load in Firefox: the commands of WebDriver BiDi, and when the load is done.
//!
//! The protocol does not name connections and cannot be told addresses of names. A script in the browser's
//! own window does both, which `--remote-allow-system-access` permits. Pages cannot reach it.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::assignment::Trust;
use model::sample::{FailureKind, Outcome};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use workload::formats::bidi::{Recorder, RunClock};

use super::bidi::{BiDi, refusal};
use super::progress::{AFTER_LOAD, BrowserError, PICTURE_LIMIT, failed, wait_until_done};

/// Scripts in the browser's own window and in the page.
const BROWSER_SCRIPT: &str = include_str!("firefox/browser.js");
const PAGE_SCRIPT: &str = include_str!("firefox/page.js");
/// The globals of the page's script, so that it has the browser's functions whatever the page did to its own.
const SANDBOX: &str = "h123";
const EVENTS: [&str; 7] = [
    "network.beforeRequestSent",
    "network.responseStarted",
    "network.responseCompleted",
    "network.fetchError",
    "browsingContext.domContentLoaded",
    "browsingContext.load",
    "log.entryAdded",
];
/// How long the network must have been idle, as Chromium's `networkIdle`.
const IDLE: Duration = Duration::from_millis(500);
/// How long scripts of h123 may take.
const SCRIPT_LIMIT: Duration = Duration::from_secs(10);
/// How much JPEG keeps of a picture.
const PICTURE_QUALITY: f64 = 0.5;
/// Unix time and monotonic time differ by more than this once somebody sets the clock.
const CLOCK_STEP_NS: u64 = 1_000_000;

/// What a browser may reach and whom it trusts.
#[derive(Clone, Debug)]
pub(super) struct Reach<'a> {
    /// The names that resolve, with their addresses; empty for all.
    pub(super) addresses: Vec<(String, IpAddr)>,
    pub(super) trust: &'a Trust,
}

/// The page of a browser, ready to load.
pub(super) struct Tab<'a> {
    bidi: BiDi,
    /// The browser's own window, and the tab.
    window: String,
    context: String,
    deadline: Instant,
    stop: &'a AtomicBool,
    /// Events that came before the navigation, which are none of its.
    recorder: Option<Recorder>,
    loaded_at: Option<Instant>,
    active_at: Instant,
    /// The command that navigates, and why it was refused.
    navigate: Option<u64>,
    refusal: Option<String>,
}

impl<'a> Tab<'a> {
    /// Prepares the browser for a load.
    ///
    /// # Errors
    /// The browser ended, refused a command, or did not answer before the deadline.
    pub(super) fn open(
        bidi: BiDi,
        reach: &Reach<'_>,
        deadline: Instant,
        stop: &'a AtomicBool,
    ) -> Result<Tab<'a>, BrowserError> {
        let mut tab = Tab {
            bidi,
            window: String::new(),
            context: String::new(),
            deadline,
            stop,
            recorder: None,
            loaded_at: None,
            active_at: Instant::now(),
            navigate: None,
            refusal: None,
        };
        let capabilities = json!({
            "acceptInsecureCerts": matches!(reach.trust, Trust::Anyone),
            // A page with an open dialog does nothing more.
            "unhandledPromptBehavior": { "default": "accept" },
        });
        tab.ask("session.new", json!({ "capabilities": { "alwaysMatch": capabilities } }))?;
        tab.window = tab.first_context(json!({ "moz:scope": "chrome", "maxDepth": 0 }))?;
        tab.context = tab.first_context(json!({ "maxDepth": 0 }))?;
        let authorities = if let Trust::Authority(pem) = reach.trust { pem } else { "" };
        let addresses: Vec<(&str, String)> =
            reach.addresses.iter().map(|(name, address)| (name.as_str(), address.to_string())).collect();
        let settings = json!({ "addresses": addresses, "authorities": authorities });
        let window = json!({ "context": tab.window });
        tab.evaluate(&format!("{}({settings})", BROWSER_SCRIPT.trim_end()), &window)?;
        tab.ask("session.subscribe", json!({ "events": EVENTS }))?;
        Ok(tab)
    }

    /// Loads a URL and waits until the page is loaded, painted and idle, at most for `limit`.
    ///
    /// # Errors
    /// The run's outcome: the document failed, or the load was not done in time.
    pub(super) fn load(&mut self, url: &str, run_start_ns: u64, limit: Duration) -> Result<(), Outcome> {
        let unix_offset_ns = unix_offset_ns();
        self.recorder = Some(Recorder::new(RunClock { run_start_ns, unix_offset_ns }, &self.context));
        self.deadline = Instant::now() + limit;
        let params = json!({ "context": self.context, "url": url, "wait": "none" });
        self.navigate = Some(self.bidi.send("browsingContext.navigate", params).map_err(failed)?);
        wait_until_done(url, self.deadline, self.stop, |until| {
            if self.is_done(url)? {
                return Ok(true);
            }
            if let Some(message) = self.bidi.next_message(until).map_err(failed)? {
                self.handle(&message);
            }
            Ok(false)
        })?;
        self.deadline = Instant::now() + SCRIPT_LIMIT;
        let window = json!({ "context": self.window });
        let connections = self.report("JSON.stringify(h123Connections)", &window).map_err(failed)?;
        if let Some(recorder) = &mut self.recorder {
            recorder.handle_connections(&connections);
        }
        if self::unix_offset_ns().abs_diff(unix_offset_ns) > CLOCK_STEP_NS {
            let reason = "this machine's clock was set during the load, so its times are unknown; repeat it";
            return Err(Outcome::failed(FailureKind::Client, reason));
        }
        Ok(())
    }

    /// What the page looks like, as JPEG; `None` if the browser gives no picture.
    pub(super) fn picture(&mut self) -> Option<Vec<u8>> {
        self.deadline = Instant::now() + PICTURE_LIMIT;
        let format = json!({ "type": "image/jpeg", "quality": PICTURE_QUALITY });
        let params = json!({ "context": self.context, "format": format });
        let answer = self.ask("browsingContext.captureScreenshot", params).ok()?;
        BASE64_STANDARD.decode(answer["data"].as_str()?).ok()
    }

    /// Ends the browser; what was recorded of the load.
    pub(super) fn close(mut self) -> Recorder {
        // If it has ended already, that is no worse.
        let _ = self.bidi.send("browser.close", json!({}));
        self.recorder.unwrap_or_default()
    }

    /// Whether the page is done; its own times are read once it seems so.
    fn is_done(&mut self, url: &str) -> Result<bool, Outcome> {
        let Some(recorder) = &self.recorder else { return Ok(false) };
        let refusal = self.refusal.take().map(|reason| (FailureKind::Client, reason));
        if let Some((kind, reason)) = recorder.failure().cloned().or(refusal) {
            return Err(Outcome::failed(kind, format!("the browser could not load {url}: {reason}")));
        }
        let Some(loaded_at) = self.loaded_at else { return Ok(false) };
        let is_over = loaded_at.elapsed() >= AFTER_LOAD;
        let is_idle = !recorder.is_waiting() && self.active_at.elapsed() >= IDLE;
        if !is_over && !is_idle {
            return Ok(false);
        }
        let page = json!({ "context": self.context, "sandbox": SANDBOX });
        let timeline = self.report(PAGE_SCRIPT, &page).map_err(failed)?;
        let Some(recorder) = &mut self.recorder else { return Ok(false) };
        recorder.handle_timeline(&timeline);
        // Without a paint the page is asked again, once it has been idle for as long.
        self.active_at = Instant::now();
        Ok(is_over || recorder.is_painted())
    }

    fn handle(&mut self, message: &Value) {
        if self.navigate.is_some_and(|id| message["id"] == id) {
            self.refusal = refusal(message);
        }
        let Some(method) = message["method"].as_str() else { return };
        let Some(recorder) = &mut self.recorder else { return };
        recorder.handle_event(method, &message["params"]);
        self.active_at = Instant::now();
        if self.loaded_at.is_none() && recorder.is_loaded() {
            self.loaded_at = Some(self.active_at);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, BrowserError> {
        let mut events = Vec::new();
        let mut keep = |event| events.push(event);
        let answer = self.bidi.ask(method, params, self.deadline, &mut keep);
        events.iter().for_each(|event| self.handle(event));
        answer
    }

    fn first_context(&mut self, params: Value) -> Result<String, BrowserError> {
        let tree = self.ask("browsingContext.getTree", params)?;
        let context = tree["contexts"][0]["context"].as_str();
        context.map(str::to_owned).ok_or_else(|| BrowserError::Malformed("it has no tab".to_owned()))
    }

    /// Evaluates a script; its result.
    fn evaluate(&mut self, script: &str, target: &Value) -> Result<Value, BrowserError> {
        let params = json!({ "expression": script, "target": target, "awaitPromise": true });
        let mut answer = self.ask("script.evaluate", params)?;
        if let Some(reason) = answer["exceptionDetails"]["text"].as_str() {
            return Err(BrowserError::Refused {
                method: "script.evaluate".to_owned(),
                reason: reason.to_owned(),
            });
        }
        Ok(answer["result"]["value"].take())
    }

    /// Evaluates a script whose result is a text of JSON.
    fn report(&mut self, script: &str, target: &Value) -> Result<Value, BrowserError> {
        let result = self.evaluate(script, target)?;
        let text = result.as_str().unwrap_or_default();
        serde_json::from_str(text).map_err(|error| BrowserError::Malformed(error.to_string()))
    }
}

/// Unix time minus CLOCK_MONOTONIC, in nanoseconds.
fn unix_offset_ns() -> u64 {
    let now_ns = |clock| {
        let now = clock_gettime(clock);
        let whole_ns = u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
        whole_ns.saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
    };
    let before_ns = now_ns(ClockId::Monotonic);
    let unix_ns = now_ns(ClockId::Realtime);
    let after_ns = now_ns(ClockId::Monotonic);
    unix_ns.saturating_sub(before_ns.midpoint(after_ns))
}
