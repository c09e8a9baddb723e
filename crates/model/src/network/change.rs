//! Changes of a network by hand: single keys, and whether a running link can take them.

use super::{Direction, Network, resolve, written};
use crate::error::{DataFile, Source};

impl Network {
    /// The same network with the values of these keys, from the start and after every change of its timeline.
    /// Values are as in a network file; those that are neither a table nor a list need no quotes.
    ///
    /// # Errors
    /// An unknown key, a bad unit or a contradiction.
    pub fn changed(
        &self,
        keys: &[(String, String)],
        trace: &dyn Fn(&str) -> Result<DataFile, String>,
    ) -> Result<Network, String> {
        let text: String = keys.iter().map(|(key, value)| written::line(key, value)).collect();
        let source = Source { file: "", text: &text };
        let changed = written::read_keys(source).and_then(|both| resolve::change(self, &both, trace));
        changed.map_err(|error| error.problem)
    }

    /// Whether links can change from this network to another while packets are on them.
    ///
    /// # Errors
    /// What cannot change while packets wait.
    pub fn check_live_change(&self, to: &Network) -> Result<(), String> {
        let kind = |direction: &Direction| std::mem::discriminant(&direction.queue.discipline);
        let is_same = kind(&self.up) == kind(&to.up) && kind(&self.down) == kind(&to.down);
        if is_same {
            return Ok(());
        }
        Err("the `discipline` of a queue cannot change while packets wait; start another lab".to_owned())
    }
}
