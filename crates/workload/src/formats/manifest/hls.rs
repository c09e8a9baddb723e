//! Playlists of HLS.

use model::media::TrackKind;
use model::url::Url;

use super::super::error::{FormatError, Place};
use super::super::hls::{MediaPlaylist, Multivariant, Part, Playlist, Rendition, Variant};
use super::super::listing::{
    ListedRepresentation, ListedSegment, ListedTrack, Period, Purpose, Reference, Resource, SegmentPlace,
    Slot, join,
};
use super::Resolver;
use super::audio_rates::{AudioRates, rate_of};

/// The distance from the end at which players begin, in target durations (RFC 8216, section 6.3.3).
const HOLD_BACK_TARGETS: u64 = 3;

impl Resolver {
    pub(super) fn begin_hls(&mut self, text: &str, url: &Url) -> Result<(), FormatError> {
        match Playlist::parse(text)? {
            Playlist::Media(media) => {
                let own = ListedRepresentation { name: "media".to_owned(), ..Default::default() };
                let kind = Some(TrackKind::Video);
                let track = ListedTrack { kind, is_main: true, representations: vec![own] };
                self.periods = vec![Period { tracks: vec![track] }];
                self.list_media(Slot { period: 0, track: 0, representation: 0 }, &media, url)
            }
            Playlist::Multivariant(multivariant) => self.begin_multivariant(&multivariant, url),
        }
    }

    pub(super) fn handle_playlist(&mut self, slot: Slot, text: &str, url: &Url) -> Result<(), FormatError> {
        match Playlist::parse(text)? {
            Playlist::Media(media) => self.list_media(slot, &media, url),
            Playlist::Multivariant(_) => {
                Err(FormatError::new("the playlist lists variants where segments are expected"))
            }
        }
    }

    /// Variants become the video track, or the audio track if none has pictures; renditions with the same
    /// name become a track, with one representation for each group.
    fn begin_multivariant(&mut self, list: &Multivariant, url: &Url) -> Result<(), FormatError> {
        let mut tracks = ListedSources::new();
        let has_pictures = list.variants.iter().any(|own| !own.is_for_seeking && !is_audio(own));
        for own in &list.variants {
            let kind = match (own.is_for_seeking, is_audio(own)) {
                (true, _) => None,
                (false, true) => Some(TrackKind::Audio),
                (false, false) => Some(TrackKind::Video),
            };
            // Variants may share a playlist and differ in their renditions.
            if tracks.iter().any(|(_, sources)| sources.iter().any(|(uri, _)| *uri == own.uri)) {
                continue;
            }
            let is_main = kind == Some(TrackKind::Video) || !has_pictures;
            let name = own.uri.clone();
            let representation =
                ListedRepresentation { name, bits_per_s: own.bits_per_s, ..Default::default() };
            let known = tracks.iter_mut().find(|(track, _)| track.kind == kind && kind.is_some());
            let place = match known {
                Some(place) => place,
                None => push(&mut tracks, kind, is_main),
            };
            place.0.representations.push(representation);
            place.1.push((own.uri.clone(), own.line));
        }
        self.audio_rates = AudioRates::of(list);
        add_renditions(&mut tracks, list, has_pictures, &mut self.audio_rates);
        let mut references = Vec::new();
        for (track, (_, sources)) in tracks.iter().enumerate() {
            for (representation, (uri, line)) in sources.iter().enumerate() {
                let resource = Resource { url: join(url, uri, Place::Line(*line))?, range: None };
                let slot = Slot { period: 0, track, representation };
                references.push(Reference { resource, purpose: Purpose::Playlist { slot } });
            }
        }
        self.periods = vec![Period { tracks: tracks.into_iter().map(|(track, _)| track).collect() }];
        references.into_iter().try_for_each(|own| self.refer(own))
    }

    fn list_media(&mut self, slot: Slot, media: &MediaPlaylist, url: &Url) -> Result<(), FormatError> {
        self.count.add(media.segments.len(), Place::Whole)?;
        if !media.is_ended {
            let live = self.live.get_or_insert_default();
            live.reload_ns = Some(live.reload_ns.unwrap_or(u64::MAX).min(media.target_ns));
            live.epoch_unix_ns = live.epoch_unix_ns.or(media.start_unix_ns);
            let hold_back = media.hold_back_ns.unwrap_or(media.target_ns.saturating_mul(HOLD_BACK_TARGETS));
            live.delay_ns = Some(live.delay_ns.unwrap_or(0).max(hold_back));
            let window = media.segments.iter().fold(0_u64, |sum, own| sum.saturating_add(own.duration_ns));
            live.window_ns = Some(live.window_ns.unwrap_or(u64::MAX).min(window));
        }
        let resource = |part: &Part| {
            let found = join(url, &part.uri, Place::Line(part.line))?;
            Ok::<_, FormatError>(Resource { url: found, range: part.range })
        };
        let initializations = media.maps.iter().map(resource).collect::<Result<Vec<_>, _>>()?;
        let segments = media.segments.iter().map(|own| {
            let (resource, place) = (resource(&own.part)?, SegmentPlace::of_number(own.number));
            Ok(ListedSegment { resource, place, duration_ns: own.duration_ns, initialization: own.map })
        });
        let segments = segments.collect::<Result<Vec<_>, FormatError>>()?;
        if let Some(own) = self.representation(slot) {
            (own.initializations, own.segments) = (initializations, segments);
            if own.bits_per_s == 0 {
                own.bits_per_s = rate_of(media).unwrap_or(0);
            }
        }
        Ok(())
    }
}

/// Tracks, and the URI and line of the playlist of each of their representations.
type ListedSources = Vec<(ListedTrack, Vec<(String, u32)>)>;

fn push(
    tracks: &mut ListedSources,
    kind: Option<TrackKind>,
    is_main: bool,
) -> &mut (ListedTrack, Vec<(String, u32)>) {
    tracks.push((ListedTrack { kind, is_main, representations: Vec::new() }, Vec::new()));
    let last = tracks.len() - 1;
    &mut tracks[last]
}

fn add_renditions(
    tracks: &mut ListedSources,
    list: &Multivariant,
    has_pictures: bool,
    rates: &mut AudioRates,
) {
    // The track of each name of audio renditions.
    let mut named: Vec<(&str, usize)> = Vec::new();
    for own in &list.renditions {
        let Some(uri) = &own.uri else { continue };
        if tracks.iter().any(|(_, sources)| sources.iter().any(|(known, _)| known == uri)) {
            continue;
        }
        let kind = kind_of(own);
        let is_audio = kind == Some(TrackKind::Audio);
        let known = named.iter().find(|(name, _)| is_audio && *name == own.name).map(|(_, place)| *place);
        let place = known.unwrap_or_else(|| {
            let is_main = own.is_default && (has_pictures || !is_audio);
            push(tracks, kind, is_main);
            if is_audio {
                named.push((&own.name, tracks.len() - 1));
            }
            tracks.len() - 1
        });
        let name = format!("{}/{}", own.group, own.name);
        let (track, sources) = &mut tracks[place];
        if is_audio {
            rates.add(&own.group, Slot { period: 0, track: place, representation: sources.len() });
        }
        track.representations.push(ListedRepresentation { name, ..Default::default() });
        sources.push((uri.clone(), own.line));
    }
}

fn kind_of(own: &Rendition) -> Option<TrackKind> {
    match own.kind.as_str() {
        "AUDIO" => Some(TrackKind::Audio),
        "VIDEO" => Some(TrackKind::Video),
        _ => None,
    }
}

/// Whether a variant has no pictures, by its codecs.
fn is_audio(own: &Variant) -> bool {
    const AUDIO: [&str; 7] = ["mp4a", "ac-3", "ec-3", "opus", "Opus", "fLaC", "alac"];
    let is_audio = |codec: &String| AUDIO.iter().any(|known| codec.starts_with(known));
    !own.has_resolution && !own.codecs.is_empty() && own.codecs.iter().all(is_audio)
}
