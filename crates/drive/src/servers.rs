//! The servers that this tool can drive: folders `servers/NAME`. Folders in the current directory take
//! precedence.

pub(crate) mod access_log;
pub(crate) mod adapter;
pub(crate) mod feed;
mod handshake;
pub(crate) mod leftover;
mod memory;
pub(crate) mod probe;
pub(crate) mod ready;
pub(crate) mod running;

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::description::{self, DescriptionError, Shelf, file_name};
use adapter::Adapter;

static SERVERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../servers");
/// The file that describes a server.
pub(crate) const ADAPTER_FILE: &str = "server.toml";
static SHELF: Shelf = Shelf { noun: "server", folder: "servers", file: ADAPTER_FILE, embedded: &SERVERS };

/// The servers described in the current directory and in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Servers;

impl Servers {
    /// The names of all described servers, sorted.
    pub fn names() -> Vec<String> {
        SHELF.names()
    }

    /// Reads one server's description.
    ///
    /// # Errors
    /// There is none of that name, or it is invalid; with file, line and column.
    pub fn find(name: &str) -> Result<Adapter, DescriptionError> {
        Ok(Adapter::parse(name, SHELF.find(name)?)?)
    }

    /// The text files of one server's description by name, and their folder, such as `servers/nginx`.
    ///
    /// # Errors
    /// There is none of that name, or a file cannot be read.
    pub fn texts(name: &str) -> Result<(String, BTreeMap<String, String>), DescriptionError> {
        let files = SHELF.find(name)?;
        Ok((files.folder, files.texts))
    }

    /// Reads a server's description from any folder; the folder's name is the server's.
    ///
    /// # Errors
    /// As [`Servers::find`].
    pub fn read(folder: &Path) -> Result<Adapter, DescriptionError> {
        let name = file_name(folder).unwrap_or_default();
        Ok(Adapter::parse(&name, description::read(folder)?)?)
    }
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
                error.contains(
                    "choose one of apache, caddy, haproxy, lighttpd, nghttpd, nghttpx, nginx, origin"
                ),
                "{error}"
            );
        }
    }
}
