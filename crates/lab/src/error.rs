//! What can go wrong when a lab is built or used.

use std::io;

/// Why a lab could not be built or used.
///
/// What is displayed leaves out what [`std::error::Error::source`] has to say: people need both.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The topology has no room for a network's handovers.
    #[error(transparent)]
    AddressChange(#[from] model::topology::AddressChangeError),
    /// This machine or user may not build labs.
    #[error(transparent)]
    Missing(#[from] crate::capability::Missing),
    /// The network asks for what the backend cannot honour.
    #[error(transparent)]
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
    #[error("{step}")]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An error and its causes, as people see them.
    fn describe(error: &dyn std::error::Error) -> String {
        let causes = std::iter::successors(Some(error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    #[test]
    fn a_cause_is_said_once() {
        let refused: io::Result<()> = Err(io::Error::other("refused"));
        let error = refused.step(|| "mounting".to_owned()).unwrap_err();
        assert_eq!(describe(&error), "mounting: refused");
        let missing = crate::capability::Missing {
            what: "a lab",
            why: "no right".to_owned(),
            remedy: "be root".to_owned(),
        };
        assert_eq!(describe(&LabError::from(missing.clone())), missing.to_string());
    }
}
