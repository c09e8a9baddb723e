//! `h123 compare`: two results side by side; an exit status for CI.

mod levels;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use analysis::Summary;
use analysis::across::{Across, Difference, compare};
use analysis::summary::{CellStatus, SUMMARY_VERSION, Verdict};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use model::Plan;
use report::{AcrossInput, Side, across_html, across_markdown, across_terminal};
use serde_json::Value;
use store::ResultFolder;

use self::levels::MatchedLevels;
use crate::exit::{Exit, UsageError};
use crate::study::damages::Damages;
use crate::study::environment::COMMAND_NOTE;
use crate::study::reference;
use crate::study::result::{check, shown, summarise_runs};
use crate::terminal::{look, note, print};

/// Compare two results cell by cell, B against A: another day, another commit, another machine
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 compare results/main results/branch
  h123 compare results/main results/branch --html compare.html
  h123 compare results/main results/branch --fail-on worse --markdown > comment.md

Cells with the same levels are compared by the primary metric, with Welch's t test on the logarithms \
of the runs' values and Holm's correction. Networks, workloads and servers with different names but the \
same content are matched, and listed. Other differences (kernel, CPU, versions, pins) are \
listed as caveats.

Exit status: 0 done, 2 the results answer different questions, 3 a cell of both results failed or is \
invalid, 4 a cell has the verdict of --fail-on (3 takes precedence)")]
pub(crate) struct CompareArgs {
    /// The reference result: a folder of `h123 run`, or a folder with its plan.json and summary.json
    ///
    /// Example: results/main
    a: PathBuf,
    /// The result to judge
    ///
    /// Example: results/branch
    b: PathBuf,
    /// Exit with status 4 if any cell in B has this verdict
    ///
    /// Example: --fail-on worse
    #[arg(long, value_name = "VERDICT")]
    fail_on: Option<FailOn>,
    /// Also write one self-contained HTML file with verdicts, ratios and other differences; replaces an
    /// existing file
    ///
    /// Example: --html compare.html
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print Markdown, for example for a comment on a pull request
    ///
    /// Example: --markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print the comparison as JSON, including exploratory metrics
    ///
    /// Example: --json
    #[arg(long)]
    json: bool,
}

/// The verdicts that fail the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Significantly worse, and not shown to be within the margin
    Worse,
    /// Worse or better
    Different,
}

/// Runs the command.
///
/// # Errors
/// There is no result, or the results cannot be compared.
pub(crate) fn run(args: &CompareArgs) -> Result<Exit> {
    let (mut a, b) = (ComparedResult::load(&args.a)?, ComparedResult::load(&args.b)?);
    let matched = MatchedLevels::of(&a.plan, &b.plan)?;
    let mut differences = differences(&a, &b)?;
    for (old, new) in &matched.renamed {
        let about =
            format!("name of the {} (its content is the same, so its cells are compared)", new.factor);
        differences.push(Difference { about, a: old.value.clone(), b: new.value.clone() });
    }
    a.summary.cells.iter_mut().for_each(|cell| matched.rename(&mut cell.levels));
    let across = compare(&a.summary, &b.summary, &matched.changed, differences).map_err(|problem| {
        UsageError(format!("{problem} (A: {}, B: {})", args.a.display(), args.b.display()))
    })?;
    let (of_a, of_b) = (args.a.to_string_lossy(), args.b.to_string_lossy());
    let (name_a, name_b) = names(&args.a, &args.b);
    let command = command(args);
    let input = AcrossInput {
        across: &across,
        factor: &b.summary.baseline.factor,
        question: &b.summary.question,
        a: side(&name_a, &of_a, &a.summary),
        b: side(&name_b, &of_b, &b.summary),
        command: &command,
    };
    if is_same(&args.a, &args.b) {
        note(false, "A and B are the same folder, so nothing can differ");
    }
    if let Some(path) = &args.html {
        write_page(path, &input)?;
    }
    if args.json {
        print(&serde_json::to_string_pretty(&across)?)?;
    } else if args.markdown {
        print(across_markdown(&input).trim_end())?;
    } else {
        print(across_terminal(&input, look()).trim_end())?;
    }
    Ok(exit(&across, &a.summary, &b.summary, args.fail_on))
}

fn side<'a>(name: &'a str, path: &'a str, summary: &Summary) -> Side<'a> {
    Side { name, path, measured: summary.measured, runs: summary.runs_stored }
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// Writes the page, whole or not at all.
fn write_page(path: &Path, input: &AcrossInput<'_>) -> Result<()> {
    let html = across_html(input)?;
    store::write_whole(path, html.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    note(false, &format!("page: {}", path.display()));
    Ok(())
}

/// The command that writes the page.
fn command(args: &CompareArgs) -> String {
    let page = args.html.iter().flat_map(|path| [Path::new("--html"), path]);
    let words = [args.a.as_path(), args.b.as_path()].into_iter().chain(page);
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    format!("h123 compare {}", words.join(" "))
}

/// The names of two folders: the shortest ends of their paths that differ.
fn names(a: &Path, b: &Path) -> (String, String) {
    let parts = |path: &Path| -> Vec<String> {
        let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        whole.iter().map(|part| part.to_string_lossy().into_owned()).collect()
    };
    let (a, b) = (parts(a), parts(b));
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    // For a folder compared with itself, the last part is enough.
    let is_same = same == a.len() && same == b.len();
    let kept = if is_same { 1 } else { same + 1 };
    let end = |parts: &[String]| parts[parts.len().saturating_sub(kept)..].join("/");
    (end(&a), end(&b))
}

/// An argument, quoted for a shell if necessary.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

fn exit(across: &Across, a: &Summary, b: &Summary, fail_on: Option<FailOn>) -> Exit {
    let is_bad = |summary: &Summary, number: u32| {
        let cell = summary.cells.iter().find(|cell| cell.cell == number);
        cell.is_some_and(|cell| {
            matches!(cell.status, CellStatus::NotMeasured | CellStatus::Failed | CellStatus::Invalid)
        })
    };
    let primary = || across.cells.iter().map(|cell| &cell.comparison).filter(|comparison| comparison.primary);
    if primary().any(|found| is_bad(a, found.baseline_cell) || is_bad(b, found.cell)) {
        return Exit::Invalid;
    }
    let fails = |verdict: &Verdict| match (fail_on, verdict) {
        (Some(_), Verdict::Worse) => true,
        (Some(FailOn::Different), Verdict::Better) => true,
        (None | Some(_), _) => false,
    };
    if primary().any(|found| fails(&found.verdict)) { Exit::Threshold } else { Exit::Done }
}

/// One of the two results.
struct ComparedResult {
    plan: Plan,
    summary: Summary,
    environment: Value,
}

impl ComparedResult {
    /// Reads a result. Analyses its samples again if its summary is missing or has another version.
    fn load(path: &Path) -> Result<ComparedResult> {
        if !path.is_dir() {
            return Err(UsageError(format!("{} is not a result: it is not a folder", path.display())).into());
        }
        check(path)?;
        let read = |name: &str| -> Option<Value> { store::read_json(path, name).ok() };
        let plan = store::read_plan(path)
            .map_err(|error| UsageError(format!("{error:#}; name a result of `h123 run`")))?;
        let current = read("summary.json").filter(|summary| summary["version"] == SUMMARY_VERSION);
        let summary = match current.and_then(|summary| serde_json::from_value(summary).ok()) {
            Some(summary) => summary,
            None => {
                let folder = ResultFolder::open(path)?;
                let mut damaged = Damages::default();
                let (runs, _) = summarise_runs(&folder, &plan, &mut damaged)?;
                for damage in damaged.lines(plan.runs.len()) {
                    note(false, &format!("{}: damaged or missing: {damage}", path.display()));
                }
                analysis::analyse(&plan, &runs, &reference::stored(&folder))
            }
        };
        Ok(ComparedResult { plan, summary, environment: read("environment.json").unwrap_or_default() })
    }
}

/// Keys of the environment that always differ, or that repeat others.
const IGNORED: &[&str] = &["version", "command", "load_average", "memory_available_bytes", "user_id"];

/// The other differences: in the environment, and in what the plans fix.
fn differences(a: &ComparedResult, b: &ComparedResult) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    for (side, other) in [(a, "A"), (b, "B")] {
        if side.environment.is_null() {
            let unknown = |name: &str| if name == other { "not stored" } else { "stored" }.to_owned();
            differences.push(Difference {
                about: "environment".to_owned(),
                a: unknown("A"),
                b: unknown("B"),
            });
        }
    }
    if !a.environment.is_null() && !b.environment.is_null() {
        compare_values(&flat(&a.environment), &flat(&b.environment), "", &mut differences);
    }
    for (about, of) in [
        ("fixed", (|plan| Ok(serde_json::to_value(&plan.pins)?)) as fn(&Plan) -> Result<Value>),
        ("topology", |plan| Ok(Value::from(plan.topology.describe()))),
        ("margin", |plan| Ok(Value::from(plan.margin_share))),
        ("servers", servers),
        ("accepted checks", |plan| Ok(Value::from(plan.accepted.join(", ")))),
        ("warm", |plan| Ok(Value::from(plan.warm.map_or("none".to_owned(), |warm| warm.to_string())))),
        ("page cache", |plan| Ok(Value::from(plan.page_cache.map_or("unchanged", |state| state.name())))),
        ("name server", name_server),
        ("runs of each cell", |plan| Ok(Value::from(plan.runs_per_cell))),
        ("seed", |plan| Ok(Value::from(plan.seed))),
        ("claims", |plan| Ok(serde_json::to_value(&plan.claims)?)),
    ] {
        compare_values(&flat(&of(&a.plan)?), &flat(&of(&b.plan)?), about, &mut differences);
    }
    Ok(differences)
}

/// Each level of the factor `server`, by its name.
fn servers(plan: &Plan) -> Result<Value> {
    let servers = levels::servers(plan)?.into_iter();
    Ok(Value::Object(servers.map(|(level, content)| (level.value, content)).collect()))
}

fn name_server(plan: &Plan) -> Result<Value> {
    let text = |rtt_ns: u64| format!("{} away", model::units::format_ns(rtt_ns));
    Ok(Value::from(plan.dns_rtt_ns.map_or("none".to_owned(), text)))
}

fn compare_values(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
    about: &str,
    differences: &mut Vec<Difference>,
) {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys.into_iter().filter(|key| !IGNORED.contains(&key.as_str()) && !key.contains(COMMAND_NOTE))
    {
        let of = |values: &BTreeMap<String, String>| {
            values.get(key).cloned().unwrap_or_else(|| "absent".to_owned())
        };
        if a.get(key) != b.get(key) {
            let about =
                [about, key].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
            differences.push(Difference { about, a: shown(&of(a)), b: shown(&of(b)) });
        }
    }
}

/// The values of a JSON document by their paths in it.
fn flat(value: &Value) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(&path, value, into);
                }
            }
            Value::String(text) => drop(into.insert(path.to_owned(), text.clone())),
            other => drop(into.insert(path.to_owned(), other.to_string())),
        }
    }
    let mut into = BTreeMap::new();
    walk("", value, &mut into);
    into
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_folders_differ() {
        let of = |a: &str, b: &str| names(Path::new(a), Path::new(b));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of("/x1/results/main", "/x1/results/branch"), pair("main", "branch"));
        assert_eq!(of("/x1/monday/quick", "/x1/tuesday/quick/"), pair("monday/quick", "tuesday/quick"));
        assert_eq!(of("/x1/quick", "/x1/old/quick"), pair("x1/quick", "old/quick"));
        assert_eq!(of("/x1/quick", "/x1/quick"), pair("quick", "quick"));
    }
}
