//! What of a result is damaged or missing, in as few lines as it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use store::{Damage, ResultFolder};

/// So many runs are named one by one.
const MOST_NAMED: usize = 5;
/// The table without which nobody knows which rows are of which run, one that every result has, and what says that they were there.
const RUNS: &str = "samples/runs.parquet";
const REQUESTS: &str = "samples/requests.parquet";
const CHECKSUMS: &str = "samples/checksums.json";

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    /// Of the whole result.
    whole: BTreeSet<String>,
    /// By file, within the result, and reason: the runs that it is about.
    of_runs: BTreeMap<(PathBuf, String), BTreeSet<u32>>,
}

impl Damages {
    /// Something that is about the whole result, in a sentence.
    pub(crate) fn note(&mut self, what: String) {
        self.whole.insert(what);
    }

    /// A file of samples.
    pub(crate) fn add(&mut self, folder: &ResultFolder, damage: &Damage) {
        let file = damage.file.strip_prefix(folder.path()).unwrap_or(&damage.file).to_owned();
        match damage.run {
            Some(run) => {
                self.of_runs.entry((file, damage.reason.clone())).or_default().insert(run);
            }
            None => self.note(Damage { file, ..damage.clone() }.to_string()),
        }
    }

    /// A merged result whose table of runs is gone.
    pub(crate) fn look_for_runs(&mut self, folder: &Path) {
        if folder.join(RUNS).exists() {
            return;
        }
        if folder.join(REQUESTS).exists() {
            self.note(format!(
                "{RUNS} is missing: the rows of the other tables are there, and nobody knows of which run they are"
            ));
        } else if folder.join(CHECKSUMS).exists() {
            self.note(format!(
                "{RUNS} and {REQUESTS} are missing, and {CHECKSUMS} says that they were there: nothing can be said of these runs"
            ));
        }
    }

    /// Tables that are read though nothing vouches for their bytes, because no checksum of them is there.
    pub(crate) fn look_for_checksums(&mut self, folder: &ResultFolder) -> Result<()> {
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
            1 => " (and of another run)".to_owned(),
            more => format!(" (and of {more} other runs)"),
        };
        let is_there = folder.path().join(place).join("checksums.json").exists();
        let found = if is_there { "is damaged or has nothing of these tables" } else { "is missing" };
        self.note(format!(
            "{place}/checksums.json{others} {found}, so nobody can tell whether they are as they were written; they are read all the \
             same: {}",
            tables.join(", ")
        ));
        Ok(())
    }

    /// A line for each, of `runs` that there should be.
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
        few if few <= MOST_NAMED => format!("runs {}", numbers()),
        many => format!("{many} of {runs} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_in_many_runs_is_one_line() {
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
