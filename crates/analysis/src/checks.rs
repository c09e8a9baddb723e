//! The checks: whether a cell's values are valid. Each is one file and one entry of [`CHECKS`], and declares
//! what it measures, its thresholds, why it matters, what to do, and the tables that it reads.

use model::arm::ARM;
use model::external::{OWN_CLIENT, split_not_reported};
use model::number;
use model::page::Page;
use model::plan::{Cell, ClientGroup, Plan};
use model::record::{NetworkCalibration, StreamCalibration};
use model::variant::HttpVersion;

use crate::comparison;
use crate::distribution::Distribution;
use crate::metrics;
use crate::run::{GroupFacts, RunSummary, page_of, player_of};
use crate::summary::{CellSummary, CheckOutcome, CheckResult, ClaimResult};
use crate::table::Table;

mod all_requested;
mod arms_match;
mod body_content;
mod body_length;
mod calibration;
mod claims;
mod client_cpu;
mod client_limits;
mod client_suspended;
mod client_waited;
mod clock;
mod cold_server;
mod connections;
mod console_errors;
mod contents_match;
mod cores;
mod cpu_credits;
mod cpu_frequency;
mod cpu_steal;
mod delayed_ack;
mod disk;
mod dns_lookup;
mod drift;
mod empty_bodies;
mod emulation;
mod emulator_drops;
mod emulator_late;
mod ends_match;
mod events_match;
mod failed_requests;
mod failed_runs;
mod flow_control;
mod impossible_values;
mod jitter_order;
mod listen_overflow;
mod loopback_packets;
mod mean_of_means;
mod missed_schedule;
mod missing_tables;
mod missing_urls;
mod network_loss;
mod network_rate;
mod omission;
mod other_work;
mod outlying_run;
mod outside;
mod page_cache;
mod percentile;
mod pins_match;
mod players_match;
mod precision;
mod pushes;
mod records_match;
mod runs;
mod saturation;
mod script_variant;
mod server_draining;
mod server_limit;
mod server_stop;
mod server_time_joined;
mod server_time_precision;
mod server_waited;
mod shared_host;
mod single_requests;
mod status;
mod steady_state;
mod time_wait;
mod tls_match;
mod transports_match;
mod two_peaks;
mod udp_drops;
mod url_list;
mod urls;
mod version;
mod waiting;
mod workloads_match;

macro_rules! checks {
    ($($file:ident),* $(,)?) => { &[$($file::CHECK),*] };
}

/// Every check, in the order in which reports show them.
pub const CHECKS: &[Check] = checks! {
    version, status, body_length, body_content, failed_requests, all_requested, claims, url_list, missing_urls,
    console_errors, urls, empty_bodies, workloads_match, script_variant, contents_match, arms_match, pins_match,
    players_match, ends_match, connections, single_requests, pushes, events_match, clock, tls_match, records_match,
    transports_match, flow_control, loopback_packets, shared_host, delayed_ack, outside, missing_tables, failed_runs,
    runs, percentile, mean_of_means, impossible_values, precision, outlying_run, two_peaks, omission, saturation, drift, steady_state,
    cold_server, emulation, calibration, dns_lookup, network_rate, network_loss, emulator_late,
    emulator_drops, jitter_order, missed_schedule, listen_overflow, udp_drops, client_limits, time_wait, cpu_steal, cpu_credits,
    cpu_frequency, other_work, page_cache, disk, client_cpu, client_waited, client_suspended, server_waited,
    server_limit, server_stop, server_time_joined, server_time_precision, server_draining,
};

/// Decimals of a share that is hardly beyond its threshold.
const MOST_DIGITS: usize = 6;

/// One check.
pub struct Check {
    /// The name, as `--accept` takes it.
    pub name: &'static str,
    /// What it measures.
    pub measures: &'static str,
    /// The values with which a cell passes.
    pub passes: &'static str,
    /// The values that are a caveat.
    pub caveat: &'static str,
    /// The values that invalidate a cell.
    pub invalidates: &'static str,
    /// Why this matters.
    pub why: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// The tables that it reads, besides those of its metric and besides `runs` and `requests`.
    pub reads: &'static [Table],
    /// What it finds on a cell; `None` if it has nothing to judge.
    pub judge: fn(&Context<'_>) -> Option<Finding>,
}

/// A check that never invalidates and reads no further table; its file adds the texts.
const fn check(name: &'static str, judge: fn(&Context<'_>) -> Option<Finding>) -> Check {
    let (measures, passes, caveat, why, remedy) = ("", "", "", "", "");
    Check { name, measures, passes, caveat, invalidates: "never", why, remedy, reads: &[], judge }
}

/// A check that [`Finding::none_of`] judges.
const fn check_none_wrong(name: &'static str, judge: fn(&Context<'_>) -> Option<Finding>) -> Check {
    Check { passes: "0", caveat: "never", invalidates: "1 or more", ..check(name, judge) }
}

/// A cell and its runs, as checks see them.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its values.
    pub summary: &'a CellSummary,
    /// All its stored runs, in the order of the plan.
    pub stored: &'a [&'a RunSummary],
}

/// The data that a check may use.
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The reference measurements of the cell's network, if it was calibrated.
    pub network: Option<&'a NetworkCalibration>,
    /// The results of the study's claims.
    pub claims: &'a [ClaimResult],
    /// The cell to judge.
    pub own: Side<'a>,
    /// The baseline's cell with otherwise equal levels; `None` for the baseline's own cells.
    pub baseline: Option<Side<'a>>,
}

/// The result of a check, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Pass, caveat or invalid.
    pub result: CheckOutcome,
    /// The value measured.
    pub measured: String,
    /// The threshold.
    pub threshold: String,
}

/// The results of all checks that have something to judge on the cell at `place`. `stored` has the runs of
/// each cell.
pub fn judge_all(
    plan: &Plan,
    networks: &[NetworkCalibration],
    claims: &[ClaimResult],
    cells: &[CellSummary],
    stored: &[Vec<&RunSummary>],
    place: usize,
) -> Vec<CheckResult> {
    let side = |place: usize| {
        let (cell, summary) = (plan.cells.get(place)?, cells.get(place)?);
        Some(Side { cell, summary, stored: stored.get(place)? })
    };
    let Some(own) = side(place) else { return Vec::new() };
    let baseline = comparison::baseline_of(plan, own.cell)
        .and_then(|cell| side(cell.cell as usize))
        .filter(|side| side.summary.has_values());
    let (name, backend) = (&plan.network_of(own.cell).name, own.cell.backend);
    let network = networks.iter().find(|found| found.network == *name && found.backend == backend);
    let context = Context { plan, network, claims, own, baseline };
    CHECKS.iter().filter_map(|check| check.result(&context)).collect()
}

impl Check {
    /// Applies the check to the runs that have the tables it reads.
    pub fn result<'a>(&self, context: &Context<'a>) -> Option<CheckResult> {
        let lacks = |run: &RunSummary| run.lost.iter().any(|table| self.reads.contains(table));
        let has_losses = |side: &Side<'_>| side.stored.iter().any(|run| lacks(run));
        if !has_losses(&context.own) && !context.baseline.as_ref().is_some_and(has_losses) {
            return self.result_of(context);
        }
        let kept = |side: &Side<'a>| -> Vec<&'a RunSummary> {
            side.stored.iter().copied().filter(|run| !lacks(run)).collect()
        };
        let (own, baseline) = (kept(&context.own), context.baseline.as_ref().map(kept));
        let is_empty = |runs: &[&RunSummary]| runs.iter().all(|run| !run.outcome.is_ok());
        if is_empty(&own) {
            return None;
        }
        let baseline = context.baseline.zip(baseline.as_deref()).filter(|(_, runs)| !is_empty(runs));
        self.result_of(&Context {
            own: Side { stored: &own, ..context.own },
            baseline: baseline.map(|(side, stored)| Side { stored, ..side }),
            ..*context
        })
    }

    fn result_of(&self, context: &Context<'_>) -> Option<CheckResult> {
        let finding = match context.reason_not_reported(self.name) {
            Some(reason) => Finding::not_reported(reason),
            None => (self.judge)(context)?,
        };
        let accepted = context.plan.accepted.iter().any(|name| name == self.name);
        let (result, measured) = match finding.result {
            CheckOutcome::Invalid if accepted => {
                (CheckOutcome::Caveat, format!("{}; accepted by the study or --accept", finding.measured))
            }
            result => (result, finding.measured),
        };
        Some(CheckResult {
            check: self.name.to_owned(),
            result,
            measured,
            threshold: finding.threshold,
            why: self.why.to_owned(),
            remedy: self.remedy.to_owned(),
        })
    }
}

impl Context<'_> {
    /// A caveat in the place of a worse result if h123 does not start the server: its content may change.
    fn unless_outside(&self, result: CheckOutcome) -> CheckOutcome {
        if self.own.cell.chain.remote.is_some() { CheckOutcome::Caveat } else { result }
    }

    /// The page that the cell loads from servers whose bodies are unknown, if so.
    fn page_outside(&self) -> Option<&Page> {
        page_of(self.plan, &self.own.cell.group).filter(|page| page.is_outside())
    }

    /// Whether a browser loads the cell's page or plays its video: the external clients that do.
    fn is_in_browser(&self) -> bool {
        let group = &self.own.cell.group;
        let is_for_browsers = page_of(self.plan, group).is_some() || player_of(self.plan, group).is_some();
        group.client != OWN_CLIENT && is_for_browsers
    }

    /// Whether the study's metric is the time that a client waits for a response.
    fn is_response_time(&self) -> bool {
        metrics::find(&self.plan.metric).is_some_and(|metric| metric.is_response_time)
    }

    /// Whether versions of HTTP are compared: as variants, or as parts of arms.
    fn compares_versions(&self) -> bool {
        ["variant", ARM].contains(&self.plan.baseline.factor.as_str())
    }

    /// Whether servers are compared: as such, or as parts of arms. Not known of the baseline's arm, which is
    /// compared with nothing.
    fn compares_servers(&self) -> bool {
        match self.plan.baseline.factor.as_str() {
            "server" => true,
            ARM => self.baseline.as_ref().is_some_and(|side| side.cell.chain != self.own.cell.chain),
            _ => false,
        }
    }

    /// Why a check cannot be made: an external client does not report what the check needs.
    fn reason_not_reported(&self, check: &str) -> Option<&str> {
        let compares = check == workloads_match::CHECK.name;
        let baseline = self.baseline.as_ref().filter(|_| compares);
        if compares && baseline.is_none() {
            return None;
        }
        let sides = [Some(&self.own), baseline];
        let facts = sides.into_iter().flatten().flat_map(|side| side.ok()).flat_map(|run| &run.groups);
        let mut not_reported =
            facts.flat_map(|facts| &facts.not_reported).map(|entry| split_not_reported(entry));
        not_reported.find(|(about, _)| *about == check).map(|(_, reason)| reason)
    }
}

impl<'a> Side<'a> {
    /// Its runs that succeeded.
    pub fn ok(&self) -> impl Iterator<Item = &'a RunSummary> + '_ {
        self.stored.iter().copied().filter(|run| run.outcome.is_ok())
    }

    /// The facts of each client group in each stored run.
    fn facts(&self) -> impl Iterator<Item = (&'a ClientGroup, &'a GroupFacts)> + '_ {
        let group = &self.cell.group;
        self.stored.iter().copied().flat_map(move |run| std::iter::once(group).zip(&run.groups))
    }

    /// The sum of a count over these facts.
    fn sum(&self, count: impl Fn(&GroupFacts) -> u64) -> u64 {
        self.facts().map(|(_, facts)| count(facts)).sum()
    }

    /// A value of something that disturbs runs, in those that succeeded; `None` without any.
    fn disturbance(&self, value: impl Fn(&RunSummary) -> Option<f64>) -> Option<Disturbance> {
        let values: Vec<f64> = self.ok().filter_map(value).collect();
        let median = values.iter().copied().collect::<Distribution>().median()?;
        Some(Disturbance { median, values })
    }

    /// The median of a value over the runs that succeeded.
    fn median(&self, value: impl Fn(&RunSummary) -> Option<f64>) -> Option<f64> {
        self.ok().filter_map(value).collect::<Distribution>().median()
    }
}

/// More than this share of the runs may not be disturbed: a smaller part moves neither the median nor much of
/// its interval.
const DISTURBED_SHARE: f64 = 0.1;

/// The values of something that disturbs runs from outside, such as other programs. What disturbs a minority
/// of the runs does not change the median run.
struct Disturbance {
    median: f64,
    values: Vec<f64>,
}

impl Disturbance {
    /// Graded by the median run; a caveat if more than a tenth of the runs are beyond `pass`.
    fn grade(&self, pass: f64, caveat: f64) -> CheckOutcome {
        let disturbed = if self.is_frequent(pass) { CheckOutcome::Caveat } else { CheckOutcome::Pass };
        grade(self.median, pass, caveat).max(disturbed)
    }

    /// The median share, and the number of disturbed runs if they are the reason of a caveat.
    fn describe(&self, pass: f64, caveat: f64, unit: &str) -> String {
        let share = |share| percent_beside(share, &[pass, caveat]);
        let median = format!("{} {unit}", share(self.median)).trim_end().to_owned();
        if self.median > pass || !self.is_frequent(pass) {
            return median;
        }
        let (disturbed, runs) = (self.beyond(pass), counted(self.values.len() as u64, "run"));
        let most = share(self.values.iter().copied().fold(0.0, f64::max));
        format!(
            "{median} in the median run, beyond {} in {disturbed} of {runs} (up to {most})",
            percent(pass)
        )
    }

    fn is_frequent(&self, pass: f64) -> bool {
        number::count(self.beyond(pass)) > DISTURBED_SHARE * number::count(self.values.len())
    }

    fn beyond(&self, pass: f64) -> usize {
        self.values.iter().filter(|value| **value > pass).count()
    }
}

impl Finding {
    /// `value` passes up to `pass`, is a caveat up to `caveat`, and invalidates beyond.
    fn graded(value: f64, pass: f64, caveat: f64, measured: String, threshold: String) -> Finding {
        Finding { result: grade(value, pass, caveat), measured, threshold }
    }

    /// For checks that never invalidate.
    fn pass_or_caveat(passes: bool, measured: impl Into<String>, threshold: impl Into<String>) -> Finding {
        let result = if passes { CheckOutcome::Pass } else { CheckOutcome::Caveat };
        Finding { result, measured: measured.into(), threshold: threshold.into() }
    }

    /// A client does not report what the check needs.
    fn not_reported(reason: &str) -> Finding {
        Finding::pass_or_caveat(false, format!("not judged: {reason}"), "reported, as by h123's own client")
    }

    /// None of `all` things may be wrong. Without things there is nothing to judge.
    fn none_of(wrong: u64, all: u64, things: &str, detail: &str) -> Option<Finding> {
        let result = if wrong == 0 { CheckOutcome::Pass } else { CheckOutcome::Invalid };
        let measured = format!("{wrong} of {all} {things}{detail}");
        (all > 0).then(|| Finding { result, measured, threshold: "0".to_owned() })
    }
}

/// `value` passes up to `pass`, is a caveat up to `caveat`, and invalidates beyond.
fn grade(value: f64, pass: f64, caveat: f64) -> CheckOutcome {
    match value {
        value if value <= pass => CheckOutcome::Pass,
        value if value <= caveat => CheckOutcome::Caveat,
        _ => CheckOutcome::Invalid,
    }
}

/// Whether a connection of the cell can have several requests in flight.
fn is_multiplexed(cell: &Cell) -> bool {
    cell.group.variant.http() != HttpVersion::Http11
}

/// A count with its noun: `1 request`, `2 requests`.
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A share such as `3%`.
fn percent(share: f64) -> String {
    format!("{}%", model::units::three_digits(share * 100.0))
}

/// A share with enough digits to be told from thresholds that it does not equal.
fn percent_beside(share: f64, thresholds: &[f64]) -> String {
    let is_clear = |text: &str, other: &dyn Fn(f64) -> String| {
        thresholds.iter().all(|threshold| share.total_cmp(threshold).is_eq() || text != other(*threshold))
    };
    let plain = percent(share);
    if is_clear(&plain, &|threshold| percent(threshold)) {
        return plain;
    }
    let precise = |digits: usize| move |value: f64| format!("{:.digits$}%", value * 100.0);
    let texts = (1..=MOST_DIGITS).map(|digits| (precise(digits)(share), precise(digits)));
    texts.into_iter().find(|(text, other)| is_clear(text, other)).map_or(plain, |(text, _)| text)
}

/// The reference measurements of both directions.
fn directions(network: &NetworkCalibration) -> [(&'static str, &StreamCalibration); 2] {
    [("up", &network.up), ("down", &network.down)]
}

/// Nanoseconds for people.
fn time(ns: f64) -> String {
    model::units::format_duration_ns(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_check_does_not_invalidate() {
        let mut bench = crate::fixtures::Bench::page(&[model::Variant::H1]);
        bench.records[2].links[0].down.lost_overload = 1;
        crate::fixtures::fails("emulator_drops", &bench);
        bench.plan.accepted = vec!["emulator_drops".to_owned()];
        crate::fixtures::caveats(&bench, &["emulator_drops"]);
        let cell = &bench.summary().cells[0];
        let found = cell.validity.iter().find(|check| check.check == "emulator_drops").unwrap();
        assert_eq!(found.measured, "1 of 200 frames; accepted by the study or --accept");
    }

    #[test]
    fn every_check_has_a_reason_and_a_remedy() {
        let names: std::collections::BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len(), "duplicate name");
        for check in CHECKS {
            let rule = [check.measures, check.passes, check.caveat, check.invalidates];
            assert!(rule.iter().all(|text| !text.is_empty() && !text.ends_with('.')), "{}", check.name);
            assert!(check.why.ends_with('.') && check.remedy.ends_with('.'), "{}", check.name);
        }
    }
}
