//! TCP connections that the client's network has lost: the client gives them up, opens others and sends
//! unanswered requests again, as browsers do.

use engine::RequestId;
use model::Outcome;
use model::pins::Reconnect;
use model::sample::{Cause, Failure, FailureKind};
use model::units::format_ns;

use super::Worker;
use crate::connection::Conn;
use crate::request::OpenRequest;
use crate::session::Effect;

/// How often a request is sent again at most; then it fails.
const MOST_RESENT: u32 = 3;

impl Worker<'_> {
    /// A local address is gone: gives up every connection.
    pub(crate) fn reconnect_all(&mut self, now: u64) {
        for key in 0..self.conns.len() {
            self.give_up(key, "its local address is gone", now);
        }
    }

    /// Gives up a connection on which nothing has arrived for too long; whether it did.
    pub(crate) fn reconnect_if_silent(&mut self, key: usize, now: u64) -> bool {
        let conn = self.conns.get(key).and_then(Option::as_ref);
        let (Reconnect::SilentNs(limit_ns), Some(conn)) = (self.assignment.pins.reconnect, conn) else {
            return false;
        };
        let is_silent = conn.silent_at_ns().is_some_and(|silent_ns| silent_ns <= now);
        if is_silent {
            self.give_up(key, &format!("nothing arrived for {}", format_ns(limit_ns)), now);
        }
        is_silent
    }

    /// Gives up one connection; its requests wait for another one.
    fn give_up(&mut self, key: usize, why: &str, now: u64) {
        let Some(mut conn) = self.detach(key) else { return };
        let reason = format!("the connection to {} was given up: {why}", conn.remote);
        let failure = Failure::new(FailureKind::Closed, reason);
        self.take_back(&mut conn, &failure, now);
        conn.row.lost = true;
        conn.row.closed_ns.get_or_insert(now);
        conn.row.outcome = Outcome::Failed(failure);
        conn.socket.abort_on_close();
        self.keep_row(conn.row, conn.carried);
    }

    /// Lets the requests in flight on a connection wait for another one. Those fail that may not be sent
    /// again.
    fn take_back(&mut self, conn: &mut Conn, failure: &Failure, now: u64) {
        let connection = Some(conn.row.connection);
        let of_conn = self.session.open.iter().filter(|(_, sample)| sample.connection == connection);
        let mut ids: Vec<(u64, RequestId)> = of_conn.map(|(id, sample)| (sample.request, id)).collect();
        ids.sort_unstable();
        for (number, id) in ids {
            let Some(sample) = self.session.open.get_mut(id) else { continue };
            if sample.resent >= MOST_RESENT || !self.requests.is_idempotent(sample.url) {
                if let Effect::RequestEnded(request) = self.session.end(id, Some(failure.clone()), now) {
                    conn.carried.add(request);
                }
                continue;
            }
            // What was promised is requested now.
            if std::mem::take(&mut sample.cause) != Cause::Push {
                sample.resent += 1;
            }
            sample.connection = None;
            sample.first_byte_ns = None;
            sample.response_body_bytes = 0;
            sample.response_body_crc32 = None;
            sample.outcome = Outcome::Ok;
            self.session.restart_body(id);
            if let Some(host) = self.client_host(conn.client, conn.host) {
                host.lost.push_back(OpenRequest { id, number });
                conn.row.resent += 1;
            }
        }
    }
}
