//! What servers send of modelled media: valid manifests, and segments without anything to decode.
//!
//! A segment has the bytes of [`crate::content::pattern_body`] from offset 0, like `/bytes/N`.

use model::media::{Media, MediaSource, Presentation, Representation, Track, TrackKind};
use model::units::NANOS_PER_S;

use crate::formats::dash::{Addressing, write_mpd};
use crate::formats::hls::{write_media, write_multivariant};
use crate::formats::package::{Package, PackagedRepresentation, PackagedTrack, SegmentRates};
use crate::formats::template::Template;

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its path.
    pub path: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its text.
    pub text: String,
}

/// The media type of an MPD (ISO/IEC 23009-1, annex C).
pub const MPD_TYPE: &str = "application/dash+xml";
/// The media type of a playlist (RFC 8216, section 10).
pub const PLAYLIST_TYPE: &str = "application/vnd.apple.mpegurl";

/// What is inside the segments of a representation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The codecs (RFC 6381).
    pub codecs: String,
    /// Width and height of its pictures.
    pub picture: Option<(u32, u32)>,
    /// The sampling rate of its sound, in Hz.
    pub sampling_rate_hz: Option<u32>,
}

/// How files are named below the folder of their representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `1.m4s`, and `init.mp4` first.
    Mp4,
    /// `1.ts`, complete.
    TransportStream,
}

/// The manifests of modelled media, by the paths of [`Media::manifests`]; none of media that has files.
pub fn manifests(media: &Media) -> Vec<Manifest> {
    let package = modelled_package(media).filter(|_| media.hds().is_none());
    package.map_or_else(Vec::new, |package| manifests_of(&media.folder(), &package, Naming::Mp4))
}

/// Modelled media as a package; `None` for media that has files.
pub fn modelled_package(media: &Media) -> Option<Package> {
    let MediaSource::Modelled(_) = &media.source else { return None };
    let encoding = |track: &Track, _: &Representation| match track.kind {
        TrackKind::Video => Encoding { codecs: "avc1.640028".to_owned(), ..Encoding::default() },
        TrackKind::Audio => {
            let sampling_rate_hz = Some(48_000);
            Encoding { codecs: "mp4a.40.2".to_owned(), picture: None, sampling_rate_hz }
        }
    };
    package(&media.presentation, Naming::Mp4, encoding)
}

/// The manifests of a package whose URLs are relative to a folder: an MPD if segments are of MP4, a
/// multivariant playlist, and a playlist for each representation.
pub fn manifests_of(folder: &str, package: &Package, naming: Naming) -> Vec<Manifest> {
    let manifest =
        |file: &str, media_type, text| Manifest { path: format!("{folder}{file}"), media_type, text };
    let mut all = Vec::new();
    if naming == Naming::Mp4 {
        all.push(manifest("manifest.mpd", MPD_TYPE, write_mpd(package, Addressing::Number, 0)));
    }
    all.push(manifest("main.m3u8", PLAYLIST_TYPE, write_multivariant(package)));
    for track in &package.tracks {
        for of in &track.representations {
            let text = write_media(track, of, None, "../");
            all.push(manifest(&track.playlist_url(of), PLAYLIST_TYPE, text));
        }
    }
    all
}

/// A presentation as a package, whose URLs are relative to the folder of the media.
pub fn package(
    presentation: &Presentation,
    naming: Naming,
    encoding: impl Fn(&Track, &Representation) -> Encoding,
) -> Option<Package> {
    let tracks = presentation.tracks.iter().map(|track| packaged(track, naming, &encoding));
    Some(Package { tracks: tracks.collect::<Option<Vec<_>>>()?, live: None })
}

fn packaged(
    track: &Track,
    naming: Naming,
    encoding: impl Fn(&Track, &Representation) -> Encoding,
) -> Option<PackagedTrack> {
    let timescale = timescale(track);
    let tick_ns = NANOS_PER_S / u64::from(timescale);
    let (media, initialization) = match naming {
        Naming::Mp4 => ("$Number$.m4s", Some("init.mp4")),
        Naming::TransportStream => ("$Number$.ts", None),
    };
    let template = |file: &str| Template::parse(&format!("$RepresentationID$/{file}")).ok();
    let representations = track.representations.iter().map(|of| {
        let Encoding { codecs, picture, sampling_rate_hz } = encoding(track, of);
        let media_type = format!("{}/mp4", track.kind);
        PackagedRepresentation {
            id: of.name.clone(),
            bits_per_s: of.bits_per_s,
            media_type,
            codecs,
            picture,
            sampling_rate_hz,
            segment_rates: segment_rates(track, of),
        }
    });
    Some(PackagedTrack {
        kind: track.kind,
        timescale,
        first_number: 1,
        first_time: 0,
        durations: track.durations_ns.iter().map(|ns| ns / tick_ns).collect(),
        media: template(media)?,
        initialization: initialization.and_then(template),
        playlist: template("index.m3u8")?,
        representations: representations.collect(),
    })
}

/// The bit rates of the segments of a representation, if their lengths are known.
fn segment_rates(track: &Track, of: &Representation) -> Option<SegmentRates> {
    let lengths: Vec<u64> = of.segments.iter().map(|segment| segment.bytes).collect::<Option<_>>()?;
    let is_complete = lengths.len() == track.durations_ns.len();
    SegmentRates::of(&track.durations_ns, &lengths).filter(|_| is_complete)
}

/// The fewest ticks in a second that give every duration without a rest.
fn timescale(track: &Track) -> u32 {
    const NANOSECONDS: u32 = 1_000_000_000;
    let is_exact = |scale: &u32| {
        let tick_ns = NANOS_PER_S / u64::from(*scale);
        track.durations_ns.iter().all(|ns| ns.is_multiple_of(tick_ns))
    };
    [1_000, 1_000_000].into_iter().find(is_exact).unwrap_or(NANOSECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Source;

    fn clip() -> Media {
        let text = include_str!("../../../media/clip.toml");
        Media::parse("clip", Source { file: "media/clip.toml", text }).unwrap()
    }

    #[test]
    fn manifests_have_the_paths_of_the_media() {
        let media = clip();
        let paths: Vec<String> = manifests(&media).into_iter().map(|manifest| manifest.path).collect();
        assert_eq!(paths, media.manifests());
    }

    #[test]
    fn manifests_list_the_segments_of_the_presentation() {
        let media = clip();
        let package = package(&media.presentation, Naming::Mp4, |_, _| Encoding::default()).unwrap();
        for (track, packaged) in media.presentation.tracks.iter().zip(&package.tracks) {
            assert_eq!(packaged.duration_ns(), track.duration_ns());
            for (of, packaged_of) in track.representations.iter().zip(&packaged.representations) {
                let urls = packaged.segment_urls(packaged_of);
                let expected = of.segments.iter().map(|segment| &segment.url["/media/clip/".len()..]);
                assert!(urls.iter().map(String::as_str).eq(expected), "{}", of.name);
            }
        }
        let all = manifests(&media);
        assert!(all[0].text.contains("media=\"$RepresentationID$/$Number$.m4s\""), "{}", all[0].text);
        // Scenes of different sizes make the peak larger than the nominal 5.096 Mbit/s.
        assert!(all[1].text.contains("BANDWIDTH=7397860,AVERAGE-BANDWIDTH=5269922,"), "{}", all[1].text);
        assert!(all[2].text.contains("#EXTINF:2,\n../video-1000k/1.m4s\n"), "{}", all[2].text);
    }

    #[test]
    fn durations_that_are_no_milliseconds_stay_exact() {
        let with =
            |durations_ns: Vec<u64>| Track { kind: TrackKind::Video, durations_ns, representations: vec![] };
        assert_eq!(timescale(&with(vec![3_840_000_000, 960_000_000])), 1_000);
        assert_eq!(timescale(&with(vec![3_840_001_000])), 1_000_000);
        assert_eq!(timescale(&with(vec![1_001_000_001])), 1_000_000_000);
    }
}
