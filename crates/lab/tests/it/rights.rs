//! What the lab may do, and what it leaves alone.

use lab::{Lab, LabError, PairSpec};
use model::{Backend, Pins};

use crate::help::{MS, network, pair};

const VERSION_3: u32 = 0x2008_0522;

pub(crate) fn probe_changes_nothing() {
    let state = || {
        ["net", "user", "mnt", "pid_for_children"]
            .map(|kind| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap())
    };
    let before = state();
    let found = lab::probe();
    assert!(found.emulation().is_ok(), "{found:?}");
    assert_eq!(state(), before);
}

pub(crate) fn without_capabilities_there_is_a_typed_error() {
    let network = network(MS, None, 0.0);
    let result = std::thread::spawn(move || {
        drop_capabilities_of_this_thread();
        Lab::pair(PairSpec {
            network: &network,
            pins: &Pins::default(),
            seed: 1,
            emulator_cpu: None,
            backend: Backend::UserSpace,
        })
        .map(|_| ())
    });
    match result.join().unwrap() {
        Err(LabError::Missing(missing)) => assert!(missing.remedy.contains("root"), "{missing}"),
        other => panic!("found {other:?}, expected LabError::Missing"),
    }
}

/// In every node there is room for a fast and long path, whatever the machine's own settings are.
pub(crate) fn tcp_buffers_are_raised() {
    let lab = pair(&network(MS, None, 0.0));
    for node in [lab.client(), lab.server()] {
        for name in ["tcp_rmem", "tcp_wmem"] {
            let read = || std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
            let found = node.enter(read).unwrap();
            let largest: u64 = found.split_whitespace().last().unwrap().parse().unwrap();
            assert!(largest >= 32 << 20, "{name} in the node {}: {found}", node.name());
        }
    }
}

pub(crate) fn the_machines_settings_stay() {
    let settings = || {
        [
            "tcp_congestion_control",
            "tcp_rmem",
            "tcp_wmem",
            "tcp_no_metrics_save",
            "ip_unprivileged_port_start",
        ]
        .map(|name| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap())
    };
    let before = settings();
    let lab = pair(&network(MS, None, 0.0));
    assert_eq!(settings(), before);
    drop(lab);
    assert_eq!(settings(), before);
}

/// capset(2): capabilities belong to a thread.
fn drop_capabilities_of_this_thread() {
    let header = [VERSION_3, 0];
    let nothing = [0_u32; 6];
    // SAFETY: the structures are a header of two words and twice three words of data, and outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
