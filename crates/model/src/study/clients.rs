//! The clients of a study: h123's own with their workloads, and external ones; what their visits and
//! connections need.

use super::factors::{FactorKind, check_name};
use super::media::MediaSet;
use super::workloads::{Entry, NamedEntry};
use super::{Library, Study, loops, metric};
use crate::error::{InputError, Place};
use crate::external::OWN_CLIENT;
use crate::named::unknown;
use crate::options::{BrowserOptions, Options, RequestOptions, Visit};
use crate::page::Page;
use crate::plan::{Cell, NamedWorkload, Plan};
use crate::reader::Placed;
use crate::start::Start;
use crate::url_pattern::Pattern;
use crate::variant::Variant;
use crate::workload::Workload;

/// A workload, and the clients of a group that has it.
#[derive(Clone, Debug)]
pub(super) struct ClientsOf {
    /// The level of the factor `workload`.
    pub(super) level: String,
    /// The variant that it is for, if variants have different ones.
    pub(super) variant: Option<Variant>,
    pub(super) named: NamedWorkload,
    pub(super) clients: u32,
    pub(super) start: Start,
}

/// Every workload of the study must be valid; the plan has only those of the matrix. Those of one level that
/// are for different variants follow each other.
pub(super) fn resolve_workloads(
    study: &Study,
    media: &mut MediaSet,
    library: &impl Library,
) -> Result<Vec<ClientsOf>, InputError> {
    let pages = library.pages();
    let mut defined = Vec::new();
    for entry in &study.workloads {
        for (variant, named) in resolve_workload(entry, &pages, media, library)? {
            let level = entry.name.value.clone();
            defined.push(ClientsOf { level, variant, named, clients: entry.clients, start: entry.start });
        }
    }
    let names: Vec<String> = study.workloads.iter().map(|entry| entry.name.value.clone()).collect();
    let mut workloads = Vec::new();
    for level in study.named_levels(FactorKind::Workload) {
        let known = workloads.len();
        workloads.extend(defined.iter().filter(|of| of.level == level.value).cloned());
        if workloads.len() == known {
            return Err(level.error(unknown(
                &level.value,
                "a `[workload.NAME]` that this study defines",
                &names,
            )));
        }
    }
    Ok(workloads)
}

/// The workload, or one for each of the variants that it has scripts for.
fn resolve_workload(
    entry: &NamedEntry,
    pages: &[String],
    media: &mut MediaSet,
    library: &impl Library,
) -> Result<Vec<(Option<Variant>, NamedWorkload)>, InputError> {
    let (name, mut options) = (entry.name.value.clone(), entry.options.clone());
    let mut workload = match &entry.what {
        Entry::Page(page, delivery) => {
            check_name(page, "`page`: ", "a page", pages)?;
            let file = library.page(&page.value).map_err(|problem| page.error(problem))?;
            let page = Page::parse(&page.value, file.source())?;
            Workload::Page(Page { delivery: delivery.resolve(&page)?, ..page })
        }
        Entry::Script(keys) => {
            let of_variant = |(variant, script, requests): (Option<Variant>, _, RequestOptions)| {
                let mut options = options.clone();
                options.requests.paths = requests.paths;
                options.requests.random_parts = requests.random_parts;
                let name = variant.map_or_else(|| name.clone(), |variant| format!("{name}, {variant}"));
                (variant, NamedWorkload { name, workload: Workload::Script(script), options })
            };
            let all: Vec<_> = keys.resolve(library)?.into_iter().map(of_variant).collect();
            for (_, named) in &all {
                media.add_requested(named.workload.paths().iter(), &entry.name, library)?;
            }
            return Ok(all);
        }
        Entry::Player(player) => Workload::Player(player.resolve(media, library)?),
        Entry::Resolved(workload) => workload.clone(),
    };
    if let Some(file) = &entry.urls {
        file.fill(&mut workload, &mut options.requests, library)?;
    }
    if let Some(load) = workload.as_loop_mut() {
        if let Some(name) = &entry.media {
            load.paths =
                loops::paths_of(media.find(name, library)?).map_err(|problem| name.error(problem))?;
        }
        media.add_requested(load.paths.iter(), &entry.name, library)?;
    }
    options.requests.random_parts =
        workload.as_loop().is_some_and(|load| load.paths.iter().any(|path| Pattern::is_in(path)));
    Ok(vec![(None, NamedWorkload { name, workload, options })])
}

/// The index of the workload of a level and a variant.
pub(super) fn workload_of(
    workloads: &[ClientsOf],
    level: &Placed<String>,
    variant: Variant,
) -> Result<usize, InputError> {
    let is_for = |of: &ClientsOf| of.level == level.value && of.variant.is_none_or(|own| own == variant);
    workloads.iter().position(is_for).ok_or_else(|| {
        level.error(format!(
            "workload `{}`: its `script` has none for the variant `{variant}`; add `{variant} = \"…\"`",
            level.value
        ))
    })
}

/// Checks that every client of the matrix and of the groups exists.
pub(super) fn check_names(study: &Study, library: &impl Library) -> Result<(), InputError> {
    let known: Vec<String> = [OWN_CLIENT.to_owned()].into_iter().chain(library.clients()).collect();
    study
        .named_levels(FactorKind::Client)
        .iter()
        .try_for_each(|level| check_name(level, "", "a client", &known))
}

/// Checks that no client but a browser gets a workload that names its `player`.
pub(super) fn check_players(
    study: &Study,
    cells: &[Cell],
    workloads: &[ClientsOf],
) -> Result<(), InputError> {
    for entry in &study.workloads {
        let Entry::Player(player) = &entry.what else { continue };
        let is_of = |cell: &&Cell| {
            cell.group.client == OWN_CLIENT && workloads[cell.group.workload].level == entry.name.value
        };
        if let Some(library) = player.library().filter(|_| cells.iter().any(|cell| is_of(&cell))) {
            return Err(library.error(format!(
                "`player`: {} plays in browsers, and the client `{OWN_CLIENT}` is none; remove the key, or run the \
                 workload with a browser only, such as `client = [\"chromium\"]`",
                library.value.title()
            )));
        }
    }
    Ok(())
}

/// Marks the cells whose client does not support them.
pub(super) fn check(
    levels: &[Placed<String>],
    workloads: &[ClientsOf],
    cells: &mut [Cell],
    library: &impl Library,
) -> Result<(), InputError> {
    for cell in cells.iter_mut().filter(|cell| cell.group.client == OWN_CLIENT) {
        cell.unsupported = own_client_refuses(&workloads[cell.group.workload].named);
    }
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
                    // The client's description says in which order it can request several paths, also those
                    // that random parts stand for.
                    let mut special = named.options.clone();
                    special.requests.random_order = false;
                    special.requests.random_parts = false;
                    // And which visits it makes, and what it does as a browser.
                    special.connections.visit = Visit::First;
                    special.browser = BrowserOptions::default();
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

/// Why h123's own client cannot do what a workload wants of browsers, if so.
fn own_client_refuses(named: &NamedWorkload) -> Option<String> {
    let Options { connections, browser, .. } = &named.options;
    if !connections.visit.is_for_every_client() {
        return Some(format!(
            "only browsers make visits of the kind `{}`; use one as the client",
            connections.visit
        ));
    }
    (browser.cpu_slowdown > 1).then(|| {
        format!("{OWN_CLIENT} runs no page, so its CPU cannot be slowed down; use a browser as the client")
    })
}

/// Checks that the client nodes have room for the addresses that their connections need.
pub(super) fn check_addresses(study: &Study, plan: &Plan) -> Result<(), InputError> {
    for first in plan.run_cells() {
        let cells = plan.cells_of_run(first.cell);
        plan.topology_of_run(cells).map_err(|problem| study.matrix.error(problem))?;
        let has_handover =
            cells.iter().any(|cell| plan.network_of(cell).timeline.iter().any(|change| change.handover));
        if has_handover && cells.iter().any(|cell| !plan.sources_of(cell).is_empty()) {
            let problem = "the clients need several addresses for their connections, and a handover changes one; make \
                           fewer connections, or remove the handover";
            return Err(study.matrix.error(problem));
        }
    }
    Ok(())
}

/// Checks that a repeat visit has sessions and that its first visit disturbs nothing, and that a client
/// without a first visit has none.
pub(super) fn check_visit(
    study: &Study,
    workloads: &[ClientsOf],
    cell: &Cell,
    library: &impl Library,
) -> Result<(), InputError> {
    let named = &workloads[cell.group.workload].named;
    let resumes = cell.pins.as_ref().unwrap_or(&study.hold.pins).resumption;
    let visit = named.options.connections.visit;
    if visit.is_first() {
        let is_cold = named.workload.as_loop().is_none();
        let error = study.holds().find_map(|hold| hold.resumption_error(named));
        return error.filter(|_| is_cold && resumes).map_or(Ok(()), Err);
    }
    let metric = metric::facts(&study.metric.value, library);
    let problem = if !resumes {
        "requires `resumption = true` in `[hold]`; add it"
    } else if study.groups.len() > 1 {
        "excludes `[[group]]`: the first visits of one group would disturb the others; remove one of them"
    } else if study.server_time {
        "excludes `server_time`, because the servers log the first visits, too; remove one of them"
    } else if metric.is_some_and(|metric| metric.counts_first_visits) {
        "excludes the study's `metric`, which counts the first visit, too; choose another metric, such as \
         `request_time`"
    } else {
        return Ok(());
    };
    let entry = study.workloads.iter().find(|entry| entry.name.value == named.name);
    let place = entry.and_then(|entry| entry.repeat.clone()).unwrap_or_else(Place::command_line);
    Err(InputError { place, problem: format!("`visit` is {visit}, which {problem}") })
}
