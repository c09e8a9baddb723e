//! The clients of a run: h123's own, or external programs.

use std::path::Path;
use std::time::Duration;

use drive::client::{ClientOutcome, Limits};
use drive::{ExternalSpec, Support};
use lab::{Lab, LabError, OwnFile};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClockReference, Target};
use model::external::OWN_CLIENT;
use model::options::Options;
use model::plan::{ClientGroup, ServerChain};
use model::sample::{FailureKind, Outcome};
use model::{Cell, RunRecord, Setting};

use crate::study::chain::RunningChain;
use crate::study::{CLIENT_BYTES, Study, failed};

/// The secrets of TLS and QUIC, and the qlog of the clients' QUIC connections, in the run's folder of logs.
const KEYS: &str = "keys.log";
const QLOG: &str = "qlog";
/// A client stops at the run's limit; the lab kills it this much later.
const CLIENT_GRACE: Duration = Duration::from_secs(2);

/// What the client groups of a run share.
#[derive(Clone, Copy)]
pub(crate) struct RunClients<'a> {
    /// The servers that answer.
    pub(crate) servers: &'a RunningChain<'a>,
    /// The run's clock.
    pub(crate) clock: &'a ClockReference,
    /// The run's seed.
    pub(crate) seed: u64,
    /// The run's folder of logs.
    pub(crate) logs: &'a Path,
}

impl Study<'_> {
    /// Why the cell's clients cannot run it here, if they cannot.
    pub(crate) fn unsupported_by_clients(&self, cell: &Cell) -> Option<String> {
        let of_client = |group: &ClientGroup| {
            let program = self.clients.get(&group.client)?.probe(&self.program).ok()?;
            match program.support(group.variant) {
                Support::Supported => None,
                Support::Unsupported(reason) => Some(reason),
            }
        };
        cell.unsupported.clone().or_else(|| cell.clients.iter().find_map(of_client))
    }

    /// Runs the cell's client groups one after the other and adds their rows to the record.
    ///
    /// # Errors
    /// The first failure, which is the run's outcome.
    pub(crate) fn run_clients(
        &self,
        lab: &Lab,
        cell: &Cell,
        clients: &RunClients<'_>,
        record: &mut RunRecord,
    ) -> Result<(), Outcome> {
        let mut outcome = Ok(());
        for group in &cell.clients {
            let client = self.run_group(lab, cell, group, clients)?;
            record.samples.extend(client.samples);
            record.connections.extend(client.connections);
            record.player.extend(client.player);
            record.clients.push(client.report);
            if !client.outcome.is_ok() {
                outcome = outcome.and(Err(client.outcome));
            }
        }
        outcome
    }

    fn run_group(
        &self,
        lab: &Lab,
        cell: &Cell,
        group: &ClientGroup,
        clients: &RunClients<'_>,
    ) -> Result<ClientOutcome, Outcome> {
        let RunClients { servers, clock, seed, logs } = *clients;
        let assignment = Assignment {
            options: self.client_options(cell, logs),
            version: ASSIGNMENT_VERSION,
            group: group.group,
            node: group.node.clone(),
            clock: clock.clone(),
            target: servers.target(group.variant)?,
            workload: self.plan.workload_of(group).workload.clone(),
            pins: self.plan.pins_of(cell).clone(),
            seed: seed ^ u64::from(group.group),
            // Each group has the whole limit.
            deadline_ns: load::Clock::new(clock).now_ns().saturating_add(cell.run_limit_ns),
        };
        let limits = Limits {
            time: Duration::from_nanos(cell.run_limit_ns) + CLIENT_GRACE,
            bytes: CLIENT_BYTES,
            cpus: self.cores.client.clone(),
        };
        if group.client != OWN_CLIENT {
            return self.run_external(lab, group, &assignment, &limits, logs);
        }
        let log = logs.join("client.log");
        drive::client::run_until(lab.client(), &self.program, &assignment, limits, &log, self.stop)
            .map_err(failed(FailureKind::Client))
    }

    /// Runs a group's external client to its end.
    fn run_external(
        &self,
        lab: &Lab,
        group: &ClientGroup,
        assignment: &Assignment,
        limits: &Limits,
        logs: &Path,
    ) -> Result<ClientOutcome, Outcome> {
        let Some(client) = self.clients.get(&group.client) else {
            return Err(Outcome::failed(
                FailureKind::Client,
                format!("there is no client `{}`", group.client),
            ));
        };
        let spec = ExternalSpec {
            folder: &logs.join("client"),
            log: &logs.join("client.log"),
            tool: &self.program,
            has_names: cover_hosts_file(lab, &assignment.target)?,
            stop: self.stop,
        };
        client.run(lab.client(), assignment, limits, &spec).map_err(failed(FailureKind::Client))
    }

    /// Options that follow from the study, the cell's network and servers, and --pcap.
    fn client_options(&self, cell: &Cell, logs: &Path) -> Options {
        let pins = self.plan.pins_of(cell);
        let takes_early_data =
            |chain: &ServerChain| chain.set.get("early_data") == Some(&Setting::Flag(true));
        let has_handover = self.plan.network_of(cell).timeline.iter().any(|change| change.handover);
        let in_logs = |name: &str| {
            let path = logs.join(name);
            std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
        };
        let mut options = Options::default();
        options.requests.request_ids = self.plan.server_time;
        options.connections.dns_lookup = self.has_dns();
        options.protocols.tls.early_data = pins.resumption && cell.chains.iter().any(takes_early_data);
        options.protocols.tls.key_log = self.pcap.then(|| in_logs(KEYS));
        options.protocols.qlog = self.pcap.then(|| in_logs(QLOG));
        options.protocols.accept_push = pins.http2.accept_push;
        options.protocols.follows_addresses = self.emulated && has_handover;
        options
    }
}

/// Puts the server's name into the client node's /etc/hosts: most external clients cannot be given an address
/// for a name. Returns whether the node has an /etc/hosts to itself.
fn cover_hosts_file(lab: &Lab, target: &Target) -> Result<bool, LabError> {
    if !lab.is_emulated() {
        return Ok(false);
    }
    let text = format!("127.0.0.1 localhost\n{} {}\n", target.address.ip(), target.server_name);
    lab.client().cover_files(vec![OwnFile { path: "/etc/hosts".into(), text }])?;
    Ok(true)
}
