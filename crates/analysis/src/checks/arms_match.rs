//! Arms differ in nothing but the HTTP version and what the study declares.

use std::collections::BTreeSet;

use model::arm::{ARM, Difference};
use model::plan::{Cell, Plan, ServerChain};
use model::variant::Variant;

use super::{Check, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "what differs from the baseline's arm besides the HTTP version: the server and its settings, the client \
               program, the workload, the fixed settings, encryption and the network; and whether a version in an arm's name is \
               the one it speaks",
    passes: "nothing that the arm's `differs` does not name",
    caveat: "something else",
    why: "Arms bundle several levels, so that a difference between them may have any of these causes.",
    remedy: "Give both arms the same, or declare the difference with `differs` if it is part of the question.",
    ..check("arms_match", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let plan = context.plan;
    let baseline = context.baseline.as_ref()?;
    let arms = [context.own.cell, baseline.cell].map(|cell| cell.level(ARM));
    if plan.arms.is_empty() || arms[0] == arms[1] {
        return None;
    }
    let named = plan.arms.iter().filter(|arm| arms.contains(&Some(arm.name.as_str())));
    let declared: BTreeSet<Difference> = named.flat_map(|arm| arm.differs.iter().copied()).collect();
    let found = differences(plan, context.own.cell, baseline.cell);
    let (known, other): (Vec<Difference>, Vec<Difference>) =
        found.into_iter().partition(|difference| declared.contains(difference));
    let names = |differences: &[Difference]| {
        differences.iter().map(|difference| difference.name()).collect::<Vec<_>>().join(", ")
    };
    let known = match known.as_slice() {
        [] => String::new(),
        known => format!("; declared: {}", names(known)),
    };
    let cells = [context.own.cell, baseline.cell];
    let misnamed: Vec<String> = cells.into_iter().filter_map(misnamed).collect();
    let mut measured = match other.as_slice() {
        [] => format!("no other difference{known}"),
        other => format!("different: {}{known}{}", names(other), same_version(cells[0], cells[1])),
    };
    misnamed.iter().for_each(|arm| measured.push_str(&format!("; {arm}")));
    let passes = other.is_empty() && misnamed.is_empty();
    Some(Finding::pass_or_caveat(passes, measured, "as in the baseline, or declared by `differs`"))
}

/// An arm whose name has a version of HTTP that its clients do not speak.
fn misnamed(cell: &Cell) -> Option<String> {
    let (name, spoken) = (cell.level(ARM)?, cell.group.variant.http());
    let has = |variant: Variant| name.to_uppercase().contains(&variant.http().to_string());
    let others = Variant::ALL.into_iter().filter(|variant| variant.http() != spoken);
    let is_misnamed = others.into_iter().any(has) && !has(cell.group.variant);
    is_misnamed.then(|| format!("the arm called {name} speaks {spoken}"))
}

/// Arms that should be different versions of HTTP and are not compare only what else differs.
fn same_version(own: &Cell, baseline: &Cell) -> String {
    let [own, baseline] = [own, baseline].map(|cell| cell.group.variant.http());
    if own == baseline { format!("; both speak {own} to the client") } else { String::new() }
}

/// What two cells differ in besides the HTTP version, in the order of [`Difference::ALL`].
fn differences(plan: &Plan, own: &Cell, baseline: &Cell) -> Vec<Difference> {
    let chain = |chain: &ServerChain| {
        let backs = chain.backs.iter().map(|back| (back.server.clone(), back.variant, back.set.clone()));
        (chain.server.clone(), chain.set.clone(), backs.collect::<Vec<_>>())
    };
    let differs = |difference: &Difference| match difference {
        Difference::Server => chain(&own.chain) != chain(&baseline.chain),
        Difference::Client => own.group.client != baseline.group.client,
        Difference::Workload => {
            let work = |cell: &'_ Cell| {
                let named = plan.workload_of(&cell.group);
                (&named.workload, &named.options, cell.group.clients)
            };
            work(own) != work(baseline)
        }
        Difference::Hold => plan.pins_of(own) != plan.pins_of(baseline),
        Difference::Tls => own.group.variant.is_encrypted() != baseline.group.variant.is_encrypted(),
        Difference::Network => {
            let (own, baseline) = (plan.network_of(own), plan.network_of(baseline));
            (&own.up, &own.down, &own.timeline) != (&baseline.up, &baseline.down, &baseline.timeline)
        }
    };
    Difference::ALL.into_iter().filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use model::Pins;
    use model::arm::Arm;
    use model::plan::Level;

    use super::*;
    use crate::fixtures::{Bench, caveats, passes, silent};

    /// Two arms, each with one of these variants.
    fn bench(variants: [Variant; 2], differs: &[Difference]) -> Bench {
        let mut bench = Bench::closed(&variants);
        let name = |cell: u32| format!("arm {cell}");
        for cell in &mut bench.plan.cells {
            cell.levels.retain(|level| level.factor != "variant");
            cell.levels.push(Level { factor: ARM.to_owned(), value: name(cell.cell) });
        }
        let differs = [Vec::new(), differs.to_vec()];
        bench.plan.arms =
            (0..).zip(differs).map(|(cell, differs)| Arm { name: name(cell), differs }).collect();
        bench.plan.baseline = Level { factor: ARM.to_owned(), value: name(0) };
        bench
    }

    fn measured(bench: &Bench) -> String {
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "arms_match").unwrap();
        found.measured.clone()
    }

    #[test]
    fn arms_that_differ_in_the_version_pass() {
        let bench = bench([Variant::H1s, Variant::H2], &[]);
        passes("arms_match", &bench);
        assert_eq!(measured(&bench), "no other difference");
        silent("arms_match", &Bench::closed(&[Variant::H1s, Variant::H2]));
    }

    #[test]
    fn an_arm_is_called_what_it_speaks() {
        let renamed = |names: [&str; 2], variants| {
            let mut bench = bench(variants, &[]);
            for (cell, name) in bench.plan.cells.iter_mut().zip(names) {
                for level in cell.levels.iter_mut().filter(|level| level.factor == ARM) {
                    level.value = name.to_owned();
                }
            }
            for (arm, name) in bench.plan.arms.iter_mut().zip(names) {
                arm.name = name.to_owned();
            }
            bench.plan.baseline.value = names[0].to_owned();
            bench
        };
        passes("arms_match", &renamed(["http/1.1, 6 connections", "HTTP/2"], [Variant::H1s, Variant::H2]));
        let asked = renamed(["HTTP/1.1", "HTTP/3"], [Variant::H1s, Variant::H2]);
        caveats(&asked, &["arms_match"]);
        assert_eq!(measured(&asked), "no other difference; the arm called HTTP/3 speaks HTTP/2");
        let both = renamed(["HTTP/1.1", "HTTP/2"], [Variant::H2, Variant::H2]);
        assert_eq!(measured(&both), "no other difference; the arm called HTTP/1.1 speaks HTTP/2");
    }

    #[test]
    fn cleartext_against_encryption_is_a_difference() {
        let undeclared = bench([Variant::H1, Variant::H2], &[]);
        caveats(&undeclared, &["arms_match"]);
        assert_eq!(measured(&undeclared), "different: tls");
        let declared = bench([Variant::H1, Variant::H2], &[Difference::Tls]);
        passes("arms_match", &declared);
        assert_eq!(measured(&declared), "no other difference; declared: tls");
    }

    #[test]
    fn every_other_difference_is_found() {
        let change = |difference: Difference, plan: &mut Plan| match difference {
            Difference::Server => {
                drop(plan.cells[1].chain.set.insert("workers".into(), model::Setting::Number(4)))
            }
            Difference::Client => plan.cells[1].group.client = "wrk".into(),
            Difference::Workload => {
                let mut other = plan.workloads[0].clone();
                other.workload.as_loop_mut().unwrap().connections = 10;
                plan.workloads.push(other);
                plan.cells[1].group.workload = 1;
            }
            Difference::Hold => plan.cells[1].pins = Some(Pins { mtu_bytes: 1400, ..Pins::default() }),
            Difference::Tls => plan.cells[1].group.variant = Variant::H2c,
            Difference::Network => {
                let mut other = plan.networks[0].clone();
                other.up.delay_ns += 1;
                plan.networks.push(other);
                plan.cells[1].network = 1;
            }
        };
        for difference in Difference::ALL {
            let mut undeclared = bench([Variant::H1s, Variant::H2], &[]).plan;
            change(difference, &mut undeclared);
            let cells = &undeclared.cells;
            assert_eq!(differences(&undeclared, &cells[1], &cells[0]), [difference]);
        }
        let mut one_of_two = bench([Variant::H1s, Variant::H2], &[Difference::Hold, Difference::Server]);
        change(Difference::Hold, &mut one_of_two.plan);
        change(Difference::Client, &mut one_of_two.plan);
        assert_eq!(measured(&one_of_two), "different: client; declared: hold");
    }
}
