//! The forms of a fabricated report.

use load::Report;
use model::HttpVersion;
use model::assignment::{ClientReport, ConnectionSums, Lag};
use model::sample::{ConnectionRow, FailureKind, Outcome, Phase, Sample};
use model::tally::{Tally, TallyKey};

use super::summary::{Asked, Summary};
use super::text::Look;
use super::thresholds::{Judged, Threshold};
use super::{csv, json, text};

const MS: u64 = 1_000_000;

fn sample(request: u64, url: u32, latency_ns: u64) -> Sample {
    let intended_ns = request * MS;
    Sample {
        group: 0,
        request,
        url,
        connection: Some(u32::try_from(request % 2).unwrap()),
        phase: Phase::Measure,
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
        request_body_bytes: 0,
        response_body_bytes: 128,
        expected_body_bytes: None,
        outcome: Outcome::Ok,
    }
}

fn connection(number: u32, resumed: bool) -> ConnectionRow {
    ConnectionRow {
        group: 0,
        connection: number,
        opened_ns: 0,
        connected_ns: Some(200_000),
        ready_ns: Some(if resumed { 700_000 } else { 1_200_000 }),
        closed_ns: Some(2000 * MS),
        alpn: Some("h2".into()),
        tls_version: Some("TLS 1.3".into()),
        cipher_suite: None,
        key_exchange: None,
        resumed,
        sent_bytes: 1000,
        received_bytes: 100_000,
        outcome: Outcome::Ok,
    }
}

/// 1000 good answers of 1 to 2 ms on two connections, 3 wrong ones that are fast, 10 of the warm-up.
fn report() -> Report {
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
    Report {
        samples,
        connections: vec![connection(0, false), connection(1, true)],
        client: ClientReport {
            urls: vec!["https://a.test/one".into(), "https://a.test/two, \"quoted\"".into()],
            started_ns: 0,
            finished_ns: 2000 * MS,
            cpu_user_ns: 400 * MS,
            cpu_system_ns: 100 * MS,
            max_resident_bytes: 12_000_000,
            unfinished: 2,
            ..ClientReport::default()
        },
    }
}

fn asked() -> Asked {
    Asked {
        url: "urls.txt".into(),
        variant: "h2".into(),
        load: "closed loop · 2 connections · 1 thread".into(),
        is_open: false,
        dns_ns: vec![300_000],
    }
}

fn summary() -> Summary {
    Summary::of(asked(), &[report()]).unwrap()
}

fn judge(text: &str, summary: &Summary) -> Judged {
    text.parse::<Threshold>().unwrap().judge(summary)
}

const PLAIN: Look = Look { width: 100, colour: false };

#[test]
fn the_summary_for_people() {
    let summary = summary();
    let judged = [judge("p99>1ms", &summary), judge("failed>10", &summary)];
    insta::assert_snapshot!(text::format(&summary, &judged, PLAIN));
}

#[test]
fn the_json() {
    let summary = summary();
    let judged = [judge("availability<99.9%", &summary)];
    insta::assert_snapshot!(serde_json::to_string_pretty(&json::format(&summary, &judged)).unwrap());
}

#[test]
fn the_table() {
    insta::assert_snapshot!(csv::format(&summary()));
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for width in [80, 96, 100, 116, 120] {
        let text = text::format(&summary(), &[], Look { width, colour: false });
        for line in text.lines().skip(1) {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
        assert!(!text.contains('\x1b'));
    }
    assert!(text::format(&summary(), &[], Look { width: 100, colour: true }).contains("\x1b[31m"));
}

#[test]
fn failed_answers_and_warm_up_stay_out_of_the_latencies() {
    let summary = summary();
    assert_eq!((summary.completed, summary.failed), (1000, 3));
    assert!(summary.phases.latency.min().unwrap() >= 999_000, "a failed answer is never a fast answer");
    assert!(summary.phases.latency.max().unwrap() < 3 * MS, "nor is warm-up counted");
    assert_eq!(summary.statuses[&503].requests, 3);
    assert_eq!(summary.cpu.requests, 1013, "its cost is that of all requests");
    assert!((summary.availability().unwrap() - 1000.0 / 1003.0).abs() < 1e-12);
    assert_eq!(summary.per_connection.requests.count(), 2);
    assert_eq!((summary.phases.handshake.count(), summary.phases.resumed.count()), (1, 1));
    assert_eq!(summary.duration_ns, 2000 * MS);
}

#[test]
fn tallies_count_as_rows_do() {
    let mut report = report();
    let rows = Summary::of(asked(), &[report.clone()]).unwrap();
    let mut latency = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    let (mut service, mut wait) = (latency.clone(), latency.clone());
    for sample in
        report.samples.iter().filter(|sample| sample.phase == Phase::Measure && sample.outcome.is_ok())
    {
        let (sent, done) = (sample.sent_ns.unwrap(), sample.done_ns.unwrap());
        latency.record(done - sample.intended_ns).unwrap();
        service.record(done - sent).unwrap();
        wait.record(sample.first_byte_ns.unwrap() - sent).unwrap();
    }
    let encode = |histogram: &hdrhistogram::Histogram<u32>| {
        use hdrhistogram::serialization::{Serializer, V2Serializer};
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    };
    report.samples.retain(|sample| sample.phase != Phase::Measure || !sample.outcome.is_ok());
    report.client.tallies = vec![Tally {
        key: TallyKey {
            phase: Phase::Measure,
            url: None,
            status: Some(200),
            version: Some(HttpVersion::Http2),
            failure: None,
        },
        requests: 1000,
        reason: None,
        first_intended_ns: 0,
        last_done_ns: 1003 * MS,
        latency: encode(&latency),
        service: encode(&service),
        wait: encode(&wait),
        request_header_raw_bytes: 100_000,
        request_header_wire_bytes: 20_000,
        response_header_raw_bytes: 200_000,
        response_header_wire_bytes: 50_000,
        request_body_bytes: 0,
        response_body_bytes: 128_000,
    }];
    report.client.further_connections =
        ConnectionSums { connections: 5, failed: 1, sent_bytes: 10, received_bytes: 20 };
    let tallied = Summary::of(asked(), &[report]).unwrap();
    for (name, one) in rows.phases.named() {
        let (_, other) = tallied.phases.named().into_iter().find(|(other, _)| *other == name).unwrap();
        if name != "transfer" {
            assert_eq!((one.count(), one.quantile(0.99)), (other.count(), other.quantile(0.99)), "{name}");
        }
    }
    assert_eq!(tallied.phases.transfer.count(), 0, "a part of the requests would be shown for all");
    assert_eq!(tallied.completed, rows.completed);
    assert_eq!(tallied.response_headers, rows.response_headers);
    assert_eq!(tallied.body_bytes, rows.body_bytes);
    assert_eq!((tallied.connections, tallied.failed_connections), (7, 1));
    assert_eq!(tallied.further_urls.unwrap().requests, 1000);
}

#[test]
fn what_spoils_the_numbers_is_said() {
    assert!(summary().warnings().is_empty());
    let mut report = report();
    report.client.cpu_user_ns = 1650 * MS;
    report.client.run_queue_ns = 300 * MS;
    report.client.never_sent = 7;
    report.client.lag = Lag { p50_ns: 1000, p99_ns: 2 * MS, max_ns: 9 * MS };
    report.client.stopped = Some("too many failures".into());
    let summary = Summary::of(asked(), &[report]).unwrap();
    let warnings = summary.warnings().join("\n");
    for part in
        ["7 requests were due and never sent", "2 ms (p99)", "88 % of its time", "15 %", "too many failures"]
    {
        assert!(warnings.contains(part), "{part} in {warnings}");
    }
    assert!(summary.cpu.is_bottleneck() && summary.is_invalid());
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
    let nothing = Summary::of(asked(), &[]).unwrap();
    let judged = judge("p99>1h", &nothing);
    assert!(judged.is_failed, "what was not measured was not kept");
    assert_eq!(judged.measured(), "nothing measured");
}

#[test]
fn a_test_without_any_answer_has_a_summary() {
    let summary = Summary::of(asked(), &[]).unwrap();
    let text = text::format(&summary, &[], PLAIN);
    assert!(text.contains("0 completed, 0 failed") && text.contains("availability –"), "{text}");
    let json = json::format(&summary, &[]);
    assert_eq!(json["latency_ns"]["p99"], serde_json::Value::Null);
    assert_eq!(json["latency_ns"]["count"], 0);
}
