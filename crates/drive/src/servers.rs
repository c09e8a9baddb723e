//! The servers that this tool can drive: folders `servers/NAME`, those of the current directory first.

pub(crate) mod adapter;
pub mod installed;
mod leftover;
pub(crate) mod probe;
pub(crate) mod ready;
pub(crate) mod running;
pub(crate) mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};
use model::InputError;

use adapter::Adapter;

static SERVERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../servers");
/// The folder in the current directory that is looked at first.
const FOLDER: &str = "servers";
/// The file that describes a server.
pub(crate) const ADAPTER_FILE: &str = "server.toml";

/// The servers that are described here and in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Servers;

/// Why there is no such server.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// Nobody described it.
    #[error("found the server `{name}`, expected one of {}: describe it in servers/{name}/server.toml", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that are described.
        known: Vec<String>,
    },
    /// Its description is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Its files cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The texts of one server's folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// The folder's name for errors, such as `servers/nginx`.
    pub(crate) folder: String,
    /// Every text file by name.
    pub(crate) texts: BTreeMap<String, String>,
}

impl Servers {
    /// The names of all servers that are described, in order.
    pub fn names() -> Vec<String> {
        let embedded = SERVERS.dirs().filter(|dir| dir.get_file(dir.path().join(ADAPTER_FILE)).is_some());
        let mut names: BTreeSet<String> = embedded.filter_map(|dir| file_name(dir.path())).collect();
        for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
            if entry.path().join(ADAPTER_FILE).is_file() {
                names.extend(file_name(&entry.path()));
            }
        }
        names.into_iter().collect()
    }

    /// Reads one server's description.
    ///
    /// # Errors
    /// There is none of that name, or it is wrong: file, line and column.
    pub fn find(name: &str) -> Result<Adapter, AdapterError> {
        let local = Path::new(FOLDER).join(name);
        let is_name = file_name(Path::new(name)).as_deref() == Some(name);
        if is_name && local.join(ADAPTER_FILE).is_file() {
            return Self::read(&local);
        }
        match SERVERS.get_dir(name).filter(|_| is_name) {
            Some(dir) => Ok(Adapter::parse(name, embedded_files(name, dir))?),
            None => Err(AdapterError::Unknown { name: name.to_owned(), known: Self::names() }),
        }
    }

    /// Reads a server's description from any folder; the folder's name is the server's.
    ///
    /// # Errors
    /// As [`Servers::find`].
    pub fn read(folder: &Path) -> Result<Adapter, AdapterError> {
        let unreadable =
            |path: &Path, source| AdapterError::Unreadable { path: path.display().to_string(), source };
        let mut files = Files { folder: folder.display().to_string(), texts: BTreeMap::new() };
        for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
            let path = entry.map_err(|error| unreadable(folder, error))?.path();
            if let Some(name) = file_name(&path).filter(|_| path.is_file()) {
                let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
                files.texts.insert(name, text);
            }
        }
        let name = file_name(folder).unwrap_or_default();
        Ok(Adapter::parse(&name, files)?)
    }
}

fn embedded_files(name: &str, dir: &Dir<'_>) -> Files {
    let texts =
        dir.files().filter_map(|file| Some((file_name(file.path())?, file.contents_utf8()?.to_owned())));
    Files { folder: format!("{FOLDER}/{name}"), texts: texts.collect() }
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Variant;

    #[test]
    fn every_embedded_server_is_read() {
        let names = Servers::names();
        assert!(["nginx", "origin"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
        for name in names {
            let adapter = Servers::find(&name).unwrap();
            assert!(adapter.variants.iter().any(|variant| variant.variant == Variant::H2c), "{name}");
        }
    }

    #[test]
    fn an_unknown_server_is_told_what_there_is() {
        for name in ["apache9", "../servers/nginx", ""] {
            let error = Servers::find(name).unwrap_err().to_string();
            assert!(
                error.contains("expected one of apache, caddy, lighttpd, nghttpd, nginx, origin"),
                "{error}"
            );
        }
    }
}
