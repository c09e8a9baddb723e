//! `list`, `show`, `new`, `completions`, `man`, `--version` and `report --open`: what a user finds without
//! the documentation.

use std::path::Path;
use std::process::Command;

use crate::tool::{Ended, H123, folder, h123};

fn h123_in(folder: &Path, args: &[&str]) -> Ended {
    Ended::of(Command::new(H123).args(args).current_dir(folder).output().unwrap())
}

#[test]
fn everything_that_is_listed_is_shown() {
    let place = folder();
    let all = h123_in(place.path(), &["list"]).expect(0).stdout;
    for name in ["quick", "north-carolina", "small", "proxied", "nginx"] {
        assert!(all.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {all}");
        let shown = h123_in(place.path(), &["show", name]).expect(0).stdout;
        assert!(shown.contains("title = ") || shown.contains("question = "), "{shown}");
    }
    let networks = h123_in(place.path(), &["list", "network"]).expect(0).stdout;
    assert!(networks.contains("tokyo") && !networks.contains("nginx"), "{networks}");
    let wrong = h123_in(place.path(), &["show", "north-carolin"]).expect(2).stderr;
    assert!(wrong.contains("did you mean `north-carolina`?"), "{wrong}");
}

#[test]
fn a_new_file_is_valid_and_nothing_is_replaced() {
    let place = folder();
    let run = |args: &[&str], code: i32| h123_in(place.path(), args).expect(code);
    for (kind, file, check) in [
        ("study", "studies/mine.toml", &["plan", "mine"][..]),
        ("network", "networks/mine.toml", &["plan", "quick", "--network", "mine"]),
        ("topology", "topologies/mine.toml", &["lab", "mine", "--describe"]),
        ("server", "servers/mine/server.toml", &["servers", "show", "mine"]),
        ("page", "pages/mine.toml", &["plan", "quick"]),
    ] {
        let made = run(&["new", kind, "mine"], 0);
        assert!(made.stdout.lines().any(|line| line == file), "{}", made.stdout);
        run(check, 0);
        let again = run(&["new", kind, "mine"], 2);
        assert!(again.stderr.contains("exists; choose another name or remove it"), "{}", again.stderr);
        assert!(run(&["list", kind], 0).stdout.contains(file), "{kind}");
    }
    let page = std::fs::read_to_string(place.path().join("pages/mine.toml")).unwrap();
    assert!(page.contains("path = \"/mine/\"") && !page.contains("/small/\""), "{page}");
    let escape = run(&["new", "network", "../mine"], 2);
    assert!(escape.stderr.contains("is not a name"), "{}", escape.stderr);
}

#[test]
fn shells_and_man_read_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = h123(["completions", shell]).expect(0).stdout;
        assert!(script.contains("compare") && script.contains("requests-per-connection"), "{shell}");
    }
    let place = folder();
    h123_in(place.path(), &["man", "man1"]).expect(0);
    let page = std::fs::read_to_string(place.path().join("man1/h123-load.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("think"), "{page}");
    assert!(place.path().join("man1/h123.1").exists());
}

#[test]
fn the_version_names_the_commit() {
    let version = h123(["--version"]).expect(0).stdout;
    let commit = version.trim().split_once(" (").unwrap().1.trim_end_matches(')');
    assert!(commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
}
