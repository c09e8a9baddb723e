//! One client of a worker: its workload and its connections. It is built when it begins and dropped when it
//! is done.

use std::collections::VecDeque;

use engine::client::ClientConfig;
use workload::{ActiveWorkload, RequestSource};

use crate::request::OpenRequest;

/// A client that has begun.
pub(crate) struct Client {
    pub(crate) work: ActiveWorkload,
    pub(crate) hosts: Box<[ClientHost]>,
    /// Its connections, by their keys.
    pub(crate) conns: Vec<usize>,
    /// Its own settings of each host where clients must not share sessions; else empty.
    pub(crate) configs: Vec<ClientConfig>,
    /// Whether it is listed among the clients that have something to do.
    pub(crate) is_marked: bool,
}

/// A client's connections to one host.
#[derive(Default)]
pub(crate) struct ClientHost {
    /// Connections that are open or being opened.
    pub(crate) open: u32,
    /// Of these, those that are not ready yet.
    pub(crate) connecting: u32,
    /// Connections that could take a request when last checked, each once.
    pub(crate) idle: VecDeque<usize>,
    /// Requests whose connection was lost, to be sent again.
    pub(crate) lost: VecDeque<OpenRequest>,
    /// Whether there were fewer connections than wanted when last checked.
    pub(crate) wants_more: bool,
    /// No connection is opened before this time.
    pub(crate) reopen_ns: u64,
}

impl Client {
    /// A client of a worker with this many hosts.
    pub(crate) fn new(work: ActiveWorkload, hosts: usize, configs: Vec<ClientConfig>) -> Self {
        let hosts = std::iter::repeat_with(ClientHost::default).take(hosts).collect();
        Client { work, hosts, conns: Vec::new(), configs, is_marked: false }
    }

    /// Whether `at_once` connections to each host can take a request, or one could not be opened.
    pub(crate) fn can_begin(&self, at_once: u32, now: u64) -> bool {
        let at_once = at_once as usize;
        self.hosts.iter().all(|host| host.idle.len() >= at_once || host.reopen_ns > now)
    }

    /// When it must act without an event; `next_opening` is when its next connection is due.
    pub(crate) fn next_ns(&self, next_opening: Option<u64>, now: u64) -> Option<u64> {
        let reopening =
            |host: &ClientHost| (host.wants_more && host.reopen_ns > now).then_some(host.reopen_ns);
        let hosts = self.hosts.iter().filter_map(reopening);
        self.work.next_ns().into_iter().chain(next_opening).chain(hosts).min()
    }

    /// Requests that wait for a connection to a host: due ones, and those that lost theirs.
    pub(crate) fn waiting_for(&self, host: usize) -> usize {
        self.work.waiting(host) + self.hosts.get(host).map_or(0, |host| host.lost.len())
    }

    /// Requests that wait for a connection to any host.
    pub(crate) fn waiting(&self) -> usize {
        (0..self.hosts.len()).map(|host| self.waiting_for(host)).sum()
    }
}
