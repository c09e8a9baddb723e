//! Arms: levels of several factors that a study varies together, as one factor.

use serde::{Deserialize, Serialize};

use crate::named;

/// The factor whose levels are arms.
pub const ARM: &str = "arm";

/// An arm of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name: the level of the factor [`ARM`].
    pub name: String,
    /// What differs from other arms besides the HTTP version, because the study says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<Difference>,
}

named! { "a difference of arms";
    /// What two arms can differ in besides the HTTP version.
    pub enum Difference {
        /// The server, its settings or the server behind it.
        Server = "server",
        /// The client program.
        Client = "client",
        /// The workload.
        Workload = "workload",
        /// The settings fixed by `[hold]`.
        Hold = "hold",
        /// Cleartext against encryption.
        Tls = "tls",
        /// The network.
        Network = "network",
    }
}
