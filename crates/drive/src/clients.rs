//! External clients: other people's programs in the place of our own client, described by folders `clients/NAME`, those of the
//! current directory first.

pub(crate) mod command;
pub(crate) mod description;
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

/// The external clients that are described here and in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Clients;

impl Clients {
    /// The names of all clients that are described, in order.
    pub fn names() -> Vec<String> {
        SHELF.names()
    }

    /// Reads one client's description.
    ///
    /// # Errors
    /// There is none of that name, or it is wrong: file, line and column.
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
            "found the client `wkr`, expected one of ab, curl, h2load, siege, wrk: describe it in \
             clients/wkr/client.toml"
        );
    }
}
