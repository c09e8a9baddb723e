//! A queue of finished rows from workers to a reader, in portions and with a limit.
//!
//! A worker fills a portion, sends it and continues with an empty one: nothing is copied, and threads
//! synchronize once in [`PORTION_ROWS`] rows. If the reader is behind by all portions, the worker waits: no
//! row is lost, and the time is counted because it delays the load.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Instant;

use model::sample::Sample;

/// The rows of a portion.
const PORTION_ROWS: usize = 4096;
/// Portions of all workers together, about 48 MB. Each worker has at least [`LEAST_PORTIONS`].
const PORTIONS: usize = 64;
const LEAST_PORTIONS: usize = 2;

/// A message from a worker to the reader.
#[derive(Debug)]
pub enum RowMessage<'a> {
    /// The URLs of a group; they come before its rows.
    Urls {
        /// The client group.
        group: u16,
        /// In the order of their numbers in rows.
        urls: Vec<String>,
    },
    /// Rows of one group in the order in which they ended. Rows that the reader leaves in the vector are
    /// dropped.
    Rows(&'a mut Vec<Sample>),
}

/// A worker's end of the queue.
#[derive(Debug)]
pub struct RowSender {
    worker: usize,
    rows: Vec<Sample>,
    full: Sender<Message>,
    spare: Receiver<Vec<Sample>>,
    /// Portions that may still be allocated.
    left: usize,
    waited_ns: u64,
}

/// The reader's end of the queue.
#[derive(Debug)]
pub struct RowReceiver {
    full: Receiver<Message>,
    spares: Vec<Sender<Vec<Sample>>>,
}

#[derive(Debug)]
enum Message {
    Urls { group: u16, urls: Vec<String> },
    Rows { worker: usize, rows: Vec<Sample> },
}

/// A queue from several workers to one reader. Its limit is the number of portions, which are reused.
pub fn row_queue(workers: usize) -> (Vec<RowSender>, RowReceiver) {
    let (sender, full) = channel();
    let portions = (PORTIONS / workers.max(1)).max(LEAST_PORTIONS);
    let ends = (0..workers).map(|worker| {
        let (back, spare) = channel();
        let sender = RowSender {
            worker,
            rows: Vec::with_capacity(PORTION_ROWS),
            full: sender.clone(),
            spare,
            left: portions - 1,
            waited_ns: 0,
        };
        (sender, back)
    });
    let (senders, spares) = ends.unzip();
    (senders, RowReceiver { full, spares })
}

impl RowSender {
    /// Sends the URLs of the rows.
    pub(crate) fn begin(&self, group: u16, urls: &[String]) {
        // A reader that is gone reports its own error.
        let _ = self.full.send(Message::Urls { group, urls: urls.to_vec() });
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Sample) {
        self.rows.push(row);
        if self.rows.len() >= PORTION_ROWS {
            self.hand_over();
            self.rows = self.empty();
        }
    }

    /// Sends the remaining rows; how long the worker waited for the reader in total.
    pub(crate) fn finish(mut self) -> u64 {
        if !self.rows.is_empty() {
            self.hand_over();
        }
        self.waited_ns
    }

    fn hand_over(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        // As above.
        let _ = self.full.send(Message::Rows { worker: self.worker, rows });
    }

    fn empty(&mut self) -> Vec<Sample> {
        match self.spare.try_recv() {
            Ok(rows) => rows,
            Err(TryRecvError::Empty) if self.left == 0 => {
                let began = Instant::now();
                let rows = self.spare.recv().unwrap_or_default();
                let waited_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.waited_ns = self.waited_ns.saturating_add(waited_ns);
                rows
            }
            Err(_) => {
                self.left = self.left.saturating_sub(1);
                Vec::with_capacity(PORTION_ROWS)
            }
        }
    }
}

impl RowReceiver {
    /// Calls `show` with every message, until the last worker has ended.
    pub fn for_each(self, mut show: impl FnMut(RowMessage<'_>)) {
        for message in self.full {
            match message {
                Message::Urls { group, urls } => show(RowMessage::Urls { group, urls }),
                Message::Rows { worker, mut rows } => {
                    show(RowMessage::Rows(&mut rows));
                    rows.clear();
                    if let Some(spare) = self.spares.get(worker) {
                        // A worker that has ended no longer needs it.
                        let _ = spare.send(rows);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(group: u16, request: u64) -> Sample {
        Sample { group, request, intended_ns: request, ..Sample::default() }
    }

    #[test]
    fn every_row_arrives_once_and_in_order_after_its_urls() {
        let count = |group: u16| (PORTION_ROWS as u64) * u64::from(group + 1) + u64::from(group);
        let (senders, receiver) = row_queue(3);
        let workers: Vec<_> = (0..)
            .zip(senders)
            .map(|(group, mut sender)| {
                std::thread::spawn(move || {
                    sender.begin(group, &[format!("/{group}")]);
                    (0..count(group)).for_each(|request| sender.push(row(group, request)));
                    sender.finish()
                })
            })
            .collect();
        let mut seen = [None, None, None];
        receiver.for_each(|message| match message {
            RowMessage::Urls { group, urls } => {
                assert_eq!(urls, [format!("/{group}")]);
                assert_eq!(seen[usize::from(group)].replace(0), None);
            }
            RowMessage::Rows(rows) => {
                for row in rows.drain(..) {
                    let next = seen[usize::from(row.group)].as_mut().expect("URLs come first");
                    assert_eq!(row.request, *next);
                    *next += 1;
                }
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(seen, [0, 1, 2].map(|group| Some(count(group))));
    }

    #[test]
    fn portions_are_reused_within_their_limit() {
        let (mut senders, receiver) = row_queue(PORTIONS);
        let mut sender = senders.swap_remove(0);
        drop(senders);
        let rows = (PORTION_ROWS * LEAST_PORTIONS * 5) as u64;
        let worker = std::thread::spawn(move || {
            (0..rows).for_each(|request| sender.push(row(0, request)));
            sender.finish()
        });
        let (mut seen, mut places) = (0, std::collections::BTreeSet::new());
        receiver.for_each(|message| {
            if let RowMessage::Rows(rows) = message {
                assert_eq!(rows[0].request, seen);
                seen += rows.len() as u64;
                places.insert(rows.as_ptr());
            }
        });
        worker.join().unwrap();
        assert_eq!(seen, rows);
        assert!(places.len() <= LEAST_PORTIONS, "{} portions", places.len());
    }

    #[test]
    fn a_reader_that_is_gone_delays_no_worker() {
        let (mut senders, receiver) = row_queue(1);
        let mut sender = senders.remove(0);
        drop(receiver);
        (0..(PORTION_ROWS * (PORTIONS + 2)) as u64).for_each(|request| sender.push(row(0, request)));
        sender.finish();
    }
}
