//! Lost tables: what depends on each.

use std::collections::BTreeMap;

use model::assignment::DnsLookup;
use model::{RunRecord, Variant};

use super::*;
use crate::fixtures::{Bench, summary_of};
use crate::metrics::find;
use crate::summary::Summary;
use crate::{RunSummary, analyse};

/// A study in which every table has rows.
fn bench(make: fn(&[Variant]) -> Bench) -> Bench {
    let mut bench = make(&[Variant::H1s, Variant::H3]).served(1000);
    for info in model::monitor::QUANTITIES {
        for (kind, node) in
            info.of.iter().flat_map(|kind| [None, Some("server"), Some("client")].map(|n| (kind, n)))
        {
            for value in [5, 5_000_000] {
                bench = bench.with_reading(node, *kind, info.quantity, value);
            }
        }
    }
    for server in bench.records.iter_mut().flat_map(|record| &mut record.servers) {
        (server.run_queue_ns, server.cpu_user_ns, server.was_killed) = (77, 5, true);
        server.sends.congestion_control = Some("other".to_owned());
    }
    bench
}

/// The results of each check on all cells, and the values of each metric.
fn findings(summary: &Summary) -> BTreeMap<String, String> {
    let mut findings: BTreeMap<String, String> = BTreeMap::new();
    for cell in &summary.cells {
        for found in &cell.validity {
            let words = format!("{:?} {} {}\n", found.result, found.measured, found.threshold);
            findings.entry(found.check.clone()).or_default().push_str(&words);
        }
        for (name, metric) in &cell.metrics {
            findings.entry(format!("metric {name}")).or_default().push_str(&format!("{metric:?}\n"));
        }
    }
    findings
}

type Clear = fn(&mut RunRecord);

const CLEAR: [(Table, Clear); 9] = [
    (Table::Connections, |run| run.connections.clear()),
    (Table::Clients, |run| run.clients.clear()),
    (Table::Servers, |run| run.servers.clear()),
    (Table::ServerRequests, |run| run.server_requests.clear()),
    (Table::Links, |run| run.links.clear()),
    (Table::Monitor, |run| run.readings.clear()),
    (Table::Player, |run| run.player.clear()),
    (Table::PageEvents, |run| run.page_events.clear()),
    (Table::RoundTrips, |run| run.round_trips.clear()),
];
/// Checks that read the primary metric.
const OF_THE_METRIC: [&str; 6] =
    ["clock", "drift", "outlying_run", "precision", "two_peaks", "emulator_late"];

#[test]
fn checks_and_metrics_declare_the_tables_that_they_read() {
    let checks_of = |table| CHECKS.iter().filter(move |check| check.reads.contains(&table));
    for make in
        [Bench::page as fn(&[Variant]) -> Bench, Bench::browser, Bench::closed, Bench::open, Bench::player]
    {
        let whole = bench(make);
        let before = findings(&whole.summary());
        for (table, clear) in CLEAR {
            let mut cleared = bench(make);
            cleared.records.iter_mut().for_each(clear);
            let after = findings(&cleared.summary());
            let needs = |name: &str| find(name).is_some_and(|metric| metric.needs(table, &whole.plan));
            for name in before.keys().filter(|name| before.get(*name) != after.get(*name)) {
                let is_declared = match name.strip_prefix("metric ") {
                    Some(metric) => needs(metric),
                    None => {
                        checks_of(table).any(|check| check.name == name)
                            || needs(&whole.plan.metric) && OF_THE_METRIC.contains(&name.as_str())
                    }
                };
                let (before, after) = (&before[name], after.get(name));
                assert!(is_declared, "{name} changes without {table:?}: {before:?}, {after:?}");
            }
        }
    }
}

/// The study after these runs lost a table.
fn without(bench: &Bench, table: Table, clear: Clear, lost: impl Fn(u32) -> bool) -> Summary {
    let runs: Vec<RunSummary> = bench
        .records
        .iter()
        .map(|record| {
            let mut record = record.clone();
            if !lost(record.run) {
                return summary_of(&bench.plan, &record);
            }
            clear(&mut record);
            summary_of(&bench.plan, &record).without(&bench.plan, table)
        })
        .collect();
    analyse(&bench.plan, &runs, &bench.networks)
}

#[test]
fn a_lost_table_is_a_caveat_and_not_a_pass() {
    for (table, clear) in CLEAR {
        let whole = bench(Bench::page);
        let summary = without(&whole, table, clear, |_| true);
        let needing = || METRICS.iter().filter(|metric| metric.needs(table, &whole.plan));
        for cell in &summary.cells {
            let find = |check: &str| cell.validity.iter().find(|found| found.check == check);
            let caveat = find("missing_tables").unwrap();
            assert_eq!(caveat.result, CheckOutcome::Caveat);
            let start = format!("samples/{}.parquet of 5 of 5 runs", table.name());
            assert!(caveat.measured.starts_with(&start), "{caveat:?}");
            for check in CHECKS.iter().filter(|check| check.reads.contains(&table)) {
                assert!(caveat.measured.contains(check.name), "{} is not named: {caveat:?}", check.name);
                assert_eq!(find(check.name), None, "{table:?}");
            }
            assert!(needing().all(|metric| !cell.metrics.contains_key(metric.name)), "{table:?}");
        }
    }
    assert!(!findings(&bench(Bench::page).summary()).contains_key("missing_tables"));
}

#[test]
fn without_clients_the_start_of_a_dns_lookup_is_unknown() {
    let mut bench = Bench::page(&[Variant::H2]);
    bench.plan.dns_rtt_ns = Some(20_000_000);
    for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
        client.dns_lookup = Some(DnsLookup { began_ns: 0, ended_ns: 20_000_000 });
    }
    let (table, clear) = CLEAR[1];
    let cell = &without(&bench, table, clear, |_| true).cells[0];
    assert!(
        ["page_load_time", "time_to_first_byte", "dns_lookup_time"]
            .iter()
            .all(|m| !cell.metrics.contains_key(*m))
    );
    let caveat = cell.validity.iter().find(|found| found.check == "missing_tables").unwrap();
    assert!(caveat.measured.contains("server_waited; unknown: page_load_time, time_to"), "{caveat:?}");
}

#[test]
fn runs_that_kept_their_tables_are_judged_without_those_that_did_not() {
    let mut bench = Bench::page(&[Variant::H1s, Variant::H3]);
    for record in &mut bench.records {
        record.links[0].down.lost_overload = 1;
    }
    let (table, clear) = CLEAR[4];
    let summary = without(&bench, table, clear, |run| run < 2);
    let found = |check: &str| {
        let cell = &summary.cells[0];
        cell.validity.iter().find(|found| found.check == check).unwrap().clone()
    };
    assert_eq!(found("emulator_drops").result, CheckOutcome::Invalid);
    assert!(found("missing_tables").measured.starts_with("samples/links.parquet of 1 of 5 runs"));
    assert_eq!(summary.cells[0].metrics["wire_bytes_down"].runs, 4);
    assert_eq!(summary.cells[0].metrics["page_load_time"].runs, 5);
}

#[test]
fn a_network_whose_reference_values_are_lost_is_a_caveat() {
    let mut bench = Bench::page(&[Variant::H1s]);
    bench.networks.clear();
    let summary = bench.summary();
    let found = summary.cells[0].validity.iter().find(|found| found.check == "missing_tables").unwrap();
    assert_eq!(
        found.measured,
        "calibrations.json has no entry for the network `n`, not judged: network_rate, network_loss"
    );
    bench.records.iter_mut().for_each(|record| record.round_trips.clear());
    crate::fixtures::silent("missing_tables", &bench);
}
