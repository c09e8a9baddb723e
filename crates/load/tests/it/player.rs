//! A video over real sockets: played to its end on every variant, and given up if no server answers.

use std::net::TcpListener;

use model::media::{ByteRange, Segment, TrackKind};
use model::player::{Cmcd, Player, PlayerEventKind, PlayerFault, Rule, Seek, constant_rate_video};
use model::sample::FailureKind;
use model::{Clients, HttpVersion, Outcome, Start, Variant, Workload};

use crate::{Origin, run};

/// Six segments of 50 ms.
fn video() -> Player {
    Player {
        presentation: constant_rate_video(&[800_000, 1_600_000], 50_000_000, 6),
        goal_ns: 100_000_000,
        startup_ns: 50_000_000,
        rebuffer_ns: 50_000_000,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    }
}

#[test]
fn a_video_is_played_to_its_end_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let report = run(&origin.assignment(variant, Workload::Player(video())));
        assert!(report.samples.iter().all(|sample| sample.outcome.is_ok()), "{variant}: {report:#?}");
        assert_eq!((report.samples.len(), report.connections.len()), (6, 1), "{variant}");
        assert_eq!(report.client.urls, ["/bytes/5000", "/bytes/10000"]);
        let (first, last) = (report.player.first().unwrap(), report.player.last().unwrap());
        assert_eq!((first.what, last.what), (PlayerEventKind::Requested, PlayerEventKind::Ended));
        assert!(last.at_ns - first.at_ns >= video().media_ns(), "no faster than it plays");
        let arrived = report.player.iter().filter(|event| event.what == PlayerEventKind::Arrived);
        assert_eq!(arrived.map(|event| event.segment).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(report.player.iter().all(|event| event.group == 3 && event.buffered_ns <= 150_000_000));
        // Nobody waits for a wake-up: requests are dated by the buffer.
        let intended: Vec<u64> = report.samples.iter().map(|sample| sample.intended_ns).collect();
        let requested = report.player.iter().filter(|event| event.what == PlayerEventKind::Requested);
        assert_eq!(intended, requested.map(|event| event.at_ns).collect::<Vec<_>>());
    }
}

#[test]
fn a_video_that_no_server_has_is_requested_twice_and_abandoned() {
    let origin = Origin::start(Vec::new());
    let player = Player { rule: Rule::Fixed { bits_per_s: 1_600_000 }, ..video() };
    let mut assignment = origin.assignment(Variant::H1, Workload::Player(player));
    // A port that was free a moment ago.
    assignment.target.address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let report = run(&assignment);
    assert_eq!(report.samples.len(), 2, "{report:#?}");
    assert!(report.samples.iter().all(|sample| matches!(sample.outcome, Outcome::Failed(_))));
    use PlayerEventKind::{Failed, Requested};
    let (last, segments) = report.player.split_last().unwrap();
    let events: Vec<_> = segments.iter().map(|event| (event.what, event.bits_per_s)).collect();
    let expected = [(Requested, 1_600_000), (Failed, 1_600_000), (Requested, 800_000), (Failed, 800_000)];
    assert_eq!(events, expected);
    assert_eq!((last.what, last.fault), (PlayerEventKind::GaveUp, Some(PlayerFault::SegmentFailed)));
}

/// Whether a version answers several requests of one connection at the same time.
fn is_multiplexed(variant: Variant) -> bool {
    variant.http() != HttpVersion::Http11
}

#[test]
fn tracks_are_fetched_at_the_same_time() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let mut player = video();
        let mut audio = constant_rate_video(&[80_000], 100_000_000, 3).tracks.remove(0);
        audio.kind = TrackKind::Audio;
        player.presentation.tracks.push(audio);
        player.cmcd = Some(if variant.is_quic() { Cmcd::Headers } else { Cmcd::Query });
        let report = run(&origin.assignment(variant, Workload::Player(player)));
        assert!(report.samples.iter().all(|sample| sample.outcome.is_ok()), "{variant}: {report:#?}");
        assert_eq!(report.samples.len(), 6 + 3, "{variant}");
        let connections = if is_multiplexed(variant) { 1 } else { 2 };
        assert_eq!(report.connections.len(), connections, "{variant}");
        let intended = |url: u32| report.samples.iter().find(|sample| sample.url == url).unwrap().intended_ns;
        assert_eq!(intended(0), intended(2), "{variant}: both tracks begin at once");
        let of = |kind| report.player.iter().filter(|event| event.track == Some(kind)).count();
        assert_eq!((of(TrackKind::Video), of(TrackKind::Audio)), (12, 6), "{variant}");
        assert_eq!(report.player.last().unwrap().what, PlayerEventKind::Ended);
    }
}

#[test]
fn what_a_player_gives_up_is_cancelled_on_every_variant() {
    let origin = Origin::start(Vec::new());
    for variant in Variant::ALL {
        let mut player = Player { rule: Rule::Fixed { bits_per_s: 800_000 }, ..video() };
        // The second segment takes longer than the test; the jump leaves it behind.
        let slow = Segment { url: "/delay/50000".to_owned(), range: None, bytes: None };
        player.presentation.tracks[0].representations[0].segments[1] = slow;
        player.seeks = vec![Seek { at_ns: 30_000_000, to_ns: 200_000_000 }];
        let report = run(&origin.assignment(variant, Workload::Player(player)));
        let kinds: Vec<Option<FailureKind>> = report
            .samples
            .iter()
            .map(|sample| sample.outcome.failure().map(|failure| failure.kind))
            .collect();
        assert_eq!(kinds.len(), 4, "{variant}: {report:#?}");
        let cancelled = kinds.iter().filter(|kind| **kind == Some(FailureKind::Cancelled)).count();
        assert_eq!((cancelled, kinds.iter().flatten().count()), (1, 1), "{variant}: {kinds:?}");
        let connections = if is_multiplexed(variant) { 1 } else { 2 };
        assert_eq!(report.connections.len(), connections, "{variant}");
        assert!(report.connections.iter().all(|row| row.outcome.is_ok()), "{variant}: {report:#?}");
        assert_eq!(report.player.last().unwrap().what, PlayerEventKind::Ended, "{variant}");
        assert_eq!(report.client.unfinished, 0, "{variant}");
    }
}

#[test]
fn a_part_of_a_resource_that_comes_whole_has_a_wrong_length() {
    let origin = Origin::start(Vec::new());
    let mut player = video();
    for one in &mut player.presentation.tracks[0].representations {
        for (segment, first) in one.segments.iter_mut().zip((0..).step_by(1000)) {
            segment.url = "/bytes/100000".to_owned();
            segment.range = ByteRange::of_length(first, 1000);
        }
    }
    let report = run(&origin.assignment(Variant::H2, Workload::Player(player)));
    let status = report.samples[0].status.unwrap();
    let last = report.player.last().unwrap();
    if status == 206 {
        assert_eq!(last.what, PlayerEventKind::Ended, "{report:#?}");
        assert!(report.samples.iter().all(|sample| sample.response_body_bytes == 1000));
    } else {
        assert_eq!((status, last.fault), (200, Some(PlayerFault::SegmentFailed)));
        let failure = report.samples[0].outcome.failure().unwrap();
        assert_eq!(
            (failure.kind, failure.reason.as_str()),
            (FailureKind::WrongLength, "100000 body bytes, expected 1000")
        );
    }
}

/// Prints how late a thousand players of 3 Mbit/s are and what they cost. On an idle machine:
/// `cargo test -p load --test it -- --ignored --nocapture players_at_scale`.
#[test]
#[ignore = "measures for two minutes, and asserts only that everything was played"]
fn players_at_scale() {
    let origin = Origin::start(Vec::new());
    for variant in [Variant::H1s, Variant::H2, Variant::H3] {
        let player = Player {
            presentation: constant_rate_video(&[3_000_000], 2_000_000_000, 10),
            goal_ns: 6_000_000_000,
            rule: Rule::Throughput,
            ..video()
        };
        let mut assignment = origin.assignment(variant, Workload::Player(player));
        assignment.clients = Clients::all(1000, Start::Evenly { over_ns: 10_000_000_000 });
        assignment.deadline_ns = assignment.deadline_ns.saturating_mul(5);
        let report = run(&assignment);
        let mut late: Vec<u64> = report
            .samples
            .iter()
            .filter_map(|sample| {
                Some(sample.sent_ns? - sample.intended_ns).filter(|_| sample.request >= 1000)
            })
            .collect();
        late.sort_unstable();
        let at = |share: usize| late[late.len() * share / 1000] / 1000;
        let ended = report.player.iter().filter(|event| event.what == PlayerEventKind::Ended).count();
        let stalls = report.player.iter().filter(|event| event.what == PlayerEventKind::Stalled).count();
        let ms = |ns: u64| ns / 1_000_000;
        let client = &report.client;
        println!(
            "{variant}: {ended} played, {stalls} stalls, {} requests, late p50 {} p99 {} p99.9 {} µs, CPU user {} system {} ms \
             of {} ms",
            report.samples.len(),
            at(500),
            at(990),
            at(999),
            ms(client.cpu_user_ns),
            ms(client.cpu_system_ns),
            ms(client.finished_ns - client.started_ns),
        );
        assert_eq!(ended, 1000, "{variant}");
    }
}
