//! `make bench-load`: `h123 load` alone. Does it keep its schedule, what does a connection hold in memory,
//! does memory grow with the number of requests, do two threads share anything?

mod measurement;
mod memory;
mod run;
mod schedule;
mod threads;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use rustix::process::{Resource, getrlimit, setrlimit};

use self::measurement::{FORMAT, Failure, LoadOutcome, Measurement, Measurements};
use self::run::Session;
use crate::outcome::Output;
use crate::servers::Bench;

/// What is measured, and how much of it.
#[derive(Args, Debug)]
pub(crate) struct Alone {
    /// Measure this only (may be given again)
    #[arg(long, value_enum, value_name = "TEST")]
    only: Vec<Test>,
    /// 100 million requests where memory over time is measured, in place of 10 million
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// One question about `h123 load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Test {
    /// Open loop at half the ceiling: how late requests are sent, how well the rate is held (h1, h2c, h3)
    Schedule,
    /// 15 000 open connections: memory of each (h1, h1s)
    Memory,
    /// Few requests and many: the same peak of memory
    Long,
    /// One thread and two: requests/s, CPU per request, what they share
    Threads,
}

/// How a test measures.
type Measure = fn(&mut Session<'_>) -> Result<Vec<Measurement>>;

impl Test {
    /// Its name, and how it measures.
    fn parts(self) -> (&'static str, Measure) {
        match self {
            Test::Schedule => ("schedule", schedule::measure),
            Test::Memory => ("memory", memory::per_connection),
            Test::Long => ("long", memory::over_time),
            Test::Threads => ("threads", threads::measure),
        }
    }
}

/// Measures, prints and stores; returns whether everything requested was measured.
pub(crate) fn run(asked: &Alone, stop: &Arc<AtomicBool>) -> Result<bool> {
    let bench = Bench::prepare(crate::h123(asked.output.h123.as_deref())?, stop)?;
    raise_file_limit()?;
    let mut outcome = LoadOutcome::new(FORMAT, Measurements::default());
    let mut session = Session { bench: &bench, full: asked.full, notes: Vec::new() };
    let tests =
        Test::value_variants().iter().filter(|test| asked.only.is_empty() || asked.only.contains(test));
    for test in tests {
        let (name, measure) = test.parts();
        eprintln!("{name} …");
        match measure(&mut session) {
            Ok(measurements) => {
                let named =
                    measurements.into_iter().map(|measurement| Measurement { test: name, ..measurement });
                outcome.measured.measurements.extend(named);
            }
            Err(error) => outcome.failures.push(Failure { test: name, reason: format!("{error:#}") }),
        }
        if bench.is_interrupted() {
            break;
        }
    }
    outcome.notes = session.notes;
    outcome.publish("bench-load", &asked.output, &measurement::table(&outcome.measured.measurements))
}

/// Lets this process and its children open as many files as the machine allows.
fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| anyhow!("cannot raise the limit of open files: {error}"))
}
