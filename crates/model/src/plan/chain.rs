//! The servers of a cell: one that clients use, and those behind it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Remote;
use crate::tunable::Settings;
use crate::variant::Variant;

/// A role: a server that clients use, and the servers behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChain {
    /// The node in which it runs.
    pub node: String,
    /// The server's name.
    pub server: String,
    /// Its settings.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub set: Settings,
    /// The servers behind it, each behind the one before, if it is a proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backs: Vec<BackServer>,
    /// Where it is, if h123 does not start it; its node then stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
}

/// A server behind a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackServer {
    /// The node in which it runs.
    pub node: String,
    /// The adapter's name.
    pub server: String,
    /// The variant between the server before it and it.
    pub variant: Variant,
    /// What the study sets of it.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub set: Settings,
}

impl ServerChain {
    /// The server that has the content, behind all proxies, and its tunables.
    pub fn content_server(&self) -> (&str, &Settings) {
        let front = (self.server.as_str(), &self.set);
        self.backs.last().map_or(front, |back| (back.server.as_str(), &back.set))
    }

    /// A server alone, with its default settings.
    pub fn alone(node: &str, server: &str) -> ServerChain {
        let (node, server) = (node.to_owned(), server.to_owned());
        ServerChain { node, server, set: Settings::new(), backs: Vec::new(), remote: None }
    }

    /// What it is made of, in one line, such as `nghttpx (workers = 2) → apache over h1`.
    pub fn describe(&self) -> String {
        if let Some(remote) = &self.remote {
            return remote.describe();
        }
        let mut words = with_settings(&self.server, &self.set);
        for back in &self.backs {
            let _ = write!(words, " → {} over {}", with_settings(&back.server, &back.set), back.variant);
        }
        words
    }

    /// The adapters that it needs: those of the servers that h123 starts.
    pub fn adapters(&self) -> impl Iterator<Item = &str> {
        let front = Some(self.server.as_str()).filter(|_| self.remote.is_none());
        front.into_iter().chain(self.backs.iter().map(|back| back.server.as_str()))
    }
}

fn with_settings(server: &str, set: &Settings) -> String {
    if set.is_empty() {
        return server.to_owned();
    }
    let set: Vec<String> = set.iter().map(|(name, setting)| format!("{name} = {setting}")).collect();
    format!("{server} ({})", set.join(", "))
}
