//! Figures for people; nothing is asserted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use lab::{Lab, PairSpec};
use model::{Backend, Pins};

use crate::help::network;

pub(crate) fn measure() {
    let pins = Pins::default();
    let lan = network(300_000, Some(1_000_000_000), 0.0);
    let far = network(150_000_000, Some(50_000_000), 0.0);
    for network in [&lan, &far] {
        for _ in 0..10 {
            let began = Instant::now();
            let lab = Lab::pair(PairSpec {
                network,
                pins: &pins,
                seed: 1,
                emulator_cpu: None,
                backend: Backend::UserSpace,
            })
            .unwrap();
            let up = began.elapsed();
            let began = Instant::now();
            let calibration = lab.calibrate(8).unwrap().unwrap();
            let calibrated = began.elapsed();
            let report = lab.reports().unwrap();
            let began = Instant::now();
            drop(lab);
            let mut rtt = calibration.rtt_ns.clone();
            rtt.sort();
            println!(
                "up {up:?} calibrate {calibrated:?} down {:?} expected {} rtt {:?} realtime {}",
                began.elapsed(),
                calibration.expected_rtt_ns,
                rtt,
                report[0].realtime
            );
        }
    }
    let lab = Lab::pair(PairSpec {
        network: &lan,
        pins: &pins,
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    steady(&lab);
    flow(&lab, 200_000_000);
    let lab = Lab::pair(PairSpec {
        network: &network(20_000_000, Some(50_000_000), 0.0),
        pins: &pins,
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    steady(&lab);
    flow(&lab, 20_000_000);
}

fn steady(lab: &Lab) {
    let (client, server) = (lab.client(), lab.server());
    let to = server.enter(|| UdpSocket::bind((server.addresses().v4, 0)).unwrap()).unwrap();
    let from = client.enter(|| UdpSocket::bind((client.addresses().v4, 0)).unwrap()).unwrap();
    lab.begin_measuring().unwrap();
    let began = Instant::now();
    for packet in 0..2000_u32 {
        from.send_to(&[0; 200], to.local_addr().unwrap()).unwrap();
        std::thread::sleep((Duration::from_millis(1) * (packet + 1)).saturating_sub(began.elapsed()));
    }
    std::thread::sleep(Duration::from_millis(100));
    let report = lab.reports().unwrap().remove(0);
    println!(
        "1000 packets/s: {:?} cpu per packet {} ns",
        report.up,
        report.cpu_ns.unwrap() / report.up.packets_in
    );
}

fn flow(lab: &Lab, bytes: usize) {
    let (client, server) = (lab.client(), lab.server());
    let listener = server.enter(|| TcpListener::bind((server.addresses().v4, 80)).unwrap()).unwrap();
    let mut stream = client.enter(|| TcpStream::connect((server.addresses().v4, 80)).unwrap()).unwrap();
    let (mut from, _) = listener.accept().unwrap();
    lab.begin_measuring().unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || from.write_all(&vec![0; bytes]).unwrap());
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).unwrap() > 0 {}
    });
    let took = began.elapsed();
    let report = lab.reports().unwrap().remove(0);
    println!(
        "flow: {:.1} Mbit/s goodput; up {:?}\n down {:?}\n cpu {:?} of {took:?}, {} ns per packet",
        bytes as f64 * 8.0 / took.as_secs_f64() / 1e6,
        report.up,
        report.down,
        Duration::from_nanos(report.cpu_ns.unwrap()),
        report.cpu_ns.unwrap() / (report.up.packets_in + report.down.packets_in)
    );
}
