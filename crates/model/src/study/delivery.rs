//! The keys of `[workload.NAME]` that say how servers deliver a page.

use crate::delivery::Delivery;
use crate::error::InputError;
use crate::keys;
use crate::page::Page;
use crate::reader::{Key, Placed, PlacedStrings, Table};

pub(super) const KEYS: &[Key] = keys! {
    "page", "text", "required", r#""small""#, "The name of a page.";
    "push", "list of paths", "none", r#"["/small/app.css"]"#,
        "The resources of the page that the server pushes with the document; clients accept push then. HTTP/2 only.";
    "early_hints", "list of paths", "none", r#"["/small/app.css"]"#,
        "The resources that the server names in a 103 response before the document's (RFC 8297). Excludes `push`.";
    "document_delay", "duration", "`\"0s\"`", r#""100ms""#,
        "How long the server takes to make the document, up to 60 s. Promises and hints do not wait.";
};

/// The longest delay of a document, which a server has to hold open.
const LONGEST_DELAY_NS: u64 = 60_000_000_000;

/// The keys as written; paths are those of a page.
#[derive(Clone, Debug)]
pub(super) struct DeliveryKeys {
    push: Option<PlacedStrings>,
    early_hints: Option<PlacedStrings>,
    document_delay_ns: u64,
}

pub(super) fn read(table: &Table<'_>) -> Result<DeliveryKeys, InputError> {
    let keys = DeliveryKeys {
        push: table.some_strings("push")?,
        early_hints: table.some_strings("early_hints")?,
        document_delay_ns: match table.parsed("document_delay", crate::units::parse_duration_ns)? {
            Some(delay) if delay.value > LONGEST_DELAY_NS => {
                return Err(delay.error("`document_delay` exceeds 60 s; write at most `60s`"));
            }
            delay => delay.map_or(0, |delay| delay.value),
        },
    };
    match (&keys.push, &keys.early_hints) {
        (Some(_), Some(hints)) => {
            Err(hints.error("`early_hints` excludes `push`; remove one of them, or write two workloads"))
        }
        _ => Ok(keys),
    }
}

impl DeliveryKeys {
    /// The delivery of a page.
    pub(super) fn resolve(&self, page: &Page) -> Result<Delivery, InputError> {
        Ok(Delivery {
            push: indices("push", self.push.as_ref(), page)?,
            early_hints: indices("early_hints", self.early_hints.as_ref(), page)?,
            document_delay_ns: self.document_delay_ns,
        })
    }
}

/// The resources with these paths, each once and without the document.
fn indices(key: &str, paths: Option<&PlacedStrings>, page: &Page) -> Result<Vec<usize>, InputError> {
    let mut indices = Vec::new();
    for path in paths.iter().flat_map(|paths| &paths.value) {
        let index = find(path, page).map_err(|problem| path.error(format!("`{key}`: {problem}")))?;
        if indices.contains(&index) {
            return Err(path.error(format!("`{key}`: `{}` appears twice; remove one", path.value)));
        }
        indices.push(index);
    }
    Ok(indices)
}

fn find(path: &Placed<String>, page: &Page) -> Result<usize, String> {
    match page.resources.iter().position(|resource| resource.path == path.value) {
        Some(0) => Err(format!("`{}` is the document, which is requested; remove it", path.value)),
        Some(index) => Ok(index),
        None => {
            let known: Vec<&str> = page.resources.iter().skip(1).map(|known| known.path.as_str()).collect();
            Err(crate::named::unknown(&path.value, &format!("a resource of page `{}`", page.name), &known))
        }
    }
}
