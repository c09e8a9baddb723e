//! Every run of a page requested every resource once.

use super::{Check, Context, Finding};
use crate::run::page_of;

pub(super) const CHECK: Check = Check {
    name: "all_requested",
    why: "A page load that leaves out resources is quicker than the page.",
    remedy: "Check that the documents and style sheets that the server sends name all resources of the page.",
    judge,
};

/// In each run that ended well, as many rows and as many distinct URLs as the page has resources.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut wrong, mut all, mut example) = (0, 0, String::new());
    for run in context.own.ok() {
        for (group, facts) in context.own.cell.clients.iter().zip(&run.groups) {
            let Some(page) = page_of(context.plan, group) else { continue };
            let expected = page.resources.len() as u64 * u64::from(group.clients);
            all += 1;
            if facts.requests != expected || facts.distinct_urls != page.resources.len() as u64 {
                wrong += 1;
                example = format!(
                    ", such as {} requests for {} URLs where {expected} were expected",
                    facts.requests, facts.distinct_urls
                );
            }
        }
    }
    Finding::none_of(wrong, all, "page loads", &example)
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    #[test]
    fn a_whole_page_passes() {
        passes("all_requested", &Bench::page(&[Variant::H1s]));
        silent("all_requested", &Bench::closed(&[Variant::H1s]));
    }

    #[test]
    fn a_missing_resource_condemns() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.records[4].samples.pop();
        let measured = fails("all_requested", &bench).measured;
        assert_eq!(measured, "1 of 5 page loads, such as 2 requests for 2 URLs where 3 were expected");
    }
}
