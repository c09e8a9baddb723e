//! Headless Chromium over its DevTools pipe, as pages of a test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use drive::browsers::BrowserError;
use drive::browsers::devtools::{DevTools, piped};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser that does not answer within this time is killed, and the test fails.
const MAX: Duration = Duration::from_secs(120);

/// A running browser.
pub(crate) struct Browser {
    child: Child,
    /// Taken to end the browser.
    devtools: Option<DevTools>,
    /// The events of the open page.
    events: Vec<Value>,
    profile: TempDir,
}

/// How a page is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) dark: bool,
    pub(crate) print: bool,
}

impl Screen {
    pub(crate) const DESK: Screen = Screen { width: 1280, dark: false, print: false };
    pub(crate) const PHONE: Screen = Screen { width: 390, dark: false, print: false };
    pub(crate) const DARK: Screen = Screen { width: 1280, dark: true, print: false };
    pub(crate) const PAPER: Screen = Screen { width: 720, dark: false, print: true };
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let program = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(|name| Command::new(name).arg("--version").output().is_ok())
            .unwrap_or_else(|| panic!("found no Chromium, expected one on PATH: apt-get install chromium"));
        let words = [
            program,
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ];
        let more = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
        let looks = ["--hide-scrollbars", "--force-color-profile=srgb"];
        let limit = ["timeout".to_owned(), MAX.as_secs().to_string()];
        let folder = format!("--user-data-dir={}", profile.path().join("profile").display());
        let words = words.into_iter().chain(more).chain(looks).map(str::to_owned).chain([folder]);
        let command = piped(limit.into_iter().chain(words));
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(profile.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let devtools = DevTools::new(child.stdin.take().unwrap(), child.stdout.take().unwrap()).unwrap();
        Browser { child, devtools: Some(devtools), events: Vec::new(), profile }
    }

    /// Opens a file as a new page.
    pub(crate) fn open(&mut self, file: &Path, screen: Screen) -> Page<'_> {
        let target = self.ask(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let id = target["targetId"].clone();
        let attached = self.ask(None, "Target.attachToTarget", json!({ "targetId": id, "flatten": true }));
        let mut page = Page { session: attached["sessionId"].clone(), target: id, browser: self };
        for domain in ["Page", "Runtime", "Log", "Network", "Debugger", "Accessibility"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page.ask("Page.bringToFront", json!({}));
        page.ask("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        page.show_on(screen);
        page.browser.events.clear();
        page.ask("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        page.wait_for("Page.loadEventFired");
        page
    }

    fn ask(&mut self, session: Option<&Value>, method: &str, params: Value) -> Value {
        let id = self.send(session, method, params);
        loop {
            let message = self.next();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn send(&mut self, session: Option<&Value>, method: &str, params: Value) -> u64 {
        let devtools = self.devtools.as_mut().unwrap();
        match devtools.send(session.and_then(Value::as_str), method, params) {
            Ok(id) => id,
            Err(error) => self.fail(&error),
        }
    }

    fn next(&mut self) -> Value {
        let message = match self.devtools.as_mut().unwrap().next_message(Instant::now() + MAX) {
            Ok(Some(message)) => message,
            Ok(None) => self.fail(&BrowserError::Late),
            Err(error) => self.fail(&error),
        };
        if message["method"] == "Page.javascriptDialogOpening" {
            // A page with an open dialog answers nothing.
            let session = message["sessionId"].clone();
            self.send(Some(&session), "Page.handleJavaScriptDialog", json!({ "accept": true }));
        }
        message
    }

    fn fail(&self, error: &BrowserError) -> ! {
        let log = std::fs::read_to_string(self.profile.path().join("log")).unwrap_or_default();
        panic!("{error} (it is killed after {} s). Its log:\n{log}", MAX.as_secs());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of its commands ends it; `timeout` ends a browser that hangs.
        drop(self.devtools.take());
        let _ = self.child.wait();
    }
}

/// An open page.
pub(crate) struct Page<'b> {
    browser: &'b mut Browser,
    session: Value,
    target: Value,
}

impl Page<'_> {
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let session = self.session.clone();
        self.browser.ask(Some(&session), method, params)
    }

    /// The page as another screen would show it.
    pub(crate) fn show_on(&mut self, screen: Screen) {
        let Screen { width, dark, print } = screen;
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        let media = if print { "print" } else { "screen" };
        self.ask("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
        self.settle();
    }

    /// Waits until what was changed is drawn, which is when the pointer finds it there.
    fn settle(&mut self) {
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Moves the pointer over the middle of an element, scrolled into view; the place.
    pub(crate) fn hover(&mut self, element: &str) -> (f64, f64) {
        self.evaluate(&format!("window.aim = {element}, aim.scrollIntoView({{block: 'center'}})"));
        self.settle();
        let place = self.evaluate(
            "(() => { const r = aim.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()",
        );
        let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        self.ask("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
        (x, y)
    }

    /// Clicks on the middle of an element.
    pub(crate) fn click(&mut self, element: &str) {
        let (x, y) = self.hover(element);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key such as `Tab`, or `Space`, whose text is a blank.
    pub(crate) fn press(&mut self, key: &str) {
        let (name, code, text) = match key {
            "Space" => (" ", 32, " "),
            "Enter" => ("Enter", 13, "\r"),
            _ => (key, 9, ""),
        };
        let event = |kind: &str, text: &str| json!({ "type": kind, "key": name, "code": key, "windowsVirtualKeyCode": code, "text": text });
        self.ask("Input.dispatchKeyEvent", event("keyDown", text));
        self.ask("Input.dispatchKeyEvent", event("keyUp", ""));
    }

    /// What the page did that a report never does: words on the console, scripts, dialogs, requests that
    /// leave the file.
    pub(crate) fn misdeeds(&mut self) -> Vec<String> {
        // An answer to a question put now comes after all that the page did before.
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))");
        self.browser.events.iter().filter_map(misdeed).collect()
    }

    fn wait_for(&mut self, method: &str) {
        while !self.browser.events.iter().any(|event| event["method"] == method) {
            let event = self.browser.next();
            self.browser.events.push(event);
        }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let target = self.target.clone();
            self.browser.ask(None, "Target.closeTarget", json!({ "targetId": target }));
            self.browser.events.clear();
        }
    }
}

fn misdeed(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.consoleAPICalled" => Some(format!("console: {}", params["args"])),
        "Runtime.exceptionThrown" => Some(format!("exception: {}", params["exceptionDetails"]["text"])),
        "Log.entryAdded" => Some(format!("log: {}", params["entry"]["text"])),
        "Page.javascriptDialogOpening" => Some(format!("dialog: {}", params["message"])),
        // What this driver evaluates has no address; what a page brings along has that of its file.
        "Debugger.scriptParsed" => {
            params["url"].as_str().filter(|url| !url.is_empty()).map(|url| format!("script in {url}"))
        }
        "Network.requestWillBeSent" => {
            let url = params["request"]["url"].as_str()?;
            let is_own = params["type"] == "Document" && url.starts_with("file:///");
            (!is_own && !url.starts_with("data:")).then(|| format!("request: {url}"))
        }
        _ => None,
    }
}
