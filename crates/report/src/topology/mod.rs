//! Where it was measured: the nodes and links of every network of the matrix, drawn and in words.

mod pair;
mod tree;

use model::Topology;
use model::external::OWN_CLIENT;
use model::network::Network;
use model::plan::{DIRECT, Plan};

use crate::figures::Panel;
use crate::method::Settings;
use crate::svg::{fit, text_width};
use crate::text::{self, clean_line};
use crate::view::View;

/// The size of small text and the distance of its lines.
const TICK_SIZE: f64 = 11.5;
const LINE: f64 = 15.0;
/// Rows shown of any one table.
const MAX_ROWS: usize = 400;

/// One drawing per network: a pair with what each direction does, anything larger as a tree along the measured way.
pub(crate) fn panels(view: &View<'_>) -> Vec<Panel> {
    let plan = view.plan();
    let draw = |(index, network): (usize, &Network)| match plan.topology_on(index) {
        Some(topology) if topology.nodes.len() > 2 => tree::draw(plan, network, &topology),
        _ => pair::draw(plan, network),
    };
    plan.networks.iter().enumerate().map(draw).collect()
}

/// The topology in a sentence or four.
pub(crate) fn words(plan: &Plan) -> String {
    let names = plan.dns_rtt_ns.map(|rtt_ns| {
        format!(
            " Every run's client asks a name server, {} away, for the server's address before it connects.",
            text::duration(rtt_ns)
        )
    });
    nodes_words(plan) + &names.unwrap_or_default()
}

fn nodes_words(plan: &Plan) -> String {
    let servers = text::list(&servers(plan));
    if plan.topology.name == DIRECT {
        return format!(
            "Client and server ({servers}) run on this machine and speak over its loopback: nothing is emulated."
        );
    }
    let each = "Each direction loses, queues and paces packets, then delays them.";
    if plan.topology.built.is_empty() {
        return format!(
            "Client and server ({servers}) run in network namespaces of their own, joined by one emulated link. {each}"
        );
    }
    format!(
        "Every node runs in network namespaces of its own; the server is {servers}. {}. On an emulated link {}",
        clean_line(&plan.topology.describe()),
        each.to_lowercase()
    )
}

/// The nodes and links of a topology beyond a pair, one table for each network of the matrix.
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

/// The text in lines that are no wider than `room`, cut between words.
fn lines(text: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), TICK_SIZE) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fit(word, TICK_SIZE, room)),
        }
    }
    lines
}

fn servers(plan: &Plan) -> Vec<String> {
    plan.servers.iter().map(|server| clean_line(server)).collect()
}

/// The programs that ask.
fn clients(plan: &Plan) -> Vec<String> {
    let own = plan.cells.iter().flat_map(|cell| &cell.clients).any(|group| group.client == OWN_CLIENT);
    let own = own.then(|| "h123 load".to_owned());
    own.into_iter().chain(plan.external_clients().into_iter().map(clean_line)).collect()
}
