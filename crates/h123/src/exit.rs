//! Exit statuses: the contract with scripts and CI.

/// How the tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done. Unsupported cells and doubts are listed; they do not fail.
    Done,
    /// The tool failed.
    ToolFailed,
    /// Wrong usage, or a bad study file.
    Usage,
    /// Done, but at least one cell failed or is invalid.
    Invalid,
    /// Done, and a threshold that was asked for did not hold.
    Threshold,
    /// Interrupted; what was measured is stored.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::ToolFailed => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Threshold => 4,
            Exit::Interrupted => 130,
        }
    }
}

/// Input that the user has to mend; ends with [`Exit::Usage`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub String);

/// The exit status of an error.
pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
    let is_usage = error.chain().any(|cause| cause.is::<UsageError>() || cause.is::<model::InputError>());
    if is_usage { Exit::Usage } else { Exit::ToolFailed }
}
