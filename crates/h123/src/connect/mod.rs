//! How `h123 load` and `h123 trace` reach a server: URLs, addresses, trust and TLS, and what to do when it
//! fails.

pub(crate) mod advice;
pub(crate) mod places;
pub(crate) mod target;
pub(crate) mod tls_options;
