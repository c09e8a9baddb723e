//! The values of classes of requests in one run.

use std::collections::BTreeMap;

use model::class::{self, RequestClass, class_of};
use model::sample::Sample;

use crate::distribution::{Distribution, DistributionBuilder};
use crate::metrics::{self, Metric};
use crate::run::ShareOfRun;

/// The share of requests that succeeded, which is counted for each class.
const AVAILABILITY: &str = "availability";

/// The values of every class; empty without classes, or if the client does not report URLs.
#[derive(Default)]
pub(crate) struct ClassFolds {
    names: Vec<String>,
    /// The number of each URL's class.
    of_url: Vec<usize>,
    /// The metrics of requests, in the order of their places.
    metrics: Vec<&'static Metric>,
    /// By class: the values of each metric.
    values: Vec<Vec<DistributionBuilder>>,
    /// By class: successes among all requests.
    shares: Vec<ShareOfRun>,
}

impl ClassFolds {
    /// The classes of a study over the URLs of a client. `metrics` are those of requests.
    pub(crate) fn new(
        classes: &[RequestClass],
        urls: &[String],
        metrics: impl Iterator<Item = &'static Metric>,
    ) -> Self {
        if classes.is_empty() {
            return ClassFolds::default();
        }
        let names: Vec<String> = class::names(classes).into_iter().map(str::to_owned).collect();
        let metrics: Vec<&'static Metric> = metrics.collect();
        let none = || metrics.iter().map(|_| DistributionBuilder::default()).collect();
        ClassFolds {
            of_url: urls.iter().map(|url| class_of(classes, url)).collect(),
            values: names.iter().map(|_| none()).collect(),
            shares: vec![ShareOfRun::default(); names.len()],
            metrics,
            names,
        }
    }

    /// Counts a request.
    pub(crate) fn count(&mut self, sample: &Sample) {
        let class = self.of_url.get(sample.url as usize);
        if let Some(share) = class.and_then(|class| self.shares.get_mut(*class)) {
            share.all += 1;
            share.hits += u64::from(sample.outcome.is_ok());
        }
    }

    /// Adds a request's value of the metric at this place.
    pub(crate) fn push(&mut self, url: u32, place: usize, value: f64) {
        let class = self.of_url.get(url as usize);
        let values = class.and_then(|class| self.values.get_mut(*class));
        if let Some(values) = values.and_then(|values| values.get_mut(place)) {
            values.push(value);
        }
    }

    /// Adds the values of all classes to those of the run.
    pub(crate) fn finish(
        &mut self,
        metrics: &mut BTreeMap<String, Distribution>,
        shares: &mut BTreeMap<String, ShareOfRun>,
    ) {
        let has_share = metrics.contains_key(AVAILABILITY);
        for ((name, values), share) in
            self.names.iter().zip(std::mem::take(&mut self.values)).zip(&self.shares)
        {
            for (metric, values) in self.metrics.iter().zip(values) {
                let values = values.finish();
                if !values.is_empty() && metrics.contains_key(metric.name) {
                    metrics.insert(class::metric_of(metric.name, name), values);
                }
            }
            let value = metrics::availability(share.hits, share.all).filter(|_| has_share);
            if let Some(value) = value {
                let name = class::metric_of(AVAILABILITY, name);
                metrics.insert(name.clone(), std::iter::once(value).collect());
                shares.insert(name, *share);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;

    /// Every second request is of the class `video` and takes 20 ms longer in one of the cells.
    fn bench() -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        let paths = vec!["/a.m4s".to_owned(), "/b".to_owned()];
        bench.plan.workloads[0].workload.as_loop_mut().unwrap().paths.clone_from(&paths);
        bench.plan.classes = vec![RequestClass { name: "video".into(), paths: vec!["*.m4s".into()] }];
        for record in &mut bench.records {
            record.clients[0].urls.clone_from(&paths);
            for sample in &mut record.samples {
                sample.url = u32::try_from(sample.request % 2).unwrap();
                if sample.url == 0 && record.cell == 1 {
                    sample.done_ns = sample.done_ns.map(|ns| ns + 20_000_000);
                }
            }
        }
        bench
    }

    #[test]
    fn each_class_has_its_estimates_and_comparisons() {
        let summary = bench().summary();
        let [h1s, h2] = summary.cells.as_slice() else { panic!("{summary:#?}") };
        let median = |cell: &crate::summary::CellSummary, name: &str| cell.metrics[name].median;
        assert!(
            median(h2, "request_time@video").value > median(h2, "request_time@other").value + 15_000_000.0
        );
        assert!(median(h2, "request_time@video").low.is_some());
        for name in ["request_time", "wait_time", "availability"] {
            let samples = |name: &str| h1s.metrics[name].samples;
            if name == "availability" {
                assert_eq!(samples("availability@video"), samples(name), "one value per run");
            } else {
                let parts = samples(&format!("{name}@video")) + samples(&format!("{name}@other"));
                assert_eq!(parts, samples(name));
            }
        }
        assert!(h1s.metrics.keys().all(|name| !name.starts_with("requests@")), "not a metric of requests");
        let of = |metric: &str| summary.comparisons.iter().find(|one| one.metric == metric).unwrap();
        let ratio = |metric: &str| of(metric).ratio.unwrap().value;
        assert!(ratio("request_time@video") > ratio("request_time@other") * 1.05);
        assert!(!of("request_time@video").primary && of("request_time").primary);
    }

    #[test]
    fn the_primary_metric_can_be_that_of_a_class() {
        let mut bench = bench();
        bench.plan.metric = "request_time@video".to_owned();
        let summary = bench.summary();
        let primary: Vec<&str> =
            summary.comparisons.iter().filter(|one| one.primary).map(|one| one.metric.as_str()).collect();
        assert_eq!(primary, ["request_time@video"]);
        assert!(summary.comparisons[0].p_adjusted.is_some());
        assert!(summary.comparisons.iter().any(|one| one.metric == "request_time" && !one.primary));
    }

    #[test]
    fn failures_count_for_their_class_alone() {
        let mut bench = bench();
        for record in &mut bench.records {
            record.samples[0].outcome = Outcome::failed(FailureKind::Reset, "reset");
        }
        let summary = bench.summary();
        let share = |class: &str| summary.cells[0].metrics[&format!("availability@{class}")].mean.value;
        assert!(share("video") < 1.0 && (share("other") - 1.0).abs() < 1e-12);
    }
}
