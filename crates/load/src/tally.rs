//! Sums instead of rows: requests are counted by what they have in common, and their times go into
//! histograms.

use model::sample::Sample;
use model::tally::{RequestTimes, Tally, TallyKey};

/// URLs with a number up to this are counted apart.
const MOST_URLS: usize = 64;
/// Keys up to this number are counted apart; requests with further keys are counted without their URL, and
/// beyond twice as many all together. A histogram of 270 kB bounds the memory of a key.
const MOST_KEYS: usize = 128;

/// The tallies of one client's requests.
#[derive(Debug)]
pub struct Tallies {
    kept: Vec<Tally>,
    /// Where a request to each URL was last counted: the next one mostly has the same key.
    last: [usize; MOST_URLS + 1],
    times: RequestTimes,
}

impl Default for Tallies {
    fn default() -> Self {
        Tallies { kept: Vec::new(), last: [0; MOST_URLS + 1], times: RequestTimes::default() }
    }
}

impl Tallies {
    /// Counts a request that has ended.
    pub fn record(&mut self, sample: &Sample) {
        let mut key = TallyKey::of(sample);
        key.url = key.url.filter(|url| (*url as usize) < MOST_URLS);
        let place = self.place(key);
        if let Some(tally) = self.kept.get_mut(place) {
            tally.record(sample);
            self.times.record(sample);
        }
    }

    /// The tallies, and the parts of the times of measured successes.
    pub fn finish(self) -> (Vec<Tally>, RequestTimes) {
        (self.kept, self.times)
    }

    /// The place of a key, made where there is none yet.
    fn place(&mut self, key: TallyKey) -> usize {
        let url = key.url.map_or(MOST_URLS, |url| url as usize);
        let last = self.last.get(url).copied().unwrap_or(0);
        if self.kept.get(last).is_some_and(|tally| tally.key == key) {
            return last;
        }
        let place = self.find(key);
        if let Some(last) = self.last.get_mut(url) {
            *last = place;
        }
        place
    }

    fn find(&mut self, key: TallyKey) -> usize {
        let known = |key| self.kept.iter().position(|tally| tally.key == key);
        if let Some(place) = known(key) {
            return place;
        }
        let key = if self.kept.len() < MOST_KEYS { key } else { TallyKey { url: None, ..key } };
        if let Some(place) = known(key) {
            return place;
        }
        if self.kept.len() < 2 * MOST_KEYS {
            self.kept.push(Tally::new(key));
        }
        self.kept.len() - 1
    }
}
