//! The player: requests the segments of its tracks, each track's one after the other, and plays them in real
//! time.
//!
//! Playback is computed, not waited for. Whenever the player gets the time, it follows playback up to then.
//! So the stamps of stalls and of the end come from the buffers, not from a wake-up.

mod cmcd;
mod live;
#[cfg(test)]
mod live_tests;
mod media;
mod requests;
#[cfg(test)]
mod tests;
mod track;

use std::sync::Arc;

use model::media::TrackKind;
use model::player::{Player, PlayerEvent, PlayerEventKind, PlayerFault};

use crate::source::Seeds;
use crate::url_table::UrlTable;
use live::Live;
use media::TrackMedia;
use track::{Arriving, Fetch, Moment, TrackPlayer, Wish};

/// The most rows for a segment: requested, failed, requested again, arrived, stalled, playing.
const EVENTS_PER_SEGMENT: usize = 6;
/// The initial room for rows: enough for the longest video that a study can have.
const MOST_ROOM: usize = 10_000 * EVENTS_PER_SEGMENT + 1;
/// How often the speed of live playback is chosen.
const SPEED_EVERY_NS: u64 = 500_000_000;
/// Playback at the speed of the media.
const NORMAL_PPM: u64 = 1_000_000;

/// What clients play, and how.
#[derive(Debug)]
pub struct Video {
    player: Player,
    urls: UrlTable,
    tracks: Arc<Vec<TrackMedia>>,
}

impl Video {
    /// The presentation of a player.
    pub(crate) fn new(player: &Player) -> Self {
        let urls = UrlTable::new(player.resources());
        let tracks = player.presentation.tracks.iter().map(|track| TrackMedia::new(track, &urls));
        Video { tracks: Arc::new(tracks.collect()), player: player.clone(), urls }
    }
}

/// Plays one presentation once.
#[derive(Clone, Debug)]
pub struct VideoPlayer {
    video: Arc<Video>,
    media: Arc<Vec<TrackMedia>>,
    tracks: Vec<TrackPlayer>,
    /// The time up to which playback has been followed.
    at_ns: u64,
    playback: Playback,
    /// Whether playback has begun.
    has_begun: bool,
    /// The time of the media up to which it was shown.
    position_ns: u64,
    /// The speed of playback, in millionths of the media's.
    speed_ppm: u64,
    /// When the speed is chosen next.
    speed_ns: u64,
    /// The manifest of a live stream.
    live: Option<Box<Live>>,
    /// The jumps that have happened.
    seeks: usize,
    /// The URLs whose requests must be given up.
    cancelled: Vec<u32>,
    /// The player's session, for CMCD.
    session: u64,
    events: Vec<PlayerEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Playback {
    /// Until enough media is buffered to begin or to resume.
    Waiting,
    Playing,
    /// Everything was played, or the player gave up.
    Over,
}

impl VideoPlayer {
    /// A player whose first segments are due at `now`.
    pub(crate) fn new(video: Arc<Video>, seeds: Seeds, now: u64) -> Self {
        let segments = usize::try_from(video.player.segments()).unwrap_or(usize::MAX);
        let room = segments.saturating_mul(EVENTS_PER_SEGMENT).saturating_add(1).min(MOST_ROOM);
        let media = Arc::clone(&video.tracks);
        let rule = video.player.rule;
        let mut player = VideoPlayer {
            tracks: media.iter().map(|track| TrackPlayer::new(rule, track)).collect(),
            media,
            at_ns: now,
            playback: Playback::Waiting,
            has_begun: false,
            position_ns: 0,
            speed_ppm: NORMAL_PPM,
            speed_ns: now,
            live: video.player.live.as_ref().map(|live| Box::new(Live::new(live, now))),
            seeks: 0,
            cancelled: Vec::new(),
            session: seeds.own,
            events: Vec::with_capacity(room),
            video,
        };
        player.follow(now);
        player
    }

    /// Follows playback up to `now`, and requests what becomes due. A live stream is watched for its
    /// duration.
    fn follow(&mut self, now: u64) {
        let Some(ends_ns) = self.live.as_ref().map(|live| live.ends_ns) else {
            return self.follow_media(now);
        };
        self.follow_media(now.min(ends_ns));
        if now >= ends_ns && self.playback != Playback::Over {
            let media = Arc::clone(&self.media);
            if self.has_begun {
                self.playback = Playback::Over;
                self.note_playback(&media, PlayerEventKind::Ended);
            } else {
                self.give_up_playing(&media, PlayerFault::NeverPlayed);
            }
        }
    }

    fn follow_media(&mut self, now: u64) {
        let media = Arc::clone(&self.media);
        while self.playback != Playback::Over {
            self.want_due(&media);
            self.choose_speed();
            if self.playback == Playback::Waiting {
                self.at_ns = self.at_ns.max(now);
                return;
            }
            let until_ns = self.next_speed_ns().map_or(now, |speed_ns| speed_ns.min(now)).max(self.at_ns);
            let step_ns = self.media_within(self.until_next_step(&media), until_ns - self.at_ns);
            self.at_ns += self.duration_of(step_ns).min(until_ns - self.at_ns);
            self.position_ns = self.position_ns.saturating_add(step_ns);
            let buffered_ns = self.buffered_ns(&media);
            if buffered_ns == 0 && self.has_all(&media) {
                self.note_playback(&media, PlayerEventKind::Ended);
                self.playback = Playback::Over;
            } else if self.next_seek_ns() == Some(self.position_ns) {
                self.seek(&media);
            } else if self.at_ns >= now {
                return;
            } else if buffered_ns == 0 {
                // A segment that arrives at this moment is in time.
                self.playback = Playback::Waiting;
                self.note_playback(&media, PlayerEventKind::Stalled);
            }
        }
    }

    /// Chooses the speed of live playback by its latency.
    fn choose_speed(&mut self) {
        let Some(live) = self.live.as_ref().filter(|live| live.catch_up && self.speed_ns <= self.at_ns)
        else {
            return;
        };
        self.speed_ns = self.at_ns.saturating_add(SPEED_EVERY_NS);
        let latency_ns = live.latency_ns(self.position_ns, self.at_ns);
        self.speed_ppm = latency_ns.map_or(NORMAL_PPM, |latency_ns| live.speed_ppm(latency_ns));
    }

    /// When the speed of playback is chosen next, if it is.
    fn next_speed_ns(&self) -> Option<u64> {
        self.live.as_ref().filter(|live| live.catch_up).map(|_| self.speed_ns)
    }

    /// Whether further segments of a live stream will come.
    fn is_growing(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.has_ended)
    }

    /// The manifest lists other segments: playback begins, or jumps if the next segment is no longer listed.
    fn handle_new_segments(&mut self, media: &[TrackMedia]) {
        let Some(live) = &self.live else { return };
        let target_ns = live.target_ns(media);
        let mut next = self.tracks.iter().map(|track| track.next).enumerate();
        let is_left = next.any(|(number, next)| live.has_left(number, next));
        if self.tracks.is_empty() {
            let rule = self.video.player.rule;
            self.tracks = media.iter().map(|of| TrackPlayer::new(rule, of)).collect();
            let of = &media[self.main(media)];
            self.position_ns = of.start_ns(of.segment_at(target_ns));
            for (track, of) in self.tracks.iter_mut().zip(media) {
                track.seek(of, self.position_ns);
            }
        } else if is_left {
            self.jump(media, target_ns);
        }
    }

    /// Wants the next segment of each track that is due.
    fn want_due(&mut self, media: &[TrackMedia]) {
        for number in 0..self.tracks.len() {
            self.skip_vanished(media, number);
            let (track, of) = (&self.tracks[number], &media[number]);
            let is_due = track.fetch == Fetch::Idle
                && !track.has_all(of)
                && track.buffered_ns(self.position_ns) <= self.video.player.goal_ns;
            if is_due {
                let moment = self.moment();
                let place = self.tracks[number].choose(of, &moment);
                self.want(media, number, place);
            }
        }
    }

    /// Leaves out a track's next segments if they have vanished from the window of a live stream; whether it
    /// did. Their time passes like that of the picture before them.
    fn skip_vanished(&mut self, media: &[TrackMedia], number: usize) -> bool {
        let track = &mut self.tracks[number];
        let after = self.live.as_ref().and_then(|live| live.after_vanished(number, track.next));
        let Some(after) = after.filter(|_| track.fetch == Fetch::Idle) else { return false };
        track.skip_to(&media[number], after);
        true
    }

    fn want(&mut self, media: &[TrackMedia], number: usize, place: usize) {
        if self.tracks[number].want(&media[number], place, self.at_ns) {
            let segment = self.tracks[number].next;
            self.note(media, PlayerEventKind::Requested, number, (segment, place));
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            goal_ns: self.video.player.goal_ns,
            position_ns: self.position_ns,
            is_live: self.live.is_some(),
            now_ns: self.at_ns,
        }
    }

    /// Media that can be played: every track that has further segments has it.
    fn buffered_ns(&self, media: &[TrackMedia]) -> u64 {
        let both = || self.tracks.iter().zip(media);
        let is_growing = self.is_growing();
        let incomplete = both().filter(|(track, of)| is_growing || !track.has_all(of));
        let incomplete = incomplete.map(|(track, _)| track.end_ns).min();
        let end_ns = incomplete.or_else(|| both().map(|(track, _)| track.end_ns).max());
        end_ns.unwrap_or(0).saturating_sub(self.position_ns)
    }

    /// Whether everything that will ever come has arrived.
    fn has_all(&self, media: &[TrackMedia]) -> bool {
        !self.is_growing() && !self.tracks.is_empty() && self.has_listed(media)
    }

    /// Whether everything that is known has arrived.
    fn has_listed(&self, media: &[TrackMedia]) -> bool {
        self.tracks.iter().zip(media).all(|(track, of)| track.has_all(of))
    }

    /// The media until a track's next segment becomes due, playback jumps, or the buffer is empty.
    fn until_next_step(&self, media: &[TrackMedia]) -> u64 {
        let seek_ns = self.next_seek_ns().map(|at_ns| at_ns.saturating_sub(self.position_ns));
        let until = [self.until_due(media), seek_ns].into_iter().flatten();
        until.chain([self.buffered_ns(media)]).min().unwrap_or(0)
    }

    /// The media until the next segment of a track becomes due that waits for its buffer to fall.
    fn until_due(&self, media: &[TrackMedia]) -> Option<u64> {
        let waits =
            |(track, of): &(&TrackPlayer, &TrackMedia)| track.fetch == Fetch::Idle && !track.has_all(of);
        let waiting = self.tracks.iter().zip(media).filter(waits);
        let goal_ns = self.video.player.goal_ns;
        let over = waiting.map(|(track, _)| track.buffered_ns(self.position_ns).saturating_sub(goal_ns));
        over.filter(|over_ns| *over_ns > 0).min()
    }

    /// The time of the media at which playback jumps next.
    fn next_seek_ns(&self) -> Option<u64> {
        self.video.player.seeks.get(self.seeks).map(|seek| seek.at_ns)
    }

    /// Playback jumps: the buffers are dropped, and what is requested is given up.
    fn seek(&mut self, media: &[TrackMedia]) {
        let Some(seek) = self.video.player.seeks.get(self.seeks).copied() else { return };
        self.seeks += 1;
        self.jump(media, seek.to_ns);
    }

    fn jump(&mut self, media: &[TrackMedia], to_ns: u64) {
        self.position_ns = to_ns;
        for (track, of) in self.tracks.iter_mut().zip(media) {
            self.cancelled.extend(track.seek(of, to_ns));
        }
        self.playback = Playback::Waiting;
        self.note_playback(media, PlayerEventKind::Seeked);
    }

    /// The media that plays within a time, at most `most_ns` of it.
    fn media_within(&self, most_ns: u64, time_ns: u64) -> u64 {
        if self.speed_ppm == NORMAL_PPM {
            most_ns.min(time_ns)
        } else {
            most_ns.min(scaled(time_ns, self.speed_ppm, NORMAL_PPM))
        }
    }

    /// How long media plays.
    fn duration_of(&self, media_ns: u64) -> u64 {
        if self.speed_ppm == NORMAL_PPM {
            media_ns
        } else {
            scaled(media_ns, NORMAL_PPM, self.speed_ppm).saturating_add(1)
        }
    }

    /// A segment of a track, or an initialization, has arrived.
    fn arrive(
        &mut self,
        media: &[TrackMedia],
        number: usize,
        (wish, sent_ns, arriving): (Wish, u64, Arriving),
    ) {
        let of = &media[number];
        if wish.is_initialization {
            self.tracks[number].is_second_try = false;
            self.tracks[number].initialize(wish);
            return self.want(media, number, wish.place);
        }
        let (segment, moment) = (self.tracks[number].next, self.moment());
        self.tracks[number].arrive(of, (wish, sent_ns, arriving), &moment);
        self.note(media, PlayerEventKind::Arrived, number, (segment, wish.place));
        self.play_if_ready(media);
    }

    /// Begins or resumes playback once enough media is buffered.
    fn play_if_ready(&mut self, media: &[TrackMedia]) {
        let Player { startup_ns, rebuffer_ns, goal_ns, .. } = self.video.player;
        // The buffer never grows far beyond its goal.
        let enough_ns = if self.has_begun { rebuffer_ns } else { startup_ns }.min(goal_ns);
        let buffered_ns = self.buffered_ns(media);
        // At the live edge there is no more to wait for.
        let is_ready = buffered_ns >= enough_ns.max(1) || buffered_ns > 0 && self.has_listed(media);
        let is_ready = is_ready || self.has_all(media);
        if self.playback == Playback::Waiting && is_ready {
            self.playback = Playback::Playing;
            self.has_begun = true;
            self.note_playback(media, PlayerEventKind::Playing);
        }
    }

    /// A request has failed: it is made once more, in the lowest representation. After a second failure the
    /// player gives up.
    fn fail(&mut self, media: &[TrackMedia], number: usize, wish: Wish) {
        let track = &mut self.tracks[number];
        let is_last = std::mem::replace(&mut track.is_second_try, true);
        let segment = track.next;
        self.note(media, PlayerEventKind::Failed, number, (segment, wish.place));
        if self.skip_vanished(media, number) {
            self.tracks[number].is_second_try = false;
        } else if is_last {
            self.give_up_playing(media, PlayerFault::SegmentFailed);
        } else {
            self.want(media, number, 0);
        }
    }

    fn give_up_playing(&mut self, media: &[TrackMedia], fault: PlayerFault) {
        self.playback = Playback::Over;
        self.note_playback(media, PlayerEventKind::GaveUp);
        if let Some(event) = self.events.last_mut() {
            event.fault = Some(fault);
        }
    }

    /// Requests an arriving segment in a lower representation if the rule says so.
    fn judge(&mut self, media: &[TrackMedia], number: usize) {
        let moment = self.moment();
        let Some((wish, lower)) = self.tracks[number].judge(&media[number], &moment) else { return };
        self.cancelled.extend(self.tracks[number].give_up(Some(lower)));
        let segment = self.tracks[number].next;
        self.note(media, PlayerEventKind::Abandoned, number, (segment, wish.place));
    }

    /// The track whose playback is shown: the video, or the audio without one.
    fn main(&self, media: &[TrackMedia]) -> usize {
        media.iter().position(|of| of.kind == TrackKind::Video).unwrap_or(0)
    }

    /// Notes an event of playback, with the segment of the main track that is shown or due.
    fn note_playback(&mut self, media: &[TrackMedia], what: PlayerEventKind) {
        let number = self.main(media);
        let (Some(track), Some(of)) = (self.tracks.get(number), media.get(number)) else {
            // A live stream of which nothing is known.
            return self.push(PlayerEvent { what, ..PlayerEvent::default() });
        };
        let segment = of.segment_at(self.position_ns).min(of.count().saturating_sub(1));
        let has_arrived = segment < track.next;
        let place = match track.requested_place().filter(|_| !has_arrived) {
            Some(place) => place,
            None => track.place_of(segment),
        };
        let event = PlayerEvent {
            what,
            segment: u32::try_from(segment).unwrap_or(u32::MAX),
            segment_ns: of.duration_ns(segment),
            bits_per_s: of.bits_per_s(place),
            buffered_ns: self.buffered_ns(media),
            ..PlayerEvent::default()
        };
        self.push(event);
    }

    /// Notes an event of a track's segment.
    fn note(
        &mut self,
        media: &[TrackMedia],
        what: PlayerEventKind,
        number: usize,
        (segment, place): (usize, usize),
    ) {
        let of = &media[number];
        let event = PlayerEvent {
            what,
            track: Some(of.kind),
            segment: u32::try_from(segment).unwrap_or(u32::MAX),
            segment_ns: of.duration_ns(segment),
            bits_per_s: of.bits_per_s(place),
            buffered_ns: self.buffered_ns(media),
            track_buffered_ns: Some(self.tracks[number].buffered_ns(self.position_ns)),
            ..PlayerEvent::default()
        };
        self.push(event);
    }

    fn push(&mut self, event: PlayerEvent) {
        let live = self.live.as_ref();
        let latency_ns = live.and_then(|live| live.latency_ns(self.position_ns, self.at_ns));
        self.events.push(PlayerEvent { at_ns: self.at_ns, latency_ns, ..event });
    }

    /// The number of the track that a URL was requested for.
    fn track_of(&self, url: u32) -> Option<usize> {
        self.tracks.iter().position(|track| track.is_about(url))
    }
}

/// `ns` × `up` ÷ `down`, rounded down.
fn scaled(ns: u64, up: u64, down: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(up) / u128::from(down.max(1))).unwrap_or(u64::MAX)
}
