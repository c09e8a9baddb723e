//! The server that a client requests from.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::variant::Variant;

/// The server as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The variant to use.
    pub variant: Variant,
    /// Address and port to connect to.
    pub address: SocketAddr,
    /// Host and port as in the URL's authority.
    pub authority: String,
    /// Server name for SNI and certificate verification.
    pub server_name: String,
    /// The servers to trust.
    pub trust: Trust,
}

/// The servers that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The certificate authority in this PEM text, alone.
    Authority(String),
    /// The system's roots.
    System,
    /// Any server; only on the user's request.
    Anyone,
}
