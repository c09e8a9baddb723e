//! The server that a request names (RFC 9110, section 7.2).

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Version};

/// Whether a request names one server: by at most one valid `host` field, which HTTP/1.1 requires, or by an
/// authority that the field does not contradict (RFC 9112, section 3.2; RFC 9113, section 8.3.1).
pub(crate) fn is_valid<B>(request: &Request<B>) -> bool {
    let authority = request.uri().authority();
    let mut fields = request.headers().get_all(HOST).iter();
    match (fields.next(), fields.next(), request.version()) {
        (_, Some(_), _) => false,
        (None, None, version) => {
            version < Version::HTTP_11 || version > Version::HTTP_11 && authority.is_some()
        }
        (Some(field), None, version) => {
            let Some(host) = Authority::try_from(field.as_bytes()).ok().filter(names_host) else {
                return false;
            };
            // A proxy of HTTP/1.1 ignores the field if the target is absolute.
            version <= Version::HTTP_11 || authority.is_none_or(|authority| *authority == host)
        }
    }
}

/// Without user information, with a host, and with a number as the port if there is one.
fn names_host(authority: &Authority) -> bool {
    let has_valid_port = match authority.as_str().rsplit_once(':') {
        Some((_, port)) if !port.contains(']') => port.is_empty() || authority.port_u16().is_some(),
        _ => true,
    };
    has_valid_port && !authority.host().is_empty() && !authority.as_str().contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid_with(version: Version, uri: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        is_valid(&request.body(()).unwrap())
    }

    #[test]
    fn http1_needs_one_valid_host() {
        for good in ["x", "localhost:8080", "10.0.0.1", "[::1]", "[::1]:443", "x:", "a-b.example"] {
            assert!(is_valid_with(Version::HTTP_11, "/", &[good]), "{good}");
        }
        for bad in ["", "a b", "a@b", "a/b", "x:y", "x:99999", "[::1", "a,b c", "a?b", "a#b", "\u{fc}"] {
            assert!(!is_valid_with(Version::HTTP_11, "/", &[bad]), "{bad}");
        }
        assert!(!is_valid_with(Version::HTTP_11, "/", &["a", "a"]));
        assert!(!is_valid_with(Version::HTTP_11, "/", &[]));
        assert!(is_valid_with(Version::HTTP_10, "/", &[]));
        assert!(!is_valid_with(Version::HTTP_10, "/", &["a", "b"]));
        assert!(is_valid_with(Version::HTTP_11, "http://a/", &["b"]), "an absolute target counts");
    }

    #[test]
    fn http2_needs_a_host_or_an_authority_that_agree() {
        assert!(is_valid_with(Version::HTTP_2, "https://a/", &[]));
        assert!(is_valid_with(Version::HTTP_2, "https://a/", &["A"]));
        assert!(is_valid_with(Version::HTTP_2, "/", &["a"]));
        assert!(!is_valid_with(Version::HTTP_2, "/", &[]));
        assert!(!is_valid_with(Version::HTTP_2, "https://a/", &["b"]));
        assert!(!is_valid_with(Version::HTTP_3, "https://a/", &["a", "a"]));
    }
}
