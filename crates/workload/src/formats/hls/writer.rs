//! Writes playlists (RFC 8216).

use model::media::TrackKind;
use model::units::NANOS_PER_S;

use super::super::package::{Live, Package, PackagedRepresentation, PackagedTrack};
use super::super::ticks_to_ns;
use super::super::time::{format_date, format_seconds};

/// The group of the audio renditions.
const AUDIO_GROUP: &str = "audio";

/// The multivariant playlist of a package: each representation of a video track is a variant, those of audio
/// tracks are its renditions. Without video, each representation of audio is a variant.
pub fn write_multivariant(package: &Package) -> String {
    let of =
        |kind: TrackKind| {
            package.tracks.iter().filter(move |track| track.kind == kind).flat_map(|track| {
                track.representations.iter().map(move |representation| (track, representation))
            })
        };
    let mut text = head(package.tracks.iter());
    text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    let has_video = of(TrackKind::Video).next().is_some();
    let best_audio = of(TrackKind::Audio).map(|(_, own)| own).max_by_key(|own| own.bits_per_s);
    if has_video {
        for (place, (track, own)) in of(TrackKind::Audio).enumerate() {
            let is_default = if place == 0 { "YES" } else { "NO" };
            text.push_str(&format!(
                "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{AUDIO_GROUP}\",NAME=\"{}\",DEFAULT={is_default},AUTOSELECT=YES,\
                 URI=\"{}\"\n",
                quoted(&own.id),
                quoted(&track.playlist_url(own))
            ));
        }
    }
    let kind = if has_video { TrackKind::Video } else { TrackKind::Audio };
    for (track, own) in of(kind) {
        let audio = best_audio.filter(|_| has_video);
        write_variant(&mut text, track, own, audio);
    }
    text
}

fn write_variant(
    text: &mut String,
    track: &PackagedTrack,
    own: &PackagedRepresentation,
    audio: Option<&PackagedRepresentation>,
) {
    let bits_per_s = own.bits_per_s.saturating_add(audio.map_or(0, |audio| audio.bits_per_s));
    text.push_str(&format!("#EXT-X-STREAM-INF:BANDWIDTH={bits_per_s}"));
    let codecs = [Some(own), audio].into_iter().flatten().map(|own| own.codecs.as_str());
    let codecs: Vec<&str> = codecs.filter(|codecs| !codecs.is_empty()).collect();
    if !codecs.is_empty() {
        text.push_str(&format!(",CODECS=\"{}\"", quoted(&codecs.join(","))));
    }
    if let Some((width, height)) = own.picture {
        text.push_str(&format!(",RESOLUTION={width}x{height}"));
    }
    if audio.is_some() {
        text.push_str(&format!(",AUDIO=\"{AUDIO_GROUP}\""));
    }
    text.push_str(&format!("\n{}\n", one_line(&track.playlist_url(own))));
}

/// The media playlist of a representation: complete on demand, the window of a live stream.
///
/// Templates are relative to the multivariant playlist; `to_root` is what leads from this playlist's folder
/// there, such as `../`.
pub fn write_media(
    track: &PackagedTrack,
    own: &PackagedRepresentation,
    live: Option<&Live>,
    to_root: &str,
) -> String {
    let mut text = head(std::iter::once(track));
    let target_s = track.longest_ns().div_ceil(NANOS_PER_S).max(1);
    text.push_str(&format!("#EXT-X-TARGETDURATION:{target_s}\n"));
    text.push_str(&format!("#EXT-X-MEDIA-SEQUENCE:{}\n", track.first_number));
    if live.is_none() {
        text.push_str("#EXT-X-PLAYLIST-TYPE:VOD\n");
    }
    if let Some(initialization) = track.initialization_url(own) {
        text.push_str(&format!("#EXT-X-MAP:URI=\"{}\"\n", quoted(&format!("{to_root}{initialization}"))));
    }
    if let Some(epoch_unix_ns) = live.and_then(|live| live.epoch_unix_ns) {
        let start_ns = ticks_to_ns(track.first_time, track.timescale.into());
        let date = format_date(epoch_unix_ns.saturating_add(start_ns));
        text.push_str(&format!("#EXT-X-PROGRAM-DATE-TIME:{date}\n"));
    }
    for (url, ticks) in track.segment_urls(own).iter().zip(&track.durations) {
        let duration = format_seconds(ticks_to_ns(*ticks, track.timescale.into()));
        text.push_str(&format!("#EXTINF:{duration},\n{to_root}{}\n", one_line(url)));
    }
    if live.is_none() {
        text.push_str("#EXT-X-ENDLIST\n");
    }
    text
}

/// Fragmented MP4 needs version 7, decimal durations version 3 (RFC 8216, section 7).
fn head<'a>(mut tracks: impl Iterator<Item = &'a PackagedTrack>) -> String {
    let version = if tracks.any(|track| track.initialization.is_some()) { 7 } else { 3 };
    format!("#EXTM3U\n#EXT-X-VERSION:{version}\n")
}

/// Text for a quoted string, which cannot contain quotes or ends of lines (RFC 8216, section 4.2).
fn quoted(text: &str) -> String {
    one_line(text).replace('"', "'")
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
