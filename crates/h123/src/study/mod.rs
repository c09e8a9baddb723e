//! The runs of a study: what each does, how they go on, and what a result holds of them.

pub(crate) mod chain;
pub(crate) mod cores;
pub(crate) mod cross;
pub(crate) mod damages;
pub(crate) mod external;
pub(crate) mod monitor;
pub(crate) mod overrides;
pub(crate) mod progress;
pub(crate) mod reference;
pub(crate) mod repetition;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod server_time;
