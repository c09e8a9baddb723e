//! The events of Chromium's DevTools protocol as a page load.
//!
//! Source: the protocol's domains `Network`, `Page`, `Log`, `Runtime` and `PerformanceTimeline`
//! (chromedevtools.github.io/devtools-protocol). `MonotonicTime` is seconds of CLOCK_MONOTONIC, the clock of
//! the run; only the times of paints in `PerformanceTimeline` are Unix times, which requests relate to it.

use std::collections::HashSet;

use model::formats::{nanoseconds, shown};
use model::number::{float, nearest};
use model::sample::FailureKind;
use serde_json::Value;

use super::page_load::{LoadedRequest, Negotiated, PageLoad, Phase, Phases};
use super::page_recording::{Entry, MOST_REQUESTS, Recording, content, text};

const NANOS_PER_S: f64 = 1e9;
const NANOS_PER_MS: f64 = 1e6;
/// A session of layout shifts has gaps below this, and lasts at most five of it (Cumulative Layout Shift).
const SESSION_GAP_S: f64 = 1.0;
const SESSION_S: f64 = 5.0;

/// Collects the events of one page load.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    run_start_ns: u64,
    recording: Recording,
    /// The load of the page, by its id; the document's request names it.
    loader: Option<String>,
    frame: Option<String>,
    /// Unix time minus monotonic time, in seconds.
    unix_offset_s: Option<f64>,
    largest_paint_unix_s: Option<f64>,
    shifts: Vec<(f64, f64)>,
    reports_shifts: bool,
    announces_http3: bool,
    /// Requests that were never made, because the caller blocked them.
    blocked: HashSet<String>,
    is_idle: bool,
}

impl Recorder {
    /// A recorder whose clock has this origin: CLOCK_MONOTONIC at the run's start, in nanoseconds.
    pub fn new(run_start_ns: u64) -> Recorder {
        Recorder { run_start_ns, reports_shifts: true, ..Recorder::default() }
    }

    /// Takes one event. Events of other domains, and those without the documented fields, have no effect.
    pub fn handle_event(&mut self, method: &str, params: &Value) {
        // An event that lacks a field is from another version of the protocol.
        let _: Option<()> = match method {
            "Network.requestWillBeSent" => self.handle_request(params),
            "Network.requestServedFromCache" => self.entry(params).map(|entry| entry.is_cached = true),
            "Network.responseReceived" => self.handle_response(params),
            "Network.dataReceived" => self.handle_data(params),
            "Network.loadingFinished" => self.handle_end(params),
            "Network.loadingFailed" => self.handle_failure(params),
            "Page.lifecycleEvent" => self.handle_lifecycle(params),
            "PerformanceTimeline.timelineEventAdded" => self.handle_timeline(&params["event"]),
            "Log.entryAdded" => self.handle_log(&params["entry"]),
            "Runtime.consoleAPICalled" => self.handle_console(params),
            "Runtime.exceptionThrown" => self.handle_exception(&params["exceptionDetails"]),
            _ => None,
        };
    }

    /// Whether the event `load` has fired.
    pub fn is_loaded(&self) -> bool {
        self.recording.events.loaded_ns.is_some()
    }

    /// Whether the page is loaded and painted, and the network has been idle for half a second.
    pub fn is_settled(&self) -> bool {
        self.is_loaded() && self.is_idle && self.recording.events.first_contentful_paint_ns.is_some()
    }

    /// The page load. Requests that have not ended are counted as unfinished.
    pub fn finish(mut self) -> PageLoad {
        let began_ns = self.recording.events.began_ns;
        self.recording.events.largest_contentful_paint_ns = self.largest_paint_unix_s.and_then(|unix_s| {
            let ns = self.run_ns(unix_s - self.unix_offset_s?)?;
            Some(ns.max(began_ns))
        });
        self.recording.events.layout_shift_millionths =
            self.reports_shifts.then(|| nearest(largest_session(&self.shifts) * 1e6));
        let since_boot_s = float(self.run_start_ns.saturating_add(began_ns)) / NANOS_PER_S;
        let began_unix_ns =
            self.unix_offset_s.map(|offset_s| nearest((offset_s + since_boot_s) * NANOS_PER_S));
        PageLoad { began_unix_ns, announces_http3: self.announces_http3, ..self.recording.finish() }
    }

    fn entry(&mut self, params: &Value) -> Option<&mut Entry> {
        self.recording.entry(params["requestId"].as_str()?)
    }

    /// A monotonic time in seconds on the run's clock.
    fn run_ns(&self, monotonic_s: f64) -> Option<u64> {
        nanoseconds(monotonic_s, NANOS_PER_S)?.checked_sub(self.run_start_ns)
    }

    fn stamp(&self, params: &Value) -> Option<u64> {
        self.run_ns(params["timestamp"].as_f64()?)
    }

    fn handle_request(&mut self, params: &Value) -> Option<()> {
        let at_ns = self.stamp(params)?;
        let (id, url) = (params["requestId"].as_str()?, params["request"]["url"].as_str()?);
        if let Some(wall_s) = params["wallTime"].as_f64() {
            self.unix_offset_s.get_or_insert(wall_s - params["timestamp"].as_f64()?);
        }
        let loader = params["loaderId"].as_str();
        let is_redirected = !params["redirectResponse"].is_null();
        if is_redirected {
            self.handle_response_of(id, &params["redirectResponse"]);
            if let Some(entry) = self.entry(params) {
                entry.request.done_ns = Some(entry.request.first_byte_ns.unwrap_or(at_ns));
                entry.is_ended = true;
            }
        }
        if !url.starts_with("http://") && !url.starts_with("https://") {
            self.recording.forget(id);
            return None;
        }
        let is_document = match &self.loader {
            None if params["type"] == "Document" => {
                (self.loader, self.frame) = (loader.map(str::to_owned), text(&params["frameId"]));
                self.recording.events.began_ns = at_ns;
                true
            }
            known => is_redirected && known.as_deref() == Some(id),
        };
        let request = LoadedRequest {
            url: url.to_owned(),
            method: params["request"]["method"].as_str().map_or_else(|| "GET".to_owned(), shown),
            initiator: initiator(&params["initiator"]),
            intended_ns: at_ns,
            is_document,
            ..LoadedRequest::default()
        };
        self.recording.add(id, request);
        Some(())
    }

    fn handle_response(&mut self, params: &Value) -> Option<()> {
        self.handle_response_of(params["requestId"].as_str()?, &params["response"])
    }

    fn handle_response_of(&mut self, id: &str, response: &Value) -> Option<()> {
        let timing = self.timing(&response["timing"]);
        let alternatives = header(&response["headers"], "alt-svc");
        self.announces_http3 |= alternatives.is_some_and(|value| value.contains("h3="));
        let entry = self.recording.entry(id)?;
        let flag = |name: &str| response[name].as_bool().unwrap_or(false);
        entry.is_cached |= flag("fromDiskCache") || flag("fromServiceWorker") || flag("fromPrefetchCache");
        entry.head_bytes = response["encodedDataLength"].as_f64().map_or(0, nearest);
        let coding = header(&response["headers"], "content-encoding").filter(|coding| *coding != "identity");
        entry.is_coded = coding.is_some();
        let request = &mut entry.request;
        request.status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        request.protocol = text(&response["protocol"]).map(|protocol| shown(&protocol));
        request.connection = response["connectionId"].as_u64().filter(|id| *id > 0).map(|id| id.to_string());
        request.content = text(&response["mimeType"]).map(|kind| content(&kind, coding));
        request.content_range = header(&response["headers"], "content-range").map(shown);
        request.tls = negotiated(&response["securityDetails"]);
        if let Some(Timing { phases, sent_ns, first_byte_ns }) = timing {
            request.phases = if flag("connectionReused") { Phases::default() } else { phases };
            (request.sent_ns, request.first_byte_ns) = (sent_ns, first_byte_ns);
        }
        Some(())
    }

    fn timing(&self, timing: &Value) -> Option<Timing> {
        let start_ns = self.run_ns(timing["requestTime"].as_f64()?)?;
        let at = |name: &str| {
            let offset_ns = nanoseconds(timing[name].as_f64()?, NANOS_PER_MS)?;
            Some(start_ns.saturating_add(offset_ns))
        };
        let phase = |began: &str, ended: &str| -> Phase {
            let (began_ns, ended_ns) = (at(began)?, at(ended)?);
            Some((began_ns, ended_ns.max(began_ns)))
        };
        let sent_ns = at("sendStart");
        Some(Timing {
            phases: Phases {
                dns: phase("dnsStart", "dnsEnd"),
                connect: phase("connectStart", "connectEnd"),
                handshake: phase("sslStart", "sslEnd"),
            },
            sent_ns,
            first_byte_ns: at("receiveHeadersEnd")
                .zip(sent_ns)
                .map(|(first_ns, sent_ns)| first_ns.max(sent_ns)),
        })
    }

    fn handle_data(&mut self, params: &Value) -> Option<()> {
        let bytes = params["dataLength"].as_u64()?;
        let entry = self.entry(params)?;
        entry.request.body_bytes = entry.request.body_bytes.saturating_add(bytes);
        Some(())
    }

    fn handle_end(&mut self, params: &Value) -> Option<()> {
        let at_ns = self.stamp(params)?;
        let all_bytes = params["encodedDataLength"].as_f64().map_or(0, nearest);
        let entry = self.entry(params)?;
        let request = &mut entry.request;
        request.done_ns = Some(at_ns);
        if entry.is_coded {
            // What arrived without the head; the other events count decoded bytes.
            request.body_bytes = all_bytes.saturating_sub(entry.head_bytes);
        }
        entry.is_ended = true;
        Some(())
    }

    fn handle_failure(&mut self, params: &Value) -> Option<()> {
        let at_ns = self.stamp(params)?;
        if params["blockedReason"] == "inspector" {
            // The caller blocked it: nothing was sent.
            self.entry(params)?.is_cached = true;
            self.blocked.insert(params["requestId"].as_str()?.to_owned());
            return None;
        }
        let error = params["errorText"].as_str().unwrap_or("no reason");
        let failure = match params["blockedReason"].as_str() {
            Some(reason) => (FailureKind::Client, format!("the browser blocked it: {}", shown(reason))),
            None if params["canceled"] == true => (FailureKind::Cancelled, shown(error)),
            None => (failure_kind(error), shown(error)),
        };
        let entry = self.entry(params)?;
        entry.request.done_ns = Some(at_ns);
        entry.request.failure = Some(failure);
        entry.is_ended = true;
        Some(())
    }

    fn handle_lifecycle(&mut self, params: &Value) -> Option<()> {
        let is_own = self.loader.is_some() && params["loaderId"].as_str() == self.loader.as_deref();
        let (name, at_ns) = (params["name"].as_str().filter(|_| is_own)?, self.stamp(params)?);
        let events = &mut self.recording.events;
        let place = match name {
            "firstContentfulPaint" => &mut events.first_contentful_paint_ns,
            "DOMContentLoaded" => &mut events.dom_content_loaded_ns,
            "load" => &mut events.loaded_ns,
            "networkIdle" => {
                self.is_idle = true;
                return None;
            }
            _ => return None,
        };
        place.get_or_insert(at_ns.max(events.began_ns));
        Some(())
    }

    fn handle_timeline(&mut self, event: &Value) -> Option<()> {
        if event["frameId"].as_str() != self.frame.as_deref() {
            return None;
        }
        let at_s = event["time"].as_f64()?;
        if event["type"] == "largest-contentful-paint" {
            // An image from elsewhere has no time of its paint, but that of its load.
            let details = &event["lcpDetails"];
            let times = [&details["renderTime"], &details["loadTime"]];
            let painted_s = times.into_iter().filter_map(Value::as_f64).find(|time| *time > 0.0);
            self.largest_paint_unix_s = Some(painted_s.unwrap_or(at_s));
        } else if event["type"] == "layout-shift" && event["layoutShiftDetails"]["hadRecentInput"] != true {
            let value = event["layoutShiftDetails"]["value"].as_f64()?;
            if self.shifts.len() < MOST_REQUESTS && value.is_finite() && value > 0.0 {
                self.shifts.push((at_s, value));
            }
        }
        Some(())
    }

    fn handle_log(&mut self, entry: &Value) -> Option<()> {
        let is_blocked = entry["networkRequestId"].as_str().is_some_and(|id| self.blocked.contains(id));
        let text = entry["text"].as_str().filter(|_| entry["level"] == "error" && !is_blocked)?;
        let url = entry["url"].as_str().map_or(String::new(), |url| format!(" ({url})"));
        self.recording.add_message(&format!("{text}{url}"));
        Some(())
    }

    fn handle_console(&mut self, params: &Value) -> Option<()> {
        if params["type"] != "error" && params["type"] != "assert" {
            return None;
        }
        let words: Vec<&str> = params["args"]
            .as_array()?
            .iter()
            .filter_map(|argument| argument["value"].as_str().or_else(|| argument["description"].as_str()))
            .collect();
        self.recording.add_message(&words.join(" "));
        Some(())
    }

    fn handle_exception(&mut self, details: &Value) -> Option<()> {
        let description =
            details["exception"]["description"].as_str().or_else(|| details["text"].as_str())?;
        self.recording.add_message(description);
        Some(())
    }
}

struct Timing {
    phases: Phases,
    sent_ns: Option<u64>,
    first_byte_ns: Option<u64>,
}

/// The URL of what made a request: the parser's document or style sheet, or the nearest script.
fn initiator(initiator: &Value) -> Option<String> {
    let frames = initiator["stack"]["callFrames"].as_array();
    let of_script = || frames?.iter().find_map(|frame| text(&frame["url"]));
    text(&initiator["url"]).or_else(of_script)
}

/// A field of a response; names of HTTP/1.1 are as the server wrote them.
fn header<'v>(headers: &'v Value, name: &str) -> Option<&'v str> {
    let mut fields = headers.as_object()?.iter();
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
}

/// What TLS negotiated, by the names of h123's own rows.
fn negotiated(details: &Value) -> Option<Negotiated> {
    let version = match details["protocol"].as_str()? {
        "TLS 1.2" => "TLSv1_2",
        // QUIC has TLS 1.3 (RFC 9001, section 4.2).
        "TLS 1.3" | "QUIC" => "TLSv1_3",
        other => other,
    };
    let cipher = details["cipher"].as_str().unwrap_or_default();
    let cipher_suite = match cipher {
        "AES_128_GCM" if version == "TLSv1_3" => "TLS_AES_128_GCM_SHA256",
        "AES_256_GCM" if version == "TLSv1_3" => "TLS_AES_256_GCM_SHA384",
        "CHACHA20_POLY1305" if version == "TLSv1_3" => "TLS_CHACHA20_POLY1305_SHA256",
        other => other,
    };
    let group = details["keyExchangeGroup"].as_str().or_else(|| details["keyExchange"].as_str());
    let key_exchange = match group.unwrap_or_default() {
        "X25519" => "x25519",
        "P-256" => "secp256r1",
        "P-384" => "secp384r1",
        other => other,
    };
    Some(Negotiated {
        version: shown(version),
        cipher_suite: shown(cipher_suite),
        key_exchange: shown(key_exchange),
    })
}

/// The kind of a failure by Chromium's name of it (net_error_list.h).
pub fn failure_kind(error: &str) -> FailureKind {
    let name = error.strip_prefix("net::ERR_").unwrap_or(error);
    match name {
        "ABORTED" => FailureKind::Cancelled,
        "NAME_NOT_RESOLVED" | "NAME_RESOLUTION_FAILED" => FailureKind::Dns,
        "CONNECTION_REFUSED" | "ADDRESS_UNREACHABLE" => FailureKind::Refused,
        "CONNECTION_RESET" => FailureKind::Reset,
        "TIMED_OUT" | "CONNECTION_TIMED_OUT" => FailureKind::Timeout,
        "CONNECTION_CLOSED"
        | "EMPTY_RESPONSE"
        | "CONTENT_LENGTH_MISMATCH"
        | "INCOMPLETE_CHUNKED_ENCODING" => FailureKind::Closed,
        _ if name.starts_with("CERT_") || name.starts_with("SSL_") => FailureKind::Tls,
        _ => FailureKind::Protocol,
    }
}

/// The largest sum of shifts in a session: gaps below one second, five seconds at most. Shifts are pairs of a
/// time in seconds and a value.
fn largest_session(shifts: &[(f64, f64)]) -> f64 {
    let mut shifts = shifts.to_vec();
    shifts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut largest, mut sum, mut began_s, mut latest_s) = (0.0_f64, 0.0, f64::MIN, f64::MIN);
    for (at_s, value) in shifts {
        if at_s - latest_s >= SESSION_GAP_S || at_s - began_s >= SESSION_S {
            (began_s, sum) = (at_s, 0.0);
        }
        latest_s = at_s;
        sum += value;
        largest = largest.max(sum);
    }
    largest
}

#[cfg(test)]
pub(crate) mod tests {
    use model::error::Source;
    use model::page_events::PageEvents;
    use model::sample::Outcome;
    use model::url::Url;
    use model::variant::HttpVersion;
    use model::{Page, Variant};
    use serde_json::json;

    use super::super::page_load::{PageRows, WantedPage};
    use super::*;

    /// Loads of the page `small` from the origin over a round trip of 150 ms, in Chromium 156.
    const RECORDED: [(Variant, &str, &str); 4] = [
        (Variant::H1, "http://server:8080/small/", include_str!("recorded/chromium-h1.jsonl")),
        (Variant::H1s, "https://server:8441/small/", include_str!("recorded/chromium-h1s.jsonl")),
        (Variant::H2, "https://server:8442/small/", include_str!("recorded/chromium-h2.jsonl")),
        (Variant::H3, "https://server:8443/small/", include_str!("recorded/chromium-h3.jsonl")),
    ];
    const RTT_MS: u64 = 150;

    pub(crate) fn page() -> Page {
        let text = include_str!("../../../../pages/small.toml");
        Page::parse("small", Source { file: "small.toml", text }).unwrap()
    }

    fn recorder(text: &str) -> Recorder {
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first_s = events[0]["params"]["timestamp"].as_f64().unwrap();
        let mut recorder = Recorder::new(nearest(first_s * 1e9) - 1_000_000);
        for event in &events {
            recorder.handle_event(event["method"].as_str().unwrap(), &event["params"]);
        }
        recorder
    }

    pub(crate) fn rows(load: &PageLoad, url: &str, http: HttpVersion) -> PageRows {
        let (page, document) = (page(), Url::parse(url).unwrap());
        load.rows(&WantedPage {
            group: 3,
            resources: &WantedPage::resources_of(&page, &document),
            document: &document,
            http,
        })
    }

    /// The load over HTTP/3.
    pub(crate) fn recorded_load() -> PageLoad {
        recorder(RECORDED[3].2).finish()
    }

    /// Whole round trips, from 0 to 0.6 of a round trip more.
    pub(crate) fn round_trips(from_ns: Option<u64>, until_ns: Option<u64>) -> u64 {
        let ms = (until_ns.unwrap() - from_ns.unwrap()) / 1_000_000;
        assert!(ms % RTT_MS < RTT_MS * 6 / 10, "{ms} ms");
        ms / RTT_MS
    }

    /// The events of the page over a variant, in any browser.
    pub(crate) fn assert_phases(variant: Variant, events: &PageEvents) {
        let connect = events.connect_began_ns.map(|began| round_trips(Some(began), events.connect_ended_ns));
        let handshake =
            events.handshake_began_ns.map(|began| round_trips(Some(began), events.handshake_ended_ns));
        let expected = match variant {
            Variant::H1 => (Some(1), None),
            Variant::H3 => (None, Some(1)),
            _ => (Some(1), Some(1)),
        };
        assert_eq!((connect, handshake), expected, "{variant}");
        assert_eq!(round_trips(events.sent_ns, events.first_byte_ns), 1, "{variant}");
        let stamps = [
            Some(events.began_ns),
            events.sent_ns,
            events.first_byte_ns,
            events.dom_content_loaded_ns,
            events.loaded_ns,
        ];
        assert!(stamps.iter().all(Option::is_some) && stamps.is_sorted(), "{variant}: {stamps:?}");
        let [first, largest] = [events.first_contentful_paint_ns, events.largest_contentful_paint_ns];
        assert!(largest.unwrap().abs_diff(first.unwrap()) < 5_000_000, "one image and text: {events:?}");
        // The text may be painted before the image is there.
        assert!(largest > events.first_byte_ns, "{events:?}");
    }

    /// The rows of the page and of an icon that is missing, in any browser.
    pub(crate) fn assert_rows(variant: Variant, rows: &PageRows, connections: usize) {
        assert_eq!(rows.urls, ["/small/", "/small/style.css", "/small/image.png", "/favicon.ico"]);
        assert_eq!(rows.contents, ["text/html", "text/css", "image/png", "text/plain"]);
        let [document, style, image, icon] = rows.samples.as_slice() else { panic!("{rows:?}") };
        assert_eq!((document.group, document.status), (3, Some(200)));
        for (sample, bytes) in [(document, 8000), (style, 4000), (image, 8000)] {
            assert_eq!((&sample.outcome, sample.response_body_bytes), (&Outcome::Ok, bytes), "{variant}");
            assert_eq!(sample.version, Some(variant.http()));
            let stamps = [sample.sent_ns, sample.first_byte_ns, sample.done_ns];
            assert!(stamps.is_sorted() && stamps[0] > Some(sample.intended_ns), "{variant}: {stamps:?}");
            assert_eq!(round_trips(sample.sent_ns, sample.first_byte_ns), 1);
        }
        assert_eq!(icon.outcome.failure().unwrap().kind, FailureKind::WrongStatus);
        assert_eq!(rows.connections.len(), connections, "{variant}");
        let first = &rows.connections[0];
        assert_eq!(document.connection, Some(0));
        assert_eq!(first.connected_ns.is_none(), variant == Variant::H3);
        assert!(first.ready_ns <= document.sent_ns && first.lacks_bytes);
        let tls =
            (first.tls_version.as_deref(), first.cipher_suite.as_deref(), first.key_exchange.as_deref());
        let expected = (Some("TLSv1_3"), Some("TLS_AES_128_GCM_SHA256"), Some("x25519"));
        assert_eq!(tls, if variant == Variant::H1 { (None, None, None) } else { expected });
    }

    #[test]
    fn phases_are_round_trips_of_each_handshake() {
        for (variant, _, text) in RECORDED {
            let events = recorder(text).finish().events;
            assert_phases(variant, &events);
            assert_eq!(events.layout_shift_millionths, Some(0));
            assert_eq!(events.console_errors, 1, "{:?}", events.console);
            assert!(events.console[0].starts_with("Failed to load resource: the server responded with"));
        }
    }

    #[test]
    fn requests_and_connections_are_rows() {
        for (variant, url, text) in RECORDED {
            let recorder = recorder(text);
            assert!(recorder.is_settled(), "{variant}");
            // Over TLS the browser rather waits for its connection than for the handshakes of another one.
            let connections = if variant == Variant::H1 { 2 } else { 1 };
            assert_rows(variant, &rows(&recorder.finish(), url, variant.http()), connections);
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
            assert_eq!(sample.version, Some(HttpVersion::Http2), "the row has what was used");
        }
    }

    /// A page at 1 s with one further request; `events` come after its begin.
    fn load(events: &[(&str, Value)]) -> PageLoad {
        let mut recorder = Recorder::new(1_000_000_000);
        let request = json!({ "requestId": "L", "loaderId": "L", "frameId": "F", "type": "Document", "timestamp": 2.0,
                              "wallTime": 1002.0, "request": { "url": "https://a.test/" } });
        recorder.handle_event("Network.requestWillBeSent", &request);
        events.iter().for_each(|(method, params)| recorder.handle_event(method, params));
        recorder.finish()
    }

    #[test]
    fn redirects_caches_and_codings_are_told_apart() {
        let response = |status: u16| {
            json!({ "status": status, "protocol": "h2", "mimeType": "text/html", "encodedDataLength": 50,
                    "headers": { "Content-Encoding": "gzip" }, "connectionId": 7 })
        };
        let redirect = json!({ "requestId": "L", "loaderId": "L", "timestamp": 2.5, "type": "Document",
                               "redirectResponse": response(301), "request": { "url": "https://a.test/next" } });
        let cached = json!({ "requestId": "1", "loaderId": "L", "timestamp": 2.6, "type": "Image",
                             "request": { "url": "https://a.test/i.png" } });
        let open = json!({ "requestId": "2", "loaderId": "L", "timestamp": 2.6, "type": "Fetch",
                           "request": { "url": "https://a.test/poll" } });
        let data = json!({ "requestId": "3", "loaderId": "L", "timestamp": 2.6, "type": "Image",
                           "request": { "url": "data:," } });
        let load = load(&[
            ("Network.requestWillBeSent", redirect),
            ("Network.responseReceived", json!({ "requestId": "L", "response": response(200) })),
            ("Network.dataReceived", json!({ "requestId": "L", "dataLength": 9000 })),
            (
                "Network.loadingFinished",
                json!({ "requestId": "L", "timestamp": 3.0, "encodedDataLength": 1050 }),
            ),
            ("Network.requestWillBeSent", cached),
            ("Network.requestServedFromCache", json!({ "requestId": "1" })),
            ("Network.requestWillBeSent", open),
            ("Network.requestWillBeSent", data),
        ]);
        let found: Vec<_> = load
            .requests
            .iter()
            .map(|request| (request.url.as_str(), request.status, request.body_bytes, request.is_document))
            .collect();
        assert_eq!(
            found,
            [("https://a.test/", Some(301), 0, true), ("https://a.test/next", Some(200), 1000, true)]
        );
        assert_eq!(load.document().unwrap().content.as_deref(), Some("text/html, gzip"));
        assert_eq!((load.unfinished, load.events.done_ns), (1, Some(2_000_000_000)));
    }

    #[test]
    fn failures_have_their_kind_and_blocked_requests_have_no_row() {
        let icon =
            json!({ "requestId": "9", "timestamp": 2.6, "request": { "url": "https://a.test/favicon.ico" } });
        let load = load(&[
            ("Network.requestWillBeSent", icon),
            (
                "Network.loadingFailed",
                json!({ "requestId": "9", "timestamp": 2.6, "blockedReason": "inspector" }),
            ),
            (
                "Log.entryAdded",
                json!({ "entry": { "level": "error", "text": "blocked", "networkRequestId": "9" } }),
            ),
            ("Log.entryAdded", json!({ "entry": { "level": "warning", "text": "old" } })),
            (
                "Runtime.consoleAPICalled",
                json!({ "type": "error", "args": [{ "value": "one" }, { "value": 2 }] }),
            ),
            ("Runtime.exceptionThrown", json!({ "exceptionDetails": { "text": "Uncaught" } })),
            (
                "Network.loadingFailed",
                json!({ "requestId": "L", "timestamp": 4.0, "errorText": "net::ERR_QUIC_PROTOCOL_ERROR" }),
            ),
        ]);
        assert_eq!((load.events.console_errors, load.events.console.len()), (2, 2));
        let [document] = load.requests.as_slice() else { panic!("{load:?}") };
        let expected = (FailureKind::Protocol, "net::ERR_QUIC_PROTOCOL_ERROR".to_owned());
        assert_eq!(document.failure, Some(expected));
        for (error, kind) in [
            ("net::ERR_CONNECTION_REFUSED", FailureKind::Refused),
            ("net::ERR_CERT_AUTHORITY_INVALID", FailureKind::Tls),
            ("net::ERR_NAME_NOT_RESOLVED", FailureKind::Dns),
            ("net::ERR_ABORTED", FailureKind::Cancelled),
        ] {
            assert_eq!(failure_kind(error), kind);
        }
    }

    #[test]
    fn paints_and_shifts_are_those_of_the_page() {
        let shift = |time: f64, value: f64| {
            let event = json!({ "frameId": "F", "type": "layout-shift", "time": time,
                                "layoutShiftDetails": { "value": value, "hadRecentInput": false } });
            ("PerformanceTimeline.timelineEventAdded", json!({ "event": event }))
        };
        let paint = |frame: &str, time: f64| {
            let event = json!({ "frameId": frame, "type": "largest-contentful-paint", "time": time,
                                "lcpDetails": { "renderTime": 0, "loadTime": time } });
            ("PerformanceTimeline.timelineEventAdded", json!({ "event": event }))
        };
        let load = load(&[
            paint("F", 1002.5),
            paint("F", 1003.25),
            paint("advertisement", 1004.0),
            shift(1002.0, 0.05),
            shift(1002.5, 0.1),
            shift(1009.0, 0.125),
        ]);
        // The load began 1 s after the run's clock, and at 1002 s of Unix time.
        assert_eq!(load.events.largest_contentful_paint_ns, Some(2_250_000_000));
        assert_eq!(load.events.layout_shift_millionths, Some(150_000), "one session of 0.15, one of 0.125");
        assert_eq!(largest_session(&[(0.0, 1.0), (0.9, 1.0), (1.8, 1.0)]), 3.0);
        let long: Vec<(f64, f64)> = (0..8).map(|place| (f64::from(place) * 0.9, 1.0)).collect();
        assert_eq!(largest_session(&long), 6.0, "five seconds at most");
    }
}
