//! The servers of a run: those that clients connect to and, behind a proxy, the next ones.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use drive::{Adapter, Identity, RunningServer, StartSpec, Support};
use lab::{Lab, Node};
use model::assignment::Target;
use model::plan::{BackServer, ServerChain};
use model::record::ServerReport;
use model::sample::{FailureKind, Outcome};
use model::tunable::NO_SETTINGS;
use model::{Cell, Variant};

use crate::study::server_time::TimedServer;
use crate::study::{SERVER_NAME, SERVER_THREADS, Study, failed};

/// The folders of the front server and of the server behind it, in the run's folder of logs; of further
/// chains with a number.
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
    /// The front server first.
    servers: Vec<RunningServer<'n>>,
}

impl Study<'_> {
    /// Why the servers of a cell cannot run here, if they cannot.
    pub(crate) fn unsupported_by_servers(&self, cell: &Cell) -> Option<String> {
        let of_server = |(server, variant): (&str, Variant)| {
            let adapter = self.servers.get(server)?;
            if let Support::Unsupported(reason) = adapter.probe(&self.program).ok()?.support(variant) {
                return Some(reason);
            }
            adapter.refuses(variant, self.plan.pins_of(cell))
        };
        let front = (cell.chain.server.as_str(), cell.group.variant);
        let back = cell.chain.back.as_ref().map(|back| (back.server.as_str(), back.variant));
        [Some(front), back].into_iter().flatten().find_map(of_server)
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
            self.start_chain(lab, chain, &users, [&folder(FRONT), &folder(BACK)], seed)
        };
        let chains = chains.into_iter().enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(RunningServers { chains })
    }

    fn start_chain<'n>(
        &self,
        lab: &'n Lab,
        chain: &ServerChain,
        users: &[&Cell],
        [front_folder, back_folder]: [&Path; 2],
        seed: u64,
    ) -> Result<RunningChain<'n>, Outcome> {
        let pins = users.first().map_or(&self.plan.pins, |cell| self.plan.pins_of(cell));
        let start_back = |back: &BackServer| -> Result<_, Outcome> {
            let node = node_of(lab, &back.node)?;
            let identity = self.identity_of(node)?;
            let spec = StartSpec {
                set: &back.set,
                variants: &[back.variant],
                pins,
                folder: back_folder,
                ..self.start_spec(&identity, seed)
            };
            let server = self.adapter(&back.server)?.start(node, &spec)?;
            Ok((target_of(&server, back.variant)?, server))
        };
        let back = chain.back.as_ref().map(start_back).transpose()?;
        let variants: BTreeSet<Variant> = users.iter().map(|cell| cell.group.variant).collect();
        let node = node_of(lab, &chain.node)?;
        let identity = self.identity_of(node)?;
        let spec = StartSpec {
            set: &chain.set,
            variants: &variants.into_iter().collect::<Vec<_>>(),
            back: back.as_ref().map(|(target, _)| target),
            pins,
            folder: front_folder,
            ..self.start_spec(&identity, seed)
        };
        let front = self.adapter(&chain.server)?.start(node, &spec)?;
        let servers = [front].into_iter().chain(back.map(|(_, server)| server)).collect();
        Ok(RunningChain { chain: chain.clone(), servers })
    }

    /// The certificate of a server in a node.
    ///
    /// # Errors
    /// The run's outcome: it cannot be signed.
    pub(crate) fn identity_of(&self, node: &Node) -> Result<Identity, Outcome> {
        let identity = self.authority.issue(&[SERVER_NAME], &[IpAddr::V4(node.addresses().v4)]);
        identity.map_err(failed(FailureKind::Server))
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
            content: &self.content,
            identity,
            server_name: SERVER_NAME,
            threads: SERVER_THREADS,
            cpus: &self.cores.server,
            seed,
        }
    }

    fn adapter(&self, name: &str) -> Result<&Adapter, Outcome> {
        let missing = || Outcome::failed(FailureKind::Server, format!("there is no server `{name}`"));
        self.servers.get(name).ok_or_else(missing)
    }
}

impl RunningServers<'_> {
    /// What the clients of a cell connect to.
    ///
    /// # Errors
    /// The run's outcome: the front server does not serve the variant.
    pub(crate) fn target(&self, cell: &Cell) -> Result<Target, Outcome> {
        let missing =
            || Outcome::failed(FailureKind::Server, "its servers were not started: a fault of h123");
        let chain = self.chains.iter().find(|running| running.chain == cell.chain).ok_or_else(missing)?;
        target_of(&chain.servers[0], cell.group.variant)
    }

    /// The servers whose own times are read.
    pub(crate) fn timed(&self) -> Vec<TimedServer> {
        let mut timed: Vec<TimedServer> = Vec::new();
        for RunningChain { chain, servers } in &self.chains {
            let front = (&chain.node, &chain.server, None);
            let back = chain.back.as_ref().map(|back| (&back.node, &back.server, Some(back.variant)));
            let described = [front].into_iter().chain(back).zip(servers);
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

/// A node of the lab.
///
/// # Errors
/// The run's outcome: the lab has no such node.
pub(crate) fn node_of<'n>(lab: &'n Lab, name: &str) -> Result<&'n Node, Outcome> {
    let missing = || Outcome::failed(FailureKind::Lab, format!("there is no node `{name}`"));
    lab.node(name).ok_or_else(missing)
}

/// What clients of a server connect to for a variant.
///
/// # Errors
/// The run's outcome: it does not serve the variant.
pub(crate) fn target_of(server: &RunningServer<'_>, variant: Variant) -> Result<Target, Outcome> {
    let missing = || Outcome::failed(FailureKind::Server, format!("the server does not serve {variant}"));
    server.target(variant).ok_or_else(missing)
}
