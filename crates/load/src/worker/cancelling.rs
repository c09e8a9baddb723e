//! Requests that their client gives up before the response is complete.

use model::sample::{Failure, FailureKind, Sample};
use workload::RequestSource;

use super::Worker;

impl Worker<'_> {
    /// Cancels what a client has given up: by RST_STREAM, by STOP_SENDING, or by closing an HTTP/1.1
    /// connection.
    pub(super) fn cancel_requests(&mut self, place: u32, now: u64) {
        while let Some(url) = self.session.client(place).and_then(|client| client.work.take_cancelled()) {
            let Some((opened, connection)) = self.session.find(place, url) else { continue };
            let conns = self.session.client(place).map(|client| client.conns.clone()).unwrap_or_default();
            let of_request = |key: &usize| {
                let conn = self.conns.get(*key).and_then(Option::as_ref);
                conn.is_some_and(|conn| Some(conn.row.connection) == connection)
            };
            let key = conns.into_iter().find(of_request);
            match key.and_then(|key| Some((key, self.conns.get_mut(key)?.as_mut()?))) {
                Some((key, conn)) => {
                    conn.cancel(&mut self.session, opened, cancelled, now);
                    self.serve(key, now);
                }
                // It waits for another connection.
                None => drop(self.session.expire(opened, cancelled, now)),
            }
        }
    }
}

fn cancelled(sample: &Sample) -> Failure {
    let reason = match sample.first_byte_ns {
        None => "the client gave it up before the response".to_owned(),
        Some(_) => format!("the client gave it up after {} bytes of the body", sample.response_body_bytes),
    };
    Failure::new(FailureKind::Cancelled, reason)
}
