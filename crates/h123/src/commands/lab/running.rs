//! Running labs and the remains of killed ones: `--list`, `--clean`, and `--enter`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use lab::registry::{self, LabEntry};
use lab::{Input, Lab, Node};
use serde::{Deserialize, Serialize};

use super::{LabArgs, command};
use crate::exit::{Exit, UsageError};
use crate::terminal::print;

/// The file that describes a lab to other processes.
const FILE: &str = "lab.json";

/// What another process needs to run commands in a lab.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    /// The process 1 of every node.
    nodes: BTreeMap<String, i32>,
    /// Variables of every command.
    environment: Vec<(String, String)>,
}

/// Describes a lab in its folder.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn describe(lab: &Lab, folder: &Path, environment: &[(OsString, OsString)]) -> Result<()> {
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    let description = Description {
        nodes: lab.nodes().filter_map(|node| Some((node.name().to_owned(), node.init()?))).collect(),
        environment: environment.iter().map(|(name, value)| (text(name), text(value))).collect(),
    };
    let file = folder.join(FILE);
    std::fs::write(&file, serde_json::to_string(&description)?)
        .with_context(|| format!("cannot write {}", file.display()))
}

/// The running lab of this name or process ID.
///
/// # Errors
/// There is none, or there are several of this name.
pub(crate) fn find(option: &str, name: &str) -> Result<LabEntry> {
    let running: Vec<LabEntry> = registry::list()?.into_iter().filter(|lab| lab.is_running).collect();
    let by_pid = running.iter().filter(|lab| lab.pid.to_string() == name);
    let found: Vec<&LabEntry> = by_pid.chain(running.iter().filter(|lab| lab.what == name)).collect();
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] if running.is_empty() => {
            Err(UsageError(format!("{option}: no lab runs; start one with `h123 lab`")).into())
        }
        [] => {
            let names: Vec<&str> = running.iter().map(|lab| lab.what.as_str()).collect();
            Err(UsageError(format!("{option}: {}", model::named::unknown(name, "a running lab", &names)))
                .into())
        }
        several => {
            let pids: Vec<String> = several.iter().map(|lab| lab.pid.to_string()).collect();
            let (count, pids) = (pids.len(), pids.join(", "));
            let problem =
                format!("{option}: {count} labs have the name `{name}`; name the process instead: {pids}");
            Err(UsageError(problem).into())
        }
    }
}

/// Runs a command, or a shell, in a node of a running lab.
///
/// # Errors
/// There is no such lab or node, or it ended meanwhile.
pub(crate) fn enter(args: &LabArgs, lab: &LabEntry, node: Option<&String>) -> Result<Exit> {
    let file = lab.folder.join(FILE);
    let context = || format!("cannot read {} (the lab may be starting or ending)", file.display());
    let text = std::fs::read_to_string(&file).with_context(context)?;
    let description: Description = serde_json::from_str(&text).with_context(context)?;
    let known: Vec<&str> = description.nodes.keys().map(String::as_str).collect();
    let name = node.map_or_else(|| super::default_node(&known), String::as_str);
    super::check_node(name, &known)?;
    let init = description.nodes.get(name).context("the lab has no such node")?;
    let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "sh".into());
    let words = if args.command.is_empty() { vec![shell()] } else { args.command.clone() };
    let node = Node::join(name, *init)?;
    let environment = description.environment.into_iter().map(|(name, value)| (name.into(), value.into()));
    let mut program = command::program(&words, args.as_user);
    program = program.stdin(Input::Inherit);
    program.is_foreground = true;
    program.env = environment.chain([("H123_NODE".into(), name.into())]).collect();
    command::run(&node, program)
}

/// Prints every lab of this user.
pub(crate) fn list() -> Result<Exit> {
    let labs = registry::list()?;
    if labs.is_empty() {
        print("no lab runs, and killed labs left nothing")?;
    }
    for lab in &labs {
        let state = if lab.is_running {
            format!("running for {}", ago(lab))
        } else {
            "killed; `h123 lab --clean` or the next lab removes its files".to_owned()
        };
        print(&format!("{:>7}  {}  {state}  {}", lab.pid, lab.what, lab.folder.display()))?;
    }
    Ok(Exit::Done)
}

/// Removes the remains of killed labs, and the profiles of browsers whose h123 was killed.
pub(crate) fn clean() -> Result<Exit> {
    drive::browsers::clean();
    let left = registry::clean()?;
    if left.is_empty() {
        print("killed labs left nothing")?;
    }
    for lab in &left {
        print(&format!(
            "removed {}, which the lab {} of process {} left",
            lab.folder.display(),
            lab.what,
            lab.pid
        ))?;
    }
    Ok(Exit::Done)
}

fn ago(lab: &LabEntry) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs().saturating_sub(lab.began.as_secs());
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
