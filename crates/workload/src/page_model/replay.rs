//! A real page as a page that h123 serves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use model::page::{PROLOGUE_BYTES, REFERENCE_BYTES, ResourceKind, least_bytes};
use model::units::{NANOS_PER_MS, counted};
use model::url::Url;

use super::{Modelled, one_line, toml_text};
use crate::content::{DOCUMENT_END_BYTES, STYLED_BYTES};

/// The longest name of a host, so that references keep room for paths.
const LONGEST_HOST: usize = 40;
/// The longest folder of a page.
const LONGEST_FOLDER: usize = 16;
/// The longest markup around the URL of a reference: a preloaded font, with `//`.
const MARKUP_BYTES: usize = 52;
/// Room for the number of a path that would appear twice.
const NUMBER_BYTES: usize = 4;
/// Names for tests, which no browser knows (RFC 6761, section 6.2): real ones may be in its list of hosts
/// that only have https.
const TEST_DOMAIN: &str = ".test";

/// The page file with these resources, the document first, as h123's origin replays them; `notes` become
/// comments.
///
/// Paths and names of hosts are like those of the URLs. A document, style sheet or script that is too short
/// for its references, as compressed ones may be, gets the length that it needs.
pub fn replay_file(title: &str, resources: &[Modelled], notes: &[String]) -> String {
    let names = Names::of(resources);
    let parents: Vec<Option<usize>> = (0..resources.len()).map(|index| parent_of(resources, index)).collect();
    let least = least_lengths(resources, &parents);
    let longer = resources.iter().zip(&least).filter(|(resource, least)| resource.bytes < **least).count();
    let mut text = String::new();
    for note in notes {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "# {}", one_line(note));
    }
    if longer > 0 {
        let _ =
            writeln!(text, "# {} made longer, to hold the references.", counted(longer as u64, "resource"));
    }
    let _ = writeln!(text, "title = {}", toml_text(&one_line(title)));
    if let Some(host) = names.host_of(0) {
        let _ = writeln!(text, "host = {}", toml_text(host));
    }
    for (index, resource) in resources.iter().enumerate() {
        let _ = writeln!(text, "\n[[resource]]\npath = {}", toml_text(&names.paths[index]));
        if let Some(host) = names.host_of(index).filter(|host| names.host_of(0) != Some(host)) {
            let _ = writeln!(text, "host = {}", toml_text(host));
        }
        let bytes = resource.bytes.max(least[index]);
        let _ = writeln!(text, "kind = \"{}\"\nsizes = [\"{bytes}B\"]", resource.kind);
        if let Some(parent) = parents[index] {
            let _ = writeln!(text, "named_by = {}", toml_text(&names.paths[parent]));
        }
        let wait_ms = resource.wait_ns.saturating_add(NANOS_PER_MS / 2) / NANOS_PER_MS;
        if wait_ms > 0 {
            let _ = writeln!(text, "wait = \"{wait_ms}ms\"");
        }
    }
    text
}

/// What names a resource. Style sheets of h123 name style sheets, fonts and images only; for others it is the
/// document.
fn parent_of(resources: &[Modelled], index: usize) -> Option<usize> {
    let parent = resources[index].parent?;
    let is_of_style =
        matches!(resources[index].kind, ResourceKind::Css | ResourceKind::Font | ResourceKind::Image);
    let may_name = match resources[parent].kind {
        ResourceKind::Css => is_of_style,
        ResourceKind::Html | ResourceKind::Js => true,
        ResourceKind::Image | ResourceKind::Font => false,
    };
    Some(if may_name { parent } else { 0 })
}

/// How long each resource has to be at least. A document also uses what its style sheets name.
fn least_lengths(resources: &[Modelled], parents: &[Option<usize>]) -> Vec<u64> {
    let mut references = vec![0; resources.len()];
    let mut styled = vec![0; resources.len()];
    for parent in parents.iter().flatten() {
        references[*parent] += 1;
        if resources[*parent].kind == ResourceKind::Css {
            let mut document = *parent;
            while let Some(above) =
                parents[document].filter(|_| resources[document].kind != ResourceKind::Html)
            {
                document = above;
            }
            styled[document] += 1;
        }
    }
    let length = |(index, resource): (usize, &Modelled)| match styled[index] {
        0 => least_bytes(resource.kind, references[index]),
        count => {
            let elements = STYLED_BYTES as u64 * count + DOCUMENT_END_BYTES as u64 + 1;
            PROLOGUE_BYTES + REFERENCE_BYTES * references[index] + elements
        }
    };
    resources.iter().enumerate().map(length).collect()
}

/// The names of hosts and the paths of a replayed page.
struct Names {
    /// By the authorities of the URLs; one alone needs no name.
    hosts: BTreeMap<String, String>,
    authorities: Vec<String>,
    paths: Vec<String>,
}

impl Names {
    fn of(resources: &[Modelled]) -> Names {
        let authorities: Vec<String> =
            resources.iter().map(|resource| resource.url.authority.to_ascii_lowercase()).collect();
        let (mut hosts, mut known) = (BTreeMap::new(), BTreeSet::new());
        for authority in &authorities {
            if !hosts.contains_key(authority) {
                hosts.insert(authority.clone(), unique(&host_name(authority), "", &mut known));
            }
        }
        if hosts.len() == 1 {
            hosts.clear();
        }
        let longest_host = hosts.values().map(String::len).max().unwrap_or(0);
        let slot = usize::try_from(REFERENCE_BYTES).unwrap_or(usize::MAX);
        let longest = slot.saturating_sub(MARKUP_BYTES + longest_host + NUMBER_BYTES);
        let mut known = BTreeSet::new();
        let folder = resources.first().map_or_else(String::new, |document| folder_of(&document.url));
        let path = |(index, resource): (usize, &Modelled)| match index {
            0 => folder.clone(),
            _ => {
                let end = ending(resource.kind);
                let room = longest.saturating_sub(folder.len() + end.len());
                unique(&format!("{folder}{}", stem_of(&resource.url, room)), end, &mut known)
            }
        };
        let paths = resources.iter().enumerate().map(path).collect();
        Names { hosts, authorities, paths }
    }

    fn host_of(&self, index: usize) -> Option<&str> {
        self.hosts.get(self.authorities.get(index)?).map(String::as_str)
    }
}

/// A name that is not known yet, with a number if necessary.
fn unique(stem: &str, end: &str, known: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{stem}-{number}{end}"));
    let mut names = std::iter::once(format!("{stem}{end}")).chain(numbered);
    // The numbers do not end.
    let name = names.find(|name| !known.contains(name)).unwrap_or_default();
    known.insert(name.clone());
    name
}

/// The name of a host in the domain for tests. A port becomes part of it.
fn host_name(authority: &str) -> String {
    let own = authority.strip_suffix(TEST_DOMAIN).unwrap_or(authority);
    let own: String =
        own.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let labels: Vec<&str> =
        own.split('.').map(|label| label.trim_matches('-')).filter(|label| !label.is_empty()).collect();
    let mut name = labels.join(".");
    let most = LONGEST_HOST - TEST_DOMAIN.len();
    if name.len() > most {
        name = name[name.len() - most..].trim_start_matches(['-', '.']).to_owned();
    }
    format!("{}{TEST_DOMAIN}", if name.is_empty() { "host" } else { &name })
}

/// The folder of a page: its host without `www`.
fn folder_of(url: &Url) -> String {
    let host = url.host.to_ascii_lowercase();
    let host = word(host.strip_prefix("www.").unwrap_or(&host));
    let name: String = host.chars().take(LONGEST_FOLDER).collect();
    let name = name.trim_matches(['-', '.']);
    format!("/{}/", if name.is_empty() { "page" } else { name })
}

/// The ending of a file's name, by which servers of files know its media type.
const fn ending(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Html => ".html",
        ResourceKind::Css => ".css",
        ResourceKind::Js => ".js",
        ResourceKind::Image => ".png",
        ResourceKind::Font => ".woff2",
    }
}

/// The path of a URL without the ending of its file's name, then its query; folders at the beginning are left
/// out where all is longer than `most` bytes, then the end of the name.
fn stem_of(url: &Url, most: usize) -> String {
    let (path, query) = url.path.split_once('?').unwrap_or((&url.path, ""));
    let mut segments: Vec<String> = path.split('/').map(word).filter(|segment| !segment.is_empty()).collect();
    let name = segments.pop().unwrap_or_default();
    let name = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 5 => stem.to_owned(),
        _ => name,
    };
    let parts = [name, word(query)];
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let mut name = if parts.is_empty() { "index".to_owned() } else { parts.join("-") };
    // All characters are ASCII.
    name.truncate(most.max(1));
    let name = name.trim_end_matches(['-', '.']);
    segments.push(if name.is_empty() { "index".to_owned() } else { name.to_owned() });
    let all: Vec<String> = (0..segments.len()).map(|from| segments[from..].join("/")).collect();
    all.iter().find(|path| path.len() <= most).or(all.last()).cloned().unwrap_or_default()
}

/// Letters, digits, `.`, `_` and `-` of a text, without `-` and `.` at its ends; `-` for all others.
fn word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' || c == '_' => word.push(c),
            _ if word.ends_with('-') => {}
            _ => word.push('-'),
        }
    }
    word.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use model::Page;
    use model::error::Source;
    use proptest::prelude::*;

    use super::*;
    use crate::content;

    fn modelled(url: &str, kind: ResourceKind, bytes: u64, parent: Option<usize>, wait_ns: u64) -> Modelled {
        Modelled { url: Url::parse(url).unwrap(), kind, bytes, parent, named_at_bytes: 7, wait_ns }
    }

    fn replayed(resources: &[Modelled]) -> (String, Page) {
        let text = replay_file("T", resources, &["a note".to_owned()]);
        let page =
            Page::parse("p", Source { file: "p", text: &text }).unwrap_or_else(|e| panic!("{e}\n{text}"));
        content::check(&page).unwrap_or_else(|e| panic!("{e}\n{text}"));
        (text, page)
    }

    #[test]
    fn a_replayed_page_has_paths_hosts_dependencies_and_think_times() {
        use ResourceKind::{Css, Font, Html, Image, Js};
        let (text, page) = replayed(&[
            modelled("https://www.shop.example/?lang=en", Html, 100, None, 80_400_000),
            modelled("https://www.shop.example/a/app.js?v=1.2&x", Js, 9_000, Some(0), 0),
            modelled("https://CDN.example:8443/s.css", Css, 100, Some(0), 400_000),
            modelled("https://cdn.example:8443/f.woff?x", Font, 5, Some(2), 0),
            modelled("https://www.shop.example/api/list?n=1", Js, 40, Some(1), 600_000),
            modelled("https://www.shop.example/api/list?n=1#b", Js, 40, Some(2), 0),
            modelled("https://t.example/p.gif", Image, 43, Some(5), 0),
        ]);
        let paths: Vec<&str> = page.resources.iter().map(|resource| resource.path.as_str()).collect();
        let expected = [
            "/shop.example/",
            "/shop.example/a/app-v-1.2-x.js",
            "/shop.example/s.css",
            "/shop.example/f-x.woff2",
            "/shop.example/api/list-n-1.js",
            "/shop.example/api/list-n-1-2.js",
            "/shop.example/p.png",
        ];
        assert_eq!(paths, expected);
        assert_eq!(page.hosts, ["www.shop.example.test", "cdn.example-8443.test", "t.example.test"]);
        let found: Vec<_> =
            page.resources.iter().map(|r| (r.origin, r.named_by, r.wait_ns / 1_000_000)).collect();
        let expected = [
            (0, None, 80),
            (0, Some(0), 0),
            (1, Some(0), 0),
            (1, Some(2), 0),
            (0, Some(1), 1),
            (0, Some(0), 0),
            (2, Some(5), 0),
        ];
        assert_eq!(found, expected);
        assert!(
            text.starts_with("# a note\n# 3 resources made longer, to hold the references.\ntitle"),
            "{text}"
        );
        let html = String::from_utf8(content::page_body(&page, 0)).unwrap();
        assert!(html.contains("class=\"r3\"") && html.ends_with("</body></html>\n"), "{html}");
    }

    #[test]
    fn one_host_needs_no_name() {
        let (text, page) = replayed(&[
            modelled("https://a.test/", ResourceKind::Html, 1_000, None, 0),
            modelled("https://a.test/", ResourceKind::Image, 0, Some(0), 0),
        ]);
        assert!(page.hosts.is_empty() && !text.contains("longer"), "{text}");
        assert_eq!(page.resources[1].path, "/a.test/index.png");
    }

    proptest! {
        #[test]
        fn every_url_becomes_a_path(
            urls in proptest::collection::vec("https://[a-z0-9.:_-]{0,60}x(:[0-9]{1,4})?/[!-~]{0,120}", 1..12),
            kinds in proptest::collection::vec(0_usize..5, 12),
        ) {
            let mut resources: Vec<Modelled> = Vec::new();
            for (url, kind) in urls.iter().zip(kinds) {
                let Ok(url) = Url::parse(url) else { continue };
                let kind = if resources.is_empty() { ResourceKind::Html } else { ResourceKind::ALL[kind] };
                let parent = resources.len().checked_sub(1);
                resources.push(Modelled { url, kind, bytes: 0, parent, named_at_bytes: 0, wait_ns: 1 });
            }
            if !resources.is_empty() {
                let (_, page) = replayed(&resources);
                prop_assert_eq!(page.resources.len(), resources.len());
            }
        }
    }
}
