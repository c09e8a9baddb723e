//! The player as its worker sees it: which requests are due, and what became of them.

use std::sync::Arc;

use model::media::ByteRange;
use model::player::{PlayerEvent, PlayerFault};

use super::track::{Arriving, Fetch, TrackPlayer};
use super::{Playback, VideoPlayer};
use crate::cmcd::CmcdKeys;
use crate::source::{Connections, Content, Due, RequestSource};
use crate::url_table::UrlTable;

impl RequestSource for VideoPlayer {
    fn paths(&self) -> Vec<&str> {
        self.video.urls.resources().iter().map(|resource| resource.path.as_str()).collect()
    }

    fn range(&self, url: u32) -> Option<ByteRange> {
        self.video.urls.resources().get(url as usize)?.range
    }

    fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        if self.live.is_none() {
            return self.video.urls.resources().get(url as usize)?.bytes;
        }
        let Fetch::InFlight { wish, .. } = self.tracks.get(self.track_of(url)?)?.fetch else { return None };
        wish.resource.bytes
    }

    /// The time has come to `now`.
    fn handle_time(&mut self, now: u64) {
        self.follow(now);
        if let Some(live) = &mut self.live {
            live.handle_time(now);
        }
        let media = Arc::clone(&self.media);
        for number in 0..self.tracks.len() {
            if self.tracks[number].next_judgement_ns().is_some_and(|judged_ns| judged_ns <= now) {
                self.judge(&media, number);
            }
        }
    }

    fn poll_request(&mut self, _target: usize, now: u64) -> Option<Due> {
        self.follow(now);
        let is_waiting = self.waiting(0) > 0;
        if is_waiting && self.live.as_mut().is_some_and(|live| !live.count_request()) {
            if self.playback != Playback::Over {
                let media = Arc::clone(&self.media);
                self.give_up_playing(&media, PlayerFault::TooManyRequests);
            }
            return None;
        }
        if let Some((url, intended_ns)) = self.live.as_mut().and_then(|live| live.take_request(now)) {
            return Some(Due { url, intended_ns });
        }
        let wanted = self.tracks.iter_mut().find_map(|track| match track.fetch {
            Fetch::Wanted { wish, intended_ns } => Some((track, wish, intended_ns)),
            _ => None,
        });
        let (track, wish, intended_ns) = wanted?;
        track.fetch = Fetch::InFlight { wish, sent_ns: now, arriving: Arriving::default() };
        Some(Due { url: wish.resource.url, intended_ns })
    }

    fn waiting(&self, _target: usize) -> usize {
        let manifest = usize::from(self.live.as_ref().is_some_and(|live| live.is_waiting()));
        let segments = self.tracks.iter().filter(|track| matches!(track.fetch, Fetch::Wanted { .. }));
        manifest + segments.count()
    }

    fn handle_body(&mut self, url: u32, received_bytes: u64, now: u64) {
        let Some(number) = self.track_of(url) else { return };
        let Fetch::InFlight { arriving, .. } = &mut self.tracks[number].fetch else { return };
        arriving.first.get_or_insert((now, received_bytes));
        arriving.bytes = received_bytes;
        arriving.pieces = arriving.pieces.saturating_add(1);
        if self.tracks[number].rule.abandons() {
            self.follow(now);
            let media = Arc::clone(&self.media);
            self.judge(&media, number);
        }
    }

    fn handle_done(&mut self, url: u32, is_ok: bool, now: u64) {
        self.follow(now);
        let media = Arc::clone(&self.media);
        if let Some(live) = self.live.as_mut().filter(|live| live.is_about(url)) {
            if let Some(fault) = live.handle_done(is_ok, now)
                && self.playback != Playback::Over
            {
                self.give_up_playing(&media, fault);
            }
            return self.follow(now);
        }
        let Some(number) = self.track_of(url) else { return };
        let fetch = std::mem::replace(&mut self.tracks[number].fetch, Fetch::Idle);
        match fetch {
            Fetch::InFlight { wish, sent_ns, arriving } if is_ok => {
                self.arrive(&media, number, (wish, sent_ns, arriving));
            }
            Fetch::InFlight { wish, .. } => self.fail(&media, number, wish),
            Fetch::Dropped { then, .. } => {
                self.cancelled.retain(|cancelled| *cancelled != url);
                if let Some(place) = then.filter(|_| self.playback != Playback::Over) {
                    self.want(&media, number, place);
                }
            }
            Fetch::Idle | Fetch::Wanted { .. } => {}
        }
        self.follow(now);
    }

    /// The manifest of a live stream and what it refers to.
    fn wants_body(&self, url: u32) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_about(url))
    }

    fn handle_content(&mut self, url: u32, content: &Content<'_>, urls: &mut UrlTable) {
        self.follow(content.now_ns);
        let Some(live) = self.live.as_mut().filter(|_| self.playback != Playback::Over) else { return };
        let has_new = live.handle_content(url, content, urls, Arc::make_mut(&mut self.media));
        if has_new {
            let media = Arc::clone(&self.media);
            self.handle_new_segments(&media);
            self.follow(content.now_ns);
        }
    }

    fn take_cancelled(&mut self) -> Option<u32> {
        self.cancelled.pop()
    }

    /// Everything was played, or the player gave up.
    fn is_finished(&self, _now: u64) -> bool {
        self.playback == Playback::Over
    }

    /// When a next segment becomes due, playback jumps or ends, or an arriving segment must be judged.
    fn next_ns(&self) -> Option<u64> {
        if self.playback == Playback::Over {
            return None;
        }
        let live = self.live.as_ref();
        let manifest_ns = live.and_then(|live| live.next_ns().into_iter().chain([live.ends_ns]).min());
        let judged_ns =
            self.tracks.iter().filter_map(TrackPlayer::next_judgement_ns).chain(manifest_ns).min();
        if self.playback == Playback::Waiting {
            return judged_ns;
        }
        let buffered_ns = self.buffered_ns(&self.media);
        let seek_ns = self.next_seek_ns().map(|at_ns| at_ns.saturating_sub(self.position_ns));
        let seek_ns = seek_ns.filter(|until_ns| *until_ns <= buffered_ns);
        let end_ns = self.has_all(&self.media).then_some(buffered_ns);
        let steps = [self.until_due(&self.media), seek_ns, end_ns].into_iter().flatten();
        let steps = steps.map(|media_ns| self.at_ns.saturating_add(self.duration_of(media_ns)));
        steps.chain(judged_ns).chain(self.next_speed_ns()).min()
    }

    fn cmcd(&self, url: u32) -> Option<CmcdKeys> {
        self.video.player.cmcd?;
        self.cmcd_keys(url)
    }

    /// The numbers of the client and of its group are 0 in them.
    fn take_player_events(&mut self) -> Vec<PlayerEvent> {
        std::mem::take(&mut self.events)
    }

    fn connections(&self, limit: u32) -> Connections {
        // The tracks are fetched at the same time: over HTTP/1.1 each on its own connection.
        let streams = self.video.player.requests_at_once();
        Connections { at_once: 0, limit: limit.min(streams), streams }
    }
}
