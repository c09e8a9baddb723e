//! Rebuilds the binary when one of the data files that it contains changes, and sets `H123_VERSION`: the
//! version with the commit that the binary is built from.

use std::process::Command;

fn main() {
    for folder in ["studies", "networks", "topologies", "pages", "replays"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let version = env!("CARGO_PKG_VERSION");
    // Sources outside a repository, such as an archive, have no commit.
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let text = commit.map_or(version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=H123_VERSION={text}");
    // Each commit appends a line to this log.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}
