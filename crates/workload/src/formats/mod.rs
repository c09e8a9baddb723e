//! Formats of what other tools and servers write: parsed from text, never read from disk here.

pub mod access_log;
pub mod bidi;
pub mod clients;
pub mod dash;
pub mod devtools;
pub mod error;
pub mod flv;
pub mod har;
pub mod har_export;
pub mod hds;
pub mod hls;
pub mod isobmff;
pub mod line_pattern;
mod listing;
pub mod manifest;
pub mod package;
pub mod page_load;
mod page_recording;
pub mod playback;
pub mod response;
pub mod template;
mod time;
mod xml;

use model::formats::{EXPECTED_TIME, nanoseconds, shown};
use model::units::NANOS_PER_S;

/// A number of ticks in nanoseconds, with `timescale` ticks in a second; 0 counts as 1.
pub(crate) fn ticks_to_ns(ticks: u64, timescale: u64) -> u64 {
    let ns = u128::from(ticks) * u128::from(NANOS_PER_S) / u128::from(timescale.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
