//! TIME-WAIT sockets are read at the end that has them.

use std::collections::BTreeSet;

use model::claim::ClaimTest;
use model::csv::CsvValue;
use model::number;
use model::plan::Plan;

use super::{Check, Context, Finding, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "where the study's metric, a claim, a published value or a table reads TIME-WAIT sockets at one end: their peak \
               there and at the other end, in the median run",
    passes: "at least as many as at the other end, or both ends are read",
    caveat: "fewer",
    why: "TIME-WAIT stays with the end that closes a connection first (RFC 9293, section 3.6). Few at one end say \
          nothing about connections if the other end closes them.",
    remedy: "Read `client_time_wait_peak` and `server_time_wait_peak` together, or count `connections`.",
    reads: &[Table::Monitor],
    ..check("time_wait", judge)
};

/// The metrics, with the names of their ends.
const ENDS: [(&str, &str); 2] = [("server_time_wait_peak", "server"), ("client_time_wait_peak", "client")];

fn judge(context: &Context<'_>) -> Option<Finding> {
    let read = read_by(context.plan);
    let is_read = |end: &(&str, &str)| read.contains(end.0);
    let first = ENDS.iter().position(is_read)?;
    let peak = |place: usize| context.own.median(|run| run.value(ENDS[place].0)).unwrap_or(0.0);
    if ENDS.iter().all(|(metric, _)| context.own.median(|run| run.value(metric)).is_none()) {
        return None;
    }
    let (own, other) = (peak(first), peak(1 - first));
    let passes = own >= other || ENDS.iter().all(is_read);
    let (end, other_end) = (ENDS[first].1, ENDS[1 - first].1);
    let shown = |peak: f64| model::units::counted(number::nearest(peak), "socket");
    let measured =
        format!("up to {} in TIME-WAIT at the {end}, {} at the {other_end}", shown(own), shown(other));
    Some(Finding::pass_or_caveat(passes, measured, "read at the end that has more, or at both"))
}

/// The metrics that the study reads somewhere.
fn read_by(plan: &Plan) -> BTreeSet<&str> {
    let claims = plan.claims.iter().filter_map(|claim| match &claim.holds_if {
        ClaimTest::Value { metric, .. } => Some(metric.as_str()),
        _ => None,
    });
    let columns = plan.csv.iter().flat_map(|table| &table.columns).filter_map(|column| match &column.value {
        CsvValue::Metric { metric, .. } => Some(metric.as_str()),
        CsvValue::Level(_) => None,
    });
    let published = plan.published.iter().map(|entry| entry.metric.as_str());
    [plan.metric.as_str()].into_iter().chain(claims).chain(columns).chain(published).collect()
}

#[cfg(test)]
mod tests {
    use model::claim::{Bound, Claim};
    use model::monitor::{Quantity, SubjectKind};
    use model::statistic::Statistic;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, caveats, passes, silent};

    fn waiting(server: u64, client: u64) -> Bench {
        Bench::closed(&[Variant::H1])
            .with_reading(Some("server"), SubjectKind::Sockets, Quantity::TimeWait, server)
            .with_reading(Some("client"), SubjectKind::Sockets, Quantity::TimeWait, client)
    }

    fn claiming(metric: &str, mut bench: Bench) -> Bench {
        let holds_if = ClaimTest::Value {
            metric: metric.to_owned(),
            statistic: Statistic::Median,
            levels: Vec::new(),
            against: None,
            least: Some(Bound::Plain(0.0)),
            most: None,
        };
        bench.plan.claims.push(Claim { text: "It leaves many sockets.".to_owned(), holds_if });
        bench
    }

    #[test]
    fn nothing_is_judged_unless_somebody_reads_them() {
        silent("time_wait", &waiting(0, 750));
        silent("time_wait", &claiming("server_time_wait_peak", Bench::closed(&[Variant::H1])));
    }

    #[test]
    fn the_end_that_has_them_passes_and_the_other_is_a_caveat() {
        passes("time_wait", &claiming("server_time_wait_peak", waiting(750, 0)));
        passes("time_wait", &claiming("client_time_wait_peak", waiting(0, 750)));
        caveats(&claiming("server_time_wait_peak", waiting(0, 750)), &["time_wait"]);
        let both = claiming("client_time_wait_peak", claiming("server_time_wait_peak", waiting(0, 750)));
        passes("time_wait", &both);
    }
}
