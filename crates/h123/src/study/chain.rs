//! A run's servers: the one that clients ask and, where that is a proxy, the one behind it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use drive::{Adapter, RunningServer, StartSpec, Support};
use lab::{Lab, Node};
use model::assignment::Target;
use model::plan::ServerChain;
use model::record::ServerReport;
use model::sample::{FailureKind, Outcome};
use model::{Cell, Settings, Variant};

use crate::study::run::{SERVER_NAME, SERVER_THREADS, Study, tool_failed};
use crate::study::server_time::AskedServer;

/// Where configuration and logs of the server that clients ask are, in the run's folder of logs.
const FRONT: &str = "server";
/// The same for the server behind a proxy.
const BACK: &str = "back";

/// Every server of a run, ready; dropping it kills them.
#[derive(Debug)]
pub(crate) struct RunningChain<'n> {
    /// First the one that clients ask.
    servers: Vec<RunningServer<'n>>,
}

/// One server of a chain.
struct Link<'a> {
    node: &'a str,
    server: &'a str,
    set: &'a Settings,
    variants: &'a [Variant],
    back: Option<&'a Target>,
}

impl Study<'_> {
    /// Why the cell's servers cannot be had here, if they cannot.
    pub(crate) fn unsupported(&self, cell: &Cell) -> Option<String> {
        let of_adapter = |server: &str, variant: Variant| {
            let adapter = self.servers.get(server)?;
            if let Support::Unsupported(reason) = adapter.probe(&self.program).ok()?.support(variant) {
                return Some(reason);
            }
            adapter.refuses(variant, self.plan.pins_of(cell))
        };
        let fronts =
            cell.clients.iter().map(|group| (cell.chains[group.chain].server.as_str(), group.variant));
        let backs = cell.chains.iter().filter_map(|chain| chain.back.as_ref());
        let backs = backs.map(|back| (back.server.as_str(), back.variant));
        fronts.chain(backs).find_map(|(server, variant)| of_adapter(server, variant))
    }

    /// Starts the cell's servers, the last of the chain first, and waits until all are ready.
    ///
    /// # Errors
    /// The run's outcome, as [`Adapter::start`] gives it.
    pub(crate) fn start_chain<'n>(
        &self,
        lab: &'n Lab,
        cell: &Cell,
        logs: &Path,
        seed: u64,
    ) -> Result<RunningChain<'n>, Outcome> {
        let chain = &cell.chains[0];
        let back = match &chain.back {
            None => None,
            Some(back) => {
                let link = Link {
                    node: &back.node,
                    server: &back.server,
                    set: &back.set,
                    variants: &[back.variant],
                    back: None,
                };
                let server = self.start_link(lab, cell, &link, &logs.join(BACK), seed)?;
                let target = server.target(back.variant).ok_or_else(|| {
                    let reason = format!("the server {} was not asked for {}", back.server, back.variant);
                    Outcome::failed(FailureKind::Server, reason)
                })?;
                Some((server, target))
            }
        };
        let front =
            self.start_front(lab, cell, chain, back.as_ref().map(|(_, target)| target), logs, seed)?;
        Ok(RunningChain { servers: [front].into_iter().chain(back.map(|(server, _)| server)).collect() })
    }

    fn start_front<'n>(
        &self,
        lab: &'n Lab,
        cell: &Cell,
        chain: &ServerChain,
        back: Option<&Target>,
        logs: &Path,
        seed: u64,
    ) -> Result<RunningServer<'n>, Outcome> {
        let variants: BTreeSet<Variant> = cell.clients.iter().map(|group| group.variant).collect();
        let variants: Vec<Variant> = variants.into_iter().collect();
        let link =
            Link { node: &chain.node, server: &chain.server, set: &chain.set, variants: &variants, back };
        self.start_link(lab, cell, &link, &logs.join(FRONT), seed)
    }

    fn start_link<'n>(
        &self,
        lab: &'n Lab,
        cell: &Cell,
        link: &Link<'_>,
        folder: &Path,
        seed: u64,
    ) -> Result<RunningServer<'n>, Outcome> {
        let missing =
            |kind, what: &str, name: &str| Outcome::failed(kind, format!("there is no {what} `{name}`"));
        let adapter: &Adapter = self
            .servers
            .get(link.server)
            .ok_or_else(|| missing(FailureKind::Server, "server", link.server))?;
        let node: &Node = lab.node(link.node).ok_or_else(|| missing(FailureKind::Lab, "node", link.node))?;
        let address = IpAddr::V4(node.addresses().v4);
        let identity = self.authority.issue(&[SERVER_NAME], &[address]);
        let spec = StartSpec {
            folder,
            tool: &self.program,
            variants: link.variants,
            pins: self.plan.pins_of(cell),
            set: link.set,
            back: link.back,
            pages: &self.pages,
            content: &self.content,
            identity: &identity.map_err(|error| tool_failed(FailureKind::Server, &error))?,
            server_name: SERVER_NAME,
            threads: SERVER_THREADS,
            cpus: &self.cores.server,
            seed,
        };
        adapter.start(node, &spec)
    }
}

impl RunningChain<'_> {
    /// Where clients find a variant; `None` where it was not asked for.
    pub(crate) fn target(&self, variant: Variant) -> Option<Target> {
        self.servers.first()?.target(variant)
    }

    /// The servers as whoever wants their own times has to know them, from the clients on.
    pub(crate) fn asked(&self, chain: &ServerChain) -> Vec<AskedServer> {
        let front = (&chain.node, &chain.server, None);
        let back = chain.back.as_ref().map(|back| (&back.node, &back.server, Some(back.variant)));
        let links = [front].into_iter().chain(back).zip(&self.servers);
        let asked = |(place, ((node, name, variant), server)): (u16, (_, &RunningServer<'_>))| {
            let (node, name): (&String, &String) = (node, name);
            AskedServer {
                server: place,
                node: node.clone(),
                name: name.clone(),
                log: server.access_log(),
                ports: server.ports(),
                variant,
            }
        };
        (0..).zip(links).map(asked).collect()
    }

    /// What the servers cost counts from now on.
    pub(crate) fn begin_measuring(&mut self) {
        for server in &mut self.servers {
            server.begin_measuring();
        }
    }

    /// Waits a little for a server that is dying.
    ///
    /// # Errors
    /// A process cannot be watched.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> Result<(), Outcome> {
        // While one is waited for, the others' time passes too.
        for (index, server) in self.servers.iter().enumerate() {
            let limit = if index == 0 { limit } else { Duration::ZERO };
            server.wait_for_end(limit).map_err(|error| tool_failed(FailureKind::Server, &error))?;
        }
        Ok(())
    }

    /// Ends them, first the one that clients ask; what each cost comes into `reports` in this order.
    ///
    /// # Errors
    /// The run's outcome where one had died, with its last words.
    pub(crate) fn stop(self, reports: &mut Vec<ServerReport>) -> Result<(), Outcome> {
        let mut outcome = Ok(());
        for server in self.servers {
            let stopped = server.stop().map_err(|error| tool_failed(FailureKind::Server, &error))?;
            reports.push(stopped.report);
            if let Some(how) = stopped.died {
                let words = stopped.log_tail;
                let reason = format!("the server died: {how}; its last words: {words}");
                outcome = outcome.and(Err(Outcome::failed(FailureKind::Server, reason)));
            }
        }
        outcome
    }
}
