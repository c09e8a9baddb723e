//! `h123 players`: the players that browsers play videos with; installs them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use drive::browsers::players;
use model::player::PlayerLibrary;

use crate::exit::Exit;
use crate::terminal::{note, print, table};

/// List the players that browsers play videos with: hls.js and dash.js; install them
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 players
  h123 players install

A study's workload of kind `player` names one with the key `player`; docs/browsers.md describes it.")]
pub(crate) struct PlayersArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Fetch the pinned versions of hls.js and dash.js with npm, which checks their hashes
    ///
    /// npm fetches about 50 MB, and 2 MB stay.
    Install(InstallArgs),
}

#[derive(Args, Debug)]
struct InstallArgs {
    /// Install to this folder [default: $H123_PLAYERS, or h123/players in the user's cache]
    ///
    /// Example: --folder /opt/h123-players
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// npm cannot fetch the players.
pub(crate) fn run(args: &PlayersArgs) -> Result<Exit> {
    if let Some(Action::Install(args)) = &args.action {
        let folder = args.folder.clone().or_else(players::folder);
        let folder = folder.context("there is no home folder; name a folder with --folder")?;
        players::install(&folder)?;
        note(false, &format!("installed in {}", folder.display()));
        return Ok(Exit::Done);
    }
    let mut rows = table(&["player", "name in studies", "version", "plays", "file"]);
    for library in PlayerLibrary::ALL {
        let file = players::find(library).map_or_else(
            |_| "not installed; run `h123 players install`".to_owned(),
            |file| file.display().to_string(),
        );
        let plays = match library {
            PlayerLibrary::HlsJs => "HLS",
            PlayerLibrary::DashJs => "DASH",
        };
        rows.add_row(vec![
            library.title().to_owned(),
            library.name().to_owned(),
            players::version(library),
            plays.to_owned(),
            file,
        ]);
    }
    print(&rows.to_string())?;
    Ok(Exit::Done)
}
