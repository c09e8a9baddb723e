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
        let lost = [
            (direction.lost_configured, "lost"),
            (direction.lost_outage, "lost in outages"),
            (direction.lost_queue, "dropped by the full queue"),
            (direction.lost_codel, "dropped by CoDel"),
            (direction.lost_overload, "lost by an emulator that could not keep up"),
        ];
        for (packets, why) in lost.into_iter().filter(|(packets, _)| *packets > 0) {
            let _ = write!(text, ", {packets} {why}");
        }
        text
    };
    if report.up.packets_in + report.down.packets_in == 0 {
        return format!("{}: no packets", report.link);
    }
    let late_ns = [&report.up, &report.down]
        .into_iter()
        .filter_map(|direction| Some(direction.lateness.as_ref()?.p99_ns));
    let late = late_ns.max().map_or("by the kernel, which does not report its lateness".to_owned(), |ns| {
        format!("99 % of packets at most {} late", format_ns(ns))
    });
    let (up, down) = (direction("up", &report.up), direction("down", &report.down));
    let ordinary = match report.backend {
        Backend::UserSpace if !report.realtime => WITHOUT_REALTIME,
        _ => "",
    };
    format!("{}: {up}; {down}; {late}{ordinary}", report.link)
}
