//! `h123 servers`: the servers found, with version, variants and where they come from.

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use drive::{Servers, Support};

use crate::exit::Exit;
use crate::terminal::print;

/// List the servers that studies may name: version, variants, where the program is
#[derive(Args, Debug)]
pub(crate) struct ServersArgs {}

/// Runs the command.
///
/// # Errors
/// An adapter that cannot be read.
pub(crate) fn run(_args: &ServersArgs) -> Result<Exit> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["server", "version", "variants", "program"]);
    let mut reasons = Vec::new();
    for name in Servers::names() {
        let adapter = Servers::find(&name)?;
        match adapter.probe(&program) {
            Ok(found) => {
                let mut variants = Vec::new();
                for described in &adapter.variants {
                    match found.support(described.variant) {
                        Support::Supported => variants.push(described.variant.name()),
                        Support::Unsupported(reason) => reasons.push(format!("{name}: {reason}")),
                    }
                }
                let program = found.program.display().to_string();
                table.add_row([name, found.version.clone(), variants.join(" "), program]);
            }
            Err(error) => {
                table.add_row([name.clone(), "not found".to_owned(), String::new(), String::new()]);
                reasons.push(format!("{name}: {error:#}"));
            }
        }
    }
    print(&table.to_string())?;
    for reason in reasons {
        print(&reason)?;
    }
    Ok(Exit::Done)
}
