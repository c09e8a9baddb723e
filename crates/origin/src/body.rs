//! Bodies: the source of their bytes, and the buffer that tells the access log when the last byte has been
//! sent.

use std::fs::File;
use std::io::{IoSlice, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::access_log::Entry;
use crate::activity::Activity;

/// Length of one part of a body that is not in memory, in bytes.
pub(crate) const PART_BYTES: usize = 1 << 18;

/// The source of a body.
pub(crate) enum Content {
    /// All bytes are in memory.
    Memory(Bytes),
    /// The repeated pattern, from an offset.
    Pattern { block: Bytes, offset: u64, left: u64 },
    /// The rest of an open file.
    File(FileContent),
    /// Bytes in memory before other content.
    Headed(Bytes, Box<Content>),
}

/// A file that is read in parts on a thread that may block.
pub(crate) enum FileContent {
    Idle { file: File, left: u64 },
    Reading(JoinHandle<std::io::Result<(File, Bytes, u64)>>),
    Finished,
}

/// A buffer on its way to the transport. Dropping it reports how much of it was sent.
pub(crate) struct Chunk {
    data: Bytes,
    length: usize,
    entry: Option<Arc<Entry>>,
    queued: Option<Arc<Queued>>,
    activity: Option<Arc<Activity>>,
}

/// Counts the bytes of a streamed body that wait inside a connection.
#[derive(Default)]
pub(crate) struct Queued {
    bytes: AtomicUsize,
    freed: Notify,
}

impl Content {
    pub(crate) const EMPTY: Content = Content::Memory(Bytes::new());

    /// The whole body, where it is in memory.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match self {
            Content::Memory(data) => Some(std::mem::take(data)),
            Content::Pattern { .. } | Content::File(_) | Content::Headed(..) => None,
        }
    }

    /// A part of the repeated pattern of this block.
    pub(crate) fn of_pattern(block: &Bytes, offset: u64, left: u64) -> Content {
        match usize::try_from(left) {
            Ok(few) if offset == 0 && few <= block.len() => Content::Memory(block.slice(..few)),
            _ => Content::Pattern { block: block.clone(), offset, left },
        }
    }

    /// Content with other bytes before it.
    pub(crate) fn headed(head: Bytes, rest: Content) -> Content {
        Content::Headed(head, Box::new(rest))
    }

    /// The next part; `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<Option<Bytes>>> {
        match self {
            Content::Memory(data) if data.is_empty() => Poll::Ready(Ok(None)),
            Content::Memory(data) => Poll::Ready(Ok(Some(std::mem::take(data)))),
            Content::Pattern { left: 0, .. } => Poll::Ready(Ok(None)),
            Content::Pattern { block, offset, left } => {
                let from = usize::try_from(*offset % block.len() as u64).unwrap_or(0);
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(PART_BYTES);
                let length = most.min(block.len() - from);
                *offset += length as u64;
                *left -= length as u64;
                Poll::Ready(Ok(Some(block.slice(from..from + length))))
            }
            Content::File(file) => file.poll_next(cx),
            Content::Headed(head, rest) => {
                let head = std::mem::take(head);
                *self = std::mem::replace(rest, Content::EMPTY);
                if head.is_empty() { self.poll_next(cx) } else { Poll::Ready(Ok(Some(head))) }
            }
        }
    }

    /// The next part; `None` at the end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl FileContent {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<Option<Bytes>>> {
        loop {
            *self = match std::mem::replace(self, FileContent::Finished) {
                FileContent::Finished | FileContent::Idle { left: 0, .. } => return Poll::Ready(Ok(None)),
                FileContent::Idle { file, left } => {
                    FileContent::Reading(tokio::task::spawn_blocking(move || read_part(file, left)))
                }
                FileContent::Reading(mut task) => {
                    let Poll::Ready(read) = Pin::new(&mut task).poll(cx) else {
                        *self = FileContent::Reading(task);
                        return Poll::Pending;
                    };
                    let (file, data, left) = read.map_err(std::io::Error::other)??;
                    *self = FileContent::Idle { file, left };
                    return Poll::Ready(Ok(Some(data)));
                }
            };
        }
    }
}

fn read_part(mut file: File, left: u64) -> std::io::Result<(File, Bytes, u64)> {
    let length = usize::try_from(left).unwrap_or(usize::MAX).min(PART_BYTES);
    let mut data = vec![0; length];
    file.read_exact(&mut data)?;
    Ok((file, Bytes::from(data), left - length as u64))
}

impl Chunk {
    pub(crate) fn new(data: Bytes, entry: Option<Arc<Entry>>) -> Self {
        Chunk { length: data.len(), data, entry, queued: None, activity: None }
    }

    /// A chunk whose bytes count as queued until it is dropped.
    pub(crate) fn counted(mut self, queued: &Arc<Queued>) -> Self {
        queued.bytes.fetch_add(self.length, Ordering::Relaxed);
        self.queued = Some(Arc::clone(queued));
        self
    }

    /// A chunk that notes when its bytes are sent.
    pub(crate) fn watched(mut self, activity: &Arc<Activity>) -> Self {
        self.activity = Some(Arc::clone(activity));
        self
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.data
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
        if count > 0
            && let Some(activity) = &self.activity
        {
            activity.note_message();
        }
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(out)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            entry.add_sent((self.length - self.data.len()) as u64);
        }
        if let Some(queued) = &self.queued {
            queued.bytes.fetch_sub(self.length, Ordering::Relaxed);
            queued.freed.notify_one();
        }
    }
}

impl Queued {
    /// Waits until fewer than `limit` bytes are queued.
    pub(crate) async fn room(&self, limit: usize) {
        while self.bytes.load(Ordering::Relaxed) >= limit {
            self.freed.notified().await;
        }
    }
}
