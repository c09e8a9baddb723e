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
        Some(index) if page.resources.get(index).is_some_and(|named| named.origin > 0) => {
            Err(format!("`{}` is on another host than the document; remove it", path.value))
        }
        Some(index) => Ok(index),
        None => {
            let known: Vec<&str> = page.resources.iter().skip(1).map(|known| known.path.as_str()).collect();
            Err(crate::named::unknown(&path.value, &format!("a resource of page `{}`", page.name), &known))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::delivery::{Delivery, DeliveryMeans};
    use crate::pins::Reconnect;
    use crate::study::tests::{SHORT, parse};
    use crate::variant::Variant;

    /// The short study, whose page is delivered so.
    fn delivered(keys: &str) -> Result<Delivery, String> {
        let plan = parse(&SHORT.replace("page = \"small\"", &format!("page = \"small\"\n{keys}")))?;
        assert!(plan.pages().iter().all(|page| page.delivery.is_plain()), "files are the same for all");
        Ok(plan.workloads[0].workload.page().unwrap().delivery.clone())
    }

    #[test]
    fn resources_are_known_by_their_paths() {
        let pushed = delivered("push = [\"/small/image.png\", \"/small/style.css\"]").unwrap();
        assert_eq!(pushed, Delivery { push: vec![2, 1], ..Delivery::default() });
        assert_eq!(pushed.describe(), ", pushes 2 resources");
        let hinted = delivered("early_hints = [\"/small/style.css\"]\ndocument_delay = \"50ms\"").unwrap();
        assert_eq!((hinted.early_hints.as_slice(), hinted.document_delay_ns), (&[1][..], 50_000_000));
        assert_eq!(hinted.describe(), ", hints at 1 resource, document after 50 ms");
        let means: Vec<DeliveryMeans> = hinted.means().collect();
        assert_eq!(means, [DeliveryMeans::EarlyHints, DeliveryMeans::DocumentDelay]);
        assert!(delivered("").unwrap().is_plain());
    }

    #[test]
    fn faults_name_the_place() {
        let fault = |keys| delivered(keys).unwrap_err();
        let unknown = fault("push = [\"/small/style.cs\"]");
        assert!(
            unknown.starts_with("s.toml:14:9: `push`: `/small/style.cs` is not a resource of page"),
            "{unknown}"
        );
        assert!(unknown.contains("/small/style.css"), "{unknown}");
        assert!(fault("push = [\"/small/\"]").contains("is the document, which is requested"));
        assert!(fault("push = [\"/small/style.css\", \"/small/style.css\"]").contains("appears twice"));
        assert!(fault("push = []").contains("is an empty list"));
        let both = "push = [\"/small/style.css\"]\nearly_hints = [\"/small/style.css\"]";
        assert!(fault(both).contains("`early_hints` excludes `push`"), "{}", fault(both));
        assert!(fault("document_delay = \"61s\"").contains("write at most `60s`"));
    }

    #[test]
    fn a_study_that_pushes_cannot_refuse_it() {
        let push = "page = \"small\"\npush = [\"/small/style.css\"]";
        let text = |hold: &str| SHORT.replace("page = \"small\"", push).replace("mtu = \"1500B\"", hold);
        let refused = parse(&text("http2 = { push = false }")).unwrap_err();
        assert!(refused.contains("`push` is false, but the workload `small` pushes"), "{refused}");
        parse(&text("http2 = { push = true }")).unwrap();
    }

    #[test]
    fn no_server_pushes_over_other_versions() {
        let refuses = |variant| DeliveryMeans::Push.refuses(variant);
        assert!(refuses(Variant::H1).unwrap().contains("HTTP/1 has no server push"));
        assert!(refuses(Variant::H3).unwrap().contains("servers do not implement it"));
        assert_eq!((refuses(Variant::H2c), DeliveryMeans::EarlyHints.refuses(Variant::H1)), (None, None));
    }

    #[test]
    fn clients_reconnect_as_the_study_says() {
        let pins = |value| {
            let text = SHORT.replace("mtu = \"1500B\"", &format!("reconnect = \"{value}\""));
            parse(&text).map(|plan| plan.pins.reconnect)
        };
        assert_eq!(pins("never"), Ok(Reconnect::Never));
        assert_eq!(pins("at-once"), Ok(Reconnect::AtOnce));
        assert_eq!(pins("5s"), Ok(Reconnect::SilentNs(5_000_000_000)));
        assert!(pins("0s").unwrap_err().contains("is not a time to reconnect"));
    }
}
