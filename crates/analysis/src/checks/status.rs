//! Every response has a successful status.

use super::{Check, Context, Finding, check_none_wrong};

pub(super) const CHECK: Check = Check {
    measures: "counted responses whose status is not 200–299",
    why: "An error page is short and quick, so counting it as a response flatters the server.",
    remedy: "Look for these statuses in the server's log, and correct its content or configuration.",
    ..check_none_wrong("status", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut wrong, mut all, mut seen) = (0, 0, Vec::new());
    for (_, facts) in context.own.facts() {
        for (status, count) in &facts.statuses {
            all += count;
            if !(200..300).contains(status) {
                wrong += count;
                if !seen.contains(&status.to_string()) {
                    seen.push(status.to_string());
                }
            }
        }
    }
    let detail = if seen.is_empty() { String::new() } else { format!(" with {}", seen.join(", ")) };
    Finding::none_of(wrong, all, "responses", &detail)
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes};

    #[test]
    fn success_passes() {
        passes("status", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn one_error_page_invalidates() {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.records[0].samples[2].status = Some(404);
        assert_eq!(fails("status", &bench).measured, "1 of 15 responses with 404");
    }
}
