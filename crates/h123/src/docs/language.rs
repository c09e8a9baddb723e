//! Words that h123 no longer uses, in everything that a person reads first.

use std::fs;

use clap::{Command, CommandFactory};

use super::{pages, root};
use crate::Cli;

/// Retired words in lower case, each with what to write instead.
const RETIRED: &[(&str, &str)] = &[
    ("ended well", "succeeded"),
    ("came well", "succeeded"),
    ("foreign client", "external client"),
    ("somebody else", "external, or name whose"),
    ("look-up", "DNS lookup"),
    ("known answer", "reference measurement"),
    ("known truth", "ground truth"),
    ("answer in short", "summary"),
    ("held alike", "fixed"),
    ("at rest", "idle"),
    ("anew", "again"),
    ("doubt", "caveat"),
    ("condemn", "invalidate"),
    ("unsaid", "not reported"),
    ("may not be believed", "caveats"),
    ("stands against", "caveats"),
    ("stand against", "caveats"),
    ("beyond chance", "significant"),
    ("for certain", "an exact claim, such as \u{201c}equivalence test, 95 %\u{201d}"),
    ("stands twice", "duplicate"),
    ("out of its mind", "upper bound"),
    ("so many", "this many, or the number"),
    ("after so long", "after this long"),
    ("so far away", "the distance"),
    ("as it is", "unchanged"),
    ("as they are", "unchanged"),
    ("of its own", "separate, or the owner's name"),
    ("of their own", "separate, or the owner's name"),
    ("whoever", "a noun"),
    ("that there is", "that exists"),
    ("is another than", "differs from"),
    ("next door", "on the local network"),
    ("kinder", "better"),
    ("makes times up", "produces false times"),
    ("vouches", "is unverified"),
    ("which nobody knows", "which cannot be known"),
    ("nobody knows", "unknown"),
    ("says nothing", "does not report"),
    ("in silence", "silently"),
    ("decides.md", "statistics.md"),
    ("be there yourself", "explore a network by hand"),
];

#[test]
fn no_retired_word_comes_back() {
    let mut found = Vec::new();
    for (place, text) in texts() {
        let words = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        for (retired, better) in RETIRED {
            for (at, _) in words.match_indices(retired).filter(|(at, _)| is_whole(&words, *at, retired)) {
                let around = &words
                    [words.floor_char_boundary(at.saturating_sub(40))..words.ceil_char_boundary(at + 60)];
                found.push(format!("{place}: \u{201c}{retired}\u{201d} in \u{201c}\u{2026}{around}\u{2026}\u{201d}: write {better}"));
            }
        }
    }
    assert!(found.is_empty(), "{} retired words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_retired_word_is_found_as_a_whole_word() {
    assert!(is_whole("he began anew.", 9, "anew"));
    assert!(!is_whole("manewer", 1, "anew"));
    assert!(is_whole("its doubts", 4, "doubt"), "with an ending too");
}

/// Whether a word begins at this place: the one before it has ended. Endings such as a plural's count as the
/// same word.
fn is_whole(text: &str, at: usize, word: &str) -> bool {
    let before = text[..at].chars().next_back();
    let ending = text[at + word.len()..].chars().next();
    let goes_on = word.contains(' ') && ending.is_some_and(|next| next.is_alphabetic() && next != 's');
    before.is_none_or(|before| !before.is_alphanumeric()) && !goes_on
}

/// README and docs, the help of every command, and the templates of the report.
fn texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> =
        pages().iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect();
    let templates = fs::read_dir(root().join("crates/report/templates")).unwrap();
    for path in templates.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "html") {
            texts.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    let mut cli = Cli::command();
    cli.build();
    collect_help(&mut cli, "h123", &mut texts);
    texts
}

fn collect_help(command: &mut Command, name: &str, texts: &mut Vec<(String, String)>) {
    texts.push((format!("{name} --help"), command.render_long_help().to_string()));
    for inner in command.get_subcommands_mut() {
        let name = format!("{name} {}", inner.get_name());
        collect_help(inner, &name, texts);
    }
}
