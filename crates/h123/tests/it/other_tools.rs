//! The page for users of other tools: every command that it gives them works.

use std::fs;
use std::process::Command;

use crate::generator::Serving;
use crate::tool::{Ended, H123, folder, machine, repository};

/// Files that the commands read, with an URL of the origin in place of `URL`.
const FILES: [(&str, &str); 4] = [
    ("script.tsv", "0\tURL\n5\tURL\n"),
    ("urls.txt", "URL\nURL\n"),
    ("body.bin", "0123456789"),
    ("body.json", "{\"a\": 1}\n"),
];

/// The commands in the right column of the tables of the section.
fn commands(page: &str) -> Vec<String> {
    let (_, section) = page.split_once("## If you know another tool").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let commands = section.lines().filter_map(|line| line.split_once("`h123 ")?.1.split_once('`'));
    commands.map(|(command, _)| command.to_owned()).collect()
}

/// Words as a shell splits them: at blanks, but not within single quotes.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('\'').enumerate();
    let blank =
        |(index, part): (usize, &str)| if index % 2 == 0 { part.replace(' ', "\n") } else { part.into() };
    quoted.map(blank).collect::<String>().lines().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The command with the origin's addresses, and with times and numbers that a test can wait for.
fn shortened(serving: &Serving, mut words: Vec<String>) -> Vec<String> {
    let variant = words.iter().position(|word| word == "--variant").map(|at| words[at + 1].clone());
    let offset = match variant.as_deref() {
        Some("h2c") => 2,
        Some("h2") => 3,
        Some("h3") => 4,
        _ => 0,
    };
    let is_upload = words.iter().any(|word| word == "--data");
    let authority = format!("127.0.0.1:{}", serving.port + offset);
    for word in &mut words {
        *word = match word.as_str() {
            "URL" => serving.url(offset, if is_upload { "/echo" } else { "/bytes/128" }),
            "30s" | "10s" | "5s" | "1min" => "300ms".into(),
            "1s" | "0s-2s" => "10ms".into(),
            "100000" | "10000" => "500".into(),
            "10s@100,10s@100-2000" => "100ms@100,200ms@100-2000".into(),
            "1000" | "2500" => "200".into(),
            // The origin takes bodies by this method alone.
            "PUT" => "POST".into(),
            "ca.pem" => serving.ca(),
            other => other
                .replace("HOST/bytes", &format!("{authority}/bytes"))
                .replace("HOST/", &format!("{authority}/bytes/128")),
        };
    }
    if offset > 2 && !words.iter().any(|word| word == "--cacert") {
        words.extend(["--cacert".into(), serving.ca()]);
    }
    words
}

#[test]
fn the_commands_of_the_page_on_other_tools_work() {
    let _machine = machine();
    let (serving, place) = (Serving::start(), folder());
    for (name, content) in FILES {
        let content = content.replace("URL", &serving.url(0, "/bytes/128"));
        fs::write(place.path().join(name), content).unwrap();
    }
    let commands = commands(&fs::read_to_string(repository().join("docs/load.md")).unwrap());
    assert!(commands.len() > 40, "found {} commands only", commands.len());
    for command in commands {
        let words = shortened(&serving, words(&command));
        let output =
            Command::new(H123).args(&words).arg("--quiet").current_dir(place.path()).output().unwrap();
        let ended = Ended::of(output);
        // A busy machine may be too slow for a threshold, which then speaks.
        let is_kept = ended.code == 0 || (ended.code == 4 && command.contains("--fail-if"));
        assert!(is_kept, "h123 {command}\n{words:?}: {}\n{}{}", ended.code, ended.stdout, ended.stderr);
    }
}

#[test]
fn words_are_split_as_a_shell_does() {
    assert_eq!(words("load 'a b' -c 1  -H 'N: v'"), ["load", "a b", "-c", "1", "-H", "N: v"]);
    let page = "x\n## If you know another tool\n| `ab -k` | `h123 load URL` (so) |\n## Next\n`h123 run`";
    assert_eq!(commands(page), ["load URL"]);
}
