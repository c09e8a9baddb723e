//! The metrics: one entry each, with unit, direction, and the events at which it starts and ends.

use model::assignment::{ClientReport, DnsLookup};
use model::external::ExternalReport;
use model::record::{DirectionReport, ServerRequest};
use model::sample::{ConnectionRow, Sample};

use crate::fold::View;
use crate::{monitor, number, player};
use model::workload::{Workload, WorkloadKind};

/// Which direction of a metric is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// It says what happened; neither direction is better, so it is never compared.
    Neither,
}

/// One metric.
pub struct Metric {
    /// As studies and `summary.json` name it.
    pub name: &'static str,
    /// For headings.
    pub title: &'static str,
    /// `ns`, `B`, `1/s`, `bit/s`, or `1` for counts and shares.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The largest value that can be, where there is one.
    pub ceiling: Option<f64>,
    /// The event at which it starts.
    pub start: &'static str,
    /// The event at which it ends.
    pub end: &'static str,
    /// The workloads that it is about.
    pub of: &'static [WorkloadKind],
    /// Whether it is computed from the servers' own times, which a study has to ask for.
    pub of_servers: bool,
    /// Further values that somebody else's program summed up, each with how often it occurs.
    pub summed: Option<Summed>,
    /// How its values come from one run.
    pub from: Values,
}

/// How the values of a metric, in its unit, come from one run. Rows are seen one after the other and not kept.
#[derive(Clone, Copy)]
pub enum Values {
    /// From each request that counts: one, or none.
    Request(fn(&Sample) -> Option<f64>),
    /// From each request that counts, succeeded, and that the server's log names: one, or none.
    AtServer(fn(&Sample, &ServerRequest) -> Option<f64>),
    /// From the whole run: one, or none where the run does not have it.
    Run(fn(&View<'_>) -> Option<f64>),
    /// From the whole run: so many of all, of which the share is the value.
    Share(fn(&View<'_>) -> (u64, u64)),
}

type Summed = fn(&ExternalReport) -> Vec<(f64, u64)>;

const PAGE: &[WorkloadKind] = &[WorkloadKind::Page];
const OPEN: &[WorkloadKind] = &[WorkloadKind::Open];
const LOOPS: &[WorkloadKind] = &[WorkloadKind::Closed, WorkloadKind::Open];
const PLAYER: &[WorkloadKind] = &[WorkloadKind::Player];
const ANY: &[WorkloadKind] =
    &[WorkloadKind::Page, WorkloadKind::Closed, WorkloadKind::Open, WorkloadKind::Player];
/// How long looking the server's name up took: of studies with `dns` alone.
pub const DNS_LOOKUP_TIME: &str = "dns_lookup_time";
const RUN_START: &str = "start of the run";
const RUN_END: &str = "end of the run";
const ASKED: &str = "server's name asked for; first connection opened where its address was known";

/// Every metric, in the order in which tables show them.
pub const METRICS: &[Metric] = &[
    Metric {
        start: ASKED,
        end: "last byte of the last resource; only where every resource came well",
        ..duration("page_load_time", "Page load time", PAGE, page_load_time)
    },
    Metric {
        start: ASKED,
        end: "head of the document's response read",
        ..duration("time_to_first_byte", "Time to first byte", PAGE, time_to_first_byte)
    },
    Metric {
        start: "server's name asked for",
        end: "its address known",
        ..duration(DNS_LOOKUP_TIME, "DNS lookup", ANY, dns_lookup_time)
    },
    Metric {
        start: "first connection opened",
        end: "the same connection ready for requests",
        ..duration("handshake_time", "Handshake time", PAGE, handshake_time)
    },
    Metric {
        start: "first segment wanted",
        end: "playback begins",
        ..duration("startup_time", "Start-up time", PLAYER, player::startup_time)
    },
    Metric {
        unit: "1",
        ceiling: Some(1.0),
        start: "first segment wanted",
        end: "last media shown; only where the video was played to its end",
        ..quantity("stall_share", "Share of the time stalled", PLAYER, player::stall_share)
    },
    Metric {
        unit: "1",
        better: Better::Higher,
        ceiling: Some(1.0),
        start: "first segment wanted",
        end: "last media shown; only where the video was played to its end",
        ..quantity("played_share", "Share of the time played", PLAYER, player::played_share)
    },
    Metric {
        unit: "1",
        start: "playback begins",
        end: "last media shown; only where the video was played to its end",
        ..quantity("stalls", "Stalls", PLAYER, player::stalls)
    },
    Metric {
        unit: "bit/s",
        better: Better::Higher,
        start: "first segment arrived",
        end: "last segment arrived, each weighing as much as it plays",
        ..quantity("mean_representation", "Mean representation", PLAYER, player::mean_representation)
    },
    Metric {
        unit: "1",
        start: "first segment arrived",
        end: "last segment arrived; changes from one to the next",
        ..quantity("representation_switches", "Representation switches", PLAYER, player::switches)
    },
    Metric {
        start: "request intended",
        end: "last byte of its response; only requests that succeeded",
        summed: Some(external_times),
        ..each_request("request_time", "Request time", ANY, request_time)
    },
    Metric {
        unit: "1/s",
        better: Better::Higher,
        start: "first counted request intended",
        end: "last counted response done",
        ..quantity("requests_per_second", "Requests per second", LOOPS, requests_per_second)
    },
    Metric {
        unit: "1",
        better: Better::Higher,
        ceiling: Some(1.0),
        from: Values::Share(availability),
        ..quantity("availability", "Share of requests that succeeded", LOOPS, |_| None)
    },
    Metric {
        start: "request sent",
        end: "last byte of its response; only requests that succeeded",
        summed: Some(external_times),
        ..each_request("service_time", "Service time", LOOPS, service_time)
    },
    Metric {
        start: "request sent",
        end: "head of its response read; only requests that succeeded",
        ..each_request("wait_time", "Time until the response's head", LOOPS, wait_time)
    },
    Metric {
        start: "head of the response read",
        end: "its last byte; only requests that succeeded",
        ..each_request("transfer_time", "Transfer time", LOOPS, transfer_time)
    },
    Metric {
        of_servers: true,
        start: "the server's own start: its log's, or the request's last packet at its end of the link",
        end: "the server's own end: its log's, or the response's last packet at its end of the link",
        from: Values::AtServer(server_time),
        ..duration("server_time", "Time at the server", ANY, |_| None)
    },
    Metric {
        of_servers: true,
        start: "request intended",
        end: "last byte of its response, less the time at the server",
        from: Values::AtServer(outside_server_time),
        ..duration("outside_server_time", "Time outside the server", ANY, |_| None)
    },
    Metric {
        better: Better::Neither,
        start: "request intended",
        end: "request sent",
        ..each_request("schedule_lag", "Sent after the intended time", OPEN, schedule_lag)
    },
    Metric {
        unit: "1",
        better: Better::Neither,
        ..quantity("never_sent", "Requests due and never sent", OPEN, never_sent)
    },
    Metric {
        unit: "1",
        better: Better::Neither,
        ..quantity("unfinished", "Requests cut off by the end", LOOPS, unfinished)
    },
    Metric {
        start: "end of the warm-up",
        ..duration("client_cpu_per_request", "Client CPU per request", LOOPS, client_cpu_per_request)
    },
    duration("server_cpu_per_request", "Server CPU per request", ANY, monitor::server_cpu_per_request),
    quantity("server_memory_peak", "Peak memory of the server", ANY, monitor::server_memory_peak),
    count(
        "server_established_peak",
        "Most ESTABLISHED at the server",
        LOOPS,
        monitor::server_established_peak,
    ),
    count(
        "client_established_peak",
        "Most ESTABLISHED at the client",
        LOOPS,
        monitor::client_established_peak,
    ),
    count("server_time_wait_peak", "Most TIME-WAIT at the server", LOOPS, monitor::server_time_wait_peak),
    count("client_time_wait_peak", "Most TIME-WAIT at the client", LOOPS, monitor::client_time_wait_peak),
    count("segments_retransmitted", "TCP segments sent again", ANY, monitor::segments_retransmitted),
    count("listen_drops", "Dropped by listeners", ANY, monitor::listen_drops),
    count(
        "udp_receive_buffer_errors",
        "Datagrams dropped at the receiver",
        ANY,
        monitor::udp_receive_buffer_errors,
    ),
    Metric { unit: "1", better: Better::Neither, ..quantity("connections", "Connections", ANY, connections) },
    Metric { unit: "1", better: Better::Neither, ..quantity("requests", "Requests", ANY, requests) },
    quantity("request_header_raw_bytes", "Request headers before compression", PAGE, request_header_raw),
    quantity("request_header_wire_bytes", "Request headers on the wire", PAGE, request_header_wire),
    quantity("response_header_raw_bytes", "Response headers before compression", PAGE, response_header_raw),
    quantity("response_header_wire_bytes", "Response headers on the wire", PAGE, response_header_wire),
    Metric { better: Better::Neither, ..quantity("body_bytes_sent", "Body bytes sent", PAGE, body_sent) },
    Metric {
        better: Better::Neither,
        ..quantity("body_bytes_received", "Body bytes received", PAGE, body_received)
    },
    quantity("wire_bytes_up", "Bytes on the wire, up", PAGE, wire_bytes_up),
    quantity("wire_bytes_down", "Bytes on the wire, down", PAGE, wire_bytes_down),
    Metric { unit: "1", ..quantity("packets_up", "Packets on the wire, up", PAGE, packets_up) },
    Metric { unit: "1", ..quantity("packets_down", "Packets on the wire, down", PAGE, packets_down) },
];

/// The metric of a name.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Values {
    /// Whether each request has one.
    pub(crate) const fn is_of_requests(self) -> bool {
        matches!(self, Values::Request(_) | Values::AtServer(_))
    }

    /// Whether it is so many of all.
    pub(crate) const fn is_a_share(self) -> bool {
        matches!(self, Values::Share(_))
    }
}

impl Metric {
    /// Whether it is about this workload.
    pub fn is_about(&self, workload: &Workload) -> bool {
        self.of.contains(&workload.kind())
    }
}

type OfRun = fn(&View<'_>) -> Option<f64>;
type OfRequest = fn(&Sample) -> Option<f64>;

const fn duration(
    name: &'static str,
    title: &'static str,
    of: &'static [WorkloadKind],
    from: OfRun,
) -> Metric {
    Metric { unit: "ns", ..quantity(name, title, of, from) }
}

const fn each_request(
    name: &'static str,
    title: &'static str,
    of: &'static [WorkloadKind],
    from: OfRequest,
) -> Metric {
    Metric { unit: "ns", from: Values::Request(from), ..quantity(name, title, of, |_| None) }
}

/// A number over the whole run that says what happened.
const fn count(name: &'static str, title: &'static str, of: &'static [WorkloadKind], from: OfRun) -> Metric {
    Metric { unit: "1", better: Better::Neither, ..quantity(name, title, of, from) }
}

/// Bytes over the whole run, of which fewer are better, unless said otherwise.
const fn quantity(
    name: &'static str,
    title: &'static str,
    of: &'static [WorkloadKind],
    from: OfRun,
) -> Metric {
    let (start, end, from) = (RUN_START, RUN_END, Values::Run(from));
    let (unit, better, ceiling, of_servers, summed) = ("B", Better::Lower, None, false, None);
    Metric { name, title, unit, better, ceiling, start, end, of, of_servers, summed, from }
}

fn page_load_time(view: &View<'_>) -> Option<f64> {
    let is_whole = view.totals.requests == view.totals.requests_succeeded;
    since_asked(view, view.totals.last_done_ns.filter(|_| is_whole))
}

fn time_to_first_byte(view: &View<'_>) -> Option<f64> {
    since_asked(view, view.totals.document?.first_byte_ns)
}

/// Of the first of several groups that asked.
fn dns_lookup_time(view: &View<'_>) -> Option<f64> {
    let dns_lookup = dns_lookup(view)?;
    dns_lookup.ended_ns.checked_sub(dns_lookup.began_ns).map(number::float)
}

fn handshake_time(view: &View<'_>) -> Option<f64> {
    let first = first_opened(view)?;
    first.ready_ns?.checked_sub(first.opened_ns).map(number::float)
}

fn request_time(sample: &Sample) -> Option<f64> {
    time(sample, Some(sample.intended_ns), sample.done_ns)
}

/// Of a closed loop, the only one that external clients have: a request is intended when it is sent, so that their times are both
/// `request_time` and `service_time`.
fn external_times(report: &ExternalReport) -> Vec<(f64, u64)> {
    report.times().map(|(ns, count)| (number::float(ns), count)).collect()
}

/// Of an external client without rows, over the time that it says its requests took.
fn requests_per_second(view: &View<'_>) -> Option<f64> {
    let (mut ok, mut took_ns) = (0, 0);
    if view.totals.requests == 0 {
        for report in view.external() {
            ok += report.requests_ok;
            took_ns = report.took_ns.unwrap_or(0).max(took_ns);
        }
    } else {
        ok = view.totals.requests_ok;
        took_ns = view.totals.last_done_ns?.checked_sub(view.totals.first_intended_ns?)?;
    }
    (took_ns > 0)
        .then(|| number::float(ok) / number::float(took_ns) * number::float(model::units::NANOS_PER_S))
}

fn availability(view: &View<'_>) -> (u64, u64) {
    let said: u64 = view.external().map(|report| report.requests_ok).sum();
    (view.totals.requests_ok + said, all_requests(view))
}

/// With rows and without.
fn all_requests(view: &View<'_>) -> u64 {
    view.totals.requests + view.external().map(ExternalReport::requests).sum::<u64>()
}

/// Of a request that succeeded, the time between two of its stamps.
fn time(sample: &Sample, from_ns: Option<u64>, to_ns: Option<u64>) -> Option<f64> {
    let (from_ns, to_ns) = from_ns.zip(to_ns).filter(|_| sample.outcome.is_ok())?;
    to_ns.checked_sub(from_ns).map(number::float)
}

fn service_time(sample: &Sample) -> Option<f64> {
    time(sample, sample.sent_ns, sample.done_ns)
}

fn wait_time(sample: &Sample) -> Option<f64> {
    time(sample, sample.sent_ns, sample.first_byte_ns)
}

fn transfer_time(sample: &Sample) -> Option<f64> {
    time(sample, sample.first_byte_ns, sample.done_ns)
}

fn server_time(_: &Sample, at_server: &ServerRequest) -> Option<f64> {
    Some(number::float(at_server.request_time_ns))
}

/// 0 where the server's time, rounded as it is, is the longer one.
fn outside_server_time(sample: &Sample, at_server: &ServerRequest) -> Option<f64> {
    let all_ns = sample.done_ns?.checked_sub(sample.intended_ns)?;
    Some(number::float(all_ns.saturating_sub(at_server.request_time_ns)))
}

/// Whatever came of the request.
fn schedule_lag(sample: &Sample) -> Option<f64> {
    sample.sent_ns?.checked_sub(sample.intended_ns).map(number::float)
}

fn never_sent(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.clients().map(|client| client.never_sent).sum()))
}

fn unfinished(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.clients().map(|client| client.unfinished).sum()))
}

/// User and kernel, over the requests that count; of a client with a warm-up, since its end.
fn client_cpu_per_request(view: &View<'_>) -> Option<f64> {
    let spent = |client: &ClientReport| {
        let warmup = client.warmup.unwrap_or_default();
        let all_ns = client.cpu_user_ns.saturating_add(client.cpu_system_ns);
        all_ns.saturating_sub(warmup.cpu_user_ns).saturating_sub(warmup.cpu_system_ns)
    };
    let (cpu_ns, requests) = (number::float(view.clients().map(spent).sum()), all_requests(view));
    (requests > 0).then(|| cpu_ns / number::float(requests))
}

fn connections(view: &View<'_>) -> Option<f64> {
    let said: u64 = view.external().filter_map(|report| report.connections).sum();
    Some(number::count(view.connections().count()) + number::float(said))
}

fn requests(view: &View<'_>) -> Option<f64> {
    Some(number::float(all_requests(view)))
}

fn request_header_raw(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.request_header_raw_bytes))
}

fn request_header_wire(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.request_header_wire_bytes))
}

fn response_header_raw(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.response_header_raw_bytes))
}

fn response_header_wire(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.response_header_wire_bytes))
}

fn body_sent(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.request_body_bytes))
}

fn body_received(view: &View<'_>) -> Option<f64> {
    Some(number::float(view.totals.response_body_bytes))
}

fn wire_bytes_up(view: &View<'_>) -> Option<f64> {
    sum_links(view, |up, _| up.bytes_in)
}

fn wire_bytes_down(view: &View<'_>) -> Option<f64> {
    sum_links(view, |_, down| down.bytes_in)
}

fn packets_up(view: &View<'_>) -> Option<f64> {
    sum_links(view, |up, _| up.packets_in)
}

fn packets_down(view: &View<'_>) -> Option<f64> {
    sum_links(view, |_, down| down.packets_in)
}

fn first_opened<'a>(view: &View<'a>) -> Option<&'a ConnectionRow> {
    view.connections().min_by_key(|connection| connection.opened_ns)
}

fn dns_lookup(view: &View<'_>) -> Option<DnsLookup> {
    view.clients().filter_map(|client| client.dns_lookup).min_by_key(|dns_lookup| dns_lookup.began_ns)
}

fn since_asked(view: &View<'_>, end_ns: Option<u64>) -> Option<f64> {
    let opened_ns = first_opened(view)?.opened_ns;
    let began_ns = dns_lookup(view).map_or(opened_ns, |dns_lookup| dns_lookup.began_ns.min(opened_ns));
    end_ns?.checked_sub(began_ns).map(number::float)
}

/// What entered the links, lost frames included; none where nothing was emulated.
fn sum_links(view: &View<'_>, field: fn(&DirectionReport, &DirectionReport) -> u64) -> Option<f64> {
    let links = &view.record.links;
    (!links.is_empty()).then(|| number::float(links.iter().map(|link| field(&link.up, &link.down)).sum()))
}

#[cfg(test)]
mod tests {
    use model::assignment::WarmupCost;
    use model::external::FailureCount;
    use model::monitor::{Quantity, Reading, Subject, SubjectKind};
    use model::sample::{FailureKind, Outcome, Phase};
    use model::variant::Variant;

    use super::*;
    use crate::RunSummary;
    use crate::fixtures::Bench;
    use crate::summary::{CheckOutcome, Verdict};

    fn first(bench: &Bench) -> RunSummary {
        RunSummary::of(&bench.plan, &bench.records[0])
    }

    #[test]
    fn every_metric_says_what_it_is() {
        let names: std::collections::BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "a name stands twice");
        for metric in METRICS {
            let words = [metric.name, metric.title, metric.unit, metric.start, metric.end];
            assert!(words.iter().all(|word| !word.is_empty()), "{}", metric.name);
            assert_eq!(find(metric.name).map(|found| found.title), Some(metric.title));
        }
        assert!(find("speed").is_none());
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
        assert_eq!(run.value("page_load_time"), None);
        assert_eq!((run.groups[0].rows, run.groups[0].requests), (50, 40));
    }

    #[test]
    fn an_open_loop_says_how_late_it_was_and_what_it_did_not_send() {
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
    fn without_an_emulator_nothing_is_known_of_the_wire() {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.records[0].links.clear();
        assert_eq!(first(&bench).value("wire_bytes_up"), None);
    }

    /// The first run's client becomes somebody else's program that sums up: two requests of 2 s in all, one failed.
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
    fn a_external_clients_sums_are_the_same_metrics() {
        let bench = external();
        let run = RunSummary::of(&bench.plan, bench.records.iter().find(|record| record.cell == 1).unwrap());
        assert_eq!(run.value("requests_per_second"), Some(150.0));
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
    fn what_a_external_client_does_not_say_is_told_with_the_reason() {
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
}
