//! Resources that servers offer before they are requested: promises of pushed responses, and hints.

use std::sync::Arc;

use engine::{Fate, Promise, RequestId};
use model::sample::{Cause, ConnectionRow};
use workload::{Offer, RequestSource, links};

use crate::request::Origin;
use crate::session::Session;

impl Session {
    fn origin(&self, url: u32) -> Arc<Origin> {
        Arc::clone(self.origins.get(url as usize).unwrap_or(&self.first_origin))
    }

    /// Offers a promised response to the client whose request the server answers with it.
    pub(crate) fn promised(&mut self, promise: Promise<'_>, row: &mut ConnectionRow, now: u64) -> Fate {
        let Some(answered) = self.open.get(promise.request) else { return Fate::Cancel };
        let (place, origin) = (answered.client, self.origin(answered.url));
        let is_own = promise.scheme == origin.scheme.as_bytes()
            && promise.authority.eq_ignore_ascii_case(origin.authority.as_bytes());
        let (true, Ok(path)) = (is_own, std::str::from_utf8(promise.path)) else {
            row.pushed.refused += 1;
            return Fate::Refuse;
        };
        match self.offer(place, path, Cause::Push, now) {
            Offer::Taken(due) => {
                let mut sample = self.row(place, due);
                sample.connection = Some(row.connection);
                Fate::Take(self.open.insert(sample))
            }
            Offer::Late => {
                row.pushed.late += 1;
                Fate::Cancel
            }
            Offer::Unneeded => Fate::Discard,
        }
    }

    /// Offers the resources that a 103 response names to the client whose request it answers.
    pub(crate) fn hinted(&mut self, request: RequestId, links: &[u8], row: &mut ConnectionRow, now: u64) {
        let Some(answered) = self.open.get(request) else { return };
        let (place, origin) = (answered.client, self.origin(answered.url));
        for target in links::preloads(links) {
            let path = links::path_at(target, origin.scheme, &origin.authority);
            match path.map_or(Offer::Unneeded, |path| self.offer(place, path, Cause::Hint, now)) {
                Offer::Taken(_) => row.hinted.used += 1,
                Offer::Late => row.hinted.late += 1,
                Offer::Unneeded => row.hinted.unused += 1,
            }
        }
    }

    fn offer(&mut self, place: u32, path: &str, cause: Cause, now: u64) -> Offer {
        self.client(place).map_or(Offer::Unneeded, |client| client.work.handle_offer(path, cause, now))
    }

    /// Counts a pushed response that the client has used.
    pub(crate) fn count_push(&self, request: RequestId, is_whole: bool, row: &mut ConnectionRow) {
        let Some(sample) = self.open.get(request).filter(|sample| sample.cause == Cause::Push) else {
            return;
        };
        let bytes = sample.response_body_bytes;
        row.pushed.whole += u32::from(is_whole);
        row.pushed.used += u32::from(is_whole);
        row.pushed.broken += u32::from(!is_whole);
        row.pushed.body_bytes += bytes;
        row.pushed.wasted_bytes += if is_whole { 0 } else { bytes };
    }
}
