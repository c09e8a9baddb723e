//! Every response has the cell's HTTP version.

use super::{Check, CheckOutcome, Context, Finding, check_none_wrong};

pub(super) const CHECK: Check = Check {
    measures: "responses in another HTTP version than the cell's, including the warm-up",
    why: "A response in another version than the cell's would be credited to the wrong protocol.",
    remedy: "See what the server offers with `h123 trace`, and correct its configuration.",
    caveat: "some, of further hosts of a real page that do not offer the cell's version",
    ..check_none_wrong("version", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut wrong, mut all, mut seen) = (0, 0, Vec::new());
    for (group, facts) in context.own.facts() {
        for (version, count) in &facts.versions {
            all += count;
            if *version != group.variant.http() {
                wrong += count;
                if !seen.contains(&version.name()) {
                    seen.push(version.name());
                }
            }
        }
        let refused = facts.failures.get(&model::sample::FailureKind::WrongVersion).copied().unwrap_or(0);
        if facts.versions.is_empty() {
            wrong += refused;
            all += refused;
        }
    }
    let detail = if seen.is_empty() { String::new() } else { format!(" used {}", seen.join(", ")) };
    let mut finding = Finding::none_of(wrong, all, "responses", &detail)?;
    // Further hosts of a real page answer in the best version that they offer.
    if wrong > 0 && wrong < all && context.page_outside().is_some_and(|page| page.origins.len() > 1) {
        finding.result = CheckOutcome::Caveat;
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use model::variant::{HttpVersion, Variant};

    use crate::fixtures::{Bench, caveats, fails, passes};

    #[test]
    fn the_version_asked_for_passes() {
        passes("version", &Bench::page(&[Variant::H2]));
    }

    #[test]
    fn one_response_in_another_version_invalidates() {
        let mut bench = Bench::page(&[Variant::H2]);
        bench.records[3].samples[1].version = Some(HttpVersion::Http11);
        assert_eq!(fails("version", &bench).measured, "1 of 15 responses used HTTP/1.1");
        caveats(&bench, &[]);
    }
}
