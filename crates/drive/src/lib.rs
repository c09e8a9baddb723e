//! What runs inside the nodes: servers, described as data, and client processes behind the seam.
//!
//! A server is a folder `servers/NAME` with a `server.toml` and the templates of its configuration; adding one needs
//! no code. A client is a child process that reads an assignment and answers in frames.

pub mod certificate;
pub mod client;
mod clients;
mod content;
mod description;
mod log;
mod program;
mod servers;
mod template;

pub use certificate::{Authority, Identity};
pub use client::{ClientOutcome, Limits};
pub use clients::Clients;
pub use clients::description::{Client, ClientVariant, FoundClient};
pub use clients::run::ExternalSpec;
pub use content::{write_content, write_segments};
pub use description::DescriptionError;
pub use servers::Servers;
pub use servers::access_log::{AccessLog, AccessLogFile};
pub use servers::adapter::Adapter;
pub use servers::installed;
pub use servers::probe::{Found, Support};
pub use servers::running::{RunningServer, StartSpec, Stopped};
