//! One thread and two. Threads that share nothing cost what as many processes cost, and never meet in a futex.
//!
//! Cache lines that threads share cannot be seen where a virtual machine hides the hardware's counters, but they can be
//! felt: two threads of one process are compared with two processes of one thread each, in interleaved pairs, with as many
//! connections and on the same CPUs.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::figure::Figure;
use super::run::{Ran, command, note, start};
use crate::machine;
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

pub(super) fn measure(bench: &Bench, stop: &AtomicBool, notes: &mut Vec<String>) -> Result<Vec<Figure>> {
    let work =
        Work { connections: CONNECTIONS, ..*find("h1-c10").context("a work that is not in the list")? };
    let server = Server::start(bench, &work, stop)?;
    let cpus = cpus(bench, notes)?;
    let one = one_thread(bench, &server, &work, stop, notes)?;
    let pairs = (0..PAIRS)
        .map(|index| pair(bench, &server, &work, &cpus, index % 2 == 0, (stop, &mut *notes)))
        .collect::<Result<Vec<_>>>()?;
    let mut figures = compared(&one, &pairs)?;
    figures.push(futexes(bench, &server, &work, &cpus, stop)?);
    match profile(bench, &server, &work, &cpus, stop) {
        Ok((figure, top)) => {
            figures.push(figure);
            notes.push(top);
        }
        // perf belongs to the kernel's version and is not everywhere; strace and the pairs above do without it.
        Err(error) => notes.push(format!("threads: no profile: {error:#}")),
    }
    Ok(figures)
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

fn one_thread(
    bench: &Bench,
    server: &Server,
    work: &Work,
    stop: &AtomicBool,
    notes: &mut Vec<String>,
) -> Result<Ran> {
    let ran = start(bench, server, "h123", timed(bench, server, work, 1), &[bench.client_cpu])?.finish(
        server,
        Duration::from_secs(SECONDS),
        stop,
    )?;
    note(notes, "threads, one", &ran);
    Ok(ran)
}

fn timed(bench: &Bench, server: &Server, work: &Work, threads: u32) -> Command {
    let mut command = command(bench, server, work);
    command.args(["-t", &threads.to_string(), "-d", &format!("{SECONDS}s")]);
    command
}

fn pair(
    bench: &Bench,
    server: &Server,
    work: &Work,
    cpus: &[usize],
    threads_first: bool,
    (stop, notes): (&AtomicBool, &mut Vec<String>),
) -> Result<Pair> {
    let expected = Duration::from_secs(SECONDS);
    let mut threads = || -> Result<(f64, f64)> {
        let ran = start(bench, server, "threads", timed(bench, server, work, 2), cpus)?
            .finish(server, expected, stop)?;
        note(notes, "threads, two", &ran);
        Ok((ran.cpu_us()?, ran.number("/requests/per_second")?))
    };
    let processes = || -> Result<f64> {
        let half = Work { connections: work.connections / 2, ..*work };
        let begin = |name| start(bench, server, name, timed(bench, server, &half, 1), cpus);
        let (first, second) = (begin("first")?, begin("second")?);
        let ran = [first.finish(server, expected, stop)?, second.finish(server, expected, stop)?];
        let cpu_ns: u64 = ran.iter().map(|ran| ran.ended.cpu_user_ns + ran.ended.cpu_system_ns).sum();
        let [first, second] = &ran;
        let requests = first.number("/requests/completed")? + second.number("/requests/completed")?;
        Ok(cpu_ns as f64 / 1e3 / requests)
    };
    let ((threads_us, threads_per_second), processes_us) = if threads_first {
        let found = threads()?;
        (found, processes()?)
    } else {
        let processes_us = processes()?;
        (threads()?, processes_us)
    };
    Ok(Pair { threads_us, processes_us, threads_per_second })
}

fn compared(one: &Ran, pairs: &[Pair]) -> Result<Vec<Figure>> {
    let median = |part: fn(&Pair) -> f64| {
        Median::of(&pairs.iter().map(part).collect::<Vec<_>>()).context("found no pair of runs")
    };
    let ratio = median(|pair| pair.threads_us / pair.processes_us)?;
    let (threads, rate) = (median(|pair| pair.threads_us)?, median(|pair| pair.threads_per_second)?);
    let processes = median(|pair| pair.processes_us)?;
    let interval = ratio.interval.map_or_else(String::new, |(low, high)| format!(" [{low:.3}, {high:.3}]"));
    let beside = format!(
        "{} pairs, interval{interval}; {:.2} and {:.2} µs, {CONNECTIONS} connections, h1",
        pairs.len(),
        threads.median,
        processes.median
    );
    let what = "CPU per request, two threads / two processes";
    Ok(vec![
        Figure::plain(
            "threads",
            "requests/s, one thread",
            one.number("/requests/per_second")?,
            "",
            String::new(),
        ),
        Figure::plain("threads", "requests/s, two threads", rate.median, "", String::new()),
        Figure::plain("threads", "CPU per request, one thread", one.cpu_us()?, "µs", String::new()),
        Figure::plain("threads", "CPU per request, two threads", threads.median, "µs", String::new()),
        Figure::at_most("threads", what, ratio.median, SHARING, "", beside),
    ])
}

/// Futex calls of few and of many requests: what they differ by belongs to requests.
fn futexes(bench: &Bench, server: &Server, work: &Work, cpus: &[usize], stop: &AtomicBool) -> Result<Figure> {
    let calls = |requests: u64| -> Result<u64> {
        let file = bench.path("strace.txt");
        let mut traced = Command::new("strace");
        traced.args(["-f", "-c", "--seccomp-bpf", "-e", "trace=futex", "-o"]).arg(&file);
        append(&mut traced, &counted(bench, server, work, requests));
        run_tool(bench, "strace", traced, cpus, stop)?;
        parse_futexes(&std::fs::read_to_string(&file).context("cannot read what strace wrote")?)
    };
    let (few, many) = (calls(FEW_REQUESTS)?, calls(MANY_REQUESTS)?);
    let thousands = (MANY_REQUESTS - FEW_REQUESTS) as f64 / 1e3;
    let per_thousand = many.saturating_sub(few) as f64 / thousands;
    let beside =
        format!("strace: {few} calls for {FEW_REQUESTS} requests, {many} for {MANY_REQUESTS}, two threads");
    let what = "futex calls per 1000 further requests";
    Ok(Figure::at_most("threads", what, per_thousand, FUTEXES, "", beside))
}

/// The share of samples in locks, and the first symbols in words.
fn profile(
    bench: &Bench,
    server: &Server,
    work: &Work,
    cpus: &[usize],
    stop: &AtomicBool,
) -> Result<(Figure, String)> {
    let data = bench.path("perf.data");
    let mut recorded = Command::new("perf");
    recorded.args(["record", "-q", "-e", "cpu-clock", "-o"]).arg(&data).arg("--");
    append(&mut recorded, &timed(bench, server, work, 2));
    run_tool(bench, "perf", recorded, cpus, stop)?;
    let mut reported = Command::new("perf");
    reported.args(["report", "--stdio", "--no-children", "--fields", "overhead,sym", "-i"]).arg(&data);
    let text = run_tool(bench, "perf-report", reported, cpus, stop)?;
    let symbols = parse_symbols(&text);
    ensure!(!symbols.is_empty(), "found no symbols in what perf reported");
    let locks: Vec<&(f64, String)> = symbols.iter().filter(|(_, name)| is_lock(name)).collect();
    let share = locks.iter().map(|(share, _)| share).sum();
    let beside = match locks.first() {
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
    Ok((Figure::at_most("threads", "time in locks and futexes", share, LOCKS_PER_CENT, "%", beside), top))
}

/// Whether a symbol is a lock of the program, or the kernel's part of one: its other locks are its own affair.
fn is_lock(symbol: &str) -> bool {
    let name = symbol.to_lowercase();
    if name.starts_with("[k]") {
        name.contains("futex")
    } else {
        LOCKS.iter().any(|lock| name.contains(lock))
    }
}

fn counted(bench: &Bench, server: &Server, work: &Work, requests: u64) -> Command {
    let mut command = command(bench, server, work);
    command.args(["-t", "2", "-n", &requests.to_string()]);
    command
}

/// Adds a command to the end of another's arguments.
fn append(outer: &mut Command, inner: &Command) {
    outer.arg(inner.get_program()).args(inner.get_args());
}

fn run_tool(
    bench: &Bench,
    name: &str,
    command: Command,
    cpus: &[usize],
    stop: &AtomicBool,
) -> Result<String> {
    let running = bench.start(name, &command, cpus)?;
    let ended = running.wait(TOOL_LIMIT, stop)?;
    ensure!(ended.status.success(), "{name} ended with {}: {}", ended.status, running.last_words());
    running.stdout()
}

/// The number of calls in strace's summary; without a line there was none.
fn parse_futexes(text: &str) -> Result<u64> {
    ensure!(text.is_empty() || text.contains("calls"), "found `{text}`, expected strace's summary");
    let line = text.lines().find(|line| line.split_whitespace().last() == Some("futex"));
    line.map_or(Ok(0), |line| {
        line.split_whitespace()
            .nth(3)
            .and_then(|calls| calls.parse().ok())
            .with_context(|| format!("found `{line}`, expected the number of calls in its fourth column"))
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
