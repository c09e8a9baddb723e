//! A live stream of HDS, whose media repeats: the fragments that its bootstrap lists at a time.

use model::media::{HdsModel, Media};
use model::units::NANOS_PER_MS;

use crate::formats::hds::bootstrap::{Bootstrap, FragmentSpan, runs_of};
use crate::formats::hds::f4m::{BootstrapSource, F4m};
use crate::formats::hds::parse_fragment_name;
use crate::hds_media::{PackagedFragment, bootstrap, manifest};

/// The name of the bootstrap in the folder of the media.
pub const BOOTSTRAP: &str = "index.bootstrap";

/// Media that repeats, as HDS numbers it: every repetition has the numbers of the first one, gaps included,
/// after those of the one before.
#[derive(Clone, Debug)]
pub struct LiveHds {
    model: HdsModel,
    folder: String,
    /// The fragments of a repetition; not empty.
    numbers: Vec<u32>,
    /// Their lengths in bytes.
    lengths: Vec<u64>,
}

/// A fragment of a live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFragment {
    /// Its place among all fragments since the stream began, from 0.
    pub place: u64,
    /// When it begins, in nanoseconds since the stream began.
    pub start_ns: u64,
    /// How long it plays, in nanoseconds.
    pub duration_ns: u64,
}

impl LiveHds {
    /// Media as a live stream; `None` if it is not packaged for HDS, or has no fragments.
    pub fn new(media: &Media) -> Option<LiveHds> {
        let model = media.hds()?.clone();
        let representation = media.presentation.tracks.first()?.representations.first()?;
        let lengths: Vec<u64> =
            representation.segments.iter().map(|segment| segment.bytes).collect::<Option<_>>()?;
        let numbers: Vec<u32> = model.numbers().take(lengths.len()).collect();
        (!numbers.is_empty()).then(|| LiveHds { model, folder: media.folder(), numbers, lengths })
    }

    /// The manifest, which refers to the bootstrap.
    pub fn manifest(&self, media: &Media) -> String {
        F4m { is_live: true, ..manifest(media, BootstrapSource::Url(BOOTSTRAP.to_owned())) }.write()
    }

    /// The bootstrap that lists these fragments, which follow each other.
    pub fn bootstrap(&self, window: &[LiveFragment]) -> Bootstrap {
        let spans: Vec<FragmentSpan> = window.iter().filter_map(|fragment| self.span(fragment)).collect();
        let end_ns = window.last().map_or(0, |last| last.start_ns.saturating_add(last.duration_ns));
        Bootstrap {
            is_live: true,
            version: spans.last().map_or(0, |last| last.number),
            ..bootstrap(&self.model, runs_of(&spans, false), end_ns)
        }
    }

    /// The place of the fragment that a file of the folder is; `None` for numbers that do not exist.
    pub fn place(&self, file: &str) -> Option<u64> {
        let (before, segment, number) = parse_fragment_name(file)?;
        let is_own = before.is_empty() && file == self.model.file(number);
        let repetition = self.repetition_numbers();
        let (repeated, own) = (number.checked_sub(1)? / repetition, (number - 1) % repetition + 1);
        let index = self.numbers.binary_search(&own).ok().filter(|_| is_own && segment > 0)?;
        Some(u64::from(repeated) * self.numbers.len() as u64 + index as u64)
    }

    /// A fragment with its bytes; `None` if its number is too large for HDS.
    pub fn fragment(&self, fragment: &LiveFragment) -> Option<PackagedFragment> {
        let FragmentSpan { number, start, duration } = self.span(fragment)?;
        let path = format!("{}{}", self.folder, self.model.file(number));
        let bytes = *self.lengths.get(self.index(fragment.place)?)?;
        Some(PackagedFragment::new(&path, number, start, duration, bytes))
    }

    /// How many numbers a repetition has, missing ones included; not 0.
    fn repetition_numbers(&self) -> u32 {
        self.numbers.last().copied().unwrap_or(1)
    }

    /// The index in the media of a place in the stream.
    fn index(&self, place: u64) -> Option<usize> {
        usize::try_from(place.checked_rem(self.numbers.len() as u64)?).ok()
    }

    /// A fragment in milliseconds, which are the ticks of the stream.
    fn span(&self, fragment: &LiveFragment) -> Option<FragmentSpan> {
        let own = *self.numbers.get(self.index(fragment.place)?)?;
        let repeated = fragment.place.checked_div(self.numbers.len() as u64)?;
        let number = repeated.checked_mul(self.repetition_numbers().into())?.checked_add(own.into())?;
        let start = fragment.start_ns / NANOS_PER_MS;
        let end = fragment.start_ns.checked_add(fragment.duration_ns)? / NANOS_PER_MS;
        let duration = u32::try_from(end - start).ok()?;
        Some(FragmentSpan { number: u32::try_from(number).ok()?, start, duration })
    }
}

#[cfg(test)]
mod tests {
    use model::error::Source;

    use super::*;
    use crate::formats::hds::f4f;
    use crate::formats::isobmff::scan;

    const S: u64 = 1_000_000_000;

    /// Fragments of 4 s with the numbers 1, 2 and 4, in segments of three numbers.
    fn stream() -> (Media, LiveHds) {
        let text = "title = 'x'\nsegment = '4s'\nlength = '12s'\nhds = { fragments = 3, gaps = [3] }\n\
                    [video]\nladder = ['80kbit/s']\nspread = '30%'\n";
        let media = Media::parse("news", Source { file: "x.toml", text }).unwrap();
        let live = LiveHds::new(&media).unwrap();
        (media, live)
    }

    fn window(places: std::ops::Range<u64>) -> Vec<LiveFragment> {
        places.map(|place| LiveFragment { place, start_ns: place * 4 * S, duration_ns: 4 * S }).collect()
    }

    #[test]
    fn numbers_repeat_with_their_gaps() {
        let (_, live) = stream();
        for (place, number, file) in
            [(0, 1, "Seg1-Frag1"), (2, 4, "Seg2-Frag4"), (3, 5, "Seg2-Frag5"), (7, 10, "Seg4-Frag10")]
        {
            assert_eq!(live.span(&window(place..place + 1)[0]).unwrap().number, number);
            assert_eq!(live.place(file), Some(place), "{file}");
        }
        for other in
            ["Seg1-Frag3", "Seg3-Frag7", "Seg1-Frag4", "Seg0-Frag0", "aSeg1-Frag1", "Seg1-Frag01", "x"]
        {
            assert_eq!(live.place(other), None, "{other}");
        }
        let last = LiveFragment { place: u64::MAX, start_ns: 0, duration_ns: S };
        assert!(live.fragment(&last).is_none());
    }

    #[test]
    fn readers_find_the_fragments_of_the_window() {
        let (_, live) = stream();
        for begin in 0..9 {
            let expected = window(begin..begin + 5);
            let written = live.bootstrap(&expected);
            let mut bytes = Vec::new();
            written.write(&mut bytes);
            let read = Bootstrap::parse(&bytes).unwrap();
            assert!(read.is_live);
            let found = read.fragments().unwrap();
            assert_eq!(found.len(), 5, "from {begin}: {found:?}");
            for (found, expected) in found.iter().zip(&expected) {
                let file = live.model.file(found.number);
                assert_eq!(file, format!("Seg{}-Frag{}", found.segment, found.number));
                assert_eq!(live.place(&file), Some(expected.place));
                assert_eq!((found.start_ns, found.duration_ns), (expected.start_ns, 4 * S));
            }
        }
    }

    #[test]
    fn fragments_have_the_lengths_of_the_media_and_their_own_numbers() {
        let (media, live) = stream();
        let own = live.fragment(&window(5..6)[0]).unwrap();
        assert_eq!(own.path, "/media/news/Seg3-Frag8");
        let first = live.fragment(&window(2..3)[0]).unwrap();
        assert_eq!(own.bytes(), first.bytes());
        assert_eq!(media.presentation.files()["/media/news/Seg2-Frag4"], own.bytes());
        let bytes: Vec<u8> = own.parts().flatten().collect();
        assert_eq!(f4f::fragments(&scan(&bytes).unwrap()).unwrap()[0].number, 8);
    }

    #[test]
    fn the_manifest_is_live_and_names_the_bootstrap() {
        let (media, live) = stream();
        let text = live.manifest(&media);
        let found = F4m::parse(&text).unwrap();
        assert!(found.is_live && found.duration_ns.is_none() && text.contains("index.bootstrap"), "{text}");
    }
}
