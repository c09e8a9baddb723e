//! Fetches resources and follows their redirects.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::media::ByteRange;
use model::url::Url;

use super::fetch::{FetchError, Fetched, Fetcher};

/// Redirects of one resource.
const MOST_REDIRECTS: usize = 5;

/// A fetcher that follows redirects and looks up each origin once.
pub struct Follower {
    fetcher: Fetcher,
    addresses: BTreeMap<String, Result<SocketAddr, FetchError>>,
}

impl Follower {
    /// Follows the redirects of what this fetcher fetches.
    pub fn new(fetcher: Fetcher) -> Follower {
        Follower { fetcher, addresses: BTreeMap::new() }
    }

    /// Fetches a URL, or a range of it; the URL that answered, and its response.
    ///
    /// # Errors
    /// As [`Fetcher::fetch`]; or more than five redirects, one that leads nowhere, or a status that is
    /// neither 200 nor, for a range, 206.
    pub fn fetch(&mut self, url: &Url, range: Option<ByteRange>) -> Result<(Url, Fetched), FetchError> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let address = self.addresses.entry(url.origin()).or_insert_with(|| self.fetcher.find(&url));
            let fetched = self.fetcher.fetch_range(&url, address.clone()?, range)?;
            match &fetched.location {
                Some(location) => {
                    let next = url.join(location);
                    url = next
                        .ok_or_else(|| FetchError(format!("{url} leads to `{location}`, which is no URL")))?;
                }
                None if fetched.status == 200 || (fetched.status == 206 && range.is_some()) => {
                    return Ok((url, fetched));
                }
                None => {
                    return Err(FetchError(format!(
                        "{url} answers with status {}, expected 200",
                        fetched.status
                    )));
                }
            }
        }
        Err(FetchError(format!("{url} leads on after {MOST_REDIRECTS} redirects")))
    }
}
