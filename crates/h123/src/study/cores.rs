//! The CPUs for the parts of a run, so that the scheduler's choice does not affect the result.

use rustix::thread::{CpuSet, sched_getaffinity};

/// The CPUs of one run's processes; empty if there is only one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores {
    /// The server's.
    pub(crate) server: Vec<usize>,
    /// The client's.
    pub(crate) client: Vec<usize>,
    /// The emulator's.
    pub(crate) emulator: Option<usize>,
    /// The monitor's, if there is one left; otherwise it runs on any.
    pub(crate) monitor: Option<usize>,
}

impl Cores {
    /// Distributes the CPUs that this process may use.
    pub(crate) fn of_this_process() -> Cores {
        let available = sched_getaffinity(None)
            .map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>());
        Cores::share(&available.unwrap_or_default())
    }

    /// The server gets the first CPU, the client the last, and the emulator the second if there are three. Of
    /// two CPUs the emulator shares the server's: the client measures, and while the emulator has packets to
    /// send, the server's next ones must wait anyway.
    fn share(available: &[usize]) -> Cores {
        match available {
            [first, .., last] => {
                let emulator = if available.len() > 2 { available[1] } else { *first };
                let monitor = (available.len() > 3).then(|| available[2]);
                Cores { server: vec![*first], client: vec![*last], emulator: Some(emulator), monitor }
            }
            _ => Cores::default(),
        }
    }

    /// For `environment.json`.
    pub(crate) fn describe(&self) -> String {
        if self.server.is_empty() {
            return "client and server share one CPU".to_owned();
        }
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
        let [server, client] = [&self.server, &self.client].map(|cpus| list(cpus));
        format!("server {server}, client {client}, emulator {}", list(self.emulator.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_described_in_words() {
        assert_eq!(Cores::share(&[0, 1]).describe(), "server 0, client 1, emulator 0");
        assert_eq!(Cores::share(&[3]).describe(), "client and server share one CPU");
    }

    #[test]
    fn client_and_server_have_separate_cores_if_there_are_two() {
        assert_eq!(Cores::share(&[3]), Cores::default());
        for available in [&[0, 1][..], &[2, 5, 7], &[0, 1, 2, 3]] {
            let cores = Cores::share(available);
            assert_eq!(cores.server, [available[0]]);
            assert_eq!(cores.client, [available[available.len() - 1]]);
            assert_ne!(cores.emulator, Some(cores.client[0]));
            assert_eq!(cores.emulator == Some(cores.server[0]), available.len() == 2);
            let others = [Some(cores.server[0]), Some(cores.client[0]), cores.emulator];
            assert!(!others.contains(&cores.monitor));
            assert_eq!(cores.monitor.is_some(), available.len() > 3);
        }
    }
}
