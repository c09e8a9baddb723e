//! The servers of a study that h123 does not start: what they offer, and the relays that stand for them in
//! the lab.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use drive::outside::{Offer, discover, target};
use lab::{Lab, Relay};
use model::assignment::{Target, Trust};
use model::options::{PathOptions, RequestOptions};
use model::plan::{Remote, ServerChain};
use model::sample::{FailureKind, Outcome};
use model::url::Url;
use model::{Cell, Page, Plan, Variant};

use crate::connect::advice;
use crate::exit::UsageError;
use crate::study::chain::upgrades;
use crate::study::{Study, failed, node_of};
use crate::terminal::note;

/// What the servers outside offer, by their origins.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    offers: BTreeMap<String, Offer>,
}

impl Outside {
    /// Asks every server outside that the plan uses, before anything is started.
    ///
    /// # Errors
    /// A [`UsageError`]: one does not answer, or its certificate is not trusted.
    pub(crate) fn discover(plan: &Plan, stop: &AtomicBool) -> Result<Outside, UsageError> {
        let mut outside = Outside::default();
        for (cell, remote) in plan.remote_cells() {
            let page = plan.workload_of(&cell.group).workload.page();
            let further = page.into_iter().flat_map(further_origins);
            for url in std::iter::once(&remote.url).chain(further) {
                outside.ask(plan, cell, remote, url, stop)?;
            }
        }
        Ok(outside)
    }

    fn ask(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        remote: &Remote,
        url: &Url,
        stop: &AtomicBool,
    ) -> Result<(), UsageError> {
        if self.offers.contains_key(&url.origin()) {
            return Ok(());
        }
        let is_main = *url == remote.url;
        // A further host answers in another version where it does not offer the cell's.
        let wanted: Vec<Variant> = match is_main {
            true => plan.remote_cells().flat_map(|(cell, _)| spoken(plan, cell)).collect(),
            false => Variant::ALL.to_vec(),
        };
        let offer = discover(url, &remote.trust, &wanted, plan.pins_of(cell), stop);
        let offer = offer.map_err(|error| UsageError(fault(cell, url, is_main, &error.0)))?;
        offer.notes.iter().for_each(|text| note(false, text));
        self.offers.insert(url.origin(), offer);
        Ok(())
    }

    /// What every server was found to offer, for people: `https://a.test at 192.0.2.1:443: h1s, h2`.
    pub(crate) fn describe(&self) -> Vec<(String, String)> {
        let describe = |(origin, offer): (&String, &Offer)| {
            let known = offer.variants.iter().map(|(variant, found)| match found {
                Ok(_) => variant.to_string(),
                Err(_) => format!("no {variant}"),
            });
            (
                format!("outside {origin}"),
                format!("{}: {}", offer.address, known.collect::<Vec<_>>().join(", ")),
            )
        };
        self.offers.iter().map(describe).collect()
    }

    /// The hashes of the keys that the system does not trust, separated by commas. Chromium ignores the
    /// Alt-Svc of a server whose certificate has an error, but finds none in that of a known key.
    pub(crate) fn key_hashes(&self) -> String {
        let offers = self.offers.values().filter(|offer| offer.trust != Trust::System);
        let hashes: BTreeSet<&str> = offers.filter_map(|offer| offer.key_hash.as_deref()).collect();
        hashes.into_iter().collect::<Vec<_>>().join(",")
    }

    fn offer(&self, url: &Url) -> Result<&Offer, String> {
        self.offers.get(&url.origin()).ok_or_else(|| format!("{} was not asked what it offers", url.origin()))
    }

    /// Why a server outside does not offer a cell's variant, if so.
    pub(crate) fn unsupported(&self, remote: &Remote, variant: Variant) -> Option<String> {
        let found = self.offer(&remote.url).and_then(|offer| offer.endpoint(variant));
        found.err().map(|reason| format!("{} does not offer {variant}: {reason}", remote.url.origin()))
    }
}

/// The variants that the clients of a cell speak, the first visit's first.
fn spoken(plan: &Plan, cell: &Cell) -> impl Iterator<Item = Variant> + use<> {
    let first = upgrades(plan, cell).then_some(Variant::H2);
    first.into_iter().chain([cell.group.variant])
}

/// The error of a server that cannot be used.
fn fault(cell: &Cell, url: &Url, is_main: bool, reason: &str) -> String {
    let server = &cell.chain.server;
    let key = |key: &str| format!("`{key}` in `[server.{server}]`");
    let remedy = if let Some(advice) = advice::on_site(reason, &key("cacert"), &key("insecure")) {
        advice
    } else if reason.contains("ProtocolVersion") {
        "it lacks the TLS version that `[hold]` fixes: change `tls_version`".to_owned()
    } else if is_main {
        "check that the URL opens from this machine (`h123 trace URL`)".to_owned()
    } else {
        format!("remove the resources of {} from the page", url.origin())
    };
    format!("the server `{server}` at {url} cannot be measured: {reason}; {remedy}")
}

/// The origins of a page beside that of its document.
fn further_origins(page: &Page) -> impl Iterator<Item = &Url> {
    page.origins.iter().skip(1)
}

/// A server outside, reachable in a run.
#[derive(Debug)]
pub(crate) struct RemoteChain {
    /// Forward from the chain's node; none where the clients are on this machine's own network.
    relays: Vec<Relay>,
    remote: Remote,
}

impl Study<'_> {
    /// Opens the relays that the users of a chain need.
    ///
    /// # Errors
    /// The run's outcome: no port is free.
    pub(crate) fn open_relays(
        &self,
        lab: &Lab,
        chain: &ServerChain,
        remote: &Remote,
        users: &[&Cell],
    ) -> Result<RemoteChain, Outcome> {
        let mut relays: Vec<Relay> = Vec::new();
        if let Some(first) = users.first().filter(|_| self.emulated && lab.is_emulated()) {
            let node = node_of(lab, &chain.node)?;
            let addresses = self.plan.relays_of(first);
            for cell in users {
                for variant in spoken(self.plan, cell) {
                    for (url, variant) in self.endpoints(cell, remote, variant)? {
                        let to = self.endpoint(&url, variant)?;
                        if relays.iter().all(|relay| relay.to() != to) {
                            relays.push(Relay::open(node, &addresses, to.port(), to)?);
                        }
                    }
                }
            }
        }
        Ok(RemoteChain { relays, remote: remote.clone() })
    }

    fn endpoint(&self, url: &Url, variant: Variant) -> Result<std::net::SocketAddr, Outcome> {
        let found = self.outside.offer(url).and_then(|offer| offer.endpoint(variant));
        found.map_err(|reason| Outcome::failed(FailureKind::Server, reason))
    }

    /// The hosts of a cell, the server first, each with its variant: this one, or the best below it.
    fn endpoints(
        &self,
        cell: &Cell,
        remote: &Remote,
        variant: Variant,
    ) -> Result<Vec<(Url, Variant)>, Outcome> {
        let mut all = vec![(remote.url.clone(), variant)];
        let page = self.plan.workload_of(&cell.group).workload.page();
        for url in page.into_iter().flat_map(further_origins) {
            let offer = self
                .outside
                .offer(url)
                .map_err(|reason| failed(FailureKind::Server)(anyhow::Error::msg(reason)))?;
            let variants = [variant, Variant::H2, Variant::H1s, Variant::H1];
            let found = variants.into_iter().find(|variant| offer.endpoint(*variant).is_ok());
            all.extend(found.map(|variant| (url.clone(), variant)));
        }
        Ok(all)
    }

    /// What clients of a cell connect to: the server, then the further hosts of its page. The URL of clients
    /// that follow Alt-Svc is that of their first visit.
    ///
    /// # Errors
    /// The run's outcome: a host has no relay.
    pub(crate) fn remote_targets(&self, cell: &Cell, chain: &RemoteChain) -> Result<Vec<Target>, Outcome> {
        let to_target = |(url, variant): (Url, Variant)| {
            let to = self.endpoint(&url, variant)?;
            let relay = chain.relays.iter().find(|relay| relay.to() == to);
            let address = relay.map_or(to, Relay::address);
            let offer = self.outside.offer(&url);
            let offer = offer.map_err(|reason| Outcome::failed(FailureKind::Server, reason))?;
            Ok::<Target, Outcome>(target(&url, variant, address, &offer.trust))
        };
        let begins = spoken(self.plan, cell).next().unwrap_or(cell.group.variant);
        let endpoints = self.endpoints(cell, &chain.remote, begins)?;
        let mut targets: Vec<Target> = endpoints.into_iter().map(to_target).collect::<Result<_, _>>()?;
        if let Some(main) = targets.first_mut() {
            main.variant = cell.group.variant;
        }
        Ok(targets)
    }

    /// Adds the further hosts of a cell's page to the options of its clients.
    pub(crate) fn add_hosts(&self, cell: &Cell, further: Vec<Target>, requests: &mut RequestOptions) {
        let page = self.plan.workload_of(&cell.group).workload.page();
        if let Some(page) = page.filter(|_| !further.is_empty()) {
            let of_resource = |origin: u16| PathOptions { target: origin, ..PathOptions::default() };
            requests.paths = page.resources.iter().map(|resource| of_resource(resource.origin)).collect();
            requests.further_targets = further;
        }
    }
}

/// Keeps the distance between runs that their servers outside ask for.
#[derive(Debug, Default)]
pub(crate) struct Rests {
    /// When the latest run began, and how long the next one has to wait from then.
    latest: Option<(Instant, Duration)>,
}

impl Rests {
    /// Waits until a run may begin; false if the user interrupted the study.
    pub(crate) fn wait(&mut self, plan: &Plan, first: u32, stop: &AtomicBool) -> bool {
        const PORTION: Duration = Duration::from_millis(50);
        let rest = Duration::from_nanos(plan.rest_ns(first));
        if let Some((began, before)) = self.latest.filter(|_| !rest.is_zero()) {
            while let Some(left) = before.checked_sub(began.elapsed()) {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return false;
                }
                std::thread::sleep(left.min(PORTION));
            }
        }
        if !rest.is_zero() {
            self.latest = Some((Instant::now(), rest));
        }
        true
    }
}
