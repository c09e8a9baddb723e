//! Timing scripts of h2load: one request a line, `<milliseconds>\t<URL>`.
//!
//! Source: h2load's manual, option `--timing-script-file`. Times count from the beginning; equal times are
//! allowed. Each of h2load's clients replays the whole script. Here all connections replay it once together,
//! unless each is asked to.

use std::collections::HashMap;

use super::{LineError, nanoseconds, shown};
use crate::schedule::ScriptEntry;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line, from 1.
    pub line: usize,
    /// When the request is due, in nanoseconds since the beginning.
    pub at_ns: u64,
    /// The URL, or a path.
    pub url: &'a str,
}

const FORM: &str = "a request; write `<milliseconds><tab><URL>`, such as `12.5\thttps://example.org/`";
const TIME: &str = "within 100 days; write a time from 0";
const NANOS_PER_MS: f64 = 1e6;

/// Parses a script; skips empty lines and lines that begin with `#`.
///
/// # Errors
/// The first line that is not a request, or whose time is before that of the line above.
pub fn parse(text: &str) -> Result<Vec<Line<'_>>, LineError> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (index, written) in text.lines().enumerate() {
        let written = written.trim_end();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let line = index + 1;
        let fault = |expected| {
            let found = shown(written);
            LineError { line, problem: format!("`{found}` is not {expected}") }
        };
        let (time, url) = written.split_once('\t').ok_or_else(|| fault(FORM))?;
        let ms: f64 = time.trim().parse().map_err(|_| fault(FORM))?;
        let at_ns = nanoseconds(ms, NANOS_PER_MS).ok_or_else(|| fault(TIME))?;
        let url = url.trim();
        if url.is_empty() || url.contains(char::is_whitespace) {
            return Err(fault(FORM));
        }
        if lines.last().is_some_and(|last| last.at_ns > at_ns) {
            return Err(fault("in order of time; sort the lines"));
        }
        lines.push(Line { line, at_ns, url });
    }
    Ok(lines)
}

/// The first line of each URL, in their order, and the requests with the numbers of their URLs.
pub fn numbered<'a>(lines: &[Line<'a>]) -> (Vec<Line<'a>>, Vec<ScriptEntry>) {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut urls = Vec::new();
    let mut entries = Vec::with_capacity(lines.len());
    for line in lines {
        let url = *known.entry(line.url).or_insert_with(|| {
            urls.push(*line);
            u32::try_from(urls.len() - 1).unwrap_or(u32::MAX)
        });
        entries.push(ScriptEntry { at_ns: line.at_ns, url });
    }
    (urls, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read() {
        let lines = parse("0\thttps://a/\n# later\n\n12.5\t/b?c\r\n12.5\t/d\n").unwrap();
        let found: Vec<(u64, &str)> = lines.iter().map(|line| (line.at_ns, line.url)).collect();
        assert_eq!(found, [(0, "https://a/"), (12_500_000, "/b?c"), (12_500_000, "/d")]);
        assert_eq!(parse(""), Ok(Vec::new()));
        let again = parse("0\t/a\n5\t/b\n6\t/a\n").unwrap();
        let (urls, entries) = numbered(&again);
        assert_eq!(urls, again[..2]);
        assert_eq!(
            entries.iter().map(|entry| (entry.at_ns, entry.url)).collect::<Vec<_>>(),
            [(0, 0), (5_000_000, 1), (6_000_000, 0)]
        );
    }

    #[test]
    fn faults_name_their_line() {
        for (text, expected) in [
            ("0\t/\n5 /a", "line 2: `5 /a` is not a request; write `<milliseconds>"),
            ("x\t/", "line 1: `x\t/` is not a request; write `<milliseconds>"),
            ("-1\t/", "line 1: `-1\t/` is not within 100 days; write a time from 0"),
            ("nan\t/", "line 1: `nan\t/` is not within 100 days; write a time from 0"),
            ("5\t/\n4\t/", "line 2: `4\t/` is not in order of time; sort the lines"),
            ("5\t", "line 1: `5` is not a request; write `<milliseconds>"),
            ("5\t/a b", "line 1: `5\t/a b` is not a request; write `<milliseconds>"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
