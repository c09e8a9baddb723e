//! The servers of a run: those that clients connect to and, behind a proxy, the next ones.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drive::{Adapter, ExternalClient, Identity, RunningServer, StartSpec, Support};
use lab::{Lab, Node};
use model::assignment::Target;
use model::options::Visit;
use model::plan::ServerChain;
use model::record::ServerReport;
use model::sample::{FailureKind, Outcome};
use model::tunable::NO_SETTINGS;
use model::{Cell, Page, Plan, Variant};

use crate::study::outside::RemoteChain;
use crate::study::server_time::TimedServer;
use crate::study::{SERVER_NAME, Study, failed, node_of};

/// The folders of the front server and of the servers behind it, in the run's folder of logs; of further
/// servers and chains with a number.
const FRONT: &str = "server";
const BACK: &str = "back";

/// Every server of a run, ready. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct RunningServers<'n> {
    /// In the order of [`model::Plan::chains_of_run`].
    chains: Vec<RunningChain<'n>>,
}

/// The servers of a chain, ready.
#[derive(Debug)]
struct RunningChain<'n> {
    chain: ServerChain,
    /// The front server first; empty if h123 does not start it.
    servers: Vec<RunningServer<'n>>,
    /// What stands for a server that h123 does not start.
    remote: Option<RemoteChain>,
}

/// Whether the clients of a cell begin with HTTP/2 and follow its Alt-Svc.
pub(crate) fn upgrades(plan: &Plan, cell: &Cell) -> bool {
    plan.workload_of(&cell.group).options.connections.visit == Visit::Upgrade
}

impl Study<'_> {
    /// Why the servers of a cell cannot run here, if they cannot.
    pub(crate) fn unsupported_by_servers(&self, cell: &Cell) -> Option<String> {
        if let Some(remote) = &cell.chain.remote {
            let first = upgrades(self.plan, cell).then_some(Variant::H2);
            let needed = first.into_iter().chain([cell.group.variant]);
            return needed.filter_map(|variant| self.outside.unsupported(remote, variant)).next();
        }
        let page = self.plan.workloads[cell.group.workload].workload.page();
        let pages = page.map_or(&[][..], std::slice::from_ref);
        let of_server = |(server, variant, pages): (&str, Variant, &[Page])| {
            let adapter = self.servers.get(server)?;
            if let Support::Unsupported(reason) = adapter.probe(&self.program).ok()?.support(variant) {
                return Some(reason);
            }
            adapter.refuses(variant, self.plan.pins_of(cell), pages)
        };
        let front = (cell.chain.server.as_str(), cell.group.variant, pages);
        let backs = cell.chain.backs.iter().map(|back| (back.server.as_str(), back.variant, &[][..]));
        std::iter::once(front).chain(backs).find_map(of_server)
    }

    /// Starts the servers of a run, those behind proxies first, and waits until all are ready.
    ///
    /// # Errors
    /// The run's outcome, as [`Adapter::start`] gives it.
    pub(crate) fn start_servers<'n>(
        &self,
        lab: &'n Lab,
        cells: &[Cell],
        logs: &Path,
        seed: u64,
    ) -> Result<RunningServers<'n>, Outcome> {
        let first = cells.first().map_or(0, |cell| cell.cell);
        let chains = self.plan.chains_of_run(first);
        let start = |(number, chain): (usize, &ServerChain)| {
            let users: Vec<&Cell> = cells.iter().filter(|cell| cell.chain == *chain).collect();
            let folder = |name: &str| match number {
                0 => logs.join(name),
                number => logs.join(format!("{name}-{}", number + 1)),
            };
            self.start_chain(lab, chain, &users, folder, seed)
        };
        let chains = chains.into_iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(RunningServers { chains })
    }

    fn start_chain<'n>(
        &self,
        lab: &'n Lab,
        chain: &ServerChain,
        users: &[&Cell],
        folder: impl Fn(&str) -> PathBuf,
        seed: u64,
    ) -> Result<RunningChain<'n>, Outcome> {
        if let Some(remote) = &chain.remote {
            let remote = Some(self.open_relays(lab, chain, remote, users)?);
            return Ok(RunningChain { chain: chain.clone(), servers: Vec::new(), remote });
        }
        let pins = users.first().map_or(&self.plan.pins, |cell| self.plan.pins_of(cell));
        // A server starts after the one behind it, which it connects to.
        let mut behind: Vec<(Target, RunningServer<'n>)> = Vec::new();
        for (place, back) in chain.backs.iter().enumerate().rev() {
            let node = node_of(lab, &back.node)?;
            let identity = self.identity_of(node)?;
            let name = if place == 0 { BACK.to_owned() } else { format!("{BACK}-behind-{place}") };
            let spec = StartSpec {
                cpus: self.cores.of_server(place + 1, chain),
                threads: self.cores.of_server(place + 1, chain).len().max(1),
                set: &back.set,
                variants: &[back.variant],
                back: behind.last().map(|(target, _)| target),
                pins,
                folder: &folder(&name),
                ..self.start_spec(&identity, seed)
            };
            let server = self.adapter(&back.server)?.start(node, &spec)?;
            behind.push((target_of(&server, back.variant)?, server));
        }
        let variants: BTreeSet<Variant> = users.iter().flat_map(|cell| self.offered(cell)).collect();
        let node = node_of(lab, &chain.node)?;
        let identity = self.identity_of(node)?;
        let spec = StartSpec {
            cpus: self.cores.of_server(0, chain),
            threads: self.cores.of_server(0, chain).len().max(1),
            set: &chain.set,
            variants: &variants.into_iter().collect::<Vec<_>>(),
            back: behind.last().map(|(target, _)| target),
            pins,
            pages: &self.delivered(users),
            has_browsers: users.iter().any(|cell| self.is_browser(cell)),
            folder: &folder(FRONT),
            ..self.start_spec(&identity, seed)
        };
        let front = self.adapter(&chain.server)?.start(node, &spec)?;
        let backs = behind.into_iter().rev().map(|(_, server)| server);
        let servers = std::iter::once(front).chain(backs).collect();
        Ok(RunningChain { chain: chain.clone(), servers, remote: None })
    }

    /// The variants that the server of a cell offers: clients that follow Alt-Svc begin with HTTP/2.
    fn offered(&self, cell: &Cell) -> Vec<Variant> {
        let first = upgrades(self.plan, cell).then_some(Variant::H2);
        std::iter::once(cell.group.variant).chain(first).collect()
    }

    /// The study's pages, delivered as the workloads of these cells want it.
    fn delivered(&self, cells: &[&Cell]) -> Vec<Page> {
        let mut pages = self.pages.clone();
        for page in &mut pages {
            let mut loaded =
                cells.iter().filter_map(|cell| self.plan.workloads[cell.group.workload].workload.page());
            if let Some(wanted) = loaded.find(|loaded| loaded.name == page.name) {
                page.delivery = wanted.delivery.clone();
            }
        }
        pages
    }

    /// The certificate of a server in a node.
    ///
    /// # Errors
    /// The run's outcome: it cannot be signed.
    pub(crate) fn identity_of(&self, node: &Node) -> Result<Identity, Outcome> {
        let issue = || {
            let mut identity = self.authority.issue(&[SERVER_NAME], &[IpAddr::V4(node.addresses().v4)])?;
            for host in self.pages.iter().flat_map(|page| &page.hosts) {
                self.authority.add_host(&mut identity, host)?;
            }
            Ok(identity)
        };
        issue().map_err(failed(FailureKind::Server))
    }

    /// The parameters that the study's servers share; the others are those of a server without variants.
    pub(crate) fn start_spec<'s>(&'s self, identity: &'s Identity, seed: u64) -> StartSpec<'s> {
        StartSpec {
            folder: &self.content,
            tool: &self.program,
            variants: &[],
            pins: &self.plan.pins,
            set: &NO_SETTINGS,
            back: None,
            pages: &self.pages,
            media: &self.plan.media,
            content: &self.content,
            identity,
            server_name: SERVER_NAME,
            has_browsers: false,
            threads: self.cores.server.len().max(1),
            cpus: &self.cores.server,
            seed,
        }
    }

    fn is_browser(&self, cell: &Cell) -> bool {
        self.clients.get(&cell.group.client).is_some_and(ExternalClient::is_browser)
    }

    fn adapter(&self, name: &str) -> Result<&Adapter, Outcome> {
        let missing = || Outcome::failed(FailureKind::Server, format!("there is no server `{name}`"));
        self.servers.get(name).ok_or_else(missing)
    }
}

impl RunningServers<'_> {
    /// What the clients of a cell connect to: the server, then the further hosts of its page.
    ///
    /// # Errors
    /// The run's outcome: the front server does not serve the variant.
    pub(crate) fn targets(&self, study: &Study<'_>, cell: &Cell) -> Result<Vec<Target>, Outcome> {
        let missing =
            || Outcome::failed(FailureKind::Server, "its servers were not started: a fault of h123");
        let chain = self.chains.iter().find(|running| running.chain == cell.chain).ok_or_else(missing)?;
        match (&chain.remote, chain.servers.first()) {
            (Some(remote), _) => study.remote_targets(cell, remote),
            // The page's URL is that of HTTP/2.
            (None, Some(front)) if upgrades(study.plan, cell) => {
                let variant = cell.group.variant;
                Ok(vec![Target { variant, ..target_of(front, Variant::H2)? }])
            }
            (None, Some(front)) => {
                let target = target_of(front, cell.group.variant)?;
                let page = study.plan.workload_of(&cell.group).workload.page();
                // The server answers for all hosts of a page, at the default port of its URLs.
                let of_host = |host: &String| Target {
                    authority: host.clone(),
                    server_name: host.clone(),
                    ..target.clone()
                };
                let hosts: Vec<Target> = page.into_iter().flat_map(|page| &page.hosts).map(of_host).collect();
                Ok(if hosts.is_empty() { vec![target] } else { hosts })
            }
            (None, None) => Err(missing()),
        }
    }

    /// The servers whose own times are read.
    pub(crate) fn timed(&self) -> Vec<TimedServer> {
        let mut timed: Vec<TimedServer> = Vec::new();
        for RunningChain { chain, servers, .. } in &self.chains {
            let front = (&chain.node, &chain.server, None);
            let backs = chain.backs.iter().map(|back| (&back.node, &back.server, Some(back.variant)));
            let described = std::iter::once(front).chain(backs).zip(servers);
            for (place, ((node, name, variant), server)) in (0..).zip(described) {
                timed.push(TimedServer {
                    server: place,
                    report: timed.len(),
                    node: node.clone(),
                    name: name.clone(),
                    log: server.access_log(),
                    ports: server.ports(),
                    variant,
                });
            }
        }
        timed
    }

    /// Starts the account of what the servers cost.
    pub(crate) fn begin_measuring(&mut self) {
        self.chains.iter_mut().flat_map(|chain| &mut chain.servers).for_each(RunningServer::begin_measuring);
    }

    /// Waits up to `limit` for servers that are dying.
    ///
    /// # Errors
    /// A process cannot be watched.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> Result<(), Outcome> {
        // The wait for the first also gives the others their time.
        for (index, server) in self.chains.iter().flat_map(|chain| &chain.servers).enumerate() {
            let limit = if index == 0 { limit } else { Duration::ZERO };
            server.wait_for_end(limit).map_err(failed(FailureKind::Server))?;
        }
        Ok(())
    }

    /// Stops the servers, front servers first, and adds what each cost to `reports` in this order.
    ///
    /// # Errors
    /// The run's outcome if one had died, with the end of its log.
    pub(crate) fn stop(self, reports: &mut Vec<ServerReport>) -> Result<(), Outcome> {
        let mut outcome = Ok(());
        for server in self.chains.into_iter().flat_map(|chain| chain.servers) {
            let stopped = server.stop().map_err(failed(FailureKind::Server))?;
            reports.push(stopped.report);
            if let Some(how) = stopped.died {
                let reason = format!("the server died: {how}; its last words: {}", stopped.log_tail);
                outcome = outcome.and(Err(Outcome::failed(FailureKind::Server, reason)));
            }
        }
        outcome
    }
}

/// What clients of a server connect to for a variant.
///
/// # Errors
/// The run's outcome: it does not serve the variant.
pub(crate) fn target_of(server: &RunningServer<'_>, variant: Variant) -> Result<Target, Outcome> {
    let missing = || Outcome::failed(FailureKind::Server, format!("the server does not serve {variant}"));
    server.target(variant).ok_or_else(missing)
}
