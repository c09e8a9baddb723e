//! The page of a HAR file.

use std::collections::HashMap;

use model::page::ResourceKind;
use model::url::Url;

use super::{MOST_RESOURCES, Modelled, kind_of};
use crate::formats::har::{Entry, HarError, HarLog, read};

/// More entries are not one page load.
const MOST_ENTRIES: usize = 2_000;

/// The page of a HAR file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarPage {
    /// Its title; that of the document's URL without one.
    pub title: String,
    /// The document first; parents before their children.
    pub resources: Vec<Modelled>,
    /// How many entries were left out: other methods than GET, failures, repeated URLs, other schemes.
    pub left_out: usize,
    /// Whether the file has the times from which think times follow.
    pub has_waits: bool,
}

/// Reads a HAR file. The document is the first HTML; references lie evenly in their parents, because a HAR
/// file does not say where they are, and a script names others at its end. A think time is the wait for a
/// response less the round trip to its host.
///
/// # Errors
/// It is not HAR, has no document, or is too long for a page load.
pub fn parse_har(text: &str) -> Result<HarPage, HarError> {
    let HarLog { pages, entries } = read(text)?;
    let count = entries.len();
    if count > MOST_ENTRIES {
        return Err(HarError(format!(
            "it has {count} entries, more than {MOST_ENTRIES}; record the load of one page, with an empty log"
        )));
    }
    let is_document = |entry: &&Entry| entry.usable().is_some() && entry.kind() == ResourceKind::Html;
    let document = entries.iter().find(is_document).ok_or_else(|| {
        HarError(format!(
            "none of its {count} entries is an HTML document with status 200; record the load from the beginning"
        ))
    })?;
    let page = document.pageref.as_deref();
    let title = pages.iter().find(|known| Some(known.id.as_str()) == page).map(|page| page.title.clone());
    let mut resources: Vec<Modelled> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let trips_ms = round_trips_ms(&entries);
    let of_page = entries.iter().skip_while(|entry| !std::ptr::eq(*entry, document));
    for entry in of_page.filter(|entry| entry.pageref.as_deref() == page) {
        let Some(url) = entry.usable().filter(|url| !known.contains_key(&url.to_string())) else { continue };
        let parent = (!resources.is_empty()).then(|| entry.parent(&known, &resources));
        known.insert(url.to_string(), resources.len());
        let trip_ms = trips_ms.get(&url.origin()).copied();
        let wait_ns = trip_ms.map_or(0, |trip_ms| entry.think_ns(trip_ms));
        let (kind, bytes) = (entry.kind(), entry.bytes());
        resources.push(Modelled { url, kind, bytes, parent, named_at_bytes: 0, wait_ns });
    }
    if resources.len() > MOST_RESOURCES {
        return Err(HarError(format!(
            "the page has {} resources, more than {MOST_RESOURCES}; record a shorter load, or remove entries",
            resources.len()
        )));
    }
    spread(&mut resources);
    let left_out = count - resources.len();
    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| resources[0].url.to_string());
    Ok(HarPage { title, resources, left_out, has_waits: !trips_ms.is_empty() })
}

/// The round trip to each host: the smallest of its waits, which contain one, and of its TCP handshakes. It
/// may be too long, never too short, if nothing between server and browser answered in place of the server.
fn round_trips_ms(entries: &[Entry]) -> HashMap<String, f64> {
    let mut trips_ms: HashMap<String, f64> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.from_cache.is_none()) {
        let Ok(url) = Url::parse(&entry.request.url) else { continue };
        let known = trips_ms.get(&url.origin()).copied();
        let trip_ms = entry.wait_ms().into_iter().chain(entry.timings.tcp_ms()).chain(known).reduce(f64::min);
        if let Some(trip_ms) = trip_ms {
            trips_ms.insert(url.origin(), trip_ms);
        }
    }
    trips_ms
}

impl Entry {
    /// The URL of a successful GET.
    fn usable(&self) -> Option<Url> {
        // A browser reports 304 for what it had, and a client without a cache gets 200.
        let is_fine = self.request.method == "GET" && matches!(self.response.status, 200 | 304);
        let is_web = ["http://", "https://"].iter().any(|scheme| self.request.url.starts_with(scheme));
        (is_fine && is_web).then(|| Url::parse(&self.request.url).ok()).flatten()
    }

    fn kind(&self) -> ResourceKind {
        kind_of(&self.response.content.mime_type)
    }

    /// The body as it was sent, or decoded where that is unknown.
    fn bytes(&self) -> u64 {
        let sizes = [self.response.body_size, self.response.content.size];
        let size = sizes.into_iter().find(|size| *size > 0.0).unwrap_or(0.0);
        model::number::nearest(size.min(1e12))
    }

    /// The wait for the response of a server.
    fn wait_ms(&self) -> Option<f64> {
        self.timings.wait.filter(|wait| self.from_cache.is_none() && *wait > 0.0)
    }

    /// How long the server took in addition to a round trip, in nanoseconds.
    fn think_ns(&self, trip_ms: f64) -> u64 {
        const LONGEST_MS: f64 = 60_000.0;
        let think_ms = self.wait_ms().map_or(0.0, |wait| (wait - trip_ms).clamp(0.0, LONGEST_MS));
        model::number::nearest(think_ms * 1e6)
    }

    /// The resource that caused the request; the document where that is unknown.
    fn parent(&self, known: &HashMap<String, usize>, resources: &[Modelled]) -> usize {
        let urls = self.initiators().filter_map(|url| Url::parse(url).ok());
        let may_name = |place: &usize| {
            matches!(resources[*place].kind, ResourceKind::Html | ResourceKind::Css | ResourceKind::Js)
        };
        urls.filter_map(|url| known.get(&url.to_string()).copied()).find(may_name).unwrap_or(0)
    }
}

/// Places references evenly in documents and style sheets, and at the end of scripts.
fn spread(resources: &mut [Modelled]) {
    let mut children = vec![0_u64; resources.len()];
    for parent in resources.iter().filter_map(|resource| resource.parent) {
        children[parent] += 1;
    }
    let mut placed = vec![0_u64; resources.len()];
    for index in 1..resources.len() {
        let Some(parent) = resources[index].parent else { continue };
        placed[parent] += 1;
        let bytes = resources[parent].bytes;
        resources[index].named_at_bytes = match resources[parent].kind {
            ResourceKind::Js => bytes,
            _ => bytes.saturating_mul(placed[parent]) / (children[parent] + 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str, mime_type: &str, more: &str) -> String {
        format!(
            r#"{{"pageref":"p","request":{{"method":"GET","url":"{url}"}},"response":{{"status":200,"bodySize":1000,
            "content":{{"size":3000,"mimeType":"{mime_type}"}}}}{more}}}"#
        )
    }

    fn har(entries: &[String]) -> String {
        let entries = entries.join(",");
        format!(r#"{{"log":{{"version":"1.2","pages":[{{"id":"p","title":"T"}}],"entries":[{entries}]}}}}"#)
    }

    #[test]
    fn a_recorded_load_becomes_a_page() {
        let by = |url: &str| format!(r#","_initiator":{{"type":"parser","url":"{url}"}}"#);
        let by_script =
            r#","_initiator":{"type":"script","stack":{"callFrames":[{"url":"https://cdn.test/a.js"}]}}"#;
        let redirect = entry("https://a.test/", "text/html", "").replace("200", "301");
        let text = har(&[
            redirect,
            entry("https://a.test/x", "text/html", ""),
            entry("https://a.test/a.css", "text/css", &by("https://a.test/x")),
            entry("https://cdn.test/a.js", "text/javascript", &by("https://a.test/x")),
            entry("https://a.test/f.woff2", "font/woff2", &by("https://a.test/a.css")),
            entry("https://a.test/data.json", "application/json", by_script),
            entry("https://a.test/data.json", "application/json", ""),
            entry("data:image/png;base64,AA", "image/png", ""),
            entry("https://a.test/post", "text/plain", "").replace("GET", "POST"),
            entry("https://a.test/other", "text/html", "").replace("\"p\"", "\"q\""),
        ]);
        let page = parse_har(&text).unwrap();
        assert_eq!((page.title.as_str(), page.left_out), ("T", 5));
        let found: Vec<_> = page
            .resources
            .iter()
            .map(|r| (r.url.path.as_str(), r.parent, r.bytes, r.named_at_bytes))
            .collect();
        assert_eq!(
            found,
            [
                ("/x", None, 1000, 0),
                ("/a.css", Some(0), 1000, 333),
                ("/a.js", Some(0), 1000, 666),
                ("/f.woff2", Some(1), 1000, 500),
                ("/data.json", Some(2), 1000, 1000),
            ]
        );
    }

    #[test]
    fn think_times_are_waits_less_the_round_trip_of_the_host() {
        let timed =
            |url: &str, timings: &str| entry(url, "text/html", &format!(r#","timings":{{{timings}}}"#));
        let cached = r#""wait":0.1},"_fromCache":"memory","x":{"a":0"#;
        let text = har(&[
            timed("https://a.test/", r#""connect":90,"ssl":60,"wait":230"#),
            timed("https://a.test/1", r#""connect":-1,"ssl":-1,"wait":50"#),
            timed("https://a.test/2", r#""connect":0,"wait":null"#),
            timed("https://a.test/3", cached),
            timed("https://b.test/1", r#""wait":20"#),
            timed("https://b.test/2", r#""wait":1e9"#),
            timed("https://c.test/", r#""connect":5"#),
        ]);
        let page = parse_har(&text).unwrap();
        let waits_ms: Vec<u64> = page.resources.iter().map(|resource| resource.wait_ns / 1_000_000).collect();
        assert_eq!(waits_ms, [200, 20, 0, 0, 0, 60_000, 0]);
        assert!(
            page.has_waits
                && !parse_har(&har(&[entry("https://a.test/", "text/html", "")])).unwrap().has_waits
        );
    }

    #[test]
    fn what_is_no_page_load_is_one_clear_error() {
        let image = entry("https://a.test/i.png", "image/png", "");
        let document = entry("https://a.test/", "text/html", "");
        let numbered = |count: usize| -> Vec<String> {
            let image = |number: usize| entry(&format!("https://a.test/{number}"), "image/png", "");
            std::iter::once(document.clone()).chain((1..count).map(image)).collect()
        };
        for (text, part) in [
            (String::new(), "it is not a HAR file"),
            ("{}".to_owned(), "missing field `log`"),
            (har(&[image]).replace("\"status\":200", "\"status\":\"x\""), "it is not a HAR file"),
            (har(&[]), "none of its 0 entries"),
            (har(&numbered(10_000)), "it has 10000 entries"),
            (har(&numbered(301)), "the page has 301 resources"),
            ("[".repeat(100_000), "it is not a HAR file"),
        ] {
            let error = parse_har(&text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n') && error.len() < 300, "{error}");
        }
        let huge = har(&[document.replace("1000", "1e300")]);
        assert_eq!(parse_har(&huge).unwrap().resources[0].bytes, 1_000_000_000_000);
        let circular = har(&[document.replace("}}}", "}},\"_initiator\":{\"url\":\"https://a.test/\"}}")]);
        assert_eq!(parse_har(&circular).unwrap().resources[0].parent, None);
    }
}
