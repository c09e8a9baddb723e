//! A live stream: media that repeats without end, of which the last minute or so is available.
//!
//! Everything here is computed from the time since the stream began; the caller has the clock.

use std::ops::Range;

use model::media::Track;

/// The segments of a track of a live stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveTrack {
    /// When each segment of a cycle ends, in nanoseconds since the cycle began; ascending, not empty.
    ends_ns: Vec<u64>,
    /// How long segments stay available, in nanoseconds.
    window_ns: u64,
}

/// A segment of a live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveSegment {
    /// Its number, counted from 1 since the stream began.
    pub(crate) number: u64,
    /// Its index in the media that repeats.
    pub(crate) index: usize,
    /// When it begins, in nanoseconds since the stream began.
    pub(crate) start_ns: u64,
    /// How long it plays, in nanoseconds.
    pub(crate) duration_ns: u64,
}

impl LiveTrack {
    /// A track that repeats; `None` if it has no duration.
    pub(crate) fn new(track: &Track, window_ns: u64) -> Option<LiveTrack> {
        let mut end_ns = 0_u64;
        let end = |duration_ns: &u64| {
            end_ns = end_ns.saturating_add(*duration_ns);
            end_ns
        };
        let ends_ns: Vec<u64> = track.durations_ns.iter().map(end).collect();
        (end_ns > 0).then_some(LiveTrack { ends_ns, window_ns })
    }

    fn cycle_ns(&self) -> u64 {
        self.ends_ns.last().copied().unwrap_or(1).max(1)
    }

    /// How many segments are complete after this time since the stream began.
    fn complete_after(&self, since_ns: u64) -> u64 {
        let (cycles, rest_ns) = (since_ns / self.cycle_ns(), since_ns % self.cycle_ns());
        let in_cycle = self.ends_ns.partition_point(|end_ns| *end_ns <= rest_ns);
        cycles.saturating_mul(self.ends_ns.len() as u64).saturating_add(in_cycle as u64)
    }

    /// The numbers of the available segments: those that are complete, and ended less than the window ago.
    pub(crate) fn available(&self, since_ns: u64) -> Range<u64> {
        let before = since_ns.checked_sub(self.window_ns).map_or(0, |ns| self.complete_after(ns));
        before.saturating_add(1)..self.complete_after(since_ns).saturating_add(1)
    }

    /// The segment with this number; `None` for 0 and for times beyond what a clock can show.
    pub(crate) fn segment(&self, number: u64) -> Option<LiveSegment> {
        let count = self.ends_ns.len() as u64;
        let place = number.checked_sub(1)?;
        let index = usize::try_from(place % count).ok()?;
        let begins_ns = if index > 0 { self.ends_ns[index - 1] } else { 0 };
        let start_ns = (place / count).checked_mul(self.cycle_ns())?.checked_add(begins_ns)?;
        Some(LiveSegment { number, index, start_ns, duration_ns: self.ends_ns[index] - begins_ns })
    }

    /// The available segment with this number.
    pub(crate) fn find(&self, number: u64, since_ns: u64) -> Option<LiveSegment> {
        self.available(since_ns).contains(&number).then(|| self.segment(number)).flatten()
    }

    /// The available segments.
    pub(crate) fn window(&self, since_ns: u64) -> Vec<LiveSegment> {
        self.available(since_ns).filter_map(|number| self.segment(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::media::TrackKind;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn track(durations_s: &[u64], window_s: u64) -> LiveTrack {
        let durations_ns = durations_s.iter().map(|seconds| seconds * S).collect();
        let track = Track { kind: TrackKind::Video, durations_ns, representations: Vec::new() };
        LiveTrack::new(&track, window_s * S).unwrap()
    }

    #[test]
    fn a_segment_is_available_from_its_end_until_it_leaves_the_window() {
        let live = track(&[3; 7], 60);
        assert_eq!(live.available(0), 1..1, "nothing is complete yet");
        assert_eq!(live.available(3 * S - 1), 1..1);
        assert_eq!(live.available(3 * S), 1..2);
        assert_eq!(live.available(60 * S), 1..21);
        assert_eq!(live.available(63 * S - 1), 1..21, "the first one ended less than 60 s ago");
        assert_eq!(live.available(63 * S), 2..22);
        assert_eq!(live.find(1, 63 * S), None);
        assert_eq!(live.find(22, 63 * S), None);
        assert_eq!(live.find(0, 63 * S), None);
        let window = live.window(63 * S);
        assert_eq!(window.len(), 20);
        assert_eq!(window[0], LiveSegment { number: 2, index: 1, start_ns: 3 * S, duration_ns: 3 * S });
        assert_eq!(window[19], LiveSegment { number: 21, index: 6, start_ns: 60 * S, duration_ns: 3 * S });
    }

    #[test]
    fn the_media_repeats_without_gaps() {
        // The last segment of the media is shorter.
        let live = track(&[4, 4, 1], 20);
        let mut end_ns = 0;
        for number in 1..100 {
            let segment = live.segment(number).unwrap();
            assert_eq!(segment.start_ns, end_ns, "{number}");
            end_ns += segment.duration_ns;
            assert_eq!(live.available(end_ns).end, number + 1, "available as soon as it ends");
            assert_eq!(live.available(end_ns - 1).end, number);
        }
        assert_eq!(end_ns, 33 * 9 * S, "99 segments are 33 cycles");
    }

    #[test]
    fn every_number_and_time_has_an_answer() {
        let live = track(&[3], 60);
        for since_ns in [0, 1, u64::MAX - 1, u64::MAX] {
            let available = live.available(since_ns);
            assert!(available.end - available.start <= 20);
            assert_eq!(live.window(since_ns).len() as u64, available.end - available.start);
        }
        assert_eq!(live.segment(u64::MAX), None);
        assert_eq!(live.find(u64::MAX, u64::MAX), None);
        let empty = Track { kind: TrackKind::Audio, durations_ns: vec![0], representations: Vec::new() };
        assert_eq!(LiveTrack::new(&empty, 1), None);
    }
}
