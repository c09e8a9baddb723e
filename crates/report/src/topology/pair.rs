//! A client and a server, and what each direction between them does.

use model::network::{Network, describe_direction};
use model::plan::{Plan, PlannedTopology};

use super::{clients, servers};
use crate::figures::Panel;
use crate::svg::{Anchor, Canvas, Rect, at, fit};
use crate::text::clean_line;

const WIDTH: f64 = 400.0;
const NODE: f64 = 86.0;
const HEIGHT: f64 = 132.0;

pub(super) fn draw(plan: &Plan, network: &Network) -> Panel {
    let mut canvas = Canvas::default();
    let name = clean_line(&network.name);
    canvas.text(at(0.0, 15.0), Anchor::Start, "heading", &fit(&name, 14.5 * 1.12, WIDTH));
    let PlannedTopology { client, server, .. } = &plan.topology;
    let nodes = [
        (clean_line(client), clients(plan).join(", "), 0.0),
        (clean_line(server), servers(plan).join(", "), WIDTH - NODE),
    ];
    for (node, what, x) in nodes {
        canvas.rounded(Rect { x: x + 0.5, y: 32.5, width: NODE - 1.0, height: 94.0 }, 6.0, "node");
        canvas.text(at(x + NODE / 2.0, 76.0), Anchor::Middle, "label", &fit(&node, 14.0, NODE - 8.0));
        canvas.text(at(x + NODE / 2.0, 94.0), Anchor::Middle, "tick", &fit(&what, 11.5, NODE - 8.0));
    }
    let (left, right) = (NODE + 6.0, WIDTH - NODE - 6.0);
    let mut description = Vec::new();
    let ways = [("up", &network.up, 52.0, left, right), ("down", &network.down, 104.0, right, left)];
    for (way, direction, y, from, to) in ways {
        let inner = if to > from { to - 7.0 } else { to + 7.0 };
        canvas.line(at(from, y), at(to, y), "wire");
        canvas.path(&[at(inner, y - 4.0), at(to, y), at(inner, y + 4.0)], "wire");
        let (first, second) = describe_direction(direction);
        let room = right - left - 4.0;
        canvas.text(
            at(WIDTH / 2.0, y - 6.0),
            Anchor::Middle,
            "tick",
            &fit(&format!("{way}: {first}"), 11.5, room),
        );
        canvas.text(at(WIDTH / 2.0, y + 15.0), Anchor::Middle, "tick", &fit(&second, 11.5, room));
        description.push(format!("{way}: {first}, {second}"));
    }
    Panel {
        title: match plan.topology == PlannedTopology::default() {
            true => format!("Topology {name}: client and server, joined by one emulated link"),
            false => format!("Topology {name}: {}", clean_line(&plan.topology.in_words())),
        },
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: HEIGHT,
        body: canvas.finish(),
    }
}
