//! What a worker keeps for each host: its settings and which of its connections may take a request.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::Result;
use engine::Options;
use engine::client::ClientConfig;
use model::assignment::{Assignment, Target};

use crate::key_log::KeyLogFile;
use crate::{request, trust};

/// One host of a worker.
pub(crate) struct Host<'a> {
    pub(crate) target: &'a Target,
    pub(crate) config: ClientConfig,
    /// Connections that are open or being opened.
    pub(crate) open: u32,
    /// Of these, those that are not ready yet.
    pub(crate) connecting: u32,
    /// Connections that could take a request when last looked at, each once.
    pub(crate) idle: VecDeque<usize>,
    /// Whether there were fewer connections than wanted when last looked at.
    pub(crate) wants_more: bool,
    /// No connection is opened before this time.
    pub(crate) reopen_ns: u64,
}

impl Host<'_> {
    /// The hosts of an assignment, its target first; all of them again for each client that has its own.
    ///
    /// # Errors
    /// Settings of TLS that cannot be used.
    pub(crate) fn all(
        assignment: &Assignment,
        count: usize,
        key_log: Option<KeyLogFile>,
    ) -> Result<Vec<Host<'_>>> {
        let roots = trust::roots(&assignment.target.trust);
        let tls = &assignment.options.protocols.tls;
        let options = engine_options(assignment, key_log);
        let mut hosts: Vec<Host<'_>> = Vec::with_capacity(count);
        let distinct = assignment.options.requests.further_targets.len() + 1;
        for number in 0..count {
            let target = request::target(assignment, number % distinct);
            let alike = hosts.iter().find(|host| {
                host.target.server_name == target.server_name && host.target.trust == target.trust
            });
            let config = match alike {
                Some(host) => host.config.clone(),
                None => {
                    let (pins, trust) = (&assignment.pins, &target.trust);
                    let name = &target.server_name;
                    ClientConfig::offering(target.variant, name, pins, tls, trust, &roots)?
                        .with_options(&options)?
                }
            };
            let idle = VecDeque::new();
            hosts.push(Host {
                target,
                config,
                open: 0,
                connecting: 0,
                idle,
                wants_more: false,
                reopen_ns: 0,
            });
        }
        Ok(hosts)
    }
}

/// What an assignment asks of its engines beyond the pins.
fn engine_options(assignment: &Assignment, key_log: Option<KeyLogFile>) -> Options {
    let protocols = &assignment.options.protocols;
    let mut options = Options {
        early_data: protocols.tls.early_data,
        accept_push: protocols.accept_push,
        segmentation_offload: !protocols.single_datagrams,
        ..Options::default()
    };
    if let Some(streams) = protocols.qpack_blocked_streams {
        options.qpack_blocked_streams = streams;
    }
    if let Some(key_log) = key_log {
        options.key_log = Some(Arc::new(key_log));
    }
    options
}
