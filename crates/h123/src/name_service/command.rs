//! `h123 names`: the lab's name server as a process of its own; the lab starts it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::exit::Exit;
use crate::terminal::print;

/// What it says when it listens.
pub(crate) const READY: &str = "ready";

/// Serve the names of a lab, as the lab starts it
#[derive(Args, Debug)]
pub(crate) struct NamesArgs {
    /// The file that says where to listen and whom to know
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs the command until it is killed.
///
/// # Errors
/// The file is wrong, or an address cannot be listened at.
pub(crate) fn run(args: &NamesArgs) -> Result<Exit> {
    let shown = args.config.display();
    let text = std::fs::read(&args.config).with_context(|| format!("cannot read {shown}"))?;
    let config = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not a name server's configuration"))?;
    names::serve(&config, || {
        // Whoever waited for it may be gone, and the lab with it.
        let _ = print(READY);
    })?;
    Ok(Exit::Done)
}
