//! Templates of commands and configuration files.

use std::collections::BTreeMap;

use anyhow::anyhow;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use model::InputError;
use model::error::Source;
use model::reader::{Placed, Table};

use crate::quoting;

/// The most instructions of one template. A configuration of a thousand pages with a hundred resources needs
/// a million.
const FUEL: u64 = 10_000_000;

/// A fault in a template and its place.
#[derive(Debug)]
pub(crate) struct TemplateProblem {
    pub(crate) problem: String,
    /// Bytes from the start; `None` where only the line is known.
    offset: Option<usize>,
    /// From 1; 0 where it is unknown.
    line: usize,
}

/// The variables of a template.
pub(crate) type Variables = BTreeMap<&'static str, Value>;

impl TemplateProblem {
    /// The problem with its place in a file.
    pub(crate) fn at(&self, source: Source<'_>) -> InputError {
        let line_start = |line: usize| source.text.split_inclusive('\n').take(line).map(str::len).sum();
        let offset = self.offset.unwrap_or_else(|| line_start(self.line.saturating_sub(1)));
        source.error(offset..offset, self.problem.clone())
    }

    fn new(error: &Error) -> Self {
        let problem = match error.kind() {
            ErrorKind::OutOfFuel => {
                format!("the template executes more than {FUEL} instructions; shorten its loops")
            }
            kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
        };
        let offset = error.range().map(|range| range.start);
        TemplateProblem { problem, offset, line: error.line().unwrap_or(0) }
    }
}

/// Checks that a template is valid.
pub(crate) fn check(text: &str) -> Result<(), TemplateProblem> {
    environment("0", "").template_from_str(text).map(drop).map_err(|error| TemplateProblem::new(&error))
}

/// Reads a key: a valid template.
pub(crate) fn read_template(table: &Table<'_>, key: &str) -> Result<Option<Placed<String>>, InputError> {
    table.text(key)?.map(|text| checked(text, key)).transpose()
}

/// Reads a key: a list of at least one valid template.
pub(crate) fn read_templates(
    table: &Table<'_>,
    key: &str,
) -> Result<Option<Placed<Vec<String>>>, InputError> {
    let Some(list) = table.some_strings(key)? else { return Ok(None) };
    let words = list.value.into_iter().map(|word| Ok(checked(word, key)?.value));
    Ok(Some(Placed { value: words.collect::<Result<_, InputError>>()?, place: list.place }))
}

fn checked(text: Placed<String>, key: &str) -> Result<Placed<String>, InputError> {
    text.map(|text| match check(&text) {
        Ok(()) => Ok(text),
        Err(problem) => Err(format!("`{key}`: {}", problem.problem)),
    })
}

/// Fills in a template. A variable that does not exist is an error.
///
/// In addition to the variables there are `at_least("1.25.1")`, which compares the program's version;
/// `build_has("text")`, which searches the version command's output; and the filters of `quoting`.
pub(crate) fn render(
    text: &str,
    version: &str,
    build: &str,
    variables: &Variables,
) -> Result<String, TemplateProblem> {
    let environment = environment(version, build);
    environment.render_str(text, variables.clone()).map_err(|error| TemplateProblem::new(&error))
}

/// Fills in every word of a command in `file`.
///
/// # Errors
/// A word cannot be filled in, with the reason.
pub(crate) fn fill(
    words: &[String],
    file: &str,
    version: &str,
    build: &str,
    variables: &Variables,
) -> anyhow::Result<Vec<String>> {
    let fill = |word: &String| {
        render(word, version, build, variables)
            .map_err(|problem| anyhow!("{file}: `{word}`: {}", problem.problem))
    };
    let filled: Vec<String> = words.iter().map(fill).collect::<anyhow::Result<_>>()?;
    // Words that a condition leaves empty are dropped.
    Ok(filled.into_iter().filter(|word| !word.is_empty()).collect())
}

fn environment(version: &str, build: &str) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    // The default delimiters are always valid.
    environment.set_syntax(syntax.build().unwrap_or_default());
    let (version, build) = (version.to_owned(), build.to_owned());
    environment.add_function("at_least", move |wanted: String| is_at_least(&version, &wanted));
    environment.add_function("build_has", move |text: String| build.contains(&text));
    quoting::add_filters(&mut environment);
    environment
}

/// Compares dotted numbers; a suffix (`1.25.1-beta`) is ignored.
pub(crate) fn is_at_least(found: &str, wanted: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
        version.split('.').map_while(|part| digits(part).parse().ok()).collect()
    };
    numbers(found) >= numbers(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(is_at_least("1.25.1", "1.25.1"));
        assert!(is_at_least("1.30.0", "1.25.1"));
        assert!(is_at_least("2.0-rc1", "1.99.9"));
        assert!(!is_at_least("1.22.1", "1.25.1"));
        assert!(!is_at_least("1.9.20", "1.25.1"));
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_line() {
        let problem = render("a\nb {{ nobody }}\n", "1", "", &Variables::new()).unwrap_err();
        let error = problem.at(Source { file: "t", text: "a\nb {{ nobody }}\n" });
        assert!(error.to_string().starts_with("t:2:"), "{error}");
    }

    #[test]
    fn endless_loops_end() {
        let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
        let problem = render(endless, "1", "", &Variables::new()).unwrap_err();
        assert!(problem.problem.contains("instructions"), "{problem:?}");
    }
}
