//! The metric starts with the same event in both cells.

use model::external::OWN_CLIENT;

use super::{Check, CheckOutcome, Context, Finding, Side, check};
use crate::metrics;
use crate::run::page_of;

pub(super) const CHECK: Check = Check {
    measures: "metrics that each client measures itself, where the two cells have different clients: the \
               event at which a time starts",
    passes: "the same event",
    caveat: "a different event, or unknown",
    why: "If one client starts its times before the connection opens and another after it, the times differ \
          by what lies between.",
    remedy: "Measure both cells with the same client, or compare counts and not times.",
    ..check("events_match", judge)
};

/// The event at which h123's own request times start.
const OWN_BEGIN: &str = "the request is handed to the transport";
/// The event at which the times of its page loads start.
const OWN_PAGE_BEGIN: &str = "the first connection opens";

/// Judged if the clients are different programs and the metric is a time that clients measure themselves.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    let is_page = page_of(context.plan, &context.own.cell.group).is_some();
    let is_time = context.is_response_time() || is_page && metrics::find(&context.plan.metric)?.unit == "ns";
    if !is_time || clients(&context.own) == clients(baseline) {
        return None;
    }
    let own_begin = if is_page { OWN_PAGE_BEGIN } else { OWN_BEGIN };
    let ((own, other), both) =
        ((begin(&context.own, own_begin), begin(baseline, own_begin)), "the same event");
    let (result, measured) = match (&own, &other) {
        (Some(own), Some(other)) if own == other => (CheckOutcome::Pass, own.clone()),
        (Some(own), Some(_)) => (CheckOutcome::Caveat, own.clone()),
        _ => return Some(Finding::not_reported("a client does not report at which event its times start")),
    };
    let threshold = other.map_or_else(|| both.to_owned(), |other| format!("{other}, as in the baseline"));
    Some(Finding { result, measured: format!("times start when {measured}"), threshold })
}

fn clients<'a>(side: &Side<'a>) -> Vec<&'a str> {
    vec![side.cell.group.client.as_str()]
}

/// The event at which all times of a side start; `None` if it is unknown.
fn begin(side: &Side<'_>, own_begin: &str) -> Option<String> {
    let mut events = side.facts().map(|(group, facts)| match group.client.as_str() {
        OWN_CLIENT => Some(own_begin.to_owned()),
        _ => facts.begins.clone(),
    });
    let first = events.next()??;
    events.all(|event| event.as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use model::external::ExternalReport;
    use model::plan::Level;
    use model::variant::Variant;

    use super::OWN_BEGIN;
    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::{CheckOutcome, CheckResult};

    /// The second cell's client is an external one.
    fn with_client(begins: Option<&str>) -> Bench {
        with_client_of(Bench::closed(&[Variant::H1, Variant::H1s]), begins)
    }

    fn with_client_of(mut bench: Bench, begins: Option<&str>) -> Bench {
        for (place, name) in [(0, "h123"), (1, "other")] {
            bench.plan.cells[place].levels[0] = Level { factor: "client".into(), value: name.into() };
            bench.plan.cells[place].group.client = name.into();
        }
        bench.plan.baseline = bench.plan.cells[0].levels[0].clone();
        for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
            let report = ExternalReport {
                client: "other".into(),
                begins: begins.map(str::to_owned),
                ..Default::default()
            };
            record.clients[0].external = Some(Box::new(report));
        }
        bench
    }

    fn found(bench: &Bench) -> CheckResult {
        let summary = bench.summary();
        summary.cells[1].validity.iter().find(|check| check.check == "events_match").unwrap().clone()
    }

    #[test]
    fn one_client_is_not_judged_and_the_same_event_passes() {
        silent("events_match", &Bench::closed(&[Variant::H1, Variant::H2c]));
        passes("events_match", &with_client(Some(OWN_BEGIN)));
    }

    #[test]
    fn another_event_or_an_unknown_one_is_a_caveat() {
        let other = found(&with_client(Some("the connection is opened")));
        assert_eq!(other.result, CheckOutcome::Caveat);
        assert_eq!(other.measured, "times start when the connection is opened");
        let not_reported = found(&with_client(None));
        assert!(not_reported.measured.starts_with("not judged: "), "{not_reported:?}");
    }

    #[test]
    fn page_loads_of_a_browser_start_earlier_than_ours() {
        let pages =
            found(&with_client_of(Bench::page(&[Variant::H1, Variant::H1s]), Some("the navigation begins")));
        assert_eq!(pages.result, CheckOutcome::Caveat);
        assert_eq!(pages.threshold, "the first connection opens, as in the baseline");
    }

    #[test]
    fn what_is_no_time_is_not_judged() {
        let mut bench = with_client(None);
        bench.plan.metric = "requests_per_second".to_owned();
        silent("events_match", &bench);
    }
}
