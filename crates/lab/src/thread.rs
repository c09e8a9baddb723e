//! Named threads that are joined when their handle is dropped.

use std::thread::{Builder, JoinHandle};

use crate::error::{LabError, Step};

/// A thread. Dropping this waits for its end, so drop what makes it end first.
#[derive(Debug)]
pub(crate) struct Thread<T> {
    name: String,
    handle: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Thread<T> {
    pub(crate) fn spawn(name: &str, job: impl FnOnce() -> T + Send + 'static) -> Result<Self, LabError> {
        let spawned = Builder::new().name(name.to_owned()).spawn(job);
        let handle = spawned.step(|| format!("starting the thread `{name}`"))?;
        Ok(Thread { name: name.to_owned(), handle: Some(handle) })
    }
}

impl<T> Thread<T> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    pub(crate) fn join(mut self) -> Result<T, LabError> {
        let ended = || thread_ended(&self.name);
        self.handle.take().ok_or_else(ended)?.join().map_err(|_| thread_ended(&self.name))
    }

    /// Lets the thread end without anyone waiting.
    pub(crate) fn detach(&mut self) {
        drop(self.handle.take());
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // The thread itself has printed its panic.
            let _: Result<_, _> = handle.join();
        }
    }
}

/// The error of a thread that ended before its work was done.
pub(crate) fn thread_ended(thread: &str) -> LabError {
    LabError::ThreadEnded { thread: thread.to_owned() }
}
