//! The events of WebDriver BiDi, as Firefox reports them, as a page load.
//!
//! Source: the modules `network`, `browsingContext` and `log` of w3c.github.io/webdriver-bidi. Times of the
//! network are Unix times in milliseconds with a fraction: Firefox computes them from its monotonic clock, so
//! one difference of the two clocks brings them to the clock of the run. What the protocol lacks comes from
//! two reports: [`Recorder::handle_timeline`] of the page, and [`Recorder::handle_connections`] of the
//! browser.

use model::formats::shown;
use model::number::nearest;
use model::sample::FailureKind;
use serde_json::Value;

use super::page_load::{LoadedRequest, Negotiated, PageLoad, Phase, Phases};
use super::page_recording::{Recording, content, text};

const NANOS_PER_MS: f64 = 1e6;
/// Unix times beyond the year 2096 are faults.
const LATEST_UNIX_MS: f64 = 4e12;
/// A font that cannot be read is an error in Firefox and a warning elsewhere: its text is painted all the
/// same.
const FONT_MESSAGE: &str = "downloadable font: ";
const TLS_ERROR: &str = "NS_ERROR_GENERATE_FAILURE(NS_ERROR_MODULE_SECURITY, ";

/// The clock of a run, by two other clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunClock {
    /// CLOCK_MONOTONIC at the run's start, in nanoseconds.
    pub run_start_ns: u64,
    /// Unix time minus CLOCK_MONOTONIC, in nanoseconds.
    pub unix_offset_ns: u64,
}

impl RunClock {
    /// A Unix time in milliseconds as nanoseconds since the run's start; `None` before it.
    fn run_ns(self, unix_ms: f64) -> Option<u64> {
        let is_time = unix_ms > 0.0 && unix_ms <= LATEST_UNIX_MS;
        let unix_ns = is_time.then(|| nearest(unix_ms * NANOS_PER_MS))?;
        unix_ns.checked_sub(self.unix_offset_ns)?.checked_sub(self.run_start_ns)
    }
}

/// Collects the events of one page load.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    clock: RunClock,
    /// The tab, by its id.
    context: String,
    /// The load of the page, by its id; the document's request names it.
    navigation: Option<String>,
    recording: Recording,
    /// Why the document could not be loaded.
    failure: Option<(FailureKind, String)>,
}

impl Recorder {
    /// A recorder for the next navigation of a tab.
    pub fn new(clock: RunClock, context: &str) -> Recorder {
        Recorder { clock, context: context.to_owned(), ..Recorder::default() }
    }

    /// Takes one event. Events of other modules, and those without the documented fields, have no effect.
    pub fn handle_event(&mut self, method: &str, params: &Value) {
        // An event that lacks a field is from another version of the protocol.
        let _: Option<()> = match method {
            "network.beforeRequestSent" => self.handle_request(params),
            "network.responseStarted" => self.handle_response(params, false),
            "network.responseCompleted" => self.handle_response(params, true),
            "network.fetchError" => self.handle_failure(params),
            "browsingContext.domContentLoaded" | "browsingContext.load" => {
                self.handle_page_event(method, params)
            }
            "log.entryAdded" => self.handle_log(params),
            _ => None,
        };
    }

    /// Takes what the page says about itself: `origin`, its time origin as Unix time, and the times since
    /// then of `firstPaint`, `largestPaint`, `domContentLoaded` and `load`, in milliseconds; null for what
    /// did not happen. These are finer than the times of events.
    pub fn handle_timeline(&mut self, timeline: &Value) {
        let Some(origin_ms) = timeline["origin"].as_f64() else { return };
        let events = &mut self.recording.events;
        // The page's own time begins when the browser begins to navigate, just before the request.
        events.began_ns = self.clock.run_ns(origin_ms).map_or(events.began_ns, |ns| ns.min(events.began_ns));
        let began_ns = events.began_ns;
        for (name, place) in [
            ("firstPaint", &mut events.first_contentful_paint_ns),
            ("largestPaint", &mut events.largest_contentful_paint_ns),
            ("domContentLoaded", &mut events.dom_content_loaded_ns),
            ("load", &mut events.loaded_ns),
        ] {
            let since_ms = timeline[name].as_f64().filter(|since_ms| *since_ms > 0.0);
            let at_ns = since_ms.and_then(|since_ms| self.clock.run_ns(origin_ms + since_ms));
            *place = at_ns.map(|at_ns| at_ns.max(began_ns)).or(*place);
        }
    }

    /// Takes what the browser says about the connections of responses: a list of objects with `request` and
    /// `redirects` as in events, `localPort`, `remote`, and, over TLS, `version`, `cipher` and `group`.
    pub fn handle_connections(&mut self, connections: &Value) {
        for connection in connections.as_array().into_iter().flatten() {
            let Some(id) = id_of(&connection["request"], &connection["redirects"]) else { continue };
            let Some(entry) = self.recording.entry(&id) else { continue };
            let (port, remote) = (connection["localPort"].as_u64(), connection["remote"].as_str());
            let request = &mut entry.request;
            // TCP and UDP have their own ports.
            let is_quic = request.protocol.as_deref() == Some("h3");
            request.connection = port.filter(|port| *port > 0).zip(remote).map(|(port, remote)| {
                shown(&format!("{port} {remote}{}", if is_quic { " quic" } else { "" }))
            });
            request.tls = negotiated(connection);
        }
    }

    /// Why the document could not be loaded, if so.
    pub fn failure(&self) -> Option<&(FailureKind, String)> {
        self.failure.as_ref()
    }

    /// Whether the event `load` has fired.
    pub fn is_loaded(&self) -> bool {
        self.recording.events.loaded_ns.is_some()
    }

    /// Whether text or an image has been painted.
    pub fn is_painted(&self) -> bool {
        self.recording.events.first_contentful_paint_ns.is_some()
    }

    /// Whether a request has not ended.
    pub fn is_waiting(&self) -> bool {
        self.recording.is_waiting()
    }

    /// The page load. Requests that have not ended are counted as unfinished.
    pub fn finish(self) -> PageLoad {
        let since_boot_ns = self.clock.run_start_ns.saturating_add(self.recording.events.began_ns);
        let has_begun = self.navigation.is_some();
        let began_unix_ns = has_begun.then(|| since_boot_ns.saturating_add(self.clock.unix_offset_ns));
        PageLoad { began_unix_ns, ..self.recording.finish() }
    }

    fn handle_request(&mut self, params: &Value) -> Option<()> {
        let (id, request) =
            (id_of(&params["request"]["request"], &params["redirectCount"])?, &params["request"]);
        let url = text(&request["url"])?;
        // The requests of the browser itself have no context.
        let context = params["context"].as_str()?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return None;
        }
        let at_ns = self.clock.run_ns(request["timings"]["requestTime"].as_f64()?)?;
        let navigation = params["navigation"].as_str().filter(|_| context == self.context);
        if let Some(navigation) = navigation.filter(|_| self.navigation.is_none()) {
            self.navigation = Some(navigation.to_owned());
            self.recording.events.began_ns = at_ns;
        }
        // Before the navigation the tab is empty.
        let own = self.navigation.as_deref()?;
        let request = LoadedRequest {
            url,
            method: request["method"].as_str().map_or_else(|| "GET".to_owned(), shown),
            intended_ns: at_ns,
            is_document: navigation == Some(own),
            ..LoadedRequest::default()
        };
        self.recording.add(&id, request);
        Some(())
    }

    fn handle_response(&mut self, params: &Value, is_ended: bool) -> Option<()> {
        let id = id_of(&params["request"]["request"], &params["redirectCount"])?;
        let (timing, response) = (self.timing(&params["request"]["timings"]), &params["response"]);
        let entry = self.recording.entry(&id)?;
        entry.is_cached |= response["fromCache"] == true;
        entry.is_ended |= is_ended;
        let request = &mut entry.request;
        request.status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        request.protocol = text(&response["protocol"]).map(|protocol| shown(&protocol));
        request.body_bytes = response["bodySize"].as_u64().unwrap_or(request.body_bytes);
        let coding = header(&response["headers"], "content-encoding").filter(|coding| *coding != "identity");
        request.content_range = header(&response["headers"], "content-range").map(shown);
        request.content = text(&response["mimeType"]).map(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            content(kind.trim(), coding)
        });
        (request.phases, request.sent_ns) = (timing.phases, timing.sent_ns);
        request.first_byte_ns = timing.first_byte_ns;
        if is_ended {
            request.done_ns = timing.done_ns;
        }
        Some(())
    }

    fn timing(&self, timings: &Value) -> Timing {
        // 0 stands for what did not happen, such as the connect of a connection that is reused.
        let at = |name: &str| self.clock.run_ns(timings[name].as_f64()?);
        let phase = |began: &str, ended: &str| -> Phase {
            let (began_ns, ended_ns) = (at(began)?, at(ended)?);
            Some((began_ns, ended_ns.max(began_ns)))
        };
        let sent_ns = at("requestStart");
        let first_byte_ns = at("responseStart").max(sent_ns).filter(|_| at("responseStart").is_some());
        Timing {
            phases: Phases {
                dns: phase("dnsStart", "dnsEnd"),
                connect: phase("connectStart", "connectEnd"),
                handshake: phase("tlsStart", "tlsEnd"),
            },
            sent_ns,
            first_byte_ns,
            done_ns: at("responseEnd").max(first_byte_ns),
        }
    }

    fn handle_failure(&mut self, params: &Value) -> Option<()> {
        let id = id_of(&params["request"]["request"], &params["redirectCount"])?;
        let timing = self.timing(&params["request"]["timings"]);
        let at_ns = params["timestamp"].as_f64().and_then(|unix_ms| self.clock.run_ns(unix_ms));
        let error = params["errorText"].as_str().filter(|error| !error.is_empty()).unwrap_or("no reason");
        // Errors of TLS have their names in brackets.
        let tls = error.strip_prefix(TLS_ERROR).and_then(|rest| rest.strip_suffix(')'));
        let error = tls.unwrap_or(error);
        let failure = (failure_kind(error), shown(error));
        let entry = self.recording.entry(&id)?;
        let request = &mut entry.request;
        (request.phases, request.sent_ns) = (timing.phases, timing.sent_ns);
        request.first_byte_ns = timing.first_byte_ns;
        request.done_ns = timing.done_ns.or(at_ns);
        request.failure = Some(failure.clone());
        entry.is_ended = true;
        let is_document = self.recording.document()?.failure.is_some();
        self.failure = self.failure.take().or(is_document.then_some(failure));
        Some(())
    }

    fn handle_page_event(&mut self, method: &str, params: &Value) -> Option<()> {
        let navigation = self.navigation.as_deref()?;
        let is_own = params["context"].as_str() == Some(&self.context)
            && params["navigation"].as_str() == Some(navigation);
        let unix_ms = params["timestamp"].as_f64().filter(|_| is_own)?;
        let events = &mut self.recording.events;
        // The time of the event is in whole milliseconds.
        let at_ns = self.clock.run_ns(unix_ms).unwrap_or_default().max(events.began_ns);
        let place = match method {
            "browsingContext.load" => &mut events.loaded_ns,
            _ => &mut events.dom_content_loaded_ns,
        };
        place.get_or_insert(at_ns);
        Some(())
    }

    fn handle_log(&mut self, entry: &Value) -> Option<()> {
        let text = entry["text"].as_str().filter(|_| entry["level"] == "error")?;
        if !text.starts_with(FONT_MESSAGE) {
            self.recording.add_message(text);
        }
        Some(())
    }
}

struct Timing {
    phases: Phases,
    sent_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    done_ns: Option<u64>,
}

/// A request by its id and the number of redirects before it, which has the same id.
fn id_of(request: &Value, redirects: &Value) -> Option<String> {
    let redirects = redirects.as_u64().unwrap_or(0);
    Some(format!("{} {redirects}", request.as_str()?))
}

/// A field of a response, which is a list of names and values.
fn header<'v>(headers: &'v Value, name: &str) -> Option<&'v str> {
    let is_named =
        |header: &&Value| header["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name));
    headers.as_array()?.iter().find(is_named)?["value"]["value"].as_str()
}

/// What TLS negotiated, by the names of h123's own rows.
fn negotiated(connection: &Value) -> Option<Negotiated> {
    // Numbers of nsITransportSecurityInfo.
    let version = match connection["version"].as_u64()? {
        1 => "TLSv1_0",
        2 => "TLSv1_1",
        3 => "TLSv1_2",
        4 => "TLSv1_3",
        _ => "",
    };
    let key_exchange = match connection["group"].as_str().unwrap_or_default() {
        "P256" => "secp256r1",
        "P384" => "secp384r1",
        "none" => "",
        other => other,
    };
    Some(Negotiated {
        version: version.to_owned(),
        cipher_suite: shown(connection["cipher"].as_str().unwrap_or_default()),
        key_exchange: shown(key_exchange),
    })
}

/// The kind of a failure by Gecko's name of it (xpcom/base/ErrorList.py).
pub fn failure_kind(error: &str) -> FailureKind {
    match error {
        "NS_BINDING_ABORTED" => FailureKind::Cancelled,
        "NS_ERROR_UNKNOWN_HOST" => FailureKind::Dns,
        "NS_ERROR_CONNECTION_REFUSED" => FailureKind::Refused,
        "NS_ERROR_NET_RESET" => FailureKind::Reset,
        "NS_ERROR_NET_TIMEOUT" | "NS_ERROR_NET_TIMEOUT_EXTERNAL" => FailureKind::Timeout,
        "NS_ERROR_NET_INTERRUPT" | "NS_ERROR_NET_PARTIAL_TRANSFER" | "NS_ERROR_NET_EMPTY_RESPONSE" => {
            FailureKind::Closed
        }
        _ if ["SEC_", "SSL_", "MOZILLA_PKIX_"].iter().any(|prefix| error.starts_with(prefix)) => {
            FailureKind::Tls
        }
        _ => FailureKind::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use model::Variant;
    use model::variant::HttpVersion;
    use serde_json::json;

    use super::super::devtools::tests::{assert_phases, assert_rows, rows};
    use super::*;

    /// Loads of the page `small` from the origin over a round trip of 150 ms, in Firefox ESR 153, each with
    /// the two reports.
    const RECORDED: [(Variant, &str, &str); 4] = [
        (Variant::H1, "http://server:8080/small/", include_str!("recorded/firefox-h1.jsonl")),
        (Variant::H1s, "https://server:8441/small/", include_str!("recorded/firefox-h1s.jsonl")),
        (Variant::H2, "https://server:8442/small/", include_str!("recorded/firefox-h2.jsonl")),
        (Variant::H3, "https://server:8443/small/", include_str!("recorded/firefox-h3.jsonl")),
    ];

    fn recorder(text: &str) -> Recorder {
        let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first = &messages[0]["params"];
        let first_ms = first["request"]["timings"]["requestTime"].as_f64().unwrap();
        let clock = RunClock { run_start_ns: 5, unix_offset_ns: nearest(first_ms * 1e6) - 10_000_000 };
        let mut recorder = Recorder::new(clock, first["context"].as_str().unwrap());
        for message in &messages {
            match message["method"].as_str() {
                Some(method) => recorder.handle_event(method, &message["params"]),
                None if message.is_array() => recorder.handle_connections(message),
                None => recorder.handle_timeline(message),
            }
        }
        recorder
    }

    #[test]
    fn phases_are_round_trips_of_each_handshake() {
        for (variant, _, text) in RECORDED {
            let recorder = recorder(text);
            assert!(recorder.is_loaded() && recorder.is_painted() && !recorder.is_waiting(), "{variant}");
            assert_eq!(recorder.failure(), None);
            let load = recorder.finish();
            assert_phases(variant, &load.events);
            assert_eq!((load.events.layout_shift_millionths, load.events.console_errors), (None, 0));
            let document = load.document().unwrap();
            let before_ns = document.intended_ns - load.events.began_ns;
            assert!(before_ns < 5_000_000, "the page's time begins {before_ns} ns before the request");
        }
    }

    #[test]
    fn requests_and_connections_are_rows() {
        for (variant, url, text) in RECORDED {
            let connections = if variant.http() == HttpVersion::Http11 { 2 } else { 1 };
            assert_rows(variant, &rows(&recorder(text).finish(), url, variant.http()), connections);
        }
    }

    #[test]
    fn another_protocol_is_a_failure_that_names_it() {
        let (_, url, text) = RECORDED[2];
        let rows = rows(&recorder(text).finish(), url, HttpVersion::Http3);
        for sample in &rows.samples[..3] {
            let failure = sample.outcome.failure().unwrap();
            assert_eq!(failure.kind, FailureKind::WrongVersion);
            assert_eq!(failure.reason, "the response used the protocol `h2`, not HTTP/3");
        }
    }

    /// An event of a request at a time in milliseconds after the run's start.
    fn request(method: &str, id: &str, redirects: u64, url: &str, at_ms: f64) -> (String, Value) {
        let times = json!({ "requestTime": 1e6 + at_ms, "requestStart": 1e6 + at_ms + 1.0, "dnsStart": 0,
                            "responseStart": 1e6 + at_ms + 2.0, "responseEnd": 1e6 + at_ms + 3.0 });
        let params = json!({ "context": "tab", "navigation": (id == "1-u").then_some("n"), "redirectCount": redirects,
                             "timestamp": 1e6 + at_ms,
                             "request": { "request": id, "url": url, "method": "GET", "timings": times } });
        (format!("network.{method}"), params)
    }

    fn with(mut event: (String, Value), name: &str, value: Value) -> (String, Value) {
        event.1[name] = value;
        event
    }

    fn load(events: &[(String, Value)]) -> Recorder {
        // The run began 999 900 ms after 1970.
        let clock = RunClock { run_start_ns: 100_000_000, unix_offset_ns: 999_800_000_000 };
        let mut recorder = Recorder::new(clock, "tab");
        events.iter().for_each(|(method, params)| recorder.handle_event(method, params));
        recorder
    }

    #[test]
    fn redirects_caches_and_codings_are_told_apart() {
        let response = |status: u16, is_cached: bool| {
            json!({ "status": status, "protocol": "h2", "mimeType": "text/html;charset=utf-8", "bodySize": 900,
                    "fromCache": is_cached,
                    "headers": [{ "name": "Content-Encoding", "value": { "type": "string", "value": "gzip" } }] })
        };
        let (first, next, image) = ("https://a.test/", "https://a.test/next", "https://a.test/i.png");
        let load = load(&[
            request("beforeRequestSent", "0-u", 0, "https://a.test/before", 0.0),
            request("beforeRequestSent", "1-u", 0, first, 1.0),
            with(request("responseCompleted", "1-u", 0, first, 1.0), "response", response(301, false)),
            request("beforeRequestSent", "1-u", 1, next, 5.0),
            with(request("responseStarted", "1-u", 1, next, 5.0), "response", response(200, false)),
            with(request("responseCompleted", "1-u", 1, next, 5.0), "response", response(200, false)),
            request("beforeRequestSent", "2-u", 0, image, 9.0),
            with(request("responseCompleted", "2-u", 0, image, 9.0), "response", response(200, true)),
            request("beforeRequestSent", "3-u", 0, "data:image/png;base64,", 9.0),
            request("beforeRequestSent", "4-u", 0, "https://a.test/poll", 9.0),
            with(request("beforeRequestSent", "5-u", 0, "https://b.test/", 9.0), "context", Value::Null),
        ]);
        assert!(load.is_waiting() && !load.is_loaded());
        let load = load.finish();
        let found: Vec<_> = load
            .requests
            .iter()
            .map(|request| (request.url.as_str(), request.status, request.done_ns, request.is_document))
            .collect();
        assert_eq!(
            found,
            [(first, Some(301), Some(104_000_000), true), (next, Some(200), Some(108_000_000), true)]
        );
        assert_eq!(load.document().unwrap().content.as_deref(), Some("text/html, gzip"));
        assert_eq!((load.unfinished, load.events.began_ns), (1, 101_000_000));
        assert_eq!(load.began_unix_ns, Some(1_000_001_000_000));
    }

    #[test]
    fn failures_have_their_kind_and_that_of_the_document_ends_the_load() {
        let url = "https://a.test/";
        let error =
            |id: &str, text: &str| with(request("fetchError", id, 0, url, 2.0), "errorText", text.into());
        let begun = [
            request("beforeRequestSent", "1-u", 0, url, 1.0),
            request("beforeRequestSent", "2-u", 0, url, 1.0),
        ];
        let one = load(&[begun.as_slice(), &[error("2-u", "NS_ERROR_NET_RESET")]].concat());
        assert_eq!(one.failure(), None);
        let reset = (FailureKind::Reset, "NS_ERROR_NET_RESET".to_owned());
        assert_eq!(one.finish().requests[0].failure, Some(reset));
        let bracketed = "NS_ERROR_GENERATE_FAILURE(NS_ERROR_MODULE_SECURITY, SEC_ERROR_BAD_SIGNATURE)";
        let untrusted = load(&[begun.as_slice(), &[error("2-u", bracketed)]].concat()).finish();
        let expected = (FailureKind::Tls, "SEC_ERROR_BAD_SIGNATURE".to_owned());
        assert_eq!(untrusted.requests[0].failure, Some(expected));
        let document = load(&[begun.as_slice(), &[error("1-u", "NS_ERROR_UNKNOWN_HOST")]].concat());
        assert_eq!(document.failure(), Some(&(FailureKind::Dns, "NS_ERROR_UNKNOWN_HOST".to_owned())));
        for (error, kind) in [
            ("NS_ERROR_CONNECTION_REFUSED", FailureKind::Refused),
            ("SEC_ERROR_UNKNOWN_ISSUER", FailureKind::Tls),
            ("NS_BINDING_ABORTED", FailureKind::Cancelled),
            ("NS_ERROR_NET_TIMEOUT", FailureKind::Timeout),
            ("NS_ERROR_NET_PARTIAL_TRANSFER", FailureKind::Closed),
            ("NS_ERROR_NET_HTTP3_PROTOCOL_ERROR", FailureKind::Protocol),
        ] {
            assert_eq!(failure_kind(error), kind);
        }
    }

    #[test]
    fn errors_of_scripts_are_those_of_the_console() {
        let entry = |level: &str, text: &str| {
            ("log.entryAdded".to_owned(), json!({ "type": "javascript", "level": level, "text": text }))
        };
        let found = load(&[
            entry("error", "ReferenceError: x is not defined"),
            entry("warn", "old"),
            entry("error", "downloadable font: rejected by sanitizer (font-family: \"f\")"),
        ]);
        let events = found.finish().events;
        assert_eq!(
            (events.console_errors, events.console),
            (1, vec!["ReferenceError: x is not defined".to_owned()])
        );
    }

    #[test]
    fn the_pages_own_times_are_finer_than_those_of_events() {
        let loaded = json!({ "context": "tab", "navigation": "n", "timestamp": 1_000_007.0 });
        let other = json!({ "context": "tab", "navigation": "other", "timestamp": 1_000_003.0 });
        let mut load = load(&[
            request("beforeRequestSent", "1-u", 0, "https://a.test/", 1.0),
            ("browsingContext.load".to_owned(), other),
            ("browsingContext.load".to_owned(), loaded.clone()),
            ("browsingContext.domContentLoaded".to_owned(), loaded),
        ]);
        assert_eq!(load.recording.events.loaded_ns, Some(107_000_000));
        load.handle_timeline(
            &json!({ "origin": 1_000_000.5, "load": 7.25, "firstPaint": null, "domContentLoaded": 0 }),
        );
        let events = load.finish().events;
        assert_eq!((events.began_ns, events.loaded_ns), (100_500_000, Some(107_750_000)));
        assert_eq!(
            (events.dom_content_loaded_ns, events.first_contentful_paint_ns),
            (Some(107_000_000), None)
        );
    }
}
