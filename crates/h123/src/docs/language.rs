//! Words that h123 no longer uses, in everything that a person reads, and the width of comments.

use std::fs;
use std::path::{Path, PathBuf};

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
    ("beside", "next to, with, or compared with"),
    ("the seam", "the client protocol"),
    ("broke the seam", "protocol error"),
    ("segments sent again", "retransmissions"),
    ("the way to the", "the route to the"),
    ("way between", "route between"),
];

/// The widest comment, in characters.
const COMMENT_WIDTH: usize = 110;

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
    assert!(!is_whole("two besides", 4, "beside"), "besides means in addition to");
}

#[test]
fn comments_are_at_most_110_columns_wide() {
    let mut found = Vec::new();
    for file in
        ["crates", "benches", "fuzz"].iter().flat_map(|folder| files_below(&root().join(folder), "rs"))
    {
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let text = line.trim_start();
            let comment = text.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim());
            // Rows of tables and single words such as URLs cannot be wrapped.
            let can_wrap = comment.is_some_and(|words| !words.starts_with('|') && words.contains(' '));
            if can_wrap && line.chars().count() > COMMENT_WIDTH {
                found.push(format!("{}:{}: {line}", file.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} comments are too wide; wrap them:\n{}", found.len(), found.join("\n"));
}

#[test]
fn literals_are_the_strings_of_code_without_names_and_comments() {
    let source = r##"
        /// A "doc" comment's text
        fn f<'a>(x: &'a str) -> char { let _ = b"bytes"; '"' }
        const A: &str = "one {name} \"quoted\" \
                         line"; // "comment"
        const B: &str = r#"raw "text""#;
        #[cfg(test)]
        mod tests { const C: &str = "test"; }
    "##;
    let found: Vec<String> = literals(source).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["bytes", "one  \\\"quoted\\\" line", "raw \"text\""]);
    assert_eq!(literals(source)[1].0, 4);
}

/// Whether a word begins at this place: the one before it has ended. Endings such as a plural's count as the
/// same word; *besides* is another word than *beside*.
fn is_whole(text: &str, at: usize, word: &str) -> bool {
    let before = text[..at].chars().next_back();
    let ending = text[at + word.len()..].chars().next();
    let goes_on = ending.is_some_and(|next| match word {
        "beside" => next.is_alphabetic(),
        _ => word.contains(' ') && next.is_alphabetic() && next != 's',
    });
    before.is_none_or(|before| !before.is_alphanumeric()) && !goes_on
}

/// README and docs, the templates of the report, the data files, the strings of the code, and the help of
/// every command.
fn texts() -> Vec<(String, String)> {
    let mut files = pages();
    files.extend(files_below(&root().join("crates/report/templates"), "html"));
    for folder in ["servers", "clients", "studies", "networks", "topologies", "pages", "media"] {
        files.extend(files_below(&root().join(folder), "toml"));
    }
    let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let mut texts: Vec<(String, String)> =
        files.iter().map(|path| (path.display().to_string(), read(path))).collect();
    for path in files_below(&root().join("crates"), "rs").iter().filter(|path| is_shipped(path)) {
        let found = literals(&read(path));
        texts.extend(found.into_iter().map(|(line, text)| (format!("{}:{line}", path.display()), text)));
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

/// Every file with this extension in a folder and the folders in it, in order of their names.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let inner = |path: PathBuf| match path.is_dir() {
        true if path.ends_with("target") => Vec::new(),
        true => files_below(&path, extension),
        false => vec![path],
    };
    let files = entries.into_iter().flat_map(inner);
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Whether a file is part of the program: not a test, a benchmark or this list of words.
fn is_shipped(path: &Path) -> bool {
    let path = path.strip_prefix(root()).unwrap();
    let has = |name: &str| path.iter().any(|part| part == name);
    has("src") && !has("tests") && !has("docs") && !path.ends_with("tests.rs")
}

/// The strings of Rust code outside its tests, without the names in braces, each with its line.
fn literals(source: &str) -> Vec<(usize, String)> {
    const TEST: &str = "#[cfg(test)]";
    let mut tests = source.match_indices(TEST).map(|(at, _)| at);
    let is_module = |at: &usize| source[at + TEST.len()..].trim_start().starts_with("mod tests");
    let code = &source[..tests.find(is_module).unwrap_or(source.len())];
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let raw = rest.strip_prefix('r').map(|rest| rest.trim_start_matches('#'));
        let (begin, end) = if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(text) = raw.and_then(|rest| rest.strip_prefix('"')) {
            let begin = rest.len() - text.len();
            let close = format!("\"{}", "#".repeat(begin - 2));
            (begin, begin + text.find(&close).unwrap_or(text.len()))
        } else if let Some(text) = rest.strip_prefix('"') {
            (1, 1 + closing_quote(text))
        } else {
            // A quote as a character does not begin a string.
            let quote = ["'\"'", "'\\\"'"].into_iter().find(|quote| rest.starts_with(quote));
            at += quote.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), str::len);
            continue;
        };
        found.push((1 + code[..at].matches('\n').count(), without_names(&rest[begin..end])));
        at += end + rest[end..].find(|c| c != '"' && c != '#').unwrap_or(1);
    }
    found
}

/// The length of a string's text: up to the first quote that is not escaped.
fn closing_quote(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    text.find(is_end).unwrap_or(text.len())
}

/// A string's text without line continuations and without the names in braces.
fn without_names(text: &str) -> String {
    let lines = text.split("\\\n").enumerate();
    let joined: String =
        lines.map(|(index, line)| if index == 0 { line } else { line.trim_start() }).collect();
    let mut kept = String::new();
    let mut depth = 0_usize;
    for c in joined.chars() {
        depth += usize::from(c == '{');
        if depth == 0 {
            kept.push(c);
        }
        depth -= usize::from(c == '}' && depth > 0);
    }
    kept
}
