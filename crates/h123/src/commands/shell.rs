//! `h123 completions` and `h123 man`: what shells and man(1) read, made from the options' declarations.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Exit;

const NAME: &str = "h123";

/// Print a script that completes commands and options in a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 completions bash > h123.bash
  h123 completions zsh > _h123
  h123 completions fish > h123.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    ///
    /// Example: bash
    shell: Shell,
}

/// Write a man page for each command
#[derive(Args, Debug)]
#[command(after_help = "Example:
  h123 man man1")]
pub(crate) struct ManArgs {
    /// The folder, which is created
    ///
    /// Example: /usr/local/share/man/man1
    folder: PathBuf,
}

/// Prints the script.
///
/// # Errors
/// None; a closed pipe is ignored.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut script);
    // A closed pipe (`| head`) is not an error.
    let _ = std::io::Write::write_all(&mut stdout().lock(), &script);
    Ok(Exit::Done)
}

/// Writes the pages.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<Exit> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write man pages to {}", folder.display()))?;
    Ok(Exit::Done)
}
