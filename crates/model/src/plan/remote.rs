//! Servers that h123 does not start, and the requests that a study may send to them.

use serde::{Deserialize, Serialize};

use super::{Cell, Plan};
use crate::units::{NANOS_PER_S, counted, format_ns};
use crate::url::Url;
use crate::variant::HttpVersion;
use crate::workload::Workload;

/// The most requests of a study to a server, unless stated otherwise.
pub const MOST_REQUESTS: u64 = 2_000;
/// The most requests per second, unless stated otherwise.
pub const MOST_RATE: u32 = 50;
/// What a live player sends per second, for a proposal: a manifest with two playlists every two seconds, and
/// segments of two tracks.
const LIVE_REQUESTS_PER_S: u64 = 3;
/// At its start, it sends as many as in this time.
const LIVE_START_S: u64 = 10;
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
    /// The most requests per second: within a run, except for the one burst with which a client loads a page,
    /// and on average from the beginning of one run to that of the next.
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
            Workload::Player(player) => player.most_requests(),
            Workload::Closed(closed) => closed.load.requests.filter(|_| closed.load.warmup_ns == 0),
            Workload::Open(open) => open.load.requests.filter(|_| open.load.warmup_ns == 0),
            Workload::Script(script) => Some(script.entries.len() as u64),
        };
        let each = each.ok_or_else(|| {
            let remedy = match &named.workload {
                Workload::Player(player) => format!("`requests = {}`", live_requests(player.media_ns())),
                _ => "`requests` without `duration` and `warmup`, or load a page".to_owned(),
            };
            format!(
                "the workload `{}` has no limit; a server with a `url` is not put under load: write {remedy}",
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

    /// Checks that the groups of a run together never exceed the rate of a server outside.
    fn check_rate(&self, first: &Cell) -> Result<(), String> {
        let mut sum: u64 = 0;
        for cell in self.cells_of_run(first.cell) {
            let Some(remote) = &cell.chain.remote else { continue };
            let most = u64::from(remote.most_rate);
            let rate = self.rate_of(cell, most).map_err(|problem| {
                format!(
                    "workload `{}`: {problem}; the limit of a server with a `url` is {most} requests per second \
                     (`most_rate` in its table)",
                    self.workload_of(&cell.group).name
                )
            })?;
            sum = sum.saturating_add(rate);
            if sum > most {
                return Err(format!(
                    "the client groups together send up to {sum} requests per second to a server that others use too, \
                     more than its `most_rate`, {most}; lower their rates, or remove a group"
                ));
            }
        }
        Ok(())
    }

    /// The most requests per second that a cell's clients send; 0 for one client that loads a page or plays a
    /// video, as any visitor does.
    ///
    /// # Errors
    /// Its own rate exceeds `most`, and what to write, as the end of a sentence.
    fn rate_of(&self, cell: &Cell, most: u64) -> Result<u64, String> {
        let workload = &self.workload_of(&cell.group).workload;
        let clients = u64::from(cell.group.clients);
        let checked = |rate: u64, problem: String| if rate > most { Err(problem) } else { Ok(rate) };
        match workload {
            Workload::Page(_) | Workload::Player(_) if clients == 1 => Ok(0),
            Workload::Page(_) | Workload::Player(_) => {
                let all = self.requests_of(cell)?;
                // A live stream is requested as it grows.
                let live = workload.player().and_then(|player| player.live.as_ref());
                let grows_ns = live.map_or(0, |live| live.duration_ns);
                let over_s = cell.group.start.over_ns().saturating_add(grows_ns).div_ceil(NANOS_PER_S).max(1);
                let needed = written(all.div_ceil(most.max(1)).saturating_mul(NANOS_PER_S));
                checked(
                    all.div_ceil(over_s),
                    format!(
                        "{clients} clients send {all} requests within {over_s} s; write `start = {{ evenly = \"{needed}\" }}`, or fewer `clients`"
                    ),
                )
            }
            Workload::Closed(closed) => {
                let streams = match cell.group.variant.http() {
                    HttpVersion::Http11 => 1,
                    _ => u64::from(closed.load.streams),
                };
                let at_once = clients * u64::from(closed.load.connections) * streams;
                let needed = written(at_once.saturating_mul(NANOS_PER_S).div_ceil(most.max(1)));
                let problem = format!(
                    "a closed loop sends as fast as the server answers; with {} at once, write `think_time = \"{needed}\"`, or \
                     fewer connections and streams",
                    counted(at_once, "request")
                );
                if at_once > most || closed.think.least_ns == 0 {
                    return Err(problem);
                }
                checked(
                    at_once.saturating_mul(NANOS_PER_S).div_ceil(closed.think.least_ns).max(at_once),
                    problem,
                )
            }
            Workload::Open(open) => {
                let fastest = open.schedule.stages.iter().flat_map(|stage| [stage.from, stage.to]).max();
                let rate = fastest.map_or(0, |rate| rate.0.div_ceil(1000));
                checked(rate, format!("up to {rate} requests are due within a second; write a lower rate"))
            }
            Workload::Script(script) => {
                let rate = clients.saturating_mul(script.busiest_second());
                checked(
                    rate,
                    format!(
                        "up to {rate} requests are due within a second; write a lower `speed`, or fewer `clients`"
                    ),
                )
            }
        }
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
        self.cells.iter().try_for_each(|cell| self.check_player(cell))?;
        for (cell, _) in self.remote_cells() {
            self.requests_of(cell).map_err(|problem| format!("`server`: {problem}"))?;
        }
        self.run_cells().try_for_each(|first| self.check_rate(first))?;
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

    /// Checks that media of a site is played from there.
    fn check_player(&self, cell: &Cell) -> Result<(), String> {
        let named = self.workload_of(&cell.group);
        let Some(origin) = named.workload.player().and_then(|player| player.origin.as_ref()) else {
            return Ok(());
        };
        let is_there = |remote: &Remote| Url::parse(origin).is_ok_and(|url| remote.url.has_origin_of(&url));
        if cell.chain.remote.as_ref().is_some_and(is_there) {
            return Ok(());
        }
        let server = &cell.chain.server;
        Err(format!(
            "workload `{}`: the segments of its media are at {origin}, and not at the server `{server}`; use a server \
             with `url = \"{origin}/\"`",
            named.name
        ))
    }
}

/// A limit of requests for a live stream that is watched so long.
const fn live_requests(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(NANOS_PER_S).saturating_add(LIVE_START_S).saturating_mul(LIVE_REQUESTS_PER_S)
}

/// A duration as studies write it.
fn written(ns: u64) -> String {
    format_ns(ns).replace(' ', "")
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
        let paced = "kind = 'closed'\npaths = ['/']\nconnections = 1\nrequests = 100\nthink_time = '20ms'";
        let plan = with(paced).unwrap();
        assert_eq!((plan.outside_requests().unwrap().each_run, plan.rest_ns(0)), (100, 2 * NANOS_PER_S));
    }

    #[test]
    fn live_players_need_a_limit() {
        let page = "kind = \"page\"\npage = \"small\"";
        let with = |more: &str| {
            let live = format!(
                "kind = 'player'\nmanifest = '/live.mpd'\nlatency = '9s'\nduration = '60s'\nbuffer = '12s'\n\
                 rule = 'throughput'\n{more}"
            );
            let table = format!("{TABLE}most_requests = 100000\n");
            parse(&study(&table).replace(page, &live).replace("page_load_time", "request_time"))
        };
        let endless = with("").unwrap_err();
        assert!(endless.contains("is not put under load: write `requests = 210`"), "{endless}");
        let plan = with("requests = 210").unwrap();
        assert_eq!((plan.outside_requests().unwrap().each_run, plan.rest_ns(0)), (210, 4_200_000_000));
        assert!(with("requests = 210\nclients = 10").is_ok(), "35 requests per second");
        let fault = with("requests = 210\nclients = 20").unwrap_err();
        assert!(fault.contains("20 clients send 4200 requests within 60 s"), "{fault}");
        let on_demand = parse(&study(TABLE).replace(
            page,
            "kind = 'player'\nladder = ['1Mbit/s']\nsegment = '1s'\nsegments = 2\nbuffer = '4s'\n\
             rule = 'throughput'\nrequests = 5",
        ));
        assert!(on_demand.unwrap_err().contains("`requests` is for live streams"));
    }

    #[test]
    fn no_second_of_a_run_exceeds_the_rate() {
        let page = "kind = \"page\"\npage = \"small\"";
        let with = |load: &str| {
            parse(&study(TABLE).replace(page, load).replace("page_load_time", "request_time")).map(drop)
        };
        let closed = |keys: &str| with(&format!("kind = 'closed'\npaths = ['/']\nrequests = 50\n{keys}"));
        assert_eq!(closed("connections = 10\nthink_time = '200ms'"), Ok(()));
        let fault = closed("connections = 10\nthink_time = '100ms-1s'").unwrap_err();
        assert!(fault.contains("with 10 requests at once, write `think_time = \"200ms\"`"), "{fault}");
        assert!(fault.contains("is 50 requests per second (`most_rate` in its table)"), "{fault}");
        assert!(closed("connections = 1").is_err(), "without think time");
        assert!(closed("connections = 51\nthink_time = '10s'").is_err(), "51 at the beginning");
        let open = |keys: &str| with(&format!("kind = 'open'\npaths = ['/']\nrequests = 50\n{keys}"));
        assert_eq!(open("rate = '50'"), Ok(()));
        let fault = open("rate = '51/s'").unwrap_err();
        assert!(fault.contains("up to 51 requests are due within a second; write a lower rate"), "{fault}");
        let clients = |keys: &str| parse(&study(TABLE).replace(page, &format!("{page}\n{keys}"))).map(drop);
        assert_eq!(clients("clients = 10"), Ok(()), "30 requests");
        let fault = clients("clients = 40").unwrap_err();
        assert!(
            fault.contains("40 clients send 120 requests within 1 s; write `start = { evenly = \"3s\" }`"),
            "{fault}"
        );
        assert_eq!(clients("clients = 40\nstart = { evenly = '3s' }"), Ok(()));
        let groups = "\n[[group]]\nname = 'a'\nclients = 10\n[[group]]\nname = 'b'\nclients = 10\n";
        let fault = parse(&format!("{}{groups}", study(TABLE))).unwrap_err();
        assert!(fault.contains("the client groups together send up to 60 requests per second"), "{fault}");
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
