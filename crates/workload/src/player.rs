//! The player: requests a video's segments one after the other, and plays them in real time.
//!
//! Playback is computed, not waited for. Whenever the player gets the time, it follows playback up to then.
//! So the stamps of stalls and of the end come from the buffer, not from a wake-up.

use std::sync::Arc;

use model::player::{Player, PlayerEvent, PlayerEventKind};

use crate::abr::{self, Throughput};
use crate::source::{Connections, Due, RequestSource};

/// The most rows for a segment: requested, failed, requested again, arrived, stalled, playing.
const EVENTS_PER_SEGMENT: usize = 6;
/// The initial room for rows: enough for the longest video that a study can have.
const MOST_ROOM: usize = 10_000 * EVENTS_PER_SEGMENT + 1;

/// A video that clients play, and how.
#[derive(Debug)]
pub struct Video {
    player: Player,
    paths: Vec<String>,
}

impl Video {
    /// The video of a player.
    pub(crate) fn new(player: &Player) -> Self {
        Video { paths: player.paths(), player: player.clone() }
    }
}

/// Plays one video once.
#[derive(Clone, Debug)]
pub struct VideoPlayer {
    video: Arc<Video>,
    /// The time up to which playback has been followed.
    at_ns: u64,
    playback: Playback,
    fetch: Fetch,
    /// Media that arrived and was not played yet.
    buffered_ns: u64,
    shown_ns: u64,
    /// The representation of each segment that arrived, as its place in the ladder.
    arrived: Vec<usize>,
    /// Whether the requested segment has failed once.
    is_second_try: bool,
    throughput: Throughput,
    events: Vec<PlayerEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Playback {
    /// Until enough media is buffered to begin or to resume.
    Waiting,
    Playing,
    /// The video ended, or the player gave up.
    Over,
}

/// The state of the next segment; a rung is a place in the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetch {
    /// Not requested: the buffer is full, or there is no further segment.
    Idle,
    /// Due, and waiting for a connection.
    Wanted { rung: usize, intended_ns: u64 },
    /// Requested.
    InFlight { rung: usize, sent_ns: u64 },
}

impl VideoPlayer {
    /// A player whose first segment is due at `now`.
    pub(crate) fn new(video: Arc<Video>, now: u64) -> Self {
        let segments = video.player.segments as usize;
        let mut player = VideoPlayer {
            at_ns: now,
            playback: Playback::Waiting,
            fetch: Fetch::Idle,
            buffered_ns: 0,
            shown_ns: 0,
            arrived: Vec::with_capacity(segments.min(MOST_ROOM)),
            is_second_try: false,
            throughput: Throughput::default(),
            events: Vec::with_capacity(
                segments.saturating_mul(EVENTS_PER_SEGMENT).saturating_add(1).min(MOST_ROOM),
            ),
            video,
        };
        player.follow(now);
        player
    }

    /// Follows playback up to `now`, and requests what becomes due.
    fn follow(&mut self, now: u64) {
        while self.playback != Playback::Over {
            if self.is_hungry() {
                let before = self.arrived.last().copied();
                self.want(abr::choose(&self.video.player, &self.throughput, self.buffered_ns, before));
            }
            if self.playback == Playback::Waiting {
                self.at_ns = self.at_ns.max(now);
                return;
            }
            let step_ns = self.until_next_step().min(now.saturating_sub(self.at_ns));
            self.at_ns += step_ns;
            self.buffered_ns -= step_ns;
            self.shown_ns = self.shown_ns.saturating_add(step_ns);
            if self.buffered_ns == 0 && self.has_all() {
                self.note(PlayerEventKind::Ended, self.arrived.len() - 1, *self.arrived.last().unwrap_or(&0));
                self.playback = Playback::Over;
            } else if self.at_ns >= now {
                return;
            } else if self.buffered_ns == 0 {
                // A segment that arrives at this moment is in time.
                self.playback = Playback::Waiting;
                self.note(PlayerEventKind::Stalled, self.arrived.len(), self.requested_rung());
            }
        }
    }

    /// Whether another segment is due now.
    fn is_hungry(&self) -> bool {
        self.fetch == Fetch::Idle && !self.has_all() && self.buffered_ns <= self.video.player.goal_ns
    }

    fn has_all(&self) -> bool {
        self.arrived.len() >= self.video.player.segments as usize
    }

    /// How long playback continues until the buffer falls to its goal, if the next segment waits for that, or
    /// to zero.
    fn until_next_step(&self) -> u64 {
        if self.fetch == Fetch::Idle && !self.has_all() {
            self.buffered_ns.saturating_sub(self.video.player.goal_ns)
        } else {
            self.buffered_ns
        }
    }

    fn want(&mut self, rung: usize) {
        self.fetch = Fetch::Wanted { rung, intended_ns: self.at_ns };
        self.note(PlayerEventKind::Requested, self.arrived.len(), rung);
    }

    fn arrive(&mut self, rung: usize, took_ns: u64) {
        let bits_per_s = self.video.player.ladder_bits_per_s.get(rung).copied().unwrap_or(0);
        self.throughput.add(self.video.player.segment_bytes(bits_per_s), took_ns);
        self.is_second_try = false;
        self.buffered_ns = self.buffered_ns.saturating_add(self.video.player.segment_ns);
        self.note(PlayerEventKind::Arrived, self.arrived.len(), rung);
        self.arrived.push(rung);
        // The buffer never grows far beyond its goal.
        let enough_ns = self.video.player.startup_ns.min(self.video.player.goal_ns);
        if self.playback == Playback::Waiting && (self.buffered_ns >= enough_ns || self.has_all()) {
            self.playback = Playback::Playing;
            let shown = self.shown_ns / self.video.player.segment_ns.max(1);
            let shown = usize::try_from(shown).unwrap_or(usize::MAX).min(self.arrived.len() - 1);
            self.note(PlayerEventKind::Playing, shown, self.arrived[shown]);
        }
    }

    /// The representation of the segment that playback waits for.
    fn requested_rung(&self) -> usize {
        match self.fetch {
            Fetch::Wanted { rung, .. } | Fetch::InFlight { rung, .. } => rung,
            Fetch::Idle => 0,
        }
    }

    fn note(&mut self, what: PlayerEventKind, segment: usize, rung: usize) {
        self.events.push(PlayerEvent {
            group: 0,
            client: 0,
            at_ns: self.at_ns,
            what,
            segment: u32::try_from(segment).unwrap_or(u32::MAX),
            bits_per_s: self.video.player.ladder_bits_per_s.get(rung).copied().unwrap_or(0),
            buffered_ns: self.buffered_ns,
        });
    }
}

impl RequestSource for VideoPlayer {
    fn paths(&self) -> Vec<&str> {
        self.video.paths.iter().map(String::as_str).collect()
    }

    fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        self.video
            .player
            .ladder_bits_per_s
            .get(url as usize)
            .map(|rate| self.video.player.segment_bytes(*rate))
    }

    /// The time has come to `now`.
    fn handle_time(&mut self, now: u64) {
        self.follow(now);
    }

    fn poll_request(&mut self, _target: usize, now: u64) -> Option<Due> {
        self.follow(now);
        let Fetch::Wanted { rung, intended_ns } = self.fetch else { return None };
        self.fetch = Fetch::InFlight { rung, sent_ns: now };
        Some(Due { url: u32::try_from(rung).unwrap_or(u32::MAX), intended_ns })
    }

    fn waiting(&self, _target: usize) -> usize {
        usize::from(matches!(self.fetch, Fetch::Wanted { .. }))
    }

    /// A segment that failed is requested once more, in the lowest representation. After a second failure the
    /// player gives up.
    fn handle_done(&mut self, _url: u32, is_ok: bool, now: u64) {
        self.follow(now);
        let Fetch::InFlight { rung, sent_ns } = self.fetch else { return };
        self.fetch = Fetch::Idle;
        if is_ok {
            self.arrive(rung, now.saturating_sub(sent_ns));
        } else {
            self.note(PlayerEventKind::Failed, self.arrived.len(), rung);
            if std::mem::replace(&mut self.is_second_try, true) {
                self.playback = Playback::Over;
            } else {
                self.want(0);
            }
        }
        self.follow(now);
    }

    /// The video ended, or the player gave up.
    fn is_finished(&self, _now: u64) -> bool {
        self.playback == Playback::Over
    }

    /// When the next segment becomes due, or the last one ends.
    fn next_ns(&self) -> Option<u64> {
        if self.playback != Playback::Playing || self.fetch != Fetch::Idle {
            return None;
        }
        Some(self.at_ns.saturating_add(self.until_next_step()))
    }

    /// The numbers of the client and of its group are 0 in them.
    fn take_player_events(&mut self) -> Vec<PlayerEvent> {
        std::mem::take(&mut self.events)
    }

    fn connections(&self, _limit: u32) -> Connections {
        // Segments are requested one after the other.
        Connections { at_once: 0, limit: 1, streams: 1 }
    }
}

#[cfg(test)]
mod tests {
    use model::player::Rule;
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    /// A run's clock does not begin with its client.
    const BEGAN: u64 = 7 * MS;

    fn video(rule: Rule) -> Player {
        Player {
            ladder_bits_per_s: vec![1_000_000, 2_500_000, 8_000_000],
            segment_ns: 500 * MS,
            segments: 16,
            goal_ns: 2_000 * MS,
            startup_ns: 500 * MS,
            rule,
        }
    }

    /// Plays a video on a virtual clock; `link` returns how long the n-th request takes, or its failure after
    /// a while.
    fn play(player: &Player, mut link: impl FnMut(usize, u64) -> Result<u64, u64>) -> Vec<PlayerEvent> {
        let mut video = VideoPlayer::new(Arc::new(Video::new(player)), BEGAN);
        let (mut now, mut in_flight, mut requests) = (BEGAN, None, 0);
        while !video.is_finished(0) {
            video.handle_time(now);
            if let Some(due) = video.poll_request(0, now) {
                assert_eq!(in_flight, None, "one request at a time");
                assert_eq!(video.poll_request(0, now), None, "nor another");
                assert!(due.intended_ns <= now);
                let answer = link(requests, video.expected_body_bytes(due.url).unwrap());
                let took = answer.unwrap_or_else(|took| took);
                in_flight = Some((due.url, now + took, answer.is_ok()));
                requests += 1;
            }
            let done_ns = in_flight.map(|(_, done_ns, _)| done_ns);
            let Some(next) = done_ns.into_iter().chain(video.next_ns()).min() else { break };
            assert!(next > now || done_ns == Some(next) || video.is_finished(0), "it moves on");
            now = next;
            if let Some((url, done_ns, is_ok)) = in_flight.filter(|(_, done_ns, _)| *done_ns <= now) {
                in_flight = None;
                video.handle_done(url, is_ok, done_ns);
            }
        }
        assert!(video.is_finished(0));
        let events = video.take_player_events();
        assert!(events.len() <= player.segments as usize * EVENTS_PER_SEGMENT + 1, "memory is bounded");
        events
    }

    /// A link of a constant rate, nothing else.
    fn at(bits_per_s: u64) -> impl FnMut(usize, u64) -> Result<u64, u64> {
        move |_, bytes| Ok(bytes * 8 * 1_000_000_000 / bits_per_s)
    }

    /// When something happened, in milliseconds since the player began.
    fn stamps(events: &[PlayerEvent], what: PlayerEventKind) -> Vec<u64> {
        events.iter().filter(|event| event.what == what).map(|event| (event.at_ns - BEGAN) / MS).collect()
    }

    fn rungs(events: &[PlayerEvent]) -> Vec<u64> {
        let arrived = events.iter().filter(|event| event.what == PlayerEventKind::Arrived);
        arrived.map(|event| event.bits_per_s / 100_000).collect()
    }

    /// Start-up, media shown, stalls and the whole, in nanoseconds.
    fn times(player: &Player, events: &[PlayerEvent]) -> (u64, u64, u64, u64) {
        let (mut startup, mut shown, mut stalled) = (0, 0, 0);
        let (mut before, mut state) = (BEGAN, PlayerEventKind::Requested);
        for event in events {
            let took = event.at_ns - before;
            match state {
                PlayerEventKind::Playing => shown += took,
                PlayerEventKind::Stalled => stalled += took,
                _ => startup += took,
            }
            before = event.at_ns;
            if matches!(event.what, PlayerEventKind::Playing | PlayerEventKind::Stalled) {
                state = event.what;
            }
        }
        assert!(shown <= player.media_ns());
        (startup, shown, stalled, before - BEGAN)
    }

    #[test]
    fn a_link_of_half_the_bit_rate_stalls_for_half_of_the_time() {
        let player = video(Rule::Fixed { bits_per_s: 8_000_000 });
        let events = play(&player, at(4_000_000));
        // A segment of 4 Mbit takes a second and plays for half of one.
        let seconds = |from: u64, to: u64| (from..=to).map(|second| second * 1000).collect::<Vec<_>>();
        assert_eq!(stamps(&events, PlayerEventKind::Arrived), seconds(1, 16));
        assert_eq!(stamps(&events, PlayerEventKind::Requested), seconds(0, 15));
        assert_eq!(stamps(&events, PlayerEventKind::Playing), seconds(1, 16));
        let half_later: Vec<u64> = seconds(1, 15).into_iter().map(|ms| ms + 500).collect();
        assert_eq!(stamps(&events, PlayerEventKind::Stalled), half_later);
        assert_eq!(stamps(&events, PlayerEventKind::Ended), [16_500]);
        assert_eq!(times(&player, &events), (1000 * MS, 8000 * MS, 7500 * MS, 16_500 * MS));
    }

    #[test]
    fn a_faster_link_waits_at_the_buffers_goal() {
        let player = video(Rule::Fixed { bits_per_s: 1_000_000 });
        let events = play(&player, at(4_000_000));
        // 125 ms for 500: the buffer grows by 375 with each, and above two seconds it is waited for.
        let requested = stamps(&events, PlayerEventKind::Requested);
        assert_eq!(requested[..8], [0, 125, 250, 375, 500, 625, 1125, 1625]);
        assert_eq!(times(&player, &events), (125 * MS, 8000 * MS, 0, 8125 * MS));
        let most = events.iter().map(|event| event.buffered_ns).max();
        assert_eq!(most, Some(2375 * MS));
    }

    #[test]
    fn a_link_as_fast_as_the_media_never_stalls() {
        let player = video(Rule::Fixed { bits_per_s: 8_000_000 });
        let events = play(&player, at(8_000_000));
        assert_eq!(times(&player, &events), (500 * MS, 8000 * MS, 0, 8500 * MS));
        assert_eq!(stamps(&events, PlayerEventKind::Stalled), [0; 0]);
    }

    #[test]
    fn rules_choose_what_the_link_carries() {
        let events = play(&video(Rule::Throughput), at(4_000_000));
        let mut expected = vec![25; 16];
        expected[0] = 10;
        assert_eq!(rungs(&events), expected);
        assert_eq!(rungs(&play(&video(Rule::Throughput), at(800_000))), [10; 16]);
        for rule in [Rule::Buffer, Rule::Bola] {
            let events = play(&video(rule), at(4_000_000));
            assert_eq!(rungs(&events)[0], 10, "{rule:?} begins at the bottom");
            assert!(rungs(&events).contains(&25), "{rule:?}: {:?}", rungs(&events));
            assert_eq!(rungs(&play(&video(rule), at(100_000_000)))[15], 80, "{rule:?}");
        }
    }

    #[test]
    fn more_than_a_segment_may_be_wanted_before_it_begins() {
        let player = Player { startup_ns: 1500 * MS, ..video(Rule::Fixed { bits_per_s: 8_000_000 }) };
        let events = play(&player, at(4_000_000));
        // 1.5 s are there at 3 s, and with what comes at 4 and 5 s they last until 5.5 s; the next 1.5 s are
        // there at 8 s.
        assert_eq!(stamps(&events, PlayerEventKind::Playing), [3000, 8000, 13_000, 16_000]);
        assert_eq!(stamps(&events, PlayerEventKind::Stalled), [5500, 10_500, 15_500]);
        let short = Player { segments: 1, ..player };
        let events = play(&short, at(4_000_000));
        assert_eq!(stamps(&events, PlayerEventKind::Playing), [1000], "all media are enough");
        assert_eq!(stamps(&events, PlayerEventKind::Ended), [1500]);
    }

    #[test]
    fn a_segment_that_failed_is_asked_for_once_more_at_the_bottom() {
        let player = video(Rule::Fixed { bits_per_s: 2_500_000 });
        let mut link = at(4_000_000);
        let events =
            play(&player, |request, bytes| if request == 3 { Err(MS) } else { link(request, bytes) });
        let failed = events.iter().position(|event| event.what == PlayerEventKind::Failed).unwrap();
        assert_eq!((events[failed].segment, events[failed].bits_per_s), (3, 2_500_000));
        let again = &events[failed + 1];
        assert_eq!((again.what, again.segment), (PlayerEventKind::Requested, 3));
        assert_eq!((again.at_ns, again.bits_per_s), (events[failed].at_ns, 1_000_000));
        assert_eq!(rungs(&events)[2..6], [25, 10, 25, 25]);
        assert_eq!(stamps(&events, PlayerEventKind::Ended).len(), 1);
        // Twice is too often: it gives up, and never reports its end.
        let events =
            play(&player, |request, bytes| if request >= 3 { Err(MS) } else { at(4_000_000)(0, bytes) });
        assert_eq!(stamps(&events, PlayerEventKind::Failed).len(), 2);
        assert_eq!(events.last().unwrap().what, PlayerEventKind::Failed);
        assert_eq!(rungs(&events).len(), 3);
    }

    fn rules() -> impl Strategy<Value = Rule> {
        let fixed = prop_oneof![Just(1_000_000), Just(2_500_000), Just(8_000_000)];
        let fixed = fixed.prop_map(|bits_per_s| Rule::Fixed { bits_per_s });
        prop_oneof![fixed, Just(Rule::Throughput), Just(Rule::Buffer), Just(Rule::Bola)]
    }

    proptest! {
        #[test]
        fn time_and_media_add_up_on_any_link(
            rule in rules(),
            (segment_ms, segments) in (1_u64..3000, 1_u32..60),
            (goal_ms, startup_ms) in (1_u64..20_000, 1_u64..20_000),
            took_ms in proptest::collection::vec(0_u64..6000, 1..60),
        ) {
            let player = Player {
                segment_ns: segment_ms * MS,
                segments,
                goal_ns: goal_ms * MS,
                startup_ns: startup_ms * MS,
                ..video(rule)
            };
            let link = |request: usize, _| Ok(took_ms[request % took_ms.len()] * MS);
            let events = play(&player, link);
            prop_assert_eq!(&events, &play(&player, link), "the same again");
            prop_assert!(events.is_sorted_by_key(|event| event.at_ns));
            let (startup, shown, stalled, wall) = times(&player, &events);
            prop_assert_eq!(shown, player.media_ns());
            prop_assert_eq!(startup + shown + stalled, wall);
            let most = events.iter().map(|event| event.buffered_ns).max().unwrap_or(0);
            prop_assert!(most <= player.goal_ns + player.segment_ns, "{most} buffered");
            for event in events.iter().filter(|event| event.what == PlayerEventKind::Requested) {
                prop_assert!(event.buffered_ns <= player.goal_ns);
            }
            let arrived: Vec<u32> = events
                .iter()
                .filter(|event| event.what == PlayerEventKind::Arrived)
                .map(|event| event.segment)
                .collect();
            prop_assert_eq!(arrived, (0..segments).collect::<Vec<_>>());
            let stalls = stamps(&events, PlayerEventKind::Stalled).len();
            prop_assert_eq!(stamps(&events, PlayerEventKind::Playing).len(), stalls + 1);
            prop_assert_eq!(events.last().map(|event| event.what), Some(PlayerEventKind::Ended));
        }
    }
}
