//! The load generator: one loop that moves bytes between sockets and engines and writes a row for each
//! request.
//!
//! Pacer and workload (crate `workload`) decide when to send what, the engine (crate `engine`) encodes it,
//! the transport moves the bytes, and the recorder adds a row. This crate knows no namespaces: it runs
//! wherever it is started.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! # fn main() -> anyhow::Result<()> {
//! let text = std::fs::read_to_string("assignment.json")?;
//! let assignment: model::Assignment = serde_json::from_str(&text)?;
//! load::check(&assignment)?;
//! let report = load::run(&assignment, &AtomicBool::new(false))?;
//! let latencies_ns = report.samples.iter().filter_map(model::Sample::request_time_ns);
//! println!("{} requests, the slowest took {:?} ns", report.samples.len(), latencies_ns.max());
//! # Ok(())
//! # }
//! ```

mod addresses;
mod check;
mod client;
mod client_protocol;
mod clock;
mod connection;
mod contents;
mod dns_lookup;
#[cfg(test)]
mod fixtures;
mod host;
mod judge;
mod key_log;
mod live;
mod offers;
mod qlog;
mod request;
mod rows;
mod session;
mod slots;
mod system;
mod tally;
mod timers;
mod transport;
mod trust;
mod wait;
mod worker;

pub use check::{check, check_authority};
pub use client_protocol::serve_assignment;
pub use clock::Clock;
pub use dns_lookup::NameNotFound;
pub use live::{Live, Snapshot};
pub use rows::{RowMessage, RowReceiver, RowSender, row_queue};
pub use tally::Tallies;
pub use transport::buffer_shortfalls;
pub use trust::tls_config;
pub use worker::{Observers, Report, run, run_observed};
