//! A video and its player as written in a study.

use crate::error::InputError;
use crate::keys;
use crate::named::unknown;
use crate::player::{Player, Rule};
use crate::reader::{Key, Placed, Table};
use crate::units;

pub(super) const KEYS: &[Key] = keys! {
    "ladder", "list of rates", "required", r#"["1Mbit/s", "2.5Mbit/s", "8Mbit/s"]"#,
        "The bit rates of the representations: 1 to 16, ascending; a segment has at most 64 MB.";
    "segment", "duration", "required", r#""2s""#, "The duration of a segment; above 0.";
    "segments", "whole number", "required", "30", "The number of segments, 1 to 10 000.";
    "buffer", "duration", "required", r#""12s""#, "The player requests nothing while more media is buffered; above 0.";
    "startup", "duration", "one segment", r#""4s""#,
        "How much media must be buffered before playback begins, or resumes after a stall; at most `buffer`.";
    "rule", "text", "required", r#""throughput""#, "`fixed`, `throughput`, `buffer` or `bola`.";
    "representation", "rate", "required with `fixed`", r#""2.5Mbit/s""#, "The representation of the rule `fixed`, one of `ladder`.";
};

/// The segments of one video: each leaves a few rows in memory until the run is stored.
const MOST_SEGMENTS: u32 = 10_000;
const MOST_REPRESENTATIONS: usize = 16;
/// Servers that serve files have one of each representation.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;

pub(super) fn read(table: &Table<'_>) -> Result<Player, InputError> {
    let (ladder_bits_per_s, ladder) = read_ladder(table)?;
    let segment_ns = table.required("segment", Table::duration_above_zero)?.value;
    let segments = table.required("segments", |table, key| table.integer(key, 1..=MOST_SEGMENTS))?.value;
    let goal_ns = table.required("buffer", Table::duration_above_zero)?.value;
    let startup = table.duration_above_zero("startup")?;
    if let Some(startup) = startup.as_ref().filter(|startup| startup.value > goal_ns) {
        return Err(startup
            .error("`startup` exceeds `buffer`, so that playback never begins; write at most `buffer`"));
    }
    let player = Player {
        segment_ns,
        segments,
        goal_ns,
        startup_ns: startup.map_or(segment_ns.min(goal_ns), |startup| startup.value),
        rule: read_rule(table, &ladder_bits_per_s)?,
        ladder_bits_per_s,
    };
    for (bits_per_s, place) in player.ladder_bits_per_s.iter().zip(&ladder) {
        let bytes = player.segment_bytes(*bits_per_s);
        if !(1..=MOST_SEGMENT_BYTES).contains(&bytes) {
            let problem = format!(
                "`ladder`: a segment of `{}` has {bytes} bytes; its bounds are 1 to {MOST_SEGMENT_BYTES}",
                place.value
            );
            return Err(place.error(problem));
        }
    }
    Ok(player)
}

pub(super) fn read_ladder(table: &Table<'_>) -> Result<(Vec<u64>, Vec<Placed<String>>), InputError> {
    let ladder = table.required("ladder", Table::strings)?;
    let count = ladder.value.len();
    if !(1..=MOST_REPRESENTATIONS).contains(&count) {
        let problem = format!("`ladder` has {count} representations; write 1 to {MOST_REPRESENTATIONS}");
        return Err(ladder.error(problem));
    }
    let mut rates: Vec<u64> = Vec::with_capacity(count);
    for text in &ladder.value {
        let rate = units::parse_rate_bits_per_s(&text.value);
        let rate = rate.map_err(|problem| text.error(format!("`ladder`: {problem}")))?;
        if rates.last().is_some_and(|lower| *lower >= rate) {
            let problem = format!("`ladder`: `{}` is not above the rate before it; sort them", text.value);
            return Err(text.error(problem));
        }
        rates.push(rate);
    }
    Ok((rates, ladder.value))
}

fn read_rule(table: &Table<'_>, ladder: &[u64]) -> Result<Rule, InputError> {
    let rule = table.required("rule", Table::string)?;
    let fixed = table.parsed("representation", units::parse_rate_bits_per_s)?;
    let adaptive = match rule.value.as_str() {
        "fixed" => {
            let fixed = fixed.ok_or_else(|| table.missing("representation"))?;
            if !ladder.contains(&fixed.value) {
                return Err(fixed.error("`representation` is not in `ladder`; write one of its rates"));
            }
            return Ok(Rule::Fixed { bits_per_s: fixed.value });
        }
        "throughput" => Rule::Throughput,
        "buffer" => Rule::Buffer,
        "bola" => Rule::Bola,
        other => return Err(rule.error(format!("`rule`: {}", unknown(other, "a rule", &Rule::NAMES)))),
    };
    match fixed {
        None => Ok(adaptive),
        Some(fixed) => {
            let name = adaptive.name();
            Err(fixed.error(format!(
                "`representation` requires the rule `fixed`; remove it, as the rule is `{name}`"
            )))
        }
    }
}
