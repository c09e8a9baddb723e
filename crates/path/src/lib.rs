//! One direction of an emulated network: outage, loss, rule for UDP, duplication, then queue and rate, then
//! delay.
//!
//! ```
//! use model::network::{Direction, LinkRate};
//! use path::{LinkDirection, Path, Seeds};
//!
//! let rate = LinkRate::Constant { bits_per_s: 1_000_000 };
//! let direction = Direction { rate, delay_ns: 20_000_000, ..Direction::default() };
//! let mut path = Path::new(&direction, Seeds::run(1, LinkDirection::Up));
//! path.handle_packet(0, 1250, vec![0; 1250]);
//! assert_eq!(path.next_release_ns(), Some(30_000_000)); // 10 ms of transmission, 20 ms of delay
//! assert_eq!(path.poll_release(30_000_000).map(|release| release.packet), Some(vec![0; 1250]));
//! ```
//!
//! The path is a discrete-event simulation in *virtual* nanoseconds: a packet departs at
//! `max(link free, arrival) + length / rate` and is released at `departure + delay`. Nothing here reads a
//! clock: a driver that wakes up late releases late, but its lateness never adds up. The caller chooses the
//! type of a packet: a frame in the lab, a vector of bytes in a test.
//!
//! Each impairment has one file; only [`path::Path`] knows their order. Each impairment and direction has its
//! own random stream (`stream`): another impairment does not change the decisions of the others.

mod delay;
mod duplicate;
pub mod fuzz_targets;
pub mod ip;
mod jitter;
mod ledger;
mod line;
mod loss;
pub mod nat;
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
mod udp;
mod varying;
mod wave;

pub use jitter::jitter_quantile;
pub use ledger::{Cause, Counters, Lost};
pub use packet::{Frame, Packet};
pub use path::{Fate, Path, Release};
pub use stream::{LinkDirection, Seeds};
pub use timeline::{Event, Timeline};
