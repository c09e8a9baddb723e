//! Boxes of the ISO base media file format (ISO/IEC 14496-12): MP4, CMAF, and Adobe's F4V and F4F.

mod boxes;
mod fragmented;
mod scan;
mod writer;

pub use boxes::{BoxHeader, Fields, FourCc, IsoBox, boxes, child, children};
pub use fragmented::{FragmentedMp4, MediaFragment, SegmentIndex, SegmentReference, parse_sidx};
pub use scan::{Scan, TopBox, scan};
pub use writer::{write_box, write_full_box, write_large_box, write_sidx};
