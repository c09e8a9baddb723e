//! The page loader: like a browser, it requests a resource as soon as the reference to it has arrived, uses
//! what the server pushes, and requests what the server hints at.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use model::Page;
use model::sample::Cause;

use crate::source::{Connections, Due, Offer, RequestSource};

/// A page that clients load.
#[derive(Debug)]
pub struct PageTree {
    page: Page,
    /// The children of each resource, in the order of their references.
    children: Vec<Vec<usize>>,
    /// The number of each path.
    paths: HashMap<String, u32>,
    /// The number of hosts.
    targets: usize,
}

impl PageTree {
    /// The tree of a page's references.
    pub(crate) fn new(page: &Page) -> Self {
        let by_place = |parent| {
            let mut children: Vec<usize> = page.children(parent).collect();
            children.sort_by_key(|child| page.resources[*child].named_at_bytes);
            children
        };
        let children = (0..page.resources.len()).map(by_place).collect();
        let paths = page.resources.iter().map(|resource| resource.path.clone()).zip(0..).collect();
        PageTree { page: page.clone(), children, paths, targets: page.host_count() }
    }

    fn target_of(&self, url: u32) -> usize {
        let origin = self.page.resources.get(url as usize).map_or(0, |resource| usize::from(resource.origin));
        if origin < self.targets { origin } else { 0 }
    }
}

/// Loads one page once.
#[derive(Clone, Debug)]
pub struct PageLoader {
    tree: Arc<PageTree>,
    /// How many children of each resource have been referenced.
    named: Vec<usize>,
    /// Why each resource was requested, or is due; `None` before.
    causes: Vec<Option<Cause>>,
    /// Due, not requested yet, for each host.
    queues: Vec<VecDeque<Due>>,
    /// Requested, not ended yet.
    in_flight: usize,
}

impl PageLoader {
    /// A loader whose document is due at `now`.
    pub(crate) fn new(tree: Arc<PageTree>, now: u64) -> Self {
        let named = vec![0; tree.children.len()];
        let mut queues = vec![VecDeque::new(); tree.targets];
        queues[0].push_back(Due { url: 0, intended_ns: now });
        let mut causes = vec![None; tree.children.len()];
        if let Some(document) = causes.first_mut() {
            *document = Some(Cause::Due);
        }
        PageLoader { tree, named, causes, queues, in_flight: 0 }
    }
}

impl RequestSource for PageLoader {
    fn paths(&self) -> Vec<&str> {
        self.tree.page.resources.iter().map(|resource| resource.path.as_str()).collect()
    }

    fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        let page = Some(&self.tree.page).filter(|page| !page.is_outside())?;
        page.resources.get(url as usize).map(|resource| resource.bytes)
    }

    fn targets(&self) -> usize {
        self.tree.targets
    }

    fn poll_request(&mut self, target: usize, _now: u64) -> Option<Due> {
        let due = self.queues.get_mut(target)?.pop_front()?;
        self.in_flight += 1;
        Some(due)
    }

    fn waiting(&self, target: usize) -> usize {
        self.queues.get(target).map_or(0, VecDeque::len)
    }

    /// Queues the children whose references lie within the first `received_bytes` of their parent.
    fn handle_body(&mut self, url: u32, received_bytes: u64, now: u64) {
        let parent = url as usize;
        while let Some(&child) = self.tree.children[parent].get(self.named[parent]) {
            if self.tree.page.resources[child].named_at_bytes > received_bytes {
                break;
            }
            self.named[parent] += 1;
            if self.causes[child].is_none() {
                self.causes[child] = Some(Cause::Due);
                #[expect(clippy::cast_possible_truncation, reason = "a page has far fewer resources")]
                let due = Due { url: child as u32, intended_ns: now };
                let target = self.tree.target_of(due.url);
                self.queues[target].push_back(due);
            }
        }
    }

    /// The real body may be shorter than the one that was modelled.
    fn handle_body_end(&mut self, url: u32, now: u64) {
        if self.tree.page.is_outside() {
            self.handle_body(url, u64::MAX, now);
        }
    }

    /// A promise saves a request that is due and not sent yet.
    fn handle_offer(&mut self, path: &str, cause: Cause, now: u64) -> Offer {
        let Some(&url) = self.tree.paths.get(path) else { return Offer::Unneeded };
        let due = Due { url, intended_ns: now };
        let target = self.tree.target_of(url);
        let waits_at = self.queues[target].iter().position(|due| due.url == url);
        let is_new = self.causes[url as usize].is_none();
        if !is_new && (cause != Cause::Push || waits_at.is_none()) {
            return Offer::Late;
        }
        self.causes[url as usize] = Some(cause);
        if cause == Cause::Push {
            waits_at.map(|place| self.queues[target].remove(place));
            self.in_flight += 1;
        } else {
            self.queues[target].push_back(due);
        }
        Offer::Taken(due)
    }

    fn cause(&self, url: u32) -> Cause {
        self.causes.get(url as usize).copied().flatten().unwrap_or_default()
    }

    fn handle_done(&mut self, _url: u32, _is_ok: bool, _now: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn is_finished(&self, _now: u64) -> bool {
        self.queues.iter().all(VecDeque::is_empty) && self.in_flight == 0
    }

    fn connections(&self, limit: u32) -> Connections {
        Connections { at_once: 0, limit, streams: u32::MAX }
    }
}

#[cfg(test)]
mod tests {
    use model::error::Source;

    use super::*;

    const PAGE: &str = "
        title = 'x'
        [[resource]]
        path = '/'
        kind = 'html'
        sizes = ['4kB']
        [[resource]]
        path = '/a.css'
        kind = 'css'
        named_by = '/'
        sizes = ['1kB']
        [[resource]]
        path = '/b.js'
        kind = 'js'
        named_by = '/'
        sizes = ['1kB']
        [[resource]]
        path = '/c.woff2'
        kind = 'font'
        named_by = '/a.css'
        sizes = ['1kB']
    ";

    fn loader() -> PageLoader {
        let page = Page::parse("p", Source { file: "p", text: PAGE }).unwrap();
        PageLoader::new(Arc::new(PageTree::new(&page)), 7)
    }

    #[test]
    fn a_resource_is_due_when_its_reference_is_whole() {
        let mut loader = loader();
        assert_eq!(loader.poll_request(0, 0), Some(Due { url: 0, intended_ns: 7 }));
        assert_eq!(loader.poll_request(0, 0), None);
        loader.handle_body(0, 383, 8);
        assert_eq!(loader.waiting(0), 0);
        loader.handle_body(0, 384, 9);
        assert_eq!(loader.poll_request(0, 0), Some(Due { url: 1, intended_ns: 9 }));
        loader.handle_body(0, 4000, 10);
        assert_eq!(loader.poll_request(0, 0), Some(Due { url: 2, intended_ns: 10 }));
        loader.handle_body(1, 1000, 11);
        assert_eq!(loader.poll_request(0, 0), Some(Due { url: 3, intended_ns: 11 }));
        for url in 0..4 {
            assert!(!loader.is_finished(0));
            loader.handle_done(url, true, 0);
        }
        assert!(loader.is_finished(0));
    }

    #[test]
    fn hosts_have_queues_and_a_short_body_names_all() {
        let outside = PAGE.replacen("title = 'x'", "title = 'x'\norigin = 'https://a.test'", 1).replacen(
            "named_by = '/'",
            "named_by = '/'\norigin = 'https://b.test'",
            1,
        );
        let page = Page::parse("p", Source { file: "p", text: &outside }).unwrap();
        let mut loader = PageLoader::new(Arc::new(PageTree::new(&page)), 7);
        assert_eq!((loader.targets(), loader.expected_body_bytes(0)), (2, None));
        loader.poll_request(0, 0);
        loader.handle_body(0, 100, 8);
        assert_eq!((loader.waiting(0), loader.waiting(1)), (0, 0));
        loader.handle_body_end(0, 9);
        assert_eq!(loader.poll_request(1, 9), Some(Due { url: 1, intended_ns: 9 }));
        assert_eq!(loader.poll_request(0, 9), Some(Due { url: 2, intended_ns: 9 }));
        assert_eq!(
            (loader.poll_request(0, 9), loader.poll_request(1, 9), loader.poll_request(2, 9)),
            (None, None, None)
        );
    }

    #[test]
    fn a_failed_parent_ends_the_load() {
        let mut loader = loader();
        loader.poll_request(0, 0);
        loader.handle_done(0, true, 0);
        assert!(loader.is_finished(0));
    }

    #[test]
    fn a_promised_resource_is_not_requested() {
        let mut loader = loader();
        loader.poll_request(0, 0);
        assert_eq!(
            loader.handle_offer("/a.css", Cause::Push, 8),
            Offer::Taken(Due { url: 1, intended_ns: 8 })
        );
        assert_eq!(loader.handle_offer("/a.css", Cause::Push, 8), Offer::Late, "promised twice");
        assert_eq!(loader.handle_offer("/x.css", Cause::Push, 8), Offer::Unneeded);
        loader.handle_body(0, 4000, 9);
        assert_eq!(loader.handle_offer("/", Cause::Push, 9), Offer::Late);
        // `/b.js` is due; the promise comes before its request.
        assert_eq!(loader.waiting(0), 1);
        assert_eq!(
            loader.handle_offer("/b.js", Cause::Push, 9),
            Offer::Taken(Due { url: 2, intended_ns: 9 })
        );
        assert_eq!(loader.poll_request(0, 9), None);
        assert_eq!([0, 1, 2].map(|url| loader.cause(url)), [Cause::Due, Cause::Push, Cause::Push]);
        loader.handle_body(1, 1000, 10);
        assert_eq!(loader.poll_request(0, 10), Some(Due { url: 3, intended_ns: 10 }));
        for url in 0..4 {
            assert!(!loader.is_finished(0));
            loader.handle_done(url, true, 0);
        }
        assert!(loader.is_finished(0));
    }

    #[test]
    fn a_hinted_resource_is_requested_once() {
        let mut loader = loader();
        loader.poll_request(0, 0);
        let font = Due { url: 3, intended_ns: 8 };
        assert_eq!(loader.handle_offer("/c.woff2", Cause::Hint, 8), Offer::Taken(font));
        assert_eq!(loader.handle_offer("/c.woff2", Cause::Hint, 8), Offer::Late, "hinted twice");
        assert_eq!(loader.handle_offer("/x.woff2", Cause::Hint, 8), Offer::Unneeded);
        assert_eq!(loader.poll_request(0, 8), Some(font));
        loader.handle_body(0, 4000, 9);
        assert_eq!(loader.handle_offer("/b.js", Cause::Hint, 9), Offer::Late, "it is due already");
        assert!(loader.poll_request(0, 9).is_some() && loader.poll_request(0, 9).is_some());
        loader.handle_body(1, 1000, 10);
        assert_eq!(loader.poll_request(0, 10), None);
        assert_eq!((loader.cause(3), loader.cause(2)), (Cause::Hint, Cause::Due));
    }
}
