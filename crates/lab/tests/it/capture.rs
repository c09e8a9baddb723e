//! What was on the link, as tshark reads it.

use std::process::Command;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::{Lab, PairSpec};
use model::network::Direction;
use model::{Backend, Network, Pins};

use crate::help::{MS, wait_until};
use crate::network::socket;

fn lab_with(up: Direction) -> Lab {
    let network = Network { name: "live".to_owned(), up, ..Network::default() };
    let pins = Pins::default();
    let spec =
        PairSpec { network: &network, pins: &pins, seed: 1, emulator_cpu: None, backend: Backend::UserSpace };
    Lab::pair(spec).unwrap()
}

fn folder(what: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("h123-{what}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The fields of every packet of a capture, one line each.
fn fields(capture: &Path, fields: &[&str]) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-T", "fields", "-E", "separator=|"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.env("HOME", capture.parent().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Packets are in the file within a second while the lab runs; a busy machine has two more.
pub(crate) fn a_capture_can_be_followed() {
    let lab = lab_with(Direction::default());
    let folder = folder("followed");
    let file = folder.join("link.pcapng");
    lab.begin_capture(&file).unwrap();
    let (client, server) = (socket(lab.client()), socket(lab.server()));
    for round in 1..=3_u8 {
        let before_bytes = std::fs::metadata(&file).unwrap().len();
        client.send_to(&[round; 5], server.local_addr().unwrap()).unwrap();
        let sent = Instant::now();
        wait_until("the packet in the file", || std::fs::metadata(&file).unwrap().len() > before_bytes);
        assert!(sent.elapsed() < Duration::from_secs(3), "{:?}", sent.elapsed());
    }
    // Both ends of the last packet are in the file.
    wait_until("all packets", || fields(&file, &["data.data"]).len() == 6);
    lab.end_capture().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

pub(crate) fn tshark_reads_every_frame_and_why_it_was_lost() {
    let up = Direction { lost_packets: vec![(3, 3)], delay_ns: 10 * MS, ..Direction::default() };
    let lab = lab_with(up);
    let folder = folder("capture");
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
    let mut lines = fields(&file, &["frame.interface_name", "data.data", "frame.comment", "ip.src"]);
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
