//! The client's address changes while the lab stands.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use lab::{Lab, LabSpec, PairSpec};
use model::error::Source;
use model::network::{Change, Direction};
use model::{Backend, Network, Pins, Topology};

use crate::help::{MS, wait_until};
use crate::network::{connect, socket_at};

/// The client's own address on the way to the server, as the kernel chooses it now.
fn chosen(lab: &Lab, server: IpAddr) -> IpAddr {
    let socket = lab.client().enter(|| {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect((server, 9)).map(|()| socket.local_addr().unwrap().ip())
    });
    socket.unwrap().unwrap()
}

fn lab(handovers_ms: &[u64]) -> Lab {
    let change = |at_ms: &u64| Change {
        at_ns: at_ms * MS,
        up: Direction::default(),
        down: Direction::default(),
        handover: true,
        rebinding: false,
    };
    let timeline = handovers_ms.iter().map(change).collect();
    let network = Network { name: "live".to_owned(), timeline, ..Network::default() };
    let pins = Pins::default();
    Lab::pair(PairSpec {
        network: &network,
        pins: &pins,
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap()
}

/// A busy machine takes its time to look, so the first handover leaves seconds for it.
pub(crate) fn every_run_has_its_handovers_and_begins_at_the_first_address() {
    let lab = lab(&[2000, 2500]);
    let server = lab.server().addresses();
    let servers: Vec<IpAddr> = std::iter::once(server.v4.into()).chain(server.v6.map(IpAddr::from)).collect();
    let first: Vec<IpAddr> = servers.iter().map(|server| chosen(&lab, *server)).collect();
    assert_eq!(first[0], IpAddr::from(lab.client().addresses().v4));
    lab.calibrate(3).unwrap();
    for _ in 0..2 {
        lab.begin_measuring().unwrap();
        let mut seen = Vec::new();
        wait_until("two handovers", || {
            lab.reports().unwrap();
            let now = chosen(&lab, servers[0]);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
            seen.last() == Some(&IpAddr::from([10, 123, 0, 4]))
        });
        assert_eq!(seen.first(), Some(&first[0]), "{seen:?}");
    }
    // Each family moved, and the server answers to the new address.
    let begun = first.iter().zip(&servers).map(|(first, server)| (*first, *server));
    for (first, server) in begun {
        wait_until("this family too", || chosen(&lab, server) != first);
        let to = socket_at(lab.server(), SocketAddr::new(server, 7));
        let from = socket_at(lab.client(), SocketAddr::new(chosen(&lab, server), 0));
        from.send_to(b"there", to.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 5];
        let (_, back) = to.recv_from(&mut buffer).unwrap();
        to.send_to(&buffer, back).unwrap();
        assert_eq!(from.recv(&mut buffer).unwrap(), 5, "{server}");
    }
    lab.begin_measuring().unwrap();
    assert_eq!(chosen(&lab, servers[0]), first[0], "a further run begins where the first began");
}

pub(crate) fn a_timeline_waits_for_a_client_that_starts() {
    let lab = lab(&[500]);
    let server = IpAddr::from(lab.server().addresses().v4);
    let first = chosen(&lab, server);
    for _ in 0..2 {
        lab.begin_measuring_without_timelines().unwrap();
        std::thread::sleep(Duration::from_millis(800));
        assert_eq!(chosen(&lab, server), first, "the handover waits");
        lab.begin_timelines().unwrap();
        wait_until("the handover", || chosen(&lab, server) != first);
    }
}

pub(crate) fn a_handover_breaks_tcp() {
    let lab = lab(&[2000]);
    lab.begin_measuring().unwrap();
    let (mut client, mut server) = connect(&lab);
    server.write_all(b"before").unwrap();
    let mut buffer = [0; 6];
    client.read_exact(&mut buffer).unwrap();
    let old = client.local_addr().unwrap().ip();
    wait_until("the handover", || chosen(&lab, lab.server().addresses().v4.into()) != old);
    server.write_all(b"after?").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    let error = client.read(&mut buffer).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    drop(server);
    let (mut client, mut server) = connect(&lab);
    assert_ne!(client.local_addr().unwrap().ip(), old);
    server.write_all(b"again!").unwrap();
    client.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"again!");
}

pub(crate) fn a_host_behind_a_switch_moves_too() {
    let text = "title = \"T\"\n[[node]]\nname = \"client\"\n[[node]]\nname = \"switch\"\nrole = \"switch\"\n[[node]]\n\
                name = \"router\"\nrole = \"router\"\n[[node]]\nname = \"server\"\n\
                [[link]]\nends = [\"client 10.9.0.2/29\", \"switch\"]\nnetwork = \"roam\"\n\
                [[link]]\nends = [\"router 10.9.0.1/29\", \"switch\"]\n\
                [[link]]\nends = [\"router 10.9.1.1/24\", \"server 10.9.1.2/24\"]\n";
    let change = Change {
        at_ns: 1,
        up: Direction::default(),
        down: Direction::default(),
        handover: true,
        rebinding: false,
    };
    let network = Network { name: "roam".to_owned(), timeline: vec![change], ..Network::default() };
    let source = Source { file: "t.toml", text };
    let topology = Topology::parse("t", source, &["roam".to_owned()], &|_| Ok(network.clone())).unwrap();
    let pins = Pins::default();
    let lab = Lab::build(LabSpec {
        topology: &topology,
        settings: (&pins).into(),
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    let server = IpAddr::from([10, 9, 1, 2]);
    assert_eq!(chosen(&lab, server), IpAddr::from([10, 9, 0, 2]));
    lab.begin_measuring().unwrap();
    wait_until("the handover", || chosen(&lab, server) == IpAddr::from([10, 9, 0, 3]));
    // Through switch and router, and back to the new address.
    let to = socket_at(lab.server(), SocketAddr::new(server, 7));
    let from = socket_at(lab.client(), SocketAddr::new(chosen(&lab, server), 0));
    from.send_to(b"there", to.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 5];
    let (_, back) = to.recv_from(&mut buffer).unwrap();
    assert_eq!(back.ip(), IpAddr::from([10, 9, 0, 3]));
    to.send_to(&buffer, back).unwrap();
    assert_eq!(from.recv(&mut buffer).unwrap(), 5);
}
