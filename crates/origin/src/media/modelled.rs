//! Modelled media, whose segments are made when they are requested: from the pattern of `/bytes/N`.

use std::collections::HashMap;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use model::media::{Media, MediaSource, Track};
use model::units::NANOS_PER_MS;
use workload::formats::dash::{Addressing, write_mpd};
use workload::formats::hls::write_media;
use workload::formats::package::{Live, Package, PackagedTrack};
use workload::hds_media::{HdsPackage, PackagedFragment};
use workload::live_hds::{BOOTSTRAP, LiveFragment, LiveHds};
use workload::media::{MPD_TYPE, PLAYLIST_TYPE, manifests, modelled_package};

use super::live::{LiveSegment, LiveTrack};
use crate::answer::{Answer, Caching, Part};
use crate::body::Content;
use crate::files::media_type;

const F4M_TYPE: &str = "application/f4m+xml";
const BOOTSTRAP_TYPE: &str = "video/abst";

/// All modelled media of an origin.
pub(crate) struct ModelledMedia(Vec<ServedMedia>);

struct ServedMedia {
    media: Media,
    /// What its paths stand for; of a live stream, only the initialization segments.
    files: HashMap<String, File>,
    live: Option<LiveFiles>,
}

/// The files of a live stream that change with time.
enum LiveFiles {
    Segments(LiveStream),
    Fragments(LiveFragments),
}

enum File {
    /// A segment of this length.
    Segment(u64),
    /// A fragment: its first bytes, and its length.
    Fragment(Bytes, u64),
    Document(Bytes, HeaderValue, Caching),
}

/// A live stream of HDS.
struct LiveFragments {
    stream: LiveHds,
    track: LiveTrack,
    manifest: Bytes,
    began_unix_ns: u64,
}

struct LiveStream {
    package: Package,
    tracks: Vec<LiveTrack>,
    facts: Live,
    began_unix_ns: u64,
}

impl ModelledMedia {
    /// Media; a live stream began so long ago that its window is full at `now_unix_ns`.
    pub(crate) fn new(media: &[Media], now_unix_ns: u64) -> anyhow::Result<Self> {
        let modelled = media.iter().filter(|media| matches!(media.source, MediaSource::Modelled(_)));
        let served = modelled.map(|media| ServedMedia::new(media, now_unix_ns));
        Ok(ModelledMedia(served.collect::<anyhow::Result<_>>()?))
    }

    /// The answer to GET; `None` for a path that is not of media.
    pub(crate) fn answer(
        &self,
        path: &str,
        fields: &HeaderMap,
        pattern: &Bytes,
        now_unix_ns: u64,
    ) -> Option<Answer> {
        let find = |served: &'_ ServedMedia| served.media.without_title(path).is_some();
        let served = self.0.iter().find(|served| find(served))?;
        let own = served.media.without_title(path)?;
        if let Some(file) = served.files.get(own.as_ref()) {
            return Some(file.answer(&own, fields, pattern));
        }
        let file = served.live.as_ref().and_then(|live| match live {
            LiveFiles::Segments(live) => live.file(&served.media, &own, now_unix_ns),
            LiveFiles::Fragments(live) => live.file(&served.media, &own, now_unix_ns),
        });
        Some(match file {
            Some(file) => file.answer(&own, fields, pattern),
            None => Answer::status(StatusCode::NOT_FOUND),
        })
    }
}

impl ServedMedia {
    fn new(media: &Media, now_unix_ns: u64) -> anyhow::Result<Self> {
        let mut files = HashMap::new();
        let mut live = None;
        let package = HdsPackage::new(media);
        if let (Some(_), Some(window_ns)) = (&package, media.live_window_ns) {
            live = Some(LiveFiles::Fragments(LiveFragments::new(media, window_ns, now_unix_ns)?));
        } else if let Some(package) = package {
            add_hds(media, &package, &mut files);
        } else if let Some(window_ns) = media.live_window_ns {
            live = Some(LiveFiles::Segments(LiveStream::new(media, window_ns, now_unix_ns)?));
            let representations = media.presentation.tracks.iter().flat_map(|track| &track.representations);
            let segments = representations.filter_map(|of| of.initialization.as_ref());
            files.extend(segments.map(|own| (own.url.clone(), File::Segment(own.bytes.unwrap_or(0)))));
        } else {
            let segments = media.presentation.files().into_iter();
            files.extend(segments.map(|(path, bytes)| (path.to_owned(), File::Segment(bytes))));
            for manifest in manifests(media) {
                let media_type = HeaderValue::from_static(manifest.media_type);
                files.insert(manifest.path, document(manifest.text.into(), media_type, Caching::Manifest));
            }
        }
        Ok(ServedMedia { media: media.clone(), files, live })
    }
}

fn document(text: Bytes, media_type: HeaderValue, caching: Caching) -> File {
    File::Document(text, media_type, caching)
}

fn add_hds(media: &Media, package: &HdsPackage, files: &mut HashMap<String, File>) {
    let folder = media.folder();
    for fragment in package.segments.values().flatten() {
        files.insert(fragment.path.clone(), File::of_fragment(fragment));
    }
    for (name, bytes, media_type) in [
        ("manifest.f4m", package.manifest(media).into_bytes(), F4M_TYPE),
        ("index.bootstrap", package.bootstrap_bytes(), BOOTSTRAP_TYPE),
    ] {
        let media_type = HeaderValue::from_static(media_type);
        files.insert(format!("{folder}{name}"), document(bytes.into(), media_type, Caching::Manifest));
    }
}

impl File {
    fn of_fragment(fragment: &PackagedFragment) -> File {
        File::Fragment(Bytes::from(fragment.head.clone()), fragment.bytes())
    }

    fn answer(&self, path: &str, fields: &HeaderMap, pattern: &Bytes) -> Answer {
        let of_pattern = |offset, left| Content::of_pattern(pattern, offset, left);
        match self {
            File::Segment(bytes) => {
                let part = Part::of(fields, *bytes);
                Answer::part(media_type(path), *bytes, part, of_pattern).for_media(path)
            }
            File::Fragment(head, bytes) => {
                let content = |offset: u64, left: u64| {
                    let length = head.len() as u64;
                    if offset >= length {
                        return of_pattern(offset - length, left);
                    }
                    let end = (offset + left).min(length);
                    let part = head.slice(position(offset)..position(end));
                    Content::headed(part, of_pattern(0, left - (end - offset)))
                };
                Answer::part(media_type(path), *bytes, Part::of(fields, *bytes), content).for_media(path)
            }
            File::Document(text, media_type, caching) => {
                let bytes = text.len() as u64;
                let content = |offset: u64, left: u64| {
                    Content::Memory(text.slice(position(offset)..position(offset + left)))
                };
                let mut answer = Answer::part(media_type.clone(), bytes, Part::of(fields, bytes), content);
                caching.add_to(&mut answer.fields);
                answer
            }
        }
    }
}

/// A place in something in memory.
fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn unplayable(media: &Media) -> String {
    format!("the media `{}` has no duration, so it cannot be live", media.name)
}

/// When a stream began whose window is full now; manifests write whole milliseconds.
fn begin_unix_ns(window_ns: u64, now_unix_ns: u64) -> u64 {
    now_unix_ns.saturating_sub(window_ns) / NANOS_PER_MS * NANOS_PER_MS
}

impl LiveFragments {
    fn new(media: &Media, window_ns: u64, now_unix_ns: u64) -> anyhow::Result<Self> {
        let track = media.presentation.tracks.first().and_then(|track| LiveTrack::new(track, window_ns));
        let (stream, track) = LiveHds::new(media).zip(track).with_context(|| unplayable(media))?;
        let manifest = stream.manifest(media).into();
        let began_unix_ns = begin_unix_ns(window_ns, now_unix_ns);
        Ok(LiveFragments { stream, track, manifest, began_unix_ns })
    }

    /// What a path stands for at this time.
    fn file(&self, media: &Media, path: &str, now_unix_ns: u64) -> Option<File> {
        let since_ns = now_unix_ns.saturating_sub(self.began_unix_ns);
        let live = |bytes: Bytes, media_type| {
            Some(document(bytes, HeaderValue::from_static(media_type), Caching::LiveManifest))
        };
        match path.strip_prefix(media.folder().as_str())? {
            "manifest.f4m" => live(self.manifest.clone(), F4M_TYPE),
            BOOTSTRAP => {
                let window: Vec<_> = self.track.window(since_ns).iter().map(live_fragment).collect();
                let mut bytes = Vec::new();
                self.stream.bootstrap(&window).write(&mut bytes);
                live(bytes.into(), BOOTSTRAP_TYPE)
            }
            file => {
                let number = self.stream.place(file)?.checked_add(1)?;
                let segment = self.track.find(number, since_ns)?;
                self.stream.fragment(&live_fragment(&segment)).as_ref().map(File::of_fragment)
            }
        }
    }
}

fn live_fragment(segment: &LiveSegment) -> LiveFragment {
    let LiveSegment { number, start_ns, duration_ns, .. } = *segment;
    LiveFragment { place: number.saturating_sub(1), start_ns, duration_ns }
}

impl LiveStream {
    fn new(media: &Media, window_ns: u64, now_unix_ns: u64) -> anyhow::Result<Self> {
        let unplayable = || unplayable(media);
        let package = modelled_package(media).with_context(unplayable)?;
        let tracks = media.presentation.tracks.iter().map(|track| LiveTrack::new(track, window_ns));
        let tracks = tracks.collect::<Option<Vec<_>>>().with_context(unplayable)?;
        let longest = |track: &Track| track.durations_ns.iter().copied().max().unwrap_or(0);
        let segment_ns = media.presentation.tracks.iter().map(longest).max().unwrap_or(0);
        let began_unix_ns = begin_unix_ns(window_ns, now_unix_ns);
        let facts = Live {
            epoch_unix_ns: Some(began_unix_ns),
            window_ns: Some(window_ns),
            reload_ns: Some(segment_ns),
            // Three segments, as HLS recommends (RFC 8216, section 6.3.3).
            delay_ns: Some(segment_ns.saturating_mul(3)),
        };
        Ok(LiveStream { package, tracks, facts, began_unix_ns })
    }

    /// What a path stands for at this time.
    fn file(&self, media: &Media, path: &str, now_unix_ns: u64) -> Option<File> {
        let since_ns = now_unix_ns.saturating_sub(self.began_unix_ns);
        let file = path.strip_prefix(media.folder().as_str())?;
        let text = |text: String, media_type| {
            Some(document(text.into(), HeaderValue::from_static(media_type), Caching::LiveManifest))
        };
        match file.rsplit_once('/') {
            None if file == "manifest.mpd" => {
                let tracks = (0..self.tracks.len()).filter_map(|track| self.window(track, since_ns));
                let window = Package { tracks: tracks.collect(), live: Some(self.facts) };
                text(write_mpd(&window, Addressing::Timeline, now_unix_ns), MPD_TYPE)
            }
            None if file == "main.m3u8" => {
                text(workload::formats::hls::write_multivariant(&self.package), PLAYLIST_TYPE)
            }
            None => None,
            Some((folder, name)) => {
                let (track, representation) = self.find(media, folder)?;
                if name == "index.m3u8" {
                    let window = self.window(track, since_ns)?;
                    let own = window.representations.get(representation)?;
                    return text(write_media(&window, own, Some(&self.facts), "../"), PLAYLIST_TYPE);
                }
                let number = name.strip_suffix(".m4s").filter(|name| !name.starts_with(['+', '0']))?;
                let segment = self.tracks[track].find(number.parse().ok()?, since_ns)?;
                let of = &media.presentation.tracks[track].representations[representation];
                of.segments.get(segment.index)?.bytes.map(File::Segment)
            }
        }
    }

    /// The track and the representation whose segments are in this folder.
    fn find(&self, media: &Media, folder: &str) -> Option<(usize, usize)> {
        media.presentation.tracks.iter().enumerate().find_map(|(track, of)| {
            let place = of.representations.iter().position(|representation| representation.name == folder);
            place.map(|place| (track, place))
        })
    }

    /// The available segments of a track.
    fn window(&self, track: usize, since_ns: u64) -> Option<PackagedTrack> {
        let of = self.package.tracks.get(track)?;
        let segments = self.tracks.get(track)?.window(since_ns);
        let tick_ns = model::units::NANOS_PER_S / u64::from(of.timescale.max(1));
        let first = segments.first();
        Some(PackagedTrack {
            first_number: first.map_or(1, |first| first.number),
            first_time: first.map_or(0, |first| first.start_ns / tick_ns.max(1)),
            durations: segments.iter().map(|segment| segment.duration_ns / tick_ns.max(1)).collect(),
            ..of.clone()
        })
    }
}
