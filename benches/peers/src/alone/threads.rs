//! One thread and two. Threads that share nothing cost as much as the same number of processes, and never
//! wait for a futex.
//!
//! A virtual machine hides the hardware's counters of shared cache lines, but their cost shows: two threads
//! of one process are compared with two processes of one thread each, in interleaved pairs, with the same
//! number of connections and on the same CPUs.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::measurement::Measurement;
use super::run::{Ran, Session, command};
use crate::machine;
use crate::measure::Started;
use crate::row::Median;
use crate::servers::{Bench, Server};
use crate::works::{Work, find};

/// CPU per request of two threads over that of two processes: at most this.
const SHARING: f64 = 1.05;
/// Futex calls per 1000 further requests: at most this.
const FUTEXES: f64 = 0.01;
/// Share of samples in locks, per cent: at most this.
const LOCKS_PER_CENT: f64 = 0.1;
const PAIRS: usize = 8;
const SECONDS: u64 = 2;
/// Connections of two threads together.
const CONNECTIONS: u32 = 20;
/// strace stops a process at every futex call: few requests and many more.
const FEW_REQUESTS: u64 = 20_000;
const MANY_REQUESTS: u64 = 220_000;
/// Names of functions that wait for, or hand over, something shared.
const LOCKS: [&str; 8] =
    ["futex", "mutex", "rwlock", "condvar", "lock_contended", "pthread_cond", "thread::park", "spin_loop"];
const TOOL_LIMIT: Duration = Duration::from_secs(90);

/// Two CPU costs and rates that were measured one after the other.
#[derive(Clone, Copy, Debug)]
struct Pair {
    threads_us: f64,
    processes_us: f64,
    threads_per_second: f64,
}

/// What every run of this test shares.
#[derive(Clone, Copy)]
struct Setup<'a> {
    bench: &'a Bench,
    server: &'a Server,
    work: &'a Work,
    /// The CPUs of two threads.
    cpus: &'a [usize],
}

pub(super) fn measure(session: &mut Session<'_>) -> Result<Vec<Measurement>> {
    let bench = session.bench;
    let work =
        &Work { connections: CONNECTIONS, ..*find("h1-c10").context("a work that is not in the list")? };
    let server = &Server::start(bench, work)?;
    let cpus = &cpus(bench, &mut session.notes)?;
    let setup = Setup { bench, server, work, cpus };
    let one = session.run(server, "threads, one", &setup.timed(1), &[bench.client_cpu], SECONDS)?;
    let pairs = (0..PAIRS).map(|index| setup.pair(session, index % 2 == 0)).collect::<Result<Vec<_>>>()?;
    let mut measurements = compared(&one, &pairs)?;
    measurements.push(setup.futexes()?);
    match setup.profile() {
        Ok((measurement, top)) => {
            measurements.push(measurement);
            session.notes.push(top);
        }
        // perf depends on the kernel's version and may be missing; strace and the pairs above do not need it.
        Err(error) => session.notes.push(format!("threads: no profile: {error:#}")),
    }
    Ok(measurements)
}

/// The CPUs of two threads: without the server's where there are three.
fn cpus(bench: &Bench, notes: &mut Vec<String>) -> Result<Vec<usize>> {
    let others: Vec<usize> =
        machine::cpus()?.into_iter().filter(|cpu| *cpu != bench.server_cpu).take(2).collect();
    if others.len() == 2 {
        return Ok(others);
    }
    notes.push("threads: two CPUs only: the second thread shares the server's".to_owned());
    Ok(vec![bench.server_cpu, bench.client_cpu])
}

fn compared(one: &Ran, pairs: &[Pair]) -> Result<Vec<Measurement>> {
    let median = |part: fn(&Pair) -> f64| {
        Median::of(&pairs.iter().map(part).collect::<Vec<_>>()).context("no pair of runs succeeded")
    };
    let ratio = median(|pair| pair.threads_us / pair.processes_us)?;
    let (threads, rate) = (median(|pair| pair.threads_us)?, median(|pair| pair.threads_per_second)?);
    let processes = median(|pair| pair.processes_us)?;
    let interval = ratio.interval.map_or_else(String::new, |(low, high)| format!(" [{low:.3}, {high:.3}]"));
    let details = format!(
        "{} pairs, interval{interval}; {:.2} and {:.2} µs, {CONNECTIONS} connections, h1",
        pairs.len(),
        threads.median,
        processes.median
    );
    let what = "CPU per request, two threads / two processes";
    Ok(vec![
        Measurement::plain("requests/s, one thread", one.number("/requests/per_second")?, ""),
        Measurement::plain("requests/s, two threads", rate.median, ""),
        Measurement::plain("CPU per request, one thread", one.cpu_us()?, "µs"),
        Measurement::plain("CPU per request, two threads", threads.median, "µs"),
        Measurement::at_most(what, ratio.median, SHARING, "", details),
    ])
}

impl Setup<'_> {
    fn command(self, threads: u32) -> Command {
        let mut command = command(self.bench, self.server, self.work);
        command.args(["-t", &threads.to_string()]);
        command
    }

    fn timed(self, threads: u32) -> Command {
        let mut command = self.command(threads);
        command.args(["-d", &format!("{SECONDS}s")]);
        command
    }

    fn pair(self, session: &mut Session<'_>, threads_first: bool) -> Result<Pair> {
        let threads = |session: &mut Session<'_>| -> Result<(f64, f64)> {
            let ran = session.run(self.server, "threads, two", &self.timed(2), self.cpus, SECONDS)?;
            Ok((ran.cpu_us()?, ran.number("/requests/per_second")?))
        };
        let ((threads_us, threads_per_second), processes_us) = if threads_first {
            let measured = threads(session)?;
            (measured, self.processes_us(session)?)
        } else {
            let processes_us = self.processes_us(session)?;
            (threads(session)?, processes_us)
        };
        Ok(Pair { threads_us, processes_us, threads_per_second })
    }

    /// CPU per request of two processes with one thread each.
    fn processes_us(self, session: &Session<'_>) -> Result<f64> {
        let half = Work { connections: self.work.connections / 2, ..*self.work };
        let command = Setup { work: &half, ..self }.timed(1);
        let begin = |name| Started::begin(self.bench, self.server, name, &command, self.cpus);
        let started = [begin("first")?, begin("second")?];
        let (mut cpu_ns, mut requests) = (0, 0.0);
        for process in started {
            let (ran, _) = session.finish(process, self.server, SECONDS)?;
            cpu_ns += ran.exit.cpu_user_ns + ran.exit.cpu_system_ns;
            requests += ran.number("/requests/completed")?;
        }
        Ok(cpu_ns as f64 / 1e3 / requests)
    }

    /// Futex calls of few and of many requests: the difference is the cost of requests.
    fn futexes(self) -> Result<Measurement> {
        let calls = |requests: u64| -> Result<u64> {
            let file = self.bench.path("strace.txt");
            let mut traced = Command::new("strace");
            traced.args(["-f", "-c", "--seccomp-bpf", "-e", "trace=futex", "-o"]).arg(&file);
            append(&mut traced, self.command(2).args(["-n", &requests.to_string()]));
            self.run_tool("strace", &traced)?;
            parse_futexes(&std::fs::read_to_string(&file).context("cannot read what strace wrote")?)
        };
        let (few, many) = (calls(FEW_REQUESTS)?, calls(MANY_REQUESTS)?);
        let thousands = (MANY_REQUESTS - FEW_REQUESTS) as f64 / 1e3;
        let per_thousand = many.saturating_sub(few) as f64 / thousands;
        let details = format!(
            "strace: {few} calls for {FEW_REQUESTS} requests, {many} for {MANY_REQUESTS}, two threads"
        );
        let what = "futex calls per 1000 further requests";
        Ok(Measurement::at_most(what, per_thousand, FUTEXES, "", details))
    }

    /// The share of samples in locks, and the names of the first symbols.
    fn profile(self) -> Result<(Measurement, String)> {
        let data = self.bench.path("perf.data");
        let mut recorded = Command::new("perf");
        recorded.args(["record", "-q", "-e", "cpu-clock", "-o"]).arg(&data).arg("--");
        append(&mut recorded, &self.timed(2));
        self.run_tool("perf", &recorded)?;
        let mut reported = Command::new("perf");
        reported.args(["report", "--stdio", "--no-children", "--fields", "overhead,sym", "-i"]).arg(&data);
        let text = self.run_tool("perf-report", &reported)?;
        let symbols = parse_symbols(&text);
        ensure!(!symbols.is_empty(), "perf's report has no symbols");
        let locks: Vec<&(f64, String)> = symbols.iter().filter(|(_, name)| is_lock(name)).collect();
        let share = locks.iter().map(|(share, _)| share).sum();
        let details = match locks.first() {
            Some((share, name)) => format!("most: {name} {share:.2} %; perf, two threads"),
            None => format!("{} symbols, none of a lock or futex; perf, two threads", symbols.len()),
        };
        let own: Vec<String> = symbols
            .iter()
            .filter(|(_, name)| name.starts_with("[.]"))
            .take(5)
            .map(|(share, name)| format!("{} {share:.1} %", name.trim_start_matches("[.]").trim()))
            .collect();
        let top = format!("threads: first in user space: {}", own.join(", "));
        Ok((Measurement::at_most("time in locks and futexes", share, LOCKS_PER_CENT, "%", details), top))
    }

    fn run_tool(self, name: &str, command: &Command) -> Result<String> {
        let running = self.bench.start(name, command, self.cpus)?;
        let ended = self.bench.wait(&running, TOOL_LIMIT)?;
        ensure!(ended.status.success(), "{name} ended with {}: {}", ended.status, running.last_words());
        running.stdout()
    }
}

/// Whether a symbol is a lock of the program, or the kernel's part of one; the kernel's other locks do not
/// count.
fn is_lock(symbol: &str) -> bool {
    let name = symbol.to_lowercase();
    if name.starts_with("[k]") {
        name.contains("futex")
    } else {
        LOCKS.iter().any(|lock| name.contains(lock))
    }
}

/// Adds a command to the end of another's arguments.
fn append(outer: &mut Command, inner: &Command) {
    outer.arg(inner.get_program()).args(inner.get_args());
}

/// The number of calls in strace's summary; without a line there was none.
fn parse_futexes(text: &str) -> Result<u64> {
    ensure!(text.is_empty() || text.contains("calls"), "`{text}` is not strace's summary");
    let line = text.lines().find(|line| line.split_whitespace().last() == Some("futex"));
    line.map_or(Ok(0), |line| {
        line.split_whitespace()
            .nth(3)
            .and_then(|calls| calls.parse().ok())
            .with_context(|| format!("`{line}` has no number of calls in its fourth column"))
    })
}

/// Share in per cent and name with its level (`[k]` or `[.]`), as perf prints them: the largest first.
fn parse_symbols(text: &str) -> Vec<(f64, String)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (share, name) = line.trim().split_once('%')?;
            Some((share.trim().parse().ok()?, name.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000123          12        10         2 futex\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000123          12        10         2 total\n";
        assert_eq!(parse_futexes(text).unwrap(), 10);
        assert_eq!(parse_futexes("").unwrap(), 0);
        assert!(parse_futexes("strace: cannot").is_err());
        assert!(parse_futexes("calls\nbroken futex").is_err());
    }

    #[test]
    fn perf_is_read() {
        let text = "# Overhead  Symbol\n# ........\n\n    12.50%  [k] tcp_sendmsg\n     1.25%  [.] load::worker::run\n\n";
        let symbols = parse_symbols(text);
        assert_eq!(
            symbols,
            [(12.5, "[k] tcp_sendmsg".to_owned()), (1.25, "[.] load::worker::run".to_owned())]
        );
        assert!(parse_symbols("").is_empty());
    }

    #[test]
    fn locks_are_the_programs_or_futexes() {
        for lock in ["[k] futex_wait_queue", "[.] std::sys::sync::mutex::futex::Mutex::lock_contended"] {
            assert!(is_lock(lock), "{lock}");
        }
        for other in ["[k] mutex_lock", "[.] h2::handle_block", "[.] load::worker::run"] {
            assert!(!is_lock(other), "{other}");
        }
    }
}
