//! The paths of parts of archives: `PREFIXSegS-FragF` of HDS, and `N.m4s` and `init.mp4` of one fragmented
//! MP4.

use workload::formats::hds::parse_fragment_name;

/// The name of the bootstrap where a fragment's path has nothing before `Seg`.
const INDEX: &str = "index";
const INITIALIZATION: &str = "init.mp4";

/// A part of an archive that a path names, with the archive's path without its extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArchivePart {
    /// A fragment of HDS.
    Fragment {
        /// The path of all archives of its media up to `Seg`, such as `film/` or `film/high`.
        media: String,
        segment: u32,
        fragment: u32,
    },
    /// A segment of the file `STEM.mp4`, counted from 1.
    Segment { stem: String, number: u32 },
    /// The initialization segment of the file `STEM.mp4`.
    Initialization { stem: String },
}

impl ArchivePart {
    /// The part that a decoded path without its first slash names; `None` for every other path.
    pub(crate) fn parse(path: &str) -> Option<ArchivePart> {
        if let Some((media, segment, fragment)) = parse_fragment_name(path) {
            return Some(ArchivePart::Fragment { media: media.to_owned(), segment, fragment });
        }
        let (stem, name) = path.rsplit_once('/').filter(|(stem, _)| !stem.is_empty())?;
        let stem = stem.to_owned();
        if name == INITIALIZATION {
            return Some(ArchivePart::Initialization { stem });
        }
        let digits = name.strip_suffix(".m4s")?;
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
        Some(ArchivePart::Segment { stem, number })
    }

    /// The files that may describe it, in this order: the first that exists counts.
    pub(crate) fn archive(&self) -> String {
        match self {
            ArchivePart::Fragment { media, segment, .. } => format!("{media}Seg{segment}.f4f"),
            ArchivePart::Segment { stem, .. } | ArchivePart::Initialization { stem } => format!("{stem}.mp4"),
        }
    }
}

/// The path of the bootstrap of HDS media.
pub(crate) fn bootstrap(media: &str) -> String {
    let name = if media.is_empty() || media.ends_with('/') { INDEX } else { "" };
    format!("{media}{name}.bootstrap")
}

/// The path of the index of a segment's archive, which packagers may write.
pub(crate) fn archive_index(media: &str, segment: u32) -> String {
    format!("{media}Seg{segment}.f4x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_files() {
        let of = |path: &str| ArchivePart::parse(path).unwrap();
        assert_eq!(of("film/Seg1-Frag7").archive(), "film/Seg1.f4f");
        assert_eq!(of("a/film_highSeg2-Frag7").archive(), "a/film_highSeg2.f4f");
        assert_eq!(bootstrap("film/"), "film/index.bootstrap");
        assert_eq!(bootstrap("a/film_high"), "a/film_high.bootstrap");
        assert_eq!(archive_index("film/", 3), "film/Seg3.f4x");
        assert_eq!(of("film/video/8000k/12.m4s").archive(), "film/video/8000k.mp4");
        assert_eq!(of("film/video/8000k/init.mp4").archive(), "film/video/8000k.mp4");
    }

    #[test]
    fn other_paths_are_no_parts() {
        for path in [
            "film/Seg1-Frag99999999999",
            "film/Seg1-Frag",
            "film/Seg-1-Frag1",
            "film/4294967296.m4s",
            "film/-1.m4s",
            "film/.m4s",
            "12.m4s",
            "init.mp4",
            "film/a.m4s",
            "",
        ] {
            assert_eq!(ArchivePart::parse(path), None, "{path}");
        }
    }
}
