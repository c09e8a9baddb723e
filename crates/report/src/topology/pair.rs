//! A client and a server, and what each direction between them does.

use model::network::{Direction, Network, describe_direction};
use model::plan::{Plan, PlannedTopology};

use super::{LINE, clients, lines, servers};
use crate::figures::Panel;
use crate::svg::{Anchor, Canvas, Point, Rect, at, fit};
use crate::text::clean_line;

const WIDTH: f64 = 400.0;
const NODE: f64 = 96.0;
const TOP: f64 = 32.5;
/// Lines about the programs of a node; how many more there are stands in the last.
const MOST_LINES: usize = 6;
/// Between the ends of a wire and the nodes.
const CLEARANCE: f64 = 6.0;

pub(super) fn draw(plan: &Plan, network: &Network) -> Panel {
    let mut canvas = Canvas::default();
    let name = clean_line(&network.name);
    canvas.text(at(0.0, 15.0), Anchor::Start, "heading", &fit(&name, 14.5 * 1.12, WIDTH));
    let (left, right) = (NODE + CLEARANCE, WIDTH - NODE - CLEARANCE);
    let mut description = Vec::new();
    let mut y = TOP;
    for (way, direction, from, to) in [("up", &network.up, left, right), ("down", &network.down, right, left)]
    {
        y = draw_direction(&mut canvas, way, direction, (from, to), y);
        let (first, rest) = describe_direction(direction);
        description.push(format!("{way}: {first}, {rest}"));
    }
    let PlannedTopology { client, server, .. } = &plan.topology;
    let nodes = [(client, clients(plan), 0.0), (server, servers(plan), WIDTH - NODE)];
    let programs = nodes.each_ref().map(|(_, programs, _)| lines_of(programs));
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let most = programs.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let bottom = y.max(TOP + most * LINE + 40.0);
    for ((node, _, x), programs) in nodes.iter().zip(&programs) {
        draw_node(&mut canvas, &clean_line(node), programs, at(*x, bottom));
    }
    Panel {
        title: match plan.topology == PlannedTopology::default() {
            true => format!("Topology {name}: client and server, joined by one emulated link"),
            false => format!("Topology {name}: {}", clean_line(&plan.topology.describe())),
        },
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + 6.0,
        body: canvas.finish(),
    }
}

/// An arrow, what it delays and how fast it is above, and the rest below; returns where the next begins.
fn draw_direction(
    canvas: &mut Canvas,
    way: &str,
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
    y = write(canvas, &clean_line(&format!("{way}: {first}")), y) + 7.0;
    let inner = if to > from { to - 7.0 } else { to + 7.0 };
    canvas.line(at(from, y), at(to, y), "wire");
    canvas.path(&[at(inner, y - 4.0), at(to, y), at(inner, y + 4.0)], "wire");
    write(canvas, &clean_line(&rest), y + 1.0) + 8.0
}

fn lines_of(programs: &[String]) -> Vec<String> {
    let mut lines = lines(&programs.join(", "), NODE - 8.0);
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES - 1);
        lines.push("and others".to_owned());
    }
    lines
}

/// A box whose lower left corner this is.
fn draw_node(canvas: &mut Canvas, name: &str, programs: &[String], corner: Point) {
    let height = corner.y - TOP;
    canvas.rounded(Rect { x: corner.x + 0.5, y: TOP, width: NODE - 1.0, height }, 6.0, "node");
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let text = (programs.len() + 1) as f64 * LINE;
    let middle = corner.x + NODE / 2.0;
    let mut y = TOP + (height - text) / 2.0 + 10.0;
    canvas.text(at(middle, y), Anchor::Middle, "label", &fit(name, 14.0, NODE - 8.0));
    for line in programs {
        y += LINE;
        canvas.text(at(middle, y), Anchor::Middle, "tick", line);
    }
}
