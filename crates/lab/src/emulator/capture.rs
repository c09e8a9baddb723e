//! What was on the links, as a file: each frame where it came from a node and where it reached one, and those that were lost
//! with the reason as a comment.
//!
//! The emulator's thread must not wait for a disk: frames go through a queue with a limit to a thread that writes them.
//! What finds the queue full is missing in the file, which says how many.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use path::{Cause, Frame, Lost};

use super::clock::WallClock;
use super::pcapng::{self, Heading, Packet};
use crate::error::{LabError, Step};

const THREAD: &str = "capture";
/// Frames that wait to be written: 100 MB of full ones.
const MOST_WAITING: usize = 1 << 16;
/// So much is gathered before it is written.
const WRITE_BYTES: usize = 1 << 20;
/// What was gathered is written at the latest after so long without a frame.
const IDLE: Duration = Duration::from_millis(200);

struct Record {
    interface: usize,
    heading: Heading,
    at_ns: u64,
    bytes: Vec<u8>,
    comment: Option<String>,
}

enum Message {
    Frame(Record),
    /// So many frames of a link's sides found the queue full; the first interface of the two.
    Missing(usize, [u64; 2]),
}

/// An emulator's end of a capture; the file is whole when all of them were dropped and the writer has ended.
pub(crate) struct Tap {
    sender: SyncSender<Message>,
    /// The interface of its first side; that of the second is the next.
    first: usize,
    missing: [u64; 2],
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Begins a file for links whose sides have these names; each gets its tap.
pub(crate) fn begin(path: &Path, links: &[[String; 2]]) -> Result<(Vec<Tap>, Writer), LabError> {
    let what = || format!("writing the capture {}", path.display());
    let mut file = File::create(path).step(what)?;
    let names: Vec<&str> = links.iter().flatten().map(String::as_str).collect();
    file.write_all(&pcapng::begin(&names)).step(what)?;
    let (sender, messages) = mpsc::sync_channel(MOST_WAITING);
    let thread = std::thread::Builder::new()
        .name(THREAD.to_owned())
        .spawn(move || write(&mut file, &messages))
        .step(what)?;
    let tap = |link: usize| Tap { sender: sender.clone(), first: 2 * link, missing: [0; 2] };
    Ok(((0..links.len()).map(tap).collect(), Writer { thread: Some(thread) }))
}

impl Tap {
    /// A node sent a frame; `comment` is for one that was lost at once.
    pub(super) fn sent(&mut self, side: usize, at_ns: u64, bytes: &[u8], comment: Option<String>) {
        self.record(
            side,
            Record {
                interface: self.first + side,
                heading: Heading::Outbound,
                at_ns,
                bytes: bytes.to_vec(),
                comment,
            },
        );
    }

    /// A frame reached a node.
    pub(super) fn received(&mut self, side: usize, at_ns: u64, bytes: &[u8]) {
        self.record(
            side,
            Record {
                interface: self.first + side,
                heading: Heading::Inbound,
                at_ns,
                bytes: bytes.to_vec(),
                comment: None,
            },
        );
    }

    /// A frame that one side had sent was lost later, on its way.
    pub(super) fn lost(&mut self, side: usize, lost: &Lost<Frame>) {
        let comment = Some(format!("{}; it stands above where it was sent", comment_on(lost)));
        let bytes = lost.packet.0.clone();
        self.record(
            side,
            Record {
                interface: self.first + side,
                heading: Heading::Outbound,
                at_ns: lost.at_ns,
                bytes,
                comment,
            },
        );
    }

    fn record(&mut self, side: usize, record: Record) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Frame(record)) {
            self.missing[side] += 1;
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Where the writer has failed it says so itself.
        let _: Result<_, _> = self.sender.send(Message::Missing(self.first, self.missing));
    }
}

impl Writer {
    /// Waits until the file is whole; the taps must be gone.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let result = thread.join().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })?;
        result.step(|| "writing a capture".to_owned())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Its fault belongs to whoever asked for it to be finished.
            let _: Result<_, _> = thread.join();
        }
    }
}

/// Why a frame was lost.
pub(super) fn comment_on(lost: &Lost<Frame>) -> String {
    let cause = match lost.cause {
        Cause::Configured => "the loss that the network was asked for",
        Cause::Outage => "an outage",
        Cause::Queue => "the queue was full",
        Cause::Codel => "CoDel",
        Cause::Capacity => "the emulator's own limit",
    };
    format!("h123: packet {} of its direction was lost: {cause}", lost.number)
}

fn write(file: &mut File, messages: &mpsc::Receiver<Message>) -> io::Result<()> {
    let mut clock = WallClock::new();
    let mut gathered = Vec::with_capacity(WRITE_BYTES + (1 << 16));
    let mut last_unix_ns = 0;
    loop {
        match messages.recv_timeout(IDLE) {
            Ok(Message::Frame(record)) => {
                clock.check();
                let Record { interface, heading, at_ns, bytes, comment } = &record;
                last_unix_ns = clock.to_unix_ns(*at_ns);
                let (interface, comment) = (number(*interface), comment.as_deref());
                let packet =
                    Packet { interface, heading: *heading, at_unix_ns: last_unix_ns, bytes, comment };
                pcapng::packet(&mut gathered, &packet);
            }
            Ok(Message::Missing(first, frames)) => {
                for (side, frames) in frames.into_iter().enumerate() {
                    pcapng::missing(&mut gathered, number(first + side), last_unix_ns, frames);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                file.write_all(&gathered)?;
                gathered.clear();
            }
            Err(RecvTimeoutError::Disconnected) => return file.write_all(&gathered),
        }
        if gathered.len() >= WRITE_BYTES {
            file.write_all(&gathered)?;
            gathered.clear();
        }
    }
}

/// An interface as the file numbers it.
fn number(interface: usize) -> u32 {
    u32::try_from(interface).unwrap_or(u32::MAX)
}
