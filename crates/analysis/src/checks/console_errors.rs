//! Pages that a browser loaded wrote no errors to the console.

use super::{Check, Context, Finding, check};
use crate::run::GroupFacts;
use crate::table::Table;

pub(super) const CHECK: Check = Check {
    measures: "page loads of browsers with errors on the console or exceptions",
    passes: "0",
    caveat: "1 or more",
    why: "A page whose scripts fail may load less than the page that users see.",
    remedy: "Read the messages in the column `console` of the table `page_events`, and open the page in a browser.",
    reads: &[Table::PageEvents],
    ..check("console_errors", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let facts = || context.own.ok().flat_map(|run| &run.groups);
    let loads: u64 = facts().map(|facts| facts.browser_loads).sum();
    let with_errors: Vec<&GroupFacts> = facts().filter(|facts| facts.console_error.is_some()).collect();
    let example = with_errors.iter().find_map(|facts| facts.console_error.as_deref());
    let example = example.map_or(String::new(), |message| format!(", such as `{message}`"));
    let measured = format!("{} of {loads} page loads{example}", with_errors.len());
    (loads > 0).then(|| Finding::pass_or_caveat(with_errors.is_empty(), measured, "0"))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};

    #[test]
    fn errors_are_a_caveat_that_quotes_one() {
        passes("console_errors", &Bench::browser(&[Variant::H2]));
        silent("console_errors", &Bench::page(&[Variant::H2]));
        let mut bench = Bench::browser(&[Variant::H2]);
        let events = &mut bench.records[1].page_events[0];
        (events.console_errors, events.console) = (2, vec!["Uncaught".to_owned()]);
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "console_errors").unwrap();
        assert_eq!(found.measured, "1 of 5 page loads, such as `Uncaught`");
        assert_eq!(found.result, crate::summary::CheckOutcome::Caveat);
    }
}
