//! The content of a page's resources: real documents, style sheets, scripts and images of exactly the sizes
//! in the page's description, the same bytes every time.
//!
//! Each reference has a slot ([`PROLOGUE_BYTES`], then [`REFERENCE_BYTES`] each). So a client knows the
//! reference exactly when `named_at_bytes` of the parent have arrived, and never before. A script requests
//! what it names when it runs, after its last byte: it adds elements to its document.

use std::fmt::Write as _;

use model::Page;
use model::page::{PROLOGUE_BYTES, REFERENCE_BYTES, ResourceKind, least_bytes};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Period of [`pattern_block`] in bytes, far beyond the window of gzip and the default one of brotli.
pub const PATTERN_PERIOD_BYTES: usize = 1 << 20;
/// Bytes in each chunk of [`pattern_body`] except the last.
pub const PATTERN_CHUNK_BYTES: usize = 1 << 16;

const PATTERN_SEED: u64 = 0x6831_3233_0000_0001;
const PNG_SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
/// A PNG without pixels: signature, IHDR, one IDAT with one empty stored block, IEND.
const PNG_FRAME_BYTES: usize = 8 + 25 + 12 + 2 + 5 + 4 + 12;
/// Room for an element that uses what a style sheet names.
pub(crate) const STYLED_BYTES: usize = 64;
const DOCUMENT_END: &str = "</body></html>\n";
/// The end of a document that is long enough for it.
pub(crate) const DOCUMENT_END_BYTES: usize = DOCUMENT_END.len();
const CHUNK_FRAME_BYTES: usize = 12;
const STORED_BLOCK_BYTES: usize = 65_535;
/// Defines `r`, which adds an element to the document, and what style sheets and fonts need in addition.
const SCRIPT_PROLOGUE: &str = "\"use strict\";(()=>{const c={rel:\"stylesheet\"},f={rel:\"preload\",as:\"font\",crossOrigin:\"\"},\
r=(t,u,o)=>document.body.append(Object.assign(document.createElement(t),{src:u,href:u},o));";
const SCRIPT_END: &str = "})();\n";
/// More pixels would only measure the client's decoder.
const MOST_PIXEL_BYTES: usize = 1 << 18;

/// A page cannot have real content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The reference to a resource does not fit its slot.
    #[error(
        "the reference to `{path}` has {found} bytes; shorten the path, so that it has at most {REFERENCE_BYTES}"
    )]
    ReferenceTooLong {
        /// The path.
        path: String,
        /// The length of the shortest reference, in bytes.
        found: usize,
    },
    /// The parent ends before its last reference.
    #[error(
        "`{parent}` has {found} bytes, too few to name `{path}`; enlarge it to at least {expected} bytes"
    )]
    ParentTooShort {
        /// The path of the resource with the reference.
        parent: String,
        /// The path of the referenced resource.
        path: String,
        /// The parent's length, in bytes.
        found: u64,
        /// The end of the reference, in bytes.
        expected: u64,
    },
}

/// Checks that every reference of a page fits its slot.
///
/// # Errors
/// The first resource whose reference does not fit.
pub fn check(page: &Page) -> Result<(), ContentError> {
    let mut named = vec![0; page.resources.len()];
    for (index, child) in page.resources.iter().enumerate() {
        let Some((number, parent)) =
            child.named_by.and_then(|number| Some((number, page.resources.get(number)?)))
        else {
            continue;
        };
        let (head, tail) = reference(page, number, index);
        let found = head.len() + tail.len();
        if found as u64 > REFERENCE_BYTES {
            return Err(ContentError::ReferenceTooLong { path: child.path.clone(), found });
        }
        named[number] += 1;
        let expected = child.named_at_bytes.max(least_bytes(parent.kind, named[number]));
        if expected > parent.bytes {
            return Err(ContentError::ParentTooShort {
                parent: parent.path.clone(),
                path: child.path.clone(),
                found: parent.bytes,
                expected,
            });
        }
    }
    Ok(())
}

/// The body of one resource, exactly `resources[index].bytes` long; empty for an index outside the page.
pub fn page_body(page: &Page, index: usize) -> Vec<u8> {
    let Some(resource) = page.resources.get(index) else { return Vec::new() };
    let length = usize::try_from(resource.bytes).unwrap_or(usize::MAX);
    let mut noise = Pcg64Mcg::seed_from_u64(seed(&resource.path));
    match resource.kind {
        ResourceKind::Html => document(page, index, length, &mut noise),
        ResourceKind::Css => style_sheet(page, index, length, &mut noise),
        ResourceKind::Js => script(page, index, length, &mut noise),
        ResourceKind::Image => image(length, &mut noise),
        ResourceKind::Font => font(length, &mut noise),
    }
}

/// Path below a folder, media type and body of every resource; a path that ends in `/` becomes `index.html`.
pub fn files(page: &Page) -> impl Iterator<Item = (String, &'static str, Vec<u8>)> + '_ {
    page.resources.iter().enumerate().map(|(index, resource)| {
        let mut path = resource.path.trim_start_matches('/').to_owned();
        if resource.path.ends_with('/') {
            path.push_str("index.html");
        }
        (path, resource.kind.media_type(), page_body(page, index))
    })
}

/// One period of the incompressible pattern that `/bytes/N` repeats.
pub fn pattern_block() -> Vec<u8> {
    let mut block = vec![0; PATTERN_PERIOD_BYTES];
    Pcg64Mcg::seed_from_u64(PATTERN_SEED).fill_bytes(&mut block);
    block
}

/// `n` bytes of the pattern from `offset`, in chunks, so that `n` may exceed memory.
pub fn pattern_body(n: u64, offset: u64) -> impl Iterator<Item = Vec<u8>> {
    let block = pattern_block();
    let mut sent = 0_u64;
    std::iter::from_fn(move || {
        let length = usize::try_from(n - sent).unwrap_or(usize::MAX).min(PATTERN_CHUNK_BYTES);
        if length == 0 {
            return None;
        }
        let from = usize::try_from((offset + sent) % PATTERN_PERIOD_BYTES as u64).unwrap_or(0);
        let to_end = length.min(PATTERN_PERIOD_BYTES - from);
        let mut chunk = block[from..from + to_end].to_vec();
        chunk.extend_from_slice(&block[..length - to_end]);
        sent += length as u64;
        Some(chunk)
    })
}

/// Width and height in pixels of an image with a body of this length; 1 × 1 where the body is too short for
/// an image.
pub fn image_size(length: usize) -> (usize, usize) {
    // One byte of filter type precedes each row of grey pixels, which have one byte each.
    if length < PNG_FRAME_BYTES + 2 {
        return (1, 1);
    }
    if length < PNG_FRAME_BYTES + 400 {
        return (length - PNG_FRAME_BYTES - 1, 1);
    }
    let width = if length < 8_192 { 32 } else { 256 };
    let most = (length - PNG_FRAME_BYTES - CHUNK_FRAME_BYTES).min(MOST_PIXEL_BYTES);
    let blocks = most.div_ceil(STORED_BLOCK_BYTES);
    (width, (most - 5 * (blocks - 1)) / (width + 1))
}

fn document(page: &Page, index: usize, length: usize, noise: &mut Pcg64Mcg) -> Vec<u8> {
    const END: &str = DOCUMENT_END;
    let title: String = page.title.chars().take(30).collect();
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>",
        escape_markup(&title)
    );
    pad(&mut text, prologue_bytes());
    // HTML allows omitting the end of the head and the start of the body: style sheets and scripts are in the
    // head, the first image begins the body.
    push_references(&mut text, page, index);
    text.push('\n');
    // A browser fetches what a style sheet references only when an element uses it.
    for number in used_of_styles(page, index) {
        if text.len() + STYLED_BYTES + END.len() <= length {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "<i class=\"r{number}\" style=\"font-family:f{number}\">{number}</i>");
        }
    }
    while text.len() + 400 + END.len() <= length {
        text.push_str("<p>");
        push_sentence(&mut text, 40, noise);
        text.push_str("</p>\n");
    }
    if text.len() + END.len() <= length {
        pad(&mut text, length - END.len());
        text.push_str(END);
    }
    exact(text, length)
}

fn style_sheet(page: &Page, index: usize, length: usize, noise: &mut Pcg64Mcg) -> Vec<u8> {
    let mut text = String::from("@charset \"utf-8\";");
    pad(&mut text, prologue_bytes());
    push_references(&mut text, page, index);
    while text.len() + 80 <= length {
        let random = noise.next_u64();
        let _ = writeln!(
            text,
            ".c{:x} .c{:x}{{margin:{}px {}px;color:#{:06x}}}",
            random & 0xfff,
            random >> 52,
            random >> 12 & 0x1f,
            random >> 17 & 0x1f,
            random >> 22 & 0x00ff_ffff,
        );
    }
    exact(text, length)
}

fn script(page: &Page, index: usize, length: usize, noise: &mut Pcg64Mcg) -> Vec<u8> {
    const END: &str = SCRIPT_END;
    let mut text = String::from("\"use strict\";(()=>{\n");
    if text.len() + END.len() > length {
        return vec![b';'; length];
    }
    if page.children(index).next().is_some() {
        SCRIPT_PROLOGUE.clone_into(&mut text);
        pad(&mut text, prologue_bytes());
        push_references(&mut text, page, index);
        text.push('\n');
    }
    let mut number = 0_u32;
    while text.len() + 80 + END.len() <= length {
        let random = noise.next_u64();
        let _ = writeln!(
            text,
            "function f{number}(a,b){{return (a*{}+b*{})%{}}}",
            random & 0xffff,
            random >> 16 & 0xffff,
            (random >> 32 & 0xffff) + 1,
        );
        number += 1;
    }
    pad(&mut text, length - END.len());
    text.push_str(END);
    exact(text, length)
}

fn font(length: usize, noise: &mut Pcg64Mcg) -> Vec<u8> {
    let mut body = vec![0; length];
    noise.fill_bytes(&mut body);
    for (byte, known) in body.iter_mut().zip(b"wOF2\0\x01\0\0") {
        *byte = *known;
    }
    body
}

/// A grey PNG of noise. A private ancillary chunk fills the rest (PNG, section 4.7.2, for its name).
fn image(length: usize, noise: &mut Pcg64Mcg) -> Vec<u8> {
    if length < PNG_FRAME_BYTES + 2 {
        return PNG_SIGNATURE.iter().copied().chain(std::iter::repeat(0)).take(length).collect();
    }
    let (width, height) = image_size(length);
    let mut rows = vec![0; height * (width + 1)];
    for row in rows.chunks_mut(width + 1) {
        noise.fill_bytes(&mut row[1..]);
    }
    let mut png = Vec::with_capacity(length);
    png.extend_from_slice(&PNG_SIGNATURE);
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&u32::try_from(width).unwrap_or(1).to_be_bytes());
    header.extend_from_slice(&u32::try_from(height).unwrap_or(1).to_be_bytes());
    header.extend_from_slice(&[8, 0, 0, 0, 0]);
    push_chunk(&mut png, *b"IHDR", &header);
    push_chunk(&mut png, *b"IDAT", &zlib_stored(&rows));
    let mut missing = length.saturating_sub(png.len() + CHUNK_FRAME_BYTES);
    while missing >= CHUNK_FRAME_BYTES {
        // Chunks stay below PNG's limit of 2^31 - 1, and leave no rest that is too short for the next one.
        let take = if missing > 1 << 30 { 1 << 29 } else { missing };
        let mut fill = vec![0; take - CHUNK_FRAME_BYTES];
        noise.fill_bytes(&mut fill);
        push_chunk(&mut png, *b"fiLl", &fill);
        missing -= take;
    }
    push_chunk(&mut png, *b"IEND", &[]);
    png
}

/// A zlib stream (RFC 1950) of stored blocks (RFC 1951, section 3.2.4).
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = data.chunks(STORED_BLOCK_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    stream.extend_from_slice(&adler2::adler32_slice(data).to_be_bytes());
    stream
}

fn push_chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let begin = png.len();
    png.extend_from_slice(&kind);
    png.extend_from_slice(data);
    let sum = crc32fast::hash(&png[begin..]);
    png.extend_from_slice(&sum.to_be_bytes());
}

fn push_references(text: &mut String, page: &Page, parent: usize) {
    for index in page.children(parent) {
        let (head, tail) = reference(page, parent, index);
        let slot = slot_bytes();
        let padding = slot.saturating_sub(head.len() + tail.len());
        if head.len() + tail.len() <= slot {
            text.push_str(&head);
        } else {
            // `check` refuses such a page; here the other slots keep their places.
            pad(text, text.len() + slot);
            continue;
        }
        pad(text, text.len() + padding);
        text.push_str(tail);
    }
}

/// A reference in two parts; spaces between them lengthen it without a change of meaning.
fn reference(page: &Page, parent: usize, index: usize) -> (String, &'static str) {
    let child = &page.resources[index];
    let url = url(page, parent, index);
    let size = || image_size(usize::try_from(child.bytes).unwrap_or(usize::MAX));
    match page.resources[parent].kind {
        ResourceKind::Css => {
            let url = escape_text(&url);
            match child.kind {
                ResourceKind::Css => (format!("@import url(\"{url}\""), ");"),
                ResourceKind::Font => (format!("@font-face{{font-family:f{index};src:url(\"{url}\""), ")}"),
                ResourceKind::Image => (format!(".r{index}{{background:url(\"{url}\""), ")}"),
                ResourceKind::Html | ResourceKind::Js => (format!("/*\"{url}\""), "*/"),
            }
        }
        ResourceKind::Js => {
            let url = escape_text(&url);
            match child.kind {
                ResourceKind::Css => (format!("r(\"link\",\"{url}\",c"), ");"),
                ResourceKind::Font => (format!("r(\"link\",\"{url}\",f"), ");"),
                ResourceKind::Js => (format!("r(\"script\",\"{url}\""), ");"),
                ResourceKind::Html => (format!("r(\"iframe\",\"{url}\""), ");"),
                ResourceKind::Image => {
                    let (width, height) = size();
                    (format!("r(\"img\",\"{url}\",{{width:{width},height:{height}}}"), ");")
                }
            }
        }
        ResourceKind::Html | ResourceKind::Image | ResourceKind::Font => {
            let url = escape_markup(&url);
            match child.kind {
                ResourceKind::Css => (format!("<link rel=\"stylesheet\" href=\"{url}\""), ">"),
                ResourceKind::Js => (format!("<script src=\"{url}\" defer"), "></script>"),
                ResourceKind::Image => {
                    let (width, height) = size();
                    (format!("<img src=\"{url}\" width=\"{width}\" height=\"{height}\""), ">")
                }
                ResourceKind::Font => {
                    (format!("<link rel=\"preload\" as=\"font\" crossorigin href=\"{url}\""), ">")
                }
                ResourceKind::Html => (format!("<iframe src=\"{url}\""), "></iframe>"),
            }
        }
    }
}

/// A reference's URL: without a scheme and a port, which depend on the variant, and without the host that its
/// base has already.
fn url(page: &Page, parent: usize, index: usize) -> String {
    // A script's base is its document.
    let base = match page.resources[parent].kind {
        ResourceKind::Js => document_of(page, parent),
        _ => parent,
    };
    let child = &page.resources[index];
    match page.hosts.get(usize::from(child.origin)) {
        Some(host) if child.origin != page.resources[base].origin => format!("//{host}{}", child.path),
        _ => child.path.clone(),
    }
}

/// The document that a resource is part of: itself, or the nearest one above.
fn document_of(page: &Page, mut index: usize) -> usize {
    while page.resources[index].kind != ResourceKind::Html
        && let Some(parent) = page.resources[index].named_by.filter(|parent| *parent < index)
    {
        index = parent;
    }
    index
}

/// The resources that style sheets of a document name, which its elements use.
fn used_of_styles(page: &Page, document: usize) -> impl Iterator<Item = usize> + '_ {
    page.resources.iter().enumerate().filter_map(move |(number, resource)| {
        let style = resource.named_by.filter(|parent| page.resources[*parent].kind == ResourceKind::Css)?;
        (document_of(page, style) == document).then_some(number)
    })
}

/// Escapes a URL for a string of CSS or JavaScript.
fn escape_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

fn push_sentence(text: &mut String, words: usize, noise: &mut Pcg64Mcg) {
    const WORDS: [&str; 16] = [
        "packet", "window", "stream", "frame", "server", "round", "trip", "latency", "header", "client",
        "queue", "loss", "cipher", "socket", "request", "answer",
    ];
    for _ in 0..words {
        text.push_str(WORDS[(noise.next_u64() >> 60) as usize]);
        text.push(' ');
    }
}

fn pad(text: &mut String, length: usize) {
    let missing = length.saturating_sub(text.len());
    text.extend(std::iter::repeat_n(' ', missing));
}

fn exact(text: String, length: usize) -> Vec<u8> {
    let mut body = text.into_bytes();
    body.resize(length, b' ');
    body
}

#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const fn prologue_bytes() -> usize {
    PROLOGUE_BYTES as usize
}

#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const fn slot_bytes() -> usize {
    REFERENCE_BYTES as usize
}

/// FNV-1a, so that each path has different content.
fn seed(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::page::Resource;
    use proptest::prelude::*;

    fn page() -> Page {
        let resource = |path: &str, kind, bytes, named_by: Option<usize>, slot: u64| Resource {
            path: path.into(),
            kind,
            bytes,
            named_by,
            named_at_bytes: named_by.map_or(0, |_| PROLOGUE_BYTES + REFERENCE_BYTES * slot),
            origin: 0,
            wait_ns: 0,
        };
        use ResourceKind::{Css, Font, Html, Image, Js};
        Page {
            delivery: Default::default(),
            name: "p".into(),
            title: "A \"page\" & <more>".into(),
            origins: Vec::new(),
            hosts: Vec::new(),
            resources: vec![
                resource("/p/", Html, 5_000, None, 0),
                resource("/p/a.css", Css, 2_000, Some(0), 1),
                resource("/p/a.js", Js, 1_234, Some(0), 2),
                resource("/p/a&b.png", Image, 90_000, Some(0), 3),
                resource("/p/f.woff2", Font, 3_000, Some(1), 1),
                resource("/p/b.png", Image, 700, Some(1), 2),
                resource("/p/tiny.js", Js, 5, Some(0), 4),
            ],
        }
    }

    #[test]
    fn bodies_are_exact_and_the_same_every_time() {
        let page = page();
        assert_eq!(check(&page), Ok(()));
        for (index, resource) in page.resources.iter().enumerate() {
            let body = page_body(&page, index);
            assert_eq!(body.len() as u64, resource.bytes, "{}", resource.path);
            assert_eq!(body, page_body(&page, index));
        }
        assert_ne!(page_body(&page, 3)[..600], page_body(&page, 5)[..600]);
        assert!(page_body(&page, 7).is_empty());
    }

    #[test]
    fn each_reference_is_complete_at_its_byte_and_not_before() {
        let page = page();
        let expected = ["", "stylesheet", "script", "a&amp;b.png", "@font-face", "background", "tiny.js"];
        for (index, resource) in page.resources.iter().enumerate().skip(1) {
            let parent = page_body(&page, resource.named_by.unwrap());
            let end = usize::try_from(resource.named_at_bytes).unwrap();
            let slot = std::str::from_utf8(&parent[end - slot_bytes()..end]).unwrap();
            assert!(slot.contains(expected[index]), "{slot}");
            assert!(slot.contains(&escape_markup(&resource.path)), "{slot}");
            assert!(slot.ends_with(['>', '}']), "{slot}");
            assert!(
                !parent[..end - slot_bytes()]
                    .windows(resource.path.len())
                    .any(|w| w == resource.path.as_bytes())
            );
        }
    }

    #[test]
    fn documents_and_scripts_begin_and_end_as_they_should() {
        let page = page();
        let html = String::from_utf8(page_body(&page, 0)).unwrap();
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</body></html>\n"));
        assert!(html.contains("<title>A &quot;page&quot; &amp; &lt;more></title>"));
        assert!(html.contains("class=\"r4\" style=\"font-family:f4\""));
        let js = String::from_utf8(page_body(&page, 2)).unwrap();
        assert!(js.starts_with("\"use strict\";(()=>{") && js.ends_with("})();\n"));
        assert_eq!(page_body(&page, 6), b";;;;;");
        let css = String::from_utf8(page_body(&page, 1)).unwrap();
        assert_eq!(css.matches('{').count(), css.matches('}').count());
    }

    /// A document, a script of another host that names one resource of each kind, and a style sheet there.
    fn replayed() -> Page {
        let mut page = page();
        page.hosts = vec!["www.test".into(), "cdn.test".into()];
        for (index, child) in page.resources.iter_mut().enumerate().skip(1) {
            child.origin = u16::from(index == 1 || index == 2 || index == 3);
        }
        let script_bytes = page.resources[2].bytes;
        for (number, kind) in ResourceKind::ALL.iter().enumerate() {
            page.resources.push(Resource {
                path: format!("/p/{number}.{}", kind.name()),
                kind: *kind,
                bytes: 2_000,
                named_by: Some(2),
                named_at_bytes: script_bytes,
                origin: 0,
                wait_ns: 0,
            });
        }
        page
    }

    #[test]
    fn a_script_requests_what_it_names_at_its_end() {
        let page = replayed();
        assert_eq!(check(&page), Ok(()));
        let body = String::from_utf8(page_body(&page, 2)).unwrap();
        assert_eq!(body.len() as u64, page.resources[2].bytes);
        assert!(body.starts_with(SCRIPT_PROLOGUE) && body.ends_with(SCRIPT_END), "{body}");
        let calls: Vec<String> = body[prologue_bytes()..]
            .split(");")
            .filter_map(|call| Some(call.split_once("r(")?.1.split_whitespace().collect::<String>()))
            .collect();
        let image = format!("{{width:{},height:{}}}", image_size(2_000).0, image_size(2_000).1);
        let expected = [
            r#""iframe","/p/0.html""#.to_owned(),
            r#""link","/p/1.css",c"#.to_owned(),
            r#""script","/p/2.js""#.to_owned(),
            format!(r#""img","/p/3.image",{image}"#),
            r#""link","/p/4.font",f"#.to_owned(),
        ];
        assert_eq!(calls, expected, "by the URLs of the document, whose host they have");
        let mut short = page;
        short.resources[2].bytes = least_bytes(ResourceKind::Js, 5) - 1;
        short.resources.iter_mut().skip(7).for_each(|child| child.named_at_bytes = 903);
        let fault = check(&short).unwrap_err().to_string();
        assert!(fault.contains("enlarge it to at least 904 bytes"), "{fault}");
    }

    #[test]
    fn references_name_other_hosts() {
        let page = replayed();
        let html = String::from_utf8(page_body(&page, 0)).unwrap();
        for expected in
            ["href=\"//cdn.test/p/a.css\"", "src=\"//cdn.test/p/a&amp;b.png\"", "src=\"/p/tiny.js\""]
        {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        let css = String::from_utf8(page_body(&page, 1)).unwrap();
        assert!(css.contains("url(\"//www.test/p/f.woff2\""), "{css}");
    }

    #[test]
    fn elements_use_what_the_style_sheets_of_their_document_name() {
        let mut page = replayed();
        // A style sheet that a script adds belongs to the document, that of a frame to the frame.
        for (parent, path) in [(8, "/p/by-script.png"), (0, "/p/frame.css")] {
            page.resources.push(Resource {
                path: path.into(),
                named_by: Some(parent),
                ..page.resources[5].clone()
            });
        }
        (page.resources[13].kind, page.resources[13].named_by) = (ResourceKind::Css, Some(7));
        page.resources.push(Resource {
            path: "/p/g.woff2".into(),
            named_by: Some(13),
            ..page.resources[4].clone()
        });
        assert_eq!(used_of_styles(&page, 0).collect::<Vec<_>>(), [4, 5, 12]);
        assert_eq!(used_of_styles(&page, 7).collect::<Vec<_>>(), [14]);
        let frame = String::from_utf8(page_body(&page, 7)).unwrap();
        assert!(frame.contains("class=\"r14\""), "{frame}");
    }

    /// The chunks of a PNG; panics where length or CRC is wrong.
    fn chunks(png: &[u8]) -> Vec<([u8; 4], &[u8])> {
        assert_eq!(png[..8], PNG_SIGNATURE);
        let mut rest = &png[8..];
        let mut found = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let kind: [u8; 4] = rest[4..8].try_into().unwrap();
            let sum = u32::from_be_bytes(rest[8 + length..12 + length].try_into().unwrap());
            assert_eq!(sum, crc32fast::hash(&rest[4..8 + length]));
            found.push((kind, &rest[8..8 + length]));
            rest = &rest[12 + length..];
        }
        found
    }

    fn inflate_stored(mut zlib: &[u8]) -> Vec<u8> {
        assert_eq!(u16::from_be_bytes([zlib[0], zlib[1]]) % 31, 0);
        zlib = &zlib[2..];
        let mut data = Vec::new();
        loop {
            let last = zlib[0] == 1;
            let length = u16::from_le_bytes([zlib[1], zlib[2]]);
            assert_eq!(!length, u16::from_le_bytes([zlib[3], zlib[4]]));
            data.extend_from_slice(&zlib[5..5 + usize::from(length)]);
            zlib = &zlib[5 + usize::from(length)..];
            if last {
                break;
            }
        }
        assert_eq!(zlib, adler2::adler32_slice(&data).to_be_bytes());
        data
    }

    proptest! {
        #[test]
        fn every_length_makes_a_whole_png(length in 70_usize..400_000) {
            let png = image(length, &mut Pcg64Mcg::seed_from_u64(1));
            prop_assert_eq!(png.len(), length);
            let chunks = chunks(&png);
            prop_assert_eq!(chunks[0].0, *b"IHDR");
            prop_assert_eq!(chunks[1].0, *b"IDAT");
            prop_assert_eq!(chunks.last().unwrap().0, *b"IEND");
            prop_assert!(chunks[2..chunks.len() - 1].iter().all(|chunk| chunk.0 == *b"fiLl"));
            let (width, height) = image_size(length);
            prop_assert_eq!(chunks[0].1[..4].to_vec(), u32::try_from(width).unwrap().to_be_bytes().to_vec());
            let rows = inflate_stored(chunks[1].1);
            prop_assert_eq!(rows.len(), height * (width + 1));
            prop_assert!(rows.chunks(width + 1).all(|row| row[0] == 0));
        }

        #[test]
        fn the_pattern_is_one_sequence(n in 0_u64..300_000, offset in 0_u64..3_000_000) {
            let body: Vec<u8> = pattern_body(n, offset).flatten().collect();
            prop_assert_eq!(body.len() as u64, n);
            let block = pattern_block();
            let offset = usize::try_from(offset).unwrap();
            for (index, byte) in body.iter().enumerate().step_by(977) {
                prop_assert_eq!(*byte, block[(offset + index) % PATTERN_PERIOD_BYTES]);
            }
        }
    }

    #[test]
    fn small_pngs_of_each_length_are_whole() {
        for length in PNG_FRAME_BYTES + 2..1_200 {
            let png = image(length, &mut Pcg64Mcg::seed_from_u64(1));
            assert_eq!(png.len(), length);
            let chunks = chunks(&png);
            assert_eq!(chunks.last().unwrap().0, *b"IEND");
        }
        assert_eq!(image(3, &mut Pcg64Mcg::seed_from_u64(1)), [0x89, b'P', b'N']);
    }

    #[test]
    fn a_path_too_long_is_refused() {
        let mut page = page();
        page.resources[1].path = format!("/{}", "x".repeat(120));
        let error = check(&page).unwrap_err().to_string();
        assert!(error.contains("at most 128"), "{error}");
        assert_eq!(page_body(&page, 0).len(), 5_000);
        let mut short = super::tests::page();
        short.resources[0].bytes = 300;
        assert!(matches!(check(&short), Err(ContentError::ParentTooShort { .. })));
        assert_eq!(page_body(&short, 0).len(), 300);
    }

    #[test]
    fn files_have_names() {
        let page = page();
        let files: Vec<_> = files(&page).collect();
        assert_eq!(files[0].0, "p/index.html");
        assert_eq!(files[3].1, "image/png");
        assert_eq!(files[2].2.len(), 1_234);
    }
}
