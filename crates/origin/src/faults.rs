//! Faults of the content, such as a broken index: each is written to standard error once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The most faults that are written.
const MOST_FAULTS: usize = 100;

/// The faults so far.
#[derive(Default)]
pub(crate) struct Faults(Mutex<BTreeSet<String>>);

impl Faults {
    /// Writes a fault to standard error, unless it was written before.
    pub(crate) fn note(&self, fault: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_FAULTS && !known.contains(&fault) {
            eprintln!("origin: {fault}");
            known.insert(fault);
        }
    }

    /// All faults that were written.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_noted_once_and_bounded() {
        let faults = Faults::default();
        for number in 0..1_000 {
            faults.note(format!("/{}", number / 2));
        }
        assert_eq!(faults.all().len(), MOST_FAULTS);
    }
}
