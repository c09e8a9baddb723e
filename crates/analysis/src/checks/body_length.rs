//! Every complete response has the expected length.

use super::{Check, Context, Finding, check_none_wrong};

pub(super) const CHECK: Check = Check {
    measures: "complete responses whose length differs from the expected one",
    why: "A different length means different content, so its time does not answer the question.",
    remedy: "Check that the server serves the study's content, uncompressed, and not an error page.",
    ..check_none_wrong("body_length", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    if context.page_outside().is_some() {
        return None;
    }
    let (wrong, all) =
        (context.own.sum(|facts| facts.wrong_lengths), context.own.sum(|facts| facts.requests));
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
