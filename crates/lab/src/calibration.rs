//! Reference measurements of an emulated network: its round trip before each run, its rates and losses once.

use model::network::Direction;
use model::record::{Calibration, NetworkCalibration, StreamCalibration};
use model::{Network, Topology};
use path::{LinkDirection, Seeds};

use crate::error::LabError;
use crate::node::Node;
use crate::streams::Train;
use crate::{Lab, Link, probe};

impl Lab {
    /// Measures round trips on the empty path from the client to the server, over the deterministic part of
    /// each network on the route (delay and constant rate); `None` where nothing is emulated there. It
    /// consumes no randomness of the run.
    ///
    /// # Errors
    /// The emulator or a socket failed.
    pub fn calibrate(&self, probes: u32) -> Result<Option<Calibration>, LabError> {
        let route: Vec<&Link> = self.route.iter().map(|index| &self.links[*index]).collect();
        self.calibrate_path([self.client(), self.server()], &route, probes)
    }

    /// The same on the route between the client and the server that `topology` chooses: this lab's, with
    /// another choice.
    ///
    /// # Errors
    /// As [`Lab::calibrate`].
    pub fn calibrate_route(&self, topology: &Topology, probes: u32) -> Result<Option<Calibration>, LabError> {
        let hops = topology.route().unwrap_or_default();
        let names = hops.iter().map(|hop| topology.links[hop.link].name.as_str());
        let route: Vec<&Link> =
            names.filter_map(|name| self.links.iter().find(|link| link.name == name)).collect();
        let ends = [topology.client, topology.server].map(|node| self.node(&topology.nodes[node].name));
        let [Some(client), Some(server)] = ends else { return Ok(None) };
        self.calibrate_path([client, server], &route, probes)
    }

    fn calibrate_path(
        &self,
        [client, server]: [&Node; 2],
        route: &[&Link],
        probes: u32,
    ) -> Result<Option<Calibration>, LabError> {
        if route.is_empty() {
            return Ok(None);
        }
        let links = || route.iter().copied();
        let networks: Vec<Network> = links().map(|link| link.network().certain()).collect();
        for (link, certain) in links().zip(&networks) {
            link.emulator.restart(certain, seeds(link))?;
        }
        let calibration = probe::round_trips(client, server, &networks, probes)?;
        for link in links() {
            link.restart()?;
        }
        Ok(Some(calibration))
    }

    /// Measures rate and loss separately in both directions, to compare them with the configuration; `None`
    /// where there is not exactly one emulated link. It takes a few seconds at most and consumes no
    /// randomness of the run.
    ///
    /// # Errors
    /// The emulator or a socket failed.
    pub fn calibrate_network(&self) -> Result<Option<NetworkCalibration>, LabError> {
        let [link] = self.links.as_slice() else { return Ok(None) };
        let network = link.network();
        let up = link.reference_measurement(&network.up, [self.client(), self.server()])?;
        let down = link.reference_measurement(&network.down, [self.server(), self.client()])?;
        link.restart()?;
        let (network, backend) = (network.name, link.emulator.backend());
        Ok(Some(NetworkCalibration { network, backend, up, down }))
    }
}

impl Link {
    fn reference_measurement(
        &self,
        direction: &Direction,
        [from, to]: [&Node; 2],
    ) -> Result<StreamCalibration, LabError> {
        let alone = |direction: &Direction| {
            let (up, down) = (direction.clone(), direction.clone());
            self.emulator.restart(&Network { up, down, ..Network::default() }, seeds(self))
        };
        let certain = direction.certain();
        let rate = match Train::of_rate(&certain, self.mtu_bytes) {
            Some(train) => {
                alone(&certain)?;
                train.rate(&certain, &train.send(from, to)?)
            }
            None => None,
        };
        let (loss, lost_packets) = (direction.loss, direction.lost_packets.clone());
        let losing = Direction { loss, lost_packets, ..Direction::default() };
        alone(&losing)?;
        let train = Train::of_loss(&losing);
        let loss = train.loss(&losing, &train.send(from, to)?);
        Ok(StreamCalibration { rate, loss })
    }
}

/// The seeds of the calibration's random streams.
fn seeds(link: &Link) -> [Seeds; 2] {
    [LinkDirection::Up, LinkDirection::Down].map(|direction| Seeds::calibration(link.seed, direction))
}
