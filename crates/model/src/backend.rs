//! Backends: what emulates a network.

use crate::named;
use crate::network::Network;
use crate::network::kernel::{self, Unsupported};

named! { "a backend";
    /// What emulates a network.
    #[derive(Default)]
    pub enum Backend {
        /// The lab's own emulator, in user space; it supports every network.
        #[default]
        UserSpace = "user-space",
        /// The kernel's queueing disciplines, above all netem, if the kernel has them.
        Netem = "netem",
    }
}

impl Backend {
    /// Whether it is the default.
    pub fn is_default(&self) -> bool {
        *self == Backend::default()
    }

    /// Whether this backend supports a network, at this MTU.
    ///
    /// # Errors
    /// The first key of the network that it does not support, and why.
    pub fn check(self, network: &Network, mtu_bytes: u32) -> Result<(), Unsupported> {
        match self {
            Backend::UserSpace => Ok(()),
            Backend::Netem => kernel::check(network, mtu_bytes),
        }
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
        assert!(problem.contains("`netm` is not a backend") && problem.contains("netem"), "{problem}");
    }
}
