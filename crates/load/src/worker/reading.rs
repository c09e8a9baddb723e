//! Reading from sockets: everything that has arrived, but not one socket forever.

use engine::Connection as _;
use rustix::event::epoll;

use super::Worker;

/// This many bytes are handled within a microsecond or two.
const FEW_BYTES: u64 = 4096;
/// At most this many reads of one socket in a row: a server that never stops must not delay other
/// connections.
const READS_IN_A_ROW: usize = 32;

impl Worker<'_> {
    /// Continues with the first `count` connections that still have bytes to read.
    pub(crate) fn read_on(&mut self, count: usize) {
        for at in 0..count {
            let key = self.unread[at];
            // Its place may belong to another connection by now.
            let conn = self.conns.get(key).and_then(Option::as_ref);
            if conn.is_some_and(|conn| conn.is_connected) {
                let read_ns = self.read(key, epoll::EventFlags::RDHUP);
                self.note_ready(key);
                let now = read_ns.unwrap_or_else(|| self.clock.now_ns());
                self.acts(now);
                self.serve(key, now);
                self.keep_pace();
            }
        }
        self.unread.drain(..count);
    }

    /// Reads until a read falls short, with RDHUP until the end, up to a number of reads. Returns the time of
    /// reading if it can stand for the time of sending: after few bytes the clock would advance by less than
    /// a microsecond.
    pub(crate) fn read(&mut self, key: usize, flags: epoll::EventFlags) -> Option<u64> {
        let ending =
            flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let clock = self.clock;
        let mut read_ns = None;
        let mut read_bytes = 0;
        for _ in 0..READS_IN_A_ROW {
            let conn = self.conns[key].as_mut()?;
            let before = conn.row.received_bytes;
            let more = conn.read(&mut self.session, &mut self.buffer, || *read_ns.insert(clock.now_ns()));
            let progress = conn.row.received_bytes - before;
            read_bytes += progress;
            if conn.engine.is_closed() || !(more || (ending && progress > 0)) {
                return read_ns.filter(|_| read_bytes <= FEW_BYTES);
            }
            // Acknowledgements and window updates leave before the next read.
            if conn.socket.is_udp() {
                conn.flush(&mut self.session, clock.now_ns());
            }
        }
        self.unread.push(key);
        None
    }
}
