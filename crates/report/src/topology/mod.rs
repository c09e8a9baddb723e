//! The nodes and links of every network of the matrix, drawn and described.

mod pair;
mod tree;

use model::Topology;
use model::external::OWN_CLIENT;
use model::network::Network;
use model::plan::{Cell, DIRECT, Plan};

use crate::figures::Panel;
use crate::method::Settings;
use crate::svg::{Anchor, BOLD, Canvas, HEADING_SIZE, TICK_SIZE, WIDTH, at, fit, wrapped};
use crate::text::{self, clean_line};
use crate::view::View;

/// The distance of lines of small text.
const LINE: f64 = 15.0;
/// Rows of a table.
const MAX_ROWS: usize = 400;

/// One drawing for each network: two nodes with both directions, or a tree along the measured route.
pub(crate) fn panels(view: &View<'_>) -> Vec<Panel> {
    let plan = view.plan();
    let draw = |(index, network): (usize, &Network)| match plan.topology_on(index) {
        Some(topology) if topology.nodes.len() > 2 => tree::draw(plan, network, &topology),
        _ => pair::draw(plan, network),
    };
    plan.networks.iter().enumerate().map(draw).collect()
}

/// The topology in a few sentences.
pub(crate) fn describe(plan: &Plan) -> String {
    let names = plan.dns_rtt_ns.map(|rtt_ns| {
        format!(
            " Before it connects, each client looks up the server's address at a name server with an RTT of {}.",
            text::duration(rtt_ns)
        )
    });
    describe_nodes(plan) + &names.unwrap_or_default()
}

fn describe_nodes(plan: &Plan) -> String {
    let servers = text::list(&servers(plan));
    if plan.topology.name == DIRECT {
        return format!(
            "Client and server ({servers}) run on this machine and use its loopback interface; no network is emulated."
        );
    }
    let each = "each direction drops, queues and paces packets, then delays them.";
    if plan.topology.built.is_empty() {
        return format!(
            "Client and server ({servers}) run in separate network namespaces, joined by one emulated link; {each}"
        );
    }
    format!(
        "Each node runs in its own network namespace; the server is {servers}. {}. On an emulated link, {each}",
        clean_line(&plan.topology.describe())
    )
}

/// The nodes and links of a topology with more than two nodes, one table for each network of the matrix.
pub(crate) fn links(plan: &Plan) -> Vec<Settings> {
    let built = plan.networks.iter().enumerate().filter_map(|(index, network)| {
        let topology = plan.topology_on(index).filter(|topology| topology.nodes.len() > 2)?;
        Some((topology, network))
    });
    let table = |(topology, network): (Topology, &Network)| {
        let lines = model::topology::describe(&topology);
        let rows: Vec<(String, String)> = lines
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with(' '))
            .map(|line| {
                let (name, what) = line.split_once(": ").unwrap_or((line, text::NONE));
                (clean_line(name), clean_line(what))
            })
            .take(MAX_ROWS)
            .collect();
        let title = format!("Topology {} with {}", clean_line(&topology.name), clean_line(&network.name));
        Settings { title, rows, more: 0 }
    };
    built.map(table).collect()
}

/// The text in lines of at most `room`.
fn lines(text: &str, room: f64) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { wrapped(text, TICK_SIZE, room) }
}

/// A canvas with the name of a network.
fn headed(network: &Network) -> Canvas {
    let mut canvas = Canvas::default();
    let name = fit(&clean_line(&network.name), HEADING_SIZE * BOLD, WIDTH);
    canvas.text(at(0.0, 15.0), Anchor::Start, "heading", &name);
    canvas
}

fn servers(plan: &Plan) -> Vec<String> {
    plan.servers.iter().map(|server| clean_line(server)).collect()
}

/// The servers that clients use in a node, by the names of the study.
fn servers_in(plan: &Plan, node: &str) -> Vec<String> {
    let cells = plan.cells.iter().filter(|cell| cell.chain.node == node);
    text::distinct(cells.map(|cell| clean_line(cell.level("server").unwrap_or(&cell.chain.server))))
}

/// The client programs.
fn clients(plan: &Plan) -> Vec<String> {
    programs(plan.cells.iter())
}

/// The client programs of a node.
fn clients_in(plan: &Plan, node: &str) -> Vec<String> {
    programs(plan.cells.iter().filter(|cell| cell.group.node == node))
}

fn programs<'p>(cells: impl Iterator<Item = &'p Cell>) -> Vec<String> {
    text::distinct(cells.map(|cell| match cell.group.client.as_str() {
        OWN_CLIENT => "h123 load".to_owned(),
        external => clean_line(external),
    }))
}
