//! Writes playlists (RFC 8216).

use model::media::TrackKind;

use super::super::package::{Live, Package, PackagedRepresentation, PackagedTrack, target_s};
use super::super::ticks_to_ns;
use super::super::time::{format_date, format_seconds};

/// The multivariant playlist of a package: each representation of a video track is a variant, those of audio
/// tracks are its renditions. Without video, each representation of audio is a variant.
///
/// Renditions of one group differ in their content, and those of one name in their bit rate (RFC 8216,
/// section 4.3.4.1.1): each bit rate of audio has a group, and each representation of video a variant for
/// each group.
pub fn write_multivariant(package: &Package) -> String {
    let of = |kind: TrackKind| package.tracks.iter().filter(move |track| track.kind == kind);
    let all = |kind: TrackKind| {
        of(kind).flat_map(|track| track.representations.iter().map(move |own| (track, own)))
    };
    let mut text = head(package.tracks.iter());
    text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    if all(TrackKind::Video).next().is_none() {
        all(TrackKind::Audio).for_each(|(track, own)| write_variant(&mut text, track, own, None));
        return text;
    }
    let groups = audio_groups(&of(TrackKind::Audio).collect::<Vec<_>>());
    groups.iter().for_each(|group| write_renditions(&mut text, group));
    for (track, own) in all(TrackKind::Video) {
        if groups.is_empty() {
            write_variant(&mut text, track, own, None);
        }
        groups.iter().for_each(|group| write_variant(&mut text, track, own, Some(group)));
    }
    text
}

/// Renditions of audio between which a player chooses by their content: one of each track.
struct AudioGroup<'p> {
    renditions: Vec<(&'p PackagedTrack, &'p PackagedRepresentation)>,
}

impl<'p> AudioGroup<'p> {
    /// Named after its first rendition.
    fn name(&self) -> String {
        self.renditions.first().map_or(String::new(), |(_, own)| quoted(&own.id))
    }

    /// The rendition with the highest bit rate.
    fn largest(&self) -> Option<&'p PackagedRepresentation> {
        self.renditions.iter().map(|(_, own)| *own).max_by_key(|own| own.peak_bits_per_s())
    }
}

/// A group for each bit rate, ascending; a track with fewer bit rates repeats its highest.
fn audio_groups<'p>(tracks: &[&'p PackagedTrack]) -> Vec<AudioGroup<'p>> {
    let count = tracks.iter().map(|track| track.representations.len()).max().unwrap_or(0);
    let at = |place: usize| {
        let rendition = |track: &&'p PackagedTrack| {
            let all = &track.representations;
            Some((*track, all.get(place).or(all.last())?))
        };
        AudioGroup { renditions: tracks.iter().filter_map(rendition).collect() }
    };
    (0..count).map(at).collect()
}

fn write_renditions(text: &mut String, group: &AudioGroup<'_>) {
    for (place, (track, own)) in group.renditions.iter().enumerate() {
        let (name, is_default) = match place {
            0 => ("audio".to_owned(), "YES"),
            _ => (format!("audio {}", place + 1), "NO"),
        };
        text.push_str(&format!(
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{}\",NAME=\"{name}\",DEFAULT={is_default},AUTOSELECT=YES,URI=\"{}\"\n",
            group.name(),
            quoted(&track.playlist_url(own))
        ));
    }
}

fn write_variant(
    text: &mut String,
    track: &PackagedTrack,
    own: &PackagedRepresentation,
    group: Option<&AudioGroup<'_>>,
) {
    let audio = group.and_then(AudioGroup::largest);
    let parts = || [Some(own), audio].into_iter().flatten();
    let sum = |rates: &mut dyn Iterator<Item = u64>| rates.fold(0, u64::saturating_add);
    let peak = sum(&mut parts().map(PackagedRepresentation::peak_bits_per_s));
    text.push_str(&format!("#EXT-X-STREAM-INF:BANDWIDTH={peak}"));
    if parts().all(|own| own.segment_rates.is_some()) {
        let average = sum(&mut parts().filter_map(|own| own.segment_rates).map(|own| own.average_bits_per_s));
        text.push_str(&format!(",AVERAGE-BANDWIDTH={average}"));
    }
    let codecs: Vec<&str> = parts().map(|own| own.codecs.as_str()).filter(|own| !own.is_empty()).collect();
    if !codecs.is_empty() {
        text.push_str(&format!(",CODECS=\"{}\"", quoted(&codecs.join(","))));
    }
    if let Some((width, height)) = own.picture {
        text.push_str(&format!(",RESOLUTION={width}x{height}"));
    }
    if let Some(group) = group {
        text.push_str(&format!(",AUDIO=\"{}\"", group.name()));
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
    text.push_str(&format!("#EXT-X-TARGETDURATION:{}\n", target_s(track.longest_ns())));
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

#[cfg(test)]
mod tests {
    use super::super::super::package::SegmentRates;
    use super::super::super::template::Template;
    use super::*;

    fn track(kind: TrackKind, names: &[(&str, u64)]) -> PackagedTrack {
        let template = |text: &str| Template::parse(text).unwrap();
        let representation = |(id, bits_per_s): &(&str, u64)| PackagedRepresentation {
            id: (*id).to_owned(),
            bits_per_s: *bits_per_s,
            segment_rates: Some(SegmentRates {
                peak_bits_per_s: bits_per_s * 2,
                average_bits_per_s: bits_per_s + 1,
            }),
            ..PackagedRepresentation::default()
        };
        PackagedTrack {
            kind,
            timescale: 1,
            first_number: 1,
            first_time: 0,
            durations: vec![2],
            media: template("$RepresentationID$/$Number$.m4s"),
            initialization: None,
            playlist: template("$RepresentationID$.m3u8"),
            representations: names.iter().map(representation).collect(),
        }
    }

    #[test]
    fn each_bit_rate_of_audio_has_a_group_and_variants() {
        let audio = track(TrackKind::Audio, &[("a-lo", 64), ("a-hi", 128)]);
        let video = track(TrackKind::Video, &[("v-lo", 800), ("v-hi", 3_000)]);
        let text = write_multivariant(&Package { tracks: vec![video.clone(), audio.clone()], live: None });
        let expected = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-INDEPENDENT-SEGMENTS\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a-lo\",NAME=\"audio\",DEFAULT=YES,AUTOSELECT=YES,URI=\"a-lo.m3u8\"\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a-hi\",NAME=\"audio\",DEFAULT=YES,AUTOSELECT=YES,URI=\"a-hi.m3u8\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1728,AVERAGE-BANDWIDTH=866,AUDIO=\"a-lo\"\nv-lo.m3u8\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1856,AVERAGE-BANDWIDTH=930,AUDIO=\"a-hi\"\nv-lo.m3u8\n\
            #EXT-X-STREAM-INF:BANDWIDTH=6128,AVERAGE-BANDWIDTH=3066,AUDIO=\"a-lo\"\nv-hi.m3u8\n\
            #EXT-X-STREAM-INF:BANDWIDTH=6256,AVERAGE-BANDWIDTH=3130,AUDIO=\"a-hi\"\nv-hi.m3u8\n";
        assert_eq!(text, expected);
        let other = track(TrackKind::Audio, &[("b", 96)]);
        let text = write_multivariant(&Package { tracks: vec![video, audio.clone(), other], live: None });
        for part in [
            "GROUP-ID=\"a-lo\",NAME=\"audio 2\",DEFAULT=NO,AUTOSELECT=YES,URI=\"b.m3u8\"",
            "GROUP-ID=\"a-hi\",NAME=\"audio 2\",DEFAULT=NO,AUTOSELECT=YES,URI=\"b.m3u8\"",
            // With the larger of the two renditions.
            "BANDWIDTH=1792,AVERAGE-BANDWIDTH=898,AUDIO=\"a-lo\"",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let text = write_multivariant(&Package { tracks: vec![audio], live: None });
        assert!(text.ends_with("BANDWIDTH=256,AVERAGE-BANDWIDTH=129\na-hi.m3u8\n"), "{text}");
    }
}
