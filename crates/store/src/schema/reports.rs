//! The columns of the tables `clients`, `servers` and `links`.

use model::assignment::{ClientReport, DnsLookup, WarmupCost};
use model::record::{DirectionReport, Lateness, LinkReport, ServerReport};

use super::{Of, Row, external, of_columns};
use crate::table::value::{Column, Value, flag, integer, maybe_integer, maybe_text, text, texts};

type Client = Of<ClientReport>;
type Server = Of<ServerReport>;
type Link = Of<LinkReport>;

impl Row for Client {
    const TABLE: &'static str = "clients";
    const MEANING: &'static str = "one row per client process, in the order of the groups";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend([
            texts(
                "urls",
                "the URLs that `url` of the table `requests` counts",
                |r: &Client| Value::Texts(&r.is.urls),
                |r, v| v.to_texts(&mut r.is.urls),
            ),
            integer(
                "started_ns",
                "ns",
                "first request intended",
                |r: &Client| r.is.started_ns.into(),
                |r, v| v.to(&mut r.is.started_ns),
            ),
            integer(
                "finished_ns",
                "ns",
                "last response done",
                |r: &Client| r.is.finished_ns.into(),
                |r, v| v.to(&mut r.is.finished_ns),
            ),
            integer(
                "cpu_user_ns",
                "ns",
                "CPU time in user space between these two",
                |r: &Client| r.is.cpu_user_ns.into(),
                |r, v| v.to(&mut r.is.cpu_user_ns),
            ),
            integer(
                "cpu_system_ns",
                "ns",
                "CPU time in the kernel between these two",
                |r: &Client| r.is.cpu_system_ns.into(),
                |r, v| v.to(&mut r.is.cpu_system_ns),
            ),
            integer(
                "run_queue_ns",
                "ns",
                "time spent runnable but not running between these two",
                |r: &Client| r.is.run_queue_ns.into(),
                |r, v| v.to(&mut r.is.run_queue_ns),
            ),
            integer(
                "max_resident_bytes",
                "B",
                "peak resident memory",
                |r: &Client| r.is.max_resident_bytes.into(),
                |r, v| v.to(&mut r.is.max_resident_bytes),
            ),
        ]);
        columns.extend(dns_lookup_columns());
        columns.extend(schedule_columns());
        columns.extend(warmup_columns());
        columns.extend(external::columns());
        columns
    }

    fn blank() -> Self {
        Of { run: 0, cell: 0, is: ClientReport::default() }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

/// When the server's name was looked up; null where its address was known. The first column makes it.
fn dns_lookup_columns() -> [Column<Client>; 2] {
    [
        maybe_integer(
            "dns_lookup_began_ns",
            "ns",
            "when the server's name was asked for; null where its address was known",
            |r: &Client| r.is.dns_lookup.map(|dns_lookup| dns_lookup.began_ns).into(),
            |r, v| {
                r.is.dns_lookup = v.maybe_u64()?.map(|began_ns| DnsLookup { began_ns, ended_ns: began_ns });
                Ok(())
            },
        ),
        maybe_integer(
            "dns_lookup_ended_ns",
            "ns",
            "when its address was known",
            |r: &Client| r.is.dns_lookup.map(|dns_lookup| dns_lookup.ended_ns).into(),
            |r, v| match (v.maybe_u64()?, &mut r.is.dns_lookup) {
                (Some(ended_ns), Some(dns_lookup)) => {
                    dns_lookup.ended_ns = ended_ns;
                    Ok(())
                }
                _ => Ok(()),
            },
        ),
    ]
}

/// What became of an open loop's schedule, and of the requests that have no row.
fn schedule_columns() -> Vec<Column<Client>> {
    type Number = (&'static str, &'static str, &'static str, fn(&mut ClientReport) -> &mut u64);
    const NUMBERS: &[Number] = &[
        ("lag_p50_ns", "ns", "sent − intended of an open loop's measured requests: median", |c| {
            &mut c.lag.p50_ns
        }),
        ("lag_p99_ns", "ns", "sent − intended: 99th percentile", |c| &mut c.lag.p99_ns),
        ("lag_max_ns", "ns", "sent − intended: largest", |c| &mut c.lag.max_ns),
        ("never_sent_count", "1", "requests that were due and never sent; they have no row", |c| {
            &mut c.never_sent
        }),
        ("unfinished_count", "1", "requests that the end cut off; they have no row", |c| &mut c.unfinished),
    ];
    let column = |&(name, unit, meaning, field): &Number| {
        integer(
            name,
            unit,
            meaning,
            move |r: &Client| (*field(&mut r.is.clone())).into(),
            move |r, v| v.to(field(&mut r.is)),
        )
    };
    let mut columns: Vec<_> = NUMBERS.iter().map(column).collect();
    columns.push(maybe_text(
        "stopped",
        "why the client stopped before its workload was done; null where it did not",
        |r: &Client| r.is.stopped.as_deref().into(),
        |r, v| v.to_maybe_text(&mut r.is.stopped),
    ));
    columns
}

/// What the warm-up took; all null where there was none. The first column makes it.
fn warmup_columns() -> Vec<Column<Client>> {
    type Number = (&'static str, &'static str, &'static str, fn(&mut WarmupCost) -> &mut u64);
    const NUMBERS: &[Number] = &[
        ("warmup_ended_ns", "ns", "when the warm-up ended; null where there was none", |w| &mut w.ended_ns),
        ("warmup_cpu_user_ns", "ns", "of `cpu_user_ns`, what the warm-up took", |w| &mut w.cpu_user_ns),
        ("warmup_cpu_system_ns", "ns", "of `cpu_system_ns`, what the warm-up took", |w| &mut w.cpu_system_ns),
        ("warmup_run_queue_ns", "ns", "of `run_queue_ns`, what the warm-up took", |w| &mut w.run_queue_ns),
        ("warmup_sent_bytes", "B", "bytes handed to the transport until then", |w| &mut w.sent_bytes),
        ("warmup_received_bytes", "B", "bytes received from the transport until then", |w| {
            &mut w.received_bytes
        }),
    ];
    let column = |&(name, unit, meaning, field): &Number| {
        maybe_integer(
            name,
            unit,
            meaning,
            move |r: &Client| r.is.warmup.map(|mut warmup| *field(&mut warmup)).into(),
            move |r, v| match v.maybe_u64()? {
                Some(number) => {
                    *field(r.is.warmup.get_or_insert_default()) = number;
                    Ok(())
                }
                None => Ok(()),
            },
        )
    };
    NUMBERS.iter().map(column).collect()
}

impl Row for Server {
    const TABLE: &'static str = "servers";
    const MEANING: &'static str = "one row per server, in the order of the chains";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend([
            text(
                "name",
                "the adapter's name",
                |r: &Server| Value::Text(&r.is.name),
                |r, v| v.to_text(&mut r.is.name),
            ),
            text(
                "version",
                "the version that it says it is",
                |r: &Server| Value::Text(&r.is.version),
                |r, v| v.to_text(&mut r.is.version),
            ),
            integer(
                "ready_after_ns",
                "ns",
                "from start to ready",
                |r: &Server| r.is.ready_after_ns.into(),
                |r, v| v.to(&mut r.is.ready_after_ns),
            ),
            integer(
                "cpu_user_ns",
                "ns",
                "CPU time in user space over the run, all its processes",
                |r: &Server| r.is.cpu_user_ns.into(),
                |r, v| v.to(&mut r.is.cpu_user_ns),
            ),
            integer(
                "cpu_system_ns",
                "ns",
                "CPU time in the kernel over the run, all its processes",
                |r: &Server| r.is.cpu_system_ns.into(),
                |r, v| v.to(&mut r.is.cpu_system_ns),
            ),
            integer(
                "run_queue_ns",
                "ns",
                "time that its threads were runnable but did not run, over the run",
                |r: &Server| r.is.run_queue_ns.into(),
                |r, v| v.to(&mut r.is.run_queue_ns),
            ),
            flag(
                "was_killed",
                "whether it had to be killed after the run, because it did not end in time when it was asked to",
                |r: &Server| Value::Flag(r.is.was_killed),
                |r, v| v.to_flag(&mut r.is.was_killed),
            ),
            maybe_text(
                "log_fault",
                "why its access log tells less than it should, where server time was asked for; null where it tells all",
                |r: &Server| r.is.log_fault.as_deref().into(),
                |r, v| v.to_maybe_text(&mut r.is.log_fault),
            ),
        ]);
        columns.extend(sending_columns());
        columns
    }

    fn blank() -> Self {
        Of { run: 0, cell: 0, is: ServerReport::default() }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

impl Row for Link {
    const TABLE: &'static str = "links";
    const MEANING: &'static str =
        "one row per emulated link; `up_` is from the client's side to the server's";

    fn columns() -> Vec<Column<Self>> {
        let mut columns = of_columns();
        columns.extend([
            text(
                "link",
                "the link's name",
                |r: &Link| Value::Text(&r.is.link),
                |r, v| v.to_text(&mut r.is.link),
            ),
            text(
                "backend",
                "what emulated it: user-space or netem",
                |r: &Link| Value::Text(r.is.backend.name()),
                |r, v| v.to_named(&mut r.is.backend),
            ),
            flag(
                "realtime",
                "whether the emulator ran with real-time priority; false where the kernel emulates",
                |r: &Link| Value::Flag(r.is.realtime),
                |r, v| v.to_flag(&mut r.is.realtime),
            ),
            maybe_integer(
                "cpu_ns",
                "ns",
                "CPU time of the emulator's thread; null where the kernel emulates",
                |r: &Link| r.is.cpu_ns.into(),
                |r, v| v.to_maybe(&mut r.is.cpu_ns),
            ),
        ]);
        columns.extend(direction_columns("up", |r| &r.is.up, |r| &mut r.is.up));
        columns.extend(direction_columns("down", |r| &r.is.down, |r| &mut r.is.down));
        columns
    }

    fn blank() -> Self {
        Of { run: 0, cell: 0, is: LinkReport::default() }
    }

    fn run(&self) -> u32 {
        self.run
    }
}

fn direction_columns(
    way: &str,
    read: fn(&Link) -> &DirectionReport,
    write: fn(&mut Link) -> &mut DirectionReport,
) -> Vec<Column<Link>> {
    type Number = (&'static str, &'static str, &'static str, fn(&mut DirectionReport) -> &mut u64);
    const NUMBERS: &[Number] = &[
        ("packets_in_count", "1", "frames that entered", |d| &mut d.packets_in),
        ("in_bytes", "B", "bytes of the frames that entered, Ethernet header included", |d| &mut d.bytes_in),
        ("packets_out_count", "1", "frames that left", |d| &mut d.packets_out),
        ("out_bytes", "B", "bytes of the frames that left", |d| &mut d.bytes_out),
        ("lost_configured_count", "1", "frames dropped because the study asked for loss", |d| {
            &mut d.lost_configured
        }),
        ("lost_outage_count", "1", "frames dropped because they arrived during an outage", |d| {
            &mut d.lost_outage
        }),
        ("lost_queue_count", "1", "frames dropped because the queue was full", |d| &mut d.lost_queue),
        ("lost_codel_count", "1", "frames dropped by CoDel", |d| &mut d.lost_codel),
        ("lost_overload_count", "1", "frames dropped because the emulator could not keep up: a fault", |d| {
            &mut d.lost_overload
        }),
        ("marked_count", "1", "frames that CoDel marked (CE) and did not drop", |d| &mut d.marked),
    ];
    let column = |&(name, unit, meaning, field): &Number| {
        integer(
            &format!("{way}_{name}"),
            unit,
            meaning,
            move |r: &Link| (*field(&mut read(r).clone())).into(),
            move |r, v| v.to(field(write(r))),
        )
    };
    NUMBERS.iter().map(column).chain(measured_columns(way, read, write)).collect()
}

/// What not every backend measures.
fn measured_columns(
    way: &str,
    read: fn(&Link) -> &DirectionReport,
    write: fn(&mut Link) -> &mut DirectionReport,
) -> Vec<Column<Link>> {
    type Count = (&'static str, &'static str, fn(&mut DirectionReport) -> &mut Option<u64>);
    const COUNTS: &[Count] = &[
        (
            "duplicated_count",
            "copies of frames that the network was asked to make; null where not counted",
            |d| &mut d.duplicated,
        ),
        (
            "reordered_count",
            "frames that left after one that had passed the link behind them; null where not counted",
            |d| &mut d.reordered,
        ),
    ];
    type Time = (&'static str, &'static str, fn(&mut Lateness) -> &mut u64);
    const TIMES: &[Time] = &[
        (
            "late_p50_ns",
            "how late frames left against their due time: median; null where not measured",
            |l| &mut l.p50_ns,
        ),
        ("late_p99_ns", "how late frames left: 99th percentile; null where not measured", |l| &mut l.p99_ns),
        ("late_max_ns", "how late frames left: largest; null where not measured", |l| &mut l.max_ns),
    ];
    let counts = COUNTS.iter().map(|&(name, meaning, field)| {
        maybe_integer(
            &format!("{way}_{name}"),
            "1",
            meaning,
            move |r: &Link| (*field(&mut read(r).clone())).into(),
            move |r, v| v.to_maybe(field(write(r))),
        )
    });
    let times = TIMES.iter().map(|&(name, meaning, field)| {
        maybe_integer(
            &format!("{way}_{name}"),
            "ns",
            meaning,
            move |r: &Link| read(r).lateness.clone().map(|mut lateness| *field(&mut lateness)).into(),
            move |r, v| {
                let mut found = None;
                v.to_maybe(&mut found)?;
                if let Some(found) = found {
                    *field(write(r).lateness.get_or_insert_default()) = found;
                }
                Ok(())
            },
        )
    });
    counts.chain(times).collect()
}

/// How a server sends; null where its description does not say.
fn sending_columns() -> [Column<Server>; 5] {
    [
        maybe_text(
            "sends_congestion_control",
            "QUIC: its congestion control; null, like all that follows, where its description does not say",
            |r: &Server| r.is.sends.congestion_control.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.sends.congestion_control),
        ),
        maybe_text(
            "sends_initial_window",
            "QUIC: its initial congestion window in packets",
            |r: &Server| r.is.sends.initial_window.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.sends.initial_window),
        ),
        maybe_text(
            "sends_pacing",
            "QUIC: whether its packets are paced, `yes` or `no`",
            |r: &Server| r.is.sends.pacing.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.sends.pacing),
        ),
        maybe_text(
            "sends_gso",
            "QUIC: whether its packets leave in batches (UDP segmentation offload), `yes` or `no`",
            |r: &Server| r.is.sends.gso.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.sends.gso),
        ),
        maybe_text(
            "sends_tls_records",
            "TLS: the size of its records in bytes, or `dynamic`",
            |r: &Server| r.is.sends.tls_records.as_deref().into(),
            |r, v| v.to_maybe_text(&mut r.is.sends.tls_records),
        ),
    ]
}
