//! A level of a factor.

use serde::{Deserialize, Serialize};

/// One value of one factor, such as `variant = h1s`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Level {
    /// The factor: `variant`, `server`, `network`, `workload`, `client`, `backend`, …
    pub factor: String,
    /// Its value here.
    pub value: String,
}
