//! Links that vary by a file: Mahimahi's packet-delivery opportunities, and tables of times and rates.

use serde::{Deserialize, Serialize};

use super::FULL_FRAME_BYTES;
use crate::error::{InputError, Place, Source};
use crate::number::nearest;
use crate::units::{self, NANOS_PER_MS, NANOS_PER_S};

/// The most lines of a trace: 100 Mbit/s for eight minutes.
pub const MOST_LINES: usize = 4_000_000;
/// The most rows of a table, and the most different times of a trace.
pub const MOST_STEPS: usize = 500_000;
/// No trace is longer than a day.
const LONGEST_NS: u64 = 24 * 3600 * NANOS_PER_S;
const BITS_PER_BYTE: u128 = 8;

/// A Mahimahi trace: instants at which the link may send one full frame. It restarts at its end.
///
/// Source: R. Netravali and others, "Mahimahi: accurate record-and-replay for HTTP", USENIX ATC 2015; the
/// format is that of `mm-link`. An opportunity that finds no packet is wasted; small packets share one, and
/// one in two may be a packet's. Mahimahi counts 1504 bytes for a packet of 1500; here it is the frame's
/// [`FULL_FRAME_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opportunities {
    /// When (milliseconds from the trace's start, ascending) and how many frames at once.
    pub at_ms: Vec<(u32, u32)>,
}

impl Opportunities {
    /// The time of the last opportunity, after which the trace restarts; above 0.
    pub fn period_ns(&self) -> u64 {
        self.at_ms.last().map_or(1, |(at_ms, _)| u64::from(*at_ms).max(1)) * NANOS_PER_MS
    }

    /// Opportunities, times a full frame, over the period.
    pub fn mean_bits_per_s(&self) -> u64 {
        let frames: u128 = self.at_ms.iter().map(|(_, frames)| u128::from(*frames)).sum();
        let bits = frames * u128::from(FULL_FRAME_BYTES) * BITS_PER_BYTE * u128::from(NANOS_PER_S);
        u64::try_from(bits / u128::from(self.period_ns())).unwrap_or(u64::MAX)
    }
}

/// A table of rates over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSteps {
    /// From when (ascending, the first at 0) and how many bits per second.
    pub steps: Vec<(u64, u64)>,
    /// The time after which it restarts; without it, the last rate holds forever.
    pub repeat_ns: Option<u64>,
}

impl RateSteps {
    /// The mean over one repetition; where there is none, the last rate, which holds for ever.
    pub fn mean_bits_per_s(&self) -> u64 {
        let last = self.steps.last().map_or(0, |(_, bits_per_s)| *bits_per_s);
        let Some(repeat_ns) = self.repeat_ns.filter(|ns| *ns > 0) else { return last };
        let ends = self.steps.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([repeat_ns]);
        let spans = self.steps.iter().zip(ends);
        let bits: u128 = spans
            .map(|((at_ns, rate), end_ns)| u128::from(*rate) * u128::from(end_ns.saturating_sub(*at_ns)))
            .sum();
        u64::try_from(bits / u128::from(repeat_ns)).unwrap_or(u64::MAX)
    }
}

/// Reads a Mahimahi trace: one whole number of milliseconds per line, ascending, the last above 0. Empty
/// lines and what follows `#` are ignored.
///
/// # Errors
/// File and line of a wrong number, of one below that of the line before, or of a trace that is empty or too
/// long.
pub fn parse_mahimahi(source: Source<'_>) -> Result<Opportunities, InputError> {
    let mut at_ms: Vec<(u32, u32)> = Vec::new();
    for (line, text) in lines(source)? {
        let fault = |problem: String| fault(source, line, problem);
        let expected = "is not a time; write whole milliseconds, up to a day, as Mahimahi does";
        let time_ms: u32 = text.parse().map_err(|_| fault(format!("`{}` {expected}", short(text))))?;
        if u64::from(time_ms) * NANOS_PER_MS > LONGEST_NS {
            return Err(fault(format!("`{time_ms}` {expected}")));
        }
        let times = at_ms.len();
        match at_ms.last_mut() {
            Some((last_ms, frames)) if *last_ms == time_ms => *frames = frames.saturating_add(1),
            Some((last_ms, _)) if *last_ms > time_ms => {
                return Err(fault(format!("{time_ms} ms is before {last_ms} ms; write ascending times")));
            }
            _ if times == MOST_STEPS => {
                return Err(fault(format!(
                    "the trace has more than {MOST_STEPS} different times; shorten it"
                )));
            }
            _ => at_ms.push((time_ms, 1)),
        }
    }
    match at_ms.last() {
        None => Err(fault(
            source,
            1,
            "the trace has no opportunity; write a time in milliseconds per line".into(),
        )),
        Some((0, _)) => Err(fault(
            source,
            1,
            "every opportunity is at 0 ms; add a later one, at which the trace restarts".into(),
        )),
        Some(_) => Ok(Opportunities { at_ms }),
    }
}

/// Reads a table `TIME,RATE`, a row per line, the first at time 0. Values carry their units
/// (`1.5s,10Mbit/s`), or a first line names them for the columns (`time_s,rate_mbit_s`). Empty lines and what
/// follows `#` are ignored.
///
/// # Errors
/// File and line of what cannot be read, of times that do not ascend from 0, or of a table that never sends.
pub fn parse_csv(source: Source<'_>, repeat_ns: Option<u64>) -> Result<RateSteps, InputError> {
    let mut units = Units::Written;
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut is_first = true;
    for (line, text) in lines(source)? {
        let fault = |problem: String| fault(source, line, problem);
        let header = if is_first { Units::header(text) } else { None };
        is_first = false;
        if let Some(named) = header {
            units = named.map_err(fault)?;
            continue;
        }
        let (at_ns, bits_per_s) = units.row(text).map_err(fault)?;
        match steps.last() {
            None if at_ns > 0 => {
                return Err(fault("the first row is after time 0; write one at 0".into()));
            }
            Some((last_ns, _)) if *last_ns >= at_ns => {
                return Err(fault(
                    "this time is not after that of the row before; write ascending times".into(),
                ));
            }
            _ if steps.len() == MOST_STEPS => {
                return Err(fault(format!("the table has more than {MOST_STEPS} rows; shorten it")));
            }
            _ => steps.push((at_ns, bits_per_s)),
        }
    }
    let whole = |problem: &str| Err(fault(source, 1, problem.to_owned()));
    let Some((last_ns, last_rate)) = steps.last().copied() else {
        return whole("the table has no row; write rows such as `0s,10Mbit/s`");
    };
    if repeat_ns.is_some_and(|repeat_ns| repeat_ns <= last_ns) {
        return whole(
            "a row is at or after `repeat`, when the table restarts; write earlier times, or a later `repeat`",
        );
    }
    if repeat_ns.is_none() && last_rate == 0 {
        return whole("the last rate is 0 and holds forever; write more, or `repeat`");
    }
    if steps.iter().all(|(_, rate)| *rate == 0) {
        return whole("every rate is 0; write one above 0");
    }
    Ok(RateSteps { steps, repeat_ns })
}

/// In which units a table's columns are.
#[derive(Clone, Copy)]
enum Units {
    /// Each value carries its own.
    Written,
    /// Nanoseconds and bits per second in one of the column's.
    Named { time_ns: f64, rate_bits_per_s: f64 },
}

const TIMES: &[(&str, f64)] = &[("time_s", 1e9), ("time_ms", 1e6), ("time_us", 1e3)];
const RATES: &[(&str, f64)] =
    &[("rate_bit_s", 1.0), ("rate_kbit_s", 1e3), ("rate_mbit_s", 1e6), ("rate_gbit_s", 1e9)];

impl Units {
    /// The units that a first line names; `None` where it is a row.
    fn header(line: &str) -> Option<Result<Units, String>> {
        if !line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let (time, rate) = line.split_once(',').unwrap_or((line, ""));
        let find = |name: &str, known: &[(&str, f64)]| {
            let found = known.iter().find(|(unit, _)| *unit == name.trim()).map(|(_, factor)| *factor);
            found.ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(unit, _)| *unit).collect();
                format!("`{}` is not a column; the choices are {}", short(name), names.join(", "))
            })
        };
        let both =
            |time_ns| find(rate, RATES).map(|rate_bits_per_s| Units::Named { time_ns, rate_bits_per_s });
        Some(find(time, TIMES).and_then(both))
    }

    fn row(self, line: &str) -> Result<(u64, u64), String> {
        let (time, rate) = line.split_once(',').ok_or_else(|| {
            format!("`{}` is not a row; write a time and a rate, separated by a comma", short(line))
        })?;
        let (at_ns, bits_per_s) = match self {
            Units::Written => {
                (units::parse_duration_ns(time.trim())?, units::parse_rate_bits_per_s(rate.trim())?)
            }
            Units::Named { time_ns, rate_bits_per_s } => {
                (number(time, time_ns)?, number(rate, rate_bits_per_s)?)
            }
        };
        if at_ns > LONGEST_NS {
            return Err(format!("the time `{}` is too long; write at most a day", short(time)));
        }
        Ok((at_ns, bits_per_s))
    }
}

/// A plain number times its column's unit, rounded.
fn number(text: &str, factor: f64) -> Result<u64, String> {
    let fault = || format!("`{}` is not a number; write one in the column's unit, 0 or more", short(text));
    let value: f64 = text.trim().parse().map_err(|_| fault())?;
    let scaled = (value * factor).round();
    if (0.0..9e18).contains(&scaled) { Ok(nearest(scaled)) } else { Err(fault()) }
}

/// The lines with content, with their numbers from 1.
fn lines(source: Source<'_>) -> Result<impl Iterator<Item = (usize, &str)>, InputError> {
    let count = source.text.lines().count();
    if count > MOST_LINES {
        return Err(fault(
            source,
            1,
            format!("the file has {count} lines; at most {MOST_LINES} are allowed"),
        ));
    }
    let said = source.text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    Ok((1..).zip(said).filter(|(_, line)| !line.is_empty()))
}

fn fault(source: Source<'_>, line: usize, problem: String) -> InputError {
    InputError { place: Place { file: source.file.to_owned(), line, column: 1 }, problem }
}

/// The part of a line that an error shows.
fn short(text: &str) -> String {
    const MOST_CHARACTERS: usize = 40;
    let mut shown: String = text.trim().chars().take(MOST_CHARACTERS).collect();
    if shown.len() < text.trim().len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mahimahi(text: &str) -> Result<Opportunities, String> {
        parse_mahimahi(Source { file: "t.trace", text }).map_err(|error| error.to_string())
    }

    fn csv(text: &str, repeat_ns: Option<u64>) -> Result<RateSteps, String> {
        parse_csv(Source { file: "t.csv", text }, repeat_ns).map_err(|error| error.to_string())
    }

    #[test]
    fn mahimahi_counts_opportunities_at_the_same_time() {
        let trace = mahimahi("# ours\n0\n1\n1\n\n4 # end\n").unwrap();
        assert_eq!(trace.at_ms, [(0, 1), (1, 2), (4, 1)]);
        assert_eq!(trace.period_ns(), 4 * NANOS_PER_MS);
        // Four frames of 1514 bytes in 4 ms.
        assert_eq!(trace.mean_bits_per_s(), 12_112_000);
    }

    #[test]
    fn mahimahi_faults_name_the_line() {
        assert!(mahimahi("1\n2\nx\n").unwrap_err().starts_with("t.trace:3:1: `x` is not a time"));
        assert!(mahimahi("1\n2\n-3\n").unwrap_err().starts_with("t.trace:3:1: `-3` is not a time"));
        assert_eq!(
            mahimahi("5\n4\n").unwrap_err(),
            "t.trace:2:1: 4 ms is before 5 ms; write ascending times"
        );
        assert!(mahimahi("\n#\n").unwrap_err().contains("has no opportunity"));
        assert!(mahimahi("0\n0\n").unwrap_err().contains("is at 0 ms"));
        assert!(mahimahi("90000000000").unwrap_err().contains("`90000000000` is not a time"));
        assert!(mahimahi("86400001").unwrap_err().contains("up to a day"));
    }

    #[test]
    fn csv_with_units_in_values_or_in_a_header() {
        let expected = [(0, 10_000_000), (1_500_000_000, 0), (2_000_000_000, 250_000)];
        assert_eq!(csv("0s,10Mbit/s\n1.5 s, 0bit/s\n2s,250kbit/s\n", None).unwrap().steps, expected);
        assert_eq!(csv("time_s,rate_mbit_s\n0,10\n1.5,0\n2,0.25\n", None).unwrap().steps, expected);
        let repeated = csv("0s,10Mbit/s\n1s,20Mbit/s\n", Some(4 * NANOS_PER_S)).unwrap();
        assert_eq!(repeated.mean_bits_per_s(), 17_500_000);
        assert_eq!(csv("0s,10Mbit/s\n1s,20Mbit/s\n", None).unwrap().mean_bits_per_s(), 20_000_000);
    }

    #[test]
    fn csv_faults_name_the_line() {
        let fault = |text: &str| csv(text, None).unwrap_err();
        assert!(fault("0s,10Mbit/s\n1s 3Mbit/s\n").starts_with("t.csv:2:1: `1s 3Mbit/s` is not a row"));
        assert!(fault("0,10\n").contains("is not a duration"));
        assert!(fault("1s,1Mbit/s\n").contains("write one at 0"));
        assert!(
            fault("0s,1Mbit/s\n1s,1Mbit/s\n1s,2Mbit/s\n").starts_with("t.csv:3:1: this time is not after")
        );
        assert!(fault("time,rate\n0,1\n").contains("`time` is not a column; the choices are time_s"));
        assert!(fault("time_s,rate_mbit_s\n0,-1\n").starts_with("t.csv:2:1: `-1` is not a number"));
        assert!(fault("time_s,rate_mbit_s\n0,nan\n").contains("is not a number"));
        assert!(fault("").contains("has no row"));
        assert!(fault("0s,1Mbit/s\n1s,0bit/s\n").contains("last rate is 0"));
        assert!(csv("0s,0bit/s\n", Some(5)).unwrap_err().contains("every rate is 0"));
        assert!(csv("0s,1bit/s\n9s,1bit/s\n", Some(9_000_000_000)).unwrap_err().contains("table restarts"));
    }
}
