//! What metrics are on runs whose values are known.

use model::assignment::WarmupCost;
use model::external::{ExternalReport, FailureCount};
use model::monitor::{Quantity, Reading, Subject, SubjectKind};
use model::sample::{FailureKind, Outcome, Phase};
use model::variant::Variant;

use super::{METRICS, find};
use crate::RunSummary;
use crate::fixtures::{Bench, summary_of};
use crate::summary::{CheckOutcome, Verdict};

fn first(bench: &Bench) -> RunSummary {
    summary_of(&bench.plan, &bench.records[0])
}

#[test]
fn every_metric_has_a_description() {
    let names: std::collections::BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len(), "a duplicate name");
    for metric in METRICS.iter() {
        let words = [metric.name, metric.title, metric.unit, metric.start, metric.end];
        assert!(words.iter().all(|word| !word.is_empty()), "{}", metric.name);
        assert_eq!(find(metric.name).map(|found| found.title), Some(metric.title));
    }
    assert!(find("speed").is_none());
}

/// The run again with `clients` clients: client `c` does everything `c` seconds later and takes `1 + c` times
/// as long.
fn with_clients(mut bench: Bench, clients: u32) -> Bench {
    bench.plan.cells.iter_mut().for_each(|cell| cell.group.clients = clients);
    for record in &mut bench.records {
        let begin_ns = record.connections[0].opened_ns;
        let (samples, connections) = (record.samples.clone(), record.connections.clone());
        for client in 1..clients {
            let later = |ns: u64| {
                let since_ns = ns.saturating_sub(begin_ns) * u64::from(1 + client);
                begin_ns + u64::from(client) * 1_000_000_000 + since_ns
            };
            record.samples.extend(samples.iter().map(|sample| model::Sample {
                client,
                request: sample.request + u64::from(client) * 1000,
                intended_ns: later(sample.intended_ns),
                sent_ns: sample.sent_ns.map(later),
                first_byte_ns: sample.first_byte_ns.map(later),
                done_ns: sample.done_ns.map(later),
                ..sample.clone()
            }));
            record.connections.extend(connections.iter().map(|row| model::ConnectionRow {
                client,
                opened_ns: later(row.opened_ns),
                ready_ns: row.ready_ns.map(later),
                ..row.clone()
            }));
        }
    }
    bench
}

#[test]
fn each_client_has_its_own_page_load() {
    let run = first(&with_clients(Bench::page(&[Variant::H2]), 3));
    let loads = &run.metrics["page_load_time"];
    assert_eq!(loads.count(), 3);
    let of = |share| loads.quantile(share).unwrap();
    assert!(
        (of(0.5) - 2.0 * 639_999_000.0).abs() < 1.0 && (of(1.0) - 3.0 * 639_999_000.0).abs() < 1.0,
        "{loads:?}"
    );
    assert_eq!(run.metrics["handshake_time"].count(), 3);
    assert_eq!(run.value("requests"), Some(9.0), "a number of the whole run");
    // Goodputs of 1, 1/2 and 1/3: (11/6)² / (3 × 49/36).
    let fairness = run.value("fairness").unwrap();
    assert!((fairness - 121.0 / 147.0).abs() < 1e-6, "{fairness}");
    assert_eq!(first(&Bench::page(&[Variant::H2])).value("fairness"), None);
}

#[test]
fn a_batch_lasts_from_its_first_connection_to_its_last_response() {
    let mut bench = Bench::closed(&[Variant::H1]);
    let counted = |bench: &mut Bench, requests| {
        bench.plan.workloads[0].workload.as_loop_mut().unwrap().requests = requests;
    };
    counted(&mut bench, None);
    assert_eq!(first(&bench).value("batch_time"), None, "a loop that time ends is no batch");
    counted(&mut bench, Some(50));
    let record = &bench.records[0];
    let last_ns = record.samples.iter().filter_map(|sample| sample.done_ns).max().unwrap();
    let expected = (last_ns - record.connections[0].opened_ns) as f64;
    assert_eq!(first(&bench).value("batch_time"), Some(expected));
    bench.records[0].samples[3].outcome = Outcome::failed(FailureKind::Timeout, "too late");
    assert_eq!(first(&bench).value("batch_time"), None, "it was not whole");
}

#[test]
fn work_is_compared_per_client() {
    use crate::fixtures::passes;
    passes("all_requested", &with_clients(Bench::page(&[Variant::H1s, Variant::H2]), 2));
    passes("workloads_match", &with_clients(Bench::page(&[Variant::H1s, Variant::H2]), 2));
}

#[test]
fn a_page_load_is_measured_between_its_events() {
    // Block 0 has no noise: opened at 1 µs, ready at 320 ms, ends at 480, 640 and 640 ms.
    let run = first(&Bench::page(&[Variant::H2]));
    let expected = [
        ("page_load_time", 639_999_000.0),
        ("time_to_first_byte", 479_998_000.0),
        ("handshake_time", 319_999_000.0),
        ("request_time", 639_999_000.0),
        ("connections", 1.0),
        ("requests", 3.0),
        ("requests_succeeded", 3.0),
        ("requests_failed", 0.0),
        ("requests_per_second", 3.0 / 639_999_000.0 * 1e9),
        ("goodput", 17_000.0 * 8.0 / 639_999_000.0 * 1e9),
        ("request_header_raw_bytes", 300.0),
        ("request_header_wire_bytes", 150.0),
        ("response_header_raw_bytes", 600.0),
        ("response_header_wire_bytes", 270.0),
        ("body_bytes_sent", 0.0),
        ("body_bytes_received", 17_000.0),
        ("wire_bytes_up", 20_000.0),
        ("wire_bytes_down", 20_000.0),
        ("packets_up", 20.0),
        ("packets_down", 20.0),
    ];
    for (name, value) in expected {
        assert_eq!(run.value(name), Some(value), "{name}");
    }
    assert_eq!(run.metrics.len(), expected.len(), "{:?}", run.metrics.keys());
    assert_eq!(run.metrics["request_time"].count(), 3);
}

#[test]
fn what_the_load_did_is_read_from_the_rows() {
    let process = |name: &str| Subject {
        node: Some("server".into()),
        kind: SubjectKind::Process,
        name: name.into(),
        id: 7,
    };
    let mut bench = Bench::closed(&[Variant::H1])
        .monitored(&[(Quantity::ListenDrops, 0), (Quantity::SegmentsRetransmitted, 3)])
        .read(0, Quantity::Established, 5)
        .read(0, Quantity::Established, 2)
        .read(0, Quantity::SegmentsRetransmitted, 8);
    for (subject, value) in [(process("worker"), 10), (process("worker"), 30), (process("master"), 4)] {
        let reading = Reading { at_ns: 0, subject, quantity: Quantity::PeakResident, value };
        bench.records[0].readings.push(reading);
    }
    let mut external = bench.records[0].readings[2].clone();
    external.subject.node = Some("client".into());
    external.value = 9;
    bench.records[0].readings.push(external);
    bench.records[0].servers[0].cpu_user_ns = 4_000;
    bench.records[0].servers[0].cpu_system_ns = 1_000;
    let run = first(&bench);
    for (name, value) in [
        ("server_established_peak", Some(5.0)),
        ("client_established_peak", Some(9.0)),
        ("server_time_wait_peak", None),
        ("segments_retransmitted", Some(8.0)),
        ("listen_drops", Some(0.0)),
        ("udp_receive_buffer_errors", None),
        ("server_memory_peak", Some(34.0)),
        ("server_cpu_per_request", Some(100.0)),
    ] {
        assert_eq!(run.value(name), value, "{name}");
    }
    assert_eq!(run.monitor.map(|facts| facts.listen_drops), Some(0));
    assert_eq!(first(&Bench::closed(&[Variant::H1])).monitor, None);
}

#[test]
fn the_time_at_the_server_and_outside_make_up_the_requests() {
    let mut bench = Bench::closed(&[Variant::H2]).served(1_000);
    assert_eq!(first(&Bench::closed(&[Variant::H2])).value("server_time"), None);
    // What the server says of others, and of a request that was sent again, does not count.
    let mut other = bench.records[0].server_requests[0].clone();
    other.request_time_ns = 9;
    bench.records[0].server_requests.insert(0, other.clone());
    other.server = 1;
    bench.records[0].server_requests.push(other);
    bench.records[0].server_requests.remove(9);
    let run = first(&bench);
    assert_eq!(run.value("server_time"), Some(2_000_000.0));
    assert_eq!(run.metrics["server_time"].count(), 49);
    let all = run.value("request_time").unwrap();
    assert_eq!(run.value("outside_server_time"), Some(all - 2_000_000.0));
    bench.records[0].server_requests.iter_mut().for_each(|row| row.request_time_ns = u64::MAX);
    assert_eq!(first(&bench).value("outside_server_time"), Some(0.0));
}

#[test]
fn a_failed_request_has_no_time_and_its_page_no_load_time() {
    let mut bench = Bench::page(&[Variant::H2]);
    bench.records[0].samples[2].outcome = Outcome::failed(FailureKind::Reset, "reset");
    let run = first(&bench);
    assert_eq!(run.value("page_load_time"), None);
    assert_eq!(run.metrics["request_time"].count(), 2);
    assert_eq!(run.value("time_to_first_byte"), Some(479_998_000.0));
    bench.records[0].samples[0].outcome = Outcome::failed(FailureKind::Reset, "reset");
    assert_eq!(first(&bench).value("time_to_first_byte"), None);
    bench.records[0].outcome = Outcome::failed(FailureKind::Server, "died");
    assert!(first(&bench).metrics.is_empty(), "a run that failed has no numbers");
}

#[test]
fn a_loop_counts_what_came_after_the_warm_up() {
    let mut bench = Bench::closed(&[Variant::H1]);
    let samples = &mut bench.records[0].samples;
    samples[..10].iter_mut().for_each(|sample| sample.phase = Phase::Warmup);
    samples[49].outcome = Outcome::failed(FailureKind::Timeout, "too late");
    let run = first(&bench);
    assert_eq!(run.value("availability"), Some(39.0 / 40.0));
    assert_eq!(run.metrics["request_time"].count(), 39);
    // 39 good ones in 40 round trips of 160 ms.
    let rate = run.value("requests_per_second").unwrap();
    assert!((rate - 39.0 / 6.4).abs() < 1e-9, "{rate}");
    let counted = &bench.records[0].samples[10..49];
    let body_bytes: u64 = counted.iter().map(|sample| sample.response_body_bytes).sum();
    let goodput = run.value("goodput").unwrap();
    assert!(body_bytes > 0 && (goodput - body_bytes as f64 * 8.0 / 6.4).abs() < 1e-6, "{goodput}");
    assert_eq!(run.value("page_load_time"), None);
    assert_eq!((run.groups[0].rows, run.groups[0].requests), (50, 40));
}

#[test]
fn an_open_loop_reports_its_lateness_and_its_unsent_requests() {
    let mut bench = Bench::open(&[Variant::H1]);
    let record = &mut bench.records[0];
    for (number, sample) in (0..).zip(&mut record.samples) {
        sample.sent_ns = Some(sample.intended_ns + number * 1000);
    }
    record.samples[49].outcome = Outcome::failed(FailureKind::Timeout, "too late");
    record.clients[0].never_sent = 7;
    record.clients[0].unfinished = 2;
    record.clients[0].warmup =
        Some(WarmupCost { cpu_user_ns: 4_000_000, cpu_system_ns: 1_000_000, ..WarmupCost::default() });
    let run = first(&bench);
    assert_eq!(run.metrics["schedule_lag"].count(), 50, "failed ones were sent too");
    assert_eq!(run.value("schedule_lag"), Some(24_500.0));
    assert_eq!((run.value("never_sent"), run.value("unfinished")), (Some(7.0), Some(2.0)));
    // 10 ms in all, 5 of them of the warm-up, over 50 requests.
    assert_eq!(run.value("client_cpu_per_request"), Some(100_000.0));
    let part = |name: &str| run.metrics[name].quantile(0.0).unwrap();
    assert_eq!(run.metrics["service_time"].count(), 49);
    assert!(part("service_time") < part("request_time") + 1.0);
    assert_eq!(part("transfer_time"), 1000.0);
    assert_eq!(first(&Bench::closed(&[Variant::H1])).value("schedule_lag"), None);
}

#[test]
fn a_browser_reports_the_events_of_its_page() {
    let own = first(&Bench::page(&[Variant::H2]));
    let bench = Bench::browser(&[Variant::H2]);
    let run = first(&bench);
    let events = &bench.records[0].page_events[0];
    let since_start = |ns: Option<u64>| events.since_start_ns(ns).map(model::number::float);
    assert_eq!(run.value("page_load_time"), since_start(events.loaded_ns));
    assert_eq!(
        run.value("page_load_time").unwrap(),
        own.value("page_load_time").unwrap() + 1e6,
        "the event comes later"
    );
    assert_eq!(run.value("time_to_first_byte"), own.value("time_to_first_byte"));
    assert_eq!(run.value("largest_contentful_paint"), since_start(events.largest_contentful_paint_ns));
    assert_eq!((run.value("cumulative_layout_shift"), run.value("console_errors")), (Some(0.05), Some(0.0)));
    let parts = ["connect_time", "secure_handshake_time"].map(|name| run.value(name).unwrap());
    assert_eq!(run.value("handshake_time"), Some(parts[0] + parts[1]));
    for name in
        ["first_contentful_paint", "dom_content_loaded", "document_wait_time", "document_transfer_time"]
    {
        assert!(run.value(name).is_some_and(|value| value > 0.0), "{name}");
        assert_eq!(own.value(name), None, "{name}");
    }
    assert_eq!(run.groups[0].body_bytes, own.groups[0].body_bytes, "its rows have them");
    assert_eq!(run.groups[0].connections, own.groups[0].connections);
    let mut incomplete = Bench::browser(&[Variant::H2]);
    incomplete.records[0].samples[1].outcome = Outcome::failed(FailureKind::Timeout, "too late");
    assert_eq!(first(&incomplete).value("page_load_time"), None);
}

#[test]
fn without_an_emulator_nothing_is_known_of_the_wire() {
    let mut bench = Bench::page(&[Variant::H2]);
    bench.records[0].links.clear();
    assert_eq!(first(&bench).value("wire_bytes_up"), None);
}

/// The first run's client becomes an external one that reports sums: two requests of 2 s in all, one failed.
fn external() -> Bench {
    let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
    for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
        record.samples.clear();
        record.connections.clear();
        record.clients[0].external = Some(Box::new(ExternalReport {
            client: "wrk".to_owned(),
            requests_ok: 300,
            failures: vec![FailureCount { kind: FailureKind::Timeout, requests: 100 }],
            took_ns: Some(2_000_000_000),
            times_ns: vec![5_000_000, 7_000_000],
            times_requests: vec![299, 1],
            not_reported: ["wait_time", "transfer_time", "connections", "version", "workloads_match"]
                .map(|about| format!("{about}: wrk does not say it"))
                .to_vec(),
            ..ExternalReport::default()
        }));
    }
    bench
}

#[test]
fn an_external_clients_sums_are_the_same_metrics() {
    let bench = external();
    let run = summary_of(&bench.plan, bench.records.iter().find(|record| record.cell == 1).unwrap());
    assert_eq!(run.value("requests_per_second"), Some(150.0));
    assert_eq!(run.value("goodput"), None, "it does not report the bytes of successes");
    assert_eq!((run.value("requests"), run.value("availability")), (Some(400.0), Some(0.75)));
    for time in ["service_time", "request_time"] {
        let found = &run.metrics[time];
        assert_eq!((found.count(), found.median(), found.quantile(1.0)), (300, Some(5e6), Some(7e6)));
    }
    // 10 ms of the process.
    assert_eq!(run.value("client_cpu_per_request"), Some(25_000.0));
    for not_reported in ["wait_time", "transfer_time", "connections"] {
        assert_eq!(run.value(not_reported), None, "{not_reported}");
    }
    assert_eq!((run.groups[0].requests, run.groups[0].requests_ok), (400, 300));
}

#[test]
fn values_that_an_external_client_does_not_report_have_a_reason() {
    let mut bench = external();
    bench.plan.metric = "wait_time".to_owned();
    let summary = bench.summary();
    let [own, external] = summary.cells.as_slice() else { panic!("{summary:#?}") };
    assert!(own.not_reported.is_empty());
    let not_reported: Vec<&str> = external.not_reported.keys().map(String::as_str).collect();
    assert_eq!(not_reported, ["connections", "transfer_time", "wait_time"], "checks are no metrics");
    for check in ["version", "workloads_match"] {
        let found = external.validity.iter().find(|found| found.check == check).unwrap();
        assert_eq!(
            (found.result, found.measured.as_str()),
            (CheckOutcome::Caveat, "not judged: wrk does not say it")
        );
    }
    let primary = summary.comparisons.iter().find(|comparison| comparison.primary).unwrap();
    let Verdict::Invalid { because } = &primary.verdict else { panic!("{primary:?}") };
    assert!(because.contains(&"wrk does not say it".to_owned()), "{because:?}");
}
