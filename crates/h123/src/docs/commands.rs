//! The commands and links of README and `docs/`: every option exists, and every link leads somewhere.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::pages;
use crate::Cli;

#[test]
fn commands_have_only_options_that_exist() {
    let mut faults = Vec::new();
    let mut count = 0;
    for path in pages() {
        for command in commands(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            if let Err(error) = Cli::command().try_get_matches_from(words(&command)) {
                // Prose names an option without what the command requires, and asks for help.
                if matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelp) {
                    continue;
                }
                let why = error.to_string();
                faults.push(format!(
                    "{}: {command}: {}",
                    path.display(),
                    why.lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert!(count > 100, "{count} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// clap wraps help to the terminal's width, so a text that is also broken by hand has ragged lines, and a
/// longer example cannot be copied.
#[test]
fn help_is_not_broken_by_hand_and_examples_fit() {
    let command = Cli::command();
    let mut faults = Vec::new();
    for command in command.get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = help.lines().collect();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with("  ");
        for (index, line) in lines.iter().enumerate() {
            let next = lines.get(index + 1).copied().unwrap_or_default();
            let is_broken = is_prose(line) && is_prose(next) && !line.ends_with(['.', ':']);
            let is_long = line.starts_with("  ") && line.chars().count() > 100;
            if is_broken || is_long {
                faults.push(format!("{}: {line}", command.get_name()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for link in links(&page).filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            if !target.exists() || !anchor.is_empty() && !has_anchor(&target, anchor) {
                faults.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_and_links_are_found() {
    let page = "`h123 plan S --json` and\n```\n$ h123 lab a \\\n  -- b | c   # d\nh123: error\n```\n[a](b.md#c) `h123 x`";
    assert_eq!(commands(page), ["h123 plan S --json", "h123 lab a -- b | c"]);
    assert_eq!(links(page).collect::<Vec<_>>(), ["b.md#c"]);
    assert_eq!(words("h123 load 'a b' -c 1 | jq # x"), ["h123", "load", "a b", "-c", "1"]);
    assert_eq!(anchor("`[hold]` and *more*, now"), "hold-and-more-now");
}

/// The commands in a page: inline code, and lines of blocks that begin with the tool's name, `$` or a
/// variable.
fn commands(page: &str) -> Vec<String> {
    let (mut inline, mut blocks) = (String::new(), String::new());
    for (index, part) in page.split("```").enumerate() {
        let target = if index % 2 == 0 { &mut inline } else { &mut blocks };
        *target += part;
        *target += "\n";
    }
    let joined: Vec<&str> = blocks.split("\\\n").map(str::trim_start).collect();
    let blocks = joined.join("");
    let inline = inline.replace('\n', " ");
    let inline = inline.split('`').skip(1).step_by(2);
    let lines = blocks.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
    // What follows several spaces explains the command.
    let lines = inline.chain(lines).filter_map(|line| line.split("   ").next());
    lines.filter(|line| is_command(line)).map(ToOwned::to_owned).collect()
}

/// Whether a text is a command with its arguments. Prose calls commands by two words, such as `h123 lab`, and
/// leaves out what does not matter with `…`.
fn is_command(text: &str) -> bool {
    let Some(arguments) = text.strip_prefix("h123 ") else { return false };
    let is_placeholder = arguments.starts_with("COMMAND") || arguments.contains('…');
    arguments.split_whitespace().any(|word| word.starts_with('-')) && !is_placeholder
}

/// The words of a command as a shell splits them, up to a pipe, a redirection or a comment.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in command.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | '#' | '&' | ';') if word.is_none() => return words,
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// The targets of the links in a page, without its code blocks.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let prose = page.split("```").step_by(2);
    prose
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
}

fn has_anchor(page: &Path, wanted: &str) -> bool {
    let text = fs::read_to_string(page).unwrap();
    let headings = text.split("```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|anchor| anchor == wanted)
}

/// The anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}
