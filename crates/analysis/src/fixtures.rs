//! A study without failures or caveats, which tests break.

use model::assignment::ClientReport;
use model::backend::Backend;
use model::external::ExternalReport;
use model::media::TrackKind;
use model::monitor::{MonitorRate, Quantity, Reading, Subject, SubjectKind};
use model::network::{Direction, LinkRate, Network};
use model::number;
use model::page::{Page, Resource, ResourceKind};
use model::page_events::PageEvents;
use model::pins::Pins;
use model::plan::{
    Cell, ClientGroup, GroupEnd, Level, NamedWorkload, PLAN_VERSION, Plan, PlannedRun, ServerChain,
};
use model::player::{Player, PlayerEvent, PlayerEventKind, Rule, constant_rate_video};
use model::record::{
    Calibration, DirectionReport, Lateness, LinkReport, LossCalibration, NetworkCalibration, RateCalibration,
    RunRecord, Sending, ServerReport, ServerRequest, StreamCalibration, TimeSource,
};
use model::sample::{ConnectionRow, Outcome, Phase, Sample};
use model::schedule::{Arrivals, Rate, Schedule, Share, Stage};
use model::script::{Replay, Script, ScriptEntry, Speed};
use model::statistic::Statistic;
use model::variant::Variant;
use model::workload::{ClosedLoop, LoopLoad, OpenLoop, Workload};

use crate::predict::handshake_round_trips;
use crate::summary::{CheckOutcome, CheckResult, Summary};
use crate::{RunSummary, analyse};

/// Five runs of each cell, one cell per variant; the first variant is the baseline.
pub(crate) struct Bench {
    pub(crate) plan: Plan,
    pub(crate) records: Vec<RunRecord>,
    pub(crate) networks: Vec<NetworkCalibration>,
}

const RUNS: u32 = 5;
const MS: u64 = 1_000_000;
const CLOSED_REQUESTS: u64 = 50;

impl Bench {
    /// A page of three resources on a network of 150 ms and 50 Mbit/s.
    pub(crate) fn page(variants: &[Variant]) -> Bench {
        Bench::new(variants, Workload::Page(page()), "page_load_time")
    }

    /// A closed loop of 50 requests on the same network.
    pub(crate) fn closed(variants: &[Variant]) -> Bench {
        let load = LoopLoad { requests: Some(CLOSED_REQUESTS), ..LoopLoad::new("/a") };
        let workload = Workload::Closed(ClosedLoop::new(load, None));
        Bench::new(variants, workload, "request_time")
    }

    /// A script of 50 requests on the same network, one each millisecond.
    pub(crate) fn script(variants: &[Variant]) -> Bench {
        let entry = |number: u64| ScriptEntry { at_ns: number * MS, ..ScriptEntry::default() };
        let script = Script {
            load: LoopLoad { requests: Some(CLOSED_REQUESTS), ..LoopLoad::new("/a") },
            sets_connections: false,
            title: String::new(),
            recorded_over: None,
            replay: Replay::Schedule,
            speed: Speed::ONE,
            entries: (0..CLOSED_REQUESTS).map(entry).collect(),
            body_bytes: 0,
            share: Share::WHOLE,
            queue_limit: 100,
        };
        Bench::new(variants, Workload::Script(script), "request_time")
    }

    /// Writes into the script that it was recorded over a variant.
    pub(crate) fn recorded_over(&mut self, variant: Variant) {
        for named in &mut self.plan.workloads {
            if let Workload::Script(script) = &mut named.workload {
                script.recorded_over = Some(variant);
            }
        }
    }

    /// An open loop of 50 requests on the same network.
    pub(crate) fn open(variants: &[Variant]) -> Bench {
        let rate = Rate(1000);
        let workload = Workload::Open(OpenLoop {
            load: LoopLoad { requests: Some(CLOSED_REQUESTS), ..LoopLoad::new("/a") },
            schedule: Schedule {
                stages: vec![Stage { from: rate, to: rate, duration_ns: None }],
                arrivals: Arrivals::Even,
                share: Share::WHOLE,
            },
            queue_limit: 10,
        });
        Bench::new(variants, workload, "request_time")
    }

    /// The page load in a browser.
    pub(crate) fn browser(variants: &[Variant]) -> Bench {
        let mut bench = Bench::page(variants);
        bench.plan.cells.iter_mut().for_each(|cell| cell.group.client = "chromium".to_owned());
        for record in &mut bench.records {
            let report = ExternalReport { has_row_bytes: true, ..ExternalReport::default() };
            record.clients[0].external = Some(Box::new(report));
            let last_ns = record.samples.iter().filter_map(|sample| sample.done_ns).max().unwrap_or(0);
            let first = &record.connections[0];
            let is_quic = bench.plan.cells[record.cell as usize].group.variant.is_quic();
            let connected_ns = first.ready_ns.map(|ns| ns.midpoint(first.opened_ns)).filter(|_| !is_quic);
            record.page_events = vec![PageEvents {
                began_ns: first.opened_ns,
                connect_began_ns: connected_ns.and(Some(first.opened_ns)),
                connect_ended_ns: connected_ns,
                handshake_began_ns: connected_ns.or(Some(first.opened_ns)),
                handshake_ended_ns: first.ready_ns,
                sent_ns: first.ready_ns,
                first_byte_ns: record.samples[0].first_byte_ns,
                done_ns: record.samples[0].done_ns,
                first_contentful_paint_ns: Some(last_ns - MS),
                largest_contentful_paint_ns: Some(last_ns),
                dom_content_loaded_ns: Some(last_ns - 2 * MS),
                loaded_ns: Some(last_ns + MS),
                layout_shift_millionths: Some(50_000),
                ..PageEvents::default()
            }];
        }
        bench
    }

    /// A video of four segments, on the same network.
    pub(crate) fn player(variants: &[Variant]) -> Bench {
        let player = Player {
            presentation: constant_rate_video(&[1_000_000, 2_500_000], 500 * MS, 4),
            goal_ns: 1000 * MS,
            startup_ns: 500 * MS,
            rebuffer_ns: 500 * MS,
            rule: Rule::Throughput,
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: None,
            origin: None,
        };
        Bench::new(variants, Workload::Player(player), "startup_time")
    }

    /// The same with a server that reports 2 ms for each request, with this precision in nanoseconds.
    pub(crate) fn served(mut self, precision_ns: u64) -> Bench {
        self.plan.server_time = true;
        for record in &mut self.records {
            let rows = record.samples.iter().map(|sample| ServerRequest {
                server: 0,
                group: sample.group,
                request: sample.request,
                request_time_ns: 2 * MS,
                precision_ns,
                source: TimeSource::Log,
                log_time_ns: None,
                arrived_ns: None,
                first_sent_ns: None,
                sent_ns: None,
                logged_unix_ns: None,
                status: sample.status,
                body_bytes: Some(sample.response_body_bytes),
                remote_port: Some(40_000),
            });
            record.server_requests = rows.collect();
        }
        self
    }

    /// The same with these readings of the server's protocols in every run.
    pub(crate) fn monitored(self, quantities: &[(Quantity, u64)]) -> Bench {
        let runs = self.records.len();
        quantities.iter().fold(self, |bench, (quantity, value)| {
            (0..runs).fold(bench, |bench, run| bench.read(run, *quantity, *value))
        })
    }

    /// The same with one reading more of the server's sockets or protocols, at a separate time.
    pub(crate) fn read(mut self, run: usize, quantity: Quantity, value: u64) -> Bench {
        let kind = quantity.info().of[0];
        let subject = Subject { node: Some("server".into()), kind, name: kind.name().into(), id: 0 };
        let readings = &mut self.records[run].readings;
        readings.push(Reading { at_ns: readings.len() as u64, subject, quantity, value });
        self
    }

    /// The same with this reading, such as one of a core or a process, in every run.
    pub(crate) fn with_reading(
        mut self,
        node: Option<&str>,
        kind: SubjectKind,
        quantity: Quantity,
        value: u64,
    ) -> Bench {
        for record in &mut self.records {
            let subject = Subject { node: node.map(Into::into), kind, name: kind.name().into(), id: 0 };
            let at_ns = record.readings.len() as u64;
            record.readings.push(Reading { at_ns, subject, quantity, value });
        }
        self
    }

    fn new(variants: &[Variant], workload: Workload, metric: &str) -> Bench {
        let plan = plan(variants, workload, metric);
        let records = plan.runs.iter().map(|run| record(&plan, run)).collect();
        let networks = plan.networks.iter().map(calibrated).collect();
        Bench { plan, records, networks }
    }

    pub(crate) fn summary(&self) -> Summary {
        let of_run = |record| RunSummary::all_of(&self.plan, record);
        let runs: Vec<RunSummary> = self.records.iter().flat_map(of_run).collect();
        analyse(&self.plan, &runs, &self.networks)
    }

    /// Moves the study to a network of 0.3 ms, on which a round trip of the page takes 0.8 ms in all.
    pub(crate) fn on_lan(&mut self) {
        let network = &mut self.plan.networks[0];
        for direction in [&mut network.up, &mut network.down] {
            direction.delay_ns = 150_000;
            direction.rate = LinkRate::Unlimited;
        }
        for record in &mut self.records {
            for sample in &mut record.samples {
                sample.done_ns = sample.done_ns.map(|ns| ns / 200);
                sample.first_byte_ns = sample.first_byte_ns.map(|ns| ns / 200);
                sample.intended_ns /= 200;
            }
            for connection in &mut record.connections {
                connection.opened_ns /= 200;
                connection.ready_ns = connection.ready_ns.map(|ns| ns / 200);
            }
            for calibration in &mut record.round_trips {
                calibration.expected_rtt_ns = 300_000;
                calibration.rtt_ns.iter_mut().filter(|ns| **ns > MS).for_each(|ns| *ns = 350_000);
            }
        }
    }
}

/// A network that keeps what it promises.
fn calibrated(network: &Network) -> NetworkCalibration {
    let stream = |direction: &Direction| StreamCalibration {
        rate: direction.rate.constant_bits_per_s().map(|rate| RateCalibration {
            expected_bits_per_s: rate,
            offered_bits_per_s: rate * 115 / 100,
            measured_bits_per_s: rate,
            packets: 1_000,
        }),
        loss: LossCalibration { sent: 1_000, lost: 0, expected: 0.0, deviation: 0.0 },
    };
    let (up, down) = (stream(&network.up), stream(&network.down));
    NetworkCalibration { network: network.name.clone(), backend: Backend::default(), up, down }
}

/// The check passes on every cell that it judges, and judges at least one.
pub(crate) fn passes(check: &str, bench: &Bench) {
    let found = results(check, &bench.summary());
    assert!(!found.is_empty(), "`{check}` judged nothing");
    assert!(found.iter().all(|found| found.result == CheckOutcome::Pass), "{found:?}");
}

/// The check invalidates at least one cell.
pub(crate) fn fails(check: &str, bench: &Bench) -> CheckResult {
    let found = results(check, &bench.summary());
    let invalidated = found.iter().find(|found| found.result == CheckOutcome::Invalid).cloned();
    invalidated.unwrap_or_else(|| panic!("`{check}` invalidated nothing: {found:?}"))
}

/// These checks, and no others, raise a caveat on some cell.
pub(crate) fn caveats(bench: &Bench, checks: &[&str]) {
    let summary = bench.summary();
    let mut found: Vec<String> = summary
        .cells
        .iter()
        .flat_map(|cell| &cell.validity)
        .filter(|check| check.result == CheckOutcome::Caveat)
        .map(|check| check.check.clone())
        .collect();
    found.sort();
    found.dedup();
    let mut expected = checks.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{:#?}", summary.cells.iter().map(|cell| &cell.validity).collect::<Vec<_>>());
}

/// The check judges no cell.
pub(crate) fn silent(check: &str, bench: &Bench) {
    assert_eq!(results(check, &bench.summary()), []);
}

fn results(check: &str, summary: &Summary) -> Vec<CheckResult> {
    let all = summary.cells.iter().flat_map(|cell| &cell.validity);
    all.filter(|result| result.check == check).cloned().collect()
}

pub(crate) fn page() -> Page {
    let resource = |path: &str, kind, bytes, parent: Option<usize>, named_at_bytes| Resource {
        path: path.to_owned(),
        kind,
        bytes,
        named_by: parent,
        named_at_bytes,
        origin: 0,
        wait_ns: 0,
    };
    Page {
        delivery: Default::default(),
        name: "small".to_owned(),
        title: "three resources".to_owned(),
        origins: Vec::new(),
        hosts: Vec::new(),
        resources: vec![
            resource("/", ResourceKind::Html, 4_000, None, 0),
            resource("/a.css", ResourceKind::Css, 6_000, Some(0), 384),
            resource("/b.png", ResourceKind::Image, 7_000, Some(0), 512),
        ],
    }
}

pub(crate) fn network(rtt_ns: u64, rate_bits_per_s: Option<u64>) -> Network {
    let rate = rate_bits_per_s.map_or(LinkRate::Unlimited, |bits_per_s| LinkRate::Constant { bits_per_s });
    let direction = Direction { delay_ns: rtt_ns / 2, rate, ..Direction::default() };
    Network {
        name: "n".to_owned(),
        title: "n".to_owned(),
        source: "test".to_owned(),
        up: direction.clone(),
        down: direction,
        timeline: Vec::new(),
    }
}

/// The summary of a run of one client group.
pub(crate) fn summary_of(plan: &Plan, record: &RunRecord) -> RunSummary {
    let mut all = RunSummary::all_of(plan, record);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The cell of the level `variant`, on the only network.
fn cell_of(place: usize, variant: Variant) -> Cell {
    Cell {
        pins: None,
        cell: number::small(place),
        levels: vec![level_of(variant), Level { factor: "network".to_owned(), value: "n".to_owned() }],
        network: 0,
        backend: Backend::default(),
        group: ClientGroup {
            group: 0,
            client: model::external::OWN_CLIENT.to_owned(),
            node: "client".to_owned(),
            variant,
            workload: 0,
            name: String::new(),
            clients: 1,
            start: model::Start::Together,
            end: GroupEnd::Done,
            is_background: false,
        },
        chain: ServerChain::alone("server", "origin"),
        expected_run_ns: 1000 * MS,
        run_limit_ns: 10_000 * MS,
        unsupported: None,
    }
}

fn level_of(variant: Variant) -> Level {
    Level { factor: "variant".to_owned(), value: variant.to_string() }
}

fn plan(variants: &[Variant], workload: Workload, metric: &str) -> Plan {
    let cells: Vec<Cell> =
        variants.iter().enumerate().map(|(place, variant)| cell_of(place, *variant)).collect();
    let count = number::small(cells.len());
    let runs = (0..RUNS * count)
        .map(|run| PlannedRun { run, block: run / count, cell: run % count, seed: u64::from(run) })
        .collect();
    Plan {
        version: PLAN_VERSION,
        study: "test".to_owned(),
        question: "which?".to_owned(),
        study_text: String::new(),
        metric: metric.to_owned(),
        statistic: Statistic::Median,
        baseline: level_of(variants[0]),
        margin_share: 0.03,
        seed: 1,
        runs_per_cell: RUNS,
        repetition: None,
        pins: Pins::default(),
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
        monitor: MonitorRate::default(),
        topology: model::plan::PlannedTopology::default(),
        networks: vec![network(150 * MS, Some(50_000_000))],
        workloads: vec![NamedWorkload {
            name: "w".to_owned(),
            workload,
            options: model::options::Options::default(),
        }],
        media: Vec::new(),
        servers: vec!["origin".to_owned()],
        cells,
        runs,
    }
}

/// A little noise that differs between runs: 0 to 1 % of the value.
fn noisy(value_ns: u64, run: u32) -> u64 {
    value_ns + value_ns / 1000 * u64::from(run * 7 % 11)
}

fn record(plan: &Plan, run: &PlannedRun) -> RunRecord {
    let variant = plan.cells[run.cell as usize].group.variant;
    let handshake_ns = noisy(160 * MS * u64::from(handshake_round_trips(variant, &plan.pins)), run.run);
    let round_trip_ns = noisy(160 * MS, run.run);
    let (rows, finished_ns) = match &plan.workloads[0].workload {
        Workload::Page(page) => {
            // HTTP/1.1 fetches the two children one after the other, the others both at once.
            let serial = u64::from(variant.http() == model::variant::HttpVersion::Http11);
            let ends = [1, 2, 2 + serial].map(|trips| handshake_ns + trips * round_trip_ns);
            let rows = ends
                .iter()
                .enumerate()
                .map(|(url, end)| {
                    row(variant, url as u64, number::small(url), 1000, *end, page.resources[url].bytes)
                })
                .collect::<Vec<_>>();
            (rows, ends[2])
        }
        Workload::Player(player) => (segments(player, variant), 3000 * MS),
        Workload::Closed(_) | Workload::Open(_) | Workload::Script(_) => {
            let end = |request: u64| handshake_ns + (request + 1) * round_trip_ns;
            let rows = (0..CLOSED_REQUESTS)
                .map(|request| row(variant, request, 0, end(request) - round_trip_ns, end(request), 128))
                .collect::<Vec<_>>();
            (rows, end(CLOSED_REQUESTS - 1))
        }
    };
    let direction = DirectionReport {
        packets_in: 20,
        bytes_in: 20_000,
        packets_out: 20,
        bytes_out: 20_000,
        lateness: Some(Lateness { p50_ns: 20_000, p99_ns: 100_000, max_ns: 150_000 }),
        ..DirectionReport::default()
    };
    let link = LinkReport {
        link: "client-server".to_owned(),
        up: direction.clone(),
        down: direction,
        ..LinkReport::default()
    };
    RunRecord {
        run: run.run,
        cell: run.cell,
        block: run.block,
        began_unix_ns: 0,
        took_ns: 1000 * MS,
        content: None,
        outcome: Outcome::Ok,
        player: playback(&plan.workloads[0].workload, &rows),
        page_events: Vec::new(),
        samples: rows,
        connections: connections(plan, variant, handshake_ns),
        clients: vec![ClientReport {
            started_ns: 1000,
            finished_ns,
            cpu_user_ns: 5 * MS,
            cpu_system_ns: 5 * MS,
            run_queue_ns: MS,
            ..ClientReport::default()
        }],
        servers: vec![ServerReport { sends: sends(), ..ServerReport::default() }],
        server_requests: Vec::new(),
        readings: Vec::new(),
        links: vec![link],
        round_trips: vec![Calibration {
            group: 0,
            expected_rtt_ns: 150 * MS,
            rtt_ns: vec![150 * MS + 100_000; 5],
            sent: 5,
        }],
    }
}

/// Four segments, one after the other.
fn segments(player: &Player, variant: Variant) -> Vec<Sample> {
    let stamps = [(0, 600), (600, 900), (900, 2000), (2000, 2400)].map(|(from, to)| (from * MS, to * MS));
    let rows = (0_u32..).zip(stamps).zip([0, 1, 1, 0]).map(|((request, (from, to)), url)| {
        let bytes = player.resources()[url].bytes.unwrap();
        row(variant, u64::from(request), number::small(url), from, to, bytes)
    });
    rows.collect()
}

/// Playing from the first segment on, stalled from 1.6 s until the third is there, ended at 3 s.
fn playback(workload: &Workload, rows: &[Sample]) -> Vec<PlayerEvent> {
    let Workload::Player(_) = workload else { return Vec::new() };
    use PlayerEventKind::{Arrived, Ended, Playing, Requested, Stalled};
    let event = |at_ms: u64, what, segment: u32, buffered_ms: u64| {
        let url = rows.get(segment as usize).map_or(0, |row| row.url);
        let bits_per_s = [1_000_000, 2_500_000][url as usize];
        PlayerEvent {
            at_ns: at_ms * MS,
            what,
            segment,
            track: matches!(what, Requested | Arrived).then_some(TrackKind::Video),
            segment_ns: 500 * MS,
            bits_per_s,
            buffered_ns: buffered_ms * MS,
            ..PlayerEvent::default()
        }
    };
    vec![
        event(0, Requested, 0, 0),
        event(600, Arrived, 0, 500),
        event(600, Playing, 0, 500),
        event(600, Requested, 1, 500),
        event(900, Arrived, 1, 700),
        event(900, Requested, 2, 700),
        event(1600, Stalled, 2, 0),
        event(2000, Arrived, 2, 500),
        event(2000, Playing, 2, 500),
        event(2000, Requested, 3, 500),
        event(2400, Arrived, 3, 600),
        event(3000, Ended, 3, 0),
    ]
}

fn row(variant: Variant, request: u64, url: u32, intended_ns: u64, done_ns: u64, bytes: u64) -> Sample {
    Sample {
        request,
        url,
        connection: Some(0),
        phase: Phase::Measure,
        intended_ns,
        sent_ns: Some(intended_ns),
        first_byte_ns: Some(done_ns - 1000),
        done_ns: Some(done_ns),
        status: Some(200),
        version: Some(variant.http()),
        request_header_raw_bytes: 100,
        request_header_wire_bytes: 50,
        response_header_raw_bytes: 200,
        response_header_wire_bytes: 90,
        request_body_bytes: 0,
        response_body_bytes: bytes,
        expected_body_bytes: Some(bytes),
        ..Sample::default()
    }
}

/// By the rules of TCP.
fn sends() -> Sending {
    let [cubic, ten, no, yes] = ["cubic", "10", "no", "yes"].map(|word| Some(word.to_owned()));
    Sending { congestion_control: cubic, initial_window: ten, pacing: no, gso: yes, tls_records: None }
}

/// HTTP/1.1 fetches a page over two.
fn connections(plan: &Plan, variant: Variant, ready_ns: u64) -> Vec<ConnectionRow> {
    let is_page = plan.workloads[0].workload.page().is_some();
    let is_http1 = variant.http() == model::variant::HttpVersion::Http11;
    let one = connection(variant, ready_ns);
    let second = (is_page && is_http1).then(|| ConnectionRow { connection: 1, ..one.clone() });
    [one].into_iter().chain(second).collect()
}

fn connection(variant: Variant, ready_ns: u64) -> ConnectionRow {
    let encrypted = |text: &str| variant.is_encrypted().then(|| text.to_owned());
    ConnectionRow {
        opened_ns: 1000,
        ready_ns: Some(ready_ns),
        tls_version: encrypted("1.3"),
        cipher_suite: encrypted("TLS_AES_128_GCM_SHA256"),
        key_exchange: encrypted("X25519"),
        ..ConnectionRow::default()
    }
}
