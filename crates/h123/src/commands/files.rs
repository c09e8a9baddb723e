//! `h123 list`, `show` and `new`: the data files that studies and labs name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use model::error::DataFile;
use model::named::unknown;

use crate::exit::{Exit, UsageError};
use crate::library::Kind;
use crate::terminal::{note, print, table};

/// List the studies, networks, pages, media, timing scripts, topologies and servers that commands can name
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 list
  h123 list network")]
pub(crate) struct ListArgs {
    /// Only this kind
    ///
    /// Example: network
    kind: Option<Kind>,
}

/// Print the file of a study, network, page, media, timing script, topology or server
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 show north-carolina
  h123 show servers/nginx")]
pub(crate) struct ShowArgs {
    /// A name of `h123 list`, with its folder if two kinds have the name
    ///
    /// Example: north-carolina
    name: String,
}

/// Copy a study, network, page, media, timing script, topology or server under a new name
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 new study shop
  h123 new network office --from dsl
  h123 new page front
  h123 new server mine --from nginx")]
pub(crate) struct NewArgs {
    /// The kind
    ///
    /// Example: network
    kind: Kind,
    /// The new name: letters, digits, `-` and `_`
    ///
    /// Example: office
    name: String,
    /// Copy this one [default: quick, dsl, small, clip, video, pair or nginx]
    ///
    /// Example: --from tokyo
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
}

/// Lists the names with their titles.
///
/// # Errors
/// A file cannot be read, or standard output cannot be written.
pub(crate) fn list(args: &ListArgs) -> Result<Exit> {
    for kind in Kind::ALL.into_iter().filter(|kind| args.kind.is_none_or(|only| only == *kind)) {
        let mut table = table(&[kind.folder(), "", "file"]);
        for name in kind.names() {
            let files = kind.files(&name).map_err(UsageError)?;
            let Some(main) = files.first() else { continue };
            let place = if Path::new(&main.file).exists() { main.file.as_str() } else { "built in" };
            table.add_row([name.as_str(), &title(kind, main), place]);
        }
        print(&format!("{}\n", table.trim_fmt()))?;
    }
    Ok(Exit::Done)
}

/// The title of a file, or the question of a study.
fn title(kind: Kind, file: &DataFile) -> String {
    if kind == Kind::Replay {
        // The header is a line; a script may be long.
        let header = file.text.lines().next().map(serde_json::from_str::<serde_json::Value>);
        let title = header.and_then(Result::ok).and_then(|header| Some(header["title"].as_str()?.to_owned()));
        return title.unwrap_or_default();
    }
    let values = file.text.lines().filter_map(|line| line.split_once(" = \""));
    let mut titles = values.filter(|(key, _)| matches!(*key, "title" | "question"));
    titles.next().map_or(String::new(), |(_, value)| value.trim_end_matches('"').to_owned())
}

/// Prints the files of a name.
///
/// # Errors
/// There is no such name, or several kinds have it.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit> {
    let (folder, name) = args.name.split_once('/').unwrap_or(("", &args.name));
    let kinds = || Kind::ALL.into_iter().filter(|kind| folder.is_empty() || kind.folder() == folder);
    let found: Vec<Kind> = kinds().filter(|kind| kind.names().iter().any(|known| known == name)).collect();
    let [kind] = found.as_slice() else {
        let places: Vec<String> = found.iter().map(|kind| format!("{}/{name}", kind.folder())).collect();
        let known: Vec<String> = kinds().flat_map(Kind::names).collect();
        return Err(UsageError(if places.is_empty() {
            format!("{} (`h123 list` shows them)", unknown(&args.name, "a name of `h123 list`", &known))
        } else {
            format!("`{name}` has several meanings; write {}", places.join(" or "))
        })
        .into());
    };
    let files = kind.files(name).map_err(UsageError)?;
    for file in &files {
        if files.len() > 1 {
            print(&format!("# {}", file.file))?;
        }
        print(file.text.trim_end())?;
    }
    Ok(Exit::Done)
}

/// Copies files under a new name.
///
/// # Errors
/// The name is taken or not a name, or a file cannot be written.
pub(crate) fn create(args: &NewArgs) -> Result<Exit> {
    let (kind, name) = (args.kind, args.name.as_str());
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_name) {
        let problem = format!("`{name}` is not a name; write letters, digits, `-` and `_`");
        return Err(UsageError(problem).into());
    }
    let default = match kind {
        Kind::Study => "quick",
        Kind::Network => "dsl",
        Kind::Page => "small",
        Kind::Media => "clip",
        Kind::Replay => "video",
        Kind::Topology => "pair",
        Kind::Server => "nginx",
    };
    let from = args.from.as_deref().unwrap_or(default);
    let known = kind.names();
    if !known.iter().any(|known| known == from) {
        let noun = format!("a {} that can be copied", kind.folder());
        return Err(UsageError(unknown(from, &noun, &known)).into());
    }
    let files = kind.files(from).map_err(UsageError)?;
    let targets: Vec<String> = files.iter().map(|file| target(kind, file, from, name)).collect();
    if let Some(taken) = targets.iter().find(|target| Path::new(target).symlink_metadata().is_ok()) {
        return Err(UsageError(format!("{taken} exists; choose another name or remove it")).into());
    }
    for (file, target) in files.iter().zip(&targets) {
        if let Some(folder) = Path::new(target).parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        // Two pages with the same paths cannot be served together.
        let is_page = kind == Kind::Page;
        let text = if is_page {
            file.text.replace(&format!("/{from}/"), &format!("/{name}/"))
        } else {
            file.text.clone()
        };
        fs::write(target, text).with_context(|| format!("cannot write {target}"))?;
        print(target)?;
    }
    let next = match kind {
        Kind::Study => format!("h123 plan {name}"),
        Kind::Network | Kind::Topology => format!("h123 lab {name} --describe"),
        Kind::Page => format!("h123 serve, whose address ends with /{name}/"),
        Kind::Media => format!("h123 content make {name}-files --modelled {name}"),
        Kind::Replay => format!("h123 load URL --script replays/{name}.jsonl"),
        Kind::Server => format!("h123 servers show {name}"),
    };
    note(false, &format!("a copy of {}/{from}; edit it, then try: {next}", kind.folder()));
    Ok(Exit::Done)
}

/// The new path of a file.
fn target(kind: Kind, file: &DataFile, from: &str, name: &str) -> String {
    let folder = kind.folder();
    match file.file.strip_prefix(&format!("{folder}/{from}/")) {
        Some(rest) => format!("{folder}/{name}/{rest}"),
        None => format!("{folder}/{name}.{}", kind.extension()),
    }
}
