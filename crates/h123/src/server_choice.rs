//! A server in a node of a lab, as the command line names it.

use anyhow::Result;
use drive::{Adapter, Servers};

use crate::exit::UsageError;

/// The suffix of the name of a node's IPv6 address.
pub(crate) const V6_SUFFIX: &str = "-v6";

/// A server to start: `--serve [NODE=]SERVER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerChoice {
    /// The node that it runs in.
    pub(crate) node: String,
    /// Its description's name.
    pub(crate) server: String,
}

impl ServerChoice {
    /// Reads `SERVER` or `NODE=SERVER` and finds the description.
    ///
    /// # Errors
    /// There is no such server, or its description is wrong.
    pub(crate) fn read(text: &str) -> Result<(ServerChoice, Adapter)> {
        let (node, server) = text.split_once('=').unwrap_or(("server", text));
        let adapter = Servers::find(server).map_err(|error| match error {
            drive::DescriptionError::Unknown { name, known, .. } => anyhow::Error::from(UsageError(format!(
                "--serve: {}",
                model::named::unknown(&name, "a server", &known)
            ))),
            other => other.into(),
        })?;
        Ok((ServerChoice { node: node.to_owned(), server: server.to_owned() }, adapter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_or_without_its_node() {
        let read = |text: &str| ServerChoice::read(text).map(|(choice, _)| (choice.node, choice.server));
        assert_eq!(read("origin").unwrap(), ("server".to_owned(), "origin".to_owned()));
        assert_eq!(read("proxy=nginx").unwrap(), ("proxy".to_owned(), "nginx".to_owned()));
        let error = read("orign").unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
        assert!(error.to_string().contains("did you mean `origin`?"), "{error}");
    }
}
