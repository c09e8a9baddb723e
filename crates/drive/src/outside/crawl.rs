//! A page that is modelled by following its HTML and its style sheets, without running scripts.

use std::time::Duration;

use model::assignment::Trust;
use model::page::ResourceKind;
use model::units::counted;
use model::url::Url;
use workload::page_model::{MOST_RESOURCES, Modelled, Reference, css_references, html_references, kind_of};

use super::fetch::{FetchError, Fetched, Fetcher};
use super::follow::Follower;

/// The time for one resource.
const LIMIT: Duration = Duration::from_secs(10);
/// All bodies together.
const MOST_BYTES: usize = 50_000_000;
/// Frames in frames, and imports of imports.
const MOST_DEPTH: usize = 4;

/// A page as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPage {
    /// The document first; parents before their children.
    pub resources: Vec<Modelled>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// A resource whose references are still to be followed.
struct Pending {
    place: usize,
    depth: usize,
    /// What its references are relative to.
    base: Url,
    references: Vec<Reference>,
    /// The length of the text that has the references.
    text_bytes: usize,
}

/// Follows a page from its document.
struct Crawl {
    follower: Follower,
    resources: Vec<Modelled>,
    seen: Vec<String>,
    left_bytes: usize,
    failed: Vec<String>,
    is_full: bool,
}

/// Fetches a document and what it names, each resource once: at most 300 resources and 50 MB.
///
/// # Errors
/// The document cannot be fetched, or is no HTML with status 200.
pub fn crawl(url: &Url, trust: &Trust) -> Result<FoundPage, FetchError> {
    let fetcher = Fetcher::new(trust, LIMIT, MOST_BYTES).map_err(|error| FetchError(format!("{error:#}")))?;
    let mut crawl = Crawl {
        follower: Follower::new(fetcher),
        resources: Vec::new(),
        seen: Vec::new(),
        left_bytes: MOST_BYTES,
        failed: Vec::new(),
        is_full: false,
    };
    let (document, fetched) = crawl.follower.fetch(url, None)?;
    let kind = kind_of(&fetched.media_type);
    if kind != ResourceKind::Html {
        let found = &fetched.media_type;
        return Err(FetchError(format!("{document} is `{found}` and no HTML document; name a page")));
    }
    let mut notes = Vec::new();
    if document != *url {
        notes.push(format!("{url} leads to {document}"));
    }
    let mut pending = vec![crawl.add(document, kind, &fetched, None, 0)];
    while let Some(next) = (!pending.is_empty()).then(|| pending.remove(0)) {
        crawl.follow(next, &mut pending);
    }
    if !crawl.failed.is_empty() {
        let first = &crawl.failed[0];
        let count = counted(crawl.failed.len() as u64, "resource");
        notes.push(format!("{count} left out, which could not be fetched: {first}"));
    }
    if crawl.is_full {
        notes.push(format!("further resources are left out: the limit is {MOST_RESOURCES}, or 50 MB"));
    }
    Ok(FoundPage { resources: crawl.resources, notes })
}

impl Crawl {
    /// Fetches the children of a resource; those that have references too become pending.
    fn follow(&mut self, parent: Pending, pending: &mut Vec<Pending>) {
        for reference in &parent.references {
            if self.resources.len() >= MOST_RESOURCES || self.left_bytes == 0 {
                self.is_full = true;
                return;
            }
            let Some(url) = parent.base.join(&reference.text) else { continue };
            if self.seen.contains(&url.to_string()) {
                continue;
            }
            self.seen.push(url.to_string());
            let (url, fetched) = match self.follower.fetch(&url, None) {
                Ok(found) => found,
                Err(error) => {
                    self.failed.push(format!("{url}: {error}"));
                    continue;
                }
            };
            if self.resources.iter().any(|known| known.url == url) {
                continue;
            }
            let kind = match kind_of(&fetched.media_type) {
                // Without a useful media type the reference decides.
                ResourceKind::Js => reference.kind,
                kind => kind,
            };
            let sent = self.resources[parent.place].bytes;
            let named_at = u128::from(sent) * reference.end as u128 / parent.text_bytes.max(1) as u128;
            let named_at = u64::try_from(named_at).unwrap_or(sent).min(sent);
            let next = self.add(url, kind, &fetched, Some(parent.place), named_at);
            let depth = parent.depth + 1;
            if depth <= MOST_DEPTH && !next.references.is_empty() {
                pending.push(Pending { depth, ..next });
            }
        }
    }

    fn add(
        &mut self,
        url: Url,
        kind: ResourceKind,
        fetched: &Fetched,
        parent: Option<usize>,
        named_at_bytes: u64,
    ) -> Pending {
        let text = String::from_utf8_lossy(&fetched.body);
        let (base, references) = match kind {
            ResourceKind::Html => html_references(&text),
            ResourceKind::Css => (None, css_references(&text)),
            _ => (None, Vec::new()),
        };
        let base = base.and_then(|base| url.join(&base)).unwrap_or_else(|| url.clone());
        let place = self.resources.len();
        self.seen.push(url.to_string());
        self.left_bytes = self.left_bytes.saturating_sub(fetched.body.len());
        let (bytes, wait_ns) = (fetched.sent_bytes, 0);
        self.resources.push(Modelled { url, kind, bytes, parent, named_at_bytes, wait_ns });
        Pending { place, depth: 0, base, references, text_bytes: text.len() }
    }
}
