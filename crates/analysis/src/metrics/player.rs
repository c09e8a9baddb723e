//! What the viewer of a video saw, from the events of its player.

use model::number::float;
use model::player::{PlayerEvent, PlayerEventKind};

use super::{Better, Metric, PLAYER, Table, View, count, duration, of_client};

const READS: &[Table] = &[Table::Player];
const FIRST_REQUEST: &str = "first segment requested";
const FIRST_SEGMENT: &str = "first segment arrived";
const LAST_MEDIA: &str = "last media shown; only if the video was played to its end";

pub(super) const METRICS: &[Metric] = &[
    Metric {
        start: FIRST_REQUEST,
        end: "playback begins",
        reads: READS,
        ..of_client(duration("startup_time", "Start-up time", PLAYER, |view| {
            let playback = playback(view)?;
            playback.playing_ns?.checked_sub(playback.began_ns).map(float)
        }))
    },
    Metric {
        better: Better::Lower,
        ceiling: Some(1.0),
        start: FIRST_REQUEST,
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("stall_share", "Share of time stalled", PLAYER, |view| {
            let playback = whole(view)?;
            Some(float(playback.stalled_ns) / playback.wall_ns()?)
        }))
    },
    Metric {
        better: Better::Higher,
        ceiling: Some(1.0),
        start: FIRST_REQUEST,
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("played_share", "Share of time played", PLAYER, played_share))
    },
    Metric {
        better: Better::Lower,
        start: "playback begins",
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("stalls", "Stalls", PLAYER, |view| Some(float(whole(view)?.stalls))))
    },
    Metric {
        unit: "bit/s",
        better: Better::Higher,
        start: FIRST_SEGMENT,
        end: "last segment arrived; each segment has the weight of its duration",
        reads: READS,
        ..of_client(count("mean_representation", "Mean representation", PLAYER, mean_representation))
    },
    Metric {
        better: Better::Lower,
        start: FIRST_SEGMENT,
        end: "last segment arrived; counts changes between consecutive segments",
        reads: READS,
        ..of_client(count("representation_switches", "Representation switches", PLAYER, |view| {
            whole(view).map(|playback| float(playback.switches))
        }))
    },
];

/// The playback of one player's video.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Playback {
    began_ns: u64,
    playing_ns: Option<u64>,
    /// When the last media was shown.
    ended_ns: Option<u64>,
    stalled_ns: u64,
    stalls: u64,
    segments: u64,
    /// The sum of the representations of all segments.
    bits_per_s: f64,
    switches: u64,
}

impl Playback {
    /// From the events of one client, in the order of time.
    fn of<'a>(events: impl Iterator<Item = &'a PlayerEvent>) -> Option<Playback> {
        let mut playback: Option<Playback> = None;
        let (mut stalled_since, mut before) = (None, None);
        for event in events {
            let own = playback.get_or_insert(Playback { began_ns: event.at_ns, ..Playback::default() });
            match event.what {
                PlayerEventKind::Playing => {
                    own.playing_ns.get_or_insert(event.at_ns);
                    let since: Option<u64> = stalled_since.take();
                    own.stalled_ns += since.map_or(0, |since| event.at_ns.saturating_sub(since));
                }
                PlayerEventKind::Stalled => {
                    stalled_since = Some(event.at_ns);
                    own.stalls += 1;
                }
                PlayerEventKind::Arrived => {
                    own.segments += 1;
                    own.bits_per_s += float(event.bits_per_s);
                    let last = before.replace(event.bits_per_s);
                    own.switches += u64::from(last.is_some_and(|last| last != event.bits_per_s));
                }
                PlayerEventKind::Ended => own.ended_ns = Some(event.at_ns),
                PlayerEventKind::Requested | PlayerEventKind::Failed => {}
            }
        }
        playback
    }

    /// From the first request to the last media shown.
    fn wall_ns(&self) -> Option<f64> {
        self.ended_ns?.checked_sub(self.began_ns).filter(|wall_ns| *wall_ns > 0).map(float)
    }
}

/// The playback of a client.
fn playback(view: &View<'_>) -> Option<Playback> {
    Playback::of(view.player.iter().copied())
}

/// The playback of a video that was played to its end.
fn whole(view: &View<'_>) -> Option<Playback> {
    playback(view).filter(|playback| playback.ended_ns.is_some())
}

/// Unlike the share of time stalled it is never 0, so that its ratio always exists.
fn played_share(view: &View<'_>) -> Option<f64> {
    let playback = whole(view)?;
    let began_ns = playback.playing_ns?;
    let shown_ns = playback.ended_ns?.saturating_sub(began_ns).saturating_sub(playback.stalled_ns);
    Some(float(shown_ns) / playback.wall_ns()?)
}

/// All segments have the same duration, so the mean over segments is the mean over media time.
fn mean_representation(view: &View<'_>) -> Option<f64> {
    let playback = whole(view).filter(|playback| playback.segments > 0)?;
    Some(playback.bits_per_s / float(playback.segments))
}

#[cfg(test)]
mod tests {
    use model::WorkloadKind;
    use model::player::PlayerEventKind;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent, summary_of};
    use crate::metrics::METRICS;

    const OWN: [&str; 6] = [
        "startup_time",
        "stall_share",
        "played_share",
        "stalls",
        "mean_representation",
        "representation_switches",
    ];

    #[test]
    fn a_playback_is_measured_from_its_events() {
        let bench = Bench::player(&[Variant::H2]);
        let run = summary_of(&bench.plan, &bench.records[0]);
        // Four segments of 500 ms: playing after 600 ms, 400 ms of stall before the third, 3 s in all.
        for (name, value) in [
            ("startup_time", 600e6),
            ("stalls", 1.0),
            ("mean_representation", 1.75e6),
            ("representation_switches", 2.0),
        ] {
            assert_eq!(run.value(name), Some(value), "{name}");
        }
        let share = run.value("stall_share").unwrap();
        assert!((share - 0.4 / 3.0).abs() < 1e-12, "{share}");
        let share = run.value("played_share").unwrap();
        assert!((share - 2.0 / 3.0).abs() < 1e-12, "{share}");
        assert_eq!(run.metrics["request_time"].count(), 4, "each segment is a request");
    }

    #[test]
    fn a_player_that_gave_up_has_no_share_of_anything() {
        let mut bench = Bench::player(&[Variant::H2]);
        let events = &mut bench.records[0].player;
        events.retain(|event| event.at_ns < 2_000_000_000);
        events.last_mut().unwrap().what = PlayerEventKind::Failed;
        let run = summary_of(&bench.plan, &bench.records[0]);
        assert_eq!(run.value("startup_time"), Some(600e6));
        OWN[1..].iter().for_each(|name| assert_eq!(run.value(name), None, "{name}"));
        bench.records[0].player.clear();
        assert_eq!(summary_of(&bench.plan, &bench.records[0]).value("startup_time"), None);
    }

    #[test]
    fn other_workloads_have_none_of_it() {
        for bench in [Bench::page(&[Variant::H2]), Bench::closed(&[Variant::H2])] {
            let run = summary_of(&bench.plan, &bench.records[0]);
            OWN.iter().for_each(|name| assert_eq!(run.value(name), None, "{name}"));
        }
        for metric in METRICS.iter().filter(|metric| OWN.contains(&metric.name)) {
            assert_eq!(metric.workloads, [WorkloadKind::Player]);
        }
    }

    #[test]
    fn what_a_rule_chooses_is_no_difference_of_work() {
        let mut bench = Bench::player(&[Variant::H1s, Variant::H2]);
        for sample in bench.records.iter_mut().filter(|record| record.cell == 1).flat_map(|r| &mut r.samples)
        {
            sample.response_body_bytes *= 2;
            sample.expected_body_bytes = Some(sample.response_body_bytes);
        }
        passes("workloads_match", &bench);
        for check in ["urls", "omission", "saturation", "steady_state"] {
            silent(check, &bench);
        }
    }
}
