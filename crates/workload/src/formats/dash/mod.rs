//! Manifests of DASH: the MPD (ISO/IEC 23009-1).

mod reader;
mod resource;
mod segments;
mod writer;

pub(super) use reader::read_mpd;
pub use writer::{Addressing, write_mpd};
