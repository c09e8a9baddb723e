//! Answers: a status, the fields that are the same in every variant, and a body.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, ALT_SVC, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    DATE, LOCATION, SERVER,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use workload::formats::hds::parse_fragment_name;

use crate::body::Content;

/// The media type of short messages.
pub(crate) const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NAME: HeaderValue = HeaderValue::from_static(concat!("h123-origin/", env!("CARGO_PKG_VERSION")));
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// What caches may keep for a year, and what they must ask for again.
pub(crate) const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
pub(crate) const ALWAYS_ASK: HeaderValue = HeaderValue::from_static("no-cache");

/// Fetch, section 3.3.
pub(crate) const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

/// A status, fields and a body.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    /// Length of `content`, in bytes; 0 in an answer to HEAD.
    pub(crate) body_bytes: u64,
    pub(crate) content: Content,
}

/// The requested part of a body (RFC 9110, section 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// From the first to before the second byte.
    Range(u64, u64),
    Unsatisfiable,
}

/// The `date` field, formatted once a second.
pub(crate) struct DateField(Mutex<(u64, HeaderValue)>);

/// The fields of an answer with a body of `length` bytes, except `date`.
pub(crate) fn fields(media_type: HeaderValue, length: u64) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(6);
    fields.insert(CONTENT_TYPE, media_type);
    fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    fields.insert(CACHE_CONTROL, NO_STORE);
    fields.insert(SERVER, NAME);
    fields
}

impl Answer {
    /// A complete body.
    pub(crate) fn whole(media_type: HeaderValue, length: u64, content: Content) -> Self {
        Answer { status: StatusCode::OK, fields: fields(media_type, length), body_bytes: length, content }
    }

    /// A short message for people.
    pub(crate) fn message(status: StatusCode, text: String) -> Self {
        let length = text.len() as u64;
        let content = Content::Memory(text.into());
        Answer { status, fields: fields(PLAIN, length), body_bytes: length, content }
    }

    /// The status and its name as the body; none for 204, 205 and 304 (RFC 9110, sections 15.3.5 and 15.4.5).
    pub(crate) fn status(status: StatusCode) -> Self {
        let bodiless =
            [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if !bodiless {
            let reason = status.canonical_reason().unwrap_or("no registered reason");
            return Answer::message(status, format!("{} {reason}\n", status.as_u16()));
        }
        let mut fields = fields(PLAIN, 0);
        fields.remove(CONTENT_TYPE);
        if status != StatusCode::RESET_CONTENT {
            fields.remove(CONTENT_LENGTH);
        }
        Answer { status, fields, body_bytes: 0, content: Content::EMPTY }
    }

    /// 405 with the allowed methods (RFC 9110, section 15.5.6).
    pub(crate) fn not_allowed(allowed: &'static str) -> Self {
        let mut answer = Answer::status(StatusCode::METHOD_NOT_ALLOWED);
        answer.fields.insert(ALLOW, HeaderValue::from_static(allowed));
        answer
    }

    /// 301 to another path.
    pub(crate) fn moved(path: &str) -> Self {
        let mut answer = Answer::status(StatusCode::MOVED_PERMANENTLY);
        match HeaderValue::from_str(path) {
            Ok(location) => answer.fields.insert(LOCATION, location),
            Err(_) => return Answer::status(StatusCode::NOT_FOUND),
        };
        answer
    }

    /// A part of a body of `length` bytes; `content` makes the bytes from an offset with a length.
    pub(crate) fn part(
        media_type: HeaderValue,
        length: u64,
        part: Part,
        content: impl FnOnce(u64, u64) -> Content,
    ) -> Self {
        let (status, from, to) = match part {
            Part::Whole => return Answer::whole(media_type, length, content(0, length)),
            Part::Range(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
            Part::Unsatisfiable => {
                let mut answer = Answer::status(StatusCode::RANGE_NOT_SATISFIABLE);
                insert(&mut answer.fields, format!("bytes */{length}"));
                return answer;
            }
        };
        let mut fields = fields(media_type, to - from);
        insert(&mut fields, format!("bytes {from}-{}/{length}", to - 1));
        Answer { status, fields, body_bytes: to - from, content: content(from, to - from) }
    }

    /// The same answer with the fields of media, if the path is one of media: pages of every origin may read
    /// it, and caches may keep it.
    pub(crate) fn for_media(mut self, path: &str) -> Self {
        if let Some(caching) = Caching::of_path(path) {
            caching.add_to(&mut self.fields);
        }
        self
    }

    /// Adds that HTTP/3 is at this port of the same host (RFC 7838, section 3).
    pub(crate) fn announce_http3(&mut self, port: u16) {
        if let Ok(value) = HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")) {
            self.fields.insert(ALT_SVC, value);
        }
    }

    /// The same answer, which pages of every origin may read if the path is one of media, an error too: a
    /// player in a page would otherwise not see its status.
    pub(crate) fn readable_if_media(mut self, path: &str) -> Self {
        if path.starts_with("/media/") || Caching::of_path(path).is_some() {
            self.fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        }
        self
    }

    /// The same answer to HEAD.
    pub(crate) fn without_body(mut self) -> Self {
        self.content = Content::EMPTY;
        self.body_bytes = 0;
        self
    }

    /// Head and body for the transport.
    pub(crate) fn into_parts(mut self, date: &DateField) -> (http::Response<()>, u64, Content) {
        self.fields.insert(DATE, date.now());
        let mut head = http::Response::new(());
        *head.status_mut() = self.status;
        *head.headers_mut() = self.fields;
        (head, self.body_bytes, self.content)
    }
}

/// How long caches may keep media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// A segment: it never changes.
    Segment,
    /// A manifest of media on demand.
    Manifest,
    /// A manifest of a live stream: it changes with every segment.
    LiveManifest,
}

impl Caching {
    /// By the extension of a path; `None` for what is no media.
    pub(crate) fn of_path(path: &str) -> Option<Caching> {
        const SEGMENTS: [&str; 11] =
            ["m4s", "mp4", "m4v", "m4a", "m4f", "cmfv", "cmfa", "ts", "aac", "f4f", "webm"];
        const MANIFESTS: [&str; 6] = ["mpd", "m3u8", "f4m", "bootstrap", "abst", "f4x"];
        let name = path.rsplit('/').next().unwrap_or_default();
        if parse_fragment_name(name).is_some() {
            return Some(Caching::Segment);
        }
        let (_, extension) = name.rsplit_once('.')?;
        let is_in = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(extension));
        match is_in(&SEGMENTS) {
            true => Some(Caching::Segment),
            false => is_in(&MANIFESTS).then_some(Caching::Manifest),
        }
    }

    /// Replaces the fields of answers that are not media.
    pub(crate) fn add_to(self, fields: &mut HeaderMap) {
        let caching = match self {
            Caching::Segment => FOREVER,
            Caching::Manifest => HeaderValue::from_static("public, max-age=60"),
            Caching::LiveManifest => ALWAYS_ASK,
        };
        fields.insert(CACHE_CONTROL, caching);
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    }
}

fn insert(fields: &mut HeaderMap, range: String) {
    if let Ok(value) = HeaderValue::try_from(range) {
        fields.insert(CONTENT_RANGE, value);
    }
}

/// A number that is written as digits only.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Part {
    /// The part that a request's fields ask for, of a body of `length` bytes. Several ranges, other units and
    /// a range with a validator (the origin sends none) mean the whole body (RFC 9110, sections 14.2 and
    /// 13.1.5).
    pub(crate) fn of(fields: &HeaderMap, length: u64) -> Part {
        let Some(range) = fields.get(http::header::RANGE) else { return Part::Whole };
        if fields.contains_key(http::header::IF_RANGE) {
            return Part::Whole;
        }
        range.to_str().ok().and_then(|text| Part::parse(text, length)).unwrap_or(Part::Whole)
    }

    fn parse(text: &str, length: u64) -> Option<Part> {
        let (first, last) = text.strip_prefix("bytes=")?.trim().split_once('-')?;
        if first.is_empty() {
            let suffix = digits(last)?.min(length);
            return Some(if suffix == 0 {
                Part::Unsatisfiable
            } else {
                Part::Range(length - suffix, length)
            });
        }
        let first = digits(first)?;
        let last = if last.is_empty() { u64::MAX } else { digits(last)? };
        if first > last {
            return None;
        }
        let to = last.saturating_add(1).min(length);
        Some(if first < to { Part::Range(first, to) } else { Part::Unsatisfiable })
    }
}

impl DateField {
    pub(crate) fn new() -> Self {
        DateField(Mutex::new((u64::MAX, HeaderValue::from_static(""))))
    }

    fn now(&self) -> HeaderValue {
        let now = SystemTime::now();
        let unix_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.0 != unix_s
            && let Ok(value) = HeaderValue::try_from(httpdate::fmt_http_date(now))
        {
            *cached = (unix_s, value);
        }
        cached.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_the_rfc_does() {
        let date = |unix_s| httpdate::fmt_http_date(UNIX_EPOCH + std::time::Duration::from_secs(unix_s));
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(951_827_696), "Tue, 29 Feb 2000 12:34:56 GMT");
        assert_eq!(date(4_102_444_799), "Thu, 31 Dec 2099 23:59:59 GMT");
    }

    #[test]
    fn ranges() {
        let of = |text: &str| Part::parse(text, 100).unwrap_or(Part::Whole);
        assert_eq!(of("bytes=0-0"), Part::Range(0, 1));
        assert_eq!(of("bytes=90-"), Part::Range(90, 100));
        assert_eq!(of("bytes=90-500"), Part::Range(90, 100));
        assert_eq!(of("bytes=-10"), Part::Range(90, 100));
        assert_eq!(of("bytes=-1000"), Part::Range(0, 100));
        assert_eq!(of("bytes=100-"), Part::Unsatisfiable);
        assert_eq!(of("bytes=-0"), Part::Unsatisfiable);
        for whole in
            ["bytes=5-1", "bytes=1-2,4-5", "lines=1-2", "bytes=a-b", "bytes=+1-2", "bytes=-", "bytes"]
        {
            assert_eq!(of(whole), Part::Whole, "{whole}");
        }
        assert_eq!(Part::parse("bytes=0-0", 0), Some(Part::Unsatisfiable));
    }
}
