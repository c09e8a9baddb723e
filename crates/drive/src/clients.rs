//! External clients: programs that replace the built-in client, described by folders `clients/NAME`. Folders
//! in the current directory take precedence.

pub(crate) mod command;
pub(crate) mod description;
pub(crate) mod paths;
pub(crate) mod report;
pub(crate) mod run;

use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::description::{DescriptionError, Shelf, file_name, read};
use description::Client;

static CLIENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../clients");
/// The file that describes a client.
pub(crate) const CLIENT_FILE: &str = "client.toml";
static SHELF: Shelf = Shelf { noun: "client", folder: "clients", file: CLIENT_FILE, embedded: &CLIENTS };

/// The external clients described in the current directory and in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Clients;

impl Clients {
    /// The names of all described clients, sorted.
    pub fn names() -> Vec<String> {
        SHELF.names()
    }

    /// Reads one client's description.
    ///
    /// # Errors
    /// There is none of that name, or it is invalid; with file, line and column.
    pub fn find(name: &str) -> Result<Client, DescriptionError> {
        Ok(Client::parse(name, SHELF.find(name)?)?)
    }

    /// Reads a client's description from any folder; the folder's name is the client's.
    ///
    /// # Errors
    /// As [`Clients::find`].
    pub fn read(folder: &Path) -> Result<Client, DescriptionError> {
        let name = file_name(folder).unwrap_or_default();
        Ok(Client::parse(&name, read(folder)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_client_is_read() {
        assert_eq!(Clients::names(), ["ab", "curl", "h2load", "siege", "wrk"]);
        for name in Clients::names() {
            assert!(!Clients::find(&name).unwrap().variants.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_client_is_told_what_there_is() {
        let error = Clients::find("wkr").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no client `wkr`; choose one of ab, curl, h2load, siege, wrk, or describe it in \
             clients/wkr/client.toml"
        );
    }
}
