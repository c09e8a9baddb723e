//! Lists of URLs in siege's format: one per line, `URL`, `URL METHOD` or `URL METHOD BODY`.
//!
//! Source: siege's manual, "URL format". A body that begins with `<` or `@` names a file.

use super::{LineError, shown};

const EXPECTED: &str = "write `URL`, `URL METHOD` or `URL METHOD BODY`, the method in upper case";

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The line, from 1.
    pub line: usize,
    /// The URL, or a path.
    pub url: &'a str,
    /// The method, if the line has one.
    pub method: Option<&'a str>,
    /// The body, if the line has one.
    pub body: Option<Body<'a>>,
}

/// A body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// These characters.
    Text(&'a str),
    /// The content of this file.
    File(&'a str),
}

/// Parses a list; skips empty lines and lines that begin with `#`.
///
/// # Errors
/// The first line that does not have the format.
pub fn parse(text: &str) -> Result<Vec<Entry<'_>>, LineError> {
    let mut entries = Vec::new();
    for (index, written) in text.lines().enumerate() {
        let written = written.trim();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        let line = index + 1;
        let fault = || {
            let found = shown(written);
            LineError { line, column: 1, problem: format!("`{found}` is not a request; {EXPECTED}") }
        };
        let (url, rest) = written.split_once(char::is_whitespace).unwrap_or((written, ""));
        let (method, body) =
            rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest.trim_start(), ""));
        if !method.chars().all(|c| c.is_ascii_uppercase() || c == '-') {
            return Err(fault());
        }
        let method = (!method.is_empty()).then_some(method);
        entries.push(Entry { line, url, method, body: parse_body(body) });
    }
    Ok(entries)
}

fn parse_body(text: &str) -> Option<Body<'_>> {
    let text = text.trim_start();
    match text.strip_prefix(['<', '@']) {
        Some(file) => Some(Body::File(file.trim_start())),
        None => (!text.is_empty()).then_some(Body::Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read() {
        let entries =
            parse("# all\nhttp://a/\n\n  /b PUT\nhttp://c/ POST a=b c=d\n/d POST <./file\n/e PUT @f\n")
                .unwrap();
        let entry = |line, url, method, body| Entry { line, url, method, body };
        assert_eq!(
            entries,
            [
                entry(2, "http://a/", None, None),
                entry(4, "/b", Some("PUT"), None),
                entry(5, "http://c/", Some("POST"), Some(Body::Text("a=b c=d"))),
                entry(6, "/d", Some("POST"), Some(Body::File("./file"))),
                entry(7, "/e", Some("PUT"), Some(Body::File("f"))),
            ]
        );
    }

    #[test]
    fn a_method_in_lower_case_is_refused() {
        let error = parse("/\n/a b\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: `/a b` is not a request; write `URL`"), "{error}");
    }
}
