//! One direction of an emulated network: loss, then queue and rate, then delay.
//!
//! A discrete-event engine on *virtual* nanoseconds: a packet departs at `max(link free, arrival) + length / rate`
//! and is released at `departure + delay`. Nothing here reads a clock, so a driver that wakes up late releases
//! late, but its lateness never adds up. The packet is whatever the caller wants it to be: a frame in the lab, a
//! vector of bytes in a test.
//!
//! One file per impairment; [`path::Path`] is the only one that knows their order.

mod delay;
mod loss;
pub mod path;
mod queue;
mod rate;
pub mod sim;

pub use path::{Cause, Counters, Fate, Path, Release};
