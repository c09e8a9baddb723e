//! The forms of a fabricated report.

use std::collections::BTreeSet;

use load::{Report, Tallies};
use model::assignment::{ClientReport, Lag, WarmupCost};
use model::sample::{ConnectionRow, EarlyData, FailureKind, MigrationTimes, Outcome, Phase, Pushes, Sample};
use model::tally::{ConnectionRequests, ConnectionTally, Counts};
use model::{Histogram, HttpVersion};
use serde_json::Value;

use super::rows::WrittenRows;
use super::summary::{Setup, Summary};
use super::text::Style;
use super::thresholds::{Threshold, ThresholdResult};
use super::warnings::warnings;
use super::{csv, json, text};

const MS: u64 = 1_000_000;

fn sample(request: u64, url: u32, latency_ns: u64) -> Sample {
    let intended_ns = request * MS;
    Sample {
        request,
        url,
        connection: Some(u32::try_from(request % 2).unwrap()),
        intended_ns,
        sent_ns: Some(intended_ns + latency_ns / 10),
        first_byte_ns: Some(intended_ns + latency_ns / 2),
        done_ns: Some(intended_ns + latency_ns),
        status: Some(200),
        version: Some(HttpVersion::Http2),
        request_header_raw_bytes: 100,
        request_header_wire_bytes: 20,
        response_header_raw_bytes: 200,
        response_header_wire_bytes: 50,
        response_body_bytes: 128,
        ..Sample::default()
    }
}

fn connection(number: u32, resumed: bool) -> ConnectionRow {
    ConnectionRow {
        connection: number,
        connected_ns: Some(200_000),
        ready_ns: Some(if resumed { 700_000 } else { 1_200_000 }),
        closed_ns: Some(2000 * MS),
        alpn: Some("h2".into()),
        tls_version: Some("TLS 1.3".into()),
        resumed,
        sent_bytes: 1000,
        received_bytes: 100_000,
        ..ConnectionRow::default()
    }
}

/// 1000 good responses of 1 to 2 ms on two connections, 3 wrong ones that are fast, 10 of the warm-up.
fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> =
        (0..1000).map(|number| sample(number, u32::from(number % 4 == 0), MS + number * 1000)).collect();
    for number in 1000..1003 {
        let mut wrong = sample(number, 1, 10_000);
        wrong.status = Some(503);
        wrong.outcome = Outcome::failed(FailureKind::WrongStatus, format!("status 503, request {number}"));
        samples.push(wrong);
    }
    for number in 1003..1013 {
        samples.push(Sample { phase: Phase::Warmup, ..sample(number, 0, 500 * MS) });
    }
    samples
}

/// A worker's report, with all requests and connections in sums.
fn report_of(samples: &[Sample], connections: &[ConnectionRow]) -> Report {
    let (mut requests, mut summed) = (Tallies::default(), ConnectionTally::default());
    samples.iter().for_each(|sample| requests.record(sample));
    for row in connections {
        let mut carried = ConnectionRequests::default();
        let own = samples.iter().filter(|sample| sample.connection == Some(row.connection));
        own.for_each(|sample| carried.add(ConnectionRequests::of(sample)));
        summed.record(row.clone(), carried);
    }
    let (tallies, times) = requests.finish();
    Report {
        samples: Vec::new(),
        connections: Vec::new(),
        player: Vec::new(),
        rows_waited_ns: 0,
        client: ClientReport {
            urls: vec!["https://a.test/one".into(), "https://a.test/two, \"quoted\"".into()],
            started_ns: 0,
            finished_ns: 2000 * MS,
            cpu_user_ns: 400 * MS,
            cpu_system_ns: 100 * MS,
            max_resident_bytes: 12_000_000,
            unfinished: 2,
            tallies,
            times,
            further_connections: summed,
            ..ClientReport::default()
        },
    }
}

fn report() -> Report {
    report_of(&samples(), &[connection(0, false), connection(1, true)])
}

fn setup() -> Setup {
    Setup {
        url: "urls.txt".into(),
        variant: "h2".into(),
        load: "closed loop · 2 connections · 1 thread".into(),
        dns_ns: vec![300_000],
        ..Setup::default()
    }
}

fn summary() -> Summary {
    Summary::of(setup(), &[report()], None)
}

fn judge(text: &str, summary: &Summary) -> ThresholdResult {
    text.parse::<Threshold>().unwrap().judge(summary)
}

const PLAIN: Style = Style { width: 100, colour: false };

#[test]
fn the_summary_for_people() {
    let summary = summary();
    let results = [judge("p99>1ms", &summary), judge("failed>10", &summary)];
    insta::assert_snapshot!(text::format(&summary, &results, PLAIN));
}

#[test]
fn the_json() {
    let summary = summary();
    let results = [judge("availability<99.9%", &summary)];
    insta::assert_snapshot!(serde_json::to_string_pretty(&json::format(&summary, &results)).unwrap());
}

#[test]
fn the_table() {
    insta::assert_snapshot!(csv::format(&summary()));
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [80, 96, 100, 116, 120] {
        let text = text::format(&summary(), &[], Style { width, colour: false });
        for line in text.lines().skip(1) {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
        assert!(!text.contains('\x1b'));
    }
    assert!(text::format(&summary(), &[], Style { width: 100, colour: true }).contains("\x1b[31m"));
}

#[test]
fn failed_answers_and_warm_up_stay_out_of_the_latencies() {
    let summary = summary();
    assert_eq!((summary.completed.requests, summary.failed), (1000, 3));
    assert!(summary.latency.min().unwrap() >= 999_000, "a failed answer is never a fast answer");
    assert!(summary.latency.max().unwrap() < 3 * MS, "nor is warm-up counted");
    assert_eq!(summary.statuses[&503].requests, 3);
    assert_eq!(summary.ended(), 1003, "its cost is that of the measured requests");
    assert!((summary.availability().unwrap() - 1000.0 / 1003.0).abs() < 1e-12);
    assert_eq!(summary.connections.requests.count(), 2);
    let connections = &summary.connections;
    assert_eq!((connections.handshake.count(), connections.resumed_handshake.count()), (1, 1));
    assert_eq!(summary.duration_ns, 2000 * MS);
}

#[test]
fn sums_agree_with_rows() {
    let (samples, summary) = (samples(), summary());
    let counted: Vec<&Sample> = samples.iter().filter(|sample| sample.phase == Phase::Measure).collect();
    let good: Vec<&Sample> = counted.iter().copied().filter(|sample| sample.outcome.is_ok()).collect();
    let part = |part: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = good.iter().map(|sample| part(sample)).collect();
        values.sort_unstable();
        values
    };
    let done = |sample: &Sample| sample.done_ns.unwrap();
    let parts = [
        ("latency", part(|sample| sample.done_ns.unwrap() - sample.intended_ns)),
        ("service", part(|sample| sample.done_ns.unwrap() - sample.sent_ns.unwrap())),
        ("wait", part(|sample| sample.first_byte_ns.unwrap() - sample.sent_ns.unwrap())),
        ("transfer", part(|sample| sample.done_ns.unwrap() - sample.first_byte_ns.unwrap())),
    ];
    for (name, values) in parts {
        let (_, times) = summary.phases().into_iter().find(|(other, _)| *other == name).unwrap();
        assert_eq!(times.count(), values.len() as u64, "{name}");
        for (share, index) in [(0.5, 499), (0.9, 899), (0.99, 989), (0.999, 998)] {
            let (found, exact) = (times.quantile(share).unwrap(), values[index]);
            assert!(found.abs_diff(exact) * 1000 <= exact, "{name} {share}: {found}, exactly {exact}");
        }
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        assert!((times.mean().unwrap() / mean - 1.0).abs() < 1e-3, "{name}");
    }
    let sum = |field: fn(&Sample) -> u64| good.iter().map(|sample| field(sample)).sum::<u64>();
    assert_eq!(summary.completed.response_body_bytes, sum(|sample| sample.response_body_bytes));
    assert_eq!(
        summary.completed.response_header_wire_bytes,
        sum(|sample| sample.response_header_wire_bytes.into())
    );
    assert_eq!(
        summary.completed.request_header_raw_bytes,
        sum(|sample| sample.request_header_raw_bytes.into())
    );
    assert_eq!(summary.duration_ns, 2000 * MS - counted.iter().map(|s| s.intended_ns).min().unwrap());
    let on_first = counted.iter().filter(|sample| sample.connection == Some(0)).count() as u64;
    assert_eq!(summary.connections.requests.max(), Some(on_first.max(counted.len() as u64 - on_first)));
    assert!(good.iter().all(|sample| done(sample) > sample.intended_ns));
}

#[test]
fn two_threads_are_the_sum_of_both() {
    let samples = samples();
    let (one, other) = samples.split_at(400);
    let connections = [connection(0, false), connection(1, true)];
    let halves = Summary::of(setup(), &[report_of(one, &connections), report_of(other, &[])], None);
    let whole = summary();
    for ((name, half), (_, all)) in halves.phases().into_iter().zip(whole.phases()) {
        assert_eq!(
            (half.count(), half.quantile(0.99), half.max()),
            (all.count(), all.quantile(0.99), all.max()),
            "{name}"
        );
    }
    assert_eq!((&halves.completed, halves.failed), (&whole.completed, whole.failed));
    assert_eq!(halves.urls[1].1.requests, whole.urls[1].1.requests);
    assert_eq!(halves.cpu.user_ns, 2 * whole.cpu.user_ns);
}

#[test]
fn the_cost_of_the_warm_up_is_excluded() {
    let mut report = report();
    report.client.warmup = Some(WarmupCost {
        ended_ns: 1000 * MS,
        cpu_user_ns: 300 * MS,
        cpu_system_ns: 50 * MS,
        run_queue_ns: 0,
        suspended_ns: 0,
        sent_bytes: 500,
        received_bytes: 50_000,
    });
    let summary = Summary::of(setup(), &[report], None);
    assert_eq!((summary.cpu.user_ns, summary.cpu.system_ns), (100 * MS, 50 * MS));
    assert!(
        (summary.cpu.share - 0.15).abs() < 1e-12,
        "of the second after the warm-up: {}",
        summary.cpu.share
    );
    assert_eq!((summary.connections.sent_bytes, summary.connections.received_bytes), (1500, 150_000));
    assert_eq!(summary.ended(), 1003);
}

#[test]
fn failed_connections_without_a_failed_request_are_a_warning() {
    let mut good = samples();
    good.retain(|sample| sample.outcome.is_ok());
    let mut broken = connection(1, false);
    broken.outcome = Outcome::failed(FailureKind::Protocol, "3 bytes came where no response is due");
    let summary = Summary::of(setup(), &[report_of(&good, &[connection(0, false), broken])], None);
    assert_eq!(
        warnings(&summary),
        ["1 connection failed although no request did: protocol: 3 bytes came where no response is due"]
    );
    let text = text::format(&summary, &[], PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("on 2 connections (1 failed: 1 × protocol)"), "{text}");
    let errors = &json::format(&summary, &[])["connection_errors"];
    assert_eq!((&errors[0]["kind"], &errors[0]["count"]), (&"protocol".into(), &1.into()), "{errors}");
    assert!(!summary.is_invalid());
}

#[test]
fn the_file_of_rows_is_reported() {
    let written = |rows: WrittenRows| Summary::of(setup(), &[report()], Some(rows));
    let good = WrittenRows { path: "a.parquet".into(), rows: 1013, cpu_ns: 3 * MS, ..WrittenRows::default() };
    let summary = written(good.clone());
    let text = text::format(&summary, &[], PLAIN);
    assert!(
        text.contains("rows         1013 in a.parquet · writing them took a further 3 ms of CPU"),
        "{text}"
    );
    assert_eq!(json::format(&summary, &[])["rows"]["written"], 1013);
    assert!(warnings(&summary).is_empty());
    let slow = written(WrittenRows { waited_ns: 7 * MS, ..good.clone() });
    assert!(warnings(&slow)[0].contains("the load waited 7 ms"), "{:?}", warnings(&slow));
    let full = written(WrittenRows { fault: Some("no space left".into()), ..good });
    assert!(warnings(&full)[0].contains("could not be written: no space left"), "{:?}", warnings(&full));
    assert!(full.rows.unwrap().check().is_err());
}

/// A cold connection, a resumed one, one whose early data was taken, two whose was not; the latter three
/// moved, and two of these heard from the server there.
fn busy_report() -> Report {
    let early = |number, early_data, resumed| ConnectionRow {
        early_data,
        early_requests: 3,
        pushed: Pushes { whole: 2, broken: number % 2, body_bytes: 1_000_000, ..Pushes::default() },
        migrated: Some(MigrationTimes { at_ns: MS, answered_ns: (number < 4).then_some(2 * MS) }),
        tls_version: Some("TLSv1_3".into()),
        cipher_suite: Some("TLS_AES_128_GCM_SHA256".into()),
        key_exchange: (number < 4).then(|| "x25519".into()),
        ..connection(number, resumed)
    };
    let rows = [
        connection(0, false),
        connection(1, true),
        early(2, EarlyData::Accepted, true),
        early(3, EarlyData::Rejected, true),
        early(4, EarlyData::Rejected, false),
    ];
    let mut report = report_of(&samples(), &rows);
    report.client.failed_migrations = Counts(vec![("its handshake was not done".into(), 2)]);
    report
}

#[test]
fn what_protocols_did_is_counted_apart() {
    let setup = Setup { key_log: Some("/tmp/keys".into()), migrates: true, ..setup() };
    let summary = Summary::of(setup, &[busy_report(), busy_report()], None);
    let own = &summary.connections;
    let counts = [&own.handshake, &own.resumed_handshake, &own.early_handshake];
    assert_eq!(
        counts.map(Histogram::count),
        [4, 4, 2],
        "rejected early data is no handshake with early data"
    );
    insta::assert_snapshot!(text::format(&summary, &[], PLAIN));
    let json = json::format(&summary, &[]);
    for (key, expected) in [
        ("handshakes", serde_json::json!({ "cold": 4, "resumed": 4, "early": 2 })),
        ("early_data", serde_json::json!({ "requests": 18, "accepted": 2, "rejected": 4 })),
        ("push", serde_json::json!({ "responses": 12, "broken": 2, "body_bytes": 6_000_000 })),
        ("key_log", serde_json::json!("/tmp/keys")),
        ("qlog", serde_json::Value::Null),
    ] {
        assert_eq!(json[key], expected, "{key}");
    }
    assert_eq!((&json["migration"]["migrated"], &json["migration"]["answered"]), (&6.into(), &4.into()));
    assert_eq!(json["migration"]["failed"][0]["connections"], 4);
    let security = summary.connections.security.0.iter().map(|(_, connections)| *connections);
    assert_eq!(security.collect::<Vec<_>>(), [4, 4, 2], "threads add up");
    let csv = csv::format(&summary);
    assert!(csv.contains("\nconnections,early_rejected,4,"), "{csv}");
}

#[test]
fn faults_of_the_measurement_are_warnings() {
    assert!(warnings(&summary()).is_empty());
    let mut report = report();
    report.client.cpu_user_ns = 1650 * MS;
    report.client.run_queue_ns = 300 * MS;
    report.client.never_sent = 7;
    report.client.lag = Lag { p50_ns: 1000, p99_ns: 2 * MS, max_ns: 9 * MS };
    report.client.own_lag = report.client.lag;
    report.client.stopped = Some("too many failures".into());
    let summary = Summary::of(setup(), &[report], None);
    let warnings = warnings(&summary).join("\n");
    for part in
        ["7 requests due and never sent", "2 ms (p99)", "88 % of the time", "15 %", "too many failures"]
    {
        assert!(warnings.contains(part), "{part} in {warnings}");
    }
    assert!(summary.cpu.is_bottleneck() && summary.is_invalid());
}

#[test]
fn a_server_that_holds_every_connection_did_not_miss_the_schedule() {
    let mut report = report();
    report.client.lag = Lag { p50_ns: 1000, p99_ns: 200 * MS, max_ns: 300 * MS };
    let warnings = warnings(&Summary::of(setup(), &[report], None)).join("\n");
    assert!(
        warnings.starts_with("the server held every connection: requests waited 1 µs (p50), 200 ms"),
        "{warnings}"
    );
    assert!(!warnings.contains("schedule was missed"), "{warnings}");
}

#[test]
fn throughput_leaves_out_the_time_in_which_the_client_stood_still() {
    let whole = Summary::of(setup(), &[report()], None);
    let mut report = report();
    report.client.suspended.note(300 * MS);
    report.client.finished_ns += 300 * MS;
    let summary = Summary::of(setup(), &[report], None);
    assert!((summary.per_second() - whole.per_second()).abs() < 1e-9);
    let warnings = warnings(&summary).join("\n");
    assert!(warnings.contains("the client stood still 1 time, for up to 300 ms"), "{warnings}");
}

#[test]
fn a_very_short_test_has_no_verdict_about_the_generator() {
    let after = |lasted_ns: u64| {
        let mut report = report();
        report.client.finished_ns = lasted_ns;
        report.client.run_queue_ns = lasted_ns / 2;
        Summary::of(setup(), &[report], None)
    };
    // The 500 ms of CPU are more than either lasted.
    let (short, long) = (after(99 * MS), after(100 * MS));
    for summary in [&short, &long] {
        assert!(summary.cpu.share <= 1.0 && summary.cpu.busiest_share <= 1.0, "no more than all of it");
    }
    assert!(!short.cpu.is_bottleneck() && warnings(&short).is_empty(), "{:?}", warnings(&short));
    let warnings = warnings(&long).join("\n");
    assert!(long.cpu.is_bottleneck() && warnings.contains("bottleneck: a thread used its CPU for 100 %"));
    assert!(warnings.contains("waited for a core for 50 %"), "{warnings}");
}

#[test]
fn an_open_loop_lasts_as_long_as_its_schedule() {
    // 10 requests/s for 1 s: the last is due at 900 ms, and answered 1 ms later.
    let tenths: Vec<Sample> = (0..10).map(|tenth| sample(tenth * 100, 0, MS)).collect();
    let mut report = report_of(&tenths, &[connection(0, false)]);
    report.client.finished_ns = 901 * MS;
    let of = |report: &Report, schedule_ns| {
        Summary::of(Setup { schedule_ns, ..setup() }, std::slice::from_ref(report), None)
    };
    let summary = of(&report, Some(1000 * MS));
    assert_eq!(summary.duration_ns, 1000 * MS);
    assert!((summary.per_second() - 10.0).abs() < 1e-9);
    assert_eq!(of(&report, None).duration_ns, 901 * MS, "a closed loop, or a schedule that was interrupted");
    report.client.stopped = Some("too many failures".into());
    assert_eq!(of(&report, Some(5000 * MS)).duration_ns, 901 * MS, "what was cut does not count");
    report.client.stopped = None;
    report.client.finished_ns = 2000 * MS;
    assert_eq!(of(&report, Some(1000 * MS)).duration_ns, 1000 * MS, "a late answer is not a lower rate");
    report.client.lag = Lag { p50_ns: 500 * MS, p99_ns: 900 * MS, max_ns: 900 * MS };
    assert_eq!(of(&report, Some(1000 * MS)).duration_ns, 2000 * MS, "a backlog is");
}

#[test]
fn missing_resumption_and_early_data_are_warnings() {
    let found = |resumes: bool, early_data: bool, report: Report| {
        let setup = Setup { resumes, early_data, ..setup() };
        warnings(&Summary::of(setup, &[report], None)).join("\n")
    };
    let cold = || report_of(&samples(), &[connection(0, false)]);
    assert_eq!(found(false, false, cold()), "");
    assert!(found(true, false, cold()).contains("no session was resumed"));
    assert!(found(true, true, cold()).contains("no session was resumed"));
    let resumed = || report_of(&samples(), &[connection(0, false), connection(1, true)]);
    assert_eq!(found(true, false, resumed()), "");
    assert!(found(true, true, resumed()).contains("no early data was accepted"));
    assert!(!found(true, true, busy_report()).contains("no early data"));
}

#[test]
fn thresholds_hold_or_not() {
    let summary = summary();
    let failed = |text: &str| judge(text, &summary).is_failed;
    assert!(failed("p99>1ms") && !failed("p99>50ms") && failed("p50<1h") && !failed("min<0.5ms"));
    assert!(failed("failed>=3") && !failed("failed>3") && failed("failed>0.2%") && !failed("failed>0.3%"));
    assert!(failed("availability<99.9%") && !failed("availability<99%"));
    assert!(failed("rate<=500/s") && !failed("rate<500/s"), "{}", summary.per_second());
    assert!(failed("mean>1ms") && failed("max>=1.9ms"));
    let nothing = Summary::of(setup(), &[], None);
    let result = judge("p99>1h", &nothing);
    assert!(result.is_failed, "what was not measured was not kept");
    assert_eq!(result.measured(), "nothing measured");
}

#[test]
fn a_test_without_responses_has_a_summary() {
    let summary = Summary::of(setup(), &[], None);
    let text = text::format(&summary, &[], PLAIN);
    assert!(text.contains("0 completed, 0 failed") && text.contains("availability –"), "{text}");
    let json = json::format(&summary, &[]);
    assert_eq!(json["latency_ns"]["p99"], serde_json::Value::Null);
    assert_eq!(json["latency_ns"]["count"], 0);
}

/// A section of docs/load.md, up to the next heading of any level.
fn documentation(heading: &str) -> &'static str {
    let page = include_str!("../../../../../../docs/load.md");
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap();
    section.split("\n#").next().unwrap()
}

/// The words in backticks in the first column of a section's tables.
fn first_column(section: &str) -> impl Iterator<Item = &str> {
    let cells =
        section.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
}

#[test]
fn the_documentation_has_the_keys_of_the_json() {
    fn collect(value: &Value, keys: &mut BTreeSet<String>) {
        for (key, inner) in value.as_object().into_iter().flatten() {
            keys.insert(key.trim_end_matches("_ns").to_owned());
            // Their keys are statuses, versions and kinds of failure.
            let is_map = ["statuses", "versions", "failures"].contains(&key.as_str());
            if key == "by_status" {
                inner.as_object().into_iter().flatten().for_each(|(_, one)| collect(one, keys));
            } else if !is_map {
                collect(inner, keys);
            }
        }
        value.as_array().into_iter().flatten().for_each(|one| collect(one, keys));
    }
    let summary = summary();
    let mut keys = BTreeSet::new();
    collect(&json::format(&summary, &[judge("availability<99.9%", &summary)]), &mut keys);
    let section = documentation("## The JSON");
    let words: BTreeSet<&str> = section
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map(|word| word.trim_end_matches("_ns"))
        .collect();
    let missing: Vec<&String> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/load.md lacks the keys {missing:?}");
    let documented = first_column(section).flat_map(|path| path.split('.'));
    let documented = documented.map(|key| key.trim_end_matches("[]").trim_end_matches("_ns"));
    let surplus: Vec<&str> =
        documented.filter(|key| !["", "…"].contains(key) && !keys.contains(*key)).collect();
    assert!(surplus.is_empty(), "docs/load.md has the keys {surplus:?}, which the JSON lacks");
}

#[test]
fn the_documentation_has_the_metrics_of_thresholds() {
    let section = documentation("### Output");
    let rows = section.lines().filter(|line| line.starts_with("| `") && !line.starts_with("| `-"));
    let mut metrics = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        for (metric, value) in
            quoted(cells[0]).flat_map(|metric| quoted(cells[1]).map(move |value| (metric, value)))
        {
            metrics.insert(metric);
            let text = format!("{metric}>{value}");
            assert!(text.parse::<Threshold>().is_ok(), "{text}");
        }
    }
    let (_, all) = super::thresholds::EXPECTED.split_once("a metric (").unwrap();
    let all = all.split(')').next().unwrap().split([',', ' ']).filter(|word| !["", "to"].contains(word));
    assert_eq!(metrics, all.collect::<BTreeSet<_>>());
}
