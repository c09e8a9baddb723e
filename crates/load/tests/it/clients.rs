//! Many clients in one process: each with its own connections, position and beginning.

use std::collections::BTreeSet;

use load::Report;
use model::assignment::Assignment;
use model::player::{Player, PlayerEventKind, Rule, constant_rate_video};
use model::sample::Phase;
use model::workload::{ClosedLoop, LoopLoad};
use model::{Clients, HttpVersion, Pins, Sample, Start, Variant, Workload};

use crate::{Origin, closed, failures, open, page, run};

const MS: u64 = 1_000_000;
/// When groups begin: long after their process.
const BEGINS: u64 = 300 * MS;

fn group(count: u32, start: Start) -> Clients {
    Clients { begins_ns: BEGINS, ..Clients::all(count, start) }
}

fn with(mut assignment: Assignment, clients: Clients) -> Assignment {
    assignment.clients = clients;
    assignment
}

fn of(report: &Report, client: u32) -> impl Iterator<Item = &Sample> {
    report.samples.iter().filter(move |sample| sample.client == client)
}

/// When each client's first request was intended.
fn beginnings(report: &Report, clients: u32) -> Vec<u64> {
    (0..clients).map(|client| of(report, client).map(|sample| sample.intended_ns).min().unwrap()).collect()
}

#[test]
fn fifty_clients_load_a_page_each_on_every_variant() {
    let page = page();
    let origin = Origin::start(vec![page.clone()]);
    for variant in Variant::ALL {
        let assignment = origin.assignment(variant, Workload::Page(page.clone()));
        let report = run(&with(assignment, Clients::all(50, Start::Together)));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report).first());
        assert_eq!((report.client.clients_begun, report.client.clients_finished), (50, 50), "{variant}");
        assert_eq!(report.client.unfinished, 0);
        assert_eq!(report.samples.len(), 50 * 55, "{variant}");
        let each = if variant.http() == HttpVersion::Http11 { 6 } else { 1 };
        for client in 0..50 {
            let urls: BTreeSet<u32> = of(&report, client).map(|sample| sample.url).collect();
            assert_eq!((urls.len(), of(&report, client).count()), (55, 55), "{variant}: client {client}");
            let own = report.connections.iter().filter(|row| row.client == client);
            let own: BTreeSet<u32> = own.map(|row| row.connection).collect();
            let used: BTreeSet<u32> = of(&report, client).filter_map(|sample| sample.connection).collect();
            assert_eq!((own.len(), &own), (each, &used), "{variant}: client {client} uses its own");
        }
        let numbers: Vec<u64> = report.samples.iter().map(|sample| sample.request).collect();
        assert_eq!(numbers, (0..50 * 55).collect::<Vec<_>>(), "{variant}");
    }
}

#[test]
fn clients_begin_when_their_group_says() {
    let page = page();
    let origin = Origin::start(vec![page.clone()]);
    let over_ns = 100 * MS;
    for start in [Start::Evenly { over_ns }, Start::Poisson { over_ns }, Start::Ramp { over_ns }] {
        let assignment = origin.assignment(Variant::H2c, Workload::Page(page.clone()));
        let report = run(&with(assignment, group(10, start)));
        assert!(failures(&report).is_empty(), "{start:?}: {:?}", failures(&report).first());
        let begun = beginnings(&report, 10);
        assert!(begun.is_sorted() && begun[9] < BEGINS + over_ns, "{start:?}: {begun:?}");
        match start {
            Start::Poisson { .. } => assert!(begun[0] >= BEGINS && begun[0] < begun[9]),
            _ => assert_eq!(begun, start.times_ns(10, 0).iter().map(|at| BEGINS + at).collect::<Vec<_>>()),
        }
        assert_eq!(report.client.started_ns, BEGINS);
        for row in &report.connections {
            assert!(row.opened_ns >= begun[row.client as usize], "{start:?}: {row:?}");
        }
    }
}

#[test]
fn processes_of_a_group_share_its_times_and_have_different_numbers() {
    let origin = Origin::start(Vec::new());
    let whole = Clients { begins_ns: BEGINS, ..Clients::all(6, Start::Poisson { over_ns: 50 * MS }) };
    let times = |clients: Clients| {
        let assignment = origin.assignment(Variant::H1, open("/bytes/1", 100, 2, 3));
        let report = run(&with(assignment, clients));
        assert!(failures(&report).is_empty(), "{:?}", failures(&report));
        let first = |client| of(&report, client).map(|sample| sample.intended_ns).min();
        let begun: Vec<Option<u64>> = (0..6).map(first).collect();
        let requests: Vec<u64> = report.samples.iter().map(|sample| sample.request).collect();
        let connections: Vec<u32> = report.connections.iter().map(|row| row.connection).collect();
        (begun, requests, connections)
    };
    let (begun, requests, _) = times(whole);
    assert_eq!(requests, (0..18).collect::<Vec<_>>());
    for first in [0, 1] {
        let (own, requests, connections) = times(Clients { first, step: 2, count: 3, ..whole });
        for client in 0..6 {
            let expected = begun[client as usize].filter(|_| client % 2 == first);
            assert_eq!(own[client as usize], expected, "process {first}, client {client}");
        }
        assert_eq!(requests, (0..9).map(|place| place * 2 + u64::from(first)).collect::<Vec<_>>());
        assert_eq!(connections, (0..6).map(|place| place * 2 + first).collect::<Vec<_>>());
    }
}

#[test]
fn a_loop_measures_the_same_period_for_all_clients() {
    let origin = Origin::start(Vec::new());
    let load = LoopLoad { warmup_ns: 400 * MS, ..LoopLoad::new("/bytes/100") };
    let workload = Workload::Closed(ClosedLoop::new(load, Some(300 * MS)));
    // Two begin in the warm-up, the others in the measured period.
    let clients = group(4, Start::Evenly { over_ns: 800 * MS });
    let report = run(&with(origin.assignment(Variant::H1, workload), clients));
    assert!(failures(&report).is_empty(), "{:?}", failures(&report).first());
    let (measured, ends) = (BEGINS + 400 * MS, BEGINS + 700 * MS);
    for sample in &report.samples {
        // A loop that time ends counts a request where it ends.
        let phase = if sample.done_ns.unwrap() < measured { Phase::Warmup } else { Phase::Measure };
        assert_eq!(sample.phase, phase, "{sample:?}");
        assert!(sample.intended_ns < ends, "{sample:?}");
    }
    for client in 0..4 {
        let has = |phase| of(&report, client).any(|sample| sample.phase == phase);
        assert_eq!((has(Phase::Warmup), has(Phase::Measure)), (client < 2, true), "client {client}");
    }
    assert!(report.client.warmup.unwrap().ended_ns >= measured);
    assert_eq!((report.client.clients_begun, report.client.clients_finished), (4, 4));
}

#[test]
fn clients_that_would_begin_after_the_end_never_begin() {
    let origin = Origin::start(Vec::new());
    let workload = Workload::Closed(ClosedLoop::new(LoopLoad::new("/bytes/100"), Some(100 * MS)));
    let clients = group(8, Start::Evenly { over_ns: 400_000 * MS });
    let report = run(&with(origin.assignment(Variant::H1, workload), clients));
    assert_eq!((report.client.clients_begun, report.client.clients_finished), (1, 1));
    assert!(report.samples.iter().all(|sample| sample.client == 0 && sample.outcome.is_ok()));
}

#[test]
fn every_client_has_the_number_of_requests_and_its_own_order() {
    let origin = Origin::start(Vec::new());
    let paths: Vec<String> = (1..=20).map(|bytes| format!("/bytes/{bytes}")).collect();
    let load = LoopLoad { paths, requests: Some(40), ..LoopLoad::new("") };
    let mut assignment = origin.assignment(Variant::H2c, Workload::Closed(ClosedLoop::new(load, None)));
    assignment.options.requests.random_order = true;
    let alone = run(&assignment);
    let report = run(&with(assignment, Clients::all(3, Start::Together)));
    let order = |report: &Report, client| of(report, client).map(|sample| sample.url).collect::<Vec<_>>();
    for client in 0..3 {
        assert_eq!(of(&report, client).count(), 40);
    }
    assert_eq!(order(&report, 0), order(&alone, 0), "the first client is like the only one");
    assert_ne!(order(&report, 0), order(&report, 1));
    assert_ne!(order(&report, 1), order(&report, 2));
}

#[test]
fn players_play_side_by_side() {
    let origin = Origin::start(Vec::new());
    let player = Player {
        presentation: constant_rate_video(&[800_000], 50 * MS, 4),
        goal_ns: 100 * MS,
        startup_ns: 50 * MS,
        rebuffer_ns: 50 * MS,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    };
    let clients = group(2, Start::Evenly { over_ns: 60 * MS });
    let report = run(&with(origin.assignment(Variant::H1, Workload::Player(player.clone())), clients));
    assert!(report.player.is_sorted_by_key(|event| event.at_ns));
    for client in [0, 1] {
        let events: Vec<_> = report.player.iter().filter(|event| event.client == client).collect();
        let begun = BEGINS + u64::from(client) * 30 * MS;
        let (first, last) = (events.first().unwrap(), events.last().unwrap());
        assert_eq!((first.what, first.at_ns, first.group), (PlayerEventKind::Requested, begun, 3));
        assert_eq!(last.what, PlayerEventKind::Ended);
        assert!(last.at_ns - begun >= player.media_ns());
        assert_eq!(of(&report, client).count(), 4);
    }
    assert_eq!(report.player.len(), report.player.iter().filter(|event| event.client < 2).count());
}

#[test]
fn an_end_leaves_requests_unfinished_and_nothing_fails() {
    let origin = Origin::start(Vec::new());
    for variant in [Variant::H1, Variant::H2c, Variant::H3] {
        let mut assignment = origin.assignment(variant, closed("/delay/30000", 2, 1, 10));
        assignment.clients = Clients::all(5, Start::Together);
        assignment.ends_ns = Some(700 * MS);
        let report = run(&assignment);
        assert_eq!(report.samples, [], "{variant}");
        assert_eq!(report.client.unfinished, 10, "{variant}");
        assert_eq!((report.client.clients_begun, report.client.clients_finished), (5, 0), "{variant}");
        assert!(report.client.finished_ns >= 700 * MS);
        assert_eq!(report.connections.len(), 10, "{variant}");
        assert!(report.connections.iter().all(|row| row.outcome.is_ok()), "{variant}");
    }
}

#[test]
fn clients_that_are_done_close_their_connections_while_others_go_on() {
    let origin = Origin::start(Vec::new());
    let assignment = origin.assignment(Variant::H1, closed("/bytes/10", 2, 1, 20));
    let report = run(&with(assignment, group(3, Start::Evenly { over_ns: 900 * MS })));
    assert!(failures(&report).is_empty(), "{:?}", failures(&report));
    let closed = |client: u32| {
        let own = report.connections.iter().filter(move |row| row.client == client);
        own.filter_map(|row| row.closed_ns).max().unwrap()
    };
    let begun = beginnings(&report, 3);
    assert!(closed(0) < begun[1] && closed(1) < begun[2], "{:?}", report.connections);
    assert_eq!(report.samples.len(), 60);
}

#[test]
fn clients_resume_only_their_own_sessions() {
    let origin = Origin::pinned(Vec::new(), Pins { resumption: true, ..Pins::default() });
    for variant in [Variant::H1s, Variant::H2, Variant::H3] {
        let mut assignment = origin.assignment(variant, closed("/bytes/10", 1, 1, 3));
        assignment.pins.resumption = true;
        assignment.options.connections.requests_each = Some(1);
        let report = run(&with(assignment, group(3, Start::Evenly { over_ns: 300 * MS })));
        assert!(failures(&report).is_empty(), "{variant}: {:?}", failures(&report));
        for client in 0..3 {
            let own = report.connections.iter().filter(|row| row.client == client);
            let resumed: Vec<bool> = own.map(|row| row.resumed).collect();
            assert_eq!(resumed, [false, true, true], "{variant}: client {client}");
        }
    }
}
