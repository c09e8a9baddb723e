//! Backends: what does to packets what a network says.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::nearest::unknown;
use crate::network::Network;
use crate::network::kernel::{self, Unhonoured};

/// What does to packets what a network says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The lab's own emulator, in user space; it honours every description.
    #[default]
    UserSpace,
    /// The kernel's queueing disciplines, netem foremost, where the kernel has them.
    Netem,
}

impl Backend {
    /// Every backend.
    pub const ALL: [Backend; 2] = [Backend::UserSpace, Backend::Netem];

    /// The name in studies and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::UserSpace => "user-space",
            Backend::Netem => "netem",
        }
    }

    /// Whether it is the one that is used where none is named.
    pub fn is_default(&self) -> bool {
        *self == Backend::default()
    }

    /// Whether this backend does all that a network asks for, at this MTU.
    ///
    /// # Errors
    /// The first key of the network that it cannot honour, and why.
    pub fn check(self, network: &Network, mtu_bytes: u32) -> Result<(), Unhonoured> {
        match self {
            Backend::UserSpace => Ok(()),
            Backend::Netem => kernel::check(network, mtu_bytes),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    /// Fails with `found …, expected …`.
    fn from_str(text: &str) -> Result<Backend, String> {
        let names = Backend::ALL.map(Backend::name);
        let found = Backend::ALL.into_iter().find(|backend| backend.name() == text);
        found.ok_or_else(|| unknown(text, "a backend", &names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for backend in Backend::ALL {
            assert_eq!(backend.name().parse(), Ok(backend));
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.name());
        }
        let problem = "netm".parse::<Backend>().unwrap_err();
        assert!(problem.contains("found `netm`") && problem.contains("netem"), "{problem}");
    }
}
