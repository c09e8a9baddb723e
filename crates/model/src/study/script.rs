//! A timing script and its replay as written in a study.

use super::Library;
use super::request_files::{at, path_of};
use crate::error::{DataFile, InputError};
use crate::formats::LineError;
use crate::formats::timing_script::{NumberedScript, ParsedScript, TimingScript};
use crate::keys;
use crate::named::Named;
use crate::options::{PathOptions, RequestOptions};
use crate::reader::{Form, Key, Placed, Table};
use crate::schedule::Share;
use crate::script::{ANY_STREAMS, Replay, Script, ScriptEntry, Speed};
use crate::units::format_ns;
use crate::url_pattern::Pattern;
use crate::variant::Variant;
use crate::workload::{LoopLoad, bytes_of_path};

pub(super) const KEYS: &[Key] = keys! {
    "script", "text or table", "required", r#""replays/evening.jsonl""#,
        "A [timing script](scripts.md), or a table with one for each variant or arm, such as `{ h1 = \"a.jsonl\", h2 = \"b.jsonl\" }`.";
    "replay", "text", "`\"schedule\"`", r#""dependency""#,
        "`schedule` sends at the recorded times; `dependency` when the responses that a request waited for are done, plus the recorded gap.";
    "until", "duration", "none: all", r#""46s""#,
        "Replays only what was requested before this time of the recording; above 0.";
    "speed", "number", "`1`", "10", "How many times faster than recorded, 0.001 to 1000; applies to times and gaps.";
    "connections", "whole number", "as browsers: 1; over HTTP/1.1 up to `http1_connections`", "1",
        "Connections that each client holds open from its beginning, 1 to 100 000.";
    "streams", "whole number", "as many as the protocol allows", "10",
        "Requests in flight on each connection, 1 to 10 000; HTTP/1.1 has one.";
    "queue", "whole number", "`1000000`", "1000",
        "How many due requests of a client may wait for a connection, 1 to 1 000 000; further ones are never sent.";
};

/// The scripts of a workload, and how they are replayed.
#[derive(Clone, Debug)]
pub(super) struct ScriptEntryKeys {
    scripts: Scripts,
    replay: Replay,
    until_ns: Option<u64>,
    speed: Speed,
    connections: Option<u32>,
    streams: Option<u32>,
    queue_limit: u32,
}

/// The files of a workload's scripts.
#[derive(Clone, Debug)]
enum Scripts {
    One(Placed<String>),
    /// The script of each variant.
    Each(Vec<(Variant, Placed<String>)>),
}

/// Reads the keys of a script.
pub(super) fn read(table: &Table<'_>) -> Result<ScriptEntryKeys, InputError> {
    let speed = match table.number("speed")? {
        None => Speed::ONE,
        Some(speed) => {
            speed.map(|times| Speed::new(times).map_err(|problem| format!("`speed`: {problem}")))?.value
        }
    };
    let (most_connections, most_streams, most_queued) =
        (super::loops::MOST_CONNECTIONS, super::loops::MOST_STREAMS, super::loops::MOST_QUEUED);
    Ok(ScriptEntryKeys {
        scripts: read_scripts(table)?,
        replay: table.named::<Replay>("replay")?.map_or_else(Replay::default, |replay| replay.value),
        until_ns: table.duration_above_zero("until")?.map(|until| until.value),
        speed,
        connections: table.integer("connections", 1..=most_connections)?.map(|number| number.value),
        streams: table.integer("streams", 1..=most_streams)?.map(|number| number.value),
        queue_limit: table.integer("queue", 1..=most_queued)?.map_or(most_queued, |queue| queue.value),
    })
}

fn read_scripts(table: &Table<'_>) -> Result<Scripts, InputError> {
    let table = match table.form("script")? {
        None => return Err(table.missing("script")),
        Some(Form::Text(file)) => return Ok(Scripts::One(file)),
        Some(Form::Table(table)) => table,
    };
    let mut scripts = Vec::new();
    for (key, file) in table.level_entries()? {
        let key = key.map(|name| {
            // The scripts of arms have been put in place of the table.
            Variant::from_name(&name).map_err(|problem| {
                format!("`script`: {problem}; or name every arm of the study, and nothing else")
            })
        })?;
        scripts.push((key.value, file));
    }
    match scripts.is_empty() {
        true => Err(table.error("`script` is empty; name a script for each variant or arm")),
        false => Ok(Scripts::Each(scripts)),
    }
}

impl ScriptEntryKeys {
    /// The scripts of a workload: one, or one for each variant that the table names.
    ///
    /// # Errors
    /// A file cannot be read; or a line is wrong, with its place.
    pub(super) fn resolve(
        &self,
        library: &impl Library,
    ) -> Result<Vec<(Option<Variant>, Script, RequestOptions)>, InputError> {
        let resolve = |variant, file| {
            self.resolve_file(file, library).map(|(script, options)| (variant, script, options))
        };
        match &self.scripts {
            Scripts::One(file) => Ok(vec![resolve(None, file)?]),
            Scripts::Each(files) => {
                files.iter().map(|(variant, file)| resolve(Some(*variant), file)).collect()
            }
        }
    }

    fn resolve_file(
        &self,
        name: &Placed<String>,
        library: &impl Library,
    ) -> Result<(Script, RequestOptions), InputError> {
        let file = library.replay(&name.value).map_err(|problem| name.error(problem))?;
        let of_line = |LineError { line, column, problem }| at(&file, (line, column), problem);
        let ParsedScript { mut script, lines } = ParsedScript::parse(&file.text).map_err(of_line)?;
        if let Some(until_ns) = self.until_ns {
            // Requests are in the order of their times, and wait for earlier ones only.
            let all = script.requests.len();
            script.requests.retain(|request| request.at_ns < until_ns);
            if script.requests.len() < all {
                let of = if script.title.is_empty() { "" } else { " of " };
                script.title = format!("the first {}{of}{}", format_ns(until_ns), script.title);
            }
        }
        if script.requests.is_empty() {
            return Err(name.error(format!("{} contains no request; write one on each line", file.file)));
        }
        let NumberedScript { firsts, entries } = script.numbered();
        let mut load = LoopLoad {
            paths: Vec::with_capacity(firsts.len()),
            connections: self.connections.unwrap_or(1),
            streams: self.streams.unwrap_or(ANY_STREAMS),
            requests: Some(entries.len() as u64),
            warmup_ns: 0,
        };
        for place in &firsts {
            load.paths.push(path_at_origin(&file, lines[*place], &script.requests[*place].url, &script)?);
        }
        let mut options: Vec<PathOptions> =
            firsts.iter().map(|place| script.requests[*place].path_options()).collect();
        if options.iter().all(|own| *own == PathOptions::default()) {
            options.clear();
        }
        let of_entry = |entry: &ScriptEntry| {
            let own = options.get(entry.url as usize).and_then(|own| own.expects.body_bytes);
            own.or_else(|| bytes_of_path(&load.paths[entry.url as usize])).unwrap_or(0)
        };
        let body_bytes = entries.iter().map(of_entry).fold(0, u64::saturating_add);
        let at_speed = |entry: ScriptEntry| ScriptEntry {
            at_ns: self.speed.of_ns(entry.at_ns),
            gap_ns: self.speed.of_ns(entry.gap_ns),
            ..entry
        };
        let script = Script {
            load,
            sets_connections: self.connections.is_some(),
            title: script.title,
            recorded_over: script.variant,
            replay: self.replay,
            speed: self.speed,
            entries: entries.into_iter().map(at_speed).collect(),
            body_bytes,
            share: Share::WHOLE,
            queue_limit: self.queue_limit,
        };
        let random_parts = script.load.paths.iter().any(|path| Pattern::is_in(path));
        Ok((script, RequestOptions { paths: options, random_parts, ..RequestOptions::default() }))
    }
}

/// The path of a URL: the study's server answers in place of the script's origin.
fn path_at_origin(
    file: &DataFile,
    line: usize,
    url: &str,
    script: &TimingScript,
) -> Result<String, InputError> {
    let at_origin = script.origin.as_deref().and_then(|origin| url.strip_prefix(origin));
    path_of(file, line, at_origin.filter(|path| path.starts_with('/')).unwrap_or(url))
}

#[cfg(test)]
mod tests {
    use crate::media::{ByteRange, MediaLengths};
    use crate::plan::Plan;
    use crate::script::{Replay, ScriptEntry, Speed};
    use crate::study::tests::{SHORT, parse};
    use crate::units::NANOS_PER_MS;

    fn with(keys: &str) -> Result<Plan, String> {
        let text = SHORT.replace("page_load_time", "request_time");
        parse(&text.replace("kind = \"page\"\npage = \"small\"", &format!("kind = 'script'\n{keys}")))
    }

    #[test]
    fn a_script_of_h2load_sets_times_and_paths() {
        let plan = with("script = 'scripts/short.tsv'\nclients = 3").unwrap();
        let workload = &plan.workloads[0].workload;
        assert_eq!(workload.paths(), ["/bytes/1000", "/bytes/2000"]);
        let entry = |ms: u64, url| ScriptEntry { at_ns: ms * NANOS_PER_MS, url, ..ScriptEntry::default() };
        let script = workload.script().unwrap();
        assert_eq!(script.entries, [entry(0, 0), entry(500, 1), entry(2000, 0)]);
        assert_eq!(workload.lasts_ns(), Some(2000 * NANOS_PER_MS));
        assert_eq!(
            (workload.least_body_bytes(&MediaLengths::default()), workload.requests()),
            (4000, Some(3))
        );
        assert!(!workload.is_steady() && workload.is_timed());
        assert!(plan.cells[0].expected_run_ns > 2000 * NANOS_PER_MS);
        let words = workload.describe();
        assert_eq!(words, "replay of a script: 3 requests in 2 s, at their recorded times");
        let mut json = serde_json::to_value(&plan).unwrap();
        *json.pointer_mut("/workloads/0/workload/entries/1/url").unwrap() = 7.into();
        let problem = Plan::from_json(json.to_string().as_bytes()).unwrap_err();
        assert!(problem.contains("it names path 7 of 2"), "{problem}");
    }

    #[test]
    fn a_script_has_ranges_dependencies_and_known_responses() {
        let plan = with("script = 'session'\nreplay = 'dependency'\nspeed = 10\nconnections = 2").unwrap();
        let named = &plan.workloads[0];
        let script = named.workload.script().unwrap();
        assert_eq!((script.replay, script.speed), (Replay::Dependency, Speed(10_000)));
        let last = script.entries.last().unwrap();
        assert_eq!(
            (last.at_ns, &last.after[..], last.gap_ns),
            (100 * NANOS_PER_MS, &[0, 1][..], 5 * NANOS_PER_MS)
        );
        assert_eq!(script.load.paths, ["/bytes/1000", "/bytes/2000", "/bytes/2000"]);
        let own = &named.options.requests.paths[2];
        assert_eq!((own.range, own.expects.status), (ByteRange::of_length(0, 500), Some(206)));
        assert_eq!(named.workload.lasts_ns(), None, "its end depends on the responses");
        assert_eq!(script.body_bytes, 1000 + 2000 + 500);
        let words = named.describe();
        assert_eq!(
            words,
            "replay of a script: 3 requests of an evening in 100 ms, each after the responses that it waited for, \
             10 times faster than recorded, recorded over h2, on 2 connections; range of 1 path, known responses of 1 path"
        );
        assert_eq!(Plan::from_json(&serde_json::to_vec(&plan).unwrap()).unwrap(), plan);
    }

    #[test]
    fn the_beginning_of_a_script_is_a_script() {
        let plan = with("script = 'session'\nuntil = '1s'\nspeed = 10").unwrap();
        let script = plan.workloads[0].workload.script().unwrap();
        assert_eq!((script.entries.len(), script.title.as_str()), (2, "the first 1 s of an evening"));
        assert_eq!((script.body_bytes, plan.workloads[0].workload.requests()), (3000, Some(2)));
        let plan = with("script = 'scripts/short.tsv'\nuntil = '100ms'").unwrap();
        assert_eq!(plan.workloads[0].workload.script().unwrap().title, "the first 100 ms");
        let plan = with("script = 'session'\nuntil = '2s'").unwrap();
        assert_eq!(plan.workloads[0].workload.script().unwrap().title, "an evening", "all of it");
    }

    #[test]
    fn variants_may_have_different_scripts() {
        let plan = with("script = { h1s = 'scripts/short.tsv', h3 = 'session' }").unwrap();
        let names: Vec<&str> = plan.workloads.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["small, h1s", "small, h3"]);
        let scripts: Vec<usize> = plan.cells.iter().map(|cell| cell.group.workload).collect();
        assert_eq!(scripts, [0, 1]);
        assert_eq!(plan.cells[0].levels.len(), plan.cells[1].levels.len());
        let fault = with("script = { h3 = 'session' }").unwrap_err();
        assert!(fault.contains("`script` has none for the variant `h1s`; add `h1s = \"…\"`"), "{fault}");
    }

    #[test]
    fn arms_may_have_different_scripts() {
        let text = SHORT
            .replace("page_load_time", "request_time")
            .replace("{ variant = \"h1s\" }", "{ arm = \"old\" }")
            .replace("variant = [\"h1s\", \"h3\"]", "arm = [\"old\", \"new\"]")
            .replace(
                "kind = \"page\"\npage = \"small\"",
                "kind = 'script'\nscript = { old = 'scripts/short.tsv', new = 'session' }",
            );
        let arms = "[arm.old]\nvariant = 'h1s'\n[arm.new]\nvariant = 'h3'\n";
        let plan = parse(&format!("{text}{arms}")).unwrap();
        let names: Vec<&str> = plan.workloads.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["small, old", "small, new"]);
        let requests: Vec<usize> =
            plan.cells.iter().map(|cell| plan.workload_of(&cell.group).workload.paths().len()).collect();
        assert_eq!(requests, [2, 3]);
        let fault =
            parse(&format!("{}{arms}", text.replace("new = 'session'", "ne = 'session'"))).unwrap_err();
        assert!(fault.contains("`script`: `old` is not a variant") && fault.contains("every arm"), "{fault}");
    }

    #[test]
    fn faults_of_scripts() {
        for (keys, expected) in [
            ("", "has no `script`"),
            ("script = 'scripts/back.tsv'", "scripts/back.tsv:2:1: `4\t/b` is not in order of time"),
            ("script = 'scripts/none.tsv'", "there is no file scripts/none.tsv"),
            ("script = 'urls/empty.txt'", "urls/empty.txt contains no request"),
            ("script = 'elsewhere'", "elsewhere:3:1: a URL with a host; write the path alone, `/b`"),
            ("script = 'session'\nspeed = 0", "`speed`: 0 is not a speed; write a number from 0.001"),
            ("script = 'session'\nreplay = 'loosely'", "`replay`: `loosely` is not a mode of replay"),
            ("script = 'session'\nwarmup = '1s'", "`warmup` is not a key"),
            ("script = {}", "`script` is empty; name a script for each variant or arm"),
            ("script = { h9 = 'session' }", "`script`: `h9` is not a variant"),
        ] {
            let fault = with(keys).unwrap_err();
            assert!(fault.contains(expected), "{keys}: {fault}");
        }
    }
}
