//! The terminal: results on standard output, progress and errors on standard error.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use model::clean::clean_coloured;

/// Prints a result. A closed pipe (`| head`) is not an error. Like everything here, the text may contain
/// strings from files and servers: it is cleaned.
///
/// # Errors
/// Standard output cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<()> {
    match writeln!(stdout().lock(), "{}", clean_coloured(text)) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints a message on standard error, unless `quiet`.
pub(crate) fn note(quiet: bool, text: &str) {
    if !quiet {
        let mut shown = BLOCK_LINES.lock().unwrap_or_else(PoisonError::into_inner);
        // If standard error is closed, there is nowhere to report it.
        let _ = writeln!(stderr().lock(), "{}{}", redraw(*shown, &[]), clean_coloured(text));
        *shown = 0;
    }
}

/// The number of lines of the block at the end of standard error.
static BLOCK_LINES: Mutex<usize> = Mutex::new(0);

/// Replaces the block of lines at the end of standard error. Messages appear above it.
pub(crate) fn block(lines: &[String]) {
    let mut shown = BLOCK_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    // If standard error is closed, there is nowhere to report it.
    let _ = stderr().lock().write_all(redraw(*shown, lines).as_bytes());
    *shown = lines.len();
}

/// The text that replaces `shown` lines by others.
fn redraw(shown: usize, lines: &[String]) -> String {
    let removed = if shown > 0 { format!("\r\x1b[{shown}A\x1b[J") } else { String::new() };
    lines.iter().fold(removed, |text, line| text + &clean_coloured(line) + "\n")
}

/// A duration for people: `12 s`, `3 min 05 s` or `2 h 03 min`.
pub(crate) fn clock(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A table with these headings, in the form of all tables that h123 prints.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(headings);
    table
}

/// Columns and rows of the terminal on standard error, or 80 by 24 if unknown.
pub(crate) fn size_of_stderr() -> (usize, usize) {
    const UNKNOWN: (usize, usize) = (80, 24);
    match rustix::termios::tcgetwinsize(stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => UNKNOWN,
    }
}

/// Whether standard output may be coloured (NO_COLOR, <https://no-color.org>).
pub(crate) fn colours() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Narrower tables are unreadable, wider ones hard to follow.
const WIDTHS: std::ops::RangeInclusive<u16> = 60..=120;
const WIDTH_IN_A_PIPE: u16 = 100;

/// The look of tables on this standard output.
pub(crate) fn look() -> report::Terminal {
    let width = rustix::termios::tcgetwinsize(stdout()).map_or(WIDTH_IN_A_PIPE, |size| size.ws_col);
    report::Terminal {
        width: width.clamp(*WIDTHS.start(), *WIDTHS.end()),
        colour: colours(),
        plain: !stdout().is_terminal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_block_replaces_the_last() {
        assert_eq!(redraw(0, &["a".into(), "b".into()]), "a\nb\n");
        assert_eq!(redraw(2, &["c".into()]), "\r\x1b[2A\x1b[Jc\n");
        assert_eq!(redraw(0, &[]), "", "if no block is shown, nothing is removed");
        assert_eq!(redraw(0, &["a\x1b[2J".into()]), "a\u{fffd}[2J\n", "lines are cleaned");
    }
}
