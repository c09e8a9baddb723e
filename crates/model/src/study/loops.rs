//! Closed and open loops as written in a study.

use super::written::to_u32;
use crate::error::InputError;
use crate::nearest::unknown;
use crate::reader::{Placed, Table};
use crate::schedule::{Arrivals, Rate, Schedule, Share, Stage};
use crate::units;
use crate::workload::{ClosedLoop, LoopLoad, OpenLoop};

pub(super) const CLOSED_KEYS: &[&str] =
    &["kind", "paths", "connections", "streams", "requests", "duration", "warmup", "clients"];
pub(super) const OPEN_KEYS: &[&str] = &[
    "kind",
    "paths",
    "rate",
    "stages",
    "arrivals",
    "connections",
    "streams",
    "requests",
    "duration",
    "warmup",
    "queue",
    "clients",
];

const MOST_CONNECTIONS: u64 = 100_000;
const MOST_STREAMS: u64 = 10_000;
/// Of one run: each has a row, which is held in memory until the run is stored.
const MOST_REQUESTS: u64 = 5_000_000;
const MOST_QUEUED: u64 = 1_000_000;
const PATHS_EXAMPLE: &str = r#"["/bytes/1000"]"#;
const STAGES_EXAMPLE: &str = r#"["5s@100", "10s@100-400"]"#;

pub(super) fn read_closed(table: &Table<'_>) -> Result<ClosedLoop, InputError> {
    let load = read_load(table)?;
    let (requests, duration) = read_end(table)?;
    Ok(ClosedLoop {
        load: LoopLoad { requests: requests.map(|number| number.value), ..load },
        duration_ns: duration.map(|duration| duration.value),
    })
}

pub(super) fn read_open(table: &Table<'_>) -> Result<OpenLoop, InputError> {
    let load = read_load(table)?;
    let rate = table.parsed("rate", "200/s", str::parse::<Rate>)?;
    let stages = table.strings("stages", STAGES_EXAMPLE)?;
    let (stages, requests) = match (rate, stages) {
        (Some(_), Some(stages)) => {
            return Err(
                stages.error("found both `rate` and `stages`, expected one: each says when requests are due")
            );
        }
        (None, None) => {
            let problem = "found neither `rate` nor `stages`, expected one: when are requests due?";
            return Err(table.error(problem));
        }
        (Some(rate), None) => {
            let (requests, duration) = read_end(table)?;
            let duration_ns = duration.map(|duration| duration.value);
            check_many(&rate, duration_ns.map(|ns| due(rate.value, rate.value, ns)))?;
            let stage = Stage { from: rate.value, to: rate.value, duration_ns };
            (vec![stage], requests.map(|requests| requests.value))
        }
        (None, Some(stages)) => (read_stages(table, &stages)?, None),
    };
    let queue = table.integer("queue", 1..=MOST_QUEUED)?;
    Ok(OpenLoop {
        load: LoopLoad { requests, ..load },
        schedule: Schedule::Rates { stages, arrivals: read_arrivals(table)?, share: Share::WHOLE },
        queue_limit: to_u32(queue.map_or(MOST_QUEUED, |queue| queue.value)),
    })
}

fn read_load(table: &Table<'_>) -> Result<LoopLoad, InputError> {
    let paths = table.strings("paths", PATHS_EXAMPLE)?;
    let paths = paths.ok_or_else(|| table.missing("paths", &format!("paths = {PATHS_EXAMPLE}")))?;
    if paths.value.is_empty() {
        let problem = format!("`paths`: found an empty list, expected one such as `{PATHS_EXAMPLE}`");
        return Err(paths.error(problem));
    }
    if let Some(path) = paths.value.iter().find(|path| !path.value.starts_with('/')) {
        let problem = format!("`paths`: found `{}`, expected a path that begins with `/`", path.value);
        return Err(path.error(problem));
    }
    let connections = table.integer("connections", 1..=MOST_CONNECTIONS)?;
    let streams = table.integer("streams", 1..=MOST_STREAMS)?;
    let warmup = table.parsed("warmup", "1s", units::parse_duration_ns)?;
    Ok(LoopLoad {
        paths: paths.value.into_iter().map(|path| path.value).collect(),
        connections: connections.map_or(1, |number| to_u32(number.value)),
        streams: streams.map_or(1, |number| to_u32(number.value)),
        requests: None,
        warmup_ns: warmup.map_or(0, |warmup| warmup.value),
    })
}

type End = (Option<Placed<u64>>, Option<Placed<u64>>);

/// The number of requests or the duration that ends a run: exactly one of them.
fn read_end(table: &Table<'_>) -> Result<End, InputError> {
    let requests = table.integer("requests", 1..=MOST_REQUESTS)?;
    let duration = table.parsed("duration", "10s", units::parse_duration_ns)?;
    match (&requests, &duration) {
        (None, None) => {
            let problem =
                "found neither `duration` nor `requests`, expected one: something has to end the run";
            Err(table.error(problem))
        }
        (Some(requests), Some(_)) => {
            Err(requests.error("found both `requests` and `duration`, expected one: each ends the run"))
        }
        (None, Some(duration)) if duration.value == 0 => {
            Err(duration.error("`duration`: found 0, expected more, such as `10s`"))
        }
        _ => Ok((requests, duration)),
    }
}

fn read_stages(table: &Table<'_>, stages: &Placed<Vec<Placed<String>>>) -> Result<Vec<Stage>, InputError> {
    for (key, more) in [
        ("requests", table.integer("requests", 1..=MOST_REQUESTS)?.map(|requests| requests.error(""))),
        ("duration", table.string("duration", "10s")?.map(|duration| duration.error(""))),
    ] {
        if let Some(mut error) = more {
            error.problem = format!("found `{key}` beside `stages`, expected the stages' own durations");
            return Err(error);
        }
    }
    let mut read = Vec::with_capacity(stages.value.len());
    for text in &stages.value {
        let stage: Stage =
            text.value.parse().map_err(|problem| text.error(format!("`stages`: {problem}")))?;
        read.push(stage);
    }
    if read.iter().all(|stage| stage.from.0 + stage.to.0 == 0) {
        let problem =
            format!("`stages`: found none with a rate above 0, expected such as `{STAGES_EXAMPLE}`");
        return Err(stages.error(problem));
    }
    let all = read.iter().map(|stage| due(stage.from, stage.to, stage.duration_ns.unwrap_or(0))).sum();
    check_many(stages, Some(all))?;
    Ok(read)
}

fn read_arrivals(table: &Table<'_>) -> Result<Arrivals, InputError> {
    const NAMES: &[&str] = &["even", "poisson"];
    let arrivals = table.parsed("arrivals", "even", |text| match text {
        "even" => Ok(Arrivals::Even),
        "poisson" => Ok(Arrivals::Poisson),
        other => Err(unknown(other, "a way to spread requests", NAMES)),
    })?;
    Ok(arrivals.map_or(Arrivals::default(), |arrivals| arrivals.value))
}

/// How many requests a stage has: the area below its rate.
fn due(from: Rate, to: Rate, duration_ns: u64) -> u64 {
    // Rates are requests per 1000 seconds.
    let twice = u128::from(from.0 + to.0) * u128::from(duration_ns);
    u64::try_from(twice / (2 * 1000 * u128::from(units::NANOS_PER_S))).unwrap_or(u64::MAX)
}

fn check_many<T>(placed: &Placed<T>, requests: Option<u64>) -> Result<(), InputError> {
    match requests {
        Some(many) if many > MOST_REQUESTS => Err(placed.error(format!(
            "found {many} requests in each run, expected at most {MOST_REQUESTS}: each has a row"
        ))),
        _ => Ok(()),
    }
}
