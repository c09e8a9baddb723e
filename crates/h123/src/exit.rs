//! Exit statuses: the contract with scripts and CI.

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

/// clap's report of wrong usage in one line: what is wrong, its tips, and the command for help, of the usage that clap shows or
/// else of the given subcommand.
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
