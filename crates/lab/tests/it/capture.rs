//! What was on the link, as tshark reads it.

use std::process::Command;

use lab::{Lab, PairSpec};
use model::network::Direction;
use model::{Backend, Network, Pins};

use crate::help::{MS, wait_until};
use crate::network::socket;

pub(crate) fn tshark_reads_every_frame_and_why_it_was_lost() {
    let up = Direction { lost_packets: vec![(3, 3)], delay_ns: 10 * MS, ..Direction::default() };
    let network = Network { name: "live".to_owned(), up, ..Network::default() };
    let pins = Pins::default();
    let lab = Lab::pair(PairSpec {
        network: &network,
        pins: &pins,
        seed: 1,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap();
    let folder = std::env::temp_dir().join(format!("h123-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("link.pcapng");
    lab.calibrate(2).unwrap();
    lab.begin_capture(&file).unwrap();
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    for number in 1..=4_u8 {
        client.send_to(&[number; 5], server.local_addr().unwrap()).unwrap();
    }
    wait_until("three through", || lab.reports().unwrap()[0].up.packets_out == 3);
    lab.end_capture().unwrap();
    // Nobody listens any more: this is in no file.
    client.send_to(&[5; 5], server.local_addr().unwrap()).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", file.to_str().unwrap(), "-T", "fields", "-E", "separator=|"]);
    tshark.args(["-e", "frame.interface_name", "-e", "data.data", "-e", "frame.comment", "-e", "ip.src"]);
    let output = tshark.env("HOME", &folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let expected = [
        "client|0101010101||10.123.0.1",
        "client|0202020202||10.123.0.1",
        "client|0303030303|h123: packet 3 of its direction was lost: the network's configured loss|10.123.0.1",
        "client|0404040404||10.123.0.1",
        "server|0101010101||10.123.0.1",
        "server|0202020202||10.123.0.1",
        "server|0404040404||10.123.0.1",
    ];
    assert_eq!(lines, expected);
    std::fs::remove_dir_all(&folder).unwrap();
}
