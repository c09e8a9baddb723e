//! A summary as `quick` would leave it, made up: plausible numbers from a small model and a seeded generator.

use std::collections::BTreeMap;

use analysis::Pooled;
use analysis::summary::{
    CellStatus, CellSummary, CheckOutcome, CheckResult, ClaimOutcome, ClaimResult, Comparison, Estimate,
    MetricSummary, RunValue, Spread, Summary, Verdict,
};
use model::error::Source;
use model::network::Direction;
use model::plan::{Cell, ClientGroup, GroupEnd, Level, NamedWorkload, Plan, PlannedRun, ServerChain};
use model::player::{Player, Rule, constant_rate_video};
use model::record::{LossCalibration, NetworkCalibration, RateCalibration, StreamCalibration};
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Backend, Network, Page, Pins, Variant};
use report::{ConnectionTrace, Input, RequestTrace, RunPlayback, RunTimeline, RunTrace, Terminal};
use serde_json::{Value, json};

pub(crate) const RUNS: u32 = 5;

/// Everything that an [`Input`] borrows.
pub(crate) struct Fabricated {
    pub(crate) plan: Plan,
    pub(crate) summary: Summary,
    pub(crate) environment: Value,
    pub(crate) traces: Vec<RunTrace>,
    pub(crate) pooled: Vec<Pooled>,
    pub(crate) timelines: Vec<RunTimeline>,
    pub(crate) playbacks: Vec<RunPlayback>,
    pub(crate) command: String,
    pub(crate) damaged: Vec<String>,
    pub(crate) terminal: Terminal,
}

impl Fabricated {
    pub(crate) fn input(&self) -> Input<'_> {
        Input {
            plan: &self.plan,
            summary: &self.summary,
            environment: &self.environment,
            traces: &self.traces,
            pooled: &self.pooled,
            timelines: &self.timelines,
            playbacks: &self.playbacks,
            command: &self.command,
            damaged: &self.damaged,
            terminal: self.terminal,
        }
    }
}

/// `quick`, all well.
pub(crate) fn all_well() -> Fabricated {
    let plan = plan();
    let summary = summary(&plan);
    let traces = plan.cells.iter().map(|cell| trace(&plan, cell)).collect();
    let pooled = summary.cells.iter().filter_map(pooled).collect();
    Fabricated {
        plan,
        summary,
        pooled,
        timelines: Vec::new(),
        playbacks: Vec::new(),
        environment: environment(),
        traces,
        command: "h123 run quick --out results/quick-again".to_owned(),
        damaged: Vec::new(),
        terminal: Terminal { width: 100, colour: false, plain: false },
    }
}

/// `quick` where one cell is invalid, one with a caveat, one failed and one is unsupported.
pub(crate) fn troubled() -> Fabricated {
    let mut fabricated = all_well();
    let find = |variant: &str, network: &str, workload: &str, plan: &Plan| {
        let is = |cell: &&Cell| {
            cell.level("variant") == Some(variant)
                && cell.level("network") == Some(network)
                && cell.level("workload") == Some(workload)
        };
        plan.cells.iter().find(is).unwrap().cell
    };
    let late = find("h2c", "north-carolina", "large", &fabricated.plan);
    invalidate(&mut fabricated.summary, late, CheckOutcome::Invalid);
    let busy = find("h3", "lan", "large", &fabricated.plan);
    invalidate(&mut fabricated.summary, busy, CheckOutcome::Caveat);
    let failed = find("h2", "lan", "small", &fabricated.plan);
    lose(&mut fabricated, failed, CellStatus::Failed, "server: exited with status 1 before it was ready");
    let unsupported = find("h3", "north-carolina", "small", &fabricated.plan);
    lose(&mut fabricated, unsupported, CellStatus::Unsupported, "this nginx was built without HTTP/3");
    fabricated
}

/// The runs' values, as a metric of whole runs has them.
fn pooled(cell: &CellSummary) -> Option<Pooled> {
    let metric = cell.metrics.get("page_load_time")?;
    let values = metric.per_run.iter().map(|run| run.value).collect();
    Some(Pooled { cell: cell.cell, runs: metric.runs, values, classes: Vec::new() })
}

/// The primary metric is one of requests. Each cell has `count` of them, most near its median, some far
/// above.
pub(crate) fn of_requests(mut fabricated: Fabricated, count: u32) -> Fabricated {
    let mut random = Random(11);
    fabricated.plan.metric = "request_time".to_owned();
    fabricated.summary.metric = "request_time".to_owned();
    for comparison in fabricated.summary.comparisons.iter_mut().filter(|c| c.primary) {
        comparison.metric = "request_time".to_owned();
    }
    for cell in &mut fabricated.summary.cells {
        let Some(metric) = cell.metrics.remove("page_load_time") else { continue };
        let median = metric.median.value;
        let mut value = || {
            let tail = if random.share() > 0.98 { 2.0 + 2.0 * random.share() } else { 1.0 };
            (median * tail * (0.9 + 0.1 * (random.share() + random.share()))).round()
        };
        let values = (0..count).map(|_| value()).collect();
        let pooled = fabricated.pooled.iter_mut().find(|pooled| pooled.cell == cell.cell);
        pooled.unwrap().values = values;
        cell.metrics.insert("request_time".to_owned(), metric);
    }
    fabricated
}

pub(crate) fn invalidate(summary: &mut Summary, cell: u32, outcome: CheckOutcome) {
    let invalid = outcome == CheckOutcome::Invalid;
    let index = cell as usize;
    summary.cells[index].status = if invalid { CellStatus::Invalid } else { CellStatus::Caveat };
    let check = summary.cells[index].validity.iter_mut().find(|c| c.check == "emulator_late").unwrap();
    check.result = outcome;
    check.measured = if invalid { "p99 4.1 ms" } else { "p99 0.9 ms" }.to_owned();
    for comparison in summary.comparisons.iter_mut().filter(|c| invalid && c.cell == cell) {
        comparison.verdict =
            Verdict::Invalid { because: vec!["the emulator released packets late (p99 4.1 ms)".to_owned()] };
    }
}

fn lose(fabricated: &mut Fabricated, cell: u32, status: CellStatus, reason: &str) {
    let entry = &mut fabricated.summary.cells[cell as usize];
    entry.status = status;
    entry.metrics.clear();
    entry.validity.clear();
    entry.runs_ok = 0;
    entry.runs_failed = if status == CellStatus::Failed { RUNS } else { 0 };
    entry.reasons = vec![reason.to_owned()];
    for comparison in fabricated.summary.comparisons.iter_mut().filter(|c| c.cell == cell) {
        comparison.ratio = None;
        comparison.difference = None;
        comparison.verdict = Verdict::Invalid { because: vec![reason.to_owned()] };
    }
    fabricated.traces.retain(|trace| trace.cell != cell);
    fabricated.pooled.retain(|pooled| pooled.cell != cell);
}

fn level(factor: &str, value: &str) -> Level {
    Level { factor: factor.to_owned(), value: value.to_owned() }
}

fn page(name: &str, text: &str) -> NamedWorkload {
    let page = Page::parse(name, Source { file: name, text }).unwrap();
    NamedWorkload { name: name.to_owned(), workload: Workload::Page(page), options: Default::default() }
}

pub(crate) fn network(name: &str, text: &str) -> Network {
    Network::parse(name, Source { file: name, text }).unwrap()
}

fn plan() -> Plan {
    let networks = vec![
        network("lan", include_str!("../../../../networks/lan.toml")),
        network("north-carolina", include_str!("../../../../networks/north-carolina.toml")),
    ];
    let workloads = vec![
        page("small", include_str!("../../../../pages/small.toml")),
        page("large", include_str!("../../../../pages/large.toml")),
    ];
    plan_of(networks, workloads)
}

fn plan_of(networks: Vec<Network>, workloads: Vec<NamedWorkload>) -> Plan {
    let mut cells = Vec::new();
    for variant in Variant::ALL {
        for (network_index, network) in networks.iter().enumerate() {
            for (workload_index, workload) in workloads.iter().enumerate() {
                cells.push(Cell {
                    cell: u32::try_from(cells.len()).unwrap(),
                    pins: None,
                    levels: vec![
                        level("variant", variant.name()),
                        level("server", "origin"),
                        level("network", &network.name),
                        level("workload", &workload.name),
                    ],
                    network: network_index,
                    backend: Backend::default(),
                    group: ClientGroup {
                        group: 0,
                        client: model::external::OWN_CLIENT.to_owned(),
                        node: "client".to_owned(),
                        variant,
                        workload: workload_index,
                        name: String::new(),
                        clients: 1,
                        start: model::Start::Together,
                        end: GroupEnd::Done,
                        is_background: false,
                    },
                    chain: ServerChain::alone("server", "origin"),
                    expected_run_ns: 1_000_000_000,
                    run_limit_ns: 20_000_000_000,
                    unsupported: None,
                });
            }
        }
    }
    let mut random = Random(7);
    let mut runs = Vec::new();
    for block in 0..RUNS {
        let mut order: Vec<u32> = (0..u32::try_from(cells.len()).unwrap()).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, usize::try_from(random.next() % (index as u64 + 1)).unwrap());
        }
        for cell in order {
            runs.push(PlannedRun {
                run: u32::try_from(runs.len()).unwrap(),
                block,
                cell,
                seed: random.next(),
            });
        }
    }
    Plan {
        version: 1,
        study: "quick".to_owned(),
        question: "Which HTTP version loads a small and a large page soonest, on a local network and across an ocean?"
            .to_owned(),
        study_text: include_str!("../../../../studies/quick.toml").to_owned(),
        metric: "page_load_time".to_owned(),
        statistic: model::Statistic::Median,
        baseline: level("variant", "h1s"),
        margin_share: 0.03,
        seed: 1,
        runs_per_cell: RUNS,
        repetition: None,
        pins: Pins::default(),
        monitor: model::MonitorRate::default(),
        server_time: false,
        warm: None,
        page_cache: None,
        dns_rtt_ns: None,
        accepted: Vec::new(),
        figures: None,
        claims: Vec::new(),
        published: Vec::new(),
        csv: Vec::new(),
        cores: model::cores::CoreChoice::default(),
        classes: Vec::new(),
        arms: Vec::new(),
        topology: model::plan::PlannedTopology::default(),
        networks,
        workloads,
        media: Vec::new(),
        servers: vec!["origin".to_owned()],
        cells,
        runs,
    }
}

/// Page load time in ms: made up, in the order h1, h1s, h2c, h2, h3.
fn load_ms(cell: &Cell) -> f64 {
    let row = match (cell.level("network").unwrap(), cell.level("workload").unwrap()) {
        (swept, _) if swept.starts_with('r') => return swept_ms(cell, swept),
        ("lan", "small") => [1.35, 2.92, 1.41, 2.88, 3.31],
        ("lan", "large") => [21.4, 24.9, 22.0, 23.8, 29.7],
        (_, "small") => [454.0, 606.0, 455.0, 607.0, 456.0],
        _ => [1980.0, 2140.0, 1236.0, 1391.0, 1228.0],
    };
    row[Variant::ALL.iter().position(|v| Some(v.name()) == cell.level("variant")).unwrap()]
}

/// Of networks called `r20-l0.5`: round trips, and what loss costs, which is less with one connection than
/// with several. What loops ask for takes the longer the more connections there are.
fn swept_ms(cell: &Cell, network: &str) -> f64 {
    let (rtt, loss) = network[1..].split_once("-l").unwrap();
    let (rtt, loss): (f64, f64) = (rtt.parse().unwrap(), loss.parse().unwrap());
    let [trips, cost] = match cell.level("variant").unwrap() {
        "h1s" => [4.0, 0.7],
        "h3" => [3.0, 0.9],
        _ => [3.7, 0.5],
    };
    let connections: f64 = cell.level("workload").unwrap().trim_start_matches('c').parse().unwrap_or(1.0);
    2.0 + rtt * trips + rtt * cost * loss + connections.sqrt()
}

/// A study over networks or workloads, of variants with a baseline of `h1s`.
fn swept(networks: Vec<Network>, workloads: Vec<NamedWorkload>) -> Fabricated {
    let mut fabricated = all_well();
    let mut plan = plan_of(networks, workloads);
    plan.cells.retain(|cell| ["h1s", "h2", "h3"].contains(&cell.level("variant").unwrap()));
    for (number, cell) in (0..).zip(&mut plan.cells) {
        cell.cell = number;
    }
    plan.runs.clear();
    for block in 0..RUNS {
        for cell in &plan.cells {
            let run = u32::try_from(plan.runs.len()).unwrap();
            plan.runs.push(PlannedRun { run, block, cell: cell.cell, seed: u64::from(run) });
        }
    }
    plan.study = "swept".to_owned();
    fabricated.summary = summary(&plan);
    fabricated.pooled = fabricated.summary.cells.iter().filter_map(pooled).collect();
    fabricated.traces.clear();
    fabricated.plan = plan;
    fabricated
}

/// Page loads over round-trip times and losses.
pub(crate) fn over_networks(round_trips_ms: &[&str], losses: &[&str]) -> Fabricated {
    let mut networks = Vec::new();
    for rtt in round_trips_ms {
        for loss in losses {
            let lost = if *loss == "0" { String::new() } else { format!("loss = \"{loss}%\"\n") };
            let text = format!(
                "title = \"RTT {rtt}\"\nsource = \"made up\"\nrtt = \"{rtt}ms\"\nrate = \"20Mbit/s\"\nqueue = \"2bdp\"\n{lost}"
            );
            networks.push(network(&format!("r{rtt}-l{loss}"), &text));
        }
    }
    swept(networks, vec![page("small", include_str!("../../../../pages/small.toml"))])
}

/// The same as sweeps of `network.rtt` and `network.loss`.
pub(crate) fn over_network_keys(round_trips_ms: &[&str], losses: &[&str]) -> Fabricated {
    let mut fabricated = over_networks(round_trips_ms, losses);
    let rename = |levels: &mut Vec<Level>| {
        let place = levels.iter().position(|level| level.factor == "network").unwrap();
        let name = std::mem::replace(&mut levels[place].value, "made-up".to_owned());
        let (rtt, loss) = name.strip_prefix('r').unwrap().split_once("-l").unwrap();
        levels.push(level("network.rtt", &format!("{rtt}ms")));
        levels.push(level("network.loss", &format!("{loss}%")));
    };
    fabricated.plan.cells.iter_mut().for_each(|cell| rename(&mut cell.levels));
    fabricated.summary.cells.iter_mut().for_each(|cell| rename(&mut cell.levels));
    fabricated
}

/// A page over h1s on this many networks, which are compared with the first.
pub(crate) fn of_networks(count: usize) -> Fabricated {
    let round_trips: Vec<String> = (1..=count).map(|place| (place * 10).to_string()).collect();
    let round_trips: Vec<&str> = round_trips.iter().map(String::as_str).collect();
    let mut fabricated = over_networks(&round_trips, &["0"]);
    let is_kept = |levels: &[Level]| levels.contains(&level("variant", "h1s"));
    fabricated.plan.cells.retain(|cell| is_kept(&cell.levels));
    let summary = &mut fabricated.summary;
    summary.cells.retain(|cell| is_kept(&cell.levels));
    let network = |levels: &[Level]| levels.iter().find(|level| level.factor == "network").cloned().unwrap();
    let baseline = &summary.cells[0];
    summary.baseline.factor = "network".to_owned();
    summary.baseline.value = network(&baseline.levels).value;
    fabricated.plan.baseline = summary.baseline.clone();
    let compared = fabricated.plan.cells.iter().zip(&summary.cells).skip(1);
    summary.comparisons = compared
        .map(|(planned, cell)| Comparison {
            level: network(&cell.levels),
            context: cell.levels.iter().filter(|level| level.factor != "network").cloned().collect(),
            ..comparison("page_load_time", planned, cell, baseline)
        })
        .collect();
    fabricated.traces.retain(|trace| summary.cells.iter().any(|cell| cell.cell == trace.cell));
    fabricated
}

/// Videos over two networks.
pub(crate) fn of_videos() -> Fabricated {
    let networks = ["dsl", "4g"]
        .map(|name| network(name, "title = \"x\"\nsource = \"y\"\nrtt = \"30ms\"\nrate = \"4Mbit/s\"\n"));
    let player = Player {
        presentation: constant_rate_video(&[1_000_000, 2_500_000, 8_000_000], 500_000_000, 8),
        goal_ns: 1_500_000_000,
        startup_ns: 500_000_000,
        rebuffer_ns: 500_000_000,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    };
    let video = NamedWorkload {
        name: "video".to_owned(),
        workload: Workload::Player(player),
        options: Default::default(),
    };
    swept(networks.into(), vec![video])
}

/// Servers by their names on eight networks: short names and long ones, one without what was asked for, and
/// intervals of few runs that reach very far.
pub(crate) fn servers(names: [&str; 5]) -> Fabricated {
    let networks = ["5", "20", "80", "160"].iter().flat_map(|rtt| {
        ["0", "2"].map(|loss| {
            let text = format!(
                "title = \"RTT {rtt}\"\nsource = \"made up\"\nrtt = \"{rtt}ms\"\nrate = \"20Mbit/s\"\nqueue = \"2bdp\"\nloss = \"{loss}%\"\n"
            );
            network(&format!("r{rtt}-l{loss}"), &text)
        })
    });
    let mut fabricated = all_well();
    let mut plan =
        plan_of(networks.collect(), vec![page("small", include_str!("../../../../pages/small.toml"))]);
    plan.study = "servers".to_owned();
    fabricated.summary = summary(&plan);
    fabricated.traces = plan.cells.iter().map(|cell| trace(&plan, cell)).collect();
    fabricated.pooled = fabricated.summary.cells.iter().filter_map(pooled).collect();
    fabricated.plan = plan;
    reach_far(&mut fabricated.summary);
    let unsupported =
        fabricated.plan.cells.iter().find(|cell| cell.level("variant") == Some("h3")).unwrap().cell;
    lose(&mut fabricated, unsupported, CellStatus::Unsupported, "this nginx was built without HTTP/3");
    of_servers(fabricated, names)
}

/// The same of servers with these names in the place of the variants.
pub(crate) fn of_servers(mut fabricated: Fabricated, names: [&str; 5]) -> Fabricated {
    let rename = |level: &mut Level| match level.factor.as_str() {
        "variant" => {
            let place = Variant::ALL.iter().position(|variant| variant.name() == level.value).unwrap();
            *level = self::level("server", names[place]);
        }
        "server" => *level = self::level("variant", "h2"),
        _ => {}
    };
    rename(&mut fabricated.plan.baseline);
    rename(&mut fabricated.summary.baseline);
    fabricated.plan.cells.iter_mut().flat_map(|cell| &mut cell.levels).for_each(rename);
    fabricated.summary.cells.iter_mut().flat_map(|cell| &mut cell.levels).for_each(rename);
    for comparison in &mut fabricated.summary.comparisons {
        rename(&mut comparison.level);
        comparison.context.iter_mut().for_each(rename);
    }
    fabricated
}

/// Ratios and intervals that no axis holds.
fn reach_far(summary: &mut Summary) {
    for cell in summary.cells.iter_mut().skip(1).step_by(4) {
        let median = &mut cell.metrics.get_mut("page_load_time").unwrap().median;
        (median.low, median.high) = (Some(median.value / 460.0), Some(median.value * 457.0));
    }
    let primary = |comparison: &&mut Comparison| comparison.primary;
    let far = [(0.57, 0.0138, 24.7), (164.0, 41.0, 8_230.0), (56.0, 0.4, 97.0), (0.0012, 0.0004, 0.8)];
    for (comparison, (value, low, high)) in summary.comparisons.iter_mut().filter(primary).step_by(9).zip(far)
    {
        comparison.ratio = Some(Estimate { value, low: Some(low), high: Some(high) });
    }
}

/// Closed loops over connections, on two networks that differ in more than a number.
pub(crate) fn over_connections(connections: &[u32]) -> Fabricated {
    let text = |rtt: &str, rate: &str| {
        network(
            &format!("r{rtt}-l0"),
            &format!("title = \"x\"\nsource = \"y\"\nrtt = \"{rtt}ms\"\nrate = \"{rate}Mbit/s\"\n"),
        )
    };
    let closed = |connections: &u32| NamedWorkload {
        name: format!("c{connections}"),
        workload: Workload::Closed(ClosedLoop::new(
            LoopLoad { connections: *connections, ..LoopLoad::new("/bytes/1000") },
            Some(1_000_000_000),
        )),
        options: Default::default(),
    };
    swept(vec![text("1", "100"), text("30", "50")], connections.iter().map(closed).collect())
}

fn summary(plan: &Plan) -> Summary {
    let mut random = Random(99);
    let cells: Vec<CellSummary> =
        plan.cells.iter().map(|cell| cell_summary(plan, cell, &mut random)).collect();
    let mut comparisons = Vec::new();
    for cell in plan.cells.iter().filter(|cell| cell.level("variant") != Some("h1s")) {
        let is_baseline = |other: &&Cell| {
            other.level("variant") == Some("h1s")
                && other.network == cell.network
                && other.level("workload") == cell.level("workload")
        };
        let baseline = plan.cells.iter().find(is_baseline).unwrap();
        for metric in ["page_load_time", "time_to_first_byte", "request_header_wire_bytes"] {
            comparisons.push(comparison(
                metric,
                cell,
                &cells[cell.cell as usize],
                &cells[baseline.cell as usize],
            ));
        }
    }
    Summary {
        version: 1,
        study: plan.study.clone(),
        question: plan.question.clone(),
        metric: plan.metric.clone(),
        statistic: plan.statistic,
        baseline: plan.baseline.clone(),
        margin_share: plan.margin_share,
        runs_planned: 100,
        runs_stored: 100,
        measured: Some(analysis::summary::RunPeriod {
            began_unix_ns: 1_790_000_000_000_000_000,
            ended_unix_ns: 1_790_000_101_000_000_000,
        }),
        repetition: None,
        networks: plan.networks.iter().map(calibrated).collect(),
        cells,
        claims: vec![claim("The runs may be <b>pooled</b>.", ClaimOutcome::Refuted)],
        published: Vec::new(),
        comparisons,
    }
}

/// What the data say of a claim about the first cell.
pub(crate) fn claim(text: &str, result: ClaimOutcome) -> ClaimResult {
    ClaimResult {
        text: text.to_owned(),
        kind: "pooled".to_owned(),
        result,
        measured: "medians of runs are 7 % apart".to_owned(),
        expected: "a chance of at least 0.001".to_owned(),
        cells: vec![0],
    }
}

/// Realistic reference measurements of a network: a little below the rate, with random loss.
fn calibrated(network: &Network) -> NetworkCalibration {
    let stream = |direction: &Direction| StreamCalibration {
        rate: direction.rate.constant_bits_per_s().map(|rate| RateCalibration {
            expected_bits_per_s: rate,
            offered_bits_per_s: rate * 115 / 100,
            measured_bits_per_s: rate / 1000 * 999,
            packets: 1_000,
        }),
        loss: LossCalibration { sent: 10_000, lost: 97, expected: 100.0, deviation: 10.0 },
    };
    let (up, down) = (stream(&network.up), stream(&network.down));
    NetworkCalibration { network: network.name.clone(), backend: Backend::default(), up, down }
}

fn cell_summary(plan: &Plan, cell: &Cell, random: &mut Random) -> CellSummary {
    let load_ns = load_ms(cell) * 1e6;
    let rtt_ns = plan.networks[cell.network].rtt_ns() as f64;
    let cleartext = matches!(cell.level("variant"), Some("h1" | "h2c"));
    let trips = if cleartext || cell.level("variant") == Some("h3") { 1.0 } else { 2.0 };
    let requests = if cell.level("workload") == Some("small") { 3.0 } else { 55.0 };
    let header = if cell.level("variant").unwrap().starts_with("h1") { 180.0 } else { 34.0 };
    let mut metrics = BTreeMap::new();
    let mut add = |name: &str, unit: &str, value: f64, spread: f64| {
        metrics.insert(name.to_owned(), metric(plan, cell, unit, value, spread, random));
    };
    let spread = if rtt_ns > 1e8 { 0.012 } else { 0.05 };
    add("page_load_time", "ns", load_ns, spread);
    add("time_to_first_byte", "ns", rtt_ns * (trips + 1.0) + 700_000.0, 0.02);
    add("handshake_time", "ns", rtt_ns * trips + 400_000.0, 0.02);
    add("requests", "1", requests, 0.0);
    add("request_header_wire_bytes", "B", requests * header, 0.0);
    CellSummary {
        cell: cell.cell,
        levels: cell.levels.clone(),
        status: CellStatus::Valid,
        runs_ok: RUNS,
        runs_failed: 0,
        reasons: Vec::new(),
        metrics,
        not_reported: std::collections::BTreeMap::new(),
        validity: ["emulator_late", "calibration", "version"].map(check).to_vec(),
    }
}

fn check(name: &str) -> CheckResult {
    let (measured, threshold, why) = match name {
        "emulator_late" => {
            ("p99 0.11 ms", "p99 0.5 ms", "A late emulator adds delay that the network does not have.")
        }
        "calibration" => ("150.1 ms", "150 ms ± 1 %", "The empty path must be as long as the network says."),
        _ => ("all as asked", "all as asked", "A number of another version answers another question."),
    };
    CheckResult {
        check: name.to_owned(),
        result: CheckOutcome::Pass,
        measured: measured.to_owned(),
        threshold: threshold.to_owned(),
        why: why.to_owned(),
        remedy: "Run it again on an idle machine.".to_owned(),
    }
}

fn metric(
    plan: &Plan,
    cell: &Cell,
    unit: &str,
    value: f64,
    spread: f64,
    random: &mut Random,
) -> MetricSummary {
    let per_run: Vec<RunValue> = plan
        .runs
        .iter()
        .filter(|run| run.cell == cell.cell)
        .map(|run| RunValue {
            run: run.run,
            block: run.block,
            value: (value * (1.0 + spread * (random.share() - 0.35))).round(),
        })
        .collect();
    let mut sorted: Vec<f64> = per_run.iter().map(|run| run.value).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |value: f64, half: f64| Estimate { value, low: Some(value - half), high: Some(value + half) };
    let (median, half) = (sorted[2], (sorted[4] - sorted[0]) * 0.45);
    MetricSummary {
        unit: unit.to_owned(),
        mean: at(sorted.iter().sum::<f64>() / f64::from(RUNS), half),
        median: at(median, half),
        iqr: at(sorted[3] - sorted[1], 0.0),
        p90: Estimate { value: sorted[4], low: None, high: None },
        p95: Estimate { value: sorted[4], low: None, high: None },
        p99: Estimate { value: sorted[4], low: None, high: None },
        p999: Estimate { value: sorted[4], low: None, high: None },
        spread: Spread { min: sorted[0], max: sorted[4], ..Spread::default() },
        samples: u64::from(RUNS),
        runs: RUNS,
        statistic: plan.statistic,
        per_run,
    }
}

fn comparison(metric: &str, planned: &Cell, cell: &CellSummary, baseline: &CellSummary) -> Comparison {
    let (a, b) = (&cell.metrics[metric].median, &baseline.metrics[metric].median);
    let ratio = a.value / b.value;
    let half = ratio * ((a.high.unwrap() - a.value) / a.value + (b.high.unwrap() - b.value) / b.value);
    let (low, high) = (ratio - half, ratio + half);
    let verdict = match () {
        () if low >= 1.0 / 1.03 && high <= 1.03 => Verdict::Equivalent,
        () if high < 1.0 => Verdict::Better,
        () if low > 1.0 => Verdict::Worse,
        () => Verdict::NoDifferenceShown,
    };
    let difference = a.value - b.value;
    let slack = half * b.value;
    let primary = metric == "page_load_time";
    Comparison {
        metric: metric.to_owned(),
        primary,
        level: level("variant", planned.level("variant").unwrap()),
        context: planned.levels[1..].to_vec(),
        cell: cell.cell,
        baseline_cell: baseline.cell,
        pairs: RUNS,
        ratio: Some(Estimate { value: ratio, low: Some(low), high: Some(high) }),
        difference: Some(Estimate {
            value: difference,
            low: Some(difference - slack),
            high: Some(difference + slack),
        }),
        p_adjusted: primary.then_some(0.004),
        p_equivalent_adjusted: primary.then_some(0.9),
        smallest_showable_ratio: Some(1.0 - half),
        verdict,
    }
}

/// A page load as it might have been: connections, dependencies and a shared rate.
fn trace(plan: &Plan, cell: &Cell) -> RunTrace {
    let Workload::Page(page) = &plan.workloads[cell.group.workload].workload else { unreachable!() };
    let end_ns = load_ms(cell) * 1e6;
    let rtt = plan.networks[cell.network].rtt_ns() as f64;
    let variant = cell.group.variant;
    let tcp = if variant.is_quic() { 0.0 } else { rtt };
    let tls = if variant.is_quic() || variant.is_encrypted() { rtt } else { 0.0 };
    let lanes: usize = if variant.http() == model::HttpVersion::Http11 { 6 } else { 1 };
    let first_byte = tcp + tls + rtt + end_ns * 0.01;
    let setup = |opened: f64| (opened, opened + tcp, opened + tcp + tls);
    let used = lanes.min(page.resources.len());
    let connections = (0..used)
        .map(|index| {
            let (opened, connected, ready) = setup(if index == 0 { 0.0 } else { first_byte });
            ConnectionTrace {
                connection: u32::try_from(index).unwrap(),
                opened_ns: opened as u64,
                connected_ns: (!variant.is_quic()).then_some(connected as u64),
                is_encrypted: variant.is_encrypted(),
                ready_ns: Some(ready as u64),
            }
        })
        .collect::<Vec<_>>();
    let mut free: Vec<f64> = connections.iter().map(|c| c.ready_ns.unwrap() as f64).collect();
    let total: u64 = page.total_bytes();
    let mut requests = Vec::new();
    let mut sent_bytes = 0;
    for (index, resource) in page.resources.iter().enumerate() {
        sent_bytes += resource.bytes;
        let lane = index % used;
        let intended = if index == 0 { 0.0 } else { first_byte };
        let (sent, first, done) = if lanes == 1 {
            let sent = if index == 0 { free[0] } else { first_byte };
            let share = sent_bytes as f64 / total as f64;
            let done = (end_ns - first_byte - rtt * 0.2).max(0.0) * share + first_byte + rtt * 0.2;
            (sent, (sent + rtt * 1.02).min(done), done)
        } else {
            let slot = (end_ns - first_byte) / (page.resources.len() as f64 / used as f64).ceil();
            let sent = if index == 0 { free[0] } else { free[lane].max(first_byte) };
            let done = (sent + slot.max(rtt * 1.01)).min(end_ns);
            free[lane] = done;
            (sent, (sent + rtt * 1.01).min(done), done)
        };
        requests.push(RequestTrace {
            url: format!("https://site.test{}", resource.path),
            connection: Some(u32::try_from(lane).unwrap()),
            cause: Default::default(),
            intended_ns: intended as u64,
            sent_ns: Some(sent as u64),
            first_byte_ns: Some(first as u64),
            done_ns: Some(done as u64),
            body_bytes: resource.bytes,
            failure: None,
        });
    }
    let run = plan.runs.iter().find(|run| run.cell == cell.cell).unwrap().run;
    RunTrace { cell: cell.cell, run, clients: 1, requests, connections, dns_lookup_ns: None }
}

fn environment() -> Value {
    json!({
        "h123": "0.1.0",
        "kernel": "Linux 6.12.0",
        "cpu": { "model": "Example CPU 3 GHz", "cores": 2, "governor": "performance" },
        "memory_bytes": 8_589_934_592_u64,
        "limits": { "open_files": 1_048_576, "realtime_priority": true },
        "versions": { "rustls": "0.23", "quinn-proto": "0.11", "hyper": "1.9" },
        "congestion_control": ["cubic", "reno", "bbr"],
        "flags": []
    })
}

/// A small linear congruential generator (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn share(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }
}

/// One context of two variants, for snapshots that a person can read.
pub(crate) fn small() -> Fabricated {
    let mut fabricated = all_well();
    let keep = |levels: &[Level]| {
        let value =
            |factor: &str| levels.iter().find(|l| l.factor == factor).map_or("", |l| l.value.as_str());
        value("network") == "north-carolina"
            && value("workload") == "small"
            && ["h1s", "h3"].contains(&value("variant"))
    };
    fabricated.summary.cells.retain(|cell| keep(&cell.levels));
    let numbers: Vec<u32> = fabricated.summary.cells.iter().map(|cell| cell.cell).collect();
    fabricated.summary.comparisons.retain(|comparison| numbers.contains(&comparison.cell));
    fabricated.traces.retain(|trace| numbers.contains(&trace.cell));
    fabricated
}
