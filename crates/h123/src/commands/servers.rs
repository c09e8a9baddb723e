//! `h123 servers`: the installed servers and external clients with versions and variants; installs newer
//! ones.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use drive::installed::{self, Installation};
use drive::{ExternalClient, Servers, Support};
use model::Variant;

use crate::exit::{Exit, UsageError};
use crate::terminal::{note, print, table};

/// List the servers and external clients that studies can use: version, TLS library, variants, program
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 servers
  h123 servers show nginx
  h123 servers install
  h123 servers install --mirror URL

h123 looks for programs in the folder of `install`, then in PATH.")]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Show the settings of a server and, for a proxy, the variants that it speaks to the server behind it
    Show(ShowArgs),
    /// Install newer servers than the system's into a separate folder: nginx, HAProxy and Caddy with HTTP/3,
    /// Apache, lighttpd, the tools of nghttp2, curl, wrk and siege
    ///
    /// apt fetches them from Debian's unstable suite, about 300 MB. This needs no root and does not change
    /// the system.
    Install(InstallArgs),
}

#[derive(Args, Debug)]
struct ShowArgs {
    /// A server of `h123 servers`
    ///
    /// Example: nginx
    name: String,
}

#[derive(Args, Debug)]
struct InstallArgs {
    /// Install to this folder and replace its contents
    /// [default: $H123_SERVERS, or h123/servers in the user's cache]
    ///
    /// Example: --folder /opt/h123-servers
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Fetch from this Debian mirror [default: the mirror in the machine's apt configuration]
    ///
    /// Example: --mirror file:///srv/debian
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A server's description cannot be read; servers cannot be installed.
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
        let needed = if facts.needs_back { " (required)" } else { " (optional)" };
        print(&format!("  to a server behind {}{needed}", names(&facts.back_variants)))?;
    }
    if facts.tunables.is_empty() {
        return print("A study can set nothing of it.").map(|()| Exit::Done);
    }
    print("A study can set, as in `set = { … }`:")?;
    for tunable in &facts.tunables {
        let otherwise = tunable.default.as_ref().map(|default| format!(" = {}", tunable.describe(default)));
        print(&format!("  {}{}", tunable.name, otherwise.unwrap_or_default()))?;
        print(&format!("      {}: {}", tunable.meaning, tunable.kind))?;
    }
    Ok(Exit::Done)
}

fn list() -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut reasons = Vec::new();
    let mut servers = table(&["server", "version", "TLS", "variants", "program"]);
    for name in Servers::names() {
        servers.add_row(match Servers::find(&name)?.probe(&program) {
            Ok(found) => {
                let variants = supported(found.variants, &format!("{name}: "), &mut reasons);
                let program = found.program.display().to_string();
                vec![name, found.version, found.tls.unwrap_or_default(), variants, program]
            }
            Err(error) => not_found(name, &error, &mut reasons),
        });
    }
    let mut clients = table(&["client", "version", "variants", "program"]);
    for name in ExternalClient::names() {
        clients.add_row(match ExternalClient::find(&name)?.probe(&program) {
            Ok(found) => {
                let variants = supported(found.variants, "", &mut reasons);
                vec![name, found.version, variants, found.program.display().to_string()]
            }
            Err(error) => not_found(name, &error, &mut reasons),
        });
    }
    for text in [servers.to_string(), clients.to_string()].into_iter().chain(reasons) {
        print(&text)?;
    }
    Ok(Exit::Done)
}

/// The names of the supported variants. The reasons for the others are added to `reasons`.
pub(crate) fn supported(
    variants: Vec<(Variant, Support)>,
    prefix: &str,
    reasons: &mut Vec<String>,
) -> String {
    let mut names = Vec::new();
    for (variant, support) in variants {
        match support {
            Support::Supported => names.push(variant.name()),
            Support::Unsupported(reason) => reasons.push(format!("{prefix}{reason}")),
        }
    }
    names.join(" ")
}

/// The row of a program that is not installed. The reason is added to `reasons`.
fn not_found(name: String, error: &anyhow::Error, reasons: &mut Vec<String>) -> Vec<String> {
    reasons.push(format!("{name}: {error:#}"));
    vec![name, "not found".to_owned()]
}

fn install(args: &InstallArgs) -> Result<Exit> {
    let folder = args.folder.clone().or_else(installed::folder).ok_or_else(|| {
        UsageError("this user has no home folder; name a folder with --folder DIR".to_owned())
    })?;
    // Only a folder of installed servers may be replaced.
    let is_external = folder.exists() && !folder.join("bin").is_dir() && !is_empty(&folder);
    if is_external {
        let shown = folder.display();
        return Err(UsageError(format!(
            "{shown} contains other files; name a folder of installed servers, an empty folder or a new one"
        ))
        .into());
    }
    let installation = Installation { folder, mirror: args.mirror.clone() };
    installation.run(&|step| note(false, step))?;
    let shown = installation.folder.display();
    note(false, &format!("installed in {shown}; the programs are in {shown}/bin"));
    if args.folder.is_some() {
        note(false, &format!("so that h123 finds them: export {}={shown}", installed::FOLDER_VARIABLE));
        return Ok(Exit::Done);
    }
    list()
}

fn is_empty(folder: &std::path::Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
