//! The hosts of a worker: their settings, which all its clients share.

use std::sync::Arc;

use anyhow::Result;
use engine::Options;
use engine::client::ClientConfig;
use model::assignment::{Assignment, Target};

use crate::clock::Clock;
use crate::key_log::KeyLogFile;
use crate::qlog::QlogFolder;
use crate::{request, trust};

/// Logs of connections, where the assignment asks for them.
#[derive(Default)]
pub(crate) struct Logs {
    pub(crate) keys: Option<KeyLogFile>,
    pub(crate) qlog: Option<QlogFolder>,
}

impl Logs {
    /// Opens the logs of an assignment.
    ///
    /// # Errors
    /// A file or folder cannot be written.
    pub(crate) fn open(assignment: &Assignment, clock: &Clock) -> Result<Logs> {
        let protocols = &assignment.options.protocols;
        let is_quic = assignment.target.variant.is_quic();
        Ok(Logs {
            keys: protocols.tls.key_log.as_deref().map(KeyLogFile::open).transpose()?,
            qlog: protocols
                .qlog
                .as_deref()
                .filter(|_| is_quic)
                .map(|folder| QlogFolder::open(folder, clock))
                .transpose()?,
        })
    }
}

/// One host of a worker.
pub(crate) struct Host<'a> {
    pub(crate) target: &'a Target,
    pub(crate) config: ClientConfig,
    /// The first host with the same settings, whose sessions it can resume; often itself.
    like: usize,
}

impl Host<'_> {
    /// The hosts of an assignment, its target first; all hosts again for each client that replays the whole
    /// script.
    ///
    /// # Errors
    /// Settings of TLS cannot be used.
    pub(crate) fn all<'a>(
        assignment: &'a Assignment,
        count: usize,
        options: &Options,
    ) -> Result<Vec<Host<'a>>> {
        let roots = trust::roots(&assignment.target.trust);
        let tls = &assignment.options.protocols.tls;
        let mut hosts: Vec<Host<'_>> = Vec::with_capacity(count);
        for number in 0..count {
            let target = request::target(assignment, number);
            let same = hosts.iter().position(|host| {
                host.target.variant == target.variant
                    && host.target.server_name == target.server_name
                    && host.target.trust == target.trust
            });
            let config = match same.and_then(|same| hosts.get(same)) {
                Some(host) => host.config.clone(),
                None => {
                    let (pins, trust) = (&assignment.pins, &target.trust);
                    let name = &target.server_name;
                    ClientConfig::offering(target.variant, name, pins, tls, trust, &roots)?
                        .with_options(options)?
                }
            };
            hosts.push(Host { target, config, like: same.unwrap_or(number) });
        }
        Ok(hosts)
    }

    /// The settings of all hosts with separate stores of sessions, for one client.
    ///
    /// # Errors
    /// As [`Host::all`].
    pub(crate) fn separate(hosts: &[Host<'_>], options: &Options) -> Result<Vec<ClientConfig>> {
        let mut configs: Vec<ClientConfig> = Vec::with_capacity(hosts.len());
        for host in hosts {
            configs.push(match configs.get(host.like) {
                Some(config) => config.clone(),
                None => host.config.clone().with_options(options)?,
            });
        }
        Ok(configs)
    }
}

/// The engines' options beyond the pins.
pub(crate) fn engine_options(assignment: &Assignment, logs: Logs) -> Options {
    let protocols = &assignment.options.protocols;
    let is_pushed = assignment.workload.page().is_some_and(|page| !page.delivery.push.is_empty());
    let mut options = Options {
        early_data: protocols.tls.early_data,
        accept_push: protocols.accept_push || is_pushed,
        segmentation_offload: !protocols.single_datagrams,
        ..Options::default()
    };
    if let Some(streams) = protocols.qpack_blocked_streams {
        options.qpack_blocked_streams = streams;
    }
    options.key_log = logs.keys.map(|keys| Arc::new(keys) as Arc<dyn rustls::KeyLog>);
    options.qlog = logs.qlog.map(|qlog| Arc::new(qlog) as Arc<dyn engine::options::Qlog>);
    options
}
