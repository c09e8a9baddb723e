//! How a worker's time ends: what was asked for and is not answered has failed, in the phase that it was in.

use model::Outcome;
use model::sample::{Failure, FailureKind, Sample};
use workload::Work;

use crate::connection::Conn;
use crate::worker::Worker;

impl Worker<'_> {
    /// The time limit passed. Requests in flight fail; so does one request for each connection that never became
    /// ready, and a page's requests that waited for it.
    pub(crate) fn time_out(&mut self, now: u64) {
        self.session.fail_open(waiting, now);
        for key in 0..self.conns.len() {
            let Some(conn) = self.conns[key].as_mut().filter(|conn| !conn.was_ready) else { continue };
            let failure = timed_out(phase(conn));
            let host = conn.host;
            conn.row.outcome = Outcome::Failed(failure.clone());
            conn.row.closed_ns = Some(now);
            self.fail_due(host, &failure, now);
        }
        if let Work::Page(_) = self.session.work {
            for host in 0..self.hosts.len() {
                while self.session.work.waiting(host) > 0 {
                    self.fail_due(host, &timed_out("before it could be sent"), now);
                }
            }
        }
    }

    /// Requests that were begun, or wait for a connection that never became ready.
    pub(crate) fn unfinished(&self) -> u64 {
        let waiting = self.conns.iter().flatten().filter(|conn| !conn.was_ready).count();
        (self.session.open_requests() + waiting) as u64
    }

    fn fail_due(&mut self, host: usize, failure: &Failure, now: u64) {
        if let Some(due) = self.session.work.poll_request(host, now) {
            self.session.fail_unsent(due, failure.clone(), now);
        }
    }
}

fn timed_out(doing: &str) -> Failure {
    Failure { kind: FailureKind::Timeout, reason: format!("the time limit passed {doing}") }
}

/// What a connection that never became ready was busy with.
fn phase(conn: &Conn) -> &'static str {
    match (conn.socket.is_udp(), conn.is_connected) {
        (true, _) => "in the QUIC handshake",
        (false, false) => "while connecting",
        (false, true) => "in the TLS handshake",
    }
}

fn waiting(sample: &Sample) -> Failure {
    match sample.first_byte_ns {
        None => timed_out("while waiting for the response"),
        Some(_) => timed_out(&format!("after {} bytes of the body", sample.response_body_bytes)),
    }
}
