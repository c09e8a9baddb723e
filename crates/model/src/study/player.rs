//! A video and its player as written in a study.

use super::written::to_u32;
use crate::error::InputError;
use crate::nearest::unknown;
use crate::player::{Player, Rule};
use crate::reader::{Placed, Table};
use crate::units;

pub(super) const PLAYER_KEYS: &[&str] =
    &["kind", "ladder", "segment", "segments", "buffer", "startup", "rule", "representation", "clients"];

const LADDER_EXAMPLE: &str = r#"["1Mbit/s", "2.5Mbit/s", "8Mbit/s"]"#;
/// Of one video: each leaves a few rows, which are held in memory until the run is stored.
const MOST_SEGMENTS: u64 = 10_000;
const MOST_REPRESENTATIONS: usize = 16;
/// Servers that serve files have one of each representation.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;

pub(super) fn read(table: &Table<'_>) -> Result<Player, InputError> {
    let (ladder_bits_per_s, ladder) = read_ladder(table)?;
    let segment = duration(table, "segment", "2s")?.ok_or_else(|| missing(table, "segment", "2s"))?;
    let segments = table.integer("segments", 1..=MOST_SEGMENTS)?;
    let segments = segments.ok_or_else(|| table.missing("segments", "segments = 30"))?;
    let goal = duration(table, "buffer", "12s")?.ok_or_else(|| missing(table, "buffer", "12s"))?;
    let startup = duration(table, "startup", "2s")?;
    if let Some(startup) = startup.as_ref().filter(|startup| startup.value > goal.value) {
        let problem =
            "`startup`: found more than `buffer`, expected at most as much: playback would never begin";
        return Err(startup.error(problem));
    }
    let player = Player {
        segment_ns: segment.value,
        segments: to_u32(segments.value),
        goal_ns: goal.value,
        startup_ns: startup.map_or(segment.value.min(goal.value), |startup| startup.value),
        rule: read_rule(table, &ladder_bits_per_s)?,
        ladder_bits_per_s,
    };
    for (bits_per_s, place) in player.ladder_bits_per_s.iter().zip(&ladder) {
        let bytes = player.segment_bytes(*bits_per_s);
        if !(1..=MOST_SEGMENT_BYTES).contains(&bytes) {
            let problem = format!(
                "`ladder`: found a segment of {bytes} bytes (`{}` for the segment's time), expected 1 to \
                 {MOST_SEGMENT_BYTES}",
                place.value
            );
            return Err(place.error(problem));
        }
    }
    Ok(player)
}

fn read_ladder(table: &Table<'_>) -> Result<(Vec<u64>, Vec<Placed<String>>), InputError> {
    let ladder = table.strings("ladder", LADDER_EXAMPLE)?;
    let ladder = ladder.ok_or_else(|| table.missing("ladder", &format!("ladder = {LADDER_EXAMPLE}")))?;
    let count = ladder.value.len();
    if !(1..=MOST_REPRESENTATIONS).contains(&count) {
        let problem =
            format!("`ladder`: found {count} representations, expected 1 to {MOST_REPRESENTATIONS}");
        return Err(ladder.error(problem));
    }
    let mut rates: Vec<u64> = Vec::with_capacity(count);
    for text in &ladder.value {
        let rate = units::parse_rate_bits_per_s(&text.value);
        let rate = rate.map_err(|problem| text.error(format!("`ladder`: {problem}")))?;
        if rates.last().is_some_and(|lower| *lower >= rate) {
            let problem = format!(
                "`ladder`: found `{}` after one that is not lower, expected them ascending",
                text.value
            );
            return Err(text.error(problem));
        }
        rates.push(rate);
    }
    Ok((rates, ladder.value))
}

fn read_rule(table: &Table<'_>, ladder: &[u64]) -> Result<Rule, InputError> {
    let rule = table.string("rule", "throughput")?;
    let rule = rule.ok_or_else(|| table.missing("rule", "rule = \"throughput\""))?;
    let fixed = table.parsed("representation", "2.5Mbit/s", units::parse_rate_bits_per_s)?;
    let adaptive = match rule.value.as_str() {
        "fixed" => {
            let example = "representation = \"2.5Mbit/s\"";
            let fixed = fixed.ok_or_else(|| table.missing("representation", example))?;
            if !ladder.contains(&fixed.value) {
                return Err(fixed.error(
                    "`representation`: found a bit rate that is not in `ladder`, expected one of it",
                ));
            }
            return Ok(Rule::Fixed { bits_per_s: fixed.value });
        }
        "throughput" => Rule::Throughput,
        "buffer" => Rule::Buffer,
        "bola" => Rule::Bola,
        other => {
            let problem = unknown(other, "a rule", &Rule::NAMES);
            return Err(rule.error(format!("`rule`: {problem}")));
        }
    };
    match fixed {
        None => Ok(adaptive),
        Some(fixed) => {
            let problem = format!(
                "`representation`: found it with the rule `{}`, expected it with `fixed` alone",
                adaptive.name()
            );
            Err(fixed.error(problem))
        }
    }
}

fn duration(table: &Table<'_>, key: &str, example: &str) -> Result<Option<Placed<u64>>, InputError> {
    let found = table.parsed(key, example, units::parse_duration_ns)?;
    match found {
        Some(zero) if zero.value == 0 => {
            Err(zero.error(format!("`{key}`: found 0, expected more, such as `{example}`")))
        }
        found => Ok(found),
    }
}

fn missing(table: &Table<'_>, key: &str, example: &str) -> InputError {
    table.missing(key, &format!("{key} = \"{example}\""))
}
