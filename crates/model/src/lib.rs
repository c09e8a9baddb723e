//! The data of h123: a study as written, the plan that it resolves to, and the rows that a run leaves behind.
//!
//! ```
//! use model::error::Source;
//! use model::{Network, units};
//!
//! let text = "title = 'A tram'\nsource = 'an example'\nrtt = '40ms'\n[down]\nrate = '20Mbit/s'\n";
//! let network = Network::parse("tram", Source { file: "networks/tram.toml", text })?;
//! assert_eq!(network.rtt_ns(), 40 * units::NANOS_PER_MS);
//!
//! let wrong = text.replace("40ms", "40");
//! let error = Network::parse("tram", Source { file: "networks/tram.toml", text: &wrong }).unwrap_err();
//! assert!(error.to_string().starts_with("networks/tram.toml:3:7: `rtt`: `40` is not a duration; write"));
//! # Ok::<(), model::InputError>(())
//! ```
//!
//! Pure: no clock, socket, file, thread or randomness. Input passes two stages: *as written* (the content of
//! the TOML file) and *resolved* (the input of everything else). A resolved value cannot be inconsistent.

pub mod arm;
pub mod assignment;
pub mod backend;
pub mod buffers;
pub mod claim;
pub mod class;
pub mod clean;
pub mod clients;
pub mod cores;
pub mod csv;
pub mod delivery;
pub mod error;
pub mod external;
pub mod formats;
pub mod frame;
pub mod histogram;
pub mod level;
mod loops;
pub mod media;
pub mod monitor;
pub mod named;
pub mod network;
pub mod number;
pub mod options;
pub mod origin_path;
pub mod page;
pub mod page_cache;
pub mod page_events;
pub mod pins;
pub mod plan;
pub mod plan_text;
pub mod player;
pub mod predict;
pub mod quantity;
pub mod reader;
pub mod record;
pub mod request_fields;
pub mod request_path;
pub mod run_order;
pub mod sample;
pub mod schedule;
pub mod script;
pub mod shuffle;
pub mod start;
pub mod statistic;
pub mod study;
pub mod tally;
pub mod target;
pub mod tls;
pub mod topology;
pub mod tunable;
pub mod units;
pub mod url;
pub mod url_pattern;
pub mod variant;
mod version;
pub mod warm;
pub mod workload;

pub use assignment::{Assignment, ClientMessage};
pub use backend::Backend;
pub use buffers::Shortfall;
pub use clients::Clients;
pub use error::InputError;
pub use histogram::Histogram;
pub use monitor::{MonitorRate, Reading};
pub use network::Network;
pub use page::Page;
pub use page_cache::{CachedContent, PageCache};
pub use pins::Pins;
pub use plan::{Cell, Plan, PlannedRun};
pub use record::RunRecord;
pub use sample::{ConnectionRow, Outcome, Sample};
pub use start::Start;
pub use statistic::Statistic;
pub use topology::Topology;
pub use tunable::{ServerFacts, Setting, Settings, Tunable, TunableKind};
pub use url::Url;
pub use variant::{HttpVersion, Variant};
pub use workload::{Workload, WorkloadKind};
