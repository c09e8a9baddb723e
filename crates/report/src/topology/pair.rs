//! A client and a server, and both directions between them.

use model::network::{Direction, Network, describe_direction};
use model::plan::{Plan, PlannedTopology};

use super::{LINE, clients, headed, lines, servers};
use crate::figures::Panel;
use crate::svg::{Anchor, Canvas, Point, Rect, WIDTH, at, count, fit};
use crate::text::clean_line;

const NODE: f64 = 96.0;
const TOP: f64 = 32.5;
/// Lines about the programs of a node; the last one says if there are more.
const MAX_LINES: usize = 6;
/// Between the ends of a wire and the nodes.
const CLEARANCE: f64 = 6.0;

pub(super) fn draw(plan: &Plan, network: &Network) -> Panel {
    let mut canvas = headed(network);
    let name = clean_line(&network.name);
    let (left, right) = (NODE + CLEARANCE, WIDTH - NODE - CLEARANCE);
    let mut description = Vec::new();
    let mut y = TOP;
    let directions = [("up", &network.up, left, right), ("down", &network.down, right, left)];
    for (name, direction, from, to) in directions {
        y = draw_direction(&mut canvas, name, direction, (from, to), y);
        let (first, rest) = describe_direction(direction);
        description.push(format!("{name}: {first}, {rest}"));
    }
    let PlannedTopology { client, server, .. } = &plan.topology;
    let nodes = [(client, clients(plan), 0.0), (server, servers(plan), WIDTH - NODE)];
    let programs = nodes.each_ref().map(|(_, programs, _)| lines_of(programs));
    let most = programs.iter().map(Vec::len).max().unwrap_or(0);
    let bottom = y.max(TOP + count(most) * LINE + 40.0);
    for ((node, _, x), programs) in nodes.iter().zip(&programs) {
        draw_node(&mut canvas, &clean_line(node), programs, at(*x, bottom));
    }
    let title = match plan.topology == PlannedTopology::default() {
        true => format!("Topology {name}: client and server, joined by one emulated link"),
        false => format!("Topology {name}: {}", clean_line(&plan.topology.describe())),
    };
    Panel::new(title, &description, bottom + 6.0, canvas)
}

/// An arrow with delay and rate above, and the rest below; returns where the next one begins.
fn draw_direction(
    canvas: &mut Canvas,
    name: &str,
    direction: &Direction,
    (from, to): (f64, f64),
    mut y: f64,
) -> f64 {
    let (first, rest) = describe_direction(direction);
    let room = (to - from).abs() - 4.0;
    let write = |canvas: &mut Canvas, text: &str, mut y: f64| {
        for line in lines(text, room) {
            y += LINE;
            canvas.text(at(WIDTH / 2.0, y), Anchor::Middle, "tick", &line);
        }
        y
    };
    y = write(canvas, &clean_line(&format!("{name}: {first}")), y) + 7.0;
    let inner = if to > from { to - 7.0 } else { to + 7.0 };
    canvas.line(at(from, y), at(to, y), "wire");
    canvas.path(&[at(inner, y - 4.0), at(to, y), at(inner, y + 4.0)], "wire");
    write(canvas, &clean_line(&rest), y + 1.0) + 8.0
}

fn lines_of(programs: &[String]) -> Vec<String> {
    let mut lines = lines(&programs.join(", "), NODE - 8.0);
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES - 1);
        lines.push("and others".to_owned());
    }
    lines
}

/// A box with this lower left corner.
fn draw_node(canvas: &mut Canvas, name: &str, programs: &[String], corner: Point) {
    let height = corner.y - TOP;
    canvas.rounded(Rect { x: corner.x + 0.5, y: TOP, width: NODE - 1.0, height }, 6.0, "node");
    let text = count(programs.len() + 1) * LINE;
    let middle = corner.x + NODE / 2.0;
    let mut y = TOP + (height - text) / 2.0 + 10.0;
    canvas.text(at(middle, y), Anchor::Middle, "label", &fit(name, 14.0, NODE - 8.0));
    for line in programs {
        y += LINE;
        canvas.text(at(middle, y), Anchor::Middle, "tick", line);
    }
}
