//! Open loop at half the ceiling: how late requests are sent, and how well the rate is held.

use analysis::Distribution;
use anyhow::{Context, Result, ensure};

use super::measurement::Measurement;
use super::run::{Ran, Session, command};
use crate::servers::Server;
use crate::works::{Work, find};

/// Sent − intended, p99, microseconds: at most this.
const LATE_US: f64 = 100.0;
/// Rate − requested rate, per cent: at most this.
const RATE_PER_CENT: f64 = 0.1;
/// The works: small bodies, one thread, as in the comparison with peers.
const WORKS: [&str; 3] = ["h1-c10", "h2c", "h3"];
const CEILING_SECONDS: u64 = 2;
const SECONDS: u64 = 4;
const WARMUP_SECONDS: u64 = 1;
/// The median of this many runs is judged.
const RUNS: usize = 5;

/// The result of one open loop.
#[derive(Clone, Copy, Debug)]
struct Lag {
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    /// How far the rate was from the requested one, in per cent.
    off_per_cent: f64,
}

pub(super) fn measure(session: &mut Session<'_>) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for name in WORKS {
        let work = find(name).context("a work that is not in the list")?;
        measurements.extend(of_work(session, work).context(name)?);
    }
    Ok(measurements)
}

fn of_work(session: &mut Session<'_>, work: &Work) -> Result<[Measurement; 2]> {
    let bench = session.bench;
    let server = Server::start(bench, work)?;
    let mut load = |seconds: u64, rate: Option<u64>| -> Result<Ran> {
        let mut command = command(bench, &server, work);
        command.args(["-d", &format!("{seconds}s")]);
        if let Some(rate) = rate {
            // Connections that are still being opened are not the schedule's.
            command.args(["--rate", &rate.to_string(), "--warmup", &format!("{WARMUP_SECONDS}s")]);
        }
        let what = format!("schedule {}", work.variant.name());
        session.run(&server, &what, &command, &[bench.client_cpu], seconds)
    };
    let ceiling = load(CEILING_SECONDS, None)?.number("/requests/per_second")?;
    let rate = half(ceiling)?;
    let lags = (0..RUNS).map(|_| Lag::of(&load(SECONDS, Some(rate))?, rate)).collect::<Result<Vec<_>>>()?;
    Ok(measurements(work, ceiling, rate, &lags))
}

impl Lag {
    fn of(ran: &Ran, rate: u64) -> Result<Lag> {
        let us = |name: &str| -> Result<f64> {
            Ok(ran.number(&format!("/schedule/sent_after_intended_ns/{name}"))? / 1e3)
        };
        ensure!(ran.number("/requests/never_sent")? == 0.0, "requests were never sent; all must be sent");
        let asked = rate as f64;
        let off_per_cent = (ran.number("/requests/per_second")? / asked - 1.0).abs() * 100.0;
        Ok(Lag { p50_us: us("p50")?, p99_us: us("p99")?, max_us: us("max")?, off_per_cent })
    }
}

fn measurements(work: &Work, ceiling: f64, rate: u64, lags: &[Lag]) -> [Measurement; 2] {
    let variant = work.variant.name();
    let quantile = |part: fn(&Lag) -> f64, share| {
        lags.iter().map(part).collect::<Distribution>().quantile(share).unwrap_or(f64::NAN)
    };
    let (middle, worst) = (|part| quantile(part, 0.5), |part| quantile(part, 1.0));
    let late = format!(
        "{rate} requests/s, half of {ceiling:.0}; median of {} runs of {SECONDS} s after {WARMUP_SECONDS} s of warm-up; p50 {:.1} µs, max {:.0} µs; worst \
         run: p99 {:.0} µs, max {:.0} µs",
        lags.len(),
        middle(|lag: &Lag| lag.p50_us),
        middle(|lag: &Lag| lag.max_us),
        worst(|lag: &Lag| lag.p99_us),
        worst(|lag: &Lag| lag.max_us),
    );
    let off = "the worst run; requests completed by second against the asked rate".to_owned();
    let (late_us, off_per_cent) = (middle(|lag: &Lag| lag.p99_us), worst(|lag: &Lag| lag.off_per_cent));
    [
        Measurement::at_most(format!("{variant}: sent − intended, p99"), late_us, LATE_US, "µs", late),
        Measurement::at_most(format!("{variant}: rate off by"), off_per_cent, RATE_PER_CENT, "%", off),
    ]
}

/// Half a rate as a whole number of requests a second.
fn half(ceiling: f64) -> Result<u64> {
    ensure!(ceiling.is_finite() && ceiling >= 2.0, "a ceiling of {ceiling} requests/s is too low to halve");
    format!("{:.0}", ceiling / 2.0).parse().context("the rate is not a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_run_is_judged_for_lateness_and_the_worst_for_the_rate() {
        let lag = |p99_us, off_per_cent| Lag { p50_us: 5.0, p99_us, max_us: 900.0, off_per_cent };
        let lags = [lag(90.0, 0.01), lag(400.0, 0.2), lag(80.0, 0.02)];
        let [late, off] = measurements(find("h2c").unwrap(), 50_000.0, 25_000, &lags);
        assert_eq!((late.value, late.met), (90.0, Some(true)));
        assert_eq!((off.value, off.met), (0.2, Some(false)));
        assert!(late.details.contains("worst run: p99 400 µs"), "{}", late.details);
    }

    #[test]
    fn half_a_ceiling_is_a_whole_rate() {
        assert_eq!(half(100_001.0).unwrap(), 50_000);
        assert!(half(f64::NAN).is_err());
        assert!(half(0.0).is_err());
    }
}
