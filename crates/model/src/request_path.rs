//! What a request may have as its path.

/// The longest path, in bytes: servers should support URIs of at least 8000 (RFC 9110, section 4.1).
pub const LONGEST_PATH_BYTES: usize = 8_000;

/// Checks a path with its query as requests carry it (`absolute-path [ "?" query ]`, RFC 9110, section 7.1).
///
/// # Errors
/// What is wrong, as the end of a sentence that begins with the path's name.
pub fn check_request_path(path: &str) -> Result<(), String> {
    let shown: String = path.chars().take(60).flat_map(char::escape_debug).collect();
    if !path.starts_with('/') {
        return Err(format!("`{shown}` is not a path; write `/{shown}`"));
    }
    if path.len() > LONGEST_PATH_BYTES {
        let bytes = path.len();
        return Err(format!("`{shown}…` has {bytes} bytes; write at most {LONGEST_PATH_BYTES}"));
    }
    // A control character or a space would end the request line of HTTP/1.1 and begin another header.
    if let Some(wrong) = path.chars().find(|byte| !byte.is_ascii_graphic()) {
        let encoded: String = wrong.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        return Err(format!("`{shown}` contains {wrong:?}; write `{encoded}`"));
    }
    if path.contains('#') {
        return Err(format!(
            "`{shown}` contains `#`, which begins a fragment; write `%23`, or remove the fragment"
        ));
    }
    Ok(())
}

/// Checks the path of a file below a folder: a request path without a query whose segments are names.
///
/// # Errors
/// As [`check_request_path`].
pub fn check_file_path(path: &str) -> Result<(), String> {
    check_request_path(path)?;
    if path.contains('?') || path.contains('%') || path.contains('\\') {
        return Err(format!("`{path}` contains `?`, `%` or `\\`; write the path of a file"));
    }
    let is_name = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    let folder = path[1..].strip_suffix('/').unwrap_or(&path[1..]);
    if !folder.is_empty() && !folder.split('/').all(is_name) {
        return Err(format!("`{path}` has an empty segment, `.` or `..`; write names between the slashes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_that_split_or_change_requests_are_refused() {
        for (path, part) in [
            ("a", "write `/a`"),
            ("", "is not a path"),
            ("/a\r\nHost: evil", "contains '\\r'; write `%0D`"),
            ("/a b", "contains ' '; write `%20`"),
            ("/a\0", "write `%00`"),
            ("/é", "write `%C3%A9`"),
            ("/a#b", "which begins a fragment"),
        ] {
            let problem = check_request_path(path).unwrap_err();
            assert!(
                problem.contains(part) && !problem.contains('\r') && !problem.contains('\0'),
                "{problem}"
            );
        }
        assert!(check_request_path(&format!("/{}", "a".repeat(LONGEST_PATH_BYTES))).is_err());
        assert_eq!(check_request_path("/a/b.html?x=1&y=%20"), Ok(()));
    }

    #[test]
    fn files_stay_inside_their_folder() {
        for path in ["/../x", "/a/..", "/a//b", "/./a", "/a?b", "/%2e%2e/x", "/a\\b"] {
            assert!(check_file_path(path).is_err(), "{path}");
        }
        for path in ["/", "/a", "/a/", "/a/..b.html", "/large/app.css"] {
            assert_eq!(check_file_path(path), Ok(()), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_path_that_passes_is_one_word_on_a_request_line(path in "[/a-z\\r\\n\\x00 #?%é\\\\.]{0,40}") {
            if check_request_path(&path).is_ok() {
                let line = format!("GET {path} HTTP/1.1");
                prop_assert_eq!(line.split_whitespace().count(), 3);
                prop_assert_eq!(line.lines().count(), 1);
            }
        }
    }
}
