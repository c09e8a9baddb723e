//! Captures of the links as a file: each frame where it leaves a node and where it reaches one, and each lost
//! frame with the reason as a comment.
//!
//! The emulator's thread must not wait for the disk, so frames pass a bounded queue to a thread that writes
//! them. Frames that find the queue full are missing from the file, which contains their number.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use path::{Cause, Frame, Lost};

use crate::clock::WallClock;
use crate::error::{LabError, Step};
use crate::pcapng::{self, Heading, Packet};
use crate::thread::Thread;

const THREAD: &str = "capture";
/// How many frames wait to be written at most: 100 MB of full-sized frames.
const MOST_WAITING: usize = 1 << 16;
/// How many bytes are collected before they are written.
const WRITE_BYTES: usize = 1 << 20;
/// Collected bytes are written at the latest after this long, so that a reader can follow a capture.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

struct Record {
    interface: usize,
    heading: Heading,
    at_ns: u64,
    bytes: Vec<u8>,
    comment: Option<String>,
}

enum Message {
    Frame(Record),
    /// A link's first interface, and how many frames of each side found the queue full.
    Missing(usize, [u64; 2]),
}

/// An emulator's end of a capture. The file is complete when all taps are dropped and the writer has ended.
pub(crate) struct Tap {
    sender: SyncSender<Message>,
    /// The interface of its first side; the second side has the next number.
    first: usize,
    missing: [u64; 2],
}

/// The thread that writes.
pub(crate) type Writer = Thread<io::Result<()>>;

/// Starts a file for links whose sides have these names; returns a tap for each link.
pub(crate) fn begin(path: &Path, links: &[[String; 2]]) -> Result<(Vec<Tap>, Writer), LabError> {
    let what = || format!("writing the capture {}", path.display());
    let mut file = File::create(path).step(what)?;
    let names: Vec<&str> = links.iter().flatten().map(String::as_str).collect();
    file.write_all(&pcapng::begin(&names)).step(what)?;
    let (sender, messages) = mpsc::sync_channel(MOST_WAITING);
    let writer = Thread::spawn(THREAD, move || write(&mut file, &messages))?;
    let tap = |link: usize| Tap { sender: sender.clone(), first: 2 * link, missing: [0; 2] };
    Ok(((0..links.len()).map(tap).collect(), writer))
}

impl Tap {
    /// Records a frame that a node sent; `comment` says why it was lost at once.
    pub(super) fn sent(&mut self, side: usize, at_ns: u64, bytes: &[u8], comment: Option<String>) {
        self.record(side, Heading::Outbound, at_ns, bytes, comment);
    }

    /// Records a frame that reached a node.
    pub(super) fn received(&mut self, side: usize, at_ns: u64, bytes: &[u8]) {
        self.record(side, Heading::Inbound, at_ns, bytes, None);
    }

    /// Records a frame that was lost after a node had sent it.
    pub(super) fn lost(&mut self, side: usize, lost: &Lost<Frame>) {
        let comment = format!("{}; the frame appears above where it was sent", comment_on(lost));
        self.record(side, Heading::Outbound, lost.at_ns, &lost.packet.0, Some(comment));
    }

    fn record(&mut self, side: usize, heading: Heading, at_ns: u64, bytes: &[u8], comment: Option<String>) {
        let bytes = bytes.to_vec();
        let record = Record { interface: self.first + side, heading, at_ns, bytes, comment };
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Frame(record)) {
            self.missing[side] += 1;
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // The writer reports its own failure.
        let _: Result<_, _> = self.sender.send(Message::Missing(self.first, self.missing));
    }
}

/// Why a frame was lost.
pub(super) fn comment_on(lost: &Lost<Frame>) -> String {
    let cause = match lost.cause {
        Cause::Configured => "the network's configured loss",
        Cause::Outage => "an outage",
        Cause::Queue => "the queue was full",
        Cause::Codel => "CoDel",
        Cause::Middlebox => "the network's rule for UDP",
        Cause::Capacity => "the emulator's capacity",
    };
    format!("h123: packet {} of its direction was lost: {cause}", lost.number)
}

/// Writes what arrives. A file that cannot take everything, as on a full disk, ends with its last whole
/// record.
fn write(file: &mut File, messages: &mpsc::Receiver<Message>) -> io::Result<()> {
    let mut clock = WallClock::new();
    let mut collected = Vec::with_capacity(WRITE_BYTES + (1 << 16));
    let mut written_bytes = file.stream_position()?;
    let mut last_unix_ns = 0;
    let mut write_at = Instant::now() + LONGEST_WAIT;
    loop {
        let message = messages.recv_timeout(write_at.saturating_duration_since(Instant::now()));
        let has_ended = matches!(message, Err(RecvTimeoutError::Disconnected));
        let is_due = message.is_err() || Instant::now() >= write_at;
        match message {
            Ok(Message::Frame(record)) => {
                clock.check();
                let Record { interface, heading, at_ns, bytes, comment } = &record;
                last_unix_ns = clock.to_unix_ns(*at_ns);
                let (interface, comment) = (number(*interface), comment.as_deref());
                let packet =
                    Packet { interface, heading: *heading, at_unix_ns: last_unix_ns, bytes, comment };
                pcapng::packet(&mut collected, &packet);
            }
            Ok(Message::Missing(first, frames)) => {
                for (side, frames) in frames.into_iter().enumerate() {
                    pcapng::missing(&mut collected, number(first + side), last_unix_ns, frames);
                }
            }
            Err(_) => {}
        }
        if is_due || collected.len() >= WRITE_BYTES {
            if let Err(error) = file.write_all(&collected) {
                // Half a record would make the whole file unreadable for some programs.
                let _: io::Result<()> = file.set_len(written_bytes);
                return Err(error);
            }
            written_bytes += collected.len() as u64;
            collected.clear();
            write_at = Instant::now() + LONGEST_WAIT;
        }
        if has_ended {
            return Ok(());
        }
    }
}

/// The number of an interface in the file.
fn number(interface: usize) -> u32 {
    u32::try_from(interface).unwrap_or(u32::MAX)
}
