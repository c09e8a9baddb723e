//! The manifest of a live stream, as its player reads it: again and again, with the playlists and bootstraps
//! that it refers to.
//!
//! The player's own time of the media begins with the first segment that it sees. Segments are known by their
//! places in the stream, so that what is read again continues what is known.

use std::collections::VecDeque;

use model::media::{Segment, TrackKind};
use model::player::{LivePlay, MediaResource, PlayerFault};
use model::units::NANOS_PER_S;
use model::url::Url;

use super::media::{Resource, TrackMedia};
use crate::formats::manifest::{Manifest, Need, Resolver, SegmentPlace};
use crate::source::Content;
use crate::url_table::UrlTable;

/// The URL of the manifest.
pub(super) const MANIFEST: u32 = 0;
/// After this many failures in a row, or manifests that went back, the player gives up.
const MOST_FAILURES: u32 = 3;
/// After this many times the longest segment without a new one, the player gives up.
const MOST_STALE_SEGMENTS: u64 = 10;
/// The most segments of a track that a player remembers.
const MOST_SEGMENTS: usize = 50_000;
/// The most representations of a track.
const MOST_REPRESENTATIONS: usize = 64;
/// A manifest is read again after a time between these.
const SHORTEST_RELOAD_NS: u64 = NANOS_PER_S / 4;
const LONGEST_RELOAD_NS: u64 = 60 * NANOS_PER_S;
/// The wait after a manifest that failed before any was read.
const RETRY_NS: u64 = NANOS_PER_S;

/// The state of a live stream's manifest.
#[derive(Clone, Debug)]
pub(super) struct Live {
    latency_ns: u64,
    pub(super) catch_up: bool,
    /// When it was watched long enough.
    pub(super) ends_ns: u64,
    /// The requests that it may still send.
    rest: u64,
    fetch: ManifestFetch,
    /// A manifest whose references are being read, and what of them comes next.
    resolver: Option<Resolver>,
    needs: VecDeque<(Need, u32)>,
    /// What the last content did; looked at when its request is done.
    fault: Option<PlayerFault>,
    failures: u32,
    went_back: u32,
    /// When a new segment was last seen.
    fresh_ns: u64,
    reload_ns: u64,
    /// The places of the known segments of each track.
    places: Vec<Vec<SegmentPlace>>,
    /// The segments of each track that the manifest still lists, ascending.
    listed: Vec<Vec<usize>>,
    /// The live edge in the time of the media, less the time of the run: the end of the newest segment when
    /// it was first listed, at its latest.
    edge_offset_ns: Option<i128>,
    /// Whether the stream has ended: no further segments will come.
    pub(super) has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ManifestFetch {
    /// Read again at this time.
    Later(u64),
    Wanted {
        url: u32,
        intended_ns: u64,
    },
    InFlight {
        url: u32,
        since_ns: u64,
    },
}

impl Live {
    pub(super) fn new(live: &LivePlay, now: u64) -> Live {
        Live {
            latency_ns: live.latency_ns,
            catch_up: live.catch_up,
            ends_ns: now.saturating_add(live.duration_ns),
            rest: live.most_requests.unwrap_or(u64::MAX),
            fetch: ManifestFetch::Wanted { url: MANIFEST, intended_ns: now },
            resolver: None,
            needs: VecDeque::new(),
            fault: None,
            failures: 0,
            went_back: 0,
            fresh_ns: now,
            reload_ns: RETRY_NS,
            places: Vec::new(),
            listed: Vec::new(),
            edge_offset_ns: None,
            has_ended: false,
        }
    }

    /// Wants the manifest once its time has come.
    pub(super) fn handle_time(&mut self, now: u64) {
        if let ManifestFetch::Later(at_ns) = self.fetch
            && at_ns <= now
            && !self.has_ended
        {
            self.fetch = ManifestFetch::Wanted { url: MANIFEST, intended_ns: at_ns };
        }
    }

    /// Counts a request that is to be sent; whether it may be.
    pub(super) fn count_request(&mut self) -> bool {
        let may_send = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        may_send
    }

    /// When the manifest is to be read again.
    pub(super) fn next_ns(&self) -> Option<u64> {
        match self.fetch {
            ManifestFetch::Later(at_ns) if !self.has_ended => Some(at_ns),
            _ => None,
        }
    }

    /// The request for the manifest or one of its references, if one is due.
    pub(super) fn take_request(&mut self, now: u64) -> Option<(u32, u64)> {
        let ManifestFetch::Wanted { url, intended_ns } = self.fetch else { return None };
        self.fetch = ManifestFetch::InFlight { url, since_ns: now };
        Some((url, intended_ns))
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.fetch, ManifestFetch::Wanted { .. })
    }

    /// Whether a URL was requested for the manifest.
    pub(super) fn is_about(&self, url: u32) -> bool {
        matches!(self.fetch, ManifestFetch::InFlight { url: own, .. } if own == url)
    }

    /// How far playback at a time of the media is behind the live edge.
    pub(super) fn latency_ns(&self, position_ns: u64, now: u64) -> Option<u64> {
        let latency = i128::from(now) + self.edge_offset_ns? - i128::from(position_ns);
        Some(u64::try_from(latency.max(0)).unwrap_or(u64::MAX))
    }

    /// The speed that brings playback to its latency, in millionths: that of dash.js's default catch-up, a
    /// logistic curve of the distance between 95 % and 105 %, in whole per cent.
    pub(super) fn speed_ppm(&self, latency_ns: u64) -> u64 {
        const RANGE: f64 = 0.05;
        const STEEPNESS_PER_S: f64 = 5.0;
        let seconds = |ns: u64| model::number::float(ns) / 1e9;
        let over_s = seconds(latency_ns) - seconds(self.latency_ns);
        let speed = 1.0 - RANGE + 2.0 * RANGE / (1.0 + (-STEEPNESS_PER_S * over_s).exp());
        model::number::nearest(speed * 100.0) * 10_000
    }

    /// Where playback should be: at its latency before the end of the newest segment, but not before what the
    /// manifest lists. A gap in the window leaves less media in it.
    pub(super) fn target_ns(&self, tracks: &[TrackMedia]) -> u64 {
        let first =
            |(listed, of): (&Vec<usize>, &TrackMedia)| of.start_ns(listed.first().copied().unwrap_or(0));
        let first_ns = self.listed.iter().zip(tracks).map(first).max().unwrap_or(0);
        newest_end_ns(tracks).saturating_sub(self.latency_ns).max(first_ns)
    }

    /// Whether a track's next segment has left the window.
    pub(super) fn has_left(&self, track: usize, next: usize) -> bool {
        self.listed.get(track).and_then(|listed| listed.first()).is_some_and(|first| next < *first)
    }

    /// The segment that follows where the next one of a track has vanished from the middle of the window.
    pub(super) fn after_vanished(&self, track: usize, next: usize) -> Option<usize> {
        let listed = self.listed.get(track)?;
        let after = listed.get(listed.partition_point(|own| *own < next)).copied()?;
        (after > next).then_some(after)
    }

    /// The body of the manifest or of a reference has arrived: reads it, and adds the new segments. Whether
    /// the tracks changed.
    pub(super) fn handle_content(
        &mut self,
        url: u32,
        content: &Content<'_>,
        urls: &mut UrlTable,
        tracks: &mut Vec<TrackMedia>,
    ) -> bool {
        match self.read(url, content, urls, tracks) {
            Ok(has_changed) => has_changed,
            Err(fault) => {
                (self.resolver, self.fault) = (None, Some(fault));
                self.needs.clear();
                false
            }
        }
    }

    fn read(
        &mut self,
        url: u32,
        content: &Content<'_>,
        urls: &mut UrlTable,
        tracks: &mut Vec<TrackMedia>,
    ) -> Result<bool, PlayerFault> {
        let body = content.body.ok_or(PlayerFault::ManifestTooLarge)?;
        let path = urls.resources().get(url as usize).map_or("/", |resource| resource.path.as_str());
        let from =
            Url::parse(&format!("{}{path}", content.origin)).map_err(|_| PlayerFault::ManifestInvalid)?;
        let invalid = |_| PlayerFault::ManifestInvalid;
        let resolver = match self.resolver.take() {
            Some(mut resolver) => {
                let (need, _) = self.needs.pop_front().ok_or(PlayerFault::ManifestInvalid)?;
                resolver.handle_resource(&need, &from, body).map_err(invalid)?;
                resolver
            }
            None => Resolver::new(body, &from, content.now_unix_ns).map_err(invalid)?,
        };
        if self.needs.is_empty() {
            for need in resolver.needs() {
                if !need.url.has_origin_of(&from) {
                    return Err(PlayerFault::ManifestInvalid);
                }
                let resource = MediaResource { path: need.url.path.clone(), range: need.range, bytes: None };
                let number = urls.number(resource).ok_or(PlayerFault::ManifestTooLarge)?;
                self.needs.push_back((need, number));
            }
        }
        if !self.needs.is_empty() {
            self.resolver = Some(resolver);
            return Ok(false);
        }
        let manifest = resolver.finish().map_err(invalid)?;
        self.add(&manifest, content.now_ns, urls, tracks)
    }

    /// Adds the segments of a manifest that are new; whether there are any, or others are no longer listed.
    fn add(
        &mut self,
        manifest: &Manifest,
        now: u64,
        urls: &mut UrlTable,
        tracks: &mut Vec<TrackMedia>,
    ) -> Result<bool, PlayerFault> {
        let listed = &manifest.presentation.tracks;
        if listed.is_empty() {
            return Err(PlayerFault::ManifestInvalid);
        }
        if tracks.is_empty() {
            *tracks = listed.iter().map(TrackMedia::without_segments).collect();
            (self.places, self.listed) = (vec![Vec::new(); tracks.len()], vec![Vec::new(); tracks.len()]);
        }
        self.has_ended = manifest.live.is_none();
        let (mut has_new, mut has_changed) = (false, false);
        for (number, of) in tracks.iter_mut().enumerate() {
            let same = listed.iter().zip(&manifest.places).find(|(track, _)| track.kind == of.kind);
            let Some((track, places)) = same else { return Err(PlayerFault::ManifestInvalid) };
            let Some(last) = places.last() else { return Err(PlayerFault::ManifestInvalid) };
            if track.representations.len() > MOST_REPRESENTATIONS {
                return Err(PlayerFault::ManifestInvalid);
            }
            let newest = self.places[number].last().copied();
            if newest.is_some_and(|newest| newest.is_after(*last)) {
                self.went_back += 1;
                if self.went_back >= MOST_FAILURES {
                    return Err(PlayerFault::ManifestWentBack);
                }
                return Ok(false);
            }
            let is_known = |place: &SegmentPlace| newest.is_some_and(|newest| !place.is_after(newest));
            let known = places.iter().rposition(is_known).map_or(0, |last| last + 1);
            if of.count() + places.len() - known > MOST_SEGMENTS {
                return Err(PlayerFault::ManifestTooLarge);
            }
            // What is missing is left out of the time of the media.
            let mut before = newest;
            for place in &places[known..] {
                if before.is_some_and(|before| place.leaves_gap(before)) {
                    self.edge_offset_ns = None;
                }
                before = Some(*place);
            }
            has_new |= known < places.len();
            of.extend(track, known, |segment| resource(segment, urls))?;
            self.places[number].extend(&places[known..]);
            let listed = listed_of(&self.places[number], places);
            has_changed |= std::mem::replace(&mut self.listed[number], listed) != self.listed[number];
        }
        self.went_back = 0;
        self.note_edge(manifest, has_new, now, tracks)?;
        Ok(has_new || has_changed)
    }

    /// Notes where the live edge is, and when to read the manifest again.
    fn note_edge(
        &mut self,
        manifest: &Manifest,
        has_new: bool,
        now: u64,
        tracks: &[TrackMedia],
    ) -> Result<(), PlayerFault> {
        let longest = tracks.iter().map(TrackMedia::longest_ns).max().unwrap_or(NANOS_PER_S);
        let reload_ns = manifest.live.and_then(|live| live.reload_ns).unwrap_or(longest);
        self.reload_ns = reload_ns.clamp(SHORTEST_RELOAD_NS, LONGEST_RELOAD_NS);
        if has_new {
            self.fresh_ns = now;
            let offset_ns = i128::from(newest_end_ns(tracks)) - i128::from(now);
            self.edge_offset_ns =
                Some(self.edge_offset_ns.map_or(offset_ns, |known_ns| known_ns.max(offset_ns)));
        } else if now.saturating_sub(self.fresh_ns) > longest.saturating_mul(MOST_STALE_SEGMENTS) {
            return Err(PlayerFault::ManifestStalled);
        }
        Ok(())
    }

    /// A request for the manifest or a reference is done. Why the player gives up, if it does.
    pub(super) fn handle_done(&mut self, is_ok: bool, now: u64) -> Option<PlayerFault> {
        let ManifestFetch::InFlight { url, since_ns } = self.fetch else { return None };
        let fault = self.fault.take().or((!is_ok).then_some(PlayerFault::ManifestFailed));
        if let Some(fault) = fault {
            (self.resolver, self.failures) = (None, self.failures + 1);
            self.needs.clear();
            self.fetch = ManifestFetch::Later(now.saturating_add(self.reload_ns));
            let is_final = matches!(fault, PlayerFault::ManifestStalled | PlayerFault::ManifestWentBack)
                || self.failures >= MOST_FAILURES;
            return is_final.then_some(fault);
        }
        if let Some((_, next)) = self.needs.front() {
            self.fetch = ManifestFetch::Wanted { url: *next, intended_ns: now };
            return None;
        }
        self.failures = 0;
        let began_ns = if url == MANIFEST { since_ns } else { now };
        self.fetch = ManifestFetch::Later(began_ns.saturating_add(self.reload_ns).max(now));
        None
    }
}

/// Which of the known segments a manifest lists, by their places, both ascending. A segment may have vanished
/// from its middle, and one that was missing may have appeared there, which is too late.
fn listed_of(known: &[SegmentPlace], places: &[SegmentPlace]) -> Vec<usize> {
    let Some(first) = places.first() else { return Vec::new() };
    let mut rest = places.iter().peekable();
    let mut listed = Vec::with_capacity(places.len());
    for (index, own) in known.iter().enumerate().skip(known.partition_point(|own| first.is_after(*own))) {
        while rest.next_if(|place| own.is_after(**place)).is_some() {}
        if rest.peek().is_some_and(|place| !place.is_after(*own)) {
            listed.push(index);
        }
    }
    listed
}

/// The end of the newest segment that all tracks have.
pub(super) fn newest_end_ns(tracks: &[TrackMedia]) -> u64 {
    let end = |of: &TrackMedia| of.start_ns(of.count());
    let main = tracks.iter().find(|of| of.kind == TrackKind::Video).or(tracks.first());
    let others = tracks.iter().map(end).min().unwrap_or(0);
    main.map_or(others, end).min(others)
}

/// The resource of a segment, with its number; `None` if it is elsewhere, or one too many.
fn resource(segment: &Segment, urls: &mut UrlTable) -> Option<Resource> {
    let resource = MediaResource::of(segment);
    let bytes = resource.bytes;
    let url = if resource.path.starts_with('/') { urls.number(resource)? } else { return None };
    Some(Resource { url, bytes })
}
