//! A study with arms or sweeps is a family of simple studies, one for each *point*: an arm and a level of
//! each sweep. The values of a point are written into the study's document, which is then read and resolved
//! like any other. [`super::join`] makes one plan of them.

use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::arms::{self, Arms};
use super::classes;
use super::except::{self, Exception, Exceptions};
use super::factors::{DeclaredFactor, FactorKind};
use super::join::Join;
use super::sweeps::{self, Names, Sweep};
use super::{Library, Override, Study, full, overrides, resolve, written};
use crate::arm::ARM;
use crate::error::{InputError, Place, Source};
use crate::level::is_sweep;
use crate::plan::Plan;
use crate::reader::{Table, document, parse};
use crate::run_order::order;
use crate::tunable::Contents;

/// More cells than this are a mistake in the matrix.
pub(super) const MOST_CELLS: usize = 10_000;
/// More runs than this would not end within days.
const MOST_RUNS: u64 = 1_000_000;

/// The factors that simple studies do not have.
struct Family<'a> {
    /// The factors of the matrix, in the order of the file.
    order: Vec<String>,
    arms: Option<Arms<'a>>,
    sweeps: Vec<Sweep>,
    exceptions: Exceptions,
    /// The place of the matrix.
    place: Place,
}

/// Reads a study with the command line's overrides, and resolves every point of it.
pub(super) fn parse_study(
    name: &str,
    source: Source<'_>,
    given: &[Override],
    library: &impl Library,
) -> Result<Plan, InputError> {
    let values: Vec<String> = given.iter().map(Override::to_toml).collect();
    let mut document = parse(source)?;
    full::apply(&mut document, source, given)?;
    overrides::write_into(&mut document, given, &values)?;
    let family = Family::read(&document, source)?;
    let simple = family.simple(&document, source)?;
    let counts = family.counts();
    let count = counts.iter().try_fold(1_usize, |product, count| {
        product.checked_mul(*count).filter(|product| *product <= MOST_CELLS)
    });
    let count = count.ok_or_else(|| family.too_many_cells())?;
    let first = family.study(name, source, &simple, &[])?;
    let factors: Rc<[DeclaredFactor]> = family.factors(&first).into();
    factors.iter().try_for_each(DeclaredFactor::check)?;
    let exceptions = family.exceptions.resolve(&factors)?;
    let own: Vec<usize> = family.point_factors(&factors);
    let mut join = Join::new(&factors, &own, &counts, family.arms.as_ref().map_or(&[], |arms| &arms.bundled));
    for point in 0..count {
        let levels = indices(point, &counts);
        let level_of = |factor| own.iter().position(|place| *place == factor).map(|place| levels[place]);
        if exceptions.iter().any(|exception| exception.matches(level_of)) {
            continue;
        }
        let mut study = family.study(name, source, &simple, &levels)?;
        study.factors = Rc::clone(&factors);
        let plan = resolve::resolve(&study, library)?;
        if count.saturating_mul(plan.cells.len()) > MOST_CELLS {
            return Err(family.too_many_cells());
        }
        join.add(point, &levels, plan);
    }
    let arms = family.arms.as_ref().map_or(Vec::new(), Arms::planned);
    let place = family.place.clone();
    let plan = family.finish(join, &exceptions, arms)?;
    let contents = |server: &str| library.server(server).map_or(Contents::Unknown, |facts| facts.contents);
    classes::check(&plan, &first.classes, &first.metric)?;
    let checked = plan.check_requests(contents);
    let checked = checked.and_then(|()| plan.check_live(|server| library.server(server).ok()));
    let checked = checked.and_then(|()| plan.check_outside());
    checked.map_err(|problem| InputError { place, problem })?;
    Ok(plan)
}

/// The levels of a point; the last factor changes fastest.
fn indices(point: usize, counts: &[usize]) -> Vec<usize> {
    let mut rest = point;
    let mut indices: Vec<usize> = counts
        .iter()
        .rev()
        .map(|count| {
            let index = rest % count;
            rest /= count;
            index
        })
        .collect();
    indices.reverse();
    indices
}

impl<'a> Family<'a> {
    fn read(document: &'a DeTable<'a>, source: Source<'a>) -> Result<Family<'a>, InputError> {
        let root = Table::whole(source, document, "the study");
        let arms = arms::read(document, source)?;
        let mut family = Family {
            order: Vec::new(),
            arms,
            sweeps: Vec::new(),
            exceptions: except::read(&root)?,
            place: source.place(document.get("matrix").map_or(0, |matrix| matrix.span().start)),
        };
        // The reader reports a missing matrix.
        let Some(matrix) = document::table(document, "matrix") else { return Ok(family) };
        let mut servers = Vec::new();
        if let Some(DeValue::Array(levels)) = matrix.get("server").map(Spanned::get_ref) {
            servers.extend(levels.iter().filter_map(|level| level.get_ref().as_str().map(str::to_owned)));
        }
        servers.extend(family.arms.iter().flat_map(Arms::servers).map(str::to_owned));
        family.sweeps = sweeps::read(matrix, &Names::of(document, servers), source)?;
        family.order = matrix.keys().map(|key| key.get_ref().to_string()).collect();
        if let Some(arms) = &family.arms {
            arms.check_used(document, source)?;
            for (arm, path) in arms.held() {
                family.sweeps.iter().try_for_each(|sweep| sweep.error_if_set_by(arm, &path))?;
            }
        }
        Ok(family)
    }

    /// The document of a simple study: without arms, sweeps and exceptions. Networks that the matrix
    /// describes get their names, which sweeps of their keys would change.
    fn simple(&self, document: &DeTable<'a>, source: Source<'_>) -> Result<DeTable<'a>, InputError> {
        let mut simple = document.clone();
        document::retain(&mut simple, |key| key != ARM && key != "except");
        let Some(matrix) = document::table_mut(&mut simple, "matrix") else { return Ok(simple) };
        document::retain(matrix, |key| key != ARM && !is_sweep(key));
        if self.sweeps.is_empty() {
            return Ok(simple);
        }
        let root = Table::whole(source, document, "the study");
        let names = match root.table("matrix")? {
            Some(table) => written::network_names(&table)?,
            None => Vec::new(),
        };
        if let Some(DeValue::Array(networks)) =
            matrix.get_mut(FactorKind::Network.name()).map(Spanned::get_mut)
        {
            for (network, name) in networks.iter_mut().zip(names) {
                let span = network.span();
                if let DeValue::Table(network) = network.get_mut()
                    && network.get("name").is_none()
                {
                    let name = Spanned::new(span.clone(), DeValue::String(name.into()));
                    network.insert(Spanned::new(span, "name".into()), name);
                }
            }
        }
        Ok(simple)
    }

    /// The numbers of levels: of the arms, if there are any, and of each sweep.
    fn counts(&self) -> Vec<usize> {
        let arms = self.arms.iter().map(Arms::count);
        arms.chain(self.sweeps.iter().map(|sweep| sweep.factor().levels.value.len())).collect()
    }

    /// The study of a point; of the first one without levels.
    fn study(
        &self,
        name: &str,
        source: Source<'_>,
        simple: &DeTable<'_>,
        levels: &[usize],
    ) -> Result<Study, InputError> {
        let level = |place: usize| levels.get(place).copied().unwrap_or(0);
        let mut document = simple.clone();
        let arms = usize::from(self.arms.is_some());
        for (place, sweep) in self.sweeps.iter().enumerate() {
            sweep.write(level(arms + place), &mut document);
        }
        if let Some(arms) = &self.arms {
            arms.write(level(0), &mut document);
        }
        let mut study = written::read_document(name, source, &document)?;
        let sweeps = self.sweeps.iter().enumerate();
        study.network_keys =
            sweeps.flat_map(|(place, sweep)| sweep.network_keys(level(arms + place))).collect();
        Ok(study)
    }

    /// The factors of the matrix in the order of the file, and the backends.
    fn factors(&self, study: &Study) -> Vec<DeclaredFactor> {
        let mut points: Vec<DeclaredFactor> = self.arms.iter().map(Arms::factor).collect();
        points.extend(self.sweeps.iter().map(Sweep::factor));
        let bundled = |kind: FactorKind| self.arms.iter().any(|arms| arms.bundled.contains(&kind));
        let simple = study.matrix.value.iter().filter(|factor| !bundled(factor.kind));
        let mut factors: Vec<DeclaredFactor> = simple
            .map(|factor| DeclaredFactor {
                name: factor.kind.name().to_owned(),
                levels: factor.levels.clone(),
            })
            .chain(points)
            .collect();
        let place = |factor: &DeclaredFactor| self.order.iter().position(|name| *name == factor.name);
        factors.sort_by_key(|factor| place(factor).unwrap_or(usize::MAX));
        factors
    }

    /// The places of the arms and sweeps among all factors.
    fn point_factors(&self, factors: &[DeclaredFactor]) -> Vec<usize> {
        let arms = self.arms.iter().map(|_| ARM.to_owned());
        let names = arms.chain(self.sweeps.iter().map(|sweep| sweep.factor().name));
        names.filter_map(|name| factors.iter().position(|factor| factor.name == name)).collect()
    }

    fn finish(
        &self,
        join: Join<'_>,
        exceptions: &[Exception],
        arms: Vec<crate::arm::Arm>,
    ) -> Result<Plan, InputError> {
        let error = |problem| self.exceptions.error(&self.place, problem);
        let mut plan = join.finish(exceptions, arms).map_err(error)?;
        let most_runs = plan.repetition.map_or(plan.runs_per_cell, |rule| rule.most_runs);
        if plan.cells.len() as u64 * u64::from(most_runs) > MOST_RUNS {
            return Err(self.too_many_runs(plan.cells.len(), most_runs));
        }
        plan.runs = order(&plan.cells, most_runs, plan.seed);
        Ok(plan)
    }

    fn too_many_cells(&self) -> InputError {
        let problem = format!("the matrix has more than {MOST_CELLS} cells; remove levels");
        InputError { place: self.place.clone(), problem }
    }

    fn too_many_runs(&self, cells: usize, runs: u32) -> InputError {
        let problem =
            format!("{cells} cells of {runs} runs each exceed {MOST_RUNS} runs; reduce cells or runs");
        InputError { place: self.place.clone(), problem }
    }
}

#[cfg(test)]
mod tests;
