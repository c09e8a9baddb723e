//! A page load as HTTP Archive 1.2, which the network tools of browsers and `h123 page-model` read.
//!
//! Source: the format's specification at w3c.github.io/web-performance. What a load does not have is -1
//! there, and fields of headers except `Content-Range` are left out: they may contain secrets.

use jiff::Timestamp;
use model::number::float;
use serde_json::{Value, json};

use super::page_load::{LoadedRequest, PageLoad, Phase, http_version};

const PAGE_ID: &str = "page_1";
const NANOS_PER_MS: f64 = 1e6;

/// The program that loaded the page.
#[derive(Clone, Copy, Debug)]
pub struct HarBrowser<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The version of h123.
    pub h123_version: &'a str,
}

/// Writes a page load as a HAR file. Without the Unix time of its begin, it began in 1970.
pub fn write(load: &PageLoad, browser: &HarBrowser<'_>) -> String {
    let began_ns = load.events.began_ns;
    let time = |at_ns: u64| {
        let unix_ns = load.began_unix_ns.unwrap_or(0).saturating_add(at_ns.saturating_sub(began_ns));
        Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default().to_string()
    };
    let since = |event_ns: Option<u64>| load.events.since_start_ns(event_ns).map_or(-1.0, milliseconds);
    let title = load.document().map_or("", |document| document.url.as_str());
    let entries: Vec<Value> =
        load.requests.iter().map(|request| entry(request, time(request.intended_ns))).collect();
    let har = json!({ "log": {
        "version": "1.2",
        "creator": { "name": "h123", "version": browser.h123_version },
        "browser": { "name": browser.name, "version": browser.version },
        "pages": [{
            "id": PAGE_ID,
            "title": title,
            "startedDateTime": time(began_ns),
            "pageTimings": {
                "onContentLoad": since(load.events.dom_content_loaded_ns),
                "onLoad": since(load.events.loaded_ns),
                "_firstContentfulPaint": since(load.events.first_contentful_paint_ns),
                "_largestContentfulPaint": since(load.events.largest_contentful_paint_ns),
            },
        }],
        "entries": entries,
    }});
    format!("{har:#}\n")
}

fn entry(request: &LoadedRequest, started: String) -> Value {
    let version = request.protocol.as_deref().map_or("unknown".to_owned(), |protocol| {
        http_version(protocol).map_or(protocol.to_owned(), |version| version.name().to_owned())
    });
    let done_ns = request.done_ns.unwrap_or(request.intended_ns);
    let kind = request.content.as_deref().unwrap_or("x-unknown").split(',').next().unwrap_or_default();
    let bytes = float(request.body_bytes);
    let fields: Vec<Value> = request
        .content_range
        .iter()
        .map(|value| json!({ "name": "content-range", "value": value }))
        .collect();
    let mut entry = json!({
        "pageref": PAGE_ID,
        "startedDateTime": started,
        "time": milliseconds(done_ns.saturating_sub(request.intended_ns)),
        "request": {
            "method": request.method, "url": request.url, "httpVersion": version, "cookies": [], "headers": [],
            "queryString": [], "headersSize": -1, "bodySize": -1,
        },
        "response": {
            "status": request.status.unwrap_or(0), "statusText": "", "httpVersion": version, "cookies": [],
            "headers": fields, "redirectURL": "", "headersSize": -1, "bodySize": bytes,
            "content": { "size": bytes, "mimeType": kind },
        },
        "cache": {},
        "timings": timings(request),
    });
    if let Some(connection) = &request.connection {
        entry["connection"] = connection.as_str().into();
    }
    if let Some(initiator) = &request.initiator {
        entry["_initiator"] = json!({ "type": "other", "url": initiator });
    }
    if let Some((_, reason)) = &request.failure {
        entry["_error"] = reason.as_str().into();
    }
    entry
}

/// The phases; `ssl` is part of `connect`, and `blocked` is what no other phase explains.
fn timings(request: &LoadedRequest) -> Value {
    let length = |phase: Phase| phase.map(|(began_ns, ended_ns)| ended_ns.saturating_sub(began_ns));
    let between = |from: Option<u64>, until: Option<u64>| Some(until?.saturating_sub(from?));
    let (dns, connect) = (length(request.phases.dns), length(request.phases.connect));
    let wait = between(request.sent_ns, request.first_byte_ns);
    let receive = between(request.first_byte_ns, request.done_ns);
    let queued = between(Some(request.intended_ns), request.sent_ns);
    let explained = dns.unwrap_or(0).saturating_add(connect.unwrap_or(0));
    let blocked = queued.map(|queued| queued.saturating_sub(explained));
    let shown = |ns: Option<u64>| ns.map_or(-1.0, milliseconds);
    json!({
        "blocked": shown(blocked), "dns": shown(dns), "connect": shown(connect),
        "ssl": shown(length(request.phases.handshake)), "send": 0,
        "wait": wait.map_or(0.0, milliseconds), "receive": receive.map_or(0.0, milliseconds),
    })
}

fn milliseconds(ns: u64) -> f64 {
    float(ns) / NANOS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::super::devtools::tests::recorded_load;
    use super::*;
    use crate::page_model::parse_har;

    #[test]
    fn a_part_of_a_resource_has_its_range() {
        let mut load = recorded_load();
        load.requests[1].content_range = Some("bytes 0-3999/9000".to_owned());
        let browser = HarBrowser { name: "chromium", version: "1.2", h123_version: "0.1" };
        let har: Value = serde_json::from_str(&write(&load, &browser)).unwrap();
        let fields = |entry: usize| har["log"]["entries"][entry]["response"]["headers"].clone();
        assert_eq!(fields(1), json!([{ "name": "content-range", "value": "bytes 0-3999/9000" }]));
        assert_eq!(fields(0), json!([]));
    }

    #[test]
    fn what_is_exported_is_a_page() {
        let browser = HarBrowser { name: "chromium", version: "1.2", h123_version: "0.1" };
        let load = recorded_load();
        let text = write(&load, &browser);
        let page = parse_har(&text).unwrap();
        let found: Vec<(&str, u64, Option<usize>)> = page
            .resources
            .iter()
            .map(|resource| (resource.url.path.as_str(), resource.bytes, resource.parent))
            .collect();
        let expected = [
            ("/small/", 8000, None),
            ("/small/style.css", 4000, Some(0)),
            ("/small/image.png", 8000, Some(0)),
        ];
        assert_eq!(
            (found.as_slice(), page.left_out),
            (expected.as_slice(), 1),
            "the icon has the status 404"
        );
        let har: Value = serde_json::from_str(&text).unwrap();
        let log = &har["log"];
        assert_eq!(log["entries"][0]["response"]["httpVersion"], "HTTP/3");
        assert!(
            log["pages"][0]["startedDateTime"].as_str().unwrap().starts_with("2026-11-25T03:13:05.24"),
            "{log}"
        );
        for entry in log["entries"].as_array().unwrap() {
            let timings = &entry["timings"];
            let parts = ["blocked", "dns", "connect", "send", "wait", "receive"];
            let sum: f64 = parts.iter().map(|part| timings[part].as_f64().unwrap().max(0.0)).sum();
            assert!((sum - entry["time"].as_f64().unwrap()).abs() < 0.001, "{entry}");
        }
    }
}
