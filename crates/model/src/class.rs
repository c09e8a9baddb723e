//! Classes of requests: a study groups its paths by patterns, and metrics of requests have values for each.

use serde::{Deserialize, Serialize};

/// The requests that belong to no class.
pub const OTHER: &str = "other";
/// What separates a metric from a class: `request_time@video`.
pub const SEPARATOR: char = '@';

/// A class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestClass {
    /// Its name.
    pub name: String,
    /// Patterns of paths with their queries; `*` stands for any characters.
    pub paths: Vec<String>,
}

/// Whether a text can be the name of a class.
pub fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(is_plain)
}

/// The number of the first class that a path matches; that of no class is the number of classes.
pub fn class_of(classes: &[RequestClass], path: &str) -> usize {
    let matches = |class: &RequestClass| class.paths.iter().any(|pattern| matches(pattern, path));
    classes.iter().position(matches).unwrap_or(classes.len())
}

/// The names of the classes, [`OTHER`] last; none without classes.
pub fn names(classes: &[RequestClass]) -> Vec<&str> {
    let other = (!classes.is_empty()).then_some(OTHER);
    classes.iter().map(|class| class.name.as_str()).chain(other).collect()
}

/// A metric of a class, such as `request_time@video`.
pub fn metric_of(metric: &str, class: &str) -> String {
    format!("{metric}{SEPARATOR}{class}")
}

/// The metric and the class of a name such as `request_time@video`.
pub fn split_metric(name: &str) -> (&str, Option<&str>) {
    name.split_once(SEPARATOR).map_or((name, None), |(metric, class)| (metric, Some(class)))
}

/// Whether a text matches a pattern. Greedy, so that each `*` is tried from the left only once.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, expected) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("*", "", true),
            ("*.m4s", "/v/1.m4s", true),
            ("*.m4s", "/v/1.m4s?x", false),
            ("/v/*", "/v/1", true),
            ("/v/*/x*.ts", "/v/a/b/x1.ts", true),
            ("/v/*/x*.ts", "/v/x1.ts", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*a*b*", "xbxaxb", true),
            ("*a*b*", "xbxa", false),
            ("", "", true),
            ("", "/", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        // Linear: no pattern makes it try every combination of places.
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
    }

    #[test]
    fn the_first_class_wins_and_the_rest_is_other() {
        let class = |name: &str, path: &str| RequestClass { name: name.into(), paths: vec![path.into()] };
        let classes = [class("video", "*.m4s"), class("v", "/v/*")];
        assert_eq!(["/v/1.m4s", "/v/1", "/x"].map(|path| class_of(&classes, path)), [0, 1, 2]);
        assert_eq!(names(&classes), ["video", "v", OTHER]);
        assert!(names(&[]).is_empty());
        assert_eq!(split_metric(&metric_of("request_time", "v")), ("request_time", Some("v")));
        assert_eq!(split_metric("request_time"), ("request_time", None));
    }
}
