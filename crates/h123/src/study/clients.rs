//! The clients of a run: h123's own, or external programs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use drive::client::{ClientOutcome, Limits, Stops};
use drive::{Begins, ExternalClient, ExternalSpec};
use lab::{Lab, LabError, Node, OwnFile};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClientReport, ClockReference};
use model::clients::{DESCRIPTORS_A_PROCESS, spread};
use model::external::OWN_CLIENT;
use model::options::Options;
use model::plan::{ClientGroup, GroupEnd, ServerChain, connections_each};
use model::sample::{FailureKind, Outcome};
use model::units::NANOS_PER_MS;
use model::{Cell, Clients, RunRecord, Setting};

use crate::study::chain::RunningServers;
use crate::study::{CLIENT_BYTES, Study, failed, node_of};

/// The secrets of TLS and QUIC, and the qlog of the clients' QUIC connections, in the run's folder of logs.
const KEYS: &str = "keys.log";
const QLOG: &str = "qlog";
/// A client stops at the run's limit; the lab kills it this much later.
const CLIENT_GRACE: Duration = Duration::from_secs(2);
/// Groups and processes that begin together begin this much after the tool starts them: until then all are
/// ready.
const TOGETHER_NS: u64 = 200 * NANOS_PER_MS;

/// What the client groups of a run share.
#[derive(Clone, Copy)]
pub(crate) struct RunClients<'a> {
    /// The servers that answer.
    pub(crate) servers: &'a RunningServers<'a>,
    /// The run's clock.
    pub(crate) clock: &'a ClockReference,
    /// The run's seed.
    pub(crate) seed: u64,
    /// The run's folder of logs.
    pub(crate) logs: &'a Path,
    /// Whether several groups run at the same time.
    pub(crate) has_groups: bool,
}

impl Study<'_> {
    /// Why the clients of a cell cannot run here, if they cannot.
    pub(crate) fn unsupported_by_clients(&self, cell: &Cell) -> Option<String> {
        let of_client = || {
            let client = self.clients.get(&cell.group.client)?;
            let workload = &self.plan.workload_of(&cell.group).workload;
            client.unsupported(cell.group.variant, workload, self.plan.pins_of(cell), &self.program)
        };
        cell.unsupported.clone().or_else(of_client)
    }

    /// Runs the client groups of a run at the same time and adds their rows to the record.
    ///
    /// # Errors
    /// The first failure in the order of the groups, which is the run's outcome.
    pub(crate) fn run_clients(
        &self,
        lab: &Lab,
        cells: &[Cell],
        clients: &RunClients<'_>,
        record: &mut RunRecord,
    ) -> Result<(), Outcome> {
        // Set for each group when it ends.
        let ended: Vec<AtomicBool> = cells.iter().map(|_| AtomicBool::new(false)).collect();
        let never = AtomicBool::new(false);
        let enough = |cell: &Cell| match cell.group.end {
            GroupEnd::With(other) => ended.get(usize::from(other)).unwrap_or(&never),
            GroupEnd::Done | GroupEnd::AfterNs(_) => &never,
        };
        let outcomes: Vec<Result<ClientOutcome, Outcome>> = thread::scope(|scope| {
            let run = |cell: &Cell, own: &AtomicBool, enough: &AtomicBool| {
                let outcome = self.run_group(lab, (cells, cell), clients, enough);
                own.store(true, Ordering::Relaxed);
                outcome
            };
            let running: Vec<_> = cells
                .iter()
                .zip(&ended)
                .map(|(cell, own)| {
                    let enough = enough(cell);
                    scope.spawn(move || run(cell, own, enough))
                })
                .collect();
            running.into_iter().map(|group| group.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let mut outcome = Ok(());
        for (cell, client) in cells.iter().zip(outcomes) {
            let client = match client {
                Ok(client) => client,
                Err(failed) => {
                    outcome = outcome.and(Err(failed));
                    continue;
                }
            };
            record.samples.extend(client.samples);
            record.connections.extend(client.connections);
            record.player.extend(client.player);
            record.page_events.extend(client.page_events);
            record.clients.push(ClientReport { group: cell.group.group, ..client.report });
            if !client.outcome.is_ok() {
                outcome = outcome.and(Err(client.outcome));
            }
        }
        outcome
    }

    /// Whether the timelines of a run's networks begin with the load of a browser, which takes seconds to
    /// start, and not with the run. Several groups share one beginning.
    pub(crate) fn begins_with_browser(&self, cells: &[Cell]) -> bool {
        let [cell] = cells else { return false };
        self.emulated && self.clients.get(&cell.group.client).is_some_and(ExternalClient::is_browser)
    }

    fn run_group(
        &self,
        lab: &Lab,
        (cells, cell): (&[Cell], &Cell),
        clients: &RunClients<'_>,
        enough: &AtomicBool,
    ) -> Result<ClientOutcome, Outcome> {
        let RunClients { servers, clock, seed, logs, has_groups } = *clients;
        let group = &cell.group;
        let workload = &self.plan.workload_of(group).workload;
        let pins = self.plan.pins_of(cell);
        let processes = self.processes_of(cell);
        let now_ns = load::Clock::new(clock).now_ns();
        // Groups and processes that start together have to wait for each other.
        let is_alone = processes.len() == 1 && !has_groups;
        let begins_ns = if is_alone { 0 } else { now_ns.saturating_add(TOGETHER_NS) };
        let ends_ns = match group.end {
            GroupEnd::AfterNs(after_ns) => Some(begins_ns.max(now_ns).saturating_add(after_ns)),
            GroupEnd::Done | GroupEnd::With(_) => None,
        };
        let mut targets = servers.targets(self, cell)?.into_iter();
        let missing = || Outcome::failed(FailureKind::Server, "it has no address: a fault of h123");
        let target = targets.next().ok_or_else(missing)?;
        let mut options = self.client_options(cell, logs);
        self.add_hosts(cell, targets.collect(), &mut options.requests);
        let assignment = |clients: Clients| -> Result<Assignment, Outcome> {
            Ok(Assignment {
                options: options.clone(),
                version: ASSIGNMENT_VERSION,
                group: group.group,
                node: group.node.clone(),
                clock: clock.clone(),
                target: target.clone(),
                workload: workload.clone(),
                pins: pins.clone(),
                seed: seed ^ u64::from(group.group),
                clients: Clients { begins_ns, ..clients },
                deadline_ns: now_ns.saturating_add(cell.run_limit_ns),
                ends_ns,
            })
        };
        let limits = Limits {
            time: Duration::from_nanos(cell.run_limit_ns) + CLIENT_GRACE,
            bytes: CLIENT_BYTES,
            cpus: self.cores.client.clone(),
        };
        let node = node_of(lab, &group.node)?;
        if group.client != OWN_CLIENT {
            let one = assignment(Clients::ONE)?;
            // The plan has checked that one client can do this.
            let workload = workload.merged(group.clients).unwrap_or(one.workload);
            let timelines = self.begins_with_browser(cells).then_some(lab);
            let begin = || Ok(timelines.map_or(Ok(()), Lab::begin_timelines)?);
            let one = Assignment { workload, ..one };
            return self.run_external(node, cell, &one, &limits, (logs, Begins(&begin)));
        }
        let assignments: Vec<Assignment> = processes.into_iter().map(assignment).collect::<Result<_, _>>()?;
        let stops = Stops { kill: self.stop, end: enough };
        let run = |(process, assignment): (usize, &Assignment)| {
            let name = log_name("client.log", group);
            let log = logs.join(if process == 0 { name } else { format!("{name}.{}", process + 1) });
            drive::client::run_until_enough(node, &self.program, assignment, limits.clone(), &log, stops)
                .map_err(failed(FailureKind::Client))
        };
        let outcomes: Vec<Result<ClientOutcome, Outcome>> = thread::scope(|scope| {
            let running: Vec<_> =
                assignments.iter().enumerate().map(|process| scope.spawn(move || run(process))).collect();
            running.into_iter().map(|process| process.join().unwrap_or_else(|_| Err(panicked()))).collect()
        });
        let mut all: Option<ClientOutcome> = None;
        for outcome in outcomes {
            let outcome = outcome?;
            match &mut all {
                Some(all) => all.merge(outcome),
                None => all = Some(outcome),
            }
        }
        all.ok_or_else(|| Outcome::failed(FailureKind::Client, "the group has no clients: a fault of h123"))
    }

    /// Over how many processes and addresses the clients of a group are spread, where there are several.
    pub(crate) fn describe_spread(&self) -> Option<(String, String)> {
        let own = self.plan.cells.iter().filter(|cell| cell.group.client == OWN_CLIENT);
        let all = own.map(|cell| (self.processes_of(cell).len(), self.plan.sources_of(cell).len().max(1)));
        let (processes, addresses) = all.fold((1, 1), |most, of| (most.0.max(of.0), most.1.max(of.1)));
        let text = format!("{} with {}", counted(processes, "process"), counted(addresses, "address"));
        (processes > 1 || addresses > 1).then(|| ("clients of a group, at most".to_owned(), text))
    }

    /// The clients of a cell's group, spread over processes.
    fn processes_of(&self, cell: &Cell) -> Vec<Clients> {
        let group = &cell.group;
        let workload = &self.plan.workload_of(group).workload;
        let each = connections_each(workload, group.variant, self.plan.pins_of(cell));
        let cores = u32::try_from(self.cores.client.len()).unwrap_or(u32::MAX);
        let most = u32::try_from(lab::most_open_files()).unwrap_or(u32::MAX);
        spread(Clients::all(group.clients, group.start), each, DESCRIPTORS_A_PROCESS.min(most), cores)
    }

    /// Runs a group's external client to its end.
    fn run_external(
        &self,
        node: &Node,
        cell: &Cell,
        assignment: &Assignment,
        limits: &Limits,
        (logs, begins): (&Path, Begins<'_>),
    ) -> Result<ClientOutcome, Outcome> {
        let (group, is_outside) = (&cell.group, cell.chain.remote.is_some());
        let Some(client) = self.clients.get(&group.client) else {
            return Err(Outcome::failed(
                FailureKind::Client,
                format!("there is no client `{}`", group.client),
            ));
        };
        let key_hash = if is_outside { self.outside.key_hashes() } else { self.authority.key_hash() };
        let spec = ExternalSpec {
            folder: &logs.join(log_name("client", group)),
            log: &logs.join(log_name("client.log", group)),
            tool: &self.program,
            key_hash: &key_hash,
            is_outside,
            has_names: self.cover_hosts_file(node, assignment)?,
            stop: self.stop,
            begins,
        };
        client.run(node, assignment, limits, &spec).map_err(failed(FailureKind::Client))
    }

    /// Puts the names of the server into a client node's /etc/hosts: most external clients cannot be given an
    /// address for a name. Returns whether the node has an /etc/hosts to itself.
    fn cover_hosts_file(&self, node: &Node, assignment: &Assignment) -> Result<bool, LabError> {
        if node.is_machine() {
            return Ok(false);
        }
        let mut text = "127.0.0.1 localhost\n".to_owned();
        let further = &assignment.options.requests.further_targets;
        for target in std::iter::once(&assignment.target).chain(further) {
            text += &format!("{} {}\n", target.address.ip(), target.server_name);
        }
        node.cover_files(vec![OwnFile { path: "/etc/hosts".into(), text }])?;
        Ok(true)
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
        let mut options = self.plan.workload_of(&cell.group).options.clone();
        options.requests.request_ids = self.plan.server_time;
        if self.emulated {
            options.connections.sources = self.plan.sources_of(cell);
        }
        options.connections.dns_lookup = self.has_dns();
        options.protocols.tls.early_data = pins.resumption && takes_early_data(&cell.chain);
        options.protocols.tls.key_log = self.pcap.then(|| in_logs(KEYS));
        options.protocols.qlog = self.pcap.then(|| in_logs(QLOG));
        options.protocols.accept_push = pins.http2.accept_push;
        options.protocols.follows_addresses = self.emulated && has_handover;
        options
    }
}

fn panicked() -> Outcome {
    Outcome::failed(FailureKind::Client, "its thread panicked: a fault of h123")
}

/// A number with its noun, whose plural ends in `es`.
fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "es" })
}

/// A name in the run's folder of logs; of further groups with a number.
fn log_name(name: &str, group: &ClientGroup) -> String {
    match (group.group, name.split_once('.')) {
        (0, _) => name.to_owned(),
        (number, Some((stem, ending))) => format!("{stem}-{}.{ending}", number + 1),
        (number, None) => format!("{name}-{}", number + 1),
    }
}
