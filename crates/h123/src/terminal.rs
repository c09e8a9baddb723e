//! What people see: standard output for results, standard error for progress and errors.

use std::io::{IsTerminal, Write, stderr, stdout};

use anyhow::{Context, Result};

/// Prints a result. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Standard output that cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<()> {
    match writeln!(stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to standard output"),
    }
}

/// Says something about the course of things, unless `quiet`.
pub(crate) fn note(quiet: bool, text: &str) {
    if !quiet {
        // Nobody is left to tell when standard error is gone.
        let _ = writeln!(stderr().lock(), "{text}");
    }
}

/// Whether colours may be used on standard output (NO_COLOR, <https://no-color.org>).
pub(crate) fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Narrower terminals make tables unreadable; wider ones make them hard to follow.
const WIDTHS: std::ops::RangeInclusive<u16> = 60..=120;
const WIDTH_IN_A_PIPE: u16 = 100;

/// How tables are to look on this standard output.
pub(crate) fn look() -> report::Terminal {
    let width = rustix::termios::tcgetwinsize(stdout()).map_or(WIDTH_IN_A_PIPE, |size| size.ws_col);
    report::Terminal {
        width: width.clamp(*WIDTHS.start(), *WIDTHS.end()),
        colour: colours(),
        plain: !stdout().is_terminal(),
    }
}
