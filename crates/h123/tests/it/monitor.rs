//! The monitor of a study: from the file to the rows, metrics and checks.

use model::monitor::{Quantity, SubjectKind};
use model::{Reading, RunRecord};
use store::ResultFolder;

use crate::tool::{cell, check, folder, h123, machine, median, summary};

const CONNECTIONS: u64 = 20;

const STUDY: &str = "question = 'What does it cost?'\nmetric = 'requests_per_second'\nbaseline = { variant = 'h1' }\n\
    margin = '3%'\nruns = 1\nmonitor = '10Hz'\n[matrix]\nvariant = ['h1', 'h3']\nserver = ['origin']\nnetwork = ['lan']\n\
    workload = ['loop']\n[workload.loop]\nkind = 'closed'\npaths = ['/bytes/1000']\nconnections = 20\nstreams = 1\n\
    duration = '1s'\n";

/// The largest value of a quantity, among the readings of a node.
fn most(record: &RunRecord, node: Option<&str>, name: &str, quantity: Quantity) -> Option<u64> {
    let is_wanted = |reading: &&Reading| {
        let subject = &reading.subject;
        subject.node.as_deref() == node && &*subject.name == name && reading.quantity == quantity
    };
    record.readings.iter().filter(is_wanted).map(|reading| reading.value).max()
}

fn assert_sound(record: &RunRecord) {
    let rounds: std::collections::BTreeSet<u64> =
        record.readings.iter().map(|reading| reading.at_ns).collect();
    assert!(rounds.len() >= 4, "a second at 10 Hz, on however busy a machine: {rounds:?}");
    let (first, last) = (rounds.first().unwrap(), rounds.last().unwrap());
    assert!(*last < record.took_ns, "the run's clock began within the run");
    assert!(*first <= record.clients[0].started_ns && *last >= record.clients[0].finished_ns, "both ends");
    for (node, name) in [(Some("server"), "h123 serve"), (Some("client"), "h123 load"), (None, "h123 run")] {
        let cpu = [Quantity::CpuUser, Quantity::CpuSystem].map(|quantity| most(record, node, name, quantity));
        assert!(cpu.iter().flatten().sum::<u64>() > 0, "{name}: {cpu:?}");
        assert!(most(record, node, name, Quantity::PeakResident) > Some(1 << 20), "{name}");
    }
    for thread in ["emulator", "monitor"] {
        assert!(most(record, None, thread, Quantity::VoluntarySwitches) > Some(0), "{thread}");
    }
    let core = |reading: &&Reading| reading.subject.kind == SubjectKind::Core && reading.value > 0;
    assert!(record.readings.iter().filter(core).count() > 0);
    // What leaves the server enters its link; not all of it was counted when the client was done.
    let sent = most(record, Some("server"), "eth0", Quantity::SentBytes).unwrap();
    let entered = record.links[0].down.bytes_in;
    assert!(sent.abs_diff(entered) <= entered / 50 + 2000, "{sent} bytes left, {entered} entered");
}

#[test]
fn the_monitor_fills_rows_metrics_and_checks() {
    let _machine = machine();
    let folder = folder();
    let (file, out) = (folder.path().join("cost.toml"), folder.path().join("out"));
    std::fs::write(&file, STUDY).unwrap();
    let (file, out_text) = (file.to_str().unwrap(), out.to_str().unwrap());
    let ended = h123(["run", file, "--out", out_text]);
    ended.expect_measured();
    let records: Vec<RunRecord> =
        ResultFolder::open(&out).unwrap().records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_sound(record);
        let established =
            ["client", "server"].map(|node| most(record, Some(node), "sockets", Quantity::Established));
        let datagrams = most(record, Some("server"), "protocols", Quantity::DatagramsReceived);
        let is_tcp = record.cell == 0;
        assert_eq!(established, [Some(if is_tcp { CONNECTIONS } else { 0 }); 2], "cell {}", record.cell);
        assert_eq!(datagrams > Some(0), !is_tcp, "{datagrams:?}");
    }
    let summary = summary(&out);
    let h1 = cell(&summary, &["h1"]);
    for metric in ["server_established_peak", "client_established_peak"] {
        assert!((median(h1, metric) - 20.0).abs() < 1e-9, "{h1:#}");
    }
    assert!(median(h1, "server_cpu_per_request") > 0.0 && median(h1, "server_memory_peak") > 1e6);
    assert_eq!(check(h1, "listen_overflow")["result"], "pass");
    assert_eq!(check(cell(&summary, &["h3"]), "udp_drops")["threshold"], "0");

    let off = folder.path().join("off");
    let args = ["run", file, "--monitor", "off", "--variant", "h1", "--out", off.to_str().unwrap()];
    let ended = h123(args);
    ended.expect_measured();
    let mut records = ResultFolder::open(&off).unwrap().records().unwrap();
    assert_eq!(records.next().unwrap().unwrap().readings, []);
    let wrong = h123(["plan", file, "--monitor", "50Hz"]).expect(2);
    assert!(wrong.stderr.contains("`50Hz` is not a monitor rate"), "{}", wrong.stderr);
}
