//! One fragmented MP4: the byte range and the duration of each segment, by its segment index (`sidx`) or by
//! its fragments (`moof`).

use model::media::{ByteRange, TrackKind};

use super::super::error::FormatError;
use super::super::ticks_to_ns;
use super::boxes::{IsoBox, child, children};
use super::scan::TopBox;

/// A fragmented MP4, as far as serving it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentedMp4 {
    /// What a decoder needs first: everything before the first segment.
    pub initialization: ByteRange,
    /// Video if any of its tracks has pictures.
    pub kind: TrackKind,
    /// Its segments in the file's order; at least one.
    pub fragments: Vec<MediaFragment>,
}

/// A segment of a fragmented MP4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaFragment {
    /// Its bytes.
    pub range: ByteRange,
    /// Its media time, in nanoseconds.
    pub start_ns: u64,
    /// How long it plays, in nanoseconds.
    pub duration_ns: u64,
}

/// A segment index (ISO/IEC 14496-12, section 8.16.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentIndex {
    /// The track that it indexes.
    pub reference_id: u32,
    /// Ticks in a second; not 0 in an index that was read.
    pub timescale: u32,
    /// The time of the first segment, in ticks.
    pub earliest_time: u64,
    /// The distance from the end of the index to the first segment, in bytes.
    pub first_offset: u64,
    /// What follows.
    pub references: Vec<SegmentReference>,
}

/// A segment, or another index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentReference {
    /// Its length.
    pub bytes: u64,
    /// How long it plays, in ticks.
    pub duration: u64,
    /// Whether it is another index.
    pub is_index: bool,
}

impl SegmentIndex {
    /// The segments of an index that ends at byte `end` of the file. References to further indexes are
    /// errors: a list of segments cannot contain them.
    ///
    /// # Errors
    /// It refers to another index, or to bytes beyond what a file can have.
    pub fn segments(&self, end: u64) -> Result<Vec<MediaFragment>, FormatError> {
        let too_large = || FormatError::new("a segment of the box `sidx` is empty or ends beyond any file");
        let mut first = end.checked_add(self.first_offset).ok_or_else(too_large)?;
        let mut time = self.earliest_time;
        let mut segments = Vec::with_capacity(self.references.len());
        for reference in &self.references {
            if reference.is_index {
                return Err(FormatError::new(
                    "the box `sidx` refers to further indexes; only an index of segments is supported",
                ));
            }
            let range = ByteRange::of_length(first, reference.bytes).ok_or_else(too_large)?;
            let timescale = self.timescale.into();
            segments.push(MediaFragment {
                range,
                start_ns: ticks_to_ns(time, timescale),
                duration_ns: ticks_to_ns(reference.duration, timescale),
            });
            first = first.checked_add(reference.bytes).ok_or_else(too_large)?;
            time = time.saturating_add(reference.duration);
        }
        Ok(segments)
    }
}

/// Reads a segment index.
///
/// # Errors
/// It is cut off, or its timescale is 0.
pub fn parse_sidx(own: &IsoBox<'_>) -> Result<SegmentIndex, FormatError> {
    let (version, _, mut fields) = own.full()?;
    let (reference_id, timescale) = (fields.u32()?, fields.u32()?);
    if timescale == 0 {
        return Err(own.fault("has a timescale of 0"));
    }
    let is_long = version > 0;
    let (earliest_time, first_offset) = (fields.u32_or_u64(is_long)?, fields.u32_or_u64(is_long)?);
    fields.u16()?;
    let count = fields.u16()?;
    let mut references = Vec::new();
    for _ in 0..count {
        let (kind_and_bytes, duration) = (fields.u32()?, fields.u32()?);
        fields.u32()?;
        references.push(SegmentReference {
            bytes: u64::from(kind_and_bytes & 0x7fff_ffff),
            duration: u64::from(duration),
            is_index: kind_and_bytes >> 31 == 1,
        });
    }
    Ok(SegmentIndex { reference_id, timescale, earliest_time, first_offset, references })
}

/// A track of the movie.
struct MovieTrack {
    id: u32,
    timescale: u32,
    is_video: bool,
    /// The duration of samples whose fragments state none.
    sample_duration: u32,
}

impl FragmentedMp4 {
    /// Describes a file by the boxes at its top.
    ///
    /// # Errors
    /// It has no `moov`, or neither `sidx` nor `moof`; or one of them is damaged.
    pub fn of_boxes(top: &[TopBox]) -> Result<FragmentedMp4, FormatError> {
        let find = |kind: &[u8; 4]| top.iter().position(|own| own.kind.0 == *kind);
        let Some(movie) = find(b"moov") else {
            return Err(FormatError::new("the file has no box `moov`; name an MP4 file or a manifest"));
        };
        let tracks = tracks(&top[movie].as_box())?;
        let kind =
            if tracks.iter().any(|track| track.is_video) { TrackKind::Video } else { TrackKind::Audio };
        let index = find(b"sidx").map(|place| &top[place]);
        let fragments = match index {
            Some(index) => parse_sidx(&index.as_box())?.segments(index.end())?,
            None => fragments(top, &tracks)?,
        };
        let Some(first) = fragments.first() else {
            return Err(FormatError::new(
                "the MP4 file is not fragmented: it has neither `sidx` nor `moof`; write it with \
                 `ffmpeg … -movflags +frag_keyframe+empty_moov`",
            ));
        };
        // The index itself belongs to neither.
        let end = index.map_or(first.range.first, |index| index.start);
        let initialization = ByteRange::of_length(0, end);
        let initialization =
            initialization.ok_or_else(|| FormatError::new("the box `moov` is not before the segments"))?;
        Ok(FragmentedMp4 { initialization, kind, fragments })
    }
}

fn tracks(movie: &IsoBox<'_>) -> Result<Vec<MovieTrack>, FormatError> {
    let mut tracks = Vec::new();
    for track in children(movie).filter(|own| own.kind.0 == *b"trak") {
        let Some(header) = child(&track, b"tkhd") else { continue };
        let (version, _, mut fields) = header.full()?;
        fields.take(if version > 0 { 16 } else { 8 })?;
        let id = fields.u32()?;
        let Some(media) = child(&track, b"mdia") else { continue };
        let Some(header) = child(&media, b"mdhd") else { continue };
        let (version, _, mut fields) = header.full()?;
        fields.take(if version > 0 { 16 } else { 8 })?;
        let timescale = fields.u32()?;
        if timescale == 0 {
            return Err(header.fault("has a timescale of 0"));
        }
        let handler = child(&media, b"hdlr").and_then(|own| own.body.get(8..12));
        tracks.push(MovieTrack { id, timescale, is_video: handler == Some(b"vide"), sample_duration: 0 });
    }
    let defaults = child(movie, b"mvex");
    for own in defaults.iter().flat_map(children).filter(|own| own.kind.0 == *b"trex") {
        let (_, _, mut fields) = own.full()?;
        let id = fields.u32()?;
        fields.u32()?;
        let duration = fields.u32()?;
        let known = tracks.iter_mut().find(|track| track.id == id);
        known.into_iter().for_each(|track| track.sample_duration = duration);
    }
    Ok(tracks)
}

/// A segment for each `moof`: from the end of the one before to the end of its media.
fn fragments(top: &[TopBox], tracks: &[MovieTrack]) -> Result<Vec<MediaFragment>, FormatError> {
    let reference = tracks.iter().find(|track| track.is_video).or(tracks.first());
    let mut found: Vec<MediaFragment> = Vec::new();
    // Where the boxes begin that belong to the next fragment, such as `styp` and `prft`.
    let mut begins = None;
    let mut is_open = false;
    let mut next_start = 0;
    for own in top {
        match &own.kind.0 {
            b"moof" => {
                let (time, ticks) = times(&own.as_box(), tracks, reference)?;
                let timescale = reference.map_or(1, |track| u64::from(track.timescale));
                let start_ns = time.map_or(next_start, |time| ticks_to_ns(time, timescale));
                let duration_ns = ticks_to_ns(ticks, timescale);
                next_start = start_ns.saturating_add(duration_ns);
                let first = begins.take().unwrap_or(own.start);
                let range = ByteRange { first, last: own.end().saturating_sub(1) };
                found.push(MediaFragment { range, start_ns, duration_ns });
                is_open = true;
            }
            b"mdat" if is_open => {
                found.iter_mut().last().into_iter().for_each(|last| last.range.last = own.end() - 1);
            }
            b"styp" | b"prft" | b"emsg" => {
                begins = begins.or(Some(own.start));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The decode time of a fragment, where it states it, and its duration, both in ticks of the reference track.
fn times(
    fragment: &IsoBox<'_>,
    tracks: &[MovieTrack],
    reference: Option<&MovieTrack>,
) -> Result<(Option<u64>, u64), FormatError> {
    for own in children(fragment).filter(|own| own.kind.0 == *b"traf") {
        let Some(header) = child(&own, b"tfhd") else { continue };
        let (_, flags, mut fields) = header.full()?;
        let id = fields.u32()?;
        if reference.is_some_and(|track| track.id != id) {
            continue;
        }
        fields.take(if flags & 0x1 != 0 { 8 } else { 0 } + if flags & 0x2 != 0 { 4 } else { 0 })?;
        let default = tracks.iter().find(|track| track.id == id).map_or(0, |track| track.sample_duration);
        let default = if flags & 0x8 != 0 { fields.u32()? } else { default };
        let time = child(&own, b"tfdt").map(|own| {
            let (version, _, mut fields) = own.full()?;
            fields.u32_or_u64(version > 0)
        });
        let mut ticks = 0_u64;
        for run in children(&own).filter(|own| own.kind.0 == *b"trun") {
            ticks = ticks.saturating_add(run_duration(&run, default)?);
        }
        return Ok((time.transpose()?, ticks));
    }
    Ok((None, 0))
}

/// The duration of the samples of a run, in ticks.
fn run_duration(run: &IsoBox<'_>, default: u32) -> Result<u64, FormatError> {
    const DURATION: u32 = 0x100;
    let (_, flags, mut fields) = run.full()?;
    let count = fields.u32()?;
    for flag in [0x1, 0x4] {
        fields.take(if flags & flag != 0 { 4 } else { 0 })?;
    }
    if flags & DURATION == 0 {
        return Ok(u64::from(count).saturating_mul(default.into()));
    }
    let others = (flags & 0xe00).count_ones() as usize * 4;
    let mut ticks = 0_u64;
    for _ in 0..count {
        ticks = ticks.saturating_add(fields.u32()?.into());
        fields.take(others)?;
    }
    Ok(ticks)
}

#[cfg(test)]
mod tests {
    use super::super::{boxes, scan, write_box, write_full_box, write_sidx};
    use super::*;

    fn movie(out: &mut Vec<u8>) {
        write_box(out, b"ftyp", |body| body.extend(b"cmf2\0\0\0\0"));
        write_box(out, b"moov", |movie| {
            for (id, handler, timescale) in [(1_u32, b"soun", 48_000_u32), (2, b"vide", 25)] {
                write_box(movie, b"trak", |track| {
                    write_full_box(track, b"tkhd", 0, 3, |body| {
                        body.extend([0; 8]);
                        body.extend(id.to_be_bytes());
                    });
                    write_box(track, b"mdia", |media| {
                        write_full_box(media, b"mdhd", 1, 0, |body| {
                            body.extend([0; 16]);
                            body.extend(timescale.to_be_bytes());
                        });
                        write_full_box(media, b"hdlr", 0, 0, |body| {
                            body.extend([0; 4]);
                            body.extend(handler);
                        });
                    });
                });
            }
            write_box(movie, b"mvex", |body| {
                write_full_box(body, b"trex", 0, 0, |body| {
                    body.extend([0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
                });
            });
        });
    }

    fn fragment(out: &mut Vec<u8>, time: u64, samples: &[u32], payload: usize) {
        write_box(out, b"styp", |body| body.extend(b"msdh"));
        write_box(out, b"moof", |moof| {
            write_box(moof, b"traf", |traf| {
                write_full_box(traf, b"tfhd", 0, 0x2_0000, |body| body.extend(1_u32.to_be_bytes()));
            });
            write_box(moof, b"traf", |traf| {
                write_full_box(traf, b"tfhd", 0, 0x2_0000, |body| body.extend(2_u32.to_be_bytes()));
                write_full_box(traf, b"tfdt", 1, 0, |body| body.extend(time.to_be_bytes()));
                write_full_box(traf, b"trun", 0, 0x301, |body| {
                    body.extend(u32::try_from(samples.len()).unwrap().to_be_bytes());
                    body.extend([0; 4]);
                    for duration in samples {
                        body.extend(duration.to_be_bytes());
                        body.extend([0; 4]);
                    }
                });
                // Without durations, those of `trex` count.
                write_full_box(traf, b"trun", 0, 0, |body| body.extend(5_u32.to_be_bytes()));
            });
        });
        write_box(out, b"mdat", |body| body.extend(vec![0; payload]));
    }

    #[test]
    fn fragments_have_ranges_and_durations() {
        let mut file = Vec::new();
        movie(&mut file);
        let first = file.len() as u64;
        fragment(&mut file, 50, &[10, 10], 100);
        let second = file.len() as u64;
        fragment(&mut file, 75, &[45], 7);
        let found = FragmentedMp4::of_boxes(&scan(&file).unwrap()).unwrap();
        assert_eq!(found.kind, TrackKind::Video);
        assert_eq!(found.initialization, ByteRange { first: 0, last: first - 1 });
        let of = |first, last, start_ns, duration_ns| MediaFragment {
            range: ByteRange { first, last },
            start_ns,
            duration_ns,
        };
        let expected = [
            of(first, second - 1, 2_000_000_000, 1_000_000_000),
            of(second, file.len() as u64 - 1, 3_000_000_000, 2_000_000_000),
        ];
        assert_eq!(found.fragments, expected);
    }

    #[test]
    fn an_index_is_written_and_read() {
        let reference = |bytes, duration| SegmentReference { bytes, duration, is_index: false };
        let index = SegmentIndex {
            reference_id: 2,
            timescale: 90_000,
            earliest_time: 90_000,
            first_offset: 6,
            references: vec![reference(1_000, 180_000), reference(500, 90_000)],
        };
        let mut bytes = Vec::new();
        write_sidx(&mut bytes, &index);
        let own = boxes(&bytes, 1_000).next().unwrap().unwrap();
        assert_eq!(parse_sidx(&own).unwrap(), index);
        let segments = index.segments(1_000 + bytes.len() as u64).unwrap();
        let begin = 1_006 + bytes.len() as u64;
        assert_eq!(segments[1].range, ByteRange { first: begin + 1_000, last: begin + 1_499 });
        assert_eq!((segments[1].start_ns, segments[1].duration_ns), (3_000_000_000, 1_000_000_000));

        let mut file = Vec::new();
        movie(&mut file);
        let init = file.len() as u64;
        file.extend(&bytes);
        file.extend(vec![0; 6]);
        let end = file.len();
        // The six bytes between the index and its first segment, and the segments, are one box here.
        file[end - 6..].copy_from_slice(&[0, 0, 0, 0, b'm', b'd']);
        file.extend(b"at");
        let found = FragmentedMp4::of_boxes(&scan(&file).unwrap()).unwrap();
        assert_eq!((found.initialization.last, found.fragments.len()), (init - 1, 2));
    }

    #[test]
    fn files_without_fragments_are_refused() {
        let mut file = Vec::new();
        movie(&mut file);
        write_box(&mut file, b"mdat", |body| body.extend([0; 9]));
        let error = FragmentedMp4::of_boxes(&scan(&file).unwrap()).unwrap_err().to_string();
        assert!(error.contains("is not fragmented"), "{error}");
        let error = scan(&file[..file.len() - 1]).unwrap_err().to_string();
        assert!(error.contains("the box `mdat` of 17 bytes exceeds the file by 1"), "{error}");
        let error = FragmentedMp4::of_boxes(&[]).unwrap_err().to_string();
        assert!(error.contains("no box `moov`"), "{error}");
    }
}
