//! Assignments for tests.

use std::net::SocketAddr;

use model::assignment::{ASSIGNMENT_VERSION, Assignment, Target, Trust};
use model::options::Options;
use model::{Clients, Pins, Variant, Workload};

use crate::Clock;

/// One client with this workload at an address; it has 20 s.
pub(crate) fn assignment(address: SocketAddr, variant: Variant, workload: Workload) -> Assignment {
    Assignment {
        version: ASSIGNMENT_VERSION,
        group: 0,
        node: "test".to_owned(),
        clock: Clock::begin(),
        target: Target {
            variant,
            address,
            authority: "localhost".to_owned(),
            server_name: "localhost".to_owned(),
            trust: Trust::Anyone,
        },
        workload,
        pins: Pins::default(),
        seed: 1,
        clients: Clients::ONE,
        deadline_ns: 20_000_000_000,
        ends_ns: None,
        options: Options::default(),
    }
}
