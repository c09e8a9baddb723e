//! The emulator released frames when they were due.
//!
//! A page load is lengthened not by one late frame but by the sum along its critical path: each crossing of
//! the link adds its lateness, and there are as many crossings as the path has round trips. The value is
//! therefore the *lengthening*: how much the prediction of [`crate::predict`] grows if every frame has the
//! run's median lateness, minus the 50 µs that waking a thread costs. Every crossing has these, including the
//! probes on the empty path, so they belong to the round trip that the check `calibration` judges. The tail
//! counts only if it is very long: among ten consecutive crossings, one is beyond the 99th percentile in one
//! load of ten, which the median over runs never shows but the interval does.
//!
//! Only the *difference* between the two cells' lengthenings, as shares of their own metrics, can change a
//! verdict: an equal share in both preserves the ratio. The lengthening itself affects the absolute value:
//! the network had a slightly longer delay.

use model::number;
use model::plan::{Cell, ClientGroup};
use model::record::{DirectionReport, LinkReport};
use model::units::{NANOS_PER_MS, NANOS_PER_US};

use super::{Check, CheckOutcome, Context, Finding, Side, Table, check, counted, grade, percent, time};
use crate::predict;
use crate::run::{RunSummary, page_of, player_of};

pub(super) const CHECK: Check = Check {
    measures: "how much the emulator's median lateness (minus 50 µs for waking a thread) lengthens the \
               predicted metric: (a) relative to the baseline, (b) in this cell; and (c) the 99th \
               percentile of lateness; (d) how much more single runs were lengthened than the median run",
    passes: "(a) margin, (b) 5 margins, (c) 10 margins of the metric, (d) margin, in at least nine of ten runs",
    caveat: "(a) 3 margins, (b) 10 margins, (c) and (d) more",
    invalidates: "(a) or (b) more",
    why: "Frames that leave late lengthen every round trip, and they lengthen the cell with more round \
          trips more.",
    remedy: "Give the emulator real-time priority (`h123 doctor`), and let nothing else run on the machine.",
    reads: &[Table::Links],
    ..check("emulator_late", judge)
};

/// Waking a thread costs this much. The calibrated round trip contains it.
const WAKE_UP_NS: f64 = 50.0 * NANOS_PER_US as f64;
/// The two cells' shares may differ by one margin; up to this many margins are a caveat.
const RATIO_CAVEAT_FACTOR: f64 = 3.0;
/// The metric may be lengthened by this many margins; up to ten are a caveat.
const ABSOLUTE_PASS_FACTOR: f64 = 5.0;
const ABSOLUTE_CAVEAT_FACTOR: f64 = 10.0;
/// A 99th percentile above this many margins of the metric is a caveat.
const TAIL_FACTOR: f64 = 10.0;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let margin = context.plan.margin_share;
    let own = Lateness::of(context, &context.own)?;
    let baseline = context.baseline.as_ref().and_then(|baseline| Lateness::of(context, baseline));
    let apart = baseline.map_or(0.0, |baseline| (own.share - baseline.share).abs());
    let absolute = grade(own.share, ABSOLUTE_PASS_FACTOR * margin, ABSOLUTE_CAVEAT_FACTOR * margin);
    let mut result = grade(apart, margin, RATIO_CAVEAT_FACTOR * margin).max(absolute);
    let tail_ns = TAIL_FACTOR * margin * own.metric_ns;
    let disturbed = context.own.disturbance(|run| own.beyond_median(run))?;
    result = result.max(disturbed.grade(margin, f64::INFINITY));
    if own.p99_ns > tail_ns {
        result = result.max(CheckOutcome::Caveat);
    }
    let [share, apart, allowed, margin] =
        [own.share, apart, ABSOLUTE_PASS_FACTOR * margin, margin].map(percent);
    let [p50, p99, tail] = [own.p50_ns, own.p99_ns, tail_ns].map(time);
    let mut measured =
        format!("metric lengthened by {share}, {apart} apart from the baseline (median {p50}, p99 {p99})");
    if disturbed.is_frequent(context.plan.margin_share) {
        let (late, all) = (disturbed.beyond(context.plan.margin_share), disturbed.values.len());
        measured = format!("{measured}; {late} of {} later", counted(all as u64, "run"));
    }
    let threshold = format!("lengthened by {allowed}, {margin} apart, p99 {tail}");
    Some(Finding { result, measured, threshold })
}

/// How late the emulator was in the median run, and how much that lengthens the metric.
struct Lateness {
    p50_ns: f64,
    p99_ns: f64,
    metric_ns: f64,
    /// The lengthening as a share of the metric.
    share: f64,
    /// The lengthening by a nanosecond of lateness in each direction, as a share of the metric.
    share_per_ns: f64,
}

/// A lateness that is large enough for the difference of two predictions.
const REFERENCE_NS: f64 = NANOS_PER_MS as f64;

impl Lateness {
    /// `None` if nothing was emulated, no lateness was measured, or the primary metric is not a time.
    fn of(context: &Context<'_>, side: &Side<'_>) -> Option<Lateness> {
        let metric_ns = metric_ns(context, side)?;
        let up_ns = side.median(|run| sum_p50_ns(run, |link| &link.up))?;
        let down_ns = side.median(|run| sum_p50_ns(run, |link| &link.down))?;
        let both = |link: &LinkReport| [link.up.lateness.clone(), link.down.lateness.clone()];
        let late = |run: &RunSummary| run.links.iter().flat_map(both).flatten().map(|late| late.p99_ns).max();
        let p99_ns = side.median(|run| late(run).map(number::float))?;
        let [up_late_ns, down_late_ns] = [up_ns, down_ns].map(|ns| (ns - WAKE_UP_NS).max(0.0));
        let lengthened_ns = |up_ns, down_ns| lengthening_ns(context, side.cell, up_ns, down_ns);
        let reference_ns = lengthened_ns(REFERENCE_NS, REFERENCE_NS);
        let share_per_ns = reference_ns / REFERENCE_NS / metric_ns;
        let (p50_ns, share) = (up_ns.max(down_ns), lengthened_ns(up_late_ns, down_late_ns) / metric_ns);
        Some(Lateness { p50_ns, p99_ns, metric_ns, share, share_per_ns })
    }

    /// How much more a run was lengthened than the median run, as a share of the metric.
    fn beyond_median(&self, run: &RunSummary) -> Option<f64> {
        let late_ns = |direction| sum_p50_ns(run, direction).map(|ns: f64| (ns - WAKE_UP_NS).max(0.0));
        let mean_ns = f64::midpoint(late_ns(|link| &link.up)?, late_ns(|link| &link.down)?);
        Some(mean_ns * self.share_per_ns - self.share)
    }
}

/// The sum over the links of a run; `None` if nothing was emulated, or the backend does not measure its
/// lateness.
fn sum_p50_ns(run: &RunSummary, direction: fn(&LinkReport) -> &DirectionReport) -> Option<f64> {
    let sum: Option<u64> = run.links.iter().map(|link| Some(direction(link).lateness.as_ref()?.p50_ns)).sum();
    sum.filter(|_| !run.links.is_empty()).map(number::float)
}

/// The primary metric as a time; of a rate the request time.
fn metric_ns(context: &Context<'_>, side: &Side<'_>) -> Option<f64> {
    let primary = crate::metrics::find(&context.plan.metric)?;
    let name = match primary.unit {
        "ns" if primary.crosses_network => primary.name,
        "1/s" => "request_time",
        _ => return None,
    };
    Some(side.summary.metrics.get(name)?.median.value).filter(|ns| *ns > 0.0)
}

/// The segments that a player downloads before playback begins.
fn segments_to_begin(context: &Context<'_>, group: &ClientGroup) -> f64 {
    player_of(context.plan, group).map_or(1.0, |player| {
        number::float(player.startup_ns.div_ceil(player.longest_segment_ns().max(1)).max(1))
    })
}

fn lengthening_ns(context: &Context<'_>, cell: &Cell, up_ns: f64, down_ns: f64) -> f64 {
    let (group, pins, round_trip_ns) = (&cell.group, context.plan.pins_of(cell), up_ns + down_ns);
    let handshake = f64::from(predict::handshake_round_trips(group.variant, pins));
    match (context.plan.metric.as_str(), page_of(context.plan, group)) {
        ("handshake_time", _) => handshake * round_trip_ns,
        ("time_to_first_byte", _) => (handshake + 1.0) * round_trip_ns,
        ("startup_time", _) => (handshake + segments_to_begin(context, group)) * round_trip_ns,
        ("page_load_time", Some(page)) => {
            // The difference of two predictions hardly depends on the network's randomness.
            let network = context.plan.network_of(cell).certain();
            let mut late = network.clone();
            late.up.delay_ns += number::nearest(up_ns);
            late.down.delay_ns += number::nearest(down_ns);
            let predict = |network| predict::certain_page_load_ns(page, network, group.variant, pins);
            number::float(predict(&late).saturating_sub(predict(&network)))
        }
        _ => round_trip_ns,
    }
}

#[cfg(test)]
mod tests {
    use model::record::Lateness;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    fn with_lateness(variants: &[Variant], p50_ns: u64, p99_ns: u64) -> Bench {
        let mut bench = Bench::page(variants);
        late(&mut bench, None, p50_ns, p99_ns);
        bench
    }

    fn late(bench: &mut Bench, cell: Option<u32>, p50_ns: u64, p99_ns: u64) {
        for record in bench.records.iter_mut().filter(|record| cell.is_none_or(|cell| record.cell == cell)) {
            for link in &mut record.links {
                link.up.lateness = Some(Lateness { p50_ns, p99_ns, max_ns: p99_ns });
                link.down.lateness = link.up.lateness.clone();
            }
        }
    }

    #[test]
    fn a_far_network_does_not_mind() {
        passes("emulator_late", &with_lateness(&[Variant::H1s, Variant::H3], 100_000, 400_000));
    }

    #[test]
    fn a_local_network_does_not_mind_what_a_good_emulator_does() {
        let mut bench = with_lateness(&[Variant::H1s, Variant::H2, Variant::H3], 60_000, 150_000);
        bench.on_lan();
        passes("emulator_late", &bench);
    }

    #[test]
    fn milliseconds_on_a_local_network_invalidate() {
        let mut bench = with_lateness(&[Variant::H1s, Variant::H3], 1_000_000, 4_000_000);
        bench.on_lan();
        fails("emulator_late", &bench);
    }

    #[test]
    fn one_arm_later_than_the_other_is_a_caveat_then_invalid() {
        let mut bench = with_lateness(&[Variant::H1s, Variant::H2], 60_000, 150_000);
        bench.on_lan();
        late(&mut bench, Some(1), 80_000, 150_000);
        caveats(&bench, &["emulator_late"]);
        late(&mut bench, Some(1), 190_000, 150_000);
        fails("emulator_late", &bench);
    }

    #[test]
    fn a_late_minority_of_runs_is_a_caveat() {
        let mut bench = with_lateness(&[Variant::H1s], 60_000, 150_000);
        bench.on_lan();
        for link in &mut bench.records[2].links {
            link.up.lateness = Some(Lateness { p50_ns: 250_000, p99_ns: 250_000, max_ns: 250_000 });
            link.down.lateness = link.up.lateness.clone();
        }
        caveats(&bench, &["emulator_late"]);
    }

    #[test]
    fn a_gross_tail_is_a_caveat() {
        let mut bench = with_lateness(&[Variant::H1s], 10_000, 4_000_000);
        bench.on_lan();
        caveats(&bench, &["emulator_late"]);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let mut bench = with_lateness(&[Variant::H1s], 1_000_000, 4_000_000);
        bench.on_lan();
        for record in &mut bench.records {
            for link in &mut record.links {
                (link.up.lateness, link.down.lateness) = (None, None);
            }
        }
        silent("emulator_late", &bench);
    }

    #[test]
    fn bytes_cannot_be_late() {
        let mut bench = with_lateness(&[Variant::H1s], 1_000_000, 4_000_000);
        bench.plan.metric = "wire_bytes_down".to_owned();
        silent("emulator_late", &bench);
    }
}
