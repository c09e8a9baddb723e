//! A presentation and its player as written in a study.

use super::Library;
use super::media::MediaSet;
use crate::error::InputError;
use crate::keys;
use crate::media::Presentation;
use crate::named::unknown;
use crate::player::{Cmcd, LivePlay, Player, Rule, Seek, constant_rate_video, describe_ladder};
use crate::reader::{Key, Placed, Table};
use crate::request_path::check_request_path;
use crate::units;

pub(super) const KEYS: &[Key] = keys! {
    "media", "text", "none", r#""bbc-dash""#,
        "The media to play: the name of a table `[media.NAME]`, or of built-in media; instead of `ladder`.";
    "ladder", "list of rates", "required unless `media` or `manifest`", r#"["1Mbit/s", "2.5Mbit/s", "8Mbit/s"]"#,
        "The bit rates of the representations: 1 to 16, ascending; a segment has at most 64 MB.";
    "segment", "duration", "required with `ladder`", r#""2s""#, "The duration of a segment; above 0.";
    "segments", "whole number", "required with `ladder`", "30", "The number of segments, 1 to 10 000.";
    "manifest", "text", "none", r#""/live/news/manifest.mpd""#,
        "The path of a live stream's manifest (DASH, HLS or HDS), instead of `ladder`. The client fetches and refreshes it.";
    "latency", "duration", "required with `manifest`", r#""9s""#, "How far playback should be behind the live edge; above 0.";
    "catch_up", "`true` or `false`", "`false`", "true",
        "Whether live playback speeds up or slows down by up to 5 % to keep to `latency`.";
    "duration", "duration", "required with `manifest`", r#""60s""#, "How long the live stream is watched.";
    "buffer", "duration", "required", r#""12s""#, "The player requests nothing for a track while more of its media is buffered; above 0.";
    "startup", "duration", "one segment", r#""4s""#,
        "How much media must be buffered before playback begins; at most `buffer`.";
    "rebuffer", "duration", "`startup`", r#""2s""#,
        "How much media must be buffered before playback resumes after a stall or a seek; at most `buffer`.";
    "seek", "list of texts", "none", r#"["8s to 30s"]"#,
        "Jumps of the playback: when it reaches the first time of the media, it continues at the second. The buffers are dropped. At most 100.";
    "rule", "text", "required", r#""throughput""#,
        "`fixed`, `throughput`, `buffer`, `bola`, `dashjs`, `dashjs_throughput`, `dashjs_bola` or `hlsjs`.";
    "representation", "rate", "required with `fixed`", r#""2.5Mbit/s""#, "The representation of the rule `fixed`, one of the video's bit rates.";
    "cmcd", "text", "none", r#""query""#,
        "Whether requests carry CMCD keys (CTA-5004): in `headers`, or in the `query`.";
};

/// The segments of one presentation: each leaves a few rows in memory until the run is stored.
const MOST_SEGMENTS: u32 = 10_000;
const MOST_REPRESENTATIONS: usize = 16;
const MOST_SEEKS: usize = 100;
/// Servers that serve files have one of each representation.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;
/// The keys of media on demand and of live streams exclude each other.
const ON_DEMAND_KEYS: [&str; 5] = ["media", "ladder", "segment", "segments", "seek"];
const LADDER_KEYS: [&str; 3] = ["ladder", "segment", "segments"];
const LIVE_KEYS: [&str; 3] = ["latency", "catch_up", "duration"];

/// A player as written; what its media decides is resolved with it.
#[derive(Clone, Debug)]
pub(super) struct PlayerEntry {
    source: PlayedSource,
    goal_ns: u64,
    startup_ns: Option<u64>,
    rebuffer_ns: Option<u64>,
    rule: Rule,
    /// The place of the fixed rule's representation.
    fixed: Option<Placed<u64>>,
    seeks: Vec<Placed<Seek>>,
    cmcd: Option<Cmcd>,
}

/// What is played.
#[derive(Clone, Debug)]
enum PlayedSource {
    /// `ladder`.
    ConstantRate(Presentation),
    /// `media`.
    Media(Placed<String>),
    /// `manifest`.
    Live(LivePlay),
}

pub(super) fn read(table: &Table<'_>) -> Result<PlayerEntry, InputError> {
    let (live, media) = (read_live(table)?, table.string("media")?);
    let (excluded, needs) = match (&live, &media) {
        (Some(_), _) => (&ON_DEMAND_KEYS[..], "media on demand; remove it, or remove `manifest`"),
        (None, Some(_)) => (&LADDER_KEYS[..], "constant bit rates; remove it, or remove `media`"),
        (None, None) => (&LIVE_KEYS[..], "live streams; add `manifest`, or remove it"),
    };
    let is_excluded = |key: &str| excluded.contains(&key) || (live.is_none() && LIVE_KEYS.contains(&key));
    if let Some(key) = table.keys().find(|key| is_excluded(&key.value)) {
        let needs = if excluded.contains(&key.value.as_str()) { needs } else { "live streams; remove it" };
        return Err(key.error(format!("`{}` is for {needs}", key.value)));
    }
    let source = match (live, media) {
        (Some(live), _) => PlayedSource::Live(live),
        (None, Some(media)) => PlayedSource::Media(media),
        (None, None) => PlayedSource::ConstantRate(read_presentation(table)?),
    };
    let goal_ns = table.required("buffer", Table::duration_above_zero)?.value;
    let startup_ns = read_threshold(table, "startup", "begins", goal_ns)?;
    let rebuffer_ns = read_threshold(table, "rebuffer", "resumes", goal_ns)?;
    let (rule, fixed) = read_rule(table)?;
    let cmcd = table.named::<Cmcd>("cmcd")?.map(|cmcd| cmcd.value);
    Ok(PlayerEntry { source, goal_ns, startup_ns, rebuffer_ns, rule, fixed, seeks: read_seeks(table)?, cmcd })
}

impl PlayerEntry {
    /// The player with its media.
    ///
    /// # Errors
    /// There are no such media, or a key contradicts them.
    pub(super) fn resolve(&self, media: &mut MediaSet, library: &impl Library) -> Result<Player, InputError> {
        let (presentation, live) = match &self.source {
            PlayedSource::ConstantRate(presentation) => (presentation.clone(), None),
            PlayedSource::Media(name) => (media.find(name, library)?.presentation.clone(), None),
            PlayedSource::Live(live) => (Presentation::default(), Some(live.clone())),
        };
        let mut player = Player {
            presentation,
            goal_ns: self.goal_ns,
            startup_ns: 0,
            rebuffer_ns: 0,
            rule: self.rule,
            seeks: self.seeks.iter().map(|seek| seek.value).collect(),
            live,
            cmcd: self.cmcd,
        };
        // A live stream's segments are known to its client; one of them is enough there.
        let one_segment_ns = player.longest_segment_ns().clamp(1, self.goal_ns);
        player.startup_ns = self.startup_ns.unwrap_or(one_segment_ns);
        player.rebuffer_ns = self.rebuffer_ns.unwrap_or(player.startup_ns);
        if let Some(fixed) = self.fixed.as_ref().filter(|_| player.live.is_none())
            && !player.ladder_bits_per_s().contains(&fixed.value)
        {
            let ladder = describe_ladder(&player.ladder_bits_per_s());
            return Err(fixed.error(format!("`representation` is not in the ladder; write one of {ladder}")));
        }
        let media_ns = player.media_ns();
        match self.seeks.iter().find(|seek| seek.value.at_ns.max(seek.value.to_ns) >= media_ns) {
            Some(seek) => {
                let end = units::format_ns(media_ns);
                Err(seek
                    .error(format!("`seek`: the jump is not before the end at {end}; write earlier times")))
            }
            None => Ok(player),
        }
    }
}

fn read_live(table: &Table<'_>) -> Result<Option<LivePlay>, InputError> {
    let Some(manifest) = table.string("manifest")? else { return Ok(None) };
    if let Err(problem) = check_request_path(&manifest.value) {
        return Err(manifest.error(format!("`manifest`: {problem}")));
    }
    Ok(Some(LivePlay {
        manifest: manifest.value,
        latency_ns: table.required("latency", Table::duration_above_zero)?.value,
        catch_up: table.flag("catch_up")?,
        duration_ns: table.required("duration", Table::duration_above_zero)?.value,
    }))
}

fn read_presentation(table: &Table<'_>) -> Result<Presentation, InputError> {
    let (rates, ladder) = read_ladder(table)?;
    let segment_ns = table.required("segment", Table::duration_above_zero)?.value;
    let segments = table.required("segments", |table, key| table.integer(key, 1..=MOST_SEGMENTS))?.value;
    let presentation = constant_rate_video(&rates, segment_ns, segments);
    let representations = presentation.tracks.iter().flat_map(|track| &track.representations);
    for (representation, place) in representations.zip(&ladder) {
        let bytes = representation.segments.first().and_then(|segment| segment.bytes).unwrap_or(0);
        if !(1..=MOST_SEGMENT_BYTES).contains(&bytes) {
            let problem = format!(
                "`ladder`: a segment of `{}` has {bytes} bytes; its bounds are 1 to {MOST_SEGMENT_BYTES}",
                place.value
            );
            return Err(place.error(problem));
        }
    }
    Ok(presentation)
}

/// How much media must be buffered before playback begins or resumes.
fn read_threshold(table: &Table<'_>, key: &str, verb: &str, goal_ns: u64) -> Result<Option<u64>, InputError> {
    let threshold = table.duration_above_zero(key)?;
    if let Some(threshold) = threshold.as_ref().filter(|threshold| threshold.value > goal_ns) {
        return Err(threshold.error(format!(
            "`{key}` exceeds `buffer`, so that playback never {verb}; write at most `buffer`"
        )));
    }
    Ok(threshold.map(|threshold| threshold.value))
}

/// Jumps that happen one after the other: each begins after the position to which the last one led.
fn read_seeks(table: &Table<'_>) -> Result<Vec<Placed<Seek>>, InputError> {
    let Some(seeks) = table.some_strings("seek")? else { return Ok(Vec::new()) };
    if seeks.value.len() > MOST_SEEKS {
        return Err(
            seeks.error(format!("`seek` has {} jumps; write at most {MOST_SEEKS}", seeks.value.len()))
        );
    }
    let mut read: Vec<Placed<Seek>> = Vec::with_capacity(seeks.value.len());
    for text in &seeks.value {
        let fault = |problem: String| text.error(format!("`seek`: {problem}"));
        let (at, to) = text.value.split_once(" to ").ok_or_else(|| {
            fault(format!(
                "`{}` is not a jump; write two times of the media, such as `8s to 30s`",
                text.value
            ))
        })?;
        let at_ns = units::parse_duration_ns(at).map_err(fault)?;
        let to_ns = units::parse_duration_ns(to).map_err(fault)?;
        let begins_ns = read.last().map_or(0, |seek| seek.value.to_ns);
        if at_ns <= begins_ns {
            let begins = units::format_ns(begins_ns);
            return Err(fault(format!(
                "playback begins at {begins}, and never reaches `{at}`; write a later time"
            )));
        }
        read.push(Placed { value: Seek { at_ns, to_ns }, place: text.place.clone() });
    }
    Ok(read)
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

fn read_rule(table: &Table<'_>) -> Result<(Rule, Option<Placed<u64>>), InputError> {
    let rule = table.required("rule", Table::string)?;
    let fixed = table.parsed("representation", units::parse_rate_bits_per_s)?;
    if rule.value == "fixed" {
        let fixed = fixed.ok_or_else(|| table.missing("representation"))?;
        return Ok((Rule::Fixed { bits_per_s: fixed.value }, Some(fixed)));
    }
    let adaptive = Rule::adaptive(&rule.value)
        .ok_or_else(|| rule.error(format!("`rule`: {}", unknown(&rule.value, "a rule", &Rule::NAMES))))?;
    match fixed {
        None => Ok((adaptive, None)),
        Some(fixed) => {
            let name = adaptive.name();
            Err(fixed.error(format!(
                "`representation` requires the rule `fixed`; remove it, as the rule is `{name}`"
            )))
        }
    }
}
