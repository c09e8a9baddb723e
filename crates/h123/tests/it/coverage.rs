//! `docs/studies/coverage.md`: every element of the published studies names lines that are in its file, and
//! tests that exist.

use std::fs;

use crate::tool::repository;

const PAPERS: [&str; 5] = ["aalto", "bbc-dash", "dncs", "hds", "uva"];

#[test]
fn every_element_names_lines_and_tests_that_exist() {
    let page = fs::read_to_string(repository().join("docs/studies/coverage.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ") && !is_heading(line)).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    let faults: Vec<String> = rows.iter().filter_map(|row| fault(row)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for paper in PAPERS {
        for study in [paper.to_owned(), format!("{paper}-as-published")] {
            assert!(page.contains(&format!("`{study}`: `")), "no element is in `{study}`");
        }
    }
}

#[test]
fn rows_that_name_what_does_not_exist_are_found() {
    let test = "`flaws.rs`: `flaws_name_what_exists`";
    let faults = [
        ("`uva`: `clients = [1, 25, 750]`; `hds`: `titles = 7000`", test, None),
        ("not in h123: nobody needs it", "none: nothing to run", None),
        ("`uva`: `clients = [2]`", test, Some("studies/uva.toml does not contain `clients = [2]`")),
        ("`nosuch`: `a`", test, Some("studies/nosuch.toml does not exist")),
        ("`topologies/nosuch.toml`: `a`", test, Some("topologies/nosuch.toml does not exist")),
        ("`uva`", test, Some("`uva` is no `FILE`: `TEXT`")),
        ("", test, Some("an empty cell")),
        ("`uva`: `seed = 1`", "", Some("an empty cell")),
        ("not in h123: ", test, Some("no reason")),
        ("`uva`: `seed = 1`", "none: ", Some("no reason")),
        (
            "`uva`: `seed = 1`",
            "`flaws.rs`: `no_such`",
            Some("crates/h123/tests/it/flaws.rs has no test `no_such`"),
        ),
    ];
    for (place, test, expected) in faults {
        let found = fault(&format!("| element | {place} | {test} |"));
        let is_expected = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (None, None) => true,
            _ => false,
        };
        assert!(is_expected, "{found:?}, expected {expected:?}");
    }
    assert!(fault("| element | `uva`: `seed = 1` |").is_some_and(|found| found.contains("three cells")));
}

fn is_heading(row: &str) -> bool {
    row.starts_with("| element |") || row.starts_with("|---")
}

/// What is wrong with a row.
fn fault(row: &str) -> Option<String> {
    check_row(row).err().map(|fault| format!("{row}: {fault}"))
}

fn check_row(row: &str) -> Result<(), String> {
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [_, places, tests] = cells[..] else { return Err("not three cells".to_owned()) };
    if cells.iter().any(|cell| cell.is_empty()) {
        return Err("an empty cell".to_owned());
    }
    check_each(places, "not in h123:", |file, text| {
        let path = if file.contains('/') { file.to_owned() } else { format!("studies/{file}.toml") };
        let has = read(&path)?.contains(text);
        if has { Ok(()) } else { Err(format!("{path} does not contain `{text}`")) }
    })?;
    check_each(tests, "none:", |file, name| {
        let path = if file.contains('/') { file.to_owned() } else { format!("crates/h123/tests/it/{file}") };
        let source = read(&path)?;
        let has =
            source.split("#[test]").skip(1).any(|test| test.trim_start().starts_with(&format!("fn {name}(")));
        if has { Ok(()) } else { Err(format!("{path} has no test `{name}`")) }
    })
}

/// Checks every text of a cell such as `` `FILE`: `TEXT`, `TEXT`; `FILE`: `TEXT` ``, or that a cell with this
/// beginning has a reason.
fn check_each(
    cell: &str,
    exception: &str,
    check: impl Fn(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    if let Some(reason) = cell.strip_prefix(exception) {
        return if reason.is_empty() { Err("no reason".to_owned()) } else { Ok(()) };
    }
    for part in cell.split("; ") {
        let words: Vec<&str> = part.split('`').collect();
        let ["", file, ": ", texts @ ..] = &words[..] else {
            return Err(format!("{part} is no `FILE`: `TEXT`"));
        };
        for text in texts.iter().step_by(2) {
            check(file, text)?;
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(repository().join(path)).map_err(|_| format!("{path} does not exist"))
}
