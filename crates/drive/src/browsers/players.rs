//! Players that run in pages of browsers: libraries from npm, and the pages in which they play.
//!
//! The versions and their integrity hashes are those of `scripts/abr-decisions`, with whose tables h123's own
//! rules are compared; npm checks the hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use model::player::{Player, PlayerLibrary};
use serde_json::Value;

use crate::installed;

/// The environment variable with the folder of installed players.
pub const FOLDER_VARIABLE: &str = "H123_PLAYERS";
/// Where servers have the page of a player and its script.
pub(super) const FOLDER: &str = "/h123-player/";

const PACKAGE: &str = include_str!("../../../../scripts/abr-decisions/package.json");
const LOCK: &str = include_str!("../../../../scripts/abr-decisions/package-lock.json");
const PAGE: &str = include_str!("players/page.html");
const PLAYBACK: &str = include_str!("players/playback.js");
/// How much of npm's words an error repeats.
const MOST_WORDS: usize = 400;

/// A package of npm.
struct Package {
    name: &'static str,
    /// The library for pages, complete in one file.
    file: &'static str,
    adapter: &'static str,
}

const fn package(library: PlayerLibrary) -> Package {
    match library {
        PlayerLibrary::HlsJs => {
            Package { name: "hls.js", file: "dist/hls.min.js", adapter: include_str!("players/hlsjs.js") }
        }
        PlayerLibrary::DashJs => Package {
            name: "dashjs",
            file: "dist/modern/umd/dash.all.min.js",
            adapter: include_str!("players/dashjs.js"),
        },
    }
}

/// The folder of installed players, whether or not it exists: `$H123_PLAYERS`, or `h123/players` in the
/// user's cache. `None` where the user has no home.
pub fn folder() -> Option<PathBuf> {
    installed::variable(FOLDER_VARIABLE).or_else(|| Some(installed::cache()?.join("h123/players")))
}

/// The version of a player that this h123 uses; empty if the lock file does not name it.
pub fn version(library: PlayerLibrary) -> String {
    let lock: Value = serde_json::from_str(LOCK).unwrap_or_default();
    let name = format!("node_modules/{}", package(library).name);
    lock["packages"][name]["version"].as_str().unwrap_or_default().to_owned()
}

/// The file of an installed player.
///
/// # Errors
/// It is not installed, with the command that installs it.
pub fn find(library: PlayerLibrary) -> Result<PathBuf> {
    let file = folder().map(|folder| folder.join(script_name(library))).filter(|file| file.is_file());
    file.with_context(|| {
        format!("{} {} is not installed; run `h123 players install`", library.title(), version(library))
    })
}

/// Fetches the players with npm into a folder; players that it contains are replaced.
///
/// # Errors
/// npm is missing, cannot reach the registry, or finds another hash; or a file cannot be written.
pub fn install(folder: &Path) -> Result<()> {
    let work = tempfile::tempdir().context("cannot create a temporary folder")?;
    let write = |name: &str, text: &str| fs::write(work.path().join(name), text);
    write("package.json", PACKAGE)
        .and_then(|()| write("package-lock.json", LOCK))
        .context("cannot write to a temporary folder")?;
    let args =
        ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
    let ended = Command::new("npm").args(args).current_dir(work.path()).output();
    let ended = ended.context("cannot start npm, which fetches the players; install Node.js with npm")?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr);
        let words: String =
            words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_WORDS).collect();
        bail!("npm cannot fetch the players ({}): {words}", ended.status);
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for library in PlayerLibrary::ALL {
        let Package { name, file, .. } = package(library);
        let from = work.path().join("node_modules").join(name).join(file);
        let (to, new) = (folder.join(script_name(library)), folder.join(format!("{name}.new")));
        fs::copy(&from, &new)
            .and_then(|_| fs::rename(&new, &to))
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// Writes the page of a player and its script below a folder that servers serve.
///
/// # Errors
/// The player is not installed, or a file cannot be written.
pub fn write_page(content: &Path, library: PlayerLibrary) -> Result<()> {
    let installed = find(library)?;
    let folder = content.join(FOLDER.trim_matches('/'));
    let script = script_name(library);
    let page = page(library, &script);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(&installed, folder.join(&script)))
        .and_then(|_| fs::write(folder.join(page_name(library)), page))
        .with_context(|| format!("cannot write to {}", folder.display()))
}

/// Why a browser cannot play a workload's video, if it cannot.
pub(super) fn refuses(browser: &str, player: &Player) -> Option<String> {
    let Some(play) = &player.browser else {
        return Some(format!(
            "{browser} plays videos with hls.js or dash.js: the workload needs `media` of a `folder` that has their \
             manifest, or a live `manifest`; and `player`, or a rule of theirs"
        ));
    };
    let title = play.library.title();
    if player.cmcd.is_some() {
        return Some(format!("{browser} sends no CMCD keys; remove `cmcd`"));
    }
    if player.sets_thresholds() {
        return Some(format!(
            "{title} decides when playback begins and resumes; remove `startup` and `rebuffer`"
        ));
    }
    player.presentation.segments().any(|segment| segment.range.is_some()).then(|| {
        format!("{browser} plays segments that are files, and those of the workload are parts of files")
    })
}

/// The path of a player's page.
pub(super) fn page_path(library: PlayerLibrary) -> String {
    format!("{FOLDER}{}", page_name(library))
}

fn page_name(library: PlayerLibrary) -> String {
    format!("{}.html", library.name())
}

fn script_name(library: PlayerLibrary) -> String {
    format!("{}-{}.min.js", package(library).name, version(library))
}

fn page(library: PlayerLibrary, script: &str) -> String {
    let code = format!("{PLAYBACK}\n{}", package(library).adapter);
    PAGE.replace("TITLE", library.title()).replace("LIBRARY", script).replace("SCRIPT", code.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_player_names_its_pinned_script() {
        for library in PlayerLibrary::ALL {
            let script = script_name(library);
            let page = page(library, &script);
            assert!(page.contains(&format!("<script src=\"{script}\"></script>")), "{page}");
            assert!(page.contains("function attach(") && page.contains("function play("), "{page}");
            assert_eq!(version(library).split('.').count(), 3);
            let lock: Value = serde_json::from_str(LOCK).unwrap();
            let of = &lock["packages"][format!("node_modules/{}", package(library).name)];
            assert!(of["integrity"].as_str().unwrap().starts_with("sha512-"), "{of}");
        }
    }
}
