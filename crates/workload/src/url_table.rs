//! The URLs of clients that learn of them while they run: those of a live stream's segments.

use std::collections::HashMap;

use model::media::ByteRange;
use model::player::MediaResource;

/// The most URLs of a process; each may leave rows, and has the template of a request.
const MOST_URLS: usize = 200_000;

/// URLs by their numbers; a URL is a path and the part of it that is requested.
#[derive(Clone, Debug, Default)]
pub struct UrlTable {
    resources: Vec<MediaResource>,
    numbers: HashMap<(String, Option<ByteRange>), u32>,
}

impl UrlTable {
    /// The table of these URLs, in this order.
    pub fn new(resources: Vec<MediaResource>) -> UrlTable {
        let key = |resource: &MediaResource| (resource.path.clone(), resource.range);
        UrlTable { numbers: resources.iter().map(key).zip(0..).collect(), resources }
    }

    /// The URLs.
    pub fn resources(&self) -> &[MediaResource] {
        &self.resources
    }

    /// The number of a known URL.
    pub fn find(&self, resource: &MediaResource) -> Option<u32> {
        self.numbers.get(&(resource.path.clone(), resource.range)).copied()
    }

    /// The number of a URL, which is added if it is new; `None` if there are too many.
    pub fn number(&mut self, resource: MediaResource) -> Option<u32> {
        let known = self.find(&resource);
        if known.is_some() || self.resources.len() >= MOST_URLS {
            return known;
        }
        let number = u32::try_from(self.resources.len()).ok()?;
        self.numbers.insert((resource.path.clone(), resource.range), number);
        self.resources.push(resource);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_number() {
        let resource = |path: &str, first: u64| MediaResource {
            path: path.to_owned(),
            range: ByteRange::of_length(first, 10),
            bytes: Some(10),
        };
        let mut urls = UrlTable::new(vec![resource("/a", 0)]);
        assert_eq!(urls.find(&resource("/a", 10)), None, "another part");
        let numbers = [("/a", 0), ("/a", 10), ("/b", 0), ("/a", 10)];
        assert_eq!(numbers.map(|(path, first)| urls.number(resource(path, first))), [0, 1, 2, 1].map(Some));
        assert_eq!(urls.resources().len(), 3);
    }
}
