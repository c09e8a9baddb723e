//! Formats of files that other tools write: parsed from text, never read from disk here.

pub mod access_log;
pub mod clients;
pub mod line_pattern;
pub mod timing_script;
pub mod url_list;

/// What was found, short enough for one line.
pub(crate) fn shown(found: &str) -> String {
    const CHARACTERS: usize = 100;
    let mut characters = found.chars();
    let mut shown = String::new();
    for character in characters.by_ref().take(CHARACTERS) {
        match character {
            '\t' => shown.push('\t'),
            other if other.is_control() => shown.extend(other.escape_default()),
            other => shown.push(other),
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
