//! No value contradicts the network, the content, or its own definition.

use model::network::{Direction, LinkRate, Network};
use model::number;
use model::options::Visit;
use model::plan::PublishedValue;
use model::statistic::Statistic;
use model::units::three_digits;

use super::{Check, Context, Finding, check};
use crate::metrics;
use crate::published::{beyond_content, display, impossible, least_round_trips};

pub(super) const CHECK: Check = Check {
    measures: "the study's metric, `goodput`, and published values (`value` of `[[published]]`): times below the round trips \
               that they need (on networks without jitter and changes), bytes over time above the link's rate, bit rates \
               above the highest representation, shares above 1, and published times below those of their parts",
    passes: "none",
    caveat: "one or more",
    why: "No measurement has such a value: it is the value of something else, in another unit, or of another definition.",
    remedy: "Compare the definition of the metric with what the value is from: when it starts, bits or bytes, and what it counts.",
    ..check("impossible_values", judge)
};

/// Measured round trips are shorter by clock precision only.
const TOLERANCE: f64 = 0.9;
/// Bodies are shorter than what the link carries, but buffers may hold some of them when the time starts.
const RATE_TOLERANCE: f64 = 1.1;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut faults: Vec<String> = too_fast(context).into_iter().collect();
    let cell = context.own.cell;
    let entries = context.plan.published.iter();
    let about = entries.filter(|entry| entry.levels.iter().all(|level| cell.levels.contains(level)));
    let absolute: Vec<_> = about.filter(|entry| !matches!(entry.value, PublishedValue::Ratio(_))).collect();
    for entry in &absolute {
        let shown = match entry.value {
            PublishedValue::RoundTrips(trips) => display(trips, "rtt"),
            PublishedValue::Ratio(value) | PublishedValue::Value(value) => {
                display(value, metrics::find(&entry.metric).map_or("1", |metric| metric.unit))
            }
        };
        let why = impossible(context.plan, entry, cell);
        faults.extend(why.map(|why| format!("published: {} {shown}; {why}", entry.metric)));
    }
    let is_judged = !absolute.is_empty() || !faults.is_empty() || least_ns(context).is_some();
    let measured = if faults.is_empty() { "none".to_owned() } else { faults.join("; ") };
    is_judged.then(|| Finding::pass_or_caveat(faults.is_empty(), measured, "none"))
}

/// What was measured here and cannot be.
fn too_fast(context: &Context<'_>) -> Option<String> {
    let own = &context.own;
    let value =
        own.summary.metrics.get(&context.plan.metric).map(|found| found.estimate(Statistic::Median).value);
    if let (Some(least), Some(value)) = (least_ns(context), value)
        && value < least * TOLERANCE
    {
        let (value, least) = (super::time(value), super::time(least));
        return Some(format!("{} is {value}, less than its round trips of {least}", context.plan.metric));
    }
    if let Some(why) =
        value.and_then(|value| beyond_content(context.plan, &context.plan.metric, value, own.cell))
    {
        return Some(why);
    }
    let rate = number::float(constant_rate(context.plan.network_of(own.cell))?) * RATE_TOLERANCE;
    let goodput = own.median(|run| run.value("goodput"))?;
    let bits = goodput * bits_per_unit();
    (bits > rate).then(|| {
        let shown = |bits| model::units::format_rate(bits);
        format!(
            "goodput is {}, {} times what the link carries",
            shown(bits),
            three_digits(bits / rate * RATE_TOLERANCE)
        )
    })
}

/// How many bits one of the unit of `goodput` is.
fn bits_per_unit() -> f64 {
    match metrics::find("goodput").map(|metric| metric.unit) {
        Some("B/s") => 8.0,
        _ => 1.0,
    }
}

/// The rate from the servers to the client, if it never changes.
fn constant_rate(network: &Network) -> Option<u64> {
    match network.down.rate {
        LinkRate::Constant { bits_per_s } if network.timeline.is_empty() => Some(bits_per_s),
        _ => None,
    }
}

/// The time that the study's metric takes at least; `None` where packets may be faster than the delay.
fn least_ns(context: &Context<'_>) -> Option<f64> {
    let (plan, cell) = (context.plan, context.own.cell);
    let network = plan.network_of(cell);
    let is_steady = |direction: &Direction| {
        direction.jitter.is_none() && direction.delay_steps.is_none() && direction.reorder.is_none()
    };
    let is_cached = plan.workload_of(&cell.group).options.connections.visit == Visit::Cached;
    if !network.timeline.is_empty() || ![&network.up, &network.down].into_iter().all(is_steady) || is_cached {
        return None;
    }
    // Resumed sessions and early data save handshakes, so one round trip is all that is certain.
    let trips = least_round_trips(plan, &plan.metric, cell)?.min(1.0);
    (network.rtt_ns() > 0).then(|| trips * number::float(network.rtt_ns()))
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, Published};
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, caveats, passes, silent};

    fn publishing(metric: &str, value: PublishedValue) -> Bench {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        let level = Level { factor: "variant".to_owned(), value: "h2".to_owned() };
        let entry = Published::ratio("Doe", vec![level], metric, 1.0);
        bench.plan.published = vec![Published { value, ..entry }];
        bench
    }

    #[test]
    fn what_takes_its_round_trips_passes() {
        passes("impossible_values", &Bench::page(&[Variant::H1s, Variant::H2]));
        passes("impossible_values", &publishing("page_load_time", PublishedValue::RoundTrips(4.0)));
        passes("impossible_values", &publishing("page_load_time", PublishedValue::Ratio(0.01)));
        silent("impossible_values", &Bench::player(&[Variant::H1s]));
    }

    #[test]
    fn a_page_in_less_than_a_round_trip_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.plan.networks[0] = crate::fixtures::network(10_000_000_000, None);
        let summary = bench.summary();
        let found =
            summary.cells[0].validity.iter().find(|check| check.check == "impossible_values").unwrap();
        assert!(found.measured.contains("less than its round trips of 10 s"), "{found:?}");
        // Jitter may make it faster than the mean delay.
        bench.plan.networks[0].up.jitter = Some(model::network::Jitter {
            spread_ns: 1,
            distribution: model::network::Distribution::Normal,
            order: model::network::Order::Free { correlation: 0.0 },
        });
        silent("impossible_values", &bench);
    }

    #[test]
    fn published_values_that_contradict_themselves_are_a_caveat() {
        caveats(&publishing("page_load_time", PublishedValue::RoundTrips(1.5)), &["impossible_values"]);
    }
}
