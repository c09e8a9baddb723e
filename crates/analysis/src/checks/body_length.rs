//! Every complete response has the expected length.

use super::{Check, Context, Finding};

pub(super) const CHECK: Check = Check {
    name: "body_length",
    measures: "complete responses whose length differs from the expected one",
    passes: "0",
    caveat: "never",
    invalidates: "1 or more",
    why: "A different length means different content, so its time does not answer the question.",
    remedy: "Check that the server serves the study's content, uncompressed, and not an error page.",
    reads: &[],
    judge,
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut wrong, mut all) = (0, 0);
    for (_, facts) in context.own.facts() {
        wrong += facts.wrong_lengths;
        all += facts.requests;
    }
    Finding::none_of(wrong, all, "responses", "")
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes};

    #[test]
    fn the_length_expected_passes() {
        passes("body_length", &Bench::page(&[Variant::H3]));
    }

    #[test]
    fn one_byte_too_few_invalidates() {
        let mut bench = Bench::page(&[Variant::H3]);
        bench.records[0].samples[2].response_body_bytes -= 1;
        assert_eq!(fails("body_length", &bench).measured, "1 of 15 responses");
    }
}
