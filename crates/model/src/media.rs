//! Media as manifests describe them: tracks, their representations, and the segments of these.
//!
//! DASH calls a track an adaptation set (ISO/IEC 23009-1), HLS a rendition group or the variant streams (RFC
//! 8216). All readers of manifests produce these types, and everything that plays or serves media uses them.

mod hds;
mod lengths;
mod modelled;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::named;
use crate::number::float;
use crate::units::{counted, format_bytes, format_ns, format_rate};
use crate::url::Url;

pub use hds::HdsModel;
pub use lengths::MediaLengths;
pub use modelled::{MediaModel, RepresentationModel, SceneModel, TrackModel, segment_bytes};

/// Media under the name by which a study refers to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Media {
    /// The name.
    pub name: String,
    /// Its tracks and segments.
    pub presentation: Presentation,
    /// Where its bytes come from.
    pub source: MediaSource,
    /// A library: copies with the same bytes at `/media/NAME/1/` to `/media/NAME/TITLES/`; 0 without.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub titles: u32,
    /// Of a live stream, which repeats the presentation: how long segments stay available, in nanoseconds;
    /// `None` on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_window_ns: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(titles: &u32) -> bool {
    *titles == 0
}

/// Where the bytes of media come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MediaSource {
    /// Servers make them: segments of a seeded size distribution.
    Modelled(MediaModel),
    /// Files that exist, which servers serve as they are.
    Folder(MediaFolder),
    /// A live stream that ffmpeg feeds to the server, which cuts its segments.
    Feed(MediaFeed),
    /// A site that has them already; nothing is served.
    Site(MediaSite),
}

/// Media of a site, by the manifest that it had when the study was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaSite {
    /// The manifest, as the study names it.
    pub manifest: Url,
    /// Where all segments are: paths of the presentation are on this origin.
    pub origin: String,
}

/// Media that ffmpeg sends to the server over RTMP, in real time and again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaFeed {
    /// What is sent.
    pub folder: MediaFolder,
    /// How long a segment is at least, in nanoseconds; it ends before the next key frame.
    pub segment_ns: u64,
}

impl MediaFeed {
    /// A playlist has this many segments before a player begins: players begin at most three segments before
    /// its end (RFC 8216, section 6.3.3).
    pub const LEAST_SEGMENTS: u16 = 3;

    /// How long the server needs for these segments, in nanoseconds.
    pub fn first_segments_ns(&self) -> u64 {
        self.segment_ns.saturating_mul(MediaFeed::LEAST_SEGMENTS.into())
    }
}

/// The files of media, below `/media/NAME/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaFolder {
    /// The folder.
    pub folder: String,
    /// The manifest that the presentation is from, relative to the folder.
    pub manifest: String,
    /// All files by their paths in URLs, with their lengths in bytes.
    pub files: BTreeMap<String, u64>,
}

/// Media on demand, or the part of a live stream that its manifest lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presentation {
    /// The tracks; a player fetches one representation of each at a time.
    pub tracks: Vec<Track>,
}

/// Representations of the same content, between which a player may change at every segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// What it contains.
    pub kind: TrackKind,
    /// The duration of each segment, in nanoseconds; the same in every representation.
    pub durations_ns: Vec<u64>,
    /// The representations, ascending by bit rate; at least one.
    pub representations: Vec<Representation>,
}

named! { "a kind of track";
    /// What a track contains.
    #[derive(Default)]
    pub enum TrackKind {
        /// Sound.
        Audio = "audio",
        /// Pictures, or pictures with sound in the same segments.
        #[default]
        Video = "video",
    }
}

/// One encoding of a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Representation {
    /// Its name in the manifest.
    pub name: String,
    /// Its bit rate as the manifest states it, in bit/s of media.
    pub bits_per_s: u64,
    /// What a decoder needs before the first segment; `None` if each segment is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Segment>,
    /// What it needs instead before later segments, ascending: those of later periods, or after a changed
    /// `EXT-X-MAP`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_initializations: Vec<LaterInitialization>,
    /// The segments, as many as the track has durations.
    pub segments: Vec<Segment>,
}

/// What a decoder needs from a segment of a representation on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterInitialization {
    /// The first segment that needs it, counted from 0; not 0.
    pub first_segment: usize,
    /// The resource.
    pub resource: Segment,
}

/// One segment, as it is requested.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// The path on the manifest's origin, or the absolute URL if it is elsewhere.
    pub url: String,
    /// The bytes of the resource that it occupies; `None` for the whole resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
    /// Its length in bytes; `None` if unknown before it arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A range of bytes, both ends included (RFC 9110, section 14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ByteRange {
    /// The first byte, counted from 0.
    pub first: u64,
    /// The last byte; not before the first.
    pub last: u64,
}

impl ByteRange {
    /// The range of `length` bytes from `first`; `None` if it is empty or exceeds the numbers.
    pub fn of_length(first: u64, length: u64) -> Option<ByteRange> {
        let last = first.checked_add(length.checked_sub(1)?)?;
        Some(ByteRange { first, last })
    }

    /// Its length in bytes.
    pub const fn length(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

impl std::fmt::Display for ByteRange {
    /// The value of a `Range` field, such as `bytes=0-499`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bytes={}-{}", self.first, self.last)
    }
}

impl Media {
    /// Media of a model.
    pub fn modelled(name: &str, model: MediaModel) -> Media {
        let presentation = model.presentation(name);
        let source = MediaSource::Modelled(model);
        Media { name: name.to_owned(), presentation, source, titles: 0, live_window_ns: None }
    }

    /// The media of a folder as a live stream that is fed to the server, with segments of at least
    /// `segment_ns` that stay available for `window_ns`. Other media stay as they are.
    #[must_use]
    pub fn fed(self, segment_ns: u64, window_ns: u64) -> Media {
        match self.source {
            MediaSource::Folder(folder) => Media {
                source: MediaSource::Feed(MediaFeed { folder, segment_ns }),
                live_window_ns: Some(window_ns),
                ..self
            },
            source => Media { source, ..self },
        }
    }

    /// How its fragments are numbered for HDS, if they are.
    pub fn hds(&self) -> Option<&HdsModel> {
        match &self.source {
            MediaSource::Modelled(model) => model.hds.as_ref(),
            MediaSource::Folder(_) | MediaSource::Feed(_) | MediaSource::Site(_) => None,
        }
    }

    /// A path of its folder or of one of its titles as that of its folder; `None` for other paths.
    pub fn without_title<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        let file = path.strip_prefix("/media/")?.strip_prefix(self.name.as_str())?.strip_prefix('/')?;
        let title = file.split_once('/').filter(|(title, _)| {
            let is_written_so = title.bytes().all(|byte| byte.is_ascii_digit()) && !title.starts_with('0');
            is_written_so && title.parse().is_ok_and(|title: u32| (1..=self.titles).contains(&title))
        });
        Some(match title {
            Some((_, file)) => Cow::Owned(format!("{}{file}", self.folder())),
            None => Cow::Borrowed(path),
        })
    }

    /// The paths of all segments; with [random parts](crate::url_pattern) that stand for the titles of a
    /// library.
    pub fn segment_paths(&self) -> Vec<String> {
        let folder = self.folder();
        let segments = self.presentation.tracks.iter().flat_map(|track| &track.representations);
        let paths = segments.flat_map(|of| &of.segments).map(|segment| segment.url.as_str());
        let of_library = |path: &str| match path.strip_prefix(folder.as_str()) {
            Some(file) if self.titles > 0 => format!("{folder}{{random:1-{}}}/{file}", self.titles),
            _ => path.to_owned(),
        };
        paths.map(of_library).collect()
    }

    /// The folder of its files in URLs, such as `/media/film/`.
    pub fn folder(&self) -> String {
        format!("/media/{}/", self.name)
    }

    /// The name of the media that a path below `/media/` belongs to.
    pub fn name_in(path: &str) -> Option<&str> {
        path.strip_prefix("/media/")?.split_once('/').map(|(name, _)| name)
    }

    /// The feed of a live stream, if ffmpeg sends it.
    pub const fn feed(&self) -> Option<&MediaFeed> {
        match &self.source {
            MediaSource::Feed(feed) => Some(feed),
            MediaSource::Modelled(_) | MediaSource::Folder(_) | MediaSource::Site(_) => None,
        }
    }

    /// The site that has it, if it is media of one.
    pub const fn site(&self) -> Option<&MediaSite> {
        match &self.source {
            MediaSource::Site(site) => Some(site),
            MediaSource::Modelled(_) | MediaSource::Folder(_) | MediaSource::Feed(_) => None,
        }
    }

    /// The lengths of the whole resources that the study's servers have of it by their paths, in bytes. The
    /// segments of a feed are known only while it runs, those of a site are there.
    pub fn files(&self) -> BTreeMap<&str, u64> {
        match self.source {
            MediaSource::Feed(_) | MediaSource::Site(_) => BTreeMap::new(),
            MediaSource::Modelled(_) | MediaSource::Folder(_) => self.presentation.files(),
        }
    }

    /// The paths of its manifests on the study's servers: DASH, HLS, and an HLS playlist for each
    /// representation; of a feed the playlist that the server writes.
    pub fn manifests(&self) -> Vec<String> {
        match &self.source {
            MediaSource::Modelled(_) => {
                let folder = self.folder();
                if self.hds().is_some() {
                    return ["manifest.f4m", "index.bootstrap"].map(|file| format!("{folder}{file}")).into();
                }
                let of_all = ["manifest.mpd", "main.m3u8"].map(|file| format!("{folder}{file}"));
                let representations =
                    self.presentation.tracks.iter().flat_map(|track| &track.representations);
                let first = representations.filter_map(|of| of.segments.first());
                let playlists = first.filter_map(|segment| {
                    segment.url.rsplit_once('/').map(|(folder, _)| format!("{folder}/index.m3u8"))
                });
                of_all.into_iter().chain(playlists).collect()
            }
            MediaSource::Folder(of) => {
                let is_manifest = |path: &&String| {
                    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
                    ["mpd", "m3u8", "f4m"].contains(&extension)
                };
                of.files.keys().filter(is_manifest).cloned().collect()
            }
            MediaSource::Feed(_) => vec![format!("{}index.m3u8", self.folder())],
            MediaSource::Site(_) => Vec::new(),
        }
    }

    /// What it is, in one line.
    pub fn describe(&self) -> String {
        let live = self
            .live_window_ns
            .map_or(String::new(), |ns| format!("; live with a window of {}", format_ns(ns)));
        match &self.source {
            MediaSource::Modelled(model) => {
                let titles = match self.titles {
                    0 => String::new(),
                    titles => format!("; a library of {}", counted(titles.into(), "title")),
                };
                format!("modelled: {}{titles}{live}", model.describe())
            }
            MediaSource::Folder(of) => {
                let bytes = of.files.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
                format!(
                    "{}/{}, {} of {}: {}",
                    of.folder,
                    of.manifest,
                    counted(of.files.len() as u64, "file"),
                    format_bytes(float(bytes)),
                    self.presentation.describe()
                )
            }
            MediaSource::Site(site) => {
                let place = match site.manifest.origin() == site.origin {
                    true => String::new(),
                    false => format!(", with its segments at {}", site.origin),
                };
                format!("{}{place}: {}", site.manifest, self.presentation.describe())
            }
            MediaSource::Feed(feed) => {
                let MediaFolder { folder, manifest, .. } = &feed.folder;
                let segment = format_ns(feed.segment_ns);
                format!(
                    "{folder}/{manifest}, sent over RTMP in real time; segments of at least {segment}{live}"
                )
            }
        }
    }
}

impl Track {
    /// The bit rates of its representations, in bit/s.
    pub fn ladder_bits_per_s(&self) -> Vec<u64> {
        self.representations.iter().map(|one| one.bits_per_s).collect()
    }

    /// In words, such as `16 segments of video at 1 or 8 Mbit/s`.
    fn describe(&self) -> String {
        let rates: Vec<String> =
            self.representations.iter().map(|of| format_rate(float(of.bits_per_s))).collect();
        let segments = counted(self.durations_ns.len() as u64, "segment");
        format!("{segments} of {} at {}", self.kind, modelled::choices(rates))
    }

    /// How long it plays, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.durations_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }
}

impl Representation {
    /// What a decoder needs, ascending by the first segment that needs it, counted from 0.
    pub fn initializations(&self) -> impl Iterator<Item = (usize, &Segment)> {
        let later = self.later_initializations.iter().map(|later| (later.first_segment, &later.resource));
        self.initialization.iter().map(|first| (0, first)).chain(later)
    }

    /// All that is requested of it: initializations, then segments.
    pub fn resources(&self) -> impl Iterator<Item = &Segment> {
        self.initializations().map(|(_, resource)| resource).chain(&self.segments)
    }

    /// The same, to change it.
    pub fn resources_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        let later = self.later_initializations.iter_mut().map(|later| &mut later.resource);
        self.initialization.iter_mut().chain(later).chain(&mut self.segments)
    }
}

impl Presentation {
    /// How long it plays, in nanoseconds: as long as its longest track.
    pub fn duration_ns(&self) -> u64 {
        self.tracks.iter().map(Track::duration_ns).max().unwrap_or(0)
    }

    /// Its tracks, in words.
    fn describe(&self) -> String {
        self.tracks.iter().map(Track::describe).collect::<Vec<_>>().join(", ")
    }

    /// Leaves out all segments that begin at this time or later, in nanoseconds. Every track keeps its first.
    pub fn shorten(&mut self, length_ns: u64) {
        for track in &mut self.tracks {
            let mut begins_ns: u64 = 0;
            let is_kept = |duration_ns: &&u64| {
                let is_before = begins_ns < length_ns.max(1);
                begins_ns = begins_ns.saturating_add(**duration_ns);
                is_before
            };
            let kept = track.durations_ns.iter().take_while(is_kept).count();
            track.durations_ns.truncate(kept);
            for of in &mut track.representations {
                of.segments.truncate(kept);
                of.later_initializations.retain(|later| later.first_segment < kept);
            }
        }
    }

    /// Every segment, initialization segments included.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        let representations = self.tracks.iter().flat_map(|track| &track.representations);
        representations.flat_map(Representation::resources)
    }

    /// The lengths of its whole resources by their paths, in bytes.
    pub fn files(&self) -> BTreeMap<&str, u64> {
        let whole = self.segments().filter(|segment| segment.range.is_none());
        whole.filter_map(|segment| Some((segment.url.as_str(), segment.bytes?))).collect()
    }

    /// Checks that every representation has as many segments as its track has durations.
    ///
    /// # Errors
    /// The first contradiction, as the end of a sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.tracks.is_empty() {
            return Err("it has no tracks".to_owned());
        }
        for track in &self.tracks {
            if track.representations.is_empty() || track.durations_ns.is_empty() {
                return Err(format!("a track of {} has no representations or segments", track.kind));
            }
            for of in &track.representations {
                let (found, expected) = (of.segments.len(), track.durations_ns.len());
                if found != expected {
                    return Err(format!("`{}` has {found} segments and {expected} durations", of.name));
                }
            }
        }
        Ok(())
    }

    /// The tracks of a kind.
    pub fn tracks_of(&self, kind: TrackKind) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(move |track| track.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        let range = ByteRange::of_length(500, 500).unwrap();
        assert_eq!((range.first, range.last, range.length()), (500, 999, 500));
        assert_eq!(range.to_string(), "bytes=500-999");
        assert_eq!(ByteRange::of_length(7, 0), None);
        assert_eq!(ByteRange::of_length(u64::MAX, 2), None);
        assert_eq!(ByteRange { first: 0, last: u64::MAX }.length(), u64::MAX);
    }

    #[test]
    fn a_presentation_plays_as_long_as_its_longest_track() {
        let track = |kind, durations_ns: &[u64]| Track {
            kind,
            durations_ns: durations_ns.to_vec(),
            representations: Vec::new(),
        };
        let tracks = vec![track(TrackKind::Audio, &[3, 3, 2]), track(TrackKind::Video, &[4, 5])];
        let presentation = Presentation { tracks };
        assert_eq!(presentation.duration_ns(), 9);
        assert_eq!(presentation.tracks_of(TrackKind::Audio).count(), 1);
        assert_eq!(Presentation::default().duration_ns(), 0);
    }
}
