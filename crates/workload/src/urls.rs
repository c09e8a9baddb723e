//! The order of URLs.

use std::sync::Arc;

use model::options::RequestOptions;
use model::shuffle::SplitMix64;

/// The URLs of each host, which all clients share.
#[derive(Debug)]
pub struct UrlHosts {
    /// The URLs of each host.
    targets: Vec<Vec<u32>>,
    /// The host of each URL.
    target_of: Vec<u16>,
    is_random: bool,
}

/// Chooses among the URLs of each host.
#[derive(Clone, Debug)]
pub struct Urls {
    hosts: Arc<UrlHosts>,
    /// The next place among the URLs of each host.
    next: Box<[usize]>,
    random: Option<SplitMix64>,
    begun: u64,
}

impl UrlHosts {
    /// `count` URLs with the hosts and the order of the options.
    pub fn new(count: usize, options: &RequestOptions) -> Self {
        let mut targets = vec![Vec::new(); options.further_targets.len() + 1];
        let mut target_of = Vec::with_capacity(count);
        for index in 0..count {
            let target = options.paths.get(index).map_or(0, |path| path.target);
            let known = usize::from(target).min(targets.len() - 1);
            #[expect(clippy::cast_possible_truncation, reason = "URL numbers are u32 everywhere")]
            targets[known].push(index as u32);
            #[expect(clippy::cast_possible_truncation, reason = "counted by a u16 to begin with")]
            target_of.push(known as u16);
        }
        UrlHosts { targets, target_of, is_random: options.random_order }
    }

    /// The number of hosts.
    pub fn targets(&self) -> usize {
        self.targets.len()
    }

    /// The host of a URL.
    pub fn target_of(&self, url: u32) -> usize {
        self.target_of.get(url as usize).map_or(0, |target| usize::from(*target))
    }
}

impl Urls {
    /// One client's choice among these URLs.
    pub fn new(hosts: Arc<UrlHosts>, seed: u64) -> Self {
        let next = vec![0; hosts.targets.len()].into_boxed_slice();
        let random = hosts.is_random.then(|| SplitMix64::new(seed));
        Urls { hosts, next, random, begun: 0 }
    }

    /// The number of hosts.
    pub fn targets(&self) -> usize {
        self.hosts.targets()
    }

    /// The host of a URL.
    pub fn target_of(&self, url: u32) -> usize {
        self.hosts.target_of(url)
    }

    /// The next URL on any host.
    pub fn next_url(&mut self) -> Option<u32> {
        let count = self.hosts.target_of.len() as u64;
        if count == 0 {
            return None;
        }
        let index = match &mut self.random {
            Some(random) => random.next_below(count),
            None => self.begun % count,
        };
        self.begun += 1;
        u32::try_from(index).ok()
    }

    /// The next URL on one host.
    pub fn next_of(&mut self, target: usize) -> Option<u32> {
        let (urls, next) = (self.hosts.targets.get(target)?, self.next.get_mut(target)?);
        let count = urls.len();
        let index = match &mut self.random {
            Some(random) => usize::try_from(random.next_below(count as u64)).ok()?,
            None if *next < count => *next,
            None => 0,
        };
        *next = index + 1;
        urls.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::options::PathOptions;

    fn options(targets: &[u16], random_order: bool) -> RequestOptions {
        let target = |_| model::assignment::Target {
            variant: model::Variant::H1,
            address: ([127, 0, 0, 1], 1).into(),
            authority: "a".into(),
            server_name: "a".into(),
            trust: model::assignment::Trust::Anyone,
        };
        let further = targets.iter().copied().max().unwrap_or(0);
        RequestOptions {
            further_targets: (0..further).map(target).collect(),
            paths: targets.iter().map(|&target| PathOptions { target, ..PathOptions::default() }).collect(),
            random_order,
            ..RequestOptions::default()
        }
    }

    fn urls(targets: &[u16], random_order: bool, seed: u64) -> Urls {
        Urls::new(Arc::new(UrlHosts::new(targets.len(), &options(targets, random_order))), seed)
    }

    #[test]
    fn each_host_has_its_urls_in_turn() {
        let mut urls = urls(&[0, 1, 0, 1, 1], false, 0);
        assert_eq!(urls.targets(), 2);
        let mut of = |target| [(); 4].map(|()| urls.next_of(target).unwrap());
        assert_eq!(of(0), [0, 2, 0, 2]);
        assert_eq!(of(1), [1, 3, 4, 1]);
        assert_eq!([(); 6].map(|()| urls.next_url().unwrap()), [0, 1, 2, 3, 4, 0]);
        assert_eq!(urls.target_of(4), 1);
        assert_eq!(urls.next_of(2), None);
        assert_eq!(self::urls(&[], false, 0).next_url(), None);
    }

    #[test]
    fn random_order_reaches_all_and_follows_the_seed() {
        let draw = |seed| {
            let mut urls = urls(&[0, 0, 0, 0], true, seed);
            (0..4000).map(|_| urls.next_of(0).unwrap()).collect::<Vec<u32>>()
        };
        let drawn = draw(3);
        for url in 0..4 {
            let count = drawn.iter().filter(|&&found| found == url).count();
            // 1000 expected; 6 standard deviations are 164.
            assert!((836..=1164).contains(&count), "seed 3: {url} {count}");
        }
        assert_eq!(drawn, draw(3));
        assert_ne!(drawn, draw(4));
    }
}
