//! A topology with more than two nodes: the measured route from top to bottom, and branches next to it.

use model::network::Network;
use model::plan::Plan;
use model::topology::{NAME_SERVER, Role, TopologyLink};
use model::{Topology, network};

use super::{LINE, clients_in, headed, lines, servers_in};
use crate::figures::Panel;
use crate::svg::{Anchor, Canvas, Rect, WIDTH, at, count, fit};
use crate::text::{self, clean_line};

const TOP: f64 = 28.0;
const NODE_WIDTH: f64 = 124.0;
const NODE_HEIGHT: f64 = 26.0;
/// The indentation of a branch from the node that it leaves.
const INDENT: f64 = 56.0;
/// Where the wires of the route and of branches leave a node's box.
const STEM: f64 = 13.0;
const BRANCH_STEM: f64 = 38.0;
/// Above the first line about a link, and below a node.
const GAP: f64 = 7.0;

/// A node with its position, below the one that it was reached from.
struct Placed {
    node: usize,
    /// Its distance from the route.
    depth: usize,
    /// The node it was reached from and the link between them; `None` for the client.
    from: Option<(usize, usize)>,
    is_on_route: bool,
    /// On the route: the description of the link to it, in lines above it.
    above: Vec<String>,
    /// Its description and, in a branch, that of the link to it, in lines next to it.
    side_text: Vec<String>,
    /// The top of its box.
    y: f64,
}

impl Placed {
    fn x(&self) -> f64 {
        0.5 + count(self.depth) * INDENT
    }

    fn side_text_x(&self) -> f64 {
        self.x() + NODE_WIDTH + 8.0
    }

    /// The lower end of its box and of the lines next to it.
    fn bottom(&self) -> f64 {
        self.y + NODE_HEIGHT.max(height(&self.side_text))
    }
}

pub(super) fn draw(plan: &Plan, network: &Network, topology: &Topology) -> Panel {
    let placed = place(plan, topology);
    let mut canvas = headed(network);
    for own in &placed {
        draw_wire(&mut canvas, &placed, own);
    }
    for own in &placed {
        draw_node(&mut canvas, own, topology);
    }
    let mut y = placed.last().map_or(TOP, |last| last.bottom() + GAP);
    let further = further(topology, &placed);
    for line in &further {
        y += LINE;
        canvas.text(at(0.0, y), Anchor::Start, "tick", line);
    }
    let links = topology.links.iter();
    let links = links.map(|link| format!("{}: {}", clean_line(&link.name), describe_link(link)));
    let title = format!("Topology {}: {}", clean_line(&network.name), clean_line(&plan.topology.describe()));
    Panel::new(title, &links.chain(further).collect::<Vec<_>>(), y + GAP, canvas)
}

/// Every node that is linked to the client, each once: the branches of a node come before the next node of
/// the route.
fn place(plan: &Plan, topology: &Topology) -> Vec<Placed> {
    let route: Vec<usize> = topology.route().unwrap_or_default().iter().map(|step| step.link).collect();
    let mut placed: Vec<Placed> = Vec::new();
    let mut left = vec![(topology.client, 0, None, true)];
    let mut y = TOP;
    while let Some((node, depth, from, is_on_route)) = left.pop() {
        if placed.iter().any(|known| known.node == node) {
            continue;
        }
        let mut own =
            Placed { node, depth, from, is_on_route, above: Vec::new(), side_text: Vec::new(), y: 0.0 };
        let link = from.map(|(_, link): (usize, usize)| describe_link(&topology.links[link]));
        let mut description = describe_node(plan, topology, node);
        match link {
            Some(link) if is_on_route => own.above = lines(&link, WIDTH - own.x() - STEM - 8.0),
            Some(link) if description.is_empty() => description = link,
            Some(link) => description = format!("{description} · {link}"),
            None => {}
        }
        own.side_text = lines(&description, WIDTH - own.side_text_x());
        own.y = y + GAP + height(&own.above) + if own.above.is_empty() { 0.0 } else { GAP };
        y = own.bottom();
        placed.push(own);
        let of_node = |(index, link): (usize, &TopologyLink)| {
            let other = if link.ends[0].0 == node { link.ends[1].0 } else { link.ends[0].0 };
            let leads = link.ends.iter().any(|end| end.0 == node);
            leads.then(|| {
                let stays = is_on_route && route.contains(&index);
                (other, if stays { depth } else { depth + 1 }, Some((node, index)), stays)
            })
        };
        let mut next: Vec<_> = topology.links.iter().enumerate().filter_map(of_node).collect();
        // The last one is taken first: branches in the order of the file, then the route.
        next.sort_by_key(|(_, _, link, stays)| (!stays, std::cmp::Reverse(*link)));
        left.extend(next);
    }
    placed
}

fn describe_link(link: &TopologyLink) -> String {
    match &link.network {
        None => "a wire".to_owned(),
        Some(found) => format!("{}: {}", clean_line(&found.name), clean_line(&network::describe(found))),
    }
}

fn height(lines: &[String]) -> f64 {
    count(lines.len()) * LINE
}

fn draw_wire(canvas: &mut Canvas, placed: &[Placed], own: &Placed) {
    let Some((from, _)) = own.from else { return };
    let Some(from) = placed.iter().find(|known| known.node == from) else { return };
    let leaves = |stem: f64| at(from.x() + stem, from.y + NODE_HEIGHT);
    if !own.is_on_route {
        let (begin, middle) = (leaves(BRANCH_STEM), own.y + NODE_HEIGHT / 2.0);
        canvas.path(&[begin, at(begin.x, middle), at(own.x(), middle)], "wire");
        return;
    }
    let begin = leaves(STEM);
    canvas.line(begin, at(begin.x, own.y), "wire route");
    let top = own.y - 5.0 - height(&own.above);
    draw_lines(canvas, &own.above, begin.x + 8.0, top);
}

fn draw_lines(canvas: &mut Canvas, lines: &[String], x: f64, top: f64) {
    let mut y = top - 4.0;
    for line in lines {
        y += LINE;
        canvas.text(at(x, y), Anchor::Start, "tick", line);
    }
}

fn draw_node(canvas: &mut Canvas, own: &Placed, topology: &Topology) {
    let (x, y) = (own.x(), own.y);
    let name = clean_line(&topology.nodes[own.node].name);
    canvas.rounded(Rect { x, y, width: NODE_WIDTH, height: NODE_HEIGHT }, 5.0, "node");
    let label = fit(&name, 14.0, NODE_WIDTH - 12.0);
    canvas.text(at(x + NODE_WIDTH / 2.0, y + 17.5), Anchor::Middle, "label", &label);
    let top = y + ((NODE_HEIGHT - height(&own.side_text)) / 2.0).max(0.0);
    draw_lines(canvas, &own.side_text, own.side_text_x(), top);
}

/// The programs and the role of a node.
fn describe_node(plan: &Plan, topology: &Topology, node: usize) -> String {
    let own = &topology.nodes[node];
    let planned = &plan.topology;
    let crosses = topology.cross.iter().any(|cross| cross.from == node || cross.to == node);
    let mut parts = Vec::new();
    let programs = [clients_in(plan, &own.name), servers_in(plan, &own.name)];
    parts.extend(programs.iter().filter(|programs| !programs.is_empty()).map(|programs| programs.join(", ")));
    if planned.backs.contains(&own.name) {
        let backs = plan.cells.iter().flat_map(|cell| &cell.chain.backs).filter(|back| back.node == own.name);
        let backs = text::distinct(backs.map(|back| clean_line(&back.server)));
        parts.push(format!("back server: {}", text::list(&backs)));
    }
    match own.role {
        Role::Router => parts.push("router".to_owned()),
        Role::Switch => parts.push("switch".to_owned()),
        Role::Host if own.name == NAME_SERVER && plan.dns_rtt_ns.is_some() => {
            parts.push("name server".to_owned());
        }
        Role::Host if crosses => parts.push("cross-traffic".to_owned()),
        Role::Host => {}
    }
    parts.join("; ")
}

/// What the tree cannot show: links that close a loop, unlinked nodes, and cross-traffic.
fn further(topology: &Topology, placed: &[Placed]) -> Vec<String> {
    let name = |node: usize| clean_line(&topology.nodes[node].name);
    let is_drawn = |index: usize| placed.iter().any(|own| own.from.is_some_and(|(_, link)| link == index));
    let links = topology.links.iter().enumerate().filter(|(index, _)| !is_drawn(*index)).map(|(_, link)| {
        format!("further link {} – {}: {}", name(link.ends[0].0), name(link.ends[1].0), describe_link(link))
    });
    let alone = (0..topology.nodes.len()).filter(|node| placed.iter().all(|own| own.node != *node));
    let alone = alone.map(|node| format!("{} is not linked to these", name(node)));
    let cross = topology.cross.iter().map(|cross| {
        let (from, to) = (name(cross.to), name(cross.from));
        format!("cross-traffic: {} × {} from {from} to {to}", cross.flows, cross.variant)
    });
    links.chain(alone).chain(cross).flat_map(|text| lines(&text, WIDTH)).collect()
}
