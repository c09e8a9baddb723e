//! What the page of a player in a browser tells of its playback, as events of a player.
//!
//! The page's script is `drive/src/browsers/players/playback.js`. Its log is JSON; times of events are
//! `performance.now()` in milliseconds (High Resolution Time, section 4), times of media are seconds.

use std::collections::HashMap;

use model::formats::{nanoseconds, shown};
use model::media::TrackKind;
use model::number::{nearest, small};
use model::player::{Player, PlayerEvent, PlayerEventKind, PlayerFault};
use model::url::Url;
use serde_json::Value;

const NANOS_PER_S: f64 = 1e9;
const NANOS_PER_MS: f64 = 1e6;
/// Further events of a page have no rows.
const MOST_EVENTS: usize = 200_000;

/// A playback in a browser.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback {
    /// The events, in the order of time.
    pub events: Vec<PlayerEvent>,
    /// How it ended.
    pub end: PlaybackEnd,
    /// The version of the player.
    pub version: String,
}

/// How a playback ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaybackEnd {
    /// All media was shown, or a live stream was watched as long as planned.
    Ended,
    /// The player gave up, with the reason.
    GaveUp(String),
    /// It had not ended when the page was asked.
    Unfinished,
}

/// A segment that the player knows. Its start is that of the plan: players correct theirs by what they find
/// in the media.
#[derive(Clone, Copy, Debug)]
struct KnownSegment {
    segment: u32,
    start_s: f64,
    duration_ns: u64,
    bits_per_s: u64,
}

/// The log of a page as events of a player.
#[derive(Clone, Debug)]
pub struct PlaybackReader<'a> {
    /// The client group.
    pub group: u16,
    /// What is played.
    pub player: &'a Player,
    /// The page's URL.
    pub document: &'a Url,
    /// When the page's `performance.now()` was 0, in nanoseconds since the run's start.
    pub origin_ns: u64,
}

impl PlaybackReader<'_> {
    /// Reads a log. Events without the documented fields are left out.
    pub fn read(&self, log: &Value) -> Playback {
        let by_path = self.segments_by_path();
        let main = self.main_kind(log);
        let mut shown_segments: Vec<KnownSegment> = Vec::new();
        let mut events = Vec::new();
        for logged in log["events"].as_array().into_iter().flatten().take(MOST_EVENTS) {
            let Some((mut event, track)) = self.event(logged) else { continue };
            let segment = match track {
                Some(kind) => {
                    let known = self.segment(logged, &by_path);
                    if kind == main && event.what != PlayerEventKind::Failed {
                        // Of two requests for the same media, the later one is shown.
                        shown_segments.retain(|other| other.segment != known.segment);
                        shown_segments.push(known);
                    }
                    Some(known)
                }
                None => shown_at(&shown_segments, logged["position"].as_f64()),
            };
            if let Some(known) = segment {
                (event.segment, event.segment_ns) = (known.segment, known.duration_ns);
                event.bits_per_s = known.bits_per_s;
            }
            events.push(event);
        }
        events.sort_by_key(|event| event.at_ns);
        let version = log["version"].as_str().map_or_else(String::new, shown);
        Playback { events, end: end(&log["end"]), version }
    }

    /// The segments of the presentation by their paths.
    fn segments_by_path(&self) -> HashMap<&str, KnownSegment> {
        let tracks = &self.player.presentation.tracks;
        let segments = tracks.iter().flat_map(|track| {
            let numbered: Vec<KnownSegment> = numbered(&track.durations_ns).collect();
            track.representations.iter().flat_map(move |of| {
                let known = numbered.clone().into_iter().zip(&of.segments);
                known.map(|(known, segment)| {
                    (segment.url.as_str(), KnownSegment { bits_per_s: of.bits_per_s, ..known })
                })
            })
        });
        segments.collect()
    }

    /// The track whose segments are shown: the video, or the audio without one.
    fn main_kind(&self, log: &Value) -> TrackKind {
        let is_video = |event: &Value| event["track"] == TrackKind::Video.name();
        let has_video = log["events"].as_array().is_some_and(|events| events.iter().any(is_video));
        if has_video { TrackKind::Video } else { TrackKind::Audio }
    }

    fn event(&self, logged: &Value) -> Option<(PlayerEvent, Option<TrackKind>)> {
        let what: PlayerEventKind = logged["what"].as_str()?.parse().ok()?;
        let track = logged["track"].as_str().and_then(|track| track.parse::<TrackKind>().ok());
        let at_ns = nanoseconds(logged["at"].as_f64()?, NANOS_PER_MS)?.checked_add(self.origin_ns)?;
        let fault = logged["fault"].as_str().and_then(|fault| fault.parse::<PlayerFault>().ok());
        let event = PlayerEvent {
            group: self.group,
            at_ns,
            what,
            track,
            buffered_ns: seconds(&logged["buffered"]).unwrap_or(0),
            track_buffered_ns: seconds(&logged["trackBuffered"]).filter(|_| track.is_some()),
            latency_ns: seconds(&logged["latency"]),
            frames: logged["frames"].as_u64(),
            dropped_frames: logged["dropped"].as_u64(),
            fault,
            ..PlayerEvent::default()
        };
        Some((event, track))
    }

    /// The segment of an event: that of the presentation with this URL, or as the player describes it.
    fn segment(&self, logged: &Value, by_path: &HashMap<&str, KnownSegment>) -> KnownSegment {
        let url = logged["url"].as_str().and_then(|url| Url::parse(url).ok());
        let path = url.filter(|url| url.has_origin_of(self.document)).map(|url| url.path);
        let known = path.and_then(|path| by_path.get(path.split('?').next().unwrap_or_default()).copied());
        known.unwrap_or_else(|| {
            let number = logged["number"].as_u64().unwrap_or(0);
            KnownSegment {
                segment: u32::try_from(number).unwrap_or(u32::MAX),
                start_s: logged["start"].as_f64().unwrap_or(0.0),
                duration_ns: seconds(&logged["duration"]).unwrap_or(0),
                bits_per_s: logged["bitsPerSecond"].as_f64().map_or(0, nearest),
            }
        })
    }
}

impl Playback {
    /// The video segments that are not of the fixed representation of the player's rule.
    pub fn segments_besides(&self, bits_per_s: u64) -> usize {
        let of_video = |event: &&PlayerEvent| {
            event.what == PlayerEventKind::Arrived && event.track == Some(TrackKind::Video)
        };
        self.events.iter().filter(of_video).filter(|event| event.bits_per_s != bits_per_s).count()
    }
}

/// The segments of a track, without bit rates.
fn numbered(durations_ns: &[u64]) -> impl Iterator<Item = KnownSegment> {
    let mut end_ns = 0_u64;
    durations_ns.iter().enumerate().map(move |(number, duration_ns)| {
        let start_s = model::number::float(end_ns) / NANOS_PER_S;
        end_ns = duration_ns.saturating_add(end_ns);
        KnownSegment { segment: small(number), start_s, duration_ns: *duration_ns, bits_per_s: 0 }
    })
}

/// The segment that is shown at a position of the media, in seconds.
fn shown_at(segments: &[KnownSegment], position_s: Option<f64>) -> Option<KnownSegment> {
    let position_s = position_s?;
    let until = |of: &KnownSegment| of.start_s + model::number::float(of.duration_ns) / NANOS_PER_S;
    let is_shown = |of: &&KnownSegment| of.start_s <= position_s && position_s < until(of);
    let before = |of: &&KnownSegment| of.start_s <= position_s;
    let last = || segments.iter().filter(before).max_by(|one, other| one.start_s.total_cmp(&other.start_s));
    segments.iter().rev().find(is_shown).or_else(last).copied()
}

/// Seconds in nanoseconds; `None` for what is no time.
fn seconds(value: &Value) -> Option<u64> {
    nanoseconds(value.as_f64()?.max(0.0), NANOS_PER_S)
}

fn end(end: &Value) -> PlaybackEnd {
    match end["what"].as_str() {
        Some("ended") => PlaybackEnd::Ended,
        Some(_) => PlaybackEnd::GaveUp(end["reason"].as_str().map_or_else(|| "no reason".to_owned(), shown)),
        None => PlaybackEnd::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use model::media::{Presentation, Representation, Segment, Track};
    use model::player::Rule;
    use serde_json::json;

    use super::*;

    const MS: u64 = 1_000_000;

    fn player() -> Player {
        let representation = |name: &str, bits_per_s| Representation {
            name: name.to_owned(),
            bits_per_s,
            initialization: None,
            later_initializations: Vec::new(),
            segments: (1..=2)
                .map(|number| Segment {
                    url: format!("/media/film/{name}/{number}.m4s"),
                    range: None,
                    bytes: None,
                })
                .collect(),
        };
        let track = Track {
            kind: TrackKind::Video,
            durations_ns: vec![2000 * MS, 1500 * MS],
            representations: vec![representation("low", 800_000), representation("high", 2_000_000)],
        };
        Player {
            presentation: Presentation { tracks: vec![track] },
            goal_ns: 4000 * MS,
            startup_ns: 2000 * MS,
            rebuffer_ns: 2000 * MS,
            rule: Rule::Hlsjs,
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: None,
            origin: None,
        }
    }

    fn read(log: &Value) -> Playback {
        let (player, document) =
            (player(), Url::parse("https://server:8442/h123-player/hlsjs.html").unwrap());
        PlaybackReader { group: 2, player: &player, document: &document, origin_ns: 1000 * MS }.read(log)
    }

    fn log() -> Value {
        let segment = |what: &str, at: f64, rung: &str, number: u32| {
            json!({
                "what": what, "at": at, "position": 0, "buffered": 1.5, "trackBuffered": 2.0, "track": "video",
                "url": format!("https://server:8442/media/film/{rung}/{number}.m4s"), "number": number + 6,
                "start": f64::from(number - 1) * 2.0 + 0.08, "duration": 2.02, "bitsPerSecond": 928_000,
                "frames": 0, "dropped": 0,
            })
        };
        json!({
            "version": "1.7.4",
            "events": [
                { "what": "opened", "at": 10.0, "position": 0, "buffered": 0 },
                segment("requested", 20.0, "low", 1),
                segment("arrived", 120.5, "low", 1),
                { "what": "playing", "at": 130.0, "position": 0, "buffered": 2 },
                segment("requested", 140.0, "high", 2),
                { "what": "stalled", "at": 2130.0, "position": 2.0, "buffered": 0, "frames": 50, "dropped": 1 },
                segment("arrived", 2500.0, "high", 2),
                { "what": "playing", "at": 2510.0, "position": 2.0, "buffered": 1.5 },
                { "what": "nonsense", "at": 2600.0 },
                { "what": "ended", "at": 4010.0, "position": 3.5, "buffered": 0, "frames": 88, "dropped": 3 },
            ],
            "end": { "what": "ended" },
        })
    }

    #[test]
    fn a_log_becomes_the_events_of_a_player() {
        let playback = read(&log());
        assert_eq!((playback.end.clone(), playback.version.as_str()), (PlaybackEnd::Ended, "1.7.4"));
        let told: Vec<_> = playback
            .events
            .iter()
            .map(|event| (event.what, event.at_ns / MS, event.segment, event.bits_per_s / 1000))
            .collect();
        let kind = |what: &str| what.parse::<PlayerEventKind>().unwrap();
        assert_eq!(
            told,
            [
                (kind("opened"), 1010, 0, 0),
                (kind("requested"), 1020, 0, 800),
                (kind("arrived"), 1120, 0, 800),
                (kind("playing"), 1130, 0, 800),
                (kind("requested"), 1140, 1, 2000),
                (kind("stalled"), 3130, 1, 2000),
                (kind("arrived"), 3500, 1, 2000),
                (kind("playing"), 3510, 1, 2000),
                (kind("ended"), 5010, 1, 2000),
            ]
        );
        let arrived = &playback.events[2];
        assert_eq!((arrived.group, arrived.segment_ns, arrived.buffered_ns), (2, 2000 * MS, 1500 * MS));
        assert_eq!((arrived.track, arrived.track_buffered_ns), (Some(TrackKind::Video), Some(2000 * MS)));
        let last = playback.events.last().unwrap();
        assert_eq!((last.frames, last.dropped_frames, last.track_buffered_ns), (Some(88), Some(3), None));
        assert_eq!((playback.segments_besides(800_000), playback.segments_besides(1)), (1, 2));
    }

    #[test]
    fn segments_that_the_plan_does_not_know_are_described_by_the_player() {
        let mut log = log();
        log["events"][1]["url"] = json!("https://elsewhere/media/film/low/1.m4s");
        let requested = &read(&log).events[1];
        assert_eq!((requested.segment, requested.segment_ns, requested.bits_per_s), (7, 2020 * MS, 928_000));
    }

    #[test]
    fn a_player_that_gave_up_says_why() {
        let log = json!({
            "events": [{
                "what": "gave_up", "at": 5, "fault": "manifest_invalid", "reason": "no EXTM3U\ndelimiter",
                "latency": 1e300, "position": "x",
            }],
            "end": { "what": "gave_up", "reason": "no EXTM3U\ndelimiter" },
        });
        let playback = read(&log);
        assert_eq!(playback.end, PlaybackEnd::GaveUp("no EXTM3U\\ndelimiter".to_owned()));
        let [event] = playback.events.as_slice() else { panic!("{playback:?}") };
        assert_eq!((event.fault, event.latency_ns), (Some(PlayerFault::ManifestInvalid), None));
        let nothing = read(&json!([1, { "events": 3 }]));
        assert_eq!((nothing.events.len(), nothing.end), (0, PlaybackEnd::Unfinished));
    }
}
