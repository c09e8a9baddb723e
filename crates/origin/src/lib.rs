//! The built-in server: one process that serves the same content over all five variants, each on its own
//! port.
//!
//! It serves the resources of pages, files below a folder, `/bytes/N`, `/delay/MS`, `/echo` and
//! `/status/NNN`; all variants answer with the same fields. `catalogue.rs` defines the paths and
//! `access_log.rs` the log.
//!
//! ```
//! use model::Variant;
//! use origin::{Config, serve};
//!
//! let config = Config::loopback(&[Variant::H1]);
//! let announce = |addresses: &[_], _: &[_]| println!("{addresses:?}");
//! // The future that ends the origin is ready at once here; `origin::flag` waits for a signal handler.
//! let report = serve(config, announce, async {})?;
//! assert_eq!(report.requests, 0);
//! # Ok::<(), anyhow::Error>(())
//! ```

mod access_log;
mod activity;
mod answer;
mod body;
mod catalogue;
mod config;
mod faults;
mod files;
mod host;
mod http1;
mod http2;
mod http3;
mod listen;
mod media;
mod outbox;
mod server;
mod shared;
mod timer;
mod tls;

pub use config::{Config, Identity, JustInTime};
pub use server::{flag, serve};
pub use shared::ServeReport;
