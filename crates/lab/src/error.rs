//! What can go wrong when a lab is built or used.

use std::io;

/// Why a lab could not be built or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The topology has no room for a network's handovers.
    #[error("{0}")]
    Moves(#[from] model::topology::MovesError),
    /// This machine or user may not build labs.
    #[error("{0}")]
    Missing(#[from] crate::capability::Missing),
    /// The network asks for what the backend cannot honour.
    #[error("{0}")]
    Unhonoured(#[from] model::network::kernel::Unhonoured),
    /// This kernel or backend does not have what was asked for; others may.
    #[error("{what} cannot be had here: {remedy}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// What to do, in one clause.
        remedy: String,
    },
    /// The kernel refused a step.
    #[error("{step}: {source}")]
    System {
        /// What was tried, and what to do about it where that is known.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread of the lab ended early; it left its reason on standard error.
    #[error("the lab's thread `{thread}` ended before its work was done: look for its panic message above")]
    ThreadEnded {
        /// The thread's name.
        thread: String,
    },
    /// A frame was longer than the link allows.
    #[error(
        "the emulator saw a frame of {found_bytes} bytes, expected at most {expected_bytes}: a segmentation offload \
         is on inside the lab, so one emulated loss would be many; look at `ethtool -k eth0` in the node"
    )]
    FrameTooLong {
        /// Length of the frame.
        found_bytes: usize,
        /// The link's MTU with the Ethernet header.
        expected_bytes: usize,
    },
}

/// Adds what was tried to what the kernel said.
pub(crate) trait Step<T> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|error| LabError::System { step: step(), source: error.into() })
    }
}
