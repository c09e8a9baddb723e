//! The cleaning of strings from any source before people see them.

/// Replaces characters that could deceive a reader or a terminal: control characters and those that change
/// the direction of text (Unicode Standard Annex 9). Line feeds and tabs stay.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// Like [`clean`], for a terminal: colours stay, too (SGR, ECMA-48, section 8.3.117). They only change how
/// text looks.
pub fn clean_coloured(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut cleaned = parts.next().map(clean).unwrap_or_default();
    for part in parts {
        let parameters = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        match parameters {
            Some((parameters, rest)) if parameters.chars().all(|c| c.is_ascii_digit() || c == ';') => {
                cleaned += &format!("\x1b[{parameters}m{}", clean(rest));
            }
            _ => cleaned += &format!("\u{fffd}{}", clean(part)),
        }
    }
    cleaned
}

fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_stay_and_other_sequences_do_not() {
        assert_eq!(clean_coloured("\x1b[1;31mred\x1b[0m\n\tok"), "\x1b[1;31mred\x1b[0m\n\tok");
        assert_eq!(
            clean_coloured("\x1b[2Jx\x1b]0;title\x07y\rz"),
            "\u{fffd}[2Jx\u{fffd}]0;title\u{fffd}y\u{fffd}z"
        );
        assert_eq!(clean_coloured("\u{9b}31m\u{202e}abc\x1b"), "\u{fffd}31m\u{fffd}abc\u{fffd}");
        assert_eq!(clean("\x1b[31ma"), "\u{fffd}[31ma");
    }

    proptest! {
        #[test]
        fn what_is_left_only_colours(text in "[\\x1b\\[;0-9mKJ\\r\\n\\x07\\u{9b}a\\u{202e}]{0,40}") {
            let mut rest = clean_coloured(&text);
            while let Some(at) = rest.find('\x1b') {
                let end = rest[at..].find('m').expect("a colour ends with m");
                prop_assert!(rest[at + 2..at + end].chars().all(|c| c.is_ascii_digit() || c == ';'));
                rest.replace_range(at..=at + end, "");
            }
            prop_assert!(!rest.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
