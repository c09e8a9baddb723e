//! `make bench-load`: `h123 load` on its own. Is its schedule kept, what does a connection hold in memory, does memory
//! grow with the number of requests, do two threads share anything?

mod figure;
mod memory;
mod run;
mod schedule;
mod threads;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::machine;
use crate::servers::Bench;
use figure::{Failure, Figure, Outcome};

/// What is measured, and how much of it.
#[derive(Args, Debug)]
pub(crate) struct Alone {
    /// Measure this only (may be given again)
    #[arg(long, value_enum, value_name = "TEST")]
    only: Vec<Test>,
    /// 100 million requests where memory over time is measured, in place of 10 million
    #[arg(long)]
    full: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Where the JSON goes
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// The binary to measure (default: the one that was built together with this)
    #[arg(long, value_name = "FILE")]
    pub(crate) h123: Option<PathBuf>,
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

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::Schedule => "schedule",
            Test::Memory => "memory",
            Test::Long => "long",
            Test::Threads => "threads",
        }
    }

    fn measure(
        self,
        bench: &Bench,
        full: bool,
        stop: &AtomicBool,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Figure>> {
        match self {
            Test::Schedule => schedule::measure(bench, stop, notes),
            Test::Memory => memory::per_connection(bench, stop, notes),
            Test::Long => memory::over_time(bench, full, stop, notes),
            Test::Threads => threads::measure(bench, stop, notes),
        }
    }
}

/// Measures, prints and stores; whether all that was asked could be measured.
pub(crate) fn run(asked: &Alone, stop: &AtomicBool) -> Result<bool> {
    let bench = Bench::prepare(crate::h123(asked.h123.as_deref())?)?;
    raise_file_limit()?;
    let now = jiff::Timestamp::now();
    let mut outcome = Outcome::new(now.to_string(), machine::description());
    let tests =
        Test::value_variants().iter().filter(|test| asked.only.is_empty() || asked.only.contains(test));
    for test in tests {
        eprintln!("{} …", test.name());
        match test.measure(&bench, asked.full, stop, &mut outcome.notes) {
            Ok(figures) => outcome.figures.extend(figures),
            Err(error) => {
                outcome.failures.push(Failure { test: test.name(), reason: format!("{error:#}") });
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let json = serde_json::to_string_pretty(&outcome)?;
    let file = crate::store(&asked.out, "bench-load", now, &json)?;
    if asked.json {
        println!("{json}");
    } else {
        print!("{}", figure::text(&outcome));
    }
    eprintln!("written: {}", file.display());
    Ok(outcome.failures.is_empty())
}

/// Lets this process and its children open as many files as the machine allows.
fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| anyhow!("cannot raise the limit of open files: {error}"))
}
