//! Servers that h123 does not start, and the requests that a study may send to them.

use serde::{Deserialize, Serialize};

use super::{Cell, Plan};
use crate::units::{NANOS_PER_S, counted};
use crate::url::Url;
use crate::workload::Workload;

/// The most requests of a study to a server, unless stated otherwise.
pub const MOST_REQUESTS: u64 = 2_000;
/// The most requests per second on average, unless stated otherwise.
pub const MOST_RATE: u32 = 50;
/// A server rests at least this long between two runs.
pub(super) const REST_NS: u64 = NANOS_PER_S;

/// A server that h123 does not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Where it is.
    pub url: Url,
    /// Whose certificates are accepted.
    #[serde(default, skip_serializing_if = "RemoteTrust::is_default")]
    pub trust: RemoteTrust,
    /// The most requests of all runs together.
    pub most_requests: u64,
    /// The most requests per second, on average from the beginning of one run to that of the next.
    pub most_rate: u32,
}

/// Whose certificates are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteTrust {
    /// Those of the system's authorities.
    #[default]
    System,
    /// Those of the authorities in this PEM file.
    Authorities(String),
    /// Any.
    Anyone,
}

impl RemoteTrust {
    fn is_default(&self) -> bool {
        *self == RemoteTrust::System
    }
}

impl Remote {
    /// The server in one line: its URL and how its certificate is checked.
    pub fn describe(&self) -> String {
        match &self.trust {
            RemoteTrust::System => self.url.to_string(),
            RemoteTrust::Authorities(file) => format!("{} (authorities of {file})", self.url),
            RemoteTrust::Anyone => format!("{} (any certificate)", self.url),
        }
    }
}

/// The requests of a study to servers that h123 does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideRequests {
    /// Of a run, the mean.
    pub each_run: u64,
    /// Runs, all that a rule can add included.
    pub runs: u64,
    /// Of all runs.
    pub all: u64,
}

impl Plan {
    /// The cells whose servers h123 does not start.
    pub fn remote_cells(&self) -> impl Iterator<Item = (&Cell, &Remote)> {
        self.cells.iter().filter_map(|cell| Some((cell, cell.chain.remote.as_ref()?)))
    }

    /// The requests of a cell's client group in one run.
    ///
    /// # Errors
    /// Nothing limits them, as the end of a sentence.
    pub fn requests_of(&self, cell: &Cell) -> Result<u64, String> {
        let named = self.workload_of(&cell.group);
        let each = match &named.workload {
            Workload::Page(page) => Some(page.resources.len() as u64),
            Workload::Player(player) => Some(player.segments.into()),
            Workload::Closed(closed) => closed.load.requests.filter(|_| closed.load.warmup_ns == 0),
            Workload::Open(open) => open.load.requests.filter(|_| open.load.warmup_ns == 0),
        };
        let each = each.ok_or_else(|| {
            format!(
                "the workload `{}` has no limit; a server with a `url` is not put under load: write `requests` without \
                 `duration` and `warmup`, or load a page",
                named.name
            )
        })?;
        Ok(each.saturating_mul(cell.group.clients.into()))
    }

    /// The requests of all runs to servers that h123 does not start; `None` if there is no such server.
    pub fn outside_requests(&self) -> Option<OutsideRequests> {
        let per_block: u64 = self
            .remote_cells()
            .map(|(cell, _)| self.requests_of(cell).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add);
        let in_block = self.run_cells().filter(|cell| self.rest_ns(cell.cell) > 0).count() as u64;
        let blocks: u64 = self.repetition.map_or(self.runs_per_cell, |rule| rule.most_runs).into();
        (in_block > 0).then(|| OutsideRequests {
            each_run: per_block / in_block,
            runs: in_block.saturating_mul(blocks),
            all: per_block.saturating_mul(blocks),
        })
    }

    /// How much time has to pass from the beginning of a run to that of the next one, so that the requests
    /// keep to the rate; 0 for a run without servers outside.
    pub fn rest_ns(&self, first: u32) -> u64 {
        let of_cell = |cell: &Cell| {
            let remote = cell.chain.remote.as_ref()?;
            let requests = self.requests_of(cell).unwrap_or(u64::MAX);
            Some(requests.saturating_mul(NANOS_PER_S) / u64::from(remote.most_rate.max(1)))
        };
        let rests = self.cells_of_run(first).iter().filter_map(of_cell);
        rests.reduce(u64::saturating_add).map_or(0, |rest_ns| rest_ns.max(REST_NS))
    }

    /// Checks that the requests to servers outside keep to the limits of their servers.
    ///
    /// # Errors
    /// A sentence with the arithmetic and the key that raises the limit.
    pub fn check_outside(&self) -> Result<(), String> {
        for cell in self.cells.iter().filter(|cell| cell.chain.remote.is_none()) {
            if let Some(page) = self.workload_of(&cell.group).workload.page().filter(|page| page.is_outside())
            {
                let (page, origin, server) = (&page.name, page.origins[0].origin(), &cell.chain.server);
                return Err(format!(
                    "the bodies of the page `{page}` are at {origin}, and not at the server `{server}`; use a server \
                     with a `url`, or another page"
                ));
            }
        }
        for (cell, _) in self.remote_cells() {
            self.requests_of(cell).map_err(|problem| format!("`server`: {problem}"))?;
        }
        let Some(asked) = self.outside_requests() else { return Ok(()) };
        let limit = self.remote_cells().map(|(_, remote)| remote.most_requests).min().unwrap_or(0);
        if asked.all <= limit {
            return Ok(());
        }
        let OutsideRequests { each_run, runs, all } = asked;
        Err(format!(
            "{} of about {} each send {all} requests to servers that others use too, more than the limit of {limit}; \
             reduce runs, cells or the page, or raise `most_requests` in the server's table",
            counted(runs, "run"),
            counted(each_run, "request"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_text::plan_text;
    use crate::study::tests::{SHORT, parse};

    const TABLE: &str = "\n[server.mine]\nurl = 'https://www.example.test/shop'\n";

    fn study(table: &str) -> String {
        format!("{}{table}", SHORT.replace("[\"origin\"]", "[\"mine\"]"))
    }

    #[test]
    fn a_server_with_a_url_is_behind_the_gateway() {
        let plan = parse(&study(TABLE)).unwrap();
        assert_eq!((plan.topology.name.as_str(), plan.topology.server.as_str()), ("outside", "gateway"));
        let cell = &plan.cells[0];
        assert_eq!((cell.chain.node.as_str(), cell.chain.server.as_str()), ("gateway", "mine"));
        assert!(plan.adapters().is_empty() && plan.servers_of(cell).is_empty());
        assert!(plan.has_reference(cell.network), "the emulated link is measured");
        let remote = cell.chain.remote.as_ref().unwrap();
        assert_eq!((remote.url.path.as_str(), &remote.trust), ("/shop", &RemoteTrust::System));
        let text = plan_text(&plan);
        assert!(text.contains("https://www.example.test/shop"), "{text}");
        let asked = plan.outside_requests().unwrap();
        assert_eq!(asked.all, asked.each_run * asked.runs);
        assert!(text.contains(&format!("{} outside: {} runs", asked.all, asked.runs)), "{text}");
        assert!(Plan::from_json(&serde_json::to_vec(&plan).unwrap()).is_ok_and(|read| read == plan));
        assert_eq!(parse(SHORT).unwrap().outside_requests(), None);
    }

    #[test]
    fn requests_outside_are_limited() {
        let plan = parse(&study(TABLE)).unwrap();
        let OutsideRequests { each_run, runs, all } = plan.outside_requests().unwrap();
        assert!(each_run < 50);
        assert_eq!(plan.rest_ns(0), REST_NS, "the least rest");
        assert!(plan.expected_ns() >= runs * REST_NS);
        let slow = parse(&study(&format!("{TABLE}most_rate = 1\n"))).unwrap();
        assert_eq!(slow.rest_ns(0), each_run * NANOS_PER_S);
        let tight = parse(&study(&format!("{TABLE}most_requests = {}\n", all - 1))).unwrap_err();
        assert!(
            tight.contains(&format!("send {all} requests")) && tight.contains("raise `most_requests`"),
            "{tight}"
        );
        parse(&study(&format!("{TABLE}most_requests = {all}\n"))).unwrap();
        let more = plan.with_runs(10_000).unwrap_err();
        assert!(more.contains("more than the limit of 2000"), "{more}");
    }

    #[test]
    fn loops_need_an_end() {
        let page = "kind = \"page\"\npage = \"small\"";
        let with = |load: &str| {
            let text = study(TABLE).replace(page, load).replace("page_load_time", "request_time");
            assert_ne!(text, study(TABLE));
            parse(&text)
        };
        let endless = with("kind = 'closed'\npaths = ['/']\nconnections = 1\nduration = '5s'").unwrap_err();
        assert!(endless.contains("is not put under load: write `requests`"), "{endless}");
        let plan = with("kind = 'closed'\npaths = ['/']\nconnections = 1\nrequests = 100").unwrap();
        assert_eq!((plan.outside_requests().unwrap().each_run, plan.rest_ns(0)), (100, 2 * NANOS_PER_S));
    }

    #[test]
    fn contradictions_name_their_key() {
        for (more, part) in [
            ("use = 'nginx'\n", "`use` excludes `url`"),
            ("cacert = 'a'\ninsecure = true\n", "`cacert` excludes `insecure`"),
            ("most_rate = 0\n", "`most_rate` is 0"),
        ] {
            let problem = parse(&study(&format!("{TABLE}{more}"))).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
        let problem = parse(&study("\n[server.mine]\nuse = 'origin'\ninsecure = true\n")).unwrap_err();
        assert!(problem.contains("`insecure` requires `url`"), "{problem}");
        let problem = parse(&study(&TABLE.replace("https", "ftp"))).unwrap_err();
        assert!(problem.contains("`url`") && problem.contains("neither http nor https"), "{problem}");
        let with =
            |key: &str| parse(&study(TABLE).replacen("runs =", &format!("{key}\nruns ="), 1)).unwrap_err();
        for key in ["server_time = true", "warm = '10 requests'", "dns = '20ms'"] {
            let problem = with(key);
            assert!(problem.contains("excludes the server `mine`"), "{problem}");
        }
    }
}
