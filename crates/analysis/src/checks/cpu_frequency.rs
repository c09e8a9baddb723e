//! The cores kept their frequency.

use model::number;

use super::{Check, Context, Finding, Table, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "the lowest and the highest frequency of a core, if the kernel reports it",
    passes: "within the margin",
    caveat: "farther apart",
    why: "When a core changes its frequency, the cost of everything changes with what ran before and with \
          the temperature.",
    remedy: "Set the governor `performance` and disable boost while you measure.",
    reads: &[Table::Monitor],
    ..check("cpu_frequency", judge)
};

/// Of the core that changed most in each run.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let seen = context.own.ok().filter_map(|run| run.monitor).map(|facts| facts.cores);
    let seen: Vec<(u64, u64)> =
        seen.filter(|cores| cores.slowest_hz > 0).map(|cores| (cores.slowest_hz, cores.fastest_hz)).collect();
    let slowest = number::float(seen.iter().map(|(slowest, _)| *slowest).min()?);
    let fastest = number::float(seen.iter().map(|(_, fastest)| *fastest).max()?);
    let allowed = context.plan.margin_share;
    let ghz = |hz: f64| model::units::three_digits(hz / 1e9);
    let measured = format!("{} to {} GHz", ghz(slowest), ghz(fastest));
    let is_steady = fastest / slowest - 1.0 <= allowed;
    Some(Finding::pass_or_caveat(is_steady, measured, format!("within {}", percent(allowed))))
}

#[cfg(test)]
mod tests {
    use model::monitor::{Quantity, SubjectKind};
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    fn at(frequencies_mhz: &[u64]) -> Bench {
        let bench = Bench::closed(&[Variant::H1]);
        frequencies_mhz.iter().fold(bench, |bench, mhz| {
            bench.with_reading(None, SubjectKind::Core, Quantity::Frequency, mhz * 1_000_000)
        })
    }

    #[test]
    fn a_steady_frequency_passes_and_an_unknown_one_is_not_judged() {
        passes("cpu_frequency", &at(&[2100, 2120]));
        silent("cpu_frequency", &Bench::closed(&[Variant::H1]));
        silent("cpu_frequency", &at(&[0, 0]));
    }

    #[test]
    fn a_change_beyond_the_margin_is_a_caveat() {
        caveats(&at(&[2100, 3500, 2100]), &["cpu_frequency"]);
    }
}
