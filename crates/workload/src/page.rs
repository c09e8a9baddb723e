//! The page loader: like a browser, it requests a resource as soon as the reference to it has arrived.

use std::collections::VecDeque;
use std::sync::Arc;

use model::Page;

use crate::source::{Connections, Due, RequestSource};

/// A page that clients load.
#[derive(Debug)]
pub struct PageTree {
    page: Page,
    /// The children of each resource, in the order of their references.
    children: Vec<Vec<usize>>,
}

impl PageTree {
    /// The tree of a page's references.
    pub(crate) fn new(page: &Page) -> Self {
        let children = (0..page.resources.len()).map(|parent| page.children(parent).collect()).collect();
        PageTree { page: page.clone(), children }
    }
}

/// Loads one page once.
#[derive(Clone, Debug)]
pub struct PageLoader {
    tree: Arc<PageTree>,
    /// How many children of each resource have been referenced.
    named: Vec<usize>,
    /// Referenced, not requested yet.
    queue: VecDeque<Due>,
    /// Requested, not ended yet.
    in_flight: usize,
}

impl PageLoader {
    /// A loader whose document is due at `now`.
    pub(crate) fn new(tree: Arc<PageTree>, now: u64) -> Self {
        let named = vec![0; tree.children.len()];
        let queue = VecDeque::from([Due { url: 0, intended_ns: now }]);
        PageLoader { tree, named, queue, in_flight: 0 }
    }
}

impl RequestSource for PageLoader {
    fn paths(&self) -> Vec<&str> {
        self.tree.page.resources.iter().map(|resource| resource.path.as_str()).collect()
    }

    fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        self.tree.page.resources.get(url as usize).map(|resource| resource.bytes)
    }

    fn poll_request(&mut self, _target: usize, _now: u64) -> Option<Due> {
        let due = self.queue.pop_front()?;
        self.in_flight += 1;
        Some(due)
    }

    fn waiting(&self, _target: usize) -> usize {
        self.queue.len()
    }

    /// Queues the children whose references lie within the first `received_bytes` of their parent.
    fn handle_body(&mut self, url: u32, received_bytes: u64, now: u64) {
        let parent = url as usize;
        while let Some(&child) = self.tree.children[parent].get(self.named[parent]) {
            if self.tree.page.resources[child].named_at_bytes > received_bytes {
                break;
            }
            self.named[parent] += 1;
            #[expect(clippy::cast_possible_truncation, reason = "a page has far fewer resources")]
            self.queue.push_back(Due { url: child as u32, intended_ns: now });
        }
    }

    fn handle_done(&mut self, _is_ok: bool, _now: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn is_finished(&self, _now: u64) -> bool {
        self.queue.is_empty() && self.in_flight == 0
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
        for _ in 0..4 {
            assert!(!loader.is_finished(0));
            loader.handle_done(true, 0);
        }
        assert!(loader.is_finished(0));
    }

    #[test]
    fn a_failed_parent_ends_the_load() {
        let mut loader = loader();
        loader.poll_request(0, 0);
        loader.handle_done(true, 0);
        assert!(loader.is_finished(0));
    }
}
