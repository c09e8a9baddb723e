//! Wrong usage and invalid studies: one error with its place, status 2, and nothing is started.

use std::path::Path;

use crate::tool::{Ended, folder, h123, repository};

/// A study of a few seconds, from the lines of `quick` with some replaced.
pub(crate) fn study(folder: &Path, change: impl Fn(String) -> String) -> String {
    let quick = std::fs::read_to_string(repository().join("studies/quick.toml")).unwrap();
    let path = folder.join("study.toml");
    std::fs::write(&path, change(quick)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn refused(change: impl Fn(String) -> String) -> Ended {
    let folder = folder();
    let study = study(folder.path(), change);
    let out = folder.path().join("out");
    let ended = h123(["run", &study, "--out", out.to_str().unwrap()]).expect(2);
    assert!(!out.exists(), "an invalid study makes no result");
    assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let [error, _, line, caret] = lines.as_slice() else {
        panic!("one error and its line:\n{}", ended.stderr)
    };
    // The caret is below the column that the error names.
    let column: usize =
        error.split("study.toml:").nth(1).unwrap().split(':').nth(1).unwrap().parse().unwrap();
    let margin = line.find('|').unwrap() + 1;
    assert_eq!(caret.find('^'), Some(margin + column), "{}", ended.stderr);
    ended
}

#[test]
fn bad_studies_name_file_line_and_column() {
    let unknown = refused(|text| text.replace("runs", "rums"));
    assert!(unknown.stderr.contains("rums") && unknown.stderr.contains("runs"), "{}", unknown.stderr);
    let unit = refused(|text| text.replace("margin", "margin = \"3 parsecs\" #"));
    assert!(unit.stderr.contains("3 parsecs"), "{}", unit.stderr);
    let network = refused(|text| text.replace("\"north-carolina\"", "\"north-karolina\""));
    assert!(network.stderr.contains("did you mean `north-carolina`"), "{}", network.stderr);
    let broken = refused(|text| format!("{text}\n[["));
    assert!(broken.stderr.contains("expected"), "{}", broken.stderr);
}

#[test]
fn a_study_that_is_almost_named_is_suggested() {
    let suggestion = |name: &str| {
        let place = folder();
        std::fs::write(place.path().join("shop.toml"), "").unwrap();
        let output = std::process::Command::new(crate::tool::H123);
        let output = { output }.args(["plan", name]).current_dir(place.path()).output().unwrap();
        Ended::of(output).expect(2).stderr
    };
    assert!(suggestion("shop").contains("did you mean `shop.toml`?"));
    assert!(suggestion("quikc").contains("did you mean `quick`?"));
    assert!(suggestion("quick.toml").contains("did you mean `quick`?"));
}

#[test]
fn bad_names_on_the_command_line_are_refused_too() {
    for args in [
        &["run", "no-such-study"][..],
        &["run", "/no/such/study.toml"],
        &["run", "quick", "--variant", "h4"],
        &["run", "quick", "--server", "iis"],
        &["run", "quick", "--runs", "0"],
        &["run", "quick", "--bogus"],
        &["run"],
        &["load"],
        &["load", "ftp://example.org/"],
        &["load", "http://127.0.0.1:1/", "--variant", "h2"],
        &["load", "http://127.0.0.1:1/", "-c", "0"],
        &["load", "http://127.0.0.1:1/", "-d", "5 lightyears"],
        &["load", "https://127.0.0.1:1/", "--cacert", "/no/such/file"],
        &["trace", "http://"],
        &["serve", "--root", "/no/such/folder"],
        &["no-such-command"],
    ] {
        let ended = h123(args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{args:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn an_existing_result_is_not_changed() {
    let folder = folder();
    std::fs::write(folder.path().join("precious"), "data").unwrap();
    let ended = h123(["run", "quick", "--out", folder.path().to_str().unwrap()]).expect(2);
    assert!(ended.stderr.contains("--resume"), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn only_a_result_can_be_reported_or_resumed() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    for args in [["report", path], ["run", "--resume"]] {
        let args = if args[1] == "--resume" { vec!["run", "--resume", path] } else { args.to_vec() };
        let ended = h123(&args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("is not a result"), "{}", ended.stderr);
    }
}

#[test]
fn a_full_disk_is_an_error_before_anything_runs() {
    // A folder that is not writable takes the place of a full disk.
    let ended = h123(["run", "quick", "--out", "/proc/h123-result"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("/proc"), "{}", ended.stderr);
    assert!(ended.stdout.is_empty());
}
