//! The pattern of a log's lines: literal text with named fields, such as `{status} {request_time} "{agent}"`.
//!
//! A field ends at the first occurrence of the literal text after it, or at the line's end. `{{` and `}}`
//! mean braces; `{_}` is a field that is skipped.

/// A pattern of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePattern {
    /// The text before the first field.
    before: String,
    /// Each field and the text after it, which is empty only for the last one.
    fields: Vec<(String, String)>,
}

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// An unmatched brace.
    #[error("a brace is unmatched; write `{{name}}`, or `{{{{` and `}}}}` for literal braces")]
    Brace,
    /// An invalid name of a field.
    #[error("`{0}` is not the name of a field; use letters, digits and `_`")]
    Name(String),
    /// A duplicate field.
    #[error("the field `{0}` appears twice; remove one")]
    Twice(String),
    /// Two fields without text between them, so that the first has no end.
    #[error("there is no text between the fields `{0}` and `{1}`; add the text that ends `{0}`")]
    Adjacent(String, String),
    /// No field.
    #[error("the pattern has no field; add one, such as `{{status}}`")]
    NoField,
}

/// The field that is skipped.
const SKIPPED: &str = "_";

impl LinePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The first part that is not valid.
    pub fn parse(text: &str) -> Result<LinePattern, PatternError> {
        let mut pattern = LinePattern { before: String::new(), fields: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, behind) = rest.split_at(at);
            pattern.literal().push_str(literal);
            if let Some((brace, after)) =
                ["{{", "}}"].iter().find_map(|twice| Some((&twice[..1], behind.strip_prefix(twice)?)))
            {
                pattern.literal().push_str(brace);
                rest = after;
                continue;
            }
            let inner = behind.strip_prefix('{').ok_or(PatternError::Brace)?;
            let (name, after) = inner.split_once('}').ok_or(PatternError::Brace)?;
            pattern.add(name)?;
            rest = after;
        }
        pattern.literal().push_str(rest);
        if pattern.fields.is_empty() { Err(PatternError::NoField) } else { Ok(pattern) }
    }

    /// Whether it has a field with this name.
    pub fn has(&self, name: &str) -> bool {
        name != SKIPPED && self.fields.iter().any(|(field, _)| field == name)
    }

    /// The fields of a line, by name; `None` where the line does not match.
    pub fn fields<'p, 'l>(&'p self, line: &'l str) -> Option<Vec<(&'p str, &'l str)>> {
        let mut rest = line.strip_prefix(self.before.as_str())?;
        let mut found = Vec::with_capacity(self.fields.len());
        for (index, (name, behind)) in self.fields.iter().enumerate() {
            let is_last = index + 1 == self.fields.len();
            let (value, after) = match (is_last, behind.as_str()) {
                (true, behind) => (rest.strip_suffix(behind)?, ""),
                (false, behind) => rest.split_once(behind)?,
            };
            found.push((name.as_str(), value));
            rest = after;
        }
        Some(found)
    }

    /// The text after the last field.
    fn literal(&mut self) -> &mut String {
        match self.fields.last_mut() {
            Some((_, behind)) => behind,
            None => &mut self.before,
        }
    }

    fn add(&mut self, name: &str) -> Result<(), PatternError> {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(PatternError::Name(super::shown(name)));
        }
        if self.has(name) {
            return Err(PatternError::Twice(name.to_owned()));
        }
        if let Some((last, behind)) = self.fields.last()
            && behind.is_empty()
        {
            return Err(PatternError::Adjacent(last.clone(), name.to_owned()));
        }
        self.fields.push((name.to_owned(), String::new()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_reach_to_the_text_behind_them() {
        let pattern = LinePattern::parse("[{{{time}}}] \"{_} {path}\" {status} {_} {rest}").unwrap();
        let line = "[{12:30}] \"GET /a b\" 200 - x y \"z\"";
        let found = pattern.fields(line).unwrap();
        let expected = [
            ("time", "12:30"),
            ("_", "GET"),
            ("path", "/a b"),
            ("status", "200"),
            ("_", "-"),
            ("rest", "x y \"z\""),
        ];
        assert_eq!(found, expected);
        assert!(pattern.has("status") && !pattern.has("_") && !pattern.has("method"));
        for other in ["", "12:30", "[{12:30}] \"GET /\"", "{12:30}] \"GET /\" 200 - x"] {
            assert_eq!(pattern.fields(other), None, "{other}");
        }
        let ends = LinePattern::parse("a={a};").unwrap();
        assert_eq!(ends.fields("a=1;2;"), Some(vec![("a", "1;2")]), "the last one reaches to the end");
        assert_eq!(ends.fields("a=1;2"), None);
    }

    #[test]
    fn faults_are_named() {
        for (text, expected) in [
            ("{a", "a brace is unmatched"),
            ("a}", "a brace is unmatched"),
            ("{a}}", "a brace is unmatched"),
            ("{}", "`` is not the name of a field"),
            ("{a b}", "`a b` is not the name of a field"),
            ("{a}{b}", "there is no text between the fields `a` and `b`; add the text that ends `a`"),
            ("{a} {a}", "the field `a` appears twice"),
            ("no field", "the pattern has no field"),
            ("", "the pattern has no field"),
        ] {
            let error = LinePattern::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
