//! Pages: a document and the resources that it, or one of its style sheets, names.

use serde::{Deserialize, Serialize};

use crate::error::{InputError, Source};
use crate::number::float;
use crate::units;

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
}

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say all")]
pub enum ResourceKind {
    Html,
    Css,
    Js,
    Image,
    Font,
}

impl ResourceKind {
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
        let written: written::Page = toml::from_str(source.text).map_err(|e| source.toml_error(&e))?;
        written.resolve(name, source)
    }
}

/// The file as written.
mod written {
    use super::{InputError, PROLOGUE_BYTES, REFERENCE_BYTES, Resource, ResourceKind, Source};
    use crate::units;
    use serde::Deserialize;
    use toml::Spanned;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Page {
        title: String,
        resource: Vec<Spanned<Written>>,
    }

    /// One resource, or `sizes.len()` of them numbered from 1 by `{n}` in the path.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        path: Spanned<String>,
        kind: ResourceKind,
        sizes: Spanned<Vec<Spanned<String>>>,
        named_by: Option<Spanned<String>>,
    }

    impl Page {
        pub(super) fn resolve(self, name: &str, source: Source<'_>) -> Result<super::Page, InputError> {
            let mut resources: Vec<Resource> = Vec::new();
            for entry in self.resource {
                add(&mut resources, entry.into_inner(), source)?;
            }
            if resources.is_empty() {
                return Err(source.error(0..0, "found no `[[resource]]`, expected at least the document"));
            }
            Ok(super::Page { name: name.to_owned(), title: self.title, resources })
        }
    }

    fn add(resources: &mut Vec<Resource>, entry: Written, source: Source<'_>) -> Result<(), InputError> {
        let named_by = find_parent(resources, &entry, source)?;
        let sizes = entry.sizes.get_ref();
        let numbered = entry.path.get_ref().contains("{n}");
        if sizes.is_empty() || (sizes.len() > 1 && !numbered) {
            let problem = "expected one size, or several and `{n}` in the path";
            return Err(source.error(entry.sizes.span(), format!("found {} sizes, {problem}", sizes.len())));
        }
        for (index, size) in sizes.iter().enumerate() {
            let bytes = units::parse_size_bytes(size.get_ref()).map_err(|p| source.error(size.span(), p))?;
            let path = entry.path.get_ref().replace("{n}", &(index + 1).to_string());
            if resources.iter().any(|resource| resource.path == path) {
                return Err(
                    source.error(entry.path.span(), format!("found `{path}` twice, expected it once"))
                );
            }
            let named_at_bytes = match named_by {
                None => 0,
                Some(parent) => {
                    let end = next_reference_end(resources, parent);
                    if end > resources[parent].bytes {
                        let problem = format!(
                            "found `{}` with {} bytes, expected at least {end} to name `{path}`",
                            resources[parent].path, resources[parent].bytes
                        );
                        return Err(source.error(entry.path.span(), problem));
                    }
                    end
                }
            };
            resources.push(Resource { path, kind: entry.kind, bytes, named_by, named_at_bytes });
        }
        Ok(())
    }

    fn find_parent(
        resources: &[Resource],
        entry: &Written,
        source: Source<'_>,
    ) -> Result<Option<usize>, InputError> {
        let path = entry.path.get_ref();
        if !path.starts_with('/') || path.contains("..") {
            return Err(source.error(entry.path.span(), format!("found `{path}`, expected a path from `/`")));
        }
        match (&entry.named_by, resources.is_empty()) {
            (None, true) => Ok(None),
            (Some(parent), true) => Err(source
                .error(parent.span(), "found `named_by` in the first resource, expected the document first")),
            (None, false) => Err(source.error(
                entry.path.span(),
                format!("found `{path}` without `named_by`, expected the path of the resource that names it"),
            )),
            (Some(parent), false) => {
                let is_parent = |resource: &Resource| {
                    resource.path == *parent.get_ref()
                        && matches!(resource.kind, ResourceKind::Html | ResourceKind::Css)
                };
                resources.iter().position(is_parent).map(Some).ok_or_else(|| {
                    let problem = format!(
                        "found `{}`, expected the path of a document or style sheet written above",
                        parent.get_ref()
                    );
                    source.error(parent.span(), problem)
                })
            }
        }
    }

    fn next_reference_end(resources: &[Resource], parent: usize) -> u64 {
        let siblings = resources.iter().filter(|resource| resource.named_by == Some(parent)).count();
        PROLOGUE_BYTES + REFERENCE_BYTES * (siblings as u64 + 1)
    }
}

/// One line such as `55 resources, 1.6 MB`, for tables and reports.
pub fn describe(page: &Page) -> String {
    format!("{} resources, {}", page.resources.len(), units::format_bytes(float(page.total_bytes())))
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
    fn faults_name_the_place() {
        let child = |lines: &str| parse(&format!("{HEAD}[[resource]]\n{lines}\n")).unwrap_err();
        assert!(child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']").contains("without `named_by`"),);
        let orphan = child("path = '/a.js'\nkind = 'js'\nsizes = ['1kB']\nnamed_by = '/b.css'");
        assert!(orphan.starts_with("p.toml:10:12: found `/b.css`"), "{orphan}");
        let sizes = "['1B','1B','1B','1B','1B','1B','1B','1B']";
        let crowd = child(&format!("path = '/{{n}}.js'\nkind = 'js'\nnamed_by = '/p/'\nsizes = {sizes}"));
        assert!(crowd.contains("expected at least 1024 to name `/6.js`"), "{crowd}");
    }
}
