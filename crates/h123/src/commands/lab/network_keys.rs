//! Keys of a network as options: of a network without a file, and of a change.

use anyhow::Result;
use clap::Args;
use model::study::Library;
use model::{Network, Topology};

use crate::exit::UsageError;
use crate::library::DataFiles;

/// The name of a network without a file.
pub(crate) const CUSTOM: &str = "custom";

/// Keys of a network; each has the form of the key in a network file.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkKeys {
    /// Round-trip time
    ///
    /// Example: --rtt 50ms
    #[arg(long, value_name = "DURATION")]
    rtt: Option<String>,
    /// Rate of both directions
    ///
    /// Example: --rate 10Mbit/s
    #[arg(long)]
    rate: Option<String>,
    /// Size of the link's queue: a duration, a size, packets, or bandwidth-delay products
    ///
    /// Example: --queue 100ms
    #[arg(long)]
    queue: Option<String>,
    /// Random loss in both directions
    ///
    /// Example: --loss 1%
    #[arg(long, value_name = "SHARE")]
    loss: Option<String>,
    /// Variation of the delay
    ///
    /// Example: --jitter 5ms
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// `blocked` drops UDP and with it QUIC; a rate drops what exceeds it
    ///
    /// Example: --udp blocked
    #[arg(long, value_name = "RULE")]
    udp: Option<String>,
    /// Keys of the direction from the client, as a table
    ///
    /// Example: --up '{ rate = "1Mbit/s" }'
    #[arg(long, value_name = "TABLE")]
    up: Option<String>,
    /// Keys of the direction to the client, as a table
    ///
    /// Example: --down '{ loss = "2%" }'
    #[arg(long, value_name = "TABLE")]
    down: Option<String>,
}

impl NetworkKeys {
    /// The ids of the options.
    pub(crate) const OPTIONS: [&str; 8] = ["rtt", "rate", "queue", "loss", "jitter", "udp", "up", "down"];

    /// The keys that are given, with their values.
    pub(crate) fn given(&self) -> Vec<(String, String)> {
        let values =
            [&self.rtt, &self.rate, &self.queue, &self.loss, &self.jitter, &self.udp, &self.up, &self.down];
        let given = Self::OPTIONS.iter().zip(values).filter_map(|(key, value)| Some((key, value.clone()?)));
        given.map(|(key, value)| ((*key).to_owned(), value)).collect()
    }

    /// A pair of nodes with a network of these keys alone.
    ///
    /// # Errors
    /// A value is wrong.
    pub(crate) fn pair(&self) -> Result<Topology> {
        let plain = Network {
            name: CUSTOM.to_owned(),
            title: "A network of the command line".to_owned(),
            source: "the command line".to_owned(),
            ..Network::default()
        };
        Ok(Topology::pair(&changed(&plain, &self.given())?))
    }

    /// Applies the keys to the only network of a topology.
    ///
    /// # Errors
    /// A value is wrong, or the topology has no network or several.
    pub(crate) fn apply(&self, topology: &mut Topology) -> Result<()> {
        let keys = self.given();
        let Some((first, _)) = keys.first() else { return Ok(()) };
        let mut networks = topology.links.iter_mut().filter_map(|link| link.network.as_mut());
        match (networks.next(), networks.next()) {
            (Some(only), None) => *only = changed(only, &keys)?,
            _ => {
                return Err(UsageError(format!(
                    "--{first} requires a topology with one network; describe the network in a file and name it with \
                     --network LINK=NETWORK"
                ))
                .into());
            }
        }
        Ok(())
    }
}

/// A network with these keys.
///
/// # Errors
/// A value is wrong.
pub(crate) fn changed(network: &Network, keys: &[(String, String)]) -> Result<Network> {
    let changed = network.changed(keys, &|trace| DataFiles::default().trace(trace));
    Ok(changed.map_err(|problem| UsageError(format!("command line: {problem}")))?)
}
