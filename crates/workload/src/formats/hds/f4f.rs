//! Archives of fragments (F4F) and their indexes (F4X).
//!
//! A segment is one file: for each of its fragments the boxes `afra`, `abst` (in the first), `moof` and
//! `mdat`, with FLV tags in `mdat`. The index is one box `afra` whose global entries say where each fragment
//! begins.

use model::media::ByteRange;

use super::super::error::FormatError;
use super::super::isobmff::{IsoBox, TopBox, boxes, child, write_box, write_full_box};
use super::bootstrap::Bootstrap;

/// The most entries of an index.
const MOST_ENTRIES: u32 = 1_000_000;
const LONG_IDS: u8 = 0x80;
const LONG_OFFSETS: u8 = 0x40;
const GLOBAL_ENTRIES: u8 = 0x20;

/// A fragment in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedFragment {
    /// Its number.
    pub number: u32,
    /// Its bytes in the archive, as a server sends them.
    pub range: ByteRange,
}

/// Where a fragment is, by an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// When it begins, in ticks of the index.
    pub time: u64,
    /// The segment whose file contains it.
    pub segment: u32,
    /// Its number.
    pub fragment: u32,
    /// Where it begins in that file.
    pub offset: u64,
}

/// An index of archives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveIndex {
    /// Ticks in a second.
    pub timescale: u32,
    /// The fragments in the order of the index.
    pub entries: Vec<IndexEntry>,
}

/// A fragment to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFragment {
    /// Its number.
    pub number: u32,
    /// When it begins, in ticks.
    pub start: u64,
    /// How long it plays, in ticks.
    pub duration: u32,
    /// The length of its media.
    pub media_bytes: u64,
}

/// What is before the media of each fragment of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveLayout {
    /// The boxes before each fragment's media, and the header of `mdat`.
    pub heads: Vec<Vec<u8>>,
    /// Each fragment's place in the file.
    pub fragments: Vec<ArchivedFragment>,
}

/// The fragments of an archive, by the boxes at its top (see [`super::super::isobmff::Scan`]).
///
/// # Errors
/// A `moof` is damaged, or there is none.
pub fn fragments(top: &[TopBox]) -> Result<Vec<ArchivedFragment>, FormatError> {
    let mut found: Vec<ArchivedFragment> = Vec::new();
    // Where the boxes begin that belong to the next fragment.
    let mut begins = None;
    for own in top {
        match &own.kind.0 {
            b"afra" | b"abst" => begins = begins.or(Some(own.start)),
            b"moof" => {
                let first = begins.take().unwrap_or(own.start);
                let range = ByteRange { first, last: own.end().saturating_sub(1) };
                found.push(ArchivedFragment { number: sequence_number(&own.as_box())?, range });
            }
            b"mdat" => {
                let last = found.iter_mut().last().filter(|_| begins.is_none());
                last.into_iter().for_each(|last| last.range.last = own.end().saturating_sub(1));
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return Err(FormatError::new("the archive has no box `moof`, so no fragment; name an F4F file"));
    }
    Ok(found)
}

fn sequence_number(fragment: &IsoBox<'_>) -> Result<u32, FormatError> {
    let header = child(fragment, b"mfhd").ok_or_else(|| fragment.fault("has no box `mfhd`"))?;
    let (_, _, mut fields) = header.full()?;
    fields.u32()
}

impl ArchiveIndex {
    /// Reads an index: the box `afra` with global entries.
    ///
    /// # Errors
    /// There is none, or it is damaged or has more entries than bytes.
    pub fn parse(bytes: &[u8]) -> Result<ArchiveIndex, FormatError> {
        let first = boxes(bytes, 0).find(|own| own.as_ref().is_ok_and(|own| own.kind.0 == *b"afra"));
        let Some(own) = first else {
            return Err(FormatError::new("the index has no box `afra`; name an F4X file"));
        };
        let own = own?;
        let (_, _, mut fields) = own.full()?;
        let bits = fields.u8()?;
        let timescale = fields.u32()?;
        let is_long = bits & LONG_OFFSETS != 0;
        for _ in 0..entry_count(&own, fields.u32()?)? {
            fields.u64()?;
            fields.u32_or_u64(is_long)?;
        }
        let mut entries = Vec::new();
        let count = if bits & GLOBAL_ENTRIES != 0 { entry_count(&own, fields.u32()?)? } else { 0 };
        for _ in 0..count {
            let time = fields.u64()?;
            let (segment, fragment) = match bits & LONG_IDS {
                0 => (fields.u16()?.into(), fields.u16()?.into()),
                _ => (fields.u32()?, fields.u32()?),
            };
            let offset = fields.u32_or_u64(is_long)?;
            fields.u32_or_u64(is_long)?;
            entries.push(IndexEntry { time, segment, fragment, offset });
        }
        Ok(ArchiveIndex { timescale, entries })
    }

    /// The index as a box with long numbers and offsets.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"afra", 0, 0, |body| {
            body.push(LONG_IDS | LONG_OFFSETS | GLOBAL_ENTRIES);
            body.extend(self.timescale.to_be_bytes());
            body.extend(0_u32.to_be_bytes());
            body.extend(model::number::small(self.entries.len()).to_be_bytes());
            for entry in &self.entries {
                body.extend(entry.time.to_be_bytes());
                body.extend(entry.segment.to_be_bytes());
                body.extend(entry.fragment.to_be_bytes());
                body.extend(entry.offset.to_be_bytes());
                // The fragment's own `afra` is its first box.
                body.extend(0_u64.to_be_bytes());
            }
        });
    }
}

/// The number of entries of a table; more than its bytes fail when they are read.
fn entry_count(own: &IsoBox<'_>, count: u32) -> Result<u32, FormatError> {
    if count > MOST_ENTRIES {
        return Err(own.fault(&format!("has {count} entries, more than {MOST_ENTRIES}")));
    }
    Ok(count)
}

impl ArchiveLayout {
    /// The layout of a segment's file: its fragments follow each other, and the first contains the bootstrap.
    pub fn new(bootstrap: &Bootstrap, fragments: &[NewFragment]) -> ArchiveLayout {
        let mut layout = ArchiveLayout::default();
        let mut offset = 0_u64;
        for (place, fragment) in fragments.iter().enumerate() {
            let with = (place == 0).then_some(bootstrap);
            let head = fragment_head(bootstrap.timescale, fragment, with);
            let length = (head.len() as u64).saturating_add(fragment.media_bytes);
            layout.heads.push(head);
            let range = ByteRange { first: offset, last: offset.saturating_add(length - 1) };
            layout.fragments.push(ArchivedFragment { number: fragment.number, range });
            offset = offset.saturating_add(length);
        }
        layout
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.fragments.last().map_or(0, |last| last.range.last + 1)
    }

    /// The entries of the index for this segment.
    pub fn entries<'a>(
        &'a self,
        segment: u32,
        fragments: &'a [NewFragment],
    ) -> impl Iterator<Item = IndexEntry> + 'a {
        self.fragments.iter().zip(fragments).map(move |(archived, fragment)| IndexEntry {
            time: fragment.start,
            segment,
            fragment: fragment.number,
            offset: archived.range.first,
        })
    }
}

/// The boxes of a fragment up to its media: `afra`, `abst` if it has one, `moof`, and the header of `mdat`.
pub fn fragment_head(timescale: u32, fragment: &NewFragment, bootstrap: Option<&Bootstrap>) -> Vec<u8> {
    let mut rest = Vec::new();
    bootstrap.into_iter().for_each(|bootstrap| bootstrap.write(&mut rest));
    write_box(&mut rest, b"moof", |body| write_fragment(body, fragment));
    match u32::try_from(fragment.media_bytes.saturating_add(8)) {
        Ok(size) => {
            rest.extend(size.to_be_bytes());
            rest.extend(b"mdat");
        }
        Err(_) => {
            rest.extend(1_u32.to_be_bytes());
            rest.extend(b"mdat");
            rest.extend(fragment.media_bytes.saturating_add(16).to_be_bytes());
        }
    }
    let mut head = Vec::new();
    // One random access point: the first sample. Its offset counts from the beginning of `afra`.
    write_full_box(&mut head, b"afra", 0, 0, |body| {
        const OWN_BYTES: u64 = 8 + 4 + 1 + 4 + 4 + 16;
        body.push(LONG_IDS | LONG_OFFSETS);
        body.extend(timescale.to_be_bytes());
        body.extend(1_u32.to_be_bytes());
        body.extend(fragment.start.to_be_bytes());
        body.extend((OWN_BYTES + rest.len() as u64).to_be_bytes());
    });
    head.extend(rest);
    head
}

/// The content of `moof`: one track whose only sample is the media.
fn write_fragment(out: &mut Vec<u8>, fragment: &NewFragment) {
    const TRACK: u32 = 1;
    write_full_box(out, b"mfhd", 0, 0, |body| body.extend(fragment.number.to_be_bytes()));
    write_box(out, b"traf", |track| {
        write_full_box(track, b"tfhd", 0, 0x8, |body| {
            body.extend(TRACK.to_be_bytes());
            body.extend(fragment.duration.to_be_bytes());
        });
        write_full_box(track, b"trun", 0, 0x200, |body| {
            body.extend(1_u32.to_be_bytes());
            body.extend(u32::try_from(fragment.media_bytes).unwrap_or(u32::MAX).to_be_bytes());
        });
    });
}

/// The media of a fragment: the bytes of its `mdat`.
///
/// # Errors
/// It is damaged or has no `mdat`.
pub fn media(fragment: &[u8]) -> Result<&[u8], FormatError> {
    for own in boxes(fragment, 0) {
        let own = own?;
        if own.kind.0 == *b"mdat" {
            return Ok(own.body);
        }
    }
    Err(FormatError::new("the fragment has no box `mdat`"))
}

#[cfg(test)]
mod tests {
    use super::super::super::isobmff::scan;
    use super::*;

    fn fragment(number: u32, start: u64, media_bytes: u64) -> NewFragment {
        NewFragment { number, start, duration: 4_000, media_bytes }
    }

    #[test]
    fn an_archive_is_written_and_read() {
        let bootstrap = Bootstrap { timescale: 1_000, ..Bootstrap::default() };
        // Number 3 does not exist.
        let fragments_of = [fragment(1, 0, 100), fragment(2, 4_000, 0), fragment(4, 12_000, 7)];
        let layout = ArchiveLayout::new(&bootstrap, &fragments_of);
        let mut file = Vec::new();
        for (head, fragment) in layout.heads.iter().zip(&fragments_of) {
            file.extend(head);
            file.extend(vec![
                u8::try_from(fragment.number).unwrap();
                fragment.media_bytes.try_into().unwrap()
            ]);
        }
        assert_eq!(layout.file_bytes(), file.len() as u64);
        assert_eq!(fragments(&scan(&file).unwrap()).unwrap(), layout.fragments);
        let cut = |place: usize| {
            let range = layout.fragments[place].range;
            &file[range.first.try_into().unwrap()..=range.last.try_into().unwrap()]
        };
        assert_eq!(media(cut(0)).unwrap(), [1; 100]);
        assert_eq!(media(cut(2)).unwrap(), [4; 7]);
        assert_eq!(Bootstrap::parse(cut(0)).unwrap(), bootstrap);
        assert!(Bootstrap::parse(cut(1)).is_err(), "only the first has the bootstrap");
        // The random access point is the first byte of the media.
        let point = u64::from_be_bytes(cut(2)[29..37].try_into().unwrap());
        assert_eq!(point, cut(2).len() as u64 - 7);

        let index = ArchiveIndex { timescale: 1_000, entries: layout.entries(1, &fragments_of).collect() };
        let mut bytes = Vec::new();
        index.write(&mut bytes);
        assert_eq!(ArchiveIndex::parse(&bytes).unwrap(), index);
        let last = index.entries[2];
        assert_eq!((last.segment, last.fragment, last.time), (1, 4, 12_000));
        assert_eq!(last.offset, layout.fragments[2].range.first);
    }

    #[test]
    fn large_media_have_a_long_header() {
        let head = fragment_head(1_000, &fragment(1, 0, 5 << 30), None);
        assert_eq!(head[head.len() - 16..head.len() - 8], *b"\0\0\0\x01mdat");
        assert_eq!(head[head.len() - 8..], ((5_u64 << 30) + 16).to_be_bytes());
    }

    #[test]
    fn short_numbers_and_offsets_are_read() {
        let mut bytes = Vec::new();
        write_full_box(&mut bytes, b"afra", 0, 0, |body| {
            body.push(GLOBAL_ENTRIES);
            body.extend(90_000_u32.to_be_bytes());
            body.extend([0, 0, 0, 1]);
            body.extend([9; 12]);
            body.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0]);
        });
        let index = ArchiveIndex::parse(&bytes).unwrap();
        assert_eq!(index.timescale, 90_000);
        assert_eq!(index.entries, [IndexEntry { time: 5, segment: 2, fragment: 7, offset: 256 }]);
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let error = fragments(&[]).unwrap_err().to_string();
        assert!(error.contains("no box `moof`"), "{error}");
        let error = ArchiveIndex::parse(b"\0\0\0\x08free").unwrap_err().to_string();
        assert!(error.contains("no box `afra`"), "{error}");
        let mut bytes = Vec::new();
        write_full_box(&mut bytes, b"afra", 0, 0, |body| body.extend([0, 0, 0, 0, 1, 255, 255, 255, 255]));
        let error = ArchiveIndex::parse(&bytes).unwrap_err().to_string();
        assert!(error.contains("has 4294967295 entries"), "{error}");
    }
}
