//! References in style sheets (CSS Syntax Level 3, as far as `url()` and `@import` need it).

use model::page::ResourceKind;

use super::{MOST_RESOURCES, Reference};

/// The references of a style sheet in the order of the text: imports, images, and of each `@font-face` the
/// first font, because browsers load the first that they support.
pub fn references(text: &str) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut scanner = Scanner { text, at: 0 };
    let (mut is_import, mut font) = (false, Font::None);
    while let Some(token) = scanner.next() {
        match token {
            Token::AtWord(word) => {
                is_import = word.eq_ignore_ascii_case("import");
                if word.eq_ignore_ascii_case("font-face") {
                    font = Font::Open;
                }
            }
            Token::Semicolon => is_import = false,
            Token::BlockEnd => (is_import, font) = (false, Font::None),
            Token::Text(text) if is_import => {
                add(&mut found, text, ResourceKind::Css, scanner.at, &mut is_import)
            }
            Token::Url(text) if is_import => {
                add(&mut found, text, ResourceKind::Css, scanner.at, &mut is_import)
            }
            Token::Url(text) => {
                let kind = if font == Font::None { ResourceKind::Image } else { ResourceKind::Font };
                if font != Font::Found {
                    add(&mut found, text, kind, scanner.at, &mut false);
                }
                if font == Font::Open {
                    font = Font::Found;
                }
            }
            Token::Text(_) => {}
        }
        if found.len() >= MOST_RESOURCES {
            break;
        }
    }
    found
}

fn add(found: &mut Vec<Reference>, text: String, kind: ResourceKind, end: usize, is_import: &mut bool) {
    *is_import = false;
    if !text.is_empty() {
        found.push(Reference { text, kind, end });
    }
}

/// Where the scanner is in an `@font-face`.
#[derive(Clone, Copy, PartialEq)]
enum Font {
    None,
    Open,
    Found,
}

/// What matters of a style sheet.
enum Token {
    AtWord(String),
    Text(String),
    Url(String),
    Semicolon,
    BlockEnd,
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<Token> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            if let Some(comment) = rest.strip_prefix("/*") {
                self.at += comment.find("*/").map_or(rest.len(), |end| end + 4);
                continue;
            }
            match first {
                '"' | '\'' => return Some(Token::Text(self.string(first))),
                ';' | '}' => {
                    self.at += 1;
                    return Some(if first == ';' { Token::Semicolon } else { Token::BlockEnd });
                }
                '@' => {
                    self.at += 1;
                    return Some(Token::AtWord(self.word()));
                }
                c if is_of_word(c) => {
                    let word = self.word();
                    if self.text[self.at..].starts_with('(') && word.eq_ignore_ascii_case("url") {
                        self.at += 1;
                        return Some(Token::Url(self.url()));
                    }
                }
                c => self.at += c.len_utf8(),
            }
        }
    }

    fn word(&mut self) -> String {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_owned()
    }

    /// A string; a line break ends one that is not closed.
    fn string(&mut self, quote: char) -> String {
        self.at += 1;
        self.until(|c| c == quote || c == '\n')
    }

    fn url(&mut self) -> String {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let text = match self.text[self.at..].chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let text = self.string(quote);
                self.until(|c| c == ')');
                text
            }
            _ => self.until(|c| c == ')'),
        };
        text.trim().to_owned()
    }

    /// Takes all up to a character and that character; a backslash escapes the next one.
    fn until(&mut self, is_end: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        let mut is_escaped = false;
        for c in self.text[self.at..].chars() {
            self.at += c.len_utf8();
            match c {
                '\\' if !is_escaped => is_escaped = true,
                c if !is_escaped && is_end(c) => break,
                c => {
                    text.push(c);
                    is_escaped = false;
                }
            }
        }
        text
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_images_and_first_fonts_are_found() {
        let text = "/* url(no.png) */ @import 'a.css' screen;\n@IMPORT url( \"b.css\" );\n\
                    @font-face { font-family: 'x'; src: url(f.woff2) format('woff2'), url(f.woff); }\n\
                    @font-face{src:url(g.woff2)} .a{background:URL(c\\)d.png)} .b::after{content:'url(e.png)'}\n\
                    .c{background:image-set(url('h.png') 1x)} .d{background:url()}";
        let found = references(text);
        let names: Vec<(&str, ResourceKind)> = found.iter().map(|r| (r.text.as_str(), r.kind)).collect();
        use ResourceKind::{Css, Font, Image};
        assert_eq!(
            names,
            [
                ("a.css", Css),
                ("b.css", Css),
                ("f.woff2", Font),
                ("g.woff2", Font),
                ("c)d.png", Image),
                ("h.png", Image)
            ]
        );
        assert!(found.is_sorted_by_key(|reference| reference.end));
        assert!(text[..found[2].end].ends_with("url(f.woff2)"));
    }

    #[test]
    fn any_cut_ends() {
        let text = "@import url('ü.css'); a{b:url(\"c\\\"d\")} /* x";
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            references(&text[..cut]);
        }
        assert_eq!(references(&"url(a)".repeat(100_000)).len(), MOST_RESOURCES);
    }
}
