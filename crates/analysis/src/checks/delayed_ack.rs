//! The server does not wait for a delayed acknowledgement in the middle of a response.

use model::number;

use super::{Check, Context, Finding, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "loops with one stream per connection over TCP: the share of responses within the server's \
               initial window that took 38–52 ms from headers to end, minus the share expected from those \
               that took up to 14 ms less or more",
    passes: "up to 1 %",
    caveat: "up to 10 %",
    invalidates: "more",
    why: "A server that sends a response in two pieces under Nagle's algorithm waits 40 ms for the \
          acknowledgement of the first. This is its configuration, not a property of the HTTP version.",
    remedy: "Disable `sendfile` or enable `tcp_nodelay` in the server's configuration, or find what else \
             causes two small writes.",
    ..check("delayed_ack", judge)
};

/// A few responses take this time by chance.
const ALLOWED_SHARE: f64 = 0.01;
const CAVEAT_SHARE: f64 = 0.1;

/// With one stream per connection over TCP no response waits for another's bytes. The share of small
/// responses that took as long as a delayed acknowledgement, minus the share expected from the neighbouring
/// times (RFC 1122, section 4.2.3.2; RFC 896).
fn judge(context: &Context<'_>) -> Option<Finding> {
    let (all, delayed) =
        (context.own.sum(|facts| facts.small.all), context.own.sum(|facts| facts.small.as_delayed_ack));
    // The neighbouring times span twice the range.
    let stalled = number::float(delayed) - number::float(context.own.sum(|facts| facts.small.nearly)) / 2.0;
    let share = stalled.max(0.0) / number::float(all);
    let measured = format!("{delayed} of {all} small responses");
    (all > 0).then(|| Finding::graded(share, ALLOWED_SHARE, CAVEAT_SHARE, measured, percent(ALLOWED_SHARE)))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// A closed loop in which one in `every` responses takes this long from head to end.
    fn slow(every: usize, took_ns: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H2c]);
        for record in &mut bench.records {
            for sample in record.samples.iter_mut().step_by(every) {
                sample.response_body_bytes = 1_000;
                sample.expected_body_bytes = Some(1_000);
                sample.done_ns = sample.first_byte_ns.map(|first_byte_ns| first_byte_ns + took_ns);
            }
        }
        bench
    }

    #[test]
    fn quick_and_slow_responses_pass() {
        passes("delayed_ack", &slow(1, 100_000));
        passes("delayed_ack", &slow(1, 150_000_000));
    }

    #[test]
    fn responses_that_wait_for_an_acknowledgement_invalidate() {
        let found = fails("delayed_ack", &slow(1, 44_000_000));
        assert_eq!(found.measured, "250 of 250 small responses");
    }

    #[test]
    fn a_few_are_a_caveat() {
        caveats(&slow(25, 44_000_000), &["delayed_ack"]);
    }

    #[test]
    fn times_all_around_are_no_sign() {
        let mut bench = slow(1, 44_000_000);
        for record in &mut bench.records {
            for (place, sample) in record.samples.iter_mut().enumerate() {
                let took_ns = [30_000_000, 44_000_000, 58_000_000][place % 3];
                sample.done_ns = sample.first_byte_ns.map(|first_byte_ns| first_byte_ns + took_ns);
            }
        }
        passes("delayed_ack", &bench);
    }

    #[test]
    fn pages_whose_responses_share_connections_and_quic_have_nothing_to_judge() {
        let mut page = Bench::page(&[Variant::H2c]);
        for sample in page.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.done_ns = sample.first_byte_ns.map(|first_byte_ns| first_byte_ns + 44_000_000);
        }
        silent("delayed_ack", &page);
        silent("delayed_ack", &Bench::closed(&[Variant::H3]));
    }

    #[test]
    fn responses_beyond_the_first_window_have_to_wait() {
        let mut bench = slow(1, 44_000_000);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.response_body_bytes = 100_000;
            sample.expected_body_bytes = Some(100_000);
        }
        silent("delayed_ack", &bench);
    }
}
