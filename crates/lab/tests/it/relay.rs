//! Relays to servers outside the lab, which listen on this machine's loopback.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use lab::Relay;

use crate::help::{MS, network, pair};

const LIMIT: Duration = Duration::from_secs(20);
const RTT_NS: u64 = 30 * MS;
const RATE: u64 = 10_000_000;

pub(crate) fn tcp_reaches_a_server_outside_over_the_emulated_link() {
    const DOWN_BYTES: usize = 500_000;
    let lab = pair(&network(RTT_NS, Some(RATE), 0.0));
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = server.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut request = Vec::new();
        // Ends with the client's direction alone.
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(&vec![7; DOWN_BYTES]).unwrap();
        request.len()
    });
    let relay = Relay::open(lab.server(), &[], 443, to).unwrap();
    assert_eq!(relay.address().to_string(), format!("{}:443", lab.server().addresses().v4));
    let address = relay.address();
    let (response, took) = lab
        .client()
        .enter(|| {
            let began = Instant::now();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.write_all(&[1; 100_000]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut response = Vec::new();
            stream.read_to_end(&mut response).unwrap();
            (response, began.elapsed())
        })
        .unwrap();
    assert_eq!(serving.join().unwrap(), 100_000);
    assert_eq!((response.len(), response.iter().all(|byte| *byte == 7)), (DOWN_BYTES, true));
    // TCP's handshake, the request and the response; and 600 kB at 10 Mbit/s.
    let least = Duration::from_nanos(RTT_NS * 3 / 2) + Duration::from_millis(480);
    assert!(took >= least, "{took:?}: the packets did not cross the emulated link");
}

pub(crate) fn datagrams_keep_their_limits_and_their_clients() {
    let lab = pair(&network(RTT_NS, None, 0.0));
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = server.local_addr().unwrap();
    let serving = thread::spawn(move || {
        for _ in 0..4 {
            let mut datagram = [0; 2048];
            let (length, from) = server.recv_from(&mut datagram).unwrap();
            server.send_to(&datagram[..length], from).unwrap();
        }
    });
    let relay = Relay::open(lab.server(), &[], 443, to).unwrap();
    let address = relay.address();
    lab.client()
        .enter(|| {
            let sockets = [(); 2].map(|()| {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
                socket.set_read_timeout(Some(LIMIT)).unwrap();
                socket
            });
            for (number, socket) in (0_u8..).zip(&sockets) {
                for length in [1200, 3] {
                    let began = Instant::now();
                    socket.send_to(&vec![number; length], address).unwrap();
                    let mut answer = [0; 2048];
                    let (found, from) = socket.recv_from(&mut answer).unwrap();
                    assert_eq!((found, from, answer[0]), (length, address, number));
                    assert!(began.elapsed() >= Duration::from_nanos(RTT_NS));
                }
            }
        })
        .unwrap();
    serving.join().unwrap();
}

/// What the server outside does to a connection, the client sees.
pub(crate) fn a_refused_connection_and_a_reset_are_passed_on() {
    let lab = pair(&network(MS, None, 0.0));
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let refused = Relay::open(lab.server(), &[], 443, closed).unwrap();
    let second = Relay::open(lab.server(), &[], 443, closed).unwrap();
    assert_ne!(refused.address(), second.address(), "a port that is taken is replaced");
    let address = refused.address();
    let kind = lab.client().enter(|| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.read(&mut [0; 16]).unwrap_err().kind()
    });
    assert_eq!(kind.unwrap(), ErrorKind::ConnectionReset);
    drop(refused);
    let gone = lab.client().enter(|| TcpStream::connect(address).unwrap_err().kind()).unwrap();
    assert_eq!(gone, ErrorKind::ConnectionRefused, "the port ends with its relay");
}
