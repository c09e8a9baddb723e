//! Published values against measured ones: whether they agree, and why they cannot be compared where they
//! cannot.
//!
//! Ratios, shares, counts, sizes and times in round trips carry over to another machine; times and rates do
//! not. A published value agrees with a measured one if it lies in the interval over runs, widened by the
//! study's margin of interest.

use model::media::{Presentation, TrackKind};
use model::number;
use model::plan::{Cell, Level, Plan, Published, PublishedValue};
use model::statistic::Statistic;
use model::units::{format_bytes, format_duration_ns, format_rate, three_digits};

use crate::comparison::{self, CellRuns};
use crate::metrics;
use crate::predict::handshake_round_trips;
use crate::summary::{CellStatus, Estimate, PublishedOutcome, PublishedResult};

/// The results of each published value: one for each cell that it is about.
pub(crate) fn compare_all(plan: &Plan, sides: &[CellRuns<'_>]) -> Vec<PublishedResult> {
    let of_entry = |entry| {
        let about = sides.iter().filter(move |side| is_about(entry, side.cell));
        about.map(move |side| compare(plan, entry, side, sides))
    };
    plan.published.iter().flat_map(of_entry).collect()
}

fn is_about(entry: &Published, cell: &Cell) -> bool {
    !cell.group.is_background && entry.levels.iter().all(|level| cell.levels.contains(level))
}

fn compare(plan: &Plan, entry: &Published, side: &CellRuns<'_>, sides: &[CellRuns<'_>]) -> PublishedResult {
    let statistic = entry.statistic.unwrap_or_else(|| metrics::compared(&entry.metric, plan.statistic));
    let of = (entry.metric.as_str(), statistic);
    let unit = match entry.value {
        PublishedValue::Ratio(_) => "ratio",
        PublishedValue::RoundTrips(_) => "rtt",
        PublishedValue::Value(_) => metrics::find(&entry.metric).map_or("1", |metric| metric.unit),
    };
    let (published, measured) = match entry.value {
        PublishedValue::Ratio(ratio) => (ratio, ratio_of(plan, entry, of, side, sides)),
        PublishedValue::RoundTrips(trips) => (trips, in_round_trips(plan, of, side)),
        PublishedValue::Value(value) => (value, estimate(of, side)),
    };
    let (result, reason) = match (impossible(plan, entry, side.cell), &measured) {
        (Some(why), _) => {
            (PublishedOutcome::NotComparable, format!("The published value cannot be right: {why}."))
        }
        (None, Err(why)) => (PublishedOutcome::NotComparable, format!("{why}.")),
        (None, Ok(measured)) => judge(plan, unit, published, measured),
    };
    PublishedResult {
        source: entry.source.clone(),
        levels: side.cell.levels.clone(),
        against: matches!(entry.value, PublishedValue::Ratio(_))
            .then(|| entry.against.clone().unwrap_or_else(|| plan.baseline.clone())),
        metric: entry.metric.clone(),
        statistic,
        cell: side.cell.cell,
        unit: unit.to_owned(),
        published,
        measured: measured.ok(),
        result,
        reason,
    }
}

/// A measured value, or why there is none, without the full stop.
type Measured = Result<Estimate, String>;

fn estimate((metric, statistic): (&str, Statistic), side: &CellRuns<'_>) -> Measured {
    usable(metric, side)?;
    let found = side.summary.metrics.get(metric).map(|found| found.estimate(statistic));
    found.ok_or_else(|| format!("Nothing measured {metric} here"))
}

/// Whether a cell's value may be compared with anything.
fn usable(metric: &str, side: &CellRuns<'_>) -> Result<(), String> {
    let name = side.cell.levels.iter().map(|level| level.value.as_str()).collect::<Vec<_>>().join(" ");
    match comparison::cell_obstacles(&name, metric, side.summary).into_iter().next() {
        Some(_) if side.summary.status == CellStatus::Invalid => {
            let checks = side.summary.validity.iter();
            let invalid = checks.filter(|check| check.result == crate::summary::CheckOutcome::Invalid);
            let names: Vec<&str> = invalid.map(|check| check.check.as_str()).collect();
            Err(format!("The measurement of {name} is invalid ({})", names.join(", ")))
        }
        Some(obstacle) => Err(format!("There is no measured value: {}", obstacle.trim_end_matches('.'))),
        None => Ok(()),
    }
}

fn ratio_of(
    plan: &Plan,
    entry: &Published,
    of: (&str, Statistic),
    side: &CellRuns<'_>,
    sides: &[CellRuns<'_>],
) -> Measured {
    let against: &Level = entry.against.as_ref().unwrap_or(&plan.baseline);
    let is_other = |other: &&CellRuns<'_>| {
        other.cell.level(&against.factor) == Some(against.value.as_str())
            && side.cell.levels.iter().all(|l| l.factor == against.factor || other.cell.levels.contains(l))
    };
    let other = sides.iter().find(is_other);
    let other = other.ok_or_else(|| format!("The study has no such cell of {}", against.value))?;
    usable(of.0, side)?;
    usable(of.0, other)?;
    let ratio = comparison::ratio_by(plan, of, side, other);
    ratio.ok_or_else(|| "A measured value is missing or 0, so there is no ratio".to_owned())
}

fn in_round_trips(plan: &Plan, of: (&str, Statistic), side: &CellRuns<'_>) -> Measured {
    let rtt_ns = plan.network_of(side.cell).rtt_ns();
    if rtt_ns == 0 {
        return Err("The network has no delay, so nothing takes round trips".to_owned());
    }
    let of_value = |value: f64| value / number::float(rtt_ns);
    let Estimate { value, low, high } = estimate(of, side)?;
    Ok(Estimate { value: of_value(value), low: low.map(of_value), high: high.map(of_value) })
}

/// Agrees, disagrees, or is a value that does not carry over.
fn judge(plan: &Plan, unit: &str, published: f64, measured: &Estimate) -> (PublishedOutcome, String) {
    if ["ns", "1/s", "bit/s", "B/s"].contains(&unit) {
        let what = if unit == "ns" { "times" } else { "rates" };
        let reason = format!("Absolute {what} of another machine and network do not carry over; ratios do.");
        return (PublishedOutcome::NotComparable, reason);
    }
    let (Some(low), Some(high)) = (measured.low, measured.high) else {
        return (PublishedOutcome::NotComparable, "Too few runs for an interval.".to_owned());
    };
    let shown = |value: f64| display(value, unit);
    let interval = format!("{} [{}\u{2013}{}]", shown(measured.value), shown(low), shown(high));
    let (least, most) = (low / (1.0 + plan.margin_share), high * (1.0 + plan.margin_share));
    let published_as = shown(published);
    if (least..=most).contains(&published) {
        let reason =
            format!("{published_as} lies in the interval of {interval}, or within the margin of it.");
        return (PublishedOutcome::Agrees, reason);
    }
    let direction = if published > most { "above" } else { "below" };
    let order = if unit == "ratio" { order(published, low, high) } else { "" };
    (PublishedOutcome::Disagrees, format!("{published_as} lies {direction} {interval}{order}."))
}

/// What the two ratios say about the order of the two levels.
fn order(published: f64, low: f64, high: f64) -> &'static str {
    match (published > 1.0, low > 1.0, high < 1.0) {
        (true, true, _) | (false, _, true) => ", in the same order",
        (true, _, true) | (false, true, _) => ", in the opposite order",
        _ => ", where no order was found",
    }
}

/// A value with its unit.
pub fn display(value: f64, unit: &str) -> String {
    match unit {
        "ratio" => format!("{}\u{d7}", three_digits(value)),
        "rtt" => format!("{} RTT", three_digits(value)),
        "ns" => format_duration_ns(value),
        "B" => format_bytes(value),
        "bit/s" => format_rate(value),
        "1/s" => format!("{} 1/s", three_digits(value)),
        _ => three_digits(value),
    }
}

/// Why a published value contradicts its own definition, other values of the same source, or the content.
pub(crate) fn impossible(plan: &Plan, entry: &Published, cell: &Cell) -> Option<String> {
    match entry.value {
        PublishedValue::Ratio(_) => None,
        PublishedValue::RoundTrips(trips) => {
            let least = least_round_trips(plan, &entry.metric, cell)?;
            (trips < least)
                .then(|| format!("{} takes at least {} round trips", entry.metric, three_digits(least)))
        }
        PublishedValue::Value(value) => {
            beyond_content(plan, &entry.metric, value, cell).or_else(|| parts_exceed(plan, entry, value))
        }
    }
}

/// The round trips that a time has at least: those of the handshakes that its definition includes, and one
/// for the request. `None` for metrics that need no round trip.
pub(crate) fn least_round_trips(plan: &Plan, metric: &str, cell: &Cell) -> Option<f64> {
    let handshakes = || f64::from(handshake_round_trips(cell.group.variant, plan.pins_of(cell)));
    match metric {
        "time_to_first_byte" | "page_load_time" => Some(handshakes() + 1.0),
        // Pages or loops whose connections may be open already.
        "request_time" | "batch_time" => Some(1.0),
        _ => None,
    }
}

/// More than the content or the network has.
pub(crate) fn beyond_content(plan: &Plan, metric: &str, value: f64, cell: &Cell) -> Option<String> {
    let known = metrics::find(metric)?;
    if let Some(ceiling) = known.ceiling.filter(|ceiling| value > *ceiling) {
        return Some(format!("{metric} is at most {}", display(ceiling, known.unit)));
    }
    match metric {
        "mean_representation" => {
            let most = highest_bit_rate(plan, cell).filter(|most| value > *most)?;
            Some(format!("no representation of the video has more than {}", format_rate(most)))
        }
        _ => None,
    }
}

/// The bit rate of the highest representation that a cell's player can choose.
fn highest_bit_rate(plan: &Plan, cell: &Cell) -> Option<f64> {
    let player = plan.workload_of(&cell.group).workload.player()?;
    let live = player.live.as_ref().map(|live| live.manifest.as_str());
    let name = live.or(player.browser.as_ref().map(|browser| browser.manifest.as_str()));
    let of_media = name.and_then(model::media::Media::name_in);
    let media = plan.media.iter().find(|media| Some(media.name.as_str()) == of_media);
    let of = |presentation: &Presentation| {
        let tracks = presentation.tracks.iter().filter(|track| track.kind == TrackKind::Video);
        tracks.flat_map(|track| track.ladder_bits_per_s()).max()
    };
    of(&player.presentation).or_else(|| of(&media?.presentation)).map(number::float)
}

/// A time that is shorter than parts of it, which the same source states for the same cells.
fn parts_exceed(plan: &Plan, entry: &Published, value: f64) -> Option<String> {
    let parts: &[&str] = match entry.metric.as_str() {
        "time_to_first_byte" => &["connect_time", "secure_handshake_time", "document_wait_time"],
        "page_load_time" => {
            &["connect_time", "secure_handshake_time", "document_wait_time", "document_transfer_time"]
        }
        _ => return None,
    };
    let of_source = plan.published.iter().filter(|other| {
        other.source == entry.source && other.levels == entry.levels && parts.contains(&other.metric.as_str())
    });
    let values = of_source.filter_map(|other| match other.value {
        PublishedValue::Value(value) => Some((other.metric.as_str(), value)),
        _ => None,
    });
    let (names, values): (Vec<&str>, Vec<f64>) = values.unzip();
    let sum: f64 = values.iter().sum();
    (sum > value).then(|| {
        format!(
            "its parts take longer: {} take {}, and {} is {}",
            names.join(", "),
            format_duration_ns(sum),
            entry.metric,
            format_duration_ns(value)
        )
    })
}

#[cfg(test)]
mod tests {
    use model::player::constant_rate_video;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;

    fn level(value: &str) -> Level {
        Level { factor: "variant".to_owned(), value: value.to_owned() }
    }

    fn entry(variant: &str, metric: &str, value: PublishedValue) -> Published {
        Published { value, ..Published::ratio("Doe, 2024", vec![level(variant)], metric, 1.0) }
    }

    fn results(mut bench: Bench, published: Vec<Published>) -> Vec<PublishedResult> {
        bench.plan.published = published;
        bench.summary().published
    }

    fn only(bench: Bench, published: Published) -> PublishedResult {
        let mut results = results(bench, vec![published]);
        assert_eq!(results.len(), 1, "{results:?}");
        results.remove(0)
    }

    fn pages() -> Bench {
        Bench::page(&[Variant::H1s, Variant::H2, Variant::H3])
    }

    /// Five round trips over HTTP/1.1 here, four over HTTP/2.
    #[test]
    fn ratios_to_the_baseline_and_to_any_level_agree_or_disagree() {
        let measured = |bench: Bench, against: Option<&str>, ratio: f64| {
            let against = against.map(level);
            only(bench, Published { against, ..entry("h2", "page_load_time", PublishedValue::Ratio(ratio)) })
        };
        let found = measured(pages(), None, 0.8);
        assert_eq!(
            (found.result, found.against),
            (PublishedOutcome::Agrees, Some(level("h1s"))),
            "{}",
            found.reason
        );
        let found = measured(pages(), None, 1.25);
        assert_eq!(found.result, PublishedOutcome::Disagrees);
        assert!(found.reason.ends_with("in the opposite order."), "{}", found.reason);
        let found = measured(pages(), None, 0.5);
        assert!(found.reason.ends_with("in the same order."), "{}", found.reason);
        let found = measured(pages(), Some("h3"), 4.0 / 3.0);
        assert_eq!(found.result, PublishedOutcome::Agrees, "{}", found.reason);
    }

    #[test]
    fn round_trips_and_shares_carry_over_and_times_and_rates_do_not() {
        let trips = |trips| only(pages(), entry("h2", "page_load_time", PublishedValue::RoundTrips(trips)));
        assert_eq!(trips(4.3).result, PublishedOutcome::Agrees, "{}", trips(4.3).reason);
        assert_eq!(trips(6.0).result, PublishedOutcome::Disagrees);
        let loops = || Bench::closed(&[Variant::H1s, Variant::H2]);
        let share = |share| only(loops(), entry("h2", "availability", PublishedValue::Value(share)));
        assert_eq!(share(1.0).result, PublishedOutcome::Agrees);
        assert_eq!(share(0.5).result, PublishedOutcome::Disagrees);
        let time = only(pages(), entry("h2", "page_load_time", PublishedValue::Value(120e6)));
        assert_eq!(time.result, PublishedOutcome::NotComparable);
        assert!(time.reason.starts_with("Absolute times") && time.measured.is_some(), "{time:?}");
        let rate = only(loops(), entry("h2", "requests_per_second", PublishedValue::Value(14.6)));
        assert!(rate.reason.starts_with("Absolute rates"), "{rate:?}");
    }

    #[test]
    fn other_statistics_have_ratios_too() {
        for statistic in [Statistic::Mean, Statistic::Iqr, Statistic::P90] {
            let bench = Bench::closed(&[Variant::H1s, Variant::H2]);
            let ratio = entry("h2", "request_time", PublishedValue::Ratio(1.0));
            let found = only(bench, Published { statistic: Some(statistic), ..ratio });
            assert_eq!(found.statistic, statistic);
            assert_ne!(found.result, PublishedOutcome::Disagrees, "{found:?}");
        }
    }

    #[test]
    fn invalid_and_unmeasured_cells_and_single_runs_cannot_be_compared() {
        let ratio = || entry("h2", "page_load_time", PublishedValue::Ratio(0.8));
        let mut invalid = pages();
        invalid.records[1].links[0].down.lost_overload = 1;
        let found = only(invalid, ratio());
        assert_eq!(found.result, PublishedOutcome::NotComparable);
        assert!(found.reason.contains("is invalid (emulator_drops)"), "{}", found.reason);
        let mut missing = pages();
        missing.records.retain(|record| record.cell != 1);
        assert!(only(missing, ratio()).reason.starts_with("There is no measured value"));
        let mut single = pages();
        single.records.truncate(3);
        assert_eq!(only(single, ratio()).reason, "Too few runs for an interval.");
        assert!(results(pages(), vec![entry("h1", "page_load_time", PublishedValue::Ratio(0.8))]).is_empty());
    }

    #[test]
    fn values_that_contradict_themselves_cannot_be_right() {
        let found = only(pages(), entry("h2", "page_load_time", PublishedValue::RoundTrips(2.0)));
        assert!(found.reason.starts_with("The published value cannot be right: "), "{}", found.reason);
        // TCP and TLS take a round trip each.
        assert!(found.reason.contains("at least 3 round trips"), "{}", found.reason);
        let share = only(
            Bench::closed(&[Variant::H1s, Variant::H2]),
            entry("h2", "availability", PublishedValue::Value(1.2)),
        );
        assert!(share.reason.contains("at most 1"), "{}", share.reason);
        let mut video = Bench::player(&[Variant::H1s, Variant::H2]);
        let model::Workload::Player(player) = &mut video.plan.workloads[0].workload else { panic!() };
        player.presentation = constant_rate_video(&[1_000_000, 2_500_000], 500_000_000, 4);
        let rate = only(video, entry("h2", "mean_representation", PublishedValue::Value(513e6)));
        assert!(rate.reason.contains("no representation of the video has more than 2.5"), "{}", rate.reason);
        let parts = [("time_to_first_byte", 2.83e6), ("connect_time", 2e6), ("secure_handshake_time", 17e6)];
        let parts = parts.map(|(metric, ns)| entry("h2", metric, PublishedValue::Value(ns)));
        let found = &results(pages(), parts.to_vec())[0];
        assert!(found.reason.contains("its parts take longer"), "{}", found.reason);
    }
}
