//! Documentation that follows from the code: the tables of README and `docs/`, the words that they use, their
//! links and their commands. `tests/it/docs.rs` checks the outputs.
//!
//! A table is between two comments, `<!-- table: NAME -->` and `<!-- end of table -->`. `make docs` writes
//! all of them; the test fails if one is stale, unknown or missing.

mod commands;
mod fields;
mod language;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// Set to write the tables instead of comparing them.
const UPDATE: &str = "H123_UPDATE_DOCS";

#[test]
fn tables_of_the_documentation_are_current() {
    let tables: Vec<_> = tables::all().into_iter().chain(fields::all()).collect();
    let mut used = BTreeSet::new();
    for path in pages() {
        let written = fs::read_to_string(&path).unwrap();
        let current = with_tables(&written, |name| {
            used.insert(name.to_owned());
            let (_, table) = tables.iter().find(|(known, _)| known == name).unwrap_or_else(|| {
                let known: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
                panic!("{}: no table `{name}`; there are: {}", path.display(), known.join(", "))
            });
            table.clone()
        });
        if std::env::var_os(UPDATE).is_some() {
            fs::write(&path, current).unwrap();
        } else {
            assert!(written == current, "{} is stale; run `make docs`", path.display());
        }
    }
    let unused: Vec<&String> =
        tables.iter().map(|(name, _)| name).filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "no page contains the tables {unused:?}");
}

#[test]
fn only_the_text_between_the_comments_changes() {
    let page = format!("before\n{BEGIN}a -->\nold\n{END}\nafter\n");
    let expected = format!("before\n{BEGIN}a -->\n\nnew\n\n{END}\nafter\n");
    assert_eq!(with_tables(&page, |name| format!("{}\n", if name == "a" { "new" } else { "?" })), expected);
    assert_eq!(with_tables(&expected, |_| "new\n".to_owned()), expected);
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that people read, without the changelog, which quotes the words of its time.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        [root(), root().join("docs"), root().join("docs/examples"), root().join("docs/studies")]
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .filter(|path| !path.ends_with("CHANGELOG.md"))
            .collect();
    pages.sort();
    pages
}

/// The page with each of its tables replaced.
fn with_tables(page: &str, mut table: impl FnMut(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = page;
    while let Some((before, marked)) = rest.split_once(BEGIN) {
        let (name, old) = marked.split_once(" -->\n").expect("the comment ends on its line");
        let (_, after) = old.split_once(END).unwrap_or_else(|| panic!("the table `{name}` has no end"));
        result += &format!("{before}{BEGIN}{name} -->\n\n{}\n{END}", table(name));
        rest = after;
    }
    result + rest
}
