//! Segments that are cut out of archives when they are requested: fragments of HDS by the bootstrap, and
//! segments of HLS and DASH out of one fragmented MP4.

use std::fs::File;

use anyhow::{Context, anyhow};
use http::{HeaderMap, HeaderValue, StatusCode};
use model::media::ByteRange;
use rustix::io::Errno;

use super::archive_part::{ArchivePart, archive_index, bootstrap};
use super::indexes::{Index, Indexes};
use crate::answer::Answer;
use crate::config::JustInTime;
use crate::faults::Faults;
use crate::files::{F4F, FilePath, Root, read};

const SEGMENT: HeaderValue = HeaderValue::from_static("video/iso.segment");
const MP4: HeaderValue = HeaderValue::from_static("video/mp4");

/// Cuts parts out of archives.
pub(crate) struct Cutter {
    indexes: Indexes,
    /// The status for what does not exist.
    missing: StatusCode,
}

/// Why a part cannot be cut.
enum Problem {
    /// The index does not have it.
    NotListed,
    /// There is no archive, so the path is one of a file.
    NoArchive,
    /// The process has no resources to open a file.
    Overload,
    /// The files contradict each other or cannot be read.
    Fault(anyhow::Error),
}

/// An open archive.
struct Archive {
    file: File,
    bytes: u64,
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Problem::Fault(error)
    }
}

impl Cutter {
    pub(crate) fn new(config: JustInTime) -> anyhow::Result<Self> {
        let missing = StatusCode::from_u16(config.missing_status)?;
        Ok(Cutter { indexes: Indexes::new(config.keeps_indexes), missing })
    }

    /// The part that a path names, as an answer; `None` if the path is one of a file. Blocks on disk access.
    pub(crate) fn answer(
        &self,
        root: &Root,
        path: &str,
        fields: &HeaderMap,
        faults: &Faults,
    ) -> Option<Answer> {
        let part = ArchivePart::parse(path)?;
        let cut = match &part {
            ArchivePart::Fragment { media, segment, fragment } => {
                self.fragment(root, &part, media, *segment, *fragment)
            }
            ArchivePart::Segment { .. } | ArchivePart::Initialization { .. } => self.segment(root, &part),
        };
        let cut = cut.and_then(|(archive, range, media_type)| match range.last < archive.bytes {
            true => Ok((archive, range, media_type)),
            false => Err(Problem::Fault(anyhow!(
                "{} ends at byte {}, before the end of this part at byte {}; package it again",
                part.archive(),
                archive.bytes,
                range.last
            ))),
        });
        match cut {
            Ok((archive, range, media_type)) => {
                Some(read(archive.file, range.first, range.length(), media_type, fields).for_media(path))
            }
            Err(Problem::NoArchive) => None,
            Err(Problem::NotListed) => Some(Answer::status(self.missing)),
            Err(Problem::Overload) => Some(Answer::status(StatusCode::SERVICE_UNAVAILABLE)),
            Err(Problem::Fault(error)) => {
                faults.note(format!("/{path}: {error:#}"));
                Some(Answer::status(StatusCode::INTERNAL_SERVER_ERROR))
            }
        }
    }

    /// Looks a fragment up in the bootstrap, then in its archive.
    fn fragment(
        &self,
        root: &Root,
        part: &ArchivePart,
        media: &str,
        segment: u32,
        fragment: u32,
    ) -> Result<(Archive, ByteRange, HeaderValue), Problem> {
        let path = bootstrap(media);
        let index = self.indexes.get(&path, || {
            let Archive { file, bytes } = open(root, &path)?.ok_or(Problem::NotListed)?;
            Index::read_bootstrap(&file, bytes).with_context(|| path.clone()).map_err(Problem::Fault)
        })?;
        let Index::Bootstrap(fragments) = &*index else { return Err(Problem::NotListed) };
        let place = fragments.binary_search_by_key(&fragment, |(number, _)| *number);
        if !place.is_ok_and(|place| fragments[place].1 == segment) {
            return Err(Problem::NotListed);
        }
        let name = part.archive();
        let archive = open(root, &name)?;
        let archive = archive.with_context(|| format!("the bootstrap lists it, but there is no {name}"))?;
        let index = self.indexes.get(&name, || {
            let index = archive_index(media, segment);
            match open(root, &index)? {
                Some(Archive { file, bytes }) => {
                    Index::read_archive_index(&file, bytes, segment, archive.bytes).context(index)
                }
                None => Index::scan_archive(&archive.file, archive.bytes).with_context(|| name.clone()),
            }
            .map_err(Problem::Fault)
        })?;
        let Index::Archive(archived) = &*index else { return Err(Problem::NotListed) };
        let found = archived.iter().find(|archived| archived.number == fragment);
        let found =
            found.with_context(|| format!("the bootstrap lists it, but {name} does not contain it"))?;
        Ok((archive, found.range, F4F))
    }

    /// Looks a segment up in the index of its MP4 file.
    fn segment(&self, root: &Root, part: &ArchivePart) -> Result<(Archive, ByteRange, HeaderValue), Problem> {
        let name = part.archive();
        let archive = open(root, &name)?.ok_or(Problem::NoArchive)?;
        let index = self.indexes.get(&name, || {
            let index = Index::scan_mp4(&archive.file, archive.bytes);
            index.with_context(|| name.clone()).map_err(Problem::Fault)
        })?;
        let Index::Mp4(file) = &*index else { return Err(Problem::NotListed) };
        let (range, media_type) = match part {
            ArchivePart::Segment { number, .. } => {
                let place = number.checked_sub(1).ok_or(Problem::NotListed)?;
                let segment = file.fragments.get(place as usize).ok_or(Problem::NotListed)?;
                (segment.range, SEGMENT)
            }
            ArchivePart::Initialization { .. } | ArchivePart::Fragment { .. } => (file.initialization, MP4),
        };
        Ok((archive, range, media_type))
    }
}

/// Opens a file below the root; `None` where there is none.
fn open(root: &Root, path: &str) -> Result<Option<Archive>, Problem> {
    let Ok(path) = FilePath::of_decoded(path) else { return Ok(None) };
    match root.find(&path) {
        Ok((file, bytes, false)) => Ok(Some(Archive { file, bytes })),
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Err(Problem::Overload),
        Ok((_, _, true)) | Err(_) => Ok(None),
    }
}
