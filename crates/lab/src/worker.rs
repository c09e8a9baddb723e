//! A long-lived thread that runs jobs in its own namespaces, one after the other.

use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::error::{LabError, Step};

type Job = Box<dyn FnOnce() + Send>;

/// The thread; dropping this lets it finish its job and waits for its end.
#[derive(Debug)]
pub(crate) struct Worker {
    name: String,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// A job that was begun.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    thread: String,
    answer: mpsc::Receiver<T>,
}

impl Worker {
    pub(crate) fn new(name: &str) -> Result<Worker, LabError> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || receiver.into_iter().for_each(|job| job()))
            .step(|| format!("starting the thread `{name}`"))?;
        Ok(Worker { name: name.to_owned(), jobs: Some(sender), thread: Some(thread) })
    }

    /// Hands a job over without waiting for it.
    pub(crate) fn begin<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let (sender, answer) = mpsc::sync_channel(1);
        if let Some(jobs) = &self.jobs {
            // Where the thread is gone the job is dropped with its sender, which `wait` reports.
            let _: Result<_, _> = jobs.send(Box::new(move || {
                let _: Result<_, _> = sender.send(job());
            }));
        }
        Pending { thread: self.name.clone(), answer }
    }

    /// Runs a job and waits for its result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        self.begin(job).wait()?
    }

    /// Lets the thread end in its own time.
    pub(crate) fn detach(&mut self) {
        drop(self.jobs.take());
        drop(self.thread.take());
    }
}

impl<T> Pending<T> {
    pub(crate) fn wait(self) -> Result<T, LabError> {
        self.answer.recv().map_err(|_| LabError::ThreadEnded { thread: self.thread.clone() })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the thread itself.
            let _: Result<_, _> = thread.join();
        }
    }
}
