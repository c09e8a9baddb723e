//! `h123 servers`: the servers and external clients found, with version, variants and where they come from; and newer ones.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use drive::installed::{self, Installation};
use drive::{Clients, Servers, Support};
use model::Variant;

use crate::exit::{Exit, UsageError};
use crate::terminal::{note, print};

/// List the servers, and the clients beside our own, that studies may name: version, TLS library, variants, program
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 servers
  h123 servers show nginx
  h123 servers install
  h123 servers install --mirror URL

Programs are looked for where `install` puts them, then in PATH.")]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// What a study may set of a server and, where it is a proxy, what it speaks to the server behind it
    Show(ShowArgs),
    /// Fetch newer servers than the system's into a folder of h123's own: nginx, HAProxy and Caddy with HTTP/3, Apache,
    /// lighttpd, the tools of nghttp2, curl, wrk and siege
    ///
    /// They come from Debian's unstable suite by apt, which needs no root and changes nothing of the system; about 300 MB.
    Install(InstallArgs),
}

#[derive(Args, Debug)]
struct ShowArgs {
    /// A server of `h123 servers`
    name: String,
}

#[derive(Args, Debug)]
struct InstallArgs {
    /// Where they go; replaced as a whole (default: $H123_SERVERS, or h123/servers in the user's cache)
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The mirror of Debian to fetch from (default: that of the machine's own apt configuration)
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// An adapter that cannot be read; servers that cannot be had.
pub(crate) fn run(args: &ServersArgs) -> Result<Exit> {
    match &args.action {
        None => list(),
        Some(Action::Show(args)) => show(&args.name),
        Some(Action::Install(args)) => install(args),
    }
}

fn show(name: &str) -> Result<Exit> {
    let adapter = Servers::find(name).map_err(|error| UsageError(error.to_string()))?;
    let facts = adapter.facts();
    let names = |variants: &[Variant]| variants.iter().map(|v| v.name()).collect::<Vec<_>>().join(" ");
    print(&format!("{}, servers/{name}/server.toml", adapter.title))?;
    print(&format!("  to clients         {}", names(&facts.variants)))?;
    if !facts.back_variants.is_empty() {
        let needed = if facts.needs_back { ", which it needs" } else { ", where a study puts one there" };
        print(&format!("  to a server behind {}{needed}", names(&facts.back_variants)))?;
    }
    if facts.tunables.is_empty() {
        return print("A study may set nothing of it.").map(|()| Exit::Done);
    }
    print("A study may set, as in `set = { … }`:")?;
    for tunable in &facts.tunables {
        let otherwise = tunable.default.as_ref().map(|default| format!(" = {}", tunable.describe(default)));
        print(&format!("  {}{}", tunable.name, otherwise.unwrap_or_default()))?;
        print(&format!("      {}: {}", tunable.meaning, tunable.kind))?;
    }
    Ok(Exit::Done)
}

fn list() -> Result<Exit> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["server", "version", "TLS", "variants", "program"]);
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
                let tls = found.tls.unwrap_or_default();
                table.add_row([name, found.version, tls, variants.join(" "), program]);
            }
            Err(error) => {
                table.add_row([name.as_str(), "not found"]);
                reasons.push(format!("{name}: {error:#}"));
            }
        }
    }
    print(&table.to_string())?;
    print(&list_clients(&program, &mut reasons)?.to_string())?;
    for reason in reasons {
        print(&reason)?;
    }
    Ok(Exit::Done)
}

/// The external clients; reasons of what is missing are added.
fn list_clients(tool: &Path, reasons: &mut Vec<String>) -> Result<Table> {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["client", "version", "variants", "program"]);
    for name in Clients::names() {
        let client = Clients::find(&name)?;
        match client.probe(tool) {
            Ok(found) => {
                let mut variants = Vec::new();
                for (variant, support) in found.variants {
                    match support {
                        Support::Supported => variants.push(variant.name()),
                        Support::Unsupported(reason) => reasons.push(reason),
                    }
                }
                let program = found.program.display().to_string();
                table.add_row([name, found.version, variants.join(" "), program]);
            }
            Err(error) => {
                table.add_row([name.as_str(), "not found"]);
                reasons.push(format!("{name}: {error:#}"));
            }
        }
    }
    Ok(table)
}

fn install(args: &InstallArgs) -> Result<Exit> {
    let folder =
        args.folder.clone().or_else(installed::folder).ok_or_else(|| {
            UsageError("found no home folder of this user, expected --folder DIR".to_owned())
        })?;
    // What is replaced as a whole must be ours.
    let is_external = folder.exists() && !folder.join("bin").is_dir() && !is_empty(&folder);
    if is_external {
        let shown = folder.display();
        return Err(UsageError(format!(
            "found {shown} with something else in it, expected a folder of installed servers, an empty one or a new name"
        ))
        .into());
    }
    let installation = Installation { folder, mirror: args.mirror.clone() };
    installation.run(&|step| note(false, step))?;
    let shown = installation.folder.display();
    note(false, &format!("installed in {shown}; its programs can be called by hand as well, in {shown}/bin"));
    if args.folder.is_some() {
        note(false, &format!("for h123 to find them: export {}={shown}", installed::FOLDER_VARIABLE));
        return Ok(Exit::Done);
    }
    list()
}

fn is_empty(folder: &std::path::Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
