//! Resolves a study into a plan: looks up names, refuses contradictions, multiplies the matrix out.

use super::clients::ClientsOf;
use super::factors::{FactorKind, check_name, levels_of, resolve_level};
use super::groups;
use super::media::MediaSet;
use super::servers::{self, ServerLevel};
use super::{Library, Study, claims, classes, clients, csv, dns, links, metric, published, topology};
use crate::backend::Backend;
use crate::error::{InputError, Place};
use crate::external::OWN_CLIENT;
use crate::level::Level;
use crate::media::MediaLengths;
use crate::named::Named;
use crate::network::Network;
use crate::plan::{Cell, ClientGroup, DIRECT, GroupEnd, NamedWorkload, PLAN_VERSION, Plan, PlannedTopology};
use crate::predict::{Prediction, predict};
use crate::reader::Placed;
use crate::topology::Topology;
use crate::variant::Variant;
use crate::warm::ServerWarmUp;

/// More cells than this are a mistake in the matrix.
const MOST_CELLS: usize = 10_000;
/// More runs than this would not end within days.
const MOST_RUNS: u64 = 1_000_000;

/// The levels of every factor, looked up: those of the matrix in its order, then those that groups alone
/// name.
struct Matrix {
    dns_rtt_ns: Option<u64>,
    variants: Vec<Variant>,
    servers: Vec<ServerLevel>,
    topology: PlannedTopology,
    networks: Vec<Network>,
    workloads: Vec<ClientsOf>,
    backends: Vec<Backend>,
    groups: Vec<Role>,
}

/// A client group, looked up.
struct Role {
    node: String,
    end: GroupEnd,
    /// For each server that the group can use, by its index, and for each level of `network`: the index of
    /// the route from this group's node to the server's.
    routes: Vec<Vec<usize>>,
}

pub(super) fn resolve(study: &Study, library: &impl Library) -> Result<Plan, InputError> {
    metric::check_name(&study.metric, library)?;
    let servers = servers::resolve(study, &study.named_levels(FactorKind::Server), library)?;
    let (mut topology, mut networks) =
        topology::resolve(study, levels(study, FactorKind::Network), &servers, library)?;
    let groups = resolve_groups(study, &servers, &mut topology, &mut networks)?;
    let nodes: Vec<&str> = groups.iter().map(|role| role.node.as_str()).collect();
    let dns_rtt_ns = dns::resolve(study, &topology, &networks, &nodes)?;
    check_addresses(dns_rtt_ns, &servers)?;
    clients::check_names(study, library)?;
    let mut media = MediaSet::of(study, library)?;
    let matrix = Matrix {
        dns_rtt_ns,
        backends: resolve_backends(study, &topology, &networks)?,
        topology,
        variants: resolve_variants(&study.named_levels(FactorKind::Variant))?,
        servers,
        networks,
        workloads: clients::resolve_workloads(study, &mut media, library)?,
        groups,
    };
    let classes = classes::planned_with(&study.classes, matrix.workloads.iter().map(|of| &of.named.workload));
    metric::check_class(&study.metric, &classes, library)?;
    check_metric(study, &matrix, library)?;
    let baseline = resolve_baseline(study)?;
    check_pins(study, &matrix)?;
    let repetition = study.repetition.as_ref().map(|written| written.resolve(&study.runs)).transpose()?;
    let most_runs = repetition.map_or(study.runs.value, |rule| rule.most_runs);
    let media = media.into_all();
    let cells = resolve_cells(study, &matrix, &MediaLengths::of(&media), most_runs, library)?;
    let named: Vec<&NamedWorkload> = matrix.workloads.iter().map(|of| &of.named).collect();
    let published = published::resolve(study, &named, &classes, library)?;
    let plan = Plan {
        version: PLAN_VERSION,
        study: study.name.clone(),
        question: study.question.clone(),
        study_text: study.text.clone(),
        metric: study.metric.value.clone(),
        statistic: study.statistic.value,
        baseline,
        margin_share: study.margin_share,
        seed: study.seed,
        runs_per_cell: study.runs.value,
        repetition,
        pins: study.hold.pins.clone(),
        server_time: study.server_time,
        warm: study.warm,
        page_cache: study.page_cache.as_ref().map(|state| state.value),
        dns_rtt_ns,
        accepted: resolve_accepted(study, library)?,
        figures: resolve_figures(study, library)?,
        claims: claims::resolve(study, &classes, library)?,
        published,
        csv: csv::resolve(study, library)?,
        cores: study.cores.clone(),
        classes,
        arms: Vec::new(),
        monitor: study.monitor,
        // The cells of all points are ordered together.
        runs: Vec::new(),
        cells,
        topology: matrix.topology,
        networks: matrix.networks,
        workloads: matrix.workloads.into_iter().map(|of| of.named).collect(),
        media,
        servers: matrix.servers.into_iter().map(|level| level.name).collect(),
    };
    clients::check_addresses(study, &plan)?;
    Ok(plan)
}

/// Checks that servers with a looked-up name have one address.
fn check_addresses(dns_rtt_ns: Option<u64>, servers: &[ServerLevel]) -> Result<(), InputError> {
    let node = servers.iter().find_map(|server| server.node.as_ref()).filter(|_| dns_rtt_ns.is_some());
    node.map_or(Ok(()), |node| {
        let problem =
            "`node` excludes `dns`, because the name of all servers has one address; remove one of them";
        Err(node.error(problem))
    })
}

/// The cells, which can run together and with their clients, and what their links have to carry.
fn resolve_cells(
    study: &Study,
    matrix: &Matrix,
    media: &MediaLengths<'_>,
    most_runs: u32,
    library: &impl Library,
) -> Result<Vec<Cell>, InputError> {
    let mut cells = multiply(study, matrix, most_runs)?;
    cells.iter().try_for_each(|cell| clients::check_visit(study, &matrix.workloads, cell, library))?;
    groups::check_together(study, &cells, &matrix.workloads)?;
    let pairs: Vec<Topology> = match matrix.topology.name.as_str() {
        DIRECT => Vec::new(),
        _ => matrix.networks.iter().map(Topology::pair).collect(),
    };
    links::carry(study, &matrix.topology, &pairs, &matrix.workloads, media, &mut cells)?;
    clients::check_players(study, &cells, &matrix.workloads)?;
    clients::check(&study.named_levels(FactorKind::Client), &matrix.workloads, &mut cells, library)?;
    Ok(cells)
}

/// Checks that no pin contradicts the variants or the workloads.
fn check_pins(study: &Study, matrix: &Matrix) -> Result<(), InputError> {
    let is_pushed =
        |named: &&NamedWorkload| named.workload.page().is_some_and(|page| !page.delivery.push.is_empty());
    let pushing = matrix.workloads.iter().map(|of| &of.named).find(is_pushed);
    for hold in study.holds() {
        hold.check(&matrix.variants)?;
        pushing.map_or(Ok(()), |named| hold.check_push(&named.name))?;
    }
    Ok(())
}

/// Checks that the metric and the statistic exist for every workload that is measured.
fn check_metric(study: &Study, matrix: &Matrix, library: &impl Library) -> Result<(), InputError> {
    let measured = || matrix.workloads.iter().filter(|of| study.is_measured(FactorKind::Workload, &of.level));
    let remedy = if study.groups.len() > 1 { ", or make the group `background`" } else { "" };
    for ClientsOf { named, .. } in measured() {
        metric::check_workload(&study.metric.value, &named.workload, library).map_err(|problem| {
            study.metric.error(format!("`metric`: workload `{}`: {problem}{remedy}", named.name))
        })?;
    }
    metric::check_requirement(study, library)?;
    for ClientsOf { named, clients, .. } in measured() {
        metric::check_statistic(study, named, *clients, library)?;
    }
    Ok(())
}

/// The levels of a factor in the matrix, as written.
fn levels(study: &Study, kind: FactorKind) -> &[Placed<String>] {
    levels_of(&study.matrix.value, kind)
}

fn resolve_variants(levels: &[Placed<String>]) -> Result<Vec<Variant>, InputError> {
    levels
        .iter()
        .map(|level| Variant::from_name(&level.value).map_err(|problem| level.error(problem)))
        .collect()
}

/// The checks that the study does not let invalidate, each once.
fn resolve_accepted(study: &Study, library: &impl Library) -> Result<Vec<String>, InputError> {
    let mut accepted: Vec<String> = Vec::new();
    for name in &study.accept.value {
        check_name(name, "`accept`: ", "a check", &library.checks())?;
        if !accepted.contains(&name.value) {
            accepted.push(name.value.clone());
        }
    }
    Ok(accepted)
}

/// The figures that the report is to show, in the order of the study.
fn resolve_figures(study: &Study, library: &impl Library) -> Result<Option<Vec<String>>, InputError> {
    let Some(named) = &study.figures else { return Ok(None) };
    let mut figures: Vec<String> = Vec::new();
    for name in &named.value {
        check_name(name, "`figures`: ", "a figure", &library.figures())?;
        if figures.contains(&name.value) {
            return Err(name.error(format!("`figures`: `{}` appears twice; remove one", name.value)));
        }
        figures.push(name.value.clone());
    }
    Ok(Some(figures))
}

/// The backends, each of which has to honour the network of every link.
fn resolve_backends(
    study: &Study,
    topology: &PlannedTopology,
    networks: &[Network],
) -> Result<Vec<Backend>, InputError> {
    let Some(levels) = &study.backends else { return Ok(vec![Backend::default()]) };
    if topology.name == DIRECT {
        let problem = format!(
            "`backends` excludes the topology `{DIRECT}`, which emulates nothing; remove one of them"
        );
        return Err(levels.error(problem));
    }
    let built = topology.built.iter().flat_map(|topology| &topology.links);
    let networks: Vec<&Network> = match topology.built.as_slice() {
        [] => networks.iter().collect(),
        _ => built.filter_map(|link| link.network.as_ref()).collect(),
    };
    let mut backends = Vec::new();
    for level in &levels.value {
        let backend: Backend =
            level.value.parse().map_err(|problem| level.error(format!("`backends`: {problem}")))?;
        for network in &networks {
            for hold in study.holds() {
                backend
                    .check(network, hold.pins.mtu_bytes)
                    .map_err(|unsupported| level.error(format!("`backends`: {unsupported}")))?;
            }
        }
        backends.push(backend);
    }
    Ok(backends)
}

fn resolve_baseline(study: &Study) -> Result<Level, InputError> {
    let (factor, level) = (&study.baseline.factor, &study.baseline.level);
    let declared = study.factors.iter().find(|declared| declared.name == factor.value);
    if factor.value == FactorKind::Backend.name() && declared.is_none() {
        return Err(level.error("`baseline`: `backend` is not a factor; write several `backends` to compare"));
    }
    let (baseline, is_run) = resolve_level(study, "`baseline`: ", factor, level)?;
    if is_run {
        return Ok(baseline);
    }
    let levels = declared.into_iter().flat_map(|factor| &factor.levels.value);
    let names: Vec<&str> = levels.map(|level| level.value.as_str()).collect();
    Err(InputError {
        place: Place::command_line(),
        problem: format!(
            "`{}` is only {}, without the baseline `{}`; add it, or change the baseline in the study",
            factor.value,
            names.join(", "),
            level.value
        ),
    })
}

/// The groups with their nodes. Nodes other than the topology's client and server have their own routes,
/// which are added to the networks.
fn resolve_groups(
    study: &Study,
    servers: &[ServerLevel],
    topology: &mut PlannedTopology,
    networks: &mut Vec<Network>,
) -> Result<Vec<Role>, InputError> {
    let count = networks.len();
    let ends = [topology.client.clone(), topology.server.clone()];
    let mut known: Vec<([String; 2], Vec<usize>)> = vec![(ends, (0..count).collect())];
    let mut roles = Vec::with_capacity(study.groups.len());
    for (group, end) in study.groups.iter().zip(study.resolve_ends()?) {
        let node = group.node(topology);
        let mut routes = Vec::with_capacity(servers.len());
        for server in servers {
            let server_node = server.node.as_ref().map_or(&topology.server, |node| &node.value);
            let ends = [node.clone(), server_node.clone()];
            routes.push(match known.iter().find(|(known, _)| *known == ends) {
                Some((_, routes)) => routes.clone(),
                None => {
                    let place = |problem: &str| match &server.node {
                        Some(server) => server.error(format!("`node`: {problem}")),
                        None => group.node_error(problem),
                    };
                    let routes =
                        add_routes(&ends, count, topology, networks).map_err(|problem| place(&problem))?;
                    known.push((ends, routes.clone()));
                    routes
                }
            });
        }
        roles.push(Role { node, end, routes });
    }
    Ok(roles)
}

/// Adds the routes between two nodes, one for each level of `network`.
///
/// # Errors
/// A node is not a host, or packets find no route.
fn add_routes(
    [client, server]: &[String; 2],
    levels: usize,
    topology: &mut PlannedTopology,
    networks: &mut Vec<Network>,
) -> Result<Vec<usize>, String> {
    if topology.name == DIRECT {
        return Err(format!("the topology `{DIRECT}` has one client and one server; remove the key"));
    }
    let (is_other_client, is_other_server) = (*client != topology.client, *server != topology.server);
    let mut routes = Vec::with_capacity(levels);
    // Networks and topologies have the same indices.
    let missing = networks.iter().take(levels).skip(topology.built.len());
    topology.built.extend(missing.map(Topology::pair).collect::<Vec<_>>());
    for level in 0..levels {
        let mut built = topology.built[level].clone();
        let (client_node, server_node) = (built.host(client)?, built.host(server)?);
        built.choose(client_node, server_node)?;
        let from = if is_other_client { format!(", from {client}") } else { String::new() };
        let to = if is_other_server { format!(", to {server}") } else { String::new() };
        routes.push(networks.len());
        networks.push(built.route_network(&format!("{}{from}{to}", networks[level].name)));
        topology.built.push(built);
    }
    Ok(routes)
}

/// Every combination of levels; the factor that the matrix names last changes fastest, but for the groups.
fn multiply(study: &Study, matrix: &Matrix, most_runs: u32) -> Result<Vec<Cell>, InputError> {
    let factors = &study.matrix.value;
    let count = factors.iter().try_fold(1_usize, |product, factor| {
        product.checked_mul(factor.levels.value.len()).filter(|product| *product <= MOST_CELLS)
    });
    let Some(count) = count else {
        let problem = format!("the matrix has more than {MOST_CELLS} cells; remove levels");
        return Err(study.matrix.error(problem));
    };
    if count as u64 * u64::from(most_runs) > MOST_RUNS {
        let problem =
            format!("{count} cells of {most_runs} runs each exceed {MOST_RUNS} runs; reduce cells or runs");
        return Err(study.matrix.error(problem));
    }
    let mut cells = Vec::with_capacity(count);
    for cell in 0..count {
        let mut indices = vec![0; factors.len()];
        let mut rest = cell;
        for (index, factor) in indices.iter_mut().zip(factors).rev() {
            *index = rest % factor.levels.value.len();
            rest /= factor.levels.value.len();
        }
        cells.push(make_cell(cell, &indices, study, matrix)?);
    }
    Ok(cells)
}

fn make_cell(number: usize, indices: &[usize], study: &Study, matrix: &Matrix) -> Result<Cell, InputError> {
    let factors = &study.matrix.value;
    let index_in = |kind| factors.iter().position(|factor| factor.kind == kind).map(|at| indices[at]);
    let group = index_in(FactorKind::Group).unwrap_or(0);
    let (entry, role) = (&study.groups[group], &matrix.groups[group]);
    // A group's own level stands in place of the matrix's.
    let index_of = |kind: FactorKind| {
        let own = entry.own(kind).map(|own| {
            study.named_levels(kind).iter().position(|level| level.value == own.value).unwrap_or(0)
        });
        own.or_else(|| index_in(kind)).unwrap_or(0)
    };
    let levels = factors.iter().zip(indices).map(|(factor, &index)| Level {
        factor: factor.kind.name().to_owned(),
        value: factor.levels.value[index].value.clone(),
    });
    let network = role.routes[index_of(FactorKind::Server)][index_of(FactorKind::Network)];
    let variant = matrix.variants[index_of(FactorKind::Variant)];
    let level = &study.named_levels(FactorKind::Workload)[index_of(FactorKind::Workload)];
    let workload = clients::workload_of(&matrix.workloads, level, variant)?;
    let ClientsOf { named, clients, start, .. } = &matrix.workloads[workload];
    let server = &matrix.servers[index_of(FactorKind::Server)];
    let mut chain = server.chain.clone();
    chain.node.clone_from(server.node.as_ref().map_or(&matrix.topology.server, |node| &node.value));
    for (back, node) in chain.backs.iter_mut().zip(&matrix.topology.backs) {
        back.node.clone_from(node);
    }
    let built = matrix.topology.built.get(network);
    let planned = &matrix.topology;
    let whole = built
        .filter(|_| !chain.backs.is_empty())
        .and_then(|built| built.route_network_to(&planned.backs[..chain.backs.len()], &planned.name));
    let route = whole.as_ref().unwrap_or(&matrix.networks[network]);
    let Prediction { expected_run_ns, run_limit_ns } =
        predict(&named.workload, variant, route, server.pins.as_ref().unwrap_or(&study.hold.pins));
    // The first visit takes as long, at most.
    let visits = 1 + u64::from(!named.options.connections.visit.is_first());
    let (expected_run_ns, run_limit_ns) =
        (expected_run_ns.saturating_mul(visits), run_limit_ns.saturating_mul(visits));
    let warm_ns = study.warm.map_or(0, ServerWarmUp::expected_ns);
    let lead_ns = built.map_or(0, Topology::lead_ns).saturating_add(matrix.dns_rtt_ns.unwrap_or(0));
    let lead_ns = lead_ns.saturating_add(warm_ns);
    let clients = entry.clients.unwrap_or(*clients);
    let client = entry
        .own(FactorKind::Client)
        .or_else(|| levels_of(factors, FactorKind::Client).get(index_in(FactorKind::Client)?));
    Ok(Cell {
        cell: to_u32(number),
        levels: levels.collect(),
        network,
        backend: matrix.backends[index_of(FactorKind::Backend)],
        pins: server.pins.clone(),
        group: ClientGroup {
            group: u16::try_from(group).unwrap_or(u16::MAX),
            name: entry.name().to_owned(),
            node: role.node.clone(),
            client: client.map_or_else(|| OWN_CLIENT.to_owned(), |level| level.value.clone()),
            variant,
            workload,
            clients,
            start: entry.start.unwrap_or(*start),
            end: role.end,
            is_background: entry.is_background,
        },
        chain,
        expected_run_ns: expected_run_ns.saturating_add(lead_ns),
        run_limit_ns: run_limit_ns.saturating_add(matrix.dns_rtt_ns.unwrap_or(0)),
        unsupported: None,
    })
}

/// Cells and runs are counted within limits far below that of `u32`.
fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
