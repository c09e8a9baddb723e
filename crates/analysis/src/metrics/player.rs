//! What the viewer of a video saw, from the events of its player.

use model::media::TrackKind;
use model::number::float;
use model::player::{PlayerEvent, PlayerEventKind};
use model::sample::Sample;

use super::{Better, Metric, PLAYER, Table, View, count, duration, of_client, request_duration};

const READS: &[Table] = &[Table::Player];
const FIRST_REQUEST: &str = "first segment requested; in a browser: the player gets the manifest";
const FIRST_SEGMENT: &str = "first segment of the video arrived";
const LAST_MEDIA: &str = "last media shown; only if the video was played to its end";

/// What a change of the representation, a second of stalls, and a second of start-up cost in the QoE score:
/// λ, μ and μs of the balanced preferences in Yin et al. (SIGCOMM 2015), section 5.1, for qualities in
/// Mbit/s.
const SWITCH_WEIGHT: f64 = 1.0;
const STALL_WEIGHT: f64 = 3.0;
const STARTUP_WEIGHT: f64 = 3.0;

pub(super) const METRICS: &[Metric] = &[
    Metric {
        start: FIRST_REQUEST,
        end: "playback begins; in a browser: the first frame is shown",
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
        start: "playback begins",
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(duration("longest_stall", "Longest stall", PLAYER, |view| {
            whole(view).map(|playback| float(playback.longest_stall_ns))
        }))
    },
    Metric {
        start: "playback jumps",
        end: "playback resumes; the mean of all jumps",
        reads: READS,
        ..of_client(duration("seek_time", "Time to resume after a seek", PLAYER, |view| {
            let playback = playback(view).filter(|playback| playback.seeks > 0)?;
            Some(float(playback.sought_ns) / float(playback.seeks))
        }))
    },
    Metric {
        unit: "bit/s",
        better: Better::Higher,
        start: FIRST_SEGMENT,
        end: "last segment of the video arrived; each segment has the weight of its duration",
        reads: READS,
        ..of_client(count("mean_representation", "Mean representation", PLAYER, mean_representation))
    },
    Metric {
        better: Better::Lower,
        start: FIRST_SEGMENT,
        end: "last segment of the video arrived; counts changes between consecutive segments",
        reads: READS,
        ..of_client(count("representation_switches", "Representation switches", PLAYER, |view| {
            whole(view).map(|playback| float(playback.switches))
        }))
    },
    Metric {
        unit: "bit/s",
        better: Better::Lower,
        start: FIRST_SEGMENT,
        end: "last segment of the video arrived; the mean difference between consecutive segments that differ",
        reads: READS,
        ..of_client(count("switch_size", "Mean size of a switch", PLAYER, |view| {
            let playback = whole(view).filter(|playback| playback.switches > 0)?;
            Some(playback.switched_bits_per_s / float(playback.switches))
        }))
    },
    Metric {
        start: "end of the newest segment that the manifest lists, in the media's time",
        end: "media shown; the mean over the segments of the video",
        reads: READS,
        ..of_client(duration("live_latency", "Live latency", PLAYER, |view| {
            let playback = playback(view).filter(|playback| playback.latencies > 0)?;
            Some(playback.latency_ns / float(playback.latencies))
        }))
    },
    Metric {
        better: Better::Higher,
        start: FIRST_REQUEST,
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("qoe", "Linear QoE score", PLAYER, |view| whole(view)?.qoe()))
    },
    Metric {
        start: FIRST_REQUEST,
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("frames", "Frames due", PLAYER, |view| {
            view.player.iter().rev().find_map(|event| event.frames).map(float)
        }))
    },
    Metric {
        better: Better::Lower,
        start: FIRST_REQUEST,
        end: LAST_MEDIA,
        reads: READS,
        ..of_client(count("dropped_frames", "Frames dropped", PLAYER, |view| {
            view.player.iter().rev().find_map(|event| event.dropped_frames).map(float)
        }))
    },
    Metric {
        start: "the client begins",
        end: "the client ends; CPU time of its processes by the time that passed: 1 is one CPU",
        reads: &[Table::Clients],
        ..count("client_cpu_load", "CPU load of the client", PLAYER, client_cpu_load)
    },
    Metric {
        unit: "bit/s",
        better: Better::Higher,
        start: "request sent",
        end: "last byte of its response; only requests that succeeded",
        ..request_duration("request_throughput", "Throughput of a request", PLAYER, request_throughput)
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
    longest_stall_ns: u64,
    stalls: u64,
    /// From jumps until playback resumed.
    sought_ns: u64,
    seeks: u64,
    /// The segments of the video, or of the audio without one.
    segments: u64,
    /// The duration of all of them, and their representations with these weights.
    media_ns: u64,
    weighted_bits_per_s: f64,
    /// The sum of their representations.
    bits_per_s: f64,
    switches: u64,
    /// The sum of the differences.
    switched_bits_per_s: f64,
    /// The sum of the latencies, and their number.
    latency_ns: f64,
    latencies: u64,
}

impl Playback {
    /// From the events of one client, in the order of time.
    fn of<'a>(events: impl Iterator<Item = &'a PlayerEvent> + Clone) -> Option<Playback> {
        let has_video = events.clone().any(|event| event.track == Some(TrackKind::Video));
        let main = if has_video { TrackKind::Video } else { TrackKind::Audio };
        let mut playback: Option<Playback> = None;
        let (mut waiting, mut before) = (None, None);
        for event in events {
            let own = playback.get_or_insert(Playback { began_ns: event.at_ns, ..Playback::default() });
            match event.what {
                PlayerEventKind::Playing => {
                    own.playing_ns.get_or_insert(event.at_ns);
                    if let Some(since) = waiting.take() {
                        own.resume(since, event.at_ns);
                    }
                }
                PlayerEventKind::Stalled => {
                    waiting = Some((PlayerEventKind::Stalled, event.at_ns));
                    own.stalls += 1;
                }
                PlayerEventKind::Seeked => waiting = Some((PlayerEventKind::Seeked, event.at_ns)),
                PlayerEventKind::Arrived if event.track == Some(main) => {
                    own.add_segment(event, before.replace(event.bits_per_s));
                }
                PlayerEventKind::Ended => own.ended_ns = Some(event.at_ns),
                PlayerEventKind::Opened
                | PlayerEventKind::Requested
                | PlayerEventKind::Arrived
                | PlayerEventKind::Failed
                | PlayerEventKind::Abandoned
                | PlayerEventKind::GaveUp => {}
            }
        }
        playback
    }

    /// Playback continues after a stall or a jump.
    fn resume(&mut self, (why, since_ns): (PlayerEventKind, u64), now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(since_ns);
        if why == PlayerEventKind::Stalled {
            self.stalled_ns += waited_ns;
            self.longest_stall_ns = self.longest_stall_ns.max(waited_ns);
        } else {
            self.sought_ns += waited_ns;
            self.seeks += 1;
        }
    }

    fn add_segment(&mut self, event: &PlayerEvent, before: Option<u64>) {
        let rate = float(event.bits_per_s);
        self.segments += 1;
        self.media_ns = self.media_ns.saturating_add(event.segment_ns);
        self.bits_per_s += rate;
        self.weighted_bits_per_s += rate * float(event.segment_ns);
        if let Some(before) = before.filter(|before| *before != event.bits_per_s) {
            self.switches += 1;
            self.switched_bits_per_s += (rate - float(before)).abs();
        }
        if let Some(latency_ns) = event.latency_ns {
            self.latency_ns += float(latency_ns);
            self.latencies += 1;
        }
    }

    /// The score of Yin et al. (SIGCOMM 2015), equation 5, with the bit rate in Mbit/s as the quality: the
    /// sum of qualities − λ × the sum of their changes − μ × stalls − μs × start-up, in seconds.
    fn qoe(&self) -> Option<f64> {
        let startup_ns = self.playing_ns?.saturating_sub(self.began_ns);
        let seconds = |ns: u64| float(ns) / 1e9;
        let quality = (self.bits_per_s - SWITCH_WEIGHT * self.switched_bits_per_s) / 1e6;
        Some(quality - STALL_WEIGHT * seconds(self.stalled_ns) - STARTUP_WEIGHT * seconds(startup_ns))
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
    let waited_ns = playback.stalled_ns.saturating_add(playback.sought_ns);
    let shown_ns = playback.ended_ns?.saturating_sub(began_ns).saturating_sub(waited_ns);
    Some(float(shown_ns) / playback.wall_ns()?)
}

fn mean_representation(view: &View<'_>) -> Option<f64> {
    let playback = whole(view).filter(|playback| playback.media_ns > 0)?;
    Some(playback.weighted_bits_per_s / float(playback.media_ns))
}

/// CPUs that the group's processes used on average.
fn client_cpu_load(view: &View<'_>) -> Option<f64> {
    let began_ns = view.clients().map(|client| client.started_ns).min()?;
    let ended_ns = view.clients().map(|client| client.finished_ns).max()?;
    let cpu_ns: u64 =
        view.clients().map(|client| client.cpu_user_ns.saturating_add(client.cpu_system_ns)).sum();
    let took_ns = ended_ns.checked_sub(began_ns).filter(|took_ns| *took_ns > 0)?;
    (cpu_ns > 0).then(|| float(cpu_ns) / float(took_ns))
}

/// In whole bit/s.
fn request_throughput(sample: &Sample) -> Option<u64> {
    let took_ns = sample.done_ns?.checked_sub(sample.sent_ns?).filter(|took_ns| *took_ns > 0)?;
    let bits = u128::from(sample.response_body_bytes) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(took_ns)).ok().filter(|_| sample.outcome.is_ok())
}

#[cfg(test)]
mod tests {
    use model::WorkloadKind;
    use model::player::PlayerEventKind;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent, summary_of};
    use crate::metrics::METRICS;

    const OWN: [&str; 9] = [
        "startup_time",
        "stall_share",
        "played_share",
        "stalls",
        "longest_stall",
        "mean_representation",
        "representation_switches",
        "switch_size",
        "qoe",
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
            ("switch_size", 1.5e6),
            ("longest_stall", 400e6),
            // 7 Mbit/s of four segments, 3 of two changes, 3 × 0.4 s of stalls, 3 × 0.6 s of start-up.
            ("qoe", 7.0 - 3.0 - 1.2 - 1.8),
        ] {
            let found = run.value(name).unwrap();
            assert!((found - value).abs() < 1e-9, "{name}: {found}");
        }
        assert_eq!((run.value("seek_time"), run.value("live_latency")), (None, None));
        let throughput = &run.metrics["request_throughput"];
        // 62.5 kB within 600 ms.
        assert_eq!((throughput.count(), throughput.quantile(0.0)), (4, Some(833_333.0)));
        let share = run.value("stall_share").unwrap();
        assert!((share - 0.4 / 3.0).abs() < 1e-12, "{share}");
        let share = run.value("played_share").unwrap();
        assert!((share - 2.0 / 3.0).abs() < 1e-12, "{share}");
        assert_eq!(run.metrics["request_time"].count(), 4, "each segment is a request");
    }

    #[test]
    fn waiting_after_a_jump_is_no_stall() {
        let mut bench = Bench::player(&[Variant::H2]);
        for event in &mut bench.records[0].player {
            if event.what == PlayerEventKind::Stalled {
                event.what = PlayerEventKind::Seeked;
            }
            event.latency_ns = Some(3_000_000_000);
        }
        let run = summary_of(&bench.plan, &bench.records[0]);
        assert_eq!((run.value("stalls"), run.value("seek_time")), (Some(0.0), Some(400e6)));
        assert!((run.value("played_share").unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(run.value("live_latency"), Some(3e9));
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
