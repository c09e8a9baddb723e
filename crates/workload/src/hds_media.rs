//! Modelled media as HDS packages it: the bootstrap, and archives whose fragments are boxes around the
//! pattern of [`crate::content::pattern_body`].

use std::collections::BTreeMap;

use model::media::{HdsModel, Media, TrackKind};
use model::units::NANOS_PER_MS;

use crate::content::pattern_body;
use crate::formats::hds::bootstrap::{
    Bootstrap, FragmentRun, FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
};
use crate::formats::hds::f4f::{ArchiveIndex, IndexEntry, NewFragment, fragment_head};
use crate::formats::hds::f4m::{BootstrapSource, F4m, F4mMedia, MediaSource};

/// Ticks in a second.
const TIMESCALE: u32 = 1_000;

/// Media packaged for HDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdsPackage {
    /// Which fragments exist.
    pub bootstrap: Bootstrap,
    /// The fragments of each segment, in the order of the archive.
    pub segments: BTreeMap<u32, Vec<PackagedFragment>>,
}

/// A fragment of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagedFragment {
    /// Its path.
    pub path: String,
    /// Its number, times and the length of its media.
    pub fragment: NewFragment,
    /// The boxes before its media.
    pub head: Vec<u8>,
}

impl HdsPackage {
    /// The package of media; `None` if it is not packaged for HDS.
    pub fn new(media: &Media) -> Option<HdsPackage> {
        let model = media.hds()?;
        let track = media.presentation.tracks.first()?;
        let mut segments: BTreeMap<u32, Vec<PackagedFragment>> = BTreeMap::new();
        let mut spans = Vec::new();
        let mut start_ns = 0_u64;
        let fragments = track.representations.first()?.segments.iter().zip(&track.durations_ns);
        for ((segment, duration_ns), number) in fragments.zip(model.numbers()) {
            let start = start_ns / NANOS_PER_MS;
            start_ns = start_ns.saturating_add(*duration_ns);
            let duration = u32::try_from(start_ns / NANOS_PER_MS - start).unwrap_or(u32::MAX);
            spans.push(FragmentSpan { number, start, duration });
            let packaged = PackagedFragment::new(&segment.url, number, start, duration, segment.bytes?);
            segments.entry(model.segment_of(number)).or_default().push(packaged);
        }
        Some(HdsPackage { bootstrap: bootstrap(model, runs_of(&spans, true), start_ns), segments })
    }

    /// The manifest, which contains the bootstrap.
    pub fn manifest(&self, media: &Media) -> String {
        let manifest = manifest(media, BootstrapSource::Inline(self.bootstrap_bytes()));
        F4m { duration_ns: Some(media.presentation.duration_ns()), ..manifest }.write()
    }

    /// The bootstrap as a file.
    pub fn bootstrap_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.bootstrap.write(&mut bytes);
        bytes
    }

    /// The index of a segment's archive as a file.
    pub fn index_bytes(&self, segment: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.index(segment).write(&mut bytes);
        bytes
    }

    /// The index of a segment's archive.
    pub fn index(&self, segment: u32) -> ArchiveIndex {
        let mut offset = 0;
        let entry = |own: &PackagedFragment| {
            let begins = offset;
            offset += own.bytes();
            IndexEntry { time: own.fragment.start, segment, fragment: own.fragment.number, offset: begins }
        };
        let entries = self.segments.get(&segment).into_iter().flatten().map(entry).collect();
        ArchiveIndex { timescale: TIMESCALE, entries }
    }
}

/// The manifest of media with this bootstrap, without a duration.
pub(crate) fn manifest(media: &Media, bootstrap: BootstrapSource) -> F4m {
    let track = media.presentation.tracks.first();
    let representation = track.and_then(|track| track.representations.first());
    let own = F4mMedia {
        kind: TrackKind::Video,
        is_alternative: false,
        id: media.name.clone(),
        bits_per_s: representation.map_or(0, |of| of.bits_per_s),
        source: MediaSource::Fragments { url: "./".to_owned(), bootstrap },
    };
    F4m { version: 1, id: media.name.clone(), media: vec![own], ..F4m::default() }
}

/// The bootstrap of these runs of fragments, the last of which ends at `end_ns`.
pub(crate) fn bootstrap(model: &HdsModel, runs: Vec<FragmentRun>, end_ns: u64) -> Bootstrap {
    let segment_runs =
        vec![SegmentRun { first_segment: 1, fragments_per_segment: model.fragments_per_segment }];
    let fragments = FragmentTable { timescale: TIMESCALE, runs, ..FragmentTable::default() };
    Bootstrap {
        timescale: TIMESCALE,
        current_time: end_ns / NANOS_PER_MS,
        segment_tables: vec![SegmentTable { runs: segment_runs, ..SegmentTable::default() }],
        fragment_tables: vec![fragments],
        ..Bootstrap::default()
    }
}

impl PackagedFragment {
    /// A fragment of `bytes` bytes in all; longer if its boxes do not fit.
    pub(crate) fn new(path: &str, number: u32, start: u64, duration: u32, bytes: u64) -> PackagedFragment {
        let of = |media_bytes| NewFragment { number, start, duration, media_bytes };
        // The length of the boxes depends on that of the media above 4 GB only, which no segment has.
        let fragment = of(bytes.saturating_sub(fragment_head(TIMESCALE, &of(bytes), None).len() as u64));
        PackagedFragment { path: path.to_owned(), head: fragment_head(TIMESCALE, &fragment, None), fragment }
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.fragment.media_bytes
    }

    /// Its bytes, in parts.
    pub fn parts(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let media = pattern_body(self.fragment.media_bytes, 0);
        std::iter::once(self.head.clone()).chain(media.map(|part| part.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use model::error::Source;

    use super::*;
    use crate::formats::hds::f4f;
    use crate::formats::isobmff::scan;

    fn film() -> Media {
        let text = "title = 'x'\nsegment = '4s'\nlength = '30s'\nhds = { fragments = 5, gaps = [3, 7] }\n\
                    [video]\nladder = ['400kbit/s']\nspread = '30%'\n";
        Media::parse("film", Source { file: "film.toml", text }).unwrap()
    }

    #[test]
    fn the_bootstrap_lists_what_the_archives_contain() {
        let media = film();
        let package = HdsPackage::new(&media).unwrap();
        let listed: Vec<(u32, u32)> =
            package.bootstrap.fragments().unwrap().iter().map(|own| (own.segment, own.number)).collect();
        assert_eq!(listed, [(1, 1), (1, 2), (1, 4), (1, 5), (2, 6), (2, 8), (2, 9), (2, 10)]);
        let mut archived = Vec::new();
        for (segment, fragments) in &package.segments {
            let parts: Vec<u8> = fragments.iter().flat_map(PackagedFragment::parts).flatten().collect();
            let found = f4f::fragments(&scan(&parts).unwrap()).unwrap();
            let index = package.index(*segment);
            for ((own, found), entry) in fragments.iter().zip(&found).zip(&index.entries) {
                archived.push((*segment, found.number));
                assert_eq!(found.range.length(), own.bytes());
                assert_eq!((found.range.first, found.number), (entry.offset, entry.fragment));
            }
            assert_eq!((found.len(), index.entries.len()), (fragments.len(), fragments.len()));
        }
        assert_eq!(archived, listed);
    }

    #[test]
    fn the_manifest_contains_the_bootstrap() {
        let media = film();
        let package = HdsPackage::new(&media).unwrap();
        let manifest = F4m::parse(&package.manifest(&media)).unwrap();
        assert_eq!(manifest.duration_ns, Some(30_000_000_000));
        let MediaSource::Fragments { url, bootstrap: BootstrapSource::Inline(bytes) } =
            &manifest.media[0].source
        else {
            panic!("{manifest:?}")
        };
        assert_eq!(url, "./");
        assert_eq!(Bootstrap::parse(bytes).unwrap(), package.bootstrap);
        assert_eq!(ArchiveIndex::parse(&package.index_bytes(2)).unwrap(), package.index(2));
    }

    #[test]
    fn fragments_have_the_lengths_and_paths_of_the_presentation() {
        let media = film();
        let package = HdsPackage::new(&media).unwrap();
        let found: BTreeMap<&str, u64> =
            package.segments.values().flatten().map(|own| (own.path.as_str(), own.bytes())).collect();
        assert_eq!(found, media.presentation.files());
        let own = &package.segments[&2][1];
        let bytes: Vec<u8> = own.parts().flatten().collect();
        assert_eq!(bytes.len() as u64, own.bytes());
        let media = pattern_body(own.fragment.media_bytes, 0).flatten();
        assert!(f4f::media(&bytes).unwrap().iter().copied().eq(media));
    }
}
