//! A long-lived thread that runs jobs in its namespaces, one after the other.

use std::sync::mpsc;

use crate::error::LabError;
use crate::thread::{Thread, thread_ended};

type Job = Box<dyn FnOnce() + Send>;

/// The thread. Dropping this lets it finish its jobs and waits for its end.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Declared before the thread, which ends when this is dropped.
    jobs: mpsc::Sender<Job>,
    thread: Thread<()>,
}

/// A job that was started.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    thread: String,
    answer: mpsc::Receiver<T>,
}

impl Worker {
    pub(crate) fn new(name: &str) -> Result<Worker, LabError> {
        let (jobs, receiver) = mpsc::channel::<Job>();
        let thread = Thread::spawn(name, move || receiver.into_iter().for_each(|job| job()))?;
        Ok(Worker { jobs, thread })
    }

    /// Starts a job without waiting for it.
    pub(crate) fn begin<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let (sender, answer) = mpsc::sync_channel(1);
        // Where the thread is gone, the job is dropped with its sender, which `wait` reports.
        let _: Result<_, _> = self.jobs.send(Box::new(move || {
            let _: Result<_, _> = sender.send(job());
        }));
        Pending { thread: self.thread.name().to_owned(), answer }
    }

    /// Runs a job and waits for its result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        self.begin(job).wait()?
    }

    /// Lets the thread end without anyone waiting.
    pub(crate) fn detach(&mut self) {
        self.thread.detach();
    }
}

impl<T> Pending<T> {
    pub(crate) fn wait(self) -> Result<T, LabError> {
        self.answer.recv().map_err(|_| thread_ended(&self.thread))
    }
}
