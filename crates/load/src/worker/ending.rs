//! The end of a worker's time: requests in flight fail, with the phase that they were in.

use std::collections::HashMap;
use std::net::SocketAddr;

use model::Outcome;
use model::sample::{Failure, FailureKind, Sample};
use workload::RequestSource;

use super::Worker;
use crate::connection::Conn;
use crate::request;

impl Worker<'_> {
    /// The time limit passed. Requests in flight fail; so does one request for each connection that never
    /// became ready, and all of a page's waiting requests.
    pub(crate) fn time_out(&mut self, now: u64) {
        let assignment = self.assignment;
        let remote = |url: u32| {
            let own = assignment.options.requests.paths.get(url as usize);
            request::target(assignment, own.map_or(0, |path| usize::from(path.target))).address
        };
        let ended = self.session.fail_open(|sample| waiting(sample, remote(sample.url)), now);
        // Those that waited for another connection are among them.
        for client in self.session.clients.iter_mut().flatten() {
            client.hosts.iter_mut().for_each(|host| host.lost.clear());
        }
        let mut conns: HashMap<u32, &mut Conn> =
            self.conns.iter_mut().flatten().map(|conn| (conn.row.connection, conn)).collect();
        for (connection, request) in ended {
            if let Some(conn) = conns.get_mut(&connection) {
                conn.carried.add(request);
            }
        }
        for key in 0..self.conns.len() {
            let Some(conn) = self.conns[key].as_mut().filter(|conn| !conn.was_ready) else { continue };
            let failure = timed_out(&format!("connecting to {}", conn.remote), conn.phase());
            let (of, opened_ns, begun) = ((conn.client, conn.host), conn.row.opened_ns, conn.begun);
            conn.row.outcome = Outcome::Failed(failure.clone());
            conn.row.closed_ns = Some(now);
            // Requests that were sent as early data have failed above.
            if begun == 0 {
                self.fail_due(of, &failure, opened_ns, now);
            }
        }
        // Requests of a schedule that were not sent are counted separately.
        if self.session.is_paced {
            return;
        }
        for client in 0..self.roster.begun {
            for host in 0..self.hosts.len() {
                while self.session.waiting(client, host) > 0 {
                    let doing = format!("waiting for a connection to {}", self.hosts[host].target.address);
                    self.fail_due((client, host), &timed_out(&doing, "before it could be sent"), now, now);
                }
            }
        }
    }

    /// Fails a client's next due request with its connection. In a closed loop it was intended when the
    /// connection was opened.
    pub(crate) fn fail_due(
        &mut self,
        (place, host): (u32, usize),
        failure: &Failure,
        began_ns: u64,
        now: u64,
    ) {
        let client = self.session.client(place);
        if let Some(mut due) = client.and_then(|client| client.work.poll_request(host, now)) {
            if !self.session.has_queue {
                due.intended_ns = began_ns;
            }
            self.session.fail_unsent(place, due, failure.clone(), now);
        }
    }
}

fn timed_out(doing: &str, when: &str) -> Failure {
    let reason = format!("{doing}: the time limit of the test passed {when}");
    Failure { kind: FailureKind::Timeout, reason }
}

fn waiting(sample: &Sample, remote: SocketAddr) -> Failure {
    let doing = format!("waiting for {remote}");
    match sample.first_byte_ns {
        None => timed_out(&doing, "before the response"),
        Some(_) => timed_out(&doing, &format!("after {} bytes of the body", sample.response_body_bytes)),
    }
}
