//! One direction of an emulated network: outage, loss, duplication, then queue and rate, then delay.
//!
//! A discrete-event engine on *virtual* nanoseconds: a packet departs at `max(link free, arrival) + length / rate`
//! and is released at `departure + delay`. Nothing here reads a clock, so a driver that wakes up late releases
//! late, but its lateness never adds up. The packet is whatever the caller wants it to be: a frame in the lab, a
//! vector of bytes in a test.
//!
//! One file per impairment; [`path::Path`] is the only one that knows their order. Randomness comes from a stream per
//! impairment and direction (`stream`), so that asking for one more impairment leaves the others' decisions as they are.

mod delay;
mod duplicate;
pub mod fuzz_targets;
pub mod ip;
mod jitter;
mod ledger;
mod line;
mod loss;
mod opportunities;
mod outage;
mod packet;
pub mod path;
mod queue;
mod rate;
mod reorder;
pub mod sim;
#[cfg(test)]
mod statistics;
mod stream;
pub mod tcp;
mod timeline;
mod varying;
mod wave;

pub use jitter::jitter_quantile;
pub use ledger::{Cause, Counters, Lost};
pub use packet::{Frame, Packet};
pub use path::{Fate, Path, Release};
pub use stream::{LinkDirection, Seeds};
pub use timeline::{Event, Timeline};
