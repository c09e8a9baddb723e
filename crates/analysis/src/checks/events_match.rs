//! The metric begins and ends with the same events in both arms.

use model::external::OWN_CLIENT;

use super::{Check, CheckOutcome, Context, Finding, Side};

pub(super) const CHECK: Check = Check {
    name: "events_match",
    why: "A time that begins before a connection is opened and one that begins after it differ by what lies between, whatever \
          the arms do.",
    remedy: "Let one client measure both arms, or compare what the clients count and not what they time.",
    judge,
};

/// Where our own client's times of requests begin.
const OWN_BEGIN: &str = "the request is handed to the transport";
/// The metrics that each client times by itself.
const TIMED: &[&str] = &["request_time", "service_time", "wait_time"];

/// Judged where the arms' clients are different programs and the study's metric is a time of requests.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    if !TIMED.contains(&context.plan.metric.as_str()) || clients(&context.own) == clients(baseline) {
        return None;
    }
    let ((own, other), both) = ((begin(&context.own), begin(baseline)), "both begin alike");
    let (result, measured) = match (&own, &other) {
        (Some(own), Some(other)) if own == other => (CheckOutcome::Pass, own.clone()),
        (Some(own), Some(_)) => (CheckOutcome::Caveat, own.clone()),
        _ => return Some(Finding::not_reported("a client does not say at which event its times begin")),
    };
    let threshold =
        other.map_or_else(|| both.to_owned(), |other| format!("{other}, as the baseline's client"));
    Some(Finding { result, measured: format!("times begin where {measured}"), threshold })
}

fn clients<'a>(side: &Side<'a>) -> Vec<&'a str> {
    side.cell.clients.iter().map(|group| group.client.as_str()).collect()
}

/// The one event at which all times of a side begin; `None` where that is not known.
fn begin(side: &Side<'_>) -> Option<String> {
    let mut events = side.facts().map(|(group, facts)| match group.client.as_str() {
        OWN_CLIENT => Some(OWN_BEGIN.to_owned()),
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

    /// The second cell's client is somebody else's program.
    fn beside(begins: Option<&str>) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1, Variant::H1s]);
        for (place, name) in [(0, "h123"), (1, "other")] {
            bench.plan.cells[place].levels[0] = Level { factor: "client".into(), value: name.into() };
            bench.plan.cells[place].clients[0].client = name.into();
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
        passes("events_match", &beside(Some(OWN_BEGIN)));
    }

    #[test]
    fn another_event_or_an_unknown_one_is_a_caveat() {
        let other = found(&beside(Some("the connection is opened")));
        assert_eq!(other.result, CheckOutcome::Caveat);
        assert_eq!(other.measured, "times begin where the connection is opened");
        let not_reported = found(&beside(None));
        assert!(not_reported.measured.starts_with("not judged: "), "{not_reported:?}");
    }

    #[test]
    fn what_is_no_time_is_not_judged() {
        let mut bench = beside(None);
        bench.plan.metric = "requests_per_second".to_owned();
        silent("events_match", &bench);
    }
}
