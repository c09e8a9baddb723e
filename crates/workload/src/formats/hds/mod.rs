//! HTTP Dynamic Streaming of Adobe: manifests (F4M), bootstraps, and archives of fragments (F4F).
//!
//! Sources: Adobe Flash Video File Format Specification 10.1; HTTP Dynamic Streaming Specification 3.0; Flash
//! Media Manifest File Format Specification 3.0.

pub mod bootstrap;
pub mod f4f;
pub mod f4m;
mod runs;
mod tables;

/// The last part of a fragment's path, which follows the media's: `Seg1-Frag7`.
pub fn fragment_name(segment: u32, fragment: u32) -> String {
    format!("Seg{segment}-Frag{fragment}")
}

/// Segment and fragment of a path that ends with [`fragment_name`], and what is before it.
pub fn parse_fragment_name(path: &str) -> Option<(&str, u32, u32)> {
    let (media, numbers) = path.rsplit_once("Seg")?;
    let (segment, fragment) = numbers.split_once("-Frag")?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((media, number(segment)?, number(fragment)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fragments_are_written_and_read() {
        assert_eq!(fragment_name(2, 17), "Seg2-Frag17");
        assert_eq!(parse_fragment_name("/a/videoSeg2-Frag17"), Some(("/a/video", 2, 17)));
        assert_eq!(parse_fragment_name("/SegmentSeg1-Frag2"), Some(("/Segment", 1, 2)));
        for path in
            ["/a/videoSeg2-Frag", "/Seg-Frag1", "/aSeg1Frag2", "/aSeg+1-Frag2", "/aSeg1-Frag4294967296"]
        {
            assert_eq!(parse_fragment_name(path), None, "{path}");
        }
    }
}
