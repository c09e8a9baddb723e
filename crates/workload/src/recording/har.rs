//! Timing scripts of HAR files.

use std::collections::HashMap;

use model::formats::shown;
use model::formats::timing_script::TimingScript;
use model::media::ByteRange;
use model::options::ExpectedResponse;
use model::request_fields::parse_field;
use model::url::Url;
use model::variant::Variant;

use super::{
    Choice, Exchange, Head, KEPT_FIELDS, PARTIAL_CONTENT, Recording, RecordingError, Waits, class_of,
    is_kept_path, range_of, received_range, script_of,
};
use crate::formats::har::{Entry, HarField, read};

const OTHER_ORIGINS: &str = "of other origins";
const UNSENT: &str = "not sent: answered from a cache, or no request of HTTP";
const FAILED: &str = "that failed";
const WITH_BODY: &str = "with a body";
const WITHOUT_TIME: &str = "without a time";
const UNKNOWN_PART: &str = "of parts whose range the file does not tell";
/// Longer values of fields and further fields are not kept.
const LONGEST_VALUE_BYTES: usize = 2_000;
const MOST_FIELDS: usize = 16;

/// The session of a HAR file. Requests that the server did not answer are left out, and those with bodies.
///
/// # Errors
/// It is not HAR, or no request is left.
pub fn record_har(text: &str, choice: &Choice) -> Result<Recording, RecordingError> {
    let log = read(text).map_err(|error| RecordingError(error.0))?;
    let mut recording = Recording::default();
    let mut left_out = |reason| *recording.left_out.entry(reason).or_default() += 1;
    let (mut exchanges, mut variant) = (Vec::new(), None);
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut origin = choice.origin.clone();
    for entry in &log.entries {
        let url = match kept_url(entry) {
            Ok(url) => url,
            Err(reason) => {
                left_out(reason);
                continue;
            }
        };
        let Ok(started) = entry.started_date_time.parse::<jiff::Timestamp>() else {
            left_out(WITHOUT_TIME);
            continue;
        };
        if *origin.get_or_insert_with(|| url.origin()) != url.origin() {
            left_out(OTHER_ORIGINS);
            continue;
        }
        let Some((range, expects)) = part_of(entry) else {
            left_out(UNKNOWN_PART);
            continue;
        };
        variant = variant.or(variant_of(&entry.request.http_version, &url));
        let cause = entry.initiators().find_map(|url| known.get(url).copied());
        known.insert(entry.request.url.clone(), exchanges.len());
        let exchange = exchange(entry, &url, started, choice);
        exchanges.push(Exchange { cause, range, expects, ..exchange });
    }
    let has_causes = exchanges.iter().any(|exchange| exchange.cause.is_some());
    let default = if has_causes { Waits::Cause } else { Waits::Class };
    let title = log.pages.first().map(|page| page.title.clone()).filter(|title| !title.is_empty());
    let head = Head {
        title: shown(&title.or_else(|| origin.clone()).unwrap_or_default()),
        recorded: "a HAR file".to_owned(),
        origin,
        variant,
    };
    let script: TimingScript = script_of(exchanges, head, choice.waits.unwrap_or(default))?;
    Ok(Recording { script, ..recording })
}

/// The URL of a request that the server answered; otherwise why it is left out.
fn kept_url(entry: &Entry) -> Result<Url, &'static str> {
    let is_web = ["http://", "https://"].iter().any(|scheme| entry.request.url.starts_with(scheme));
    let is_cached = entry.from_cache.as_ref().is_some_and(|from| *from != serde_json::Value::Bool(false));
    if !is_web || is_cached {
        return Err(UNSENT);
    }
    if !(200..600).contains(&entry.response.status) {
        return Err(FAILED);
    }
    if entry.request.body_size > 0.0 || !["GET", "HEAD"].contains(&entry.request.method.as_str()) {
        return Err(WITH_BODY);
    }
    let url = Url::parse(&entry.request.url).map_err(|_| UNSENT)?;
    is_kept_path(&url.path).then_some(url).ok_or(UNSENT)
}

fn variant_of(version: &str, url: &Url) -> Option<Variant> {
    let is_encrypted = url.origin().starts_with("https:");
    match version.to_ascii_lowercase().as_str() {
        "http/1.1" => Some(if is_encrypted { Variant::H1s } else { Variant::H1 }),
        "h2" | "http/2" | "http/2.0" => Some(if is_encrypted { Variant::H2 } else { Variant::H2c }),
        "h3" | "http/3" | "http/3.0" => Some(Variant::H3),
        _ => None,
    }
}

/// The request of an entry; its cause, range and response are not set.
fn exchange(entry: &Entry, url: &Url, started: jiff::Timestamp, choice: &Choice) -> Exchange {
    const NANOS_PER_MS: f64 = 1e6;
    let sent_ns = u64::try_from(started.as_nanosecond()).unwrap_or(0);
    let took_ns = model::number::nearest(entry.time.max(0.0) * NANOS_PER_MS);
    let is_kept = |name: &str| KEPT_FIELDS.contains(&name) || choice.fields.iter().any(|kept| kept == name);
    let field = |field: &HarField| {
        let name = field.name.to_ascii_lowercase();
        let is_short = field.value.len() <= LONGEST_VALUE_BYTES;
        if is_short && is_kept(&name) { parse_field(&name, &field.value).ok().flatten() } else { None }
    };
    Exchange {
        sent_ns,
        ended_ns: Some(sent_ns.saturating_add(took_ns)),
        url: url.path.clone(),
        method: Some(entry.request.method.clone()).filter(|method| method != "GET"),
        fields: entry.request.headers.iter().filter_map(field).take(MOST_FIELDS).collect(),
        class: class_of(choice, &url.path).or_else(|| class_of_type(&entry.response.content.mime_type)),
        ..Exchange::default()
    }
}

/// The range of a request and its response. A part of a resource has the range that arrived, so that a replay
/// gets the same bytes; `None` if that is unknown.
fn part_of(entry: &Entry) -> Option<(Option<ByteRange>, ExpectedResponse)> {
    let expects = expected(entry);
    let requested = value_of(&entry.request.headers, "range");
    if expects.status != Some(PARTIAL_CONTENT) {
        return Some((requested.and_then(range_of), expects));
    }
    let content = value_of(&entry.response.headers, "content-range");
    let range = received_range(requested.unwrap_or_default(), content, expects.body_bytes)?;
    let body_bytes = expects.body_bytes.map(|_| range.length());
    Some((Some(range), ExpectedResponse { body_bytes, ..expects }))
}

/// Audio and video by their media types.
fn class_of_type(media_type: &str) -> Option<String> {
    let kind = media_type.split('/').next().unwrap_or_default();
    ["audio", "video"].into_iter().find(|known| *known == kind).map(str::to_owned)
}

fn value_of<'f>(fields: &'f [HarField], name: &str) -> Option<&'f str> {
    fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.as_str())
}

/// What the response was. A browser reports 304 for what it had in its cache, and a client without one gets
/// the whole resource. A body with a content coding has the length that was sent, if it is known.
fn expected(entry: &Entry) -> ExpectedResponse {
    let status = u16::try_from(entry.response.status).ok();
    if status == Some(304) {
        return ExpectedResponse::default();
    }
    let is_coded = value_of(&entry.response.headers, "content-encoding").is_some();
    let size = if is_coded { entry.response.body_size } else { entry.response.content.size };
    let is_known = size > 0.0 && entry.request.method == "GET";
    ExpectedResponse {
        status,
        body_bytes: is_known.then(|| model::number::nearest(size.min(1e12))),
        body_crc32: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: &str, url: &str, more: &str) -> String {
        format!(
            r#"{{"startedDateTime":"2026-01-02T03:04:{at}Z","time":50,"request":{{"method":"GET","url":"{url}","httpVersion":"h2",
            "headers":[{{"name":"Accept","value":"*/*"}},{{"name":"Cookie","value":"secret"}},{{"name":"Range","value":"bytes=0-9"}},
            {{"name":"x-own","value":"1"}}]}},"response":{{"status":200,"bodySize":700,"headers":[],
            "content":{{"size":1000,"mimeType":"video/mp4"}}}}{more}}}"#
        )
    }

    fn har(entries: &[String]) -> String {
        let entries = entries.join(",");
        format!(r#"{{"log":{{"version":"1.2","pages":[{{"id":"p","title":"T"}}],"entries":[{entries}]}}}}"#)
    }

    #[test]
    fn a_session_becomes_a_script() {
        let text = har(&[
            entry("05.000", "https://a.test/x?q", ""),
            entry("05.100", "https://a.test/y", r#","_initiator":{"url":"https://a.test/x?q"}"#),
            entry("05.100", "https://b.test/y", ""),
            entry("05.200", "https://a.test/z", r#","_fromCache":"memory""#),
            entry("05.300", "https://a.test/z", "").replace("\"status\":200", "\"status\":0"),
            entry("05.300", "https://a.test/z", "").replace("GET", "POST"),
            entry("05.300", "data:x", ""),
            entry("05.400", "https://a.test/w", "")
                .replace("\"headers\":[]", r#""headers":[{"name":"content-encoding","value":"br"}]"#),
            entry("05.500", "https://a.test/v", "").replace("\"status\":200", "\"status\":304"),
        ]);
        let choice = Choice { fields: vec!["x-own".to_owned()], ..Choice::default() };
        let Recording { script, left_out } = record_har(&text, &choice).unwrap();
        assert_eq!((script.title.as_str(), script.origin.as_deref()), ("T", Some("https://a.test")));
        assert_eq!(script.variant, Some(Variant::H2));
        let found: Vec<_> = script
            .requests
            .iter()
            .map(|one| (one.url.as_str(), one.at_ns / 1_000_000, &one.after[..], one.gap_ns / 1_000_000))
            .collect();
        assert_eq!(
            found,
            [("/x?q", 0, &[][..], 0), ("/y", 100, &[0], 50), ("/w", 400, &[], 0), ("/v", 500, &[], 0)]
        );
        let first = &script.requests[0];
        assert_eq!(
            first.fields,
            [("accept".to_owned(), "*/*".to_owned()), ("x-own".to_owned(), "1".to_owned())]
        );
        assert_eq!(
            (first.range, first.class.as_deref()),
            (Some(ByteRange { first: 0, last: 9 }), Some("video"))
        );
        let bytes: Vec<_> =
            script.requests.iter().map(|one| (one.expects.status, one.expects.body_bytes)).collect();
        let whole = (Some(200), Some(1000));
        assert_eq!(bytes, [whole, whole, (Some(200), Some(700)), (None, None)]);
        let reasons: Vec<(&str, u64)> = left_out.into_iter().collect();
        assert_eq!(reasons, [(UNSENT, 2), (OTHER_ORIGINS, 1), (FAILED, 1), (WITH_BODY, 1)]);
        let other =
            Choice { origin: Some("https://b.test".to_owned()), waits: Some(Waits::Nothing), ..choice };
        assert_eq!(record_har(&text, &other).unwrap().script.requests.len(), 1);
    }

    #[test]
    fn the_parts_of_a_video_are_recorded_as_they_arrived() {
        let part = |at: &str, requested: &str, content: &str, size: u64| {
            entry(at, "https://a.test/v.mp4", "")
                .replace("bytes=0-9", requested)
                .replace("\"status\":200", "\"status\":206")
                .replace("\"size\":1000", &format!("\"size\":{size}"))
                .replace(
                    "\"headers\":[],",
                    &format!(r#""headers":[{{"name":"Content-Range","value":"{content}"}}],"#),
                )
        };
        let text = har(&[
            part("05.000", "bytes=0-", "bytes 0-4999/5000", 5_000),
            part("05.100", "bytes=0-", "bytes 0-4999/5000", 700),
            part("05.200", "bytes=4000-", "none", 1_000),
            part("05.300", "bytes=0-", "none", 0),
            part("05.400", "bytes=0-9", "none", 0),
        ]);
        let Recording { script, left_out } = record_har(&text, &Choice::default()).unwrap();
        let found: Vec<_> = script
            .requests
            .iter()
            .map(|one| (one.range.unwrap().to_string(), one.expects.status, one.expects.body_bytes))
            .collect();
        let part = |range: &str, bytes| (format!("bytes={range}"), Some(206), bytes);
        assert_eq!(
            found,
            [
                part("0-4999", Some(5_000)),
                part("0-699", Some(700)),
                part("4000-4999", Some(1_000)),
                part("0-9", None)
            ]
        );
        assert_eq!(left_out, [(UNKNOWN_PART, 1)].into());
    }

    #[test]
    fn what_is_no_session_is_one_clear_error() {
        for (text, part) in [
            (String::new(), "it is not a HAR file"),
            (har(&[]), "no request is left"),
            (har(&[entry("05.000", "https://a.test/", "").replace("2026", "year")]), "no request is left"),
        ] {
            let error = record_har(&text, &Choice::default()).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n') && error.len() < 300, "{error}");
        }
    }
}
