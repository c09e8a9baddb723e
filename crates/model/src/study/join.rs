//! The plans of all points of a study as one plan: the cells get the levels of their point as further
//! factors; networks and workloads that are equal are shared, and different ones have different names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io;

use serde::Serialize;

use super::except::Exception;
use super::factors::{DeclaredFactor, FactorKind};
use crate::arm::Arm;
use crate::level::{Level, is_sweep};
use crate::media::Media;
use crate::network::Network;
use crate::pins::Pins;
use crate::plan::{Cell, DIRECT, NamedWorkload, Plan};
use crate::topology::Topology;

/// The plans that are joined so far.
pub(super) struct Join<'f> {
    factors: &'f [DeclaredFactor],
    /// The index of each level, for each factor.
    levels: Vec<BTreeMap<&'f str, usize>>,
    /// The places of the arms and sweeps among the factors.
    own: &'f [usize],
    /// Their numbers of levels.
    counts: &'f [usize],
    /// The factors that arms give, which cells do not name.
    bundled: &'f [FactorKind],
    plan: Option<Plan>,
    /// Cells, with the indices of their levels.
    cells: Vec<(Vec<usize>, Cell)>,
    networks: Pool<Route>,
    workloads: Pool<NamedWorkload>,
    /// No arm and no sweep changes media, so that a name has the same in every point.
    media: Vec<Media>,
}

/// A network, and the nodes and links that it belongs to.
#[derive(PartialEq, Serialize)]
struct Route {
    network: Network,
    built: Option<Topology>,
}

impl<'f> Join<'f> {
    pub(super) fn new(
        factors: &'f [DeclaredFactor],
        own: &'f [usize],
        counts: &'f [usize],
        bundled: &'f [FactorKind],
    ) -> Join<'f> {
        let levels = |factor: &'f DeclaredFactor| {
            factor
                .levels
                .value
                .iter()
                .enumerate()
                .map(|(index, level)| (level.value.as_str(), index))
                .collect()
        };
        Join {
            levels: factors.iter().map(levels).collect(),
            factors,
            own,
            counts,
            bundled,
            plan: None,
            cells: Vec::new(),
            networks: Pool::default(),
            workloads: Pool::default(),
            media: Vec::new(),
        }
    }

    /// Adds the plan of a point, which has these levels.
    pub(super) fn add(&mut self, point: usize, levels: &[usize], mut plan: Plan) {
        let mut built = std::mem::take(&mut plan.topology.built).into_iter();
        let networks = std::mem::take(&mut plan.networks).into_iter();
        let networks: Vec<usize> = networks
            .map(|network| {
                let name = network.name.clone();
                self.networks.add(point, name, Route { network, built: built.next() })
            })
            .collect();
        let workloads = std::mem::take(&mut plan.workloads).into_iter();
        let workloads: Vec<usize> =
            workloads.map(|named| self.workloads.add(point, named.name.clone(), named)).collect();
        for media in std::mem::take(&mut plan.media) {
            if self.media.iter().all(|known| known.name != media.name) {
                self.media.push(media);
            }
        }
        let cells = std::mem::take(&mut plan.cells);
        let pins = match &mut self.plan {
            Some(joined) => {
                let new = plan.servers.into_iter().filter(|server| !joined.servers.contains(server));
                let new: Vec<String> = new.collect();
                joined.servers.extend(new);
                for (name, own) in [
                    (&mut joined.topology.name, &plan.topology.name),
                    (&mut joined.topology.client, &plan.topology.client),
                    (&mut joined.topology.server, &plan.topology.server),
                ] {
                    if !name.split(" or ").any(|known| known == own) {
                        *name = format!("{name} or {own}");
                    }
                }
                if joined.topology.backs.len() < plan.topology.backs.len() {
                    joined.topology.backs = plan.topology.backs;
                }
                joined.topology.link = joined.topology.link.take().or(plan.topology.link);
                plan.pins
            }
            joined => joined.insert(plan).pins.clone(),
        };
        for mut cell in cells {
            cell.network = networks[cell.network];
            cell.group.workload = workloads[cell.group.workload];
            self.place(levels, cell, &pins);
        }
    }

    /// Gives a cell the levels of its point, and its own pins if they differ from those of the plan.
    fn place(&mut self, levels: &[usize], mut cell: Cell, pins: &Pins) {
        let is_bundled = |level: &Level| self.bundled.iter().any(|kind| kind.name() == level.factor);
        let mut simple: Vec<Level> =
            std::mem::take(&mut cell.levels).into_iter().filter(|level| !is_bundled(level)).collect();
        let mut indices = Vec::with_capacity(self.factors.len());
        for (place, factor) in self.factors.iter().enumerate() {
            let index = match self.own.iter().position(|own| *own == place) {
                Some(own) => levels[own],
                None => {
                    let Some(at) = simple.iter().position(|level| level.factor == factor.name) else {
                        continue;
                    };
                    let level = simple.remove(at);
                    self.levels[place].get(level.value.as_str()).copied().unwrap_or_default()
                }
            };
            let value = factor.levels.value[index].value.clone();
            cell.levels.push(Level { factor: factor.name.clone(), value });
            indices.push(index);
        }
        // Factors that the matrix does not declare.
        cell.levels.append(&mut simple);
        let own = cell.pins.take().unwrap_or_else(|| pins.clone());
        cell.pins = Some(own).filter(|own| self.plan.as_ref().is_none_or(|plan| plan.pins != *own));
        self.cells.push((indices, cell));
    }

    /// The plan, without runs.
    ///
    /// # Errors
    /// No cell is left, none of the baseline's, or points with a topology that emulates nothing and others.
    pub(super) fn finish(mut self, exceptions: &[Exception], arms: Vec<Arm>) -> Result<Plan, String> {
        let left = |(indices, _): &(Vec<usize>, Cell)| {
            !exceptions.iter().any(|exception| exception.matches(|factor| indices.get(factor).copied()))
        };
        self.cells.retain(left);
        let mut plan = self.plan.take().ok_or("`except` leaves out every cell; remove a combination")?;
        if self.cells.is_empty() {
            return Err("`except` leaves out every cell; remove a combination".to_owned());
        }
        let baseline = &plan.baseline;
        let is_baseline = |cell: &Cell| cell.level(&baseline.factor) == Some(&baseline.value);
        if !exceptions.is_empty() && !self.cells.iter().any(|(_, cell)| is_baseline(cell)) {
            return Err(format!(
                "`except` leaves out every cell of the baseline `{}`; keep one to compare with",
                baseline.value
            ));
        }
        let groups = self.factors.iter().find(|factor| factor.name == FactorKind::Group.name());
        let groups = groups.map_or(1, |factor| factor.levels.value.len());
        let has_all = |cells: &[(Vec<usize>, Cell)]| cells.len() == groups;
        if !self.cells.chunk_by(|_, (_, next)| next.group.group > 0).all(has_all) {
            return Err("`except` leaves out single client groups of a run; name no `group`".to_owned());
        }
        self.check_sweeps()?;
        plan.media = self.media;
        // Points follow each other; the matrix may name its factors in another order.
        self.cells.sort_by(|(one, _), (other, _)| one.cmp(other));
        plan.arms = arms;
        plan.cells = self.cells.into_iter().map(|(_, cell)| cell).collect();
        for (cell, number) in plan.cells.iter_mut().zip(0..) {
            cell.cell = number;
        }
        let describe = |own: usize, index: usize| {
            let factor = &self.factors[self.own[own]];
            Level { factor: factor.name.clone(), value: factor.levels.value[index].value.clone() }.label()
        };
        let names = self.networks.names(self.counts, describe);
        let mut routes = self.networks.items;
        let has_built = routes.iter().any(|route| route.built.is_some());
        let is_direct = |name: &str| name.split(" or ").any(|name| name == DIRECT);
        if is_direct(&plan.topology.name) && plan.topology.name != DIRECT {
            return Err(format!(
                "the topology `{DIRECT}` emulates nothing and excludes others in one study; remove one of them"
            ));
        }
        for (route, name) in routes.iter_mut().zip(names) {
            route.network.name = name;
            if has_built && route.built.is_none() {
                route.built = Some(Topology::pair(&route.network));
            }
        }
        for Route { network, built } in routes {
            plan.networks.push(network);
            plan.topology.built.extend(built);
        }
        let names = self.workloads.names(self.counts, describe);
        plan.workloads = self.workloads.items;
        for (named, name) in plan.workloads.iter_mut().zip(names) {
            named.name = name;
        }
        drop_unused(&mut plan);
        Ok(plan)
    }
}

impl Join<'_> {
    /// Checks that neighbouring levels of a sweep differ somewhere: another key may decide instead of it.
    fn check_sweeps(&self) -> Result<(), String> {
        let mut points: BTreeMap<Vec<usize>, Vec<Cell>> = BTreeMap::new();
        for (indices, cell) in &self.cells {
            let own = self.own.iter().filter_map(|place| indices.get(*place).copied()).collect();
            points.entry(own).or_default().push(Cell { cell: 0, levels: Vec::new(), ..cell.clone() });
        }
        for (own, place) in self.own.iter().enumerate() {
            let factor = &self.factors[*place];
            if !is_sweep(&factor.name) {
                continue;
            }
            let mut differs: BTreeMap<usize, bool> = BTreeMap::new();
            for (point, cells) in &points {
                let mut next = point.clone();
                next[own] += 1;
                if let Some(others) = points.get(&next) {
                    *differs.entry(point[own]).or_default() |= others != cells;
                }
            }
            if let Some((level, _)) = differs.into_iter().find(|(_, differs)| !differs) {
                let value = |index: usize| factor.levels.value[index].value.as_str();
                return Err(format!(
                    "`{}`: the levels `{}` and `{}` do the same everywhere, because another key sets what it sweeps; \
                     remove that key or the sweep",
                    factor.name,
                    value(level),
                    value(level + 1)
                ));
            }
        }
        Ok(())
    }
}

/// Removes the networks and workloads that only combinations had which were left out.
fn drop_unused(plan: &mut Plan) {
    let has_built = !plan.topology.built.is_empty();
    let mut kept = vec![None; plan.networks.len()];
    let mut workloads = vec![None; plan.workloads.len()];
    for cell in &plan.cells {
        kept[cell.network] = Some(0);
        workloads[cell.group.workload] = Some(0);
    }
    for places in [&mut kept, &mut workloads] {
        places.iter_mut().flatten().zip(0..).for_each(|(place, number)| *place = number);
    }
    fn retain<T>(items: &mut Vec<T>, kept: &[Option<usize>]) {
        let mut places = kept.iter();
        items.retain(|_| places.next().is_none_or(Option::is_some));
    }
    retain(&mut plan.networks, &kept);
    if has_built {
        retain(&mut plan.topology.built, &kept);
    }
    retain(&mut plan.workloads, &workloads);
    for cell in &mut plan.cells {
        cell.network = kept[cell.network].unwrap_or_default();
        cell.group.workload = workloads[cell.group.workload].unwrap_or_default();
    }
}

/// Different items of all points.
struct Pool<T> {
    items: Vec<T>,
    /// By the hash of their JSON.
    known: BTreeMap<u64, Vec<usize>>,
    /// The item that each point has under a name.
    named: BTreeMap<String, Vec<(usize, usize)>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool { items: Vec::new(), known: BTreeMap::new(), named: BTreeMap::new() }
    }
}

impl<T: PartialEq + Serialize> Pool<T> {
    /// The index of an item that a point has under this name.
    fn add(&mut self, point: usize, name: String, item: T) -> usize {
        let known = self.known.entry(hash(&item)).or_default();
        let index = known.iter().copied().find(|known| self.items[*known] == item).unwrap_or_else(|| {
            known.push(self.items.len());
            self.items.push(item);
            self.items.len() - 1
        });
        self.named.entry(name).or_default().push((point, index));
        index
    }

    /// A different name for each item: its own, and the levels of the factors that it depends on.
    fn names(&self, counts: &[usize], describe: impl Fn(usize, usize) -> String) -> Vec<String> {
        let mut names = vec![String::new(); self.items.len()];
        for (name, uses) in &self.named {
            let is_one = uses.iter().all(|(_, item)| *item == uses[0].1);
            let depends: Vec<usize> =
                (0..counts.len()).filter(|factor| !is_one && depends_on(uses, counts, *factor)).collect();
            let all: Vec<usize> = (0..counts.len()).filter(|_| !is_one).collect();
            let full = |factors: &[usize], point: usize| {
                let levels = factors.iter().map(|factor| describe(*factor, index_of(point, counts, *factor)));
                std::iter::once(name.clone()).chain(levels).collect::<Vec<_>>().join(", ")
            };
            // Where points are left out, the levels may not tell all items apart.
            let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
            let mut is_clear = true;
            for (point, item) in uses {
                is_clear &= *by_name.entry(full(&depends, *point)).or_insert(*item) == *item;
            }
            for (point, item) in uses.iter().rev() {
                names[*item] = full(if is_clear { &depends } else { &all }, *point);
            }
        }
        names
    }
}

/// The level that a point has of a factor.
fn index_of(point: usize, counts: &[usize], factor: usize) -> usize {
    let stride: usize = counts[factor + 1..].iter().product();
    point / stride % counts[factor]
}

/// Whether points that differ in this factor only have different items.
fn depends_on(uses: &[(usize, usize)], counts: &[usize], factor: usize) -> bool {
    let stride: usize = counts[factor + 1..].iter().product();
    let mut items: BTreeMap<usize, usize> = BTreeMap::new();
    uses.iter().any(|(point, item)| {
        let others = point - index_of(*point, counts, factor) * stride;
        *items.entry(others).or_insert(*item) != *item
    })
}

fn hash(item: &impl Serialize) -> u64 {
    struct Sink(DefaultHasher);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(DefaultHasher::new());
    // What cannot be written as JSON has the same hash, and is compared.
    let _ = serde_json::to_writer(&mut sink, item);
    sink.0.finish()
}
