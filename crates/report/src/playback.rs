//! The playback of a video in one run, condensed from the player's events: buffer, segments, stalls.

use model::RunRecord;
use model::media::TrackKind;
use model::player::{PlayerEvent, PlayerEventKind};

use model::number::{count, float};

/// Segments of a run; if there are more, neighbours are merged.
const MAX_SPANS: usize = 240;

/// The playback of a video in one run; times in nanoseconds since the first segment was requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPlayback {
    /// The run's cell.
    pub cell: u32,
    /// Its number in the plan.
    pub run: u32,
    /// When playback began; `None` if it never did.
    pub startup_ns: Option<u64>,
    /// How many clients began; the playback is that of the first.
    pub clients: u32,
    /// When the playback ended, or the player gave up.
    pub end_ns: u64,
    /// Whether the whole video was played.
    pub is_whole: bool,
    /// The number of stalls.
    pub stalls: u32,
    /// Their total duration.
    pub stalled_ns: u64,
    /// The mean representation of all segments that arrived, in bit/s.
    pub mean_bits_per_s: f64,
    /// Times and the media in the buffer, in order; linear in between.
    pub buffer: Vec<(u64, u64)>,
    /// The segments, in order.
    pub segments: Vec<SegmentSpan>,
    /// The stalls, in order.
    pub stall_spans: Vec<StallSpan>,
}

/// The time from the request of a segment to its arrival; of several segments of a track if they are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentSpan {
    /// Its track.
    pub kind: TrackKind,
    /// The first segment, counted from 0.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// When the first was requested.
    pub wanted_ns: u64,
    /// When the last arrived, or its request failed.
    pub done_ns: u64,
    /// The lowest representation, in bit/s.
    pub lowest_bits_per_s: u64,
    /// The highest.
    pub highest_bits_per_s: u64,
    /// Media in the buffer at that time.
    pub buffered_ns: u64,
    /// Requests that failed or were abandoned.
    pub failed: u32,
}

/// A stall; several stalls if they are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallSpan {
    /// When the first began.
    pub from_ns: u64,
    /// When the last ended.
    pub to_ns: u64,
    /// The number of stalls.
    pub stalls: u32,
    /// Their total duration.
    pub stalled_ns: u64,
}

impl RunPlayback {
    /// The playback of the first client of a client group of a stored run; `None` if it plays no video.
    pub fn from_record(record: &RunRecord, group: u16) -> Option<RunPlayback> {
        let events = || record.player.iter().filter(|event| event.group == group && event.client == 0);
        let mut building = Building::new(record, group, events().next()?.at_ns);
        let is_video = |event: &&PlayerEvent| event.track.is_none_or(|kind| kind == TrackKind::Video);
        if !events().filter(|event| event.what == PlayerEventKind::Arrived).any(|event| is_video(&event)) {
            building.main = TrackKind::Audio;
        }
        for event in events() {
            building.add(event);
        }
        Some(building.finish().condensed(MAX_SPANS))
    }

    /// The same with at most `max` segments, a quarter as many stalls, and four times as many points of the
    /// buffer. Merged neighbours keep their extremes.
    pub(crate) fn condensed(mut self, max: usize) -> RunPlayback {
        let of_track = |kind: TrackKind| {
            let own: Vec<SegmentSpan> =
                self.segments.iter().filter(|span| span.kind == kind).cloned().collect();
            let share = max * own.len() / self.segments.len().max(1);
            merged(&own, share.max(1), SegmentSpan::merge)
        };
        self.segments = TrackKind::ALL.into_iter().rev().flat_map(of_track).collect();
        self.stall_spans = merged(&self.stall_spans, max.div_ceil(4), |all, next| StallSpan {
            to_ns: next.to_ns,
            stalls: all.stalls + next.stalls,
            stalled_ns: all.stalled_ns + next.stalled_ns,
            ..all
        });
        let chunk = self.buffer.len().div_ceil(max.max(1));
        if chunk > 4 {
            self.buffer = self.buffer.chunks(chunk).flat_map(extremes).collect();
        }
        self
    }
}

impl SegmentSpan {
    /// This and the next one of its track.
    fn merge(all: SegmentSpan, next: &SegmentSpan) -> SegmentSpan {
        SegmentSpan {
            last: next.last,
            done_ns: next.done_ns,
            lowest_bits_per_s: all.lowest_bits_per_s.min(next.lowest_bits_per_s),
            highest_bits_per_s: all.highest_bits_per_s.max(next.highest_bits_per_s),
            buffered_ns: next.buffered_ns,
            failed: all.failed + next.failed,
            ..all
        }
    }
}

/// At most `max` spans, with neighbours merged.
fn merged<T: Clone>(spans: &[T], max: usize, merge: impl Fn(T, &T) -> T) -> Vec<T> {
    let chunk = spans.len().div_ceil(max.max(1)).max(1);
    let whole = |spans: &[T]| Some(spans[1..].iter().fold(spans.first()?.clone(), &merge));
    spans.chunks(chunk).filter_map(whole).collect()
}

/// The first, the lowest, the highest and the last point, in order of time.
fn extremes(points: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let numbers = || 0..points.len();
    let lowest = numbers().min_by_key(|number| points[*number].1);
    let highest = numbers().max_by_key(|number| points[*number].1);
    let mut kept: Vec<usize> =
        [numbers().next(), lowest, highest, numbers().last()].into_iter().flatten().collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|number| points[number]).collect()
}

/// The place of an event's track; that of the video for playback.
fn place(event: &PlayerEvent) -> usize {
    let kind = event.track.unwrap_or_default();
    TrackKind::ALL.iter().position(|known| *known == kind).unwrap_or(0)
}

/// A playback under construction.
#[derive(Default)]
struct Building {
    playback: RunPlayback,
    began_ns: u64,
    /// The time and buffer of the last event, and whether playback is running.
    at_ns: u64,
    buffered_ns: u64,
    is_playing: bool,
    /// When the last segment of each track was requested.
    wanted_ns: [u64; TrackKind::ALL.len()],
    stalled_since: Option<u64>,
    /// The track whose representations count: the video, or the audio without one.
    main: TrackKind,
    bits_per_s: Vec<u64>,
}

impl Building {
    fn new(record: &RunRecord, group: u16, began_ns: u64) -> Building {
        let client = record.clients.iter().find(|client| client.group == group);
        let main = TrackKind::Video;
        let playback = RunPlayback {
            clients: client.map_or(1, |client| client.clients_begun),
            cell: record.cell + u32::from(group),
            run: record.run,
            buffer: vec![(0, 0)],
            ..RunPlayback::default()
        };
        Building { playback, began_ns, main, ..Building::default() }
    }

    fn add(&mut self, event: &PlayerEvent) {
        let now = event.at_ns.saturating_sub(self.began_ns);
        self.follow(now, event.buffered_ns);
        match event.what {
            PlayerEventKind::Requested => self.wanted_ns[place(event)] = now,
            PlayerEventKind::Arrived => {
                if event.track.is_none_or(|kind| kind == self.main) {
                    self.bits_per_s.push(event.bits_per_s);
                }
                self.span(event, now, 0);
            }
            PlayerEventKind::Failed | PlayerEventKind::Abandoned => self.span(event, now, 1),
            PlayerEventKind::Seeked => self.is_playing = false,
            PlayerEventKind::Opened | PlayerEventKind::GaveUp => {}
            PlayerEventKind::Playing => {
                self.playback.startup_ns.get_or_insert(now);
                self.is_playing = true;
                self.end_stall(now);
            }
            PlayerEventKind::Stalled => {
                self.is_playing = false;
                self.stalled_since = Some(now);
            }
            PlayerEventKind::Ended => {
                self.is_playing = false;
                self.playback.is_whole = true;
            }
        }
        self.playback.end_ns = now;
    }

    /// The buffer falls in real time during playback, and jumps when a segment arrives.
    fn follow(&mut self, now: u64, buffered_ns: u64) {
        let passed_ns = if self.is_playing { now.saturating_sub(self.at_ns) } else { 0 };
        let before_ns = self.buffered_ns.saturating_sub(passed_ns);
        let is_bend = before_ns != buffered_ns || before_ns == 0;
        for point in [(now, before_ns), (now, buffered_ns)] {
            if is_bend && self.playback.buffer.last() != Some(&point) {
                self.playback.buffer.push(point);
            }
        }
        (self.at_ns, self.buffered_ns) = (now, buffered_ns);
    }

    fn span(&mut self, event: &PlayerEvent, now: u64, failed: u32) {
        self.playback.segments.push(SegmentSpan {
            kind: event.track.unwrap_or_default(),
            first: event.segment,
            last: event.segment,
            wanted_ns: self.wanted_ns[place(event)],
            done_ns: now,
            lowest_bits_per_s: event.bits_per_s,
            highest_bits_per_s: event.bits_per_s,
            buffered_ns: event.buffered_ns,
            failed,
        });
    }

    fn end_stall(&mut self, now: u64) {
        let Some(from_ns) = self.stalled_since.take() else { return };
        let stalled_ns = now.saturating_sub(from_ns);
        self.playback.stalls += 1;
        self.playback.stalled_ns = self.playback.stalled_ns.saturating_add(stalled_ns);
        self.playback.stall_spans.push(StallSpan { from_ns, to_ns: now, stalls: 1, stalled_ns });
    }

    fn finish(mut self) -> RunPlayback {
        let end_ns = self.playback.end_ns;
        self.end_stall(end_ns);
        if self.playback.buffer.last().is_some_and(|(stamp, _)| *stamp < end_ns) {
            self.playback.buffer.push((end_ns, self.buffered_ns));
        }
        if !self.bits_per_s.is_empty() {
            let sum: f64 = self.bits_per_s.iter().map(|rate| float(*rate)).sum();
            self.playback.mean_bits_per_s = sum / count(self.bits_per_s.len());
        }
        self.playback
    }
}
