//! The generator against the real origin on loopback: all five variants, pages and closed loops.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod clients;
mod hostile;
mod offers;
mod player;
mod reconnecting;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Clock, Report};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClientMessage, Lag, Target, Trust};
use model::error::Source;
use model::sample::{FailureKind, Outcome};
use model::schedule::{Arrivals, Rate, Schedule, Share, Stage};
use model::workload::{ClosedLoop, LoopLoad, OpenLoop, Workload};
use model::{HttpVersion, Page, Pins, Variant};
use origin::{Config, Identity};

/// An origin on loopback that ends when dropped.
struct Origin {
    addresses: Vec<(Variant, SocketAddr)>,
    authority: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    fn start(pages: Vec<Page>) -> Origin {
        Origin::pinned(pages, Pins::default())
    }

    fn pinned(pages: Vec<Page>, pins: Pins) -> Origin {
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let authority = issued.cert.pem();
        let mut config = Config::loopback(&Variant::ALL);
        config.identity = Some(Identity {
            certificate_pem: authority.clone().into(),
            key_pem: issued.signing_key.serialize_pem().into(),
            hosts: Vec::new(),
        });
        config.pages = pages;
        config.pins = pins;
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, addresses) = mpsc::channel();
        let flag = origin::flag(Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            origin::serve(config, |addresses, _| ready.send(addresses.to_vec()).unwrap(), flag).unwrap();
        });
        let addresses = addresses.recv_timeout(Duration::from_secs(10)).unwrap();
        Origin { addresses, authority, stop, thread: Some(thread) }
    }

    fn assignment(&self, variant: Variant, workload: Workload) -> Assignment {
        let address = self.addresses.iter().find(|(v, _)| *v == variant).unwrap().1;
        Assignment {
            version: ASSIGNMENT_VERSION,
            group: 3,
            node: "test".to_owned(),
            clock: Clock::begin(),
            target: Target {
                variant,
                address,
                authority: format!("localhost:{}", address.port()),
                server_name: "localhost".to_owned(),
                trust: Trust::Authority(self.authority.clone()),
            },
            workload,
            pins: Pins::default(),
            seed: 1,
            clients: model::Clients::ONE,
            deadline_ns: 20_000_000_000,
            ends_ns: None,
            options: model::options::Options::default(),
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn page() -> Page {
    let text = include_str!("../../../../pages/large.toml");
    Page::parse("large", Source { file: "large.toml", text }).unwrap()
}

fn closed(path: &str, connections: u32, streams: u32, requests: u64) -> Workload {
    let load = LoopLoad { connections, streams, requests: Some(requests), ..LoopLoad::new(path) };
    Workload::Closed(ClosedLoop::new(load, None))
}

fn run(assignment: &Assignment) -> Report {
    load::run(assignment, &AtomicBool::new(false)).unwrap()
}

fn failures(report: &Report) -> Vec<&Outcome> {
    report.samples.iter().map(|sample| &sample.outcome).filter(|outcome| !outcome.is_ok()).collect()
}

#[test]
fn a_page_is_loaded_completely_on_every_variant() {
    let page = page();
    let origin = Origin::start(vec![page.clone()]);
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, Workload::Page(page.clone())));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        assert_eq!(report.samples.len(), 55, "{variant}");
        let bytes: u64 = report.samples.iter().map(|sample| sample.response_body_bytes).sum();
        assert_eq!(bytes, 1_600_000, "{variant}");
        let connections = if variant.http() == HttpVersion::Http11 { 6 } else { 1 };
        assert_eq!(report.connections.len(), connections, "{variant}");
        for sample in &report.samples {
            assert_eq!(sample.version, Some(variant.http()));
            assert_eq!(sample.group, 3);
            assert!(sample.intended_ns <= sample.sent_ns.unwrap());
            assert!(sample.sent_ns <= sample.first_byte_ns && sample.first_byte_ns <= sample.done_ns);
            assert!(sample.request_header_wire_bytes > 0 && sample.response_header_wire_bytes > 0);
        }
        for row in &report.connections {
            assert!(row.ready_ns.unwrap() >= row.opened_ns, "{variant}");
            assert_eq!(row.connected_ns.is_none(), variant.is_quic());
            assert_eq!(row.tls_version.is_some(), variant.is_encrypted(), "{variant}: {row:?}");
            assert!(row.received_bytes > 0);
        }
        // A resource is never asked for before what names it has begun to arrive.
        let urls = &report.client.urls;
        for sample in &report.samples {
            let resource = &page.resources[sample.url as usize];
            assert_eq!(urls[sample.url as usize], resource.path);
            if let Some(parent) = resource.named_by {
                let parent = report.samples.iter().find(|other| other.url as usize == parent).unwrap();
                assert!(sample.intended_ns >= parent.first_byte_ns.unwrap(), "{variant} {}", resource.path);
            }
        }
    }
}

#[test]
fn a_closed_loop_does_as_many_requests_as_asked_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, closed("/bytes/128", 4, 5, 1000)));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        assert_eq!(report.samples.len(), 1000, "{variant}");
        assert_eq!(report.connections.len(), 4, "{variant}");
        assert!(report.samples.iter().all(|sample| sample.response_body_bytes == 128), "{variant}");
        let numbers: Vec<u64> = report.samples.iter().map(|sample| sample.request).collect();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>(), "every request has its row");
    }
}

#[test]
fn a_large_body_passes_the_flow_control_windows_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, closed("/bytes/40000000", 1, 1, 1)));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        assert_eq!(report.samples[0].response_body_bytes, 40_000_000, "{variant}");
    }
}

#[test]
fn an_unexpected_status_is_a_failure_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, closed("/no-such-path", 1, 1, 3)));
        assert_eq!(report.samples.len(), 3);
        for sample in &report.samples {
            assert_eq!(sample.status, Some(404), "{variant}");
            assert!(
                matches!(&sample.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::WrongStatus),
                "{variant}: {:?}",
                sample.outcome
            );
        }
    }
}

#[test]
fn a_server_that_does_not_answer_in_time_is_a_timeout() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let mut assignment = origin.assignment(variant, closed("/delay/30000", 1, 1, 1));
        assignment.deadline_ns = 700_000_000;
        let report = run(&assignment);
        assert_eq!(report.samples.len(), 1, "{variant}");
        assert!(
            matches!(&report.samples[0].outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Timeout),
            "{variant}: {:?}",
            report.samples[0].outcome
        );
    }
}

#[test]
fn a_closed_port_is_refused_and_a_wrong_authority_is_a_tls_failure() {
    let origin = Origin::start(Vec::new());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut assignment = origin.assignment(Variant::H2, closed("/", 1, 1, 2));
    assignment.target.address = free;
    let kinds = |report: &Report| -> Vec<FailureKind> {
        let kind = |outcome: &Outcome| match outcome {
            Outcome::Failed(failure) => failure.kind,
            other => panic!("{other:?}"),
        };
        report.samples.iter().map(|sample| kind(&sample.outcome)).collect()
    };
    assert_eq!(kinds(&run(&assignment)), [FailureKind::Refused, FailureKind::Refused]);
    for variant in [Variant::H1s, Variant::H2, Variant::H3] {
        let mut assignment = origin.assignment(variant, closed("/", 1, 1, 1));
        assignment.target.trust = Trust::System;
        assert_eq!(kinds(&run(&assignment)), [FailureKind::Tls], "{variant}");
    }
}

fn open(path: &str, per_second: u64, connections: u32, requests: u64) -> Workload {
    let rate = Rate(per_second * 1000);
    Workload::Open(OpenLoop {
        load: LoopLoad { connections, streams: 10, requests: Some(requests), ..LoopLoad::new(path) },
        schedule: Schedule {
            stages: vec![Stage { from: rate, to: rate, duration_ns: None }],
            arrivals: Arrivals::Even,
            share: Share::WHOLE,
        },
        queue_limit: 1000,
    })
}

#[test]
fn bodies_of_loops_have_the_same_checksum_on_every_variant() {
    let origin = Origin::start(Vec::new());
    let mut known = None;
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, closed("/bytes/100000", 2, 1, 400)));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        let is_checked = |sample: &&model::Sample| sample.response_body_crc32.is_some();
        let (first, later): (Vec<_>, Vec<_>) = report.samples.iter().partition(|sample| sample.request < 300);
        assert!(first.iter().all(is_checked), "{variant}");
        let sampled = later.into_iter().filter(is_checked).map(|sample| sample.request).collect::<Vec<_>>();
        assert!((1..40).contains(&sampled.len()), "{variant}: one of 16 of a hundred, not {}", sampled.len());
        let mut found: Vec<u32> =
            report.samples.iter().filter_map(|sample| sample.response_body_crc32).collect();
        found.dedup();
        assert_eq!((found.len(), report.client.contents.len()), (1, 1), "{variant}");
        let all = (found, sampled, report.client.contents);
        assert_eq!(
            *known.get_or_insert(all.clone()),
            all,
            "{variant}: the same requests have the same checksum"
        );
    }
}

#[test]
fn an_open_loop_keeps_its_schedule_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, open("/bytes/128", 1000, 3, 300)));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        assert_eq!(report.samples.len(), 300, "{variant}");
        let first = report.samples.iter().map(|sample| sample.intended_ns).min().unwrap();
        let mut intended: Vec<u64> = report.samples.iter().map(|sample| sample.intended_ns - first).collect();
        intended.sort_unstable();
        let planned: Vec<u64> = (0..300).map(|number| number * 1_000_000).collect();
        assert_eq!(intended, planned, "{variant}: to the nanosecond, whatever happened");
        assert!(report.samples.iter().all(|sample| sample.sent_ns.unwrap() >= sample.intended_ns));
        assert!(report.client.lag.max_ns > 0 && report.client.lag.p50_ns <= report.client.lag.p99_ns);
        assert_eq!(report.client.never_sent, 0);
        assert_eq!(report.connections.len(), 3);
    }
}

#[test]
fn a_slow_server_lengthens_the_latency_of_all_waiting_requests() {
    let origin = Origin::start(Vec::new());
    let mut assignment = origin.assignment(Variant::H1, open("/delay/50", 100, 1, 10));
    // One connection answers 20 requests a second; 100 are due: request number k waits for 50 − 10 ms more
    // than k − 1.
    let report = run(&assignment);
    assert!(failures(&report).is_empty(), "{:?}", failures(&report));
    for (number, sample) in (1..).zip(&report.samples) {
        let least = 50_000_000 * number - 10_000_000 * (number - 1);
        assert!(sample.done_ns.unwrap() - sample.intended_ns >= least, "{sample:?}");
    }
    let Lag { p99_ns, .. } = report.client.lag;
    assert!(p99_ns > 300_000_000, "{:?}", report.client.lag);
    assert!(report.client.own_lag.p99_ns < p99_ns / 4, "the server held it: {:?}", report.client.own_lag);
    if let Workload::Open(open) = &mut assignment.workload {
        open.queue_limit = 2;
    }
    let report = run(&assignment);
    assert!(report.client.never_sent > 0);
    assert_eq!(report.client.never_sent_held, report.client.never_sent, "the server held the connection");
    assert_eq!(
        report.client.never_sent + report.samples.len() as u64,
        10,
        "none is lost without being counted"
    );
}

#[test]
fn the_client_protocol_carries_every_row() {
    let origin = Origin::start(Vec::new());
    let assignment = origin.assignment(Variant::H2c, closed("/bytes/1", 2, 3, 10_000));
    let text = serde_json::to_vec(&assignment).unwrap();
    let mut output = Vec::new();
    load::serve_assignment(text.as_slice(), &mut output, &AtomicBool::new(false)).unwrap();
    let mut decoder = model::frame::Decoder::default();
    decoder.handle_bytes(&output);
    let mut samples = 0;
    let mut done = None;
    assert_eq!(decoder.poll_message().unwrap(), Some(ClientMessage::Hello { version: ASSIGNMENT_VERSION }));
    while let Some(message) = decoder.poll_message().unwrap() {
        match message {
            ClientMessage::Samples(rows) => samples += rows.len(),
            ClientMessage::Connections(rows) => assert_eq!(rows.len(), 2),
            ClientMessage::Done(report) => done = Some(report),
            other => panic!("{other:?}"),
        }
    }
    decoder.finish().unwrap();
    assert_eq!(samples, 10_000);
    assert_eq!(done.unwrap().urls, ["/bytes/1"]);
}

#[test]
fn an_assignment_of_another_version_is_refused() {
    let origin = Origin::start(Vec::new());
    let mut assignment = origin.assignment(Variant::H1, closed("/", 1, 1, 1));
    assignment.version = 99;
    // The workload of an older version may have another form.
    let older = r#"{"version":7,"workload":{"kind":"player","ladder_bits_per_s":[1000000],"segments":30}}"#;
    for (version, text) in [(99, serde_json::to_string(&assignment).unwrap()), (7, older.to_owned())] {
        let error = load::serve_assignment(text.as_bytes(), Vec::new(), &AtomicBool::new(false)).unwrap_err();
        let expected = format!(
            "the assignment has version {version}; this client supports {ASSIGNMENT_VERSION}; use the h123 that wrote it"
        );
        assert_eq!(error.to_string(), expected);
    }
}
