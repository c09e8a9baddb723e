//! Pages: a document and the resources that it, or one of its style sheets, names.

use serde::{Deserialize, Serialize};

use crate::delivery::{Delivery, DeliveryMeans};
use crate::error::{InputError, Source};
use crate::number::float;
use crate::reader::{Key, Placed, Table, TableKeys, read_file};
use crate::request_path::{check_file_path, check_request_path};
use crate::url::Url;
use crate::{keys, named, units};

/// Bytes at the start of a document or style sheet before its first reference.
pub const PROLOGUE_BYTES: u64 = 256;
/// Bytes that each reference takes, padded.
pub const REFERENCE_BYTES: u64 = 128;
/// Bytes at the end of a script after its last reference.
pub const SCRIPT_END_BYTES: u64 = 8;
/// The longest think time of a resource, which a server has to hold open.
const LONGEST_WAIT_NS: u64 = 60_000_000_000;

/// How long a body has to be that h123 makes with this many references.
pub const fn least_bytes(kind: ResourceKind, references: u64) -> u64 {
    let end_bytes = if matches!(kind, ResourceKind::Js) { SCRIPT_END_BYTES } else { 0 };
    if references == 0 { 0 } else { PROLOGUE_BYTES + REFERENCE_BYTES * references + end_bytes }
}

/// A page, resolved. `resources[0]` is the document; every other resource names its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The name that studies use.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The document first; parents before their children.
    pub resources: Vec<Resource>,
    /// How a server delivers it, which is the workload's to say.
    #[serde(default, skip_serializing_if = "Delivery::is_plain")]
    pub delivery: Delivery,
    /// The origins of a page of servers that h123 does not start, the document's first. Empty for a page
    /// whose bodies h123 makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Url>,
    /// The names of the hosts of a page that h123 makes, the document's first: one server answers for all.
    /// Empty for a page under the server's own name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// One resource of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Absolute path, such as `/large/app.css`.
    pub path: String,
    /// What it is.
    pub kind: ResourceKind,
    /// Body length in bytes.
    pub bytes: u64,
    /// The resource that names this one; `None` for the document alone.
    pub named_by: Option<usize>,
    /// How many bytes of the parent's body must have arrived until it is requested: the whole reference, or
    /// the whole script.
    pub named_at_bytes: u64,
    /// Index into [`Page::origins`] or [`Page::hosts`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub origin: u16,
    /// How long the server takes before it answers, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero_ns")]
    pub wait_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
const fn is_zero(number: &u16) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
const fn is_zero_ns(number: &u64) -> bool {
    *number == 0
}

named! { "a kind of resource";
    /// What a resource is.
    #[expect(missing_docs, reason = "the names are enough")]
    pub enum ResourceKind {
        Html = "html",
        Css = "css",
        Js = "js",
        Image = "image",
        Font = "font",
    }
}

impl ResourceKind {
    /// The request destination (Fetch, section 2.2.5), for `sec-fetch-dest` and for `as` of a link.
    pub const fn destination(self) -> &'static str {
        match self {
            ResourceKind::Html => "document",
            ResourceKind::Css => "style",
            ResourceKind::Js => "script",
            ResourceKind::Image => "image",
            ResourceKind::Font => "font",
        }
    }

    /// The media type to serve it with.
    pub const fn media_type(self) -> &'static str {
        match self {
            ResourceKind::Html => "text/html; charset=utf-8",
            ResourceKind::Css => "text/css",
            ResourceKind::Js => "text/javascript",
            ResourceKind::Image => "image/png",
            ResourceKind::Font => "font/woff2",
        }
    }
}

impl Page {
    /// Whether its bodies are those of servers that h123 does not start, and therefore unknown.
    pub const fn is_outside(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The number of hosts, each with separate connections.
    pub fn host_count(&self) -> usize {
        self.origins.len().max(self.hosts.len()).max(1)
    }

    /// The longest think time of its resources, in nanoseconds.
    pub fn longest_wait_ns(&self) -> u64 {
        self.resources.iter().map(|resource| resource.wait_ns).max().unwrap_or(0)
    }

    /// What a server must be able to do to deliver it.
    pub fn means(&self) -> impl Iterator<Item = DeliveryMeans> {
        let needs = [
            (DeliveryMeans::Waits, self.longest_wait_ns() > 0),
            (DeliveryMeans::Hosts, !self.hosts.is_empty()),
        ];
        let own = needs.into_iter().filter_map(|(means, is_needed)| is_needed.then_some(means));
        self.delivery.means().chain(own)
    }

    /// Sum of all body lengths.
    pub fn total_bytes(&self) -> u64 {
        self.resources.iter().map(|resource| resource.bytes).sum()
    }

    /// The indices of the resources that `parent` names, in the order of their references.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        self.resources
            .iter()
            .enumerate()
            .filter(move |(_, resource)| resource.named_by == Some(parent))
            .map(|(index, _)| index)
    }

    /// Reads and resolves a page file (`pages/NAME.toml`).
    ///
    /// # Errors
    /// File, line and column of an unknown key, a bad unit, an unknown parent, or a parent too short for its
    /// references.
    pub fn parse(name: &str, source: Source<'_>) -> Result<Page, InputError> {
        read_file(source, "the page", PAGE_KEYS, |root| {
            let title = root.required("title", Table::string)?.value;
            let origins: Vec<Url> =
                root.parsed("origin", parse_origin)?.map(|origin| origin.value).into_iter().collect();
            let host = root.parsed("host", parse_host)?;
            if let Some(host) = host.as_ref().filter(|_| !origins.is_empty()) {
                return Err(host.error("`host` excludes `origin`, which names the host; remove one of them"));
            }
            let mut page = Page {
                name: name.to_owned(),
                title,
                resources: Vec::new(),
                delivery: Delivery::default(),
                origins,
                hosts: host.map(|host| host.value).into_iter().collect(),
            };
            for entry in root.tables("resource")? {
                add(&mut page, &entry.with_keys(RESOURCE_KEYS)?)?;
            }
            if page.resources.is_empty() {
                return Err(root.error("the page has no `[[resource]]`; add the document"));
            }
            Ok(page)
        })
    }
}

const PAGE_KEYS: &[Key] = keys! {
    "title", "text", "required", r#""The shop's front page""#, "One line that describes the page.";
    "origin", "text", "none: h123 makes the bodies", r#""https://www.example.com""#,
        "Scheme, host and port of the real page. It then needs a [server with a `url`](studies.md#servers-that-already-run), \
         which takes the place of this origin; its bodies are not compared.";
    "host", "text", "none: the server's name", r#""www.example.com""#,
        "The name by which clients request the page, at the default port, from the study's server. Excludes `origin`.";
    "resource", "tables `[[resource]]`", "required", "",
        "The resources: the document first, parents before their children; see below.";
};
const RESOURCE_KEYS: &[Key] = keys! {
    "path", "text", "required", r#""/shop/photo{n}.png""#,
        "The path: begins with `/`, has no `..`, each path once, also if there are several hosts. With an `origin` it may have a query.";
    "kind", "text", "required", r#""css""#, "`html`, `css`, `js`, `image` or `font`.";
    "sizes", "list of sizes", "required", r#"["25kB", "14kB"]"#,
        "The body length. Several sizes make several resources, numbered from 1 by `{n}` in the path.";
    "named_by", "text", "required but for the document", r#""/shop/shop.css""#,
        "The path of the document, style sheet or script above that names it; with an `origin` it may be an absolute URL. Style sheets name \
         style sheets, images and fonts alone.";
    "named_at", "size", "a place for each reference", r#""12kB""#,
        "How much of the parent has arrived when this is requested. Requires the page's `origin`. What a script of h123 names is requested \
         when the script has run.";
    "origin", "text", "the page's", r#""https://cdn.example.com""#,
        "Scheme, host and port of another host. Requires the page's `origin`.";
    "host", "text", "the page's", r#""cdn.example.com""#,
        "The name of another host that the study's server answers for, on separate connections. Requires the page's `host`.";
    "wait", "duration", "`\"0s\"`", r#""80ms""#,
        "How long the server thinks before it answers, up to 60 s. Not with an `origin`.";
};

/// Every table of a page file.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the page", keys: PAGE_KEYS },
    TableKeys { table: "[[resource]]", keys: RESOURCE_KEYS },
];

/// The most hosts of a page.
const MOST_ORIGINS: usize = 100;

fn parse_origin(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)?;
    if url.path != "/" {
        return Err(format!("`{text}` has a path; write scheme and host only, such as `{}`", url.origin()));
    }
    Ok(url)
}

/// Reads the name of a host as requests carry it (RFC 1123, section 2.1).
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    const LONGEST_LABEL: usize = 63;
    const LONGEST: usize = 100;
    let is_of_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.chars().all(is_of_label)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // An address ends in a number.
    let is_address = text.rsplit('.').next().is_some_and(|last| last.chars().all(|c| c.is_ascii_digit()));
    if text.len() <= LONGEST && text.contains('.') && text.split('.').all(is_label) && !is_address {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    Err(format!(
        "`{shown}` is not a host name; write lower-case letters, digits, hyphens and dots, such as `cdn.example.com`"
    ))
}

/// Adds one `[[resource]]`: a resource for each of its sizes.
fn add(page: &mut Page, entry: &Table<'_>) -> Result<(), InputError> {
    let written = entry.required("path", Table::string)?;
    let kind = entry.required("kind", Table::named)?.value;
    let check = if page.is_outside() { check_request_path } else { check_file_path };
    check(&written.value).map_err(|problem| written.error(problem))?;
    let origin = match read_origin(page, entry)? {
        0 => read_host(page, entry)?,
        origin => origin,
    };
    let wait_ns = read_wait(page, entry)?;
    let named_at = entry.parsed("named_at", units::parse_size_bytes)?;
    if let Some(key) = named_at.as_ref().filter(|_| !page.is_outside()) {
        return Err(key
            .error("`named_at` requires the page's `origin`; remove it, because h123 makes the references"));
    }
    let named_by = find_parent(page, &written, entry.string("named_by")?)?;
    if let Some(parent) = named_by.map(|parent| &page.resources[parent])
        && !page.is_outside()
        && parent.kind == ResourceKind::Css
        && matches!(kind, ResourceKind::Html | ResourceKind::Js)
    {
        let noun = if kind == ResourceKind::Js { "scripts" } else { "documents" };
        return Err(written.error(format!(
            "`{}` is a style sheet, and no browser requests {noun} that a style sheet names; name `{}` in a document \
             or a script",
            parent.path, written.value
        )));
    }
    let sizes = entry.required("sizes", Table::some_strings)?;
    if sizes.value.len() > 1 && !written.value.contains("{n}") {
        let count = sizes.value.len();
        return Err(
            sizes.error(format!("`sizes` has {count} entries; write one, or put `{{n}}` into the path"))
        );
    }
    for (index, size) in sizes.value.into_iter().enumerate() {
        let bytes = size.map(|text| units::parse_size_bytes(&text))?.value;
        let path = written.value.replace("{n}", &(index + 1).to_string());
        let is_same = |other: &Resource| other.path == path && (!page.is_outside() || other.origin == origin);
        if page.resources.iter().any(is_same) {
            return Err(written.error(format!("`{path}` appears twice; give each resource its own path")));
        }
        let mut named_at_bytes = named_by.map_or(0, |parent| next_reference_end(&page.resources, parent));
        if let Some(parent) = named_by.map(|parent| &page.resources[parent]) {
            if page.is_outside() {
                let asked = named_at.as_ref().map_or(named_at_bytes, |named_at| named_at.value);
                named_at_bytes = asked.min(parent.bytes);
            } else {
                let is_script = parent.kind == ResourceKind::Js;
                let least = named_at_bytes + if is_script { SCRIPT_END_BYTES } else { 0 };
                if least > parent.bytes {
                    return Err(written.error(format!(
                        "`{}` has {} bytes; it needs at least {least} to name `{path}`",
                        parent.path, parent.bytes
                    )));
                }
                if is_script {
                    // A script runs when all of it has arrived.
                    named_at_bytes = parent.bytes;
                }
            }
        }
        page.resources.push(Resource { path, kind, bytes, named_by, named_at_bytes, origin, wait_ns });
    }
    Ok(())
}

/// The index of a resource's origin, which is added to the page's where it is new.
fn read_origin(page: &mut Page, entry: &Table<'_>) -> Result<u16, InputError> {
    let Some(origin) = entry.parsed("origin", parse_origin)? else { return Ok(0) };
    if !page.is_outside() {
        return Err(origin.error("`origin` requires the page's `origin`; add it above the resources"));
    }
    let known = page.origins.iter().position(|known| known.has_origin_of(&origin.value));
    let index = known.unwrap_or_else(|| {
        page.origins.push(origin.value.clone());
        page.origins.len() - 1
    });
    number_of_host(index).map_err(|problem| origin.error(problem))
}

/// The index of the name of a resource's host, which is added to the page's where it is new.
fn read_host(page: &mut Page, entry: &Table<'_>) -> Result<u16, InputError> {
    let Some(host) = entry.parsed("host", parse_host)? else { return Ok(0) };
    if page.hosts.is_empty() {
        let remedy = match page.is_outside() {
            true => "write `origin` with its scheme",
            false => "add it above the resources",
        };
        return Err(host.error(format!("`host` requires the page's `host`; {remedy}")));
    }
    let known = page.hosts.iter().position(|known| *known == host.value);
    let index = known.unwrap_or_else(|| {
        page.hosts.push(host.value.clone());
        page.hosts.len() - 1
    });
    number_of_host(index).map_err(|problem| host.error(problem))
}

fn read_wait(page: &Page, entry: &Table<'_>) -> Result<u64, InputError> {
    let Some(wait) = entry.parsed("wait", units::parse_duration_ns)? else { return Ok(0) };
    if page.is_outside() {
        return Err(
            wait.error("`wait` excludes the page's `origin`, whose server takes its own time; remove it")
        );
    }
    if wait.value > LONGEST_WAIT_NS {
        return Err(wait.error("`wait` exceeds 60 s; write at most `60s`"));
    }
    Ok(wait.value)
}

fn number_of_host(index: usize) -> Result<u16, String> {
    let index = u16::try_from(index).ok().filter(|index| usize::from(*index) < MOST_ORIGINS);
    index.ok_or_else(|| format!("the page has more than {MOST_ORIGINS} hosts; remove resources"))
}

fn find_parent(
    page: &Page,
    path: &Placed<String>,
    named_by: Option<Placed<String>>,
) -> Result<Option<usize>, InputError> {
    match (named_by, page.resources.is_empty()) {
        (None, true) => Ok(None),
        (Some(parent), true) => {
            Err(parent.error("the first resource is the document, which has no `named_by`; remove it"))
        }
        (None, false) => Err(path.error(format!(
            "`{}` has no `named_by`; add the path of the resource that names it",
            path.value
        ))),
        (Some(parent), false) => {
            let may_name = |kind: ResourceKind| {
                matches!(kind, ResourceKind::Html | ResourceKind::Css | ResourceKind::Js)
            };
            let is_parent = |resource: &Resource| {
                let is_named = match page.origins.get(usize::from(resource.origin)) {
                    Some(origin) if parent.value.contains("://") => {
                        parent.value.strip_prefix(&origin.origin()) == Some(&resource.path)
                    }
                    _ => resource.path == parent.value,
                };
                is_named && may_name(resource.kind)
            };
            page.resources.iter().position(is_parent).map(Some).ok_or_else(|| {
                let expected = "write the path of one above";
                parent
                    .error(format!("`{}` is not a document, style sheet or script; {expected}", parent.value))
            })
        }
    }
}

/// Where the next reference in a parent's body ends.
fn next_reference_end(resources: &[Resource], parent: usize) -> u64 {
    let siblings = resources.iter().filter(|resource| resource.named_by == Some(parent)).count();
    PROLOGUE_BYTES + REFERENCE_BYTES * (siblings as u64 + 1)
}

/// One line such as `55 resources, 1.6 MB, pushes 1 resource`, for tables and reports.
pub fn describe(page: &Page) -> String {
    let resources = units::counted(page.resources.len() as u64, "resource");
    let hosts = match page.host_count() {
        1 => String::new(),
        count => format!(" on {count} hosts"),
    };
    let bytes = units::format_bytes(float(page.total_bytes()));
    let waits = match page.longest_wait_ns() {
        0 => String::new(),
        longest_ns => format!(", think times up to {}", units::format_ns(longest_ns)),
    };
    format!("{resources}{hosts}, {bytes}{waits}{}", page.delivery.describe())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Page, String> {
        Page::parse("p", Source { file: "p.toml", text }).map_err(|e| e.to_string())
    }

    const HEAD: &str = "title = 'x'\n[[resource]]\npath = '/p/'\nkind = 'html'\nsizes = ['1kB']\n";

    #[test]
    fn children_are_named_in_slots() {
        let text = format!(
            "{HEAD}[[resource]]\npath = '/p/{{n}}.png'\nkind = 'image'\nnamed_by = '/p/'\nsizes = ['1kB', '2kB']\n"
        );
        let page = parse(&text).unwrap();
        assert_eq!(page.total_bytes(), 4000);
        assert_eq!(page.resources[2].path, "/p/2.png");
        assert_eq!(page.resources[1].named_at_bytes, 384);
        assert_eq!(page.resources[2].named_at_bytes, 512);
        assert_eq!(page.children(0).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_real_page_has_hosts_queries_and_places() {
        let text = "title = 'x'\norigin = 'https://a.test'\n\
                    [[resource]]\npath = '/?q=1'\nkind = 'html'\nsizes = ['10kB']\n\
                    [[resource]]\npath = '/a.js'\nkind = 'js'\nsizes = ['1kB']\nnamed_by = '/?q=1'\nnamed_at = '4kB'\n\
                    origin = 'https://cdn.test:8443'\n\
                    [[resource]]\npath = '/a.js'\nkind = 'js'\nsizes = ['2kB']\nnamed_by = 'https://cdn.test:8443/a.js'\n\
                    named_at = '9kB'\n";
        let page = parse(text).unwrap();
        let found: Vec<_> = page.resources.iter().map(|r| (r.origin, r.named_by, r.named_at_bytes)).collect();
        assert_eq!(found, [(0, None, 0), (1, Some(0), 4000), (0, Some(1), 1000)]);
        assert_eq!(
            (page.origins[1].port, describe(&page)),
            (8443, "3 resources on 2 hosts, 13 kB".to_owned())
        );
        let without = text.replace("origin = 'https://a.test'\n", "").replace("/?q=1", "/");
        assert!(parse(&without).unwrap_err().contains("`origin` requires the page's `origin`"));
        let path = text.replace("https://a.test", "https://a.test/b");
        assert!(parse(&path).unwrap_err().contains("write scheme and host only, such as `https://a.test`"));
    }

    #[test]
    fn a_replayed_page_has_hosts_scripts_and_think_times() {
        let text = "title = 'x'\nhost = 'a.test'\n\
                    [[resource]]\npath = '/'\nkind = 'html'\nsizes = ['10kB']\nwait = '80ms'\n\
                    [[resource]]\npath = '/a.js'\nkind = 'js'\nsizes = ['2kB']\nnamed_by = '/'\nhost = 'cdn.test'\n\
                    [[resource]]\npath = '/{n}.png'\nkind = 'image'\nsizes = ['1kB', '2kB']\nnamed_by = '/a.js'\n\
                    wait = '1.5s'\nhost = 'a.test'\n";
        let page = parse(text).unwrap();
        let found: Vec<_> =
            page.resources.iter().map(|r| (r.origin, r.named_by, r.named_at_bytes, r.wait_ns)).collect();
        let image = (0, Some(1), 2000, 1_500_000_000);
        assert_eq!(found, [(0, None, 0, 80_000_000), (1, Some(0), 384, 0), image, image]);
        assert_eq!((page.host_count(), page.hosts[1].as_str()), (2, "cdn.test"));
        assert_eq!(describe(&page), "4 resources on 2 hosts, 15 kB, think times up to 1.5 s");
        assert_eq!(page.means().collect::<Vec<_>>(), [DeliveryMeans::Waits, DeliveryMeans::Hosts]);
        for (from, to, part) in [
            ("'2kB'", "'519B'", "`/a.js` has 519 bytes; it needs at least 520 to name `/2.png`"),
            ("'1.5s'", "'61s'", "`wait` exceeds 60 s; write at most `60s`"),
            ("host = 'a.test'\n[", "[", "`host` requires the page's `host`; add it above the resources"),
            ("'cdn.test'", "'CDN.test'", "`CDN.test` is not a host name; write lower-case letters"),
            ("'cdn.test'", "'10.0.0.1'", "`10.0.0.1` is not a host name"),
            ("'cdn.test'", "'cdn.test:80'", "`cdn.test:80` is not a host name"),
            ("/{n}.png", "/a.js{n}/../", "`..`"),
            (
                "host = 'a.test'\n[",
                "host = 'a.test'\norigin = 'https://a.test'\n[",
                "`host` excludes `origin`",
            ),
            ("host = 'a.test'\n[", "origin = 'https://a.test'\n[", "`wait` excludes the page's `origin`"),
        ] {
            let fault = parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(fault.contains(part), "{part}: {fault}");
        }
        let same = text.replace("/{n}.png", "/{n}.js").replace("/a.js", "/1.js");
        assert!(parse(&same).unwrap_err().contains("`/1.js` appears twice"), "one server has each path once");
    }

    #[test]
    fn faults_name_the_place() {
        let child = |lines: &str| parse(&format!("{HEAD}[[resource]]\n{lines}\n")).unwrap_err();
        assert!(child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']").contains("`/a.js` has no `named_by`"),);
        let orphan = child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']\nnamed_by = '/b.css'");
        assert!(orphan.starts_with("p.toml:10:12: `/b.css` is not"), "{orphan}");
        let style = "path = '/a.css'\nkind = 'css'\nsizes = ['1kB']\nnamed_by = '/p/'\n[[resource]]\n";
        for (kind, noun) in [("js", "scripts"), ("html", "documents")] {
            let named =
                child(&format!("{style}path = '/b'\nkind = '{kind}'\nsizes = ['1kB']\nnamed_by = '/a.css'"));
            let expected = format!("`/a.css` is a style sheet, and no browser requests {noun} that");
            assert!(named.starts_with("p.toml:12:8: ") && named.contains(&expected), "{named}");
            assert_eq!(named.lines().count(), 1, "{named}");
        }
        let sizes = "['1B','1B','1B','1B','1B','1B','1B','1B']";
        let crowd = child(&format!("path = '/{{n}}.js'\nkind = 'js'\nnamed_by = '/p/'\nsizes = {sizes}"));
        assert!(crowd.contains("it needs at least 1024 to name `/6.js`"), "{crowd}");
    }
}
