//! Connections on which nothing arrives any more: the client gives them up and sends its requests again.

use std::io::Write;
use std::net::TcpStream;

use model::pins::Reconnect;
use model::sample::FailureKind;
use model::{Outcome, Variant};

use super::hostile::{Hostile, assignment, take_something};
use super::run;

const SILENCE_NS: u64 = 150_000_000;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// A server whose first connections go silent in the middle of a response; later ones answer.
fn silent_at_first(silent: usize) -> Hostile {
    let mut kept: Vec<TcpStream> = Vec::new();
    Hostile::new(move |mut stream| {
        if !take_something(&mut stream) {
            return;
        }
        if kept.len() < silent {
            stream.write_all(&RESPONSE[..RESPONSE.len() - 2]).unwrap();
        } else {
            stream.write_all(RESPONSE).unwrap();
        }
        kept.push(stream);
    })
}

#[test]
fn a_request_without_an_answer_is_sent_again() {
    let server = silent_at_first(2);
    let mut assignment = assignment(Variant::H1, server.address, 1);
    assignment.options.connections.request_timeout_ns = None;
    assignment.pins.reconnect = Reconnect::SilentNs(SILENCE_NS);
    let report = run(&assignment);
    let [sample] = &report.samples[..] else { panic!("one row: {report:#?}") };
    assert!(sample.outcome.is_ok(), "{sample:?}");
    assert_eq!((sample.resent, sample.connection, sample.response_body_bytes), (2, Some(2), 5));
    assert!(sample.service_time_ns() >= Some(2 * SILENCE_NS), "it counts from the first attempt");
    let lost: Vec<_> = report.connections.iter().map(|row| (row.lost, row.resent)).collect();
    assert_eq!(lost, [(true, 1), (true, 1), (false, 0)]);
    let outcome = &report.connections[0].outcome;
    assert!(format!("{outcome:?}").contains("given up: nothing arrived for 150 ms"), "{outcome:?}");
}

#[test]
fn a_request_is_not_sent_again_forever_nor_if_it_changes_something() {
    for (method, connections) in [("GET", 4), ("POST", 1)] {
        let server = silent_at_first(usize::MAX);
        let mut assignment = assignment(Variant::H1, server.address, 1);
        assignment.options.connections.request_timeout_ns = None;
        assignment.options.requests.method = Some(method.to_owned());
        assignment.pins.reconnect = Reconnect::SilentNs(SILENCE_NS);
        let report = run(&assignment);
        assert_eq!((report.samples.len(), report.connections.len()), (1, connections), "{method}");
        let Outcome::Failed(failure) = &report.samples[0].outcome else { panic!("{method}") };
        assert_eq!(failure.kind, FailureKind::Closed, "{method}: {}", failure.reason);
    }
}

#[test]
fn a_silent_server_is_not_left_unless_the_study_says_so() {
    let server = silent_at_first(usize::MAX);
    let report = run(&assignment(Variant::H1, server.address, 1));
    let Outcome::Failed(failure) = &report.samples[0].outcome else { panic!("{report:#?}") };
    assert_eq!((failure.kind, report.samples[0].resent), (FailureKind::Timeout, 0));
    assert!(report.connections.iter().all(|row| !row.lost));
}
