//! Server times are longer than their precision.

use model::number;

use super::{Check, Context, Finding, Table, check, percent, time};

pub(super) const CHECK: Check = Check {
    measures: "the median precision of the server times, compared with their median",
    passes: "10 % of it",
    caveat: "more",
    why: "A time that is rounded to more than its own length shows only that it is short.",
    remedy: "Read only the order of magnitude of differences between such cells, or measure over an \
             emulated link with one request at a time per connection, where packets give the time.",
    reads: &[Table::ServerRequests],
    ..check("server_time_precision", judge)
};

/// Times may be rounded to this share of the median.
const ALLOWED_SHARE: f64 = 0.1;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let typical_ns = context.own.median(|run| run.value("server_time"))?;
    let precision_ns = context.own.median(|run| {
        let joined = run.groups.iter().map(|group| group.server).filter(|server| server.joined > 0);
        joined.map(|server| server.precision_ns).max().map(number::float)
    })?;
    let joined = context.own.sum(|facts| facts.server.joined);
    let source = match context.own.sum(|facts| facts.server.from_packets) {
        0 => "the server's log".to_owned(),
        all if all == joined => "packets at its link".to_owned(),
        some => format!("its log, and for {some} of {joined} from packets at its link"),
    };
    Some(Finding::pass_or_caveat(
        precision_ns <= ALLOWED_SHARE * typical_ns,
        format!("to {} at a median of {}, from {source}", time(precision_ns), time(typical_ns)),
        format!("{} of the median", percent(ALLOWED_SHARE)),
    ))
}

#[cfg(test)]
mod tests {
    use model::record::TimeSource;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn measured(bench: &Bench) -> String {
        let summary = bench.summary();
        let mut found = summary.cells[0].validity.iter();
        found.find(|check| check.check == "server_time_precision").unwrap().measured.clone()
    }

    #[test]
    fn microseconds_of_milliseconds_pass() {
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000);
        passes("server_time_precision", &bench);
        assert_eq!(measured(&bench), "to 1 µs at a median of 2 ms, from the server's log");
        for row in bench.records.iter_mut().flat_map(|record| &mut record.server_requests) {
            row.source = TimeSource::Packets;
        }
        assert!(measured(&bench).ends_with("from packets at its link"));
        bench.records[0].server_requests[3].source = TimeSource::Log;
        assert!(measured(&bench).ends_with("from its log, and for 249 of 250 from packets at its link"));
    }

    #[test]
    fn milliseconds_of_two_are_a_caveat() {
        caveats(&Bench::closed(&[Variant::H1]).served(1_000_000), &["server_time_precision"]);
        let mut bench = Bench::closed(&[Variant::H1]).served(1_000_000);
        for row in bench.records.iter_mut().flat_map(|record| &mut record.server_requests) {
            row.request_time_ns = 0;
        }
        caveats(&bench, &["server_time_precision"]);
    }

    #[test]
    fn without_times_there_is_nothing_to_judge() {
        silent("server_time_precision", &Bench::closed(&[Variant::H1]));
    }
}
