//! The load generator: one loop that moves bytes between sockets and engines and writes a row per request.
//!
//! Pacer and workload say *when* and *what* (crate `workload`), the engine *which bytes* (crate `engine`), the
//! transport moves them, the recorder appends a row. This crate knows no namespaces: it runs wherever it is started.

mod addresses;
mod check;
mod clock;
mod connection;
mod contents;
mod dns_lookup;
mod ending;
mod host;
mod key_log;
mod live;
mod migration;
mod opening;
mod qlog;
mod reading;
mod request;
mod rows;
mod seam;
mod session;
mod system;
mod tally;
mod timers;
mod transport;
mod trust;
mod wait;
mod worker;

pub use check::{check, check_authority};
pub use clock::Clock;
pub use dns_lookup::NameNotFound;
pub use live::{Live, Snapshot};
pub use rows::{Handed, RowReceiver, RowSender, row_queue};
pub use seam::serve_assignment;
pub use tally::{Carried, ConnectionTallies, Tallies, recorded};
pub use transport::buffer_shortfalls;
pub use worker::{Report, Watched, run, run_watched};
