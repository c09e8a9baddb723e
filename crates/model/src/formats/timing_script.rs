//! Timing scripts: requests with their times, to be replayed.
//!
//! [`jsonl`] is h123's own format, with all that is known of each request. [`tsv`] is h2load's, with times
//! and URLs only.

use std::collections::HashMap;

use super::{LineError, shown};
use crate::media::ByteRange;
use crate::options::{ExpectedResponse, PathOptions};
use crate::script::ScriptEntry;
use crate::variant::Variant;

pub mod jsonl;
pub mod tsv;

/// The most requests of a script: each has a place in the plan and in every client's memory.
pub const MOST_REQUESTS: usize = 1_000_000;

/// A timing script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingScript {
    /// What it is a recording of; empty if unknown.
    pub title: String,
    /// The scheme and authority of the URLs that are paths, such as `https://www.example.org`.
    pub origin: Option<String>,
    /// How it was recorded; empty if unknown.
    pub recorded: String,
    /// The variant over which it was recorded.
    pub variant: Option<Variant>,
    /// The requests, in the order of their times.
    pub requests: Vec<ScriptRequest>,
}

/// A request of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptRequest {
    /// When it was sent, in nanoseconds since the beginning.
    pub at_ns: u64,
    /// The URL, or a path.
    pub url: String,
    /// The method; GET where `None`.
    pub method: Option<String>,
    /// The bytes that were requested; `None` for the whole resource.
    pub range: Option<ByteRange>,
    /// The fields that differ from the client's own, names in lower case.
    pub fields: Vec<(String, String)>,
    /// The class, such as `video`.
    pub class: Option<String>,
    /// The requests for whose responses it waited, by their numbers from 0; all precede it.
    pub after: Vec<u32>,
    /// From the end of the last of these responses to its sending, in nanoseconds.
    pub gap_ns: u64,
    /// What its response was.
    pub expects: ExpectedResponse,
}

/// A script and the line of each of its requests, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedScript {
    /// The script.
    pub script: TimingScript,
    /// The lines, as many as requests.
    pub lines: Vec<usize>,
}

/// The different requests of a script, and which of them is sent when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberedScript {
    /// The place of the first of each kind among all requests.
    pub firsts: Vec<usize>,
    /// All requests; `url` counts `firsts`.
    pub entries: Vec<ScriptEntry>,
}

impl ParsedScript {
    /// Parses a script of either format: a file whose first character is a brace is JSONL.
    ///
    /// # Errors
    /// The first line that does not have the format.
    pub fn parse(text: &str) -> Result<ParsedScript, LineError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with('{') { jsonl::parse(text) } else { tsv::parse(text) }
    }
}

impl TimingScript {
    /// Its requests with equal ones numbered alike.
    pub fn numbered(&self) -> NumberedScript {
        let mut known: HashMap<RequestKind<'_>, u32> = HashMap::new();
        let mut numbered = NumberedScript::default();
        for (place, request) in self.requests.iter().enumerate() {
            let url = *known.entry(RequestKind::of(request)).or_insert_with(|| {
                numbered.firsts.push(place);
                crate::number::small(numbered.firsts.len() - 1)
            });
            let ScriptRequest { at_ns, gap_ns, ref after, .. } = *request;
            numbered.entries.push(ScriptEntry { at_ns, url, after: after.clone(), gap_ns });
        }
        numbered
    }

    /// How long it lasts, to the sending of its last request, in nanoseconds.
    pub fn lasts_ns(&self) -> u64 {
        self.requests.last().map_or(0, |last| last.at_ns)
    }
}

impl ScriptRequest {
    /// What differs from the defaults for its path.
    pub fn path_options(&self) -> PathOptions {
        PathOptions {
            method: self.method.clone(),
            range: self.range,
            fields: self.fields.clone(),
            expects: self.expects,
            ..PathOptions::default()
        }
    }
}

/// What makes requests equal, apart from their times.
#[derive(PartialEq, Eq, Hash)]
struct RequestKind<'a> {
    url: &'a str,
    method: Option<&'a str>,
    range: Option<ByteRange>,
    fields: &'a [(String, String)],
    expects: ExpectedResponse,
}

impl RequestKind<'_> {
    fn of(request: &ScriptRequest) -> RequestKind<'_> {
        RequestKind {
            url: &request.url,
            method: request.method.as_deref(),
            range: request.range,
            fields: &request.fields,
            expects: request.expects,
        }
    }
}

/// Checks that a request is not before the one above it.
fn check_order(requests: &[ScriptRequest], at_ns: u64) -> Result<(), &'static str> {
    match requests.last() {
        Some(last) if last.at_ns > at_ns => Err("not in order of time; sort the lines"),
        _ => Ok(()),
    }
}

/// Checks that a script may have one more request.
fn check_count(requests: usize) -> Result<(), String> {
    if requests < MOST_REQUESTS {
        return Ok(());
    }
    Err(format!("a script has at most {MOST_REQUESTS} requests; write several scripts"))
}

/// Checks a URL: characters that no request can contain.
fn check_url(url: &str) -> Result<(), String> {
    if url.is_empty() || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("`{}` is not a URL; write one such as `/a` or `https://a.test/a`", shown(url)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_tells_the_format() {
        let tsv = ParsedScript::parse("0\t/a\n5\t/b\n6\t/a\n").unwrap();
        let NumberedScript { firsts, entries } = tsv.script.numbered();
        assert_eq!(firsts, [0, 1]);
        assert_eq!(
            entries.iter().map(|entry| (entry.at_ns, entry.url)).collect::<Vec<_>>(),
            [(0, 0), (5_000_000, 1), (6_000_000, 0)]
        );
        let jsonl =
            ParsedScript::parse("\u{feff}\n{\"h123_script\":1}\n{\"at_ms\":0,\"url\":\"/a\"}\n").unwrap();
        assert_eq!((jsonl.script.requests[0].url.as_str(), jsonl.lines), ("/a", vec![3]));
    }

    #[test]
    fn requests_with_other_ranges_are_other_requests() {
        let request = |first| ScriptRequest {
            url: "/v".into(),
            range: ByteRange::of_length(first, 10),
            ..ScriptRequest::default()
        };
        let script =
            TimingScript { requests: vec![request(0), request(10), request(0)], ..Default::default() };
        let numbered = script.numbered();
        assert_eq!(numbered.firsts, [0, 1]);
        assert_eq!(numbered.entries.iter().map(|entry| entry.url).collect::<Vec<_>>(), [0, 1, 0]);
    }
}
