//! Errors of building and using a lab.

use std::io;

use model::sample::{FailureKind, Outcome};

/// Why a lab could not be built or used.
///
/// The displayed text leaves out the text of [`std::error::Error::source`]: print both.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The topology has no addresses left for a network's handovers.
    #[error(transparent)]
    AddressChange(#[from] model::topology::AddressChangeError),
    /// This machine or this user cannot build labs.
    #[error(transparent)]
    Missing(#[from] MissingCapability),
    /// The backend cannot emulate a property of the network.
    #[error(transparent)]
    UnsupportedNetwork(#[from] model::network::kernel::Unsupported),
    /// This kernel or backend lacks a feature that others have.
    #[error("{what} is not available here; {remedy}")]
    Unsupported {
        /// The requested feature.
        what: String,
        /// What to do, in one clause.
        remedy: String,
    },
    /// A system call failed.
    #[error("{step}")]
    System {
        /// What was attempted, and what to do about it where that is known.
        step: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread of the lab panicked; its message is on standard error.
    #[error("the lab's thread `{thread}` ended before its work was done; look for its panic message above")]
    ThreadEnded {
        /// The thread's name.
        thread: String,
    },
    /// A frame was longer than the link allows.
    #[error(
        "the emulator received a frame of {found_bytes} bytes; the longest is {expected_bytes}. A segmentation \
         offload is on inside the lab, so one emulated loss would drop many packets; check `ethtool -k eth0` in the node"
    )]
    FrameTooLong {
        /// Length of the frame.
        found_bytes: usize,
        /// The link's MTU with the Ethernet header.
        expected_bytes: usize,
    },
}

/// A capability that this machine or this user lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}; {remedy}")]
pub struct MissingCapability {
    /// What is unavailable.
    pub what: &'static str,
    /// Why, in one clause.
    pub why: String,
    /// What to do about it, in one clause.
    pub remedy: String,
}

impl MissingCapability {
    pub(crate) fn new(what: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        MissingCapability { what, why: why.into(), remedy: remedy.into() }
    }
}

/// The outcome of a run whose lab failed: unsupported if other kernels or backends have what is missing here.
impl From<LabError> for Outcome {
    fn from(error: LabError) -> Outcome {
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let reason = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        match error {
            LabError::Unsupported { .. } => Outcome::Unsupported(reason),
            _ => Outcome::failed(FailureKind::Lab, reason),
        }
    }
}

/// Adds the attempted step to the kernel's error.
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
    fn a_cause_appears_once() {
        let refused: io::Result<()> = Err(io::Error::other("refused"));
        let error = refused.step(|| "mounting".to_owned()).unwrap_err();
        assert_eq!(describe(&error), "mounting: refused");
        let missing = MissingCapability::new("a lab", "no right", "be root");
        assert_eq!(describe(&LabError::from(missing.clone())), missing.to_string());
    }
}
