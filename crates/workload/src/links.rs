//! The targets of `rel=preload` in a field `link` (RFC 8288, section 3), as a response with status 103 has it
//! (RFC 8297).

/// The targets with the relation `preload`, in their order. What is malformed is skipped.
pub fn preloads(links: &[u8]) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut rest = links;
    while let Some(end) = rest.iter().position(|byte| *byte == b'>') {
        let (before, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        // No target contains `<`: an earlier one begins a link without an end.
        let Some(begin) = before.iter().rposition(|byte| *byte == b'<') else { continue };
        let (is_preload, length) = read_parameters(after);
        rest = &after[length..];
        targets.extend(std::str::from_utf8(&before[begin + 1..]).ok().filter(|_| is_preload));
    }
    targets
}

/// The path of a target at an origin such as `https` and `example.com`; `None` at another one, and of
/// a relative reference.
pub fn path_at<'a>(target: &'a str, scheme: &str, authority: &str) -> Option<&'a str> {
    let path = match target.strip_prefix("//").or_else(|| target.strip_prefix(scheme)?.strip_prefix("://")) {
        Some(rest) => {
            let (host, _) = rest.split_at(rest.find('/')?);
            rest.get(authority.len()..).filter(|_| host.eq_ignore_ascii_case(authority))?
        }
        None => target.strip_prefix('/').map(|_| target)?,
    };
    path.split('#').next()
}

/// Reads the parameters of a link: whether the first `rel` has `preload`, and the bytes up to the next link.
fn read_parameters(text: &[u8]) -> (bool, usize) {
    let (mut relation, mut begin, mut is_quoted, mut is_escaped) = (None, 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b';' | b',' if !is_quoted => {
                relation = relation.or_else(|| read_relation(&text[begin..at]));
                begin = at + 1;
                if *byte == b',' {
                    return (relation.unwrap_or(false), at + 1);
                }
            }
            _ => {}
        }
    }
    (relation.or_else(|| read_relation(&text[begin..])).unwrap_or(false), text.len())
}

/// Whether a parameter `rel` has `preload`; `None` for another parameter.
fn read_relation(parameter: &[u8]) -> Option<bool> {
    let equals = parameter.iter().position(|byte| *byte == b'=')?;
    let (name, value) = parameter.split_at(equals);
    if !name.trim_ascii().eq_ignore_ascii_case(b"rel") {
        return None;
    }
    let value = value[1..].trim_ascii();
    let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    Some(value.split(u8::is_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(b"preload")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_preload_are_found_in_order() {
        let links = r#"</a.css>; rel=preload; as=style, <https://a/b.js> ; as="script";REL = "x Preload","#;
        assert_eq!(preloads(links.as_bytes()), ["/a.css", "https://a/b.js"]);
        assert_eq!(
            preloads(br#"</a,b;c>; title="x, \"; rel=no"; rel=preload, </d>;rel=preload"#),
            ["/a,b;c", "/d"]
        );
    }

    #[test]
    fn other_links_and_broken_ones_are_skipped() {
        for links in [
            "",
            "</a.css>",
            "</a.css>; rel=preconnect",
            "</a.css>; rel=next; rel=preload",
            "</a.css; rel=preload",
            "/a.css; rel=preload",
            "</a.css>; title=\"; rel=preload",
            "</a.css>; rel=\"preload",
            "<\u{0}",
        ] {
            assert!(preloads(links.as_bytes()).is_empty(), "{links}");
        }
        assert_eq!(preloads(b"garbage, </a>; rel=preload, <"), ["/a"]);
        assert_eq!(preloads(b"<broken; rel=preload, </a>; rel=preload"), ["/a"]);
        assert!(preloads(b"</\xff>; rel=preload").is_empty());
        assert_eq!(preloads("</x>;rel=preload,".repeat(10_000).as_bytes()).len(), 10_000);
    }

    #[test]
    fn targets_belong_to_an_origin() {
        let path = |target| path_at(target, "https", "a.test:8442");
        assert_eq!(path("/b?c#d"), Some("/b?c"));
        assert_eq!(path("https://A.test:8442/b"), Some("/b"));
        assert_eq!(path("//a.test:8442/b"), Some("/b"));
        for other in
            ["b.css", "", "#x", "http://a.test:8442/b", "https://a.test/b", "//a.test:8442", "https:/b"]
        {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
