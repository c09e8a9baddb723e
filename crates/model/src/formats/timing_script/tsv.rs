//! Timing scripts of h2load: one request a line, `<milliseconds>\t<URL>`.
//!
//! Source: h2load's manual, option `--timing-script-file`. Times count from the beginning; equal times are
//! allowed.

use std::fmt::Write;

use super::{ParsedScript, ScriptRequest, TimingScript, check_count, check_order, check_url};
use crate::formats::{LineError, nanoseconds, shown};

const FORM: &str = "a request; write `<milliseconds><tab><URL>`, such as `12.5\thttps://example.org/`";
const TIME: &str = "within 100 days; write a time from 0";
const NANOS_PER_MS: f64 = 1e6;

/// Parses a script; skips empty lines and lines that begin with `#`.
///
/// # Errors
/// The first line that is not a request, or whose time is before that of the line above.
pub fn parse(text: &str) -> Result<ParsedScript, LineError> {
    let mut parsed = ParsedScript::default();
    for (index, written) in text.lines().enumerate() {
        let written = written.trim_end();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let fault = |column: usize, problem: String| LineError { line: index + 1, column, problem };
        let not = |expected: &str| format!("`{}` is not {expected}", shown(written));
        let (time, url) = written.split_once('\t').ok_or_else(|| fault(1, not(FORM)))?;
        let ms: f64 = time.trim().parse().map_err(|_| fault(1, not(FORM)))?;
        let at_ns = nanoseconds(ms, NANOS_PER_MS).ok_or_else(|| fault(1, not(TIME)))?;
        let url = url.trim();
        check_url(url).map_err(|_| fault(time.chars().count() + 2, not(FORM)))?;
        let requests = &mut parsed.script.requests;
        check_order(requests, at_ns)
            .map_err(|problem| fault(1, format!("`{}` is {problem}", shown(written))))?;
        check_count(requests.len()).map_err(|problem| fault(1, problem))?;
        requests.push(ScriptRequest { at_ns, url: url.to_owned(), ..ScriptRequest::default() });
        parsed.lines.push(index + 1);
    }
    Ok(parsed)
}

/// Writes a script: times and URLs, without everything else.
pub fn write(script: &TimingScript) -> String {
    let mut text = String::new();
    for request in &script.requests {
        let at_ms = crate::number::float(request.at_ns) / NANOS_PER_MS;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{at_ms}\t{}", request.url);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_and_written() {
        let parsed = parse("0\thttps://a/\n# later\n\n12.5\t/b?c\r\n12.5\t/d\n").unwrap();
        let found: Vec<(u64, &str)> =
            parsed.script.requests.iter().map(|request| (request.at_ns, request.url.as_str())).collect();
        assert_eq!(found, [(0, "https://a/"), (12_500_000, "/b?c"), (12_500_000, "/d")]);
        assert_eq!(parsed.lines, [1, 4, 5]);
        assert_eq!(parse(""), Ok(ParsedScript::default()));
        assert_eq!(write(&parsed.script), "0\thttps://a/\n12.5\t/b?c\n12.5\t/d\n");
        assert_eq!(parse(&write(&parsed.script)).unwrap().script, parsed.script);
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
            ("15\t/a b", "line 1, column 4: `15\t/a b` is not a request; write `<milliseconds>"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
