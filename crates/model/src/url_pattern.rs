//! Paths with parts that are drawn for every request.

use std::fmt::Write as _;

use crate::shuffle::SplitMix64;

/// A path with numbers that are drawn for every request: `{random:1-7000}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Text, and the range of the number after it.
    parts: Vec<(String, u64, u64)>,
    tail: String,
}

/// A part of a path is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a range; write one such as `{{random:1-7000}}`")]
pub struct PatternError {
    found: String,
}

const OPENING: &str = "{random:";

impl Pattern {
    /// Parses a path; `None` where it has no such part.
    ///
    /// # Errors
    /// A part without an end, or whose range is not two rising numbers.
    pub fn parse(path: &str) -> Result<Option<Pattern>, PatternError> {
        let mut parts = Vec::new();
        let mut rest = path;
        while let Some((text, after)) = rest.split_once(OPENING) {
            let fault = || PatternError { found: crate::formats::shown(&rest[text.len()..]) };
            let (range, tail) = after.split_once('}').ok_or_else(fault)?;
            let (least, most) = range.split_once('-').ok_or_else(fault)?;
            let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>()) else {
                return Err(fault());
            };
            if least > most {
                return Err(fault());
            }
            parts.push((text.to_owned(), least, most));
            rest = tail;
        }
        Ok((!parts.is_empty()).then(|| Pattern { parts, tail: rest.to_owned() }))
    }

    /// Whether a path has such a part, well-formed or not.
    pub fn is_in(path: &str) -> bool {
        path.contains(OPENING)
    }

    /// The path with the smallest numbers.
    pub fn least(&self) -> String {
        self.with(self.parts.iter().map(|(_, least, _)| *least))
    }

    /// The path with the largest numbers.
    pub fn most(&self) -> String {
        self.with(self.parts.iter().map(|(_, _, most)| *most))
    }

    /// Every path that it stands for; `None` if they are more than `most`.
    pub fn paths(&self, most: u64) -> Option<Vec<String>> {
        let spans = || self.parts.iter().map(|(_, least, most)| u128::from(most - least) + 1);
        let count = spans().try_fold(1_u128, u128::checked_mul)?;
        let count = u64::try_from(count).ok().filter(|count| *count <= most)?;
        let path = |number: u64| {
            let mut rest = u128::from(number);
            self.with(self.parts.iter().zip(spans()).map(|((_, least, _), span)| {
                // Below the span, which fits.
                let offset = u64::try_from(rest % span).unwrap_or(0);
                rest /= span;
                least + offset
            }))
        };
        Some((0..count).map(path).collect())
    }

    fn with(&self, numbers: impl Iterator<Item = u64>) -> String {
        let mut path = String::new();
        for ((text, ..), number) in self.parts.iter().zip(numbers) {
            // Writing to a String cannot fail.
            let _ = write!(path, "{text}{number}");
        }
        path + &self.tail
    }

    /// Replaces `path` with the path of request `number`.
    pub fn fill(&self, seed: u64, number: u64, path: &mut String) {
        // The generator's first number mixes its seed well, so neighbouring requests get unrelated numbers.
        let mut random = SplitMix64::new(SplitMix64::new(seed).next_u64() ^ number);
        path.clear();
        for (text, least, most) in &self.parts {
            path.push_str(text);
            let span = (most - least).saturating_add(1);
            // Writing to a String cannot fail.
            let _ = write!(path, "{}", least + random.next_below(span));
        }
        path.push_str(&self.tail);
    }
}

/// Every path that a list of paths and patterns stands for. A path drawn from it has the same distribution as
/// one of a pattern drawn from `paths`.
///
/// `None` if they are more than `most`, if a pattern is invalid, or if patterns stand for different numbers
/// of paths.
pub fn every_path(paths: &[String], most: u64) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut each = None;
    for path in paths {
        let own = match Pattern::parse(path).ok()? {
            Some(pattern) => pattern.paths(most.checked_sub(all.len() as u64)?)?,
            None => vec![path.clone()],
        };
        let is_alike = *each.get_or_insert(own.len()) == own.len();
        all.extend(is_alike.then_some(own)?);
    }
    (all.len() as u64 <= most).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_patterns_is_every_path_if_all_are_alike() {
        let of = |paths: &[&str], most| {
            every_path(&paths.iter().map(ToString::to_string).collect::<Vec<_>>(), most)
        };
        let all = ["/1/a", "/2/a", "/1/b", "/2/b"].map(str::to_owned).to_vec();
        assert_eq!(of(&["/{random:1-2}/a", "/{random:1-2}/b"], 4), Some(all));
        assert_eq!(of(&["/a", "/b"], 2), Some(vec!["/a".to_owned(), "/b".to_owned()]));
        assert_eq!(of(&["/{random:1-2}/a", "/{random:1-2}/b"], 3), None, "too many");
        assert_eq!(of(&["/{random:1-2}/a", "/b"], 9), None, "`/b` would be as likely as `/1/a`");
        assert_eq!(of(&["/{random:1-}"], 9), None);
    }

    #[test]
    fn patterns_are_filled_from_seed_and_number() {
        let pattern = Pattern::parse("/a/{random:1-7000}.ts?x={random:5-5}&y").unwrap().unwrap();
        let mut path = "old".to_owned();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..1000 {
            pattern.fill(1, number, &mut path);
            let drawn = path.strip_prefix("/a/").unwrap().strip_suffix(".ts?x=5&y").unwrap();
            let drawn: u64 = drawn.parse().unwrap();
            assert!((1..=7000).contains(&drawn));
            seen.insert(drawn);
        }
        assert!(seen.len() > 900, "{}", seen.len());
        let first = |seed| {
            let mut path = String::new();
            pattern.fill(seed, 7, &mut path);
            path
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn few_paths_are_listed() {
        let pattern = Pattern::parse("/a{random:8-9}/{random:1-3}.ts").unwrap().unwrap();
        assert_eq!((pattern.least(), pattern.most()), ("/a8/1.ts".into(), "/a9/3.ts".into()));
        let paths = pattern.paths(6).unwrap();
        assert_eq!(paths, ["/a8/1.ts", "/a9/1.ts", "/a8/2.ts", "/a9/2.ts", "/a8/3.ts", "/a9/3.ts"]);
        assert_eq!(pattern.paths(5), None);
        let all = "{random:0-18446744073709551615}";
        let pattern = Pattern::parse(&format!("/{all}{all}{all}")).unwrap().unwrap();
        assert_eq!(pattern.paths(u64::MAX), None);
    }

    #[test]
    fn invalid_patterns_are_refused() {
        assert_eq!(Pattern::parse("/a{b}"), Ok(None));
        for path in ["/{random:1-", "/{random:7}", "/{random:9-1}", "/{random:a-b}", "/{random:}"] {
            let error = Pattern::parse(path).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`{}` is not a range; write one such as `{{random:1-7000}}`", &path[1..])
            );
        }
    }
}
