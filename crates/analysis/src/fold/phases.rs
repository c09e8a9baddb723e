//! Whether times change in the course of a run: the first request, and the thirds of the measuring phase.

use model::assignment::ClientReport;
use model::number;
use model::sample::{Outcome, Sample};

use crate::distribution::DistributionBuilder;
use crate::run::{FirstWait, Third};

/// The time from sent to first byte of requests that succeeded.
#[derive(Default)]
pub(super) struct Waits {
    /// Of the request sent first: when it was sent, and its wait.
    first: Option<(u64, u64)>,
    all: DistributionBuilder,
    /// When each was sent.
    sent: DistributionBuilder,
}

impl Waits {
    pub(super) fn add(&mut self, sample: &Sample) {
        let (Outcome::Ok, Some(sent_ns), Some(first_byte_ns)) =
            (&sample.outcome, sample.sent_ns, sample.first_byte_ns)
        else {
            return;
        };
        let wait_ns = first_byte_ns.saturating_sub(sent_ns);
        self.all.push(number::float(wait_ns));
        self.sent.push(number::float(sent_ns));
        if self.first.is_none_or(|(earliest_ns, _)| sent_ns < earliest_ns) {
            self.first = Some((sent_ns, wait_ns));
        }
    }

    pub(super) fn finish(self) -> Option<FirstWait> {
        let (sent_ns, wait_ns) = self.first?;
        let answered_ns = number::float(sent_ns.saturating_add(wait_ns));
        let has_later = self.sent.finish().quantile(0.75).is_some_and(|late_ns| late_ns >= answered_ns);
        let waits = self.all.finish();
        let (first_ns, quartile_ns) = (number::float(wait_ns), waits.quantile(0.25)?);
        Some(FirstWait { first_ns, quartile_ns, requests: waits.count(), has_later })
    }
}

/// Request times by the third of the measuring phase that contains their intended time, or of closed loops
/// their end: late in a run that time ends, only short requests begin and end.
pub(super) struct Thirds {
    by_end: bool,
    begin_ns: u64,
    end_ns: u64,
    times: [DistributionBuilder; 3],
}

impl Thirds {
    pub(super) fn of(client: &ClientReport, by_end: bool) -> Thirds {
        Thirds {
            by_end,
            begin_ns: client.warmup.map_or(client.started_ns, |warmup| warmup.ended_ns),
            end_ns: client.finished_ns,
            times: Default::default(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let (Outcome::Ok, Some(done_ns)) = (&sample.outcome, sample.done_ns) else { return };
        let whole_ns = self.end_ns.saturating_sub(self.begin_ns).max(1);
        let at_ns = if self.by_end { done_ns } else { sample.intended_ns };
        let since_ns = at_ns.saturating_sub(self.begin_ns).min(whole_ns - 1);
        let third = u128::from(since_ns) * 3 / u128::from(whole_ns);
        if let Some(times) = usize::try_from(third).ok().and_then(|third| self.times.get_mut(third)) {
            times.push(number::float(done_ns.saturating_sub(sample.intended_ns)));
        }
    }

    pub(super) fn finish(self) -> [Third; 3] {
        self.times.map(|times| {
            let times = times.finish();
            Third { requests: times.count(), median_ns: times.median().unwrap_or(0.0) }
        })
    }
}
