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

impl Level {
    /// The level for people: its value, after the last part of the factor's name if the factor is a sweep,
    /// such as `loss 2%`.
    pub fn label(&self) -> String {
        match self.factor.rsplit('.').next() {
            Some(key) if is_sweep(&self.factor) => format!("{} {}", key.replace('_', " "), self.value),
            _ => self.value.clone(),
        }
    }
}

/// The sweep of the number of clients.
pub(crate) const CLIENTS: &str = "clients";

/// Whether a factor is a sweep: the path of a key, or the number of clients.
pub fn is_sweep(factor: &str) -> bool {
    factor == CLIENTS || factor.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swept_level_names_its_key() {
        let label = |factor: &str, value: &str| Level { factor: factor.into(), value: value.into() }.label();
        assert_eq!(label("network", "lan"), "lan");
        assert_eq!(label("network.loss", "2%"), "loss 2%");
        assert_eq!(label("hold.http1_connections", "6"), "http1 connections 6");
        assert_eq!(label("clients", "10"), "clients 10");
    }
}
