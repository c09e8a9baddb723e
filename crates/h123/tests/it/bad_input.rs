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
fn errors_have_no_escape_sequences() {
    let place = folder();
    let file = place.path().join("hidden\u{1b}[8m.toml");
    std::fs::write(&file, "question = \"\u{1b}[8mhidden\"\n").unwrap();
    let file = file.to_str().unwrap();
    for args in [&["plan", file][..], &["plan", "\u{1b}[8mhidden"], &["run", "quick", "--\u{1b}[8mhidden"]] {
        let stderr = h123(args).expect(2).stderr;
        assert!(stderr.contains("hidden") && !stderr.contains('\u{1b}'), "{stderr:?}");
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

/// Calls the tool in a folder with `pipe` (nobody writes to it), `huge` (10 GB, sparse) and `folder`. An
/// address space of 3 GB bounds what it may read.
fn h123_with_strange_files(folder: &Path, args: &str) -> Ended {
    let script = format!("ulimit -v 3000000; exec timeout 20 {} {args}", crate::tool::H123);
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(folder).output().unwrap();
    Ended::of(output)
}

fn strange_files() -> tempfile::TempDir {
    let place = folder();
    std::fs::File::create(place.path().join("huge")).unwrap().set_len(10 << 30).unwrap();
    std::fs::create_dir(place.path().join("folder")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap().success());
    place
}

#[test]
fn endless_huge_and_silent_files_are_refused() {
    let place = strange_files();
    let url = "http://127.0.0.1:1/";
    for (before, after) in [
        ("load --urls ", ""),
        (&*format!("load {url} --script "), ""),
        (&format!("load {url} --data @"), ""),
        ("load https://127.0.0.1:1/ --cacert ", ""),
        ("load https://127.0.0.1:1/ --cert ", ""),
        ("trace https://127.0.0.1:1/ --cacert ", ""),
        ("lab ", " --describe"),
    ] {
        for (file, problem) in [("/dev/zero", "MiB"), ("./huge", "MiB"), ("./folder", "it is a folder")] {
            let ended = h123_with_strange_files(place.path(), &format!("{before}{file}{after}"));
            assert_eq!(ended.code, 2, "{before}{file}: {}", ended.stderr);
            assert!(ended.stderr.contains(problem), "{before}{file}: {}", ended.stderr);
            assert_eq!(ended.stderr.lines().count(), 1, "{before}{file}: {}", ended.stderr);
        }
    }
    let silent = h123_with_strange_files(place.path(), "load --urls pipe").expect(2).stderr;
    assert!(silent.contains("no process writes to this pipe"), "{silent}");
}

#[test]
fn data_files_are_bounded_too() {
    let place = strange_files();
    for kind in ["networks", "pages", "topologies", "studies", "servers/mine"] {
        std::fs::create_dir_all(place.path().join(kind)).unwrap();
    }
    for file in ["networks/dsl.toml", "pages/small.toml", "topologies/far.toml", "studies/mine.toml"] {
        std::os::unix::fs::symlink("../huge", place.path().join(file)).unwrap();
    }
    std::os::unix::fs::symlink("../../huge", place.path().join("servers/mine/server.toml")).unwrap();
    std::fs::write(
        place.path().join("networks/traced.toml"),
        "title = \"Traced\"\nsource = \"a test\"\nrtt = \"10ms\"\n[down]\nrate = { csv = \"../huge\" }\n[up]\nrate = \"1Mbit/s\"\n",
    )
    .unwrap();
    for args in [
        "plan mine",
        "plan studies/mine.toml",
        "plan quick --network dsl",
        "plan quick",
        "lab far --describe",
        "lab dsl --describe",
        "lab traced --describe",
        "servers show mine",
        "show servers/mine",
    ] {
        let ended = h123_with_strange_files(place.path(), args);
        assert_eq!(ended.code, 2, "{args}: {} {}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("it has more than 64 MiB"), "{args}: {}", ended.stderr);
    }
}

#[test]
fn pipes_that_end_work_like_files() {
    let place = folder();
    let typed = |command: &str| {
        let script = command.replace("h123", crate::tool::H123);
        let output = std::process::Command::new("bash");
        let output = { output }.args(["-c", &script]).current_dir(place.path()).output().unwrap();
        Ended::of(output).stderr
    };
    // The path has no host: the list was read.
    for command in [
        "h123 load --urls <(sleep 0.1; echo /a)",
        "echo /a | h123 load --urls /dev/stdin",
        "mkfifo p; (sleep 0.1; echo /a > p) & h123 load --urls p",
    ] {
        let stderr = typed(command);
        assert!(stderr.contains("the path `/a` has no host"), "{command}: {stderr}");
    }
}

#[test]
fn links_in_a_result_are_not_followed() {
    let place = folder();
    let result = place.path().join("result");
    std::fs::create_dir_all(result.join("samples")).unwrap();
    std::fs::write(place.path().join("secret"), "{}").unwrap();
    std::fs::write(result.join("plan.json"), "{}").unwrap();
    let shown = result.to_str().unwrap();
    for name in ["plan.json", "samples/checksums.json", "figures"] {
        let link = result.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(place.path().join("secret"), &link).unwrap();
        for args in [&["report", shown][..], &["compare", shown, shown], &["run", "--resume", shown]] {
            let stderr = h123(args).expect(2).stderr;
            assert!(stderr.contains(&format!("{shown}/{name} is a symbolic link; a result")), "{stderr}");
        }
        std::fs::remove_file(&link).unwrap();
    }
}
