//! One track of a player: which of its segments is requested, how it arrives, and the rule that chooses.

use model::player::Rule;

use super::media::{Resource, TrackMedia};
use crate::rules::{ActiveRule, Download, Progress, Situation};

/// A track while it is played.
#[derive(Clone, Debug)]
pub(super) struct TrackPlayer {
    pub(super) rule: ActiveRule,
    /// The next segment that is to arrive.
    pub(super) next: usize,
    /// The end of the media that has arrived.
    pub(super) end_ns: u64,
    pub(super) fetch: Fetch,
    /// The representation of the last requested segment.
    pub(super) before: Option<usize>,
    /// The initializations that have arrived: representation and URL.
    initialized: Vec<(usize, u32)>,
    /// The representation in which each segment arrived.
    places: Vec<u8>,
    /// Whether the requested segment has failed once.
    pub(super) is_second_try: bool,
    /// Whether any segment has arrived.
    pub(super) has_media: bool,
    /// The throughput of the last segment, in bit/s.
    pub(super) throughput_bits_per_s: u64,
}

/// A request for a segment, or for the initialization of its representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The representation.
    pub(super) place: usize,
    pub(super) is_initialization: bool,
    pub(super) resource: Resource,
}

/// The state of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// Not requested: the buffer is full, or there is no further segment.
    Idle,
    /// Due, and waiting for a connection.
    Wanted { wish: Wish, intended_ns: u64 },
    /// Requested.
    InFlight { wish: Wish, sent_ns: u64, arriving: Arriving },
    /// Given up, until its request is over; `then` is the representation to request instead.
    Dropped { url: u32, then: Option<usize> },
}

/// What has arrived of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arriving {
    /// The first piece: when it arrived, and its bytes.
    pub(super) first: Option<(u64, u64)>,
    pub(super) bytes: u64,
    pub(super) pieces: u32,
}

/// What a track and its rule need to know of the player.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) goal_ns: u64,
    pub(super) position_ns: u64,
    pub(super) is_live: bool,
    pub(super) now_ns: u64,
}

impl TrackPlayer {
    pub(super) fn new(rule: Rule, media: &TrackMedia) -> TrackPlayer {
        TrackPlayer {
            rule: ActiveRule::new(rule),
            next: 0,
            end_ns: 0,
            fetch: Fetch::Idle,
            before: None,
            initialized: Vec::new(),
            places: Vec::with_capacity(media.count()),
            is_second_try: false,
            has_media: false,
            throughput_bits_per_s: 0,
        }
    }

    /// Whether the last known segment has arrived.
    pub(super) fn has_all(&self, media: &TrackMedia) -> bool {
        self.next >= media.count()
    }

    /// Its media that has arrived and was not shown.
    pub(super) const fn buffered_ns(&self, position_ns: u64) -> u64 {
        self.end_ns.saturating_sub(position_ns)
    }

    /// The representation of its next segment.
    pub(super) fn choose(&mut self, media: &TrackMedia, moment: &Moment) -> usize {
        let place = self.rule.choose(&Situation {
            ladder: &media.ladder,
            kind: media.kind,
            segment_ns: media.duration_ns(self.next),
            goal_ns: moment.goal_ns,
            buffered_ns: self.buffered_ns(moment.position_ns),
            before: self.before,
            is_live: moment.is_live,
            now_ns: moment.now_ns,
        });
        place.min(media.ladder.len().saturating_sub(1))
    }

    /// Wants the next segment in a representation, or first the initialization that it needs; whether it is
    /// the segment.
    pub(super) fn want(&mut self, media: &TrackMedia, place: usize, now_ns: u64) -> bool {
        self.before = Some(place);
        let initialization = media.initialization(place, self.next);
        let initialization = initialization.filter(|own| !self.initialized.contains(&(place, own.url)));
        let wanted = initialization.or_else(|| media.resource(place, self.next));
        let Some(resource) = wanted else { return false };
        let wish = Wish { place, is_initialization: initialization.is_some(), resource };
        self.fetch = Fetch::Wanted { wish, intended_ns: now_ns };
        initialization.is_none()
    }

    /// An initialization has arrived. Players keep it, and do not request it again.
    pub(super) fn initialize(&mut self, wish: Wish) {
        self.initialized.push((wish.place, wish.resource.url));
    }

    /// The representation of the requested segment.
    pub(super) const fn requested_place(&self) -> Option<usize> {
        match self.fetch {
            Fetch::Wanted { wish, .. } | Fetch::InFlight { wish, .. } => Some(wish.place),
            Fetch::Idle | Fetch::Dropped { .. } => None,
        }
    }

    /// The representation in which a segment arrived.
    pub(super) fn place_of(&self, segment: usize) -> usize {
        self.places.get(segment).map_or(0, |place| usize::from(*place))
    }

    /// Whether this URL is requested, or was until its request was given up.
    pub(super) fn is_about(&self, url: u32) -> bool {
        match self.fetch {
            Fetch::InFlight { wish, .. } => wish.resource.url == url,
            Fetch::Dropped { url: dropped, .. } => dropped == url,
            Fetch::Idle | Fetch::Wanted { .. } => false,
        }
    }

    /// Its next segment has arrived.
    pub(super) fn arrive(
        &mut self,
        media: &TrackMedia,
        (wish, sent_ns, arriving): (Wish, u64, Arriving),
        moment: &Moment,
    ) {
        let bytes = wish.resource.bytes.unwrap_or(arriving.bytes);
        let took_ns = moment.now_ns.saturating_sub(sent_ns).max(1);
        let bits_per_s = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(took_ns);
        self.throughput_bits_per_s = u64::try_from(bits_per_s).unwrap_or(u64::MAX);
        self.rule.handle_download(&Download {
            place: wish.place,
            bytes,
            segment_ns: media.duration_ns(self.next),
            buffered_ns: self.buffered_ns(moment.position_ns),
            requested_ns: sent_ns,
            first_byte_ns: arriving.first.map_or(moment.now_ns, |(at_ns, _)| at_ns),
            done_ns: moment.now_ns,
        });
        self.has_media = true;
        self.is_second_try = false;
        if self.places.len() <= self.next {
            self.places.resize(self.next + 1, 0);
        }
        self.places[self.next] = u8::try_from(wish.place).unwrap_or(u8::MAX);
        self.next += 1;
        self.end_ns = media.start_ns(self.next);
    }

    /// Whether the rule rather requests the arriving segment in a lower representation.
    pub(super) fn judge(&mut self, media: &TrackMedia, moment: &Moment) -> Option<(Wish, usize)> {
        let Fetch::InFlight { wish, sent_ns, arriving } = self.fetch else { return None };
        if wish.is_initialization {
            return None;
        }
        let lower = self.rule.judge(&Progress {
            ladder: &media.ladder,
            segment: self.next,
            place: wish.place,
            bytes: wish.resource.bytes,
            received_bytes: arriving.bytes,
            segment_ns: media.duration_ns(self.next),
            goal_ns: moment.goal_ns,
            buffered_ns: self.buffered_ns(moment.position_ns),
            requested_ns: sent_ns,
            first: arriving.first,
            pieces: arriving.pieces,
            has_media: self.has_media,
            is_live: moment.is_live,
            now_ns: moment.now_ns,
        })?;
        (lower < wish.place).then_some((wish, lower))
    }

    /// When an arriving segment must be judged although nothing arrives.
    pub(super) fn next_judgement_ns(&self) -> Option<u64> {
        matches!(self.fetch, Fetch::InFlight { .. }).then(|| self.rule.next_judgement_ns())?
    }

    /// Continues at a time of the media with an empty buffer. Returns the URL whose request must be given up.
    pub(super) fn seek(&mut self, media: &TrackMedia, position_ns: u64) -> Option<u32> {
        self.next = media.segment_at(position_ns).min(media.count());
        self.end_ns = media.start_ns(self.next);
        self.is_second_try = false;
        self.rule.handle_seek();
        self.give_up(None)
    }

    /// Continues with a later segment; the buffer stays.
    pub(super) fn skip_to(&mut self, media: &TrackMedia, segment: usize) {
        (self.next, self.end_ns) = (segment, media.start_ns(segment));
    }

    /// Gives up the requested segment; `then` is the representation to request instead. Returns the URL whose
    /// request must be given up, if it was sent.
    pub(super) fn give_up(&mut self, then: Option<usize>) -> Option<u32> {
        match self.fetch {
            Fetch::InFlight { wish, .. } => {
                let url = wish.resource.url;
                self.fetch = Fetch::Dropped { url, then };
                Some(url)
            }
            Fetch::Dropped { url, .. } => {
                self.fetch = Fetch::Dropped { url, then };
                None
            }
            Fetch::Idle | Fetch::Wanted { .. } => {
                self.fetch = Fetch::Idle;
                None
            }
        }
    }
}
