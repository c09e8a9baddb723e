//! `[full]`: the keys of a study at its full size, which `--full` puts in place of the study's own.

use toml::de::{DeTable, DeValue};

use super::Override;
use crate::error::{InputError, Source};
use crate::reader::{Table, document};

/// The key of the table, and of the override that asks for it.
const FULL: &str = "full";

/// Takes `[full]` out of the document. If the overrides ask for it, its keys replace those of the study.
///
/// # Errors
/// The study has no such table, or it is none.
pub(super) fn apply(
    document: &mut DeTable<'_>,
    source: Source<'_>,
    overrides: &[Override],
) -> Result<(), InputError> {
    let root = Table::whole(source, document, "the study");
    let is_asked = overrides.iter().any(|given| given.key == FULL);
    if root.table(FULL)?.is_none() && is_asked {
        let problem = "`--full`: the study has no table `[full]`, so it has one size only; remove the option";
        return Err(root.error(problem));
    }
    let full = document::table_mut(document, FULL).map(std::mem::take).unwrap_or_default();
    document::retain(document, |key| key != FULL);
    if is_asked {
        merge(document, full);
    }
    Ok(())
}

/// Tables are merged key by key; any other value replaces the one in its place.
fn merge<'a>(document: &mut DeTable<'a>, with: DeTable<'a>) {
    for (key, value) in with {
        match (document.get_mut(key.get_ref().as_ref()).map(toml::Spanned::get_mut), value.get_ref()) {
            (Some(DeValue::Table(own)), DeValue::Table(_)) => {
                if let DeValue::Table(with) = value.into_inner() {
                    merge(own, with);
                }
            }
            _ => drop(document.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::study::tests::{SHORT, full, number, parse, parse_with};

    fn study(table: &str) -> String {
        format!("{SHORT}\n{table}")
    }

    #[test]
    fn the_table_replaces_single_keys() {
        let text = study("[full]\nruns = 20\n[full.matrix]\nvariant = [\"h1s\", \"h2\", \"h3\"]\n");
        let small = parse(&text).unwrap();
        assert_eq!((small.runs_per_cell, small.cells.len()), (2, 2));
        let plan = parse_with(&text, &[full()]).unwrap();
        assert_eq!((plan.runs_per_cell, plan.cells.len()), (20, 3));
        assert_eq!(plan.networks, small.networks);
        // The command line has the last word.
        let plan = parse_with(&text, &[full(), number("runs", 7)]).unwrap();
        assert_eq!(plan.runs_per_cell, 7);
    }

    #[test]
    fn faults_of_full() {
        let fault = parse_with(SHORT, &[full()]).unwrap_err();
        assert!(fault.contains("`--full`: the study has no table `[full]`"), "{fault}");
        let fault = parse(&study("[[full]]\nruns = 20\n")).unwrap_err();
        assert!(fault.contains("`full`"), "{fault}");
        let fault = parse_with(&study("[full]\nruns = 0\n"), &[full()]).unwrap_err();
        assert!(fault.contains("`runs` is 0"), "{fault}");
        let fault = parse_with(&study("[full]\nrun = 5\n"), &[full()]).unwrap_err();
        assert!(fault.contains("`run` is not a key of the study"), "{fault}");
    }
}
