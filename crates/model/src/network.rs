//! Networks: what the way between two nodes does to packets, per direction.

use serde::{Deserialize, Serialize};

use crate::error::{InputError, Source};
use crate::units;

/// A network, resolved: what each direction does to a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The name that studies use.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the figures come from.
    pub source: String,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
}

/// What one direction does to a packet, in this order: loss, queue and rate, delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Propagation delay.
    pub delay_ns: u64,
    /// Rate of the link, counted over whole Ethernet frames without checksum (as netem counts); `None` is
    /// unlimited.
    pub rate_bits_per_s: Option<u64>,
    /// Waiting room before the rate; a packet that finds it full is dropped.
    pub queue: Queue,
    /// Share of packets lost independently, from 0 to 1.
    pub loss_share: f64,
}

/// The waiting room of a direction, drop-tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// At most so many packets, the one in transmission included.
    Packets(u64),
    /// At most so many bytes, the packet in transmission included.
    Bytes(u64),
}

impl Network {
    /// Sum of both propagation delays, in nanoseconds.
    pub const fn rtt_ns(&self) -> u64 {
        self.up.delay_ns + self.down.delay_ns
    }

    /// Whether it changes anything beyond handing packets over.
    pub fn is_impaired(&self) -> bool {
        [&self.up, &self.down].into_iter().any(|direction| {
            direction.delay_ns > 0 || direction.rate_bits_per_s.is_some() || direction.loss_share > 0.0
        })
    }

    /// Reads and resolves a network file (`networks/NAME.toml`).
    ///
    /// # Errors
    /// File, line and column of an unknown key, a bad unit or a contradiction.
    pub fn parse(name: &str, source: Source<'_>) -> Result<Network, InputError> {
        let written: written::Network = toml::from_str(source.text).map_err(|e| source.toml_error(&e))?;
        written.resolve(name, source)
    }
}

/// One line such as `RTT 150 ms, 50 Mbit/s, queue 937500 B`, for tables and reports.
pub fn describe(network: &Network) -> String {
    let mut parts = vec![format!("RTT {}", units::format_duration_ns(as_f64(network.rtt_ns())))];
    let rate = |direction: &Direction| {
        direction.rate_bits_per_s.map_or("no rate limit".to_owned(), |r| units::format_rate(as_f64(r)))
    };
    parts.push(if network.up.rate_bits_per_s == network.down.rate_bits_per_s {
        rate(&network.down)
    } else {
        format!("{} down, {} up", rate(&network.down), rate(&network.up))
    });
    if network.down.rate_bits_per_s.is_some() {
        parts.push(match network.down.queue {
            Queue::Packets(packets) => format!("queue {packets} packets"),
            Queue::Bytes(bytes) => format!("queue {}", units::format_bytes(as_f64(bytes))),
        });
    }
    for (direction, word) in [(&network.up, "up"), (&network.down, "down")] {
        if direction.loss_share > 0.0 {
            parts.push(format!("{}% loss {word}", units::three_digits(direction.loss_share * 100.0)));
        }
    }
    parts.join(", ")
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

/// The file as written.
mod written {
    use super::{Direction, InputError, Queue, Source};
    use crate::units;
    use serde::Deserialize;
    use toml::Spanned;

    const DEFAULT_QUEUE_PACKETS: u64 = 1000;
    const BITS_PER_BYTE: u128 = 8;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Network {
        title: String,
        source: String,
        rtt: Option<Spanned<String>>,
        rate: Option<Spanned<String>>,
        queue: Option<Spanned<String>>,
        loss: Option<Spanned<String>>,
        #[serde(default)]
        up: OneWay,
        #[serde(default)]
        down: OneWay,
    }

    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct OneWay {
        delay: Option<Spanned<String>>,
        rate: Option<Spanned<String>>,
        queue: Option<Spanned<String>>,
        loss: Option<Spanned<String>>,
    }

    impl Network {
        pub(super) fn resolve(self, name: &str, source: Source<'_>) -> Result<super::Network, InputError> {
            let delay = |one_way: &OneWay, way: &str| match (&one_way.delay, &self.rtt) {
                (Some(delay), Some(_)) => Err(source.error(
                    delay.span(),
                    format!("found both `rtt` and `{way}.delay`, expected one: `rtt` is split evenly"),
                )),
                (Some(delay), None) => read(source, delay, units::parse_duration_ns),
                (None, Some(rtt)) => Ok(read(source, rtt, units::parse_duration_ns)? / 2),
                (None, None) => Ok(0),
            };
            let (up_delay_ns, down_delay_ns) = (delay(&self.up, "up")?, delay(&self.down, "down")?);
            let rtt_ns = up_delay_ns + down_delay_ns;
            let direction = |one_way: &OneWay, delay_ns: u64| -> Result<Direction, InputError> {
                let rate = one_way.rate.as_ref().or(self.rate.as_ref());
                let rate_bits_per_s =
                    rate.map(|text| read(source, text, units::parse_rate_bits_per_s)).transpose()?;
                if let (Some(text), Some(0)) = (rate, rate_bits_per_s) {
                    return Err(source.error(text.span(), "found a rate of 0, expected more than 0"));
                }
                let queue = match one_way.queue.as_ref().or(self.queue.as_ref()) {
                    Some(text) => {
                        let parse = |text: &str| parse_queue(text, rtt_ns, rate_bits_per_s);
                        read(source, text, parse)?
                    }
                    None => Queue::Packets(DEFAULT_QUEUE_PACKETS),
                };
                let loss = one_way.loss.as_ref().or(self.loss.as_ref());
                let loss_share =
                    loss.map(|text| read(source, text, units::parse_share)).transpose()?.unwrap_or(0.0);
                Ok(Direction { delay_ns, rate_bits_per_s, queue, loss_share })
            };
            let (up, down) = (direction(&self.up, up_delay_ns)?, direction(&self.down, down_delay_ns)?);
            Ok(super::Network { name: name.to_owned(), title: self.title, source: self.source, up, down })
        }
    }

    fn read<T>(
        source: Source<'_>,
        text: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, InputError> {
        parse(text.get_ref()).map_err(|problem| source.error(text.span(), problem))
    }

    /// `100 packets`, `64kB`, or `1bdp` (bandwidth-delay product of this direction's rate and the whole RTT).
    fn parse_queue(text: &str, rtt_ns: u64, rate_bits_per_s: Option<u64>) -> Result<Queue, String> {
        let fault = || format!("found `{text}`, expected a queue such as `100 packets`, `64kB` or `1bdp`");
        if let Some(number) = text.strip_suffix("packets") {
            let packets: u64 = number.trim().parse().map_err(|_| fault())?;
            return if packets > 0 { Ok(Queue::Packets(packets)) } else { Err(fault()) };
        }
        if let Some(number) = text.strip_suffix("bdp") {
            let factor: f64 = number.trim().parse().map_err(|_| fault())?;
            let rate = rate_bits_per_s
                .ok_or_else(|| format!("found `{text}` without a `rate`, expected a rate or another unit"))?;
            let bdp_bytes =
                u128::from(rate) * u128::from(rtt_ns) / u128::from(units::NANOS_PER_S) / BITS_PER_BYTE;
            #[expect(clippy::cast_precision_loss, reason = "a queue's size needs no more than 53 bits")]
            #[expect(
                clippy::cast_possible_truncation,
                reason = "saturates, and a queue so large is no limit"
            )]
            #[expect(clippy::cast_sign_loss, reason = "checked to be positive below")]
            let bytes = (bdp_bytes as f64 * factor) as u64;
            return if factor > 0.0 { Ok(Queue::Bytes(bytes.max(1514))) } else { Err(fault()) };
        }
        units::parse_size_bytes(text).map(Queue::Bytes).map_err(|_| fault())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Network, String> {
        Network::parse("n", Source { file: "n.toml", text }).map_err(|e| e.to_string())
    }

    #[test]
    fn rtt_is_split_and_bdp_resolved() {
        let network =
            parse("title = 'x'\nsource = 'y'\nrtt = '150ms'\nrate = '50Mbit/s'\nqueue = '1bdp'\n").unwrap();
        assert_eq!(network.rtt_ns(), 150_000_000);
        assert_eq!(network.up.delay_ns, 75_000_000);
        assert_eq!(network.down.queue, Queue::Bytes(937_500));
        assert_eq!(describe(&network), "RTT 150 ms, 50 Mbit/s, queue 938 kB");
    }

    #[test]
    fn faults_name_the_place() {
        let head = "title = 'x'\nsource = 'y'\n";
        let fault = |line: &str| parse(&format!("{head}{line}\n")).unwrap_err();
        assert!(fault("rtt = '150'").starts_with("n.toml:3:7: found `150`, expected a duration"));
        assert!(fault("queue = '1bdp'").contains("without a `rate`"));
        assert!(fault("speed = 1").starts_with("n.toml:3:1: unknown field `speed`"));
        assert!(fault("rtt = '1ms'\n[up]\ndelay = '1ms'").contains("both `rtt` and `up.delay`"));
        assert!(fault("rate = '0Mbit/s'").contains("expected more than 0"));
        assert!(fault("loss = '120%'").contains("expected a share"));
    }
}
