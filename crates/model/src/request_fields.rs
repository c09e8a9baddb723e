//! The methods and fields that people may give to requests.

/// Fields that depend on the connection or the body, which h123 sets (RFC 9113, section 8.2.2).
const RESERVED: [&str; 7] =
    ["connection", "content-length", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection", "te"];

/// Checks a method: a token (RFC 9110, section 9.1) of letters and hyphens, as all registered ones are.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn check_method(text: &str) -> Result<(), String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-') {
        return Ok(());
    }
    Err(format!("`{}` is not a method; write letters, such as `PUT`", text.escape_debug()))
}

/// A field with its name in lower case; `None` for `host`, which the URL decides (RFC 9110, sections 5.1 and
/// 5.5).
///
/// # Errors
/// What is wrong, as the end of a sentence.
pub fn parse_field(name: &str, value: &str) -> Result<Option<(String, String)>, String> {
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("a name has letters, digits and -".to_owned());
    }
    if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
        return Err("a value has printable characters".to_owned());
    }
    if RESERVED.contains(&name.as_str()) {
        return Err("h123 sets this field itself".to_owned());
    }
    Ok((name != "host").then(|| (name, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_letters() {
        assert!(check_method("PUT").is_ok() && check_method("VERSION-CONTROL").is_ok());
        for wrong in ["", "PUT /", "GET\r\n", "P\u{fc}T"] {
            assert!(check_method(wrong).unwrap_err().contains("is not a method"), "{wrong:?}");
        }
    }

    #[test]
    fn fields_cannot_split_a_request() {
        let field = parse_field("Accept", " text/html ").unwrap();
        assert_eq!(field, Some(("accept".to_owned(), "text/html".to_owned())));
        assert_eq!(parse_field("Host", "a.test").unwrap(), None);
        for (name, value, expected) in [
            ("a b", "c", "a name has letters"),
            ("", "c", "a name has letters"),
            ("a", "b\r\nc: d", "a value has printable characters"),
            ("Content-Length", "5", "h123 sets this field itself"),
        ] {
            assert!(parse_field(name, value).unwrap_err().contains(expected), "{name:?}");
        }
    }
}
