//! Reading from sockets: all that there is, yet nobody for ever.

use engine::Connection as _;
use rustix::event::epoll;

use crate::worker::Worker;

/// So many bytes are handled within a microsecond or two.
const FEW_BYTES: u64 = 4096;
/// At most so many reads of one socket in a row: a server that never stops keeps nobody else waiting.
const READS_IN_A_ROW: usize = 32;

impl Worker<'_> {
    /// Goes on with the first so many of the connections where reading was broken off.
    pub(crate) fn read_on(&mut self, count: usize) {
        for at in 0..count {
            let key = self.unread[at];
            // Its place may be another's by now.
            let conn = self.conns.get(key).and_then(Option::as_ref);
            if conn.is_some_and(|conn| conn.is_connected) {
                let read_ns = self.read(key, epoll::EventFlags::RDHUP);
                self.note_ready(key);
                let now = read_ns.unwrap_or_else(|| self.clock.now_ns());
                self.serve(key, now);
            }
        }
        self.unread.drain(..count);
    }

    /// Reads until a read falls short; with RDHUP, until the end; not too often in a row. When it read, where that is
    /// also the time of what is sent in answer: after few bytes another look at the clock would find it within a
    /// microsecond.
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
            // What arrived may name the next request: it leaves before the next read.
            if conn.socket.is_udp() {
                conn.flush(&mut self.session, clock.now_ns());
            }
        }
        self.unread.push(key);
        None
    }
}
