//! Pages: a document and the resources that it, or one of its style sheets, names.

use serde::{Deserialize, Serialize};

use crate::delivery::Delivery;
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
    /// How many bytes of the parent's body must have arrived until the whole reference is known.
    pub named_at_bytes: u64,
    /// Index into [`Page::origins`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub origin: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
const fn is_zero(number: &u16) -> bool {
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
            let origins =
                root.parsed("origin", parse_origin)?.map(|origin| origin.value).into_iter().collect();
            let mut page = Page {
                name: name.to_owned(),
                title,
                resources: Vec::new(),
                delivery: Delivery::default(),
                origins,
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
    "resource", "tables `[[resource]]`", "required", "",
        "The resources: the document first, parents before their children; see below.";
};
const RESOURCE_KEYS: &[Key] = keys! {
    "path", "text", "required", r#""/shop/photo{n}.png""#,
        "The path: begins with `/`, has no `..`, each path once. With an `origin` it may have a query.";
    "kind", "text", "required", r#""css""#, "`html`, `css`, `js`, `image` or `font`.";
    "sizes", "list of sizes", "required", r#"["25kB", "14kB"]"#,
        "The body length. Several sizes make several resources, numbered from 1 by `{n}` in the path.";
    "named_by", "text", "required but for the document", r#""/shop/shop.css""#,
        "The path of the document or style sheet above that names it; with an `origin` it may be a script, or an absolute URL.";
    "named_at", "size", "a place for each reference", r#""12kB""#,
        "How much of the parent has arrived when this is requested. Requires the page's `origin`.";
    "origin", "text", "the page's", r#""https://cdn.example.com""#,
        "Scheme, host and port of another host. Requires the page's `origin`.";
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

/// Adds one `[[resource]]`: a resource for each of its sizes.
fn add(page: &mut Page, entry: &Table<'_>) -> Result<(), InputError> {
    let written = entry.required("path", Table::string)?;
    let kind = entry.required("kind", Table::named)?.value;
    let check = if page.is_outside() { check_request_path } else { check_file_path };
    check(&written.value).map_err(|problem| written.error(problem))?;
    let origin = read_origin(page, entry)?;
    let named_at = entry.parsed("named_at", units::parse_size_bytes)?;
    if let Some(key) = named_at.as_ref().filter(|_| !page.is_outside()) {
        return Err(key
            .error("`named_at` requires the page's `origin`; remove it, because h123 makes the references"));
    }
    let named_by = find_parent(page, &written, entry.string("named_by")?)?;
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
        if page.resources.iter().any(|other| other.path == path && other.origin == origin) {
            return Err(written.error(format!("`{path}` appears twice; give each resource its own path")));
        }
        let mut named_at_bytes = named_by.map_or(0, |parent| next_reference_end(&page.resources, parent));
        if let Some(parent) = named_by.map(|parent| &page.resources[parent]) {
            if page.is_outside() {
                let asked = named_at.as_ref().map_or(named_at_bytes, |named_at| named_at.value);
                named_at_bytes = asked.min(parent.bytes);
            } else if named_at_bytes > parent.bytes {
                return Err(written.error(format!(
                    "`{}` has {} bytes; it needs at least {named_at_bytes} to name `{path}`",
                    parent.path, parent.bytes
                )));
            }
        }
        page.resources.push(Resource { path, kind, bytes, named_by, named_at_bytes, origin });
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
    let index = u16::try_from(index).ok().filter(|index| usize::from(*index) < MOST_ORIGINS);
    index
        .ok_or_else(|| origin.error(format!("the page has more than {MOST_ORIGINS} hosts; remove resources")))
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
            // A script names others when it runs, which h123's own content does not do.
            let may_name = |kind: ResourceKind| {
                matches!(kind, ResourceKind::Html | ResourceKind::Css)
                    || page.is_outside() && kind == ResourceKind::Js
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
                parent.error(format!("`{}` is not a document or style sheet; {expected}", parent.value))
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
    let hosts = match page.origins.len() {
        0 | 1 => String::new(),
        count => format!(" on {count} hosts"),
    };
    let bytes = units::format_bytes(float(page.total_bytes()));
    format!("{resources}{hosts}, {bytes}{}", page.delivery.describe())
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
    fn faults_name_the_place() {
        let child = |lines: &str| parse(&format!("{HEAD}[[resource]]\n{lines}\n")).unwrap_err();
        assert!(child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']").contains("`/a.js` has no `named_by`"),);
        let orphan = child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']\nnamed_by = '/b.css'");
        assert!(orphan.starts_with("p.toml:10:12: `/b.css` is not"), "{orphan}");
        let sizes = "['1B','1B','1B','1B','1B','1B','1B','1B']";
        let crowd = child(&format!("path = '/{{n}}.js'\nkind = 'js'\nnamed_by = '/p/'\nsizes = {sizes}"));
        assert!(crowd.contains("it needs at least 1024 to name `/6.js`"), "{crowd}");
    }
}
