//! Closed and open loops as written in a study.

use super::request_files::check_path;
use crate::error::InputError;
use crate::keys;
use crate::media::Media;
use crate::reader::{Key, Placed, Table};
use crate::schedule::{Rate, Schedule, Share, Stage};
use crate::units;
use crate::workload::{ClosedLoop, LoopLoad, OpenLoop};

/// Keys of both kinds of loop.
pub(super) const LOOP_KEYS: &[Key] = keys! {
    "paths", "list of texts", "required without a file", r#"["/bytes/1000"]"#,
        "Paths to request, each beginning with `/`; [`{random:1-7000}`](#random-parts-of-paths) is drawn for every request.";
    "urls", "text", "none", r#""urls/library.txt""#,
        "A [file of paths](#lists-of-urls), at most 200 000 lines. Excludes `paths`.";
    "media", "text", "none", r#""film""#,
        "All segments of [media](#medianame); of a library, the title is drawn for every request. Excludes `paths` and `urls`.";
    "order", "text", "`\"in turn\"`", r#""random""#, "The order of the paths: `in turn`, or `random` with equal probabilities.";
    "connections", "whole number", "`1`", "2", "Connections held open, 1 to 100 000.";
    "streams", "whole number", "`1`", "10", "Requests in flight on each connection, 1 to 10 000; HTTP/1.1 has one.";
    "requests", "whole number", "none", "1000",
        "Ends the run after this many requests, excluding the warm-up; 1 to 5 000 000. Excludes `duration`.";
    "duration", "duration", "none", r#""10s""#, "Ends the run this long after the warm-up. Excludes `requests`.";
    "warmup", "duration", "`\"0s\"`", r#""1s""#, "Requests that end in this time are stored but not analysed; with `requests` or a rate, those that were intended in it.";
};
/// Keys of a closed loop alone.
pub(super) const CLOSED_KEYS: &[Key] = keys! {
    "think_time", "duration, or a range of two", "`\"0s\"`", r#""0s-2s""#,
        "How long a stream waits between a response and its next request; a range is a uniform distribution.";
};
/// Keys of an open loop alone.
pub(super) const OPEN_KEYS: &[Key] = keys! {
    "rate", "text", "required without `stages`", r#""200/s""#,
        "Requests per second, 0.001 to 100 million, such as `\"0.5\"`, `\"400/s\"` or `\"20k\"`. Requires `requests` or `duration`.";
    "stages", "list of texts", "required without `rate`", r#"["5s@100", "10s@100-400"]"#,
        "`TIME@RATE` holds a rate, `TIME@RATE-RATE` changes it linearly; at least one rate above 0. Excludes `requests` and `duration`.";
    "arrivals", "text", "`\"even\"`", r#""poisson""#, "`even` spacing, or a `poisson` process.";
    "queue", "whole number", "`1000000`", "1000",
        "How many due requests may wait for a connection, 1 to 1 000 000; further ones are never sent.";
};

pub(super) const MOST_CONNECTIONS: u32 = 100_000;
pub(super) const MOST_STREAMS: u32 = 10_000;
/// The requests of one run: each has a row in memory until the run is stored.
const MOST_REQUESTS: u64 = 5_000_000;
pub(super) const MOST_QUEUED: u32 = 1_000_000;

pub(super) fn read_closed(table: &Table<'_>) -> Result<ClosedLoop, InputError> {
    let load = read_load(table)?;
    let (requests, duration_ns) = read_end(table)?;
    let think = table.parsed("think_time", str::parse)?.map(|think| think.value).unwrap_or_default();
    Ok(ClosedLoop { load: LoopLoad { requests, ..load }, duration_ns, think })
}

pub(super) fn read_open(table: &Table<'_>) -> Result<OpenLoop, InputError> {
    let load = read_load(table)?;
    let queue_limit = table.integer("queue", 1..=MOST_QUEUED)?.map_or(MOST_QUEUED, |queue| queue.value);
    let rate = table.parsed("rate", str::parse::<Rate>)?;
    let (stages, requests) = match (rate, table.strings("stages")?) {
        (Some(_), Some(stages)) => {
            return Err(stages.error("`stages` excludes `rate`; remove one of them"));
        }
        (None, None) => {
            let problem = format!("{} has no `rate` or `stages`; add one of them", table.title());
            return Err(table.error(problem));
        }
        (Some(rate), None) => {
            let (requests, duration_ns) = read_end(table)?;
            check_many(&rate, duration_ns.map_or(0, |ns| due(rate.value, rate.value, ns)))?;
            (vec![Stage { from: rate.value, to: rate.value, duration_ns }], requests)
        }
        (None, Some(stages)) => (read_stages(table, &stages)?, None),
    };
    let arrivals = table.named("arrivals")?.map(|arrivals| arrivals.value).unwrap_or_default();
    Ok(OpenLoop {
        load: LoopLoad { requests, ..load },
        schedule: Schedule { stages, arrivals, share: Share::WHOLE },
        queue_limit,
    })
}

/// The media whose segments a loop requests, if it names any.
pub(super) fn read_media(table: &Table<'_>) -> Result<Option<Placed<String>>, InputError> {
    let Some(media) = table.string("media")? else { return Ok(None) };
    for other in ["paths", "urls"] {
        if table.keys().any(|known| known.value == other) {
            return Err(media.error(format!("`media` excludes `{other}`; remove one of them")));
        }
    }
    Ok(Some(media))
}

/// The paths of all segments of media.
///
/// # Errors
/// It is a live stream, whose segments are known only while it runs, or media of a site.
pub(super) fn paths_of(media: &Media) -> Result<Vec<String>, String> {
    if media.live_window_ns.is_some() {
        return Err(format!("`media`: `{}` is live; play it with a player, or write `paths`", media.name));
    }
    if let Some(site) = media.site() {
        let (name, manifest) = (&media.name, &site.manifest);
        return Err(format!(
            "`media`: `{name}` is media of a site, which players play; write `urls` with what `h123 urls {manifest}` prints"
        ));
    }
    Ok(media.segment_paths())
}

fn read_load(table: &Table<'_>) -> Result<LoopLoad, InputError> {
    // Without the key, a file has them.
    let paths = table.some_strings("paths")?.map_or_else(Vec::new, |paths| paths.value);
    for path in &paths {
        check_path(&path.value).map_err(|problem| path.error(format!("`paths`: {problem}")))?;
    }
    Ok(LoopLoad {
        paths: paths.into_iter().map(|path| path.value).collect(),
        connections: table.integer("connections", 1..=MOST_CONNECTIONS)?.map_or(1, |number| number.value),
        streams: table.integer("streams", 1..=MOST_STREAMS)?.map_or(1, |number| number.value),
        requests: None,
        warmup_ns: table.parsed("warmup", units::parse_duration_ns)?.map_or(0, |warmup| warmup.value),
    })
}

/// The number of requests or the duration that ends a run: exactly one of them.
fn read_end(table: &Table<'_>) -> Result<(Option<u64>, Option<u64>), InputError> {
    let requests = table.integer("requests", 1..=MOST_REQUESTS)?;
    match (requests, table.duration_above_zero("duration")?) {
        (None, None) => Err(table.error(format!(
            "{} has neither `duration` nor `requests`; add one of them to end the run",
            table.title()
        ))),
        (Some(requests), Some(_)) => {
            Err(requests.error("`requests` excludes `duration`; remove one of them"))
        }
        (requests, duration) => Ok((requests.map(|number| number.value), duration.map(|time| time.value))),
    }
}

fn read_stages(table: &Table<'_>, stages: &Placed<Vec<Placed<String>>>) -> Result<Vec<Stage>, InputError> {
    let requests = table.integer("requests", 1..=MOST_REQUESTS)?.map(|requests| (requests.place, "requests"));
    let duration = table.string("duration")?.map(|duration| (duration.place, "duration"));
    if let Some((place, key)) = requests.or(duration) {
        let problem = format!("`{key}` excludes `stages`, which have their own durations; remove `{key}`");
        return Err(InputError { place, problem });
    }
    let read = |text: &Placed<String>| {
        text.value.parse().map_err(|problem| text.error(format!("`stages`: {problem}")))
    };
    let read: Vec<Stage> = stages.value.iter().map(read).collect::<Result<_, _>>()?;
    if read.iter().all(|stage| stage.from.0 + stage.to.0 == 0) {
        return Err(stages.error("`stages` has no rate above 0; add a stage such as `5s@100`"));
    }
    check_many(
        stages,
        read.iter().map(|stage| due(stage.from, stage.to, stage.duration_ns.unwrap_or(0))).sum(),
    )?;
    Ok(read)
}

/// How many requests a stage has: the area below its rate.
fn due(from: Rate, to: Rate, duration_ns: u64) -> u64 {
    // Rates are requests per 1000 seconds.
    let twice = u128::from(from.0 + to.0) * u128::from(duration_ns);
    u64::try_from(twice / (2 * 1000 * u128::from(units::NANOS_PER_S))).unwrap_or(u64::MAX)
}

fn check_many<T>(placed: &Placed<T>, requests: u64) -> Result<(), InputError> {
    too_many(requests).map_or(Ok(()), |problem| Err(placed.error(problem)))
}

/// Why a run cannot have this many requests, if it cannot.
fn too_many(requests: u64) -> Option<String> {
    let problem =
        || format!("a run has {requests} requests; write at most {MOST_REQUESTS}, because each has a row");
    (requests > MOST_REQUESTS).then(problem)
}
