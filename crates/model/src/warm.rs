//! How long a server is used before each run is measured.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::{NANOS_PER_S, format_ns, parse_duration_ns};
use crate::workload::{ClosedLoop, LoopLoad, Workload};

const REQUESTS: RangeInclusive<u64> = 1..=10_000_000;
const LONGEST_NS: u64 = 600 * NANOS_PER_S;
/// The least connections: a server with several workers warms more than one of them.
const LEAST_CONNECTIONS: u32 = 4;
/// A guess, for the progress bar only: what a warm-up by number takes for each request.
const EXPECTED_REQUEST_NS: u64 = 200_000;

/// How long a separate client uses a server before each run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerWarmUp {
    /// Until this many responses have ended.
    Requests(u64),
    /// For this many nanoseconds.
    ForNs(u64),
}

impl FromStr for ServerWarmUp {
    type Err = String;

    /// Reads `500 requests`, or a duration such as `2s`.
    fn from_str(text: &str) -> Result<ServerWarmUp, String> {
        let number = text.strip_suffix("requests").or_else(|| text.strip_suffix("request"));
        if let Some(number) = number {
            let requests = number.trim().parse().ok().filter(|requests| REQUESTS.contains(requests));
            let (least, most) = (REQUESTS.start(), REQUESTS.end());
            return requests.map(ServerWarmUp::Requests).ok_or_else(|| {
                format!(
                    "`{text}` is not a number of requests; write {least} to {most}, such as `500 requests`"
                )
            });
        }
        match parse_duration_ns(text) {
            Ok(ns) if (1..=LONGEST_NS).contains(&ns) => Ok(ServerWarmUp::ForNs(ns)),
            Ok(_) => Err(format!(
                "`{text}` is out of range; write more than 0 s, at most {}",
                format_ns(LONGEST_NS)
            )),
            Err(_) => Err(format!(
                "`{text}` is neither a number of requests nor a duration; write `500 requests` or `2s`"
            )),
        }
    }
}

impl fmt::Display for ServerWarmUp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerWarmUp::Requests(1) => write!(formatter, "1 request"),
            ServerWarmUp::Requests(requests) => write!(formatter, "{requests} requests"),
            ServerWarmUp::ForNs(ns) => write!(formatter, "{}", format_ns(*ns)),
        }
    }
}

impl ServerWarmUp {
    /// How long it will take; for a number of requests a guess.
    pub const fn expected_ns(self) -> u64 {
        match self {
            ServerWarmUp::Requests(requests) => requests.saturating_mul(EXPECTED_REQUEST_NS),
            ServerWarmUp::ForNs(ns) => ns,
        }
    }

    /// A closed loop over the URLs of the measured workload, over as many connections and streams.
    pub fn workload(self, measured: &Workload) -> Workload {
        let load = LoopLoad {
            paths: measured.paths(),
            connections: measured.connections().max(LEAST_CONNECTIONS),
            streams: measured.streams().unwrap_or(1),
            requests: if let ServerWarmUp::Requests(requests) = self { Some(requests) } else { None },
            warmup_ns: 0,
        };
        let duration_ns = if let ServerWarmUp::ForNs(ns) = self { Some(ns) } else { None };
        Workload::Closed(ClosedLoop::new(load, duration_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for (text, amount) in [
            ("500 requests", ServerWarmUp::Requests(500)),
            ("1 request", ServerWarmUp::Requests(1)),
            ("2 s", ServerWarmUp::ForNs(2 * NANOS_PER_S)),
        ] {
            assert_eq!(text.parse(), Ok(amount));
            assert_eq!(amount.to_string(), text);
        }
        assert_eq!("500requests".parse(), Ok(ServerWarmUp::Requests(500)));
    }

    #[test]
    fn faults_name_the_form() {
        for (text, part) in [
            ("0 requests", "write 1 to 10000000"),
            ("-5 requests", "is not a number of requests"),
            ("0s", "more than 0 s, at most 600 s"),
            ("11min", "at most 600 s"),
            ("500", "write `500 requests` or `2s`"),
        ] {
            let problem = text.parse::<ServerWarmUp>().unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn a_loop_over_the_same_urls() {
        let measured = Workload::Closed(ClosedLoop::new(
            LoopLoad { paths: vec!["/a".to_owned(), "/b".to_owned()], connections: 9, ..LoopLoad::new("/") },
            Some(5),
        ));
        let Workload::Closed(warm) = ServerWarmUp::Requests(7).workload(&measured) else {
            panic!("a closed loop")
        };
        assert_eq!(warm.load.paths, ["/a", "/b"]);
        assert_eq!((warm.load.connections, warm.load.requests, warm.duration_ns), (9, Some(7), None));
        let Workload::Closed(warm) = ServerWarmUp::ForNs(3).workload(&measured) else {
            panic!("a closed loop")
        };
        assert_eq!((warm.load.requests, warm.duration_ns), (None, Some(3)));
    }
}
