//! The lengths of the files of media by their paths.

use std::collections::BTreeMap;

use super::{Media, MediaSource};

/// The lengths of the files of several media.
#[derive(Clone, Debug, Default)]
pub struct MediaLengths<'m>(BTreeMap<&'m str, (&'m Media, BTreeMap<&'m str, u64>)>);

impl<'m> MediaLengths<'m> {
    /// The lengths of all files of these media.
    pub fn of(media: &'m [Media]) -> MediaLengths<'m> {
        let lengths = |media: &'m Media| match &media.source {
            MediaSource::Modelled(_) | MediaSource::Feed(_) | MediaSource::Site(_) => media.files(),
            MediaSource::Folder(of) => of.files.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect(),
        };
        MediaLengths(media.iter().map(|media| (media.name.as_str(), (media, lengths(media)))).collect())
    }

    /// The length of the file at a path, in bytes, also of a title of a library; `None` if it is not a file
    /// of the media, or if its length is unknown.
    pub fn bytes_of(&self, path: &str) -> Option<u64> {
        let (media, lengths) = self.0.get(Media::name_in(path)?)?;
        lengths.get(media.without_title(path)?.as_ref()).copied()
    }
}
