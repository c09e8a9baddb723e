//! Timing scripts from what was observed: HAR files, access logs, and the samples of our own runs.

mod access_log;
mod har;
mod samples;

use std::collections::BTreeMap;

use model::formats::timing_script::{MOST_REQUESTS, ScriptRequest, TimingScript};
use model::media::ByteRange;
use model::number;
use model::options::ExpectedResponse;
use model::request_path::check_request_path;
use model::url::Url;
use model::variant::Variant;

pub use access_log::LogRecorder;
pub use har::record_har;
pub use samples::{SessionOf, record_samples};

/// Why there is nothing to record, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordingError(pub(crate) String);

/// What is kept of an observation.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The origin whose requests are kept, such as `https://www.example.org`; that of the first if `None`.
    pub origin: Option<String>,
    /// What a request is taken to have waited for.
    pub waits: Option<Waits>,
    /// Classes of requests by their paths.
    pub classes: Vec<model::class::RequestClass>,
    /// Fields of requests to keep besides [`KEPT_FIELDS`], in lower case.
    pub fields: Vec<String>,
}

model::named! { "a rule for what requests waited for";
    /// What a request is taken to have waited for.
    pub enum Waits {
        /// The request that named it, as far as it is known.
        Cause = "cause",
        /// The last response of its class that ended before it was sent.
        Class = "class",
        /// The last response of any class that ended before it was sent.
        Any = "any",
        /// Nothing.
        Nothing = "nothing",
    }
}

/// Scripts have times up to 100 days.
const LONGEST_NS: u64 = 90 * 86_400 * model::units::NANOS_PER_S;

/// Fields of recorded requests that change the response. Others may be secrets, such as cookies.
pub const KEPT_FIELDS: [&str; 3] = ["accept", "accept-encoding", "accept-language"];

/// A recorded script, and what was left out of it: the reasons, each with its number of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The script.
    pub script: TimingScript,
    /// What was left out, such as `of other origins`.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// A request that was observed. Times count from any beginning.
#[derive(Clone, Debug, Default)]
struct Exchange {
    sent_ns: u64,
    /// When its response ended, if it did.
    ended_ns: Option<u64>,
    /// The URL, or a path.
    url: String,
    method: Option<String>,
    range: Option<ByteRange>,
    fields: Vec<(String, String)>,
    class: Option<String>,
    /// The request that caused it.
    cause: Option<usize>,
    expects: ExpectedResponse,
}

/// What a recorded script says of itself.
#[derive(Clone, Debug, Default)]
struct Head {
    title: String,
    recorded: String,
    origin: Option<String>,
    variant: Option<Variant>,
}

/// Makes a script of exchanges in any order.
fn script_of(exchanges: Vec<Exchange>, head: Head, waits: Waits) -> Result<TimingScript, RecordingError> {
    if exchanges.is_empty() {
        return Err(RecordingError("no request is left; nothing can be recorded".to_owned()));
    }
    if exchanges.len() > MOST_REQUESTS {
        return Err(RecordingError(format!(
            "there are more than {MOST_REQUESTS} requests; record a shorter time, or one client"
        )));
    }
    let mut order: Vec<usize> = (0..exchanges.len()).collect();
    order.sort_by_key(|place| exchanges[*place].sent_ns);
    let mut place_of = vec![0; order.len()];
    for (place, old) in order.iter().enumerate() {
        place_of[*old] = place;
    }
    let mut old: Vec<Option<Exchange>> = exchanges.into_iter().map(Some).collect();
    let mut exchanges: Vec<Exchange> = order.iter().filter_map(|place| old[*place].take()).collect();
    for exchange in &mut exchanges {
        exchange.cause = exchange.cause.and_then(|cause| place_of.get(cause).copied());
    }
    let after = after(&exchanges, waits);
    let began_ns = exchanges.first().map_or(0, |first| first.sent_ns);
    let last_ns = exchanges.last().map_or(0, |last| last.sent_ns);
    if last_ns - began_ns > LONGEST_NS {
        return Err(RecordingError("the requests span more than 90 days; record a shorter time".to_owned()));
    }
    let ended = |place: &u32| exchanges.get(*place as usize).and_then(|other| other.ended_ns);
    let gap_ns = |sent_ns: u64, after: &[u32]| {
        after.iter().filter_map(ended).max().map_or(0, |ended_ns| sent_ns.saturating_sub(ended_ns))
    };
    let requests = exchanges.iter().zip(&after).map(|(exchange, after)| ScriptRequest {
        at_ns: exchange.sent_ns - began_ns,
        url: exchange.url.clone(),
        method: exchange.method.clone(),
        range: exchange.range,
        fields: exchange.fields.clone(),
        class: exchange.class.clone(),
        after: after.clone(),
        gap_ns: gap_ns(exchange.sent_ns, after),
        expects: exchange.expects,
    });
    let requests = requests.collect();
    let Head { title, recorded, origin, variant } = head;
    Ok(TimingScript { title, origin, recorded, variant, requests })
}

/// For which responses each exchange waited; the exchanges are in the order of sending.
fn after(exchanges: &[Exchange], waits: Waits) -> Vec<Vec<u32>> {
    match waits {
        Waits::Nothing => vec![Vec::new(); exchanges.len()],
        Waits::Cause => after_causes(exchanges),
        Waits::Class | Waits::Any => {
            let class = |exchange: &Exchange| match waits {
                Waits::Class => exchange.class.clone(),
                _ => None,
            };
            after_last_ends(exchanges, class)
        }
    }
}

/// The response that caused a request. A request that was sent before the end of it waited for what its cause
/// waited for.
fn after_causes(exchanges: &[Exchange]) -> Vec<Vec<u32>> {
    let mut after: Vec<Vec<u32>> = Vec::with_capacity(exchanges.len());
    for (place, exchange) in exchanges.iter().enumerate() {
        let own = match exchange.cause.filter(|cause| *cause < place) {
            None => Vec::new(),
            Some(cause) if exchanges[cause].ended_ns.is_some_and(|ended| ended <= exchange.sent_ns) => {
                vec![number::small(cause)]
            }
            Some(cause) => after[cause].clone(),
        };
        after.push(own);
    }
    after
}

/// The response with the latest end before each request was sent, among those of the same class.
fn after_last_ends(exchanges: &[Exchange], class: impl Fn(&Exchange) -> Option<String>) -> Vec<Vec<u32>> {
    let mut ends: Vec<(u64, usize)> =
        exchanges.iter().enumerate().filter_map(|(place, one)| Some((one.ended_ns?, place))).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut last: BTreeMap<Option<String>, u32> = BTreeMap::new();
    let mut after = Vec::with_capacity(exchanges.len());
    for (place, exchange) in exchanges.iter().enumerate() {
        // A response of no length may end when it is sent; nothing waits for itself.
        while let Some((_, other)) = ends.next_if(|(end, other)| *end <= exchange.sent_ns && *other < place) {
            last.insert(class(&exchanges[other]), number::small(other));
        }
        after.push(last.get(&class(exchange)).copied().into_iter().collect());
    }
    after
}

/// Whether a request for a path can be replayed.
fn is_kept_path(path: &str) -> bool {
    check_request_path(path).is_ok() && !path.contains(char::is_whitespace)
}

/// The first class that a path matches.
fn class_of(choice: &Choice, url: &str) -> Option<String> {
    let path = Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.path);
    choice.classes.get(model::class::class_of(&choice.classes, &path)).map(|class| class.name.clone())
}

/// The status of a part of a resource (RFC 9110, section 15.3.7).
const PARTIAL_CONTENT: u16 = 206;

/// The range of the value of a `Range` field: one with both ends.
fn range_of(value: &str) -> Option<ByteRange> {
    match open_range_of(value)? {
        (first, Some(last)) => Some(ByteRange { first, last }),
        (_, None) => None,
    }
}

/// The first byte of the value of a `Range` field, and the last one unless the range is open.
fn open_range_of(value: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
    let first = first.trim().parse().ok()?;
    match last.trim() {
        "" => Some((first, None)),
        last => Some((first, Some(last.parse().ok().filter(|last| *last >= first)?))),
    }
}

/// The range of the value of a `Content-Range` field (RFC 9110, section 14.4).
fn content_range_of(value: &str) -> Option<ByteRange> {
    let (range, _) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    range_of(&format!("bytes={range}"))
}

/// The part of a resource that a response brought, by the fields and its length. A response that ended early,
/// as those of videos often do, brought the beginning of what was requested.
fn received_range(requested: &str, content: Option<&str>, bytes: Option<u64>) -> Option<ByteRange> {
    let stated = content.and_then(content_range_of);
    let (first, last) = match (stated, open_range_of(requested)) {
        (Some(stated), _) => (stated.first, Some(stated.last)),
        (None, requested) => requested?,
    };
    let received = bytes.and_then(|bytes| ByteRange::of_length(first, bytes)).map(|range| range.last);
    let last = last.into_iter().chain(received).min()?;
    Some(ByteRange { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// From, to, class, cause.
    fn exchange(number: usize, sent: u64, ended: u64, class: &str, cause: Option<usize>) -> Exchange {
        Exchange {
            sent_ns: 1000 * MS + sent * MS,
            ended_ns: Some(1000 * MS + ended * MS),
            url: format!("/{number}"),
            class: Some(class.to_owned()).filter(|class| !class.is_empty()),
            cause,
            ..Exchange::default()
        }
    }

    fn recorded(exchanges: &[Exchange], waits: Waits) -> Vec<(String, u64, Vec<u32>, u64)> {
        let script = script_of(exchanges.to_vec(), Head::default(), waits).unwrap();
        let row = |request: &ScriptRequest| {
            (request.url.clone(), request.at_ns / MS, request.after.clone(), request.gap_ns / MS)
        };
        script.requests.iter().map(row).collect()
    }

    #[test]
    fn a_request_waits_for_the_last_of_its_class() {
        let session = [
            exchange(0, 0, 10, "", None),
            exchange(1, 12, 100, "video", None),
            exchange(2, 12, 30, "audio", None),
            exchange(4, 105, 180, "video", None),
            exchange(3, 35, 60, "audio", None),
        ];
        let row = |url: &str, at, after: &[u32], gap| (url.to_owned(), at, after.to_vec(), gap);
        assert_eq!(
            recorded(&session, Waits::Class),
            [
                row("/0", 0, &[], 0),
                row("/1", 12, &[], 0),
                row("/2", 12, &[], 0),
                row("/3", 35, &[2], 5),
                row("/4", 105, &[1], 5),
            ]
        );
        assert_eq!(
            recorded(&session, Waits::Any),
            [
                row("/0", 0, &[], 0),
                row("/1", 12, &[0], 2),
                row("/2", 12, &[0], 2),
                row("/3", 35, &[2], 5),
                row("/4", 105, &[1], 5),
            ]
        );
        assert!(
            recorded(&session, Waits::Nothing).iter().all(|(_, _, after, gap)| after.is_empty() && *gap == 0)
        );
    }

    #[test]
    fn a_request_waits_for_its_cause_or_for_what_that_waited_for() {
        let page = [
            exchange(0, 0, 50, "", None),
            exchange(1, 20, 80, "", Some(0)),
            exchange(2, 60, 90, "", Some(0)),
            exchange(3, 70, 95, "", Some(2)),
            exchange(4, 99, 120, "", Some(3)),
        ];
        let found: Vec<(Vec<u32>, u64)> =
            recorded(&page, Waits::Cause).into_iter().map(|(_, _, after, gap)| (after, gap)).collect();
        assert_eq!(found, [(vec![], 0), (vec![], 0), (vec![0], 10), (vec![0], 20), (vec![3], 4)]);
    }

    #[test]
    fn nothing_cannot_be_recorded() {
        let error = script_of(Vec::new(), Head::default(), Waits::Any).unwrap_err();
        assert_eq!(error.to_string(), "no request is left; nothing can be recorded");
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(range_of(" bytes=5-9"), Some(ByteRange { first: 5, last: 9 }));
        assert!(
            ["bytes=5-", "bytes=-5", "bytes=1-2,4-5", "items=1-2", "bytes=2-1"]
                .iter()
                .all(|text| range_of(text).is_none())
        );
    }

    #[test]
    fn the_part_that_was_received_is_known_from_content_range_or_the_length() {
        let part = |first, last| Some(ByteRange { first, last });
        for (requested, content, bytes, expected) in [
            ("bytes=0-", Some("bytes 0-999/1000"), None, part(0, 999)),
            ("bytes=0-", Some("bytes 0-999/*"), Some(1_000), part(0, 999)),
            ("bytes=500-", None, Some(500), part(500, 999)),
            ("bytes=-100", Some("bytes 900-999/1000"), Some(100), part(900, 999)),
            ("bytes=0-5000", Some("bytes 0-999/1000"), Some(1_000), part(0, 999)),
            ("bytes=0-99", None, None, part(0, 99)),
            ("bytes=0-", Some("bytes 0-999999/1000000"), Some(4_000), part(0, 3_999)),
            ("bytes=0-", None, None, None),
            ("bytes=-100", None, Some(100), None),
            ("bytes=1-2,4-5", None, Some(4), None),
            ("bytes=0-", Some("bytes */1000"), None, None),
        ] {
            assert_eq!(
                received_range(requested, content, bytes),
                expected,
                "{requested} {content:?} {bytes:?}"
            );
        }
    }
}
