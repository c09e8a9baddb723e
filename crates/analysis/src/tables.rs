//! The tables that a run leaves behind beside its requests, and what rests on each: what is lost with a table is not judged as
//! if there had been nothing in it.

use model::plan::{DIRECT, Plan};

use crate::metrics::DNS_LOOKUP_TIME;
use crate::run::RunSummary;

/// One table of the samples.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, which is that of its file without `.parquet`.
    pub name: &'static str,
    /// The checks that read it.
    pub checks: &'static [&'static str],
    /// The metrics that are computed from it.
    pub metrics: &'static [&'static str],
}

/// Every table but those of runs and of requests, without which there is no run.
pub const TABLES: &[Table] = &[
    Table {
        name: "connections",
        checks: &["connections", "tls_match"],
        metrics: &["page_load_time", "time_to_first_byte", "handshake_time", "connections"],
    },
    Table {
        name: "clients",
        checks: &[
            "client_cpu",
            "client_waited",
            "server_waited",
            "missed_schedule",
            "saturation",
            "steady_state",
            "ends_match",
            "dns_lookup",
        ],
        metrics: &["client_cpu_per_request"],
    },
    Table {
        name: "servers",
        checks: &[
            "server_waited",
            "server_stop",
            "saturation",
            "transports_match",
            "records_match",
            "server_time_joined",
        ],
        metrics: &["server_cpu_per_request"],
    },
    Table {
        name: "server_requests",
        checks: &["server_time_joined", "server_time_precision"],
        metrics: &["server_time", "outside_server_time"],
    },
    Table {
        name: "links",
        checks: &["emulator_late", "emulator_drops", "saturation"],
        metrics: &["wire_bytes_up", "wire_bytes_down", "packets_up", "packets_down"],
    },
    Table {
        name: "monitor",
        checks: &[
            "listen_overflow",
            "udp_drops",
            "client_limits",
            "cpu_steal",
            "cpu_frequency",
            "other_work",
            "disk",
        ],
        metrics: &[
            "server_memory_peak",
            "server_established_peak",
            "client_established_peak",
            "server_time_wait_peak",
            "client_time_wait_peak",
            "listen_drops",
            "udp_receive_buffer_errors",
            "segments_retransmitted",
        ],
    },
    Table {
        name: "player",
        checks: &[],
        metrics: &[
            "startup_time",
            "stall_share",
            "played_share",
            "stalls",
            "mean_representation",
            "representation_switches",
        ],
    },
];

/// Where clients look the server's name up, these are of that or begin with it, and when it was stands in the table of clients.
const OF_DNS_LOOKUP: [&str; 3] = [DNS_LOOKUP_TIME, "page_load_time", "time_to_first_byte"];

/// The table of this name.
pub fn find(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

impl Table {
    /// The metrics of a study that are computed from it.
    pub(crate) fn metrics_of(&self, plan: &Plan) -> impl Iterator<Item = &'static str> {
        let looked_up = plan.dns_rtt_ns.is_some() && self.name == "clients";
        self.metrics.iter().chain(OF_DNS_LOOKUP.iter().filter(move |_| looked_up)).copied()
    }
}

impl RunSummary {
    /// The run without a table that is lost: what was computed from it is not known, and checks that read it leave the run out.
    #[must_use]
    pub fn without(mut self, plan: &Plan, table: &'static Table) -> RunSummary {
        for metric in table.metrics_of(plan) {
            self.metrics.remove(metric);
            self.shares.remove(metric);
        }
        self.lost.push(table);
        self
    }

    /// Whether a table is lost that the check reads.
    pub(crate) fn lacks(&self, check: &str) -> bool {
        self.lost.iter().any(|table| table.checks.contains(&check))
    }
}

/// Whether the network of this index is that of one link, which can be calibrated. Of several links on the route it is a summary
/// that no link has.
pub fn has_reference_measurement(plan: &Plan, network: usize) -> bool {
    plan.topology.name != DIRECT
        && plan.topology.built.get(network).is_none_or(|topology| topology.emulated_route().len() == 1)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use model::assignment::DnsLookup;
    use model::{RunRecord, Variant};

    use super::*;
    use crate::analyse;
    use crate::checks::CHECKS;
    use crate::fixtures::Bench;
    use crate::metrics::METRICS;
    use crate::summary::{CheckOutcome, Summary};

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

    /// What each check says of all cells, and what each metric is.
    fn said(summary: &Summary) -> BTreeMap<String, String> {
        let mut said: BTreeMap<String, String> = BTreeMap::new();
        for cell in &summary.cells {
            for found in &cell.validity {
                let words = format!("{:?} {} {}\n", found.result, found.measured, found.threshold);
                said.entry(found.check.clone()).or_default().push_str(&words);
            }
            for (name, metric) in &cell.metrics {
                said.entry(format!("metric {name}")).or_default().push_str(&format!("{metric:?}\n"));
            }
        }
        said
    }

    type Clear = fn(&mut RunRecord);

    const CLEAR: [(&str, Clear); 7] = [
        ("connections", |run| run.connections.clear()),
        ("clients", |run| run.clients.clear()),
        ("servers", |run| run.servers.clear()),
        ("server_requests", |run| run.server_requests.clear()),
        ("links", |run| run.links.clear()),
        ("monitor", |run| run.readings.clear()),
        ("player", |run| run.player.clear()),
    ];
    /// What reads the primary metric, whatever it is computed from.
    const OF_THE_METRIC: [&str; 6] =
        ["clock", "drift", "outlying_run", "precision", "two_peaks", "emulator_late"];

    #[test]
    fn all_that_changes_with_a_table_is_said_to_rest_on_it() {
        for make in [Bench::page as fn(&[Variant]) -> Bench, Bench::closed, Bench::open, Bench::player] {
            let whole = bench(make);
            let before = said(&whole.summary());
            for (name, clear) in CLEAR {
                let mut spoilt = bench(make);
                spoilt.records.iter_mut().for_each(clear);
                let after = said(&spoilt.summary());
                let table = find(name).unwrap();
                let has_metric = !table.metrics.contains(&whole.plan.metric.as_str());
                for what in before.keys().filter(|what| before.get(*what) != after.get(*what)) {
                    let is_named = match what.strip_prefix("metric ") {
                        Some(metric) => table.metrics.contains(&metric),
                        None => {
                            table.checks.contains(&what.as_str())
                                || !has_metric && OF_THE_METRIC.contains(&what.as_str())
                        }
                    };
                    assert!(
                        is_named,
                        "{what} is another without {name}: {:?}, {:?}",
                        before[what],
                        after.get(what)
                    );
                }
            }
        }
    }

    #[test]
    fn names_are_those_of_checks_and_metrics() {
        let checks: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        let metrics: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        for table in TABLES {
            assert!(table.checks.iter().all(|name| checks.contains(name)), "{table:?}");
            assert!(table.metrics.iter().all(|name| metrics.contains(name)), "{table:?}");
        }
    }

    /// The study whose runs of these numbers lost a table.
    fn without(bench: &Bench, name: &str, clear: Clear, lost: impl Fn(u32) -> bool) -> Summary {
        let runs: Vec<RunSummary> = bench
            .records
            .iter()
            .map(|record| {
                let mut record = record.clone();
                if !lost(record.run) {
                    return RunSummary::of(&bench.plan, &record);
                }
                clear(&mut record);
                RunSummary::of(&bench.plan, &record).without(&bench.plan, find(name).unwrap())
            })
            .collect();
        analyse(&bench.plan, &runs, &bench.networks)
    }

    #[test]
    fn what_rests_on_a_lost_table_is_a_caveat_and_not_a_pass() {
        for (name, clear) in CLEAR {
            let whole = bench(Bench::page);
            let summary = without(&whole, name, clear, |_| true);
            for cell in &summary.cells {
                let find = |check: &str| cell.validity.iter().find(|found| found.check == check);
                let caveat = find("missing_tables").unwrap();
                assert_eq!(caveat.result, CheckOutcome::Caveat);
                let table = super::find(name).unwrap();
                assert!(
                    caveat.measured.starts_with(&format!("samples/{name}.parquet of 5 of 5 runs")),
                    "{caveat:?}"
                );
                for check in table.checks {
                    assert!(caveat.measured.contains(check), "{check} is not named: {caveat:?}");
                    assert_eq!(find(check), None, "{name}");
                }
                assert!(table.metrics.iter().all(|metric| !cell.metrics.contains_key(*metric)), "{name}");
            }
        }
        assert!(!said(&bench(Bench::page).summary()).contains_key("missing_tables"));
    }

    #[test]
    fn without_clients_nobody_knows_when_a_dns_lookup_began() {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.plan.dns_rtt_ns = Some(20_000_000);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.dns_lookup = Some(DnsLookup { began_ns: 0, ended_ns: 20_000_000 });
        }
        let (name, clear) = CLEAR[1];
        let cell = &without(&bench, name, clear, |_| true).cells[0];
        assert!(
            ["page_load_time", "time_to_first_byte", "dns_lookup_time"]
                .iter()
                .all(|m| !cell.metrics.contains_key(*m))
        );
        let said = cell.validity.iter().find(|found| found.check == "missing_tables").unwrap();
        assert!(said.measured.contains("dns_lookup; not known: dns_lookup_time, page_load_time"), "{said:?}");
    }

    #[test]
    fn runs_that_kept_their_tables_are_judged_without_those_that_did_not() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H3]);
        for record in &mut bench.records {
            record.links[0].down.lost_overload = 1;
        }
        let (name, clear) = CLEAR[4];
        let summary = without(&bench, name, clear, |run| run < 2);
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
            "calibrations.json has nothing of the network `n`, not judged: network_rate, network_loss"
        );
        bench.records.iter_mut().for_each(|record| record.calibration = None);
        crate::fixtures::silent("missing_tables", &bench);
    }
}
