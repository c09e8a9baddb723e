//! A presentation as an adaptive player plays it over HTTP: its media, the player's buffers, the rule that
//! chooses, and the rows that playing it leaves behind.

mod browser;

use serde::{Deserialize, Serialize};

pub use browser::{BrowserPlay, PlayerLibrary};

use crate::media::{ByteRange, Presentation, Representation, Segment, Track, TrackKind};
use crate::named;
use crate::number::{self, float};
use crate::units::{self, NANOS_PER_S, format_ns};

/// A presentation and how it is played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// What it plays: at most one track of each kind. Empty for a live stream, whose manifest the client
    /// reads.
    pub presentation: Presentation,
    /// Nothing is requested for a track while more of its media than this is buffered.
    pub goal_ns: u64,
    /// Playback begins when this much media of every track is buffered, or all has arrived.
    pub startup_ns: u64,
    /// Playback resumes after a stall or a seek when this much media of every track is buffered, or all has
    /// arrived.
    pub rebuffer_ns: u64,
    /// What chooses the representation of each segment.
    pub rule: Rule,
    /// Jumps of the playback, in the order in which they happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeks: Vec<Seek>,
    /// The live stream that it plays instead of `presentation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LivePlay>,
    /// Whether and how requests carry what the player knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmcd: Option<Cmcd>,
    /// How a browser plays it; `None` if none can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<BrowserPlay>,
    /// The only origin that has the media, such as `https://media.example.test`; `None` if the study's
    /// servers have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A jump of the playback. The buffers are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seek {
    /// It happens when playback reaches this time of the media.
    pub at_ns: u64,
    /// The time of the media at which playback continues.
    pub to_ns: u64,
}

/// A live stream and how it is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivePlay {
    /// The path of its manifest.
    pub manifest: String,
    /// How far playback should be behind the live edge: the end of the newest segment.
    pub latency_ns: u64,
    /// Whether playback speeds up or slows down by up to 5 % to keep to that latency.
    pub catch_up: bool,
    /// How long it is watched, from the first request.
    pub duration_ns: u64,
    /// After this many requests, it gives up; `None` without a limit. Manifests and segments count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_requests: Option<u64>,
}

named! { "a way to send CMCD keys";
    /// How requests carry CMCD keys (CTA-5004, section 2).
    pub enum Cmcd {
        /// In the fields `CMCD-Request`, `CMCD-Object`, `CMCD-Status` and `CMCD-Session`.
        Headers = "headers",
        /// In the query argument `CMCD`.
        Query = "query",
    }
}

/// What chooses the representation of the next segment (an ABR rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Rule {
    /// Always the same; tracks without that representation have their highest.
    Fixed {
        /// The representation, in bit/s.
        bits_per_s: u64,
    },
    /// The highest that 85 % of the throughput carry: the harmonic mean of the last five segments.
    ///
    /// The mean is that of the rate-based rule in Yin et al. (SIGCOMM 2015), the margin FESTIVE's (Jiang et
    /// al., CoNEXT 2012).
    Throughput,
    /// BBA-0: a map from the media buffered to a bit rate (Huang et al., SIGCOMM 2014, algorithm 1).
    Buffer,
    /// BOLA-BASIC: the utility of a representation against the room that it takes (Spiteri et al., INFOCOM
    /// 2016).
    Bola,
    /// The rules of dash.js 5 as shipped: throughput or BOLA by the level of the buffer, with its safety
    /// rules.
    Dashjs,
    /// The same without BOLA.
    DashjsThroughput,
    /// The same without the throughput rule.
    DashjsBola,
    /// The rule of hls.js 1 as shipped.
    Hlsjs,
}

impl Rule {
    /// The names of all rules, as studies write them.
    pub const NAMES: [&str; 8] =
        ["fixed", "throughput", "buffer", "bola", "dashjs", "dashjs_throughput", "dashjs_bola", "hlsjs"];

    /// The adaptive rule of a name.
    pub fn adaptive(name: &str) -> Option<Rule> {
        let all = [
            Rule::Throughput,
            Rule::Buffer,
            Rule::Bola,
            Rule::Dashjs,
            Rule::DashjsThroughput,
            Rule::DashjsBola,
            Rule::Hlsjs,
        ];
        all.into_iter().find(|rule| rule.name() == name)
    }

    /// The name used in studies and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Fixed { .. } => "fixed",
            Rule::Throughput => "throughput",
            Rule::Buffer => "buffer",
            Rule::Bola => "bola",
            Rule::Dashjs => "dashjs",
            Rule::DashjsThroughput => "dashjs_throughput",
            Rule::DashjsBola => "dashjs_bola",
            Rule::Hlsjs => "hlsjs",
        }
    }

    /// In words, such as `throughput rule` or `fixed at 8 Mbit/s`.
    pub fn describe(self) -> String {
        match self {
            Rule::Fixed { bits_per_s } => format!("fixed at {}", rate(bits_per_s)),
            other => format!("{} rule", other.name()),
        }
    }
}

/// A resource that a player may request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaResource {
    /// The path.
    pub path: String,
    /// The requested part of it; `None` for the whole.
    pub range: Option<ByteRange>,
    /// The length of its response, if known.
    pub bytes: Option<u64>,
}

impl MediaResource {
    /// The resource of a segment.
    pub fn of(segment: &Segment) -> MediaResource {
        let bytes = segment.range.map(ByteRange::length).or(segment.bytes);
        MediaResource { path: segment.url.clone(), range: segment.range, bytes }
    }
}

/// One video track of constant bit rates: the segments of a representation are `/bytes/N` with N = bit rate ×
/// duration ÷ 8.
pub fn constant_rate_video(ladder_bits_per_s: &[u64], segment_ns: u64, segments: u32) -> Presentation {
    let representation = |bits_per_s: &u64| {
        let bits = u128::from(*bits_per_s) * u128::from(segment_ns) / u128::from(NANOS_PER_S);
        let bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX);
        let segment = Segment { url: format!("/bytes/{bytes}"), range: None, bytes: Some(bytes) };
        Representation {
            name: rate(*bits_per_s),
            bits_per_s: *bits_per_s,
            initialization: None,
            later_initializations: Vec::new(),
            segments: vec![segment; segments as usize],
        }
    };
    let track = Track {
        kind: TrackKind::Video,
        durations_ns: vec![segment_ns; segments as usize],
        representations: ladder_bits_per_s.iter().map(representation).collect(),
    };
    Presentation { tracks: vec![track] }
}

impl Player {
    /// The track whose representations are compared: the video, or the audio without one.
    pub fn main_track(&self) -> Option<&Track> {
        self.presentation.tracks_of(TrackKind::Video).next().or(self.presentation.tracks.first())
    }

    /// The bit rates of the main track's representations, in bit/s, ascending.
    pub fn ladder_bits_per_s(&self) -> Vec<u64> {
        self.main_track().map(Track::ladder_bits_per_s).unwrap_or_default()
    }

    /// The segments of all tracks.
    pub fn segments(&self) -> u64 {
        self.presentation.tracks.iter().map(|track| track.durations_ns.len() as u64).sum()
    }

    /// Whether a representation needs more requests than those for its segments.
    pub fn has_initializations(&self) -> bool {
        let mut representations = self.presentation.tracks.iter().flat_map(|track| &track.representations);
        representations.any(|one| one.initializations().next().is_some())
    }

    /// The most requests of a client that never fails: each segment once, again after each seek backward, and
    /// the initialization segments. Those of a live stream have its limit, or none.
    pub fn most_requests(&self) -> Option<u64> {
        if let Some(live) = &self.live {
            return live.most_requests;
        }
        let representations = self.presentation.tracks.iter().flat_map(|track| &track.representations);
        let initializations = representations.flat_map(Representation::initializations).count() as u64;
        let visits = 1 + self.seeks.iter().filter(|seek| seek.to_ns <= seek.at_ns).count() as u64;
        Some(self.segments().saturating_mul(visits).saturating_add(initializations))
    }

    /// Requests that it makes at once, at most: one for each track, and one for a live stream's manifest.
    pub fn requests_at_once(&self) -> u32 {
        let tracks = number::small(self.presentation.tracks.len());
        if self.live.is_some() { number::small(TrackKind::ALL.len()) + 1 } else { tracks.max(1) }
    }

    /// The longest requested segment, in nanoseconds of media.
    pub fn longest_segment_ns(&self) -> u64 {
        let durations = self.presentation.tracks.iter().flat_map(|track| &track.durations_ns);
        durations.copied().max().unwrap_or(0)
    }

    /// Whether every client requests the same segments in the same representations, whatever the network.
    pub fn is_fixed(&self) -> bool {
        matches!(self.rule, Rule::Fixed { .. }) && self.live.is_none()
    }

    /// The place of a fixed rule's representation in a track: its highest if it has no such one.
    pub fn fixed_place(bits_per_s: u64, ladder_bits_per_s: &[u64]) -> usize {
        let place = ladder_bits_per_s.iter().position(|rate| *rate == bits_per_s);
        place.unwrap_or(ladder_bits_per_s.len().saturating_sub(1))
    }

    /// The bytes of the media that it plays at least, in the lowest representations that its rule allows; as
    /// far as they are known.
    pub fn least_bytes(&self) -> u64 {
        let of_track = |track: &Track| {
            let place = match self.rule {
                Rule::Fixed { bits_per_s } => Player::fixed_place(bits_per_s, &track.ladder_bits_per_s()),
                _ => 0,
            };
            let segments = track.representations.get(place).map(|chosen| &chosen.segments);
            let bytes = segments.into_iter().flatten().filter_map(|segment| MediaResource::of(segment).bytes);
            bytes.fold(0, u64::saturating_add)
        };
        self.presentation.tracks.iter().map(of_track).fold(0, u64::saturating_add)
    }

    /// How long the whole presentation plays, without any stall; a live stream as long as it is watched.
    pub fn media_ns(&self) -> u64 {
        self.live.as_ref().map_or_else(|| self.presentation.duration_ns(), |live| live.duration_ns)
    }

    /// Everything that it may request, each once; of a live stream only the manifest.
    pub fn resources(&self) -> Vec<MediaResource> {
        let manifest = self.live.as_ref().map(|live| MediaResource {
            path: live.manifest.clone(),
            range: None,
            bytes: None,
        });
        let representations = self.presentation.tracks.iter().flat_map(|track| &track.representations);
        let segments = representations.flat_map(Representation::resources);
        let mut known = std::collections::HashSet::new();
        let all = manifest.into_iter().chain(segments.map(MediaResource::of));
        all.filter(|resource| known.insert((resource.path.clone(), resource.range))).collect()
    }

    /// In words, such as `30 segments of 2 s at 1, 2.5 or 8 Mbit/s, throughput rule, buffer 12 s`.
    pub fn describe(&self) -> String {
        let media = match &self.live {
            Some(live) => format!("live {} for {}", live.manifest, format_ns(live.duration_ns)),
            None => self.describe_media(),
        };
        format!("{media}, {}, buffer {}", self.rule.describe(), format_ns(self.goal_ns))
    }

    fn describe_media(&self) -> String {
        let of_track = |track: &Track| {
            let longest = track.durations_ns.iter().copied().max().unwrap_or(0);
            let same = track.durations_ns.iter().all(|ns| *ns == longest);
            let up_to = if same { "" } else { "up to " };
            let (segments, of) = (track.durations_ns.len(), format_ns(longest));
            format!("{segments} segments of {up_to}{of} at {}", describe_ladder(&track.ladder_bits_per_s()))
        };
        let tracks = &self.presentation.tracks;
        match tracks.as_slice() {
            [only] => of_track(only),
            many => {
                let named: Vec<String> =
                    many.iter().map(|track| format!("{}: {}", track.kind, of_track(track))).collect();
                named.join("; ")
            }
        }
    }
}

/// Representations in words, such as `1, 2.5 or 8 Mbit/s`.
pub fn describe_ladder(ladder_bits_per_s: &[u64]) -> String {
    let rates: Vec<String> = ladder_bits_per_s.iter().map(|bits| rate(*bits)).collect();
    let Some(last) = rates.last() else { return String::new() };
    // A unit is next to the last number that has it.
    let short = |pair: &[String]| match (pair[0].split_once(' '), pair[1].split_once(' ')) {
        (Some((number, unit)), Some((_, next))) if unit == next => number.to_owned(),
        _ => pair[0].clone(),
    };
    let rest: Vec<String> = rates.windows(2).map(short).collect();
    if rest.is_empty() { last.clone() } else { format!("{} or {last}", rest.join(", ")) }
}

fn rate(bits_per_s: u64) -> String {
    units::format_rate(float(bits_per_s))
}

/// Something that happened to a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerEvent {
    /// The client group.
    pub group: u16,
    /// The client's number within the group.
    pub client: u32,
    /// When, in nanoseconds since the run's start, on the clock of the rows of requests.
    pub at_ns: u64,
    /// What.
    pub what: PlayerEventKind,
    /// The track that it is about; `None` for playback, which needs all tracks.
    pub track: Option<TrackKind>,
    /// The segment that it is about, counted from 0: of playback, the one of the main track whose media is
    /// shown or due to be shown.
    pub segment: u32,
    /// The duration of that segment.
    pub segment_ns: u64,
    /// The representation of that segment, in bit/s of media.
    pub bits_per_s: u64,
    /// Media that can be played from then on: arrived in every track and not yet shown.
    pub buffered_ns: u64,
    /// The same of its track alone.
    pub track_buffered_ns: Option<u64>,
    /// How far playback is behind the live edge; `None` for media on demand.
    pub latency_ns: Option<u64>,
    /// Pictures that were due until then; `None` for players that decode nothing.
    pub frames: Option<u64>,
    /// Those of them that were not shown, because they were late.
    pub dropped_frames: Option<u64>,
    /// Why the player gave up, if it did.
    pub fault: Option<PlayerFault>,
}

named! { "an event of a player";
    /// What happened to a player.
    #[derive(Default)]
    pub enum PlayerEventKind {
        /// A browser's player was given the manifest. Other players begin with a request.
        Opened = "opened",
        /// It wanted a segment.
        #[default]
        Requested = "requested",
        /// A segment was there, whole; in a browser, also taken into the buffer.
        Arrived = "arrived",
        /// Playback began, or went on after a stall or a seek.
        Playing = "playing",
        /// Playback stood still: the buffer was empty before the end.
        Stalled = "stalled",
        /// All media was shown, or a live stream was watched as long as planned.
        Ended = "ended",
        /// The request for a segment failed.
        Failed = "failed",
        /// The player gave up the request for a segment, to request it in a lower representation.
        Abandoned = "abandoned",
        /// Playback jumped to the segment; the buffers were dropped.
        Seeked = "seeked",
        /// The player gave up.
        GaveUp = "gave_up",
    }
}

named! { "a reason to give up";
    /// Why a player gave up.
    pub enum PlayerFault {
        /// A segment failed twice: it is missing, or has a wrong length.
        SegmentFailed = "segment_failed",
        /// The manifest of a live stream failed three times in a row.
        ManifestFailed = "manifest_failed",
        /// The manifest cannot be read, or lists no media.
        ManifestInvalid = "manifest_invalid",
        /// The manifest exceeds the limits of length or of segments.
        ManifestTooLarge = "manifest_too_large",
        /// The manifest listed nothing new for too long.
        ManifestStalled = "manifest_stalled",
        /// Playback of a live stream never began while it was watched.
        NeverPlayed = "never_played",
        /// The newest segment of the manifest is older than before.
        ManifestWentBack = "manifest_went_back",
        /// It would have sent more requests than it may.
        TooManyRequests = "too_many_requests",
        /// The browser cannot decode the media.
        MediaInvalid = "media_invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_as_long_as_their_bit_rate_says() {
        let player = Player {
            presentation: constant_rate_video(&[1_000_000, 2_500_000, 8_000_000], 500_000_000, 16),
            goal_ns: 2_000_000_000,
            startup_ns: 500_000_000,
            rebuffer_ns: 500_000_000,
            rule: Rule::Fixed { bits_per_s: 8_000_000 },
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: None,
            origin: None,
        };
        let paths: Vec<String> = player.resources().into_iter().map(|resource| resource.path).collect();
        assert_eq!(paths, ["/bytes/62500", "/bytes/156250", "/bytes/500000"]);
        assert_eq!(
            (player.media_ns(), player.segments(), player.least_bytes()),
            (8_000_000_000, 16, 8_000_000)
        );
        let words = "16 segments of 500 ms at 1, 2.5 or 8 Mbit/s, fixed at 8 Mbit/s, buffer 2 s";
        assert_eq!(player.describe(), words);
        assert_eq!(describe_ladder(&[500_000, 1_000_000]), "500 kbit/s or 1 Mbit/s");
        let many = describe_ladder(&[300_000, 700_000, 1_500_000, 3_000_000]);
        assert_eq!(many, "300, 700 kbit/s, 1.5 or 3 Mbit/s");
    }

    #[test]
    fn resources_are_requested_by_path_and_range() {
        let part = |first| Segment {
            url: "/v.mp4".to_owned(),
            range: ByteRange::of_length(first, 100),
            bytes: None,
        };
        let mut presentation = constant_rate_video(&[1000], 1_000_000_000, 2);
        presentation.tracks[0].representations[0].initialization = Some(part(0));
        presentation.tracks[0].representations[0].segments = vec![part(100), part(200)];
        let player = Player {
            presentation,
            goal_ns: 1,
            startup_ns: 1,
            rebuffer_ns: 1,
            rule: Rule::Hlsjs,
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: None,
            origin: None,
        };
        let ranges: Vec<Option<ByteRange>> = player.resources().iter().map(|one| one.range).collect();
        assert_eq!(ranges, [0, 100, 200].map(|first| ByteRange::of_length(first, 100)));
        assert_eq!(player.least_bytes(), 200);
    }
}
