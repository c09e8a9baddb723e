//! Results are read back as stored, and survive kills and damage.

#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use model::assignment::{AddressChange, ClientReport, DnsLookup, Lag, Suspensions, WarmupCost};
use model::external::{ExternalReport, FailureCount};
use model::media::TrackKind;
use model::monitor::{QUANTITIES, Reading, Subject, SubjectKind};
use model::page_events::PageEvents;
use model::player::{PlayerEvent, PlayerEventKind, PlayerFault};
use model::record::{
    Calibration, DirectionReport, Lateness, LinkReport, Sending, ServerReport, ServerRequest, TimeSource,
};
use model::sample::{
    Cause, EarlyData, Failure, FailureKind, Hints, MigrationTimes, Phase, Pushes, ServerClose,
};
use model::{Backend, CachedContent, ConnectionRow, HttpVersion, Outcome, RunRecord, Sample};
use proptest::option;
use proptest::prelude::*;
use store::{Damage, ResultFolder};

/// The largest number that a signed column holds.
const MAX: u64 = i64::MAX as u64;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..1000_u64, 0..=MAX, Just(MAX)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let kinds = vec![FailureKind::Dns, FailureKind::WrongStatus, FailureKind::System, FailureKind::Tls];
    prop_oneof![
        Just(Outcome::Ok),
        (prop::sample::select(kinds), ".{0,20}")
            .prop_map(|(kind, reason)| Outcome::Failed(Failure { kind, reason })),
        ".{0,20}".prop_map(Outcome::Unsupported),
    ]
}

prop_compose! {
    fn sample()(
        (group, client, request, url, connection)
            in (0..3_u16, any::<u32>(), number(), 0..4_u32, option::of(any::<u32>())),
        warmup in any::<bool>(),
        (intended_ns, sent_ns, first_byte_ns, done_ns)
            in (number(), option::of(number()), option::of(number()), option::of(number())),
        status in option::of(any::<u16>()),
        version in option::of(prop::sample::select(vec![HttpVersion::Http10, HttpVersion::Http3])),
        headers in any::<[u32; 4]>(),
        (request_body_bytes, response_body_bytes, expected_body_bytes)
            in (number(), number(), option::of(number())),
        (response_body_crc32, content) in (option::of(any::<u32>()), option::of(any::<u16>())),
        outcome in outcome(),
    ) -> Sample {
        Sample {
            group, client, request, url, connection,
            phase: if warmup { Phase::Warmup } else { Phase::Measure },
            cause: if warmup { Cause::Push } else { Cause::Hint },
            resent: u32::from(warmup),
            intended_ns, sent_ns, first_byte_ns, done_ns, status, version,
            request_header_raw_bytes: headers[0],
            request_header_wire_bytes: headers[1],
            response_header_raw_bytes: headers[2],
            response_header_wire_bytes: headers[3],
            request_body_bytes, response_body_bytes, expected_body_bytes, response_body_crc32, content, outcome,
        }
    }
}

prop_compose! {
    fn connection()(
        (group, client, connection, opened_ns) in (any::<u16>(), any::<u32>(), any::<u32>(), number()),
        stamps in [option::of(number()), option::of(number()), option::of(number())],
        server_close in option::of(prop::sample::select(ServerClose::ALL.to_vec())),
        texts in prop::collection::vec(option::of(".{0,8}"), 4),
        (resumed, early_data) in (any::<bool>(), prop::sample::select(vec![
            EarlyData::NotTried, EarlyData::Accepted, EarlyData::Rejected,
        ])),
        (early_requests, whole, broken, refused, body_bytes)
            in (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), number()),
        moved in option::of((number(), option::of(number()))),
        (sent_bytes, received_bytes, lacks_bytes) in (number(), number(), any::<bool>()),
        outcome in outcome(),
    ) -> ConnectionRow {
        ConnectionRow {
            group, client, connection, opened_ns,
            connected_ns: stamps[0], ready_ns: stamps[1], closed_ns: stamps[2],
            server_close,
            alpn: texts[0].clone(), tls_version: texts[1].clone(),
            cipher_suite: texts[2].clone(), key_exchange: texts[3].clone(),
            resumed, early_data, early_requests,
            pushed: Pushes {
                whole, broken, refused, body_bytes,
                used: whole / 2, late: refused / 2, wasted_bytes: body_bytes / 2,
            },
            lost: resumed,
            resent: u32::from(resumed),
            hinted: Hints { used: whole, late: broken, unused: refused },
            migrated: moved.map(|(at_ns, answered_ns)| MigrationTimes { at_ns, answered_ns }),
            // A browser does not report them.
            sent_bytes: if lacks_bytes { 0 } else { sent_bytes },
            received_bytes: if lacks_bytes { 0 } else { received_bytes },
            lacks_bytes, outcome,
        }
    }
}

prop_compose! {
    fn page_events()(
        (group, client, began_ns) in (any::<u16>(), any::<u32>(), number()),
        stamps in prop::collection::vec(option::of(number()), 13),
        (layout_shift_millionths, console_errors) in (option::of(number()), number()),
        console in prop::collection::vec(".{0,10}", 0..4),
        is_sandboxed in any::<bool>(),
    ) -> PageEvents {
        PageEvents {
            group, client, began_ns, layout_shift_millionths, console_errors, console, is_sandboxed,
            dns_began_ns: stamps[0], dns_ended_ns: stamps[1],
            connect_began_ns: stamps[2], connect_ended_ns: stamps[3],
            handshake_began_ns: stamps[4], handshake_ended_ns: stamps[5],
            sent_ns: stamps[6], first_byte_ns: stamps[7], done_ns: stamps[8],
            first_contentful_paint_ns: stamps[9], largest_contentful_paint_ns: stamps[10],
            dom_content_loaded_ns: stamps[11], loaded_ns: stamps[12],
        }
    }
}

prop_compose! {
    fn direction()(n in prop::collection::vec(number(), 16), measured in any::<bool>()) -> DirectionReport {
        DirectionReport {
            packets_in: n[0], bytes_in: n[1], packets_out: n[2], bytes_out: n[3],
            lost_configured: n[4], lost_queue: n[5], lost_overload: n[6], lost_middlebox: n[15],
            lateness: measured.then_some(Lateness { p50_ns: n[7], p99_ns: n[8], max_ns: n[9] }),
            lost_outage: n[10], lost_codel: n[11], marked: n[12],
            duplicated: measured.then_some(n[13]), reordered: measured.then_some(n[14]),
        }
    }
}

fn client() -> impl Strategy<Value = ClientReport> {
    let texts = (prop::collection::vec("/.{0,10}", 0..4), option::of(".{0,8}"));
    (texts, prop::collection::vec(number(), 25), any::<bool>()).prop_map(|((urls, stopped), n, warm)| {
        let warmup = WarmupCost {
            ended_ns: n[11],
            cpu_user_ns: n[12],
            cpu_system_ns: n[13],
            run_queue_ns: n[14],
            suspended_ns: n[17],
            sent_bytes: n[15],
            received_bytes: n[16],
        };
        ClientReport {
            contents: urls.clone(),
            urls,
            stopped,
            dns_lookup: (n[6] % 2 == 0).then_some(DnsLookup { began_ns: n[7], ended_ns: n[8] }),
            address_change: (n[8] % 2 == 0)
                .then_some(AddressChange { at_ns: n[9], received_ns: (n[10] % 2 == 0).then_some(n[11]) }),
            lag: Lag { p50_ns: n[6], p99_ns: n[7], max_ns: n[8] },
            never_sent: n[9],
            never_sent_held: n[18],
            own_lag: Lag { p50_ns: n[19], p99_ns: n[20], max_ns: n[21] },
            suspended: Suspensions { count: n[22], total_ns: n[23], max_ns: n[24] },
            unfinished: n[10],
            clients_begun: u32::try_from(n[11] % 1000).unwrap(),
            clients_finished: u32::try_from(n[12] % 1000).unwrap(),
            warmup: warm.then_some(warmup),
            started_ns: n[0],
            finished_ns: n[1],
            cpu_user_ns: n[2],
            cpu_system_ns: n[3],
            run_queue_ns: n[4],
            max_resident_bytes: n[5],
            ..ClientReport::default()
        }
    })
}

fn server() -> impl Strategy<Value = ServerReport> {
    let sends = prop::array::uniform5(option::of("[a-z0-9]{1,8}")).prop_map(Sending::of);
    (
        ".{0,8}",
        option::of(".{0,8}"),
        ".{0,8}",
        number(),
        number(),
        number(),
        number(),
        any::<bool>(),
        (sends, option::of(number())),
    )
        .prop_map(
            |(
                name,
                log_fault,
                version,
                ready_after_ns,
                cpu_user_ns,
                cpu_system_ns,
                run_queue_ns,
                was_killed,
                (sends, concurrency),
            )| ServerReport {
                sends,
                concurrency,
                was_killed,
                log_fault,
                name,
                version,
                ready_after_ns,
                cpu_user_ns,
                cpu_system_ns,
                run_queue_ns,
            },
        )
}

prop_compose! {
    fn server_request()(
        (server, group, request) in (any::<u16>(), any::<u16>(), number()),
        (request_time_ns, precision_ns, is_log) in (number(), number(), any::<bool>()),
        maybe in prop::array::uniform6(option::of(number())),
        status in option::of(any::<u16>()),
        remote_port in option::of(any::<u16>()),
    ) -> ServerRequest {
        ServerRequest {
            server, group, request, request_time_ns, precision_ns,
            source: if is_log { TimeSource::Log } else { TimeSource::Packets },
            log_time_ns: maybe[0],
            arrived_ns: maybe[1],
            first_sent_ns: maybe[2],
            sent_ns: maybe[3],
            logged_unix_ns: maybe[4],
            status,
            body_bytes: maybe[5],
            remote_port,
        }
    }
}

fn player_event() -> impl Strategy<Value = PlayerEvent> {
    let what = prop::sample::select(PlayerEventKind::ALL.to_vec());
    let track = option::of(prop::sample::select(TrackKind::ALL.to_vec()));
    let fault = option::of(prop::sample::select(PlayerFault::ALL.to_vec()));
    let segment = (any::<u32>(), number(), number());
    let buffers = (number(), option::of(number()), option::of(number()));
    let frames = (option::of(number()), option::of(number()));
    (any::<u16>(), any::<u32>(), number(), what, track, segment, buffers, (frames, fault)).prop_map(
        |(group, client, at_ns, what, track, segment, buffers, (frames, fault))| {
            let (segment, segment_ns, bits_per_s) = segment;
            let (buffered_ns, track_buffered_ns, latency_ns) = buffers;
            PlayerEvent {
                group,
                client,
                at_ns,
                what,
                track,
                segment,
                segment_ns,
                bits_per_s,
                buffered_ns,
                track_buffered_ns,
                latency_ns,
                frames: frames.0,
                dropped_frames: frames.1,
                fault,
            }
        },
    )
}

fn link() -> impl Strategy<Value = LinkReport> {
    (".{0,8}", any::<bool>(), direction(), direction(), any::<bool>(), option::of(number())).prop_map(
        |(link, is_kernel, up, down, realtime, cpu_ns)| {
            let backend = if is_kernel { Backend::Netem } else { Backend::UserSpace };
            LinkReport { link, backend, up, down, realtime, cpu_ns }
        },
    )
}

fn calibration() -> impl Strategy<Value = Calibration> {
    let rtt_ns = prop::collection::vec(number(), 0..5);
    (any::<u16>(), number(), rtt_ns, any::<u32>()).prop_map(|(group, expected_rtt_ns, rtt_ns, sent)| {
        Calibration { group, expected_rtt_ns, rtt_ns, sent }
    })
}

fn reading() -> impl Strategy<Value = Reading> {
    let kinds = vec![SubjectKind::Process, SubjectKind::Sockets, SubjectKind::Core];
    let subject = (option::of(".{0,8}"), prop::sample::select(kinds), ".{0,8}", number());
    let quantities: Vec<_> = QUANTITIES.iter().map(|info| info.quantity).collect();
    (number(), subject, prop::sample::select(quantities), number()).prop_map(
        |(at_ns, (node, kind, name, id), quantity, value)| {
            let node = node.map(|node| node.as_str().into());
            Reading {
                at_ns,
                subject: Subject { node, kind, name: name.as_str().into(), id },
                quantity,
                value,
            }
        },
    )
}

prop_compose! {
    fn record()(
        (cell, block, began_unix_ns, took_ns) in (0..1_000_000_u32, any::<u32>(), number(), number()),
        content in prop::option::of((number(), number())),
        outcome in outcome(),
        samples in prop::collection::vec(sample(), 0..20),
        connections in prop::collection::vec(connection(), 0..4),
        clients in prop::collection::vec(client(), 0..3),
        servers in prop::collection::vec(server(), 0..2),
        server_requests in prop::collection::vec(server_request(), 0..20),
        (player, page_events) in (
            prop::collection::vec(player_event(), 0..20),
            prop::collection::vec(page_events(), 0..2),
        ),
        links in prop::collection::vec(link(), 0..2),
        readings in prop::collection::vec(reading(), 0..20),
        round_trips in prop::collection::vec(calibration(), 0..3),
    ) -> RunRecord {
        let content = content.map(|(bytes, cached_bytes)| CachedContent { bytes, cached_bytes });
        RunRecord {
            run: 0, cell, block, began_unix_ns, took_ns, content, outcome, samples, connections, clients, servers,
            server_requests, player, page_events, links, readings, round_trips,
        }
    }
}

fn records() -> impl Strategy<Value = Vec<RunRecord>> {
    prop::collection::vec(record(), 1..5).prop_map(|mut records| {
        for (run, record) in (0..).zip(&mut records) {
            record.run = run;
        }
        records
    })
}

/// A run with `rows` requests over two URLs.
fn plain(run: u32, rows: u64) -> RunRecord {
    let row = |request| Sample {
        group: 0,
        client: 0,
        request,
        url: u32::try_from(request % 2).unwrap(),
        connection: Some(0),
        phase: Phase::Measure,
        cause: Cause::Due,
        resent: 0,
        intended_ns: request * 10,
        sent_ns: Some(request * 10 + 1),
        first_byte_ns: Some(request * 10 + 2),
        done_ns: Some(request * 10 + 3),
        status: Some(200),
        version: Some(HttpVersion::Http2),
        request_header_raw_bytes: 100,
        request_header_wire_bytes: 40,
        response_header_raw_bytes: 200,
        response_header_wire_bytes: 60,
        request_body_bytes: 0,
        response_body_bytes: 1000,
        expected_body_bytes: Some(1000),
        response_body_crc32: None,
        content: None,
        outcome: Outcome::Ok,
    };
    RunRecord {
        run,
        cell: run % 3,
        block: run / 3,
        began_unix_ns: 1_700_000_000_000_000_000,
        took_ns: 5,
        content: None,
        outcome: Outcome::Ok,
        samples: (0..rows).map(row).collect(),
        connections: Vec::new(),
        clients: vec![ClientReport { urls: vec!["/a".into(), "/b".into()], ..ClientReport::default() }],
        servers: Vec::new(),
        server_requests: Vec::new(),
        page_events: Vec::new(),
        player: Vec::new(),
        readings: Vec::new(),
        links: Vec::new(),
        round_trips: Vec::new(),
    }
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("result")
    }

    fn filled(&self, records: &[RunRecord]) -> ResultFolder {
        let mut result = ResultFolder::create(&self.path(), 0).unwrap();
        records.iter().for_each(|record| result.append(record).unwrap());
        result
    }
}

fn read_all(result: &ResultFolder) -> (Vec<RunRecord>, Vec<Damage>) {
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for record in result.records().unwrap() {
        match record {
            Ok(record) => whole.push(record),
            Err(damage) => damaged.push(damage),
        }
    }
    for threads in [1, 3] {
        assert_eq!(fold_all(result, threads), (whole.clone(), damaged.clone()), "on {threads} threads");
    }
    (whole, damaged)
}

/// The same, row by row.
fn fold_all(result: &ResultFolder, threads: usize) -> (Vec<RunRecord>, Vec<Damage>) {
    let folded = result.fold_runs(threads, |record, samples| {
        let mut whole = record.clone();
        assert!(whole.samples.is_empty());
        samples.for_each(|sample| whole.samples.push(sample.clone()))?;
        assert_eq!(whole.samples.len() as u64, samples.count());
        Ok(whole)
    });
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for record in folded.unwrap() {
        match record {
            Ok(record) => whole.push(record),
            Err(damage) => damaged.push(damage),
        }
    }
    (whole, damaged)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stored_records_are_read_back_before_and_after_compaction(records in records()) {
        let place = Place::new();
        let mut result = place.filled(&records);
        prop_assert_eq!(read_all(&result), (records.clone(), vec![]));
        let done = result.compact().unwrap();
        prop_assert_eq!((done.runs as usize, done.damaged), (records.len(), vec![]));
        prop_assert_eq!(read_all(&result), (records.clone(), vec![]));
        let names: Vec<_> = result.stored_runs().unwrap().whole.into_iter().collect();
        prop_assert_eq!(names, (0..u32::try_from(records.len()).unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn many_row_groups_and_a_second_compaction() {
    let place = Place::new();
    let first = [plain(0, 70_000), plain(1, 0), plain(2, 70_001)];
    let mut result = place.filled(&first);
    result.compact().unwrap();
    drop(result);
    let mut result = ResultFolder::open(&place.path()).unwrap();
    result.append(&plain(3, 7)).unwrap();
    assert!(result.append(&plain(2, 1)).unwrap_err().to_string().contains("run 2 is already stored"));
    let all = [first.to_vec(), vec![plain(3, 7)]].concat();
    assert_eq!(read_all(&result), (all.clone(), vec![]));
    assert_eq!(result.compact().unwrap().runs, 4);
    assert_eq!(read_all(&result), (all, vec![]));
    assert_eq!(folders(&place.path().join("samples")), Vec::<String>::new());
}

#[test]
fn bytes_that_an_external_client_does_not_report_are_null() {
    let mut unreported = plain(0, 3);
    for sample in &mut unreported.samples {
        sample.request_header_raw_bytes = 0;
        sample.request_header_wire_bytes = 0;
        sample.response_header_raw_bytes = 0;
        sample.response_header_wire_bytes = 0;
        sample.response_body_bytes = 0;
        sample.expected_body_bytes = None;
    }
    let report = ExternalReport {
        client: "wrk".into(),
        version: "4.1.0".into(),
        requests_ok: 7,
        failures: vec![
            FailureCount { kind: FailureKind::Timeout, requests: 2 },
            FailureCount { kind: FailureKind::WrongStatus, requests: 1 },
        ],
        took_ns: Some(5),
        times_ns: vec![3, 4],
        times_requests: vec![6, 1],
        body_bytes: Some(8),
        has_row_bytes: false,
        connections: None,
        http: Some(HttpVersion::Http11),
        begins: Some("the request is written".into()),
        not_reported: vec!["version: wrk does not say which".into()],
    };
    unreported.clients[0].external = Some(Box::new(report.clone()));
    let mut counted = unreported.clone();
    counted.run = 1;
    counted.samples.iter_mut().for_each(|sample| sample.response_body_bytes = 1000);
    counted.clients[0].external = Some(Box::new(ExternalReport { has_row_bytes: true, ..report }));
    let records = [unreported, counted, plain(2, 3)];
    let place = Place::new();
    let mut result = place.filled(&records);
    assert_eq!(read_all(&result), (records.to_vec(), vec![]));
    result.compact().unwrap();
    assert_eq!(read_all(&result), (records.to_vec(), vec![]));
    // Bytes that the client does not report are not stored.
    let mut wrong = records[0].clone();
    (wrong.run, wrong.samples[0].response_body_bytes) = (3, 9);
    result.append(&wrong).unwrap();
    let (whole, _) = read_all(&result);
    assert_eq!(whole[3].samples[0].response_body_bytes, 0);
}

#[test]
fn a_number_that_does_not_fit_is_an_error_with_its_column() {
    let place = Place::new();
    let mut result = place.filled(&[]);
    let mut record = plain(0, 1);
    record.samples[0].intended_ns = u64::MAX;
    let error = format!("{:#}", result.append(&record).unwrap_err());
    assert!(error.contains("intended_ns") && error.contains("18446744073709551615"), "{error}");
    assert_eq!(read_all(&result), (vec![], vec![]));
    result.append(&plain(0, 1)).unwrap();
}

#[test]
fn damage_costs_only_its_run() {
    let place = Place::new();
    let mut result = place.filled(&[plain(0, 50), plain(1, 50), plain(2, 50), plain(3, 50)]);
    let samples = place.path().join("samples");
    flip(&samples.join("run-000000/requests.parquet"), 600);
    let truncated = samples.join("run-000001/requests.parquet");
    let bytes = fs::read(&truncated).unwrap();
    fs::write(&truncated, &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_file(samples.join("run-000002/clients.parquet")).unwrap();

    let (whole, damaged) = read_all(&result);
    assert_eq!(whole, [plain(3, 50)]);
    let runs: Vec<_> = damaged.iter().map(|damage| damage.run).collect();
    assert_eq!(runs, [Some(0), Some(1), Some(2)]);
    assert!(damaged[0].to_string().contains("run-000000/requests.parquet"), "{}", damaged[0]);
    assert!(damaged[0].reason.contains("checksum"), "{}", damaged[0]);
    assert!(damaged[1].reason.contains(" bytes instead of "), "{}", damaged[1]);
    assert!(damaged[2].file.ends_with("clients.parquet"), "{}", damaged[2]);

    let stored = result.stored_runs().unwrap();
    assert!(!stored.whole.contains(&1) && !stored.whole.contains(&2) && stored.whole.contains(&3));
    let done = result.compact().unwrap();
    assert_eq!((done.runs, done.damaged.len()), (1, 3));
    assert_eq!(folders(&samples), ["run-000000", "run-000001", "run-000002"]);

    drop(result);
    let mut result = ResultFolder::open(&place.path()).unwrap();
    result.append(&plain(1, 50)).unwrap();
    assert!(folders(&samples).contains(&"damaged-run-000001-1".to_owned()));
    assert_eq!(read_all(&result).0, [plain(3, 50), plain(1, 50)]);
}

#[test]
fn every_flipped_byte_is_found() {
    let place = Place::new();
    let result = place.filled(&[plain(0, 3)]);
    for table in ["runs", "requests", "clients"] {
        let path = place.path().join(format!("samples/run-000000/{table}.parquet"));
        let length = fs::metadata(&path).unwrap().len();
        for position in (0..length).step_by(7) {
            flip(&path, position);
            let (whole, damaged) = read_all(&result);
            assert!(whole.is_empty() && damaged.len() == 1, "{table} at {position}: {damaged:?}");
            flip(&path, position);
        }
    }
    assert_eq!(read_all(&result).0.len(), 1);
}

#[test]
fn damage_in_a_compacted_table_costs_its_row_group() {
    let place = Place::new();
    let records = [plain(0, 65_536), plain(1, 65_536)];
    let mut result = place.filled(&records);
    result.compact().unwrap();
    let requests = place.path().join("samples/requests.parquet");
    let middle = fs::metadata(&requests).unwrap().len() * 3 / 4;
    assert!(middle > 1 << 20, "the row groups share a checksum: write more rows");
    flip(&requests, middle);
    let (whole, damaged) = read_all(&result);
    assert_eq!(whole, records[..1]);
    assert_eq!(damaged[0].run, Some(1));
    let error = format!("{:#}", result.compact().unwrap_err());
    assert!(error.contains("nothing was compacted") && error.contains("requests.parquet"), "{error}");
    assert_eq!(read_all(&result).0, records[..1]);

    // The run is repeated, and the result is whole again.
    drop(result);
    let mut result = ResultFolder::open(&place.path()).unwrap();
    assert_eq!(result.stored_runs().unwrap().whole.into_iter().collect::<Vec<_>>(), [0]);
    result.append(&plain(1, 50)).unwrap();
    let done = result.compact().unwrap();
    assert_eq!((done.runs, done.damaged.len()), (2, 1));
    assert_eq!(read_all(&result), (vec![plain(0, 65_536), plain(1, 50)], vec![]));
    assert!(place.path().join("samples/damaged-tables-1/requests.parquet").exists(), "nothing is lost");
    let samples = place.path().join("samples");
    assert!(!samples.join("run-000001").exists());
}

#[test]
fn all_runs_are_repeated_where_the_table_of_runs_is_lost() {
    let place = Place::new();
    let mut result = place.filled(&[plain(0, 5), plain(1, 5)]);
    result.compact().unwrap();
    flip(&place.path().join("samples/runs.parquet"), 40);
    drop(result);
    let mut result = ResultFolder::open(&place.path()).unwrap();
    assert!(result.stored_runs().unwrap().whole.is_empty());
    result.append(&plain(0, 7)).unwrap();
    result.append(&plain(1, 7)).unwrap();
    result.compact().unwrap();
    assert_eq!(read_all(&result), (vec![plain(0, 7), plain(1, 7)], vec![]));
}

#[test]
fn a_kill_at_any_time_leaves_whole_runs() {
    let place = Place::new();
    let records = [plain(0, 5), plain(1, 5)];
    drop(place.filled(&records));
    let samples = place.path().join("samples");
    copy(&samples.join("run-000000"), &samples.join(".run-000002.tmp"));
    copy(&samples.join("run-000000"), &samples.join(".compact.tmp"));

    let mut result = ResultFolder::open(&place.path()).unwrap();
    assert_eq!(read_all(&result), (records.to_vec(), vec![]));
    result.append(&plain(2, 1)).unwrap();
    assert_eq!(folders(&samples), ["run-000000", "run-000001", "run-000002"]);
}

#[test]
fn an_interrupted_compaction_is_completed() {
    let records = [plain(0, 5), plain(1, 6)];
    let whole = Place::new();
    whole.filled(&records).compact().unwrap();
    let files = [
        "runs",
        "requests",
        "connections",
        "clients",
        "servers",
        "server_requests",
        "player",
        "links",
        "monitor",
    ]
    .map(|t| format!("{t}.parquet"));
    for moved in 0..=files.len() {
        let place = Place::new();
        drop(place.filled(&records));
        let samples = place.path().join("samples");
        fs::create_dir(samples.join(".compact")).unwrap();
        for (index, file) in files.iter().map(String::as_str).chain(["checksums.json"]).enumerate() {
            let target = if index < moved { samples.clone() } else { samples.join(".compact") };
            fs::copy(whole.path().join("samples").join(file), target.join(file)).unwrap();
        }
        let result = ResultFolder::open(&place.path()).unwrap();
        assert_eq!(read_all(&result), (records.to_vec(), vec![]), "{moved} files moved");
        assert_eq!(folders(&samples), Vec::<String>::new());
    }
}

#[test]
fn tables_without_a_checksum_are_named() {
    let place = Place::new();
    let mut result = place.filled(&[plain(0, 5), plain(1, 6)]);
    assert_eq!(result.unverified().unwrap(), Vec::<PathBuf>::new());
    let samples = place.path().join("samples");
    fs::remove_file(samples.join("run-000001/checksums.json")).unwrap();
    let alone = result.unverified().unwrap();
    assert!(alone.contains(&samples.join("run-000001/requests.parquet")) && alone.len() > 2, "{alone:?}");
    assert!(alone.iter().all(|file| file.starts_with(samples.join("run-000001"))), "{alone:?}");
    result.compact().unwrap();
    assert_eq!(result.unverified().unwrap(), Vec::<PathBuf>::new());
    let file = samples.join("checksums.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("links.parquet", "other.parquet")).unwrap();
    assert_eq!(result.unverified().unwrap(), [samples.join("links.parquet")]);
    fs::remove_file(&file).unwrap();
    let tables = fs::read_dir(&samples)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "parquet"));
    assert_eq!(result.unverified().unwrap().len(), tables.count());
}

#[test]
fn only_reports_ignore_damaged_checksums() {
    let place = Place::new();
    let result = place.filled(&[plain(0, 5), plain(1, 6)]);
    fs::write(place.path().join("samples/run-000001/checksums.json"), "no json").unwrap();
    let whole: Vec<u32> = result.stored_runs().unwrap().whole.into_iter().collect();
    assert_eq!(whole, [0], "the other one is measured again");
    let (read, damage) = read_all(&result);
    assert!(read.len() == 1 && damage.len() == 1, "{damage:?}");
    let rows = result.fold_readable(1, |record, samples| Ok((record.run, samples.count()))).unwrap();
    let rows: Vec<(u32, u64)> = rows.into_iter().map(|run| run.unwrap().0).collect();
    assert_eq!(rows, [(0, 5), (1, 6)]);
    assert!(result.unverified().unwrap().iter().any(|file| file.ends_with("run-000001/requests.parquet")));
}

fn flip(path: &Path, position: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(position).unwrap()] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn folders(samples: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(samples)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
