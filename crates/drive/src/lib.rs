//! What runs inside the nodes: servers and external clients, described as data, and client processes.
//!
//! A server is a folder `servers/NAME` with a `server.toml` and templates of its configuration; adding one
//! needs no code. A client is a child process that reads an assignment and answers in frames.
//!
//! ```
//! use drive::Servers;
//! use model::Variant;
//!
//! let nginx = Servers::find("nginx")?;
//! assert!(nginx.variant(Variant::H2).is_some());
//! assert!(Servers::find("no-such-server").is_err());
//! # Ok::<(), drive::DescriptionError>(())
//! ```

pub mod browsers;
pub mod certificate;
pub mod client;
mod clients;
mod content;
mod description;
mod external;
pub mod input;
pub mod installed;
mod library;
mod links;
mod log;
pub mod manifests;
pub mod media;
pub mod outside;
mod page_cache;
mod privileges;
mod program;
mod quoting;
mod requirements;
mod servers;
mod template;

pub use browsers::Browsers;
pub use browsers::description::{Browser, BrowserVariant, KEYS as BROWSER_KEYS};
pub use certificate::{Authority, Identity};
pub use client::{ClientOutcome, Limits};
pub use clients::Clients;
pub use clients::description::{Client, ClientVariant, KEYS as CLIENT_KEYS};
pub use clients::run::{Begins, ExternalSpec};
pub use content::{write_content, write_media, write_segments};
pub use description::DescriptionError;
pub use external::ExternalClient;
pub use library::link_titles;
pub use page_cache::set_page_cache;
pub use program::{ProgramInfo, Support};
pub use servers::Servers;
pub use servers::access_log::{AccessLog, AccessLogFile, read_lines};
pub use servers::adapter::{Adapter, KEYS as SERVER_KEYS};
pub use servers::running::{RunningServer, ServerOutcome, StartSpec};
