//! Writes boxes.

use super::{SegmentIndex, SegmentReference};

/// Appends a box; its size has 64 bits only if it needs them.
pub fn write_box(out: &mut Vec<u8>, kind: &[u8; 4], write: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    write(&mut body);
    match u32::try_from(body.len() + 8) {
        Ok(size) => {
            out.extend(size.to_be_bytes());
            out.extend(kind);
        }
        Err(_) => write_large_header(out, kind, body.len()),
    }
    out.extend(body);
}

/// Appends a box whose size has 64 bits.
pub fn write_large_box(out: &mut Vec<u8>, kind: &[u8; 4], write: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    write(&mut body);
    write_large_header(out, kind, body.len());
    out.extend(body);
}

/// Appends a box that begins with a version and flags, of which the lower 24 bits count.
pub fn write_full_box(
    out: &mut Vec<u8>,
    kind: &[u8; 4],
    version: u8,
    flags: u32,
    write: impl FnOnce(&mut Vec<u8>),
) {
    write_box(out, kind, |body| {
        let [_, flags @ ..] = flags.to_be_bytes();
        body.push(version);
        body.extend(flags);
        write(body);
    });
}

fn write_large_header(out: &mut Vec<u8>, kind: &[u8; 4], body_bytes: usize) {
    out.extend(1_u32.to_be_bytes());
    out.extend(kind);
    out.extend((body_bytes as u64 + 16).to_be_bytes());
}

/// Appends a segment index (ISO/IEC 14496-12, section 8.16.3), version 1. References beyond the 65,535 that
/// a box can have are left out, and sizes and durations beyond its fields are cut.
pub fn write_sidx(out: &mut Vec<u8>, index: &SegmentIndex) {
    const SIZE_BITS: u32 = 0x7fff_ffff;
    write_full_box(out, b"sidx", 1, 0, |body| {
        body.extend(index.reference_id.to_be_bytes());
        body.extend(index.timescale.to_be_bytes());
        body.extend(index.earliest_time.to_be_bytes());
        body.extend(index.first_offset.to_be_bytes());
        body.extend([0, 0]);
        let count = u16::try_from(index.references.len()).unwrap_or(u16::MAX);
        body.extend(count.to_be_bytes());
        for SegmentReference { bytes, duration, is_index } in index.references.iter().take(count.into()) {
            let bytes = u32::try_from(*bytes).unwrap_or(SIZE_BITS).min(SIZE_BITS);
            let kind = if *is_index { 1 << 31 } else { 0 };
            body.extend((kind | bytes).to_be_bytes());
            body.extend(u32::try_from(*duration).unwrap_or(u32::MAX).to_be_bytes());
            // Each segment begins with a stream access point of type 1.
            body.extend(0x9000_0000_u32.to_be_bytes());
        }
    });
}
