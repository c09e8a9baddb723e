//! The requests in flight of a worker.

use engine::RequestId;
use model::sample::Sample;

/// Rows of requests in flight by slot; slots are reused.
#[derive(Default)]
pub(crate) struct Slots {
    rows: Vec<Option<Sample>>,
    free: Vec<usize>,
}

impl Slots {
    /// Puts a request into a free slot, whose number is the engine's name for it.
    pub(crate) fn insert(&mut self, sample: Sample) -> RequestId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() - 1
        });
        self.rows[index] = Some(sample);
        index as RequestId
    }

    /// How many requests are in flight.
    pub(crate) const fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// The requests in flight.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &Sample)> {
        self.rows.iter().zip(0..).filter_map(|(row, id)| Some((id, row.as_ref()?)))
    }

    pub(crate) fn get_mut(&mut self, request: RequestId) -> Option<&mut Sample> {
        self.rows.get_mut(usize::try_from(request).ok()?)?.as_mut()
    }

    pub(crate) fn get(&self, request: RequestId) -> Option<&Sample> {
        self.rows.get(usize::try_from(request).ok()?)?.as_ref()
    }

    /// Takes a request out.
    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Sample> {
        let index = usize::try_from(request).ok()?;
        let sample = self.rows.get_mut(index)?.take()?;
        self.free.push(index);
        Some(sample)
    }

    /// Takes all requests out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Sample> {
        self.free.clear();
        std::mem::take(&mut self.rows).into_iter().flatten()
    }
}
