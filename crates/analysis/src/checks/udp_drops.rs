//! Neither end of the network dropped datagrams.

use super::{Check, Context, Finding, Table, check};

pub(super) const CHECK: Check = Check {
    measures: "datagrams dropped because a socket's buffer was full, at either end",
    passes: "0",
    caveat: "more",
    why: "To HTTP/3, a datagram that does not fit into a socket's buffer looks like loss on the network, \
          and slows it down in the same way.",
    remedy: "Give sockets larger buffers (net.core.rmem_max and wmem_max; `h123 doctor` checks them), or \
             give server and client more CPU.",
    reads: &[Table::Monitor],
    ..check("udp_drops", judge)
};

/// It never invalidates: the protocol takes this risk on any machine.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let facts = || context.own.ok().filter_map(|run| run.monitor);
    let runs = facts().count();
    let received: u64 = facts().map(|facts| facts.udp_receive_buffer_errors).sum();
    let sent: u64 = facts().map(|facts| facts.udp_send_buffer_errors).sum();
    let all: u64 = facts().map(|facts| facts.datagrams_received).sum();
    let measured = match received + sent {
        0 => format!("0 of {all} datagrams"),
        _ => format!("{received} of {all} datagrams at the receiver, {sent} at the sender"),
    };
    (runs > 0).then(|| Finding::pass_or_caveat(received + sent == 0, measured, "0"))
}

#[cfg(test)]
mod tests {
    use model::monitor::Quantity;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn buffers_with_room_pass() {
        let quantities = [(Quantity::DatagramsReceived, 50), (Quantity::UdpReceiveBufferErrors, 0)];
        passes("udp_drops", &Bench::closed(&[Variant::H3]).monitored(&quantities));
    }

    #[test]
    fn a_full_buffer_at_either_end_is_a_caveat() {
        for quantity in [Quantity::UdpReceiveBufferErrors, Quantity::UdpSendBufferErrors] {
            let bench = Bench::closed(&[Variant::H3]).monitored(&[(Quantity::DatagramsReceived, 50)]);
            caveats(&bench.read(3, quantity, 1), &["udp_drops"]);
        }
    }

    #[test]
    fn without_a_monitor_there_is_nothing_to_judge() {
        silent("udp_drops", &Bench::closed(&[Variant::H3]));
    }
}
