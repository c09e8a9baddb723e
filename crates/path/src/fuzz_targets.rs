//! Functions for a fuzzer: they parse any bytes as descriptions, traces or frames. None may panic, hang or
//! miscount, and errors name the file. `tests` calls each with mutations of a small corpus, from a fixed
//! seed.

use model::error::DataFile;
use model::error::Source;
use model::network::{Direction, LinkRate, OutagePackets, trace};
use model::request_path::{check_file_path, check_request_path};
use model::{Network, Plan, Topology};

use crate::nat::Nat;
use crate::{Fate, Frame, LinkDirection, Packet, Path, Seeds};

const PACKETS: u64 = 64;

/// A network file; packets go through a valid network.
pub fn network(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let traces = |file: &str| match file {
        "a.trace" => Ok(DataFile { file: file.to_owned(), text: "1\n2\n2\n".to_owned() }),
        "a.csv" => {
            Ok(DataFile { file: file.to_owned(), text: "0s,1Mbit/s\n1s,0bit/s\n2s,9Mbit/s\n".to_owned() })
        }
        _ => Err(format!("{file} does not exist")),
    };
    match Network::parse_with("n", Source { file: "n.toml", text }, &traces) {
        Ok(network) => [LinkDirection::Up, LinkDirection::Down]
            .into_iter()
            .for_each(|direction| run(&network, direction)),
        Err(error) => {
            assert!(error.to_string().contains("n.toml") || error.to_string().contains("a."), "{error}")
        }
    }
}

/// A topology file; every interface and neighbour that a valid topology refers to exists.
pub fn topology(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let network = |name: &str| Ok(Network { name: name.to_owned(), ..Network::default() });
    let found = Topology::parse("t", Source { file: "t.toml", text }, &["n".to_owned()], &network);
    let topology = match found {
        Ok(topology) => topology,
        Err(error) => return assert!(error.to_string().contains("t.toml"), "{error}"),
    };
    let interfaces = || topology.nodes.iter().flat_map(|node| &node.interfaces);
    for link in &topology.links {
        assert!(link.ends.iter().all(|(node, port)| topology.nodes[*node].interfaces.get(*port).is_some()));
    }
    for node in &topology.nodes {
        assert!(node.routes.iter().all(|route| route.interface < node.interfaces.len()));
    }
    for interface in interfaces() {
        for mac in interface.neighbours.iter().map(|(_, mac)| mac).chain(&interface.beyond) {
            assert!(interfaces().any(|other| other.mac == *mac), "no interface has {mac:?}");
        }
    }
}

/// A Mahimahi trace and a table of times and rates.
pub fn trace(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source { file: "t", text };
    let mut rates = Vec::new();
    rates.extend(trace::parse_mahimahi(source).map(LinkRate::Opportunities));
    for repeat_ns in [None, Some(1_000_000_000)] {
        rates.extend(trace::parse_csv(source, repeat_ns).map(LinkRate::Steps));
    }
    for rate in rates {
        let down = Direction { rate, ..Direction::default() };
        run(&Network { down, ..Network::default() }, LinkDirection::Down);
    }
}

/// `plan.json` of a result; everything that a valid plan refers to exists.
pub fn plan(data: &[u8]) {
    let Ok(plan) = Plan::from_json(data) else { return };
    model::plan_text::plan_text(&plan);
    for run in &plan.runs {
        let cell = &plan.cells[run.cell as usize];
        let _ = (plan.topology_of(cell), plan.pins_of(cell), plan.network_of(cell));
        drop(plan.workload_of(&cell.group).workload.paths());
    }
}

/// The path of a request; a valid one is one word of the request line.
pub fn request_path(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else { return };
    let is_file = check_file_path(path).is_ok();
    match check_request_path(path) {
        Ok(()) => assert_eq!(format!("GET {path} HTTP/1.1").split_whitespace().count(), 3, "{path:?}"),
        Err(problem) => assert!(!is_file && !problem.contains(['\r', '\n', '\0']), "{problem:?}"),
    }
}

/// A frame that a router marks and assigns to a flow.
pub fn frame(data: &[u8]) {
    let mut frame = Frame(data.to_vec());
    let flow = frame.flow(1);
    if let Some(segment) = crate::tcp::segment(data) {
        assert!(
            usize::from(segment.payload_bytes) + 54 <= data.len(),
            "the payload is longer than the frame"
        );
    }
    let is_marked = frame.mark_congestion();
    assert_eq!(frame.0.len(), data.len(), "a mark changes the length");
    assert!(is_marked || frame.0 == data, "an unmarked frame changed");
    assert_eq!(frame.flow(1), flow, "a mark changes the flow");
    assert_eq!(frame.mark_congestion(), is_marked, "the second mark fails");
    let mut nat = Nat::new(&Network::default(), 0);
    nat.rebind();
    let mut sent = data.to_vec();
    nat.send(0, &mut sent);
    nat.receive(0, &mut sent);
    assert_eq!(sent.len(), data.len(), "a NAT changes the length");
}

fn run(network: &Network, direction: LinkDirection) {
    let mut path = Path::of_network(network, direction, Seeds::run(1, direction), 5);
    let mut queued = 0;
    for packet in 0..PACKETS {
        let arrival_ns = packet * 700_000;
        queued += u64::from(path.handle_packet(arrival_ns, 60 + packet * 20, packet) == Fate::Queued);
        while path.poll_release(arrival_ns).is_some() {}
    }
    // An upper bound of the number of events; a link that never sends needs no poll.
    for _ in 0..100 * PACKETS {
        let Some(next_ns) = path.next_release_ns() else { break };
        while path.poll_release(next_ns).is_some() {}
    }
    let counters = path.counters();
    let held_packets = path.held_packets() as u64;
    assert!(queued <= PACKETS, "a packet has two fates");
    assert_eq!(
        counters.packets_in + counters.duplicated,
        counters.packets_out + counters.lost() + held_packets,
        "a packet is counted twice or not at all"
    );
    let may_stop = network
        .timeline
        .iter()
        .flat_map(|change| [&change.up, &change.down])
        .any(|direction| direction.outages.is_some_and(|outages| outages.packets == OutagePackets::Wait));
    assert!(held_packets == 0 || may_stop, "{held_packets} packets are never released");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Impairment, Stream};

    const NETWORKS: &[&str] = &[
        "title='x'\nsource='y'\nrtt='40ms'\njitter={spread='2ms',distribution='pareto'}\nrate='5Mbit/s'\nqueue='100ms'\n",
        "title='x'\nsource='y'\ndelay='9ms'\nloss={share='2%',burst='4 packets'}\nudp='2Mbit/s'\nlose=['3','9-12']\nreorder={share='25%',gap=5}\n\
         [[timeline]]\nat='12ms'\nfor='3ms'\noutage='wait'\n[[timeline]]\nat='20ms'\nhandover=true\nrebinding=true\n",
        "title='x'\nsource='y'\nrate={mean='2Mbit/s',steps={every='15ms',spread='30%'},drift={over='9ms',spread='40%'}}\n\
         queue={limit='20 packets',discipline='fq-codel',ecn=true}\nduplicate='10%'\n",
        "title='x'\nsource='y'\nrate={mahimahi='a.trace'}\noutages={every='20ms',lasts='5ms',at_random=true}\n\
         [up]\nrate={csv='a.csv',repeat='3s'}\nloss={p='1%',r='9%',h='50%',k='90%'}\n",
    ];
    const TOPOLOGIES: &[&str] = &[
        "title='x'\n[[node]]\nname='a'\n[[node]]\nname='b'\n[[link]]\nends=['a','b']\nnetwork='n'\n",
        "title='x'\n[[node]]\nname='a'\n[[node]]\nname='r'\nrole='router'\n[[node]]\nname='s'\nrole='switch'\n[[node]]\n\
         name='b'\n[[link]]\nends=['a 10.0.0.1/30 fd00::1/64','r 10.0.0.2/30 fd00::2/64']\n[[link]]\nends=['s','r']\n\
         [[link]]\nends=['b','s']\nnetwork='n'\n",
    ];
    const TRACES: &[&str] =
        &["0\n1\n1\n5 # x\n", "0s,10Mbit/s\n1.5s,250kbit/s\n", "time_ms,rate_kbit_s\n0,10\n3,0\n9,2\n"];
    const MUTATIONS: u64 = 3000;

    struct Random(Stream, u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.1 += 1;
            usize::try_from(self.0.number(self.1) >> 33).unwrap() % limit.max(1)
        }

        /// A text of the corpus with some bytes changed, cut, repeated, or copied from another one.
        fn mutated(&mut self, corpus: &[&[u8]]) -> Vec<u8> {
            let mut bytes = corpus[self.below(corpus.len())].to_vec();
            for _ in 0..self.below(5) {
                let at = self.below(bytes.len());
                let other = corpus[self.below(corpus.len())];
                match self.below(5) {
                    0 if !bytes.is_empty() => bytes[at] = b"0123456789.-'={}[]\n%"[self.below(20)],
                    1 => bytes.truncate(at),
                    2 => {
                        let end = (at + self.below(12)).min(bytes.len());
                        bytes.drain(at..end);
                    }
                    3 => bytes.extend_from_slice(&other[self.below(other.len())..]),
                    _ => bytes.insert(at, b"0123456789smMk,#"[self.below(16)]),
                }
            }
            bytes
        }
    }

    fn random(seed: u64) -> Random {
        Random(Seeds::run(seed, LinkDirection::Up).stream(Impairment::Loss), 0)
    }

    fn bytes<'a>(corpus: &[&'a str]) -> Vec<&'a [u8]> {
        corpus.iter().map(|text| text.as_bytes()).collect()
    }

    #[test]
    fn the_corpus_itself_is_read() {
        for text in &NETWORKS[..3] {
            Network::parse("n", Source { file: "n.toml", text }).unwrap();
        }
        for text in TOPOLOGIES {
            let network = |_: &str| Ok(Network::default());
            Topology::parse("t", Source { file: "t.toml", text }, &["n".to_owned()], &network).unwrap();
        }
        assert!(trace::parse_mahimahi(Source { file: "t", text: TRACES[0] }).is_ok());
        assert!(trace::parse_csv(Source { file: "t", text: TRACES[1] }, None).is_ok());
    }

    #[test]
    fn networks_topologies_and_traces_of_any_bytes() {
        let mut random = random(1);
        let (networks, topologies, traces) = (bytes(NETWORKS), bytes(TOPOLOGIES), bytes(TRACES));
        for _ in 0..MUTATIONS {
            network(&random.mutated(&networks));
            topology(&random.mutated(&topologies));
            trace(&random.mutated(&traces));
        }
    }

    #[test]
    fn plans_and_paths_of_any_bytes() {
        let (mut random, paths) = (random(3), bytes(&["/", "/a/b.css?x=1&y=%20#z", "/\r\n\0 é"]));
        for _ in 0..MUTATIONS {
            let mutated = random.mutated(&paths);
            request_path(&mutated);
            plan(&mutated);
        }
        plan(br#"{"version": 7, "study": "x", "cells": []}"#);
    }

    #[test]
    fn frames_of_any_bytes() {
        let mut random = random(2);
        for _ in 0..MUTATIONS {
            let mut bytes: Vec<u8> =
                (0..random.below(100)).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            if let Some(kind) = bytes.get_mut(12..15) {
                let header_words = u8::try_from(random.below(16)).unwrap();
                kind.copy_from_slice(&match random.below(4) {
                    0 => [0x86, 0xdd, 0x6e],
                    1 => [8, 0, 0x40 | header_words],
                    _ => [8, 0, 0x45],
                });
            }
            if let Some(protocol) = bytes.get_mut(23) {
                *protocol = 6;
            }
            frame(&bytes);
        }
    }
}
