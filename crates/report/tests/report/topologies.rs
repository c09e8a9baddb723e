//! Topologies as the report draws and describes them.

use model::Topology;
use model::error::Source;
use model::plan::PlannedTopology;
use report::render;

use crate::fabricated::{self, Fabricated, network};
use crate::structure::drawings;

const FILES: &[(&str, &str)] = &[
    ("shared", include_str!("../../../../topologies/shared.toml")),
    ("campus", include_str!("../../../../topologies/campus.toml")),
    ("sites", include_str!("../../../../topologies/sites.toml")),
];
const NETWORKS: &[(&str, &str)] = &[
    ("lan", include_str!("../../../../networks/lan.toml")),
    ("dsl", include_str!("../../../../networks/dsl.toml")),
    ("tokyo", include_str!("../../../../networks/tokyo.toml")),
    ("north-carolina", include_str!("../../../../networks/north-carolina.toml")),
    ("frankfurt", include_str!("../../../../networks/frankfurt.toml")),
    ("amsterdam", include_str!("../../../../networks/amsterdam.toml")),
];

/// `quick` on the topology of a file, measured between these nodes, with a name server next to the client.
pub(crate) fn measured_on(name: &str, client: &str, server: &str) -> Fabricated {
    let text = FILES.iter().find(|(known, _)| *known == name).unwrap().1;
    let known: Vec<String> = NETWORKS.iter().map(|(known, _)| (*known).to_owned()).collect();
    let find = |wanted: &str| {
        let (name, text) = NETWORKS.iter().find(|(known, _)| *known == wanted).unwrap();
        Ok(network(name, text))
    };
    let mut topology = Topology::parse(name, Source { file: name, text }, &known, &find).unwrap();
    topology.choose(topology.host(client).unwrap(), topology.host(server).unwrap()).unwrap();
    let mut fabricated = fabricated::all_well();
    fabricated.plan.topology = PlannedTopology {
        name: name.to_owned(),
        client: client.to_owned(),
        server: server.to_owned(),
        backs: Vec::new(),
        link: None,
        built: vec![topology.clone(), topology],
    };
    for cell in &mut fabricated.plan.cells {
        cell.group.node = client.to_owned();
        cell.chain.node = server.to_owned();
    }
    fabricated.plan.dns_rtt_ns = Some(20_000_000);
    fabricated
}

/// The drawings of the page's topologies, an element in each line.
fn drawn(fabricated: &Fabricated) -> Vec<String> {
    let html = render(&fabricated.input()).unwrap().html;
    let topologies = drawings(&html).into_iter().filter(|drawing| drawing.contains("id=\"topology-"));
    topologies.map(|drawing| drawing.replace("><", ">\n<")).collect()
}

#[test]
fn the_route_is_a_spine_with_branches() {
    let drawn = drawn(&measured_on("shared", "client", "server"));
    assert_eq!(drawn.len(), 2, "one for each network");
    insta::assert_snapshot!("topology_shared", drawn[0]);
}

#[test]
fn every_node_and_link_is_in_the_drawing() {
    for (name, client, server) in [("campus", "client", "web-server"), ("sites", "tokyo", "server")] {
        let fabricated = measured_on(name, client, server);
        let topology = fabricated.plan.topology_on(0).unwrap();
        let drawing = drawn(&fabricated).remove(0);
        for node in &topology.nodes {
            let is_it = |line: &&str| {
                line.starts_with("<text class=\"label\"") && line.ends_with(&format!(">{}</text>", node.name))
            };
            assert_eq!(drawing.lines().filter(is_it).count(), 1, "{name}: {} in {drawing}", node.name);
        }
        let wires = drawing.matches("class=\"wire").count();
        assert_eq!(wires, topology.links.len(), "{name}: {drawing}");
        let route = topology.route().unwrap().len();
        assert_eq!(drawing.matches("class=\"wire route\"").count(), route, "{name}: {drawing}");
        assert!(drawing.contains("name server"), "{name}: it is a node like others");
    }
}

#[test]
fn a_circle_of_links_is_described_if_it_cannot_be_drawn() {
    let text = "title = 'A ring'\n[[node]]\nname = 'client'\n[[node]]\nname = 'a'\nrole = 'router'\n[[node]]\nname = 'b'\n\
                role = 'router'\n[[node]]\nname = 'server'\n[[link]]\nends = ['client', 'a']\n[[link]]\nends = ['a', 'server']\n\
                [[link]]\nends = ['a', 'b']\n[[link]]\nends = ['b', 'client']\n";
    let ring = Topology::parse("ring", Source { file: "ring", text }, &[], &|_| unreachable!()).unwrap();
    let mut fabricated = measured_on("shared", "client", "server");
    fabricated.plan.topology.built = vec![ring.clone(), ring];
    let drawing = drawn(&fabricated).remove(0);
    assert!(drawing.contains("further link"), "{drawing}");
}
