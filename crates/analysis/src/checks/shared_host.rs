//! Clients and servers are on different hosts, with a network between them.

use model::plan::DIRECT;

use super::{Check, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "whether clients and servers are one host, joined by its loopback interface",
    passes: "never: cells with a network are not judged",
    caveat: "one host",
    why: "Over the loopback interface, the sender's core also does the receiver's network processing, packets \
          have up to 64 kB, and nothing is ever lost or late. No user has such a network, and a server's \
          time contains what its clients do to receive.",
    remedy: "Put a network between client and server: a `network` of the matrix, with a topology of several nodes.",
    ..check("shared_host", judge)
};

/// Judged if nothing is emulated.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let is_shared = context.plan.topology.name == DIRECT;
    is_shared.then(|| {
        Finding::pass_or_caveat(false, "one host, and its loopback interface", "a network between two hosts")
    })
}

#[cfg(test)]
mod tests {
    use model::plan::DIRECT;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, silent};

    #[test]
    fn a_network_is_not_judged_and_the_loopback_interface_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        silent("shared_host", &bench);
        bench.plan.topology.name = DIRECT.to_owned();
        caveats(&bench, &["shared_host"]);
    }
}
