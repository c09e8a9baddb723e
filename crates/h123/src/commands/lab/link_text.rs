//! The text about what an emulated link did.

use std::fmt::Write;

use model::Backend;
use model::record::{DirectionReport, LinkReport};
use model::units::format_ns;

/// The note if the lab's own emulator runs like any other program.
const WITHOUT_REALTIME: &str = "; without real-time priority (`h123 doctor`)";

/// What a link did, in one line.
pub(crate) fn describe_link(report: &LinkReport) -> String {
    let direction = |name: &str, direction: &DirectionReport| {
        let plural = if direction.packets_in == 1 { "" } else { "s" };
        let mut text = format!("{name} {} packet{plural}", direction.packets_in);
        let fates = [
            (direction.lost_configured, "lost"),
            (direction.lost_outage, "lost in outages"),
            (direction.lost_queue, "dropped by the full queue"),
            (direction.lost_codel, "dropped by CoDel"),
            (direction.lost_middlebox, "dropped by the rule for UDP or the NAT"),
            (direction.lost_overload, "lost by an emulator that could not keep up"),
            (direction.marked, "marked (CE)"),
        ];
        for (packets, why) in fates.into_iter().filter(|(packets, _)| *packets > 0) {
            let _ = write!(text, ", {packets} {why}");
        }
        text
    };
    if report.up.packets_in + report.down.packets_in == 0 {
        return format!("{}: no packets", report.link);
    }
    let lateness =
        || [&report.up, &report.down].into_iter().filter_map(|direction| direction.lateness.as_ref());
    let p99_ns = lateness().map(|lateness| lateness.p99_ns).max();
    let most_ns = lateness().map(|lateness| lateness.max_ns).max();
    let late = match p99_ns.zip(most_ns) {
        None => "by the kernel, which does not report its lateness".to_owned(),
        Some((p99_ns, most_ns)) => format!(
            "99 % of packets at most {} late, the latest {} late",
            format_ns(p99_ns),
            format_ns(most_ns)
        ),
    };
    let (up, down) = (direction("up", &report.up), direction("down", &report.down));
    let ordinary = match report.backend {
        Backend::UserSpace if !report.realtime => WITHOUT_REALTIME,
        _ => "",
    };
    format!("{}: {up}; {down}; {late}{ordinary}", report.link)
}
