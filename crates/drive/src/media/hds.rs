//! HDS: archives of fragments with their indexes, a bootstrap and a manifest, and the same fragments as
//! files.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use model::media::{ByteRange, TrackKind};
use workload::formats::flv::{FlvFragment, FlvScan, TAG_HEAD_BYTES};
use workload::formats::hds::bootstrap::{
    Bootstrap, FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
};
use workload::formats::hds::f4f::{ArchiveIndex, ArchiveLayout, NewFragment};
use workload::formats::hds::f4m::{BootstrapSource, F4m, F4mMedia, MediaSource};
use workload::formats::hds::fragment_name;

use super::HdsSettings;
use super::ffmpeg::words;
use super::frames::{audio_frames, video_frames};
use super::package::Cut;

/// Ticks in a second: FLV counts milliseconds.
const TIMESCALE: u32 = 1_000;
const MANIFEST: &str = "manifest.f4m";

/// Writes `hds/` with archives and `hds-static/` with fragments as files.
///
/// # Errors
/// ffmpeg fails, or a file cannot be read or written.
pub(super) fn write(cut: &Cut<'_>, settings: HdsSettings) -> Result<()> {
    let folders = ["hds", "hds-static"].map(|name| cut.made.join(name));
    for folder in &folders {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut manifest = F4m {
        version: 1,
        duration_ns: Some(cut.settings.length_ns),
        id: "h123".to_owned(),
        ..F4m::default()
    };
    let (sound, map, sound_bits_per_s) = match cut.audio.last() {
        Some((name, rate)) => {
            let frames = audio_frames(cut.settings.length_ns);
            (format!("-stream_loop -1 -i {name}.mp4 "), format!("-map 1:a -frames:a {frames}"), *rate)
        }
        None => (String::new(), "-an".to_owned(), 0),
    };
    for (name, rung) in cut.video {
        let frames = video_frames(cut.settings.length_ns);
        let args = format!(
            "-stream_loop -1 -i {name}.mp4 {sound}-map 0:v {map} -frames:v {frames} -c copy -f flv {name}.flv"
        );
        cut.ffmpeg.run_for_media(cut.work, &words(&args), cut.settings.length_ns)?;
        let flv = cut.work.join(format!("{name}.flv"));
        let mut media = Flv::open(&flv)?;
        media.write(&folders, name, settings, cut.settings.length_ns / 1_000_000)?;
        fs::remove_file(&flv).with_context(|| format!("cannot remove {}", flv.display()))?;
        manifest.media.push(F4mMedia {
            kind: TrackKind::Video,
            is_alternative: false,
            id: name.clone(),
            bits_per_s: rung.bits_per_s + sound_bits_per_s,
            source: MediaSource::Fragments {
                url: name.clone(),
                bootstrap: BootstrapSource::Url(format!("{name}.bootstrap")),
            },
        });
    }
    for folder in &folders {
        create(&folder.join(MANIFEST), manifest.write().as_bytes())?;
    }
    Ok(())
}

/// An FLV file and its fragments.
struct Flv {
    file: File,
    settings: Vec<ByteRange>,
    fragments: Vec<FlvFragment>,
}

impl Flv {
    fn open(path: &Path) -> Result<Flv> {
        let context = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(context)?;
        let mut scan = FlvScan::default();
        loop {
            file.seek(SeekFrom::Start(scan.offset())).with_context(context)?;
            let mut head = [0; TAG_HEAD_BYTES];
            match file.read_exact(&mut head) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                read => read.with_context(context)?,
            }
            scan.handle_tag(&head).with_context(context)?;
        }
        let (settings, fragments) = scan.finish().with_context(context)?;
        Ok(Flv { file, settings, fragments })
    }

    /// Numbers the fragments, leaving out numbers where the settings say so; in media that is too short for a
    /// gap, one in the middle.
    fn number(&self, settings: HdsSettings, length_ms: u64) -> Vec<NewFragment> {
        let first_ms = self.fragments.first().map_or(0, |first| first.start_ms);
        let starts = self.fragments.iter().map(|of| of.start_ms.saturating_sub(first_ms));
        let ends = starts.clone().skip(1).chain([length_ms]);
        let of_settings: u64 = self.settings.iter().map(|range| range.length()).sum();
        let count = u32::try_from(self.fragments.len()).unwrap_or(u32::MAX);
        let gap_after =
            settings.gap_after.map(|after| if after < count { after } else { (count / 2).max(1) });
        let mut number = 0;
        let mut numbered = Vec::with_capacity(self.fragments.len());
        for (place, ((start, end), of)) in (0_u32..).zip(starts.zip(ends).zip(&self.fragments)) {
            let is_after_gap = gap_after.is_some_and(|after| place > 0 && place % after == 0);
            number += if is_after_gap { 2 } else { 1 };
            numbered.push(NewFragment {
                number,
                start,
                duration: u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX).max(1),
                media_bytes: of_settings + of.range.length(),
            });
        }
        numbered
    }

    fn write(
        &mut self,
        folders: &[std::path::PathBuf; 2],
        name: &str,
        settings: HdsSettings,
        length_ms: u64,
    ) -> Result<()> {
        let numbered = self.number(settings, length_ms);
        let bootstrap = bootstrap(&numbered, settings.fragments_per_segment);
        let mut bytes = Vec::new();
        bootstrap.write(&mut bytes);
        for folder in folders {
            create(&folder.join(format!("{name}.bootstrap")), &bytes)?;
        }
        let mut place = 0;
        for of_segment in numbered
            .chunk_by(|one, next| bootstrap.segment_of(one.number) == bootstrap.segment_of(next.number))
        {
            let segment = bootstrap.segment_of(of_segment[0].number).context("a fragment has no segment")?;
            self.write_segment(folders, name, segment, &bootstrap, place, of_segment)?;
            place += of_segment.len();
        }
        ensure!(place == self.fragments.len(), "{place} of {} fragments were written", self.fragments.len());
        Ok(())
    }

    /// Writes an archive, its index, and its fragments as files.
    fn write_segment(
        &mut self,
        [archives, files]: &[std::path::PathBuf; 2],
        name: &str,
        segment: u32,
        bootstrap: &Bootstrap,
        place: usize,
        fragments: &[NewFragment],
    ) -> Result<()> {
        let layout = ArchiveLayout::new(bootstrap, fragments);
        let path = archives.join(format!("{name}Seg{segment}.f4f"));
        let context = || format!("cannot write {}", path.display());
        let mut archive = BufWriter::new(File::create(&path).with_context(context)?);
        for (index, (head, fragment)) in layout.heads.iter().zip(fragments).enumerate() {
            let mut body = head.clone();
            let ranges: Vec<ByteRange> =
                self.settings.iter().copied().chain([self.fragments[place + index].range]).collect();
            for range in ranges {
                self.file.seek(SeekFrom::Start(range.first)).with_context(context)?;
                let length = usize::try_from(range.length()).context("a fragment exceeds memory")?;
                let begin = body.len();
                body.resize(begin + length, 0);
                self.file.read_exact(&mut body[begin..]).with_context(context)?;
            }
            archive.write_all(&body).with_context(context)?;
            create(&files.join(format!("{name}{}", fragment_name(segment, fragment.number))), &body)?;
        }
        archive.flush().with_context(context)?;
        let entries = layout.entries(segment, fragments).collect();
        let mut index = Vec::new();
        ArchiveIndex { timescale: TIMESCALE, entries }.write(&mut index);
        create(&archives.join(format!("{name}Seg{segment}.f4x")), &index)
    }
}

fn create(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn bootstrap(fragments: &[NewFragment], fragments_per_segment: u32) -> Bootstrap {
    let spans: Vec<FragmentSpan> = fragments
        .iter()
        .map(|of| FragmentSpan { number: of.number, start: of.start, duration: of.duration })
        .collect();
    let end = fragments.last().map_or(0, |last| last.start + u64::from(last.duration));
    let segments = SegmentTable {
        runs: vec![SegmentRun { first_segment: 1, fragments_per_segment }],
        ..SegmentTable::default()
    };
    let table =
        FragmentTable { timescale: TIMESCALE, runs: runs_of(&spans, true), ..FragmentTable::default() };
    Bootstrap {
        version: 1,
        timescale: TIMESCALE,
        current_time: end,
        segment_tables: vec![segments],
        fragment_tables: vec![table],
        ..Bootstrap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_media_has_a_gap_too() {
        let numbers = |count: u32, gap_after| {
            let range = ByteRange { first: 0, last: 99 };
            let fragment = |place: u32| FlvFragment { start_ms: u64::from(place) * 2_000, range };
            let flv = Flv {
                file: File::open("/dev/null").unwrap(),
                settings: Vec::new(),
                fragments: (0..count).map(fragment).collect(),
            };
            let settings = HdsSettings { fragments_per_segment: 5, gap_after };
            flv.number(settings, u64::from(count) * 2_000).iter().map(|of| of.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(6, Some(10)), [1, 2, 3, 5, 6, 7]);
        assert_eq!(numbers(10, Some(10)), [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]);
        assert_eq!(numbers(12, Some(10)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]);
        assert_eq!((numbers(1, Some(10)), numbers(3, None)), (vec![1], vec![1, 2, 3]));
    }

    #[test]
    fn numbers_are_left_out_and_the_bootstrap_says_so() {
        let range = ByteRange { first: 0, last: 99 };
        let flv = Flv {
            file: File::open("/dev/null").unwrap(),
            settings: vec![range],
            fragments: (0..7).map(|place| FlvFragment { start_ms: 40 + place * 2_000, range }).collect(),
        };
        let settings = HdsSettings { fragments_per_segment: 5, gap_after: Some(3) };
        let numbered = flv.number(settings, 13_000);
        let numbers: Vec<u32> = numbered.iter().map(|of| of.number).collect();
        assert_eq!(numbers, [1, 2, 3, 5, 6, 7, 9]);
        assert_eq!((numbered[6].start, numbered[6].duration, numbered[6].media_bytes), (12_000, 1_000, 200));
        let bootstrap = bootstrap(&numbered, 5);
        let listed: Vec<u32> = bootstrap.fragments().unwrap().iter().map(|of| of.number).collect();
        assert_eq!(listed, numbers);
        assert_eq!(bootstrap.find(4).unwrap(), None);
        assert_eq!(
            [1, 5, 6, 9].map(|number| bootstrap.segment_of(number)),
            [Some(1), Some(1), Some(2), Some(2)]
        );
    }
}
