//! Workloads: what clients do, as state machines without I/O.
//!
//! A workload decides *what* is requested and *when* it is due; it never sees a connection. The worker asks
//! [`RequestSource::poll_request`] whenever a connection can take a request, and reports what arrived.
//!
//! Each workload has a file with a type that implements [`RequestSource`]. [`ActiveWorkload`] holds any of
//! them, and [`SharedWorkload`] what all its clients share.
//!
//! ```
//! use model::options::Options;
//! use model::workload::{ClosedLoop, LoopLoad, Workload};
//! use workload::{Beginning, Due, RequestSource, Seeds, SharedWorkload};
//!
//! // A closed loop of two requests on one connection.
//! let load = LoopLoad { requests: Some(2), ..LoopLoad::new("/bytes/128") };
//! let workload = Workload::Closed(ClosedLoop::new(load, None));
//! let shared = SharedWorkload::new(&workload, &Options::default(), 1);
//! let mut active = shared.begin(Seeds::new(1, 0, 0), Beginning::at(0));
//!
//! for now in [0, 1_000] {
//!     assert_eq!(active.poll_request(0, now), Some(Due { url: 0, intended_ns: now }));
//!     active.handle_done(0, true, now + 500);
//! }
//! assert!(active.is_finished(2_000));
//! ```

mod active;
mod closed;
mod cmcd;
pub mod content;
pub mod formats;
pub mod fuzz_targets;
pub mod hds_media;
pub mod links;
pub mod live_hds;
pub mod media;
mod open;
pub mod pacer;
mod page;
pub mod page_model;
mod player;
pub mod recording;
mod rules;
mod script;
mod source;
mod url_table;
pub mod urls;

pub use active::{ActiveWorkload, SharedWorkload};
pub use cmcd::CmcdKeys;
pub use source::{Beginning, Connections, Content, Due, NeverSent, Offer, RequestSource, Seeds};
pub use url_table::UrlTable;
