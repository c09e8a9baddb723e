//! What the recorders of all browsers' protocols have in common: the requests of a page load by their ids,
//! and the messages on its console.

use std::collections::HashMap;

use model::formats::shown;
use model::page_events::PageEvents;
use serde_json::Value;

use super::page_load::{LoadedRequest, PageLoad};

/// Further requests of a page are counted and have no row.
pub(super) const MOST_REQUESTS: usize = 20_000;
/// Further messages of the console are counted only.
const MOST_MESSAGES: usize = 20;

/// A page load that is being recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) events: PageEvents,
    requests: Vec<Entry>,
    /// The latest request of each id of the protocol.
    ids: HashMap<String, usize>,
    /// Requests beyond the limit.
    further: u64,
}

/// A request and what is needed until it ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) request: LoadedRequest,
    pub(super) is_ended: bool,
    /// Whether no server was asked: a cache answered, or the request was blocked.
    pub(super) is_cached: bool,
    pub(super) is_coded: bool,
    pub(super) head_bytes: u64,
}

impl Recording {
    /// Adds a request, which is the latest one of its id from now on.
    pub(super) fn add(&mut self, id: &str, request: LoadedRequest) {
        if self.requests.len() >= MOST_REQUESTS {
            self.further += 1;
            self.ids.remove(id);
            return;
        }
        self.ids.insert(id.to_owned(), self.requests.len());
        self.requests.push(Entry { request, ..Entry::default() });
    }

    /// Forgets an id: what follows about it concerns no request over the network.
    pub(super) fn forget(&mut self, id: &str) {
        self.ids.remove(id);
    }

    /// The latest request of an id.
    pub(super) fn entry(&mut self, id: &str) -> Option<&mut Entry> {
        self.requests.get_mut(*self.ids.get(id)?)
    }

    /// Whether a request has not ended.
    pub(super) fn is_waiting(&self) -> bool {
        self.requests.iter().any(|entry| !entry.is_ended)
    }

    /// The latest request for the document.
    pub(super) fn document(&self) -> Option<&LoadedRequest> {
        self.requests.iter().rev().map(|entry| &entry.request).find(|request| request.is_document)
    }

    /// Adds an error on the console.
    pub(super) fn add_message(&mut self, message: &str) {
        self.events.console_errors += 1;
        if self.events.console.len() < MOST_MESSAGES {
            self.events.console.push(shown(message));
        }
    }

    /// The page load. Requests that have not ended are counted as unfinished.
    pub(super) fn finish(self) -> PageLoad {
        let mut load = PageLoad { unfinished: self.further, events: self.events, ..PageLoad::default() };
        for mut entry in self.requests {
            // The network and the page report from different processes, each on its own schedule.
            let request = &mut entry.request;
            request.done_ns = request.done_ns.max(request.first_byte_ns.or(request.sent_ns));
            match (entry.is_cached, entry.is_ended) {
                (true, _) => {}
                (false, false) => load.unfinished += 1,
                (false, true) => load.requests.push(entry.request),
            }
        }
        load.set_document_phases();
        load
    }
}

/// A text that is not empty.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The content of a response by its media type and its coding, such as `text/css, gzip`.
pub(super) fn content(kind: &str, coding: Option<&str>) -> String {
    match coding {
        Some(coding) => shown(&format!("{kind}, {coding}")),
        None => shown(kind),
    }
}
