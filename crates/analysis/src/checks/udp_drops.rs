//! No end of the network threw datagrams away.

use super::{Check, Context, Finding};
use crate::number;

pub(super) const CHECK: Check = Check {
    name: "udp_drops",
    why: "A datagram for which a socket's buffer had no room looks to HTTP/3 like loss on the network, and slows it down as that does.",
    remedy: "Let sockets have larger buffers (net.core.rmem_max and wmem_max; `h123 doctor` looks at them), or give server and client more of the processor.",
    judge,
};

/// Datagrams that a full buffer of a socket cost in runs that succeeded, wherever the monitor looked: none, or a caveat. It
/// never invalidates: the packets are the protocol's own risk, as on any machine.
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
    let finding =
        Finding::graded(number::float(received + sent), 0.0, f64::INFINITY, measured, "0".to_owned());
    (runs > 0).then_some(finding)
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
