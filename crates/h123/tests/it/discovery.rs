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
    // A study has the same name.
    let several = h123_in(place.path(), &["show", "video"]).expect(2).stderr;
    assert!(several.contains("write studies/video or replays/video"), "{several}");
    let script = h123_in(place.path(), &["show", "replays/video"]).expect(0).stdout;
    assert!(script.starts_with("{\"h123_script\":1,"), "{script}");
    let scripts = h123_in(place.path(), &["list", "replay"]).expect(0).stdout;
    assert!(scripts.contains("30 s of a video over a DSL line") && !scripts.contains("quick"), "{scripts}");
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
        ("replay", "replays/mine.jsonl", &["show", "replays/mine"]),
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
fn man_reads_every_command() {
    let place = folder();
    h123_in(place.path(), &["man", "man1"]).expect(0);
    let page = std::fs::read_to_string(place.path().join("man1/h123-load.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("think"), "{page}");
    assert!(place.path().join("man1/h123.1").exists());
}

#[test]
fn a_report_is_opened_in_the_browser_or_says_how() {
    let place = folder();
    let (result, bin) = (place.path().join("result"), place.path().join("bin"));
    std::fs::create_dir_all(result.join("samples")).unwrap();
    std::fs::create_dir(&bin).unwrap();
    let plan = h123(["plan", "quick", "--runs", "1", "--json"]).expect(0).stdout;
    std::fs::write(result.join("plan.json"), plan).unwrap();
    let opener = |name: &str, script: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let open = |browser: Option<&str>| {
        let mut command = Command::new(H123);
        command.args(["report", "result", "--open"]).current_dir(place.path()).env("PATH", &bin);
        command.env_remove("BROWSER").envs(browser.map(|name| ("BROWSER", name)));
        Ended::of(command.output().unwrap())
    };
    let none = open(None).expect(1).stderr;
    let advice = "set BROWSER to a browser, or open result/report.html";
    assert!(none.contains(&format!("cannot start `xdg-open`; {advice}")), "{none}");
    assert!(result.join("report.html").exists(), "the report is written in any case");
    opener("xdg-open", "echo \"$0 $*\" > opened");
    opener("mine", "echo \"mine $*\" > opened; exec /bin/sleep 3");
    // Nothing is measured, so the status is 3.
    for (browser, expected) in
        [(None, "xdg-open result/report.html\n"), (Some("mine"), "mine result/report.html\n")]
    {
        open(browser).expect(3);
        let opened = std::fs::read_to_string(place.path().join("opened")).unwrap();
        assert!(opened.ends_with(expected), "{opened}");
    }
    opener("xdg-open", "exit 3");
    let failed = open(None).expect(1).stderr;
    assert!(failed.contains(&format!("`xdg-open` failed (exit status: 3); {advice}")), "{failed}");
}

#[test]
fn the_version_names_the_commit() {
    let version = h123(["--version"]).expect(0).stdout;
    let commit = version.trim().split_once(" (").unwrap().1.trim_end_matches(')');
    assert!(commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
}

/// What bash completes for each line, as it does after Tab: the script's own function fills `COMPREPLY`.
fn completed_by_bash(folder: &Path, lines: &[&str]) -> Vec<String> {
    let script = r#"
source <(h123 completions bash)
for line in "$@"; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMP_TYPE=9 COMPREPLY=()
    entry=$(complete -p h123); entry=${entry##*-F }
    "${entry%% *}" h123 "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo " ${COMPREPLY[*]} "
done"#;
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let _ = std::os::unix::fs::symlink(H123, bin.join("h123"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).args(lines).current_dir(folder).env("PATH", path);
    let ended = Ended::of(bash.output().unwrap()).expect(0);
    assert_eq!(ended.stderr, "");
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_names() {
    let place = folder();
    for file in ["studies/shop.toml", "networks/office.toml", "other.toml", "notes.txt"] {
        let path = place.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let cases = [
        ("h123 comp", &["compare", "completions"][..], &["run"][..]),
        ("h123 load --requests-per", &["--requests-per-connection"], &[]),
        ("h123 run ", &["quick", "shop", "other.toml", "studies/"], &["notes.txt", "dsl"]),
        ("h123 plan q", &["quick"], &["servers"]),
        ("h123 run quick --network ", &["north-carolina", "office"], &["shop", "nginx"]),
        ("h123 plan quick --server n", &["nginx", "nghttpd"], &["caddy"]),
        ("h123 run quick --client w", &["wrk"], &["curl"]),
        ("h123 run quick --topology ", &["proxied"], &["dsl"]),
        ("h123 load --variant ", &["h2c"], &[]),
        ("h123 lab ", &["north-carolina", "proxied", "direct", "office"], &["quick"]),
        ("h123 lab dsl --serve a", &["apache"], &["nginx"]),
        ("h123 servers show ca", &["caddy"], &["nginx"]),
        ("h123 show sm", &["small"], &["large"]),
        ("h123 list ", &["network", "replay"], &["dsl"]),
    ];
    let completed = completed_by_bash(place.path(), &cases.map(|(line, ..)| line));
    assert_eq!(completed.len(), cases.len(), "{completed:#?}");
    for ((line, found, absent), completed) in cases.iter().zip(&completed) {
        let words: Vec<&str> = completed.split(['\u{b}', ' ']).filter(|word| !word.is_empty()).collect();
        let has = |word: &&&str| words.contains(*word);
        assert!(found.iter().all(|word| has(&word)), "`{line}` lacks one of {found:?}: {words:?}");
        assert!(!absent.iter().any(|word| has(&word)), "`{line}` has one of {absent:?}: {words:?}");
    }
}

#[test]
fn other_shells_have_a_script_that_asks_h123() {
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = h123(["completions", shell]).expect(0).stdout;
        assert!(script.contains("H123_COMPLETE") && script.contains("h123"), "{shell}: {script}");
    }
}
