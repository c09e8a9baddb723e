//! Formats of what other tools and servers write: parsed from text, never read from disk here.

pub mod access_log;
pub mod clients;
pub mod har;
pub mod line_pattern;
pub mod response;

use model::formats::{EXPECTED_TIME, nanoseconds, shown};
