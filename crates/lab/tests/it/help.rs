//! What the tests share.

use std::time::{Duration, Instant};

use lab::{Lab, PairSpec};
use model::network::{Direction, LinkRate, Loss, Queue};
use model::{Backend, Network, Pins};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn network(rtt_ns: u64, rate_bits_per_s: Option<u64>, loss_share: f64) -> Network {
    let product = u128::from(rate_bits_per_s.unwrap_or(0)) * u128::from(rtt_ns) / 8_000_000_000;
    let queue = Queue::bytes(u64::try_from(product).unwrap().max(100_000));
    let rate = rate_bits_per_s.map_or(LinkRate::Unlimited, |bits_per_s| LinkRate::Constant { bits_per_s });
    let loss = Loss::Independent { share: loss_share };
    let direction = Direction { delay_ns: rtt_ns / 2, rate, queue, loss, ..Direction::default() };
    Network {
        name: "test".to_owned(),
        title: String::new(),
        source: String::new(),
        up: direction.clone(),
        down: direction,
        timeline: Vec::new(),
    }
}

pub(crate) fn pair(network: &Network) -> Lab {
    Lab::pair(PairSpec {
        network,
        pins: &Pins::default(),
        seed: 7,
        emulator_cpu: None,
        backend: Backend::UserSpace,
    })
    .unwrap()
}

/// Waits until it holds; a test fails that waits longer than any machine needs.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "still not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose command line holds this text.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
    };
    pids.filter(holds).collect()
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: a plain query.
    unsafe { libc::geteuid() }
}
