//! A video over real sockets: played to its end on every variant, and given up if no server answers.

use std::net::TcpListener;

use model::player::{Player, PlayerEventKind, Rule};
use model::{Outcome, Variant, Workload};

use crate::{Origin, run};

/// Six segments of 50 ms.
fn video() -> Player {
    Player {
        ladder_bits_per_s: vec![800_000, 1_600_000],
        segment_ns: 50_000_000,
        segments: 6,
        goal_ns: 100_000_000,
        startup_ns: 50_000_000,
        rule: Rule::Throughput,
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
    let events: Vec<_> = report.player.iter().map(|event| (event.what, event.bits_per_s)).collect();
    let expected = [(Requested, 1_600_000), (Failed, 1_600_000), (Requested, 800_000), (Failed, 800_000)];
    assert_eq!(events, expected);
}
