//! The clients of a study: h123's own, and external ones.

use super::Library;
use super::factors::check_name;
use crate::error::InputError;
use crate::external::OWN_CLIENT;
use crate::plan::{Cell, NamedWorkload};
use crate::reader::Placed;
use crate::variant::Variant;

/// The clients of the matrix; h123's own if it names none.
pub(super) fn resolve(levels: &[Placed<String>], library: &impl Library) -> Result<Vec<String>, InputError> {
    if levels.is_empty() {
        return Ok(vec![OWN_CLIENT.to_owned()]);
    }
    let known: Vec<String> = [OWN_CLIENT.to_owned()].into_iter().chain(library.clients()).collect();
    levels
        .iter()
        .map(|level| check_name(level, "", "a client", &known).map(|()| level.value.clone()))
        .collect()
}

/// Marks the cells whose client does not support them.
pub(super) fn check(
    levels: &[Placed<String>],
    workloads: &[(NamedWorkload, u32)],
    cells: &mut [Cell],
    library: &impl Library,
) -> Result<(), InputError> {
    for level in levels.iter().filter(|level| level.value != OWN_CLIENT) {
        let mut known: Vec<(Variant, usize, Option<String>)> = Vec::new();
        for cell in cells.iter_mut() {
            let Some(group) = cell.clients.iter().find(|group| group.client == level.value) else { continue };
            let (variant, workload) = (group.variant, group.workload);
            let reason = match known.iter().find(|(of, at, _)| (*of, *at) == (variant, workload)) {
                Some((.., reason)) => reason.clone(),
                None => {
                    let (named, _) = &workloads[workload];
                    let refused = library.check_client(&level.value, variant, &named.workload);
                    let reason = refused.map_err(|problem| level.error(problem))?;
                    known.push((variant, workload, reason.clone()));
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
