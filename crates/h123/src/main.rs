//! h123: a laboratory for HTTP/1.1, HTTP/2 and HTTP/3.

#![expect(rustdoc::bare_urls, reason = "clap prints doc comments as help")]

mod commands;
mod connect;
#[cfg(test)]
mod docs;
mod exit;
mod library;
mod name_service;
mod server_choice;
mod study;
mod terminal;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use clap::{CommandFactory, Parser, Subcommand};
use model::clean::clean;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Exit;

/// Which HTTP version is better for this content, on this server, over this network, under this load?
#[derive(Parser, Debug)]
#[command(version = env!("H123_VERSION"), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(commands::run::RunArgs),
    Page(commands::page::PageArgs),
    Plan(commands::plan::PlanArgs),
    Load(Box<commands::load::LoadArgs>),
    Trace(commands::trace::TraceArgs),
    PageModel(commands::page_model::PageModelArgs),
    Urls(commands::urls::UrlsArgs),
    Record(commands::record::RecordArgs),
    Lab(Box<commands::lab::LabArgs>),
    Serve(commands::serve::ServeArgs),
    Content(commands::content::ContentArgs),
    Report(commands::report::ReportArgs),
    Compare(commands::compare::CompareArgs),
    Servers(commands::servers::ServersArgs),
    Players(commands::players::PlayersArgs),
    Doctor(commands::doctor::DoctorArgs),
    List(commands::files::ListArgs),
    Show(commands::files::ShowArgs),
    New(commands::files::NewArgs),
    Schema(commands::schema::SchemaArgs),
    Completions(commands::shell::CompletionsArgs),
    Man(commands::shell::ManArgs),
    #[command(hide = true)]
    Names(name_service::NamesArgs),
}

fn main() -> ExitCode {
    commands::shell::complete(Cli::command);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are no errors; clap knows which stream each belongs to.
        Err(error) if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() });
        }
        Err(error) => {
            let given = subcommand(&Cli::command(), std::env::args().skip(1));
            let hint = commands::lab::hint(&error, given.as_deref());
            let args: Vec<_> = std::env::args_os().collect();
            let requirement = exit::requirement(&error, &args, |args| Cli::try_parse_from(args).map(drop));
            let text = requirement.unwrap_or_else(|| error.to_string());
            let text = exit::one_line(&text, given.as_deref());
            print_error(&format!("{text}{hint}"));
            return ExitCode::from(Exit::Usage.code());
        }
    };
    match dispatch(&cli.command) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            let excerpt = library::excerpt(&error).map_or(String::new(), |excerpt| format!("\n{excerpt}"));
            print_error(&format!("{error:#}{excerpt}"));
            ExitCode::from(exit::of_error(&error).code())
        }
    }
}

/// Prints why h123 ends. Errors have no colours, so an escape sequence is from a file or an argument.
fn print_error(text: &str) {
    terminal::note(false, &clean(&format!("h123: {text}")));
}

/// The subcommand on a command line, with its own subcommand such as `content make`, where it has one.
fn subcommand(of: &clap::Command, mut args: impl Iterator<Item = String>) -> Option<String> {
    let command = of.find_subcommand(args.next()?)?;
    let name = command.get_name().to_owned();
    Some(match subcommand(command, args) {
        Some(inner) => format!("{name} {inner}"),
        None => name,
    })
}

fn dispatch(command: &Command) -> Result<Exit> {
    match command {
        Command::Run(args) => commands::run::run(args, &watch_signals()?),
        Command::Page(args) => commands::page::run(args, &watch_signals()?),
        Command::Load(args) => commands::load::run(args, &watch_signals()?),
        Command::Trace(args) => commands::trace::run(args, &watch_signals()?),
        Command::PageModel(args) => commands::page_model::run(args, watch_signals),
        Command::Urls(args) => commands::urls::run(args),
        Command::Record(args) => commands::record::run(args, watch_signals),
        Command::Serve(args) => commands::serve::run(args, &watch_signals()?),
        Command::Content(args) => commands::content::run(args, watch_signals()?.as_ref()),
        Command::Lab(args) => commands::lab::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Servers(args) => commands::servers::run(args),
        Command::Players(args) => commands::players::run(args),
        Command::Names(args) => name_service::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::List(args) => commands::files::list(args),
        Command::Show(args) => commands::files::show(args),
        Command::New(args) => commands::files::create(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Completions(args) => commands::shell::completions(args),
        Command::Man(args) => commands::shell::man(args, Cli::command()),
    }
}

/// A flag that Ctrl-C and SIGTERM set, for commands that look at it; all others end at once.
fn watch_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let context = "cannot watch for signals";
    // A second Ctrl-C ends the tool at once: the kernel takes the lab down with it. A second SIGTERM does
    // not, because timeout(1) sends it to the tool and then to its process group.
    let status = i32::from(Exit::Interrupted.code());
    signal_hook::flag::register_conditional_shutdown(SIGINT, status, stop.clone()).context(context)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context(context)?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_to_the_help_of_the_inner_subcommand() {
        let given = |words: &[&str]| subcommand(&Cli::command(), words.iter().map(|word| (*word).to_owned()));
        assert_eq!(given(&["content", "make", "x", "--segment"]).as_deref(), Some("content make"));
        assert_eq!(given(&["run", "content", "make"]).as_deref(), Some("run"));
        assert_eq!(given(&["--version"]), None);
    }
}
