//! The CPUs for the parts of a run, so that the scheduler's choice does not affect the result.

use model::cores::{CoreChoice, format_cpus};
use model::plan::ServerChain;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::exit::UsageError;

/// The CPUs of one run's processes; empty if there is only one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Those of servers that have none behind them.
    pub(crate) server: Vec<usize>,
    /// Those of servers that clients reach or that have another behind them; the servers' unless the study
    /// chooses.
    pub(crate) proxy: Vec<usize>,
    /// Those of the clients.
    pub(crate) client: Vec<usize>,
    /// The emulator's.
    pub(crate) emulator: Option<usize>,
    /// The monitor's, if there is one left; otherwise it runs on any.
    pub(crate) monitor: Option<usize>,
}

impl Cores {
    /// Distributes the CPUs that this process may use, as far as the study does not.
    ///
    /// # Errors
    /// The study chooses a CPU that this process may not use.
    pub(crate) fn of_this_process(choice: &CoreChoice) -> anyhow::Result<Cores> {
        let available = sched_getaffinity(None)
            .map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>());
        Cores::share(&available.unwrap_or_default(), choice).map_err(|problem| UsageError(problem).into())
    }

    /// The CPUs of a server by its place in the chain. What clients reach has the CPUs of proxies even if it
    /// has no server behind it, so that it is compared with proxies on equal terms.
    pub(crate) fn of_server(&self, place: usize, chain: &ServerChain) -> &[usize] {
        if place == 0 || place < chain.backs.len() { &self.proxy } else { &self.server }
    }

    /// The server gets the first CPU, the client the last, and the emulator the second if there are three. Of
    /// two CPUs the emulator shares the server's: the client measures, and while the emulator has packets to
    /// send, the server's next ones must wait anyway.
    fn share(available: &[usize], choice: &CoreChoice) -> Result<Cores, String> {
        if let Some((key, cpu)) = choice.chosen().find(|(_, cpu)| !available.contains(cpu)) {
            let usable = format_cpus(available);
            return Err(format!(
                "[cores]: `{key}` has CPU {cpu}, and h123 may use {usable}; choose one of these"
            ));
        }
        let default = match available {
            [first, .., last] => {
                let emulator = if available.len() > 2 { available[1] } else { *first };
                let monitor = (available.len() > 3).then(|| available[2]);
                let server = vec![*first];
                Cores {
                    proxy: server.clone(),
                    server,
                    client: vec![*last],
                    emulator: Some(emulator),
                    monitor,
                }
            }
            _ => Cores::default(),
        };
        let chosen =
            |chosen: &[usize], default: Vec<usize>| if chosen.is_empty() { default } else { chosen.to_vec() };
        let server = chosen(&choice.server, default.server);
        let proxy = chosen(&choice.proxy, server.clone());
        let client = chosen(&choice.client, default.client);
        let emulator = choice.emulator.or(default.emulator);
        let is_free = |cpu: &usize| {
            ![&server, &proxy, &client].into_iter().any(|cpus| cpus.contains(cpu)) && emulator != Some(*cpu)
        };
        Ok(Cores { monitor: default.monitor.filter(is_free), server, proxy, client, emulator })
    }

    /// For `environment.json`.
    pub(crate) fn describe(&self) -> String {
        if self.server.is_empty() {
            return "client and server share one CPU".to_owned();
        }
        let [server, client] = [&self.server, &self.client].map(|cpus| format_cpus(cpus));
        let proxy = match &self.proxy {
            proxy if *proxy == self.server => String::new(),
            proxy => format!("proxy {}, ", format_cpus(proxy)),
        };
        format!("server {server}, {proxy}client {client}, emulator {}", format_cpus(self.emulator.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(available: &[usize]) -> Cores {
        Cores::share(available, &CoreChoice::default()).unwrap()
    }

    #[test]
    fn cores_are_described_in_words() {
        assert_eq!(share(&[0, 1]).describe(), "server 0, client 1, emulator 0");
        assert_eq!(share(&[3]).describe(), "client and server share one CPU");
    }

    #[test]
    fn client_and_server_have_separate_cores_if_there_are_two() {
        assert_eq!(share(&[3]), Cores::default());
        for available in [&[0, 1][..], &[2, 5, 7], &[0, 1, 2, 3]] {
            let cores = share(available);
            assert_eq!(cores.server, [available[0]]);
            assert_eq!(cores.proxy, cores.server);
            assert_eq!(cores.client, [available[available.len() - 1]]);
            assert_ne!(cores.emulator, Some(cores.client[0]));
            assert_eq!(cores.emulator == Some(cores.server[0]), available.len() == 2);
            let others = [Some(cores.server[0]), Some(cores.client[0]), cores.emulator];
            assert!(!others.contains(&cores.monitor));
            assert_eq!(cores.monitor.is_some(), available.len() > 3);
        }
    }

    #[test]
    fn a_study_chooses_cores() {
        let choice = CoreChoice { proxy: vec![2], client: vec![4, 5, 7], ..CoreChoice::default() };
        let cores = Cores::share(&[0, 1, 2, 3, 4, 5, 6, 7], &choice).unwrap();
        assert_eq!(cores.describe(), "server 0, proxy 2, client 4-5,7, emulator 1");
        assert_eq!(cores.monitor, None, "its CPU is the proxy's");
        let error = Cores::share(&[0, 1], &choice).unwrap_err();
        assert_eq!(error, "[cores]: `proxy` has CPU 2, and h123 may use 0-1; choose one of these");
    }
}
