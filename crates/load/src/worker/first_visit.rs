//! The visit before a repeat visit: the same clients, whose TLS sessions the measured visit resumes.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use engine::client::ClientConfig;
use model::assignment::Assignment;
use model::options::{ConnectionOptions, Options, RequestOptions, Visit};
use model::sample::Outcome;

use super::Worker;

/// The settings of connections, with the sessions that clients have received. A copy shares them.
#[derive(Default)]
pub(super) struct Sessions {
    /// By host, where all clients share sessions.
    pub(super) hosts: Vec<ClientConfig>,
    /// By client and host, where each has its own.
    pub(super) clients: Vec<Vec<ClientConfig>>,
}

/// Makes the first visit of every client, and closes its connections.
///
/// # Errors
/// It cannot begin, or no request of it succeeded.
pub(super) fn make(assignment: &Assignment, stop: &AtomicBool) -> Result<Sessions> {
    let first = first_of(assignment);
    let mut worker = Worker::new(&first, Sessions::default())?;
    worker.keeps_sessions = true;
    worker.run(stop)?;
    let outcomes: Vec<&Outcome> = worker.session.samples.iter().map(|sample| &sample.outcome).collect();
    if !outcomes.iter().any(|outcome| outcome.is_ok()) {
        let reason = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed(failure) => Some(failure.reason.clone()),
            Outcome::Ok | Outcome::Unsupported(_) => None,
        });
        bail!("first visit: no request succeeded; {}", reason.unwrap_or_else(|| "none was sent".to_owned()));
    }
    let hosts = worker.hosts.iter().map(|host| host.config.clone()).collect();
    Ok(Sessions { hosts, clients: worker.sessions })
}

/// The assignment of the first visits: without what only the measured ones need.
fn first_of(assignment: &Assignment) -> Assignment {
    let Options { requests, connections, .. } = &assignment.options;
    let requests = RequestOptions { request_ids: false, random_order: false, ..requests.clone() };
    let connections = ConnectionOptions {
        visit: Visit::First,
        dns_lookup: false,
        requests_each: None,
        ..connections.clone()
    };
    let mut options = Options { requests, connections, ..assignment.options.clone() };
    options.most_rows = None;
    options.protocols.migration = None;
    Assignment { workload: assignment.workload.first_visit(), options, ends_ns: None, ..assignment.clone() }
}
