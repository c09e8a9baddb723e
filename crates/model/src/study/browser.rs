//! The keys of `[workload.NAME]` that are for browsers.

use crate::error::InputError;
use crate::keys;
use crate::options::BrowserOptions;
use crate::reader::{Key, Table};

pub(super) const KEYS: &[Key] = keys! {
    "cpu_slowdown", "whole number", "`1`", "4",
        "How many times slower a browser's page computes, 1 to 100. h123's own client computes nothing, so its cells are unsupported.";
    "filmstrip", "boolean", "`false`", "true",
        "Whether browsers keep a picture of the page whenever it changes; [below](browsers.md#filmstrip).";
};

const MOST_SLOWDOWN: u32 = 100;

pub(super) fn read(table: &Table<'_>) -> Result<BrowserOptions, InputError> {
    let slowdown = table.integer("cpu_slowdown", 1..=MOST_SLOWDOWN)?;
    Ok(BrowserOptions {
        cpu_slowdown: slowdown.map_or(1, |slowdown| slowdown.value),
        filmstrip: table.flag("filmstrip")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::options::{BrowserOptions, Visit};
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    /// The short study with further keys in its page's workload.
    fn with(keys: &str) -> Result<Plan, String> {
        parse(&SHORT.replace("page = \"small\"", &format!("page = \"small\"\n{keys}")))
    }

    #[test]
    fn h123_leaves_to_browsers_what_only_they_do() {
        let reason = |keys: &str| {
            let text = SHORT.replace("page = \"small\"", &format!("page = \"small\"\n{keys}"));
            let plan = parse(&text.replace("[hold]", "[hold]\nresumption = true")).unwrap();
            plan.cells[0].unsupported.clone().unwrap_or_default()
        };
        assert!(reason("visit = \"cached\"").contains("only browsers make visits of the kind `cached`"));
        assert!(reason("visit = \"upgrade\"").contains("only browsers make visits of the kind `upgrade`"));
        assert_eq!(reason("visit = \"repeat\""), "");
        let plan = with("cpu_slowdown = 4\nfilmstrip = true").unwrap();
        assert_eq!(plan.workloads[0].options.browser, BrowserOptions { cpu_slowdown: 4, filmstrip: true });
        assert!(plan.cells[0].unsupported.as_ref().unwrap().contains("its CPU cannot be slowed down"));
        assert!(with("filmstrip = true").unwrap().cells[0].unsupported.is_none(), "h123 has no picture");
        assert!(Visit::Repeat.is_for_every_client() && !Visit::Upgrade.is_for_every_client());
    }

    #[test]
    fn a_slowdown_has_bounds_and_returning_visitors_need_sessions() {
        for (keys, expected) in [
            ("cpu_slowdown = 0", "a whole number from 1 to 100"),
            ("cpu_slowdown = 101", "a whole number from 1 to 100"),
            ("visit = \"upgrade\"", "`visit` is upgrade, which requires `resumption = true`"),
            ("visit = \"twice\"", "`twice` is not a visit"),
        ] {
            let error = with(keys).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }
}
