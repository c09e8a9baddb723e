//! A video that a player in a page of a browser plays, as the rows and the report of a run.

use std::borrow::Cow;
use std::time::Duration;

use model::assignment::{Assignment, ClientReport};
use model::number::float;
use model::player::{BrowserPlay, MediaResource, Player, Rule};
use model::sample::{FailureKind, Outcome, Sample};
use model::url::Url;
use model::variant::HttpVersion;
use serde_json::{Value, json};
use workload::formats::page_load::{
    LoadedRequest, PageLoad, PageRows, WantedPage, WantedResource, http_version,
};
use workload::formats::playback::{Playback, PlaybackEnd, PlaybackReader};

use super::description::Browser;
use super::players;
use super::report::{LoadCost, external_report};
use crate::client::ClientOutcome;

/// The event at which a playback in a browser begins.
const BEGINS: &str = "the player is given the manifest";
const NANOS_PER_S: f64 = 1e9;

/// What was observed of a playback.
pub(super) struct Observed {
    pub(super) load: PageLoad,
    /// What the page told.
    pub(super) log: Value,
    /// When the page's clock began, in nanoseconds since the run's start.
    pub(super) origin_ns: u64,
    pub(super) cost: LoadCost,
    /// A failure if the browser could not go on.
    pub(super) outcome: Outcome,
}

/// The longest time of a playback that nothing stalls.
pub(super) fn least_time(player: &Player) -> Duration {
    Duration::from_nanos(player.media_ns())
}

/// What the page's function `play` is given.
pub(super) fn options(player: &Player, play: &BrowserPlay) -> Value {
    let seconds = |ns: u64| float(ns) / NANOS_PER_S;
    let seeks =
        player.seeks.iter().map(|seek| json!({ "at": seconds(seek.at_ns), "to": seconds(seek.to_ns) }));
    let fixed = match player.rule {
        Rule::Fixed { bits_per_s } => {
            let ladder = player.ladder_bits_per_s();
            let place = ladder.iter().position(|rate| *rate == bits_per_s);
            json!({ "bitsPerSecond": bits_per_s, "place": place, "count": ladder.len() })
        }
        _ => Value::Null,
    };
    let live = player.live.as_ref().map(|live| {
        json!({
            "latency": seconds(live.latency_ns),
            "catchUp": live.catch_up,
            "seconds": seconds(live.duration_ns),
        })
    });
    json!({
        "manifest": play.manifest,
        "buffer": seconds(player.goal_ns),
        "rule": player.rule.name(),
        "fixed": fixed,
        "live": live,
        "seeks": seeks.collect::<Vec<_>>(),
    })
}

impl Browser {
    /// The rows and the report of a playback. All rows are kept, also if the outcome is a failure.
    pub(super) fn outcome_of_playback(
        &self,
        version: &str,
        observed: Observed,
        (player, play): (&Player, &BrowserPlay),
        document: &Url,
        assignment: &Assignment,
    ) -> ClientOutcome {
        let Observed { load, log, origin_ns, cost, outcome } = observed;
        let http = assignment.target.variant.http();
        let fault = page_fault(&load.requests, http);
        let resources = player.resources();
        let wanted = WantedPage { group: assignment.group, resources: &wanted(&resources), document, http };
        let PageRows { samples, connections, urls, contents } = load.rows(&wanted);
        // The page and its script are no part of the video, but they open the connection.
        let of_video = load.requests.iter().zip(samples).filter(|(request, _)| !is_page(request));
        let samples: Vec<Sample> =
            (0..).zip(of_video).map(|(request, (_, sample))| Sample { request, ..sample }).collect();
        let reader = PlaybackReader { group: assignment.group, player, document, origin_ns };
        let playback = reader.read(&log);
        let outcome = fault.unwrap_or_else(|| end_of(outcome, &playback, player, play));
        let Playback { events, version: of_player, .. } = playback;
        let started_ns = load.events.began_ns;
        let done_ns = samples.iter().filter_map(|sample| sample.done_ns);
        let done_ns = done_ns.chain(events.last().map(|event| event.at_ns)).max();
        let mut page_events = load.events;
        page_events.group = assignment.group;
        let program = format!("{version} with {} {of_player}", play.library.title());
        ClientOutcome {
            outcome,
            samples,
            connections,
            player: events,
            page_events: vec![page_events],
            report: ClientReport {
                urls,
                contents,
                unfinished: load.unfinished,
                external: Some(Box::new(external_report(self, &program, BEGINS, assignment))),
                ..cost.report(started_ns, done_ns)
            },
        }
    }
}

fn wanted(resources: &[MediaResource]) -> Vec<WantedResource<'_>> {
    resources.iter().map(|resource| (Cow::from(&resource.path), resource.bytes)).collect()
}

fn is_page(request: &LoadedRequest) -> bool {
    Url::parse(&request.url).is_ok_and(|url| url.path.starts_with(players::FOLDER))
}

/// Why the page of the player or its script is not there as the cell wants it, if so.
fn page_fault(requests: &[LoadedRequest], http: HttpVersion) -> Option<Outcome> {
    requests.iter().filter(|request| is_page(request)).find_map(|request| {
        let url = &request.url;
        if let Some((kind, reason)) = &request.failure {
            return Some(Outcome::failed(*kind, format!("the player's page {url} failed: {reason}")));
        }
        let protocol = request.protocol.as_deref().unwrap_or("unknown");
        if http_version(protocol) != Some(http) {
            let reason = format!("the player's page {url} used the protocol `{protocol}`, not {}", http.name());
            return Some(Outcome::failed(FailureKind::WrongVersion, reason));
        }
        let status = request.status.filter(|status| *status != 200)?;
        let reason = format!(
            "the server answers the player's page {url} with the status {status}; use a server that serves files of h123"
        );
        Some(Outcome::failed(FailureKind::WrongStatus, reason))
    })
}

/// The outcome of a playback whose page was there.
fn end_of(outcome: Outcome, playback: &Playback, player: &Player, play: &BrowserPlay) -> Outcome {
    let title = play.library.title();
    match (&playback.end, player.rule) {
        (PlaybackEnd::GaveUp(reason), _) => {
            let fault = playback.events.iter().rev().find_map(|event| event.fault);
            let fault = fault.map_or(String::new(), |fault| format!(" ({fault})"));
            Outcome::failed(FailureKind::Client, format!("{title} gave up{fault}: {reason}"))
        }
        (PlaybackEnd::Unfinished, _) if outcome.is_ok() => {
            Outcome::failed(FailureKind::Client, format!("{title} did not tell how the video ended"))
        }
        (PlaybackEnd::Ended, Rule::Fixed { bits_per_s }) if player.is_fixed() => {
            match playback.segments_besides(bits_per_s) {
                0 => outcome,
                others => Outcome::failed(
                    FailureKind::Client,
                    format!("{title} played {others} segments of other representations than the fixed one"),
                ),
            }
        }
        (PlaybackEnd::Ended | PlaybackEnd::Unfinished, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use model::media::TrackKind;
    use model::player::{PlayerEvent, PlayerEventKind};

    use super::*;

    fn request(path: &str, protocol: &str, status: u16) -> LoadedRequest {
        LoadedRequest {
            url: format!("https://server:1{path}"),
            protocol: Some(protocol.to_owned()),
            status: Some(status),
            ..LoadedRequest::default()
        }
    }

    #[test]
    fn the_page_of_a_player_is_asserted_and_has_no_rows() {
        let of = |protocol: &str, status: u16| {
            let page = request("/h123-player/hlsjs.html", protocol, status);
            assert!(is_page(&page) && !is_page(&request("/media/film/1.m4s", "h2", 200)));
            page_fault(&[page], HttpVersion::Http3)
        };
        assert_eq!(of("h3", 200), None);
        for (protocol, status, expected) in [("h2", 200, "`h2`, not HTTP/3"), ("h3", 404, "the status 404")] {
            let Some(Outcome::Failed(failure)) = of(protocol, status) else { panic!("{protocol}") };
            assert!(failure.reason.contains(expected), "{}", failure.reason);
        }
    }

    #[test]
    fn a_fixed_representation_is_asserted() {
        let event = |bits_per_s| PlayerEvent {
            what: PlayerEventKind::Arrived,
            track: Some(TrackKind::Video),
            bits_per_s,
            ..PlayerEvent::default()
        };
        let play = BrowserPlay { library: model::player::PlayerLibrary::HlsJs, manifest: String::new() };
        let player = Player {
            presentation: model::player::constant_rate_video(&[1_000, 2_000], 1_000_000_000, 2),
            goal_ns: 1,
            startup_ns: 1,
            rebuffer_ns: 1,
            rule: Rule::Fixed { bits_per_s: 1_000 },
            seeks: Vec::new(),
            live: None,
            cmcd: None,
            browser: Some(play.clone()),
            origin: None,
        };
        let end = |events: &[u64], end: PlaybackEnd| {
            let events = events.iter().map(|bits_per_s| event(*bits_per_s)).collect();
            let playback = Playback { events, end, version: String::new() };
            end_of(Outcome::Ok, &playback, &player, &play)
        };
        assert_eq!(end(&[1_000, 1_000], PlaybackEnd::Ended), Outcome::Ok);
        for (events, ended) in [
            (&[1_000, 2_000][..], PlaybackEnd::Ended),
            (&[], PlaybackEnd::Unfinished),
            (&[], PlaybackEnd::GaveUp("x".to_owned())),
        ] {
            assert!(!end(events, ended.clone()).is_ok(), "{ended:?}");
        }
        assert_eq!(players::refuses("chromium", &player), None);
        let given = options(&player, &play);
        assert_eq!(given["fixed"], json!({ "bitsPerSecond": 1_000, "place": 0, "count": 2 }));
        assert!(
            players::refuses("chromium", &Player { startup_ns: 2, goal_ns: 9, ..player.clone() }).is_some()
        );
        let without = players::refuses("chromium", &Player { browser: None, ..player.clone() }).unwrap();
        assert!(without.contains("hls.js or dash.js"), "{without}");
    }
}
