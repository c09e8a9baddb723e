//! The CPUs that a study chooses for the parts of its runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The CPUs of the parts of a run; those that are empty have the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreChoice {
    /// Those of servers that have none behind them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<usize>,
    /// Those of servers with another behind them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxy: Vec<usize>,
    /// Those of the clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<usize>,
    /// That of the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator: Option<usize>,
}

/// More CPUs than a kernel knows.
const MOST_CPUS: usize = 8192;

impl CoreChoice {
    /// Whether everything has the default.
    pub fn is_default(&self) -> bool {
        *self == CoreChoice::default()
    }

    /// Every CPU that is chosen, with the key that chooses it.
    pub fn chosen(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let lists = [("server", &self.server), ("proxy", &self.proxy), ("client", &self.client)];
        let listed = lists.into_iter().flat_map(|(key, cpus)| cpus.iter().map(move |cpu| (key, *cpu)));
        listed.chain(self.emulator.map(|cpu| ("emulator", cpu)))
    }
}

/// Reads a list of CPUs as Linux writes them, such as `0-3,6`, in ascending order.
///
/// # Errors
/// It is no such list.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, String> {
    let fault = || format!("`{text}` is not a list of CPUs; write numbers and ranges such as `0-3,6`");
    let number =
        |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < MOST_CPUS).ok_or_else(fault);
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(fault());
        }
        cpus.extend(from..=to);
    }
    Ok(cpus.into_iter().collect())
}

/// A list of CPUs as Linux writes them.
pub fn format_cpus(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|cpu, next| cpu + 1 == *next);
    let range = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    runs.map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_as_linux_writes_them() {
        for (text, cpus) in
            [("0", &[0][..]), ("0-3,6", &[0, 1, 2, 3, 6]), ("6, 0-1", &[0, 1, 6]), ("2,2", &[2])]
        {
            assert_eq!(parse_cpus(text).unwrap(), cpus, "{text}");
            assert_eq!(parse_cpus(&format_cpus(cpus)).unwrap(), cpus, "{text}");
        }
        assert_eq!(format_cpus(&[0, 1, 2, 5]), "0-2,5");
        for text in ["", "a", "3-1", "1-", "-1", "0,,1", "9999", "0-99999999999"] {
            assert!(parse_cpus(text).unwrap_err().contains("not a list of CPUs"), "{text}");
        }
    }
}
