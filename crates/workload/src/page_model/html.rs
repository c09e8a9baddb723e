//! References in HTML, by a tokenizer that follows the standard.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use model::page::ResourceKind;

use super::{MOST_RESOURCES, Reference, css};

/// The base of the references, if the document sets one, and the references in the order of the text: what
/// browsers load at once. Scripts are not run, and images that are loaded later (`loading="lazy"`) are left
/// out.
pub fn references(text: &str) -> (Option<String>, Vec<Reference>) {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    let (mut base, mut found) = (None, Vec::new());
    let (mut is_style, mut is_ignored) = (false, false);
    for token in Tokenizer::new_with_emitter(text, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = lossy(&tag.name);
                is_style = name == "style";
                is_ignored |= name == "noscript" || name == "template";
                if name == "base" && base.is_none() {
                    base = attribute(&tag, "href");
                }
                if !is_ignored {
                    add(&mut found, &tag, &name);
                }
            }
            Token::EndTag(tag) => {
                is_style = false;
                is_ignored &= !matches!(tag.name.as_slice(), b"noscript" | b"template");
            }
            Token::String(text) if is_style => {
                let start = text.span.start;
                let of_style = css::references(&lossy(&text.value)).into_iter();
                found.extend(of_style.map(|own| Reference { end: start + own.end, ..own }));
            }
            _ => {}
        }
        if found.len() >= MOST_RESOURCES {
            found.truncate(MOST_RESOURCES);
            break;
        }
    }
    (base, found)
}

fn add(found: &mut Vec<Reference>, tag: &StartTag<usize>, name: &str) {
    let mut push = |text: Option<String>, kind| {
        let text = text.filter(|text| !text.trim().is_empty());
        found.extend(text.map(|text| Reference { text, kind, end: tag.span.end }));
    };
    let is = |key: &str, value: &str| {
        attribute(tag, key).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    };
    match name {
        "link" => {
            let kind =
                attribute(tag, "rel").and_then(|rel| kind_of_link(&rel, attribute(tag, "as").as_deref()));
            if let Some(kind) = kind.filter(|_| !is("media", "print")) {
                push(attribute(tag, "href"), kind);
            }
        }
        "script" => push(attribute(tag, "src"), ResourceKind::Js),
        "img" if !is("loading", "lazy") => {
            let first = |set: String| set.split([' ', ',']).find(|part| !part.is_empty()).map(str::to_owned);
            let source = attribute(tag, "src").or_else(|| attribute(tag, "srcset").and_then(first));
            push(source, ResourceKind::Image);
        }
        "iframe" if !is("loading", "lazy") => push(attribute(tag, "src"), ResourceKind::Html),
        "input" if is("type", "image") => push(attribute(tag, "src"), ResourceKind::Image),
        "video" => push(attribute(tag, "poster"), ResourceKind::Image),
        _ => {}
    }
    if let Some(style) = attribute(tag, "style") {
        css::references(&style).into_iter().for_each(|own| push(Some(own.text), own.kind));
    }
}

/// The kind of a link that browsers load.
fn kind_of_link(rel: &str, destination: Option<&str>) -> Option<ResourceKind> {
    let has = |word: &str| rel.split_whitespace().any(|own| own.eq_ignore_ascii_case(word));
    if has("alternate") {
        None
    } else if has("stylesheet") {
        Some(ResourceKind::Css)
    } else if has("icon") {
        Some(ResourceKind::Image)
    } else if has("modulepreload") {
        Some(ResourceKind::Js)
    } else if has("preload") {
        Some(match destination {
            Some("style") => ResourceKind::Css,
            Some("font") => ResourceKind::Font,
            Some("image") => ResourceKind::Image,
            _ => ResourceKind::Js,
        })
    } else {
        None
    }
}

fn attribute(tag: &StartTag<usize>, name: &str) -> Option<String> {
    tag.attributes.get(name.as_bytes()).map(|value| lossy(&value.value))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_loads_is_found() {
        let text = "<!doctype html><base href='/b/'><LINK rel='Stylesheet' href=a.css><link rel=canonical href=no>\
                    <link rel=preload as=font href=f.woff2><script src='a.js?x=1&amp;y=2'></script>\
                    <script>var s = \"<img src='no.png'>\";</script><style>@import 'c.css'; p{background:url(d.png)}</style>\
                    <!-- <img src=no.png> --><img src=e.png><img loading=lazy src=no.png><img srcset='g.png 1x, no.png 2x'>\
                    <noscript><img src=no.png></noscript><div style=\"background:url('h.png')\"></div><iframe src=i.html></iframe>";
        let (base, found) = references(text);
        assert_eq!(base.as_deref(), Some("/b/"));
        let names: Vec<&str> = found.iter().map(|reference| reference.text.as_str()).collect();
        let expected =
            ["a.css", "f.woff2", "a.js?x=1&y=2", "c.css", "d.png", "e.png", "g.png", "h.png", "i.html"];
        assert_eq!(names, expected);
        assert!(found.is_sorted_by_key(|reference| reference.end) && found[8].end <= text.len());
    }

    #[test]
    fn any_text_ends() {
        let text = "<img src='ü' <style>a{b:url(<script>x</p style=url( \0\u{fffd}<!--";
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            references(&text[..cut]);
        }
        assert_eq!(references(&"<img src=a>".repeat(10_000)).1.len(), MOST_RESOURCES);
        assert_eq!(references(&"<div>".repeat(100_000)).1, []);
    }
}
