//! Input files and the error of every one: its place, what is wrong, and what to write instead.

use std::fmt;
use std::ops::Range;

/// What is wrong with an input file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct InputError {
    /// The place.
    pub place: Place,
    /// What is wrong and what to write instead, in one sentence.
    pub problem: String,
}

impl InputError {
    /// The line of the fault with a caret below it; `None` for another text, a place without lines, or a
    /// long line.
    pub fn excerpt(&self, text: &str) -> Option<String> {
        const LONGEST: usize = 160;
        let Place { line, column, .. } = self.place;
        let content = text.lines().nth(line.checked_sub(1)?)?;
        if content.chars().count() > LONGEST || column > content.chars().count() + 1 {
            return None;
        }
        // A tab or an escape sequence would move the caret.
        let content: String = content.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let margin = " ".repeat(line.to_string().len());
        let before = " ".repeat(column.saturating_sub(1));
        Some(format!("{margin} |\n{line} | {content}\n{margin} | {before}^"))
    }
}

/// The span of a value that was given on the command line, in place of bytes of the file.
pub(crate) const COMMAND_LINE: Range<usize> = usize::MAX..usize::MAX;

/// A place in a text file, or the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name, as the user gave it.
    pub file: String,
    /// The line, from 1; 0 for a place without lines.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// The place of an option on the command line.
    pub fn command_line() -> Place {
        Place { file: "command line".to_owned(), line: 0, column: 0 }
    }

    /// Whether this is the place of an option on the command line.
    pub fn is_command_line(&self) -> bool {
        self.line == 0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// A data file: its text, and its name in errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Such as `networks/lan.toml`.
    pub file: String,
    /// The whole text.
    pub text: String,
}

impl DataFile {
    /// The same, borrowed.
    pub fn source(&self) -> Source<'_> {
        Source { file: &self.file, text: &self.text }
    }
}

/// A text and its file name; the source of errors with line and column.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file's name, as the user gave it.
    pub file: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at the start of `span`, a range of bytes in the text.
    pub fn error(&self, span: Range<usize>, problem: impl Into<String>) -> InputError {
        InputError { place: self.place(span.start), problem: problem.into() }
    }

    /// The error of the TOML parser; one without a place gets the start of the file.
    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> InputError {
        let span = error.span().unwrap_or(0..0);
        self.error(span, error.message().trim().replace('\n', "; "))
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        if offset == COMMAND_LINE.start {
            return Place::command_line();
        }
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_points_at_the_fault() {
        let source = Source { file: "a.toml", text: "a = 1\n\tb = \u{1b}2\n" };
        let error = source.error(11..12, "x");
        assert_eq!(error.excerpt(source.text).unwrap(), "  |\n2 |  b =  2\n  |      ^");
        assert_eq!(error.excerpt("a = 1\n"), None, "the file has changed");
        let place = Place::command_line();
        assert_eq!(InputError { place, problem: "x".into() }.excerpt(source.text), None);
    }

    #[test]
    fn place_counts_lines_and_characters() {
        let source = Source { file: "a.toml", text: "é = 1\nb = 2\n" };
        assert_eq!(source.error(0..1, "x").to_string(), "a.toml:1:1: x");
        assert_eq!(source.error(3..4, "x").to_string(), "a.toml:1:3: x");
        assert_eq!(source.error(11..12, "x").to_string(), "a.toml:2:5: x");
        assert_eq!(source.error(999..999, "x").to_string(), "a.toml:3:1: x");
    }
}
