//! Exit statuses: the contract with scripts and CI.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// How h123 ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done. Unsupported cells and caveats are listed, but are no failure.
    Done,
    /// h123 failed.
    ToolFailed,
    /// Wrong usage, or an invalid input file.
    Usage,
    /// Done, but at least one cell failed or is invalid.
    Invalid,
    /// Done, but a condition of --fail-if or --fail-on holds.
    Threshold,
    /// Interrupted; what was measured is stored.
    Interrupted,
    /// The status of the command that the user ran in a lab.
    Command(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::ToolFailed => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Threshold => 4,
            Exit::Interrupted => 130,
            Exit::Command(code) => code,
        }
    }
}

/// Input that the user has to correct; ends with [`Exit::Usage`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub String);

/// clap's report of wrong usage in one line: what is wrong, its tips, and the command for help, of the usage
/// that clap shows or else of the given subcommand.
pub(crate) fn one_line(text: &str, subcommand: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut help = subcommand.map_or("h123 --help".to_owned(), |name| format!("h123 {name} --help"));
    for paragraph in text.trim().split("\n\n") {
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let words: Vec<&str> = usage
                .split(' ')
                .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
                .collect();
            help = format!("{} --help", words.join(" "));
        } else if !line.starts_with("For more information") {
            parts.push(line.trim_start_matches("error: ").trim_start_matches("tip: ").to_owned());
        }
    }
    format!("{} (see `{help}`)", parts.join("; "))
}

/// The option that requires the missing options of a clap error, with these:
/// `--poisson requires --rate or --stages`.
///
/// clap reports only what is missing. The option without which the command line is valid is the one that
/// requires it.
pub(crate) fn requirement(
    error: &clap::Error,
    args: &[OsString],
    parse: impl Fn(&[OsString]) -> Result<(), clap::Error>,
) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let options = missing.iter().flat_map(|usage| usage.split('|'));
    let options: Vec<&str> =
        options.filter_map(|usage| usage.trim_start_matches('<').split([' ', '>']).next()).collect();
    if error.kind() != ErrorKind::MissingRequiredArgument || !options.iter().all(|name| name.starts_with('-'))
    {
        return None;
    }
    // An option is one word, or two with its value.
    let is_valid_without = |place: usize, words: usize| {
        let rest = args.get(place + words..);
        rest.is_some_and(|rest| parse(&[&args[..place], rest].concat()).is_ok())
    };
    let requires = |place: &usize| is_valid_without(*place, 1) || is_valid_without(*place, 2);
    let is_option = |place: &usize| args[*place].to_string_lossy().starts_with('-');
    let place = (1..args.len()).filter(is_option).find(requires)?;
    let name = args[place].to_string_lossy();
    Some(format!("{} requires {}", name.split('=').next().unwrap_or(&name), options.join(" or ")))
}

/// The exit status of an error.
pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
    let is_usage = error.chain().any(|cause| cause.is::<UsageError>() || cause.is::<model::InputError>());
    if is_usage { Exit::Usage } else { Exit::ToolFailed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_usage_is_one_line() {
        let clap = "error: unexpected argument '--connection' found\n\n  tip: a similar argument exists: \
                    '--connections'\n\nUsage: h123 load --connections <CONNECTIONS> <URL>\n\nFor more information, try \
                    '--help'.\n";
        assert_eq!(
            one_line(clap, None),
            "unexpected argument '--connection' found; a similar argument exists: '--connections' (see `h123 load --help`)"
        );
        let missing = "error: the following required arguments were not provided:\n  <STUDY>\n\nUsage: h123 run <STUDY>";
        assert_eq!(
            one_line(missing, Some("run")),
            "the following required arguments were not provided: <STUDY> (see `h123 run --help`)"
        );
        let value = "error: invalid value 'x' for '-c'\n\nFor more information, try '--help'.\n";
        assert_eq!(one_line(value, Some("load")), "invalid value 'x' for '-c' (see `h123 load --help`)");
        assert_eq!(one_line(value, None), "invalid value 'x' for '-c' (see `h123 --help`)");
    }
}
