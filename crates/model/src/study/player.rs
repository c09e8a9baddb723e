//! A presentation and its player as written in a study.

use super::Library;
use super::ladder::read_ladder;
use super::media::MediaSet;
use crate::error::InputError;
use crate::keys;
use crate::media::{Media, MediaSource, Presentation};
use crate::named::unknown;
use crate::player::{
    BrowserPlay, Cmcd, LivePlay, Player, PlayerLibrary, Rule, Seek, constant_rate_video, describe_ladder,
};
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
    "requests", "whole number", "no limit", "300",
        "The most requests of a client for a live stream, manifests included: after them it gives up. Required for a server with a `url`.";
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
    "player", "text", "that of the rule", r#""hlsjs""#,
        "The player in a browser: `hlsjs` (hls.js, HLS) or `dashjs` (dash.js, DASH); h123's own client has no use for it.";
    "cmcd", "text", "none", r#""query""#,
        "Whether requests carry CMCD keys (CTA-5004): in `headers`, or in the `query`.";
};

/// The segments of one presentation: each leaves a few rows in memory until the run is stored.
const MOST_SEGMENTS: u32 = 10_000;
const MOST_SEEKS: usize = 100;
const MOST_REQUESTS: u64 = 1_000_000;
/// Servers that serve files have one of each representation.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;
/// The keys of media on demand and of live streams exclude each other.
const ON_DEMAND_KEYS: [&str; 5] = ["media", "ladder", "segment", "segments", "seek"];
const LADDER_KEYS: [&str; 3] = ["ladder", "segment", "segments"];
const LIVE_KEYS: [&str; 4] = ["latency", "catch_up", "duration", "requests"];

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
    /// The player in a browser, if the study names it.
    library: Option<Placed<PlayerLibrary>>,
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
    let library = read_library(table, rule, &source)?;
    let seeks = read_seeks(table)?;
    Ok(PlayerEntry { source, goal_ns, startup_ns, rebuffer_ns, rule, fixed, seeks, cmcd, library })
}

impl PlayerEntry {
    /// The player with its media.
    ///
    /// # Errors
    /// There are no such media, or a key contradicts them.
    pub(super) fn resolve(&self, media: &mut MediaSet, library: &impl Library) -> Result<Player, InputError> {
        let mut origin = None;
        let (presentation, live, browser) = match &self.source {
            PlayedSource::ConstantRate(presentation) => (presentation.clone(), None, None),
            PlayedSource::Media(name) => {
                let media = media.find(name, library)?;
                origin = media.site().map(|site| site.origin.clone());
                (media.presentation.clone(), None, self.in_browser(|player| manifest_of(media, player)))
            }
            PlayedSource::Live(live) => {
                let manifest = |player: PlayerLibrary| {
                    Some(live.manifest.clone()).filter(|manifest| player.takes(manifest))
                };
                (Presentation::default(), Some(live.clone()), self.in_browser(manifest))
            }
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
            browser,
            origin,
        };
        player.startup_ns = self.startup_ns.unwrap_or(player.default_startup_ns());
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

impl PlayerEntry {
    /// The player in a browser, if the study names it.
    pub(super) const fn library(&self) -> Option<&Placed<PlayerLibrary>> {
        self.library.as_ref()
    }

    /// How a browser plays it: with the named player, or with the one whose rule it is.
    fn in_browser(&self, manifest: impl Fn(PlayerLibrary) -> Option<String>) -> Option<BrowserPlay> {
        let named = self.library.as_ref().map(|library| library.value);
        let library = named.or_else(|| PlayerLibrary::of_rule(self.rule))?;
        Some(BrowserPlay { library, manifest: manifest(library)? })
    }
}

/// The manifest of media for a player; modelled media has nothing to decode.
fn manifest_of(media: &Media, library: PlayerLibrary) -> Option<String> {
    let MediaSource::Folder(of) = &media.source else { return None };
    let file = if library.takes(&of.manifest) { of.manifest.as_str() } else { library.manifest() };
    let path = format!("{}{file}", media.folder());
    of.files.contains_key(&path).then_some(path)
}

fn read_library(
    table: &Table<'_>,
    rule: Rule,
    source: &PlayedSource,
) -> Result<Option<Placed<PlayerLibrary>>, InputError> {
    let Some(library) = table.named::<PlayerLibrary>("player")? else { return Ok(None) };
    let (title, rules) = (library.value.title(), library.value.rules());
    if !rules.contains(&rule.name()) {
        let rules = rules.join("`, `");
        return Err(library.error(format!(
            "`player`: {title} has the rules `{rules}`, not `{}`; change `rule`",
            rule.name()
        )));
    }
    match source {
        PlayedSource::ConstantRate(_) => Err(library.error(
            "`player`: there is nothing to decode in `ladder`; name `media` of a `folder`, or a `manifest`",
        )),
        PlayedSource::Live(live) if !library.value.takes(&live.manifest) => Err(library.error(format!(
            "`player`: {title} plays manifests that end in `.{}`; change `player` or `manifest`",
            library.value.extension()
        ))),
        _ => Ok(Some(library)),
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
        most_requests: table.integer("requests", 1..=MOST_REQUESTS)?.map(|requests| requests.value),
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

#[cfg(test)]
mod tests {
    use super::super::tests::{SHORT, parse};
    use super::*;

    const VIDEO: &str = "kind = \"player\"\nmedia = \"film\"\nbuffer = \"12s\"\nrule = \"dashjs\"\n";
    const LIVE: &str = "kind = \"player\"\nmanifest = \"/live/main.m3u8\"\nlatency = \"9s\"\nduration = \"20s\"\n\
                        buffer = \"12s\"\nrule = \"fixed\"\nrepresentation = \"1Mbit/s\"\n";

    /// How a browser plays the workload with these keys.
    fn played(keys: &str, client: &str) -> Result<Option<BrowserPlay>, String> {
        let study = SHORT.replace("page_load_time", "request_time");
        let study = study.replace("[matrix]\n", &format!("[matrix]\nclient = [\"{client}\"]\n"));
        let media = "[media.film]\nfolder = \"made\"\n[media.model]\nsegment = \"1s\"\nlength = \"2s\"\n\
                     video = { ladder = [\"1Mbit/s\"] }\n";
        let plan = parse(&study.replace("kind = \"page\"\npage = \"small\"", &format!("{keys}{media}")))?;
        Ok(plan.workloads[0].workload.player().unwrap().browser.clone())
    }

    #[test]
    fn a_browser_plays_with_the_named_player_or_the_one_of_the_rule() {
        let dash = |manifest: &str| {
            Some(BrowserPlay { library: PlayerLibrary::DashJs, manifest: manifest.to_owned() })
        };
        assert_eq!(played(VIDEO, "h2load").unwrap(), dash("/media/film/manifest.mpd"));
        assert_eq!(played(VIDEO, "h123").unwrap(), dash("/media/film/manifest.mpd"), "the rule names it");
        assert_eq!(played(&VIDEO.replace("dashjs", "hlsjs"), "h2load").unwrap(), None, "it has no HLS");
        assert_eq!(played(&VIDEO.replace("dashjs", "bola"), "h2load").unwrap(), None);
        assert_eq!(played(&VIDEO.replace("film", "model"), "h2load").unwrap(), None, "nothing to decode");
        assert_eq!(played(LIVE, "h2load").unwrap(), None, "no rule of a player");
        let live = played(&format!("{LIVE}player = \"hlsjs\"\n"), "h2load").unwrap().unwrap();
        assert_eq!((live.library, live.manifest.as_str()), (PlayerLibrary::HlsJs, "/live/main.m3u8"));
    }

    #[test]
    fn a_player_that_cannot_play_is_refused() {
        let named = |keys: &str, player: &str| format!("{keys}player = \"{player}\"\n");
        let ladder =
            VIDEO.replace("media = \"film\"", "ladder = [\"1Mbit/s\"]\nsegment = \"2s\"\nsegments = 3");
        for (keys, client, expected) in [
            (named(VIDEO, "dashjs"), "h123", "dash.js plays in browsers, and the client `h123` is none"),
            (named(VIDEO, "hlsjs"), "h2load", "hls.js has the rules `fixed`, `hlsjs`, not `dashjs`"),
            (named(LIVE, "dashjs"), "h2load", "dash.js plays manifests that end in `.mpd`"),
            (named(&ladder, "dashjs"), "h2load", "there is nothing to decode in `ladder`"),
            (named(VIDEO, "vlc"), "h2load", "`vlc` is not a player of browsers"),
        ] {
            let fault = played(&keys, client).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
