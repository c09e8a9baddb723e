//! The bit rates of audio renditions of HLS, which `EXT-X-MEDIA` does not state.
//!
//! A variant's `BANDWIDTH` is the sum of its own and its group's (RFC 8216, section 4.3.4.2). Variants with
//! the same playlist and different groups therefore have sums that share a term: if one of the terms is
//! known, the others follow. Known are a variant without a group, a variant whose playlist is that of a
//! rendition, and renditions whose playlists tell their lengths.

use std::collections::BTreeMap;

use super::super::hls::{MediaPlaylist, Multivariant};
use super::super::listing::{Period, Slot};

/// A term of a sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    /// What the playlist of a variant has.
    Playlist(String),
    /// What a group of renditions has: the most of one of them.
    Group(String),
}

/// What a multivariant playlist says about the bit rates of its renditions.
#[derive(Clone, Debug, Default)]
pub(super) struct AudioRates {
    /// Sums of a playlist and a group, in bit/s.
    sums: Vec<(Term, Term, u64)>,
    /// Terms that it states, in bit/s.
    stated: BTreeMap<Term, u64>,
    /// The renditions of each group.
    renditions: Vec<(String, Slot)>,
}

impl AudioRates {
    pub(super) fn of(list: &Multivariant) -> AudioRates {
        let mut own = AudioRates::default();
        for variant in list.variants.iter().filter(|variant| !variant.is_for_seeking) {
            let playlist = Term::Playlist(variant.uri.clone());
            let of_groups = || list.renditions.iter().filter(|rendition| rendition.kind == "AUDIO");
            let is_rendition = |uri: &Option<String>| uri.as_ref() == Some(&variant.uri);
            // A variant that consists of a rendition: nothing is added to it.
            if let Some(rendition) = of_groups().find(|rendition| is_rendition(&rendition.uri)) {
                own.stated.insert(Term::Group(rendition.group.clone()), variant.bits_per_s);
                continue;
            }
            match &variant.audio_group {
                // A rendition without a playlist is in the variant.
                Some(group) if of_groups().any(|of| of.group == *group && of.uri.is_some()) => {
                    own.sums.push((playlist, Term::Group(group.clone()), variant.bits_per_s));
                }
                _ => {
                    own.stated.insert(playlist, variant.bits_per_s);
                }
            }
        }
        own
    }

    /// Notes where a rendition of a group is listed.
    pub(super) fn add(&mut self, group: &str, slot: Slot) {
        self.renditions.push((group.to_owned(), slot));
    }

    /// Fills in the bit rates that follow, in renditions without one.
    pub(super) fn fill(&self, periods: &mut [Period]) {
        let mut known = self.stated.clone();
        for (group, slot) in &self.renditions {
            if let Some(rate) = rate_at(periods, *slot).map(|rate| *rate).filter(|rate| *rate > 0) {
                let most = known.entry(Term::Group(group.clone())).or_default();
                *most = rate.max(*most);
            }
        }
        // Each round finds a term, or is the last.
        while let Some((term, rate)) = self.sums.iter().find_map(|sum| missing(sum, &known)) {
            known.insert(term, rate);
        }
        for (group, slot) in &self.renditions {
            let found = known.get(&Term::Group(group.clone())).copied().filter(|rate| *rate > 0);
            if let (Some(found), Some(rate @ 0)) = (found, rate_at(periods, *slot)) {
                *rate = found;
            }
        }
    }
}

/// The unknown term of a sum whose other one is known. Sums that contradict it tell nothing.
fn missing((one, other, sum): &(Term, Term, u64), known: &BTreeMap<Term, u64>) -> Option<(Term, u64)> {
    let (unknown, rest) = match (known.get(one), known.get(other)) {
        (Some(rate), None) => (other, sum.checked_sub(*rate)?),
        (None, Some(rate)) => (one, sum.checked_sub(*rate)?),
        _ => return None,
    };
    Some((unknown.clone(), rest))
}

fn rate_at(periods: &mut [Period], slot: Slot) -> Option<&mut u64> {
    let track = periods.get_mut(slot.period)?.tracks.get_mut(slot.track)?;
    track.representations.get_mut(slot.representation).map(|own| &mut own.bits_per_s)
}

/// The mean bit rate of a playlist whose segments all state their lengths, by their ranges or
/// `EXT-X-BITRATE`.
pub(super) fn rate_of(media: &MediaPlaylist) -> Option<u64> {
    const NANOS_PER_S: u128 = 1_000_000_000;
    let (mut bit_ns, mut all_ns) = (0_u128, 0_u128);
    for segment in &media.segments {
        let duration_ns = u128::from(segment.duration_ns);
        let own = match (segment.part.range, segment.bits_per_s) {
            (Some(range), _) => u128::from(range.length()) * 8 * NANOS_PER_S,
            (None, Some(bits_per_s)) => u128::from(bits_per_s) * duration_ns,
            (None, None) => return None,
        };
        bit_ns = bit_ns.checked_add(own)?;
        all_ns = all_ns.checked_add(duration_ns)?;
    }
    bit_ns.checked_div(all_ns).and_then(|rate| u64::try_from(rate).ok())
}

#[cfg(test)]
mod tests {
    use model::media::TrackKind;
    use model::url::Url;

    use crate::formats::manifest::Resolver;

    /// The bit rates of the representations of the audio tracks of a playlist, by their names.
    fn rates(list: &str, playlist: impl Fn(&str) -> String) -> Vec<(String, u64)> {
        let url = Url::parse("https://a.test/main.m3u8").unwrap();
        let mut resolver = Resolver::new(format!("#EXTM3U\n{list}").as_bytes(), &url, 0).unwrap();
        for need in resolver.needs() {
            let text = playlist(&need.url.path);
            resolver.handle_resource(&need, &need.url, text.as_bytes()).unwrap();
        }
        let manifest = resolver.finish().unwrap();
        let tracks = manifest.presentation.tracks.iter().chain(&manifest.alternatives);
        let audio = tracks.filter(|track| track.kind == TrackKind::Audio);
        audio.flat_map(|track| &track.representations).map(|of| (of.name.clone(), of.bits_per_s)).collect()
    }

    fn plain(_: &str) -> String {
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ns\n#EXTINF:2,\nt\n#EXT-X-ENDLIST\n".to_owned()
    }

    const GROUPS: &str = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"lo\",NAME=\"a\",DEFAULT=YES,URI=\"lo.m3u8\"\n\
                          #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"a\",DEFAULT=YES,URI=\"hi.m3u8\"\n";
    const SUMS: &str = "#EXT-X-STREAM-INF:BANDWIDTH=1064000,RESOLUTION=1x1,AUDIO=\"lo\"\nv.m3u8\n\
                        #EXT-X-STREAM-INF:BANDWIDTH=1128000,RESOLUTION=1x1,AUDIO=\"hi\"\nv.m3u8\n\
                        #EXT-X-STREAM-INF:BANDWIDTH=5128000,RESOLUTION=2x2,AUDIO=\"hi\"\nw.m3u8\n";

    fn named(lo: u64, hi: u64) -> Vec<(String, u64)> {
        vec![("lo/a".to_owned(), lo), ("hi/a".to_owned(), hi)]
    }

    #[test]
    fn differences_alone_tell_no_rate() {
        assert_eq!(rates(&format!("{GROUPS}{SUMS}"), plain), named(0, 0));
    }

    #[test]
    fn a_variant_without_a_group_tells_the_others() {
        let silent = "#EXT-X-STREAM-INF:BANDWIDTH=1000000,RESOLUTION=1x1\nv.m3u8\n";
        assert_eq!(rates(&format!("{GROUPS}{SUMS}{silent}"), plain), named(64_000, 128_000));
        // Through the playlist `v` to the group `lo`, from the group `hi` by the playlist `w`.
        let silent = "#EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=2x2\nw.m3u8\n";
        assert_eq!(rates(&format!("{GROUPS}{SUMS}{silent}"), plain), named(64_000, 128_000));
    }

    #[test]
    fn a_variant_that_is_a_rendition_tells_its_rate() {
        for group in ["", ",AUDIO=\"lo\""] {
            let alone = format!("#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"{group}\nlo.m3u8\n");
            let found = rates(&format!("{GROUPS}{SUMS}{alone}"), plain);
            assert!(found.contains(&("hi/a".to_owned(), 128_000)), "{found:?}");
        }
    }

    #[test]
    fn lengths_of_segments_tell_the_rate() {
        let ranges = |path: &str| match path {
            "/lo.m3u8" => "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n#EXT-X-BYTERANGE:20000@0\ns\n\
                           #EXTINF:2,\n#EXT-X-BYTERANGE:12000\ns\n#EXT-X-ENDLIST\n"
                .to_owned(),
            other => plain(other),
        };
        assert_eq!(rates(&format!("{GROUPS}{SUMS}"), ranges), named(64_000, 128_000));
        let stated = |path: &str| {
            match path {
            "/hi.m3u8" => "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-BITRATE:96\n#EXTINF:2,\ns\n#EXTINF:2,\nt\n\
                           #EXT-X-BITRATE:128\n#EXTINF:4,\nu\n#EXT-X-ENDLIST\n"
                .to_owned(),
            _ => "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:2,\ns\n#EXTINF:2,\nt\n#EXTINF:4,\nu\n#EXT-X-ENDLIST\n"
                .to_owned(),
        }
        };
        assert_eq!(rates(&format!("{GROUPS}{SUMS}"), stated), named(48_000, 112_000));
    }

    #[test]
    fn contradictions_and_unknown_lengths_tell_nothing() {
        let silent = "#EXT-X-STREAM-INF:BANDWIDTH=9000000,RESOLUTION=1x1\nv.m3u8\n";
        assert_eq!(
            rates(&format!("{GROUPS}{SUMS}{silent}"), plain),
            named(0, 0),
            "more without than with sound"
        );
        let partly =
            |path: &str| plain(path).replacen("#EXTINF:2,\nt", "#EXT-X-BITRATE:64\n#EXTINF:2,\nt", 1);
        assert_eq!(rates(&format!("{GROUPS}{SUMS}"), partly), named(0, 0), "the first has no length");
    }
}
