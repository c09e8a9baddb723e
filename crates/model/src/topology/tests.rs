use super::*;

fn parse(text: &str) -> Result<Topology, String> {
    let known = ["lan".to_owned(), "tokyo".to_owned(), "roam".to_owned()];
    let network = |name: &str| {
        let handover = "[[timeline]]\nat = \"1s\"\nhandover = true\n";
        let timeline = if name == "roam" { handover } else { "" };
        let text = format!("title = \"T\"\nsource = \"S\"\nrtt = \"2ms\"\n{timeline}");
        Network::parse(name, Source { file: "networks/x.toml", text: &text })
    };
    Topology::parse("test", Source { file: "t.toml", text }, &known, &network)
        .map_err(|error| error.to_string())
}

const CAMPUS: &str = r#"title = "T"
[[node]]
name = "client"
[[node]]
name = "router"
role = "router"
[[node]]
name = "switch"
role = "switch"
[[node]]
name = "web-server"
[[node]]
name = "video-server"
[[link]]
ends = ["client 192.168.1.2/30", "router 192.168.1.1/30"]
network = "tokyo"
[[link]]
ends = ["router 192.168.2.1/29", "switch"]
[[link]]
ends = ["web-server 192.168.2.2/29", "switch"]
network = "lan"
[[link]]
ends = ["video-server 192.168.2.3/29", "switch"]
"#;

/// A node's routes as `network via router from source`.
fn routes(topology: &Topology, name: &str) -> Vec<String> {
    let node = &topology.nodes[topology.position(name).unwrap()];
    let words = |route: &Route| {
        let via = route.via.map_or(String::new(), |via| format!(" via {via}"));
        format!("{}/{}{via} from {}", route.network, route.prefix, route.source)
    };
    node.routes.iter().map(words).collect()
}

#[test]
fn the_pair_has_stable_names_and_addresses() {
    let network = Network { name: "x".to_owned(), ..Network::default() };
    let pair = Topology::pair(&network);
    assert_eq!(pair.nodes[0].address_v4(), Some(Ipv4Addr::new(10, 123, 0, 1)));
    assert_eq!(pair.nodes[1].address_v6(), Some("fd12:3123:123::2".parse().unwrap()));
    assert_eq!(
        routes(&pair, "client"),
        ["10.123.0.0/24 from 10.123.0.1", "fd12:3123:123::/64 from fd12:3123:123::1"]
    );
    let peer = &pair.nodes[1].interfaces[0];
    assert_eq!(
        pair.nodes[0].interfaces[0].neighbours,
        [(peer.v4.unwrap().0.into(), peer.mac), (peer.v6.unwrap().0.into(), peer.mac)]
    );
    let file = "title = \"A client and a server\"\n[[node]]\nname = \"client\"\n[[node]]\nname = \"server\"\n\
                [[link]]\nends = [\"client\", \"server\"]\nnetwork = \"lan\"\n";
    let mut written = parse(file).unwrap();
    written.replace_network(None, &network).unwrap();
    written.name = "pair".to_owned();
    assert_eq!(written, pair, "the file and the network alone mean the same");
}

#[test]
fn a_campus_has_two_networks_and_a_router_between() {
    let campus = parse(CAMPUS).unwrap();
    assert_eq!(
        routes(&campus, "client"),
        [
            "192.168.1.0/30 from 192.168.1.2",
            "fd12:3123:123::/64 from fd12:3123:123::1",
            "192.168.2.0/29 via 192.168.1.1 from 192.168.1.2",
            "fd12:3123:123:1::/64 via fd12:3123:123::2 from fd12:3123:123::1",
        ]
    );
    assert_eq!(routes(&campus, "video-server")[2], "192.168.1.0/30 via 192.168.2.1 from 192.168.2.3");
    assert_eq!(routes(&campus, "router").len(), 4);
    assert!(routes(&campus, "switch").is_empty());
    let web = &campus.nodes[3].interfaces[0];
    let neighbours: Vec<String> = web
        .neighbours
        .iter()
        .filter(|(address, _)| address.is_ipv4())
        .map(|(address, _)| address.to_string())
        .collect();
    assert_eq!(neighbours, ["192.168.2.1", "192.168.2.3"], "across the switch");
    let mac = |node: usize, interface: usize| campus.nodes[node].interfaces[interface].mac;
    let beyond: Vec<_> = campus.nodes[2].interfaces.iter().map(|port| port.beyond.clone()).collect();
    assert_eq!(beyond, [[mac(1, 1)], [mac(3, 0)], [mac(4, 0)]], "the switch knows who is where");
    let mut macs: Vec<_> =
        campus.nodes.iter().flat_map(|node| &node.interfaces).map(|interface| interface.mac).collect();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), 8, "every interface has its own");
    assert!(describe(&campus).contains("link web-server-switch: lan"), "{}", describe(&campus));
}

#[test]
fn a_host_between_two_networks_forwards_nothing() {
    let text = CAMPUS.replace("role = \"router\"", "role = \"host\"");
    let campus = parse(&text).unwrap();
    assert_eq!(routes(&campus, "client").len(), 2, "its own network only");
}

#[test]
fn the_shortest_route_is_used_and_the_first_of_equal_ones() {
    let text = "title = \"T\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"r\"\nrole = \"router\"\n[[node]]\nname = \"s\"\n\
                role = \"router\"\n[[node]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"r\"]\n[[link]]\nends = [\"r\", \"s\"]\n\
                [[link]]\nends = [\"s\", \"b\"]\n[[link]]\nends = [\"a\", \"s\"]\n";
    let found = parse(text).unwrap();
    let beyond: Vec<String> =
        routes(&found, "a").into_iter().filter(|route| route.contains("via 10.")).collect();
    assert_eq!(
        beyond,
        ["10.123.1.0/24 via 10.123.0.2 from 10.123.0.1", "10.123.2.0/24 via 10.123.3.2 from 10.123.3.1"]
    );
}

const SWITCHES: &str = "title = \"T\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"s\"\nrole = \"switch\"\n[[node]]\nname = \"t\"\n\
                        role = \"switch\"\n[[node]]\nname = \"b\"\n[[link]]\nends = [\"a\", \"s\"]\n[[link]]\nends = [\"s\", \"t\"]\n\
                        [[link]]\nends = [\"t\", \"b\"]\n";

#[test]
fn joined_switches_are_one_network_without_loops() {
    let found = parse(SWITCHES).unwrap();
    let mac = |node: usize| found.nodes[node].interfaces[0].mac;
    let beyond = |node: usize| found.nodes[node].interfaces.iter().map(|port| port.beyond.clone());
    assert_eq!(beyond(1).collect::<Vec<_>>(), [[mac(0)], [mac(3)]]);
    assert_eq!(beyond(2).collect::<Vec<_>>(), [[mac(0)], [mac(3)]]);
    assert_eq!(
        routes(&found, "a"),
        ["10.123.0.0/24 from 10.123.0.1", "fd12:3123:123::/64 from fd12:3123:123::1"]
    );
    let looped = format!("{SWITCHES}[[link]]\nends = [\"t\", \"s\"]\n");
    let error = parse(&looped).unwrap_err();
    assert!(error.contains("t.toml:19:14: this is a second route between two switches"), "{error}");
}

#[test]
fn networks_are_replaced_by_link() {
    let mut campus = parse(CAMPUS).unwrap();
    let other = Network { name: "other".to_owned(), ..Network::default() };
    campus.replace_network(Some("router-switch"), &other).unwrap();
    assert_eq!(campus.links[1].network.as_ref().unwrap().name, "other");
    let error = campus.replace_network(Some("router-swich"), &other).unwrap_err();
    assert!(error.contains("did you mean `router-switch`?"), "{error}");
    let error = campus.replace_network(None, &other).unwrap_err();
    assert!(error.contains("LINK=NETWORK"), "{error}");
}

#[test]
fn faults_name_the_place() {
    for (found, instead, expected) in [
        ("title = \"T\"", "titel = \"T\"", "t.toml:1:1: `titel` is not a key of the topology"),
        ("title = \"T\"", "", "the topology has no `title`"),
        ("role = \"router\"", "role = \"ruter\"", "t.toml:6:8: `role`: `ruter` is not a role"),
        ("name = \"router\"", "name = \"client\"", "t.toml:5:8: the node `client` appears twice"),
        (
            "name = \"router\"",
            "name = \"Router\"",
            "t.toml:5:8: `Router` is not a node's name; write small letters",
        ),
        ("name = \"video-server\"", "name = \"video-v6\"", "`video-v6` is not a node's name"),
        (
            "\"client 192",
            "\"clint 192",
            "t.toml:15:9: `clint` is not a node; did you mean `client`? The choices are client",
        ),
        ("192.168.1.2/30", "192.168.1.2", "t.toml:15:9: `192.168.1.2` is not an address with its prefix"),
        ("192.168.1.2/30", "192.168.1.2/31", "the prefix `/31` is out of bounds; write one from /1 to /30"),
        ("192.168.1.2/30", "192.168.1.3/30", "t.toml:15:9: 192.168.1.3/30 is not a host's address"),
        ("192.168.1.1/30", "192.168.1.2/30", "t.toml:15:34: the address 192.168.1.2 appears twice"),
        ("192.168.1.1/30", "192.168.1.5/30", "t.toml:15:34: 192.168.1.5/30 is not in the subnet"),
        (
            "router 192.168.1.1/30",
            "router",
            "t.toml:15:34: this end has no address in the subnet of 192.168.1.2/30",
        ),
        (
            "192.168.1.2/30",
            "192.168.1.2/30 10.0.0.1/8 10.0.0.2/8",
            "this end has several addresses of a family",
        ),
        (
            "\"switch\"]\n[[link]]",
            "\"switch 10.0.0.1/8\"]\n[[link]]",
            "t.toml:18:34: a switch has no address",
        ),
        (
            "network = \"lan\"",
            "network = \"lam\"",
            "t.toml:21:11: `lam` is not a network; did you mean `lan`?",
        ),
        (
            "network = \"tokyo\"",
            "network = \"roam\"",
            "t.toml:16:11: the link `client-router` needs 1 further address, one for each handover; its subnet 192.168.1.0/30 has 0",
        ),
        ("\"client 192.168.1.2/30\", ", "", "t.toml:15:8: `ends` has 1 entries; write two"),
        ("\"client 192.168.1.2/30\"", "\"router 192.168.1.2/30\"", "both ends are the same node"),
        (
            "[[link]]\nends = [\"video-server 192.168.2.3/29\", \"switch\"]\n",
            "",
            "the node `video-server` has no link",
        ),
        ("192.168.1.1/30", "192.168.1.1/16", "is not in the subnet of this link"),
    ] {
        assert!(CAMPUS.contains(found), "{found}");
        let error = parse(&CAMPUS.replacen(found, instead, 1)).unwrap_err();
        assert!(error.contains(expected), "{error}\nshould contain {expected}");
    }
    let both = CAMPUS.replace("192.168.1.2/30", "192.168.2.9/24").replace("192.168.1.1/30", "192.168.2.8/24");
    let error = parse(&both).unwrap_err();
    assert!(error.contains("overlaps that of 192.168.2.9/24"), "{error}");
    assert!(parse("title = \"T\"\n").unwrap_err().contains("has 0 tables `[[node]]`"));
}

#[test]
fn a_host_that_moves_stays_in_its_network_and_is_expected_there() {
    let mut campus = parse(&CAMPUS.replace("\"lan\"", "\"roam\"")).unwrap();
    let changes = campus.address_changes().unwrap();
    let web_server = campus.position("web-server").unwrap();
    let prefix = |text: &str| (text.parse::<IpAddr>().unwrap(), if text.contains(".2.2") { 29 } else { 32 });
    assert_eq!((changes[0].link, changes[0].end), (2, (web_server, 0)));
    assert_eq!(changes[0].families[0], [prefix("192.168.2.2"), prefix("192.168.2.4")]);
    campus.expect(&changes);
    let mac = campus.nodes[web_server].interfaces[0].mac;
    for (name, interface, knows) in [("router", 1, true), ("video-server", 0, true), ("router", 0, false)] {
        let node = &campus.nodes[campus.position(name).unwrap()];
        let has = node.interfaces[interface].neighbours.contains(&(prefix("192.168.2.4").0, mac));
        assert_eq!(has, knows, "{name} {interface}");
    }
    let network = |count: u64| {
        let change = |at_ns| crate::network::Change {
            at_ns,
            up: crate::network::Direction::default(),
            down: crate::network::Direction::default(),
            handover: true,
            rebinding: false,
        };
        Network { name: "x".to_owned(), timeline: (1..=count).map(change).collect(), ..Network::default() }
    };
    let changes = Topology::pair(&network(3)).address_changes().unwrap().remove(0);
    let addresses = |family: usize| -> Vec<String> {
        changes.families[family].iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect()
    };
    assert_eq!(addresses(0), ["10.123.0.1/24", "10.123.0.3/32", "10.123.0.4/32", "10.123.0.5/32"]);
    assert_eq!(addresses(1)[..2], ["fd12:3123:123::1/64", "fd12:3123:123::3/128"]);
    let error = |topology: Topology| topology.address_changes().unwrap_err().to_string();
    assert!(error(Topology::pair(&network(201))).contains("write at most 200"));
    let turned =
        CAMPUS.replace("\"client 192.168.1.2/30\", \"router 192.168.1.1/30\"", "\"router\", \"client\"");
    let mut turned = parse(&turned).unwrap();
    turned.replace_network(Some("router-client"), &network(1)).unwrap();
    assert!(error(turned).contains("first end `router` is not a host"));
    let mut full = Topology::pair(&network(200));
    full.replace_network(None, &network(0)).unwrap();
    assert_eq!(full.address_changes(), Ok(Vec::new()));
}

/// A topology's route as `link forward`.
fn route_of(topology: &Topology) -> Vec<String> {
    let words = |step: &Hop| {
        let arrow = if step.is_forward { "forward" } else { "back" };
        format!("{} {arrow}", topology.links[step.link].name)
    };
    topology.route().unwrap().iter().map(words).collect()
}

#[test]
fn the_route_follows_routes_and_switches() {
    let mut campus = parse(CAMPUS).unwrap();
    assert_eq!(
        (campus.client, campus.server),
        (0, 4),
        "the node `client` and, without `server`, the last host"
    );
    campus.choose(0, 3).unwrap();
    assert_eq!(
        route_of(&campus),
        ["client-router forward", "router-switch forward", "web-server-switch back"]
    );
    let all = campus.route_network("own");
    assert_eq!(
        (all.name.as_str(), all.rtt_ns(), all.up.delay_ns),
        ("own", 4_000_000, 2_000_000),
        "two of 2 ms"
    );
    campus.choose(4, 0).unwrap();
    assert_eq!(
        route_of(&campus),
        ["video-server-switch forward", "router-switch back", "client-router back"]
    );
    assert!(campus.choose(2, 0).is_err(), "a switch sends nothing");
    assert!(campus.choose(0, 0).unwrap_err().contains("is both client and server"));
    assert!(campus.host("router").unwrap_err().contains("is not a host of the topology `test`"));
    assert!(campus.host("web-sever").unwrap_err().contains("did you mean `web-server`?"));
    let mut split = parse(&CAMPUS.replace("role = \"router\"", "role = \"host\"")).unwrap();
    assert!(split.choose(0, 3).unwrap_err().contains("or a reverse proxy on that host"));
    assert_eq!(route_of(&parse(SWITCHES).unwrap()), ["a-s forward", "s-t forward", "t-b forward"]);
}

#[test]
fn a_route_of_one_network_is_that_network_from_the_clients_side() {
    let text = "title = \"T\"\n[[node]]\nname = \"server\"\n[[node]]\nname = \"client\"\n[[link]]\n\
                ends = [\"server\", \"client\"]\nnetwork = \"lan\"\n";
    let mut found = parse(text).unwrap();
    let network = found.links[0].network.as_mut().unwrap();
    network.up.delay_ns = 7;
    let seen = found.route_network("x");
    assert_eq!((seen.up.delay_ns, seen.down.delay_ns), (1_000_000, 7), "turned round");
    let text = CAMPUS.replace("network = \"tokyo\"\n", "").replace("network = \"lan\"\n", "");
    assert!(!parse(&text).unwrap().route_network("x").is_impaired(), "wires only");
}

#[test]
fn cross_traffic_has_a_route() {
    let cross = |lines: &str| parse(&format!("{CAMPUS}[[cross]]\n{lines}\n"));
    let found = cross("from = \"client\"\nto = \"web-server\"\nvariant = \"h3\"\nflows = 2").unwrap();
    assert_eq!(found.cross, [CrossTraffic { from: 0, to: 3, variant: Variant::H3, flows: 2 }]);
    assert!(
        describe(&found).ends_with("cross-traffic: 2 × h3 from web-server to client"),
        "{}",
        describe(&found)
    );
    for (lines, expected) in [
        ("to = \"client\"\nvariant = \"h1\"", "t.toml:24:1: [[cross]] has no `from`"),
        ("from = \"client\"\nto = \"router\"\nvariant = \"h1\"", "t.toml:26:6: `router` is not a host"),
        ("from = \"client\"\nto = \"client\"\nvariant = \"h1\"", "`from` and `to` are the same node"),
        ("from = \"client\"\nto = \"web-server\"\nvariant = \"h4\"", "t.toml:27:11: `variant`: "),
        ("from = \"client\"\nto = \"web-server\"", "[[cross]] has no `variant`"),
        ("from = \"client\"\nto = \"web-server\"\nvariant = \"h1\"\nflows = 0", "`flows` is 0"),
    ] {
        let error = cross(lines).unwrap_err();
        assert!(error.contains(expected), "{error}\nshould contain {expected}");
    }
}

#[test]
fn a_name_server_is_linked_to_the_nodes_that_ask() {
    let mut campus = parse(CAMPUS).unwrap();
    let before = campus.clone();
    let far = Network { name: "dns".to_owned(), ..Network::default() };
    campus.add_host("names", &[0, 4], Some(&far)).unwrap();
    let names = &campus.nodes[5];
    let addresses: Vec<String> = names
        .interfaces
        .iter()
        .map(|port| format!("{} {}", port.v4.unwrap().0, port.v6.unwrap().0))
        .collect();
    // The automatic IPv6 networks 0 and 1 are taken, and a network is free in both families or not at all.
    assert_eq!(addresses, ["10.123.2.53 fd12:3123:123:2::35", "10.123.3.53 fd12:3123:123:3::35"]);
    assert_eq!(campus.nodes[0].address_v4(), before.nodes[0].address_v4(), "others reach it as before");
    assert_eq!(campus.route(), before.route());
    assert_eq!(routes(&campus, "client")[1], "10.123.2.0/24 from 10.123.2.1");
    assert_eq!(&routes(&campus, "client")[2..], routes(&before, "client"));
    assert_eq!(routes(&campus, "router"), routes(&before, "router"), "it knows nothing of it");
    let port = &campus.nodes[4].interfaces[1];
    assert_eq!(
        (port.name.as_str(), port.neighbours[0]),
        ("eth1", ("10.123.3.53".parse().unwrap(), names.interfaces[1].mac))
    );
    let links: Vec<&str> = campus.links.iter().skip(4).map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["client-names", "video-server-names"]);
    assert!(campus.add_host("names", &[0], None).unwrap_err().contains("already has a node `names`"));
    assert!(campus.add_host("other", &[2], None).unwrap_err().contains("the switch `switch` cannot be"));
}

/// Many clients, each with its own link to a router.
const MANY: &str = "title = \"T\"\n[[node]]\nname = \"client\"\ncount = 998\n[[node]]\nname = \"router\"\n\
                    role = \"router\"\n[[node]]\nname = \"server\"\n[[link]]\nends = [\"client\", \"router\"]\n\
                    network = \"tokyo\"\n[[link]]\nends = [\"router\", \"server\"]\n";

#[test]
fn a_thousand_nodes_are_a_few_lines() {
    let found = parse(MANY).unwrap();
    assert_eq!((found.nodes.len(), found.links.len()), (1000, 999));
    let names: Vec<&str> = [0, 997, 998].iter().map(|node| found.nodes[*node].name.as_str()).collect();
    assert_eq!(names, ["client-1", "client-998", "router"]);
    assert_eq!((found.client, found.server), (0, 999));
    assert_eq!(route_of(&found), ["client-1-router forward", "router-server forward"]);
    assert_eq!(found.nodes[256].address_v4(), Some(Ipv4Addr::new(10, 124, 0, 1)));
    assert_eq!(found.nodes[999].address_v4(), Some(Ipv4Addr::new(10, 126, 230, 2)));
    let mut addresses: Vec<IpAddr> = found
        .nodes
        .iter()
        .flat_map(|node| &node.interfaces)
        .flat_map(Interface::addresses)
        .map(|a| a.0)
        .collect();
    let count = addresses.len();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!((count, addresses.len()), (4 * 999, 4 * 999), "every address is unique");
    // Few routes lead to a thousand subnets, and to each of them exactly one.
    for node in [0, 500, 997, 999] {
        let routes = &found.nodes[node].routes;
        assert!(routes.len() < 40, "{} routes", routes.len());
        for target in addresses.iter().filter(|address| address.is_ipv4()) {
            let leads = |route: &&Route| subnet::overlap((*target, 32), (route.network, route.prefix));
            assert_eq!(routes.iter().filter(leads).count(), 1, "from {node} to {target}");
        }
        let beyond = IpAddr::from([10, 126, 231, 1]);
        assert!(!routes.iter().any(|route| subnet::overlap((beyond, 32), (route.network, route.prefix))));
    }
    let mut named = found;
    let clients: Vec<usize> = (0..998).collect();
    named.add_host("names", &clients, None).unwrap();
    assert_eq!(named.nodes[1000].interfaces[997].v4, Some((Ipv4Addr::new(10, 130, 204, 53), 24)));
}

#[test]
fn repeated_nodes_have_their_faults_too() {
    let few = MANY.replace("998", "300");
    let more = few.replace(
        "[[link]]\nends = [\"client\"",
        "[[node]]\nname = \"client-7\"\n[[link]]\nends = [\"client\"",
    );
    for (text, expected) in [
        (MANY.replace("998", "999"), "t.toml:1:1: the topology has 1001 nodes; write at most 1000 of them"),
        (MANY.replace("998", "1001"), "t.toml:4:9: `count` is 1001"),
        (MANY.replace("998", "0"), "t.toml:4:9: `count` is 0"),
        (more, "t.toml:11:8: the node `client-7` appears twice; rename one"),
        (
            few.replace("\"router\"\nrole", "\"client\"\nrole"),
            "t.toml:6:8: the node `client` appears twice; rename one",
        ),
        (
            few.replace("\"router\", \"server\"", "\"client\", \"client\""),
            "both ends are nodes with a `count`; write one node at one end",
        ),
        (
            few.replace("\"client\", \"router\"", "\"client\", \"router 10.0.0.1/24\""),
            "t.toml:11:19: these are 300 links; write no addresses",
        ),
        (
            few.replace("role = \"router\"", "role = \"switch\""),
            "the subnet of this link has 301 nodes, and automatic addresses suffice for 254",
        ),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{error}\nshould contain {expected}");
    }
}
