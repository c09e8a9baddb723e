//! A page load in Chromium: the commands of the DevTools protocol, and when the load is done.

mod playback;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::options::BrowserOptions;
use model::sample::Outcome;
use serde_json::{Value, json};
use workload::formats::devtools::{Recorder, failure_kind};
use workload::formats::page_load::PageLoad;

use super::devtools::DevTools;
use super::filmstrip::{self, Filmstrip};
use super::progress::{AFTER_LOAD, BrowserError, PICTURE_LIMIT, failed, wait_until_done};

/// How much JPEG keeps of a picture.
const PICTURE_QUALITY: u32 = 50;
/// How long leaving a page may take.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Closes all connections of all pools, also those of QUIC, as soon as the page for it is ready.
const FLUSH: &str = "new Promise((done, failed) => { let tries = 0; const flush = () => { \
    if (typeof chrome !== 'undefined' && chrome.send && document.readyState === 'complete') { \
    chrome.send('flushSocketPools'); setTimeout(() => done(true), 50); } \
    else if (++tries > 100) { failed(new Error('no chrome.send')); } else { setTimeout(flush, 50); } }; flush(); })";
/// What a browser requests on its own: no resource of a page.
const BLOCKED_URLS: [&str; 1] = ["*/favicon.ico"];

/// The page of a browser, ready to load.
pub(super) struct Tab<'a> {
    devtools: &'a mut DevTools,
    session: String,
    deadline: Instant,
    stop: &'a AtomicBool,
    /// Events that came before the navigation, which are none of its.
    recorder: Option<Recorder>,
    /// The sessions of frames of other sites.
    attached: Vec<String>,
    loaded_at: Option<Instant>,
    target: Value,
    options: BrowserOptions,
    filmstrip: Filmstrip,
}

impl<'a> Tab<'a> {
    /// Opens an empty page and has its events reported.
    ///
    /// # Errors
    /// The browser ended, refused a command, or did not answer before the deadline.
    pub(super) fn open(
        devtools: &'a mut DevTools,
        options: BrowserOptions,
        deadline: Instant,
        stop: &'a AtomicBool,
    ) -> Result<Tab<'a>, BrowserError> {
        let (target, session) = open_target(devtools, "about:blank", deadline)?;
        let mut tab = Tab {
            devtools,
            session,
            deadline,
            stop,
            recorder: None,
            attached: Vec::new(),
            loaded_at: None,
            target,
            options,
            filmstrip: Filmstrip::default(),
        };
        for domain in ["Page", "Network", "Log", "Runtime"] {
            tab.ask(&format!("{domain}.enable"), json!({}))?;
        }
        tab.ask("Page.setLifecycleEventsEnabled", json!({ "enabled": true }))?;
        let types = ["largest-contentful-paint", "layout-shift"];
        tab.ask("PerformanceTimeline.enable", json!({ "eventTypes": types }))?;
        tab.ask("Network.setBlockedURLs", json!({ "urls": BLOCKED_URLS }))?;
        let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        tab.ask("Target.setAutoAttach", attach)?;
        if options.cpu_slowdown > 1 {
            tab.ask("Emulation.setCPUThrottlingRate", json!({ "rate": options.cpu_slowdown }))?;
        }
        if options.filmstrip {
            tab.ask("Page.startScreencast", filmstrip::format())?;
        }
        Ok(tab)
    }

    /// Lets the next load ignore what is cached. Emptying the cache would also forget Alt-Svc.
    ///
    /// # Errors
    /// As [`Tab::open`].
    pub(super) fn ignore_cache(&mut self) -> Result<(), BrowserError> {
        self.ask("Network.setCacheDisabled", json!({ "cacheDisabled": true })).map(drop)
    }

    /// Loads a URL and waits until the page is loaded, painted and idle, at most for `limit`.
    ///
    /// # Errors
    /// The run's outcome: the document failed, or the load was not done in time.
    pub(super) fn load(&mut self, url: &str, recorder: Recorder, limit: Duration) -> Result<(), Outcome> {
        self.navigate(url, recorder, limit)?;
        self.wait(url, Tab::is_done)
    }

    fn navigate(&mut self, url: &str, recorder: Recorder, limit: Duration) -> Result<(), Outcome> {
        self.recorder = Some(recorder);
        self.deadline = Instant::now() + limit;
        let began = self.ask("Page.navigate", json!({ "url": url })).map_err(failed)?;
        if let Some(error) = began["errorText"].as_str() {
            let reason = format!("the browser could not load {url}: {error}");
            return Err(Outcome::failed(failure_kind(error), reason));
        }
        Ok(())
    }

    /// Follows the events of the page until it is done.
    fn wait(&mut self, url: &str, is_done: impl Fn(&Self) -> bool) -> Result<(), Outcome> {
        wait_until_done(url, self.deadline, self.stop, |until| {
            if is_done(self) {
                return Ok(true);
            }
            if let Some(message) = self.devtools.next_message(until).map_err(failed)? {
                self.handle(&message).map_err(failed)?;
            }
            Ok(false)
        })
    }

    /// What the page looks like, as JPEG; `None` if the browser gives no picture.
    pub(super) fn picture(&mut self) -> Option<Vec<u8>> {
        self.deadline = Instant::now() + PICTURE_LIMIT;
        let params = json!({ "format": "jpeg", "quality": PICTURE_QUALITY });
        let answer = self.ask("Page.captureScreenshot", params).ok()?;
        BASE64_STANDARD.decode(answer["data"].as_str()?).ok()
    }

    /// Ends the browser; what was recorded of the load, and the pictures of it.
    pub(super) fn close(self) -> (PageLoad, Filmstrip) {
        // If it has ended already, that is no worse.
        let _ = self.devtools.send(None, "Browser.close", json!({}));
        (self.recorder.unwrap_or_default().finish(), self.filmstrip)
    }

    /// Closes the page and all connections, as if the visitor had left long ago; what was recorded of the
    /// load.
    ///
    /// # Errors
    /// The browser ended or refused a command.
    pub(super) fn leave(self) -> Result<PageLoad, BrowserError> {
        let Tab { devtools, target, recorder, .. } = self;
        let deadline = Instant::now() + LEAVE_LIMIT;
        // Only this page of the browser itself can close connections.
        let (tools, session) = open_target(devtools, "chrome://net-internals/#sockets", deadline)?;
        let mut ignored = |_| {};
        let flush = json!({ "expression": FLUSH, "awaitPromise": true, "returnByValue": true });
        let answer = devtools.ask(Some(&session), "Runtime.evaluate", flush, deadline, &mut ignored)?;
        if answer["result"]["value"] != true {
            let reason =
                answer["exceptionDetails"]["text"].as_str().unwrap_or("it gave no reason").to_owned();
            return Err(BrowserError::Refused { method: "to close its connections".to_owned(), reason });
        }
        for closed in [target, tools] {
            devtools.ask(
                None,
                "Target.closeTarget",
                json!({ "targetId": closed }),
                deadline,
                &mut ignored,
            )?;
        }
        Ok(recorder.unwrap_or_default().finish())
    }

    fn is_done(&self) -> bool {
        let is_settled = self.recorder.as_ref().is_some_and(Recorder::is_settled);
        is_settled || self.loaded_at.is_some_and(|loaded_at| loaded_at.elapsed() >= AFTER_LOAD)
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, BrowserError> {
        let mut events = Vec::new();
        let session = self.session.clone();
        let mut keep = |event| events.push(event);
        let answer = self.devtools.ask(Some(&session), method, params, self.deadline, &mut keep);
        for event in events {
            self.handle(&event)?;
        }
        answer
    }

    fn handle(&mut self, message: &Value) -> Result<(), BrowserError> {
        let Some(method) = message["method"].as_str() else { return Ok(()) };
        let params = &message["params"];
        match method {
            "Target.attachedToTarget" => return self.attach(params),
            "Page.screencastFrame" => {
                let frame = json!({ "sessionId": params["sessionId"] });
                self.devtools.send(Some(&self.session.clone()), "Page.screencastFrameAck", frame)?;
                self.filmstrip.add(params);
            }
            "Inspector.targetCrashed" => return Err(BrowserError::Crashed),
            // A page with an open dialog does nothing more.
            "Page.javascriptDialogOpening" => {
                let session = message["sessionId"].as_str();
                self.devtools.send(session, "Page.handleJavaScriptDialog", json!({ "accept": true }))?;
            }
            _ => {}
        }
        let is_own = message["sessionId"].as_str().is_some_and(|session| {
            session == self.session || self.attached.iter().any(|attached| attached == session)
        });
        if let Some(recorder) = self.recorder.as_mut().filter(|_| is_own) {
            recorder.handle_event(method, params);
            if self.loaded_at.is_none() && recorder.is_loaded() {
                self.loaded_at = Some(Instant::now());
            }
        }
        Ok(())
    }

    /// A frame of another site, or a worker: its requests are the page's, too.
    fn attach(&mut self, params: &Value) -> Result<(), BrowserError> {
        let Some(session) = params["sessionId"].as_str() else { return Ok(()) };
        self.devtools.send(Some(session), "Network.enable", json!({}))?;
        if self.options.cpu_slowdown > 1 {
            let rate = json!({ "rate": self.options.cpu_slowdown });
            self.devtools.send(Some(session), "Emulation.setCPUThrottlingRate", rate)?;
        }
        self.devtools.send(Some(session), "Runtime.runIfWaitingForDebugger", json!({}))?;
        self.attached.push(session.to_owned());
        Ok(())
    }
}

/// Opens a page; its target and its session.
fn open_target(
    devtools: &mut DevTools,
    url: &str,
    deadline: Instant,
) -> Result<(Value, String), BrowserError> {
    let mut ignored = |_| {};
    let mut ask = |method: &str, params| devtools.ask(None, method, params, deadline, &mut ignored);
    let target = ask("Target.createTarget", json!({ "url": url }))?["targetId"].take();
    let attached = ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }))?;
    Ok((target, attached["sessionId"].as_str().unwrap_or_default().to_owned()))
}
