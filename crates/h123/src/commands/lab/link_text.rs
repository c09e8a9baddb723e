//! The text about what an emulated link did.

use std::fmt::Write;

use model::Backend;
use model::record::{DirectionReport, LinkReport};
use model::units::format_ns;

/// The note if the lab's own emulator runs like any other program.
const WITHOUT_REALTIME: &str = "; without real-time priority (`h123 doctor`)";

/// In a lab with more links than this, those without packets share a line.
const MOST_LINES: usize = 16;

/// What the links did, in one line each.
pub(crate) fn describe_links(reports: &[LinkReport]) -> Vec<String> {
    let is_idle = |report: &&LinkReport| report.up.packets_in + report.down.packets_in == 0;
    if reports.len() <= MOST_LINES {
        return reports.iter().map(describe_link).collect();
    }
    let mut lines: Vec<String> =
        reports.iter().filter(|report| !is_idle(report)).map(describe_link).collect();
    let idle = reports.iter().filter(is_idle).count();
    if idle > 0 {
        let noun = if idle == 1 { "link" } else { "links" };
        lines.push(format!("{idle} {noun}: no packets"));
    }
    lines
}

fn describe_link(report: &LinkReport) -> String {
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

#[cfg(test)]
mod tests {
    use model::record::Lateness;

    use super::*;

    fn report(link: &str, packets_in: u64, marked: u64, max_ns: u64) -> LinkReport {
        let lateness = Some(Lateness { p50_ns: 1_000, p99_ns: 9_000, max_ns });
        let up = DirectionReport { packets_in, marked, lateness, ..DirectionReport::default() };
        LinkReport { link: link.to_owned(), up, realtime: true, ..LinkReport::default() }
    }

    #[test]
    fn a_line_has_the_marks_and_the_largest_lateness() {
        assert_eq!(
            describe_links(&[report("client-server", 9, 2, 1_500_000)]),
            [
                "client-server: up 9 packets, 2 marked (CE); down 0 packets; 99 % of packets at most 9 µs late, the latest \
              1.5 ms late"
            ]
        );
        assert_eq!(describe_links(&[report("client-server", 0, 0, 0)]), ["client-server: no packets"]);
    }

    #[test]
    fn idle_links_of_a_large_lab_share_a_line() {
        let mut reports: Vec<LinkReport> = (0..20).map(|n| report(&format!("c{n}-r"), 0, 0, 0)).collect();
        reports[7].up.packets_in = 1;
        let lines = describe_links(&reports);
        assert!(lines[0].starts_with("c7-r: up 1 packet;"), "{lines:?}");
        assert_eq!(lines[1..], ["19 links: no packets"]);
    }
}
