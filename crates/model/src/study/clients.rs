//! The clients of a study: h123's own, and external ones.

use super::factors::{FactorKind, check_name};
use super::{Library, Study};
use crate::error::InputError;
use crate::external::OWN_CLIENT;
use crate::plan::{Cell, NamedWorkload};
use crate::reader::Placed;
use crate::start::Start;
use crate::variant::Variant;

/// A workload, and the clients of a group that has it.
#[derive(Clone, Debug)]
pub(super) struct ClientsOf {
    pub(super) named: NamedWorkload,
    pub(super) clients: u32,
    pub(super) start: Start,
}

/// Checks that every client of the matrix and of the groups exists.
pub(super) fn check_names(study: &Study, library: &impl Library) -> Result<(), InputError> {
    let known: Vec<String> = [OWN_CLIENT.to_owned()].into_iter().chain(library.clients()).collect();
    study
        .named_levels(FactorKind::Client)
        .iter()
        .try_for_each(|level| check_name(level, "", "a client", &known))
}

/// Marks the cells whose client does not support them.
pub(super) fn check(
    levels: &[Placed<String>],
    workloads: &[ClientsOf],
    cells: &mut [Cell],
    library: &impl Library,
) -> Result<(), InputError> {
    for level in levels.iter().filter(|level| level.value != OWN_CLIENT) {
        let mut known: Vec<((Variant, usize, u32), Option<String>)> = Vec::new();
        for cell in cells.iter_mut() {
            if cell.group.client != level.value {
                continue;
            }
            let (variant, workload, clients) = (cell.group.variant, cell.group.workload, cell.group.clients);
            let reason = match known.iter().find(|(of, _)| *of == (variant, workload, clients)) {
                Some((_, reason)) => reason.clone(),
                None => {
                    let named = &workloads[workload].named;
                    // The client's description says in which order it can request several paths.
                    let mut special = named.options.clone();
                    special.requests.random_order = false;
                    if !special.is_default() {
                        return Err(level.error(format!(
                            "`{}` cannot make the requests of the workload `{}` ({}); use `{OWN_CLIENT}`, or remove these \
                             keys",
                            level.value,
                            named.name,
                            special.describe()
                        )));
                    }
                    let reason = match named.workload.merged(clients) {
                        Some(workload) => {
                            let merged = NamedWorkload { workload, ..named.clone() };
                            library.check_client(&level.value, variant, &merged)
                        }
                        None => Ok(Some(format!(
                            "{} runs once, which cannot be {clients} clients with this workload",
                            level.value
                        ))),
                    };
                    let reason = reason.map_err(|problem| level.error(problem))?;
                    known.push(((variant, workload, clients), reason.clone()));
                    reason
                }
            };
            if reason.is_some() {
                cell.expected_run_ns = 0;
            }
            cell.unsupported = reason;
        }
    }
    Ok(())
}
