//! A real page as a page file: what a browser recorded (HAR), or what HTML and style sheets name.

mod css;
mod har;
mod html;
mod replay;

use std::fmt::Write as _;

use model::page::ResourceKind;
use model::url::Url;

pub use css::references as css_references;
pub use har::{HarPage, parse_har};
pub use html::references as html_references;
pub use replay::replay_file;

/// The most resources of a modelled page.
pub const MOST_RESOURCES: usize = 300;

/// A reference in a document or style sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// As written.
    pub text: String,
    /// What it is expected to be; the media type of the response decides.
    pub kind: ResourceKind,
    /// Where it ends, in bytes from the beginning.
    pub end: usize,
}

/// A resource of a modelled page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modelled {
    /// Where it is.
    pub url: Url,
    /// What it is.
    pub kind: ResourceKind,
    /// Body length in bytes, as it was sent.
    pub bytes: u64,
    /// The index of the resource that names it; `None` for the document alone.
    pub parent: Option<usize>,
    /// How much of the parent has arrived when it is requested.
    pub named_at_bytes: u64,
    /// How long its server took before it answered, in nanoseconds; 0 if that is unknown.
    pub wait_ns: u64,
}

/// The kind of a resource by its media type; others are treated as scripts, which have no further resources
/// of which a client would know.
pub fn kind_of(media_type: &str) -> ResourceKind {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => ResourceKind::Html,
        "text/css" => ResourceKind::Css,
        other if other.contains("font") => ResourceKind::Font,
        other if ["image/", "video/", "audio/"].iter().any(|kind| other.starts_with(kind)) => {
            ResourceKind::Image
        }
        _ => ResourceKind::Js,
    }
}

/// The page file with these resources, the document first; `notes` become comments.
pub fn page_file(title: &str, resources: &[Modelled], notes: &[String]) -> String {
    let mut text = String::new();
    for note in notes {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "# {}", one_line(note));
    }
    let _ = writeln!(text, "title = {}", toml_text(&one_line(title)));
    let Some(document) = resources.first() else { return text };
    let _ = writeln!(text, "origin = {}", toml_text(&document.url.origin()));
    for resource in resources {
        let _ = writeln!(text, "\n[[resource]]\npath = {}", toml_text(&resource.url.path));
        if !resource.url.has_origin_of(&document.url) {
            let _ = writeln!(text, "origin = {}", toml_text(&resource.url.origin()));
        }
        let _ = writeln!(text, "kind = \"{}\"\nsizes = [\"{}B\"]", resource.kind, resource.bytes);
        if let Some(parent) = resource.parent.and_then(|parent| resources.get(parent)) {
            let is_clear = resources.iter().filter(|other| other.url.path == parent.url.path).count() == 1;
            let named_by = if is_clear { parent.url.path.clone() } else { parent.url.to_string() };
            let _ = writeln!(
                text,
                "named_by = {}\nnamed_at = \"{}B\"",
                toml_text(&named_by),
                resource.named_at_bytes
            );
        }
    }
    text
}

/// A basic string of TOML.
pub fn toml_text(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// At most 200 characters, without control characters.
fn one_line(text: &str) -> String {
    const CHARACTERS: usize = 200;
    let words: Vec<&str> =
        text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use model::Page;
    use model::error::Source;

    use super::*;

    #[test]
    fn a_written_page_is_read_as_it_was() {
        let modelled = |url: &str, kind, bytes, parent, named_at_bytes| Modelled {
            url: Url::parse(url).unwrap(),
            kind,
            bytes,
            parent,
            named_at_bytes,
            wait_ns: 0,
        };
        let resources = [
            modelled("https://a.test/x?q=\"1\"", ResourceKind::Html, 5_000, None, 0),
            modelled("https://a.test/b", ResourceKind::Js, 0, Some(0), 100),
            modelled("https://cdn.test/b", ResourceKind::Css, 70, Some(0), 4_000),
            modelled("https://cdn.test/c", ResourceKind::Font, 7, Some(2), 70),
        ];
        let text = page_file("A \"page\"\n\u{1b}[2J", &resources, &["two\nlines".to_owned()]);
        assert!(text.starts_with("# two lines\ntitle = \"A \\\"page\\\" [2J\"\n"), "{text}");
        let page =
            Page::parse("p", Source { file: "p", text: &text }).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (read, written) in page.resources.iter().zip(&resources) {
            assert_eq!((&read.path, read.kind, read.bytes), (&written.url.path, written.kind, written.bytes));
            assert_eq!((read.named_by, read.named_at_bytes), (written.parent, written.named_at_bytes));
        }
        assert_eq!(page.origins.len(), 2);
    }

    #[test]
    fn media_types_have_kinds() {
        use ResourceKind::{Css, Font, Html, Image, Js};
        for (media_type, kind) in [
            ("text/html; charset=utf-8", Html),
            ("TEXT/CSS", Css),
            ("application/font-woff2", Font),
            ("font/woff2", Font),
            ("video/mp4", Image),
            ("application/json", Js),
            ("", Js),
        ] {
            assert_eq!(kind_of(media_type), kind, "{media_type}");
        }
    }
}
