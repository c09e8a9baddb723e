//! Manifests of DASH: the MPD (ISO/IEC 23009-1).

mod writer;

pub use writer::{Addressing, write_mpd};
