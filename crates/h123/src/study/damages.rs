//! What is damaged or missing in a result, in as few lines as possible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use store::{Damage, ResultFolder};

/// Up to this many runs are listed by number.
const MOST_LISTED: usize = 5;
/// The table that assigns rows to runs, a table of every result, and the file that lists the tables.
const RUNS: &str = "samples/runs.parquet";
const REQUESTS: &str = "samples/requests.parquet";
const CHECKSUMS: &str = "samples/checksums.json";

/// The damages of a result.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    /// Those of the whole result.
    whole: BTreeSet<String>,
    /// The damaged runs by file, within the result, and reason.
    of_runs: BTreeMap<(PathBuf, String), BTreeSet<u32>>,
}

impl Damages {
    /// Adds a damage of the whole result, in a sentence.
    pub(crate) fn note(&mut self, what: String) {
        self.whole.insert(what);
    }

    /// Adds a damaged file of samples.
    pub(crate) fn add(&mut self, folder: &ResultFolder, damage: &Damage) {
        let file = damage.file.strip_prefix(folder.path()).unwrap_or(&damage.file).to_owned();
        match damage.run {
            Some(run) => {
                self.of_runs.entry((file, damage.reason.clone())).or_default().insert(run);
            }
            None => self.note(Damage { file, ..damage.clone() }.to_string()),
        }
    }

    /// Adds the table of runs if a merged result has lost it.
    pub(crate) fn check_runs(&mut self, folder: &Path) {
        if folder.join(RUNS).exists() {
            return;
        }
        if folder.join(REQUESTS).exists() {
            self.note(format!(
                "{RUNS} is missing, so the rows of the other tables cannot be assigned to runs"
            ));
        } else if folder.join(CHECKSUMS).exists() {
            self.note(format!(
                "{RUNS} and {REQUESTS} are missing although {CHECKSUMS} lists them, so their runs cannot be reported"
            ));
        }
    }

    /// Adds the tables that are read although they have no checksum.
    pub(crate) fn check_checksums(&mut self, folder: &ResultFolder) -> Result<()> {
        let mut of_places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in folder.unverified()? {
            let within = file.strip_prefix(folder.path()).unwrap_or(&file);
            let place = within.parent().unwrap_or(within).display().to_string();
            of_places
                .entry(place)
                .or_default()
                .extend(file.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
        let Some((place, tables)) = of_places.first_key_value() else { return Ok(()) };
        let others = match of_places.len() - 1 {
            0 => String::new(),
            1 => " (and that of another run)".to_owned(),
            more => format!(" (and those of {more} other runs)"),
        };
        let is_there = folder.path().join(place).join("checksums.json").exists();
        let found = if is_there { "is damaged or incomplete" } else { "is missing" };
        self.note(format!(
            "{place}/checksums.json{others} {found}, so these tables are used unverified: {}",
            tables.join(", ")
        ));
        Ok(())
    }

    /// One line for each damage of a result with this many runs.
    pub(crate) fn lines(&self, runs: usize) -> Vec<String> {
        let of_runs = self.of_runs.iter().map(|((file, reason), lost)| {
            format!("{} is damaged ({}): {reason}", file.display(), named(lost, runs))
        });
        self.whole.iter().cloned().chain(of_runs).collect()
    }
}

/// Such as `runs 3, 4` or `all 100 runs`.
fn named(lost: &BTreeSet<u32>, runs: usize) -> String {
    let numbers = || lost.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match lost.len() {
        1 => format!("run {}", numbers()),
        all if all == runs => format!("all {all} runs"),
        few if few <= MOST_LISTED => format!("runs {}", numbers()),
        many => format!("{many} of {runs} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damage_of_many_runs_is_one_line() {
        let mut damages = Damages::default();
        damages.note("environment.json is damaged".to_owned());
        for run in 0..9 {
            damages
                .of_runs
                .entry(("samples/links.parquet".into(), "no magic".into()))
                .or_default()
                .insert(run);
        }
        damages.of_runs.entry(("samples/runs.parquet".into(), "cut".into())).or_default().insert(4);
        let all = damages.lines(9);
        assert_eq!(
            all,
            [
                "environment.json is damaged",
                "samples/links.parquet is damaged (all 9 runs): no magic",
                "samples/runs.parquet is damaged (run 4): cut"
            ]
        );
        assert!(damages.lines(20)[1].contains("(9 of 20 runs)"));
        assert_eq!(named(&BTreeSet::from([2, 10, 1]), 20), "runs 1, 2, 10");
    }
}
