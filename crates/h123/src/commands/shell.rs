//! `h123 completions` and `h123 man`: what shells and man(1) read, made from the options' declarations.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use model::Variant;
use model::plan::DIRECT;
use model::study::Library;

use crate::exit::Exit;
use crate::library::{DataFiles, Kind};

const NAME: &str = "h123";
/// The environment variable with which a shell's script asks this program for completions.
const VARIABLE: &str = "H123_COMPLETE";

/// Print a script that completes commands, options and names in a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 completions bash > h123.bash
  h123 completions zsh > _h123
  h123 completions fish > h123.fish

The script calls h123, so that names of files in the current folder are completed, too.")]
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
/// The shell has no completions. A closed pipe is ignored.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&shell).with_context(|| format!("there are no completions for {shell}"))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    // A closed pipe (`| head`) is not an error.
    let _ = std::io::Write::write_all(&mut stdout().lock(), &script);
    Ok(Exit::Done)
}

/// Answers a shell that asks for completions, and ends the process; otherwise does nothing.
pub(crate) fn complete(command: fn() -> Command) {
    CompleteEnv::with_factory(|| with_names(command())).var(VARIABLE).complete();
}

/// Reads names.
type Names = fn() -> Vec<String>;

/// Arguments whose values are names: the commands, the argument, and the names.
const NAMES: &[(&[&str], &str, Names)] = &[
    (&["run", "plan"], "server", || Kind::Server.names()),
    (&["run", "plan"], "client", || DataFiles::default().clients()),
    (&["run", "plan"], "variant", variants),
    (&["run", "plan", "page"], "network", || Kind::Network.names()),
    (&["run", "plan"], "topology", || Kind::Topology.names()),
    (&["run", "plan"], "accept", || DataFiles::default().checks()),
    (&["page", "page-model", "record"], "browser", drive::Browsers::names),
    (&["load", "trace", "page"], "variant", variants),
    (&["lab"], "name", topologies),
    (&["lab"], "network", || Kind::Network.names()),
    (&["lab"], "serve", || Kind::Server.names()),
    (&["show"], "name", all),
    (&["new"], "from", all),
];

fn variants() -> Vec<String> {
    Variant::ALL.iter().map(|variant| variant.name().to_owned()).collect()
}

fn topologies() -> Vec<String> {
    let named = Kind::Topology.names().into_iter().chain(Kind::Network.names());
    named.chain([DIRECT.to_owned()]).collect()
}

fn all() -> Vec<String> {
    Kind::ALL.into_iter().flat_map(Kind::names).collect()
}

/// Completes the values of arguments that are names.
fn with_names(command: Command) -> Command {
    // `mut_arg` would move an argument to the end, which changes the order of those without names.
    let add = |command: Command, name: &str, id: &str, names: Names| {
        let names = ArgValueCandidates::new(move || candidates(names()));
        let add = |arg: Arg| if arg.get_id() == id { arg.add(names.clone()) } else { arg };
        command.mut_subcommand(name, |own| own.mut_args(add))
    };
    let mut command =
        command.mut_subcommand("servers", |own| add(own, "show", "name", || Kind::Server.names()));
    for (subcommands, id, names) in NAMES {
        command = subcommands.iter().fold(command, |command, name| add(command, name, id, *names));
    }
    let study = |arg: Arg| match arg.get_id() == "study" {
        true => arg.add(ArgValueCompleter::new(complete_study)),
        false => arg,
    };
    ["run", "plan"]
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |own| own.mut_args(study)))
}

fn candidates(names: Vec<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// A study: a name, or the path of a `.toml` file.
fn complete_study(current: &std::ffi::OsStr) -> Vec<CompletionCandidate> {
    let begin = current.to_string_lossy();
    let mut names = Kind::Study.names();
    names.retain(|name| name.starts_with(begin.as_ref()));
    let files = PathCompleter::any().filter(|path| path.extension().is_some_and(|end| end == "toml"));
    candidates(names).into_iter().chain(files.complete(current)).collect()
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_that_complete_names_exist() {
        let command = crate::Cli::command();
        for (subcommands, id, names) in NAMES {
            assert!(!names().is_empty(), "{id}");
            for name in *subcommands {
                let own = command.find_subcommand(name).unwrap();
                assert!(own.get_arguments().any(|arg| arg.get_id() == id), "{name} has no {id}");
            }
        }
        with_names(command).debug_assert();
    }
}
